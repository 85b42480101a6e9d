from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

# The server of the ledger's tests: a folder without a package of its own.
_PATH = Path(__file__).parents[1] / "ledger" / "conftest.py"
_SPEC = importlib.util.spec_from_file_location("ledger_conftest", _PATH)
_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)
postgresql = _MODULE.postgresql


@pytest.fixture
def databases(postgresql):
    """Return what makes a database of a frame, by its name."""
    from .sql_databases import Databases

    with Databases(postgresql.url) as made:
        yield made
