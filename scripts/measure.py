"""Measure the table of benchmarks/comparisons.py and write it down.

    python scripts/measure.py              print the table
    python scripts/measure.py --write      also write it to benchmarks/measured.md, and its headlines into README.md
    python scripts/measure.py --only TEXT  only the rows whose name contains TEXT

Ours and the baseline run in turns, A B A B; a ratio is the median over pairs. Every row has a process of its own, like
a user's script: what ran before would change how memory is handed out, and so the baselines.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

BEGIN, END = "<!-- measured by scripts/measure.py -->", "<!-- end of measured table -->"
ABOUT = """# Measured

Written by `python scripts/measure.py --write` from the table of benchmarks/comparisons.py: ours and the baseline in
turns in one process, a process for each row, one thread unless said; a ratio is the median over pairs. Absolute times
depend on the machine.
"""

# Making the data takes more memory than the query: writing 5 to clear_refs starts the peak afresh (Linux). Both
# sides run once on little data before, so that neither is charged with loading libraries.
PEAK = """
import gc
from benchmarks.comparisons import COMPARISONS
row = next(row for row in COMPARISONS if row.name == {name!r})
little = row.prepare(1000)
little.ours(), little.baseline()
prepared = row.prepare(row.size)
gc.collect()
open("/proc/self/clear_refs", "w").write("5")
prepared.{side}()
print(int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024)
"""


def _seconds(run: Any) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _human(seconds: float) -> str:
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def rows_of_comparisons(only: str) -> list[list[str]]:
    from benchmarks.comparisons import COMPARISONS

    rows = []
    for comparison in COMPARISONS:
        if only not in comparison.name or not comparison.is_possible:
            continue
        command = [sys.executable, __file__, "--row", comparison.name]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        rows.append(done.stdout.rstrip("\n").split("\t"))
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    return rows


def measure(name: str) -> list[str]:
    """Measure one row, and return its cells."""
    from benchmarks.comparisons import COMPARISONS

    comparison = next(row for row in COMPARISONS if row.name == name)
    prepared = comparison.prepare(comparison.size)
    prepared.ours()
    prepared.baseline()
    pairs = [(_seconds(prepared.ours), _seconds(prepared.baseline)) for _ in range(comparison.rounds)]
    ours = statistics.median(pair[0] for pair in pairs)
    if comparison.at_least:
        ratio = statistics.median(base / mine for mine, base in pairs)
        verdict = f"{ratio:.1f}x faster (goal {comparison.goal:g}x)"
    else:
        ratio = statistics.median(mine / base for mine, base in pairs)
        verdict = f"{ratio:.2f} of its time (goal {comparison.goal:g})"
    peers = ""
    for peer, (run, values) in prepared.peers.items():
        ratio = (_seconds(run) / values) / (ours / comparison.size)
        peers += f"{', ' if peers else ''}{ratio:,.0f}x faster than {peer}"
    per = _human(ours / comparison.size) + " a value" if comparison.at_least else _human(ours)
    return [name, per, f"{verdict} than {comparison.baseline}".replace("time than", "time:"), peers]


def rows_of_processes() -> list[list[str]]:
    def run(code: str, cache: str | None = None) -> tuple[float, str]:
        environment = {**os.environ, **({"NUMBA_CACHE_DIR": cache} if cache else {})}
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment, cwd=ROOT
        )
        return time.perf_counter() - start, done.stdout

    nothing = statistics.median(run("pass")[0] for _ in range(5))
    imported = statistics.median(run("import dpfast")[0] for _ in range(5)) - nothing
    first = "import numpy as np, dpfast as dpf; dpf.laplace(np.arange(1000), 2.0)"
    with tempfile.TemporaryDirectory() as cache:
        cold = run(first, cache)[0]
        warm = statistics.median(run(first, cache)[0] for _ in range(5))
    call = (
        "import numpy as np, dpfast as dpf, time; x = np.arange(1000); dpf.laplace(x, 2.0); t = time.perf_counter()\n"
        "for _ in range(2000): dpf.laplace(x, 2.0)\n"
        "print((time.perf_counter() - t) / 2000)"
    )
    single = statistics.median(float(run(call)[1]) for _ in range(3))
    charges = (
        "import dpfast as dpf, tempfile, time; from dpfast.ledger import Charge\n"
        "about = dict(dataset='d', privacy_unit='row', neighbors='add_remove'); charge = Charge.of(1e-6)\n"
        "durable = dpf.Ledger.open(tempfile.mkdtemp() + '/l.db', 1.0)\n"
        "for ledger, n in ((dpf.Ledger(1.0), 100_000), (durable, 2000)):\n"
        "    t = time.perf_counter()\n"
        "    for _ in range(n): ledger.charge(charge, **about)\n"
        "    print(n / (time.perf_counter() - t))"
    )
    in_memory, durable = map(float, run(charges)[1].split())
    rows = [
        ["Single charges", f"{in_memory:,.0f} a second in memory", f"{durable:,.0f} a second durable (fsync each)", ""],
        ["`import dpfast`", _human(imported), "", ""],
        ["First noisy column, new process", _human(warm), f"with a cold kernel cache {_human(cold)}", ""],
        ["One call on 1,000 values", _human(single), "", ""],
    ]
    for name, beside, goal in (
        ("Count into 10^6 integer keys", "the plain query's", 1.5),
        ("Count, 10^5 units bounded to 10 groups", "the plain query's", 1.5),
        ("Sum of 10^7 rows by unit, within 300 MB", "what it takes without a limit", 0.8),
        ("Sum of an Arrow stream, 10^7 rows", "what reading it first takes", 0.7),
    ):
        peaks = {side: float(run(PEAK.format(name=name, side=side))[1]) for side in ("ours", "baseline")}
        verdict = f"{peaks['ours'] / peaks['baseline']:.2f} of {beside} (goal {goal:g})"
        rows.append([f"{name}: peak memory, data included", f"{peaks['ours']:.0f} MB", verdict, ""])
    for row in rows:
        print(" | ".join(row), file=sys.stderr, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        print("\t".join(measure(arguments.row)))
        return
    rows = rows_of_comparisons(arguments.only)
    if not arguments.only:
        rows += rows_of_processes()
    print(_table(rows))
    if arguments.write:
        write(rows)


def _table(rows: list[list[str]]) -> str:
    header = [["what", "dpfast", "beside it, in the same run", "peers, per value"], ["---"] * 4]
    return "\n".join("| " + " | ".join(row) + " |" for row in header + rows)


def write(rows: list[list[str]]) -> None:
    """Write all rows to benchmarks/measured.md, and the headlines between the markers in README.md."""
    from benchmarks.comparisons import HEADLINES

    (ROOT / "benchmarks" / "measured.md").write_text(f"{ABOUT}\n{_table(rows)}\n")
    readme = ROOT / "README.md"
    before, rest = readme.read_text().split(BEGIN)
    after = rest.split(END)[1]
    headlines = _table([row for row in rows if row[0] in HEADLINES])
    readme.write_text(f"{before}{BEGIN}\n\n{headlines}\n\n{END}{after}")


if __name__ == "__main__":
    main()
