"""Vectors of privacy units -> the same, no longer than a norm: exact sums, whatever the data.

The guarantee: let v be what a unit adds to all groups, with each coordinate times its public weight. What is left of it
is a vector of whole numbers of steps, each coordinate's times the step and the weight no larger in magnitude than that
of t v, with t <= C / norm(v). So its norm is at most C: one unit more or fewer moves all sums by C at most, and a
replaced unit by 2 C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["UnitVectors", "clip_to_norm", "norms_of"]

#: A sum of 2**31 squares in float64, its root and a quotient are right but for less than this, relatively.
_ROUNDING = 2.0**-20


@dataclass(frozen=True)
class UnitVectors:
    """What privacy units add to groups.

    Attributes
    ----------
    units, groups : int32
        Of each pair of a unit and a group that it adds to; every pair once.
    coordinates : float64
        What the unit adds to each of the group's figures, times the figures' weights; below 2**62.
    number
        All units are below this.

    """

    units: NDArray[np.int32] = field(repr=False)
    groups: NDArray[np.int32] = field(repr=False)
    coordinates: Sequence[NDArray[np.float64]] = field(repr=False)
    number: int


def norms_of(vectors: UnitVectors) -> NDArray[np.float64]:
    """Return each unit's norm, rounded up."""
    squares = np.zeros(vectors.number)
    for coordinate in vectors.coordinates:
        squares += np.bincount(vectors.units, coordinate * coordinate, vectors.number)
    return np.sqrt(squares) * (1 + _ROUNDING)


def clip_to_norm(
    vectors: UnitVectors, norms: NDArray[np.float64], norm: float, steps: Sequence[float], groups: int
) -> list[NDArray[np.int64]]:
    """Return the sums over units by group, in steps, of what is left of each unit.

    Parameters
    ----------
    vectors, norms
        The units, and what `norms_of` says of them.
    norm
        What a unit may have at most, above 0.
    steps
        Of each coordinate with its weight, powers of two: at most 2**31 of them to a norm.
    groups
        All groups are below this.

    """
    factors = np.minimum(1.0, norm / np.maximum(norms, norm))[vectors.units]
    sums = []
    for coordinate, step in zip(vectors.coordinates, steps, strict=True):
        # Cut towards 0, so that no coordinate grows. Sums of 2**31 units of at most 2**31 steps are exact in int64.
        left = np.trunc(coordinate * factors / step).astype(np.int64)
        total = np.zeros(groups, np.int64)
        np.add.at(total, vectors.groups, left)
        sums.append(total)
    return sums
