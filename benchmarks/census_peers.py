"""Synthetic records of a census's shape beside other libraries' of the same size; written to census_peers.md.

    python -m benchmarks.census_peers --python PATH --mechanisms FOLDER

PATH is an interpreter in which mbi 2.0.0, dpmm 0.1.9 or smartnoise-synth 1.0.8 is installed, and FOLDER holds aim.py
and mst.py, the mechanisms of mbi's own repository. What is not there is skipped with a line, as is what takes longer
than --minutes. Rows of earlier runs stay in the table unless they are measured again; --load says under which load the
seconds were taken. --epsilons, --megabytes and --only choose some of each, with commas between. --progress names a
file to which AIM of mbi writes a line after each round. --adult WHEEL takes the real table of
benchmarks/census_adult.py in place of the made-up one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpfast as dpf

from .census import ROWS, SIZES, distance, make_independent, make_records, pairs_and_triples
from .census_adapters import ADAPTERS
from .census_adult import read_adult

__all__ = ["main"]

_NAMES = [f"a{place}" for place in range(len(SIZES))]
_DELTA = 1e-9
_OURS = "dpf.synthesize"
_INDEPENDENT = "independent columns"
_RUNS = 3
_TRIPLES = len(pairs_and_triples()[1])
_TABLE = Path(__file__).with_suffix(".md")
_MADE_UP, _ADULT = "made-up", "Adult"
_HEAD = ("table", "what", "megabytes", "epsilon", "pairs", "triples", "seconds", "processor seconds", "load")
ABOUT = f"""# Synthetic records of a census's shape, beside other libraries'

Written by `python -m benchmarks.census_peers`. "made-up" is the table of benchmarks/census.py, {ROWS:,} rows of 14
columns. "Adult" is a real one, with as many columns and values: the training part of Adult, 32,561 people of the census
of 1994, which the package `fairness` ships (benchmarks/census_adult.py says how to get it). Delta is 1e-9, and the
workload is all pairs of at most 10^4 cells. Errors are mean total variation distances from the data, over these pairs
and over {_TRIPLES} triples. "independent columns" knows every column exactly, and nothing else. `dpf.synthesize` is the
median of {_RUNS} runs, the others are one run each.

MST has no limit of size, and merges rare values, as AIM of dpmm does. AIM of smartnoise-synth adds up the sizes of the
sets that it measures, and not those of the tree that holds them, so that its model may be larger than said. Each needs
an environment of its own: dpmm 0.1.9 asks for NumPy 1.26 and Python 3.10 or 3.11, smartnoise-synth 1.0.8 for mbi 1 and
PyTorch.

What is not in the table was not measured, but for two that were stopped before their end: AIM of dpmm on Adult at
epsilon .1 after 437 processor seconds, and AIM of smartnoise-synth on the made-up table at epsilon 1 after 1,180. The
scaled count of merged values, which MST of `mbi` takes for what it is, stands for the count itself in MST of
smartnoise-synth, so that rare values come out too rare. Part of its error is that, but not most.

Seconds are of a clock, on a machine of 2 cores under the load that is said: a busy machine takes several times as long
as a quiet one, at the lowest priority even longer. They compare nothing where loads differ. Processor seconds compare
better, though a busy machine makes them longer, too; those of child processes are included.

AIM of `mbi` is the mechanism of its own repository, with all its rounds and steps of fitting. What it asks of a model
before it chooses is summed by NumPy ("marginals by NumPy"). Left to JAX, which compiles a program for every shape, that
took more than a minute of processor time before the first choice, and memory maps ran out before the end.

At epsilon 10 a larger model is better; at epsilon 1 and below noise leaves nothing that room would buy, as
census_errors.md shows with its figures.

"""


#: Records, and the seconds of a clock and of processors that they took.
Made: TypeAlias = "tuple[NDArray[np.integer], float, float]"


def _synthesize(codes: NDArray[np.integer], epsilon: float, megabytes: float) -> Made:
    frame = pl.DataFrame({name: column.astype(np.int64) for name, column in zip(_NAMES, codes, strict=True)})
    domain = dpf.Domain(dict(zip(_NAMES, SIZES, strict=True)))
    ledger = dpf.Ledger(epsilon=epsilon, delta=_DELTA)
    start, used = time.perf_counter(), time.process_time()
    made = dpf.synthesize(frame, domain, epsilon=epsilon, delta=_DELTA, max_megabytes=megabytes, ledger=ledger)
    drawn = np.array([made.frame[name].to_numpy() for name in _NAMES])
    return drawn, time.perf_counter() - start, time.process_time() - used


def _peer(
    name: str, given: argparse.Namespace, codes: NDArray[np.integer], epsilon: float, megabytes: float
) -> Made | None:
    """Return a peer's records and seconds; None, and a line that says why, if it is not there."""
    with tempfile.TemporaryDirectory() as folder:
        places = {name: str(Path(folder) / name) for name in ("request.json", "codes.npy", "answer.npy")}
        request = {
            "sizes": SIZES,
            "epsilon": epsilon,
            "delta": _DELTA,
            "megabytes": megabytes,
            "sets": pairs_and_triples()[0],
            "progress": given.progress and str(Path(given.progress).absolute()),
        }
        Path(places["request.json"]).write_text(json.dumps(request))
        np.save(places["codes.npy"], codes)
        adapters = str(Path(__file__).with_name("census_adapters.py"))
        try:
            ran = subprocess.run(
                [given.python, adapters, name, given.mechanisms, *places.values()],
                capture_output=True,
                text=True,
                check=False,
                timeout=60.0 * given.minutes,
            )
        except subprocess.TimeoutExpired:
            print(f"{name} is skipped: it took longer than {given.minutes:g} minutes", flush=True)
            return None
        if ran.returncode:
            why = ran.stderr.strip().splitlines()[-1:] or ["no message"]
            print(f"{name} is skipped: {why[0]}", flush=True)
            return None
        seconds, used = map(float, ran.stdout.strip().splitlines()[-1].split())
        return np.load(places["answer.npy"]), seconds, used


def _rows() -> dict[tuple[str, ...], list[str]]:
    """Return the rows of the table as it is, by their first four columns."""
    lines = _TABLE.read_text().splitlines() if _TABLE.exists() else []
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {tuple(row[:4]): row for row in cells[2:]}


def _write(rows: dict[tuple[str, ...], list[str]]) -> None:
    ordered = sorted(rows.values(), key=lambda row: (row[0] == _ADULT, float(row[3] or 0), row[1], float(row[2] or 0)))
    lines = [list(_HEAD), ["---"] * len(_HEAD), *ordered]
    _TABLE.write_text(ABOUT + "\n".join("| " + " | ".join(row) + " |" for row in lines) + "\n")


def _add(row: list[str]) -> None:
    """Write a row into the table, in the place of an earlier one of the same."""
    print(row, flush=True)
    rows = _rows()
    rows[tuple(row[:4])] = row
    _write(rows)


def _shown(error: float) -> str:
    return f"{error:.4f}"


def _errors(codes: NDArray[np.integer], made: NDArray[np.integer]) -> list[float]:
    return [distance(codes, made, sets) for sets in pairs_and_triples()]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--mechanisms", default=".")
    parser.add_argument("--epsilons", default="0.1,1,10")
    parser.add_argument("--megabytes", default="4,80")
    parser.add_argument("--only", default=",".join([_INDEPENDENT, _OURS, *ADAPTERS]))
    parser.add_argument("--load", default="quiet")
    parser.add_argument("--minutes", type=float, default=240.0)
    parser.add_argument("--progress")
    parser.add_argument("--adult", type=Path)
    given = parser.parse_args(arguments)
    table, codes = (_ADULT, read_adult(given.adult)) if given.adult else (_MADE_UP, make_records())
    chosen = given.only.split(",")
    if _INDEPENDENT in chosen:
        _add([table, _INDEPENDENT, "", "", *map(_shown, _errors(codes, make_independent(codes, 17))), "", "", ""])
    for epsilon in map(float, given.epsilons.split(",")):
        for megabytes in map(float, given.megabytes.split(",")):
            for name in chosen:
                if name == _OURS:
                    runs = [_synthesize(codes, epsilon, megabytes) for _ in range(_RUNS)]
                elif "MST" in name and megabytes != float(given.megabytes.split(",")[0]):
                    continue
                elif name in ADAPTERS:
                    found = _peer(name, given, codes, epsilon, megabytes)
                    if found is None:
                        continue
                    runs = [found]
                else:
                    continue
                middle = np.median([[*_errors(codes, made), *seconds] for made, *seconds in runs], axis=0)
                size = "" if "MST" in name else f"{megabytes:g}"
                figures = [*map(_shown, middle[:2]), f"{middle[2]:.1f}", f"{middle[3]:.1f}"]
                _add([table, name, size, f"{epsilon:g}", *figures, given.load])


if __name__ == "__main__":
    main()
