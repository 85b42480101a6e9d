"""Run by test_compiled_code.py in a process of its own: compile the noise kernels afresh and print what they became.

Code that comes from Numba's cache has no readable IR, so that nothing is loaded from it; what is compiled is saved.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys

import numpy as np
from numba import types
from numba.core.caching import FunctionCache
from numba.core.registry import CPUDispatcher

import dpfast as dpf
import dpfast.kernels


def call_every_route() -> None:
    rows = 100
    for dtype in ("int64", "int32", "uint32", "float64", "float32"):
        for scale in (
            2.0,
            5e3,
            2.0**30,
            np.linspace(0.5, 3, rows),
            np.linspace(1, 5e3, rows),
            np.linspace(1, 2.0**30, rows),
        ):
            for mechanism in (dpf.laplace, dpf.gaussian):
                mechanism(np.zeros(rows, dtype), scale)
        scores = np.zeros((rows, 3), dtype)
        for mechanism in (dpf.exponential, dpf.permute_and_flip):
            mechanism(scores, 1.0)
            mechanism(scores, np.linspace(0.5, 3, rows))
        dpf.exponential(np.zeros((3, 50_000), dtype), 1.0)
        dpf.above_threshold(scores, 1.0, 1.0)
        dpf.exponential(np.zeros(150_000, dtype), 1.0)
        dpf.exponential_draws(np.zeros(rows, dtype), 1.0, rows)
    dpf.noisy_top_k(np.zeros((3, 50_000)), 2, 1.0)
    dpf.noisy_top_k(np.zeros(300_000), 200_000, 1.0)  # tens of pairs are open after 31 bits, none with e**-40
    dpf.noisy_max_with_gap(np.zeros((rows, 3)), 1.0)
    dpf.noisy_max_with_gap(np.zeros((3, 50_000)), 1.0)  # a row in two chunks, whose gap is rounded by itself
    dpf.exponential(np.zeros(rows), 1.0, groups=np.arange(rows)[::-1])
    import pyarrow as pa

    for dtype in ("int64", "int32", "float64", "float32"):
        dpf.laplace(pa.array(np.zeros(rows, dtype), mask=np.arange(rows) % 2 == 0), 2.0)


def kernels():
    for module in pkgutil.walk_packages(dpfast.kernels.__path__, "dpfast.kernels."):
        for name, thing in vars(importlib.import_module(module.name)).items():
            if isinstance(thing, CPUDispatcher) and thing.py_func.__module__ == module.name:
                yield f"{module.name.removeprefix('dpfast.kernels.')}.{name}", thing


def describe():
    for name, kernel in kernels():
        options = {key: bool(kernel.targetoptions.get(key)) for key in ("fastmath", "parallel", "nogil")}
        compiled = []
        for signature in kernel.signatures:
            typemap = kernel.overloads[signature].type_annotation.typemap
            floats = sorted(variable for variable, kind in typemap.items() if isinstance(kind, types.Float))
            compiled.append({"signature": str(signature), "ir": kernel.inspect_llvm(signature), "floats": floats})
        yield name, {"options": options, "compiled": compiled}


if __name__ == "__main__":
    FunctionCache.load_overload = lambda *_: None
    call_every_route()
    json.dump(dict(describe()), sys.stdout)
