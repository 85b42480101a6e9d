"""The accountant by privacy loss distributions: certified bounds, close to each other and to the truth."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction
from typing import ClassVar

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfast.accounting.accountants.optimal import Optimal
from dpfast.accounting.accountants.pld import PLD
from dpfast.accounting.accountants.pld import inversion as inversion_module
from dpfast.accounting.accountants.pld.composition import Composition
from dpfast.accounting.accountants.pld.inversion import delta_bounds
from dpfast.accounting.accountants.pld.sampling import Lattice, Losses, gaussian_losses, sampled_losses
from dpfast.accounting.events import (
    Approximate,
    Composed,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    KeySelection,
    Laplace,
    Partitioned,
    PermuteAndFlip,
    PoissonSubsampled,
    Pure,
    RandomizedResponse,
    ZeroConcentrated,
)
from dpfast.accounting.formulas.pairs import connect_dots, laplace_cells, merge_cells
from dpfast.accounting.formulas.transforms import BoundedRange, DiscreteLaplaces, Laplaces, Responses

from .contract import AccountantContract, BoundsTheTruth
from .truth import composed, profile, response, responses_profile

GAP = 1e-3
VERY_FEW = settings(max_examples=2, deadline=None)


class TestPLD(AccountantContract, BoundsTheTruth):
    accountant = PLD
    takes: ClassVar = [
        Laplace(10.0),
        DiscreteLaplace(3.0, 2),
        Gaussian(5.0),
        ExponentialMechanism(0.5),
        PermuteAndFlip(0.25),
        RandomizedResponse(1.0, 5),
        Pure(0.1),
        Approximate(0.2, 1e-8),
        Approximate(0.0, 1e-9),
        KeySelection(0.5, 1e-7),
        PoissonSubsampled(Laplace(1.0), 0.05),
        PoissonSubsampled(Gaussian(2.0), 0.1),
        Partitioned((Pure(0.3), Composed((Pure(0.3), Laplace(2.0))))),
    ]
    refuses: ClassVar = [
        ZeroConcentrated(0.1),
        PoissonSubsampled(Composed((Laplace(1.0), Gaussian(1.0))), 0.1),
        PoissonSubsampled(Pure(1.0).times(2), 0.1),
        PoissonSubsampled(Gaussian(0.01), 0.1),
        PoissonSubsampled(DiscreteLaplace(1.0, 5000), 0.1),
    ]

    # The bounds err by up to GAP upwards, each on its own, so one may lie on the wrong side of another by that.
    def test_bounds_fall(self):
        @VERY_FEW
        @given(self.mixtures())
        def check(events):
            accountant = PLD(events)
            epsilons = [accountant.epsilon(delta) for delta in (0, 1e-30, 1e-6, 0.1)]
            deltas = [accountant.delta(epsilon) for epsilon in (0, 0.5, 3, 1e5)]
            assert all(epsilon >= 0.0 for epsilon in epsilons)
            assert all(0.0 <= delta <= 1.0 for delta in deltas)
            for values in (epsilons, deltas):
                assert all(low <= high * (1 + GAP) for high, low in itertools.pairwise(values)), values

        check()

    def test_inverses_agree(self):
        @VERY_FEW
        @given(self.mixtures(), st.sampled_from([1e-12, 1e-6, 1e-3, 0.1]))
        def check(events, delta):
            accountant = PLD(events)
            epsilon = accountant.epsilon(delta)
            if epsilon < math.inf:
                assert accountant.delta_lower(epsilon) <= delta
            low = accountant.epsilon_lower(delta)
            if 0.0 < low < math.inf:
                assert accountant.delta(low) >= delta * (1 - 1e-9)

        check()

    def test_more_never_costs_less(self):
        @VERY_FEW
        @given(self.mixtures(), st.sampled_from(self.takes))
        def check(events, more):
            few, many = PLD(events), PLD((*events, more))
            for delta in (0, 1e-6):
                assert few.epsilon_lower(delta) <= many.epsilon(delta)
            assert few.delta_lower(1.0) <= many.delta(1.0)

        check()

    def test_order_and_grouping_do_not_matter(self):
        events = [event.times(3) for event in self.takes]
        one = PLD(events)
        assert one == PLD(events[::-1]) == PLD(Composed(events))
        assert hash(one) == hash(PLD(events[::-1]))
        spread = [event.event for event in events for _ in range(event.count)]
        assert one == PLD(spread) == PLD(iter(spread))
        few, mirrored = PLD(spread[:9]), PLD(spread[8::-1])
        assert few.epsilon(1e-6) == mirrored.epsilon(1e-6)


@pytest.mark.parametrize(
    ("event", "count", "delta", "epsilon", "tolerance"),
    [
        (Laplace(10.0), 100, 1e-6, 4.6926674, 1e-7),
        (DiscreteLaplace(10.0), 100, 1e-6, 4.7745676, 1e-7),
        (Pure(1 / 801), 10_000, math.exp(-32), 0.8904681, 1e-7),
        (Laplace(1000.0), 10**6, 1e-6, 4.885616, 1e-6),
        (Gaussian(1.0), 1, 1e-6, 4.8865541, 1e-7),
        (Laplace(math.sqrt(2 * 263 * math.log(1e6))), 263, 1e-6, 0.78427, 1e-4),
        (Laplace(60.28), 263, 1e-6, 1.13798, 1e-4),
        (Laplace(170.49), 263, 1e-6, 0.37402, 1e-4),
        (PoissonSubsampled(Gaussian(1.0), 0.01), 1000, 1e-5, 1.8282437, 1e-4),
    ],
)
def test_goldens(event, count, delta, epsilon, tolerance):
    """Soundness rule 21: discrete Laplace of sensitivity 1 composes like randomized response, continuous better."""
    plan = PLD(event.times(count))
    low, high = plan.epsilon_lower(delta), plan.epsilon(delta)
    assert high - low <= GAP * high
    assert low * (1 - tolerance) <= epsilon <= high * (1 + tolerance)


def test_gaussian_and_discrete_equal_the_closed_forms():
    plan = PLD([Gaussian(2.0).times(3), Gaussian(5.0, 4.0)])
    mean = mp.sqrt(mp.mpf(3) / 4 + mp.mpf(16) / 25)
    for epsilon in (0.0, 0.5, 3.0, 12.0):
        exact = mp.ncdf(mean / 2 - epsilon / mean) - mp.exp(epsilon) * mp.ncdf(-mean / 2 - epsilon / mean)
        assert plan.delta_lower(epsilon) <= exact <= plan.delta(epsilon) <= plan.delta_lower(epsilon) * (1 + 1e-6)
    assert PLD(DiscreteLaplace(4.0).times(7)).epsilon(1e-3) == PLD(Pure(0.25).times(7)).epsilon(1e-3)
    hundred = Pure(0.1).times(100)
    for delta in (1e-3, 1e-9, 1e-30):
        best = Optimal(hundred).epsilon(delta)
        assert PLD(hundred).epsilon_lower(delta) <= best <= PLD(hundred).epsilon(delta) * (1 + 1e-12)


@settings(max_examples=5, deadline=None)
@given(st.lists(st.tuples(st.floats(0.05, 2.0), st.integers(2, 6)), min_size=1, max_size=5), st.floats(0.0, 0.98))
def test_both_bounds_enclose_all_outcomes_added_up(parameters, share):
    """The exact profile of a few randomized responses, in 60 digits."""
    plan = PLD([RandomizedResponse(epsilon, categories) for epsilon, categories in parameters])
    outcomes = composed(response(epsilon, 0.0, categories) for epsilon, categories in parameters)
    epsilon = share * sum(epsilon for epsilon, _ in parameters)
    exact = profile(outcomes, epsilon)
    assert plan.delta_lower(epsilon) <= exact <= plan.delta(epsilon)
    assert plan.delta(epsilon) - plan.delta_lower(epsilon) <= GAP * exact
    target = float(exact)
    if target > 0.0:
        assert plan.epsilon_lower(target) <= epsilon * (1 + 1e-9) + 1e-12
        assert plan.epsilon(target) >= epsilon * (1 - 1e-9) - 1e-12


@pytest.mark.parametrize(("count", "each", "epsilon"), [(12, 0.3, 1.1), (100, 0.1, 5.0), (1000, 0.02, 3.0)])
def test_both_bounds_enclose_the_binomial_sum(count, each, epsilon):
    exact = responses_profile(count, each, epsilon)
    plan = PLD(Pure(each).times(count))
    assert plan.delta_lower(epsilon) <= exact <= plan.delta(epsilon) <= plan.delta_lower(epsilon) * (1 + GAP)


def test_binomial_sum_in_fractions():
    """Odds of exactly 2 to 1, seven times, at epsilon = ln 4: no floating-point number in the truth."""
    truth = sum(
        (
            max(Fraction(2**keep, 3**7) - 4 * Fraction(2 ** (7 - keep), 3**7), Fraction(0)) * math.comb(7, keep)
            for keep in range(8)
        ),
        Fraction(0),
    )
    plan = PLD(Pure(math.log(2)).times(7))
    assert plan.delta_lower(math.log(4)) <= float(truth) * (1 + 1e-12)
    assert plan.delta(math.log(4)) >= float(truth) * (1 - 1e-12)
    assert plan.delta(math.log(4)) == pytest.approx(float(truth), rel=1e-4)


def discrete_moment(scale, sensitivity, z):
    base = mp.exp(-1 / mp.mpf(scale))
    norm = (1 - base) / (1 + base)
    return mp.nsum(
        lambda x: norm * base ** abs(x) * mp.exp(z * (abs(x - sensitivity) - abs(x)) / mp.mpf(scale)), [-mp.inf, mp.inf]
    )


@pytest.mark.parametrize("z", [0.5, 3.0, 2.0 + 7.0j, 0.1 + 100.0j])
def test_transforms_by_quadrature(z):
    """Closed forms against the definition E exp(z loss), and within the error they state."""

    def check(family, exact):
        at_tilt = math.exp(float(family.log_moments(np.array([z.real]))[0, 0]))
        ratio = family.ratio(z.real, np.array([z.imag]), slice(None), 1.0)[0, 0]
        value = at_tilt * ratio * np.exp(1j * z.imag * family.pivot)
        assert abs(value - complex(exact)) <= 1e-11 * at_tilt

    z = complex(z)
    one = np.ones(1)
    with mp.workdps(30):
        e = mp.mpf("0.75")
        inner = mp.quad(lambda x: mp.exp(-x) / 2 * mp.exp(z * (e - 2 * x)), mp.linspace(0, e, 20))
        check(Laplaces(0.75 * one, one), inner + mp.exp(z * e) / 2 + mp.exp(-e - z * e) / 2)
        density = mp.quad(lambda x: mp.exp(x / 2 + z * x), mp.linspace(-e, e, 20)) / (4 * mp.sinh(e / 2))
        check(BoundedRange(0.75 * one, one), density)
        total = mp.exp(e) + 4
        check(Responses(0.75 * one, one, 3 * one), (mp.exp(e + z * e) + mp.exp(-z * e) + 3) / total)
        check(DiscreteLaplaces(0.75 * one, one, 4 * one, 3 * one), discrete_moment(4, 3, z))
        check(DiscreteLaplaces(0.5 * one, one, 2 * one, 1 * one), discrete_moment(2, 1, z))


def test_bounded_range_pair_dominates_every_profile():
    """Soundness rule 23: for every t, the pair with losses t - e and t lies below the pair used."""
    e = 0.8
    for x in np.exp(np.linspace(-e, e, 41)):
        envelope = (math.exp(e / 2) - math.sqrt(x)) ** 2 / math.expm1(e)
        each = [(math.exp(e) - math.exp(t)) / math.expm1(e) * max(0.0, 1 - x * math.exp(-t)) for t in np.linspace(0, e)]
        assert max(each) <= envelope + 1e-15
        if x >= 1.0:
            plan = PLD(ExponentialMechanism(e))
            assert plan.delta_lower(math.log(x)) - 1e-12 <= envelope <= plan.delta(math.log(x)) + 1e-12
    assert PLD(ExponentialMechanism(0.1).times(100)).epsilon(1e-6) < PLD(Pure(0.1).times(100)).epsilon(1e-6)


def exact_curve(losses, epsilon):
    return float(losses.mass @ np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - losses.loss))) + losses.infinite)


def sampled_gaussian_curve(mean, rate, direction, epsilon):
    """The exact hockey-stick divergence, by mpmath."""
    x = mp.exp(epsilon)
    bare = (x - 1 + rate) / rate if direction == "remove" else (1 / x - 1 + rate) / rate
    if bare <= 0:
        return mp.mpf(0) if direction == "add" else 1 - x
    edge = (mp.log(bare) + mp.mpf(mean) ** 2 / 2) / mean
    if direction == "remove":
        mixed = (1 - rate) * mp.ncdf(-edge) + rate * mp.ncdf(mean - edge)
        return mixed - x * mp.ncdf(-edge)
    mixed = (1 - rate) * mp.ncdf(edge) + rate * mp.ncdf(edge - mean)
    return mp.ncdf(edge) - x * mixed


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("mean", "rate"), [(1.0, 0.01), (3.0, 0.3), (0.2, 0.5)])
def test_discretised_losses_enclose_the_exact_curve(direction, mean, rate):
    """Connect-the-dots lies above the curve, its counterpart below, everywhere."""
    step = 1 / 64
    above = gaussian_losses(mean, rate, direction, "upper", step)
    below = gaussian_losses(mean, rate, direction, "lower", step)
    for epsilon in np.linspace(-0.5, 3.0, 57):
        exact = float(sampled_gaussian_curve(mean, rate, direction, epsilon))
        assert exact_curve(below, epsilon) <= exact + 1e-14
        assert exact <= exact_curve(above, epsilon) + 1e-14


def test_sampled_laplace_pairs_enclose_each_other():
    for direction in ("remove", "add"):
        fine = sampled_losses(connect_dots(laplace_cells(1.0, 1024)), 0.1, direction)
        for epsilon in np.linspace(-0.1, 0.2, 31):
            curves = [
                exact_curve(sampled_losses(make(laplace_cells(1.0, 16)), 0.1, direction), epsilon)
                for make in (merge_cells, connect_dots)
            ]
            assert curves[0] <= exact_curve(fine, epsilon) + 1e-15 <= curves[1] + 2e-15


def test_mutant_rounding_losses_down_breaks_the_bound():
    """Losses rounded down to the grid, one sampled Gaussian: the curve falls below the exact one."""
    step = 1 / 16
    sound = gaussian_losses(1.0, 0.3, "remove", "upper", step)
    fine = gaussian_losses(1.0, 0.3, "remove", "upper", step / 64)
    mutant = Losses(fine.mass, np.floor(fine.loss / step) * step, fine.infinite, fine.relative, fine.absolute)
    exact = float(sampled_gaussian_curve(1.0, 0.3, "remove", 0.3))
    assert exact_curve(sound, 0.3) >= exact
    assert exact_curve(mutant, 0.3) < exact * (1 - 1e-2)
    composition = Composition([Lattice(mutant, step, 4)], 0.0, 0.0, 0.0, step, True)
    assert delta_bounds(composition, 0.3)[1] < PLD(PoissonSubsampled(Gaussian(1.0), 0.3).times(4)).delta_lower(0.3)


def smooth_everything(monkeypatch, change=lambda smoothing: smoothing):
    """Have every payoff smoothed that is on no lattice, by a thousandth of what a factor e takes."""
    walk = inversion_module.Contour._walk

    def smoothed(self, last, smoothing):
        smoothing = 0.0 if self._composition.lattice else 1e-3 / self.tilt
        walk(self, 12 / smoothing if smoothing else last, smoothing)
        self._smoothing = change(smoothing)

    monkeypatch.setattr(inversion_module.Contour, "_walk", smoothed)


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 4.0, 5.0, 9.9])
@pytest.mark.parametrize("rate", [None, 0.2])
def test_smoothed_payoffs_enclose_the_curve(monkeypatch, epsilon, rate):
    """Atoms, whose transform fades at no frequency: alone, and beside a sample that is on a grid."""
    events = [Pure(0.1).times(100)] if rate is None else [Pure(0.1).times(100), PoissonSubsampled(Gaussian(2.0), rate)]
    plan = PLD(events)
    low, high = plan.delta_lower(epsilon), plan.delta(epsilon)
    smooth_everything(monkeypatch)
    rough = PLD(events)
    assert rough.delta_lower(epsilon) <= high
    assert low <= rough.delta(epsilon) <= high * 1.01
    assert rough.epsilon_lower(high) <= epsilon * (1 + GAP)
    assert rough.epsilon(low) >= epsilon * (1 - GAP)
    if rate is None:
        assert rough.delta_lower(epsilon) <= responses_profile(100, 0.1, epsilon) <= rough.delta(epsilon)


def test_mutant_that_smooths_the_wrong_way(monkeypatch):
    smooth_everything(monkeypatch, lambda smoothing: -smoothing)
    plan = PLD(Pure(0.1).times(100))
    assert not plan.delta_lower(4.0) <= responses_profile(100, 0.1, 4.0) <= plan.delta(4.0)


def test_a_large_loss_beside_a_small_sample():
    """What the rest of the curve hangs on: the atoms of Laplace noise, and the tail of a sampled Gaussian."""
    plan = PLD([Laplace(2.0), PoissonSubsampled(Gaussian(1.0), 0.01)])
    for delta in (1e-6, 1e-9):
        assert plan.epsilon(delta) - plan.epsilon_lower(delta) <= GAP * plan.epsilon(delta)


def test_mutant_without_the_cut_off_error(monkeypatch):
    """Without the bound on frequencies left out, the upper bound of a lattice is no bound."""
    monkeypatch.setattr(inversion_module, "_MOST_FREQUENCIES", 64)
    plan = PLD(Pure(0.1).times(100))
    truth = responses_profile(100, 0.1, 4.0)
    low, high = plan.delta_lower(4.0), plan.delta(4.0)
    assert low <= truth <= high
    original = inversion_module.Contour.__init__

    def careless(self, *arguments):
        original(self, *arguments)
        self._cut = 0.0

    monkeypatch.setattr(inversion_module.Contour, "__init__", careless)
    fooled = PLD(Pure(0.1).times(100))
    assert not fooled.delta_lower(4.0) <= truth <= fooled.delta(4.0)


def test_wrap_around_is_counted():
    """A period so short that the curve wraps: the sum is too large, and the lower bound knows."""
    composition = Composition([], 1.0, 0.0, 0.0)
    contour = inversion_module.Contour(composition, 2.0, lambda tilt: 1e-6)
    exact = float(mp.log(mp.ncdf(-1.5) - mp.exp(2) * mp.ncdf(-2.5)))
    assert contour.log_bounds(2.0)[0] <= exact <= contour.log_bounds(2.0)[1]
    assert contour._wrapped(2.0) < exact - 15.0
    contour._width /= 4.0
    assert contour._wrapped(2.0) > exact - 5.0


def test_infinite_and_empty():
    plan = PLD([Approximate(0.5, 1e-3).times(2), Laplace(1.0)])
    infinite = 1 - (1 - 1e-3) ** 2
    assert plan.epsilon(1e-3) == plan.epsilon(0) == math.inf
    assert plan.epsilon(infinite * (1 + 1e-9)) == pytest.approx(2.0, abs=1e-3)
    assert plan.delta(5.0) == pytest.approx(infinite)
    assert PLD(Laplace(2.0).times(3)).epsilon(0) == pytest.approx(1.5)
    assert PLD(Gaussian(1.0)).epsilon(0) == math.inf
    assert PLD(Approximate(0.0, 0.1)).delta(0.0) == pytest.approx(0.1)


def test_partitions():
    """Soundness rule 13: a unit lies in one part of each partition; both are taken at their worst, together."""
    parts = Partitioned((Laplace(5.0).times(4), Gaussian(4.0)))
    separate = [PLD(Laplace(5.0).times(4)), PLD(Gaussian(4.0))]
    for delta in (1e-2, 1e-9):
        assert PLD(parts).epsilon(delta) == max(plan.epsilon(delta) for plan in separate)
    mixed = PLD(parts.times(2)).epsilon(1e-6)
    assert mixed >= PLD([Laplace(5.0).times(4), Gaussian(4.0)]).epsilon_lower(1e-6)
    assert not PLD.applies([Partitioned((Laplace(5.0 + i), Gaussian(4.0))) for i in range(7)])


def test_sampling_simplifies():
    sampled = PoissonSubsampled(Gaussian(3.0).times(4), 0.5)
    assert PLD(sampled) == PLD(PoissonSubsampled(Gaussian(1.5), 0.5))
    assert PLD(PoissonSubsampled(PoissonSubsampled(Laplace(1.0), 0.5), 0.5)) == PLD(
        PoissonSubsampled(Laplace(1.0), 0.25)
    )
    assert PLD(PoissonSubsampled(Composed((Laplace(1.0), Pure(1.0))), 1.0)) == PLD([Laplace(1.0), Pure(1.0)])
    for event in (DiscreteLaplace(2.0), RandomizedResponse(0.5), Pure(0.5), ExponentialMechanism(0.5)):
        plan = PLD(PoissonSubsampled(event, 0.1))
        assert plan.epsilon(0) == pytest.approx(math.log1p(0.1 * math.expm1(0.5)))
    delta = PLD(PoissonSubsampled(Approximate(0.5, 1e-3), 0.1)).delta(1.0)
    assert delta == pytest.approx(1e-4)


def test_against_dp_accounting():
    """An independent implementation, pessimistic and optimistic, over random mixtures."""
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution as oracle

    makers = {
        Laplace: lambda e, **how: oracle.from_laplace_mechanism(e.scale, e.sensitivity, **how),
        Gaussian: lambda e, **how: oracle.from_gaussian_mechanism(e.scale, sensitivity=e.sensitivity, **how),
        DiscreteLaplace: lambda e, **how: oracle.from_discrete_laplace_mechanism(1 / e.scale, e.sensitivity, **how),
        RandomizedResponse: lambda e, use_connect_dots, **how: oracle.from_randomized_response(
            e.categories / (math.exp(e.epsilon) + e.categories - 1), e.categories, **how
        ),
        PoissonSubsampled: lambda e, **how: oracle.from_gaussian_mechanism(
            e.event.scale, sensitivity=e.event.sensitivity, sampling_prob=e.rate, **how
        ),
    }
    event = st.one_of(
        st.builds(Laplace, st.floats(2.0, 30.0), st.floats(0.5, 2.0)),
        st.builds(Gaussian, st.floats(3.0, 30.0)),
        st.builds(DiscreteLaplace, st.floats(3.0, 30.0), st.integers(1, 4)),
        st.builds(RandomizedResponse, st.floats(0.05, 0.5), st.integers(2, 5)),
        st.builds(PoissonSubsampled, st.builds(Gaussian, st.floats(0.8, 3.0)), st.sampled_from([0.01, 0.1])),
    )

    @settings(max_examples=8, deadline=None)
    @given(st.lists(st.tuples(event, st.integers(1, 40)), min_size=1, max_size=4), st.sampled_from([1e-3, 1e-6, 1e-9]))
    def check(chosen, delta):
        theirs = {}
        for pessimistic in (True, False):
            how = {"value_discretization_interval": 1e-3, "pessimistic_estimate": pessimistic}
            parts = [makers[type(e)](e, use_connect_dots=pessimistic, **how).self_compose(k) for e, k in chosen]
            total = functools.reduce(lambda one, other: one.compose(other), parts)
            theirs[pessimistic] = total.get_epsilon_for_delta(delta)
        plan = PLD([each.times(count) for each, count in chosen])
        low, high = plan.epsilon_lower(delta), plan.epsilon(delta)
        # Of 1,000 mixtures one is known to 0.2%: a few atoms and small samples, whose loss spreads over 100 epsilons.
        assert 0.0 <= high - low <= 5 * GAP * high + 1e-9
        assert low <= theirs[True] * (1 + 1e-6) + 1e-9
        assert theirs[False] <= high * (1 + 1e-6) + 1e-9

    check()


def test_a_million_queries_with_a_thousand_scales():
    scales = np.linspace(1000.0, 3000.0, 1000)
    events = [(Laplace if i % 2 else Gaussian)(float(scale)).times(1000) for i, scale in enumerate(scales)]
    events += [Laplace(float(scale) + 0.5).times(1000) for scale in scales]
    plan = PLD(events)
    assert plan.epsilon_lower(1e-6) <= plan.epsilon(1e-6) <= plan.epsilon_lower(1e-6) * (1 + GAP)
