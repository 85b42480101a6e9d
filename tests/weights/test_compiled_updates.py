"""What LLVM made of the updates: whole vectors, and no fast-math flag but the regrouping of sums."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys

import llvmlite.binding
import numba
import numpy as np
import pytest
from flint import arb, ctx

from dpfast.kernels.weights import cells as weights

#: What comes from the cache has no readable code: all is compiled anew, and kept there for all that follows.
COMPILE = """
import json
import numpy as np
from numba.core.caching import FunctionCache
from dpfast.kernels.weights import cells as weights, logarithms as weights_of_logarithms, rows as weights_of_rows
FunctionCache.load_overload = lambda *_: None
cells = np.ones(8192)
sums, dots = np.empty((2, 2))
queries = {"bytes": np.ones(8192, np.uint8), "bits": np.ones(128, np.uint64), "floats": np.ones(8192)}
for name, query in queries.items():
    numbers = name == "floats"
    weights.multiply_blocks(cells, query, (0.5, 1.0, 1.0) if numbers else (0.5, 1.0), sums)
    weights.dot_blocks(cells, query, 1.0 if numbers else None, dots)
    weights_of_logarithms.add_blocks(cells, query, 0.5)
weights.inspect_blocks(cells, sums)
rows = cells.reshape(2, -1)
weights_of_rows.weigh_rows(rows, rows, sums, dots)
weights_of_rows.weigh_rows(rows, queries["bytes"].reshape(2, -1), sums, dots)
weights_of_logarithms.read_blocks(cells, 1.0, cells.copy(), sums)
found = {}
for module in (weights, weights_of_logarithms, weights_of_rows):
    for name, kernel in vars(module).items():
        for signature in getattr(kernel, "signatures", []):
            if kernel.__module__ == module.__name__:
                found[f"{name}{signature}"] = kernel.inspect_llvm(signature)
print(json.dumps(found))
"""


@numba.njit(error_model="numpy", fastmath=False)
def exponentials(y, values):
    for i in range(y.size):
        values[i] = weights.exp_small(y[i])


def test_the_short_series(seed):
    """At most 2u off, at random and at both ends."""
    generator = np.random.default_rng(seed)
    y = np.concatenate([generator.uniform(-weights.SMALL, weights.SMALL, 3000), [weights.SMALL, -weights.SMALL, 0.0]])
    values = np.empty_like(y)
    exponentials(y, values)
    with ctx.workprec(200):
        worst = max(
            abs(float((arb(value) / arb(at).exp() - 1).mid()))
            for at, value in zip(y.tolist(), values.tolist(), strict=True)
        )
    print(f"worst error {worst * 2**53:.3f}u")
    assert worst <= 2.0 * 2**-53


FLAGS = re.compile(
    r"= (fadd|fsub|fmul|fdiv|fcmp|fneg|call|select|phi) ((fast|nnan|ninf|nsz|arcp|contract|afn|reassoc) )+"
)


@pytest.fixture(scope="module")
def compiled():
    done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_sums_may_be_regrouped_and_nothing_else(compiled):
    flagged = [line for code in compiled.values() for line in code.splitlines() if FLAGS.search(line.split('"')[0])]
    assert flagged
    assert all(re.search(r"= fadd reassoc (double|<\d+ x double>)|call reassoc double @llvm", line) for line in flagged)


def wide_vectors() -> bool:
    features = llvmlite.binding.get_host_cpu_features()
    return platform.machine() in ("x86_64", "AMD64") and bool(features.get("avx2"))


@pytest.mark.skipif(not wide_vectors(), reason="needs AVX2")
def test_every_pass_fills_whole_vectors(compiled):
    passes = [
        name for name in compiled if re.match(r"(multiply_blocks|dot_blocks|add_blocks|inspect|weigh_rows|read_)", name)
    ]
    assert len(passes) >= 13
    for name in passes:
        assert re.search(r"(fmul|fadd reassoc|fadd) <(4|8) x double>|or <(4|8) x i64>", compiled[name]), name
