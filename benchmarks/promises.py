"""What plans promise beside what happens: intervals for a population, and errors that are wished for.

The population is made up, so that its figures are known. A group's units are a Poisson number of them; each has 1 to 5
rows, and larger values where it has more rows. The wishes are for groups of 200 rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpfast as dpf
from dpfast.bench import Case, Measured, Wish
from dpfast.queries import Query

from .cells import OURS

__all__ = ["cases", "population_table", "wishes_table"]

_SEED = 20_261_123
_MOST, _BOUND, _ABOVE = 5, 10.0, 3.0
_UNIT: dict[str, Any] = {"privacy_unit": "unit", "max_groups": 1, "max_rows_per_group": _MOST}

#: Means of units in each group, of a population; and how often a sample of it is drawn.
_UNITS = np.geomspace(20, 2_000, 40)
_SAMPLES = 100
_POPULATION: dict[str, tuple[str, Query]] = {
    "n": ("count", dpf.count()),
    "u": ("units", dpf.units()),
    "s": ("sum, within (0, 10)", dpf.sum("x", bounds=(0, _BOUND))),
    "m": ("mean, within (0, 10)", dpf.mean("x", bounds=(0, _BOUND))),
    "p": ("proportion", dpf.proportion("x", above=_ABOVE)),
}

_GROUPS, _ROWS, _RUNS = 200, 200, 40
_EDGES, _VALUES = [0.0, 1.0, 2.0, 4.0, 7.0, 10.0], list(range(1, 9))
_MEAN, _SHARE = dpf.mean("x", bounds=(0, _BOUND)), dpf.proportion("x", above=_ABOVE)
_LENGTH = dpf.mean("z", bounds=(0, 8))
#: What is asked with which wishes.
_WISHED: dict[str, tuple[dict[str, Query], dict[str, Any]]] = {
    "count within 50": ({"n": dpf.count()}, {"n": 50}),
    "units within 20": ({"u": dpf.units()}, {"u": 20}),
    "sum within 500": ({"s": dpf.sum("x", bounds=(0, _BOUND))}, {"s": 500}),
    "mean within 0.5": ({"m": _MEAN}, {"m": ("mean", 0.5, _ROWS)}),
    "proportion within 0.05": ({"p": _SHARE}, {"p": ("proportion", 0.05, _ROWS)}),
    "histogram, 5 bins, within 40": ({"h": dpf.histogram("x", _EDGES)}, {"h": 40}),
    "different values within 8": ({"d": dpf.count_distinct("z")}, {"d": 8}),
    "median within 40 ranks": ({"q": dpf.quantile("x", 0.5, bounds=(0, _BOUND))}, {"q": 40}),
    "most common value within 40 rows": ({"o": dpf.mode("z", candidates=_VALUES)}, {"o": 40}),
    "six of these at once": (
        {"n": dpf.count(), "u": dpf.units(), "m": _MEAN, "l": _LENGTH, "p": _SHARE, "h": dpf.histogram("x", _EDGES)},
        {
            "n": 50, "u": 20, "m": ("mean", 0.5, _ROWS), "l": ("mean", 0.5, _ROWS),
            "p": ("proportion", 0.05, _ROWS), "h": 40,
        },
    ),
}  # fmt: skip


_EPSILONS = (0.3, 1.0, 3.0)
_BUDGETS: dict[str, dict[str, Any]] = {"epsilon": {}, "epsilon, delta 1e-6": {"delta": 1e-6}, "rho": {"budget": "rho"}}
#: What is promised is broken by so large a share at most.
_SHARE = 0.05
#: A promise that holds is refuted with a probability of one in a thousand million at most.
_MISS = 1e-9
_ROUNDS, _QUICK_ROUNDS = 40, 7


def cases(suite: str) -> list[Case]:
    """Return a case for each promise: which share of answers is beyond it, and whether that refutes the promise."""
    found = [
        _case(
            suite, f"Population's intervals, epsilon {epsilon:g}: {told}", partial(_missed, name, epsilon),
            is_quick=(name, epsilon) == ("m", 1.0),
        )
        for epsilon in _EPSILONS
        for name, (told, _) in _POPULATION.items()
    ]  # fmt: skip
    return found + [
        _case(
            suite, f"Wished errors, {shown}: {told}", partial(_beyond, told, shown),
            is_quick=(told, shown) == ("six of these at once", "epsilon"),
        )
        for told in _WISHED
        for shown in _BUDGETS
    ]  # fmt: skip


def _case(suite: str, name: str, broken: Callable[[int], NDArray[np.bool_]], *, is_quick: bool) -> Case:
    """Return a case whose rounds say which answers break a promise: a row for each group, a column for each query."""

    def measure(wish: Wish) -> list[Measured]:
        rounds = _QUICK_ROUNDS if wish.is_quick else _ROUNDS
        found = []
        for number in range(rounds):
            found.append(broken(number))
            wish.tell(f"round {number + 1} of {rounds}")
        return [_judged(found)]

    return Case(suite, name, measure, is_quick=is_quick)


def _judged(found: list[NDArray[np.bool_]]) -> Measured:
    """Return the shares that are broken.

    Guarantee
        Rows are independent. Where a promise holds, at least as many of n answers as were found are beyond it with
        probability at most exp(-n KL(found / n, 0.05)), by Chernoff's bound; so a promise that holds for every column
        is refuted with probability at most 1e-9.
    """
    every = np.concatenate(found)
    rows, columns = every.shape
    share = float(every.mean(axis=0).max())
    exponent = rows * _divergence(share, _SHARE) if share > _SHARE else 0.0
    is_refuted = exponent > math.log(columns / _MISS)
    told = f"{share:.3f} of {rows:,} answers are beyond what is promised for {_SHARE:g} of them at most"
    return Measured(
        OURS, every.size, tuple(float(one.mean()) for one in found), "of answers beyond it",
        failure="refuted" if is_refuted else "", note=told if is_refuted else "",
    )  # fmt: skip


def _divergence(one: float, other: float) -> float:
    """Return the divergence of one Bernoulli law from another, in nats."""
    rest = (1 - one) * math.log((1 - one) / (1 - other)) if one < 1 else 0.0
    return one * math.log(one / other) + rest


def _missed(name: str, epsilon: float, number: int) -> NDArray[np.bool_]:
    """Return which intervals for the population do not hold it, of one sample."""
    frame = _sample(np.random.default_rng([_SEED, number]))
    low, high = _ends(frame, name, epsilon)["_population"]
    truth = _truth()[name]
    return ((truth < low) | (high < truth))[:, None]


def _beyond(told: str, shown: str, number: int) -> NDArray[np.bool_]:
    """Return which answers are farther off than was wished, of one release."""
    off = _off(_wished_frame(number), *_WISHED[told], _BUDGETS[shown])
    return np.concatenate([error.reshape(_GROUPS, -1) for error in off], axis=1) > 1


def population_table() -> list[str]:
    """Return the lines of how often intervals for the population hold it, and how wide they are."""
    lines = [
        "Intervals for a population of 40 groups of 20 to 2,000 units, in 100 samples of it",
        "",
        "| statistic | epsilon | hold it (0.95) | those of the noise alone | width, beside the sample's error alone |",
        "|---|---|---|---|---|",
    ]
    truth = _truth()
    for epsilon in _EPSILONS:
        generator = np.random.default_rng(_SEED)
        tried = [_of_sample(_sample(generator), epsilon, truth) for _ in range(_SAMPLES)]
        for place, (told, _) in enumerate(_POPULATION.values()):
            held, alone, wide = np.array([sample[place] for sample in tried]).mean(axis=0)
            lines.append(f"| {told} | {epsilon:g} | {held:.4f} | {alone:.3f} | {wide:.3g} |")
    return lines


def _sample(generator: np.random.Generator) -> pl.DataFrame:
    groups = np.repeat(np.arange(_UNITS.size), generator.poisson(_UNITS))
    rows = generator.binomial(_MOST - 1, 0.5, groups.size) + 1
    unit = np.repeat(np.arange(groups.size), rows)
    return pl.DataFrame({"key": groups[unit], "unit": unit, "x": generator.exponential(_mean_of(rows)[unit])})


def _mean_of(rows: Any) -> Any:
    """Return the mean of the values of units that have so many rows, before they are clipped."""
    return 1.0 + rows / 2.0


def _truth() -> dict[str, Any]:
    """Return the population's figures: each of a unit's possible numbers of rows by its probability."""
    rows = np.arange(1, _MOST + 1)
    chance = np.array([1, 4, 6, 4, 1]) / 16
    mean = _mean_of(rows)
    each, clipped, above = chance @ rows, mean * -np.expm1(-_BOUND / mean), np.exp(-_ABOVE / mean)
    total, many = chance @ (rows * clipped), chance @ (rows * above)
    return {"n": _UNITS * each, "u": _UNITS, "s": _UNITS * total, "m": total / each, "p": many / each}


def _of_sample(frame: pl.DataFrame, epsilon: float, truth: dict[str, Any]) -> list[tuple[float, float, float]]:
    """Return for every statistic the shares of intervals that hold the population, and how wide they are."""
    own = frame.group_by("key", "unit").agg(
        n=pl.len(), s=pl.col("x").clip(0, _BOUND).sum(), p=(pl.col("x") > _ABOVE).sum(), u=pl.lit(1)
    )
    found = []
    for name in _POPULATION:
        ends = _ends(frame, name, epsilon)
        held, alone = (
            float(np.mean((low <= truth[name]) & (truth[name] <= high)))
            for low, high in (ends["_population"], ends[""])
        )
        low, high = ends["_population"]
        found.append((held, alone, float(np.median((high - low) / _normal_width(own, name)))))
    return found


def _ends(frame: pl.DataFrame, name: str, epsilon: float) -> dict[str, list[NDArray[np.float64]]]:
    """Return the lower and upper ends of a statistic's intervals: of the noise alone, and for the population."""
    keys, query = pl.DataFrame({"key": np.arange(_UNITS.size)}), _POPULATION[name][1]
    asked: dict[str, Any] = {"keys": keys, "epsilon": epsilon, "interval": "population", **_UNIT, name: query}
    shown = dpf.release(frame, "key", ledger=dpf.Ledger(epsilon=epsilon), **asked).frame
    return {
        part: [shown[f"{name}{part}_{end}"].to_numpy() for end in ("lower", "upper")] for part in ("", "_population")
    }


def _normal_width(own: pl.DataFrame, name: str) -> Any:
    """Return the width of the usual interval for the sample's error, by what units add; nothing is private here."""
    part = {"m": "s", "p": "p"}.get(name)
    column = pl.col(name) if part is None else pl.col(part) - pl.col(part).sum() / pl.col("n").sum() * pl.col("n")
    rows = 1 if part is None else pl.col("n").sum()
    width = own.group_by("key").agg(width=2 * 1.96 * (column**2).sum().sqrt() / rows)
    keys = pl.DataFrame({"key": np.arange(_UNITS.size)})
    return keys.join(width, on="key", how="left", maintain_order="left")["width"].to_numpy()


def wishes_table() -> list[str]:
    """Return the lines of what wishes cost, and how often answers are farther off."""
    lines = [
        "Wished errors, in groups of 200 rows: 40 runs of 200 groups",
        "",
        "| wish | budget | of it | beyond the wish (0.05 at most) | 95% are within, of the wish | one by one |",
        "|---|---|---|---|---|---|",
    ]
    frame = _wished_frame()
    for told, (queries, wishes) in _WISHED.items():
        for shown, given in _BUDGETS.items():
            cost = _cost(_wished_plan(frame, queries, wishes, given))
            apart = sum(
                _cost(_wished_plan(frame, {name: queries[name]}, {name: wishes[name]}, given)) for name in queries
            )
            runs = [error.ravel() for _ in range(_RUNS) for error in _off(frame, queries, wishes, given)]
            off = np.concatenate(runs)
            beside = f"{apart:.3g}" if len(queries) > 1 else ""
            lines.append(
                f"| {told} | {shown} | {cost:.3g} | {np.mean(off > 1):.3f} | {np.quantile(off, 0.95):.2f} | {beside} |"
            )
    return lines


def _wished_frame(number: int = 0) -> pl.DataFrame:
    generator = np.random.default_rng([_SEED, number])
    size = _GROUPS * _ROWS
    x, z = np.minimum(generator.exponential(3.0, size), 9.999), np.minimum(generator.geometric(0.4, size), _VALUES[-1])
    key = np.repeat(np.arange(_GROUPS), _ROWS)
    return pl.DataFrame({"key": key, "unit": np.arange(size) // _MOST, "x": x, "z": z})


def _wished_plan(frame: pl.DataFrame, queries: dict[str, Query], wishes: dict[str, Any], given: dict[str, Any]) -> Any:
    keys = pl.DataFrame({"key": np.arange(_GROUPS)})
    return dpf.plan(frame, "key", keys=keys, error=wishes, **_UNIT, **given, **queries)


def _cost(plan: Any) -> float:
    return float(plan.epsilon if plan.rho is None else plan.rho)


def _off(
    frame: pl.DataFrame, queries: dict[str, Query], wishes: dict[str, Any], given: dict[str, Any]
) -> list[NDArray[np.float64]]:
    """Return how far all answers of a release are off, in their wishes: an array of each query, a row a group."""
    plan = _wished_plan(frame, queries, wishes, given)
    ledger = (
        dpf.Ledger(plan.epsilon, 1e-6) if plan.rho is None else dpf.Ledger(epsilon=100.0, delta=1e-6, accountant="zcdp")
    )
    shown = plan.run(ledger).frame
    x, z = frame["x"].to_numpy().reshape(_GROUPS, -1), frame["z"].to_numpy().reshape(_GROUPS, -1)
    exact = {
        "n": np.full(_GROUPS, _ROWS), "u": np.full(_GROUPS, _ROWS // _MOST), "s": x.sum(axis=1), "m": x.mean(axis=1),
        "l": z.mean(axis=1), "p": (x > _ABOVE).mean(axis=1), "d": np.array([np.unique(row).size for row in z]),
        "h": np.stack([np.histogram(row, _EDGES)[0] for row in x]),
    }  # fmt: skip
    off = []
    for name in queries:
        wish = wishes[name][1] if isinstance(wishes[name], tuple) else wishes[name]
        found = np.array(shown[name].to_list())
        if name == "q":
            error = np.abs((x <= found[:, None]).sum(axis=1) - _ROWS / 2)
        elif name == "o":
            counts = (z[:, :, None] == np.array(_VALUES)).sum(axis=1)
            error = counts.max(axis=1) - (z == found[:, None]).sum(axis=1)
        else:
            error = np.abs(found - exact[name])
        off.append(error / wish)
    return off
