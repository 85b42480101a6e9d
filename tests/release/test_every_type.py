"""Values, keys and privacy units of every dtype, by every way that data come: what works, and what is refused how.

One table: types x what is asked x sources. Where an answer comes, it is the exact one (noise is left out), in the
dtype that the table says; where a source refuses, it does so in the words that the table has, before the charge.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import cache
from typing import NamedTuple

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.aggregation import memory
from dpfast.errors import DpfastError
from dpfast.integrations.sql import engine

ROME, NOON = "Europe/Rome", dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC)
LONG = "a key of more than twelve bytes"
DAYS = [dt.date(2020, 1, 1), dt.date(2020, 1, 2), dt.date(9999, 12, 31)]
MOMENTS = [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 6), dt.datetime(9999, 12, 30)]
DURATIONS = [dt.timedelta(hours=1), dt.timedelta(hours=3), dt.timedelta(days=99_999)]
NUMBERS = [1, 2, 100]


class Type(NamedTuple):
    """A dtype with three values, ascending; what sum, mean and quantile come back as, None where they are refused."""

    dtype: pl.DataType
    values: list
    summed: pl.DataType | None = None
    mean: pl.DataType | None = None
    drawn: pl.DataType | None = None


def of(dtype, values=NUMBERS, summed=None, mean=None, drawn=None):
    return Type(pl.Series(dtype=dtype).dtype, values, summed, mean, drawn)


def whole(dtype, values=NUMBERS):
    return of(dtype, values, pl.Int64(), pl.Float64(), pl.Int64())


def decimal(digits, scale, values):
    kept = pl.Decimal(38, scale)
    return of(pl.Decimal(digits, scale), list(map(Decimal, values)), kept, pl.Float64(), kept)


TYPES = {
    **{f"Int{bits}": whole(getattr(pl, f"Int{bits}")) for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": whole(getattr(pl, f"UInt{bits}"), [1, 2, 2**bits - 1]) for bits in (8, 16, 32, 64)},
    "Int128": whole(pl.Int128, [1, 2, 2**127 - 1]),
    "UInt128": whole(pl.UInt128, [1, 2, 2**128 - 1]),
    **{name: of(getattr(pl, name), [0.5, 1.5, 3.0], *[pl.Float64()] * 3) for name in ("Float32", "Float64")},
    "Boolean": of(pl.Boolean, [False, True]),
    "decimals of 9 digits": decimal(9, 2, ["-3.00", "1.10", "1234567.89"]),
    "decimals of 18 digits": decimal(18, 6, ["-3", "1.000001", "999999999999.999999"]),
    "decimals of 38 digits": decimal(38, 10, ["1.1", "2.2500000001", "9999999999999999999999999999.9999999999"]),
    "Date": of(pl.Date, DAYS, None, pl.Datetime("us"), pl.Date()),
    **{
        f"Datetime in {unit}": of(pl.Datetime(unit), values, None, pl.Datetime(unit), pl.Datetime(unit))
        for unit, values in (("ms", MOMENTS), ("us", MOMENTS), ("ns", [*MOMENTS[:2], dt.datetime(2262, 4, 11)]))
    },
    "Datetime of a zone": of(
        pl.Datetime("us", ROME),
        [NOON, NOON + dt.timedelta(hours=6), NOON.replace(year=9998)],
        *(None, pl.Datetime("us", ROME), pl.Datetime("us", ROME)),
    ),
    **{
        f"Duration in {unit}": of(pl.Duration(unit), DURATIONS, *[pl.Duration(unit)] * 3) for unit in ("ms", "us", "ns")
    },
    "Time": of(pl.Time, [dt.time(1), dt.time(3), dt.time(23, 59, 59, 999_999)], None, pl.Time(), pl.Time()),
    "String": of(pl.String, ["a", "bb", LONG]),
    "Binary": of(pl.Binary, [b"a", b"\xff\0", LONG.encode()]),
    "Categorical": of(pl.Categorical, ["a", "bb", LONG]),
    "Enum": of(pl.Enum(["a", "bb", LONG]), ["a", "bb", LONG]),
    "List": of(pl.List(pl.Int8), [[1], [2], [3]]),
    "Struct": of(pl.Struct({"a": pl.Int8}), [{"a": 1}, {"a": 2}, {"a": 3}]),
}
if hasattr(pl, "Float16"):
    TYPES["Float16"] = of(pl.Float16, [0.5, 1.5, 3.0], *[pl.Float64()] * 3)

FLOATS = {"Float16", "Float32", "Float64"}
NESTED = {"List", "Struct"}
TEXTS = {"String", "Binary", "Categorical", "Enum"}
WIDE = {"Int128", "UInt128"}

ASKED = [
    *("count", "sum", "mean", "quantile", "maximum", "mode", "top k", "public keys", "private keys", "unit"),
    *("variance", "std", "covariance", "histogram", "cdf", "limits", "equal", "distinct"),
]
#: So often is each value there.
TIMES = (40, 50, 30)
#: What is said where a column has no values that candidates could be.
NO_CANDIDATES = "the column 'x' of dtype .* cannot be compared with candidates of dtype Int64"

#: What a way of data does not take, with the words of its error; None where the library itself cannot hold it.
REFUSED: dict[str, dict[str, str | None]] = {
    "CSV": {
        **dict.fromkeys(("List", "Struct", "Binary"), None),
        **{f"Duration in {unit}": "not read from CSV.*numbers of seconds" for unit in ("ms", "us", "ns")},
    },
    "Arrow table": dict.fromkeys(WIDE, None),
    "Arrow stream": dict.fromkeys(WIDE, None),
    # pandas has structs in columns of Arrow from 2.1 on.
    "pandas": dict.fromkeys({*WIDE, *({"Struct"} if pd.__version__ < "2.1" else ())}, None),
    "DuckDB rows": {
        **dict.fromkeys([*WIDE, "Float16"], None),
        **{f"Duration in {unit}": "of type INTERVAL cannot be used: cast it" for unit in ("ms", "us", "ns")},
        "List": "cannot be used: cast it",
        "Struct": "cannot be used: cast it",
    },
    "DuckDB": {
        **dict.fromkeys([*WIDE, "Float16"], None),
        **dict.fromkeys(
            [
                *(f"Duration in {unit}" for unit in ("ms", "us", "ns")),
                *("Datetime in ms", "Datetime in ns", "Time", "Binary", "decimals of 38 digits", "List", "Struct"),
            ],
            "cast|holds no times|compare it with|computes by adding up|cannot (be compared|bin|compare|multiply|sum)",
        ),
    },
}


def frame_of(kind):
    dtype, values, *_ = TYPES[kind]
    rows = [value for value, times in zip(values, TIMES, strict=False) for _ in range(times)]
    # Neighbouring rows differ, and nulls are among them.
    order = sorted(range(len(rows)), key=lambda place: place * 7919 % len(rows))
    column = pl.Series([*(rows[place] for place in order), None, None], dtype=dtype)
    return pl.DataFrame({"x": column, "u": pl.Series(range(len(column)))})


@cache
def database():
    """Return one database for all tests: opening one takes longer than most questions."""
    return duckdb.connect()


@pytest.fixture(scope="module", autouse=True)
def checked_once():
    """Let the database be asked for its figures of public constants once: they know of no type and no question."""
    check, checked = engine.check_figures, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "check_figures", lambda *asked: checked or checked.append(check(*asked)))
        yield


def source_of(frame, way, folder):
    """Return a frame as data, and what a plan is told of it."""
    if way == "DataFrame":
        return frame, {}
    if way == "slices":
        return pl.concat([frame[:7], frame[7:9], frame[9:]], rechunk=False), {}
    if way == "LazyFrame":
        return frame.lazy(), {}
    if way == "Parquet":
        frame.write_parquet(folder / "data.parquet")
        return folder / "data.parquet", {}
    if way == "IPC":
        frame.write_ipc(folder / "data.arrow")
        return folder / "data.arrow", {}
    if way == "CSV":
        held = frame.with_columns(pl.col(pl.Duration).cast(pl.Int64)) if frame["x"].dtype == pl.Duration else frame
        held.write_csv(folder / "data.csv")
        return folder / "data.csv", {"schema": dict(frame.schema)}
    if way == "pandas":
        return frame.to_pandas(use_pyarrow_extension_array=True), {}
    held = frame.to_arrow()
    if way == "Arrow table":
        return held, {}
    if way == "Arrow stream":
        return pa.RecordBatchReader.from_batches(held.schema, held.to_batches(max_chunksize=50)), {}
    database().execute("CREATE OR REPLACE TABLE data AS SELECT * FROM held")
    return dpf.sql(database(), "data"), {"engine": "sql" if way == "DuckDB" else "rows"}


WAYS = [
    *("DataFrame", "slices", "LazyFrame", "Parquet", "IPC", "CSV"),
    *("pandas", "Arrow table", "Arrow stream", "DuckDB rows", "DuckDB"),
]

#: Numbers that are read alike come by fewer ways.
FEW = ["DataFrame", "Parquet", "Arrow stream", "DuckDB"]
PLAIN = {*(f"{sign}{bits}" for sign in ("Int", "UInt") for bits in (8, 16, 32)), "Float32"}


def asked_of(kind, what):
    """Return what a plan is asked."""
    dtype, values, *_ = TYPES[kind]
    low, high = values[:2]
    of_rows = {"n": dpf.count()}
    if what == "count":
        return {"q": dpf.count("x")}
    bounds = (low, high) if kind not in TEXTS | NESTED | {"Boolean"} else (0, 1)
    if what in ("sum", "mean", "quantile", "maximum", "std"):
        ask = {
            "sum": dpf.sum,
            "mean": dpf.mean,
            "std": dpf.std,
            "quantile": lambda name, bounds: dpf.quantile(name, 0.5, bounds=bounds),
            "maximum": dpf.maximum,
        }
        return {"q": ask[what]("x", bounds=bounds)}
    plain = (0, 1) if dtype.is_temporal() else bounds
    if what == "variance":
        return {"q": dpf.variance("x", bounds=plain)}
    if what == "covariance":
        return {"q": dpf.covariance("x", "u", bounds=plain, other_bounds=(0, 128))}
    if what in ("histogram", "cdf"):
        edges = bounds if dtype.is_temporal() else tuple(map(float, plain))
        return {"q": dpf.histogram("x", edges) if what == "histogram" else dpf.cdf("x", edges)}
    if what in ("limits", "equal"):
        less, more = (1, 2) if kind in NESTED else (low, high)
        return {"q": dpf.proportion("x", above=less) if what == "limits" else dpf.proportion("x", equal=more)}
    if what == "distinct":
        return {"q": dpf.count_distinct("x")}
    if what in ("mode", "top k"):
        candidates = [1, 2] if kind in FLOATS | NESTED else [low, high]
        ask_for = dpf.mode("x", candidates=candidates) if what == "mode" else dpf.top_k("x", 2, candidates=candidates)
        return {"q": ask_for}
    if what == "unit":
        return {"privacy_unit": "x", "max_groups": 1, "max_rows_per_group": 7, **of_rows}
    if what == "public keys":
        return {"by": "x", "keys": pl.DataFrame({"x": pl.Series([high, None, low], dtype=dtype)}), **of_rows}
    return {"by": "x", "delta": 0.5, "key_selection": "optimal", **of_rows}


def expected_of(kind, what, way):
    """Return the words of a refusal, or what the release has: the dtype and the values."""
    _, values, summed, mean, drawn = TYPES[kind]
    high = values[1]
    if way in REFUSED and kind in REFUSED[way]:
        return REFUSED[way][kind]
    if way == "DuckDB" and what in ("quantile", "maximum", "mode", "top k", "distinct"):
        return "computes by adding up rows"
    if what == "count":
        return pl.Int64(), [120 if len(values) > 2 else 90]
    if what in ("variance", "std", "covariance", "histogram", "cdf", "limits", "equal", "distinct", "top k"):
        return expected_of_more(kind, what)
    if what in ("sum", "mean", "quantile", "maximum"):
        shown = {"sum": summed, "mean": mean, "quantile": drawn, "maximum": drawn}[what]
        if kind == "Boolean":
            return {
                "sum": (pl.Int64(), [50]),
                "mean": (pl.Float64(), [50 / 90]),
                "quantile": (pl.Int64(), [1]),
                "maximum": (pl.Int64(), [1]),
            }[what]
        if shown is None:
            return "cannot sum the column 'x' of dtype|cannot draw quantiles of the column 'x'|bounds must be two"
        if way.startswith("DuckDB") and kind == "Datetime of a zone":
            shown = pl.Datetime("us", "Etc/UTC")
        return shown, [total_of(kind, what)]
    if what == "mode":
        return NO_CANDIDATES if kind in FLOATS | NESTED else (None, [high])
    if kind in FLOATS | NESTED:
        return "cannot be a key|cannot name privacy units"
    if what == "unit":
        return pl.Int64(), [7 * len(values)]
    if what == "public keys":
        return pl.Int64(), [50, 2, 40]
    return pl.Int64(), None


def expected_of_more(kind, what):
    """Return the same of what is answered from more than one figure, or from many."""
    dtype, values, *_ = TYPES[kind]
    low, high = values[:2]
    times = TIMES[: len(values)]
    if what == "distinct":
        return "cannot tell the values" if kind in NESTED else (pl.Int64(), [len(values)])
    if what == "top k":
        return NO_CANDIDATES if kind in FLOATS | NESTED else (None, [[high, low]])
    if what == "equal":
        return "cannot be compared|cannot compare" if kind in NESTED else (pl.Float64(), [times[1] / sum(times)])
    if what == "limits":
        if kind in NESTED | {"Boolean"}:
            return "cannot be compared|cannot compare|of dtype Boolean has no order"
        return pl.Float64(), [1 - times[0] / sum(times)]
    if what in ("histogram", "cdf"):
        if kind in TEXTS | NESTED:
            return "cannot bin the column 'x'"
        shown = [times[0]] if what == "histogram" else [times[0] / sum(times), sum(times[:2]) / sum(times)]
        return pl.List(pl.Int64() if what == "histogram" else pl.Float64()), [shown]
    if kind in TEXTS | NESTED or (dtype.is_temporal() and what != "std"):
        return "cannot sum the column 'x'|cannot multiply values of the column 'x'"
    rows, first = sum(times), times[0]
    # Of two values, of which one is first times there.
    spread = first * (rows - first) / rows / (rows - 1)
    if what == "std":
        unit = getattr(dtype, "time_unit", "ns" if dtype == pl.Time else "us")
        shown = pl.Duration(unit) if dtype.is_temporal() else pl.Float64()
        return shown, [distance_of(low, high) * spread**0.5]
    if what == "variance":
        return pl.Float64(), [distance_of(low, high) ** 2 * spread]
    frame = frame_of(kind).filter(pl.col("x").is_not_null())
    is_high = [value != low for value in frame["x"]]
    covariance = frame.select(pl.cov(pl.Series(is_high).cast(pl.Float64), pl.col("u").cast(pl.Float64))).item()
    return pl.Float64(), [covariance * distance_of(low, high)]


def distance_of(low, high):
    """Return the difference of two values: a duration of times, else a float."""
    if isinstance(low, dt.time):
        return dt.timedelta(hours=high.hour - low.hour)
    return high - low if isinstance(low, (dt.date, dt.timedelta)) else float(high) - float(low)


def total_of(kind, what):
    """Return the exact answer, by arithmetic of Python's own."""
    low, high = TYPES[kind].values[:2]
    above = sum(TIMES[1:])
    if what in ("quantile", "maximum"):
        return high
    if what == "sum":
        return low * TIMES[0] + high * above
    if isinstance(low, dt.time):
        return dt.time(2, 20)
    if type(low) is dt.date:
        return dt.datetime(2020, 1, 1, 16)
    if isinstance(low, (dt.datetime, dt.timedelta)):
        return low + (high - low) * above / sum(TIMES)
    return (float(low) * TIMES[0] + float(high) * above) / sum(TIMES)


@pytest.fixture
def room(monkeypatch):
    """Let no row stay in memory where it may be spilled."""
    monkeypatch.setattr(memory, "room_for_rows", lambda: 1000)


def answer_of(data, told, asked):
    """Return the released frame; an error must come before the charge."""
    ledger = dpf.Ledger(epsilon=1e6, delta=0.9)
    try:
        return dpf.release(data, ledger=ledger, epsilon=1e4, **{"privacy_unit": "row", **asked, **told}).frame
    except DpfastError as error:
        if ledger.spent.epsilon or "\n" in str(error):
            raise AssertionError(str(error)) from error
        raise


def check(data, told, kind, what, expected, asked):
    if isinstance(expected, str):
        with pytest.raises(DpfastError, match=expected):
            answer_of(data, told, asked)
        return
    frame = answer_of(data, told, asked)
    dtype, values = expected
    name = "n" if "n" in frame.columns else "q"
    assert dtype is None or frame.schema[name] == dtype
    if values is not None:
        assert list(map(about, frame[name])) == list(map(about, values))
        return
    held, times = zip(*sorted(zip(TYPES[kind].values, TIMES, strict=False)), strict=True)
    assert frame["x"].to_list()[-len(held) :] == list(held)
    assert frame["n"].to_list()[-len(held) :] == list(times)


def about(value):
    """Return a value, times to the nearest second: steps of sums are wider than microseconds, and means are floats."""
    if isinstance(value, dt.datetime):
        moment = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
        return round((moment - dt.datetime(1970, 1, 1)).total_seconds())
    if isinstance(value, dt.timedelta):
        return round(value.total_seconds() / 10)
    if isinstance(value, dt.time):
        return round(value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6)
    if isinstance(value, (list, pl.Series)):
        return list(map(about, value))
    return round(float(value), 3) if isinstance(value, (Decimal, float)) else value


def ways_of(kind, what):
    """Return the ways that a type meets a question by.

    Rows that are aggregated here come by all ways as the same Arrow columns: what reads a type knows of no question,
    and what answers a question of no way. So each pair of the three meets, and all three together in the long test; a
    frame and a database that answers by itself meet everything.
    """
    if kind in PLAIN:
        return FEW
    turn = (list(TYPES).index(kind) + ASKED.index(what)) % 3
    return ["DataFrame", *WAYS[1:-1][turn::3], "DuckDB"]


def check_ways(kind, what, ways, folder):
    for way in ways:
        expected = expected_of(kind, what, way)
        if expected is None:
            continue
        data, told = source_of(frame_of(kind), way, folder)
        check(data, told, kind, what, expected, asked_of(kind, what))


@pytest.fixture
def large_keys(monkeypatch):
    """Show every key that 30 units hold."""
    monkeypatch.setattr("dpfast.releases.drawing.select_keys", lambda units, table, source: units >= 30)


@pytest.mark.usefixtures("without_noise", "large_keys")
@pytest.mark.parametrize("what", ASKED)
@pytest.mark.parametrize("kind", TYPES)
def test_every_way_gives_the_same(kind, what, tmp_path):
    """Every value counts in full, whatever the way."""
    check_ways(kind, what, ways_of(kind, what), tmp_path)


def test_every_type_and_every_question_come_by_every_way():
    """What is left out of the product is only that all three meet."""
    met = [(kind, what, way) for kind in TYPES.keys() - PLAIN for what in ASKED for way in ways_of(kind, what)]
    assert {(kind, way) for kind, _, way in met} == {(kind, way) for kind in TYPES.keys() - PLAIN for way in WAYS}
    assert {(what, way) for _, what, way in met} == {(what, way) for what in ASKED for way in WAYS}


@pytest.mark.long
@pytest.mark.usefixtures("without_noise", "large_keys")
@pytest.mark.parametrize("kind", TYPES)
def test_every_question_by_every_way(kind, tmp_path):
    for what in ASKED:
        check_ways(kind, what, WAYS, tmp_path)


@pytest.mark.usefixtures("without_noise", "large_keys", "room")
@pytest.mark.parametrize("kind", sorted(TYPES.keys() - FLOATS - NESTED))
def test_rows_that_are_spilled(kind, tmp_path):
    """Units, keys and values of every type pass through the disk; streams wait there for their second reading.

    Rows from the disk are what they were, whatever is asked of them: each way has half of the questions of a type.
    """
    frame = frame_of(kind)
    unit = {"privacy_unit": "u", "max_groups": 1, "max_rows_per_group": 1}
    turn = sorted(TYPES).index(kind) % 2
    asked_by = (("count", "mean", "public keys"), ("sum", "mode", "private keys"))
    for way, questions in zip(("LazyFrame", "Arrow stream"), asked_by[:: 1 if turn else -1], strict=True):
        if kind in REFUSED.get(way, {}):
            continue
        for what in questions:
            data, told = source_of(frame, way, tmp_path)
            asked = asked_of(kind, what) | unit
            check(data, told, kind, what, expected_of(kind, what, way), asked)
        data, told = source_of(frame, way, tmp_path)
        check(data, told, kind, "unit", expected_of(kind, "unit", way), asked_of(kind, "unit"))


KEYS = {
    "Binary": (pl.Binary, [b"a", b"\xff" * 20]),
    "decimals": (pl.Decimal(38, 3), [Decimal(-2), Decimal("1.5")]),
    "Time": (pl.Time, [dt.time(1), dt.time(2)]),
    "Duration": (pl.Duration("ns"), [dt.timedelta(1), dt.timedelta(2)]),
    "Int128": (pl.Int128, [1, 2**100]),
    "Datetime of a zone": (pl.Datetime("ms", "Asia/Tokyo"), [NOON, NOON.replace(year=9998)]),
}


@pytest.mark.parametrize("rule", ["policy", "weighted", "iterated", "threshold", "optimal"])
@pytest.mark.parametrize("kind", KEYS)
def test_every_rule_selects_keys_of_every_type(kind, rule):
    """Each key has 500 units or more, of which a rule needs 7 (`KeyShare.needed`).

    A policy's sums end 8 deviations above its threshold, so that one of the 180 keys is missed with a probability of at
    most 180 * 6.3e-16, below 1.2e-13; the other rules' sums lie further above theirs.
    """
    dtype, keys = KEYS[kind]
    frame = pl.DataFrame(
        {
            "k": pl.Series([*keys * 2000, *[None] * 500], dtype=dtype),
            "h": ["x"] * 4500,
            "u": [row % 1500 for row in range(4500)],
        }
    )
    unit = {"privacy_unit": "u", "max_groups": 3, "max_rows_per_group": 2}
    for data in (frame, frame.lazy()):
        ledger = dpf.Ledger(epsilon=20.0, delta=1e-5)
        shown = dpf.release(
            data, ["k", "h"], ledger=ledger, epsilon=20.0, delta=1e-5, key_selection=rule, n=dpf.count(), **unit
        ).frame
        assert shown.schema["k"] == frame.schema["k"]
        assert shown["k"].to_list() == [None, *keys]


def test_limits_that_are_chosen_serve_decimals_and_times():
    """Noise is Gaussian; its scales, which the release tells, are less than a twentieth of what is allowed.

    So false failures of the noise alone are below 2 * 3 * 2.8e-89.
    """
    rows = 6000
    frame = pl.DataFrame(
        {
            "u": [row % 1500 for row in range(rows)],
            "p": pl.Series([Decimal("1.25")] * rows, dtype=pl.Decimal(9, 2)),
            "t": [MOMENTS[0]] * rows,
            "d": [dt.timedelta(hours=3)] * rows,
        }
    )
    whole_day = (MOMENTS[0] - dt.timedelta(days=1), MOMENTS[0] + dt.timedelta(days=1))
    shown = dpf.release(
        frame,
        ledger=dpf.Ledger(epsilon=50.0, delta=1e-6),
        privacy_unit="u",
        max_groups="auto",
        max_rows_per_group="auto",
        epsilon=50.0,
        delta=1e-6,
        s=dpf.sum("p", bounds=(0, 9)),
        t=dpf.mean("t", bounds=whole_day),
        d=dpf.sum("d", bounds=(dt.timedelta(0), dt.timedelta(days=1))),
    ).frame
    for name, exact, allowed in (
        ("s", Decimal(7500), 600),
        ("t", MOMENTS[0], dt.timedelta(hours=5)),
        ("d", rows * dt.timedelta(hours=3), rows * dt.timedelta(minutes=30)),
    ):
        assert shown[f"{name}_scale"].item() * 20 < allowed
        assert abs(shown[name].item() - exact) < allowed
