"""All combinations, by several processes; what is done is written down as the run goes on."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from .datasets import Dataset, digest
from .mechanisms import Mechanism
from .questions import workload_named, workloads_for
from .storage import code_digest, resumed, write_results
from .trials import SCHEMA, Combination, measure

__all__ = ["combinations", "run"]

#: The results are written so often, in seconds.
_WRITE_EVERY = 15.0
_SINGLE_THREADED = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS")

Work = tuple[Combination, list[tuple[str, int]]]


def combinations(
    datasets: Iterable[Dataset],
    sides: dict[int, Sequence[int]],
    scales: Sequence[int],
    epsilons: Sequence[float],
    workloads: Sequence[str],
    *,
    most: int | None = None,
    seed: int = 2016,
) -> list[Combination]:
    """Return every combination in random order, or so many of them, drawn at random.

    Parameters
    ----------
    sides
        By the number of axes, how many cells along each.
    most
        None for all.

    """
    found = [
        Combination(dataset, shape, scale, epsilon, workload)
        for dataset in datasets
        for shape in dataset.shapes(sides[dataset.axes])
        for workload in workloads_for(shape, workloads)
        for scale in scales
        for epsilon in epsilons
    ]
    random.Random(seed).shuffle(found)
    return found[:most]


def run(
    wanted: Sequence[Combination],
    mechanisms: Sequence[Mechanism],
    trials: int,
    path: Path | None,
    *,
    seed: int = 2016,
    processes: int = 1,
    resume: bool = False,
    progress: bool = False,
) -> pl.DataFrame:
    """Measure all mechanisms on all combinations, and return a row for each trial.

    Parameters
    ----------
    path
        Where results are written, again and again while the run goes on; None for nowhere.
    resume
        Whether rows of the file are taken over: those of the same seed, data and code. What is missing is run.
    processes
        1: this one. More: so many, each with one thread.
    progress
        Whether to show a bar.

    """
    kept, left_out = resumed(path, seed) if resume and path is not None else (pl.DataFrame(schema=SCHEMA), 0)
    if left_out:
        print(f"{left_out:,} rows of {path} are of another seed or of other code, and measured again if asked for")
    kept, work = _left_to_do(kept, wanted, mechanisms, trials)
    rows, written = [kept], time.monotonic()
    try:
        with _shown(len(work), progress) as tell:
            for new in _measured(work, seed, processes):
                rows.append(pl.DataFrame(new, SCHEMA, orient="row"))
                tell()
                if path is not None and time.monotonic() - written > _WRITE_EVERY:
                    rows = [pl.concat(rows)]
                    write_results(rows[0], path)
                    written = time.monotonic()
    finally:
        result = pl.concat(rows)
        if path is not None:
            write_results(result, path)
    return result


def _left_to_do(
    kept: pl.DataFrame, wanted: Sequence[Combination], mechanisms: Sequence[Mechanism], trials: int
) -> tuple[pl.DataFrame, list[Work]]:
    """Return the rows of a file whose data are still the same, and what is missing beside them."""
    done: dict[tuple[object, ...], set[tuple[str, int]]] = {}
    data = {(one.dataset.name, one.key[1]): digest(one.dataset.shares(one.shape)) for one in wanted if kept.height}
    same = [data.get((name, shape), old) == old for name, shape, old in kept["dataset", "shape", "data"].iter_rows()]
    kept = kept.filter(pl.Series(same, dtype=pl.Boolean))
    for *key, name, trial in kept.select(*SCHEMA.names()[:1], *SCHEMA.names()[3:9]).iter_rows():
        done.setdefault(tuple(key), set()).add((name, trial))
    work = []
    for one in wanted:
        asked = workload_named(one.workload, one.shape)
        fitting = [mechanism.name for mechanism in mechanisms if mechanism.fits(asked)]
        missing = [(name, trial) for trial in range(trials) for name in fitting]
        if missing := [pair for pair in missing if pair not in done.get(one.key, ())]:
            work.append((one, missing))
    return kept, work


def _measured(work: Sequence[Work], seed: int, processes: int) -> Iterator[list[tuple[object, ...]]]:
    """Give the rows of each combination as they are done."""
    code = code_digest()
    if processes == 1:
        yield from (measure(combination, missing, seed, code) for combination, missing in work)
        return
    before = {name: os.environ.get(name) for name in _SINGLE_THREADED}
    os.environ.update(dict.fromkeys(_SINGLE_THREADED, "1"))
    waiting: set[Future[list[tuple[object, ...]]]] = set()
    try:
        with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _leave_interrupts) as pool:
            try:
                for combination, missing in work:
                    waiting.add(pool.submit(measure, combination, missing, seed, code))
                    if len(waiting) >= 4 * processes:
                        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                        yield from (future.result() for future in done)
                while waiting:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            except BrokenProcessPool:
                raise SystemExit("a process was killed; --resume goes on from what was written") from None
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _leave_interrupts() -> None:
    """Leave the interrupt of a terminal, which reaches all processes, to the one that writes the results."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _shown(total: int, progress: bool) -> Iterator[Callable[[], object]]:
    """Give a function that is called for each combination that is done."""
    if not progress:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("combinations"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("combinations", total=total)
        yield lambda: bar.advance(task)
