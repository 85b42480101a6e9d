"""Events: which there are, and which of them one part of the outputs recommends, by another part.

Three parts of the outputs have three tasks, and no output has two. The first, `Parts.teach`, makes events: thresholds
from its quantiles, sets of values and of intervals by how much likelier they are on one input. The second,
`Parts.choose`, says how often each happens, and the one with the largest lower bound of epsilon is chosen. The third,
`Parts.measure`, is not looked at before one event is left: so the limits of its two probabilities hold with the
confidence of a single test, however many events there were.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfast.auditing.features import Feature
from dpfast.auditing.outputs import Category

__all__ = ["Claim", "Event", "Parts", "chosen_event", "events_of_categories", "events_of_numbers"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_CUTS = 256
_BINS = 64
#: Of a category, so many values are events by themselves.
_SINGLES = 64
#: An event of many values is taken only if it shows so much more than a single one.
_PLAINER = 0.99


@dataclass(frozen=True)
class Parts:
    """Which rows have which task: of each, those of x and those of its neighbour."""

    size: int

    @property
    def teach(self) -> tuple[slice, slice]:
        """The first quarter."""
        return self._between(0, self.size // 4)

    @property
    def choose(self) -> tuple[slice, slice]:
        """The second quarter."""
        return self._between(self.size // 4, self.size // 2)

    @property
    def measure(self) -> tuple[slice, slice]:
        """The second half."""
        return self._between(self.size // 2, self.size)

    def _between(self, start: int, stop: int) -> tuple[slice, slice]:
        return slice(start, stop), slice(self.size + start, self.size + stop)


@dataclass(frozen=True)
class Claim:
    """What events are judged by: the claimed delta, and the probability of a false alarm."""

    delta: float
    miss: float

    def best(self, p: Floats, q: Floats, trials: int) -> tuple[float, int]:
        """Return about the lower bound of epsilon that the best of many events would give, and its place.

        ``p`` and ``q`` are how often the events happen on the input that they favour, and on the other one. The outputs
        that measure are twice as many as those that choose, and are taken to be like them.
        """
        low, high = rough_limits(2 * p, 2 * q, 2 * trials, self.miss / 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            merits = np.where(low > self.delta, np.log((low - self.delta) / high), -np.inf)
        place = int(np.argmax(merits))
        return float(merits[place]), place


def rough_limits(p: Floats, q: Floats, trials: int, miss: float) -> tuple[Floats, Floats]:
    """Return about the lower limits of ``p`` and the upper limits of ``q``, fast: they certify nothing.

    The root of a number of successes has the same spread whatever its mean; one of many trials, less a share.
    """

    def low(k: Floats) -> Floats:
        root: Floats = np.maximum(0.0, np.sqrt(k) - np.sqrt(room(k) / 2))
        return root * root

    def high(k: Floats) -> Floats:
        return k + np.sqrt(2 * room(k) * k + np.square(room(k)) / 4) + room(k) / 2

    def room(k: Floats) -> Floats:
        return -math.log(miss) * (1.0 - k / trials)

    # Where most trials succeed, it is the failures that are few.
    lower = np.where(2 * p <= trials, low(p), trials - high(trials - p))
    upper = np.where(2 * q <= trials, high(q), trials - low(trials - q))
    return lower / trials, np.minimum(upper / trials, 1.0)


@dataclass(frozen=True)
class Event:
    """An event that was recommended.

    Attributes
    ----------
    merit
        About the lower bound of epsilon that it would give, less a little if it takes many words.
    favours
        0 if it is likelier on x, 1 if on its neighbour.
    words
        What happens.
    holds
        Whether it did, for every output.

    """

    merit: float
    favours: int
    words: str
    holds: Flags


def chosen_event(events: Iterable[Event]) -> Event | None:
    """Return the event of the largest merit; None if no event shows anything."""
    best = max(events, key=lambda event: event.merit, default=None)
    return best if best is not None and best.merit > 0 else None


def events_of_numbers(features: Iterable[Feature], parts: Parts, claim: Claim) -> Iterator[Event]:
    """Yield the best threshold of each feature, and the best set of intervals."""
    for feature in features:
        values = feature.values
        taught = [_present(values[part]) for part in parts.teach]
        if not taught[0].size + taught[1].size:
            continue
        cuts = _cuts(*taught)
        seen = [np.sort(_present(values[part])) for part in parts.choose]
        yield from _thresholds(feature, cuts, seen, parts, claim)
        yield from _intervals(feature, cuts, taught, seen, parts, claim)


def _present(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def _cuts(one: Floats, other: Floats) -> Floats:
    """Return quantiles of both sides, and their outermost values, for rare events stand there."""
    chosen = []
    for values in (np.sort(one), np.sort(other)):
        if values.size:
            steps = np.unique(np.geomspace(1, max(1, values.size // 4), 24).astype(np.int64)) - 1
            even = np.linspace(0, values.size - 1, _CUTS).astype(np.int64)
            chosen += [values[even], values[steps], values[values.size - 1 - steps]]
    cuts: Floats = np.unique(np.concatenate(chosen))
    return cuts


def _trials(part: tuple[slice, slice]) -> int:
    return int(part[0].stop - part[0].start)


def _best(p: Floats, q: Floats, trials: int, claim: Claim) -> tuple[float, int, int]:
    """Return the best merit, the place of its event, and which input the event favours."""
    one, other = claim.best(p, q, trials), claim.best(q, p, trials)
    return (*one, 0) if one[0] >= other[0] else (*other, 1)


def _thresholds(feature: Feature, cuts: Floats, seen: list[Floats], parts: Parts, claim: Claim) -> Iterator[Event]:
    trials = _trials(parts.choose)
    below = [np.searchsorted(values, cuts, side="right").astype(np.float64) for values in seen]
    above = [(values.size - np.searchsorted(values, cuts, side="left")).astype(np.float64) for values in seen]
    merit, place, favours = _best(below[0], below[1], trials, claim)
    cut = float(cuts[place])
    yield Event(merit, favours, feature.below(cut), feature.values <= cut)
    merit, place, favours = _best(above[0], above[1], trials, claim)
    cut = float(cuts[place])
    yield Event(merit, favours, feature.above(cut), feature.values >= cut)


def _intervals(
    feature: Feature, cuts: Floats, taught: list[Floats], seen: list[Floats], parts: Parts, claim: Claim
) -> Iterator[Event]:
    """Yield the best union of intervals, in the order in which one input favours them."""
    edges = cuts[np.unique(np.linspace(0, cuts.size - 1, min(_BINS, cuts.size)).astype(np.int64))]
    if edges.size < 3:
        return
    sizes = [np.bincount(np.searchsorted(edges, values, side="right"), minlength=edges.size + 1) for values in taught]
    counts = [np.bincount(np.searchsorted(edges, values, side="right"), minlength=edges.size + 1) for values in seen]
    for favours, merit, kept in _unions(sizes, counts, _trials(parts.choose), claim):
        inside = np.zeros(edges.size + 1, np.bool_)
        inside[kept] = True
        present = ~np.isnan(feature.values)
        where = np.searchsorted(edges, np.where(present, feature.values, 0.0), side="right")
        words = f"{feature.within} is in {_intervals_in_words(edges, inside)}"
        yield Event(merit * _PLAINER, favours, words, present & inside[where])


def _intervals_in_words(edges: Floats, inside: Flags) -> str:
    ends = [-math.inf, *edges.tolist(), math.inf]
    runs: list[list[float]] = []
    for place in np.flatnonzero(inside).tolist():
        if runs and runs[-1][1] == ends[place]:
            runs[-1][1] = ends[place + 1]
        else:
            runs.append([ends[place], ends[place + 1]])
    shown = ", ".join(f"[{low:.6g}, {high:.6g})" for low, high in runs[:4])
    return shown if len(runs) <= 4 else f"{shown} and {len(runs) - 4} more intervals"


def _unions(
    sizes: list[NDArray[np.int64]], counts: list[NDArray[np.int64]], trials: int, claim: Claim
) -> Iterator[tuple[int, float, NDArray[np.int64]]]:
    """Yield, for each input, the best set of kinds that it favours: (input, merit, kinds).

    Kinds are put in order by the outputs that teach, and the set's size is chosen by those that choose.
    """
    ratio = np.log((sizes[0] + 0.5) / (sizes[1] + 0.5))
    # Kinds that nobody has seen twice are neither here nor there.
    for favours, order in ((0, np.argsort(-ratio, kind="stable")), (1, np.argsort(ratio, kind="stable"))):
        p, q = (np.cumsum(counts[side][order]).astype(np.float64) for side in (favours, 1 - favours))
        merit, best = claim.best(p, q, trials)
        yield favours, merit, order[: best + 1]


def events_of_categories(categories: Iterable[Category], parts: Parts, claim: Claim) -> Iterator[Event]:
    """Yield the best value of each category, and the best set of values."""
    trials = _trials(parts.choose)
    for category in categories:
        sizes = [_counted(category, part) for part in parts.teach]
        counts = [_counted(category, part) for part in parts.choose]
        known = np.flatnonzero(sizes[0] + sizes[1] > 1)
        if known.size == 0:
            continue
        common = known[np.argsort(-(sizes[0] + sizes[1])[known], kind="stable")][:_SINGLES]
        p, q = (one[common].astype(np.float64) for one in counts)
        merit, place, favours = _best(p, q, trials, claim)
        code = int(common[place])
        yield Event(merit, favours, category.words(code), category.codes == code)
        if known.size > 1 and category.among:
            yield from _sets(category, known, sizes, counts, trials, claim)


def _counted(category: Category, part: slice) -> NDArray[np.int64]:
    codes = category.codes[part]
    return np.bincount(codes[codes >= 0], minlength=category.size).astype(np.int64)


def _sets(
    category: Category,
    known: NDArray[np.int64],
    sizes: list[NDArray[np.int64]],
    counts: list[NDArray[np.int64]],
    trials: int,
    claim: Claim,
) -> Iterator[Event]:
    within = [one[known] for one in sizes], [one[known] for one in counts]
    for favours, merit, kept in _unions(*within, trials, claim):
        inside = np.zeros(category.size + 1, np.bool_)  # the last is that of -1
        inside[known[kept]] = True
        first = category.words(int(known[kept[0]]))
        words = first if kept.size == 1 else f"one of {kept.size:,} {category.among}, such as: {first}"
        yield Event(merit * _PLAINER, favours, words, inside[category.codes])
