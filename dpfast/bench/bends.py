"""Where the cost of a value bends, from times at several sizes."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

__all__ = ["told_bend"]


def told_bend(times: Mapping[int, Sequence[float]]) -> str:
    """Return in a sentence what a call costs however few values it has, and where a value costs least.

    Parameters
    ----------
    times
        By the number of values, the seconds of several rounds.

    Examples
    --------
    >>> told_bend({1_000: [3e-6], 10_000: [6e-6], 100_000: [50e-6], 1_000_000: [700e-6]})
    'a call takes 3 us at least; a value 0.5 ns at 100,000, twice that from 6,000 down, 1.40 times that at 1,000,000'

    """
    if len(times) < 2:
        return ""
    from dpfast.bench.showing import human

    medians = {size: statistics.median(seconds) for size, seconds in times.items()}
    fixed = min(medians.values())
    each = {size: seconds / size for size, seconds in medians.items()}
    best = min(each, key=lambda size: each[size])
    told = f"a call takes {human(fixed)} at least; a value {human(each[best])} at {best:,}"
    if (bend := fixed / each[best]) > min(times):
        told += f", twice that from {bend:,.0f} down"
    if (most := max(times)) > best:
        told += f", {each[most] / each[best]:.2f} times that at {most:,}"
    return told
