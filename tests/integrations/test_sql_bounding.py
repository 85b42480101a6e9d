"""No unit contributes more than it may, and neighbours are no further apart than the sensitivities say."""

from __future__ import annotations

import itertools
import random
import sqlite3

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf
from dpfast.accounting.privacy_unit import PrivacyUnit
from dpfast.aggregation.protocols import GroupQuery
from dpfast.queries import Measure

MEASURES = (
    Measure("rows"),
    Measure("values", "x"),
    Measure("sum", "x", -1, -3, 5, 0),
    Measure("sum", "x", 0, 2, 6, 4),
    Measure("sum", "x", 0, 5, 9, 0),
    Measure("unit_sum", "x", 0, -5, 3, factors=(Measure("addend", "x", -3, -(2**47), 2**47),)),
    Measure("unit_mean", "x", 0, -2, 6, 2, factors=(Measure("sum", "x", 0, -2, 6, 2),)),
    Measure("unit_values", "x"),
)
ROW = st.tuples(
    st.sampled_from(["a", "b", "A", None]),
    st.sampled_from(["p", "q", "r", None]),
    st.sampled_from([-9.0, -0.5, 0.25, 1.5, 4.0, 9.0, None]),
)


@pytest.fixture(scope="module")
def figures():
    """Return the figures of rows by key, in SQLite."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE rides (u TEXT, k TEXT, x REAL)")
    engine = dpf.sql(connection, "rides").engine()

    def compute(rows, query):
        connection.execute("DELETE FROM rides")
        connection.executemany("INSERT INTO rides VALUES (?, ?, ?)", rows)
        return {row[0]: row[1:] for row in pl.DataFrame(engine.aggregate(query)).rows()}

    return compute


def distances(one, two, place):
    differences = [one.get(key, (0,) * 9)[place] - two.get(key, (0,) * 9)[place] for key in {*one, *two}]
    return sum(map(abs, differences)), sum(difference**2 for difference in differences)


@settings(max_examples=60)
@given(st.lists(ROW, max_size=24), st.integers(1, 4), st.integers(1, 4), st.binary(min_size=1, max_size=8))
def test_a_unit_alone_stays_within_its_bounds(figures, rows, groups, most, salt):
    query = GroupQuery(("k",), MEASURES, "u", groups, most, None, salt)
    everything = figures(rows, query)
    alone = [figures([row for row in rows if row[0] == unit], query) for unit in ("a", "b", "A")]
    for found in alone:
        assert len(found) <= groups
        assert all(row[0] == 1 and 1 <= row[1] <= most for row in found.values())
    # The figures of all are those of each unit alone, added up: no unit's choice depends on another's rows.
    assert everything == {
        key: tuple(map(sum, zip(*(found[key] for found in alone if key in found), strict=True))) for key in everything
    }


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_neighbours_are_within_the_sensitivities(figures, neighbors):
    generator = random.Random(20_261_122)
    reached = 0
    for groups, most in itertools.product((1, 2, 3), (1, 2)):
        unit = PrivacyUnit("u", groups, most, neighbors)
        query = GroupQuery(("k",), MEASURES, "u", groups, most, None, bytes([groups, most]))

        def some(name, largest):
            values = [-9.0, 0.5, 2.5, 9.0, None]
            number = generator.randrange(largest)
            return [(name, generator.choice("pqrs"), generator.choice(values)) for _ in range(number)]

        for _ in range(60):
            others = [*some("other", 5), *some("another", 5)]
            before = figures([*others, *some("one", 12)], query)
            after = figures([*others, *(some("two", 12) if neighbors == "replace" else [])], query)
            for place, measure in enumerate(MEASURES):
                sensitivity = measure.sensitivity(unit)
                l1, l2_squared = distances(before, after, place + 1)
                assert l1 <= sensitivity.l1
                assert l2_squared <= sensitivity.l2_squared
                reached += l1 == sensitivity.l1
    # A bound that nothing reaches would be too large, or these data too tame.
    assert reached > 20


def test_each_group_and_each_row_is_as_likely(figures):
    """1,000 salts, always the same: a share of 2/5 is met within 0.08, five standard deviations."""
    rows = [("a", key, float(value)) for key in "pqrst" for value in range(5)]
    groups, total = dict.fromkeys("pqrst", 0), 0.0
    for number in range(1000):
        salt = number.to_bytes(4, "big")
        for key in figures(rows, GroupQuery(("k",), (Measure("rows"),), "u", 2, 5, None, salt)):
            groups[key] += 1
        found = figures(rows, GroupQuery(("k",), (Measure("sum", "x", 0, 0, 9, 0),), "u", 5, 2, None, salt))
        total += sum(row[1] for row in found.values()) / 5
    assert all(abs(count / 1000 - 2 / 5) < 0.08 for count in groups.values())
    assert abs(total / 1000 - 2 * 2.0) < 0.1
