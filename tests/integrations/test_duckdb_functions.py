"""DuckDB functions: the mechanisms' own noise, no value in an error, and how often DuckDB draws."""

from __future__ import annotations

import math
import re
import traceback

import numpy as np
import pytest

import dpfast as dpf
import dpfast.integrations.arrow as dpa
from dpfast.columns import borrow
from dpfast.errors import ParameterError
from dpfast.integrations.duckdb import register_functions
from dpfast.local.responses import answer_rows, weights_of
from dpfast.mechanisms.noise.additive import Buffers, draw_rows
from dpfast.mechanisms.noise.gaussian import gaussian_words
from dpfast.mechanisms.noise.laplace import laplace_words
from dpfast.mechanisms.noise.pieces import BYTES_OF_A_KEY
from dpfast.randomness import Keystream, Purpose
from dpfast.testing import SeededRandom

from .duckdb_queries import PIECE, SECRET, Watched, connect, connected, duckdb, fetched

pytestmark = pytest.mark.usefixtures("duckdb_route")


def by_hand(kind, columns, scale, random):
    """Return noisy columns, with keystream cut by hand: a key of words, and one of tails, for each buffer."""
    buffer, used, made = np.empty(0, np.uint8), 0, []
    for values in columns:
        make = laplace_words if kind == "laplace" else gaussian_words
        noise = make(values.dtype, scale, None)
        size = noise.word_bytes(values.size)
        if used + size > buffer.size:
            buffer, used = np.empty(BYTES_OF_A_KEY, np.uint8), 0
            Keystream(random.key()).words(Purpose.NOISE).fill(0, buffer)
            keystream = Keystream(random.key())
        noise.keystream, noise.first_word = keystream, used
        made.append(np.empty(values.size, values.dtype))
        words = buffer[used : used + size]
        draw_rows(noise, words, values, None, 0, Buffers(values.size), made[-1], refine_all=True)
        used += (size + 15) // 16 * 16
    return np.concatenate(made)


@pytest.mark.parametrize(
    ("kind", "dtype", "scale"),
    [("laplace", "int64", 10.0), ("laplace", "int64", 1e5), ("laplace", "float64", 3.0), ("gaussian", "int64", 500.0)],
)
def test_bytes_are_those_of_the_keystream(kind, dtype, scale):
    """Every sample is computed again from the same words by the exact path."""
    rows = 3 * PIECE
    connection = connected(random=SeededRandom(4))
    name = f"dpf_{kind}" + ("_double" if dtype == "float64" else "")
    values = np.arange(rows).astype(dtype)
    noisy = np.array(fetched(connection, f"SELECT {name}(range, {scale}) FROM range({rows})"), dtype)
    columns = np.split(values, 3)
    for column in columns:
        column.setflags(write=False)
    assert noisy.tobytes() == by_hand(kind, columns, scale, SeededRandom(4)).tobytes()


def test_the_first_piece_is_what_the_mechanism_gives_under_the_same_key():
    connection = connected(random=SeededRandom(4))
    noisy = fetched(connection, f"SELECT dpf_laplace(range, 10.0) FROM range({PIECE})")
    assert noisy == dpf.laplace(np.arange(PIECE), 10.0, random=SeededRandom(4)).tolist()


def test_randomized_response_is_what_the_mechanism_gives():
    connection = connected(random=SeededRandom(4))
    answers = fetched(connection, "SELECT dpf_randomized_response(range % 5, 5, 1.0) FROM range(1000)")
    numbers = borrow(np.arange(1000) % 5)
    assert answers == answer_rows(numbers, weights_of(1, 5), SeededRandom(4)).tolist()
    text = fetched(
        connected(random=SeededRandom(4)),
        "SELECT dpf_randomized_response_text(['a','b','c','d','e'][range % 5 + 1], ['a','b','c','d','e'], 1.0) "
        "FROM range(1000)",
    )
    assert text == ["abcde"[answer] for answer in answers]


# ------------------------------------------------------------------------------------------------------- types, nulls


@pytest.mark.parametrize("kind", ["BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UINTEGER", "USMALLINT", "UTINYINT"])
def test_integers(kind):
    connection = connected()
    query = f"SELECT dpf_laplace(range::{kind}, 1e-6) AS n, dpf_gaussian(range::{kind}, 1e-6) AS m FROM range(100)"
    table = connection.sql(query)
    assert [str(one) for one in table.types] == ["BIGINT", "BIGINT"]
    assert table.fetchall() == [(n, n) for n in range(100)]


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT", "DECIMAL(9, 2)", "BIGINT", "HUGEINT", "UBIGINT"])
def test_floats(kind):
    connection = connected()
    query = f"SELECT dpf_laplace_double(range::{kind}, 1e-9), dpf_gaussian_double(range::{kind}, 1e-9) FROM range(100)"
    for row, (n, m) in enumerate(connection.sql(query).fetchall()):
        assert math.isclose(n, row, abs_tol=1e-6)
        assert math.isclose(m, row, abs_tol=1e-6)


@pytest.mark.parametrize(
    "value", ["1.5::DOUBLE", "1.5", "1::FLOAT", "1::HUGEINT", "1::UBIGINT", "true", "DATE '2020-01-01'"]
)
def test_what_a_bigint_cannot_hold_is_refused_when_a_query_is_bound(value):
    with pytest.raises(duckdb.BinderException, match="No function matches"):
        connected().sql(f"SELECT dpf_laplace({value}, 1.0)")


def test_nulls_stay_null_and_what_lies_under_them_is_zero():
    connection = connected()
    query = "SELECT dpf_laplace(CASE WHEN range % 3 > 0 THEN range END, 1e-6) AS n FROM range(5000)"
    assert fetched(connection, query) == [row if row % 3 else None for row in range(5000)]
    assert fetched(connection, "SELECT dpf_laplace(NULL, 1.0) FROM range(3)") == [None] * 3
    under = connection.sql(query).to_arrow_table()["n"].combine_chunks()
    assert not np.frombuffer(under.buffers()[1], np.int64)[:5000:3].any()


def test_a_null_is_answered_like_a_value_of_no_category():
    connection = connected()
    for query in (
        "SELECT dpf_randomized_response(NULL, 3, 9.0) FROM range(3000)",
        "SELECT dpf_randomized_response(77, 3, 9.0) FROM range(3000)",
        "SELECT dpf_randomized_response_text(NULL, ['a', 'b', 'c'], 9.0) FROM range(3000)",
    ):
        answers = fetched(connection, query)
        assert None not in answers
        assert {answers.count(one) > 800 for one in set(answers)} == {True}
        assert len(set(answers)) == 3


def test_a_scale_for_every_row():
    connection = connected()
    noisy = fetched(connection, "SELECT dpf_laplace(0, CASE WHEN range < 2000 THEN 1e-6 ELSE 1e9 END) FROM range(4000)")
    assert not any(noisy[:2000])
    assert sum(value == 0 for value in noisy[2000:]) < 5


def test_scales_that_change_from_piece_to_piece():
    connection = connected()
    noisy = np.array(fetched(connection, f"SELECT dpf_laplace(0, 10 ** (range // {PIECE})) FROM range({6 * PIECE})"))
    sizes = np.abs(noisy.reshape(6, PIECE)).mean(axis=1)
    # The mean of 2,048 magnitudes has a standard deviation of 2.2 percent: 8 of them fail once in 10**15.
    assert all(abs(size / 10.0**place - 1) < 0.18 for place, size in enumerate(sizes) if place)


@pytest.mark.parametrize("rows", [0, 1, 2047, 2048, 2049, 100_000])
@pytest.mark.parametrize("threads", [1, 4])
def test_every_number_of_rows(rows, threads):
    assert fetched(connected(threads), f"SELECT sum(dpf_laplace(range, 1e-6)) FROM range({rows})") == [
        rows * (rows - 1) // 2 if rows else None
    ]


def test_extremes_saturate():
    connection = connected()
    largest = fetched(connection, f"SELECT dpf_laplace({2**63 - 1}, 1e3) FROM range(100)")
    assert max(largest) == 2**63 - 1
    assert min(largest) > 2**63 - 1 - 10**6


# -------------------------------------------------------------------------------------------------------------- errors


def failure(query, error=duckdb.InvalidInputException):
    connection = connected()
    connection.execute(f"CREATE TABLE t AS SELECT {SECRET} + range AS n, {SECRET}.5 + range AS x FROM range(3)")
    with pytest.raises(error) as caught:
        connection.sql(query).fetchall()
    text = "".join(traceback.format_exception(caught.value))
    assert str(SECRET) not in text
    assert "Traceback" not in str(caught.value)
    return str(caught.value)


SCALE = "scale must be a number from 2\\*\\*-960 to 2\\*\\*960 in every row, for integers at most 2\\*\\*60"


@pytest.mark.parametrize(
    "scale", ["NULL::DOUBLE", "0", "-1.5", "'nan'::DOUBLE", "'inf'::DOUBLE", "1e-300", "1e300", "2.0 ** 61"]
)
@pytest.mark.parametrize("function", ["dpf_laplace", "dpf_gaussian"])
def test_scales_that_are_none(scale, function):
    for given in (
        scale,
        f"CASE WHEN n = {SECRET} + 2 THEN {scale} ELSE 1.0 END".replace(str(SECRET), "(30000 + 1337)"),
    ):
        assert re.search(f"DataError: {function}: {SCALE}", failure(f"SELECT {function}(n, {given}) FROM t"))


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("function", ["dpf_laplace_double", "dpf_gaussian_double"])
def test_values_that_are_not_finite(value, function):
    query = f"SELECT {function}(CASE WHEN x > (30000 + 1338) THEN '{value}'::DOUBLE ELSE x END, 1.0) FROM t"
    assert f"DataError: {function}: a value is NaN or infinite; replace it first by a fixed number" in failure(query)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("dpf_randomized_response(n, 1, 1.0)", "the categories must be the same in every row"),
        ("dpf_randomized_response(n, NULL, 1.0)", "the categories must be the same in every row"),
        ("dpf_randomized_response(n, n, 1.0)", "the categories must be the same in every row"),
        ("dpf_randomized_response(n, 3, 0)", "epsilon must be the same number in every row"),
        ("dpf_randomized_response(n, 3, 'nan')", "epsilon must be the same number in every row"),
        ("dpf_randomized_response(n, 3, NULL)", "epsilon must be the same number in every row"),
        ("dpf_randomized_response(n, 3, x)", "epsilon must be the same number in every row"),
        ("dpf_randomized_response_text(n::VARCHAR, ['a'], 1.0)", "the categories must be the same in every row"),
        ("dpf_randomized_response_text(n::VARCHAR, ['a', 'a'], 1.0)", "the categories must be the same in every row"),
        ("dpf_randomized_response_text(n::VARCHAR, ['a', NULL], 1.0)", "the categories must be the same in every row"),
        ("dpf_randomized_response_text(n::VARCHAR, [n::VARCHAR, 'a'], 1.0)", "the categories must be the same"),
        ("dpf_randomized_response_text(n::VARCHAR, NULL, 1.0)", "the categories must be the same in every row"),
    ],
)
def test_categories_and_epsilons_that_are_none(call, words):
    assert words in failure(f"SELECT {call} FROM t")


def test_a_connection_works_on_after_an_error():
    connection = connected()
    with pytest.raises(duckdb.InvalidInputException):
        connection.sql("SELECT dpf_laplace(1, 0)").fetchall()
    assert fetched(connection, "SELECT dpf_laplace(1, 1e-6)") == [1]


@pytest.mark.parametrize("given", [1, "x.duckdb", None, object(), duckdb.DuckDBPyConnection])
def test_what_is_no_connection(given):
    with pytest.raises(ParameterError, match="connection must be a DuckDB connection"):
        register_functions(given)


def test_registering_again_replaces():
    connection = connected(random=SeededRandom(1))
    first = fetched(connection, "SELECT dpf_laplace(0, 1e6)")
    register_functions(connection, random=SeededRandom(1))
    assert fetched(connection, "SELECT dpf_laplace(0, 1e6)") == first


def test_cursors_and_other_connections_have_the_functions(tmp_path):
    first = connect(tmp_path / "a.duckdb")
    register_functions(first)
    for other in (first.cursor(), connect(tmp_path / "a.duckdb")):
        assert fetched(other, "SELECT dpf_laplace(7, 1e-6)") == [7]
        with pytest.raises(ParameterError, match="connection must be one to a database without functions of these"):
            register_functions(other)
    assert fetched(first, "SELECT dpf_laplace(7, 1e-6)") == [7]


def test_a_function_of_the_users_own_is_not_taken_for_ours():
    connection = connect()
    cursor = connection.cursor()
    cursor.create_function("dpf_laplace", lambda n, scale: n, ["BIGINT", "DOUBLE"], "BIGINT")
    with pytest.raises(ParameterError, match="a database that has dpf_laplace"):
        register_functions(connection)


@pytest.mark.parametrize("temporary", ["", "TEMPORARY "])
@pytest.mark.parametrize("name", ["dpf_laplace", "DPF_Laplace", "dpf_randomized_response_text"])
@pytest.mark.parametrize("config", [{}, {"allow_unsigned_extensions": True}])
def test_a_macro_of_the_users_own_is_named_and_never_called_in_place_of_ours(temporary, name, config):
    connection = duckdb.connect(config=config)
    connection.execute(f"CREATE {temporary}MACRO {name}(n, scale) AS n")
    with pytest.raises(ParameterError, match=f"a macro that is called {name}; run DROP MACRO {name} first"):
        register_functions(connection)


# ------------------------------------------------------------------------------------ how often DuckDB draws, by query


def distinct(query, before=()):
    """Return how many different noises one value of 0 got; scales are so wide that two draws never agree."""
    connection = connected()
    connection.execute("CREATE TABLE t AS SELECT 0 AS n")
    connection.execute("CREATE TABLE many AS SELECT 0 AS n FROM range(100)")
    for statement in before:
        connection.execute(statement)
    return len({value for row in connection.sql(query).fetchall() for value in row})


DRAW = "dpf_laplace(n, 1e12)"
WRITTEN = [f"CREATE TABLE noisy AS SELECT {DRAW} AS n FROM t"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT n FROM noisy UNION ALL SELECT n FROM noisy",
        "SELECT a.n, b.n FROM noisy a, noisy b",
        "SELECT n, n FROM noisy WHERE abs(n) >= 0 AND n = n",
        "WITH w AS NOT MATERIALIZED (SELECT n FROM noisy) SELECT a.n, b.n FROM w a, w b",
    ],
)
def test_what_is_written_once_is_drawn_once(query):
    assert distinct(query, WRITTEN) == 1


@pytest.mark.parametrize(
    ("query", "before", "draws"),
    [
        # Equal calls are not merged, and a constant is no constant.
        (f"SELECT {DRAW}, {DRAW} FROM t", [], 2),
        ("SELECT dpf_laplace(0, 1e12) FROM many", [], 100),
        # A view is read anew; so is a WITH that is not materialized.
        ("SELECT a.n, b.n FROM v a, v b", [f"CREATE VIEW v AS SELECT {DRAW} AS n FROM t"], 2),
        (f"WITH w AS NOT MATERIALIZED (SELECT {DRAW} AS n FROM t) SELECT a.n, b.n FROM w a, w b", [], 2),
        (f"WITH w AS MATERIALIZED (SELECT {DRAW} AS n FROM t) SELECT a.n, b.n FROM w a, w b", [], 1),
    ],
)
def test_queries_that_draw_more_than_once(query, before, draws):
    assert distinct(query, before) == draws


def test_two_reads_of_a_relation_are_two_draws():
    connection = connected()
    relation = connection.sql("SELECT dpf_laplace(0, 1e12) AS n")
    assert relation.fetchall() != connection.sql("FROM relation").fetchall()


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT {DRAW} FROM many WHERE {DRAW} > 0",
        f"SELECT CASE WHEN {DRAW} > 0 THEN {DRAW} ELSE 1 END FROM many",
        f"SELECT m FROM (SELECT n, {DRAW} AS m FROM many WHERE {DRAW} > 0)",
    ],
)
def test_a_condition_that_mentions_the_function_tests_another_draw_than_what_is_shown(query):
    """The noise that is shown is negative in half of the rows: in none of 30 with probability 2**-30 at most."""
    connection = connected()
    connection.execute("CREATE TABLE many AS SELECT 0 AS n FROM range(100)")
    assert min(fetched(connection, query)) < 0


def test_a_condition_on_what_was_written_holds_of_what_is_shown():
    connection = connected()
    connection.execute("CREATE TABLE noisy AS SELECT dpf_laplace(0, 1e12) AS n FROM range(1000)")
    assert min(fetched(connection, "SELECT CASE WHEN n > 0 THEN n ELSE -n END FROM noisy WHERE n <> 0")) > 0


def test_explain_draws_nothing():
    source = Watched()
    connection = connected(random=source)
    connection.sql("EXPLAIN SELECT dpf_laplace(range, 1.0) FROM range(10)").fetchall()
    connection.sql("DESCRIBE SELECT dpf_laplace(range, 1.0) FROM range(10)").fetchall()
    assert source.keys == 0


def test_a_relation_is_a_stream():
    """What the documentation says is faster for whole tables."""
    connection = connected()
    relation = connection.sql("SELECT range AS id, range AS n FROM range(100000)")
    reader = dpa.noisy_stream(relation, {"n": dpa.laplace(scale=1e-6)}, public=["id"])
    assert reader.schema.names == ["id", "n"]
    # Not by the connection itself, which has the relation's result open.
    connection.cursor().execute("CREATE TABLE noisy AS SELECT * FROM reader")
    assert fetched(connection, "SELECT count(*) FROM noisy WHERE id = n") == [100_000]


def test_a_connection_that_takes_no_functions_now_is_an_error_in_our_words():
    """Closed, in a transaction that failed, or after one in which they were registered and rolled back."""
    closed, failed, rolled = (duckdb.connect() for _ in range(3))
    closed.close()
    failed.execute("BEGIN")
    with pytest.raises(duckdb.Error):
        failed.execute("SELECT error('mine')")
    rolled.execute("BEGIN")
    register_functions(rolled)
    rolled.execute("ROLLBACK")
    for connection in (closed, failed, rolled):
        with pytest.raises(ParameterError, match="connection must be open, outside of a transaction"):
            register_functions(connection)
