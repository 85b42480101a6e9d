"""Functions of a block that other processes can import, most of them bad."""

from __future__ import annotations

import os
import signal
import time

import numpy as np

SEEN: list[int] = []


def mean(rows):
    return float(np.mean(rows)) if len(rows) else None


def first(rows):
    return rows[0]


def misbehave(rows):
    """Do what the first row asks for."""
    what = int(np.asarray(rows)[0])
    if what == 1:
        message = f"the block holds {rows}"
        raise ValueError(message)
    if what == 2:
        os._exit(3)
    if what == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if what == 4:
        print(f"the block holds {rows}")
        return "7"
    if what == 5:
        return [7.0, 7.0]
    if what == 6:
        return float("nan")
    if what == 7:
        return float("-inf")
    if what == 8:
        raise SystemExit
    if what == 9:
        raise KeyboardInterrupt
    if what == 10:
        return 7 + 1j
    if what == 11:
        return None
    if what == 12:
        return "x" * 10**6
    if what == 13:
        os.killpg(0, signal.SIGKILL)
    if what == 14:
        return np.ones(1)
    return 7.0


def sleep_if_odd(rows):
    """Hang, or answer 7."""
    if int(rows[0]) % 2:
        time.sleep(10_000)
    return 7.0


def remember(rows):
    """Count the blocks that this process has seen."""
    SEEN.append(1)
    return float(len(SEEN))


def seeded(rows):
    return float(np.random.random())


def kind(rows):
    return f"{type(rows).__module__.split('.')[0]}.{type(rows).__name__}"


def told_by_categories(rows):
    """Return whatever a block's type tells of values."""
    columns = [rows]
    if hasattr(rows, "columns"):
        columns = [rows[name] for name in getattr(rows, "column_names", rows.columns)]
    texts = []
    for column in columns:
        texts.append(str(getattr(column, "type", getattr(column, "dtype", ""))))
        for owner in (column, getattr(column, "cat", None), getattr(column, "dictionary", None)):
            for name in ("categories", "get_categories", "dictionary"):
                found = getattr(owner, name, None)
                texts.append(str(found() if callable(found) else found))
    return " ".join(texts)


def tenth(rows):
    return sum(rows) / 10


def nearly_all(rows):
    return len(rows) - 0.5


def text(rows):
    return "text"


def broken(rows):
    raise ValueError(f"{rows}")
