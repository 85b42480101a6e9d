"""Compiled kernels on disk, each signature's in a file that is named after it, and loaded without the compiler.

Numba numbers the files of a function's signatures, by the list of those that it has found before. Two processes that
compile two signatures at once find the same list, and both write the same file: a third one is then given the code of
one signature for the other, and reads the bits of integers as floats, or fails. Here no two signatures, and no two
versions of the source, have one file; a process whose entry in the list is lost compiles again.

Before Numba looks for a function on the disk it imports and registers all that its compiler knows of Python and NumPy,
a quarter of what the first call of a new process takes. What was compiled needs none of it, only the symbols of Numba's
runtime. Here it waits for the first function that has to be compiled: the compiler itself asks for it then.
"""

from __future__ import annotations

import hashlib
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime import rtsys

__all__ = ["keep_signatures_apart", "load_lightly"]


class _FilesBySignature(IndexDataCacheFile):  # type: ignore[misc]
    """The list of what is kept of a function, and a file for each entry."""

    def save(self, key: object, data: object) -> None:
        """Keep compiled code: first the code, then where it is."""
        of_source = hashlib.sha256(repr((self._source_stamp, key)).encode()).hexdigest()
        name = f"{self._index_name.removesuffix('.nbi')}.{of_source[:24]}.nbc"
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})


class _LightCache(FunctionCache):  # type: ignore[misc]
    """What is kept of a function, loaded without what the compiler alone needs."""

    def load_overload(self, sig: object, target_context: Any) -> object:
        """Return what was compiled for a signature, or None."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def keep_signatures_apart(dispatcher: Any) -> None:
    """Have a function's compiled code kept so; nothing is changed where Numba keeps it in another way."""
    cache = getattr(dispatcher, "_cache", None)
    files = getattr(cache, "_cache_file", None)
    if cache is not None and type(files) is IndexDataCacheFile and "_index_name" in vars(files):
        apart = _FilesBySignature.__new__(_FilesBySignature)
        apart.__dict__.update(files.__dict__)
        cache._cache_file = apart


def load_lightly(dispatcher: Any) -> None:
    """Have a function's compiled code loaded so; nothing is changed where Numba loads it in another way."""
    cache = getattr(dispatcher, "_cache", None)
    if type(cache) is FunctionCache and hasattr(cache, "_load_overload"):
        light = _LightCache.__new__(_LightCache)
        light.__dict__.update(cache.__dict__)
        dispatcher._cache = light


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
