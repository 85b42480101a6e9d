"""Which tables marginals are counted in: every marginal lies in its table, whatever is shared."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.domain import marginal_counting
from dpfast.domain.joint_tables import plan_tables

CENSUS = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)


def all_sets(attributes, *sizes):
    return [held for size in sizes for held in itertools.combinations(range(attributes), size)]


@pytest.mark.parametrize(
    ("sizes", "sets"),
    [
        (CENSUS, all_sets(14, 2)),
        (CENSUS, all_sets(14, 1, 2)),
        (CENSUS, all_sets(14, 3)),
        ((1, 1, 1), all_sets(3, 1, 2, 3)),
        ((2,) * 30, all_sets(30, 2)),
        ((70_000, 3, 2), all_sets(3, 1, 2)),
        ((5, 6), [(), (0,), (0, 1)]),
        ((5, 6), [(0,), (0,)]),
    ],
)
def test_every_marginal_lies_in_its_table(sizes, sets):
    planned = plan_tables(sizes, sets)
    lengths = [math.prod(sizes[a] for a in column) for column in planned.columns]
    assert planned.lengths.tolist() == lengths
    for place, table in enumerate(planned.tables):
        cells = math.prod(lengths[column] for column in table)
        assert planned.offsets[place + 1] - planned.offsets[place] == cells
    for held, home in zip(sets, planned.homes, strict=True):
        assert set(held) <= {a for column in planned.tables[home] for a in planned.columns[column]}
    own = sum(math.prod(sizes[a] for a in held) for held in sets)
    assert planned.offsets[-1] <= max(own, 2**22)


def test_pairs_of_a_census_take_few_tables():
    """91 pairs lie in 36 tables: a record adds one to 36 numbers instead of 91."""
    planned = plan_tables(CENSUS, all_sets(14, 2))
    assert len(planned.columns) == 9
    assert len(planned.tables) <= 36


def some_codes(sizes, rows):
    generator = np.random.default_rng(rows)
    # Half of all values are the first one, and a few are in no cell.
    codes = [generator.integers(0, size, rows) * generator.integers(0, 2, rows) for size in sizes]
    return [np.where(generator.random(rows) < 0.01, size + 3, code) for size, code in zip(sizes, codes, strict=True)]


@pytest.mark.parametrize("rows", [0, 1, 70_000])
@pytest.mark.parametrize("outside", ["drop", "null"])
@pytest.mark.parametrize(
    ("sizes", "sets"),
    [
        ((85, 9, 16, 7, 15, 6, 2, 99, 2), all_sets(9, 1, 2)),
        ((85, 9, 16, 7, 15, 6, 2, 99, 2), all_sets(9, 3)),
        ((70_000, 3, 2, 40), [(0, 1), (1, 2), (0, 3), (2, 3), ()]),
    ],
)
def test_counts_are_those_of_numpy(sizes, sets, rows, outside):
    codes = some_codes(sizes, rows)
    frame = pl.DataFrame({f"x{place}": code for place, code in enumerate(codes)})
    domain = dpf.Domain(dict(zip(frame.columns, sizes, strict=True)), outside)
    if outside == "null":
        codes = [np.minimum(code, size) for code, size in zip(codes, sizes, strict=True)]
    known = np.all([code < size for code, size in zip(codes, domain.shape, strict=True)], axis=0)
    for held, counts in zip(sets, domain.open(frame).count_marginals(sets), strict=True):
        shape = [domain.shape[a] for a in held]
        cells = np.zeros(int(known.sum()), np.int64)
        for a in held:
            cells = cells * domain.shape[a] + codes[a][known]
        assert (counts == np.bincount(cells, minlength=math.prod(shape))).all()


def test_tables_are_summed_before_they_overflow(monkeypatch):
    """Tables hold 32 bits: with a limit of 100,000 records they are summed many times, to the same counts."""
    frame = pl.DataFrame({"a": np.arange(700_000) % 3, "b": np.arange(700_000) % 2})
    opened = dpf.Domain({"a": 3, "b": 2}).open(frame)
    expected = opened.count_marginals([(0, 1), (0,)])
    monkeypatch.setattr(marginal_counting, "_MOST_RECORDS", 100_000)
    for threads in (1, 2):
        again = opened.count_marginals([(0, 1), (0,)], threads=threads)
        assert all((one == other).all() for one, other in zip(again, expected, strict=True))
    assert expected[1].sum() == 700_000


def test_three_hundred_columns():
    generator = np.random.default_rng(300)
    frame = pl.DataFrame({f"x{place}": generator.integers(0, 4, 500) for place in range(300)})
    domain = dpf.Domain(dict.fromkeys(frame.columns, 4))
    sets = all_sets(300, 2)
    counts = domain.open(frame).count_marginals(sets)
    for place in (0, 17, len(sets) - 1):
        one, other = (frame[f"x{a}"].to_numpy() for a in sets[place])
        assert (counts[place] == np.bincount(one * 4 + other, minlength=16)).all()
    assert all(int(table.sum()) == 500 for table in counts)
