"""Records in parts and in files: the same law as at once, and never all of them in memory."""

from __future__ import annotations

import dataclasses
import datetime
import itertools

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError
from dpfast.testing import SeededRandom

DAYS = [datetime.date(2024, 1, 1), datetime.date(2024, 3, 1), datetime.date(2025, 1, 1)]


def some_people(rows=2_000):
    generator = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "sex": generator.choice(["f", "m", None], rows).tolist(),
            "age": generator.integers(0, 90, rows),
            "day": [DAYS[0] + datetime.timedelta(days=int(d)) for d in generator.integers(0, 300, rows)],
            "x": generator.normal(0, 1, rows),
        }
    )


def some_domain():
    return dpf.Domain(
        {
            "sex": ["f", "m"],
            "age": dpf.bins("age", [0, 18, 65, 120]),
            "day": dpf.bins("day", DAYS),
            "x": dpf.bins("x", [-5.5, 0.0, 5.0]),
        },
        outside="clamp",
        nulls=["sex"],
    )


def estimates():
    people, domain = some_people(), some_domain()
    ledger = dpf.Ledger(epsilon=1000, delta=1e-3)
    yield dpf.synthesize(people, domain, epsilon=50.0, ledger=ledger)
    yield dpf.synthesize(people, domain, epsilon=50.0, delta=1e-9, ledger=ledger)


MADE = list(estimates())


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize(("n", "most"), [(0, 10), (1, 1), (5_000, 777), (5_000, 5_000), (5_000, 10**6)])
def test_parts_are_together_what_is_drawn_at_once(made, n, most):
    """All parts have the same number of records in each cell as one: rounded once."""
    parts = list(made.domain.record_batches(made.estimate, n, most=most, random=SeededRandom(1)))
    assert [part.height for part in parts] == [most] * (n // most) + [n % most] * (n % most > 0 or n == 0)
    whole = pl.concat(parts)
    once = made.domain.records(made.estimate, n, random=SeededRandom(1))
    assert whole.schema == once.schema
    if made is MADE[0]:
        assert (made.domain.count(whole) == made.domain.count(once)).all()


@pytest.mark.parametrize("made", MADE)
def test_each_part_has_its_share(made):
    """Of every cell each part has its share, within one record and what a clique adds."""
    parts = list(made.estimate.draw_parts(600_000, most=200_000, random=SeededRandom(2)))
    counts = [np.bincount(part[1], minlength=3) for part in parts]
    for one, other in itertools.pairwise(counts):
        assert np.abs(one - other).max() <= 8


def test_a_tree_gives_the_same_counts_in_parts_as_at_once():
    """What is rounded is rounded once: the cliques' counts do not depend on the parts."""
    made = MADE[1]
    once = made.estimate.draw_codes(2**18 + 1, random=SeededRandom(4))
    parts = np.concatenate(list(made.estimate.draw_parts(2**18 + 1, most=9_000, random=SeededRandom(4))), axis=1)
    shape = made.domain.shape
    for names in made.estimate.cliques:
        held = [made.domain.names.index(name) for name in names]
        sizes = [shape[a] for a in held]
        counted = [
            np.bincount(np.ravel_multi_index(list(codes[held]), sizes), minlength=np.prod(sizes))
            for codes in (once, parts)
        ]
        # The first clique's counts are the same numbers; the others' are rounded with the same words.
        assert (counted[0] == counted[1]).all()


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv", ".ndjson"])
def test_files_hold_the_records(made, suffix, tmp_path):
    told = []
    path = tmp_path / f"records{suffix}"
    path.write_bytes(b"what was there before")
    written = made.domain.write_records(made.estimate, path, 1_500, progress=told.append)
    assert written == 1_500 == told[-1]
    read = {
        ".parquet": pl.read_parquet,
        ".arrow": pl.read_ipc,
        ".csv": lambda file: pl.read_csv(file, try_parse_dates=True),
        ".ndjson": lambda file: pl.read_ndjson(file, schema_overrides={"day": pl.Date}),
    }[suffix](path)
    assert read.columns == list(made.domain.names)
    assert read.height == 1_500
    assert read.schema == {"sex": pl.String, "age": pl.Int64, "day": pl.Date, "x": pl.Float64}
    assert set(read["sex"].to_list()) == {"f", "m", None}
    assert made.domain.count(read).sum() == 1_500
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_synthesis_writes_as_many_as_it_was_asked_for(tmp_path):
    made = dpf.synthesize(some_people(), some_domain(), epsilon=50.0, rows=70, ledger=dpf.Ledger(epsilon=50.0))
    assert made.write(tmp_path / "records.parquet") == 70
    assert pl.read_parquet(tmp_path / "records.parquet").height == 70


def test_what_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("before")

    def fail(records):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        MADE[0].domain.write_records(MADE[0].estimate, path, 100, progress=fail)
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_pipe_hears_nothing_and_a_terminal_how_many(capsys, monkeypatch, tmp_path):
    made = MADE[0]
    made.domain.write_records(made.estimate, tmp_path / "r.csv", 100)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("dpfast.progress._QUIET", -1.0)
    made.domain.write_records(made.estimate, tmp_path / "r.csv", 100)
    assert "100 of 100 records written" in capsys.readouterr().err


@pytest.mark.parametrize("made", MADE)
def test_records_come_from_what_synthesis_returns_as_from_its_estimate(made, tmp_path):
    domain, path = made.domain, tmp_path / "r.parquet"
    of_estimate = domain.records(made.estimate, 500, random=SeededRandom(1))
    assert domain.records(made, 500, random=SeededRandom(1)).equals(of_estimate)
    assert domain.write_records(made, path, 500, random=SeededRandom(1)) == 500
    assert pl.read_parquet(path).equals(of_estimate)
    # As many as were asked for, or else the estimate's total, rounded.
    assert domain.records(dataclasses.replace(made, rows=321)).height == 321
    assert domain.records(made).height == domain.records(made.estimate).height == made.frame.height


def test_how_many_is_for_estimates_alone():
    domain = some_domain()
    with pytest.raises(ParameterError, match=r"n must be left out beside numbers of cells.*already"):
        domain.records([0, 1], 2)
    with pytest.raises(ParameterError, match="cells must be integers from 0 to 35, or an estimate"):
        domain.records(object(), 2)


def test_an_estimate_of_another_shape_is_refused():
    other = dpf.Domain({"a": 3})
    for call in (other.records, other.record_batches):
        for given in (MADE[0].estimate, MADE[1].estimate, *MADE):
            with pytest.raises(ParameterError, match="of shape"):
                call(given)


def test_dates_lie_in_their_bins_and_nulls_come_back():
    people, domain = some_people(), some_domain()
    assert domain.shape == (3, 3, 2, 2)
    assert domain.count(people).sum() == people.height
    drawn = domain.records(np.arange(domain.cells).repeat(20), random=SeededRandom(5))
    assert (domain.count(drawn) == 20).all()
    assert drawn["day"].is_between(DAYS[0], DAYS[-1], closed="left").all()
    assert drawn["sex"].null_count() == domain.cells // 3 * 20


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Oslo"])
def test_moments_are_binned_by_their_own_ticks(unit, zone):
    edges = [datetime.datetime(2024, 1, day) for day in (1, 2, 5)]
    moments = [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 4, 23, 59, 59), datetime.datetime(2024, 1, 5)]
    frame = pl.DataFrame({"at": pl.Series([*moments, None]).cast(pl.Datetime(unit))})
    if zone is not None:
        frame = frame.with_columns(pl.col("at").dt.replace_time_zone(zone))
        edges = pl.Series(edges).dt.replace_time_zone(zone).to_list()
    for outside, nulls, expected in [
        ("drop", False, [1, 1]),
        ("null", False, [1, 1, 2]),
        ("clamp", True, [1, 2, 1]),
        ("drop", True, [1, 1, 1]),
    ]:
        domain = dpf.Domain({"at": dpf.bins("at", edges)}, outside, nulls=nulls)
        assert domain.count(frame).tolist() == expected
    drawn = dpf.Domain({"at": dpf.bins("at", edges)}).records([0, 1] * 50)
    assert dpf.Domain({"at": dpf.bins("at", edges)}).count(drawn).tolist() == [50, 50]
    with pytest.raises(dpf.errors.ColumnError, match="must hold"):
        dpf.Domain({"at": dpf.bins("at", edges)}).open(pl.DataFrame({"at": DAYS}))


def moments(*texts):
    return pl.Series("at", np.array(texts, "M8[ns]"))


FAR = datetime.datetime(9990, 1, 1)
MICROSECONDS = [FAR + datetime.timedelta(microseconds=step) for step in range(4)]
MIDNIGHTS = [datetime.datetime(2020, 1, day) for day in (1, 2, 3)]
#: Edges, values and their bins, of times that float64 does not tell apart.
CLOSE_TIMES = {
    "a nanosecond before midnight": (
        MIDNIGHTS, moments("2020-01-01", "2020-01-01T23:59:59.999999999", "2020-01-02"), [0, 0, 1],
    ),
    "microseconds of a late year": (MICROSECONDS, pl.Series("at", MICROSECONDS), [0, 1, 2, None]),
    "the last nanosecond, below an edge that is later still": (
        [MIDNIGHTS[0], FAR], moments("2262-04-11T23:47:16.854775807", "2019-12-31T23:59:59.999999999"), [0, None],
    ),
    "the first nanosecond, above an edge that is earlier still": (
        [datetime.datetime(1, 1, 1), MIDNIGHTS[0]], moments("1677-09-21T00:12:43.145224193", "2020-01-01"), [0, None],
    ),
    "edges between two milliseconds": (
        [MIDNIGHTS[0], MIDNIGHTS[0] + datetime.timedelta(microseconds=500), MIDNIGHTS[1]],
        moments("2020-01-01", "2020-01-01T00:00:00.001").cast(pl.Datetime("ms")), [0, 1],
    ),
    "times of day": (
        [datetime.time(0), datetime.time(12), datetime.time(23, 59, 59)],
        pl.Series("at", [datetime.time(11, 59, 59, 999999), datetime.time(12)]), [0, 1],
    ),
    "long durations": (
        [datetime.timedelta(days=200_000, microseconds=step) for step in range(3)],
        pl.Series("at", [datetime.timedelta(days=200_000, microseconds=step) for step in (1, 0, 2)]), [1, 0, None],
    ),
}  # fmt: skip


@pytest.mark.parametrize("outside", ["drop", "null", "clamp"])
@pytest.mark.parametrize("name", CLOSE_TIMES)
def test_times_are_compared_by_their_ticks(name, outside):
    edges, values, bins = CLOSE_TIMES[name]
    domain = dpf.Domain({"at": dpf.bins("at", edges)}, outside)
    for value, expected in zip(values.to_frame().iter_slices(1), bins, strict=True):
        counts = domain.count(value)
        if expected is not None:
            assert counts[expected] == counts.sum() == 1
        elif outside != "clamp":
            assert counts[: len(edges) - 1].sum() == 0


@pytest.mark.parametrize("name", CLOSE_TIMES)
def test_a_domain_and_a_plan_find_the_same_bins_of_times(name):
    edges, values, _ = CLOSE_TIMES[name]
    domain, ledger = dpf.Domain({"at": dpf.bins("at", edges)}), dpf.Ledger(epsilon=1000)
    asked = {"by": domain.by, "keys": domain.frame(), "n": dpf.count(), "epsilon": 1000.0, "privacy_unit": "row"}
    released = dpf.plan(values.to_frame(), **asked).run(ledger)
    assert released.frame["n"].to_list() == domain.count(values.to_frame()).tolist()


@pytest.mark.parametrize("name", CLOSE_TIMES)
def test_times_are_drawn_within_their_bins(name):
    edges, _, _ = CLOSE_TIMES[name]
    domain = dpf.Domain({"at": dpf.bins("at", edges)})
    cells = np.repeat(np.arange(len(edges) - 1), 500)
    assert domain.count(domain.records(cells)).tolist() == [500] * (len(edges) - 1)
    assert domain.records(cells)["at"].n_unique() > len(edges) - 2


def test_a_column_may_have_an_empty_name():
    domain = dpf.Domain({"": 2, "b": 2})
    assert domain.records([0, 1]).columns == domain.frame().columns == ["", "b"]
    rows = pl.DataFrame({"": [0, 1] * 50, "b": [1, 0] * 50})
    made = dpf.synthesize(rows, domain, impossible=dpf.column("") == 1, epsilon=50.0, ledger=dpf.Ledger(epsilon=50))
    assert made.frame.columns == ["", "b"]
    assert made.frame[""].sum() == 0


@pytest.mark.parametrize("outside", ["drop", "clamp"])
def test_nulls_are_a_category_of_their_own(outside):
    frame = pl.DataFrame({"a": [0, 1, 7, None], "b": [0.5, float("nan"), 9.0, None], "c": ["x", "?", None, None]})
    domain = dpf.Domain({"a": 2, "b": dpf.bins("b", [0, 1]), "c": ["x"]}, outside, nulls=True)
    assert domain.shape == (3, 2, 2)
    one = {
        name: dpf.Domain({name: values}, outside, nulls=True)
        for name, values in [("a", 2), ("b", dpf.bins("b", [0, 1])), ("c", ["x"])]
    }
    assert one["a"].count(frame).tolist() == ([1, 1, 1] if outside == "drop" else [1, 2, 1])
    assert one["b"].count(frame).tolist() == ([1, 2] if outside == "drop" else [2, 2])
    assert one["c"].count(frame).tolist() == [1, 2]
    assert domain.records(np.arange(12)).null_count().row(0) == (4, 6, 6)


def test_a_schema_says_what_booleans_and_enums_hold():
    frame = pl.DataFrame({"yes": [True], "kind": ["a"], "n": [3]}, schema_overrides={"kind": pl.Enum(["b", "a"])})
    domain = dpf.Domain.from_schema(frame.lazy(), {"n": 5})
    assert domain.names == ("yes", "kind", "n")
    assert domain.count(frame)[1, 1, 3] == 1
    assert dpf.Domain.from_schema(frame, columns=["kind", "yes"], nulls=True).shape == (3, 3)
    with pytest.raises(ParameterError, match="attributes must be given for these columns, but was without \\['n'\\]"):
        dpf.Domain.from_schema(frame)
    with pytest.raises(ParameterError, match="attributes"):
        dpf.Domain.from_schema(frame, {"n": 5}, columns=["yes"])
    with pytest.raises(dpf.errors.ColumnError, match="none such"):
        dpf.Domain.from_schema(frame, columns=["none such"])


def test_a_schema_serves_without_data():
    kinds = {"yes": pl.Boolean, "kind": pl.Enum(["b", "a"]), "n": pl.Int8()}
    frame = pl.DataFrame(schema=kinds)
    for given in (frame.schema, frame.lazy().collect_schema(), kinds):
        domain = dpf.Domain.from_schema(given, {"n": 5}, nulls=["yes"])
        assert repr(domain) == "Domain(yes: 3, kind: 2, n: 5)"
        assert domain.frame(["yes"])["yes"].to_list() == [False, True, None]
        with pytest.raises(ParameterError, match="without \\['n'\\]"):
            dpf.Domain.from_schema(given)
        with pytest.raises(dpf.errors.ColumnError, match="none such"):
            dpf.Domain.from_schema(given, columns=["none such"])
        with pytest.raises(ParameterError, match="schema must be left out"):
            dpf.Domain.from_schema(given, {"n": 5}, schema={"n": pl.Int8})


@pytest.mark.parametrize("suffix", [".csv", ".ndjson", ".parquet", ".arrow"])
def test_durations_are_written(suffix, tmp_path):
    domain = dpf.Domain({"u": dpf.bins("u", [datetime.timedelta(0), datetime.timedelta(seconds=1)])})
    rows = pl.DataFrame({"u": [datetime.timedelta(milliseconds=3)] * 100})
    made = dpf.synthesize(rows, domain, epsilon=5.0, rows=7, ledger=dpf.Ledger(epsilon=5))
    path = tmp_path / f"records{suffix}"
    assert made.write(path) == 7
    if suffix in (".csv", ".ndjson"):
        lines = path.read_text().splitlines()[suffix == ".csv" :]
        assert len(lines) == 7
        assert all("PT0." in line for line in lines)
