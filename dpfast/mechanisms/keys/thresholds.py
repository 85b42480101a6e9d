"""Which keys may be shown where a noisy number decides: the threshold that hides what one unit alone holds.

Every key found in the data has a whole number (of units, of rows, of weight) that gets noise, and is shown with
it where the noisy number reaches a threshold. Keys that no unit holds are not looked at, which is why a threshold
is needed: a key that is shown reveals that somebody holds it.

Proof. Let D' have one unit more than D, which alone holds j keys; K are the keys of D, N those j. Noise is
independent, so that with probability 1 - d no key in N is shown, and given that, what is shown of D' has the law of
what is shown of K alone, G'. What is shown of D has the law of G, and G and G' are the noise mechanism on neighbouring
numbers: (epsilon, dn)-indistinguishable. So for every set S of outputs

    P(M(D') in S) <= d + (1 - d) min(1, e**epsilon P(M(D) in S) + dn),
    P(M(D) in S)  <= min(1, e**epsilon P(G' in S) + dn) and P(M(D') in S) >= (1 - d) P(G' in S),

both of which give P(in S) <= e**epsilon P(in S) + 1 - (1 - d)(1 - dn): just what the noise mechanism and a
mechanism that is (0, d)-private give together, for every epsilon at once. The charge is therefore these two events. For
two neighbours that exchange a unit, keys held by both of the exchanged units and nobody else belong to K, and
each side has a d of its own: the larger of P(in S) - e**epsilon P(in S) is, by the same lines, concave and piecewise
linear in P(G' in S), and so at most 1 - (1 - max d)(1 - dn): one side's keys are paid for, not both.

The idea is of Korolova, Kenthapadi, Mishra, Ntoulas (2009); the d of several keys as a product, and of weighted ones as
a maximum over their number, is of Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin (2020).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from flint import arb

from dpfast.errors import ParameterError
from dpfast.exact.balls import ball, working_precision
from dpfast.mechanisms.noise.half_widths import grid_of_integers
from dpfast.mechanisms.noise.integer_noise import IntegerNoise

__all__ = ["Lonely", "chance_of_showing", "least_threshold", "refuse_no_delta"]

#: Beyond it neither a sum of weights nor a count comes.
_LARGEST_THRESHOLD = 2**61


@dataclass(frozen=True)
class Lonely:
    """Keys that one unit may hold alone: at most so many, and each of at most this number before the noise."""

    keys: int
    number: int


def chance_of_showing(noise: IntegerNoise, threshold: int, lonely: Lonely) -> arb:
    """Return the chance that any lonely key is shown, as a ball; to be called under a working precision.

    Notes
    -----
    The noisy number lies on a grid g of the noise's choosing. Gaussian noise, and Laplace noise where g > 1, is
    rounded to it, so that the threshold t is reached from t - g / 2 on. Discrete Laplace noise has P(K >= h) =
    q**h / (1 + q) for h >= 1, q = exp(-1 / b). The keys' noises are independent: 1 - (1 - p)**keys.

    """
    grid = grid_of_integers(noise.scale)
    gap, scale = threshold - lonely.number, ball(noise.scale)
    if noise.mechanism == "gaussian":
        one = (ball(gap - Fraction(grid, 2)) / (scale * arb(2).sqrt())).erfc() / 2
    elif gap < grid:
        one = arb(1)
    elif grid == 1:
        one = (-ball(gap) / scale).exp() / (1 + (-1 / scale).exp())
    else:
        one = (-ball(gap - Fraction(grid, 2)) / scale).exp() / 2
    if not one < 1:
        return arb(1)
    return -(lonely.keys * (-one).log1p()).expm1()


def refuse_no_delta(delta: Fraction) -> None:
    """Raise if delta is 0."""
    if not delta > 0:
        raise ParameterError(
            "delta", float(delta), "above 0 to select keys privately", "write for example delta=1e-7, or give keys="
        )


def least_threshold(noise: IntegerNoise, lonely: Sequence[Lonely], delta: Fraction) -> int:
    """Return the least threshold, rounded up, that a unit's lonely keys reach with probability at most delta.

    Guarantee
        Proved in ball arithmetic for every entry of ``lonely``, one of which describes whatever a unit may hold alone.
        No whole number below is proved where the noise's scale is below 2**18; where it is wider, none that is lower
        by 2**-17 of the scale.

    Parameters
    ----------
    noise
        What the numbers get.
    lonely
        What one unit may hold alone: the worst of every case.
    delta
        Above 0.

    Raises
    ------
    ParameterError
        delta is 0, or the threshold so high that no number could reach it.

    Examples
    --------
    >>> from dpfast.mechanisms.noise.integer_noise import laplace_of_scale
    >>> least_threshold(laplace_of_scale(1.0, 1), [Lonely(1, 1)], Fraction(1, 100_000))
    13

    """
    refuse_no_delta(delta)
    grid, most = grid_of_integers(noise.scale), ball(delta)

    def guess(case: Lonely) -> float:
        rare = min(max(float(delta / case.keys), 1e-300), 0.5)
        if noise.mechanism == "gaussian":
            far = -NormalDist().inv_cdf(rare)
        else:
            far = -math.log(rare) - math.log1p(math.exp(-1 / noise.scale))
        return case.number + noise.scale * far

    worst = max(lonely, key=guess)
    if not guess(worst) < _LARGEST_THRESHOLD:
        raise ParameterError("delta", float(delta), "larger: no number would reach the threshold", "raise epsilon")
    # A thousandth of a percent of the noise is near enough to the least.
    width = max(1, int(noise.scale / grid) >> 17)
    with working_precision():

        def suffices(place: int, *cases: Lonely) -> bool:
            return all(bool(chance_of_showing(noise, place * grid, case) <= most) for case in cases)

        high, step = math.ceil(guess(worst) / grid) + 1, width
        while not suffices(high, worst):
            high, step = high + step, 2 * step
        low, step = high - width, width
        while suffices(low, worst):
            high, low, step = low, low - 2 * step, 2 * step
        while high - low > width:
            middle = (low + high) // 2
            low, high = (low, middle) if suffices(middle, worst) else (middle, high)
        # A float guessed which case is the worst: here each is held to the bound.
        while not suffices(high, *lonely):
            high += width
    return high * grid
