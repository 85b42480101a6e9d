"""The table of benchmarks/comparisons.py as cases of the suites speed, accounting and pipeline."""

from __future__ import annotations

from functools import partial

from dpfast.bench import Case, Measured, Wish, seconds_of
from dpfast.bench.cases import measured_in_turns

from .comparisons import COMPARISONS, Comparison
from .contestants import imported

__all__ = ["cases", "suite_of"]

_PIPELINE = {"databases", "files", "integrations", "namespaces", "plans", "queries", "streams"}
#: What ``--quick`` runs, on so many values.
_QUICK = {
    "Laplace, int64": 10**6,
    "Laplace, float64": 10**6,
    "Laplace, int64, a scale per row": 10**6,
    "Gaussian, int64": 10**6,
    "Gaussian, float64": 10**6,
    "Exponential mechanism, 100 candidates a row": 10**6,
    "Top 3 of 100 candidates a row, in order": 10**6,
    "Noisy max with gap, 100 candidates a row": 10**6,
    "Prefix sums, int64": 10**6,
    "2^24 steps of a counter (tree)": 2**20,
    "Count into 10^6 integer keys": 10**6,
    "Count by two columns, 10^6 rows": 10**6,
    "By 100 groups: mean": 10**6,
    "Rows that pass a filter": 10**6,
    "Laplace as a Polars expression, 10^6 rows": 10**6,
    "Answer 10^6 queries, each its own epsilon": 10**5,
    "Charge 10^6 queries durably": 10**5,
    "PLD of 10^6 Laplace queries, 1,000 scales": 10**5,
    "PLD of 1,000 steps of private training": 1_000,
}
#: Names that say how many there are, where ``--quick`` has fewer.
_QUICK_NAMES = {
    "2^24 steps of a counter (tree)": "2^20 steps of a counter (tree)",
    "Count into 10^6 integer keys": "Count into 10^5 integer keys",
    "Answer 10^6 queries, each its own epsilon": "Answer 10^5 queries, each its own epsilon",
    "Charge 10^6 queries durably": "Charge 10^5 queries durably",
    "PLD of 10^6 Laplace queries, 1,000 scales": "PLD of 10^5 Laplace queries, 1,000 scales",
}
_QUICK_ROUNDS = 7


def suite_of(comparison: Comparison) -> str:
    """Return the suite of a row: by the file that prepares it, and by whom it stands beside."""
    home = comparison.prepare.__module__.rpartition(".")[2]
    if home == "budgets":
        return "accounting"
    return "pipeline" if home in _PIPELINE or comparison.baseline.startswith("Polars") else "speed"


def cases(suite: str, wish: Wish) -> list[Case]:
    """Return the rows of a suite whose baselines are installed."""
    return [
        Case(suite, _name(one, wish), partial(_measure, one), is_quick=one.name in _QUICK, alone=True)
        for one in COMPARISONS
        if one.is_possible and suite_of(one) == suite
    ]


def _name(comparison: Comparison, wish: Wish) -> str:
    return _QUICK_NAMES.get(comparison.name, comparison.name) if wish.is_quick else comparison.name


def _size(comparison: Comparison, wish: Wish) -> int:
    return _QUICK.get(comparison.name, comparison.size) if wish.is_quick else comparison.size


def _measure(comparison: Comparison, wish: Wish) -> list[Measured]:
    if comparison.needs is not None and imported(comparison.needs) is None:
        return []
    size = _size(comparison, wish)
    rounds = _QUICK_ROUNDS if wish.is_quick else comparison.rounds
    prepared = comparison.prepare(size)
    runs = {"dpfast": (prepared.ours, size), comparison.baseline: (prepared.baseline, size), **prepared.peers}
    timed = {name: (seconds_of(run), values) for name, (run, values) in runs.items()}
    return measured_in_turns(timed, rounds, tell=lambda told: wish.tell(f"{comparison.name}: {told}"))
