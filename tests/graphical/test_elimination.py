"""Costs that are kept while attributes are eliminated are those that are computed anew at every step."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpfast.graphical.elimination import _graph, model_cells
from dpfast.kernels.graphical import elimination as kernels


def eliminated(attributes, sets, sizes, by_size, noise):
    """Return the maximal cliques that are left behind, and their cells: every cost computed anew."""
    around = {a: set() for a in range(attributes)}
    for held in sets:
        for one, other in itertools.permutations(held, 2):
            around[one].add(other)
    cliques = []
    while around:

        def cost(a):
            if by_size:
                return sum(math.log(sizes[b]) for b in sorted(around[a] | {a}))
            return sum(other not in around[one] for one, other in itertools.combinations(sorted(around[a]), 2))

        chosen = min(around, key=lambda a: ((cost(a) + 1.0) * (1.0 + noise[a]), a))
        near = around.pop(chosen)
        for one in near:
            around[one] = (around[one] | near) - {one, chosen}
        clique = near | {chosen}
        if not any(clique <= other for other in cliques):
            cliques.append(clique)
    return cliques, sum(math.prod(sizes[a] for a in clique) for clique in cliques)


def some_graph(generator, attributes):
    sizes = generator.integers(1, 9, attributes).tolist()
    number = int(generator.integers(0, 3 * attributes))
    sets = [
        generator.choice(attributes, min(attributes, int(generator.integers(1, 4))), replace=False).tolist()
        for _ in range(number)
    ]
    # Costs of sizes are sums in another order: where two are equal, their rounding may decide. Noise keeps them apart.
    return sizes, sets, generator.uniform(0.0, 0.3, attributes)


@pytest.mark.parametrize("by_size", [True, False])
@pytest.mark.parametrize("attributes", [1, 2, 5, 9, 20, 64, 65, 70, 130])
def test_kept_costs_are_those_computed_anew(attributes, by_size):
    generator = np.random.default_rng(attributes)
    for _ in range(4 if attributes > 20 else 25):
        sizes, sets, noise = some_graph(generator, attributes)
        expected, cells = eliminated(attributes, sets, sizes, by_size, noise)
        graph = _graph(attributes, sets)
        cliques = np.empty_like(graph)
        count, found = kernels.eliminate(graph, np.array(sizes, np.float64), by_size, noise, cliques)
        held = np.unpackbits(cliques[:count].view(np.uint8), axis=1, bitorder="little")
        assert [set(np.flatnonzero(row).tolist()) for row in held] == expected
        assert found == pytest.approx(cells, rel=1e-12)


@pytest.mark.parametrize("attributes", [3, 8, 66])
def test_one_set_more_is_as_if_it_had_been_there(attributes):
    generator = np.random.default_rng(attributes + 100)
    sizes, sets, _ = some_graph(generator, attributes)
    candidates = [tuple(sorted(generator.choice(attributes, k, replace=False).tolist())) for k in (1, 2, 2, 3, 3)]
    nothing = np.zeros(attributes)
    for by_size in (True, False):
        graph = _graph(attributes, sets)
        members = np.array([a for held in candidates for a in held], np.int64)
        starts = np.cumsum([0, *map(len, candidates)]).astype(np.int64)
        cells = np.full(len(candidates), np.inf)
        kernels.cells_with(graph, np.array(sizes, np.float64), by_size, nothing, members, starts, cells)
        assert (graph == _graph(attributes, sets)).all()
        for held, found in zip(candidates, cells, strict=True):
            own, cliques = _graph(attributes, [*sets, held]), np.empty_like(graph)
            _, expected = kernels.eliminate(own, np.array(sizes, np.float64), by_size, nothing, cliques)
            assert found == expected
    assert all(math.isfinite(cells) for cells in model_cells(sizes, sets, candidates))
