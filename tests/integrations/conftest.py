from __future__ import annotations

import pytest


@pytest.fixture
def databases(request):
    """Return what makes a database of a frame, by its name; tests of PostgreSQL are skipped where there is none."""
    pytest.importorskip("duckdb")
    from .sql_databases import Databases

    with Databases(lambda: request.getfixturevalue("postgresql").url) as made:
        yield made
