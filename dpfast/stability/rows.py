"""The rows of private data, of whatever library, and the rows of a block as the same kind.

Kinds are looked at before a charge, rows only after it. A block shows nothing of the other rows: categories and
dictionaries, which list what other rows hold, become plain values; metadata and pandas' labels are left out; text is as
wide as its own rows need; and no memory is shared. Types that no block can hold are refused before a charge.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.aggregation.lost_threads import refuse_lost_threads
from dpfast.arguments import Special
from dpfast.columns.lists import library_of
from dpfast.errors import ColumnError, DpfastError, ParameterError, Words
from dpfast.stability.worker import label_of

__all__ = ["Data", "Loaded", "Rows", "read_rows"]

_ALLOWED = "a column or a frame: of Polars, Arrow, NumPy or pandas, or a list"


def _no_data() -> tuple[object, ...]:
    return (5, True, 0.5, "text", b"text", object(), {"a": [1]}, {1, 2}, iter([1]), np.array(5.0), np.float64(1), list)


#: A column or a frame of any library.
Data: TypeAlias = Annotated[object, Special(_no_data)]
_Take: TypeAlias = Callable[[NDArray[np.int64]], Any]


@dataclass(frozen=True)
class Loaded:
    """Rows in memory: how many there are, some of them as the kind that was given, and who each is of, if asked."""

    count: int = field(repr=False)
    take: _Take = field(repr=False)
    units: NDArray[np.int64] | None = field(default=None, repr=False)

    def whole(self) -> Any:
        """Return all rows."""
        return self.take(np.arange(self.count))


@dataclass(frozen=True)
class Rows:
    """Data whose kind is known, and whose rows are not yet looked at."""

    data: Any = field(repr=False)
    unit: str | None
    load_kind: Callable[[Any, str | None], Loaded]

    def load(self) -> Loaded:
        """Return the rows: after the charge.

        Raises
        ------
        DpfastError
            They cannot be read. The words are fixed, since those of a library may quote the data.

        """
        try:
            return self.load_kind(self.data, self.unit)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException:
            pass
        # Out here no traceback holds the library's error.
        raise DpfastError("the data cannot be read: an expression of a LazyFrame or a reader fails")


def read_rows(data: object, unit: object = None) -> Rows:
    """Return data by its kind and schema alone.

    Raises
    ------
    ParameterError
        The data are no column and no frame.
    ColumnError
        The column of units is not there, or of a type that names nobody; or a dictionary lies within lists.

    """
    if unit is not None and (not isinstance(unit, str) or not unit):
        raise ParameterError("unit", unit, "the name of a column, or None")
    if isinstance(data, type):
        raise ParameterError("data", data, _ALLOWED)
    library = library_of(data)
    kind = type(data).__name__
    names = None if unit is None else str.__str__(unit)
    if library == "polars" and kind in ("DataFrame", "LazyFrame", "Series"):
        refuse_lost_threads()  # before the charge: Polars would hang
        return _of_polars(data, names)
    if library == "pyarrow" and hasattr(data, "take"):
        return _of_arrow(data, names)
    if library == "pandas" and hasattr(data, "iloc"):
        return _of_pandas(data, names)
    if library == "numpy" and isinstance(data, np.ndarray) and data.ndim:
        if data.dtype.names is not None and _has_text(data.dtype):
            raise ColumnError("data must have no text of fixed width in fields of an array; pass columns, or objects")
        return Rows(_without_unit(data, names), None, _load_array)
    if isinstance(data, (list, tuple)):
        return Rows(_without_unit(list(data), names), None, _load_list)
    if hasattr(data, "__arrow_c_stream__"):
        # The reader of another library: its schema is that of a frame, found when it is read.
        return Rows(_without_unit(data, names), None, _load_stream)
    given = Words(f"a {kind}") if isinstance(data, (dict, set)) else data
    raise ParameterError("data", given, _ALLOWED)


def _without_unit(data: Any, unit: str | None) -> Any:
    if unit is not None:
        raise ParameterError("unit", unit, "left out for data that are no frame with named columns")
    return data


def _missing(unit: str) -> ColumnError:
    return ColumnError(f"unit must name a column of the data, but there is none called {unit[:60]!r}")


def _probe(rows: Rows, empty: Any) -> Rows:
    """Refuse types that no block can hold: tried on data without rows."""
    try:
        pickle.dumps(rows.load_kind(empty, None).whole(), protocol=5)
    except Exception:
        pass
    else:
        return rows
    raise ColumnError("data hold a type of which no blocks can be made; cast it to strings or numbers, or leave it out")


def _check_unit(dtype: Any, unit: str) -> None:
    """Refuse units whose equality is not plain."""
    import polars as pl

    named = dtype.is_integer() or dtype in (pl.String, pl.Boolean, pl.Date, pl.Categorical, pl.Enum, pl.Binary)
    if not named and dtype != pl.Null:
        raise ColumnError(f"unit must name a column of strings or integers, but {unit[:60]!r} holds {dtype}; cast it")


def _of_polars(data: Any, unit: str | None) -> Rows:
    import polars as pl

    if isinstance(data, pl.Series):
        return _probe(Rows(_without_unit(data, unit), None, _load_series), pl.Series(dtype=data.dtype))
    schema = data.collect_schema() if hasattr(data, "collect_schema") else data.schema
    if unit is not None:
        if unit not in schema:
            raise _missing(unit)
        _check_unit(schema[unit], unit)
    return _probe(Rows(data, unit, _load_polars), pl.DataFrame(schema=schema))


def _own(series: Any) -> Any:
    """Return a column whose texts are copies: those of Polars lie in memory that is shared with other rows."""
    import polars as pl

    if not {pl.String, pl.Binary} & _leaves(series.dtype):
        return series.rechunk()
    copied = pl.Series(series.name, series.to_arrow(compat_level=pl.CompatLevel.oldest()))
    return copied.cast(series.dtype).rechunk()


def _leaves(dtype: Any) -> set[Any]:
    """Return the types that a type is made of."""
    import polars as pl

    if isinstance(dtype, (pl.List, pl.Array)):
        return _leaves(dtype.inner)
    if isinstance(dtype, pl.Struct):
        return set().union(*(_leaves(one.dtype) for one in dtype.fields))
    return {dtype.base_type()}


def _plain_dtype(dtype: Any) -> Any:
    """Return a type without categories, which list the values of other rows."""
    import polars as pl

    if isinstance(dtype, pl.Categorical):
        return pl.String
    if isinstance(dtype, pl.List):
        return pl.List(_plain_dtype(dtype.inner))
    if isinstance(dtype, pl.Array):
        return pl.Array(_plain_dtype(dtype.inner), dtype.size)
    if isinstance(dtype, pl.Struct):
        return pl.Struct({one.name: _plain_dtype(one.dtype) for one in dtype.fields})
    return dtype


def _load_polars(data: Any, unit: str | None) -> Loaded:
    import polars as pl

    frame = data.collect() if isinstance(data, pl.LazyFrame) else data
    units = None if unit is None else _units_of(frame[unit])
    casts = {name: _plain_dtype(dtype) for name, dtype in frame.schema.items() if _plain_dtype(dtype) != dtype}
    plain = frame.cast(casts) if casts else frame

    def take(rows: NDArray[np.int64]) -> Any:
        block = plain[rows]
        return block.with_columns(map(_own, block))

    return Loaded(plain.height, take, units)


def _units_of(series: Any) -> NDArray[np.int64]:
    """Return a number for every unit, from 0 on, and -1 for null."""
    import polars as pl

    if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        series = series.cast(pl.String)
    if series.dtype in (pl.Boolean, pl.Null):
        series = series.cast(pl.UInt8)
    numbers = series.rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - 1
    return np.ascontiguousarray(numbers)


def _load_series(data: Any, _: str | None) -> Loaded:
    plain = data.cast(_plain_dtype(data.dtype))
    return Loaded(len(plain), lambda rows: _own(plain.gather(rows)))


def _load_stream(data: Any, _: str | None) -> Loaded:
    import polars as pl

    return _load_polars(pl.DataFrame(data), None)


def _of_arrow(data: Any, unit: str | None) -> Rows:
    import pyarrow as pa

    fields = list(data.schema) if hasattr(data, "schema") else None
    for dtype in [one.type for one in fields] if fields is not None else [data.type]:
        if "dictionary<" in str(dtype) and not pa.types.is_dictionary(dtype):
            raise ColumnError("data must have no dictionaries within lists or structs; cast them")
    if fields is None:
        return _probe(Rows(_without_unit(data, unit), None, _load_arrow), pa.array([], data.type))
    if unit is not None:
        import polars as pl

        if [one.name for one in fields].count(unit) != 1:
            raise _missing(unit)
        empty = data.schema.empty_table().select([unit])
        _check_unit(pl.DataFrame(empty).schema[unit], unit)
    return _probe(Rows(data, unit, _load_arrow), data.schema.empty_table())


def _load_arrow(data: Any, unit: str | None) -> Loaded:
    import pyarrow as pa

    units = None
    if unit is not None:
        import polars as pl

        units = _units_of(pl.DataFrame(pa.table({"unit": data.column(unit)}))["unit"])
    if hasattr(data, "schema"):
        # Fields made anew have no metadata; those of pandas tell the number of all rows.
        data = data.cast(pa.schema([_plain_field(one) for one in data.schema]))
    else:
        data = data.cast(_plain_arrow(data.type))

    def take(rows: NDArray[np.int64]) -> Any:
        block = data.take(pa.array(rows))
        if isinstance(block, pa.ChunkedArray):
            return pa.chunked_array([block.combine_chunks()], data.type)
        return block.combine_chunks() if isinstance(block, pa.Table) else block

    return Loaded(len(data), take, units)


def _plain_field(one: Any) -> Any:
    import pyarrow as pa

    return pa.field(one.name, _plain_arrow(one.type), one.nullable)


def _plain_arrow(dtype: Any) -> Any:
    """Return a type without dictionaries, metadata, and views, whose memory is shared with other rows."""
    import pyarrow as pa

    kinds = pa.types
    if isinstance(dtype, pa.BaseExtensionType):
        return _plain_arrow(dtype.storage_type)
    if kinds.is_dictionary(dtype):
        return _plain_arrow(dtype.value_type)
    if kinds.is_struct(dtype):
        return pa.struct([_plain_field(one) for one in dtype])
    if kinds.is_map(dtype):
        return pa.map_(_plain_field(dtype.key_field), _plain_field(dtype.item_field), dtype.keys_sorted)
    if kinds.is_fixed_size_list(dtype):
        return pa.list_(_plain_field(dtype.value_field), dtype.list_size)
    if kinds.is_list(dtype):
        return pa.list_(_plain_field(dtype.value_field))
    if kinds.is_large_list(dtype):
        return pa.large_list(_plain_field(dtype.value_field))
    if kinds.is_list_view(dtype) or kinds.is_large_list_view(dtype):
        # Rows that are taken share the memory of all, and casts of tables make invalid arrays.
        raise ColumnError("data must have no views of lists; cast them")
    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return views.get(dtype, dtype)


def _of_pandas(data: Any, unit: str | None) -> Rows:
    if not hasattr(type(data), "columns"):
        return _probe(Rows(_without_unit(data, unit), None, _load_pandas), data.iloc[:0])
    if unit is not None:
        import polars as pl

        if [*data.columns].count(unit) != 1:
            raise _missing(unit)
        if getattr(data[unit].dtype, "kind", "") == "f":
            _check_unit(pl.Float64(), unit)
    return _probe(Rows(data, unit, _load_pandas), data.iloc[:0])


def _load_pandas(data: Any, unit: str | None) -> Loaded:
    units = None
    if unit is not None:
        pd = import_module("pandas")
        named = data[unit]
        if named.dtype == object:
            # Whatever the objects are: what is no plain value is no unit.
            named = pd.Series([label_of(one) for one in named], dtype=object)
        units = np.asarray(pd.factorize(named)[0], np.int64)
    if hasattr(type(data), "columns"):
        casts = {name: _plain_pandas(dtype) for name, dtype in data.dtypes.items() if _plain_pandas(dtype) is not dtype}
        plain = data.astype(casts) if casts else data
    else:
        plain = data.astype(_plain_pandas(data.dtype)) if _plain_pandas(data.dtype) is not data.dtype else data

    def take(rows: NDArray[np.int64]) -> Any:
        block = plain.iloc[rows].reset_index(drop=True)
        block.attrs = {}
        return block

    return Loaded(len(plain), take, units)


def _plain_pandas(dtype: Any) -> Any:
    """Return the type of the categories; whole numbers with gaps would not fit into theirs."""
    if hasattr(dtype, "pyarrow_dtype"):
        return type(dtype)(_plain_arrow(dtype.pyarrow_dtype))
    if not hasattr(dtype, "categories"):
        return dtype
    own = dtype.categories.dtype
    return {"i": "Int64", "u": "UInt64", "b": "boolean"}.get(own.kind, own)


def _load_array(data: Any, _: str | None) -> Loaded:
    if data.dtype.kind not in "SU":
        return Loaded(len(data), lambda rows: data[rows])

    def take(rows: NDArray[np.int64]) -> Any:
        # The longest text of all would set the width of every block.
        block = data[rows]
        width = int(np.strings.str_len(np.asarray(block)).max(initial=1))
        return block.astype(f"{data.dtype.kind}{width}")

    return Loaded(len(data), take)


def _has_text(dtype: Any) -> bool:
    """Return whether there is text of fixed width in an array's type: as wide as the longest of all rows."""
    if dtype.names is not None:
        return any(_has_text(dtype[name]) for name in dtype.names)
    return dtype.base.kind in "SU" if dtype.base.names is None else _has_text(dtype.base)


def _load_list(data: Any, _: str | None) -> Loaded:
    return Loaded(len(data), lambda rows: [data[row] for row in rows.tolist()])
