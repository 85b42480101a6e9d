"""The call: what is public is checked and calibrated, the ledger is charged, the values are answered."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Any, TypeAlias, TypeVar

import polars as pl

from dpfast.accounting.privacy_unit import OwnNeighbors
from dpfast.answering.calibration import (
    ColumnName,
    OwnAmount,
    OwnColumnName,
    OwnDelta,
    OwnError,
    PerQuery,
    Rows,
    column_of,
)
from dpfast.answering.choosing import WINNERS, choices, is_list
from dpfast.answering.drawing import cleaned, cleaned_lists, drawn, series_of
from dpfast.arguments import Number, Numeric, Special, Text, Threads
from dpfast.columns.declarations import ArrowStream
from dpfast.columns.dtypes import dtype_name
from dpfast.columns.tables import frame_of_table
from dpfast.errors import ColumnError, ParameterError, Words
from dpfast.ledger import Identity, Ledger
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import LEDGER, Payment
from dpfast.mechanisms.parameters import MONOTONIC, Monotonic
from dpfast.threads import thread_count

__all__ = ["MISSING", "TEXT", "OwnMechanism", "answer"]

_Table = TypeVar("_Table", bound=ArrowStream)

_TYPES = (
    pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64,
    pl.Boolean, pl.Float32, pl.Float64,
)  # fmt: skip
#: One for all rows, or a column of them.
OwnMechanism: TypeAlias = Annotated[str, Special(lambda: (5, True, b"auto", ["auto"], object(), "", "cauchy"))]
MISSING, TEXT = Number(), Text("a string", blank=True)
#: Integers that stay what they are; all others become Int64.
_RANGES: dict[Any, tuple[int, int]] = {pl.Int32: (-(2**31), 2**31 - 1), pl.UInt32: (0, 2**32 - 1)}


def _no_tables() -> Iterator[object]:
    frame = pl.DataFrame({"count": [1], "epsilon": [0.1]})
    yield from (5, True, "table", [1], {"count": [1]}, object(), frame.lazy(), frame["count"], pl.DataFrame, frame[:0])


def answer(
    table: Annotated[_Table, Special(_no_tables)],
    *,
    value: ColumnName,
    ledger: Annotated[Ledger, LEDGER],
    sensitivity: PerQuery = 1.0,
    epsilon: OwnAmount = None,
    rho: OwnAmount = None,
    error: OwnError = None,
    delta: OwnDelta = None,
    weight: OwnColumnName = None,
    mechanism: OwnMechanism = "auto",
    missing: Annotated[Numeric, MISSING] = 0,
    monotonic: Monotonic = False,
    candidates: OwnColumnName = None,
    k: Annotated[int | None, WINNERS] = None,
    name: Annotated[str, TEXT] = "answer",
    description: Annotated[str, TEXT] = "queries of a table",
    dataset: OwnName = None,
    privacy_unit: OwnName = None,
    neighbors: OwnNeighbors = None,
    threads: Threads = None,
) -> _Table:
    """Answer a table of queries, one row each: numbers by noise of their own, lists of scores by a selection.

    Guarantee
        Row i is (epsilon_i, delta_i)-differentially private, or rho_i-zCDP, if its value changes by at most
        ``sensitivity`` where one privacy unit changes; the ledger is charged for all rows together, before any
        value is read, all or nothing. A selection is epsilon_i-differentially private if none of its scores changes
        by more than ``sensitivity``; its candidates are public, and so are the lists' lengths and nulls.
        Sensitivities, epsilons and mechanisms are public parameters: they must not depend on the data. Scales are
        rounded up and charges too, so that scale * epsilon charged is never below the sensitivity.

    Parameters
    ----------
    table
        A Polars DataFrame or a PyArrow Table, in memory.
    value
        The column of true values, private: integers (released as int64, int32 or int64 for uint32), Booleans
        or floats. Nulls and NaN count as ``missing``; infinities as the largest finite float. Or lists of these,
        the scores of a selection's candidates, the higher the better; a null in a list is no candidate.
    ledger
        The budget.
    sensitivity
        How much one privacy unit can change a row's value: a positive number, or a column's name.
    epsilon, rho
        What a row is charged, one of the two: a number, or a column's name. With ``weight`` the total for all
        rows. Epsilons from 1e-18 to 1e6 are charged as written, so that ten rows of 0.1 fit into 1. A rho
        needs a ledger that adds up rho (accountant "zcdp" or "rdp").
    error
        In place of both: half of the width of the intervals that answers may have, a number or a column's name. A row
        is charged the least at which its interval from ``name_lower`` to ``name_upper`` is no wider: Laplace noise by
        epsilon, and where the ledger adds up rho what costs less. All rows at once, in closed form. Of integers it is
        at least 1.
    delta
        For Gaussian noise by epsilon: a number, or a column's name.
    weight
        A column's name: rows share the total in proportion to it. Shares are rounded down.
    mechanism
        "laplace", "gaussian", a column's name that holds these, or "auto": the least variance at the row's
        charge. For selections "exponential", "permute_and_flip", "noisy_max", or "auto": the least error, which is
        permute-and-flip by epsilon, and the exponential mechanism where a ledger adds up rho or k is given.
    missing
        What a null or NaN counts as: a number that the type of the answers can hold.
    monotonic
        For selections: whether no two scores can move in opposite directions, as of counts of added or removed units.
    candidates
        For selections: a column of lists that holds the candidates' values, public, one for each score.
    k
        For selections: how many winners, in order; epsilon or rho is for all of them.
    name
        The names of the new columns start so.
    description
        What the ledger notes.
    dataset, privacy_unit, neighbors
        What the ledger's guarantee is about; by default the ledger's own, or "data", "row", "add_remove".
    threads
        As in `dpfast.laplace`.

    Returns
    -------
    same kind as ``table``
        The table without the column of true values, and with ``name`` (never null), ``name_scale`` (Laplace b
        or Gaussian sigma), ``name_lower`` and ``name_upper`` (at least 95% of the noise lies within). For
        selections just ``name``: the winner's place in its list, or with ``candidates`` its value, null for a row
        without candidates; with ``k`` a list of them.

    Raises
    ------
    ParameterError, ColumnError
        An argument or a public column is out of range; nothing is charged.
    BudgetExceededError, LedgerError
        The charge does not fit, or the ledger is about something else; nothing is charged.

    Notes
    -----
    Laplace noise on integers is discrete Laplace noise. By rho, Gaussian noise has the least variance up to a
    rho of 1.63 a query (3.67 on integers), beyond it Laplace noise. Gaussian noise by (epsilon, delta) is
    calibrated for every row by itself (Balle, Wang 2018), within 2e-12 of the least scale. Selections are those of
    `dpfast.exponential`, `dpfast.permute_and_flip` and `dpfast.noisy_top_k`; the winner's score is not part of the
    answer and would cost extra.

    References
    ----------
    Dwork, Roth (2014), theorem 3.6. Bun, Steinke (2016), proposition 1.6, for rho. Balle, Wang (2018).
    McSherry, Talwar (2007) and McKenna, Sheldon (2020) for selections.

    Examples
    --------
    >>> import polars as pl
    >>> import dpfast as dpf
    >>> queries = pl.DataFrame({"count": [1200, 87, 310], "epsilon": [0.1, 0.2, 0.7]})
    >>> ledger = dpf.Ledger(epsilon=1)
    >>> answer(queries, value="count", epsilon="epsilon", ledger=ledger)["answer_scale"].round(6).to_list()
    [10.0, 5.0, 1.428571]
    >>> ledger.remaining.epsilon
    0.0
    >>> within = dpf.Ledger(epsilon=1)
    >>> answer(queries, value="count", error=30, ledger=within)["answer_scale"].round(2).to_list()
    [10.01, 10.01, 10.01]
    >>> round(within.remaining.epsilon, 4)
    0.7004
    >>> wards = pl.DataFrame({"ward": ["a", "b"], "cases": [[90, 300], [700, 20]], "illness": [["flu", "gout"]] * 2})
    >>> answer(wards, value="cases", candidates="illness", epsilon=0.5, ledger=dpf.Ledger(epsilon=1)).rows()
    [('a', 'gout'), ('b', 'flu')]

    """
    payment = Payment(LEDGER.read("ledger", ledger), Identity(dataset, privacy_unit, neighbors))
    frame = _frame(table)
    values = column_of(frame, value, "value")
    selects = is_list(values.dtype)
    _check_type(values)
    placeholder = _read_missing(missing, values.dtype)
    name, description = TEXT.read("name", name), TEXT.read("description", description)
    if "\0" in name:  # which no column of Arrow may have in its name
        raise ParameterError("name", name, "a string without a null character")
    monotonic, k = MONOTONIC.read("monotonic", monotonic), WINNERS.read_optional("k", k)
    thread_count(threads, 1)
    if candidates is not None:
        column_of(frame, candidates, "candidates")
    new = [name] if selects else [name, f"{name}_scale", f"{name}_lower", f"{name}_upper"]
    kept = [column for column in frame.columns if column not in (value, candidates)]
    if taken := sorted(set(new) & set(kept)):
        raise ParameterError("name", name, f"one that leaves {', '.join(taken)} to the table", "give another name")
    if frame.height == 0:
        raise ParameterError("table", Words("0 rows"), "one query or more")
    rows = Rows(
        frame=frame,
        value=value,
        accountant=ledger.accountant,
        sensitivity=sensitivity,
        epsilon=epsilon,
        rho=rho,
        error=error,
        delta=delta,
        weight=weight,
        mechanism=mechanism,
        description=description,
    )
    if selects:
        choice = choices(rows, monotonic=monotonic, candidates=candidates, k=k)
        payment.charge(choice.charges)
        columns = [choice.drawn(cleaned_lists(values, placeholder), threads).alias(name)]
    else:
        for argument, given in (("monotonic", monotonic or None), ("candidates", candidates), ("k", k)):
            if given is not None:
                raise ParameterError(argument, given, "left out where values are numbers: it is for lists of scores")
        parts = rows.planned()
        payment.charge([part.charge for part in parts])
        drawn_columns = drawn(cleaned(values, placeholder), parts, threads)
        columns = [series_of(each, column) for each, column in zip(new, drawn_columns, strict=True)]
    answered = frame.drop(set(frame.columns) - set(kept)).with_columns(columns)
    released: Any = answered if isinstance(table, pl.DataFrame) else answered.to_arrow()
    return released  # type: ignore[no-any-return]  # of the kind of the table


def _frame(table: Any) -> pl.DataFrame:
    if isinstance(table, pl.DataFrame):
        return table
    if type(table).__module__.split(".")[0] == "pyarrow" and hasattr(table, "column_names"):
        return frame_of_table(table)
    raise ParameterError("table", type(table).__name__, "a Polars DataFrame or a PyArrow Table", "collect it first")


def _check_type(values: pl.Series) -> None:
    dtype = values.dtype.inner if is_list(values.dtype) else values.dtype  # type: ignore[attr-defined]
    if dtype not in _TYPES:
        raise ColumnError(
            "value must be a column of integers, Booleans or floats, of 64 bits at most and floats of 32 at least, but "
            f"{values.name!r} is {dtype_name(values.dtype)}"
        )


def _read_missing(missing: object, dtype: pl.DataType) -> Fraction:
    """Return what a null counts as; refuse what the released type cannot hold, whether or not a value is missing."""
    exact = MISSING.read_exactly("missing", missing)
    if not is_list(dtype) and not dtype.is_float():  # of lists, what is no float has no NaN, and a null is no candidate
        least, most = _RANGES.get(dtype, (-(2**63), 2**63 - 1))
        if not least <= round(exact) <= most:
            raise ParameterError("missing", missing, f"from {least} to {most} for values of {dtype}")
    return exact
