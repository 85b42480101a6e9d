"""The matrix mechanism from a budget to answers: what it costs, how far it errs, what it refuses."""

from __future__ import annotations

import gc
import math
import weakref
from fractions import Fraction

import numpy as np
import pytest

import dpfast as dpf
from dpfast.accounting.accountants import basic, gdp, zcdp
from dpfast.errors import ParameterError
from dpfast.strategies import candidates
from dpfast.strategies import noise as noises
from dpfast.testing import SeededRandom

from .dense import matrix_of, rmse

made, workloads = dpf.strategies, dpf.workloads


@pytest.mark.statistical
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "strategy",
    [
        made.identity(1024),
        made.hierarchy(1024, 2, root=True),
        made.hierarchy(1024, 8, root=True),
        made.hierarchy(1024, 16),
        made.wavelet(1024),
        made.square_root(1024),
        made.hierarchy(1024, (16, 16), weights=(255, 239, 208)),
    ],
    ids=str,
)
@pytest.mark.parametrize("workload", [workloads.prefix(1024), workloads.all_range(1024)], ids=repr)
def test_errors_are_those_predicted(strategy, workload, order, seed):
    """Of 300 runs; false-failure rate below 1e-6 a case: the mean's standard error times 7.

    A run's error is a sum of squares of noise, with a tail like an exponential's or shorter, times its mean.
    """
    runs, scale = 300, 10.0 * strategy.norm(order)
    draw = dpf.laplace if order == 1 else dpf.gaussian
    drawn = draw(np.zeros((runs, len(strategy)), np.int64), scale, random=SeededRandom(seed)).astype(float)
    cells = strategy.reconstruct_rows(drawn)
    # The sum over all ranges of their squares, from prefix sums P: sum over pairs of (P_j - P_i)**2.
    prefixes = np.cumsum(cells, axis=1)
    squares = (prefixes**2).sum(axis=1)
    if len(workload) > strategy.cells:
        squares = (strategy.cells + 1) * squares - prefixes.sum(axis=1) ** 2
    errors = squares / len(workload)
    predicted = 100.0 * rmse(strategy, workload, order) ** 2
    assert abs(errors.mean() - predicted) < 7 * errors.std() / math.sqrt(runs)


@pytest.mark.statistical
@pytest.mark.parametrize("budget", [{"epsilon": 0.7}, {"rho": 0.2}, {"epsilon": 0.7, "neighbors": "replace"}])
@pytest.mark.parametrize(
    "workload",
    [
        workloads.all_range(300),
        workloads.random_rectangles((12, 20), 200, 1),
        workloads.marginals((4, 5, 6), k=3) + workloads.marginals((4, 5, 6), k=1),
    ],
    ids=repr,
)
def test_cells_stray_by_the_covariance_that_is_told(workload, budget, seed):
    """Of 200 runs or more; false-failure rate below 1e-9: 9 standard deviations; a scale wrong by 6% is seen.

    With the error e of all cells, e'A'A e is the square of the noise's projection onto the columns' span: rank(A) on
    average. Its variance is at most (2 + 4) rank(A) (the noises' excess kurtosis is below 4), so that of 48,000 and
    more degrees of freedom the mean has a relative deviation of 0.0112 or less.
    """
    choice = made.choose(workload, **budget)
    strategy, noise, shape = choice.strategy, choice.best.noise, workload.shape
    counts = np.arange(workload.cells).reshape(shape) % 23
    A = matrix_of(strategy).astype(float)
    random = SeededRandom(seed)
    total = 0.0
    for _ in range(200 * 240 // min(workload.cells, 240)):
        release = dpf.matrix_mechanism(counts, workload, **budget, strategy=strategy, random=random)
        assert release.noise == noise
        total += float(np.square(A @ (release.histogram - counts).reshape(-1)).sum()) / noise.deviation**2
    assert total / (200 * 240 // min(workload.cells, 240)) / workload.cells == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize(
    "budget", [{"epsilon": 0.3}, {"rho": 0.02}, {"epsilon": 1, "delta": 1e-6}, {"epsilon": 1e-9}, {"epsilon": 30}]
)
def test_what_is_done_costs_no_more_than_the_budget(budget, neighbors):
    """Soundness rules 10, 14 and 25: the event is of the strategy's own sensitivity, and within the budget."""
    workload = workloads.prefix(64)
    release = dpf.matrix_mechanism(
        np.arange(64), workload, **budget, neighbors=neighbors, max_groups=2, max_rows_per_group=3
    )
    unit = made.choosing.read_unit(neighbors, 2, 3)
    sensitivity = release.strategy.sensitivity(unit)
    event = release.event
    if "rho" in budget:
        assert zcdp.cost(event)[0] <= 2 * 10**16
        assert Fraction(event.sensitivity) ** 2 >= sensitivity.l2_squared
    elif release.noise.mechanism == "laplace":
        assert event.sensitivity >= sensitivity.l1
        assert basic.cost(event)[0] <= round(Fraction(str(budget["epsilon"])) * 10**18)
        assert Fraction(event.scale) * Fraction(str(budget["epsilon"])) >= sensitivity.l1
    else:
        assert Fraction(event.sensitivity) ** 2 >= sensitivity.l2_squared
        assert gdp.GDP(event).delta(1.0) <= 1e-6


@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": 0.5}])
@pytest.mark.parametrize(
    "workload",
    [
        workloads.prefix(4096) + workloads.total(4096) + workloads.identity(4096),
        workloads.all_range(2100),
        workloads.random_ranges(2**14, 50, 1) + workloads.prefix(2**14),
        workloads.matrix(np.arange(3 * 2500).reshape(3, 2500) % 5),
        workloads.matrix(np.arange(3 * 2500).reshape(3, 50, 50) % 5) + workloads.total((50, 50)),
        workloads.marginals((15, 15, 15), k=2) + workloads.random_rectangles((15, 15, 15), 50, 1),
        workloads.kronecker(workloads.prefix(500), workloads.prefix(5) + workloads.total(5)),
    ],
    ids=repr,
)
def test_what_is_charged_for_can_be_read(workload, budget):
    """Scales are known for every choice, however many cells: an error after the charge would waste it."""
    release = dpf.matrix_mechanism(np.ones(workload.shape, np.int64), workload, **budget)
    mean = (release.scale**2).mean() if len(workload) else 0.0
    assert math.sqrt(mean) == pytest.approx(release.rmse, rel=1e-6)
    assert release.half_width().shape == (len(workload),)


def test_strategies_of_large_numbers_do_not_end_the_choice():
    """The identity's noise fits where that of a matrix in fixed point, 2**16 times wider, does not."""
    unit = {"max_groups": 40, "max_rows_per_group": 2**40}
    choice = made.choose(workloads.prefix(40), epsilon=0.3, **unit)
    assert choice.best.noise.scale < 2.0**60
    assert "identity" in {one.strategy.name for one in choice.considered}
    with pytest.raises(ParameterError, match="epsilon must be larger"):
        made.choose(workloads.prefix(40), epsilon=0.3, **unit, among=[made.identity(40), made.square_root(40)])


def test_with_a_delta_the_better_noise_is_taken():
    workload = workloads.prefix(1024)
    choice = made.choose(workload, epsilon=0.1, delta=1e-3)
    kinds = {one.noise.mechanism for one in choice.considered}
    assert kinds == {"laplace", "gaussian"}
    assert choice.best.rmse <= min(
        made.choose(workload, epsilon=0.1).best.rmse, made.choose(workload, rho=1e-4).best.rmse
    )


@pytest.mark.parametrize(("b", "expected"), [(0.1, None), (3.0, None), (1e6, 2e12), (2.0**30, 2.0**61)])
def test_the_noise_has_the_deviation_that_is_told(b, expected):
    k = np.arange(1, 400, dtype=float)
    q = math.exp(-1 / b)
    told = noises.IntegerNoise("laplace", b, None).deviation ** 2
    assert told == pytest.approx(expected or 2 * (1 - q) / (1 + q) * (k**2 * q**k).sum(), rel=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("budget", [{"epsilon": 0.5}, {"rho": 0.1}])
def test_intervals_hold_as_often_as_they_say(budget, seed):
    """40 runs of 200 ranges; false-failure rate below 1e-6.

    A run's share of misses is 0.02 (Laplace) and 0.048 (Gaussian) on average with a deviation of 0.028 and 0.034, over
    2,000 runs, as misses in a run go together: the mean of 40 has one of 0.005, and 0.1 is 9 of them away. No miss in
    40 runs has probability below 1e-9, as more than 40 % of runs have one.
    """
    workload = workloads.random_ranges(1000, 200, 1)
    counts = np.arange(1000) % 17
    random = SeededRandom(seed)
    missed = []
    for _ in range(40):
        release = dpf.matrix_mechanism(counts, workload, **budget, random=random)
        missed.append((abs(release.answers - workload.answer(counts)) > release.half_width(0.95)).mean())
    assert 0.0 < np.mean(missed) < 0.1


def strays(mechanism, scale, weights, reach):
    """Return how often a weighted sum of noises on whole numbers strays further, from their exact distribution."""
    most = int(40 * scale + 8)
    k = np.arange(-most, most + 1)
    if mechanism == "laplace":
        noise = math.tanh(0.5 / scale) * np.exp(-abs(k) / scale)
    else:
        ends = [0.5 * math.erfc(-(x - 0.5) / scale / math.sqrt(2)) for x in range(-most, most + 2)]
        noise = np.diff(ends)
    law = np.ones(1)
    for weight in weights:
        spaced = np.zeros(2 * most * weight + 1)
        spaced[::weight] = noise
        law = np.convolve(law, spaced)
    sums = np.arange(law.size) - law.size // 2
    return law[abs(sums) > reach * math.hypot(*weights) * (1 + 1e-12)].sum()


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("weights", [(1,), (1, 1), (3, 1), (1, 1, 1, 1, 1)], ids=str)
def test_bounds_hold_for_noise_as_small_as_the_steps_it_takes(mechanism, weights):
    """Exactly, without a draw: at epsilon 2.6 a cell's interval for 0.05 would miss 0.14 without the half step."""
    for scale in (0.1, 0.2, 0.25, 0.32, 0.385, 0.5, 0.7, 1.0, 1.6, 4.0):
        noise = noises.IntegerNoise(mechanism, scale, None)
        for miss in (0.5, 0.2, 0.05, 0.01, 1e-6):
            assert strays(mechanism, scale, weights, noise.deviation * noise.reach(miss)) <= miss * (1 + 1e-9)


def test_without_the_half_step_bounds_of_small_noise_are_missed():
    """The mutant, which the test above must see."""
    assert strays("laplace", 1 / 2.6, (1,), noises.IntegerNoise("laplace", 1 / 2.6, None).deviation * 2.37) > 0.13


def test_any_probability_has_a_bound():
    for mechanism in ("laplace", "gaussian"):
        for scale in (1e-5, 1 / 1399, 3.0, 2.0**40):
            noise = noises.IntegerNoise(mechanism, scale, None)
            bounds = [noise.deviation * noise.reach(miss) for miss in (1 - 1e-12, 1 - 1e-8, 0.999, 0.5, 1e-12, 1e-299)]
            assert bounds == sorted(bounds)
            assert np.isfinite(bounds).all()


@pytest.mark.parametrize("n", [1, 2, 3, 1000, 4097])
def test_much_budget_gives_the_exact_answers(n):
    workload = workloads.prefix(n)
    counts = np.arange(n) * 3 % 11
    release = dpf.matrix_mechanism(counts, workload, epsilon=1000, random=SeededRandom(3))
    np.testing.assert_allclose(release.answers, counts.cumsum(), atol=3)
    assert release.histogram.shape == (n,)
    frame = release.frame()
    assert frame.columns == ["lower", "upper", "answer", "scale", "answer_lower", "answer_upper"]
    assert frame.height == n


def test_the_same_seed_gives_the_same_release_in_any_number_of_threads():
    counts = np.arange(100_000) % 7
    workload = workloads.prefix(counts.size)
    one, two = (
        dpf.matrix_mechanism(counts, workload, epsilon=1, random=SeededRandom(4), threads=threads) for threads in (1, 2)
    )
    assert (one.histogram == two.histogram).all()


def test_cells_are_made_non_negative_on_demand():
    workload = workloads.prefix(100)
    release = dpf.matrix_mechanism(np.zeros(100, int), workload, epsilon=0.1, nonnegative=True)
    assert release.histogram.min() == 0.0


def test_the_best_is_the_least_of_all_considered():
    choice = made.choose(workloads.all_range(512), epsilon=1)
    errors = [one.rmse for one in choice.considered]
    assert errors == sorted(errors)
    assert choice.strategy is choice.considered[0].strategy
    assert {"identity", "H16", "H2 with root", "Haar wavelet"} <= {one.strategy.name for one in choice.considered}
    assert str(choice).count("\n") == len(errors) - 1


def test_what_was_worked_out_for_a_workload_is_kept_as_long_as_it_lives(monkeypatch):
    """The same choice again looks for no strategy and works out no error; another kind of noise does, once."""
    searched, worked_out = [], []
    kind = type(made.hierarchy(9, 3))
    search, error = candidates._all_for, kind.error
    monkeypatch.setattr(candidates, "_all_for", lambda *given: searched.append(given[1]) or search(*given))
    monkeypatch.setattr(kind, "error", lambda own, asked: worked_out.append(own) or error(own, asked))
    workload = workloads.prefix(1024)
    first = made.choose(workload, epsilon=1)
    looked = len(worked_out)
    again, dearer = made.choose(workload, epsilon=1), made.choose(workload, epsilon=0.25)
    assert (searched, len(worked_out)) == ([[1]], looked)
    assert looked > 0
    assert [one.rmse for one in again.considered] == [one.rmse for one in first.considered]
    assert dearer.best.rmse == pytest.approx(4 * first.best.rmse, rel=0.05)
    made.choose(workload, epsilon=1, delta=1e-6)
    assert searched == [[1], [1, 2]]
    alive = weakref.ref(workload)
    del workload, first, again, dearer
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": None}, "epsilon must be given, or else rho"),
        ({"rho": 1}, "rho must be left out where epsilon is given"),
        ({"epsilon": None, "rho": 1, "delta": 1e-6}, "delta must be None or 0 beside rho"),
        ({"strategy": made.identity(9)}, "strategy must be one of shape"),
        ({"epsilon": 1e-18, "max_rows_per_group": 9}, "epsilon must be larger"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    given = {"histogram": np.zeros(8, int), "workload": workloads.prefix(8), "epsilon": 1, **arguments}
    with pytest.raises(ParameterError, match=message):
        dpf.matrix_mechanism(**given)
