"""The suite scaling: cost per value from 1,000 on, with one thread and with all cores, and peaks of memory.

A case has all sizes; contestants of one size take turns. The last row of ours says where its cost bends.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dpfast as dpf
from dpfast.bench import Case, Measured, Wish, seconds_of
from dpfast.bench.bends import told_bend
from dpfast.bench.cases import measured_in_turns
from dpfast.bench.machine import this_machine
from dpfast.cores import core_count

from . import scaling

__all__ = ["cases"]

_ROUNDS = 7
_QUICK_LARGEST = 10**6
#: Each figure of a file is of a new process, a second of loading libraries.
_QUICK_FILES = (10**3, 10**6)
#: A round of few values makes several calls, so that it is no shorter than one of so many values.
_LEAST = 10**5
#: Bytes that a value takes at most: what is read, what is drawn, and what NumPy makes between.
_BYTES_EACH = 40
_OF_FILES = {"rows": scaling.ROW_KINDS, "units": ("units",), "queries": ("queries",)}
_Runs = Mapping[str, Callable[[], Any]]


def cases(suite: str, wish: Wish) -> list[Case]:
    """Return the cases: those of files have processes of their own, whose peaks of memory are measured."""
    in_memory = {
        "Laplace noise, int64": _noise,
        "Exponential mechanism, rows of 100": _selection,
        "Prefix sums": _prefixes,
    }
    found = [Case(suite, name, partial(_measure, prepare), is_quick=True) for name, prepare in in_memory.items()]
    found.append(Case(suite, "Laplace noise, by threads", _measure_threads, is_quick=True))
    names = {"rows": "Counts by key of Parquet", "units": "Counts bounded by unit", "queries": "Queries answered"}
    files = (Case(suite, name, partial(_measure_files, kind), is_quick=kind == "rows") for kind, name in names.items())
    return [*found, *files]


def _sizes(wish: Wish) -> list[int]:
    fitting = this_machine().memory * 2**30 / 2 / _BYTES_EACH
    largest = min(_QUICK_LARGEST, wish.largest) if wish.is_quick else wish.largest
    return scaling.sizes(largest if math.isnan(fitting) else min(largest, int(fitting)))


def _noise(size: int) -> _Runs:
    draw = np.random.default_rng(20_261_123)
    values = draw.integers(0, 1000, size)
    return {
        "dpfast": lambda: dpf.laplace(values, 10.0, threads=1),
        "dpfast, all cores": lambda: dpf.laplace(values, 10.0),
        "NumPy": lambda: np.rint(values + draw.laplace(0.0, 10.0, size)).astype(np.int64),
    }


def _selection(size: int) -> _Runs:
    draw = np.random.default_rng(20_261_123)
    scores = draw.normal(0.0, 3.0, (size // 100, 100))
    return {
        "dpfast": lambda: dpf.exponential(scores, epsilon=1.0, threads=1),
        "NumPy": lambda: np.argmax(scores * 0.5 + draw.gumbel(size=scores.shape), axis=1),
    }


def _prefixes(size: int) -> _Runs:
    values = np.random.default_rng(20_261_123).integers(0, 1000, size)
    workload = dpf.workloads.prefix(size)
    return {"dpfast": lambda: workload.answer(values), "NumPy": lambda: np.cumsum(values)}


def _measure(prepare: Callable[[int], _Runs], wish: Wish) -> list[Measured]:
    by_size = {}
    for size in _sizes(wish):
        calls = max(1, _LEAST // size)
        runs = prepare(size)
        trials = {name: (partial(_each, run, calls), size) for name, run in runs.items()}
        by_size[size] = measured_in_turns(trials, _ROUNDS, tell=lambda told, size=size: wish.tell(f"{size:,}: {told}"))
    return list(_with_bend(by_size))


def _each(run: Callable[[], Any], calls: int) -> float:
    """Return how long a call takes, of several."""

    def many() -> None:
        for _ in range(calls):
            run()

    return seconds_of(many)() / calls


def _measure_threads(wish: Wish) -> list[Measured]:
    size = _sizes(wish)[-1]
    values = np.random.default_rng(20_261_123).integers(0, 1000, size)
    trials = {
        "dpfast" if threads == 1 else f"dpfast, {threads} threads": (
            seconds_of(partial(dpf.laplace, values, 10.0, threads=threads)),
            size,
        )
        for threads in range(1, core_count() + 1)
    }
    return measured_in_turns(trials, _ROUNDS, tell=wish.tell)


def _measure_files(kind: str, wish: Wish) -> list[Measured]:
    by_size: dict[int, list[Measured]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder, runs = Path(name), [run for run in _OF_FILES[kind] if not wish.is_quick or run != "reading alone"]
        sizes = scaling.sizes(wish.largest if kind == "rows" else wish.largest // 10) or [1000]
        for size in _QUICK_FILES if wish.is_quick else sizes:
            rows = scaling.ROWS_OF_A_UNIT * size if kind == "units" else size
            scaling.files_of(folder, "units" if kind == "units" else _OF_FILES[kind][0], rows)
            by_size[rows] = list(_of_processes(runs, folder, rows, wish))
    return list(_with_bend(by_size))


def _of_processes(runs: Iterable[str], folder: Path, rows: int, wish: Wish) -> Iterator[Measured]:
    """Yield the figures of runs in turns, each in a process of its own: its seconds, and its peak of memory."""
    found: dict[str, list[dict[str, float] | None]] = {run: [] for run in runs}
    rounds = 1 if wish.is_quick else _ROUNDS if rows <= 10**6 else 3
    for done in range(rounds):
        for run, figures in found.items():
            wish.tell(f"{rows:,} rows, {run}: round {done + 1} of {rounds}")
            figures.append(scaling.measure(run, folder, rows))
    for run, figures in found.items():
        some = [one for one in figures if one is not None]
        name = run if run in ("Polars", "reading alone") else "dpfast"
        if len(some) < rounds:
            yield Measured(name, rows, (), per_value=True, failure="raised", note="its process was killed")
        else:
            seconds, peak = tuple(one["seconds"] for one in some), max(one["peak"] for one in some)
            yield Measured(name, rows, seconds, per_value=True, peak=peak)


def _with_bend(by_size: Mapping[int, list[Measured]]) -> Iterator[Measured]:
    """Yield what was measured; the last one of ours with a sentence on where its cost bends."""
    ours = {size: found[0].figures for size, found in by_size.items() if found and found[0].figures}
    for size, found in by_size.items():
        for place, one in enumerate(found):
            note = told_bend(ours) if place == 0 and size == max(ours, default=0) else one.note
            yield Measured(**{**vars(one), "note": note, "is_first": place == 0})
