"""Random mixtures of every kind of event: no accountant says more than basic composition, nor less than the truth."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from dpfast.accounting.accountants.advanced import Advanced
from dpfast.accounting.accountants.basic import Basic
from dpfast.accounting.accountants.optimal import Optimal
from dpfast.accounting.accountants.pld import PLD
from dpfast.accounting.accountants.rdp import RDP
from dpfast.accounting.accountants.zcdp import ZCDP
from dpfast.accounting.events import (
    Approximate,
    DiscreteLaplace,
    ExponentialMechanism,
    KeySelection,
    Laplace,
    Partitioned,
    PermuteAndFlip,
    PoissonSubsampled,
    Pure,
    RandomizedResponse,
)

GAP = 1e-3
KINDS = [
    lambda e, d: Laplace(1 / e),
    lambda e, d: DiscreteLaplace(3 / e, 3),
    lambda e, d: ExponentialMechanism(e),
    lambda e, d: PermuteAndFlip(e),
    lambda e, d: RandomizedResponse(e, 4),
    lambda e, d: Pure(e),
    lambda e, d: Approximate(e, d) if d else Pure(e),
    lambda e, d: Approximate(0.0, d) if d else Pure(e),
    lambda e, d: KeySelection(e, d) if d else Pure(e),
    lambda e, d: PoissonSubsampled(Pure(e), 0.3),
    lambda e, d: Partitioned((Laplace(1 / e), Pure(e / 2))),
]


def mixture(generator):
    """Return up to four kinds, epsilon from 1e-9 to 50 and delta from 1e-30 to 0.1 or 0, 1 to 10**6 times each."""
    events = []
    for _ in range(generator.randint(1, 4)):
        epsilon = 10 ** generator.uniform(-9, math.log10(50))
        delta = generator.choice([0.0, 10 ** generator.uniform(-17.9, -1)])
        count = generator.choice([1, 1, 2, 10, 1000, 10**6])
        events.append(generator.choice(KINDS)(epsilon, delta).times(count))
    return tuple(events)


def check(accountant, basic, events, generator):
    profile = accountant(events)
    sums = basic.delta_units / 1e18
    targets = sorted({0.0, 1e-30, 1e-15, 1e-6, 0.1, *([sums, sums * 1.0001] if sums < 0.99 else [])})
    figures = [profile.epsilon(target) for target in targets]
    for target, figure in zip(targets, figures, strict=True):
        most = basic.epsilon(target)
        assert 0.0 <= figure <= most, (accountant, events, target)
        if most < math.inf:
            assert figure < math.inf
        if accountant is PLD:
            assert profile.epsilon_lower(target) <= figure
    # Each of its figures is above the truth by up to the gap.
    slack = 1 + (GAP if accountant is PLD else 1e-9)
    for high, low in itertools.pairwise(figures):
        assert low <= high * slack
    total = basic.epsilon_units / 1e18
    for epsilon in (0.0, total * generator.random(), total, total * 2):
        if epsilon <= 1e300:
            assert 0.0 <= profile.delta(epsilon) <= basic.delta(epsilon), (accountant, events, epsilon)
    return profile


@pytest.mark.parametrize("seed", range(10))
def test_no_more_than_basic_composition(seed):
    """200 mixtures by 10 seeds: epsilon and delta at most basic's, finite where its are, falling in delta."""
    generator = random.Random(seed)
    for _ in range(20):
        events = mixture(generator)
        basic = Basic(events)
        for accountant in (Advanced, ZCDP, RDP, Optimal):
            if accountant.applies(events):
                check(accountant, basic, events, generator)


@pytest.mark.parametrize("seed", range(3))
def test_no_less_than_the_lower_bound(seed):
    """Privacy loss distributions: the lower bound is below every other accountant's figure, and below basic's.

    But for the exponential mechanism, whose pair dominates more than it does (`transforms`): rho may say less.
    """
    generator = random.Random(100 + seed)
    for _ in range(4):
        events = tuple(event.event.times(min(event.count, 1000)) for event in mixture(generator)[:2])
        basic = Basic(events)
        profile = PLD(events)
        for target in (1e-9, 1e-3):
            low, high = profile.epsilon_lower(target), profile.epsilon(target)
            assert low <= high <= basic.epsilon(target)
            for accountant in (Advanced, ZCDP, RDP, Optimal):
                if accountant.applies(events) and not any(isinstance(e.event, ExponentialMechanism) for e in events):
                    assert low <= accountant(events).epsilon(target) * (1 + 1e-9)


@pytest.mark.parametrize("accountant", [Advanced, ZCDP, RDP, Optimal, PLD])
def test_the_issues_example(accountant):
    assert accountant(Pure(1e-9)).epsilon(1e-6) <= 1e-9
