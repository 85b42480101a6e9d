"""The frequency oracle that is best for a domain and an epsilon."""

from __future__ import annotations

from typing import Annotated

from dpfast.arguments import Flag
from dpfast.exact.amounts import budget_units
from dpfast.local.categories import Categories
from dpfast.local.hadamard_response import HadamardResponse
from dpfast.local.local_hashing import OptimizedLocalHashing
from dpfast.local.oracle import FrequencyOracle
from dpfast.local.response_oracle import RandomizedResponse
from dpfast.local.subset_selection import SubsetSelection
from dpfast.mechanisms.parameters import Epsilon

__all__ = ["frequency_oracle"]

_FAST = Flag()
#: Sets of so many categories take at most 64 bytes a row.
_SETS = 512


def frequency_oracle(
    categories: Categories, epsilon: Epsilon, *, fast: Annotated[bool, _FAST] = False
) -> FrequencyOracle:
    """Return the frequency oracle of least variance for so many categories.

    Guarantee
        That of the oracle returned: every row that it randomizes is (epsilon, 0)-differentially private in the local
        model.

    Parameters
    ----------
    categories, epsilon
        As for `dpfast.randomized_response`.
    fast
        Whether an estimate may take no longer where there are more categories: for many reports of many categories.

    Returns
    -------
    FrequencyOracle
        Of the categories k and e = exp(epsilon): `dpfast.RandomizedResponse` if k < 3 e + 2; else
        `dpfast.SubsetSelection` up to 512 categories and `dpfast.OptimizedLocalHashing` beyond. If ``fast``,
        `dpfast.RandomizedResponse` or `dpfast.HadamardResponse`, by their variances.

    Raises
    ------
    ParameterError
        A parameter is not as above, or there are more categories than the oracle takes.

    References
    ----------
    Wang, Blocki, Li, Jha (2017), section 5: n times the variance near frequency 0 is (k - 2 + e) / (e - 1)**2 for
    randomized response and 4 e / (e - 1)**2 for the others (Hadamard response: 1 more), so that the first is better if
    k < 3 e + 2.

    Examples
    --------
    >>> frequency_oracle(10, epsilon=1.0)
    RandomizedResponse(categories=10, epsilon=1.0)
    >>> frequency_oracle(11, epsilon=1.0)
    SubsetSelection(categories=11, epsilon=1.0)
    >>> frequency_oracle(10**6, epsilon=1.0, fast=True)
    HadamardResponse(categories=1000000, epsilon=1.0)

    """
    fast = _FAST.read("fast", fast)
    budget_units(epsilon, "epsilon")
    response = RandomizedResponse(categories, epsilon)
    if fast:
        if response.size <= HadamardResponse.most:
            hadamard = HadamardResponse(categories, epsilon)
            return hadamard if hadamard.variance < response.variance else response
        return response
    own, other, _ = response.support
    # k < 3 e + 2, by probabilities that no epsilon overflows
    if (response.size - 2) * other < 3 * own:
        return response
    if response.size <= _SETS:
        return SubsetSelection(categories, epsilon)
    return OptimizedLocalHashing(categories, epsilon)
