"""Figures that queries share: neighbours never use more of an event than it says, whatever is measured together."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import dpfast as dpf
from dpfast.accounting.budget import Budget
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.releases import drafting, group_planning
from dpfast.releases.measure_noise import gaussian_blocks, laplace_block
from dpfast.releases.measurements import Block, Measure, layouts
from dpfast.releases.planned_queries import drawn_parts

from . import joint_moves

FRAME = pl.DataFrame({"k": ["a"], "u": [1], "a": [1.0], "b": [1]})
KEYS = pl.DataFrame({"k": ["a", "b", "c", "d"]})

N, A = {"n": dpf.count()}, {"c": dpf.count("a")}
SUM, MEAN = {"s": dpf.sum("a", bounds=(-2, 3))}, {"m": dpf.mean("a", bounds=(0, 10))}
OTHER = {"o": dpf.mean("b", bounds=(-60, 600))}
PART, SPREAD = {"p": dpf.proportion("a", above=0)}, {"v": dpf.variance("a", bounds=(0, 10))}
FAR = {"f": dpf.sum("a", bounds=(5, 10)), "g": dpf.sum("a", bounds=(-9, -4))}
ASKED = {
    "n": N,
    "n c": N | A,
    "c s": A | SUM,
    "n c s": N | A | SUM,
    "m": MEAN,
    "n m": N | MEAN,
    "m o": MEAN | OTHER,
    "n m o": N | MEAN | OTHER,
    "n p": N | PART,
    "n p m": N | PART | MEAN,
    "n v": N | SPREAD,
    "n c s f g": N | A | SUM | FAR,
    "all": N | A | SUM | MEAN | OTHER | FAR | {"w": dpf.mean("a", bounds=(-1, 1))} | {"again": dpf.count()},
}
#: Values that reach every bound, on both sides, and none; missing values.
VALUES = {"a": [None, -100.0, -1.0, 0.0, 5.0, 100.0], "b": [None, -1000, 0, 1000]}
BUDGETS = {
    "laplace": {"epsilon": 0.7, "mechanism": "laplace"},
    "gaussian": {"epsilon": 0.7, "delta": 1e-5, "mechanism": "gaussian"},
    "rho": {"rho": 0.03, "mechanism": "gaussian"},
    "laplace by rho": {"rho": 0.03, "mechanism": "laplace"},
}
UNITS = {"rows": (), "G2 R1": (2, 1), "G1 R2": (1, 2), "G3 R3": (3, 3)}
SPLITS = ["even", "weights", "optimal"]


def asked_of(queries, arguments, monkeypatch):
    """Return what a plan has to plan, and the plan."""
    seen = []
    with monkeypatch.context() as patch:
        patch.setattr(group_planning, "plan_noise", lambda asked: seen.append(asked) or drafting.plan_noise(asked))
        plan = dpf.plan(FRAME, "k", **{"privacy_unit": "row", "keys": KEYS, "dataset": "d", **arguments, **queries})
    return seen[0], plan._blueprint


def drafts(queries, budget, unit, neighbors, split, monkeypatch):
    """Return the parts of every way to measure what a plan asks, and whose presence they hide."""
    arguments = {"neighbors": neighbors, "split": split, **BUDGETS[budget]}
    if split == "weights":
        arguments["split"] = {name: 1 + 3 * place for place, name in enumerate(queries)}
    if UNITS[unit]:
        arguments |= {"privacy_unit": "u", **dict(zip(("max_groups", "max_rows_per_group"), UNITS[unit], strict=True))}
    asked, blueprint = asked_of(queries, arguments, monkeypatch)
    found = []
    for layout in layouts(asked.measures):
        if budget == "laplace by rho" and any(block.missing for block in layout.blocks):
            continue
        draft = drafting.draft_with(asked, layout, asked.mechanism)
        found.append(drawn_parts(draft.parts.values()))
    assert list(blueprint.parts) in found
    return found, blueprint.unit


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("asked", ASKED)
def test_no_unit_uses_more_than_the_events_say(asked, budget, unit, monkeypatch):
    """Soundness rules 10 and 14: all units, all pairs of neighbours, all ways to measure, exactly."""
    for neighbors in ("add_remove", "replace"):
        for split in SPLITS:
            found, whose = drafts(ASKED[asked], budget, unit, neighbors, split, monkeypatch)
            for parts in found:
                joint_moves.check(parts, VALUES, whose)


#: What a unit can move all at once, as far as it may. A replaced one moves differences to a middle most where it moves
#: no number of rows.
REACHED = {
    "add_remove": (
        {"n": dpf.count(), "m": dpf.mean("a", bounds=(0, 10)), "s": dpf.sum("a", bounds=(0, 5))},
        ASKED["n m o"],
    ),
    "replace": ({"n": dpf.count(), "c": dpf.count("a"), "s": dpf.sum("a", bounds=(0, 5))}, ASKED["n"]),
}


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_what_the_events_say_is_reached(neighbors, monkeypatch):
    """A bound that is never reached would be budget wasted."""
    for queries, budget, unit in product(REACHED[neighbors], BUDGETS, UNITS):
        found, whose = drafts(queries, budget, unit, neighbors, "even", monkeypatch)
        for parts in found:
            assert min(joint_moves.check(parts, VALUES, whose)) > 1 - 1e-9, (budget, unit)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("budget", ["laplace", "gaussian", "rho"])
def test_every_scale_is_the_least(budget, neighbors, monkeypatch):
    """The mutants: each scale a millionth smaller is found out, that of missing values too."""
    found, whose = drafts(REACHED[neighbors][0], budget, "G1 R2", neighbors, "weights", monkeypatch)
    seen = set()
    for parts in found:
        for place, part in enumerate(parts):
            less = [*parts]
            less[place] = replace(part, scale=part.scale * (1 - 1e-6))
            with pytest.raises(AssertionError):
                joint_moves.check(less, VALUES, whose)
            seen.add(part.measure.kind)
    assert seen == {"rows", "values", "missing", "sum"}


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("stranger", [Measure("sum", "b", 0, -1, 1), Measure("values", "b"), Measure("rows")])
def test_measures_of_other_columns_would_pay_for_no_missing_values(mechanism, neighbors, stranger):
    """The proof needs that a row without a value adds nothing to its block: the mutants put others there."""
    unit, own = PrivacyUnit("u", 2, 2, neighbors), Measure("sum", "a", 0, -4, 4)

    def drawn(*measures):
        block = Block(dict.fromkeys(measures, ()), Measure("missing", "a"))
        if mechanism == "laplace":
            shares = [Budget("epsilon", 10**17)] * len(measures)
            return laplace_block(shares, block, unit, ["what"] * len(measures))
        share = Budget("rho", 10**17)
        return gaussian_blocks(share, [block], [[1] * len(measures)], unit, "what")

    assert joint_moves.check(drawn(own, Measure("values", "a")), VALUES, unit) == [pytest.approx(1)]
    with pytest.raises(AssertionError):
        joint_moves.check(drawn(own, stranger), VALUES, unit)


bound = st.integers(-1000, 1000)
bounds = st.tuples(bound, bound).filter(lambda some: some[0] < some[1])
rows = st.lists(st.tuples(*(st.sampled_from([None, -(10.0**6), -3.0, 0.0, 7.0, 10.0**6]) for _ in "ab")), max_size=9)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from(["sum", "mean"]), st.sampled_from("ab"), bounds), min_size=1, max_size=5),
    st.sets(st.sampled_from(["n", "a", "b"])),
    st.tuples(st.integers(1, 4), st.integers(1, 9), st.sampled_from(["add_remove", "replace"])),
    st.sampled_from(sorted(BUDGETS)),
    st.lists(st.tuples(rows, rows), min_size=1, max_size=8),
)
def test_large_units_use_no_more_either(figures, counts, shape, budget, groups):
    """Any bounds, more rows and groups: drawn units of which the second takes the place of the first."""
    most, height, neighbors = shape
    queries = {f"q{place}": getattr(dpf, kind)(on, bounds=given) for place, (kind, on, given) in enumerate(figures)}
    queries |= {f"count_{name}": dpf.count(None if name == "n" else name) for name in counts}
    UNITS["drawn"] = most, height
    try:
        found, whose = drafts(queries, budget, "drawn", neighbors, "even", pytest.MonkeyPatch())
    finally:
        del UNITS["drawn"]
    held = [[[dict(zip("ab", row, strict=True)) for row in some[:height]] for some in both] for both in groups]
    for parts in found:
        for some in joint_moves.by_charge(parts):
            before, after = (
                [[sum(joint_moves.added(part.measure, row) for row in both[one]) for part in some] for both in held]
                for one in (0, 1)
            )
            if neighbors == "add_remove":
                after = [[0] * len(some)] * len(held)
            # The groups that the first unit is in, as many as it may, and so many of the second, some of them the same.
            places = range(min(most, len(held)))
            for shift in range(len(held) - len(places) + 1):
                moves = {place: list(before[place]) for place in places}
                for place in (each + shift for each in places):
                    moved = moves.get(place, [0] * len(some))
                    moves[place] = [x - y for x, y in zip(moved, after[place], strict=True)]
                total = sum((joint_moves.used(some, move) for move in moves.values()), Fraction(0))
                assert total <= joint_moves.allowed(some), (math.nan, whose)


def variance_of(asked, layout, mechanism, units):
    """Return the weighted sum of all variances as a function of the shares, and how many of these there are.

    A figure's variance is that of the measures that it is made of; missing values have the shares of their block. A
    mean's count weighs half the width of the bounds, squared.
    """
    own = [measure for block in layout.blocks for measure in block.uses]
    power = 2 if mechanism == "laplace" and "epsilon" in units else 1
    beside = {block.missing: list(block.uses) for block in layout.blocks if block.missing is not None}
    terms = []
    for name, figures in layout.figures.items():
        query = asked.queries[name]
        for figure in figures:
            width = query.bounds[1] - query.bounds[0] if query.kind == "mean" and figure.asked.kind == "values" else 2
            for measure in figure.measures:
                moved = measure.sensitivity(asked.unit)
                size = float(moved.l1**2 if mechanism == "laplace" else moved.l2_squared) * 4.0**measure.step_exponent
                weight = float(asked.split.weights.get(name, 1)) * (width / 2) ** 2
                places = [own.index(one) for one in beside.get(measure, [measure])]
                terms.append((weight * size, places))

    def total(shares):
        return sum(cost / shares[places].sum() ** power for cost, places in terms)

    return total, len(own)


@pytest.mark.parametrize("budget", ["laplace", "gaussian", "rho"])
@pytest.mark.parametrize("asked", ["n c", "n m", "m o", "n m o", "n c s f g", "all"])
def test_optimal_splits_are_the_least_of_every_way_to_measure(asked, budget, monkeypatch):
    """SciPy's minimum of the variances, written down from the figures alone, is no lower; nor is another way's."""
    for split in ("optimal", ("optimal", {next(iter(ASKED[asked])): 50})):
        arguments = {"split": split, "privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 3, **BUDGETS[budget]}
        seen, blueprint = asked_of(ASKED[asked], arguments, monkeypatch)
        least = []
        for layout in layouts(seen.measures):
            total, number = variance_of(seen, layout, seen.mechanism, arguments)

            def error(logs, total=total):
                shares = np.exp(logs - logs.max())
                return math.log(total(shares / shares.sum()))

            found = min(
                (minimize(error, np.zeros(number), method=method) for method in ("BFGS", "Nelder-Mead")),
                key=lambda one: one.fun,
            )
            parts = drawn_parts(drafting.draft_with(seen, layout, seen.mechanism).parts.values())
            paying = {part.measure: part for part in parts}
            own = [paying[measure] for block in layout.blocks for measure in block.uses]
            power = 1 if seen.mechanism == "laplace" else 2
            moved = [part.sensitivity.l1 if power == 1 else math.sqrt(part.sensitivity.l2_squared) for part in own]
            shares = np.array([(size / part.scale) ** power for size, part in zip(moved, own, strict=True)])
            assert error(np.log(shares)) <= found.fun + 1e-6
            least.append((error(np.log(shares)), parts))
        assert list(blueprint.parts) == min(least, key=lambda one: one[0])[1]
