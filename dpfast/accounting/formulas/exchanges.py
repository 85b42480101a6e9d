"""Parameters of `dp_accounting`'s events: ratios of noise to sensitivity, rounded to the side of less noise."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpfast.accounting.events import DiscreteLaplace, Event, Gaussian, Laplace, RandomizedResponse
from dpfast.errors import ParameterError
from dpfast.exact.balls import as_written, ball, exact_lower, float_above, round_down, round_up, working_precision

__all__ = ["Exchange", "lie_of", "multiplier_of", "odds_of", "parameter_of", "scale_of"]


@dataclass(frozen=True)
class Exchange:
    """How an event is written in `dp_accounting`, and read from there."""

    #: The name of their class.
    name: str
    #: What their class takes, of one of our events; the other argument turns events within it into theirs.
    there: Callable[[Any, Callable[[Event], Any]], tuple[Any, ...]]
    #: Our event of one of theirs, or None where we have none; the other argument turns events within it into ours.
    back: Callable[[Any, Callable[[Any], Event]], Event | None]
    #: What messages call theirs, where that is more than its name.
    said: str = ""


def multiplier_of(event: Laplace | Gaussian) -> float:
    """Return scale / sensitivity, rounded down."""
    ratio = round_down(Fraction(event.scale) / Fraction(event.sensitivity))
    if not 0.0 < ratio < sys.float_info.max:
        raise ParameterError("event", ratio, "of a scale / sensitivity that a float can hold")
    return ratio


def lie_of(event: RandomizedResponse) -> float:
    """Return the probability of a uniform answer, k / (exp(epsilon) + k - 1), rounded down."""
    with working_precision():
        k = event.categories
        lie = round_down(exact_lower(k / (ball(as_written(event.epsilon)).exp() + (k - 1))))
    if lie <= 0.0:
        raise ParameterError("event", event.epsilon, "of an epsilon below 700, so that some answers are lies")
    return lie


def parameter_of(event: DiscreteLaplace) -> float:
    """Return 1 / scale, rounded up."""
    return round_up(1 / Fraction(event.scale))


def scale_of(parameter: float) -> float:
    """Return the scale 1 / parameter, rounded down."""
    if not 0.0 < parameter < math.inf:
        raise ParameterError("noise_parameter", parameter, "above 0 and finite")
    return round_down(1 / Fraction(float(parameter)))


def odds_of(lie: float, categories: int) -> float:
    """Return epsilon = ln(1 + k (1 - p) / p) at the probability p of a uniform answer, rounded up."""
    if not 0.0 < lie < 1.0:
        raise ParameterError("noise_parameter", lie, "above 0 and below 1")
    with working_precision():
        p = ball(lie)
        return float_above((categories * (1 - p) / p).log1p())
