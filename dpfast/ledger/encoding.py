"""Entries as rows of a durable store, sealed in a chain.

A seal (SHA-256) covers a row and the seal before it. The chain reveals damage, and a copy restored from before
some seal that somebody wrote down. It is no defence against somebody who may write the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.encoding import from_text, to_text
from dpfast.ledger.account import AnyItem, Entry
from dpfast.ledger.charges import COLUMN_KINDS, Charge, ChargeColumns, recorded
from dpfast.ledger.partitioned import PartitionCharges, PartitionKeys

__all__ = ["COLUMNS", "Row", "entry_of", "row_of", "seal"]

#: The columns of the table of entries, in their order; the last is the seal.
COLUMNS = (
    "number", "count", "call", "time", "account", "epsilon", "delta", "cost", "event", "description", "payload", "seal",
)  # fmt: skip
Row = tuple[Any, ...]
_OF_PARTITIONS: dict[str, type[PartitionKeys | PartitionCharges]] = {
    kind.event: kind for kind in (PartitionKeys, PartitionCharges)
}


_encode = json.JSONEncoder(default=repr).encode


def seal(*parts: object) -> str:
    """Return the digest of some parts; long bytes enter by their own digest."""
    plain = [hashlib.sha256(part).hexdigest() if type(part) is bytes else part for part in parts]
    return hashlib.sha256(_encode(plain).encode()).hexdigest()


def row_of(entry: Entry, before: str) -> Row:
    """Return the row of an entry that follows the seal ``before``.

    Amounts are decimal text: 64 bits end at 9.22. For columns they are the sums, and the columns themselves
    are the payload.
    """
    item = entry.item
    payload = None
    if isinstance(item, Charge):
        event = "" if item.event is None else to_text(item.event)
    elif isinstance(item, ChargeColumns):
        event, payload = item.kind.__name__, _packed(item)
    else:
        event, payload = item.event, item.packed()
    parts = (
        entry.number,
        item.count,
        entry.call,
        entry.time,
        entry.account,
        str(item.epsilon_units),
        str(item.delta_units),
        json.dumps([str(units) for units in entry.cost]),
        event,
        item.description,
        payload,
    )
    return (*parts, seal(before, *parts))


def entry_of(row: Sequence[Any]) -> Entry:
    """Return the entry of a row; ValueError, KeyError or ParameterError where it is none."""
    number, count, call, time, account, epsilon, delta, cost, event, description, payload, _ = row
    item: AnyItem
    if payload is None:
        fact: Any = from_text(event) if event else None
        item = recorded(Charge, int(epsilon), int(delta), description, fact, count)
    else:
        if event in _OF_PARTITIONS:
            item = _OF_PARTITIONS[event].unpacked(payload, description)
        else:
            item = _unpacked(COLUMN_KINDS[event], payload, description)
        if (item.count, str(item.epsilon_units), str(item.delta_units)) != (count, epsilon, delta):
            raise ValueError("the columns are not those of the row")
    return Entry(number, call, time, account, item, tuple(map(int, json.loads(cost))))


def _packed(item: ChargeColumns) -> bytes:
    """Return the columns as bytes: a line of JSON, then each column's runs, or its numbers where those are fewer."""
    columns: dict[str, NDArray[Any]] = dict(item.columns)
    changes = np.zeros(item.count, np.bool_)
    changes[0] = True
    for column in columns.values():
        changes[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(changes)
    runs = starts.size <= item.count // 2
    if runs:
        columns = {"run": np.diff(starts, append=item.count)} | {name: col[starts] for name, col in columns.items()}
    described: dict[str, str] = {}
    bodies = []
    for name, column in columns.items():
        # Sensitivities are mostly the same: one number stands for a column of equal ones.
        body = column[:1] if (column == column[0]).all() else column
        described[name] = f"{'all' if body.size < column.size else 'each'} {body.dtype.str}"
        bodies.append(np.ascontiguousarray(body).tobytes())
    header = json.dumps({"rows": int(starts.size) if runs else item.count, "columns": described}).encode()
    return b"\n".join((header, b"".join(bodies)))


def _unpacked(kind: type, payload: bytes, description: str) -> ChargeColumns:
    header, _, body = payload.partition(b"\n")
    described = json.loads(header)
    rows, offset = described["rows"], 0
    columns: dict[str, Any] = {}
    for name, layout in described["columns"].items():
        extent, dtype = layout.split(" ")
        count = 1 if extent == "all" else rows
        column = np.frombuffer(body, dtype, count, offset)
        offset += column.nbytes
        columns[name] = np.repeat(column, rows) if extent == "all" else column
    if offset != len(body):
        raise ValueError("the payload has another length")
    runs = columns.pop("run", None)
    if runs is not None:
        columns = {name: np.repeat(column, runs) for name, column in columns.items()}
    epsilon, delta = columns.pop("charged_epsilon", None), columns.pop("charged_delta", None)
    return recorded(ChargeColumns, kind, columns, epsilon, delta, description, dict[str, int]())
