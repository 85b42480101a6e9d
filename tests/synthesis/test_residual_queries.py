"""Ranges and products of them by residuals: what they cost, and their errors, beside dense algebra on small domains."""

from __future__ import annotations

import gc
import itertools
import math
import sys
import weakref
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from benchmarks.census import SIZES as CENSUS
from dpfast.accounting.accountants import basic
from dpfast.accounting.budget import Budget
from dpfast.errors import ParameterError
from dpfast.strategies.contrasts import EvenContrasts, MatrixContrasts
from dpfast.strategies.marginal_spaces import parts_of
from dpfast.synthesis.residuals.contrasts import LARGEST_MARGINAL
from dpfast.synthesis.residuals.measuring import marginal_of, measure_residuals
from dpfast.synthesis.residuals.planning import plan_queries
from dpfast.synthesis.residuals.queries import Along, blocks_of
from dpfast.testing import SeededRandom
from dpfast.workloads.ranges import Intervals

ask = dpf.workloads
RHO = 0.125
BUDGETS = {
    "rho": Budget("rho", int(RHO * 10**18)),
    "epsilon": Budget("epsilon", 10**18),
}
WORKLOADS = {
    "prefixes of one": ask.about((5, 3, 2), {0: ask.prefix(5)}),
    "all ranges of one attribute alone": ask.all_range(7),
    "ranges by prefixes": ask.about((6, 4, 3), {0: ask.ranges(6, [0, 2, 3], [6, 2, 5]), 2: ask.prefix(3)}),
    "three together": ask.about((4, 2, 3), {0: ask.all_range(4), 1: ask.identity(2), 2: ask.prefix(3)}),
    "beside marginals": ask.about((4, 3, 5), {2: ask.prefix(5)}) + ask.marginals((4, 3, 5), attributes=[(0, 1), (2,)]),
    "rectangles": ask.rectangles((5, 4, 2), [[0, 1, 0], [2, 0, 0], [0, 0, 0]], [[5, 3, 2], [4, 2, 1], [5, 4, 2]]),
    "signed and of floats": ask.kronecker(ask.matrix([[1.0, -1.0, 0.5, 0.0], [0.0, 1.0, 1.0, 2.0]]), ask.prefix(3)),
    "one value": ask.kronecker(ask.prefix(1), ask.prefix(5), ask.identity(1)),
    "two values": ask.kronecker(ask.prefix(2), ask.all_range(2)),
    "nothing but an empty range": ask.about((4, 3), {0: ask.ranges(4, [2], [2])}),
    "a union along an axis": ask.kronecker(ask.prefix(4) + ask.total(4), ask.prefix(3)),
}


def planned(workload, budget="rho", neighbors="add_remove", weights=None):
    blocks = blocks_of(workload)
    weights = weights or [1.0] * (blocks[-1].part + 1)
    return plan_queries(workload.shape, blocks, weights, BUDGETS[budget], neighbors)


def product(parts):
    matrix = np.ones((1, 1))
    for part in parts:
        matrix = np.kron(matrix, part)
    return matrix


def along(one):
    return one.matrix if isinstance(one, MatrixContrasts) else one.size * np.eye(one.size) - 1.0


def measured(plan, space):
    """Return what is measured of a histogram's cells, a row for each number."""
    sizes = enumerate(plan.sizes)
    return product(along(plan.contrasts[a]) if a in space else np.ones((1, n)) for a, n in sizes)


def scaled(plan):
    """Return all that is measured in units of its noise's scale."""
    return np.concatenate([measured(plan, space) / noise.scale for space, noise in plan.noises.items() if noise])


def variances(plan, workload):
    out = np.full(len(workload), np.nan)
    for block in blocks_of(workload):
        out[block.places] = plan.variances(block)
    return out


def dense(workload):
    return workload.rows(0, len(workload)).astype(np.float64)


@pytest.mark.parametrize("name", WORKLOADS)
def test_no_record_costs_more_than_is_charged(name):
    """Brute force over the cells: half of the squares of a cell's column over the noise."""
    costs = np.square(scaled(planned(WORKLOADS[name]))).sum(axis=0) / 2
    assert costs.max() <= RHO * (1 + 1e-12)
    assert costs.max() >= RHO * 0.7  # columns of some contrasts are not all as long: what is charged is for the longest


@pytest.mark.parametrize("name", WORKLOADS)
def test_no_replaced_record_costs_more_than_is_charged(name):
    plan = planned(WORKLOADS[name], neighbors="replace")
    assert plan.noises[()] is None
    rows = scaled(plan)
    pairs = itertools.combinations(range(rows.shape[1]), 2)
    assert max(np.square(rows[:, one] - rows[:, other]).sum() / 2 for one, other in pairs) <= RHO * (1 + 1e-12)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("name", WORKLOADS)
def test_laplace_noise_costs_no_more_than_is_charged(name, neighbors):
    plan = planned(WORKLOADS[name], "epsilon", neighbors)
    rows = scaled(plan)
    costs = np.abs(rows).sum(axis=0)
    if neighbors == "replace":
        pairs = itertools.combinations(range(rows.shape[1]), 2)
        costs = np.array([np.abs(rows[:, one] - rows[:, other]).sum() for one, other in pairs])
    assert costs.max() <= 1 + 1e-12
    assert basic.cost(plan.events)[0] <= 10**18


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", WORKLOADS)
def test_errors_are_those_of_weighted_least_squares(name, budget):
    """Golden: the covariance of the least-squares solution of all measurements, by pseudo-inverse."""
    workload = WORKLOADS[name]
    plan = planned(workload, budget)
    rows = np.concatenate([measured(plan, space) / noise.deviation for space, noise in plan.noises.items()])
    covariance = np.linalg.pinv(rows.T @ rows, rcond=1e-12)
    queries = dense(workload)
    expected = np.einsum("qi,qi->q", queries @ covariance, queries)
    np.testing.assert_allclose(variances(plan, workload), expected, rtol=1e-6, atol=1e-9)
    means = [plan.mean_variance(block) for block in blocks_of(workload)]
    np.testing.assert_allclose(means, [plan.variances(block).mean() for block in blocks_of(workload)], rtol=1e-9)


class Recorded:
    """Noise that is written down."""

    def __init__(self, scale, generator, noisy):
        self.scale, self._generator, self._noisy = scale, generator, noisy

    def add(self, values, _):
        noise = np.rint(self._generator.normal(0, self.scale, values.size)).astype(np.int64)
        self._noisy.append(values + noise)
        return values + noise


@pytest.mark.parametrize("name", WORKLOADS)
def test_answers_are_those_of_weighted_least_squares(name):
    workload = WORKLOADS[name]
    plan, generator, noisy = planned(workload), np.random.default_rng(3), []
    histogram = generator.integers(0, 50, workload.shape)
    exact = {
        held: histogram.sum(axis=tuple(a for a in range(histogram.ndim) if a not in held)).reshape(-1)
        for held in plan.asked
    }
    fake = replace(plan, noises={space: Recorded(one.scale, generator, noisy) for space, one in plan.noises.items()})
    residuals = measure_residuals(fake, exact, SeededRandom(1))
    values = np.concatenate([y / one.scale for y, one in zip(noisy, plan.noises.values(), strict=True)])
    fitted = np.linalg.pinv(scaled(plan), rcond=1e-12) @ values
    answers = np.full(len(workload), np.nan)
    for block in blocks_of(workload):
        answers[block.places] = block.answer(marginal_of(plan, residuals, block.attributes))
    np.testing.assert_allclose(answers, dense(workload) @ fitted, atol=1e-5)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", ["prefixes of one", "three together", "beside marginals"])
def test_no_other_noise_has_a_smaller_weighted_sum_of_variances(name, budget):
    workload, generator = WORKLOADS[name], np.random.default_rng(5)
    blocks = blocks_of(workload)
    weights = generator.uniform(0.1, 10, blocks[-1].part + 1).tolist()
    # A small budget: rounding to whole numbers adds nothing then.
    plan = plan_queries(workload.shape, blocks, weights, Budget(budget, 10**12), "add_remove")
    scales = np.array([noise.scale for noise in plan.noises.values()])
    order = 1 if budget == "epsilon" else 2
    norms = [np.linalg.norm(measured(plan, space), ord=1, axis=0).max() if order == 1 else
             np.linalg.norm(measured(plan, space), axis=0).max() for space in plan.noises]  # fmt: skip

    def cost(own):
        return ((np.array(norms) / own) ** order).sum()

    def error(own):
        other = replace(plan, noises={
            space: replace(noise, scale=scale) for (space, noise), scale in zip(plan.noises.items(), own, strict=True)
        })  # fmt: skip
        return sum(weights[block.part] * len(block) * other.mean_variance(block) for block in blocks)

    for _ in range(30):
        own = scales * generator.uniform(0.8, 1.2, scales.size)
        own *= (cost(own) / cost(scales)) ** (1 / order)
        assert error(own) >= error(scales) * (1 - 1e-6)


@pytest.mark.parametrize("budget", BUDGETS)
def test_contrasts_of_ranges_err_less_than_those_of_cells(budget):
    """Where ranges are asked they are taken, and the error is not above that of cells."""
    workload = ask.about(CENSUS, {0: ask.prefix(CENSUS[0]), 2: ask.prefix(CENSUS[2])})
    plan = planned(workload, budget)
    cells = planned(ask.marginals(CENSUS, attributes=[(0, 2)]), budget)
    ratio = math.sqrt(variances(cells, workload).sum() / variances(plan, workload).sum())
    assert isinstance(plan.contrasts[0], MatrixContrasts)
    assert all(isinstance(one, EvenContrasts) for a, one in enumerate(plan.contrasts) if a not in (0, 2))
    assert ratio > {"rho": 3.5, "epsilon": 1.2}[budget]


@pytest.mark.parametrize(
    "queries",
    [
        {0: ask.prefix(100), 1: ask.identity(200), 2: ask.identity(200)},
        {0: ask.prefix(100), 3: ask.all_range(1000)},
        {0: ask.prefix(100), 4: ask.prefix(4), 3: ask.identity(1000)},
    ],
)
def test_whole_numbers_have_room_for_the_rows_of_any_data(queries):
    """A residual is a sum of 2**38 counts at most, times products of coefficients: below 2**63."""
    plan = planned(ask.about((100, 200, 200, 1000, 4), queries))
    for held in plan.asked:
        assert math.prod(plan.sizes[a] for a in held) <= LARGEST_MARGINAL
        assert math.prod(plan.contrasts[a].largest for a in held) * 2**38 < 2**63


def frame_of(sizes, rows):
    generator = np.random.default_rng(rows)
    return pl.DataFrame({f"a{place}": generator.integers(0, size, rows) for place, size in enumerate(sizes)})


DOMAIN = dpf.Domain({f"a{place}": size for place, size in enumerate(CENSUS)})


def test_ranges_of_a_census_are_unbiased_and_err_as_foretold():
    """7,000 prefixes whose noises have few independent parts: the mean square of 40 of them is within a factor of 3.

    Of a chi-square variable with 10 degrees of freedom or more it is but for 1e-3 of runs; the noise is a fixed one.
    """
    frame = frame_of(CENSUS, 20_000)
    workload = ask.about(DOMAIN, {"a0": ask.prefix(85), "a2": ask.prefix(100)})
    plan = dpf.plan_marginals(DOMAIN, workload, rho=0.5)
    exact = np.zeros((85, 100), np.int64)
    np.add.at(exact, (frame["a0"].to_numpy(), frame["a2"].to_numpy()), 1)
    residuals = measure_residuals(plan._plan, {(0, 2): exact.reshape(-1)}, SeededRandom(5))
    [block] = blocks_of(workload)
    answers = block.answer(marginal_of(plan._plan, residuals, (0, 2)))
    off = (answers - exact.cumsum(axis=0).cumsum(axis=1).reshape(-1)) / plan.deviations()
    assert 1 / 3 < np.square(off).mean() < 3
    assert np.abs(off).max() < 6


def test_a_release_answers_all_that_is_about_columns_counted_together():
    frame = frame_of(CENSUS, 3_000)
    products = ask.about(DOMAIN, {"a0": ask.prefix(85), "a5": ask.identity(15)})
    workload = products + ask.marginals(CENSUS, attributes=[(1, 3), ()])
    ledger = dpf.Ledger(epsilon=10, delta=1e-6, accountant="zcdp")
    made = dpf.release_marginals(frame, DOMAIN, workload, rho=0.5, ledger=ledger)
    assert made.spent.rho == 0.5
    assert made.answers.shape == made.plan.deviations().shape == (85 * 15 + 9 * 16 + 1,)
    assert made.answers[-1] == pytest.approx(made.total)
    table = made.marginal(["a5", "a0"])
    np.testing.assert_allclose(made.answers[: 85 * 15].reshape(85, 15), table.T.cumsum(axis=0), atol=1e-6)
    shown = made.to_frame(["a5", "a0"])
    np.testing.assert_allclose(shown["count"].to_numpy().reshape(15, 85), table)
    mean = np.square(shown["deviation"].to_numpy()).mean()
    assert made.plan.deviation(["a0", "a5"]) == pytest.approx(math.sqrt(mean))
    others = ask.about(DOMAIN, {"a0": ask.random_ranges(85, 20, seed=1)})
    listed = made.answers_frame(others)
    np.testing.assert_allclose(listed["answer"], others.factors[0].answer(table.sum(axis=0)), atol=1e-6)
    np.testing.assert_allclose(listed["deviation"], made.plan.deviations(others))
    assert listed.columns == ["a0_lower", "a0_upper", "answer", "deviation"]
    np.testing.assert_array_equal(listed["a0_upper"], others.factors[0].upper)
    planned = made.answers_frame()
    assert planned.row(17, named=True)["a0_upper"] == 2
    assert planned.row(17, named=True)["a5_cell"] == 2
    assert planned.row(-1)[:-2] == (None,) * 5
    np.testing.assert_array_equal(planned["answer"], made.answers)
    assert made.fit().domain is DOMAIN
    for wrong in (ask.about(DOMAIN, {"a0": ask.prefix(85), "a1": ask.prefix(9)}), ask.prefix(85)):
        with pytest.raises(ParameterError, match="workload must be"):
            made.answer(wrong)
        with pytest.raises(ParameterError, match="workload must be"):
            made.plan.deviations(wrong)


def test_what_is_planned_is_explained():
    workload = ask.about(DOMAIN, {"a0": ask.prefix(85)}) + ask.about(DOMAIN, {"a1": ask.identity(9)})
    plan = dpf.plan_marginals(DOMAIN, workload, epsilon=1.0, delta=1e-9, weights=[1.0, 100.0])
    assert "2 marginals of 14 columns, 94 queries" in plan.explain()
    assert "deviation of each answer" in plan.explain()
    assert plan.columns == (("a0",), ("a1",))
    even = dpf.plan_marginals(DOMAIN, workload, epsilon=1.0, delta=1e-9)
    assert plan.deviation(["a1"]) < even.deviation(["a1"])
    np.testing.assert_allclose(
        plan.to_frame()["deviation"], [np.sqrt(np.square(plan.deviations()[:85]).mean()), plan.deviation(["a1"])]
    )


def test_hundreds_of_attributes():
    domain = dpf.Domain({f"a{place}": 20 for place in range(400)})
    workload = ask.stack(*(ask.about(domain, {f"a{i}": ask.prefix(20), f"a{i + 1}": ask.prefix(20)}) for i in range(3)))
    assert dpf.plan_marginals(domain, workload, rho=0.5).deviations().shape == (1200,)


SMALL = dpf.Domain({"a": 3, "b": 2, "c": 4})


@pytest.mark.parametrize(
    ("domain", "workload", "words"),
    [
        (SMALL, ask.prefix(3), "workload must be over the cells of the domain"),
        (SMALL, ask.total((3, 2, 4)), "workload must be of some columns"),
        (SMALL, ask.matrix(np.eye(24), (3, 2, 4)), "workload must be of marginals, rectangles, or products"),
        (
            SMALL,
            ask.kronecker(ask.rectangles((3, 2), [[0, 0]], [[1, 1]]), ask.total(4)),
            "workload must be of marginals",
        ),
        (DOMAIN, ask.random_rectangles(CENSUS, 5, seed=1), "workload must be .*4,194,304 cells"),
        (DOMAIN, ask.about(DOMAIN, {f"a{i}": ask.prefix(CENSUS[i]) for i in (0, 2, 9, 10)}), "85,000,000 cells"),
        (
            dpf.Domain({f"a{i}": 2 for i in range(400)}),
            ask.rectangles((2,) * 400, [[0] * 400], [[1] * 400]),
            "workload must be about at most 16 columns in each query, but was of 400 columns together",
        ),
    ],
)
def test_what_is_refused_is_refused_in_one_line(domain, workload, words):
    with pytest.raises(ParameterError, match=words) as caught:
        dpf.plan_marginals(domain, workload, rho=0.5)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("budget", BUDGETS)
def test_columns_of_which_the_same_is_asked_are_searched_once(budget):
    """A search among a thousand values takes seconds, so many columns are told one by one, and those alike once."""
    sizes = (9, 8, 9, 9, 2)
    prefixes = [ask.about(sizes, {place: ask.prefix(sizes[place])}) for place in range(4)]
    asked = ask.about(sizes, {3: ask.all_range(9)})
    for one in prefixes:
        asked += one
    shown = []
    blocks = blocks_of(asked)
    plan = plan_queries(sizes, blocks, [1.0] * (blocks[-1].part + 1), BUDGETS[budget], "add_remove", shown.append)
    assert shown == [0, 1, 3]
    assert plan.contrasts[0] is plan.contrasts[2]
    assert [one.size for one in plan.contrasts] == list(sizes)


def test_a_terminal_is_told_which_column_is_searched(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("dpfast.progress._QUIET", -1.0)
    domain = dpf.Domain({"age": 9, "sex": 2})
    dpf.plan_marginals(domain, ask.about(domain, {"age": ask.prefix(9)}), rho=0.1)
    assert capsys.readouterr().err == "\rdpfast: finding what to measure of age\n"


def test_many_rectangles_are_weighed_without_their_rows(monkeypatch):
    """Each by how much the rest of it matters: of 100,000 of them over a thousand values rows would take a minute."""
    shape, generator = (6, 5, 3), np.random.default_rng(2)
    lower = generator.integers(0, shape, (40, 3))
    upper = lower + generator.integers(0, np.array(shape) - lower + 1)
    lower[:20, 2], upper[:20, 2] = 0, 3
    for block in blocks_of(ask.rectangles(shape, lower, upper)):
        contrasts = Along(tuple(map(EvenContrasts, shape)))
        noise = {space: 1.0 + len(space) for space in parts_of([block.attributes])}
        for place, own in enumerate(block.attributes):
            parts = [contrasts.parts(a, axis) for a, axis in zip(block.attributes, block.axes, strict=True)]
            weights = np.zeros(len(block))
            for space, variance in noise.items():
                others = [a for a in block.attributes if a != own]
                if own in space:
                    at = block.attributes.index
                    weights += variance * math.prod((parts[at(a)][0 if a in space else 1] for a in others), start=1.0)
            rows = block.axes[place].rows(0, len(block)).astype(np.float64)
            with monkeypatch.context() as patch:
                patch.setattr(Intervals, "rows", None)
                assert block.gram(place, noise, contrasts) == pytest.approx((rows.T * weights) @ rows, rel=1e-12)


def test_a_plan_keeps_no_queries_that_it_is_asked():
    domain = dpf.Domain({"age": 9, "sex": 2})
    plan = dpf.plan_marginals(domain, ask.about(domain, {"age": ask.prefix(9)}), rho=0.1)
    asked = ask.about(domain, {"age": ask.ranges(9, [0, 1], [3, 4])})
    kept = weakref.ref(asked.factors[0])
    assert plan.deviations(asked).size == 2
    del asked
    gc.collect()
    assert kept() is None
