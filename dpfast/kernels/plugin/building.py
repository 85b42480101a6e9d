"""From kernels to the bytes of an object file, for this processor."""

from __future__ import annotations

import platform
import re
import sys
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numba
from numba import types
from numba.core.registry import cpu_target

from dpfast.kernels.encryption import encryption, has_aes, vector_blocks
from dpfast.kernels.plugin.blocks import forget_function, make_function
from dpfast.kernels.plugin.bodies import field_of, run
from dpfast.kernels.plugin.drawing import draw_multiples, draw_ones, draw_powers
from dpfast.kernels.plugin.exchange import release_array, release_field, release_series
from dpfast.kernels.plugin.glue import glue
from dpfast.kernels.plugin.memory import EXTERNALS
from dpfast.kernels.plugin.vectors import draw_vector

__all__ = ["can_compile", "object_code", "processor"]

_WORD = types.int64
#: Functions of so many int64, each compiled apart from those that call it.
_COMPILED: tuple[tuple[Any, int], ...] = (
    (run, 7),
    (field_of, 3),
    (release_array, 1),
    (release_field, 1),
    (release_series, 1),
    (draw_ones, 11),
    (draw_multiples, 11),
    (draw_powers, 11),
    (draw_vector, 5),
    (make_function, 1),
    (forget_function, 1),
)
#: What the library shows to others.
_EXPORTED = re.compile("_polars_plugin_|dpf_|dpfast_(set_|duckdb|make_function|c_forget|init_c_api|[a-z_]+_under_key)")


def _target() -> tuple[str, str]:
    """Return the processor's name and features that kernels are compiled for, as Numba was told or found."""
    _, name, features = cpu_target.target_context.codegen().magic_tuple()
    return name, features


def _features() -> dict[str, bool]:
    return {feature[1:]: feature.startswith("+") for feature in _target()[1].split(",")}


@cache
def can_compile() -> bool:
    """Return whether the bodies run here: on Linux, on x86-64 with AES instructions."""
    known = sys.platform.startswith("linux") and platform.machine() == "x86_64" and sys.maxsize > 2**32
    return known and has_aes(_features()) and has_aes(llvm.get_host_cpu_features())


def processor() -> str:
    """Return what code is compiled for: the processor's name and features."""
    return " ".join(_target())


def object_code() -> bytes:
    """Return an object file of the plugin, to be linked into a shared library; takes up to a minute."""
    for external in EXTERNALS:
        # Kernels are linked for use in this process too, which nobody makes of them: any address will do.
        llvm.add_symbol(external, 1)
    names, modules = {}, []
    for function, words in _COMPILED:
        signature = (_WORD,) * words
        # Of a function in Numba's cache there is no text to be linked.
        fresh = numba.njit(nogil=True, error_model="numpy", fastmath=False)(function.py_func)
        fresh.compile(signature)
        compiled = fresh.overloads[signature]
        names[function.__name__] = compiled.fndesc.llvm_func_name
        modules.append(llvm.parse_assembly(compiled.library.get_llvm_str()))
    name, features = _target()
    whole = llvm.parse_assembly(glue(names, {function.__name__: words for function, words in _COMPILED}))
    for module in [llvm.parse_assembly(encryption(vector_blocks(_features()))), *modules]:
        whole.link_in(module)
    whole.verify()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(cpu=name, features=features, opt=3, reloc="pic", codemodel="default")
    _keep_only_exported(whole, machine)
    code: bytes = machine.emit_object(whole)
    return code


def _keep_only_exported(module: Any, machine: Any) -> None:
    """Drop what nobody calls: above all the wrappers through which Python would."""
    for symbol in [*module.functions, *module.global_variables]:
        if not symbol.is_declaration and not _EXPORTED.match(symbol.name):
            symbol.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
