"""Whatever selects keys is as private as it is charged: exact laws of thousands of small neighbouring data sets.

Soundness rule 18. A rule is charged as noise and, beside it, a delta; what is held here is that the output is
no easier to tell apart than these two together, at every epsilon, which is what "the events are true" means; and that
the worst case comes near that delta, so that nothing is wasted.
"""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.accounting.events import Approximate, DiscreteLaplace, Gaussian

from . import key_laws

FRAME = pl.DataFrame({"k": ["a"], "u": [1], "v": [1.0]})
EPSILONS = (0.0, 0.2, 0.5, 1.0, 2.0)


def planned(max_groups, max_rows, **arguments):
    """Return a blueprint of a count whose noise is small enough for its outputs to be counted."""
    settled = {"epsilon": 1.0, "delta": 0.02, "n": dpf.count()}
    unit = {"privacy_unit": "u", "max_groups": max_groups, "max_rows_per_group": max_rows}
    return dpf.plan(FRAME, "k", **unit, **{**settled, **arguments})._blueprint


def profile(charges, epsilon):
    """Return the delta at an epsilon of the events together: noise, and (0, delta) for keys of one unit alone."""
    lonely = [charge.event.delta for charge in charges if isinstance(charge.event, Approximate)]
    (noise,) = [charge.event for charge in charges if not isinstance(charge.event, Approximate)]
    if isinstance(noise, Gaussian):
        noisy = key_laws.gaussian_profile(noise.scale, noise.sensitivity, epsilon)
    else:
        # The worst of everything that is (e, 0)-private: randomized response.
        e = noise.sensitivity / noise.scale
        noisy = max(0.0, (math.exp(e) - math.exp(epsilon)) / (1 + math.exp(e)))
    return 1 - (1 - lonely[0]) * (1 - noisy)


def moves(max_groups, max_rows, neighbors):
    """Return what neighbours may differ in: for every key touched, rows of the unit before and after."""
    own = [rows for size in range(1, max_groups + 1) for rows in product(range(1, max_rows + 1), repeat=size)]
    if neighbors == "add_remove":
        return [[(0, rows) for rows in some] for some in own]
    apart = [[(rows, 0) for rows in some] + [(0, rows) for rows in other] for some in own for other in own]
    shared = [list(zip(some, other, strict=True)) for some in own for other in own if len(some) == len(other)]
    return apart + shared


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    ("neighbors", "max_groups", "max_rows"),
    [("add_remove", 1, 1), ("add_remove", 2, 1), ("add_remove", 1, 3), ("add_remove", 2, 2), ("replace", 1, 1),
     ("replace", 1, 2)],
)  # fmt: skip
def test_a_released_count_may_be_its_own_test(mechanism, neighbors, max_groups, max_rows):
    """Soundness rule 18: every pair of neighbours with other units' rows from 0 to beyond the threshold."""
    blueprint = planned(max_groups, max_rows, mechanism=mechanism, neighbors=neighbors, key_selection="count")
    rule, (part,) = blueprint.key_share.rule, blueprint.parts
    assert len(blueprint.charges) == 2
    others = [*range(3), *range(3, rule.threshold + 3, 3)]
    reach = rule.threshold + math.ceil(6 * part.scale)
    law = {
        n: key_laws.law_of_count(mechanism, part.scale, rule.threshold, n, reach)
        for n in range(max(others) + max_rows + 1)
    }
    bounds = {epsilon: profile(blueprint.charges, epsilon) for epsilon in EPSILONS}
    worst, cases = dict.fromkeys(EPSILONS, 0.0), 0
    for move in moves(max_groups, max_rows, neighbors):
        for beside in product(others, repeat=len(move)):
            p = key_laws.together([law[n + before] for n, (before, _) in zip(beside, move, strict=True)])
            q = key_laws.together([law[n + after] for n, (_, after) in zip(beside, move, strict=True)])
            cases += 1
            for epsilon in EPSILONS:
                worst[epsilon] = max(worst[epsilon], key_laws.divergence(p, q, epsilon))
    for epsilon in EPSILONS:
        assert worst[epsilon] <= bounds[epsilon] * (1 + 1e-9), (epsilon, cases)
    # What is charged at epsilon 1 is what was given, and hardly more than what happens.
    assert bounds[1.0] <= 0.02 * (1 + 1e-12)
    lonely = blueprint.key_share.charges[0].event.delta
    assert worst[1.0] >= 0.5 * lonely


def test_a_threshold_one_lower_would_not_be_private():
    """The enumeration would find the fault: at a threshold lower by 1 the same bounds break."""
    for mechanism in ("laplace", "gaussian"):
        blueprint = planned(2, 1, mechanism=mechanism, key_selection="count", epsilon=0.5)
        (part,), threshold = blueprint.parts, blueprint.key_share.rule.threshold - 1
        lone = key_laws.law_of_count(mechanism, part.scale, threshold, 1, threshold + 9)
        none = key_laws.law_of_count(mechanism, part.scale, threshold, 0, threshold + 9)
        lonely = blueprint.key_share.charges[0].event.delta
        shown = key_laws.divergence(key_laws.together([lone, lone]), key_laws.together([none, none]), 50.0)
        assert shown > lonely


def rounds_of(rule):
    return [(noise.mechanism, noise.scale, threshold) for noise, threshold in rule.rounds]


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize(
    ("key_selection", "mechanism"), [("weighted", "laplace"), ("weighted", "gaussian"), ("iterated", "gaussian")]
)
def test_weights_are_as_private_as_they_are_charged(key_selection, mechanism, neighbors):
    """Soundness rule 18: the exact law of the set of keys shown, for thousands of pairs of neighbours on three keys."""
    blueprint = planned(3, 1, mechanism=mechanism, neighbors=neighbors, key_selection=key_selection, delta=0.1)
    share, rounds = blueprint.key_share, rounds_of(blueprint.key_share.rule)
    several = share.needed.most
    populations, subsets = key_laws.small_populations(3, (1, several // 4, several // 2), 1 if rounds[1:] else 2)
    bounds = {epsilon: profile(share.charges, epsilon) for epsilon in EPSILONS}
    units = [[], *([[(some, 1)] for some in subsets])]
    pairs = [(units[0], unit) for unit in units[1:]]
    if neighbors == "replace":
        pairs = [(one, other) for one in units[1:] for other in units[1:] if one < other]
    worst, cases = dict.fromkeys(EPSILONS, 0.0), 0
    for population in populations:
        laws = {
            str(unit): key_laws.law_of_shown(population + unit, 3, rounds)
            for unit in (units if neighbors == "add_remove" else units[1:])
        }
        for one, other in pairs:
            cases += 1
            for epsilon in EPSILONS:
                found = key_laws.divergence(laws[str(one)], laws[str(other)], epsilon)
                worst[epsilon] = max(worst[epsilon], found)
    assert cases > (100 if rounds[1:] else 1000)
    for epsilon in EPSILONS:
        assert worst[epsilon] <= bounds[epsilon] * (1 + 1e-6), (epsilon, cases)
    # A lonely unit, whatever it holds, is shown nearly as often as it may be.
    lonely = next(charge.event.delta for charge in share.charges if isinstance(charge.event, Approximate))
    nobody = key_laws.law_of_shown([], 3, rounds)
    chances = [key_laws.divergence(key_laws.law_of_shown([(some, 1)], 3, rounds), nobody, 50.0) for some in subsets]
    assert lonely * 0.8 <= max(chances) <= lonely * (1 + 1e-6)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_a_policy_is_as_private_as_it_is_charged(neighbors):
    """Soundness rule 18: the exact law of the set of keys shown, for thousands of pairs of neighbours on three keys."""
    blueprint = planned(3, 1, neighbors=neighbors, key_selection="policy", delta=0.1)
    share, rule = blueprint.key_share, blueprint.key_share.rule

    def law(holders):
        return key_laws.law_of_policy(holders, 3, rule.noise.scale, rule.threshold, rule.cutoff)

    several = share.needed.most
    populations, subsets = key_laws.small_populations(3, (1, several // 4, several // 2), 2)
    units = [[(some, 1)] for some in subsets] + [[]] * (neighbors == "add_remove")
    bounds = {epsilon: profile(share.charges, epsilon) for epsilon in EPSILONS}
    worst, cases = dict.fromkeys(EPSILONS, 0.0), 0
    for population in populations:
        laws = [law(population + unit) for unit in units]
        pairs = combinations(laws, 2) if neighbors == "replace" else [(one, laws[-1]) for one in laws[:-1]]
        for one, other in pairs:
            cases += 1
            for epsilon in EPSILONS:
                worst[epsilon] = max(worst[epsilon], key_laws.divergence(one, other, epsilon))
    assert cases > 1000
    for epsilon in EPSILONS:
        assert worst[epsilon] <= bounds[epsilon] * (1 + 1e-6), (epsilon, cases)
    # A lonely unit, whatever it holds, is shown nearly as often as it may be.
    lonely = next(charge.event.delta for charge in share.charges if isinstance(charge.event, Approximate))
    chances = [key_laws.divergence(law([(some, 1)]), law([]), 50.0) for some in subsets]
    assert lonely * 0.8 <= max(chances) <= lonely * (1 + 1e-6)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_noisy_number_of_units_is_as_private_as_it_is_charged(mechanism, neighbors):
    """Soundness rule 18: the set of keys shown, for every number of other units and up to two keys of a unit."""
    blueprint = planned(2, 1, mechanism=mechanism, neighbors=neighbors, key_selection="threshold", delta=0.05)
    rule, charges = blueprint.key_share.rule, blueprint.key_share.charges
    scale, threshold = rule.noise.scale, rule.threshold
    law = {0: np.array([1.0, 0.0])}
    for n in range(1, threshold + 4):
        p = key_laws.chance_at_least(mechanism, scale, threshold - n)
        law[n] = np.array([1 - p, p])
    cases = 0
    for move in moves(2, 1, neighbors):
        for beside in product([*range(3), *range(3, threshold + 3, 5)], repeat=len(move)):
            p = key_laws.together([law[n + before] for n, (before, _) in zip(beside, move, strict=True)])
            q = key_laws.together([law[n + after] for n, (_, after) in zip(beside, move, strict=True)])
            cases += 1
            for epsilon in EPSILONS:
                assert key_laws.divergence(p, q, epsilon) <= profile(charges, epsilon) * (1 + 1e-9)
    assert cases > 40


@pytest.mark.parametrize("budget", [{"epsilon": 0.5}, {"rho": 0.05}])
@pytest.mark.parametrize("key_selection", ["count", "threshold", "weighted", "iterated", "policy"])
@pytest.mark.parametrize("mechanism", ["auto", "gaussian", "laplace"])
def test_rules_cost_what_was_given_and_say_their_events(budget, key_selection, mechanism):
    """Charges add up to the budget at most, and each event costs no more than its charge."""
    from dpfast.accounting.accountants import basic, zcdp

    if key_selection in ("iterated", "policy") and mechanism == "laplace":
        pytest.skip("the rule has Gaussian noise")
    arguments = {"epsilon": None, "delta": 1e-6, "key_selection": key_selection, "mechanism": mechanism, **budget}
    blueprint = planned(7, 2, late=dpf.sum("v", bounds=(0, 9)), **arguments)
    assert blueprint.key_share.rule.name == key_selection
    charges = blueprint.charges
    lonely = [charge for charge in charges if isinstance(charge.event, Approximate)]
    assert len(lonely) == 1
    assert lonely[0].epsilon_units == 0
    if "rho" in budget:
        assert sum(zcdp.cost(charge.fact)[0] for charge in charges) <= 5 * 10**16
        assert sum(zcdp.cost(charge.fact)[1] for charge in charges) <= 10**12
        return
    assert sum(charge.epsilon_units for charge in charges) <= 5 * 10**17
    assert sum(charge.delta_units for charge in charges) <= 10**12
    for charge in charges:
        if isinstance(charge.event, (Approximate, DiscreteLaplace)):
            epsilon, delta = basic.cost(charge.event)
            assert epsilon <= charge.epsilon_units
            assert delta <= charge.delta_units
        elif isinstance(charge.event, Gaussian):
            given = charge.epsilon_units / 1e18, charge.delta_units / 1e18
            found = key_laws.gaussian_profile(charge.event.scale, charge.event.sensitivity, given[0])
            assert found <= given[1] * (1 + 1e-9)


def test_rounds_are_the_noise_that_is_charged():
    """Dong, Roth, Su (2022): Gaussian rounds compose to 1 / sigma**2 = sum of 1 / sigma_i**2."""
    share = planned(4, 1, key_selection="iterated").key_share
    sigma = next(charge.event.scale for charge in share.charges if isinstance(charge.event, Gaussian))
    assert len(share.rule.rounds) == 3
    assert math.fsum(noise.scale**-2 for noise, _ in share.rule.rounds) <= sigma**-2 * (1 + 1e-12)
