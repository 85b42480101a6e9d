"""NumPy arrays, lists of numbers, and single numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.columns.column import NATIVE_DTYPES, Column, GiveBack
from dpfast.columns.refusal import casts, refuse_dtype, refuse_kind
from dpfast.errors import ColumnError, DataError

__all__ = ["ARRAY_MENDS", "borrow_array", "borrow_list", "borrow_number"]

ARRAY_MENDS = {
    **casts('.astype("{}")', int32="bool int8 int16 uint8 uint16", int64="datetime64 timedelta64", float32="float16"),
    **casts('.astype("{}")', float64="longdouble float128 object str bytes"),
    **dict.fromkeys(("complex64", "complex128"), ".real"),
    "uint64": '.clip(0, 2**63 - 1).astype("int64")',
}

_INT64 = np.iinfo(np.int64)
_EXACT_INTEGERS = 2.0**53


def borrow_array(values: NDArray[Any], argument: str, give_back: GiveBack | None = None) -> Column:
    """Borrow a NumPy array of any shape; the result has that shape, unless ``give_back`` wraps it."""
    # In this order: NumPy imports masked arrays when it is asked for them.
    if type(values) is not np.ndarray and isinstance(values, np.ma.MaskedArray):
        mend = f"write {argument}.filled(0), or pyarrow.array({argument}.data, mask={argument}.mask) for nulls"
        raise refuse_kind(argument, "a masked array", mend)
    dtype = NATIVE_DTYPES.get(values.dtype)
    if dtype is None:
        native = values.dtype.newbyteorder("=")
        dtype = NATIVE_DTYPES.get(native)
        if dtype is None:
            # The name of a text type carries its length ("str96"), the type's class does not.
            name = native.type.__name__.rstrip("_") if native.kind in "USmM" else native.name
            raise refuse_dtype(argument, "a NumPy array", name, ARRAY_MENDS)
        values = values.astype(dtype)
    flat = np.ascontiguousarray(values).reshape(-1)
    if give_back is None:
        give_back = _as_is if values.ndim == 1 else _shaped(values.shape)
    return Column(dtype, (flat,), give_back)


def borrow_list(values: list[Any] | tuple[Any, ...], argument: str) -> Column:
    """Borrow a list or tuple of numbers, nested or not; the result is a NumPy array."""
    try:
        array = np.asarray(values)
    except Exception as error:
        mend = "pass rows of equal length that hold numbers"
        raise refuse_kind(argument, f"a {type(values).__name__} that is no array", mend) from error
    kinds = _element_kinds(values)
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        # NumPy would turn a bool beside numbers into 1, and a masked element into NaN.
        if issubclass(kind, bool) or not issubclass(kind, (int, float, np.integer, np.floating)):
            mends = {
                "bool": "write 1 or 0",
                "NoneType": "pass a Polars Series or PyArrow Array to keep nulls",
            }
            mend = mends.get(kind.__name__, f"pass [float(value) for value in {argument}]")
            shown = "None" if kind is type(None) else kind.__name__
            message = f"{argument} must be a {type(values).__name__} of int or float, but holds {shown}; {mend}"
            raise ColumnError(message)
    integers = {kind for kind in kinds if issubclass(kind, (int, np.integer))}
    no_floats = bool(kinds) and integers == kinds
    # Depending on their values, NumPy makes unsigned integers, objects or floats of large integers.
    if array.dtype in (np.uint64, np.object_) or (no_floats and array.dtype == np.float64):
        raise DataError(f"{argument} must hold integers that fit into int64; clip them, or pass them as floats")
    if integers and array.dtype == np.float64:
        _refuse_inexact_integers(array, values, argument)
    return borrow_array(array, argument)


def borrow_number(values: Any, argument: str) -> Column:
    """Borrow a Python number or a NumPy scalar; the result is a Python number."""
    if isinstance(values, bool):
        raise refuse_kind(argument, "a bool", "write 1 or 0")
    if isinstance(values, int):
        if not _INT64.min <= values <= _INT64.max:
            raise DataError(f"{argument} must fit into int64; clip it, or pass float({argument})")
        array: NDArray[Any] = np.array([values], np.int64)
    elif isinstance(values, float):
        array = np.array([values], np.float64)
    else:
        array = np.array([values])
        if array.dtype not in NATIVE_DTYPES:
            mend = f"write int({argument}) or float({argument})"
            raise refuse_kind(argument, f"a NumPy scalar of {array.dtype.name}", mend)
    return Column(NATIVE_DTYPES[array.dtype], (array,), _number)


def _element_kinds(values: list[Any] | tuple[Any, ...]) -> set[type]:
    kinds = set(map(type, values))
    nested = {kind for kind in kinds if issubclass(kind, (list, tuple))}
    kinds -= nested
    if nested:
        for value in values:
            if isinstance(value, (list, tuple)):
                kinds |= _element_kinds(value)
    return kinds


def _refuse_inexact_integers(array: NDArray[Any], values: Any, argument: str) -> None:
    large = np.abs(array) >= _EXACT_INTEGERS
    if not large.any():
        return
    # Python compares an integer with a float exactly.
    given = np.asarray(values, dtype=object)[large]
    if any(number != exact for number, exact in zip(array[large].tolist(), given, strict=True)):
        mend = "pass all of them as integers or all as floats"
        raise DataError(f"{argument} mixes floats with an integer that float64 does not hold exactly; {mend}")


def _as_is(noised: NDArray[Any], validity: NDArray[np.uint8] | None, null_count: int) -> NDArray[Any]:
    return noised


def _shaped(shape: tuple[int, ...]) -> GiveBack:
    return lambda noised, validity, null_count: noised.reshape(shape)


def _number(noised: NDArray[Any], validity: NDArray[np.uint8] | None, null_count: int) -> int | float:
    number: int | float = noised.item()
    return number
