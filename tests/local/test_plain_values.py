"""Lists, columns of objects and single values: no content of a row makes randomized response fail."""

from __future__ import annotations

import datetime
import enum
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpfast as dpf
from dpfast.testing import SeededRandom

DATE = datetime.date(2020, 2, 29)
LISTS = [["yes", "no"], [0, 1], [True, False], [DATE, datetime.date(2021, 1, 1)], ["yes", None], 3]
STRANGE = [
    None,
    "else",
    b"yes",
    5,
    -1,
    2**70,
    10**400,
    1.0,
    float("nan"),
    1j,
    True,
    Decimal(1),
    DATE,
    datetime.datetime(2020, 2, 29),
    datetime.time(1),
    pd.NaT,
    pd.NA,
    np.int8(7),
    np.str_("yes"),
    np.datetime64("2020-02-29"),
    np.datetime64("NaT"),
]


def allowed(categories):
    return range(categories) if isinstance(categories, int) else categories


@pytest.mark.parametrize("categories", LISTS, ids=str)
@pytest.mark.parametrize("value", STRANGE, ids=repr)
def test_every_value_is_answered(value, categories):
    first = allowed(categories)[0]
    assert dpf.randomized_response(value, categories, 1.0) in allowed(categories)
    for rows in ([value], [first, value], (value, first, value)):
        answers = dpf.randomized_response(rows, categories, 1.0)
        assert answers.shape == (len(rows),)
        assert set(answers.tolist()) <= set(allowed(categories))


@pytest.mark.parametrize("value", [*STRANGE, ["yes"], {"a": 1}, object()], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("categories", LISTS[:5], ids=str)
def test_columns_of_objects(value, categories):
    objects = np.empty(2, object)
    objects[:] = [categories[0], value]
    for column in (objects, pd.Series(objects, index=[5, 4], dtype=object)):
        answers = dpf.randomized_response(column, categories, 1.0)
        assert type(answers) is type(column)
        assert answers.dtype == object
        assert set(answers.tolist()) <= set(categories)


def test_a_later_list_is_a_row_like_any_other():
    assert dpf.randomized_response([["yes"], ["yes", "no"], None], ["yes", "no"], 1.0).shape == (3, 1)
    assert dpf.randomized_response(["yes", ["no"]], ["yes", "no"], 1.0).shape == (2,)
    assert dpf.randomized_response([["yes"], ["no"]], ["yes", "no"], 1.0).shape == (2, 1)
    assert dpf.randomized_response([[0, 1, None], [2, 2, "a"]], 3, 1.0).shape == (2, 3)


class Answer(enum.StrEnum):
    YES = "yes"


class Number(enum.IntEnum):
    ONE = 1


def test_truths_stay_what_they_are():
    """With epsilon = 50 a listed value is kept but for once in 1e21 rows."""
    truths = [
        (["yes", "no"], ["no", np.str_("yes"), Answer.YES], ["no", "yes", "yes"]),
        ([0, 1], [1, np.int16(0), Number.ONE], [1, 0, 1]),
        (3, [2, np.uint64(1), Number.ONE], [2, 1, 1]),
        ([True, False], [np.True_, False], [True, False]),
        ([DATE, None], [DATE, None, np.datetime64("2020-02-29")], [DATE, None, DATE]),
    ]
    for categories, rows, expected in truths:
        assert dpf.randomized_response(rows, categories, 50.0).tolist() == expected
        assert [dpf.randomized_response(row, categories, 50.0) for row in rows] == expected


@pytest.mark.parametrize(("row", "categories"), [(True, [0, 1]), (1, [True, False]), (1.0, 3), ("1", [1, 2])])
def test_values_of_another_kind_are_of_no_category(row, categories):
    """4,000 rows, each answer with probability 1 / k: outside 6 deviations once in 1e8 runs; the seed is fixed."""
    answers = dpf.randomized_response([row] * 4000, categories, 50.0, random=SeededRandom(1))
    k = len(allowed(categories))
    counts = np.unique(answers, return_counts=True)[1]
    assert counts.size == k
    assert (np.abs(counts - 4000 / k) < 6 * np.sqrt(4000 / k)).all()


@pytest.mark.parametrize("rows", [["yes", "no", None, "else"], [], [None]])
def test_arrow_views_of_strings(rows):
    for values in (pa.array(rows, pa.string_view()), pa.chunked_array([rows], pa.string_view())):
        noisy = dpf.randomized_response(values, ["yes", "no"], 50.0)
        assert type(noisy) is type(values)
        assert noisy.type == pa.string_view()
        assert len(noisy) == len(rows)
        assert noisy.to_pylist()[:2] == rows[:2] or None in rows[:2]
        assert set(noisy.to_pylist()) <= {"yes", "no"}
