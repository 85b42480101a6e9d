"""Errors as cases of the suite accuracy: every table of benchmarks/*_errors.py, and the promises of plans.

A figure is the error of one run. Of the many combinations of benchmarks/dpbench, which has a command of its own, there
are a few.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from dpfast.bench import Case, Wish

from . import (
    bounds_errors,
    census_errors,
    column_errors,
    fitted_marginals,
    five_columns,
    flight_errors,
    keys_shown,
    limit_errors,
    projection_errors,
    promises,
    quantile_errors,
    query_errors,
)
from .cells import OURS, Cell, Errors, case_of

__all__ = ["cases"]

_TABLES = (
    column_errors,
    quantile_errors,
    query_errors,
    flight_errors,
    bounds_errors,
    limit_errors,
    keys_shown,
    projection_errors,
    five_columns,
    census_errors,
    fitted_marginals,
)

#: What is asked of which histogram: a name, its shape, records, epsilon, queries.
_HISTOGRAMS = (
    ("zipf", (1024,), 10**5, 0.1, "identity"),
    ("few steps", (4096,), 10**4, 0.1, "prefix"),
    ("few spikes", (1024,), 10**6, 1.0, "random ranges"),
    ("several clusters", (64, 64), 10**5, 0.1, "rectangles"),
    ("roads", (128, 128), 10**6, 0.1, "marginals"),
)


def cases(suite: str, wish: Wish) -> list[Case]:
    """Return all tables of errors whose data are installed."""
    cells = [*(cell for table in _TABLES for cell in table.cells()), *_histograms()]
    return [*(case_of(suite, cell) for cell in cells), *promises.cases(suite)]


def _histograms() -> Iterator[Cell]:
    """Yield cells of the histograms of benchmarks/dpbench: the choice, and all that it may choose."""
    from .dpbench.datasets import named
    from .dpbench.mechanisms import BASELINE, CHOICE, mechanisms_named
    from .dpbench.mechanisms import OURS as MECHANISMS
    from .dpbench.questions import workload_named
    from .dpbench.trials import Combination, in_turns, shape_name

    def errors(name: str, shape: tuple[int, ...], scale: int, epsilon: float, queries: str, is_quick: bool) -> Errors:
        [dataset] = named([name], held_out=False)
        workload = workload_named(queries, shape)
        others = [
            one.name
            for one in mechanisms_named(MECHANISMS)
            if one.name not in (CHOICE, BASELINE) and one.fits(workload)
        ]
        found = in_turns(Combination(dataset, shape, scale, epsilon, queries), [CHOICE, *others])
        return {OURS if name == CHOICE else f"{OURS}: {name}": error for name, error in found.items()}

    for place, (name, shape, scale, epsilon, queries) in enumerate(_HISTOGRAMS):
        asked = f"{queries} of a histogram, {name}, {shape_name(shape)}".capitalize()
        told = f"{asked}, {scale:,} records, epsilon {epsilon:g}"
        yield Cell(told, "scaled error", partial(errors, name, shape, scale, epsilon, queries), is_quick=place == 0)
