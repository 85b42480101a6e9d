"""A cell of a table of errors: a script writes the tables, and ``dpfast bench accuracy`` measures the same in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

from dpfast.bench import Case, Measured, Wish
from dpfast.bench.cases import measured_in_turns

__all__ = ["OURS", "Cell", "Errors", "case_of", "medians", "table_lines"]

OURS = "dpfast"
_ROUNDS, _QUICK_ROUNDS = 15, 7
#: Errors by the contestant's name, ours first; one call is one run.
Errors: TypeAlias = dict[str, Callable[[], float]]


@dataclass(frozen=True)
class Cell:
    """What is asked, and who answers it.

    Attributes
    ----------
    name
        What is asked, of which data.
    unit
        What an error is.
    errors
        Given whether little data are enough, the contestants.
    is_quick
        Whether ``--quick`` has it, of little data.
    row
        What stands first in its line of a script's table.

    """

    name: str
    unit: str
    errors: Callable[[bool], Errors]
    is_quick: bool = False
    row: tuple[str, ...] = ()


def case_of(suite: str, cell: Cell) -> Case:
    """Return a cell as a case: a round is one run of each contestant."""

    def measure(wish: Wish) -> list[Measured]:
        trials = {name: (error, 1) for name, error in cell.errors(wish.is_quick).items()}
        rounds = _QUICK_ROUNDS if wish.is_quick else _ROUNDS
        return measured_in_turns(trials, rounds, unit=cell.unit, warm=False, tell=wish.tell)

    return Case(suite, cell.name, measure, is_quick=cell.is_quick)


def medians(cell: Cell, runs: int) -> dict[str, float]:
    """Return the median error of some runs, by contestant."""
    return {name: median(error() for _ in range(runs)) for name, error in cell.errors(False).items()}


def table_lines(
    first: Sequence[str], cells: Iterable[Cell], columns: Mapping[str, str], runs: int, digits: int = 4
) -> Iterator[str]:
    """Yield the lines of a table as they are measured: a row for each cell, a column for each title's contestant."""
    yield _line([*first, *columns])
    yield "|---" * (len(first) + len(columns)) + "|"
    for cell in cells:
        found = medians(cell, runs)
        yield _line([*cell.row, *(f"{found[name]:.{digits}g}" if name in found else "" for name in columns.values())])


def _line(columns: Iterable[str]) -> str:
    return f"| {' | '.join(columns)} |"
