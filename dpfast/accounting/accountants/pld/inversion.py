"""The curve delta(epsilon) of a composition, between two bounds, from its transform on one line.

For a loss L with transform M and any tilt t > 0 (inverse Laplace transform of the payoff 1 - exp(epsilon - L))

    delta(epsilon) = E max(0, 1 - exp(epsilon - L))
                   = 1/(2 pi) * integral over u of M(z) exp(-z epsilon) / (z (z + 1)),   z = t + iu,

an exact identity: losses are not rounded to a grid. It is summed by the trapezoidal rule with step 2 pi / W:

- *Wrap-around.* By Poisson's formula the infinite sum is delta(epsilon) plus the terms
  delta(epsilon + mW) exp(tmW), m != 0: none is negative, and Chernoff bounds at a larger and at a smaller tilt
  bound their sum. W is chosen to make it negligible.
- *Truncation.* abs(M(z)) <= M(t) for every z, so frequencies beyond U add at most
  M(t) exp(-t epsilon) / (pi U), whatever the mechanisms. A Gaussian of squared mean m makes that exp(-m U^2 / 2)
  times smaller.
  Where all losses are multiples of a step (samples), the integrand is periodic but for the payoff, whose
  transform is then a geometric sum: one period is exact and nothing is cut off.
- *Smoothing.* Where neither is so and too much would be cut off, the payoff f is smoothed: k is the density of a sum
  of m uniform numbers, of support [-h, h], whose transform (sinh(zh/m) / (zh/m))^m fades with the m-th power of the
  frequency. As f does not fall, delta(epsilon + h) <= E (f * k)(L - epsilon) <= delta(epsilon - h).
- *Arithmetic.* Each value of M carries a bound of its relative error (`composition`); the sum adds its own.

The tilt is where the integrand is least at u = 0 (the saddle point): there all errors are relative to
M(t) exp(-t epsilon), which is about delta itself, so a delta of 1e-30 is as accurate as one of 0.1. This is the
tilted transform that "shifted FFT" accountants use, without their grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from dpfast.accounting.accountants.pld.composition import Composition
from dpfast.accounting.formulas.transforms import ROUNDING, Array
from dpfast.accounting.work import spend

__all__ = ["Contour", "delta_bounds", "epsilon_bounds"]

Wanted = Literal["lower", "upper", "both"]

_COARSE_TILTS = np.logspace(-9.0, 18.0, 109)
_MOST_FREQUENCIES = 2**18
# Wrap-around this small relative to the curve is nothing.
_LOG_WRAPPED = -16.0
_LONGEST_PERIOD = 2**22
_SOLVED = 1e-6
_SPREADS = np.logspace(-1.5, 2.0, 12)
# The m of smoothing, and the frequency, in m / h, at which its transform has faded.
_UNIFORMS, _FADED = 6, 2.0
# What a contour may err by, relatively, that only finds about where to look.
_ROUGH = 1e-2


def _payoff(tilts: Array) -> Array:
    """Return ln max over x of exp(-tilt x)(1 - exp(-x)): delta(epsilon) <= M(t) exp(-t epsilon + this)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = np.where(tilts > 0.0, tilts * np.log(tilts / (1.0 + tilts)), 0.0) - np.log1p(tilts)
    # For large tilts both terms are rounded: ln(t / (1 + t)) is wrong by a rounding, times the tilt.
    return np.asarray(exact + 4.0 * ROUNDING * (1.0 + tilts))


def _best_tilt(objective: Callable[[Array], Array]) -> float:
    """Return about where a convex function of the tilt is least."""
    tilts = _COARSE_TILTS
    for _ in range(4):
        values = objective(tilts)
        values = np.where(np.isfinite(values), values, np.inf)
        best = int(np.argmin(values))
        low, high = tilts[max(best - 1, 0)], tilts[min(best + 1, len(tilts) - 1)]
        tilts = np.geomspace(low, high, 17)
    return float(np.sqrt(low * high))


def rough_tilt(
    composition: Composition, wanted: Literal["epsilon", "delta"], given: float
) -> tuple[float, float, float]:
    """Return about the tilt of the line for a question, and about its epsilon and ln delta: nothing relies on them."""
    if wanted == "epsilon":
        log_delta = math.log(max(given, 1e-300))

        def bound(tilts: Array) -> Array:
            return np.asarray((composition.rough_log_moments(tilts) + _payoff(tilts) - log_delta) / tilts)

        tilt = _best_tilt(bound)
        return tilt, max(0.0, float(bound(np.array([tilt]))[0])), log_delta

    def objective(tilts: Array) -> Array:
        return np.asarray(composition.rough_log_moments(tilts) - tilts * given + _payoff(tilts))

    tilt = _best_tilt(objective)
    return tilt, given, float(objective(np.array([tilt]))[0])


def chernoff_epsilon(composition: Composition, delta: float) -> float:
    """Return an upper bound on epsilon from moments alone (Canonne, Kamath, Steinke 2020, proposition 12)."""

    def bound(tilts: Array, logs: Array) -> Array:
        exact: Array = (logs + _payoff(tilts) - math.log(delta)) / tilts
        return exact

    tilts = np.array([_best_tilt(lambda tilts: bound(tilts, composition.rough_log_moments(tilts)))])
    certified = float(bound(tilts, np.sum(composition.log_moments(tilts), axis=0))[0])
    return max(0.0, certified * (1.0 + 8.0 * ROUNDING))


class Contour:
    """A line Re z = tilt with the transform on it: bounds of delta near one epsilon."""

    def __init__(self, composition: Composition, epsilon: float, accuracy: Callable[[float], float]) -> None:
        self._composition = composition

        def objective(tilts: Array) -> Array:
            value: Array = composition.rough_log_moments(tilts) - tilts * epsilon - np.log(tilts) - np.log1p(tilts)
            return value

        self.tilt = tilt = _best_tilt(objective)
        near = np.array([0.95 * tilt, tilt, 1.05 * tilt])
        values = objective(near)
        curvature = max(float(values[0] + values[2] - 2.0 * values[1]) / (0.05 * tilt) ** 2, 0.1 / tilt**2)
        #: About ln(delta), and about what the sum over frequencies comes to; neither is relied on.
        expected = float(values[1]) - 0.5 * math.log(2.0 * math.pi * curvature)
        self._spread(tilt, epsilon, expected)

        logs, slack = composition.log_moments(np.array([tilt]))
        self._log_moment, self._slack = float(logs[0]), float(slack[0])
        #: Out of the reach of floats, for tiny deltas next to the largest loss: the moment bound serves alone.
        self._hopeless = not (math.isfinite(self._width) and math.isfinite(self._log_moment) and self._slack < 1.0)
        if self._hopeless or (composition.step and self._width > _LONGEST_PERIOD * composition.step):
            self._hopeless = True
            return
        self._step = 2.0 * math.pi / self._width
        wanted = accuracy(tilt)
        # Where rounding spoils the estimate, the most frequencies are taken.
        expected_sum = max(math.exp(min(expected - self._log_moment + tilt * epsilon, 0.0)), 1e-100)
        self._walk(1.0 / (math.pi * expected_sum * wanted), 0.0)
        # The curve may be less smooth than was expected: atoms of single events fade at no frequency.
        smoothing = max(0.5 * wanted / tilt, _FADED * _UNIFORMS / (self._step * _MOST_FREQUENCIES))
        lost = max(wanted, 2.0 * tilt * smoothing)
        if not composition.lattice and lost < _ROUGH and self._cut > 2.0 * lost * self._sum(epsilon)[0]:
            self._walk(_FADED * _UNIFORMS / smoothing, smoothing)

    def _walk(self, last: float, smoothing: float) -> None:
        """Take the transform on the line up to about a frequency, for a payoff that is smoothed by so much."""
        composition, tilt, self._smoothing = self._composition, self.tilt, smoothing
        if composition.squared_mean > 0.0:
            last = min(last, math.sqrt(100.0 / composition.squared_mean))
        count = min(max(int(last / self._step), 64), _MOST_FREQUENCIES)
        if composition.lattice:
            count = round(self._width / composition.step) // 2
        frequencies = self._step * np.arange(count + 1)
        weights = np.full(count + 1, self._step / math.pi)
        weights[0] /= 2.0
        if composition.lattice:
            weights[-1] /= 2.0
        largest = weights * self._largest_kernel(frequencies)
        line = composition.on_line(tilt, frequencies, largest, self._width)
        used = np.rint(line.frequencies / self._step).astype(np.int64)
        self._frequencies, self._values = line.frequencies, line.values * weights[used]
        self._errors = line.errors * weights[used]
        # A lattice's integral is over one period: nothing is cut off.
        end = float(frequencies[-1])
        fade = math.exp(-0.5 * composition.squared_mean * end**2)
        each = smoothing / _UNIFORMS
        if end * each > 1.0:
            # The integral of u^-2 times the smoothing's bound, which falls with the m-th power of u.
            fade *= (math.cosh(tilt * each) / (end * each)) ** _UNIFORMS / (_UNIFORMS + 1)
        else:
            fade *= math.cosh(tilt * each) ** _UNIFORMS
        self._cut = line.dropped + (0.0 if composition.lattice else 1.01 * fade / (math.pi * end))
        self._prepare_kernel()

    def _largest_smoothing(self, frequencies: Array) -> Array:
        """Return a bound on the magnitude of the smoothing's transform."""
        each = self._smoothing / _UNIFORMS
        # With w = x + iy, sinh(w) / w is the mean of exp over the line from -w to w; and abs(sinh(w)) <= cosh(x).
        size = np.maximum(np.hypot(self.tilt, frequencies) * each, 1.0)
        bound: Array = (math.cosh(self.tilt * each) / size) ** _UNIFORMS * (1.0 + 2.0**-40)
        return bound

    def _largest_kernel(self, frequencies: Array) -> Array:
        """Return a bound on the magnitude of `_kernel` for every epsilon."""
        if self._composition.lattice:
            step = self._composition.step
            return np.full(len(frequencies), step / -math.expm1(-self.tilt * step))
        payoff = 1.0 / (np.hypot(self.tilt, frequencies) * np.hypot(self.tilt + 1.0, frequencies))
        return np.asarray(payoff * self._largest_smoothing(frequencies))

    def _prepare_kernel(self) -> None:
        """Multiply the values with what of the payoff's transform is the same for every epsilon.

        Without a lattice that is all: 1 / (z (z + 1)), times the smoothing's transform. On a lattice of step s the
        payoffs of its points beyond epsilon add up to s exp(-zf) (A - exp(-f) B), where f is how far the first of them
        is, A = 1 / (1 - exp(-zs)) and B = 1 / (1 - exp(-(z + 1)s)): with C = A - B = exp(-zs) (1 - exp(-s)) A B, which
        does not cancel, s exp(-zf) (C + (1 - exp(-f)) B).
        """
        z = self.tilt + 1j * self._frequencies
        if self._composition.lattice:
            step = self._composition.step
            far = step / -np.expm1(-(z + 1.0) * step)
            kernels: list[Array] = [far * np.exp(-z * step) * -math.expm1(-step) / -np.expm1(-z * step), far]
        else:
            kernels = [1.0 / (z * (z + 1.0))]
            if self._smoothing:
                arguments = z * (self._smoothing / _UNIFORMS)
                kernels[0] = kernels[0] * (np.sinh(arguments) / arguments) ** _UNIFORMS
        self._parts = [(products.real.copy(), products.imag.copy()) for products in (self._values * k for k in kernels)]
        magnitudes, sizes = np.abs(self._values), [np.abs(kernel) for kernel in kernels]
        # Near its zeros the smoothing's transform is wrong by a few roundings of its bound.
        rough = 32.0 * _UNIFORMS * ROUNDING * float(np.sum(magnitudes * self._largest_kernel(self._frequencies)))
        #: Of each kernel: the errors of the values, the magnitudes, and these times the frequencies, summed: not as
        #: products of vectors: those wake threads, which costs more where others compute too.
        self._sums = [
            (
                float(np.sum(self._errors * size)) + (rough if self._smoothing else 0.0),
                float(np.sum(magnitudes * size)),
                float(np.sum(magnitudes * size * self._frequencies)),
            )
            for size in sizes
        ]

    def _sum(self, epsilon: float) -> tuple[float, float]:
        """Return the sum over all frequencies, and a bound on its error but for what was cut off."""
        shares, first = [1.0], 0.0
        if self._composition.lattice:
            step = self._composition.step
            first = math.ceil(epsilon / step) * step - epsilon
            fade = math.exp(-self.tilt * first)
            shares = [fade, fade * -math.expm1(-first)]
        shift = self._composition.pivot - epsilon - first
        spend(float(2 * len(self._frequencies)))
        angles = self._frequencies * shift
        cosines, sines = np.cos(angles), np.sin(angles)
        losses = abs(self._composition.pivot) + abs(epsilon) + 2.0 * first
        total = error = 0.0
        for share, (real, imaginary), (errors, sizes, moments) in zip(shares, self._parts, self._sums, strict=True):
            # 128 for each term's products and NumPy's pairwise sum of at most 2^20 of them.
            total += share * float(np.sum(real * cosines - imaginary * sines))
            error += share * (errors + ROUNDING * (128.0 * sizes + 4.0 * losses * moments))
        return total, error

    def _spread(self, tilt: float, epsilon: float, expected: float) -> None:
        """Choose the period, and keep what bounds its wrap-around."""
        above, below = tilt * (1.0 + _SPREADS), tilt / (1.0 + _SPREADS)
        self._neighbours = np.concatenate([above, below, [0.0]])
        logs, slack = self._composition.log_moments(self._neighbours)
        self._bounds = logs + slack + _payoff(self._neighbours)
        # At tilt 0 the bound is delta <= 1.
        self._bounds[-1] = 0.0
        needed = (self._bounds - self._neighbours * epsilon - expected - _LOG_WRAPPED) / np.abs(self._neighbours - tilt)
        self._above = self._neighbours > tilt
        needed = np.where(np.isfinite(needed), needed, np.inf)
        self._width = max(float(np.min(needed[self._above])), float(np.min(needed[~self._above])), 1.0 / tilt)
        grid = self._composition.step
        if 0.0 < self._width / (grid or math.inf) <= _LONGEST_PERIOD:
            # An even number of steps that the FFT likes: 2^i or 3 * 2^i.
            size = 2 ** max(4, math.ceil(math.log2(self._width / grid)))
            self._width = grid * (size * 3 // 4 if 0.75 * size * grid >= self._width else size)

    def _wrapped(self, epsilon: float) -> float:
        """Bound what wraps around, as a logarithm."""
        away = np.abs(self._neighbours - self.tilt) * self._width
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = self._bounds - self._neighbours * epsilon - away - np.log(-np.expm1(-away))
        logs = np.where(np.isnan(logs), np.inf, logs)
        return float(np.logaddexp(np.min(logs[self._above]), np.min(logs[~self._above]))) + 1e-9

    def log_bounds(self, epsilon: float) -> tuple[float, float]:
        """Return bounds of ln delta(epsilon), the lower one -inf where nothing is known."""
        if self._hopeless:
            scale, slack = self._scale(epsilon)
            bound = scale + slack + float(_payoff(np.array([self.tilt]))[0])
            return -math.inf, min(0.0, bound) if not math.isnan(bound) else 0.0
        scale, slack = self._scale(epsilon - self._smoothing)
        total, error = self._bounded_sum(epsilon - self._smoothing)
        upper = min(0.0, math.log(max(total + error, error)) + scale + slack)
        if self._smoothing:
            scale, slack = self._scale(epsilon + self._smoothing)
            total, error = self._bounded_sum(epsilon + self._smoothing)
        lower = -math.inf
        wrapped = self._wrapped(epsilon) - scale + slack
        if total > error and wrapped < 0.0:
            inside = (total - error) * (1.0 - 2.0**-40) - math.exp(wrapped)
            lower = math.log(inside) + scale - slack if inside > 0.0 else -math.inf
        return lower, upper

    def _scale(self, epsilon: float) -> tuple[float, float]:
        """Return the logarithm of M(t) exp(-t epsilon), which sums are in units of, and a bound on its error."""
        scale = self._log_moment - self.tilt * epsilon
        return scale, self._slack + 8.0 * ROUNDING * (1.0 + abs(self._log_moment) + self.tilt * abs(epsilon))

    def _bounded_sum(self, epsilon: float) -> tuple[float, float]:
        """Return the sum over all frequencies, and a bound on its error."""
        total, error = self._sum(epsilon)
        return total, (error + self._cut) * (1.0 + 2.0**-20)


def _upper_epsilon(contour: Contour, log_delta: float, high: float, near: float = 0.0) -> float:
    """Return an epsilon at which the upper bound of delta is at most `delta`: about the least, near a guess.

    `high` is such an epsilon already, and comes back where the contour knows no better.
    """
    low, at_low = near, contour.log_bounds(near)[1] - log_delta
    if at_low <= 0.0:
        return _upper_epsilon(contour, log_delta, near) if near > 0.0 else 0.0
    at_high = contour.log_bounds(high)[1] - log_delta
    if at_high > 0.0:
        return high
    # Regula falsi, where the end that stays is halved in weight (Illinois), and every fourth step a bisection: the
    # curve is smooth but in rare cases nearly a step.
    weight_low = weight_high = 1.0
    for turn in range(100):
        if high - low <= _SOLVED * high:
            break
        middle = 0.5 * (low + high)
        if turn % 4 != 3:
            share = weight_low * at_low / (weight_low * at_low - weight_high * at_high)
            middle = low + (high - low) * min(max(share, 1e-3), 1.0 - 1e-3)
            if turn > 4:
                # Next to the root a step beyond it closes the interval.
                middle = min(middle + 0.25 * _SOLVED * high, high)
        at_middle = contour.log_bounds(middle)[1] - log_delta
        if at_middle <= 0.0:
            high, at_high, weight_high, weight_low = middle, at_middle, 1.0, 0.5 * weight_low
        else:
            low, at_low, weight_low, weight_high = middle, at_middle, 1.0, 0.5 * weight_high
    return high


def _lower_epsilon(contour: Contour, log_delta: float, upper: float) -> float:
    """Return an epsilon at which the lower bound of delta is above `delta`: the greatest, or nearly."""
    lower_log = contour.log_bounds(upper)[0]
    missing = (log_delta - lower_log) / contour.tilt if math.isfinite(lower_log) else 0.0
    above, step = upper, max(1e-9 * upper, 1.02 * missing)
    while True:
        low = above - step
        if low <= 0.0:
            return 0.0
        if contour.log_bounds(low)[0] > log_delta:
            break
        above, step = low, 4.0 * step
    # To a twentieth of what lies between the two bounds.
    for _ in range(30):
        if above - low <= max(_SOLVED * above, 0.05 * (upper - low)):
            break
        middle = 0.5 * (low + above)
        if contour.log_bounds(middle)[0] > log_delta:
            low = middle
        else:
            above = middle
    return low


def epsilon_bounds(
    composition: Composition, delta: float, wanted: Wanted = "both", near: float | None = None
) -> tuple[float, float]:
    """Return bounds of the least epsilon with delta(epsilon) <= delta, infinite where there is none.

    ``near`` is about that epsilon, where it is known already: it saves looking for it.
    """
    share = _finite_share(delta, composition.log_finite, up=False)
    larger = _finite_share(delta, composition.log_finite_lower, up=True)
    if wanted != "both" or share == larger:
        return _epsilons(composition, larger if wanted == "lower" else share, wanted, near)
    return _epsilons(composition, larger, "lower", near)[0], _epsilons(composition, share, "upper", near)[1]


def _finite_share(delta: float, log_finite: float, *, up: bool) -> float:
    """Return what of delta is left to finite losses: 1 - delta = (finite probability) (1 - share)."""
    if log_finite == 0.0:
        return delta
    infinite = -math.expm1(log_finite)
    slack = 8.0 * ROUNDING * (infinite + delta)
    return (delta - infinite + (slack if up else -slack)) / math.exp(log_finite)


def _epsilons(composition: Composition, share: float, wanted: Wanted, near: float | None) -> tuple[float, float]:
    """Return bounds of epsilon at what delta finite losses may use."""
    if share < 0.0:
        return math.inf, math.inf
    if composition.trivial or share >= 1.0:
        return 0.0, 0.0
    top = composition.top
    if share == 0.0:
        return top * (1.0 - 32.0 * ROUNDING), top
    log_share = math.log(share)
    if near is not None and near < top:
        contour = Contour(composition, near, lambda tilt: min(_ROUGH, max(5e-5 * near * tilt, 1e-5)))
        if wanted == "lower":
            return _lower_epsilon(contour, log_share, near), top
        if contour.log_bounds(1.02 * near)[1] <= log_share:
            upper = _upper_epsilon(contour, log_share, 1.02 * near, 0.98 * near)
            return (_lower_epsilon(contour, log_share, upper) if wanted == "both" else 0.0), upper
    first = min(chernoff_epsilon(composition, share), top)
    if first == 0.0:
        return 0.0, 0.0
    rough = Contour(composition, first, lambda tilt: _ROUGH)
    centre = _upper_epsilon(rough, log_share, first)
    fine = Contour(composition, centre, lambda tilt: min(_ROUGH, max(5e-5 * centre * tilt, 1e-5)))
    upper = _upper_epsilon(fine, log_share, centre, 0.99 * centre)
    lower = 0.0 if wanted == "upper" else _lower_epsilon(fine, log_share, upper)
    return lower, upper


def delta_bounds(
    composition: Composition, epsilon: float, wanted: Wanted = "both", near: float | None = None
) -> tuple[float, float]:
    """Return bounds of delta(epsilon), both whichever are wanted."""
    low = up = 0.0
    if not composition.trivial and epsilon < composition.top:
        lower, upper = Contour(composition, epsilon, lambda tilt: 1e-4).log_bounds(epsilon)
        rounding = 8.0 * ROUNDING * (1.0 + abs(upper))
        low, up = math.exp(lower - rounding), math.nextafter(math.exp(upper + rounding), 1.0)
        # No loss is above the largest one.
        up = min(up, -math.expm1(epsilon - composition.top) * (1.0 + 8.0 * ROUNDING))
    infinite_low, infinite_up = -math.expm1(composition.log_finite_lower), -math.expm1(composition.log_finite)
    slack = 8.0 * ROUNDING
    return (
        max(0.0, (infinite_low + (1.0 - infinite_low) * low) * (1.0 - slack)),
        min(1.0, (infinite_up + (1.0 - infinite_up) * up) * (1.0 + slack)),
    )
