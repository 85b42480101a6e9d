"""Bad input is told in one line that names the argument and what is allowed."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError

make = dpf.workloads

CASES = {
    "no cells": (lambda: make.prefix(0), "n must be an integer of at least 1, but was 0"),
    "half a cell": (lambda: make.identity((2, 2.5)), "shape must be an integer of at least 0|shape must be an integer"),
    "no axes": (lambda: make.total(()), r"shape must be a positive integer for each attribute, but was \(\)"),
    "an axis of none": (lambda: make.marginals((4, 0), k=1), "shape must be an integer of at least 1, but was 0"),
    "true": (lambda: make.prefix(True), "n must be an integer of at least 1, but was True"),
    "text": (lambda: make.identity("44"), "shape must be a positive integer for each attribute"),
    "2**31 cells": (lambda: make.identity((2,) * 31), r"2,147,483,648 cells \(17,179,869,184 bytes\)"),
    "all of 2**16": (lambda: make.all_range(2**16), r"2,147,516,416 queries \(17,180,131,328 bytes\)"),
    "upper below lower": (lambda: make.ranges(5, [0, 3], [1, 2]), r"lower and upper must be bounds with 0 <= lower"),
    "upper beyond": (lambda: make.ranges(5, [0], [6]), r"\[0\] and \[6\] in query 0"),
    "below 0": (lambda: make.rectangles((5, 5), [[0, 0], [0, -1]], [[1, 1], [1, 1]]), r"in query 1"),
    "floats": (lambda: make.ranges(5, [0.0], [1.0]), "lower must be an array of integers, queries, but was"),
    "lengths": (lambda: make.ranges(5, [0, 1], [1]), "upper must be an array of integers, 2, but was"),
    "axes": (lambda: make.rectangles((5, 5), [[0]], [[1]]), "lower must be an array of integers, queries by 2"),
    "no query": (lambda: make.ranges(5, [], []), "lower must be at least one query"),
    "count": (lambda: make.random_ranges(5, 0, 1), "count must be an integer of at least 1, but was 0"),
    "many": (lambda: make.random_ranges(5, 2**31, 1), "count must be of at most"),
    "seed": (lambda: make.random_ranges(5, 2, -1), "seed must be an integer of at least 0"),
    "k": (lambda: make.marginals((2, 2), k=3), "k must be at most the 2 attributes of the shape, but was 3"),
    "k below 0": (lambda: make.marginals((2, 2), k=-1), "k must be an integer of at least 0"),
    "both": (lambda: make.marginals((2, 2), 1, [(0,)]), "k or attributes must be one of the two, but was both"),
    "neither": (lambda: make.marginals((2, 2)), "but was neither; write for example k=2"),
    "no marginal": (lambda: make.marginals((2, 2), attributes=[]), "attributes must be at least one marginal"),
    "twice": (lambda: make.marginals((2, 2), attributes=[(1, 1)]), r"attributes must be different integers below 2"),
    "unknown": (lambda: make.marginals((2, 2), attributes=[(0, 2)]), r"different integers below 2 in each marginal"),
    "no tuples": (lambda: make.marginals((2, 2), attributes=[0]), r"a list of tuples of attributes"),
    "many tuples": (lambda: make.marginals((1,) * 100, k=50), "k must be of at most 1,073,741,824 marginals"),
    "a vector": (lambda: make.matrix([1, 2]), r"matrix must be of queries by cells, at least one by one"),
    "no rows": (lambda: make.matrix(np.empty((0, 3))), r"matrix must be of queries by cells"),
    "objects": (lambda: make.matrix([["a", "b"]]), "matrix must be of Booleans, integers that int64 holds, or floats"),
    "uint64": (lambda: make.matrix(np.ones((1, 2), np.uint64)), "matrix must be of Booleans, integers that int64"),
    "complex": (lambda: make.matrix(np.ones((1, 2), complex)), "but was of type complex128"),
    "nan": (lambda: make.matrix([[1.0, np.nan]]), "matrix must be finite, but was NaN or infinite somewhere"),
    "width": (lambda: make.matrix(np.ones((2, 5)), shape=(2, 3)), "matrix must be 6 cells wide, as its shape says"),
    "no factor": (lambda: make.kronecker(), r"workloads must be one workload or more, but was \(\)"),
    "no workload": (lambda: make.kronecker(3), r"workloads must be one workload or more, but was \(3,\)"),
    "large product": (lambda: make.kronecker(*[make.prefix(2**16)] * 2), "workloads|shape must be of at most"),
    "other shapes": (lambda: make.prefix(3) + make.prefix(4), "workloads must be over histograms of one shape"),
    "gram": (lambda: make.prefix(2**14).gram(), r"takes 2,147,483,648 bytes"),
    "another length": (lambda: make.prefix(3).answer([1, 2]), r"histogram must be of shape \(3,\)"),
    "another kind": (lambda: make.prefix(2).answer(["a", "b"]), "histogram must be of integers or floats"),
    "nulls": (lambda: make.prefix(2).answer(pl.Series([1, None])), "a Series with nulls"),
    "coefficients": (lambda: make.prefix(2).transposed([1.0]), "coefficients must be 2 numbers, one for each query"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name):
    run, message = CASES[name]
    with pytest.raises(ParameterError, match=message) as caught:
        run()
    assert "\n" not in str(caught.value)
