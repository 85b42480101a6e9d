"""The results in one Parquet file, which a run that was killed goes on from."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

import polars as pl

import dpfast
from dpfast.errors import ParameterError, Words

from .trials import SCHEMA

__all__ = ["code_digest", "read_results", "resumed", "write_results"]

_ORDER = ["dataset", "shape", "scale", "epsilon", "workload", "mechanism", "trial"]


@cache
def code_digest() -> str:
    """Return eight letters that change when a line of dpfast does: errors of other code are not mixed in."""
    digest = hashlib.sha256()
    for path in sorted(Path(dpfast.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def write_results(rows: pl.DataFrame, path: Path) -> None:
    """Write all rows in their order, or leave the file as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    rows.sort(_ORDER).write_parquet(part)
    os.replace(part, path)


def read_results(path: Path) -> pl.DataFrame:
    """Return the rows of a file of results.

    Raises
    ------
    ParameterError
        There is no such file, or it has other columns.

    """
    try:
        rows = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise ParameterError("out", Words(f"{path}: {reason}"), "a file that this suite wrote") from None
    if rows.schema != SCHEMA:
        raise ParameterError("out", Words(f"{path} with other columns"), "a file that this suite wrote")
    return rows


def resumed(path: Path, seed: int) -> tuple[pl.DataFrame, int]:
    """Return the rows that may stand beside new ones, and how many may not: of another seed, or of other code."""
    rows = read_results(path) if path.exists() else pl.DataFrame(schema=SCHEMA)
    kept = rows.filter(seed=seed, code=code_digest())
    return kept, rows.height - kept.height
