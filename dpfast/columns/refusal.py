"""What a refused column's error says; it depends on the schema alone, never on a value."""

from __future__ import annotations

from collections.abc import Mapping

from dpfast.errors import ColumnError

__all__ = ["ACCEPTED", "casts", "refuse_dtype", "refuse_kind"]

ACCEPTED = "int64, int32, uint32, float64 or float32"

_SHOWN_CHARACTERS = 80


def _on_one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


def casts(written: str, **targets: str) -> dict[str, str]:
    """Return what to write after a column's name to cast it, by the name of its type.

    Parameters
    ----------
    written
        The cast; braces stand for the target.
    targets
        The names of types by the target that holds their values.

    Examples
    --------
    >>> casts('.astype("{}")', int32="int8 int16", float32="float16")
    {'int8': '.astype("int32")', 'int16': '.astype("int32")', 'float16': '.astype("float32")'}

    """
    return {name: written.format(target) for target, names in targets.items() for name in names.split()}


def refuse_dtype(argument: str, kind: str, dtype: str, mends: Mapping[str, str]) -> ColumnError:
    """Return the error for a column of numbers of another type, or of no numbers at all.

    Parameters
    ----------
    argument
        The argument's name as the user wrote it.
    kind
        What was given, with its article: ``"a Polars Series"``.
    dtype
        The type's name in the words of its own library.
    mends
        What to write after the argument's name, by the type's name up to its first bracket.

    """
    mend = mends.get(dtype.partition("[")[0].partition("(")[0].partition("<")[0])
    advice = f"write {argument}{mend}" if mend else "pass one column of numbers"
    message = f"{argument} must have numbers of type {ACCEPTED}, but was {kind} of {_on_one_line(dtype)}; {advice}"
    return ColumnError(message)


def refuse_kind(argument: str, kind: str, mend: str) -> ColumnError:
    """Return the error for an object that is no column.

    Parameters
    ----------
    argument
        The argument's name as the user wrote it.
    kind
        What was given, with its article: ``"a Polars Expr"``.
    mend
        What to write instead, as an imperative sentence without its full stop.

    """
    return ColumnError(f"{argument} must be a column or a number, but was {_on_one_line(kind)}; {mend}")
