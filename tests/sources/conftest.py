"""No test here asks anything of a machine but this one."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_metadata_service(monkeypatch):
    """Keep clients of stores from asking a cloud for credentials."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
