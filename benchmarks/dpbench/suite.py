"""The accuracy suite: all mechanisms for histograms by the protocol of DPBench, and what the choice among them loses.

A few combinations in seconds: ``--quick``. A wide table in minutes: ``--most 1000 --out run.parquet --page run.md``.
Your own data and mechanism: ``--datasets my_histograms/ --mechanisms dawa my_module:my_estimate``. The final table, on
datasets that nothing was tuned on: ``--held-out``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import polars as pl

from dpfast.errors import DpfastError, ParameterError

from .datasets import Dataset, folder_datasets, known, named
from .drawing import draw_errors, draw_regret
from .mechanisms import CHOICE, OURS, mechanisms_named
from .page import page
from .questions import WORKLOADS
from .running import combinations, run
from .storage import read_results

__all__ = ["chosen_datasets", "main", "parser"]

#: What ``--datasets`` may say instead of names.
_GROUPS = {"made": "made", "published": "published shape", "real": "real"}


@dataclass(frozen=True)
class _Settings:
    """What is run where the arguments do not say."""

    sides: tuple[int, ...] = (256, 1024, 4096)
    plane_sides: tuple[int, ...] = (32, 64, 128)
    scales: tuple[int, ...] = tuple(10**power for power in range(2, 9))
    epsilons: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0)
    most: int | None = None
    trials: int = 5


_FULL, _QUICK = _Settings(), _Settings((256,), (32,), (10**3, 10**6), (0.1,), 24, 3)


def whole(text: str) -> int:
    """Read a positive whole number, 1e6 too."""
    value = amount(text)
    if value != int(value):
        raise ValueError
    return int(value)


def amount(text: str) -> float:
    """Read a positive number."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError
    return value


def parser() -> argparse.ArgumentParser:
    """Return what reads the arguments."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.dpbench",
        description=__doc__,
    )
    add = made.add_argument
    add("--quick", action="store_true", help="a few combinations in seconds, to see that everything runs")
    add("--datasets", nargs="+", metavar="NAME", help="names, groups (made, published, real) or folders of histograms")
    add("--held-out", action="store_true", help="the held-out families (and real data): never to tune on")
    add("--axes", nargs="+", type=whole, help="only datasets of so many dimensions: 1, 2, or tables of 3, 4, 6 (all)")
    add("--sides", nargs="+", type=whole, help="cells along each axis, for one dimension (256 1024 4096)")
    add("--plane-sides", nargs="+", type=whole, help="the same for two dimensions (32 64 128)")
    add("--scales", nargs="+", type=whole, help="numbers of records (1e2 to 1e8)")
    add("--epsilons", nargs="+", type=amount, help="budgets (.01 .1 1 10)")
    add("--workloads", nargs="+", choices=WORKLOADS, help="what is asked (all)")
    add("--mechanisms", nargs="+", metavar="NAME", help=f"{', '.join(OURS)}, or module:function (all of ours)")
    add("--most", type=whole, help="at most so many combinations, drawn at random with the seed")
    add("--trials", type=whole, help="samples of each combination (5)")
    add("--looks", type=whole, default=1, help="twice as many trials, so often less one, where it is undecided (1)")
    add("--seed", type=whole, default=2016, help="fixes all that is drawn")
    add("--error", choices=("l2", "l1"), default="l2", help="which error the page is about; the file has both")
    add("--processes", type=whole, default=1, help="how many run at once (1)")
    add("--out", type=Path, metavar="FILE", help="where the results go, Parquet; written as the run goes on")
    add("--resume", action="store_true", help="take over what stands in FILE, and run what is missing")
    add("--page", type=Path, metavar="PAGE", help="where the summary goes, Markdown, with charts beside it")
    add("--only-page", action="store_true", help="run nothing: make the page of FILE")
    add("--list", action="store_true", help="show the datasets that are here, and end")
    return made


def chosen_datasets(names: Sequence[str] | None, held_out: bool) -> list[Dataset]:
    """Return the datasets that names, groups and folders stand for; by default all to tune on, or all others."""
    names = names or (["real"] if held_out else ["made", "published"])
    every, found = known().values(), {}
    if held_out:
        found = {dataset.name: dataset for dataset in every if dataset.kind == "held out"}
    for name in names:
        if name in _GROUPS:
            chosen: Iterable[Dataset] = [dataset for dataset in every if dataset.kind == _GROUPS[name]]
        elif Path(name).is_dir() or "/" in name:
            chosen = folder_datasets(Path(name)).values()
        else:
            chosen = named([name], held_out=held_out)
        found |= {dataset.name: dataset for dataset in chosen}
    if not found:
        raise ParameterError("datasets", names, "real ones whose packages are installed, or others that --list shows")
    return list(found.values())


def _show_datasets() -> None:
    for dataset in sorted(known().values(), key=lambda one: (one.kind, one.axes, one.name)):
        print(f"{dataset.kind:16} {dataset.axes}-D  {dataset.name}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite; return 0, or 2 where an argument is wrong (one line says which)."""
    given = parser().parse_args(arguments)
    try:
        return _run(given, _command(sys.argv[1:] if arguments is None else arguments))
    except DpfastError as error:
        print(f"accuracy: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("ended; --resume goes on from what was written" if given.out else "ended", file=sys.stderr)
        return 130


def _command(words: Sequence[str]) -> str:
    """Return the command without what does not change its results: where they go, and by how many processes."""
    kept, place = ["python -m benchmarks.dpbench"], 0
    while place < len(words):
        name = words[place].split("=")[0]
        if name in ("--out", "--page", "--processes") and "=" not in words[place]:
            place += 1
        elif name not in ("--out", "--page", "--processes", "--resume"):
            kept.append(words[place])
        place += 1
    return " ".join(kept)


def _run(given: argparse.Namespace, command: str) -> int:
    if given.list:
        _show_datasets()
        return 0
    _check_packages(charts=given.page is not None)
    _check_paths(given)
    results = read_results(given.out) if given.only_page else _measured(given)
    charts = _draw(results, given.page, given.error) if given.page is not None else []
    text = page(results, command=command, error=given.error, charts=charts, looks=given.looks)
    if given.page is None:
        print(text)
    else:
        given.page.write_text(text)
        print(given.page)
    return 0


def _check_packages(*, charts: bool) -> None:
    """Say before the run what it would lack after it: what judges needs SciPy, and charts need matplotlib."""
    if find_spec("scipy") is None:
        raise DpfastError("errors are judged by SciPy, which is not installed; run pip install 'dpfast[synthesis]'")
    if charts and find_spec("matplotlib") is None:
        print("not drawn: charts of the page (pip install matplotlib)", file=sys.stderr)


def _check_paths(given: argparse.Namespace) -> None:
    """Refuse before the run what would be found wrong after it."""
    if (given.only_page or given.resume) and given.out is None:
        raise ParameterError("out", None, "the file of results that --resume and --only-page are about")
    if given.out is not None and given.out.exists() and not (given.only_page or given.resume):
        allowed = "a file that is not there yet"
        raise ParameterError("out", str(given.out), allowed, "--resume goes on with it, --only-page makes its page")
    if given.page is not None and not given.page.parent.is_dir():
        raise ParameterError("page", str(given.page), "a file in a folder that is there")


def _measured(given: argparse.Namespace) -> pl.DataFrame:
    named_here = {name: value for name in _FULL.__dict__ if (value := getattr(given, name))}
    settings = replace(_QUICK if given.quick else _FULL, **named_here)
    datasets = chosen_datasets(given.datasets, given.held_out)
    wanted = combinations(
        [dataset for dataset in datasets if given.axes is None or dataset.axes in given.axes],
        {1: settings.sides, 2: settings.plane_sides},
        settings.scales,
        settings.epsilons,
        given.workloads or list(WORKLOADS),
        most=settings.most,
        seed=given.seed,
    )
    if not wanted:
        raise ParameterError("workloads", given.workloads, "some that the datasets have the dimensions for")
    started = time.monotonic()
    results = run(
        wanted,
        mechanisms_named(given.mechanisms or OURS),
        settings.trials,
        given.out,
        seed=given.seed,
        processes=given.processes,
        resume=given.resume,
        progress=sys.stderr.isatty(),
        looks=given.looks,
        error=given.error,
    )
    took = time.monotonic() - started
    print(f"{len(wanted):,} combinations, {results.height:,} trials, {took:.0f} s", file=sys.stderr)
    return results


def _draw(results: pl.DataFrame, path: Path, error: str) -> list[str]:
    """Draw the charts of a page beside it, if matplotlib is installed, and return their names."""
    if find_spec("matplotlib") is None:
        return []
    names = []
    for workload in WORKLOADS:
        if results.filter(workload=workload).height:
            names.append(f"{path.stem}_{workload.replace(' ', '_')}.svg")
            draw_errors(results, workload, path.parent / names[-1], error)
    if CHOICE in results["mechanism"]:
        names.append(f"{path.stem}_regret.svg")
        draw_regret(results, path.parent / names[-1], error)
    return names
