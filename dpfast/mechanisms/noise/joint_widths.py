"""How far several independent noises are off together: bounds of their weighted sum, narrower than a union bound.

Laplace noises. A Laplace variable of scale a has the characteristic function 1 / (1 + a**2 t**2). The product of such
factors with different scales is a sum of them, by partial fractions: the sum of a_i X_i has the density of Laplace
variables of scales a_i mixed with weights, the product over j of a_i**2 / (a_i**2 - a_j**2), that may be negative. So

    P(abs(sum of a_i X_i) > w) = sum over i of weight_i exp(-w / a_i),

for two scales (a**2 exp(-w / a) - b**2 exp(-w / b)) / (a**2 - b**2). Scales that are nearly equal are told apart by
making one a little larger. That never makes the tail smaller: X_i has the density of a mixture of uniform ones around
0, a larger scale is less peaked, and so is its sum with what is symmetric and has one peak (Birnbaum 1948, theorem 1).

The noise of integers is rounded. Each lies within `rounding` of a Laplace or Gaussian variable, and these are
independent. So the weighted sum is beyond w only where that of the variables is beyond w less all roundings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import Literal, NamedTuple

from dpfast.mechanisms.noise.half_widths import grid_of_integers, half_width

__all__ = ["Noise", "continuous_reach", "exceeding", "joint_reach", "rounding"]

#: Scales are made to differ by this factor at least.
_APART = 1 + 2.0**-14
#: More than the part of a tail that is lost in rounding where weights of both signs cancel. Of three scales as near as
#: that they are below 2**26, and each exponential is off by less than 2**-48 of itself.
_LOST = 2.0**-20
_MOST = 3
_STEPS = 100
_NORMAL, _ROOT = NormalDist(), math.sqrt(2.0)


class Noise(NamedTuple):
    """The noise of an integer, by its kind and scale, and what an integer counts in a sum.

    ``moved`` is by how much the sum may be rounded once more, in integers.
    """

    mechanism: Literal["laplace", "gaussian"]
    scale: float
    worth: float
    moved: float = 0.0

    def reach(self, miss: float) -> float:
        """Return a bound that holds with probability at least 1 - ``miss``."""
        return (half_width(self.mechanism, self.scale, miss) + self.moved) * self.worth

    @property
    def deviation(self) -> float:
        """The standard deviation, before rounding."""
        return self.scale * self.worth * (_ROOT if self.mechanism == "laplace" else 1.0)


def rounding(noise: Noise) -> float:
    """Return how far an integer's noise may lie from the continuous variable that it is made of, in its worth.

    A discrete Laplace variable is floor(b (E + c)) with a sign, E exponential, b c = b ln(2 / (1 + exp(-1 / b))), which
    is at most 1/2: within 1 - b c of b E. Others are rounded to the nearest multiple of a grid.
    """
    grid = grid_of_integers(noise.scale)
    if noise.mechanism == "gaussian" or grid > 1:
        return (grid / 2 + noise.moved) * noise.worth
    return (1 - noise.scale * math.log(2 / (1 + math.exp(-1 / noise.scale))) + noise.moved) * noise.worth


def exceeding(noises: Sequence[Noise], reach: float) -> float:
    """Return at least the probability that the sum of independent noises is beyond ``reach``, on either side.

    Parameters
    ----------
    noises
        Each with what it counts in the sum, whatever its sign: all are symmetric. Of two kinds, or more than three
        noises, nothing is known but 1.
    reach
        Of the sum.

    Examples
    --------
    >>> rows = [Noise("laplace", 1000.0, 1.0)] * 2
    >>> round(exceeding(rows, 4000.0), 3), round(2 * exceeding(rows[:1], 2000.0), 3)
    (0.055, 0.271)

    """
    if len(noises) == 1:
        return _beyond(noises[0], reach)
    left = reach - math.fsum(map(rounding, noises))
    if left <= 0 or not _is_known(noises):
        return 1.0
    if noises[0].mechanism == "gaussian":
        return min(math.erfc(left / _deviation(noises) / _ROOT) * (1 + _LOST), 1.0)
    tail = math.fsum(weight * math.exp(-left / scale) for weight, scale in _mixture(noises))
    return min(tail * (1 + _LOST), 1.0)


def joint_reach(noises: Sequence[Noise], miss: float) -> float:
    """Return a bound of the sum of independent noises that holds with probability at least 1 - ``miss``.

    It is never above the union bound, in which each noise has an equal part of the probability.

    Examples
    --------
    >>> counts = [Noise("laplace", 1000.0, 1.0)] * 2
    >>> round(joint_reach(counts, 0.05)), round(sum(noise.reach(0.025) for noise in counts))
    (4114, 7378)

    """
    if len(noises) == 1:
        return noises[0].reach(miss)
    each = math.fsum(noise.reach(miss / len(noises)) for noise in noises)
    return min(continuous_reach(noises, miss), each)


def continuous_reach(noises: Sequence[Noise], miss: float) -> float:
    """Return the same from the continuous variables and all that rounding may add; infinity where nothing is known.

    Of noises of the same scales whose worth grows in proportion to a number, this is a convex function of the number:
    the quantile of a vector's product with symmetric noise of a log-concave density is a norm of the vector (Lagoa, Li,
    Sznaier 2005, theorem 2.1), and what rounding may add grows in proportion.

    Examples
    --------
    >>> round(continuous_reach([Noise("gaussian", 30.0, 1.0), Noise("gaussian", 40.0, 1.0)], 0.05), 2)
    99.0

    """
    if not _is_known(noises):
        return math.inf
    rounded = math.fsum(map(rounding, noises))
    if noises[0].mechanism == "gaussian":
        return _NORMAL.inv_cdf(1 - miss / 2) * _deviation(noises) * (1 + _LOST) + rounded
    mixture, most = _mixture(noises), miss / (1 + _LOST)
    # The logarithm of the tail is concave, as that of the density is: from above its root Newton's steps stay there.
    reach = math.fsum(scale for _, scale in mixture) * math.log(len(noises) / most)
    for _ in range(_STEPS):
        tail = math.fsum(weight * math.exp(-reach / scale) for weight, scale in mixture)
        slope = math.fsum(weight / scale * math.exp(-reach / scale) for weight, scale in mixture)
        step = tail * math.log(tail / most) / slope
        if step > -1e-12 * reach:
            break
        reach += step
    return reach + rounded


def _beyond(noise: Noise, reach: float) -> float:
    """Return the same of one noise; exactly where the grid is 1."""
    whole, scale = math.floor(reach / noise.worth - noise.moved), noise.scale
    if whole < 0:
        return 1.0
    if grid_of_integers(scale) > 1:
        whole = max(whole - grid_of_integers(scale) // 2, 0)
        tail = math.exp(-whole / scale) if noise.mechanism == "laplace" else math.erfc(whole / scale / _ROOT)
    elif noise.mechanism == "laplace":
        tail = 2 * math.exp(-(whole + 1) / scale) / (1 + math.exp(-1 / scale))
    else:
        tail = math.erfc((whole + 0.5) / scale / math.sqrt(2.0))
    return min(tail * (1 + _LOST), 1.0)


def _is_known(noises: Sequence[Noise]) -> bool:
    return len(noises) <= _MOST and len({noise.mechanism for noise in noises}) == 1


def _deviation(noises: Iterable[Noise]) -> float:
    return math.hypot(*(noise.deviation for noise in noises))


def _mixture(noises: Iterable[Noise]) -> list[tuple[float, float]]:
    """Return the weights and the scales of the Laplace variables that a sum of them is mixed of."""
    scales: list[float] = []
    for scale in sorted(noise.scale * noise.worth for noise in noises):
        scales.append(max(scale, scales[-1] * _APART) if scales else scale)
    largest = scales[-1]
    squares, mixture = [(scale / largest) ** 2 for scale in scales], []
    for own, scale in zip(squares, scales, strict=True):
        weight = 1.0
        for other in squares:
            if other != own:
                weight *= own / (own - other)
        mixture.append((weight, scale))
    return mixture
