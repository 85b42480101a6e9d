"""Write the ledgers that `test_earlier_files.py` opens, as SQL, by the dpfast that came before format 3.

They are kept; this says how they were made, from the repository's root::

    git archive 6fe5511 dpfast | tar -x -C FOLDER
    PYTHONPATH=FOLDER python tests/ledger/earlier/write.py
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np

from dpfast.accounting.events import Approximate, Gaussian, Laplace, Pure
from dpfast.ledger import Charge, ChargeColumns, Ledger

ABOUT = {"dataset": "flights", "privacy_unit": "row", "neighbors": "add_remove"}
BUDGETS = {
    "basic": {"epsilon": 2, "delta": 1e-6},
    "zcdp": {"epsilon": 2, "delta": 1e-6, "conversion_delta": 4e-7},
    "rdp": {"epsilon": 2, "delta": 1e-6, "conversion_delta": 4e-7},
    "odometer": {"delta": 1e-6},
}
SCALES = np.array([20.0, 25.0, 40.0])


def charge(ledger: Ledger) -> None:
    """Charge something of each kind; one charge says less than its event costs, which was not refused then."""
    ledger.charge(Charge.of(0.1, description="known by its epsilon alone"), **ABOUT)
    ledger.charge(Charge.of(0.02, 1e-7, "several", event=Approximate(0.02, 1e-7), count=3), **ABOUT)
    ledger.charge(Charge.of(0.001, description="less than it costs", event=Laplace(8.0)), **ABOUT)
    columns = ChargeColumns(Laplace, {"scale": SCALES, "sensitivity": np.ones(3)}, 1 / SCALES, None, "columns")
    below = ChargeColumns(Pure, {"epsilon": np.array([0.02, 0.03])}, np.array([0.01, 0.03]), None, "less as columns")
    ledger.charge_many([columns, below, Charge.of(0.25, 1e-7, event=Gaussian(25.0))], **ABOUT)


def written(folder: Path, name: str, accountant: str, kind: str) -> None:
    path = folder / f"{name}.db"
    with Ledger.open(path, accountant=accountant, **BUDGETS[accountant]) as ledger:
        if kind != "empty":
            charge(ledger)
        if kind == "parts":
            part = {"epsilon": 0.5} if accountant == "basic" else {"rho": 0.01}
            with ledger.allot("ours", delta=1e-7, **part) as ours:
                ours.charge(Charge.of(0.1, event=Laplace(10.0)), **ABOUT)
        if kind == "beyond":  # more deltas of events than a half of the odometer's
            ledger.charge(Charge.of(0.02, 2e-7, "another"), **ABOUT)
    with closing(sqlite3.connect(path)) as connection:
        pragmas = [
            f"PRAGMA {pragma} = {connection.execute(f'PRAGMA {pragma}').fetchone()[0]};"
            for pragma in ("application_id", "user_version", "journal_mode")
        ]
        lines = [*connection.iterdump(), *pragmas]
    Path(__file__).with_name(f"{name}.sql").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for accountant in BUDGETS:
            kinds = ["empty", "parts" if accountant in ("basic", "zcdp") else "charged"]
            for kind in [*kinds, "beyond"] if accountant == "odometer" else kinds:
                written(Path(folder), f"{accountant}_{kind}", accountant, kind)
