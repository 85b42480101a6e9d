"""Values of the data that may be shown, rebuilt so that nothing else comes with them (Soundness rule 20).

Filtering and sorting share string buffers and categories with the rows that were dropped; writing the values into fresh
Arrow buffers leaves them behind. Categoricals and enums become strings: the numbering of the one and the dtype of the
other tell of values that were not selected.
"""

from __future__ import annotations

import polars as pl

__all__ = ["as_shown", "in_one_frame", "rebuilt"]


def as_shown(values: pl.DataFrame) -> pl.DataFrame:
    """Return values that were found in the data in the dtypes that are released."""
    return values.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))


def in_one_frame(columns: list[pl.Series]) -> pl.DataFrame:
    """Return columns of a release as a frame, in less time than ``pl.DataFrame``, which also names the nameless.

    Examples
    --------
    >>> in_one_frame([pl.Series("", [1]), pl.Series("n", [2])]).columns
    ['', 'n']

    """
    return columns[0].to_frame().hstack(columns[1:])


def rebuilt(series: pl.Series) -> pl.Series:
    """Return an equal series on buffers of its own, of values `as_shown` that were gathered."""
    if series.dtype not in (pl.String, pl.Binary):
        return series.rechunk()
    # Arrow's older layout has one buffer of exactly the strings in it.
    array = series.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    return pl.Series(series.name, array, dtype=series.dtype)
