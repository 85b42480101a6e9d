"""Errors that are wished for: how they are written, and how far answers are off by what is planned for them.

An error is what `Plan.to_frame` calls ``error95``: the noise exceeds it with probability 0.05 at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, TypeAlias

from dpfast.accounting.budget import LARGEST_RHO, Kind
from dpfast.arguments import Number, Real, Special, Whole
from dpfast.errors import ParameterError, Words
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units, to_float
from dpfast.mechanisms.noise.joint_widths import Noise, joint_reach
from dpfast.queries import Query, UnitQuery
from dpfast.releases.mean_noise import MeanNoise
from dpfast.releases.planned_queries import Combined, NoisyMeasure, Part

__all__ = [
    "ERROR",
    "MISS",
    "Limit",
    "Wish",
    "Wishes",
    "check_limit",
    "half_range",
    "limit_of",
    "read_limit",
    "read_wishes",
    "refuse_wishes",
]

#: The probability with which an error that is wished may be exceeded.
MISS = 0.05
#: How far an answer may be off.
ERROR = Number(0, above=True)
_ROWS = Whole(1, 2**38)
_PLAIN = (
    "count",
    "filtered_count",
    "units",
    "sum",
    "count_distinct",
    "histogram",
    "quantile",
    "minimum",
    "maximum",
    "mode",
)
_DIVIDED = ("mean", "proportion")
_WRITTEN = "write for example error={'n': 50, 'late': ('mean', 2.0, 200)}"


def _no_wishes() -> Iterator[object]:
    yield from (True, "", "even", b"n", ["n"], ("n", 1), {}, {"none such": 1}, {1: 1}, object())


def _no_limits() -> Iterator[object]:
    yield from (0, -1, True, "", "delta", "EPSILON", ("rho",), ("rho", 0), ("delta", 1), ("rho", None), [1], object())


#: What is wished for each query by its name: an error, or for a mean that error in a group of so many rows; of a
#: workload the root mean square error of all answers.
Wishes: TypeAlias = Annotated[
    Mapping[str, Real | tuple[str, Real, int]] | Real | None,
    Special(_no_wishes, optional=True),
]
#: What wishes may cost at most, and whether that is counted in epsilon or in rho.
Limit: TypeAlias = Annotated[
    Real | Literal["epsilon", "rho"] | tuple[Literal["epsilon", "rho"], Real] | None,
    Special(_no_limits, optional=True),
]


@dataclass(frozen=True)
class Wish:
    """What is wished for a query.

    Attributes
    ----------
    name, query
        Whose.
    error
        In the query's own unit; of quantiles in ranks, of modes in rows.
    rows
        In a group of how many rows, or units for a mean of units; None where that does not matter.

    """

    name: str
    query: Query
    error: float
    rows: int | None

    @cached_property
    def _beyond(self) -> float:
        return half_range(self.query)

    def reached(self, parts: Sequence[Part]) -> float:
        """Return the error of what is planned: exceeded with probability 0.05 at most. Of means see `MeanNoise`."""
        if self.rows is None:
            return parts[0].reach(MISS)
        summed, counted = parts
        assert isinstance(summed, NoisyMeasure)
        assert isinstance(counted, (NoisyMeasure, Combined))
        noises = summed.noises(summed.step), counted.noises(1.0)
        reached = MeanNoise(*noises, self._beyond).error(self.rows, MISS)
        # Both are true bounds; they may differ in the last digits.
        return min(reached, self.error) if self.is_met(noises) else reached

    def is_met(self, noises: Sequence[Sequence[Noise]]) -> bool:
        """Return whether noise on the figures of a query is within the wish, worth what it counts in its unit."""
        if self.rows is None:
            # What two numbers of rows make together is one as well.
            reach = joint_reach(noises[0], MISS)
            return (reach if len(noises[0]) == 1 else math.floor(reach)) <= self.error
        summed, counted = map(tuple, noises)
        return MeanNoise(summed, counted, self._beyond).is_within(self.error, self.rows, MISS)

    def said(self, parts: Sequence[Part]) -> str:
        """Return the wish in words, and what is reached."""
        place = (
            ""
            if self.rows is None
            else f" in groups of {self.rows} {'units' if isinstance(self.query, UnitQuery) else 'rows'}"
        )
        return f"{self.name} {self.error:g}{place} (is {self.reached(parts):g})"


def half_range(query: Query) -> float:
    """Return half of the width of a query's bounds, of dates and times in seconds; of a proportion's, 1/2."""
    lower, upper = query.limits()
    return float((upper - lower) / 2 * query.values.tick)


def read_wishes(given: object, queries: Mapping[str, Query]) -> dict[str, Wish]:
    """Return what is wished for every query.

    Raises
    ------
    ParameterError
        A query is missing or not there, or a wish is none of its kind.

    Examples
    --------
    >>> import dpfast as dpf
    >>> read_wishes({"n": 50}, {"n": dpf.count(), "late": dpf.mean("delay", bounds=(0, 60))})
    Traceback (most recent call last):
    ...
    dpfast.errors.ParameterError: error must be a mapping with a wish for every query, also for 'late', but was \
{'n': 50}; write for example error={'n': 50, 'late': ('mean', 2.0, 200)}

    """
    if not isinstance(given, Mapping) or not given:
        raise ParameterError("error", given, "a mapping with a wish for every query", _WRITTEN)
    for name in given:
        if type(name) is not str or name not in queries:
            raise ParameterError("error", name, f"made of {', '.join(map(repr, queries))}", _WRITTEN)
    if missing := [name for name in queries if name not in given]:
        allowed = f"a mapping with a wish for every query, also for {', '.join(map(repr, missing))}"
        raise ParameterError("error", dict(given), allowed, _WRITTEN)
    return {name: _read_wish(name, query, given[name]) for name, query in queries.items()}


def _read_wish(name: str, query: Query, given: Any) -> Wish:
    argument = f"error[{name!r}]"
    if query.kind in _PLAIN:
        return Wish(name, query, ERROR.read(argument, given), None)
    if query.kind not in _DIVIDED:
        allowed = "left out: how far a variance, a distribution function or a ranking is off depends on the data"
        raise ParameterError(argument, given, allowed, "plan it apart, with epsilon=")
    if not isinstance(given, tuple) or len(given) != 3 or given[0] != query.kind:
        allowed = f"({query.kind!r}, error, rows), as the error depends on how many rows a group has"
        mend = f"write for example error={{{name!r}: ({query.kind!r}, {half_range(query) / 50:g}, 200)}}"
        raise ParameterError(argument, given, allowed, mend)
    error, rows = ERROR.read(argument, given[1]), _ROWS.read(argument, given[2])
    if error >= half_range(query):
        allowed = f"below half of the width of the bounds, {half_range(query):g}: their middle is as near without data"
        raise ParameterError(argument, given[1], allowed)
    return Wish(name, query, error, rows)


def read_limit(given: object) -> tuple[Kind, int | None]:
    """Return whether a budget is counted in epsilon or rho, and how much of it there is, if that is limited.

    Examples
    --------
    >>> read_limit(None), read_limit("rho"), read_limit(0.5), read_limit(("rho", 0.1))
    (('epsilon', None), ('rho', None), ('epsilon', 500000000000000000), ('rho', 100000000000000000))

    """
    allowed = '"epsilon", "rho", a number for a largest epsilon, or ("rho", number)'
    mend = 'write for example budget=1.0 or budget=("rho", 0.1)'
    kind: object = "epsilon"
    amount: object = given
    if given is None:
        return "epsilon", None
    if isinstance(given, str):
        kind, amount = given, None
    elif isinstance(given, tuple) and len(given) == 2:
        kind, amount = given
    if type(kind) is not str or kind not in ("epsilon", "rho") or (amount is None and not isinstance(given, str)):
        raise ParameterError("budget", given, allowed, mend)
    read: Kind = "rho" if kind == "rho" else "epsilon"
    if amount is None:
        return read, None
    try:
        units = budget_units(amount, "epsilon", "budget")
    except ParameterError:
        raise ParameterError("budget", given, allowed, mend) from None
    if read == "rho" and units > LARGEST_RHO * UNITS_PER_ONE:
        raise ParameterError("budget", given, f"a rho of at most {LARGEST_RHO}", mend)
    return read, units


def check_limit(kind: Kind, units: int, limit: int | None, said: str) -> None:
    """Refuse wishes that cost more than the budget; ``said`` says which they are."""
    if limit is not None and units > limit:
        times = units / limit if kind == "epsilon" else math.sqrt(units / limit)
        given = Words(f"of {kind} {to_float(units):.6g}: {said}")
        mend = f"allow errors about {times:.3g} times as large, or raise budget"
        raise ParameterError("error", given, f"of a cost within budget, {kind} {to_float(limit):g}", mend)


def limit_of(given: Limit, accountant: str) -> Limit:
    """Return what limits a release that is charged to a ledger: where nothing is said, it counts as the ledger does."""
    return "rho" if given is None and accountant != "basic" else given


def refuse_wishes(error: object, why: str) -> None:
    """Refuse wishes where the noise is not known beforehand."""
    if error is not None:
        raise ParameterError("error", error, f"left out {why}", "give epsilon= or rho= in its place")
