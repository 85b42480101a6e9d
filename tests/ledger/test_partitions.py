"""Budgets by partition: soundness rule 13, charged by columns, kept in memory, in a file and in a database."""

from __future__ import annotations

import json
import os
import pickle
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast
from dpfast.errors import BudgetExceededError, ColumnError, LedgerError, ParameterError
from dpfast.exact.units import Units
from dpfast.ledger import Charge, Identity, Ledger
from dpfast.ledger.partitioned import PartitionCharges

ABOUT = {"dataset": "flights", "privacy_unit": "row", "neighbors": "add_remove"}
KEYS = pl.Series("region", ["east", "north", "west"])


def partitioned(make_ledger, epsilon=0.5, budget=2, keys=KEYS, one=True, **about):
    ledger = make_ledger(budget, 0.5, **(ABOUT | about))
    return ledger, ledger.partition("regions", keys=keys, epsilon=epsilon, delta=1e-6, units_in_one_partition=one)


def test_maximum_for_add_remove(make_ledger):
    """Soundness rule 13: the ledger bears the budget of one partition, once, whatever the partitions spend of it."""
    ledger, parts = partitioned(make_ledger)
    assert (ledger.spent.epsilon, ledger.spent.delta) == (0.5, 1e-6)
    for _ in range(5):
        parts.charge(epsilon=0.1, description="counts")
    parts.charge(KEYS[:1], epsilon=0.0, delta=1e-6)
    assert (ledger.spent.epsilon, ledger.spent.delta) == (0.5, 1e-6)
    assert parts.spent.rows() == [("east", 0.5, 1e-6), ("north", 0.5, 0.0), ("west", 0.5, 0.0)]
    assert parts.remaining.rows() == [("east", 0.0, 0.0), ("north", 0.0, 1e-6), ("west", 0.0, 1e-6)]
    with pytest.raises(BudgetExceededError, match="3 partitions have not enough left"):
        parts.charge(epsilon=1e-18)
    with pytest.raises(BudgetExceededError, match=r"1 partition has not enough left \(the first, number 0"):
        parts.charge(KEYS[:1], epsilon=0, delta=1e-18)


def test_two_for_replace(make_ledger):
    """Soundness rule 13: an exchanged unit may leave one partition and enter another: the two largest."""
    ledger, _ = partitioned(make_ledger, neighbors="replace")
    assert (ledger.spent.epsilon, ledger.spent.delta) == (1.0, 2e-6)
    with pytest.raises(BudgetExceededError):
        ledger.partition("more", keys=KEYS, epsilon=0.6, units_in_one_partition=True)
    with pytest.raises(LedgerError, match="no allotment"):
        ledger.partitioning("more")


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_sum_where_units_span_partitions(make_ledger, neighbors):
    """Soundness rule 13: where units span partitions their charges add up: they share one budget."""
    ledger, parts = partitioned(make_ledger, one=False, neighbors=neighbors)
    assert ledger.spent.epsilon == 0.5
    parts.charge(epsilon=0.1)
    with pytest.raises(BudgetExceededError, match=r"epsilon 0\.3 and delta 0 were asked, but epsilon 0\.2"):
        parts.charge(epsilon=0.1)
    parts.charge(KEYS[1:], epsilon=0.1)
    assert parts.spent["epsilon"].to_list() == [0.1, 0.2, 0.2]
    assert parts.remaining["epsilon"].to_list() == [0.0] * 3


def test_attested_and_settled(make_ledger):
    """Soundness rule 13: one partition a unit is attested, and the neighbours are known, before anything is made."""
    ledger = make_ledger(1)
    with pytest.raises(LedgerError, match="give the ledger's dataset"):
        ledger.partition("a", keys=KEYS, epsilon=0.1, units_in_one_partition=True)
    ledger.charge(Charge.of(0.1), **ABOUT)
    with pytest.raises(TypeError):
        ledger.partition("a", keys=KEYS, epsilon=0.1)
    with pytest.raises(BudgetExceededError):
        ledger.partition("a", keys=KEYS, epsilon=1, units_in_one_partition=True)
    part = ledger.allot("a", epsilon=0.1)
    with pytest.raises(LedgerError, match="cannot be divided"):
        part.partition("b", keys=KEYS, epsilon=0.01, units_in_one_partition=True)
    with pytest.raises(LedgerError, match="already"):
        ledger.partition("a", keys=KEYS, epsilon=0.1, units_in_one_partition=True)
    with pytest.raises(LedgerError, match="is an allotment"):
        ledger.partitioning("a")
    assert ledger.spent.epsilon == 0.2
    with pytest.raises(LedgerError, match='use "basic"'):
        Ledger(1, 1e-6, accountant="zcdp", **ABOUT).partition("a", keys=KEYS, epsilon=1, units_in_one_partition=True)


def test_observed_users_are_refused(make_ledger):
    """Soundness rule 13: keys beyond the public list, as observed users would be, are refused, not added."""
    _, parts = partitioned(make_ledger, keys=pl.Series("user", [1, 2, 3]))
    observed = pl.Series("user", [3, 4])
    with pytest.raises(ParameterError, match=r"keys\[1\] must be a partition of the public list") as error:
        parts.charge(observed, epsilon=0.1)
    assert "4" not in str(error.value)
    with pytest.raises(ParameterError, match="without nulls"):
        parts.charge(pl.Series("user", [3, None]), epsilon=0.1)
    assert parts.spent["epsilon"].to_list() == [0.0] * 3
    assert parts.keys["user"].to_list() == [1, 2, 3]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1, 1e-19, True, "0.1", None])
def test_bad_amounts(make_ledger, number):
    """Bad input: nothing is charged for an amount out of range, one among many either."""
    _, parts = partitioned(make_ledger)
    for name in ("epsilon", "delta"):
        with pytest.raises((ParameterError, ColumnError)):
            parts.charge(**({"epsilon": 0.1} | {name: number}))
        if type(number) is float:
            with pytest.raises(ParameterError):
                parts.charge(**({"epsilon": 0.1} | {name: pl.Series([0.1, number, 0.1])}))
    bad = [pl.Series([0.1]), pl.Series([0.1, None, 0.1]), pl.Series(["a"] * 3), np.ones((3, 1)), pl.Series([True] * 3)]
    for column in [*bad, pl.Series([0.1, 0, 0.1]), 0]:
        with pytest.raises((ParameterError, ColumnError)):
            parts.charge(epsilon=column)
    with pytest.raises(ColumnError):
        parts.charge(pl.Series([1]), epsilon=0.1)
    with pytest.raises(ColumnError):
        parts.charge(pl.DataFrame({"other": ["east"]}), epsilon=0.1)
    assert parts.spent["epsilon"].sum() == parts.spent["delta"].sum() == 0


def test_all_or_nothing(make_ledger):
    _, parts = partitioned(make_ledger)
    parts.charge(KEYS[2:], epsilon=0.4)
    before = parts.spent
    with pytest.raises(BudgetExceededError, match="number 2"):
        parts.charge(epsilon=0.2)
    assert parts.spent.equals(before)
    parts.charge(pl.Series(["west", "east", "east"]), epsilon=pl.Series([0.1, 0.2, 0.3]))  # rows of one add up
    assert parts.spent["epsilon"].to_list() == [0.5, 0.0, 0.5]
    with pytest.raises(BudgetExceededError):
        parts.charge(pl.Series(["north"] * 6), epsilon=0.1)


def test_found_again(make_ledger):
    """Keys of several columns and kinds; charges are kept, told, and the same for whoever looks."""
    keys = pl.DataFrame({"day": [1, 2, 1], "place": pl.Series(["a", "a", "b"], dtype=pl.Enum(["a", "b"]))})
    ledger, parts = partitioned(make_ledger, keys=keys)
    parts.charge(keys[1:], epsilon=0.1, description="first")
    again = ledger.partitioning("regions")
    again.charge(keys.select("place", "day")[::-1], epsilon=pl.Series([0.1, 0.2, 0.3]))
    ledger.charge(Charge.of(0.1), **ABOUT)
    assert parts.spent.rows() == again.spent.rows() == [(1, "a", 0.3, 0.0), (2, "a", 0.3, 0.0), (1, "b", 0.2, 0.0)]
    shown = parts.history().select("entry", "count", "epsilon", "event", "description").rows()
    assert shown == [
        (2, 1, 0.0, "partition keys", "3 partitions"),
        (3, 2, 0.2, "partition charges", "first"),
        (5, 3, 0.6, "partition charges", ""),
    ]
    assert ledger.history().height == 5
    assert ledger.report()["epsilon"].to_list()[1] == pytest.approx(0.6)
    with pytest.raises(LedgerError, match=r"use ledger\.partitioning"):
        ledger.allotment("regions")
    with pytest.raises(LedgerError):
        pickle.dumps(parts)


amounts = st.integers(0, 3 * 10**18)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 4 * 10**18),
    st.lists(st.lists(st.tuples(st.integers(0, 3), amounts, st.integers(0, 10**15)), min_size=1, max_size=6)),
    st.booleans(),
)
def test_against_fractions(cap, calls, one):
    """Soundness rules 10 and 13: against a plain dictionary of rationals, whatever is asked in whatever order."""
    unit = Fraction(1, 10**18)
    ledger = Ledger(cap * unit, 0.01, **ABOUT)
    parts = ledger.partition("p", keys=pl.Series("k", range(4)), epsilon=cap * unit, delta=0.01,
                             units_in_one_partition=one)  # fmt: skip
    spent = {key: (Fraction(0), Fraction(0)) for key in range(4)}
    for rows in calls:
        after = dict(spent)
        for key, epsilon, delta in rows:
            after[key] = (after[key][0] + epsilon * unit, after[key][1] + delta * unit)
        held = list(after.values()) if one else [tuple(map(sum, zip(*after.values(), strict=True)))]
        fits = all(epsilon <= cap * unit and delta <= Fraction(1, 100) for epsilon, delta in held)
        codes, *columns = (np.array(column) for column in zip(*rows, strict=True))
        limbs = [Units(column // 10**18, column % 10**18) for column in columns]
        item = PartitionCharges(codes.astype(np.uint32), *limbs, len(rows))
        assert PartitionCharges.unpacked(item.packed(), "").packed() == item.packed()
        if fits:
            ledger._store.append("p", (item,), Identity())
            spent = after
        else:
            with pytest.raises(BudgetExceededError):
                ledger._store.append("p", (item,), Identity())
        state = ledger._store.account("p").partitions
        assert [Fraction(e, 10**18) for e in state.epsilon] == [spent[key][0] for key in range(4)]
        assert [Fraction(d, 10**18) for d in state.delta] == [spent[key][1] for key in range(4)]
    assert parts.spent["epsilon"].to_list() == pytest.approx([float(spent[key][0]) for key in range(4)])


def test_carries_at_scale():
    """Parts that carry, wholes beyond 9.22, and codes past the table, in the kernels themselves."""
    from dpfast.kernels.amounts.partition_budgets import add_amounts, first_above

    whole, part = np.zeros(2, np.int64), np.zeros(2, np.int64)
    codes = np.array([0, 1, 0, 2, 2**32 - 1], np.uint32)
    assert add_amounts(codes, np.full(5, 10**6), np.full(5, 10**18 + 128), whole, part) == 2
    assert (whole.tolist(), part.tolist()) == ([2 * 10**6 + 2, 10**6 + 1], [256, 128])
    assert first_above(whole, part, 10**6 + 1, 128) == (0, 1)
    assert first_above(whole, part, 2 * 10**6 + 2, 256) == (-1, 0)


def test_a_million(make_ledger):
    keys = pl.Series("user", np.random.default_rng(1).permutation(10**6))
    ledger, parts = partitioned(make_ledger, keys=keys)
    epsilon = pl.Series(np.linspace(0.1, 0.2, 10**6))
    parts.charge(keys, epsilon=epsilon)
    parts.charge(keys[::-1], epsilon=epsilon)
    assert (parts.spent["epsilon"] - 0.3).abs().max() < 1e-15
    with pytest.raises(BudgetExceededError, match=r"^1 partition has"):
        parts.charge(pl.concat([keys, keys[:1]]), epsilon=0.15)
    parts.charge(epsilon=0.1)
    assert ledger.partitioning("regions").remaining["epsilon"].min() >= 0.0999
    assert ledger.spent.epsilon == 0.5


def test_kept_in_a_file(tmp_path):
    """What is opened again was added up again; two that write see each other's charges; damage is told."""
    path = tmp_path / "ledger.db"
    first, parts = partitioned(lambda *args, **about: Ledger.open(path, *args, **about))
    others = Ledger.open(path).partitioning("regions")
    parts.charge(KEYS[:1], epsilon=0.3)
    others.charge(KEYS[:2], epsilon=0.2)
    with pytest.raises(BudgetExceededError):
        parts.charge(KEYS[:1], epsilon=1e-18)
    parts.charge(KEYS[1:], epsilon=0.3)
    assert Ledger.open(path).partitioning("regions").spent["epsilon"].to_list() == [0.5, 0.5, 0.3]
    assert others.spent["epsilon"].to_list() == [0.5, 0.5, 0.3]
    first.close()
    others._store.close()
    content = path.read_bytes()
    for change in ("payload = x'00'", "epsilon = '1'", "account = ''", "event = 'partition keys'"):
        path.write_bytes(content)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"UPDATE entry SET {change} WHERE number = 3")
        with pytest.raises(LedgerError, match="damaged"):
            Ledger.open(path)


@pytest.mark.parametrize("place", ["durable", "postgresql"])
def test_killed_in_mid_charge(request, tmp_path, place):
    """Soundness rule 11: a crash at any statement leaves all rows of a call or none."""
    if place == "durable":
        opened = {"path": str(tmp_path / "ledger.db")}
    else:
        server = request.getfixturevalue("postgresql")
        opened = {"path": server.url, "name": next(server.names)}
    partitioned(lambda *args, **about: Ledger.open(**opened, epsilon=args[0], delta=args[1], **about))[0].close()
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("crashing_partitions.py")), json.dumps(opened)],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(dpfast.__file__).parents[1])},
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 3
