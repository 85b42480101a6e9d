"""Pieces of HTML: whatever text they are given is escaped, since names of columns and keys come from others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from dpfast.showing import printed

__all__ = ["Cell", "Html", "bullets", "definitions", "figure", "join", "paragraph", "scrolled", "table", "text"]


class Html(str):
    """HTML that stands as it is; any other text is escaped."""

    __slots__ = ()


def text(given: str) -> Html:
    """Return a text as HTML; what is no character to be seen stands as its escape, lest it turns what follows.

    Examples
    --------
    >>> text("<script>"), text(Html("<b>x</b>"))
    ('&lt;script&gt;', '<b>x</b>')

    """
    return given if isinstance(given, Html) else Html(escape(printed(given)))


def join(parts: Iterable[str], between: str = "") -> Html:
    """Return texts one after the other."""
    return Html(between.join(map(text, parts)))


def paragraph(words: str, kind: str = "") -> Html:
    """Return a paragraph."""
    return Html(f"<p{_class(kind)}>{text(words)}</p>")


def bullets(lines: Iterable[str]) -> Html:
    """Return an unordered list."""
    return Html(f"<ul>{''.join(f'<li>{text(line)}</li>' for line in lines)}</ul>")


def definitions(facts: Iterable[tuple[str, str]], kind: str) -> Html:
    """Return names with what is said of each."""
    rows = "".join(f'<div><dt>{text(name)}</dt><dd dir="auto">{text(said)}</dd></div>' for name, said in facts)
    return Html(f"<dl{_class(kind)}>{rows}</dl>")


def figure(drawn: Html, caption: str, kind: str = "") -> Html:
    """Return what is drawn, and its caption."""
    return Html(f"<figure{_class(kind)}>{drawn}<figcaption>{text(caption)}</figcaption></figure>")


@dataclass(frozen=True)
class Cell:
    """A cell of a table: a number stands at the right, and text may be in any direction."""

    said: str
    is_number: bool = False


def table(
    caption: str, headers: Sequence[Cell], rows: Iterable[Sequence[Cell]], *, keys: int = 1, kind: str = ""
) -> Html:
    """Return a table.

    Parameters
    ----------
    caption
        What it shows.
    headers
        What stands above each column.
    rows
        The cells.
    keys
        How many cells of a row say what the row is about.
    kind
        The class of the element.

    """
    head = "".join(f'<th scope="col"{_beside(cell)}>{text(cell.said)}</th>' for cell in headers)
    body = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row"{_beside(cell)}>{text(cell.said)}</th>'
            if place < keys
            else f"<td{_beside(cell)}>{text(cell.said)}</td>"
            for place, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return Html(
        f"<table{_class(kind)}><caption>{text(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def scrolled(content: Html, label: str) -> Html:
    """Return what scrolls by itself where it is larger than its place: the keyboard reaches it by its name."""
    return Html(f'<div class="scrolled" role="region" tabindex="0" aria-label="{text(label)}">{content}</div>')


def _beside(cell: Cell) -> str:
    return ' class="number"' if cell.is_number else ' dir="auto"'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
