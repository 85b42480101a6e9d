"""The keystream: known answers, no word twice, a fresh key for every call."""

from __future__ import annotations

import hashlib
import importlib
import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import dpfast as dpf
import dpfast.randomness
from dpfast import randomness
from dpfast.cli.doctor.known_answers import KNOWN_ANSWERS
from dpfast.columns import BLOCK_ROWS
from dpfast.errors import LedgerError, ParameterError
from dpfast.kernels import keystream
from dpfast.ledger import Ledger
from dpfast.randomness import DRAW_VERSION, Keystream, Purpose, SystemRandom, Tail, Words, process_mark
from dpfast.testing import SeededRandom

from .oracles import FixedKey, aes_blocks, continued, noise_bytes

# The package's own names hide these modules.
laplace_module = importlib.import_module("dpfast.mechanisms.noise.laplace")
gaussian_module = importlib.import_module("dpfast.mechanisms.noise.gaussian")

# NIST SP 800-38A, F.5.5: CTR-AES256.Encrypt.
NIST_KEY = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
NIST_COUNTER = int("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", 16)
NIST_PLAIN = bytes.fromhex(
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
)
NIST_CIPHER = bytes.fromhex(
    "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
    "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
)
NIST_STREAM = bytes(a ^ b for a, b in zip(NIST_PLAIN, NIST_CIPHER, strict=True))
# FIPS 197, C.3: one block of AES-256.
FIPS_KEY = bytes(range(32))
FIPS_PLAIN = int("00112233445566778899aabbccddeeff", 16)
FIPS_CIPHER = bytes.fromhex("8ea2b7ca516745bfeafc49904b496089")


def test_nist_vector_through_cryptography():
    encryptor = Cipher(algorithms.AES(NIST_KEY), modes.CTR(NIST_COUNTER.to_bytes(16, "big"))).encryptor()
    assert encryptor.update(NIST_PLAIN) == NIST_CIPHER


def test_nist_and_fips_vectors_through_the_oracle():
    assert aes_blocks(NIST_KEY, [NIST_COUNTER + i for i in range(4)]) == NIST_STREAM
    assert aes_blocks(FIPS_KEY, [FIPS_PLAIN]) == FIPS_CIPHER


def test_nist_vector_through_words():
    """Words.fill gives the NIST keystream where its counter starts at the NIST counter."""
    words = Words(NIST_KEY, Purpose.NOISE)
    words._purpose = NIST_COUNTER
    buffer = np.empty(64, np.uint8)
    words.fill(0, buffer)
    assert buffer.tobytes() == NIST_STREAM


@pytest.mark.skipif(not keystream.can_fill(), reason="kernels are not compiled for vectors of AES blocks")
def test_round_keys_are_gone_with_their_words():
    """What the compiled cipher kept of the key: the first two round keys are the key itself."""
    words = Keystream(NIST_KEY).words(Purpose.NOISE)
    words.fill(0, np.empty(4 * BLOCK_ROWS, np.uint8))
    schedule = words._schedule
    assert NIST_KEY[:16] in schedule.tobytes()
    del words
    assert not schedule.any()


@pytest.mark.skipif(not keystream.can_encrypt(), reason="kernels are not compiled for AES instructions")
@pytest.mark.parametrize("chunk", [0, 1, 77, 2**24 + 3, 2**31 - 1])
@pytest.mark.parametrize("size", [0, 1, 16, 20, 511, 512, 513, 528, 1023, 1024, 1040, 6 * 7233, 4 * BLOCK_ROWS])
@pytest.mark.parametrize("at_once", [True, False])
def test_compiled_words_are_those_of_openssl(chunk, size, at_once, seed):
    """Whole batches, whole blocks behind them, and parts of a block; nothing beyond the end is written."""
    key = np.random.default_rng(seed).bytes(32)
    schedule, filled = np.empty(keystream.SCHEDULE_WORDS, np.uint64), np.full(size + 64, 0x55, np.uint8)
    if at_once:
        keystream.fill_at_once(np.frombuffer(key, np.uint8), np.int64(chunk << 32), filled[:size])
    else:
        keystream.prepare_key(np.frombuffer(key, np.uint8), schedule)
        keystream.fill_words(schedule, np.int64(chunk << 32), filled[:size])
    cipher = Cipher(algorithms.AES(key), modes.CTR((chunk << 32).to_bytes(16, "big"))).encryptor()
    assert filled[:size].tobytes() == cipher.update(bytes(size))
    assert (filled[size:] == 0x55).all()


def test_few_words_many_words_and_no_compiled_words_are_the_same(monkeypatch, seed):
    """Which cipher makes them depends on how many there are and on the processor; the words do not."""
    words = Keystream(np.random.default_rng(seed).bytes(32)).words(Purpose.NOISE)
    many, few, without = (np.empty(size, np.uint8) for size in (6 * BLOCK_ROWS, 4096, 6 * BLOCK_ROWS))
    for chunk in (5, 0, 5):
        words.fill(chunk, many)
        words.fill(chunk, few)
        assert np.array_equal(many[: few.size], few)
    monkeypatch.setattr(keystream, "can_fill", lambda: False)
    words.fill(5, without)
    assert np.array_equal(many, without)


@pytest.mark.parametrize("purpose", list(Purpose))
@pytest.mark.parametrize("size", [1, 20, 512, 4096])
def test_words_of_the_first_short_calls_are_those_of_later_ones(purpose, size, monkeypatch, seed):
    """A kernel makes the words of short calls once there have been many."""
    key = np.random.default_rng(seed).bytes(32)
    monkeypatch.setattr(randomness, "_short_calls", 0)
    before, after = np.empty((2, randomness._MANY_CALLS, size), np.uint8)
    for filled in (before, after):
        for chunk in range(len(filled)):
            Words(key, purpose).fill(7 * chunk, filled[chunk])
    assert np.array_equal(before, after)
    if purpose == Purpose.NOISE:
        assert randomness._short_calls == randomness._MANY_CALLS


@pytest.mark.parametrize("purpose", list(Purpose))
@pytest.mark.parametrize("chunk", [0, 1, 7, 2**20, 2**33])
@pytest.mark.parametrize("size", [1, 15, 16, 17, 100_000, 2**18, 2**18 + 3, 600_000])
def test_fill_is_counter_mode_from_its_chunk(purpose, chunk, size):
    """Soundness rule 1: the counter starts at (purpose, chunk) x 2**32 blocks, whatever the buffer's length."""
    buffer = np.empty(size, np.uint8)
    Words(FIPS_KEY, purpose).fill(chunk, buffer)
    first = (int(purpose) << 96) + (chunk << 32)
    last = -(-size // 16) - 1
    blocks = [0, last // 2, last]
    expected = aes_blocks(FIPS_KEY, [first + block for block in blocks])
    for position, block in enumerate(blocks):
        given = buffer[16 * block : 16 * block + 16].tobytes()
        assert given == expected[16 * position : 16 * position + len(given)]


def test_fill_does_not_depend_on_what_was_filled_before():
    words, fresh = Keystream(FIPS_KEY).words(Purpose.NOISE), Keystream(FIPS_KEY).words(Purpose.NOISE)
    a, b = np.empty(37, np.uint8), np.empty(37, np.uint8)
    for chunk in (3, 0, 3):
        words.fill(chunk, a)
    fresh.fill(3, b)
    assert a.tobytes() == b.tobytes() == noise_bytes(FIPS_KEY, 3, 37)


@pytest.mark.parametrize("depth", [0, 1, 5])
def test_extension_is_counter_mode_at_the_refinement_counters(depth):
    """Soundness rule 2: the continuation is a fixed function of (key, word index)."""
    indices = np.array([0, 1, 32_768, 2**31, 2**40])
    expected = aes_blocks(FIPS_KEY, [(1 << 96) + (int(index) << 32) + depth for index in indices])
    assert Keystream(FIPS_KEY).extension(indices, depth) == expected


def test_a_key_has_32_bytes_and_does_not_show():
    with pytest.raises(ValueError, match="32 bytes"):
        Keystream(bytes(31))
    assert repr(Keystream(bytes(32))) == "Keystream(...)"


class CountedBlocks:
    """Every counter block that a kernel call turns into keystream."""

    def __init__(self, monkeypatch, chunk_counter=lambda chunk: chunk << 32):
        self.ranges = []
        self.extensions = []
        counted = self

        class CountingWords(Words):
            def fill(self, chunk, buffer):
                start = self._purpose + chunk_counter(chunk)
                counted.ranges.append((start, start + -(-buffer.nbytes // 16)))
                super().fill(chunk, buffer)

        plain_extension = Keystream.extension

        def extension(self, indices, depth):
            for index in indices:
                start = (int(Purpose.REFINEMENT) << 96) + (int(index) << 32) + depth
                counted.extensions.append((start, start + 1))
            return plain_extension(self, indices, depth)

        monkeypatch.setattr(dpfast.randomness, "Words", CountingWords)
        monkeypatch.setattr(Keystream, "extension", extension)

    def repeated(self) -> int:
        # Reading the same continuation of the same word again is what an extension is for.
        ordered = sorted([*self.ranges, *set(self.extensions)])
        return sum(max(0, end - start) for (_, end), (start, _) in pairwise(ordered))


CALLS = [
    (dpf.laplace, np.int64, 3.0),
    (dpf.laplace, np.int64, 1e6),
    (dpf.laplace, np.float64, 1e6),
    (dpf.gaussian, np.int64, 3.0),
    (dpf.gaussian, np.float64, 1e6),
]


@pytest.mark.parametrize(("mechanism", "dtype", "scale"), CALLS)
def test_no_block_of_the_cipher_serves_twice(mechanism, dtype, scale, monkeypatch):
    """Soundness rule 1: chunks, purposes and extensions of one call never share a counter."""
    blocks = CountedBlocks(monkeypatch)
    mechanism(np.zeros(5 * BLOCK_ROWS + 11, dtype), scale, random=FixedKey(), threads=2)
    # The last, shorter chunk fills a part of the same buffer: six chunks, and the extensions of a few words.
    assert [start for start, _ in sorted(blocks.ranges)] == [chunk << 32 for chunk in range(6)]
    assert blocks.repeated() == 0


def test_the_counter_that_is_the_chunk_number_repeats(monkeypatch):
    """The mutant of soundness rule 1: with the chunk number as counter, chunks share all blocks but one."""
    blocks = CountedBlocks(monkeypatch, chunk_counter=lambda chunk: chunk)
    dpf.laplace(np.zeros(2 * BLOCK_ROWS, np.int64), 3.0, random=FixedKey())
    assert blocks.repeated() >= BLOCK_ROWS // 4 - 1


@pytest.mark.parametrize("refine_all", [False, True])
def test_extensions_are_of_words_of_this_call(refine_all, monkeypatch):
    """Soundness rule 2: a word is continued under its own index only, one block deep in nearly every case."""
    indices = []
    plain_extension = Keystream.extension

    def extension(self, given, depth):
        indices.extend((int(index), depth) for index in given)
        return plain_extension(self, given, depth)

    monkeypatch.setattr(Keystream, "extension", extension)
    rows = 1001 if refine_all else 4 * BLOCK_ROWS + 1
    column = dpfast.columns.borrow(np.zeros(rows, np.int64))
    laplace_module.laplace_noise(column, 1000.0, FixedKey(), refine_all=refine_all)
    assert all(0 <= index < rows for index, _ in indices)
    assert len(set(indices)) == len(indices)


@pytest.mark.parametrize("known", [31, 32, 47, 48])
def test_a_word_goes_on_with_its_own_blocks(known):
    """Soundness rule 2: the bits read, then blocks 0, 1, 2 of the word's index, most significant bit first."""
    read = (1 << (known - 1)) | 12345
    tail = Tail(Keystream(FIPS_KEY), 70_001, read, known)
    expected = continued(FIPS_KEY, 70_001, read, known)
    for count in (known, known + 1, known + 64, known + 128, known + 129, known + 384, known):
        assert tail.leading(count) == expected(count)


WORDS_OF_ROWS = [("laplace", 2.0, 31, 0), ("laplace", 1e6, 47, 0), ("gaussian", 2.0, 32, 1), ("gaussian", 1e6, 48, 1)]


@pytest.mark.parametrize(("name", "scale", "known", "paired"), WORDS_OF_ROWS)
def test_every_reader_of_a_word_sees_the_same_continuation(name, scale, known, paired, monkeypatch):
    """Soundness rule 2: both values of a Box-Muller pair continue the same two words, no others, at their own index."""
    made = []

    class RecordedTail(Tail):
        def __init__(self, keystream, word, leading, known):
            made.append((word, leading, known))
            super().__init__(keystream, word, leading, known)

    monkeypatch.setattr("dpfast.mechanisms.noise.additive.Tail", RecordedTail)
    rows = 777
    column = dpfast.columns.borrow(np.zeros(rows, np.int64))
    {"laplace": laplace_module.laplace_noise, "gaussian": gaussian_module.gaussian_noise}[name](
        column, scale, FixedKey(), refine_all=True
    )
    assert {bits for _, _, bits in made} == {known}
    half = (rows + 1) // 2
    if paired:
        assert [word for word, _, _ in made] == [row % half + part for row in range(rows) for part in (0, half)]
    else:
        assert [word for word, _, _ in made] == list(range(rows))
    # One index, one word: what was read of it is always the same.
    assert len({(word, leading) for word, leading, _ in made}) == len({word for word, _, _ in made})


class KeyLog:
    """The operating system's keys, written down."""

    def __init__(self, monkeypatch):
        self.keys = []
        genuine = os.urandom

        def urandom(count):
            self.keys.append(genuine(count))
            return self.keys[-1]

        monkeypatch.setattr(dpfast.randomness.os, "urandom", urandom)


def test_every_kernel_call_asks_the_operating_system_for_a_key(monkeypatch):
    """Soundness rule 1: a fresh key for every kernel call, 32 bytes from os.urandom."""
    log = KeyLog(monkeypatch)
    for mechanism in (dpf.laplace, dpf.gaussian) * 3:
        mechanism(np.zeros(3), 1.0)
    assert [len(key) for key in log.keys] == [32] * 6
    assert len(set(log.keys)) == 6


def test_system_keys_differ():
    keys = {SystemRandom().key() for _ in range(1000)}
    assert len(keys) == 1000
    assert {len(key) for key in keys} == {32}


def _draw(values):
    return dpf.laplace(values, 1e9).tobytes()


def test_no_noise_repeats_across_calls_threads_forks_and_pickles():
    """Soundness rule 1: nothing is global, so that no two calls share noise.

    16 rows of float noise: two calls agree by chance with probability below 2**-300.
    """
    values = np.zeros(16)
    series = pl.Series(values)
    seen = [_draw(values), _draw(values), _draw(pickle.loads(pickle.dumps(values)))]
    seen += [dpf.laplace(pickle.loads(pickle.dumps(series)), 1e9).to_numpy().tobytes() for _ in range(2)]
    with ThreadPoolExecutor(8) as pool:
        seen += pool.map(_draw, [values] * 8)
    assert len(set(seen)) == len(seen)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_children_of_a_fork_draw_other_noise():
    """Soundness rule 1, in forks: parent and children draw from keys of their own."""
    values = np.zeros(16)
    reader, writer = os.pipe()
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            os.write(writer, _draw(values))
            os._exit(0)
        children.append(child)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    drawn = [os.read(reader, 128) for _ in children] + [_draw(values)]
    assert [len(noise) for noise in drawn] == [128] * 4
    assert len(set(drawn)) == 4


def test_seeded_random_repeats_and_moves_on():
    one, two, other = SeededRandom(7), SeededRandom(7), SeededRandom(8)
    first = [one.key() for _ in range(5)]
    assert first == [two.key() for _ in range(5)]
    assert len(set(first)) == 5
    assert not set(first) & {other.key() for _ in range(5)}


def test_the_same_seed_gives_the_same_noise():
    values = np.arange(100.0)
    a, b = (dpf.gaussian(values, 2.0, random=SeededRandom(3)) for _ in range(2))
    assert a.tobytes() == b.tobytes()
    source = SeededRandom(3)
    assert dpf.gaussian(values, 2.0, random=source).tobytes() != dpf.gaussian(values, 2.0, random=source).tobytes()


@pytest.mark.parametrize("random", [7, "seed", np.random.default_rng(1), object()])
def test_other_randomness_is_refused(random):
    with pytest.raises(ParameterError, match=r"^random must be None or a dpfast\.testing\.SeededRandom"):
        dpf.laplace([1], 1.0, random=random)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_with_its_parents_process_id_has_a_mark_of_its_own(monkeypatch):
    """As in a PID namespace of the child's own, or where the id is used again; a ledger in memory refuses there."""
    monkeypatch.setattr(os, "getpid", lambda: 4711)
    before, ledger = process_mark(), Ledger(1)
    child = os.fork()
    if not child:
        told = 1
        try:
            if process_mark() != before and process_mark() == process_mark():
                _ = ledger.remaining
        except LedgerError as error:
            told = 0 if "fork" in str(error) else 2
        finally:
            os._exit(told)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert process_mark() == before
    assert ledger.remaining.epsilon == 1


def test_a_key_that_gives_other_noise_is_of_another_version():
    """Known answers change with the noise that a key gives. Then raise DRAW_VERSION: kept counters are refused."""
    drawn = {name: answer for name, answer in KNOWN_ANSWERS.items() if "noise" in name or "stream" in name}
    assert len(drawn) == 7
    digest = hashlib.sha256(repr(sorted(drawn.items())).encode()).hexdigest()[:16]
    assert (DRAW_VERSION, digest) == (3, "de1c192a0fb45ef0")
