"""SQL databases as sources of data: they supply rows, or aggregate where the rows may not leave."""

from dpfast.integrations.sql.databases import find_database, sql

__all__ = ["find_database", "sql"]
