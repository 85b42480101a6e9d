"""The compiled plugin against the mechanisms, byte for byte, under one key: soundness rules 1, 2 and 5."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from dpfast.columns import BLOCK_ROWS, borrow
from dpfast.integrations.plugin import refining
from dpfast.integrations.plugin.calls import pack_scale
from dpfast.integrations.plugin.fallback import draw
from dpfast.kernels.plugin import layout
from dpfast.kernels.plugin.bodies import BLOCK_ROWS as BODY_ROWS
from dpfast.mechanisms.noise.gaussian import gaussian_noise
from dpfast.mechanisms.noise.laplace import laplace_noise

from .plugin_calls import FixedKey, under_key

pytestmark = pytest.mark.usefixtures("plugin")

KEY = bytes(range(32))
NOISE = {"laplace": laplace_noise, "gaussian": gaussian_noise}
TYPES = ["int64", "int32", "uint32", "float64", "float32"]


def values_of(dtype, rows, seed=1):
    """Values over the whole type, ends among them."""
    generator = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        sizes = np.exp(generator.uniform(-30, 30, rows))
        values = (generator.choice([-1, 1], rows) * sizes).astype(dtype)
        values[: rows // 10] = np.round(values[: rows // 10])
        return values
    ends = np.iinfo(dtype)
    values = generator.integers(-1000, 1000, rows) if ends.min < 0 else generator.integers(0, 1000, rows)
    values = values.astype(dtype)
    values[::7] = generator.integers(ends.min, ends.max, values[::7].size, dtype)
    return values


def expected(operation, values, scale):
    column = borrow(values)
    noisy = NOISE[operation](column, scale, FixedKey(KEY), 1)
    return column.rebuild(noisy)


def same(array, right):
    """The same type, the same nulls, and the same bytes, zeros under nulls among them."""
    assert array.type == right.type
    assert array.is_null().equals(right.is_null())
    rows, width = len(right), right.type.bit_width // 8
    ours, theirs = (bytes(each.buffers()[1] or b"")[each.offset * width :][: rows * width] for each in (array, right))
    assert ours == theirs
    assert array.null_count == right.null_count


def test_chunks_of_words_are_as_long_as_the_mechanisms():
    assert BODY_ROWS == BLOCK_ROWS


SCALES = [0.01, 1.0, 2.0, 117.3, 128.0, 256.0, 257.0, 1e5, 2.0**25, 1e10, 2.0**60]


@pytest.mark.parametrize("operation", NOISE)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("scale", SCALES)
def test_one_scale(operation, dtype, scale):
    for rows in (1, 2, 7, 4096, 4097):
        values = pa.array(values_of(dtype, rows))
        array, status = under_key(operation, [values], pack_scale(scale), KEY)
        assert status == 0
        same(array, expected(operation, values, scale))


@pytest.mark.parametrize("operation", NOISE)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("largest", [0.3, 100.0, 200.0, 1000.0, 1e9])
def test_a_scale_for_each_row(operation, dtype, largest):
    generator = np.random.default_rng(3)
    for rows in (1, 2, 9, 5000):
        scales = np.exp(generator.uniform(-5, np.log(largest), rows))
        values = pa.array(values_of(dtype, rows))
        array, status = under_key(operation, [values, pa.array(scales)], b"", KEY)
        assert status == 0
        same(array, expected(operation, values, scales))


@pytest.mark.parametrize("operation", NOISE)
@pytest.mark.parametrize("dtype", ["int64", "float32", "uint32"])
def test_several_chunks_of_words_nulls_slices_and_pieces(operation, dtype):
    rows = 2 * BLOCK_ROWS + 4321
    mask = np.random.default_rng(5).random(rows) < 0.2
    whole = pa.array(values_of(dtype, rows), mask=mask)
    for values in (
        whole,
        whole.slice(3),
        whole.slice(8, BLOCK_ROWS + 1),
        pa.chunked_array([whole.slice(0, 5), whole.slice(5, 0), whole.slice(5, BLOCK_ROWS), whole.slice(BLOCK_ROWS)]),
        pa.chunked_array([whole.slice(13, 100).drop_null(), whole.slice(11, 50)]),
    ):
        array, status = under_key(operation, [values], pack_scale(2.5), KEY)
        assert status == 0
        right = expected(operation, values, 2.5)
        same(array, right.combine_chunks() if isinstance(right, pa.ChunkedArray) else right)


@pytest.mark.parametrize("operation", NOISE)
@pytest.mark.parametrize("dtype", TYPES)
def test_empty_and_all_null(operation, dtype):
    for values in (pa.array([], dtype), pa.array([None] * 9, dtype), pa.chunked_array([], dtype)):
        array, status = under_key(operation, [values], pack_scale(2.0), KEY)
        assert status == 0
        assert array.null_count == len(array) == len(values)


@pytest.mark.parametrize("operation", NOISE)
def test_one_value_or_one_scale_for_many(operation):
    scales = pa.array([1.0, 2.0, 300.0])
    array, _ = under_key(operation, [pa.array([5]), scales], b"", KEY)
    same(array, expected(operation, pa.array([5, 5, 5]), scales.to_numpy()))
    array, _ = under_key(operation, [pa.array([None], "int64"), scales], b"", KEY)
    assert array.null_count == 3
    array, _ = under_key(operation, [pa.array([5, 6, 7]), pa.array([2.0])], b"", KEY)
    same(array, expected(operation, pa.array([5, 6, 7]), 2.0))
    for columns in ([pa.array([], "int64"), pa.array([2.0])], [pa.array([5]), pa.array([], "float64")]):
        array, status = under_key(operation, columns, b"", KEY)
        assert (status, len(array)) == (0, 0)


@pytest.mark.parametrize("given", [pa.array([1, 2, 3]), pa.array([1, 2, 3], "int32"), pa.array([1, 2, 3], "uint32")])
def test_scales_of_whole_numbers(given):
    array, _ = under_key("laplace", [pa.array([5, 6, 7]), given], b"", KEY)
    same(array, expected("laplace", pa.array([5, 6, 7]), np.array([1.0, 2.0, 3.0])))


@pytest.fixture
def finished(monkeypatch):
    """The number of rows that Python finished for the plugin."""
    counts = []
    own = refining._draw

    def count(job):
        counts.append(job[layout.JOB_COUNT])
        own(job)

    monkeypatch.setattr(refining, "_draw", count)
    return counts


@pytest.mark.parametrize("operation", NOISE)
@pytest.mark.parametrize("scale", [2.0**24.9, 2.0**30.9])
@pytest.mark.parametrize("per_row", [False, True])
def test_rows_that_python_finishes(operation, scale, per_row, finished):
    """Under this key some of two million rows are undecided, in chunks beyond the first too."""
    rows = 2_000_000
    values = pa.array(np.arange(rows), mask=np.arange(rows) % 3 == 0)
    scales = np.full(rows, scale)
    columns, parameters = ([values, pa.array(scales)], b"") if per_row else ([values], pack_scale(scale))
    array, status = under_key(operation, columns, parameters, KEY)
    assert status == 0
    assert sum(finished) >= 2
    same(array, expected(operation, values, scales if per_row else scale))


@pytest.mark.parametrize("operation", NOISE)
@pytest.mark.parametrize("dtype", TYPES)
def test_python_gives_the_same_where_there_is_no_library(operation, dtype):
    values = pl.Series("n", pa.array(values_of(dtype, 3000), mask=np.arange(3000) % 5 == 0))
    scales = pl.Series(np.exp(np.linspace(-3, 12, 3000)))
    for columns, parameters in (([values], pack_scale(3.3)), ([values, scales], b""), ([values[:1], scales], b"")):
        array, _ = under_key(operation, [column.to_arrow() for column in columns], parameters, KEY)
        drawn = draw(operation, columns, parameters=parameters, source=FixedKey(KEY))
        assert drawn.name == "n"
        same(array, drawn.to_arrow())


WRONG = [
    ([pa.array(["a"])], pack_scale(1.0), layout.VALUES_TYPE),
    ([pa.array([True])], pack_scale(1.0), layout.VALUES_TYPE),
    ([pa.array([1], "uint64")], pack_scale(1.0), layout.VALUES_TYPE),
    ([pa.array([1], "date32")], pack_scale(1.0), layout.VALUES_TYPE),
    ([pa.array(["a"]).dictionary_encode()], pack_scale(1.0), layout.VALUES_TYPE),
    ([pa.array([[1]])], pack_scale(1.0), layout.VALUES_TYPE),
    ([pa.nulls(3)], pack_scale(1.0), layout.VALUES_TYPE),
    ([pa.array([1]), pa.array(["a"])], b"", layout.SCALE_TYPE),
    ([pa.array([1, 2]), pa.array([1.0, 2.0, 3.0])], b"", layout.LENGTHS),
    ([pa.array([1, 2]), pa.array([1.0, None])], b"", layout.SCALE_NULL),
    ([pa.array([1, 2]), pa.array([1.0, 0.0])], b"", layout.SCALE_RANGE),
    ([pa.array([1, 2]), pa.array([1.0, -1.0])], b"", layout.SCALE_RANGE),
    ([pa.array([1, 2]), pa.array([1.0, np.nan], from_pandas=False)], b"", layout.SCALE_RANGE),
    ([pa.array([1, 2]), pa.array([1.0, np.inf])], b"", layout.SCALE_RANGE),
    ([pa.array([1, 2]), pa.array([np.nan], from_pandas=False)], b"", layout.SCALE_RANGE),
    ([pa.array([1, 2]), pa.array([1.0, 2.0**61])], b"", layout.SCALE_LARGE),
    ([pa.array([1, 2])], pack_scale(2.0**61), layout.SCALE_LARGE),
    ([pa.array([1, 2]), pa.array([1, 2**53 + 1])], b"", layout.SCALE_INEXACT),
    ([pa.array([1.0, np.nan], from_pandas=False)], pack_scale(1.0), layout.NOT_FINITE),
    ([pa.array([1.0, np.inf], "float32")], pack_scale(1.0), layout.NOT_FINITE),
    ([pa.array([1])], b"", layout.PROTOCOL),
]


@pytest.mark.parametrize(("columns", "parameters", "number"), WRONG)
def test_what_is_wrong_is_an_error_in_both(columns, parameters, number):
    """Everything that was handed over is given back; Python says the same."""
    for operation in NOISE:
        array, status = under_key(operation, columns, parameters, KEY)
        assert array is None
        assert status == number
    if number == layout.PROTOCOL:
        return
    with pytest.raises(pl.exceptions.ComputeError) as raised:
        draw("laplace", [pl.Series(column) for column in columns], parameters=parameters, source=FixedKey(KEY))
    assert layout.ERRORS[number] in str(raised.value)


def test_nan_under_a_null_is_no_value():
    values = pa.Array.from_buffers(pa.float64(), 2, [pa.py_buffer(b"\1"), pa.py_buffer(np.array([1.0, np.nan]))])
    array, status = under_key("laplace", [values], pack_scale(1.0), KEY)
    assert status == 0
    assert bytes(array.buffers()[1])[8:16] == bytes(8)
    assert bytes(array.buffers()[0])[:1] == b"\1"
