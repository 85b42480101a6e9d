"""What privacy is worth: what an outcome tells of the one who helped to choose it (section 10.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Special
from dpfast.columns.declarations import TypedColumn, as_array
from dpfast.errors import ParameterError, Words

__all__ = ["information_cost", "outcome_costs"]


def _no_laws() -> Iterator[object]:
    yield from (1, 0.5, True, "0", object(), len, {0: 1}, [], [0.5, 0.5], np.zeros((2, 2)), np.zeros((0, 2)))
    yield from ([[0.5, 0.4]], [[1.5, -0.5]], [[np.nan, 1.0]], [["a"]], np.ones((2, 1, 1)), [[0.5], [0.5, 0.5]])


def _no_priors() -> Iterator[object]:
    yield from (1, 0.5, True, "0", object(), len, [], [[1.0]], [0.5] * 17, [0.5, 0.4], [2.0, -1.0], [np.nan, 1.0])


#: A row of probabilities, which add up to 1, for each report that an agent may make.
Laws: TypeAlias = Annotated[TypedColumn | Sequence[Any], Special(_no_laws)]
Prior: TypeAlias = Annotated[TypedColumn | Sequence[float] | None, Special(_no_priors, optional=True)]


def outcome_costs(laws: Laws) -> NDArray[np.float64]:
    """Return for each outcome how much it tells of one agent's report, at most.

    It is the largest difference that two reports make in the logarithm of its probability. A mechanism is
    epsilon-differentially private if this is epsilon at most for every outcome, whatever the others report. An agent
    may hold what an outcome costs her against it; a cost of epsilon alone, however much an outcome tells, is a cruder
    model (times her own value of privacy, u = utility - epsilon * value).

    Parameters
    ----------
    laws
        A row of probabilities of all outcomes for each report, what the others report being fixed.

    Returns
    -------
    numpy.ndarray
        One number for each outcome, infinite if a report alone makes it possible.

    Raises
    ------
    ParameterError
        They are no such rows.

    References
    ----------
    Chen, Chong, Kash, Moran, Vadhan (2013). Dwork, Roth (2014), section 10.3.4.

    Examples
    --------
    >>> outcome_costs([[0.5, 0.5], [0.25, 0.75]]).round(4)
    array([0.6931, 0.4055])

    """
    rows = _read_laws(laws)
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms = np.log(rows)
        spread: NDArray[np.float64] = logarithms.max(axis=0) - logarithms.min(axis=0)
    return np.where(rows.max(axis=0) == 0, 0.0, spread)


def information_cost(laws: Laws, prior: Prior = None) -> float:
    """Return how many bits an outcome tells of an agent's type on average: their mutual information.

    As a cost of privacy it is a trap. What counts is how an agent of each type *behaves*: who reports at random tells
    nothing, whatever the mechanism does with the report, and who tells the truth about a fair coin tells 1 bit, even
    about a sandwich that nobody need hide. So it depends on what others believe of all types together, and tells little
    about what one outcome does to one person (`outcome_costs` does).

    Parameters
    ----------
    laws
        A row of probabilities of all outcomes for each type.
    prior
        How probable each type is; by default all alike.

    Raises
    ------
    ParameterError
        The laws or the prior are no probabilities.

    References
    ----------
    Xiao (2013). Dwork, Roth (2014), section 10.3.3.

    Examples
    --------
    >>> information_cost([[1, 0], [0, 1]]), information_cost([[0.5, 0.5], [0.5, 0.5]])
    (1.0, 0.0)

    """
    rows = _read_laws(laws)
    types = np.full(len(rows), 1 / len(rows)) if prior is None else _read_numbers(prior, "prior")
    if types.shape != (len(rows),) or not _is_law(types):
        raise ParameterError("prior", Words(f"of shape {types.shape}"), "one probability for each row, 1 together")
    mixed = types @ rows
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(rows > 0, rows * np.log2(rows / mixed), 0.0)
    return max(float((types[:, None] * ratios).sum()), 0.0)


def _read_laws(laws: Laws) -> NDArray[np.float64]:
    rows = _read_numbers(laws, "laws")
    if rows.ndim != 2 or not rows.size or not _is_law(rows):
        raise ParameterError("laws", Words(f"of shape {rows.shape}"), "rows of probabilities, 1 together in each")
    return rows


def _read_numbers(given: object, argument: str) -> NDArray[np.float64]:
    array = as_array(given, argument)
    if array.dtype.kind not in "iuf":
        raise ParameterError(argument, Words(f"of type {array.dtype}"), "of integers or floats")
    return array.astype(np.float64)


def _is_law(rows: NDArray[np.float64]) -> bool:
    # What is NaN satisfies neither.
    return bool((rows >= 0).all() and (np.abs(rows.sum(axis=-1) - 1) <= 1e-9).all())
