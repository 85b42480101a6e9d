"""Who is run beside dpfast: one small adapter each. What is not installed is skipped, and said in one line.

These have none. Tumult Analytics and PipelineDP do not run beside today's Polars and NumPy: benchmarks/flight_peers.py
evaluates their formulas. `private-pgm` is no package of the registry; it is `mbi`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeAlias

__all__ = ["CONTESTANTS", "Contestant", "Peers", "missing_lines"]

#: By name, what is run and how many values it takes.
Peers: TypeAlias = dict[str, tuple[Callable[[], Any], int]]


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

    """

    name: str
    module: str
    package: str
    versions: str = ""
    program: str = ""

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
    Contestant("smartnoise-synth", "snsynth", "smartnoise-synth"),
    Contestant("DuckDB", "duckdb", "duckdb"),
    Contestant("scikit-learn", "sklearn", "scikit-learn"),
    Contestant("PySpark", "pyspark", "pyspark", program="java"),
)


def missing_lines() -> list[str]:
    """Return a line for each contestant that is not here."""
    return [
        f"not run: {one.name} (pip install {one.package}{one.versions}{', and Java' if one.program else ''})"
        for one in CONTESTANTS
        if not one.is_installed
    ]
