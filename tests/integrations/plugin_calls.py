"""The plugin's C functions as Polars calls them, but under a key that a test gives, on PyArrow's columns."""

from __future__ import annotations

import ctypes

import pyarrow as pa

from dpfast.integrations.plugin.library import library

SCHEMA, ARRAY, WORD = 72, 80, 8
TYPES = {b"l": pa.int64(), b"i": pa.int32(), b"I": pa.uint32(), b"g": pa.float64(), b"f": pa.float32()}


class FixedKey:
    """A source of one key alone."""

    def __init__(self, key):
        self._key = key

    def key(self):
        return self._key


class Handed:
    """What a call is handed: exports of chunked arrays, which count how often they are given back."""

    def __init__(self, columns, names):
        self.released, self._kept = [0] * len(columns), []
        count = len(columns)
        self.exports = (ctypes.c_int64 * (5 * max(count, 1)))()
        for number, (column, name) in enumerate(zip(columns, names, strict=True)):
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            schema = ctypes.create_string_buffer(SCHEMA)
            pa.field(name, column.type)._export_to_c(ctypes.addressof(schema))
            arrays = [ctypes.create_string_buffer(ARRAY) for _ in chunks]
            for chunk, array in zip(chunks, arrays, strict=True):
                chunk._export_to_c(ctypes.addressof(array))
            pointers = (ctypes.c_int64 * max(len(arrays), 1))(*map(ctypes.addressof, arrays))

            def release(export, number=number):
                self.released[number] += 1

            function = ctypes.CFUNCTYPE(None, ctypes.c_int64)(release)
            words = ctypes.addressof(schema), ctypes.addressof(pointers), len(arrays)
            self.exports[5 * number : 5 * number + 5] = [*words, ctypes.cast(function, ctypes.c_void_p).value, 1]
            self._kept += [schema, arrays, pointers, function]
        self.arrays = [array for kept in self._kept if isinstance(kept, list) for array in kept]

    def given_back(self):
        """Whether every export was released once, and every chunk too."""
        ended = [(ctypes.c_int64 * 10).from_buffer(array)[8] == 0 for array in self.arrays]
        return all(count == 1 for count in self.released) and all(ended)


def under_key(operation, columns, parameters, key, names=None):
    """Return (PyArrow's array of the result, or None; the number of an error)."""
    handed = Handed(columns, names or [f"column{i}" for i in range(len(columns))])
    returned = (ctypes.c_int64 * 5)()
    function = getattr(library().functions, f"dpfast_{operation}_under_key")
    function.restype = ctypes.c_int64
    function.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p, ctypes.c_int64] + [ctypes.c_void_p] * 3
    arguments = (ctypes.addressof(handed.exports), len(columns), parameters, len(parameters))
    status = function(*arguments, ctypes.addressof(returned), None, key)
    assert handed.given_back()
    if status != 0:
        assert returned[4] == 0
        return None, status
    schema, arrays, count = returned[0], returned[1], returned[2]
    assert count == 1
    text = ctypes.string_at((ctypes.c_int64 * 9).from_address(schema)[0])
    array = pa.Array._import_from_c((ctypes.c_int64).from_address(arrays).value, TYPES[text])
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(returned[3])(ctypes.addressof(returned))
    return array, 0
