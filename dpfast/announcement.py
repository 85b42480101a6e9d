"""Says on a terminal that kernels are being compiled, so that nobody takes the first call for a hang."""

from __future__ import annotations

import sys

from dpfast.kernels.compilation import when_compiling

__all__ = ["announce_compilation"]


_listening: list[bool] = []


def announce_compilation() -> None:
    """Have one line written to a terminal when a kernel must be compiled; a pipe or a log gets none."""
    if not _listening:
        _listening.append(True)
        when_compiling(_announce)


def _announce() -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        print("dpfast: compiling kernels for this machine (the first run only, some seconds) ...", file=sys.stderr)
