"""Where a module of the user's is wrong."""

from __future__ import annotations

import traceback
from pathlib import Path

import dpfast

__all__ = ["place_of"]

_OURS = Path(dpfast.__file__).resolve().parent


def place_of(error: BaseException) -> str | None:
    """Return the file and the line of an error while a module was imported; None if it is of no line of a user.

    Of the lines that were running, it is the last one in the folder of the user's module: what that line calls of other
    packages is seldom what is wrong.
    """
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_file():
        return f"{_shown(Path(error.filename))}, line {error.lineno}"
    called = traceback.walk_tb(error.__traceback__)
    lines = [(Path(frame.f_code.co_filename).resolve(), line) for frame, line in called]
    # With ours and Python's own lines of importing left out, the first one is of the user's module.
    lines = [(path, line) for path, line in lines if path.is_file() and not path.is_relative_to(_OURS)]
    lines = [(path, line) for path, line in lines if path.parent.name != "importlib"]
    if not lines:
        return None
    home = lines[0][0].parent
    path, line = [one for one in lines if one[0].parent == home][-1]
    return f"{_shown(path)}, line {line}"


def _shown(path: Path) -> str:
    path = path.resolve()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
