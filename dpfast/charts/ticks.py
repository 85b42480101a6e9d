"""Round numbers along an axis."""

from __future__ import annotations

import math

__all__ = ["power_ticks", "round_ticks", "whole_ticks"]


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return at most so many round numbers, equally far from each other, of which the ends enclose both numbers.

    Examples
    --------
    >>> round_ticks(0.0, 87.0), round_ticks(-3.0, 11.0), round_ticks(5.0, 5.0)
    ([0.0, 20.0, 40.0, 60.0, 80.0, 100.0], [-5.0, 0.0, 5.0, 10.0, 15.0], [3.0, 4.0, 5.0, 6.0, 7.0])

    """
    if not high > low:
        reach = abs(low) / 4 or 1.0
        low, high = low - reach, high + reach
    step = 10.0 ** math.floor(math.log10((high - low) / (most - 1)))
    for times in (1, 2, 2.5, 5, 10, 20, 25, 50):
        first, last = math.floor(low / (step * times)), math.ceil(high / (step * times))
        if last - first < most:
            step *= times
            break
    digits = max(0, 2 - math.floor(math.log10(step)))
    return [round(place * step, digits) for place in range(first, last + 1)]


def whole_ticks(last: int, most: int = 8) -> list[int] | None:
    """Return the whole numbers from 0 on, or None where there are so many that every round number is whole.

    Examples
    --------
    >>> whole_ticks(1), whole_ticks(3), whole_ticks(1000)
    ([0, 1], [0, 1, 2, 3], None)

    """
    return list(range(last + 1)) if last <= most else None


def power_ticks(low: float, high: float) -> list[float]:
    """Return 0 and the powers of ten between two numbers, of both signs.

    Examples
    --------
    >>> power_ticks(-5.0, 1200.0)
    [-1.0, 0.0, 1.0, 10.0, 100.0, 1000.0]

    """
    most = math.ceil(math.log10(max(abs(low), abs(high), 1.0)))
    powers = [10.0**power for power in range(most + 1)]
    return [tick for tick in (*(-power for power in powers[::-1]), 0.0, *powers) if low <= tick <= high]
