"""The versions of other packages that are declared are those that the tests ran with."""

from __future__ import annotations

import os
from importlib import metadata
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[1]
#: What no test needs, or what runs on no file of these tests.
NOT_INSTALLED = {"pyspark"}


def lowest_versions() -> dict[str, str]:
    spec = spec_from_file_location("lowest_versions", ROOT / "scripts" / "lowest_versions.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.lowest_versions()


LOWEST = lowest_versions()


@pytest.mark.parametrize("name", LOWEST)
def test_the_version_that_is_installed_is_allowed(name):
    """In the run with the lowest versions it is the lowest itself, so that no bound is declared that was not run."""
    if name in NOT_INSTALLED:
        pytest.skip("half a gigabyte, for the tests of one integration")
    installed = Version(metadata.version(name))
    if os.environ.get("DPFAST_TEST_VERSIONS") == "lowest":
        assert installed == Version(LOWEST[name])
    assert installed >= Version(LOWEST[name])


@pytest.mark.parametrize("requirement", ["numpy", "numpy<3", "numpy==2.0"])
def test_a_requirement_without_a_lowest_version_is_refused(tmp_path, requirement, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(
        f'[project]\ndependencies = ["{requirement}"]\n[project.optional-dependencies]\n'
    )
    spec = spec_from_file_location("lowest_versions", ROOT / "scripts" / "lowest_versions.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "PROJECT", tmp_path / "pyproject.toml")
    with pytest.raises(ValueError, match="has no lower bound"):
        module.lowest_versions()
