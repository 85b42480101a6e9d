"""Pairs of distributions with finitely many outcomes: connect-the-dots, its counterpart, and sampling.

For mechanisms on a Poisson sample the moment generating function has no closed form. Their base pair (with the
unit, without it) is replaced by two finite ones, over the same cells of the noise:

- *connect-the-dots* (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022): what falls into a cell is split between
  the cell's two ends such that both masses stay. The hockey-stick curve, convex in exp(epsilon), is replaced by
  chords; merging the split outcomes again gives the base pair back, so the new pair dominates it.
- *merged*: a whole cell becomes one outcome: post-processing, so the base pair dominates it.

Both change a curve in the second order of the cells' width. Splitting and merging act on both distributions
alike, so they commute with sampling and hold for adding and for removing a unit at any rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpfast.accounting.formulas.transforms import ROUNDING, Array

__all__ = [
    "LARGEST_DISCRETE",
    "LARGEST_RATIO",
    "LONGEST_REACH",
    "Pair",
    "Side",
    "connect_dots",
    "discrete_pair",
    "gaussian_cells",
    "laplace_cells",
    "laplace_pair",
    "merge_cells",
    "response_pair",
]

#: Noise narrower than a twentieth of the sensitivity is not discretised: densities would underflow.
LARGEST_RATIO = 20.0
#: The largest sensitivity of integers whose pair has few enough outcomes.
LARGEST_DISCRETE = 2**12

#: Tails beyond 14 standard deviations (7.8e-45) count as fully revealing, or beyond fewer where that is small enough.
LONGEST_REACH = 14.0
_CELLS_PER_UNIT = 32

# Gauss-Legendre on [0, 1]. The remainder, 3.5e-10 width^16 max|f^(16)|, is by Cauchy's estimate on a disc of radius
# 1/4 around a cell of at most 1/32 below 2^-60 of the integral for every integrand here.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_NODES, _WEIGHTS = (_NODES + 1.0) / 2.0, _WEIGHTS / 2.0


Side = Literal["upper", "lower"]


@dataclass(frozen=True)
class Pair:
    """Outcomes of a pair: their masses with the unit and without it, and the logarithm of the ratio.

    ``log_ratio`` is -inf where only the distribution without the unit has mass. ``infinite`` is the mass that
    only the one with the unit has. ``relative`` bounds the masses' relative errors.
    """

    present: Array
    absent: Array
    log_ratio: Array
    infinite: float
    relative: Array


@dataclass(frozen=True)
class Cells:
    """A base pair cut into cells: densities as functions, and outcomes that are atoms already."""

    edges: Array
    present: Callable[[Array], Array]
    absent: Callable[[Array], Array]
    slope: float
    """How fast the logarithm of the ratio rises with the noise."""
    log_ratio: Callable[[Array], Array]
    atoms: Pair
    tail: float
    """A bound on the mass outside cells and atoms, in either distribution."""


def gaussian_cells(mean: float, log_ratios: Array, reach: float = LONGEST_REACH) -> Cells:
    """Cut N(mean, 1) against N(0, 1) where the ratio has the given logarithms, and every 1/32 besides.

    What is more than ``reach`` below 0 or above the mean counts as fully revealing: its mass, in either
    distribution, is at most that of both tails of one.
    """
    steps = math.ceil((2.0 * reach + mean) * _CELLS_PER_UNIT)
    edges = -reach + np.arange(steps + 1) / _CELLS_PER_UNIT
    wanted = (log_ratios + 0.5 * mean**2) / mean
    edges = np.union1d(edges, wanted[(wanted > edges[0]) & (wanted < edges[-1])])
    nothing = np.zeros(0)
    norm = 1.0 / math.sqrt(2.0 * math.pi)
    return Cells(
        edges,
        lambda x: norm * np.exp(-0.5 * (x - mean) ** 2),
        lambda x: norm * np.exp(-0.5 * x**2),
        mean,
        lambda x: mean * x - 0.5 * mean**2,
        Pair(nothing, nothing, nothing, 0.0, nothing),
        1.001 * math.erfc(reach / math.sqrt(2.0)),
    )


def laplace_cells(ratio: float, cells_per_unit: int) -> Cells:
    """Cut Laplace noise of scale 1 at `ratio` against the same at 0: two atoms, and cells between."""
    steps = max(cells_per_unit, math.ceil(ratio * cells_per_unit))
    half = np.array([0.5, 0.5 * math.exp(-ratio)])
    return Cells(
        ratio * np.arange(steps + 1) / steps,
        lambda x: 0.5 * np.exp(x - ratio),
        lambda x: 0.5 * np.exp(-x),
        2.0,
        lambda x: 2.0 * x - ratio,
        Pair(half, half[::-1], np.array([ratio, -ratio]), 0.0, np.full(2, 8.0 * ROUNDING)),
        0.0,
    )


def laplace_pair(ratio: float, side: Side, fineness: int) -> Pair:
    """Return a finite pair above or below that of Laplace noise, its cells halved `fineness` times."""
    cells = laplace_cells(ratio, _CELLS_PER_UNIT << fineness)
    return connect_dots(cells) if side == "upper" else merge_cells(cells)


def _points(cells: Cells) -> tuple[Array, Array, Array]:
    """Return the quadrature's points, the cells' widths, and a bound on the relative errors of the integrals."""
    widths = np.diff(cells.edges)[:, None]
    points = cells.edges[:-1, None] + widths * _NODES
    # The exponent's rounding is the exponent times a few roundings; weights, products and sum take the rest.
    largest = np.maximum(np.abs(cells.edges[:-1]), np.abs(cells.edges[1:])) + abs(cells.slope)
    return points, widths, ROUNDING * (64.0 + 4.0 * largest**2)


def connect_dots(cells: Cells) -> Pair:
    """Return a finite pair that dominates the base pair: each cell split between its ends."""
    points, widths, relative = _points(cells)
    # Not as differences of points, which would cancel.
    above, below = cells.slope * widths * _NODES, cells.slope * widths * (1.0 - _NODES)
    # Shares that keep both masses, as products of positive numbers. `up` is the right end's share of the
    # distribution without the unit; multiplied by the ratio there over the ratio here, of the other.
    span = np.expm1(cells.slope * widths)
    up = np.expm1(above) / span
    down = np.exp(above) * np.expm1(below) / span
    weights = widths * _WEIGHTS
    absent, present = weights * cells.absent(points), weights * cells.present(points)
    count = len(cells.edges)
    masses = np.zeros((2, count))
    masses[0, 1:] += np.sum(present * up * np.exp(below), axis=1)
    masses[0, :-1] += np.sum(present * down * np.exp(-above), axis=1)
    masses[1, 1:] += np.sum(absent * up, axis=1)
    masses[1, :-1] += np.sum(absent * down, axis=1)
    worst = np.maximum(np.append(relative, 0.0), np.append(0.0, relative))
    return _with_atoms(cells, masses[0], masses[1], cells.log_ratio(cells.edges), worst, cells.tail)


def merge_cells(cells: Cells) -> Pair:
    """Return a finite pair that the base pair dominates: each cell one outcome, the tails left out."""
    points, widths, relative = _points(cells)
    weights = widths * _WEIGHTS
    present = np.sum(weights * cells.present(points), axis=1)
    absent = np.sum(weights * cells.absent(points), axis=1)
    return _with_atoms(cells, present, absent, np.log(present / absent), relative, 0.0)


def _with_atoms(cells: Cells, present: Array, absent: Array, log_ratio: Array, relative: Array, tail: float) -> Pair:
    """Add the atoms, and the tails as outcomes that only one of the two distributions has."""
    atoms = cells.atoms
    return Pair(
        np.concatenate([present, atoms.present, [0.0]]),
        np.concatenate([absent, atoms.absent, [tail]]),
        np.concatenate([log_ratio, atoms.log_ratio, [-np.inf]]),
        atoms.infinite + tail,
        np.concatenate([relative, atoms.relative, [0.0]]),
    )


def response_pair(epsilon: float, categories: int = 2, delta: float = 0.0) -> Pair:
    """Return randomized response beside an outcome of probability delta that reveals everything."""
    fall = math.exp(-epsilon)
    top = 1.0 / (1.0 + (categories - 1) * fall)
    masses = np.array([top, (categories - 2) * top * fall, top * fall]) * (1.0 - delta)
    return Pair(
        np.append(masses, 0.0),
        np.append(masses[::-1], delta),
        np.array([epsilon, 0.0, -epsilon, -np.inf]),
        delta,
        np.full(4, 16.0 * ROUNDING),
    )


def discrete_pair(scale: float, sensitivity: int) -> Pair:
    """Return geometric noise around `sensitivity` against the same around 0: one outcome for each ratio."""
    base = math.exp(-1.0 / scale)
    inner = np.arange(1.0, sensitivity)
    edge = np.array([1.0, math.exp(-sensitivity / scale)]) / (1.0 + base)
    absent = np.concatenate([edge, math.tanh(0.5 / scale) * np.exp(-inner / scale)])
    present = np.concatenate([edge[::-1], math.tanh(0.5 / scale) * np.exp((inner - sensitivity) / scale)])
    log_ratio = np.concatenate([[-sensitivity / scale, sensitivity / scale], (2.0 * inner - sensitivity) / scale])
    relative = ROUNDING * (16.0 + 4.0 * np.abs(sensitivity / scale) * np.ones(len(absent)))
    return Pair(present, absent, log_ratio, 0.0, relative)
