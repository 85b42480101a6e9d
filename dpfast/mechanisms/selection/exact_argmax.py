"""The winner of a selection in ball arithmetic, for the few rows that a kernel leaves open.

Precision and bits grow until one key is certainly the largest. There is no cap: stopping early would
cost a delta. Two keys are equal with probability zero, so that the loop ends with probability one.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from dpfast.exact.balls import ball, working_precision
from dpfast.kernels.selection.argmax import EXPONENTIAL, GUMBEL, LAPLACE
from dpfast.mechanisms.noise.exact import Bits, decided, magnitude, uniform_ball, unique_floor

__all__ = ["exact_order", "exact_winner", "noise_ball"]

_GUARD_BITS = 64


def noise_ball(kind: int, leading: int, count: int, negative: bool) -> arb | None:
    """Return the ball of the noise of all numbers in [leading, leading + 1] * 2**-count, None if it is unbounded.

    Parameters
    ----------
    kind
        GUMBEL: -ln(-ln(1 - V)). EXPONENTIAL: -ln U. LAPLACE: -ln U, or ln U if ``negative``.
    leading, count
        The first bits of V or U, as an integer, and how many.
    negative
        The word's sign, which only LAPLACE has a use for.

    """
    if not leading or (kind == GUMBEL and leading + 1 == 1 << count):
        return None
    cell = uniform_ball(leading, count)
    if kind == GUMBEL:
        return -(-(-cell).log1p()).log()
    assert kind in (EXPONENTIAL, LAPLACE)
    return cell.log() if kind == LAPLACE and negative else -cell.log()


def exact_winner(kind: int, gaps: Sequence[Fraction], signs: Sequence[bool], bits: Sequence[Bits]) -> int:
    """Return which candidate has the largest key ``gap + noise``.

    Parameters
    ----------
    kind
        The noise: GUMBEL, EXPONENTIAL or LAPLACE.
    gaps
        Each candidate's a * score, less the same number for all.
    signs, bits
        Each candidate's sign, and the bits of its V or U.

    """
    left = list(range(len(gaps)))

    def winner(count: int) -> int | None:
        left[:] = _contenders(kind, left, count, gaps, signs, bits)
        return left[0] if len(left) == 1 else None

    return decided(winner, min(string.known for string in bits), magnitude(*gaps))


def _contenders(
    kind: int, left: Sequence[int], count: int, gaps: Sequence[Fraction], signs: Sequence[bool], bits: Sequence[Bits]
) -> list[int]:
    """Return which of those left may still win, judged by so many bits: all but those certainly below another."""
    keys = _keys(kind, left, count, gaps, signs, bits)
    # A candidate that is below any other is below the one with the largest lower end.
    best: arb | None = None
    for key in keys.values():
        if key is not None and key.is_finite() and (best is None or key.lower() > best.lower()):
            best = key
    return [i for i, key in keys.items() if key is None or best is None or not key < best]


def exact_order(kind: int, gaps: Sequence[Fraction], signs: Sequence[bool], bits: Sequence[Bits]) -> list[int]:
    """Return the candidates in the order of their keys ``gap + noise``, the largest first; see `exact_winner`."""
    order: list[int] = []
    size = magnitude(*gaps)
    # Runs of candidates whose order among each other is open, last run first, and how many bits to judge them by.
    runs = [(list(range(len(gaps))), min(string.known for string in bits))]
    while runs:
        run, count = runs.pop()
        if len(run) == 1:
            order += run
            continue
        with working_precision(count + _GUARD_BITS + size):
            keys = _keys(kind, run, count, gaps, signs, bits)
            runs += [(part, count + 64) for part in reversed(_separated(run, keys))]
    return order


def _separated(run: Sequence[int], keys: dict[int, arb | None]) -> list[list[int]]:
    """Return a run in parts, each certainly above the next; one part if a key is unbounded."""
    balls = [(i, key) for i, key in keys.items() if key is not None]
    if len(balls) < len(run):
        return [list(run)]
    balls.sort(key=lambda pair: pair[1].mid(), reverse=True)
    order = [i for i, _ in balls]
    # The ball of the largest key from each place on.
    largest = [key for _, key in balls]
    for k in range(len(largest) - 2, -1, -1):
        largest[k] = largest[k].max(largest[k + 1])
    parts, smallest = [[order[0]]], balls[0][1]
    for k in range(1, len(order)):
        if largest[k] < smallest:
            parts.append([])
        parts[-1].append(order[k])
        smallest = smallest.min(balls[k][1])
    return parts


def _keys(
    kind: int, left: Sequence[int], count: int, gaps: Sequence[Fraction], signs: Sequence[bool], bits: Sequence[Bits]
) -> dict[int, arb | None]:
    """Return the balls of the keys of those left, None for unbounded ones, from so many bits."""
    keys: dict[int, arb | None] = {}
    for i in left:
        noise = noise_ball(kind, bits[i].leading(count), count, signs[i])
        keys[i] = None if noise is None else noise + ball(gaps[i])
    return keys


def exact_gap(kind: int, difference: Fraction, slope: Fraction, signs: Sequence[bool], bits: Sequence[Bits]) -> int:
    """Return ``difference + (noise of the first - noise of the second) / slope``, rounded to the nearest integer."""

    def rounded(count: int) -> int | None:
        first, second = (noise_ball(kind, bits[i].leading(count), count, signs[i]) for i in (0, 1))
        if first is None or second is None:
            return None
        return unique_floor(ball(difference) + (first - second) / ball(slope) + arb("0.5"))

    return decided(rounded, min(string.known for string in bits), magnitude(difference, 1 / slope))
