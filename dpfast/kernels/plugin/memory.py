"""Raw memory for compiled code without Python: words at addresses, arrays over them, the C library's functions.

Addresses are int64 throughout: Numba makes floats of mixed signed and unsigned words.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dpfast.kernels.compilation import inlined, kernel

__all__ = [
    "EXTERNALS",
    "allocate",
    "allocate_large",
    "ask",
    "call",
    "draw_multiples",
    "draw_ones",
    "draw_powers",
    "f32_array",
    "f64_array",
    "fill_words",
    "free",
    "free_large",
    "fresh_bytes",
    "i32_array",
    "i64_array",
    "load",
    "load_byte",
    "of_allocator",
    "of_duckdb",
    "of_release_array",
    "of_release_field",
    "of_release_series",
    "prepare_key",
    "process_id",
    "put_block",
    "refine",
    "store",
    "take_block",
    "u8_array",
    "u16_array",
    "u32_array",
    "u64_array",
]

_I8, _I64 = ir.IntType(8), ir.IntType(64)


def _at(builder: Any, address: Any, kind: Any) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


def _loading(kind: Any, result: Any, widen: bool = False) -> Any:
    """Return an intrinsic that reads one number at an address of any alignment."""

    @intrinsic
    def load_one(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            number = builder.load(_at(builder, arguments[0], kind), align=1)
            return builder.zext(number, _I64) if widen else number

        return result(types.int64), generate

    return load_one


def _storing(kind: Any, given: Any) -> Any:
    """Return an intrinsic that writes one number at an address of any alignment."""

    @intrinsic
    def store_one(typing_context: Any, address: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            builder.store(arguments[1], _at(builder, arguments[0], kind), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, given), generate

    return store_one


load = _loading(_I64, types.int64)
load_byte = _loading(_I8, types.int64, widen=True)
store = _storing(_I64, types.int64)


def _array_of(dtype: Any) -> Any:
    """Return a function that views memory as an array: (address, rows)."""
    pointer_type = types.CPointer(dtype)

    @intrinsic
    def pointer(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(pointer_type))

        return pointer_type(types.int64), generate

    @inlined
    def view(address, rows):
        return numba.carray(pointer(address), rows)

    return view


u8_array, u16_array, u32_array, u64_array = (
    _array_of(dtype) for dtype in (types.uint8, types.uint16, types.uint32, types.uint64)
)
i32_array, i64_array = _array_of(types.int32), _array_of(types.int64)
f32_array, f64_array = _array_of(types.float32), _array_of(types.float64)


@intrinsic
def call(typing_context: Any, function: Any, argument: Any) -> Any:
    """Call a C function that takes an address and returns nothing."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_I64])
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [arguments[1]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def ask(typing_context: Any, function: Any, first: Any, second: Any) -> Any:
    """Call a C function that takes an address and perhaps another word, and returns one, or nothing."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_I64, [_I64, _I64])
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), list(arguments[1:]))

    return types.int64(*[types.int64] * 3), generate


@intrinsic
def call_allocator(typing_context: Any, function: Any, size: Any, alignment: Any) -> Any:
    """Call a C function that takes two sizes and returns an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_I64, [_I64, _I64])
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), list(arguments[1:]))

    return types.int64(*[types.int64] * 3), generate


@intrinsic
def call_deallocator(typing_context: Any, function: Any, address: Any, size: Any, alignment: Any) -> Any:
    """Call a C function that takes an address and two sizes, and returns nothing."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_I64] * 3)
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), list(arguments[1:]))
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate


_ADDRESS = types.int64
allocate = types.ExternalFunction("malloc", _ADDRESS(types.int64))
free = types.ExternalFunction("free", types.void(_ADDRESS))
fresh_bytes = types.ExternalFunction("getrandom", types.int64(_ADDRESS, types.int64, types.int32))
"""The system's generator: (address, bytes, flags), as glibc has it."""
process_id = types.ExternalFunction("getpid", types.int32())

EXTERNALS: list[str] = []


def _linked(name: str, words: int) -> Any:
    """Return a function of so many int64, to an int64, that another part of the library has."""
    EXTERNALS.append(f"dpfast_{name}")
    return types.ExternalFunction(f"dpfast_{name}", types.int64(*[types.int64] * words))


# Of glue.py and encryption.py.
prepare_key, fill_words = _linked("prepare_key", 2), _linked("fill_words", 4)
"""(32 bytes of key, memory for its schedule); (schedule, the counter's lower half, address, batches)."""
refine, of_allocator = _linked("refine", 1), _linked("of_allocator", 0)
of_release_array, of_release_field = _linked("of_release_array", 0), _linked("of_release_field", 0)
of_release_series = _linked("of_release_series", 0)
# The table that Python fills in, and slots of blocks: (its address), (its address, the block).
of_duckdb, take_block, put_block = _linked("of_duckdb", 0), _linked("take_block", 1), _linked("put_block", 2)
# Of drawing.py, so that the bodies are compiled without what they call.
draw_ones, draw_multiples, draw_powers = (_linked(name, 11) for name in ("draw_ones", "draw_multiples", "draw_powers"))


_LARGE, _ALIGNMENT = 1 << 14, 64


@kernel
def allocate_large(size):
    """Return memory from Polars' own allocator where it is large: one that keeps pages, which are slow to get.

    The address of its functions (allocate, deallocate) is set before the first call, or never: later it is ignored.
    """
    functions = of_allocator()
    if functions == 0 or size < _LARGE:
        return allocate(size)
    return call_allocator(load(functions), size, _ALIGNMENT)


@kernel
def free_large(address, size):
    """Free what `allocate_large` returned for this size."""
    functions = of_allocator()
    if functions == 0 or size < _LARGE:
        free(address)
    elif address != 0:
        call_deallocator(load(functions + 8), address, size, _ALIGNMENT)
    return 0


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
