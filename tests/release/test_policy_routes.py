"""Policy Gaussian sees units in one order, whatever way rows come in: the sums of all keys are the same numbers."""

from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation import Grouping, by_unit, kept_groups, memory, prepare
from dpfast.aggregation.holdings import Holdings
from dpfast.aggregation.sources import open_source
from dpfast.mechanisms.keys.policy import sums_by_policy
from dpfast.mechanisms.keys.weights import STEPS
from dpfast.queries import Measure
from dpfast.releases import drawing

from .test_every_route import DATA, ROUTES, by_of, frame_of
from .test_spilled_keys import open_files

CUTOFF = 15 * STEPS


def words(number):
    return np.random.default_rng(number).integers(0, 2**64, number, dtype=np.uint64)


def exact_of(data, by=("k",)):
    """Return the exact aggregates, where bounds bind nothing, so that no choice is random."""
    aggregation = prepare(data, Grouping(by, None, "u", 10**4, 3), [Measure("rows")])
    return replace(aggregation, lists_groups=True).run(words)


def sums_in(kept, ranks):
    """Return the sums of all keys of what units hold."""
    singles = np.zeros(ranks.size, np.int64)
    return sums_by_policy(kept.runs(ranks, singles), singles, CUTOFF)


def sums_of(data, by=("k",)):
    """Return every key's sum by the key."""
    exact = exact_of(data, by)
    ranks = drawing._ranks(exact.keys)
    sums = sums_in(exact.holdings, ranks)
    names = exact.keys.select(pl.struct(pl.all().cast(pl.String))).to_series().to_list()
    return {str(name): int(sums[rank]) for name, rank in zip(names, ranks, strict=True)}


def rows(number=6000):
    generator = np.random.default_rng(9)
    frame = pl.DataFrame({"u": generator.integers(0, 900, number), "k": generator.zipf(1.4, number) % 500})
    return frame.with_columns(u=pl.when(pl.col("u") > 9).then("u"), k=pl.when(pl.col("k") != 7).then("k"))


def test_the_order_of_rows_and_the_names_of_units_change_nothing(tmp_path):
    """Dense and sparse integers, strings short and long, dates, categoricals; eager, lazy and files."""
    frame = rows()
    wanted = sums_of(frame)
    assert len(wanted) > 300
    assert sum(total == CUTOFF for total in wanted.values()) >= 3
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=3)
    units = {
        "reversed": -pl.col("u"),
        "sparse": pl.col("u") * 7919**3,
        "short strings": pl.col("u").cast(pl.String),
        "long strings": "a name of more than twelve bytes " + pl.col("u").cast(pl.String),
        "categories": pl.col("u").cast(pl.String).cast(pl.Categorical),
        "moments": pl.col("u").cast(pl.Datetime("us")),
    }
    for name, unit in units.items():
        assert sums_of(shuffled.with_columns(u=unit)) == wanted, name
    assert sums_of(shuffled.lazy()) == wanted
    assert sums_of(pl.concat([shuffled[:1000].lazy(), shuffled[1000:].lazy()])) == wanted
    shuffled.write_parquet(tmp_path / "rows.parquet", row_group_size=700)
    shuffled.write_csv(tmp_path / "rows.csv")
    assert sums_of(open_source(tmp_path / "rows.parquet")) == wanted
    schema = {"u": pl.Int64, "k": pl.Int64}
    assert sums_of(open_source(tmp_path / "rows.csv", schema=schema)) == wanted


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum], ids=str)
def test_keys_are_compared_as_strings_however_they_are_coded(dtype):
    """Codes of categoricals and enums are numbered as it happened; the order of strings is their own."""
    generator = np.random.default_rng(4)
    frame = rows().drop_nulls().with_columns(pl.col("k").cast(pl.String))
    wanted = sums_of(frame)
    for _ in range(3):
        names = generator.permutation(frame["k"].unique().sort().to_list()).tolist()
        kind = pl.Enum(names) if dtype == pl.Enum else dtype()
        # The categories are met in another order each time.
        coded = pl.concat([pl.Series("k", names), frame["k"]]).cast(kind)[len(names) :]
        assert sums_of(frame.with_columns(coded)) == wanted


@pytest.mark.parametrize("route", [name for name, columns in ROUTES.items() if columns])
@pytest.mark.parametrize("room", [None, 1], ids=["memory", "disk"])
def test_every_route_ends_in_a_release_of_one_schema(monkeypatch, route, room):
    """Whatever rows there are, nobody's, one person's or nulls: no error, and the same columns."""
    if room is not None:
        monkeypatch.setattr(memory, "room_for_rows", lambda: room)
    schemas = set()
    for data in DATA:
        for lazy in (False, True):
            frame = frame_of(route, data)
            release = dpf.release(
                frame.lazy() if lazy else frame, by_of(route), n=dpf.count(), s=dpf.sum("i", bounds=(0, 5)),
                privacy_unit="u", max_groups=2, max_rows_per_group=3, epsilon=1.0, delta=1e-5,
                key_selection="policy", ledger=dpf.Ledger(1.0, 1e-5),
            )  # fmt: skip
            schemas.add(str(release.frame.schema))
    assert len(schemas) == 1


@pytest.mark.parametrize("route", [name for name, columns in ROUTES.items() if columns])
def test_the_order_of_keys_is_that_of_the_others_where_some_are_gone(route, seed):
    """What one unit alone holds may be missing: all other keys stand as they stood. Keys of all dtypes."""
    generator = np.random.default_rng(seed)
    keys = pl.DataFrame({"row": [0]})
    for name, (dtype, values) in ROUTES[route].items():
        keys = keys.join(pl.Series(name, [None, *values][::-1], dtype=dtype).unique().to_frame(), how="cross")
    keys = keys.drop("row")
    place = drawing._ranks(keys)
    assert sorted(place) == list(range(keys.height))
    for _ in range(30):
        some = generator.permutation(keys.height)[: generator.integers(1, keys.height + 1)]
        left = drawing._ranks(keys[some])
        assert np.argsort(left).tolist() == np.argsort(place[some]).tolist()


def test_long_tables_of_keys_are_ordered_alike(seed):
    """Two columns with nulls, thousands of rows: where the engine sorts by several threads."""
    generator = np.random.default_rng(seed)
    keys = pl.DataFrame({"a": generator.integers(0, 60, 20_000), "b": generator.integers(0, 900, 20_000)}).unique()
    keys = keys.with_columns(
        a=pl.when(pl.col("a") > 3).then(pl.format("key {}", "a")), b=pl.when(pl.col("b") > 0).then("b")
    ).unique()
    place = drawing._ranks(keys)
    some = generator.permutation(keys.height)[: keys.height // 2]
    assert np.argsort(drawing._ranks(keys[some])).tolist() == np.argsort(place[some]).tolist()


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("block", [1, 300, 1 << 16])
@pytest.mark.parametrize(("number", "room"), [(0, 1), (1, 1), (300, 1), (6000, 50_000)])
def test_sums_are_the_same_from_the_disk(monkeypatch, lazy, block, number, room):
    """Parts are sorted one by one and merged: blocks of one unit, of some, or a part at once."""
    frame = rows(number)
    wanted = sums_of(frame)
    monkeypatch.setattr(memory, "room_for_rows", lambda: room)
    monkeypatch.setattr(kept_groups, "_LEAST_BLOCK_BYTES", block)
    gc.collect()  # files of releases in other tests
    before = open_files()
    exact = exact_of(frame.lazy() if lazy else frame)
    if number >= 300:
        assert sum(1 for _ in exact.holdings) > 20
    ranks = drawing._ranks(exact.keys)
    if block == 300 and number == 6000:
        parts = [list(run) for run in exact.holdings.runs(ranks, np.zeros(ranks.size, np.int64))]
        assert max(map(len, parts)) > 1
        assert all(8 * one.stops.size + 4 * one.groups.size <= 300 for part in parts for one in part)
    del exact
    assert sums_of(frame.lazy() if lazy else frame) == wanted
    assert open_files() == before


def test_several_parts_in_memory_are_merged():
    """Whatever parts units come in, they are one sequence; parts without units among them."""
    exact = exact_of(rows())
    ranks = drawing._ranks(exact.keys)
    wanted = sums_in(exact.holdings, ranks)
    (whole,) = exact.holdings
    units = [whole.groups[a:b] for a, b in zip(np.append(0, whole.stops[:-1]), whole.stops, strict=True)]
    for number in (2, 7, 1500):
        kept = kept_groups.KeptGroups(None)
        for i in range(number):
            own = units[i::number]
            stops = np.cumsum([unit.size for unit in own], dtype=np.int64)
            kept.add(Holdings(stops, np.concatenate([np.empty(0, np.int32), *own])))
        assert (sums_in(kept, ranks) == wanted).all()


def test_a_release_shows_the_keys_of_large_sums(monkeypatch):
    """The key that a sum belongs to is the key that is shown: a common one of each kind among 500 of one unit."""
    frame = pl.DataFrame({"u": np.arange(60_000) // 3, "k": np.arange(60_000) * 7919 % 6 * 100})
    frame = pl.concat([frame, pl.DataFrame({"u": np.arange(500), "k": 1000 - 3 * np.arange(500)})])
    frame = frame.filter(~pl.col("k").is_in([150, 151])).sample(fraction=1.0, shuffle=True, seed=1)
    names = {"integers": pl.col("k"), "strings": pl.format("key {}", "k"), "pair": pl.col("k")}
    for name, key in names.items():
        by = ["k", "h"] if name == "pair" else "k"
        plan = dpf.plan(
            frame.with_columns(k=key, h=pl.lit("h")), by, n=dpf.count(), privacy_unit="u", max_groups=5,
            max_rows_per_group=2, epsilon=1.0, delta=1e-13, key_selection="policy",
        )  # fmt: skip
        shown = plan.run(dpf.Ledger(1.0, 1e-6)).frame["k"].cast(pl.String).str.extract(r"(-?\d+)$").cast(pl.Int64)
        assert sorted(shown.to_list()) == [0, 100, 200, 300, 400, 500]


def test_spilled_parts_are_written_to_one_file(monkeypatch):
    """The sorted parts go to the file in which the groups of units already are: a second file of them is none."""
    made = []

    class Counted(by_unit.SpillFile):
        def __init__(self, folder):
            made.append(folder)
            super().__init__(folder)

    monkeypatch.setattr(kept_groups, "SpillFile", Counted)
    monkeypatch.setattr(memory, "room_for_rows", lambda: 50_000)
    exact = exact_of(rows())
    for _ in range(2):
        assert sums_in(exact.holdings, drawing._ranks(exact.keys)).any()
    assert len(made) == 1
