"""How objects show themselves, at a prompt and in a notebook: a bounded number of words, and no array's values.

What stands in HTML is escaped: names of columns and keys come from others.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

__all__ = ["TerminalLine", "brief", "html_bar", "html_lines", "html_table", "shown_fields"]

_ITEMS, _CHARACTERS = 6, 100
#: Work of so many seconds says nothing.
_QUIET = 2.0


def brief(value: object, characters: int = _CHARACTERS) -> str:
    """Return a value in a few words: the beginning of a list, the shape of an array.

    Examples
    --------
    >>> brief("k"), brief(range(1000)), brief(list(range(1000)))
    ("'k'", 'range(0, 1000)', '[0, 1, 2, 3, 4, 5, ... 994 more]')

    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and hasattr(value, "dtype") and shape:
        return f"<{' x '.join(f'{length:,}' for length in shape)} {getattr(value, 'dtype')}>"  # noqa: B009  # untyped
    if type(value) in (list, tuple) and len(value) > _ITEMS:  # type: ignore[arg-type]
        items = [brief(item, characters // 2) for item in value[:_ITEMS]]  # type: ignore[index]
        opened, closed = "[]" if type(value) is list else "()"
        return f"{opened}{', '.join(items)}, ... {len(value) - _ITEMS:,} more{closed}"  # type: ignore[arg-type]
    text = repr(value)
    return text if len(text) <= characters else f"{text[: characters - 3]}..."


def shown_fields(record: Any) -> str:
    """Return what a dataclass with long fields shows of itself: for ``__repr__``, as the names and values it is of."""
    shown = [field.name for field in dataclasses.fields(record) if field.repr]
    return f"{type(record).__qualname__}({', '.join(f'{name}={brief(getattr(record, name))}' for name in shown)})"


def html_lines(lines: Iterable[str]) -> str:
    """Return lines as they stand at a prompt."""
    return f"<pre>{escape(chr(10).join(lines))}</pre>"


def html_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; all its cells are text."""
    head = "".join(f"<th>{escape(header)}</th>" for header in headers)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_bar(share: float, label: str) -> str:
    """Return a bar that is full to a share from 0 to 1, with words beside it."""
    width = round(100 * min(max(share, 0.0), 1.0), 1)
    full = f'<div style="background:#2b6cb0;height:0.7em;width:{width}%"></div>'
    frame = '<div style="background:#d9dee5;width:16em;display:inline-block;margin-right:0.6em">'
    return f"<div>{frame}{full}</div>{escape(label)}</div>"


class TerminalLine:
    """One line of a terminal that says how far long work has come; a pipe or a log gets none, nor does short work."""

    def __init__(self) -> None:
        self._began, self._shown = time.monotonic(), 0
        self._terminal = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, stage: str) -> None:
        """Say what is being done now."""
        if self._terminal and time.monotonic() - self._began > _QUIET:
            line = f"dpfast: {stage}"
            print(f"\r{line:{self._shown}}", end="", file=sys.stderr, flush=True)
            self._shown = len(line)

    def close(self) -> None:
        """End the line, if there is one."""
        if self._shown:
            print(file=sys.stderr)
            self._shown = 0
