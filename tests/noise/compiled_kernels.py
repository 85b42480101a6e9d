"""Run by test_compiled_code.py in a process of its own: compile the noise kernels afresh and print what they became.

    python compiled_kernels.py NAMES...

Code that comes from Numba's cache has no readable IR, so that nothing is loaded from it; what is compiled is saved.
The kernels that are named are also compiled for a processor of another kind, a Neoverse core, and not run there.

What is printed tells also what it depends on, so that it is made anew only where that has changed.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pkgutil
import re
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.caching import FunctionCache
from numba.core.codegen import CPUCodeLibrary
from numba.core.registry import CPUDispatcher

import dpfast as dpf
import dpfast.kernels
from dpfast.kernels.compilation import processor_features


def settings() -> list[str]:
    """Return what else decides what is compiled: versions, the processor, what Numba is told, files that are new."""
    told = sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_") and "CACHE" not in item[0])
    files = sorted(map(str, Path(dpfast.kernels.__file__).parent.rglob("*.py")))
    versions = numba.__version__, np.__version__, llvm.llvm_version_info
    return list(map(repr, (sys.version, *versions, processor_features(), told, files)))


def digests(files) -> dict[str, str]:
    """Return the digest of each file; "" of one that is no longer there."""
    paths = map(Path, files)
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "" for path in paths}


def sources() -> list[str]:
    """Return the files of dpfast that were imported, and this one."""
    return [
        module.__file__
        for name, module in list(sys.modules.items())
        if name in ("dpfast", "__main__") or name.startswith("dpfast.")
    ]


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
        dpf.exponential(np.zeros(5, dtype), 1.0)
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


#: What Numba gave to LLVM for every function, before LLVM saw for which processor it is.
GIVEN: dict[str, list[str]] = {}


def keep_what_llvm_is_given() -> None:
    add = CPUCodeLibrary.add_ir_module

    def add_and_keep(library, module):
        GIVEN.setdefault(library.name, []).append(str(module))
        add(library, module)

    CPUCodeLibrary.add_ir_module = add_and_keep


def given_to_llvm(library, seen) -> list[llvm.ModuleRef]:
    """Return what LLVM was given for a function and all that it calls, but for Numba's own part in C."""
    if library.name in seen or library.name not in GIVEN:
        return []
    seen.add(library.name)
    texts = (re.sub("target triple.*", "", cgutils.normalize_ir_text(given)) for given in GIVEN[library.name])
    called = [module for other in library._linking_libraries for module in given_to_llvm(other, seen)]
    return [*map(llvm.parse_assembly, texts), *called]


def vector_instructions_on_neoverse(kernel, signature) -> list[str]:
    """Return the different vector instructions, such as ``fmla.2d``, of a kernel compiled for a Neoverse N1."""
    machine = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(cpu="neoverse-n1", opt=3)
    first, *others = given_to_llvm(kernel.overloads[signature].library, set())
    for other in others:
        first.link_in(other)
    first.triple, first.data_layout = machine.triple, str(machine.target_data)
    for cheap in (True, False):  # Numba's two runs: counts of references are pruned before loops become vectors
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization, options.slp_vectorization = True, not cheap
        builder = llvm.create_pass_builder(machine, options)
        passes = builder.getModulePassManager()
        if cheap:
            passes.add_loop_rotate_pass()
            passes.add_instruction_combine_pass()
            passes.add_jump_threading_pass()
        passes.add_refprune_pass()
        passes.run(first, builder)
    assembly = machine.emit_assembly(first)
    return sorted({".".join(found) for found in re.findall(r"^\s+(\w+)\s+v\d+\.(\w+)", assembly, re.MULTILINE)})


def describe(named):
    for name, kernel in kernels():
        options = {key: bool(kernel.targetoptions.get(key)) for key in ("fastmath", "parallel", "nogil")}
        compiled = []
        for signature in kernel.signatures:
            typemap = kernel.overloads[signature].type_annotation.typemap
            floats = sorted(variable for variable, kind in typemap.items() if isinstance(kind, types.Float))
            compiled.append({"signature": str(signature), "ir": kernel.inspect_llvm(signature), "floats": floats})
        found = {"options": options, "compiled": compiled}
        if name in named and kernel.signatures:
            # One is enough, that with most arrays: all would take as long as all for this processor.
            longest = max(kernel.signatures, key=lambda signature: len(str(signature)))
            found["neoverse"] = vector_instructions_on_neoverse(kernel, longest)
        yield name, found


if __name__ == "__main__":
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    # That of dpfast's own caches, too, which load by the second: nothing is known of what comes from a cache.
    FunctionCache.load_overload = FunctionCache._load_overload = lambda *_: None
    keep_what_llvm_is_given()
    call_every_route()
    described = dict(describe(sys.argv[1:]))
    json.dump({"settings": settings(), "sources": digests(sources()), "kernels": described}, sys.stdout)
