"""Counts of many marginals in one pass, against Polars and against the whole histogram."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.domain import marginal_counting
from dpfast.domain.joint_tables import RECORDS
from dpfast.kernels.grouping.marginal_counting import _is_crowded

SETS = [(0,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
EDGES = [0, 10, 20, 60]


def some_rows(rows):
    generator = np.random.default_rng(rows)
    frame = pl.DataFrame(
        {
            "a": generator.integers(-1, 6, rows),
            "b": pl.Series(generator.choice(["x", "y", "z", "?"], rows), dtype=pl.String),
            "c": generator.uniform(-5, 70, rows),
        }
    )
    return frame.with_columns(pl.when(pl.int_range(pl.len()) % 7 != 3).then(pl.all()))


def domain(outside):
    return dpf.Domain({"a": 5, "b": ["x", "y", "z"], "c": dpf.bins("c", EDGES)}, outside)


@pytest.mark.parametrize("rows", [0, 1, 1000, 200_000])
@pytest.mark.parametrize("outside", ["drop", "null", "clamp"])
@pytest.mark.parametrize("route", ["frame", "lazy", "files"])
def test_marginals_are_sums_of_the_histogram(rows, outside, route, tmp_path):
    own, data = domain(outside), some_rows(rows)
    if route == "files":
        for part in range(2):
            data[part * rows // 2 : (part + 1) * rows // 2].write_parquet(tmp_path / f"{part}.parquet")
        given = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    else:
        given = data.lazy() if route == "lazy" else data
    table = own.count(data)
    for held, counts in zip(SETS, own.open(given).count_marginals(SETS), strict=True):
        summed = table.sum(axis=tuple(axis for axis in range(3) if axis not in held))
        assert (counts.reshape(summed.shape) == summed).all()


@pytest.mark.parametrize("outside", ["drop", "null", "clamp"])
@pytest.mark.parametrize("form", ["one piece", "pieces", "slice", "with nulls"])
def test_columns_of_bytes_are_counted_as_wide_ones(form, outside):
    """They are read where they stand, unless a block lies in several pieces."""
    generator = np.random.default_rng(len(form))
    rows = 150_000
    data = pl.DataFrame({name: generator.integers(0, 8, rows).astype(np.uint8) for name in "abc"})
    if form == "pieces":
        data = pl.concat([data[:70_001], data[70_001:70_002], data[70_002:]], rechunk=False)
    elif form == "slice":
        data = data[3:-5]
    elif form == "with nulls":
        data = data.with_columns(pl.when(pl.int_range(pl.len()) % 5 != 2).then("b").alias("b"))
    own = dpf.Domain({"a": 7, "b": 5, "c": 256}, outside)
    sets = [(0,), (0, 1), (1, 2)]
    wide = own.open(data.with_columns(pl.all().cast(pl.Int32))).count_marginals(sets)
    for narrow, counts in zip(own.open(data).count_marginals(sets), wide, strict=True):
        np.testing.assert_array_equal(narrow, counts)
    assert wide[0].sum() > 10_000


@pytest.mark.parametrize("dtype", [pl.UInt8, pl.Int32])
@pytest.mark.parametrize("most", [17, 300, 70_000])
def test_columns_of_codes_of_every_width(dtype, most):
    """Codes of 8, 16 and 32 bits, and a column that several attributes share, from bytes and from wider numbers."""
    generator = np.random.default_rng(most)
    sizes, rows = (most, 7, 2, 9, 256), 70_003
    codes = [generator.integers(0, min(size + 1, 256), rows) for size in sizes]
    data = pl.DataFrame({f"x{place}": code for place, code in enumerate(codes)}).with_columns(pl.all().cast(dtype))
    known = np.all([code < size for code, size in zip(codes, sizes, strict=True)], axis=0)
    sets = [*itertools.combinations(range(5), 2), (1,), (1, 2, 3)]
    own = dpf.Domain(dict(zip(data.columns, sizes, strict=True)))
    for held, counts in zip(sets, own.open(data).count_marginals(sets), strict=True):
        cells = np.zeros(int(known.sum()), np.int64)
        for place in held:
            cells = cells * sizes[place] + codes[place][known]
        np.testing.assert_array_equal(counts, np.bincount(cells, minlength=math.prod(sizes[a] for a in held)))
    assert 1_000 < known.sum() < rows


@pytest.mark.parametrize("share", [0.0, 0.3, 0.95, 1.0])
def test_records_that_have_one_cell_in_turn(share):
    """Tables where so many do are counted by way of a second one; some blocks here are, of others a part."""
    generator = np.random.default_rng(int(100 * share))
    sizes, rows = (90, 100, 64), 2 * RECORDS + 4_099
    codes = [np.where(generator.random(rows) < share, 3, generator.integers(0, size, rows)) for size in sizes]
    codes[0][: rows // 2], codes[1][: rows // 3] = 5, 7
    own = dpf.Domain({f"x{place}": size for place, size in enumerate(sizes)})
    data = pl.DataFrame({f"x{place}": code.astype(np.uint8) for place, code in enumerate(codes)})
    sets = [(0, 1), (0, 2), (1, 2)]
    for (a, b), counts in zip(sets, own.open(data).count_marginals(sets, threads=1), strict=True):
        cells = codes[a] * sizes[b] + codes[b]
        np.testing.assert_array_equal(counts, np.bincount(cells, minlength=sizes[a] * sizes[b]))


def test_which_tables_are_crowded():
    """More than one record in eight has the cell of the one before."""
    cells = np.arange(801, dtype=np.uint16)
    assert not _is_crowded(cells)
    cells[1:101] = 0
    assert not _is_crowded(cells)
    cells[101] = 0
    assert _is_crowded(cells)
    assert _is_crowded(np.zeros(2, np.uint16))
    assert not _is_crowded(np.zeros(1, np.uint16))
    assert not _is_crowded(np.zeros(0, np.uint16))


@pytest.mark.parametrize("threads", [1, 2, None])
def test_batches_of_a_file_are_counted_at_once(threads, tmp_path):
    data = some_rows(600_000).with_columns(pl.col("a").clip(0, 4).cast(pl.UInt8))
    data.write_parquet(tmp_path / "a.parquet", row_group_size=50_000)
    own = domain("drop")
    found = own.open(tmp_path / "a.parquet").count_marginals(SETS, threads=threads)
    for one, other in zip(found, own.open(data).count_marginals(SETS, threads=1), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_fails_in_another_thread_is_told_in_fixed_words(threads, tmp_path, monkeypatch):
    """The fourth batch fails with a number in its message, which is not shown."""
    some_rows(600_000).write_parquet(tmp_path / "a.parquet", row_group_size=50_000)
    counted = []

    def count(*given: object) -> None:
        counted.append(len(given))
        if len(counted) > 3:
            raise MemoryError("4711 rows")

    monkeypatch.setattr(marginal_counting, "count_tables", count)
    with pytest.raises(MemoryError, match=r"^not enough memory to aggregate the data$") as caught:
        domain("drop").open(tmp_path / "a.parquet").count_marginals(SETS, threads=threads)
    assert caught.value.__context__ is None


def test_a_domain_may_have_more_cells_than_can_be_numbered():
    rows = pl.DataFrame({f"x{i}": np.arange(1000) % (i + 2) for i in range(50)})
    own = dpf.Domain(dict.fromkeys(rows.columns, 60))
    assert own.cells == 60**50
    sets = list(itertools.combinations(range(50), 2))[::97]
    for (one, other), counts in zip(sets, own.open(rows).count_marginals(sets), strict=True):
        expected = np.bincount(rows[f"x{one}"].to_numpy() * 60 + rows[f"x{other}"].to_numpy(), minlength=3600)
        assert (counts == expected).all()


@pytest.mark.parametrize("call", [lambda own, rows: own.count(rows), lambda own, rows: own.frame()])
def test_what_needs_all_cells_says_how_many_there_are(call):
    rows = pl.DataFrame({"x": [1], "y": [2]})
    own = dpf.Domain({"x": 2**20, "y": 2**20})
    with pytest.raises(dpf.errors.ParameterError, match=f"{2**40:,} cells"):
        call(own, rows)


def test_threads_count_the_same():
    own, data = domain("drop"), some_rows(600_000)
    first, second = (own.open(data).count_marginals(SETS, threads=threads) for threads in (1, 2))
    assert all((one == other).all() for one, other in zip(first, second, strict=True))
    assert math.prod(own.shape) == 45
