"""Where the suite is: in an installed package, or beside it in a checkout."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import dpfast
from dpfast.errors import DpfastError

__all__ = ["CHECKOUT", "suite_module"]

#: The folder that has the package; of a checkout, its root.
CHECKOUT = Path(dpfast.__file__).resolve().parent.parent


def suite_module(name: str) -> ModuleType:
    """Return a module of the suite: ``dpfast.benchmarks.NAME`` of a wheel, or ``benchmarks.NAME`` of a checkout.

    Raises
    ------
    DpfastError
        There is neither.

    """
    if importlib.util.find_spec("dpfast.benchmarks") is not None:
        return importlib.import_module(f"dpfast.benchmarks.{name}")
    if not (CHECKOUT / "benchmarks" / "suites.py").is_file():
        raise DpfastError("the suite of benchmarks is not installed; install dpfast from a wheel, or run a checkout")
    if str(CHECKOUT) not in sys.path:
        sys.path.insert(0, str(CHECKOUT))
    return importlib.import_module(f"benchmarks.{name}")
