"""What all frequency oracles are: a specification that turns rows into reports, and reports into frequencies."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np
import polars as pl
from flint import arb
from numpy.typing import NDArray

from dpfast.arguments import THREADS, Flag, Number, Special, Threads
from dpfast.columns import Column
from dpfast.columns.candidates import as_series
from dpfast.columns.declarations import AnyColumn, Numbers, TypedColumn
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.exact.balls import ball, working_precision
from dpfast.local.categories import Categories, Responses, borrow_responses, read_categories
from dpfast.local.estimates import Spread, Support, frame_of, support_spread
from dpfast.local.reports import codes_of, give_reports
from dpfast.mechanisms.noise.exact import decided, unique_floor
from dpfast.mechanisms.parameters import Epsilon
from dpfast.randomness import Random, RandomSource, random_source
from dpfast.showing import Shown

__all__ = [
    "CONFIDENCE",
    "Confidence",
    "FrequencyOracle",
    "Population",
    "Reports",
    "SupportOracle",
    "response_support",
    "truth_threshold",
]

CONFIDENCE = Number(0, 1, above=True, below=True, mend="write for example {name}=0.95")
POPULATION = Flag()
Confidence: TypeAlias = Annotated[float, CONFIDENCE]
Population: TypeAlias = Annotated[bool, POPULATION]
#: What `randomize` returns, in any kind of column.
Reports: TypeAlias = Annotated[
    Numbers | AnyColumn | Sequence[Any] | str | np.generic | datetime.date,
    Special(lambda: ({1: 2}, {1}, object(), "report", b"report", 0.5, [0.5], [None], ["a"], [1j], len, range(2))),
]
#: Values to estimate, each one of the categories; None for all.
Wanted: TypeAlias = Annotated[
    Sequence[Any] | TypedColumn | None,
    Special(lambda: (0.5, "a", object(), [0.5], [-1], [2**40]), optional=True),
]
#: From here on a probability below 1 by exp(-epsilon) is 1 - 2**-64 whatever it is of.
_CERTAIN = 100


def truth_threshold(epsilon: Fraction, size: int, total: int) -> int:
    """Return T: a row reports one of its ``size`` outcomes of ``total`` with probability T / 2**64.

    T / 2**64 is at most e size / (e size + total - size), e = exp(epsilon), so that an outcome is at most e times as
    probable where it is the row's own; or it is size / total rounded up by less than 2**-64, which is the larger one
    of the two only where epsilon is below 2**-62 * total / (size * (total - size)) and the ratio likewise.

    Examples
    --------
    >>> truth_threshold(Fraction(1), 1, 4) / 2**64 < 0.4753669 < (truth_threshold(Fraction(1), 1, 4) + 1e12) / 2**64
    True

    """
    least = -(-(size << 64) // total)
    if epsilon >= _CERTAIN:
        return 2**64 - 1

    def found(_: int) -> int | None:
        own = ball(epsilon).exp() * size
        return unique_floor(own / (own + (total - size)) * arb(2) ** 64)

    return min(max(decided(found, 256 + 2 * int(epsilon)), least), 2**64 - 1)


@dataclass(frozen=True)
class FrequencyOracle(Shown, ABC):
    """How rows become reports, each private by itself, and how reports become frequencies.

    Attributes
    ----------
    categories
        A whole number k for the integers 0, 1, ..., k - 1, or the tuple of what was listed.
    epsilon
        The privacy of one row.

    """

    categories: Categories
    epsilon: Epsilon

    #: How many categories there may be.
    most: ClassVar[int] = 2**31

    def __post_init__(self) -> None:
        read = read_categories(self.categories)
        object.__setattr__(self, "categories", read)
        budget_units(self.epsilon, "epsilon")
        if self.size > self.most:
            raise ParameterError(
                "categories", self.size, f"at most {self.most} for {type(self).__name__}", "use dpf.frequency_oracle"
            )

    @property
    def size(self) -> int:
        """How many categories there are."""
        return self.categories if isinstance(self.categories, int) else len(self.categories)  # type: ignore[arg-type]

    @cached_property
    def exactly(self) -> Fraction:
        """Epsilon, exactly."""
        return Fraction(budget_units(self.epsilon, "epsilon"), UNITS_PER_ONE)

    @property
    @abstractmethod
    def variance(self) -> float:
        """The variance of a frequency near 0, times the number of reports."""

    @property
    @abstractmethod
    def report_bytes(self) -> int:
        """The size of a report."""

    @abstractmethod
    def _draw(self, column: Column, source: RandomSource, threads: object) -> NDArray[Any]:
        """Return a report for every row of a column of categories' numbers."""

    @abstractmethod
    def _estimated(
        self, reports: Any, wanted: NDArray[np.int64] | None, population: bool, threads: object
    ) -> tuple[int, NDArray[np.float64], Spread]:
        """Return the number of reports, the frequencies of all values or those wanted, and their spread."""

    def randomize(self, values: Responses, *, random: Random = None, threads: Threads = None) -> Any:
        """Return a report for every row, drawn by that row alone.

        Parameters
        ----------
        values
            A column of categories of any kind that `dpfast.randomized_response` takes, or one value.
        random
            None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.
        threads
            How many threads share the work; None uses all cores where that pays. The result does not depend on it.

        Returns
        -------
        same kind as ``values``
            A column of reports, without nulls; lists come back as NumPy arrays.

        """
        column = borrow_responses(values, self._read)
        return give_reports(values, self._draw(column, random_source(random), threads))

    def estimate(
        self,
        reports: Reports,
        *,
        values: Wanted = None,
        confidence: Confidence = 0.95,
        population: Population = False,
        threads: Threads = None,
    ) -> pl.DataFrame:
        """Estimate the share of rows of each category. Reports are public, and so is all that is made of them.

        Parameters
        ----------
        reports
            What `randomize` returned, all rows of it, in any kind of column.
        values
            Categories to estimate; None for all of them.
        confidence
            How often an interval holds the share that it is for.
        population
            Whether rows are a sample, and the shares wanted are those of the population that they are from.
        threads
            As for `randomize`.

        Returns
        -------
        polars.DataFrame
            A row a category: ``value``; ``frequency``, unbiased, so that it may lie below 0 or above 1;
            ``standard_error``; and ``low`` and ``high``, the ends of a score interval within [0, 1], which holds the
            share with the ``confidence`` where there are many reports. Intervals are for one category each.

        """
        confidence = CONFIDENCE.read("confidence", confidence)
        population = POPULATION.read("population", population)
        threads = THREADS.read_optional("threads", threads)
        wanted = None if values is None else self._numbers(values)
        rows, frequencies, spread = self._estimated(reports, wanted, population, threads)
        return frame_of(self._listed(wanted), frequencies, rows, spread, confidence)

    @property
    def _read(self) -> int | tuple[Any, ...]:
        return self.categories  # type: ignore[return-value]

    def _numbers(self, values: Any) -> NDArray[np.int64]:
        """Return the numbers of categories that are wanted."""
        column = borrow_responses(values, self._read)
        numbers = codes_of(column, 0, column.length).astype(np.int64)
        if not ((numbers >= 0) & (numbers < self.size)).all():
            raise ParameterError("values", values, "a list of categories", "leave it out for all of them")
        return numbers

    def _listed(self, wanted: NDArray[np.int64] | None) -> pl.Series:
        if isinstance(self.categories, int):
            return pl.Series(np.arange(self.size) if wanted is None else wanted)
        every = as_series(self._read)  # type: ignore[arg-type]
        return every if wanted is None else every.gather(pl.Series(wanted))


class SupportOracle(FrequencyOracle):
    """An oracle of which each report supports some values: its own with one probability, each other with another."""

    @property
    @abstractmethod
    def support(self) -> Support:
        """The probability that a report supports its own value, and that it supports another one."""

    @abstractmethod
    def _counts(self, reports: Any, wanted: NDArray[np.int64] | None, threads: object) -> tuple[int, NDArray[np.int64]]:
        """Return the number of reports, and how many support each value."""

    @property
    def variance(self) -> float:
        """The variance of a frequency near 0, times the number of reports."""
        return float(support_spread(self.support, population=False).constant)

    def _estimated(
        self, reports: Any, wanted: NDArray[np.int64] | None, population: bool, threads: object
    ) -> tuple[int, NDArray[np.float64], Spread]:
        rows, counts = self._counts(reports, wanted, threads)
        frequencies = (counts / max(rows, 1) - self.support.other) / self.support.gap
        return rows, frequencies, support_spread(self.support, population=population)


def response_support(epsilon: Fraction, others: int) -> Support:
    """Return exp(epsilon) / W, 1 / W and their difference, for W = exp(epsilon) + others."""
    with working_precision(128 + 4 * (int(epsilon) if epsilon < 1000 else 1000)):
        inverse = (-ball(epsilon)).exp()
        own = 1 / (1 + others * inverse)
        lie = inverse * own
        return Support(float(own.mid()), float(lie.mid()), float((own - lie).mid()))
