"""How many keys each way of selecting them shows, on Zipf data of 10^6 units: `python -m benchmarks.keys_shown`.

Beside dpfast's rules stand policy Gaussian (Gopi et al. 2020), here in floating point and for comparison alone, and
what the library did before: the optimal rule for one key at a share of the budget for each of `max_groups` keys.
"""

from __future__ import annotations

import math
import sys
import time
from statistics import NormalDist

import numba
import numpy as np
import polars as pl

import dpfast as dpf
from dpfast.mechanisms.calibration import analytic_gaussian_scale

EPSILON, DELTA = 1.0, 1e-7
MAX_GROUPS = 20
RULES = ("optimal", "threshold", "weighted", "iterated", "count", "auto")


def zipf_frame(units: int, keys: int, seed: int) -> pl.DataFrame:
    """Return rows (unit, key): units of 1 to 100 rows, few of many, and keys by a Zipf law."""
    generator = np.random.default_rng(seed)
    rows = np.minimum(generator.zipf(1.7, units), 100)
    weights = np.arange(1, keys + 1) ** -1.1
    chosen = np.searchsorted(np.cumsum(weights / weights.sum()), generator.random(rows.sum()))
    return pl.DataFrame({"unit": np.repeat(np.arange(units), rows), "key": chosen.clip(0, keys - 1)})


@numba.njit  # type: ignore[untyped-decorator]
def policy_sums(stops, keys, cutoff, sums):  # type: ignore[no-untyped-def]
    """Let each unit in turn spend a Euclidean norm of 1 where keys are below the cutoff."""
    start = 0
    for unit in range(len(stops)):
        norm = 0.0
        for place in range(start, stops[unit]):
            norm += max(cutoff - sums[keys[place]], 0.0) ** 2
        if norm > 0.0:
            share = min(1.0, 1.0 / math.sqrt(norm))
            for place in range(start, stops[unit]):
                sums[keys[place]] += max(cutoff - sums[keys[place]], 0.0) * share
        start = stops[unit]


def policy_gaussian(frame: pl.DataFrame, epsilon: float, delta: float, seed: int) -> int:
    """Return how many keys policy Gaussian shows; units come in random order."""
    generator = np.random.default_rng(seed)
    pairs = frame.unique().sample(fraction=1.0, shuffle=True, seed=seed)
    pairs = pairs.filter(pl.int_range(pl.len()).over("unit") < MAX_GROUPS)
    order = pl.DataFrame({"unit": generator.permutation(frame["unit"].n_unique())}).with_row_index("turn")
    pairs = pairs.join(order, on="unit").sort("turn")
    stops = pairs.group_by("turn", maintain_order=True).len()["len"].cum_sum().to_numpy().astype(np.int64)
    sigma = analytic_gaussian_scale(1.0, epsilon, delta / 2)
    normal = NormalDist()
    threshold = max(
        1 / math.sqrt(j) - sigma * normal.inv_cdf(-math.expm1(math.log1p(-delta / 2) / j))
        for j in range(1, MAX_GROUPS + 1)
    )
    sums = np.zeros(int(frame["key"].max()) + 1)  # type: ignore[arg-type]
    policy_sums(stops, pairs["key"].to_numpy(), threshold + 4 * sigma, sums)
    return int(((sums + generator.normal(0, sigma, sums.size) >= threshold) & (sums > 0)).sum())


def main() -> None:
    """Print the table."""
    units = int(sys.argv[1]) if sys.argv[1:] else 1_000_000
    frame = zipf_frame(units, units, 1)
    found = frame["key"].n_unique()
    print(f"{units:,} units, {frame.height:,} rows, {found:,} keys; epsilon {EPSILON:g}, delta {DELTA:g},")
    print(f"at most {MAX_GROUPS} groups a unit and one row in each. Keys and their counts are released.\n")
    print("| key_selection | rule | keys shown | seconds | units that a key needs |\n|---|---|---|---|---|")
    for rule in RULES:
        plan = dpf.plan(
            frame, "key", n=dpf.count(), privacy_unit="unit", max_groups=MAX_GROUPS, max_rows_per_group=1,
            epsilon=EPSILON, delta=DELTA, key_selection=rule, mechanism="auto",
        )  # fmt: skip
        share = plan._blueprint.key_share
        start = time.perf_counter()
        shown = plan.run(dpf.Ledger(epsilon=EPSILON, delta=DELTA)).frame.height
        seconds = time.perf_counter() - start
        assert share is not None
        needed = f"{share.needed.fewest} to {share.needed.most}"
        print(f"| {rule} | {share.rule.name} | {shown:,} | {seconds:.2f} | {needed} |")
    # Half the budget is for the count, as it is for every rule but "count".
    print(f"| | policy Gaussian in floating point | {policy_gaussian(frame, EPSILON / 2, DELTA, 2):,} | | |")


if __name__ == "__main__":
    main()
