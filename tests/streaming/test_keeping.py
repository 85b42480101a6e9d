"""Counters in files: killed anywhere, damaged, opened twice, forked and copied."""

from __future__ import annotations

import copy
import os
import pickle
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.errors import LedgerError, ParameterError
from dpfast.streaming import planning
from dpfast.streaming.step_keys import StepKeys, follow
from dpfast.testing import SeededRandom

KILLING = Path(__file__).with_name("killing.py")
MECHANISMS = {"tree": "epsilon", "honaker": "epsilon", "square_root": "rho", "blt": "rho", "pan_private": "epsilon"}


def made(path=None, mechanism="blt", counters=3, **given):
    amount = {MECHANISMS[mechanism]: 0.5}
    return dpf.continual_count(100, mechanism=mechanism, counters=counters, path=path, **amount, **given)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_killed_process_neither_loses_nor_repeats_noise(mechanism, tmp_path):
    """Killed before lines of a step, at random moments, and without room on the disk."""
    # What is killed is a process: a folder in memory will do, and its writing takes no time.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        command = [sys.executable, KILLING, folder, mechanism]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_is_restored_goes_on_as_if_nothing_had_happened(mechanism, tmp_path):
    """With the same keys the figures are those of a counter that was never closed."""
    plain = made(tmp_path / "plain", mechanism, random=SeededRandom(3))
    shutil.copy(tmp_path / "plain", tmp_path / "other")
    figures = [plain.step([step, 1, 2]) for step in range(40)]
    again, random = [], SeededRandom(3)
    for start in range(0, 40, 7):
        with dpf.restore_counter(tmp_path / "other", random=random) as counter:
            assert counter.steps == start
            again += [counter.step([step, 1, 2]) for step in range(start, min(start + 7, 40))]
            assert (counter.released == again[-1]).all()
            assert counter.event == plain.event
    assert (np.array(figures) == np.array(again)).all()


def test_saved_on_the_way(tmp_path):
    counter = made()
    for _ in range(5):
        counter.step([1, 2, 3])
    counter.save(tmp_path / "kept")
    figures = counter.step([1, 2, 3])
    with pytest.raises(LedgerError, match="is kept in"):
        counter.save(tmp_path / "twice")
    counter.close()
    with pytest.raises(LedgerError, match="was closed"):
        counter.step([1, 2, 3])
    with dpf.restore_counter(tmp_path / "kept") as again:
        assert again.steps == 6
        assert (again.released == figures).all()


def test_a_run_that_is_kept_is_its_steps(tmp_path):
    made(tmp_path / "one", "tree", 1).close()
    shutil.copy(tmp_path / "one", tmp_path / "two")
    numbers = np.arange(30)
    with dpf.restore_counter(tmp_path / "one") as one, dpf.restore_counter(tmp_path / "two") as two:
        assert one.run(numbers).tolist() == [two.step(int(number)) for number in numbers]


def test_other_increments_get_other_noise(tmp_path):
    """A state that is continued twice, with other increments once, cancels nothing from there on."""
    made(tmp_path / "one", counters=2000).close()
    shutil.copy(tmp_path / "one", tmp_path / "two")
    shutil.copy(tmp_path / "one", tmp_path / "three")
    files = [dpf.restore_counter(tmp_path / name) for name in ("one", "two", "three")]
    zeros, other = np.zeros(2000, np.int64), np.zeros(2000, np.int64)
    other[0] = 1
    first, second, same = (file.step(x) for file, x in zip(files, (zeros, other, zeros), strict=True))
    assert (first == same).all()
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.15
    # The same increments after another history: independent still. Here as above .15 are 6.7 deviations: 2e-11.
    later = [file.step(zeros) - past for file, past in zip(files, (first, second, same), strict=True)]
    assert (later[0] == later[2]).all()
    assert abs(np.corrcoef(later[0], later[1])[0, 1]) < 0.15


def test_keys_differ_by_step_history_and_draw():
    secret, history = bytes(32), follow(bytes(32), np.array([1, 2]))
    keys = [StepKeys(secret, 1, history), StepKeys(secret, 2, history), StepKeys(secret, 1, bytes(32))]
    drawn = [source.key() for source in [*keys, *keys]]
    assert len({*drawn}) == 6
    assert drawn[0] == StepKeys(secret, 1, history).key()
    assert follow(bytes(32), np.array([1, 2], np.int64)) == history != follow(bytes(32), np.array([1, 3]))


def test_the_file_is_for_its_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        counter = made(tmp_path / "kept")
        counter.step([1, 2, 3])
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(tmp_path / "kept").st_mode) == 0o600
    assert os.listdir(tmp_path) == ["kept"]


def test_one_process_at_a_time(tmp_path):
    counter = made(tmp_path / "kept")
    with pytest.raises(LedgerError, match="is open elsewhere"):
        dpf.restore_counter(tmp_path / "kept")
    counter.step([1, 1, 1])
    with pytest.raises(LedgerError, match="is open elsewhere"):
        dpf.restore_counter(tmp_path / "kept")
    code = f"import dpfast as dpf; dpf.restore_counter({str(tmp_path / 'kept')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=1200)
    assert "is open elsewhere" in done.stderr
    counter.close()
    dpf.restore_counter(tmp_path / "kept").close()


def test_a_file_that_was_replaced_is_not_written_over(tmp_path):
    counter = made(tmp_path / "kept")
    (tmp_path / "other").write_bytes((tmp_path / "kept").read_bytes())
    os.replace(tmp_path / "other", tmp_path / "kept")
    with pytest.raises(LedgerError, match="was moved or replaced"):
        counter.step([1, 1, 1])
    with pytest.raises(LedgerError, match="was interrupted"):
        counter.step([1, 1, 1])


def test_names_that_cannot_be_had(tmp_path):
    ledger = dpf.Ledger(epsilon=1.0, delta=1e-6, accountant="zcdp")
    (tmp_path / "taken").write_text("something")
    for name in ("taken", "none/such"):
        with pytest.raises(LedgerError, match=r"exists already|is missing"):
            made(tmp_path / name, ledger=ledger)
    assert ledger.history().is_empty()
    assert (tmp_path / "taken").read_text() == "something"
    os.symlink(tmp_path / "nowhere", tmp_path / "link")
    with pytest.raises(LedgerError, match="exists already"):
        made(tmp_path / "link")
    with pytest.raises(LedgerError, match="cannot be opened"):
        dpf.restore_counter(tmp_path / "none")
    with pytest.raises(LedgerError, match="holds no counter"):
        dpf.restore_counter(tmp_path / "taken")


@pytest.mark.parametrize("seed", range(3))
def test_damage_is_found(seed, tmp_path):
    """Every byte flipped by chance is either in what a reader ignores, or found."""
    counter = made(tmp_path / "kept")
    counter.step([5, 6, 7])
    counter.close()
    whole = (tmp_path / "kept").read_bytes()
    generator = np.random.default_rng(seed)
    found = 0
    for place in generator.integers(0, len(whole), 60).tolist():
        flipped = bytearray(whole)
        flipped[place] ^= 1 << int(generator.integers(8))
        (tmp_path / "kept").write_bytes(flipped)
        try:
            with dpf.restore_counter(tmp_path / "kept") as again:
                assert again.steps == 1
        except LedgerError:
            found += 1
    assert found > 20
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        (tmp_path / "kept").write_bytes(whole[:length])
        with pytest.raises(LedgerError, match="holds no counter"):
            dpf.restore_counter(tmp_path / "kept")


def test_the_numbers_that_change_noise_are_under_the_checksum(tmp_path):
    """A file whose budget was changed by hand is refused."""
    made(tmp_path / "kept").close()
    table = pa.ipc.open_file(pa.OSFile(str(tmp_path / "kept"))).read_all()
    facts = table.schema.metadata[b"dpfast counter"].replace(b'"rho"', b'"rhp"')
    assert facts != table.schema.metadata[b"dpfast counter"]
    table = table.replace_schema_metadata({b"dpfast counter": facts})
    with pa.OSFile(str(tmp_path / "other"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    os.replace(tmp_path / "other", tmp_path / "kept")
    with pytest.raises(LedgerError):
        dpf.restore_counter(tmp_path / "kept")


def test_a_counter_whose_key_would_give_other_noise_is_refused(tmp_path, monkeypatch):
    """Two draws of a step from the same words, one by each version, would cancel: nobody gets the second."""
    monkeypatch.setattr(planning, "DRAW_VERSION", planning.DRAW_VERSION - 1)
    with dpf.continual_count(8, counters=2, epsilon=1.0, delta=1e-9, path=tmp_path / "kept") as counter:
        counter.step([1, 2])
    dpf.restore_counter(tmp_path / "kept").close()
    monkeypatch.undo()
    with pytest.raises(LedgerError, match="by another version of dpfast, whose noise this one would not draw"):
        dpf.restore_counter(tmp_path / "kept")


def test_repeated_steps(tmp_path):
    counter = made(tmp_path / "kept")
    first = counter.step([1, 2, 3], number=1)
    assert (counter.step([1, 2, 3], number=1) == first).all()
    assert counter.steps == 1
    with pytest.raises(LedgerError, match="other increments"):
        counter.step([1, 2, 4], number=1)
    for number in (3, 99):
        with pytest.raises(ParameterError, match="number must be 2"):
            counter.step([1, 2, 3], number=number)
    unkept = made()
    unkept.step([1, 2, 3], number=1)
    with pytest.raises(LedgerError, match="only if the counter was kept"):
        unkept.step([1, 2, 3], number=1)


def test_no_copies_and_no_forks(tmp_path):
    counter = made(tmp_path / "kept")
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LedgerError, match="cannot be pickled or copied"):
            copied(counter)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            counter.step([1, 1, 1])
        except LedgerError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert b"does not outlive a fork" in os.read(reading, 1000)
    counter.step([1, 1, 1])
    assert "1" not in repr(counter).replace("horizon=100", "").replace("steps=1", "")


def test_an_interrupted_step_ends_the_counter(tmp_path, monkeypatch):
    counter = made(tmp_path / "kept")
    counter.step([1, 2, 3])
    with monkeypatch.context() as patched:
        patched.setattr(counter._state, "advance", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            counter.step([1, 2, 3])
    with pytest.raises(LedgerError, match="was interrupted"):
        counter.step([1, 2, 3])
    counter.close()
    with dpf.restore_counter(tmp_path / "kept") as again:
        assert again.steps == 1


def test_a_pan_private_file_has_no_secret(tmp_path):
    counter = made(tmp_path / "kept", "pan_private")
    counter.step([1, 2, 3])
    table = pa.ipc.open_file(pa.OSFile(str(tmp_path / "kept"))).read_all()
    assert b'"secret": ""' in table.schema.metadata[b"dpfast counter"]
    assert table.column_names[0] == "counter"
    assert "totals" not in table.column_names


def test_what_is_not_on_the_disk_is_shown_to_nobody(tmp_path):
    """A step whose state cannot be written ends the counter; the figures of that step are not to be had."""
    path = tmp_path / "counter"
    counter = made(path, counters=1)
    first = counter.step(100)
    path.rename(tmp_path / "moved")
    with pytest.raises(LedgerError, match="moved or replaced"):
        counter.step(1000)
    assert counter.released == first
    with pytest.raises(LedgerError, match="interrupted"):
        counter.step(0)
    counter.close()
    with dpf.restore_counter(tmp_path / "moved") as restored:
        assert (restored.steps, restored.released) == (1, first)


def test_a_second_name_of_the_file_is_refused(tmp_path):
    """Soundness rule 11 for counters: under a hard link the state before would go on once more."""
    path, link = tmp_path / "counter", tmp_path / "link"
    counter = made(path, counters=1)
    os.link(path, link)
    with pytest.raises(LedgerError, match="has another name"):
        counter.step(1)
    counter.close()
    for name in (path, link):
        with pytest.raises(LedgerError, match="has another name"):
            dpf.restore_counter(name)
    link.unlink()
    dpf.restore_counter(path).close()


def test_a_process_killed_between_two_names_leaves_a_counter_that_opens(tmp_path):
    path = tmp_path / "counter"
    made(path, counters=1).close()
    os.link(path, tmp_path / ".counter.new")
    dpf.restore_counter(path).close()
    assert [one.name for one in tmp_path.iterdir()] == ["counter"]


def test_a_name_without_room_for_the_next_state_is_refused_before_the_charge(tmp_path):
    ledger = dpf.Ledger(epsilon=1.0)
    with pytest.raises(LedgerError, match="too long; 250 bytes are the most"):
        dpf.continual_count(5, epsilon=1.0, path=tmp_path / ("x" * 252), ledger=ledger)
    assert ledger.history().height == 0
    dpf.continual_count(5, epsilon=1.0, path=tmp_path / ("x" * 250), ledger=ledger).close()


def test_steps_that_cannot_be_repeated_say_why(tmp_path):
    counter = made(counters=1)
    counter.step(7)
    counter.save(tmp_path / "counter")
    with pytest.raises(LedgerError, match="only if the counter was kept in a file then"):
        counter.step(7, number=1)
    private = made(tmp_path / "private", "pan_private", counters=1)
    private.step(7)
    with pytest.raises(LedgerError, match="keeps nothing by which"):
        private.step(7, number=1)
