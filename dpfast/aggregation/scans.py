"""Files of one kind as one lazy scan, whose columns all files are known to have."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import polars as pl

from dpfast.aggregation.footers import CommonColumns, find_partition, group_files, read_schemas, shorten_path
from dpfast.aggregation.paths import FilePin, NamedFile, kind_of
from dpfast.aggregation.private import Private
from dpfast.aggregation.protocols import Rows
from dpfast.aggregation.reading_rows import BLOCK_ROWS, Blocks, frame_of_blocks, read_blocks
from dpfast.columns.dtypes import dtype_name
from dpfast.errors import ColumnError, ParameterError

__all__ = ["Source", "scan_files"]

Declared: TypeAlias = "Mapping[str, pl.DataType | type[pl.DataType]]"


@dataclass(frozen=True)
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

    """

    frame: pl.DataFrame | pl.LazyFrame = field(repr=False)
    pins: tuple[FilePin, ...] = ()
    counted: bool = False
    refused: Mapping[str, str] = field(default_factory=dict, repr=False)
    scan_one: Callable[[str], pl.LazyFrame] | None = field(default=None, repr=False)
    blocks: Blocks | None = field(default=None, repr=False)
    rows: Rows | None = field(default=None, repr=False)
    unfiltered: pl.DataFrame | pl.LazyFrame | None = field(default=None, repr=False)

    @classmethod
    def of_rows(cls, rows: Rows) -> Source:
        """Return rows as a frame that is read batch by batch."""
        schema = rows.schema()
        blocks = partial(read_blocks, rows, schema)
        return cls(frame_of_blocks(blocks, schema), refused=rows.refused, blocks=blocks, rows=rows)

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
        casts = {name: _cast(name, schema, pl.Series(dtype=dtype).dtype).alias(name) for name, dtype in dtypes.items()}
        if self.blocks is None:
            return replace(self, frame=_with_casts(self.frame.lazy(), casts))
        after = _with_casts(self.frame.lazy(), casts).collect_schema()
        blocks = partial(_read_cast, self.blocks, casts)
        return replace(self, frame=frame_of_blocks(blocks, after), blocks=blocks)

    def count_known_rows(self) -> int | None:
        """Return how many rows there are before a filter, where the engine knows it without reading them."""
        if not self.counted:
            return None
        frame = self.frame if self.unfiltered is None else self.unfiltered
        return int(frame.lazy().select(pl.len()).collect(engine="streaming").item())

    def schema(self) -> pl.Schema:
        """Return the names and dtypes of the columns."""
        return self.frame.collect_schema()

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


def _cast(name: str, schema: pl.Schema, wanted: pl.DataType) -> pl.Expr:
    """Return a column as another dtype; null where it does not fit."""
    if name not in schema:
        near = difflib.get_close_matches(name, schema.names(), n=3) or schema.names()[:8]
        raise ColumnError(f"cast names the column {name[:60]!r}, which the data lacks; near are {near}")
    held, column = schema[name], pl.col(name)
    if held == wanted:
        return column
    if isinstance(held, (pl.String, pl.Categorical, pl.Enum)):
        return _parse_folder(name, wanted)
    counted = held == pl.Boolean or held.is_integer()
    if (counted or held.is_float()) and wanted.is_numeric() and not wanted.is_decimal():
        return column.cast(wanted, strict=False)
    if counted and wanted in (pl.String, pl.Boolean):
        return column.cast(wanted)
    raise ColumnError(
        f"cannot cast the column {name[:60]!r} of dtype {dtype_name(held)} to {dtype_name(wanted)}: text is cast to "
        "other dtypes, numbers and Booleans to each other, and integers and Booleans to text"
    )


def _with_casts(frame: pl.LazyFrame, casts: Mapping[str, pl.Expr]) -> pl.LazyFrame:
    """Return a frame with columns cast, categories by way of their text."""
    schema = frame.collect_schema()
    texts = [pl.col(name).cast(pl.String) for name in casts if isinstance(schema[name], (pl.Categorical, pl.Enum))]
    return frame.with_columns(texts).with_columns(casts.values())


def _read_cast(blocks: Blocks, casts: Mapping[str, pl.Expr], columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield these columns, some of them cast."""
    asked = {name: casts[name] for name in columns if name in casts}
    for block in blocks(columns):
        yield _with_casts(block.lazy(), asked).collect()


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
        if not os.path.isfile(file.path):
            raise ParameterError("data", file.path, "an existing file")
        try:
            pins.append(FilePin.of(file.path))
        except OSError:
            raise ParameterError("data", file.path, "an existing file") from None
    _refuse_twice([file.path for file in files if file.is_remote], [(pin.state[:2], pin.path) for pin in pins])
    if len(kinds) > 1:
        raise ParameterError("data", [file.path for file in files], "files of one kind")
    kind = kinds.pop()
    if kind == "csv":
        frame, scan_some = _scan_csv(files, schema)
        return Source(frame, tuple(pins), scan_one=scan_some)
    frame, scan_one, refused = _scan_typed(files, kind, schema or {})
    return Source(frame, tuple(pins), counted=True, scan_one=scan_one, refused=refused)


def _refuse_twice(addresses: list[str], places: list[tuple[tuple[int, int], str]]) -> None:
    """Refuse a file that is named twice, by links or by overlapping patterns: one row of it would count as two."""
    met: set[object] = set()
    for identity, path in [*((address, address) for address in addresses), *places]:
        if identity in met:
            raise ParameterError(
                "data", path, "files that are given once each", "is it a link, or named by two patterns? leave it out"
            )
        met.add(identity)


def _scan_typed(
    files: list[NamedFile], kind: str, schema: Declared
) -> tuple[pl.LazyFrame, Callable[[str], pl.LazyFrame], dict[str, str]]:
    """Return a lazy scan of files that know their dtypes, what scans one, and the columns in which they differ."""
    partition, placed = find_partition(files)
    for name in schema:
        if name not in partition:
            raise ParameterError(
                "schema", schema, "left out", "Parquet and Arrow files know their dtypes, apart from columns of folders"
            )
    options: dict[str, Any] = {"glob": False, "hive_partitioning": False}
    if kind == "parquet":
        options["extra_columns"] = "ignore"
    open_scan = pl.scan_parquet if kind == "parquet" else pl.scan_ipc
    scan_one = partial(open_scan, **options)
    schemas = read_schemas(files, kind, scan_one)
    common = CommonColumns.of(files, schemas)
    if partition:
        options = options | {"hive_partitioning": True, "hive_schema": placed, "try_parse_hive_dates": False}
    parsing = [_parse_folder(name, schema.get(name, common.dtypes.get(name))) for name in partition]
    own = {name: dtype for name, dtype in common.dtypes.items() if name not in placed}
    scans = []
    for paths, held in group_files(files, schemas, own, strict=kind == "ipc"):
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


def _parse_folder(name: str, dtype: pl.DataType | type[pl.DataType] | None) -> pl.Expr:
    """Return the text of a folder's name as a dtype; null where it does not parse."""
    wanted = pl.String() if dtype is None else pl.Series(dtype=dtype).dtype
    parsed = _parse_text(name, wanted)
    if parsed is not None:
        return parsed
    if wanted == pl.Boolean:
        text = pl.col(name).str.to_lowercase()
        return pl.when(text.is_in(["true", "false"])).then(text == "true").alias(name)
    return pl.col(name).cast(wanted, strict=False)


def _scan_csv(
    files: list[NamedFile], schema: Declared | None
) -> tuple[pl.LazyFrame, Callable[[str | list[str]], pl.LazyFrame]]:
    """Return a lazy scan of CSV files in which no dtype is inferred and no field can fail, and what scans some."""
    if schema is None:
        raise ColumnError(
            "a CSV file does not know its dtypes, and inferring them would let one row change them; "
            'declare them: schema={"carrier": polars.String, "dep_delay": polars.Float64}'
        )
    try:
        declared = {name: pl.Series(dtype=dtype).dtype for name, dtype in schema.items()}
    except (AttributeError, TypeError):
        declared = {}
    if not declared or any(not isinstance(name, str) or schema[name] is None for name in declared):
        raise ParameterError(
            "schema",
            schema,
            "the dtypes of a CSV file's columns, at least one",
            'write for example schema={"carrier": polars.String}',
        )
    parsed = {name: _parse_text(name, dtype) for name, dtype in declared.items()}

    def scan(paths: str | list[str]) -> pl.LazyFrame:
        return pl.scan_csv(
            paths,
            glob=False,
            # Polars parses numbers itself, field by field; the rest stays text until it is parsed below.
            schema_overrides={name: declared[name] for name, expr in parsed.items() if expr is None},
            infer_schema=False,
            ignore_errors=True,
            truncate_ragged_lines=True,
            encoding="utf8-lossy",
        )

    headers = read_schemas(files, "csv", scan)
    for file, header in zip(files, headers, strict=True):
        for name in declared:
            if name not in header:
                names = header.names()
                near = difflib.get_close_matches(name, names, n=3) or names[:8]
                raise ColumnError(
                    f"schema names the column {name[:60]!r}, which the data lacks in {shorten_path(file.path)}; near "
                    f"are {near}"
                )
    parsing = [pl.col(name) if expr is None else expr for name, expr in parsed.items()]
    groups = group_files(files, headers, {}, strict=True)
    return _together([scan(paths).select(parsing) for paths, _ in groups]), scan


def _parse_text(name: str, dtype: pl.DataType) -> pl.Expr | None:
    """Return how a column of text becomes the dtype, field by field; None where Polars' reader does that.

    The reader would take the format of all dates from the first, so that one row could change the others.
    """
    text = pl.col(name)
    if dtype in (pl.String, pl.Boolean) or (dtype.is_numeric() and not dtype.is_decimal()):
        return None
    if isinstance(dtype, pl.Categorical) and dtype.categories.physical() != pl.UInt32:
        raise ColumnError(
            f"schema declares the column {name!r} as a Categorical with room for few categories, which the data "
            "could exceed; declare it String"
        )
    if isinstance(dtype, (pl.Categorical, pl.Enum)):
        return text.cast(dtype, strict=False)
    if dtype == pl.Date:
        return text.str.to_date("%Y-%m-%d", strict=False)
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is None:
        spaced = text.str.replace("T", " ", literal=True)
        coarse, moment = (
            spaced.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit=unit, strict=False)
            for unit in ("ms", dtype.time_unit)
        )
        # Polars wraps a moment that nanoseconds cannot hold into another year.
        held = pl.when(coarse.cast(dtype, strict=False).is_not_null()).then(moment)
        return pl.coalesce(held, text.str.to_date("%Y-%m-%d", strict=False).cast(dtype, strict=False)).alias(name)
    raise ColumnError(
        f"schema declares the column {name!r} with dtype {dtype}, which is not read from CSV: declare numbers, "
        "Boolean, String, Categorical, Enum, Date or Datetime without a time zone"
    )
