"""How far private quantiles stray, in ranks, beside three published mechanisms: a table.

    python -m benchmarks.quantile_errors > benchmarks/quantile_errors.md

Epsilon is 1 for all quantiles of a cell together; neighbours are add/remove. An error is how many ranks a drawn value
is outside the ranks that the data have there, a mean over quantiles and runs. JointExp, which takes a second or more a
run here, stands only where there are 1,000 values and at most 9 quantiles, a mean of few runs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import dpfast as dpf
from benchmarks.quantile_peers import PEERS
from dpfast.testing import SeededRandom

_OURS = {1_000: 400, 100_000: 20}
_THEIRS = {1_000: 100, 100_000: 5}
_JOINT_RUNS = {1: 100, 3: 10, 9: 4}


def data(size: int) -> dict[str, tuple[NDArray[np.float64], list[tuple[float, float]]]]:
    """Return values of every shape with tight and wide bounds."""
    generator = np.random.default_rng(20_261_122)
    normal = generator.normal(0, 1, size)
    lognormal = np.exp(generator.normal(0, 2, size))
    bimodal = np.where(np.arange(size) % 3 == 0, generator.normal(-4, 0.5, size), generator.normal(5, 1, size))
    ties = np.rint(generator.normal(0, 2, size))
    return {
        "normal": (normal, [(-6, 6), (-1e6, 1e6)]),
        "lognormal": (lognormal, [(0, 1e4), (0, 1e9)]),
        "bimodal": (bimodal, [(-10, 10), (-1e6, 1e6)]),
        "ties": (ties, [(-10, 10), (-1e6, 1e6)]),
    }


def errors(ordered: NDArray[np.float64], drawn: NDArray[np.float64], quantiles: NDArray[np.float64]) -> float:
    """Return the mean error in ranks."""
    below, upto = np.searchsorted(ordered, drawn, "left"), np.searchsorted(ordered, drawn, "right")
    ranks = quantiles * ordered.size
    return float(np.maximum(np.maximum(below - ranks, ranks - upto), 0).mean())


def main() -> None:
    """Print the table."""
    print("| values | n | bounds | quantiles | dpfast |", " | ".join(PEERS), "|")
    print("|---|---|---|---|---|", "|".join("---" for _ in PEERS), "|", sep="")
    generator = np.random.default_rng(1)
    for size, runs in _OURS.items():
        for name, (values, both) in data(size).items():
            ordered = np.sort(values)
            groups = np.repeat(np.arange(runs), size)
            for bounds in both:
                for count in (1, 3, 9, 99):
                    quantiles = np.arange(1, count + 1) / (count + 1)
                    drawn = dpf.quantiles(
                        np.tile(values, runs),
                        quantiles.tolist(),
                        bounds=bounds,
                        epsilon=1.0,
                        groups=groups,
                        group_count=runs,
                        random=SeededRandom(count),
                    )
                    cells = [f"{errors(ordered, drawn, quantiles):.3g}"]
                    for peer, draw in PEERS.items():
                        times = _THEIRS[size]
                        if peer == "JointExp":
                            times = _JOINT_RUNS.get(count, 0) if size == 1_000 else 0
                        found = [
                            errors(ordered, draw(ordered, quantiles, bounds, 1.0, generator), quantiles)
                            for _ in range(times)
                        ]
                        cells.append(f"{np.mean(found):.3g}" if found else "")
                    print(f"| {name} | {size:,} | {bounds} | {count} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
