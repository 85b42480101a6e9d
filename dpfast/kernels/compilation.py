"""How every kernel is compiled: strict IEEE arithmetic, no GIL, cached on disk.

No fast-math flag is set here, and a test reads the LLVM IR to see that none appears: the error bounds of
the certified kernels hold for the operations as written and no others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

__all__ = ["inlined", "kernel"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile a loop over arrays, without the GIL and with a cache on disk."""
    compiled: _Function = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=False)(function)
    return compiled


def inlined(function: _Function) -> _Function:
    """Compile the body of a loop, to be inlined where it is called."""
    compiled: _Function = numba.njit(nogil=True, error_model="numpy", fastmath=False, inline="always")(function)
    return compiled


# Stamp of all kernel sources (scripts/stamp_kernels.py): 8b4bb14364aa2cab
