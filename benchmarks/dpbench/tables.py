"""How tables are written in Markdown."""

from __future__ import annotations

import polars as pl

__all__ = ["in_markdown"]


def in_markdown(frame: pl.DataFrame) -> str:
    """Return a frame as a table in Markdown."""
    with pl.Config(
        tbl_formatting="ASCII_MARKDOWN",
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=1_000,
        fmt_str_lengths=100,
        float_precision=2,
        tbl_cell_numeric_alignment="RIGHT",
        thousands_separator=",",
    ):
        return str(frame)
