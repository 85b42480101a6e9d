"""Which marginals are measured at once, and what each of them counts: what users give, read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Special, is_real
from dpfast.domain.domain import Domain
from dpfast.domain.shapes import check_size
from dpfast.errors import ParameterError, Words
from dpfast.showing import number_of
from dpfast.strategies.marginal_spaces import parts_of
from dpfast.synthesis.graphical.candidates import Candidates
from dpfast.synthesis.graphical.synthesizing import Asked, read_sets
from dpfast.synthesis.residuals.measuring import LARGEST_MARGINAL
from dpfast.workloads.marginals import Marginals

__all__ = ["OwnSets", "Weights", "read_weights", "read_workload"]

Attributes = tuple[int, ...]

#: More residuals than that take minutes to plan.
_MOST_SPACES = 200_000
#: Of more columns than that a marginal has too many parts.
_MOST_COLUMNS = 16


def _no_weights() -> Iterator[object]:
    yield from (5, "a", [], [0], [-1.0], [float("nan")], [float("inf")], ["a"], [None], [1.0] * 10_001, object())


#: One for each marginal.
Weights: TypeAlias = Annotated[Sequence[float] | NDArray[Any] | None, Special(_no_weights, optional=True)]
OwnSets: TypeAlias = Annotated[
    Asked | Marginals | None, Special(lambda: (5, "ab", [], *[["sex"], [5], [()]]), optional=True)
]


def read_workload(workload: object, domain: Domain) -> list[Attributes]:
    """Return the marginals that are asked."""
    if workload is None:
        asked = list(Candidates.pairs(domain.shape, LARGEST_MARGINAL).sets)
    else:
        asked = read_sets(workload, domain)
    for held in asked:
        names = ", ".join(domain.names[place] for place in held)
        cells = math.prod(domain.shape[place] for place in held)
        if cells > LARGEST_MARGINAL or len(held) > _MOST_COLUMNS:
            given = Words(f"of {names} ({number_of(cells, 'cell')})")
            allowed = f"of marginals of at most {_MOST_COLUMNS} columns and {LARGEST_MARGINAL:,} cells"
            raise ParameterError("workload", given, allowed, "name fewer columns together")
    spaces = sum(2 ** len(held) for held in asked)
    if _MOST_SPACES < spaces < 100 * _MOST_SPACES:
        spaces = len(parts_of(asked))
    if spaces > _MOST_SPACES:
        raise ParameterError("workload", Words(f"of {spaces:,} residuals"), f"of at most {_MOST_SPACES:,} residuals")
    check_size(sum(math.prod(domain.shape[place] for place in held) for held in asked), "workload", "cells")
    return asked


def read_weights(weights: object, number: int) -> list[float]:
    """Return a positive weight for each marginal."""
    if weights is None:
        return [1.0] * number
    listed = list(weights) if isinstance(weights, (list, tuple, np.ndarray)) and np.ndim(weights) == 1 else []
    found = [float(one) for one in listed if is_real(one)]
    if len(found) < len(listed) or len(found) != number or not all(1e-100 < one < 1e100 for one in found):
        raise ParameterError("weights", weights, f"{number:,} positive numbers, one for each marginal")
    return found
