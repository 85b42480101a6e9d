"""What every test may use: ``--long``, and a seed that shows up where a test fails."""

from __future__ import annotations

import os
import secrets

import pytest
from hypothesis import HealthCheck, settings

# No time decides whether a test passes: a busy machine is ten times slower than a quiet one.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="also run the tests that take minutes")


def pytest_collection_modifyitems(config, items):
    # First, since it compiles most kernels anew whatever the cache has, and leaves them there for all that follows.
    items.sort(key=lambda item: item.path.name != "test_compiled_code.py")
    if not config.getoption("--long"):
        skip = pytest.mark.skip(reason="takes minutes: run scripts/long_tests.sh")
        for item in items:
            if "long" in item.keywords:
                item.add_marker(skip)


@pytest.fixture
def seed():
    """Return a fresh seed; to repeat a failure, set DPFAST_TEST_SEED to the one that pytest shows."""
    value = int(os.environ.get("DPFAST_TEST_SEED") or secrets.randbits(48))
    print(f"DPFAST_TEST_SEED={value}")
    return value
