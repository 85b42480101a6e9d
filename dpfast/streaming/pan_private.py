"""The pan-private counter: its own state, seen once by an intruder, tells no more than its figures."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget
from dpfast.accounting.events import Pure, Single
from dpfast.errors import ParameterError
from dpfast.exact.balls import written_below
from dpfast.kernels.streaming import trees as kernels
from dpfast.ledger import Charge
from dpfast.mechanisms.noise.gradual_release import LARGEST_SCALE
from dpfast.mechanisms.noise.integer_noise import IntegerNoise, laplace_of_epsilon
from dpfast.randomness import RandomSource
from dpfast.streaming.method import Found, Method, State
from dpfast.streaming.unit import Norms, StreamUnit

__all__ = ["PanPrivate"]


class PanPrivate(Method):
    """The event-level counter whose state is noisy too.

    A counter begins as noise, and increments are added to it. For each of the k = ceil(lg T) lengths 1, 2, 4, ... the
    interval of that length in which a step lies has noise of its own, made when the interval begins and wiped out when
    it ends; a figure is the counter and the k noises. All is discrete Laplace noise of scale (1 + k) s / epsilon, where
    s is how far a unit moves all increments together.

    Proof. Let one increment at step a change by 1, and an intruder see the state after step t. Pairs of noises give the
    same figures and state in both streams. If a <= t, the counter's first noise makes up for the change from a on and
    is off by 1 before; steps 1, ..., a - 1 are a union of at most k intervals, one of a length, whose noises make up
    for that, and none of them is there at t. If a > t, steps a, ..., T are a union of at most k such intervals, none of
    which began by t. So at most 1 + k noises move by 1, each of which changes its probability by a factor of at most
    exp(1 / scale). A change of s is s such changes.

    References
    ----------
    Dwork, Naor, Pitassi, Rothblum (2010). Dwork, Roth (2014), figure 12.2 and theorem 12.5.

    """

    name: ClassVar[str] = "pan_private"

    def __init__(self, horizon: int, unit: StreamUnit, budget: Budget, found: Found | None = None) -> None:
        super().__init__(horizon)
        self.levels = (horizon - 1).bit_length()
        moved = (1 + self.levels) * unit.l1(Norms(unit.max_steps, Fraction(0)))
        mend = "raise it, or count in coarser units"
        self.noise: IntegerNoise = laplace_of_epsilon(moved, budget.units, mend=mend)
        if self.noise.scale >= LARGEST_SCALE:
            # Beyond, noise lies on a coarser grid than increments do, and would not make up for a change by 1.
            allowed = "larger: pan-private noise must be below 2**25"
            raise ParameterError("epsilon", float(budget.amount), allowed, mend)
        self._pure = Pure(written_below(budget.units))

    @property
    def event(self) -> Single:
        """See `Method.event`: figures and state together."""
        return self._pure

    def charge(self, budget: Budget, description: str) -> Charge:
        """See `Method.charge`."""
        return Charge(budget.units, 0, description, self._pure)

    def variances(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """See `Method.variances`."""
        return np.full(steps.size, self.mean_variance())

    def mean_variance(self) -> float:
        """See `Method.mean_variance`."""
        return (1 + self.levels) * self.noise.deviation**2

    def begin(self, counters: int) -> State:
        """See `Method.begin`."""
        return _PanPrivateState(self.noise, self.levels, counters)


class _PanPrivateState(State):
    """A noisy counter, and the noise of the intervals that go on: an intruder may see all of it, once."""

    def __init__(self, noise: IntegerNoise, levels: int, counters: int) -> None:
        self._noise = noise
        super().__init__(counter=np.zeros(counters, np.int64), intervals=np.zeros((levels, counters), np.int64))

    def advance(
        self, increments: NDArray[np.int64], limit: int, source: RandomSource, threads: int | None
    ) -> NDArray[np.int64]:
        """See `State.advance`."""
        counter, intervals = self.arrays["counter"], self.arrays["intervals"]
        nothing = np.zeros(counter.size, np.int64)
        if self.step == 0:
            counter[:] = self._noise.add(nothing, source, threads)
        for level, interval in enumerate(intervals):
            if self.step % (1 << level) == 0:
                interval[:] = self._noise.add(nothing, source, threads)
        kernels.open_nodes(increments, np.int64(limit), counter, nothing, np.empty(counter.size, np.int64))
        figures = counter + intervals.sum(axis=0)
        self.step += 1
        for level, interval in enumerate(intervals):
            if self.step % (1 << level) == 0:
                interval[:] = 0
        return np.asarray(figures, np.int64)
