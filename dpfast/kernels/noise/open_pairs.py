"""Which pairs of rows are open: eight pairs are one comparison of vectors, and one number of eight bits.

Almost no pair is open. Marks for all pairs, written and then searched, took a twelfth of the time of Gaussian noise
on floats; eight results of a comparison fit into a number that is almost always 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dpfast.kernels.compilation import by_types, kernel
from dpfast.kernels.intrinsics import absolute, bit_and, subtract, trailing_zeros

__all__ = ["list_open_pairs"]

_PAIRS = 8
_FLOATS, _WORDS = ir.VectorType(ir.FloatType(), _PAIRS), ir.VectorType(ir.IntType(32), _PAIRS)
_NO_SIGNS = ir.Constant(_WORDS, [2**31 - 1] * _PAIRS)
_NONE, _ONE = np.uint64(0), np.uint64(1)


@intrinsic
def _open_of_eight(
    typing_context: Any, distances: Any, other_distances: Any, limits: Any, other_limits: Any, first: Any
) -> Any:
    """Return eight bits (uint64), the lowest for pair ``first``: 1 for an open pair."""
    arrays = distances, other_distances, limits, other_limits
    if any(not isinstance(array, types.Array) or array.dtype != types.float32 for array in arrays):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        def eight(place: int) -> Any:
            begin = context.make_array(signature.args[place])(context, builder, arguments[place]).data
            pointer = builder.bitcast(builder.gep(begin, [arguments[4]]), _FLOATS.as_pointer())
            return builder.load(pointer, align=4)

        def without_sign(numbers: Any) -> Any:
            return builder.bitcast(builder.and_(builder.bitcast(numbers, _WORDS), _NO_SIGNS), _FLOATS)

        below = [
            # False for NaN.
            builder.fcmp_ordered("<", without_sign(eight(distance)), eight(limit))
            for distance, limit in ((0, 2), (1, 3))
        ]
        is_open = builder.not_(builder.bitcast(builder.and_(*below), ir.IntType(8)))
        return builder.zext(is_open, ir.IntType(64))

    return types.uint64(*arrays, types.int64), generate


@by_types(inline=True)
def _or_same(limits, other_limits):
    if isinstance(other_limits, types.NoneType):
        return lambda limits, other_limits: limits
    return lambda limits, other_limits: other_limits


@kernel
def list_open_pairs(distances, other_distances, limits, other_limits, start, middle, places, others, some):
    """List the pairs of a block of which a row's distance from an integer is not below its limit for certain.

    Parameters
    ----------
    distances, other_distances
        float32: of the first row of each pair, and of the second one. NaN is below no limit.
    limits, other_limits
        float32: as many; None for ``other_limits`` if both rows of a pair have one limit.
    start, middle
        Pair j has the rows ``start`` + j and ``middle`` + j.
    places, others
        int64: where these are listed.
    some
        How many are listed already.

    Returns
    -------
    int64
        How many pairs are listed then.

    """
    second = _or_same(limits, other_limits)
    whole = distances.size // _PAIRS * _PAIRS
    for first in range(0, whole, _PAIRS):
        left = _open_of_eight(distances, other_distances, limits, second, first)
        while left != _NONE:
            pair = first + np.int64(trailing_zeros(left))
            places[some], others[some] = start + pair, middle + pair
            some += 1
            left = bit_and(left, subtract(left, _ONE))
    for pair in range(whole, distances.size):
        below = (absolute(distances[pair]) < limits[pair]) & (absolute(other_distances[pair]) < second[pair])
        if not below:
            places[some], others[some] = start + pair, middle + pair
            some += 1
    return some


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
