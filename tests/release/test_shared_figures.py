"""Answers of one plan agree with each other, and what is made of two noisy numbers has intervals that hold."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom, norm

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.mechanisms.noise.half_widths import half_width
from dpfast.releases.planned_queries import Combined

from .oracles import ALPHA

GROUPS = 20_000
KEYS = pl.DataFrame({"k": range(GROUPS)})
QUERIES = {
    "n": dpf.count(),
    "c": dpf.count("a"),
    "m": dpf.mean("a", bounds=(0, 10)),
    "w": dpf.mean("a", bounds=(-50, 50)),
    "s": dpf.sum("a", bounds=(0, 10)),
    "b": dpf.mean("b", bounds=(-1, 1)),
}


@pytest.fixture(scope="module")
def frame():
    """Return 0 to 7 rows a group, every third of them without a value of a, none with one of b."""
    generator = np.random.default_rng(14)
    keys = np.repeat(np.arange(GROUPS), np.arange(GROUPS) % 8)
    a = np.where(generator.random(keys.size) < 1 / 3, np.nan, generator.uniform(0, 10, keys.size))
    return pl.DataFrame(
        {"k": keys, "u": np.arange(keys.size), "a": a, "b": pl.Series([None] * keys.size, dtype=pl.Float64)}
    )


def released(data, epsilon=1.0, keys=KEYS, queries=QUERIES, by="k", **arguments):
    plan = dpf.plan(
        data, by, keys=keys, epsilon=epsilon, dataset="d", **{"privacy_unit": "row", **arguments, **queries}
    )
    return plan, plan.run(dpf.Ledger(epsilon=epsilon, delta=1e-2)).frame


WAYS = {
    "laplace": {"mechanism": "laplace"},
    "gaussian": {"mechanism": "gaussian", "delta": 1e-6},
    "optimal": {"mechanism": "laplace", "split": "optimal"},
    "optimal gaussian": {"mechanism": "gaussian", "delta": 1e-6, "split": "optimal"},
}


@pytest.mark.parametrize("way", WAYS)
def test_answers_of_one_plan_agree(way, frame):
    """The count of values is that which the means are divided by; equal figures are equal numbers."""
    queries = {**QUERIES, "again": dpf.count("a"), "rows": dpf.count(), "t": dpf.sum("a", bounds=(0, 10))}
    plan, found = released(frame, queries=queries, **WAYS[way])
    for one, other in (("n", "rows"), ("c", "again"), ("s", "t")):
        assert found[one].equals(found[other])
    parts = {planned.name: planned.parts for planned in plan._blueprint.queries}
    for name in ("m", "w"):
        summed, counted = parts[name]
        assert counted == parts["c"][0]
        divided = summed.scale * summed.step / found[f"{name}_scale"]
        assert divided.to_numpy() == pytest.approx(found["c"].clip(1).to_numpy(), rel=1e-12)
    # One of the numbers of rows, of values and of missing values is made of the others.
    combined = [part for one in ("n", "c") for part in parts[one] if isinstance(part, Combined)]
    assert [(part.measure.kind, part.sign) for part in combined] in ([("values", -1)], [("rows", 1)])
    noisy = next(part for part in plan._blueprint.parts if part.measure.kind == "missing")
    # But for a part of 1e-10 of runs.
    missing = (found["n"] - found["c"]).to_numpy()
    truth = (
        frame.group_by("k").agg(pl.col("a").is_nan().sum().alias("x")).join(KEYS, on="k", how="right")["x"].fill_null(0)
    )
    bound = half_width(noisy.mechanism, noisy.scale, 1e-10 / GROUPS)
    assert np.abs(missing - truth.to_numpy()).max() <= bound


@pytest.mark.statistical
@pytest.mark.parametrize("way", WAYS)
def test_intervals_of_combined_numbers_hold_the_truth(way, frame):
    """95% of 20,000 groups at least, by a binomial test that fails wrongly once in 1e12; Gaussian noise no more often
    than its law says, within the half row by which each of two is rounded: 1e-12 as well.
    """
    plan, found = released(frame, epsilon=0.2, **WAYS[way])
    rows = frame.group_by("k").agg(n=pl.len(), c=pl.col("a").is_not_nan().sum()).join(KEYS, on="k", how="right")
    rows = rows.sort("k").fill_null(0)
    for planned in plan._blueprint.queries[:2]:
        (part,) = planned.parts
        truth = rows[planned.name]
        inside = (found[f"{planned.name}_lower"] <= truth) & (found[f"{planned.name}_upper"] >= truth)
        assert binom.cdf(int(inside.sum()), GROUPS, 0.95) > ALPHA
        assert (found[f"{planned.name}_upper"] - found[planned.name]).unique().to_list() == [part.steps(0.05)]
        if part.mechanism == "gaussian" and isinstance(part, Combined):
            widest = 1 - 2 * norm.sf((part.steps(0.05) + 1) / part.deviation)
            assert binom.sf(int(inside.sum()) - 1, GROUPS, widest) > ALPHA


@pytest.mark.statistical
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 3.0, 30.0])
def test_means_of_few_values(way, epsilon, frame):
    """A value lies in its interval, that within the bounds; intervals hold 95% of the means that there are: a binomial
    test fails wrongly once in 1e12.
    """
    plan, found = released(frame, epsilon=epsilon, **WAYS[way])
    for planned in plan._blueprint.queries:
        if planned.query.kind != "mean":
            continue
        name, (low, high) = planned.name, planned.query.bounds
        value, lower, upper = (found[f"{name}{suffix}"].to_numpy() for suffix in ("", "_lower", "_upper"))
        assert ((low <= lower) & (lower <= value) & (value <= upper) & (upper <= high)).all()
        if name == "b":
            continue
        summed, counted = planned.parts
        truth = (
            frame.filter(pl.col("a").is_not_nan())
            .group_by("k")
            .agg(pl.mean("a"))
            .join(KEYS, on="k", how="right")
            .sort("k")
        )["a"].to_numpy()
        there = ~np.isnan(truth)
        inside = ((lower <= truth + 1e-5) & (truth - 1e-5 <= upper))[there].sum()
        assert binom.cdf(int(inside), int(there.sum()), 0.95) > ALPHA
        # Where two standard deviations of the noise reach half the width, all groups show the same mean.
        rows = found["c"].clip(1).to_numpy()
        drowned = 2 * summed.deviation * summed.step / rows >= (high - low) / 2
        together = {float(x) for x in value[drowned & (lower < value) & (value < upper)]}
        assert len(together) <= 1
        if epsilon == 0.3 and name == "m":
            assert drowned.mean() > 0.9
            # Its noise is that of all groups, by the root of their number: ten standard deviations.
            assert together
            noise = np.hypot(summed.deviation * summed.step, 5 * counted.deviation) * GROUPS**0.5
            assert abs(next(iter(together)) - 5) < 10 * noise / frame["a"].is_not_nan().sum()


def test_one_group_is_its_own_together():
    data = pl.DataFrame({"a": [4.0, None, 5.0], "b": [None, None, None]}, schema={"a": pl.Float64, "b": pl.Float64})
    for way in WAYS.values():
        _, found = released(data, keys=None, by=None, **way)
        assert found.height == 1
        assert found.null_count().sum_horizontal().item() == 0
        assert 0 <= found["m"].item() <= 10


@pytest.mark.parametrize("way", WAYS)
def test_empty_frames_and_columns_of_nulls_have_the_same_schema(way, frame):
    full = released(frame, **WAYS[way])[1]
    nulls = frame.with_columns(pl.lit(None, dtype=pl.Float64).alias("a"))
    for data in (frame.clear(), nulls, frame.clear().lazy(), frame.head(1)):
        found = released(data, **WAYS[way])[1]
        assert found.schema == full.schema
        assert found.height == GROUPS
        assert found.null_count().sum_horizontal().item() == 0
        for name in ("m", "w", "b"):
            assert found[f"{name}_scale"].is_finite().all()


@pytest.mark.parametrize("way", WAYS)
def test_noise_that_fills_int64_saturates(way):
    """Two numbers near its ends neither wrap nor leave their interval."""
    data = pl.DataFrame({"k": [0], "u": [0], "a": [1]})
    keys = pl.DataFrame({"k": range(2000)})
    queries = {"n": dpf.count(), "c": dpf.count("a"), "s": dpf.sum("a", bounds=(0, 1))}
    unit = {"privacy_unit": "u", "max_groups": 1, "max_rows_per_group": 2**40}
    plan = None
    for power in range(-72, -20):
        # The least that is not refused: noise beyond int64 is.
        epsilon = 2.0 ** (power / 2)
        with suppress(ParameterError):
            plan = dpf.plan(data, "k", keys=keys, epsilon=epsilon, dataset="d", **unit, **WAYS[way], **queries)
            break
    assert plan is not None
    assert max(part.scale for part in plan._blueprint.parts) > 2.0**56
    found = plan.run(dpf.Ledger(epsilon=10, delta=1e-2)).frame
    assert any(isinstance(part, Combined) for planned in plan._blueprint.queries for part in planned.parts)
    for name in ("n", "c"):
        value, lower, upper = (found[f"{name}{suffix}"].to_numpy() for suffix in ("", "_lower", "_upper"))
        assert (lower <= value).all()
        assert (value <= upper).all()
        # As many on either side, but for a part of 1e-12 of runs: nothing has come around.
        assert 830 < (value < 0).sum() < 1170
    total = found["n"].cast(pl.Float64) - found["c"].cast(pl.Float64)
    assert total.abs().max() < 2.0**63
