"""A mechanism of a user's own: its protocol, its cases, and that a wrong one is caught."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from benchmarks import own
from dpfast.bench.cases import Wish
from dpfast.bench.own import Budget, checked
from dpfast.errors import ParameterError

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_mechanism.py"


@pytest.fixture(scope="module")
def example():
    described = importlib.util.spec_from_file_location("own_mechanism", EXAMPLE)
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module


def wish(mechanism, **budget):
    return Wish(is_quick=True, own=("mine", mechanism), budget=Budget(**({"epsilon": 1.0} | budget)))


def test_what_it_returns_is_checked():
    given = {"n": np.arange(3), "m": np.arange(2)}
    assert checked(given, {"m": [1, 2], "n": (1.5, 2, 3)})["n"].tolist() == [1.5, 2.0, 3.0]
    for wrong, told in (
        ([1, 2, 3], "list"),
        ({"n": [1, 2, 3]}, "returned n"),
        ({}, "no column"),
        ({"n": [1, 2], "m": [1, 2]}, "returned 2 for n"),
        ({"n": 5, "m": [1, 2]}, "a single value for n"),
        ({"n": ["a", "b", "c"], "m": [1, 2]}, "for n"),
    ):
        with pytest.raises(ParameterError, match=told):
            checked(given, wrong)


def test_neighbours_differ_by_one_row():
    for one, other in own.neighbours().values():
        assert np.abs(one["count"] - other["count"]).sum() == 1


def privacy(mechanism, *only, **budget):
    asked = wish(mechanism, **budget)
    cases = [case for case in own.cases("privacy", asked) if not only or case.name in only]
    return {case.name: next(iter(case.measure(asked))) for case in cases}


@pytest.mark.statistical
def test_the_right_one_passes_and_the_wrong_one_is_caught(example):
    """False-failure rate: 5e-9, of five audits at confidence 1 - 1e-9; a wrong one is missed far less often.

    Where the wrong one puts out 0 always, the right one puts out something else in 82 of 100 runs.
    """
    assert [one.failure for one in privacy(example.geometric).values()] == [""] * 5
    found = privacy(example.only_what_is_there, "mine: the only row goes", "mine: one row of many goes")
    assert found["mine: the only row goes"].failure == "refuted"
    assert found["mine: one row of many goes"].failure == ""
    note = found["mine: the only row goes"].note
    assert "epsilon 1 is not true" in note
    assert "confidence 0.999999999" in note
    # What tells the two apart best, one figure or a set of whole outputs, differs from run to run.
    assert "event: " in note
    assert "count" in note.partition("event: ")[2]


def test_half_of_the_noise_that_is_needed_is_caught(example):
    """A wrong scale is refuted where the loss of one outcome tells: of epsilon 2 it spends 4."""
    only = "mine: the only row goes"
    found = privacy(lambda columns, budget: example.geometric(columns, Budget(2 * budget.epsilon)), only, epsilon=2.0)
    assert found[only].failure == "refuted"


@pytest.mark.parametrize("suite", ["speed", "accuracy"])
def test_it_stands_beside_ours_and_numpy(example, suite):
    asked = wish(example.geometric)
    [case, *_] = own.cases(suite, asked)
    found = list(case.measure(asked))
    assert [one.contestant for one in found] == ["dpfast", "mine", "NumPy"]
    assert all(len(one.figures) == 7 and min(one.figures) > 0 for one in found)


def test_its_error_is_that_of_its_noise(example):
    """The mean of 1,024 absolute values of noise of scale 1 is 0.92 (discrete) to 1, within 0.2: five deviations."""
    asked = wish(example.geometric)
    for case in own.cases("accuracy", asked):
        if case.name.startswith("cells"):
            for one in case.measure(asked):
                assert np.median(one.figures) == pytest.approx(0.95, abs=0.2)


def test_one_that_raises_is_said_to(example):
    def broken(columns, budget):
        raise ValueError("no delta, no noise")

    asked = wish(broken)
    for suite in ("speed", "accuracy"):
        found = list(own.cases(suite, asked)[0].measure(asked))
        assert [(one.contestant, one.failure) for one in found] == [("dpfast", ""), ("mine", "raised"), ("NumPy", "")]
    assert {one.failure for one in privacy(broken).values()} == {"raised"}


def test_one_that_changes_what_it_was_given_harms_nobody():
    def spoiling(columns, budget):
        columns["count"][:] = 7
        return columns

    asked = wish(spoiling)
    case = own.cases("accuracy", asked)[0]
    found = {one.contestant: one for one in case.measure(asked)}
    assert np.median(found["dpfast"].figures) < 2


def test_without_a_mechanism_there_is_no_case():
    assert own.cases("speed", Wish()) == []
