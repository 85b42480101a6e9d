"""Our accountants beside dp_accounting's, over random mixtures."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpfast.accounting.accountants.gdp import GDP
from dpfast.accounting.accountants.optimal import Optimal
from dpfast.accounting.accountants.rdp import ORDERS, RDP
from dpfast.accounting.accountants.zcdp import ZCDP
from dpfast.accounting.events import (
    Composed,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
    runs,
)
from dpfast.accounting.exchange import to_dp_accounting

dp_accounting = pytest.importorskip("dp_accounting")
from dp_accounting.pld import PLDAccountant  # noqa: E402
from dp_accounting.rdp import RdpAccountant  # noqa: E402

slow = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
DELTAS = [1e-9, 1e-6, 1e-3]

SCALES = st.integers(10, 400).map(lambda n: n / 10)
GAUSSIANS = SCALES.map(Gaussian)
RENYI = st.one_of(
    GAUSSIANS,
    SCALES.map(Laplace),
    st.tuples(SCALES, st.sampled_from([0.01, 0.1, 0.5])).map(lambda x: PoissonSubsampled(Gaussian(x[0]), x[1])),
)
NOISE = st.one_of(
    GAUSSIANS, SCALES.map(Laplace), st.tuples(SCALES, st.integers(1, 3)).map(lambda x: DiscreteLaplace(*x))
)


def mixtures(single):
    runs = st.tuples(single, st.integers(1, 30)).map(lambda x: x[0].times(x[1]))
    return st.lists(runs, min_size=1, max_size=4).map(lambda events: Composed(tuple(events)))


#: Some of our orders, so that ours are never worse. At fractions theirs is 1e-3 off, or gives up.
SHARED = [order for order in ORDERS if 2.0 <= order <= 64.0 and order.is_integer()]


@settings(max_examples=15, deadline=None)
@given(mixtures(RENYI))
def test_rdp(event):
    """The same curves order by order, and no larger an epsilon."""
    theirs = RdpAccountant(SHARED)
    theirs.compose(to_dp_accounting(event))
    ours = RDP(event)
    for order, divergence in zip(SHARED, theirs._rdp, strict=True):
        assert ours.curve_units[ORDERS.index(order)] / 1e18 == pytest.approx(divergence, rel=1e-6, abs=1e-12)
    for delta in DELTAS:
        other = theirs.get_epsilon(delta)
        # Where it is 0 they have another theorem, on total variation.
        assert ours.epsilon(delta) <= other * (1.0 + 1e-6) + 1e-9 or other == 0.0


@slow
@given(mixtures(NOISE))
def test_upper_bounds_of_privacy_loss_distributions(event):
    """Soundness rules 21 and 22: no theorem promises less than the composed distribution itself."""
    interval = 1e-4
    theirs = PLDAccountant(value_discretization_interval=interval)
    theirs.compose(to_dp_accounting(event))
    for delta in DELTAS:
        # Theirs is an upper bound too: every run's losses are rounded up to its grid.
        epsilon = theirs.get_epsilon(delta) - interval * sum(runs(event).values())
        for accountant in (RDP(event), ZCDP(event)):
            assert accountant.epsilon(delta) >= epsilon


@slow
@given(mixtures(GAUSSIANS), st.floats(0.0, 5.0))
def test_gaussians(event, epsilon):
    theirs = PLDAccountant(value_discretization_interval=1e-3)
    theirs.compose(to_dp_accounting(event))
    other = theirs.get_delta(epsilon)
    assert GDP(event).delta(epsilon) == pytest.approx(other, rel=0.05, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_optimal_is_randomized_response(epsilon):
    # One by one: of a SelfComposedDpEvent their PLDAccountant counts a randomized response once (0.6.0).
    response = Composed((RandomizedResponse(epsilon),) * 20)
    theirs = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE, value_discretization_interval=epsilon / 100)
    theirs.compose(to_dp_accounting(response))
    assert Optimal(response).epsilon(1e-6) == pytest.approx(theirs.get_epsilon(1e-6), rel=2e-2)
