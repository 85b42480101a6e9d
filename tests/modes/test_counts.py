"""The counts of which modes are selected: every type, route and source gives the same as Polars, and no value fails."""

from __future__ import annotations

import datetime

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation import scatter
from dpfast.kernels.grouping.by_group import count_points
from dpfast.kernels.grouping.counting import count_choices
from dpfast.mechanisms.selection import modes

CARRIERS = ["AA", "B6", "DL", "UA"]
KEYS = pl.DataFrame({"carrier": ["ZZ", *CARRIERS]})
LARGE = {"epsilon": 9e5}
DAY = datetime.date(2024, 2, 29)
LONG = "a destination whose name is long"


def flights(size=3000):
    """Return rows whose columns hold candidates, nulls, and values that are none."""
    generator = np.random.default_rng(20_261_121)
    kinds = generator.integers(0, 6, size)
    days = [DAY + datetime.timedelta(days=days) for days in range(5)]
    # So far apart that no 63 bits hold both.
    far = np.where(np.arange(size) % 2, 2**60, -(2**60))
    return pl.DataFrame(
        {
            "carrier": generator.choice(CARRIERS, size),
            "tailnum": [f"N{number}" for number in generator.integers(0, size // 4, size)],
            "far": far,
            "farther": far,
            "word": pl.Series(["IAH", LONG, "", "a long name that nobody asked for", "MIA", None]).gather(kinds),
            "number": pl.Series([7, -(2**63), 2**63 - 1, 0, 8, None], dtype=pl.Int64).gather(kinds),
            "large": pl.Series([0, 2**63, 2**64 - 1, 1, 2, None], dtype=pl.UInt64).gather(kinds),
            "code": pl.Series([7, 10**9, -1, 2**40, 8, None]).gather(kinds),
            "flag": pl.Series([True, False, None, True, True, True]).gather(kinds),
            "day": pl.Series([*days, None]).gather(kinds),
        }
    )


CANDIDATES = {
    "word": ["MIA", LONG, "IAH", "nowhere"],
    "number": [8, 7, -5],
    "code": [8, 7, 10**9],
    "large": [2**63, 0, 5],
    "flag": [False, True],
    "day": [days := DAY + datetime.timedelta(days=1), DAY, DAY - datetime.timedelta(days=9)],
}


def expected(data, keys, column, candidates):
    """Return a key's rows by candidate, found by Polars' filters."""
    rows = data.filter([pl.col(name).eq_missing(key) for name, key in keys.items()] or True)
    return [rows.filter(pl.col(column).eq_missing(candidate)).height for candidate in candidates]


def key_of(released, by, row):
    return {name: released[name][row] for name in by}


def check(released, table, data, keys, name, candidates):
    """Every count is exact, and at a huge epsilon the answer has the most rows."""
    for row, counts in enumerate(table.tolist()):
        assert counts == expected(data, key_of(released, keys, row), name, candidates)
        assert counts[candidates.index(released["m"][row])] == max(counts)
    assert (released["m_rows"] == 0).all()


@pytest.mark.parametrize("null", [False, True], ids=["no null", "null"])
@pytest.mark.parametrize("kind", [*CANDIDATES, "categories", "small categories", "enum", "int8"])
def test_every_type(kind, null, caught):
    data = flights()
    name = {"categories": "word", "small categories": "word", "enum": "word", "int8": "number"}.get(kind, kind)
    candidates = CANDIDATES[name] + [None] * null
    if kind == "categories":
        data = data.with_columns(pl.col("word").cast(pl.Categorical))
    elif kind == "small categories":
        data = data.with_columns(pl.col("word").cast(pl.Categorical(pl.Categories("few", physical=pl.UInt8))))
    elif kind == "enum":
        data = data.with_columns(pl.col("word").cast(pl.Enum([*data["word"].drop_nulls().unique(), "nowhere"])))
    elif kind == "int8":
        data = data.with_columns(pl.col("number").cast(pl.Int8, strict=False))
    released = dpf.release(
        data,
        "carrier",
        keys=KEYS,
        m=dpf.mode(name, candidates=candidates),
        ledger=dpf.Ledger(epsilon=1e6),
        **{"privacy_unit": "row", **LARGE},
    ).frame
    assert released.columns == ["carrier", "m", "m_rows"]
    dtypes = {
        "word": pl.String,
        "number": pl.Int64,
        "code": pl.Int64,
        "large": pl.UInt64,
        "flag": pl.Boolean,
        "day": pl.Date,
    }
    assert released["m"].dtype == dtypes[name]
    (table,) = caught
    assert table.shape == (5, len(candidates))
    check(released, table, data, ["carrier"], name, candidates)


UNIT = {"privacy_unit": "tailnum", "max_groups": 4, "max_rows_per_group": 50}
CROSSED = KEYS.join(pl.DataFrame({"far": [-(2**60), 2**60], "farther": [-(2**60), 2**60]}), how="cross")
ROUTES = {
    "slots": ({"carrier": pl.Enum([*CARRIERS, "ZZ"])}, {"keys": KEYS}, ["carrier"]),
    "strings": ({}, {"keys": KEYS}, ["carrier"]),
    "selected": ({}, {"delta": 1e-3}, ["carrier"]),
    "units": ({}, {"keys": KEYS, **UNIT}, ["carrier"]),
    "units, selected": ({}, {"delta": 1e-3, **UNIT}, ["carrier"]),
    "native": ({}, {"delta": 1e-3}, ["carrier", "far", "farther"]),
    "native, public": ({}, {"keys": CROSSED}, ["carrier", "far", "farther"]),
    "nothing": ({}, {}, []),
}


@pytest.mark.parametrize("sparse", [False, True], ids=["table", "sorted rows"])
@pytest.mark.parametrize("lazy", [False, True], ids=["frame", "lazy"])
@pytest.mark.parametrize("route", ROUTES)
def test_every_route(route, lazy, sparse, caught, monkeypatch):
    """Beside other queries, whose slots are counted at the same time; with tables and without room for them."""
    casts, arguments, by = ROUTES[route]
    if sparse:
        monkeypatch.setattr(scatter, "_MOST_CELLS", 3)
        monkeypatch.setattr(modes, "STRETCH_CELLS", 8)
    data = flights().cast(casts)
    released = dpf.release(
        data.lazy() if lazy else data,
        by,
        n=dpf.count(),
        m=dpf.mode("word", candidates=CANDIDATES["word"]),
        s=dpf.sum("flag", bounds=(0, 1)),
        day=dpf.mode("day", candidates=CANDIDATES["day"]),
        q=dpf.quantile("number", 0.5, bounds=(0, 9)),
        ledger=dpf.Ledger(epsilon=1e6, delta=0.5),
        **{"privacy_unit": "row", **arguments, **LARGE},
    ).frame
    words, days = caught
    check(released, words, data, by, "word", CANDIDATES["word"])
    everything = data.with_columns(anything=True)
    for row, counts in enumerate(days.tolist()):
        keys = key_of(released, by, row)
        assert counts == expected(data, keys, "day", CANDIDATES["day"])
        # Noise of scale 1e-4 or so is none.
        assert [released["n"][row]] == expected(everything, keys, "anything", [True])
    assert released.height == (len(arguments["keys"]) if "keys" in arguments else {3: 8, 1: 4, 0: 1}[len(by)])


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_files_are_scanned(tmp_path, suffix, caught):
    data = flights().select("carrier", "word", "day", "flag")
    schema = {"schema": dict(data.schema)} if suffix == "csv" else {}
    for part in (0, 1):
        getattr(data[part::2], f"write_{suffix}")(tmp_path / f"flights{part}.{suffix}")
    candidates = ["MIA", LONG, None]
    released = dpf.release(
        tmp_path / f"*.{suffix}",
        "carrier",
        keys=KEYS,
        m=dpf.mode("word", candidates=candidates),
        day=dpf.mode("day", candidates=CANDIDATES["day"]),
        ledger=dpf.Ledger(epsilon=1e6),
        **{"privacy_unit": "row", **LARGE, **schema},
    ).frame
    # A CSV file's empty string is a null where it is not quoted, as Polars writes and reads it.
    read = data if suffix == "parquet" else pl.read_csv(tmp_path / "*.csv", schema=data.schema)
    words, days = caught
    check(released, words, read, ["carrier"], "word", candidates)
    assert days.tolist() == [
        expected(data, key_of(KEYS, ["carrier"], row), "day", CANDIDATES["day"]) for row in range(5)
    ]


def test_units_keep_what_they_may(caught):
    """Counts are of the rows that are kept: 3 in each of 2 groups, of 10 in each of 3."""
    data = pl.DataFrame({"g": ["a", "b", "c"] * 10, "u": [1] * 30, "x": [5] * 30})
    keys = pl.DataFrame({"g": ["a", "b", "c"]})
    dpf.release(
        data,
        "g",
        keys=keys,
        m=dpf.mode("x", candidates=[4, 5]),
        privacy_unit="u",
        max_groups=2,
        max_rows_per_group=3,
        epsilon=1,
        ledger=dpf.Ledger(epsilon=1),
    )
    (table,) = caught
    assert sorted(table.tolist()) == [[0, 0], [0, 3], [0, 3]]


def test_a_column_of_nulls(caught):
    data = pl.DataFrame({"x": [None] * 5})
    for candidates in (["a", None], [3], [True, None]):
        dpf.release(
            data, m=dpf.mode("x", candidates=candidates), privacy_unit="row", epsilon=1, ledger=dpf.Ledger(epsilon=1)
        )
    assert [table.tolist() for table in caught] == [[[0, 5]], [[0]], [[0, 5]]]


def test_threads_and_blocks_share_the_rows(caught, seed):
    """More rows than one thread or block gets; values beside the candidates on both sides, and nulls."""
    generator = np.random.default_rng(seed)
    size = 600_000
    data = pl.DataFrame({"g": generator.integers(-1, 8, size), "x": generator.integers(-2, 9, size)})
    data = data.with_columns(pl.when(pl.col("x") != 3).then("x"))
    keys = pl.DataFrame({"g": [5, 0, 7, 1]})
    for more in ({}, {"n": dpf.count()}):
        query = dpf.mode("x", candidates=[6, 0, 3, 8])
        dpf.release(
            data, "g", keys=keys, m=query, epsilon=1, ledger=dpf.Ledger(epsilon=1), **{"privacy_unit": "row", **more}
        )
        exact = data.group_by("g", "x").len()
        expected = [
            [exact.filter(g=key, x=value)["len"].sum() for value in (6, 0, 3, 8)] for key in keys["g"].to_list()
        ]
        assert caught.pop().tolist() == expected


def test_kernels_write_nowhere_else():
    """Soundness rule 19: whatever slots and candidates they are given."""
    slots = np.array([0, 1, 2, 2**32, 2**64 - 1, 0, 0, 1, 2**63], np.uint64)
    choices = np.array([1, 3, 1, 1, 1, 0, 4, -1, 2**63 - 1], np.int64)
    room = np.zeros(20, np.int64)
    count_choices(slots, choices, np.uint64(3), room[4:11])
    assert room.tolist() == [0] * 4 + [1, 0, 0, 0, 0, 1, 7] + [0] * 9
    table = np.zeros((4, 3), np.int64)
    points = np.array([1, 3, 0, 4, -1], np.int32)
    count_points(points, np.array([0, 2]), np.array([2, 5]), table[1:3])
    assert table.tolist() == [[0] * 3, [1, 0, 1], [0] * 3, [0] * 3]
