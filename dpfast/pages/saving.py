"""Where a page is written: whole or not at all, and never over anything that is no page."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Annotated, TypeAlias

from dpfast.arguments import Flag, Special
from dpfast.errors import FileError, ParameterError, Words

__all__ = ["OVERWRITE", "PAGE_SUFFIXES", "Overwrite", "PagePath", "check_page", "holds_other", "save_page"]

PAGE_SUFFIXES = (".html", ".htm")
#: What every page begins with.
_BEGINNING = b"<!doctype html>"

PagePath: TypeAlias = Annotated[
    str | os.PathLike[str],
    Special(lambda: (5, True, 0.5, b"a.html", "", "page", "page.txt", ["a.html"], object())),
]
OVERWRITE = Flag(mend="write {name}=True to replace an earlier page")
Overwrite: TypeAlias = Annotated[bool, OVERWRITE]


def check_page(path: PagePath, overwrite: Overwrite = False) -> Path:
    """Return where a page is to be written, or refuse the place.

    Raises
    ------
    ParameterError
        The path is none, or does not end in .html; the file exists, and ``overwrite`` is not True; or it exists and is
        no page, such as a ledger or data: it is not replaced in any case.

    """
    may_replace = OVERWRITE.read("overwrite", overwrite)
    if not isinstance(path, (str, os.PathLike)) or Path(path).suffix.lower() not in PAGE_SUFFIXES:
        raise ParameterError("path", path, f"a path that ends in {' or '.join(PAGE_SUFFIXES)}")
    place = Path(path)
    if not place.parent.is_dir():
        raise FileError("path", str(path), "in a folder that exists", "create the folder first")
    if place.is_dir():
        raise FileError("path", str(path), "a file's name, not a folder's")
    if holds_other(place):
        raise FileError("path", str(path), "new, or an earlier page, and this file is none", "give another name")
    if place.exists() and not may_replace:
        raise FileError("path", str(path), "new", "this file exists: give another name, or overwrite=True")
    return place


def holds_other(place: Path) -> bool:
    """Return whether something is there that is no page: a ledger, data, or whatever else must not be lost."""
    if not place.exists():
        return False
    try:
        with open(place, "rb") as file:
            held = file.read(len(_BEGINNING))
    except OSError:
        return True
    return bool(held) and held.lower() != _BEGINNING


def save_page(html: str, path: PagePath, overwrite: Overwrite = False) -> Path:
    """Write a page; return where it is.

    Raises
    ------
    ParameterError
        As for `check_page`, or the file cannot be written.

    """
    place = check_page(path, overwrite)
    # A short name of its own: the page's may be as long as the system allows.
    part = place.with_name(f".{secrets.token_hex(6)}.part")
    try:
        with open(part, "x", encoding="utf-8", errors="replace") as file:
            file.write(html)
            file.flush()
            os.fsync(file.fileno())
        check_page(path, overwrite)  # somebody may have made it meanwhile
        os.replace(part, place)
    except OSError as error:
        allowed = f"a file that can be written ({error.strerror})"
        raise FileError("path", Words(repr(str(path))), allowed, "choose another place") from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return place
