"""The Laplace mechanism, and the geometric mechanism on integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Threads
from dpfast.columns import Column, borrow_scale
from dpfast.columns.declarations import Scale
from dpfast.columns.saturating import borrow_saturating
from dpfast.kernels.noise.laplace import LARGEST_SCALE_F32, draw_laplace_f64, release_laplace_f32
from dpfast.mechanisms.noise.additive import NO_ROWS, Buffers, Noise, add_noise
from dpfast.mechanisms.noise.exact import exact_laplace
from dpfast.mechanisms.noise.kinds import Values, same_kind
from dpfast.mechanisms.noise.lattice import LARGEST_ONES_EXPONENT, Ones, lattice_for
from dpfast.randomness import Keystream, Random, RandomSource, random_source

__all__ = ["laplace", "laplace_kernel", "laplace_noise", "laplace_words"]


_REST = 0x7FFFFFFF


class _Laplace(Noise):
    """Laplace noise, the first bit of a word being its sign: short words are for discrete noise in float32."""

    def draw(
        self,
        words: NDArray[np.uint8],
        values: NDArray[Any],
        start: int,
        scratch: Buffers,
        released: NDArray[Any],
    ) -> NDArray[np.int64]:
        size = values.size
        rows, noise = self.lattice.rows(start, start + size, scratch), scratch("noise", np.int32)[:size]
        high, low = self.parts(words, size)
        if low is None:
            assert isinstance(self.lattice, Ones)
            scale = rows.scale, rows.offset, rows.exact_scale
            some = release_laplace_f32(high, *scale, values, *self.lattice.limits, noise, released)
            return self.undecided(noise) if some else NO_ROWS
        placed = None if rows.position is None else values
        undecided = draw_laplace_f64(high, low, rows.scale, rows.offset, placed, rows.position, noise)
        self.lattice.join(values, rows, noise, released)
        return self.undecided(noise) if undecided else NO_ROWS

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
        their bounds. Floats are multiples of 2**(floor(log2(scale)) - 12), rounded to their type.

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
    lattice = lattice_for(dtype, scale, discrete=True, narrow_up_to=LARGEST_SCALE_F32)
    short = isinstance(lattice, Ones) and lattice.precision is np.float32
    return _Laplace(lattice, keystream, short=short)


def laplace_kernel(scale: float) -> str:
    """Return in words how integers get Laplace noise of this scale."""
    if scale <= LARGEST_SCALE_F32:
        return "discrete Laplace from 32-bit words (draw_laplace_f32)"
    if scale < 2.0 ** (LARGEST_ONES_EXPONENT + 1):
        return "discrete Laplace from 48-bit words (draw_laplace_f64)"
    return "Laplace rounded to multiples of a power of two, from 48-bit words (draw_laplace_f64)"
