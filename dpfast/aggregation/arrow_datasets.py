"""Arrow datasets and their scanners as rows that are read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from dpfast.aggregation.arrow_streams import ArrowStream, polars_schema
from dpfast.aggregation.footers import common_dtype, shorten_path
from dpfast.aggregation.paths import FilePin
from dpfast.aggregation.private import Private
from dpfast.errors import ColumnError, FileError, Words

__all__ = ["find_dataset"]

_BATCH_ROWS, _BATCHES_AHEAD, _FILES_AHEAD = 1 << 17, 2, 1
#: Formats whose files say the types of their columns; of CSV and JSON they are inferred from the first rows.
_TYPED = ("parquet", "arrow", "feather", "orc")


def find_dataset(data: Any, module: Any) -> ArrowDataset | ArrowStream | None:
    """Return the rows of a dataset or scanner of ``pyarrow.dataset``, the module, or None for anything else.

    Raises
    ------
    ColumnError, ParameterError
        If it cannot be read, or its types are inferred from rows.

    """
    if isinstance(data, module.Scanner):
        return _scanned_rows(data)
    return ArrowDataset(data) if isinstance(data, module.Dataset) else None


class ArrowDataset(Private):
    """The rows of a dataset of files, of whose footers all are read here.

    Parameters
    ----------
    data
        A ``pyarrow.dataset.Dataset``.

    Raises
    ------
    ColumnError
        If two columns have one name.
    ParameterError
        If a file cannot be opened, or its types are inferred from its rows.

    """

    repeatable = True

    def __init__(self, data: Any) -> None:
        self._data = data
        self._schema, refused = polars_schema(data.schema, type(data).__name__)
        files = _open_files(data)
        self._dtypes = {field.name: field.type for field in data.schema}
        places = [_local_path(file) for file in files]
        self.pins = tuple(FilePin.of(path) for path in places if path is not None)
        # A Parquet file is read ahead as a whole, which pays where it is far away.
        formats = {file.format.default_extname for file in files}
        self._buffers_nothing = formats == {"parquet"} and len(self.pins) == len(files)
        for file in files:
            refused = self._differences(file) | refused
        self.refused: Mapping[str, str] = refused

    def schema(self) -> pl.Schema:
        """Return the columns that Polars can hold."""
        return self._schema

    def check(self) -> None:
        """Refuse nothing: whether its files changed is seen by their pins."""

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the rows of one file after another, as many as fit into a few batches at a time."""
        import pyarrow.dataset as ds

        options = ds.ParquetFragmentScanOptions(pre_buffer=False) if self._buffers_nothing else None
        scanner = self._data.scanner(
            columns={name: ds.field(name) for name in columns},
            batch_size=_BATCH_ROWS,
            batch_readahead=_BATCHES_AHEAD,
            fragment_readahead=_FILES_AHEAD,
            fragment_scan_options=options,
        )
        yield from scanner.to_batches()

    def _differences(self, file: Any) -> dict[str, str]:
        """Return the columns that a file lacks, or has of a type that a value might not survive."""
        import pyarrow.dataset as ds

        held = {field.name: field.type for field in file.physical_schema}
        placed = ds.get_partition_keys(file.partition_expression)
        lines = {}
        for name, wanted in self._dtypes.items():
            if name in placed:
                continue
            if name not in held:
                lines[name] = f"is missing from the file {shorten_path(file.path)}; add it there"
            elif not _widens(held[name], wanted):
                lines[name] = (
                    f"is of type {str(held[name])[:60]} in the file {shorten_path(file.path)}, but of "
                    f"{str(wanted)[:60]} in the dataset; cast it in one, or give the paths as data"
                )
        return {name: f"the column {name[:60]!r} {line}" for name, line in lines.items()}


def _scanned_rows(scanner: Any) -> ArrowStream:
    """Return the rows of a scanner, which begins to read when the first of them is asked for."""
    import pyarrow as pa

    def batches() -> Iterator[Any]:
        yield from scanner.to_reader()

    return ArrowStream(pa.RecordBatchReader.from_batches(scanner.projected_schema, batches()), scanner)


def _open_files(data: Any) -> list[Any]:
    """Return the files of a dataset, whose footers are read here, or refuse the first that cannot be opened."""
    import pyarrow.dataset as ds

    files: list[Any] = []
    path, opened = "", True
    try:
        # A dataset with a filter does not tell its files; a union of it alone has no filter.
        for fragment in ds.UnionDataset(data.schema, [data]).get_fragments():
            if hasattr(fragment, "format"):  # others are in memory
                path = fragment.path
                files.append(fragment)
                if fragment.format.default_extname not in _TYPED:
                    break
                opened = fragment.physical_schema is not None
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except Exception:
        opened = False
    # Out here no traceback holds the library's error.
    if not opened:
        raise FileError("data", path or Words("a dataset"), "files that can be opened as the dataset's format")
    if files and files[-1].format.default_extname not in _TYPED:
        raise ColumnError(
            f"the dataset's file {shorten_path(path)} does not know its types, and inferring them would let one row "
            "change them; give the paths as data, and their schema"
        )
    return files


def _local_path(file: Any) -> str | None:
    """Return where a dataset's file lies on this machine, or None if it is elsewhere."""
    path, system = file.path, file.filesystem
    while system is not None and system.type_name == "subtree":
        path, system = f"{system.base_path.rstrip('/')}/{path}", system.base_fs
    return path if system is not None and system.type_name == "local" else None


def _widens(held: Any, wanted: Any) -> bool:
    """Return whether every value of an Arrow type is one of another, so that no row can make a cast fail."""
    import pyarrow as pa

    if held == wanted:
        return True
    if pa.types.is_string(held) and pa.types.is_large_string(wanted):
        return True
    if pa.types.is_null(held):
        return True
    numbers = [kind for kind in (held, wanted) if pa.types.is_integer(kind) or pa.types.is_floating(kind)]
    if len(numbers) < 2:
        return False
    first, second = (pl.Series(pa.array([], kind)).dtype for kind in numbers)
    return common_dtype([first, second]) == second
