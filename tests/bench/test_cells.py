"""Cells of tables as cases, and promises that are refuted where they are false."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks import accuracy, column_errors, promises
from benchmarks.cells import Cell, case_of, medians, table_lines
from dpfast.bench.cases import Wish

FEW = Wish(is_quick=True)


def cell(errors=None):
    def everyone(is_quick):
        return errors or {"dpfast": lambda: 1.0, "other": lambda: 2.0 + is_quick}

    return Cell("a", "ranks", everyone, row=("a", "1"))


def test_a_cell_is_a_case_and_a_line_of_a_table():
    found = case_of("accuracy", cell()).measure(FEW)
    assert [(one.contestant, one.figures, one.unit) for one in found] == [
        ("dpfast", (1.0,) * 7, "ranks"), ("other", (3.0,) * 7, "ranks"),
    ]  # fmt: skip
    assert medians(cell(), 3) == {"dpfast": 1.0, "other": 2.0}
    assert list(table_lines(["what", "size"], [cell()], {"the other": "other", "none": "none"}, 1)) == [
        "| what | size | the other | none |", "|---|---|---|---|", "| a | 1 | 2 |  |",
    ]  # fmt: skip


def test_a_contestant_that_raises_leaves_the_others():
    found = case_of("accuracy", cell({"dpfast": lambda: 1.0, "broken": lambda: 1 / 0})).measure(FEW)
    assert [one.failure for one in found] == ["", "raised"]


def test_every_cell_is_named_by_what_is_asked():
    names = [case.name for case in accuracy.cases("accuracy", Wish())]
    assert len(set(names)) == len(names)
    quick = [case.name for case in accuracy.cases("accuracy", FEW) if case.is_quick]
    assert 15 <= len(quick) <= 40


def broken(share, rows, columns, seed):
    print("seed", seed)
    return [np.random.default_rng(seed).random((rows, columns)) < share]


@pytest.mark.statistical
@pytest.mark.parametrize("share", [0.0, 0.02, 0.05])
def test_a_promise_that_holds_is_not_refuted(share):
    """False-failure rate 1e-9 each, by Chernoff's bound."""
    assert promises._judged(broken(share, 2_000, 5, 20_261_123)).failure == ""


@pytest.mark.statistical
@pytest.mark.parametrize("shares", [(0.12, 1), (0.5, 3), (1.0, 1)])
def test_a_promise_that_is_broken_is_refuted(shares):
    """False-failure rate below 1e-9: of 2,000 answers 200 are needed, and 240 are expected, with a deviation of 15."""
    found = promises._judged(broken(shares[0], 4_000, shares[1], 20_261_124))
    assert found.failure == "refuted"
    assert "answers are beyond what is promised for 0.05" in found.note


def test_one_column_that_breaks_its_promise_is_enough():
    every = np.zeros((2_000, 9), np.bool_)
    every[:400, 4] = True
    assert promises._judged([every]).failure == "refuted"
    assert promises._judged([every[:, :4]]).failure == ""


def test_the_divergence_is_that_of_two_coins():
    assert promises._divergence(1.0, 0.05) == pytest.approx(math.log(20))
    assert promises._divergence(0.5, 0.5) == 0
    assert promises._divergence(0.1, 0.05) == pytest.approx(0.1 * math.log(2) + 0.9 * math.log(0.9 / 0.95))


@pytest.mark.parametrize("statistic", ["count", "sum", "mean", "median"])
def test_statistics_of_one_column_are_near_the_exact_ones(statistic):
    """The error of a release of 1,000 values lies below a twentieth of the figure but with probability e**-20."""
    errors = column_errors._of(statistic, "normal", 1_000, is_quick=True)
    exact = {"count": 1_000, "sum": 50_000, "mean": 50, "median": 50}[statistic]
    assert errors["dpfast"]() < exact / 20
