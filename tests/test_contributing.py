"""CONTRIBUTING.md is true: its rooms and files exist, and its list of files for a mechanism is enough."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from test_house import FLOOR_OF, FLOORS, PACKAGE, room_of, sources

HERE = PACKAGE.parent
PAGE = (HERE / "CONTRIBUTING.md").read_text()

NAME, ROOM = "rounded_laplace", "noise"

MECHANISM = '''"""Laplace noise on whole numbers, released as multiples of a public number."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Whole
from dpfast.columns import borrow, borrow_scale
from dpfast.columns.declarations import Scale
from dpfast.mechanisms.noise.kinds import Values
from dpfast.mechanisms.noise.laplace import laplace_noise
from dpfast.randomness import Random, random_source

__all__ = ["rounded_laplace"]

_MULTIPLE = Whole(1, 2**30, mend="write for example {name}=10")


def rounded_laplace(
    values: Values, scale: Scale, multiple: Annotated[int, _MULTIPLE], *, random: Random = None
) -> NDArray[np.int64]:
    """Add Laplace noise to whole numbers, and round them down to multiples of a public number.

    Guarantee
        As of `dpfast.laplace`: rounding afterwards is post-processing (Dwork, Roth 2014, proposition 2.1).

    Examples
    --------
    >>> import dpfast as dpf
    >>> bool((dpf.rounded_laplace([12, 345], 2.0, 10) % 10 == 0).all())
    True

    """
    step = _MULTIPLE.read("multiple", multiple)
    column = borrow(values)
    noisy: NDArray[np.int64] = laplace_noise(column, borrow_scale(scale, column.length), random_source(random))
    return noisy // step * step
'''

LAW = '''"""Noise that is rounded: its law is that of the noise, gathered."""

import numpy as np
import pytest

import dpfast as dpf
from dpfast.testing import SeededRandom


def gathered(values, multiple, seed):
    return np.asarray(dpf.laplace(values, 2.0, random=SeededRandom(seed))) // multiple * multiple


def test_the_law_is_that_of_the_noise_gathered():
    values = np.arange(100)
    assert (dpf.rounded_laplace(values, 2.0, 10, random=SeededRandom(1)) == gathered(values, 10, 1)).all()


def test_a_mechanism_without_noise_is_caught(monkeypatch):
    monkeypatch.setattr("dpfast.mechanisms.noise.rounded_laplace.laplace_noise", lambda *given: np.arange(100))
    with pytest.raises(AssertionError):
        test_the_law_is_that_of_the_noise_gathered()
'''


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def files_of(title: str) -> list[str]:
    """Return what the list under a title begins its points with."""
    points = re.findall(r"^- (`[^:]*`)(?=:)", section(title), re.MULTILINE)
    return [path for point in points for path in re.findall(r"`([^`]+)`", point)]


def test_the_rooms_of_the_page_are_those_of_the_house_in_its_order():
    rows = re.findall(r"^\| (`.*?`) \|", section("Where a line of code belongs"), re.MULTILINE)
    rooms = [name.strip("/").removesuffix(".py") for row in rows for name in re.findall(r"`([^`]+)`", row)]
    exist = {room_of(path) for path in sources()}
    built = [room for floor in FLOORS for room in floor if room in exist]
    small = {"__init__", "__main__", "testing", "announcement", "showing", "charts"}
    assert set(rooms) == set(built) - small
    assert [FLOOR_OF[room] for room in rooms] == sorted(FLOOR_OF[room] for room in rooms)


def test_every_file_of_the_page_exists():
    for path in re.findall(r"`([\w./]+/[\w./]*|\w+\.(?:py|md))`", PAGE):
        if "NAME" not in path and "ROOM" not in path:
            assert any((place / path).exists() for place in (HERE, PACKAGE)), path
    rooms = re.search(r"with `ROOM` one of (.*?) and `NAME`", section("Add a mechanism"), re.DOTALL)
    assert rooms is not None
    for room in re.findall(r"`(\w+)`", rooms[1]):
        assert (PACKAGE / "mechanisms" / room).is_dir()


def copy_of_the_house(folder: Path) -> None:
    """Copy what the checks read, with compiled kernels and what mypy found before: both go by the times of files."""
    for name in ("dpfast", "scripts", "tests"):
        shutil.copytree(HERE / name, folder / name)
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "README.md", "pyproject.toml"):
        shutil.copy2(HERE / name, folder / name)
    for path in (HERE / ".mypy_cache").rglob("*.db"):
        # Not as a file: a test that runs beside this one may be writing to it.
        copied = folder / path.relative_to(HERE)
        copied.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as found, closing(sqlite3.connect(copied)) as made:
            found.backup(made)


def written(path: str, before: str) -> str:
    """Return what someone who follows the page makes of a file."""
    if path.startswith("dpfast/mechanisms"):
        return MECHANISM
    if path.startswith(f"tests/{ROOM}"):
        return LAW
    if path == "dpfast/__init__.py":
        # Beside every line about Laplace noise, one about this.
        lines = [(line, re.sub(r"\blaplace\b", NAME, line)) for line in before.split("\n")]
        return "\n".join(text for line, other in lines for text in ([other, line] if other != line else [line]))
    if path == "tests/arguments/calls_of_mechanisms.py":
        return before + f"\nCALLS.append(call(dpf.{NAME}, values=[1, 2, 3], scale=2.0, multiple=10))\n"
    if path == "tests/auditing/shipped.py":
        drawn = f"lambda x, n: dpf.{NAME}(np.full(n, x), 1.0, 10)"
        return before + f'\nSHIPPED.append(batch("{NAME}", {drawn}, 3, 4))\n'
    assert path == "CHANGELOG.md", "the page lists a file that nobody has to touch"
    return before + f"- `dpf.{NAME}`: noise that is rounded to multiples.\n"


def test_a_mechanism_that_is_added_by_the_page_passes_the_checks_of_the_house(tmp_path):
    """In a copy: the files that the page lists, and no others, are written."""
    copy_of_the_house(tmp_path)
    listed = [path.replace("ROOM", ROOM).replace("NAME", NAME) for path in files_of("Add a mechanism")]
    for path in listed:
        place = tmp_path / path
        place.write_text(written(path, place.read_text() if place.exists() else ""))
    new = [path for path in listed if path.endswith(f"{NAME}.py")]
    checks = {
        "ruff": ["ruff", "check", "--select", "I", "--fix", *(path for path in listed if path.endswith(".py"))],
        "style": ["ruff", "check", *new],
        "types": ["mypy", new[0]],
        # One process for all tests: those of the house, the law and its example, the mechanism's own, and that every
        # public name is called and audited.
        "tests": [
            *("pytest", "-q", "-x", "-p", "no:cacheprovider", "--doctest-modules", "tests/test_house.py", *new),
            *("tests/arguments", "tests/auditing/test_shipped_mechanisms.py"),
            *("-k", f"test_house or {NAME} or (arguments and public_name) or every_public"),
        ],
    }
    for name, command in checks.items():
        done = subprocess.run(
            [sys.executable, "-m", *command],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path), "PATH": "", "HOME": str(tmp_path)},
            timeout=1800,
        )
        assert done.returncode == 0, f"{name}\n{done.stdout[-3000:]}\n{done.stderr[-2000:]}"
