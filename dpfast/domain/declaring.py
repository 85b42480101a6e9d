"""Values of columns by what a schema says of them, and by what was declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from dpfast.aggregation.sources import Data, Schema, missing_column
from dpfast.domain.counting import open_data
from dpfast.errors import ParameterError, Words
from dpfast.showing import brief

__all__ = ["declare", "read_columns", "read_dtypes", "read_nulls", "read_places", "values_of_dtype"]

#: Dtypes, also such as are given by their class.
_DTYPES = (pl.DataType, pl.datatypes.DataTypeClass)


def values_of_dtype(dtype: pl.DataType) -> list[Any] | None:
    """Return the values that a column has by its dtype alone; None where that says nothing.

    Examples
    --------
    >>> values_of_dtype(pl.Boolean()), values_of_dtype(pl.Enum(["f", "m"])), values_of_dtype(pl.Int8())
    ([False, True], ['f', 'm'], None)

    """
    if dtype == pl.Boolean:
        return [False, True]
    if isinstance(dtype, pl.Enum) and len(dtype.categories):
        categories: list[Any] = dtype.categories.to_list()
        return categories
    return None


def read_dtypes(data: Data, schema: Schema) -> Mapping[str, pl.DataType]:
    """Return the dtypes of columns by their names: those of data, or a schema that stands in the place of data.

    Examples
    --------
    >>> read_dtypes({"works": pl.Boolean}, None), dict(read_dtypes(pl.DataFrame({"works": [True]}), None))
    ({'works': Boolean}, {'works': Boolean})

    """
    if isinstance(data, Mapping) and data and all(isinstance(dtype, _DTYPES) for dtype in data.values()):
        if schema is not None:
            mend = "name each column's dtype once"
            raise ParameterError("schema", Words("given"), "left out where data are a schema themselves", mend)
        return dict(data)
    return open_data(data, schema).schema()


def declare(
    schema: Mapping[str, pl.DataType], attributes: Mapping[str, Any] | None, columns: Sequence[str] | None
) -> dict[str, Any]:
    """Return the values of columns: those that were declared, else those of the dtype.

    Raises
    ------
    ParameterError
        Columns are left of which nobody said what values they have, or the arguments are of another kind.
    ColumnError
        There is no such column.

    """
    declared, names = read_columns(schema, attributes, columns)
    found = {name: declared.get(name, values_of_dtype(schema[name])) for name in names}
    unknown = [name for name, values in found.items() if values is None]
    if unknown:
        mend = f'write for example {{"{unknown[0]}": ["a", "b"]}}, or dpf.bins; or name other columns'
        raise ParameterError("attributes", Words(f"without {brief(unknown)}"), "given for these columns", mend)
    return found


def read_columns(
    schema: Mapping[str, pl.DataType],
    attributes: Mapping[str, Any] | None,
    columns: Sequence[str] | None,
    argument: str = "columns",
) -> tuple[dict[str, Any], list[str]]:
    """Return what was declared of columns, and their names: all of the schema by default."""
    declared: dict[Any, Any] = {} if attributes is None else _mapping(attributes)
    names = list(schema) if columns is None else list(columns) if isinstance(columns, (list, tuple)) else []
    if not names or len(set(map(str, names))) < len(names) or not all(isinstance(name, str) for name in names):
        raise ParameterError(argument, columns, "a list of different columns' names")
    for what, given in ((argument, names), ("attributes", declared)):
        for name in given:
            if name not in schema:
                raise missing_column(name, list(schema), what)
    if spare := [name for name in declared if name not in names]:
        raise ParameterError("attributes", Words(f"of {brief(spare)} too"), "for the columns that are named")
    return declared, names


def _mapping(attributes: object) -> dict[Any, Any]:
    if not isinstance(attributes, Mapping) or not attributes:
        raise ParameterError("attributes", attributes, "a dictionary of names and values", 'write {"age": 100}')
    return dict(attributes)


def read_places(columns: object, known: tuple[str, ...]) -> list[int]:
    """Return the places of columns that are named, each once."""
    names = list(columns) if isinstance(columns, (list, tuple)) else []
    places = [known.index(name) for name in names if isinstance(name, str) and name in known]
    if not places or len(places) < len(names) or len(set(places)) < len(places):
        allowed = f"a list of different columns of the domain, which are {brief(list(known))}"
        raise ParameterError("columns", columns, allowed)
    return places


def read_nulls(nulls: object, attributes: Mapping[str, Any]) -> set[str]:
    """Return the columns whose nulls are a category."""
    if isinstance(nulls, bool):
        return set(attributes) if nulls else set()
    names = list(nulls) if isinstance(nulls, (list, tuple)) else [None]
    known = {name for name in names if isinstance(name, str) and name in attributes}
    if len(known) < len(names):
        raise ParameterError("nulls", nulls, "True, False, or a list of different attributes' names")
    return known
