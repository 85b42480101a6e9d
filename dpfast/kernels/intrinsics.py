"""Machine operations that Numba has no exact word for: wrap-around integers, bit casts, fused multiply-add.

Numba widens ``uint32 + uint32`` to 64 bits, which halves the vector width, and mixes signed with unsigned
into floats. The operations here keep the type of their operands and mean one LLVM instruction each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = [
    "absolute",
    "add",
    "add_in_any_order",
    "address_of",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bits_of_f32",
    "bits_of_f64",
    "choose",
    "count_ones",
    "f32_from_bits",
    "f32_from_i32",
    "f64_above_2_52",
    "f64_from_bits",
    "f64_from_i32",
    "f64_from_i52",
    "f64_from_i64",
    "fused_multiply_add",
    "high_product",
    "i32_from_u32",
    "i32_from_u64",
    "low_product",
    "maximum",
    "polynomial",
    "round_half_even",
    "shift_left",
    "shift_right",
    "spread_sign",
    "square_root",
    "subtract",
    "trailing_zeros",
    "u32_from_i32",
    "u64_from_u32",
]

_Lowering = Callable[[Any, tuple[Any, ...]], Any]


def _same_type(arity: int, kind: Any, lower: _Lowering) -> Any:
    """Return an intrinsic over ``arity`` operands of one type, which is also its result's."""

    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        return lower(builder, arguments)

    if arity == 1:

        @intrinsic
        def unary(typing_context: Any, x: Any) -> Any:
            return (x(x), generate) if isinstance(x, kind) else None

        return unary
    if arity == 2:

        @intrinsic
        def binary(typing_context: Any, x: Any, y: Any) -> Any:
            return (x(x, y), generate) if x == y and isinstance(x, kind) else None

        return binary

    @intrinsic
    def ternary(typing_context: Any, x: Any, y: Any, z: Any) -> Any:
        return (x(x, y, z), generate) if x == y == z and isinstance(x, kind) else None

    return ternary


def _convert(source: Any, target: Any, lower: _Lowering) -> Any:
    """Return an intrinsic from the type ``source`` to the type ``target``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        return lower(builder, arguments)

    @intrinsic
    def conversion(typing_context: Any, x: Any) -> Any:
        return (target(x), generate) if x == source else None

    return conversion


def _call(name: str) -> _Lowering:
    """Return the lowering to a unary LLVM intrinsic such as ``llvm.sqrt``."""

    def lower(builder: Any, arguments: tuple[Any, ...]) -> Any:
        function = builder.module.declare_intrinsic(name, [arguments[0].type])
        return builder.call(function, arguments)

    return lower


_F32, _F64, _I32, _I64 = ir.FloatType(), ir.DoubleType(), ir.IntType(32), ir.IntType(64)
_I128 = ir.IntType(128)


# The bits of 2**52 and of 1.5 * 2**52, whose low bits count ones. Only AVX-512 converts 64-bit integers; elsewhere LLVM
# takes them one by one, where putting a word into these bits is one operation on vectors.
_BITS_OF_2_52, _BITS_OF_MIDDLE = ir.Constant(_I64, 0x4330000000000000), ir.Constant(_I64, 0x4338000000000000)


def _above_2_52(builder: Any, arguments: tuple[Any, ...]) -> Any:
    return builder.bitcast(builder.or_(arguments[0], _BITS_OF_2_52), _F64)


def _f64_from_i52(builder: Any, arguments: tuple[Any, ...]) -> Any:
    return builder.fsub(
        builder.bitcast(builder.add(arguments[0], _BITS_OF_MIDDLE), _F64), ir.Constant(_F64, 1.5 * 2**52)
    )


def _f64_from_halves(builder: Any, arguments: tuple[Any, ...]) -> Any:
    """Return the float64 of a signed word: both halves are exact, and only their fused sum rounds."""
    half, mask = ir.Constant(_I64, 32), ir.Constant(_I64, 2**32 - 1)
    high = _f64_from_i52(builder, (builder.ashr(arguments[0], half),))
    low = builder.fsub(_above_2_52(builder, (builder.and_(arguments[0], mask),)), ir.Constant(_F64, 2.0**52))
    return builder.fma(high, ir.Constant(_F64, 2.0**32), low)


def _high_half(builder: Any, arguments: tuple[Any, ...]) -> Any:
    """Return the upper half of the product of two words of 64 bits."""
    wide = [builder.zext(argument, _I128) for argument in arguments]
    return builder.trunc(builder.lshr(builder.mul(*wide), ir.Constant(_I128, 64)), _I64)


add = _same_type(2, types.Integer, lambda b, a: b.add(*a))
subtract = _same_type(2, types.Integer, lambda b, a: b.sub(*a))
bit_and = _same_type(2, types.Integer, lambda b, a: b.and_(*a))
bit_or = _same_type(2, types.Integer, lambda b, a: b.or_(*a))
bit_xor = _same_type(2, types.Integer, lambda b, a: b.xor(*a))
shift_left = _same_type(2, types.Integer, lambda b, a: b.shl(*a))
shift_right = _same_type(2, types.Integer, lambda b, a: b.lshr(*a))
low_product = _same_type(2, types.Integer, lambda b, a: b.mul(*a))
high_product = _same_type(2, types.Integer, _high_half)
"""The upper 64 bits of the product of two uint64."""
trailing_zeros = _same_type(1, types.Integer, lambda b, a: b.cttz(a[0], ir.Constant(ir.IntType(1), 0)))
"""How many of the lowest bits are zero."""
count_ones = _same_type(1, types.Integer, lambda b, a: b.ctpop(a[0]))
"""How many bits are 1."""
spread_sign = _same_type(1, types.Integer, lambda b, a: b.ashr(a[0], ir.Constant(a[0].type, a[0].type.width - 1)))
"""All ones where the top bit is set, else zero."""

fused_multiply_add = _same_type(3, types.Float, lambda b, a: b.fma(*a))
"""``x * y + z`` with one rounding (IEEE 754 fusedMultiplyAdd), on every machine."""
add_in_any_order = _same_type(2, types.Float, lambda b, a: b.fadd(*a, flags=("reassoc",)))
"""A sum that the compiler may regroup, so that a loop of them fills whole vectors: for what decides no outcome."""
absolute = _same_type(1, types.Float, _call("llvm.fabs"))
square_root = _same_type(1, types.Float, _call("llvm.sqrt"))
round_half_even = _same_type(1, types.Float, _call("llvm.rint"))
maximum = _same_type(2, types.Float, lambda b, a: b.select(b.fcmp_ordered(">", a[0], a[1]), a[0], a[1]))
"""The larger operand; the second one if either is NaN."""

bits_of_f32 = _convert(types.float32, types.uint32, lambda b, a: b.bitcast(a[0], _I32))
bits_of_f64 = _convert(types.float64, types.uint64, lambda b, a: b.bitcast(a[0], _I64))
f32_from_bits = _convert(types.uint32, types.float32, lambda b, a: b.bitcast(a[0], _F32))
f64_from_bits = _convert(types.uint64, types.float64, lambda b, a: b.bitcast(a[0], _F64))
f32_from_i32 = _convert(types.uint32, types.float32, lambda b, a: b.sitofp(a[0], _F32))
"""The value of a word below 2**31 as a float32, rounded to nearest."""
f64_from_i32 = _convert(types.int32, types.float64, lambda b, a: b.sitofp(a[0], _F64))
f64_above_2_52 = _convert(types.uint64, types.float64, _above_2_52)
"""2**52 and a word below 2**52, exactly: what is subtracted from it makes a number of the word in one operation."""
f64_from_i52 = _convert(types.uint64, types.float64, _f64_from_i52)
"""The value of a word that stands for an integer in [-2**51, 2**51), as a float64, exactly."""
f64_from_i64 = _convert(types.uint64, types.float64, _f64_from_halves)
"""The value of a word that stands for an integer in [-2**63, 2**63), as a float64, rounded to nearest."""
i32_from_u32 = _convert(types.uint32, types.int32, lambda b, a: a[0])
u32_from_i32 = _convert(types.int32, types.uint32, lambda b, a: a[0])
i32_from_u64 = _convert(types.uint64, types.int32, lambda b, a: b.trunc(a[0], _I32))
u64_from_u32 = _convert(types.uint32, types.uint64, lambda b, a: b.zext(a[0], _I64))


@intrinsic
def address_of(typing_context: Any, array: Any) -> Any:
    """Return where an array's entries begin, as int64."""
    if not isinstance(array, types.Array):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        return builder.ptrtoint(context.make_array(array)(context, builder, arguments[0]).data, _I64)

    return types.int64(array), generate


@intrinsic
def polynomial(typing_context: Any, x: Any, coefficients: Any) -> Any:
    """Return a polynomial's value by Horner's rule in fused operations; the constant comes first in the tuple."""
    if not isinstance(coefficients, types.UniTuple) or coefficients.dtype != x:
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        *others, value = (builder.extract_value(arguments[1], place) for place in range(coefficients.count))
        for coefficient in reversed(others):
            value = builder.fma(arguments[0], value, coefficient)
        return value

    return x(x, coefficients), generate


@intrinsic
def choose(typing_context: Any, condition: Any, x: Any, y: Any) -> Any:
    """Return ``x`` where the condition holds, else ``y``, without a branch and without widening."""
    if x != y or condition != types.boolean:
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        condition, x, y = arguments
        if condition.type.width != 1:
            condition = builder.icmp_unsigned("!=", condition, ir.Constant(condition.type, 0))
        return builder.select(condition, x, y)

    return x(types.boolean, x, x), generate


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
