"""The compiled library as an extension of DuckDB: opening it in a database, and what DuckDB's C interface is."""

from __future__ import annotations

import ctypes
import os
import tempfile
import threading
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from dpfast.integrations.plugin.library import Library, UnavailableError, library
from dpfast.integrations.plugin.refining import SOURCES
from dpfast.kernels.plugin import layout
from dpfast.randomness import RandomSource, SystemRandom

__all__ = ["FUNCTIONS", "open_in"]

#: The functions that the library has.
FUNCTIONS = tuple(layout.VECTOR_FUNCTIONS)

#: DuckDB's numbers of its types.
_BIGINT, _DOUBLE = 5, 11
_VERSION = b"v1.2.0"
_POINTER = ctypes.c_void_p
#: Where functions stand in the structure of C interface v1.2.0, which later versions only add to; all by pointers.
_PLACES = {
    "connect": 3,
    "disconnect": 6,
    "create_logical_type": 156,
    "destroy_logical_type": 184,
    "data_chunk_get_vector": 190,
    "data_chunk_get_size": 191,
    "vector_get_data": 194,
    "vector_get_validity": 195,
    "vector_ensure_validity_writable": 196,
    "create_scalar_function": 209,
    "destroy_scalar_function": 210,
    "scalar_function_set_name": 211,
    "scalar_function_set_special_handling": 213,
    "scalar_function_set_volatile": 214,
    "scalar_function_add_parameter": 215,
    "scalar_function_set_return_type": 216,
    "scalar_function_set_extra_info": 217,
    "scalar_function_set_function": 218,
    "register_scalar_function": 219,
    "scalar_function_get_extra_info": 220,
    "scalar_function_set_error": 221,
}

_opening = threading.Lock()
#: The numbers of the connections that have opened the library, for `SOURCES`.
_numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
_counted = count(1)
#: The library, once some database has opened it.
_opened: list[Library] = []


class _RefusedError(Exception):
    """DuckDB did not do what it was asked."""


def open_in(connection: Any, source: RandomSource) -> bool:
    """Give a connection's database the compiled functions; return False if another connection has given it some.

    Parameters
    ----------
    connection
        The connection. If it has opened the library before, the source is what changes.
    source
        Where keys come from.

    Raises
    ------
    UnavailableError
        The library cannot be had, or DuckDB does not open it, for the reason in words.

    """
    from duckdb import Error

    cursor = connection.cursor()
    if not cursor.execute("SELECT current_setting('allow_unsigned_extensions')").fetchall()[0][0]:
        raise UnavailableError('connect with duckdb.connect(..., config={"allow_unsigned_extensions": True})')
    loaded = library()
    with _opening:
        number = _numbers.get(connection)
        if number is None:
            if cursor.execute(f"FROM duckdb_functions() WHERE function_name IN {FUNCTIONS}").fetchall():
                return False
            number = next(_counted)
        table, _opened[:] = _table(loaded), [loaded]
        if isinstance(source, SystemRandom):
            SOURCES.pop(number, None)
        else:
            SOURCES[number], table[layout.DUCKDB_SEEDED] = source, 1
        # Words of the source before are let go.
        table[layout.DUCKDB_EPOCH] += 1
        if connection not in _numbers:
            try:
                _load(cursor, loaded, table, number)
            except (OSError, Error):
                setting = cursor.execute("SELECT current_setting('enable_external_access')").fetchall()
                why = "" if setting[0][0] else ", because enable_external_access is false: it loads no extension then"
                raise UnavailableError(f"DuckDB does not open the library{why}") from None
            _numbers[connection] = number
    return True


def _table(loaded: Library) -> Any:
    return (ctypes.c_int64 * layout.DUCKDB_WORDS).in_dll(loaded.functions, "dpfast_duckdb")


def _after_fork_in_child() -> None:
    """Have a child draw under keys of its own; see `dpfast.randomness.process_mark`."""
    for loaded in _opened:
        _table(loaded)[layout.DUCKDB_EPOCH] += 1


os.register_at_fork(after_in_child=_after_fork_in_child)


def _load(cursor: Any, loaded: Library, table: Any, number: int) -> None:
    """Have DuckDB open the library, which calls back to be given its functions."""
    done = []

    def opened(info: int, access: int) -> None:
        fail, get_database, get_api = (ctypes.c_size_t * 3).from_address(access)
        try:
            _register(_Interface(info, get_api), _call(get_database, info), loaded, table, number)
            done.append(True)
        except BaseException:  # there is nobody above to raise to
            _call(fail, info, b"it failed")

    callback = ctypes.CFUNCTYPE(None, _POINTER, _POINTER)(opened)
    table[layout.DUCKDB_OPENED] = ctypes.cast(callback, _POINTER).value
    try:
        # An extension has the name of its file. A link is the same file, of which nothing is loaded twice.
        with tempfile.TemporaryDirectory(dir=loaded.path.parent, prefix="opening-") as folder:
            link = Path(folder) / "dpfast.duckdb_extension"
            os.link(loaded.path, link)
            cursor.execute("LOAD '{}'".format(str(link).replace("'", "''")))
    finally:
        table[layout.DUCKDB_OPENED] = 0
    if not done:
        raise OSError("the database has opened another library of this name")


def _call(function: int, *given: int | bytes | None) -> int:
    """Call a C function that takes pointers, and numbers in place of them, and returns one or nothing."""
    returned = ctypes.CFUNCTYPE(_POINTER, *[_POINTER] * len(given))(function)(*given)
    return int(returned or 0)


class _Interface:
    """DuckDB's C interface, by the names of its functions."""

    def __init__(self, info: int, get_api: int) -> None:
        address = _call(get_api, info, _VERSION)
        if not address:
            raise _RefusedError
        self.functions = (ctypes.c_size_t * (max(_PLACES.values()) + 1)).from_address(address)

    def __call__(self, name: str, *given: int | bytes | None) -> int:
        """Call one."""
        return _call(self.functions[_PLACES[name]], *given)

    def must(self, name: str, *given: int | bytes | None) -> None:
        """Call one that returns a state, of which the lower 32 bits count."""
        if self(name, *given) & 0xFFFFFFFF:
            raise _RefusedError


def _register(duckdb: _Interface, database: int, loaded: Library, table: Any, number: int) -> None:
    for place, name in enumerate(layout.DUCKDB_FUNCTIONS):
        table[place] = duckdb.functions[_PLACES[name]]
    if not database:
        raise _RefusedError
    connection, one = ctypes.c_size_t(), ctypes.c_size_t()
    duckdb.must("connect", ctypes.c_size_t.from_address(database).value, ctypes.addressof(connection))
    whole, real = duckdb("create_logical_type", _BIGINT), duckdb("create_logical_type", _DOUBLE)
    try:
        for name, (operation, form) in layout.VECTOR_FUNCTIONS.items():
            types = (whole, whole, real) if operation == layout.RESPONSE else (real if form else whole, real)
            one.value = duckdb("create_scalar_function")
            try:
                _describe(duckdb, one.value, name, types, loaded, number)
                duckdb.must("register_scalar_function", connection.value, one.value)
            finally:
                duckdb("destroy_scalar_function", ctypes.addressof(one))
    finally:
        for kind in (whole, real):
            one.value = kind
            duckdb("destroy_logical_type", ctypes.addressof(one))
        duckdb("disconnect", ctypes.addressof(connection))


def _describe(duckdb: _Interface, function: int, name: str, types: Sequence[int], loaded: Library, number: int) -> None:
    kept = loaded.functions.dpfast_make_function(number)
    if not kept:
        raise _RefusedError
    duckdb("scalar_function_set_extra_info", function, kept, _address(loaded, "dpfast_c_forget_function"))
    duckdb("scalar_function_set_name", function, name.encode())
    for kind in types:
        duckdb("scalar_function_add_parameter", function, kind)
    duckdb("scalar_function_set_return_type", function, types[0])
    duckdb("scalar_function_set_special_handling", function)
    duckdb("scalar_function_set_volatile", function)
    duckdb("scalar_function_set_function", function, _address(loaded, name))


def _address(loaded: Library, name: str) -> int:
    return ctypes.cast(getattr(loaded.functions, name), _POINTER).value or 0
