"""Sketches of different values: hashes, privacy by exact laws, merging, estimates, and every kind of data."""

from __future__ import annotations

import datetime
import itertools
import math
import traceback
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation.sources import open_source
from dpfast.errors import BudgetExceededError, ColumnError, ParameterError
from dpfast.sketches.bitmap import LEVELS, answer_at_random, estimate_values, false_answers, places_of
from dpfast.sketches.distinct import DistinctSketch, _Sketched, merge_sketches
from dpfast.sketches.hashing import hash_values, kind_of_values, readable
from dpfast.testing import SeededRandom

WORD = 2**64 - 1
ODD = 0x9E3779B97F4A7C15


def a_ledger():
    return dpf.Ledger(epsilon=1e5)


def mixed(x):
    """The finalizer of MurmurHash3, as published (Appleby 2011), by Python's integers."""
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD & WORD
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53 & WORD
    return x ^ x >> 33


def hashed(words, kind, key):
    """The documented formula, by Python's integers."""
    h = (key + kind * ODD) & WORD
    for word in words:
        h = (mixed(h ^ word) * ODD + key) & WORD
    return mixed(h)


def words_of(text):
    data = text.encode()
    parts = [data[first : first + 8].ljust(8, b"\0") for first in range(0, len(data), 8)]
    return [*(int.from_bytes(part, "little") for part in parts), len(data)]


@pytest.mark.parametrize("key", [0, 5, 2**64 - 1])
def test_hashes_are_the_documented_ones(key):
    """They must never change: sketches of years ago are merged with those of today."""
    texts = ["", "a", "abcdefgh", "abcdefghi", "é" * 9, "a" * 12, "a" * 13, "x" * 100, "a\0", "a\0\0"]
    series = pl.Series(["before", *texts, None])
    found = hash_values(series[1:], "text", key).tolist()
    assert found[:-1] == [hashed(words_of(text), 3, key) for text in texts]
    assert len(set(found[:-1])) == len(texts)
    whole = [0, 1, -1, 2**63 - 1, -(2**63)]
    assert hash_values(pl.Series(whole), "number", key).tolist() == [hashed([x & WORD], 1, key) for x in whole]
    large = pl.Series([5, 2**63, 2**64 - 1], dtype=pl.UInt64)
    assert hash_values(large, "number", key).tolist() == [
        hashed([5], 1, key), hashed([2**63], 9, key), hashed([2**64 - 1], 9, key),
    ]  # fmt: skip
    assert hash_values(pl.Series([0.5]), "float", key).tolist() == [hashed([0x3FE0000000000000], 2, key)]


def test_equal_values_of_a_kind_have_equal_hashes():
    moment = datetime.datetime(2024, 2, 29, 12)
    alike = {
        "number": [pl.Series([7], dtype=dtype) for dtype in (pl.Int8, pl.UInt8, pl.Int64, pl.UInt64, pl.UInt32)],
        "float": [pl.Series([0.5], dtype=pl.Float32), pl.Series([0.5]), pl.Series([0.5, float("nan"), None])],
        "text": [pl.Series(["b", "a"], dtype=dtype)[1:] for dtype in (pl.String, pl.Categorical, pl.Enum(["a", "b"]))],
        "boolean": [pl.Series([True])],
        "date": [pl.Series([datetime.date(2024, 2, 29)])],
        "datetime us": [pl.Series([moment]), pl.Series([moment]).dt.replace_time_zone("UTC")],
        "nothing": [pl.Series([None])],
    }  # fmt: skip
    seen = set()
    for kind, columns in alike.items():
        found = set()
        for series in columns:
            assert kind_of_values("v", series.dtype) == kind
            read = series.to_frame("v").select(readable(pl.col("v"), kind)).to_series()
            found.add(int(hash_values(read, kind, 3)[0]))
        assert len(found) == 1, kind
        seen |= found
    assert len(seen) == len(alike)
    zeros = pl.DataFrame({"v": [0.0, -0.0]}).select(readable(pl.col("v"), "float")).to_series()
    assert len(set(hash_values(zeros, "float", 0).tolist())) == 1
    with_null = pl.Series([0.5, None], dtype=pl.Float64)
    assert hash_values(with_null, "float", 0)[0] == hash_values(with_null[:1], "float", 0)[0]


def test_the_level_is_the_number_of_zeros():
    hashes = [0, 2**64 - 1, 1 << 12, 1 << 13, 5 | 3 << 12 + 30, 7 | 1 << 12 + 31, 1 << 63]
    rest = [h >> 12 for h in hashes]
    levels = [min((r & -r).bit_length() - 1 if r else 99, LEVELS - 1) for r in rest]
    wanted = [(h & 4095) * LEVELS + level for h, level in zip(hashes, levels, strict=True)]
    assert places_of(np.array(hashes, np.uint64), 4096).tolist() == wanted


def law(bits, false):
    """Return the exact probability of every answer to some bits."""
    ones = [Fraction(1, 2) if bit else Fraction(false, 2**64) for bit in bits]
    return [
        math.prod(p if y else 1 - p for p, y in zip(ones, shown, strict=True))
        for shown in itertools.product((0, 1), repeat=len(bits))
    ]


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("values", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**5), Fraction(1, 2), Fraction(3), Fraction(20)])
def test_answers_are_as_private_as_they_are_charged(epsilon, values, neighbors):
    """Exact laws of all bits that a unit may change, others' bits among them; the bound is met to 1e-9."""
    false = false_answers(epsilon, values, neighbors)
    size = values if neighbors == "add_remove" else 2 * values
    worst = 0.0
    laws = {bits: law(bits, false) for bits in itertools.product((0, 1), repeat=size) if sum(bits) <= values}
    for after in laws:
        for before in [(0,) * size] if neighbors == "add_remove" else laws:
            ratios = [p / q for p, q in zip(laws[after], laws[before], strict=True)]
            worst = max(worst, *(abs(math.log(ratio)) for ratio in ratios))
    assert worst <= float(epsilon) * (1 + 1e-12)
    assert worst >= float(epsilon) * (1 - 1e-9)


def test_answers_are_drawn_with_their_probability():
    """Of 2**17 bits of each kind: with a fixed seed, and each within 6 standard deviations."""
    size, false = 2**17, false_answers(Fraction(1), 1, "add_remove")
    shown = answer_at_random(np.repeat([False, True], size), false, SeededRandom(3))
    for ones, p in ((shown[:size].sum(), false / 2**64), (shown[size:].sum(), 0.5)):
        assert abs(ones - size * p) < 6 * math.sqrt(size * p * (1 - p))


def sketched(values, seed, *, epsilon=1, buckets=1024, key=0):
    """Return a sketch whose answers have a fixed seed."""
    bits = np.zeros(buckets * LEVELS, np.bool_)
    bits[places_of(hash_values(pl.Series(values, dtype=pl.Int64), "number", key), buckets)] = True
    false = false_answers(Fraction(epsilon), 1, "add_remove")
    shown = answer_at_random(bits, false, SeededRandom(seed))
    return DistinctSketch("number", buckets, key, float(1 - Fraction(2 * false, 2**64)), (f"{seed}",), shown)


def test_merged_answers_have_the_law_of_one_sketch():
    """All four cases of two bits, exactly: either set is a fair coin, and contrasts multiply."""
    one, other = (Fraction(false_answers(Fraction(e), 1, "add_remove"), 2**64) for e in (1, 3))
    for first, second in itertools.product((0, 1), repeat=2):
        p, q = (Fraction(1, 2) if bit else false for bit, false in ((first, one), (second, other)))
        shown = p * (1 - q) + q * (1 - p)
        assert shown == (Fraction(1, 2) if first or second else (1 - (1 - 2 * one) * (1 - 2 * other)) / 2)
    merged = sketched([], 1).merge(sketched([], 2, epsilon=3))
    assert merged.contrast == pytest.approx(float((1 - 2 * one) * (1 - 2 * other)))


@pytest.mark.parametrize("number", [0, 30, 1000, 50_000])
@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_estimates_and_intervals(number, epsilon):
    """60 runs with fixed seeds and keys, each of which misses with a probability of about 0.05.

    More than 15 misses would have a probability of 1e-7; with these seeds there are fewer, always.
    """
    errors, misses = [], 0
    for seed in range(60):
        sketch = sketched(range(number), seed, epsilon=epsilon, key=seed)
        estimate, low, high = estimate_values(sketch._ones, 1024, sketch.contrast, 0.05)
        assert 0 <= low <= estimate <= high
        errors.append(estimate - number)
        misses += not low <= number <= high
    assert (sketch.estimate(), sketch.interval()) == (estimate, (low, high))
    assert misses <= 15
    if number > 100:
        # A quarter of an interval is about one deviation; the mean of 60 errors is within 5 of its own of 0.
        spread = math.sqrt(sum(error**2 for error in errors) / 60)
        assert spread < (high - low) / 2
        assert abs(sum(errors) / 60) < 5 * spread / math.sqrt(60) + 0.01 * number


def test_merging_counts_shared_values_once():
    """Fixed seeds: three places, half of whose values are others' too."""
    parts = [sketched(range(first, first + 40_000), first + 1, epsilon=3) for first in (0, 20_000, 40_000)]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    low, high = merged.interval(miss=1e-6)
    assert low < 80_000 < high < 120_000
    again = merge_sketches(pl.concat([part.to_frame() for part in parts]))
    assert (again.bits == merged.bits).all()
    assert (again.contrast, again.sources) == (merged.contrast, merged.sources)


def test_sketches_travel_as_arrow(tmp_path):
    sketch = sketched(range(500), 4)
    sketch.to_frame().write_ipc(tmp_path / "sketch.arrow")
    read = merge_sketches(pl.read_ipc(tmp_path / "sketch.arrow"))
    assert (read.bits == sketch.bits).all()
    assert repr(read) == repr(sketch)
    assert sketch.to_frame().to_arrow().num_rows == 1


@pytest.mark.parametrize(
    "change",
    [{"kind": "none such"}, {"buckets": 3}, {"buckets": 2048}, {"contrast": 1.5}, {"contrast": 0.0}, {"bits": b""},
     {"sources": []}, {"key": None}, {"kind": None}],
)  # fmt: skip
def test_what_is_no_sketch_is_refused(change):
    frame = sketched([], 1).to_frame()
    wrong = frame.with_columns(**{name: pl.lit(value, dtype=frame.schema[name]) for name, value in change.items()})
    with pytest.raises(ParameterError, match="frame must be of rows that"):
        merge_sketches(wrong)
    for other in (frame.clear(), frame.drop("key"), pl.DataFrame()):
        with pytest.raises(ParameterError, match="frame must be made by"):
            merge_sketches(other)


def test_what_cannot_be_merged_is_refused():
    one = sketched([1], 1)
    with pytest.raises(ParameterError, match="made of other releases"):
        one.merge(one.merge(sketched([2], 2)))
    for other in (sketched([1], 2, buckets=512), sketched([1], 2, key=1)):
        with pytest.raises(ParameterError, match="other must be a sketch whose"):
            one.merge(other)


FRAME = pl.DataFrame(
    {"v": [*range(3000)] * 2, "who": [number // 3 for number in range(6000)], "f": [0.5, float("nan"), None] * 2000}
)
#: What values may be.
COLUMNS = {
    "v": pl.col("v"), "text": pl.col("v").cast(pl.String), "c": pl.col("v").cast(pl.String).cast(pl.Categorical),
    "f": pl.col("f"), "d": pl.col("v").cast(pl.Date), "m": pl.col("v").cast(pl.Datetime("ms")),
    "b": pl.col("v") > 5, "z": pl.lit(None), "null": pl.when(pl.col("v") > 9).then("v"),
}  # fmt: skip


@pytest.mark.parametrize("source", ["DataFrame", "LazyFrame", "Parquet", "pyarrow", "pandas", "chunks"])
@pytest.mark.parametrize("name", COLUMNS)
def test_every_source_sets_the_same_bits(source, name, tmp_path):
    frame = FRAME.select(v=COLUMNS[name])
    kind = kind_of_values("v", frame.schema["v"])
    read = frame.select(value=readable(pl.col("v"), kind)).to_series().drop_nulls()
    wanted = np.zeros(1024 * LEVELS, np.bool_)
    wanted[places_of(hash_values(read, kind, 5), 1024)] = True
    data = {
        "DataFrame": lambda: frame,
        "LazyFrame": lambda: frame.lazy(),
        "Parquet": lambda: (frame.write_parquet(tmp_path / "v.parquet"), tmp_path / "v.parquet")[1],
        "pyarrow": frame.to_arrow,
        "pandas": frame.to_pandas,
        "chunks": lambda: pl.concat([frame[:7], frame[7:], frame[:0]], rechunk=False),
    }
    if source == "pandas" and name not in ("v", "f", "m", "b"):
        pytest.skip("pandas has objects there")
    opened = open_source(data[source]())
    schema = opened.schema()
    kind = kind_of_values("v", schema["v"])
    bits = _Sketched(opened, readable(pl.col("v"), kind).alias("value"), kind, 5, 1024).rows()
    if kind == kind_of_values("v", frame.schema["v"]):
        assert (bits == wanted).all()
    assert bits.sum() > 0 or name == "z"


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("lazy", [False, True])
def test_a_unit_sets_so_many_bits_at_most(most, lazy):
    """Those of values that it has, whatever the others have; rows of no unit set none."""
    frame = pl.DataFrame({"u": [i % 7 for i in range(40)] + [None], "v": [*range(40), 99]})
    source = frame.lazy() if lazy else frame

    def bits_of(data):
        rows = _Sketched(open_source(data), pl.col("v").alias("value"), "number", 0, 1024)
        return rows.units(pl.col("u").alias("unit"), most)

    for unit in range(7):
        own = bits_of(source.filter(pl.col("u") == unit))
        assert own.sum() == min(most, (frame["u"] == unit).sum())
        values = frame.filter(pl.col("u") == unit)["v"]
        assert set(np.flatnonzero(own)) <= set(places_of(hash_values(values, "number", 0), 1024).tolist())
    # 40 values of 7 units, no two of one bit in these.
    assert bits_of(source).sum() == 7 * most


def test_the_charge_and_refusals():
    frame = FRAME.with_columns(l=pl.lit([[1]]).first())
    ledger = dpf.Ledger(epsilon=1.0)
    sketch = dpf.distinct_sketch(frame, "v", epsilon=0.75, privacy_unit="who", max_values=3, ledger=ledger)
    assert ledger.remaining.epsilon == 0.25
    assert sketch.contrast == pytest.approx(1 - math.exp(-0.25))
    asked = {"epsilon": 0.5, "ledger": ledger}
    with pytest.raises(BudgetExceededError):
        dpf.distinct_sketch(frame, "v", privacy_unit="who", max_values=1, **asked)
    for argument, more in {
        "max_values": {"privacy_unit": "who"},
        "privacy_unit": {"privacy_unit": "row"},
        "buckets": {"privacy_unit": "who", "max_values": 1, "buckets": 1000},
        "epsilon": {"privacy_unit": "who", "max_values": 10**6},
    }.items():
        data = frame.rename({"f": "row"}) if argument == "privacy_unit" else frame
        with pytest.raises(ParameterError, match=f"^{argument} "):
            dpf.distinct_sketch(data, "v", **asked, **more)
    for column, unit in (("l", "who"), ("none", "who"), ("v", "none")):
        with pytest.raises(ColumnError):
            dpf.distinct_sketch(frame, column, privacy_unit=unit, max_values=1, **asked)
    assert ledger.remaining.epsilon == 0.25


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("unit", [{"privacy_unit": "row"}, {"privacy_unit": "who", "max_values": 2}])
def test_next_to_no_data(rows, unit):
    """Twelve intervals in all begin above 0 with a probability of 5e-12 each: the normal tail at 6.8 deviations."""
    for data in (FRAME[:rows], FRAME[:rows].lazy(), FRAME[:rows].with_columns(who=None)):
        sketch = dpf.distinct_sketch(data, "v", epsilon=1.0, ledger=a_ledger(), **unit)
        assert sketch.bits.shape == (4096 * LEVELS,)
        assert estimate_values(sketch._ones, sketch.buckets, sketch.contrast, 1e-11)[1] == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("epsilon", [30.0, 44.0, 1000.0])
@pytest.mark.parametrize("values", [0, 1, 3000])
def test_a_budget_that_hides_nearly_nothing_is_no_division_by_zero(epsilon, values):
    """Fails by chance with probability at most 1e-6: an interval misses, with miss=1e-7, or a bit is 1 all the same."""
    frame = pl.DataFrame({"x": pl.Series(range(values), dtype=pl.Int64)})
    ledger = dpf.Ledger(epsilon=1e4)
    sketch = dpf.distinct_sketch(frame, "x", epsilon=epsilon, privacy_unit="row", ledger=ledger)
    low, high = sketch.interval(miss=1e-7)
    assert low <= values <= high
    assert abs(sketch.estimate() - values) < 5 + 0.2 * values


@pytest.mark.parametrize("fails", ["answer_at_random", "SystemRandom", "places_of"])
@pytest.mark.parametrize("unit", ["row", "who"])
def test_no_frame_of_an_error_holds_exact_bits(monkeypatch, fails, unit):
    """A user who interrupts it, say: a log of the frames has no bit that was not answered at random."""

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"dpfast.sketches.distinct.{fails}", fail)
    data = pl.DataFrame({"who": range(500), "value": range(500)})
    ledger = dpf.Ledger(epsilon=1)
    with pytest.raises(KeyboardInterrupt) as raised:
        dpf.distinct_sketch(
            data, "value", epsilon=1.0, privacy_unit=unit, max_values=None if unit == "row" else 1, ledger=ledger
        )
    assert ledger.remaining.epsilon == 0
    frames = [frame for frame, _ in traceback.walk_tb(raised.value.__traceback__) if frame.f_code is not fail.__code__]
    held = [value for frame in frames[1:] for value in frame.f_locals.values()]
    assert not [value for value in held if isinstance(value, np.ndarray)]
