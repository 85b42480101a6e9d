"""Which figures a plan measures: the measures of all queries -> blocks, in which each gets noise once.

A figure that several queries need is measured once, and all of them read the same noisy number: the answers of one plan
agree with each other. Beside the measures of a column, the number of its missing values costs nothing, because a row
adds either to those measures or to the missing values, never to both. So the number of values can come as rows less
missing values, and the number of rows as values and missing values together.

Proof that it costs nothing, for measures i of a column that get shares f_i, with the sum F, and missing values that
get F. Let the noise on measure i be so wide that its own sensitivity, over G groups of R rows, uses f_i: of epsilon in
L1, of the square of the distance in L2.

Add or remove: a unit has in one group a rows without a value and b with one, a + b <= R. Of a measure to which a row
adds at most M, that is b M of R M. Together they use at most (a / R) F + (b / R) F <= F of a group's part in L1, and
(a**2 F + b**2 F) / R**2 <= F in L2; over G groups alike.

Replace: the L1 sensitivities, 2 G R M, add up two units of that kind. In L2, squared, they are
G R**2 max(S**2, 2 M**2), with S = h + l, h = max(high, 0) and l = -min(low, 0); 2 G R**2 for missing values. A group
that one of the two units alone touches uses at most (a**2 F / 2 + b**2 F / 2) / R**2 <= F / 2, and there are two such
groups for one that both touch. There let the other unit have a' and b'. The missing values move by at most
R - min(b, b'), a measure by at most max(b h + b' l, b' h + b l), and by R S at most. What all use is convex in b and
b', so it is largest where each is 0 or R: at most F / 2 where both are 0, since no measure can move; F where both are
R, since missing values cannot; and F / 2 + F max(h, l)**2 / max(S**2, 2 M**2) <= F where one is 0 and the other R.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpfast.queries import Measure

__all__ = ["ROWS", "Block", "Figure", "Layout", "Use", "lay_out", "layouts"]

#: The number of rows.
ROWS = Measure("rows")
#: What a row adds a part to only if it has a value in the measure's column: to one number of its group.
_OF_VALUES = ("values", "sum", "matches", "product")


@dataclass(frozen=True)
class Figure:
    """What a query takes: ``asked``, which is ``measured``, with ``other`` times ``sign`` if there is another."""

    asked: Measure
    measured: Measure
    other: Measure | None = None
    sign: int = 0

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What it is made of."""
        return (self.measured,) if self.other is None else (self.measured, self.other)


@dataclass(frozen=True)
class Use:
    """A query that needs a measure: for which figure, and how much of its weight goes there."""

    query: str
    asked: Measure
    measured: Measure
    part: Fraction


@dataclass(frozen=True)
class Block:
    """Measures to which a row without a value in their column adds nothing; or rows, or others alone.

    Attributes
    ----------
    uses
        Who needs each of the measures.
    missing
        The number of the column's missing values, measured at no cost; None if nobody needs it.
    missed
        Who needs that.

    """

    uses: Mapping[Measure, tuple[Use, ...]]
    missing: Measure | None = None
    missed: tuple[Use, ...] = ()

    @property
    def measures(self) -> tuple[Measure, ...]:
        """All that is measured: those that share the budget first."""
        return (*self.uses, *(() if self.missing is None else (self.missing,)))

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of the queries that need it, once each."""
        return tuple(dict.fromkeys(use.query for uses in (*self.uses.values(), self.missed) for use in uses))


@dataclass(frozen=True)
class Layout:
    """What is measured, and what each query takes of it, in the order of its measures.

    Measures that select are in no block: each is drawn for its own query.
    """

    blocks: tuple[Block, ...]
    figures: Mapping[str, tuple[Figure, ...]]

    @property
    def measured(self) -> tuple[Measure, ...]:
        """What is measured by itself, and paid for."""
        return tuple(measure for block in self.blocks for measure in block.uses)


def layouts(measures: Mapping[str, Sequence[Measure]]) -> list[Layout]:
    """Return the ways to measure what queries are answered from: the first shares nothing but equal measures."""
    asked = list(dict.fromkeys(measure for some in measures.values() for measure in some if not measure.selects))
    summed = {measure.column for measure in asked if measure.kind in ("sum", "matches")}
    counted = [
        measure.column
        for measure in asked
        if measure.kind == "values" and not measure.given and measure.column in summed
    ]
    values = [Measure("values", column) for column in counted]
    ways = [lay_out(measures, [])]
    if counted and (ROWS in asked or len(counted) > 1):
        ways.append(lay_out(measures, [Figure(one, ROWS, Measure("missing", one.column), -1) for one in values]))
    if counted and ROWS in asked:
        first = values[0]
        ways.append(lay_out(measures, [Figure(ROWS, first, Measure("missing", first.column), 1)]))
    return ways


def lay_out(measures: Mapping[str, Sequence[Measure]], derived: Iterable[Figure]) -> Layout:
    """Return the blocks of a plan.

    Parameters
    ----------
    measures
        What every query is answered from, by its name.
    derived
        Figures that are made of a measure and the missing values of a column.

    Examples
    --------
    >>> late, n = Measure("sum", "late", upper=9), Measure("values", "late")
    >>> layout = lay_out({"n": [ROWS], "mean": [late, n]}, [Figure(n, ROWS, Measure("missing", "late"), -1)])
    >>> [[measure.kind for measure in block.measures] for block in layout.blocks]
    [['rows'], ['sum', 'missing']]

    """
    known = {figure.asked: figure for figure in derived}
    uses: dict[Measure, list[Use]] = {}
    figures: dict[str, tuple[Figure, ...]] = {}
    for name, some in measures.items():
        figures[name] = tuple(known.get(measure, Figure(measure, measure)) for measure in some)
        for figure in figures[name]:
            for measure in figure.measures if not figure.asked.selects else ():
                part = Fraction(1, len(some) * len(figure.measures))
                uses.setdefault(measure, []).append(Use(name, figure.asked, measure, part))
    # Beside the missing values of a column stand all of its measures.
    missing = {measure.column: measure for measure in uses if measure.kind == "missing"}
    paying = [measure for measure in uses if measure.kind != "missing"]
    homes = [
        measure.column if measure.column in missing and measure.kind in _OF_VALUES else measure for measure in paying
    ]
    blocks = []
    for home in dict.fromkeys(homes):
        of_it = {one: tuple(uses[one]) for one, place in zip(paying, homes, strict=True) if place == home}
        absent = missing[home] if isinstance(home, str) else None
        blocks.append(Block(of_it, absent, () if absent is None else tuple(uses[absent])))
    return Layout(tuple(blocks), figures)
