"""Run in a process of its own: forks children that charge three partitions, each killed at a later statement.

Nothing here uses Polars: its threads do not survive a fork, and may hold a lock when it happens.
"""

from __future__ import annotations

import json
import os
import signal
import sys

import numpy as np

from dpfast.exact.units import Units
from dpfast.ledger import Identity, Ledger
from dpfast.ledger.partitioned import PartitionCharges


class Dying:
    """A connection at whose n-th use the process is killed."""

    def __init__(self, connection, point):
        self.connection, self.left = connection, point

    def __getattr__(self, name):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return getattr(self.connection, name)


def charge_and_die(opened, point):
    try:
        ledger = Ledger.open(**opened)
        append = ledger._store._append
        ledger._store._append = lambda connection, *rest: append(Dying(connection, point), *rest)
        item = PartitionCharges(None, Units(np.array([0]), np.array([10**15])), None, 3)
        ledger._store.append("regions", (item,), Identity())
        os._exit(0)
    finally:
        os._exit(1)


def spent(opened):
    with Ledger.open(**opened) as ledger:
        return list(ledger._store.account("regions").partitions.epsilon)


def killed_at_every_statement(opened):
    """Return at how many statements a child was killed; nothing was charged before the one that lived."""
    point, status = 0, -signal.SIGKILL
    while status == -signal.SIGKILL:
        point += 1
        assert spent(opened) == [0] * 3, spent(opened)
        process = os.fork()
        if process == 0:
            charge_and_die(opened, point)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert status == 0, status
    assert spent(opened) == [10**15] * 3, spent(opened)
    return point - 1


if __name__ == "__main__":
    print(killed_at_every_statement(json.loads(sys.argv[1])))
