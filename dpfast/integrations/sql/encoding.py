"""Public keys and text that is hashed: as SQL, and as the values that are bound to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import polars as pl

from dpfast.errors import ParameterError
from dpfast.integrations.sql.dialects import Dialect, Kind
from dpfast.integrations.sql.parameters import Parameters

__all__ = ["MOST_PUBLIC_KEYS", "encoded", "public_keys"]

MOST_PUBLIC_KEYS = 2**20
"""Public keys are sent to the engine with the statement, so that they are limited."""


def encoded(column: str, kind: Kind, dialect: Dialect) -> str:
    """Return SQL of text that no other value of a column of this kind has, and that no other one's begins with.

    A number ends with a semicolon, a string begins with its length in bytes, null is ``n``.
    """
    if kind == "string":
        size = f"CAST({dialect.length.format(column)} AS {dialect.text})"
        shown = f"{size} || ':' || {dialect.decoded.format(column)}"
    else:
        shown = f"CAST({column} AS {dialect.text}) || ';'"
    return f"CASE WHEN {column} IS NULL THEN 'n' ELSE {shown} END"


def public_keys(public: pl.DataFrame, kinds: Sequence[Kind], dialect: Dialect, parameters: Parameters) -> str:
    """Return SQL of a table of the public keys, with the columns ``k0``, ``k1``, ...

    Parameters
    ----------
    public
        The columns ``key0``, ``key1``, ...
    kinds
        What the data's columns hold.
    dialect, parameters
        The engine's words, and where values are bound.

    Raises
    ------
    ParameterError
        If there are more than the engine is sent at once.

    """
    public = public.unique(maintain_order=True)
    if public.height > MOST_PUBLIC_KEYS:
        raise ParameterError(
            "keys",
            public.height,
            f"at most {MOST_PUBLIC_KEYS} keys where {dialect.name} aggregates",
            'write engine="rows"',
        )
    columns = [_plain(public[f"key{i}"], kind) for i, kind in enumerate(kinds)]
    rows = list(zip(*columns, strict=True))
    names = [f"k{i}" for i in range(len(kinds))]
    if dialect.public in ("sqlite", "spark"):
        return _json_table(rows, names, kinds, dialect, parameters)
    if dialect.public == "postgresql":
        # No string there has a NUL, and none can be sent.
        rows = [row for row in rows if not any(isinstance(value, str) and "\0" in value for value in row)]
        arrays = [
            f"CAST({parameters.bind([row[i] for row in rows])} AS {'text' if kind == 'string' else 'bigint'}[])"
            for i, kind in enumerate(kinds)
        ]
        shown = [
            f'{name} COLLATE "C" AS {name}' if kind == "string" else name
            for name, kind in zip(names, kinds, strict=True)
        ]
        return f"SELECT {', '.join(shown)} FROM unnest({', '.join(arrays)}) AS dpf_public ({', '.join(names)})"
    types = {"string": "VARCHAR", "unsigned": "UBIGINT"}
    lists = []
    for i, kind in enumerate(kinds):
        marker = f"unnest(CAST({parameters.bind([row[i] for row in rows])} AS {types.get(kind, 'BIGINT')}[]))"
        lists.append(f"{marker} AS {names[i]}")
    shown = [f"encode({name}) AS {name}" if kind == "string" else name for name, kind in zip(names, kinds, strict=True)]
    return f"SELECT {', '.join(shown)} FROM (SELECT {', '.join(lists)}) AS dpf_lists"


def _plain(keys: pl.Series, kind: Kind) -> list[Any]:
    """Return keys as the integers or strings that they are compared as."""
    if kind == "string":
        return keys.cast(pl.String).to_list()
    if kind == "timestamp":
        return keys.cast(pl.Datetime("us", getattr(keys.dtype, "time_zone", None))).to_physical().to_list()
    physical = keys.to_physical() if keys.dtype != pl.Boolean else keys
    return physical.cast(pl.UInt64 if kind == "unsigned" else pl.Int64).to_list()


def _json_table(
    rows: Sequence[tuple[Any, ...]],
    names: Sequence[str],
    kinds: Sequence[Kind],
    dialect: Dialect,
    parameters: Parameters,
) -> str:
    """Return the table as one JSON text, its strings in hexadecimal: JSON of SQLite ends strings at a NUL."""
    written = [[value.encode().hex() if isinstance(value, str) else value for value in row] for row in rows]
    if dialect.public == "spark":
        text = parameters.bind(json.dumps([dict(zip(names, row, strict=True)) for row in written]))
        types = ", ".join(
            f"{name}: {'STRING' if kind == 'string' else 'BIGINT'}" for name, kind in zip(names, kinds, strict=True)
        )
        shown = [
            f"unhex({name}) AS {name}" if kind == "string" else name for name, kind in zip(names, kinds, strict=True)
        ]
        return f"SELECT {', '.join(shown)} FROM (SELECT inline(from_json({text}, 'array<struct<{types}>>')))"
    text = parameters.bind(json.dumps(written))
    cells = [f"json_extract(value, '$[{i}]')" for i in range(len(names))]
    shown = [
        f"{f'dpfast_bytes({cell})' if kind == 'string' else cell} AS {name}"
        for cell, name, kind in zip(cells, names, kinds, strict=True)
    ]
    return f"SELECT {', '.join(shown)} FROM json_each({text})"
