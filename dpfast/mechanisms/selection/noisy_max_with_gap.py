"""Noisy max with the gap to the runner-up, which costs nothing beside the winner."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Threads
from dpfast.columns import borrow_scale
from dpfast.columns.declarations import SCALE, PerRow, Scale
from dpfast.columns.widening import widen
from dpfast.kernels.selection.argmax import EXPONENTIAL
from dpfast.kernels.selection.gaps import OPEN, round_gaps
from dpfast.mechanisms.parameters import EpsilonPerRow, Monotonic
from dpfast.mechanisms.selection.argmax import Slope, longer_words, slope_of, slopes, tails
from dpfast.mechanisms.selection.candidates import Candidates, borrow_candidates
from dpfast.mechanisms.selection.exact_argmax import exact_gap
from dpfast.mechanisms.selection.kinds import ArrayRow, ArrayRows, CandidateValues, Groups, Offsets, Scores
from dpfast.mechanisms.selection.ranking import rank_rows
from dpfast.mechanisms.selection.winners import give_column, give_places, read_values
from dpfast.randomness import Keystream, Random, random_source

__all__ = ["gap_steps", "noisy_max_with_gap"]

_FINENESS = 10

Grid: TypeAlias = Annotated[PerRow | None, replace(SCALE, optional=True)]


@overload
def noisy_max_with_gap(
    scores: ArrayRow,
    epsilon: EpsilonPerRow,
    sensitivity: Scale = 1.0,
    monotonic: Monotonic = False,
    *,
    grid: Grid = None,
    candidates: None = None,
    offsets: Offsets = None,
    groups: Groups = None,
    random: Random = None,
    threads: Threads = None,
) -> tuple[int, float]: ...
@overload
def noisy_max_with_gap(
    scores: ArrayRows,
    epsilon: EpsilonPerRow,
    sensitivity: Scale = 1.0,
    monotonic: Monotonic = False,
    *,
    grid: Grid = None,
    candidates: None = None,
    offsets: Offsets = None,
    groups: Groups = None,
    random: Random = None,
    threads: Threads = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
# Numbers for one row, columns for several; candidates are of any type.
@overload
def noisy_max_with_gap(
    scores: Scores,
    epsilon: EpsilonPerRow,
    sensitivity: Scale = 1.0,
    monotonic: Monotonic = False,
    *,
    grid: Grid = None,
    candidates: CandidateValues = None,
    offsets: Offsets = None,
    groups: Groups = None,
    random: Random = None,
    threads: Threads = None,
) -> tuple[Any, Any]: ...
def noisy_max_with_gap(
    scores: Scores,
    epsilon: EpsilonPerRow,
    sensitivity: Scale = 1.0,
    monotonic: Monotonic = False,
    *,
    grid: Grid = None,
    candidates: CandidateValues = None,
    offsets: Offsets = None,
    groups: Groups = None,
    random: Random = None,
    threads: Threads = None,
) -> tuple[Any, Any]:
    """Select the candidate with the largest noisy score, and return by how much it leads.

    Guarantee
        The winner is that of `permute_and_flip`: the argmax of scores[i] + E[i] / a, E standard exponential noise,
        a = epsilon / (2 * sensitivity) rounded down to a float64. The gap is this noisy score less the second largest,
        exactly, rounded to a multiple of ``grid``. Both together are (epsilon, 0)-differentially private if no score
        changes by more than ``sensitivity``; every row is a selection of its own and costs its own epsilon. It is no
        mechanism of bounded range: charge it as pure epsilon (rho = epsilon * tanh(epsilon / 2)), without the
        discount of `exponential`. The winner's noisy score itself may not be published, nor may the gap be added to
        anything that is private. The candidates, the null mask, the shape and ``grid`` are public.

        Proof. Scores in units of 1 / a, called q; f(x) = exp(-x) for x >= 0, F its integral. Candidate i wins by a
        gap of g over candidate j with density, c = q[i] - g,

            p[j] = integral over m >= c of exp(-(m - c)) w[j](m) dm,
            w[j](m) = f(m - q[j]) * product of F(m - q[l]) over l not i, j,

        m being the runner-up's noisy score; the release has the density p = sum of p[j]. As every F rises,
        exp(m) w[j](m) does too, so that p[j] >= w[j](c) / 2. Now dp/dq[i] = p - sum of w[j](c) and, by parts,
        dp/dq[j] = w[j](c) - p[j]: the first lies between -p and p, and the second between -p[j] and p[j]. So ln p
        moves at most at rate 1 with q[i] and at most at rate 1 with all others together, by 2 a sensitivity = epsilon
        in all. If all scores move in one direction: the derivatives of ln p add up to 0 (a shift of all changes
        nothing), those of one sign therefore to at most 1, and a = epsilon / sensitivity has the same guarantee.
        Rounding is post-processing.

    Parameters
    ----------
    scores, epsilon, sensitivity, monotonic, candidates, offsets, groups, random, threads
        As for `exponential`.
    grid
        The gap is rounded to a multiple of this positive number (the nearest one): one number, or a column with one
        for each row. None for 2**(floor(log2(1 / a)) - 10), about a thousandth of the noise.

    Returns
    -------
    tuple
        (winner, gap): an int and a float for one column; for many rows the winners as `exponential` gives them, and
        a float64 gap for each, in the same kind of column. ``candidates`` changes the winners alone. A row of one
        candidate has no gap, and one of none no winner: null in columns of Polars or PyArrow, an error for others.

    Raises
    ------
    ParameterError
        ``grid`` is no positive number from 2**-960 to 2**960, or as for `exponential`.
    ColumnError, DataError
        As for `exponential`; also fewer than two candidates where the result can hold no null.

    Notes
    -----
    The gap's mean is near the difference of the two best scores where that is many times 1 / a, and above it else:
    among equals it is 1 / a, the winner having been chosen for its noise. A float64 holds the multiple of ``grid``
    rounded once more where that has more than 53 bits.

    References
    ----------
    Ding, Wang, Zhang, Kifer (2019), for Laplace noise, from whom the free gap is. McKenna, Sheldon (2020) for the
    winner.

    Examples
    --------
    >>> winner, gap = noisy_max_with_gap([3, 14976, 10683], epsilon=1.0)
    >>> winner, abs(gap - (14976 - 10683)) < 150
    (1, True)
    >>> import polars as pl
    >>> winners, gaps = noisy_max_with_gap(pl.Series([[5, 9000], [7]]), epsilon=1.0, grid=1000)
    >>> winners.to_list(), gaps.to_list()
    ([1, 0], [9000.0, None])

    """
    borrowed = borrow_candidates(scores, offsets, groups)
    values = None if candidates is None else read_values(candidates, borrowed)
    borrowed.refuse_few(2)
    if values is not None:
        borrowed.refuse_few(1, values.has_nulls)
    slope = slopes(epsilon, sensitivity, monotonic, borrowed.rows)
    step = _default_grid(slope) if grid is None else borrow_scale(grid, borrowed.rows, "grid")
    keystream = Keystream(random_source(random).key())
    steps = np.full(borrowed.rows, float(OPEN))
    first_two, words = rank_rows(borrowed, slope, EXPONENTIAL, 2, keystream, threads, gaps=(step, steps))
    winners, pairs = first_two[:, 0].copy(), first_two[:, 1] >= 0
    steps[~pairs] = 0
    gaps = steps * np.asarray(step)
    rows = np.flatnonzero(steps == OPEN)
    if rows.size:
        gaps[rows] = gap_steps(borrowed, slope, step, rows, first_two[rows], words[rows], keystream)
    chosen = give_places(borrowed, winners) if values is None else values.take(borrowed, winners)
    if borrowed.shape == "vector":
        return chosen, gaps.item()
    return chosen, give_column(borrowed, gaps, pairs)


def _default_grid(slope: Slope) -> Slope:
    """Return 2**(floor(log2(1 / a)) - 10), at least 2**-960 and at most 2**960."""
    if isinstance(slope, float):
        mantissa, exponent = math.frexp(slope)
        return math.ldexp(1.0, min(max((mantissa == 0.5) - exponent - _FINENESS, -960), 960))
    mantissas, powers = np.frexp(slope)
    exponents = np.clip((mantissas == 0.5) - powers - _FINENESS, -960, 960)
    grid: NDArray[np.float64] = np.exp2(exponents.astype(np.float64))
    return grid


def gap_steps(
    candidates: Candidates,
    slope: Slope,
    grid: Slope,
    rows: NDArray[np.int64],
    first_two: NDArray[np.int64],
    words: NDArray[np.uint32],
    keystream: Keystream,
    *,
    refine_all: bool = False,
) -> NDArray[np.float64]:
    """Return the gaps of some rows between their two best candidates, on the grid.

    Parameters
    ----------
    candidates, slope, grid
        The scores, what they are multiplied by, and the grid: one number, or one for each row.
    rows, first_two, words
        The rows in ascending order, their two best candidates, counted over all rows, and the words of these.
    keystream
        The words of this call.
    refine_all
        Treat every gap as open: the slow, exact path, which must agree with the fast one.

    """
    a, step = _of_rows(slope, rows), _of_rows(grid, rows)
    best, second = (candidates.take(np.ascontiguousarray(first_two[:, j])) for j in (0, 1))
    best_words, second_words = (np.ascontiguousarray(words[:, j]) for j in (0, 1))
    steps = np.full(rows.size, OPEN, np.int64)
    if not refine_all:
        round_gaps(best, best_words, second, second_words, a, step, EXPONENTIAL, steps)
        left = np.flatnonzero(steps == OPEN)
        if left.size:
            longer = [longer_words(keystream, first_two[left, j], words[left, j]) for j in (0, 1)]
            pairs = widen(best[left]), longer[0], widen(second[left]), longer[1]
            again = np.full(left.size, OPEN, np.int64)
            round_gaps(*pairs, _of_rows(a, left), _of_rows(step, left), EXPONENTIAL, again)
            steps[left] = again
    gaps: NDArray[np.float64] = steps * np.asarray(step)
    for i in np.flatnonzero(steps == OPEN).tolist():
        row = int(rows[i])
        own = Fraction(step if isinstance(step, float) else float(step[i]))
        difference = Fraction(best[i].item()) - Fraction(second[i].item())
        signs, bits = tails(keystream, first_two[i], words[i])
        exact = exact_gap(EXPONENTIAL, difference / own, Fraction(slope_of(slope, row)) * own, signs, bits)
        gaps[i] = _as_float(exact * own)
    return gaps


def _of_rows(parameter: Slope, rows: NDArray[np.int64]) -> Slope:
    """Return the parameter of some rows: itself if it is a number."""
    return parameter if isinstance(parameter, float) else parameter[rows]


def _as_float(x: Fraction) -> float:
    """Return the nearest float, the largest one for numbers above it."""
    try:
        return float(x)
    except OverflowError:
        return float(np.finfo(np.float64).max)
