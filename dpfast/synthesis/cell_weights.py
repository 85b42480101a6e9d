"""Weights of all cells: how many are held in memory, and those that a fit starts with."""

from __future__ import annotations

import math
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.arguments import Special, Whole
from dpfast.errors import ParameterError, Words
from dpfast.workloads.histograms import array_of, no_arrays

__all__ = [
    "LARGEST_DOMAIN",
    "PRIOR",
    "REPLAYS",
    "TOTAL",
    "Prior",
    "Replays",
    "Total",
    "check_cells",
    "histogram_shape",
    "public_weights",
]

#: How often measurements are fitted again.
REPLAYS = Whole(1, 10**6, mend="write for example {name}=100")
Replays: TypeAlias = Annotated[int, REPLAYS]
#: How many records there are, where that is public.
TOTAL = Whole(0, 2**60, optional=True, mend="write for example {name}=10_000")
Total: TypeAlias = Annotated[int | None, TOTAL]
#: Weights to start with.
PRIOR = Special(
    lambda: (
        *no_arrays(),
        3.0,
        [1.0, 2.0],
        [0.0] * 4,
        [-1.0] * 4,
        [math.nan] * 4,
        [math.inf] * 4,
        [1e-300, 1, 1, 1e300],
    ),
    optional=True,
)
Prior: TypeAlias = Annotated[ArrayLike | None, PRIOR]

#: Cells for which weights are held in memory.
LARGEST_DOMAIN = 2**28


def check_cells(cells: int, argument: str) -> None:
    """Refuse more cells than weights are held in memory for, and say how many bytes these would take."""
    if cells > LARGEST_DOMAIN:
        allowed = f"over at most {LARGEST_DOMAIN:,} cells (the weights of {cells:,} take {8 * cells:,} bytes)"
        raise ParameterError(
            argument, Words(f"over {cells:,} cells"), allowed, "leave attributes out, or make them coarser"
        )


def histogram_shape(histogram: Any) -> tuple[int, ...]:
    """Return the shape of a histogram of one cell or more, if weights of so many are held in memory."""
    shape = array_of(histogram, "histogram").shape
    if not shape or 0 in shape:
        raise ParameterError("histogram", Words(f"of shape {shape}"), "an array of one cell or more")
    check_cells(math.prod(shape), "histogram")
    return shape


def public_weights(prior: Prior, cells: int) -> NDArray[np.float64]:
    """Return public weights to start with, in one dimension: those of the prior in proportion, or all alike.

    The largest is from 1/2 to 1 and none is below 2**-500, so that sums and quotients of them with the number of
    records, and all that weights are multiplied by later, stay within the range of floats.
    """
    if prior is None:
        return np.ones(cells)
    given = array_of(prior, "prior")
    weights = given.astype(np.float64).reshape(-1) if given.dtype.kind in "biuf" else np.empty(0)
    if weights.size != cells or not np.isfinite(weights).all() or not weights.min() > 0.0:
        allowed = f"{cells:,} positive finite public weights, one for each cell"
        raise ParameterError("prior", Words(f"of {weights.size} numbers"), allowed)
    weights = np.ldexp(weights, -math.frexp(float(weights.max()))[1])
    if not weights.min() >= 2.0**-500:
        allowed = "of weights within a factor of 2**499 of each other"
        raise ParameterError("prior", Words("of weights further apart"), allowed, "raise the smallest ones")
    return weights
