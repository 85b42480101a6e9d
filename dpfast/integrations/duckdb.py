"""Functions for DuckDB queries: noise on a column of a query, and randomized response."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from contextlib import suppress
from fractions import Fraction
from functools import cache, lru_cache
from typing import Annotated, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpfast.arguments import Special
from dpfast.columns.of_arrow import arrow_array, borrow_chunks
from dpfast.columns.scale import HIGHEST_SCALE, LOWEST_SCALE
from dpfast.errors import DataError, DpfastError, ParameterError, Words
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.kernels.plugin.layout import (
    VECTOR_CATEGORIES,
    VECTOR_EPSILON,
    VECTOR_FINITE,
    VECTOR_MEMORY,
    VECTOR_OTHER,
    VECTOR_SCALE,
)
from dpfast.local.categories import read_categories
from dpfast.local.responses import Weights, answer_rows, weights_of
from dpfast.mechanisms.noise.integer_noise import NoiseKind
from dpfast.mechanisms.noise.pieces import Pieces
from dpfast.randomness import Random, RandomSource, random_source

__all__ = ["register_functions"]

_CONNECTION = "a DuckDB connection, as duckdb.connect() returns it"
_NAMES = (
    "dpf_laplace",
    "dpf_gaussian",
    "dpf_laplace_double",
    "dpf_gaussian_double",
    "dpf_randomized_response",
    "dpf_randomized_response_text",
)
_DTYPES = {pa.int64().id: np.dtype(np.int64), pa.float64().id: np.dtype(np.float64)}


class Connection(Protocol):
    """A DuckDB connection; DuckDB need not be installed to say so."""

    def create_function(self, *given: Any, **named: Any) -> Any:
        """Make a function for queries."""

    def remove_function(self, *given: Any, **named: Any) -> Any:
        """Take one away."""


def register_functions(
    connection: Annotated[Connection, Special(lambda: [1, "flights.duckdb", object(), [1], {"a": 1}, DpfastError])],
    *,
    random: Random = None,
) -> None:
    """Give the queries of a DuckDB connection functions that add noise.

    Guarantee
        Each value gets noise of its own, as `dpfast.laplace`, `dpfast.gaussian` and `dpfast.randomized_response` draw
        it, with their guarantees; no random word serves twice, in whichever threads and processes. How often DuckDB
        calls a function is its own affair, and every call is a draw: two noisy copies of one value tell more than one.
        So these functions are for the local model and for columns that are already aggregated, read once, as below. No
        budget is kept here: `dpfast.release` keeps one.

    Parameters
    ----------
    connection
        The connection. All its cursors, and other connections to the same database in this process, get them too, for
        as long as the database is open. Registering again on the same connection replaces them.
    random
        None for fresh keys from the operating system, or a `dpfast.testing.SeededRandom` in tests.

    Raises
    ------
    ParameterError
        It is no such connection, it has macros of these names, another connection to the same database has functions of
        these names, or DuckDB takes none now: after a transaction that failed or was rolled back, or while a result is
        being read.

    Notes
    -----
    ``dpf_laplace(n, scale)``, ``dpf_gaussian(n, scale)``
        For integers; the result is a BIGINT.
    ``dpf_laplace_double(x, scale)``, ``dpf_gaussian_double(x, scale)``
        For FLOAT, DOUBLE and DECIMAL, which DuckDB casts to DOUBLE; so it does with UBIGINT and HUGEINT.
    ``dpf_randomized_response(value, k, epsilon)``
        For integers 0, 1, ..., k - 1.
    ``dpf_randomized_response_text(value, categories, epsilon)``
        For strings, with a list of all that may be answered.

    DuckDB refuses other types when it binds a query, and casts strings that are written in it. Nulls stay null; for
    randomized response a null is a value of no category, and is answered like one. A scale may differ between rows, k,
    the categories and epsilon may not. Errors end the query. They have fixed words and name no value, but whether there
    is one depends on the values: a NaN or an infinity has no noisy value.

    Write noisy values once, and read what was written::

        CREATE TABLE noisy AS SELECT station, dpf_laplace(riders, 10.0) AS riders FROM counts

    Everything else draws again: a view and a WITH that is NOT MATERIALIZED at each read, a relation at each fetch, and
    a query for each time that it mentions the function. ``SELECT dpf_laplace(n, 10.0) FROM t WHERE dpf_laplace(n, 10.0)
    > 0`` tests one draw and shows another.

    All but ``dpf_randomized_response_text`` are compiled where the database allows extensions that are not signed::

        connection = duckdb.connect(config={"allow_unsigned_extensions": True})

    and where the Polars plugin can be built (`dpfast.integrations.polars_plugin` says where; they are one library, and
    its first use takes up to half a minute). DuckDB then calls them on all its threads without Python, but for a few
    values in a million. Elsewhere Python draws, with the same laws and about ten times as slowly, because DuckDB hands
    over 2,048 rows at a time; a warning says so once. For whole tables `dpfast.integrations.arrow.noisy_stream` over a
    relation is many times as fast as that::

        relation = connection.sql("SELECT station, riders FROM counts")
        reader = arrow.noisy_stream(relation, {"riders": arrow.laplace(scale=10.0)}, public=["station"])
        connection.cursor().execute("CREATE TABLE noisy AS SELECT * FROM reader")

    References
    ----------
    As for `dpfast.laplace`, `dpfast.gaussian` and `dpfast.randomized_response`.

    Examples
    --------
    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> register_functions(connection)
    >>> noisy = connection.sql("SELECT dpf_laplace(range, 1e-6) FROM range(3)")
    >>> noisy.fetchall()
    [(0,), (1,), (2,)]

    """
    if isinstance(connection, type) or not hasattr(connection, "create_function"):
        raise ParameterError("connection", connection, _CONNECTION)
    from duckdb import Error

    source = random_source(random)
    pieces = Pieces(source)
    integers, floats, text = ("BIGINT", "DOUBLE"), ("DOUBLE", "DOUBLE"), ("VARCHAR", "VARCHAR[]", "DOUBLE")
    functions: list[tuple[str, Callable[..., Any], tuple[str, ...]]] = [
        ("dpf_laplace", _noise(pieces, "dpf_laplace", "laplace"), integers),
        ("dpf_gaussian", _noise(pieces, "dpf_gaussian", "gaussian"), integers),
        ("dpf_laplace_double", _noise(pieces, "dpf_laplace_double", "laplace"), floats),
        ("dpf_gaussian_double", _noise(pieces, "dpf_gaussian_double", "gaussian"), floats),
        ("dpf_randomized_response", _response(source, "dpf_randomized_response"), ("BIGINT", "BIGINT", "DOUBLE")),
        ("dpf_randomized_response_text", _response(source, "dpf_randomized_response_text"), text),
    ]
    with suppress(Error):
        _register(connection, source, functions)
        return
    # Out here no traceback holds the engine's error.
    allowed = "open, outside of a transaction, and without a result that is not read to its end"
    mend = "register before BEGIN; what was rolled back needs the database opened anew"
    raise ParameterError("connection", Words("one that takes no functions now"), allowed, mend)


def _register(
    connection: Any, source: RandomSource, functions: list[tuple[str, Callable[..., Any], tuple[str, ...]]]
) -> None:
    from duckdb import CatalogException, Error

    for name, _, _ in functions:
        with suppress(Error):
            connection.remove_function(name)
    _refuse_macros(connection.cursor())
    compiled = _compiled(connection, source)
    for name, function, types in functions:
        if name in compiled:
            continue
        try:
            connection.create_function(
                name, function, list(types), types[0], type="arrow", null_handling="special", side_effects=True
            )
        except CatalogException:
            pass
        else:
            continue
        _refuse_macros(connection)
        raise _taken(name)
    # A temporary macro is seen by its own connection alone, where it would be called in place of the function.
    _refuse_macros(connection)


def _refuse_macros(connection: Any) -> None:
    """Refuse a connection whose own macros would stand in the functions' way, or be called in their place."""
    # The name keeps its case, which calls do not look at; a macro may be called duckdb_functions, too.
    macros = f"lower(function_name) IN {_NAMES} AND function_type LIKE '%macro'"
    query = f"SELECT function_name FROM system.main.duckdb_functions() WHERE {macros}"
    for (name,) in connection.execute(query).fetchall()[:1]:
        given = Words(f"a connection with a macro that is called {name}")
        raise ParameterError("connection", given, "one without macros of these names", f"run DROP MACRO {name} first")


def _taken(name: str) -> ParameterError:
    allowed = "one to a database without functions of these names, or the one that has registered them"
    given = Words(f"a connection to a database that has {name}")
    mend = "register them once: all cursors and connections to a database have them"
    return ParameterError("connection", given, allowed, mend)


def _compiled(connection: Connection, source: RandomSource) -> Collection[str]:
    """Give a database the compiled functions; return their names, none where Python's must do."""
    from dpfast.integrations.plugin.duckdb_extension import FUNCTIONS, open_in  # not at the top: it takes long
    from dpfast.integrations.plugin.library import UnavailableError

    try:
        opened = open_in(connection, source)
    except UnavailableError as reason:
        _say_once(str(reason))
        return ()
    if not opened:
        raise _taken(FUNCTIONS[0])
    return FUNCTIONS


@cache
def _say_once(reason: str) -> None:
    text = f"the DuckDB functions of dpfast run in Python here, more slowly than compiled ones: {reason}"
    warnings.warn(text, RuntimeWarning, stacklevel=5)


class _RefusalError(Exception):
    """Words that may be shown."""


def _words_of(error: Exception) -> str:
    """Return words for an error that show no value."""
    if isinstance(error, _RefusalError):
        return str(error)
    if isinstance(error, DataError):
        return VECTOR_FINITE
    if isinstance(error, ParameterError):
        return VECTOR_SCALE
    return VECTOR_MEMORY if isinstance(error, MemoryError) else VECTOR_OTHER


def _noise(pieces: Pieces, name: str, kind: NoiseKind) -> Callable[[Any, Any], Any]:
    read = _Scales()

    def function(values: Any, scale: Any) -> Any:
        try:
            array = _joined(values)
            rows = len(array)
            scales = read(_joined(scale), rows)
            if rows and not array.null_count:
                dtype = _DTYPES[array.type.id]
                numbers = np.frombuffer(array.buffers()[1], dtype, rows, 8 * array.offset)
                return arrow_array(pieces.noisy(numbers, None, kind, scales), None, 0)
            column = borrow_chunks((array,), array.type, "values", "a column", arrow_array)
            return column.rebuild(pieces.noisy(column.block(0, rows), column.missing(0, rows), kind, scales))
        except Exception as error:
            words = _words_of(error)
        # Out here no traceback holds the error. DuckDB shows the words and their class.
        raise DataError(f"{name}: {words}")

    return function


def _joined(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


class _Scales:
    """Reads the scales of pieces; they are compared first with those of the piece before, which often are the same."""

    def __init__(self) -> None:
        self._last: tuple[Any, float] | None = None

    def __call__(self, array: Any, rows: int) -> float | NDArray[np.float64]:
        """Return one number where all rows have the same, else one for each row."""
        if not rows:
            return 1.0
        if array.null_count:
            raise _RefusalError(VECTOR_SCALE)
        data, last = array.buffers()[1], self._last
        if last is not None and not array.offset and last[0].equals(data):
            return last[1]
        scales: NDArray[np.float64] = np.frombuffer(data, np.float64, rows, 8 * array.offset)
        # Written so that a NaN fails.
        if not (scales.min() >= LOWEST_SCALE and scales.max() <= HIGHEST_SCALE):
            raise _RefusalError(VECTOR_SCALE)
        first = float(scales[0])
        if not (scales == first).all():
            return scales
        # A copy: DuckDB uses its memory again.
        self._last = pa.py_buffer(scales.tobytes()), first
        return first


def _response(source: RandomSource, name: str) -> Callable[..., Any]:
    def answer(given: Any, categories: Any, epsilon: Any) -> Any:
        if not len(given):
            return given
        listed = _same(categories, VECTOR_CATEGORIES)
        weights = _weights(listed if isinstance(listed, int) else tuple(listed), _same(epsilon, VECTOR_EPSILON))
        if isinstance(listed, int):
            column = borrow_chunks((given,), given.type, "values", "a column", arrow_array)
            return column.rebuild_without_nulls(answer_rows(column, weights, source, 1))
        allowed = pa.array(listed, given.type)
        numbers = pc.index_in(given, allowed)
        column = borrow_chunks((numbers,), numbers.type, "values", "a column", arrow_array)
        return allowed.take(pa.array(answer_rows(column, weights, source, 1)))

    def function(values: Any, categories: Any, epsilon: Any) -> Any:
        try:
            return answer(_joined(values), _joined(categories), _joined(epsilon))
        except Exception as error:
            words = _words_of(error)
        raise DataError(f"{name}: {words}")

    return function


def _same(array: Any, words: str) -> Any:
    """Return the value that all rows have."""
    if array.null_count or (len(array) > 1 and not array.slice(1).equals(array.slice(0, len(array) - 1))):
        raise _RefusalError(words)
    return array[0].as_py()


@lru_cache(maxsize=64)
def _weights(categories: int | tuple[str | None, ...], epsilon: float) -> Weights:
    try:
        listed = read_categories(categories)
        if isinstance(listed, tuple) and None in listed:
            raise _RefusalError(VECTOR_CATEGORIES)
    except DpfastError:
        raise _RefusalError(VECTOR_CATEGORIES) from None
    try:
        units = budget_units(epsilon, "epsilon")
    except DpfastError:
        raise _RefusalError(VECTOR_EPSILON) from None
    return weights_of(Fraction(units, UNITS_PER_ONE), listed if isinstance(listed, int) else len(listed))
