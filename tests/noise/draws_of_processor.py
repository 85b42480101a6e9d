"""Run by test_processors.py in a process of its own: draw seeded noise and selections, and print what came out.

    python draws_of_processor.py noise|some-noise|selections

Numba compiles for the processor that NUMBA_CPU_NAME and NUMBA_CPU_FEATURES name.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys

import numpy as np

import dpfast as dpf
from dpfast.testing import SeededRandom

ROWS = 20_000


NUMBERS = (0.7, 40.0, 5e3, 2.0**30)
SCALES_PER_ROW = (np.geomspace(0.5, 200, ROWS), np.geomspace(1, 2.0**30, ROWS))
#: Every mechanism and dtype with every scale.
ALL = dict.fromkeys(itertools.product(("laplace", "gaussian"), ("int64", "float64")), (*NUMBERS, *SCALES_PER_ROW))
#: Every mechanism and dtype with one kind of scales: each pair of mechanism, dtype and kind meets.
SOME = {
    ("laplace", "int64"): NUMBERS,
    ("gaussian", "float64"): NUMBERS,
    ("laplace", "float64"): SCALES_PER_ROW,
    ("gaussian", "int64"): SCALES_PER_ROW,
}


def noise(routes):
    """Yield (name, column): routes of kernels, with words enough that float32 leaves some to float64."""
    generator = np.random.default_rng(15)
    for (name, dtype), scales in routes.items():
        values = generator.integers(-1000, 1000, ROWS) + (0 if dtype == "int64" else generator.random(ROWS))
        for scale in scales:
            kind = f"{scale:g}" if isinstance(scale, float) else f"scales to {scale[-1]:g}"
            drawn = getattr(dpf, name)(values.astype(dtype), scale, random=SeededRandom(7))
            yield f"{name} {dtype} {kind}", drawn


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
    found = selections() if what == "selections" else noise(SOME if what == "some-noise" else ALL)
    json.dump({name: digest(column) for name, column in found}, sys.stdout)
