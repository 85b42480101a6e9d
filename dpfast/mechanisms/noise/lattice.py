"""The grid that released values lie on, chosen from the type and the scale alone.

A mechanism over the real numbers is made exact by rounding its result to a grid: post-processing, which costs
no privacy. Integers lie on the grid of ones as long as the noise fits a kernel's int32, and on multiples of a
power of two above; floats lie on 2**(floor(log2 scale) - 10).

Rounding to a grid g of floats adds g**2 / 12 to the variance, at most 2**-20 / 24 of Laplace noise's own and
2**-20 / 12 of Gaussian noise's: 8e-8. The mean of what is rounded differs from x by at most the sum over k >= 1 of
g / (pi k) times the noise's characteristic function at 2 pi k / g. For Laplace noise that function is at most
(g / (2 pi k scale))**2, so that the sum is at most 1.21 g**3 / (4 pi**3 scale**2), below 2**-36 scale; for Gaussian
noise it is far less. So a sum of 2**64 released values has no error beside that of their noise. A finer grid would
take longer: float32 leaves a part of the samples open that grows as the grid's steps shrink.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.errors import ParameterError
from dpfast.kernels.noise import joining, preparation
from dpfast.kernels.noise.preparation import FINENESS, LOWEST_EXPONENT
from dpfast.mechanisms.noise.exact import discrete_offset

__all__ = ["Lattice", "Multiples", "Ones", "Powers", "Rows", "Scratch", "grid_exponent", "lattice_for"]

#: A parameter as kernels take it: one number, or one a row.
Parameter: TypeAlias = Any

#: Gives a thread's buffer of a name and type, as long as a chunk.
Scratch: TypeAlias = Callable[[str, type[np.generic]], NDArray[Any]]

LARGEST_INTEGER_SCALE = 2.0**60

#: The largest scale in units of the grid is below 2**25, so that the noise stays below 2**31.
LARGEST_ONES_EXPONENT = 24

_LIMITS = {
    np.dtype(np.int64): (np.int64(-(2**63)), np.int64(2**63 - 1)),
    np.dtype(np.int32): (np.int64(-(2**31)), np.int64(2**31 - 1)),
}


def grid_exponent(scale: float) -> int:
    """Return the exponent of the grid of floats for noise of this scale.

    Examples
    --------
    >>> grid_exponent(1.0), grid_exponent(1.99), grid_exponent(2.0)
    (-10, -10, -9)

    """
    return max(math.frexp(scale)[1] - 1 - FINENESS, LOWEST_EXPONENT)


@dataclass(slots=True)
class Rows:
    """Parameters of a chunk's rows in units of the grid, as kernels take them.

    Attributes
    ----------
    scale
        The noise's scale.
    offset
        What discrete Laplace noise adds before rounding; 0.0 where the noise is continuous.
    position
        What places values on the grid: the shift, or 1 / grid; None where every value is a grid point.
    grid
        The grid of floats.

    """

    scale: Parameter
    offset: Parameter = 0.0
    position: Parameter = None
    grid: Parameter = None


class Lattice(ABC):
    """Where released values lie, and how values and rounded noise come together there.

    Parameters
    ----------
    scale
        The noise's scale, a float or an array with one a row.
    released
        The type of released values.

    """

    def __init__(self, scale: Parameter, released: np.dtype[Any]) -> None:
        self.released = released
        self.scale = _borrowed(scale)
        self._rows = self._rows_of_one(scale) if isinstance(scale, float) else None

    def rows(self, start: int, stop: int, scratch: Scratch) -> Rows:
        """Return the parameters of the rows from ``start`` up to ``stop``."""
        if self._rows is not None:
            return self._rows
        return self._rows_of_many(self.scale[start:stop], lambda name, dtype: scratch(name, dtype)[: stop - start])

    @abstractmethod
    def _rows_of_one(self, scale: float) -> Rows:
        """Return the parameters of all rows for one scale."""

    @abstractmethod
    def _rows_of_many(self, scale: NDArray[np.float64], scratch: Scratch) -> Rows:
        """Return the parameters of some rows for a scale each; buffers are as long as these."""

    @abstractmethod
    def join(self, values: NDArray[Any], rows: Rows, noise: NDArray[np.int32], released: NDArray[Any]) -> None:
        """Set ``released`` to the values' nearest grid points moved by the noise."""

    @abstractmethod
    def exact(self, value: Any, row: int) -> tuple[Fraction, Fraction, bool]:
        """Return (scale, fraction, whether Laplace noise is discrete) of a row, in units of the grid."""

    @abstractmethod
    def place(self, value: Any, row: int, noise: int) -> int | float:
        """Return what is released for a row's value and any rounded noise: `join` without limits."""


def _borrowed(scale: Parameter) -> Parameter:
    """Return a read-only view of scales, whoever made them: kernels are compiled for one kind of array."""
    if isinstance(scale, float):
        return scale
    view = scale.view()
    view.setflags(write=False)
    return view


def _entry(scale: Parameter, row: int) -> float:
    return float(scale if isinstance(scale, float) else scale[row])


def _within(x: int, limits: tuple[Any, Any]) -> int:
    return min(max(x, int(limits[0])), int(limits[1]))


def _nearest_multiple(x: int, shift: int) -> int:
    """Return the integer nearest to x / 2**shift, the upper one of two."""
    return ((x << 1) + (1 << shift)) >> (shift + 1)


class Ones(Lattice):
    """Integers, noise up to 2**25: every integer is a grid point."""

    def __init__(self, scale: Parameter, largest: float, released: np.dtype[Any], discrete: bool) -> None:
        self.largest_scale = largest
        self._discrete = discrete
        self.limits = _LIMITS[released]
        super().__init__(scale, released)

    def _rows_of_one(self, scale: float) -> Rows:
        offset = discrete_offset(scale) if self._discrete else 0.0
        return Rows(scale, offset)

    def _rows_of_many(self, scale: NDArray[np.float64], scratch: Scratch) -> Rows:
        if not self._discrete:
            return Rows(scale)
        scales, offsets = scratch("scales", np.float64), scratch("offsets", np.float64)
        preparation.prepare_discrete(scale, scales, offsets)
        return Rows(scales, offsets)

    def join(self, values: NDArray[Any], rows: Rows, noise: NDArray[np.int32], released: NDArray[Any]) -> None:
        """See `Lattice.join`."""
        smallest, largest = self.limits
        joining.add_noise(values, noise, smallest, largest, released)

    def exact(self, value: Any, row: int) -> tuple[Fraction, Fraction, bool]:
        """See `Lattice.exact`."""
        return Fraction(_entry(self.scale, row)), Fraction(0), self._discrete

    def place(self, value: Any, row: int, noise: int) -> int:
        """See `Lattice.place`."""
        return _within(int(value) + noise, self.limits)


class Multiples(Lattice):
    """Integers, wider noise: the grid is 2**shift with 2**24 <= scale / 2**shift < 2**25."""

    def __init__(self, scale: Parameter, released: np.dtype[Any], discrete: bool) -> None:
        self._discrete = discrete
        self._limits = _LIMITS[released]
        super().__init__(scale, released)

    @staticmethod
    def _shift(scale: float) -> int:
        return max(math.frexp(scale)[1] - 1 - LARGEST_ONES_EXPONENT, 0)

    def _rows_of_one(self, scale: float) -> Rows:
        shift = self._shift(scale)
        return Rows(math.ldexp(scale, -shift), 0.0, np.int64(shift))

    def _rows_of_many(self, scale: NDArray[np.float64], scratch: Scratch) -> Rows:
        scales, offsets = scratch("scales", np.float64), scratch("offsets", np.float64)
        shifts = scratch("shifts", np.int64)
        preparation.prepare_multiples(scale, np.int64(LARGEST_ONES_EXPONENT), shifts, scales, offsets)
        return Rows(scales, offsets, shifts)

    def join(self, values: NDArray[Any], rows: Rows, noise: NDArray[np.int32], released: NDArray[Any]) -> None:
        """See `Lattice.join`."""
        smallest, largest = self._limits
        joining.join_multiples(values, rows.position, noise, smallest, largest, released)

    def exact(self, value: Any, row: int) -> tuple[Fraction, Fraction, bool]:
        """See `Lattice.exact`."""
        scale = _entry(self.scale, row)
        shift = self._shift(scale)
        fraction = Fraction(int(value) - (_nearest_multiple(int(value), shift) << shift), 1 << shift)
        return Fraction(scale) / (1 << shift), fraction, self._discrete and shift == 0

    def place(self, value: Any, row: int, noise: int) -> int:
        """See `Lattice.place`."""
        shift = self._shift(_entry(self.scale, row))
        total = _within(_nearest_multiple(int(value), shift) + noise, (-(2**63) >> shift, (2**63 - 1) >> shift))
        return _within(total << shift, self._limits)


class Powers(Lattice):
    """Floats: the grid is the power of two 2**10 times below the scale, and never below 2**-1000."""

    def __init__(self, scale: Parameter, released: np.dtype[Any]) -> None:
        self.largest = float(np.finfo(released).max)
        super().__init__(scale, released)

    def _rows_of_one(self, scale: float) -> Rows:
        exponent = grid_exponent(scale)
        inverse = math.ldexp(1.0, -exponent)
        return Rows(scale * inverse, 0.0, inverse, grid=math.ldexp(1.0, exponent))

    def _rows_of_many(self, scale: NDArray[np.float64], scratch: Scratch) -> Rows:
        scales, grid, inverse = (scratch(name, np.float64) for name in ("scales", "grid", "inverse_grid"))
        preparation.prepare_grid(scale, inverse, grid, scales)
        return Rows(scales, 0.0, inverse, grid=grid)

    def join(self, values: NDArray[Any], rows: Rows, noise: NDArray[np.int32], released: NDArray[Any]) -> None:
        """See `Lattice.join`."""
        joining.join_grid(values, rows.position, rows.grid, noise, self.largest, released)

    def exact(self, value: Any, row: int) -> tuple[Fraction, Fraction, bool]:
        """See `Lattice.exact`."""
        scale = _entry(self.scale, row)
        grid = Fraction(2) ** grid_exponent(scale)
        position = Fraction(float(value)) / grid
        return Fraction(scale) / grid, position - round(position), False

    def place(self, value: Any, row: int, noise: int) -> float:
        """See `Lattice.place`."""
        grid = Fraction(2) ** grid_exponent(_entry(self.scale, row))
        total = round(Fraction(float(value)) / grid) + noise
        # As in the kernel, the integer is rounded to 53 bits first and then, times the grid, to the type.
        spare = 1 << max(total.bit_length() - 53, 0)
        rounded = round(Fraction(total, spare)) * spare * grid
        largest = Fraction(self.largest)
        # A sum with 0.0 has no negative zero, which a small number of the type may round to.
        return float(self.released.type(float(min(max(rounded, -largest), largest))) + self.released.type(0.0))


def lattice_for(dtype: np.dtype[Any], scale: Parameter, *, discrete: bool) -> Lattice:
    """Return the grid for a column of this type and noise of this scale.

    Parameters
    ----------
    dtype
        The column's type; integers without a sign are released as int64, others as themselves.
    scale
        A float, or an array with one scale a row.
    discrete
        Whether noise on the grid of ones is discrete Laplace noise.

    Raises
    ------
    ParameterError
        The scale is above 2**60 for integers: the noise would only saturate.

    """
    if dtype.kind == "f":
        return Powers(scale, dtype)
    released = np.dtype(np.int64) if dtype.kind == "u" else dtype
    largest = scale if isinstance(scale, float) else float(np.max(scale, initial=0.0))
    if largest > LARGEST_INTEGER_SCALE:
        allowed = "at most 2**60 (about 1.15e+18) for integers"
        raise ParameterError("scale", largest, allowed, "cast the column to float64")
    if largest >= 2.0 ** (LARGEST_ONES_EXPONENT + 1):
        return Multiples(scale, released, discrete)
    return Ones(scale, largest, released, discrete)
