"""Kept counters on disks without room: refused before a charge, and nothing is left that could go on."""

from __future__ import annotations

import os
import resource
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import LedgerError


@contextmanager
def small_files():
    """Let no file grow beyond 100 bytes, as on a disk that is full: none of the tests' own is written meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_counter_that_cannot_be_kept_is_not_paid_for(tmp_path):
    ledger = dpf.Ledger(epsilon=1.0)
    with pytest.raises(LedgerError, match="cannot be written: File too large"), small_files():
        dpf.continual_count(10, epsilon=1.0, ledger=ledger, path=tmp_path / "kept")
    assert ledger.history().is_empty()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("mechanism", ["tree", "pan_private"])
def test_what_is_tried_beforehand_is_not_smaller_than_what_is_kept(tmp_path, monkeypatch, mechanism):
    sizes = []
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, content: sizes.append(len(content)) or write(file, content))
    ledger = dpf.Ledger(epsilon=1.0)
    given = {"epsilon": 1.0, "mechanism": mechanism, "ledger": ledger}
    dpf.continual_count(10, path=tmp_path / "kept", **given).close()
    tried, kept = sizes
    assert kept <= tried
    assert os.listdir(tmp_path) == ["kept"]


def test_a_step_without_room_is_shown_to_nobody(tmp_path):
    counter = dpf.continual_count(10, epsilon=1.0, counters=100, path=tmp_path / "kept")
    before = (tmp_path / "kept").read_bytes()
    with pytest.raises(LedgerError, match="cannot be written"), small_files():
        counter.step(np.ones(100, np.int64))
    with pytest.raises(LedgerError, match="interrupted"):
        counter.step(np.ones(100, np.int64))
    counter.close()
    assert (tmp_path / "kept").read_bytes() == before
    assert os.listdir(tmp_path) == ["kept"]


@pytest.mark.parametrize("place", [0, 1])
def test_a_file_that_could_not_be_finished_is_taken_back(tmp_path, monkeypatch, place):
    """Else the counter would go on here, and once more from the file: a second release that nothing has paid for."""
    counter = dpf.continual_count(10, epsilon=1.0)
    counter.step(3)
    sync, calls = os.fsync, iter(range(9))

    def full(file):
        if next(calls) == place:
            raise OSError(28, "full")
        sync(file)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(LedgerError, match="No space left"):
            counter.save(tmp_path / "kept")
    assert os.listdir(tmp_path) == []
    counter.step(3)
    counter.save(tmp_path / "kept")
    counter.close()
    with dpf.restore_counter(tmp_path / "kept") as again:
        assert again.steps == 2


def test_a_counter_whose_file_cannot_be_taken_back_ends(tmp_path, monkeypatch):
    counter = dpf.continual_count(10, epsilon=1.0)

    sync, unlink = os.fsync, Path.unlink

    def broken(file):
        # The folder is brought to the disk when the file has its name.
        if os.path.isdir(f"/dev/fd/{file}"):
            raise OSError(5, "broken")
        sync(file)

    def stuck(path, **given):
        if path.name == "kept":
            raise OSError(5, "broken")
        unlink(path, **given)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", broken)
        patched.setattr(Path, "unlink", stuck)
        with pytest.raises(LedgerError, match="cannot be written"):
            counter.save(tmp_path / "kept")
    with pytest.raises(LedgerError, match="may go on from its file"):
        counter.step(3)
