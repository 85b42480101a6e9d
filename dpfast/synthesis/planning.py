"""Synthetic records as they are planned: what will be measured, by which noise, before any row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, Any

import polars as pl

from dpfast.accounting.budget import Budget, Delta, Epsilon, Rho, ShownAmounts, read_budget
from dpfast.accounting.privacy_unit import Neighbors
from dpfast.aggregation.sources import Data, Schema, Source, open_source, path_of
from dpfast.arguments import Instance
from dpfast.domain.arguments import RECORDS, Records
from dpfast.domain.domain import Domain
from dpfast.domain.impossible import OwnImpossible
from dpfast.errors import ParameterError, Words
from dpfast.ledger import Ledger
from dpfast.ledger.account import OwnName
from dpfast.ledger.filters import ACCOUNTANT, refuse_rho
from dpfast.ledger.payment import LEDGER
from dpfast.progress import TellStages, TerminalLine, forgetting, read_progress
from dpfast.showing import Card, Shown, number_of, printed
from dpfast.synthesis.cell_weights import LARGEST_DOMAIN
from dpfast.synthesis.charging import charges_whole, read_relation
from dpfast.synthesis.fitted.request import HistogramRequest
from dpfast.synthesis.fitted.rounds import ROUNDS, SELECTION
from dpfast.synthesis.graphical.synthesizing import MEGABYTES, Asked, ModelRequest, asked_sets
from dpfast.synthesis.synthesis import Synthesis
from dpfast.synthesis.ways import Way
from dpfast.workloads.workload import OwnQueries

__all__ = ["DOMAIN", "SynthesisPlan", "makes_model", "plan_read", "plan_synthesis"]

DOMAIN = Instance(Domain, "a dpfast.Domain", mend='write dpf.Domain({{"sex": ["f", "m"]}})')
#: A number of records that somebody says.
_KNOWN = replace(RECORDS, optional=False)
#: So many columns are shown.
_SHOWN = 20


@dataclass(frozen=True, eq=False, repr=False)
class SynthesisPlan(Shown):
    """How synthetic records will be made: no row has been read, and nothing is charged.

    Guarantee
        All that it shows is made of public arguments alone, and may be shown to anyone. `run` measures by it: what it
        gives is as private as `dpfast.synthesize` says.

    Attributes
    ----------
    domain
        The public values of the records' columns.
    neighbors
        Which data are neighbours.
    accountant
        Of the ledgers that it is for.

    """

    domain: Domain
    neighbors: Neighbors
    accountant: str
    _budget: Budget
    _reason: str
    _request: HistogramRequest | ModelRequest

    @property
    def method(self) -> str:
        """What is fitted: "histogram", weights of every cell of the domain, or "model", a tree of small tables."""
        return "histogram" if isinstance(self._request, HistogramRequest) else "model"

    @property
    def charge(self) -> ShownAmounts:
        """What the ledger is charged at most: once, before a row is read."""
        return self._request.charge(self.accountant)

    def to_frame(self) -> pl.DataFrame:
        """Return a row for each way to measure that the number of records, measured first, may choose.

        Columns: ``method``, which is "histogram", "rounds", or "all at once" for all sets of columns together;
        ``from_records`` and ``to_records``, the numbers that choose it, null for no end; ``rounds``, how many sets of
        columns or queries are measured at most after the single columns; ``records_share``, ``columns_share``,
        ``selections_share`` and ``counts_share``, what each gets of the budget that is split; ``least_deviation`` and
        ``deviation``, of the noise of each count that is not a single column's; ``error95``, which the noise of such a
        count exceeds with probability 0.05; ``megabytes``, what the model takes, null where what is selected decides.
        """
        rows = [
            (way.method, way.least, way.most, way.rounds, *way.shares, *way.deviations, way.error95, way.megabytes)
            for way in self._request.ways()
        ]
        schema: dict[str, Any] = {"method": pl.String, "from_records": pl.Int64, "to_records": pl.Int64}
        names = ("records_share", "columns_share", "selections_share", "counts_share")
        schema |= {"rounds": pl.Int64} | dict.fromkeys(names, pl.Float64)
        schema |= dict.fromkeys(("least_deviation", "deviation", "error95", "megabytes"), pl.Float64)
        return pl.DataFrame(rows, schema, orient="row")

    def columns(self, records: Annotated[int, _KNOWN]) -> pl.DataFrame:
        """Return what is known beforehand of each single column's counts, of about so many records.

        Parameters
        ----------
        records
            About how many rows the data have: a public number, or a guess.

        Returns
        -------
        polars.DataFrame
            With the ``column``; how many ``values`` it has; the ``deviation`` of the noise of each of its counts, null
            where what is selected decides; and ``error``, which the mean total variation distance that noise makes
            does not exceed: half of all deviations, as a part of the records, at most 1. Records err less, since most
            of that noise is taken out.

        """
        number = _KNOWN.read("records", records)
        way = next(way for way in self._request.ways() if way.most is None or number <= way.most)
        rows = [
            (name, size, off, None if off is None else min(size * off / (2 * max(number, 1)), 1.0))
            for name, size, off in zip(self.domain.names, self.domain.shape, way.columns, strict=True)
        ]
        schema: dict[str, Any] = {"column": pl.String, "values": pl.Int64, "deviation": pl.Float64, "error": pl.Float64}
        return pl.DataFrame(rows, schema, orient="row")

    def explain(self) -> str:
        """Return what will be measured, by which noise, of what shares of the budget: nothing of the data.

        Of the columns the twenty with most noise are shown; `columns` has them all.
        """
        ways, off = self._request.ways(), self._request.records_deviation
        known = "public" if off is None else f"measured first, with noise of deviation {off:.4g}"
        if len(ways) > 1:
            known += "; it chooses what follows"
        lines = [
            f"{self._about}: {self._reason}",
            f"cost: {self._budget.shown}; neighbours: {self.neighbors}",
            f'charge: {self.charge} at most, before a row is read, in a ledger with accountant "{self.accountant}"',
            *self._request.lines(),
            f"number of records: {known}",
            *(line for way in ways for line in _way_words(way)),
        ]
        return "\n".join([*lines, *self._columns_words(ways)])

    def _columns_words(self, ways: list[Way]) -> list[str]:
        """Return what is known of single columns in all ways, in lines."""
        known = [
            (max(offs), min(offs), name, size)
            for name, size, *found in zip(
                self.domain.names, self.domain.shape, *(way.columns for way in ways), strict=True
            )
            if (offs := [off for off in found if off is not None])
        ]
        if not known:
            return ["single columns: their errors depend on what is selected"]
        known.sort(key=lambda one: -one[0])
        lines = ["single columns, the deviation of each count, known beforehand:"]
        for most, least, name, size in known[:_SHOWN]:
            off = f"{most:,.4g}" if math.isclose(most, least) else f"{least:,.4g} to {most:,.4g}"
            lines.append(f"  {off:>20}  {printed(name)} ({number_of(size, 'value')})")
        return lines if len(known) <= _SHOWN else [*lines, f"  ... {len(known) - _SHOWN:,} more"]

    def run(
        self,
        data: Data,
        *,
        ledger: Annotated[Ledger, LEDGER],
        rows: Records = None,
        dataset: OwnName = None,
        schema: Schema = None,
        progress: TellStages = None,
    ) -> Synthesis:
        """Charge the ledger, count, measure and fit; as `dpfast.synthesize`, which has the parameters' documentation.

        Raises
        ------
        ParameterError
            The ledger adds up other amounts than those that noise was planned for; or as `dpfast.synthesize`.

        """
        LEDGER.read("ledger", ledger)
        number = RECORDS.read_optional("rows", rows)
        if self._request.depends_on_ledger and charges_whole(ledger.accountant) != charges_whole(self.accountant):
            given = Words(f'one with accountant "{ledger.accountant}"')
            mend = f'plan with accountant="{ledger.accountant}"'
            raise ParameterError("ledger", given, f'one with accountant "{self.accountant}", as was planned', mend)
        named = path_of(data) if dataset is None else dataset
        with TerminalLine() as line, forgetting():
            show = line if progress is None else read_progress(progress, "the name of a stage")
            source = data if isinstance(data, Source) else open_source(data, schema=schema)
            opened = self.domain.open(source)
            source.check()
            return Synthesis(self._request.run(opened, ledger, named, show), self.domain, number)

    @property
    def _about(self) -> str:
        cells = self.domain.cells
        # There may be more of them than floats reach.
        shown = number_of(cells, "cell") if cells < 10**12 else f"{Decimal(cells):.2e} cells"
        how = "weights of every cell" if self.method == "histogram" else "a model of small tables"
        return f"records of {number_of(len(self.domain.names), 'column')}, {shown}, from {how}"

    def __repr__(self) -> str:
        """Show what is fitted, and what it costs."""
        return f"SynthesisPlan({self._about}; {self._budget.shown})"

    def _card(self) -> Card:
        rows = [[_records_words(way), *_way_cells(way)] for way in self._request.ways()]
        headers = ["records", "measured", "single columns", "deviation of other counts", "MB"]
        return Card([repr(self), *self._request.lines()], headers=headers, rows=rows)


def plan_synthesis(
    domain: Annotated[Domain, DOMAIN],
    workload: OwnQueries | Asked = None,
    *,
    epsilon: Epsilon = None,
    delta: Delta = 0,
    rho: Rho = None,
    impossible: OwnImpossible = None,
    rounds: Annotated[int | None, replace(ROUNDS, optional=True)] = None,
    max_megabytes: Annotated[float, MEGABYTES] = 16.0,
    selection: Annotated[str, SELECTION] = "exponential",
    neighbors: Neighbors = "add_remove",
    accountant: Annotated[str | None, replace(ACCOUNTANT, optional=True)] = None,
) -> SynthesisPlan:
    """Plan synthetic records: what `dpfast.synthesize` would measure and charge, before it reads a row.

    Guarantee
        None is needed: nothing of the data is read, and nothing is charged. `dpfast.synthesize` is this plan and its
        `SynthesisPlan.run`, whose guarantee stands there.

    Parameters
    ----------
    domain
        The public values of the columns; nothing of it is read from the data.
    workload, epsilon, delta, rho, impossible, rounds, max_megabytes, selection, neighbors
        As for `dpfast.synthesize`.
    accountant
        Of the ledger that will be charged: "basic", "zcdp", "rdp" or "odometer". By default "basic", with rho "zcdp".
        Where epsilon has a delta beside it, the noise depends on it.

    Returns
    -------
    SynthesisPlan
        With ``explain``, ``to_frame``, ``columns``, ``charge`` and ``run``.

    Raises
    ------
    ParameterError, ColumnError
        An argument is of another kind or range.

    Examples
    --------
    >>> import dpfast as dpf
    >>> domain = dpf.Domain({"sex": ["f", "m"], "age": dpf.bins("age", [0, 18, 65, 120]), "works": [False, True]})
    >>> plan = dpf.plan_synthesis(domain, epsilon=0.5)
    >>> plan.method, plan.charge.epsilon
    ('histogram', 0.5)
    >>> plan.columns(records=1_000)["deviation"].round(2).to_list()
    [12.62, 12.62, 12.62]

    """
    asked = epsilon, delta, rho, impossible, rounds, max_megabytes, selection, neighbors
    if accountant is None:
        accountant = "basic" if rho is None else "zcdp"
    return plan_read(domain, workload, *asked, ACCOUNTANT.read("accountant", accountant))


def plan_read(
    domain: Domain,
    workload: OwnQueries | Asked,
    epsilon: Epsilon,
    delta: Delta,
    rho: Rho,
    impossible: OwnImpossible,
    rounds: int | None,
    max_megabytes: float,
    selection: str,
    neighbors: Neighbors,
    accountant: str,
) -> SynthesisPlan:
    """Return the plan for a ledger's accountant: as `plan_synthesis`."""
    DOMAIN.read("domain", domain)
    megabytes = MEGABYTES.read("max_megabytes", max_megabytes)
    relation = read_relation(neighbors, domain)
    budget = read_budget(epsilon, delta, rho)
    if budget.kind == "rho":
        refuse_rho(accountant, rho)
    request: HistogramRequest | ModelRequest
    if budget.delta_units or makes_model(workload, domain, impossible):
        sets, whole = asked_sets(workload, domain, megabytes), charges_whole(accountant)
        own = budget, rounds, selection, relation, impossible
        request = ModelRequest.read(domain, sets, megabytes, *own, charged_whole=whole)
    else:
        request = HistogramRequest.read(domain, workload, budget, rounds, selection, relation)
    return SynthesisPlan(domain, relation, accountant, budget, _reason(workload, domain, impossible, budget), request)


def makes_model(workload: object, domain: Domain, impossible: object = None) -> bool:
    """Return whether a model is made though no delta is given.

    It is for too many cells, for named sets of columns, and where cells are impossible.
    """
    return domain.cells > LARGEST_DOMAIN or isinstance(workload, (list, tuple)) or impossible is not None


def _reason(workload: object, domain: Domain, impossible: object, budget: Budget) -> str:
    """Return why a model is made, or a histogram is estimated."""
    if domain.cells > LARGEST_DOMAIN:
        return f"a histogram may have {LARGEST_DOMAIN:,} cells at most"
    if impossible is not None:
        return "some combinations are impossible"
    if isinstance(workload, (list, tuple)):
        return "sets of columns are named"
    return "a delta is given" if budget.delta_units else "memory holds all cells, and no delta is given"


def _records_words(way: Way) -> str:
    """Return which numbers of records choose a way."""
    if way.least is None:
        return "any number" if way.most is None else f"up to {way.most:,}"
    return f"from {way.least:,} on" if way.most is None else f"{way.least:,} to {way.most:,}"


def _way_cells(way: Way) -> list[str]:
    """Return what a table shows of a way."""
    least, most = way.deviations
    off = f"{most:,.4g}" if math.isclose(least, most) else f"{least:,.4g} to {most:,.4g}"
    measured = "all sets at once" if way.method == "all at once" else f"at most {number_of(way.rounds, 'round')}"
    held = "" if way.megabytes is None else f"{way.megabytes:,.3g}"
    return [measured, f"{100 * way.shares[1]:.3g}%", off, held]


def _way_words(way: Way) -> list[str]:
    """Return a way in two lines."""
    measured, _, off, held = _way_cells(way)
    names = ("that number", "single columns", "selections", "counts")
    got = [f"{100 * share:.3g}% for {name}" for name, share in zip(names, way.shares, strict=True) if share]
    tree = f" in a tree of {held} MB" if way.method == "all at once" else ""
    return [
        f"  {_records_words(way)}: {measured}{tree}, each count with noise of deviation {off};",
        f"    of the budget {', '.join(got)}",
    ]
