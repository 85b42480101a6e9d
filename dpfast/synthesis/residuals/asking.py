"""Which marginals are measured at once, and what each of them counts: what users give, read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Special, is_real
from dpfast.domain.domain import Domain
from dpfast.domain.shapes import check_size
from dpfast.errors import ParameterError, Words
from dpfast.showing import number_of
from dpfast.strategies.marginal_spaces import parts_of
from dpfast.synthesis.graphical.candidates import pairs_within
from dpfast.synthesis.graphical.synthesizing import Asked, read_sets
from dpfast.synthesis.residuals.contrasts import LARGEST_MARGINAL
from dpfast.synthesis.residuals.queries import Block, blocks_of, blocks_of_marginals
from dpfast.workloads.marginals import Marginals
from dpfast.workloads.workload import ANY_WORKLOAD, Workload

__all__ = ["OwnQueriesOfAny", "OwnSets", "Weights", "read_weights", "read_workload"]

Attributes = tuple[int, ...]

#: More residuals than that take minutes to plan.
_MOST_SPACES = 200_000
#: Of more columns than that a marginal has too many parts.
_MOST_COLUMNS = 16


def _no_weights() -> Iterator[object]:
    yield from (5, "a", [], [0], [-1.0], [float("nan")], [float("inf")], ["a"], [None], [1.0] * 10_001, object())


#: One for each marginal, or each part of a workload.
Weights: TypeAlias = Annotated[Sequence[float] | NDArray[Any] | None, Special(_no_weights, optional=True)]
OwnSets: TypeAlias = Annotated[
    Asked | Workload | None, Special(lambda: (5, "ab", [], *[["sex"], [5], [()]]), optional=True)
]

#: None asks for what was planned.
OwnQueriesOfAny: TypeAlias = Annotated[Workload | None, replace(ANY_WORKLOAD, optional=True)]


def read_workload(workload: object, domain: Domain) -> tuple[Workload, list[Block], list[Attributes]]:
    """Return the queries that are asked, the same taken apart by the columns that they are about, and what is left out.

    Nothing is left out but pairs of columns that have too many cells, where all pairs are asked.
    """
    if isinstance(workload, Workload) and not isinstance(workload, Marginals):
        read_sets(workload, domain)
        blocks = blocks_of(workload)
        _check_sets(blocks, domain)
        return workload, blocks, []
    sets, left_out = _pairs_of(domain) if workload is None else (read_sets(workload, domain), [])
    blocks = blocks_of_marginals(domain.shape, sets)
    _check_sets(blocks, domain)
    return Marginals(domain.shape, attributes=sets), blocks, left_out


def _pairs_of(domain: Domain) -> tuple[list[Attributes], list[Attributes]]:
    """Return what is counted if no set is named, and the pairs of columns that have too many cells.

    A column that is in no pair, of a single value say, is counted alone.
    """
    pairs, left_out = pairs_within(domain.shape, LARGEST_MARGINAL)
    held = {place for pair in pairs for place in pair}
    return pairs + [(place,) for place in range(len(domain.shape)) if place not in held], left_out


def _check_sets(blocks: Sequence[Block], domain: Domain) -> None:
    """Refuse queries about too many cells together, and too many sets of columns."""
    asked = [block.attributes for block in blocks]
    for held in asked:
        if len(held) > _MOST_COLUMNS:
            given, mend = Words(f"of {len(held):,} columns together"), "ask for the total along all other columns"
            raise ParameterError("workload", given, f"about at most {_MOST_COLUMNS} columns in each query", mend)
        cells = math.prod(domain.shape[place] for place in held)
        if cells > LARGEST_MARGINAL:
            names = ", ".join(domain.names[place] for place in held)
            allowed = f"of marginals of at most {_MOST_COLUMNS} columns and {LARGEST_MARGINAL:,} cells"
            raise ParameterError(
                "workload", Words(f"of {names} ({number_of(cells, 'cell')})"), allowed, "name fewer columns together"
            )
    spaces = sum(2 ** len(held) for held in asked)
    if _MOST_SPACES < spaces < 100 * _MOST_SPACES:
        spaces = len(parts_of(asked))
    if spaces > _MOST_SPACES:
        raise ParameterError("workload", Words(f"of {spaces:,} residuals"), f"of at most {_MOST_SPACES:,} residuals")
    check_size(sum(math.prod(domain.shape[place] for place in held) for held in asked), "workload", "cells")


def read_weights(weights: object, number: int, of: str) -> list[float]:
    """Return a positive weight for each part of a workload."""
    if weights is None:
        return [1.0] * number
    listed = list(weights) if isinstance(weights, (list, tuple, np.ndarray)) and np.ndim(weights) == 1 else []
    found = [float(one) for one in listed if is_real(one)]
    if len(found) < len(listed) or len(found) != number or not all(1e-100 < one < 1e100 for one in found):
        raise ParameterError("weights", weights, f"{number:,} positive numbers, one for each {of}")
    return found
