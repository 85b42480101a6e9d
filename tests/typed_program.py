"""A program of a user, for test_typed_examples.py: columns go in, and the same kind comes out."""

from __future__ import annotations

#: Without stubs pandas and PyArrow are Any, as for most users.
PROGRAM = """
from typing import Any, assert_type

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

import dpfast as dpf
from dpfast.integrations.polars import Expressions, Frames
from dpfast.releases.plan import Plan
from dpfast.releases.release import Release
from dpfast.testing import SeededRandom

Places = NDArray[np.int64]
series, anything = pl.Series([1, 2]), np.array([1, 2])
row, rows, few = np.zeros(3), np.zeros((2, 3)), np.zeros(3, np.uint32)
lists = pl.Series([[1, 2], [3, 4]])


class Exporting:
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        raise NotImplementedError


for add in (dpf.laplace, dpf.gaussian):
    assert_type(add(3, 1.0), int)
    assert_type(add(np.int64(3), 1), int)
    assert_type(add(3.5, np.float32(1)), float)
    assert_type(add(np.float32(3.5), 1.0), float)
    assert_type(add([1, 2], [1.0, 2.0]), NDArray[Any])
    assert_type(add([[1, 2], [3, 4]], 1.0), NDArray[Any])
    assert_type(add(row, row, threads=2), NDArray[np.float64])
    assert_type(add(few, 1.0), NDArray[Any])
    assert_type(add(anything, 1.0), NDArray[Any])
    assert_type(add(series, series, random=SeededRandom(1)), pl.Series)
    assert_type(add(pd.Series([1]), 1.0), Any)
    assert_type(add(pa.array([1]), 1.0), Any)
    assert_type(add(Exporting(), 1.0), Any)

assert_type(dpf.randomized_response(series, ["a", "b"], 1.0), pl.Series)
assert_type(dpf.randomized_response([0, 1], 2, 1.0), Any)
assert_type(dpf.randomized_response(pa.array(["a"]), ("a", "b"), 1.0), Any)
assert_type(dpf.randomized_response("yes", ["yes", "no"], 1.0), Any)

for select in (dpf.exponential, dpf.permute_and_flip, dpf.report_noisy_max):
    assert_type(select([1, 2], 1.0), int)
    assert_type(select(row, 1), int)
    assert_type(select([[1, 2], [3, 4]], [1.0, 2.0]), Places)
    assert_type(select(rows, 1.0, 2.0, True), Places)
    assert_type(select(anything, 1.0), Any)
    assert_type(select(lists, 1.0), Any)
    assert_type(select(row, 1.0, groups=[0, 0, 1]), Any)
    assert_type(select([1, 2], 1.0, candidates=["a", "b"]), Any)

assert_type(dpf.noisy_top_k(row, 2, 1.0), Places)
assert_type(dpf.noisy_top_k([[1, 2], [3, 4]], 2, 1.0), Places)
assert_type(dpf.noisy_top_k(series, 2, 1.0), pl.Series)
assert_type(dpf.noisy_top_k(series, 2, 1.0, candidates=["a", "b"]), Any)
assert_type(dpf.noisy_max_with_gap(row, 1.0), tuple[int, float])
assert_type(dpf.noisy_max_with_gap(rows, 1.0, grid=0.5), tuple[Places, NDArray[np.float64]])
assert_type(dpf.noisy_max_with_gap(lists, 1.0), tuple[Any, Any])

assert_type(dpf.quantiles(series, 0.5, bounds=(0, 9), epsilon=1.0), float)
assert_type(dpf.quantiles(row, [0.25, 0.5], bounds=(0, 9), epsilon=1.0), NDArray[Any])
assert_type(dpf.quantiles(row, 0.5, bounds=(0, 9), epsilon=1.0, groups=[0, 0, 1], group_count=2), NDArray[Any])
assert_type(dpf.above_threshold(series, 5, 1.0), Places)
assert_type(dpf.above_threshold(row, 5, 1.0, numeric=0.5), tuple[Places, NDArray[Any]])
assert_type(dpf.exponential_draws(series, 1.0, 3), Places)
assert_type(dpf.select_price(series, range(1, 9), 1.0), int)

lazy = Frames(pl.LazyFrame({"x": [1]}))
asked = Expressions(pl.col("x")).sum(bounds=(0, 1))
assert_type(lazy.plan(s=asked, epsilon=1.0, privacy_unit="row"), Plan)
assert_type(lazy.release(s=asked, epsilon=1.0, ledger=dpf.Ledger(epsilon=1.0)), Release)
assert_type(lazy.plan(s=asked, epsilon=1.0).lazy(dpf.Ledger(epsilon=1.0)), pl.LazyFrame)
assert_type(Frames(pl.DataFrame()).answer(value="x", epsilon=1.0, ledger=dpf.Ledger(epsilon=1.0)), pl.DataFrame)

dpf.laplace("text", 1.0)  # refused
dpf.laplace([1.0], scale="ten")  # refused
dpf.gaussian(series, scale="ten")  # refused
dpf.plan(pl.DataFrame(), n=dpf.count(), epsilon="one")  # refused
dpf.plan(pl.DataFrame(), n=dpf.count(), epsilon=1, privacy_unit=3)  # refused
dpf.plan(pl.DataFrame(), n=dpf.count(), epsilon=1, neighbors="swap")  # refused
dpf.plan(pl.DataFrame(), n=dpf.count(), epsilon=1, mechanism="magic")  # refused
dpf.plan(pl.DataFrame(), n=dpf.count(), epsilon=1, max_groups="many")  # refused
dpf.plan(pl.DataFrame(), n="count", epsilon=1)  # refused
dpf.release(pl.DataFrame(), n=dpf.count(), epsilon=1, ledger="ledger.db")  # refused
dpf.Ledger(epsilon="one")  # refused
dpf.mean("x", bounds=("low", "high"))  # refused
dpf.quantile("x", "median", bounds=(0, 1))  # refused
dpf.no_such_name  # refused
dpf.testing.no_such_name  # refused
dpf.theory.no_such_name  # refused
dpf.errors.no_such_name  # refused
dpf.workloads.no_such_name  # refused
dpf.weights.no_such_name  # refused
dpf.strategies.no_such_name  # refused
dpf.stability.no_such_name  # refused
dpf.auditing.no_such_name  # refused
dpf.attacks.no_such_name  # refused
dpf.accounting.no_such_name  # refused
lazy.plan(s=pl.col("x"), epsilon=1.0)  # refused
lazy.release(s=asked, epsilon=1.0)  # refused
lazy.answer(value="x", epsilon=1.0, ledger=dpf.Ledger(epsilon=1.0))  # refused
pl.LazyFrame().dpf.plan(epsilon=1.0)  # refused
dpf.laplace(series, "text")  # refused
dpf.laplace(series, 1.0, random=5)  # refused
dpf.exponential(series, None)  # refused
dpf.noisy_top_k(series, 2.5, 1.0)  # refused
dpf.quantiles(series, "median", bounds=(0, 9), epsilon=1.0)  # refused
dpf.selection_probabilities(row, 1.0, mechanism="laplace")  # refused
"""
