"""Accountants that never say more than the plain sums: what basic composition holds, holds beside every theorem."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dpfast.accounting.accountants.accountant import (
    Accountant,
    TargetDelta,
    TargetEpsilon,
    checked_delta,
    checked_epsilon,
)
from dpfast.accounting.accountants.basic import Basic
from dpfast.accounting.events import Events
from dpfast.errors import ParameterError

__all__ = ["Capped"]


@dataclass(frozen=True)
class Capped(Accountant):
    """The smaller of a theorem's figure and of basic composition's.

    Guarantee
        Both are true of the same events, whose parameters are fixed in advance, and so the smaller is. Where an
        event has no epsilon of its own (Gaussian noise), the theorem's figure stands alone.

    Examples
    --------
    >>> from dpfast.accounting.events import Events, Pure
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
        object.__setattr__(self, "_sums", sums)

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
