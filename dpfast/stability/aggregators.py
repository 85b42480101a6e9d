"""How the answers of blocks become one private value: mechanisms in which one answer may be exchanged for another.

Under both relations one privacy unit changes the answer of one block, to anything, and the number of blocks is public.
So an aggregator is private for one number, or one vote, that is exchanged; answers that are none count as a fixed
number, or as no vote.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from ast import literal_eval
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from dpfast.accounting.events import Approximate, PermuteAndFlip, Pure
from dpfast.columns.grid import Bounds, Grid, PublicGrid, check_bounds, public_grid
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.exact.balls import written_below
from dpfast.mechanisms.noise.integer_noise import laplace_of_epsilon
from dpfast.mechanisms.quantiles.quantiles import quantiles
from dpfast.mechanisms.selection.permute_and_flip import permute_and_flip
from dpfast.randomness import RandomSource
from dpfast.stability.answers import Cost
from dpfast.stability.instability import gap_instability
from dpfast.stability.passing import PassingTest
from dpfast.stability.smooth import SmoothNoise, smooth_sensitivity_of
from dpfast.stability.trimming import rank_sum

__all__ = ["Aggregator", "Mean", "Median", "Numeric", "SmoothMean", "UnlistedMode", "VotedMode", "grid_of_means"]

_FINENESS = 30
_COARSENESS = 12


class Aggregator(ABC):
    """A mechanism on the answers of blocks."""

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """What one run costs."""

    @abstractmethod
    def told(self) -> str:
        """Return in words what is done."""

    @abstractmethod
    def run(self, answers: Sequence[bytes], source: RandomSource) -> Any:
        """Return the private value."""


def grid_of_means(bounds: Bounds) -> PublicGrid:
    """Return 2**29 to 2**30 steps between two bounds: sums of 2**20 numbers on them have less than 53 bits."""
    lower, upper = check_bounds(bounds)
    return public_grid((lower, upper), _power_below(lower, upper, _FINENESS), whole=False)


def grid_of_medians(bounds: Bounds, grid: Grid) -> PublicGrid:
    """Return the steps that were given, or 2**11 to 2**12 of them: few blocks cannot tell more apart."""
    lower, upper = check_bounds(bounds)
    return public_grid((lower, upper), _power_below(lower, upper, _COARSENESS) if grid is None else grid, whole=False)


def _power_below(lower: float, upper: float, halvings: int) -> float:
    """Return a power of two that goes into the distance of two bounds so often, and into each bound below 2**53."""
    least = np.frexp(upper / 2.0 - lower / 2.0)[1] + 1 - halvings
    return float(np.ldexp(1.0, max(int(least), int(np.frexp(max(abs(lower), abs(upper)))[1]) - 53, -960)))


@dataclass(frozen=True)
class Numeric(Aggregator):
    """An aggregator of numbers.

    Attributes
    ----------
    grid
        What numbers are rounded to, between the bounds.
    default
        What counts for an answer that is no number.
    epsilon
        In units of 1e-18.

    """

    grid: PublicGrid
    default: float
    epsilon: int

    @property
    def share(self) -> Fraction:
        """Epsilon."""
        return Fraction(self.epsilon, UNITS_PER_ONE)

    def points(self, answers: Sequence[bytes]) -> list[int]:
        """Return the answers in steps of the grid, within the bounds, in ascending order."""
        numbers = [struct.unpack("<d", answer)[0] if answer else self.default for answer in answers]
        lower, upper = self.grid.lower * self.grid.step, self.grid.upper * self.grid.step
        return sorted(round(min(max(number, lower), upper) / self.grid.step) for number in numbers)

    def value(self, steps: Fraction) -> float:
        """Return a number of steps as a number within the bounds."""
        within = min(max(steps, Fraction(self.grid.lower)), Fraction(self.grid.upper))
        return float(within * Fraction(self.grid.step)) + 0.0


@dataclass(frozen=True)
class Mean(Numeric):
    """A mean, trimmed or winsorised or neither, with Laplace noise for the most that one number changes."""

    kind: Literal["mean", "trimmed_mean", "winsorized_mean"]
    blocks: int
    trim: float

    def __post_init__(self) -> None:
        """See that there is such noise."""
        _ = self.cost

    @property
    def cost(self) -> Cost:
        """The noise."""
        return Cost(f"{self.kind} of {self.blocks} blocks", self._noise.event, self.epsilon)

    @property
    def _noise(self) -> Any:
        change = rank_sum(self.kind, self.blocks, self.trim).change
        return laplace_of_epsilon(change * (self.grid.upper - self.grid.lower), self.epsilon)

    def told(self) -> str:
        """Return the mean and its noise in words."""
        scale = self._noise.scale * self.grid.step / rank_sum(self.kind, self.blocks, self.trim).divisor
        return f"aggregator: {self.kind} with Laplace noise of scale {scale:.6g}"

    def run(self, answers: Sequence[bytes], source: RandomSource) -> float:
        """Return the noisy mean."""
        chosen, own = rank_sum(self.kind, self.blocks, self.trim), self.points(answers)
        total = sum(weight * (point - self.grid.lower) for weight, point in zip(chosen.weights, own, strict=True))
        noisy = int(self._noise.add(np.array([total]), source)[0])
        return self.value(self.grid.lower + Fraction(noisy, chosen.divisor))


@dataclass(frozen=True)
class SmoothMean(Numeric):
    """A trimmed mean with noise in proportion to its smooth sensitivity (Bun, Steinke 2019)."""

    delta: int
    blocks: int
    trim: float
    noise: SmoothNoise

    @property
    def cost(self) -> Cost:
        """Noise that follows the data, as the bare amounts."""
        amount = written_below(self.epsilon)
        event = Approximate(amount, written_below(self.delta)) if self.delta else Pure(amount)
        return Cost(f"trimmed mean of {self.blocks} blocks by smooth sensitivity", event, self.epsilon, self.delta)

    def told(self) -> str:
        """Return the noise in words."""
        kind = self.noise.kind.capitalize()
        return f"aggregator: trimmed mean with {kind} noise by its {self.noise.beta:.4g}-smooth sensitivity"

    def run(self, answers: Sequence[bytes], source: RandomSource) -> float:
        """Return the noisy mean."""
        chosen, own = rank_sum("trimmed_mean", self.blocks, self.trim), self.points(answers)
        cut = (self.blocks - chosen.divisor) // 2
        spread = smooth_sensitivity_of(
            np.array(own, np.int64), self.grid.lower, self.grid.upper, self.noise.beta, "replace", cut
        )
        mean = Fraction(sum(own[cut : self.blocks - cut]), chosen.divisor)
        return self.value(Fraction(self.noise.add(mean, Fraction(spread) / chosen.divisor, source)))


@dataclass(frozen=True)
class Median(Numeric):
    """The median by the exponential mechanism."""

    @property
    def cost(self) -> Cost:
        """The exponential mechanism, of pure epsilon."""
        return Cost("median of blocks", Pure(written_below(self.epsilon)), self.epsilon)

    def told(self) -> str:
        """Return the mechanism in words."""
        return f"aggregator: median by the exponential mechanism over {self.grid.describe()}"

    def run(self, answers: Sequence[bytes], source: RandomSource) -> float:
        """Return a point that few answers lie between the median and."""
        drawn = quantiles(
            np.array(self.points(answers)) - self.grid.lower,
            0.5,
            bounds=(0, self.grid.upper - self.grid.lower),
            epsilon=self.share,
            grid=1,
            neighbors="replace",
            random=source,
        )
        return self.value(Fraction(self.grid.lower + int(drawn)))


@dataclass(frozen=True)
class VotedMode(Aggregator):
    """The candidate with most votes, by permute-and-flip: a vote that is exchanged moves each count by 1 at most."""

    candidates: tuple[Any, ...]
    epsilon: int

    @property
    def cost(self) -> Cost:
        """One selection."""
        return Cost("mode of blocks", PermuteAndFlip(written_below(self.epsilon)), self.epsilon)

    def told(self) -> str:
        """Return the selection in words."""
        return f"aggregator: most votes among {len(self.candidates)} candidates, by permute-and-flip"

    def run(self, answers: Sequence[bytes], source: RandomSource) -> Any:
        """Return the candidate."""
        votes = np.bincount([int(answer) for answer in answers if answer], minlength=len(self.candidates))
        if len(self.candidates) == 1:
            return self.candidates[0]
        share = Fraction(self.epsilon, UNITS_PER_ONE)
        return self.candidates[int(permute_and_flip(votes.astype(np.int64), share, random=source))]


@dataclass(frozen=True)
class UnlistedMode(Aggregator):
    """The answer of most blocks, whatever it is, if it leads by enough: None otherwise."""

    test: PassingTest
    changed: int = 1

    @property
    def cost(self) -> Cost:
        """The test."""
        return self.test.cost("mode of blocks, if it is stable")

    def told(self) -> str:
        """Return the test in words."""
        return "aggregator: the answer of most blocks, if it leads by enough; " + self.test.told()

    def run(self, answers: Sequence[bytes], source: RandomSource) -> Any:
        """Return the answer, or None."""
        votes = Counter(answer for answer in answers if answer)
        (first, most), (_, next_) = [*votes.most_common(2), (b"", 0), (b"", 0)][:2]
        passed = self.test.passes(gap_instability(most, next_, 2 * self.changed), source)
        return value_of(first) if passed and first else None


def value_of(answer: bytes) -> Any:
    """Return the value that a label stands for; None for what is too deep to be read."""
    with suppress(Exception):
        return literal_eval(answer.decode())
    return None
