"""Right calls of ledgers, of their methods and of their partitions'."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import polars as pl

import dpfast as dpf
from dpfast.ledger import Charge

from .calls import Call

ABOUT = {"dataset": "flights", "privacy_unit": "row", "neighbors": "add_remove"}
LEDGER = dpf.Ledger(epsilon=10, delta=1e-3, **ABOUT)
BY_RHO = dpf.Ledger(epsilon=10, delta=1e-3, accountant="zcdp")
DURABLE = Path(mkdtemp()) / "ledger.db"
dpf.Ledger.open(DURABLE, epsilon=1).close()
LEDGER.allot("made", epsilon=1)
KEYS = pl.Series("region", ["east", "north", "west"])
PARTITIONS = LEDGER.partition("regions", keys=KEYS, epsilon=1, delta=1e-6, units_in_one_partition=True)
NUMBERS = count()


def of(call: str, function: Callable[..., Any], /, **given: Any) -> Call:
    """Return a call; what makes an account or a file makes it afresh."""

    def make() -> dict[str, Any]:
        return {argument: value() if callable(value) else value for argument, value in given.items()}

    return Call(call, function, make)


def a_name() -> str:
    return f"name_{next(NUMBERS)}"


CALLS = [
    of("Ledger", dpf.Ledger, epsilon=1.0, delta=1e-6, **ABOUT),
    of("Ledger of rho", dpf.Ledger, epsilon=1.0, delta=1e-6, accountant="zcdp", conversion_delta=1e-7),
    of("odometer", dpf.Ledger, delta=1e-6, accountant="odometer", conversion_delta=1e-7),
    of("Ledger.open a new file", dpf.Ledger.open, path=lambda: Path(mkdtemp()) / "ledger.db", epsilon=1.0, **ABOUT),
    of("Ledger.open a file", dpf.Ledger.open, path=DURABLE),
    of("Ledger.charge", LEDGER.charge, charge=Charge.of(0.1), **ABOUT),
    of("Ledger.charge_many", LEDGER.charge_many, charges=[Charge.of(0.1)], **ABOUT),
    of("Ledger.allot", LEDGER.allot, name=a_name, epsilon=0.1, delta=1e-6),
    of("Ledger.allot of rho", BY_RHO.allot, name=a_name, rho=0.001),
    of("Ledger.allotment", LEDGER.allotment, name="made"),
    of("Ledger.partition", LEDGER.partition, name=a_name, keys=KEYS, epsilon=0.1, units_in_one_partition=True),
    of("Ledger.partitioning", LEDGER.partitioning, name="regions"),
    of("Ledger.report", LEDGER.report, delta=1e-3),
    of("Ledger.plot", LEDGER.plot, path=lambda: Path(mkdtemp()) / "chart.svg"),
    of("Ledger.write_report", LEDGER.write_report, path=lambda: Path(mkdtemp()) / "page.html", overwrite=False),
    of("Partitions.charge", PARTITIONS.charge, keys=KEYS, epsilon=0.1, delta=1e-7, description="counts"),
]
