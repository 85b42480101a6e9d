"""How far private quantiles stray, in ranks, beside three published mechanisms: a table.

    python -m benchmarks.quantile_errors rows.jsonl > benchmarks/quantile_errors.md

An error is how many ranks a drawn value is outside the ranks that the data have there, a mean over quantiles and runs.
Cells have runs enough that their standard error is below 2%, where 20 seconds are enough for that; JointExp is left out
at 99 quantiles. Rows are kept in the file that is named, and those in it are not measured again.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpfast.aggregation.grouped_points import GroupedPoints, point_dtype
from dpfast.columns.grid import public_grid
from dpfast.columns.ranks import read_quantiles
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.mechanisms.quantiles.joint import draw_joint_quantiles, joint_calibration, joint_pays
from dpfast.mechanisms.quantiles.nodes import draw_quantiles
from dpfast.mechanisms.quantiles.quantiles import place_points
from dpfast.mechanisms.quantiles.tree import Calibration, quantile_tree
from dpfast.testing import SeededRandom

from .cells import OURS, Cell, Errors
from .quantile_peers import PEERS

Floats = NDArray[np.float64]
Draw = Callable[[int], Floats]

COUNTS = (1, 3, 9, 99)
SIZES = (1_000, 100_000)
#: Tight and wide bounds of every shape.
BOUNDS: dict[str, list[tuple[float, float]]] = {
    "normal": [(-6, 6), (-1e6, 1e6)],
    "lognormal": [(0, 1e4), (0, 1e9)],
    "bimodal": [(-10, 10), (-1e6, 1e6)],
    "ties": [(-10, 10), (-1e6, 1e6)],
}
#: A round of a case is the mean of so many runs.
_RUNS = 40
_ENOUGH = 0.02
#: A cell stops here even so; its standard error says how well it is known.
_SECONDS = 20.0
#: Rows of ours that are drawn from in one call.
_ROWS = 4_000_000

_HEAD = """Errors of quantiles in ranks: the mean over all quantiles of a cell, and its standard error.

`python -m benchmarks.quantile_errors rows.jsonl`. Epsilon is 1 for all quantiles of a cell together; one row is added
or removed. In {ahead} of {cells} cells a peer is ahead by more than 5% and by two standard errors of the difference;
these are marked with `<`. JointExp is left out at 99 quantiles, where its algorithm is too slow.
"""


def data(size: int) -> dict[str, Floats]:
    """Return values of every shape."""
    generator = np.random.default_rng(20_261_122)
    normal = generator.normal(0, 1, size)
    lognormal = np.exp(generator.normal(0, 2, size))
    bimodal = np.where(np.arange(size) % 3 == 0, generator.normal(-4, 0.5, size), generator.normal(5, 1, size))
    ties = np.rint(generator.normal(0, 2, size))
    return {"normal": normal, "lognormal": lognormal, "bimodal": bimodal, "ties": ties}


def errors(ordered: Floats, drawn: Floats, quantiles: Floats) -> Floats:
    """Return each run's mean error in ranks."""
    below, upto = np.searchsorted(ordered, drawn, "left"), np.searchsorted(ordered, drawn, "right")
    ranks = quantiles * ordered.size
    mean: Floats = np.maximum(np.maximum(below - ranks, ranks - upto), 0).mean(axis=1)
    return mean


def ours(ordered: Floats, quantiles: Floats, bounds: tuple[float, float], seed: int, grid: float | None = None) -> Draw:
    """Return what draws so many runs of ours, as `dpfast.quantiles` does, from points that are placed once."""
    parts, order, _ = read_quantiles(quantiles.tolist())
    together = joint_pays(len(parts), UNITS_PER_ONE, 1, "add_remove")
    joint = joint_calibration(parts, UNITS_PER_ONE, 1, "add_remove", alone=False)
    tree = quantile_tree(parts)
    calibration = Calibration(tree, Fraction(1, len(tree.levels)), 1, "add_remove", alone=False, ways=True)
    points = public_grid(bounds, grid, whole=False)
    placed = np.empty(ordered.size, np.int64)
    place_points(ordered, None, points, placed)
    placed = placed.astype(point_dtype(points.points))
    calls = iter(range(1_000_000))

    def draw(runs: int) -> Floats:
        if quantiles.size > 1:
            # Values are reordered, so that every run needs its own.
            runs = min(runs, max(_ROWS // ordered.size, 1))
            starts = np.arange(runs) * ordered.size
            data = GroupedPoints(np.tile(placed, runs), starts, starts + ordered.size)
        else:
            data = GroupedPoints(placed, np.zeros(runs, np.int64), np.full(runs, ordered.size))
        source = SeededRandom(seed + next(calls))
        if together:
            numbers = draw_joint_quantiles(data, points.points, joint, source)
        else:
            numbers = draw_quantiles(data, points.points, calibration, source)
        return points.values(numbers[:, order] + (points.lower - 1))

    return draw


def measure(draw: Draw, ordered: Floats, quantiles: Floats) -> tuple[float, float]:
    """Return the mean error and its standard error, from runs enough."""
    found = np.empty(0)
    # The first call may compile.
    draw(1)
    start, runs = time.perf_counter(), 40
    while True:
        found = np.concatenate([found, errors(ordered, draw(runs), quantiles)])
        mean, deviation = float(found.mean()), float(found.std(ddof=1))
        error = deviation / found.size**0.5
        if error < _ENOUGH * mean or (time.perf_counter() - start > _SECONDS):
            return mean, error
        wanted = (deviation / (0.9 * _ENOUGH * mean)) ** 2 if mean else 1e5
        runs = int(min(max(wanted - found.size, 40), 10 * found.size, 40_000))


def cells() -> Iterator[Cell]:
    """Yield a cell for every line of the table."""
    for size in SIZES:
        for name, bounds in BOUNDS.items():
            for (low, high), quantiles in product(bounds, COUNTS):
                told = f"Quantiles: {quantiles} of {size:,} values, {name}, within ({low:g}, {high:g})"
                is_quick = (size, name, quantiles, low) == (1_000, "normal", 9, -6)
                yield Cell(told, "ranks", partial(_of, name, size, (low, high), quantiles), is_quick)


def _of(name: str, size: int, bounds: tuple[float, float], number: int, is_quick: bool) -> Errors:
    ordered, quantiles = np.sort(data(size)[name]), np.arange(1, number + 1) / (number + 1)
    draws = {OURS: ours(ordered, quantiles, bounds, 1000 * number), **_peers(ordered, bounds, number)}

    def error(draw: Draw) -> float:
        return float(errors(ordered, draw(_RUNS), quantiles).mean())

    return {name: partial(error, draw) for name, draw in draws.items()}


def _peers(ordered: Floats, bounds: tuple[float, float], number: int) -> dict[str, Draw]:
    """Return what draws runs of others; JointExp is too slow for 99 quantiles."""
    quantiles, generator = np.arange(1, number + 1) / (number + 1), np.random.default_rng(number)
    return {
        name: partial(peer, ordered, quantiles, bounds, 1.0, generator=generator)
        for name, peer in PEERS.items()
        if name != "JointExp" or number < 99
    }


def row(ordered: Floats, bounds: tuple[float, float], count: int) -> tuple[list[str], bool]:
    """Return the errors of ours and of every peer, and whether a peer is ahead."""
    quantiles = np.arange(1, count + 1) / (count + 1)
    mean, error = measure(ours(ordered, quantiles, bounds, 1000 * count), ordered, quantiles)
    shown, ahead = [f"{mean:.3g} ± {error:.1g}"], False
    # A grid that fits values with many ties helps those who know it.
    fitting = np.all(ordered == np.rint(ordered))
    known = measure(ours(ordered, quantiles, bounds, 1000 * count, 1.0), ordered, quantiles) if fitting else None
    shown.append(f"{known[0]:.3g} ± {known[1]:.1g}" if known else "")
    peers = _peers(ordered, bounds, count)
    for name in PEERS:
        if name not in peers:
            shown.append("")
            continue
        theirs, spread = measure(peers[name], ordered, quantiles)
        better = mean > 1.05 * theirs and mean - theirs > 2 * (error**2 + spread**2) ** 0.5
        ahead = ahead or better
        shown.append(f"{'< ' if better else ''}{theirs:.3g} ± {spread:.1g}")
    return shown, ahead


def main(path: Path) -> None:
    """Print the table."""
    kept = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    measured = {title: (line, behind) for title, line, behind in kept}
    rows = []
    for size in SIZES:
        for name, values in data(size).items():
            ordered = np.sort(values)
            for bounds in BOUNDS[name]:
                for count in COUNTS:
                    title = f"| {name} | {size:,} | {bounds[0]:g}, {bounds[1]:g} | {count}"
                    if title not in measured:
                        shown, behind = row(ordered, bounds, count)
                        measured[title] = f"{title} | " + " | ".join(shown) + " |", behind
                        with path.open("a") as kept_file:
                            kept_file.write(json.dumps([title, *measured[title]]) + "\n")
                        print(measured[title][0], file=sys.stderr, flush=True)
                    rows.append(measured[title])
    print(_HEAD.format(ahead=sum(behind for _, behind in rows), cells=len(rows)))
    print("| values | n | bounds | quantiles | dpfast | dpfast, grid=1 | " + " | ".join(PEERS) + " |")
    print("|---|---|---|---|---|---|" + "---|" * len(PEERS))
    print("\n".join(line for line, _ in rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
