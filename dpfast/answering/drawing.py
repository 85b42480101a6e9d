"""Answers: private values made ready, noise of every part drawn once, intervals around what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.answering.calibration import Part
from dpfast.answering.wished import reach_of
from dpfast.columns.fresh import fresh_array
from dpfast.kernels.amounts.calibrating import intervals_of_floats, intervals_of_integers
from dpfast.mechanisms.noise.gaussian import gaussian
from dpfast.mechanisms.noise.laplace import laplace

__all__ = ["cleaned", "cleaned_lists", "drawn", "series_of"]

_TAKEN = (pl.Int64, pl.Int32, pl.UInt32)  # the integers that kernels take as they are


def _largest(dtype: pl.DataType) -> float:
    return float(np.finfo(np.float32 if dtype == pl.Float32 else np.float64).max)


def cleaned(values: pl.Series, missing: Fraction) -> pl.Series:
    """Return values that kernels take, with the declared number for what is missing: no error tells of a value."""
    dtype = values.dtype
    if dtype.is_float():
        filled = values.fill_null(float(missing)) if values.null_count() else values
        if filled.is_finite().all():
            return filled
        return filled.fill_nan(float(missing)).clip(-_largest(dtype), _largest(dtype))
    if dtype not in _TAKEN:
        values = values.clip(upper_bound=2**63 - 1) if dtype == pl.UInt64 else values
        values = values.cast(pl.Int64)
    return values.fill_null(round(missing)) if values.null_count() else values


def cleaned_lists(values: pl.Series, missing: Fraction) -> pl.Series:
    """Return lists of scores that kernels take, likewise; a null is no candidate and stays."""
    lists = values.arr.to_list() if isinstance(values.dtype, pl.Array) else values
    dtype = lists.dtype.inner  # type: ignore[attr-defined]
    if dtype in _TAKEN or (dtype.is_float() and lists.explode().is_finite().all()):
        return lists
    if dtype.is_float():
        return lists.list.eval(pl.element().fill_nan(float(missing)).clip(-_largest(dtype), _largest(dtype)))
    if dtype == pl.UInt64:
        lists = lists.list.eval(pl.element().clip(upper_bound=2**63 - 1))
    return lists.cast(pl.List(pl.Int64))


def drawn(values: pl.Series, parts: Sequence[Part], threads: int | None) -> tuple[NDArray[Any], ...]:
    """Return answers, scales and bounds, in the rows' order."""
    answers = scales = lower = upper = np.empty(0)
    for part in parts:
        draw = laplace if part.mechanism == "laplace" else gaussian
        reach = reach_of(part.mechanism)
        mine = values.to_numpy() if part.rows is None else values.gather(part.rows).to_numpy()
        drawn = draw(mine, part.scale, threads=threads)
        whole = drawn.dtype.kind == "i"
        low, high = (fresh_array(drawn.size, np.dtype(np.int64 if whole else np.float64)) for _ in range(2))
        (intervals_of_integers if whole else intervals_of_floats)(drawn, part.scale, reach, low, high)
        if part.rows is None:
            return drawn, part.scale, low, high
        if not answers.size:
            answers, scales, lower, upper = (
                np.empty(len(values), each.dtype) for each in (drawn, part.scale, low, high)
            )
        for target, source in ((answers, drawn), (scales, part.scale), (lower, low), (upper, high)):
            target[part.rows] = source
    return answers, scales, lower, upper


def series_of(name: str, column: NDArray[Any]) -> pl.Series:
    """Return an array as a column, without a copy."""
    import pyarrow as pa

    array = pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), column.size, [None, pa.py_buffer(column)])
    series = pl.from_arrow(array)
    assert isinstance(series, pl.Series)
    return series.alias(name)
