"""Bad parameters: one line that names the argument, before anything is charged, whatever the data (security.md)."""

from __future__ import annotations

import datetime
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation.exact import Aggregation
from dpfast.errors import ColumnError, DpfastError, ParameterError


def without_address(value: object) -> str:
    """Name a case alike in every process, so that several may share the tests."""
    return repr(value).split(" at 0x")[0][:80]


FULL = pl.DataFrame({"k": ["a", "b"] * 50, "u": list(range(100)), "v": [1.0, np.nan] * 50, "i": [2**40] * 100})
HUGE = 10**400


class Hostile:
    """Equal to everything, true, and a number."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def __float__(self):
        return 0.5

    def __index__(self):
        return 1

    def __repr__(self):
        return "a\nb" * 1000


class Liar(float):
    """A float that claims to be small."""

    def __float__(self):
        return 0.5


#: Beside what tests/arguments makes of declarations.
ARGUMENTS = {
    "epsilon": [5e-324, 1e-320, 1e308, None, -HUGE, Fraction(1, HUGE), pl.Series([0.5]), Hostile(), Liar(7.0)],
    "delta": [-1e-18, None, 5e-324, HUGE, Hostile()],
    "rho": [0.1, HUGE, Hostile(), Liar(7.0)],
    "split": [
        None, {"n": 1}, {"n": 1, "m": 1, "x": 1},
        {"n": 1, "m": 0}, {"n": 1, "m": -1}, {"n": 1, "m": float("nan")}, {"n": 1, "m": float("inf")},
        {"n": 1, "m": "1"},
        {"n": 1, "m": True}, {"n": 1, "m": 10**31}, {"n": 1, "m": 1e-31}, {"n": 1, "m": Decimal("1e999999")},
        {"n": 1, "m": Liar(7.0)}, {1: 1, "m": 1}, {"n": 1, "m": Hostile()}, {"n": 1, "m": 1, "keys": 0},
        {"n": 1, "m": 1e-30}, ("optimal", {"keys": 1}), ("optimal", {"n": 0}), ("even", {"n": 1}), Hostile(),
    ],
    "population": [HUGE, [1], Hostile()],
    "max_groups": [None, HUGE, Hostile()],
    "max_rows_per_group": [None, HUGE, Hostile()],
    "neighbors": [None, np.array(["replace", "add_remove"]), Hostile()],
    "mechanism": [None, np.array(["laplace", "auto"]), Hostile()],
    "privacy_unit": [pl.col("u"), np.array(["u"]), Hostile()],
    "dataset": [Hostile()],
    "schema": [{"k": pl.String}, {}, 1, Hostile()],
    "keys": [
        "a", ["a", "b"], {"k": ["a"]}, 1, pl.LazyFrame({"k": ["a"]}), pl.Series("k", ["a"]), pl.DataFrame({"k": []}),
        pl.DataFrame({"k": ["a", "a"]}), pl.DataFrame({"k": ["a", None, None]}), Hostile(),
    ],
    "by": [1, 1.5, True, ["k", "k"], [1], [None], [["k"]], pl.col("k"), [pl.col("k")], b"k", [b"k"], Hostile()],
    "data": [None, 1, b"x.parquet", {"k": ["a"]}, np.ones(3), [], "nowhere.parquet", "here.xlsx", [1], "*.parquet",
             Hostile()],
}  # fmt: skip

#: Facts of the schema rather than of one argument: the message names the column, or the argument with it.
COLUMNS = {
    "by": ["nowhere", "v", ["k", "nowhere"], dpf.bins("k", [0, 1]), dpf.bins("nowhere", [0, 1])],
    "privacy_unit": ["nowhere", "v"],
    "keys": [
        pl.DataFrame({"j": ["a"]}), pl.DataFrame({"k": [1]}), pl.DataFrame({"k": [1.0]}), pl.DataFrame(),
        pl.DataFrame({"k": ["a"], "j": [1]}), pl.DataFrame({"k": [datetime.date(2000, 1, 1)]}),
    ],
}  # fmt: skip

CASES = [(argument, value) for argument, values in ARGUMENTS.items() for value in values]


@pytest.fixture(autouse=True)
def nothing_is_read(monkeypatch):
    def fail(*_):
        raise AssertionError("data was read")

    monkeypatch.setattr(Aggregation, "run", fail)


def message_of(data, argument, value):
    """Return kind and message of the refusal, having run as far as dpfast lets it; the ledger stays untouched."""
    ledger = dpf.Ledger(epsilon=10, delta=0.1)
    given = {
        "data": data, "by": "k", "n": dpf.count(), "m": dpf.mean("v", bounds=(0, 1)), "epsilon": 1.0, "delta": 1e-6,
        "privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 2, argument: value,
    }  # fmt: skip
    with pytest.raises(DpfastError) as refused:
        dpf.release(given.pop("data"), given.pop("by"), ledger=ledger, **given)
    assert ledger.spent.epsilon == 0
    assert ledger.spent.delta == 0
    assert ledger.history().height == 0
    assert ledger.identity.dataset is None
    message = str(refused.value)
    assert "\n" not in message
    assert len(message) < 400
    return type(refused.value), message


def identify(case):
    return f"{case[0]}-{type(case[1]).__name__}-{str(case[1])[:20]!r}"


@pytest.mark.parametrize("case", CASES, ids=identify)
def test_a_bad_argument_is_named_and_costs_nothing(case):
    """Soundness rule 12: and the message is the same for a full frame and for an empty one."""
    argument, value = case
    kind, message = message_of(FULL, argument, value)
    assert message.startswith(f"{argument} ") or argument in message.split(";")[0]
    assert issubclass(kind, (ParameterError, ColumnError))
    if argument != "data":
        assert message_of(FULL.clear(), argument, value) == (kind, message)
        assert message_of(FULL.lazy(), argument, value) == (kind, message)


@pytest.mark.parametrize("case", [(a, v) for a, values in COLUMNS.items() for v in values], ids=identify)
def test_columns_that_do_not_serve_are_named(case):
    argument, value = case
    kind, message = message_of(FULL, argument, value)
    assert issubclass(kind, (ParameterError, ColumnError))
    assert message_of(FULL.clear(), argument, value) == (kind, message)
    assert any(word in message for word in (argument, "'k'", "'v'", "'nowhere'", "['k']"))


BOUNDS = [
    None, 5, "ab", (1,), (1, 2, 3), (2, 1), (1, 1), (0.0, -0.0), (float("nan"), 1), (0, float("nan")),
    (0, float("inf")),
    (float("-inf"), 0), (True, 5), ("0", "1"), (None, 1), (0, HUGE), (-HUGE, 0), (0, 1e301), (0j, 1), [0],
    np.array([0, 1]),
    (Decimal(1), Decimal(0)), (Hostile(), 1), {0, 1}, {0: 1, 2: 3}, (np.datetime64(0, "s"), 1),
]  # fmt: skip


@pytest.mark.parametrize("ask", [dpf.sum, dpf.mean])
@pytest.mark.parametrize("bounds", BOUNDS, ids=lambda bounds: str(bounds)[:25])
def test_bad_bounds(ask, bounds):
    with pytest.raises(ParameterError, match=r"^bounds ") as refused:
        ask("v", bounds=bounds)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("ask", [dpf.sum, dpf.mean])
@pytest.mark.parametrize("bounds", [(1e300, 1.0000001e300), (1.0, 1.0 + 2**-52), (5e-324, 1e-323)])
def test_bounds_too_near_each_other(ask, bounds):
    """Refused, or held apart by steps that are no zero."""
    plan = None
    with suppress(ParameterError):
        plan = dpf.plan(FULL, n=ask("v", bounds=bounds), privacy_unit="row", epsilon=1)
    if plan is None:
        with pytest.raises(ParameterError, match=r"^bounds "):
            dpf.plan(FULL, n=ask("v", bounds=bounds), privacy_unit="row", epsilon=1)
    else:
        part = plan._blueprint.queries[0].parts[0]
        assert part.step > 0
        assert part.sensitivity.l1 > 0


def test_whole_bounds_without_a_whole_number_between():
    for data in (FULL, FULL.clear()):
        with pytest.raises(ParameterError, match=r"^bounds "):
            dpf.plan(data, n=dpf.sum("i", bounds=(0.1, 0.4)), privacy_unit="row", epsilon=1)


@pytest.mark.parametrize("ask", [dpf.sum, dpf.mean])
@pytest.mark.parametrize("column", [1, None, b"v", pl.col("v"), ["v"]])
def test_bad_columns_of_queries(ask, column):
    with pytest.raises(ParameterError, match=r"^column "):
        ask(column, bounds=(0, 1))


@pytest.mark.parametrize("column", ["nowhere", "k"])
@pytest.mark.parametrize("ask", [dpf.sum, dpf.mean])
def test_columns_that_cannot_be_summed(ask, column):
    for data in (FULL, FULL.clear(), FULL.lazy()):
        with pytest.raises(ColumnError, match=f"'{column}'"):
            dpf.plan(data, n=ask(column, bounds=(0, 1)), privacy_unit="row", epsilon=1)


@pytest.mark.parametrize(
    "query", [None, "count", 1, dpf.count, pl.len(), pl.col("v").sum(), Hostile()], ids=without_address
)
def test_what_is_no_query(query):
    with pytest.raises(ParameterError, match=r"^late "):
        dpf.plan(FULL, late=query, privacy_unit="row", epsilon=1)


def test_no_query_at_all():
    with pytest.raises(ParameterError, match="queries"):
        dpf.plan(FULL, privacy_unit="row", epsilon=1)


@pytest.mark.parametrize("given", [{"max_groups": 1}, {"max_rows_per_group": 1}])
def test_bounds_without_a_unit(given):
    (name,) = given
    with pytest.raises(ParameterError, match=f"^{name} "):
        dpf.plan(FULL, n=dpf.count(), epsilon=1, **given)


EDGES = [
    [], [1], [1, 1], [2, 1], [0, float("nan")], [0, float("inf")], "ab", None, 5, [0, HUGE], [True, 2], ["0", "1"],
    [2**53 + 1, 2**60], [0, 1j],
]  # fmt: skip


@pytest.mark.parametrize("edges", EDGES, ids=lambda edges: str(edges)[:25])
def test_bad_edges(edges):
    with pytest.raises(ParameterError, match=r"^edges "):
        dpf.bins("v", edges)


@pytest.mark.parametrize(
    "keys",
    [
        pl.DataFrame({"x": pl.Series([300], dtype=pl.Int64)}),
        pl.DataFrame({"x": pl.Series([-1], dtype=pl.Int64)}),
        pl.DataFrame({"x": pl.Series([5, 5], dtype=pl.Int16)}),
    ],
)
def test_keys_that_the_data_cannot_hold_or_that_meet_after_casting(keys):
    """Soundness rule 19."""
    for data in (
        pl.DataFrame({"x": pl.Series([1], dtype=pl.UInt8)}),
        pl.DataFrame({"x": pl.Series([], dtype=pl.UInt8)}),
    ):
        with pytest.raises(ParameterError, match=r"^keys "):
            dpf.plan(data, "x", keys=keys, n=dpf.count(), privacy_unit="row", epsilon=1)


@pytest.mark.parametrize("key", [0.5, 12, 100, float("nan"), -1])
def test_keys_that_are_no_bins(key):
    with pytest.raises(ParameterError, match=r"^keys "):
        dpf.plan(
            FULL,
            dpf.bins("v", [0, 6, 12]),
            keys=pl.DataFrame({"v": [key]}),
            n=dpf.count(),
            privacy_unit="row",
            epsilon=1,
        )


TINY = [
    ({"epsilon": 1e-18, "delta": 1e-6}, "epsilon"),
    ({"epsilon": 2e-18, "delta": 1e-6}, "epsilon"),
    ({"epsilon": 1e-18, "keys": pl.DataFrame({"k": ["a"]})}, "epsilon"),
    ({"epsilon": 1.0, "delta": 1e-18, "mechanism": "gaussian"}, "delta"),
    ({"epsilon": 1.0, "delta": 1e-18, "mechanism": "gaussian", "keys": pl.DataFrame({"k": ["a"]})}, "delta"),
    ({"epsilon": 1.0, "mechanism": "gaussian", "keys": pl.DataFrame({"k": ["a"]})}, "delta"),
    ({"epsilon": 1.0}, "delta"),
]


@pytest.mark.parametrize(("given", "argument"), TINY, ids=lambda value: str(value)[:40])
def test_budgets_too_small_to_share_are_named(given, argument):
    """A budget of one unit of 1e-18 cannot be split: the message is about the budget."""
    with pytest.raises(ParameterError, match=f"^{argument} "):
        dpf.plan(FULL, "k", n=dpf.count(), m=dpf.mean("v", bounds=(0, 1)), **{"privacy_unit": "row", **given})


@pytest.mark.parametrize("delta", [1e-18, 3e-18])
def test_auto_falls_back_to_laplace_where_delta_cannot_be_split(delta):
    plan = dpf.plan(FULL, m=dpf.mean("v", bounds=(0, 1)), n=dpf.count(), privacy_unit="row", epsilon=1.0, delta=delta)
    assert "laplace" in plan.explain()
    assert plan.delta == 0


SCHEMAS = [None, 1, "k", [("k", pl.String)], {"k": "String"}, {"k": None}, {1: pl.String}, {"nowhere": pl.String}, {}]


@pytest.mark.parametrize("schema", SCHEMAS, ids=without_address)
def test_bad_schemas(schema, tmp_path):
    """Soundness rule 12: declared dtypes; and what is wrong with them shows in one line."""
    path = tmp_path / "data.csv"
    for content in ("k,v\na,1\n", "k,v\n"):
        path.write_text(content)
        with pytest.raises((ParameterError, ColumnError), match=r"schema|no columns|'k'") as refused:
            dpf.plan(path, "k", n=dpf.count(), privacy_unit="row", epsilon=1, delta=1e-6, schema=schema)
        assert "\n" not in str(refused.value)


def test_values_never_make_an_error(monkeypatch):
    """Soundness rule 12: NaN, infinities, nulls and extremes in every column run as an empty frame does."""
    monkeypatch.undo()
    hostile = pl.DataFrame(
        {
            "k": ["", None, "a" * 100_000, "\x00", "é\U0001f600", "b"] * 60,
            "u": [2**63 - 1, -(2**63), None, 0, 1, 1] * 60,
            "v": [np.nan, np.inf, -np.inf, None, 5e-324, -1.7e308] * 60,
            "i": [2**63 - 1, -(2**63), None, 0, 1, -1] * 60,
        }
    )
    for data in (hostile, hostile.lazy(), hostile.clear()):
        for unit in ({}, {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 2}):
            for keys in (None, pl.DataFrame({"k": ["", None, "x"]})):
                for mechanism in ("laplace", "gaussian"):
                    release = dpf.release(
                        data, "k", keys=keys, n=dpf.count(), s=dpf.sum("v", bounds=(-1e300, 1e300)),
                        i=dpf.sum("i", bounds=(-(2**63), 2**63)), m=dpf.mean("i", bounds=(-1, 1e18)),
                        epsilon=1, delta=1e-6, mechanism=mechanism,
                        ledger=dpf.Ledger(epsilon=1, delta=1e-6), **{"privacy_unit": "row", **unit},
                    )  # fmt: skip
                    assert release.frame.null_count().sum_horizontal().item() == release.frame["k"].null_count()


@pytest.mark.parametrize("bounds", [(0, 2**64 - 1), (0, 2.0**70), (-(2**63), 2**63)])
def test_bounds_are_shown_as_numbers(bounds):
    frame = pl.DataFrame({"x": [1, 2]})
    with pytest.raises(ParameterError, match=r"but was \(-?\d+, \d+\)$"):
        dpf.plan(frame, q=dpf.quantile("x", 0.5, bounds=bounds), privacy_unit="row", epsilon=1.0)
    halves = ParameterError("bounds", (Fraction(1, 2), [Fraction(-3, 1)]), "others")
    assert str(halves) == "bounds must be others, but was (1/2, [-3])"
    assert str(ParameterError("bound", Fraction(5, 1), "another")) == "bound must be another, but was 5"
