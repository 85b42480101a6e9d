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
from pathlib import Path

from benchmarks.dpbench.datasets import Dataset, folder_datasets, known, named
from benchmarks.dpbench.mechanisms import OURS, mechanisms_named
from benchmarks.dpbench.page import page
from benchmarks.dpbench.questions import WORKLOADS
from benchmarks.dpbench.running import combinations, run
from benchmarks.dpbench.storage import read_results
from dpfast.errors import DataError, ParameterError

__all__ = ["chosen_datasets", "main", "parser"]

#: What ``--datasets`` may say instead of names.
_GROUPS = {"made": "made", "published": "published shape", "real": "real"}
_SIDES = {1: (256, 1024, 4096), 2: (32, 64, 128)}
_QUICK = {"sides": {1: (256,), 2: (32,)}, "scales": (10**3, 10**6), "epsilons": (0.1,), "most": 24, "trials": 3}


def _positive(kind: type, text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf") or (kind is int and value != int(value)):
        raise ValueError
    return kind(value)


def whole(text: str) -> int:
    """Read a positive whole number, 1e6 too."""
    return int(_positive(int, text))


def amount(text: str) -> float:
    """Read a positive number."""
    return _positive(float, text)


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
    add("--sides", nargs="+", type=whole, help="cells along each axis, for one dimension (256 1024 4096)")
    add("--plane-sides", nargs="+", type=whole, help="the same for two dimensions (32 64 128)")
    add("--scales", nargs="+", type=whole, help="numbers of records (1e2 to 1e8)")
    add("--epsilons", nargs="+", type=amount, help="budgets (.01 .1 1 10)")
    add("--workloads", nargs="+", choices=WORKLOADS, help="what is asked (all)")
    add("--mechanisms", nargs="+", metavar="NAME", help=f"{', '.join(OURS)}, or module:function (all of ours)")
    add("--most", type=whole, help="at most so many combinations, drawn at random with the seed")
    add("--trials", type=whole, help="samples of each combination (5)")
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
    except (ParameterError, DataError) as error:
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
    if (given.only_page or given.resume) and given.out is None:
        raise ParameterError("out", None, "the file of results that --resume and --only-page are about")
    if given.only_page:
        results = read_results(given.out)
    else:
        quick = _QUICK if given.quick else {}
        defaults = {"sides": _SIDES, "scales": [10**power for power in range(2, 9)], "epsilons": (0.01, 0.1, 1.0, 10.0)}
        settings = {**defaults, "most": None, "trials": 5, **quick}
        settings |= {
            name: value for name in ("scales", "epsilons", "most", "trials") if (value := getattr(given, name))
        }
        sides = {1: given.sides or settings["sides"][1], 2: given.plane_sides or settings["sides"][2]}
        mechanisms = mechanisms_named(given.mechanisms or OURS)
        wanted = combinations(
            chosen_datasets(given.datasets, given.held_out),
            sides,
            settings["scales"],
            settings["epsilons"],
            given.workloads or list(WORKLOADS),
            most=settings["most"],
            seed=given.seed,
        )
        if not wanted:
            raise ParameterError("workloads", given.workloads, "some that the datasets have the dimensions for")
        started = time.monotonic()
        results = run(
            wanted,
            mechanisms,
            settings["trials"],
            given.out,
            seed=given.seed,
            processes=given.processes,
            resume=given.resume,
            progress=sys.stderr.isatty(),
        )
        took = time.monotonic() - started
        print(f"{len(wanted):,} combinations, {results.height:,} trials, {took:.0f} s", file=sys.stderr)
    charts = _draw(results, given.page, given.error) if given.page is not None else []
    text = page(results, command=command, error=given.error, charts=charts)
    if given.page is None:
        print(text)
    else:
        given.page.write_text(text)
        print(given.page)
    return 0


def _draw(results: object, path: Path, error: str) -> list[str]:
    """Draw the charts of a page beside it, if matplotlib is installed, and return their names."""
    import importlib.util

    if importlib.util.find_spec("matplotlib") is None:
        return []
    from benchmarks.dpbench.drawing import draw_errors, draw_regret

    names = []
    for workload in WORKLOADS:
        if results.filter(workload=workload).height:  # type: ignore[attr-defined]
            names.append(f"{path.stem}_{workload.replace(' ', '_')}.svg")
            draw_errors(results, workload, path.parent / names[-1], error)  # type: ignore[arg-type]
    if "estimate_histogram" in results["mechanism"]:  # type: ignore[index]
        names.append(f"{path.stem}_regret.svg")
        draw_regret(results, path.parent / names[-1], error)  # type: ignore[arg-type]
    return names
