"""Where a chart is written: whole or not at all, and never over anything that is no picture."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from dpfast.errors import FileError, Words

__all__ = ["check_place", "save_picture"]

#: What PNG, PDF and SVG begin with; before the last may stand XML's own first lines.
_PICTURE = re.compile(
    rb"\x89PNG\r\n\x1a\n|%PDF-|(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?"
    rb"(?><!--.*?-->\s*)*+(?:<!DOCTYPE svg[^>]*>\s*)?(?><!--.*?-->\s*)*+<svg\b",
    re.DOTALL,
)
_BEGINNING = 4096


def check_place(place: Path, *, folder: bool = True) -> None:
    """Refuse a place where a picture would replace what is none, a ledger or data; a link to such is refused, too.

    Parameters
    ----------
    place
        Where a picture is to be written. An earlier picture may be there, whosever it is.
    folder
        Whether its folder must be there already.

    Raises
    ------
    FileError
        It must not be written there, or cannot be.

    """
    try:
        os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        if folder and not place.parent.is_dir():
            raise FileError("path", str(place), "in a folder that exists", "create the folder first") from None
    except (OSError, ValueError) as error:
        raise _unwritable(place, error) from None
    if place.is_dir():
        raise FileError("path", str(place), "a file's name, not a folder's")
    if place.exists() and not _holds_picture(place):
        raise FileError("path", str(place), "new, or an earlier picture, and this file is none", "give another name")


def _holds_picture(place: Path) -> bool:
    """Return whether a picture is there, or an empty file."""
    if not place.is_file():  # a pipe, or a device: reading it might never end
        return False
    try:
        with open(place, "rb") as file:
            held = file.read(_BEGINNING)
    except OSError:
        return False
    return not held or _PICTURE.match(held) is not None


def save_picture(write: Callable[[str], object], place: Path) -> None:
    """Let ``write`` fill a file beside the place, and put it there at once: what a link leads to is never written.

    Raises
    ------
    FileError
        As for `check_place`, or the file cannot be written.

    """
    check_place(place)
    # A short name of its own: the picture's may be as long as the system allows.
    part = place.with_name(f".{secrets.token_hex(6)}.part")
    try:
        with open(part, "xb"):
            pass
        write(os.fspath(part))
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        check_place(place)  # somebody may have made it meanwhile
        os.replace(part, place)
    except OSError as error:
        raise _unwritable(place, error) from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _unwritable(place: Path, error: OSError | ValueError) -> FileError:
    reason = error.strerror if isinstance(error, OSError) else "such a name cannot be"
    return FileError("path", Words(repr(str(place))), f"a file that can be written ({reason})", "choose another place")
