"""DuckDB, PostgreSQL and SQLite as sources of data: they supply rows, or aggregate where the rows may not leave."""
