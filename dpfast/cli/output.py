"""Where a release is written: checked before the charge, written whole or not at all, never lost after it."""

from __future__ import annotations

import errno
import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpfast.cli.documents import refuse_two_outputs
from dpfast.cli.errors import CommandError, FileTroubleError, reason_of, tell
from dpfast.cli.terminal import is_closed, is_left

if TYPE_CHECKING:
    import polars as pl

    from dpfast.cli.options import Destination
    from dpfast.synthesis.synthesis import Synthesis

__all__ = ["FRAME_SUFFIXES", "Outputs", "Target", "chart_target", "page_target", "write_frame"]

#: What a release's file may end in, and the method that writes it; all others are Arrow files.
_WRITERS = {".parquet": "write_parquet", ".csv": "write_csv", ".json": "write_json", ".ndjson": "write_ndjson"}
FRAME_SUFFIXES = (*_WRITERS, ".arrow", ".ipc", ".feather")
#: Characters that are written to standard output at once.
_PIECE = 2**15


class Target:
    """A file that will be written: its place is taken before the charge, and its content moved in at once.

    Parameters
    ----------
    path
        The file.
    option
        The option that names it, for messages.
    suffixes
        What it may end in.
    overwrite
        Whether a file that exists may be replaced.
    keep
        Files that must not be replaced in any case: the data, the keys, the ledger.

    Raises
    ------
    CommandError
        The suffix is unknown.
    FileTroubleError
        The file exists, or its folder is missing or cannot be written.

    """

    def __init__(
        self, path: str, option: str, suffixes: Sequence[str], *, overwrite: bool, keep: Sequence[str] = ()
    ) -> None:
        self.path = Path(path)
        self._overwrite = overwrite
        suffix = self.path.suffix.lower()
        if suffix not in suffixes:
            raise CommandError(f"{option} {path!r} must end in one of {', '.join(suffixes)}")
        folder = self.path.parent
        if not folder.is_dir():
            raise FileTroubleError(f"the folder {str(folder)!r} of {option} does not exist; create it first")
        if self.path.is_dir():
            raise FileTroubleError(f"{option} {path!r} is a folder; give a file's name")
        if self.path.exists() and not overwrite:
            raise FileTroubleError(f"{option} {path!r} exists; give another name, or --overwrite")
        self._kept = tuple(other for other in keep if other)
        if self._is_kept():
            raise FileTroubleError(f"{option} {path!r} is read or written by this command; give another name")
        # Writing the real file shows best whether it can be written; the name keeps the suffix, which tells the kind
        # of chart.
        self._part = folder / f".{self.path.stem[:100]}.{secrets.token_hex(6)}.part{suffix}"
        try:
            with open(self._part, "xb"):
                pass
        except OSError as error:
            raise FileTroubleError(
                f"{option} {path!r} cannot be written ({error.strerror}); choose a folder that can be"
            ) from None

    def _is_kept(self) -> bool:
        """Whether the target is one of the files to be kept: some of them may only be made meanwhile."""
        place = os.path.realpath(self.path)
        return any(
            os.path.realpath(other) == place
            or (os.path.exists(other) and os.path.exists(place) and os.path.samefile(other, place))
            for other in self._kept
        )

    def save(self, write: Callable[[Path], object]) -> None:
        """Let ``write`` fill a file beside the target, then put it in the target's place.

        Raises
        ------
        Exception
            What ``write`` raises; FileExistsError where somebody made the file meanwhile.

        """
        write(self._part)
        with open(self._part, "rb") as file:
            os.fsync(file.fileno())
        if not self._overwrite and self.path.exists():
            raise FileExistsError(17, "somebody created it meanwhile", str(self.path))
        if self._is_kept():
            raise FileExistsError(17, "it is read or written by this command", str(self.path))
        os.replace(self._part, self.path)

    def discard(self) -> None:
        """Remove what is unfinished."""
        with suppress(OSError):
            self._part.unlink(missing_ok=True)


class Outputs:
    """The places of a release, of its chart and of its page, taken before the charge and given back if nothing comes.

    Parameters
    ----------
    destination
        The files, as they were written; ``-`` is standard output.
    keep
        Files that must not be replaced in any case, beside the ledger.

    """

    def __init__(self, destination: Destination, keep: Sequence[str]) -> None:
        self.frame: Target | None = None
        self.chart: Target | None = None
        self.page: Target | None = None
        out, plot, overwrite = destination.out, destination.plot, destination.overwrite
        keep = (*keep, destination.ledger)
        refuse_two_outputs(out)
        try:
            self.chart = chart_target(plot, overwrite=overwrite, keep=keep)
            if destination.report is not None:
                self.page = page_target(destination.report, "--report", overwrite=overwrite, keep=keep)
            if out == "-":
                if is_closed(sys.stdout):
                    raise FileTroubleError("standard output is closed; give --out FILE")
            else:
                self.frame = Target(out, "--out", FRAME_SUFFIXES, overwrite=overwrite, keep=keep)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Outputs:
        return self

    def __exit__(self, *_: object) -> None:
        for target in (self.frame, self.chart, self.page):
            if target is not None:
                target.discard()

    def save_frame(self, frame: pl.DataFrame, charged: str = "the release was charged, and is") -> None:
        """Write what has been paid for: to its place, or else wherever that is possible."""
        place = "standard output"
        try:
            if self.frame is None:
                text = _flat(frame).write_csv()
                # Unbuffered streams (PYTHONUNBUFFERED) take what fits in the pipe of one write, and say nothing.
                for start in range(0, len(text), _PIECE):
                    sys.stdout.write(text[start : start + _PIECE])
                sys.stdout.flush()
                if is_left(sys.stdout):
                    raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
            else:
                place = repr(str(self.frame.path))
                self.frame.save(lambda part: write_frame(frame, part))
        except Exception as error:
            rescued = _rescue(frame)
            if is_left(sys.stdout) and self.frame is None:  # who reads the first lines alone makes no mistake
                tell(f"standard output was not read to its end; {charged} {rescued} as well")
                return
            raise FileTroubleError(
                f"{place} could not be written ({reason_of(error)}); {charged} {rescued} instead"
            ) from None

    def save_records(self, made: Synthesis, progress: Callable[[str], object]) -> int:
        """Write synthetic records, part by part where the file can be; return how many there are."""
        charged = "the records were paid for, and are"
        if self.frame is None or self.frame.path.suffix.lower() == ".json":
            self.save_frame(made.frame, charged)
            return made.frame.height
        written = 0

        def write(part: Path) -> None:
            nonlocal written
            written = made.write(part, progress=lambda done: progress(f"writing: {done:,} records"))

        try:
            self.frame.save(write)
        except Exception as error:
            place, rescued = str(self.frame.path), _rescue(made.frame)
            raise FileTroubleError(
                f"{place!r} could not be written ({reason_of(error)}); {charged} {rescued} instead"
            ) from None
        return written

    def save_chart(self, draw: Callable[[Path], object], written: str = "the release was") -> None:
        """Draw the chart, where one was asked for; what it shows is written already."""
        if self.chart is not None:
            try:
                self.chart.save(draw)
            except Exception as error:
                raise FileTroubleError(
                    f"the chart {str(self.chart.path)!r} could not be written ({reason_of(error)}); {written}"
                ) from None

    def save_page(self, make: Callable[[], str], written: str = "the release was") -> None:
        """Write the page, where one was asked for; what it shows is written already."""
        if self.page is not None:
            try:
                self.page.save(lambda part: part.write_text(make(), encoding="utf-8", errors="replace"))
            except Exception as error:
                raise FileTroubleError(
                    f"the page {str(self.page.path)!r} could not be written ({reason_of(error)}); {written}"
                ) from None

    def written(self, content: str) -> list[str]:
        """Return a line for each file that was written; the first says what the release holds."""
        lines = [] if self.frame is None else [f"wrote {self.frame.path}: {content}"]
        return [*lines, *(f"wrote {target.path}" for target in (self.chart, self.page) if target is not None)]


def page_target(path: str, option: str, *, overwrite: bool, keep: Sequence[str] = ()) -> Target:
    """Return the place of a page, which replaces nothing but an earlier page."""
    from dpfast.pages.saving import PAGE_SUFFIXES, holds_other

    if Path(path).is_file() and holds_other(Path(path)):
        raise FileTroubleError(f"{option} {path!r} exists and is no page; give another name")
    return Target(path, option, PAGE_SUFFIXES, overwrite=overwrite, keep=keep)


def chart_target(plot: str | None, *, overwrite: bool, keep: Sequence[str]) -> Target | None:
    """Return the place of a chart, where one is asked for and can be drawn."""
    if plot is None:
        return None
    from dpfast.charts import CHART_SUFFIXES, check_plot

    target = Target(plot, "--plot", CHART_SUFFIXES, overwrite=overwrite, keep=keep)
    try:
        check_plot(plot)
    except BaseException:
        target.discard()
        raise
    return target


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame in the format that the suffix names."""
    suffix = path.suffix.lower()
    written = _flat(frame) if suffix == ".csv" else _as_text(frame) if suffix in (".json", ".ndjson") else frame
    getattr(written, _WRITERS.get(suffix, "write_ipc"))(path)


def _as_text(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame that text can hold: durations as in ISO 8601, bytes in hexadecimal digits; in lists too."""
    import polars as pl

    def written(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
        if isinstance(dtype, pl.List):
            inner = pl.Series(dtype=dtype.inner).dtype
            return column.list.eval(written(pl.element(), inner))
        if isinstance(dtype, pl.Duration):
            return column.dt.to_string("iso")
        return column.bin.encode("hex") if dtype == pl.Binary else column

    return frame.with_columns(written(pl.col(name), dtype).alias(name) for name, dtype in frame.schema.items())


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Return such a frame with lists, which CSV does not have, as text that JSON reads: ``[3, 5]``."""
    import polars as pl

    lists = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
    return _as_text(frame).with_columns(
        pl.format("[{}]", pl.col(name).cast(pl.List(pl.String)).list.join(", ")).alias(name) for name in lists
    )


def _rescue(frame: pl.DataFrame) -> str:
    """Put a release that could not be written where it was asked somewhere else, and say where.

    It has been paid for and cannot be drawn again.
    """
    for folder in (tempfile.gettempdir(), os.path.expanduser("~"), os.curdir):
        with suppress(Exception):
            descriptor, name = tempfile.mkstemp(prefix="dpfast-release-", suffix=".csv", dir=folder)
            os.close(descriptor)
            write_frame(frame, Path(name))
            return f"written to {os.path.abspath(name)}"
    click.echo(_flat(frame).write_csv())
    sys.stdout.flush()
    return "written to standard output"
