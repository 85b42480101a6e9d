"""Which files a path, a pattern, a folder or a list names, and what their places say of their rows."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import polars as pl

from dpfast.errors import FileError, ParameterError

__all__ = ["SUFFIXES", "FilePin", "NamedFile", "kind_of", "name_files"]

SUFFIXES = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".csv.zst": "csv",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
}
_ENDINGS = ", ".join(SUFFIXES)
_ALLOWED = "a DataFrame, a LazyFrame, an Arrow table or stream, dpf.sql(...), or paths of " + _ENDINGS
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


@dataclass(frozen=True)
class FilePin:
    """A file as it was when it was opened: which one, how long, and when last written."""

    path: str
    state: tuple[int, int, int, int]

    @classmethod
    def of(cls, path: str) -> FilePin:
        """Return the pin of a file; OSError if there is none."""
        status = os.stat(path)
        return cls(path, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))

    @property
    def size(self) -> int:
        """The file's length in bytes."""
        return self.state[2]

    def holds(self) -> bool:
        """Return whether the file is still the same, and may be read."""
        try:
            return FilePin.of(self.path) == self and os.access(self.path, os.R_OK)
        except OSError:
            return False


@dataclass(frozen=True)
class NamedFile:
    """A file of the data.

    Attributes
    ----------
    path
        Where it is: absolute, or the address of an object in a store.
    partition
        The columns that its folders name, as in ``year=2024``, and their values as text, null where the folder is
        called ``__HIVE_DEFAULT_PARTITION__``; those above the folder or pattern that was given are left out.

    """

    path: str
    partition: tuple[str, ...] = ()

    @property
    def is_remote(self) -> bool:
        """Whether it lies in an object store, where nothing says that it did not change."""
        return bool(_REMOTE.match(self.path))


def name_files(data: object) -> list[NamedFile] | None:
    """Return the files that ``data`` names, or None if it is no path at all.

    Raises
    ------
    ParameterError
        If a path does not exist, a pattern matches nothing or matches a folder, or a folder holds files of other
        kinds.

    """
    if isinstance(data, (str, os.PathLike)):
        path = os.fspath(data)
        if isinstance(path, bytes):
            raise ParameterError("data", data, _ALLOWED)
        if path.lower().startswith("file://"):
            path = unquote(urlsplit(path).path)
        elif _REMOTE.match(path):
            return _name_objects(path)
        return _name_local(os.path.expanduser(path))
    if isinstance(data, Sequence) and all(isinstance(path, (str, os.PathLike)) for path in data):
        if not data:
            raise ParameterError("data", data, _ALLOWED)
        return [file for entry in data for file in name_files(entry) or ()]
    return None


def kind_of(path: str) -> str:
    """Return the format that a path's suffix names: ``"parquet"``, ``"csv"`` or ``"ipc"``."""
    if _REMOTE.match(path):
        path = urlsplit(path).path
    kind = SUFFIXES.get("".join(Path(path).suffixes[-2:]).lower())
    kind = kind or SUFFIXES.get(Path(path).suffix.lower())
    if kind is None:
        raise ParameterError("data", path, "a path that ends in one of " + _ENDINGS)
    return kind


def _name_local(path: str) -> list[NamedFile]:
    if os.path.isdir(path):
        return _placed(_walk(path), path)
    if glob.has_magic(path) and not os.path.exists(path):
        found = sorted(glob.glob(path, recursive=True))
        # ``**`` matches folders as well, which are no data; a name with a suffix is meant as a file.
        if os.path.basename(path) == "**":
            found = [name for name in found if not os.path.isdir(name)]
        if not found:
            raise FileError("data", path, "a pattern that matches files")
        for name in found:
            if os.path.isdir(name):
                raise ParameterError(
                    "data", name, "a file, as all that the pattern matches", "write folder/**/*.parquet, or the folder"
                )
        fixed = path[: next(re.finditer(r"[*?[]", path)).start()]
        return _placed(found, os.path.dirname(fixed) or os.curdir)
    return [NamedFile(os.path.abspath(path))]


def _walk(folder: str) -> list[str]:
    """Return all files in a folder and below; names that begin with a dot or an underscore are no data."""
    found, met = [], set()
    for place, folders, files in os.walk(folder, followlinks=True, onerror=_refuse_folder):
        if "_delta_log" in folders:
            raise ParameterError(
                "data", place, "a folder of plain files, not a Delta table", "write polars.scan_delta(path)"
            )
        real = os.path.realpath(place)
        if real in met:
            raise ParameterError("data", place, "a folder that is met once", "does a link lead back?")
        met.add(real)
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        found += [os.path.join(place, name) for name in sorted(files) if name[0] not in "._"]
    if not found:
        raise FileError("data", folder, "a folder that holds files")
    return found


def _refuse_folder(error: OSError) -> None:
    raise FileError("data", error.filename, "a folder that can be read") from None


def _placed(paths: Sequence[str], root: str) -> list[NamedFile]:
    """Return files with the columns that their folders below ``root`` name."""
    files = []
    for path in paths:
        folders = os.path.relpath(os.path.dirname(path), root).split(os.sep)
        partition = tuple(folder.partition("=")[0] for folder in folders if "=" in folder)
        files.append(NamedFile(os.path.abspath(path), partition))
    return files


def _name_objects(address: str) -> list[NamedFile]:
    """Return the objects that an address names; a pattern is matched by Polars, which lists the store."""
    kind = kind_of(address)
    place = urlsplit(address)
    if place.scheme.startswith("http") or not re.search(r"[*?[]", place.path):
        return [NamedFile(address)]
    if kind == "csv":
        raise ParameterError("data", address, "the addresses of CSV files one by one", "give them as a list")
    scan = pl.scan_parquet if kind == "parquet" else pl.scan_ipc
    try:
        # Footers tell how many rows there are; an object without any has none to add.
        rows = scan(address, include_file_paths="path").select(pl.col("path").unique(maintain_order=True))
        found = rows.collect(engine="streaming")["path"].to_list()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise FileError("data", address, f"a pattern that can be listed ({_reason(error)})") from None
    if not found:
        raise FileError("data", address, "a pattern that matches files with rows")
    return [NamedFile(path) for path in sorted(found)]


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:120]
