"""The privacy loss of one mechanism on a Poisson sample, from finite pairs.

Zhu, Dong, Wang (2022), theorem 11: if (present, absent) dominates a mechanism for removing a unit, then
((1 - rate) absent + rate present, absent) dominates the mechanism on a Poisson sample for removing one, and the
pair exchanged for adding one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from dpfast.accounting.formulas.pairs import LONGEST_REACH, Pair, Side, connect_dots, gaussian_cells, merge_cells
from dpfast.accounting.formulas.transforms import ROUNDING, Array, Family
from dpfast.accounting.work import spend

__all__ = ["Atoms", "Direction", "Lattice", "Losses", "gaussian_losses", "sampled_losses"]

Direction = Literal["remove", "add"]

# Outcomes that the cheap bound of a transform looks at.
_FEW = 32
# Values that stand for all where only an estimate is needed.
_ROUGH = 512
# Tilts whose means are kept.
_MOST_TILTS = 256


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


def gaussian_losses(
    mean: float, rate: float, direction: Direction, side: Side, step: float, reach: float = LONGEST_REACH
) -> Losses:
    """Return a loss in multiples of `step` that dominates that of a sampled Gaussian, or is dominated.

    *Upper*: dots at every loss that is a multiple of the step, connected; what lies between two multiples (the
    cells are cut finer) is split between them once more, keeping both masses.

    *Lower*: all between two multiples is merged, and about one half sent to either of the two (`_rounded_down`).
    """
    floor, top = math.log1p(-rate), np.logaddexp(math.log1p(-rate), math.log(rate) + mean * (reach + 0.5 + 0.5 * mean))
    steps = np.arange(math.floor(floor / step) + 1, math.ceil(float(top) / step))
    # (exp(loss) - 1 + rate) / rate is the ratio without sampling.
    bare = np.expm1(steps * step) + rate
    cells = gaussian_cells(mean, np.log(bare[bare > 0.0] / rate), reach)
    spend(32.0 * len(cells.edges))
    fine = sampled_losses(connect_dots(cells) if side == "upper" else merge_cells(cells), rate, direction)
    index = np.floor(fine.loss / step).astype(np.int64)
    first, count = int(np.min(index)) - 2, int(np.max(index) - np.min(index)) + 5
    index -= first
    grid = np.arange(first, first + count) * step

    def at(place: Array, weights: Array) -> Array:
        return np.bincount(place, weights, count)

    if side == "upper":
        up = np.expm1(-np.clip(fine.loss - grid[index], 0.0, step)) / math.expm1(-step)
        parts = ((index, fine.mass * (1.0 - up)), (index + 1, fine.mass * up))
        mass = sum((at(place, part) for place, part in parts), np.zeros(count))
    else:
        mass = _rounded_down(at(index, fine.mass), at(index, fine.mass * np.exp(-fine.loss)), grid, fine)
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


def _rounded_down(own: Array, other: Array, grid: Array, fine: Losses) -> Array:
    """Return masses at the grid's losses of something that cells with masses (own, other) dominate.

    A cell is sent to its lower end, where its ratio is too large, and to its upper end, where it is too small, in
    shares such that each place's ratio, averaged, is no smaller than the grid says: that is post-processing. Then
    the mass `own` is cut to make the ratio exact, which lowers the hockey-stick curve everywhere. Such masses sum
    to less than 1, which compositions do not mind.
    """
    step, step_up = grid[1] - grid[0], np.exp(grid[1:])
    excess = np.maximum(own - other * np.exp(grid), 0.0)
    shortfall = np.maximum(other[:-1] * step_up - own[:-1], 0.0)
    # Roundings, which a margin in the shares outweighs: the shortfall is about half a step of the mass.
    doubt = 8.0 * float(np.max(fine.relative + fine.absolute)) + 64.0 * ROUNDING * (1.0 + np.abs(grid))
    up = _shares(excess, shortfall, 8.0 * float(np.max(doubt)) / step, int(np.argmax(own)))
    own, other = (values * (1.0 - up) + np.append(0.0, (values * up)[:-1]) for values in (own, other))
    # Where roundings still leave a doubt, two places below there is none.
    sure = own >= other * np.exp(grid) * (1.0 + doubt)
    mass: Array = np.where(sure, other * np.exp(grid), 0.0)
    mass[:-2] += np.where(sure, 0.0, other * np.exp(grid - 2.0 * step))[2:]
    return mass


def _shares(excess: Array, shortfall: Array, margin: float, peak: int) -> Array:
    """Return what share of each cell goes up, such that nearly nothing has to be cut.

    Nothing is cut where (1 - up[j + 1]) excess[j + 1] = up[j] shortfall[j], a recursion that forgets its beginning in
    the direction in which the masses grow: it is followed from both ends to the peak. Other shares would cost more
    and be as sound.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        balance = excess[1:] / (shortfall * (1.0 + margin))
    ratios = np.where(np.isfinite(balance) & (balance > 0.0), balance, 1.0).tolist()
    up, share = [0.5] * len(excess), 0.5
    for j in range(peak):
        share = 1.0 - share / ratios[j]
        up[j + 1] = share = 0.02 if share < 0.02 else 0.98 if share > 0.98 else share
    last, share = up[peak], 0.5
    for j in range(len(up) - 2, peak - 1, -1):
        share = (1.0 - share) * ratios[j]
        up[j] = share = 0.02 if share < 0.02 else 0.98 if share > 0.98 else share
    # Where both meet, the smaller one: what is then cut is of one cell.
    up[peak] = min(last, up[peak])
    up[-1] = 0.0
    return np.array(up)


class Atoms(Family):
    """One mechanism with finitely many losses, anywhere."""

    def __init__(self, losses: Losses, count: int) -> None:
        self.losses = losses
        super().__init__(np.array([float(np.max(losses.loss))]), np.array([float(count)]))
        # Losses are measured from 0 here: the largest one is far out and of no weight.
        self.pivot = 0.0
        self._tilted: dict[float, Array] = {}

    @property
    def size(self) -> int:
        """How many values one tilt takes."""
        return len(self.losses.mass)

    def scaled(self, z: Array, part: slice) -> Array:
        """Return M(z) exp(-z top)."""
        heavy = np.exp(z * (self.losses.loss - self.tops[0]))
        heavy *= self.losses.mass
        # Not a product with a vector: that wakes threads, which costs more where others compute too.
        value: Array = np.sum(heavy, axis=1, keepdims=True)
        return value

    def rough_log_moments(self, tilts: Array) -> Array:
        """Return about `log_moments`, fast."""
        if len(self.losses.mass) <= _ROUGH:
            return self.log_moments(tilts)
        mass, loss = self._rough
        largest = np.max(loss)
        heavy = np.exp(tilts[:, None] * (loss - largest)) * mass
        value: Array = tilts[:, None] * largest + np.log(np.sum(heavy, axis=1, keepdims=True))
        return value

    @cached_property
    def _rough(self) -> tuple[Array, Array]:
        losses = self.losses
        # Merged in place, each part around its mean: parts of equal length, where the tails are, and of equal mass.
        last = len(losses.mass) - 1
        length = np.linspace(0, last, _ROUGH).astype(np.int64)
        total = np.cumsum(losses.mass)
        starts = np.union1d(length, np.minimum(np.searchsorted(total, np.linspace(0.0, total[-1], _ROUGH)), last))
        mass = np.add.reduceat(losses.mass, starts)
        return mass, np.add.reduceat(losses.mass * losses.loss, starts) / mass

    def _weights(self, tilts: Array) -> Array:
        """Return the tilted distributions of the loss, one row each."""
        heavy: Array = self.losses.mass * np.exp(tilts[:, None] * (self.losses.loss - self.tops[0]))
        total: Array = np.sum(heavy, axis=1, keepdims=True)
        heavy /= total
        return heavy

    def ratio(self, tilt: float, frequencies: Array, part: slice, period: float) -> Array:
        """Return the transform over its value at the tilt."""
        weights = self._weights(np.array([tilt]))[0]
        kept = weights > 0.0
        value: Array = np.exp(1j * np.outer(frequencies, self.losses.loss[kept])) @ weights[kept]
        return value[:, None]

    def log_ceiling(self, tilt: float, frequencies: Array, period: float) -> Array:
        """Return a cheap bound on ln abs(ratio)."""
        # A few outcomes in full, all others as if in phase. What they weigh makes no ceiling untrue.
        weights = self._weights(np.array([tilt]))[0]
        few = np.argsort(-weights)[:_FEW]
        exact = np.abs(np.exp(1j * np.outer(frequencies, self.losses.loss[few])) @ weights[few])
        ceiling = exact + max(0.0, 1.0 - float(np.sum(weights[few])))
        slack = self.error(tilt, np.array([float(np.max(frequencies, initial=0.0))]), slice(None))[0, 0]
        value: Array = np.minimum(0.0, np.log(ceiling + slack))
        return value

    def error(self, tilt: float | Array, frequencies: Array, part: slice) -> Array:
        """Return a bound on the error of `ratio`."""
        tilts = np.atleast_1d(np.asarray(tilt, np.float64))
        exponent, phase, relative, absolute, _ = np.stack([self._means(float(one)) for one in tilts], axis=1)
        fixed = 2.0 * relative + ROUNDING * (16.0 + len(self.losses.mass))
        size = np.hypot(tilts, frequencies)
        bound: Array = fixed + 2.0 * size * absolute + tilts * exponent + frequencies * phase
        return bound[:, None]

    def _means(self, tilt: float) -> Array:
        """Return what errors are made of: means under the tilted distribution, and its Euclidean norm."""
        if tilt not in self._tilted:
            losses, weights = self.losses, self._weights(np.array([tilt]))[0]
            if len(self._tilted) > _MOST_TILTS:
                self._tilted.clear()
            # Sums, not products of vectors: those wake threads, which costs more where others compute too.
            self._tilted[tilt] = np.array(
                [
                    4.0 * ROUNDING * np.sum(weights * np.abs(losses.loss - self.tops[0])),
                    4.0 * ROUNDING * np.sum(weights * np.abs(losses.loss)),
                    np.sum(weights * losses.relative),
                    np.sum(weights * losses.absolute),
                    math.sqrt(np.sum(weights**2)),
                ]
            )
        return self._tilted[tilt]


class Lattice(Atoms):
    """One mechanism whose losses are multiples of a step: its transform is periodic, and one FFT gives it all."""

    def __init__(self, losses: Losses, step: float, count: int) -> None:
        super().__init__(losses, count)
        self._index = np.rint(losses.loss / step).astype(np.int64)
        self._step = step
        self._transform: tuple[float, int, Array] = (math.nan, 0, np.zeros(0))

    def ratio(self, tilt: float, frequencies: Array, part: slice, period: float) -> Array:
        """Return the transform over its value at the tilt."""
        size = round(period / self._step)
        if self._transform[:2] != (tilt, size):
            weights = self._weights(np.array([tilt]))[0]
            spend(4.0 * size)
            values = np.fft.rfft(np.bincount(self._index % size, weights, size)).conj()
            self._transform = (tilt, size, values)
        place = np.rint(frequencies * (period / (2.0 * math.pi))).astype(np.int64) % size
        values = self._transform[2][np.minimum(place, size - place)]
        return np.where(place > size - place, values.conj(), values)[:, None]

    def log_ceiling(self, tilt: float, frequencies: Array, period: float) -> Array:
        """Return a cheap bound on ln abs(ratio)."""
        # Reading off a value is cheaper than any other bound.
        size = np.abs(self.ratio(tilt, frequencies, slice(None), period)[:, 0])
        slack = self.error(tilt, np.array([float(np.max(frequencies, initial=0.0))]), slice(None))[0, 0]
        value: Array = np.minimum(0.0, np.log(size + slack))
        return value

    def error(self, tilt: float | Array, frequencies: Array, part: slice) -> Array:
        """Return a bound on the error of `ratio`."""
        # Splitting loses go up by exp(tilt step) more than the loss itself. The FFT's error in the Euclidean norm is
        # at most 8 log2(n) roundings of its result's (Higham 2002, theorem 24.2, has 6 log2(n) for factors of
        # 2 and 4), which is sqrt(n) times the weights' norm; no single value errs by more.
        tilts = np.atleast_1d(np.asarray(tilt, np.float64))
        size = float(max(self._transform[1], 2))
        norms = np.array([[self._means(float(one))[-1]] for one in tilts])
        fft = ROUNDING * 8.0 * math.log2(size) * math.sqrt(size) * norms
        bound: Array = (
            super().error(tilt, frequencies, part) * np.exp(np.minimum(tilts * self._step, 300.0))[:, None] + fft
        )
        return bound
