"""Print the lowest version of every package that pyproject.toml allows, as constraints for pip.

    python scripts/lowest_versions.py > constraints.txt

With them, DPFAST_TEST_VERSIONS=lowest sh scripts/test.sh runs the tests of what other packages' versions decide.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
#: Peers that are measured against, some of them too old to be with the others, and what builds the documentation.
LEFT_OUT = {"benchmark", "docs"}
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?>=([0-9.]+)(?:,.*)?")


def lowest_versions() -> dict[str, str]:
    """Return the lowest version of every package, by its name.

    Raises
    ------
    ValueError
        A requirement has no lower bound, or one package has two.

    """
    project = tomllib.loads(PROJECT.read_text())["project"]
    extras = (found for name, found in project["optional-dependencies"].items() if name not in LEFT_OUT)
    found: dict[str, str] = {}
    for requirement in (*project["dependencies"], *(entry for extra in extras for entry in extra)):
        matched = _REQUIREMENT.fullmatch(requirement)
        if matched is None:
            raise ValueError(f"{requirement!r} in pyproject.toml has no lower bound; write NAME>=VERSION")
        name, version = matched.groups()
        if found.setdefault(name, version) != version:
            raise ValueError(f"{name} has the lower bounds {found[name]} and {version} in pyproject.toml; write one")
    return found


if __name__ == "__main__":
    print("\n".join(f"{name}=={version}" for name, version in sorted(lowest_versions().items())))
