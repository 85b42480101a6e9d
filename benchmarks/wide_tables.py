"""What records of hundreds of columns take, and how far their pairs are off; written to wide_tables.md.

    python -m benchmarks.wide_tables

A made-up table of 50,000 rows: each row is in one of eight latent classes, which decides what the values of every
column are drawn by. Columns have 2 to 20 values. Each table is a process of its own, whose largest memory is read at
its end. Errors are mean total variation distances of records from the data over pairs drawn at random.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpfast as dpf

__all__ = ["main", "make_table", "measured"]

_ROWS, _CLASSES, _SIZES = 50_000, 8, (2, 3, 5, 8, 12, 20)
_COLUMNS = (50, 100, 200, 400)
#: By default there are up to three for each column.
_ROUNDS = 150
_EPSILON, _DELTA, _MEGABYTES, _PAIRS = 1.0, 1e-9, 1.0, 500
ABOUT = f"""# Records of hundreds of columns

Written by `python -m benchmarks.wide_tables`: a made-up table of {_ROWS:,} rows, whose {_CLASSES} latent classes decide
what the values of every column are drawn by; columns have {_SIZES[0]} to {_SIZES[-1]} values. `dpf.synthesize` with
epsilon={_EPSILON:g}, delta={_DELTA:g}, max_megabytes={_MEGABYTES:g}, rounds={_ROUNDS}; one run each. Seconds are of a
processor. MB are the most that the whole process took, of which about 230 are the libraries. Errors are mean total
variation distances from the data over {_PAIRS} pairs drawn at random: of the records, and of independent columns that
are known exactly.

| columns | planning, s | synthesis, s | records, s | MB | records err | independent columns |
|---|---|---|---|---|---|---|
"""
AFTER = """
By default there are up to three rounds for each column, and a model may take 16 MB: both take longer than here. 150
rounds measure few of the pairs of 400 columns, and its records are no better than independent columns.
"""
WRITTEN = """
## Ten million records

`dpf.Synthesis.write` of 10^7 records of {columns} columns to Parquet: {seconds:.1f} s of a processor, {drawing:.1f} of
them for drawing codes, and {more:.0f} MB more memory than before; the file has {size:.0f} MB.
"""


def make_table(columns: int, rows: int = _ROWS) -> pl.DataFrame:
    """Return the made-up table."""
    generator = np.random.default_rng(columns)
    classes = generator.integers(0, _CLASSES, rows)
    made = {}
    for place in range(columns):
        size = _SIZES[place % len(_SIZES)]
        ends = generator.dirichlet(np.full(size, 0.5), _CLASSES).cumsum(axis=1)
        ends[:, -1] = 1.0
        made[f"x{place}"] = (generator.random(rows)[:, None] > ends[classes]).sum(axis=1).astype(np.uint8)
    return pl.DataFrame(made)


def domain_of(columns: int) -> dpf.Domain:
    """Return the declared values of the table's columns."""
    return dpf.Domain({f"x{place}": _SIZES[place % len(_SIZES)] for place in range(columns)})


def errors(data: pl.DataFrame, drawn: pl.DataFrame, pairs: int) -> tuple[float, float]:
    """Return how far records are off on average over pairs, and independent columns."""
    generator, names = np.random.default_rng(0), data.columns
    found = []
    for _ in range(pairs):
        held = [names[place] for place in generator.choice(len(names), 2, replace=False)]
        true, made = _shares(data, held), _shares(drawn, held)
        even = np.outer(true.sum(axis=1), true.sum(axis=0))
        found.append([np.abs(true - made).sum() / 2.0, np.abs(true - even).sum() / 2.0])
    made_error, even_error = np.mean(found, axis=0).tolist()
    return made_error, even_error


def _shares(frame: pl.DataFrame, held: list[str]) -> NDArray[np.float64]:
    most = max(_SIZES)
    codes = frame[held[0]].cast(pl.Int64).to_numpy() * most + frame[held[1]].cast(pl.Int64).to_numpy()
    return np.bincount(codes, minlength=most * most).reshape(most, most) / frame.height


def measured(columns: int) -> dict[str, float]:
    """Measure one table in this process."""
    data, domain = make_table(columns), domain_of(columns)
    budget = {"epsilon": _EPSILON, "delta": _DELTA}
    dpf.synthesize(data[:, :10], domain_of(10), rounds=2, ledger=dpf.Ledger(**budget), **budget)  # what is compiled
    times = [time.process_time()]
    asked = {"rounds": _ROUNDS, "max_megabytes": _MEGABYTES}
    dpf.plan_synthesis(domain, **asked, **budget).explain()
    times.append(time.process_time())
    made = dpf.synthesize(data, domain, **asked, ledger=dpf.Ledger(**budget), **budget)
    times.append(time.process_time())
    drawn = made.frame
    times.append(time.process_time())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    own, even = errors(data, drawn, _PAIRS)
    planning, synthesis, records = np.diff(times).tolist()
    return {
        "columns": columns,
        "planning": planning,
        "synthesis": synthesis,
        "records": records,
        "memory": memory,
        "error": own,
        "independent": even,
    }


def written(columns: int = 14, records: int = 10**7) -> dict[str, float]:
    """Measure how long many records take to be written."""
    data, domain = make_table(columns), domain_of(columns)
    budget = {"epsilon": _EPSILON, "delta": _DELTA}
    made = dpf.synthesize(data, domain, ledger=dpf.Ledger(**budget), rows=records, **budget)
    domain.records(made, 10**5)  # what is compiled
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        made.write(Path(folder) / "records.parquet")
        seconds, size = time.process_time() - start, (Path(folder) / "records.parquet").stat().st_size / 1e6
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    start = time.process_time()
    for _ in made.draw_parts():
        pass
    drawing = time.process_time() - start
    return {"columns": columns, "seconds": seconds, "drawing": drawing, "more": more, "size": size}


def _alone(what: str) -> dict[str, float]:
    """Return what a process of its own measures."""
    command = [sys.executable, "-m", "benchmarks.wide_tables", what]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def main() -> None:
    """Measure every table in a process of its own, and write."""
    if len(sys.argv) > 1:
        print(json.dumps(written() if sys.argv[1] == "records" else measured(int(sys.argv[1]))))
        return
    lines = []
    for columns in _COLUMNS:
        found = _alone(str(columns))
        lines.append(
            f"| {columns} | {found['planning']:.1f} | {found['synthesis']:.0f} | "
            f"{found['records']:.1f} | {found['memory']:.0f} | {found['error']:.4f} | {found['independent']:.4f} |"
        )
        print(lines[-1], flush=True)
    many = WRITTEN.format(**_alone("records"))
    Path(__file__).with_suffix(".md").write_text(f"{ABOUT}{chr(10).join(lines)}\n{AFTER}{many}")


if __name__ == "__main__":
    main()
