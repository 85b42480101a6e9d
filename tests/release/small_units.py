"""All units of a few rows, tried one by one: how far they move exact figures, held against what is stated."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
import polars as pl

from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.aggregation.exact import Grouping, aggregate

from .oracles import largest_moves


def seeded_words(seed):
    """Give the same words to every run: units in common then keep the same rows."""

    def words(number):
        return np.random.default_rng(seed).integers(0, 2**64, number, dtype=np.uint64)

    return words


def units_of(rows, every):
    """Return what one unit may have: of each length in ``every``, each so-many-th choice among the possible rows."""
    return [
        unit for length, step in every.items() for unit in list(combinations_with_replacement(rows, length))[::step]
    ]


def moves_of(figures, units):
    """Return how far each unit moves each measure, an array for each measure; ``figures(rows)`` adds rows to others."""
    base = figures(())
    moved = [[after - before for after, before in zip(figures(rows), base, strict=True)] for rows in units]
    return [np.array(moves) for moves in zip(*moved, strict=True)]


def check_moves(measure, moves, max_groups, max_rows, *, reached=False):
    """Hold a measure's sensitivities against the moves of all units; where they are reached, nothing less would do."""
    for neighbors in ("add_remove", "replace"):
        stated = measure.sensitivity(PrivacyUnit("who", max_groups, max_rows, neighbors))
        l1, l2_squared = largest_moves(moves, neighbors)
        assert l1 <= stated.l1, measure
        assert l2_squared <= stated.l2_squared, measure
        if reached:
            assert (l1, l2_squared) == (stated.l1, stated.l2_squared), measure


def check_small_units(measure, values, numbers_of, max_groups, max_rows):
    """Hold the sensitivity of a measure of x against all units of up to two rows, and some of four, beside others."""
    grouping = Grouping(("k",), pl.DataFrame({"k": ["a", "b", "c", "d"]}), "who", max_groups, max_rows)
    others = [(1, "a", 0), (1, "b", 1), (2, "a", 0), (2, "c", None)]
    schema = {"who": pl.Int64, "k": pl.String, "x": pl.Int64}

    def figures(rows):
        frame = pl.DataFrame([*others, *((9, *row) for row in rows)], schema=schema, orient="row")
        return [numbers_of(aggregate(frame, grouping, [measure], seeded_words(0)).measures[0])]

    (moves,) = moves_of(figures, units_of(list(product("abcd", values)), {1: 1, 2: 1, 4: 37}))
    check_moves(measure, moves, max_groups, max_rows, reached=max_groups * max_rows <= 2)
