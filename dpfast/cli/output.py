"""Where a release is written: checked before the charge, written whole or not at all, never lost after it."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpfast.cli.errors import CommandError, FileTroubleError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FRAME_SUFFIXES", "Target", "rescue_frame", "write_frame"]

#: What a release's file may end in.
FRAME_SUFFIXES = (".parquet", ".csv", ".arrow", ".ipc", ".feather", ".json", ".ndjson")


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
        self._option, self._overwrite = option, overwrite
        suffix = self.path.suffix.lower()
        if suffix not in suffixes:
            raise CommandError(f"{option} {path!r} must end in one of {', '.join(suffixes)}")
        folder = self.path.parent
        if not folder.is_dir():
            raise FileTroubleError(f"the folder {str(folder)!r} of {option} does not exist; create it first")
        if self.path.is_dir():
            raise FileTroubleError(f"{option} {path!r} is a folder; give a file's name")
        if self.path.exists():
            if not overwrite:
                raise FileTroubleError(f"{option} {path!r} exists; give another name, or --overwrite")
            if any(os.path.exists(other) and os.path.samefile(other, self.path) for other in keep):
                raise FileTroubleError(f"{option} {path!r} is read by this command; give another name")
        # Writing the real file shows best whether it can be written; the name keeps the suffix, which tells
        # matplotlib the kind of chart.
        self._part = folder / f".{self.path.stem[:100]}.{secrets.token_hex(6)}.part{suffix}"
        try:
            with open(self._part, "xb"):
                pass
        except OSError as error:
            raise FileTroubleError(
                f"{option} {path!r} cannot be written ({error.strerror}); choose a folder that can be"
            ) from None

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
        os.replace(self._part, self.path)

    def discard(self) -> None:
        """Remove what is unfinished."""
        with suppress(OSError):
            self._part.unlink(missing_ok=True)


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame in the format that the suffix names."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        frame.write_parquet(path)
    elif suffix == ".csv":
        frame.write_csv(path)
    elif suffix == ".json":
        frame.write_json(path)
    elif suffix == ".ndjson":
        frame.write_ndjson(path)
    else:
        frame.write_ipc(path)


def rescue_frame(frame: pl.DataFrame) -> str:
    """Put a release that could not be written where it was asked somewhere else, and say where.

    It has been paid for and cannot be drawn again.
    """
    for folder in (tempfile.gettempdir(), os.path.expanduser("~"), os.curdir):
        with suppress(Exception):
            descriptor, name = tempfile.mkstemp(prefix="dpfast-release-", suffix=".csv", dir=folder)
            os.close(descriptor)
            write_frame(frame, Path(name))
            return f"written to {os.path.abspath(name)}"
    click.echo(frame.write_csv())
    sys.stdout.flush()
    return "written to standard output"
