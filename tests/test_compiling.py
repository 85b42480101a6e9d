"""Two processes of the tests that need the same kernel at once: one compiles it, the other one loads it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: Compiles a kernel, the first process with a pause in the middle; says that it has begun, and how often it compiled.
SCRIPT = """
import sys
import numba
from numba.core import event
from kernels_of_test import total
from tests.compiling import compile_once

class Beginning(event.Listener):
    begun = 0

    def on_start(self, started):
        if started.data["dispatcher"] is total:
            self.begun += 1
            if sys.argv[1] == "first":
                print("begun", flush=True)
                sys.stdin.readline()

    def on_end(self, ended):
        pass

if sys.argv[2] == "once":
    compile_once()
beginning = Beginning()
event.register("numba:compile", beginning)
numba.njit(lambda: None)()  # what Numba does once is done
if sys.argv[1] == "second":
    print("begun", flush=True)
assert total(3) == 3
print(beginning.begun)
"""
KERNEL = """
import numba

@numba.njit(cache=True)
def total(n):
    s = 0
    for i in range(n):
        s += i
    return s
"""


def compiled_by_two(folder, how):
    """Return how often each of two processes compiled the kernel: the second asks for it while the first compiles.

    The first one goes on at once or, where the second need not wait for it, when that has ended.
    """
    (folder / "kernels_of_test.py").write_text(KERNEL)
    path = os.pathsep.join([str(folder), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder / how)}
    processes = []
    for place in ("first", "second"):
        command = [sys.executable, "-c", SCRIPT, place, how]
        processes.append(
            subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        assert processes[-1].stdout.readline() == "begun\n"
    first, second = processes
    ending = (first, second) if how == "once" else (second, first)
    counts = {process: int(process.communicate("\n", timeout=1200)[0]) for process in ending}
    return [counts[first], counts[second]]


def test_the_second_process_loads_what_the_first_one_compiles(tmp_path):
    assert compiled_by_two(tmp_path, "once") == [1, 0]


def test_without_it_both_would_compile(tmp_path):
    """The mutant."""
    assert compiled_by_two(tmp_path, "twice") == [1, 1]
