"""Measure the table of benchmarks/comparisons.py and write it down.

    python scripts/measure.py              print the table
    python scripts/measure.py --write      also write it to benchmarks/measured.md, and its headlines into README.md
    python scripts/measure.py --only TEXT  only the rows whose name contains TEXT; the others stay as they are written
    python scripts/measure.py --processes  only the rows of whole processes: start-up, charges, peak memory
    python scripts/measure.py --headlines  measure nothing: write the headlines of measured.md into README.md
    python scripts/measure.py --limits     measure nothing: write anew why rows of measured.md are below their goals

Ours and the baseline run in turns, A B A B; a ratio is the median over pairs. Every row has a process of its own, like
a user's script: what ran before would change how memory is handed out, and so the baselines. A row is written as soon
as it is measured, so that a run that is stopped loses none; those that it did not come to stay as they were.

Where the processor has AVX-512, every row runs a second time as if it had AVX2 alone: Numba compiles for a Haswell
core, and NumPy takes its code for one. The keystream is OpenSSL's in both, and what Polars does is Polars' affair.
Where it has AVX2 alone, it measures that column, and the others of a row stay as they were written. The page says which
processor each figure is of, and which rows have columns of different kernels (benchmarks/origins.py).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import origins  # noqa: E402
from dpfast.bench import in_turns, seconds_of  # noqa: E402
from dpfast.bench.showing import human  # noqa: E402

BEGIN, END = "<!-- measured by scripts/measure.py -->", "<!-- end of measured table -->"
ABOUT = """# Measured

Written by `python scripts/measure.py --write` from the table of benchmarks/comparisons.py: ours and the baseline in
turns in one process, a process for each row, one thread unless said; a ratio is the median over pairs. Absolute times
depend on the machine. A column's heading names the instruction set that it was measured with; for that of AVX2 on a
processor with AVX-512, Numba compiled for a Haswell core and NumPy took its code for one. "Words and bytes alone" is
what remains of noise when nothing is computed: its random words are made, the values read and a result is written.

Times in the second column are those of AVX-512, unless they say AVX2. The columns were measured on:
"""
HEADER = ["what", "dpfast", "beside it, in the same run: AVX-512", "the same with AVX2 alone", "peers, per value"]
#: The kernels of a processor without AVX-512, which are compiled once and kept.
AVX2_KERNELS = Path(tempfile.gettempdir()) / f"dpfast-kernels-of-avx2-{os.getuid()}"

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


def has_avx512() -> bool:
    import llvmlite.binding

    return bool(llvmlite.binding.get_host_cpu_features().get("avx512f"))


def avx2_alone() -> dict[str, str]:
    """Return the environment in which a process computes as on a processor without AVX-512."""
    from numpy._core._multiarray_umath import __cpu_dispatch__  # type: ignore[attr-defined]

    wider = [feature for feature in __cpu_dispatch__ if feature.startswith(("AVX512", "X86_V4"))]
    return {
        "NUMBA_CPU_NAME": "haswell",
        # The name alone would keep what this processor has. AES is asked for by name where the plugin may be compiled.
        "NUMBA_CPU_FEATURES": "+avx2,+aes,+sse2,+ssse3",
        "NUMBA_CACHE_DIR": str(AVX2_KERNELS),
        "NPY_DISABLE_CPU_FEATURES": ",".join(wider),
    }


def rows_of_comparisons(only: str, failed: list[str]) -> Iterator[tuple[list[str], str]]:
    """Measure the rows with these words in their names, one after the other; names of those that fail are added.

    Each comes with the digest of its kernels.
    """
    from benchmarks.comparisons import COMPARISONS

    for comparison in COMPARISONS:
        if only not in comparison.name or not comparison.is_possible:
            continue
        try:
            found = _in_own_process(comparison.name, {})
            narrow = _in_own_process(comparison.name, avx2_alone()) if has_avx512() else found
        except subprocess.CalledProcessError:
            failed.append(comparison.name)
            continue
        yield cells_of(comparison.name, found, narrow), found["kernels"]


def cells_of(name: str, found: dict[str, str], narrow: dict[str, str]) -> list[str]:
    """Return the cells of a row: what was found here, and with AVX2 alone. What cannot be measured here stays."""
    if has_avx512():
        return [name, found["time"], found["beside"], narrow["ratio"], found["peers"]]
    before = {row[0]: row for row in rows_written()}.get(name)
    if before and not before[1].endswith("(AVX2)"):
        return [*before[:3], narrow["ratio"], before[4]]
    return [name, f"{found['time']} (AVX2)", "", found["beside"], found["peers"]]


def _in_own_process(name: str, environment: dict[str, str]) -> dict[str, str]:
    command = [sys.executable, __file__, "--row", name]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | environment)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def measure(name: str) -> dict[str, str]:
    """Measure one row, and return what its cells say."""
    from benchmarks.comparisons import COMPARISONS

    comparison = next(row for row in COMPARISONS if row.name == name)
    narrow = "NUMBA_CPU_FEATURES" in os.environ or not has_avx512()
    goal = comparison.goal if comparison.goal_of_avx2 is None or not narrow else comparison.goal_of_avx2
    prepared = comparison.prepare(comparison.size)
    prepared.ours()
    prepared.baseline()
    runs = {"ours": prepared.ours, "baseline": prepared.baseline} | (
        {"floor": prepared.floor} if prepared.floor else {}
    )
    found = in_turns({name: seconds_of(run) for name, run in runs.items()}, comparison.rounds)
    pairs = list(zip(found["ours"], found["baseline"], strict=True))
    ours = statistics.median(found["ours"])
    if comparison.at_least:
        ratio, of = f"{statistics.median(base / mine for mine, base in pairs):.1f}x", "faster than"
        aim = f"(goal {goal:g}x)"
        if prepared.floor:
            least = statistics.median(base / own for base, own in zip(found["baseline"], found["floor"], strict=True))
            aim = f"(goal {goal:g}x; words and bytes alone {least:.1f}x)"
    else:
        ratio, of = f"{statistics.median(mine / base for mine, base in pairs):.2f}", "of the time of"
        aim = f"(goal {goal:g})"
    peers = ""
    for peer, (run, values) in () if "NUMBA_CPU_FEATURES" in os.environ else prepared.peers.items():
        times = (seconds_of(run)() / values) / (ours / comparison.size)
        peers += f"{', ' if peers else ''}{times:,.0f}x faster than {peer}"
    per = human(ours / comparison.size) + " a value" if comparison.at_least else human(ours)
    return {
        "time": per,
        "beside": f"{ratio} {of} {comparison.baseline} {aim}",
        "ratio": f"{ratio} {aim}",
        "peers": peers,
        "kernels": origins.digest_of_kernels(),
    }


def rows_of_processes() -> Iterator[tuple[list[str], str]]:
    """Measure what whole processes take, one row after the other; no kernels are known of them."""
    with tempfile.TemporaryDirectory() as folder:
        for name, taken, beside in _rows_of_processes(Path(folder)):
            ratio = beside if "(goal" in beside else "; ".join(filter(None, (taken, beside)))
            found = {"time": taken, "beside": beside, "ratio": ratio, "peers": ""}
            yield cells_of(name, found, found | {"ratio": ""} if has_avx512() else found), ""


def within(seconds: float, most: float) -> str:
    """Return which part of the time that it may take something took."""
    return f"{seconds / most:.2f} of {human(most)} (goal 1)"


def _rows_of_processes(folder: Path) -> Iterator[tuple[str, str, str]]:
    import polars as pl

    # Modules are compiled to bytecode once, as they are when a package is installed.
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    usual["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")

    def command(*arguments: str, cache: str = "") -> tuple[float, str]:
        environment = usual | ({"NUMBA_CACHE_DIR": str(folder / cache)} if cache else {})
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, *arguments], check=True, capture_output=True, text=True, env=environment, cwd=ROOT
        )
        return time.perf_counter() - start, done.stdout

    def run(code: str, cache: str = "") -> tuple[float, str]:
        return command("-c", code, cache=cache)

    def usual_seconds(*arguments: str, cache: str = "") -> float:
        command(*arguments, cache=cache)
        return statistics.median(command(*arguments, cache=cache)[0] for _ in range(5))

    charges = (
        "import dpfast as dpf, tempfile, time; from dpfast.ledger import Charge\n"
        "about = dict(dataset='d', privacy_unit='row', neighbors='add_remove'); charge = Charge.of(1e-6)\n"
        "durable = dpf.Ledger.open(tempfile.mkdtemp() + '/l.db', 1.0)\n"
        "for ledger, n in ((dpf.Ledger(1.0), 100_000), (durable, 2000)):\n"
        "    t = time.perf_counter()\n"
        "    for _ in range(n): ledger.charge(charge, **about)\n"
        "    print(n / (time.perf_counter() - t))"
    )
    run(charges)  # compiles bytecode
    in_memory, durable = map(float, run(charges)[1].split())
    beside = f"{durable:,.0f} a second durable (fsync each)"
    yield "Single charges", f"{in_memory:,.0f} a second in memory", beside
    imported = usual_seconds("-c", "import dpfast") - usual_seconds("-c", "pass")
    yield "`import dpfast`", human(imported), ""
    first = "import numpy as np, dpfast as dpf; dpf.laplace(np.arange(1000), 2.0)"
    run(first, "kernels of a run that compiles bytecode too")
    cold = run(first, "kernels")[0]
    warm = usual_seconds("-c", first, cache="kernels")
    yield "First noisy column, new process", human(warm), f"{within(warm, 0.7)}; with a cold kernel cache {human(cold)}"
    call = (
        "import numpy as np, dpfast as dpf, time; x = np.arange(1000); dpf.laplace(x, 2.0); t = time.perf_counter()\n"
        "for _ in range(2000): dpf.laplace(x, 2.0)\n"
        "print((time.perf_counter() - t) / 2000)"
    )
    single = statistics.median(float(run(call)[1]) for _ in range(3))
    yield "One call on 1,000 values", human(single), within(single, 25e-6)
    helped = usual_seconds("-m", "dpfast", "--help")
    yield "`dpfast --help`", human(helped), within(helped, 0.2)
    rows = folder / "rows.parquet"
    pl.DataFrame({"shop": range(1000), "person": range(1000)}).write_parquet(rows)
    asked = ["--by", "shop", "--count", "--unit", "person", "--max-groups", "2", "--max-rows", "9"]
    asked += ["--epsilon", "1", "--delta", "1e-7"]
    explained = usual_seconds("-m", "dpfast", "explain", str(rows), *asked)
    yield "`dpfast explain FILE`", human(explained), within(explained, 1.0)
    for name, beside, goal in (
        ("Count into 10^6 integer keys", "the plain query's", 1.5),
        ("Count, 10^5 units bounded to 10 groups", "the plain query's", 1.5),
        # Of both peaks 290 MB are what was loaded before. Beyond them a run takes 243 of the 300 MB that it may, and
        # 359 MB where it may take more, which was 390 when 0.8 was wished for.
        ("Sum of 10^7 rows by unit, within 300 MB", "what it takes without a limit", 0.85),
        ("Sum of an Arrow stream, 10^7 rows", "what reading it first takes", 0.7),
    ):
        peaks = {side: float(run(PEAK.format(name=name, side=side))[1]) for side in ("ours", "baseline")}
        verdict = f"{peaks['ours'] / peaks['baseline']:.2f} of {beside} (goal {goal:g})"
        yield f"{name}: peak memory, data included", f"{peaks['ours']:.0f} MB", verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--headlines", action="store_true")
    parser.add_argument("--limits", action="store_true")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.headlines:
        write_headlines(rows_written())
        return
    if arguments.limits:
        write(rows_written())
        return
    if arguments.row:
        json.dump(measure(arguments.row), sys.stdout)
        return
    failed: list[str] = []
    rows: list[list[str]] = []
    for row, kernels in itertools.chain(
        () if arguments.processes else rows_of_comparisons(arguments.only, failed),
        () if arguments.only else rows_of_processes(),
    ):
        rows.append(row)
        print(" | ".join(row), file=sys.stderr, flush=True)
        if arguments.write:
            write(_with_those_written(row), row, kernels)
    print(_table(rows))
    if arguments.write and not (arguments.only or arguments.processes):
        write(rows)  # without rows that are measured no more
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def _table(rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [HEADER, ["---"] * len(HEADER), *rows])


def _with_those_written(measured: list[str]) -> list[list[str]]:
    """Return this row and the others of benchmarks/measured.md, in the order of the table."""
    from benchmarks.comparisons import COMPARISONS

    rows = {row[0]: row for row in rows_written()} | {measured[0]: measured}
    order = [comparison.name for comparison in COMPARISONS]
    others = [name for name in rows if name not in order]
    return [rows[name] for name in (*order, *others) if name in rows]


def headlines(rows: list[list[str]]) -> str:
    """Return the short table of README: a time, and comparisons without their goals."""
    from benchmarks.comparisons import HEADLINES

    lines = ["| what | dpfast | beside it | with AVX2 |", "| --- | --- | --- | --- |"]
    for name, taken, beside, narrow, peers in (row for row in rows if row[0] in HEADLINES):
        first_peer = peers.partition(", ")[0].replace(" faster than", "")
        # Columns of a telephone are narrow: a cell has one short line.
        beside, narrow = (cell.partition(" (goal")[0] for cell in (beside, narrow))
        lines.append(f"| {name} | {taken} | {beside}{'; ' * bool(peers)}{first_peer} | {narrow} |")
    return "\n".join(lines)


def limits(rows: list[list[str]]) -> str:
    """Return the list of the rows that are below a goal, with the limit that was measured for each (limits.py)."""
    from benchmarks.limits import LIMITS, is_below_goal

    below = [row[0] for row in rows if any(is_below_goal(cell) for cell in row)]
    if not below:
        return ""
    lines = ["", "## Below their goals", "", "Nanoseconds are a value's, of `python benchmarks/parts.py`.", ""]
    lines += [f"- {name}: {LIMITS[name]}." for name in below if name in LIMITS]
    if unknown := [name for name in below if name not in LIMITS]:
        lines.append(f"- Without a limit that was measured: {'; '.join(unknown)}.")
    return "\n".join(lines) + "\n"


def rows_written() -> list[list[str]]:
    """Return the rows of benchmarks/measured.md."""
    lines = (ROOT / "benchmarks" / "measured.md").read_text().splitlines()
    table = [line[1:].removesuffix("|").split("|") for line in lines if line.startswith("| ")][2:]
    return [[cell.strip() for cell in cells] for cells in table]


def write(rows: list[list[str]], measured: list[str] | None = None, kernels: str = "") -> None:
    """Write all rows to benchmarks/measured.md, and the headlines into README.md.

    ``measured`` is the row that was measured just now, and ``kernels`` the digest of its kernels.
    """
    page = ROOT / "benchmarks" / "measured.md"
    known, names = origins.read_origins(page.with_suffix(".json")), [row[0] for row in rows]
    if measured is not None:
        here, wide = origins.processor(), has_avx512()
        columns = {origins.AVX512: here} if wide else {}
        if measured[3] or not wide:  # what whole processes take is not measured twice
            columns[origins.AVX2] = f"{here}, as one without AVX-512" if wide else here
        origins.note(known, measured[0], columns, kernels)
    origins.write_origins(page.with_suffix(".json"), known, names)
    head = "\n".join([ABOUT, *origins.lines_of_processors(known, names)])
    page.write_text(f"{head}\n\n{_table(rows)}\n{earlier_kernels(known, names)}{limits(rows)}")
    write_headlines(rows)


def earlier_kernels(known: origins.Origins, names: list[str]) -> str:
    """Return the list of the rows whose kernels have changed since a column was measured."""
    lines = origins.lines_of_earlier_kernels(known, names)
    about = (
        "Figures of earlier code, where the row's other column was measured later: its kernels have changed since, or"
        " what\nthey were was not kept. Rows whose columns were measured together are not listed, whatever has changed."
    )
    return "\n".join(["", "## Of earlier kernels", "", about, "", *lines, ""]) if lines else ""


def write_headlines(rows: list[list[str]]) -> None:
    """Write the headlines of all rows between the markers in README.md."""
    readme = ROOT / "README.md"
    before, rest = readme.read_text().split(BEGIN)
    after = rest.split(END)[1]
    readme.write_text(f"{before}{BEGIN}\n\n{headlines(rows)}\n\n{END}{after}")


if __name__ == "__main__":
    main()
