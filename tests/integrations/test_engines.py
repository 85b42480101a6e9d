"""What aggregates where the rows are: asked after the charge, its answer checked, its errors replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation import Grouping, aggregate, open_data
from dpfast.aggregation.contributions import plan_contributions
from dpfast.aggregation.keys import plan_keys
from dpfast.aggregation.protocols import Engine, GroupQuery, is_engine
from dpfast.errors import ColumnError, DpfastError, LedgerError, ParameterError
from dpfast.queries import Bins, Measure

FRAME = pl.DataFrame(
    {
        "k": ["a", None, "b", "a", "c"],
        "n": [1, 2, None, 4, 5],
        "x": [0.5, float("nan"), 2.0, -7.0, None],
        "u": ["p", "q", "q", None, "p"],
    }
)
KEYS = pl.DataFrame({"k": ["b", "z", None, "a"]})


class PolarsEngine:
    """A database that is a Polars frame, and keeps the first rows of a unit."""

    name = "Test database"

    def __init__(self, frame: pl.DataFrame, change: Callable[[pl.DataFrame], Any] | None = None) -> None:
        self.frame, self.change = frame, change
        self.asked: list[GroupQuery] = []
        self.checked = 0

    def schema(self) -> pl.Schema:
        return self.frame.schema

    def check(self, query: GroupQuery) -> None:
        self.checked += 1

    def aggregate(self, query: GroupQuery) -> Any:
        self.asked.append(query)
        keys = [column.native.alias(f"key{i}") for i, column in enumerate(plan_keys(query.keys, self.frame.schema))]
        contributions = plan_contributions(query.measures, self.frame.schema)
        rows = self.frame
        units = pl.len()
        if query.unit is not None:
            rows = rows.filter(pl.col(query.unit).is_not_null()).group_by(query.unit, maintain_order=True).head(1)
            units = pl.col(query.unit).n_unique()
        sums = [
            (pl.len() if measure.native is None else measure.native.sum()).cast(pl.Int64).alias(f"measure{i}")
            for i, measure in enumerate(contributions)
        ]
        aggregations = [units.cast(pl.Int64).alias("units"), *sums]
        found = rows.group_by(keys).agg(aggregations) if keys else rows.select(aggregations)
        return (found if self.change is None else self.change(found)).to_arrow()


def words(number: int) -> np.ndarray:
    return np.arange(number, dtype=np.uint64)


MEASURES = [Measure("rows"), Measure("values", "x"), Measure("sum", "n", 0, 0, 3)]


@pytest.mark.parametrize(
    "grouping",
    [Grouping(()), Grouping(("k",)), Grouping(("k",), KEYS), Grouping((Bins("x", (0, 1, 3)), "k"))],
    ids=["one group", "keys found", "public keys", "bins"],
)
@pytest.mark.parametrize("frame", [FRAME, FRAME.clear()], ids=["rows", "no rows"])
def test_figures_are_those_of_the_rows(frame, grouping):
    engine = PolarsEngine(frame)
    assert is_engine(engine)
    ours, theirs = (aggregate(open_data(data), grouping, MEASURES, words) for data in (frame, engine))
    if grouping.keys is None and grouping.by:
        order, other = (found.keys.select(pl.struct(pl.all()).arg_sort()).to_series() for found in (ours, theirs))
    else:
        order = other = pl.Series(range(ours.keys.height))
        assert theirs.units is None
    assert ours.keys[order].equals(theirs.keys[other])
    for one, two in zip(ours.measures, theirs.measures, strict=True):
        assert (one[order.to_numpy()] == two[other.to_numpy()]).all()


def test_what_an_engine_is_asked():
    engine = PolarsEngine(FRAME)
    aggregate(open_data(engine), Grouping(("k",), KEYS, "u", 2, 3), MEASURES, words)
    (query,) = engine.asked
    assert (query.keys, query.measures, query.unit) == (("k",), tuple(MEASURES), "u")
    assert (query.max_groups, query.max_rows_per_group) == (2, 3)
    assert query.public is not None
    assert query.public.columns == ["key0"]
    assert query.salt == b"".join(bytes([i, *[0] * 7]) for i in range(4))


def test_the_charge_comes_between_the_check_and_the_question():
    engine, ledger = PolarsEngine(FRAME), dpf.Ledger(epsilon=1)
    plan = dpf.plan(
        engine,
        "k",
        keys=KEYS,
        n=dpf.count(),
        m=dpf.mean("x", bounds=(0, 1)),
        privacy_unit="row",
        epsilon=0.5,
        engine="sql",
    )
    assert "Test database" in plan.explain()
    assert (engine.checked, engine.asked) == (0, [])
    release = plan.run(ledger)
    assert plan.run(ledger) is release
    assert (engine.checked, len(engine.asked)) == (1, 1)
    assert release.frame["k"].equals(KEYS["k"])
    assert ledger.spent.epsilon == 0.5


def test_a_failing_check_spends_nothing():
    class Wrong(PolarsEngine):
        def check(self, query: GroupQuery) -> None:
            raise ParameterError("data", "half rounds up", "another engine")

    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(ParameterError, match="half rounds up"):
        dpf.release(Wrong(FRAME), "k", keys=KEYS, n=dpf.count(), privacy_unit="row", epsilon=0.5, ledger=ledger)
    assert ledger.spent.epsilon == 0


def fails(frame: pl.DataFrame) -> Any:
    raise ValueError(f"secret {frame['key0'][0]}")


ANSWERS: dict[str, Callable[[pl.DataFrame], Any]] = {
    "raises": fails,
    "lacks a measure": lambda frame: frame.drop("measure0"),
    "has another column": lambda frame: frame.with_columns(secret=1),
    "floats": lambda frame: frame.cast({"measure0": pl.Float64}),
    "nulls": lambda frame: frame.with_columns(measure0=pl.lit(None, pl.Int64)),
    "a key twice": lambda frame: pl.concat([frame, frame]),
    "keys of another kind": lambda frame: frame.with_columns(key0=pl.lit([1.5])),
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("keys", [KEYS, None], ids=["public keys", "keys found"])
def test_what_is_no_answer_leaves_a_dead_plan(name, keys):
    plan = dpf.plan(
        PolarsEngine(FRAME, ANSWERS[name]), "k", keys=keys, n=dpf.count(), privacy_unit="row", epsilon=0.5, delta=1e-6
    )
    ledger = dpf.Ledger(epsilon=1, delta=1e-5)
    with pytest.raises(DpfastError) as caught:
        plan.run(ledger)
    error: BaseException | None = caught.value
    while error is not None:
        assert "secret" not in str(error)
        error = error.__cause__ or error.__context__
    assert ledger.spent.epsilon == 0.5
    with pytest.raises(LedgerError, match="failed after it was charged"):
        plan.run(ledger)


@pytest.mark.parametrize("rule", ["weighted", "iterated", "policy"])
def test_rules_that_need_each_units_keys_are_refused(rule):
    unit = {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 1, "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(ParameterError, match=r"where a database aggregates.*rows"):
        dpf.plan(PolarsEngine(FRAME), "k", n=dpf.count(), key_selection=rule, **unit)
    plan = dpf.plan(PolarsEngine(FRAME), "k", s=dpf.sum("n", bounds=(0, 3)), **unit)
    assert plan.run(dpf.Ledger(epsilon=1, delta=1e-6)).frame.height == 0


def test_quantiles_and_modes_are_refused():
    for query in (dpf.quantile("n", 0.5, bounds=(0, 3)), dpf.mode("k", candidates=["a", "b"])):
        with pytest.raises(ParameterError, match="such as Test database computes"):
            dpf.plan(PolarsEngine(FRAME), "k", keys=KEYS, q=query, privacy_unit="row", epsilon=1.0)


def test_the_engine_is_asked_for_where_there_is_one():
    for data in (FRAME, FRAME.lazy(), FRAME.to_arrow()):
        with pytest.raises(ParameterError, match=r"dpf\.sql"):
            dpf.plan(data, "k", keys=KEYS, n=dpf.count(), privacy_unit="row", epsilon=1.0, engine="sql")
    with pytest.raises(ColumnError, match="lacks"):
        dpf.plan(PolarsEngine(FRAME), "none", keys=KEYS, n=dpf.count(), privacy_unit="row", epsilon=1.0)
    with pytest.raises(ParameterError, match=r"duplicate|unique|once"):
        dpf.plan(PolarsEngine(FRAME), "k", keys=pl.concat([KEYS, KEYS]), n=dpf.count(), privacy_unit="row", epsilon=1.0)


def test_both_ways_of_a_database():
    class Both:
        def rows(self) -> Any:
            return None

        def engine(self) -> Engine:
            return PolarsEngine(FRAME)

    def plan(engine: Any) -> str:
        return dpf.plan(Both(), "k", keys=KEYS, n=dpf.count(), privacy_unit="row", epsilon=1.0, engine=engine).explain()

    assert "Test database" in plan("auto")
    assert "Test database" in plan("sql")
    with pytest.raises(ParameterError, match='engine="sql"'):
        plan("rows")
    both = Both()
    both.rows = lambda: open_data(FRAME)  # type: ignore[method-assign]
    explained = dpf.plan(both, "k", keys=KEYS, n=dpf.count(), privacy_unit="row", epsilon=1.0).explain()
    assert "Test database" not in explained


def test_workloads_of_an_engine():
    keys = pl.DataFrame({"k": ["a", "b", "c", "d"]})
    work = {"by": "k", "keys": keys, "workload": dpf.workloads.all_range(4), "epsilon": 1.0}
    frame = dpf.release(PolarsEngine(FRAME), ledger=dpf.Ledger(epsilon=1), **{"privacy_unit": "row", **work}).frame
    assert frame.height == 10


def test_an_aggregation_by_an_engine_is_private():
    plan = dpf.plan(PolarsEngine(FRAME), "k", keys=KEYS, n=dpf.count(), privacy_unit="row", epsilon=1.0)
    aggregation = plan._blueprint.aggregation
    assert repr(aggregation) == "PushedAggregation(by=['k'], measures=1)"
    with pytest.raises(DpfastError, match="pickled"):
        aggregation.__reduce__()
