"""The exponential mechanism: one candidate, or one for every row."""

from __future__ import annotations

from typing import Any

from dpfast.mechanisms.exponential_routes import select_one

__all__ = ["exponential"]


def exponential(
    scores: Any, epsilon: Any, sensitivity: Any = 1.0, monotonic: bool = False, *, random: object = None
) -> Any:
    """Select a candidate with a high score by the exponential mechanism.

    Guarantee
        Candidate i is selected with probability proportional to exp(a * scores[i]), exactly, where
        a = epsilon / (2 * sensitivity) rounded down to a float64. That is (epsilon, 0)-differentially private
        if no score changes by more than ``sensitivity`` between neighbouring data sets; every row
        of a 2-D array is a selection of its own and costs its own epsilon. Only the index may be published: the
        winner's score is private still, and costs extra. The candidates and the null mask are public, as is
        the shape, and no budget is kept here.

    Parameters
    ----------
    scores
        One score for each candidate, the higher the better: an int64, int32, uint32, float64 or float32 column
        (Polars Series, PyArrow Array or ChunkedArray, NumPy array, pandas Series, list), or a NumPy array of
        two dimensions with one selection a row. A null is no candidate: it is passed over, and the others keep
        their places. NaN and infinities are refused.
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
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.

    Returns
    -------
    int or numpy.ndarray
        The winner's place in the column; for two dimensions an int64 array with the winner's place in each row.

    Raises
    ------
    ParameterError
        epsilon, sensitivity or monotonic is not as above, or a column of them has another length than the rows.
    ColumnError
        The scores' kind or type is not one of those above.
    DataError
        A score is NaN or infinite, or there is no candidate.

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
    >>> exponential([1.0, float("nan")], epsilon=1.0)
    Traceback (most recent call last):
    ...
    dpfast.errors.DataError: scores must be finite, but candidate 1 is NaN or infinite; leave it out or replace it first

    """
    return select_one(scores, epsilon, sensitivity, monotonic, random)
