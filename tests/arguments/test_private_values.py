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
    np.timedelta64(1),
    np.array([1.0, 2.0]),
    np.ma.masked_array([1.0, 2.0], [True, False]),
)


def with_strange(rows, strange):
    """Yield rows with something strange as the last number, and as a whole row that is not the first."""
    if isinstance(rows[-1], list):
        for last in with_strange(rows[-1], strange):
            yield [*rows[:-1], last]
        if len(rows) > 1:
            yield [*rows[:-1], strange]
    else:
        yield [*rows[:-1], strange]
        if len(rows) > 1:
            yield [strange, *rows[1:]]


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
    plain = np.asarray(call.given()[name]).tolist()
    if not isinstance(plain, list):
        plain = [plain]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for strange in STRANGE:
            for rows in with_strange(plain, strange):
                call(**{name: container(rows)})


@pytest.mark.parametrize(
    ("name", "given"),
    [("RandomizedWeightedMajority.run", "losses"), ("LinearLearner.learn", "examples")],
)
def test_a_declared_width_needs_no_row(name, given):
    """None of the rows is one: they are of missing numbers, as each of them is beside others."""
    call = next(call for call in every_call() if call.name == name)
    rows = call.given()[given]
    call(**{given: [None] * len(rows)})


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
