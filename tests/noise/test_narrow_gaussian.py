"""The Gaussian kernels in float32: their written bounds against Arb, and their noise against float64's, bit by bit."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from flint import arb, ctx, fmpq, fmpz

from dpfast.kernels.intrinsics import f32_from_bits, fused_multiply_add, shift_right, subtract
from dpfast.kernels.noise import gaussian_f32
from dpfast.kernels.noise.gaussian import BLOCK_ROWS
from dpfast.kernels.noise.gaussian_f32 import LARGEST_SCALE, draw_numbers, draw_values, find_roots
from dpfast.kernels.noise.joining import join_grid
from dpfast.kernels.noise.laplace import UNDECIDED
from dpfast.kernels.noise.narrow_gaussian import WORK_WORDS, release_gaussian_on_grids, release_gaussian_on_ones
from dpfast.kernels.noise.preparation import prepare_grid
from dpfast.kernels.noise.sums import LIMIT_ROOM

from .drawing import all_made, draw_normal, read_only
from .oracles import pair_of
from .test_error_bounds import PRECISION, adversarial_words, largest_on, rational, series

U = 2.0**-24

compiled = numba.njit(error_model="numpy", fastmath=False)


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(PRECISION):
        yield


def test_sine_and_cosine_polynomials_rigorously():
    """S moves sin by at most 0.09u, and C cos by at most 0.56u, by balls over z = y**2 in [0, 1]."""
    quarter = arb.pi() / 4
    sine = [quarter * term for term in map(arb, series(fmpq(1), lambda n: fmpq(-1, 2 * n * (2 * n + 1)), 14))]
    cosine = [arb(term) for term in series(fmpq(1), lambda n: fmpq(-1, (2 * n - 1) * 2 * n), 14)]
    worst = []
    for coefficients, terms, weight in (
        (gaussian_f32.SINE, sine, lambda z: z.upper().sqrt()),
        (gaussian_f32.COSINE, cosine, lambda _: arb(1)),
    ):
        exact = [term * quarter ** (2 * n) for n, term in enumerate(terms)]
        given = [arb(fmpq(*float(c).as_integer_ratio())) for c in coefficients] + [arb(0)] * len(exact)
        rest = [a - b for a, b in zip(given, exact, strict=False)]
        worst.append(largest_on(rest, arb(0), arb(1), weight, 6000) / U)
    print(f"sine {worst[0]:.3f}u of 0.09u, cosine {worst[1]:.3f}u of 0.56u")
    assert worst[0] <= 0.09
    assert worst[1] <= 0.56


def test_coefficients_are_rounded():
    """What the rigorous tests look at is what the kernels have."""
    for name in ("SINE", "COSINE"):
        coefficients = getattr(gaussian_f32, name)
        assert coefficients == tuple(float(np.float32(c)) for c in coefficients), name


def roots_of(words):
    roots, spreads = np.empty((2, words.size), np.float32)
    find_roots(words, roots, spreads)
    return roots, spreads


@compiled
def inverse_roots(bits, out):
    for i in range(bits.size):
        out[i] = f32_from_bits(subtract(gaussian_f32._HALVING, shift_right(bits[i], np.uint32(1))))


def test_inverse_root_is_at_most_3_5_percent_too_small():
    """The integer approximation of 1 / sqrt(E) is periodic in two octaves: every float32 of one, others coarsely."""
    bits = np.arange(np.float32(1).view(np.uint32), np.float32(4).view(np.uint32), dtype=np.uint32)
    values = np.geomspace(2.0**-40, 40, 1_000_001).astype(np.float32)
    bits = np.concatenate([bits, values.view(np.uint32)])
    out = np.empty(bits.size, np.float32)
    inverse_roots(bits, out)
    ratio = out * np.sqrt(bits.view(np.float32).astype(np.float64))
    print(f"1/sqrt by halving: from {ratio.min():.5f} to {ratio.max():.5f}; at least 0.965")
    assert ratio.min() >= 0.9651


def radius_words(seed, count):
    """Return 32-bit words whose first 31 bits are random, at the edges or adversarial; 0 and its neighbours too."""
    words = adversarial_words(31, seed, count)
    last = np.random.default_rng(seed + 3).integers(0, 2, words.size)
    return np.concatenate([words * 2 + last, [0, 1, 2, 3]]).astype(np.uint32)


def test_roots(seed):
    """Soundness rules 2 and 4: sqrt(E) is off by at most 2.7u sqrt(E) + D / sqrt(E), at both ends of a cell."""
    words = radius_words(seed, 12_000)
    roots, spreads = roots_of(words)
    claimed = spreads.astype(np.float64) - (14 - 2.7 * np.sqrt(2)) * U * roots
    worst = 0.0
    for word, root, spread in zip(words.tolist(), roots.tolist(), claimed.tolist(), strict=True):
        if word < 2:
            assert np.isinf(spread)
            continue
        for r in (word >> 1, (word >> 1) + 1):
            exact = (-(arb(fmpz(r)) / arb(2) ** 31).log()).sqrt() if r < 2**31 else arb(0)
            worst = max(worst, float(abs(rational(root) - exact) * arb(2).sqrt() / rational(spread)))
    print(f"worst error of roots {worst:.4f} of what the bound has for them")
    assert worst <= 1


@compiled
def directions_of(words, cosines, sines):
    for i in range(words.size):
        cosines[i], sines[i] = gaussian_f32.directions(words[i])


def angle_words(seed, count):
    """Return 32-bit angles: random, and around the multiples of an eighth turn."""
    generator = np.random.default_rng(seed)
    eighths = (np.arange(9, dtype=np.int64) << 29)[:, None] + np.arange(-60, 60)
    near = (np.arange(4, dtype=np.int64) << 30)[:, None] + (1 << np.arange(30, dtype=np.int64))
    words = np.concatenate([eighths.ravel(), near.ravel(), -near.ravel(), generator.integers(0, 2**32, count)])
    return np.unique(words % 2**32).astype(np.uint32)


def test_directions(seed):
    """Soundness rule 4: sqrt(2) cos and sqrt(2) sin of 2 pi V are off by at most 5.3u, the bits not read included."""
    words = angle_words(seed, 12_000)
    cosines, sines = np.empty((2, words.size), np.float32)
    directions_of(words, cosines, sines)
    worst = 0.0
    for word, cosine, sine in zip(words.tolist(), cosines.tolist(), sines.tolist(), strict=True):
        sign = -1 if word >> 31 else 1
        for turn in (word, word + 1):
            angle = arb(fmpz(turn)) / arb(2) ** 31
            exact = angle.cos_pi() * arb(2).sqrt(), angle.sin_pi() * arb(2).sqrt()
            errors = abs(rational(sign * cosine) - exact[0]), abs(rational(sign * sine) - exact[1])
            worst = max(worst, *(float(error) / U for error in errors))
    print(f"worst error of directions {worst:.3f}u of 5.3u")
    assert worst <= 5.3


@compiled
def arguments_of(words, roots, spreads, scales, values, errors):
    for i in range(words.size):
        negative = words[i] >> np.uint32(31) != np.uint32(0)
        for side, direction in enumerate(gaussian_f32.directions(words[i])):
            scale = scales[side, i]
            values[side, i] = (-(scale * roots[i]) if negative else scale * roots[i]) * direction
            errors[side, i] = fused_multiply_add(scale, spreads[i], gaussian_f32._CONSTANT)


@pytest.mark.parametrize("one_scale", [None, 0.01, 10.0, 5120.3, LARGEST_SCALE])
def test_whole_bound(one_scale, seed):
    """Soundness rules 2 and 4: |v - exact| <= the bound, at the corners of the cell and for both values.

    `draw_values`, for floats, must give the same v, and a limit that leaves more room.
    """
    radius = radius_words(seed, 3000 if one_scale is None else 500)
    generator = np.random.default_rng(seed + 1)
    angle = generator.permutation(np.resize(angle_words(seed, 4000), radius.size))
    exact_scales = np.exp2(generator.uniform(-12, 13, (2, radius.size)))
    exact_scales[:, ::9] = LARGEST_SCALE
    if one_scale is not None:
        exact_scales[:] = one_scale
    scales = exact_scales.astype(np.float32)
    roots, spreads = roots_of(radius)
    values, errors = np.empty((2, 2, radius.size), np.float32)
    arguments_of(angle, roots, spreads, scales, values, errors)
    noise, marks = np.empty((2, radius.size), np.int32), np.empty(radius.size, np.uint8)
    given = (scales[0], scales[1]) if one_scale is None else (np.float32(one_scale), None)
    draw_numbers(angle, roots, spreads, *given, *noise, marks)
    with np.errstate(invalid="ignore"):
        sure = np.abs(values - np.rint(values)) < np.float32(0.5) - errors
    assert np.array_equal(marks == 0, sure.all(axis=0)), "the formulas above are no longer the kernel's"
    assert np.array_equal(noise[:, marks == 0], np.rint(values[:, marks == 0]))
    assert (marks[radius < 2] == 1).all()
    drawn, limits = np.empty((2, 2, radius.size), np.float32)
    draw_values(angle, roots, spreads, *given, *drawn, limits[0], None if one_scale else limits[1])
    assert np.array_equal(drawn, values, equal_nan=True)
    for limit, error in zip(limits[: 1 if one_scale else 2], errors, strict=False):
        assert (0.5 - limit.astype(float) >= error.astype(float) + LIMIT_ROOM / 2)[error < 0.5].all()
        assert not (limit > 0)[~(error < 0.5)].any()
    worst = 0.0
    for i in np.flatnonzero(np.isfinite(errors[0])).tolist():
        word, turn = int(radius[i]) >> 1, int(angle[i])
        for r in (word, word + 1):
            root = (-2 * (arb(fmpz(r)) / arb(2) ** 31).log()).sqrt() if r < 2**31 else arb(0)
            for v in (turn, turn + 1):
                at = arb(fmpz(v)) / arb(2) ** 31
                for side, direction in enumerate((at.cos_pi(), at.sin_pi())):
                    exact = rational(exact_scales[side, i]) * root * direction
                    worst = max(worst, float(abs(rational(values[side, i]) - exact) / rational(errors[side, i])))
    print(f"worst error {worst:.4f} of the bound")
    assert worst <= 1


def released(high, low, scale, fractions=None):
    """Return the noise of a chunk's words as the mechanisms draw it, float32 first, UNDECIDED where it is open."""
    rows = high.size if fractions is None else fractions.size
    work, undecided, low = np.empty(WORK_WORDS, np.uint64), np.empty(rows, np.int64), all_made(low)
    if fractions is None:
        # Added to zeros: what is compiled for a column of integers is what is tested.
        noise, limits = np.empty(rows, np.int64), (np.int64(-(2**63)), np.int64(2**63 - 1))
        zeros = read_only(np.zeros(rows, np.int64))
        count = release_gaussian_on_ones(high, low, scale, zeros, *limits, work, noise, undecided)
    else:
        noise = np.empty(rows, np.int32)
        count = release_gaussian_on_grids(high, low, scale, 1.0, None, fractions, 0.0, work, noise, undecided)
    noise[undecided[:count]] = UNDECIDED
    assert np.unique(undecided[:count]).size == count
    return noise


def by_float64(words, bits, scales, fractions):
    """Return the noise of a chunk's words (uint64) by the float64 kernel, each row apart from its pair's other one."""
    pairs = [pair_of(row, scales.size) for row in range(scales.size)]
    radius, angle = words[[pair[0] for pair in pairs]], words[[pair[1] for pair in pairs]]
    noise = np.empty((2, scales.size), np.int32)
    for begin in range(0, scales.size, 1 << 16):
        part = slice(begin, begin + (1 << 16))
        noise[:, part] = draw_normal(radius[part], angle[part], bits, scales[part], fractions[part])
    return np.where([pair[2] for pair in pairs], noise[1], noise[0])


@pytest.mark.parametrize("bits", [32, 48])
@pytest.mark.parametrize("kind", ["a scale", "a scale per row", "fractions"])
@pytest.mark.parametrize("scale", [2.0**-140, 0.3, 10.0, 128.0, 5000.0, LARGEST_SCALE])
def test_narrow_kernels_are_the_wide_one(scale, kind, bits, seed):
    """Sample by sample on the same bits: what float32 decides is what float64 does, which draws what is left open.

    200,001 rows each, and what stays undecided stays so in both.
    """
    generator = np.random.default_rng(seed)
    rows = 200_001
    words = generator.integers(0, 2**bits, rows + 1, dtype=np.uint64)
    words[:5] = [0, 1, 2, 2**bits - 1, 2**bits - 2]
    scales = scale * generator.uniform(0.5, 1, rows) if "row" in kind else np.full(rows, scale)
    fractions = generator.uniform(-0.5, 0.5, rows) if kind == "fractions" else np.zeros(rows)
    expected = by_float64(words, bits, scales, fractions)
    high = (words >> np.uint64(bits - 32)).astype(np.uint32)
    low = words.astype(np.uint16) if bits == 48 else None
    given = read_only(scales) if "row" in kind else scale
    if kind == "fractions":
        noise = released(high, low, given, fractions)
    else:
        noise = released(high, low, given)[:rows]
        # The kernel had a row more here, of which no scale is known: the last block is left out.
        expected, noise = expected[: -(rows % BLOCK_ROWS)], noise[: -(rows % BLOCK_ROWS)]
    assert np.array_equal(noise, expected)


@pytest.mark.parametrize("scale", [2.0**-140, 0.3, 10.0, 5000.0, 2.0**300])
def test_floats_with_a_scale_a_row_are_those_of_the_wide_kernel(scale, seed):
    """Their grids are a part of their scales, whatever these are, so that all of them have words of 48 bits."""
    rows, generator = 200_001, np.random.default_rng(seed)
    words = generator.integers(0, 2**48, rows + 1, dtype=np.uint64)
    words[:5] = [0, 1, 2, 2**48 - 1, 2**48 - 2]
    scales = read_only(scale * generator.uniform(0.5, 1, rows))
    values = read_only(scale * generator.uniform(-1000, 1000, rows))
    units, inverses, grids = np.empty((3, rows))
    prepare_grid(scales, inverses, grids, units)
    assert units.min() > 2**7
    noise = by_float64(words, 48, units, values * inverses)
    expected, floats = np.empty((2, rows))
    join_grid(values, inverses, grids, noise, 1e300, expected)
    work, undecided = np.empty(WORK_WORDS, np.uint64), np.empty(rows, np.int64)
    high, low = (words >> np.uint64(16)).astype(np.uint32), all_made(words.astype(np.uint16))
    count = release_gaussian_on_grids(high, low, scales, None, None, values, 1e300, work, floats, undecided)
    assert np.array_equal(np.sort(undecided[:count]), np.flatnonzero(noise == UNDECIDED))
    decided = noise != UNDECIDED
    assert np.array_equal(floats[decided], expected[decided])


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8, 9, *(BLOCK_ROWS + more for more in (-1, 0, 1, 3, BLOCK_ROWS + 5))])
def test_odd_lengths(rows, seed):
    """The last pair of an odd block has one row: the second value is not released, nor listed where it is open."""
    generator = np.random.default_rng(seed)
    high = generator.integers(0, 2**32, rows + rows % 2, dtype=np.uint32)
    last = pair_of(rows - 1, rows)[0]
    high[last] = 0
    fractions = generator.uniform(-0.5, 0.5, rows)
    noise = released(high, None, 5000.0, fractions)
    assert np.array_equal(noise, by_float64(high.astype(np.uint64), 32, np.full(rows, 5000.0), fractions))
    assert noise[last] == noise[-1] == UNDECIDED


@pytest.mark.long
def test_grids_of_the_caller_are_those_of_the_rows(seed):
    """One scale, position and grid a row, or scales alone: the same floats, of first and of second values.

    No mechanism gives grids a row, for which the kernels are compiled anew: ten seconds and more.
    """
    rows, generator = 1001, np.random.default_rng(seed)
    high = generator.integers(0, 2**32, rows + 1, dtype=np.uint32)
    low = all_made(generator.integers(0, 2**16, rows + 1, dtype=np.uint16))
    values, scales = read_only(generator.normal(size=rows)), read_only(2.0 ** generator.uniform(-5, 5, rows))
    units, positions, grids = np.empty((3, rows))
    prepare_grid(scales, positions, grids, units)
    found = []
    for given in ((scales, None, None), tuple(map(read_only, (units, positions, grids)))):
        floats, work, undecided = np.empty(rows), np.empty(WORK_WORDS, np.uint64), np.empty(rows, np.int64)
        assert release_gaussian_on_grids(high, low, *given, values, 1e300, work, floats, undecided) == 0
        found.append(floats)
    assert np.array_equal(*found)


def test_a_value_that_is_not_finite_stays_undecided():
    """NaN and infinities never pass the test of distance, in either precision."""
    high = np.random.default_rng(5).integers(0, 2**32, 64, dtype=np.uint32)
    values = np.zeros(64)
    values[[3, 40, 63]] = np.nan, np.inf, -np.inf
    noise = released(high, None, 10.0, values)
    assert np.flatnonzero(noise == UNDECIDED).tolist() == [3, 40, 63]


def test_nothing_of_the_noise_stays_in_the_work_memory():
    """The words, roots, noise and sums of the last block are wiped; marks, scales and places of open rows may stay."""
    high = np.random.default_rng(6).integers(0, 2**32, 4000, dtype=np.uint32)
    work, noise = np.zeros(WORK_WORDS, np.uint64), np.zeros(4000, np.int64)
    undecided = np.empty(4000, np.int64)
    limits = np.int64(-(2**63)), np.int64(2**63 - 1)
    release_gaussian_on_ones(high, None, 5000.0, read_only(noise * 0), *limits, work, noise, undecided)
    kept = work[work != 0]
    # Marks are bytes of 0 and 1, places are numbers of rows.
    assert ((kept < 4096) | (kept & ~np.uint64(0x0101010101010101) == 0)).all()


def test_a_root_that_is_too_small_is_found_out(seed):
    """The mutant: roots that are 2**-18 too small fail the same check."""
    words = radius_words(seed, 2000)
    roots, spreads = roots_of(words)
    claimed = spreads.astype(np.float64) - (14 - 2.7 * np.sqrt(2)) * U * roots
    wrong = roots.astype(np.float64) * (1 - 2.0**-18)
    exact = np.sqrt(-np.log(np.maximum(words >> np.uint32(1), 1) / 2.0**31))
    assert (np.abs(wrong - exact) * np.sqrt(2) > claimed)[np.isfinite(claimed)].any()
