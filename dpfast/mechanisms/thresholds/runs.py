"""Runs of the sparse vector technique: how a budget becomes noise, and how runs read their words.

The way of a run: its threshold's word once, a word for each value, the kernel up to a doubt, ball arithmetic for the
one value in doubt, the kernel again; until the run has its positives or its values end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Number, Real, Special, Whole, no_numbers
from dpfast.columns import borrow_scale
from dpfast.columns.widening import widen
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.exact.balls import as_written, round_down, round_up
from dpfast.kernels.selection.thresholds import BLOCK, bound_thresholds, scan_runs
from dpfast.mechanisms.parameters import MONOTONIC
from dpfast.mechanisms.thresholds.exact import bound_threshold, reaches_threshold
from dpfast.randomness import Keystream, Purpose, RandomSource, Tail

__all__ = ["CHUNK", "COUNT", "THRESHOLD", "Count", "Numeric", "Runs", "ThresholdNoise", "calibrate"]

#: Values whose words are drawn at a time: they stay in the second-level cache.
CHUNK = 65_536

_REST, _REST_BITS = 0x7FFFFFFF, 31
_LEAST_SHARE = Fraction(1, 10**9)

COUNT = Whole(1, 2**31, mend="write for example {name}=5")
THRESHOLD = Number(mend="write for example {name}=100")
Count: TypeAlias = Annotated[int, COUNT]
Numeric: TypeAlias = Annotated[Real | None, Special(lambda: [*no_numbers(), *_NO_SHARES], optional=True)]
_NO_SHARES = (0, 1, 0.0, 1.0, -0.5, 1.5, 1e-10, Decimal("1e-400"), Fraction(1), [0.5], np.ones(2))


@dataclass(frozen=True, slots=True)
class ThresholdNoise:
    """What a budget buys: value q is above where slope * (q - threshold) + E >= ratio * E0, E and E0 exponential.

    Attributes
    ----------
    slope
        1 / (scale of a value's noise), rounded down.
    ratio
        Scale of the threshold's noise / scale of a value's, rounded up.
    answer_scale
        The scale of the Laplace noise on numeric answers, rounded up; None without them.
    epsilon
        All of it, exactly.

    """

    slope: float
    ratio: float
    answer_scale: float | None
    epsilon: Fraction

    @property
    def scales(self) -> tuple[float, float]:
        """The scales of the threshold's noise and of a value's."""
        return self.ratio / self.slope, 1 / self.slope


def calibrate(epsilon: Any, sensitivity: Any, monotonic: object, count: object, numeric: object) -> ThresholdNoise:
    """Split epsilon between the threshold, the comparisons and the numeric answers.

    Guarantee
        With e1 + e2 + e3 = epsilon exactly, as it was written: ratio / slope >= sensitivity / e1,
        slope <= e2 / (2 count sensitivity) (without the 2 if monotonic), answer_scale >= count sensitivity / e3, all
        in rational numbers.

    Raises
    ------
    ParameterError
        One of them is not allowed.

    Examples
    --------
    >>> noise = calibrate(1, 1, False, 4, None)  # (2 * 4)**(2/3) = 4: a fifth for the threshold
    >>> [round(scale, 12) for scale in noise.scales]
    [5.0, 10.0]

    """
    same_direction, positives = MONOTONIC.read("monotonic", monotonic), COUNT.read("count", count)
    if not isinstance(sensitivity, (int, float, Decimal, Fraction, np.generic)) and np.ndim(sensitivity):
        raise ParameterError("sensitivity", sensitivity, "one number, the same for every value")
    width = borrow_scale(sensitivity, 1, "sensitivity")
    assert isinstance(width, float)
    total = Fraction(budget_units(epsilon, "epsilon"), UNITS_PER_ONE)
    answers = total * _share(numeric)
    factor = positives * (1 if same_direction else 2)
    rest = total - answers
    threshold = Fraction(float(rest) / (1 + factor ** (2 / 3)))
    slope = round_down((rest - threshold) / (factor * Fraction(width)))
    if not slope:
        raise ParameterError("sensitivity", sensitivity, "smaller for so small an epsilon", "the noise would overflow")
    ratio = round_up(Fraction(slope) * Fraction(width) / threshold)
    answer_scale = round_up(positives * Fraction(width) / answers) if answers else None
    return ThresholdNoise(slope, ratio, answer_scale, total)


def _share(numeric: Any) -> Fraction:
    """Return the part of epsilon that numeric answers get, as it was written."""
    if numeric is None:
        return Fraction(0)
    if isinstance(numeric, (float, np.floating)) and math.isfinite(numeric):
        numeric = as_written(float(numeric))
    elif isinstance(numeric, Decimal) and numeric.is_finite():
        numeric = Fraction(numeric) if 0 < numeric < 1 and numeric.adjusted() > -10 else numeric
    if isinstance(numeric, Fraction) and _LEAST_SHARE <= numeric <= 1 - _LEAST_SHARE:
        return numeric
    allowed = "None, or the part of epsilon that answers get, from 1e-9 to 1 - 1e-9"
    raise ParameterError("numeric", numeric, allowed, "write for example numeric=0.5")


class Runs:
    """Runs side by side, each with its own threshold noise, which it keeps.

    Word indices count up over all that is drawn, and every piece is a chunk of its own. So every reader of a word sees
    the same bits and the same continuation, and no word serves twice (Soundness rules 1 and 2).

    Parameters
    ----------
    noise
        What `calibrate` made of the budget.
    thresholds
        A finite float64 for each run.
    source
        Where the key comes from.
    refine_all
        Decide every comparison in ball arithmetic: the slow, exact path, which must agree with the fast one.

    """

    def __init__(
        self, noise: ThresholdNoise, thresholds: NDArray[np.float64], source: RandomSource, *, refine_all: bool = False
    ) -> None:
        self._keystream = Keystream(source.key())
        self._reader = self._keystream.words(Purpose.NOISE)
        self._chunk = self._index = 0
        self._noise = noise
        self._refine_all = refine_all
        self._thresholds = thresholds
        self._words = np.empty(thresholds.size, np.uint32)
        for start in range(0, thresholds.size, CHUNK):
            self._draw(self._words[start : start + CHUNK])
        self._lows, self._highs = np.empty(thresholds.size), np.empty(thresholds.size)
        bound_thresholds(self._words, noise.ratio, self._lows, self._highs)
        self._bounds = np.empty(BLOCK)

    def _draw(self, words: NDArray[np.uint32]) -> int:
        """Fill an array with words that no other gets; return the index of the first."""
        first = self._index
        self._index += words.size
        self._chunk += 1
        self._reader.fill(self._chunk - 1, words)
        return first

    def scan(
        self,
        first: int,
        values: NDArray[Any],
        offset: int,
        found: NDArray[np.int64],
        places: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Test some values of some runs.

        Parameters
        ----------
        first
            The first of these runs; ``places`` has a row for each.
        values
            At most CHUNK finite values, run after run.
        offset
            What is added to the places in a run that are reported.
        found, places
            How many positives each run has, and where: filled from there on.

        Returns
        -------
        numpy.ndarray
            How many values each run tested now.

        """
        runs, count = places.shape
        width = values.size // runs
        words = np.empty(values.size, np.uint32)
        index = self._draw(words)
        own = slice(first, first + runs)
        thresholds, lows, highs = self._thresholds[own], self._lows[own], self._highs[own]
        # 1 + slope * threshold is rounded up; only an int64 is not converted exactly (kernels/selection/thresholds.py).
        margins = np.ones(runs)
        if values.dtype == np.int64:
            with np.errstate(over="ignore"):  # an infinite margin leaves all in doubt
                margins += np.abs(self._noise.slope * thresholds) * (1 + 2.0**-50)
        positions = np.zeros(runs, np.int64)

        def decide(run: int) -> None:
            """Decide the value at a run's position from more bits."""
            place = int(positions[run])
            i = run * width + place
            positions[run] += 1
            ratio = Fraction(self._noise.ratio)
            gap = Fraction(self._noise.slope) * (Fraction(values[i].item()) - Fraction(float(thresholds[run])))
            query = self._bits(index + i, words[i])
            if reaches_threshold(gap, ratio, query, self._bits(first + run, self._words[first + run])):
                places[run, found[run]] = offset + place
                found[run] += 1

        if self._refine_all:
            for run in range(runs):
                while positions[run] < width and found[run] < count:
                    decide(run)
            return positions
        wide = widen(values)
        given = wide, words, self._noise.slope, thresholds, margins
        while scan_runs(*given, lows, highs, offset, self._bounds, positions, found, places):
            for run in np.flatnonzero((positions < width) & (found < count)).tolist():
                decide(run)
                # A run that was in doubt once knows its threshold better from now on.
                bits = self._bits(first + run, self._words[first + run])
                lows[run], highs[run] = bound_threshold(Fraction(self._noise.ratio), bits)
        return positions

    def _bits(self, index: int, word: Any) -> Tail:
        return Tail(self._keystream, index, int(word) & _REST, _REST_BITS)
