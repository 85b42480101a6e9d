"""Noise on many small columns: no word twice, in whichever threads and processes, and none kept."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import dpfast as dpf
from dpfast.columns import BLOCK_ROWS
from dpfast.mechanisms.noise.gaussian import gaussian_words
from dpfast.mechanisms.noise.pieces import BYTES_OF_A_KEY, Pieces
from dpfast.randomness import Keystream, Purpose
from dpfast.testing import SeededRandom

from .duckdb_queries import PIECE, Watched, connected, fetched


def zeros(rows):
    values = np.zeros(rows, np.int64)
    values.setflags(write=False)
    return values


def test_rule_1_no_word_serves_twice():
    source = Watched()
    pieces = Pieces(source)
    drawn = [pieces.noisy(zeros(PIECE), None, "laplace", 2.0**24) for _ in range(100)]
    # Two keys at a time: of the words, and of the further bits of some.
    assert source.keys == 2 * (100 * PIECE * 6 // BYTES_OF_A_KEY + 1)
    # Of 204,800 draws with a scale of 2**24, about 700 pairs agree by chance; shared words would make thousands.
    assert np.unique(np.concatenate(drawn)).size > 204_800 - 3_000
    assert len({one.tobytes() for one in drawn}) == 100


def test_rule_1_refinement_reads_words_of_its_own():
    """Two pieces of one key continue different words: the numbers of their words do not meet."""
    seen = []

    class Remembered(Keystream):
        def extension(self, indices, depth):
            seen.extend(int(index) for index in indices)
            return super().extension(indices, depth)

    noise = gaussian_words(np.dtype(np.int64), 1e6, None)
    begin = 0
    for rows in (3, 5, 2048, 1):
        noise.keystream, noise.first_word = Remembered(bytes(32)), begin
        size = noise.word_bytes(rows)
        words = np.frombuffer(os.urandom(size), np.uint8)
        before = len(seen)
        values = zeros(rows)
        for _, _ in noise.refine(words, values, np.arange(rows), 0):
            pass
        assert all(begin <= index < begin + size for index in seen[before:])
        begin += (size + 15) // 16 * 16


@pytest.mark.parametrize("rows", [1, 3, 2047, 2048, 30_000, BLOCK_ROWS])
def test_pieces_of_every_size(rows):
    pieces = Pieces(SeededRandom(1))
    for kind in ("laplace", "gaussian"):
        for scale in (1e-3, 5.0, 1e6, np.full(rows, 5.0)):
            for _ in range(3):
                noisy = pieces.noisy(zeros(rows), None, kind, scale)
                assert noisy.size == rows
                assert np.abs(noisy).max() <= 60 * np.max(scale)
    with pytest.raises(ValueError, match="at most"):
        pieces.noisy(zeros(BLOCK_ROWS + 1), None, "laplace", 1.0)


def test_words_are_gone_when_they_are_used():
    pieces = Pieces(SeededRandom(1))
    pieces.noisy(zeros(PIECE), None, "laplace", 10.0)
    (idle,) = pieces._idle
    assert not idle._bytes[: 4 * PIECE].any()
    assert idle._bytes[4 * PIECE :].any()
    assert not idle._scratch("noise", np.int32)[:PIECE].any()
    again = np.empty(idle._bytes.size, np.uint8)
    idle._keystream.words(Purpose.NOISE).fill(0, again)
    assert (again[4 * PIECE :] == idle._bytes[4 * PIECE :]).mean() < 0.02  # the key that is kept does not make them


def test_what_fails_is_not_used_again():
    pieces = Pieces(SeededRandom(1))
    bad = np.array([1.0, np.nan])
    bad.setflags(write=False)
    with pytest.raises(dpf.errors.DataError):
        pieces.noisy(bad, None, "laplace", 1.0)
    assert pieces._idle == []


def test_a_call_within_a_call_takes_other_words():
    """As a signal handler's, in the same thread."""
    pieces = Pieces(SeededRandom(1))
    outer = pieces._source

    class Nested:
        def key(self):
            pieces._source = outer
            inner.append(pieces.noisy(zeros(PIECE), None, "laplace", 1e6))
            return outer.key()

    inner: list = []
    pieces._source = Nested()
    noisy = pieces.noisy(zeros(PIECE), None, "laplace", 1e6)
    assert len(inner) == 2
    assert (noisy == inner[0]).mean() < 0.01
    assert (noisy == inner[1]).mean() < 0.01


@pytest.mark.usefixtures("duckdb_route")
def test_threads_share_a_connection_and_its_cursors():
    """Eight threads draw 160,000 numbers of scale 2**24: a word that served two would show in pairs."""
    connection = connected(threads=2)
    drawn, errors = [], []

    def draw(cursor):
        try:
            for _ in range(5):
                drawn.append(fetched(cursor, "SELECT dpf_laplace(0, 16777216) FROM range(4000)"))
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=draw, args=(connection.cursor(),)) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert errors == []
    together = np.array(drawn)
    assert together.shape == (40, 4000)
    assert np.unique(together).size > 160_000 - 2_500


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("same_pid", [False, True])
def test_a_fork_makes_new_keys(monkeypatch, same_pid):
    if same_pid:
        # As in a PID namespace of the child's own, or where the id is used again.
        monkeypatch.setattr(os, "getpid", lambda: 4711)

    class Counted:
        def key(self):
            return os.urandom(32)

    pieces = Pieces(Counted())
    pieces.noisy(zeros(PIECE), None, "laplace", 1e6)
    read, write = os.pipe()
    child = os.fork()
    noisy = pieces.noisy(zeros(PIECE), None, "laplace", 1e6)
    if child == 0:
        os.write(write, noisy.tobytes())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        of_child = np.frombuffer(pipe.read(), np.int64)
    assert os.waitpid(child, 0)[1] == 0
    assert of_child.size == PIECE
    assert (noisy == of_child).mean() < 0.01
