"""The process that measures: what crashes, ends or hangs there takes one case with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dpfast.bench import worker
from dpfast.bench.cases import Case, Wish
from dpfast.bench.worker import Worker

#: A package whose suites have these cases, found by the process as that of a checkout.
SUITES = """
import ctypes, os, sys, time
from dpfast.bench import Case, Measured

def whole(wish):
    print("printed")
    os.system("echo printed by another program")
    wish.tell("half way")
    other = Measured("Other", 5, (), failure="raised")
    return [Measured("dpfast", wish.largest, (1.0, 2.0), peak=3.0, note="é"), other]

def crash(wish):
    ctypes.string_at(0)

def leave(wish):
    print("what it says", file=sys.stderr)
    os._exit(7)

def raised(wish):
    raise SystemExit(3)

def hang(wish):
    wish.tell("hangs")
    time.sleep(3600)

def child(wish):
    import subprocess
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    wish.tell(str(process.pid))
    process.wait()

def cases(suite, wish):
    return [Case("speed", one.__name__, one) for one in (whole, crash, leave, raised, hang, child)]
"""


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """Let the process find the suites above, and return it."""
    (tmp_path / "benchmarks").mkdir()
    for name, text in (("__init__", ""), ("suites", SUITES), ("contestants", "FAILED = {'opendp': 'raised'}")):
        (tmp_path / "benchmarks" / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(worker.CHECKOUT))
    monkeypatch.setattr(worker, "CHECKOUT", tmp_path)
    found = Worker()
    yield found
    found.end(at_once=True)


def measured(process, name, **more):
    return process.measure(Case("speed", name, list), Wish(**more))


def test_what_is_measured_there_is_as_it_was_there(begun):
    told = []
    one, other = measured(begun, "whole", largest=1234, tell=told.append)
    assert (one.size, one.figures, one.peak, one.note) == (1234, (1.0, 2.0), 3.0, "é")
    assert (other.contestant, other.failure) == ("Other", "raised")
    assert told == ["half way"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("crash", r"its process was ended by SIGSEGV: File "),
        ("leave", "its process ended with exit code 7: what it says"),
        ("raised", "raised SystemExit: 3"),
    ],
)
def test_a_case_that_ends_its_process_is_a_row_and_the_next_one_is_measured(begun, name, told):
    [row] = measured(begun, name)
    assert (row.failure, row.figures) == ("raised", ())
    assert row.note.startswith(told)
    assert len(measured(begun, "whole")) == 2


@pytest.mark.parametrize("name", ["hang", "child"])
def test_an_interrupt_ends_what_hangs_and_what_it_began(begun, name):
    said = []

    def interrupt(text):
        said.append(text)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measured(begun, name, tell=interrupt)
    process = begun._process
    begun.end(at_once=True)
    assert process.returncode is not None
    if name == "child":
        while Path(f"/proc/{said[0]}").exists() and "Z" not in Path(f"/proc/{said[0]}/stat").read_text().split()[2]:
            time.sleep(0.05)


def test_a_process_without_requests_ends_by_itself(begun):
    measured(begun, "whole")
    process = begun._process
    begun.end()
    assert process.returncode == 0


def test_the_process_ends_when_this_one_is_killed(tmp_path):
    program = (
        "import sys, time\n"
        "from dpfast.bench.worker import Worker\n"
        "one = Worker()\n"
        "print(one._started().pid, flush=True)\n"
        "time.sleep(3600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        number = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    while True:
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            break
        if Path(f"/proc/{number}/stat").read_text().split()[2] == "Z":
            break
        time.sleep(0.05)
