"""Blocks: a row more or fewer changes one of them, whatever the number of rows is; and what a block shows of others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpfast.errors import ColumnError, DpfastError, ParameterError
from dpfast.stability.blocks import assign_blocks
from dpfast.stability.rows import Loaded, read_rows
from dpfast.testing import SeededRandom

from . import functions


def assigned(count, blocks, seed, *, equal=False, units=None):
    return assign_blocks(Loaded(count, lambda rows: rows, units), blocks, SeededRandom(seed), equal=equal)


@pytest.mark.parametrize("blocks", [1, 2, 7, 300])
@pytest.mark.parametrize("equal", [False, True])
def test_every_row_is_in_one_block(blocks, equal):
    """Row 7-1."""
    for count in (0, 1, 2, 100):
        made = assigned(count, blocks, 1, equal=equal)
        rows = np.concatenate([made.rows(block) for block in range(blocks)])
        assert sorted(rows.tolist()) == list(range(count))
        if equal:
            sizes = [made.rows(block).size for block in range(blocks)]
            assert max(sizes) - min(sizes) <= 1


def test_a_row_more_changes_one_block():
    """Row 7-1: by the same random words; equal pieces of a shuffled list would move many rows."""
    few, more = assigned(1000, 20, 5), assigned(1001, 20, 5)
    changed = [block for block in range(20) if few.rows(block).tolist() != more.rows(block).tolist()]
    assert len(changed) == 1
    shuffled = [assigned(count, 20, 5, equal=True) for count in (1000, 1001)]
    moved = sum(shuffled[0].rows(block).tolist() != shuffled[1].rows(block).tolist() for block in range(20))
    assert moved > 2


def test_all_rows_of_a_unit_are_in_one_block():
    """Row 7-1, with units; rows without one are left out."""
    units = np.array([0, 1, -1, 0, 2, 1, 0, -1] * 10)
    made = assigned(80, 5, 3, units=units)
    rows = [set(units[made.rows(block)]) for block in range(5)]
    assert sum(map(len, rows)) == 3
    assert not any(-1 in one for one in rows)


@pytest.mark.statistical
def test_blocks_are_drawn_evenly(seed):
    """Each of 50 sizes within 7 standard deviations of 2,000: by the binomial tails all but 1.1e-10 of runs pass."""
    made = assigned(100_000, 50, seed)
    assert all(abs(made.rows(block).size - 2000) < 7 * 45 for block in range(50))


ROWS = ["yes", "no"] * 5 + ["secret"]
KINDS = {
    "Polars frame": pl.DataFrame({"a": ROWS}, schema={"a": pl.Categorical}),
    "Polars frame of lists": pl.DataFrame({"a": [[one] for one in ROWS]}, schema={"a": pl.List(pl.Categorical)}),
    "Polars lazy frame": pl.LazyFrame({"a": ROWS}, schema={"a": pl.Categorical}),
    "Polars series": pl.Series("a", ROWS, dtype=pl.Categorical),
    "Arrow table": pa.table({"a": pa.array(ROWS).dictionary_encode()}),
    "Arrow batch": pa.record_batch({"a": pa.array(ROWS).dictionary_encode()}),
    "Arrow array": pa.array(ROWS).dictionary_encode(),
    "Arrow chunks": pa.chunked_array([pa.array(ROWS).dictionary_encode()]),
    "pandas frame": pd.DataFrame({"a": pd.Series(ROWS).astype("category")}, index=range(5, 16)),
    "pandas series": pd.Series(ROWS, index=range(5, 16)).astype("category"),
    "NumPy": np.array(ROWS),
    "NumPy in two dimensions": np.array([[one, one] for one in ROWS]),
    "list": ROWS,
    "tuple": tuple(ROWS),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_block_shows_its_own_rows_alone(name):
    loaded = read_rows(KINDS[name]).load()
    assert loaded.count == 11
    block = loaded.take(np.array([1, 2, 4]))
    assert "secret" not in functions.told_by_categories(block)
    assert len(block) == 3
    if hasattr(block, "index") and hasattr(block, "iloc"):
        assert list(block.index) == [0, 1, 2]
    kind = type(KINDS[name])
    assert isinstance(block, {pl.LazyFrame: pl.DataFrame, tuple: list, pa.DictionaryArray: pa.Array}.get(kind, kind))
    assert len(loaded.take(np.empty(0, np.int64))) == 0


@pytest.mark.parametrize("kind", ["polars", "lazy", "arrow", "pandas"])
def test_units_of_frames(kind):
    frame = pl.DataFrame({"who": ["b", "a", None, "b", "c"], "n": [1, 1, 2, None, 3], "x": [0.5] * 5})
    data = {"polars": frame, "lazy": frame.lazy(), "arrow": frame.to_arrow(), "pandas": frame.to_pandas()}[kind]
    units = read_rows(data, "who").load().units
    assert units[2] == -1
    assert units[0] == units[3]
    assert len(set(units.tolist())) == 4
    with pytest.raises(ColumnError, match="unit must name a column"):
        read_rows(data, "nobody")
    with pytest.raises(ColumnError, match="unit must name a column of strings"):
        read_rows(data, "x")


def test_units_of_other_types():
    for values in ([True, False, None], [3, 4, None], pl.Series(["a", "b", None], dtype=pl.Enum(["a", "b"]))):
        units = read_rows(pl.DataFrame({"who": values}), "who").load().units
        assert units[2] == -1
        assert len({*units.tolist()}) == 3
    mixed = pd.DataFrame({"who": [1, 1.0, "x", None, [1], object()]})
    units = read_rows(mixed, "who").load().units
    assert units[0] == units[1]
    assert units[3] == units[5] == -1


def test_what_is_no_data():
    for wrong in (5, "text", {"a": [1]}, np.array(5.0), None, iter([1])):
        with pytest.raises(ParameterError, match="data must be a column or a frame"):
            read_rows(wrong)
    with pytest.raises(ParameterError, match="unit must be left out"):
        read_rows([1, 2], "a")
    with pytest.raises(ColumnError, match="dictionaries"):
        read_rows(pa.array([[1]], pa.list_(pa.dictionary(pa.int32(), pa.int64()))))


def test_data_that_cannot_be_read_say_nothing():
    frame = pl.LazyFrame({"a": ["12", "secret"]}).select(pl.col("a").str.to_integer())
    with pytest.raises(DpfastError) as raised:
        read_rows(frame).load()
    assert "secret" not in str(raised.value)
    assert raised.value.__context__ is None
