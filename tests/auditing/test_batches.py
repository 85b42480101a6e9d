"""Forms that all outputs of a batch share: they are no property of each output, so that they refute nothing."""

from __future__ import annotations

import random
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError

SIZE = 400


def padded(rows):
    widest = max(map(len, rows))
    return np.array([[*row, *[0] * (widest - len(row))] for row in rows])


#: What makes a batch of outputs, one that is usual, and one that gives all outputs of a batch another form.
MAKERS = {
    "an array with a float": (np.array, 1, 0.5),
    "an array with a Boolean": (np.array, True, 2),
    "an array with a huge number": (np.array, 1, 2**70),
    "an array with a complex number": (np.array, 1, 1j),
    "an array with a text": (np.array, 1, "a"),
    "an array with a longer text": (np.array, "a", "abc"),
    "an array with a finer moment": (lambda rows: np.array(rows, "datetime64"), "2020-01-01", "2020-01-01T00:00:01"),
    "a masked array": (lambda rows: np.ma.masked_array(np.array(rows), np.array(rows) == 0.5), 1, 0.5),
    "a wider row": (padded, [1, 2], [1, 2, 3]),
    "a narrower float": (lambda rows: np.array(rows, np.float64 if 2.0 in rows else np.float32), 0.1, 2.0),
    "a null in pandas": (pd.Series, 1, None),
    "a null in a column of pandas": (lambda rows: pd.DataFrame({"a": rows}), 1, None),
    "a null text in pandas": (lambda rows: pd.DataFrame({"a": rows}), "1", None),
    "a null of a nullable type": (lambda rows: pd.DataFrame({"a": pd.array(rows, dtype="Int64")}), 1, None),
    "a null in Polars": (pl.Series, 1, None),
    "a float in Polars": (lambda rows: pl.Series(rows, strict=False).cast(pl.Float64 if 0.5 in rows else int), 1, 0.5),
    "a null in Arrow": (pa.array, 1, None),
    "a float in Arrow": (lambda rows: pa.table({"a": rows}), 1, 0.5),
    "a finer decimal": (pa.array, Decimal("1.5"), Decimal("1.55")),
    "another field": (pa.array, {"a": 1}, {"b": 1}),
    "another name": (pd.DataFrame, {"a": 1}, {"b": 1}),
    "floats in lists": (pa.array, [1], [0.5]),
}


@pytest.mark.parametrize("place", [0, SIZE // 3, SIZE - 1])
@pytest.mark.parametrize("name", MAKERS)
def test_one_output_of_another_form_is_no_false_alarm(name, place):
    """One of 400 outputs is another: no event of it refutes anything, wherever it stands; nothing is drawn."""
    make, usual, other = MAKERS[name]

    def mechanism(x, n):
        rows = [usual] * n
        if x and n > 1:
            rows[place % n] = other
        return make(rows)

    for x, neighbour in ((0, 1), (1, 0)):
        found = dpf.audit(mechanism, x, neighbour, 0.5, samples=SIZE, batched=True)
        assert found.passed, found.event


@pytest.mark.parametrize("name", ["an array with a float", "a null in pandas", "a float in Arrow", "a wider row"])
def test_batches_of_two_forms_are_compared_still(name):
    make, usual, other = MAKERS[name]

    def mechanism(x, n):
        told = [usual[0] + 5 * x, *usual[1:]] if isinstance(usual, list) else usual + 5 * x
        return make([told] * (n - 1) + ([other] if x and n > 1 else [told]))

    found = dpf.audit(mechanism, 0, 1, 2.0, samples=SIZE, batched=True)
    assert not found.passed
    assert found.measured == SIZE // 2
    assert "batch of one" not in found.event


def test_a_batchs_type_that_depends_on_all_its_outputs_is_no_false_alarm():
    """The dtype is a float's in half of the batches: said of each output, it would refute what is private."""

    def mechanism(x, n):
        return np.zeros(n, random.choice([bool, np.int8, np.int64, np.float32, np.float64]))

    # False-failure rate: 20 times 1e-12.
    for _ in range(20):
        assert dpf.audit(mechanism, 0, 1, 0.5, samples=400, batched=True, confidence=1 - 1e-12).passed


def test_a_mechanism_that_takes_no_batch_of_one_is_refused_where_forms_differ():
    def mechanism(x, n):
        if n == 1:
            raise ValueError("too few")
        return np.zeros(n, np.float32 if x else np.float64)

    with pytest.raises(ParameterError, match="one that raised ValueError for n = 1, where batches differ") as caught:
        dpf.audit(mechanism, 0, 1, 1.0, samples=SIZE, batched=True)
    assert "\n" not in str(caught.value)
    with pytest.raises(ParameterError, match="returned 2 outputs where 1 was asked for"):
        dpf.audit(lambda x, n: np.zeros(max(n, 2), [int, float][x]), 0, 1, 1.0, samples=SIZE, batched=True)
    # They are not asked for where there is one form.
    assert dpf.audit(lambda x, n: mechanism(0, n), 0, 1, 1.0, samples=SIZE, batched=True).passed


def test_what_is_told_is_found_though_each_batch_has_another_form():
    """The last of each batch that measures makes floats of all: batches of one are compared, and show the input."""
    calls = []

    def mechanism(x, n):
        calls.append(n)
        return np.array([x] * (n - 1) + [0.5 if len(calls) % 2 == 0 and n > 1 else x])

    found = dpf.audit(mechanism, 0, 1, 1.0, samples=SIZE, batched=True)
    assert (found.passed, found.happened_elsewhere) == (False, 0)
    assert "of a batch of one" in found.event
    assert calls == [SIZE // 2] * 4 + [1] * 2 * SIZE


@pytest.mark.parametrize("missing", [pd.NA, pd.NaT, None])
def test_missing_values_of_pandas_are_outputs(missing):
    found = dpf.audit(lambda x: [missing if x else 1], 0, 1, 1.0, samples=100)
    assert (found.passed, found.happened_elsewhere) == (False, 0)
    assert dpf.audit(lambda x: missing, 0, 1, 0.0, samples=100).passed
