"""The exponential mechanism: one candidate, or one for every row."""

from __future__ import annotations

from typing import Any

from dpfast.arguments import Threads
from dpfast.columns.declarations import Scale
from dpfast.kernels.selection.argmax import GUMBEL
from dpfast.mechanisms.parameters import EpsilonPerRow, Monotonic
from dpfast.mechanisms.selection.argmax import select
from dpfast.mechanisms.selection.exponential_routes import select_one
from dpfast.mechanisms.selection.kinds import CandidateValues, Groups, Offsets, Scores, selection
from dpfast.randomness import Random

__all__ = ["exponential"]


@selection
def exponential(
    scores: Scores,
    epsilon: EpsilonPerRow,
    sensitivity: Scale = 1.0,
    monotonic: Monotonic = False,
    *,
    candidates: CandidateValues = None,
    offsets: Offsets = None,
    groups: Groups = None,
    random: Random = None,
    threads: Threads = None,
) -> Any:  # see Selection
    """Select a candidate with a high score by the exponential mechanism.

    Guarantee
        Candidate i is selected with probability proportional to exp(a * scores[i]), exactly, where
        a = epsilon / (2 * sensitivity) rounded down to a float64. That is (epsilon, 0)-differentially private
        if no score changes by more than ``sensitivity`` between neighbouring data sets; every row
        is a selection of its own and costs its own epsilon. Only the index may be published: the
        winner's score is private still, and costs extra. The candidates and the null mask are public, as is
        the shape, and no budget is kept here.

    Parameters
    ----------
    scores
        One score for each candidate, the higher the better, of type int64, int32, uint32, float64 or float32: a
        column (Polars Series, PyArrow Array or ChunkedArray, NumPy array, pandas Series, list) is one selection.
        Many at once, one a row: a NumPy array of two dimensions; a Polars Series of List or Array or a PyArrow
        ListArray, LargeListArray or FixedSizeListArray, read in place; or a column with ``offsets`` or ``groups``.
        A null is no candidate: it is passed over, and the others keep their places. NaN and infinities are refused,
        and the error publishes that there is one: replace them first where that is private. Finite scores of any size
        are taken. The integers of a list are clamped to int64, which raises no sensitivity.
    epsilon
        The privacy of one selection: a number from 1e-18 to 1e6, or a column with one for each row. Floats are
        read as the decimals they were written as.
    sensitivity
        The most that one score can change between neighbouring data sets, a positive number; or a column with
        one for each row.
    monotonic
        True if a change between neighbours moves no two scores in opposite directions, as adding or
        removing a person does to counts (but replacing one does not): then a = epsilon / sensitivity has the same
        guarantee.
    candidates
        The values to choose among: the winners' are returned instead of places. A column or list with one for each
        score (lists for lists); or, where scores are rows or lists, with one for each place, the same for all rows.
    offsets
        For a column of scores: row i has the scores from offsets[i] up to offsets[i + 1]; integers from 0 to the
        number of scores. Public.
    groups
        For a column of scores: an integer for each score, the number of its row, in any order. Public. Rows come in
        ascending order of their numbers.
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.
    threads
        How many threads share the work; None uses all cores where that pays. The result does not depend on it.

    Returns
    -------
    int, numpy.ndarray, or a column of the kind given
        For one column an int, the winner's place in it. For rows and lists int64 places in each row; for a column
        with offsets or groups, places in the column, one for each row, so that ``frame[places]`` has the winning
        rows. A Polars Series gives a Polars Series, PyArrow gives PyArrow, all others give NumPy. With
        ``candidates``, values in the kind that these were given in.

        A row without candidates (a null list, an empty one, or nulls alone) has no winner: null in a result of
        Polars or PyArrow, an error for others.

    Raises
    ------
    ParameterError
        epsilon, sensitivity, monotonic, candidates, offsets or groups is not as above, or has another length than it
        should.
    ColumnError
        The scores' kind or type is not one of those above.
    DataError
        A score is NaN or infinite, or there is no candidate (in a row, where the result can hold no null).

    Notes
    -----
    The largest of a * score + G, G Gumbel noise, found from certified bounds on every key. Candidates whose bounds
    overlap at the top are compared in ball arithmetic with more bits of the same noise, all of them; so scores may
    differ by thousands of units of noise without a weight that underflows. Every candidate uses up one random
    word, whatever the scores are. In one column of 2**17 candidates or more the same distribution is inverted with
    one random word in all, by certified partial sums of the weights.

    References
    ----------
    McSherry, Talwar (2007); Dwork, Roth (2014), theorem 3.10. Ilvento (2020) for what naive floats do to the weights.
    Bounded range, for composition of indices alone: Dong, Durfee, Rogers (2020).

    Examples
    --------
    >>> import numpy as np
    >>> from dpfast.testing import SeededRandom
    >>> exponential([14976, 10683, 4443], epsilon=0.1, random=SeededRandom(1))
    0
    >>> exponential(np.array([[0, 900], [900, 0]]), epsilon=1.0)
    array([1, 0])
    >>> import polars as pl
    >>> diseases = pl.Series([["flu", "gout"], ["flu", "mumps", "rash"]])
    >>> exponential(pl.Series([[900, 3], [1, 2, 800]]), epsilon=1.0, candidates=diseases).to_list()
    ['flu', 'rash']
    >>> exponential([4, 700, 900, 2], epsilon=1.0, groups=[2, 7, 2, 7], candidates=["a", "b", "c", "d"])
    ['c', 'b']
    >>> exponential([1.0, float("nan")], epsilon=1.0)
    Traceback (most recent call last):
    ...
    dpfast.errors.DataError: scores must be finite, but candidate 1 is NaN or infinite; leave it out or replace it first

    """
    given = candidates, offsets, groups, threads
    return select(scores, epsilon, sensitivity, monotonic, GUMBEL, random, *given, draw=select_one)
