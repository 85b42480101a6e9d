"""A job for cron: visits come in as Parquet files, and each day is released once, from an allotment of its own.

    python examples/hourly_release.py FOLDER

The job may run as often as anybody likes, may be killed at any line, and may run twice at once. A day's budget is set
aside under the day's name, which the ledger gives once; a day whose file is there is done; and a day that was charged
and whose file is missing has nothing left to spend, so that it is reported, not drawn again.

The privacy unit is a visitor on a day: what a visitor does on two days is charged twice, once to each.
"""

from __future__ import annotations

import datetime
import os
import sys
from pathlib import Path

import polars as pl

import dpfast as dpf

PAGES = pl.DataFrame({"page": ["home", "search", "cart", "help"]})
EPSILON_A_DAY = 0.5


def allotment_of(day: str, ledger: dpf.Ledger) -> dpf.Ledger:
    """Return the part of the budget that is set aside under the day's name, by this run or an earlier one."""
    try:
        return ledger.allotment(day)
    except dpf.errors.LedgerError:
        pass
    try:
        return ledger.allot(day, epsilon=EPSILON_A_DAY)
    except dpf.errors.BudgetExceededError:
        raise
    except dpf.errors.LedgerError:
        # Another run has set it aside meanwhile.
        return ledger.allotment(day)


def release_day(day: str, folder: Path, ledger: dpf.Ledger) -> str:
    """Release one day's visits, unless that was done, and return what happened."""
    out = folder / "released" / f"{day}.parquet"
    if out.exists():
        return "done before"
    try:
        allotment = allotment_of(day, ledger)
    except dpf.errors.BudgetExceededError:
        return "not released: the ledger's budget is used up"
    try:
        release = dpf.release(
            folder / "visits" / f"day={day}",
            by="page",
            keys=PAGES,
            visits=dpf.count(),
            seconds=dpf.mean("seconds", bounds=(0, 600)),
            privacy_unit="visitor",
            max_groups=2,
            max_rows_per_group=5,
            epsilon=EPSILON_A_DAY,
            dataset="visits",
            ledger=allotment,
        )
    except dpf.errors.BudgetExceededError:
        return "charged by another run, which has not written its result"
    # Whole or not at all: a reader never meets half a file.
    out.parent.mkdir(exist_ok=True)
    part = out.with_suffix(f".{os.getpid()}")
    release.frame.write_parquet(part)
    part.rename(out)
    return f"released for epsilon {release.spent.epsilon}"


def main(folder: str | Path, today: datetime.date | None = None) -> dict[str, str]:
    """Release every day before today of which there are visits, and return what happened to each."""
    folder = Path(folder)
    today = today or datetime.date.today()
    ledger = dpf.Ledger.open(
        folder / "ledger.db", epsilon=30, dataset="visits", privacy_unit="column:visitor", neighbors="add_remove"
    )
    days = sorted(path.name.removeprefix("day=") for path in (folder / "visits").glob("day=*"))
    return {day: release_day(day, folder, ledger) for day in days if day < today.isoformat()}


if __name__ == "__main__":
    for day, result in main(sys.argv[1]).items():
        print(day, result)
