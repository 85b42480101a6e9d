"""From an object of another library to what it supplies: rows, an engine, or both."""

from __future__ import annotations

from importlib import import_module

from dpfast.aggregation.protocols import Database, is_database
from dpfast.errors import ParameterError, Words

__all__ = ["find_database"]

#: Who knows the objects of a library, by the root of their module's name. They stand on a floor above, and are imported
#: when such an object is given: the one door that leads up.
_HOMES = {"duckdb": "dpfast.integrations.sql", "_duckdb": "dpfast.integrations.sql", "ibis": "dpfast.integrations.sql"}


def find_database(data: object) -> Database | None:
    """Return what stands behind an object of a library that has an integration, or None.

    Raises
    ------
    ParameterError
        It is a Spark frame, whose releases are made by Spark.

    """
    if is_database(data):
        return data
    root = type(data).__module__.partition(".")[0]
    if root == "pyspark":
        mend = "call dpfast.integrations.spark.release, which runs in Spark"
        raise ParameterError("data", Words(f"a Spark {type(data).__name__}"), "no frame of Spark here", mend)
    home = _HOMES.get(root)
    found: Database | None = None if home is None else import_module(home).find_database(data)
    return found
