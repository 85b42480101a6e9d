"""Shapes of histograms, and sizes of what is made of them: checked before anything is allocated."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from dpfast.errors import ParameterError, Words

__all__ = ["LARGEST_ARRAY", "check_size", "checked_integer", "checked_shape"]

#: The most cells of a histogram, and the most answers of a workload: 2**30 take 8 GiB.
LARGEST_ARRAY = 2**30


def checked_integer(number: Any, argument: str, least: int = 0) -> int:
    """Return an argument that must be an integer of at least so much."""
    allowed = f"an integer of at least {least}"
    if isinstance(number, (bool, np.bool_)):
        raise ParameterError(argument, number, allowed)
    try:
        integer = operator.index(number)
    except TypeError:
        raise ParameterError(argument, number, allowed) from None
    if integer < least:
        raise ParameterError(argument, number, allowed)
    return integer


def checked_shape(shape: Any, argument: str = "shape") -> tuple[int, ...]:
    """Return a shape as a tuple of positive integers; one integer stands for one dimension."""
    allowed = "a positive integer for each attribute"
    if isinstance(shape, (str, bytes)) or getattr(shape, "ndim", 0) > 1:
        raise ParameterError(argument, shape, allowed, "write for example (4, 3)")
    sizes = tuple(checked_integer(size, argument, 1) for size in (shape if np.iterable(shape) else (shape,)))
    if not sizes:
        raise ParameterError(argument, shape, allowed, "write for example (4, 3)")
    check_size(math.prod(sizes), argument, "cells")
    return sizes


def check_size(numbers: int, argument: str, what: str) -> None:
    """Refuse what needs an array of more than LARGEST_ARRAY numbers, and say the bytes that it takes."""
    if numbers > LARGEST_ARRAY:
        raise ParameterError(
            argument,
            Words(f"{numbers:,} {what} ({8 * numbers:,} bytes)"),
            f"of at most {LARGEST_ARRAY:,} {what}",
            "use coarser cells, fewer attributes or fewer queries",
        )
