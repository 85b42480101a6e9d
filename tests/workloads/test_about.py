"""Products of workloads about some attributes of a domain."""

from __future__ import annotations

import numpy as np
import pytest

import dpfast as dpf
from dpfast.errors import ParameterError

ask = dpf.workloads
DOMAIN = dpf.Domain({"age": 4, "sex": ["f", "m"], "job": 3})


def test_names_and_numbers_ask_the_same_as_products_with_totals():
    counts = np.arange(24).reshape(4, 2, 3)
    expected = ask.kronecker(ask.prefix(4), ask.total(2), ask.identity(3)).answer(counts)
    queries = {"job": ask.identity(3), "age": ask.prefix(4)}
    np.testing.assert_array_equal(ask.about(DOMAIN, queries).answer(counts), expected)
    np.testing.assert_array_equal(ask.about((4, 2, 3), {2: ask.identity(3), 0: ask.prefix(4)}).answer(counts), expected)


@pytest.mark.parametrize(
    ("domain", "queries", "words"),
    [
        (DOMAIN, {"old": ask.prefix(4)}, "queries must be by names of the domain"),
        (DOMAIN, {0: ask.prefix(4)}, "queries must be by names of the domain"),
        ((4, 2), {2: ask.prefix(4)}, "queries must be by numbers from 0 to 1"),
        ((4, 2), {True: ask.prefix(2)}, "queries must be by numbers from 0 to 1"),
        (DOMAIN, {"age": ask.prefix(5)}, r"queries must be over its 4 values, but was of shape \(5,\) for 'age'"),
        (DOMAIN, {"age": ask.identity((2, 2))}, "queries must be over its 4 values"),
        (DOMAIN, {"age": "prefix"}, "queries must be a workload"),
        (DOMAIN, {}, "queries must be a dictionary of workloads by attributes, at least one"),
    ],
)
def test_what_is_no_attribute_or_no_workload_of_its_size_is_refused(domain, queries, words):
    with pytest.raises(ParameterError, match=words) as caught:
        ask.about(domain, queries)
    assert "\n" not in str(caught.value)
