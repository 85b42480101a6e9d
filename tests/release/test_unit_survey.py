"""What units have, before they are bounded: the same on every route, and one unit moves it by one count at most."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation import Grouping, memory, prepare
from dpfast.aggregation.sources import open_data
from dpfast.aggregation.unit_survey import GROUP_POINTS, ROW_POINTS, WHOLE, UnitSurvey
from dpfast.errors import DpfastError

from .uneven_units import KEYS, rows_by_group, rows_of


def survey_of(data, keys=KEYS, where=None, by=("k",), **opened):
    source = open_data(data, **opened)
    prepared = prepare(source, Grouping(by, keys, "u", 1, 1, where=where), [])
    return dataclasses.replace(prepared, surveys_units=True).run(None).survey


def plainly(data, keys=KEYS):
    """Return the same with loops."""
    had = rows_by_group(data, keys)
    units, shares = np.zeros(GROUP_POINTS.size, int), np.zeros((GROUP_POINTS.size, ROW_POINTS.size), int)
    for counts in had.values():
        row = max(place for place, point in enumerate(GROUP_POINTS) if point <= len(counts))
        units[row] += 1
        for count in counts.values():
            shares[row, max(place for place, point in enumerate(ROW_POINTS) if point <= count)] += 2**18 // len(counts)
    return units, shares


def assert_same(survey, expected):
    np.testing.assert_array_equal(survey.units, expected[0])
    np.testing.assert_array_equal(survey.shares, expected[1])


@pytest.mark.parametrize("keys", [KEYS, None], ids=["public", "found"])
@pytest.mark.parametrize("seed", range(4))
def test_the_table_is_as_counted_plainly(keys, seed):
    data = rows_of(range(80), seed)
    assert_same(survey_of(data, keys), plainly(data, keys))


@pytest.mark.parametrize("keys", [KEYS, None], ids=["public", "found"])
def test_every_route_gives_the_same(keys, tmp_path, monkeypatch):
    data = rows_of(range(300), 7)
    expected = plainly(data, keys)
    data.write_parquet(tmp_path / "d.parquet")
    data.write_ipc(tmp_path / "d.arrow")
    data.write_csv(tmp_path / "d.csv")
    sources = [
        data, data.lazy(), data.to_arrow(), data.to_arrow().to_reader(), tmp_path / "d.parquet",
        tmp_path / "d.arrow", data.sample(fraction=1, shuffle=True, seed=1), data.with_columns(pl.col("u").cast(str)),
        data.with_columns(pl.col("k").cast(pl.Categorical)), data.with_columns(u=pl.col("u") * 10**12),
    ]  # fmt: skip
    duckdb = pytest.importorskip("duckdb")
    arrow = data.to_arrow()
    sources.append(duckdb.sql("FROM arrow"))
    assert arrow.num_rows == data.height
    for source in sources:
        assert_same(survey_of(source, keys, **({"engine": "rows"} if source is sources[-1] else {})), expected)
    assert_same(survey_of(tmp_path / "d.csv", keys, schema=dict(data.schema)), expected)
    for room in (40_000, 4_000):  # the second is less than the rows of the largest units
        monkeypatch.setattr(memory, "room_for_rows", lambda room=room: room)
        crowd = pl.DataFrame({"u": 3, "k": ["a", "b"] * 900, "x": 0.0}, schema=data.schema)
        crowded = pl.concat([data, crowd])
        assert_same(survey_of(crowded.lazy(), keys), plainly(crowded, keys))


def test_rows_that_do_not_count_are_not_surveyed():
    data = rows_of(range(60), 3)
    where = dpf.column("x") > 4
    assert_same(survey_of(data, where=where), plainly(data.filter(pl.col("x").is_not_nan() & (pl.col("x") > 4))))


@pytest.mark.parametrize("data", [
    rows_of([]), rows_of(range(9)).with_columns(u=pl.lit(None, pl.Int64)),
    rows_of(range(9)).with_columns(k=pl.lit("z")),
], ids=["empty", "no unit", "no key"])  # fmt: skip
@pytest.mark.parametrize("lazy", [False, True])
def test_none_have_anything(data, lazy):
    survey = survey_of(data.lazy() if lazy else data)
    assert not survey.units.any()
    assert not survey.shares.any()


@pytest.mark.parametrize("seed", range(60))
def test_one_unit_moves_each_histogram_by_one_count_at_most(seed):
    """Of random data with and without a unit, and with another in its place, whatever it has, and any weights."""
    generator = np.random.default_rng(seed)
    unit = int(generator.integers(0, 40))
    data = rows_of(range(40), seed)
    rows = int(generator.integers(1, 3000))
    other = pl.DataFrame({"u": unit, "k": generator.choice(list("abcdez"), rows), "x": 0.0}, schema=data.schema)
    without = data.filter(pl.col("u").ne_missing(unit))
    keys = KEYS if seed % 2 else None
    surveys = [survey_of(one, keys) for one in (without, data, pl.concat([without, other]))]
    for limit in (None, 1, 2, 3, int(generator.integers(4, 2**31))):
        first, *others = [one.by_groups() if limit is None else one.by_rows(limit) for one in surveys]
        for more in others:
            moved = more - first
            assert (moved >= 0).all()
            assert 0 <= moved.sum() <= WHOLE
        # A unit that is replaced takes one vector away and brings another, neither with a negative part.
        replaced = (others[1] - others[0]).astype(object)
        assert abs(replaced).sum() <= 2 * WHOLE
        assert (replaced**2).sum() <= 2 * WHOLE**2


def test_pairs_count_by_the_groups_that_are_kept():
    """A unit of 2 groups of 1 row, one of 8 groups of 6: of 4 groups that are kept, the first fills half."""
    survey = UnitSurvey()
    survey.add_unit(np.array([1, 1]))
    survey.add_unit(np.full(8, 6))
    pairs = survey.by_rows(4) / WHOLE * 4
    assert pairs[list(ROW_POINTS).index(1)] == 2
    assert pairs[list(ROW_POINTS).index(6)] == 4
    assert pairs.sum() == 6


def test_very_large_numbers_fit():
    survey = UnitSurvey()
    survey.add_unit(np.array([2**38, 2**60, 1]))
    assert survey.shares.sum() == 3 * (2**18 // 3)
    assert survey.by_rows(1).sum() <= WHOLE
    # As many units as there may be.
    survey.units[:] = 0
    survey.units[0], survey.shares[0, 0] = 2**31, 2**31 * 2**18
    assert survey.by_groups()[0] == 2**55
    assert survey.by_rows(2**40)[0] >= 0


def test_it_is_private():
    survey = survey_of(rows_of(range(9)))
    assert repr(survey) == "UnitSurvey(private)"
    with pytest.raises(DpfastError, match="cannot be pickled"):
        survey.__reduce__()
