"""Hashes of values: the same everywhere, for one public key, so that what was made in many places can be merged.

Nothing private rests on them. A value is its kind and some words of 64 bits: whole numbers, and days or parts of a
second, are one word; a float is its 64 bits; a string its bytes, eight to a word and zeros after them, and then their
number. With f a bijection of 64 bits that mixes them well (that of MurmurHash3), the hash starts at h = key + kind * c,
each word w makes it f(h ^ w) * c + key, and it ends as f(h).
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.columns.dtypes import dtype_name
from dpfast.errors import ColumnError

__all__ = ["KINDS", "hash_values", "kind_of_values", "readable"]

KINDS = ("nothing", "number", "float", "text", "boolean", "date", "datetime ms", "datetime us", "datetime ns")
#: Whole numbers beyond int64, whose bits would be those of negative ones.
_BEYOND = len(KINDS)
_ODD = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND, _SHIFT = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53), np.uint64(33)
_BYTES = 8


def kind_of_values(name: str, dtype: pl.DataType) -> str:
    """Return what values of a column are, for their hashes: equal values of one kind have equal ones.

    Raises
    ------
    ColumnError
        If there is no such kind.

    """
    if dtype == pl.Null:
        return "nothing"
    if dtype.is_integer() and dtype not in (pl.Int128, pl.UInt128):
        return "number"
    if dtype in (pl.Float32, pl.Float64):
        return "float"
    if isinstance(dtype, (pl.String, pl.Categorical, pl.Enum)):
        return "text"
    if isinstance(dtype, pl.Datetime):
        return f"datetime {dtype.time_unit}"
    if dtype in (pl.Boolean, pl.Date):
        return "boolean" if dtype == pl.Boolean else "date"
    raise ColumnError(
        f"the column {name!r} of dtype {dtype_name(dtype)} cannot be sketched; cast it to Int64, Float64 or String"
    )


def readable(column: pl.Expr, kind: str) -> pl.Expr:
    """Return a column of a kind as `hash_values` reads it: strings, Float64, UInt64 or Int64; missing ones are null."""
    if kind == "text":
        return column.cast(pl.String)
    if kind == "float":
        return column.cast(pl.Float64).fill_nan(None)
    return column.to_physical() if kind != "nothing" else column.cast(pl.Int64)


def hash_values(values: pl.Series, kind: str, key: int) -> NDArray[np.uint64]:
    """Return a hash for every value of a `readable` series; null has any.

    Examples
    --------
    >>> [f"{number:016x}" for number in hash_values(pl.Series([1, 2]), "number", 0).tolist()]
    ['b75b99a52cf7fc2c', '064eaa4ae4e6d1ba']

    """
    start = np.uint64((key + KINDS.index(kind) * int(_ODD)) % 2**64)
    if kind == "text":
        return _hash_strings(values, start, np.uint64(key))
    if kind == "float":
        # -0.0, which equals 0.0, becomes it. Polars would leave the sum out.
        words = (values.fill_null(0.0).to_numpy() + 0.0).view(np.uint64)
    else:
        words = (
            values.cast(pl.UInt64 if values.dtype == pl.UInt64 else pl.Int64).fill_null(0).to_numpy().view(np.uint64)
        )
    hashes = np.full(words.size, start)
    if values.dtype == pl.UInt64:
        hashes[words >> np.uint64(63) > 0] = np.uint64((key + _BEYOND * int(_ODD)) % 2**64)
    _add(hashes, words, np.uint64(key))
    return _mixed(hashes)


def _hash_strings(values: pl.Series, start: np.uint64, key: np.uint64) -> NDArray[np.uint64]:
    array = values.fill_null("").rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = array.buffers()
    places = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    # Words may begin at any byte; those at the end have zeros after it.
    size = int(places[-1]) if places.size else 0
    padded = np.zeros(size + _BYTES, np.uint8)
    if size:
        padded[:size] = np.frombuffer(data, np.uint8, size)
    words = np.ndarray((size + 1,), "<u8", padded, strides=(1,))
    starts, lengths = places[:-1], np.diff(places)
    hashes = np.full(lengths.size, start)
    first, rows = 0, np.arange(lengths.size)
    while (rows := rows[lengths[rows] > first] if first else rows[lengths > 0]).size:
        word = words[starts[rows] + first]
        left = lengths[rows] - first
        short = left < _BYTES
        word[short] &= (np.uint64(1) << (8 * left[short]).astype(np.uint64)) - np.uint64(1)
        if rows.size == hashes.size:
            _add(hashes, word, key)
        else:
            part = hashes[rows]
            _add(part, word, key)
            hashes[rows] = part
        first += _BYTES
    _add(hashes, lengths.astype(np.uint64), key)
    return _mixed(hashes)


def _add(hashes: NDArray[np.uint64], words: NDArray[np.uint64], key: np.uint64) -> None:
    """Take one more word into every hash."""
    hashes ^= words
    _mixed(hashes)
    hashes *= _ODD
    hashes += key


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix all bits of each number, in place."""
    shifted = numbers >> _SHIFT
    numbers ^= shifted
    numbers *= _FIRST
    np.right_shift(numbers, _SHIFT, out=shifted)
    numbers ^= shifted
    numbers *= _SECOND
    np.right_shift(numbers, _SHIFT, out=shifted)
    numbers ^= shifted
    return numbers
