"""The fast path against the exact one on the same bits, and the exact one against mpmath."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpfast.columns import BLOCK_ROWS, borrow
from dpfast.kernels.noise.laplace import UNDECIDED
from dpfast.mechanisms.noise import additive
from dpfast.mechanisms.noise.exact import discrete_offset, exact_gaussian, exact_laplace
from dpfast.mechanisms.noise.gaussian import gaussian_noise
from dpfast.mechanisms.noise.laplace import laplace_noise
from dpfast.mechanisms.noise.lattice import grid_exponent
from dpfast.testing import SeededRandom

from .drawing import draw_narrow, draw_normal, draw_wide
from .oracles import (
    FixedKey,
    Tape,
    continued,
    discrete_threshold,
    gaussian_sample,
    laplace_sample,
    noise_bytes,
    pair_of,
)

NOISES = {"laplace": laplace_noise, "gaussian": gaussian_noise}
INTEGER_SCALES = [0.01, 0.7, 1.0, 3.3, 128.0, 128.5, 1024.0, 5000.0, 2.0**24, 2.0**25, 1e9, 2.0**60]
FLOAT_SCALES = [1e-280, 1e-5, 0.1, 1.0, 777.7, 1e30, 1e280]


def values_of(dtype, rows, scale, seed):
    """Return values of all sizes: a few times the scale, and the type's extremes."""
    generator = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        with np.errstate(over="ignore", under="ignore"):
            values = (generator.standard_normal(rows) * 3 * scale).astype(dtype)
        values[~np.isfinite(values)] = 0
        special = [0.0, -0.0, 5e-324, -5e-324, np.finfo(dtype).max, np.finfo(dtype).min, 0.1, 1.0, scale, 1e-300]
        with np.errstate(over="ignore", under="ignore"):
            special = np.array(special).astype(dtype)
        special[~np.isfinite(special)] = 1
    else:
        limits = np.iinfo(dtype)
        values = generator.integers(limits.min, limits.max, rows, dtype=dtype, endpoint=True)
        special = np.array([0, 1, limits.min, limits.max, limits.min + 1, limits.max - 1], dtype)
    values[: special.size] = special[: values.size]
    return values


def both_paths(noise, values, scale, seed):
    fast = NOISES[noise](borrow(values), scale, SeededRandom(seed))
    exact = NOISES[noise](borrow(values), scale, SeededRandom(seed), refine_all=True)
    return fast, exact


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32"])
@pytest.mark.parametrize("scale", INTEGER_SCALES)
def test_fast_path_is_the_exact_path_on_integers(noise, dtype, scale, seed):
    values = values_of(dtype, 601, scale, seed)
    fast, exact = both_paths(noise, values, scale, seed)
    assert fast.dtype == exact.dtype == (np.int64 if dtype == "uint32" else np.dtype(dtype))
    assert np.array_equal(fast, exact)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("scale", FLOAT_SCALES)
def test_fast_path_is_the_exact_path_on_floats(noise, dtype, scale, seed):
    values = values_of(dtype, 801, scale, seed)
    fast, exact = both_paths(noise, values, scale, seed)
    assert fast.tobytes() == exact.tobytes()


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("largest", [200.0, 1000.0, 2.0**24, 2.0**60])
def test_fast_path_is_the_exact_path_with_a_scale_per_row_of_integers(noise, largest, seed):
    rows = 1501
    scale = np.exp2(np.random.default_rng(seed).uniform(-7, np.log2(largest), rows))
    scale[0] = largest
    values = values_of("int64", rows, 1.0, seed)
    fast, exact = both_paths(noise, values, scale, seed)
    assert np.array_equal(fast, exact)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_fast_path_is_the_exact_path_with_a_scale_per_row_of_floats(noise, dtype, seed):
    rows = 2001
    scale = np.exp2(np.random.default_rng(seed).uniform(-950, 950, rows))
    values = values_of(dtype, rows, 1.0, seed)
    values[100:] = (np.random.default_rng(seed).standard_normal(rows - 100) * 1.0).astype(dtype)
    fast, exact = both_paths(noise, values, scale, seed)
    assert fast.tobytes() == exact.tobytes()


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8, 31, 33, 1023, 1025])
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_fast_path_is_the_exact_path_at_odd_lengths(noise, rows, dtype, seed):
    fast, exact = both_paths(noise, np.arange(rows).astype(dtype), 5.5, seed)
    assert np.array_equal(fast, exact)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("dtype", "scale"), [("int64", 40.0), ("int64", 4e4), ("float64", 4.0)])
@pytest.mark.parametrize("rows", [4301, 3001])
def test_fast_path_is_the_exact_path_over_several_chunks(noise, dtype, scale, rows, seed, monkeypatch):
    """Chunks of 1,000 rows, so that the exact path takes seconds; an odd one at the end, or a single row."""
    monkeypatch.setattr(additive, "BLOCK_ROWS", 1000)
    fast, exact = both_paths(noise, np.arange(rows).astype(dtype), scale, seed)
    assert np.array_equal(fast, exact)


@pytest.mark.long
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("dtype", "scale"), [("int64", 3.0), ("int64", 1e6), ("float64", 4.0)])
def test_fast_path_is_the_exact_path_on_a_million_rows(noise, dtype, scale, seed):
    """A million tapes of each kernel, minutes each."""
    fast, exact = both_paths(noise, np.zeros(1_000_001, dtype), scale, seed)
    assert np.array_equal(fast, exact)


def test_a_kernel_with_huge_bounds_gives_the_same_release(seed):
    """Refining every sample does not move the distribution: it does not move a single sample."""
    for noise, values, scale in (("laplace", np.zeros(500, np.int64), 2.0), ("gaussian", np.zeros(501), 2.0)):
        fast, exact = both_paths(noise, values, scale, seed)
        assert np.array_equal(fast, exact)


TAPES = 1 << 20


def long_double_laplace(words, bits, scale, discrete):
    """Return v and an error bound from NumPy's long double (64 bits of mantissa), and the cell's half width in v."""
    r = (words & np.uint64(2**bits - 1)).astype(np.longdouble)
    unit = np.longdouble(2) ** bits
    e = -np.log((r + np.longdouble(0.5)) / unit)
    b = np.longdouble(scale)
    v = b * (e + (-np.log1p(np.expm1(-1 / b) / 2))) if discrete else b * e + np.longdouble(0.5)
    return v, b * (e + 1) * 2.0**-58 + b / np.maximum(r, 1)


@pytest.mark.parametrize(
    ("bits", "scale"), [(31, 0.3), (31, 1.0), (31, 77.7), (31, 256.0), (47, 1.0), (47, 3e4), (47, 2.0**25)]
)
def test_a_million_words_against_long_doubles(bits, scale, seed):
    """2**20 words a kernel and scale against NumPy's long double, which shares no line with the kernels."""
    if np.finfo(np.longdouble).nmant < 63:
        pytest.skip("no long double wider than double here")
    words = np.random.default_rng(seed).integers(0, 2 ** (bits + 1), TAPES, dtype=np.uint64)
    noise = (
        draw_narrow(words.astype(np.uint32), scale) if bits == 31 else draw_wide(words, scale, discrete_offset(scale))
    )
    v, doubt = long_double_laplace(words, bits, scale, True)
    decided = noise != UNDECIDED
    low, high = np.floor(v - doubt), np.floor(v + doubt)
    sure = decided & (low == high)
    magnitude = np.where(words >> np.uint64(bits), -noise, noise)
    assert np.array_equal(magnitude[sure], low[sure].astype(np.int64))
    # A decided sample can be unsure to the oracle only where doubt is wider than the kernel's: nearly never.
    assert (magnitude[decided] >= low[decided]).all()
    assert (magnitude[decided] <= high[decided]).all()
    assert sure.mean() > 0.98


@pytest.mark.parametrize(("bits", "scale"), [(32, 0.3), (32, 128.0), (48, 10.0), (48, 1e6), (48, 2.0**25)])
def test_a_million_pairs_against_long_doubles(bits, scale, seed):
    """2**19 pairs a word length and scale: both values against NumPy's long double."""
    if np.finfo(np.longdouble).nmant < 63:
        pytest.skip("no long double wider than double here")
    generator = np.random.default_rng(seed)
    radius, angle = generator.integers(0, 2**bits, (2, TAPES // 2), dtype=np.uint64)
    fraction = generator.uniform(-0.5, 0.5, radius.size)
    noise = draw_normal(radius, angle, bits, scale, fraction)
    unit, half, pi = np.longdouble(2) ** bits, np.longdouble(0.5), np.arctan2(np.longdouble(0), np.longdouble(-1))
    u, turn = radius.astype(np.longdouble), angle.astype(np.longdouble)
    root = np.sqrt(-2 * np.log((u + half) / unit))
    phase = 2 * pi * ((turn + half) / unit)
    doubt = scale * (root * 2.0**-56 + root * 4 / unit + 3 / (np.maximum(u, 1) * root))
    for n, direction in zip(noise, (np.cos(phase), np.sin(phase)), strict=True):
        v = np.longdouble(scale) * root * direction + fraction + half
        low, high = np.floor(v - doubt), np.floor(v + doubt)
        decided = n != UNDECIDED
        assert (n[decided] >= low[decided]).all()
        assert (n[decided] <= high[decided]).all()
        assert (decided & (low == high)).mean() > 0.98


EDGE_WORDS_31 = np.array(
    [0, 1, 2, 3, 2**31 - 1, 2**31 - 2, 2**31, 2**31 + 1, 2**32 - 1, 2**32 - 2, 2**30, 3 << 30], np.uint64
)


@pytest.mark.parametrize("scale", [0.01, 1.0, 256.0])
def test_edge_words_of_the_narrow_kernel(scale):
    """Soundness rule 2: all zeros, all ones, the sign alone; r = 0 has no smallest U and must stay undecided."""
    noise = draw_narrow(EDGE_WORDS_31.astype(np.uint32), scale)
    for word, n in zip(EDGE_WORDS_31.tolist(), noise.tolist(), strict=True):
        r, negative = word & (2**31 - 1), bool(word >> 31)
        if r == 0:
            assert n == UNDECIDED
        elif n != UNDECIDED:
            for rest in (1, 2**300 // 2, 2**300 - 1):
                tape = Tape((r << 300) | rest, 331)
                assert n == laplace_sample(negative, tape.leading, Fraction(scale), Fraction(0), True)


@pytest.mark.parametrize("fraction", [0.0, 0.5, -0.5, 0.499, -0.3])
@pytest.mark.parametrize("scale", [1.0, 1500.0, 2.0**25])
def test_edge_words_of_the_wide_kernel(scale, fraction):
    """Soundness rule 2, at 48 bits and with fractions of either sign."""
    words = (EDGE_WORDS_31 << np.uint64(16)) | np.uint64(0xFFFF)
    words = np.concatenate(
        [
            EDGE_WORDS_31 << np.uint64(16),
            words,
            np.arange(5, dtype=np.uint64),
            np.uint64(2**48) - np.arange(1, 5, dtype=np.uint64),
        ]
    )
    noise = draw_wide(words, scale, 0.0, np.full(words.size, fraction))
    for word, n in zip(words.tolist(), noise.tolist(), strict=True):
        r, negative = word & (2**47 - 1), bool(word >> 47)
        if r == 0:
            assert n == UNDECIDED
        elif n != UNDECIDED:
            for rest in (1, 2**300 // 2, 2**300 - 1):
                tape = Tape((r << 300) | rest, 347)
                assert n == laplace_sample(negative, tape.leading, Fraction(scale), Fraction(fraction), False)


@pytest.mark.parametrize("bits", [32, 48])
def test_edge_words_of_the_gaussian_kernel(bits):
    """Soundness rule 2: radii and angles of zeros, ones and single bits, every pair of them."""
    ends = [0, 1, 2, 2**bits - 1, 2**bits - 2, 2 ** (bits - 1), 2 ** (bits - 2), 2 ** (bits - 3), 2 ** (bits - 1) - 1]
    radius, angle = (part.ravel().astype(np.uint64) for part in np.meshgrid(ends, ends))
    scale = 100.0
    noise = draw_normal(radius, angle, bits, scale)
    assert (noise[:, radius == 0] == UNDECIDED).all()
    for (u, v), pair in zip(zip(radius.tolist(), angle.tolist(), strict=True), noise.T.tolist(), strict=True):
        for sine, n in enumerate(pair):
            if n == UNDECIDED:
                continue
            for rest in (1, 2**300 - 1):
                tapes = [Tape((word << 300) | rest, bits + 300).leading for word in (u, v)]
                assert n == gaussian_sample(*tapes, bool(sine), Fraction(scale), Fraction(0))


def random_tapes(generator, count):
    return [int.from_bytes(generator.bytes(64), "big") for _ in range(count)]


@pytest.mark.parametrize("discrete", [True, False])
def test_exact_laplace_against_mpmath(discrete, seed):
    """The second oracle: 1,500 samples of each kind, same bits, scales from 2**-8 to 2**25."""
    generator = np.random.default_rng(seed)
    for index, value in enumerate(random_tapes(generator, 1500)):
        scale = Fraction(2.0 ** generator.uniform(-8, 25)) if index % 3 else Fraction(index + 1, 7)
        fraction = Fraction(0) if discrete else Fraction(generator.uniform(-0.5, 0.5))
        negative = bool(index % 2)
        given = exact_laplace(negative, Tape(value, 512, 31), scale, fraction, discrete)
        assert given == laplace_sample(negative, Tape(value, 512).leading, scale, fraction, discrete)


def test_exact_gaussian_against_mpmath(seed):
    """The second oracle: 1,500 samples, same bits, both values of a pair."""
    generator = np.random.default_rng(seed)
    for index, (u, v) in enumerate(zip(random_tapes(generator, 1500), random_tapes(generator, 1500), strict=True)):
        scale, fraction = Fraction(2.0 ** generator.uniform(-8, 25)), Fraction(generator.uniform(-0.5, 0.5))
        sine = bool(index % 2)
        given = exact_gaussian(Tape(u, 512, 32), Tape(v, 512, 48), sine, scale, fraction)
        assert given == gaussian_sample(Tape(u, 512).leading, Tape(v, 512).leading, sine, scale, fraction)


@pytest.mark.parametrize("bits", [40, 95, 300, 1000])
@pytest.mark.parametrize(("scale", "k"), [(Fraction(1), 1), (Fraction(7, 2), 5), (Fraction(2**25), 10**7)])
def test_the_exact_path_reads_on_as_long_as_bits_leave_it_open(bits, scale, k):
    """Soundness rule 2, no cap: next to the threshold of |K| >= k to so many bits, one bit more decides."""
    threshold = discrete_threshold(scale, bits, k)
    for word, expected in ((threshold + 1, k - 1), (threshold - 1, k)):
        tape = Tape(word << 512, bits + 512, 31)
        assert exact_laplace(True, tape, scale, Fraction(0), True) == -expected


ROUTES = [
    ("laplace", "int64", 2.0),
    ("laplace", "int64", 5e5),
    ("laplace", "int64", 2.0**40),
    ("laplace", "float64", 0.7),
    ("gaussian", "int64", 2.0),
    ("gaussian", "int64", 5e5),
    ("gaussian", "int64", 2.0**40),
    ("gaussian", "float64", 0.7),
]


@pytest.mark.parametrize(("noise", "dtype", "scale"), ROUTES)
def test_whole_route_against_the_documented_layout(noise, dtype, scale):
    """Two chunks, the second of odd length: rows of both from AES block by block, the words as documented, and mpmath.

    This ties which bits serve which row: a word used twice or a continuation of another word would show.
    """
    rows = BLOCK_ROWS + 7233
    key = bytes(range(100, 132))
    generator = np.random.default_rng(1)
    values = (generator.integers(-1000, 1000, rows) * (1 if dtype == "int64" else 0.37)).astype(dtype)
    released = NOISES[noise](borrow(values), scale, FixedKey(key))
    if dtype == "float64":
        grid = Fraction(2) ** grid_exponent(scale)
    else:
        grid = Fraction(max(1, 2 ** (int(np.log2(scale)) - 24)))
    for chunk, size in ((0, BLOCK_ROWS), (1, rows - BLOCK_ROWS)):
        pairs = (size + 1) // 2
        narrow = dtype == "int64" and scale <= 128
        words = size if noise == "laplace" else 2 * pairs
        stream = noise_bytes(key, chunk, (4 if narrow else 6) * words)
        high = np.frombuffer(stream[: 4 * words], "<u4")
        low = None if narrow else np.frombuffer(stream[4 * words :], "<u2")
        start = chunk * BLOCK_ROWS

        def bits(word, sign, start=start, high=high, low=low):
            read, known = (int(high[word]), 32) if low is None else ((int(high[word]) << 16) | int(low[word]), 48)
            return continued(key, start + word, read & (2 ** (known - sign) - 1), known - sign)

        for row in (0, 1, 2, 511, 512, 777, 1024, pairs - 1, pairs, size - 66, size - 65, size - 2, size - 1):
            value = values[start + row]
            position = Fraction(value.item()) / grid
            nearest = round(position) if dtype == "float64" else (position + Fraction(1, 2)).__floor__()
            fraction = position - nearest
            if noise == "laplace":
                discrete = dtype == "int64" and scale < 2**25
                negative = bool(int(high[row]) >> 31)
                n = laplace_sample(negative, bits(row, 1), Fraction(scale) / grid, fraction, discrete)
            else:
                *pair, is_second = pair_of(row, size)
                tapes = [bits(word, 0) for word in pair]
                n = gaussian_sample(*tapes, is_second, Fraction(scale) / grid, fraction)
            assert Fraction(released[start + row].item()) == (nearest + n) * grid
