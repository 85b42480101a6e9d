"""A plan runs once: the ledger is charged, the data are read, the noise is drawn, and the result is kept."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import ConcentratedAmounts
from dpfast.aggregation.exact import Aggregates
from dpfast.errors import LedgerError, ParameterError
from dpfast.ledger import Identity, Ledger
from dpfast.ledger.filters import refuse_rho
from dpfast.ledger.payment import LEDGER, Payment, refuse_repeatable
from dpfast.randomness import Keystream, Purpose, RandomSource, SystemRandom
from dpfast.releases import Charged

__all__ = ["RunOnce"]

_Result = TypeVar("_Result")


class RunOnce(ABC, Generic[_Result]):
    """What all plans share: what they cost, and a run that happens once."""

    def __init__(self, charged: Charged) -> None:
        self._charged = charged
        self._lock = threading.RLock()
        self._running = False
        self._ledger: Ledger | None = None
        self._result: _Result | None = None
        self._entry: int | None = None

    @property
    def epsilon(self) -> float:
        """The sum of the epsilons of all charges (of a plan with rho, for information: its ledger adds up rho)."""
        return self._charged.epsilon_units / 10**18

    @property
    def delta(self) -> float:
        """The sum of the deltas of all charges."""
        return self._charged.delta_units / 10**18

    @property
    def rho(self) -> float | None:
        """What running this plan costs a ledger that adds up rho; None for a plan made with epsilon."""
        budget = self._charged.budget
        return budget.rho if isinstance(budget, ConcentratedAmounts) else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the parameters give reason to warn of; no warning is no proof that nothing is wrong."""
        return self._charged.warnings

    @abstractmethod
    def _finish(self, exact: Aggregates, entry: int) -> _Result:
        """Draw the noise for exact aggregates, and return what can be read."""

    def run(
        self,
        ledger: Ledger,
        *,
        random: RandomSource | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> _Result:
        """Charge the ledger, read the data, draw the noise once, and keep the result.

        Guarantee
            The charge is durable before any row is read, whatever the data (an empty frame is charged too).
            A second call returns the same release and charges nothing. If the run fails after the charge,
            the plan is dead and its charge stays spent; no error after the charge depends on values.

        Parameters
        ----------
        ledger
            The budget; its dataset, privacy unit and neighbour relation must be this plan's.
        random
            Must be None: a ledger accepts no repeatable randomness.
        progress
            Called with the name of each stage as it begins; a stage's name says nothing of the data.

        Raises
        ------
        BudgetExceededError
            The charge does not fit; nothing is spent or read.
        LedgerError
            The ledger is for other data or another unit; or
            this plan was charged to another ledger, or failed after it was charged.
        ParameterError
            ``ledger`` is no ledger, or adds up epsilons where the plan was made with rho; ``random`` was given,
            ``progress`` is no function, or a file has changed since it was planned. Nothing is charged.

        """
        LEDGER.read("ledger", ledger)
        refuse_repeatable(random)
        if progress is not None and not callable(progress):
            raise ParameterError("progress", progress, "a function of the name of a stage, or None")
        with self._lock:
            if self._running:
                raise LedgerError("this plan is being run; a progress callback cannot run it again")
            if self._ledger is not None and self._ledger is not ledger and self._entry is not None:
                raise LedgerError(
                    f"this plan was charged to another ledger (entry {self._entry} there); make a new plan to "
                    "charge this one"
                )
            if self._result is None:
                if self._entry is not None:
                    raise LedgerError(
                        f"this plan failed after it was charged (entry {self._entry}), and its charge stays spent; "
                        "make a new plan, which will be charged anew"
                    )
                self._running = True
                self._ledger = ledger
                try:
                    self._result = self._run(ledger, progress or _silent)
                finally:
                    self._running = False
            return self._result

    def _run(self, ledger: Ledger, progress: Callable[[str], None]) -> _Result:
        charged = self._charged
        process = os.getpid()
        if charged.concentrated:
            refuse_rho(ledger.accountant, self.rho)
        charged.aggregation.check_source()
        progress("charging the ledger")
        _refuse_fork(process)  # else it would pay for what it may not keep
        about = Identity(charged.dataset, charged.privacy_unit, charged.unit.neighbors)
        self._entry = entry = Payment(ledger, about).charge(charged.charges)
        assert entry is not None
        progress("reading and aggregating")
        _refuse_fork(process)  # the engine's threads are not in a fork
        exact = charged.aggregation.run(_bounding_words)
        progress("drawing the noise")
        _refuse_fork(process)
        result = self._finish(exact, entry)
        # After the draw: whatever forked before, in a callback or a source, only one process keeps its noise.
        _refuse_fork(process)
        return result

    def __reduce__(self) -> NoReturn:
        raise LedgerError("a plan cannot be pickled or copied: each copy would draw noise for the same charge")


def _refuse_fork(process: int) -> None:
    if os.getpid() != process:
        raise LedgerError("the process was forked during a release: one charge would have been drawn twice")


def _silent(stage: str) -> None:
    pass


def _bounding_words(count: int) -> NDArray[np.uint64]:
    """Return fresh words for choosing what a privacy unit keeps."""
    words = np.empty(count, np.uint64)
    Keystream(SystemRandom().key()).words(Purpose.BOUNDING).fill(0, words)
    return words
