"""The outputs that measure have no say in what is looked at: the same events are weighed whatever they are."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpfast.auditing.auditor import _events
from dpfast.auditing.batches import joined
from dpfast.auditing.events import Claim, Parts
from dpfast.auditing.leaves import Raised
from dpfast.auditing.outputs import read_columns

SIZE = 120
HALF = SIZE // 2
#: What outputs may be: for each, how the output of a number is made.
KINDS = {
    "whole numbers": lambda number: number % 7,
    "floats": lambda number: number / 8,
    "fine floats": lambda number: number / 10,
    "texts": lambda number: "abcde"[number % 5],
    "lists": lambda number: [number % 3, number / 10],
    "lists of several lengths": lambda number: [number % 3] * (1 + number % 4),
    "dicts": lambda number: {"a": number % 5, "b": "xyz"[number % 3]},
    "arrays": lambda number: np.array([number, number + 1.5]),
    "long lists": lambda number: [number * place % 5 for place in range(600)],
    "mixed": lambda number: [None, number, 0.5, "a"][number % 4],
}
#: What the outputs that measure are instead.
STRANGE = (
    None, math.nan, math.inf, -math.inf, -0.0, 0.1, 7, 2**70, True, "a", Decimal("1.50"), Raised("Error", "here"),
    [], [1], [1, 2.5], [math.nan, -0.0], {"a": -0.0}, {"c": 1}, np.zeros(2), np.array([np.nan, -0.0]), np.float32(0.1),
    [*range(700)],
)  # fmt: skip


def candidates(first, second):
    """Return every event that is weighed, and where it holds among the outputs that teach and choose."""
    events = _events(read_columns(first, second), (0.25, 1.0), Parts(SIZE), Claim(0.0, 1e-6))
    known = np.r_[:HALF, SIZE : SIZE + HALF]
    return [(event.merit, event.favours, event.words, event.holds[known].tobytes()) for event in events]


def choosing(kind, side):
    return [KINDS[kind](number * (3 + side) + side) for number in range(HALF)]


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_that_measure_add_no_candidate_and_take_none(kind):
    """Permuted, alike, constant, and strange: by one output of them, and by all."""
    sides = [choosing(kind, side) for side in (0, 1)]
    expected = candidates(*(side + side for side in sides))
    assert expected
    assert candidates(*(side + side[::-1] for side in sides)) == expected
    assert candidates(*(side + [side[0]] * HALF for side in sides)) == expected
    for strange in STRANGE[:: 8 if kind == "long lists" else 1]:  # which take long
        for one, other in (([strange] * HALF,) * 2, ([*sides[0][1:], strange], sides[1])):
            assert candidates(sides[0] + one, sides[1] + other) == expected, strange


#: What makes a batch of whole numbers from 0 to 6, or of others.
BATCHES = {
    "an array": np.array,
    "an array of floats": lambda rows: np.array(rows, float),
    "a matrix": lambda rows: np.array([[row, 1] for row in rows]),
    "texts": lambda rows: np.array([str(row) for row in rows]),
    "objects": lambda rows: np.array(rows, object),
    "a list": list,
    "a series": lambda rows: pl.Series(rows, strict=False),
    "a frame": lambda rows: pl.DataFrame({"a": pl.Series(rows, strict=False), "b": [1] * len(rows)}),
    "truths in a frame": lambda rows: pl.DataFrame({"a": [None if row is None else row > 3 for row in rows]}),
    "a frame of pandas": lambda rows: pd.DataFrame({"a": rows}),
    "a nullable frame": lambda rows: pd.DataFrame({"a": pd.array(rows, dtype="Float64")}),
    "a table": lambda rows: pa.table({"a": rows}),
}


@pytest.mark.parametrize("second", BATCHES)
@pytest.mark.parametrize("first", BATCHES)
def test_batches_that_measure_add_no_candidate_and_take_none(first, second):
    """Of one form and of two: where the half that measures has another form, nothing is counted."""
    rows = [[number * (3 + side) % 7 for number in range(HALF)] for side in (0, 1)]
    batches = [BATCHES[first](rows[0]), BATCHES[second](rows[1])]
    expected = candidates(*joined(*((batch, batch) for batch in batches)))
    counted = 0
    for strange in (0, 6, 0.5, -0.0, None, math.nan, math.inf, 2**40):
        try:
            measuring = BATCHES[first]([*rows[0][1:], strange])
        except TypeError:  # of texts of nothing
            continue
        drawn = joined((batches[0], measuring), (batches[1], batches[1]))
        if drawn is not None:
            counted += 1
            assert candidates(*drawn) == expected, strange
    assert counted >= 2
