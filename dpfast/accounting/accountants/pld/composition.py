"""Compositions: the product of all runs' transforms, on a line of the complex plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpfast.accounting.formulas.transforms import ROUNDING, Array, Family
from dpfast.accounting.work import spend

__all__ = ["Composition", "Line"]

# Beyond e^-60 a frequency adds nothing to the curve; its bound is added to the error instead.
_NEGLIGIBLE = -60.0
_WORTH_SCREENING = 16
_ELEMENTS_AT_ONCE = 2**17
# What a complex value, its logarithm and its error are worth in the units of `work`.
_VALUE_WORK = 12.0
_FREQUENCIES_AT_ONCE = 2**13


@dataclass(frozen=True)
class Line:
    """M(tilt + iu) / M(tilt) exp(-iu pivot) at the frequencies u that matter."""

    frequencies: Array
    values: Array
    errors: Array
    """Bounds on the errors of values, absolute."""
    dropped: float
    """Bound on the sum over all other frequencies given, weighted."""


@dataclass(frozen=True)
class Composition:
    """All runs of one plan, for one direction and one part of every partition."""

    families: Sequence[Family]
    squared_mean: float
    """All Gaussians together: the sum of (sensitivity / scale)^2 (Dong, Roth, Su 2022)."""
    log_finite: float
    """ln of the probability that no outcome reveals everything, rounded down."""
    log_finite_lower: float
    """The same, rounded up: what the lower bound of delta uses."""
    step: float = 0.0
    """Where positive, periods must be multiples of it: some losses are, and their transforms are FFTs."""
    lattice: bool = False
    """Whether all losses are multiples of the step."""

    @property
    def pivot(self) -> float:
        """Return the loss that phases are measured from."""
        return sum(family.pivot for family in self.families) + self.squared_mean / 2.0

    @property
    def top(self) -> float:
        """Return the largest finite loss, rounded up."""
        if self.squared_mean > 0.0:
            return math.inf
        tops = [float(count * top) for f in self.families for count, top in zip(f.counts, f.tops, strict=True)]
        return math.fsum(tops) * (1.0 + 8.0 * ROUNDING)

    @property
    def trivial(self) -> bool:
        """Whether no finite loss but 0 is possible."""
        return not self.families and self.squared_mean == 0.0

    def rough_log_moments(self, tilts: Array) -> Array:
        """Return about ln M at real tilts, fast."""
        total: Array = self.squared_mean * tilts * (tilts + 1.0) / 2.0
        for family in self.families:
            total = total + family.rough_log_moments(tilts) @ family.counts
        return total

    def log_moments(self, tilts: Array) -> tuple[Array, Array]:
        """Return ln M at real tilts, and bounds on its errors."""
        gaussian = self.squared_mean * tilts * (tilts + 1.0) / 2.0
        total, slack = gaussian, 8.0 * ROUNDING * gaussian
        for family in self.families:
            spend(len(tilts) * family.size)
            logs = family.log_moments(tilts)
            total = total + logs @ family.counts
            size = np.abs(logs) + tilts[:, None] * np.abs(family.tops)
            errors = family.log_error(tilts)
            slack = slack + (2.0 * errors + (8.0 + len(family.tops)) * ROUNDING * size) @ family.counts
        return total, slack

    def on_line(self, tilt: float, frequencies: Array, weights: Array, period: float) -> Line:
        """Return the transform on the line Re z = tilt; `weights` say how much each frequency counts."""
        blocks = [
            self._block(tilt, frequencies[start : start + _FREQUENCIES_AT_ONCE], weights[start:], period)
            for start in range(0, len(frequencies), _FREQUENCIES_AT_ONCE)
        ]
        return Line(
            np.concatenate([block.frequencies for block in blocks]),
            np.concatenate([block.values for block in blocks]),
            np.concatenate([block.errors for block in blocks]),
            sum(block.dropped for block in blocks),
        )

    def _block(self, tilt: float, frequencies: Array, weights: Array, period: float) -> Line:
        kept = np.arange(len(frequencies))
        u = frequencies
        # A Gaussian's exponent, mean (z^2 + z) / 2 at z = tilt + iu, less its value at the tilt and its pivot.
        logs = self.squared_mean * (-(u**2) / 2.0 + 1j * u * tilt)
        slack = 8.0 * ROUNDING * self.squared_mean * np.hypot(tilt + 1.0, u) ** 2
        dropped = 0.0
        terms = sum(len(family.tops) for family in self.families)
        for family in self.families:
            if len(kept) > _WORTH_SCREENING:
                # What a cheap bound already shows to be negligible is not computed.
                screened = logs.real + slack + float(family.counts[0]) * family.log_ceiling(tilt, u[kept], period)
                alive = screened > _NEGLIGIBLE
                dropped += float(np.sum(weights[kept[~alive]] * np.exp(screened[~alive])))
                kept, logs, slack = kept[alive], logs[alive], slack[alive]
            start, size = 0, 1
            while start < len(family.tops) and len(kept):
                part = slice(start, start + size)
                spend(_VALUE_WORK * len(kept) * size)
                start, size = part.stop, max(1, min(2 * size, _ELEMENTS_AT_ONCE // len(kept)))
                value = family.ratio(tilt, u[kept], part, period)
                error = family.error(tilt, u[kept], part)
                counts = family.counts[part]
                # A value smaller than its own error may be replaced by that error, at three times the error.
                magnitude = np.abs(value)
                tiny = magnitude < error
                value, error = np.where(tiny, error, value), np.where(tiny, 3.0 * error, error)
                log = np.log(value)
                logs = logs + log @ counts
                # abs(exact^k - value^k) <= abs(value)^k expm1(k error / abs(value)): errors of a product add up.
                # Summing in any order adds at most `terms` roundings of the sum of magnitudes.
                rounding = ROUNDING * (8.0 + (8.0 + terms) * np.abs(log))
                slack = slack + (error / np.abs(value) + rounding) @ counts
                alive = logs.real > _NEGLIGIBLE
                if not np.all(alive):
                    lost = ~alive
                    dropped += float(np.sum(weights[kept[lost]] * np.exp(logs.real[lost] + slack[lost])))
                    kept, logs, slack = kept[alive], logs[alive], slack[alive]
        values = np.exp(logs)
        slack = slack + 8.0 * ROUNDING * (1.0 + np.abs(logs))
        return Line(u[kept], values, np.abs(values) * np.expm1(slack), dropped)
