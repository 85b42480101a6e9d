"""Made-up shapes in two dimensions: from a generator and a side to how likely each cell of a square is.

Each is a family: the same idea at any side. Nothing here is real.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["MADE_PLANES"]

Weights = NDArray[np.float64]
Plane = Callable[[np.random.Generator, int], Weights]


def _axis(side: int) -> Weights:
    return (0.5 + np.arange(side)) / side


def _zipf(side: int, power: float) -> Weights:
    return (1.0 + np.arange(side)) ** -power


def _bell(side: int, center: float, width: float) -> Weights:
    return np.exp(-0.5 * ((_axis(side) - center) / width) ** 2)


def _clusters(generator: np.random.Generator, side: int, count: int, width: float, power: float) -> Weights:
    weights = np.zeros((side, side))
    for rank in range(1, count + 1):
        (row, column), (tall, wide) = generator.random(2), width * generator.lognormal(0.0, 0.5, 2)
        there = np.outer(_bell(side, row, tall), _bell(side, column, wide))
        weights += rank**-power * there / (there.sum() + 1e-300)
    return np.where(weights > 1e-9 * weights.max(), weights, 0.0)


def even(generator: np.random.Generator, side: int) -> Weights:
    """All cells alike."""
    return np.ones((side, side))


def one_cell(generator: np.random.Generator, side: int) -> Weights:
    """Everybody in one cell."""
    weights = np.zeros((side, side))
    weights[tuple(generator.integers(side, size=2))] = 1.0
    return weights


def scattered_cells(generator: np.random.Generator, side: int) -> Weights:
    """One cell in two hundred, anywhere, heights by Zipf's law."""
    weights, count = np.zeros(side * side), max(4, side * side // 200)
    weights[generator.choice(side * side, count, replace=False)] = 1.0 / np.arange(1, count + 1)
    return weights.reshape(side, side)


def one_cluster(generator: np.random.Generator, side: int) -> Weights:
    """One round cluster."""
    return np.outer(_bell(side, 0.55, 0.12), _bell(side, 0.4, 0.12))


def several_clusters(generator: np.random.Generator, side: int) -> Weights:
    """Eight clusters of different widths."""
    return _clusters(generator, side, 8, 0.06, 0.5)


def towns(generator: np.random.Generator, side: int) -> Weights:
    """Eighty small clusters, their masses by Zipf's law, on nothing."""
    return _clusters(generator, side, 80, 0.01, 1.0)


def street_grid(generator: np.random.Generator, side: int) -> Weights:
    """Streets along both axes, some busier, and little between."""
    rows = np.where(np.arange(side) % 8 == 3, generator.lognormal(0.0, 1.0, side), 0.02)
    columns = np.where(np.arange(side) % 8 == 5, generator.lognormal(0.0, 1.0, side), 0.02)
    return np.maximum(rows[:, None], columns[None, :])


def roads(generator: np.random.Generator, side: int) -> Weights:
    """Straight roads in any direction, and nothing between."""
    weights = np.zeros((side, side))
    for _ in range(12):
        (first, last), traffic = generator.random((2, 2)) * (side - 1), generator.lognormal(0.0, 1.0)
        along = np.linspace(0.0, 1.0, 4 * side)[:, None]
        row, column = np.rint(first + along * (last - first)).astype(np.int64).T
        np.add.at(weights, (row, column), traffic)
    return weights


def diagonal(generator: np.random.Generator, side: int) -> Weights:
    """Both attributes the same."""
    return np.diag(generator.lognormal(0.0, 0.5, side))


def band(generator: np.random.Generator, side: int) -> Weights:
    """Two attributes that hardly differ: departures and arrivals."""
    return np.exp(-np.abs(_axis(side)[:, None] - _axis(side)[None, :]) / 0.03)


def triangle(generator: np.random.Generator, side: int) -> Weights:
    """One attribute at most as large as the other."""
    return np.tri(side) * generator.lognormal(0.0, 0.3, (side, side))


def two_zipfs(generator: np.random.Generator, side: int) -> Weights:
    """Two independent attributes by Zipf's law."""
    return np.outer(_zipf(side, 1.2), _zipf(side, 0.9))


def shuffled_zipfs(generator: np.random.Generator, side: int) -> Weights:
    """Two independent attributes by Zipf's law, in no order."""
    return np.outer(generator.permutation(_zipf(side, 1.0)), generator.permutation(_zipf(side, 1.0)))


def noise_plane(generator: np.random.Generator, side: int) -> Weights:
    """Independent cells of different heights."""
    return generator.lognormal(0.0, 1.0, (side, side))


def coast(generator: np.random.Generator, side: int) -> Weights:
    """Land on one side of a winding line, sea on the other."""
    shore = 0.5 + np.cumsum(generator.normal(0.0, 0.5 / side, side)) + 0.1 * np.sin(9 * _axis(side))
    return (_axis(side)[None, :] < shore[:, None]) * generator.lognormal(0.0, 0.4, (side, side)) + 0.0


def blocks(generator: np.random.Generator, side: int) -> Weights:
    """A chessboard of eight by eight blocks, each with its height, half of them empty."""
    heights = generator.lognormal(0.0, 1.0, (8, 8)) * (np.indices((8, 8)).sum(axis=0) % 2)
    return np.repeat(np.repeat(heights, -(-side // 8), axis=0), -(-side // 8), axis=1)[:side, :side]


def rectangles(generator: np.random.Generator, side: int) -> Weights:
    """Overlapping rectangles that are each alike."""
    weights = np.zeros((side, side))
    for _ in range(20):
        top, bottom, left, right = np.sort(generator.integers(0, side + 1, (2, 2)), axis=1).ravel()
        weights[top : bottom + 1, left : right + 1] += generator.lognormal(0.0, 1.0)
    return weights


def gains_and_losses(generator: np.random.Generator, side: int) -> Weights:
    """Two attributes that are never both above 0, and mostly 0."""
    weights = np.zeros((side, side))
    weights[0], weights[:, 0] = _zipf(side, 1.1), _zipf(side, 1.3)
    weights[0, 0] = 10.0 * weights.sum()
    return weights


def slope(generator: np.random.Generator, side: int) -> Weights:
    """A plane that rises to one corner."""
    return _axis(side)[:, None] + 2 * _axis(side)[None, :]


def rings(generator: np.random.Generator, side: int) -> Weights:
    """Rings around the middle."""
    radius = np.hypot(_axis(side)[:, None] - 0.5, _axis(side)[None, :] - 0.5)
    return np.exp(-0.5 * ((radius % 0.15 - 0.07) / 0.015) ** 2) * (radius < 0.5)


def stripes(generator: np.random.Generator, side: int) -> Weights:
    """The first attribute matters alone, and is rough."""
    return np.repeat(generator.lognormal(0.0, 1.5, (side, 1)), side, axis=1)


def plane_cascade(generator: np.random.Generator, side: int) -> Weights:
    """Quarters of quarters, each with its random share: rough at every size."""
    weights = np.ones((1, 1))
    while weights.shape[0] < side:
        weights = weights.repeat(2, axis=0).repeat(2, axis=1)
        weights = weights * generator.gamma(1.5, 1.0, weights.shape)
    return weights[:side, :side]


def ages_and_incomes(generator: np.random.Generator, side: int) -> Weights:
    """Incomes that grow with age and fall again, some of them rounded."""
    age, income = _axis(side)[:, None], _axis(side)[None, :]
    middle = 0.15 + 0.6 * age * (1.3 - age)
    law = np.exp(-0.5 * ((income - middle) / 0.12) ** 2) * (age > 0.15)
    return law * (1.0 + 4.0 * (np.arange(side) % 10 == 0)[None, :])


def commuters(generator: np.random.Generator, side: int) -> Weights:
    """From where to where: most within one's own district, the others to a few places."""
    mass = generator.pareto(1.0, side)
    district = np.arange(side) * 10 // side
    return np.outer(mass, mass) * np.where(district[:, None] == district[None, :], 1.0, 0.03)


def months_and_shops(generator: np.random.Generator, side: int) -> Weights:
    """Seasons along one attribute, shops that open and close along the other."""
    begin, end = np.sort(generator.random((2, side)), axis=0)
    time = _axis(side)[None, :]
    season = 1.0 + 0.8 * np.sin(12 * np.pi * time)
    return generator.lognormal(0.0, 1.0, (side, 1)) * season * ((time >= begin[:, None]) & (time <= end[:, None]))


def cells_and_cluster(generator: np.random.Generator, side: int) -> Weights:
    """Half of the records in a cluster, half in thirty cells."""
    cluster = one_cluster(generator, side)
    weights = (cluster / cluster.sum()).ravel()
    weights[generator.choice(side * side, 30, replace=False)] += generator.dirichlet(np.ones(30))
    return weights.reshape(side, side)


MADE_PLANES: dict[str, Plane] = {
    "even plane": even,
    "one cell": one_cell,
    "scattered cells": scattered_cells,
    "one cluster": one_cluster,
    "several clusters": several_clusters,
    "towns": towns,
    "street grid": street_grid,
    "roads": roads,
    "diagonal": diagonal,
    "band": band,
    "triangle": triangle,
    "two zipfs": two_zipfs,
    "shuffled zipfs": shuffled_zipfs,
    "noise plane": noise_plane,
    "coast": coast,
    "blocks": blocks,
    "rectangles": rectangles,
    "gains and losses": gains_and_losses,
    "slope": slope,
    "rings": rings,
    "stripes": stripes,
    "plane cascade": plane_cascade,
    "ages and incomes": ages_and_incomes,
    "commuters": commuters,
    "months and shops": months_and_shops,
    "cells and a cluster": cells_and_cluster,
}
"""By name."""
