"""Releases by Spark beside plain Spark, as cases of the suite pipeline: Java, and a minute without ``--quick``."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from dpfast.bench import Case, Measured, Wish

from .contestants import CONTESTANTS

__all__ = ["cases"]

_ROWS, _QUICK_ROWS = 10**6, 10**4
#: Most of the time goes to Java's start and to the first run of each.
_QUICK_WORKS = ("released", "plain")
_NAMES = {"released": "dpfast", "plain": "PySpark", "bounded": "dpfast, people bounded", "pairs": "PySpark, by person"}


def cases(suite: str, wish: Wish) -> list[Case]:
    """Return the cases of Spark, where it is installed."""
    if not next(one for one in CONTESTANTS if one.name == "PySpark").is_installed:
        return []
    return [
        Case(suite, f"Counts and sums by Spark, {people}", partial(_measure, people), is_quick=place == 0, alone=True)
        for place, people in enumerate(_PEOPLE)
    ]


_PEOPLE = ("all crowded", "few crowded")


def _measure(people: str, wish: Wish) -> list[Measured]:
    from .spark import PEOPLE, measured

    rows, works = (_QUICK_ROWS, _QUICK_WORKS) if wish.is_quick else (_ROWS, tuple(_NAMES))
    with tempfile.TemporaryDirectory() as folder:
        runs = 3 if wish.is_quick else 7
        found = measured(rows, Path(folder), PEOPLE[people].format(rows // 10, rows // 100), runs, works)
    return [Measured(_NAMES[run], rows, tuple(found[run]), per_value=True) for run in works]
