"""No row of the source texts is forgotten: each of kind F or T names a test, or says in words why there is none."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from tests.book.rows import KINDS

ROOT = Path(__file__).parents[2]
ROWS = {section: importlib.import_module(f"tests.book.{section}").ROWS for section in KINDS}
GIVEN = [(section, row) for section, rows in ROWS.items() for row in rows]


@pytest.mark.parametrize("section", list(ROWS))
def test_every_row_of_a_section_is_answered(section: str) -> None:
    asked = {row for row, kind in KINDS[section].items() if set("FT") & set(kind)}
    assert asked <= set(ROWS[section]) <= set(KINDS[section])


@pytest.mark.parametrize(("section", "row"), GIVEN)
def test_what_a_row_names_exists_and_names_the_row(section: str, row: str) -> None:
    """The test function (or its module) says the row's name in its docstring."""
    answer = ROWS[section][row]
    if answer.startswith("not built: "):
        assert len(answer) > 30
        return
    path, *names = answer.split("::")
    node: ast.AST = ast.parse((ROOT / path).read_text())
    said = ast.get_docstring(node) or ""
    for name in names:
        inside = [child for child in ast.walk(node) if isinstance(child, ast.FunctionDef | ast.ClassDef)]
        node = next(child for child in inside if child.name == name)
        said += f" {ast.get_docstring(node)}"
    assert re.search(rf"(?<![\w.-]){re.escape(row)}(?![\w-])", said), f"{answer} does not name row {row}"
