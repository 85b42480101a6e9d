"""Connections for the tests of DuckDB functions."""

from __future__ import annotations

import pytest

from dpfast.integrations.duckdb import register_functions
from dpfast.testing import SeededRandom

duckdb = pytest.importorskip("duckdb")

SECRET = 31337
PIECE = 2048


#: How databases are opened; the fixture ``duckdb_route`` changes it.
CONFIG: dict[str, bool] = {}


def connect(*place):
    return duckdb.connect(*place, config=CONFIG)


def connected(threads=1, **settings):
    connection = connect()
    connection.execute(f"SET threads = {threads}")
    register_functions(connection, **settings)
    return connection


def fetched(connection, query):
    return [row[0] for row in connection.sql(query).fetchall()]


class Watched:
    """Keys that can be repeated, and every word that was drawn with them."""

    def __init__(self):
        self.random, self.keys = SeededRandom(9), 0

    def key(self):
        self.keys += 1
        return self.random.key()
