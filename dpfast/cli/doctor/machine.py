"""What `dpfast doctor` says of a machine: versions, vectors, the keystream's speed, where compiled kernels are kept."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from dpfast.cores import core_count

__all__ = ["compiled_kernels", "keystream_speed", "processor", "versions"]

_PACKAGES = ("dpfast", "numpy", "numba", "llvmlite", "polars", "pyarrow", "cryptography")
_OPTIONAL = ("duckdb", "pyspark", "pandas", "psycopg", "altair")
_CHUNK_BYTES = 2**22
_SECONDS = 0.2


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _vectors() -> str:
    from dpfast.kernels.compilation import processor_features

    processor, has = processor_features()
    for feature, width in (("avx512f", "AVX-512, 16 float32 at once"), ("avx2", "AVX2, 8"), ("neon", "NEON, 4")):
        if has.get(feature):
            return f"{width} ({processor})"
    return f"of 128 bits ({processor})"


def versions() -> dict[str, str]:
    """Return what is known without loading any package, and so at once on a slow machine too."""
    installed = {package: _version(package) for package in (*_PACKAGES, *_OPTIONAL)}
    return {
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        **{package: found for package, found in installed.items() if found is not None},
        "cores": str(core_count()),
    }


def processor() -> dict[str, str]:
    """Return how wide the processor's vectors are, and what makes the keystream."""
    from dpfast.kernels.keystream import can_fill

    return {
        "vectors": _vectors(),
        "keystream": "compiled, several blocks of AES at once" if can_fill() else "OpenSSL",
    }


def keystream_speed() -> float:
    """Return how many random bytes a thread makes in a second."""
    import numpy as np

    from dpfast.randomness import Keystream, Purpose, SystemRandom

    words, buffer, made = (
        Keystream(SystemRandom().key()).words(Purpose.NOISE),
        np.empty(_CHUNK_BYTES // 4, np.uint32),
        0,
    )
    words.fill(0, buffer)
    begun = time.perf_counter()
    while (spent := time.perf_counter() - begun) < _SECONDS:
        made += 1
        words.fill(made, buffer)
    return made * _CHUNK_BYTES / spent


def _dispatchers() -> Iterator[Any]:
    for name, module in tuple(sys.modules.items()):
        if name.startswith("dpfast.kernels."):
            yield from (one for one in vars(module).values() if hasattr(one, "stats") and one.__module__ == name)


def compiled_kernels() -> tuple[int, int, str | None]:
    """Return how many kernels were loaded from the cache in this process, how many compiled, and the cache's place."""
    stats = [dispatcher.stats for dispatcher in _dispatchers()]
    loaded = sum(sum(one.cache_hits.values()) for one in stats)
    compiled = sum(sum(one.cache_misses.values()) for one in stats)
    places = {one.cache_path for one in stats if one.cache_path}
    return loaded, compiled, os.path.commonpath(places) if places else None
