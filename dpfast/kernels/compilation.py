"""How every kernel is compiled: strict IEEE arithmetic, no GIL, cached on disk.

No fast-math flag is set here, and a test reads the LLVM IR to see that none appears: the error bounds of
the certified kernels hold for the operations as written and no others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numba
from numba.core import event
from numba.core.registry import cpu_target
from numba.extending import overload

from dpfast.kernels.caching import keep_signatures_apart, load_lightly
from dpfast.kernels.starting import postpone_blas

__all__ = ["by_types", "inlined", "kernel", "processor_features", "when_compiling"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

postpone_blas()


def kernel(function: _Function) -> _Function:
    """Compile a loop over arrays, without the GIL and with a cache on disk.

    Nothing is made for callers in C. A name that begins with an underscore is its file's own, which kernels call: it
    has no way in from Python either, and Python's calls go through a function that is compiled for them. Both ways in
    are a tenth of the time that a kernel takes to compile.
    """
    inner = function.__name__.startswith("_")
    compiled: _Function = numba.njit(
        nogil=True, cache=True, error_model="numpy", fastmath=False, no_cfunc_wrapper=True, no_cpython_wrapper=inner
    )(function)
    keep_signatures_apart(compiled)
    load_lightly(compiled)
    if inner:
        _call_through(compiled)
    return compiled


def _call_through(compiled: Any) -> None:
    """Have Python's calls of a kernel go through another: by itself it would jump to an address where nothing is."""
    through = numba.njit(nogil=True, error_model="numpy", fastmath=False)(lambda *arguments: compiled(*arguments))
    # Where Numba knows of nothing compiled it asks what to call; and it is told of nothing.
    compiled._insert = lambda *_, **__: None
    compiled._compile_for_args = lambda *_: through


def inlined(function: _Function) -> _Function:
    """Compile the body of a loop, to be inlined where it is called."""
    compiled: _Function = numba.njit(nogil=True, error_model="numpy", fastmath=False, inline="always")(function)
    return compiled


def by_types(*, inline: bool) -> Callable[[_Function], _Function]:
    """Compile a function by the types of its arguments: what is decorated takes these and returns the function."""

    def publish(choose: _Function) -> _Function:
        @wraps(choose)
        def chosen(*arguments: object) -> None:
            raise NotImplementedError("compiled code only")

        overload(chosen, inline="always" if inline else "never")(choose)
        return chosen  # type: ignore[return-value]

    return publish


def processor_features() -> tuple[str, dict[str, bool]]:
    """Return the name of the processor that kernels are compiled for, and whether it has each feature."""
    _, name, features = cpu_target.target_context.codegen().magic_tuple()
    return name, {feature[1:]: feature.startswith("+") for feature in features.split(",")}


class _FirstCompilation(event.Listener):  # type: ignore[misc]
    """Calls a function when a kernel of this package is compiled, not loaded from the cache, for the first time."""

    def __init__(self, announce: Callable[[], None]) -> None:
        self._announce = announce
        self._announced = False

    def on_start(self, started: Any) -> None:
        """Announce the first one."""
        # The constructor that Numba makes for a class of a user's is of no module.
        module = getattr(started.data["dispatcher"].py_func, "__module__", None) or ""
        if not self._announced and module.startswith(__package__):
            self._announced = True
            self._announce()

    def on_end(self, ended: Any) -> None:
        """Say nothing: the next kernel may be compiled at once."""


def when_compiling(announce: Callable[[], None]) -> None:
    """Have a function called once, when the first kernel that is in no cache is about to be compiled."""
    event.register("numba:compile", _FirstCompilation(announce))


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
