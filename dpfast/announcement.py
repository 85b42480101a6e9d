"""A line on a terminal while kernels are compiled, so that nobody takes the first call for a hang."""

from __future__ import annotations

import sys
from functools import cache

from dpfast.kernels.compilation import when_compiling

__all__ = ["announce_compilation"]


@cache
def announce_compilation() -> None:
    """Have one line written to a terminal when a kernel must be compiled; a pipe or a log gets none."""
    when_compiling(_announce)


def _announce() -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        print("dpfast: compiling kernels for this machine (the first run only, some seconds) ...", file=sys.stderr)
