"""The footers and headers of all files of a source: read before any row, and fitted to one schema.

Files that a release reads together were often written months apart. A column serves if every file has it with a
dtype that one common dtype holds without loss; whether it does is known from the footers alone, so that a file that
differs is refused, by its name, before anything is charged.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import polars as pl

from dpfast.aggregation.addresses import reason_of_reader, shown_path
from dpfast.aggregation.paths import NamedFile
from dpfast.columns.dtypes import dtype_name
from dpfast.errors import FileError, ParameterError, Words

__all__ = ["CommonColumns", "common_dtype", "find_partition", "group_files", "read_schemas", "shorten_path"]

_MAGIC = {
    "parquet": (b"PAR1", "a Parquet file"),
    "ipc": (b"ARROW1", "an Arrow file"),
    "avro": (b"Obj\x01", "an Avro file"),
}
_READERS = 8
#: Seconds that a file takes, on average, before several are read at a time; on a local disk it is a tenth of that.
_SLOW = 1e-3
_MOST_GROUPS = 64
_FLOATS = {16: getattr(pl, "Float16", pl.Float32), 32: pl.Float32, 64: pl.Float64}
_SIGNED = {8: pl.Int8, 16: pl.Int16, 32: pl.Int32, 64: pl.Int64}
_UNSIGNED = {8: pl.UInt8, 16: pl.UInt16, 32: pl.UInt32, 64: pl.UInt64}


def read_schemas(files: Sequence[NamedFile], kind: str, scan: Callable[[str], pl.LazyFrame]) -> list[pl.Schema]:
    """Return every file's own schema, the same object for equal ones that follow each other.

    A file of a fast disk is read in less time than a thread takes to be handed it: files are read here, one after the
    other, as long as that is so, and several at a time where they are not.

    Raises
    ------
    ParameterError
        Of the first file that cannot be opened: gone, not to be read, empty, cut short, or of another format.

    """

    def read(file: NamedFile) -> pl.Schema:
        if not file.is_remote:
            _check_beginning(file.path, kind)
        try:
            return scan(file.path).collect_schema()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            reason = reason_of_reader(file.path, error)
        # Out here no traceback holds the engine's report.
        raise _unusable(file.shown, f"that can be opened ({reason})", "is it cut short? write it again or leave it out")

    def merged(schemas: Iterable[pl.Schema]) -> None:
        for schema in schemas:
            same = bool(found) and list(found[-1].items()) == list(schema.items())
            found.append(found[-1] if same else schema)

    found: list[pl.Schema] = []
    begun = time.perf_counter()
    for file in files:
        if len(files) > 1 and (file.is_remote or time.perf_counter() - begun > _SLOW * (len(found) + 1)):
            break
        merged([read(file)])
    if len(found) < len(files):
        with ThreadPoolExecutor(_READERS) as pool:
            futures = [pool.submit(read, file) for file in files[len(found) :]]
            try:
                merged(future.result() for future in futures)
            finally:
                for future in futures:
                    future.cancel()
    return found


def _check_beginning(path: str, kind: str) -> None:
    """Refuse a file that cannot be read, is empty, or begins unlike its format."""
    try:
        with open(path, "rb", buffering=0) as opened:
            beginning = opened.read(8)
    except FileNotFoundError:
        raise _unusable(path, "that exists") from None
    except OSError as error:
        raise _unusable(path, f"that this process may read ({os.strerror(error.errno or 0)})") from None
    if not beginning:
        raise _unusable(path, "that is not empty (0 bytes)", "leave it out, or write it again")
    if kind in _MAGIC and not beginning.startswith(_MAGIC[kind][0]):
        raise FileError(
            "data", path, f"{_MAGIC[kind][1]}, as its name says", "rename it, write it again, or leave it out"
        )


def _unusable(path: str, allowed: str, mend: str = "") -> FileError:
    return FileError("data", path, f"a file {allowed}", mend)


def _alike(files: Sequence[NamedFile], schemas: Sequence[pl.Schema]) -> Iterator[tuple[Sequence[NamedFile], pl.Schema]]:
    """Yield files that follow each other and share a schema: comparing dtypes takes as long as reading them."""
    start = 0
    for stop in range(1, len(files) + 1):
        if stop == len(files) or schemas[stop] is not schemas[start]:
            yield files[start:stop], schemas[start]
            start = stop


@dataclass(frozen=True)
class CommonColumns:
    """The columns that all files have, and why others do not serve.

    Attributes
    ----------
    dtypes
        Names and common dtypes, in the order of the first file.
    refused
        For every other column one line that names two files in which it differs.

    """

    dtypes: dict[str, pl.DataType]
    refused: dict[str, str]

    @classmethod
    def of(cls, files: Sequence[NamedFile], schemas: Sequence[pl.Schema]) -> CommonColumns:
        """Find the common columns of files with these schemas."""
        distinct: dict[tuple[Any, ...], tuple[str, pl.Schema]] = {}
        for (file, *_), schema in _alike(files, schemas):
            distinct.setdefault(tuple(schema.items()), (file.path, schema))
        dtypes, refused = {}, {}
        names = dict.fromkeys(name for _, schema in distinct.values() for name in schema)
        for name in names:
            lacks = [path for path, schema in distinct.values() if name not in schema]
            has = [(path, schema[name]) for path, schema in distinct.values() if name in schema]
            common = common_dtype(dtype for _, dtype in has)
            if lacks:
                refused[name] = (
                    f"the column {name[:60]!r} is missing from the file {shorten_path(lacks[0])}, while "
                    f"{shorten_path(has[0][0])} has it; add it there, or leave one of them out"
                )
            elif common is None:
                path, dtype = has[0]
                other, unlike = next(
                    (pair for pair in has if common_dtype([dtype, pair[1]]) is None),
                    next(pair for pair in has if pair[1] != dtype),
                )
                refused[name] = (
                    f"the column {name[:60]!r} is of dtype {dtype_name(dtype)[:60]} in the file {shorten_path(path)}, "
                    f"but of {dtype_name(unlike)[:60]} in {shorten_path(other)}; no dtype holds both without loss: "
                    "cast it in one"
                )
            else:
                dtypes[name] = common
        return cls(dtypes, refused)


def shorten_path(path: str) -> str:
    """Return the end of a path, which says most, in quotes."""
    path = shown_path(path)
    return repr(path if len(path) <= 80 else f"...{path[-77:]}")


def common_dtype(dtypes: Iterable[pl.DataType]) -> pl.DataType | None:
    """Return the dtype that holds all values of these dtypes without loss, or None.

    Integers widen to integers of at most 64 bits, floats to floats, and integers to floats with enough digits;
    decimals become decimals of up to 38 digits; strings, categoricals and enums become strings; a column without values
    (Null) fits all. Dates do not become moments, nor moments ones of another unit or zone: Polars' own casts between
    these may overflow.
    """
    found = {dtype for dtype in dtypes if dtype != pl.Null}
    if len(found) < 2:
        return next(iter(found), pl.Null())
    if all(isinstance(dtype, (pl.String, pl.Categorical, pl.Enum)) for dtype in found):
        return pl.String()
    decimals = [dtype for dtype in found if isinstance(dtype, pl.Decimal)]
    if len(decimals) == len(found):
        scale = max(dtype.scale for dtype in decimals)
        digits = scale + max((dtype.precision or 38) - dtype.scale for dtype in decimals)
        return pl.Decimal(digits, scale) if digits <= 38 else None
    widths = [_width(dtype) for dtype in found]
    signed = max((bits for kind, bits in filter(None, widths) if kind == "signed"), default=0)
    unsigned = max((bits for kind, bits in filter(None, widths) if kind == "unsigned"), default=0)
    floating = max((bits for kind, bits in filter(None, widths) if kind == "float"), default=0)
    if None in widths:
        return None
    if floating:
        # A float of 2n bits holds all integers of n bits: 11, 24 and 53 binary digits.
        bits = max(floating, 2 * max(signed, unsigned))
        return _FLOATS[bits]() if bits in _FLOATS else None
    if not signed:
        return _UNSIGNED[unsigned]()
    bits = max(signed, 2 * unsigned)
    return _SIGNED[bits]() if bits in _SIGNED else None


def _width(dtype: pl.DataType) -> tuple[str, int] | None:
    """Return whether numbers of a dtype are signed, unsigned or floats, and their bits; None for other dtypes."""
    for kind, family in (("signed", _SIGNED), ("unsigned", _UNSIGNED), ("float", _FLOATS)):
        for bits, member in family.items():
            if dtype == member:
                return kind, bits
    return None


def group_files(
    files: Sequence[NamedFile], schemas: Sequence[pl.Schema], dtypes: dict[str, pl.DataType], *, strict: bool
) -> list[tuple[list[str], pl.Schema]]:
    """Return the files that one scan reads together: those in which the common columns have the same dtypes.

    ``strict``: those which have the same columns altogether, where a scan takes no others.
    """
    groups: dict[tuple[Any, ...], tuple[list[str], pl.Schema]] = {}
    for some, schema in _alike(files, schemas):
        like = tuple(schema.items()) if strict else tuple(schema[name] for name in dtypes)
        groups.setdefault(like, ([], schema))[0].extend(file.path for file in some)
    if len(groups) > _MOST_GROUPS:
        raise ParameterError(
            "data",
            Words(f"files of {len(groups)} different schemas"),
            f"files of at most {_MOST_GROUPS} different schemas",
            "write them again with one schema: the same columns, in the same order, of the same dtypes",
        )
    return list(groups.values())


def find_partition(files: Sequence[NamedFile]) -> tuple[tuple[str, ...], dict[str, pl.DataType]]:
    """Return the columns that the files' folders name, and all that Polars will find in their paths, as text.

    Raises
    ------
    ParameterError
        If the folders of one file name other columns than those of the first.

    """
    first = files[0].partition
    if not any(file.partition for file in files):
        return (), {}
    names: list[str] = []
    for file in files:
        folders = [folder for folder in file.path.split("/")[:-1] if "=" in folder]
        names = [folder.partition("=")[0] for folder in folders]
        plain = all(folder.count("=") == 1 for folder in folders) and len(set(names)) == len(names) and "" not in names
        above = [folder.partition("=")[0] for folder in files[0].path.split("/")[:-1] if "=" in folder]
        if file.partition != first or names != above or not plain:
            raise ParameterError(
                "data",
                file.path,
                f"in folders that name the columns {list(first)} once each, as the first file is",
                "move it, or give the files as a list, which takes no columns from folders",
            )
    return first, dict.fromkeys(names, pl.String())
