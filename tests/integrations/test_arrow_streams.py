"""Streams of Arrow batches: the same noise whatever the batches, nothing lost, nothing else let out, nothing kept."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
import dpfast.integrations.arrow as dpa
from dpfast.errors import ColumnError, DpfastError
from dpfast.testing import SeededRandom

from .streams import NOISE, ROWS, SECRET, batches_of, masked, never, shown, table


def by_blocks(rows, block):
    """Return what the mechanisms give with one source of keys, block by block, in the order of the columns."""
    random, made = SeededRandom(1), []
    for start in range(0, len(rows), block):
        piece = rows.slice(start, block)
        n, x, b = (piece[name].combine_chunks() for name in "nxb")
        noisy = [dpf.laplace(n, 10.0, random=random), dpf.gaussian(x, b, random=random)]
        made.append(pa.table([*noisy, piece["name"]], names=["n", "x", "name"]))
    return pa.concat_tables(made)


@pytest.mark.parametrize("block", [1, 777, 1024, ROWS - 1, ROWS, ROWS + 1, 1 << 20])
def test_the_noise_does_not_depend_on_how_the_rows_come_in(block):
    rows = table(300 if block == 1 else ROWS)
    expected = by_blocks(rows, block)
    for sizes in ([1 << 30], [1], [1000], [64], [777], [3, 0, 1500, 0, 0, 1], [ROWS - 1, 1]):
        noisy = dpa.noisy_stream(
            batches_of(rows, sizes), NOISE, public=["name"], block_rows=block, random=SeededRandom(1)
        )
        read = list(noisy)
        assert [len(batch) for batch in read[:-1]] == [block] * (len(read) - 1)
        assert pa.Table.from_batches(read).equals(expected)


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_large_batches_and_threads(threads):
    rows = pa.table({"n": np.arange(600_000)})
    reader = batches_of(rows, [100_000, 16_384 * 5, 7])
    noisy = dpa.noisy_stream(reader, {"n": dpa.laplace(3.0)}, random=SeededRandom(2), threads=threads).read_all()
    expected = dpf.laplace(rows["n"].combine_chunks(), 3.0, random=SeededRandom(2))
    assert noisy["n"].combine_chunks().equals(expected)


def test_rule_1_a_key_for_every_column_of_every_block():
    keys = set()

    class Counted(SeededRandom):
        def key(self):
            key = super().key()
            keys.add(key)
            return key

    zeros = pa.table({"n": np.zeros(4000, np.int64), "m": np.zeros(4000, np.int64)})
    noise = dict.fromkeys("nm", dpa.laplace(1e6))
    noisy = dpa.noisy_stream(zeros, noise, block_rows=1000, random=Counted(1)).read_all()
    assert len(keys) == 8
    drawn = np.concatenate([noisy["n"].to_numpy(), noisy["m"].to_numpy()]).reshape(8, 1000)
    assert len({row.tobytes() for row in drawn}) == 8
    assert np.unique(drawn).size > 7900


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view"])
@pytest.mark.parametrize("size", [3, 64, 1 << 20])
def test_randomized_response_of_strings(kind, size):
    given = pa.array(["yes", None, "no", SECRET, "no"] * 200).cast(getattr(pa, kind)())
    noise = {"smokes": dpa.randomized_response(["yes", "no", "never"], epsilon=1.0)}
    reader = batches_of(pa.table({"smokes": given}), [size])
    answers = dpa.noisy_stream(reader, noise, block_rows=400, random=SeededRandom(1)).read_all()["smokes"]
    assert answers.type == given.type
    random = SeededRandom(1)
    pieces = [given.slice(start, 400).cast(pa.string()) for start in (0, 400, 800)]
    expected = [dpf.randomized_response(piece, ["yes", "no", "never"], 1.0, random=random) for piece in pieces]
    assert answers.to_pylist() == pa.chunked_array(expected).to_pylist()
    assert all(SECRET.encode() not in buffers_of(chunk) for chunk in answers.chunks)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32"])
def test_randomized_response_of_numbers(dtype):
    given = pa.array(np.arange(1000, dtype=dtype) % 7, mask=np.arange(1000) % 5 == 0)
    noise = {"choice": dpa.randomized_response(5, epsilon=0.5)}
    reader = batches_of(pa.table({"choice": given}), [70])
    answers = dpa.noisy_stream(reader, noise, random=SeededRandom(1)).read_all()["choice"]
    assert answers.combine_chunks().equals(dpf.randomized_response(given, 5, 0.5, random=SeededRandom(1)))
    assert answers.null_count == 0


@pytest.mark.parametrize("kind", [pa.float64(), pa.int8(), pa.binary(), pa.dictionary(pa.int8(), pa.string())], ids=str)
@pytest.mark.parametrize("categories", [3, ["a", "b"]])
def test_randomized_response_of_other_types(kind, categories):
    reader = pa.RecordBatchReader.from_batches(pa.schema([("c", kind)]), never())
    with pytest.raises(
        ColumnError, match=r"randomized response among these categories needs columns of .*, but 'c' is"
    ):
        dpa.noisy_stream(reader, {"c": dpa.randomized_response(categories, epsilon=1.0)})


def test_what_is_accepted():
    rows = pa.table({"n": [1, 2, 3]})
    for given in (rows, rows.to_reader(), pl.DataFrame({"n": [1, 2, 3]}), rows.to_pandas(), rows.to_batches()[0]):
        if hasattr(given, "__arrow_c_stream__"):
            noisy = dpa.noisy_stream(given, {"n": dpa.laplace(1e-6)})
            assert noisy.schema == pa.schema([("n", pa.int64())])
            assert noisy.read_all()["n"].to_pylist() == [1, 2, 3]


def test_the_output_is_a_source_for_others():
    noisy = dpa.noisy_stream(table(), {"n": dpa.laplace(1.0)}, public=["id"])
    assert pl.DataFrame(noisy).shape == (ROWS, 2)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32", "float64", "float32"])
def test_types_and_their_bounds(dtype):
    extreme = np.array([0, np.iinfo(dtype).max if np.dtype(dtype).kind != "f" else np.finfo(dtype).max], dtype)
    noisy = dpa.noisy_stream(pa.table({"n": extreme}), {"n": dpa.laplace(100.0)}, random=SeededRandom(3))
    expected = dpf.laplace(extreme, 100.0, random=SeededRandom(3))
    assert noisy.schema.field("n").type == pa.from_numpy_dtype(expected.dtype)
    assert noisy.read_all()["n"].to_numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("batches", [0, 1, 3])
def test_without_rows(batches):
    schema = table().schema
    empty = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
    reader = pa.RecordBatchReader.from_batches(schema, [empty] * batches)
    noisy = dpa.noisy_stream(reader, NOISE, public=["name"])
    assert noisy.schema.names == ["n", "x", "name"]
    assert noisy.read_all().num_rows == 0


def test_one_row_and_nulls_alone():
    assert dpa.noisy_stream(table(1), NOISE).read_all().num_rows == 1
    nothing = pa.table({"n": pa.nulls(5, pa.int64())})
    noisy = dpa.noisy_stream(nothing, {"n": dpa.laplace(1.0)}).read_all()["n"].combine_chunks()
    assert noisy.null_count == 5
    assert bytes(noisy.buffers()[1])[:40] == bytes(40)


def test_no_column_leaves_that_is_not_named():
    noisy = dpa.noisy_stream(table(), {"n": dpa.laplace("b")})
    assert noisy.schema.names == ["n"]
    assert dpa.noisy_stream(table(), {"n": dpa.laplace("b")}, public=("name", "b")).schema.names == ["n", "b", "name"]


def test_metadata_stays_behind():
    rows = pa.table({"n": [1], "d": [1]})
    fields = [field.with_metadata({"secret": SECRET}) for field in rows.schema]
    rows = rows.cast(pa.schema(fields, {"secret": SECRET}))
    schema = dpa.noisy_stream(rows, {"n": dpa.laplace(1.0)}, public=["d"]).schema
    assert SECRET not in schema.to_string()
    assert schema.metadata is None


def buffers_of(array):
    own = b"".join(bytes(buffer) for buffer in array.buffers() if buffer is not None)
    return own + (buffers_of(array.dictionary) if isinstance(array, pa.DictionaryArray) else b"")


TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]


@pytest.mark.parametrize("kind", TEXTS, ids=str)
@pytest.mark.parametrize("cut", [(3, 5), (4, 1), (0, 8)], ids=str)
@pytest.mark.parametrize("as_dictionary", [False, True])
def test_rule_20_no_bytes_of_masked_or_sliced_rows_in_text(kind, cut, as_dictionary):
    text = [SECRET, SECRET * 3, SECRET, "here", "much longer than twelve bytes", SECRET, "here", SECRET]
    valid = np.array([False, False, False, True, True, False, True, False])
    column = masked(pa.array(text).cast(kind), valid)
    if as_dictionary:
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, 4, None, 6, 5]), pa.array(text).cast(kind))
        column, cut = column.slice(3, 2), (0, cut[1] % 3)
    rows = pa.table({"n": np.arange(len(column)), "public": column}).slice(*cut)
    for size in (1, 2, 100):
        noisy = dpa.noisy_stream(batches_of(rows, [size]), {"n": dpa.laplace(1.0)}, public=["public"]).read_all()
        assert noisy["public"].to_pylist() == rows["public"].to_pylist()
        assert noisy["public"].type == column.type
        assert all(SECRET.encode() not in buffers_of(chunk) for chunk in noisy["public"].chunks)


FIXED = [pa.int64(), pa.uint8(), pa.float32(), pa.timestamp("us"), pa.date32(), pa.decimal128(30, 2), pa.binary(8)]
FIXED += [pa.decimal64(12, 2), pa.month_day_nano_interval(), pa.bool_(), pa.float16()]


@pytest.mark.parametrize("kind", FIXED, ids=str)
def test_rule_20_no_bytes_of_masked_or_sliced_rows_in_numbers(kind):
    width = max(kind.bit_width // 8, 1)
    shown = bytes(number % 90 for number in range(8 * width))
    secret = (SECRET * width).encode()
    length = 3 * 8 * width * 8 // kind.bit_width
    rows = length // 3
    whole = pa.Array.from_buffers(kind, length, [None, pa.py_buffer(secret + shown + secret)])
    valid = np.zeros(length, bool)
    valid[rows : 2 * rows] = True
    for column in (whole.slice(rows, rows), masked(whole, valid), masked(whole, valid).slice(rows, rows)):
        for size in (3, 1 << 20):
            given = pa.table({"n": np.arange(len(column)), "public": column})
            noisy = dpa.noisy_stream(batches_of(given, [size]), {"n": dpa.laplace(1.0)}, public=["public"]).read_all()
            (chunk,) = noisy["public"].chunks
            chunk.validate()
            assert chunk.equals(column)
            assert b"SEC" not in buffers_of(chunk)
            assert chunk.offset == 0


def test_a_noisy_column_has_no_bytes_of_others():
    whole = pa.array(np.frombuffer((SECRET * 100).encode(), np.int64))
    column = masked(whole, np.arange(100) % 2 == 0).slice(10, 50)
    noisy = dpa.noisy_stream(pa.table({"n": column}), {"n": dpa.laplace(1e-6)}).read_all()["n"].combine_chunks()
    assert noisy.equals(column)
    # Values that are there are the noise's own concern; those of the rows between are zeros.
    assert (np.frombuffer(noisy.buffers()[1], np.int64)[1::2] == 0).all()


def test_public_columns_that_need_no_copy_are_shared():
    rows = pa.table({"n": np.arange(10), "day": np.arange(10), "text": list("abcdefghij")})
    noisy = dpa.noisy_stream(rows.to_reader(), {"n": dpa.laplace(1.0)}, public=["day", "text"]).read_next_batch()
    for name, place in (("day", 1), ("text", 2)):
        assert noisy[name].buffers()[place].address == rows[name].chunk(0).buffers()[place].address


def test_dictionaries_that_differ_between_batches():
    kind = pa.dictionary(pa.int8(), pa.string())
    pieces = [pa.array(values).dictionary_encode().cast(kind) for values in (["a", "b"], ["c", None, "b"], ["d"])]
    batches = [pa.record_batch({"n": np.arange(len(piece)), "d": piece}) for piece in pieces]
    for block in (1, 2, 4, 100):
        reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
        noisy = dpa.noisy_stream(reader, {"n": dpa.laplace(1.0)}, public=["d"], block_rows=block).read_all()
        assert noisy["d"].to_pylist() == ["a", "b", "c", None, "b", "d"]


def test_categories_of_polars():
    frame = pl.DataFrame(
        {
            "n": [1, 2, 3],
            "enum": pl.Series(["x", None, SECRET], dtype=pl.Enum(["x", "y", SECRET])),
            "category": pl.Series([SECRET, "x", None], dtype=pl.Categorical),
        }
    ).select(pl.col("n"), pl.col("enum"), pl.col("category"))
    noisy = dpa.noisy_stream(frame[1:2], {"n": dpa.laplace(1.0)}, public=["enum", "category"]).read_all()
    assert noisy["enum"].to_pylist() == [None]
    assert noisy["category"].to_pylist() == ["x"]
    for name in ("enum", "category"):
        assert SECRET.encode() not in buffers_of(noisy[name].chunk(0))


def test_a_public_column_that_fits_into_no_batch():
    kind = pa.dictionary(pa.int8(), pa.string())
    pieces = [pa.array([f"{SECRET} {i} {j}" for j in range(100)]).dictionary_encode().cast(kind) for i in range(2)]
    batches = [pa.record_batch({"n": np.arange(100), "d": piece}) for piece in pieces]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    noisy = dpa.noisy_stream(reader, {"n": dpa.laplace(1.0)}, public=["d"])
    with pytest.raises(DpfastError, match="'d' does not fit into one batch of 200 rows; lower block_rows") as caught:
        noisy.read_all()
    assert SECRET not in shown(caught.value)


# ------------------------------------------------------------------------------------------------ threads and processes


def test_several_threads_share_a_stream():
    rows = pa.table({"n": np.zeros(50_000, np.int64), "id": np.arange(50_000)})
    noisy = dpa.noisy_stream(batches_of(rows, [100]), {"n": dpa.laplace(1e6)}, public=["id"], block_rows=500)
    read, errors = [], []

    def take():
        try:
            while True:
                read.append(noisy.read_next_batch())
        except StopIteration:
            pass
        except BaseException as error:
            errors.append(error)

    others = [threading.Thread(target=take) for _ in range(8)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert errors == []
    together = pa.Table.from_batches(read)
    assert sorted(together["id"].to_pylist()) == list(range(50_000))
    assert np.unique(together["n"].to_numpy()).size > 45_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("same_pid", [False, True])
def test_a_forked_process_cannot_go_on_with_a_stream(monkeypatch, same_pid):
    if same_pid:
        # As in a PID namespace of the child's own, or where the id is used again.
        monkeypatch.setattr(os, "getpid", lambda: 4711)
    noisy = dpa.noisy_stream(table(), {"n": dpa.laplace(1.0)}, block_rows=1000)
    noisy.read_next_batch()
    program, result = os.pipe()
    child = os.fork()
    if child == 0:
        said = b""
        try:
            noisy.read_next_batch()
        except DpfastError as error:
            said = str(error).encode()
        finally:
            os.write(result, said)
            os._exit(0)
    os.close(result)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(program, 1000).startswith(b"a stream belongs to the process that made it")
    os.close(program)
    assert noisy.read_all().num_rows == ROWS - 1000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_within_a_call_leaves_the_stream_to_the_parent(tmp_path):
    children = []

    def forking():
        yield pa.record_batch({"n": np.arange(10)})
        children.append(os.fork())
        yield pa.record_batch({"n": np.arange(10)})

    reader = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), forking())
    noisy = dpa.noisy_stream(reader, {"n": dpa.laplace(1.0)}, block_rows=20)
    drawn, said = None, b""
    try:
        drawn = noisy.read_next_batch()
    except DpfastError as error:
        said = str(error).encode()
    finally:
        if children == [0]:
            (tmp_path / "said").write_bytes(said)
            os._exit(0)
    assert len(drawn) == 20
    assert os.waitpid(children[0], 0)[1] == 0
    assert (tmp_path / "said").read_bytes().startswith(b"a stream belongs to the process that made it")


def test_a_reader_that_reads_the_stream_itself_is_refused():
    def circular():
        yield noisy.read_next_batch()

    reader = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), circular())
    noisy = dpa.noisy_stream(reader, {"n": dpa.laplace(1.0)})
    for _ in range(2):
        with pytest.raises(DpfastError, match="a call was made within another one"):
            noisy.read_next_batch()


MEMORY = """
    import sys
    import numpy as np, pyarrow as pa
    import dpfast.integrations.arrow as dpa

    def kilobytes(name):
        return int(open("/proc/self/status").read().split(name + ":")[1].split()[0])

    rows, size = int(sys.argv[1]), int(sys.argv[2])
    batch = pa.record_batch({"n": np.arange(size)})

    def run(rows):
        batches = (batch for _ in range(rows // size))
        reader = pa.RecordBatchReader.from_batches(batch.schema, batches)
        noisy = dpa.noisy_stream(reader, {"n": dpa.laplace(scale=10.0)})
        return sum(len(part) for part in noisy)

    run(size)
    open("/proc/self/clear_refs", "w").write("5")
    before = kilobytes("VmRSS")
    seen = run(rows)
    assert seen == rows // size * size, seen
    print(kilobytes("VmHWM") - before)
"""


def peak(rows, size):
    """Return the bytes that a stream takes at its peak, beside its batches, in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(MEMORY), str(rows), str(size)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return 1024 * int(done.stdout)


needs_linux = pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="the peak is read from /proc")


@needs_linux
@pytest.mark.parametrize(("rows", "size"), [(20_000_000, 65_536), (400_000, 1)])
def test_the_memory_of_a_stream_is_constant(rows, size):
    assert peak(rows, size) < 64 << 20


@needs_linux
@pytest.mark.long
@pytest.mark.parametrize("size", [2_048, 65_536, 1 << 20, 3_000_001])
def test_the_memory_of_a_long_stream_is_constant(size):
    assert peak(1_000_000_000, size) < 64 << 20
