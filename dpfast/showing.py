"""How objects show themselves, at a prompt and in a notebook: a bounded number of words, and no array's values.

`Shown` is what every public class is: it says which facts are shown, once for both. What stands in HTML is escaped:
names of columns and keys come from others.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dpfast.errors import Words

__all__ = ["Card", "Facts", "Shown", "brief", "near_names", "number_of", "percent_above", "percent_below", "printed"]

_ITEMS, _CHARACTERS = 6, 100
#: How many names are shown where none is near.
_NAMES = 3
#: What a card has at most: rows of a table, and characters in a line.
_ROWS, _LINE = 20, 1000
#: What begins a line, or turns the direction of what follows.
_UNSEEN = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]")

#: Names, and what stands for each of them.
Facts: TypeAlias = Sequence[tuple[str, object]]


def printed(text: str) -> str:
    r"""Return a text of others as one line in its own direction: control characters as their escapes.

    Examples
    --------
    >>> printed("a\nb") == r"a\nb"
    True

    """
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def number_of(number: int, one: str, many: str = "") -> str:
    """Return how many there are of something, in the singular if it is one.

    Examples
    --------
    >>> number_of(1, "group"), number_of(12_000, "group"), number_of(0, "query", "queries")
    ('1 group', '12,000 groups', '0 queries')

    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def near_names(name: str, names: Sequence[str]) -> str:
    """Return which names come near one that is none of them; if none does, the first few.

    Examples
    --------
    >>> near_names("fair", ["fare", "city"])
    "near are ['fare']"
    >>> near_names("x", ["fare", "city", "hour", "rider", "day"])
    "it has ['fare', 'city', 'hour'] and 2 more"

    """
    import difflib  # not at the top: only errors need it

    near = difflib.get_close_matches(name, names, n=3)
    if near:
        return f"near are {near}"
    more = len(names) - _NAMES
    return f"it has {list(names[:_NAMES])}" + (f" and {more:,} more" if more > 0 else "")


def percent_above(part: float) -> str:
    """Return a part in percent, rounded up to a tenth: of what is spent, or of what may happen.

    A billionth of a tenth is no more: so much is lost in floating point before.

    Examples
    --------
    >>> percent_above(0.73106), percent_above(0.5), percent_above(0.99999), percent_above(1e-15), percent_above(1 - 0.7)
    ('73.2%', '50%', '100%', '0.1%', '30%')

    """
    tenths = math.ceil(1000 * part - 1e-9)
    return f"{max(tenths, int(part > 0)) / 10:g}%"


def percent_below(part: float) -> str:
    """Return a part in percent, rounded down to a tenth: of what is left.

    Examples
    --------
    >>> percent_below(0.73196), percent_below(0.5), percent_below(1 - 1e-15), percent_below(0.3)
    ('73.1%', '50%', '99.9%', '30%')

    """
    tenths = math.floor(1000 * part + 1e-9)
    return f"{min(tenths, 1000 - int(part < 1)) / 10:g}%"


def brief(value: object, characters: int = _CHARACTERS) -> str:
    """Return a value in a few words: the beginning of a list, the shape of an array, and our own words as they are.

    Examples
    --------
    >>> brief("k"), brief(range(1000)), brief(list(range(1000)))
    ("'k'", 'range(0, 1000)', '[0, 1, 2, 3, 4, 5, ... 994 more]')

    """
    if type(value) is Words:
        return value
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and hasattr(value, "dtype") and shape:
        return f"<{' x '.join(f'{length:,}' for length in shape)} {getattr(value, 'dtype')}>"  # noqa: B009  # untyped
    if type(value) in (list, tuple) and len(value) > _ITEMS:  # type: ignore[arg-type]
        items = [brief(item, characters // 2) for item in value[:_ITEMS]]  # type: ignore[index]
        opened, closed = "[]" if type(value) is list else "()"
        return f"{opened}{', '.join(items)}, ... {len(value) - _ITEMS:,} more{closed}"  # type: ignore[arg-type]
    text = repr(value)
    return text if len(text) <= characters else f"{text[: characters - 3]}..."


@dataclass(frozen=True)
class Card:
    """What a notebook shows of an object.

    Attributes
    ----------
    lines
        Its title, and what else is said in sentences.
    facts
        Names and values; a text stands as it is.
    bar
        How much is used up, from 0 to 1, and words beside it.
    headers, rows
        A table, all of text; of many rows the first.
    more
        What is left out.

    """

    lines: Sequence[str]
    facts: Facts = ()
    bar: tuple[float, str] | None = None
    headers: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    more: Sequence[str] = ()

    def html(self) -> str:
        """Return it as HTML.

        Examples
        --------
        >>> Card(["<b>"], [("names", ["a"])]).html()
        '<pre>&lt;b&gt;</pre><table><tbody><tr><td>names</td><td>[&#x27;a&#x27;]</td></tr></tbody></table>'

        """
        facts = [[name, value if isinstance(value, str) else brief(value)] for name, value in self.facts]
        more = [*self.more, *([f"and {len(self.rows) - _ROWS:,} more rows"] if len(self.rows) > _ROWS else [])]
        parts = (
            _lines(self.lines),
            _table([], facts) if facts else "",
            "" if self.bar is None else _bar(*self.bar),
            _table(self.headers, self.rows[:_ROWS]) if self.headers else "",
            _lines(more) if more else "",
        )
        return "".join(parts)


class Shown:
    """An object that says what it is: a dataclass by its fields, any other class by the facts that it names.

    A class whose ``__repr__`` is another one names its facts too, or its card: else a field that is not for others
    might stand in a notebook.
    """

    __slots__ = ()

    def _facts(self) -> Facts:
        """Return what is public and worth knowing, under the names that a user knows."""
        if not dataclasses.is_dataclass(self):
            return ()
        return [(field.name, getattr(self, field.name)) for field in dataclasses.fields(self) if field.repr]

    def _card(self) -> Card:
        """Return what a notebook shows."""
        facts = [(name, brief(value)) for name, value in self._facts()]
        return Card([type(self).__qualname__ if facts else repr(self)], facts)

    def __repr__(self) -> str:
        """Show the facts, each in a few words."""
        facts = ", ".join(f"{name}={brief(value)}" for name, value in self._facts())
        return f"{type(self).__qualname__}({facts})"

    def _repr_html_(self) -> str:
        return self._card().html()


def _escaped(text: str) -> str:
    from html import escape  # not at the top: it takes longer to import than this module

    return escape(text if len(text) <= _LINE else f"{text[: _LINE - 3]}...")


def _lines(lines: Iterable[str]) -> str:
    """Return lines as they stand at a prompt."""
    shown = [_escaped(line) for text in lines for line in text.split("\n")]
    return f"<pre>{chr(10).join(shown)}</pre>"


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; all its cells are text."""
    head = "".join(f"<th>{_escaped(header)}</th>" for header in headers)
    body = "".join(f"<tr>{''.join(f'<td>{_escaped(cell)}</td>' for cell in row)}</tr>" for row in rows)
    titled = f"<thead><tr>{head}</tr></thead>" if headers else ""
    return f"<table>{titled}<tbody>{body}</tbody></table>"


def _bar(share: float, label: str) -> str:
    """Return a bar that is full to a share from 0 to 1, with words beside it."""
    width = round(100 * min(max(share, 0.0), 1.0), 1)
    full = f'<div style="background:#2b6cb0;height:0.7em;width:{width}%"></div>'
    frame = '<div style="background:#d9dee5;width:16em;display:inline-block;margin-right:0.6em">'
    return f"<div>{frame}{full}</div>{_escaped(label)}</div>"
