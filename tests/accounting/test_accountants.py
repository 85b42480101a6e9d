"""Every accountant keeps the contract, and reaches the figures known of it."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast.accounting.accountants.advanced import Advanced
from dpfast.accounting.accountants.basic import Basic
from dpfast.accounting.accountants.gdp import GDP
from dpfast.accounting.accountants.optimal import Optimal
from dpfast.accounting.accountants.rdp import ORDERS, RDP, caps
from dpfast.accounting.accountants.rdp import cost as rdp_cost
from dpfast.accounting.accountants.zcdp import ZCDP, largest_rho
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
from dpfast.errors import ParameterError

from .contract import FEW, AccountantContract, BoundsTheTruth
from .truth import responses_profile

PURE = [
    Laplace(10.0),
    DiscreteLaplace(3.0, 2),
    ExponentialMechanism(0.5),
    PermuteAndFlip(0.25),
    RandomizedResponse(1.0, 5),
    Pure(0.1),
    PoissonSubsampled(Laplace(1.0), 0.05),
    Partitioned((Pure(0.3), Laplace(2.0).times(2))),
]
WITH_DELTA = [Approximate(0.2, 1e-8), KeySelection(0.5, 1e-7), PoissonSubsampled(Approximate(1.0, 1e-6), 0.1)]
CONCENTRATED = [Gaussian(5.0), ZeroConcentrated(0.01), PoissonSubsampled(Gaussian(2.0), 0.1)]
CONCENTRATED += [Partitioned((Gaussian(9.0), Pure(0.2)))]
HUNDRED = Pure(0.1).times(100)
LIFETIME = Laplace(801.0).times(10_000)
RARE = math.exp(-32)


class TestBasic(AccountantContract, BoundsTheTruth):
    accountant = Basic
    takes = (*PURE, *WITH_DELTA)
    refuses = (Gaussian(1.0), ZeroConcentrated(0.1))

    def test_golden(self):
        """Row B-1: the sums, and no more."""
        assert Basic(HUNDRED).epsilon(0) == 10.0
        assert Basic(HUNDRED).delta(10) == 0.0
        assert Basic(HUNDRED).delta(9.99) == 1.0
        assert Basic(Approximate(0.1, 1e-8).times(100)).epsilon(1e-6) == 10.0
        assert Basic(Approximate(0.1, 1e-8).times(101)).epsilon(1e-6) == math.inf


class TestAdvanced(AccountantContract, BoundsTheTruth):
    accountant = Advanced
    takes = (*PURE, *WITH_DELTA)
    refuses = (Gaussian(1.0), ZeroConcentrated(0.1))

    def test_golden(self):
        """Erratum E42: 1/801 does not suffice for epsilon 1 over 10,000 by theorem 3.20; 1/812.32 does. Row 13-2."""
        assert Advanced(HUNDRED, drift="book").epsilon(1e-6) == pytest.approx(6.3082310, abs=1e-7)
        assert Advanced(HUNDRED).epsilon(1e-6) == pytest.approx(5.75611, abs=1e-5)
        assert Advanced(LIFETIME, drift="book").epsilon(RARE) == pytest.approx(1.0143473, abs=1e-7)
        assert Advanced(LIFETIME).epsilon(RARE) == pytest.approx(1.0065446, abs=1e-7)
        assert Advanced(Laplace(812.33).times(10_000), drift="book").epsilon(RARE) < 1.0
        assert Advanced(Laplace(812.31).times(10_000), drift="book").epsilon(RARE) > 1.0

    def test_unknown_drift(self):
        with pytest.raises(ParameterError, match=r"^drift must be"):
            Advanced(HUNDRED, drift="none")


class TestOptimal(AccountantContract, BoundsTheTruth):
    accountant = Optimal
    takes = (*PURE, *WITH_DELTA)
    refuses = (Gaussian(1.0), ZeroConcentrated(0.1))
    equal_only = True

    def test_golden(self):
        assert Optimal(HUNDRED).epsilon(1e-6) == pytest.approx(4.7745676, abs=1e-7)
        assert Optimal(LIFETIME).epsilon(RARE) == pytest.approx(0.8904681, abs=1e-7)
        assert Optimal(Laplace(715.51).times(10_000)).epsilon(RARE) == pytest.approx(1.0, abs=1e-5)
        assert Optimal(HUNDRED).epsilon(0) == 10.0

    @FEW
    @given(st.integers(1, 60), st.floats(0.001, 2.0), st.floats(0.0, 1.0))
    def test_exact_binomial_sum(self, count, each, share):
        """Upper bound, and tight to 12 digits."""
        epsilon = share * count * each
        exact = responses_profile(count, each, epsilon)
        found = Optimal(Pure(each).times(count))._pure_delta(Fraction(epsilon))
        assert exact * (1 - mp.mpf(10) ** -40) <= found <= exact * (1 + mp.mpf(10) ** -11) + 1e-300

    @pytest.mark.parametrize(
        ("count", "each"), [(10**6, 1e-3), (10**6, 1.0), (10**9, 1e-5), (10_000, 50.0), (3, 800.0)]
    )
    def test_extremes(self, count, each):
        """Soundness: what is reported is the least there is, checked at its own inverse."""
        accountant = Optimal(Pure(each).times(count))
        epsilon = accountant.epsilon(1e-6)
        assert 0.0 < epsilon < accountant.epsilon(0) * (1 + 1e-12)
        assert accountant.delta(epsilon) <= 1e-6
        assert accountant.delta(epsilon * (1 - 1e-9)) > 1e-6 * (1 - 1e-3)

    def test_a_million(self):
        assert Optimal(Laplace(1000.0).times(10**6)).epsilon(1e-6) == pytest.approx(4.8865, abs=1e-4)

    def test_several_epsilons_are_refused(self):
        with pytest.raises(ParameterError, match="one epsilon and one delta"):
            Optimal((Pure(0.1), Laplace(9.0)))
        assert Optimal((Pure(0.1), Laplace(10.0))) == Optimal(Pure(0.1).times(2))

    def test_coins(self):
        """With delta_1 = 0.1 twice, delta is at least 1 - 0.9**2."""
        coins = Optimal(Approximate(0, 0.1).times(2))
        assert coins.delta(0) == pytest.approx(0.19, abs=1e-12)
        assert coins.epsilon(0.19 - 1e-9) == math.inf
        assert coins.epsilon(0.2) == 0.0
        assert Optimal(Approximate(1.0, 1e-6)).epsilon(1e-6) == 1.0


class TestGDP(AccountantContract):
    accountant = GDP
    takes = (Gaussian(10.0), Gaussian(3.0, 2.0), Partitioned((Gaussian(9.0), Gaussian(4.0).times(3))))
    refuses = (Laplace(1.0), Pure(1.0), Approximate(1.0, 1e-6), ZeroConcentrated(0.1), CONCENTRATED[2])

    def test_golden(self):
        tenth = GDP(Gaussian(10.0).times(100))
        assert tenth.mu == pytest.approx(1.0, abs=1e-15)
        assert tenth.epsilon(1e-6) == pytest.approx(4.8865541, abs=1e-7)
        assert GDP(Gaussian(3.7306316)).delta(1) == pytest.approx(1e-5, rel=1e-6)
        assert tenth.epsilon(0) == math.inf

    @FEW
    @given(st.floats(0.01, 20.0), st.floats(0.0, 30.0))
    def test_integral(self, scale, epsilon):
        """The hockey-stick divergence by quadrature; upper bound, and tight."""
        with mp.workdps(40):
            mu, target = 1 / mp.mpf(scale), mp.mpf(repr(epsilon))
            begin = target / mu - mu / 2
            exact = mp.ncdf(-begin) - mp.exp(target) * mp.ncdf(-begin - mu)
            found = GDP(Gaussian(scale)).delta(epsilon)
            assert exact <= found <= exact * (1 + mp.mpf(10) ** -14) + 1e-300

    def test_delta_does_not_bound_the_loss(self):
        """Erratum E2: (epsilon, delta)-privacy does not make a loss above epsilon as rare as delta."""
        scale = 3.7306316
        assert GDP(Gaussian(scale)).delta(1) <= 1.0001e-5
        above = mp.ncdf(-(scale - 1 / (2 * scale)))
        assert above == pytest.approx(1.612e-4, abs=1e-7)
        assert above > 1e-5


class TestZCDP(AccountantContract, BoundsTheTruth):
    accountant = ZCDP
    takes = (*PURE, *WITH_DELTA, *CONCENTRATED)
    refuses = ()

    def test_golden(self):
        crude = ZCDP(ZeroConcentrated(0.005).times(100))
        assert crude.epsilon(1e-6) == pytest.approx(5.2215344, abs=1e-7)
        assert ZCDP(HUNDRED).epsilon(1e-6) == pytest.approx(5.2190752, abs=1e-6)
        assert ZCDP(LIFETIME).epsilon(RARE) <= 0.9236588
        crude = ZCDP(ZeroConcentrated(0.5 / 801**2).times(10_000))
        assert crude.epsilon(RARE) == pytest.approx(0.9236588, abs=1e-7)
        assert ZCDP(Gaussian(1.0)).epsilon(1e-6) == pytest.approx(5.2215344, abs=1e-7)

    @FEW
    @given(st.floats(1e-6, 50.0), st.floats(1e-12, 0.5))
    def test_largest_rho_is_the_inverse(self, epsilon, delta):
        """Soundness rule 23: a filter's budget, rounded down."""
        units = largest_rho(epsilon, delta)
        if units:
            fits = ZCDP(ZeroConcentrated(units / 10**18 * (1 - 1e-12)))
            assert fits.epsilon(delta) <= epsilon * (1 + 1e-12)
        over = ZCDP(ZeroConcentrated(max(units, 1) / 10**18 * (1 + 1e-6)))
        assert over.epsilon(delta) >= epsilon * (1 - 1e-9) or units == 0

    def test_largest_rho_of_nothing(self):
        assert largest_rho(0, 1e-6) == largest_rho(1.0, 0) == 0
        for bad in ((-1, 1e-6), (1.0, 1.0), (math.nan, 0.1), ("1", 0.1)):
            with pytest.raises(ParameterError):
                largest_rho(*bad)


class TestRDP(AccountantContract, BoundsTheTruth):
    accountant = RDP
    takes = (*PURE, *WITH_DELTA, *CONCENTRATED)
    refuses = ()

    def test_golden(self):
        sampled = PoissonSubsampled(Gaussian(1.0), 0.01).times(1000)
        assert RDP(sampled).epsilon(1e-5) == pytest.approx(2.1013665, abs=2e-6)
        assert RDP(Gaussian(1.0)).epsilon(1e-6) == pytest.approx(5.2215344, rel=1e-3)
        assert RDP(HUNDRED).epsilon(1e-6) < ZCDP(HUNDRED).epsilon(1e-6)
        assert RDP(Laplace(10.0).times(100)).epsilon(1e-6) < RDP(HUNDRED).epsilon(1e-6)

    def test_grid_loses_little_against_zcdp(self):
        for rho in (1e-9, 1e-6, 1e-3, 0.1, 1.0, 10.0):
            one = ZeroConcentrated(rho)
            least = ZCDP(one).epsilon(1e-6)
            assert least * (1 - 1e-12) <= RDP(one).epsilon(1e-6) <= least * (1.005 if rho > 1e-8 else 2.0)

    @FEW
    @given(st.floats(0.1, 20.0), st.floats(1e-12, 0.1))
    def test_caps_are_the_inverse(self, epsilon, delta):
        """Soundness rule 23: within the cap of one order, the conversion holds at that order."""
        for order, cap in list(zip(ORDERS, caps(epsilon, delta), strict=True))[::20]:
            if cap:
                rho = cap / 10**18 / order * (1 - 1e-12)
                assert RDP(ZeroConcentrated(rho)).epsilon(delta) <= epsilon * (1 + 1e-9)
        assert not any(caps(epsilon, 0))

    def test_a_thousand_events(self):
        accountant, plain = RDP([Laplace(50.0 + i) for i in range(1000)]), Basic(Laplace(50.0).times(1000))
        epsilon = accountant.epsilon(1e-6)
        assert 0 < epsilon < plain.epsilon(0)
        assert accountant.delta(epsilon) <= 1e-6 * (1 + 1e-9)


@pytest.mark.parametrize("accountant", [Basic, Advanced, ZCDP, RDP, Optimal])
def test_subsampling_amplifies(accountant):
    """ln(1 + q (e**epsilon - 1)) and q delta (Balle, Barthe, Gaboardi 2018)."""
    whole, sampled = Approximate(1.0, 1e-6), PoissonSubsampled(Approximate(1.0, 1e-6), 0.1)
    assert accountant(sampled).epsilon(1e-5) < accountant(whole).epsilon(1e-5)
    expected = Approximate(math.log1p(0.1 * math.expm1(1.0)), 1e-7)
    assert accountant(sampled).epsilon(1e-5) == pytest.approx(accountant(expected).epsilon(1e-5), rel=1e-9)
    assert accountant(PoissonSubsampled(whole, 1.0)).epsilon(1e-5) == accountant(whole).epsilon(1e-5)
    twice = PoissonSubsampled(PoissonSubsampled(whole, 0.5), 0.2)
    assert accountant(twice).epsilon(1e-5) == pytest.approx(accountant(sampled).epsilon(1e-5), rel=1e-9)


def test_composed_gaussians_on_one_sample():
    """Four answers on one sample are one Gaussian of half the scale on it."""
    four = PoissonSubsampled(Gaussian(2.0).times(4), 0.01)
    assert RDP(four) == RDP(PoissonSubsampled(Gaussian(1.0), 0.01))
    assert RDP(PoissonSubsampled(Composed((Gaussian(2.0), Pure(1.0))), 0.01)) == RDP((Gaussian(2.0), Pure(1.0)))


def test_partition_takes_the_larger_at_every_order():
    """Soundness rule 13: two parts whose curves cross cost more than either, and less than both."""
    parts = (Gaussian(1.0), Pure(1.5))
    both = Partitioned(parts)
    curves = [rdp_cost(part)[0] for part in parts]
    assert rdp_cost(both)[0] == tuple(map(max, *curves)) not in curves
    assert max(RDP(part).epsilon(1e-6) for part in parts) <= RDP(both).epsilon(1e-6) <= RDP(parts).epsilon(1e-6)


def test_the_accountants_agree_on_who_is_tighter():
    """100 x 0.1 at 1e-6: optimal, Laplace's own curve, pure curves, zCDP, tanh, book, basic. Row R-1."""
    figures = [
        Optimal(HUNDRED).epsilon(1e-6),
        RDP(HUNDRED).epsilon(1e-6),
        ZCDP(HUNDRED).epsilon(1e-6),
        Advanced(HUNDRED).epsilon(1e-6),
        Advanced(HUNDRED, drift="book").epsilon(1e-6),
        Basic(HUNDRED).epsilon(1e-6),
    ]
    assert figures == sorted(figures)
