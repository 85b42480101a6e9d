"""Who is run beside dpfast: one small adapter each. What is not installed is skipped, and said in one line.

These have none. Tumult Analytics and PipelineDP do not run beside today's Polars and NumPy: benchmarks/flight_peers.py
evaluates their formulas. `private-pgm` is no package of the registry; it is `mbi`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

from dpfast.bench.rounds import told_error

__all__ = [
    "CONTESTANTS",
    "FAILED",
    "Contestant",
    "Peers",
    "Statistics",
    "failed_lines",
    "few",
    "imported",
    "missing_lines",
]

#: By name, what is run and how many values it takes.
Peers: TypeAlias = dict[str, tuple[Callable[[], Any], int]]
#: By the name of a statistic, a release of it.
Statistics: TypeAlias = dict[str, Callable[[], float]]


@dataclass(frozen=True)
class Contestant:
    """A library that is run beside dpfast.

    Attributes
    ----------
    name
        As it stands in tables.
    module
        What is imported.
    package
        Its name where packages are installed from.
    versions
        Which versions of it, and what else has to be installed for it.
    program
        What else it needs, or an empty text.
    apart
        Versions that it needs and others here cannot run with, so that it needs an environment of its own.

    """

    name: str
    module: str
    package: str
    versions: str = ""
    program: str = ""
    apart: str = ""

    @property
    def install(self) -> str:
        """What installs it."""
        apart = f", in an environment of its own, with {self.apart}" if self.apart else ""
        return f"pip install {self.package}{self.versions}{', and Java' if self.program else ''}{apart}"

    @property
    def is_installed(self) -> bool:
        """Whether it can be imported, and what it needs is there."""
        return find_spec(self.module) is not None and (not self.program or shutil.which(self.program) is not None)


CONTESTANTS = (
    Contestant("NumPy", "numpy", "numpy"),
    Contestant("Polars", "polars", "polars"),
    Contestant("OpenDP", "opendp", "opendp"),
    Contestant("diffprivlib", "diffprivlib", "diffprivlib", "==0.6.6 'scikit-learn<1.6'"),
    Contestant("python-dp", "pydp", "python-dp"),
    Contestant("dp_accounting", "dp_accounting", "dp-accounting"),
    Contestant("mbi", "mbi", "mbi", "==2.*"),
    Contestant("smartnoise-synth", "snsynth", "smartnoise-synth", apart="mbi 1 and OpenDP 0.14"),
    Contestant("DuckDB", "duckdb", "duckdb"),
    Contestant("scikit-learn", "sklearn", "scikit-learn"),
    Contestant("PySpark", "pyspark", "pyspark", "[sql]", program="java"),
)


def few(values: Any, most: int) -> Any:
    """Return the first values, for what takes one at a time: so many of 5 million and more, and fewer of fewer."""
    return values[: max(1, min(most, most * len(values) // 5_000_000))]


def missing_lines() -> list[str]:
    """Return a line for each contestant that is not here."""
    return [f"not run: {one.name} ({one.install})" for one in CONTESTANTS if not one.is_installed]


def imported(module: str) -> Any:
    """Return a module of a contestant; None where it is not installed, or raises whatever when it is imported.

    Why it raised is kept for `failed_lines`.
    """
    root = module.partition(".")[0]
    if root in FAILED:
        return None
    try:
        return import_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also of what it was compiled for, or sys.exit()
        if find_spec(root) is not None:
            FAILED[root] = told_error(error)
        return None


#: By the root of a module's name, what its import raised.
FAILED: dict[str, str] = {}


def failed_lines() -> list[str]:
    """Return a line for each contestant that is installed, and whose import failed in this run."""
    return [
        f"not run: {one.name} (its import {FAILED[one.module]}; mend it by {one.install})"
        for one in CONTESTANTS
        if one.module in FAILED
    ]
