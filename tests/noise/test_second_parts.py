"""Second parts of words that are made where they are needed: the bits that are made for all, and the same noise."""

from __future__ import annotations

import numpy as np
import pytest

import dpfast as dpf
from dpfast.columns import BLOCK_ROWS
from dpfast.kernels import keystream
from dpfast.kernels.compilation import kernel
from dpfast.kernels.noise import narrow_gaussian, narrow_laplace
from dpfast.kernels.noise.gaussian_f32 import LARGEST_SCALE
from dpfast.kernels.noise.second_parts import second_part
from dpfast.randomness import Keystream, Purpose, Words
from dpfast.testing import SeededRandom

from .drawing import all_made, read_only

pytestmark = pytest.mark.skipif(not keystream.can_fill(), reason="the words of this processor are OpenSSL's")

KEY = bytes(range(32))
ROWS = 20 * BLOCK_ROWS


@kernel
def parts_of(low, words, places, parts):
    for k in range(places.size):
        parts[k] = second_part(low, words, places[k])


def whole(chunk, words):
    """Return both parts of a chunk's words as OpenSSL or a kernel makes them for all."""
    made = np.empty(6 * words, np.uint8)
    Keystream(KEY).words(Purpose.NOISE).fill(chunk, made)
    return made[: 4 * words].view(np.uint32), made[4 * words :].view(np.uint16)


def blocks_of(chunk):
    words = Keystream(KEY).words(Purpose.NOISE)
    schedule, counter = words.single_blocks(chunk, 4 * BLOCK_ROWS)
    return schedule.copy(), counter  # who makes words wipes the round keys at its end


@pytest.mark.parametrize("words", [2, 4, 6, 1022, 65_538, BLOCK_ROWS])
@pytest.mark.parametrize("chunk", [0, 7, 2**31 - 1])
def test_a_part_made_alone_is_that_of_the_keystream(chunk, words, seed):
    """Soundness rule 2: the bits of a word are a fixed function of key and place, whoever reads them."""
    _, low = whole(chunk, words)
    places = np.unique(np.concatenate([[0, words - 1], np.random.default_rng(seed).integers(0, words, 200)]))
    schedule, counter = blocks_of(chunk)
    parts = np.empty(places.size, np.uint16)
    parts_of((np.empty(0, np.uint16), schedule, counter), words, places, parts)
    assert np.array_equal(parts, low[places])
    parts_of((low, np.empty(0, np.uint64), np.int64(0)), words, places, parts)
    assert np.array_equal(parts, low[places])


def test_few_bytes_and_far_chunks_are_made_for_all():
    """Then `Words.fill` may be OpenSSL's, and makes all bits of all words."""
    words = Keystream(KEY).words(Purpose.NOISE)
    assert words.single_blocks(0, 4096) is None
    assert words.single_blocks(2**31, 4 * BLOCK_ROWS) is None
    assert Keystream(KEY).words(Purpose.BOUNDING).single_blocks(0, 4 * BLOCK_ROWS) is None


def drawn(draw, low, values, dtype):
    released, undecided = np.zeros(values.size, dtype), np.empty(values.size, np.int64)
    count = draw(low, values, released, undecided)
    assert np.unique(undecided[:count]).size == count
    released[undecided[:count]] = 0
    return released, np.sort(undecided[:count])


def on_ones(high):
    limits, work = (np.int64(-(2**63)), np.int64(2**63 - 1)), np.empty(narrow_gaussian.WORK_WORDS, np.uint64)

    def draw(low, values, released, undecided):
        given = high, low, LARGEST_SCALE, values, *limits, work, released, undecided
        return narrow_gaussian.release_gaussian_on_ones(*given)

    return draw


def on_grids(module, release, high):
    work = np.empty(module.WORK_WORDS, np.uint64)

    def draw(low, values, released, undecided):
        return release(high, low, LARGEST_SCALE, 1.0, 1.0, values, 1e300, work, released, undecided)

    return draw


KINDS = {
    "Gaussian, integers": on_ones,
    "Gaussian, floats": lambda high: on_grids(narrow_gaussian, narrow_gaussian.release_gaussian_on_grids, high),
    "Laplace, floats": lambda high: on_grids(narrow_laplace, narrow_laplace.release_laplace_on_grids, high),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_noise_from_parts_made_where_needed(kind, seed):
    """Some 60 of 2.6 million samples need their second parts at this scale; the words of another chunk draw others.

    NaN stays undecided, whatever is read; and the row that shares a pair with it does not.
    """
    values = np.random.default_rng(seed).integers(-1000, 1000, ROWS)
    if "floats" in kind:
        values = values + np.random.default_rng(seed + 1).uniform(-0.5, 0.5, ROWS)
        values[5 :: BLOCK_ROWS // 2] = np.nan
    values = read_only(values)
    high, low = whole(3, ROWS)
    draw = KINDS[kind](high)
    expected, open_rows = drawn(draw, all_made(low), values, values.dtype)
    assert np.array_equal(open_rows, np.flatnonzero(~np.isfinite(values)))
    found, still = drawn(draw, (np.empty(0, np.uint16), *blocks_of(3)), values, values.dtype)
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.array_equal(still, open_rows)
    first, by_first = drawn(draw, None, values, values.dtype)
    needed = np.setdiff1d(by_first, open_rows)
    assert 15 < needed.size < 500
    decided = np.setdiff1d(np.arange(ROWS), by_first)
    assert np.array_equal(first[decided], expected[decided])
    # The mutant: the second parts of another chunk.
    wrong, _ = drawn(draw, (np.empty(0, np.uint16), *blocks_of(4)), values, values.dtype)
    assert not np.array_equal(wrong[needed], expected[needed])
    assert np.array_equal(wrong[decided], expected[decided])


@pytest.mark.parametrize("mechanism", [dpf.gaussian, dpf.laplace])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_a_column_has_the_same_noise_either_way(mechanism, dtype, seed, monkeypatch):
    """Of floats, and of integers with Gaussian noise, the first 32 bits of each word are made, 4 bytes a value."""
    values = np.random.default_rng(seed).normal(0, 1000, BLOCK_ROWS + 70_001).astype(dtype)
    scale, sizes, fill = 1999.5, [], Words.fill

    def counted(self, chunk, buffer):
        sizes.append(buffer.nbytes)
        fill(self, chunk, buffer)

    monkeypatch.setattr(Words, "fill", counted)
    by_need = mechanism(values, scale, random=SeededRandom(seed))
    long = 4 if dtype != "int64" or mechanism is dpf.gaussian else 6
    assert sorted(sizes) == [long * 70_002 if mechanism is dpf.gaussian else long * 70_001, long * BLOCK_ROWS]
    monkeypatch.setattr(Words, "single_blocks", lambda *_: None)
    for_all = mechanism(values, scale, random=SeededRandom(seed))
    assert sum(sizes[2:]) >= 6 * values.size
    assert by_need.tobytes() == for_all.tobytes()


def test_what_no_second_part_decides_is_refined_from_all_bits(seed, monkeypatch):
    """Rows that a kernel lists as undecided are finished from the words' 48 bits, which are made again."""
    values = np.random.default_rng(seed).normal(0, 1000, BLOCK_ROWS)
    expected = dpf.gaussian(values, 3.0, random=SeededRandom(seed))
    release = narrow_gaussian.release_gaussian_on_grids

    def with_three(*given):
        count = release(*given)
        given[-1][count : count + 3] = 5, 70_000, BLOCK_ROWS - 1
        given[-2][given[-1][count : count + 3]] = 0.0
        return count + 3

    monkeypatch.setattr("dpfast.mechanisms.noise.gaussian.release_gaussian_on_grids", with_three)
    assert np.array_equal(dpf.gaussian(values, 3.0, random=SeededRandom(seed)), expected)
