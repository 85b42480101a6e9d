"""How many cells queries sum over: what is best for single cells is not for wide ranges."""

from __future__ import annotations

import numpy as np

from dpfast.workloads.workload import Workload

__all__ = ["is_wide"]

_WIDE = 16.0


def is_wide(workload: Workload) -> bool:
    """Whether queries sum over sixteen cells or more: the mean, over queries, of the sum of squared coefficients."""
    return workload.energy(np.arange(workload.cells + 1)) >= _WIDE * len(workload)
