"""The keystream of AES-256 in counter mode, compiled for this processor's vectors.

The same words as OpenSSL makes, which a test holds, block by block: wider vectors take half the time. The cipher is
that of encryption.py, which the plugin has too: instructions of the processor alone, no table.
"""

from __future__ import annotations

import platform
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dpfast.kernels.compilation import kernel, processor_features
from dpfast.kernels.encryption import BATCH_BYTES, SCHEDULE_BYTES, encryption, has_aes, vector_blocks
from dpfast.kernels.intrinsics import address_of

__all__ = ["BATCH_BYTES", "SCHEDULE_WORDS", "can_encrypt", "can_fill", "fill_at_once", "fill_words", "prepare_key"]

SCHEDULE_WORDS = SCHEDULE_BYTES // 8
_I64 = ir.IntType(64)
_LEAST_LLVM = 16


@cache
def can_encrypt() -> bool:
    """Return whether kernels are compiled for a processor that encrypts.

    The cipher is written for an LLVM in which pointers have no type: llvmlite has it from LLVM 16 on.
    """
    known = platform.machine() in ("x86_64", "AMD64") and llvm.llvm_version_info[0] >= _LEAST_LLVM
    return known and has_aes(processor_features()[1])


@cache
def can_fill() -> bool:
    """Return whether they are for vectors of more than one block: OpenSSL is as fast with single blocks."""
    return can_encrypt() and vector_blocks(processor_features()[1]) > 1


def _call(context: Any, builder: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    """Call a function of encryption.py, which is linked to what is being compiled."""
    library = context.codegen().create_library("dpfast_encryption")
    library.add_llvm_module(llvm.parse_assembly(encryption(vector_blocks(processor_features()[1]))))
    library.finalize()
    context.active_code_library.add_linking_library(library)
    kind = ir.FunctionType(_I64, [_I64] * len(arguments))
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


@intrinsic
def _prepare_key(typing_context: Any, key: Any, schedule: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        return _call(context, builder, "dpfast_prepare_key", arguments)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _fill_words(typing_context: Any, schedule: Any, counter: Any, place: Any, batches: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        return _call(context, builder, "dpfast_fill_words", arguments)

    return types.int64(types.int64, types.int64, types.int64, types.int64), generate


@kernel
def _fill(schedule, counter, place, batches):
    return _fill_words(schedule, counter, place, batches)


@kernel
def prepare_key(key, schedule):
    """Write the round keys of a key (32 bytes, uint8) into SCHEDULE_WORDS words (uint64)."""
    return _prepare_key(address_of(key), address_of(schedule))


@kernel
def _fill_rest(schedule, counter, words):
    """Fill fewer than BATCH_BYTES."""
    block = np.empty(BATCH_BYTES, np.uint8)
    _fill(address_of(schedule), counter, address_of(block), np.int64(1))
    for i in range(words.size):
        words[i] = block[i]
    block[:] = np.uint8(0)


@kernel
def fill_words(schedule, counter, words):
    """Fill ``words`` (uint8) with encrypted counters from ``counter`` on.

    The counter is the lower half (int64) of one whose upper half is 0.
    """
    batches = words.size // BATCH_BYTES
    whole = batches * BATCH_BYTES
    if batches == 0:
        _fill_rest(schedule, counter, words)
        return
    _fill(address_of(schedule), counter, address_of(words), np.int64(batches))
    if whole < words.size:
        # The last batch ends with the last whole block; it makes words once more that are there, the same.
        last = words.size // 16 * 16
        begin = last - BATCH_BYTES
        _fill(address_of(schedule), counter + np.int64(begin // 16), address_of(words) + begin, np.int64(1))
        if last < words.size:
            _fill_rest(schedule, counter + np.int64(last // 16), words[last:])


@kernel
def fill_at_once(key, counter, words):
    """Fill ``words`` as `fill_words` does, of any size, under a key whose round keys are made here, and wiped."""
    schedule = np.empty(SCHEDULE_WORDS, np.uint64)
    prepare_key(key, schedule)
    fill_words(schedule, counter, words)
    schedule[:] = np.uint64(0)


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
