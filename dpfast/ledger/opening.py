"""Opening a durable ledger, and making one where there is none."""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from dpfast.accounting.accountants import rdp, zcdp
from dpfast.arguments import Special
from dpfast.errors import LedgerError, ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units, exact_text, to_float
from dpfast.ledger.account import MAIN, Account, Identity
from dpfast.ledger.charges import check_text
from dpfast.ledger.durable import DurableStore
from dpfast.ledger.filters import ACCOUNTANT, Basic, Concentrated, Filter, Odometer, Renyi
from dpfast.ledger.sqlite import SqliteStore

if TYPE_CHECKING:
    from dpfast.ledger.postgresql_server import Server

__all__ = ["Place", "is_database", "is_there", "new_filter", "open_store", "server_of"]

#: A file, or the URL of a database.
Place: TypeAlias = Annotated[
    str | os.PathLike[str], Special(lambda: (5, True, 0.5, b"ledger.db", "", "a\0b", ["a"], object(), os.PathLike))
]


def new_filter(accountant: str, epsilon: object, delta: object, conversion_delta: object) -> Filter:
    """Return the filter of a new ledger, from the numbers as they were given."""
    ACCOUNTANT.read("accountant", accountant)
    conversion = _read_conversion(conversion_delta)
    if accountant == "odometer" and epsilon is not None:
        raise ParameterError("epsilon", epsilon, "None: an odometer has no bound", "leave it out")
    epsilon_units = 0 if accountant == "odometer" else budget_units(epsilon, "epsilon")
    delta_units = budget_units(delta, "delta")
    if accountant == "basic":
        if conversion is not None:
            raise ParameterError("conversion_delta", to_float(conversion), "left out: nothing is converted")
        return Basic(epsilon_units, delta_units)
    if accountant == "odometer" and not delta_units:
        raise ParameterError("delta", 0, "above 0 for an odometer", "write for example delta=1e-6")
    name = "delta" if conversion is None else "conversion_delta"
    conversion = -(-delta_units // 2) if conversion is None else conversion
    if not 0 < conversion <= delta_units:
        allowed = f'above 0 and at most delta for the accountant "{accountant}"'
        raise ParameterError(name, to_float(conversion), allowed, "give a delta, for example 1e-6")
    if accountant == "odometer":
        return Odometer(0, delta_units, conversion)
    at = Fraction(epsilon_units, UNITS_PER_ONE), Fraction(conversion, UNITS_PER_ONE)
    if accountant == "zcdp":
        return Concentrated(epsilon_units, delta_units, conversion, epsilon_units, (zcdp.largest_rho(*at),))
    return Renyi(epsilon_units, delta_units, conversion, epsilon_units, rdp.filter_caps(*at))


def _read_conversion(delta: object) -> int | None:
    return None if delta is None else budget_units(delta, "delta", "conversion_delta")


def _real(path: object) -> Path:
    """Return the file's own path: neither another working folder nor another link changes what it leads to."""
    allowed = "a path: a string that is not empty, or a PathLike of one"
    try:
        text = os.fspath(path)  # type: ignore[call-overload]
    except TypeError:
        raise ParameterError("path", path, allowed) from None
    if type(text) is not str or not text or "\0" in text:
        raise ParameterError("path", path, allowed)
    real = Path(os.path.realpath(text))
    if os.path.islink(os.path.abspath(text)) and not os.path.exists(real):
        raise LedgerError(
            f"{text!r} is a symbolic link to {str(real)!r}, which is missing; restore that, or give its own path to "
            "make a new ledger there"
        )
    return real


def open_store(
    path: object,
    name: object,
    epsilon: object,
    delta: object,
    accountant: str | None,
    conversion_delta: object,
    identity: Identity,
    expect_head: str | None,
) -> DurableStore:
    """Return the store of a file or a database, verified and agreeing with what is given; see `Ledger.open`."""
    ACCOUNTANT.read_optional("accountant", accountant)
    asked = {
        "epsilon": None if epsilon is None else budget_units(epsilon, "epsilon"),
        "delta": None if delta is None else budget_units(delta, "delta"),
        "conversion_delta": _read_conversion(conversion_delta),
    }
    if expect_head is not None:
        check_text(expect_head, "expect_head", empty=False)

    def account() -> Account:
        return Account.new(
            new_filter(accountant or "basic", epsilon, 0 if delta is None else delta, conversion_delta), identity
        )

    may_create = epsilon is not None or accountant == "odometer"
    if type(path) is str and is_database(path):
        store = _of_database(path, "main" if name is None else name, may_create, expect_head, account)
    elif name is not None:
        raise ParameterError("name", name, "left out for a ledger in a file")
    else:
        store = _of_file(_real(path), may_create, expect_head, account)
    try:
        _check_agreement(store, asked, accountant, expect_head)
        if store.account(MAIN).identity.joined(identity) != store.account(MAIN).identity:
            store.settle(identity)
    except BaseException:
        store.close()
        raise
    return store


def _of_file(file: Path, may_create: bool, expect_head: str | None, account: Callable[[], Account]) -> DurableStore:
    if not os.path.exists(file):
        _check_creation(repr(str(file)), may_create, expect_head)
        if not os.path.isdir(file.parent):
            raise LedgerError(f"there is no folder {str(file.parent)!r} within reach; create it first")
        SqliteStore.create(file, account())
    elif not os.path.isfile(file):
        raise LedgerError(f"{str(file)!r} is not a file; give another path")
    return SqliteStore(file)


def _of_database(
    url: str, name: object, may_create: bool, expect_head: str | None, account: Callable[[], Account]
) -> DurableStore:
    server = server_of(url)
    from dpfast.ledger.postgresql import PostgresqlStore, place_of
    from dpfast.ledger.postgresql_server import check_name

    name = check_name(name)
    if not PostgresqlStore.exists(server, name):
        _check_creation(place_of(server, name), may_create, expect_head)
        PostgresqlStore.create(server, name, account())
    return PostgresqlStore(server, name)


def is_database(path: str) -> bool:
    """Return whether a ledger's path is the URL of a database."""
    return path.startswith(("postgresql://", "postgres://"))


def server_of(url: str) -> Server:
    """Return the server that a URL names."""
    try:
        import psycopg  # noqa: F401  # only ledgers in a database need it
    except ImportError:
        raise LedgerError("a ledger in PostgreSQL needs psycopg; pip install 'dpfast[postgresql]'") from None
    from dpfast.ledger.postgresql_server import Server

    return Server(url)


def is_there(path: str) -> bool:
    """Return whether a file, or a database's main ledger, exists."""
    if not is_database(path):
        return Path(path).exists()
    server = server_of(path)
    from dpfast.ledger.postgresql import PostgresqlStore

    return PostgresqlStore.exists(server, "main")


def _check_creation(place: str, may_create: bool, expect_head: str | None) -> None:
    if not may_create:
        raise LedgerError(f"there is no ledger {place}; give epsilon to create it")
    if expect_head is not None:
        raise LedgerError(f"there is no ledger {place} with the expected head; restore its newest copy")


def _check_agreement(
    store: DurableStore, asked: dict[str, int | None], accountant: str | None, expect_head: str | None
) -> None:
    """Refuse a ledger that is not as it is asked for."""
    place, account = store.place, store.account(MAIN)
    # A ledger that converts nothing has a conversion delta of 0, which no other one has.
    has = (*account.filter.terms, 0) if account.filter.accountant == "basic" else account.filter.terms
    for (name, given), stored in zip(asked.items(), has, strict=False):
        if given is not None and given != stored:
            raise LedgerError(
                f"the ledger {place} has {name} {exact_text(stored)}, but {exact_text(given)} was "
                f"given; a budget cannot be changed: open it without {name}"
            )
    if accountant is not None and accountant != account.filter.accountant:
        raise LedgerError(
            f"the ledger {place} has the accountant {account.filter.accountant!r}, but {accountant!r} was "
            "given; it cannot be changed: open it without accountant"
        )
    if expect_head is not None and not store.includes(expect_head):
        raise LedgerError(
            f"the ledger {place} has never had the head {expect_head!r}: it is another ledger, or an older "
            "copy was restored; restore the newest one"
        )
