"""Releases and ledgers that pages are made of: of every kind, and of names that mean no good."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import polars as pl

import dpfast as dpf

EVIL = "<script>alert(1)</script>"
NAMES = ["Rome", None, "", EVIL, "x" * 3000, "שלום עולם, זה טקסט ארוך", "مدينة نصر"]
DAY, HOUR = datetime.date(2020, 1, 1), datetime.timedelta(hours=1)


def rows(count: int = 420) -> pl.DataFrame:
    numbers = range(count)
    return pl.DataFrame(
        {
            "k": [NAMES[number % len(NAMES)] for number in numbers],
            "city of & day": [number % 3 for number in numbers],
            "d": [DAY + datetime.timedelta(days=number) for number in numbers],
            "t": [HOUR * (number % 9) for number in numbers],
            "m": [decimal.Decimal(number) / 100 for number in numbers],
            "v": np.linspace(0, 1, count),
            "c": ["abc"[number % 3] for number in numbers],
            "u": numbers,
        },
        schema_overrides={"m": pl.Decimal(10, 2)},
    )


def every_value(ledger: dpf.Ledger | None = None) -> dpf.releases.release.Release:
    """Return a release of every kind of value: two keys, dates, durations, decimals, lists, quantiles and modes."""
    frame = rows()
    return dpf.release(
        frame,
        ["k", "city of & day"],
        keys=frame.select("k", "city of & day").unique(maintain_order=True),
        n=dpf.count(),
        when=dpf.mean("d", bounds=(DAY, DAY + datetime.timedelta(days=900))),
        took=dpf.mean("t", bounds=(0 * HOUR, 20 * HOUR)),
        paid=dpf.sum("m", bounds=(0, 100)),
        h=dpf.histogram("v", edges=[0, 0.25, 0.5, 1]),
        f=dpf.cdf("v", [0.2, 0.6]),
        late=dpf.quantile("v", [0.5, 0.9], bounds=(0, 1)),
        common=dpf.mode("c", candidates=["a", "b", "c"]),
        top=dpf.top_k("c", 2, candidates=["a", "b", "c"]),
        privacy_unit="row",
        epsilon=2,
        ledger=ledger or dpf.Ledger(epsilon=4, dataset=EVIL),
    )


def counts(groups: int, **more: object) -> dpf.releases.release.Release:
    keys = pl.DataFrame({"k": range(groups)})
    asked = {"n": dpf.count(), "privacy_unit": "row", "epsilon": 0.5, "ledger": dpf.Ledger(epsilon=1), **more}
    return dpf.release(keys, "k", keys=keys, **asked)  # type: ignore[arg-type]


def no_group() -> dpf.releases.release.Release:
    unit = {"privacy_unit": "u", "max_groups": 1, "max_rows_per_group": 1}
    ledger = dpf.Ledger(epsilon=1, delta=1e-6)
    return dpf.release(rows(20), "k", n=dpf.count(), epsilon=0.01, delta=1e-9, ledger=ledger, **unit)  # type: ignore[arg-type]


def answers(workload: object, cells: int, **more: object) -> dpf.releases.release.Release:
    keys = pl.DataFrame({"k": range(cells)})
    asked = {"epsilon": 0.5, "privacy_unit": "row", "ledger": dpf.Ledger(epsilon=1), **more}
    return dpf.release(keys, "k", keys=keys, workload=workload, **asked)  # type: ignore[arg-type]
