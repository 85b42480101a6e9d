"""Bounding by unit within little memory: the same figures, the same law, and nothing readable on the disk."""

from __future__ import annotations

import gc
import os
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from datetime import date, datetime
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import dpfast as dpf
from dpfast.aggregation import Grouping, aggregate, by_unit, memory, open_source, prepare, spilling
from dpfast.aggregation.grouped_points import GroupedPoints
from dpfast.errors import DpfastError, ParameterError
from dpfast.kernels.grouping.bounding import choose_rows
from dpfast.queries import Measure, choices_measure

ALPHA = 1e-12
ROWS = Measure("rows")
SUM = Measure("sum", "x", 0, 0, 10**6, 0)
POINTS = Measure("points", "x", 0, 0, 10**6, -1)
WITHIN = {"memory": 2**40, "parts": 50_000, "lone units": 1}


def secure(seed: int):
    generator = np.random.default_rng(seed)
    return lambda number: generator.integers(0, 2**64, number, dtype=np.uint64)


@pytest.fixture
def within(monkeypatch):
    """Set the memory that rows may take; ``spilled`` counts the files that were made since."""

    class Counted(spilling.SpillFile):
        def __init__(self, folder: str) -> None:
            set_room.spilled += 1
            super().__init__(folder)

    def set_room(name: str) -> None:
        set_room.spilled = 0
        monkeypatch.setattr(memory, "room_for_rows", lambda: WITHIN[name])

    monkeypatch.setattr(by_unit, "SpillFile", Counted)
    return set_room


def data(rows: int = 1500, units: int = 12, seed: int = 7) -> pl.DataFrame:
    generator = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "k": generator.integers(0, 6, rows).astype(str),
            "u": generator.integers(0, units, rows),
            "x": np.arange(rows),
            "c": generator.choice(["red", "green", "a colour of a long name"], rows),
        }
    )
    some = pl.Series(generator.random(rows) < 0.05)
    return frame.with_columns(pl.when(some).then(None).otherwise(pl.col(name)).alias(name) for name in ("u", "c"))


KEYS = pl.DataFrame({"k": ["0", "1", "2", "3", "9"]})


def plainly(found) -> dict:
    """Return aggregates with keys in order and points as sorted lists."""
    order = found.keys.with_row_index("i").sort(found.keys.columns)["i"].to_numpy()
    figures = [None if found.units is None else found.units[order].tolist()]
    for measure in found.measures:
        if isinstance(measure, GroupedPoints):
            figures.append([sorted(measure.points[measure.starts[i] : measure.stops[i]].tolist()) for i in order])
        else:
            figures.append(np.asarray(measure)[order].tolist())
    return {"keys": found.keys.sort(found.keys.columns).rows(), "figures": figures}


# The same figures.

UNITS = {
    "int8": pl.col("u").cast(pl.Int8) - 20,
    "int64": (pl.col("u") - 20) * (2**63 // 20),
    "uint64": pl.col("u").cast(pl.UInt64) * (2**64 // 40),
    "string": pl.col("u").cast(pl.String),
    "long string": pl.lit("a long name of ") + pl.col("u").cast(pl.String),
    "categorical": pl.col("u").cast(pl.String).cast(pl.Categorical),
    "enum": pl.col("u").cast(pl.String).cast(pl.Enum([str(i) for i in range(40)])),
    "boolean": pl.col("u") % 2 == 0,
    "date": pl.lit(date(2024, 1, 1)) + pl.duration(days="u"),
    "moment": pl.lit(datetime(2024, 1, 1)) + pl.duration(hours="u"),
    "null": pl.lit(None),
}
MEASURES = [ROWS, SUM, POINTS, Measure("values", "c"), choices_measure(dpf.mode("c", candidates=["red", "blue"]))]


OFTEN = ("int8", "uint64", "long string", "categorical", "null")


@pytest.mark.parametrize(
    "unit", [unit if unit in OFTEN else pytest.param(unit, marks=pytest.mark.long) for unit in UNITS]
)
def test_spilling_changes_no_figure(within, tmp_path, unit):
    """With bounds that bind nothing the choice is none: every source, every kind of keys, every measure."""
    frame = data().with_columns(UNITS[unit].alias("u"))
    frame.write_parquet(tmp_path / "a.parquet")
    sliced = pl.concat([frame[:1000], frame[1000:]], rechunk=False)[5:]
    cases = [(frame, KEYS, MEASURES), (open_source(tmp_path / "a.parquet"), None, MEASURES), (sliced, KEYS, [ROWS])]
    for source, keys, measures in cases:
        grouping = Grouping(("k",), keys, "u", 100, 10_000)
        within("memory")
        wanted = plainly(aggregate(source, grouping, measures, secure(1)))
        assert not within.spilled
        for room in ("parts", "lone units") if unit in ("int8", "long string") else ("parts",):
            within(room)
            assert plainly(aggregate(source, grouping, measures, secure(2))) == wanted
            assert within.spilled == 1


@pytest.mark.parametrize("room", ["parts", "lone units"])
@pytest.mark.parametrize("rows", ["none", "one", "all null units", "no known key"])
@pytest.mark.parametrize("keys", [KEYS, None], ids=["keys", "selected"])
def test_nothing_to_spill(within, rows, keys, room):
    frame = {
        "none": data()[:0],
        "one": data()[:1],
        "all null units": data().with_columns(u=pl.lit(None, pl.Int64)),
        "no known key": data().with_columns(k=pl.lit("x")),
    }[rows]
    for source in (frame, frame.lazy()):
        for measures in (MEASURES, [ROWS]):
            within("memory")
            wanted = plainly(aggregate(source, Grouping(("k",), keys, "u", 9, 9000), measures, secure(1)))
            within(room)
            assert plainly(aggregate(source, Grouping(("k",), keys, "u", 9, 9000), measures, secure(2))) == wanted


def test_keys_without_codes_and_no_keys(within):
    """Keys that fit into no 63 bits are joined by Polars; no keys are one group."""
    frame = data().with_columns(far=(pl.col("x") % 5 - 2) * (2**62 - 1), wide=(pl.col("x") % 3 - 1) * (2**62 - 1))
    keys = frame.select("far", "wide").unique().sort("far", "wide")
    for grouping in (Grouping(("far", "wide"), keys, "u", 99, 9999), Grouping((), None, "u", 1, 9999)):
        within("memory")
        wanted = plainly(aggregate(frame, grouping, MEASURES, secure(1)))
        for room in ("parts", "lone units"):
            within(room)
            assert plainly(aggregate(frame, grouping, MEASURES, secure(2))) == wanted


# The same law.


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=60),
    st.integers(1, 4),
    st.integers(1, 5),
    st.sampled_from([1, 2000, 2**40]),
    st.integers(0, 99),
)
def test_each_unit_keeps_exactly_what_it_may(rows, max_groups, max_rows, room, seed):
    """The points of a quantile tell which rows were kept (Soundness rule 14)."""
    units, groups = [unit for unit, _ in rows], [group for _, group in rows]
    frame = pl.DataFrame({"k": groups, "u": units, "x": range(len(rows))})
    grouping = Grouping(("k",), pl.DataFrame({"k": range(4)}), "u", max_groups, max_rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "room_for_rows", lambda: room)
        found = aggregate(frame, grouping, [POINTS, ROWS], secure(seed))
    kept = [np.sort(found.measures[0].points[a:b] - 1) for a, b in _slices(found.measures[0])]
    assert found.measures[1].tolist() == [len(places) for places in kept]
    for unit in set(units):
        had = Counter(group for other, group in rows if other == unit)
        counts = [sum(units[place] == unit for place in places) for places in kept]
        assert sum(count > 0 for count in counts) == min(max_groups, len(had))
        assert all(count in (0, min(max_rows, had[group])) for group, count in enumerate(counts))
    for group, places in enumerate(kept):
        assert all(groups[place] == group for place in places)
        assert found.units[group] == len({units[place] for place in places})


def _slices(points: GroupedPoints):
    return zip(points.starts, points.stops, strict=True)


def chi_square(counts: Counter, outcomes: int) -> float:
    expected = sum(counts.values()) / outcomes
    return sum((count - expected) ** 2 / expected for count in counts.values()) + expected * (outcomes - len(counts))


@pytest.mark.statistical
@pytest.mark.parametrize(("room", "trials"), [("memory", 20_000), ("parts", 5_000), ("lone units", 300)])
def test_groups_and_rows_are_chosen_uniformly(within, room, trials):
    """2 of 3 groups and 1 of 2 rows in each: 12 equally likely outcomes for each unit; false-failure rate 1e-12."""
    within(room)
    units = np.random.default_rng(3).permutation(np.repeat(np.arange(trials), 6))
    order = np.argsort(units, kind="stable")
    groups, places = np.empty(6 * trials, int), np.empty(6 * trials, int)
    groups[order], places[order] = np.tile([0, 0, 1, 1, 2, 2], trials), np.tile(range(6), trials)
    frame = pl.DataFrame({"k": groups, "u": units, "x": np.arange(6 * trials)})
    measure = Measure("points", "x", 0, 0, 10**6, -1)
    found = aggregate(frame, Grouping(("k",), pl.DataFrame({"k": range(3)}), "u", 2, 1), [measure], secure(4))
    outcomes: dict[int, list[int]] = {}
    for row in found.measures[0].points - 1:
        outcomes.setdefault(int(units[row]), []).append(int(places[row]))
    counts = Counter(tuple(sorted(kept)) for kept in outcomes.values())
    assert sum(counts.values()) == trials
    assert chi_square(counts, 12) < chi2.isf(ALPHA, 11)


@pytest.mark.statistical
def test_rows_of_a_lone_unit_are_chosen_uniformly():
    """3 of 6 rows, met in stretches of 1, 2 and 3: 20 sets; false-failure rate 1e-12."""
    words, counts = secure(5), Counter()
    for _ in range(10_000):
        wanted, left, kept = np.array([0, 3]), np.array([0, 6]), []
        for length in (1, 2, 3):
            groups = np.ones(length, np.int32)
            choose_rows(groups, wanted, left, words(length))
            kept += [group == 1 for group in groups]
        assert wanted[1] == left[1] == 0
        counts[tuple(kept)] += 1
    assert all(sum(kept) == 3 for kept in counts)
    assert len(counts) == len(list(combinations(range(6), 3)))
    assert chi_square(counts, 20) < chi2.isf(ALPHA, 19)


def test_choices_among_very_many_rows_are_exact():
    """Beyond 2**32 rows of one group a product of 64 bits would wrap: checked against Python's integers."""
    generator = np.random.default_rng(6)
    for bits in (2, 20, 31, 32, 33, 40, 62):
        total = int(generator.integers(2 ** (bits - 1), 2**bits)) + 300
        wanted, left = np.array([total // 3]), np.array([total])
        words, groups = secure(bits)(300), np.zeros(300, np.int32)
        choose_rows(groups, wanted, left, words)
        still, coming = total // 3, total
        for word, group in zip(words.tolist(), groups.tolist(), strict=True):
            keep = still == coming or (word * coming >> 64) < still
            assert (group == 0) == keep
            still, coming = still - keep, coming - 1
        assert (wanted[0], left[0]) == (still, coming)


# What is spilled when.


def test_one_huge_unit_among_many_is_dealt_out_once(within, monkeypatch):
    """It crowds its part; the next hash sets it apart, and no row is written more than three times."""
    written = [0]
    write = spilling.SpillFile.write

    def count(self, frame):
        written[0] += frame.height
        return write(self, frame)

    monkeypatch.setattr(spilling.SpillFile, "write", count)
    frame = pl.DataFrame({"k": np.arange(60_000) % 6, "u": np.where(np.arange(60_000) % 3, 7, np.arange(60_000))})
    grouping = Grouping(("k",), pl.DataFrame({"k": range(6)}), "u", 2, 3)
    within("parts")
    found = aggregate(frame.with_columns(x=1), grouping, [ROWS, SUM], secure(1))
    # Every third row is of a unit of its own, the others are of one unit.
    assert found.units.sum() == 20_000 + 2
    assert found.measures[0].sum() == 20_000 + 6
    assert found.measures[1].sum() == 20_000 + 6
    assert frame.height < written[0] <= 3 * frame.height


def test_what_fits_is_never_written(within, monkeypatch):
    within("memory")
    monkeypatch.setattr(by_unit, "SpillFile", None)
    aggregate(data(), Grouping(("k",), KEYS, "u", 1, 1), MEASURES, secure(1))


# Nothing readable on the disk.


@pytest.fixture
def looked_into(monkeypatch):
    """Look at every spill file as it is after each write: its names, its mode and its bytes."""
    seen: list[tuple[str, int, bytes]] = []
    write = spilling.SpillFile.write

    def look(self, frame):
        place = write(self, frame)
        number = self._file.fileno()
        status = os.fstat(number)
        seen.append((status.st_nlink, stat.S_IMODE(status.st_mode), os.pread(number, status.st_size, 0)))
        return place

    monkeypatch.setattr(spilling.SpillFile, "write", look)
    return seen


def test_spilled_rows_cannot_be_read(within, looked_into, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    frame = data().with_columns(u=pl.lit("secret unit ") + pl.col("u").cast(pl.String))
    within("parts")
    opened = set(os.listdir("/proc/self/fd"))
    aggregate(frame, Grouping(("k",), KEYS, "u", 1, 1), MEASURES, secure(1))
    gc.collect()
    assert set(os.listdir("/proc/self/fd")) == opened
    assert list(tmp_path.iterdir()) == []
    assert looked_into
    for links, mode, content in looked_into:
        assert links == 0
        assert mode == 0o600
        for readable in (b"secret", b"unit", b"a colour of", b"red", b"ARROW", b"\xff\xff\xff\xff"):
            assert readable not in content[:100_000]
    # Two files of the same rows have nothing in common, nor have two places of one file.
    first = looked_into[-1][2]
    looked_into.clear()
    aggregate(frame, Grouping(("k",), KEYS, "u", 1, 1), MEASURES, secure(1))
    blocks = [bytes(part[i : i + 16]) for part in (first, looked_into[-1][2]) for i in range(0, len(part) - 15, 16)]
    full = [block for block in blocks if block != bytes(16)]
    assert len(set(full)) == len(full)


def test_a_file_gives_back_what_was_written(tmp_path):
    """Frames of all lengths, read in any order; strings are gathered without the rows beside them."""
    frames = [data(rows, seed=rows) for rows in (1, 2, 3, 1000, 4)]
    large = data(100_000)
    with spilling.SpillFile(str(tmp_path)) as file:
        places = [file.write(frame) for frame in frames]
        assert file.write(large[10:11])[1] < 5000
        for place, frame in reversed(list(zip(places, frames, strict=True))):
            assert file.read(place).equals(frame)
        with pytest.raises(DpfastError, match="cannot be pickled"):
            file.__reduce__()
        assert "private" in repr(file)


def test_a_killed_process_leaves_nothing(tmp_path):
    code = """
        import os, signal, numpy as np, polars as pl
        from dpfast.aggregation import Grouping, aggregate, memory, spilling
        memory.room_for_rows = lambda: 100_000
        write = spilling.SpillFile.write
        def kill(self, frame):
            write(self, frame)
            print(os.fstat(self._file.fileno()).st_size, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        spilling.SpillFile.write = kill
        frame = pl.DataFrame({"k": [0] * 30_000, "u": range(30_000)})
        words = lambda number: np.zeros(number, np.uint64)
        aggregate(frame, Grouping(("k",), frame[:1, :1], "u", 1, 1), [], words)
    """
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=False, capture_output=True, text=True, env=environment
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert int(done.stdout) > 0
    assert list(tmp_path.iterdir()) == []


# What cannot be met.


def planned(tmp_path: Path, **changes):
    data(10_000).write_parquet(tmp_path / "a.parquet")
    given = {"by": "k", "keys": KEYS, "n": dpf.count(), "privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 3}
    return dpf.plan(tmp_path / "a.parquet", epsilon=0.5, **{**given, **changes})


def refused(plan) -> str:
    ledger = dpf.Ledger(epsilon=1.0)
    with pytest.raises(ParameterError) as caught:
        plan.run(ledger)
    assert ledger.spent.epsilon == 0
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("folder", ["missing", "a file", "in memory", "full"])
def test_a_folder_that_does_not_serve_is_refused_before_the_charge(tmp_path, monkeypatch, within, folder):
    plan = planned(tmp_path)
    place = tmp_path / "spill"
    if folder == "a file":
        place.touch()
    elif folder == "in memory":
        mounts = tmp_path / "mounts"
        mounts.write_text(f"disk / ext4 rw 0 0\nnone {tmp_path}/spill tmpfs rw 0 0\n")
        place.mkdir()
        monkeypatch.setattr(spilling, "_MOUNTS", mounts)
    elif folder == "full":
        place.mkdir()
        full = os.statvfs_result((4096, 4096, 100, 1, 1, 100, 10, 10, 0, 255))
        monkeypatch.setattr(os, "statvfs", lambda path: full)
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr("dpfast.aggregation.exact.room_for_rows", lambda: 1000)
    assert "TMPDIR" in refused(plan)
    # What surely fits needs no folder; nor does a release by rows.
    monkeypatch.setattr("dpfast.aggregation.exact.room_for_rows", lambda: 2**40)
    within("memory")
    assert plan.run(dpf.Ledger(epsilon=1.0)).frame.height == KEYS.height


def test_a_disk_that_fills_up_is_said_so(within, monkeypatch, tmp_path):
    """After the charge, in fixed words: how much there is to spill is private, the folder is not."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    within("lone units")

    def fail(number, content, offset):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", fail)
    with pytest.raises(DpfastError, match=r"kept in the folder .*No space left.*set TMPDIR") as caught:
        aggregate(data(), Grouping(("k",), KEYS, "u", 1, 1), [ROWS], secure(1))
    assert caught.value.__context__ is None
    # Without any folder, memory is used as far as it goes.
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    assert aggregate(data(), Grouping(("k",), KEYS, "u", 9, 9000), [ROWS], secure(1)).units.sum() > 0


@pytest.mark.parametrize("limit", ["1", "64MiB"])
def test_too_little_memory_is_refused_before_the_charge(tmp_path, monkeypatch, limit):
    plan = planned(tmp_path)
    monkeypatch.setenv("DPFAST_MEMORY_LIMIT", limit)
    assert "memory must be at least" in refused(plan)
    keys = pl.DataFrame({"k": [str(i) for i in range(10**6)]})
    used = int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    plan = planned(tmp_path, keys=keys)
    monkeypatch.setenv("DPFAST_MEMORY_LIMIT", str(used + 90_000_000))
    assert "for the tables of this plan" in refused(plan)


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.arrow"])
def test_points_that_may_not_fit_are_refused_before_the_charge(tmp_path, monkeypatch, name):
    """Points of quantiles stay in memory: 12 bytes for each row that files may bring, or that the population may."""
    rows = pl.DataFrame({"k": ["a"], "u": [1], "v": [0.5]}).select(pl.all().repeat_by(4_000_000).explode())
    path = tmp_path / name
    {".parquet": rows.write_parquet, ".csv": rows.write_csv, ".arrow": rows.write_ipc}[path.suffix](path)
    given = {"by": "k", "keys": KEYS, "privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 3, "epsilon": 0.5}
    if path.suffix == ".csv":
        given["schema"] = rows.schema
    queries = {"low": dpf.quantile("v", 0.1, bounds=(0, 1)), "high": dpf.quantile("v", 0.9, bounds=(0, 1))}
    plan = dpf.plan(path, **given, **queries)
    monkeypatch.setattr("dpfast.aggregation.memory.free_memory", lambda: 100_000_000)
    shown = refused(plan)
    assert "for the points of quantiles" in shown
    assert "population=" in shown
    counts = dpf.plan(path, n=dpf.count(), **given)
    assert counts.run(dpf.Ledger(epsilon=1.0)).frame.height == KEYS.height
    few = dpf.plan(path, **given, **queries, population=100_000)
    assert few.run(dpf.Ledger(epsilon=1.0)).frame.height == KEYS.height


@pytest.mark.parametrize("limit", ["much", "-1", "1e9", "3 i", "MB"])
def test_a_limit_that_cannot_be_read_is_refused(tmp_path, monkeypatch, limit):
    plan = planned(tmp_path)
    monkeypatch.setenv("DPFAST_MEMORY_LIMIT", limit)
    assert "write for example DPFAST_MEMORY_LIMIT=600MB" in refused(plan)


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


def test_all_limits_are_counted(tmp_path, monkeypatch):
    gigabyte = 10**9
    base = {"proc/meminfo": "MemTotal: 9 kB\nMemAvailable:  8000000 kB\n", "proc/self/statm": "100 50 1"}
    machine = 8000000 * 1024
    assert memory.free_memory(tree(tmp_path / "none", base)) == machine
    second = {
        **base,
        "proc/self/cgroup": "0::/a/b\n",
        "sys/fs/cgroup/a/b/memory.max": "max\n",
        "sys/fs/cgroup/a/b/memory.current": "1",
        "sys/fs/cgroup/a/b/memory.stat": "inactive_file 0\n",
        "sys/fs/cgroup/a/memory.max": f"{gigabyte}\n",
        "sys/fs/cgroup/a/memory.current": f"{gigabyte // 2}\n",
        "sys/fs/cgroup/a/memory.stat": f"anon 5\ninactive_file {gigabyte // 4}\n",
    }
    assert memory.free_memory(tree(tmp_path / "second", second)) == gigabyte - gigabyte // 4
    # In a container the path in /proc may be the host's.
    place = "sys/fs/cgroup/memory/memory"
    first = {
        **base,
        "proc/self/cgroup": "5:cpu:/x\n4:memory,hugetlb:/docker/0123\n0::/\n",
        f"{place}.limit_in_bytes": f"{gigabyte}",
        f"{place}.usage_in_bytes": f"{gigabyte // 10}",
        f"{place}.stat": "total_inactive_file 0\n",
    }
    root = tree(tmp_path / "first", first)
    assert memory.free_memory(root) == gigabyte - gigabyte // 10
    for text, limit in (("500MB", 500 * 10**6), ("0.5 GiB", 2**29), ("400000000", 400000000), ("2k", 2000)):
        monkeypatch.setenv("DPFAST_MEMORY_LIMIT", text)
        assert memory.free_memory(root) == max(0, limit - 50 * 4096)
    monkeypatch.setenv("DPFAST_MEMORY_LIMIT", "")
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda which: (10**8, 10**9))
    assert memory.free_memory(root) == 10**8 - 100 * 4096
    assert memory.room_for_rows() >= 1 << 24


def test_memory_is_named_by_its_file_system(tmp_path, monkeypatch):
    mounts = tmp_path / "mounts"
    mounts.write_text("disk / ext4 rw 0 0\nnone /tmp tmpfs rw 0 0\nnone /a\\040b ramfs rw\nbad\n")
    monkeypatch.setattr(spilling, "_MOUNTS", mounts)
    for folder, answer in (("/tmp", True), ("/tmp/x", True), ("/tmpx", False), ("/a b/c", True), ("/", False)):
        assert spilling._is_memory(folder) is answer
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/tmp")
    assert spilling.find_folder() in ("/var/tmp", None)


def test_aggregations_say_what_they_check(tmp_path):
    """Rows of their own units are scattered as they pass and need no folder."""
    data().write_parquet(tmp_path / "a.parquet")
    prepare(open_source(tmp_path / "a.parquet"), Grouping(("k",), KEYS), [ROWS]).check_source()
