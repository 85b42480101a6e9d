"""Limits chosen privately: what one unit moves is within what is charged, and every route leads to the same figures."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf
from dpfast.errors import DpfastError, ParameterError
from dpfast.mechanisms.clipping import UnitVectors, choose_norm, clip_to_norm, norms_of, quantile_of
from dpfast.mechanisms.clipping.choosing import Survey
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.releases import clipping

AUTO = {"max_groups": "auto", "max_rows_per_group": "auto"}
KEYS = pl.DataFrame({"k": ["a", "b", "c"]})
QUERIES = {
    "n": dpf.count(),
    "v": dpf.count("x"),
    "s": dpf.sum("x", bounds=(-3, 9)),
    "m": dpf.mean("x", bounds=(-3, 9)),
    "i": dpf.mean("y", bounds=(10, 50)),
}


def rows_of(units, seed=0):
    """Return rows of units that differ very much: how many, where, how large; with null, NaN and infinity."""
    generator = np.random.default_rng(seed)
    found = []
    for unit in units:
        rows = int(generator.integers(0, 4)) if unit % 3 else int(generator.integers(1, 200))
        for _ in range(rows):
            x = [None, math.nan, math.inf, -math.inf, *generator.normal(0, 9, 8).tolist()][generator.integers(0, 12)]
            key = "abcdz"[generator.integers(0, 5)] if unit % 2 else "a"
            found.append({"u": unit, "k": key, "x": x, "y": int(generator.integers(-(2**40), 2**40) % 97)})
    return pl.DataFrame(found, schema={"u": pl.Int64, "k": pl.String, "x": pl.Float64, "y": pl.Int64})


def a_plan(data, **changed):
    budget = {"epsilon": 1.0, "delta": 1e-6} if "rho" not in changed else {}
    return dpf.plan(data, **{"by": "k", "keys": KEYS, "privacy_unit": "u", **AUTO, **budget, **QUERIES, **changed})


def a_ledger(**changed):
    known = {"dataset": "d", "privacy_unit": "column:u", "neighbors": changed.get("neighbors", "add_remove")}
    return dpf.Ledger(epsilon=1e6, delta=1e-3, accountant="zcdp" if "rho" in changed else "basic", **known)


def release_of(data, **changed):
    return a_plan(data, dataset="d", **changed).run(a_ledger(**changed))


@pytest.fixture
def exactly(monkeypatch):
    """Turn the noise off, and return what was drawn from: arrays and deviations, in order."""
    drawn = []

    def add_nothing(self, values, random, threads=1):
        drawn.append((values.copy(), self.scale))
        return values.copy()

    monkeypatch.setattr(IntegerNoise, "add", add_nothing)
    return drawn


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("budget", [{}, {"rho": 0.05}], ids=["epsilon", "rho"])
def test_neighbours_use_no_more_than_the_event(exactly, monkeypatch, neighbors, budget):
    """The squares of all distances over deviations add up to the event's at most, whatever was chosen before.

    What the choices are read from is fixed, as it is in a proof of adaptive composition: they are functions of noisy
    figures, which are taken to be equal for neighbours.
    """
    generator = np.random.default_rng(7)
    used = []
    for trial in range(60):
        middle, upper, norm = (
            generator.uniform(-200, 200),
            2.0 ** generator.uniform(0, 20),
            2.0 ** generator.uniform(0, 9),
        )
        chosen = {0.5: middle, clipping._SHARE: upper}
        monkeypatch.setattr(clipping, "quantile_of", lambda survey, share, chosen=chosen: chosen[share])
        monkeypatch.setattr(clipping, "choose_norm", lambda survey, groups, noise, norm=norm: norm)
        one = rows_of(range(12), trial)
        other = one.filter(pl.col("u") != trial % 12)
        if neighbors == "replace":
            other = pl.concat([other, rows_of([trial % 12], trial + 1000)])
        seen = []
        for data in (one, other):
            exactly.clear()
            release_of(data, neighbors=neighbors, **budget)
            seen.append(list(exactly))
        event = a_plan(one, neighbors=neighbors, **budget)._blueprint.charge.event
        assert len(seen[0]) == len(seen[1]) == 3 + 2 * 1 + 1 + 6
        total = Fraction(0)
        for (values, scale), (changed, same) in zip(*seen, strict=True):
            assert scale == same
            distance = sum(int(difference) ** 2 for difference in values - changed)
            total += Fraction(distance) / Fraction(scale) ** 2
        limit = (Fraction(event.sensitivity) / Fraction(event.scale)) ** 2
        assert total <= limit
        used.append(float(total / limit))
    # The test sees what is used: some neighbours use nearly all of it.
    assert max(used) > 0.9


coordinate = st.floats(-(2.0**62), 2.0**62) | st.integers(-9, 9).map(float) | st.floats(-1, 1)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(coordinate, coordinate, coordinate), min_size=1, max_size=6), st.floats(1, 2.0**40))
def test_what_is_left_of_a_unit_is_no_longer_than_the_norm(figures, norm):
    step = 2.0 ** math.floor(math.log2(norm / 2**30))
    columns = [np.array(column, np.float64) for column in zip(*figures, strict=True)]
    groups = np.arange(len(figures), dtype=np.int32)
    vectors = UnitVectors(np.zeros(len(figures), np.int64), groups, columns, 1)
    left = clip_to_norm(vectors, norms_of(vectors), norm, [step] * 3, len(figures))
    length = sum(int(number) ** 2 for column in left for number in column)
    assert length <= (Fraction(norm) / Fraction(step)) ** 2
    before = sum(Fraction(number) ** 2 for column in columns for number in column.tolist())
    if before <= (Fraction(norm) * (1 - Fraction(1, 2**19))) ** 2:
        for column, kept in zip(columns, left, strict=True):
            assert kept.tolist() == np.trunc(column / step).tolist()
    elif before:
        # Cut towards 0: less than a step is lost of each coordinate.
        lost = 2 * math.sqrt(3 * len(figures)) * step
        assert math.sqrt(length) * step >= norm * (1 - 2.0**-18) - lost


def test_units_add_up_and_no_other_unit_matters():
    generator = np.random.default_rng(1)
    units, groups = generator.integers(0, 50, 400), generator.integers(0, 7, 400).astype(np.int32)
    pairs = pl.DataFrame({"unit": units, "group": groups}).unique(maintain_order=True)
    units, groups = pairs["unit"].to_numpy(), pairs["group"].to_numpy()
    columns = [generator.normal(0, 30, units.size) for _ in range(2)]
    vectors = UnitVectors(units, groups, columns, 50)
    together = clip_to_norm(vectors, norms_of(vectors), 20.0, [2.0**-10] * 2, 7)
    apart = [np.zeros(7, np.int64) for _ in range(2)]
    for unit in range(50):
        mask = units == unit
        alone = UnitVectors(np.zeros(mask.sum(), np.int64), groups[mask], [one[mask] for one in columns], 1)
        for total, part in zip(apart, clip_to_norm(alone, norms_of(alone), 20.0, [2.0**-10] * 2, 7), strict=True):
            total += part
    for one, other in zip(together, apart, strict=True):
        np.testing.assert_array_equal(one, other)


def survey(counts, deviation=1.0, edges=None):
    edges = np.sqrt(2.0) ** np.arange(len(counts) + 1) if edges is None else edges
    return Survey(edges, np.array(counts, np.float64), deviation)


class TestChoices:
    def test_the_middle_and_the_upper_end(self):
        found = survey([0, 10, 20, 10, 0], 0.1, np.arange(6.0))
        assert [quantile_of(found, share) for share in (0.5, 0.75, 1.0)] == [2.5, 3.0, 4.0]

    def test_noise_tells_of_nothing(self):
        for counts in ([0] * 9, [-3, 2, -1, 0, 1, 2, -2, 0, 1]):
            found = survey(counts)
            assert quantile_of(found, 0.5) is None
            assert not found.above().any()

    def test_empty_cells_above_stay_out(self):
        """A cell of 3 deviations far above the last that tells would say that there are units of huge norms."""
        counts = [0.0, 500.0, 300.0, 2.0] + [-1.0, 1.0] * 30 + [3.0]
        above = survey(counts).above()
        assert above[:5].tolist() == [802.0, 802.0, 302.0, 2.0, 0.0]
        assert choose_norm(survey(counts), 10, 5.0) < 4

    def test_many_units_side_by_side_tell(self):
        assert survey([3.0] * 8).above()[0] == pytest.approx(24)

    @pytest.mark.parametrize("groups", [0, 1, 300])
    def test_the_norm_falls_with_the_noise(self, groups):
        counts = [0, 0, 900, 800, 500, 200, 90, 40, 10, 0, 0]
        norms = [choose_norm(survey(counts), groups, noise) for noise in (1e-6, 0.1, 10, 1e3, 1e6)]
        assert norms == sorted(norms, reverse=True)
        assert norms[0] > 20
        assert norms[-1] == 1


def test_figures_are_those_of_polars_where_nothing_is_cut(exactly, monkeypatch):
    monkeypatch.setattr(clipping, "choose_norm", lambda *given: 2.0**10)
    data = rows_of(range(200), 3)
    # So that means are not those of all groups together, which they are where noise leaves nothing.
    frame = release_of(data, epsilon=1e5).frame
    kept = data.with_columns(x=pl.col("x").fill_nan(None).clip(-3, 9), y=pl.col("y").clip(10, 50))
    expected = KEYS.join(
        kept.group_by("k").agg(
            n=pl.len(), v=pl.col("x").count(), s=pl.col("x").sum(), m=pl.col("x").mean(), i=pl.col("y").mean()
        ),
        on="k", how="left", maintain_order="left",
    )  # fmt: skip
    assert frame["n"].to_list() == expected["n"].to_list()
    assert frame["v"].to_list() == expected["v"].to_list()
    for name in "smi":
        np.testing.assert_allclose(frame[name], expected[name], rtol=1e-4, atol=1e-3)
    assert frame.schema == a_plan(data)._blueprint.schema()


def test_every_source_gives_the_same(exactly, tmp_path):
    data = rows_of(range(100), 4)
    first = release_of(data).frame
    data.write_parquet(tmp_path / "d.parquet")
    data.write_csv(tmp_path / "d.csv")
    schema = dict(data.schema)
    sources = [data.lazy(), data.to_arrow(), tmp_path / "d.parquet", data.sample(fraction=1, shuffle=True, seed=1)]
    for source in sources:
        assert release_of(source).frame.equals(first)
    assert release_of(tmp_path / "d.csv", schema=schema).frame.equals(first)


@pytest.mark.parametrize("changed", [{}, {"neighbors": "replace"}, {"rho": 0.1}, {"by": None, "keys": None}], ids=str)
@pytest.mark.parametrize("rows", [0, 1, 300])
def test_next_to_no_data_looks_like_much(changed, rows):
    frame = release_of(rows_of(range(60), 5).head(rows), **changed).frame
    assert frame.schema == a_plan(rows_of(range(3)), **changed)._blueprint.schema()
    assert frame.height == (1 if "by" in changed else 3)
    assert not any(frame.null_count().row(0))
    for name in "mi":
        assert (frame[f"{name}_lower"] <= frame[name]).all()
        assert (frame[name] <= frame[f"{name}_upper"]).all()


def test_no_unit():
    assert release_of(rows_of(range(9)).with_columns(u=pl.lit(None, pl.Int64))).frame.height == 3


@pytest.mark.parametrize("unit", [pl.String, pl.Categorical, pl.UInt8, pl.Boolean, pl.Date], ids=str)
def test_units_of_all_dtypes(exactly, unit):
    data = rows_of(range(100), 6)
    if unit == pl.Boolean:
        named = pl.col("u") % 2 == 0
    elif unit == pl.Categorical:
        named = pl.col("u").cast(pl.String).cast(pl.Categorical)
    else:
        named = pl.col("u").cast(pl.Int32).cast(unit)
    same = data.with_columns(u=pl.col("u") % 2) if unit == pl.Boolean else data
    assert release_of(data.with_columns(u=named)).frame.equals(release_of(same).frame)


@pytest.mark.statistical
def test_errors_are_those_that_are_said():
    """Of 120 intervals in 40 releases each misses with probability .05: 25 misses or more have probability 1.2e-9."""
    generator = np.random.default_rng(2)
    data = pl.DataFrame({"u": np.repeat(np.arange(3000), 3), "k": generator.choice(["a", "b", "c"], 9000),
                         "x": generator.normal(2, 1, 9000)})  # fmt: skip
    exact = KEYS.join(data.group_by("k").agg(pl.len().alias("exact")), on="k", maintain_order="left")["exact"]
    missed = 0
    for _ in range(40):
        frame = (
            dpf.plan(data, "k", keys=KEYS, privacy_unit="u", epsilon=8.0, delta=1e-6, n=dpf.count(), **AUTO)
            .run(dpf.Ledger(epsilon=9.0, delta=1e-3))
            .frame
        )
        # All units have three rows, so that a norm of 3 cuts nobody, and what is chosen lies near it.
        missed += int(((frame["n_lower"] > exact) | (frame["n_upper"] < 0.9 * exact)).sum())
    assert missed < 25


@pytest.mark.parametrize(("changed", "words"), [
    ({"max_groups": "many"}, 'or "auto", or None, but was'),
    ({"privacy_unit": None}, "max_groups must be left out where each row is a unit"),
    ({"key_selection": "count"}, "key_selection must be"),
], ids=str)  # fmt: skip
def test_what_does_not_fit_is_refused(changed, words):
    with pytest.raises(ParameterError, match=words):
        a_plan(rows_of(range(9)), **changed)


def test_an_engine_is_refused():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.connect().sql("SELECT 1 AS u, 'a' AS k, 1.0::DOUBLE AS x, 1::BIGINT AS y")
    with pytest.raises(DpfastError, match="engine must be"):
        a_plan(relation, engine="sql")
    assert release_of(relation, engine="rows").frame.height == 3


def test_what_is_said():
    plan = a_plan(rows_of(range(9)), split={"n": 3, "v": 1, "s": 1, "m": 1, "i": 1})
    said = plan.explain()
    assert said.startswith("One privacy unit is all rows with one value of u, none of them dropped; ")
    assert "a norm that is chosen privately" in said
    assert plan.epsilon == 1.0
    assert plan.to_frame()["scale"].null_count() == plan.to_frame().height
    assert plan.error()["one"].null_count() == plan.error().height
    release = plan.run(dpf.Ledger(epsilon=1.0, delta=1e-6))
    assert "clipped to" in release.explain()
    assert release.spent.epsilon == 1.0


@pytest.mark.parametrize("norm", [2.0**-30, 1.0, 2.0**39, 2.0**60])
def test_any_norm_ends_in_a_release(monkeypatch, norm):
    """What is chosen may be wrong by any amount, but after the charge there is no error: intervals saturate."""
    monkeypatch.setattr(clipping, "choose_norm", lambda survey, groups, noise: norm)
    frame = release_of(rows_of(range(60), 5).head(300)).frame
    assert frame.height == 3
    assert (frame["n_lower"] <= frame["n_upper"]).all()


def test_noise_alone_is_rarely_taken_for_long_vectors():
    """The first edge times the chance to be taken for it, and so for every edge, is small: the seed is fixed."""
    generator = np.random.default_rng(3)
    edges = np.sqrt(2.0) ** np.arange(81)
    surveys = 20_000
    chosen = [choose_norm(Survey(edges, generator.normal(0, 30, 80), 30.0), 3, 5.0) for _ in range(surveys)]
    for norm in (2.0, 16.0, 256.0, 2.0**20):
        assert sum(one >= norm for one in chosen) / surveys < 0.02 / norm + 1e-4
