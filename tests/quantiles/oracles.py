"""Independent oracles for quantiles: scores point by point, and the exact distribution of every transcript."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath


def tied_score(values, y, q: Fraction) -> Fraction:
    """Return how deep rank q n is among the values equal to y, or less how many ranks it is beside them."""
    lt, le = sum(v < y for v in values), sum(v <= y for v in values)
    return min(q * len(values) - lt, le - q * len(values))


def left_of(values, y, cell: int, cells: int) -> int:
    """Return how many values are to the left of a cell of the point y."""
    return sum(v < y for v in values) + cell * sum(v == y for v in values) // cells


def candidates(values, low, high, q: Fraction, cells: int):
    """Return (point, cell, score) along the grid."""
    points = range(low, high + 1)
    if not cells:
        return [(y, 0, tied_score(values, y, q)) for y in points]
    n = len(values)
    return [(y, c, -abs(left_of(values, y, c, cells) - q * n)) for y in points for c in range(cells)]


def distribution(values, low, high, q: Fraction, cells: int, slope, sizes=None) -> list[tuple[tuple[int, int], float]]:
    """Return every point and cell with its probability; ``slope`` multiplies scores.

    ``sizes``: how much each point counts, from the first on: a point may stand for a stretch of a finer grid.
    """
    found = candidates(values, low, high, q, cells)
    best = max(score for _, _, score in found)
    weights = [math.exp(float(slope * (score - best))) * (sizes[y - 1] if sizes else 1) for y, _, score in found]
    total = math.fsum(weights)
    return [((y, cell), weight / total) for (y, cell, _), weight in zip(found, weights, strict=True)]


def transcripts(values, low, high, node, slope_of, sizes=None) -> dict[tuple, float]:
    """Return the probability of every transcript: points and cells of a node and those below it."""
    if node is None:
        return {(): 1.0}
    result: dict[tuple, float] = {}
    q = Fraction(node.p, node.d)
    for (y, cell), p in distribution(values, low, high, q, node.cells, slope_of(node) * node.d, sizes):
        if not node.cells:
            result[((node.quantile, y, cell),)] = p
            continue
        ordered = sorted(values)
        left = left_of(values, y, cell, node.cells)
        lower, upper = node.children
        for one, first in transcripts(ordered[:left], low, y, lower, slope_of, sizes).items():
            for other, second in transcripts(ordered[left:], y, high, upper, slope_of, sizes).items():
                result[((node.quantile, y, cell), *one, *other)] = p * first * second
    return result


def chosen(values, low, high, q: Fraction, cells: int, slope: Fraction, u: Fraction, v: Fraction) -> tuple[int, int]:
    """Return the point and cell that U and V choose: the block, then one of its points."""
    found = candidates(values, low, high, q, cells)
    blocks: list[list] = []
    for i, (y, cell, score) in enumerate(found):
        # A gap between values, or the cells of a value with as many on the left.
        same = [score, left_of(values, y, cell, cells or 1), y if y in values else None]
        if not blocks or blocks[-1][1:] != same:
            blocks.append([i, *same])
    starts = [block[0] for block in blocks] + [len(found)]
    with mpmath.workprec(400):
        best = max(block[1] for block in blocks)
        exponents = [slope * (block[1] - best) for block in blocks]
        weights = [
            (starts[k + 1] - starts[k]) * mpmath.exp(mpmath.mpf(x.numerator) / x.denominator)
            for k, x in enumerate(exponents)
        ]
        threshold = mpmath.fsum(weights) * mpmath.mpf(u.numerator) / u.denominator
        place, passed = 0, weights[0]
        while passed <= threshold:
            place += 1
            passed += weights[place]
    inside = math.floor(v * (starts[place + 1] - starts[place]))
    y, cell, _ = found[starts[place] + inside]
    return y, cell
