"""Bad parameters and bad data: one clear line that names the argument and shows no value of the data."""

from __future__ import annotations

import math
import threading

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.columns import BLOCK_ROWS
from dpfast.errors import DataError, DpfastError, ParameterError
from dpfast.testing import SeededRandom


def without_address(value: object) -> str:
    """Name a case alike in every process, so that several may share the tests."""
    return repr(value).split(" at 0x")[0][:80]


MECHANISMS = [dpf.laplace, dpf.gaussian]
both = pytest.mark.parametrize("mechanism", MECHANISMS)


def one_line(error) -> str:
    message = str(error.value)
    assert "\n" not in message
    assert 10 < len(message) < 300
    return message


@both
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 0.0, -0.0, -1.0, 5e-324, 1e-320, 1e308])
@pytest.mark.parametrize("row", [0, 12_345, 999_999])
def test_one_bad_scale_among_a_million(mechanism, bad, row):
    scales = np.ones(1_000_000)
    scales[row] = bad
    with pytest.raises(ParameterError) as error:
        mechanism(np.zeros(1_000_000), scales)
    assert f"scale[{row}]" in one_line(error)


@both
@pytest.mark.parametrize(
    "scales", [[1.0, 2.0], [1.0] * 4, [], [[1.0], [2.0]], pl.Series([1.0]), pa.array([1.0, 2.0])], ids=without_address
)
def test_scales_of_another_length(mechanism, scales):
    with pytest.raises(ParameterError) as error:
        mechanism([1, 2, 3], scales)
    assert "length" in one_line(error)


@both
@pytest.mark.parametrize(
    "scales",
    [pl.Series([1.0, None, 2.0]), pa.array([1.0, None, 2.0]), [1.0, None, 2.0], ["1", "2", "3"], [True, True, True]],
    ids=["polars null", "arrow null", "list None", "texts", "bools"],
)
def test_scales_that_are_no_numbers(mechanism, scales):
    with pytest.raises(DpfastError) as error:
        mechanism([1, 2, 3], scales)
    assert "scale" in one_line(error)


@both
@pytest.mark.parametrize("scale", [math.nextafter(2.0**60, math.inf), 1e30, 2.0**960])
@pytest.mark.parametrize("per_row", [False, True])
def test_integer_noise_that_would_only_saturate(mechanism, scale, per_row):
    with pytest.raises(ParameterError) as error:
        mechanism([1, 2], [1.0, scale] if per_row else scale)
    assert "2**60" in one_line(error)


@both
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("row", [0, 1, 2 * BLOCK_ROWS + 16_384, 3 * BLOCK_ROWS + 9])
@pytest.mark.parametrize("threads", [1, 4])
def test_values_that_are_not_finite(mechanism, dtype, bad, row, threads):
    """Soundness rule 5: NaN passes no comparison, so that it cannot pass as certified."""
    values = np.full(3 * BLOCK_ROWS + 10, 77.25, dtype)
    values[row] = bad
    with pytest.raises(DataError) as error:
        mechanism(values, 1.0, threads=threads)
    message = one_line(error)
    assert message.startswith("values must be finite")
    assert "77" not in message.replace(str(row), "")


@both
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e308])
@pytest.mark.parametrize("scale", [1.0, [1.0, 2.0, 3.0]])
def test_anything_may_stand_under_a_null(mechanism, bad, scale):
    """And a zero stands there afterwards: nothing of the masked value leaves."""
    under = pa.Array.from_buffers(
        pa.float64(), 3, [pa.py_buffer(b"\x05"), pa.py_buffer(np.array([1.0, bad, 2.0]).tobytes())]
    )
    noisy = mechanism(under, scale)
    assert noisy.null_count == 1
    assert noisy.is_null().to_pylist() == [False, True, False]
    assert np.frombuffer(noisy.buffers()[1], np.float64, 3)[1] == 0.0
    assert np.isfinite(np.frombuffer(noisy.buffers()[1], np.float64, 3)).all()


@both
@pytest.mark.parametrize("kind", ["int64", "int32", "uint32", "float64", "float32"])
def test_zeros_stand_under_nulls(mechanism, kind):
    rows = 2 * BLOCK_ROWS + 5
    mask = np.arange(rows) % 3 == 0
    values = np.full(rows, 123, kind)
    noisy = mechanism(pa.array(values, mask=mask), 4.0)
    data = np.frombuffer(noisy.buffers()[1], "int64" if kind == "uint32" else kind)[:rows]
    assert (data[mask] == 0).all()
    assert noisy.null_count == mask.sum()
    assert np.array_equal(np.asarray(noisy.is_null()), mask)


@both
@pytest.mark.parametrize(
    "values", [pa.nulls(5, pa.float64()), pl.Series([None] * 40_000, dtype=pl.Int64)], ids=["arrow", "polars"]
)
def test_all_null(mechanism, values):
    """Nothing but nulls, where every word in doubt is under one."""
    for _ in range(5):
        noisy = mechanism(values, 200.0)
        assert len(noisy) == len(values)
        assert noisy.to_pylist() == [None] * 5 if isinstance(noisy, pa.Array) else noisy.null_count() == len(values)


@both
@pytest.mark.parametrize(
    "values", [5, 5.0, np.float32(5), np.int64(5), np.array(5.0), np.array(5)], ids=without_address
)
def test_numbers_and_zero_dimensions(mechanism, values):
    noisy = mechanism(values, 1e-5 if isinstance(values, float) else 0.01, random=SeededRandom(1))
    assert np.shape(noisy) == ()
    assert abs(float(noisy) - 5) < 0.5


@both
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32", "float64", "float32"])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
@pytest.mark.parametrize("scale", [1.0, 1e9])
def test_empty(mechanism, dtype, shape, scale):
    noisy = mechanism(np.empty(shape, dtype), scale)
    assert noisy.shape == shape
    assert noisy.dtype == ("int64" if dtype == "uint32" else dtype)
    assert mechanism(np.empty(0, dtype), np.empty(0)).size == 0


@both
@pytest.mark.parametrize("dtype", [">i8", ">i4", ">u4", ">f8", ">f4"])
def test_big_endian(mechanism, dtype):
    values = np.arange(100).astype(dtype)
    native = values.astype(values.dtype.newbyteorder("="))
    a, b = (mechanism(given, 3.0, random=SeededRandom(5)) for given in (values, native))
    assert a.dtype.isnative
    assert np.array_equal(a, b)


@both
def test_strides_read_only_and_unaligned(mechanism):
    values = np.arange(1000.0)
    read_only = values.copy()
    read_only.setflags(write=False)
    unaligned = np.frombuffer(b"\0" + values.tobytes(), np.uint8)[1:].view(np.float64)
    expected = mechanism(values, 2.0, random=SeededRandom(5))
    for given in (read_only, unaligned, values[::-1][::-1], np.repeat(values, 2)[::2], np.asfortranarray(values)):
        assert np.array_equal(mechanism(given, 2.0, random=SeededRandom(5)), expected)
    backwards = values[::-1]
    copied = mechanism(backwards.copy(), 2.0, random=SeededRandom(5))
    assert np.array_equal(mechanism(backwards, 2.0, random=SeededRandom(5)), copied)
    scales = np.linspace(1, 9, 2000)
    scales.setflags(write=False)
    a = mechanism(values, scales[::2], random=SeededRandom(5))
    assert np.array_equal(a, mechanism(values, scales[::2].copy(), random=SeededRandom(5)))


@both
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_nothing_is_written_to_the_input_and_nothing_shared(mechanism, dtype):
    """Changing the input after the call changes no result; changing the result changes no input."""
    values, scales = np.arange(1000).astype(dtype), np.full(1000, 3.0)
    before = values.copy()
    noisy = mechanism(values, scales)
    kept = noisy.copy()
    assert np.array_equal(values, before)
    assert np.array_equal(scales, np.full(1000, 3.0))
    values[:] = 0
    scales[:] = 1e9
    assert np.array_equal(noisy, kept)
    assert not np.shares_memory(noisy, values)


@both
def test_extremes_of_the_scale_are_accepted(mechanism):
    for scale in (2.0**-960, 2.0**960):
        assert np.isfinite(mechanism(np.zeros(100), scale)).all()
    assert (mechanism(np.arange(100), 2.0**-960) == np.arange(100)).all()
    assert mechanism(np.zeros(100, np.int64), 2.0**60).any()


@both
def test_a_failed_call_leaves_no_thread_and_the_next_one_works(mechanism):
    values = np.zeros(10 * BLOCK_ROWS)
    values[-1] = math.nan
    for _ in range(5):
        with pytest.raises(DataError):
            mechanism(values, 1.0, threads=8)
    assert mechanism(values[:-1], 1.0, threads=8).size == values.size - 1


@both
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_an_input_that_another_thread_changes(mechanism, dtype):
    """Every row is released from before or after the change, give or take a step of the grid; nothing crashes."""
    values = np.zeros(20 * BLOCK_ROWS, dtype)
    stop = threading.Event()

    def change():
        while not stop.is_set():
            values[:] = 10**9
            values[:] = 0

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(5):
            noisy = mechanism(values, 3.0)
            assert (np.minimum(np.abs(noisy), np.abs(noisy - 10**9)) < 200).all()
    finally:
        stop.set()
        thread.join()
