"""DRAFT"""

from __future__ import annotations

import numpy as np
from numba import types

from dpfast.kernels.compilation import by_types, inlined, kernel
from dpfast.kernels.intrinsics import (
    absolute,
    bit_and,
    bit_or,
    bit_xor,
    bits_of_f32,
    choose,
    f32_from_bits,
    f32_from_i32,
    fused_multiply_add,
    i32_from_u32,
    polynomial,
    shift_left,
    shift_right,
    square_root,
    subtract,
)
from dpfast.kernels.logarithm import POLYNOMIAL_F32
from dpfast.kernels.noise.fractions import fraction_of
from dpfast.kernels.noise.gaussian_f64 import draw_gaussian_f64
from dpfast.kernels.noise.laplace import UNDECIDED
from dpfast.kernels.parameters import at, part
from dpfast.kernels.scratch import array_on_stack

__all__ = ["COSINE", "LARGEST_SCALE_F32", "SINE", "draw_gaussian_f32"]

LARGEST_SCALE_F32 = 2.0**13

SINE = (0.7853981256484985, -0.08074513077735901, 0.002489370759576559, -3.5579418181441724e-05)
COSINE = (1.0, -0.3084245026111603, 0.015850437805056572, -0.00031918685999698937)

_SINE = tuple(np.float32(x) for x in SINE)
_COSINE = tuple(np.float32(x) for x in COSINE)
_POLY = tuple(np.float32(x) for x in POLYNOMIAL_F32)

_BLOCK, _GROUP = 512, 64
_ONE_32, _TWO_32 = np.uint32(1), np.uint32(2)
_ROOT_HALF, _EXPONENTS = np.uint32(0x3F3504F3), np.uint32(0xFF800000)
_THIRTY_ONE, _INFINITE = np.uint32(31 << 23), np.uint32(0x40000000)
_LN2_UNIT = np.float32(0.6931471805599453 * 2.0**-23)
_ONE, _HALF, _TWO = np.float32(1), np.float32(0.5), np.float32(2)
_HALVING = np.uint32(0x5F3759DF)
_CENTRE, _SIGN = np.uint32(0x80000002), np.uint32(0x80000000)
_UNIT = np.float32(2.0**-31)
_SHIFTER, _SHIFTER_BITS = np.float32(1.5 * 2**23), np.uint32(0x4B400000)
_ROUNDING, _WIDTH, _ABSOLUTE, _CONSTANT = (np.float32(x) for x in (15 * 2.0**-24, 1.05, 1.5 * 2.0**-24, 2.0**-24))
_NONE_8, _SOME_8 = np.uint8(0), np.uint8(1)
_NONE_64 = np.uint64(0)
_ZERO = np.float32(0)


LOGARITHM = (
    -0.5,
    0.3333390951156616,
    -0.2500133812427521,
    0.1996307522058487,
    -0.16577574610710144,
    0.14914722740650177,
    -0.14267519116401672,
    0.08700626343488693,
)
_LOG = tuple(np.float32(x) for x in LOGARITHM)


@kernel
def _roots_of_block(radius, roots, spreads):
    """sqrt(E) and the error bound."""
    for i in range(roots.size):
        bits = bits_of_f32(f32_from_i32(shift_right(radius[i], _ONE_32)))
        power = bit_and(subtract(bits, _ROOT_HALF), _EXPONENTS)
        f = f32_from_bits(subtract(bits, power)) - _ONE
        log_mantissa = fused_multiply_add(f * f, polynomial(f, _LOG), f)
        e = fused_multiply_add(f32_from_i32(subtract(_THIRTY_ONE, power)), _LN2_UNIT, -log_mantissa)
        width = f32_from_bits(subtract(_INFINITE, power))
        root = square_root(e)
        inverse_root = f32_from_bits(subtract(_HALVING, shift_right(bits_of_f32(e), _ONE_32)))
        spread = fused_multiply_add(root, _ROUNDING, fused_multiply_add(width, _WIDTH, _ABSOLUTE) * inverse_root)
        roots[i] = root
        spreads[i] = spread


@inlined
def _directions(word):
    """Return (sqrt 2 cos, sqrt 2 sin) of 2 pi V but for the sign, and the word whose first bit is that sign."""
    y = f32_from_i32(bit_xor(shift_left(word, _TWO_32), _CENTRE)) * _UNIT
    z = y * y
    sine = bits_of_f32(y * polynomial(z, _SINE))
    cosine = polynomial(z, _COSINE)
    turned = bit_and(shift_left(word, _ONE_32), _SIGN)
    one = f32_from_bits(bit_xor(bits_of_f32(cosine), turned)) - f32_from_bits(sine)
    other = cosine + f32_from_bits(bit_xor(sine, turned))
    return one, other


@inlined
def _rounded(v, limit):
    shifted = v + _SHIFTER
    decided = absolute(v - (shifted - _SHIFTER)) < limit
    return i32_from_u32(subtract(bits_of_f32(shifted), _SHIFTER_BITS)), decided


@by_types(inline=True)
def _f32_at(parameter, i):
    if isinstance(parameter, types.NoneType):
        return lambda parameter, i: _ZERO
    if isinstance(parameter, types.Array):
        return lambda parameter, i: parameter[i]
    return lambda parameter, i: parameter


@by_types(inline=True)
def _f32_or(parameter, i, other):
    if isinstance(parameter, types.NoneType):
        return lambda parameter, i, other: other
    return lambda parameter, i, other: parameter[i]


@kernel
def _values_of_block(
    roots, spreads, angle, scale, other_scale, fraction, other_fraction, noise, other_noise, flags
):
    for i in range(noise.size):
        word = angle[i]
        sign = bit_and(word, _SIGN)
        cosine, sine = _directions(word)
        b = _f32_at(scale, i)
        c = _f32_or(other_scale, i, b)
        root, spread = roots[i], spreads[i]
        one = f32_from_bits(bit_xor(bits_of_f32(b * root), sign))
        other = f32_from_bits(bit_xor(bits_of_f32(c * root), sign))
        n, n_decided = _rounded(
            fused_multiply_add(one, cosine, _f32_at(fraction, i)),
            _HALF - fused_multiply_add(b, spread, _CONSTANT),
        )
        m, m_decided = _rounded(
            fused_multiply_add(other, sine, _f32_at(other_fraction, i)),
            _HALF - fused_multiply_add(c, spread, _CONSTANT),
        )
        noise[i] = n
        other_noise[i] = m
        flags[i] = choose(n_decided & m_decided, _NONE_8, _SOME_8)


_floats = array_on_stack(types.float32, _BLOCK)


@kernel
def _draw_block_f32(radius, angle, scale, other_scale, fraction, other_fraction, noise, other_noise, flags):
    roots, spreads = _floats()[:noise.size], _floats()[:noise.size]
    _roots_of_block(radius, roots, spreads)
    _values_of_block(
        roots, spreads, angle, scale, other_scale, fraction, other_fraction, noise, other_noise, flags
    )


_flags, _rows = array_on_stack(types.uint8, _BLOCK), array_on_stack(types.int32, _BLOCK)
_group_u32, _group_u16 = array_on_stack(types.uint32, _GROUP), array_on_stack(types.uint16, _GROUP)
_group_f64, _group_i32 = array_on_stack(types.float64, _GROUP), array_on_stack(types.int32, _GROUP)


@kernel
def _narrowed(scale, narrow):
    for i in range(scale.size):
        narrow[i] = np.float32(scale[i])


@kernel
def _fractions(values, position, narrow):
    for i in range(values.size):
        narrow[i] = np.float32(fraction_of(values[i], at(position, i)))


@by_types(inline=False)
def _scales_of_block(scale, room):
    if isinstance(scale, types.Array):

        def of_rows(scale, room):
            _narrowed(scale, room)
            return room

        return of_rows
    return lambda scale, room: np.float32(scale)


@by_types(inline=False)
def _others_of_block(scale, room):
    if isinstance(scale, types.Array):

        def of_rows(scale, room):
            _narrowed(scale, room)
            return room

        return of_rows
    return lambda scale, room: None


@by_types(inline=False)
def _fractions_of_block(values, position, room):
    if isinstance(position, types.NoneType):
        return lambda values, position, room: None

    def of_values(values, position, room):
        _fractions(values, position, room)
        return room

    return of_values


@kernel
def _list_flagged(flags, rows):
    """List the rows whose flag is set, and return how many; flags behind the last row are not set."""
    words = flags.view(np.uint64)
    count = 0
    for word in range(words.size):
        if words[word] != _NONE_64:
            for row in range(8 * word, 8 * word + 8):
                rows[count] = row
                count += np.int64(flags[row])
    return count


@by_types(inline=False)
def _gathered(parameter, rows, room):
    """Return the parameter of some rows: itself if it is a number or None, a copy in ``room`` if an array."""
    if not isinstance(parameter, types.Array):
        return lambda parameter, rows, room: parameter

    def of_array(parameter, rows, room):
        for i in range(rows.size):
            room[i] = parameter[rows[i]]
        return room[: rows.size]

    return of_array


@by_types(inline=False)
def _gathered_fractions(values, position, rows, room):
    if isinstance(position, types.NoneType):
        return lambda values, position, rows, room: None

    def of_values(values, position, rows, room):
        for i in range(rows.size):
            room[i] = fraction_of(values[rows[i]], at(position, rows[i]))
        return room[: rows.size]

    return of_values


@by_types(inline=True)
def _unit_position(position):
    if isinstance(position, types.NoneType):
        return lambda position: None
    return lambda position: 1.0


@kernel
def _draw_again(
    rows, radius_high, radius_low, angle_high, angle_low, scale, other_scale, values, other_values, position,
    other_position, noise, other_noise,
):
    """Draw the pairs of some rows from the same bits in float64; return whether one stays undecided."""
    undecided = np.uint32(0)
    for start in range(0, rows.size, _GROUP):
        group = rows[start : start + _GROUP]
        n, m = _group_i32()[: group.size], _group_i32()[: group.size]
        undecided |= draw_gaussian_f64(
            _gathered(radius_high, group, _group_u32()), _gathered(radius_low, group, _group_u16()),
            _gathered(angle_high, group, _group_u32()), _gathered(angle_low, group, _group_u16()),
            _gathered(scale, group, _group_f64()), _gathered(other_scale, group, _group_f64()),
            _gathered_fractions(values, position, group, _group_f64()),
            _gathered_fractions(other_values, other_position, group, _group_f64()),
            _unit_position(position), _unit_position(position), n, m,
        )
        for i in range(group.size):
            noise[group[i]] = n[i]
            other_noise[group[i]] = m[i]
    return undecided


@kernel
def draw_gaussian_f32(
    radius_high, radius_low, angle_high, angle_low, scale, other_scale, values, other_values, position,
    other_position, noise, other_noise,
):
    undecided = np.uint32(0)
    flags, rows = _flags(), _rows()
    room, other_room, fractions, other_fractions = _floats(), _floats(), _floats(), _floats()
    for start in range(0, noise.size, _BLOCK):
        stop = min(start + _BLOCK, noise.size)
        flags[((stop - start) & -8) : ((stop - start + 7) & -8)] = _NONE_8
        size = stop - start
        n, m = noise[start:stop], other_noise[start:stop]
        b, c = part(scale, start, stop), part(other_scale, start, stop)
        x, y = part(values, start, stop), part(other_values, start, stop)
        p, q = part(position, start, stop), part(other_position, start, stop)
        r, v = radius_high[start:stop], angle_high[start:stop]
        _draw_block_f32(
            r, v, _scales_of_block(b, room[:size]), _others_of_block(c, other_room[:size]),
            _fractions_of_block(x, p, fractions[:size]), _fractions_of_block(y, q, other_fractions[:size]),
            n, m, flags[:size],
        )
        count = _list_flagged(flags[: (size + 7) & -8], rows)
        if count > 0:
            undecided |= _draw_again(
                rows[:count], r, part(radius_low, start, stop), v, part(angle_low, start, stop), b, c, x, y, p, q, n, m
            )
    return undecided
