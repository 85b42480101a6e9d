"""Marginals by residuals: what they cost, their errors, and that no other Gaussian noise does better."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

import dpfast as dpf
from benchmarks.census import SIZES as CENSUS
from dpfast.accounting.accountants import basic
from dpfast.accounting.budget import Budget
from dpfast.errors import BudgetExceededError, ParameterError
from dpfast.strategies.marginal_spaces import parts_of
from dpfast.synthesis.residuals.measuring import marginal_of, measure_residuals
from dpfast.synthesis.residuals.planning import plan_residuals, squared_change
from dpfast.testing import SeededRandom

RHO = 0.125
SHAPES = [
    ((2, 3, 4), [(0, 1), (1, 2), (0, 2)]),
    ((3, 2), [(0,), (1,), (0, 1)]),
    ((2, 2, 3, 2), [(0, 1, 2), (3,)]),
    ((1, 4, 2), [(0, 1), (1, 2)]),
    ((5,), [(0,)]),
]


def planned(sizes, asked, weights=None, neighbors="add_remove", budget=None):
    budget = budget or Budget("rho", int(RHO * 10**18))
    return plan_residuals(sizes, asked, weights or [1.0] * len(asked), budget, neighbors)


def scales_of(plan):
    return {space: noise.scale for space, noise in plan.noises.items() if noise}


def product(parts):
    matrix = np.ones((1, 1))
    for part in parts:
        matrix = np.kron(matrix, part)
    return matrix


def measured(sizes, space):
    """Return what is measured of a histogram's cells, a row for each number."""
    return product(n * np.eye(n) - 1.0 if a in space else np.ones((1, n)) for a, n in enumerate(sizes))


def marginal(sizes, held):
    return product(np.eye(n) if a in held else np.ones((1, n)) for a, n in enumerate(sizes))


@pytest.mark.parametrize(("sizes", "asked"), SHAPES)
def test_the_cost_is_what_is_claimed_and_it_is_reached(sizes, asked):
    """All neighbours of a small domain: each cell's column over the noise, half its squares added up."""
    plan = planned(sizes, asked)
    rows = np.concatenate([measured(sizes, space) / scale for space, scale in scales_of(plan).items()])
    costs = np.square(rows).sum(axis=0) / 2
    assert costs.max() <= RHO * (1 + 1e-12)
    assert costs.min() >= RHO * (1 - 1e-9)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize(("sizes", "asked"), SHAPES)
def test_laplace_noise_costs_what_is_claimed(sizes, asked, neighbors):
    plan = planned(sizes, asked, neighbors=neighbors, budget=Budget("epsilon", 10**18))
    rows = np.concatenate([measured(sizes, space) / scale for space, scale in scales_of(plan).items()])
    costs = np.abs(rows).sum(axis=0)
    if neighbors == "replace":
        pairs = itertools.permutations(range(rows.shape[1]), 2)
        costs = np.array([np.abs(rows[:, one] - rows[:, other]).sum() for one, other in pairs])
    assert costs.max() <= 1 + 1e-12
    assert costs.max() > (0.999 if neighbors == "add_remove" else 0.4)
    assert 0.999 * 10**18 < basic.cost(plan.events)[0] <= 10**18


@pytest.mark.parametrize(("sizes", "asked"), SHAPES)
def test_no_other_laplace_noise_has_a_smaller_sum_of_variances(sizes, asked):
    """Scales near the planned ones at the same cost: none is better by more than what rounding says."""
    generator = np.random.default_rng(7)
    plan = planned(sizes, asked, budget=Budget("epsilon", 10**15))
    spaces, scales = zip(*scales_of(plan).items(), strict=True)
    costs = np.array([np.abs(measured(sizes, space)).sum(axis=0).max() for space in spaces])

    def error(own):
        noises = {space: SimpleNamespace(deviation=math.sqrt(2) * b) for space, b in zip(spaces, own, strict=True)}
        other = replace(plan, noises=noises)
        return sum(math.prod(sizes[a] for a in held) * other.variance(held) for held in asked)

    for _ in range(50):
        own = np.array(scales) * generator.uniform(0.8, 1.2, len(scales))
        own *= (costs / own).sum() / (costs / np.array(scales)).sum()
        assert error(own) >= error(scales) * (1 - 1e-6)


@pytest.mark.parametrize(("sizes", "asked"), SHAPES)
def test_a_replaced_row_costs_no_more(sizes, asked):
    plan = planned(sizes, asked, neighbors="replace")
    assert plan.noises[()] is None
    parts = [measured(sizes, space) / scale for space, scale in scales_of(plan).items()]
    rows = np.concatenate(parts)
    pairs = itertools.permutations(range(rows.shape[1]), 2)
    costs = [np.square(rows[:, one] - rows[:, other]).sum() / 2 for one, other in pairs]
    assert RHO / 2 < max(costs) <= RHO * (1 + 1e-12)
    for space in scales_of(plan):
        own = measured(sizes, space)
        far = max(
            np.square(own[:, one] - own[:, other]).sum()
            for one, other in itertools.combinations(range(own.shape[1]), 2)
        )
        assert far == pytest.approx(float(squared_change(plan.contrasts, space, "replace")))


@pytest.mark.parametrize(("sizes", "asked"), SHAPES)
def test_estimates_and_variances_are_those_of_weighted_least_squares(sizes, asked):
    """Golden: the least-squares solution of all measurements by pseudo-inverse, and its covariance."""
    generator = np.random.default_rng(len(sizes))
    plan = planned(sizes, asked)
    histogram = generator.integers(0, 50, sizes)
    exact = {held: (marginal(sizes, held) @ histogram.reshape(-1)).astype(np.int64) for held in asked}
    noisy = []

    class Noise:
        def __init__(self, scale):
            self.scale = scale

        def add(self, values, _):
            noisy.append(values + np.rint(generator.normal(0, self.scale, values.size)).astype(np.int64))
            return noisy[-1]

    fake = replace(plan, noises={space: Noise(scale) for space, scale in scales_of(plan).items()})
    residuals = measure_residuals(fake, exact, SeededRandom(1))
    rows = np.concatenate([measured(sizes, space) / scale for space, scale in scales_of(plan).items()])
    values = np.concatenate([y / scale for y, scale in zip(noisy, scales_of(plan).values(), strict=True)])
    fitted = np.linalg.pinv(rows) @ values
    covariance = np.linalg.pinv(rows.T @ rows)
    for held in parts_of(asked):
        query = marginal(sizes, held)
        np.testing.assert_allclose(marginal_of(plan, residuals, held).reshape(-1), query @ fitted, atol=1e-8)
        variances = np.diag(query @ covariance @ query.T)
        # What rounding to whole numbers adds is below a twelfth.
        np.testing.assert_allclose(variances, plan.variance(held), atol=0.2)
        assert plan.variance(held) >= variances.max()


@pytest.mark.parametrize("trial", range(6))
@pytest.mark.parametrize(("sizes", "asked"), SHAPES)
def test_no_other_noise_has_a_smaller_sum_of_variances(sizes, asked, trial):
    """The program in the logarithms of the variances, which is convex, solved by scipy from several starts."""
    generator = np.random.default_rng(trial)
    weights = generator.uniform(0.1, 10, len(asked)).tolist()
    plan = planned(sizes, asked, weights)
    spaces = list(plan.noises)

    def coefficient(held, space):
        inside = [(sizes[a] - 1) / sizes[a] if a in space else 1 / sizes[a] ** 2 for a in held if sizes[a] > 1]
        return math.prod(inside) if set(space) <= set(held) else 0.0

    gains = np.array(
        [
            sum(w * math.prod(sizes[a] for a in h) * coefficient(h, s) for w, h in zip(weights, asked, strict=True))
            for s in spaces
        ]
    )
    costs = np.array([math.prod((sizes[a] - 1) / sizes[a] for a in space) for space in spaces])
    found = minimize(
        lambda logs: gains @ np.exp(np.minimum(logs, 50)),
        np.log(generator.uniform(1, 100, len(spaces))),
        constraints={"type": "ineq", "fun": lambda logs: 2 * RHO - costs @ np.exp(np.minimum(-logs, 50))},
        options={"maxiter": 2000, "ftol": 1e-14},
    )
    own = sum(
        w * math.prod(sizes[a] for a in h) * sum(
            (plan.noises[s].scale / math.prod(sizes[a] for a in s)) ** 2 * coefficient(h, s) for s in spaces
        )
        for w, h in zip(weights, asked, strict=True)
    )  # fmt: skip
    assert costs @ np.exp(-found.x) <= 2 * RHO * (1 + 1e-6)
    assert own == pytest.approx(found.fun, rel=1e-4)


def frame_of(sizes, rows, seed=0):
    generator = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            f"a{place}": np.minimum(generator.geometric(min(2 / size, 1.0), rows), size) - 1
            for place, size in enumerate(sizes)
        }
    )


def test_marginals_are_unbiased_agree_and_err_as_foretold(seed):
    """8,000 cells: the mean square of the noise is within .2 of its variance, 6 deviations, but for 1e-8 of runs.

    The cells' noises are correlated by less than 1/40, which adds next to nothing.
    """
    sizes = (80, 100, 2)
    frame, names = frame_of(sizes, 5000), ["a0", "a1", "a2"]
    domain = dpf.Domain(dict(zip(names, sizes, strict=True)))
    made = dpf.release_marginals(frame, domain, epsilon=1.0, delta=1e-9, ledger=dpf.Ledger(epsilon=1, delta=1e-9))
    truth = np.zeros((80, 100))
    np.add.at(truth, (frame["a0"].to_numpy(), frame["a1"].to_numpy()), 1)
    off = made.marginal(["a0", "a1"]) - truth
    deviation = made.plan.deviation(["a1", "a0"])
    assert np.square(off).mean() == pytest.approx(deviation**2, rel=0.2)
    assert abs(off.mean()) < 1.5 * deviation
    np.testing.assert_allclose(made.marginal(["a1", "a0"]), made.marginal(["a0", "a1"]).T)
    for one, other in itertools.permutations(names, 2):
        np.testing.assert_allclose(made.marginal([one, other]).sum(axis=1), made.marginal([one]), atol=1e-6)
    assert made.marginal(["a2"]).sum() == pytest.approx(made.total)
    shown = made.to_frame(["a2", "a0"])
    assert shown.columns == ["a2", "a0", "count", "deviation"]
    np.testing.assert_allclose(shown["count"].to_numpy().reshape(2, 80), made.marginal(["a2", "a0"]))


def test_where_rows_are_replaced_their_number_is_exact(tmp_path):
    frame = frame_of((5, 7, 3), 3000)
    frame.write_parquet(tmp_path / "rows.parquet")
    domain = dpf.Domain({"a0": 5, "a1": 7, "a2": 3}, outside="null")
    ledger = dpf.Ledger(epsilon=10, delta=1e-6, accountant="zcdp")
    made = dpf.release_marginals(tmp_path / "rows.parquet", domain, rho=0.5, neighbors="replace", ledger=ledger)
    assert made.total == 3000.0
    assert made.spent.rho == 0.5
    np.testing.assert_allclose(made.marginal(["a0", "a2"]).sum(), 3000.0)


def test_the_number_of_rows_is_counted_before_counts_are_moved_into_range():
    plan = planned((3, 3), [(0, 1)], neighbors="replace")
    one = np.array([2**36 + 1, 5, 0, 0, 0, 0, 0, 0, 0])
    other = np.array([2**36, 6, 0, 0, 0, 0, 0, 0, 0])
    for counts in (one, other):
        assert measure_residuals(plan, {(0, 1): counts}, SeededRandom(1))[()] == 2**36 + 6


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(rows):
    domain = dpf.Domain({"a0": 5, "a1": 1, "a2": 3})
    made = dpf.release_marginals(frame_of((5, 1, 3), 10)[:rows], domain, epsilon=50.0, delta=1e-9,
                                 ledger=dpf.Ledger(epsilon=50, delta=1e-6))  # fmt: skip
    assert abs(made.total - rows) < 20
    assert made.marginal(["a0", "a2"]).shape == (5, 3)


@pytest.mark.parametrize(
    ("sizes", "columns", "left_out"),
    [
        ({"a": 3, "g": 8, "one": 1}, (("a", "g"), ("one",)), ()),
        ({"a": 3000, "b": 3000, "c": 2}, (("a", "c"), ("b", "c")), (("a", "b"),)),
        ({"a": 3000, "b": 3000}, (("a",), ("b",)), (("a", "b"),)),
        ({"a": 4}, (("a",),), ()),
        ({"one": 1}, (("one",),), ()),
    ],
)
def test_by_default_every_column_is_counted_and_what_is_left_out_is_said(sizes, columns, left_out):
    plan = dpf.plan_marginals(dpf.Domain(sizes), epsilon=1.0)
    assert (plan.columns, plan.left_out) == (columns, left_out)
    assert [line for line in plan.explain().splitlines() if line.startswith("left out")] == [
        f"left out: 1 pair of more than 4,194,304 cells: ['{' and '.join(pair)}']" for pair in left_out
    ]
    assert all(plan.deviation([name]) > 0 for name in sizes)
    with pytest.raises(ParameterError, match=r"but was of wide \(5,000,000 cells\)"):
        dpf.plan_marginals(dpf.Domain({**sizes, "wide": 5_000_000}), epsilon=1.0)


def test_the_total_is_answered_alone_and_among_marginals():
    domain, ask = dpf.Domain({"a0": 5, "a1": 1, "a2": 3}), dpf.workloads
    made = dpf.release_marginals(frame_of((5, 1, 3), 10), domain, [("a0", "a2")], epsilon=5.0, delta=1e-9,
                                 ledger=dpf.Ledger(epsilon=50, delta=1e-6))  # fmt: skip
    for total in (ask.total(domain.shape), ask.marginals(domain.shape, 0), ask.about(domain, {"a1": ask.prefix(1)})):
        assert made.answer(total).tolist() == [made.total]
        assert made.plan.deviations(total).size == 1
    both = ask.marginals(domain.shape, attributes=[(), (2,)])
    assert made.answer(both).tolist() == [made.total, *made.marginal(["a2"])]
    assert made.plan.deviations(both).size == made.answers_frame(both).height == 4


def test_all_pairs_of_a_census_take_seconds():
    domain = dpf.Domain({f"a{place}": size for place, size in enumerate(CENSUS)})
    frame = frame_of(CENSUS, 48_842)
    start = time.process_time()
    plan = dpf.plan_marginals(domain, epsilon=1.0, delta=1e-9)
    made = plan.run(frame, ledger=dpf.Ledger(epsilon=1, delta=1e-9))
    seconds = time.process_time() - start
    assert len(plan.columns) == 91
    assert plan.to_frame()["deviation"].is_between(1, 1000).all()
    assert abs(made.total - 48_842) < 2000
    assert seconds < 20


DOMAIN = dpf.Domain({"a": 3, "b": 2, "c": 4})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilon": 1e-17}, "epsilon must be"),
        ({"rho": 1.0, "workload": [("a", "x")]}, "workload must be"),
        ({"rho": 1.0, "workload": []}, "workload must be"),
        ({"rho": 1.0, "weights": [1.0]}, "weights must be 3 positive numbers"),
        ({"rho": 1.0, "weights": [1.0, 0.0, 2.0]}, "weights must be 3 positive numbers"),
        ({"rho": 1.0, "neighbors": "replace"}, "neighbors must be"),
        ({"rho": 1.0, "domain": dpf.Domain({"a": 3000, "b": 3000}), "workload": [("a", "b")]}, "9,000,000 cells"),
    ],
)
def test_what_is_refused_is_refused_before_the_charge(given, words):
    ledger = dpf.Ledger(epsilon=10, delta=1e-6, accountant="zcdp" if "rho" in given else "basic")
    frame = pl.DataFrame({"a": [1], "b": [1], "c": [1]})
    with pytest.raises(ParameterError, match=words):
        dpf.release_marginals(frame, **{"domain": DOMAIN, "ledger": ledger, **given})
    assert ledger.history().is_empty()


def test_what_a_ledger_cannot_pay_is_not_measured():
    ledger = dpf.Ledger(epsilon=1, delta=1e-6)
    with pytest.raises(BudgetExceededError):
        dpf.release_marginals(
            pl.DataFrame({"a": [1], "b": [1], "c": [1]}), DOMAIN, epsilon=2.0, delta=1e-9, ledger=ledger
        )
    assert ledger.history().is_empty()


def test_only_what_was_planned_is_answered():
    plan = dpf.plan_marginals(DOMAIN, [("a", "b"), ("c",)], rho=1.0)
    assert plan.deviation(["b", "a"]) == plan.deviation(["a", "b"])
    for columns in (["a", "c"], ["x"], [], "a"):
        with pytest.raises(ParameterError, match="columns must be"):
            plan.deviation(columns)
    assert "2 marginals of 3 columns, 10 counts" in plan.explain()
