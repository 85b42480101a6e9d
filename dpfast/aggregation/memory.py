"""How much memory this process may still take, and what of it rows may fill before they go to disk.

All limits that are known are counted: control groups (versions 1 and 2, and all groups above), the address space
(``ulimit -v``), the memory that the machine has free, and ``DPFAST_MEMORY_LIMIT`` in the environment, a number of
bytes or one such as ``600MB``, which bounds the memory that the whole process uses.
"""

from __future__ import annotations

import os
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from dpfast.errors import ParameterError, Words

__all__ = ["check_memory", "free_memory", "megabytes", "room_for_rows"]

_VARIABLE = "DPFAST_MEMORY_LIMIT"
_MENDS = {
    "tables": "plan fewer keys or queries",
    "points of quantiles": "say by population= how many units there are at most",
    "rows of all units": 'give numbers for max_groups and max_rows_per_group in place of "auto"',
}
_UNITS = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
#: A group's limit, what it uses, and what of that is a cache of files not in use.
_VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_VERSION_2 = ("memory.max", "memory.current", "inactive_file")
_UNLIMITED = 2**62
_SHARE = 4
_LEAST_ROOM = 1 << 24
_LEAST_FREE = 1 << 26


def room_for_rows() -> int:
    """Return how many bytes rows that wait for their unit's others may take: a quarter of what is free."""
    return max(free_memory() // _SHARE, _LEAST_ROOM)


def check_memory(needed: int, what: Literal["tables", "points of quantiles", "rows of all units"] = "tables") -> None:
    """Refuse to begin with less free memory than ``needed`` bytes and a little work take.

    Raises
    ------
    ParameterError
        If less is free, or ``DPFAST_MEMORY_LIMIT`` cannot be read.

    """
    free = free_memory()
    if free < needed + _LEAST_FREE:
        raise ParameterError(
            "memory",
            Words(f"{megabytes(free)} that this process may still take"),
            f"at least {megabytes(needed + _LEAST_FREE)} for the {what} of this plan and the work on them",
            f"raise its limit ({_VARIABLE}, ulimit -v or the container's), or {_MENDS[what]}",
        )


def megabytes(number: int) -> str:
    """Return a number of bytes in words."""
    return f"{max(number, 0) / 1e6:,.0f} MB"


def free_memory(root: Path = Path("/")) -> int:
    """Return how many bytes this process may still take, by the narrowest limit; 2**62 if none is known.

    Parameters
    ----------
    root
        Where ``proc`` and ``sys`` are.

    """
    declared, base = _declared(), os.path.join(root, "")
    limits = [_UNLIMITED, _machine(base), *_control_groups(base)]
    with suppress(OSError, ValueError, IndexError):
        pages = _read(base + "proc/self/statm").split()
        size, resident = (int(number) * resource.getpagesize() for number in pages[:2])
        space = resource.getrlimit(resource.RLIMIT_AS)[0]
        if space != resource.RLIM_INFINITY:
            limits.append(space - size)
        limits.append(declared - resident)
    if not os.path.exists(base + "proc"):
        # The peak so far, in bytes on macOS, stands for what is used.
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        limits.append(declared - used)
    return max(0, min(limits))


def _read(path: str) -> str:
    """Return what a file of the system says.

    A release asks dozens of them. By `pathlib` that took a fourth of the time of a small one.
    """
    with open(path, "rb", buffering=0) as file:
        return file.read().decode()


def _declared() -> int:
    """Return the limit that the environment sets."""
    text = os.environ.get(_VARIABLE, "").strip()
    if not text:
        return _UNLIMITED
    match = re.fullmatch(r"(\d+(?:\.\d+)?) *([KMGT]?)(i?)B?", text, re.IGNORECASE)
    if match is None or (match[3] and not match[2]):
        raise ParameterError(_VARIABLE, text, "a number of bytes", f"write for example {_VARIABLE}=600MB")
    unit = _UNITS[match[2].upper()] if not match[3] else 1 << (10 * "KMGT".index(match[2].upper()) + 10)
    return int(float(match[1]) * unit)


def _machine(base: str) -> int:
    """Return the memory that the machine has free, swap left out."""
    with suppress(OSError, ValueError, StopIteration):
        lines = _read(base + "proc/meminfo").splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1])
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return _UNLIMITED


def _control_groups(base: str) -> Iterator[int]:
    """Yield what is left under the limit of every control group that this process is in."""
    try:
        lines = _read(base + "proc/self/cgroup").splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            mounts, files = ["sys/fs/cgroup/", "sys/fs/cgroup/unified/"], _VERSION_2
        elif "memory" in controllers.split(","):
            mounts, files = ["sys/fs/cgroup/memory/"], _VERSION_1
        else:
            continue
        for mount in mounts:
            # In a container the path may be the host's, and only the mount itself be there.
            group = base + mount
            yield from _left(group, *files)
            for part in filter(None, path.split("/")):
                group += part + "/"
                yield from _left(group, *files)


def _left(group: str, limit: str, usage: str, reclaimed: str) -> Iterator[int]:
    """Yield what is left in one group: of what it uses, the cache of files not in use is given back."""
    with suppress(OSError, ValueError):
        most = int(_read(group + limit))
        if most > 2 * _UNLIMITED - 2**20:  # version 1 has no word for it
            return
        used = int(_read(group + usage))
        for line in _read(group + "memory.stat").splitlines():
            name, _, number = line.partition(" ")
            if name == reclaimed:
                used -= int(number)
        yield most - max(used, 0)
