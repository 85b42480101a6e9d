"""Rounds: contestants run in turns, A B C A B C, so that what slows the machine for a while slows all of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from dpfast.progress import silent

__all__ = ["Trial", "in_turns", "seconds_of", "told_error"]

#: One round of a contestant: it returns a figure, such as the seconds that it took.
Trial: TypeAlias = Callable[[], float]


def seconds_of(run: Callable[[], Any]) -> Trial:
    """Return a trial whose figure is how many seconds a call takes.

    Examples
    --------
    >>> seconds_of(lambda: None)() >= 0
    True

    """

    def timed() -> float:
        begun = time.perf_counter()
        run()
        return time.perf_counter() - begun

    return timed


def in_turns(
    trials: Mapping[str, Trial],
    rounds: int,
    *,
    failures: dict[str, str] | None = None,
    tell: Callable[[int], object] = silent,
) -> dict[str, list[float]]:
    """Return the figures of every trial, a list with one for each round; the trials run in turns.

    Parameters
    ----------
    trials
        By name, in the order in which they take their turns.
    rounds
        How often each runs.
    failures
        Where it is noted what a trial raised, or that its figure was no finite number: the others go on, and the one
        that failed has no figures. Without it, an error goes on to the caller.
    tell
        Called with the number of rounds that are done.

    Examples
    --------
    >>> in_turns({"a": lambda: 1.0, "b": lambda: 2.0}, 2)
    {'a': [1.0, 1.0], 'b': [2.0, 2.0]}

    """
    figures: dict[str, list[float]] = {name: [] for name in trials}
    for done in range(rounds):
        for name, trial in trials.items():
            if failures is not None and name in failures:
                continue
            try:
                figures[name].append(_finite(trial()))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # also sys.exit() in a mechanism
                if failures is None:
                    raise
                failures[name] = told_error(error)
                figures[name] = []
        tell(done + 1)
    return figures


def _finite(figure: float) -> float:
    if not math.isfinite(figure):
        raise ValueError(f"its figure is {figure}, and no finite number")
    return figure


def told_error(error: BaseException) -> str:
    """Return an error in one line.

    Examples
    --------
    >>> told_error(ValueError("no such column"))
    'raised ValueError: no such column'

    """
    text = " ".join(str(error).split())
    return f"raised {type(error).__name__}" + (f": {text[:200]}" if text else "")
