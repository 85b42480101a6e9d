"""Cost per row from 10^3 to 10^9 rows of Parquet, and per query to 10^8 of them: `python benchmarks/scaling.py`.

    python benchmarks/scaling.py --largest 1e7                   sizes up to so many rows; 1e9 takes 4 GB of files
    python benchmarks/scaling.py --largest 1e9 --folder FOLDER   where the files are made, once, and stay
    python benchmarks/scaling.py --largest 1e7 --out FOLDER      where scaling.md and scaling.svg go

Every figure is of a process of its own: it makes a run on few rows first, so that loading libraries is not counted,
and then says how long a run takes and its peak memory, all that was loaded included (Linux). Runs of the same size are
made in turns. Written are benchmarks/scaling.md and docs/scaling.svg.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent.parent
if (ROOT / "pyproject.toml").exists():  # in a wheel, the package is found without
    sys.path.insert(0, str(ROOT))

import dpfast as dpf  # noqa: E402

Figures: TypeAlias = dict[str, dict[str, float]]

PART_ROWS, CHUNK_ROWS = 10**7, 2**20
#: As Polars writes them. Its streaming engine reads some ahead: where they were of 10^6 rows, a run over 5 * 10^7 rows
#: took 110 MB more.
ROW_GROUP = 2**18
MOST_GROUPS = 10**6
ROWS_OF_A_UNIT = 2
BATCH_QUERIES = 10**6
#: What a run by unit may take beyond what is loaded; the rest of its rows waits encrypted on the disk.
UNIT_MEMORY = 6 * 10**8
#: The medians of so many runs up to so many rows, a single one beyond.
REPEATS, REPEATED_UP_TO = 3, 10**7
ROW_KINDS = ("dpfast", "Polars", "reading alone")


def groups_of(rows: int) -> int:
    """Return how many keys rows fall into."""
    return max(min(rows // 10, MOST_GROUPS), 1)


def part_paths(folder: Path, rows: int, units: int = 0) -> list[Path]:
    """Return the files of so many rows, and of so many units if any: large sizes share their first files."""
    kind = f"units_{units}" if units else "rows"
    if rows < PART_ROWS:
        return [folder / f"{kind}_{rows}.parquet"]
    return [folder / f"{kind}_{part:03d}.parquet" for part in range(rows // PART_ROWS)]


def make_files(folder: Path, rows: int, units: int = 0) -> list[Path]:
    """Write what is missing of the files, a million rows at a time; say how far it is."""
    paths = part_paths(folder, rows, units)
    for number, path in enumerate(paths):
        if path.exists():
            continue
        waiting = path.with_suffix(".writing")
        generator = np.random.default_rng([20_261_123, number, min(rows, PART_ROWS), units])
        left, writer = min(rows, PART_ROWS), None
        while left:
            size = min(left, CHUNK_ROWS)
            columns = {"key": generator.integers(0, groups_of(rows), size, np.int32)}
            if units:
                columns["unit"] = generator.integers(0, units, size, np.int64)
            table = pa.table(columns)
            writer = writer or pq.ParquetWriter(waiting, table.schema, use_dictionary=False)
            writer.write_table(table, row_group_size=ROW_GROUP)
            left -= size
        assert writer is not None
        writer.close()
        waiting.rename(path)
        if len(paths) > 1:
            print(f"{path.name}: {number + 1} of {len(paths)} files", file=sys.stderr, flush=True)
    return paths


def release_rows(paths: list[Path], rows: int) -> Any:
    keys = pl.DataFrame({"key": np.arange(groups_of(rows), dtype=np.int32)})
    return dpf.release(
        paths, "key", keys=keys, n=dpf.count(), privacy_unit="row", epsilon=1.0, ledger=dpf.Ledger(epsilon=1.0)
    ).frame


def count_rows(paths: list[Path], rows: int) -> Any:
    return pl.scan_parquet(paths).group_by("key").agg(pl.len()).collect(engine="streaming")


def read_rows(paths: list[Path], rows: int) -> Any:
    return sum(frame.height for frame in pl.scan_parquet(paths).collect_batches(chunk_size=2**18, engine="streaming"))


def release_units(paths: list[Path], rows: int) -> Any:
    used = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    os.environ["DPFAST_MEMORY_LIMIT"] = str(used + UNIT_MEMORY)
    keys = pl.DataFrame({"key": np.arange(groups_of(rows), dtype=np.int32)})
    return dpf.release(
        paths, "key", keys=keys, n=dpf.count(), privacy_unit="unit", max_groups=2, max_rows_per_group=1, epsilon=1.0,
        ledger=dpf.Ledger(epsilon=1.0),
    ).frame  # fmt: skip


def answer_queries(paths: list[Path], rows: int) -> Any:
    """Answer queries in batches, charged to a ledger in a file; each batch is made, answered and let go."""
    generator = np.random.default_rng(20_261_124)
    with tempfile.TemporaryDirectory() as folder, dpf.Ledger.open(Path(folder) / "ledger.db", epsilon=1e6) as ledger:
        for start in range(0, rows, BATCH_QUERIES):
            size = min(BATCH_QUERIES, rows - start)
            counts, shares = generator.integers(0, 1000, size), generator.uniform(1e-5, 1e-4, size)
            table = pl.DataFrame({"count": counts, "epsilon": shares})
            dpf.answer(table, value="count", epsilon="epsilon", ledger=ledger, dataset="data", privacy_unit="row")


RUNS: dict[str, Callable[[list[Path], int], Any]] = {
    "dpfast": release_rows,
    "Polars": count_rows,
    "reading alone": read_rows,
    "units": release_units,
    "queries": answer_queries,
}


def files_of(folder: Path, run: str, rows: int) -> list[Path]:
    """Make the files that a run reads."""
    if run == "queries":
        return []
    return make_files(folder, rows, rows // ROWS_OF_A_UNIT if run == "units" else 0)


def measure_here(run: str, folder: Path, rows: int) -> None:
    """Run once on few rows and once on all; print seconds and the peak of memory in MB."""
    few = min(rows, 1000)
    RUNS[run](files_of(folder, run, few), few)
    paths = files_of(folder, run, rows)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    begun = time.perf_counter()
    RUNS[run](paths, rows)
    seconds = time.perf_counter() - begun
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1000
    print(json.dumps({"seconds": seconds, "peak": peak}))


def measure(run: str, folder: Path, rows: int) -> dict[str, float] | None:
    """Measure a run in a process of its own; None if that process was killed, as for want of memory."""
    command = [sys.executable, __file__, "--run", run, "--rows", str(rows), "--folder", str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode < 0:
        return None
    done.check_returncode()
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(runs: Iterable[str], folder: Path, rows: int) -> Figures:
    """Return the medians of several measurements in turns, for each run that came to its end."""
    runs, found = tuple(runs), []
    for _ in range(REPEATS if rows <= REPEATED_UP_TO else 1):
        found.append({run: measure(run, folder, rows) for run in runs})
    figures: Figures = {}
    for run in runs:
        some = [one for each in found if (one := each[run]) is not None]
        if some:
            figures[run] = {name: statistics.median(one[name] for one in some) for name in ("seconds", "peak")}
            spent = figures[run]["seconds"]
            print(f"{rows:.0e} {run}: {spent:.4g} s, {figures[run]['peak']:.0f} MB", file=sys.stderr, flush=True)
    return figures


def sizes(largest: int) -> list[int]:
    """Return the powers of ten from 1,000 on."""
    return [10**power for power in range(3, round(math.log10(largest)) + 1)]


def draw(rows: dict[int, Figures], path: Path) -> None:
    drawing = import_module(".drawing", __package__ or "benchmarks")  # as a script, it is of no package
    figure, axes = drawing.start_chart("Counts by up to a million keys, from Parquet files", 4.6, grid="both")
    colours = drawing.DOT, drawing.LINE, drawing.WHISKER
    for kind, colour, style in zip(ROW_KINDS, colours, ("o-", "o-", "--"), strict=True):
        some = [(size, 1e9 * found[kind]["seconds"] / size) for size, found in rows.items() if kind in found]
        label = {"dpfast": "dpf.release, streamed", "Polars": "Polars group_by, streaming"}.get(kind, kind)
        axes.loglog(*zip(*some, strict=True), style, color=colour, label=label, linewidth=1.4, markersize=4)
    axes.set_xlabel("rows", color=drawing.FAINT, fontsize=9)
    axes.set_ylabel("ns a row", color=drawing.FAINT, fontsize=9)
    axes.xaxis.set_major_formatter(drawing.written)
    axes.yaxis.set_major_formatter(drawing.written)
    axes.legend(frameon=False, fontsize=9)
    told = "Measured by benchmarks/scaling.py: all threads, files in the system's cache where it holds them."
    drawing.footnote(figure, told)
    drawing.save(figure, path)


def _per(found: dict[str, float] | None, size: int) -> str:
    if found is None:
        return "-"
    spent = 1e9 * found["seconds"] / size
    return f"{spent:,.0f}" if spent >= 100 else f"{spent:.3g}"


def _peak(found: dict[str, float] | None) -> str:
    return "-" if found is None else f"{found['peak']:,.0f}"


def _ratio(found: Figures) -> str:
    both = [found[name]["seconds"] for name in ("dpfast", "Polars") if name in found]
    return f"{both[0] / both[1]:.2f}" if len(both) == 2 else "-"


def table(header: list[str], lines: Iterable[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, ["---:"] * len(header), *lines])


def bend(rows: dict[int, Figures]) -> str:
    """Say where the cost per row of a release bends: what every release costs, and what every row does."""
    fixed = min(found["dpfast"]["seconds"] for found in rows.values())
    per_row = {size: found["dpfast"]["seconds"] / size for size, found in rows.items()}
    least = min(per_row, key=lambda size: per_row[size])
    text = (
        f"A release of few rows takes {1e3 * fixed:.3g} ms, however few: opening the file, the plan, the charge. Up to "
        f"{fixed / per_row[least]:,.0f} rows or so that is more than the rows take, and the cost per row falls as "
        f"1 / rows. It is least, {1e9 * per_row[least]:.3g} ns, at {least:,} rows."
    )
    if (most := max(rows)) > least:
        text += f" At {most:,} rows it is {per_row[most] / per_row[least]:.2f} times that."
    return (
        f"{text} A row is decoded, and 1 is added to the count of its key. The counts of 1,000,000 keys are 8 MB, more "
        "than a core's second cache holds: from 10,000,000 rows on, a row waits for the third one. Where the system's "
        "cache does not hold the files, their disk does the rest."
    )


def write(found: dict[str, dict[int, Figures]], folder: Path, out: Path, chart: Path) -> None:
    """Write the tables, and draw the chart."""
    rows = found["rows"]
    draw(rows, chart)
    by_size = table(
        [
            "rows",
            "keys",
            "files, MB",
            "dpfast, ns a row",
            "Polars",
            "ratio",
            "reading alone",
            "dpfast, peak MB",
            "Polars",
        ],
        (
            [
                f"{size:,}",
                f"{groups_of(size):,}",
                f"{sum(path.stat().st_size for path in part_paths(folder, size)) / 1e6:,.1f}",
                _per(each.get("dpfast"), size),
                _per(each.get("Polars"), size),
                _ratio(each),
                _per(each.get("reading alone"), size),
                _peak(each.get("dpfast")),
                _peak(each.get("Polars")),
            ]
            for size, each in rows.items()
        ),
    )
    by_unit = table(
        ["units", "rows", "ns a row", "peak MB"],
        (
            [f"{size // ROWS_OF_A_UNIT:,}", f"{size:,}", _per(each.get("units"), size), _peak(each.get("units"))]
            for size, each in found["units"].items()
        ),
    )
    by_query = table(
        ["queries", "ns a query", "peak MB"],
        (
            [f"{size:,}", _per(each.get("queries"), size), _peak(each.get("queries"))]
            for size, each in found["queries"].items()
        ),
    )
    picture = os.path.relpath(chart, out.parent)
    out.write_text(
        "# Cost per row, from a thousand rows to the largest number\n\n"
        "Written by `python benchmarks/scaling.py`: `dpf.release` of counts by public keys from Parquet files, beside "
        "Polars' streaming `group_by` of the same scan and beside reading the column alone; each in processes of "
        "their own, all threads. Peaks are of the whole process.\n\n"
        f"![Cost per row]({picture})\n\n{bend(rows)}\n\n{by_size}\n\n"
        "Goals at 1,000,000,000 rows: a peak below 1,000 MB, and at most half of the time of Polars.\n\n"
        f"Units, {ROWS_OF_A_UNIT} rows each on average, bounded to 2 keys and one row of each, within "
        f"{UNIT_MEMORY / 1e6:g} MB beyond what is loaded:\n\n{by_unit}\n\n{_WHERE_UNITS_BEND}\n\n"
        f"`dpf.answer` in batches of {BATCH_QUERIES:,} queries, each with its own epsilon, charged to a ledger in a "
        f"file:\n\n{by_query}\n\n{_WHERE_QUERIES_BEND}\n"
    )


#: Where costs bend that have no chart, and why.
_WHERE_UNITS_BEND = (
    "Few rows cost what opening the file, the plan and the charge take. Rows that outgrow the memory are dealt by "
    "their units into parts of an encrypted file, and each part is read again when all are dealt; a part that is still "
    "too large is dealt once more. A row is then written and read once or twice beside being decoded, and its unit's "
    "number is found in a table that no cache holds."
)
_WHERE_QUERIES_BEND = (
    "A batch costs some milliseconds, however few queries it has: a transaction of the ledger that is on the disk when "
    "it ends. From a million queries a batch on, noise with a scale of its own and the charge of each query are left."
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost per row, from a thousand rows to the largest number.")
    parser.add_argument("--largest", type=float, default=1e7, help="rows, a power of ten; units and queries a tenth")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "dpfast_scaling", help="of the files"
    )
    parser.add_argument("--out", type=Path, help="folder of scaling.md and scaling.svg")
    parser.add_argument("--run", choices=RUNS, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.run:
        measure_here(given.run, given.folder, given.rows)
        return
    found: dict[str, dict[int, Figures]] = {"rows": {}, "units": {}, "queries": {}}
    for size in sizes(int(given.largest)):
        make_files(given.folder, size)
        found["rows"][size] = measured(ROW_KINDS, given.folder, size)
    for size in sizes(int(given.largest) // 10) or [1000]:
        rows = ROWS_OF_A_UNIT * size
        make_files(given.folder, rows, size)
        found["units"][rows] = measured(["units"], given.folder, rows)
        found["queries"][size] = measured(["queries"], given.folder, size)
    out = given.out / "scaling.md" if given.out else ROOT / "benchmarks" / "scaling.md"
    write(found, given.folder, out, given.out / "scaling.svg" if given.out else ROOT / "docs" / "scaling.svg")


if __name__ == "__main__":
    main()
