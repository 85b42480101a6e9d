"""Streams of Arrow record batches: a reader in, a reader with noise out, in constant memory.

    >>> import dpfast.integrations.arrow as dpa
    >>> rows = pa.table({"day": [1, 2], "riders": [804, None], "name": ["Ada", "Grace"]})
    >>> noisy = dpa.noisy_stream(rows, {"riders": dpa.laplace(scale=10.0)}, public=["day"])
    >>> noisy.schema.names
    ['day', 'riders']

It is for the local model, and for columns that are already aggregated. No budget is kept here: `dpfast.release` keeps
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from dpfast.arguments import THREADS, Real, Special, Threads, Whole, is_real, no_numbers
from dpfast.columns.column import NATIVE_DTYPES
from dpfast.columns.compact import is_flat
from dpfast.columns.declarations import ArrowStream
from dpfast.columns.refusal import ACCEPTED
from dpfast.columns.scale import borrow_scale
from dpfast.errors import ColumnError, ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.integrations.arrow_blocks import Blocks, NoisyColumn, PublicColumn, short_name
from dpfast.local.categories import read_categories
from dpfast.local.responses import weights_of
from dpfast.mechanisms.noise.lattice import lattice_for
from dpfast.mechanisms.parameters import Epsilon
from dpfast.randomness import Random, random_source
from dpfast.showing import Shown

__all__ = ["ColumnNoise", "gaussian", "laplace", "noisy_stream", "randomized_response"]

_NUMBERS = {pa.from_numpy_dtype(dtype).id: dtype for dtype in NATIVE_DTYPES}
_STREAM = "a pyarrow.RecordBatchReader, or another object with __arrow_c_stream__ that gives record batches"
_BLOCK_ROWS = Whole(1, 2**30, mend="leave it out")


def _wrong_readers() -> list[object]:
    import polars as pl  # not at the top: it takes long to import

    columns = [pl.Series([1]), pa.array([1]), pa.chunked_array([[1]]), pl.col("a")]
    return [1, "rows.arrow", [1, 2], {"a": [1]}, object(), pa.Table, *columns]


def _wrong_scales() -> list[object]:
    # A string is the name of a column.
    numbers = [number for number in no_numbers() if not isinstance(number, str)]
    return [*numbers, 0, -1.0, 1e-300, 1e300, 10**400, "", [1.0], np.ones(3), ["s"]]


def _wrong_categories() -> list[object]:
    return [
        1,
        0,
        -3,
        2**32,
        2.5,
        True,
        "ab",
        [],
        ["a"],
        ["a", "a"],
        ["a", 1],
        ["a", None],
        [1, 2],
        [0.5, 1.5],
        object(),
    ]


def _wrong_noise() -> list[object]:
    noise = ColumnNoise("laplace", 1.0)
    return [1, "a", ["a"], {}, {"none such": noise}, {1: noise}, {"a": 1.0}, {"a": ColumnNoise}, object(), noise]


def _wrong_public() -> list[object]:
    return [1, "a", [1], ["none such"], {"a": 1}, object(), b"a", ["b", "b"]]


#: A number, or the name of a column that has one in every row.
_SCALE = Special(_wrong_scales)
StreamScale: TypeAlias = Annotated[Real | str, _SCALE]


@dataclass(frozen=True, slots=True)
class ColumnNoise(Shown):
    """The noise that every value of a column gets; made by `laplace`, `gaussian` and `randomized_response`.

    Attributes
    ----------
    kind
        Which noise it is.
    scale
        The scale of additive noise, or the name of the column that has one in every row.
    categories, epsilon
        What randomized response may answer, and the privacy of a row in units of 1e-18.

    """

    kind: Literal["laplace", "gaussian", "randomized_response"]
    scale: float | str = 0.0
    categories: int | tuple[str, ...] = ()
    epsilon: int = 0


def laplace(scale: StreamScale) -> ColumnNoise:
    """Say that a column of a stream gets Laplace noise, as `dpfast.laplace` adds it.

    Guarantee
        None by itself: see `noisy_stream`.

    Parameters
    ----------
    scale
        The Laplace scale b = sensitivity / epsilon in the unit of the values: a positive number, or the name of a
        column of the stream with one in every row. Between 2**-960 and 2**960, for integers at most 2**60.

    Returns
    -------
    ColumnNoise
        What `noisy_stream` takes.

    Raises
    ------
    ParameterError
        The scale is neither.

    Examples
    --------
    >>> laplace(scale=10).scale
    10.0

    """
    return ColumnNoise("laplace", _read_scale(scale))


def gaussian(scale: StreamScale) -> ColumnNoise:
    """Say that a column of a stream gets Gaussian noise, as `dpfast.gaussian` adds it.

    Guarantee
        None by itself: see `noisy_stream`.

    Parameters
    ----------
    scale
        The standard deviation sigma in the unit of the values, given as for `laplace`.

    Returns
    -------
    ColumnNoise
        What `noisy_stream` takes.

    Raises
    ------
    ParameterError
        The scale is neither a number in the range nor a name.

    Examples
    --------
    >>> gaussian(scale="sigma").scale
    'sigma'

    """
    return ColumnNoise("gaussian", _read_scale(scale))


def randomized_response(
    categories: Annotated[int | Sequence[str], Special(_wrong_categories)], epsilon: Epsilon
) -> ColumnNoise:
    """Say that every row of a column of a stream answers as `dpfast.randomized_response` does.

    Guarantee
        None by itself: see `noisy_stream`.

    Parameters
    ----------
    categories
        A whole number k from 2 to 2**31 for a column of the integers 0, 1, ..., k - 1 (int64, int32 or uint32), or a
        list of different strings for a column of strings. A null, or any other value, is answered with each category
        alike.
    epsilon
        The privacy of one row: a number from 1e-18 to 1e6.

    Returns
    -------
    ColumnNoise
        What `noisy_stream` takes.

    Raises
    ------
    ParameterError
        The categories are fewer than two, or of another kind; or epsilon is no such number.

    Examples
    --------
    >>> randomized_response(["yes", "no"], epsilon=1.0).categories
    ('yes', 'no')

    """
    read = read_categories(categories)
    if not isinstance(read, int) and not all(isinstance(category, str) for category in read):
        raise ParameterError("categories", list(read), "a whole number, or a list of strings")
    return ColumnNoise("randomized_response", categories=read, epsilon=budget_units(epsilon, "epsilon"))


def _read_scale(scale: object) -> float | str:
    if isinstance(scale, str) and scale:
        return str.__str__(scale)
    if not is_real(scale):
        raise ParameterError("scale", scale, "a positive number, or the name of a column with one in every row")
    return float(borrow_scale(scale, 0))


def noisy_stream(
    reader: Annotated[ArrowStream, Special(_wrong_readers)],
    noise: Annotated[Mapping[str, ColumnNoise], Special(_wrong_noise)],
    *,
    public: Annotated[Sequence[str], Special(_wrong_public)] = (),
    block_rows: Annotated[int, _BLOCK_ROWS] = 1 << 20,
    random: Random = None,
    threads: Threads = None,
) -> pa.RecordBatchReader:
    """Return a reader of the rows of another one, in the same order, with noise added to some columns.

    Guarantee
        Each noisy column is what `dpfast.laplace`, `dpfast.gaussian` or `dpfast.randomized_response` makes of it, with
        their guarantees: every value gets noise of its own. It is drawn once, when its batch is read, and the rows are
        read once. A fresh key serves each column of each batch. No column leaves that is named neither in ``noise`` nor
        in ``public``, and no byte of rows that were masked, sliced away or rejected before. The order and the number of
        rows, public columns, and the nulls of columns with additive noise are published as they are. The sizes of
        batches tell no more than the number of rows: all have ``block_rows`` but the last. No budget is kept here:
        `dpfast.release` keeps one.

    Parameters
    ----------
    reader
        A ``pyarrow.RecordBatchReader``, or anything with ``__arrow_c_stream__`` that gives record batches: a table,
        a frame of Polars or pandas, a DuckDB relation, a reader of ADBC. It is read once, to its end.
    noise
        The noise by the name of the column: `laplace` or `gaussian` for columns of int64, int32, uint32, float64 or
        float32, whose nulls stay null; or `randomized_response`, which answers for nulls too.
    public
        The names of further columns that leave as they are: of numbers, times, truth values, text, bytes, or
        dictionaries of such. A column of scales is read, and leaves only if it is named here.
    block_rows
        The rows of a batch that is returned, from 1 to 2**30. Smaller batches that come in are joined, so that their
        size hardly matters for the time.
    random, threads
        As for `dpfast.laplace`, for each batch. Keys of a `dpfast.testing.SeededRandom` are used batch by batch, in
        the order of the columns, so that the result does not depend on how the rows come in.

    Returns
    -------
    pyarrow.RecordBatchReader
        The noisy and the public columns in the order of the reader. A noisy uint32 column becomes int64.
        Metadata is left out. A dictionary has only the values of its batch.

    Raises
    ------
    ParameterError
        An argument is not allowed: a column is missing, or named twice.
    ColumnError
        A column has a type that cannot be used.

    Notes
    -----
    Reading the result raises `dpfast.errors.DataError` where a noisy column has a NaN or an infinity, or a column of
    scales has no number in the range, and `dpfast.errors.DpfastError` where the rows cannot be read to their end. The
    words are fixed and show no value. Every later read raises them again, so that an end that was not reached is
    not taken for one. These errors depend on the values: clean the columns first, if that must not be known. A forked
    process cannot go on with a stream, since its parent would draw other noise for the same rows.

    Nothing is registered in ``pyarrow.compute``, which takes a function for a pure one: a call on constants is made
    once, so that all rows share a draw, and an expression that stands twice is drawn twice.

    References
    ----------
    As for `dpfast.laplace`, `dpfast.gaussian` and `dpfast.randomized_response`.

    Examples
    --------
    >>> from dpfast.testing import SeededRandom
    >>> rows = pa.table({"id": [1, 2, 3], "n": [10, None, 30], "b": [1.0, 2.0, 4.0]})
    >>> noisy = noisy_stream(rows, {"n": laplace(scale="b")}, public=["id"], random=SeededRandom(1))
    >>> noisy.read_all().column_names
    ['id', 'n']

    """
    of_block = _BLOCK_ROWS.read("block_rows", block_rows)
    threads = THREADS.read_optional("threads", threads)
    source = random_source(random)
    opened = _open(reader)
    schema = opened.schema
    noises, left_as_is = _read_noise(noise, schema), _read_public(public, noise, schema)
    columns = [
        _noisy_column(schema, place, noises[name]) if name in noises else _public_column(schema, place)
        for place, name in enumerate(schema.names)
        if name in noises or name in left_as_is
    ]
    fields = [pa.field(column.name, column.released, schema.field(column.place).nullable) for column in columns]
    blocks = Blocks(opened, columns, pa.schema(fields), of_block, source, threads)
    return pa.RecordBatchReader.from_batches(blocks.schema, blocks)


def _open(reader: Any) -> Any:
    """Return what was given as a RecordBatchReader."""
    if isinstance(reader, pa.RecordBatchReader):
        return reader
    if isinstance(reader, type) or not hasattr(reader, "__arrow_c_stream__"):
        raise ParameterError("reader", reader, _STREAM)
    try:
        return pa.RecordBatchReader.from_stream(reader)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException:
        pass
    # Out here no traceback holds the engine's error, which may quote values.
    raise ParameterError("reader", reader, _STREAM)


def _read_noise(noise: object, schema: Any) -> dict[str, ColumnNoise]:
    allowed = 'a dict of column names with their noise, as in {"n": laplace(scale=10.0)}'
    if not isinstance(noise, Mapping) or not noise:
        raise ParameterError("noise", noise, allowed)
    for name, one in noise.items():
        if not isinstance(name, str) or not isinstance(one, ColumnNoise):
            raise ParameterError("noise", noise, allowed)
        _check_name("noise", name, schema)
        if isinstance(one.scale, str):
            _check_name("noise", one.scale, schema)
    return dict(noise)


def _read_public(public: object, noise: Mapping[str, ColumnNoise], schema: Any) -> set[str]:
    listed = isinstance(public, Sequence) and not isinstance(public, (str, bytes))
    names: list[Any] = list(public) if isinstance(public, Sequence) else []
    if not listed or not all(isinstance(name, str) for name in names):
        raise ParameterError("public", public, 'a list of column names, as in ["day"]')
    for name in names:
        _check_name("public", name, schema)
        if name in noise:
            raise ParameterError("public", name, "without the columns that get noise", "leave it out of one of the two")
    if len(set(names)) < len(names):
        raise ParameterError("public", names, "a list of different names")
    return set(names)


def _check_name(argument: str, name: str, schema: Any) -> None:
    times = schema.names.count(name)
    if not times:
        raise ParameterError(argument, name, "of columns that the reader has")
    if times > 1:
        raise ParameterError(argument, name, "of columns whose name no other column of the reader has", "rename one")


def _noisy_column(schema: Any, place: int, noise: ColumnNoise) -> NoisyColumn:
    field = schema.field(place)
    if noise.kind == "randomized_response":
        return _response_column(field, place, noise)
    dtype = _number_type(field)
    released = pa.int64() if dtype.kind == "u" else field.type
    if isinstance(noise.scale, str):
        scales_place = schema.names.index(noise.scale)
        _number_type(schema.field(scales_place))
        return NoisyColumn(field.name, place, released, noise.kind, None, scales_place)
    # Refuses a scale that is too large for integers.
    lattice_for(dtype, noise.scale, discrete=noise.kind == "laplace")
    return NoisyColumn(field.name, place, released, noise.kind, noise.scale)


def _response_column(field: Any, place: int, noise: ColumnNoise) -> NoisyColumn:
    numbers = isinstance(noise.categories, int)
    allowed = ("int64", "int32", "uint32") if numbers else ("string", "large_string", "string_view")
    if str(field.type) not in allowed:
        raise ColumnError(
            f"randomized response among these categories needs columns of {', '.join(allowed)}, but "
            f"{short_name(field.name)} is of another type; cast it, as in reader.cast(schema)"
        )
    categories = noise.categories if isinstance(noise.categories, int) else len(noise.categories)
    weights = weights_of(Fraction(noise.epsilon, UNITS_PER_ONE), categories)
    listed = None if isinstance(noise.categories, int) else pa.array(noise.categories, pa.large_string())
    return NoisyColumn(field.name, place, field.type, noise.kind, weights=weights, categories=listed)


def _number_type(field: Any) -> Any:
    dtype = None if isinstance(field.type, pa.BaseExtensionType) else _NUMBERS.get(field.type.id)
    if dtype is None:
        raise ColumnError(
            f"noise needs columns of {ACCEPTED}, but {short_name(field.name)} is of another type; cast it, as in "
            "reader.cast(schema)"
        )
    return dtype


def _public_column(schema: Any, place: int) -> PublicColumn:
    field = schema.field(place)
    if not is_flat(field.type):
        raise ColumnError(
            f"public columns hold numbers, times, truth values, text, bytes or dictionaries of such, but "
            f"{short_name(field.name)} does not; take it apart into such columns, or leave it out"
        )
    return PublicColumn(field.name, place, field.type)
