"""Folders that Spark writes: made, listed and deleted through Hadoop's file systems, wherever they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpfast.errors import DpfastError, ParameterError

__all__ = ["Folder"]

_PART = re.compile(r"part-(\d+)-.*\.parquet")


@dataclass(frozen=True)
class Folder:
    """A folder by its path, as a Spark session understands it."""

    session: Any
    path: str

    @classmethod
    def of(cls, session: Any, path: str) -> Folder:
        """Return the folder of a path that a user gave, which may be relative.

        Raises
        ------
        ParameterError
            No file system of the session has such a path, or Spark would read it as a pattern.

        """
        if re.search(r"[\\*?\[\]{}]", path):
            raise ParameterError(
                "path", path, "a path without *, ?, [, ], {, } and backslashes", "Spark has uses for them"
            )
        try:
            system, found = cls(session, path)._system()
            return cls(session, str(system.makeQualified(found).toString()))
        except Exception:
            pass
        raise ParameterError("path", path, "a path that this Spark session can write to")

    def _system(self) -> tuple[Any, Any]:
        """Return Hadoop's file system and path."""
        path = self.session._jvm.org.apache.hadoop.fs.Path(self.path)
        return path.getFileSystem(self.session._jsc.hadoopConfiguration()), path

    def beside(self, name: str) -> Folder:
        """Return another folder in the same one."""
        parent = self.session._jvm.org.apache.hadoop.fs.Path(self.path).getParent()
        if parent is None:
            raise ParameterError("path", self.path, "a folder within another one")
        return Folder(self.session, f"{str(parent.toString()).rstrip('/')}/{name}")

    def refuse_existing(self) -> None:
        """Refuse a folder or file that is there already."""
        try:
            system, path = self._system()
            exists = bool(system.exists(path))
        except Exception:
            exists = True
        if exists:
            raise ParameterError("path", self.path, "a folder that does not exist yet", "give another path")

    def delete(self) -> bool:
        """Delete the folder with all that is in it; return whether it is gone."""
        try:
            system, path = self._system()
            system.delete(path, True)
            return not system.exists(path)
        except Exception:
            return False

    def parts(self) -> Sequence[str]:
        """Return the files of a job that was committed, of each of its partitions one.

        Raises
        ------
        DpfastError
            There are two of one partition: which of them counts is not known.

        """
        system, path = self._system()
        found: dict[str, str] = {}
        for status in system.listStatus(path):
            name = status.getPath().getName()
            match = _PART.fullmatch(name)
            if match is None:
                continue
            if match[1] in found:
                raise DpfastError("two files of one partition were written, so that a group might be released twice")
            found[match[1]] = status.getPath().toString()
        return list(found.values())
