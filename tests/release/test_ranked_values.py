"""The most common values that the data hold: exact figures, sensitivity, laws of neighbours, and what is shown."""

from __future__ import annotations

import datetime
import io
import math
import pickle
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation import memory, scatter
from dpfast.aggregation.exact import Grouping, aggregate
from dpfast.errors import ColumnError, ParameterError
from dpfast.queries import Measure, ranked_measure
from dpfast.releases.ranked_values import lonely_pairs

from . import key_laws
from .oracles import exported_bytes
from .small_units import check_small_units, seeded_words
from .test_key_rules_privacy import profile
from .test_query_measures import frame_of, is_missing, routes

LONG = "a value that is rejected, SECRET-0123456789"
EPSILONS = (0.0, 0.2, 0.5, 1.0, 2.0)


def measure_of(name, frame):
    return ranked_measure(replace(dpf.top_k(name, 1), dtype=frame.schema[name]))


def pairs_of(found):
    """Return how many rows every value has, group by group."""
    groups = [Counter() for _ in range(len(found))]
    for owner, place, rows in zip(*found.pairs(), strict=True):
        groups[owner][found.values.to_list()[place]] = int(rows)
    return groups


@pytest.mark.parametrize("as_lists", [False, True])
def test_values_are_counted_on_every_route(as_lists, seed, monkeypatch):
    """In a table of all values, and where that would be too large as lists of rows."""
    if as_lists:
        monkeypatch.setattr(scatter, "_MOST_FOUND", 1)
    frame = frame_of(300, seed)
    columns = ["y", "i", "n", "t", "c", "d", "b", "z"]
    measures = [measure_of(name, frame) for name in columns]
    for source, grouping in routes(frame):
        found = aggregate(source, grouping, measures, seeded_words(1))
        for name, exact in zip(columns, found.measures, strict=True):
            listed = exact.values.cast(pl.String) if name == "c" else exact.values
            assert listed.to_list() == sorted(listed.to_list())
            for key, counts in zip(found.keys["k"], pairs_of(exact), strict=True):
                rows = [row[name] for row in frame.iter_rows(named=True) if row["k"] == key]
                assert counts == Counter(value for value in rows if not is_missing(value)), (name, key)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_values_of_rows_on_the_disk(monkeypatch, lazy, given):
    """Where bounds bind nothing no choice is random, so that every number is the same."""
    generator = np.random.default_rng(9)
    frame = pl.DataFrame({"u": generator.integers(0, 500, 4000), "k": generator.integers(0, 9, 4000)})
    frame = frame.with_columns(v=pl.col("u").cast(pl.String) + pl.lit(" and more than that"))
    keys = pl.DataFrame({"k": range(10)}) if given else None
    grouping = Grouping(("k",), keys, "u", 10**4, 10**4)
    source, measures = (frame.lazy() if lazy else frame), [measure_of("v", frame)]

    def figures():
        found = aggregate(source, grouping, measures, seeded_words(1))
        return dict(zip(found.keys["k"], pairs_of(found.measures[0]), strict=True))

    wanted = figures()
    assert sum(sum(counts.values()) for counts in wanted.values()) == 4000
    monkeypatch.setattr(memory, "room_for_rows", lambda: 20_000)
    assert figures() == wanted


@pytest.mark.parametrize(("max_groups", "max_rows"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_neighbours_stay_within_the_sensitivity_and_reach_it(max_groups, max_rows):
    """Soundness rules 14 and 15: units of up to four rows beside others, added and replaced, by brute force."""

    def numbers_of(measured):
        return np.array([counts[value] for counts in pairs_of(measured) for value in range(4)])

    measure = Measure("found", "x", dtype=pl.Int64())
    check_small_units(measure, [0, 1, 3, None], numbers_of, max_groups, max_rows)


def partitions(rows, largest=None):
    """Yield every way to write a number as a sum of whole numbers, the largest first."""
    if not rows:
        yield []
    for first in range(min(rows, largest or rows), 0, -1):
        yield from ([first, *rest] for rest in partitions(rows - first, first))


def part_of(groups, rows, neighbors="add_remove", **arguments):
    """Return what is planned of one query over found values."""
    frame = pl.DataFrame({"k": ["a"], "u": [1], "v": ["x"]})
    keys = pl.DataFrame({"k": range(groups)}).cast(pl.String)
    unit = {"privacy_unit": "u", "max_groups": groups, "max_rows_per_group": rows}
    plan = dpf.plan(frame, "k", keys=keys, neighbors=neighbors, t=dpf.top_k("v", 9), **unit, **arguments)
    (part,) = plan._blueprint.parts
    assert [charge.event for charge in plan._blueprint.charges] == [part.charge.event, part.lonely.event]
    return part


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize(("groups", "rows"), [(1, 1), (1, 7), (2, 3), (3, 2), (2, 6)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_no_unit_alone_shows_more_than_its_delta(mechanism, groups, rows, epsilon):
    """Every way to spread rows over values of groups: the two cases that are looked at are the worst of all."""
    part = part_of(groups, rows, mechanism=mechanism, epsilon=epsilon, delta=1e-3)
    delta = part.lonely.event.delta

    def kept(counts):
        chances = [key_laws.chance_at_least(mechanism, part.scale, part.threshold - count) for count in counts]
        return math.fsum(math.log1p(-chance) for chance in chances)

    worst = min(kept(some) for size in range(1, rows + 1) for some in partitions(size))
    assert -math.expm1(groups * worst) <= delta * (1 + 1e-9)
    looked_at = [case.keys * kept([case.number]) for case in lonely_pairs(part.unit)]
    assert min(looked_at) == pytest.approx(groups * worst)


def held(rows):
    """Return all that a unit may hold of three values in one group: so many rows in all."""
    return [some for some in product(range(rows + 1), repeat=3) if sum(some) <= rows]


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("rows", [1, 2])
def test_what_is_shown_is_as_private_as_it_is_charged(mechanism, neighbors, rows):
    """Soundness rules 10 and 18: exact laws of all pairs with their counts, beside others' rows from 0 to many."""
    part = part_of(1, rows, neighbors, mechanism=mechanism, epsilon=1.5, delta=0.02)
    assert part.mechanism == mechanism
    charges = part.charges
    reach = part.threshold + math.ceil(4 * part.scale)
    beside = (0, 1, part.threshold + 2)
    law = {
        number: key_laws.law_of_count(mechanism, part.scale, part.threshold, number, reach)
        for number in range(max(beside) + rows + 1)
    }
    worst = dict.fromkeys(EPSILONS, 0.0)
    units = held(rows)
    changes = [(before, after) for before in units for after in units if before < after]
    if neighbors == "add_remove":
        changes = [((0, 0, 0), after) for after in units if any(after)]
    for before, after in changes:
        # Values that neither touches cancel.
        touched = [place for place in range(3) if before[place] or after[place]]
        for others in product(beside, repeat=len(touched)):
            p, q = (
                key_laws.together([law[other + unit[place]] for place, other in zip(touched, others, strict=True)])
                for unit in (before, after)
            )
            for epsilon in EPSILONS:
                worst[epsilon] = max(worst[epsilon], key_laws.divergence(p, q, epsilon))
    for epsilon in EPSILONS:
        assert worst[epsilon] <= profile(charges, epsilon) * (1 + 1e-9), epsilon
    # So near to what is charged that half of the noise would be found.
    assert worst[0.0] >= 0.3 * profile(charges, 0.0)


UNITS = {"rows": {"privacy_unit": "row"}, "units": {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 1}}
#: At epsilon 400 for at most two queries, whose sensitivity is at most 4, the scale of Laplace noise is 1/50 at most:
#: a number gets noise with a probability of 2 e**-50 = 4e-22, and 1,000 numbers with one of 4e-19.
EXACT = {"epsilon": 400.0, "delta": 1e-6, "mechanism": "laplace"}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("lazy", [False, True])
def test_the_most_common_values_and_their_numbers(unit, neighbors, lazy, released):
    """All noise is 0 but with a probability of 4e-19 (`EXACT`)."""
    data = pl.DataFrame({"k": ["a", "b"] * 500, "u": np.arange(1000)}).with_columns(
        c=pl.when(pl.col("u") % 20 < 10).then(pl.lit("x")).when(pl.col("u") % 20 < 16).then(pl.lit("y")),
        i=pl.when(pl.col("u") > 990).then("u").otherwise(7),
    )
    keys = pl.DataFrame({"k": ["b", "none", "a"]})
    source = data.lazy() if lazy else data
    query = {"t": dpf.top_k("c", 5)}
    frame = released(source, "k", keys=keys, neighbors=neighbors, **UNITS[unit], **EXACT, **query).frame
    assert frame["t"].to_list() == [["x", "y"], [], ["x", "y"]]
    assert frame["t_count"].to_list() == [[250, 150], [], [250, 150]]
    assert frame["t_lower"].to_list() == frame["t_upper"].to_list() == frame["t_count"].to_list()
    assert frame.schema == {
        "k": pl.String, "t": pl.List(pl.String), "t_count": pl.List(pl.Int64), "t_scale": pl.Float64,
        "t_lower": pl.List(pl.Int64), "t_upper": pl.List(pl.Int64),
    }  # fmt: skip
    # The threshold is above one row, and so values of one row are shown where there is noise alone.
    alone = released(source, "k", keys=keys, neighbors=neighbors, **UNITS[unit], **EXACT, i=dpf.top_k("i", 9)).frame
    assert alone["i"].to_list() == [[7], [], [7]]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [(["b", "a", "c"], pl.String), (["b", "a", "c"], pl.Categorical), (["b", "a", "c"], pl.Enum(["c", "b", "a"])),
     ([5, -3, 2**40], pl.Int64), ([2**64 - 1, 0, 5], pl.UInt64), ([True, False], pl.Boolean),
     ([datetime.date(2024, 1, day) for day in (3, 1, 2)], pl.Date)],
)  # fmt: skip
def test_equal_numbers_are_in_the_order_of_values(values, dtype, released):
    """And not in the order in which the data have them, which is private; noise is 0 but for 4e-19 (`EXACT`)."""
    for order in (values, values[::-1]):
        data = pl.DataFrame({"v": pl.Series(order * 50, dtype=dtype)})
        frame = released(data, t=dpf.top_k("v", 2), **EXACT).frame
        assert frame["t"].to_list() == [sorted(values)[:2]]
        assert frame["t_count"].to_list() == [[50, 50]]


def test_private_keys_with_their_values(released):
    """Keys of 40 units are shown and one of a single unit is not, and noise is 0, but with a probability of 4e-19."""
    data = pl.DataFrame({"k": ["b"] * 40 + ["a"] * 40 + ["z"], "v": ["x", "y"] * 20 + ["y"] * 40 + ["x"]})
    frame = released(data, "k", t=dpf.top_k("v", 1), key_selection="threshold", **EXACT).frame
    assert frame["k"].to_list() == ["a", "b"]
    assert frame["t"].to_list() == [["y"], ["x"]]


def test_rejected_values_leave_no_bytes(released):
    """Soundness rule 20; noise is 0 but with a probability of 4e-19, and a value of one row needs some to be shown."""
    values = ["a value that is shown, of some length", "beta"] * 60 + [LONG, "SECRET-7"]
    for dtype in (pl.String, pl.Categorical, pl.Enum(sorted(set(values)))):
        data = pl.DataFrame({"v": pl.Series(values, dtype=dtype)})
        release = released(data, t=dpf.top_k("v", 5), **EXACT)
        assert release.frame["t"].to_list() == [sorted(set(values[:2]))]
        lists = ["t", "t_count", "t_lower", "t_upper"]
        for frame in (release.frame, release.lazy().collect()):
            # CSV has no lists.
            written = io.BytesIO()
            frame.write_ipc(written)
            for exported in (written.getvalue(), pickle.dumps(frame), *exported_bytes(frame.explode(lists))):
                assert b"SECRET" not in exported
            arrays = [chunk for column in frame.to_arrow().columns for chunk in column.chunks]
            while arrays:
                array = arrays.pop()
                arrays += [array.values] if hasattr(array, "values") else []
                assert not any(b"SECRET" in buffer.to_pybytes() for buffer in array.buffers() if buffer is not None)
        told = f"{release!r} {release.explain()} {release.frame.schema} {vars(release)}"
        assert "SECRET" not in told


def test_a_delta_is_needed_and_divided():
    """Each query over values, and all others together where they need some, have an equal part."""
    frame = pl.DataFrame({"v": ["x"], "w": [1], "k": ["a"]})
    asked = {"t": dpf.top_k("v", 1), "s": dpf.top_k("w", 2), "privacy_unit": "row"}
    with pytest.raises(ParameterError, match=r"^delta must be above 0 where values are found in the data"):
        dpf.plan(frame, epsilon=1.0, **asked)
    count = {"n": dpf.count()}
    # Laplace noise on the count leaves all of delta; a selection of keys needs some, and so does Gaussian noise.
    for more, parts in (
        ({"mechanism": "laplace"}, 2),
        ({"mechanism": "laplace", **count}, 2),
        ({"mechanism": "auto", **count}, 2),
        ({"mechanism": "gaussian", **count}, None),
        ({"mechanism": "laplace", "by": "k", **count}, 3),
    ):
        plan = dpf.plan(frame, epsilon=1.0, delta=3e-6, **asked, **more)
        lonely = [part.lonely.delta_units for part in plan._blueprint.parts if part.measure.kind == "found"]
        assert parts is None or lonely == [3 * 10**12 // parts] * 2
        assert sum(charge.delta_units for charge in plan._blueprint.charges) == 3 * 10**12
    # Shares that do not come out even fit into a ledger of just as much.
    many = {f"t{place}": dpf.top_k("v", 1) for place in range(10)}
    plan = dpf.plan(frame, "w", epsilon=1.0, delta=1e-6, privacy_unit="row", **many)
    assert plan.run(dpf.Ledger(epsilon=1.0, delta=1e-6)).spent.delta <= 1e-6
    by_rho = dpf.plan(frame, rho=0.1, delta=1e-6, **asked)
    assert by_rho._blueprint.budget.delta <= 1e-6
    assert "a value is shown from a noisy count of" in by_rho.explain()


@pytest.mark.parametrize("keys", [None, pl.DataFrame({"k": ["a", "b"]})], ids=["selected", "public"])
@pytest.mark.parametrize("more", [[], ["n"], ["found"], ["n", "found"]], ids=str)
@pytest.mark.parametrize(("groups", "rows"), [(1, 1), (2, 3), (30, 1), (30, 5)])
def test_delta_goes_to_those_who_have_less_noise_by_it(keys, more, groups, rows):
    """Where Laplace noise is less, candidates take no delta, and all of it is the others', or nobody's."""
    frame = pl.DataFrame({"u": [1], "k": ["a"], "w": ["x"]})
    queries = {"n": dpf.count(), "found": dpf.top_k("w", 1)}
    asked = {
        "keys": keys,
        "privacy_unit": "u",
        "max_groups": groups,
        "max_rows_per_group": rows,
        "t": dpf.top_k("w", 1, candidates=["x", "y"]),
        **{name: queries[name] for name in more},
    }
    plan = dpf.plan(frame, "k", epsilon=1.0, delta=1e-6, **asked)
    laplace = dpf.plan(frame, "k", epsilon=1.0, delta=1e-6, mechanism="laplace", **asked)
    blueprint, other = plan._blueprint, laplace._blueprint
    for ours, theirs in zip(blueprint.queries, other.queries, strict=True):
        # A value that is found has less delta where others have less noise by theirs.
        if ours.name != "found":
            assert ours.parts[0].noise.deviation <= theirs.parts[0].noise.deviation
    if all(planned.parts[0].mechanism == "laplace" for planned in blueprint.queries):
        # Then it is planned as if no other noise were known.
        assert plan.to_frame().equals(laplace.to_frame())
    ways = [planned.parts[0] for planned in blueprint.queries]
    assert all(
        bool(part.delta_units) == (part.mechanism == "gaussian") for part in ways if part.measure.kind != "found"
    )
    assert plan.delta == (0 if keys is not None and not any(part.delta_units for part in ways) else 1e-6)


@pytest.mark.parametrize("groups", [1, 2, 5, 20, 100])
@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_values_are_found_by_the_noise_that_shows_them_with_fewest_rows(groups, rows, epsilon):
    """With probability 0.95; never by noise that is much wider for a threshold that is a little lower."""
    asked = [
        part_of(groups, rows, mechanism=kind, epsilon=epsilon, delta=1e-6) for kind in ("auto", "laplace", "gaussian")
    ]
    needed = [part.threshold + part.noise.half_width(0.1) for part in asked]
    assert needed[0] == min(needed)


def test_values_of_other_dtypes_are_refused_before_the_charge():
    data = pl.DataFrame({"f": [0.5], "l": [[1]]})
    for name in ("f", "l"):
        with pytest.raises(ColumnError, match=f"cannot list the values of the column '{name}'"):
            dpf.plan(data, t=dpf.top_k(name, 1), privacy_unit="row", epsilon=1.0, delta=1e-6)
    with pytest.raises(ColumnError, match="none"):
        dpf.plan(data, t=dpf.top_k("none", 1), privacy_unit="row", epsilon=1.0, delta=1e-6)


def test_engines_and_optimal_splits_refuse_found_values():
    sqlite3 = pytest.importorskip("sqlite3")
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (x TEXT)")
    asked = {"q": dpf.top_k("x", 1), "privacy_unit": "row", "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(ParameterError, match="such as SQLite computes"):
        dpf.plan(dpf.sql(connection, "t"), engine="sql", **asked)
    with pytest.raises(ParameterError, match=r"^split "):
        dpf.plan(pl.DataFrame({"x": ["a"]}), split="optimal", **asked)


def test_charts_of_values(released):
    """A row for every value of every group; a release of no value can be drawn too."""
    schema, keys = {"k": pl.String, "v": pl.String}, pl.DataFrame({"k": ["a", "b"]})
    for rows in (0, 60):
        data = pl.DataFrame({"k": ["a"] * rows, "v": ["x", "y", "z"] * (rows // 3)}, schema=schema)
        release = released(data, "k", keys=keys, t=dpf.top_k("v", 2), **EXACT)
        assert release.plot(query="t") is not None
