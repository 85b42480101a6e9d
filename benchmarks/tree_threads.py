"""What two threads give a graphical model, where it is fitted and where records are drawn; written to tree_threads.md.

    python -m benchmarks.tree_threads

The table is that of `benchmarks.census`. One thread and two draw the same records in turns, and the least of each is
kept. Of the fit the time of every step that could be shared is taken, beside what it costs to share one.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

import dpfast as dpf
from dpfast.graphical import tree_marginals, tree_weights
from dpfast.graphical.views import View
from dpfast.threads import share

from .census import SIZES, make_records

__all__ = ["main"]

_EPSILON, _DELTA, _MEGABYTES = 1.0, 1e-9, (4, 80)
_RECORDS = {2 * 10**6: 7, 10**7: 3}
_STEPS: dict[str, tuple[Any, str]] = {
    "sums of tables": (View, "sums"),
    "products of tables": (View, "multiply"),
    "counts fitted": (tree_weights, "fit_masses"),
    "marginals beyond cliques": (tree_marginals, "_contract"),
}
ABOUT = f"""# Threads for a graphical model

Written by `python -m benchmarks.tree_threads`: the table of benchmarks/census.py, {len(SIZES)} columns,
`dpf.synthesize` with epsilon={_EPSILON:g}, delta={_DELTA:g}.

## Drawing records

`Synthesis.draw_parts` with one thread and with two, in turns: the least seconds of each,
on the wall and of a processor.

| records | one thread, s | two threads, s | times as fast | processor, one | processor, two |
|---|---|---|---|---|---|
"""
LIMIT = """
Each thread draws a part of 262,144 records: 15 MB of codes, and 8 MB of words and places, which is more than the cache
of a core; each further thread has as much. A part waits for the one before at each clique: of two parts and C cliques
two threads gain 2 C / (C + 1) at most. Values of rare groups are drawn by one thread. What two threads take of a
processor beyond one's time is memory that both wait for.

## Fitting

Microseconds of a step, and how long all of them take together. To share work between two threads costs {share:.0f}
microseconds, so that two threads could save the last column at most, had each step two equal halves.

| model, MB at most | step | steps | median, us | mean, us | all, s | saved at most, s |
|---|---|---|---|---|---|---|
"""
AFTER = """
The whole took {whole} s of one thread, and what could be saved of that is {saved}.
So the fit stays with one: its steps are many and short, and they follow each other. Each count is fitted to weights
that know of the one before, and a message is sent when all is fitted that it tells of. Models differ from run to run,
and one with wide tables between cliques takes longer. Counting the rows does take threads.
"""


def _seconds(run: Callable[[], object]) -> tuple[float, float]:
    """Return how long a call takes on the wall and of a processor."""
    wall, own = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - own


def _draw(made: dpf.Synthesis, records: int, threads: int) -> None:
    for _ in made.draw_parts(records, threads=threads):
        pass


@contextmanager
def _timed(found: dict[str, list[float]]) -> Iterator[None]:
    """Note how long each step of a fit takes."""
    before = {name: getattr(owner, step) for name, (owner, step) in _STEPS.items()}

    def noting(name: str) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            start = time.thread_time()
            result = before[name](*arguments)
            found[name].append(time.thread_time() - start)
            return result

        return run

    for name, (owner, step) in _STEPS.items():
        setattr(owner, step, noting(name))
    try:
        yield
    finally:
        for name, (owner, step) in _STEPS.items():
            setattr(owner, step, before[name])


def _cost_of_sharing() -> float:
    """Return the seconds on the wall that it takes to share nothing; a tenth of all tries took no longer."""
    return statistics.quantiles((_seconds(lambda: share(list, 2, 2))[0] for _ in range(2000)), n=10)[0]


def _saved(steps: list[float], cost: float) -> float:
    """Return the seconds that two threads save at most, where they share the steps that are long enough for it."""
    return sum(max(one / 2 - cost, 0.0) for one in steps)


def main() -> None:
    """Measure, and write."""
    data = pl.DataFrame({f"x{place}": codes for place, codes in enumerate(make_records())})
    domain = dpf.Domain({f"x{place}": size for place, size in enumerate(SIZES)})
    budget = {"epsilon": _EPSILON, "delta": _DELTA}

    def fit(megabytes: float) -> dpf.Synthesis:
        return dpf.synthesize(data, domain, max_megabytes=megabytes, ledger=dpf.Ledger(**budget), **budget)

    _draw(fit(1.0), 10**6, 2)  # what is compiled
    cost, fits, wholes, gains = _cost_of_sharing(), "", [], []
    for megabytes in _MEGABYTES:
        found: dict[str, list[float]] = {name: [] for name in _STEPS}
        start = time.thread_time()
        with _timed(found):
            made = fit(megabytes)
        wholes.append(f"{time.thread_time() - start:.2f}")
        gains.append(f"{sum(_saved(each, cost) for each in found.values()):.2f}")
        for name, each in found.items():
            middle, mean = statistics.median(each) * 1e6, statistics.mean(each) * 1e6
            fits += f"| {megabytes} | {name} | {len(each):,} | {middle:.0f} | {mean:.0f} "
            fits += f"| {sum(each):.2f} | {_saved(each, cost):.3f} |\n"
    rows = ""
    for records, times in _RECORDS.items():
        tries = [[_seconds(lambda n=records, t=t: _draw(made, n, t)) for t in (1, 2)] for _ in range(times)]
        (one, own_one), (two, own_two) = (min(turn[place] for turn in tries) for place in (0, 1))
        rows += f"| {records:,} | {one:.2f} | {two:.2f} | {one / two:.2f} | {own_one:.2f} | {own_two:.2f} |\n"
    after = AFTER.format(whole=" and ".join(wholes), saved=" and ".join(gains))
    Path(__file__).with_suffix(".md").write_text(f"{ABOUT}{rows}{LIMIT.format(share=cost * 1e6)}{fits}{after}")


if __name__ == "__main__":
    main()
