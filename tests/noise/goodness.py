"""Exact tests of goodness of fit: how often an event of known probability happened, and nothing asymptotic.

Each test names a family of events with exact probabilities under the claimed distribution. The number of times an
event happens in n independent samples is binomial, and the test rejects if one of them is in a tail of the binomial
distribution with probability at most ALPHA / (2 * events): by the union bound a false failure has probability at most
ALPHA, whatever the dependence between events. No chi-square limit and no table of critical values is involved.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom

#: The false-failure rate of one statistical test.
ALPHA = 1e-12


def tail_probability(happened: int, samples: int, probability: float) -> float:
    """Return the smaller of P(X <= happened) and P(X >= happened), X binomial."""
    return float(min(binom.cdf(happened, samples, probability), binom.sf(happened - 1, samples, probability)))


def rejects(events: list[tuple[str, int, int, float]], alpha: float = ALPHA) -> str:
    """Return a description of the least likely event if the family is rejected, else an empty string.

    Each event is (name, how often it happened, of how many samples, its probability).
    """
    assert events
    worst = min(events, key=lambda event: tail_probability(*event[1:]))
    name, happened, samples, probability = worst
    if tail_probability(happened, samples, probability) > alpha / (2 * len(events)):
        return ""
    deviations = (happened - samples * probability) / math.sqrt(samples * probability * (1 - probability) + 1e-300)
    return f"{name}: {happened} of {samples}, expected {samples * probability:.1f}, {deviations:+.1f} deviations"


def tail_events(values: np.ndarray, thresholds, tail) -> list[tuple[str, int, int, float]]:
    """Return the events ``value >= t`` for every threshold t, with probability ``tail(t)``."""
    ordered = np.sort(values)
    below = np.searchsorted(ordered, thresholds, side="left")
    return [
        (f"value >= {t}", values.size - int(count), values.size, tail(t))
        for t, count in zip(thresholds, below, strict=True)
    ]


def joint_events(one, other, thresholds, tail) -> list[tuple[str, int, int, float]]:
    """Return the events ``one >= s and other >= t`` of independent values with the same tail."""
    events = []
    for s in thresholds:
        for t in thresholds:
            happened = int(np.count_nonzero((one >= s) & (other >= t)))
            events.append((f"one >= {s} and other >= {t}", happened, one.size, tail(s) * tail(t)))
    return events
