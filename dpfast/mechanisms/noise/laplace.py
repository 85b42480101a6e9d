"""The Laplace mechanism, and the geometric mechanism on integers."""

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
from dpfast.kernels.noise.laplace import LARGEST_NARROW_SCALE, LARGEST_SHORT_SCALE, draw_laplace_f64
from dpfast.kernels.noise.narrow_laplace import WORK_WORDS, release_laplace_on_grids, release_laplace_on_ones
from dpfast.mechanisms.noise.additive import NO_ROWS, Buffers, Noise, SingleBlocks, add_noise
from dpfast.mechanisms.noise.exact import exact_laplace
from dpfast.mechanisms.noise.kinds import Values, same_kind
from dpfast.mechanisms.noise.lattice import LARGEST_ONES_EXPONENT, Lattice, Multiples, Ones, Powers, Rows, lattice_for
from dpfast.randomness import Keystream, Random, RandomSource, random_source

__all__ = ["laplace", "laplace_kernel", "laplace_noise", "laplace_words"]


_REST = 0x7FFFFFFF


class _Laplace(Noise):
    """Laplace noise, the first bit of a word being its sign: short words are for discrete noise of small scales."""

    def __init__(self, lattice: Lattice, keystream: Keystream) -> None:
        largest = lattice.largest_scale if isinstance(lattice, Ones) else math.inf
        one = isinstance(lattice.scale, float)
        self._wide = isinstance(lattice, Multiples) or (one and LARGEST_NARROW_SCALE < largest < math.inf)
        super().__init__(
            lattice, keystream, short=largest <= LARGEST_SHORT_SCALE, by_first_parts=isinstance(lattice, Powers)
        )

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
        high, low = self.parts(words, values.size)
        if self._wide:
            rows, noise = lattice.rows(start, stop, scratch), scratch("noise", np.int32)[: values.size]
            placed = None if rows.position is None else values
            some = draw_laplace_f64(high, low, rows.scale, rows.offset, placed, rows.position, noise)
            lattice.join(values, rows, noise, released)
            return self.undecided(noise) if some else NO_ROWS
        # One scale is prepared once for all, a block's scales by the kernel that draws for it.
        if isinstance(lattice.scale, float):
            rows = lattice.rows(start, stop, scratch)
        else:
            rows = Rows(lattice.scale[start:stop], None)
        work, found = scratch.work(WORK_WORDS), scratch("undecided", np.int64)
        if isinstance(lattice, Ones):
            of_ones = high, low, rows.scale, rows.offset, values, *lattice.limits
            return found[: release_laplace_on_ones(*of_ones, work, released, found)]
        assert isinstance(lattice, Powers)
        words_by_need = self.parts_by_need(words, values.size, blocks)
        of_grids = *words_by_need, rows.scale, rows.position, rows.grid, values, lattice.largest
        return found[: release_laplace_on_grids(*of_grids, work, released, found)]

    def refine(
        self, words: NDArray[np.uint8], values: NDArray[Any], undecided: NDArray[np.int64], start: int
    ) -> Iterator[tuple[int, int]]:
        high, low = self.parts(words, values.size)
        for row in undecided.tolist():
            word, more = int(high[row]), None if low is None else int(low[row])
            bits = self.tail(start + row, word & _REST, 31, more)
            yield row, exact_laplace(bool(word >> 31), bits, *self.lattice.exact(values[row], start + row))


@same_kind
def laplace(values: Values, scale: Scale, *, random: Random = None, threads: Threads = None) -> Any:  # see SameKind
    """Add Laplace noise to every value of a column.

    Guarantee
        Integers: ``x + K`` with K discrete Laplace, P(K = k) proportional to exp(-abs(k) / scale), for scales
        below 2**25; floats, and integers with wider noise: ``x + Laplace(scale)`` rounded to a grid that
        depends on the type and the scale alone. Both are sampled exactly, so that releasing a statistic of
        L1 sensitivity D over the whole column is (D / scale, 0)-differentially private. The null mask and the
        length are published as they are, and no budget is kept here: `dpfast.release` sees to both.

    Parameters
    ----------
    values
        An int64, int32, uint32, float64 or float32 column: Polars Series, PyArrow Array or ChunkedArray,
        NumPy array of any shape, pandas Series, list, number, or any object with the Arrow PyCapsule
        methods. Nulls stay null; NaN and infinities are refused. Integers of Python are clamped to int64, and to
        2**53 in a list that holds floats too.
    scale
        The Laplace scale b = sensitivity / epsilon in the unit of the values: a positive number, or a column
        with one for every row. Between 2**-960 and 2**960, for integers at most 2**60.
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.
    threads
        How many threads share the work; None uses all cores where that pays. The result does not depend on it.

    Returns
    -------
    same kind as ``values``
        uint32 becomes int64 (a count cut off at zero would be biased); the other types stay, saturating at
        their bounds. Floats are multiples of 2**(floor(log2(scale)) - 10), rounded to their type.

    Raises
    ------
    ParameterError
        The scale is not a positive finite number, or has another length than the values.
    ColumnError
        The column's kind or type is not one of those above.
    DataError
        A value is NaN or infinite.

    Notes
    -----
    Sampled by inversion from certified floating-point bounds; the samples that the first 31 to 47 bits do not
    decide are finished in ball arithmetic from more bits of the same infinite string. Rounding after the
    noise is post-processing, so the theorem's own scale holds.

    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006); Dwork, Roth (2014), theorem 3.6. Ghosh, Roughgarden, Sundararajan
    (2009) for integers. Mironov (2012) for what naive floats leak.

    Examples
    --------
    >>> import polars as pl
    >>> from dpfast.testing import SeededRandom
    >>> laplace(pl.Series("flights", [1200, None, 87]), 2.0, random=SeededRandom(1)).null_count()
    1
    >>> laplace([10, 20, 30], -1)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: scale must be a number from 2**-960 (about 1.03e-289) to 2**960 (about \
9.74e+288), but was -1

    """
    column = borrow_saturating(values, "values")
    scales = borrow_scale(scale, column.length)
    return column.rebuild(laplace_noise(column, scales, random_source(random), threads))


def laplace_noise(
    column: Column,
    scale: float | NDArray[np.float64],
    source: RandomSource,
    threads: object = None,
    *,
    refine_all: bool = False,
    kept: list[Buffers] | None = None,
) -> NDArray[Any]:
    """Return a borrowed column's values with Laplace noise; see `laplace`, and `add_noise` for the rest."""
    noise = laplace_words(column.dtype, scale, Keystream(source.key()))
    return add_noise(column, noise, threads, refine_all=refine_all, kept=kept)


def laplace_words(dtype: np.dtype[Any], scale: float | NDArray[np.float64], keystream: Keystream) -> Noise:
    """Return how a keystream's words become Laplace noise of this scale for a column of this type."""
    return _Laplace(lattice_for(dtype, scale, discrete=True), keystream)


def laplace_kernel(scale: float) -> str:
    """Return in words how integers get Laplace noise of this scale."""
    if scale <= LARGEST_SHORT_SCALE:
        return "discrete Laplace from 32-bit words (release_laplace_on_ones)"
    if scale <= LARGEST_NARROW_SCALE:
        return "discrete Laplace from 48-bit words (release_laplace_on_ones)"
    if scale < 2.0 ** (LARGEST_ONES_EXPONENT + 1):
        return "discrete Laplace from 48-bit words (draw_laplace_f64)"
    return "Laplace rounded to multiples of a power of two, from 48-bit words (draw_laplace_f64)"
