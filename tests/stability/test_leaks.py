"""A block tells of its own rows alone, and after the charge no error quotes a row."""

from __future__ import annotations

import datetime
import decimal
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.errors import ColumnError
from dpfast.stability.instability import count_labels
from dpfast.stability.processes import prepare_calls
from dpfast.stability.rows import read_rows

from . import functions

SECRET = "a secret that is long enough for memory of its own"
TEXTS = [f"a row that is long enough for memory of its own {row}" for row in range(30)] + [SECRET] * 30
OWN = np.arange(0, 30, 3)


class Bad:
    def __reduce__(self):
        message = "SECRET 42"
        raise ValueError(message)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("bad", [Bad(), lambda: 1], ids=["error", "lambda"])
def test_blocks_that_cannot_be_sent_are_values(workers, bad):
    """Rule 12: no error depends on rows after the charge; a row that cannot be pickled spoils its block alone."""
    ledger = dpf.Ledger(epsilon=9, delta=1e-3)
    given = {"workers": workers, "ledger": ledger}
    for rows in ([1] * 20 + [bad], pd.Series([1] * 20 + [bad], dtype=object), np.array([1, 2, bad], dtype=object)):
        answer = dpf.subsample_and_aggregate(rows, len, blocks=4, bounds=(0, 20), epsilon=1.0, **given)
        assert 0 <= answer.value <= 20
    assert dpf.release_if_stable([1, bad], len, len, epsilon=1.0, delta=1e-6, **given).value is None
    dpf.propose_test_release([1, bad], len, len, epsilon=1.0, delta=1e-6, bound=1, **given)
    dpf.release_if_subsamples_agree([1, bad], len, blocks=4, epsilon=1.0, delta=1e-6, **given)
    calls = prepare_calls(len, timeout=3600.0, workers=workers, progress=None)
    assert [bool(one) for one in calls.run(lambda place: (([bad], [1])[place],), 2)] == [False, True]


def test_labels_never_fail():
    """Rule 12: a value that is no label is left out, and changes no other; nothing is quoted."""

    class Quoting:
        def __getattr__(self, name):
            raise ValueError(SECRET)

    deep: list = []
    for _ in range(10**5):
        deep = [deep]
    assert count_labels([1, 10**5000, Quoting(), deep, decimal.Decimal("sNaN")]) == {"1": 1}
    assert count_labels(pd.Series([True, True, 1], dtype=object)) == {"True": 2, "1": 1}
    far = pl.Series([0, 10**8], dtype=pl.Int32).cast(pl.Date)
    assert count_labels(far) == count_labels(far.to_arrow()) == {"'1970-01-01'": 1}


def test_modes_of_decimals():
    """Every type has labels, or is refused before the charge: a mode that is always None would be paid for."""
    prices = pl.Series([decimal.Decimal("4.50")] * 90 + [decimal.Decimal(3)] * 9)
    for data in (prices, prices.to_arrow(), prices.to_list()):
        assert dpf.release_if_stable(data, "mode", epsilon=1.0, delta=1e-6).value == 4.5
    for values in ([datetime.time(1)], [b"a"], [[1]], [datetime.datetime(2020, 1, 1)], ["a"]):
        for data in (pl.Series(values * 99), pl.Series(values * 99).to_arrow(), pd.Series(values * 99)):
            assert dpf.release_if_stable(data, "mode", epsilon=1.0, delta=1e-6).value is not None
    ledger = dpf.Ledger(epsilon=1, delta=1e-3)
    spans = pl.Series([datetime.timedelta(1)] * 99)
    structs = pl.Series([{"a": 1}] * 99)
    refused = [spans, spans.to_arrow(), spans.to_pandas(), spans.to_numpy(), structs, structs.to_arrow()]
    refused += [pl.Series([[datetime.timedelta(1)]] * 99), np.ones(99, complex), pd.Series(pd.interval_range(0, 99))]
    for data in [*refused, pl.Series([object()], dtype=pl.Object)]:
        with pytest.raises(ColumnError, match="cast"):
            dpf.release_if_stable(data, "mode", epsilon=1.0, delta=1e-6, ledger=ledger)
    assert ledger.history().is_empty()


def arrow(kind, wrap=lambda text: text):
    return pa.array([wrap(text) for text in TEXTS], kind)


POLARS = {
    "strings": pl.Series("s", TEXTS),
    "bytes": pl.Series("s", [one.encode() for one in TEXTS]),
    "lists": pl.Series("s", [[one] for one in TEXTS]),
    "structs": pl.Series("s", [{"a": one, "b": [one]} for one in TEXTS]),
    "arrays": pl.Series("s", [[one, one] for one in TEXTS], dtype=pl.Array(pl.String, 2)),
    "categories": pl.Series("s", TEXTS, dtype=pl.Categorical),
    "chunks": pl.concat([pl.Series("s", TEXTS[:2]), pl.Series("s", TEXTS[2:])], rechunk=False),
}
TEXT, LISTS = pa.string(), [pa.list_, pa.large_list]
ARROW = {
    "strings": arrow(TEXT),
    "views": arrow(pa.string_view()),
    "bytes": arrow(pa.binary_view(), str.encode),
    "dictionary": arrow(TEXT).dictionary_encode(),
    "structs": arrow(pa.struct([pa.field("a", pa.string_view(), metadata={"m": SECRET})]), lambda text: {"a": text}),
    "maps": arrow(pa.map_(TEXT, pa.string_view()), lambda text: [(text, text)]),
    **{f"lists {place}": arrow(kind(pa.string_view()), lambda text: [text]) for place, kind in enumerate(LISTS)},
}
PANDAS = {
    "str": pd.Series(TEXTS),
    "objects": pd.Series(TEXTS, dtype=object),
    "categories": pd.Series(TEXTS, dtype="category"),
    "Arrow": pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([ARROW["dictionary"]]))),
}
COLUMNS = {
    **{f"Polars {name}": column for name, column in POLARS.items()},
    **{f"Polars frame of {name}": column.to_frame() for name, column in POLARS.items()},
    **{f"Polars lazy frame of {name}": column.to_frame().lazy() for name, column in POLARS.items()},
    **{f"Arrow {name}": column for name, column in ARROW.items()},
    **{f"Arrow chunks of {name}": pa.chunked_array([column[:2], column[2:]]) for name, column in ARROW.items()},
    **{f"Arrow table of {name}": pa.table({"s": column}) for name, column in ARROW.items()},
    **{f"Arrow batch of {name}": pa.record_batch({"s": column}) for name, column in ARROW.items()},
    **{f"pandas {name}": column for name, column in PANDAS.items()},
    **{f"pandas frame of {name}": column.to_frame("s") for name, column in PANDAS.items()},
    "NumPy": np.array(TEXTS),
    "NumPy bytes": np.array(TEXTS, dtype="S"),
    "NumPy objects": np.array(TEXTS, dtype=object),
    "NumPy strings": np.array(TEXTS, dtype="T"),
}


def memory(block):
    """Return all that a block keeps in memory, and its pickle."""
    seen = pickle.dumps(block, protocol=5)
    columns = block.get_columns() if isinstance(block, pl.DataFrame) else [block]
    columns = list(block.columns) if isinstance(block, (pa.Table, pa.RecordBatch)) else columns
    for column in columns:
        own = column.to_arrow(compat_level=pl.CompatLevel.newest()) if isinstance(column, pl.Series) else column
        for chunk in own.chunks if isinstance(own, pa.ChunkedArray) else [own] if isinstance(own, pa.Array) else []:
            assert chunk.offset == 0
            seen += b"".join(one.to_pybytes() for one in chunk.buffers() if one is not None)
        if isinstance(column, pl.Series):
            assert column.n_chunks() == 1
        if isinstance(column, pa.ChunkedArray):
            assert column.num_chunks <= 1
    return seen


@pytest.mark.parametrize("name", COLUMNS)
def test_no_memory_of_other_rows(name):
    """Rule 20: no bytes of other rows in a block's buffers or its pickle, in this process or another."""
    data = COLUMNS[name]
    block = read_rows(data).load().take(OWN)
    assert len(block) == 10
    assert SECRET.encode() not in memory(block)
    received = pickle.loads(pickle.dumps(block, protocol=5))
    assert b"secret" not in memory(received).replace(b"\0", b"")
    seen = []
    unit = "s" if hasattr(data, "columns") and name.endswith(("of strings", "of str")) else None

    def look(rows):
        seen.append((SECRET.encode() in memory(rows), SECRET in str(rows), len(rows)))
        return 1.0

    given = {"blocks": 4, "bounds": (0, 1), "epsilon": 1, "workers": 0, "unit": unit}
    dpf.subsample_and_aggregate(data, look, **given)
    assert sum(count for *_, count in seen) == 60
    short = data[:30] if not isinstance(data, (pl.DataFrame, pl.LazyFrame, pa.Table)) else data.slice(0, 30)
    same = read_rows(short).load().take(OWN)
    assert pickle.dumps(same) == pickle.dumps(block) or type(same).__module__.startswith(("pandas", "polars"))


def told(rows):
    """Return what a block tells besides its values."""
    schema = getattr(rows, "schema", None)
    if isinstance(rows, np.ndarray):
        base = rows.base
        return rows.dtype.str, base is None or base.nbytes == rows.nbytes
    if isinstance(schema, pa.Schema):
        return schema.metadata is None and all(one.metadata is None for one in schema)
    return rows.attrs == {} and (rows.index.start, rows.index.stop) == (0, len(rows)) and rows.index.name is None


@pytest.mark.parametrize("unit", [None, "who"])
def test_no_metadata(unit):
    """Soundness of blocks: the number of all rows stands in the metadata of Arrow and in the index of pandas."""
    frame = pd.DataFrame({"who": [f"{row}" for row in range(20)], "n": range(20)}, index=pd.RangeIndex(5, 25, name="n"))
    frame.attrs = {"rows": 20}
    table = pa.Table.from_pandas(frame)
    assert table.schema.metadata
    marked = pa.table([table["who"]], pa.schema([pa.field("who", table["who"].type, metadata={"rows": "20"})]))
    for data in (frame, table, table.to_batches()[0], marked):
        for workers in (0, 1):
            given = {"blocks": 4, "workers": workers, "unit": unit, "candidates": [True, False], "epsilon": 10**4}
            assert dpf.subsample_and_aggregate(data, told, aggregator="mode", **given).value is True


@pytest.mark.parametrize("kind", ["S", "U", "f8"])
def test_arrays_are_as_wide_as_their_rows(kind):
    """Soundness of blocks: the width of text is that of its own rows, and no array is a view of the column."""
    data = np.array(["1", "22", "3" * 50], dtype=kind if kind != "f8" else "U").astype(kind)
    block = read_rows(data).load().take(np.array([0, 1]))
    assert block.tolist() == data[:2].tolist()
    assert told(block) == ({"S": "|S2", "U": "<U2", "f8": "<f8"}[kind], True)
    assert read_rows(data).load().take(np.empty(0, np.int64)).size == 0
    with pytest.raises(ColumnError, match="fixed width"):
        read_rows(np.zeros(3, dtype=[("a", "i4"), ("b", [("c", "S5", 2)])]))


def test_types_without_blocks_are_refused_before_the_charge():
    """Rule 12: only schemas are free, so that what no block can hold is found by its schema."""
    ledger = dpf.Ledger(epsilon=1)
    ends = pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"])
    views = pa.array([[1]], pa.list_view(pa.int64()))
    kinds = [pl.Series([object()], dtype=pl.Object), pl.DataFrame({"a": [object()]}), ends, pa.table({"a": ends})]
    for data in (*kinds, views, pa.table({"a": views}), pd.Series(pd.arrays.ArrowExtensionArray(views))):
        with pytest.raises(ColumnError, match="cast"):
            dpf.subsample_and_aggregate(data, functions.mean, blocks=2, bounds=(0, 1), epsilon=1, ledger=ledger)
    assert ledger.history().is_empty()
