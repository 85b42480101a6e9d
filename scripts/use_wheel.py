"""Use dpfast where nothing but what it asks for is installed, and fail if it needs an optional package.

scripts/check_wheel.sh runs it in an empty environment, outside of the repository.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.metadata import version
from pathlib import Path

import polars as pl

import dpfast as dpf

OPTIONAL = ("duckdb", "dp_accounting", "matplotlib", "pandas", "psycopg", "pyspark", "scipy", "sklearn")


def main() -> None:
    """Import every public name, and make a release and some noise."""
    there = [name for name in OPTIONAL if importlib.util.find_spec(name) is not None]
    if there:
        raise SystemExit(f"the environment is not empty: {', '.join(there)}")
    if (Path(__file__).parent.parent / "dpfast") == Path(dpf.__file__).parent:
        raise SystemExit("dpfast was imported from the repository, not from the wheel")
    names = [name for name in dpf.__all__ if getattr(dpf, name) is not None]
    rows = pl.DataFrame({"person": range(1000), "city": ["north", "south"] * 500})
    ledger = dpf.Ledger(epsilon=200)
    cities = pl.DataFrame({"city": ["north", "south"]})
    release = dpf.release(rows, "city", keys=cities, n=dpf.count(), privacy_unit="row", epsilon=100, ledger=ledger)
    if release.frame["n"].to_list() != [500, 500]:  # otherwise with probability below 2 exp(-100)
        raise SystemExit(f"two counts of 500 came out as {release.frame['n'].to_list()}")
    noise = dpf.laplace(pl.Series([0] * 1000), scale=10.0)
    if not 3 < noise.std() < 60:  # otherwise with probability below 1e-50
        raise SystemExit("noise of scale 10 has another size")
    python = sys.version.split()[0]
    print(f"dpfast {version('dpfast')} with Python {python}: {len(names)} public names, no optional package")


if __name__ == "__main__":
    main()
