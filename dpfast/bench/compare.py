"""Two files of results, row by row: what got worse beyond noise.

A row is worse if the interval of its figure in NEW lies wholly on the bad side of that in OLD, and its median is worse
by more than a tolerance. Figures are ratios to ours, which do not depend on how fast the machine is; times of ours
count only where nothing was run beside them, and both files are of one machine.

If nothing changed and rounds are exchangeable, a row is called worse with the probability of
`dpfast.bench.spread.false_alarm`: 1 in 3,432 for seven rounds in each file. Rows whose rounds allow no better than 1 in
100 are not judged. Rounds of one process are more alike than those of two (where data lie in memory, what else runs):
the tolerance is there for this, and a row that is called worse is to be measured again before it is believed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import polars as pl

from dpfast.bench.cases import BOUND
from dpfast.bench.spread import false_alarm

__all__ = ["Change", "Comparison", "compare"]

#: Rows whose false alarms are likelier than this are not judged.
_LIKELIEST = 0.01
#: So many of the rows that are gone are named.
_NAMED = 10
Key: TypeAlias = tuple[str, str, str, int]
OURS = "dpfast"


@dataclass(frozen=True)
class Change:
    """How one row changed.

    Attributes
    ----------
    suite, name, contestant, size
        Which row.
    old, new
        The figures: ratios, or times of ours alone.
    factor
        How many times better the new figure is; below 1 where it is worse.
    verdict
        "worse", "better", "same", "new", "gone" or "not judged".
    note
        Why, where figures do not say it.

    """

    suite: str
    name: str
    contestant: str
    size: int
    old: float | None
    new: float | None
    factor: float | None
    verdict: str
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """What changed from one file to another.

    Attributes
    ----------
    changes
        A change for each row that is judged.
    false_alarms
        The probability, at most, that any row is called worse though nothing changed: the sum over rows.
    notes
        What is to be known of both files: other machines, other versions.
    shared
        How many rows of both files were compared; those whose claims alone count among them.

    """

    changes: tuple[Change, ...]
    false_alarms: float
    notes: tuple[str, ...]
    shared: int

    @property
    def is_worse(self) -> bool:
        """Whether anything got worse."""
        return any(change.verdict == "worse" for change in self.changes)

    def explain(self) -> str:
        """Return the verdict in sentences."""
        counted = {word: sum(change.verdict == word for change in self.changes) for word in _VERDICTS}
        told = (
            ", ".join(f"{count} {word}" for word, count in counted.items() if count)
            or f"{self.shared:,} claims as before"
        )
        alarm = f"if nothing changed, a row is called worse with probability {min(self.false_alarms, 1.0):.2g} at most"
        return "\n".join([*self.notes, f"{told}; {alarm}", *self._gone()])

    def _gone(self) -> list[str]:
        """Say which rows NEW lacks, the first ones by name."""
        gone = [change for change in self.changes if change.verdict == "gone"]
        lines = [f"gone: {one.suite}, {one.name}, {one.contestant}, {one.size:,} values" for one in gone[:_NAMED]]
        return lines if len(gone) <= _NAMED else [*lines, f"gone: {len(gone) - _NAMED:,} more"]


_VERDICTS = ("worse", "better", "same", "new", "gone", "not judged")


def compare(old: pl.DataFrame, new: pl.DataFrame, tolerance: float = 0.1) -> Comparison:
    """Compare two frames of results; of rows that were measured several times, the last counts.

    Parameters
    ----------
    old, new
        As `dpfast.bench.results.read_results` returns them.
    tolerance
        A figure that is worse by a smaller share is called the same.

    """
    same_machine = set(old["machine"]) == set(new["machine"])
    before, after = _by_key(old), _by_key(new)
    beside = {key[:2] for key, row in after.items() if row["ratio"] is not None}
    changes, alarms, claims = [], 0.0, 0
    for key in dict.fromkeys([*before, *after]):
        one, other = before.get(key), after.get(key)
        if one is None or other is None:
            verdict, told = ("gone", one) if other is None else ("new", other)
            assert told is not None
            if key[2] != OURS or key[:2] not in beside or told["failure"]:
                changes.append(Change(*key, None, None, None, verdict, told["note"]))
        elif one["failure"] or other["failure"]:
            changes.append(_of_wrong(key, one, other))
        elif other["unit"] == BOUND == one["unit"]:
            claims += 1  # whether it is refuted is what counts, and it is not
        elif other["ratio"] is not None and one["ratio"] is not None:
            changes.append(_judged(key, one, other, "ratio", tolerance))
            alarms += _alarm(one, other)
        elif key[2] == OURS and key[:2] not in beside and other["median"] is not None and one["median"] is not None:
            if other["unit"] == "s" and not same_machine:
                changes.append(Change(*key, one["median"], other["median"], None, "not judged", "other machines"))
                continue
            changes.append(_judged(key, one, other, "median", tolerance))
            alarms += _alarm(one, other)
    shared = claims + sum(change.verdict not in ("new", "gone") for change in changes)
    return Comparison(tuple(changes), alarms, tuple(_notes(old, new)), shared)


def _by_key(frame: pl.DataFrame) -> dict[Key, dict[str, Any]]:
    rows = frame.sort("time").iter_rows(named=True)
    return {(row["suite"], row["name"], row["contestant"], row["size"]): row for row in rows}


def _alarm(one: dict[str, Any], other: dict[str, Any]) -> float:
    chance = false_alarm(one["rounds"], other["rounds"])
    return chance if chance <= _LIKELIEST else 0.0


def _of_wrong(key: Key, one: dict[str, Any], other: dict[str, Any]) -> Change:
    """Compare where a contestant raised or was refuted: of ours, a new failure is worse."""
    if one["failure"] and other["failure"]:
        return Change(*key, None, None, None, "same", f"wrong before: {other['note']}")
    if other["failure"]:
        verdict = "worse" if key[2] == OURS else "not judged"
        return Change(*key, one["ratio"], None, None, verdict, other["note"])
    return Change(*key, None, other["ratio"], None, "better", f"no longer wrong: {one['note']}")


def _judged(key: Key, one: dict[str, Any], other: dict[str, Any], figure: str, tolerance: float) -> Change:
    low, high = ("ratio_low", "ratio_high") if figure == "ratio" else ("low", "high")
    old, new = one[figure], other[figure]
    # A ratio is better where it is larger, a time or an error where it is smaller.
    factor = (new / old if figure == "ratio" else old / new) if old > 0 and new > 0 else 1.0
    above, below = other[low] > one[high], other[high] < one[low]
    worse, better = (below, above) if figure == "ratio" else (above, below)
    if not all(math.isfinite(row[column]) for row in (one, other) for column in (figure, low, high)):
        return Change(*key, old, new, None, "not judged", "a figure is no finite number")
    chance = false_alarm(one["rounds"], other["rounds"])
    if chance > _LIKELIEST:
        rounds = f"{one['rounds']} and {other['rounds']} rounds are too few"
        return Change(*key, old, new, factor, "not judged", rounds)
    if worse and factor < 1 / (1 + tolerance):
        return Change(*key, old, new, factor, "worse")
    if better and factor > 1 + tolerance:
        return Change(*key, old, new, factor, "better")
    return Change(*key, old, new, factor, "same")


def _notes(old: pl.DataFrame, new: pl.DataFrame) -> Iterable[str]:
    for column, told in (
        ("machine", "OLD and NEW are of different machines: ratios alone are compared"),
        ("dpfast", ""),
    ):
        one, other = (", ".join(sorted(set(frame[column].drop_nulls()))) for frame in (old, new))
        if one != other:
            yield f"{told} (OLD: {one}; NEW: {other})" if told else f"OLD is of dpfast {one}, NEW of dpfast {other}"
