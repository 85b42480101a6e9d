"""The point nearest to noisy answers among those that some histogram has, found without the queries' matrix."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.arguments import Choice, Number, Special, Whole
from dpfast.errors import ParameterError, Words
from dpfast.showing import Shown
from dpfast.workloads import Workload
from dpfast.workloads.histograms import checked_histogram, no_arrays, numbers_of
from dpfast.workloads.workload import WORKLOAD, Asked

__all__ = ["Body", "Projection", "check_limits", "project_answers"]

BODY = Choice(("simplex", "capped", "ball"))
Body: TypeAlias = Annotated[Literal["simplex", "capped", "ball"], BODY]
TOLERANCE = Number(0, 1e100, above=True, optional=True, mend="write for example {name}=0.1")
Tolerance: TypeAlias = Annotated[float | None, TOLERANCE]
ITERATIONS = Whole(1)
Iterations: TypeAlias = Annotated[int, ITERATIONS]
TOTAL = Number(0, mend="give the number of records")

#: An int64 has so many bits for columns of zeros and ones; of other columns each costs a pass over the histogram.
_BINARY_COLUMNS, _OTHER_COLUMNS = 62, 4
#: Corners that promise less than this part of what the best one does are not taken up.
_WORTHWHILE = 0.3
_MOVES_PER_COLUMN = 500
_CORRECTIONS = 20
_RIDGE = 1e-13
_ROUNDING = 2.0**-50
#: A gap that no iteration of so many makes smaller by this factor is what rounding leaves: steps go to and fro.
_PATIENCE, _IMPROVED = 100, 0.99


@dataclass(frozen=True)
class Projection(Shown):
    """A histogram whose answers are nearest to noisy ones, with a certificate of how near.

    Attributes
    ----------
    answers
        W y, float64, one for each query.
    histogram
        y, float64, of the workload's shape.
    total
        The records that the histogram was to have.
    gap
        Frank and Wolfe's duality gap: abs(W y - t)**2 / 2 is at most so much above its least value.
    distance
        sqrt(2 gap): the answers are no farther, in Euclidean distance, from those of the exact projection.
    iterations
        How often the linear oracle was asked.
    complete
        Whether the tolerance was reached.

    """

    answers: NDArray[np.float64] = field(repr=False)
    histogram: NDArray[np.float64] = field(repr=False)
    total: float
    gap: float
    distance: float
    iterations: int
    complete: bool


def _no_answers() -> Iterator[object]:
    yield from no_arrays()
    yield from (3.0, [1.0] * 99, ["1"] * 4, [math.nan] * 4, [math.inf] * 4)


def _no_start() -> Iterator[object]:
    yield from (*_no_answers(), [-1.0] * 4, [True] * 4)


def project_answers(
    answers: Annotated[ArrayLike, Special(_no_answers)],
    workload: Asked,
    *,
    total: Annotated[float, TOTAL],
    body: Body = "simplex",
    tolerance: Tolerance = None,
    iterations: Iterations = 1000,
    start: Annotated[ArrayLike | None, Special(_no_start, optional=True)] = None,
) -> Projection:
    """Move noisy answers to the nearest that a histogram can have, and return that histogram.

    Guarantee
        Post-processing: as private as the answers and the total are. The answers returned are W y with y in the body,
        and their Euclidean distance from the exact projection is at most ``distance`` (up to the rounding of floats):
        f(y) = abs(W y - t)**2 / 2 is at most ``gap`` above its minimum, and for the projection p onto a convex set
        abs(W y - p)**2 / 2 <= f(y) - f(p). If the true answers a are in the body's image too, then
        abs(p - a)**2 <= <p - a, t - a>: what noise leads out of it is taken away (Nikolov, Talwar, Zhang 2013, lemma 9,
        without its factor 2).

    Parameters
    ----------
    answers
        One number for each query, finite.
    workload
        The queries. Its matrix is never formed: an iteration takes one product with it and one with its transpose.
    total
        How many records the histogram has: public, or noisy.
    body
        "simplex": histograms of ``total`` records and no negative cell. "capped": of ``total`` records at most. "ball":
        sums of abs(y) up to ``total``, the text's n B_1.
    tolerance
        Stop when the root mean square distance to the exact projection is certainly at most this, in the answers'
        unit; by default a thousandth of the root mean square answer. Below what the rounding of floats allows,
        ``complete`` is False.
    iterations
        Stop after so many in any case, and earlier if a hundred of them bring no progress.
    start
        A histogram to start from, for example that of an earlier projection. The fewer of its cells are not 0, the
        faster.

    Returns
    -------
    Projection
        ``answers``, ``histogram``, ``gap``, ``distance``, ``iterations``, ``complete``.

    Raises
    ------
    ParameterError
        An argument is not as above.

    Notes
    -----
    Frank and Wolfe's method, with corrections: the linear oracle is the least entry of W' (W y - t), or the largest
    absolute one, and returns several corners at a time; the columns of up to 62 of them come out of one pass, as
    the bits of the answers to a histogram of powers of 2. Over the corners found so far the weights are moved pairwise,
    away from the bad ones, with a matrix of corners by corners alone.

    References
    ----------
    Frank, Wolfe (1956); Lacoste-Julien, Jaggi (2015) for pairwise steps and full corrections; Nikolov, Talwar, Zhang
    (2013); Dwork, Roth (2014), algorithm 18.

    Examples
    --------
    >>> import dpfast as dpf
    >>> fitted = project_answers([4.0, 3.0, 9.0, 10.5], dpf.workloads.prefix(4), total=10, tolerance=1e-9)
    >>> fitted.answers.round(6).tolist(), fitted.histogram.round(6).tolist()
    ([3.5, 3.5, 9.0, 10.0], [3.5, 0.0, 5.5, 1.0])

    """
    WORKLOAD.read("workload", workload)
    allowed = f"one number for each of the {len(workload):,} queries"
    target = numbers_of(answers, "answers", [(len(workload),)], allowed).astype(np.float64)
    if not np.isfinite(target).all():
        raise ParameterError("answers", Words("with NaN or infinities"), "finite numbers")
    total = TOTAL.read("total", total)
    check_limits(body, tolerance, iterations)
    if tolerance is None:
        tolerance = 1e-3 * math.sqrt(float(np.square(target).mean()))
    corners = _Corners(workload, body)
    if start is not None:
        begin = checked_histogram(start, workload.shape, "start").astype(np.float64)
        if not np.isfinite(begin).all() or (body != "ball" and begin.min() < 0):
            raise ParameterError(
                "start", Words("with other cells"), 'of finite cells, none of them negative unless body is "ball"'
            )
        corners.begin(begin, total)
    return corners.fit(target, total, float(tolerance), int(iterations))


def check_limits(body: Body, tolerance: float | None, iterations: int) -> None:
    """Refuse limits that no projection can keep to."""
    BODY.read("body", body)
    TOLERANCE.read_optional("tolerance", tolerance)
    ITERATIONS.read("iterations", iterations)


class _Corners:
    """The corners of the body found so far: their columns, the products of these, and their weights."""

    def __init__(self, workload: Workload, body: Body) -> None:
        self._workload = workload
        self._signed = body == "ball"
        self._has_origin = body != "simplex"
        self.cells = np.empty(0, np.int64)
        self.signs = np.empty(0)
        self.weights = np.empty(0)
        self.gradient = np.empty(0)
        self._gram = np.empty((0, 0))
        self._offsets = np.zeros(1, np.int64)
        self._places = np.empty(0, np.int64)
        self._values = np.empty(0)

    def begin(self, start: NDArray[np.float64], total: float) -> None:
        """Take up the cells of a histogram, scaled to a total."""
        cells = np.flatnonzero(start)
        size = float(np.abs(start[cells]).sum())
        if size > 0 and total > 0:
            for place in range(0, cells.size, _BINARY_COLUMNS):
                some = cells[place : place + _BINARY_COLUMNS]
                self._take(some, np.sign(start[some]))
            self.weights = np.abs(start[cells]) * (total / size)
            self.gradient = np.zeros(cells.size)

    def fit(self, target: NDArray[np.float64], total: float, tolerance: float, iterations: int) -> Projection:
        """Find corners and their weights until the answers are near enough to the target."""
        goal = len(self._workload) * tolerance**2 / 2
        # What the rounding of floats leaves of a gap; for nothing nearer is there anything to be found.
        floor = _ROUNDING * total * float(np.abs(self._workload.transposed(np.abs(target))).max())
        gap, least, since, taken = math.inf, math.inf, 0, 0
        if not self.weights.size:
            slopes = self._workload.transposed(-target).reshape(-1)
            self.add(slopes, -math.inf)
            self.weights[np.argmin(self.gradient)] = total
        residual = self.point() - target
        for taken in range(1, iterations + 1):
            slopes = self._workload.transposed(residual).reshape(-1)
            self.look(slopes)
            promised = self.promised(slopes)
            gap = float(self.weights @ self.gradient) - total * promised
            if gap < _IMPROVED * least:
                least, since = gap, taken
            if gap <= max(goal, floor) or taken in (iterations, since + _PATIENCE):
                break
            mean = promised + gap / total
            found = self.add(slopes, mean - _WORTHWHILE * (mean - promised))
            moved = self.balance(max(0.1 * gap, 0.5 * goal))
            if not (found or moved):
                break  # what is left of the gap is the rounding of floats
            residual = self.point() - target
        gap = max(gap, 0.0)
        return Projection(target + residual, self.histogram(), total, gap, math.sqrt(2 * gap), taken, gap <= goal)

    def promised(self, slopes: NDArray[np.float64]) -> float:
        """Return the linear oracle's value for a body of one record."""
        least = float(-np.abs(slopes).max() if self._signed else slopes.min())
        return min(least, 0.0) if self._has_origin else least

    def look(self, slopes: NDArray[np.float64]) -> None:
        """Take the gradient at the corners from that at all cells."""
        self.gradient = self.signs * slopes[self.cells]

    def add(self, slopes: NDArray[np.float64], most: float) -> bool:
        """Drop corners without weight, take up new ones of a slope below ``most``; return whether there were any."""
        self._keep(np.flatnonzero((self.weights > 0) | (self.signs == 0)))
        cells = self._candidates(-np.abs(slopes) if self._signed else slopes, most)
        signs = np.where(slopes[cells] > 0, -1.0, 1.0) if self._signed else np.ones(cells.size)
        known = set(zip(self.cells.tolist(), self.signs.tolist(), strict=True))
        fresh = [pair not in known for pair in zip(cells.tolist(), signs.tolist(), strict=True)]
        cells, signs = cells[fresh], signs[fresh]
        if self._has_origin and 0.0 not in self.signs:
            cells, signs = np.append(cells, 0), np.append(signs, 0.0)  # the origin
        if cells.size:
            self._take(cells, signs)
        self.look(slopes)
        return cells.size > 0

    def _candidates(self, slopes: NDArray[np.float64], most: float) -> NDArray[np.int64]:
        """Return cells of the least slopes: the best of each of many blocks, so that they differ."""
        wanted = _BINARY_COLUMNS if self._workload.binary else _OTHER_COLUMNS
        length = -(-slopes.size // wanted)
        whole = slopes.size // length
        starts = np.arange(whole) * length
        cells = starts + slopes[: whole * length].reshape(whole, length).argmin(axis=1)
        if whole * length < slopes.size:
            cells = np.append(cells, whole * length + slopes[whole * length :].argmin())
        best = cells[np.argmin(slopes[cells])]
        return np.unique(np.append(cells[slopes[cells] < most], best))

    def _keep(self, kept: NDArray[np.int64]) -> None:
        if kept.size == self.cells.size:
            return
        lengths = np.diff(self._offsets)
        entries = np.repeat(np.isin(np.arange(self.cells.size), kept), lengths)
        self._places, self._values = self._places[entries], self._values[entries]
        self._offsets = np.concatenate([[0], np.cumsum(lengths[kept])])
        self.cells, self.signs, self.weights = self.cells[kept], self.signs[kept], self.weights[kept]
        self._gram = self._gram[np.ix_(kept, kept)]

    def _take(self, cells: NDArray[np.int64], signs: NDArray[np.float64]) -> None:
        from dpfast.kernels.histograms.projecting import multiply_columns  # not at the top: numba takes long to import

        before, after = self.cells.size, self.cells.size + cells.size
        columns = np.zeros((cells.size, len(self._workload)))
        corners = np.flatnonzero(signs)  # the origin has a column of zeros
        columns[corners] = self._columns(cells[corners]) * signs[corners, None]
        new = [np.flatnonzero(column) for column in columns]
        self._offsets = np.append(self._offsets, self._offsets[-1] + np.cumsum([places.size for places in new]))
        self._places = np.concatenate([self._places, *new])
        self._values = np.concatenate([self._values, *(c[p] for c, p in zip(columns, new, strict=True))])
        gram = np.empty((after, after))
        gram[:before, :before] = self._gram
        for row, column in enumerate(columns, start=before):
            multiply_columns(column, self._offsets, self._places, self._values, gram[row])
        gram[:before, before:] = gram[before:, :before].T
        self._gram = gram
        self.cells, self.signs = np.append(self.cells, cells), np.append(self.signs, signs)
        self.weights = np.append(self.weights, np.zeros(cells.size))

    def _columns(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return columns of the matrix as rows, by answering for histograms that have nothing elsewhere."""
        if self._workload.binary:
            bits = np.arange(cells.size)
            marked = np.zeros(self._workload.cells, np.int64)
            marked[cells] = np.int64(1) << bits
            answers = np.asarray(self._workload.answer(marked), np.int64)
            return (answers >> bits[:, None] & 1).astype(np.float64)
        columns = np.empty((cells.size, len(self._workload)))
        for column, cell in zip(columns, cells, strict=True):
            alone = np.zeros(self._workload.cells)
            alone[cell] = 1.0
            column[:] = self._workload.answer(alone)
        return columns

    def balance(self, tolerance: float) -> bool:
        """Move weight between the corners until their own gap is within a tolerance; return whether any was moved.

        Moves of pairs are fast, but where columns nearly depend on each other they take long: then the weights go to
        the minimum over all affine combinations instead, or as far towards it as none is negative (Wolfe 1976).
        """
        from dpfast.kernels.histograms.projecting import balance_weights

        most = _MOVES_PER_COLUMN * self.cells.size
        improved = False
        for _ in range(_CORRECTIONS):
            moves = balance_weights(self._gram, tolerance, most, self.weights, self.gradient)
            improved |= moves > 0
            if moves < most:
                break
            self._correct()
        return improved

    def _correct(self) -> None:
        """Minimise over affine combinations of the corners with weight, dropping those that would turn negative."""
        for _ in range(self.cells.size):
            some = np.flatnonzero(self.weights)
            system = np.ones((some.size + 1, some.size + 1))
            system[:-1, :-1] = self._gram[np.ix_(some, some)]
            system[range(some.size), range(some.size)] += _RIDGE * (1.0 + np.diagonal(self._gram)[some].mean())
            system[-1, -1] = 0.0
            step = np.linalg.solve(system, np.append(-self.gradient[some], 0.0))[:-1]
            falling = step < 0
            reach = np.min(self.weights[some][falling] / -step[falling], initial=np.inf)
            moved = self.weights[some] + min(reach, 1.0) * step
            if reach <= 1.0:
                moved[falling & (self.weights[some] <= -reach * step)] = 0.0
            moved = np.maximum(moved, 0.0)
            self.gradient = self.gradient + self._gram[:, some] @ (moved - self.weights[some])
            self.weights[some] = moved
            if reach > 1.0:
                return

    def point(self) -> NDArray[np.float64]:
        """Return the answers of the weighted corners."""
        from dpfast.kernels.histograms.projecting import combine_columns

        point = np.zeros(len(self._workload))
        combine_columns(self.weights, self._offsets, self._places, self._values, point)
        return point

    def histogram(self) -> NDArray[np.float64]:
        """Return the weights as a histogram."""
        histogram = np.zeros(self._workload.cells)
        np.add.at(histogram, self.cells, self.weights * self.signs)
        return histogram.reshape(self._workload.shape)
