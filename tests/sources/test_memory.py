"""The memory that data of a kind take does not grow with their rows, in a process of its own."""

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
    import gc, sys
    import polars as pl
    import pyarrow.dataset as ds
    import dpfast as dpf
    from dpfast.aggregation.csv_streams import CsvStream

    def kilobytes(name):
        return int(open("/proc/self/status").read().split(name + ":")[1].split()[0])

    def run(data):
        keys = pl.DataFrame({"k": range(100)})
        plan = dpf.plan(data, "k", keys=keys, n=dpf.count(), s=dpf.sum("x", bounds=(0, 1)), epsilon=1.0, dataset="d")
        return plan.run(dpf.Ledger(epsilon=1.0)).frame

    kind, small, large = sys.argv[1:]
    dtypes = {"k": pl.Int64, "x": pl.Float64}
    opened = {
        "dataset": ds.dataset,
        "avro": str,
        "standard input": lambda path: CsvStream(open(path, "rb"), dtypes),
    }[kind]
    run(opened(small))
    gc.collect()
    open("/proc/self/clear_refs", "w").write("5")
    before = kilobytes("VmRSS")
    assert run(opened(large)).height == 100
    print(kilobytes("VmHWM") - before)
"""
ROWS = 200_000


def frame(seed: int) -> pl.DataFrame:
    generator = np.random.default_rng(seed)
    return pl.DataFrame({"k": generator.integers(0, 100, ROWS), "x": generator.random(ROWS)})


def write(kind: str, path: Path, parts: int) -> None:
    """Write files of the same rows again and again, in parts of 3 MB."""
    if kind == "dataset":
        table = frame(1).to_arrow()
        with pq.ParquetWriter(path, table.schema, compression="none", use_dictionary=False) as writer:
            for _ in range(parts):
                writer.write_table(table)
    elif kind == "avro":
        frame(1).write_avro(path)
        content = path.read_bytes()
        sync = content[-16:]
        end = content.index(sync) + 16
        with path.open("ab") as file:
            for _ in range(parts - 1):
                file.write(content[end:])
    else:
        text = frame(1).write_csv(include_header=False)
        with path.open("w") as file:
            file.write("k,x\n")
            for _ in range(parts):
                file.write(text)


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="the peak is read from /proc")
@pytest.mark.parametrize("kind", ["dataset", "avro", "standard input"])
def test_the_peak_does_not_grow_with_the_rows(tmp_path, kind):
    suffix = "parquet" if kind == "dataset" else kind.split()[0]
    small, large = tmp_path / f"small.{suffix}", tmp_path / f"large.{suffix}"
    write(kind, small, 1)
    write(kind, large, 320)
    assert large.stat().st_size > 7 * 10**8
    command = [sys.executable, "-c", textwrap.dedent(RUN), kind, str(small), str(large)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert 1024 * int(done.stdout) < 450 * 10**6
