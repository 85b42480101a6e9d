"""The mean of numbers, from one bit of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl
from flint import arb
from numpy.typing import NDArray

from dpfast.arguments import Numeric, Private, Special, Threads
from dpfast.columns import BLOCK_ROWS
from dpfast.columns.declarations import AnyColumn, Numbers, wrong_columns
from dpfast.columns.fresh import fresh_array
from dpfast.columns.grid import Bounds, check_bounds
from dpfast.columns.private import borrow_numbers
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.exact.balls import ball
from dpfast.kernels.local.means import one_bit_reports
from dpfast.local.estimates import Support, frame_of, support_spread
from dpfast.local.oracle import CONFIDENCE, Confidence
from dpfast.local.reports import give_reports, read_bools
from dpfast.mechanisms.noise.exact import decided, unique_floor
from dpfast.mechanisms.parameters import Epsilon
from dpfast.randomness import Keystream, Purpose, Random, random_source
from dpfast.showing import Shown
from dpfast.threads import share, thread_count

__all__ = ["BooleanReports", "BoundedMean", "NumberRows"]

NumberRows: TypeAlias = Annotated[
    Numbers | AnyColumn | Sequence[Any] | Numeric, Private(lambda: wrong_columns(least=0, most=32, private=True))
]
BooleanReports: TypeAlias = Annotated[
    AnyColumn | Sequence[Any] | bool | np.bool_,
    Special(lambda: (1, 0.5, "report", b"1", [0.5], [1], ["a"], {1: 2}, {1}, object(), np.ones(3), pl.Series([1]))),
]
#: From here on a lie is as improbable as a word of 64 bits can say.
_CERTAIN = 45


@dataclass(frozen=True)
class BoundedMean(Shown):
    """Report one bit of a number between two bounds, and estimate the mean of all.

    Guarantee
        Every row is (epsilon, 0)-differentially private in the local model: a report is True with a probability that is
        a multiple of 2**-64, between t and 1 - t for t at least 1 / (exp(epsilon) + 1), whatever the row holds; so no
        report's probabilities differ by more than the factor (1 - t) / t, at most exp(epsilon). Numbers outside the
        bounds are clamped; a null or NaN reports True with probability 1/2, as a number in the middle does. No content
        of a row makes it fail.

    Parameters
    ----------
    bounds
        Two finite numbers, the lower one first, fixed without a look at the data.
    epsilon
        The privacy of one row: a number from 1e-18 to 1e6, read as the decimal that it was written as.

    Raises
    ------
    ParameterError
        A parameter is not as above.

    Notes
    -----
    The probability of True rises evenly from t at the lower bound to 1 - t at the upper one. n times the variance of
    the mean is at most ((e + 1) / (e - 1))**2 / 4 times the squared distance of the bounds, e = exp(epsilon).

    References
    ----------
    Duchi, Jordan, Wainwright (2013), section 4. Ding, Kulkarni, Yekhanin (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.testing import SeededRandom
    >>> mean = BoundedMean(bounds=(0, 100), epsilon=1.0)
    >>> reports = mean.randomize(np.full(100_000, 30), random=SeededRandom(1))
    >>> frame = mean.estimate(reports)
    >>> frame.columns, round(frame["mean"][0])
    (['mean', 'standard_error', 'low', 'high'], 30)

    """

    bounds: Bounds
    epsilon: Epsilon

    def __post_init__(self) -> None:
        check_bounds(self.bounds)
        object.__setattr__(self, "bounds", tuple(self.bounds))
        budget_units(self.epsilon, "epsilon")

    @cached_property
    def lie(self) -> int:
        """The probability of True at the lower bound, times 2**64."""
        exactly = Fraction(budget_units(self.epsilon, "epsilon"), UNITS_PER_ONE)
        if exactly >= _CERTAIN:
            return 1
        return 1 + decided(lambda _: unique_floor(arb(2) ** 64 / (ball(exactly).exp() + 1)), 256)

    def randomize(self, values: NumberRows, *, random: Random = None, threads: Threads = None) -> Any:
        """Return a Boolean for every row, drawn by that row alone.

        Parameters
        ----------
        values
            A column of numbers of any kind that `dpfast.laplace` takes, or one number. In a list, whatever is no number
            counts as null does: as the middle of the bounds. Of lists in lists the first one says how long all are;
            its length is public, and each number of one of another length is null.
        random
            None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.
        threads
            How many threads share the work; None uses all cores where that pays. The result does not depend on it.

        Returns
        -------
        same kind as ``values``
            A column of Booleans, without nulls; lists come back as NumPy arrays.

        """
        column = borrow_numbers(values, "values", None)
        low, high = check_bounds(self.bounds)
        keystream = Keystream(random_source(random).key())
        released = fresh_array(column.length, np.dtype(np.uint8))

        def work(numbers: Iterator[int]) -> None:
            words = keystream.words(Purpose.NOISE)
            buffer = np.empty(min(column.length, BLOCK_ROWS), np.uint64)
            for block in numbers:
                start, stop = block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, column.length)
                rows = column.block(start, stop)
                missing = column.missing(start, stop) if column.null_count else None
                if missing is not None:
                    rows = np.where(missing, np.nan, rows)
                    rows.setflags(write=False)
                words.fill(block, buffer[: stop - start])
                drawn, lie = buffer[: stop - start], np.uint64(self.lie)
                one_bit_reports(drawn, rows, np.float64(low), np.float64(high), lie, released[start:stop])

        share(work, -(-column.length // BLOCK_ROWS), thread_count(threads, column.length))
        return give_reports(values, released.view(np.bool_))

    def estimate(self, reports: BooleanReports, *, confidence: Confidence = 0.95) -> pl.DataFrame:
        """Estimate the mean. Reports are public, and so is all that is made of them.

        Parameters
        ----------
        reports
            What `randomize` returned, all rows of it, in any kind of column.
        confidence
            How often the interval holds the mean of the population that rows are a sample of. It holds that of these
            rows at least as often.

        Returns
        -------
        polars.DataFrame
            One row: ``mean``, unbiased, so that it may lie outside the bounds; ``standard_error``; and ``low`` and
            ``high``, the ends of a score interval within the bounds.

        """
        confidence = CONFIDENCE.read("confidence", confidence)
        read: NDArray[np.bool_] = read_bools(reports)
        low, high = check_bounds(self.bounds)
        # Between the bounds a number is a share of the upper one.
        lie = Fraction(self.lie, 2**64)
        support = Support(float(1 - lie), float(lie), float(1 - 2 * lie))
        shares = np.array([(int(read.sum()) / max(read.size, 1) - support.other) / support.gap])
        spread = support_spread(support, population=True)
        frame = frame_of(pl.Series([0]), shares, read.size, spread, confidence)
        width = high - low
        return frame.select(
            (low + width * pl.col("frequency")).alias("mean"),
            (width * pl.col("standard_error")).alias("standard_error"),
            (low + width * pl.col("low")).alias("low"),
            (low + width * pl.col("high")).alias("high"),
        )
