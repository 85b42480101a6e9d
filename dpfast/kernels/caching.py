"""Compiled kernels on disk, each signature's in a file that is named after it.

Numba numbers the files of a function's signatures, by the list of those that it has found before. Two processes that
compile two signatures at once find the same list, and both write the same file: a third one is then given the code of
one signature for the other, and reads the bits of integers as floats, or fails. Here no two signatures, and no two
versions of the source, have one file; a process whose entry in the list is lost compiles again.
"""

from __future__ import annotations

import hashlib
from typing import Any

from numba.core.caching import IndexDataCacheFile

__all__ = ["keep_signatures_apart"]


class _FilesBySignature(IndexDataCacheFile):  # type: ignore[misc]
    """The list of what is kept of a function, and a file for each entry."""

    def save(self, key: object, data: object) -> None:
        """Keep compiled code: first the code, then where it is."""
        of_source = hashlib.sha256(repr((self._source_stamp, key)).encode()).hexdigest()
        name = f"{self._index_name.removesuffix('.nbi')}.{of_source[:24]}.nbc"
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})


def keep_signatures_apart(dispatcher: Any) -> None:
    """Have a function's compiled code kept so; nothing is changed where Numba keeps it in another way."""
    cache = getattr(dispatcher, "_cache", None)
    files = getattr(cache, "_cache_file", None)
    if cache is not None and type(files) is IndexDataCacheFile and "_index_name" in vars(files):
        apart = _FilesBySignature.__new__(_FilesBySignature)
        apart.__dict__.update(files.__dict__)
        cache._cache_file = apart


# Stamp of all kernel sources (scripts/stamp_kernels.py): 95cfec875fe5e90f
