"""Eight processes that create one ledger at the same moment, and spend more than it has."""

from __future__ import annotations

import multiprocessing

from dpfast.errors import BudgetExceededError
from dpfast.ledger import Charge, Ledger

ABOUT = {"dataset": "flights", "privacy_unit": "row", "neighbors": "add_remove"}


def open_and_spend(about, start, results):
    start.wait()
    ledger = Ledger.open(**about, epsilon=0.25)  # missing: all eight try to create it
    numbers, refused = [], 0
    for _ in range(5):
        try:
            numbers.append(ledger.charge(Charge.of(0.01), **ABOUT))
        except BudgetExceededError:
            refused += 1
    results.put((numbers, refused))


def race_of_eight(about):
    """Return the numbers of all charges, in order, and how many were refused.

    The eight come from one process that has imported the ledger and opened none: each by itself would take longer to
    start than all of them to race.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["dpfast.ledger", "psycopg", "racing"])
    start, results = context.Barrier(8), context.Queue()
    processes = [context.Process(target=open_and_spend, args=(about, start, results)) for _ in range(8)]
    for process in processes:
        process.start()
    outcomes = [results.get(timeout=1200) for _ in processes]
    for process in processes:
        process.join()
    return sorted(number for numbers, _ in outcomes for number in numbers), sum(refused for _, refused in outcomes)
