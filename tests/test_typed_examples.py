"""What README, how-to pages and docstrings show passes a strict type checker, as a reader's program would have to."""

from __future__ import annotations

import ast
import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dpfast
from tests.typed_program import PROGRAM

PACKAGE = Path(dpfast.__file__).parent
HERE = PACKAGE.parent
#: Pages that show functions as people write them in a session, without types, or another library's objects.
UNTYPED = ("audit.md", "spark.md")
MISTAKEN = "import dpfast as dpf\ndpf.release('trips.parquet', ledger=dpf.Ledger(epsilon=1.0), epsilon=[1])\n"


def names_bound_by(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def program_of(path: Path) -> str:
    """Return the examples in a module's docstrings, each as a function, below what the module itself imports."""
    tree = ast.parse(path.read_text())
    documented = [node for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))]
    examples = [doctest.DocTestParser().get_examples(ast.get_docstring(node) or "") for node in documented]
    functions = []
    for number, listed in enumerate(filter(None, examples)):
        body = "".join(example.source for example in listed)
        functions.append(f"def example_{number}() -> None:\n" + re.sub(r"^(?=.)", "    ", body, flags=re.MULTILINE))
    if not functions:
        return ""
    imports = (ast.Import, ast.ImportFrom)
    imported = [node for node in ast.walk(tree) if isinstance(node, imports) and node.col_offset == 0]
    own = [name for node in tree.body for name in names_bound_by(node) if not name.startswith("__")]
    module = ".".join(("dpfast", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    header = [*map(ast.unparse, imported), *(f"from {module} import {name}" for name in own)]
    return "\n".join([*header, *functions])


@pytest.fixture(scope="module")
def complaints(tmp_path_factory):
    """Return what a strict type checker says of each program. One run is as long as the next, so there is one."""
    folder = tmp_path_factory.mktemp("programs")
    programs = {"mistaken": MISTAKEN, "program": PROGRAM}
    for page in (HERE / "README.md", *sorted((HERE / "docs" / "how-to").glob("*.md"))):
        if page.name not in UNTYPED:
            blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
            programs[f"page_{page.stem.replace('-', '_').lower()}"] = "\n".join(blocks)
    for path in sorted(PACKAGE.rglob("*.py")):
        if program := program_of(path):
            programs["_".join(path.relative_to(PACKAGE).with_suffix("").parts)] = program
    assert len(programs) > 100
    for name, text in programs.items():
        (folder / f"{name}.py").write_text(text)
    # With the project's configuration, so that what mypy found out about dpfast and Polars before is used again.
    strict = [sys.executable, "-m", "mypy", "--strict", "--config-file", HERE / "pyproject.toml"]
    command = [*strict, *sorted(folder.glob("*.py"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE, timeout=1800)
    assert done.returncode == 1, done.stdout + done.stderr
    *lines, summary = done.stdout.splitlines()
    assert summary.startswith("Found "), done.stdout + done.stderr
    found = {name: [] for name in programs}
    for line in lines:
        place, _, said = line.partition(": error: ")
        if said:
            found.setdefault(Path(place.partition(":")[0]).stem, []).append(line)
    return found


def test_pages_and_docstrings_pass_a_strict_type_checker(complaints):
    said = [line for name, lines in complaints.items() if name not in ("mistaken", "program") for line in lines]
    # No type checker knows a namespace that is registered with Polars.
    assert [line for line in said if not line.endswith('has no attribute "dpf"  [attr-defined]')] == []


def test_a_mistake_is_found(complaints):
    assert any("arg-type" in line for line in complaints["mistaken"])


def test_a_users_program_is_typed(complaints):
    found = {int(re.search(r"program\.py:(\d+): error", line)[1]) for line in complaints["program"]}
    refused = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# refused")}
    assert found == refused, "\n".join(complaints["program"])
