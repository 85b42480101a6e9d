"""How many different values there are, and the most common ones in order: figures, sensitivities and laws."""

from __future__ import annotations

import datetime

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation.exact import Grouping, aggregate
from dpfast.aggregation.grouped_points import GroupedPoints, count_different
from dpfast.errors import ColumnError, ParameterError
from dpfast.queries import Measure
from dpfast.releases import ranked_values

from .small_units import check_small_units, seeded_words
from .test_query_measures import frame_of, is_missing, routes


def test_different_values_are_counted_on_every_route(seed):
    frame = frame_of(300, seed)
    columns = ["x", "g", "y", "i", "n", "t", "c", "d", "b", "z"]
    measures = [Measure("distinct", name) for name in columns]
    wanted = {
        key: [len({row[name] for row in rows if not is_missing(row[name])}) for name in columns]
        for key, rows in (
            (key, [row for row in frame.iter_rows(named=True) if row["k"] == key]) for key in ("p", "q", None)
        )
    }
    for source, grouping in routes(frame):
        found = aggregate(source, grouping, measures, seeded_words(1))
        figures = zip(*(np.array(column).tolist() for column in found.measures), strict=True)
        assert dict(zip(found.keys["k"], map(list, figures), strict=True)) == wanted


@pytest.mark.parametrize("codes", ["few", "many", "crowded"])
def test_different_values_are_counted_by_a_table_or_sorted(codes):
    """Some values are hashes of the same place: by design, since chance makes none of 65 in a row."""
    generator = np.random.default_rng(6)
    some = {
        "few": generator.integers(1, 2**62, 4096),
        "many": generator.integers(1, 2**62, 4097),
        "crowded": 8192 * np.arange(1, 100) + 7,
    }[codes]
    points = np.concatenate([some, generator.permutation(np.repeat(some, 2)), some[:1]])
    stops = np.array([0, some.size, points.size - 1, points.size])
    starts = np.append(0, stops[:-1])
    assert count_different(GroupedPoints(points, starts, stops)).tolist() == [0, some.size, some.size, 1]


def test_many_groups_are_counted_like_few():
    generator = np.random.default_rng(5)
    lengths = generator.integers(0, 5, 20_000)
    points = generator.integers(1, 4, lengths.sum())
    stops = np.cumsum(lengths)
    expected = [len(set(points[stop - size : stop])) for stop, size in zip(stops, lengths, strict=True)]
    assert count_different(GroupedPoints(points, stops - lengths, stops)).tolist() == expected


@pytest.mark.parametrize(("max_groups", "max_rows"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_neighbours_stay_within_the_sensitivity_and_reach_it(max_groups, max_rows):
    """Soundness rules 14 and 15: units of up to four rows beside others, added and replaced, by brute force."""
    check_small_units(Measure("distinct", "x"), [0, 1, 2, None], np.array, max_groups, max_rows)


def test_times_and_durations_have_values_and_lists_have_none():
    frame = pl.DataFrame(
        {
            "t": [datetime.time(1), datetime.time(2), None],
            "m": [datetime.datetime(2020, 1, 1)] * 2 + [None],
            "e": [datetime.timedelta(1), datetime.timedelta(2), datetime.timedelta(2)],
            "l": [[1], [2], None],
        }
    )
    for name, expected in (("t", 2), ("m", 1), ("e", 2)):
        assert aggregate(frame, Grouping(()), [Measure("distinct", name)], seeded_words(0)).measures[0] == [expected]
    with pytest.raises(ColumnError, match="cannot tell the values of the column 'l'"):
        dpf.plan(frame, d=dpf.count_distinct("l"), privacy_unit="row", epsilon=1.0)


def test_a_number_of_different_values_has_the_noise_of_a_count(released):
    data = pl.DataFrame({"k": np.arange(1000) % 4, "x": np.arange(1000) % 40})
    frame = released(data, "k", keys=pl.DataFrame({"k": range(5)}), d=dpf.count_distinct("x"), epsilon=2.0).frame
    assert frame["d"].dtype == pl.Int64
    assert frame["d_scale"].to_list() == [0.5] * 5
    # Of 40 values each group has 10. Noise of scale 0.5 exceeds 30 with a probability below e**-60.
    assert all(abs(found - exact) < 30 for found, exact in zip(frame["d"], [10, 10, 10, 10, 0], strict=True))


@pytest.mark.parametrize(
    "unit", [{"privacy_unit": "row"}, {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 1}]
)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_the_most_common_values_of_a_release(unit, neighbors, released):
    data = pl.DataFrame({"k": ["a", "b"] * 3000, "u": np.arange(6000)}).with_columns(
        c=pl.when(pl.col("u") % 12 < 6).then(pl.lit("x")).when(pl.col("u") % 12 < 10).then(pl.lit("y")).otherwise(None)
    )
    query = dpf.top_k("c", 3, candidates=["z", "y", "x", None])
    keys = pl.DataFrame({"k": ["b", "a"]})
    plan = dpf.plan(data, "k", keys=keys, o=query, epsilon=2.0, neighbors=neighbors, **unit)
    assert "rows of each of 4 candidates: L1 sensitivity" in plan.explain()
    frame = plan.run(dpf.Ledger(epsilon=2.0)).frame
    # Neighbouring counts differ by 500, and the scale is 2 at most: a wrong order has a probability below e**-120.
    assert frame["o"].to_list() == [["x", "y", None]] * 2
    assert frame.schema["o"] == pl.List(pl.String)
    assert frame["o_scale"].to_list() == [plan.to_frame()["scale"][0]] * 2
    for counts, low, high in zip(frame["o_count"], frame["o_lower"], frame["o_upper"], strict=True):
        assert all(abs(found - exact) < 400 for found, exact in zip(counts, [1500, 1000, 500], strict=True))
        reach = plan.error()["one"][0]
        assert [low.to_list(), high.to_list()] == [[n - reach for n in counts], [n + reach for n in counts]]
    one = released(data, "k", keys=keys, o=dpf.top_k("c", 1, candidates=["x", "y"]), epsilon=2.0).frame
    assert one["o"].to_list() == [["x"]] * 2


def test_how_many_are_asked_for_costs_nothing():
    """All candidates cost what a count costs: the same noise, whatever k is."""
    data, keys = pl.DataFrame({"c": ["x"], "u": [1], "k": [1]}), pl.DataFrame({"k": [1, 2, 3]})
    unit = {"privacy_unit": "u", "max_groups": 3, "max_rows_per_group": 2}
    for budget in ({"epsilon": 1.0}, {"rho": 0.1}, {"epsilon": 0.1, "delta": 1e-3}):
        wanted = dpf.plan(data, "k", keys=keys, n=dpf.count(), **budget, **unit)._blueprint
        for k in (1, 4):
            query = dpf.top_k("c", k, candidates=list("vwxyz"))
            blueprint = dpf.plan(data, "k", keys=keys, o=query, **budget, **unit)._blueprint
            (part,), (count,) = blueprint.parts, wanted.parts
            assert (part.mechanism, part.scale) == (count.mechanism, count.scale)
            assert [charge.event for charge in blueprint.charges] == [charge.event for charge in wanted.charges]


@pytest.mark.parametrize("stretch", [1, 7, 1 << 22])
def test_candidates_are_ranked_group_by_group(stretch, monkeypatch):
    """Noise that is known, of counts in a table and of rows in lists; equal numbers in the order of candidates."""
    monkeypatch.setattr(ranked_values, "_STRETCH_CELLS", stretch)
    points = np.array([2, 2, 2, 1, 1, 3, 3, 3, 1], np.int32)
    grouped = GroupedPoints(points, np.array([0, 5, 9]), np.array([5, 9, 9]))
    table = np.array([[2, 3, 0], [1, 0, 3], [0, 0, 0]])
    (part,) = dpf.plan(
        pl.DataFrame({"c": ["x"]}), o=dpf.top_k("c", 2, candidates=["c", "a", "b"]), epsilon=1.0, privacy_unit="row"
    )._blueprint.parts
    for exact in (grouped, table):
        shown = ranked_values.largest_values(exact, part, lambda rows: rows - 10)
        assert shown.lists(shown.values).to_list() == [["a", "c"], ["b", "c"], ["c", "a"]]
        assert shown.lists(pl.Series(shown.rows)).to_list() == [[-7, -8], [-7, -9], [-10, -10]]


@pytest.mark.parametrize(
    ("k", "candidates", "argument"), [(3, ["a", "b"], "k"), (0, ["a"], "k"), (1, [], "candidates")]
)
def test_too_many_winners_are_refused(k, candidates, argument):
    with pytest.raises(ParameterError, match=rf"^{argument} "):
        dpf.top_k("x", k, candidates=candidates)


def test_engines_refuse_what_takes_all_values_of_a_group():
    sqlite3 = pytest.importorskip("sqlite3")
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (x REAL)")
    for query in (dpf.count_distinct("x"), dpf.top_k("x", 1, candidates=[1])):
        with pytest.raises(ParameterError, match="such as SQLite computes"):
            dpf.plan(dpf.sql(connection, "t"), q=query, privacy_unit="row", epsilon=1.0, engine="sql")


def test_units_are_the_test_of_private_keys():
    """A number of units needs a threshold for one alone, whatever rows it may have: fewer units show a key."""
    data = pl.DataFrame({"k": ["a"] * 400, "u": np.arange(400)})
    unit = {"privacy_unit": "u", "max_groups": 1, "max_rows_per_group": 50}
    asked = {"epsilon": 2.0, "delta": 1e-6, "key_selection": "count", **unit}
    by_rows = dpf.plan(data, "k", n=dpf.count(), **asked)
    by_units = dpf.plan(data, "k", n=dpf.count(), d=dpf.units(), **asked)
    assert "the released count 'd' is at least" in by_units.explain()
    needed = [plan._blueprint.key_share.needed.typical for plan in (by_rows, by_units)]
    assert needed[1] < needed[0] / 4
    assert by_units.run(dpf.Ledger(epsilon=2.0, delta=1e-6)).frame["k"].to_list() == ["a"]
