"""Public domains: from records to the cells of a histogram, and from cells back to records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from dpfast.aggregation.sources import Data, Schema
from dpfast.arguments import Choice, Special, Threads, Whole
from dpfast.domain.attributes import Values, read_attribute
from dpfast.domain.counting import OpenRecords, open_records
from dpfast.domain.records import draw_records, fill_columns, label_cells
from dpfast.domain.shapes import check_size
from dpfast.errors import ParameterError, Words
from dpfast.queries import Bins
from dpfast.randomness import Random, random_source
from dpfast.showing import Card, Shown

__all__ = ["LARGEST_RECORDS", "RECORDS", "Domain", "DrawsCells", "DrawsCodes", "Outside", "Records", "histogram"]


def _no_attributes() -> Iterator[object]:
    yield from (5, "a", object(), {}, [], [("a", 2)], {2: ["x"]}, {"a": 2**31})
    values: tuple[object, ...] = (
        None,
        True,
        0,
        -1,
        2.5,
        "abc",
        b"a",
        [],
        [None],
        ["x", "x"],
        [1, "x"],
        [1.5],
        [[1]],
        {1: 2},
        2**40,
        Bins,
    )
    yield from ({"a": wrong} for wrong in values)


#: The values of each attribute, by its name.
Attributes: TypeAlias = Annotated[Mapping[str, Values], Special(_no_attributes)]
OUTSIDE = Choice(("drop", "null", "clamp"))
Outside: TypeAlias = Annotated[Literal["drop", "null", "clamp"], OUTSIDE]
#: How many records are drawn; None for as many as there are.
LARGEST_RECORDS = 2**31
RECORDS = Whole(0, LARGEST_RECORDS, optional=True, mend="write for example {name}=50_000")
Records: TypeAlias = Annotated[int | None, RECORDS]


@runtime_checkable
class DrawsCells(Protocol):
    """An estimate of a histogram that cells of records can be drawn from."""

    histogram: NDArray[np.float64]

    def draw_cells(self, n: Records = None, *, random: Random = None) -> NDArray[np.int64]:
        """Return a cell for each record."""


@runtime_checkable
class DrawsCodes(Protocol):
    """An estimate over too many cells to number them, that records' codes can be drawn from."""

    shape: tuple[int, ...]

    def draw_codes(self, n: Records = None, *, random: Random = None) -> NDArray[np.uint32]:
        """Return a row for each attribute: each record's code."""


#: Numbers of cells, or an estimate that they are drawn from.
Places: TypeAlias = Annotated[
    ArrayLike | DrawsCells | DrawsCodes,
    Special(
        lambda: (
            5,
            "a",
            True,
            [-1],
            [0.5],
            [[0]],
            ["a"],
            [2**40],
            [10**30],
            [[0], [0, 1]],
            [None],
            object(),
            DrawsCells,
        )
    ),
]


class Domain(Shown):
    """The public values that records can have: what the cells of a histogram stand for.

    Guarantee
        None by itself: counts are exact. The domain is what the caller declares: nothing of it is read from the
        records. Which cell a record falls into depends on that record alone, and no error depends on a value. So
        adding or removing a record changes one cell by one at most, and replacing one takes one from a cell at most
        and adds one to a cell at most: exactly one each where no record can be left out, with ``outside="null"``.

    Parameters
    ----------
    attributes
        The values of each attribute, by its column's name; public, chosen without looking at the records:

        - an integer n: the column holds codes 0 to n - 1;
        - a list of values: strings, integers, Booleans or dates, all of one kind; None for null if it counts. Strings
          stand for categories too;
        - `dpf.bins`, for numbers: bins of ``edges[i] <= x < edges[i + 1]``, compared as float64.
    outside
        What becomes of a record with a value that was not declared: "drop" leaves it out; "null" counts it in a cell
        that stands for null and all such values, the last along the axis unless null is listed; "clamp" takes the
        nearest code or bin, and leaves out records with nulls, NaN, or values that a list lacks.

    Attributes
    ----------
    names
        The attributes, in the order of the histogram's axes.
    shape
        How many cells each has.
    cells
        How many there are in all.
    by
        The key columns of a plan over these cells, beside `frame`.
    outside
        As it was given.

    Raises
    ------
    ParameterError
        An attribute is none of these, or the cells are too many.
    ColumnError
        A name is one that Polars takes for a pattern.

    Examples
    --------
    >>> import dpfast as dpf
    >>> import polars as pl
    >>> domain = dpf.Domain({"sex": ["f", "m"], "age": dpf.bins("age", [0, 18, 65, 120])})
    >>> people = pl.DataFrame({"age": [7, 70, 33, 34, 200], "sex": ["m", "f", "m", "m", "f"]})
    >>> domain.count(people)
    array([[0, 0, 1],
           [1, 2, 0]])
    >>> domain.frame().rows()[:4]
    [('f', 0), ('f', 18), ('f', 65), ('m', 0)]
    >>> estimate = dpf.mwem(domain.open(people).count, dpf.workloads.marginals(domain.shape, 1), epsilon=1.0)
    >>> domain.records(estimate, 100).height
    100

    """

    def __init__(self, attributes: Attributes, outside: Outside = "drop") -> None:
        if not isinstance(attributes, Mapping) or not attributes:
            raise ParameterError("attributes", attributes, "a dictionary of names and values", 'write {"age": 100}')
        self.outside = OUTSIDE.read("outside", outside)
        self._attributes = [read_attribute(name, values, null=outside == "null") for name, values in attributes.items()]
        self._clamps = outside == "clamp"
        self.names = tuple(attribute.name for attribute in self._attributes)
        self.shape = tuple(attribute.size for attribute in self._attributes)

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return math.prod(self.shape)

    @property
    def by(self) -> tuple[str | Bins, ...]:
        """The key columns of a plan: names, and bins."""
        return tuple(attribute.bins or attribute.name for attribute in self._attributes)

    def __repr__(self) -> str:
        """Show the names and how many cells each has."""
        return f"Domain({', '.join(f'{name}: {size}' for name, size in zip(self.names, self.shape, strict=True))})"

    def _card(self) -> Card:
        facts = [("cells", f"{self.cells:,}"), ("records with other values", self.outside)]
        rows = [[one.name, f"{one.size:,}", one.in_words] for one in self._attributes]
        return Card(["Domain"], facts, headers=["attribute", "cells", "values"], rows=rows)

    def open(self, data: Data, *, schema: Schema = None) -> OpenRecords:
        """Check that data fit this domain by their schema, without reading a row.

        So all that can be wrong with the data's columns is found before a charge: ``open(data).count`` is what
        mechanisms with a ledger call after it.

        Parameters
        ----------
        data, schema
            As for `dpfast.plan`: a frame, an Arrow table, or paths of files, which are read in batches; also a
            dictionary of columns.

        Returns
        -------
        OpenRecords
            With the method ``count``.

        Raises
        ------
        ParameterError
            The data are of no kind that can be read, or a file is missing.
        ColumnError
            A column is missing, or of a type that cannot hold the attribute's values.

        """
        return open_records(data, schema, self._attributes, clamps=self._clamps)

    def count(self, data: Data, *, schema: Schema = None, threads: Threads = None) -> NDArray[np.int64]:
        """Count the records in each cell: exact, private.

        Parameters
        ----------
        data, schema
            As for `open`.
        threads
            How many threads count at most; as many as pay if not given.

        Returns
        -------
        numpy.ndarray
            int64, of `shape`.

        Raises
        ------
        ParameterError, ColumnError
            As `open` does.
        DpfastError
            The data cannot be read to their end; the message shows nothing of them.

        """
        return self.open(data, schema=schema).count(threads=threads)

    def frame(self) -> pl.DataFrame:
        """Return one row for each cell, in the order of the flattened histogram: its values, bins by their left edges.

        These are public keys of a plan: ``dpf.plan(data, by=domain.by, keys=domain.frame(), workload=...)``. A plan
        leaves rows with other keys out, as "drop" does. Its null keys hold nulls, and what lies outside of bins.
        """
        check_size(self.cells, "domain", "cells")
        return label_cells(np.arange(self.cells), [attribute.labels for attribute in self._attributes])

    def records(self, cells: Places, n: Records = None, *, random: Random = None) -> pl.DataFrame:
        """Return records that lie in cells, one a row: given cells, or cells drawn from an estimate.

        A bin's numbers are drawn evenly between its edges: whole ones if its edges are. The cell of all that was not
        declared gives null.

        Guarantee
            Post-processing: records of an estimate cost nothing beyond what the estimate did, however many they are.

        Parameters
        ----------
        cells
            Integers, numbers of cells of the flattened histogram, in any order; or what synthesis returns (`Estimate`)
            over a histogram of this shape.
        n
            How many records of an estimate; its total, rounded, if not given.
        random
            None, or a `dpfast.testing.SeededRandom`.

        Returns
        -------
        polars.DataFrame
            A column for each attribute. Of an estimate each cell has its share of the records, rounded down or up, in
            random order.

        Raises
        ------
        ParameterError
            There are no such cells, or the estimate is of another shape.

        """
        source = random_source(random)
        if isinstance(cells, (DrawsCells, DrawsCodes)) and not isinstance(cells, type):
            given = tuple(cells.histogram.shape if isinstance(cells, DrawsCells) else cells.shape)
            if given != self.shape:
                mend = "give an estimate of a histogram that this domain counted"
                raise ParameterError("cells", Words(f"an estimate of shape {given}"), f"of shape {self.shape}", mend)
            if isinstance(cells, DrawsCells):
                return draw_records(cells.draw_cells(n, random=source), self._attributes, source)
            return fill_columns(list(cells.draw_codes(n, random=source)), self._attributes, source)
        if n is not None:
            raise ParameterError("n", n, "left out", "it says how many records to draw from an estimate")
        try:
            numbers = np.asarray(cells)
        except (TypeError, ValueError, OverflowError):
            numbers = np.empty((0, 0))
        # What lies beyond int64 is no number of a cell.
        number = min(self.cells, 2**63)
        outside = numbers.size and (numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() >= number)
        if numbers.ndim != 1 or outside:
            raise ParameterError("cells", numbers.dtype, f"integers from 0 to {number - 1:,}")
        return draw_records(numbers.astype(np.int64), self._attributes, source)


def histogram(data: Data, attributes: Attributes | Domain, outside: Outside = "drop") -> NDArray[np.int64]:
    """Count records in the cells of a domain: ``Domain(attributes, outside).count(data)``.

    Guarantee
        That of `Domain`: counts are exact and private; each record is in one cell at most.

    Examples
    --------
    >>> import polars as pl
    >>> histogram(pl.DataFrame({"x": [0, 2, 2], "y": [1, 0, 0]}), {"x": 3, "y": 2})
    array([[0, 1],
           [0, 0],
           [2, 0]])

    """
    domain = attributes if isinstance(attributes, Domain) else Domain(attributes, outside)
    return domain.count(data)
