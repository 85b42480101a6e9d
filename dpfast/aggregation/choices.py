"""Each row's candidate of a mode: as a number from 1, natively in Polars and block by block in a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from dpfast.aggregation.blocks import Block
from dpfast.aggregation.coding import KeyCoder
from dpfast.aggregation.keys import KeyColumn, code_keys, fit_keys
from dpfast.columns.candidates import as_series
from dpfast.columns.dtypes import dtype_name
from dpfast.errors import ColumnError, ParameterError
from dpfast.kernels.grouping.counting import look_up_slots

__all__ = ["CandidateCoder", "native_choices", "plan_candidates"]

_MOST_PLACES = 1 << 16


def plan_candidates(
    name: str, candidates: tuple[Any, ...], dtype: pl.DataType, argument: str = "candidates"
) -> tuple[pl.Series, pl.Expr]:
    """Return candidates in the dtype of the data's column, and the expression of the column in that dtype.

    Parameters
    ----------
    name, dtype
        The column.
    candidates
        As `dpfast.columns.candidates.read_candidates` returns them.
    argument
        What an error calls them.

    Raises
    ------
    ColumnError
        If the column cannot be compared with the candidates.
    ParameterError
        If the column's dtype cannot hold one of them.

    """
    given = as_series(candidates)
    column = KeyColumn(name, pl.col(name), dtype, pl.col(name))
    try:
        return fit_keys(given, column)
    except ColumnError:
        pass
    except ParameterError:
        raise ParameterError(
            argument,
            given.dtype,
            f"values that the column {name!r} of dtype {dtype_name(dtype)} can hold",
        ) from None
    raise ColumnError(
        f"the column {name!r} of dtype {dtype_name(dtype)} cannot be compared with {argument} of dtype "
        f"{dtype_name(given.dtype)}; that needs a column that can be a key, and {argument} of the same kind: cast one"
    )


def native_choices(candidates: pl.Series, column: pl.Expr) -> pl.Expr:
    """Return each row's candidate as an Int64 from 1 on, 0 for none: never null, and no value makes it fail."""
    numbers = pl.Series(range(1, len(candidates) + 1), dtype=pl.Int64)
    return column.replace_strict(candidates, numbers, default=0, return_dtype=pl.Int64)


class CandidateCoder:
    """Find each row's candidate in a table.

    Guarantee (Soundness rule 19): the table comes from the candidates alone; a value that is none of them gets 0.

    Parameters
    ----------
    candidates
        What `plan_candidates` gives.

    """

    def __init__(self, coder: KeyCoder) -> None:
        self._coder = coder
        self._numbers = coder.key_rows() + np.int32(1)

    @classmethod
    def of(cls, candidates: pl.Series) -> CandidateCoder | None:
        """Return the coder of candidates in the data's dtype, or None if they cannot be coded."""
        coded = code_keys(candidates)
        if coded is None or not KeyCoder.fits([coded]):
            return None
        # A hash table stays in the cache where a table of all values between the candidates would not.
        _, size, _ = coded.digits
        return cls(KeyCoder([coded], len(candidates), hashed=size > _MOST_PLACES))

    def read(self, block: Block, column: str, out: np.ndarray) -> None:
        """Write each row's candidate as a number from 1 on (int64), 0 for none."""
        look_up_slots(self._coder.read_slots(block, [column]), self._numbers, out)
        np.maximum(out, 0, out=out)
