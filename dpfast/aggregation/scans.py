"""Files of one kind as one lazy scan, whose columns all files are known to have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import polars as pl

from dpfast.aggregation.addresses import answer_of_store, shown_path
from dpfast.aggregation.avro import scan_avro
from dpfast.aggregation.casting import cast_column, cast_text, read_cast, with_casts
from dpfast.aggregation.csv_fields import CsvFields, Declared
from dpfast.aggregation.footers import CommonColumns, find_partition, group_files, read_schemas
from dpfast.aggregation.paths import FilePin, NamedFile, kind_of
from dpfast.aggregation.private import Private
from dpfast.aggregation.protocols import Rows
from dpfast.aggregation.reading_rows import BLOCK_ROWS, Blocks, frame_of_blocks, read_blocks
from dpfast.aggregation.remembering import Remembered
from dpfast.errors import ColumnError, DpfastError, FileError, ParameterError, Words

__all__ = ["Source", "scan_files"]

_READERS: Mapping[str, Callable[..., pl.LazyFrame]] = {
    "parquet": pl.scan_parquet,
    "ipc": pl.scan_ipc,
    "avro": scan_avro,
}


@dataclass(frozen=True, repr=False)
class Source(Private):
    """Data as a Polars frame, with what is needed to notice that its files changed.

    Attributes
    ----------
    frame
        A DataFrame for what is in memory, a LazyFrame for files.
    pins
        The files that are scanned, as they were before their schema was read; none of a user's own LazyFrame.
    counted
        Whether the engine knows the number of rows without reading them (Parquet and Arrow files).
    refused
        Columns that some files have and others lack, or have of another kind, with the line that says so.
    scan_one
        Opens one of the files by itself, with its own columns.
    blocks
        What reads the rows of the frame block by block, where that is no library's frame and no file.
    rows
        What supplies those, to be checked before the charge.
    unfiltered
        The frame with all rows, where ``frame`` and ``blocks`` have those that pass a filter.
    remembered
        What is kept from one reading of the rows to the next, where a release reads them more than once.

    """

    frame: pl.DataFrame | pl.LazyFrame = field(repr=False)
    pins: tuple[FilePin, ...] = ()
    counted: bool = False
    refused: Mapping[str, str] = field(default_factory=dict, repr=False)
    scan_one: Callable[[str], pl.LazyFrame] | None = field(default=None, repr=False)
    blocks: Blocks | None = field(default=None, repr=False)
    rows: Rows | None = field(default=None, repr=False)
    unfiltered: pl.DataFrame | pl.LazyFrame | None = field(default=None, repr=False)
    remembered: Remembered | None = field(default=None, repr=False)

    @classmethod
    def of_rows(cls, rows: Rows, pins: tuple[FilePin, ...] = ()) -> Source:
        """Return rows as a frame that is read batch by batch, from files that must not change."""
        schema = rows.schema()
        blocks = partial(read_blocks, rows, schema)
        return cls(frame_of_blocks(blocks, schema), pins, refused=rows.refused, blocks=blocks, rows=rows)

    @property
    def repeatable(self) -> bool:
        """Whether the frame can be read more than once."""
        return self.rows is None or self.rows.repeatable

    def filtered(self, passes: pl.Expr) -> Source:
        """Return the rows for which a total expression is true; none is read before these are."""
        if self.blocks is None:
            return replace(self, frame=self.frame.lazy().filter(passes), unfiltered=self.frame)
        blocks = partial(_read_passing, self.blocks, passes)
        frame = frame_of_blocks(blocks, self.schema())
        return replace(self, frame=frame, blocks=blocks, unfiltered=self.frame)

    def cast(self, dtypes: Declared) -> Source:
        """Return the same rows with columns of other dtypes; a value that does not fit becomes null, and none fails.

        Text becomes a number, a Boolean, a date or a moment where it is written as one (see `open_source`); a float
        loses its fraction in a column of integers; a number beyond the dtype's range is null.

        Raises
        ------
        ColumnError
            A column is missing, or cannot become the dtype.

        """
        if not dtypes:
            return self
        self.require(dtypes)
        schema = self.schema()
        casts = {
            name: cast_column(name, schema, pl.Series(dtype=dtype).dtype).alias(name) for name, dtype in dtypes.items()
        }
        if self.blocks is None:
            return replace(self, frame=with_casts(self.frame.lazy(), casts))
        after = with_casts(self.frame.lazy(), casts).collect_schema()
        blocks = partial(read_cast, self.blocks, casts)
        return replace(self, frame=frame_of_blocks(blocks, after), blocks=blocks)

    def count_known_rows(self) -> int | None:
        """Return how many rows there are before a filter, where the engine knows it without reading them."""
        if not self.counted:
            return None
        frame = self.frame if self.unfiltered is None else self.unfiltered
        return int(frame.lazy().select(pl.len()).collect(engine="streaming").item())

    def schema(self) -> pl.Schema:
        """Return the names and dtypes of the columns, which are found once.

        Raises
        ------
        ParameterError
            If Polars cannot tell them, of a user's own LazyFrame.

        """
        return self._schema

    @cached_property
    def _schema(self) -> pl.Schema:
        try:
            return self.frame.collect_schema()
        except (MemoryError, DpfastError):
            raise
        except (Exception, pl.exceptions.PanicException) as error:
            kind = type(error).__name__
            reason = answer_of_store(error) if isinstance(error, (OSError, pl.exceptions.ComputeError)) else None
        # Out here no traceback holds the engine's report, which may quote what opens a store.
        given = Words(f"one of which Polars does not know them ({reason or kind})")
        raise ParameterError("data", given, "a frame of known columns", "data.collect_schema() shows Polars' report")

    def check(self) -> None:
        """Refuse files that changed since they were opened, and rows that cannot be read.

        Raises
        ------
        ParameterError
            If a file was replaced, written to, removed, or may no longer be read.

        """
        changed = self.changed()
        if changed is not None:
            raise ParameterError("data", changed, "a file that did not change since the plan", "plan again")
        if self.rows is not None:
            self.rows.check()

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield Arrow record batches of these columns, in order."""
        frames = self.frame.lazy().select(columns).collect_batches(chunk_size=BLOCK_ROWS, engine="streaming")
        return (batch for frame in frames for batch in frame.to_arrow().to_batches())

    def changed(self) -> str | None:
        """Return the first file that changed since it was opened, or None."""
        return next((pin.path for pin in self.pins if not pin.holds()), None)

    def damaged(self) -> str | None:
        """Return the first file that cannot be read to its end by itself, or None; reads all columns of all before."""
        if self.scan_one is not None:
            for pin in self.pins:
                try:
                    self.scan_one(pin.path).sink_batches(lambda batch: None, engine="streaming")
                except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
                    return pin.path
        return None

    def require(self, names: Iterable[str | None]) -> None:
        """Refuse columns in which the files differ.

        Raises
        ------
        ColumnError
            If a column is missing from one of the files, or its dtypes have no common one: both files are named.

        """
        for name in names:
            if isinstance(name, str) and name in self.refused:
                raise ColumnError(self.refused[name])


def _read_passing(blocks: Blocks, passes: pl.Expr, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield these columns of the rows that pass."""
    needed = list(dict.fromkeys([*columns, *passes.meta.root_names()]))
    for block in blocks(needed):
        yield block.filter(passes).select(columns)


def scan_files(files: list[NamedFile], schema: Declared | None) -> Source:
    """Return a lazy scan of files of one kind, all of whose footers or headers are read; see `open_source`."""
    kinds = {kind_of(file.path) for file in files}
    pins = []
    for file in files:
        if file.is_remote:
            continue
        try:
            pins.append(FilePin.of(file.path))
        except (OSError, ValueError):
            raise FileError("data", file.path, "an existing file") from None
    _refuse_twice([file.path for file in files if file.is_remote], [(pin.state[:2], pin.path) for pin in pins])
    if len(kinds) > 1:
        raise ParameterError("data", [file.shown for file in files], "files of one kind")
    kind = kinds.pop()
    if kind == "csv":
        frame, scan_some = _scan_csv(files, schema)
        return Source(frame, tuple(pins), scan_one=scan_some)
    frame, scan_one, refused = _scan_typed(files, kind, schema or {})
    return Source(frame, tuple(pins), counted=kind != "avro", scan_one=scan_one, refused=refused)


def _refuse_twice(addresses: list[str], places: list[tuple[tuple[int, int], str]]) -> None:
    """Refuse a file that is named twice, by links or by overlapping patterns: one row of it would count as two."""
    met: set[object] = set()
    for identity, path in [*((address, address) for address in addresses), *places]:
        if identity in met:
            mend = "is it a link, or named by two patterns? leave it out"
            raise ParameterError("data", shown_path(path), "files that are given once each", mend)
        met.add(identity)


def _scan_typed(
    files: list[NamedFile], kind: str, schema: Declared
) -> tuple[pl.LazyFrame, Callable[[str], pl.LazyFrame], dict[str, str]]:
    """Return a lazy scan of files that know their dtypes, what scans one, and the columns in which they differ."""
    # What scans Avro files takes no columns from folders.
    partition, placed = find_partition(files) if kind != "avro" else ((), {})
    if unknown := [name for name in schema if name not in partition]:
        allowed = "left out for Parquet, Arrow and Avro files, which know their dtypes, apart from columns of folders"
        mend = "leave it out; where another dtype is wanted, cast the column"
        raise ParameterError("schema", unknown, allowed, mend)
    options: dict[str, Any] = {} if kind == "avro" else {"glob": False, "hive_partitioning": False}
    if kind == "parquet":
        options["extra_columns"] = "ignore"
    open_scan = _READERS[kind]
    scan_one = partial(open_scan, **options)
    schemas = read_schemas(files, kind, scan_one)
    common = CommonColumns.of(files, schemas)
    if partition:
        options = options | {"hive_partitioning": True, "hive_schema": placed, "try_parse_hive_dates": False}
    parsing = [cast_text(name, schema.get(name, common.dtypes.get(name))) for name in partition]
    own = {name: dtype for name, dtype in common.dtypes.items() if name not in placed}
    scans = []
    for paths, held in group_files(files, schemas, own, strict=kind != "parquet"):
        scan = open_scan(paths, **options)
        if partition or len(files) > 1:
            scan = scan.select([_widen(name, held[name], dtype) for name, dtype in own.items()] + parsing)
        scans.append(scan)
    refused = {name: line for name, line in common.refused.items() if name not in partition}
    return _together(scans), scan_one, refused


def _widen(name: str, held: pl.DataType, dtype: pl.DataType) -> pl.Expr:
    if name == "*" or (name.startswith("^") and name.endswith("$")):
        # Polars would take it for a pattern; such a column is refused where it is used.
        return pl.lit(None, dtype).alias(name)
    return pl.col(name) if held == dtype else pl.col(name).cast(dtype)


def _together(scans: list[pl.LazyFrame]) -> pl.LazyFrame:
    return scans[0] if len(scans) == 1 else pl.concat(scans, how="vertical")


def _scan_csv(files: list[NamedFile], schema: Declared | None) -> tuple[pl.LazyFrame, Callable[[str], pl.LazyFrame]]:
    """Return a lazy scan of CSV files in which no dtype is inferred and no field can fail, and what scans one."""
    fields = CsvFields.of(schema)
    headers = read_schemas(files, "csv", fields.scan)
    for file, header in zip(files, headers, strict=True):
        fields.check(header.names(), file.path)
    groups = group_files(files, headers, {}, strict=True)
    return _together([fields.parse(fields.scan(paths)) for paths, _ in groups]), fields.scan
