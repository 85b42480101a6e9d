"""Accountants that never say more than the plain sums: what basic composition holds, holds beside every theorem."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction

from flint import arb

from dpfast.accounting.accountants.accountant import (
    Accountant,
    Events,
    TargetDelta,
    TargetEpsilon,
    checked_delta,
    checked_epsilon,
)
from dpfast.accounting.accountants.basic import Basic
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.exact.balls import ball, float_above, working_precision

__all__ = ["Capped", "Converted"]


@dataclass(frozen=True, repr=False)
class Capped(Accountant):
    """The smaller of a theorem's figure and of basic composition's.

    Guarantee
        Both are true of the same events, whose parameters are fixed in advance, and so the smaller is. Where an
        event has no epsilon of its own (Gaussian noise), the theorem's figure stands alone.

    Examples
    --------
    >>> from dpfast.accounting.events import Pure
    >>> from dpfast.accounting.accountants.rdp import RDP
    >>> RDP(Pure(1e-9)).epsilon(1e-6)
    1e-09

    """

    _sums: Basic | None = field(init=False, repr=False, compare=False)

    def _keep_sums(self, events: Events) -> None:
        """Add the events up plainly, where that can be done."""
        try:
            sums: Basic | None = Basic(events)
        except ParameterError:
            sums = None
        self._set(_sums=sums)

    def epsilon(self, delta: TargetDelta) -> float:
        """Return an epsilon at which the events are (epsilon, delta)-private; infinity where none is known."""
        target = checked_delta(delta)
        sums = math.inf if self._sums is None else self._sums.epsilon(target)
        return min(self._epsilon(target), sums)

    def delta(self, epsilon: TargetEpsilon) -> float:
        """Return a delta at which the events are (epsilon, delta)-private; 1 where none is known."""
        target = checked_epsilon(epsilon)
        sums = 1.0 if self._sums is None else self._sums.delta(target)
        # Where the sums are within a rounding of nothing, the theorem's work would be in vain.
        return 0.0 if sums == 0.0 else min(self._delta(target), sums)


class Converted(Capped):
    """A theorem that turns a sum of its own into an epsilon for a delta; deltas of events are added beside it."""

    delta_units: int

    @property
    @abstractmethod
    def _is_nothing(self) -> bool:
        """Whether the sum is 0."""

    @abstractmethod
    def _epsilon_beside(self, slack: Fraction) -> float:
        """Return the theorem's epsilon at a delta above 0, of a sum above 0."""

    @abstractmethod
    def _delta_beside(self, target: Fraction) -> arb:
        """Return the theorem's delta at an epsilon, of a sum above 0."""

    def _epsilon(self, target: Fraction) -> float:
        slack = target - Fraction(self.delta_units, UNITS_PER_ONE)
        if self._is_nothing:
            return 0.0 if slack >= 0 else math.inf
        return self._epsilon_beside(slack) if slack > 0 else math.inf

    def _delta(self, target: Fraction) -> float:
        with working_precision():
            deltas = ball(Fraction(self.delta_units, UNITS_PER_ONE))
            return min(1.0, float_above(deltas if self._is_nothing else self._delta_beside(target) + deltas))
