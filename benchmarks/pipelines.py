"""Releases by Spark beside plain Spark, as cases of the suite pipeline; they need Java and a minute."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from dpfast.bench import Case, Measured, Wish

from .contestants import CONTESTANTS

__all__ = ["cases"]

_ROWS = 10**6
_NAMES = {"released": "dpfast", "plain": "PySpark", "bounded": "dpfast, people bounded", "pairs": "PySpark, by person"}


def cases(suite: str, wish: Wish) -> list[Case]:
    """Return the cases of Spark, where it is installed."""
    if not next(one for one in CONTESTANTS if one.name == "PySpark").is_installed:
        return []
    return [
        Case(suite, f"Counts and sums by Spark, {people}", partial(_measure, people), alone=True) for people in _PEOPLE
    ]


_PEOPLE = ("all crowded", "few crowded")


def _measure(people: str, wish: Wish) -> list[Measured]:
    from .spark import PEOPLE, measured

    with tempfile.TemporaryDirectory() as folder:
        found = measured(_ROWS, Path(folder), PEOPLE[people].format(_ROWS // 10, _ROWS // 100), runs=7)
    return [Measured(name, _ROWS, tuple(found[run]), per_value=True) for run, name in _NAMES.items()]
