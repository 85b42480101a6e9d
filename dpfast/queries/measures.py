"""What rows are measured by to answer queries: exact integers, and how far one privacy unit moves them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.columns.grid import PublicGrid, public_grid
from dpfast.errors import ParameterError
from dpfast.queries.basic import ModeQuery, QuantileQuery, Query
from dpfast.queries.values import RankedQuery
from dpfast.rows.filters import Filter

__all__ = [
    "FINEST_EXPONENT",
    "Measure",
    "bins_measure",
    "choices_measure",
    "matches_measure",
    "points_measure",
    "product_measure",
    "ranked_measure",
    "sum_measure",
]


@dataclass(frozen=True)
class Measure:
    """One exact integer aggregate per group, from which answers are made.

    A row contributes

    - ``"rows"``: 1;
    - ``"values"``: 1 where ``column`` is neither null nor NaN, else 0; ``"missing"``: 0 there, else 1;
    - ``"sum"``: ``clip(round_half_even(x / 2**step_exponent), lower, upper) - centre``, 0 where x is null or
      NaN;
    - ``"units"``: its privacy unit, so that each unit with rows in a group adds 1; its row where each row is a unit;
    - ``"matches"``: ``upper - centre`` where ``condition`` holds, ``lower - centre`` where it does not, 0 where
      ``column`` is null or NaN; ``"passes"``: 1 where ``condition`` holds, else 0;
    - ``"product"``: ``floor((a * b + 2**shift / 2) / 2**shift) - centre``, a and b what the row contributes to the two
      ``factors``, which are sums of ``step_exponent - shift`` steps together; 0 where either value is missing;
    - ``"bins"``: 1 to the number of the bin that x lies in, of those between ``edges``, as float64, or as whole numbers
      where ``ticks`` says so; these numbers of a group are side by side, and those of blocks of neighbouring bins
      beside them, as ``blocks`` says: for each level how many bins make a block, the last of which may be smaller, and
      the whole number that its counts are times;
    - ``"distinct"``: its value, of which each different one of a group adds 1; null and NaN are none;
    - ``"points"``: as a sum, with ``centre`` one below ``lower``, so that 0 is none; they are not added up but kept
      group by group; with ``doublings`` they are the numbers of points of a `PublicGrid`;
    - ``"choices"``: the number of the candidate that it is, from 1, 0 for none; rows are counted for each of them;
    - ``"found"``: the same, candidates being all values of the column of ``dtype``, which are found in the data;
    - ``"addend"``: as a sum, between bounds of 2**47 steps: what the sum of a unit is made of.

    A privacy unit contributes, of all its rows in the group, if it has a value there (`dpfast.queries.unit_measures`),

    - ``"unit_sum"``: ``clip(floor(s / 2**shift + 1/2), lower, upper)``, s being the sum of its rows' one factor;
    - ``"unit_mean"``: ``floor(s / n + 1/2)``, n being the number of its values;
    - ``"unit_values"``: 1.

    Of values, sums, products and matches, rows contribute 0 too where a column of ``given`` is null or NaN.

    ``lower``, ``upper`` and ``centre`` count steps of ``2**step_exponent``; infinities are clipped like any
    other value. The largest magnitude of a sum's contribution times 2**38 rows stays below 2**62. Of decimals and times
    x is a whole number (`dpfast.columns.values`), of which one is worth ``tick`` where figures are told.
    """

    kind: Literal[
        "rows",
        "units",
        "values",
        "missing",
        "sum",
        "matches",
        "passes",
        "product",
        "bins",
        "distinct",
        "points",
        "choices",
        "found",
        "addend",
        "unit_sum",
        "unit_mean",
        "unit_values",
    ]
    column: str | None = None
    step_exponent: int = 0
    lower: int = 0
    upper: int = 1
    centre: int = 0
    candidates: tuple[Any, ...] = ()
    doublings: int = 0
    condition: Filter | None = None
    factors: tuple[Measure, ...] = ()
    given: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    blocks: tuple[tuple[int, int], ...] = ((1, 1),)
    dtype: Any = None
    tick: Fraction = Fraction(1)

    @cached_property
    def step(self) -> Fraction:
        """What one step is worth where figures are told."""
        return Fraction(2) ** self.step_exponent * self.tick

    @property
    def ticks(self) -> bool:
        """Whether edges are whole numbers, of decimals' last places or of what times are held as."""
        return self.kind == "bins" and all(isinstance(edge, int) for edge in self.edges)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that it reads."""
        return tuple(dict.fromkeys((*self.needed, *(() if self.condition is None else self.condition.columns))))

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that have a value wherever a row contributes anything."""
        named = (self.column, *self.given, *(factor.column for factor in self.factors))
        return tuple(dict.fromkeys(name for name in named if name is not None))

    def renamed(self, names: Mapping[str, str]) -> Measure:
        """Return the measure of the same columns under other names."""
        return replace(
            self,
            column=None if self.column is None else names[self.column],
            factors=tuple(factor.renamed(names) for factor in self.factors),
            given=tuple(names[name] for name in self.given),
            condition=None if self.condition is None else self.condition.renamed(names),
        )

    @property
    def shift(self) -> int:
        """By how many bits the products of factors are shortened."""
        return self.step_exponent - sum(factor.step_exponent for factor in self.factors)

    @property
    def extremes(self) -> tuple[int, int]:
        """The least and the largest that a row contributes, 0 for a row that contributes nothing beside them.

        Of what units contribute, these of a unit.
        """
        if self.kind in ("sum", "matches", "product", "unit_sum", "unit_mean"):
            return self.lower - self.centre, self.upper - self.centre
        return 0, 1

    @property
    def of_units(self) -> bool:
        """Whether a unit contributes one number to a group, made of all of its rows there."""
        return self.kind in ("unit_sum", "unit_mean", "unit_values")

    @property
    def selects(self) -> bool:
        """Whether one query has it for itself, and which answers are shown is drawn; else it is a sum with noise."""
        return self.kind in ("points", "choices", "found")

    @property
    def has_cells(self) -> bool:
        """Whether a row adds to one of many numbers of its group, or to a list, and not to one number."""
        return self.selects or self.kind == "bins"

    def single_bins(self) -> tuple[Measure, ...]:
        """Return a measure for each bin by itself, whose rows add 1 or 0."""
        return tuple(bins_measure(str(self.column), pair) for pair in pairwise(self.edges))

    @property
    def points(self) -> int:
        """How many points, candidates or bins there are."""
        return self.upper - self.centre

    @property
    def figures(self) -> int:
        """How many numbers of a group get noise."""
        return 1 if self.kind != "bins" else sum(-(-self.points // size) for size, _ in self.blocks)

    @property
    def grid(self) -> PublicGrid:
        """The grid of points."""
        return PublicGrid(self.step_exponent, self.lower, self.upper, self.doublings)

    def sensitivity(self, unit: PrivacyUnit) -> Sensitivity:
        """Return how far the figures of all groups can move between neighbours, in steps, exactly.

        G groups of R rows a unit; a row contributes between low and high, so at most M = max(|low|, |high|) in
        magnitude. Adding a unit moves at most G entries by R M each: L1 = G R M, L2 = sqrt(G) R M. Replacing one
        takes away and adds: L1 = 2 G R M; in L2 an entry that both touch moves by at most R S,
        S = max(high, 0) - min(low, 0), and two entries apart by R M each, so L2 = sqrt(G) R max(S, sqrt(2) M).
        What units contribute themselves is one number a group, whatever rows they have: R = 1.
        """
        low, high = self.extremes
        largest, spread = max(abs(low), abs(high)), max(high, 0) - min(low, 0)
        if self.kind == "bins":
            return self._sensitivity_of_bins(unit)
        # A unit is counted once in a group, whatever rows it has there.
        once = self.of_units or self.kind == "units"
        groups, rows = unit.max_groups, 1 if once else unit.max_rows_per_group
        step = float(self.step)
        rows_reason = [f"{rows} rows"] * (rows > 1)
        row_reason = f"{largest * (1.0 if self.kind == 'units' else step):g} a {'unit' if once else 'row'}"
        l1_terms = [f"{groups} groups"] * (groups > 1) + rows_reason
        l2_terms = [f"sqrt({groups} groups)"] * (groups > 1) + rows_reason
        if unit.neighbors == "add_remove":
            l1, l2_squared = groups * rows * largest, groups * (rows * largest) ** 2
            l2_row = row_reason
        else:
            l1 = 2 * groups * rows * largest
            l2_squared = groups * rows**2 * max(spread**2, 2 * largest**2)
            l1_terms.insert(0, "2 (replaced)")
            replaced = f"sqrt(2) x {row_reason}"
            l2_row = (
                replaced if 2 * largest**2 >= spread**2 else f"{spread * step:g} a replaced {'unit' if once else 'row'}"
            )
        beside = self._beside_rows(unit, largest * step)
        reasons = " x ".join([*l1_terms, row_reason]) + beside, " x ".join([*l2_terms, l2_row]) + beside
        return Sensitivity(l1, l2_squared, *reasons)

    def _beside_rows(self, unit: PrivacyUnit, largest: float) -> str:
        """Return in words what bounds on each row would cost in place of those on what a unit contributes."""
        rows = unit.max_rows_per_group
        if not self.of_units or rows == 1:
            return ""
        if unit.keeps_all_rows:
            return ", whatever rows it has there"
        if self.kind == "unit_sum":
            return f"; {rows} rows of at most {largest / rows:g} each would be as much"
        return f"; {rows} rows of it would be {rows} times as much"

    def _sensitivity_of_bins(self, unit: PrivacyUnit) -> Sensitivity:
        """Return how far counts of bins, and of blocks of them, can move.

        A row adds the weight w of each level to one number. R rows of a group move these by at most R times what one
        row does, which they reach in one bin: L1 = G R sum(w), L2 = sqrt(G) R sqrt(sum(w**2)). Replacing a unit takes
        such vectors away and adds others: the L1 doubles, and as no weight is negative, what is taken away and what is
        added are at most orthogonal, which bins of different blocks are: L2 is sqrt(2) times as large.
        """
        groups, rows = unit.max_groups, unit.max_rows_per_group
        weights = [weight for _, weight in self.blocks]
        l1, l2_squared = groups * rows * sum(weights), groups * rows**2 * sum(weight**2 for weight in weights)
        replaced = 2 if unit.neighbors == "replace" else 1
        terms = [f"{groups} groups"] * (groups > 1), [f"{rows} rows"] * (rows > 1)
        l1_terms = ["2 (replaced)"] * (replaced - 1) + terms[0] + terms[1] + [f"{sum(weights)} a row"]
        l2_terms = [f"sqrt({text})" for text in terms[0]] + terms[1]
        l2_terms.append(f"sqrt({replaced * sum(weight**2 for weight in weights)}) a row")
        return Sensitivity(replaced * l1, replaced * l2_squared, " x ".join(l1_terms), " x ".join(l2_terms))


# With 2**38 rows, the documented limit, and less than 2**24 steps a row, sums stay below 2**62.
_LARGEST_CONTRIBUTION, _LARGEST_STEPS = 2**24 - 1, 2**53
# Steps and the scales in them stay normal floats.
FINEST_EXPONENT = -960


def sum_measure(query: Query) -> Measure:
    """Return the measure of a sum or of a mean's numerator: the finest step that its bounds allow.

    Of whole numbers a sum's step is at least 1.
    """
    lower, upper = query.limits()
    centred = query.kind != "sum"
    widest = max(abs(lower), abs(upper))
    exponent = math.frexp(float((upper - lower) / 2 if centred else widest))[1] - 26
    exponent = max(exponent, math.frexp(float(widest))[1] - 54, FINEST_EXPONENT)
    if query.values.whole and not centred:
        exponent = max(exponent, 0)
    while True:
        step = Fraction(2) ** exponent
        low, high = round(lower / step), round(upper / step)
        centre = round((lower + upper) / (2 * step)) if centred else 0
        largest = max(abs(low - centre), abs(high - centre))
        if largest <= _LARGEST_CONTRIBUTION and max(abs(low), abs(high)) <= _LARGEST_STEPS:
            break
        exponent += 1
    if low == high:
        raise ParameterError("bounds", query.bounds, "further apart in relation to their size")
    return Measure("sum", query.column, exponent, low, high, centre, tick=query.values.tick)


def points_measure(query: QuantileQuery) -> Measure:
    """Return the measure of a quantile, whose points are numbered from 1."""
    values = query.values
    grid = public_grid(query.limits(), query.grid, whole=values.whole, wide=values.is_wide)
    placed = grid.exponent, grid.lower, grid.upper, grid.lower - 1, (), grid.doublings
    return Measure("points", query.column, *placed, tick=values.tick)


def choices_measure(query: ModeQuery | RankedQuery) -> Measure:
    """Return the measure of a mode, or of the most common of public candidates."""
    return Measure("choices", query.column, lower=1, upper=len(query.candidates), candidates=query.candidates)


def ranked_measure(query: RankedQuery) -> Measure:
    """Return the measure of the most common values, of public candidates or of the column's.

    One row adds 1 to one value of its group, and so a unit's rows move the counts of all values of a group together no
    further than they could move one: `Measure.sensitivity` is that of a count, whose entries of replaced units are at
    most orthogonal too.
    """
    if query.candidates:
        return choices_measure(query)
    return Measure("found", query.column, lower=1, dtype=query.dtype)


def matches_measure(condition: Filter) -> Measure:
    """Return the measure of a proportion: half of how many more rows fulfil a condition than fail it.

    It is the sum of differences to 1/2 of a column that is 1 where the condition holds and 0 where it does not. Rows
    are left out where a compared column has no value.
    """
    column, *others = condition.compared
    return Measure("matches", column, -1, 0, 2, 1, given=tuple(others), condition=condition)


def product_measure(first: Measure, second: Measure) -> Measure:
    """Return the measure of products of two sums' contributions, or of squares if both sums are the same.

    Products are shortened to the finest step of which all sums stay below 2**62, as those of `sum_measure` do, and
    squares are centred at the middle of what they may be.

    Examples
    --------
    >>> total = Measure("sum", "x", 0, 0, 10, 5)
    >>> product_measure(total, total).extremes, product_measure(total, replace(total, column="y")).extremes
    ((-12, 13), (-25, 25))

    """
    corners = [a * b for a in first.extremes for b in second.extremes]
    low, high = (0 if first == second else min(corners)), max(corners)
    shift = 0
    while True:
        half = (1 << shift) >> 1
        least, largest = (low + half) >> shift, (high + half) >> shift
        centre = largest // 2 if first == second else 0
        if max(abs(least - centre), abs(largest - centre)) <= _LARGEST_CONTRIBUTION:
            break
        shift += 1
    exponent, tick = first.step_exponent + second.step_exponent + shift, first.tick * second.tick
    return Measure("product", first.column, exponent, least, largest, centre, factors=(first, second), tick=tick)


def bins_measure(column: str, edges: tuple[float, ...], blocks: tuple[tuple[int, int], ...] = ((1, 1),)) -> Measure:
    """Return the measure of counts between edges, and of blocks of them."""
    return Measure("bins", column, lower=1, upper=len(edges) - 1, edges=edges, blocks=blocks)
