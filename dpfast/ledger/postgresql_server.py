"""PostgreSQL servers: how a ledger's tables are laid out, how one connects, and what the server's errors mean.

A URL may hold a password. It stays in a `Server`, which shows host, port and database alone; what psycopg says of
a failure is never quoted, for it may quote the URL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dpfast.errors import LedgerError, ParameterError, Words

__all__ = ["FORMAT", "PATIENCE_SECONDS", "Server", "Session", "check_name", "reason_of"]

FORMAT = 2
PATIENCE_SECONDS = 30
_LONGEST_PAUSE_SECONDS = 60

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)


def check_name(name: object) -> str:
    """Return the name of a ledger in a database, or refuse what cannot be one."""
    if type(name) is not str or not _NAME.fullmatch(name):
        raise ParameterError("name", name, "up to 40 small letters, digits and underscores, a letter first")
    return name


class Server:
    """A database that is reached by a URL.

    Parameters
    ----------
    url
        ``postgresql://user:password@host:port/database``, as libpq reads it.

    """

    def __init__(self, url: str) -> None:
        try:
            found = conninfo_to_dict(url)
        except psycopg.Error:
            found = None
        if found is None:
            allowed = "as postgresql://user@host:port/database, with %-codes for signs that a URL reserves"
            raise ParameterError("path", Words("a URL that PostgreSQL cannot read"), allowed)
        # A connection that dies unnoticed is an error after a while, not a wait for ever.
        defaults = {"connect_timeout": "30", "tcp_user_timeout": "60000", "application_name": "dpfast"}
        self._settings = make_conninfo(url, **{name: value for name, value in defaults.items() if name not in found})
        host = found.get("host", found.get("hostaddr"))
        user, host, database = map(_shown, (found.get("user"), host, found.get("dbname")))
        port = str(found.get("port", ""))
        self.place = f"postgresql://{user and user + '@'}{host}{':' + port if port.isdecimal() else ''}/{database}"

    def __repr__(self) -> str:
        return f"<Server {self.place}>"

    def connected(self) -> psycopg.Connection[Any]:
        """Return a connection to a server that keeps what it acknowledges."""
        kind = ""
        try:
            # Without prepared statements, so that it also works through a pooler of transactions.
            connection = psycopg.connect(self._settings, autocommit=True, prepare_threshold=None)
            if connection.execute("SHOW fsync").fetchone() != ("on",):
                connection.close()
                kind = "does not wait for its disk (fsync is off), so that it may lose charges; turn fsync on"
        except psycopg.Error as error:
            kind = _unreachable(str(error))
        if kind:  # not within the handler, whose error knows the password
            raise LedgerError(f"the database {self.place} {kind}")
        return connection


def _shown(part: object) -> str:
    """Return a part of a URL, unless it looks like a slip of the pen that may hold a part of a password."""
    text = "" if part is None else str(part)
    return text if re.fullmatch(r"[\w./-]*", text) else "..."


def _unreachable(text: str) -> str:
    if "authentication failed" in text or "no password supplied" in text or "pg_hba.conf" in text:
        return "refuses this user or this password; see the URL, ~/.pgpass and the server's pg_hba.conf"
    if "does not exist" in text:
        return "or its user does not exist; create it first"
    return "cannot be reached; see whether its server is running, and whether host and port are right"


_REASONS = {
    "55P03": f"is held by another process for over {PATIENCE_SECONDS} s; try again",
    "53100": "cannot be written: the server's disk is full; make room and try again",
    "42501": "may not be used in this way by this user; grant it USAGE on the schema, SELECT on its tables to read the "
    "ledger, and INSERT and UPDATE to charge it",
    "25006": "cannot be written: its server is read-only (a standby?); give the URL of the primary",
    "57014": "took longer than the server's statement_timeout; raise it and try again",
    "42P01": "is damaged (a table is missing); restore its newest copy",
    "42703": "is damaged (a column is missing); restore its newest copy",
    "3F000": "may not be created here; see the user's rights to the database",
}


def reason_of(error: psycopg.Error) -> str:
    """Return what an error of the server means, without its own words."""
    if error.sqlstate is None or (error.sqlstate[:2] in ("08", "57") and error.sqlstate not in _REASONS):
        return "was cut off from this process; see whether its server is running, and try again"
    return _REASONS.get(error.sqlstate, f"cannot be used (PostgreSQL's error {error.sqlstate}); see the server's log")


# PostgreSQL's text has no NUL.
_ESCAPED = re.compile(r"\\([\\0])")


def _escaped(value: Any) -> Any:
    return value.replace("\\", r"\\").replace("\0", r"\0") if isinstance(value, str) else value


def _unescaped(value: Any) -> Any:
    if isinstance(value, str) and "\\" in value:
        return _ESCAPED.sub(lambda match: "\\" if match[1] == "\\" else "\0", value)
    return value


def _unescaped_rows(_: object) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Make rows whose text is as it was given."""
    return lambda values: tuple(map(_unescaped, values))


class Session:
    """A connection that takes SQL as the stores write it, for the tables of one schema.

    Every transaction says what it needs of the server, so that none depends on earlier settings of the connection.
    """

    def __init__(self, connection: psycopg.Connection[Any], schema: str) -> None:
        self.connection = connection
        connection.row_factory = _unescaped_rows
        self.format: int | None = None
        self._is_new = True
        self._schema = schema
        found = connection.execute("SHOW synchronous_commit").fetchone()
        # remote_apply waits for more than "on" does; the others wait for less.
        self._wait = "remote_apply" if found == ("remote_apply",) else "on"

    def begin(self, *, writing: bool) -> None:
        """Begin a transaction; a writing one waits until it alone writes to this ledger."""
        path = f"SET LOCAL search_path TO {self._schema}"
        # With the schema's name: where it may not be used, a search path passes over it, as if there were no table.
        lock = f"{path}; SET LOCAL lock_timeout TO '{PATIENCE_SECONDS}s'; SELECT FROM {self._schema}.head"
        if writing:
            self._run(
                f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit TO {self._wait}; "
                # Else the lock of a machine that lost its power would stay for hours.
                f"SET LOCAL idle_in_transaction_session_timeout TO '{_LONGEST_PAUSE_SECONDS}s'; {lock} FOR UPDATE"
            )
        else:
            if self._is_new:
                self._await_lost_commit(lock)
            self._run(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {path}")
        self._is_new = False

    def _await_lost_commit(self, lock: str) -> None:
        """Wait for what the connection before this one was still committing when it was lost.

        Who may only read has committed nothing, and may not lock either.
        """
        may_write = "SELECT has_schema_privilege(%(schema)s, 'USAGE') AND has_table_privilege(%(head)s, 'UPDATE')"
        given = {"schema": self._schema, "head": f"{self._schema}.head"}
        found = self.connection.execute(may_write.encode(), given).fetchone()
        how = "FOR SHARE" if found == (True,) else "LIMIT 1"
        self._run(f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {lock} {how}; COMMIT")

    def _run(self, commands: str) -> None:
        self.connection.execute(commands.encode())

    def commit(self) -> None:
        """Commit, for good."""
        if self.connection.execute("COMMIT").statusmessage != "COMMIT":
            raise psycopg.OperationalError("the transaction was rolled back")

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> psycopg.Cursor[Any]:
        """Run one statement."""
        return self.connection.execute(_translated(sql), tuple(map(_escaped, parameters)))

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement with many rows."""
        with self.connection.cursor() as cursor:
            cursor.executemany(_translated(sql), [tuple(map(_escaped, row)) for row in rows])

    def stream(self, select: str, parameters: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Return rows that need not fit into memory together."""
        with self.connection.cursor(name="entries") as cursor:
            cursor.execute(_translated(select), tuple(map(_escaped, parameters)))
            yield from cursor


def _translated(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()
