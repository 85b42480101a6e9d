"""Soundness rules 14, 15 and 16: aggregates never move further between neighbours than the sensitivity says."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.aggregation.exact import Grouping, aggregate
from dpfast.errors import ParameterError
from dpfast.queries import Measure, Query, sum_measure
from dpfast.releases.query_measures import of_columns

from .oracles import largest_moves, touched_vectors
from .small_units import check_moves, moves_of, seeded_words, units_of

BOUNDS = [(5, 10), (-10, -5), (-3, 5), (-5, 3), (-4, 4), (0, 7), (-7, 0), (2, 3), (0, 1)]


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize(("max_groups", "max_rows"), [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)])
def test_the_formula_is_the_largest_move_there_is(neighbors, max_groups, max_rows):
    """Soundness rule 14: over all units and neighbours, by brute force; reached, so no smaller one would do.

    Row 3.3-1.
    """
    unit = PrivacyUnit("who", max_groups, max_rows, neighbors)
    for low, high in BOUNDS:
        centre = (low + high) // 2
        measures = [
            (Measure("sum", "x", 0, low, high), (low, (low + high) // 2, high)),
            (Measure("sum", "x", 0, low, high, centre), (low - centre, 0, high - centre)),
        ]
        for measure, values in measures:
            vectors = touched_vectors(values, 2 * max_groups, max_groups, max_rows)
            stated = measure.sensitivity(unit)
            assert (stated.l1, stated.l2_squared) == largest_moves(vectors, neighbors), (low, high, centre)
    vectors = touched_vectors((1,), 2 * max_groups, max_groups, max_rows)
    for kind in ("rows", "values"):
        stated = Measure(kind, "x").sensitivity(unit)
        assert (stated.l1, stated.l2_squared) == largest_moves(vectors, neighbors)


def test_rows_may_move_to_other_groups():
    """Soundness rule 14's examples: not R (H - L), but what the formula says."""
    measure = Measure("sum", "x", 0, 5, 10)
    vectors = touched_vectors((5, 10), 2, 1, 3)
    moves = np.abs(vectors[:, None, :] - vectors[None, :, :])
    assert moves.max() == 30
    assert measure.sensitivity(PrivacyUnit("who", 1, 3, "replace")).l2_squared >= 30**2
    assert largest_moves(touched_vectors((5, 10), 2, 1, 1), "replace") == (20, 200)
    assert measure.sensitivity(PrivacyUnit(None, 1, 1, "replace")).l1 == 20


def vectors_of(rows, grouping, measures, seed):
    frame = pl.DataFrame(rows, schema={"who": pl.Int64, "k": pl.String, "x": pl.Float64}, orient="row")
    aggregates = aggregate(frame, grouping, measures, seeded_words(seed))
    return [np.array(values, np.int64) for values in aggregates.measures]


@pytest.mark.parametrize(("max_groups", "max_rows"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_real_aggregates_of_neighbours_stay_within_it(max_groups, max_rows):
    """Soundness rules 14 and 15: the aggregates themselves, for every unit of up to four rows, far too many.

    The changed unit has the largest number, so that the others are bounded by the same words; and the measures
    read bare columns, so that the rows come in the frame's order.
    """
    measures = [
        Measure("rows"),
        Measure("values", "x"),
        Measure("sum", "x", 0, -2, 3),
        Measure("sum", "x", 0, 5, 10),
        Measure("sum", "x", 0, 5, 10, 8),
    ]
    keys = pl.DataFrame({"k": ["a", "b", "c", None]})
    grouping = Grouping(("k",), keys, "who", max_groups, max_rows)
    others = [(1, "a", 4), (1, "a", -9), (1, "b", None), (1, None, 7), (2, "c", 100), (2, "zz", 1), (None, "a", 3)]
    possible = [*product(["a", "b", None], [-100, 100]), ("c", None), ("zz", 8)]

    def figures(rows):
        return vectors_of([*others, *((9, *row) for row in rows)], grouping, measures, 0)

    moved = moves_of(figures, units_of(possible, {1: 1, 3: 4, 4: 11}))
    for measure, moves in zip(measures, moved, strict=True):
        check_moves(measure, moves, max_groups, max_rows)
    assert moved[0].sum(axis=1).max() == max_groups * max_rows


@pytest.mark.parametrize("lazy", [False, True])
def test_what_a_unit_keeps_is_a_function_of_the_frame_and_the_words(lazy):
    """Soundness rule 14: its proof couples neighbours by their words, so that nothing else may have a say.

    A measure of whole values is an expression, which Polars evaluates; batches of it must keep the rows' order.
    """
    data = pl.DataFrame({"who": [1] * 1000, "k": [f"{i % 6}" for i in range(1000)], "x": range(1000)})
    grouping = Grouping(("k",), pl.DataFrame({"k": [f"{i}" for i in range(6)]}), "who", 2, 1)
    measures = [Measure("rows"), Measure("values", "x"), Measure("sum", "x", 0, 0, 10_000)]
    source = data.lazy() if lazy else data
    kept = {
        tuple(table for values in aggregate(source, grouping, measures, seeded_words(1)).measures for table in values)
        for _ in range(200)
    }
    assert len(kept) == 1


def test_rows_as_units_move_one_group_by_one_row():
    """Soundness rule 14 where each row is a unit. Row 3.3-6."""
    measures = [Measure("rows"), Measure("sum", "x", 0, 5, 10)]
    grouping = Grouping(("k",), pl.DataFrame({"k": ["a", "b"]}))
    rows = [(0, "a", 7), (0, "b", 99), (0, "a", None)]
    base = vectors_of(rows, grouping, measures, 0)
    for changed in product(["a", "b", "c", None], [-100, 0, 7, 100, None]):
        grown = vectors_of([*rows, (0, *changed)], grouping, measures, 0)
        for after, before, measure in zip(grown, base, measures, strict=True):
            stated = measure.sensitivity(PrivacyUnit(None, 1, 1, "add_remove"))
            assert np.abs(after - before).sum() <= stated.l1


def measure_of(query, whole):
    """Return the measure, or None if the bounds are refused as too near each other."""
    query = of_columns(query, {"x": pl.Int64() if whole else pl.Float64()})
    with suppress(ParameterError):
        return sum_measure(query)
    with pytest.raises(ParameterError, match=r"^bounds "):
        sum_measure(query)
    return None


bound = st.floats(-1e300, 1e300, allow_nan=False) | st.integers(-(2**62), 2**62).map(float)


@settings(deadline=None, max_examples=400)
@given(bound, bound, st.booleans(), st.sampled_from(["sum", "mean"]))
def test_steps_hold_the_bounds_and_never_overflow(one, other, whole, kind):
    """Soundness rule 16: 2**38 rows stay below 2**62, steps are the finest that do, and bounds lie on them."""
    lower, upper = sorted((one, other))
    query = Query(kind, "x", (lower, upper))
    measure = measure_of(query, whole)
    if measure is None:
        # Only where the bounds cannot be told apart at the finest step.
        near = max(abs(lower), abs(upper)) * 2.0**-22
        assert upper - lower <= near or (whole and upper - lower <= 1) or upper - lower < 2.0**-950
        return
    step = Fraction(2) ** measure.step_exponent
    largest = max(abs(measure.lower - measure.centre), abs(measure.upper - measure.centre))
    assert largest < 2**24
    assert largest * 2**38 < 2**62
    assert measure.lower < measure.upper
    for steps, given_bound in ((measure.lower, lower), (measure.upper, upper)):
        assert abs(steps - Fraction(given_bound) / step) <= Fraction(1, 2)
        # Soundness rule 16: steps pass through float64 unrounded on their way.
        assert int(float(steps)) == steps
        assert abs(steps) <= 2**53
    if kind == "mean":
        assert abs(2 * measure.centre - (measure.lower + measure.upper)) <= 2
        assert measure.lower <= measure.centre <= measure.upper
    else:
        assert measure.centre == 0
    if whole and kind == "sum":
        assert measure.step_exponent >= 0
    # A step half as large would not fit, unless steps are whole or as fine as they may be.
    finer = largest * 2 >= 2**24 - 2 or 2 * max(abs(measure.lower), abs(measure.upper)) >= 2**53 - 2
    assert finer or (whole and measure.step_exponent == 0) or measure.step_exponent <= -960


@pytest.mark.parametrize("upper", [5e-324, 1e-320, 1e-310, 1e-300])
def test_steps_of_tiny_bounds_do_not_vanish(upper):
    """A release's values are steps times a float: were that float 0, so would be everything released."""
    for kind in ("sum", "mean"):
        measure = measure_of(Query(kind, "x", (0.0, upper)), False)
        if measure is not None:
            assert math.ldexp(1.0, measure.step_exponent) > 0.0
            assert measure.upper > measure.lower


def test_rounded_bounds_count_where_they_exceed_the_given_ones():
    """Soundness rule 14: bounds are the rounded ones; on integers 3.5 allows 4, and 4 is what is covered."""
    measure = sum_measure(of_columns(dpf.sum("x", bounds=(0.5, 3.5)), {"x": pl.Int64()}))
    assert (measure.step_exponent, measure.lower, measure.upper) == (0, 0, 4)
    assert measure.sensitivity(PrivacyUnit(None, 1, 1, "add_remove")).l1 == 4


def test_noise_follows_the_sensitivity():
    """Soundness rules 10 and 14: every noisy measure of a plan has scale * epsilon >= its L1 sensitivity."""
    frame = pl.DataFrame({"k": ["a"], "u": ["x"], "f": [1.0], "i": [1]})
    for neighbors, mechanism in product(["add_remove", "replace"], ["laplace", "gaussian"]):
        plan = dpf.plan(
            frame, "k", n=dpf.count(), s=dpf.sum("i", bounds=(-3, 9)), m=dpf.mean("f", bounds=(-0.1, 7.3)),
            privacy_unit="u", max_groups=7, max_rows_per_group=5, neighbors=neighbors, mechanism=mechanism,
            epsilon=0.7, delta=1e-6,
        )  # fmt: skip
        blueprint = plan._blueprint
        # Measures of one charge spend it together: what they spend of it apart is held by test_measurements.py.
        charges = {id(part.charge): part.charge for part in blueprint.parts}
        spent = blueprint.key_share.epsilon_units + sum(charge.epsilon_units for charge in charges.values())
        for part in blueprint.parts:
            assert part.sensitivity == part.measure.sensitivity(blueprint.unit)
            if mechanism == "laplace":
                assert Fraction(part.scale) * Fraction(part.epsilon_units, 10**18) >= part.sensitivity.l1
        assert spent <= blueprint.epsilon_units == 7 * 10**17
        deltas = sum(charge.delta_units for charge in charges.values())
        assert deltas + blueprint.key_share.delta_units <= blueprint.delta_units <= 10**12
