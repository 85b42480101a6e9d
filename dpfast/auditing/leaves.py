"""Taking an output apart: into leaves that have no parts, each with a path such as ``[2]`` or ``['total']``."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import math
import numbers
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dpfast.errors import ParameterError, Words

__all__ = ["Raised", "as_float", "frame_columns", "is_missing", "leaves"]

_PLAIN = (str, bytes, datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
#: Parts of parts are looked at so far down.
_DEEPEST = 100


@dataclass(frozen=True)
class Raised:
    """An error that a call raised."""

    kind: str
    message: str


#: Types that go without saying: the form of an output shows which it is.
_USUAL = frozenset({float, int, bool, str, bytes, type(None), list, dict, Raised})


def leaves(value: Any, path: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the parts of an output that have no parts: numbers of Python, and texts of what is none.

    Raises
    ------
    ParameterError
        A part is of a type that cannot be taken apart, or lies too deep, as in a list that is in itself.

    """
    if depth > _DEEPEST:
        raise _refused(f"one that returned values nested more than {_DEEPEST} deep, or that hold themselves")
    kind, depth = type(value), depth + 1
    if kind not in _USUAL:
        yield f"{path}.type", _named(value)
    if kind is float or kind is int:
        yield path, value
    elif is_missing(value):
        yield path, str(value)
    elif kind is str:
        yield path, repr(value)
    elif isinstance(value, (bool, np.bool_)):
        yield path, bool(value)
    elif isinstance(value, Raised):
        yield path, f"an error, {value.kind}: {value.message}"
    elif isinstance(value, (enum.Enum, *_PLAIN)):
        yield path, repr(value)
    elif isinstance(value, numbers.Integral):
        yield path, int(value)
    elif isinstance(value, (Fraction, Decimal)):
        yield path, as_float(value)  # type: ignore[arg-type]
        yield f"{path} exactly", str(value)
    elif isinstance(value, numbers.Real):
        yield path, float(value)
    elif isinstance(value, numbers.Complex):
        yield from leaves({"real": complex(value).real, "imag": complex(value).imag}, path, depth)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from leaves(part, f"{path}[{key!r}]", depth)
        yield f"{path}.keys", repr(list(value))
    elif isinstance(value, (set, frozenset)):
        yield from leaves(sorted(value, key=repr), path, depth)
    elif isinstance(value, (list, tuple)):
        for place, part in enumerate(value):
            yield from leaves(part, f"{path}[{place}]", depth)
        yield f"{path}.length", f"{len(value)} values"
    else:
        yield from leaves(_taken_apart(value), path, depth)


def is_missing(value: Any) -> bool:
    """Return whether something is None, or one of the values of pandas that stand for it."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _named(value: Any) -> str:
    """Return what a type is called: two inputs may differ in that of the output alone."""
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    dtype = getattr(value, "type" if kind.__module__.startswith("pyarrow") else "dtype", None)
    return name if dtype is None or isinstance(value, np.generic) else f"{name} of {dtype}"


def _taken_apart(value: Any) -> Any:
    """Return an array, a column, a frame or a dataclass as lists and dicts."""
    if isinstance(value, np.ma.MaskedArray):
        return {"shape": str(value.shape), "dtype": str(value.dtype), "values": value.tolist()}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufSUOMmc":
        # The shape is said too, where lists of lists would not show it.
        return value.tolist() if value.ndim == 1 else {"shape": str(value.shape), "values": value.tolist()}
    columns = frame_columns(value)
    if columns is not None:
        return {
            name: {"dtype": str(one.dtype), "values": one.to_list() if hasattr(one, "to_list") else one.tolist()}
            for name, one in columns.items()
        }
    for name in ("to_list", "to_pylist", "as_py"):  # columns of Polars and pandas, columns and scalars of PyArrow
        if callable(getattr(value, name, None)) and not isinstance(value, type):
            return getattr(value, name)()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts: dict[str, Any] = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        return parts
    raise _refused(f"one that returned a {type(value).__name__}")


def _refused(given: str) -> ParameterError:
    allowed = "one that returns numbers, strings, None, arrays, frames, or lists, tuples and dicts of these"
    mend = "let the mechanism return what is published of it, for example release.frame"
    return ParameterError("mechanism", Words(given), allowed, mend)


def as_float(value: float | int) -> float:
    """Return a number as a float, an infinity if it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:  # a signaling NaN of Decimal
        return math.nan


def frame_columns(batch: Any) -> dict[str, Any] | None:
    """Return the columns of a frame of Polars, pandas or PyArrow by name."""
    library, kind = type(batch).__module__.split(".")[0], type(batch).__name__
    if library == "pyarrow" and kind in ("Table", "RecordBatch"):
        import polars as pl

        batch, library, kind = pl.DataFrame(batch), "polars", "DataFrame"
    if kind == "DataFrame" and library in ("polars", "pandas"):
        named = [str(name) for name in batch.columns]
        parts = batch.get_columns() if library == "polars" else [batch.iloc[:, place] for place in range(len(named))]
        # pandas lets two columns share a name.
        places = range(len(named))
        return {
            name if named.count(name) == 1 else f"{name} ({place})": part
            for place, name, part in zip(places, named, parts, strict=True)
        }
    return None
