"""Names of dpfast lead to their reference: `dpf.plan` in a page, and in a docstring.

A name that does not exist is a warning, so that no page keeps one that is gone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: `dpf.plan`, `dpf.plan(...)` and `dpf.plan(data, by)`, and no longer piece of code.
NAME = re.compile(r"dpf\.([A-Za-z_][\w.]*?)(?:\([^()]*\))?")
#: A name of a docstring: between single backticks, and no role, no literal and no link.
QUOTED = re.compile(r"(?<![:`\\\w])`([^`\n]+)`(?![`_])")
FULL_NAME = re.compile(r"(?:dpf|dpfast)\.([A-Za-z_][\w.]*)")
SECTION = "Guarantee"


def link_names(app: Sphinx, doctree: nodes.document) -> None:
    """Make a reference of every name that stands as code in a page."""
    for literal in list(doctree.findall(nodes.literal)):
        found = NAME.fullmatch(literal.astext())
        if found is None or isinstance(literal.parent, (addnodes.pending_xref, nodes.reference, nodes.title)):
            continue
        reference = addnodes.pending_xref(
            "", refdomain="py", reftype="obj", reftarget=f"dpfast.{found[1]}", refexplicit=True, refwarn=True,
            refdoc=app.env.docname,
        )  # fmt: skip
        reference.source, reference.line = literal.source, literal.line
        literal.replace_self(reference)
        reference += literal


def write_sections(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Write the section Guarantee of a docstring as the others are, and its names of dpfast by their full ones."""
    written: list[str] = []
    inside = False
    for i, line in enumerate(lines):
        if line == SECTION and i + 1 < len(lines) and lines[i + 1].startswith("    "):
            written += [SECTION, "-" * len(SECTION)]
            inside = True
            continue
        if inside and line and not line.startswith("    "):
            inside = False
        written.append(line[4:] if inside else line)
    lines[:] = [QUOTED.sub(_reference, line) for line in written]


def _reference(quoted: re.Match[str]) -> str:
    """Return a name as a reference, if it says which of all it is, and as code if it does not."""
    name = FULL_NAME.fullmatch(quoted[1])
    return f"``{quoted[1]}``" if name is None else f":py:obj:`{quoted[1]} <dpfast.{name[1]}>`"


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx when to look at pages and docstrings: before napoleon does."""
    app.connect("doctree-read", link_names)
    app.connect("autodoc-process-docstring", write_sections, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
