"""A counter of a stream: steps in, noisy running totals out, and what is kept between them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.events import Single
from dpfast.arguments import Number, Whole
from dpfast.columns import Column
from dpfast.columns.declarations import WholeColumn
from dpfast.columns.private import borrow_integers
from dpfast.errors import BudgetExceededError, LedgerError, ParameterError, Words
from dpfast.randomness import RandomSource
from dpfast.showing import Facts, Shown
from dpfast.streaming.keeping import PATH, StateFile, read_path
from dpfast.streaming.method import Method, State
from dpfast.streaming.planning import Asked
from dpfast.streaming.rows import Increments, Values, sums_of_rows, whole_numbers
from dpfast.streaming.step_keys import StepKeys, follow
from dpfast.turns import Turns

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["ContinualCounter"]

STEP = Whole(1, 2**32, optional=True)
CONFIDENCE = Number(0, 1, above=True, below=True)
_NO_HISTORY = bytes(32)
_FORKED = (
    "a counter does not outlive a fork: parent and child would go on from one state for one charge; "
    "close it before, and restore it from its file in one of them"
)


class ContinualCounter(Shown):
    """Counters side by side, made by `dpfast.continual_count` or `dpfast.continual_sum`.

    Guarantee
        All figures of all steps together cost what was charged when it was made. Everything but figures is private:
        what it holds cannot be pickled, copied or shown, and it does not outlive a fork. A step that is interrupted
        ends it; what is kept in a file can be restored.

    Attributes
    ----------
    horizon, counters, mechanism
        As given or chosen.
    steps
        How many steps there have been.
    event
        All that is released over the horizon, for an accountant.
    entry
        The charge's number in the ledger, None without one.
    largest_increment
        What increments are moved to, with their sign, where they are beyond it.
    path
        The file in which it keeps itself, or None.
    released
        The figures of the last step, if they were written to that file, else None.

    """

    def __init__(
        self,
        asked: Asked,
        method: Method,
        state: State,
        source: RandomSource,
        threads: int | None,
        entry: int | None,
    ) -> None:
        self._asked, self._method, self._state = asked, method, state
        self._source, self._threads = source, threads
        self.entry = entry
        self._figures: NDArray[np.int64] | None = None
        self._file: StateFile | None = None
        #: What `follow` says of all steps, and of all but the last.
        self._secret, self._history, self._before = b"", _NO_HISTORY, _NO_HISTORY
        self._ended, self._closed = "", False
        self._turns = Turns(_FORKED)

    @property
    def horizon(self) -> int:
        """How many steps are paid for."""
        return self._asked.horizon

    @property
    def counters(self) -> int:
        """How many are counted side by side."""
        return self._asked.counters

    @property
    def mechanism(self) -> str:
        """How noise is made."""
        return self._method.name

    @property
    def steps(self) -> int:
        """How many steps there have been."""
        return self._state.step

    @property
    def event(self) -> Single:
        """All that is released over the horizon."""
        return self._method.event

    @property
    def largest_increment(self) -> int:
        """What increments are moved to where they are beyond it: 2**61 / horizon, for the square root about 2**41."""
        return self._method.largest_increment

    @property
    def path(self) -> Path | None:
        """The file in which it keeps itself."""
        return None if self._file is None else self._file.path

    @property
    def released(self) -> NDArray[np.int64] | int | None:
        """The figures of the last step that was taken since the counter is kept; an int of a single counter."""
        if self._figures is None:
            return None
        return int(self._figures[0]) if self.counters == 1 else self._figures.copy()

    @property
    def state(self) -> dict[str, NDArray[np.int64]]:
        """What an intruder may see, once: the state of a pan-private counter.

        Raises
        ------
        LedgerError
            The counter is another one, whose state is private.

        """
        if self.mechanism != "pan_private":
            raise LedgerError('the state is private; only that of mechanism="pan_private" may be seen')
        return {name: array.copy() for name, array in self._state.arrays.items()}

    def step(self, increments: Increments, *, number: Annotated[int | None, STEP] = None) -> Any:  # the same kind
        """Take a step: add what came to every counter, and return their noisy totals.

        Parameters
        ----------
        increments
            For each counter how many rows (or the sum of their values) came in this step: whole numbers, as a column of
            any library or a list, or a number for a single counter. A null counts as 0. Numbers beyond
            ``largest_increment`` are moved to it.
        number
            None, or the number of the step, counted from 1. If it is the last step that was taken, and increments are
            the same, its figures are returned again: so a step may be repeated by who does not know whether it was
            taken. Other increments, and other numbers but the next, are refused. A counter must be kept in a file for
            that.

        Returns
        -------
        same kind as ``increments``
            The total of every counter up to this step, with noise: int64.

        Raises
        ------
        ParameterError, ColumnError
            Increments are of another kind, type or length; nothing has happened.
        BudgetExceededError
            The horizon is over.
        LedgerError
            The counter was closed, interrupted or forked, its file cannot be written, or another step was taken with
            this number.

        """
        column, numbers = self._read(increments)
        with self._turns.turn():
            self._refuse_ended()
            at = STEP.read_optional("number", number)
            if at is not None and at == self.steps > 0:
                figures = self._again(numbers)
            elif at is not None and at != self.steps + 1:
                raise ParameterError("number", at, f"{self.steps + 1}, the next step's", "see the counter's steps")
            else:
                figures = self._taken(numbers)
        return column.rebuild_without_nulls(figures)

    def step_rows(self, groups: WholeColumn, values: Values = None) -> NDArray[np.int64]:
        """Take a step: count the rows that came by group, or add up their values, and return the noisy totals.

        Parameters
        ----------
        groups
            For each row the number of its counter, from 0 to counters - 1; rows with other numbers, and nulls, are
            left out.
        values
            For each row a whole number, moved into the counter's bounds; a null counts as the number in the bounds that
            is nearest to 0. None to count rows.

        Returns
        -------
        numpy.ndarray
            int64, one for each counter.

        Raises
        ------
        ParameterError, ColumnError, BudgetExceededError, LedgerError
            As for `step`.

        """
        numbers = sums_of_rows(groups, values, self.counters, self._asked.unit.bounds)
        with self._turns.turn():
            self._refuse_ended()
            return self._taken(numbers)

    def run(self, increments: Increments) -> Any:  # the same kind
        """Take a step of a single counter for each number in a column; return all figures.

        Parameters
        ----------
        increments
            As for `step`, for one step after the other.

        Returns
        -------
        same kind as ``increments``
            int64.

        Raises
        ------
        ParameterError, ColumnError, BudgetExceededError, LedgerError
            As for `step`. A counter that is kept is on the disk when all steps have been taken.

        """
        column, numbers = self._read(increments, single=True)
        with self._turns.turn():
            self._refuse_ended()
            if self.steps + numbers.size > self.horizon:
                message = f"{numbers.size} more steps do not fit into the horizon of {self.horizon}, of which"
                raise BudgetExceededError(f"{message} {self.steps} have been")
            figures = np.empty(0, np.int64)
            if numbers.size:
                figures = self._guarded(lambda: self._run(numbers))
        return column.rebuild_without_nulls(figures)

    def error(self, step: Annotated[int | None, STEP] = None) -> float:
        """Return the standard deviation of a figure, from public parameters alone.

        It counts rounding to whole numbers as by itself: where the noise is below 1/2, the figure errs by less.

        Parameters
        ----------
        step
            Which one, counted from 1; None for the root of the mean square over the horizon.

        """
        at = STEP.read_optional("step", step)
        if at is None:
            return float(np.sqrt(self._method.mean_variance()))
        if at > self.horizon:
            raise ParameterError("step", at, f"at most the horizon, {self.horizon}")
        return float(np.sqrt(self._method.variances(np.array([at]))[0]))

    def half_width(self, step: Annotated[int, STEP], confidence: Annotated[float, CONFIDENCE] = 0.95) -> float:
        """Return h: a figure of a step lies within h of the true total with probability at least ``confidence``.

        Parameters
        ----------
        step
            Which one, counted from 1.
        confidence
            Between 0 and 1; it holds for each figure by itself.

        """
        reach = self._method.noise.reach(1 - CONFIDENCE.read("confidence", confidence))
        return self.error(STEP.read("step", step)) * reach + 1.0

    def save(self, path: Annotated[str | os.PathLike[str], PATH]) -> None:
        """Keep the counter in a new file from now on: each step is on the disk before its figures are returned.

        `dpfast.restore_counter` continues it, in this process or another, once this one has closed it or ended. The
        file can be read by its owner alone; exact counts are in it, and the secret of the noise to come (but for a
        pan-private counter): keep it as you keep the data. There are no other copies to be made of a counter, since two
        that go on from one state would publish twice for one charge.

        Parameters
        ----------
        path
            The name of the new file.

        Raises
        ------
        ParameterError
            The path is none.
        LedgerError
            There is a file of that name, or it cannot be written, or the counter is kept already.

        """
        file = StateFile(read_path(path))
        with self._turns.turn():
            self._refuse_ended()
            if self._file is not None:
                raise LedgerError(f"the counter is kept in {str(self._file.path)!r} already")
            # A pan-private counter keeps nothing that would tell of noise to come.
            self._secret = b"" if self.mechanism == "pan_private" else self._source.key()
            try:
                file.create(self._kept_facts(), self._arrays())
            except BaseException:
                self._secret = b""
                if os.path.lexists(file.path):
                    self._ended = "could not be saved, and may go on from its file instead"
                raise
            self._file = file

    def close(self) -> None:
        """Let go of the file. The counter takes no more steps, but for one that is being taken."""
        self._closed = True  # without waiting for a turn: a signal handler may call this within a step
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> ContinualCounter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _pay(self, charge: Callable[[], int | None], path: Path | None) -> None:
        """Charge for it, and keep it in a new file, for which there is room: found before the charge."""
        if path is not None:
            StateFile(path).try_room(self._kept_facts(), self._arrays())
        self.entry = charge()
        if path is not None:
            self.save(path)

    @classmethod
    def _from_file(cls, file: StateFile, source: RandomSource, threads: int | None) -> ContinualCounter:
        """Return the counter in a file: see `dpfast.restore_counter`."""
        facts, arrays = file.open()
        try:
            asked, method = Asked.from_json(facts["asked"])
            counter = cls(asked, method, method.begin(asked.counters), source, threads, facts["entry"])
            counter._file = file
            secrets = (bytes.fromhex(facts[name]) for name in ("secret", "history", "before"))
            counter._secret, counter._history, counter._before = secrets
            counter._state.step = facts["step"]
            if facts["has_released"]:
                counter._figures = arrays["released"]
            for name, own in counter._state.arrays.items():
                if own.size:
                    own[...] = arrays[name]
        except BaseException:
            file.close()
            raise
        return counter

    def _kept_facts(self) -> dict[str, Any]:
        secrets = {"secret": self._secret.hex(), "history": self._history.hex(), "before": self._before.hex()}
        known = {"has_released": self._figures is not None}
        return {"asked": self._asked.to_json(self._method), "step": self.steps, "entry": self.entry, **secrets, **known}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        figures = np.zeros(self.counters, np.int64) if self._figures is None else self._figures
        return {**self._state.arrays, "released": figures}

    def _read(self, increments: Any, *, single: bool = False) -> tuple[Column, NDArray[np.int64]]:
        if single and self.counters > 1:
            raise ParameterError("increments", Words("a run"), "of a single counter", "call step for each of the steps")
        column = borrow_integers(increments, "increments", "round them, or count in smaller units", alone=True)
        if not single and column.length != self.counters:
            has = Words(f"of {column.length} rows")
            raise ParameterError("increments", has, f"of {self.counters}, one for each counter")
        return column, whole_numbers(column)

    def _again(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._file is not None and self.mechanism == "pan_private":
            raise LedgerError("a pan-private counter keeps nothing by which a repeated step could be known")
        if self._file is None or not self._secret or self._figures is None:
            raise LedgerError("what was counted in the last step is known only if the counter was kept in a file then")
        if follow(self._before, numbers) != self._history:
            raise LedgerError("this step was taken with other increments; its figures are in released")
        return self._figures.copy()

    def _taken(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.steps >= self.horizon:
            raise BudgetExceededError(
                f"the horizon of {self.horizon} steps is over; make a new counter, and pay for it"
            )
        return self._guarded(lambda: self._advanced(numbers))

    def _run(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        if not self._secret:
            figures = self._state.run(numbers, self._method.largest_increment, lambda: self._source, self._threads)
        else:
            # Step by step: the keys are the same as if they came one by one.
            figures = np.empty(numbers.size, np.int64)
            for row in range(numbers.size):
                figures[row] = self._advanced(numbers[row : row + 1])[0]
        return figures

    def _advanced(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        source = self._source
        if self._secret:
            self._before, self._history = self._history, follow(self._history, numbers)
            source = StepKeys(self._secret, self.steps + 1, self._history)
        return self._state.advance(numbers, self._method.largest_increment, source, self._threads)

    def _guarded(self, work: Callable[[], NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the figures of what was done, written to the disk first; what is interrupted ends the counter."""
        self._ended = "was interrupted in a step, which ended it; restore it from its file, if it has one"
        figures = work()
        if self._file is not None:
            before = self._figures
            self._figures = (figures[-1:] if self.counters == 1 else figures).copy()
            try:
                self._file.write(self._kept_facts(), self._arrays())
            except BaseException:
                self._figures = before  # nobody is shown what may not be on the disk
                raise
        self._turns.refuse_other_process()
        self._ended = ""
        if self._closed and self._file is not None:
            self._file.close()
        return figures

    def _refuse_ended(self) -> None:
        if self._closed:
            raise LedgerError("the counter was closed; restore it from its file")
        if self._ended:
            raise LedgerError(f"the counter {self._ended}")

    def __reduce__(self) -> NoReturn:
        raise LedgerError("a counter cannot be pickled or copied: each copy would go on for the same charge; save it")

    def _facts(self) -> Facts:
        """Return what is public."""
        names = ("mechanism", "counters", "horizon", "steps")
        return [(name, getattr(self, name)) for name in names]
