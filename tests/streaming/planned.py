"""What tests ask for: units, budgets and methods, in few words."""

from __future__ import annotations

import numpy as np

from dpfast.accounting.budget import read_budget
from dpfast.streaming.unit import StreamUnit

EVENT = StreamUnit((0, 1), "add_remove", 1, 1, 1)


def unit(bounds=(0, 1), neighbors="add_remove", max_counters=1, max_steps=1, max_rows_per_step=1):
    return StreamUnit(bounds, neighbors, max_counters, max_steps, max_rows_per_step)


def epsilon(amount, delta=0):
    return read_budget(amount, delta, None)


def rho(amount):
    return read_budget(None, None, amount)


def toeplitz(column):
    """Return the lower triangular matrix with this first column."""
    size = len(column)
    places = np.subtract.outer(np.arange(size), np.arange(size))
    return np.where(places >= 0, np.asarray(column)[np.abs(places)], 0)
