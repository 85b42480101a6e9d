"""What privacy units contribute themselves: of all rows that they have in each group that they keep.

Which groups a unit keeps is chosen as for all measures (`dpfast.aggregation.units`), once for the whole plan; which of
its rows there are kept for others does not matter here. `dpfast.queries.unit_measures` has the proof of the
sensitivities.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from dpfast.aggregation.blocks import Block, share_blocks
from dpfast.aggregation.contributions import Contribution
from dpfast.aggregation.holdings import Holdings
from dpfast.aggregation.private import Private
from dpfast.aggregation.unit_orders import UnitOrder, shares_of_rows
from dpfast.kernels.grouping.unit_figures import MISSING, add_rows_of_one, add_unit, add_units
from dpfast.threads import in_stretches, thread_count

__all__ = ["UnitFigures"]

#: Tables of each thread's own stay in the cache.
_MOST_SHARED = 1 << 16


class UnitFigures(Private):
    """Tables of what units contribute to each group.

    Parameters
    ----------
    groups
        How many there are.
    contributions
        All contributions of a plan; others than those of units are left out.

    """

    def __init__(self, groups: int, contributions: Sequence[Contribution]) -> None:
        self._groups = groups
        self._jobs = _jobs(contributions)
        self._tables = {
            place: np.zeros(groups, np.int64) for place, one in enumerate(contributions) if one.way == "units"
        }

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._tables)

    def add(self, order: UnitOrder, holdings: Holdings, values: pl.DataFrame) -> None:
        """Add units, all rows of each.

        Parameters
        ----------
        order
            The rows, unit by unit.
        holdings
            Which groups each unit keeps.
        values
            What rows add.

        """
        assert order.rows is not None
        room = int(np.diff(holdings.stops, prepend=0).max(initial=0))
        threads = thread_count(None, order.rows.size) if self._groups <= _MOST_SHARED else 1
        shares = shares_of_rows(order, threads)
        for job in self._jobs:
            filled = job.filled(values)

            def add(
                first: int, last: int, job: _Job = job, filled: np.ndarray = filled
            ) -> list[tuple[np.ndarray, np.ndarray]]:
                found = []
                for part in range(first, last):
                    table, counts = np.zeros(self._groups, np.int64), np.zeros(self._groups, np.int64)
                    owner, place = np.full(self._groups, -1, np.int32), np.empty(self._groups, np.int32)
                    add_units(
                        *shares[part],
                        order.starts,
                        order.groups,
                        order.rows,
                        holdings.stops,
                        holdings.groups,
                        filled,
                        *job.rule,
                        owner,
                        place,
                        np.empty((room, 3), np.int64),
                        table,
                        counts,
                    )
                    found.append((table, counts))
                return found

            for some in in_stretches(add, threads, threads):
                for table, counts in some:
                    self._count(job, table, counts)

    def add_lone(self, chosen: np.ndarray, frames: Iterable[pl.DataFrame]) -> None:
        """Add one unit, whose rows come in frames of the columns ``group`` and values; it keeps the chosen groups."""
        sums = [np.zeros((self._groups, 3), np.int64) for _ in self._jobs]
        keeps = np.zeros(self._groups, np.bool_)
        keeps[chosen] = True
        for frame in frames:
            groups = frame["group"].to_numpy(writable=True)
            groups[~keeps[groups]] = -1
            for job, of_it in zip(self._jobs, sums, strict=True):
                add_rows_of_one(groups, job.filled(frame), of_it)
        for job, of_it in zip(self._jobs, sums, strict=True):
            table, counts = np.zeros(self._groups, np.int64), np.zeros(self._groups, np.int64)
            add_unit(of_it, *job.rule, table, counts)
            self._count(job, table, counts)

    def put(self, tables: list[np.ndarray]) -> list[np.ndarray]:
        """Return tables of all contributions, with those of units in their places."""
        return [self._tables.get(place, table) for place, table in enumerate(tables)]

    def _count(self, job: _Job, table: np.ndarray, counts: np.ndarray) -> None:
        if job.place is not None:
            self._tables[job.place] += table
        for place in job.counted:
            self._tables[place] += counts


class _Job:
    """Values of one column, added up once for all measures that are made of them.

    Parameters
    ----------
    contribution
        The first of these.
    name
        The column of what rows add.

    """

    def __init__(self, contribution: Contribution, name: str) -> None:
        self._contribution, self._name = contribution, name
        self.place: int | None = None
        self.counted: list[int] = []
        measure = contribution.measure
        shift = measure.step_exponent - measure.factors[0].step_exponent if measure.factors else 0
        self.rule = measure.kind != "unit_sum", np.int64(shift), measure.lower, measure.upper

    def filled(self, values: pl.DataFrame) -> np.ndarray:
        """Return what rows add, `MISSING` where they have no value."""
        out = np.empty(values.height, np.int64)
        parts, name = self._contribution.parts, self._name
        names = [name for name in (name, f"{name}_1") if name in values.columns]

        def fill(block: Block, start: int, stop: int) -> None:
            for _ in block.walk(start, stop):
                part = out[block.start : block.stop]
                parts[0].fill(block, name, part)
                if len(parts) > 1:
                    present = block.integers(f"{name}_1")
                elif parts[0].way == "integers":
                    present = block.validity(name)
                elif parts[0].way == "floats":
                    present = block.validity(name) & ~np.isnan(block.floats(name))
                else:
                    present = part
                part[present == 0] = MISSING

        share_blocks(values.select(names), 64, fill)
        return out


def _jobs(contributions: Sequence[Contribution]) -> list[_Job]:
    """Return what is added up: counts of units along with a sum or a mean of the same column."""
    jobs: list[_Job] = []
    columns: dict[str | None, _Job] = {}
    known = [(place, one) for place, one in enumerate(contributions) if one.way == "units"]
    for place, contribution in known:
        measure = contribution.measure
        if measure.kind != "unit_values":
            jobs.append(_Job(contribution, f"value{place}"))
            jobs[-1].place = place
            columns.setdefault(measure.column, jobs[-1])
    for place, contribution in known:
        column = contribution.measure.column
        if contribution.measure.kind == "unit_values":
            if column not in columns:
                jobs.append(_Job(contribution, f"value{place}"))
                columns[column] = jobs[-1]
            columns[column].counted.append(place)
    return jobs
