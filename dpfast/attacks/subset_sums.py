"""Reconstruction from the sums over all subsets, however they err (Dwork, Roth 2014, theorem 8.1)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.arguments import Special
from dpfast.attacks.records import Records, read_records
from dpfast.errors import ParameterError, Words
from dpfast.workloads.histograms import array_of, no_arrays

__all__ = ["reconstruct_from_subset_sums", "subset_sums"]

_MOST = 22
_ANSWERS = Special(lambda: (*no_arrays(), [], [1.0], [1, 2, 3], np.zeros(48), [np.nan, 1.0], [np.inf, 0.0]))


def subset_sums(records: Records) -> NDArray[np.int64]:
    """Return how many records of each subset are 1: 2**n exact answers.

    Parameters
    ----------
    records
        n zeros and ones, at most 22.

    Returns
    -------
    numpy.ndarray
        The sum over subset S at place S: record i is in it where bit i of S is 1.

    Examples
    --------
    >>> subset_sums([1, 0, 1]).tolist()
    [0, 1, 0, 1, 1, 2, 1, 2]

    """
    bits = read_records(records, most=_MOST)
    sums = np.zeros(1, np.int64)
    for bit in bits.tolist():
        sums = np.concatenate([sums, sums + bit])
    return sums


def reconstruct_from_subset_sums(answers: Annotated[ArrayLike, _ANSWERS]) -> NDArray[np.uint8]:
    """Return the records whose subset sums are nearest to noisy answers, by the largest distance.

    If no answer errs by more than E, at most 4 E of the records are wrong, however the errors were chosen. Both the
    true records and those returned are within E of every answer, so their sums over any set differ by at most 2 E.
    Take the set of records that are 0 in truth and 1 here, and the set of those that are 1 in truth and 0 here.

    The largest distance of all 2**n candidates takes n 2**n steps: a record that is 0 leaves the largest distance over
    subsets with and without it, one that is 1 lowers the answers of the subsets with it by 1.

    Parameters
    ----------
    answers
        2**n finite numbers, in the order of `subset_sums`; n from 1 to 22.

    Returns
    -------
    numpy.ndarray
        n zeros and ones.

    Raises
    ------
    ParameterError
        They are not 2**n finite numbers.

    References
    ----------
    Dinur, Nissim: Revealing information while preserving privacy (2003). Dwork, Roth (2014), theorem 8.1.

    Examples
    --------
    >>> records = [1, 0, 0, 1, 1, 1, 0, 1]
    >>> noise = [0.24 if subset % 3 else -0.24 for subset in range(2**8)]
    >>> reconstruct_from_subset_sums(subset_sums(records) + noise).tolist()
    [1, 0, 0, 1, 1, 1, 0, 1]

    """
    given = array_of(answers, "answers")
    count = given.size.bit_length() - 1
    if given.ndim != 1 or given.size != 2**count or not 1 <= count <= _MOST:
        raise ParameterError("answers", Words(f"{given.size:,} answers"), f"2**n numbers, with n from 1 to {_MOST}")
    if given.dtype.kind not in "iuf" or not np.isfinite(given).all():
        raise ParameterError("answers", Words("something else"), "finite numbers")
    highest = lowest = given.astype(np.float64)
    for record in range(count):
        highest = _with_record(highest, record, np.maximum)
        lowest = _with_record(lowest, record, np.minimum)
    nearest = int(np.maximum(highest, -lowest).argmin())
    return ((nearest >> np.arange(count)) & 1).astype(np.uint8)


def _with_record(distances: NDArray[np.float64], record: int, extreme: np.ufunc) -> NDArray[np.float64]:
    """Turn one place of the index from 'is in the subset' to 'is 1 in the candidate'."""
    pairs = distances.reshape(-1, 2, 2**record)
    without, inside = pairs[:, 0], pairs[:, 1]
    return np.stack([extreme(without, inside), extreme(without, inside - 1.0)], axis=1).reshape(-1)
