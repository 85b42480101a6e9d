"""Opening a durable ledger, and making one where there is none."""

from __future__ import annotations

import os
from pathlib import Path

from dpfast.accounting.amounts import budget_units, to_decimal
from dpfast.errors import LedgerError, ParameterError
from dpfast.ledger.account import MAIN, Account, Identity
from dpfast.ledger.charges import check_text
from dpfast.ledger.filters import Filter, make_filter
from dpfast.ledger.sqlite import SqliteStore

__all__ = ["new_filter", "open_file"]


def new_filter(accountant: object, epsilon: object, delta: object, conversion_delta: object) -> Filter:
    """Return the filter of a new ledger, from the numbers as they were given."""
    conversion = None if conversion_delta is None else budget_units(conversion_delta, "delta", "conversion_delta")
    return make_filter(accountant, budget_units(epsilon, "epsilon"), budget_units(delta, "delta"), conversion)


def _absolute(path: object) -> Path:
    """Return a path that a later change of the working folder leaves as it is."""
    allowed = "a path: a string that is not empty, or a PathLike of one"
    try:
        text = os.fspath(path)  # type: ignore[call-overload]
    except TypeError:
        raise ParameterError("path", path, allowed) from None
    if type(text) is not str or not text or "\0" in text:
        raise ParameterError("path", path, allowed)
    return Path(os.path.abspath(text))


def open_file(
    path: object,
    epsilon: object,
    delta: object,
    accountant: str | None,
    conversion_delta: object,
    identity: Identity,
    expect_head: str | None,
) -> tuple[SqliteStore, Path]:
    """Return the store of a file, verified and agreeing with what is given; see `Ledger.open`."""
    total_epsilon = None if epsilon is None else budget_units(epsilon, "epsilon")
    total_delta = None if delta is None else budget_units(delta, "delta")
    if expect_head is not None:
        check_text(expect_head, "expect_head", empty=False)
    file = _absolute(path)
    if not os.path.exists(file):
        if total_epsilon is None:
            raise LedgerError(f"there is no ledger {str(file)!r}; give epsilon to create it")
        if expect_head is not None:
            raise LedgerError(f"there is no ledger {str(file)!r} with the expected head; restore its newest copy")
        if not os.path.isdir(file.parent):
            raise LedgerError(f"there is no folder {str(file.parent)!r} within reach; create it first")
        rule = new_filter(accountant or "basic", epsilon, delta or 0, conversion_delta)
        SqliteStore.create(file, Account.new(rule, identity))
    elif not os.path.isfile(file):
        raise LedgerError(f"{str(file)!r} is not a file; give another path")
    store = SqliteStore(file)
    account = store.account(MAIN)
    terms = account.filter.terms
    asked = (("epsilon", total_epsilon, terms[0]), ("delta", total_delta, terms[1]))
    for name, given, stored in asked:
        if given is not None and given != stored:
            raise LedgerError(
                f"the ledger {str(file)!r} has {name} {to_decimal(stored)}, but {to_decimal(given)} was "
                f"given; a budget cannot be changed: open it without {name}"
            )
    if accountant is not None and accountant != account.filter.accountant:
        raise LedgerError(
            f"the ledger {str(file)!r} has the accountant {account.filter.accountant!r}, but {accountant!r} was "
            "given; it cannot be changed: open it without accountant"
        )
    if expect_head is not None and not store.includes(expect_head):
        raise LedgerError(
            f"the ledger {str(file)!r} has never had the head {expect_head!r}: it is another ledger, or an older "
            "copy was restored; restore the newest one"
        )
    if account.identity.joined(identity) != account.identity:
        store.settle(identity)
    return store, file
