"""Keys selected by weights over rows that do not fit into memory: the groups that units keep are read from the disk."""

from __future__ import annotations

import contextlib
import copy
import gc
import os
import pickle
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation import Grouping, by_unit, memory, prepare
from dpfast.errors import DpfastError
from dpfast.mechanisms.keys.weights import STEPS, select_by_weights
from dpfast.queries import Measure


def words(number):
    return np.random.default_rng(number).integers(0, 2**64, number, dtype=np.uint64)


def rows(number: int) -> pl.DataFrame:
    generator = np.random.default_rng(9)
    frame = pl.DataFrame({"u": generator.integers(0, 1 + number // 5, number), "k": generator.zipf(1.5, number) % 1000})
    return frame.with_columns(u=pl.when(pl.col("u") > 9).then("u"))


def open_files() -> int:
    """Return how many nameless files are open: what other tests left behind may go at any time."""
    folder, names = "/proc/self/fd", []
    for number in os.listdir(folder):
        with contextlib.suppress(OSError):
            names.append(os.readlink(f"{folder}/{number}"))
    return sum(name.endswith("(deleted)") for name in names)


def sums_of(exact) -> list[tuple[object, int]]:
    """Return every key's sum of weights, as the rounds see them: the second without the keys of the first."""
    seen = []

    def passes(sums):
        seen.append(sums.copy())
        return sums > 20 * STEPS

    select_by_weights(exact.holdings, exact.units.size, "gaussian", [passes, passes])
    return sorted(zip(exact.keys["k"].to_list(), *(table.tolist() for table in seen), strict=True))


@pytest.mark.parametrize("measures", [[Measure("rows")], [Measure("rows"), Measure("values", "k")]])
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(("number", "room"), [(0, 50_000), (1, 50_000), (4000, 50_000), (0, 1), (1, 1), (300, 1)])
def test_weights_are_the_same_from_the_disk(monkeypatch, request, measures, lazy, number, room):
    """Where bounds bind nothing no choice is random, so every sum of every round is the same number."""
    frame = rows(number)
    grouping = Grouping(("k",), None, "u", 10**4, 3)
    aggregation = replace(prepare(frame.lazy() if lazy else frame, grouping, measures), lists_groups=True)
    wanted = sums_of(aggregation.run(words))
    monkeypatch.setattr(memory, "room_for_rows", lambda: room)
    before = open_files()
    gc.disable()  # a file goes with its last reader, not when garbage is collected
    request.addfinalizer(gc.enable)
    exact = aggregation.run(words)
    assert sums_of(exact) == wanted
    assert sum(1 for _ in exact.holdings) == sum(1 for _ in exact.holdings)
    if number >= 300:
        assert open_files() == before + 1
        assert repr(exact.holdings) == "KeptGroups(private)"
        for leave in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(DpfastError, match="private"):
                leave(exact.holdings)
    del exact
    assert open_files() == before


@pytest.mark.parametrize("max_groups", [1, 2, 7])
def test_what_units_keep_is_what_is_counted(monkeypatch, max_groups):
    """Where bounds bind, the choices differ, but of every unit there are as many groups, and the counts are theirs."""
    frame = rows(4000)
    held = frame.drop_nulls("u").group_by("u").agg(pl.col("k").n_unique()).get_column("k").clip(None, max_groups)
    monkeypatch.setattr(memory, "room_for_rows", lambda: 50_000)
    aggregation = prepare(frame, Grouping(("k",), None, "u", max_groups, 3), [Measure("rows")])
    exact = replace(aggregation, lists_groups=True).run(words)
    sizes = [size for part in exact.holdings for size in np.diff(part.stops, prepend=0).tolist() if size]
    assert sorted(sizes) == held.sort().to_list()
    together = np.concatenate([part.groups for part in exact.holdings])
    assert np.bincount(together, minlength=exact.units.size).tolist() == exact.units.tolist()


@pytest.mark.parametrize("rule", ["weighted", pytest.param("iterated", marks=pytest.mark.long), "policy"])
def test_a_release_within_little_memory_shows_the_same_keys(monkeypatch, rule):
    """Twelve keys of 10^4 units or more each and 500 of one: the noise decides nothing, but for odds below 1e-12."""
    number = 1_500_000
    frame = pl.DataFrame({"u": np.arange(number) // 3, "k": np.arange(number) * 7919 % 12})
    frame = pl.concat([frame, pl.DataFrame({"u": np.arange(500), "k": np.arange(500) + 100})])

    def shown():
        plan = dpf.plan(
            frame, "k", n=dpf.count(), privacy_unit="u", max_groups=4, max_rows_per_group=3, epsilon=1.0, delta=1e-13,
            key_selection=rule, dataset="d",
        )  # fmt: skip
        return plan.run(dpf.Ledger(1.0, 1e-6)).frame["k"].to_list()

    made = []

    class Counted(by_unit.SpillFile):
        def __init__(self, folder):
            made.append(folder)
            super().__init__(folder)

    monkeypatch.setattr(by_unit, "SpillFile", Counted)
    assert shown() == list(range(12))
    assert not made
    with open("/proc/self/statm") as status:
        resident = int(status.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    monkeypatch.setenv("DPFAST_MEMORY_LIMIT", str(resident + 80 * 10**6))
    assert shown() == list(range(12))
    assert made
