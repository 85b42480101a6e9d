"""The analytic Gaussian mechanism for columns of (epsilon, delta): sigma / sensitivity, as small as can be proved.

Let mu = sensitivity / sigma, phi the normal density, M(x) = (1 - Phi(x)) / phi(x) Mills' ratio, c = epsilon / mu,
a = c - mu / 2 and b = c + mu / 2. As b**2 - a**2 = 2 epsilon, the delta of Balle and Wang (2018, theorem 8) is

    delta(mu) = Phi(-a) - exp(epsilon) Phi(-b) = phi(a) D,    D = M(a) - M(b),

so that ln delta = ln D - a**2 / 2 - ln sqrt(2 pi) neither overflows nor underflows, and d ln delta / d ln mu = mu / D.
Newton's method starts from the larger of two lower bounds, sqrt(2 L + 2 epsilon) - sqrt(2 L) with L = -ln delta
(concentrated privacy; Bun, Steinke 2016, proposition 1.3) and sqrt(2 pi) delta (epsilon = 0). What it finds is only
a proposal: a mu that is smaller by 2**-40 is tried, and its delta is bounded from above.

The bound, with u = 2**-53. mu is exact, c is rounded below epsilon / mu: then delta is that of a smaller epsilon, which
is larger. a and b are rounded once. M is completely monotone (the integral of exp(-x t - t**2 / 2) over t > 0), hence
log-convex, so |M'| / M <= 2.4 for x >= -2.3, and for x > 0 |x M'| <= M.

M(x) below LAST: its Taylor series at a node at most 1/16 away, sum of m_k t**k, t exact. Horner's rule in fused
    operations errs by u times the sum of (k + 1) |m_k| / 16**k, at most M + |M'| / 16 at node - 1/16; the rounded m_k
    by u M there, which is below 1.35 M(x): 3u in relative terms, and the remainder below u / 4. Beyond LAST the
    continued fraction 1 / (x + 1 / (x + 2 / (x + ...))) of LEVELS levels, whose error falls with x: also below
    u / 4 (tests bound both), and 2.3u for its operations. The rounding of x: 5.3u. So D errs by 10u (M(a) + M(b)).
D for mu <= 1/8: mu times the divided difference of the series, -m_1 q_1 - m_2 q_2 - ... with q_1 = 1, q_2 = 2t and
    q_(k+1) = 2t q_k - (t**2 - h**2) q_(k-1), where t = c - node and h = mu / 2 are exact. |q_k| <= k / 8**(k-1), and
    |m_2| <= 0.63 |m_1|, the rest falling faster, as c >= 0: the first term is more than 0.8 of the sum, and errors of
    q_k, at most 12u k / 8**k each and passed on less than 0.31-fold, matter little: 16u in relative terms.
ln delta: a**2 / 2 errs by 3u of itself, each logarithm by 2u (|ln| + 1) (logarithm.py), their sum by 3u of its parts.

The slack in the code, 16u (a**2 / 2 + |ln D| + |ln delta| + 4) and 24u (M(a) + M(b)) / D or 64u, is twice all of this.
A delta above 0.9 is taken for 0.9, so that a > -2: at a = -2, delta is above 0.95.
"""

from __future__ import annotations

import numpy as np

from dpfast.kernels.compilation import kernel
from dpfast.kernels.intrinsics import bits_of_f64, fused_multiply_add
from dpfast.kernels.logarithm import minus_log_f64

__all__ = ["FIRST", "LAST", "LEVELS", "NODES", "ORDER", "gaussian_ratios"]

FIRST, LAST, ORDER, LEVELS = -2.25, 10.0, 18, 12
NODES = int((LAST - FIRST) * 8) + 2
"""Nodes every 1/8 from FIRST on, of which each has ORDER coefficients."""

_ROOT_TWO_PI, _LN_ROOT_TWO_PI = 2.5066282746310002, 0.9189385332046728
_UP, _U = 1.0 + 2.0**-51, 2.0**-53
_SHIFT, _SHIFT_PLUS_ONE = 2.0**200, 201.0
_LARGEST_DELTA = 0.9


@kernel
def _log(x):
    """Return ln x for x from 2**-200 on, within 2u (|ln x| + 1)."""
    minus, _ = minus_log_f64(bits_of_f64(x * _SHIFT), _SHIFT_PLUS_ONE)
    return -minus


@kernel
def _node(x):
    """Return the number of the node beside x."""
    return min(max(int(np.rint((x - FIRST) * 8.0)), 0), NODES - 1)


@kernel
def _mills_ratio(x, series):
    """Return M(x) for x >= FIRST."""
    if x >= LAST:
        y = x
        for level in range(LEVELS, 0, -1):
            y = x + level / y
        return 1.0 / y
    node = _node(x)
    t = x - (FIRST + 0.125 * node)
    total = series[node, ORDER - 1]
    for k in range(ORDER - 2, -1, -1):
        total = fused_multiply_add(total, t, series[node, k])
    return total


@kernel
def _divided_difference(c, h, series):
    """Return (M(c - h) - M(c + h)) / (2 h) for small h and c from 0 to LAST."""
    node = _node(c)
    t = c - (FIRST + 0.125 * node)
    twice, product = 2.0 * t, (t - h) * (t + h)
    before, q, total = 0.0, 1.0, 0.0
    for k in range(1, ORDER):
        total -= series[node, k] * q
        before, q = q, fused_multiply_add(twice, q, -product * before)
    return total


@kernel
def _log_delta(mu, epsilon, series):
    """Return (ln delta, mu / D, slack), the slack infinite where nothing is proved."""
    h = 0.5 * mu
    c = epsilon / mu * (1.0 - 2.0**-52)
    a = c - h
    if a < FIRST + 0.0625:
        return 0.0, 1.0, np.inf
    if mu > 0.125:
        first, second = _mills_ratio(a, series), _mills_ratio(c + h, series)
        difference = first - second
        slack = 24.0 * (first + second) / difference
    elif c < LAST:
        difference, slack = mu * _divided_difference(c, h, series), 64.0
    else:
        difference, slack = mu / (c * c + 3.0), np.inf
    log_difference = _log(difference)
    square = 0.5 * a * a
    log_delta = log_difference - square - _LN_ROOT_TWO_PI
    slack = _U * (slack + 16.0 * (square + abs(log_difference) + abs(log_delta) + 4.0))
    return log_delta, mu / difference, slack


@kernel
def _proposal(epsilon, delta, target, series):
    """Return a mu whose ln delta is close to the target, by Newton's method in ln mu."""
    twice = -2.0 * target
    mu = max(2.0 * epsilon / (np.sqrt(twice + 2.0 * epsilon) + np.sqrt(twice)), _ROOT_TWO_PI * delta)
    for _ in range(64):
        log_delta, slope, _ = _log_delta(mu, epsilon, series)
        step = min(max((target - log_delta) / slope, -0.7), 0.7)
        mu *= (2.0 + step) / (2.0 - step)
        if abs(step) < 2.0**-30:
            break
    return mu


@kernel
def gaussian_ratios(epsilon, delta, series, ratios):
    """Set each row's sigma / sensitivity, rounded up; return how many could not be proved, which get infinity.

    Parameters
    ----------
    epsilon, delta
        float64, a pair a row: epsilon from 1e-18 to 10**6, delta from 1e-18 on; those up to 2**-53 below suffice too.
    series
        Taylor coefficients of Mills' ratio, NODES times ORDER.
    ratios
        The result, float64.

    """
    unproved = 0
    for i in range(epsilon.size):
        # A decimal that is charged may lie below its float.
        e, d = epsilon[i] * (1.0 - 2.0**-51), min(delta[i], _LARGEST_DELTA) * (1.0 - 2.0**-51)
        target = _log(d)
        mu = _proposal(e, d, target, series)
        ratios[i] = np.inf
        shrink = 2.0**-40
        while shrink < 1e-3:
            mu *= 1.0 - shrink
            log_delta, _, slack = _log_delta(mu, e, series)
            if log_delta + slack + 4.0 * _U * (abs(target) + 1.0) <= target:
                ratios[i] = _UP / mu
                break
            shrink *= 64.0
        unproved += 0 if ratios[i] < np.inf else 1
    return unproved


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
