"""Pandas Series; pandas is never imported here, only met."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast.columns.column import NATIVE_DTYPES, Column, GiveBack
from dpfast.columns.of_numpy import ARRAY_MENDS, borrow_array
from dpfast.columns.refusal import casts, refuse_dtype, refuse_kind

__all__ = ["borrow_pandas"]

# pandas keeps a mask beside the values of these.
_NULLABLE = {np.dtype(name.lower()): name for name in ("Int64", "Int32", "UInt32", "Float64", "Float32")}

_NULLABLE_MENDS = {
    **casts('.astype("{}")', Int32="boolean Int8 Int16 UInt8 UInt16", Int64="UInt64"),
    **casts('.astype("{}")', float64="category", Float64="string"),
    "Sparse": ".sparse.to_dense()",
}


def borrow_pandas(values: Any, argument: str) -> Column:
    """Borrow a pandas Series; the result has its index and name, and a nullable type if it had one.

    NaN in a column of NumPy's float64 or float32 is a value, as it is in NumPy; in a nullable or Arrow-backed
    column, what pandas calls NA is a null.
    """
    pandas: Any = sys.modules["pandas"]
    if not isinstance(values, pandas.Series):
        mend = 'pass one column, such as frame["name"]'
        raise refuse_kind(argument, f"a pandas {type(values).__name__}", mend)
    dtype = values.dtype
    if isinstance(dtype, np.dtype):
        if dtype.newbyteorder("=") not in NATIVE_DTYPES:
            raise refuse_dtype(argument, "a pandas Series", dtype.name, ARRAY_MENDS)
        return borrow_array(values.to_numpy(), argument, _series(pandas, values.index, values.name))
    from dpfast.columns.of_arrow import borrow_chunks

    arrow_backed = isinstance(dtype, pandas.ArrowDtype)
    if not arrow_backed and dtype.name not in _NULLABLE.values():
        raise refuse_dtype(argument, "a pandas Series", str(dtype), _NULLABLE_MENDS)
    arrow = values.array.__arrow_array__()
    chunks = getattr(arrow, "chunks", (arrow,))
    give_back = _nullable_series(pandas, values.index, values.name, arrow_backed)
    return borrow_chunks(chunks, arrow.type, argument, "a pandas Series", give_back)


def _series(pandas: Any, index: Any, name: Any) -> GiveBack:
    return lambda noised, validity, null_count: pandas.Series(noised, index=index, name=name, copy=False)


def _nullable_series(pandas: Any, index: Any, name: Any, arrow_backed: bool) -> GiveBack:
    def give_back(noised: NDArray[Any], validity: NDArray[np.uint8] | None, null_count: int) -> Any:
        from dpfast.columns.of_arrow import arrow_array

        array = arrow_array(noised, validity, null_count)
        if arrow_backed:
            dtype = pandas.ArrowDtype(array.type)
        else:
            dtype = pandas.api.types.pandas_dtype(_NULLABLE[noised.dtype])
        return pandas.Series(dtype.__from_arrow__(array), index=index, name=name, copy=False)

    return give_back
