"""Of long outputs, which numbers are looked at by themselves, and what is said of all of them.

Each number that has a column of its own takes memory for every output, so of long outputs a few have: those that tell
the two inputs apart most among outputs that teach. Of all numbers together there are sums, extremes and a score, which
weighs each by how far its mean moves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from dpfast.auditing.leaves import as_float, leaves

__all__ = ["TOTALS", "most_places", "telling", "telling_paths", "totals", "totals_of_one"]

Floats = NDArray[np.float64]

#: What is said of all numbers of an output, by the order in which `totals` gives it.
TOTALS = (
    "sum of the output",
    "sum of the output's squares",
    "largest number of the output",
    "smallest number of the output",
    "place of the output's largest number",
    "how many numbers of the output are 0",
    "how many numbers the output has",
    "score of all numbers of the output",
)

_MOST, _LEAST = 512, 16
#: Columns of their own take about so many bytes together, at 18 for each number.
_BYTES = 2**29
#: So many outputs of each input say which numbers tell most.
_ROWS = 5_000
#: Numbers are looked at in pieces of so many.
_PIECE = 2**21


def most_places(outputs: int) -> int:
    """Return how many numbers of each of so many outputs have columns of their own."""
    return max(_LEAST, min(_MOST, _BYTES // (18 * max(outputs, 1))))


def _weight(means: Floats, variances: Floats) -> Floats:
    """Return how much a number counts in the score: how far its mean moves, over its variance; 0 where that is none."""
    with np.errstate(all="ignore"):
        found = (means[0] - means[1]) / (variances[0] + variances[1])
    # Where nothing varies on either side, two means are told apart at once.
    clipped: Floats = np.clip(np.nan_to_num(found, posinf=1e6, neginf=-1e6), -1e6, 1e6)
    return clipped


def telling(table: NDArray[np.generic], parts: Sequence[slice]) -> tuple[Floats, Floats]:
    """Return how much each column tells of the two inputs, by the rows of both parts that teach, and its weight."""
    told, weights = [], []
    sides = [slice(part.start, min(part.stop, part.start + _ROWS)) for part in parts]
    step = max(1, _PIECE // _ROWS)
    for start in range(0, table.shape[1], step):
        blocks = [table[side, start : start + step].astype(np.float64) for side in sides]
        seen = []
        for values in (*zip(*map(_views, blocks), strict=True),):
            means, variances = (np.array([getattr(one, name)(axis=0) for one in values]) for name in ("mean", "var"))
            with np.errstate(all="ignore"):
                moved = np.abs(means[0] - means[1]) / np.sqrt(variances.sum(axis=0))
                wider = np.abs(variances[0] - variances[1]) / variances.sum(axis=0)
            seen.append(np.nan_to_num(np.fmax(moved, wider), posinf=1e300))
            if len(seen) == 1:
                weights.append(_weight(means, variances))
        told.append(np.max(seen, axis=0))
    return np.concatenate(told), np.concatenate(weights)


def _views(values: Floats) -> Iterator[Floats]:
    """Yield the numbers, whether they are finite, the signs of zeros, and which power of two divides each."""
    finite = np.isfinite(values)
    plain = np.clip(np.where(finite, values, 0.0), -1e150, 1e150)
    yield plain
    yield np.select([finite, np.isnan(values), values > 0], [0.0, 1.0, 2.0], 3.0)
    yield ((values == 0) & np.signbit(values)).astype(np.float64)
    fraction, exponent = np.frexp(np.where(plain == 0, 1.0, plain))
    significand = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
    yield np.log2((significand & -significand).astype(np.float64)) + exponent


def totals(table: NDArray[np.generic], weights: Floats) -> list[Floats]:
    """Return what is said of all numbers of each row; NaN counts for none."""
    rows = max(1, _PIECE // max(1, table.shape[1]))
    pieces = [_totals(table[start : start + rows], weights) for start in range(0, len(table), rows)]
    return [np.concatenate(each) for each in zip(*pieces, strict=True)]


def _totals(table: NDArray[np.generic], weights: Floats) -> list[Floats]:
    values = table.astype(np.float64)
    some = ~np.isnan(values)
    known = np.where(some, values, 0.0)
    empty = ~some.any(axis=1)
    lowest, highest = np.where(some, values, -np.inf), np.where(some, values, np.inf)
    with np.errstate(all="ignore"):
        found = [
            known.sum(axis=1),
            (known**2).sum(axis=1),
            lowest.max(axis=1),
            highest.min(axis=1),
            lowest.argmax(axis=1).astype(np.float64),
            (some & (values == 0)).sum(axis=1).astype(np.float64),
            some.sum(axis=1).astype(np.float64),
            np.where(np.isfinite(known), known, 0.0) @ weights,
        ]
    return [np.where(empty, np.nan, one) for one in found]


@dataclass(frozen=True)
class Chosen:
    """Which paths of outputs have columns of their own: those named, or the first so many where none is."""

    most: int
    named: dict[str, int] | None

    def takes(self, path: str, taken: int) -> bool:
        """Return whether a path gets a column, after so many."""
        return taken < self.most if self.named is None else path in self.named

    def ordered(self, paths: Iterable[str]) -> list[str]:
        """Return paths as they come, or the most telling first."""
        named = self.named
        return list(paths) if named is None else sorted(paths, key=lambda path: named[path])


#: Of so many paths it is counted how much they tell.
_PATHS = 2**16


def telling_paths(rows: Sequence[Any], most: int) -> tuple[Chosen, dict[str, float]]:
    """Return which paths of outputs tell most by those that teach, and the weights of all that are numbers.

    A text counts by its hash, as a number.
    """
    half = len(rows) // 2
    sums: dict[str, list[float]] = {}
    numeric: dict[str, None] = {}
    # A quarter of either side, as in `dpfast.auditing.events.Parts`.
    size = min(half // 4, _ROWS)
    for side in (0, 1):
        for row in rows[side * half : side * half + size]:
            for path, leaf in leaves(row, ""):
                number = isinstance(leaf, (int, float))
                value = as_float(leaf) if number else crc32(str(leaf).encode(errors="replace")) / 2**32
                if number and len(numeric) < _PATHS:
                    numeric[path] = None
                if path not in sums and len(sums) >= _PATHS:
                    continue
                known = min(max(value, -1e150), 1e150) if math.isfinite(value) else 0.0
                held = sums.setdefault(path, [0.0] * 6)
                for place, amount in enumerate((1.0, known, known * known)):
                    held[3 * side + place] += amount
    names = list(sums)
    table = np.array([sums[name] for name in names]).reshape(-1, 2, 3) / max(size, 1)
    means, variances = table[:, :, 1].T, np.maximum(table[:, :, 2] - table[:, :, 1] ** 2, 0.0).T
    weights = dict(zip(names, _weight(means, variances).tolist(), strict=True))
    with np.errstate(all="ignore"):
        told = np.abs(means[0] - means[1]) / np.sqrt(variances.sum(axis=0))
        told = np.fmax(told, np.abs(variances[0] - variances[1]) / variances.sum(axis=0))
        there = np.abs(table[:, 0, 0] - table[:, 1, 0])
    order = np.argsort(-np.fmax(np.nan_to_num(told, posinf=1e300), there), kind="stable")[:most]
    named = None if len(names) <= most else {names[place]: rank for rank, place in enumerate(order.tolist())}
    return Chosen(most, named), {path: weights.get(path, 0.0) for path in numeric}


def totals_of_one(numbers: list[tuple[str, float]], weights: dict[str, float]) -> tuple[float, ...]:
    """Return what `totals` says of the numbers of one output, given with their paths."""
    known = [(path, value) for path, value in numbers if not math.isnan(value)]
    if not known:
        return (math.nan,) * len(TOTALS)
    values = [value for _, value in known]
    largest = max(values)
    return (
        sum(values),
        sum(value * value for value in values),
        largest,
        min(values),
        float(values.index(largest)),
        float(values.count(0.0)),
        float(len(values)),
        sum(weights.get(path, 0.0) * value for path, value in known if math.isfinite(value)),
    )
