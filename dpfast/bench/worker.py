"""A process beside this one that measures cases: what crashes or ends its interpreter ends it alone.

A request and its answers are lines of JSON: what contestants print goes to a file of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress

from dpfast.bench.cases import Case, Measured, Wish
from dpfast.bench.finding import CHECKOUT, suite_module

__all__ = ["Worker"]

#: So many seconds a process has to end by itself.
_PATIENCE = 10.0


class Worker:
    """A process that measures one case after the other, and is begun again where it ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._printed = tempfile.TemporaryFile(mode="w+", errors="replace")  # noqa: SIM115  # it lasts as long as this

    def measure(self, case: Case, wish: Wish) -> list[Measured]:
        """Return what was measured of a case; where the process ended in it, a row that says how.

        Parameters
        ----------
        case
            One that another process finds by its suite and name.
        wish
            How it is measured; ``tell`` is told how far it has come.

        """
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            asked = {"suite": case.suite, "name": case.name, "is_quick": wish.is_quick, "largest": wish.largest}
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                answer = json.loads(line)
                if "told" in answer:
                    wish.tell(answer["told"])
                    continue
                suite_module("contestants").FAILED.update(answer["failed"])
                return [Measured(**{**one, "figures": tuple(one["figures"])}) for one in answer["measured"]]
        told = f"its process {self._how_it_ended(process)}"
        self._process = None
        return [Measured("dpfast", 0, (), failure="raised", note=told)]

    def end(self, *, at_once: bool = False) -> None:
        """Let the process end, or interrupt what it is at; then what is left of it and of its children is killed."""
        process, self._process = self._process, None
        if process is None:
            return
        if at_once:
            process.send_signal(signal.SIGINT)
        with suppress(BrokenPipeError, subprocess.TimeoutExpired):
            process.communicate(timeout=_PATIENCE)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            paths = [str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])]
            self._printed.seek(0)
            self._printed.truncate()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "dpfast.bench"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                stderr=self._printed, env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)}, start_new_session=True,
            )  # fmt: skip
        return self._process

    def _how_it_ended(self, process: subprocess.Popen[str]) -> str:
        code = process.wait()
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        self._printed.seek(0)
        lines = [line.strip() for line in self._printed]
        # The line that was running, as `faulthandler` writes it; else what was printed last.
        places = [line for line in lines if line.startswith("File ") and "/dpfast/" not in line]
        told = places[0] if places and code < 0 else lines[-1] if lines else ""
        return f"{how}: {told[:200]}" if told else how
