"""Public domains: from records to the cells of a histogram, and from cells back to records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.aggregation.sources import Data, Schema
from dpfast.arguments import THREADS, Threads
from dpfast.domain.arguments import (
    DRAWS_PARTS,
    MOST,
    OUTSIDE,
    PART,
    RECORDS,
    Attributes,
    ColumnNames,
    DrawsParts,
    Most,
    OfEstimate,
    Outside,
    OwnAttributes,
    Places,
    Records,
    RecordsPath,
    WithNulls,
)
from dpfast.domain.attributes import read_attribute
from dpfast.domain.counting import OpenRecords, open_records
from dpfast.domain.declaring import declare, read_dtypes, read_nulls, read_places
from dpfast.domain.impossible import Possible, read_impossible
from dpfast.domain.records import draw_records, fill_columns, label_cells
from dpfast.domain.shapes import check_size
from dpfast.domain.writing import check_suffix, shown_on_terminal, told, write_frames
from dpfast.errors import ParameterError, Words
from dpfast.progress import TellCount, read_progress
from dpfast.queries import Bins
from dpfast.randomness import Random, random_source
from dpfast.showing import Card, Shown

__all__ = ["Domain", "columns_left_out", "histogram", "possible_cells"]


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
        - `dpf.bins`, for numbers, dates, datetimes, durations and times: bins of ``edges[i] <= x < edges[i + 1]``,
          compared as float64.
    outside
        What becomes of a record with a value that was not declared: "drop" leaves it out; "null" counts it in a cell
        that stands for null and all such values, the last along the axis unless null is listed; "clamp" takes the
        nearest code or bin, and leaves out records with nulls, NaN, or values that a list lacks.
    nulls
        The columns whose nulls, and NaN, are a category of their own, whatever becomes of other values: True for all.
        They are the last cell along the axis, and None in records.

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

    def __init__(self, attributes: Attributes, outside: Outside = "drop", *, nulls: WithNulls = False) -> None:
        if not isinstance(attributes, Mapping) or not attributes:
            raise ParameterError("attributes", attributes, "a dictionary of names and values", 'write {"age": 100}')
        self.outside = OUTSIDE.read("outside", outside)
        null, own = outside == "null", read_nulls(nulls, attributes)
        self._attributes = [
            read_attribute(name, values, null=null, nulls=name in own) for name, values in attributes.items()
        ]
        self._clamps = outside == "clamp"
        self.names = tuple(attribute.name for attribute in self._attributes)
        self.shape = tuple(attribute.size for attribute in self._attributes)

    @classmethod
    def from_schema(
        cls,
        data: Data,
        attributes: OwnAttributes = None,
        *,
        columns: ColumnNames = None,
        outside: Outside = "drop",
        nulls: WithNulls = False,
        schema: Schema = None,
    ) -> Domain:
        """Return the domain of a table's columns, by what its schema and you say of them; no row is read.

        Guarantee
            None by itself, as `Domain`'s. Only names and dtypes are read: both Booleans, and the categories of an Enum.
            They are taken for public, as in every plan; a Categorical's categories come from rows, and are not.

        Parameters
        ----------
        data, schema
            As for `open`. The schema alone serves as data too: ``frame.schema``, or a dictionary of names and dtypes.
        attributes
            The values of columns whose dtype does not say them, or of which others shall be used.
        columns
            Which columns, in the order of the axes; all of them in the order of the data if not given.
        outside, nulls
            As for `Domain`.

        Raises
        ------
        ParameterError
            Neither the schema nor you say which values a column has, or what you say is not as for `Domain`.
        ColumnError
            There is no such column.

        Examples
        --------
        >>> import dpfast as dpf
        >>> import polars as pl
        >>> people = pl.DataFrame({"age": [7, None], "sex": ["f", "m"], "works": [False, True]})
        >>> people = people.with_columns(pl.col("sex").cast(pl.Enum(["f", "m", "x"])))
        >>> dpf.Domain.from_schema(people, {"age": dpf.bins("age", [0, 18, 65, 120])}, nulls=["age"])
        Domain(age: 4, sex: 3, works: 2)

        """
        return cls(declare(read_dtypes(data, schema), attributes, columns), outside, nulls=nulls)

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
            dictionary of columns that have dtypes of their own: Polars Series, or NumPy arrays of numbers or times.

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

    def frame(self, columns: ColumnNames = None) -> pl.DataFrame:
        """Return one row for each cell, in the order of the flattened histogram: its values, bins by their left edges.

        These are public keys of a plan: ``dpf.plan(data, by=domain.by, keys=domain.frame(), workload=...)``. A plan
        leaves rows with other keys out, as "drop" does. Its null keys hold nulls, and what lies outside of bins.

        Parameters
        ----------
        columns
            Some of the columns: a row for each cell over these, the last one running fastest. None for all of them.

        """
        places = range(len(self.names)) if columns is None else read_places(columns, self.names)
        cells = math.prod(self.shape[place] for place in places)
        check_size(cells, "domain", "cells")
        return label_cells(np.arange(cells), [self._attributes[place].labels for place in places])

    def records(
        self, cells: Places, n: Records = None, *, random: Random = None, threads: Threads = None
    ) -> pl.DataFrame:
        """Return records that lie in cells, one a row: given cells, or cells drawn from an estimate.

        A bin's numbers are drawn evenly between its edges: whole ones if its edges are. The cell of all that was not
        declared gives null.

        Guarantee
            Post-processing: records of an estimate cost nothing beyond what the estimate did, however many they are.

        Parameters
        ----------
        cells
            Integers, numbers of cells of the flattened histogram, in any order; or what synthesis returns over this
            domain: `Estimate`, `ModelEstimate`, or the `Synthesis` of `dpfast.synthesize`.
        n
            How many records of an estimate. If not given, its total, rounded; of a `Synthesis` as many as it was asked
            for. It is for estimates alone: each number of a cell is a record already.
        random
            None, or a `dpfast.testing.SeededRandom`.
        threads
            How many draw many records of a model at once; as many as pay if not given. The result does not depend on
            it.

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
        THREADS.read_optional("threads", threads)
        if isinstance(cells, DrawsParts) and not isinstance(cells, type):
            return pl.concat(self.record_batches(cells, n, random=source, threads=threads))
        try:
            numbers = np.asarray(cells)
        except (TypeError, ValueError, OverflowError):
            numbers = np.empty((0, 0))
        # What lies beyond int64 is no number of a cell.
        number = min(self.cells, 2**63)
        outside = numbers.size and (numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() >= number)
        if numbers.ndim != 1 or outside:
            allowed = f"integers from 0 to {number - 1:,}, or an estimate that synthesis returned"
            raise ParameterError("cells", numbers.dtype, allowed)
        if n is not None:
            mend = "each number of a cell is a record already; n says how many to draw from an estimate"
            raise ParameterError("n", n, "left out beside numbers of cells", mend)
        return draw_records(numbers.astype(np.int64), self._attributes, source)

    def record_batches(
        self,
        estimate: OfEstimate,
        n: Records = None,
        *,
        most: Most = PART,
        random: Random = None,
        threads: Threads = None,
    ) -> Iterator[pl.DataFrame]:
        """Give the records of an estimate in frames, a part at a time: all together are what `records` returns.

        Guarantee
            Post-processing, as `records` is.

        Parameters
        ----------
        estimate
            What synthesis returns over this domain: `Estimate`, `ModelEstimate`, or `Synthesis`.
        n
            How many records. If not given, the estimate's total, rounded; of a `Synthesis` as many as it was asked for.
        most
            The most rows of a frame. Each frame but the last one has so many, and its share of every cell; what is
            rounded is rounded once for all of them.
        random
            None, or a `dpfast.testing.SeededRandom`.
        threads
            As for `records`. Each has a part in memory.

        Raises
        ------
        ParameterError
            The estimate is of another shape, or is none.

        Examples
        --------
        >>> import dpfast as dpf
        >>> domain = dpf.Domain({"age": dpf.bins("age", [0, 18, 65, 120])})
        >>> estimate = dpf.mwem([500, 200, 300], dpf.workloads.identity(3), epsilon=1.0)
        >>> [batch.height for batch in domain.record_batches(estimate, 1_000, most=400)]
        [400, 400, 200]

        """
        DRAWS_PARTS.read("estimate", estimate)
        self._check_shape(estimate.shape)
        RECORDS.read_optional("n", n)
        source, most = random_source(random), MOST.read("most", most)
        parts = estimate.draw_parts(n, most=most, random=source, threads=threads)
        return (fill_columns(list(codes), self._attributes, source) for codes in parts)

    def write_records(
        self,
        estimate: OfEstimate,
        path: RecordsPath,
        n: Records = None,
        *,
        progress: TellCount = None,
        random: Random = None,
        threads: Threads = None,
    ) -> int:
        """Write the records of an estimate to a file, of which no more than a part for each thread is ever in memory.

        Guarantee
            Post-processing, as `records` is.

        Parameters
        ----------
        estimate, n, random, threads
            As for `record_batches`.
        path
            The file: .parquet, .arrow, .csv or .ndjson. It is replaced when all is written, or else left as it is.
        progress
            Called with the number of records that are written, part by part. Without it a terminal is told.

        Returns
        -------
        int
            How many records were written.

        Raises
        ------
        ParameterError
            As `record_batches` does, or the path is of another kind.
        OSError
            The file cannot be written.

        """
        file = check_suffix(path)
        tell = read_progress(progress, "the number of records that are written")
        batches = self.record_batches(estimate, n, random=random, threads=threads)
        shown = shown_on_terminal(batches, n) if progress is None else told(batches, tell)
        return write_frames(shown, file)

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        """Refuse an estimate of another shape."""
        if tuple(shape) != self.shape:
            mend = "give an estimate of a histogram that this domain counted"
            raise ParameterError("cells", Words(f"an estimate of shape {tuple(shape)}"), f"of shape {self.shape}", mend)


def possible_cells(domain: Domain, impossible: object, most_cells: float, enlarge: str) -> tuple[Possible, ...]:
    """Return which cells records can be in, by what is declared impossible; see `dpfast.domain.impossible`."""
    return read_impossible(impossible, domain._attributes, most_cells, enlarge)


def columns_left_out(domain: Domain) -> tuple[list[str], list[str]]:
    """Return the columns whose undeclared values, and those whose nulls, put a record into no cell: by what is public.

    Examples
    --------
    >>> columns_left_out(Domain({"sex": ["f", "m"], "age": 100, "works": [False, True]}, "clamp", nulls=["age"]))
    (['sex'], ['sex', 'works'])

    """
    attributes, clamps = domain._attributes, domain.outside == "clamp"
    others = [one.name for one in attributes if one.drops_others(clamps=clamps)]
    return others, [one.name for one in attributes if not one.counts_nulls]


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
