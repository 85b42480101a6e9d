"""Numba's first compilation without SciPy: a question that Numba asks then waits until its answer matters.

Before Numba compiles its first function it imports SciPy's linear algebra, where SciPy is installed, to see whether
there is a BLAS. That is a third of what the first call of a new process takes, and no kernel uses a BLAS. Here
Numba is told to ask later: when it compiles one of the few functions that depend on the answer (inner products within
`numpy.convolve`, `numpy.kron` and the like). It gets the same answer then. Where Numba has loaded a function already,
or keeps the question in another place, nothing is changed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from numba.core import event

__all__ = ["postpone_blas"]

_ASKING, _KEEPING = "numba.np.linalg", "numba.np.arraymath"
_ASK, _ANSWER = "ensure_blas", "_HAVE_BLAS"


class _Later:
    """Whether there is a BLAS, asked for when somebody wants to know."""

    def __init__(self, ask: Callable[[], object]) -> None:
        self._ask = ask

    def __bool__(self) -> bool:
        try:
            self._ask()
        except ImportError:
            return False
        return True


class _BeforeCompiling(event.Listener):  # type: ignore[misc]
    """Postpones the question when Numba is about to compile a function, once."""

    def __init__(self) -> None:
        self._is_done = False

    def on_start(self, started: Any) -> None:
        """Postpone it."""
        if not self._is_done:
            self._is_done = True
            _postpone()

    def on_end(self, ended: Any) -> None:
        """Do nothing."""


def _postpone() -> None:
    if _KEEPING in sys.modules:
        return
    asking = import_module(_ASKING)
    ask = getattr(asking, _ASK, None)
    if ask is None:
        return
    setattr(asking, _ASK, lambda: None)
    try:
        keeping = import_module(_KEEPING)
    finally:
        setattr(asking, _ASK, ask)
    if getattr(keeping, _ANSWER, None) is True and hasattr(keeping, _ASK):
        setattr(keeping, _ASK, ask)
        setattr(keeping, _ANSWER, _Later(ask))


def postpone_blas() -> None:
    """Have Numba ask for a BLAS when the answer matters; to be called once."""
    event.register("numba:compile", _BeforeCompiling())


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
