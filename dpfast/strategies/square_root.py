"""The square root of the prefix sums: a Toeplitz matrix, near to the best for prefixes under Gaussian noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast.errors import ParameterError
from dpfast.strategies.axes import bounds_of
from dpfast.strategies.exact_convolution import convolve
from dpfast.strategies.strategy import LARGEST_DENSE, LARGEST_TOTAL, LineStrategy
from dpfast.workloads.ranges import AllRanges, Prefixes
from dpfast.workloads.shapes import CELLS, Cells
from dpfast.workloads.workload import Workload

__all__ = ["LARGEST_SQUARE_ROOT", "SquareRoot", "has_closed_form", "square_root"]

LARGEST_SQUARE_ROOT = 2**22

#: Coefficients are whole multiples of 2**-20.
_FINENESS = 20


class SquareRoot(LineStrategy):
    """The lower triangular Toeplitz matrix C with the coefficients of (1 - x)**(-1/2), times 2**20 and rounded.

    Without the rounding C C would be the matrix of prefix sums. What is measured, its norm and the way back are all
    those of the rounded matrix (Soundness rule 25).

    Attributes
    ----------
    coefficients
        Of a column, from the diagonal down, int64.

    """

    name = "square root of prefixes"
    #: No coefficient is negative, and the first and the last column have next to nothing in common.
    inner = 0

    def __init__(self, cells: int) -> None:
        self.shape = (cells,)
        k = np.arange(1.0, cells)
        exact = np.cumprod(np.append(1.0, (2 * k - 1) / (2 * k)))
        self.coefficients = np.rint(exact * 2.0**_FINENESS).astype(np.int64)
        # The first column and the last row have all coefficients.
        self.l1 = self.row = int(self.coefficients.sum())
        # Below 2**40 each; the sum is below 2**40 (2 + ln n).
        self.l2_squared = int((self.coefficients**2).sum())

    def __len__(self) -> int:
        """Return the number of cells: the matrix is square."""
        return self.cells

    def measure_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `LineStrategy.measure_rows`."""
        limit = LARGEST_TOTAL // self.row
        return np.array([convolve(row, self.coefficients, limit) for row in rows])

    def reconstruct_rows(self, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `LineStrategy.reconstruct_rows`: the convolution with the coefficients' inverse as a power series."""
        return _convolve(noisy, self._inverse())

    def error(self, workload: Workload) -> float:
        """See `Strategy.error`: in closed form for prefixes and all ranges, and from the variances for other ranges.

        Notes
        -----
        With b the running sums of the inverse's coefficients, the prefix of j cells is measured with the coefficients
        b_(j-1), ..., b_0: r_j, say. The prefixes' error is the sum of their squares; that of all ranges the sum of
        (r_j - r_i)**2 over i < j, r_0 = 0: (n + 1) times the former less the square of the sum of all r_j, whose
        entries are the running sums of b.

        """
        if not has_closed_form(workload):
            few = self.cells <= LARGEST_DENSE
            return super().error(workload) if few else float(self.variances(workload).sum())
        running = np.cumsum(self._inverse())
        prefixes = float(np.cumsum(running**2).sum())
        if isinstance(workload, Prefixes):
            return prefixes
        return (self.cells + 1) * prefixes - float((np.cumsum(running) ** 2).sum())

    def variances(self, workload: Workload) -> NDArray[np.float64]:
        """See `Strategy.variances`: for ranges from running sums.

        Notes
        -----
        With b the running sums of the inverse's coefficients, a range of d cells from l on is measured with the
        coefficients b_(d-1), ..., b_0 of its own cells, and b_(k+d) - b_k for the cell k places before l - 1: the sums
        of the latter's squares are running sums over k, for each length d.

        """
        bounds = bounds_of(workload)
        if bounds is None:
            return super().variances(workload)
        lower, length = bounds[0], bounds[1] - bounds[0]
        running = np.cumsum(self._inverse())
        variances = np.append(0.0, np.cumsum(running**2))[length]
        later = np.flatnonzero((lower > 0) & (length > 0))
        order = later[np.argsort(length[later], kind="stable")]
        for alike in np.split(order, np.flatnonzero(np.diff(length[order])) + 1) if order.size else ():
            cells, most = int(length[alike[0]]), int(lower[alike].max())
            before = np.cumsum((running[cells : cells + most] - running[:most]) ** 2)
            variances[alike] += before[lower[alike] - 1]
        return np.asarray(variances, np.float64)

    def covariance(self) -> NDArray[np.float64]:
        """See `Strategy.covariance`."""
        self.check_dense()
        inverse = _toeplitz(self._inverse())
        return inverse @ inverse.T

    def _inverse(self) -> NDArray[np.float64]:
        """Return the coefficients of 1 / C as a power series, by Newton's iteration d <- d (2 - C d)."""
        scaled = self.coefficients / 2.0**_FINENESS
        inverse = np.ones(1)
        while inverse.size < self.cells:
            size = min(2 * inverse.size, self.cells)
            wider = np.append(inverse, np.zeros(size - inverse.size))
            rest = -_convolve(wider, scaled[:size])
            rest[0] += 2.0
            inverse = _convolve(wider, rest)
        return inverse / 2.0**_FINENESS


def has_closed_form(workload: Workload) -> bool:
    """Whether the error for a workload needs no matrix."""
    return isinstance(workload, (Prefixes, AllRanges))


def _toeplitz(coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lower triangular matrix with these coefficients in its columns."""
    size = coefficients.size
    padded = np.append(coefficients, np.zeros(size - 1))
    places = np.subtract.outer(np.arange(size), np.arange(size))
    return padded[places]


def _convolve(rows: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each row convolved with another one, as many entries as it has."""
    count = rows.shape[-1]
    size = 1 << (2 * count - 1).bit_length()
    product = np.fft.rfft(rows, size) * np.fft.rfft(other, size)
    return np.asarray(np.fft.irfft(product, size)[..., :count], np.float64)


def square_root(cells: Cells) -> SquareRoot:
    """Measure the square root of the prefix sums, a Toeplitz matrix: for prefixes under Gaussian noise.

    Its coefficients 1, 1/2, 3/8, 5/16, ... are multiplied by 2**20 and rounded to whole numbers.

    Parameters
    ----------
    cells
        How many, at most 2**22.

    Raises
    ------
    ParameterError
        The number of cells is not as above.

    References
    ----------
    Henzinger, Upadhyay, Upadhyay (2023), theorem 2, for prefixes: within a small factor of the best. Fichtenberger,
    Henzinger, Upadhyay (2023) for the factorization.

    Examples
    --------
    >>> square_root(4).coefficients / 2**20
    array([1.    , 0.5   , 0.375 , 0.3125])

    """
    size = CELLS.read("cells", cells)
    if size > LARGEST_SQUARE_ROOT:
        raise ParameterError("cells", cells, "at most 2**22 for this strategy", "use hierarchy(cells, 2)")
    return SquareRoot(size)
