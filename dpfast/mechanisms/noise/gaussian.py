"""The Gaussian mechanism."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Threads
from dpfast.columns import Column, borrow_scale
from dpfast.columns.declarations import Scale
from dpfast.columns.saturating import borrow_saturating
from dpfast.kernels.noise.gaussian import BLOCK_ROWS, draw_blocks
from dpfast.kernels.noise.gaussian_f32 import LARGEST_SCALE as LARGEST_NARROW_SCALE
from dpfast.kernels.noise.narrow_gaussian import WORK_WORDS, release_gaussian_on_grids, release_gaussian_on_ones
from dpfast.kernels.noise.preparation import FINENESS
from dpfast.mechanisms.noise.additive import NO_ROWS, Buffers, Noise, SingleBlocks, add_noise
from dpfast.mechanisms.noise.exact import exact_gaussian
from dpfast.mechanisms.noise.kinds import Values, same_kind
from dpfast.mechanisms.noise.lattice import LARGEST_ONES_EXPONENT, Lattice, Ones, Powers, Rows, lattice_for
from dpfast.randomness import Keystream, Random, RandomSource, random_source

__all__ = ["gaussian", "gaussian_kernel", "gaussian_noise", "gaussian_on", "gaussian_words"]

#: Up to this scale 32-bit words leave fewer than one value in 2**19 undecided.
_SHORT_WORDS_UP_TO = 2.0**7


class _Gaussian(Noise):
    """Gaussian noise by pairs of rows, which share a radius and an angle: kernels/noise/gaussian.py says which."""

    def __init__(self, lattice: Lattice, keystream: Keystream, largest_scale: float) -> None:
        self._narrow = largest_scale <= LARGEST_NARROW_SCALE
        super().__init__(lattice, keystream, short=largest_scale <= _SHORT_WORDS_UP_TO, by_first_parts=self._narrow)

    def words_for(self, rows: int) -> int:
        return rows + rows % 2

    def draw(
        self,
        words: NDArray[np.uint8],
        values: NDArray[Any],
        start: int,
        scratch: Buffers,
        released: NDArray[Any],
        blocks: SingleBlocks | None,
    ) -> NDArray[np.int64]:
        lattice, stop = self.lattice, start + values.size
        if not self._narrow:
            wide = self.parts(words, values.size)
            return self._draw_wide(*wide, values, lattice.rows(start, stop, scratch), scratch, released)
        high, low = self.parts_by_need(words, values.size, blocks)
        # One scale is prepared once for all, a block's scales by the kernel that draws for it.
        rows = (
            lattice.rows(start, stop, scratch) if isinstance(lattice.scale, float) else Rows(lattice.scale[start:stop])
        )
        work, found = scratch.work(WORK_WORDS), scratch("undecided", np.int64)
        if isinstance(lattice, Ones):
            count = release_gaussian_on_ones(high, low, rows.scale, values, *lattice.limits, work, released, found)
        else:
            largest = lattice.largest if isinstance(lattice, Powers) else 0.0
            of_grids = rows.scale, rows.position, rows.grid, values, largest
            count = release_gaussian_on_grids(high, low, *of_grids, work, released, found)
        # They are listed pair by pair, and so not in order.
        return np.sort(found[:count]) if count else NO_ROWS

    def _draw_wide(
        self,
        high: NDArray[np.uint32],
        low: NDArray[np.uint16] | None,
        values: NDArray[Any],
        rows: Rows,
        scratch: Buffers,
        released: NDArray[Any],
    ) -> NDArray[np.int64]:
        """Draw in float64 alone."""
        noise, placed = scratch("noise", np.int32)[: values.size], None if rows.position is None else values
        undecided = draw_blocks(high, low, rows.scale, placed, rows.position, noise, np.empty(1, np.int32))
        self.lattice.join(values, rows, noise, released)
        return self.undecided(noise) if undecided else NO_ROWS

    def refine(
        self, words: NDArray[np.uint8], values: NDArray[Any], undecided: NDArray[np.int64], start: int
    ) -> Iterator[tuple[int, int]]:
        high, low = self.parts(words, values.size)
        for row in undecided.tolist():
            # The second word of a last, odd pair has an index of its own, beyond the chunk's rows.
            *pair, is_second = _pair(row, values.size)
            radius, angle = (
                self.tail(start + word, int(high[word]), 32, None if low is None else int(low[word])) for word in pair
            )
            scale, fraction, _ = self.lattice.exact(values[row], start + row)
            yield row, exact_gaussian(radius, angle, is_second, scale, fraction)


def _pair(row: int, rows: int) -> tuple[int, int, bool]:
    """Return the radius and the angle of a row among its chunk's words, and whether it is its pair's second value.

    Examples
    --------
    >>> _pair(1024, 1029), _pair(1027, 1029)
    ((1024, 1027, False), (1024, 1027, True))

    """
    first = row // BLOCK_ROWS * BLOCK_ROWS
    half = (min(BLOCK_ROWS, rows - first) + 1) // 2
    place = row - first
    radius = first + place % half
    return radius, radius + half, place >= half


@same_kind
def gaussian(values: Values, scale: Scale, *, random: Random = None, threads: Threads = None) -> Any:  # see SameKind
    """Add Gaussian noise to every value of a column.

    Guarantee
        ``x + Normal(0, scale**2)`` rounded to a grid (the integers; for floats, and for scales from 2**25 on, a
        power of two chosen from the type and the scale alone), sampled exactly. Rounding is post-processing,
        so every statement about the Gaussian mechanism with this scale holds as it stands: for a statistic of
        L2 sensitivity D over the whole column, (D / scale)-Gaussian DP, D**2 / (2 scale**2)-zCDP, and the
        (epsilon, delta) of theorem 8 of Balle and Wang (2018). No budget is kept here and the null mask and the
        length are published as they are.

    Parameters
    ----------
    values
        As for `laplace`.
    scale
        The standard deviation sigma in the unit of the values: a positive number, or a column with one for
        every row. Between 2**-960 and 2**960, for integers at most 2**60.
    random, threads
        As for `laplace`.

    Returns
    -------
    same kind as ``values``
        As for `laplace`.

    Raises
    ------
    ParameterError, ColumnError, DataError
        As for `laplace`.

    Notes
    -----
    Box and Muller's transformation of certified uniform bits, two values from two words: in float32 where that decides,
    else in float64 from the same bits, and at last in ball arithmetic from more.

    References
    ----------
    Dwork, Roth (2014), appendix A; Balle, Wang (2018); Dong, Roth, Su (2022). Box, Muller (1958).

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.testing import SeededRandom
    >>> noisy = gaussian(np.zeros(100_000, np.int64), 4.0, random=SeededRandom(1))
    >>> noisy.dtype, bool(3.9 < noisy.std() < 4.1)
    (dtype('int64'), True)

    """
    column = borrow_saturating(values, "values")
    scales = borrow_scale(scale, column.length)
    return column.rebuild(gaussian_noise(column, scales, random_source(random), threads))


def gaussian_noise(
    column: Column,
    scale: float | NDArray[np.float64],
    source: RandomSource,
    threads: object = None,
    *,
    refine_all: bool = False,
    kept: list[Buffers] | None = None,
) -> NDArray[Any]:
    """Return a borrowed column's values with Gaussian noise; see `gaussian`, and `add_noise` for the rest."""
    noise = gaussian_words(column.dtype, scale, Keystream(source.key()))
    return add_noise(column, noise, threads, refine_all=refine_all, kept=kept)


def gaussian_words(dtype: np.dtype[Any], scale: float | NDArray[np.float64], keystream: Keystream) -> Noise:
    """Return how a keystream's words become Gaussian noise of this scale for a column of this type."""
    lattice = lattice_for(dtype, scale, discrete=False)
    if isinstance(lattice, Powers):
        return gaussian_on(lattice, keystream, 2.0 ** (FINENESS + 1))
    return gaussian_on(lattice, keystream, lattice.largest_scale if isinstance(lattice, Ones) else math.inf)


def gaussian_on(lattice: Lattice, keystream: Keystream, largest_scale: float) -> Noise:
    """Return how a keystream's words become Gaussian noise on a lattice, with scales of at most so many units."""
    return _Gaussian(lattice, keystream, largest_scale)


def gaussian_kernel(scale: float) -> str:
    """Return in words how integers get Gaussian noise of this scale."""
    words = "32-bit" if scale <= _SHORT_WORDS_UP_TO else "48-bit"
    grid = "rounded to integers" if scale < 2.0 ** (LARGEST_ONES_EXPONENT + 1) else "rounded to multiples"
    drawn_by = "release_gaussian_on_ones" if scale <= LARGEST_NARROW_SCALE else "draw_gaussian"
    return f"Gaussian {grid}, from {words} words ({drawn_by})"
