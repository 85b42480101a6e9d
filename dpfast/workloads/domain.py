"""From records to the cells of a histogram, and from cells back to records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.columns.candidates import as_series, read_candidates
from dpfast.errors import ColumnError, ParameterError
from dpfast.kernels.counting import UNKNOWN, add_key_codes, count_slots, find_bins
from dpfast.queries import Bins
from dpfast.workloads.shapes import check_size, checked_integer, checked_shape

__all__ = ["Domain", "histogram"]

_BLOCK_ROWS = 1 << 16
_ZERO = np.uint64(0)
_ALLOWED = "a number of codes, a list of values (strings, integers, Booleans or dates, each once), or dpf.bins"


@dataclass(frozen=True)
class _Attribute:
    """One attribute: its values as a record shows them, and bins' edges; None for integer codes."""

    name: str
    size: int
    values: pl.Series | None = None
    edges: NDArray[np.float64] | None = None


class Domain:
    """The public values that records can have: what the cells of a histogram stand for.

    Guarantee
        None by itself: counts are exact. Which cell a record falls into depends on that record alone, and no error
        depends on a value. So adding or removing a record changes one cell by one at most, and replacing one takes one
        from a cell at most and adds one to a cell at most. The domain is public: take it from what is known of the
        attributes, never from the records.

    Parameters
    ----------
    attributes
        The values of each attribute, by its name:

        - an integer n: the column holds codes 0 to n - 1;
        - a list of values: strings, integers, Booleans or dates, all of one kind; None for null if it counts;
        - `dpf.bins`, for numbers: bins of ``edges[i] <= x < edges[i + 1]``, called by their left edges.
    outside
        What becomes of a record with a code or a number outside its attribute's: "drop" leaves the record out; "clamp"
        takes the nearest code or bin. Records with nulls, NaN or values that no list has are left out in any case.

    Attributes
    ----------
    names
        The attributes, in the order of the histogram's axes.
    shape
        How many values each has.

    Raises
    ------
    ParameterError
        An attribute is none of these, or the cells are too many.

    Examples
    --------
    >>> import dpfast as dpf
    >>> import polars as pl
    >>> domain = dpf.workloads.Domain({"sex": ["f", "m"], "age": dpf.bins("age", [0, 18, 65, 120])})
    >>> people = pl.DataFrame({"age": [7, 70, 33, 34, 200], "sex": ["m", "f", "m", "m", "f"]})
    >>> domain.count(people)
    array([[0, 0, 1],
           [1, 2, 0]])
    >>> domain.records([2, 4]).rows()
    [('f', 65), ('m', 18)]

    """

    def __init__(self, attributes: Mapping[str, Any], outside: Literal["drop", "clamp"] = "drop") -> None:
        if not isinstance(attributes, Mapping) or not attributes:
            raise ParameterError("attributes", attributes, "a dictionary of names and values", 'write {"age": 100}')
        if outside not in ("drop", "clamp"):
            raise ParameterError("outside", outside, "'drop' or 'clamp'")
        self._attributes = [_read_attribute(name, values) for name, values in attributes.items()]
        self._clamps = outside == "clamp"
        self.names = tuple(attribute.name for attribute in self._attributes)
        self.shape = checked_shape([attribute.size for attribute in self._attributes], "attributes")

    def __repr__(self) -> str:
        """Show the names and how many values each has."""
        return f"Domain({', '.join(f'{each.name}: {each.size}' for each in self._attributes)})"

    def count(self, records: Any) -> NDArray[np.int64]:
        """Count the records in each cell.

        Parameters
        ----------
        records
            A DataFrame or LazyFrame of Polars, or what `polars.DataFrame` takes, with a column for each name.

        Returns
        -------
        numpy.ndarray
            int64, of `shape`.

        Raises
        ------
        ColumnError
            A column is missing, or of a type that cannot hold the attribute's values.

        """
        columns = [self._codes(attribute, column) for attribute, column in self._columns(records)]
        rows = len(columns[0][0])
        cells = math.prod(self.shape)
        # What falls outside is counted in a place of its own, behind the last cell.
        table = np.zeros(cells + 1, np.int64)
        codes = np.empty(min(rows, _BLOCK_ROWS), np.uint64)
        values = np.empty(codes.size, np.int64)
        valid = np.empty(codes.size, np.uint8)
        for start in range(0, rows, _BLOCK_ROWS):
            own = codes[: min(rows - start, _BLOCK_ROWS)]
            own[:] = 0
            stride = cells
            for size, (numbers, present) in zip(self.shape, columns, strict=True):
                stride //= size
                block = self._read(numbers[start : start + own.size], size, values[: own.size])
                if present is not None:
                    valid[: own.size] = present[start : start + own.size]
                else:
                    valid[: own.size] = 1
                add_key_codes(block, valid[: own.size], _ZERO, np.uint64(size), np.uint64(stride), UNKNOWN, own)
            count_slots(own, table)
        return table[:-1].reshape(self.shape)

    def records(self, cells: Any) -> pl.DataFrame:
        """Return a record for each cell: its attributes' values, bins by their left edges.

        Parameters
        ----------
        cells
            Integers, numbers of cells of the flattened histogram, in any order.

        """
        numbers = np.asarray(cells)
        outside = numbers.size and (numbers.dtype.kind not in "iu" or not self._holds(numbers))
        if numbers.ndim != 1 or outside:
            raise ParameterError("cells", numbers.dtype, f"integers from 0 to {math.prod(self.shape) - 1:,}")
        places = np.unravel_index(numbers.astype(np.int64), self.shape)
        columns = []
        for attribute, place in zip(self._attributes, places, strict=True):
            codes = pl.Series(attribute.name, place, dtype=pl.Int64)
            columns.append(codes if attribute.values is None else attribute.values.gather(codes).alias(attribute.name))
        return pl.DataFrame(columns)

    def _holds(self, cells: NDArray[Any]) -> bool:
        return bool(cells.min() >= 0 and cells.max() < math.prod(self.shape))

    def _columns(self, records: Any) -> list[tuple[_Attribute, pl.Series]]:
        try:
            frame = records if isinstance(records, (pl.DataFrame, pl.LazyFrame)) else pl.DataFrame(records)
        except (TypeError, ValueError):
            # What Polars says may show a value.
            kind = type(records).__name__
            raise ColumnError(
                f"records must be a frame of columns, but was a {kind}; pass a Polars DataFrame"
            ) from None
        schema = frame.collect_schema()
        missing = [name for name in self.names if name not in schema]
        if missing:
            raise ColumnError(f"records must have a column for each attribute, but {missing[0]!r} is missing")
        taken = frame.lazy().select(self.names).collect()
        return [(attribute, taken[attribute.name]) for attribute in self._attributes]

    def _codes(self, attribute: _Attribute, column: pl.Series) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """Return a column as codes of any integer type, and which of them are present if not all are."""
        dtype = column.dtype
        if attribute.edges is not None:
            _check(dtype.is_numeric() and not dtype.is_decimal(), attribute, dtype, "integers or floats")
            return self._bins(column, attribute.edges)
        if attribute.values is None:
            _check(dtype.is_integer() and dtype.to_python() is int and _fits(dtype), attribute, dtype, "integers")
            return _plain(column)
        return _plain(_find_values(column, attribute))

    def _bins(self, column: pl.Series, edges: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        numbers, present = _plain(column.cast(pl.Float64))
        valid = np.ones(len(numbers), np.uint8) if present is None else present.astype(np.uint8)
        bins, inside = np.empty(len(numbers), np.int64), np.empty(len(numbers), np.uint8)
        for start in range(0, len(numbers), _BLOCK_ROWS):
            own = slice(start, start + _BLOCK_ROWS)
            find_bins(numbers[own], valid[own], edges, bins[own], inside[own])
        if not self._clamps:
            return bins, inside.view(np.bool_)
        bins[numbers < edges[0]] = 0
        bins[numbers >= edges[-1]] = len(edges) - 2
        return bins, ~np.isnan(numbers) & valid.view(np.bool_)

    def _read(self, numbers: NDArray[Any], size: int, out: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a block of codes as int64, inside the range if codes outside are taken for the nearest."""
        if self._clamps:
            # In the codes' own type: a uint64 above int64 is above all codes. A list's codes lie inside, or are null.
            np.clip(numbers, 0, min(size - 1, np.iinfo(numbers.dtype).max), out=out, casting="unsafe")
            return out
        if numbers.dtype == np.int64:
            return numbers
        np.copyto(out, numbers, casting="unsafe")
        return out


def histogram(records: Any, attributes: Mapping[str, Any] | Domain, outside: Literal["drop", "clamp"] = "drop") -> Any:
    """Count records in the cells of a domain: ``Domain(attributes, outside).count(records)``.

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
    return domain.count(records)


def _read_attribute(name: Any, values: Any) -> _Attribute:
    argument = f"the attribute {name!r}"
    if not isinstance(name, str):
        raise ParameterError("attributes", name, "a dictionary with a column's name for each attribute")
    if isinstance(values, Bins):
        edges = np.array(values.edges, np.float64)
        return _Attribute(name, edges.size - 1, pl.Series(name, values.labels), edges)
    if isinstance(values, (int, np.integer)):
        size = checked_integer(values, argument, 1)
        check_size(size, argument, "values")
        return _Attribute(name, size)
    try:
        series = as_series(read_candidates(values)).alias(name)
    except ParameterError:
        raise ParameterError(argument, values, _ALLOWED, f'write for example {{"{name}": ["a", "b"]}}') from None
    return _Attribute(name, len(series), series)


def _fits(dtype: pl.DataType) -> bool:
    return dtype not in (pl.Int128, getattr(pl, "UInt128", None))


def _plain(column: pl.Series) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return a column as an array, and where it is not null if it has nulls."""
    if column.null_count() == 0:
        return column.to_numpy(), None
    return column.fill_null(0).to_numpy(), column.is_not_null().to_numpy()


def _find_values(column: pl.Series, attribute: _Attribute) -> pl.Series:
    """Return the place of each row's value in the attribute's list, null for none."""
    values = attribute.values
    assert values is not None
    dtype = column.dtype
    text = dtype in (pl.String, pl.Categorical, pl.Enum)
    kinds = {pl.String: text, pl.Boolean: dtype == pl.Boolean, pl.Date: dtype == pl.Date}
    kind = {pl.String: "strings", pl.Boolean: "Booleans", pl.Date: "dates"}.get(type(values.dtype), "integers")
    _check(kinds.get(type(values.dtype), dtype.is_integer()), attribute, dtype, kind)
    null = values.null_count() > 0
    if text:
        listed = values.drop_nulls()
        # An Enum's numbers are the places in its list.
        places = column.cast(pl.String).cast(pl.Enum(listed), strict=False).to_physical().cast(pl.Int64)
        if not null:
            return places
        at = int(values.is_null().arg_max() or 0)
        moved = places + (places >= at).cast(pl.Int64)
        return pl.select(pl.when(column.is_null()).then(pl.lit(at, pl.Int64)).otherwise(moved)).to_series()
    wanted, numbers = values, pl.Series(range(len(values)), dtype=pl.Int64)
    if dtype.is_integer():
        kept = values.cast(dtype, strict=False)
        fits = values.is_null() | kept.is_not_null()
        wanted, numbers = kept.filter(fits), numbers.filter(fits)
    return column.replace_strict(wanted, numbers, default=None, return_dtype=pl.Int64)


def _check(allowed: bool, attribute: _Attribute, dtype: pl.DataType, kind: str) -> None:
    if not allowed:
        raise ColumnError(f"the column {attribute.name!r} must hold {kind}, as its attribute says, but was of {dtype}")
