"""Work that is handed to a few threads."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from dpfast.threads import Crew


def test_all_pieces_are_worked_on_when_it_has_finished():
    done, adding = [], threading.Lock()

    def work(piece: int) -> None:
        with adding:
            done.append(piece)

    crew = Crew(work, 3)
    for piece in range(100):
        crew.hand(piece)
    crew.finish()
    assert sorted(done) == list(range(100))


def test_after_an_error_nothing_more_is_taken():
    crew = Crew(lambda piece: 1 // piece, 1)
    crew.hand(0)
    with pytest.raises(ZeroDivisionError):
        crew.hand(1)
    with pytest.raises(ZeroDivisionError):
        crew.finish()


def test_it_keeps_no_piece_of_a_call_that_failed():
    class Piece:
        pass

    def work(piece: Piece) -> None:
        raise ValueError(piece.__class__.__name__)

    piece = Piece()
    gone = weakref.ref(piece)
    crew = Crew(work, 2)
    crew.hand(piece)
    del piece
    with pytest.raises(ValueError, match="Piece"):
        crew.finish()
    gc.collect()
    assert gone() is None


def test_a_thread_that_does_not_start_is_free_again(monkeypatch):
    crew = Crew(print, 1)

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="new thread"):
            crew.hand("piece")
    crew.finish()
