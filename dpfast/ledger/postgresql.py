"""A ledger in a PostgreSQL database, shared by many machines.

A ledger has a schema of its own, ``dpfast_NAME``, in a database that may hold others. A charge is one transaction
under a lock on the head's row, so that racing machines take turns; the server acknowledges it when it is on its
disk (``synchronous_commit``, set in every transaction; servers with ``fsync`` off are refused).

A connection that was lost before a charge was being committed is replaced, or the charge is refused: the server
forgets a transaction without its commit. One that is lost during the commit leaves open whether the charge was
recorded. That is said, never tried again in silence; and the connection that follows waits until the server is done
with the lost one, so what it reads is the answer.
"""

from __future__ import annotations

import os
import socket
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import psycopg

from dpfast.errors import LedgerError
from dpfast.ledger.account import Account
from dpfast.ledger.durable import DurableStore, forked
from dpfast.ledger.head import create_tables
from dpfast.ledger.postgresql_server import FORMAT, Server, Session, reason_of
from dpfast.ledger.turns import Turns
from dpfast.randomness import process_mark

__all__ = ["PostgresqlStore", "place_of"]

Result = TypeVar("Result")

_STORES: weakref.WeakSet[PostgresqlStore] = weakref.WeakSet()
#: Connections of a parent's, kept for ever: closing a copy would tell the server to end the parent's.
_INHERITED: list[object] = []


def _after_fork_in_child() -> None:
    for store in tuple(_STORES):
        store.abandon()


os.register_at_fork(after_in_child=_after_fork_in_child)


class PostgresqlStore(DurableStore):
    """Accounts in a database; see the module for what is kept and how.

    Raises
    ------
    LedgerError
        If the server cannot be reached or the ledger is damaged.

    """

    _format = FORMAT

    def __init__(self, server: Server, name: str) -> None:
        super().__init__()
        self._server = server
        self._schema = _schema_of(name)
        self.place = place_of(server, name)
        self._session: Session | None = None
        self._process = process_mark()
        self._turns = Turns()
        self._transactions = 0
        _STORES.add(self)
        self._open()

    @staticmethod
    def exists(server: Server, name: str) -> bool:
        """Return whether the database has a ledger of this name."""
        schema = _schema_of(name)

        def work(connection: psycopg.Connection[Any]) -> bool:
            select = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s"
            return connection.execute(select, (schema,)).fetchone() is not None

        return _alone(server, name, work)

    @staticmethod
    def create(server: Server, name: str, account: Account) -> None:
        """Make the tables in one transaction: they never exist half made.

        The process that commits first wins; the others leave its ledger as it is.
        """
        schema = _schema_of(name)

        def work(connection: psycopg.Connection[Any]) -> None:
            session = Session(connection, schema)
            with suppress(psycopg.errors.DuplicateSchema, psycopg.errors.UniqueViolation):
                session.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
                session.execute("SET LOCAL synchronous_commit TO on")
                session.execute(f"CREATE SCHEMA {schema}")
                session.execute(f"SET LOCAL search_path TO {schema}")
                session.execute("CREATE TABLE about (format BIGINT NOT NULL)")
                session.execute("INSERT INTO about VALUES (?)", (FORMAT,))
                create_tables(session, account, integer="BIGINT", binary="BYTEA", layout="")
                session.commit()

        _alone(server, name, work)

    def close(self) -> None:
        """Let go of the connection."""
        self._turns.take(self.disconnect)

    def disconnect(self) -> None:
        """Close the connection, in a turn of its owner's; the server undoes what is not committed."""
        session, self._session = self._session, None
        self._forget()
        if session is not None and self._process == process_mark():
            session.connection.close()

    def abandon(self) -> None:
        """In a forked child: leave the parent's connection alone, even where its transaction goes on."""
        self._turns = Turns()  # a thread that is lost in the fork may have held the lock
        session, self._session = self._session, None
        self._forget()
        if session is not None:
            _INHERITED.append(session)
            with suppress(psycopg.Error, OSError):
                # Whatever this process still says on the connection goes nowhere.
                mine, other = socket.socketpair()
                other.close()
                os.dup2(mine.fileno(), session.connection.fileno())
                mine.close()

    def _transact(self, work: Callable[[Session], Result], *, writing: bool = False) -> Result:
        """Do some work in a transaction, kept whole or not at all."""

        def transaction() -> Result:
            process = process_mark()
            committing = False
            problem = ""
            try:
                session = self._begun(writing)
                result = work(session)
                if process_mark() == process:
                    committing = writing
                    session.commit()
                if process_mark() == process:
                    self._seen = self._now
                    return result
                self.disconnect()
            except psycopg.Error as error:
                problem = self._explained(error, committing)
                self.disconnect()
            except BaseException as error:
                self.disconnect()
                # What a fork reads on its parent's connection says nothing of the ledger.
                if process_mark() == process or not isinstance(error, Exception):
                    raise
            # Not within the handler: psycopg's errors know the connection, and with it the password.
            if process_mark() != process:
                raise forked()
            raise LedgerError(problem)

        return self._turns.take(transaction)

    def _explained(self, error: psycopg.Error, committing: bool) -> str:
        if committing:
            return (
                f"the ledger {self.place} was cut off while a charge was being recorded: it may or may not be "
                "recorded; see the end of ledger.history(), and charge again only what is not there "
                "(a second charge would be counted too)"
            )
        return f"the ledger {self.place} {reason_of(error)}; nothing was charged"

    def _begun(self, writing: bool) -> Session:
        """Return a session in a new transaction; one that was lost since the last is replaced."""
        self._transactions += 1
        session = self._session
        if session is not None and self._process == process_mark():
            try:
                session.begin(writing=writing)
                return session
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if isinstance(error, psycopg.errors.LockNotAvailable):
                    raise
                self.disconnect()
        self._process = process_mark()
        session = self._session = Session(self._server.connected(), self._schema)
        session.begin(writing=writing)
        return session

    def _version_of(self, connection: Session) -> int:
        return self._transactions

    def _format_of(self, connection: Session) -> int:
        if connection.format != FORMAT:
            (connection.format,) = connection.execute("SELECT format FROM about").fetchone() or (0,)
        return int(connection.format or 0)

    def _set_format(self, connection: Session) -> None:
        connection.execute("UPDATE about SET format = ?", (FORMAT,))
        connection.format = FORMAT

    def _check_storage(self, connection: Session, *, whole: bool) -> None:
        select = (
            "SELECT count(*) FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace "
            "WHERE nspname = ? AND relname IN ('head', 'account', 'entry') AND relpersistence = 'p' AND relkind = 'r'"
        )
        if connection.execute(select, (self._schema,)).fetchone() != (3,):
            raise LedgerError(
                f"the ledger {self.place} has tables that are no plain ones kept in the server's log, so that a crash "
                "would empty them; alter them with SET LOGGED"
            )

    def _rows(self, connection: Session, select: str, parameters: Sequence[Any]) -> Iterator[Sequence[Any]]:
        return connection.stream(select, parameters)


def _schema_of(name: str) -> str:
    return f"dpfast_{name}"


def place_of(server: Server, name: str) -> str:
    """Return what messages call a ledger."""
    return f"{name!r} at {server.place}"


def _alone(server: Server, name: str, work: Callable[[psycopg.Connection[Any]], Result]) -> Result:
    """Do some work with a connection of its own."""
    connection = server.connected()
    problem = ""
    try:
        return work(connection)
    except psycopg.Error as error:
        problem = reason_of(error)
    finally:
        connection.close()
    raise LedgerError(f"the ledger {place_of(server, name)} {problem}")
