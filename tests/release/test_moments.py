"""Proportions, variances, standard deviations, covariances and extremes: their values and their intervals."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import dpfast as dpf

from .oracles import ALPHA

UNIT = {"privacy_unit": "u", "max_groups": 9, "max_rows_per_group": 10_000}
ASKED = {
    "p": dpf.proportion("x", above=2),
    "v": dpf.variance("x", bounds=(-10, 20)),
    "s": dpf.std("x", bounds=(-10, 20)),
    "c": dpf.covariance("x", "y", bounds=(-10, 20), other_bounds=(0, 7)),
    "d": dpf.units(),
}
X, Y = pl.col("x").fill_nan(None), pl.col("y")
BOTH = X.is_not_null() & Y.is_not_null()
TRUTH = {
    "p": (X > 2).mean(),
    "v": X.var(),
    "s": X.std(),
    # Polars has no covariance within a group of missing values.
    "c": ((X - X.filter(BOTH).mean()) * (Y - Y.filter(BOTH).mean())).filter(BOTH).sum() / (BOTH.sum() - 1),
}


def rows(groups, size, seed):
    generator = np.random.default_rng(seed)
    count = groups * size
    x = np.round(generator.normal(generator.uniform(-5, 15, groups).repeat(size), 2, count), 3)
    x[generator.random(count) < 0.1] = np.nan
    y = [
        None if missing else value
        for missing, value in zip(generator.random(count) < 0.1, (x > 3) * 5 + 1, strict=True)
    ]
    frame = pl.DataFrame({"k": np.repeat(np.arange(groups), size), "u": np.arange(count), "x": x, "y": y})
    return frame.with_columns(pl.col("x").clip(-10, 20), pl.col("y").cast(pl.Int64))


@pytest.mark.parametrize("unit", [{}, UNIT], ids=["rows", "units"])
def test_values_are_those_of_polars(unit, without_noise, released, seed):
    """But for the rounding of 2**-24 of the bounds' halves in each value, and of their products in each square."""
    data = rows(20, 200, seed)
    frame = released(data, "k", keys=pl.DataFrame({"k": range(20)}), epsilon=1e6, **ASKED, **unit).frame
    truth = data.group_by("k", maintain_order=True).agg(**TRUTH)
    for name in TRUTH:
        assert frame[name].to_list() == pytest.approx(truth[name].to_list(), rel=1e-5, abs=1e-4), name
    assert frame["d"].to_list() == [200] * 20


def test_next_to_no_values(without_noise, released):
    """Groups of no row, of missing values, of one value, of a constant, and of both bounds."""
    data = pl.DataFrame(
        {
            "k": ["none"] * 2 + ["one"] + ["constant"] * 4 + ["ends"] * 2,
            "x": [None, math.nan, 3.0, *[5.0] * 4, -math.inf, 1e9],
            "y": [1, None, 2, 3, 3, 3, None, 0, 7],
        }
    )
    keys = pl.DataFrame({"k": ["empty", "none", "one", "constant", "ends"]})
    asked = {name: query for name, query in ASKED.items() if name != "d"}
    # So much that no proportion is that of all groups together, as it is where the noise leaves nothing.
    told = released(data, "k", keys=keys, epsilon=1e6, **asked).frame
    frame = released(data, "k", keys=keys, **asked).frame
    # Of nothing, a proportion and a spread are what the middle is.
    assert told["p"].to_list()[2:] == [1.0, 1.0, 0.5]
    assert frame["v"].to_list()[3:] == pytest.approx([0.0, 450.0], abs=1e-4)
    assert frame["s"].to_list()[3:] == pytest.approx([0.0, math.sqrt(450)], abs=1e-2)
    assert frame["c"].to_list()[3:] == pytest.approx([0.0, 105.0], abs=1e-4)
    for name in ("v", "s", "c"):
        assert (frame[f"{name}_lower"] <= 0).all()
        assert (frame[f"{name}_upper"] >= 0).all()
        assert frame.select(pl.col(f"^{name}.*$").is_finite().all()).row(0) == (True,) * 4


def test_a_variance_is_never_negative_nor_beyond_what_the_bounds_allow(released, seed):
    data = rows(30, 3, seed)
    frame = released(data, "k", keys=pl.DataFrame({"k": range(40)}), **ASKED, epsilon=0.05).frame
    for column in ("v", "v_lower", "v_upper"):
        assert frame[column].is_between(0, 450).all()
    for column in ("s", "s_lower", "s_upper"):
        assert frame[column].is_between(0, math.sqrt(450) + 1e-9).all()
    for column in ("c", "c_lower", "c_upper"):
        assert frame[column].is_between(-105, 105).all()
    for column in ("p", "p_lower", "p_upper"):
        assert frame[column].is_between(0, 1).all()
    for name in ("p", "v", "s", "c"):
        assert (frame[f"{name}_lower"] <= frame[name]).all()
        assert (frame[f"{name}_upper"] >= frame[name]).all()


GROUPS = 4000


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize(("size", "epsilon"), [(400, 0.5), (20, 1.0), (1, 2.0)])
def test_intervals_hold_the_truth(size, epsilon, mechanism, released):
    """95% of 4,000 groups at least, by a binomial test at 1e-12: from one value in a group to hundreds.

    Each query is one test, of 2 x 3 x 5 in all, so that the false-failure rate of this function is at most 3e-11.
    """
    data = rows(GROUPS, size, None)
    truth = data.group_by("k", maintain_order=True).agg(**TRUTH, n=pl.len(), missing=X.null_count(), pairs=BOTH.sum())
    truth = truth.with_columns(
        v=pl.when(pl.col("n") - pl.col("missing") < 2).then(0.0).otherwise("v"),
        s=pl.when(pl.col("n") - pl.col("missing") < 2).then(0.0).otherwise("s"),
        c=pl.when(pl.col("pairs") < 2).then(0.0).otherwise("c"),
        p=pl.when(pl.col("n") == pl.col("missing")).then(0.5).otherwise("p"),
        d=pl.col("n"),
    )
    asked = {"keys": pl.DataFrame({"k": np.arange(GROUPS)}), "mechanism": mechanism, "delta": 1e-5}
    frame = released(data, "k", **ASKED, epsilon=epsilon * len(ASKED), **asked).frame
    for name in ASKED:
        # The exact figures are of values rounded to 2**-24 of the bounds' halves.
        slack = 1e-4 if name in "vsc" else 0.0
        inside = (frame[f"{name}_lower"] <= truth[name] + slack) & (frame[f"{name}_upper"] >= truth[name] - slack)
        assert binom.cdf(inside.sum(), GROUPS, 0.95) > ALPHA, name


def test_extremes_are_quantiles_and_say_which(released):
    data = pl.DataFrame({"x": np.arange(100_000) / 100_000})
    plan = dpf.plan(
        data,
        low=dpf.minimum("x", bounds=(-5, 5)),
        high=dpf.maximum("x", bounds=(-5, 5), q=0.999),
        privacy_unit="row",
        epsilon=2,
    )
    assert "minimum, as the 0.01-quantile, of x" in plan.explain()
    assert "maximum, as the 0.999-quantile, of x" in plan.explain()
    frame = plan.run(dpf.Ledger(epsilon=2.0)).frame
    assert frame.columns == ["low", "low_ranks", "high", "high_ranks"]
    # A factor e every 4 ranks or so, of 41 bits at most: 1,000 ranks off have a chance below e**-200.
    assert frame["low"].item() == pytest.approx(0.01, abs=0.01)
    assert frame["high"].item() == pytest.approx(0.999, abs=0.01)


def test_units_cost_one_a_group_whatever_their_rows(released):
    data = pl.DataFrame({"u": np.arange(900) % 9, "k": ["a"] * 900})
    unit = {"privacy_unit": "u", "max_groups": 3, "max_rows_per_group": 100}
    plan = dpf.plan(
        data, "k", keys=pl.DataFrame({"k": ["a", "b", "c", "d"]}), n=dpf.count(), d=dpf.units(), epsilon=2, **unit
    )
    assert plan.to_frame()["scale"].to_list() == [300.0, 3.0]
    assert "3 groups x 1 a unit" in plan.explain()
    assert abs(plan.run(dpf.Ledger(epsilon=2)).frame["d"][0] - 9) < 3 * 30
