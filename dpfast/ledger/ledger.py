"""The ledger as its users see it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, TypeAlias

from dpfast.accounting.budget import DELTA, EPSILON, Delta, Epsilon, Rho
from dpfast.accounting.privacy_unit import NEIGHBORS
from dpfast.arguments import Flag, Instance, Real, Special
from dpfast.errors import LedgerError, ParameterError
from dpfast.exact.amounts import budget_units
from dpfast.ledger.account import MAIN, Account, Identity, Name, OwnName
from dpfast.ledger.charges import Charge, ChargeColumns, Item, check_text
from dpfast.ledger.filters import ACCOUNTANT, allotment_of
from dpfast.ledger.memory import MemoryStore
from dpfast.ledger.opening import Place, new_filter, open_store
from dpfast.ledger.partitioned import PartitionFilter, charges_for
from dpfast.ledger.partitions import Keys, Partitions, keys_of
from dpfast.ledger.reading import Reading, Store

__all__ = ["Ledger"]

ONE_PARTITION = Flag(mend="write True to attest that no unit has rows in two partitions")
CHARGE = Instance(Charge, "a Charge", mend="write for example Charge.of(0.1)")
Charges: TypeAlias = Annotated[
    Iterable[Charge | ChargeColumns],
    Special(lambda: (5, True, "text", [], {}, [5], [None], Charge, Charge.of(0.1), [Charge.of(0.1), "text"], object())),
]
Relation: TypeAlias = Annotated[str, NEIGHBORS]
OwnRelation: TypeAlias = Annotated[str | None, replace(NEIGHBORS, optional=True)]


class Ledger(Reading):
    """Keep a privacy budget, and refuse what would exceed it.

    ``Ledger(...)`` lives in the memory of one process; :meth:`Ledger.open` keeps a durable one in a file, or in a
    database for many machines.

    Guarantee
    ---------
    Let every answer about the dataset be computed under an entry of this ledger and be differentially private
    at that entry's (epsilon, delta), for the ledger's privacy unit and neighbour relation. Then all answers
    together are (total epsilon, total delta)-differentially private, even where each query was chosen after
    reading the answers before it. The accountant that is fixed at creation adds the costs up. A
    charge that does not fit is refused before its query runs, so the sum stays within its bound whatever is asked.
    That makes the rule a valid privacy filter (`dpfast.ledger.filters` has the theorems).

    The dataset is the rows as they are given to the queries. After a join or a window, a row may no longer hold
    one person's data, so it is no unit. The guarantee ends where the same data are queried without this ledger.

    Parameters
    ----------
    epsilon
        The budget, from 1e-18 to 1e6. A decimal counts as written, so ten charges of 0.1 fit into 1 exactly.
    delta
        0, or from 1e-18 to below 1.
    accountant
        How charges add up: "basic" (epsilons), "zcdp" (rhos) or "rdp" (Rényi divergences of many orders). The
        last two admit many more queries of noise, above all Gaussian, and need a delta. "odometer": no bound on
        epsilon; what was spent so far holds whenever one stops. It needs a delta, and no epsilon.
    conversion_delta
        For all but "basic": the part of delta that turns the sums into (epsilon, delta); half of it if not
        given. The rest is for queries that have a delta of their own, and bounds their sum.
    dataset, privacy_unit, neighbors
        What the guarantee is about: a name; ``"row"``, or a column as ``"column:tailnum"``; ``"add_remove"``
        or ``"replace"``. The first charge fixes what is left open here. Charges for others are refused.

    Raises
    ------
    ParameterError
        If an argument is of another kind or range.

    Notes
    -----
    A charge is made before anything is computed, and is never given back: charge, compute, draw, store. A
    crash in between wastes budget; it never spends any twice. After a charge that was interrupted, or
    that failed with an error of the disk, :attr:`spent` shows whether it was made.

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
    Amounts(epsilon=0.7, delta=1e-06)
    >>> ledger.charge(Charge.of(0.8, 0, "sum"), **about)
    Traceback (most recent call last):
    ...
    dpfast.errors.BudgetExceededError: epsilon 0.8 and delta 0 were asked, but epsilon 0.7 and delta \
1e-06 are left; nothing was charged: ask for no more than is left

    """

    def __init__(
        self,
        epsilon: Epsilon = None,
        delta: Annotated[Real, DELTA] = 0.0,
        *,
        accountant: Annotated[str, ACCOUNTANT] = "basic",
        conversion_delta: Delta = None,
        dataset: OwnName = None,
        privacy_unit: OwnName = None,
        neighbors: OwnRelation = None,
    ) -> None:
        identity = Identity(dataset, privacy_unit, neighbors)
        rule = new_filter(accountant, epsilon, delta, conversion_delta)
        self._begin(MemoryStore(Account.new(rule, identity)), MAIN)

    @classmethod
    def open(
        cls,
        path: Place,
        epsilon: Epsilon = None,
        delta: Delta = None,
        *,
        accountant: Annotated[str | None, replace(ACCOUNTANT, optional=True)] = None,
        conversion_delta: Delta = None,
        dataset: OwnName = None,
        privacy_unit: OwnName = None,
        neighbors: OwnRelation = None,
        expect_head: OwnName = None,
        name: OwnName = None,
    ) -> Ledger:
        """Open a durable ledger in a file or a PostgreSQL database, and create it where there is none.

        Guarantee
        ---------
        As for the class, over all processes that share the file, or machines that share the database, and over
        their crashes: a charge is on the disk, in the file itself, before :meth:`charge` returns. What opening
        verifies: the head, whose seal covers what every account has spent and the last entry's seal; and the newest
        10,000 entries (or 16 MiB of columns), which are added up again if these are all. Damage to older entries
        changes no budget; :meth:`verify`, :meth:`history` and :meth:`report` read every entry and refuse it.

        Parameters
        ----------
        path
            A file on a local disk; locks on network file systems cannot be relied upon. SQLite keeps a journal
            beside it, which matters after a crash alone: both belong together until the ledger was opened again. A
            symbolic link is followed once; a file with two hard links, or mounted by itself (mount its folder), is
            refused. Or, for several machines, the URL of a database, ``postgresql://user@host:port/database``
            (with ``pip install 'dpfast[postgresql]'``).
        epsilon, delta
            The budget of a new ledger: epsilon is then required, and delta is 0 if not given. For one that
            exists, what is given must equal its budget, since no budget can be raised later.
        accountant, conversion_delta
            As for the class, for a new ledger.
        dataset, privacy_unit, neighbors
            As for the class. What the file leaves open is fixed by what is given here.
        expect_head
            A :attr:`head` that was written down elsewhere: a file whose chain never came through it, for
            example an older copy, is refused. See the notes for what is found out without it.
        name
            Which ledger of the database: "main" if not given. Its tables are in the schema ``dpfast_NAME``.

        Returns
        -------
        Ledger
            It may be used by many threads, and stays usable after a fork.

        Raises
        ------
        ParameterError
            If an argument is of another kind or range.
        LedgerError
            If the file is missing and no epsilon is given, is no ledger, is damaged or of a newer format, has
            another budget or identity, has a second name, or cannot be read or written; likewise for a database.
            A database's ledger may be opened by a role that may only read, to be read.

        Notes
        -----
        A backup that is restored loses the later charges. A process that has seen them refuses the file, and so
        does a new one where a crash left a journal that is ahead of the file. An older copy by itself, or with the
        journal of its own time, is a ledger in order: only ``expect_head`` tells that later charges are missing.
        Likewise for a copy under another name or on another machine, which has a budget of its own. The seals are no
        defence against somebody who may write the file. Copy it only while nobody uses it. The same holds for a
        database whose server fails over to a standby that lags behind.

        After a crash in the middle of a charge, the next process that opens the ledger reads all of it and puts it in
        order (:mod:`dpfast.ledger.rollback_journal`). The charge that was cut off may then count or not. A file in
        SQLite's write-ahead mode, of an earlier dpfast, is read in full and converted; it is refused where its log
        is damaged or shortened.

        Where the connection to a server is lost in the middle of a commit, an error says so: the charge may or
        may not be recorded, which :meth:`history` tells.

        Examples
        --------
        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/ledger.db"
        >>> with Ledger.open(path, epsilon=1.0) as ledger:
        ...     ledger.charge(Charge.of(0.3), dataset="flights", privacy_unit="row", neighbors="replace")
        1
        >>> Ledger.open(path).remaining
        Amounts(epsilon=0.7, delta=0.0)

        """
        identity = Identity(dataset, privacy_unit, neighbors)
        store = open_store(path, name, epsilon, delta, accountant, conversion_delta, identity, expect_head)
        return cls.__new__(cls)._begin(store, MAIN)

    def charge(
        self, charge: Annotated[Charge, CHARGE], *, dataset: Name, privacy_unit: Name, neighbors: Relation
    ) -> int:
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
            If it does not fit.
        LedgerError
            If the identity is another one, or the ledger is closed, forked, damaged or not writable.
        ParameterError
            If an argument is of another kind or range.

        Examples
        --------
        >>> Ledger(epsilon=1.0).charge(Charge.of(0.5), dataset="flights", privacy_unit="row", neighbors="replace")
        1

        """
        if type(charge) not in (Charge, ChargeColumns):
            raise CHARGE.refusal("charge", charge)
        return self.charge_many((charge,), dataset=dataset, privacy_unit=privacy_unit, neighbors=neighbors)[0]

    def charge_many(self, charges: Charges, *, dataset: Name, privacy_unit: Name, neighbors: Relation) -> range:
        """Charge several queries at once: all of them, or none.

        Guarantee
        ---------
        As for :meth:`charge`; no crash leaves a part of the charges recorded. What one call charges counts as
        declared before any answer (:meth:`report`).

        Parameters
        ----------
        charges
            One charge or more; equal neighbours become one entry, and so do columns of many.
        dataset, privacy_unit, neighbors
            As for :meth:`charge`.

        Returns
        -------
        range
            The numbers of the charges.

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
        return self._record(charges, Identity(dataset, privacy_unit, neighbors))[0]

    def _record(self, charges: Charges, identity: Identity) -> tuple[range, Account]:
        """Charge several queries at once; return their numbers, and the account after the last of them."""
        if None in (identity.dataset, identity.privacy_unit, identity.neighbors):
            missing = next(name for name in ("dataset", "privacy_unit", "neighbors") if getattr(identity, name) is None)
            raise ParameterError(missing, None, "given with every charge")
        items: tuple[Item, ...] = tuple(charges) if isinstance(charges, Iterable) else ()
        if not items:
            raise ParameterError("charges", charges, "one charge or more", "write for example [Charge.of(0.1)]")
        count = 0
        for place, item in enumerate(items):
            if type(item) is not Charge and type(item) is not ChargeColumns:
                raise CHARGE.refusal(f"charges[{place}]", item)
            item.check()
            count += item.count
        after = self._opened().append(self._account, items, identity)
        return range(after.entries - count + 1, after.entries + 1), after

    def allot(self, name: Name, *, epsilon: Epsilon = None, rho: Rho = None, delta: Delta = 0) -> Ledger:
        """Set a part of the budget aside under a name.

        Guarantee
        ---------
        The part is charged to this ledger at once, for good, as if it were spent; so all allotments together
        with the charges past them never exceed the budget. What an allotment does not spend stays with it.

        Parameters
        ----------
        name
            A name that is not taken yet.
        epsilon, rho
            The part: epsilon for the accountant "basic", rho for "zcdp" (with "rdp" there are no allotments).
        delta
            The part of delta for events that have one.

        Returns
        -------
        Ledger
            The allotment, with the same dataset, unit and neighbours; :meth:`allotment` finds it again.

        Raises
        ------
        BudgetExceededError
            If that much is not left.
        LedgerError
            If the name is taken, this is an allotment itself, or the accountant has none.
        ParameterError
            If an argument is of another kind or range.

        Examples
        --------
        >>> ledger = Ledger(epsilon=1.0)
        >>> team = ledger.allot("team-a", epsilon=0.3)
        >>> team.remaining, ledger.remaining.epsilon
        (Amounts(epsilon=0.3, delta=0.0), 0.7)

        """
        store = self._divided(name)
        rule, charges = allotment_of(store.account(MAIN).filter, name, epsilon, rho, delta)
        store.allot(name, rule, charges)
        return self.allotment(name)

    def allotment(self, name: Name) -> Ledger:
        """Return an allotment that was made before, under the conditions of :meth:`allot`."""
        check_text(name, "name", empty=False)
        if isinstance(self._opened().account(name).filter, PartitionFilter):
            raise LedgerError(f"{name!r} are partitions; use ledger.partitioning({name!r})")
        return type(self).__new__(type(self))._begin(self._store, name)

    def partition(
        self,
        name: Name,
        *,
        keys: Keys,
        epsilon: Annotated[Real, EPSILON],
        delta: Annotated[Real, DELTA] = 0,
        units_in_one_partition: Annotated[bool, ONE_PARTITION],
    ) -> Partitions:
        """Give every partition of a public list a budget of its own.

        Guarantee
        ---------
        What the partitions may spend is charged to this ledger at once, for good: for add_remove neighbours the
        budget of one partition, since a unit lies in one; for replace neighbours twice that, since a unit may
        leave one and enter another. Where units may lie in several, the partitions share one budget.

        Parameters
        ----------
        name
            A name that is not taken yet, by an allotment either.
        keys
            All partitions, a row each: integers, text, booleans or dates, in one column or several. They are
            stored in the ledger and must be public: a list of observed users tells who is in the data.
        epsilon, delta
            The budget of each partition.
        units_in_one_partition
            True attests that no unit has rows in two partitions. With False the partitions share one budget.

        Returns
        -------
        Partitions
            To be charged; :meth:`partitioning` finds it again.

        Raises
        ------
        BudgetExceededError
            If that much is not left.
        ColumnError
            If keys are of another kind.
        LedgerError
            If the name is taken, this is an allotment, the identity is not settled or the accountant not "basic".
        ParameterError
            If an argument is of another kind or range, or a key is null or stands twice.

        """
        store = self._divided(name)
        account = store.account(MAIN)
        if account.filter.accountant != "basic":
            raise LedgerError(f'the accountant "{account.filter.accountant}" has no partitions; use "basic"')
        if None in (account.identity.dataset, account.identity.privacy_unit, account.identity.neighbors):
            raise LedgerError("give the ledger's dataset, privacy_unit and neighbors before it is partitioned")
        shared = not ONE_PARTITION.read("units_in_one_partition", units_in_one_partition)
        rule = PartitionFilter(budget_units(epsilon, "epsilon"), budget_units(delta, "delta"), shared)
        store.allot(name, rule, charges_for(rule, name, account.identity.neighbors), (keys_of(keys),))
        return Partitions(store, name)

    def partitioning(self, name: Name) -> Partitions:
        """Return partitions that were made before, under the conditions of :meth:`partition`."""
        check_text(name, "name", empty=False)
        return Partitions(self._opened(), name)

    def _divided(self, name: object) -> Store:
        """Return the store, where a part of the whole budget may be set aside under this name."""
        check_text(name, "name", empty=False)
        store = self._opened()
        if self._account != MAIN:
            raise LedgerError(f"the allotment {self._account!r} cannot be divided further; use the whole ledger")
        return store
