"""Outputs of every kind: what tells two inputs apart is found wherever it stands, and what is equal passes."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import math
import random
from collections import namedtuple
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError


@dataclasses.dataclass(frozen=True)
class Answer:
    count: int
    label: str


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


Point = namedtuple("Point", "x y")


class Opaque:
    pass


def raising(x):
    if x:
        raise ValueError(f"row {x}\nis wrong")
    return 5


#: (name, what is returned for 0 or 1): what is returned for 0 differs from what is returned for 1.
TELLING = {
    "a number": lambda x: x,
    "a float": lambda x: 0.1 * x,
    "a large number": lambda x: 10**400 + x,
    "True": lambda x: bool(x),
    "NumPy's True": lambda x: np.bool_(x),
    "a float of NumPy": lambda x: np.float32(x),
    "a type of number": lambda x: 1.0 if x else 1,
    "a fraction": lambda x: Fraction(1 + x, 3),
    "a decimal": lambda x: Decimal("1.1") + x,
    "a decimal's digits": lambda x: Decimal("1.10") if x else Decimal("1.1"),
    "a decimal that is no number": lambda x: Decimal("sNaN") if x else Decimal("NaN"),
    "a complex number": lambda x: 1 + 1j * x,
    "text": lambda x: "ab"[x],
    "bytes": lambda x: b"ab"[x : x + 1],
    "None": lambda x: None if x else 0,
    "NaN": lambda x: math.nan if x else 0.5,
    "infinity": lambda x: math.inf if x else 0.5,
    "a negative zero": lambda x: -0.0 if x else 0.0,
    "a member": lambda x: Colour.RED if x else Colour.BLUE,
    "a date": lambda x: datetime.date(2020, 1, 1 + x),
    "a moment": lambda x: np.datetime64(f"2020-01-0{1 + x}"),
    "a duration": lambda x: datetime.timedelta(days=x),
    "an error": raising,
    "a list": lambda x: [1, 2, x],
    "a length": lambda x: [1] * (1 + x),
    "an empty list": lambda x: [] if x else [0],
    "a tuple in a list": lambda x: [(0, "a"), (x, "b")],
    "a key": lambda x: {"a": 1, "ab"[x]: 2},
    "a value": lambda x: {"a": 1, "b": x},
    "the order of keys": lambda x: {"a": 1, "b": 1} if x else {"b": 1, "a": 1},
    "a set": lambda x: {"a", "b", "abc"[1 + x]},
    "an array": lambda x: np.array([1, x, 3]),
    "a matrix": lambda x: np.array([[1.0, 0.0], [x, 1.0]]),
    "an empty array": lambda x: np.zeros(x),
    "the shape of an array": lambda x: np.zeros((2, 3) if x else (3, 2)),
    "the type of an array": lambda x: np.zeros(3, np.int64 if x else np.float64),
    "a float32 and a float64": lambda x: np.float32(0.5) if x else np.float64(0.5),
    "a float and a float64": lambda x: 0.5 if x else np.float64(0.5),
    "a longdouble": lambda x: np.longdouble(1) if x else np.float64(1),
    "an int8 and an int64": lambda x: np.int8(1) if x else np.int64(1),
    "a truth and a number": lambda x: True if x else 1,
    "Python's and NumPy's truth": lambda x: True if x else np.True_,
    "a list and a tuple": lambda x: [1] if x else (1,),
    "a list and an array": lambda x: [1] if x else np.array([1]),
    "a set and a frozen one": lambda x: {1} if x else frozenset({1}),
    "a fraction and a decimal": lambda x: Fraction(1) if x else Decimal(1),
    "arrays of two types": lambda x: np.zeros(3, np.float32 if x else np.float64),
    "arrays of longdouble": lambda x: np.zeros(3, np.longdouble if x else np.float64),
    "series of two types": lambda x: pl.Series([1], dtype=pl.Int8 if x else pl.Int64),
    "series of pandas of two types": lambda x: pd.Series([1], dtype="int8" if x else "int64"),
    "arrays of Arrow of two types": lambda x: pa.array([1], pa.int8() if x else pa.int64()),
    "frames of two types": lambda x: pl.DataFrame({"a": pl.Series([1], dtype=pl.Int8 if x else pl.Int64)}),
    "frames of two libraries": lambda x: (pl if x else pd).DataFrame({"a": [1]}),
    "a null of another type": lambda x: pl.Series([None], dtype=pl.String if x else pl.Int64),
    "an array of no dimension": lambda x: np.array(x),
    "an array of text": lambda x: np.array(["a", "ab"[x]]),
    "a masked array": lambda x: np.ma.masked_array([1, 2], [False, bool(x)]),
    "a series": lambda x: pl.Series([1, x]),
    "a series with a null": lambda x: pl.Series([1, None if x else 1]),
    "a frame": lambda x: pl.DataFrame({"a": [1, 2], "b": [1, x]}),
    "a frame's name": lambda x: pl.DataFrame({"ab"[x]: [1, 2]}),
    "a frame's rows": lambda x: pl.DataFrame({"a": [1] * (1 + x)}),
    "a frame of pandas": lambda x: pd.DataFrame({"a": [1, x]}),
    "a series of pandas": lambda x: pd.Series([1, x]),
    "a table of Arrow": lambda x: pa.table({"a": [1, x]}),
    "an array of Arrow": lambda x: pa.array([1, x]),
    "a dataclass": lambda x: Answer(1, "ab"[x]),
    "a named tuple": lambda x: Point(1, x),
}


@pytest.mark.parametrize("name", TELLING)
def test_what_tells_inputs_apart_is_found(name):
    found = dpf.audit(TELLING[name], 0, 1, 1.0, samples=200)
    assert not found.passed
    assert "\n" not in found.event
    assert found.happened == found.measured
    assert found.happened_elsewhere == 0
    assert found.raised == (200 if name == "an error" else 0)
    assert f"event: {found.event}" in found.explain()


@pytest.mark.parametrize("name", TELLING)
def test_what_is_equal_passes(name):
    """Whatever is returned half the time on both inputs."""

    def mechanism(x):
        return TELLING[name](random.randrange(2))

    found = dpf.audit(mechanism, 0, 1, 0.5, samples=200, confidence=1 - 1e-12)
    assert found.passed


BATCHES = {
    "an array": lambda x, n: np.full(n, x),
    "an array of text": lambda x, n: np.full(n, "ab"[x]),
    "an array of objects": lambda x, n: np.array([None if x else "a"] * n, object),
    "a matrix": lambda x, n: np.full((n, 3), x),
    "a cube": lambda x, n: np.full((n, 2, 2), x, np.float32),
    "unsigned numbers": lambda x, n: np.full(n, 2**64 - 1 - x, np.uint64),
    "truths": lambda x, n: np.full(n, bool(x)),
    "moments": lambda x, n: np.full(n, np.datetime64(f"2020-01-0{1 + x}")),
    "a list": lambda x, n: ["ab"[x]] * n,
    "a list of lists": lambda x, n: [[1] * x] * n,
    "a tuple": lambda x, n: (x,) * n,
    "a series": lambda x, n: pl.Series([x] * n),
    "a series with nulls": lambda x, n: pl.Series([None if x else 1] * n, dtype=pl.Int64),
    "a frame": lambda x, n: pl.DataFrame({"a": [1] * n, "b": [x] * n}),
    "a frame with nulls": lambda x, n: pl.DataFrame({"a": [1] * n, "b": [None if x else 1] * n}),
    "a frame of pandas": lambda x, n: pd.DataFrame({"a": [1] * n, "b": ["ab"[x]] * n}),
    "a table of Arrow": lambda x, n: pa.table({"a": [x] * n}),
    "an array of Arrow": lambda x, n: pa.array([x] * n),
    "other types": lambda x, n: np.full(n, 1.0) if x else np.full(n, 1),
    "an array of nothing": lambda x, n: np.zeros((n, x)),
    "a masked array": lambda x, n: np.ma.masked_array(np.ones(n), np.full(n, bool(x))),
    "other shapes": lambda x, n: np.zeros((n, 1 + x)),
}


#: Batches that differ in their form alone, which all outputs of one batch share.
FORMS = {
    "arrays": lambda x, n: np.zeros(n, np.float32 if x else np.float64),
    "whole numbers": lambda x, n: np.zeros(n, np.int8 if x else np.int64),
    "longdouble": lambda x, n: np.zeros(n, np.longdouble if x else np.float64),
    "series": lambda x, n: pl.Series([1] * n, dtype=pl.Int8 if x else pl.Int64),
    "frames": lambda x, n: pl.DataFrame({"a": pl.Series([1] * n, dtype=pl.Float32 if x else pl.Float64)}),
    "names": lambda x, n: pl.DataFrame({"ab"[x]: [1] * n}),
    "libraries": lambda x, n: (pl if x else pd).DataFrame({"a": [1] * n}),
    "a list and an array": lambda x, n: [1] * n if x else np.ones(n, np.int64),
    "arrays of Arrow": lambda x, n: pa.array([1] * n, pa.int8() if x else pa.int64()),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_form_of_a_batch_tells(name):
    found = dpf.audit(FORMS[name], 0, 1, 1.0, samples=400, batched=True)
    assert not found.passed
    assert (found.happened, found.happened_elsewhere) == (200, 0)
    assert dpf.audit(lambda x, n: FORMS[name](1, n), 0, 1, 0.0, samples=400, batched=True).passed


@pytest.mark.parametrize("name", BATCHES)
def test_what_tells_inputs_apart_is_found_in_batches(name):
    found = dpf.audit(BATCHES[name], 0, 1, 1.0, samples=200, batched=True)
    assert not found.passed
    assert (found.happened, found.happened_elsewhere) == (100, 0)
    same = dpf.audit(lambda x, n: BATCHES[name](1, n), 0, 1, 0.0, samples=200, batched=True)
    assert same.passed
    assert same.epsilon_lower == 0


def test_what_does_not_fit_is_in_no_event_and_changes_none():
    """Columns are made of the outputs that teach and choose: strange ones among those that measure change nothing."""

    def batches(rows):
        made = [iter(one) for one in rows]
        return lambda x, n: [next(made[x]) for _ in range(n)]

    for strange in (None, "a", 2**70, 0.5, [1], math.nan):
        outputs = [[number % 7 for number in range(400)] for _ in range(2)]
        plain = dpf.audit(batches(outputs), 0, 1, 0.0, samples=400, batched=True)
        outputs[0][300] = outputs[1][399] = strange
        beside = dpf.audit(batches(outputs), 0, 1, 0.0, samples=400, batched=True)
        assert beside.event == plain.event
        for frame in (pl.Series(outputs[0], strict=False),) if strange is None else ():
            assert dpf.audit(lambda x, n, made=frame: made[:n], 0, 1, 0.0, samples=400, batched=True).passed


def test_equal_hashes_are_not_met_by_numbers_nearby():
    from dpfast.auditing.outputs import _hashed

    rows = np.array([[a, b, c] for a in range(40) for b in range(40) for c in range(40)], np.int64)
    assert np.unique(_hashed(rows.view(np.uint8).reshape(len(rows), -1))).size == len(rows)
    floats = np.arange(100_000, dtype=np.float64)[:, None] * 2.0**-30
    assert np.unique(_hashed(floats.view(np.uint8))).size == len(floats)


def test_a_mechanism_may_return_the_same_object_every_time():
    """Its outputs are those of the moment: a list that is filled anew, and an array."""
    for held in ([0], np.zeros(1), {"a": 0}):

        def refilled(x, held=held):
            held["a" if isinstance(held, dict) else 0] = random.randrange(4)
            return held

        # Were only the last of them seen, two sides that differ would be refuted, three times of four.
        for _ in range(8):
            assert dpf.audit(refilled, 0, 1, 0.2, samples=200, confidence=1 - 1e-12).passed
    buffer = np.zeros(50)

    def overwritten(x, n):
        buffer[:] = x
        return buffer

    assert not dpf.audit(overwritten, 0, 1, 1.0, samples=100, batched=True).passed


def test_two_columns_of_one_name():
    def frame(x):
        return pd.DataFrame([[1, x]], columns=["a", "a"])

    assert not dpf.audit(frame, 0, 1, 1.0, samples=100).passed
    assert not dpf.audit(
        lambda x, n: pd.DataFrame([[1, x]] * n, columns=["a", "a"]), 0, 1, 1.0, samples=100, batched=True
    ).passed


def test_huge_claims():
    for epsilon in (10**6, Fraction(10**6), 1e6, 1e-300):
        assert dpf.audit(lambda x: 1, 0, 1, epsilon, samples=100).passed
    assert dpf.audit(lambda x: x, 0, 1, 10**6, samples=101).passed


def test_errors_are_outputs_with_a_kind_and_a_message():
    """A rare one is found; false-failure rate below 1e-9 (12 deviations)."""

    def rarely(x):
        if x and random.random() < 0.1:
            raise KeyError("somebody")
        return random.randrange(5)

    found = dpf.audit(rarely, 0, 1, 1.0, samples=4000)
    assert (found.passed, found.likelier) == (False, "neighbour")
    assert found.event == "output raises KeyError: 'somebody'"
    assert 200 < found.raised < 600
    assert "of 8,000 calls raised an error" in found.explain()


def test_what_cannot_be_audited_is_refused():
    with pytest.raises(ParameterError, match=r"every call raises ZeroDivisionError; call it once by hand"):
        dpf.audit(lambda x: 1 // 0, 0, 1, 1.0, samples=100)
    with pytest.raises(ParameterError, match="was one that returned a Opaque; let the mechanism return"):
        dpf.audit(lambda x: Opaque(), 0, 1, 1.0, samples=100)
    with pytest.raises(ParameterError, match="one that raised ZeroDivisionError"):
        dpf.audit(lambda x, n: 1 // 0, 0, 1, 1.0, samples=100, batched=True)
    for returned, shown in ((np.zeros(5), "5 outputs"), (7, "a int"), ("a" * 100, "a str"), (np.array(1), "a ndarray")):
        with pytest.raises(ParameterError, match=f"returned {shown} where 50 were asked for"):
            dpf.audit(lambda x, n, returned=returned: returned, 0, 1, 1.0, samples=100, batched=True)
    with pytest.raises(MemoryError):
        dpf.audit(out_of_memory, 0, 1, 1.0, samples=100)
    with pytest.raises(KeyboardInterrupt):
        dpf.audit(interrupted, 0, 1, 1.0, samples=100)


def nested(x):
    made = []
    for _ in range(3000):
        made = [made]
    return made


def in_itself(x):
    made = [x]
    made.append(made)
    return made


@pytest.mark.parametrize("mechanism", [nested, in_itself, lambda x: {"a": nested(x)}, lambda x: (in_itself(x),)])
def test_what_has_no_end_is_refused(mechanism):
    with pytest.raises(ParameterError, match="nested more than 100 deep, or that hold themselves"):
        dpf.audit(mechanism, 0, 1, 1.0, samples=100)
    with pytest.raises(ParameterError, match="nested more than 100 deep, or that hold themselves"):
        dpf.audit(lambda x, n: [mechanism(x)] * n, 0, 1, 1.0, samples=100, batched=True)


class OwnError(BaseException):
    """Of no class of Python's errors, and without words."""

    def __str__(self):
        raise ValueError


def test_errors_of_every_class_are_outputs():
    def raising(x):
        if x:
            raise OwnError
        return 0

    found = dpf.audit(raising, 0, 1, 1.0, samples=100)
    assert (found.passed, found.raised) == (False, 100)
    with pytest.raises(ParameterError, match="raises OwnError"):
        dpf.audit(raising, 1, 1, 1.0, samples=100)
    with pytest.raises(ParameterError, match="one that raised OwnError"):
        dpf.audit(lambda x, n: raising(1), 0, 1, 1.0, samples=100, batched=True)
    with pytest.raises(KeyboardInterrupt):
        dpf.audit(lambda x, n: interrupted(x), 0, 1, 1.0, samples=100, batched=True)


def test_long_messages_end_between_two_words():
    def talking(x):
        raise TypeError("word " * 200)

    with pytest.raises(ParameterError, match=r"raises TypeError; call it once by hand \((word )+\.\.\.\)$"):
        dpf.audit(talking, 0, 1, 1.0, samples=100)


def out_of_memory(x):
    raise MemoryError


def interrupted(x):
    raise KeyboardInterrupt


def test_many_numbers_of_an_output(seed):
    """One of 1,000 numbers tells; false-failure rate below 1e-9."""
    generator = np.random.default_rng(seed)

    def wide(x, n):
        drawn = generator.integers(0, 4, (n, 1000))
        drawn[:, 300] += 4 * x
        return drawn

    found = dpf.audit(wide, 0, 1, 1.0, samples=2000, batched=True)
    assert not found.passed
    assert "output[300]" in found.event


def test_all_numbers_tell_a_little(seed):
    """None alone shows it: 40 numbers that move by a tenth of their deviation; 12 deviations away from passing."""
    generator = np.random.default_rng(seed)
    found = dpf.audit(
        lambda x, n: np.round(generator.normal(0.4 * x * (-1.0) ** np.arange(40), 1.0, (n, 40)), 3),
        0, 1, 1.5, samples=12_000, batched=True,
    )  # fmt: skip
    assert not found.passed
    assert "score" in found.event


def test_inputs_may_be_anything():
    for x, neighbour in (
        (None, "a"),
        ([1, 2], [1]),
        (pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [2]})),
        (10**400, 1),
    ):
        assert dpf.audit(lambda given: 1, x, neighbour, 0.0, samples=100).passed


def test_progress_is_told():
    told = []
    dpf.audit(lambda x: x, 0, 1, 1.0, samples=1000, progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, 2000)
    assert told[-1] == (2000, 2000)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert len(told) <= 402


def test_a_result_is_frozen_and_shown():
    found = dpf.audit(lambda x: f"<{x}>", 0, 1, 1.0, samples=100)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.passed = True
    frame = found.to_frame()
    assert frame["event"].to_list() == [found.event]
    assert frame.columns[:5] == ["epsilon", "delta", "epsilon_lower", "delta_lower", "passed"]
    assert "<" not in found._repr_html_().removeprefix("<pre>").removesuffix("</pre>")
