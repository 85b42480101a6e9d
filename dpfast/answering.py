"""A table of queries, one row each, answered in one call: calibrate -> charge once -> draw once -> the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.amounts import charge_units, to_float
from dpfast.accounting.events import DiscreteLaplace, Gaussian, Laplace, Pure
from dpfast.columns import borrow_scale
from dpfast.errors import ColumnError, ParameterError
from dpfast.kernels.calibrating import intervals_of_floats, intervals_of_integers, scale_laplace
from dpfast.ledger import ChargeColumns, Ledger
from dpfast.mechanisms.additive import fresh_array
from dpfast.mechanisms.calibration import analytic_gaussian_scale
from dpfast.mechanisms.gaussian import gaussian
from dpfast.mechanisms.laplace import laplace

__all__ = ["answer"]

Floats = NDArray[np.float64]
Mechanism = Literal["laplace", "gaussian"]
_LaplaceNoise = Literal["continuous", "discrete"]

_MISS = 0.05
_WIDENED = 1.0 + 2.0**-18
#: Above this rho of one query Laplace noise has the smaller variance: continuous noise where e**2/4 is above
#: e + exp(-e) - 1, discrete noise (less its own e**2/4 > e tanh(e/2), as if it were continuous) above the second.
_GAUSSIAN_UP_TO = {"continuous": 1.634, "discrete": 3.67}
_MOST_PAIRS = 500
_KEPT_BITS = 8
# Covers the roundings of the scale and of the ledger's rho, so that no query is charged more than was asked.
_RHO_ROOM = 1.0 + 2.0**-36
_NAME = "a column's name, or a number for all rows"


@dataclass(frozen=True)
class _Part:
    """Rows that get one kind of noise: which, how much, and what they are charged."""

    rows: NDArray[np.int64] | None
    mechanism: Mechanism
    scale: Floats
    charge: ChargeColumns


def answer(
    table: Any,
    *,
    value: str,
    ledger: Ledger,
    sensitivity: Any = 1.0,
    epsilon: Any = None,
    rho: Any = None,
    delta: Any = None,
    weight: Any = None,
    mechanism: str = "auto",
    missing: float = 0,
    name: str = "answer",
    description: str = "queries of a table",
    dataset: str | None = None,
    privacy_unit: str | None = None,
    neighbors: str | None = None,
    threads: int | None = None,
) -> Any:
    """Answer a table of queries, one row each, with noise of its own for every row.

    Guarantee
        Row i is (epsilon_i, delta_i)-differentially private, or rho_i-zCDP, if its value changes by at most
        ``sensitivity`` where one privacy unit changes; the ledger is charged for all rows together, before any
        value is read, all or nothing. Sensitivities, epsilons and mechanisms are public parameters: they must
        not depend on the data. Scales are rounded up and charges too, so that scale * epsilon charged is never
        below the sensitivity.

    Parameters
    ----------
    table
        A Polars DataFrame or a PyArrow Table, in memory.
    value
        The column of true values, private: integers (released as int64, int32 or int64 for uint32), Booleans
        or floats. Nulls and NaN count as ``missing``; infinities as the largest finite float.
    ledger
        The budget.
    sensitivity
        How much one privacy unit can change a row's value: a positive number, or a column's name.
    epsilon, rho
        What a row is charged, one of the two: a number, or a column's name. With ``weight`` the total for all
        rows. Epsilons from 1e-18 to 1e6 are charged as written, so that ten rows of 0.1 fit into 1. A rho
        needs a ledger that adds up rho (accountant "zcdp" or "rdp").
    delta
        For Gaussian noise by epsilon: a number, or a column's name.
    weight
        A column's name: rows share the total in proportion to it. Shares are rounded down.
    mechanism
        "laplace", "gaussian", a column's name that holds these, or "auto": the least variance at the row's
        charge.
    missing
        What a null or NaN counts as.
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
        or Gaussian sigma), ``name_lower`` and ``name_upper`` (at least 95% of the noise lies within).

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
    calibrated exactly (Balle, Wang 2018); of more than 500 pairs, both are first rounded down to 8 bits.

    References
    ----------
    Dwork, Roth (2014), theorem 3.6. Bun, Steinke (2016), proposition 1.6, for rho. Balle, Wang (2018).

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

    """
    if not isinstance(ledger, Ledger):
        raise ParameterError("ledger", ledger, "a dpfast.Ledger", "write ledger = dpf.Ledger(epsilon=1.0)")
    frame = _frame(table)
    values = _column(frame, value, "value")
    _check_type(values)
    if isinstance(missing, bool) or not isinstance(missing, (int, float)) or not math.isfinite(missing):
        raise ParameterError("missing", missing, "a finite number")
    new = [name, f"{name}_scale", f"{name}_lower", f"{name}_upper"]
    if taken := sorted(set(new) & (set(frame.columns) - {value})):
        raise ParameterError("name", name, f"one that leaves {', '.join(taken)} to the table", "give another name")
    if frame.height == 0:
        raise ParameterError("table", "0 rows", "one query or more")
    rows = _Rows(frame, ledger.accountant, values.dtype, sensitivity, description)
    parts = rows.planned(epsilon, rho, delta, weight, mechanism)
    about = ledger.identity
    entries = ledger.charge_many(
        [part.charge for part in parts],
        dataset=dataset or about.dataset or "data",
        privacy_unit=privacy_unit or about.privacy_unit or "row",
        neighbors=neighbors or about.neighbors or "add_remove",
    )
    assert len(entries) == frame.height
    columns = _drawn(_cleaned(values, missing), parts, threads)
    named = [_series(each, column) for each, column in zip(new, columns, strict=True)]
    answered = frame.drop(value).with_columns(named)
    return answered if isinstance(table, pl.DataFrame) else answered.to_arrow()


class _Rows:
    """The public parameters of the rows, and the noise that they ask for."""

    def __init__(
        self, frame: pl.DataFrame, accountant: str, dtype: pl.DataType, sensitivity: Any, description: str
    ) -> None:
        self.frame = frame
        self.accountant = accountant
        self.whole = not dtype.is_float()
        self.description = description
        self.sensitivity = self.numbers(sensitivity, "sensitivity")

    def numbers(self, given: Any, argument: str) -> float | Floats:
        """Return a parameter: a number rounded up, or a column of positive finite float64."""
        if given is None:
            raise ParameterError(argument, given, _NAME)
        if isinstance(given, str):
            column = _column(self.frame, given, argument)
            if not column.dtype.is_numeric() or column.dtype.is_decimal():
                raise ColumnError(f"{argument} must be a column of numbers, but {given!r} is {column.dtype}")
            numbers = borrow_scale(column.cast(pl.Float64), self.frame.height, argument)
            assert isinstance(numbers, np.ndarray)
            return numbers
        number = borrow_scale(given, self.frame.height, argument)
        if not isinstance(number, float):
            raise ParameterError(argument, given, _NAME)
        return number

    def spread(self, number: float | Floats) -> Floats:
        """Return a column, of one number without a copy of it for every row."""
        return np.broadcast_to(np.asarray(number), (self.frame.height,)) if isinstance(number, float) else number

    def planned(self, epsilon: Any, rho: Any, delta: Any, weight: Any, mechanism: Any) -> list[_Part]:
        """Return the parts that the rows fall into."""
        if (epsilon is None) == (rho is None):
            raise ParameterError("epsilon", epsilon, "given, or else rho, and not both")
        if rho is not None:
            if self.accountant == "basic":
                raise ParameterError(
                    "rho", rho, 'left out: this ledger adds up epsilons (accountant "basic")', "give epsilon"
                )
            if delta is not None:
                raise ParameterError("delta", delta, "left out where rho is given")
        amounts = self._amounts(epsilon if rho is None else rho, weight, "epsilon" if rho is None else "rho")
        deltas = None if delta is None else self.spread(self.numbers(delta, "delta"))
        if deltas is not None and not deltas.max() < 1.0:
            raise ParameterError("delta", float(deltas.max()), "below 1")
        chosen = self._mechanisms(mechanism)
        if rho is not None:
            return self._by_rho(amounts, chosen)
        return self._by_epsilon(amounts, deltas, chosen)

    def _amounts(self, given: Any, weight: Any, argument: str) -> Floats:
        if weight is None:
            return self.spread(self.numbers(given, argument))
        if not isinstance(weight, str):
            raise ParameterError("weight", weight, "a column's name")
        total = to_float(charge_units(given, "epsilon", argument))
        weights = self.spread(self.numbers(weight, "weight"))
        # A float sum of n positive numbers errs by less than n * 2**-53 of itself, whatever the order; charges
        # are rounded up by less than 2**-48 and a unit of 1e-18 each.
        room = 1.0 + len(weights) * 2.0**-52 + 2.0**-46
        share: Floats = weights * ((total - len(weights) * 1e-18) / (float(np.sum(weights)) * room))
        if not share.min() >= 1e-18:
            raise ParameterError(argument, given, "large enough to be shared: at least 1e-18 a row")
        return share

    def _mechanisms(self, mechanism: Any) -> str | NDArray[np.bool_]:
        """Return one mechanism for all, or for each row whether its noise is Gaussian."""
        if type(mechanism) is str and mechanism in ("auto", "laplace", "gaussian"):
            return mechanism
        allowed = '"auto", "laplace", "gaussian", or a column of the last two'
        if type(mechanism) is not str or mechanism not in self.frame.columns:
            raise ParameterError("mechanism", mechanism, allowed)
        column = self.frame[mechanism]
        if column.dtype not in (pl.String, pl.Categorical, pl.Enum) or column.null_count():
            raise ParameterError("mechanism", mechanism, allowed)
        text = column.cast(pl.String)
        is_gaussian = text == "gaussian"
        if not (is_gaussian | (text == "laplace")).all():
            raise ParameterError("mechanism", mechanism, allowed)
        gaussians: NDArray[np.bool_] = is_gaussian.to_numpy()
        return gaussians

    def _by_rho(self, rho: Floats, chosen: str | NDArray[np.bool_]) -> list[_Part]:
        noise: _LaplaceNoise = "discrete" if self.whole else "continuous"
        if isinstance(chosen, str):
            chosen = rho <= _GAUSSIAN_UP_TO[noise] if chosen == "auto" else np.full(rho.size, chosen == "gaussian")

        def gaussian_part(rows: NDArray[np.int64] | None) -> _Part:
            size = self._taken(self.spread(self.sensitivity), rows)
            scale = size / np.sqrt(2.0 * self._taken(rho, rows)) * _RHO_ROOM
            return self._gaussian(rows, scale, size, None, None)

        def laplace_part(rows: NDArray[np.int64] | None) -> _Part:
            size = self._taken(self.spread(self.sensitivity), rows)
            return self._laplace(rows, _epsilon_of(self._taken(rho, rows), noise), size)

        return _split(chosen, gaussian_part, laplace_part)

    def _by_epsilon(self, epsilon: Floats, delta: Floats | None, chosen: str | NDArray[np.bool_]) -> list[_Part]:
        if isinstance(chosen, str) and (chosen == "laplace" or (chosen == "auto" and delta is None)):
            return [self._laplace(None, epsilon, self.spread(self.sensitivity))]
        if delta is None:
            raise ParameterError("delta", None, "given where noise is Gaussian", "write for example delta=1e-6")
        ratio = _gaussian_ratios(epsilon, delta)
        if isinstance(chosen, str):
            # Variances: (ratio * sensitivity)**2 against 2 (sensitivity / epsilon)**2.
            chosen = ratio * epsilon < math.sqrt(2.0) if chosen == "auto" else np.full(epsilon.size, True)

        def gaussian_part(rows: NDArray[np.int64] | None) -> _Part:
            size = self._taken(self.spread(self.sensitivity), rows)
            scale = self._taken(ratio, rows) * size * (1.0 + 2.0**-50)
            return self._gaussian(rows, scale, size, self._taken(epsilon, rows), self._taken(delta, rows))

        def laplace_part(rows: NDArray[np.int64] | None) -> _Part:
            return self._laplace(rows, self._taken(epsilon, rows), self._taken(self.spread(self.sensitivity), rows))

        return _split(chosen, gaussian_part, laplace_part)

    @staticmethod
    def _taken(column: Floats, rows: NDArray[np.int64] | None) -> Floats:
        return column if rows is None else column[rows]

    def _laplace(self, rows: NDArray[np.int64] | None, epsilon: Floats, size: Floats) -> _Part:
        scale = fresh_array(epsilon.size, np.dtype(np.float64))
        alike = size[0] if size.strides == (0,) else size
        if not scale_laplace(epsilon, alike, scale):
            row = int(np.argmax(~((epsilon >= 1e-18) & (epsilon <= 1e6))))
            raise ParameterError(f"epsilon[{row}]", float(epsilon[row]), "a number from 1e-18 to 1e6")
        self._check_scale(scale)
        kind, parameters = self._laplace_event(scale, size, epsilon)
        return _Part(rows, "laplace", scale, ChargeColumns(kind, parameters, epsilon, None, self.description))

    def _laplace_event(self, scale: Floats, size: Floats, epsilon: Floats) -> tuple[type, dict[str, Floats]]:
        """Return what Laplace noise on these values is: discrete, continuous, or just epsilon."""
        if not self.whole:
            return Laplace, {"scale": scale, "sensitivity": size}
        steps = size[:1] if size.strides == (0,) else size
        if scale.max() < 2.0**25 and (np.floor(steps) == steps).all():
            return DiscreteLaplace, {"scale": scale, "sensitivity": size}
        return Pure, {"epsilon": epsilon * (1.0 + 2.0**-50)}

    def _gaussian(
        self,
        rows: NDArray[np.int64] | None,
        scale: Floats,
        size: Floats,
        epsilon: Floats | None,
        delta: Floats | None,
    ) -> _Part:
        self._check_scale(scale)
        event = {"scale": scale, "sensitivity": size}
        return _Part(rows, "gaussian", scale, ChargeColumns(Gaussian, event, epsilon, delta, self.description))

    def _check_scale(self, scale: Floats) -> None:
        largest = 2.0**60 if self.whole else 2.0**960
        if not (scale.max() <= largest and scale.min() >= 2.0**-960):
            row = int(np.argmax(~((scale <= largest) & (scale >= 2.0**-960))))
            raise ParameterError(
                f"epsilon[{row}]",
                "a charge that needs noise of scale " + repr(float(scale[row])),
                f"one with a scale of at most {largest:g} for values of this type",
                "raise epsilon or rho, or lower the sensitivity",
            )


def _split(gaussians: NDArray[np.bool_], gaussian_part: Any, laplace_part: Any) -> list[_Part]:
    """Return the parts of rows with Gaussian noise and with Laplace noise."""
    if gaussians.all():
        return [gaussian_part(None)]
    if not gaussians.any():
        return [laplace_part(None)]
    return [gaussian_part(np.flatnonzero(gaussians)), laplace_part(np.flatnonzero(~gaussians))]


def _epsilon_of(rho: Floats, noise: _LaplaceNoise) -> Floats:
    """Return an epsilon whose Laplace noise costs at most rho, by bisection, and then a little less.

    Continuous noise costs e + exp(-e) - 1, discrete noise e tanh(e/2): both increase, are at most e and e**2/2,
    and above e - 1.3. The margin of 2**-30 is far above the errors of the functions.
    """
    low = np.maximum(np.sqrt(2.0 * rho), rho)
    high = low + 2.0
    for _ in range(60):
        middle = (low + high) / 2
        cost = middle + np.expm1(-middle) if noise == "continuous" else middle * np.tanh(middle / 2)
        low, high = np.where(cost <= rho, middle, low), np.where(cost <= rho, high, middle)
    epsilon: Floats = low * (1.0 - 2.0**-30)
    return epsilon


def _gaussian_ratios(epsilon: Floats, delta: Floats) -> Floats:
    """Return sigma / sensitivity of the Gaussian mechanism that is (epsilon, delta)-private, rounded up."""
    pairs = np.stack([epsilon, delta], axis=1)
    distinct, which = np.unique(pairs, axis=0, return_inverse=True)
    if len(distinct) > _MOST_PAIRS:
        mantissa, exponent = np.frexp(pairs)
        pairs = np.ldexp(np.floor(mantissa * 2.0**_KEPT_BITS), exponent - _KEPT_BITS)
        distinct, which = np.unique(pairs, axis=0, return_inverse=True)
    ratios = [analytic_gaussian_scale(1, e, d) for e, d in distinct.tolist()]
    spread: Floats = np.array(ratios)[which.reshape(-1)]
    return spread


def _series(name: str, column: NDArray[Any]) -> pl.Series:
    """Return an array as a column, without a copy."""
    import pyarrow as pa

    array = pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), column.size, [None, pa.py_buffer(column)])
    series = pl.from_arrow(array)
    assert isinstance(series, pl.Series)
    return series.alias(name)


def _frame(table: Any) -> pl.DataFrame:
    if isinstance(table, pl.DataFrame):
        return table
    if type(table).__module__.split(".")[0] == "pyarrow" and hasattr(table, "column_names"):
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        return frame
    raise ParameterError("table", type(table).__name__, "a Polars DataFrame or a PyArrow Table", "collect it first")


def _column(frame: pl.DataFrame, name: Any, argument: str) -> pl.Series:
    if type(name) is not str or name not in frame.columns:
        raise ParameterError(argument, name, f"one of the table's columns: {', '.join(frame.columns)}")
    return frame[name]


def _check_type(values: pl.Series) -> None:
    dtype = values.dtype
    if not (dtype.is_integer() or dtype.is_float() or dtype == pl.Boolean) or dtype in (pl.Int128, pl.UInt128):
        raise ColumnError(f"value must be a column of integers, Booleans or floats, but {values.name!r} is {dtype}")


def _cleaned(values: pl.Series, missing: float) -> pl.Series:
    """Return values that kernels take, with the declared number for what is missing: no error tells of a value."""
    if values.dtype.is_float():
        largest = float(np.finfo(np.float32 if values.dtype == pl.Float32 else np.float64).max)
        if values.null_count():
            values = values.fill_null(missing)
        if not values.is_finite().all():
            values = values.fill_nan(missing).clip(-largest, largest)
        return values
    if values.dtype not in (pl.Int64, pl.Int32, pl.UInt32):
        if values.dtype == pl.UInt64:
            values = values.clip(upper_bound=2**63 - 1)
        values = values.cast(pl.Int64)
    return values.fill_null(round(missing)) if values.null_count() else values


def _drawn(values: pl.Series, parts: Sequence[_Part], threads: int | None) -> tuple[NDArray[Any], ...]:
    """Return answers, scales and bounds, in the rows' order."""
    normal = NormalDist().inv_cdf(1 - _MISS / 2)
    answers = scales = lower = upper = np.empty(0)
    for part in parts:
        draw = laplace if part.mechanism == "laplace" else gaussian
        reach = (math.log(1 / _MISS) if part.mechanism == "laplace" else normal) * _WIDENED
        mine = values.to_numpy() if part.rows is None else values.gather(part.rows).to_numpy()
        drawn = draw(mine, part.scale, threads=threads)
        whole = drawn.dtype.kind == "i"
        low, high = (fresh_array(drawn.size, np.dtype(np.int64 if whole else np.float64)) for _ in range(2))
        (intervals_of_integers if whole else intervals_of_floats)(drawn, part.scale, reach, low, high)
        if part.rows is None:
            return drawn, part.scale, low, high
        if not answers.size:
            answers, scales, lower, upper = (
                np.empty(len(values), each.dtype) for each in (drawn, part.scale, low, high)
            )
        for target, source in ((answers, drawn), (scales, part.scale), (lower, low), (upper, high)):
            target[part.rows] = source
    return answers, scales, lower, upper
