"""The written error bounds against Arb: elementary functions, polynomials, and the whole argument of the rounding.

Words are random, at the edges, and adversarial: next to the powers of two and to sqrt(1/2) times one, where the
reduction changes its exponent, and next to 2**m, where E is smallest. Each test prints the largest share of its
bound that it saw.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from flint import arb, ctx, fmpq, fmpz

from dpfast.kernels import logarithm
from dpfast.kernels.intrinsics import (
    absolute,
    bit_and,
    bits_of_f64,
    f64_from_bits,
    fused_multiply_add,
    maximum,
    shift_right,
    square_root,
    subtract,
)
from dpfast.kernels.logarithm import exponential_f32, exponential_f64
from dpfast.kernels.noise import gaussian, laplace, narrow_laplace, offsets
from dpfast.kernels.noise.laplace import UNDECIDED
from dpfast.kernels.noise.preparation import prepare_narrow
from dpfast.kernels.noise.sums import LIMIT_ROOM
from dpfast.mechanisms.noise.exact import discrete_offset

from .drawing import draw_normal, draw_wide, offsets_per_row

U64, U32 = 2.0**-53, 2.0**-24
PRECISION = 160

compiled = numba.njit(error_model="numpy", fastmath=False)


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(PRECISION):
        yield


def rational(x) -> arb:
    return arb(fmpq(*float(x).as_integer_ratio()))


def adversarial_words(bits: int, seed: int, count: int) -> np.ndarray:
    """Return words below 2**bits, as the module's docstring says."""
    generator = np.random.default_rng(seed)
    near = np.arange(-20, 21)
    powers = 2 ** np.arange(bits + 1, dtype=np.int64)
    roots = np.array([math.isqrt(2 ** (2 * k - 1)) for k in range(1, bits + 1)], np.int64)
    words = np.concatenate(
        [
            (powers[:, None] + near).ravel(),
            (roots[:, None] + near).ravel(),
            np.arange(1, 300),
            2**bits - np.arange(1, 300),
            generator.integers(1, 2**bits, count // 2),
            np.exp2(generator.uniform(0, bits, count // 2)).astype(np.int64),
        ]
    )
    return np.unique(words[(words > 0) & (words < 2**bits)])


@compiled
def exponentials_f64(words, bits_plus_one, e, width):
    for i in range(words.size):
        e[i], width[i] = exponential_f64(words[i], bits_plus_one)


@compiled
def exponentials_f32(words, e, width):
    for i in range(words.size):
        e[i], width[i] = exponential_f32(words[i])


def exact_exponential(word: int, bits: int) -> arb:
    return -(arb(fmpz(2 * int(word) + 1)) / arb(2) ** (bits + 1)).log()


@pytest.mark.parametrize("bits", [31, 32, 47, 48])
def test_exponential_in_float64(bits, seed):
    """Soundness rule 4: |E - exact| <= 5.1u E."""
    words = adversarial_words(bits, seed, 12_000)
    e, width = np.empty(words.size), np.empty(words.size)
    exponentials_f64(words.astype(np.uint64), bits + 1.0, e, width)
    worst = 0.0
    for word, value in zip(words.tolist(), e.tolist(), strict=True):
        exact = exact_exponential(word, bits)
        worst = max(worst, float(abs(rational(value) - exact) / (exact * U64)))
    print(f"worst error {worst:.2f}u E of 5.1u E")
    assert worst <= 5.1


def test_exponential_in_float32(seed):
    """Soundness rules 2 and 4: |E - exact| <= 1.1u E + 0.8u + u and <= 3.4u E + u; the cell is within 0.70715 width."""
    words = adversarial_words(31, seed, 30_000)
    e, width = np.empty(words.size, np.float32), np.empty(words.size, np.float32)
    exponentials_f32(words.astype(np.uint32), e, width)
    exact = -np.log(words / 2.0**31)
    near_one = words > 0.9 * 2**31
    exact[near_one] = -np.log1p((words - 2**31) / 2.0**31)[near_one]
    # NumPy's logarithms are good to a few u of float64: nothing beside u of float32.
    for name, claimed in (("1.1u E + 1.8u", 1.1 * exact + 1.8), ("3.4u E + u", 3.4 * exact + 1)):
        worst = np.max(np.abs(e.astype(np.float64) - exact) / (U32 * (claimed + U32)))
        print(f"worst error {worst:.3f} of {name}")
        assert worst <= 1
    cell = np.max(np.log1p(1 / words) / width)
    print(f"widest cell {cell:.5f} width of 0.70715 width")
    assert cell <= 0.70715


def test_nothing_is_known_of_the_first_cell_in_float32():
    e, width = np.empty(1, np.float32), np.empty(1, np.float32)
    exponentials_f32(np.zeros(1, np.uint32), e, width)
    assert np.isfinite(e[0])
    assert np.isinf(width[0])


@pytest.mark.parametrize("bits", [47, 48])
def test_width_covers_the_cell(bits, seed):
    """Soundness rule 2: every u in [r, r+1) * 2**-m has |ln u - ln((r + 1/2) * 2**-m)| <= 1.0607 width."""
    words = adversarial_words(bits, seed, 12_000)
    e, width = np.empty((2, words.size))
    exponentials_f64(words.astype(np.uint64), bits + 1.0, e, width)
    worst = 0.0
    for word, claimed in zip(words.tolist(), width.tolist(), strict=True):
        middle, low = arb(fmpz(2 * word + 1)), arb(fmpz(2 * word))
        # The lower end is the farther one: ln is concave.
        worst = max(worst, float((middle / low).log() / rational(claimed)))
    print(f"worst half cell {worst:.4f} width of 1.0607 width")
    assert worst <= 1.0607


def largest_on(coefficients, low, high, weight, pieces=2000):
    """Return a rigorous upper bound of |weight(x) * polynomial(x)| over [low, high].

    The interval is covered by balls; on each the polynomial is at most its value in the middle plus the radius
    times its derivative's bound.
    """
    derivative = [k * c for k, c in enumerate(coefficients)][1:]
    half = (arb(high) - low) / (2 * pieces)
    radius = (half * arb("1.0000001")).upper()
    largest = 0.0
    for piece in range(pieces):
        middle = (low + half * (2 * piece + 1)).mid()
        ball = arb(middle, radius)
        bound = abs(evaluate(coefficients, arb(middle))) + abs(evaluate(derivative, ball)) * radius
        largest = max(largest, float((bound * abs(weight(ball))).upper()))
    assert math.isfinite(largest)
    return largest


def series(first, ratio, terms):
    """Return coefficients first, first * ratio(1), first * ratio(1) * ratio(2), ... as exact fractions."""
    values = [first]
    for n in range(1, terms):
        values.append(values[-1] * ratio(n))
    return values


LN_TERMS = [fmpq(2, 2 * n + 3) for n in range(20)]
SINE_TERMS = series(fmpq(-1, 6), lambda n: fmpq(-1, (2 * n + 2) * (2 * n + 3)), 14)
COSINE_TERMS = series(fmpq(1, 24), lambda n: fmpq(-1, (2 * n + 3) * (2 * n + 4)), 14)
EXPONENTIAL_TERMS = series(fmpq(1), lambda n: fmpq(-1, n), 20)


def difference(coefficients, terms):
    """Return the polynomial minus the Taylor series (whose tail is below 2**-90), coefficient by coefficient.

    Taking the difference before evaluating keeps the balls narrow.
    """
    exact = [arb(fmpq(*float(c).as_integer_ratio())) for c in coefficients]
    rest = [arb(term) for term in terms]
    size = max(len(exact), len(rest))
    exact += [arb(0)] * (size - len(exact))
    rest += [arb(0)] * (size - len(rest))
    return [a - b for a, b in zip(exact, rest, strict=True)]


def evaluate(coefficients, z):
    total = arb(0)
    for coefficient in reversed(coefficients):
        total = total * z + coefficient
    return total


def test_logarithm_polynomials_rigorously():
    """ln M = 2s + s z P(z): P's own error moves ln M by at most z |dP| / 2 of |ln M| <= 0.1u, by balls over z."""
    upper = (3 - 2 * arb(2).sqrt()) ** 2 * (1 + arb(2) ** -20)
    rest = difference(logarithm.POLYNOMIAL_F64, LN_TERMS)
    worst = largest_on(rest, arb(0), upper, lambda z: z / 2) / U64
    print(f"logarithm's polynomial: {worst:.4f}u |ln M| of 0.1u")
    assert worst <= 0.1


def test_logarithm_polynomial_of_float32_rigorously():
    """ln M = f + f**2 Q(f): Q's own error moves ln M by less than 0.6u of itself, by balls over f."""
    terms = [fmpq((-1) ** (n + 1), n + 2) for n in range(120)]
    rest = difference(logarithm.LOGARITHM_F32, terms)
    low, high = (arb("0.5").sqrt() - 1) * (1 + arb(2) ** -20), (arb(2).sqrt() - 1) * (1 + arb(2) ** -20)
    # |ln(1 + f)| >= |f| (1 - f / 2) on both sides of 0.
    worst = largest_on(rest, low, high, lambda f: f / (1 - f / 2), 8000) / U32
    print(f"logarithm's polynomial: {worst:.3f}u of ln M, of 0.6u")
    assert worst <= 0.6
    assert tuple(float(np.float32(c)) for c in logarithm.LOGARITHM_F32) == logarithm.LOGARITHM_F32


def test_sine_and_cosine_polynomials_rigorously():
    """S and C move sin and cos by at most 0.15u each, by balls over w = phi**2 in [0, (pi/4)**2]."""
    upper = (arb.pi() / 4) ** 2 * (1 + arb(2) ** -20)
    sine, cosine = difference(gaussian.SINE, SINE_TERMS), difference(gaussian.COSINE, COSINE_TERMS)
    of_sine = largest_on(sine, arb(0), upper, lambda w: w * w.upper().sqrt()) / U64
    of_cosine = largest_on(cosine, arb(0), upper, lambda w: w * w) / U64
    print(f"sine {of_sine:.4f}u, cosine {of_cosine:.4f}u of 0.15u")
    assert max(of_sine, of_cosine) <= 0.15


def test_exponential_polynomial_rigorously():
    """The polynomial for exp(-r) is off by less than 2**-56, u/8, over [-ln(2)/2, ln(2)/2] and a little more."""
    half = arb(2).log() / 2 * (1 + arb(2) ** -20)
    rest = difference(offsets.EXPONENTIAL, EXPONENTIAL_TERMS)
    worst = largest_on(rest, -half, half, lambda r: arb(1))
    print(f"exp's polynomial: 2**{math.log2(worst):.2f} of 2**-56")
    assert worst < 2.0**-56


@compiled
def directions(turns, cosines, sines):
    for i in range(turns.size):
        cosines[i], sines[i] = gaussian._cosine_and_sine(turns[i])


def angle_words(seed, count):
    """Return 48-bit angles and half a cell, in 49 bits: random, and around the multiples of an eighth turn."""
    generator = np.random.default_rng(seed)
    eighths = (np.arange(9, dtype=np.int64) << 45)[:, None] + np.arange(-50, 50)
    near = (np.arange(4, dtype=np.int64) << 46)[:, None] + (1 << np.arange(46, dtype=np.int64))
    words = np.concatenate([eighths.ravel(), near.ravel(), -near.ravel(), generator.integers(0, 2**48, count)])
    return (np.unique(words % 2**48).astype(np.uint64) << np.uint64(1)) | np.uint64(1)


def test_cosine_and_sine(seed):
    """Soundness rule 4: cos and sin of 2 pi turns are off by at most 3u."""
    turns = angle_words(seed, 12_000)
    cosines, sines = np.empty(turns.size), np.empty(turns.size)
    directions(turns, cosines, sines)
    worst = 0.0
    for turn, cosine, sine in zip(turns.tolist(), cosines.tolist(), sines.tolist(), strict=True):
        angle = arb(fmpz(turn)) / arb(2) ** 48
        errors = abs(rational(cosine) - angle.cos_pi()), abs(rational(sine) - angle.sin_pi())
        worst = max(worst, *(float(error) / U64 for error in errors))
    print(f"worst error {worst:.3f}u of 3u")
    assert worst <= 3


@compiled
def inverse_roots(values, out):
    for i in range(values.size):
        halved = shift_right(bits_of_f64(values[i]), np.uint64(1))
        out[i] = f64_from_bits(subtract(gaussian._HALVING, halved))


def test_inverse_root_is_at_most_3_5_percent_too_small():
    """The integer approximation of 1 / sqrt(E) is periodic in two octaves: one period finely, the others coarsely."""
    values = np.concatenate([np.linspace(1, 4, 1_000_001), np.geomspace(2.0**-50, 40, 1_000_001)])
    out = np.empty(values.size)
    inverse_roots(values, out)
    ratio = out * np.sqrt(values)
    print(f"1/sqrt by halving: from {ratio.min():.5f} to {ratio.max():.5f}; at least 0.965")
    # Between two neighbours of the fine grid the ratio moves by less than 2e-6.
    assert ratio.min() >= 0.9651


def test_log_cosh_polynomial_rigorously():
    """The polynomial for ln(cosh(sqrt w)) / (2 w) over [0, 1/4] is off by less than 1.23e-16, or 3.1e-8."""
    # tanh(x) / x integrated: ln cosh x = sum of 2**(2n - 1) (2**(2n) - 1) B(2n) / (n (2n)!) x**(2n), n >= 1.
    terms = []
    for n in range(1, 41):
        factorial = fmpq(math.factorial(2 * n))
        terms.append(fmpq(2) ** (2 * n - 1) * (fmpq(4) ** n - 1) * fmpq.bernoulli(2 * n) / (n * factorial) / 2)
    for coefficients, most in ((offsets.LOG_COSH, 1.23e-16), (offsets.LOG_COSH_F32, 3.1e-8)):
        rest = difference(coefficients, terms)
        worst = largest_on(rest, arb(0), arb("0.25"), lambda w: arb(1), 10_000)
        print(f"ln cosh's polynomial: {worst:.3g} of {most}")
        assert worst < most


@compiled
def narrow_offsets_of(scales, values):
    for i in range(scales.size):
        values[i] = offsets.discrete_offset_from_one_f32(np.float32(scales[i]))


def test_narrow_discrete_offset(seed):
    """Soundness rule 4: from one on the offset in float32 is off by at most u, the scale's rounding included."""
    scales = np.exp2(np.random.default_rng(seed).uniform(0, 14, 12_000))
    scales = np.concatenate([scales, np.linspace(1, 1.1, 6000), [1.0, 2.0**14]])
    values = np.empty(scales.size, np.float32)
    narrow_offsets_of(scales, values)
    worst = max(
        float(abs(rational(value) - exact_offset(rational(scale))) / U32)
        for scale, value in zip(scales.tolist(), values.tolist(), strict=True)
    )
    print(f"worst error {worst:.3f}u of 0.67u, for which the bound has u")
    assert worst <= 0.67


@compiled
def offsets_of(scales, values, from_one):
    for i in range(scales.size):
        values[i] = offsets.discrete_offset_from_one(scales[i]) if from_one else offsets.discrete_offset(scales[i])


def exact_offset(b: arb) -> arb:
    return b * -((-1 / b).expm1() / 2).log1p() - arb("0.5")


@pytest.mark.parametrize("from_one", [False, True])
def test_discrete_offset(from_one, seed):
    """Soundness rule 4: c is off by at most 5u (and the offset by u / 4 more), or the offset by 1.2u from one on."""
    generator = np.random.default_rng(seed)
    scales = np.concatenate(
        [
            np.exp2(generator.uniform(-12, 25, 12_000)),
            1 / (math.log(2) * (np.arange(1, 60) + 0.5)),
            np.exp2(np.arange(-30.0, 26)),
            2.0 ** -np.array([100.0, 700.0, 960.0]),
            np.linspace(0.2, 3, 6000),
        ]
    )
    scales = scales[scales >= 1] if from_one else scales
    values = np.empty(scales.size)
    offsets_of(scales, values, from_one)
    worst, where = 0.0, 0.0
    for scale, value in zip(scales.tolist(), values.tolist(), strict=True):
        b = rational(scale)
        error = abs(rational(value) - exact_offset(b)) / U64
        share = float(error / arb("1.2") if from_one else (error - arb("0.25")) / (5 * b))
        if share > worst:
            worst, where = share, scale
    print(f"worst error {worst:.3f} of {'1.2u' if from_one else '5u scale + u/4'}, at scale {where}")
    assert worst <= 1


@compiled
def laplace_arguments_f32(high, scales, scale, offset, constant, value, error, noise, marks):
    """``scales`` is an array of the scales, or a number: the kernel has a form of its bound for either."""
    for i in range(high.size):
        e, width = exponential_f32(bit_and(high[i], laplace._REST_32))
        v = maximum(laplace._NOTHING_F32, fused_multiply_add(scale[i], e, offset[i]))
        shifted = v + laplace._SHIFTER_F32
        distance = absolute(v - (shifted - laplace._SHIFTER_F32))
        value[i], error[i] = v, laplace._error_f32(scales, scale[i], e, width, constant)
        size = np.int32(shifted - laplace._SHIFTER_F32)
        noise[i] = -size if high[i] >> np.uint32(31) else size
        marks[i] = 0 if distance < laplace._HALF_F32 - error[i] else 1


@compiled
def laplace_arguments_f64(words, scale, offset, fraction, value, error, noise):
    for i in range(words.size):
        e, width = exponential_f64(words[i], 48.0)
        v = maximum(laplace._NOTHING_F64, fused_multiply_add(scale[i], e, offset[i] + fraction[i]))
        shifted = v + laplace._SHIFTER_F64
        distance = absolute(v - (shifted - laplace._SHIFTER_F64))
        bound = fused_multiply_add(width, laplace._WIDTH_F64, laplace._ABSOLUTE_F64)
        bound = fused_multiply_add(e, laplace._RELATIVE_F64, bound)
        bound = fused_multiply_add(scale[i], bound, laplace._CONSTANT_F64)
        value[i], error[i] = v, bound
        noise[i] = np.int32(shifted - laplace._SHIFTER_F64) if 0.5 - distance > bound else UNDECIDED


@compiled
def gaussian_arguments(radius, angle, bits_plus_one, cell, scale, fraction, values, error, noise):
    for i in range(radius.size):
        e, width = exponential_f64(radius[i], bits_plus_one)
        root = square_root(e + e)
        inverse = f64_from_bits(subtract(gaussian._HALVING, shift_right(bits_of_f64(e), np.uint64(1))))
        spread = fused_multiply_add(root, gaussian._ROUNDING + 3.2 * cell, gaussian._WIDTH * (width * inverse))
        error[i] = fused_multiply_add(scale[i], spread, gaussian._CONSTANT)
        for side, direction in enumerate(gaussian._cosine_and_sine(angle[i])):
            values[side, i] = fused_multiply_add(scale[i], root * direction, fraction[i])
            nearest = np.rint(values[side, i])
            certain = 0.5 - abs(values[side, i] - nearest) > error[i]
            noise[side, i] = np.int32(nearest) if certain else UNDECIDED


def farthest(value: float, ends: list[arb]) -> arb:
    """Return how far a true argument can be, over a cell on which it is monotone; values are raised to 0."""
    v = rational(value)
    distances = [abs(v - end) if value > 0 else end - v for end in ends]
    return max(distances, key=float)


@pytest.mark.parametrize("one_scale", [False, True])
@pytest.mark.parametrize("kind", ["discrete", "discrete, offset per row", "continuous"])
def test_whole_bound_of_the_narrow_laplace_kernel(kind, one_scale, seed):
    """Soundness rule 4: |v - exact| <= the kernel's bound, at both ends of the cell, in float32, in both its forms."""
    words = adversarial_words(31, seed, 3000 if one_scale else 8000)
    generator = np.random.default_rng(seed + 1)
    if one_scale:
        scales = [0.01, 0.7, 1.0, 10.0, 5120.3, laplace.LARGEST_NARROW_SCALE]
        worst = max(worst_of_the_narrow_kernel(kind, words, np.full(words.size, b), b, generator) for b in scales)
    else:
        wide = np.exp2(generator.uniform(-8, 14, words.size))
        wide[::7] = laplace.LARGEST_NARROW_SCALE
        # Scales around one, where the offset's error counts most, beside words where E's counts least.
        wide[1::3] = generator.uniform(0.3, 3, wide[1::3].size)
        worst = worst_of_the_narrow_kernel(kind, words, wide, None, generator)
    print(f"worst error {worst:.4f} of the bound")
    assert worst <= 1


def worst_of_the_narrow_kernel(kind, words, wide, one, generator):
    """Return the largest share of its bound that the narrow kernel is off; ``one`` is the scale where there is one.

    Continuous noise is held to its bound before a value is added: without the room for that sum.
    """
    scale, offset = np.empty(words.size, np.float32), np.zeros(words.size, np.float32)
    scale[:] = wide
    if kind == "discrete":
        offset[:] = [discrete_offset(b) for b in wide.tolist()]
    elif kind == "discrete, offset per row":
        for rows in (wide >= 1, wide < 1):
            chosen, scales, offsets = wide[rows], scale[rows], offset[rows]
            chosen.setflags(write=False)
            assert not prepare_narrow(chosen, laplace.LARGEST_NARROW_SCALE, scales, offsets)
            scale[rows], offset[rows] = scales, offsets
    high = words.astype(np.uint32) | (generator.integers(0, 2, words.size).astype(np.uint32) << np.uint32(31))
    value, error = np.empty_like(scale), np.empty_like(scale)
    noise, drawn = np.empty((2, words.size), np.int32)
    marks, drawn_marks = np.empty((2, words.size), np.uint8)
    scales, offsets = (scale, offset) if one is None else (np.float32(one), offset[0])
    constant = np.float32(2.0**-149) if kind == "continuous" else laplace._CONSTANT_F32
    laplace_arguments_f32(high, scales, scale, offset, constant, value, error, noise, marks)
    if kind == "continuous":
        values, limits = np.empty_like(scale), np.empty_like(scale)
        narrow_laplace._draw_values_f32(high, scales, values, limits)
        assert np.array_equal(values, np.where(high >> np.uint32(31), -value, value)), "not the kernel's"
        assert (0.5 - limits.astype(float) >= error.astype(float) + LIMIT_ROOM / 2)[error < 0.5].all()
        assert not (limits > 0)[~(error < 0.5)].any()
    elif one is None or kind != "discrete, offset per row":
        narrow_laplace._draw_f32(high, scales, offsets, drawn, drawn_marks)
        same = np.array_equal(marks, drawn_marks) and np.array_equal(noise, drawn)
        assert same, "the formulas above are no longer the kernel's"
    worst = 0.0
    for i, word in enumerate(words.tolist()):
        b = rational(wide[i])
        shift = arb(0) if kind == "continuous" else exact_offset(b)
        ends = [b * -(arb(fmpz(r)) / arb(2) ** 31).log() + shift for r in (word, word + 1)]
        worst = max(worst, float(farthest(value[i], ends) / rational(error[i])))
    return worst


@pytest.mark.parametrize("kind", ["discrete", "discrete, offset per row", "continuous"])
def test_whole_bound_of_the_wide_laplace_kernel(kind, seed):
    """Soundness rule 4: |v - exact| <= the kernel's bound, at both ends of the cell, in float64."""
    words = adversarial_words(47, seed, 8000)
    generator = np.random.default_rng(seed + 1)
    scale = np.exp2(generator.uniform(-8, 25, words.size))
    scale[::7] = laplace.LARGEST_SCALE_F64
    fraction, offset = np.zeros(words.size), np.zeros(words.size)
    if kind == "discrete":
        offset = np.array([discrete_offset(b) for b in scale.tolist()])
    elif kind == "discrete, offset per row":
        # Scales around one, where the offset's error counts most, beside words where E's counts least.
        scale[1::2] = generator.uniform(0.3, 3, scale[1::2].size)
        offset = offsets_per_row(scale)
    else:
        fraction = generator.uniform(-0.5, 0.5, words.size)
        fraction[::5] = 0.5
    value, error, noise = np.empty_like(scale), np.empty_like(scale), np.empty(words.size, np.int32)
    laplace_arguments_f64(words.astype(np.uint64), scale, offset, fraction, value, error, noise)
    drawn = draw_wide(words.astype(np.uint64), scale, offset, fraction)
    assert np.array_equal(noise, drawn), "the formulas above are no longer the kernel's"
    worst = 0.0
    for i, word in enumerate(words.tolist()):
        b = rational(scale[i])
        shift = rational(fraction[i]) if kind == "continuous" else exact_offset(b)
        ends = [b * -(arb(fmpz(r)) / arb(2) ** 47).log() + shift for r in (word, word + 1)]
        worst = max(worst, float(farthest(value[i], ends) / rational(error[i])))
    print(f"worst error {worst:.4f} of the bound")
    assert worst <= 1


@pytest.mark.parametrize("bits", [32, 48])
def test_whole_bound_of_the_gaussian_kernel(bits, seed):
    """Soundness rule 4: |v - exact| <= the kernel's bound, at the corners of the cell and of both values."""
    radius = adversarial_words(bits, seed, 6000)
    generator = np.random.default_rng(seed + 1)
    turns = generator.permutation(np.resize(angle_words(seed, 6000) >> np.uint64(1), radius.size)) >> np.uint64(
        48 - bits
    )
    aligned = (turns << np.uint64(49 - bits)) | np.uint64(1 << (48 - bits))
    scale = np.exp2(generator.uniform(-8, 25 if bits == 48 else 7, radius.size))
    fraction = generator.uniform(-0.5, 0.5, radius.size)
    values, error = np.empty((2, radius.size)), np.empty(radius.size)
    noise = np.empty((2, radius.size), np.int32)
    gaussian_arguments(radius.astype(np.uint64), aligned, bits + 1.0, 2.0**-bits, scale, fraction, values, error, noise)
    drawn = draw_normal(radius.astype(np.uint64), turns, bits, scale, fraction)
    assert np.array_equal(noise, drawn), "the formulas above are no longer the kernel's"
    worst = 0.0
    for i, word in enumerate(radius.tolist()):
        b, f = rational(scale[i]), rational(fraction[i])
        claimed = rational(error[i])
        for r in (word, word + 1):
            root = (-2 * (arb(fmpz(r)) / arb(2) ** bits).log()).sqrt() if r < 2**bits else arb(0)
            for turn in (int(turns[i]), int(turns[i]) + 1):
                angle = arb(fmpz(turn)) / arb(2) ** (bits - 1)
                for side, direction in enumerate((angle.cos_pi(), angle.sin_pi())):
                    off = abs(rational(values[side, i]) - (b * root * direction + f))
                    worst = max(worst, float(off / claimed))
    print(f"worst error {worst:.4f} of the bound")
    assert worst <= 1
