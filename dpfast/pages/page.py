"""One page of HTML that needs nothing else: no network, no script, no font, and no style but its own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

from dpfast.pages.markup import Html, text

__all__ = ["Page", "Section"]


@dataclass(frozen=True)
class Section:
    """A part of a page: its heading, and what stands below it."""

    heading: str
    parts: Sequence[Html]

    def html(self, number: int) -> str:
        """Return it as HTML."""
        name = f"part-{number}"
        heading = f'<h2 id="{name}">{text(self.heading)}</h2>'
        return f'<section aria-labelledby="{name}">\n{heading}\n' + "\n".join(self.parts) + "\n</section>"


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes
    ----------
    kind
        What stands above the title, in a few words.
    title
        Its only heading of the first level.
    lead
        What stands below the title.
    made
        When it was made.
    sections
        Its parts.

    """

    kind: str
    title: str
    lead: Sequence[Html]
    made: datetime
    sections: Sequence[Section]

    def html(self) -> str:
        """Return it as HTML.

        Guarantee
            Its Content-Security-Policy lets a browser load and run nothing at all: only the style sheet in it counts,
            by its hash. Whatever else a text might smuggle in would stay without effect.
        """
        style = _style()
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
        sections = "\n".join(section.html(number) for number, section in enumerate(self.sections, 1))
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
            f"<title>{text(self.title)} · {text(self.kind)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
            '<a class="skip" href="#content">Skip to the content</a>\n'
            f'<header>\n<p class="kind">{text(self.kind)}</p>\n<h1 dir="auto">{text(self.title)}</h1>\n'
            + "\n".join(self.lead)
            + f'\n</header>\n<main id="content" tabindex="-1">\n{sections}\n</main>\n'
            f"<footer><p>Made by dpfast on {self.made:%Y-%m-%d at %H:%M} UTC. This page loads nothing from anywhere."
            "</p></footer>\n</body>\n</html>\n"
        )


@cache
def _style() -> str:
    return "\n" + Path(__file__).with_name("page.css").read_text()
