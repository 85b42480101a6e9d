"""The rows of private data, of whatever library, and the rows of a block as the same kind.

Kinds are looked at before a charge, rows only after it. A block shows nothing of the other rows: categories and
dictionaries, which list what other rows hold, become plain values, and pandas' labels are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Special
from dpfast.columns.lists import library_of
from dpfast.errors import ColumnError, DpfastError, ParameterError, Words
from dpfast.stability.worker import label_of

__all__ = ["Data", "Rows", "read_rows"]

_ALLOWED = "a column or a frame: of Polars, Arrow, NumPy or pandas, or a list"


def _no_data() -> tuple[object, ...]:
    return (5, True, 0.5, "text", b"text", object(), {"a": [1]}, {1, 2}, iter([1]), np.array(5.0), np.float64(1), list)


#: A column or a frame of any library.
Data: TypeAlias = Annotated[object, Special(_no_data)]
_Take: TypeAlias = Callable[[NDArray[np.int64]], Any]


@dataclass(frozen=True)
class Loaded:
    """Rows in memory: how many there are, some of them as the kind that was given, and who each is of, if asked."""

    count: int
    take: _Take
    units: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Rows:
    """Data whose kind is known, and whose rows are not yet looked at."""

    data: Any
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
        return _of_polars(data, names)
    if library == "pyarrow" and hasattr(data, "take"):
        return _of_arrow(data, names)
    if library == "pandas" and hasattr(data, "iloc"):
        return _of_pandas(data, names)
    if library == "numpy" and isinstance(data, np.ndarray) and data.ndim:
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


def _check_unit(dtype: Any, unit: str) -> None:
    """Refuse units whose equality is not plain."""
    import polars as pl

    named = dtype.is_integer() or dtype in (pl.String, pl.Boolean, pl.Date, pl.Categorical, pl.Enum, pl.Binary)
    if not named and dtype != pl.Null:
        raise ColumnError(f"unit must name a column of strings or integers, but {unit[:60]!r} holds {dtype}; cast it")


def _of_polars(data: Any, unit: str | None) -> Rows:
    import polars as pl

    if isinstance(data, pl.Series):
        return Rows(_without_unit(data, unit), None, _load_series)
    if unit is not None:
        schema = data.collect_schema()
        if unit not in schema:
            raise _missing(unit)
        _check_unit(schema[unit], unit)
    return Rows(data, unit, _load_polars)


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
    return Loaded(plain.height, lambda rows: plain[rows], units)


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
    return Loaded(len(plain), lambda rows: plain.gather(rows))


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
        return Rows(_without_unit(data, unit), None, _load_arrow)
    if unit is not None:
        import polars as pl

        if [one.name for one in fields].count(unit) != 1:
            raise _missing(unit)
        empty = data.schema.empty_table().select([unit])
        _check_unit(pl.DataFrame(empty).schema[unit], unit)
    return Rows(data, unit, _load_arrow)


def _load_arrow(data: Any, unit: str | None) -> Loaded:
    import pyarrow as pa

    units = None
    if unit is not None:
        import polars as pl

        units = _units_of(pl.DataFrame(pa.table({"unit": data.column(unit)}))["unit"])
    if hasattr(data, "schema"):
        plain = pa.schema([one.with_type(_plain_arrow(one.type)) for one in data.schema])
        data = data if plain.equals(data.schema) else data.cast(plain)
    elif pa.types.is_dictionary(data.type):
        data = data.cast(data.type.value_type)
    return Loaded(len(data), lambda rows: data.take(pa.array(rows)), units)


def _plain_arrow(dtype: Any) -> Any:
    import pyarrow as pa

    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def _of_pandas(data: Any, unit: str | None) -> Rows:
    if not hasattr(data, "columns"):
        return Rows(_without_unit(data, unit), None, _load_pandas)
    if unit is not None:
        import polars as pl

        if [*data.columns].count(unit) != 1:
            raise _missing(unit)
        if getattr(data[unit].dtype, "kind", "") == "f":
            _check_unit(pl.Float64(), unit)
    return Rows(data, unit, _load_pandas)


def _load_pandas(data: Any, unit: str | None) -> Loaded:
    units = None
    if unit is not None:
        pd = import_module("pandas")
        named = data[unit]
        if named.dtype == object:
            # Whatever the objects are: what is no plain value is no unit.
            named = pd.Series([label_of(one) for one in named], dtype=object)
        units = np.asarray(pd.factorize(named)[0], np.int64)
    if hasattr(data, "columns"):
        casts = {name: _plain_pandas(dtype) for name, dtype in data.dtypes.items() if hasattr(dtype, "categories")}
        plain = data.astype(casts) if casts else data
    else:
        plain = data.astype(_plain_pandas(data.dtype)) if hasattr(data.dtype, "categories") else data
    return Loaded(len(plain), lambda rows: plain.iloc[rows].reset_index(drop=True), units)


def _plain_pandas(dtype: Any) -> Any:
    """Return the type of the categories; whole numbers with gaps would not fit into theirs."""
    own = dtype.categories.dtype
    return {"i": "Int64", "u": "UInt64", "b": "boolean"}.get(own.kind, own)


def _load_array(data: Any, _: str | None) -> Loaded:
    return Loaded(len(data), lambda rows: data[rows])


def _load_list(data: Any, _: str | None) -> Loaded:
    return Loaded(len(data), lambda rows: [data[row] for row in rows.tolist()])
