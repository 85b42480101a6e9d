"""What a model's plan says before anything is measured: each way with the numbers of records that choose it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpfast.graphical.junction_tree import JunctionTree
from dpfast.synthesis.graphical.plan import ModelPlan, Split
from dpfast.synthesis.residuals.planning import ResidualPlan
from dpfast.synthesis.ways import BYTES_OF_CELL, NORMAL95, Way

__all__ = ["ways_of"]

Attributes = tuple[int, ...]

#: No number of records, as measured, is beyond this.
_MOST_RECORDS = 2**62


def ways_of(plan: ModelPlan, together: Sequence[Attributes]) -> list[Way]:
    """Return the ways of a plan that some number of records chooses, from the fewest records on.

    ``together`` is what a model holds together whatever is measured.
    """
    found = []
    for way, least, most in _ranges(plan, 1, _MOST_RECORDS):
        ends = None if least == 1 else least, None if most == _MOST_RECORDS else most
        if isinstance(way, Split):
            found.append(_of_split(plan, way, ends))
        else:
            found.append(_of_all(plan, way, together, ends))
    return found


def _ranges(plan: ModelPlan, least: int, most: int) -> list[tuple[Split | ResidualPlan, int, int]]:
    """Return each way with the numbers of records that choose it, which have none between them that do not.

    All errors fall as records grow, and each way is taken from one error to another.
    """
    found: list[tuple[Split | ResidualPlan, int, int]] = []
    last = plan.choose(most)
    while (way := plan.choose(least)) is not last:
        inside, outside = least, most
        while outside - inside > 1:
            middle = (inside + outside) // 2
            if plan.choose(middle) is way:
                inside = middle
            else:
                outside = middle
        found.append((way, least, inside))
        least = outside
    return [*found, (last, least, most)]


def _of_split(plan: ModelPlan, way: Split, ends: tuple[int | None, int | None]) -> Way:
    columns, selections, counts = way.amounts
    off, columns_off = way.noise.deviation, tuple(noise.deviation for noise in way.first)
    shares = _shares(plan, columns, selections, counts)
    return Way("rounds", way.rounds, shares, (off, off), way.noise.half_width(0.05), None, columns_off, *ends)


def _of_all(
    plan: ModelPlan, way: ResidualPlan, together: Sequence[Attributes], ends: tuple[int | None, int | None]
) -> Way:
    each = [math.sqrt(way.variance(held)) for held in way.asked]
    tree = JunctionTree.holding(plan.sizes, [*way.asked, *together])
    columns = tuple(math.sqrt(way.variance((place,))) for place in range(len(plan.sizes)))
    shares = _shares(plan, 0, 0, plan.amounts[1])
    off, megabytes = (min(each), max(each)), tree.cells * BYTES_OF_CELL / 1e6
    return Way("all at once", 1, shares, off, NORMAL95 * max(each), megabytes, columns, *ends)


def _shares(plan: ModelPlan, columns: int, selections: int, counts: int) -> tuple[float, float, float, float]:
    whole = sum(plan.amounts)
    return plan.amounts[0] / whole, columns / whole, selections / whole, counts / whole
