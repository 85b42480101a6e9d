"""Limits on what a unit keeps that are chosen privately: ``max_groups="auto"``, ``max_rows_per_group="auto"``.

Guarantee
    Drawn are one or two histograms of units, of what they have before anything is cut. In the first, of the numbers of
    their groups, each unit is counted once. In the second, of the numbers of rows that they have in a group, a unit
    counts with parts that are at least 0 and add up to 1 at most: for all its groups, or, if these are more than a
    number that the first histogram suggests, for as many as that. So one unit more or fewer moves each histogram by 1
    in L1 and L2 at most, a replaced one by 2 and by the root of 2: between vectors of no negative part the angle is at
    most a right one. What is chosen is post-processing of what was drawn.

The proof that this holds: which row of the table a unit is in, and what it adds there
(`dpfast.aggregation.unit_survey`), is a function of its own rows; units that neighbouring data share add the same in
both. The keys that units hold are all keys of the data, or the public ones, and no unit's groups depend on another's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import Budget
from dpfast.accounting.privacy_unit import ALL_ROWS
from dpfast.aggregation import Aggregates, Aggregation, Grouping, prepare
from dpfast.aggregation.sources import Source
from dpfast.aggregation.unit_survey import GROUP_POINTS, ROW_POINTS, WHOLE, UnitSurvey
from dpfast.errors import ParameterError
from dpfast.exact.amounts import to_float
from dpfast.mechanisms.clipping.limits import Aim, AimKind, Holdings, Outlook, choose_limits, told_counts, with_tail
from dpfast.queries import Query, UnitQuery
from dpfast.releases.choosing_keys import rough_scale
from dpfast.releases.private_choices import Chosen, Draft, PrivateChoice
from dpfast.releases.request import LIMITS, Request
from dpfast.releases.splitting import read_split
from dpfast.releases.survey_noise import Surveyor

__all__ = ["LimitsChoice", "limits_choice"]

#: What counts and sums lose are rows, and others pairs of a unit and a group; all that is not here are ratios.
_KINDS: dict[str, AimKind] = {
    "count": "rows", "sum": "rows", "histogram": "rows", "mode": "rows", "top_k": "rows",
    "units": "units", "count_distinct": "units",
}  # fmt: skip
#: What is paid for group by group, by draws of the exponential mechanism, and about on how many levels.
_DRAWN = {"quantile": 10, "minimum": 10, "maximum": 10, "mode": 1}
#: The largest limits that are chosen: of keys that are selected, whose rules are planned for each of a unit's keys.
_MOST_GROUPS, _MOST_SELECTED, _MOST_ROWS = 2**12, 2**8, 2**16
#: Rows are surveyed of so many groups of a unit that this part of all pairs is kept: of units with more groups, which
#: mostly have more rows in each too, pairs count for less.
_MOST_PAIRS = 0.95
#: Numbers of groups need not be surveyed where they are limited to so few.
_FEW = 4


def limits_choice(request: Request) -> LimitsChoice | None:
    """Return the choice of the limits that a request leaves open; None where it leaves none, or lacks one of them."""
    if request.max_rows_per_group is None and request.adds_once:
        request = replace(request, max_rows_per_group=ALL_ROWS)
    limits = request.max_groups, request.max_rows_per_group
    if request.privacy_unit is None or None in limits or not request.open_limits:
        return None
    by = request.read_by()
    groups = 1 if not by else None if request.keys is None else max(request.keys.height, 1)
    max_groups, max_rows = request.limits
    return LimitsChoice(
        request.queries,
        groups,
        max_groups,
        max_rows,
        1 if max_groups else min(_MOST_SELECTED if groups is None else _MOST_GROUPS, groups or _MOST_SELECTED),
        1 if max_rows else _MOST_ROWS,
    )


@dataclass(frozen=True)
class LimitsChoice(PrivateChoice):
    """The choice of limits.

    Attributes
    ----------
    queries
        All queries of the plan.
    groups
        How many groups there are; None where keys are selected.
    max_groups, max_rows
        What is given; None where it is open.
    most_groups, most_rows
        The largest limits that may be chosen.

    """

    queries: Mapping[str, Query]
    groups: int | None
    max_groups: int | None
    max_rows: int | None
    most_groups: int
    most_rows: int

    @property
    def open_limits(self) -> tuple[str, ...]:
        """The limits that are chosen."""
        return tuple(
            name for name, limit in zip(LIMITS, (self.max_groups, self.max_rows), strict=True) if limit is None
        )

    @property
    def questions(self) -> int:
        """One for all limits: two of them share what one would have."""
        return 1

    @property
    def about(self) -> str:
        """Which limits are chosen."""
        return " and ".join(self.open_limits)

    @property
    def unit_said(self) -> str:
        """What is kept of a unit, in words."""
        groups, rows = self.max_groups or "max_groups", self.max_rows or "max_rows_per_group"
        return f"at most {groups} groups and {rows} rows in each are kept, chosen at random ({self.about} chosen first)"

    def leaves_open(self, name: str) -> bool:
        """Return True: the noise of all queries follows the limits."""
        return True

    def stand_in(self, request: Request) -> Request:
        """Return the request with the least limits in place of those that are open."""
        return self._with(request, 1, 1)

    def extremes(self, request: Request) -> Iterator[Request]:
        """Yield the least and the largest limits."""
        yield self._with(request, 1, 1)
        yield self._with(request, self.most_groups, self.most_rows)

    def within(self, drafts: Callable[[PrivateChoice], object]) -> LimitsChoice:
        """Return the choice with largest limits at which there is a plan, whatever is chosen beside them."""
        choice = self
        while True:
            try:
                drafts(choice)
            except ParameterError:
                if choice.most_groups == 1 == choice.most_rows:
                    raise
                fewer = 1 if choice.most_groups == 1 else choice.most_groups // 2
                choice = replace(choice, most_groups=fewer, most_rows=max(choice.most_rows // 4, 1))
            else:
                return choice

    def _with(self, request: Request, groups: int, rows: int) -> Request:
        """Return the request with limits in place of those that are open."""
        if not request.open_limits:
            return request
        given = self.max_groups or groups, self.max_rows or rows
        return replace(request, max_groups=given[0], max_rows_per_group=given[1])

    def prepare(self, source: Source, request: Request) -> Aggregation:
        """Return the aggregation of what units have, before anything is cut."""
        by, keys, where = request.read_by(), request.keys, request.read_where()
        grouping = Grouping(by, keys, request.privacy_unit, 1, 1, request.population, where=where)
        prepared = prepare(source, grouping, [])
        assert isinstance(prepared, Aggregation)
        return replace(prepared, surveys_units=True)

    def choose(self, exact: Aggregates, request: Request, surveyor: Surveyor, draft: Draft) -> Chosen:
        """Survey what units have, and choose the limits of least predicted error."""
        assert exact.survey is not None
        aims = self._aims(request, draft)
        holdings = self._survey(exact.survey, surveyor, rows=any(aim.kind != "units" for aim in aims))
        outlook = Outlook(aims, self.groups, self._threshold(request))
        most = self.max_groups or self.most_groups, self.max_rows or self.most_rows
        groups, rows = choose_limits(holdings, outlook, most, (self.max_groups, self.max_rows))
        found = dict(zip(LIMITS, (groups, rows), strict=True))
        values = {name: found[name] for name in self.open_limits}
        return Chosen(self._with(request, groups, rows), values, (_line(values, holdings),))

    def _survey(self, survey: UnitSurvey, surveyor: Surveyor, *, rows: bool) -> Holdings:
        """Return what units have, as far as noisy histograms tell; ``rows`` says whether their rows matter."""
        known = self.groups == 1 or (self.max_groups or _FEW + 1) <= _FEW
        rows = rows and self.max_rows != 1
        part = Fraction(1) if not rows else Fraction(1, 2) if self.max_rows is None else Fraction(3, 4)
        weighted, units = min(self.groups or _FEW, self.max_groups or _FEW), np.zeros(GROUP_POINTS.size)
        if not known:
            noisy, noise = surveyor.draw(survey.by_groups(), part, whole=WHOLE)
            units = told_counts(GROUP_POINTS, noisy, noise) / WHOLE
            weighted = self._weighted(units)
        shares = np.zeros(ROW_POINTS.size)
        if rows:
            noisy, noise = surveyor.draw(survey.by_rows(weighted), whole=WHOLE)
            shares = with_tail(ROW_POINTS, told_counts(ROW_POINTS, noisy, noise) / WHOLE)
            if known:
                units[np.searchsorted(GROUP_POINTS, weighted, side="right") - 1] = shares.sum()
        if not shares.any():
            shares[0] = 1.0
        return Holdings(_middles(GROUP_POINTS), units, _middles(ROW_POINTS), shares / shares.sum())

    def _weighted(self, units: NDArray[np.float64]) -> int:
        """Return a number of groups with which most pairs of a unit and a group are kept."""
        kept = np.minimum.outer(GROUP_POINTS, _middles(GROUP_POINTS)) @ units
        found = int(GROUP_POINTS[int(np.searchsorted(kept, _MOST_PAIRS * kept[-1]))])
        return min(found, self.max_groups or found)

    def _aims(self, request: Request, draft: Draft) -> list[Aim]:
        """Return the queries with the noise that their shares of the budget buy, about."""
        budget, wide = request.read_budget(), 2 if request.neighbors == "replace" else 1
        split = read_split(request.split, list(self.queries), selects=self.groups is None)
        weights = {name: float(split.weights.get(name, Fraction(1))) for name in self.queries}
        whole = sum(weights.values()) * (1 + (self.groups is None) / len(weights))
        aims = []
        for planned in draft(request).queries:
            kind, part = planned.query.kind, weights[planned.name] / whole
            levels, figures = _DRAWN.get(kind), max(part.measure.figures for part in planned.parts)
            laplace, gaussian = _scales(budget, part, request.mechanism)
            if levels:
                laplace, gaussian = laplace * levels, gaussian * levels if budget.kind == "rho" else math.inf
            lost = "units" if isinstance(planned.query, UnitQuery) else _KINDS.get(kind, "ratio")
            aims.append(Aim(lost, laplace * wide, gaussian * math.sqrt(wide), figures))
        return aims

    def _threshold(self, request: Request) -> tuple[float, float] | None:
        """Return how many units a key needs about, for each group of a unit, and for the root of their number."""
        if self.groups is not None:
            return None
        budget, wide = request.read_budget(), 2 if request.neighbors == "replace" else 1
        delta = float(to_float(budget.delta_units)) / 2
        laplace, gaussian = _scales(budget, 1 / (1 + len(self.queries)), request.mechanism)
        above = -NormalDist().inv_cdf(max(delta, 1e-300))
        return laplace / math.sqrt(2) * -math.log(max(2 * delta, 1e-300)) * wide, gaussian * above * math.sqrt(wide)


def _scales(budget: Budget, part: float, mechanism: str) -> tuple[float, float]:
    """Return about the deviations of Laplace and Gaussian noise that a part of a budget buys, infinite if none."""
    amount, delta = max(to_float(budget.units), 1e-18), to_float(budget.delta_units)
    if budget.kind == "rho":
        gaussian = math.sqrt(1 / (2 * amount * part))
        return (2 * gaussian if mechanism == "laplace" else math.inf), gaussian
    laplace = math.sqrt(2) / (amount * part)
    # Gaussian noise is one on all measures together: their parts are of its square.
    gaussian = rough_scale(amount, delta) / math.sqrt(part) if delta else math.inf
    return laplace if mechanism != "gaussian" else math.inf, gaussian if mechanism != "laplace" else math.inf


def _middles(points: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the middle of the numbers that each point stands for."""
    return np.append((points[:-1] + points[1:] - 1) / 2, float(points[-1]))


def _line(values: Mapping[str, int], holdings: Holdings) -> str:
    """Return what a release says of the choice."""
    said = f"  limits        {' and '.join(f'{name} {limit:,}' for name, limit in values.items())}, "
    units = float(holdings.units.sum())
    if units < 1:
        return f"{said}for want of more: too few units to tell what they have; more of the budget would help"
    return f"{said}chosen by about {units:,.0f} units"
