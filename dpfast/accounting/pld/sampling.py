"""The privacy loss of one mechanism on a Poisson sample, from finite pairs.

Zhu, Dong, Wang (2022), theorem 11: if (present, absent) dominates a mechanism for removing a unit, then
((1 - rate) absent + rate present, absent) dominates the mechanism on a Poisson sample for removing one, and the
pair exchanged for adding one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpfast.accounting.pld.pairs import Pair, connect_dots, gaussian_cells, merge_cells
from dpfast.accounting.pld.transforms import ROUNDING, Array, Family

__all__ = ["Atoms", "Direction", "Lattice", "Losses", "Side", "gaussian_losses", "sampled_losses"]

Direction = Literal["remove", "add"]
Side = Literal["upper", "lower"]

# Outcomes that the cheap bound of a transform looks at.
_FEW = 32


@dataclass(frozen=True)
class Losses:
    """A privacy loss with finitely many values, their masses, and the mass at infinity.

    ``relative`` and ``absolute`` bound the relative errors of masses and the absolute ones of losses.
    """

    mass: Array
    loss: Array
    infinite: float
    relative: Array
    absolute: Array


def sampled_losses(pair: Pair, rate: float, direction: Direction) -> Losses:
    """Return the loss of a pair on a sample."""
    mass = (1.0 - rate) * pair.absent + rate * pair.present if direction == "remove" else pair.absent
    kept = mass > 0.0
    ratio, relative = pair.log_ratio[kept], pair.relative[kept]
    loss = np.logaddexp(np.log1p(-rate), np.log(rate) + ratio)
    size = np.where(np.isfinite(ratio), np.abs(ratio), 0.0)
    return Losses(
        mass[kept],
        loss if direction == "remove" else -loss,
        rate * pair.infinite if direction == "remove" else 0.0,
        relative + 8.0 * ROUNDING,
        relative + ROUNDING * (8.0 + 8.0 * size),
    )


def gaussian_losses(mean: float, rate: float, direction: Direction, side: Side, step: float) -> Losses:
    """Return a loss in multiples of `step` that dominates that of a sampled Gaussian, or is dominated.

    *Upper*: dots at every loss that is a multiple of the step, connected; what lies between two multiples (the
    cells are cut finer) is split between them once more, keeping both masses.

    *Lower*: all between two multiples is merged, and one half sent to either of the two; there the ratio is
    about right, being averaged over the cells on both sides, and the larger mass is cut to make it so. Merging
    and sending at random are post-processing, and cutting lowers the hockey-stick curve everywhere. The losses
    of a unit's masses so cut are no probabilities any more, which compositions do not need.
    """
    floor, top = math.log1p(-rate), np.logaddexp(math.log1p(-rate), math.log(rate) + mean * (14.5 + 0.5 * mean))
    steps = np.arange(math.floor(floor / step) + 1, math.ceil(float(top) / step))
    # (exp(loss) - 1 + rate) / rate is the ratio without sampling.
    bare = np.expm1(steps * step) + rate
    cells = gaussian_cells(mean, np.log(bare[bare > 0.0] / rate))
    fine = sampled_losses(connect_dots(cells) if side == "upper" else merge_cells(cells), rate, direction)
    index = np.floor(fine.loss / step).astype(np.int64)
    first, count = int(np.min(index)) - 1, int(np.max(index) - np.min(index)) + 4
    index -= first
    grid = np.arange(first, first + count) * step

    def at(place: Array, weights: Array) -> Array:
        return np.bincount(place, weights, count)

    if side == "upper":
        up = np.expm1(-np.clip(fine.loss - grid[index], 0.0, step)) / math.expm1(-step)
        parts = ((index, fine.mass * (1.0 - up)), (index + 1, fine.mass * up))
        mass = sum((at(place, part) for place, part in parts), np.zeros(count))
    else:
        own, other = at(index, fine.mass), at(index, fine.mass * np.exp(-fine.loss))
        own[1:], other[1:] = (own[1:] + own[:-1]) / 2.0, (other[1:] + other[:-1]) / 2.0
        own[0], other[0] = own[0] / 2.0, other[0] / 2.0
        mass = np.minimum(own, other * np.exp(grid))
    # The largest errors of the masses that met in one place, or beside it.
    worst = [np.zeros(count), np.zeros(count)]
    for bound, errors in zip(worst, (fine.relative, fine.absolute), strict=True):
        np.maximum.at(bound, index, errors)
        np.maximum.at(bound, index + 1, errors)
    kept = mass > 0.0
    return Losses(
        mass[kept],
        grid[kept],
        fine.infinite,
        worst[0][kept] + worst[1][kept] * (side == "lower") + 16.0 * ROUNDING * (1.0 + np.abs(grid[kept])),
        2.0 * worst[1][kept],
    )


class Atoms(Family):
    """One mechanism with finitely many losses, anywhere."""

    def __init__(self, losses: Losses, count: int) -> None:
        self.losses = losses
        super().__init__(np.array([float(np.max(losses.loss))]), np.array([float(count)]))
        # Losses are measured from 0 here: the largest one is far out and of no weight.
        self.pivot = 0.0

    def scaled(self, z: Array, part: slice) -> Array:
        value: Array = (np.exp(z * (self.losses.loss - self.tops[0])) @ self.losses.mass)[:, None]
        return value

    def _weights(self, tilts: Array) -> Array:
        """Return the tilted distributions of the loss, one row each."""
        heavy: Array = self.losses.mass * np.exp(tilts[:, None] * (self.losses.loss - self.tops[0]))
        return heavy / np.sum(heavy, axis=1, keepdims=True)

    def ratio(self, tilt: float, frequencies: Array, part: slice, period: float) -> Array:
        weights = self._weights(np.array([tilt]))[0]
        kept = weights > 0.0
        value: Array = np.exp(1j * np.outer(frequencies, self.losses.loss[kept])) @ weights[kept]
        return value[:, None]

    def log_ceiling(self, tilt: float, frequencies: Array) -> Array:
        # A few outcomes in full, all others as if in phase. What they weigh makes no ceiling untrue.
        weights = self._weights(np.array([tilt]))[0]
        few = np.argsort(-weights)[:_FEW]
        exact = np.abs(np.exp(1j * np.outer(frequencies, self.losses.loss[few])) @ weights[few])
        ceiling = exact + max(0.0, 1.0 - float(np.sum(weights[few])))
        slack = self.error(tilt, np.array([float(np.max(frequencies, initial=0.0))]), slice(None))[0, 0]
        value: Array = np.minimum(0.0, np.log(ceiling + slack))
        return value

    def error(self, tilt: float | Array, frequencies: Array, part: slice) -> Array:
        tilts = np.atleast_1d(np.asarray(tilt, np.float64))
        losses = self.losses
        weights = self._weights(tilts)
        exponent = 4.0 * ROUNDING * (weights @ np.abs(losses.loss - self.tops[0]))
        phase = 4.0 * ROUNDING * (weights @ np.abs(losses.loss))
        fixed = 2.0 * (weights @ losses.relative) + ROUNDING * (16.0 + len(losses.mass))
        size = np.hypot(tilts, frequencies)
        bound: Array = fixed + 2.0 * size * (weights @ losses.absolute) + tilts * exponent + frequencies * phase
        return bound[:, None]


class Lattice(Atoms):
    """One mechanism whose losses are multiples of a step: its transform is periodic, and one FFT gives it all."""

    def __init__(self, losses: Losses, step: float, count: int) -> None:
        super().__init__(losses, count)
        self._index = np.rint(losses.loss / step).astype(np.int64)
        self._step = step
        self._transform: tuple[float, int, Array] = (math.nan, 0, np.zeros(0))

    def ratio(self, tilt: float, frequencies: Array, part: slice, period: float) -> Array:
        size = round(period / self._step)
        if self._transform[:2] != (tilt, size):
            weights = self._weights(np.array([tilt]))[0]
            values = np.fft.rfft(np.bincount(self._index % size, weights, size)).conj()
            self._transform = (tilt, size, values)
        place = np.rint(frequencies * (period / (2.0 * math.pi))).astype(np.int64) % size
        values = self._transform[2][np.minimum(place, size - place)]
        return np.where(place > size - place, values.conj(), values)[:, None]

    def log_ceiling(self, tilt: float, frequencies: Array) -> Array:
        # Reading off a value is cheaper than any bound.
        return np.zeros(len(frequencies))

    def error(self, tilt: float | Array, frequencies: Array, part: slice) -> Array:
        # Splitting loses go up by exp(tilt step) more than the loss itself. The FFT's error in the Euclidean norm is
        # at most 8 log2(n) roundings of its result's (Higham 2002, theorem 24.2, has 6 log2(n) for factors of
        # 2 and 4), which is sqrt(n) times the weights' norm; no single value errs by more.
        tilts = np.atleast_1d(np.asarray(tilt, np.float64))
        size = float(max(self._transform[1], 2))
        norms = np.sqrt(np.sum(self._weights(tilts) ** 2, axis=1, keepdims=True))
        fft = ROUNDING * 8.0 * math.log2(size) * math.sqrt(size) * norms
        bound: Array = super().error(tilt, frequencies, part) * np.exp(tilts * self._step)[:, None] + fft
        return bound
