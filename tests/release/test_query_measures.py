"""What new statistics are measured by: exact figures by an independent formula, and sensitivities by brute force."""

from __future__ import annotations

import datetime
import math
import random
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.aggregation.exact import Grouping, aggregate
from dpfast.errors import ColumnError, ParameterError
from dpfast.queries import Measure, matches_measure, product_measure
from dpfast.releases.query_measures import measures_of
from tests.rows.filters import passes as dpf_passes

from .oracles import contribution, largest_moves, touched_vectors
from .small_units import check_moves, moves_of, seeded_words, units_of

NAN, INF = float("nan"), float("inf")
ONE, OTHER = Measure("sum", "x", 0, -3, 5, 1), Measure("sum", "y", 0, -2, 2, 0)
SQUARE, PRODUCT = product_measure(ONE, ONE), product_measure(ONE, OTHER)


def test_products_are_what_they_say():
    assert (SQUARE.extremes, SQUARE.step_exponent) == ((-8, 8), 0)
    assert (PRODUCT.extremes, PRODUCT.step_exponent) == ((-8, 8), 0)
    fine = Measure("sum", "x", -20, -(2**23), 2**23, 5)
    square = product_measure(fine, fine)
    assert max(map(abs, square.extremes)) < 2**24 <= 2 * max(map(abs, square.extremes)) + 2
    assert square.shift == square.step_exponent + 40 == 22


def rows_of(measure):
    """Return everything that a row can contribute."""
    if measure.kind == "matches":
        return (-1, 1)
    if measure.kind == "passes":
        return (0, 1)
    if measure.kind == "product":
        one, other = measure.factors
        pairs = product(range(one.extremes[0], one.extremes[1] + 1), range(other.extremes[0], other.extremes[1] + 1))
        return sorted({a * b - measure.centre for a, b in pairs if one != other or a == b})
    return (1,)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize(("max_groups", "max_rows"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_the_formula_is_the_largest_move_there_is(neighbors, max_groups, max_rows):
    """Soundness rule 14: over all units and neighbours, by brute force; reached, so no smaller one would do."""
    unit = PrivacyUnit("who", max_groups, max_rows, neighbors)
    passes = measures_of(dpf.count(where=dpf.column("x") > 2))
    for measure in (Measure("units"), *passes, matches_measure(dpf.proportion("x").condition), SQUARE, PRODUCT):
        values = rows_of(measure)
        # The values between change nothing: sums of rows are largest, and smallest, at the ends.
        rows = 1 if measure.kind == "units" else max_rows
        vectors = touched_vectors((values[0], values[-1]), 2 * max_groups, max_groups, rows)
        stated = measure.sensitivity(unit)
        assert (stated.l1, stated.l2_squared) == largest_moves(vectors, neighbors), measure
        assert (values[0], values[-1]) == (measure.extremes if measure.kind != "units" else (1, 1))


SCHEMA = {"who": pl.Int64, "k": pl.String, "x": pl.Float64, "y": pl.Int64}
MEASURES = [
    Measure("units"),
    matches_measure(dpf.proportion("x", above=2).condition),
    matches_measure((dpf.column("x") > 2) & (dpf.column("y") > 1)),
    Measure("passes", condition=(dpf.column("x") > 2) | dpf.column("y").is_null()),
    SQUARE,
    PRODUCT,
    Measure("values", "x", given=("y",)),
    Measure("sum", "x", 0, -3, 5, 1, given=("y",)),
]


@pytest.mark.parametrize(("max_groups", "max_rows"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_real_aggregates_of_neighbours_stay_within_it(max_groups, max_rows):
    """Soundness rules 14 and 15: the aggregates themselves, for units of up to four rows, far too many."""
    grouping = Grouping(("k",), pl.DataFrame({"k": ["a", "b", "c", None]}), "who", max_groups, max_rows)
    others = [(1, "a", 4, 1), (1, "a", -9, 2), (1, "b", None, 3), (2, "c", 100, -1), (None, "a", 3, 3)]
    possible = [*product(["a", "b", None], [-100, 1, 100], [-5, 5]), ("c", None, 1), ("zz", 8, None)]

    def figures(rows):
        frame = pl.DataFrame([*others, *((9, *row) for row in rows)], schema=SCHEMA, orient="row")
        found = aggregate(frame, grouping, MEASURES, seeded_words(0))
        return [np.array(values, np.int64) for values in found.measures]

    moved = moves_of(figures, units_of(possible, {1: 1, 3: 29, 4: 211}))
    for measure, moves in zip(MEASURES, moved, strict=True):
        check_moves(measure, moves, max_groups, max_rows)
        if measure.kind == "units":
            assert np.abs(moves).sum(axis=1).max() == max_groups


VALUES = [0.5, 1.5, 2.5, -0.5, -2.5, 2.5000000000000004, -0.0, 5e-324, 1e308, INF, -INF, NAN, None, 3.7, -11.25]
WHOLE = [0, 1, -1, 3, 5, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), None]
TEXTS = ["a", "é", "", "a string of more than twelve bytes", None]
DAYS = [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31), None]
CONDITIONS = {
    "x": [{"above": 0.5}, {"at_least": 0.5, "below": 2.5}, {"at_most": -0.0}, {"above": 1e308}, {"equal": 2.5}],
    "g": [{"above": 0.125}, {"at_least": 2.5}, {"below": 0.125}],
    "y": [{"above": 0.5}, {"at_least": -1.5, "at_most": 3}, {"above": 2**53}, {"below": 2**62}, {"above": 2**63},
          {"among": [3, 2**63 - 1]}, {"at_least": -(2**63)}],
    "n": [{"above": 2**63}, {"below": 1}, {"at_most": 2**64 - 2}, {"above": -5}, {"equal": 2**64 - 1}],
    "t": [{"equal": "a"}, {"among": ["é", ""]}],
    "c": [{"equal": "a"}, {"among": ["none", "é"]}],
    "d": [{"equal": DAYS[0]}, {"below": DAYS[0]}, {"among": DAYS[:2]}],
    "b": [{}, {"equal": False}],
    "z": [{"above": 0}],
}  # fmt: skip


def frame_of(rows, seed):
    choose = random.Random(seed)
    columns = {
        "k": (pl.String, ["p", "q", None]),
        "x": (pl.Float64, VALUES),
        "g": (pl.Float32, [0.1, 2.5, -1.5, NAN, None]),
        "y": (pl.Int64, WHOLE),
        "i": (pl.Int16, [0, 3, -7, None]),
        "n": (pl.UInt64, [0, 1, 2**63, 2**64 - 1, None]),
        "t": (pl.String, TEXTS),
        "c": (pl.Categorical, TEXTS),
        "d": (pl.Date, DAYS),
        "b": (pl.Boolean, [True, False, None]),
        "z": (pl.Null, [None]),
    }
    drawn = {name: [choose.choice(values) for _ in range(rows)] for name, (_, values) in columns.items()}
    return pl.DataFrame(drawn, schema={name: dtype for name, (dtype, _) in columns.items()})


def fulfils(value, above=None, at_least=None, below=None, at_most=None, equal=None, among=None):
    """Return what a condition says of a value, by Python's own comparisons, which are exact."""
    if among is not None:
        return value in among
    if equal is not None:
        return value == equal
    if above is at_least is below is at_most is None:
        return value is True
    lower = (above is None or value > above) and (at_least is None or value >= at_least)
    return lower and (below is None or value < below) and (at_most is None or value <= at_most)


def is_missing(value):
    return value is None or value != value


def routes(frame):
    """Yield frames and groupings for every way of aggregating rows."""
    keys = pl.DataFrame({"k": ["q", None, "p"]})
    yield frame, Grouping(("k",), keys)
    yield frame.lazy(), Grouping(("k",), keys)
    yield frame, Grouping(("k",))
    rechunked = pl.concat([frame[:7], frame[7:]], rechunk=False)
    yield rechunked, Grouping(("k",), keys)
    yield frame.with_row_index("who"), Grouping(("k",), keys, "who", 3, 5)
    yield frame.with_row_index("who").lazy(), Grouping(("k",), None, "who", 3, 5)


def check(frame, measures, expected):
    """Compare the figures of every route with what ``expected(measure, row)`` adds up to."""
    wanted = {}
    for row in frame.iter_rows(named=True):
        figures = wanted.setdefault(row["k"], [0] * len(measures))
        for place, measure in enumerate(measures):
            figures[place] += expected(measure, row)
    for source, grouping in routes(frame):
        found = aggregate(source, grouping, measures, seeded_words(1))
        for place, measure in enumerate(measures):
            figures = dict(zip(found.keys["k"], np.array(found.measures[place]).tolist(), strict=True))
            assert figures == {key: values[place] for key, values in wanted.items()}, (measure, grouping)


def test_conditions_are_compared_exactly(seed):
    frame = frame_of(300, seed)
    asked = [(column, condition) for column, conditions in CONDITIONS.items() for condition in conditions]
    measures = [matches_measure(dpf.proportion(column, **condition).condition) for column, condition in asked]
    given = dict(zip(map(id, measures), asked, strict=True))

    def expected(measure, row):
        column, condition = given[id(measure)]
        value = row[column]
        return 0 if is_missing(value) else 1 if fulfils(value, **condition) else -1

    check(frame, measures, expected)


def test_products_and_pairs_are_exact(seed):
    frame = frame_of(300, seed)
    fine = Measure("sum", "x", -20, -(2**22), 2**22, 5)
    small, large = Measure("sum", "i", -10, -(2**13), 2**12, 3), Measure("sum", "y", 41, -(2**22), 2**21, -9)
    measures = [
        *(product_measure(one, other) for one, other in product((fine, small, large), repeat=2)),
        Measure("values", "t", given=("x", "y")),
        Measure("sum", "g", -3, -10, 100, 20, given=("b",)),
        Measure("units"),
    ]

    def expected(measure, row):
        if any(is_missing(row[name]) for name in measure.columns):
            return 0
        if measure.kind in ("values", "units"):
            return 1
        if measure.kind == "sum":
            return contribution(row[measure.column], *sizes(measure))
        one, other = (contribution(row[factor.column], *sizes(factor)) for factor in measure.factors)
        half = Fraction(1, 2) if measure.shift else 0
        return math.floor(Fraction(one * other, 2**measure.shift) + half) - measure.centre

    check(frame, measures, expected)


def sizes(measure):
    return measure.step_exponent, measure.lower, measure.upper, measure.centre


@pytest.mark.parametrize(
    ("column", "condition", "message"),
    [
        ("t", {"above": 1}, "a proportion compares the column 't' .* with a number; compare it with text"),
        ("x", {}, "with a Boolean; compare it with numbers"),
        ("d", {"at_least": 3}, "compare it with a date"),
        ("none", {}, "none"),
    ],
)
def test_conditions_that_do_not_suit_a_column_are_refused_by_the_plan(column, condition, message):
    with pytest.raises((ColumnError, ParameterError), match=message):
        dpf.plan(frame_of(5, 0), p=dpf.proportion(column, **condition), privacy_unit="row", epsilon=1.0)


X, Y = dpf.column("x"), dpf.column("y")


@pytest.mark.parametrize(
    ("of", "given", "argument"),
    [
        (X > 1, {"above": 1}, "above"),
        (X, {"among": [1]}, "among"),
        (X.is_null(), {}, "of"),
        (X.is_null() | ~Y.is_nan(), {}, "of"),
        (pl.col("x") > 1, {}, "of"),
        ("x", {"among": ["a", None]}, "among"),
        ("x", {"equal": NAN}, "equal"),
        ("x", {"among": []}, "among"),
    ],
)
def test_what_is_no_condition_is_refused(of, given, argument):
    with pytest.raises(ParameterError, match=rf"^{argument} "):
        dpf.proportion(of, **given)


#: Conditions on several columns, in the words of filters, of Python, and which columns must have a value.
JOINED = [
    ((X > 0.5) & (Y <= 3), lambda row: row["x"] > 0.5 and row["y"] <= 3, "xy"),
    ((X > 0.5) | ~(Y != 0), lambda row: row["x"] > 0.5 or row["y"] == 0, "xy"),
    ((X > 0.5) & (X < 2**53), lambda row: 0.5 < row["x"] < 2**53, "x"),
    ((X > 2) & (X < 1), lambda row: False, "x"),
    (~(X > 0.5) & dpf.column("t").is_null(), lambda row: not row["x"] > 0.5 and row["t"] is None, "x"),
    (dpf.column("b") & (X != 0.5), lambda row: row["b"] and row["x"] != 0.5, "bx"),
]


def test_conditions_on_several_columns_leave_out_rows_without_a_compared_value(seed):
    """Of what is only asked whether it is null, rows are not left out; counts leave out none."""
    frame = frame_of(300, seed)
    found = [measures_of(query(where)) for where, _, _ in JOINED for query in (dpf.proportion, passing)]
    measures = [measure for some in found for measure in some]
    wanted = [wanted for _, *wanted in JOINED for _ in range(3)]

    def expected(measure, row):
        holds, needed = wanted[next(place for place, one in enumerate(measures) if one is measure)]
        is_there = not any(is_missing(row[name]) for name in needed)
        if measure.kind == "values":
            return int(is_there)
        if measure.kind == "passes":
            return int(dpf_passes(measure.condition, row, frame.schema))
        return 0 if not is_there else 1 if holds(row) else -1

    check(frame, measures, expected)


def passing(where):
    return dpf.count(where=where)


def test_moments_share_what_a_mean_is_measured_by():
    bounds = (-60, 600)
    mean = measures_of(dpf.mean("x", bounds=bounds))
    assert measures_of(dpf.variance("x", bounds=bounds))[:2] == mean
    assert measures_of(dpf.proportion("x", above=3))[1] == mean[1] == Measure("values", "x")


@pytest.mark.parametrize("bounds", [(-1e150, 1e150), (0, 1e-130), (1e100, 2e100), (0, 2**-64), (-5, 1e9)])
def test_bounds_of_moments_of_every_size_leave_floats(bounds):
    frame = pl.DataFrame({"x": [float(bounds[0]), float(bounds[1]), None, INF, NAN]})
    released = dpf.release(
        frame, v=dpf.variance("x", bounds=bounds), c=dpf.covariance("x", "x", bounds=bounds, other_bounds=bounds),
        s=dpf.std("x", bounds=bounds), privacy_unit="row", epsilon=1.0, ledger=dpf.Ledger(epsilon=1.0),
    ).frame  # fmt: skip
    assert all(math.isfinite(value) for value in released.row(0))
    assert released["v"].item() >= 0


@pytest.mark.parametrize("bounds", [(-1e151, 0), (0, 1e-131), (1, 0), (0, NAN)])
def test_other_bounds_of_moments_are_refused(bounds):
    for ask in (dpf.variance, dpf.std):
        with pytest.raises(ParameterError, match=r"^bounds "):
            ask("x", bounds=bounds)
    with pytest.raises(ParameterError, match=r"^other_bounds "):
        dpf.covariance("x", "y", bounds=(0, 1), other_bounds=bounds)
