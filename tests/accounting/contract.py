"""What holds of every accountant: a test class to inherit."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfast.accounting.events import Approximate, Composed, Laplace, Partitioned, Pure, RandomizedResponse, Repeated
from dpfast.errors import ParameterError

from .truth import DIGITS, composed, profile, response

DELTAS = [0, 1e-300, 1e-30, 1e-12, 1e-6, 1e-3, 0.1, 0.9]
EPSILONS = [0, 1e-9, 0.01, 0.5, 1, 3, 10, 100, 1e5]
CLOSE = 1.0 + 1e-9
FEW = settings(max_examples=12, deadline=None)

BAD_DELTAS = [-1e-9, 1, 1.0, 2, math.nan, math.inf, True, "0.1", b"1", None, [0.1], 1j, np.array([0.1, 0.2])]
BAD_DELTAS += [Decimal("NaN"), Decimal(1), Fraction(3, 2), np.float32("nan")]
BAD_EPSILONS = [-1e-9, -1, math.nan, math.inf, -math.inf, True, "1", None, [1], 1j, Fraction(-1, 2), 10**400]
BAD_EPSILONS += [Decimal("Infinity"), np.float64("nan")]
BAD_EVENTS = ["Laplace", 3, None, [1.0], [Laplace(1.0), "Laplace"], Laplace, 0.5]


class AccountantContract:
    """Inherit it, name the accountant and give it something to do."""

    accountant: ClassVar[Any]
    #: Events that have a place in it, and events that have none.
    takes: ClassVar[tuple[Any, ...]]
    refuses: ClassVar[tuple[Any, ...]]
    #: Whether all events must be equal.
    equal_only: ClassVar[bool] = False

    def mixtures(self) -> st.SearchStrategy:
        runs = st.tuples(st.sampled_from(self.takes), st.integers(1, 50))
        mixed = st.lists(runs, min_size=1, max_size=1 if self.equal_only else 5)
        return mixed.map(lambda chosen: tuple(event.times(count) for event, count in chosen))

    def test_bounds_fall(self):
        @FEW
        @given(self.mixtures())
        def check(events):
            accountant = self.accountant(events)
            epsilons = [accountant.epsilon(delta) for delta in DELTAS]
            deltas = [accountant.delta(epsilon) for epsilon in EPSILONS]
            assert all(epsilon >= 0.0 for epsilon in epsilons)
            assert all(0.0 <= delta <= 1.0 for delta in deltas)
            assert all(low <= high * CLOSE for high, low in pairwise(epsilons))
            assert all(low <= high * CLOSE for high, low in pairwise(deltas))

        check()

    def test_inverses_agree(self):
        @FEW
        @given(self.mixtures())
        def check(events):
            accountant = self.accountant(events)
            for delta in DELTAS[2:]:
                epsilon = accountant.epsilon(delta)
                if epsilon < math.inf:
                    assert accountant.delta(epsilon) <= delta * CLOSE
            for epsilon in EPSILONS:
                delta = accountant.delta(epsilon)
                if 1e-300 < delta < 1.0:
                    assert accountant.epsilon(min(delta * CLOSE, 1 - 1e-16)) <= epsilon * CLOSE + 1e-12

        check()

    def test_more_never_costs_less(self):
        @FEW
        @given(self.mixtures(), st.data())
        def check(events, data):
            more = data.draw(st.sampled_from([events[0].event, *([] if self.equal_only else self.takes)]))
            few, many = self.accountant(events), self.accountant((*events, more))
            for delta in DELTAS:
                assert few.epsilon(delta) <= many.epsilon(delta) * CLOSE
            for epsilon in EPSILONS:
                assert few.delta(epsilon) <= many.delta(epsilon) * CLOSE

        check()

    def test_order_and_grouping_do_not_matter(self):
        @FEW
        @given(self.mixtures())
        def check(events):
            one = self.accountant(events)
            assert one == self.accountant(events[::-1]) == self.accountant(Composed(events))
            spread = [event.event for event in events for _ in range(event.count)]
            assert one == self.accountant(spread) == self.accountant(iter(spread))
            assert one.epsilon(1e-6) == self.accountant(spread).epsilon(1e-6)

        check()

    def test_runs_merge(self):
        for event in self.takes:
            assert self.accountant([event] * 100) == self.accountant(Repeated(event, 100))

    def test_nothing_costs_nothing(self):
        nothing = self.accountant(())
        assert nothing.epsilon(0) == nothing.epsilon(0.5) == nothing.delta(0) == nothing.delta(3.0) == 0.0

    def test_a_partition_costs_its_dearest_part(self):
        for event in self.takes:
            parts = Partitioned((event, event))
            assert self.accountant(parts).epsilon(1e-6) == self.accountant(event).epsilon(1e-6)

    def test_applies(self):
        for event in self.takes:
            assert self.accountant.applies(event)
            assert self.accountant.applies((event, event.times(3)))
        assert self.accountant.applies(())

    def test_refused_by_name(self):
        for event in self.refuses:
            for nested in (event, event.times(2), Composed((event, event)), Partitioned((event, event))):
                assert not self.accountant.applies(nested)
                with pytest.raises(ParameterError) as caught:
                    self.accountant(nested)
                assert type(event).__name__ in str(caught.value)
                assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("delta", BAD_DELTAS, ids=repr)
    def test_bad_delta(self, delta):
        with pytest.raises(ParameterError, match=r"^delta must be"):
            self.accountant(self.takes[0]).epsilon(delta)

    @pytest.mark.parametrize("epsilon", BAD_EPSILONS, ids=lambda value: repr(value)[:20])
    def test_bad_epsilon(self, epsilon):
        with pytest.raises(ParameterError, match=r"^epsilon must be"):
            self.accountant(self.takes[0]).delta(epsilon)

    @pytest.mark.parametrize("events", BAD_EVENTS, ids=repr)
    def test_bad_events(self, events):
        with pytest.raises(ParameterError, match=r"^events must be"):
            self.accountant(events)
        with pytest.raises(ParameterError):
            self.accountant.applies(events)

    def test_frozen(self):
        accountant = self.accountant(self.takes[0])
        for name in vars(accountant):
            with pytest.raises(AttributeError):
                setattr(accountant, name, 0)


_ONE = st.one_of(
    st.floats(0.01, 3.0).map(lambda e: (Pure(e), response(e))),
    st.tuples(st.floats(0.01, 3.0), st.floats(1e-6, 0.2)).map(lambda x: (Approximate(*x), response(*x))),
    st.tuples(st.floats(0.01, 3.0), st.integers(2, 9)).map(
        lambda x: (RandomizedResponse(*x), response(x[0], 0.0, x[1]))
    ),
)


class BoundsTheTruth:
    """Inherit it beside the contract where events with an epsilon have a place."""

    accountant: ClassVar[Any]
    equal_only: ClassVar[bool] = False

    def instances(self) -> st.SearchStrategy:
        if self.equal_only:
            return st.tuples(_ONE, st.integers(1, 4)).map(lambda x: [x[0]] * x[1])
        return st.lists(_ONE, min_size=1, max_size=4)

    def test_upper_bounds_of_the_exact_profile(self):
        """The worst mechanisms that the events allow, all outcomes added up."""

        @FEW
        @given(self.instances(), st.floats(0.0, 6.0), st.floats(1e-9, 0.9))
        def check(instance, epsilon, delta):
            accountant = self.accountant([event for event, _ in instance])
            outcomes = composed(pair for _, pair in instance)
            with mp.workdps(DIGITS):
                assert accountant.delta(epsilon) >= profile(outcomes, repr(epsilon)) - mp.mpf(10) ** -40
                bound = accountant.epsilon(delta)
                if bound < math.inf:
                    assert profile(outcomes, bound) <= mp.mpf(repr(delta)) * (1 + mp.mpf(10) ** -40)

        check()
