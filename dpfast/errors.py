"""One family of errors: each says in one line what was given, what is allowed and how to mend it.

An error depends on parameters and schemas, never on private values; what a message shows of an argument is
cut short and kept on one line, so that no column ends up in a log.
"""

from __future__ import annotations

import re

__all__ = [
    "BudgetExceededError",
    "ColumnError",
    "DataError",
    "DpfastError",
    "FileError",
    "LedgerError",
    "ParameterError",
    "PrivacyUnitWarning",
    "Words",
]

_SHOWN_CHARACTERS, _SHOWN_HEAD = 80, 40


class Words(str):
    """What was given in words of ours: an error shows them as they are, and what a user wrote in quotes.

    Examples
    --------
    >>> print(ParameterError("histogram", Words("of shape (3,)"), "of shape (4,)"))
    histogram must be of shape (4,), but was of shape (3,)
    """

    __slots__ = ()


_FRACTION = re.compile(r"Fraction\((-?\d+), (\d+)\)")


def _shown(given: object) -> str:
    """Return a short one-line description of an argument, whatever its ``__repr__`` does."""
    kind = type(given)
    plain = kind in (str, bytes, int, float, complex, bool, type(None), tuple, list, dict)
    scalar = kind.__module__ in {"decimal", "fractions", "numpy", "datetime"} and not getattr(given, "ndim", 0)
    text = given if isinstance(given, Words) else f"a {kind.__name__}"
    if (plain or scalar) and not _holds_columns(given):
        try:
            text = str(given) if kind.__module__ == "fractions" else repr(given)
            if kind in (tuple, list, dict):
                # A bound that was read exactly is shown as a number, Fraction(1, 1) as 1 and Fraction(1, 2) as 1/2.
                text = _FRACTION.sub(lambda found: found[1] if found[2] == "1" else f"{found[1]}/{found[2]}", text)
        except Exception:  # a number of too many digits, or what a list holds
            text = f"a {kind.__name__}"
    text = " ".join(text.split())
    # Of a path the end says most.
    return (
        text
        if len(text) <= _SHOWN_CHARACTERS
        else f"{text[:_SHOWN_HEAD]}...{text[_SHOWN_HEAD + 3 - _SHOWN_CHARACTERS :]}"
    )


def _holds_columns(given: object, depth: int = 4) -> bool:
    """Return whether a list or dict has a frame, column or array in it, whose ``__repr__`` would show values."""
    if isinstance(given, dict):
        given = list(given.values())
    if isinstance(given, (list, tuple)):
        return depth == 0 or any(_holds_columns(part, depth - 1) for part in given)
    if isinstance(given, type):
        return False
    names = ("__array__", "__arrow_c_stream__", "__arrow_c_array__", "__dataframe__", "collect_schema")
    return getattr(given, "ndim", 1) != 0 and any(hasattr(given, name) for name in names)


class DpfastError(Exception):
    """The base of every error that dpfast raises on purpose."""


class ParameterError(DpfastError, ValueError):
    """A parameter has a value that is not allowed.

    Parameters
    ----------
    argument
        The argument's name as the user wrote it.
    given
        The value given; it is shown cut to one short line.
    allowed
        What is allowed, as a phrase that follows "must be".
    mend
        What to write instead, as an imperative sentence without its full stop.

    Examples
    --------
    >>> print(ParameterError("epsilon", -1, "a number above 0", "write for example epsilon=0.5"))
    epsilon must be a number above 0, but was -1; write for example epsilon=0.5
    """

    def __init__(self, argument: str, given: object, allowed: str, mend: str = "") -> None:
        self.argument = argument
        message = f"{argument} must be {allowed}, but was {_shown(given)}"
        super().__init__(f"{message}; {mend}" if mend else message)


class FileError(ParameterError):
    """A file or folder that a parameter names is missing, damaged, or not to be read."""


class ColumnError(DpfastError, TypeError):
    """A column or frame is of a kind or type that cannot be used (a fact of the schema, not of the values)."""


class DataError(DpfastError, ValueError):
    """Values given to a mechanism that has no ledger cannot be used (NaN, say).

    Never raised on a route that charges a ledger: there, errors must not depend on private values.
    """


class LedgerError(DpfastError):
    """The ledger cannot be used: another dataset or unit, a damaged file, a forked process."""


class BudgetExceededError(LedgerError):
    """The charge does not fit into what the ledger has left; nothing was charged and nothing computed."""


class PrivacyUnitWarning(UserWarning):
    """Nobody said whose privacy a release keeps, so that each row is a unit by itself.

    It is given once for each plan, and names the caller's line; Python shows it once for each such line.
    """
