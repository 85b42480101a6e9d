"""`dpfast doctor` finds what is wrong, and `dpfast warmup` compiles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dpfast as dpf
from dpfast.cli.commands import main
from dpfast.cli.doctor import asking, checks, noise, warming, workers
from dpfast.cli.doctor.checks import CHECKS, Check, fingerprint
from dpfast.cli.doctor.known_answers import KNOWN_ANSWERS
from dpfast.cli.doctor.warming import CALLS
from dpfast.testing import SeededRandom

LAPLACE, GAUSSIAN = dpf.laplace, dpf.gaussian


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_answers_are_as_they_must_be(check):
    assert check.answer() == check.expected()


def test_every_known_answer_is_of_a_check():
    assert set(KNOWN_ANSWERS) == {check.name for check in CHECKS if check.exact is None}
    assert len({check.name for check in CHECKS}) == len(CHECKS)


def test_every_folder_of_kernels_has_an_answer_that_is_known():
    """In a process of its own: which folders' compiled loops the calls of the doctor run, by numba's own record.

    What the plugin's folder compiles is a library of its own, which is loaded and not called from here.
    """
    code = """if True:
        import sys
        from dpfast.cli.doctor.checks import CHECKS
        from dpfast.testing import SeededRandom
        for check in CHECKS:
            check.draw(SeededRandom(1))
        for name, module in tuple(sys.modules.items()):
            own = [one for one in vars(module).values() if getattr(one, "__module__", None) == name]
            if name.startswith("dpfast.kernels.") and any(getattr(one, "overloads", None) for one in own):
                print(name.split(".")[2])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    kernels = Path(dpf.__file__).with_name("kernels")
    folders = {path.parent.name for path in kernels.glob("*/__init__.py")}
    assert len(folders) > 9
    assert folders - set(done.stdout.split()) <= {"plugin"}
    assert "Noise within Polars" in {check.name for check in CHECKS}


@pytest.fixture
def here(monkeypatch):
    """Ask in this process, where what is asked can be exchanged."""
    monkeypatch.setattr(workers, "make_calls", lambda module, seconds: workers.make_calls_here(asking.calls()))


@pytest.mark.statistical
def test_it_finds_nothing_wrong_here():
    """False-failure rate at most 3e-11: that of `wrong_noise`, twice."""
    done = CliRunner().invoke(main, ["doctor", "--all", "--json"])
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert (found["command"], found["wrong"], found["checks"]) == ("doctor", [], len(CHECKS) + 2)
    assert found["not_asked"] == []
    assert found["machine"]["dpfast"]
    assert found["keystream_bytes_a_second"] > 0
    assert found["kernels"]["loaded"] + found["kernels"]["compiled"] > 0


def test_what_there_is_no_time_for_is_named(monkeypatch):
    """With an empty cache, and no time at all."""
    monkeypatch.setattr("dpfast.cli.doctor.commands._SECONDS", 0.0)
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code == 0
    assert "nothing could be asked within 0." in done.stdout
    assert "run dpfast warmup, which compiles all, then dpfast doctor again" in done.stdout
    messages = [("names", ["one", "two"]), ("begin", "one"), ("done", ("one", [])), ("begin", "two")]
    monkeypatch.setattr(workers, "make_calls", lambda module, seconds: iter(messages))
    done = CliRunner().invoke(main, ["doctor"])
    assert "1 of 2 as they must be" in done.stdout
    assert "there was no time to compile and ask: two\n" in done.stdout
    assert json.loads(CliRunner().invoke(main, ["doctor", "--json"]).stdout)["not_asked"] == ["two"]


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """Return a function that puts calls, given as bodies by name, in place of the doctor's and warmup's."""

    def written(**bodies):
        lines = ["import os, time", *(f"def {name}():\n{textwrap.indent(body, ' ')}" for name, body in bodies.items())]
        names = ", ".join(f"{name!r}: {name}" for name in bodies)
        (tmp_path / "made_up.py").write_text("\n".join([*lines, f"def calls(): return {{{names}}}"]))
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(asking, "__name__", "made_up")
        monkeypatch.setattr(warming, "__name__", "made_up")

    return written


def _ends(process, seconds=120):
    """Whether a process has ended after so many seconds at most; nobody may have asked for its exit code yet."""
    state = Path(f"/proc/{process}/stat")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("reader", ["terminal", "pipe"])
def test_what_is_being_compiled_is_finished_beside_the_command(tmp_path, made_up, reader):
    """The command is back in time, also for a reader of its output to the end. What it was at is kept, no more begun.

    In the other process the first call ends when the command has, and leaves a file; the second would leave another.
    """
    kept, more, go, noted = tmp_path / "kept", tmp_path / "more", tmp_path / "go", tmp_path / "process"
    made_up(
        one=f"open({str(noted)!r}, 'w').write(str(os.getpid()))\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.05)\n"
        f"open({str(kept)!r}, 'w').close()\nreturn []",
        two=f"open({str(more)!r}, 'w').close()\nreturn []",
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from dpfast.cli.doctor import asking, commands, workers\nfrom dpfast.cli.commands import main\n"
        "asking.__name__ = 'made_up'\nworkers.process_count = lambda: 1\n"
        "commands._SECONDS = 8.0\nmain(['doctor'])"
    )
    stream = subprocess.PIPE if reader == "pipe" else open(tmp_path / "out", "w+b")  # noqa: SIM115
    done = subprocess.run([sys.executable, "-c", code], stdout=stream, stderr=subprocess.STDOUT, check=True)
    said = done.stdout if reader == "pipe" else (tmp_path / "out").read_bytes()
    assert b"run dpfast warmup, which compiles all, then dpfast doctor again" in said
    if not noted.exists():
        pytest.skip("the other process did not begin in time: the machine is busy")
    other = int(noted.read_text())
    assert not kept.exists()
    go.touch()
    assert _ends(other)
    assert kept.exists()
    assert not more.exists()


def test_an_interrupt_ends_all(monkeypatch):
    monkeypatch.setattr(workers, "process_count", lambda: 2)
    messages = workers.make_calls(asking.__name__, 600.0)
    assert next(messages)[0] == "names"
    others = [worker.process for worker in messages.gi_frame.f_locals["workers"]]
    assert len(others) == 2
    messages.close()
    assert all(other.poll() is not None for other in others)


def test_calls_are_made_at_once(tmp_path, made_up, monkeypatch):
    """Each of two calls waits for what the other leaves: one process alone would never end. Each is made once."""
    monkeypatch.setattr(workers, "process_count", lambda: 2)
    meet = "open({own!r}, 'a').write('x')\nwhile not os.path.exists({other!r}): time.sleep(0.01)\nreturn []"
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    made_up(one=meet.format(own=one, other=two), two=meet.format(own=two, other=one), three="return []")
    found = asking.collect(workers.make_calls("made_up"), lambda name, number: None)
    assert sorted(found.right) == ["one", "three", "two"]
    assert (tmp_path / "one").read_text() == (tmp_path / "two").read_text() == "x"


@pytest.mark.parametrize("processes", [1, 2])
def test_a_process_that_dies_is_told(made_up, monkeypatch, processes):
    """A processor without what the kernels were compiled for ends the process, not the command; others go on."""
    monkeypatch.setattr(workers, "process_count", lambda: processes)
    made_up(one="os.abort()", two="return []")
    done = CliRunner().invoke(main, ["doctor", "--all", "--json"])
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert found["wrong"] == ["one: the process died with exit code -6"]
    assert found["not_asked"] == (["two"] if processes == 1 else [])


def test_a_process_that_dies_at_no_call_is_told(made_up, tmp_path, monkeypatch):
    """One call is over when its process dies; the other one ends when that process is gone. Both are right."""
    monkeypatch.setattr(workers, "process_count", lambda: 2)
    noted = str(tmp_path / "noted")
    made_up(
        one=f"while not os.path.exists({noted!r}): time.sleep(0.01)\n"
        f"time.sleep(0.1)\nother = int(open({noted!r}).read())\n"
        "while os.path.exists(f'/proc/{other}'): time.sleep(0.01)\nreturn []",
        two="import threading\nthreading.Timer(0.3, os.abort).start()\n"
        f"open({noted!r}, 'w').write(str(os.getpid()))\nreturn []",
    )
    done = CliRunner().invoke(main, ["doctor", "--all", "--json"])
    found = json.loads(done.stdout)
    assert done.exit_code == 1
    assert found["wrong"] == ["between two calls: the process died with exit code -6"]
    assert (found["checks"], found["not_asked"]) == (2, [])


def test_processes_that_cannot_start_are_told(made_up, monkeypatch):
    monkeypatch.setattr(workers, "process_count", lambda: 2)
    made_up(one="return []")
    monkeypatch.setattr(asking, "__name__", "no_such_module")
    done = CliRunner().invoke(main, ["doctor", "--all", "--json"])
    found = json.loads(done.stdout)
    assert done.exit_code == 1
    assert found["wrong"] == ["between two calls: the process died with exit code 1"] * 2
    assert found["checks"] == 0


def test_checks_are_counted_once_however_much_is_wrong_with_each(made_up):
    made_up(one="return ['first', 'second']", two="return []", three="return ['third']")
    done = CliRunner().invoke(main, ["doctor", "--all", "--json"])
    found = json.loads(done.stdout)
    assert len(found["wrong"]) == 3
    assert found["checks"] == 3


def test_a_call_that_fails_while_compiling_is_told(made_up):
    made_up(one="return None", two="1 // 0")
    done = CliRunner().invoke(main, ["warmup"])
    assert done.exit_code == 1
    assert "FAILED: two: ZeroDivisionError: integer division or modulo by zero" in done.stdout
    made_up(one="os.abort()")
    done = CliRunner().invoke(main, ["warmup", "--json"])
    assert json.loads(done.stdout)["failed"] == ["one: the process died with exit code -6"]


@pytest.mark.usefixtures("here")
@pytest.mark.statistical
def test_a_wrong_answer_is_told(monkeypatch):
    """False-failure rate at most 3e-11: that of `wrong_noise`, twice."""
    wrong = Check("Laplace noise, integers", lambda random: dpf.laplace(np.arange(5), 11.0, random=random))
    monkeypatch.setattr(checks, "CHECKS", (wrong,))
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code == 1
    assert "WRONG: Laplace noise, integers: another answer than it must be" in done.stdout
    assert "do not release anything" in done.stdout


@pytest.mark.usefixtures("here")
@pytest.mark.statistical
def test_a_check_that_fails_is_told(monkeypatch):
    """False-failure rate at most 3e-11: that of `wrong_noise`, twice."""
    monkeypatch.setattr(checks, "CHECKS", (Check("Broken", lambda random: 1 // 0),))
    done = CliRunner().invoke(main, ["doctor", "--json"])
    assert done.exit_code == 1
    assert json.loads(done.stdout)["wrong"][0].startswith("Broken: ZeroDivisionError")


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "draw", "told"),
    [
        ("laplace", lambda values, scale: LAPLACE(values, 11.0), "it is at least"),
        ("gaussian", lambda values, scale: GAUSSIAN(values, 11.0), "it is at least"),
        ("gaussian", lambda values, scale: GAUSSIAN(values, 10.0) + 1, "it is at least"),
        ("laplace", lambda values, scale: LAPLACE(values, 10.0, random=SeededRandom(1)), "repeats itself"),
    ],
)
def test_wrong_noise_is_found(monkeypatch, name, draw, told):
    """Each is missed with probability at most 1e-9.

    A scale of 11 moves the tail at 7 by .016 and more, a shift by 1 that at 0 by .04, where .0037 is far: more than
    twenty deviations of the frequency are between. What repeats itself is never missed.
    """
    monkeypatch.setattr(noise.dpf, name, draw)
    assert any(told in line for line in noise.wrong_noise(name.capitalize()))


def test_fingerprints_tell_values_dtypes_and_shapes_apart():
    arrays = [
        np.arange(4),
        np.arange(4.0),
        np.arange(4).reshape(2, 2),
        np.array([0, 1, 3, 2]),
        np.arange(4, dtype=np.int32),
    ]
    assert len({fingerprint(array) for array in arrays}) == len(arrays)
    assert fingerprint((arrays[0], arrays[1])) != fingerprint((arrays[1], arrays[0]))


@pytest.mark.parametrize("name", CALLS)
def test_calls_that_compile_are_right_calls(name):
    CALLS[name]()


@pytest.mark.long
@pytest.mark.parametrize("processor", [("haswell", "+avx2"), ("nehalem", "+sse4.2")], ids=lambda one: one[0])
def test_answers_are_the_same_on_other_processors(processor, tmp_path):
    code = "from dpfast.cli.doctor.checks import CHECKS; print([c.name for c in CHECKS if c.answer() != c.expected()])"
    name, features = processor
    chosen = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | chosen, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
