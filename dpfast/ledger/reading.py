"""One account of a ledger, to be read: its budget, its history and reports on it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Self, TypeAlias

import polars as pl

from dpfast.accounting.budget import Amounts, ShownAmounts
from dpfast.charts import check_plot, draw_left
from dpfast.charts.look import ChartPath
from dpfast.errors import LedgerError
from dpfast.ledger.account import MAIN, Account, Entry, Identity
from dpfast.ledger.burn_down import burn_down
from dpfast.ledger.durable import DurableStore
from dpfast.ledger.history import Accountants, ReportDelta, history, report
from dpfast.ledger.memory import MemoryStore
from dpfast.ledger.report_page import page_of_ledger
from dpfast.ledger.shares import spent_share
from dpfast.pages import Overwrite, Page, PagePath, check_page, save_page
from dpfast.showing import Card, Shown, brief, percent_above

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Reading", "Store"]

#: Characters of a bar at a prompt.
_BAR = 20
#: Where accounts are kept.
Store: TypeAlias = MemoryStore | DurableStore


class Reading(Shown):
    """One account of a store, to be read."""

    _store: Store
    _account: str
    _is_open: bool

    def _begin(self, store: Store, account: str) -> Self:
        self._store, self._account, self._is_open = store, account, True
        return self

    @property
    def total(self) -> Amounts:
        """The whole budget: the (epsilon, delta) that all answers together keep."""
        return self._state().filter.total

    @property
    def spent(self) -> ShownAmounts:
        """What has been charged so far, as the accountant adds it up; see :meth:`report` for what that means."""
        account = self._state()
        return account.filter.shown(account.spent)

    @property
    def remaining(self) -> ShownAmounts:
        """What can still be charged."""
        account = self._state()
        return account.filter.left(account.spent)

    @property
    def accountant(self) -> str:
        """How charges add up: "basic", "zcdp" or "rdp"."""
        return self._state().filter.accountant

    @property
    def identity(self) -> Identity:
        """Dataset, privacy unit and neighbour relation; None is what the first charge will fix."""
        return self._state().identity

    @property
    def head(self) -> str | None:
        """The digest that stands for all entries of a durable ledger: write it down for ``expect_head``."""
        store = self._opened()
        return store.head if isinstance(store, DurableStore) else None

    def history(self) -> pl.DataFrame:
        """Return all entries as a frame, in the order of their numbers.

        Returns
        -------
        polars.DataFrame
            ``entry``, the number of the first of ``count`` charges; ``time`` (UTC, by the machine's clock,
            which may go backwards); ``account``, the allotment or ""; ``epsilon`` and ``delta`` of all these
            charges, as the nearest floats; ``event``, the mechanism if it is known; ``description``.

        Raises
        ------
        LedgerError
            If the ledger is closed, forked, damaged or cannot be read.

        Examples
        --------
        >>> from dpfast.ledger import Charge, Ledger
        >>> ledger = Ledger(epsilon=1.0)
        >>> charge = Charge.of(0.1, 0, "count of rows")
        >>> _ = ledger.charge(charge, dataset="flights", privacy_unit="row", neighbors="add_remove")
        >>> ledger.history().select("entry", "count", "epsilon", "description").rows()
        [(1, 1, 0.1, 'count of rows')]

        """
        entries = self._opened().entries()
        return history([entry for entry in entries if self._account in (MAIN, entry.account)])

    def report(self, delta: ReportDelta = None, *, accountants: Accountants = None) -> pl.DataFrame:
        """Return what was spent, by every accountant that applies.

        Guarantee
        ---------
        A row's epsilon is one where its ``holds`` is true; see `dpfast.ledger.history.report` for when.

        Parameters
        ----------
        delta
            Where to read the accountants' curves; by default the ledger's delta.
        accountants
            The names of those to be asked, however long they take. By default all are asked, and one that would take
            long says so in its ``note``, with a null in the place of its epsilon: a report takes about a second.

        Returns
        -------
        polars.DataFrame
            ``accountant``, ``epsilon``, ``holds`` and a ``note``. The first row is the ledger's own budget.

        Examples
        --------
        >>> from dpfast.accounting.events import Laplace
        >>> from dpfast.ledger import Charge, Ledger
        >>> ledger = Ledger(epsilon=10, delta=1e-6)
        >>> charge = Charge.of(0.1, event=Laplace(10.0), count=100)
        >>> _ = ledger.charge(charge, dataset="flights", privacy_unit="row", neighbors="add_remove")
        >>> ledger.report().filter(accountant="privacy loss distribution")["epsilon"].round(3).item()
        4.693

        """
        return report(self._own_entries(), self._state(), delta, accountants)

    def plot(self, path: ChartPath = None) -> alt.LayerChart:
        """Draw how the budget was used up: what was left of it after every charge.

        Parameters
        ----------
        path
            Where to write the chart; the suffix decides its kind (``.png``, ``.svg``, ``.pdf``). None for none.

        Returns
        -------
        altair.LayerChart
            The chart; of very many entries it has some, evenly spread.

        Raises
        ------
        ParameterError
            Altair is not installed, or the path's suffix is no kind of chart.
        LedgerError
            If the ledger is closed, forked, damaged or cannot be read.

        """
        check_plot(path)
        burnt = burn_down(self._own_entries(), self._state())
        return draw_left(burnt.charges, burnt.descriptions, burnt.left, self.identity.dataset, path)

    def write_report(self, path: PagePath, *, overwrite: Overwrite = False) -> Path:
        """Write a page of HTML about this budget: one file that needs no network and runs nothing.

        It says in plain words what all releases together keep, and shows what was charged, what is left, and what every
        accountant makes of it.

        Guarantee
        ---------
        The page has nothing but what the ledger holds, which tells nothing of the data. All text in it is escaped.

        Parameters
        ----------
        path, overwrite
            As for `dpfast.Release.report`, which says what is never replaced.

        Returns
        -------
        pathlib.Path
            Where it is.

        Raises
        ------
        ParameterError
            The path is no place for it, or cannot be written.
        LedgerError
            If the ledger is closed, forked, damaged or cannot be read.

        Examples
        --------
        >>> import tempfile
        >>> from dpfast.ledger import Ledger
        >>> place = Ledger(epsilon=1.0, dataset="trips").write_report(tempfile.mkdtemp() + "/budget.html")
        >>> "Privacy budget of “trips”" in place.read_text()
        True

        """
        check_page(path, overwrite)
        return save_page(self._page().html(), path, overwrite)

    def _page(self) -> Page:
        account, entries = self._state(), self._own_entries()
        return page_of_ledger(account, entries, self.history(), self.report(), self.head, self._account)

    def _own_entries(self) -> list[Entry]:
        return [entry for entry in self._opened().entries() if entry.account == self._account]

    def verify(self) -> None:
        """Read everything that is stored, hold every entry against its seal, and add the charges up again.

        Opening reads the newest 10,000 entries alone. Others charge meanwhile; what they add is not read.

        Raises
        ------
        LedgerError
            If the ledger is damaged anywhere, closed, or cannot be read.

        Examples
        --------
        >>> from dpfast.ledger import Ledger
        >>> Ledger(epsilon=1.0).verify()

        """
        store = self._opened()
        if isinstance(store, DurableStore):
            store.verify()

    def close(self) -> None:
        """End the use of this object; a durable ledger's file stays as it is."""
        self._is_open = False
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            account = self._state()
        except LedgerError as error:
            return f"<Ledger {self._called()}: {error}>"
        rule = account.filter
        spent = spent_share(rule, account.spent)
        bar = (
            f"[{'#' * math.floor(_BAR * spent + 1e-9):.<{_BAR}}] {percent_above(spent)} spent, "
            if math.isfinite(spent)
            else ""
        )
        return (
            f"<Ledger {self._called()}: {bar}{rule.left(account.spent)} left of {rule.total} ({rule.accountant}); "
            f"{_about(account)}>"
        )

    def _card(self) -> Card:
        """Return how much is spent of how much, also as a bar."""
        try:
            account = self._state()
        except LedgerError as error:
            return Card([f"Ledger {self._called()}: {error}"])
        rule = account.filter
        spent = spent_share(rule, account.spent)
        bar = (spent, f"{percent_above(spent)} spent") if math.isfinite(spent) else None
        facts = [("total", str(rule.total)), ("spent", str(rule.shown(account.spent)))]
        facts += [("left", str(rule.left(account.spent))), ("accountant", rule.accountant)]
        return Card([f"Ledger {self._called()}: {_about(account)}"], facts, bar)

    def _called(self) -> str:
        place = self._store.place if isinstance(self._store, DurableStore) else "in memory"
        return f"{place}, {brief(self._account)}" if self._account else place

    def __reduce__(self) -> NoReturn:
        raise LedgerError(
            "a ledger cannot be copied or pickled: the copy would spend the same budget again; "
            "share a durable one by its path, Ledger.open(path)"
        )

    def _opened(self) -> Store:
        if not self._is_open:
            raise LedgerError("this ledger is closed; open it again")
        return self._store

    def _state(self) -> Account:
        return self._opened().account(self._account)


def _about(account: Account) -> str:
    identity = account.identity
    return (
        f"dataset {brief(identity.dataset)}, privacy unit {brief(identity.privacy_unit)}, "
        f"neighbours {identity.neighbors!r}"
    )
