"""How many keys each way of selecting them shows, on Zipf data of 10^6 units: `python -m benchmarks.keys_shown`.

The optimal rule for one key, at a share of the budget for each of `max_groups` keys, stands for what libraries do that
know no other. Every rule runs twice, the second time timed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import polars as pl

import dpfast as dpf

from .cells import OURS, Cell, Errors

EPSILON, DELTA = 1.0, 1e-7
MAX_GROUPS = 20
RULES = ("optimal", "threshold", "weighted", "iterated", "policy", "count", "auto")


def zipf_frame(units: int, keys: int, seed: int) -> pl.DataFrame:
    """Return rows (unit, key): units of 1 to 100 rows, few of many, and keys by a Zipf law."""
    generator = np.random.default_rng(seed)
    rows = np.minimum(generator.zipf(1.7, units), 100)
    weights = np.arange(1, keys + 1) ** -1.1
    chosen = np.searchsorted(np.cumsum(weights / weights.sum()), generator.random(rows.sum()))
    return pl.DataFrame({"unit": np.repeat(np.arange(units), rows), "key": chosen.clip(0, keys - 1)})


def cells() -> Iterator[Cell]:
    """Yield a cell for every number of units."""
    for units in (20_000, 1_000_000):
        yield Cell(f"Keys of {units:,} units, by Zipf's law", "keys not shown", partial(_of, units), units == 20_000)


def _of(units: int, is_quick: bool) -> Errors:
    frame = zipf_frame(units, units, 1)
    found = frame["key"].n_unique()

    def hidden(rule: str) -> float:
        return float(found - _plan(frame, rule).run(dpf.Ledger(epsilon=EPSILON, delta=DELTA)).frame.height)

    return {OURS if rule == "auto" else f"{OURS}: {rule}": partial(hidden, rule) for rule in ("auto", *RULES[:-1])}


def _plan(frame: pl.DataFrame, rule: str) -> Any:
    return dpf.plan(
        frame, "key", n=dpf.count(), privacy_unit="unit", max_groups=MAX_GROUPS, max_rows_per_group=1,
        epsilon=EPSILON, delta=DELTA, key_selection=rule, mechanism="auto",
    )  # fmt: skip


def main() -> None:
    """Print the table."""
    units = int(sys.argv[1]) if sys.argv[1:] else 1_000_000
    frame = zipf_frame(units, units, 1)
    found = frame["key"].n_unique()
    print(f"{units:,} units, {frame.height:,} rows, {found:,} keys; epsilon {EPSILON:g}, delta {DELTA:g},")
    print(f"at most {MAX_GROUPS} groups a unit and one row in each. Keys and their counts are released.\n")
    print("| key_selection | rule | keys shown | seconds | units that a key needs |\n|---|---|---|---|---|")
    for rule in RULES:
        for _ in range(2):
            plan = _plan(frame, rule)
            start = time.perf_counter()
            shown = plan.run(dpf.Ledger(epsilon=EPSILON, delta=DELTA)).frame.height
            seconds = time.perf_counter() - start
        share = plan._blueprint.key_share
        assert share is not None
        needed = f"{share.needed.fewest} to {share.needed.most}"
        print(f"| {rule} | {share.rule.name} | {shown:,} | {seconds:.2f} | {needed} |")


if __name__ == "__main__":
    main()
