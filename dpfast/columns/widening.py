"""Numbers of a narrow type as those that kernels of selections read: int64 or float64.

A kernel is compiled anew for every type it is given, which takes seconds; widening a chunk takes a fraction of what
its noise does, and is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["widen"]


def widen(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as int64 or float64, read-only: themselves if they are so wide already."""
    if values.itemsize < 8:
        values = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    if values.flags.writeable:
        values = values[:]
        values.setflags(write=False)
    return values
