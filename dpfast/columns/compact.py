"""Arrow columns rebuilt of their own rows alone: nothing of rows that were masked, sliced away or rejected before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["compact", "is_flat"]

#: Views keep whole buffers of text alive, and dictionaries of them cannot be cast: they take a way round.
_WITHOUT_VIEWS = {pa.string_view().id: pa.large_string(), pa.binary_view().id: pa.large_binary()}
_OFFSETS: dict[int, np.dtype[Any]] = {
    **dict.fromkeys((pa.string().id, pa.binary().id), np.dtype(np.int32)),
    **dict.fromkeys((pa.large_string().id, pa.large_binary().id), np.dtype(np.int64)),
}


def is_flat(arrow_type: Any) -> bool:
    """Return whether `compact` takes columns of a type: numbers, times, truth values, text, bytes, and dictionaries.

    Examples
    --------
    >>> is_flat(pa.dictionary(pa.int8(), pa.string())), is_flat(pa.list_(pa.int8()))
    (True, False)

    """
    if isinstance(arrow_type, pa.BaseExtensionType):
        return False
    if pa.types.is_dictionary(arrow_type):
        return is_flat(arrow_type.value_type) and not pa.types.is_dictionary(arrow_type.value_type)
    return arrow_type.id in _WITHOUT_VIEWS or arrow_type.id in _OFFSETS or _width(arrow_type) is not None


def compact(column: Any) -> Any:
    """Return a flat PyArrow ChunkedArray as one Array whose buffers hold its own rows and nothing else.

    Guarantee
        Under nulls stand zeros or nothing, no buffer begins before the first row or goes on after the last one, and
        a dictionary has only values that some row has. The memory is shared where that is so already.

    Raises
    ------
    pyarrow.ArrowException
        The rows do not fit into one Array: too much text for 32-bit offsets, or more values than a dictionary's
        index can number.

    Examples
    --------
    >>> column = pa.chunked_array([["rejected", "a"], ["a"]]).dictionary_encode().slice(1)
    >>> compact(column).dictionary.to_pylist()
    ['a']

    """
    arrow_type = column.type
    if pa.types.is_dictionary(arrow_type):
        return _compact_dictionary(column)
    plain = _WITHOUT_VIEWS.get(arrow_type.id)
    if plain is not None:
        return compact(column.cast(plain)).cast(arrow_type)
    if len(column) == 0:
        return pa.array([], arrow_type)
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    array = chunks[0]
    if len(chunks) == 1 and _is_exact(array):
        return array
    if not column.null_count:
        array = _without_validity(pa.concat_arrays(chunks))
        if _is_exact(array):
            return array
    elif len(chunks) > 1:
        array = pa.concat_arrays(chunks)
    array = array.take(pa.array(np.arange(len(array))))
    return array if array.null_count else _without_validity(array)


def _compact_dictionary(column: Any) -> Any:
    arrow_type = column.type
    index_type, value_type = arrow_type.index_type, arrow_type.value_type
    plain = _WITHOUT_VIEWS.get(value_type.id, value_type)
    values = [
        pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(plain)).cast(plain)
        for chunk in column.chunks
    ]
    encoded = compact(pa.chunked_array(values, plain)).dictionary_encode()
    dictionary = compact(pa.chunked_array([encoded.dictionary])).cast(value_type)
    indices = compact(pa.chunked_array([encoded.indices.cast(index_type)]))
    return pa.DictionaryArray.from_arrays(indices, dictionary, ordered=arrow_type.ordered)


def _width(arrow_type: Any) -> int | None:
    """Return the bits of a value, None where values have no fixed width or others inside."""
    if arrow_type.num_fields or pa.types.is_fixed_size_list(arrow_type):
        return None
    if pa.types.is_null(arrow_type):
        return 0
    try:
        return int(arrow_type.bit_width)
    except ValueError:
        return None


def _is_exact(array: Any) -> bool:
    """Return whether an array's buffers end with its rows, and it has no validity bits."""
    validity, *buffers = array.buffers()
    rows = len(array)
    if array.offset or validity is not None:
        return False
    offsets = _OFFSETS.get(array.type.id)
    if offsets is None:
        # Eight truth values share a byte, whose last bits may be of other rows.
        width = _width(array.type)
        return width != 1 and sum(buffer.size for buffer in buffers) * 8 == rows * (width or 0)
    if buffers[0].size != (rows + 1) * offsets.itemsize:
        return False
    places: Any = np.frombuffer(buffers[0], offsets)
    first, last = places[0], places[-1]
    return bool(first == 0) and (0 if buffers[1] is None else buffers[1].size) == last


def _without_validity(array: Any) -> Any:
    return pa.Array.from_buffers(array.type, len(array), [None, *array.buffers()[1:]], 0, array.offset)
