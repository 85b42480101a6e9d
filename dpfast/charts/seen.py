"""What of others' texts a chart can hold: names, keys and titles are theirs, and what draws charts dies of some.

Pictures are XML on their way, which has no control characters; vl-convert ends the whole process where there is one,
so that no error could be caught, after a charge.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dpfast.charts.text import shortened
from dpfast.showing import printed

if TYPE_CHECKING:
    import altair as alt

__all__ = ["seen", "told_as", "with_seen_texts"]

#: XML 1.0 has none of these either, and UTF-8 no half of a character.
_NEVER = re.compile("[\ud800-\udfff\ufffe\uffff]")
_BLANK = re.compile("[\t\n\r]")
#: What is two characters to JavaScript: Vega cuts texts that are too wide between them, and then fails.
_DOUBLE = re.compile("[\U00010000-\U0010ffff]")
_LIMITS = ("limit", "labelLimit")
#: Characters of a text that Vega does not cut: above a label's and the marks that tell equal labels apart.
_LONGEST = 600


def seen(text: str) -> str:
    r"""Return a text as a chart can hold it: what cannot be drawn, or turns the direction, as its escape.

    Examples
    --------
    >>> seen("b\x01c") == r"b\x01c", seen("Zoë\n\U0001f600") == "Zoë \U0001f600"
    (True, True)

    """
    return _NEVER.sub(lambda found: ascii(found[0])[1:-1], printed(_BLANK.sub(" ", text)))


def told_as(text: str) -> str:
    r"""Return what stands before a value in a tooltip: Vega-Lite puts it into an expression, quotes escaped alone.

    Examples
    --------
    >>> told_as("n\x01") == r"n\\x01"
    True

    """
    return seen(text).replace("\\", "\\\\")


def with_seen_texts(chart: alt.LayerChart) -> alt.LayerChart:
    """Return a chart of ours in which every text, of data, titles, axes and legends, is one that it can hold."""
    double = False

    def show(_: str, part: Any) -> Any:
        nonlocal double
        if not isinstance(part, str):
            return part
        text = seen(part)
        if _DOUBLE.search(text):
            double = True
            return shortened(text, _LONGEST)
        return text

    chart = _changed("", chart, show)
    return _changed("", chart, lambda name, part: 0 if name in _LIMITS else part) if double else chart


def _changed(name: str, part: Any, change: Callable[[str, Any], Any]) -> Any:
    """Return a part of a chart in which whatever has no parts is changed; Altair's objects stay, their parts do not."""
    import altair as alt

    if isinstance(part, alt.SchemaBase):
        for inner, held in list(part._kwds.items()):
            part._kwds[inner] = _changed(inner, held, change)
        return part
    if isinstance(part, dict):
        return {seen(inner): _changed(inner, held, change) for inner, held in part.items()}
    if isinstance(part, (list, tuple)):
        return [_changed(name, held, change) for held in part]
    return change(name, part)
