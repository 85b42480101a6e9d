"""What a user asks a database for, as what may follow FROM: a table's quoted name, or a query in parentheses."""

from __future__ import annotations

import re
from collections.abc import Callable

from dpfast.errors import ParameterError

__all__ = ["from_clause"]

_QUERY = re.compile(
    r"\s*(?:(?:--[^\n]*\n|/\*.*?\*/)\s*)*(?:\(|(?:select|with|values|from|table)(?:\s|\(|\*|\"|--|/\*))", re.I | re.S
)
_END = re.compile(r"[;\s]+$")
_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^".]+?))\s*(?:\.|$)')


def from_clause(query: str, quoted: Callable[[str], str], longest: int | None = None) -> str:
    r"""Return what may follow FROM.

    Parameters
    ----------
    query
        A table's or view's name, as it is stored: its parts divided by dots, each in double quotes if it has dots or
        quotes. Or a query that begins with SELECT, WITH, VALUES, FROM or TABLE; a semicolon at its end is dropped.
    quoted
        Returns an identifier in quotes.
    longest
        The longest identifier in bytes, where longer ones would be cut.

    Raises
    ------
    ParameterError
        If it is no text, or empty, or no name.

    Examples
    --------
    >>> from dpfast.integrations.sql.dialects import DUCKDB
    >>> from_clause("taxi.rides", DUCKDB.identifier)
    '"taxi"."rides"'
    >>> from_clause("SELECT 1 AS x;", DUCKDB.identifier)
    '(\nSELECT 1 AS x\n)'
    """
    allowed = "a table's name or a SELECT"
    if not isinstance(query, str) or not query.strip() or "\0" in query:
        raise ParameterError("query", query, allowed)
    if _QUERY.match(query):
        # A comment at the end ends with its line.
        return f"(\n{_END.sub('', query)}\n)"
    parts, place = [], 0
    while place < len(query):
        found = _PART.match(query, place)
        if found is None:
            mend = 'write parts with dots or quotes in double quotes: "a.b"."c"'
            raise ParameterError("query", query, allowed, mend)
        parts.append(found[1].replace('""', '"') if found[1] is not None else found[2])
        place = found.end()
    if query.rstrip().endswith("."):
        raise ParameterError("query", query, allowed)
    if longest is not None and any(len(part.encode(errors="replace")) > longest for part in parts):
        raise ParameterError("query", query, f"a name whose parts have at most {longest} bytes, as others are cut")
    return ".".join(map(quoted, parts))
