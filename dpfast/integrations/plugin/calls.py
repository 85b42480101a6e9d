"""From arguments to an expression that calls the compiled library, or Python where there is none."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Sequence
from functools import cache

import polars as pl

from dpfast.integrations.plugin.fallback import call_python
from dpfast.integrations.plugin.library import UnavailableError, library, plugin_expression
from dpfast.kernels.plugin.layout import MAGIC

__all__ = ["call", "pack_scale"]


def pack_scale(scale: float) -> bytes:
    """Return one scale for all rows as the compiled bodies read it."""
    return MAGIC + struct.pack("<d", scale)


def call(operation: str, columns: Sequence[pl.Expr], parameters: bytes) -> pl.Expr:
    """Return the expression of an operation (kernels/plugin/layout.py) on columns.

    Parameters
    ----------
    operation
        Its name.
    columns
        The values, and the scales if they are a column.
    parameters
        What is the same for all rows, packed; empty for nothing.

    """
    try:
        path = library().path
    except UnavailableError as reason:
        _say_once(str(reason))
        return call_python(operation, columns, parameters)
    return plugin_expression(path, operation, columns, parameters)


@cache
def _say_once(reason: str) -> None:
    text = f"the Polars plugin of dpfast cannot be built here, so that Python draws instead, more slowly: {reason}"
    warnings.warn(text, RuntimeWarning, stacklevel=5)
