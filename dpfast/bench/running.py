"""Running the cases of suites, one after the other: what fails is noted, and what was measured is never lost."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any

from dpfast.bench.cases import SUITES, Case, Measured, Wish
from dpfast.bench.finding import suite_module
from dpfast.bench.results import About, rows_of
from dpfast.bench.rounds import told_error
from dpfast.errors import ParameterError

__all__ = ["Run", "cases_of", "measure_alone", "run_cases"]


@dataclass
class Run:
    """What has been measured so far.

    Attributes
    ----------
    rows
        Of results, in their order.
    is_whole
        Whether all cases were run: False after an interrupt.

    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    is_whole: bool = False


def cases_of(suites: Sequence[str], wish: Wish, only: str = "") -> list[Case]:
    """Return the cases of these suites, all without any, whose names contain a text.

    Raises
    ------
    ParameterError
        There is no such suite, or no such case, or a suite that runs no mechanism of a user although there is one.

    """
    for suite in suites:
        if suite not in SUITES:
            raise ParameterError("suite", suite, f"one of {', '.join(SUITES)}")
        if wish.own is not None and not suite_module("suites").cases(suite, wish):
            takers = ", ".join(one for one in SUITES if suite_module("suites").cases(one, wish))
            allowed = f"one that runs a mechanism of your own ({takers})"
            raise ParameterError("suite", suite, allowed, "name one of these, or leave --mechanism out")
    chosen = [suite for suite in SUITES if suite in suites] or list(SUITES)
    cases = [
        case
        for suite in chosen
        for case in suite_module("suites").cases(suite, wish)
        if only.lower() in case.name.lower() and (case.is_quick or not wish.is_quick)
    ]
    if not cases:
        raise ParameterError("only", only, "a text that the name of a case contains", "see dpfast bench --list")
    return cases


def run_cases(
    cases: Iterable[Case],
    wish: Wish,
    about: About,
    run: Run,
    shown: Callable[[Case, list[dict[str, Any]]], object],
) -> None:
    """Measure cases into a run, and show the rows of each as it is done. An interrupt ends it; the rows stay.

    What contestants print goes to standard error: on standard output stand tables, or a document.
    """
    for case in cases:
        wish.tell(f"{case.suite}: {case.name}")
        try:
            if case.alone and not wish.is_quick and wish.own is None:
                measured = measure_alone(case, wish)
            else:
                with redirect_stdout(sys.stderr):
                    measured = list(case.measure(wish))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also sys.exit() in a mechanism
            measured = [Measured("dpfast", 0, (), failure="raised", note=told_error(error))]
        rows = rows_of(case, measured, about)
        run.rows += rows
        shown(case, rows)
    run.is_whole = True


def measure_alone(case: Case, wish: Wish) -> list[Measured]:
    """Measure a case in a process of its own, as in a script of a user.

    Raises
    ------
    RuntimeError
        The process failed.

    """
    command = [sys.executable, "-m", "dpfast.bench", case.suite, case.name, str(wish.largest)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == -2:
        raise KeyboardInterrupt
    if done.returncode:
        told = (done.stderr.strip().splitlines() or [""])[-1]
        raise RuntimeError(f"its process ended with {done.returncode}: {told}")
    found = json.loads(done.stdout.splitlines()[-1])
    suite_module("contestants").FAILED.update(found["failed"])
    return [Measured(**{**one, "figures": tuple(one["figures"])}) for one in found["measured"]]


def measure_here(suite: str, name: str, largest: int) -> str:
    """Measure one case in this process, and return what was measured, and whose import failed, as JSON."""
    wish = Wish(largest=largest)
    case = next(case for case in cases_of([suite], wish) if case.name == name)
    measured = [dataclasses.asdict(one) for one in case.measure(wish)]
    return json.dumps({"measured": measured, "failed": suite_module("contestants").FAILED})
