"""Records into files, part by part: no more than a part is in memory, and a file is there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

import polars as pl

from dpfast.errors import ParameterError
from dpfast.progress import TerminalLine

__all__ = ["RECORD_SUFFIXES", "check_suffix", "shown_on_terminal", "told", "write_frames"]

_ARROW = (".arrow", ".ipc", ".feather")
#: What a file of records may end in.
RECORD_SUFFIXES = (".parquet", *_ARROW, ".csv", ".ndjson")


def check_suffix(path: object) -> Path:
    """Return a path whose suffix says how records are written."""
    if not isinstance(path, (str, Path)) or Path(path).suffix.lower() not in RECORD_SUFFIXES:
        raise ParameterError("path", path, f"a file's name that ends in one of {', '.join(RECORD_SUFFIXES)}")
    if not Path(path).parent.is_dir():
        raise ParameterError("path", path, "in a folder that exists", "create the folder first")
    return Path(path)


def write_frames(frames: Iterable[pl.DataFrame], path: Path) -> int:
    """Write frames of one schema, at least one, one after the other into one file; return how many rows there are.

    They are written beside the path, and moved there when all are written.
    """
    part = path.with_name(f".{path.stem[:100]}.{secrets.token_hex(6)}.part{path.suffix}")
    rows = 0
    try:
        with ExitStack() as opened:
            write: Callable[[pl.DataFrame], object] | None = None
            for frame in frames:
                write = write or _opened(part, frame, opened)
                write(frame)
                rows += frame.height
        os.replace(part, path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return rows


def _opened(path: Path, first: pl.DataFrame, opened: ExitStack) -> Callable[[pl.DataFrame], object]:
    """Open a file for frames like the first one, and return what writes one of them."""
    suffix = path.suffix.lower()
    if suffix in (".csv", ".ndjson"):
        file: IO[bytes] = opened.enter_context(path.open("wb"))
        if suffix == ".ndjson":
            return lambda frame: frame.write_ndjson(file)
        file.write(first.clear().write_csv().encode())
        # CSV has no durations; in NDJSON they are in ISO 8601, too.
        durations = pl.selectors.duration().dt.to_string("iso")
        return lambda frame: frame.with_columns(durations).write_csv(file, include_header=False)
    schema = _arrow(first.clear()).schema
    if suffix in _ARROW:
        import pyarrow.ipc

        writer: Any = opened.enter_context(pyarrow.ipc.new_file(str(path), schema))
    else:
        import pyarrow.parquet

        writer = opened.enter_context(pyarrow.parquet.ParquetWriter(str(path), schema, compression="zstd"))
    return lambda frame: writer.write_table(_arrow(frame))


def _arrow(frame: pl.DataFrame) -> Any:
    """Return an Arrow table of types that every reader knows."""
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def told(frames: Iterable[pl.DataFrame], progress: Callable[[int], object]) -> Iterator[pl.DataFrame]:
    """Give frames on, and call ``progress`` with how many rows were taken so far."""
    done = 0
    for frame in frames:
        yield frame
        done += frame.height
        progress(done)


def shown_on_terminal(frames: Iterable[pl.DataFrame], records: int | None) -> Iterator[pl.DataFrame]:
    """Give frames on, and say on a terminal how many records there were."""
    of_all = "" if records is None else f" of {records:,}"
    with TerminalLine() as line:
        yield from told(frames, lambda done: line(f"{done:,}{of_all} records written"))
