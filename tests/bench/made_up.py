"""Results that nobody measured."""

from __future__ import annotations

import polars as pl

from dpfast.bench.cases import Case, Measured
from dpfast.bench.machine import Machine
from dpfast.bench.results import About, rows_of, to_frame

HERE = About(Machine("a processor", "AVX2", 2, 8.0, "Linux x86_64"), {"numpy": "2.0"}, "abc123")
ELSEWHERE = About(Machine("another one", "AVX-512", 64, 512.0, "Linux x86_64"), {"numpy": "2.1"}, None)


def measured(ours, theirs=None, *, size=10, their_size=10, unit="s", **more):
    found = [Measured("dpfast", size, tuple(ours), unit, per_value=unit == "s", **more)]
    if theirs is not None:
        found.append(Measured("NumPy", their_size, tuple(theirs), unit, per_value=unit == "s"))
    return found


def frame(*cases, about=HERE) -> pl.DataFrame:
    """Return results of cases: a name, and what was measured."""
    return to_frame(row for name, found in cases for row in rows_of(Case("speed", name, list), found, about))
