from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def plugin():
    """Return the compiled plugin, or skip what needs it.

    Not where a file is imported: all workers import it at once, and one would wait for what the other compiles.
    """
    from dpfast.integrations.plugin.library import UnavailableError, library

    try:
        return library()
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["python", "compiled"])
def duckdb_route(request, monkeypatch):
    """DuckDB's functions in Python, and the compiled ones where they can be had."""
    pytest.importorskip("duckdb")
    from dpfast.integrations.plugin.library import UnavailableError, library

    from . import duckdb_queries

    if request.param == "compiled":
        try:
            library()
        except UnavailableError as error:
            pytest.skip(str(error))
        monkeypatch.setitem(duckdb_queries.CONFIG, "allow_unsigned_extensions", True)
    return request.param


@pytest.fixture
def databases(request):
    """Return what makes a database of a frame, by its name; tests of PostgreSQL are skipped where there is none."""
    pytest.importorskip("duckdb")
    from .sql_databases import Databases

    with Databases(lambda: request.getfixturevalue("postgresql").url) as made:
        yield made
