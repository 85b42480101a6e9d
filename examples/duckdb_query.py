"""A query of DuckDB, released: rows go from DuckDB to dpfast as Arrow, batch by batch, or are aggregated in DuckDB.

python examples/duckdb_query.py
"""

from __future__ import annotations

import duckdb
import polars as pl

import dpfast as dpf

TABLE = """
    CREATE TABLE orders AS
    SELECT i % 997 AS customer, ['north', 'south', 'east', 'west'][1 + i % 4] AS region, (i * 37 % 1000) / 10 AS price
    FROM range(200000) AS rows(i)
"""
REGIONS = pl.DataFrame({"region": ["east", "north", "south", "west"]})


def main() -> dict[str, pl.DataFrame]:
    """Release the same statistics in both ways, and return the frames."""
    connection = duckdb.connect()
    connection.execute(TABLE)
    dear = connection.sql("SELECT customer, region, price FROM orders WHERE price > 10")
    ledger = dpf.Ledger(epsilon=2)
    return {
        engine: dpf.release(
            dear,
            by="region",
            keys=REGIONS,
            orders=dpf.count(),
            price=dpf.mean("price", bounds=(0, 100)),
            privacy_unit="customer",
            max_groups=4,
            max_rows_per_group=20,
            epsilon=1,
            dataset="orders",
            engine=engine,
            ledger=ledger,
        ).frame
        for engine in ("rows", "sql")
    }


if __name__ == "__main__":
    for engine, frame in main().items():
        print(f'engine="{engine}"', frame, sep="\n")
