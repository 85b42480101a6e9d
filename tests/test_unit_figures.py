"""What privacy units contribute to a group: exact, in any order of rows, on every route, and no more than they may."""

from __future__ import annotations

import datetime
import itertools
import math
import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.accounting.privacy_unit import ALL_ROWS, PrivacyUnit
from dpfast.aggregation import Grouping, aggregate, memory, open_data
from dpfast.aggregation.unit_rows import UnitRows
from dpfast.columns.values import values_of
from dpfast.queries import Measure, UnitQuery, unit_measures
from dpfast.randomness import SystemRandom
from dpfast.releases.query_measures import of_columns

NAN, INF = math.nan, math.inf
#: Of every type that sums or means take: values, and bounds of units' sums and of values.
KINDS = {
    "floats": (pl.Float64, [0.5, -3.25, 1e300, -1e300, INF, -INF, NAN, None, 1e-300, 7.0, 0.1], (-20, 60.5)),
    "small floats": (pl.Float32, [0.5, -3.25, 1e38, -INF, NAN, None, 7.0], (-20, 60)),
    "half floats": (pl.Float16, [0.5, -3.25, 6e4, NAN, None], (-20, 60)),
    "integers": (pl.Int64, [0, 5, -7, 2**63 - 1, -(2**63), 2**62, None, 2**53 + 1], (-9, 40)),
    "far integers": (pl.Int64, [0, 5, -7, 2**63 - 1, -(2**63), 2**62, None, 2**53 + 1], (-(2**61), 2**62)),
    "small integers": (pl.Int8, [0, 127, -128, None], (-9, 400)),
    "unsigned": (pl.UInt64, [0, 5, 2**63, 2**64 - 1, None], (0, 40)),
    "wide integers": (pl.Int128, [0, 5, -(2**127), 2**126, None], (-9, 2**70)),
    "Booleans": (pl.Boolean, [True, False, None], (0, 3)),
    "decimals": (pl.Decimal(9, 2), [Decimal("0.25"), Decimal("-1.5"), Decimal("9999999.99"), None], (Decimal(-2), 5)),
    "wide decimals": (pl.Decimal(38, 2), [Decimal("0.25"), Decimal("-1e35"), Decimal("1e35"), None], (-2, 5)),
    "durations": (
        pl.Duration("us"),
        [datetime.timedelta(hours=3), datetime.timedelta(days=-4000), None],
        (datetime.timedelta(0), datetime.timedelta(hours=7)),
    ),
    "bounds above 0": (pl.Float64, [0.5, -3.25, NAN, None, 40.0], (2, 60)),
    "bounds below 0": (pl.Int32, [3, -3, None, -40], (-60, -2)),
    "nothing": (pl.Null, [None], (0, 60)),
}
MOMENTS = {
    "dates": (
        pl.Date,
        [datetime.date(2020, 1, 1), datetime.date(1800, 1, 1), None],
        (datetime.date(2000, 1, 1), datetime.date(2024, 1, 1)),
    ),
    "moments": (
        pl.Datetime("us"),
        [datetime.datetime(2020, 1, 1, 5), datetime.datetime(9999, 1, 1), None],
        (datetime.datetime(2000, 1, 1), datetime.datetime(2024, 1, 1)),
    ),
}


def words(number):
    return np.random.default_rng(int.from_bytes(SystemRandom().key()[:8], "little")).integers(
        0, 2**64, number, dtype=np.uint64
    )


def frame_of(kind, rows, seed):
    dtype, values, _ = (KINDS | MOMENTS)[kind]
    choose = random.Random(seed)
    return pl.DataFrame(
        {
            "u": pl.Series([choose.choice([*range(9), None]) for _ in range(rows)], dtype=pl.Int64),
            "k": pl.Series([choose.choice(["a", "b", "c", None]) for _ in range(rows)], dtype=pl.String),
            "x": pl.Series([choose.choice(values) for _ in range(rows)], dtype=dtype),
        }
    )


def measures_for(kind, schema):
    bounds = (KINDS | MOMENTS)[kind][2]
    asked = [dpf.mean("x", bounds=bounds, per="unit")]
    if kind in KINDS:
        asked.append(dpf.sum("x", unit_bounds=bounds))
    return [measure for query in asked for measure in unit_measures(of_columns(query, schema))]


def ticks(value, dtype):
    """Return a value as the number that is measured; None where there is none."""
    if value is None or value != value:
        return None
    if isinstance(value, float) and math.isinf(value):
        return value
    if isinstance(value, Decimal):
        return Fraction(value) * 10**dtype.scale
    if isinstance(value, (datetime.date, datetime.timedelta)):
        return Fraction(pl.Series([value], dtype=dtype).to_physical().item())
    return Fraction(value)


def row_steps(measure, value):
    if isinstance(value, float):
        return (measure.upper if value > 0 else measure.lower) - measure.centre
    steps = round(value / Fraction(2) ** measure.step_exponent)
    return min(max(steps, measure.lower), measure.upper) - measure.centre


def of_unit(measure, values):
    """Return what a unit with these values adds, in fractions."""
    values = [value for value in values if value is not None]
    if not values or measure.kind == "unit_values":
        return int(bool(values))
    (factor,) = measure.factors
    total, half = Fraction(sum(row_steps(factor, value) for value in values)), Fraction(1, 2)
    if measure.kind == "unit_mean":
        return math.floor(total / len(values) + half)
    steps = math.floor(total * Fraction(2) ** (factor.step_exponent - measure.step_exponent) + half)
    return min(max(steps, measure.lower), measure.upper)


def expected(frame, measures):
    dtype = frame.schema["x"]
    pairs = {}
    for unit, key, value in frame.iter_rows():
        if unit is not None:
            pairs.setdefault((unit, key), []).append(ticks(value, dtype))
    found = {key: [0] * len(measures) for _, key in pairs}
    for (_, key), values in pairs.items():
        for place, measure in enumerate(measures):
            found[key][place] += of_unit(measure, values)
    return found


def figures(exact):
    columns = [np.asarray(column).tolist() for column in exact.measures]
    return dict(zip(exact.keys.to_series().to_list(), map(list, zip(*columns, strict=True)), strict=True))


@pytest.mark.parametrize("kind", [*KINDS, *MOMENTS])
def test_every_type_on_every_route_in_any_order(kind, seed, tmp_path, monkeypatch):
    frame = frame_of(kind, 300, seed)
    measures = measures_for(kind, frame.schema)
    wanted = expected(frame, measures)
    keys = pl.DataFrame({"k": ["c", "a", None, "none such", "b"]})
    rows = [Measure("rows"), Measure("units"), Measure("values", "x")]
    grouping = Grouping(("k",), None, "u", 4, ALL_ROWS)
    few = Grouping(("k",), None, "u", 4, 1)
    path = tmp_path / "rows.parquet"
    if kind not in ("half floats", "wide integers"):
        frame.write_parquet(path, row_group_size=50)
    sources = [frame, frame.lazy(), frame.sample(fraction=1.0, shuffle=True, seed=seed), frame.reverse()]
    sources += [pl.concat([frame[:17], frame[17:]], rechunk=False), *([open_data(path)] if path.exists() else [])]
    sources += [open_data(frame.to_arrow())] if kind not in ("half floats", "wide integers") else []
    for source in sources:
        assert figures(aggregate(source, grouping, measures, words)) == wanted
        # Beside measures of rows, of which few are kept.
        mixed = figures(aggregate(source, few, [*rows, *measures], words))
        assert {key: found[3:] for key, found in mixed.items()} == wanted
        assert all(found[0] == found[1] >= found[2] for found in mixed.values())
        given = figures(aggregate(source, Grouping(("k",), keys, "u", 4, ALL_ROWS), measures, words))
        assert given.pop("none such") == [0] * len(measures)
        assert given == {key: wanted.get(key, [0] * len(measures)) for key in ["c", "a", None, "b"]}
    for room in (0, 2_000):
        monkeypatch.setattr(memory, "room_for_rows", lambda room=room: room)
        assert figures(aggregate(frame.lazy(), grouping, measures, words)) == wanted
        mixed = figures(aggregate(frame.lazy(), few, [*rows, *measures], words))
        assert {key: found[3:] for key, found in mixed.items()} == wanted


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("kind", ["floats", "integers", "bounds above 0", "bounds below 0", "dates", "decimals"])
def test_neighbours_are_within_the_sensitivities_and_reach_them(kind, neighbors, seed):
    """Hundreds of random neighbours and those that move most, through the exact aggregation alone."""
    choose = random.Random(seed)
    dtype, values, _ = (KINDS | MOMENTS)[kind]
    schema = {"u": pl.Int64, "k": pl.String, "x": dtype}
    measures = measures_for(kind, pl.Schema(schema))

    def some(unit, most):
        # Often all of one value: what reaches a bound.
        only = choose.choice([values, [choose.choice(values)]])
        keys = choose.choice(["abcd", "ab", "cd"])
        return [(unit, choose.choice(keys), choose.choice(only)) for _ in range(choose.randrange(most))]

    def neighbouring():
        """Yield limits and rows of neighbours: random ones, then units of one value in as many groups as they may."""
        for number, limit in itertools.product(range(100), (1, 2, 4)):
            others = some(1, 8) + some(2, 8)
            after = some(4, 12) if neighbors == "replace" else []
            yield number, limit, choose.choice([1, 3, ALL_ROWS]), others + some(3, 12), others + after
        for one, two, held in itertools.product(values, values, ("ab", "cd")):
            after = [(4, key, two) for key in held] * 3 if neighbors == "replace" else []
            yield 0, 2, ALL_ROWS, [(3, key, one) for key in "ab"] * 3, after

    keys = pl.DataFrame({"k": list("abcd")})
    reached = dict.fromkeys(range(len(measures)), 0)
    for number, limit, most, before, after in neighbouring():
        unit = PrivacyUnit("u", limit, most, neighbors)
        grouping = Grouping(("k",), keys, "u", limit, most)
        fixed = number

        def same(count, fixed=fixed):
            # The same words for the units that both share: units are numbered from the smallest on.
            return np.random.default_rng(fixed).integers(0, 2**64, count, dtype=np.uint64)

        found = [
            aggregate(
                pl.DataFrame(rows, schema=schema, orient="row").sort("u", maintain_order=True), grouping, measures, same
            )
            for rows in (before, after)
        ]
        for place, measure in enumerate(measures):
            one, two = (np.asarray(exact.measures[place]) for exact in found)
            sensitivity = measure.sensitivity(unit)
            moved = np.abs(one - two)
            assert moved.sum() <= sensitivity.l1
            assert (moved**2).sum() <= sensitivity.l2_squared
            reached[place] += bool(moved.sum() == sensitivity.l1 or (moved**2).sum() == sensitivity.l2_squared)
    assert all(reached.values()), reached


def test_sums_are_exact_where_int64_and_floats_are_not():
    """Values that cancel, orders that floats would tell apart, and sums far beyond int64."""
    big = 2.0**46
    values = [1e9, 1.0, -1e9, 0.25] * 5 + [big, -big]
    frame = pl.DataFrame({"u": [1] * len(values), "x": values})
    (measure,) = unit_measures(dpf.sum("x", unit_bounds=(-(2.0**23), 2.0**23)))
    for order in (frame, frame.reverse(), frame.sort("x")):
        exact = aggregate(order, Grouping((), None, "u", 1, ALL_ROWS), [measure], words)
        assert exact.measures[0].tolist() == [round(6.25 / 2.0**measure.step_exponent)]
    far = pl.DataFrame({"u": [1] * 1000, "x": [2**63 - 1] * 999 + [-(2**63)]})
    query = of_columns(dpf.sum("x", unit_bounds=(-(2**62), 2**62)), far.schema)
    (measure,) = unit_measures(query)
    exact = aggregate(far, Grouping((), None, "u", 1, ALL_ROWS), [measure], words)
    assert exact.measures[0].tolist() == [measure.upper]


def test_what_a_unit_keeps_is_the_same_for_all_measures():
    """Units in more groups than they may be in: sums, means, rows and units are of the same groups."""
    frame = pl.DataFrame({"u": [1] * 40, "k": [number % 8 for number in range(40)], "x": [1.0] * 40})
    measures = [
        Measure("units"),
        Measure("rows"),
        *unit_measures(dpf.sum("x", unit_bounds=(0, 3))),
        *unit_measures(dpf.mean("x", bounds=(0, 2), per="unit")),
    ]
    keys = pl.DataFrame({"k": range(8)})
    seen = set()
    for _ in range(40):
        exact = aggregate(frame, Grouping(("k",), keys, "u", 2, 2), measures, words)
        units, rows, sums, _, counts = (np.asarray(column) for column in exact.measures)
        assert units.sum() == 2
        assert (rows == 2 * units).all()
        assert (sums * 2.0 ** measures[2].step_exponent == 3.0 * units).all()
        assert (counts == units).all()
        seen.add(tuple(np.flatnonzero(units)))
    assert len(seen) > 5


def test_rows_as_units_and_the_kinds_of_queries():
    assert isinstance(dpf.sum("x", unit_bounds=(0, 1)), UnitQuery)
    assert not isinstance(dpf.mean("x", bounds=(0, 1)), UnitQuery)
    assert values_of(pl.Int64()).whole
    assert UnitRows.__doc__
    frame = pl.DataFrame({"x": [1.0, 5.0, -7.0, None]})
    ledger = dpf.Ledger(epsilon=2e6 / 2)
    asked = {"s": dpf.sum("x", unit_bounds=(-2, 3)), "m": dpf.mean("x", bounds=(-2, 3), per="unit")}
    shown = dpf.plan(frame, **asked, privacy_unit="row", epsilon=1e5).run(ledger).frame
    assert shown["s"].item() == pytest.approx(2.0, abs=0.01)
    assert shown["m"].item() == pytest.approx(2 / 3, abs=0.01)


@pytest.mark.parametrize("named", [False, True])
def test_many_rows_are_shared_among_threads(named, monkeypatch):
    """Units of very different sizes, by number or by name, in two threads or one, beside Polars."""
    rows = 1 << 20
    generator = np.random.default_rng(20_261_123)
    units = (generator.pareto(0.7, rows) * 3).astype(np.int64) % 5000
    frame = pl.DataFrame({"u": units, "k": generator.integers(0, 50, rows), "x": generator.integers(-9, 20, rows)})
    if named:
        frame = frame.with_columns(pl.format("unit number {}", "u").alias("u"))
    asked = [dpf.sum("x", unit_bounds=(-40, 90)), dpf.mean("x", bounds=(-5, 5), per="unit")]
    measures = [measure for query in asked for measure in unit_measures(of_columns(query, frame.schema))]
    x = pl.col("x")
    pairs = frame.group_by("u", "k").agg(s=x.sum().clip(-40, 90), m=x.clip(-5, 5).mean())
    wanted = pairs.group_by("k").agg(pl.col("s", "m").sum(), n=pl.len()).sort("k")
    found = []
    for threads in (1, 2):
        monkeypatch.setattr("dpfast.aggregation.unit_figures.thread_count", lambda *given, threads=threads: threads)
        found.append(aggregate(frame, Grouping(("k",), wanted.select("k"), "u", 50, ALL_ROWS), measures, words))
    for exact in found:
        assert exact.measures[0].tolist() == wanted["s"].to_list()
        means = exact.measures[1] * 2.0 ** measures[1].step_exponent
        assert np.allclose(means, wanted["m"], atol=5000 * 2.0 ** measures[1].step_exponent)
        assert exact.measures[2].tolist() == wanted["n"].to_list()
    assert found[0].measures[1].tolist() == found[1].measures[1].tolist()
