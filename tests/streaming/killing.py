"""Run in a process of its own: forks children that step a kept counter and die, anywhere.

    python killing.py FOLDER MECHANISM

Prints what the parent checked; ends with 1 if something is wrong.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import struct
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import LedgerError
from dpfast.testing import SeededRandom

HORIZON, COUNTERS = 25, 5
#: Every so many lines: with all mechanisms together, all of them.
STRIDE = 8
ROOM = Path(dpf.__file__).parent / "streaming"


def increments(step):
    return np.random.default_rng(step).integers(0, 9, COUNTERS)


def in_child(work):
    """Fork a child that does the work with a pipe to say things by; return its process and the pipe's other end."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(reading)
            work(lambda step, figures: os.write(writing, struct.pack(f"<{COUNTERS + 1}q", step, *figures)))
        finally:
            os._exit(0)
    os.close(writing)
    return process, reading


def said(process, reading):
    content = b""
    while got := os.read(reading, 65536):
        content += got
    os.close(reading)
    os.waitpid(process, 0)
    each = struct.calcsize(f"<{COUNTERS + 1}q")
    for start in range(0, len(content), each):
        step, *figures = struct.unpack(f"<{COUNTERS + 1}q", content[start : start + each])
        yield step, figures


def stepping(path):
    def work(say):
        counter = dpf.restore_counter(path)
        while counter.steps < HORIZON:
            step = counter.steps + 1
            say(step, counter.step(increments(step)))

    return work


def at_random(path, reference):
    """Kill at random moments until the horizon is over: every step's figures are handed out once, and are right."""
    seen, lives, longest = {}, 0, 0.01
    while len(seen) < HORIZON:
        process, reading = in_child(stepping(path))
        time.sleep(random.uniform(0.0, longest))
        # A busy machine takes longer to begin.
        longest *= 1.1
        os.kill(process, signal.SIGKILL)
        lives += 1
        for step, figures in said(process, reading):
            assert step not in seen, "a step was taken twice"
            seen[step] = figures
        with dpf.restore_counter(path) as counter:
            # What was written and not said is still there: nothing is lost.
            if counter.steps and counter.steps not in seen:
                seen[counter.steps] = counter.released.tolist()
            assert sorted(seen) == [*range(1, counter.steps + 1)]
            assert counter.steps == 0 or counter.released.tolist() == seen[counter.steps]
    if reference is not None:
        assert seen == reference, "a step's noise differs"
    print(f"{lives} lives")


def at_every_line(path, reference):
    """Kill before every line of the room that a step goes through: the state is the one before, or the one after."""
    with dpf.restore_counter(path) as counter:
        step = counter.steps + 1
    beside = path.with_suffix(".copy")
    shutil.copy(path, beside)
    killed, place = 0, random.randrange(STRIDE)
    while True:
        shutil.copy(beside, path)

        def work(say, place=place):
            counter, left = dpf.restore_counter(path), place

            def trace(frame, event, _):
                nonlocal left
                if not frame.f_code.co_filename.startswith(str(ROOM)):
                    return None
                if event == "line":
                    left -= 1
                    if left < 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                return trace

            sys.settrace(trace)
            figures = counter.step(increments(step))
            sys.settrace(None)
            say(step, figures)

        process, reading = in_child(work)
        out = dict(said(process, reading))
        with dpf.restore_counter(path) as counter:
            assert counter.steps in (step - 1, step)
            assert not out or counter.steps == step
            if reference is not None:
                # Who does not know may try again.
                again = counter.step(increments(step), number=step).tolist()
                assert again == reference[step]
                assert out.get(step, again) == again
                with pytest.raises(LedgerError, match="other increments"):
                    counter.step(increments(step) + 1, number=step)
        if out:
            break
        killed, place = killed + 1, place + STRIDE
    shutil.copy(beside, path)
    print(f"killed at {killed} lines")
    assert killed > 10


def without_disk(path):
    """Fail to write: no figure is handed out, and the file has the state before."""

    def work(say):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        counter = dpf.restore_counter(path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        for words in ("cannot be written", "was interrupted"):
            with pytest.raises(LedgerError, match=words):
                counter.step(increments(counter.steps))
        say(0, [0] * COUNTERS)

    with dpf.restore_counter(path) as counter:
        steps = counter.steps
    assert len(list(said(*in_child(work)))) == 1
    with dpf.restore_counter(path) as counter:
        assert counter.steps == steps


def main(folder, mechanism):
    path = folder / "counter.arrow"
    budget = {"epsilon": 1.0} if mechanism in ("pan_private", "tree") else {"rho": 0.5}
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    random.seed(seed)
    dpf.continual_count(
        HORIZON, mechanism=mechanism, counters=COUNTERS, path=path, random=SeededRandom(1), **budget
    ).close()
    # Kernels are loaded here, not in every child.
    dpf.continual_count(HORIZON, mechanism=mechanism, counters=COUNTERS, **budget).step(increments(1))
    reference = None
    if mechanism != "pan_private":
        shutil.copy(path, folder / "first")
        with dpf.restore_counter(folder / "first") as counter:
            reference = {step: counter.step(increments(step)).tolist() for step in range(1, HORIZON + 1)}
        noise = [tuple(np.subtract(reference[step], reference.get(step - 1, [0] * COUNTERS))) for step in reference]
        assert len(set(noise)) > HORIZON // 2
    at_every_line(path, reference)
    without_disk(path)
    at_random(path, reference)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
