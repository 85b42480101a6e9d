"""What fits into a ledger and what does not, in memory and in a file alike."""

from __future__ import annotations

import contextlib
import copy
import pickle
import sys
import threading
import time
from datetime import UTC, datetime
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dpf
import dpfast.ledger.ledger
from dpfast.accounting.budget import Amounts
from dpfast.errors import BudgetExceededError, LedgerError, ParameterError
from dpfast.ledger import Charge, Identity, Ledger

ABOUT = {"dataset": "flights", "privacy_unit": "row", "neighbors": "add_remove"}
ROOM = dpfast.ledger.ledger.__file__.rsplit("/", 1)[0]


class HostileObject:
    def __eq__(self, other):
        raise RuntimeError("called")

    __float__ = __index__ = __str__ = __repr__ = __len__ = __bool__ = __eq__
    __hash__ = None


class HostileCharge(Charge):
    epsilon_units = delta_units = property(lambda self: 0)


def test_ten_tenths(make_ledger):
    """Soundness rule 10: ten charges of 0.1 fit into 1 exactly, and then not one unit more."""
    ledger = make_ledger(1.0)
    assert [ledger.charge(Charge.of(0.1), **ABOUT) for _ in range(10)] == list(range(1, 11))
    assert ledger.spent == Amounts(1.0, 0.0)
    assert ledger.remaining == Amounts(0.0, 0.0)
    with pytest.raises(BudgetExceededError, match="epsilon 1e-18 and delta 0 were asked, but epsilon 0 and"):
        ledger.charge(Charge.of(1e-18), **ABOUT)
    assert ledger.spent == ledger.total == Amounts(1.0, 0.0)


def test_three_tenths(make_ledger):
    """Soundness rule 10: floats would find 0.1 + 0.1 + 0.1 above 0.3."""
    ledger = make_ledger(0.3)
    for _ in range(3):
        ledger.charge(Charge.of(0.1), **ABOUT)
    assert ledger.remaining.epsilon == 0.0


def test_many_tiny_charges(make_ledger):
    """Soundness rule 10: 10⁵ charges of 1e-17 beside a large one are all counted."""
    ledger = make_ledger(1)
    ledger.charge(Charge.of(0.999999999999), **ABOUT)
    assert ledger.charge_many([Charge.of(1e-17)] * 10**5, **ABOUT) == range(2, 10**5 + 2)
    with pytest.raises(BudgetExceededError):
        ledger.charge(Charge.of(1e-18), **ABOUT)
    assert ledger.spent.epsilon == 1.0
    assert ledger.remaining.epsilon == 0.0


def test_beyond_64_bits(make_ledger):
    """Soundness rule 10: units overflow 64-bit integers at epsilon 9.22."""
    ledger = make_ledger(1e6)
    for amount in (9.0, 9.0, 9.223372036854775807, 99_999.5):
        ledger.charge(Charge.of(amount), **ABOUT)
    ledger.charge_many([Charge(2**63, 0, ""), Charge(2**64, 0, "")], **ABOUT)
    units = sum(entry.cost[0] for entry in ledger._store.entries())
    assert units == 18 * 10**18 + 9_223_372_036_854_776_000 + 99_999_500_000_000_000_000_000 + 2**63 + 2**64
    assert ledger.spent.epsilon == units / 10**18


def test_delta_alone(make_ledger):
    ledger = make_ledger(1, 1e-6)
    ledger.charge(Charge(0, 10**12, "all of delta"), **ABOUT)
    with pytest.raises(BudgetExceededError):
        ledger.charge(Charge(1, 1, "one unit more"), **ABOUT)
    ledger.charge(Charge(10**18, 0, "all of epsilon"), **ABOUT)
    assert ledger.remaining == Amounts(0.0, 0.0)


def test_without_delta(make_ledger):
    ledger = make_ledger(1)
    with pytest.raises(BudgetExceededError):
        ledger.charge(Charge(1, 1, ""), **ABOUT)
    assert ledger.spent == Amounts(0.0, 0.0)


def test_many_is_all_or_nothing(make_ledger):
    ledger = make_ledger(1)
    with pytest.raises(BudgetExceededError):
        ledger.charge_many([Charge.of(0.4)] * 3, **ABOUT)
    assert ledger.spent.epsilon == 0.0
    assert ledger.history().is_empty()
    assert ledger.identity == Identity()
    with pytest.raises(ParameterError):
        ledger.charge_many([], **ABOUT)


amounts = st.integers(1, 10**19)


@settings(max_examples=60, deadline=None)
@given(amounts, st.integers(0, 10**17), st.lists(st.tuples(amounts | st.just(0), st.integers(0, 10**17))))
def test_never_over_budget(total_epsilon, total_delta, asked):
    """Soundness rule 10: against an oracle in rationals, whatever is asked in whatever order."""
    unit = Fraction(1, 10**18)
    ledger = Ledger(total_epsilon * unit, total_delta * unit)
    spent = [Fraction(0), Fraction(0)]
    for epsilon, delta in asked:
        if epsilon == delta == 0:
            continue
        after = [spent[0] + epsilon * unit, spent[1] + delta * unit]
        if after[0] <= total_epsilon * unit and after[1] <= total_delta * unit:
            ledger.charge(Charge(epsilon, delta, ""), **ABOUT)
            spent = after
        else:
            with pytest.raises(BudgetExceededError):
                ledger.charge(Charge(epsilon, delta, ""), **ABOUT)
        assert ledger.spent == Amounts(float(spent[0]), float(spent[1]))


@pytest.mark.parametrize("number", ["epsilon", "delta"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, -0.0, 5e-324, True, "0.1", 10**400, HostileObject()])
def test_bad_budget(make_ledger, number, value):
    """Bad input: no ledger comes to be with a bad budget (all kinds: test_amounts.py)."""
    with pytest.raises(ParameterError):
        make_ledger(**({"epsilon": 1} | {number: value}))


@pytest.mark.parametrize("units", [-1, 1.0, True, "1", None, float("nan"), 10**24 + 1, 10**400, HostileObject()])
def test_bad_units(units):
    with pytest.raises(ParameterError):
        Charge(units, 0, "")
    with pytest.raises(ParameterError):
        Charge(1, units, "")


@pytest.mark.parametrize("description", [None, 1, b"", "\ud800", HostileObject()])
def test_bad_description(description):
    with pytest.raises(ParameterError):
        Charge(1, 0, description)


def forged_charge():
    charge = Charge(1, 0, "")
    object.__setattr__(charge, "epsilon_units", -1)
    return charge


@pytest.mark.parametrize(
    "charge", [None, 0.1, (1, 0, ""), HostileObject(), object.__new__(HostileCharge), forged_charge()]
)
def test_bad_charge(make_ledger, charge):
    """Bad input: what is no charge, or one made behind its checks, spends nothing."""
    ledger = make_ledger(1)
    with pytest.raises(ParameterError):
        ledger.charge(charge, **ABOUT)
    with pytest.raises(ParameterError):
        ledger.charge_many([Charge.of(0.1), charge], **ABOUT)
    assert ledger.spent.epsilon == 0.0


def test_empty_charge():
    with pytest.raises(ParameterError, match="above 0"):
        Charge(0, 0, "")


@pytest.mark.parametrize(
    "identity",
    [
        {"dataset": ""},
        {"dataset": 1},
        {"dataset": "\ud800"},
        {"dataset": HostileObject()},
        {"privacy_unit": ""},
        {"privacy_unit": b"row"},
        {"neighbors": "add-remove"},
        {"neighbors": HostileObject()},
    ],
)
def test_bad_identity(make_ledger, identity):
    with pytest.raises(ParameterError):
        make_ledger(1, **identity)
    ledger = make_ledger(1)
    with pytest.raises(ParameterError):
        ledger.charge(Charge.of(0.1), **(ABOUT | identity))
    with pytest.raises(ParameterError):
        ledger.charge(Charge.of(0.1), **(ABOUT | dict.fromkeys(identity)))
    assert ledger.spent.epsilon == 0.0


@pytest.mark.parametrize("other", [{"dataset": "taxis"}, {"privacy_unit": "column:tailnum"}, {"neighbors": "replace"}])
@pytest.mark.parametrize("at_creation", [False, True])
def test_identity_is_kept(make_ledger, other, at_creation):
    """Soundness rule 9: dataset, unit and neighbours are fixed; charges for others are refused."""
    ledger = make_ledger(1, **(ABOUT if at_creation else {}))
    assert ledger.identity == (Identity(**ABOUT) if at_creation else Identity())
    if not at_creation:
        ledger.charge(Charge.of(0.1), **ABOUT)
    before = ledger.spent
    with pytest.raises(LedgerError, match="nothing was charged"):
        ledger.charge(Charge.of(0.1), **(ABOUT | other))
    assert ledger.spent == before
    assert ledger.identity == Identity(**ABOUT)


def test_part_of_identity(make_ledger):
    ledger = make_ledger(1, privacy_unit="row")
    with pytest.raises(BudgetExceededError):
        ledger.charge(Charge.of(2), **ABOUT)
    assert ledger.identity == Identity(privacy_unit="row")
    ledger.charge(Charge.of(1), **ABOUT)
    assert ledger.identity == Identity(**ABOUT)


def test_history(make_ledger, monkeypatch):
    """Entries keep their order where the clock goes backwards."""
    ledger = make_ledger(1, 1e-3)
    assert ledger.history().is_empty()
    text = "count by 'dest'; DROP TABLE entry; -- é\n\0 end"
    for moment, charge in ((2_000_000_000, Charge.of(0.1, 1e-4, text)), (1_000_000_000, Charge.of(0.2))):
        monkeypatch.setattr(time, "time_ns", lambda moment=moment: moment * 10**9 + 1_999)
        ledger.charge(charge, **ABOUT)
    assert ledger.history().rows() == [
        (1, 1, datetime.fromtimestamp(2_000_000_000, UTC).replace(microsecond=1), "", 0.1, 1e-4, None, text),
        (2, 1, datetime.fromtimestamp(1_000_000_000, UTC).replace(microsecond=1), "", 0.2, 0.0, None, ""),
    ]
    assert ledger.history().schema == make_ledger(1, 1e-3).history().schema


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_no_copies(make_ledger, duplicate):
    """Soundness: a copied ledger would spend its budget twice."""
    with pytest.raises(LedgerError, match="copied or pickled"):
        duplicate(make_ledger(1))


def test_no_refund(make_ledger):
    ledger = make_ledger(1)
    public = {name for name in dir(ledger) if not name.startswith("_")}
    assert public == {
        "accountant",
        "allot",
        "allotment",
        "charge",
        "charge_many",
        "close",
        "head",
        "history",
        "identity",
        "open",
        "partition",
        "partitioning",
        "plot",
        "remaining",
        "report",
        "spent",
        "total",
        "verify",
        "write_report",
    }
    for name in ("spent", "remaining", "total", "identity"):
        with pytest.raises(AttributeError):
            setattr(ledger, name, Amounts(0.0, 0.0))


def test_closed(make_ledger):
    with make_ledger(1) as ledger:
        ledger.charge(Charge.of(0.1), **ABOUT)
    with pytest.raises(LedgerError, match="closed"):
        ledger.charge(Charge.of(0.1), **ABOUT)
    assert "closed" in repr(ledger)


def test_repr(make_ledger):
    ledger = make_ledger(1, 1e-6)
    ledger.charge(Charge.of(0.1), **ABOUT)
    assert "epsilon 0.9, delta 1e-06 left of epsilon 1, delta 1e-06 (basic); dataset 'flights'" in repr(ledger)


def test_threads(make_ledger):
    """Soundness rule 11: 64 threads race for 100 + 28 charges; exactly 100 succeed."""
    ledger = make_ledger(1)
    charge = Charge.of(0.01)
    numbers, refused = [], []
    start = threading.Barrier(64)

    def spend():
        start.wait()
        for _ in range(2):
            try:
                numbers.append(ledger.charge(charge, **ABOUT))
            except BudgetExceededError:
                refused.append(1)

    threads = [threading.Thread(target=spend) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 101))
    assert len(refused) == 28
    assert ledger.spent.epsilon == 1.0


def at_line(number, action):
    """Run an action before the n-th line that the ledger executes, as a signal handler would."""
    lines = 0

    def on_line(frame, event, _):
        nonlocal lines
        if event == "line":
            lines += 1
            if lines == number:
                sys.settrace(None)
                action()
        return on_line

    def on_call(frame, event, _):
        return on_line if frame.f_code.co_filename.startswith(ROOM) else None

    sys.settrace(on_call)


def interrupt_at_point(number):
    """Raise KeyboardInterrupt at the n-th place where CPython lets signal handlers run.

    Those are the entries of Python functions and the returns from calls.
    """
    points = 0

    def on_event(frame, event, _):
        nonlocal points
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith((ROOM, contextlib.__file__)):
            points += 1
            if points == number:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(on_event)


def test_interrupted_at_every_point(make_ledger):
    """KeyboardInterrupt anywhere in a charge: made or not made, and the ledger goes on."""
    ledger = make_ledger(1000)
    made = point = 0
    completed = False
    while not completed:
        point += 1
        try:
            interrupt_at_point(point)
            ledger.charge(Charge.of(1), **ABOUT)
            completed = True
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
        now = ledger.history()
        assert now["entry"].to_list() == list(range(1, now.height + 1))
        assert ledger.spent.epsilon == now.height
        assert made <= now.height <= made + 1
        made = now.height
    assert point > 20
    assert ledger.charge(Charge.of(1), **ABOUT) == made + 1


def test_nested_at_every_line(make_ledger):
    """A charge inside a charge is refused or counted: it is never lost beneath the outer one."""
    ledger = make_ledger(1000)
    inner, reached = [], []

    def nested():
        reached.append(line)
        with contextlib.suppress(LedgerError):
            inner.append(ledger.charge(Charge.of(2), **ABOUT))

    line = 0
    while len(reached) == line:
        line += 1
        try:
            at_line(line, nested)
            ledger.charge(Charge.of(1), **ABOUT)
        finally:
            sys.settrace(None)
        assert ledger.spent.epsilon == line + 2 * len(inner)
    assert 0 < len(inner) < len(reached)


def test_a_class_of_the_users_has_its_say():
    """What it overrides is called for every route that pays: to note a charge, or to refuse it."""
    noted = []

    class Noting(dpf.Ledger):
        def charge_many(self, charges, **about):
            noted.append([charge.description for charge in charges])
            if len(noted) > 1:
                raise LedgerError("mine")
            return super().charge_many(charges, **about)

    ledger = Noting(epsilon=1.0)
    asked = {"n": dpf.count(), "privacy_unit": "row", "epsilon": 0.25}
    release = dpf.release(pl.DataFrame({"a": range(9)}), ledger=ledger, **asked)
    assert (release.entry, release.spent.epsilon, ledger.remaining.epsilon) == (1, 0.25, 0.75)
    with pytest.raises(LedgerError, match="mine"):
        dpf.answer(pl.DataFrame({"x": [1, 2]}), value="x", epsilon=0.1, ledger=ledger)
    assert len(noted) == 2
    assert ledger.spent.epsilon == 0.25
