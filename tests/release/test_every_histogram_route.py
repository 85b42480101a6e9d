"""Every way from records to a histogram, and on to answers, records and charts, ends well however few they are.

The same of tables of queries. See `test_every_route` for why: a route that fails shows whether there was anybody.
"""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

import dpfast as dpf

TEXTS = ["a", "b", "c", "d"]
ENUM = pl.Enum([*TEXTS, "e"])
CELLS = dpf.workloads.all_range(4)
PAIRS = dpf.workloads.marginals((4, 2), k=1)

#: The cells: by, keys, and what is asked of them.
CELLS_OF = {
    "integers": ("i", pl.DataFrame({"i": range(4)}), CELLS),
    "strings": ("s", pl.DataFrame({"s": TEXTS}), CELLS),
    "enum": ("e", pl.DataFrame({"e": pl.Series(TEXTS, dtype=ENUM)}), CELLS),
    "bins": (dpf.bins("f", range(5)), pl.DataFrame({"f": range(4)}), CELLS),
    "two columns": (["s", "h"], pl.DataFrame({"s": TEXTS}).join(pl.DataFrame({"h": range(2)}), how="cross"), PAIRS),
}
BUDGETS = {"epsilon": {"epsilon": 1.0}, "delta": {"epsilon": 1.0, "delta": 1e-6}, "rho": {"rho": 0.5}}
UNITS = {"rows": {}, "units": {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 2}}
DATA = {"ordinary": 60, "empty": 0, "one row": 1, "all null": 5, "dropped": 5}
FEW = [data for data in DATA if data != "ordinary"]


def records_of(data):
    rows = DATA[data]

    def column(values, dtype, *, null=data == "all null"):
        return pl.Series([None if null else values[i % len(values)] for i in range(rows)], dtype=dtype)

    return pl.DataFrame(
        {
            "i": column(range(6), pl.Int64),
            "s": column(TEXTS, pl.String),
            "e": column(TEXTS, ENUM),
            "f": column([0.5, 1.5, float("nan"), 9.0], pl.Float64),
            "h": column([0, 1, 7], pl.Int16),
            "u": column(range(60), pl.Int64, null=data in ("all null", "dropped")),
        }
    )


def a_ledger(budget):
    return dpf.Ledger(epsilon=50.0, delta=0.1, accountant="zcdp" if budget == "rho" else "basic")


def sources(records, folder):
    yield records
    yield records.lazy()
    records.write_parquet(folder / "records.parquet")
    yield folder / "records.parquet"


@pytest.mark.parametrize("cells", CELLS_OF)
def test_plans_of_workloads(cells, tmp_path):
    """Strategies that are chosen, given and adaptive; units; budgets; neighbours; sources in turn."""
    by, keys, workload = CELLS_OF[cells]
    strategies = ["auto", "adaptive", dpf.strategies.identity(workload.shape)]
    turns = itertools.cycle(range(3))
    schemas = {}
    for strategy, unit, budget, neighbors in itertools.product(
        strategies, UNITS, BUDGETS, ["add_remove", "replace"]
    ):  # fmt: skip
        if strategy == "adaptive" and budget == "delta":
            continue
        for data in ["ordinary", *FEW] if (unit, neighbors) == ("units", "add_remove") else ["empty"]:
            ledger, source = a_ledger(budget), list(sources(records_of(data), tmp_path))[next(turns)]
            release = dpf.plan(
                source, by, keys=keys, workload=workload, strategy=strategy, neighbors=neighbors,
                **{"privacy_unit": "row", **UNITS[unit], **BUDGETS[budget]},
            ).run(ledger)  # fmt: skip
            said = cells, str(strategy), unit, budget, neighbors, data
            seen = release.frame.schema, release.frame.height, release.histogram.schema, release.histogram.height
            assert schemas.setdefault(str(strategy), seen) == seen, said
            assert release.frame.null_count().sum_horizontal().sum() == 0, said
            assert release.lazy().collect().equals(release.frame), said
            assert repr(release), said
            assert release.explain(), said


def counted(domain, records):
    """Return the same counts by the ways there are to them."""
    counts = domain.count(records)
    assert (domain.open(records.lazy()).count(threads=2) == counts).all()
    assert (domain.count(records.to_arrow()) == counts).all()
    return counts


@pytest.mark.parametrize("outside", ["drop", "null", "clamp"])
def test_counts_of_domains(outside, tmp_path):
    declared = {"i": 4, "s": TEXTS, "f": dpf.bins("f", range(5)), "h": [0, 1, None] if outside == "null" else [0, 1]}
    for names in [("i",), ("s", "h"), tuple(declared)]:
        domain = dpf.Domain(
            {name: declared[name] for name in names if outside != "clamp" or name in ("i", "f")} or {"i": 4}, outside
        )
        for data in DATA:
            records = records_of(data).select("i", "s", "f", "h")
            counts = counted(domain, records)
            assert counts.shape == domain.shape
            assert counts.dtype == np.int64
            assert 0 <= counts.sum() <= records.height
            for source in sources(records, tmp_path):
                assert (domain.count(source) == counts).all()
            again = domain.records(np.flatnonzero(counts))
            assert again.columns == list(domain.names)


MECHANISMS = {
    "mwem": lambda *given, **budget: dpf.mwem(*given, rounds=3, **budget),
    "projection": dpf.projection_mechanism,
    "boosting": lambda *given, **budget: dpf.boost_queries(*given, rounds=2, samples=2, **budget),
    "dawa": dpf.dawa,
    "ahp": dpf.ahp,
    "adaptive hierarchy": dpf.adaptive_hierarchy,
    "estimate": dpf.estimate_histogram,
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_estimates_and_their_records(name):
    """From records to records, by each mechanism; a total of about nothing still has the columns of the domain."""
    domain = dpf.Domain({"f": dpf.bins("f", range(5))})
    workload = dpf.workloads.all_range(4)
    schemas = {}
    for data, (budget, amounts) in itertools.product(DATA, {"epsilon": {"epsilon": 1.0}, "rho": {"rho": 0.5}}.items()):
        opened = domain.open(records_of(data))
        estimate = MECHANISMS[name](opened.count(), workload, ledger=a_ledger(budget), **amounts)
        assert estimate.answers.shape == (len(workload),)
        assert np.isfinite(estimate.answers).all()
        assert repr(estimate)
        if name == "boosting":
            continue  # it has answers alone
        assert estimate.histogram.shape == domain.shape
        for n in (0, 7):
            records = domain.records(estimate, n)
            assert records.height == n
            assert schemas.setdefault("records", records.schema) == records.schema
            cells = estimate.to_frame(n)
            assert cells.height == n
            assert schemas.setdefault("cells", cells.schema) == cells.schema
        assert schemas["records"] == domain.records(estimate).schema


def test_the_matrix_mechanism_on_no_records():
    for budget, data in itertools.product(BUDGETS, FEW):
        counts = dpf.Domain({"s": TEXTS}).count(records_of(data))
        given = {"rho": 0.5} if budget == "rho" else BUDGETS[budget]
        released = dpf.matrix_mechanism(counts, CELLS, **given)
        assert released.frame().height == len(CELLS)
        assert np.isfinite(released.answers).all()


def test_private_multiplicative_weights_on_no_records():
    for budget, data in itertools.product({"epsilon": {"epsilon": 1.0}, "rho": {"rho": 0.5}}.items(), FEW):
        counts = dpf.Domain({"s": TEXTS}).count(records_of(data))
        online = dpf.PrivateMultiplicativeWeights(counts, updates=2, ledger=a_ledger(budget[0]), **budget[1])
        assert online.answer_all(CELLS).height == len(CELLS)


VALUES = {
    "null": pl.Series([None] * 3, dtype=pl.Int64),
    "null floats": pl.Series([None] * 3, dtype=pl.Float64),
    "NaN": pl.Series([float("nan")] * 3),
    "one": pl.Series([1]),
    "zero": pl.Series([0, 0, 0]),
}


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("values", VALUES)
def test_tables_of_queries_whose_values_are_missing(values, mechanism):
    series = VALUES[values]
    table = series.alias("x").to_frame()
    amounts = {"delta": 1e-6} if mechanism == "gaussian" else {}
    for given in (table, table.to_arrow()):
        answered = dpf.answer(given, value="x", epsilon=1.0, mechanism=mechanism, ledger=a_ledger("epsilon"), **amounts)
        frame = pl.DataFrame(answered)
        assert frame.height == len(series)
        assert frame.null_count().sum_horizontal().sum() == 0
        ordinary = pl.DataFrame({"x": pl.Series([5, 6, 7], dtype=series.dtype)})
        like = dpf.answer(ordinary, value="x", epsilon=1.0, mechanism=mechanism, ledger=a_ledger("epsilon"), **amounts)
        assert frame.schema == like.schema


def test_charts_of_next_to_nothing(tmp_path):
    """A release of no group, of one, and of a workload over nobody can be drawn, and written."""
    records = records_of("empty").with_columns(c=pl.lit("x"))
    queries = {
        "n": dpf.count(),
        "m": dpf.mean("f", bounds=(0, 1)),
        "q": dpf.quantile("f", 0.5, bounds=(0, 1)),
        "qs": dpf.quantile("f", [0.25, 0.75], bounds=(0, 1)),
        "o": dpf.mode("c", candidates=["x", "y"]),
    }
    for by, delta in (("s", 1e-6), (None, 0.0)):
        release = dpf.release(
            records, by, epsilon=1, delta=delta, ledger=a_ledger("epsilon"), **{"privacy_unit": "row", **queries}
        )
        for query in queries:
            assert release.plot(query=query) is not None
    assert release.plot(tmp_path / "chart.svg", query="o") is not None
    for strategy in ("auto", "adaptive"):
        release = dpf.release(
            records, "s", keys=pl.DataFrame({"s": TEXTS}), workload=CELLS, strategy=strategy,
            privacy_unit="row", epsilon=1.0, ledger=a_ledger("epsilon"),
        )  # fmt: skip
        assert release.plot() is not None
