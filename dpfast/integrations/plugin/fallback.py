"""The plugin's operations in Python, for machines without it: the same rows, the same errors, through `map_batches`."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.columns import borrow
from dpfast.columns.scale import HIGHEST_SCALE, LOWEST_SCALE
from dpfast.errors import DataError
from dpfast.kernels.plugin import layout
from dpfast.mechanisms.noise.by_kind import NOISE_OF
from dpfast.mechanisms.noise.lattice import LARGEST_INTEGER_SCALE
from dpfast.randomness import RandomSource, SystemRandom

__all__ = ["call_python", "draw"]

_NUMBERS = (pl.Int64, pl.Int32, pl.UInt32, pl.Float64, pl.Float32)
_NONE = pl.lit(0, dtype=pl.Int16)


def call_python(operation: str, columns: Sequence[pl.Expr], parameters: bytes) -> pl.Expr:
    """Return the expression of an operation; see `calls.call`."""
    # A UInt32 and an Int16 add up to an Int64, as noise makes it; the other types stay. `first` gives literals the type
    # that they are evaluated with.
    result = columns[0].first() + _NONE
    function = partial(draw, operation, parameters=parameters, source=SystemRandom())
    return pl.map_batches(columns, function, return_dtype=pl.dtype_of(result), is_elementwise=True)


def draw(operation: str, columns: Sequence[pl.Series], *, parameters: bytes, source: RandomSource) -> pl.Series:
    """Return what the compiled body returns for these columns.

    Raises
    ------
    polars.exceptions.ComputeError
        With the words of kernels/plugin/layout.py.

    """
    values = columns[0]
    if values.dtype not in _NUMBERS:
        raise _failed(layout.VALUES_TYPE)
    if len(columns) == 1:
        scale = _checked(values, np.array(struct.unpack("<d", parameters[len(layout.MAGIC) :])))
    else:
        scale = _scales(values, columns[1])
        if len(values) == 1 != scale.size:
            values = values.new_from_index(0, scale.size)
    column = borrow(values)
    try:
        drawn = NOISE_OF[operation](column, float(scale[0]) if scale.size == 1 else scale, source, 1)
        noisy: pl.Series = column.rebuild(drawn)
    except DataError:
        pass
    else:
        return noisy
    raise _failed(layout.NOT_FINITE)


def _scales(values: pl.Series, given: pl.Series) -> NDArray[np.float64]:
    if given.dtype not in _NUMBERS:
        raise _failed(layout.SCALE_TYPE)
    if len(given) != len(values) and len(given) != 1 and len(values) != 1:
        raise _failed(layout.LENGTHS)
    if given.null_count():
        raise _failed(layout.SCALE_NULL)
    numbers = given.to_numpy()
    scale: NDArray[np.float64] = numbers.astype(np.float64)
    if given.dtype == pl.Int64:
        inside = np.abs(scale) < 2.0**63
        if not (inside & (np.where(inside, scale, 0.0).astype(np.int64) == numbers)).all():
            raise _failed(layout.SCALE_INEXACT)
    return _checked(values, scale)


def _checked(values: pl.Series, scale: NDArray[np.float64]) -> NDArray[np.float64]:
    if not ((scale >= LOWEST_SCALE) & (scale <= HIGHEST_SCALE)).all():
        raise _failed(layout.SCALE_RANGE)
    if values.dtype.is_integer() and scale.max(initial=0.0) > LARGEST_INTEGER_SCALE:
        raise _failed(layout.SCALE_LARGE)
    scale.setflags(write=False)
    return scale


def _failed(number: int) -> pl.exceptions.ComputeError:
    return pl.exceptions.ComputeError(f"the plugin failed with message: {layout.ERRORS[number]}")
