"""Memory for results: from Arrow's pool where it is large, and in large pages where the system has them."""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["fresh_array"]

#: Bytes below which NumPy's own memory is as good.
_LARGE = 1 << 21
_LARGE_PAGE = 1 << 21


def fresh_array(rows: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return uninitialised memory for a result.

    The pool gives memory that is mapped already where it can; fresh pages of 4 kB cost ten times as much as drawing
    the noise, large ones a third of it.
    """
    size = rows * dtype.itemsize
    if size < _LARGE:
        return np.empty(rows, dtype)
    import pyarrow as pa  # not at the top: it takes long to import, and small columns do without

    buffer = pa.allocate_buffer(size)
    _advise_large_pages(buffer.address, size)
    return np.frombuffer(buffer, dtype)


def _advise_large_pages(address: int, size: int) -> None:
    """Ask for large pages where all of a page lies within the memory; it is only advice, so nothing can fail."""
    madvise = _madvise()
    start, stop = -(-address // _LARGE_PAGE) * _LARGE_PAGE, (address + size) // _LARGE_PAGE * _LARGE_PAGE
    if madvise is not None and start < stop:
        madvise(ctypes.c_void_p(start), ctypes.c_size_t(stop - start), mmap.MADV_HUGEPAGE)


@cache
def _madvise() -> Any:
    """Return the system's function, None where there is none: Python can only advise on its own mappings."""
    if not sys.platform.startswith("linux") or not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    return getattr(ctypes.CDLL(None), "madvise", None)
