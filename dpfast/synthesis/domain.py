"""Public domains: which values a column may take, how rows are counted over them, and records made of cells again."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.aggregation.sources import Source, missing_column, open_source, refuse_pattern
from dpfast.errors import ColumnError, DpfastError, ParameterError
from dpfast.mechanisms.additive import random_source
from dpfast.queries import Bins
from dpfast.randomness import Keystream, Purpose
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.exact_queries import LARGEST_DOMAIN

__all__ = ["Domain"]

_UNREADABLE = "the data could not be read to its end; see whether its files are whole"
_CHANGED = "a file of the data changed since it was opened; run it again"


class Domain:
    """The public values of some columns: a histogram's axes.

    Guarantee
        The domain is what the caller declares: nothing of it is read from the data. One row more or less changes one
        cell of `count` by one, or none; a row exchanged for another moves one unit from a cell to another, or, where
        rows may be dropped, adds or takes one: see ``outside``.

    Parameters
    ----------
    columns
        For each column by name its values, public: a sequence of one value or more, all different, of the column's
        type; or `dpfast.bins` of it, of which a value lies in edges[i] <= x < edges[i + 1].
    outside
        What becomes of a row with a value that is not among these, or is null: "drop" leaves the row out; "null"
        counts it in one more cell of the column, which stands for all such values.

    Attributes
    ----------
    names, shape
        The columns, and how many cells each has.

    Raises
    ------
    ParameterError
        Values are missing, stand twice, or make too many cells.

    Examples
    --------
    >>> import polars as pl
    >>> domain = Domain({"sex": ["f", "m"], "age": Bins("age", (0, 30, 60, 100))})
    >>> frame = pl.DataFrame({"sex": ["f", "m", "f", "x"], "age": [31, 29, 64, 50]})
    >>> domain.count(frame).tolist()
    [[0, 1, 1], [1, 0, 0]]

    """

    def __init__(
        self, columns: Mapping[str, Sequence[Any] | Bins], *, outside: Literal["drop", "null"] = "drop"
    ) -> None:
        if not isinstance(columns, Mapping) or not columns:
            raise ParameterError("columns", columns, "a dict of columns and their values", 'write {"sex": ["f", "m"]}')
        if outside not in ("drop", "null"):
            raise ParameterError("outside", outside, '"drop" or "null"')
        self.names = tuple(columns)
        self._axes: dict[str, tuple[Any, ...] | Bins] = {}
        for name, values in columns.items():
            refuse_pattern(name)
            self._axes[name] = values if isinstance(values, Bins) else _distinct(name, values)
        self._spare = int(outside == "null")
        sizes = (len(axis.labels if isinstance(axis, Bins) else axis) for axis in self._axes.values())
        self.shape = tuple(size + self._spare for size in sizes)
        if math.prod(self.shape) > LARGEST_DOMAIN:
            cells = math.prod(self.shape)
            raise ParameterError(
                "columns",
                f"of {cells:,} cells together",
                f"of at most {LARGEST_DOMAIN:,} cells (the weights of these take {8 * cells:,} bytes)",
                "leave columns out, or make their values fewer",
            )

    def opened(self, data: Any, *, schema: Any = None) -> tuple[Source, dict[str, pl.Series | None]]:
        """Open data and read its schema, not its rows; return it with every column's values in its type."""
        source = open_source(data, schema=schema)
        known = source.collect_schema()
        values: dict[str, pl.Series | None] = {}
        for name, axis in self._axes.items():
            if name not in known:
                raise missing_column(name, known, "columns")
            dtype = known[name]
            if isinstance(axis, Bins):
                if not dtype.is_numeric() or dtype.is_decimal():
                    raise ColumnError(f"bins are for columns of integers or floats, but {name!r} is {dtype}")
                values[name] = None
            else:
                values[name] = _in_type(name, axis, dtype)
        return source, values

    def count(self, data: Any, *, schema: Any = None) -> NDArray[np.int64]:
        """Return the exact histogram of a frame or of files: private.

        Parameters
        ----------
        data, schema
            As for `dpfast.release`.

        Raises
        ------
        ParameterError, ColumnError
            A column is missing, or of a type that its values are not of.
        DpfastError
            The data cannot be read to its end; the message shows nothing of it.

        """
        return self.count_opened(*self.opened(data, schema=schema))

    def count_opened(self, source: Source, values: Mapping[str, pl.Series | None]) -> NDArray[np.int64]:
        """Return the exact histogram of what `opened` gave."""
        cell = pl.lit(0, pl.Int64)
        for name, size in zip(self.names, self.shape, strict=True):
            cell = cell * size + self._code(name, values[name], size).cast(pl.Int64)
        grouped = None
        try:
            lazy = source.frame.lazy().select(cell.alias("cell")).drop_nulls().group_by("cell").len("rows")
            grouped = lazy.collect(engine="streaming")
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except (Exception, pl.exceptions.PanicException):
            pass
        # Out here no traceback holds the engine's error, which may quote values.
        if any(not pin.holds() for pin in source.pins):
            raise DpfastError(_CHANGED)
        if grouped is None:
            raise DpfastError(_UNREADABLE)
        counts = np.zeros(math.prod(self.shape), np.int64)
        counts[grouped["cell"].to_numpy()] = grouped["rows"].to_numpy()
        return counts.reshape(self.shape)

    def _code(self, name: str, values: pl.Series | None, size: int) -> pl.Expr:
        """Return a column's cell, null outside if there is no cell for that."""
        axis, column = self._axes[name], pl.col(name)
        if isinstance(axis, Bins):
            number = column.cast(pl.Float64)
            passed = pl.sum_horizontal(*(number.ge(float(edge)).cast(pl.Int32) for edge in axis.edges))
            inside = number.is_not_null() & number.is_not_nan() & (passed > 0) & (passed < len(axis.edges))
            code: pl.Expr = pl.when(inside).then(passed - 1)
        else:
            assert values is not None
            if values.dtype == pl.String:
                column = column.cast(pl.String)
            places = pl.Series(range(len(values)), dtype=pl.Int32)
            code = column.replace_strict(values, places, default=None, return_dtype=pl.Int32)
        return code.fill_null(size - 1) if self._spare else code

    def records(self, estimate: Estimate, n: int | None = None, *, random: object = None) -> pl.DataFrame:
        """Return synthetic records with this domain's columns; see `Estimate.to_frame`.

        A bin's numbers are drawn evenly between its edges: whole ones if its edges are. The cell for everything else
        gives null.
        """
        source = random_source(random)
        values: dict[str, pl.Series] = {}
        for name, size in zip(self.names, self.shape, strict=True):
            axis = self._axes[name]
            series = pl.Series(range(size), dtype=pl.Int64) if isinstance(axis, Bins) else pl.Series(list(axis))
            values[name] = series.extend_constant(None, self._spare) if not isinstance(axis, Bins) else series
        frame = estimate.to_frame(n, columns=self.names, values=values, random=source)
        drawn = [self._within(axis, frame[name], source) for name, axis in self._axes.items() if isinstance(axis, Bins)]
        return frame.with_columns(drawn)

    def _within(self, axis: Bins, cells: pl.Series, source: Any) -> pl.Series:
        """Return numbers within the bins."""
        words = np.empty(cells.len(), np.uint64)
        if words.size:
            Keystream(source.key()).words(Purpose.NOISE).fill(0, words)
        shares = (words >> np.uint64(11)) * 2.0**-53
        edges = np.array([*axis.edges, axis.edges[-1]], dtype=np.float64)
        places = cells.to_numpy()
        spare = places >= len(axis.labels)
        places = np.minimum(places, len(axis.labels) - 1)
        numbers = edges[places] + shares * (edges[places + 1] - edges[places])
        if isinstance(axis.edges[0], int):
            series = pl.Series(axis.column, np.floor(numbers).astype(np.int64))
        else:
            series = pl.Series(axis.column, np.minimum(numbers, np.nextafter(edges[places + 1], -np.inf)))
        return series.set(pl.Series(spare), None) if spare.any() else series

    def __repr__(self) -> str:
        """Show the columns and their sizes."""
        return f"Domain({', '.join(f'{name}: {size}' for name, size in zip(self.names, self.shape, strict=True))})"


def _distinct(name: str, values: Any) -> tuple[Any, ...]:
    allowed = "one value or more, all different and none null"
    if isinstance(values, (str, bytes, os.PathLike)) or not isinstance(values, (Sequence, pl.Series, np.ndarray)):
        raise ParameterError(f"values of {name}", values, allowed, "write a list")
    listed = tuple(values.to_list() if isinstance(values, pl.Series) else values)
    if not listed or any(value is None for value in listed) or len(set(listed)) < len(listed):
        raise ParameterError(f"values of {name}", list(listed), allowed)
    return listed


def _in_type(name: str, axis: tuple[Any, ...], dtype: pl.DataType) -> pl.Series:
    """Return public values in the type of their column, categories as strings."""
    wanted = pl.String() if isinstance(dtype, (pl.Categorical, pl.Enum)) else dtype
    try:
        series = pl.Series(name, list(axis))
        cast = series.cast(wanted, strict=True)
    except (pl.exceptions.PolarsError, TypeError, ValueError):
        cast = None
    if cast is None or cast.n_unique() < len(axis) or (series.dtype == pl.String) != (wanted == pl.String):
        raise ParameterError(f"values of {name}", list(axis), f"different values of the column's type {dtype}")
    return cast
