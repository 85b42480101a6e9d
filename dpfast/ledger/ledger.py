"""The ledger as its users see it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import NoReturn

import polars as pl

from dpfast.accounting.amounts import budget_units, to_decimal, to_float
from dpfast.errors import LedgerError, ParameterError
from dpfast.ledger.account import Account, Budget, Charge, Identity, Store
from dpfast.ledger.memory import MemoryStore
from dpfast.ledger.sqlite import SqliteStore

__all__ = ["Ledger"]

_HISTORY_SCHEMA = pl.Schema(
    {
        "entry": pl.Int64(),
        "time": pl.Datetime("us", "UTC"),
        "epsilon": pl.Float64(),
        "delta": pl.Float64(),
        "description": pl.String(),
    }
)


class Ledger:
    """Keep a privacy budget, and refuse what would exceed it.

    ``Ledger(...)`` lives in the memory of one process; :meth:`Ledger.open` keeps a durable one in a file.

    Guarantee
    ---------
    Let every answer about the dataset be computed under an entry of this ledger and be differentially private
    at that entry's (epsilon, delta), for the ledger's privacy unit and neighbour relation. Then all answers
    together are (total epsilon, total delta)-differentially private, even where each query was chosen after
    reading the answers before it. The charges add up (basic composition); since a charge that does not fit is
    refused before its query runs, the sum stays within the total whatever is asked, which makes the rule a
    valid privacy filter.

    The dataset is the rows as they are given to the queries: joins and windows upstream may void a row as the
    unit. The guarantee ends where the same data are queried past the ledger, or under a second one.

    Parameters
    ----------
    epsilon
        The budget, from 1e-18 to 1e6. A decimal counts as written, so ten charges of 0.1 fit into 1 exactly.
    delta
        0, or from 1e-18 to below 1.
    dataset, privacy_unit, neighbors
        What the guarantee is about: a name; ``"row"``, or a column as ``"column:tailnum"``; ``"add_remove"``
        or ``"replace"``. What is not given here is fixed by the first charge. Charges for others are refused.

    Raises
    ------
    ParameterError
        If an argument is of another kind or range.

    Notes
    -----
    A charge is made before anything is computed, and is never given back: charge, compute, draw, store. A
    crash in between wastes budget; it never spends any twice. Where a charge was interrupted or failed with
    an error of the disk, :attr:`spent` tells whether it was made.

    Amounts are exact whole numbers of 1e-18; properties show the nearest floats.

    A ledger may be used by many threads. It cannot be copied or pickled, and one in memory refuses to serve
    after a fork: each copy would spend the whole budget again.

    References
    ----------
    Dwork, Kenthapadi, McSherry, Mironov, Naor (2006), "Our data, ourselves", EUROCRYPT, theorem 1: (epsilon,
    delta) adds up. Rogers, Roth, Ullman, Vadhan (2016), "Privacy odometers and filters", NeurIPS: it still
    does where charges are chosen adaptively, as long as their sum is held below a fixed bound.

    Examples
    --------
    >>> ledger = Ledger(epsilon=1.0, delta=1e-6, dataset="flights")
    >>> about = dict(dataset="flights", privacy_unit="row", neighbors="add_remove")
    >>> ledger.charge(Charge.of(0.3, 0, "count"), **about)
    1
    >>> ledger.remaining
    Budget(epsilon=0.7, delta=1e-06)
    >>> ledger.charge(Charge.of(0.8, 0, "sum"), **about)
    Traceback (most recent call last):
    ...
    dpfast.errors.BudgetExceededError: epsilon 0.8 and delta 0 were asked, but epsilon 0.7 and delta \
0.000001 are left; nothing was charged: ask for no more than is left

    """

    _store: Store
    _path: Path | None
    _is_open: bool

    def __init__(
        self,
        epsilon: object,
        delta: object = 0.0,
        *,
        dataset: str | None = None,
        privacy_unit: str | None = None,
        neighbors: str | None = None,
    ) -> None:
        identity = Identity(dataset, privacy_unit, neighbors)
        total = budget_units(epsilon, "epsilon"), budget_units(delta, "delta")
        self._store = MemoryStore(Account(*total, identity=identity))
        self._path = None
        self._is_open = True

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        epsilon: object = None,
        delta: object = None,
        *,
        dataset: str | None = None,
        privacy_unit: str | None = None,
        neighbors: str | None = None,
    ) -> Ledger:
        """Open a durable ledger in a file, and create it where there is none.

        Guarantee
        ---------
        As for the class, over all processes that share the file and over their crashes: a charge is on the
        disk before :meth:`charge` returns. An opened ledger has been read in full, and its entries added up
        again.

        Parameters
        ----------
        path
            A file on a local disk; locks on network file systems cannot be relied upon. While a transaction
            runs, SQLite keeps a journal beside it: both belong together.
        epsilon, delta
            The budget of a new ledger: epsilon is then required, and delta is 0 if not given. For one that
            exists, what is given must equal its budget, since no budget can be raised later.
        dataset, privacy_unit, neighbors
            As for the class. What the file leaves open is fixed by what is given here.

        Returns
        -------
        Ledger
            It holds no file open between calls, may be used by many threads, and stays usable after a fork.

        Raises
        ------
        ParameterError
            If an argument is of another kind or range.
        LedgerError
            If the file is missing and no epsilon is given, is no ledger, is damaged or of a newer format, has
            another budget or identity, or cannot be read or written.

        Notes
        -----
        A backup that is restored loses the later charges. A process that has seen them refuses the file; a
        new one cannot know. Copy the file only while nobody uses it, and do not open it by other means in a
        process that charges it: closing it there would release SQLite's locks.

        Examples
        --------
        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/ledger.db"
        >>> with Ledger.open(path, epsilon=1.0) as ledger:
        ...     ledger.charge(Charge.of(0.3), dataset="flights", privacy_unit="row", neighbors="replace")
        1
        >>> Ledger.open(path).remaining
        Budget(epsilon=0.7, delta=0.0)

        """
        identity = Identity(dataset, privacy_unit, neighbors)
        total_epsilon = None if epsilon is None else budget_units(epsilon, "epsilon")
        total_delta = None if delta is None else budget_units(delta, "delta")
        file = _absolute(path)
        if not os.path.exists(file):
            if total_epsilon is None:
                raise LedgerError(f"there is no ledger {str(file)!r}; give epsilon to create it")
            if not os.path.isdir(file.parent):
                raise LedgerError(f"there is no folder {str(file.parent)!r} within reach; create it first")
            SqliteStore.create(file, Account(total_epsilon, total_delta or 0, identity=identity))
        elif not os.path.isfile(file):
            raise LedgerError(f"{str(file)!r} is not a file; give another path")
        store = SqliteStore(file)
        account = store.account()
        for name, given, stored in (
            ("epsilon", total_epsilon, account.total_epsilon),
            ("delta", total_delta, account.total_delta),
        ):
            if given is not None and given != stored:
                raise LedgerError(
                    f"the ledger {str(file)!r} has {name} {to_decimal(stored)}, but {to_decimal(given)} was "
                    f"given; a budget cannot be changed: open it without {name}"
                )
        if account.identity.joined(identity) != account.identity:
            store.settle(identity)
        ledger = cls.__new__(cls)
        ledger._store, ledger._path, ledger._is_open = store, file, True
        return ledger

    def charge(self, charge: Charge, *, dataset: str, privacy_unit: str, neighbors: str) -> int:
        """Charge the ledger, for good, before the query runs.

        Guarantee
        ---------
        When this returns, the charge is recorded (a durable ledger: on the disk). When it raises
        BudgetExceededError or ParameterError, or refuses another identity, nothing was charged.

        Parameters
        ----------
        charge
            What the query costs.
        dataset, privacy_unit, neighbors
            What the query's guarantee is about; it must be the ledger's.

        Returns
        -------
        int
            The number of the entry, from 1.

        Raises
        ------
        BudgetExceededError
            If epsilon or delta would exceed the total.
        LedgerError
            If the identity is another one, or the ledger is closed, forked, damaged or not writable.
        ParameterError
            If an argument is of another kind or range.

        Examples
        --------
        >>> ledger = Ledger(epsilon=1.0)
        >>> half = Charge.of(0.5)
        >>> ledger.charge(half, dataset="flights", privacy_unit="column:tailnum", neighbors="replace")
        1
        >>> ledger.charge(half, dataset="flights", privacy_unit="row", neighbors="replace")
        Traceback (most recent call last):
        ...
        dpfast.errors.LedgerError: this ledger's privacy unit is 'column:tailnum', but 'row' was given; \
nothing was charged: keep another privacy unit in a ledger of its own

        """
        return self.charge_many((charge,), dataset=dataset, privacy_unit=privacy_unit, neighbors=neighbors)[0]

    def charge_many(self, charges: Iterable[Charge], *, dataset: str, privacy_unit: str, neighbors: str) -> range:
        """Charge several queries at once: all of them, or none.

        Guarantee
        ---------
        As for :meth:`charge`; no crash leaves a part of the charges recorded.

        Parameters
        ----------
        charges
            One charge or more, an entry each.
        dataset, privacy_unit, neighbors
            As for :meth:`charge`.

        Returns
        -------
        range
            The numbers of the entries.

        Raises
        ------
        BudgetExceededError, LedgerError, ParameterError
            As for :meth:`charge`.

        Examples
        --------
        >>> ledger = Ledger(epsilon=1.0)
        >>> tenth = Charge.of(0.1)
        >>> ledger.charge_many([tenth] * 10, dataset="flights", privacy_unit="row", neighbors="add_remove")
        range(1, 11)
        >>> ledger.spent.epsilon
        1.0

        """
        identity = Identity(dataset, privacy_unit, neighbors)
        for argument in ("dataset", "privacy_unit", "neighbors"):
            if getattr(identity, argument) is None:
                raise ParameterError(argument, None, "given with every charge")
        charges = tuple(charges)
        if not charges:
            raise ParameterError("charges", charges, "one charge or more")
        for charge in charges:
            if type(charge) is not Charge:
                raise ParameterError("charge", charge, "a Charge", "write for example Charge.of(0.1)")
            charge.check()
        after = self._opened().append(charges, identity)
        return range(after.entries - len(charges) + 1, after.entries + 1)

    @property
    def total(self) -> Budget:
        """The whole budget."""
        return self._opened().account().total

    @property
    def spent(self) -> Budget:
        """What has been charged so far."""
        return self._opened().account().spent

    @property
    def remaining(self) -> Budget:
        """What can still be charged."""
        return self._opened().account().remaining

    @property
    def identity(self) -> Identity:
        """Dataset, privacy unit and neighbour relation; None is what the first charge will fix."""
        return self._opened().account().identity

    def history(self) -> pl.DataFrame:
        """Return all entries as a frame, in the order of their numbers.

        Returns
        -------
        polars.DataFrame
            ``entry``, ``time`` (UTC, by the machine's clock, which may go backwards), ``epsilon`` and
            ``delta`` as the nearest floats, ``description``.

        Raises
        ------
        LedgerError
            If the ledger is closed, forked, damaged or cannot be read.

        Examples
        --------
        >>> ledger = Ledger(epsilon=1.0)
        >>> charge = Charge.of(0.1, 0, "count of rows")
        >>> _ = ledger.charge(charge, dataset="flights", privacy_unit="row", neighbors="add_remove")
        >>> ledger.history().drop("time").rows()
        [(1, 0.1, 0.0, 'count of rows')]

        """
        entries = self._opened().entries()
        columns = {
            "entry": [entry.number for entry in entries],
            "time": [entry.time for entry in entries],
            "epsilon": [to_float(entry.epsilon_units) for entry in entries],
            "delta": [to_float(entry.delta_units) for entry in entries],
            "description": [entry.description for entry in entries],
        }
        stored = {**_HISTORY_SCHEMA, "time": pl.Int64()}
        return pl.DataFrame(columns, schema=stored).cast({"time": _HISTORY_SCHEMA["time"]})

    def close(self) -> None:
        """End the use of this object; a durable ledger's file stays as it is."""
        self._is_open = False

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        place = "in memory" if self._path is None else repr(str(self._path))
        try:
            account = self._opened().account()
        except LedgerError as error:
            return f"<Ledger {place}: {error}>"
        identity = account.identity
        return (
            f"<Ledger {place}: spent epsilon {to_decimal(account.spent_epsilon)} of "
            f"{to_decimal(account.total_epsilon)} and delta {to_decimal(account.spent_delta)} of "
            f"{to_decimal(account.total_delta)} in {account.entries} entries; dataset {identity.dataset!r}, "
            f"privacy unit {identity.privacy_unit!r}, neighbours {identity.neighbors!r}>"
        )

    def __reduce__(self) -> NoReturn:
        raise LedgerError(
            "a ledger cannot be copied or pickled: the copy would spend the same budget again; "
            "share a durable one by its path, Ledger.open(path)"
        )

    def _opened(self) -> Store:
        if not self._is_open:
            raise LedgerError("this ledger is closed; open it again")
        return self._store


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
