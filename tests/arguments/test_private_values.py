"""Every public function x every argument of private numbers: no element of a list is refused, and nothing warns of it.

Whether there is an error must depend on parameters alone (soundness rule 12): one that depends on a row tells of it,
before anything is paid.
"""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.arguments import Private
from dpfast.errors import DpfastError

from .calls import every_call

GIVEN = [
    (call, name)
    for call in every_call()
    for name in call.parameters
    if isinstance(call.declaration(name), Private) and call.given().get(name) is not None
]
EACH = pytest.mark.parametrize(("call", "name"), GIVEN, ids=[f"{call.name}-{name}" for call, name in GIVEN])


class Hostile(float):
    """A number whose own ways fail."""

    def __float__(self):
        raise RuntimeError

    def __eq__(self, other):
        raise RuntimeError

    __hash__ = None


class Loud(int):
    """A number that does what it can to be heard."""

    def __float__(self):
        warnings.warn("a number", stacklevel=1)
        return 1.0

    def __lt__(self, other):
        raise SystemExit

    __int__ = __gt__ = __eq__ = __lt__
    __hash__ = None


class LoudRow(list):
    """A row that cannot be read by its own ways."""

    def __iter__(self):
        raise SystemExit

    __len__ = __iter__


class LoudFraction(Fraction):
    """A number of whose class nothing else is known."""

    def __float__(self):
        raise SystemExit

    __eq__ = __lt__ = __gt__ = lambda self, other: self.__float__()
    __hash__ = None


STRANGE = (
    None,
    object(),
    "text",
    b"1",
    [1],
    [],
    (1, 2, 3),
    {},
    len,
    1j,
    True,
    2**70,
    -(10**400),
    1e308,
    -0.0,
    float("nan"),
    float("-inf"),
    Decimal("1e999"),
    Decimal("sNaN"),
    Fraction(1, 3),
    Fraction(10**400),
    Hostile(1.0),
    Loud(1),
    LoudFraction(1, 2),
    LoudRow([1, 2]),
    np.ma.masked,
    np.longdouble("1e4000"),
    np.float16("nan"),
    np.datetime64("NaT"),
    np.timedelta64(1, "s"),
    np.array([1.0, 2.0]),
    np.ma.masked_array([1.0, 2.0], [True, False]),
)


def with_strange(rows, strange, *, first):
    """Yield rows with something strange as the last number, and as the last row, or the ``first`` too."""
    if isinstance(rows[-1], list):
        for last in with_strange(rows[-1], strange, first=first):
            yield [*rows[:-1], last]
        if len(rows) > 1:
            yield [*rows[:-1], strange]
        if first:
            yield [strange, *rows[1:]]
    else:
        yield [*rows[:-1], strange]
        if len(rows) > 1:
            yield [strange, *rows[1:]]


def is_declared(call, name):
    """Return whether another argument says how long each row is; of these alone the first row says it."""
    return not (call.name in ("games-select_outcome", "games-vcg_payments") and "outcomes" not in call.given())


def plain_rows(call, name):
    rows = np.asarray(call.given()[name]).tolist()
    return rows if isinstance(rows, list) else [rows]


def test_private_lists_are_found():
    """The arguments are those that are known to be private; a new one is told by its declaration."""
    assert {f"{call.name}.{name}" for call, name in GIVEN} >= {
        "games-place_facilities.homes",
        "games-select_outcome.utilities",
        "games-select_price.bids",
        "learning-select_concept.labels",
    }
    assert len(GIVEN) > 25


@EACH
@pytest.mark.parametrize("container", [list, tuple])
def test_no_element_of_a_list_is_refused(call, name, container):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for strange in STRANGE:
            for rows in with_strange(plain_rows(call, name), strange, first=is_declared(call, name)):
                call(**{name: container(rows)})


@EACH
@pytest.mark.parametrize("odd", [None, [], [0.5], [0.5] * 17])
def test_a_declared_width_needs_no_row(call, name, odd):
    """None of the rows is one, or none is as long as declared: they are missing, as each of them is beside others."""
    rows = plain_rows(call, name)
    if isinstance(rows[0], list) and is_declared(call, name):
        call(**{name: [odd] * len(rows)})


@pytest.mark.parametrize(
    "call", [call for call in every_call() if any(call is other for other, _ in GIVEN)], ids=lambda call: call.name
)
def test_nobody_is_answered_as_one_person_is(call):
    """Nobody and one person are neighbours: lists of both are taken, or refused, where a number is declared."""
    names = [name for other, name in GIVEN if other is call]
    outcomes = set()
    for people in (0, 1):
        given = {}
        for name in names:
            rows = plain_rows(call, name)
            across = f"{call.name}.{name}" == "learning-select_concept.predictions"  # a row for each concept
            given[name] = [row[:people] for row in rows] if across else rows[:people]
        try:
            call(**given)
        except DpfastError:
            outcomes.add("refused")
        else:
            outcomes.add("taken")
    assert len(outcomes) == (1 if all(is_declared(call, name) for name in names) else 2)


@pytest.mark.parametrize("rows", [[[0.1], [0.2, 0.3]], [[0.2, 0.3], [0.1]], [[0.1]], []])
def test_the_first_row_decides_nothing_where_a_width_is_declared(rows):
    """A row of another length counts as none, whichever it is."""
    missing = [row if len(row) == 2 else [None, None] for row in rows]
    assert dpf.two_outcome_vote(rows, epsilon=1.0) in (0, 1)
    assert dpf.select_outcome(rows, epsilon=1.0, outcomes=2) in (0, 1)
    paid = dpf.vcg_payments(rows, 1.0, outcomes=2)
    assert paid.tolist() == dpf.vcg_payments(np.array(missing, float).reshape(-1, 2), 1.0).tolist()
    target = [0.5] * len(rows)
    model = dpf.LinearRegression([(0, 1), (0, 1)], (0, 1), epsilon=1.0).fit(rows, target)
    assert model.coef_.shape == (2,)
    predicted = model.predict(rows)
    assert np.isnan(predicted).tolist() == [len(row) != 2 for row in rows]
    assert np.isnan(model.score(rows, target))
    experts = dpf.RandomizedWeightedMajority(2, 3, eta=0.1)
    assert len(experts.run(rows)) == len(rows)
    if rows:
        assert dpf.LinearLearner(2, len(rows), epsilon=1.0).learn(rows).shape == (2,)


@EACH
def test_types_are_refused_whatever_they_hold(call, name):
    """Arrays and columns of objects, and masked arrays, with plain numbers in them as with others."""
    plain = np.asarray(call.given()[name])
    if plain.ndim == 0:
        plain = plain.reshape(1)
    for values in (plain, np.full(plain.shape, None)):
        kinds = [np.array(values.tolist(), object), np.ma.masked_array(values.astype(object))]
        if plain.ndim == 1:
            kinds.append(pd.Series(values, dtype=object))
        elif plain.ndim == 2:
            kinds.append(pd.DataFrame(values, dtype=object))
        for given in kinds:
            ledger = {"ledger": dpf.Ledger(epsilon=1000, delta=0.5)} if "ledger" in call.parameters else {}
            with pytest.raises(DpfastError):
                call(**{name: given, **ledger})
            assert not ledger or ledger["ledger"].history().is_empty()


KINDS = {
    "Booleans of Polars": lambda values: pl.Series([None if v is None else bool(v) for v in values], dtype=pl.Boolean),
    "integers of Polars": lambda values: pl.Series(values, dtype=pl.Int64),
    "decimals of Polars": lambda values: pl.Series(values, dtype=pl.Float64).cast(pl.Decimal(38, 1)),
    "nullable of pandas": lambda values: pd.Series(values, dtype="Int64"),
    "nullable Booleans": lambda values: pd.Series([None if v is None else bool(v) for v in values], dtype="boolean"),
    "Arrow in pandas": lambda values: pd.Series(values, dtype="int64[pyarrow]"),
    "categories": lambda values: pd.Series(values).astype("category"),
    "objects": lambda values: pd.Series(values, dtype=object),
    "PyArrow": lambda values: pa.array(values, pa.int64()),
    "Booleans of PyArrow": lambda values: pa.array([None if v is None else bool(v) for v in values], pa.bool_()),
    "NumPy": lambda values: np.array([np.nan if v is None else v for v in values], float),
}


@EACH
@pytest.mark.parametrize("kind", KINDS)
def test_nulls_do_not_decide_whether_a_kind_is_taken(call, name, kind):
    """A column or a frame of them, with nulls in it and without: both are taken, or refused in the same words."""
    plain = np.asarray(call.given()[name]).astype(np.int64)
    if plain.ndim == 0:
        plain = plain.reshape(1)
    if plain.ndim > 2:
        pytest.skip("there are no frames of more dimensions")
    with_null = plain.astype(object)
    with_null[(-1,) * plain.ndim] = None
    outcomes = set()
    for values in (plain.astype(object), with_null):
        columns = [KINDS[kind](column) for column in np.atleast_2d(values.T).tolist()]
        if plain.ndim == 1:
            given = columns[0]
        elif kind == "NumPy":
            given = np.stack(columns, axis=1)
        else:
            frame = {f"c{place}": column for place, column in enumerate(columns)}
            given = {pl.Series: pl.DataFrame, pd.Series: pd.DataFrame}.get(type(columns[0]), pa.table)(frame)
        try:
            call(**{name: given})
        except DpfastError as error:
            outcomes.add(str(error))
        else:
            outcomes.add("taken")
    assert len(outcomes) == 1


@EACH
@pytest.mark.parametrize("bits", [np.uint64(0x7FF0000000000001), np.uint32(0x7F800001)])
def test_signalling_nan_does_not_warn(call, name, bits):
    """NumPy warns of the arithmetic of such a NaN, and of no other number."""
    signal = np.array([bits]).view(f"f{bits.dtype.itemsize}")
    plain = np.asarray(call.given()[name]).astype(signal.dtype)
    if plain.ndim == 0:
        plain = plain.reshape(1)
    given = plain.copy()
    given[(slice(-1, None),) * plain.ndim] = signal
    assert given.view(bits.dtype).reshape(-1)[-1] == bits
    outcomes = set()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for values in (plain, given):
            try:
                call(**{name: values})
            except DpfastError as error:
                outcomes.add(str(error))
            else:
                outcomes.add("taken")
    assert len(outcomes) == 1


@EACH
def test_longdouble_does_not_warn(call, name):
    """Whether a type is taken does not depend on what it holds, and what float64 does not hold is clipped silently."""
    plain = np.asarray(call.given()[name]).astype(np.longdouble)
    outcomes = []
    for last in (plain.reshape(-1)[-1], np.longdouble("1e4000"), np.longdouble("nan")):
        given = plain.copy()
        given.reshape(-1)[-1] = last
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                call(**{name: given})
            except DpfastError:
                outcomes.append("refused")
            else:
                outcomes.append("taken")
    assert len(set(outcomes)) == 1
