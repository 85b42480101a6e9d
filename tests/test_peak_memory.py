"""The memory that a release by unit takes, in a process of its own under a limit."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

RUN = """
    import gc, os, sys
    import polars as pl
    import dpfast as dpf

    def kilobytes(name):
        return int(open("/proc/self/status").read().split(name + ":")[1].split()[0])

    def run(data):
        keys = pl.DataFrame({"key": range(100)})
        plan = dpf.plan(data, by="key", keys=keys, n=dpf.count(), total=dpf.sum("value", bounds=(0, 1)),
                        privacy_unit="unit", max_groups=3, max_rows_per_group=2, epsilon=1.0, dataset="d")
        return plan.run(dpf.Ledger(epsilon=1.0)).frame

    run(pl.DataFrame({"key": [0, 1], "unit": ["a", "b"], "value": [0.5, 1.0]}))
    gc.collect()
    group, free = sys.argv[2:4]
    if group:
        open(group + "/cgroup.procs", "w").write(str(os.getpid()))
    else:
        os.environ["DPFAST_MEMORY_LIMIT"] = str(1024 * kilobytes("VmRSS") + int(free))
    open("/proc/self/clear_refs", "w").write("5")
    before = kilobytes("VmRSS")
    height = run(sys.argv[1]).height
    print(height, kilobytes("VmHWM") - before)
"""


def write(path: Path, rows: int, units: int) -> None:
    """Write rows of which every fourth is of one unit, in row groups of 50,000."""
    writer, generator = None, np.random.default_rng(1)
    for _ in range(0, rows, 50_000):
        unit = np.where(generator.random(50_000) < 0.25, 0, generator.integers(0, units, 50_000))
        values = {"key": generator.integers(0, 100, 50_000), "unit": unit, "value": generator.random(50_000)}
        names = pl.format("unit {}", "unit").alias("unit")
        table = pl.DataFrame(values).with_columns(names).to_arrow()
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def peak(path: Path, group: str, free: int) -> int:
    """Return the bytes that the release took at its peak."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(RUN), str(path), group, str(free)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(path.parent)},
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    height, kilobytes = done.stdout.split()
    assert height == "100"
    return 1024 * int(kilobytes)


@pytest.mark.long
def test_a_release_by_unit_stays_within_its_memory(tmp_path):
    """A limit near what a small part of the rows takes: without it the same release takes much more."""
    write(tmp_path / "rows.parquet", 20_000_000, 2_000_000)
    free = 360_000_000
    assert peak(tmp_path / "rows.parquet", "", free) < free
    assert peak(tmp_path / "rows.parquet", "", 2**40) > free


@pytest.mark.long
def test_a_release_by_unit_within_a_control_group(tmp_path):
    """In 600 MB in all, a file of 1 GB, and every limit is found without being told."""
    group = Path(f"/sys/fs/cgroup/memory/dpfast-test-{os.getpid()}")
    limit = "memory.limit_in_bytes"
    if not group.parent.exists():
        group, limit = Path(f"/sys/fs/cgroup/dpfast-test-{os.getpid()}"), "memory.max"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("no control group can be made here")
    try:
        (group / limit).write_text(str(600 * 10**6))
        write(tmp_path / "rows.parquet", 60_000_000, 6_000_000)
        assert (tmp_path / "rows.parquet").stat().st_size > 10**9
        assert peak(tmp_path / "rows.parquet", str(group), 0) < 600 * 10**6
    finally:
        group.rmdir()
