"""Rows about budgets: a million queries answered, calibrated, charged durably, and composed."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpfast as dpf
from dpfast.accounting.accountants import zcdp
from dpfast.accounting.events import ExponentialMechanism, Gaussian, Laplace
from dpfast.answering.calibration import Rows
from dpfast.exact.amounts import UNITS_PER_ONE
from dpfast.ledger import Charge, ChargeColumns

from .prepared import Prepared

ABOUT = {"dataset": "data", "privacy_unit": "row", "neighbors": "add_remove"}


def _queries(size: int) -> pl.DataFrame:
    generator = np.random.default_rng(20_261_122)
    return pl.DataFrame({"count": generator.integers(0, 1000, size), "epsilon": generator.uniform(1e-5, 1e-4, size)})


def answers(size: int) -> Prepared:
    """Queries that are answered, charged and told with scales and intervals.

    Beside drawing, which is the baseline, charges are held against what their events cost and added up (.4 of it),
    scales found (.3), and two bounds of each answer written (.2); three columns of 8 MB are fresh memory.
    """
    table = _queries(size)
    scale = 1 / table["epsilon"].to_numpy()

    def ours() -> pl.DataFrame:
        return dpf.answer(table, value="count", epsilon="epsilon", ledger=dpf.Ledger(epsilon=1e6))

    return Prepared(
        ours,
        lambda: dpf.laplace(table["count"], scale),
        agree=lambda mine, theirs: np.allclose(mine["answer_scale"], scale) and len(mine) == len(theirs),
    )


def calibration(size: int) -> Prepared:
    """Ours plans and calibrates all queries; OpenDP only draws a tenth as many values."""
    import opendp.prelude as dp

    table = _queries(size)
    dp.enable_features("contrib")
    domain, metric = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    measurement = dp.m.make_laplace(domain, metric, scale=1e4)
    few = table["count"][: max(size // 10, 1)].to_list()
    return Prepared(
        lambda: Rows(frame=table, value="count", epsilon="epsilon").planned(),
        lambda: measurement(few),
        agree=lambda mine, theirs: len(mine) == 1 and len(theirs) == len(few),
    )


def selection_costs(size: int) -> Prepared:
    """Exact costs in rho of selections, each with its own epsilon, and their sum; the baseline rounds as floats do."""
    epsilon = 10.0 ** np.random.default_rng(20_261_123).uniform(-3, 2, size)

    def ours() -> float:
        return zcdp.rho_units(ExponentialMechanism, epsilon=epsilon).total() / UNITS_PER_ONE

    def baseline() -> float:
        ratio = epsilon / np.expm1(epsilon)
        return float((ratio - 1 - np.log(ratio)).sum())

    return Prepared(ours, baseline, agree=lambda mine, theirs: theirs * (1 - 1e-9) <= mine <= theirs * (1 + 1e-6))


def durable_charges(size: int) -> Prepared:
    table = _queries(size)
    epsilon = table["epsilon"].to_numpy()
    columns = ChargeColumns(Laplace, {"scale": 1 / epsilon, "sensitivity": np.ones(size)}, epsilon)
    frame = pl.DataFrame(columns.columns)
    folder = tempfile.TemporaryDirectory()
    ledger = dpf.Ledger.open(Path(folder.name) / "ledger.db", epsilon=1e6)

    def ours() -> float:
        ledger.charge_many([columns], **ABOUT)
        return ledger.spent.epsilon

    def baseline() -> Path:
        frame.write_parquet(Path(folder.name) / "charges.parquet")
        return Path(folder.name)

    return Prepared(ours, baseline, agree=lambda mine, _: abs(mine - epsilon.sum()) < 1e-9 * mine)


def single_charges(size: int) -> Prepared:
    """So many charges, one after the other, and as many bare inserts of a row as long in write-ahead mode.

    A commit of the baseline waits for the disk once, one with a rollback journal four times: bare SQLite with the
    journal of a ledger, and as many rows, takes 2.9 of the baseline's time. The lock of the file, a look at its name
    and state, and the seals take .3 to .5 more.
    """
    folder = tempfile.TemporaryDirectory()
    ledger = dpf.Ledger.open(Path(folder.name) / "ledger.db", epsilon=1.0)
    charge = Charge.of(1e-9, description="a count of rows")
    other = sqlite3.connect(Path(folder.name) / "other.db", isolation_level=None)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("PRAGMA synchronous = FULL")
    other.execute("CREATE TABLE entry (number INTEGER PRIMARY KEY, text TEXT)")

    def ours() -> Path:
        for _ in range(size):
            ledger.charge(charge, **ABOUT)
        return Path(folder.name)  # stays as long as this is in use

    def baseline() -> sqlite3.Connection:
        for _ in range(size):
            other.execute("BEGIN IMMEDIATE")
            other.execute("INSERT INTO entry (text) VALUES (?)", ("x" * 250,))
            other.execute("COMMIT")
        return other

    return Prepared(ours, baseline, agree=lambda mine, theirs: mine.exists() and theirs.total_changes >= size)


def opening(size: int) -> Prepared:
    """A ledger of so many entries is opened; beside it a single charge, which waits for the disk."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "ledger.db"
    with dpf.Ledger.open(path, epsilon=1.0) as ledger:
        for start in range(0, size, 10_000):
            numbers = range(start, min(start + 10_000, size))
            ledger.charge_many([Charge.of(1e-9, description=f"count number {number}") for number in numbers], **ABOUT)
    ledger = dpf.Ledger.open(Path(folder.name) / "small.db", epsilon=1.0)

    def ours() -> float:
        with dpf.Ledger.open(Path(folder.name) / "ledger.db") as opened:
            return opened.spent.epsilon

    return Prepared(
        ours,
        lambda: ledger.charge(Charge.of(1e-9), **ABOUT),
        agree=lambda mine, number: mine == size / 10**9 and number >= 1,
    )


def partitions(size: int) -> Prepared:
    """A million partitions in another order than listed, each charged its own epsilon within its own budget."""
    epsilon = _queries(size)["epsilon"]
    listed = pl.Series("user", np.arange(size))
    charged = listed.shuffle(seed=1)
    folder = tempfile.TemporaryDirectory()
    ledger = dpf.Ledger.open(Path(folder.name) / "ledger.db", epsilon=2.0, **ABOUT)
    parts = ledger.partition("users", keys=listed, epsilon=1.0, units_in_one_partition=True)

    def ours() -> float:
        parts.charge(charged, epsilon=epsilon)
        return ledger.spent.epsilon

    def baseline() -> Path:
        pl.DataFrame({"user": charged, "epsilon": epsilon}).write_parquet(Path(folder.name) / "charges.parquet")
        return Path(folder.name)

    return Prepared(ours, baseline, agree=lambda mine, _: mine == 1.0)


def composition(mixed: bool) -> Callable[[int], Prepared]:
    """A thousand parameter sets, ``size`` queries in all."""

    def prepare(size: int) -> Prepared:
        from dp_accounting.pld import privacy_loss_distribution as peer

        from dpfast.accounting.accountants.pld import PLD

        kinds = 1000 if size >= 10**6 else 20
        times, scales = max(size // kinds, 1), np.linspace(1000.0, 3000.0, kinds)
        is_gaussian = [mixed and number % 2 == 1 for number in range(kinds)]
        delta = 1e-6

        def ours() -> tuple[float, float]:
            events = [
                (Gaussian if gaussian else Laplace)(scale).times(times)
                for scale, gaussian in zip(scales, is_gaussian, strict=True)
            ]
            accountant = PLD(events)
            return accountant.epsilon(delta), accountant.epsilon_lower(delta)

        def baseline() -> float:
            total: Any = None
            for scale, gaussian in zip(scales, is_gaussian, strict=True):
                make = peer.from_gaussian_mechanism if gaussian else peer.from_laplace_mechanism
                one = make(float(scale), value_discretization_interval=1e-4).self_compose(times)
                total = one if total is None else total.compose(one)
            return total.get_epsilon_for_delta(delta)

        def agree(mine: tuple[float, float], theirs: float) -> bool:
            upper, lower = mine
            return lower <= theirs * 1.0001 and upper <= theirs * 1.001 and upper <= lower * 1.001

        return Prepared(ours, baseline, agree=agree)

    return prepare


def training(size: int) -> Prepared:
    """Steps of private training: Gaussian noise of scale 1 on a Poisson sample of a thousandth, ``size`` of them.

    The peer gives its upper bound alone, its losses in steps of 1e-4; ours gives both bounds, at most a relative 5e-4
    apart.
    """
    from dp_accounting.pld import privacy_loss_distribution as peer

    from dpfast.accounting.accountants.pld import PLD
    from dpfast.accounting.events import PoissonSubsampled

    delta = 1e-6

    def ours() -> tuple[float, float]:
        accountant = PLD(PoissonSubsampled(Gaussian(1.0), 0.001).times(size))
        return accountant.epsilon(delta), accountant.epsilon_lower(delta)

    def baseline() -> float:
        one = peer.from_gaussian_mechanism(1.0, sampling_prob=0.001, value_discretization_interval=1e-4)
        return one.self_compose(size).get_epsilon_for_delta(delta)

    def agree(mine: tuple[float, float], theirs: float) -> bool:
        upper, lower = mine
        return lower <= theirs and upper <= theirs * 1.0005 and upper <= lower * 1.0006

    return Prepared(ours, baseline, agree=agree)
