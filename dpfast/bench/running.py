"""Running the cases of suites, one after the other: what fails is noted, and what was measured is never lost."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any

from dpfast.bench.cases import SUITES, Case, Measured, Wish
from dpfast.bench.finding import suite_module
from dpfast.bench.results import About, rows_of
from dpfast.bench.rounds import told_error
from dpfast.bench.worker import Worker
from dpfast.errors import ParameterError

__all__ = ["Run", "cases_of", "run_cases"]


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

    Cases of the suites are measured in another process: a library that crashes takes one case with it. What contestants
    print never goes to standard output, where tables stand, or a document.
    """
    worker = Worker()
    try:
        for case in cases:
            wish.tell(f"{case.suite}: {case.name}")
            measured = worker.measure(case, wish) if case.is_known else _measured_here(case, wish)
            if case.alone and not wish.is_quick:
                worker.end()
            rows = rows_of(case, measured, about)
            run.rows += rows
            shown(case, rows)
        run.is_whole = True
    finally:
        worker.end(at_once=not run.is_whole)


def _measured_here(case: Case, wish: Wish) -> list[Measured]:
    """Measure what only this process knows."""
    try:
        with redirect_stdout(sys.stderr):
            return list(case.measure(wish))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also sys.exit() in a mechanism
        return [Measured("dpfast", 0, (), failure="raised", note=told_error(error))]
