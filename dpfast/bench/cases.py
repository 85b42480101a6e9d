"""What a suite is made of: cases, each of which measures several contestants at one thing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from dpfast.bench.own import Budget, Mechanism
from dpfast.bench.rounds import Trial, in_turns, told_error
from dpfast.progress import silent

__all__ = ["BOUND", "SECONDS", "SUITES", "Case", "Measured", "Wish", "measured_in_turns"]

#: In the order in which they run.
SUITES = ("speed", "accuracy", "accounting", "pipeline", "privacy", "scaling")
SECONDS = "s"
#: Of figures that are bounds of epsilon from below: whether a claim is refuted counts, not how large they are.
BOUND = "epsilon"


@dataclass(frozen=True)
class Wish:
    """How cases are to be measured.

    Attributes
    ----------
    is_quick
        Whether small sizes and few rounds are enough.
    own
        The mechanism that the user gave, with its name; None without one.
    budget
        What it may spend.
    largest
        The most rows of the scaling suite.
    tell
        Told in words how far a case has come.

    """

    is_quick: bool = False
    own: tuple[str, Mechanism] | None = None
    budget: Budget = field(default_factory=lambda: Budget(1.0))
    largest: int = 10**7
    tell: Callable[[str], object] = silent


@dataclass(frozen=True)
class Measured:
    """What was measured of one contestant.

    Attributes
    ----------
    contestant
        Its name; ours is "dpfast".
    size
        How many values, rows or samples it took.
    figures
        One for each round; empty where it failed.
    unit
        What a figure is: "s" of seconds, or the name of an error.
    per_value
        Whether ratios are of figures divided by sizes: times of contestants that took fewer values.
    peak
        The most memory of its process in MB, where that was measured.
    failure
        "raised" or "refuted", where a contestant raised or a claim of it was refuted.
    note
        What there is to say beside the figures.
    is_first
        Whether it is what those after it are compared to, as the first one always is: ours, at another size.

    """

    contestant: str
    size: int
    figures: tuple[float, ...]
    unit: str = SECONDS
    per_value: bool = False
    peak: float | None = None
    failure: str = ""
    note: str = ""
    is_first: bool = False


@dataclass(frozen=True)
class Case:
    """One thing that contestants do, and how it is measured.

    Attributes
    ----------
    suite, name
        Where it belongs, and what is done.
    measure
        From a wish to what was measured, the contestant first to which the others are compared.
    is_quick
        Whether ``--quick`` runs it.
    alone
        Whether it is measured in a process of its own where there is time: what ran before changes how memory is handed
        out.
    is_known
        Whether another process finds it by its suite and name, so that it is measured there.

    """

    suite: str
    name: str
    measure: Callable[[Wish], Iterable[Measured]]
    is_quick: bool = False
    alone: bool = False
    is_known: bool = False


def measured_in_turns(
    trials: Mapping[str, tuple[Trial, int]],
    rounds: int,
    *,
    unit: str = SECONDS,
    warm: bool = True,
    tell: Callable[[str], object] = silent,
) -> list[Measured]:
    """Run contestants in turns, each with the number of values that it takes; one that raises is said to have raised.

    Parameters
    ----------
    trials
        By the contestant's name: a round of it, and how many values it takes.
    rounds
        How often each runs.
    unit
        What a figure is.
    warm
        Whether each runs once before, uncounted, as the first call may compile.
    tell
        Told in words how far they have come.

    Examples
    --------
    >>> [one.note for one in measured_in_turns({"a": (lambda: 1.0, 5), "b": (lambda: 1 / 0, 5)}, 2)]
    ['', 'raised ZeroDivisionError: division by zero']

    """
    failures: dict[str, str] = {}
    if warm:
        for name, (trial, _) in trials.items():
            try:
                trial()
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # also sys.exit() in a mechanism
                failures[name] = told_error(error)
    each = {name: trial for name, (trial, _) in trials.items()}
    found = in_turns(each, rounds, failures=failures, tell=lambda done: tell(f"round {done} of {rounds}"))
    return [
        Measured(
            name,
            size,
            tuple(found[name]),
            unit,
            per_value=unit == SECONDS,
            failure="raised" if name in failures else "",
            note=failures.get(name, ""),
        )
        for name, (_, size) in trials.items()
    ]
