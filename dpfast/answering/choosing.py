"""Selections of a table: one a row, its scores a list. Checked and charged from what is public, then drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from dpfast.accounting.events import ExponentialMechanism, PermuteAndFlip, Pure
from dpfast.answering.calibration import Floats, Rows, column_of, epsilon_of
from dpfast.arguments import Whole
from dpfast.columns.dtypes import dtype_name
from dpfast.errors import ColumnError, ParameterError
from dpfast.kernels.selection.argmax import EXPONENTIAL, GUMBEL, LAPLACE
from dpfast.ledger import ChargeColumns
from dpfast.mechanisms.selection.argmax import Slope, select_rows, slopes
from dpfast.mechanisms.selection.candidates import borrow_candidates
from dpfast.mechanisms.selection.ranking import rank_rows
from dpfast.mechanisms.selection.winners import give_places, give_rankings, read_values
from dpfast.randomness import Keystream, random_source

__all__ = ["WINNERS", "Choice", "choices", "is_list"]

Mechanism = Literal["exponential", "permute_and_flip", "noisy_max"]

#: What adds noise to scores, and the event that a ledger records.
_KINDS: dict[str, tuple[int, type]] = {
    "exponential": (GUMBEL, ExponentialMechanism),
    "permute_and_flip": (EXPONENTIAL, PermuteAndFlip),
    "noisy_max": (LAPLACE, Pure),
}
WINNERS = Whole(1, 10_000, optional=True)
# An event's epsilon covers the decimal that a float stands for.
_COVERED = 1.0 + 2.0**-50


@dataclass(frozen=True)
class Choice:
    """Selections of all rows: how scores are weighed, and what is charged."""

    mechanism: Mechanism
    slope: Slope
    charges: tuple[ChargeColumns, ...]
    candidates: pl.Series | None
    k: int | None

    def drawn(self, scores: pl.Series, threads: int | None) -> pl.Series:
        """Return every row's winner, or a list of winners, as a place or a value."""
        borrowed = borrow_candidates(scores)
        values = None if self.candidates is None else read_values(self.candidates, borrowed)
        kind, source = _KINDS[self.mechanism][0], random_source(None)
        selected: pl.Series
        if self.k is None:
            winners = select_rows(borrowed, self.slope, kind, source, threads)
            selected = give_places(borrowed, winners) if values is None else values.take(borrowed, winners)
        else:
            wanted = min(self.k, max(1, int(borrowed.lengths.max(initial=0))))
            winners, _ = rank_rows(borrowed, self.slope, kind, wanted, Keystream(source.key()), threads)
            selected = give_rankings(borrowed, winners) if values is None else values.take_rankings(borrowed, winners)
        return selected


def is_list(dtype: pl.DataType) -> bool:
    """Return whether a column of true values holds scores of selections."""
    return isinstance(dtype, (pl.List, pl.Array))


def choices(rows: Rows, *, monotonic: bool, candidates: str | None, k: int | None) -> Choice:
    """Return how the rows' winners are selected and charged, from public columns and shapes alone; see `answer`."""
    if rows.error is not None:
        raise ParameterError("error", rows.error, "left out for selections, whose error depends on the scores")
    if rows.delta is not None:
        raise ParameterError("delta", rows.delta, "left out for selections, which need none")
    frame, value, rho = rows.frame, rows.value, rows.rho
    chosen = _mechanism(rows.mechanism, k, discounted=rho is not None or rows.accountant != "basic")
    amounts = rows.amounts()
    winners = 1 if k is None else k
    share = amounts if rho is None else _epsilon_by_rho(amounts / winners, chosen)
    if rho is None and winners > 1:
        # So much less that the charges, rounded up by less than 2**-50 and a unit each, are at most the whole.
        share = (amounts * (1.0 - 2.0**-46) - winners * 1e-18) / winners
    if not (share.min() >= 1e-18 and share.max() <= 1e6):
        row = int(np.argmax(~((share >= 1e-18) & (share <= 1e6))))
        argument = "epsilon" if rho is None else "rho"
        allowed = "such that every selection has an epsilon from 1e-18 to 1e6"
        raise ParameterError(f"{argument}[{row}]", float(amounts[row]), allowed)
    width = rows.width
    slope = slopes(_plain(share), width if isinstance(width, float) else _plain(width), monotonic, frame.height)
    event = {"epsilon": share * _COVERED}
    charge = ChargeColumns(_KINDS[chosen][1], event, np.ascontiguousarray(share), None, rows.description)
    values = None if candidates is None else _candidates(frame, value, candidates)
    return Choice(chosen, slope, (charge,) * winners, values, k)


def _plain(column: Floats) -> Any:
    """Return a column as a parameter of a mechanism: one number where it is one."""
    return float(column[0]) if column.strides == (0,) else np.ascontiguousarray(column)


def _mechanism(given: Any, k: Any, *, discounted: bool) -> Mechanism:
    """Return the mechanism of the least error.

    Permute-and-flip is never worse than the exponential mechanism of the same epsilon, nor better than that of twice
    the epsilon (McKenna, Sheldon 2020); and at the same rho, the exponential mechanism has about twice the epsilon.
    """
    if type(given) is not str or given not in ("auto", *_KINDS):
        raise ParameterError("mechanism", given, '"auto", "exponential", "permute_and_flip" or "noisy_max" for lists')
    if k is not None and given not in ("auto", "exponential"):
        raise ParameterError("mechanism", given, '"exponential" where k is given')
    if given == "auto":
        return "exponential" if discounted or k is not None else "permute_and_flip"
    return given  # type: ignore[return-value]


def _epsilon_by_rho(rho: Floats, mechanism: Mechanism) -> Floats:
    """Return an epsilon that costs at most rho: of bounded range epsilon**2 / 8, else epsilon tanh(epsilon / 2)."""
    if mechanism == "exponential":
        epsilon: Floats = np.sqrt(8.0 * rho) * (1.0 - 2.0**-36)
        return epsilon
    return epsilon_of(rho, "discrete")


def _candidates(frame: pl.DataFrame, value: str, given: Any) -> pl.Series:
    """Return the column of candidates' values, as many a row as scores."""
    if given == value:
        raise ParameterError("candidates", given, "a public column, not that of the true values")
    column = column_of(frame, given, "candidates")
    if not is_list(column.dtype):
        raise ColumnError(
            f"candidates must be a column of lists, as the scores are, but {given!r} is {dtype_name(column.dtype)}"
        )
    if not _lengths(column).equals(_lengths(frame[value])):
        raise ParameterError("candidates", given, "a column with as many candidates a row as scores")
    return column.arr.to_list() if isinstance(column.dtype, pl.Array) else column


def _lengths(column: pl.Series) -> pl.Series:
    lists = column.arr.to_list() if isinstance(column.dtype, pl.Array) else column
    return lists.list.len().fill_null(0).rename("length")
