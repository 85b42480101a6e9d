"""Every row of the table as a benchmark: ``pytest benchmarks --benchmark-enable``.

Ratios from interleaved runs, as README quotes them, come from ``scripts/measure.py``.
"""

from __future__ import annotations

from typing import Any

import pytest

from .comparisons import COMPARISONS, Comparison

POSSIBLE = [comparison for comparison in COMPARISONS if comparison.is_possible]
NAMES = [comparison.name for comparison in POSSIBLE]


@pytest.mark.parametrize("comparison", POSSIBLE, ids=NAMES)
def test_ours(benchmark: Any, comparison: Comparison) -> None:
    benchmark.group = comparison.name
    benchmark(comparison.prepare(comparison.size).ours)


@pytest.mark.parametrize("comparison", POSSIBLE, ids=NAMES)
def test_baseline(benchmark: Any, comparison: Comparison) -> None:
    benchmark.group = comparison.name
    benchmark(comparison.prepare(comparison.size).baseline)


@pytest.mark.parametrize("peer", ["OpenDP", "diffprivlib"])
@pytest.mark.parametrize("comparison", POSSIBLE, ids=NAMES)
def test_peer(benchmark: Any, comparison: Comparison, peer: str) -> None:
    peers = comparison.prepare(20_000).peers
    if peer not in peers:
        pytest.skip(f"{peer} is not installed, or does not do this")
    benchmark.group = comparison.name
    benchmark.extra_info["values"] = peers[peer][1]
    benchmark(peers[peer][0])
