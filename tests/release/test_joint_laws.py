"""Figures measured together are as private as they are charged: exact joint laws of small neighbouring data sets.

What a plan shows of a group, its number of rows, of missing values, and a sum, is enumerated on whole numbers; what
lies far out is one cell. Keys are public, or tested by the released count.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations_with_replacement, product

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.accounting.events import Approximate, Gaussian

from . import joint_moves, key_laws

FRAME = pl.DataFrame({"k": ["a"], "u": [1], "v": [1]})
EPSILONS = (0.0, 0.3, 1.0, 2.0)
QUERIES = {"n": dpf.count(), "c": dpf.count("v"), "s": dpf.sum("v", bounds=(-1, 1))}


def planned(max_rows, mechanism, neighbors, **arguments):
    """Return a blueprint whose noise is small enough for its outputs to be counted."""
    unit = {"privacy_unit": "u", "max_groups": 1, "max_rows_per_group": max_rows}
    settled = {"epsilon": 2.0, "delta": 0.02, "mechanism": mechanism, "neighbors": neighbors}
    return dpf.plan(FRAME, "k", **unit, **{**settled, **arguments}, **QUERIES)._blueprint


def profile(charges, epsilon):
    """Return the delta at an epsilon of all events together."""
    lonely = sum(charge.event.delta for charge in charges if isinstance(charge.event, Approximate))
    events = [charge.event for charge in charges if not isinstance(charge.event, Approximate)]
    if isinstance(events[0], Gaussian):
        (noise,) = events
        noisy = key_laws.gaussian_profile(noise.scale, noise.sensitivity, epsilon)
    else:
        # The worst of everything that is (e, 0)-private: randomized response.
        e = sum(event.epsilon if hasattr(event, "epsilon") else event.sensitivity / event.scale for event in events)
        noisy = max(0.0, (math.exp(e) - math.exp(epsilon)) / (1 + math.exp(e)))
    return 1 - (1 - lonely) * (1 - noisy)


def masses(part, exact, low, high):
    """Return the law of a noisy number: ``low`` or less, then each up to ``high`` or more."""
    tails = np.array(
        [key_laws.chance_at_least(part.mechanism, part.scale, v - exact) for v in range(low + 1, high + 1)]
    )
    return np.append(1 - tails[0], np.append(tails[:-1] - tails[1:], tails[-1]))


def law(parts, rows, threshold=None):
    """Return the joint law of what is shown of a group of these rows, each a value or None."""
    exact = [sum(joint_moves.added(part.measure, {"v": row}) for row in rows) for part in parts]
    reaches = [math.ceil(5 * part.scale) + 2 for part in parts]
    if threshold is None:
        return key_laws.together([masses(p, x, -r, r) for p, x, r in zip(parts, exact, reaches, strict=True)])
    # A group of no rows is not found, and not shown; nor is one whose noisy number is below the threshold.
    tested = masses(parts[0], exact[0], threshold - 1, threshold + reaches[0])
    if not rows:
        tested = np.eye(1, tested.size)[0]
    rest = [masses(p, x, -r, r) for p, x, r in zip(parts[1:], exact[1:], reaches[1:], strict=True)]
    return np.append(tested[0], key_laws.together([tested[1:], *rest]))


def changes(max_rows, neighbors):
    """Return what a unit holds in a group before and after, no two of one effect."""
    units = [some for number in range(max_rows + 1) for some in combinations_with_replacement((None, -1, 1), number)]
    pairs = product(units, units) if neighbors == "replace" else product(units, [()])
    return [(before, after) for before, after in pairs if before != after]


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("max_rows", [1, 2])
def test_public_groups_are_as_private_as_they_are_charged(max_rows, mechanism, neighbors):
    """Soundness rules 10 and 14: a unit of one group, all it may hold before and after; the bound is nearly met."""
    keys = pl.DataFrame({"k": ["a", "b"]})
    blueprint = planned(max_rows, mechanism, neighbors, keys=keys)
    assert {part.measure.kind for part in blueprint.parts} >= {"missing", "sum"}
    parts, worst = blueprint.parts, dict.fromkeys(EPSILONS, 0.0)
    bounds = {epsilon: profile(blueprint.charges, epsilon) for epsilon in EPSILONS}
    assert bounds[2.0] <= (0.02 if mechanism == "gaussian" else 1e-12) * (1 + 1e-9)
    for before, after in changes(max_rows, neighbors):
        p, q = law(parts, before), law(parts, after)
        for epsilon in EPSILONS:
            worst[epsilon] = max(worst[epsilon], key_laws.divergence(p, q, epsilon))
    for epsilon in EPSILONS:
        assert worst[epsilon] <= bounds[epsilon] * (1 + 1e-9) + 1e-12
    # One group of a replaced unit is half of what it moves, but where a value may change its sign.
    least = 0.9 if neighbors == "add_remove" and mechanism == "gaussian" else 0.4
    assert worst[0.0] >= least * bounds[0.0]


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_count_tests_keys_under_joint_noise(mechanism, neighbors):
    """Soundness rule 18: the released count decides, its noise one with the others'; other units from none to many."""
    blueprint = planned(2, mechanism, neighbors, key_selection="count")
    parts, threshold = blueprint.parts, blueprint.key_share.rule.threshold
    assert parts[blueprint.key_share.rule.place].measure.kind == "rows"
    assert blueprint.key_share.rule.place == 0
    assert "missing" in {part.measure.kind for part in parts}
    bounds = {epsilon: profile(blueprint.charges, epsilon) for epsilon in EPSILONS}
    assert bounds[2.0] <= 0.02 * (1 + 1e-9)
    worst = dict.fromkeys(EPSILONS, 0.0)
    for before, after in changes(2, neighbors):
        for others in (0, 1, threshold // 2, threshold + 3):
            p, q = (law(parts, [*unit, *[1] * others], threshold) for unit in (before, after))
            for epsilon in EPSILONS:
                worst[epsilon] = max(worst[epsilon], key_laws.divergence(p, q, epsilon))
    for epsilon in EPSILONS:
        assert worst[epsilon] <= bounds[epsilon] * (1 + 1e-9) + 1e-12
    # A unit alone in a group is shown nearly as often as it may be, for a threshold of whole rows.
    lonely = next(charge.event.delta for charge in blueprint.charges if isinstance(charge.event, Approximate))
    shown = key_laws.divergence(law(parts, (1, 1), threshold), law(parts, (), threshold), 50.0)
    assert 0.3 * lonely <= shown <= lonely * (1 + 1e-9)
    # A threshold lower by one would not be private.
    less = key_laws.divergence(law(parts, (1, 1), threshold - 1), law(parts, (), threshold - 1), 50.0)
    assert less > lonely


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_missing_values_with_less_noise_would_be_found_out(mechanism):
    """The mutant: missing values as if their block had a tenth more."""
    blueprint = planned(1, mechanism, "add_remove", keys=pl.DataFrame({"k": ["a", "b"]}))
    parts = [
        replace(part, scale=part.scale / (1.1 if part.measure.kind == "missing" else 1)) for part in blueprint.parts
    ]
    epsilon = 2.0 if mechanism == "gaussian" else sum(
        charge.event.epsilon if hasattr(charge.event, "epsilon") else charge.event.sensitivity / charge.event.scale
        for charge in blueprint.charges
    )  # fmt: skip
    told = max(key_laws.divergence(law(parts, one), law(parts, ()), epsilon) for one, _ in changes(1, "add_remove"))
    assert told > profile(blueprint.charges, epsilon) + 1e-6
