"""Which files a path, a pattern, a folder or a list names, and what their places say of their rows."""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import polars as pl

from dpfast.aggregation.addresses import is_address, reason_of_reader, shown_path
from dpfast.errors import FileError, ParameterError

__all__ = [
    "ALLOWED",
    "SUFFIXES",
    "FilePin",
    "NamedFile",
    "kind_of",
    "local_path",
    "name_dataset",
    "name_files",
    "paths_of",
]

SUFFIXES = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".csv.zst": "csv",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
    ".avro": "avro",
}
_ENDINGS = ", ".join(SUFFIXES)
#: What may be given as data.
ALLOWED = "a DataFrame, a LazyFrame, an Arrow table, stream or dataset, dpf.sql(...), or paths of " + _ENDINGS


@dataclass(frozen=True)
class FilePin:
    """A file as it was when it was opened: which one, how long, and when last written."""

    path: str
    state: tuple[int, int, int, int]

    @classmethod
    def of(cls, path: str) -> FilePin:
        """Return the pin of a file; OSError if there is none, or if what is there is none."""
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
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
        return is_address(self.path)

    @property
    def shown(self) -> str:
        """The path as errors show it."""
        return shown_path(self.path)


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
            raise ParameterError("data", data, ALLOWED)
        path = local_path(path)
        return _name_objects(path) if is_address(path) else _name_local(path)
    if isinstance(data, Sequence) and all(isinstance(path, (str, os.PathLike)) for path in data):
        if not data:
            raise ParameterError("data", data, ALLOWED)
        return [file for entry in data for file in name_files(entry) or ()]
    return None


def paths_of(data: object) -> list[str] | None:
    """Return the path or paths that data are given as, as they were written; None if they are none."""
    entries = [data] if isinstance(data, (str, os.PathLike)) else data
    if not isinstance(entries, (list, tuple)) or not entries:
        return None
    if not all(isinstance(path, (str, os.PathLike)) for path in entries):
        return None
    paths = [os.fspath(path) for path in entries]
    return paths if all(isinstance(path, str) for path in paths) else None


def local_path(path: str) -> str:
    """Return the path on this machine that a text names, or the address in a store, as it was written.

    Raises
    ------
    ParameterError
        If it is a ``file://`` address on another machine.

    """
    if not path.lower().startswith("file://"):
        return path if is_address(path) else os.path.expanduser(path)
    place = urlsplit(path)
    if place.netloc not in ("", "localhost"):
        raise ParameterError("data", path, "a file on this machine", "write file:/// with three slashes")
    return unquote(place.path)


def name_dataset(paths: Sequence[str]) -> str:
    """Return the name under which a ledger knows the data of some paths, however a shell wrote them.

    Patterns are expanded first, as a shell does: what it expanded before has the same name. Several files are called by
    the folder that holds all of them, so that the name stays when files are added.

    Examples
    --------
    >>> name_dataset(["days/2026-11-01.parquet", "days/2026-11-02.parquet"])
    'days/*.parquet'
    >>> name_dataset(["days/year=2025/a.csv.gz", "days/year=2026/a.csv.gz"])
    'days/**/*.csv.gz'

    """
    names: set[str] = set()
    for path in paths:
        place = local_path(path)
        if is_address(place):
            names.add(shown_path(place))
        elif glob.has_magic(place) and not os.path.exists(place):
            names.update(map(os.path.normpath, glob.glob(place, recursive=True) or [place]))
        else:
            names.add(os.path.normpath(place))
    folders = {os.path.dirname(name) for name in names}
    if len(names) == 1 or any(map(is_address, names)) or len(set(map(os.path.isabs, folders))) > 1:
        return ", ".join(sorted(names))
    endings = {"".join(Path(name).suffixes[-2:]) for name in names}
    endings = endings if endings <= set(SUFFIXES) else {Path(name).suffix for name in names}
    pattern = "*" + (endings.pop() if len(endings) == 1 else "")
    if len(folders) == 1:
        return os.path.join(folders.pop(), pattern)
    return os.path.join(os.path.commonpath(folders), "**", pattern)


def kind_of(path: str) -> str:
    """Return the format that a path's suffix names: ``"parquet"``, ``"csv"`` or ``"ipc"``."""
    plain = urlsplit(path).path if is_address(path) else path
    name = os.path.basename(plain.rstrip("/")).lower()
    # A name that is a suffix and nothing else has none.
    kind = next((kind for end, kind in SUFFIXES.items() if name.endswith(end) and name != end), None)
    if kind is None:
        raise ParameterError("data", shown_path(path), "a path that ends in one of " + _ENDINGS)
    if kind == "avro" and is_address(path):
        raise ParameterError("data", shown_path(path), "an Avro file on this machine", "copy it here first")
    return kind


def _name_local(path: str) -> list[NamedFile]:
    if path != (plain := path.rstrip(os.sep)) and os.path.isfile(plain):
        raise FileError("data", path, "a folder where its path ends so, and this is a file", f"write {plain}")
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
            mend = "give the table's folder alone" if place != folder else "give it alone"
            raise ParameterError("data", place, "a folder of plain files, not a Delta table", mend)
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
    places: dict[str, tuple[str, tuple[str, ...]]] = {}
    for path in paths:
        # A bare name is in the current folder, which has no name of its own.
        folder, name = os.path.split(path)
        if folder not in places:
            below = os.path.relpath(folder or os.curdir, root).split(os.sep)
            columns = tuple(each.partition("=")[0] for each in below if "=" in each)
            places[folder] = (os.path.abspath(folder), columns)
        place, partition = places[folder]
        files.append(NamedFile(os.path.join(place, name), partition))
    return files


def _name_objects(address: str) -> list[NamedFile]:
    """Return the objects that an address names; a pattern is matched by Polars, which lists the store."""
    try:
        place = urlsplit(address)
    except ValueError:
        raise ParameterError("data", shown_path(address), "the address of a file in a store") from None
    kind = kind_of(address)
    if place.scheme.startswith("http") or not re.search(r"[*?[]", place.path):
        return [NamedFile(address)]
    if kind == "csv":
        allowed = "the addresses of CSV files one by one"
        raise ParameterError("data", shown_path(address), allowed, "give them as a list")
    scan = pl.scan_parquet if kind == "parquet" else pl.scan_ipc
    try:
        # Footers tell how many rows there are; an object without any has none to add.
        rows = scan(address, include_file_paths="path").select(pl.col("path").unique(maintain_order=True))
        found, reason = rows.collect(engine="streaming")["path"].to_list(), None
    except (pl.exceptions.PolarsError, OSError) as error:
        found, reason = [], reason_of_reader(address, error)
    # Out here no traceback holds the engine's report.
    if reason is not None:
        raise FileError("data", shown_path(address), f"a pattern that can be listed ({reason})")
    if not found:
        raise FileError("data", shown_path(address), "a pattern that matches files with rows")
    return [NamedFile(path) for path in sorted(found)]
