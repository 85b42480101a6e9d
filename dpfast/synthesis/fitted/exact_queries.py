"""Queries whose answers are whole numbers: what a private score or a measurement is made of.

Queries of integers are answered as they are. Others are rounded to multiples of 2**-20 first, and the rounded ones are
answered: sums of floats would depend on their order, and the sensitivity is that of what is summed (Soundness rules 16
and 25).
"""

from __future__ import annotations

import math
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.accounting.privacy_unit import Neighbors
from dpfast.arguments import Special, Whole
from dpfast.errors import ParameterError, Words
from dpfast.workloads import Workload
from dpfast.workloads.histograms import array_of, clamped, counted, no_arrays
from dpfast.workloads.workload import WORKLOAD

__all__ = ["LARGEST_DOMAIN", "PRIOR", "REPLAYS", "TOTAL", "ExactQueries", "Prior", "Replays", "Total", "check_cells"]

#: How often measurements are fitted again.
REPLAYS = Whole(1, 10**6, mend="write for example {name}=100")
Replays: TypeAlias = Annotated[int, REPLAYS]
#: How many records there are, where that is public.
TOTAL = Whole(0, 2**60, optional=True, mend="write for example {name}=10_000")
Total: TypeAlias = Annotated[int | None, TOTAL]
#: Weights to start with.
PRIOR = Special(
    lambda: (
        *no_arrays(),
        3.0,
        [1.0, 2.0],
        [0.0] * 4,
        [-1.0] * 4,
        [math.nan] * 4,
        [math.inf] * 4,
        [1e-300, 1, 1, 1e300],
    ),
    optional=True,
)
Prior: TypeAlias = Annotated[ArrayLike | None, PRIOR]

#: Cells for which weights are held in memory.
LARGEST_DOMAIN = 2**28

#: Real coefficients are rounded to multiples of 2**-REAL_BITS.
_REAL_BITS = 20
#: Scores are counted in 2**-_SCORE_BITS of an answer's unit where that is a whole record.
_SCORE_BITS = 8
#: Sums of all counts, in the unit of scores, stay below this.
_LARGEST_SUM_BITS = 60


def check_cells(cells: int, argument: str) -> None:
    """Refuse what is over more cells than weights are held of in memory, and say the bytes that these would take."""
    if cells > LARGEST_DOMAIN:
        allowed = f"over at most {LARGEST_DOMAIN:,} cells (the weights of these take {8 * cells:,} bytes)"
        raise ParameterError(
            argument, Words(f"over {cells:,} cells"), allowed, "leave attributes out, or make them coarser"
        )


class ExactQueries:
    """A workload's queries with integer answers, and what one privacy unit changes in them.

    Guarantee
        Of a histogram in which one cell changes by one (neighbours "add_remove"), a single answer changes by at most
        M, the largest absolute coefficient, and so do all answers of a group together, since a cell is in one query of
        a group at most. Where one cell loses one and another gains one ("replace"), a single answer changes by at most
        H - L, H the largest and L the least coefficient or 0, and a group's by at most 2 M in all, in two answers by M
        each: an L2 norm of sqrt(2) M. M, H and L are those of the rounded queries, whole numbers of steps. The 0 is
        that of a cell whose count is out of range, and stays where it was moved to while the other cell's changes.

    Parameters
    ----------
    workload
        Its coefficients lie between -1 and 1.
    neighbors
        As above.
    whatever
        Take coefficients of any size, and zeros alone: for callers who bound them themselves.

    Attributes
    ----------
    unit_bits
        Answers count steps of 2**-unit_bits: 0 for queries of integers.
    score_bits
        Scores count steps of 2**-score_bits of an answer's unit.
    l1, l2_squared
        What one privacy unit changes in the answers of a group, or of a query where groups are single queries: the sum
        of absolute changes, and the sum of their squares at most.
    offsets
        Group g has the queries offsets[g] to offsets[g + 1].
    largest_count
        The most that a cell may hold.

    """

    def __init__(self, workload: Workload, neighbors: Neighbors, *, whatever: bool = False) -> None:
        WORKLOAD.read("workload", workload)
        check_cells(workload.cells, "workload")
        if len(workload) == 0 or workload.cells == 0:
            raise ParameterError("workload", repr(workload), "of at least one query and one cell")
        low, high = workload.range
        if not (whatever or -1.0 <= low <= high <= 1.0):
            raise ParameterError(
                "workload",
                Words(f"of coefficients from {low:g} to {high:g}"),
                "of coefficients from -1 to 1",
                "scale it",
            )
        self.workload = workload
        whole = workload.binary or workload.answer(np.zeros(workload.cells, np.int64)).dtype.kind == "i"
        self.unit_bits = 0 if whole else _REAL_BITS
        self.score_bits = _SCORE_BITS if whole else 0
        least, most = self._bounds = [round(bound * 2**self.unit_bits) for bound in (low, high)]
        largest = max(abs(least), abs(most))
        if largest == 0 and not whatever:
            raise ParameterError("workload", Words("of coefficients 0"), "of queries that ask for something")
        groups = workload.groups
        self.grouped = groups is not None
        self.offsets = np.arange(len(workload) + 1, dtype=np.int64) if groups is None else np.asarray(groups, np.int64)
        if neighbors == "add_remove":
            self.l1, self.l2_squared = largest, largest**2
        elif self.grouped:
            self.l1, self.l2_squared = 2 * largest, 2 * largest**2
        else:
            self.l1 = max(max(most, 0) - min(least, 0), 1)
            self.l2_squared = self.l1**2
        self.largest_count: int = 2 ** (_LARGEST_SUM_BITS - self.unit_bits - self.score_bits) // workload.cells

    def checked(self, histogram: Any, *, clamp: bool) -> NDArray[np.int64]:
        """Return a histogram of counts, in one dimension.

        Parameters
        ----------
        histogram
            Integers, of the workload's shape.
        clamp
            Whether counts out of range are moved to its nearer end, which moves no two histograms apart: for routes
            that charge a ledger, on which no error depends on counts. Else they are refused.

        Raises
        ------
        ParameterError
            The shape or the type is another one.
        DataError
            A count is negative or too large.

        """
        return clamped(counted(histogram, self.workload.shape), self.largest_count, clamp=clamp)

    def answers(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return all answers, exactly, in steps."""
        if not self.unit_bits:
            return np.asarray(self.workload.answer(histogram), dtype=np.int64)
        # Products of factors can be rounded one way in a row and another in the workload's range: the range decides.
        parts = [
            np.clip(np.rint(np.ldexp(block, self.unit_bits)), *self._bounds).astype(np.int64) @ histogram
            for block in self.workload.blocks()
        ]
        return np.concatenate(parts)

    def scores(self, answers: NDArray[np.int64], estimates: NDArray[np.float64], expected: float) -> NDArray[np.int64]:
        """Return every group's score: how far the estimates are from the answers, less what noise would make it.

        Guarantee
            Integers, in steps of 2**-score_bits of an answer's unit. For fixed estimates, which are public, neighbours
            change no score by more than 2**score_bits * l1: the score is the sum over the group's queries of
            abs(2**score_bits a_i - e_i) less a constant, with e_i and the constant whole numbers made of public ones,
            and abs(abs(u) - abs(v)) <= abs(u - v) (Soundness rule 25).

        Parameters
        ----------
        answers
            The exact answers, in steps.
        estimates
            Public estimates of the answers, in records.
        expected
            The mean absolute noise of one measurement, in steps.

        """
        sizes = np.diff(self.offsets)
        # Estimates of absurd size are cut off, so that no sum overflows: of answers all sums are below 2**60.
        limit = np.repeat(np.ldexp(1.0, 61) / sizes, sizes)
        with np.errstate(over="ignore"):
            scaled = np.ldexp(estimates, self.unit_bits + self.score_bits)
        errors: NDArray[np.int64] = np.abs((answers << self.score_bits) - public_steps(scaled, limit))
        if not self.grouped:
            return errors
        penalty = np.minimum(np.ldexp(expected, self.score_bits) * sizes, np.ldexp(1.0, 61))
        scores: NDArray[np.int64] = np.add.reduceat(errors, self.offsets[:-1]) - np.rint(penalty).astype(np.int64)
        return scores

    @property
    def score_sensitivity(self) -> int:
        """What neighbours change in a score at most."""
        return int(self.l1 << self.score_bits)


def public_steps(estimates: NDArray[np.float64], limit: Any) -> NDArray[np.int64]:
    """Return public estimates as whole numbers from -limit to limit, a float64 or one for each, up to 2**62.

    Guarantee
        What exact answers are compared with, so that differences of numbers below 2**62 fit: an estimate that is no
        number is 0, not the integer that a processor makes of it, beside which a difference of 1 in a private answer
        would turn into one of 2**64.

    Examples
    --------
    >>> public_steps(np.array([2.5, np.nan, np.inf, -1e30]), 2.0**61).tolist()
    [2, 0, 2305843009213693952, -2305843009213693952]

    """
    known = np.where(np.isnan(estimates), 0.0, estimates)
    steps: NDArray[np.int64] = np.rint(np.clip(known, -limit, limit)).astype(np.int64)
    return steps


def histogram_shape(histogram: Any) -> tuple[int, ...]:
    """Return the shape of a histogram of one cell or more, if weights of so many are held in memory."""
    shape = array_of(histogram, "histogram").shape
    if not shape or 0 in shape:
        raise ParameterError("histogram", Words(f"of shape {shape}"), "an array of one cell or more")
    check_cells(math.prod(shape), "histogram")
    return shape


def public_weights(prior: Prior, cells: int) -> NDArray[np.float64]:
    """Return public weights to start with, in one dimension: those of the prior in proportion, or all alike.

    The largest is from 1/2 to 1 and none is below 2**-500, so that sums and quotients of them with the number of
    records, and all that weights are multiplied by later, stay within the range of floats.
    """
    if prior is None:
        return np.ones(cells)
    given = array_of(prior, "prior")
    weights = given.astype(np.float64).reshape(-1) if given.dtype.kind in "biuf" else np.empty(0)
    if weights.size != cells or not np.isfinite(weights).all() or not weights.min() > 0.0:
        allowed = f"{cells:,} positive finite public weights, one for each cell"
        raise ParameterError("prior", Words(f"of {weights.size} numbers"), allowed)
    weights = np.ldexp(weights, -math.frexp(float(weights.max()))[1])
    if not weights.min() >= 2.0**-500:
        allowed = "of weights within a factor of 2**499 of each other"
        raise ParameterError("prior", Words("of weights further apart"), allowed, "raise the smallest ones")
    return weights
