"""The barrier to Polars: engines may run a plan as often as they like; charge and noise happen once (polars.md)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation.exact import Aggregation
from dpfast.mechanisms.noise.integer_noise import IntegerNoise

ENGINES = ["in-memory", "streaming"]
OPTIMISATIONS = {"default": pl.QueryOptFlags(), "none": pl.QueryOptFlags.none()}
HEIGHT = 5000


@pytest.fixture(scope="module")
def ran():
    """Return a release of 5000 groups, its ledger, and how often data was read and noise drawn."""
    calls = []
    run, add = Aggregation.run, IntegerNoise.add

    def spied_run(self, words):
        if self is plan._blueprint.aggregation:
            calls.append("read")
        return run(self, words)

    def spied_add(self, values, *given, **named):
        if values.size == HEIGHT:
            calls.append("draw")
        return add(self, values, *given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Aggregation, "run", spied_run)
        patch.setattr(IntegerNoise, "add", spied_add)
        data = pl.LazyFrame({"k": np.arange(3 * HEIGHT) % HEIGHT, "x": np.ones(3 * HEIGHT)})
        keys = pl.DataFrame({"k": np.arange(HEIGHT)})
        ledger = dpf.Ledger(epsilon=1)
        plan = dpf.plan(
            data, "k", keys=keys, n=dpf.count(), s=dpf.sum("x", bounds=(0, 1)), privacy_unit="row", epsilon=0.1
        )
        release = plan.run(ledger)
        assert calls == ["read", "draw", "draw"]
        yield release, plan, ledger
        # After every test of this module: nothing was read, drawn or charged again.
        assert calls == ["read", "draw", "draw"]
        assert ledger.spent.epsilon == 0.1
        assert ledger.history().height == 2


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


@pytest.fixture(params=OPTIMISATIONS)
def collect(request, engine):
    def run(lazy):
        return lazy.collect(engine=engine, optimizations=OPTIMISATIONS[request.param])

    return run


def test_repeated_collects_are_the_same(ran, collect):
    release, plan, ledger = ran
    for _ in range(5):
        assert collect(release.lazy()).sort("k").equals(release.frame.sort("k"))
        assert plan.run(ledger) is release


def test_one_lazy_frame_collected_twice(ran, collect):
    lazy = ran[0].lazy()
    assert collect(lazy).sort("k").equals(collect(lazy).sort("k"))


def test_concatenated_with_itself(ran, collect):
    release = ran[0]
    both = collect(pl.concat([release.lazy(), release.lazy()]))
    assert both.height == 2 * HEIGHT
    assert both.group_by("k").agg(pl.col("n", "s").n_unique()).select(pl.col("n", "s").max()).row(0) == (1, 1)


def test_joined_with_itself(ran, collect):
    release = ran[0]
    joined = collect(release.lazy().join(release.lazy(), on="k", suffix="_again"))
    assert joined.height == HEIGHT
    assert (joined["n"] == joined["n_again"]).all()
    assert (joined["s"] == joined["s_again"]).all()


def test_joined_back_on_rows(ran, collect):
    """20 rows a group: with noise inside the plan each could bear a value of its own, and their mean the truth."""
    release = ran[0]
    rows = pl.LazyFrame({"k": np.arange(20 * HEIGHT) % HEIGHT})
    joined = collect(rows.join(release.lazy(), on="k").with_columns(m=pl.col("n").mean().over("k")))
    assert joined.height == 20 * HEIGHT
    assert joined.group_by("k").agg(pl.col("n", "s").n_unique()).select(pl.col("n", "s").max()).row(0) == (1, 1)
    assert (joined["m"] == joined["n"]).all()


def test_one_column_used_in_many_expressions(ran, collect):
    magnitude = pl.when(pl.col("s") > 0).then(pl.col("s")).otherwise(-pl.col("s"))
    frame = collect(ran[0].lazy().with_columns(magnitude.alias("a"), (pl.col("s") - pl.col("s")).alias("zero")))
    assert frame["a"].min() >= 0
    assert (frame["zero"] == 0).all()
    assert (frame["a"] == frame["s"].abs()).all()


def test_written_twice(ran, engine, tmp_path):
    release = ran[0]
    for place in range(2):
        release.lazy().sink_parquet(tmp_path / f"{place}.parquet", engine=engine)
    first, second = (pl.read_parquet(tmp_path / f"{place}.parquet") for place in range(2))
    assert first.sort("k").equals(second.sort("k"))
    assert first.sort("k").equals(release.frame.sort("k"))


def test_eight_concurrent_collects(ran, engine):
    lazy = ran[0].lazy()
    with ThreadPoolExecutor(8) as pool:
        frames = list(pool.map(lambda _: lazy.collect(engine=engine).sort("k"), range(8)))
    assert all(frame.equals(ran[0].frame.sort("k")) for frame in frames)


def test_parts_of_a_release_are_parts_of_it(ran, collect):
    release, frame = ran[0], ran[0].frame
    assert collect(release.lazy().filter(pl.col("k") % 7 == 0)).sort("k").equals(frame.filter(pl.col("k") % 7 == 0))
    assert collect(release.lazy().sort("k").head(11)).equals(frame.head(11))
    assert collect(release.lazy().select("s", "k")).sort("k").equals(frame.select("s", "k"))
    assert collect(release.lazy().select(pl.len())).item() == HEIGHT
    assert collect(release.lazy().select(pl.col("n").sum())).item() == frame["n"].sum()


def test_collect_all(ran, engine):
    lazy = ran[0].lazy()
    first, second = pl.collect_all([lazy, lazy.select("k", "n")], engine=engine)
    assert first.select("k", "n").sort("k").equals(second.sort("k"))


def test_what_is_done_to_a_frame_does_not_change_the_release():
    """A release can be read as often as anyone likes: Polars' in-place methods do not reach what is remembered."""
    plan = dpf.plan(
        pl.DataFrame({"k": ["a"]}),
        "k",
        keys=pl.DataFrame({"k": ["a", "b"]}),
        n=dpf.count(),
        privacy_unit="row",
        epsilon=0.1,
    )
    ledger = dpf.Ledger(epsilon=1)
    release = plan.run(ledger)
    before = release.frame.clone()
    release.frame.drop_in_place("n_scale")
    release.frame[0, "n"] = 123456
    release.frame.extend(release.frame)
    release.lazy().collect().drop_in_place("k")
    for after in (release.frame, release.lazy().collect(), plan.run(ledger).frame):
        assert after.equals(before)


def test_explaining_and_schemas_charge_and_read_nothing():
    ledger = dpf.Ledger(epsilon=1)
    read = []
    source = pl.LazyFrame({"k": ["a"]}).map_batches(lambda frame: read.append(1) or frame, schema={"k": pl.String})
    plan = dpf.plan(source, "k", keys=pl.DataFrame({"k": ["a"]}), n=dpf.count(), privacy_unit="row", epsilon=0.1)
    for _ in range(3):
        plan.explain()
    assert not read
    assert ledger.spent.epsilon == 0
    release = plan.run(ledger)
    lazy = release.lazy()
    for _ in range(3):
        lazy.explain()
        lazy.explain(engine="streaming")
        lazy.collect_schema()
        release.explain()
        repr(release)
    assert len(read) == 1
    assert ledger.spent.epsilon == 0.1


@pytest.mark.parametrize("query", [dpf.count(), dpf.sum("x", bounds=(0, 1)), dpf.mean("x", bounds=(0, 1))])
def test_queries_are_no_expressions(query):
    """They cannot be evaluated within somebody's plan, and so not evaluated twice."""
    assert not isinstance(query, pl.Expr)
    for name in ("over", "alias", "filter", "map_batches", "collect", "__array__", "__arrow_c_stream__"):
        assert not hasattr(query, name)
    for attempt in (
        lambda: query + 1,
        lambda: 2 * query,
        lambda: query - query,
        lambda: -query,
        lambda: query > 0,
        lambda: pl.col("x") + query,
    ):
        with pytest.raises(TypeError):
            attempt()
    frame = pl.DataFrame({"x": [1.0, 2.0]})
    for use in (
        lambda: frame.select(query),
        lambda: frame.with_columns(n=query),
        lambda: frame.lazy().group_by("x").agg(query).collect(),
        lambda: pl.when(query).then(1),
    ):
        with pytest.raises((TypeError, ValueError, pl.exceptions.PolarsError)):
            use()


def test_the_plan_that_polars_runs_holds_no_python(monkeypatch, tmp_path):
    """Aggregation is native and exact: no Python function is in what the engine is given."""
    explained = []
    collect = pl.LazyFrame.collect

    def spied(self, *arguments, **named):
        explained.append(self.explain())
        return collect(self, *arguments, **named)

    monkeypatch.setattr(pl.LazyFrame, "collect", spied)
    path = tmp_path / "data.parquet"
    pl.DataFrame({"k": ["a", "b"] * 100, "u": range(200), "x": [1.0] * 200}).write_parquet(path)
    unit = {"privacy_unit": "u", "max_groups": 1, "max_rows_per_group": 1}
    for arguments in ({}, unit):
        queries = {"n": dpf.count(), "s": dpf.sum("x", bounds=(0, 1)), "m": dpf.mean("x", bounds=(0, 1))}
        dpf.release(
            path,
            "k",
            ledger=dpf.Ledger(1, 1e-5),
            epsilon=0.1,
            delta=1e-6,
            **{"privacy_unit": "row", **queries, **arguments},
        )
    assert explained
    assert not any("python" in text.lower() or "udf" in text.lower() for text in explained)
