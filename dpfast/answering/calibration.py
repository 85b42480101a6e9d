"""From a table's public columns to noise and charges: vectorised, rounded up, before any value is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.accounting.budget import LARGEST_RHO, delta_beside_rho, kind_of_budget
from dpfast.accounting.events import DiscreteLaplace, Gaussian, Laplace, Pure
from dpfast.answering.wished import epsilons_of, rhos_of
from dpfast.arguments import Real, Special, no_numbers
from dpfast.columns import borrow_scale
from dpfast.columns.dtypes import dtype_name
from dpfast.columns.fresh import fresh_array
from dpfast.errors import ColumnError, ParameterError, Words
from dpfast.exact.amounts import charge_units, to_float
from dpfast.kernels.amounts.calibrating import scale_laplace
from dpfast.kernels.ranges import all_within
from dpfast.ledger import ChargeColumns
from dpfast.ledger.filters import refuse_rho
from dpfast.mechanisms.noise.calibration import analytic_gaussian_ratios

__all__ = [
    "ColumnName",
    "Floats",
    "Mechanism",
    "OwnAmount",
    "OwnColumnName",
    "OwnDelta",
    "OwnError",
    "Part",
    "PerQuery",
    "Rows",
    "column_of",
    "epsilon_of",
]

Floats = NDArray[np.float64]
Mechanism = Literal["laplace", "gaussian"]
_LaplaceNoise = Literal["continuous", "discrete"]

#: The places of some rows; None for all.
_Chosen: TypeAlias = NDArray[np.int64] | None
_MakePart: TypeAlias = "Callable[[_Chosen, Floats], Part]"

#: Above this rho of one query Laplace noise has the smaller variance: continuous noise where e**2/4 is above
#: e + exp(-e) - 1, discrete noise (less its own e**2/4 > e tanh(e/2), as if it were continuous) above the second.
_GAUSSIAN_UP_TO = {"continuous": 1.634, "discrete": 3.67}
#: The largest scale below 2**25: from 2**25 on integers are released on coarser grids.
_LARGEST_DISCRETE = math.nextafter(2.0**25, 0.0)
# Covers the roundings of the scale and of the ledger's rho, so that no query is charged more than was asked.
_RHO_ROOM = 1.0 + 2.0**-36
_NAME = "a column's name, or a number for all rows"


@dataclass(frozen=True)
class Part:
    """Rows that get one kind of noise: which, how much, and what they are charged."""

    rows: _Chosen
    mechanism: Mechanism
    scale: Floats
    charge: ChargeColumns


def _no_numbers() -> Iterator[object]:
    yield from (*no_numbers(), 0, -1, [1.0], np.ones(3), "none such", [None])


#: A column's name, or a number for all rows.
PerQuery: TypeAlias = Annotated[Real | str, Special(_no_numbers)]
_AMOUNT = Special(lambda: (*_no_numbers(), 1e-19, 10**7), optional=True)
OwnAmount: TypeAlias = Annotated[Real | str | None, _AMOUNT]
OwnError: TypeAlias = Annotated[Real | str | None, Special(_no_numbers, optional=True)]
OwnDelta: TypeAlias = Annotated[
    Real | str | None, Special(lambda: (*no_numbers(), -1, 1, 1.5, [0.5], "none such"), optional=True)
]
_NO_COLUMNS = (5, True, 0.5, b"count", ["count"], object(), "", "none such", pl.col("count"))
ColumnName: TypeAlias = Annotated[str, Special(lambda: _NO_COLUMNS)]
OwnColumnName: TypeAlias = Annotated[str | None, Special(lambda: _NO_COLUMNS, optional=True)]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The public parameters of a table's rows, as `answer` explains them, and the noise that they ask for."""

    frame: pl.DataFrame
    value: str
    accountant: str = "basic"
    sensitivity: PerQuery = 1.0
    epsilon: OwnAmount = None
    rho: OwnAmount = None
    error: OwnError = None
    delta: OwnDelta = None
    weight: OwnColumnName = None
    mechanism: str = "auto"
    description: str = "queries of a table"

    @property
    def whole(self) -> bool:
        """Whether the true values are integers or Booleans."""
        return not self.frame[self.value].dtype.is_float()

    @cached_property
    def width(self) -> float | Floats:
        """The sensitivity: one number, or one for each row."""
        return self.numbers(self.sensitivity, "sensitivity")

    def numbers(self, given: Any, argument: str) -> float | Floats:
        """Return a parameter: a number rounded up, or a column of positive finite float64."""
        if given is None:
            raise ParameterError(argument, given, _NAME)
        if isinstance(given, str):
            column = self.public(given, argument)
            if not column.dtype.is_numeric() or column.dtype.is_decimal():
                raise ColumnError(
                    f"{argument} must be a column of numbers, but {given!r} is {dtype_name(column.dtype)}"
                )
            numbers = borrow_scale(column.cast(pl.Float64), self.frame.height, argument)
            assert isinstance(numbers, np.ndarray)
            return numbers
        number = borrow_scale(given, self.frame.height, argument)
        if not isinstance(number, float):
            raise ParameterError(argument, given, _NAME)
        return number

    def public(self, name: str, argument: str) -> pl.Series:
        """Return a column of parameters: not the true values, of which errors and charges would tell."""
        if name == self.value:
            raise ParameterError(argument, name, "a public column, not that of the true values")
        return column_of(self.frame, name, argument)

    def spread(self, number: float | Floats) -> Floats:
        """Return a column, of one number without a copy of it for every row."""
        return np.broadcast_to(np.asarray(number), (self.frame.height,)) if isinstance(number, float) else number

    def planned(self) -> list[Part]:
        """Return the noise and the charges of the parts that the rows fall into."""
        if self.error is not None:
            return self._wished()
        amounts = self.amounts()
        deltas = None if _is_none(self.delta) else self.spread(self.numbers(self.delta, "delta"))
        if deltas is not None and not deltas.max() < 1.0:
            raise ParameterError("delta", float(deltas.max()), "below 1")
        chosen = self._mechanisms(self.mechanism)
        return self._by_rho(amounts, chosen) if self.rho is not None else self._by_epsilon(amounts, deltas, chosen)

    def _wished(self) -> list[Part]:
        """Return the noise of the least charges at which every answer's interval is within its error."""
        for name, given in (
            ("epsilon", self.epsilon),
            ("rho", self.rho),
            ("delta", self.delta),
            ("weight", self.weight),
        ):
            if given is not None and not (name == "delta" and _is_none(given)):
                raise ParameterError(name, given, "left out where error is given, which decides what rows are charged")
        errors, chosen = self.spread(self.numbers(self.error, "error")), self._mechanisms(self.mechanism)
        if self.accountant != "basic":
            rhos, gaussians = rhos_of(errors, self.width, chosen, whole=self.whole)
            _check_range(rhos, LARGEST_RHO, "rho")
            return self._by_rho(rhos, gaussians)
        if not isinstance(chosen, str) or chosen == "gaussian":
            allowed = '"auto" or "laplace" where error is given and the ledger adds up epsilon'
            raise ParameterError("mechanism", self.mechanism, allowed, 'a ledger with accountant="zcdp" has both')
        epsilons = epsilons_of(errors, self.width, whole=self.whole)
        _check_range(epsilons, 1e6, "epsilon")
        return self._by_epsilon(epsilons, None, "laplace")

    def amounts(self) -> Floats:
        """Return each row's epsilon or rho, whichever was given."""
        if kind_of_budget(self.epsilon, self.rho) == "epsilon":
            return self._amounts(self.epsilon, "epsilon")
        refuse_rho(self.accountant, self.rho)
        if not _is_none(self.delta):
            raise delta_beside_rho(self.delta)
        amounts = self._amounts(self.rho, "rho")
        _check_range(amounts, LARGEST_RHO, "rho")
        return amounts

    def _amounts(self, given: Any, argument: str) -> Floats:
        if self.weight is None:
            return self.spread(self.numbers(given, argument))
        if not isinstance(self.weight, str):
            raise ParameterError("weight", self.weight, "a column's name")
        weights = self.spread(self.numbers(self.weight, "weight"))
        if isinstance(given, str):
            raise ParameterError(argument, given, "one number where weight shares it among the rows")
        total = to_float(charge_units(given, "epsilon", argument))
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
        column = self.public(mechanism, "mechanism")
        if column.dtype not in (pl.String, pl.Categorical, pl.Enum) or column.null_count():
            raise ParameterError("mechanism", mechanism, allowed)
        text = column.cast(pl.String)
        is_gaussian = text == "gaussian"
        if not (is_gaussian | (text == "laplace")).all():
            raise ParameterError("mechanism", mechanism, allowed)
        gaussians: NDArray[np.bool_] = is_gaussian.to_numpy()
        return gaussians

    def _by_rho(self, rho: Floats, chosen: str | NDArray[np.bool_]) -> list[Part]:
        noise: _LaplaceNoise = "discrete" if self.whole else "continuous"
        if isinstance(chosen, str):
            chosen = rho <= _GAUSSIAN_UP_TO[noise] if chosen == "auto" else np.full(rho.size, chosen == "gaussian")

        def gaussian(rows: _Chosen, size: Floats) -> Part:
            return self._gaussian(rows, size / np.sqrt(2.0 * _taken(rho, rows)) * _RHO_ROOM, size, None, None)

        def laplace(rows: _Chosen, size: Floats) -> Part:
            return self._laplace(rows, epsilon_of(_taken(rho, rows), noise), size)

        return self._split(chosen, gaussian, laplace)

    def _by_epsilon(self, epsilon: Floats, delta: Floats | None, chosen: str | NDArray[np.bool_]) -> list[Part]:
        if isinstance(chosen, str) and (chosen == "laplace" or (chosen == "auto" and delta is None)):
            return [self._laplace(None, epsilon, self.spread(self.width))]
        if delta is None:
            raise ParameterError("delta", None, "given where noise is Gaussian", "write for example delta=1e-6")
        _check_range(epsilon, 1e6, "epsilon")
        _check_range(delta, 1.0, "delta")
        ratio = _gaussian_ratios(epsilon, delta)
        if isinstance(chosen, str):
            # Variances: (ratio * sensitivity)**2 against 2 (sensitivity / epsilon)**2.
            chosen = ratio * epsilon < math.sqrt(2.0) if chosen == "auto" else np.full(epsilon.size, True)

        def gaussian(rows: _Chosen, size: Floats) -> Part:
            scale = _taken(ratio, rows) * size * (1.0 + 2.0**-50)
            return self._gaussian(rows, scale, size, _taken(epsilon, rows), _taken(delta, rows))

        return self._split(chosen, gaussian, lambda rows, size: self._laplace(rows, _taken(epsilon, rows), size))

    def _split(self, gaussians: NDArray[np.bool_], gaussian: _MakePart, laplace: _MakePart) -> list[Part]:
        """Return the parts of rows with Gaussian noise and with Laplace noise; all rows are no choice of rows."""
        size = self.spread(self.width)
        if gaussians.all():
            return [gaussian(None, size)]
        if not gaussians.any():
            return [laplace(None, size)]
        first, second = np.flatnonzero(gaussians), np.flatnonzero(~gaussians)
        return [gaussian(first, size[first]), laplace(second, size[second])]

    def _laplace(self, rows: _Chosen, epsilon: Floats, size: Floats) -> Part:
        scale = fresh_array(epsilon.size, np.dtype(np.float64))
        alike = size[0] if size.strides == (0,) else size
        if not scale_laplace(epsilon, alike, scale):
            _check_range(epsilon, 1e6, "epsilon")
        self._check_scale(scale)
        kind, parameters = self._laplace_event(scale, size, epsilon)
        charge = ChargeColumns.to_check(kind, parameters, epsilon, None, self.description)
        return Part(rows, "laplace", scale, charge)

    def _laplace_event(self, scale: Floats, size: Floats, epsilon: Floats) -> tuple[type, dict[str, Floats]]:
        """Return what Laplace noise on these values is: discrete, continuous, or just epsilon."""
        if not self.whole:
            return Laplace, {"scale": scale, "sensitivity": size}
        steps = size[:1] if size.strides == (0,) else size
        if all_within(scale, 0.0, _LARGEST_DISCRETE) and (np.floor(steps) == steps).all():
            return DiscreteLaplace, {"scale": scale, "sensitivity": size}
        return Pure, {"epsilon": epsilon * (1.0 + 2.0**-50)}

    def _gaussian(
        self, rows: _Chosen, scale: Floats, size: Floats, epsilon: Floats | None, delta: Floats | None
    ) -> Part:
        self._check_scale(scale)
        event = {"scale": scale, "sensitivity": size}
        charge = ChargeColumns.to_check(Gaussian, event, epsilon, delta, self.description)
        return Part(rows, "gaussian", scale, charge)

    def _check_scale(self, scale: Floats) -> None:
        largest = 2.0**60 if self.whole else 2.0**960
        if not all_within(scale, 2.0**-960, largest):
            row = int(np.argmax(~((scale <= largest) & (scale >= 2.0**-960))))
            raise ParameterError(
                f"epsilon[{row}]",
                Words("a charge that needs noise of scale " + repr(float(scale[row]))),
                f"one with a scale of at most {largest:g} for values of this type",
                "raise epsilon or rho, or lower the sensitivity",
            )


def _taken(column: Floats, rows: _Chosen) -> Floats:
    return column if rows is None else column[rows]


def epsilon_of(rho: Floats, noise: _LaplaceNoise) -> Floats:
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


def _is_none(delta: Any) -> bool:
    """Return whether no delta is given: None, or the number 0."""
    return delta is None or (isinstance(delta, (int, float, np.number)) and not isinstance(delta, bool) and delta == 0)


def _check_range(amounts: Floats, largest: float, argument: str) -> None:
    if not all_within(amounts, 1e-18, largest):
        row = int(np.argmax(~((amounts >= 1e-18) & (amounts <= largest))))
        raise ParameterError(f"{argument}[{row}]", float(amounts[row]), f"a number from 1e-18 to {largest:g}")


def _gaussian_ratios(epsilon: Floats, delta: Floats) -> Floats:
    """Return sigma / sensitivity of the Gaussian mechanism that is (epsilon, delta)-private, rounded up."""
    if epsilon.strides == delta.strides == (0,):
        return np.broadcast_to(analytic_gaussian_ratios(epsilon[:1].copy(), delta[:1].copy()), epsilon.shape)
    return analytic_gaussian_ratios(np.ascontiguousarray(epsilon), np.ascontiguousarray(delta))


def column_of(frame: pl.DataFrame, name: Any, argument: str) -> pl.Series:
    """Return a column by name, or refuse the name."""
    if type(name) is not str or name not in frame.columns:
        raise ParameterError(argument, name, f"one of the table's columns: {', '.join(frame.columns)}")
    return frame[name]
