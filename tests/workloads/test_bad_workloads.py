"""Bad arguments that only together are bad, and sizes; those bad by themselves are in tests/arguments."""

from __future__ import annotations

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError

make = dpf.workloads

CASES = {
    "2**31 cells": (lambda: make.identity((2,) * 31), r"2,147,483,648 cells \(17,179,869,184 bytes\)"),
    "all of 2**16": (lambda: make.all_range(2**16), r"2,147,516,416 queries \(17,180,131,328 bytes\)"),
    "upper below lower": (lambda: make.ranges(5, [0, 3], [1, 2]), r"lower and upper must be bounds with 0 <= lower"),
    "upper beyond": (lambda: make.ranges(5, [0], [6]), r"\[0\] and \[6\] in query 0"),
    "below 0": (lambda: make.rectangles((5, 5), [[0, 0], [0, -1]], [[1, 1], [1, 1]]), r"in query 1"),
    "lengths": (lambda: make.ranges(5, [0, 1], [1]), "upper must be an array of integers, 2, but was"),
    "axes": (lambda: make.rectangles((5, 5), [[0]], [[1]]), "lower must be an array of integers, queries by 2"),
    "no query": (lambda: make.ranges(5, [], []), "lower must be at least one query"),
    "many": (lambda: make.random_ranges(5, 2**31, 1), "count must be of at most"),
    "k": (lambda: make.marginals((2, 2), k=3), "k must be at most the 2 attributes of the shape, but was 3"),
    "both": (lambda: make.marginals((2, 2), 1, [(0,)]), "k or attributes must be one of the two, but was both"),
    "neither": (lambda: make.marginals((2, 2)), "but was neither; write for example k=2"),
    "many tuples": (lambda: make.marginals((1,) * 100, k=50), "k must be of at most 1,073,741,824 marginals"),
    "width": (lambda: make.matrix(np.ones((2, 5)), shape=(2, 3)), "rows must be 6 cells wide, as its shape says"),
    "no factor": (lambda: make.kronecker(), r"workloads must be one workload or more, but was \(\)"),
    "no workload": (lambda: make.kronecker(3), r"workloads must be one workload or more, but was \(3,\)"),
    "large product": (lambda: make.kronecker(*[make.prefix(2**16)] * 2), "workloads|shape must be of at most"),
    "other shapes": (lambda: make.prefix(3) + make.prefix(4), "workloads must be over histograms of one shape"),
    "gram": (lambda: make.prefix(2**14).gram(), r"takes 2,147,483,648 bytes"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name):
    run, message = CASES[name]
    with pytest.raises(ParameterError, match=message) as caught:
        run()
    assert "\n" not in str(caught.value)
