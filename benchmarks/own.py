"""A mechanism of the user's beside ours and NumPy's, in the suites speed, accuracy and privacy.

All take a histogram: counts of disjoint groups, of which one row that is added or removed changes one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import dpfast as dpf
from dpfast.bench import Budget, Case, Measured, Mechanism, Wish, seconds_of
from dpfast.bench.cases import measured_in_turns
from dpfast.bench.own import checked
from dpfast.bench.rounds import told_error
from dpfast.errors import ParameterError

from .privacy import audited

__all__ = ["cases", "neighbours"]

_SEED = 20_261_123
_CELLS, _QUICK_CELLS = 10**6, 10**5
_ROUNDS, _RUNS = 7, 31


def dpfast_laplace(columns: Mapping[str, np.ndarray], budget: Budget, /) -> dict[str, Any]:
    """Certified noise of the whole budget on every column."""
    return {name: dpf.laplace(column, budget.scale, threads=1) for name, column in columns.items()}


def numpy_laplace(columns: Mapping[str, np.ndarray], budget: Budget, /) -> dict[str, Any]:
    """What one would write with NumPy, rounded to whole numbers."""
    draw = np.random.default_rng()
    return {
        name: np.rint(column + draw.laplace(0.0, budget.scale, column.size)).astype(np.int64)
        for name, column in columns.items()
    }


def neighbours() -> dict[str, tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """Return pairs of histograms that one row tells apart, by what is particular about them."""
    pairs = {
        "an empty cell gets a row": ([0, 0, 5, 2], [0, 1, 5, 2]),
        "the only row goes": ([1], [0]),
        "one row of many goes": ([1000, 1000], [1000, 999]),
        "the largest cell changes": ([9, 3, 3], [10, 3, 3]),
        "64 empty cells": ([0] * 64, [0] * 63 + [1]),
    }
    return {
        name: tuple({"count": np.array(cells, np.int64)} for cells in pair)  # type: ignore[misc]
        for name, pair in pairs.items()
    }


def _histograms() -> dict[str, np.ndarray]:
    """Return counts of several shapes: what a mechanism is good at depends on them."""
    draw = np.random.default_rng(_SEED)
    cells = 1024
    steps = np.repeat([400, 0, 40, 3], cells // 4)
    return {
        "smooth": np.rint(200 * np.exp(-(((np.arange(cells) - 300) / 150) ** 2))).astype(np.int64),
        "steps": draw.poisson(steps),
        "sparse": np.where(draw.random(cells) < 0.02, draw.geometric(0.01, cells), 0),
        "Zipf": np.sort(draw.multinomial(100_000, (w := 1 / np.arange(1, cells + 1)) / w.sum()))[::-1].copy(),
    }


def cases(suite: str, wish: Wish) -> list[Case]:
    """Return the cases of a user's mechanism; none without one."""
    if wish.own is None:
        return []
    name, mechanism = wish.own
    everyone: dict[str, Mechanism] = {"dpfast": dpfast_laplace, name: mechanism, "NumPy": numpy_laplace}
    if suite == "speed":
        return [Case(suite, "A histogram's noise", partial(_speed, everyone), is_quick=True)]
    if suite == "accuracy":
        return [
            Case(suite, f"{what} of 1,024 cells, {shape}", partial(_accuracy, everyone, counts, what), is_quick=True)
            for shape, counts in _histograms().items()
            for what in ("cells", "ranges")
        ]
    return [
        Case(suite, f"{name}: {told}", partial(_privacy, name, mechanism, pair), is_quick=True)
        for told, pair in neighbours().items()
    ]


def _run(mechanism: Mechanism, columns: Mapping[str, np.ndarray], budget: Budget) -> dict[str, np.ndarray]:
    return checked(columns, _returned(mechanism, columns, budget))


def _returned(mechanism: Mechanism, columns: Mapping[str, np.ndarray], budget: Budget) -> Any:
    return mechanism({name: column.copy() for name, column in columns.items()}, budget)


def _speed(everyone: Mapping[str, Mechanism], wish: Wish) -> list[Measured]:
    cells = _QUICK_CELLS if wish.is_quick else _CELLS
    counts = np.random.default_rng(_SEED).integers(0, 1000, cells)

    def timed(mechanism: Mechanism) -> Callable[[], float]:
        columns = {"count": counts.copy()}
        return seconds_of(lambda: checked(columns, mechanism(columns, wish.budget)))

    trials = {name: (timed(one), cells) for name, one in everyone.items()}
    return measured_in_turns(trials, _ROUNDS, tell=wish.tell)


def _accuracy(everyone: Mapping[str, Mechanism], counts: np.ndarray, what: str, wish: Wish) -> list[Measured]:
    """Mean absolute errors at the same budget: of cells, or of 500 ranges drawn once."""
    columns = {"count": counts}
    ends = np.sort(np.random.default_rng(_SEED).integers(0, counts.size + 1, (500, 2)), axis=1)

    def error_of(mechanism: Mechanism) -> Callable[[], float]:
        def error() -> float:
            off = np.asarray(_run(mechanism, columns, wish.budget)["count"], np.float64) - counts
            if what == "ranges":
                summed = np.concatenate([[0.0], np.cumsum(off)])
                off = summed[ends[:, 1]] - summed[ends[:, 0]]
            return float(np.abs(off).mean())

        return error

    trials = {name: (error_of(one), counts.size) for name, one in everyone.items()}
    return measured_in_turns(trials, _ROUNDS if wish.is_quick else _RUNS, unit="mean error", tell=wish.tell)


def _privacy(name: str, mechanism: Mechanism, pair: tuple[Any, Any], wish: Wish) -> list[Measured]:
    budget, wrong = wish.budget, ""

    def drawn(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        nonlocal wrong
        found = _returned(mechanism, columns, budget)
        try:
            return checked(columns, found)
        except ParameterError as error:
            wrong = wrong or told_error(error)
            raise

    samples = 4_000 if wish.is_quick else 40_000
    found = audited(name, drawn, *pair, budget.epsilon, budget.delta, samples, tell=wish.tell)
    # To an audit an error is an output like others: what breaks the protocol must not pass for private.
    is_broken = wrong and found.failure != "refuted"
    return [replace(found, figures=(), failure="raised", note=wrong) if is_broken else found]
