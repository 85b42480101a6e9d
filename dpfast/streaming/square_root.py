"""The square root of the prefix sums as a counter: the least error of all here, at a cost that grows with the stream.

A step measures a row of C x, C the matrix of `dpfast.strategies.square_root`, exactly in whole numbers and then with
noise, and what is published is computed from such measurements alone. Both need all increments and all measurements so
far: for a horizon of T steps T numbers of each are kept for every counter, and a step takes T multiplications.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget
from dpfast.errors import ParameterError
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.randomness import RandomSource
from dpfast.strategies.square_root import SquareRoot
from dpfast.strategies.strategy import LARGEST_TOTAL
from dpfast.streaming.method import Found, Method, State, noise_for
from dpfast.streaming.unit import Norms, StreamUnit

__all__ = ["LARGEST_KEPT", "SquareRootCounter"]

LARGEST_KEPT = 2**26
"""Numbers of each kind that are kept at most."""

_LONGEST = 2**20
#: Coefficients are multiples of 2**-20, and noise is in such parts as well.
_LARGEST_SCALE = 2.0**58


class SquareRootCounter(Method):
    """Gaussian noise on the square root of the prefix sums.

    References
    ----------
    Fichtenberger, Henzinger, Upadhyay (2023); Henzinger, Upadhyay, Upadhyay (2023).

    """

    name: ClassVar[str] = "square_root"

    def __init__(self, horizon: int, unit: StreamUnit, budget: Budget, found: Found | None = None) -> None:
        super().__init__(horizon)
        if horizon > _LONGEST:
            raise ParameterError("horizon", horizon, "at most 2**20 for the square root", 'use mechanism="blt"')
        strategy = SquareRoot(horizon)
        self.coefficients = strategy.coefficients
        squared = strategy.l2_squared
        if unit.max_steps > 1:
            # Coefficients do not rise: the first columns add up to the longest sum (`dpfast.streaming.toeplitz`, 2).
            sums = np.cumsum(self.coefficients)
            sums[unit.max_steps :] -= sums[: -unit.max_steps].copy()
            squared = sum(entry**2 for entry in sums.tolist())
        self.noise = noise_for(budget, unit, Norms(0, Fraction(squared)), gaussian=True, largest=_LARGEST_SCALE)
        first = np.zeros((1, horizon))
        first[0, 0] = 1.0
        #: A prefix is the sum of these times the measurements, the last one's first.
        self.shares = np.cumsum(strategy.reconstruct_rows(first)[0])
        self._largest = LARGEST_TOTAL // strategy.row

    @property
    def largest_increment(self) -> int:
        """See `Method.largest_increment`: here measurements must stay in 64 bits."""
        return self._largest

    def variances(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """See `Method.variances`."""
        return np.asarray(np.cumsum(self.shares**2)[steps - 1] * self.noise.deviation**2)

    def mean_variance(self) -> float:
        """See `Method.mean_variance`."""
        return float(self.variances(np.arange(1, self.horizon + 1)).mean())

    def begin(self, counters: int) -> State:
        """See `Method.begin`."""
        if self.horizon * counters > LARGEST_KEPT:
            mend = 'use mechanism="blt"'
            raise ParameterError("counters", counters, f"at most {LARGEST_KEPT // self.horizon} for this horizon", mend)
        return _SquareRootState(self.noise, self.coefficients, self.shares, counters)


class _SquareRootState(State):
    """All increments, and all measurements, a row for each step."""

    def __init__(
        self,
        noise: IntegerNoise,
        coefficients: NDArray[np.int64],
        shares: NDArray[np.float64],
        counters: int,
    ) -> None:
        self._noise, self._coefficients, self._shares = noise, coefficients, shares
        shape = (coefficients.size, counters)
        super().__init__(increments=np.zeros(shape, np.int64), measured=np.zeros(shape, np.int64))

    def advance(
        self, increments: NDArray[np.int64], limit: int, source: RandomSource, threads: int | None
    ) -> NDArray[np.int64]:
        """See `State.advance`."""
        given, measured = self.arrays["increments"], self.arrays["measured"]
        stop = self.step + 1
        np.clip(increments, -limit, limit, out=given[self.step])
        exact = self._coefficients[:stop][::-1] @ given[:stop]
        measured[self.step] = self._noise.add(exact, source, threads)
        self.step = stop
        return np.asarray(np.rint(self._shares[:stop][::-1] @ measured[:stop]), np.int64)
