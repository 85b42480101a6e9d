"""What bounding cut, told privately: how many units lost rows, at most which part was kept, and corrected figures.

Guarantee
    Drawn are histograms of units, in each of which a unit is counted once (`dpfast.aggregation.losses`): one unit more
    or fewer changes one number of each histogram by 1, a replaced one two. All of them have one noise and one charge,
    for an L1 sensitivity of their number, or twice it, and the square root of that in L2. What is said and corrected is
    post-processing of these and of released figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

import numpy as np
import polars as pl

from dpfast.accounting.budget import Budget
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.aggregation.losses import LossCounts, LossKind
from dpfast.arguments import Number
from dpfast.errors import ParameterError
from dpfast.exact.amounts import to_float
from dpfast.ledger import Charge
from dpfast.mechanisms.clipping import last_told
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.queries import Query, UnitQuery
from dpfast.randomness import SystemRandom
from dpfast.releases.measure_noise import noise_of
from dpfast.releases.splitting import portions
from dpfast.showing import number_of

__all__ = ["REPORT_CUT", "AskedShare", "Cut", "CutReport", "corrected_name", "plan_cut", "refuse_cut"]

REPORT_CUT = Number(1e-6, 0.5, optional=True, mend="write for example {name}=0.05")
AskedShare: TypeAlias = Annotated[float | None, REPORT_CUT]
#: A warning says so where more than this part is cut.
_MANY = 0.1
_MISS = 0.05
_KINDS: Mapping[str, LossKind] = {"count": "rows", "sum": "rows", "units": "groups"}


def corrected_name(name: str, query: Query) -> str | None:
    """Return the name of a query's corrected figures, for what can be told; None for those that are not corrected."""
    return f"{name}_corrected" if query.kind in _KINDS else None


def _lost_by(query: Query) -> LossKind:
    """Return what is lost of what a query adds up: rows, or pairs of a unit and a group, of each of which it is one."""
    return "groups" if isinstance(query, UnitQuery) else _KINDS[query.kind]


@dataclass(frozen=True)
class Cut:
    """What bounding cut, about: post-processing of noisy histograms of privacy units.

    Attributes
    ----------
    units
        How many units have rows.
    units_cut
        How many of them lost a row.
    units_within
        So far is ``units_cut`` off at most, with probability 0.95, beside the few units that cannot be told from noise.
    rows_kept
        At most about this part of all rows was kept, from 0 to 1; None where it cannot be told from noise. It is of the
        units that can be told from noise: a few with very many rows cannot, and what they lost is not in it.
    groups_kept
        The same of all pairs of a unit and a group; None also where no query counts units.

    """

    units: int
    units_cut: int
    units_within: int
    rows_kept: float | None
    groups_kept: float | None

    @property
    def many(self) -> bool:
        """Whether more than a tenth of the units, or of what they have, is cut."""
        kept = [part for part in (self.rows_kept, self.groups_kept) if part is not None]
        return min(kept, default=1.0) < 1 - _MANY or self.units_cut - self.units_within > _MANY * self.units

    def lines(self) -> list[str]:
        """Return what a release says of it."""
        cut = (
            f"about {self.units_cut:,} of {number_of(self.units, 'unit')} lost rows, give or take {self.units_within:,}"
        )
        if self.rows_kept is None:
            more = "a larger report_cut would tell how many; what is called corrected is not"
            said = [f"  cut           {cut}; {more}"]
        else:
            groups = "" if self.groups_kept is None else f", and {self.groups_kept:.0%} of their groups"
            said = [
                f"  cut           {cut}; at most about {self.rows_kept:.0%} of the rows were kept{groups}",
                "                by units that can be told from noise: what a few units with very many rows lost "
                "cannot, and is in no column ending in _corrected",
            ]
        if self.many:
            said.append(
                "  warning       more than a tenth was cut: counts and sums are too low on average, and intervals are "
                "of the noise alone; columns ending in _corrected add the same part of the figures in all groups"
            )
        return said


@dataclass(frozen=True)
class CutReport:
    """How it is told what bounding cut.

    Attributes
    ----------
    share
        The part of the whole budget that it gets.
    kinds
        What is counted: rows, and groups where a query counts units, or adds up what they contribute.
    noise, charge
        The noise on all numbers, and what it costs.
    corrected
        The columns that are corrected, with what they count.

    """

    share: float
    kinds: tuple[LossKind, ...]
    noise: IntegerNoise
    charge: Charge
    corrected: Mapping[str, LossKind]

    @property
    def histograms(self) -> int:
        """How many histograms each unit is in: of what it loses, and of what it keeps, of every kind."""
        return 2 * len(self.kinds)

    def explain(self) -> str:
        """Return the line of a plan's explanation."""
        noise, named = self.noise, ", ".join(f"{name}_corrected" for name in self.corrected)
        return (
            "  cut           how many units lose rows, and at most which part is kept: "
            f"{self.share:.3g} of the budget; "
            f"{number_of(self.histograms, 'histogram')} in which each unit is counted once, "
            f"{noise.mechanism} noise of scale "
            f"{noise.scale:g}, 95% within {number_of(noise.half_width(_MISS), 'unit')}"
            + (f"; estimates without an interval: {named}" if named else "")
        )

    def row(self, number: int) -> dict[str, Any]:
        """Return the row of a plan's frame, with the number of its charge."""
        moved = self.noise.event.sensitivity
        return {
            "query": "report_cut",
            "measure": f"units by {' and '.join(self.kinds)} lost and kept",
            "norm": "L1" if self.noise.mechanism == "laplace" else "L2",
            "sensitivity": float(moved),
            "reason": f"each unit is counted once in {number_of(self.histograms, 'histogram')}",
            "mechanism": self.noise.mechanism,
            "kernel": "",
            "scale": self.noise.scale,
            "error95": float(self.noise.half_width(_MISS)),
            "epsilon": to_float(self.charge.epsilon_units),
            "delta": to_float(self.charge.delta_units),
            "event": repr(self.charge.fact),
            "charge": number,
        }

    def draw(self, counts: LossCounts) -> Cut:
        """Draw the histograms, and return what they tell: each call costs the charge."""
        lost = {kind: self._noisy(counts.lost[kind]) for kind in self.kinds}
        kept = {kind: self._noisy(counts.kept[kind]) for kind in self.kinds}
        last = last_told(counts.points_of_kept["rows"], kept["rows"], self.noise)
        units = max(int(kept["rows"][1 : last + 1].sum()), 0)
        # Those that lose nothing are counted at 0, and at no other point.
        cut = min(max(units - int(lost["rows"][0]), 0), units)
        within = round(self.noise.half_width(_MISS) * math.sqrt(last + 1))
        parts = {}
        for kind in self.kinds:
            less, told_less = self._total(counts.POINTS_OF_LOST, lost[kind])
            left, told = self._total(counts.points_of_kept[kind], kept[kind])
            # That nothing is lost can be said only where it would show that some units lose something.
            unclear = units - lost[kind][0] > within or within > _MANY * units
            unknown = not told or (not told_less and unclear)
            parts[kind] = None if unknown else left / (left + less)
        return Cut(units, cut, within, parts["rows"], parts.get("groups"))

    def _total(self, points: np.ndarray, noisy: np.ndarray) -> tuple[float, int]:
        """Return about the sum over all units, and the last place that tells of some; 0 and 0 where none does."""
        last = last_told(points, noisy, self.noise)
        return float(points[: last + 1].astype(np.float64) @ noisy[: last + 1]), last

    def _noisy(self, counts: np.ndarray) -> np.ndarray:
        # Cut off so that no sum of them leaves an int64.
        return np.clip(self.noise.add(counts, SystemRandom()), -(2**50), 2**50)

    def correct(self, frame: pl.DataFrame, cut: Cut, deviations: Mapping[str, float]) -> pl.DataFrame:
        """Return figures with estimates of what they would be without bounding beside them: post-processing.

        They are too low by what units lost that cannot be told from noise (`Cut.rows_kept`).

        All groups together lack ``1 / part - 1`` times what was kept, and so does each group, as far as is known. What
        was kept of a group is its figure, drawn towards the mean of all groups by the part of their variance that is
        noise (James, Stein 1961): else the factor would multiply the noise. The estimates of all groups add up to their
        figures divided by the part.

        Parameters
        ----------
        frame, cut
            The figures, and what is told.
        deviations
            The standard deviation of the noise on the figures of every query.

        """
        parts = {"rows": cut.rows_kept or 1.0, "groups": cut.groups_kept or 1.0}
        columns = []
        for name, kind in self.corrected.items():
            figures = frame[name].cast(pl.Float64).to_numpy()
            mean, variance = (figures.mean(), figures.var()) if figures.size else (0.0, 0.0)
            kept = mean + (figures - mean) * (max(1 - deviations[name] ** 2 / variance, 0.0) if variance else 1.0)
            columns.append(pl.Series(f"{name}_corrected", figures + kept * (1 / parts[kind] - 1)))
        return frame.with_columns(columns)

    def add_columns(self, schema: pl.Schema) -> pl.Schema:
        """Return the columns of corrected figures after those of a release."""
        return pl.Schema({**schema, **{f"{name}_corrected": pl.Float64() for name in self.corrected}})


def plan_cut(
    share: float | None,
    queries: Mapping[str, Query],
    unit: PrivacyUnit,
    whole: Budget,
    left: Budget,
    mechanism: str,
    by: str,
) -> tuple[CutReport | None, Budget]:
    """Return how it will be told what bounding cuts, and what is left of the budget; None, and all, if it is not asked.

    The share is of the whole budget, of which surveys may have had a part already. Laplace noise takes epsilon and no
    delta; a share of rho has Gaussian noise, unless Laplace noise is asked for.
    """
    if share is None:
        return None, left
    exact = Fraction(share)
    part, _ = portions(whole.units, [exact, 1 - exact])
    rest = left.units - part
    if not part or rest < 1:
        raise ParameterError(whole.kind, float(whole.amount), "larger: report_cut leaves less than 1e-18 of it")
    corrected = {name: _lost_by(query) for name, query in queries.items() if query.kind in _KINDS}
    counts_units = "groups" in corrected.values()
    kinds: tuple[LossKind, ...] = ("rows", "groups") if counts_units else ("rows",)
    moved = 2 * len(kinds) * (2 if unit.neighbors == "replace" else 1)
    noise, charge = noise_of(
        Budget(whole.kind, part),
        "gaussian" if whole.kind == "rho" and mechanism != "laplace" else "laplace",
        moved,
        moved,
        f"units by what bounding cut, by {by}",
        "raise {} or report_cut",
    )
    return CutReport(share, kinds, noise, charge, corrected), replace(left, units=rest)


def refuse_cut(share: float | None, allowed: str, mend: str = "leave it out") -> None:
    """Refuse to tell what bounding cuts, for a reason that is in ``allowed``."""
    if share is not None:
        raise ParameterError("report_cut", share, allowed, mend)
