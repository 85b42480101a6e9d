"""The demonstration: a private histogram of the flights that left New York City in 2013, beside the truth.

The data are public, which is the only reason why true values may be shown here; a release of private data shows
nothing but what `Release.frame` holds.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

import dpfast as dpf
from dpfast.accounting.budget import Amounts
from dpfast.charts import check_plot
from dpfast.cli.demo.flights import DATASET, read_flights
from dpfast.cli.documents import ledger_facts, wants_document, write_document
from dpfast.cli.errors import FileTroubleError
from dpfast.cli.options import Destination
from dpfast.cli.output import Outputs
from dpfast.cli.releasing import run_plan
from dpfast.cli.terminal import Progress, console, print_table

if TYPE_CHECKING:
    from dpfast.ledger import Ledger
    from dpfast.releases.plan import Plan
    from dpfast.releases.release import Release

__all__ = ["MAX_GROUPS", "MAX_ROWS", "plan_demo", "run_demo", "true_values"]

#: At these, and epsilon 4, about 180 routes of 314 pass the selection.
#: More groups or rows an aircraft would clip less and need more noise for every route.
MAX_GROUPS, MAX_ROWS = 20, 10
#: Minutes. Most of the mean's noise is proportional to the width; beyond an hour a delay counts as an hour.
DELAY_BOUNDS = (-20, 60)
DELTA = 1e-6
#: A ledger lasts for two runs; the third opens a new one and says so.
RUNS_A_LEDGER = 2
_LEDGER = "ledger-{}.db"
_FIRST_LEDGER = _LEDGER.format(1)

#: The queries that have charts, and all files that a demonstration may write beside its ledgers.
_CHARTS = ("flights", "delay")
_FILES = (
    "flights.parquet",
    "report.html",
    *(f"{name}{end}" for name in _CHARTS for end in (".png", ".svg", "-all.svg")),
)
#: Routes in the table; in a chart, as `Release.plot` draws it; and in a chart of all of them.
_SHOWN, _CHARTED, _MOST_CHARTED = 20, 30, 500


def plan_demo(flights: pl.DataFrame, epsilon: float) -> Plan:
    """Return the demonstration's plan: flights and mean delay by route, the aircraft as privacy unit."""
    return dpf.plan(
        flights,
        by=["carrier", "dest"],
        flights=dpf.count(),
        delay=dpf.mean("dep_delay", bounds=DELAY_BOUNDS),
        privacy_unit="tailnum",
        max_groups=MAX_GROUPS,
        max_rows_per_group=MAX_ROWS,
        epsilon=epsilon,
        delta=DELTA,
        dataset=DATASET,
    )


def true_values(flights: pl.DataFrame) -> pl.DataFrame:
    """Return, by route, the true figures, and what bounding the aircraft leaves of them on average.

    An aircraft that flies g routes keeps each with probability min(1, G / g), and of n flights there min(n, R);
    so its flights on the route weigh min(1, G / g) min(n, R) / n each.
    """
    low, high = DELAY_BOUNDS
    pairs = (
        flights.filter(pl.col("tailnum").is_not_null())
        .group_by("tailnum", "carrier", "dest")
        .agg(
            rows=pl.len(),
            values=pl.col("dep_delay").count(),
            total=pl.col("dep_delay").clip(low, high).sum(),
        )
        .with_columns(routes=pl.len().over("tailnum"))
    )
    weight = pl.min_horizontal(1.0, MAX_GROUPS / pl.col("routes")) * pl.min_horizontal(1.0, MAX_ROWS / pl.col("rows"))
    bounded = pairs.group_by("carrier", "dest").agg(
        kept_flights=(pl.col("rows") * weight).sum(),
        kept_delay=(pl.col("total") * weight).sum() / (pl.col("values") * weight).sum(),
    )
    whole = flights.group_by("carrier", "dest").agg(true_flights=pl.len(), true_delay=pl.col("dep_delay").mean())
    return whole.join(bounded, on=["carrier", "dest"], how="left").with_columns(pl.col("kept_flights").fill_null(0.0))


def run_demo(folder: Path, epsilon: float) -> None:
    """Run the demonstration and write its table, charts and ledger to a folder.

    Raises
    ------
    DpfastError
        A package is missing, a parameter is not allowed, or a file cannot be written or is somebody else's.

    """
    check_plot(folder / "chart.png")
    again = _was_run(folder)
    show = console().print
    with Progress() as progress:
        flights = read_flights()
        plan = plan_demo(flights, epsilon)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileTroubleError(
                f"the folder {str(folder)!r} cannot be made ({error.strerror}); give another --out"
            ) from None
        ledger, path, used_up = _open_ledger(folder, plan)
        written = [folder / "flights.parquet"]
        with Outputs(Destination(str(path), str(written[0]), overwrite=True), keep=()) as outputs:
            release = run_plan(plan, ledger, str(path), progress)
            progress("writing")
            outputs.save_frame(release.frame)
        for query in _CHARTS:
            for suffix in (".png", ".svg"):
                written.append(folder / f"{query}{suffix}")
                release.plot(written[-1], query=query)
            if release.frame.height > _CHARTED:
                written.append(folder / f"{query}-all.svg")
                release.plot(written[-1], query=query, top=min(release.frame.height, _MOST_CHARTED))
        written.append(release.report(folder / "report.html", overwrite=True))
    if wants_document():
        charged = ledger_facts(ledger, str(path), entry=release.entry, charged=release.spent)
        write_document(
            folder=str(folder),
            files=[str(file) for file in written],
            flights=flights.height,
            rows=release.frame.height,
            columns=release.frame.columns,
            why_empty=release.why_empty,
            ledger=charged,
        )
        return
    show(
        f"{flights.height:,} flights from New York City in 2013 (the package {DATASET}); the plan, made without them:\n"
    )
    show(plan.explain())
    _show_table(release, flights)
    for old in used_up:
        show(f"The budget of {old} does not suffice for another run: that is what a ledger is for.")
    left, total = ledger.remaining, ledger.total
    show(
        f"Charged {path} (entry {release.entry}): epsilon {plan.epsilon:g} of {total.epsilon:g}, "
        f"delta {plan.delta:g} of {total.delta:g}; left: {left}."
    )
    if release.frame.height > _CHARTED:
        show(
            f"The charts show {_CHARTED} of the {release.frame.height} routes: those of the most released flights, and "
            "those whose mean delay has the least\nnoise. flights-all.svg and delay-all.svg show all."
        )
    show("Wrote " + ", ".join(str(file) for file in written) + (", over those of an earlier run." if again else "."))


def _was_run(folder: Path) -> bool:
    """Return whether an earlier demonstration wrote to a folder; where none did, its files are somebody else's."""
    if (folder / _FIRST_LEDGER).exists():
        return True
    for name in _FILES:
        if os.path.lexists(folder / name):
            told = "is there already, and no demonstration wrote it"
            raise FileTroubleError(f"{str(folder / name)!r} {told}; give another folder to --out")
    return False


def _open_ledger(folder: Path, plan: Plan) -> tuple[Ledger, Path, list[Path]]:
    """Open the folder's first ledger with room for the plan, or a new one; return the used up ones as well.

    A second ledger for the same data voids the first one's promise, which is harmless with public data alone.
    """
    used_up: list[Path] = []
    while True:
        path = folder / _LEDGER.format(len(used_up) + 1)
        if not path.exists():
            # Doubling a float is exact, so that the budget holds exactly two charges.
            budget = (RUNS_A_LEDGER * plan.epsilon, RUNS_A_LEDGER * plan.delta)
            return dpf.Ledger.open(path, *budget, dataset=DATASET), path, used_up
        ledger = dpf.Ledger.open(path)
        left = ledger.remaining
        if isinstance(left, Amounts) and left.epsilon >= plan.epsilon and left.delta >= plan.delta:
            return ledger, path, used_up
        used_up.append(path)


def _show_table(release: Release, flights: pl.DataFrame) -> None:
    truth = true_values(flights)
    frame = release.frame.join(truth, on=["carrier", "dest"], how="left", maintain_order="left")
    frame = frame.sort("flights", descending=True)
    rows = [
        (
            f"{row['carrier']} → {row['dest']}",
            f"{row['flights']:,} ± {row['flights_upper'] - row['flights']:,}",
            f"{row['kept_flights']:,.0f}",
            f"{row['true_flights']:,}",
            # No minus stands before a zero.
            f"{row['delay']:z.1f} [{row['delay_lower']:z.0f}, {row['delay_upper']:z.0f}]",
            f"{row['kept_delay']:z.1f}",
            f"{row['true_delay']:z.1f}",
        )
        for row in frame.head(_SHOWN).iter_rows(named=True)
    ]
    show = console().print
    show(f"\n{len(rows)} of the {frame.height} routes released (of {truth.height}), with 95% intervals.")
    show("The columns marked * are true values: shown only because these data are public.")
    headers = ("route", "flights", "kept*", "all*", "mean delay (min)", "kept*", "all*")
    print_table(headers, rows)
    inside = [
        int(frame.select(pl.col(kept).is_between(f"{name}_lower", f"{name}_upper").sum()).item())
        for name, kept in (("flights", "kept_flights"), ("delay", "kept_delay"))
    ]
    share = float(frame["kept_flights"].sum()) / max(float(frame["true_flights"].sum()), 1.0)
    low, high = DELAY_BOUNDS
    show(
        f"Each aircraft keeps at most {MAX_GROUPS} routes and {MAX_ROWS} flights on each, drawn at random, and a delay "
        f"counts as {low} to\n{high} minutes. That leaves {share:.0%} of the flights on these routes: 'kept' is what "
        "is left on average. What else\ndiffers is noise and the luck of the draw: the intervals, which are of the "
        f"noise alone, hold the kept count of\n{inside[0]} and the kept mean of {inside[1]} of {frame.height} routes.\n"
    )
