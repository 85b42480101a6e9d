"""Run by test_processors.py in a process of its own: draw seeded noise and selections, and print what came out.

    python draws_of_processor.py noise|one-half|other-half|selections

Numba compiles for the processor that NUMBA_CPU_NAME and NUMBA_CPU_FEATURES name.
"""

from __future__ import annotations

import hashlib
import json
import sys

import numpy as np

import dpfast as dpf
from dpfast.testing import SeededRandom

ROWS = 20_000


#: Mechanisms and dtypes, each with the other once.
HALVES = {
    "one-half": {("laplace", "int64"), ("gaussian", "float64")},
    "other-half": {("laplace", "float64"), ("gaussian", "int64")},
}


def noise(routes):
    """Yield (name, column): every route of a kernel, with words enough that float32 leaves some to float64."""
    generator = np.random.default_rng(15)
    for dtype in ("int64", "float64"):
        values = generator.integers(-1000, 1000, ROWS) + (0 if dtype == "int64" else generator.random(ROWS))
        for scale in (0.7, 40.0, 5e3, 2.0**30, np.geomspace(0.5, 200, ROWS), np.geomspace(1, 2.0**30, ROWS)):
            for mechanism in (dpf.laplace, dpf.gaussian):
                if (mechanism.__name__, dtype) not in routes:
                    continue
                kind = f"{scale:g}" if isinstance(scale, float) else f"scales to {scale[-1]:g}"
                drawn = mechanism(values.astype(dtype), scale, random=SeededRandom(7))
                yield f"{mechanism.__name__} {dtype} {kind}", drawn


def selections():
    """Yield (name, column)."""
    scores = np.random.default_rng(16).normal(0, 3, (200, 100))
    yield "exponential", dpf.exponential(scores, 1.0, random=SeededRandom(8))
    yield "permute and flip", dpf.permute_and_flip(scores, 1.0, random=SeededRandom(8))
    yield "integers", dpf.exponential(scores.astype(np.int64), 1.0, random=SeededRandom(8))
    yield "top 3", dpf.noisy_top_k(scores, 3, 1.0, random=SeededRandom(8))
    yield "threshold", dpf.above_threshold(scores, 1.0, 1.0, random=SeededRandom(8))


def digest(column: object) -> str:
    return hashlib.sha256(np.ascontiguousarray(column).tobytes()).hexdigest()


if __name__ == "__main__":
    what = sys.argv[1]
    found = selections() if what == "selections" else noise(HALVES.get(what, set.union(*HALVES.values())))
    json.dump({name: digest(column) for name, column in found}, sys.stdout)
