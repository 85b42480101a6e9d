"""Addresses of objects in a store: what is one, and what of it and of its store's errors may be shown.

An address may hold a password, a signature or a token, and a store's answer to a wrong one quotes it. What is shown of
an address is where the object lies; of an error, the number that the store answered with.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from urllib.parse import urlsplit, urlunsplit

__all__ = ["answer_of_store", "is_address", "reason_of_reader", "shown_path"]

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
#: No part of a time, as in "after 511.3ms", of a port, or of another number.
_STATUS = re.compile(r"(?<![\w.:])([45]\d\d)(?!\w|\.\d)(?! *[mnµ]?s\b)")
#: Where the part before the @ is the name of a container, which says what is read, and no user.
_CONTAINERS = {"abfs", "abfss", "adl", "wasb", "wasbs"}


def is_address(path: str) -> bool:
    """Return whether a path is the address of an object, such as ``s3://bucket/day.parquet``.

    Examples
    --------
    >>> is_address("s3://bucket/day.parquet"), is_address("C:/day.parquet")
    (True, False)

    """
    return _ADDRESS.match(path) is not None


def shown_path(path: str) -> str:
    """Return a path as errors, plans and ledgers show it: an address without what may be a credential.

    Examples
    --------
    >>> shown_path("https://user:password@store.org/day.parquet?signature=5af0")
    'https://store.org/day.parquet'
    >>> shown_path("data/day.parquet")
    'data/day.parquet'

    """
    if not is_address(path):
        return path
    try:
        place = urlsplit(path)
    except ValueError:  # brackets that are no address of a host
        return path.partition("://")[0] + "://..."
    user, at, host = place.netloc.rpartition("@")
    if place.scheme.rpartition("+")[2] in _CONTAINERS and ":" not in user:
        host = user + at + host
    return urlunsplit((place.scheme, host, place.path, "", ""))


def reason_of_reader(path: str, error: BaseException) -> str:
    """Return why a reader cannot open a file, in one short line; of a store its answer's number alone.

    Examples
    --------
    >>> reason_of_reader("s3://bucket/a", OSError("status 403, you sent the key AKIA5 with ..."))
    'the store answered 403 Forbidden'
    >>> reason_of_reader("a.parquet", OSError("the footer is cut short"))
    'the footer is cut short'

    """
    if not is_address(path):
        return " ".join(str(error).split())[:120]
    told = "the store does not answer, has no such object, or lacks credentials: see the environment's"
    return answer_of_store(error) or told


def answer_of_store(error: BaseException) -> str | None:
    """Return what a store answered, its number alone; None where the error has none.

    Examples
    --------
    >>> answer_of_store(OSError("after 511.3ms, status code: 404, you sent the key AKIA5"))
    'the store answered 404 Not Found'

    """
    for number in _STATUS.findall(" ".join(str(error).split())):
        if int(number) in set(HTTPStatus):
            return f"the store answered {number} {HTTPStatus(int(number)).phrase}"
    return None
