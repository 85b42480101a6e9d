"""Say what is wrong with what was built: python scripts/look_into_wheel.py FOLDER.

The wheel holds the package as it stands in dpfast/, its types, its licence, what `dpfast bench` runs and nothing else;
the source distribution holds what the wheel is built from and what tests it.
"""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Python files alone: a wheel that is much larger holds something that nobody meant to publish.
MOST_BYTES = 3_000_000


def wrong_with_wheel(wheel: Path) -> Iterator[str]:
    """Yield what is wrong with a wheel."""
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        inside = {name for name in names if ".dist-info/" not in name}
        about = {name.partition(".dist-info/")[2]: packed.read(name).decode() for name in names - inside}
    there = [path for folder in ("dpfast", "benchmarks") for path in (ROOT / folder).rglob("*") if path.is_file()]
    names_there = {path.relative_to(ROOT).as_posix() for path in there if "__pycache__" not in path.parts}
    sources = {name if name.startswith("dpfast/") else f"dpfast/{name}" for name in names_there}
    for name in sorted(sources - inside):
        yield f"{name} is missing"
    for name in sorted(inside - sources):
        yield f"{name} does not belong there"
    if "dpfast/py.typed" not in inside:
        yield "dpfast/py.typed is missing: type checkers would not read the package"
    if not any(re.fullmatch(r"dpfast/kernels/noise/\w+\.py", name) for name in inside):
        yield "there is no kernel of noise"
    if about.get("licenses/LICENSE") != (ROOT / "LICENSE").read_text():
        yield "the licence is missing, or another"
    for line in ("License-Expression: Apache-2.0", "Requires-Python: >=3.11", "Content-Type: text/markdown"):
        if line not in about["METADATA"]:
            yield f"its metadata do not say {line}"
    if "Root-Is-Purelib: true" not in about["WHEEL"]:
        yield "it is of one platform; kernels are compiled where they are used"
    if wheel.stat().st_size > MOST_BYTES:
        yield f"it has {wheel.stat().st_size:,} bytes, more than {MOST_BYTES:,}"


def wrong_with_sources(archive: Path) -> Iterator[str]:
    """Yield what is wrong with a source distribution."""
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "dpfast/py.typed", "tests/conftest.py"):
        if name not in names:
            yield f"{name} is missing"
    for name in sorted(names):
        if re.search(r"(^|/)(\.venv[^/]*|__pycache__|dist|site|\.git)(/|$)|\.(db|pyc|parquet)$", name):
            yield f"{name} does not belong there"


def main() -> None:
    """Look into all that was built."""
    folder = Path(sys.argv[1])
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    found = [f"{wheel.name}: {line}" for line in wrong_with_wheel(wheel)]
    found += [f"{archive.name}: {line}" for line in wrong_with_sources(archive)]
    print(f"{wheel.name} {wheel.stat().st_size:,} bytes, {archive.name} {archive.stat().st_size:,} bytes")
    if found:
        raise SystemExit("\n".join(found))


if __name__ == "__main__":
    main()
