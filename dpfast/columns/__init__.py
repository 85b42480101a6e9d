"""Columns in, borrowed without a copy and with their nulls kept apart; the same kind of thing out.

``borrow`` takes a Polars, PyArrow, pandas or NumPy column, a list or a number and gives a ``Column``: native
arrays, block by block, that a kernel can read. ``Column.rebuild`` wraps the kernel's fresh output in the kind
that was given. ``borrow_scale`` reads the one parameter that may be a column as well.
"""

from dpfast.columns.column import BLOCK_ROWS, Column
from dpfast.columns.kinds import borrow, dimensions
from dpfast.columns.scale import borrow_scale

__all__ = ["BLOCK_ROWS", "Column", "borrow", "borrow_scale", "dimensions"]
