"""Policy Gaussian: how far one unit moves the sums, whatever the others hold, and that the order is the data's own."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation.holdings import Holdings, sorted_units
from dpfast.errors import ParameterError
from dpfast.mechanisms.keys.policy import (
    SENSITIVITY,
    cutoff_above,
    lonely_by_policy,
    sums_by_policy,
    units_needed,
)

from . import key_laws

STEPS = key_laws.STEPS


def part(units):
    """Return units, each a list of keys, as the library has them."""
    stops = np.cumsum([len(unit) for unit in units], dtype=np.int64)
    return Holdings(stops, np.array([key for unit in units for key in unit], np.int32))


def library_sums(units, cutoff, parts=1):
    """Return each key's sum, in steps: keys numbered as they are found, as routes do, and ranked by value."""
    found = list(dict.fromkeys(key for unit in units for key in unit))
    ranks = np.argsort(np.argsort(found)).astype(np.int32)
    numbered = [[found.index(key) for key in unit] for unit in units]
    singles = np.zeros(len(found), np.int64)
    runs = [[sorted_units(part(numbered[i::parts]), ranks, singles)] for i in range(parts)]
    sums = sums_by_policy(runs, singles, cutoff)
    return {key: int(sums[ranks[i]]) for i, key in enumerate(found)}


def by_holdings(units):
    """Return units in the canonical order."""
    return sorted(map(sorted, units), key=lambda unit: (-len(unit), unit))


def by_appearance(units):
    """Return units in an order that another unit decides: keys are ranked as they are found."""
    found = list(dict.fromkeys(key for unit in units for key in unit))
    return sorted(units, key=lambda unit: (-len(unit), sorted(found.index(key) for key in unit)))


def projected(lack):
    """Return a unit's step: what lacks, shortened to norm 1."""
    norm = math.sqrt(sum(v * v for v in lack))
    return [v * min(1.0, 1.0 / norm) if norm else 0.0 for v in lack]


def cut_off(lack):
    """Return a step that is not contractive: one unit of norm, equally among the keys that lack something."""
    open_keys = sum(v > 0 for v in lack)
    return [min(v, 1.0 / math.sqrt(open_keys)) if v > 0 else 0.0 for v in lack]


def plain_sums(units, cutoff, ordered=by_holdings, step=projected):
    """Return each key's sum in steps, in floating point."""
    sums = {}
    for unit in ordered(units):
        moved = step([cutoff / STEPS - sums.get(key, 0.0) for key in unit])
        for key, move in zip(unit, moved, strict=True):
            sums[key] = sums.get(key, 0.0) + move
    return {key: total * STEPS for key, total in sums.items()}


def instances(seed, number):
    """Yield lists of units and a cutoff: chains, crowds of equal units, one unit of all keys, and anything."""
    generator = np.random.default_rng(seed)
    for _ in range(number):
        keys = int(generator.integers(2, 8))
        names = generator.permutation(keys).tolist()
        chain = [[names[i], names[i + 1]] for i in range(keys - 1)]
        alike = [names[: int(generator.integers(1, keys + 1))]] * int(generator.integers(1, 5))
        anything = [
            generator.choice(keys, int(generator.integers(1, keys + 1)), replace=False).tolist()
            for _ in range(int(generator.integers(1, 9)))
        ]
        kinds = [chain * int(generator.integers(1, 4)), alike, [names], anything]
        units = [unit for kind in kinds if generator.random() < 0.6 for unit in kind]
        if units:
            order = generator.permutation(len(units))
            yield [units[i] for i in order], int(STEPS * generator.uniform(1.0, 4.0))


def moved(one, other):
    """Return by which vector sums differ; a key that nobody holds has none."""
    return [one.get(key, 0) - other.get(key, 0) for key in one.keys() | other.keys()]


def test_one_unit_moves_the_sums_by_at_most_one(seed):
    """Soundness rule 18: every removal from thousands of sets of units, in whole steps; and never downwards.

    1 but for rounding: less than a step for every key, and far less in all that came before.
    """
    cases = 0
    for units, cutoff in instances(seed, 1500):
        whole = library_sums(units, cutoff)
        for i in range(len(units)):
            move = moved(whole, library_sums(units[:i] + units[i + 1 :], cutoff))
            assert sum(d * d for d in move) <= (STEPS + math.sqrt(len(move)) + 1) ** 2 < SENSITIVITY**2, (units, i)
            assert min(move) >= -1
            cases += 1
    assert cases > 5000


def test_two_exchanged_units_move_the_sums_by_at_most_the_root_of_two(seed):
    """Soundness rule 18, for neighbours that exchange a unit, also for one of other keys."""
    generator = np.random.default_rng(seed)
    for units, cutoff in instances(seed + 1, 600):
        whole = library_sums(units, cutoff)
        for i in range(len(units)):
            other = generator.choice(9, int(generator.integers(1, 9)), replace=False).tolist()
            exchanged = [*units[:i], other, *units[i + 1 :]]
            move = moved(whole, library_sums(exchanged, cutoff))
            assert sum(d * d for d in move) <= 2 * (STEPS + math.sqrt(len(move)) + 1) ** 2 < 2 * SENSITIVITY**2


@pytest.mark.parametrize("fault", [{"ordered": by_appearance}, {"step": cut_off}], ids=["order", "step"])
def test_the_faults_that_come_to_mind_are_found(fault):
    """An order that a unit's presence changes, and a step without the projection, move the sums by more than 1."""
    worst = 0.0
    for units, cutoff in instances(1, 300):
        whole = plain_sums(units, cutoff, **fault)
        for i in range(len(units)):
            move = moved(whole, plain_sums(units[:i] + units[i + 1 :], cutoff, **fault))
            worst = max(worst, math.hypot(*move) / STEPS)
    assert worst > 1.05


def test_sums_are_those_of_a_plain_loop(seed):
    """Within a step of floating point, in one run of units or in several that are merged."""
    for units, cutoff in instances(seed, 400):
        plain = plain_sums(units, cutoff)
        for parts in (1, 2, 5):
            for key, total in library_sums(units, cutoff, parts).items():
                assert abs(total - plain[key]) <= 2
                assert 0 <= total <= cutoff


def test_rounding_stays_within_its_bound():
    """Beside a loop in whole numbers that rounds every step to the nearest: over 3,000 pairs of a unit and a key."""
    generator = np.random.default_rng(4)
    units = [generator.choice(40, 15, replace=False).tolist() for _ in range(200)]
    cutoff, finer = 30 * STEPS + 12345, 2**25
    one, sums = STEPS * finer, dict.fromkeys(range(40), 0)
    for unit in by_holdings(units):
        lack = [cutoff * finer - sums[key] for key in unit]
        square = sum(v * v for v in lack)
        for key, v in zip(unit, lack, strict=True):
            # v / sqrt(square) of one, its root taken of four times as much and rounded.
            sums[key] += v if square <= one * one else min((math.isqrt(4 * (v * one) ** 2 // square) + 1) // 2, v)
    found = library_sums(units, cutoff)
    assert min(found.values()) > 0
    for key, total in found.items():
        assert -1 - 2 * 0.91 * 3000 / finer <= total - sums[key] / finer <= 2 * 0.91 * 3000 / finer


def test_units_of_one_key_fill_it_as_far_as_they_go():
    """Also where there are more than whole numbers of 2**-49 could add up, and at the largest cutoff."""
    largest = 2**38 - 1
    singles = np.array([0, 1, 3, 2**14 - 1, 2**14, 2**31], np.int64)
    assert sums_by_policy([], singles, largest).tolist() == [0, STEPS, 3 * STEPS, (2**14 - 1) * STEPS, largest, largest]
    assert sums_by_policy([], singles, 5 * STEPS // 2).tolist() == [0, STEPS, *[5 * STEPS // 2] * 4]


def test_units_are_ordered_by_what_they_hold():
    """Many keys first, then as words in a dictionary; also where many begin alike. Units of one key are counted."""
    generator = np.random.default_rng(2)
    units = [generator.choice(60, int(size), replace=False).tolist() for size in generator.integers(0, 50, 400)]
    units += [[0, 1, 2, int(k)] for k in generator.integers(3, 60, 300)] + [[5]] * 40 + [[]] * 9
    ranks = generator.permutation(60).astype(np.int32)
    singles = np.ones(60, np.int64)
    found = sorted_units(part(units), ranks, singles)
    starts = np.append(0, found.stops[:-1])
    listed = [found.groups[a:b].tolist() for a, b in zip(starts, found.stops, strict=True)]
    assert listed == by_holdings([[int(ranks[key]) for key in unit] for unit in units if len(unit) > 1])
    assert singles.sum() == 60 + sum(len(unit) == 1 for unit in units)
    assert singles[ranks[5]] >= 41


@pytest.mark.parametrize("most", [1, 2, 17, 400, 2**31])
def test_what_a_unit_may_hold_alone_is_covered(most):
    """Keys of one unit get 1 / sqrt(t) at most, and rounding, also where others filled its other keys."""
    cases = lonely_by_policy(most)
    assert max(case.keys for case in cases) == most
    for t in [number for number in (1, 2, 3, 16, 17, 400) if number <= most]:
        others = [[key] for key in range(1000, 1010)] * 30
        sums = library_sums([*others, [*range(t), *range(1000, 1000 + min(most - t, 10))]], 20 * STEPS)
        got = max(sums[key] for key in range(t))
        assert got <= STEPS / math.sqrt(t) + 3
        assert any(case.keys >= t and case.number >= got for case in cases)


def test_no_data_need_more_units_than_is_said():
    """Other keys are never filled: fresh ones for every unit; and in other cases fewer are enough."""
    for keys, threshold, above in ((1, 5.5, 4.0), (2, 5.5, 4.0), (20, 57.0, 31.0), (20, 57.0, 80.0), (300, 9.0, 3.0)):
        high = threshold + above
        lack, count = high, 0
        while lack > above:
            lack -= lack * min(1.0, 1.0 / math.hypot(lack, math.sqrt(keys - 1) * high))
            count += 1
        said = units_needed(keys, int(threshold * STEPS), int(high * STEPS))
        assert count <= said <= count * 1.02 + 1
        units = [[0, *range(1 + i * (keys - 1), 1 + (i + 1) * (keys - 1))] for i in range(said)]
        if said * keys < 20_000:
            assert library_sums(units, int(high * STEPS))[0] >= int(threshold * STEPS)


def key_share(**arguments):
    unit = {"privacy_unit": "u", "max_groups": 10, "max_rows_per_group": 1}
    settled = {"n": dpf.count(), "epsilon": 1.0, "delta": 1e-7, "key_selection": "policy", **unit}
    return dpf.plan(pl.DataFrame({"k": ["a"], "u": [1]}), "k", **{**settled, **arguments})._blueprint.key_share


def test_a_plan_says_what_it_does():
    share = key_share()
    assert share.rule.name == "policy"
    assert share.rule.cutoff == cutoff_above(share.rule.threshold, share.rule.noise.scale) > share.rule.threshold
    assert "each unit in turn" in share.explain()
    weighted = key_share(key_selection="weighted")
    assert weighted.needed.fewest <= share.needed.fewest <= weighted.needed.fewest + 1
    # The noise is wider by the bound on rounding, and no more.
    for neighbors in ("add_remove", "replace"):
        policy, weights = (key_share(key_selection=name, neighbors=neighbors).rule for name in ("policy", "weighted"))
        assert 1 <= policy.noise.scale / weights.rounds[0][0].scale / (1 + 2**-8) < 1 + 1e-6
    # One key a unit: nothing to share.
    assert key_share(max_groups=1).rule.name == "threshold"


@pytest.mark.parametrize("max_groups", [2, 10, 1000])
@pytest.mark.parametrize("delta", [1e-3, 1e-12])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
def test_auto_would_not_take_it(max_groups, delta, epsilon):
    """By the number that rules are compared by it needs more units than weights, whatever the parameters."""
    given = {"max_groups": max_groups, "delta": delta, "epsilon": epsilon, "mechanism": "gaussian"}
    assert key_share(**given).needed.typical >= key_share(key_selection="weighted", **given).needed.typical
    assert key_share(**{**given, "key_selection": "auto"}).rule.name != "policy"


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [({"mechanism": "laplace"}, "key_selection"), ({"delta": 0.0}, "delta"), ({"epsilon": 1e-4}, "epsilon"),
     ({"epsilon": None, "rho": 1e-9}, "rho")],
)  # fmt: skip
def test_what_it_cannot_do_is_refused_before_any_charge(arguments, argument):
    with pytest.raises(ParameterError, match=rf"^{argument} ") as caught:
        key_share(**arguments)
    assert "\n" not in str(caught.value)


def test_the_command_line_takes_every_rule():
    from dpfast.cli.commands import main
    from dpfast.releases.request import RULE

    (option,) = [option for option in main.commands["release"].params if option.name == "key_selection"]
    assert tuple(option.type.choices) == RULE.choices


def test_more_keys_have_what_they_need_than_by_weights():
    """Zipf data of 20,000 units, without noise: keys whose sum reaches the threshold of their rule."""
    generator = np.random.default_rng(7)
    sizes = np.minimum(generator.zipf(1.7, 20_000), 10)
    keys = np.minimum(generator.zipf(1.3, sizes.sum()), 5000)
    frame = pl.DataFrame({"u": np.repeat(np.arange(20_000), sizes), "k": keys}).unique(maintain_order=True)
    units = frame.group_by("u").agg("k")["k"].to_list()
    by_weights = dict.fromkeys(range(1, 5001), 0)
    for unit in units:
        for key in unit:
            by_weights[key] += key_laws.weight("gaussian", len(unit))
    policy, weighted = key_share().rule, key_share(key_selection="weighted").rule
    reached = sum(total >= policy.threshold for total in library_sums(units, policy.cutoff).values())
    before = sum(total >= weighted.rounds[0][1] for total in by_weights.values())
    assert reached >= 1.15 * before, (reached, before)


def test_small_subsets_of_units_in_all_orders():
    """Rows in any order, units of any number: the same sums."""
    units = [list(some) for size in (1, 2, 3) for some in combinations("abc", size)]
    wanted = library_sums(units, 2 * STEPS)
    generator = np.random.default_rng(1)
    for _ in range(50):
        shuffled = [generator.permutation(units[i]).tolist() for i in generator.permutation(len(units))]
        assert library_sums(shuffled, 2 * STEPS) == wanted
