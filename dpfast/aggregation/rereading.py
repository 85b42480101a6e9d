"""Rows that can be read once, for those who read them more than once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from dpfast.aggregation.guarding import read_guarded
from dpfast.aggregation.reading_rows import KeptRows
from dpfast.aggregation.remembering import Remembered
from dpfast.aggregation.sources import Source

__all__ = ["kept_for_more", "readable_again"]


@contextmanager
def kept_for_more(source: Source, columns: Iterable[str]) -> Iterator[Source]:
    """Read rows that can be read once, and lend a source of these columns of them, to be read as often as needed."""
    assert source.blocks is not None
    with KeptRows(source.blocks, sorted(columns)) as kept:
        yield Source(kept.frame(source.schema()), blocks=kept.read)


@contextmanager
def readable_again(source: Source, columns: Iterable[str], sorts: object = None) -> Iterator[Source]:
    """Lend a source that can be read as often as needed: the same where it can, else as `kept_for_more` does.

    What is found of its rows is remembered meanwhile; ``sorts`` says what of the last reading (see `Remembered`).

    Raises
    ------
    DpfastError, MemoryError
        Of fixed words, if the rows cannot be read to their end: see `read_guarded`.

    """
    remembered = Remembered(sorts)
    if source.repeatable:
        try:
            yield replace(source, remembered=remembered)
        finally:
            remembered.forget()
        return
    lent = kept_for_more(source, columns)
    kept = read_guarded(source, lent.__enter__)
    try:
        yield replace(kept, remembered=remembered)
    finally:
        remembered.forget()
        lent.__exit__(None, None, None)
