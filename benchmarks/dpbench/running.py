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

from .certainty import contested
from .datasets import Dataset, digest
from .mechanisms import Mechanism
from .questions import workload_named, workloads_for
from .storage import code_digest, resumed, write_results
from .trials import SCHEMA, Combination, measure

__all__ = ["combinations", "run"]

#: The results are written so often, in seconds.
_WRITE_EVERY = 15.0
_SINGLE_THREADED = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS")

_KEY = ["dataset", "shape", "scale", "epsilon", "workload"]  #: As in `Combination.key`.

Work = tuple[Combination, list[tuple[str, int]]]
Asked = tuple[Combination, list[str], int]


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
        By the number of axes, how many cells along each. Tables of more axes have a shape of their own.
    most
        None for all.

    """
    found = [
        Combination(dataset, shape, scale, epsilon, workload)
        for dataset in datasets
        for shape in dataset.shapes(sides.get(dataset.axes, ()))
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
    looks: int = 1,
    error: str = "l2",
) -> pl.DataFrame:
    """Measure all mechanisms on all combinations, and return a row for each trial.

    Parameters
    ----------
    trials
        Of each combination; where it is undecided how the choice does by ``error``, twice as many at every further
        one of the ``looks``, of the mechanisms that may still be as good.
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
    rows = _Rows(_of_same_data(kept, wanted), path)
    asked = [(one, _fitting(one, mechanisms), trials) for one in wanted]
    try:
        for look in range(looks):
            if look:  # what an ended run measured beyond that decides nothing
                undecided = contested(rows.together().filter(pl.col("trial") < trials * 2 ** (look - 1)), error, looks)
                asked = _asked_again(wanted, undecided, trials * 2**look)
            work = _missing(rows.together(), asked)
            with _shown(len(work), progress) as tell:
                for new in _measured(work, seed, processes):
                    rows.add(new)
                    tell()
    finally:
        rows.write()
    return rows.together()


class _Rows:
    """All rows so far, which are written down every now and then as they come in."""

    def __init__(self, kept: pl.DataFrame, path: Path | None) -> None:
        self._parts, self._path, self._written = [kept], path, time.monotonic()

    def add(self, new: list[tuple[object, ...]]) -> None:
        self._parts.append(pl.DataFrame(new, SCHEMA, orient="row"))
        if time.monotonic() - self._written > _WRITE_EVERY:
            self.write()

    def together(self) -> pl.DataFrame:
        self._parts = [pl.concat(self._parts)]
        return self._parts[0]

    def write(self) -> None:
        if self._path is not None:
            write_results(self.together(), self._path)
        self._written = time.monotonic()


def _of_same_data(kept: pl.DataFrame, wanted: Sequence[Combination]) -> pl.DataFrame:
    """Return the rows of a file whose data are still the same."""
    data = {(one.dataset.name, one.key[1]): digest(one.dataset.shares(one.shape)) for one in wanted if kept.height}
    same = [data.get((name, shape), old) == old for name, shape, old in kept["dataset", "shape", "data"].iter_rows()]
    return kept.filter(pl.Series(same, dtype=pl.Boolean))


def _fitting(one: Combination, mechanisms: Sequence[Mechanism]) -> list[str]:
    """Return the mechanisms that are for such queries."""
    asked = workload_named(one.workload, one.shape)
    return [mechanism.name for mechanism in mechanisms if mechanism.fits(asked)]


def _asked_again(wanted: Sequence[Combination], undecided: pl.DataFrame, trials: int) -> list[Asked]:
    """Return what is measured once more: of the combinations that are undecided so many trials."""
    rivals = {tuple(key): names for *key, names in undecided.select(*_KEY, "names").iter_rows()}
    return [(one, rivals[one.key], trials) for one in wanted if one.key in rivals]


def _missing(rows: pl.DataFrame, asked: Iterable[Asked]) -> list[Work]:
    """Return what is asked for, but for the trials that are there."""
    done: dict[tuple[object, ...], set[tuple[str, int]]] = {}
    for *key, name, trial in rows.select(*_KEY, "mechanism", "trial").iter_rows():
        done.setdefault(tuple(key), set()).add((name, trial))
    work = []
    for one, names, trials in asked:
        every = [(name, trial) for trial in range(trials) for name in names]
        if missing := [pair for pair in every if pair not in done.get(one.key, ())]:
            work.append((one, missing))
    return work


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
