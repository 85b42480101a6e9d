"""A table in PostgreSQL that never leaves its server: one statement bounds, clips and adds up, and noise is added here.

    python examples/postgresql_table.py postgresql://user@host/database

What comes back from the server is one row for each group, exact: it stays in this process. The ledger can be kept in
the same server, in a schema of its own.
"""

from __future__ import annotations

import sys

import polars as pl
import psycopg

import dpfast as dpf

ILLNESSES = pl.DataFrame({"illness": ["asthma", "diabetes", "hypertension", "none"]})


def main(address: str) -> pl.DataFrame:
    """Release how many adult patients have each illness, and how old they are."""
    ledger = dpf.Ledger(epsilon=1)
    with psycopg.connect(address) as connection:
        patients = dpf.sql(connection, "SELECT patient, illness, age FROM patients WHERE age >= 18")
        release = dpf.release(
            patients,
            by="illness",
            keys=ILLNESSES,
            cases=dpf.count(),
            age=dpf.mean("age", bounds=(18, 100)),
            privacy_unit="patient",
            max_groups=2,
            max_rows_per_group=1,
            epsilon=1,
            dataset="patients",
            engine="sql",
            ledger=ledger,
        )
    return release.frame


if __name__ == "__main__":
    print(main(sys.argv[1]))
