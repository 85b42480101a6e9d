"""Times of a dozen and more calls in two checkouts, measured in turns: what a change of the house costs.

    git worktree add ../before COMMIT
    python benchmarks/turns.py ../before

Prints, for each call, the median over the rounds of this checkout's time divided by the other's, and their range. Each
round runs both, each in a process of its own, and takes the best of five times. The calls pass all that they can by
name, so that older signatures take them too.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
ROUNDS, REPEATS = 4, 5


def calls() -> dict[str, Callable[[], object]]:
    import numpy as np
    import polars as pl

    import dpfast as dpf
    from dpfast.ledger import Charge

    random = np.random.default_rng(1)
    integers, floats = random.integers(0, 1000, 2_000_000), random.normal(size=2_000_000)
    rows, few = integers[:1_000_000].reshape(-1, 10), integers[:1000]
    units = {"k": random.integers(0, 1000, 3_000_000), "u": random.integers(0, 200_000, 3_000_000)}
    frame, keys = pl.DataFrame({**units, "x": random.random(3_000_000)}), pl.DataFrame({"k": np.arange(1000)})
    table = pl.DataFrame({"value": integers[:1_000_000], "epsilon": np.full(1_000_000, 1e-6)})
    line, cube = random.integers(0, 50, 512), random.integers(0, 9, (16, 16, 16))
    ranges, pairs = dpf.workloads.all_range(512), dpf.workloads.marginals((16, 16, 16), k=2)
    real, wide = dpf.workloads.matrix(random.random((300, 4096))), random.integers(0, 50, 4096)
    groups, values = random.integers(0, 200, 500_000), random.normal(size=500_000)
    charge, about = Charge.of(1e-4), {"dataset": "d", "privacy_unit": "row", "neighbors": "add_remove"}
    limits = {"privacy_unit": "u", "max_groups": 5, "max_rows_per_group": 3}
    by_group = {"bounds": (-5, 5), "epsilon": 1.0, "groups": groups, "group_count": 200}

    def ledger() -> dpf.Ledger:
        return dpf.Ledger(epsilon=100.0, delta=1e-5)

    def release() -> object:
        asked = {"n": dpf.count(), "s": dpf.sum("x", bounds=(0, 1))}
        return dpf.plan(frame, "k", keys=keys, **limits, **asked, epsilon=1.0).run(ledger())

    def charges() -> object:
        own = ledger()
        return [own.charge(charge, **about) for _ in range(2000)]

    return {
        "Laplace int64": lambda: dpf.laplace(integers, 10.0),
        "Laplace float64": lambda: dpf.laplace(floats, 10.0),
        "Gaussian int64": lambda: dpf.gaussian(integers, 10.0),
        "Gaussian float64": lambda: dpf.gaussian(floats, 10.0),
        "Laplace of 1,000 values": lambda: [dpf.laplace(few, 10.0) for _ in range(200)],
        "noisy max of 10": lambda: dpf.report_noisy_max(rows, 1.0),
        "gap of 10": lambda: dpf.noisy_max_with_gap(rows, 1.0),
        "top 30 of 2 million": lambda: dpf.noisy_top_k(integers, 30, 1.0),
        "release by unit": release,
        "answer 10^6 queries": lambda: dpf.answer(table, value="value", epsilon="epsilon", ledger=ledger()),
        "single charges": charges,
        "matrix mechanism": lambda: dpf.matrix_mechanism(line, ranges, epsilon=1.0).frame,
        "projection of a real matrix": lambda: dpf.projection_mechanism(wide, real, epsilon=1.0, iterations=3),
        "MWEM of marginals": lambda: dpf.mwem(cube, pairs, rounds=10, epsilon=1.0),
        "joint quantiles": lambda: dpf.quantiles(values, [0.1, 0.25, 0.5, 0.75, 0.9], **by_group),
        "exponential draws": lambda: dpf.exponential_draws(integers[:100_000], 1.0, draws=1_000_000),
    }


def measure() -> dict[str, float]:
    best = {}
    for name, call in calls().items():
        call()
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        best[name] = min(times)
    return best


def measured_in(checkout: Path) -> dict[str, float]:
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    command = [sys.executable, __file__, "--measure"]
    found: dict[str, float] = json.loads(subprocess.check_output(command, env=environment, text=True))
    return found


def main() -> None:
    if sys.argv[1:] == ["--measure"]:
        print(json.dumps(measure()))
        return
    before, now = Path(sys.argv[1]).resolve(), HERE
    for checkout in (before, now):
        measured_in(checkout)  # compiles
    rounds = [(measured_in(before), measured_in(now)) for _ in range(ROUNDS)]
    for name in rounds[0][0]:
        ratios = sorted(new[name] / old[name] for old, new in rounds)
        print(f"{name:28} {statistics.median(ratios):.2f}   {ratios[0]:.2f} to {ratios[-1]:.2f}")


if __name__ == "__main__":
    main()
