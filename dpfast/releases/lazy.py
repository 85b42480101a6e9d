"""Released figures as a LazyFrame: engines may ask for them as often as they like, and get what was drawn once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from inspect import signature
from typing import Any, NoReturn

import polars as pl
from polars.io.plugins import register_io_source

from dpfast.errors import LedgerError

__all__ = ["Figures", "FiguresToCome", "scan_figures"]

#: Before Polars 2.0, an explanation cannot say what is scanned.
_TAKES_NAME = "explain_name" in signature(register_io_source).parameters


class Figures:
    """What an engine calls for figures that are released: the rows and columns that it needs.

    It can be pickled: the bytes hold the released frame, which is public, and nothing else.

    Parameters
    ----------
    read
        Returns the frame, the same one at every call.
    schema
        Returns the frame's schema, without reading it where it is not there yet.

    """

    #: What ``LazyFrame.explain`` calls it.
    name = "dpfast release"

    def __init__(self, read: Callable[[], pl.DataFrame], schema: Callable[[], pl.Schema]) -> None:
        self._read, self._schema = read, cache(schema)

    def __call__(
        self,
        columns: list[str] | None,
        predicate: pl.Expr | None,
        rows: int | None,
        batch: int | None,
    ) -> Iterator[pl.DataFrame]:
        """Yield the frame, or the part of it that is asked for."""
        frame = self._read()
        if predicate is not None:  # which may read columns that are not asked for: Polars finds out which
            asked = frame.lazy().filter(predicate).head(frame.height if rows is None else rows)
            yield (asked if columns is None else asked.select(columns)).collect(engine="in-memory")
            return
        frame = frame if rows is None else frame.head(rows)
        yield frame if columns is None else frame.select(columns)

    def schema(self) -> pl.Schema:
        """Return the frame's schema, which is asked for once."""
        return self._schema()

    def __reduce__(self) -> Any:
        return _of_frame, (self._read(),)


class FiguresToCome(Figures):
    """What an engine calls for figures of a plan, which the first call charges and draws."""

    name = "dpfast plan"

    def __reduce__(self) -> NoReturn:
        raise LedgerError(
            "a LazyFrame of a plan cannot be pickled or serialized: each copy would draw noise for the same charge; "
            "run the plan, and take the release's lazy()"
        )


def _of_frame(frame: pl.DataFrame) -> Figures:
    return Figures(lambda: frame, lambda: frame.schema)


def scan_figures(figures: Figures) -> pl.LazyFrame:
    """Return a LazyFrame over figures; it is pure, so that equal nodes of a plan may be read once."""
    named: Any = {"explain_name": figures.name} if _TAKES_NAME else {}
    return register_io_source(figures, schema=figures.schema, validate_schema=True, is_pure=True, **named)
