"""The compiled DuckDB functions: equal to Python's under one seed; what becomes of their memory, keys and errors."""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import threading
import warnings
from fractions import Fraction

import numpy as np
import pytest

import dpfast.integrations.duckdb as functions
from dpfast.errors import ParameterError
from dpfast.integrations.duckdb import register_functions
from dpfast.integrations.plugin import duckdb_extension, refining
from dpfast.integrations.plugin import library as building
from dpfast.integrations.plugin.library import UnavailableError, library
from dpfast.kernels.noise.randomized_response import respond_long, respond_short
from dpfast.kernels.plugin import blocks, layout
from dpfast.local.responses import answer_exactly, weights_of
from dpfast.mechanisms.noise.pieces import BYTES_OF_A_KEY
from dpfast.randomness import Keystream, Purpose, Tail
from dpfast.testing import SeededRandom

from .duckdb_queries import PIECE, Watched, duckdb, fetched

pytestmark = pytest.mark.usefixtures("plugin")

UNSIGNED = {"allow_unsigned_extensions": True}
#: Scales at which some of a million rows are finished by Python.
UNDECIDED = 2.0**24.9


def connected(threads=1, compiled=True, config=None, **settings):
    connection = duckdb.connect(config={**(UNSIGNED if compiled else {}), **(config or {})})
    connection.execute(f"SET threads = {threads}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if not compiled else "error")
        register_functions(connection, **settings)
    return connection


def is_compiled(connection):
    return connection in duckdb_extension._numbers


def table():
    return duckdb_extension._table(library())


SCALES = [
    "1e-3", "100.0", "127.5", "129.0", "256.0", "257.0", "2.0 ** 24.9", "2.0 ** 25", "2.0 ** 45", "1 + n",
    "CASE WHEN n % 2 = 0 THEN 1.0 ELSE 300.0 END", "10.0 ** (n // 2048 % 15)", "exp(n % 40)",
]  # fmt: skip


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("function", "value"),
    [("dpf_laplace", "n"), ("dpf_gaussian", "n"), ("dpf_laplace_double", "n / 7"), ("dpf_gaussian_double", "n / 7")],
)
def test_both_routes_give_the_same_bytes(function, value, scale):
    """With nulls here and there, nearly everywhere and nowhere, in vectors of every length that a filter leaves."""
    for given in (value, f"CASE WHEN n % 3 > 0 THEN {value} END", f"CASE WHEN n % 1000 = 1 THEN {value} END"):
        query = f"SELECT {function}({given}, {scale}) AS v FROM (SELECT range AS n FROM range(30001)) WHERE n % 7 < 5"
        both = [connected(compiled=one, random=SeededRandom(3)).sql(query) for one in (False, True)]
        first, second = (one.to_arrow_table()["v"].combine_chunks() for one in both)
        assert first.equals(second)
        if first.null_count:  # nothing lies under a null
            under = np.frombuffer(second.buffers()[1], np.int64)[: len(second)]
            assert not under[~second.is_valid().to_numpy(False)].any()


def test_samples_that_python_finishes_are_the_same(monkeypatch):
    own, finished = refining._draw, []
    monkeypatch.setattr(refining, "_draw", lambda job: (finished.append(job[layout.JOB_COUNT]), own(job)))
    query = f"SELECT dpf_laplace(CASE WHEN range % 3 > 0 THEN range END, {UNDECIDED}) FROM range(2000000)"
    both = [fetched(connected(compiled=one, random=SeededRandom(3)), query) for one in (False, True)]
    assert both[0] == both[1]
    assert sum(finished) >= 2


@pytest.mark.parametrize(
    ("k", "epsilon", "pieces"),
    [(2, 1.0, 60), (5, 0.3, 60), (5000, 2.0, 60), (2**31, 1.0, 9), (3, 45.0, 9), (4096, 0.001, 1000)],
)
def test_answers_are_those_of_the_keystream(k, epsilon, pieces):
    """With the last parameters the exact path answers for a few of two million rows."""
    rows, random = pieces * PIECE, SeededRandom(4)
    codes = np.arange(rows) % (min(k, 10**6) + 1)
    codes[::10] = -1
    weights = weights_of(Fraction(str(epsilon)), k)
    word, respond = (np.uint32, respond_short) if weights.bits == 32 else (np.uint64, respond_long)
    buffer, used, expected, exact = np.empty(0, np.uint8), 0, [], 0
    for piece in np.split(codes, pieces):
        size = PIECE * weights.bits // 8
        if used + size > buffer.size:
            buffer, used = np.empty(BYTES_OF_A_KEY, np.uint8), 0
            Keystream(random.key()).words(Purpose.NOISE).fill(0, buffer)
            keystream = Keystream(random.key())
        words, answers = buffer[used : used + size].view(word), np.empty(PIECE, np.int64)
        respond(words, piece, *weights.arguments, answers)
        for row in np.flatnonzero(answers == -1).tolist():
            tail = Tail(keystream, used + row, int(words[row]), weights.bits)
            answers[row] = answer_exactly(tail, int(piece[row]), Fraction(str(epsilon)), k)
            exact += 1
        expected.append(answers)
        used += size
    given = f"CASE WHEN range % 10 > 0 THEN range % {min(k, 10**6) + 1} END"
    query = f"SELECT dpf_randomized_response({given}, {k}, {epsilon}) FROM range({rows})"
    assert fetched(connected(random=SeededRandom(4)), query) == np.concatenate(expected).tolist()
    assert (exact > 0) == (pieces == 1000)


def test_parameters_may_change_from_vector_to_vector():
    query = f"""SELECT dpf_randomized_response(0, 2 + range // {PIECE}, 1e-6 * (1 + range // {PIECE} % 2)) AS a, range
        FROM range({8 * PIECE})"""
    answers = np.array(fetched(connected(), query)).reshape(8, PIECE)
    # Evenly among 2 + i categories: each is missed with probability 0.89 ** 2048 at most.
    assert [int(piece.max()) for piece in answers] == [1 + piece for piece in range(8)]


# -------------------------------------------------------------------------------------------------------- which route


def test_python_says_once_how_to_be_fast():
    functions._say_once.cache_clear()
    connection = duckdb.connect()
    with pytest.warns(RuntimeWarning, match='config={"allow_unsigned_extensions": True}') as caught:
        register_functions(connection)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        register_functions(duckdb.connect())
    assert not is_compiled(connection)
    assert is_compiled(connected())


@pytest.mark.parametrize("reason", ["library", "external", "link", "interface", "memory"])
def test_every_reason_ends_in_python(reason, monkeypatch):
    config = dict(UNSIGNED)
    if reason == "library":
        monkeypatch.setattr(building, "_made", UnavailableError("there is no linker"))
    elif reason == "external":
        config["enable_external_access"] = False
    elif reason == "link":
        monkeypatch.setattr(os, "link", lambda *given: (_ for _ in ()).throw(PermissionError))
    elif reason == "interface":
        monkeypatch.setattr(duckdb_extension, "_VERSION", b"v9.9.9")
    else:
        monkeypatch.setattr(library().functions, "dpfast_make_function", lambda number: 0)
    functions._say_once.cache_clear()
    connection = duckdb.connect(config=config)
    words = "because enable_external_access is false" if reason == "external" else "run in Python here"
    with pytest.warns(RuntimeWarning, match=words):
        register_functions(connection)
    assert fetched(connection, "SELECT dpf_laplace(7, 1e-6) + dpf_gaussian(range, 1e-6) FROM range(3)") == [7, 8, 9]
    assert not is_compiled(connection)


def test_nobody_else_opens_the_library(tmp_path):
    path = tmp_path / "dpfast.duckdb_extension"
    for copy in (False, True):
        path.unlink(missing_ok=True)
        (shutil.copy if copy else os.link)(library().path, path)
        connection = duckdb.connect(config=UNSIGNED)
        with pytest.raises(duckdb.Error, match=r"open it by dpfast\.integrations\.duckdb\.register_functions"):
            connection.execute(f"LOAD '{path}'")
        register_functions(connection)
        assert fetched(connection, "SELECT dpf_laplace(7, 1e-6)") == [7]
        assert is_compiled(connection)


def test_places_are_those_of_this_version(monkeypatch):
    import _duckdb

    symbols, seen = ctypes.CDLL(_duckdb.__file__), []
    own = duckdb_extension._register
    monkeypatch.setattr(
        duckdb_extension, "_register", lambda duckdb, *given: (seen.append(list(duckdb.functions)), own(duckdb, *given))
    )
    connected()
    for name, place in duckdb_extension._PLACES.items():
        symbol = getattr(symbols, f"duckdb_{name}", None)
        if symbol is not None:
            assert ctypes.cast(symbol, ctypes.c_void_p).value == seen[0][place], name


def test_a_folder_with_a_quote_in_its_name(tmp_path, monkeypatch):
    folder = tmp_path / "it's"
    folder.mkdir(mode=0o700)
    copied = folder / "plugin.so"
    os.link(library().path, copied)
    monkeypatch.setattr(library(), "path", copied)
    assert is_compiled(connected())
    assert [path.name for path in folder.iterdir()] == ["plugin.so"]


# ----------------------------------------------------------------------------------------------------- connections


def test_the_source_changes_with_the_last_registration():
    connection = connected(random=SeededRandom(1))
    first = fetched(connection, "SELECT dpf_laplace(0, 1e6) FROM range(9)")
    for random in (None, SeededRandom(1)):
        register_functions(connection, random=random)
        again = fetched(connection, "SELECT dpf_laplace(0, 1e6) FROM range(9)")
        assert (again == first) == (random is not None)


def test_in_a_transaction():
    connection = duckdb.connect(config=UNSIGNED)
    connection.begin()
    register_functions(connection)
    both = "SELECT dpf_laplace(7, 1e-6), dpf_randomized_response(1, 2, 50.0)"
    assert connection.sql(both).fetchall() == [(7, 1)]
    connection.rollback()
    assert connection.sql(both).fetchall() == [(7, 1)]


def test_prepared_read_only_and_in_a_lambda(tmp_path):
    duckdb.connect(tmp_path / "a.duckdb").close()
    connection = duckdb.connect(tmp_path / "a.duckdb", read_only=True, config=UNSIGNED)
    register_functions(connection)
    assert connection.execute("SELECT dpf_laplace(?::BIGINT, ?)", [7, 1e-6]).fetchall() == [(7,)]
    assert connection.execute("SELECT list_transform([1, 2], lambda x: dpf_laplace(x, 1e-6))").fetchall() == [([1, 2],)]


def test_a_dictionary_vector():
    connection = connected()
    connection.execute("CREATE TABLE d AS SELECT range % 3 AS k, range AS n FROM range(10000)")
    query = "FROM d JOIN (SELECT k AS j, max(n) AS m FROM d GROUP BY k) ON k = j WHERE dpf_laplace(m, 1e-6) = m"
    assert fetched(connection, f"SELECT count(*) {query}") == [10_000]


def test_a_connection_that_is_gone_leaves_nothing():
    gc.collect()
    before = len(duckdb_extension._numbers)
    connection = connected()
    assert len(duckdb_extension._numbers) == before + 1
    connection.close()
    with pytest.raises(ParameterError, match="connection must be open"):
        register_functions(connection)
    del connection
    gc.collect()
    assert len(duckdb_extension._numbers) == before


# ------------------------------------------------------------------------------------------------------ keys and memory


def kept_blocks(monkeypatch, **settings):
    """Return a connection, and a function that lists the bytes of blocks that its functions keep."""
    functions, made = library().functions, []
    own = functions.dpfast_make_function
    monkeypatch.setattr(functions, "dpfast_make_function", lambda number: made.append(own(number)) or made[-1])
    connection = connected(**settings)

    def read():
        slots = [(ctypes.c_int64 * layout.SLOTS).from_address(one + 8) for one in made]
        return [ctypes.string_at(block, blocks.WORDS + BYTES_OF_A_KEY) for one in slots for block in one if block]

    return connection, read


def test_words_are_gone_when_they_are_used(monkeypatch):
    connection, read = kept_blocks(monkeypatch, random=SeededRandom(4))
    connection.sql(f"SELECT dpf_laplace(range, 10.0) FROM range({PIECE})").fetchall()
    (block,) = read()
    assert not any(block[blocks.WORDS : blocks.WORDS + 4 * PIECE])
    assert any(block[blocks.WORDS + 4 * PIECE :])
    assert not any(block[blocks.SCRATCH : blocks.SCRATCH + 4 * PIECE])
    keys = SeededRandom(4)
    words, further = keys.key(), keys.key()
    assert block[blocks.KEY : blocks.KEY + 32] == further
    assert words not in block
    assert words[:16] not in block  # the schedule begins with the key


def test_what_fails_is_not_used_again(monkeypatch):
    connection, read = kept_blocks(monkeypatch)
    with pytest.raises(duckdb.InvalidInputException):
        connection.sql("SELECT dpf_laplace_double('nan'::DOUBLE, 1.0)").fetchall()
    with pytest.raises(duckdb.InvalidInputException):
        connection.sql("SELECT dpf_randomized_response(1, 1, 1.0)").fetchall()
    assert read() == []


def test_a_key_serves_so_many_words_and_no_more():
    source = Watched()
    connected(random=source).sql(f"SELECT count(dpf_laplace(0, 1e5)) FROM range({100 * PIECE})").fetchall()
    # Two keys at a time: of the words, and of the further bits of some.
    assert source.keys == 2 * -(-100 // (BYTES_OF_A_KEY // (6 * PIECE)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("mark", ["both", "process", "forks"])
def test_a_fork_makes_new_keys(mark, monkeypatch):
    """The number of forks tells, and the process id, each alone: an id may be used again, and C code may fork."""
    connection, query = connected(), "SELECT dpf_laplace(0, 1e12) FROM range(5)"
    connection.sql(query).fetchall()
    if mark == "forks":
        # Of a child with its parent's id the library could not tell by it: what is left is the number.
        source = Watched()
        register_functions(connection, random=source)
        connection.sql(query).fetchall()
        keys = source.keys
        connection.sql(query).fetchall()
        assert source.keys == keys
        duckdb_extension._after_fork_in_child()
        connection.sql(query).fetchall()
        assert source.keys == keys + 2
        return
    read, write = os.pipe()
    before = table()[layout.DUCKDB_EPOCH]
    child = os.fork()
    if child == 0:
        assert table()[layout.DUCKDB_EPOCH] != before
        if mark == "process":
            table()[layout.DUCKDB_EPOCH] = before
        os.write(write, repr(connection.sql(query).fetchall()).encode())
        os._exit(0)
    os.close(write)
    own = repr(connection.sql(query).fetchall())
    with os.fdopen(read, "rb") as pipe:
        of_child = pipe.read().decode()
    assert os.waitpid(child, 0)[1] == 0
    assert of_child.startswith("[(")
    assert of_child != own


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_twenty_thousand_calls_leave_no_memory():
    connection = connected()
    query = "SELECT count(dpf_laplace(range, 9.0)), count(dpf_gaussian_double(1, 9.0)), count(\
dpf_randomized_response(range % 3, 3, 1.0)) FROM range({})"

    def fail():
        with pytest.raises(duckdb.InvalidInputException):
            connection.sql("SELECT dpf_laplace(1, -1.0), dpf_randomized_response(1, 1, 1.0)").fetchall()

    def reopen():
        connected(compiled=True).sql(query.format(3000)).fetchall()

    def draw():
        connection.sql(query.format(100 * PIECE)).fetchall()

    for action, times in ((draw, 200), (fail, 300), (reopen, 50)):
        for _ in range(10):
            action()
        gc.collect()
        before = resident()
        for _ in range(times):
            action()
        gc.collect()
        assert resident() < before + 12  # megabytes: a block has a quarter of one


# -------------------------------------------------------------------------------------------------- threads and errors


def test_eight_threads_draw_different_words():
    """Wide noise has steps of 2**-24 of its scale: of 10^6 draws 7,450 pairs agree by chance, with a deviation of 90.

    A key that served twice would make 20,000 more. The bound fails once in 10**30.
    """
    rows = 1_000_000
    connection = connected(threads=8)
    connection.execute(f"CREATE TABLE t AS SELECT range AS n FROM range({rows})")
    assert fetched(connection, "SELECT count(DISTINCT dpf_laplace(0, 2.0 ** 40)) FROM t")[0] > rows - 8_500
    assert fetched(connection, f"SELECT count(dpf_laplace(0, {UNDECIDED})) FROM range(5000000)") == [5_000_000]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("part", ["_draw", "_give_weights", "_give_keys"])
def test_an_error_in_python_is_an_error_of_the_query(part, error, monkeypatch):
    def fail(job):
        raise error("secret 31337")

    connection = connected(random=SeededRandom(1))
    monkeypatch.setattr(refining, part, fail)
    monkeypatch.setattr(refining, "_WORK", {**refining._WORK, layout.WEIGHTS: refining._give_weights})
    monkeypatch.setitem(refining._WORK, layout.KEYS, refining._give_keys)
    query = {
        "_draw": f"SELECT dpf_laplace(0, {UNDECIDED}) FROM range(5000000)",
        "_give_weights": "SELECT dpf_randomized_response(0, 2, 1.0)",
        "_give_keys": "SELECT dpf_laplace(0, 1.0)",
    }[part]
    with pytest.raises(duckdb.InvalidInputException, match=r"DataError: dpf_\w+: it failed$") as caught:
        connection.sql(query).fetchall()
    assert "31337" not in str(caught.value)


def test_an_interrupted_query_ends():
    connection = connected(threads=4)
    ended = []

    def draw():
        with pytest.raises(duckdb.InterruptException):
            connection.execute(f"SELECT sum(dpf_laplace(0, {UNDECIDED})) FROM range(100000000000)").fetchall()
        ended.append(True)

    worker = threading.Thread(target=draw)
    worker.start()
    while not ended:
        connection.interrupt()
        worker.join(0.05)
    assert fetched(connection, "SELECT dpf_laplace(7, 1e-6)") == [7]


def test_a_source_that_runs_a_query_of_its_own():
    """A call within a call takes another block."""
    outer = SeededRandom(1)

    class Nested:
        def key(self):
            register_functions(other, random=outer)
            assert fetched(other, "SELECT dpf_laplace(7, 1e-6)") == [7]
            return outer.key()

    other = connected()
    assert fetched(connected(random=Nested()), "SELECT dpf_laplace(7, 1e-6)") == [7]
