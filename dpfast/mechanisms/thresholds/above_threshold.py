"""The sparse vector technique on a column of values, or on many columns at once."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Real, Special
from dpfast.columns import Column, borrow, dimensions
from dpfast.columns.declarations import Numbers, PerRow, wrong_columns, wrong_per_row
from dpfast.columns.saturating import borrow_saturating
from dpfast.columns.scale import HIGHEST_SCALE
from dpfast.errors import ColumnError, DataError, ParameterError
from dpfast.mechanisms.noise.laplace import laplace_noise
from dpfast.mechanisms.noise.lattice import lattice_for
from dpfast.mechanisms.parameters import Epsilon, Monotonic, Sensitivity
from dpfast.mechanisms.thresholds.runs import CHUNK, THRESHOLD, Count, Numeric, Runs, ThresholdNoise, calibrate
from dpfast.randomness import Random, RandomSource, random_source

__all__ = ["above_threshold", "check_answers", "find_above", "measure_again", "refuse_not_finite", "without_nulls"]

Values: TypeAlias = Annotated[Numbers, Special(lambda: wrong_columns(most=2))]
#: One number, or one for each run.
Threshold: TypeAlias = Annotated[PerRow, Special(wrong_per_row)]


@overload
def above_threshold(
    values: Values,
    threshold: Threshold,
    epsilon: Epsilon,
    sensitivity: Sensitivity = 1.0,
    monotonic: Monotonic = False,
    *,
    count: Count = 1,
    numeric: None = None,
    random: Random = None,
) -> NDArray[np.int64]: ...
@overload
def above_threshold(
    values: Values,
    threshold: Threshold,
    epsilon: Epsilon,
    sensitivity: Sensitivity = 1.0,
    monotonic: Monotonic = False,
    *,
    count: Count = 1,
    numeric: Real,
    random: Random = None,
) -> tuple[NDArray[np.int64], NDArray[Any]]: ...
def above_threshold(
    values: Values,
    threshold: Threshold,
    epsilon: Epsilon,
    sensitivity: Sensitivity = 1.0,
    monotonic: Monotonic = False,
    *,
    count: Count = 1,
    numeric: Numeric = None,
    random: Random = None,
) -> NDArray[np.int64] | tuple[NDArray[np.int64], NDArray[Any]]:
    """Find the first values that lie above a threshold: one epsilon for the whole column, however long it is.

    Guarantee
        Values are tested in order, and the run stops after ``count`` positives. The places returned are
        (epsilon, 0)-differentially private, numeric answers included, if no value changes by more than
        ``sensitivity`` between neighbouring data sets. Value q is above where q + N >= threshold + N0, with N0
        exponential noise of scale s / e1, drawn once and kept for the whole run, and N fresh exponential noise of
        scale 2 count s / e2 for each value; e1 + e2 = epsilon in the ratio 1 : (2 count)**(2/3). With
        ``monotonic`` both 2 are left out. See `SparseVector` for the proof. The place where the run stopped is
        published. The length, the null mask, the shape and the thresholds are public. No budget is kept here.

    Parameters
    ----------
    values
        An int64, int32, uint32, float64 or float32 column (Polars Series, PyArrow Array or ChunkedArray, NumPy array,
        pandas Series, list), or a NumPy array of two dimensions with one run a row, each of which costs epsilon.
        A null is not tested. NaN and infinities are refused, and the error publishes that there is one. The integers
        of a list are clamped to int64.
    threshold
        A finite number, read as the nearest float64; for two dimensions also a column with one a row.
    epsilon
        The privacy of one run in all: a number from 1e-18 to 1e6. Floats are read as the decimals they were written as.
    sensitivity
        The most that one value can change between neighbouring data sets, a positive number.
    monotonic
        True if a change between neighbours moves no two values in opposite directions, as adding or removing a
        person does to counts.
    count
        How many positives a run may report before it stops.
    numeric
        None, or the part of epsilon, between 0 and 1, that is spent on answers: every positive is then measured
        again with fresh Laplace noise of scale count * sensitivity / (numeric * epsilon).
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.

    Returns
    -------
    numpy.ndarray or tuple
        The places of the positives in order (int64): at most ``count`` of them, and fewer only if all values were
        tested. For two dimensions a row for each run, filled up with -1. With ``numeric`` a tuple of these and the
        answers, int64 for integers or of the values' float type, as `laplace` gives them (0 beside a -1).

    Raises
    ------
    ParameterError
        A parameter is not as above.
    ColumnError
        The values' kind or type is not one of those above.
    DataError
        A value is NaN or infinite.

    References
    ----------
    Dwork, Naor, Reingold, Rothblum, Vadhan (2009); Dwork, Roth (2014), section 3.6. Lyu, Su, Li (2017), algorithm 7,
    for the noise kept over all answers and the ratio. Liu, Wang, Liu, Li, Chen (2024) for exponential noise.

    Examples
    --------
    >>> from dpfast.testing import SeededRandom
    >>> visits = [3, 1, 4, 900, 5, 9, 2, 600, 800, 700]
    >>> above_threshold(visits, threshold=300, epsilon=1.0, count=2, random=SeededRandom(1))
    array([3, 7])
    >>> places, answers = above_threshold(visits, 300, 1.0, count=2, numeric=0.5, random=SeededRandom(1))
    >>> places.tolist(), [abs(answer - true) < 60 for answer, true in zip(answers.tolist(), [900, 600])]
    ([3, 7], [True, True])
    >>> above_threshold(visits, threshold=300, epsilon=1.0, count=0)
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: count must be a whole number from 1 to 2**31, but was 0; write for example \
count=5

    """
    column = borrow_saturating(values, "values")
    if dimensions(values) not in (1, 2):
        raise ColumnError("values must be a column, or an array of 2 dimensions with one run a row; reshape them")
    single = dimensions(values) == 1
    rows, width = (1, column.length) if single else np.shape(np.asanyarray(values))
    noise = calibrate(epsilon, sensitivity, monotonic, count, numeric)
    thresholds = _thresholds(threshold, rows, single)
    if noise.answer_scale is not None:
        check_answers(column, noise.answer_scale)
    source = random_source(random)
    column, where = without_nulls(column)
    refuse_not_finite(column, where)
    width = column.length if single else width
    places = find_above(column, width, noise, thresholds, int(count), source)
    positive = places >= 0
    answers = None
    if noise.answer_scale is not None:
        chosen = (places + np.arange(thresholds.size)[:, None] * width)[positive]
        drawn = measure_again(column, chosen, noise.answer_scale, source)
        answers = np.zeros(places.shape, drawn.dtype)
        answers[positive] = drawn
    if where is not None:
        places[positive] = where[places[positive]]
    if single:
        places, answers = places[positive], None if answers is None else answers[positive]
    return places if answers is None else (places, answers)


def _thresholds(threshold: Any, rows: int, single: bool) -> NDArray[np.float64]:
    """Return a finite threshold for each run."""
    if single or isinstance(threshold, (str, bytes)) or not hasattr(threshold, "__len__") or np.shape(threshold) == ():
        return np.full(rows, THRESHOLD.read("threshold", threshold))
    column = borrow(threshold, "threshold")
    if column.length != rows:
        mend = "pass one number, or one threshold for each row"
        raise ParameterError("the length of threshold", column.length, f"{rows}, as many as rows", mend)
    given = column.block(0, rows).astype(np.float64)
    missing = column.missing(0, rows)
    bad = ~np.isfinite(given) if missing is None else missing | ~np.isfinite(given)
    if bad.any():
        row = int(bad.argmax())
        shown = None if missing is not None and missing[row] else given[row].item()
        raise ParameterError(f"threshold[{row}]", shown, "a finite number")
    return given


def find_above(
    column: Column,
    width: int,
    noise: ThresholdNoise,
    thresholds: NDArray[np.float64],
    count: int,
    source: RandomSource,
    *,
    refine_all: bool = False,
) -> NDArray[np.int64]:
    """Return the places of every run's positives, filled up with -1; runs are ``width`` values each of a column.

    Words are drawn for whole runs as long as they fit into a chunk, and for a longer one chunk by chunk up to where
    it stops: their number depends on the shape and on the places returned.
    """
    rows = thresholds.size
    places = np.full((rows, min(count, width)), -1, np.int64)
    if not places.size:
        return places
    runs = Runs(noise, thresholds, source, refine_all=refine_all)
    found = np.zeros(rows, np.int64)
    together = max(CHUNK // width, 1)
    for first in range(0, rows, together):
        own = slice(first, min(first + together, rows))
        begin, end = own.start * width, own.stop * width
        for start in range(begin, end, CHUNK):
            block = column.block(start, min(start + CHUNK, end))
            runs.scan(first, block, start - begin, found[own], places[own])
            if width > CHUNK and found[first] == places.shape[1]:
                break
    return places


def without_nulls(column: Column) -> tuple[Column, NDArray[np.int64] | None]:
    """Return a column without its nulls, and where its values stood; None if it had no nulls."""
    missing = column.missing(0, column.length)
    if missing is None:
        return column, None
    where = np.flatnonzero(~missing)
    return borrow(column.block(0, column.length)[where]), where


def refuse_not_finite(column: Column, where: NDArray[np.int64] | None) -> None:
    """Raise if a value is NaN or infinite."""
    if column.dtype.kind != "f":
        return
    for start in range(0, column.length, CHUNK):
        finite = np.isfinite(column.block(start, min(start + CHUNK, column.length)))
        if not finite.all():
            place = start + int(np.argmin(finite))
            place = place if where is None else int(where[place])
            message = f"values must be finite, but value {place} is NaN or infinite"
            raise DataError(f"{message}; leave it out or replace it first")


def check_answers(column: Column, scale: float) -> None:
    """Refuse a scale of numeric answers that this type cannot have, before anything is drawn."""
    if scale > HIGHEST_SCALE:
        raise ParameterError("numeric", None, "a larger part for so small an epsilon", "its noise would overflow")
    lattice_for(column.dtype, scale, discrete=True)


def measure_again(column: Column, chosen: NDArray[np.int64], scale: float, source: RandomSource) -> NDArray[Any]:
    """Return chosen values of a column, in ascending order of their places, with fresh Laplace noise."""
    return laplace_noise(borrow(column.take(chosen)), scale, source)
