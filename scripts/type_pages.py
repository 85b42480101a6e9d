"""Type the blocks of code of README.md and docs/ as a reader does: in order, in a folder with the demo's tables.

    python scripts/type_pages.py                        every page; says how long each took
    python scripts/type_pages.py docs/tutorial.md       these pages
    python scripts/type_pages.py --write docs/*.md      and puts what was printed into the text block below each block

A block after a line `% needs NAME ...` is typed where these packages are installed, and shown in any case.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

BLOCK = re.compile(
    r"(?:^% needs (?P<needs>[\w. ]+)\n\n?)?"
    r"^```(?P<kind>python|sh)\n(?P<code>.*?)^```\n"
    r"(?P<shown>\n?(?:\{\.wrap\}\n)?```text\n(?P<text>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
#: Blocks that set up an environment are not typed.
SETS_UP = re.compile(r"pip install|scripts/|venv")


@dataclass(frozen=True)
class Block:
    """A block of code of a page.

    Attributes
    ----------
    kind
        "python" or "sh".
    code
        What is typed.
    line
        Where its code begins.
    needs
        The packages without which it is only shown.
    printed
        Where the text that it is said to print begins and ends in the page; None where there is no such text.

    """

    kind: str
    code: str
    line: int
    needs: tuple[str, ...] = ()
    printed: tuple[int, int] | None = None

    @property
    def missing(self) -> list[str]:
        """The packages, or programs, that it needs and that are not installed."""
        roots = (name.partition(".")[0] for name in self.needs)
        return [name for name in roots if importlib.util.find_spec(name) is None and shutil.which(name) is None]


def blocks_of(text: str) -> list[Block]:
    """Return a page's blocks of code in order, without those that set up an environment."""
    return [
        Block(
            found["kind"],
            found["code"],
            text.count("\n", 0, found.start("code")) + 1,
            tuple((found["needs"] or "").split()),
            found.span("text") if found["shown"] else None,
        )
        for found in BLOCK.finditer(text)
        if not SETS_UP.search(found["code"])
    ]


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    here = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)


def type_blocks(blocks: list[Block], folder: Path, page: str) -> tuple[list[str | None], dict[str, object]]:
    """Type blocks in a folder; return what each printed, None of one that was not typed, and the names at the end.

    Raises
    ------
    RuntimeError
        A command failed, or said that it guessed what the privacy unit is. Errors of Python come as they are.

    """
    from dpfast.errors import PrivacyUnitWarning

    commands = folder / "bin"
    commands.mkdir()
    command = commands / "dpfast"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dpfast "$@"\n')
    command.chmod(0o755)
    environment = os.environ | {"PATH": f"{commands}:{os.environ['PATH']}", "COLUMNS": "120"}
    names: dict[str, object] = {"__name__": "__main__"}
    printed: list[str | None] = []
    with _inside(folder):
        for block in blocks:
            if block.missing:
                printed.append(None)
            elif block.kind == "python":
                with contextlib.redirect_stdout(io.StringIO()) as stream, warnings.catch_warnings():
                    warnings.simplefilter("error", PrivacyUnitWarning)
                    exec(compile("\n" * (block.line - 1) + block.code, page, "exec"), names)
                printed.append(stream.getvalue())
            else:
                done = subprocess.run(
                    ["sh", "-eu", "-c", block.code], capture_output=True, text=True, timeout=1800, env=environment
                )
                if done.returncode != 0 or "without --unit" in done.stderr:
                    raise RuntimeError(f"{page}:{block.line}: {block.code}\n{done.stdout}\n{done.stderr}")
                printed.append(done.stdout + done.stderr)
    return printed, names


def write_tables(folder: Path) -> None:
    """Put the demo's tables into a folder."""
    from dpfast.cli.demo.tables import write_tables as write

    with contextlib.redirect_stdout(io.StringIO()):
        write(folder)


def with_printed(text: str, blocks: list[Block], printed: list[str | None]) -> str:
    """Return a page with what its blocks printed in the text blocks below them."""
    for block, shown in reversed(list(zip(blocks, printed, strict=True))):
        if block.printed is not None and shown is not None:
            start, stop = block.printed
            lines = "\n".join(line.rstrip() for line in shown.strip("\n").splitlines())
            text = f"{text[:start]}{lines}\n{text[stop:]}"
    return text


def main() -> None:
    """Type the pages that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true", help="put what was printed into the pages")
    asked = parser.parse_args()
    pages = asked.pages or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    with tempfile.TemporaryDirectory() as name:
        tables = Path(name) / "tables"
        tables.mkdir()
        write_tables(tables)
        for number, page in enumerate(pages):
            text = page.read_text()
            blocks = blocks_of(text)
            if not blocks:
                continue
            folder = Path(name) / str(number)
            shutil.copytree(tables, folder)
            began = time.perf_counter()
            printed, _ = type_blocks(blocks, folder, str(page))
            if asked.write:
                page.write_text(with_printed(text, blocks, printed))
            left = sum(one is None for one in printed)
            print(
                f"{time.perf_counter() - began:6.1f} s  {page}  {len(blocks)} blocks"
                + f", {left} only shown" * (left > 0)
            )


if __name__ == "__main__":
    main()
