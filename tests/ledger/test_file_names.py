"""Every second way to reach a ledger's file shares its lock, or is refused; and files do not wait for each other."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import dpfast
import dpfast.ledger.file_lock
from dpfast.errors import LedgerError
from dpfast.ledger import Charge, Ledger

ABOUT = {"dataset": "flights", "privacy_unit": "row", "neighbors": "add_remove"}
TENTH = Charge.of(0.1)


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "ledger.db"
    with Ledger.open(path, epsilon=1) as ledger:
        ledger.charge(TENTH, **ABOUT)
    return path


def uses(ledger):
    return (lambda: ledger.charge(TENTH, **ABOUT), lambda: ledger.spent, lambda: ledger.history())


def test_hard_link(path):
    """Soundness rule 11: a second name, made before or while the ledger is open, in its folder or in another."""
    ledger = Ledger.open(path)
    for other in (path.with_name("other.db"), path.parent.parent / "ledger.db"):
        os.link(path, other)
        for use in (*uses(ledger), lambda: Ledger.open(path), lambda other=other: Ledger.open(other)):
            with pytest.raises(LedgerError, match="second name"):
                use()
        other.unlink()
        assert ledger.spent.epsilon == 0.1
    assert Ledger.open(path).charge(TENTH, **ABOUT) == 2


def test_creation_that_was_cut_off(path):
    """A ledger's first name is removed by whoever comes next, and no other file's is."""
    left, others = path.with_name(".ledger.db.0123456789abcdef.new"), path.with_name(".other.db.0123.new")
    os.link(path, left)
    others.touch()
    assert Ledger.open(path).charge(TENTH, **ABOUT) == 2
    assert (left.exists(), others.exists()) == (False, True)


def test_symbolic_links(path, tmp_path):
    """Soundness rule 11: links to the file and to its folder are followed once; the journal is beside the file."""
    of_file, of_folder = tmp_path / "link.db", tmp_path / "link"
    of_file.symlink_to(path)
    of_folder.symlink_to(path.parent)
    ledgers = [Ledger.open(name) for name in (path, of_file, of_folder / "ledger.db")]
    assert [ledger.charge(TENTH, **ABOUT) for ledger in ledgers] == [2, 3, 4]
    assert {ledger._store._path for ledger in ledgers} == {path}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder", "link", "link.db"]
    other = tmp_path / "other.db"
    Ledger.open(other, epsilon=1).close()
    of_file.unlink()
    of_file.symlink_to(other)
    assert ledgers[1].charge(TENTH, **ABOUT) == 5  # still the ledger that was opened
    assert Ledger.open(of_file).spent.epsilon == 0


def test_symbolic_link_in_the_files_place(path, tmp_path):
    """A file that is moved, with a link left in its place, is another name for a ledger in use."""
    ledger = Ledger.open(path)
    path.rename(tmp_path / "moved.db")
    path.symlink_to(tmp_path / "moved.db")
    for use in uses(ledger):
        with pytest.raises(LedgerError, match="symbolic link"):
            use()
    assert Ledger.open(path).charge(TENTH, **ABOUT) == 2


def test_dangling_links(path, tmp_path):
    """A link to nothing makes no new ledger: what it led to may come back."""
    link, circle = tmp_path / "link.db", tmp_path / "circle.db"
    link.symlink_to(path)
    circle.symlink_to(circle)
    path.rename(path.with_name("away.db"))
    for name in (link, circle):
        with pytest.raises(LedgerError, match="which is missing"):
            Ledger.open(name, epsilon=1)
    assert not path.exists()


def test_renamed_while_open(path):
    """A file that has lost its name is refused by who has it open, and serves under the other name."""
    ledger = Ledger.open(path)
    other = path.with_name("other.db")
    path.rename(other)
    for use in uses(ledger):
        with pytest.raises(LedgerError, match="cannot be opened"):
            use()
    assert Ledger.open(other).charge(TENTH, **ABOUT) == 2
    assert not path.exists()
    other.rename(path)
    assert ledger.charge(TENTH, **ABOUT) == 3


def test_replaced_while_waiting(path):
    """Whoever waits for a file that is meanwhile replaced looks again at what the name leads to."""
    ledger = Ledger.open(path)
    copy = path.with_name("copy.db")
    shutil.copyfile(path, copy)
    done = []
    with open(path, "rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        thread = threading.Thread(target=lambda: done.append(ledger.charge(TENTH, **ABOUT)))
        thread.start()
        thread.join(0.1)
        os.replace(copy, path)
    thread.join()
    assert done == [2]
    assert Ledger.open(path).spent.epsilon == 0.2


def test_ledgers_do_not_wait_for_each_other(path, tmp_path):
    """A ledger that is held elsewhere keeps no thread from another ledger, and no process from a fork."""
    busy, other = Ledger.open(path), Ledger.open(tmp_path / "other.db", epsilon=1)
    done = []
    with open(path, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        thread = threading.Thread(target=lambda: done.append(busy.charge(TENTH, **ABOUT)))
        thread.start()
        thread.join(0.1)
        assert other.charge(TENTH, **ABOUT) == 1
        assert other.spent.epsilon == 0.1
        child = os.fork()
        if child == 0:
            os._exit(0 if other.charge(TENTH, **ABOUT) == 2 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (done, thread.is_alive()) == ([], True)
    thread.join()
    assert done == [2]


def test_no_store_comes_in_the_middle_of_a_fork(path):
    """A fork stops all stores; one that a thread adds meanwhile would be in mid-transaction in the child."""
    stores = dpfast.ledger.sqlite
    opened = []
    thread = threading.Thread(target=lambda: opened.append(Ledger.open(path)))
    stores._before_fork()
    try:
        thread.start()
        thread.join(0.5)
        assert not opened
    finally:
        stores._after_fork()
    thread.join()
    assert opened[0].charge(TENTH, **ABOUT) == 2


def test_children_do_not_keep_a_lock(path):
    """Soundness rule 11: a child forked while its parent waits or charges holds no lock of its parent's."""
    ledger = Ledger.open(path)
    with open(path, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        thread = threading.Thread(target=lambda: ledger.charge(TENTH, **ABOUT))
        thread.start()
        thread.join(0.05)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            held.close()
            os.write(writing, b"." if not dpfast.ledger.file_lock._DESCRIPTORS else b"!")
            os.read(reading, 0)
            import signal

            signal.pause()
        assert os.read(reading, 1) == b"."
    thread.join()
    assert Ledger.open(path).charge(TENTH, **ABOUT) == 3  # while the child lives
    os.kill(child, 9)
    os.waitpid(child, 0)


def test_child_of_a_charge_keeps_its_parents_lock(path):
    """Soundness rule 11: a child forked in mid-charge lets go of nothing that its parent holds."""
    ledger = Ledger.open(path)
    append, parent = ledger._store._append, os.getpid()

    def forking(*arguments):
        result = append(*arguments)
        child = os.fork()
        if child:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            with open(path, "rb") as other, pytest.raises(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return result

    ledger._store._append = forking
    try:
        assert ledger.charge(TENTH, **ABOUT) == 2
    except LedgerError as error:
        os._exit(7 if "forked in the middle" in str(error) and os.getpid() != parent else 1)
    assert Ledger.open(path).spent.epsilon == 0.2


def test_no_system_that_tells_of_mounts(path, monkeypatch):
    """Where the system does not tell which mount a file is in, as on macOS, ledgers serve."""
    monkeypatch.setattr(dpfast.ledger.file_lock, "_MOUNTS", "/nowhere/{}")
    assert Ledger.open(path).charge(TENTH, **ABOUT) == 2


MOUNTED = """
import sys
from dpfast.errors import LedgerError
from dpfast.ledger import Charge, Ledger
first, file, folder = sys.argv[1:]
about = dict(dataset="flights", privacy_unit="row", neighbors="add_remove")
ledger = Ledger.open(first)
print(ledger.charge(Charge.of(0.1), **about), Ledger.open(folder + "/ledger.db").charge(Charge.of(0.1), **about))
try:
    Ledger.open(file)
except LedgerError as error:
    print(error)
print(ledger.charge(Charge.of(0.1), **about), ledger.spent.epsilon)
"""


def test_bind_mounts(path, tmp_path):
    """Soundness rule 11: a file mounted by itself, as containers do, is refused; a mounted folder is the same."""
    file, folder = tmp_path / "mounted.db", tmp_path / "mounted"
    file.touch()
    folder.mkdir()
    mounts = 'mount --bind "$0" "$1" && mount --bind "$2" "$3" || exit 77; shift 3; exec "$@"'
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("there is no unshare, so that no mount can be made")
    root = [] if os.geteuid() == 0 else ["--map-root-user"]
    names = [str(path), str(file), str(path.parent), str(folder)]
    rest = [sys.executable, "-c", MOUNTED, str(path), str(file), str(folder)]
    done = subprocess.run(
        [unshare, "--mount", *root, "sh", "-c", mounts, *names, *rest],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(dpfast.__file__).parents[1])},
    )
    if done.returncode == 77 or "unshare:" in done.stderr:
        pytest.skip(f"no mount may be made here: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr
    first, refused, last = done.stdout.strip().split("\n")
    assert first == "2 3"
    assert "mounted as a single file" in refused
    assert "mount its folder instead" in refused
    assert last == "4 0.4"
