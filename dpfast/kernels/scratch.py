"""Arrays on the stack, for what a kernel puts aside within a block of rows: no allocator, so that plugins may use them."""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dpfast.kernels.compilation import inlined

__all__ = ["array_on_stack"]

_ALIGNMENT = 64


def array_on_stack(dtype: Any, size: int) -> Any:
    """Return a function that gives a fresh array of so many entries, whose memory ends with the calling kernel."""
    pointer_type = types.CPointer(dtype)

    @intrinsic
    def memory(typing_context: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            allocated = cgutils.alloca_once(builder, ir.ArrayType(context.get_data_type(dtype), size))
            allocated.align = _ALIGNMENT
            return builder.bitcast(allocated, context.get_value_type(pointer_type))

        return pointer_type(), generate

    @inlined
    def fresh():
        return numba.carray(memory(), size)

    return fresh
