"""Which keys found in the data may be shown: the optimal rule for selecting partitions privately."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dpfast.errors import ParameterError
from dpfast.exact.balls import ball, working_precision
from dpfast.mechanisms.keys.thresholds import refuse_no_delta
from dpfast.mechanisms.noise.exact import Bits, decided, unique_floor
from dpfast.randomness import Keystream, Purpose, RandomSource, Tail

__all__ = ["SelectionTable", "select_keys", "selection_table"]

_WORD = 64
_LARGEST_TABLE = 1 << 20
_CHUNK = 1 << 16


class SelectionTable:
    """The probability p_n of showing a key that n units hold, exactly.

    Guarantee
        Showing every key independently with probability p_n is (epsilon, delta)-differentially private where
        a unit holds one key, and no rule that is shows any key more often (Desfontaines, Voss, Gipson,
        Mandayam 2022, theorem 1): p_0 = 0, p_n = min(e**epsilon p_(n-1) + delta,
        1 - e**-epsilon (1 - p_(n-1) - delta), 1). A unit with up to kappa keys is covered by the table at
        (epsilon / kappa, delta / kappa).

    Attributes
    ----------
    thresholds
        floor(p_n * 2**64) for n = 0, 1, ...; the last n has p_n = 1 and so has every larger one.

    """

    def __init__(self, epsilon: Fraction, delta: Fraction) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.thresholds = np.array(self._probabilities(_WORD)[:-1], np.uint64)

    def _probabilities(self, bits: int) -> list[int | None]:
        """Return floor(p_n * 2**bits) for every n, and None in the end for p_n = 1."""
        extra = 128
        while True:
            floors: list[int | None] = []
            # An error grows like p itself, by 1 / delta at most over the whole table.
            with working_precision(bits + extra + self.delta.denominator.bit_length()):
                growth, delta, p = ball(self.epsilon).exp(), ball(self.delta), arb(0)
                while (floor := unique_floor(p * arb(2) ** bits) if floors else 0) is not None:
                    if len(floors) > _LARGEST_TABLE:
                        raise _too_small(self.epsilon)
                    floors.append(floor)
                    rising, falling = growth * p + delta, 1 - (1 - p - delta) / growth
                    p = rising.min(falling)
                    if p >= 1:
                        return [*floors, None]
            extra *= 2

    @property
    def median(self) -> int:
        """The fewest units that show a key with a probability of at least 1/2."""
        return int(np.searchsorted(self.thresholds, np.uint64(1 << (_WORD - 1))))

    def shows(self, units: int, bits: Bits) -> bool:
        """Return whether U < p_n, U the number with these bits after the binary point."""
        if units >= self.thresholds.size:
            return True

        def shown(count: int) -> bool | None:
            floor, leading = self._probabilities(count)[units], bits.leading(count)
            return None if floor == leading else floor is None or leading < floor

        return decided(shown, bits.known)


def _too_small(epsilon: Fraction) -> ParameterError:
    return ParameterError(
        "epsilon",
        float(epsilon),
        "larger for selecting keys: each group's share of it",
        "raise epsilon, lower max_groups, or give public keys",
    )


@lru_cache(maxsize=64)
def selection_table(epsilon: Fraction, delta: Fraction) -> SelectionTable:
    """Return the table of one key's share of epsilon and delta.

    Raises
    ------
    ParameterError
        delta is 0, so that no key could ever be shown, or epsilon so small that the table has over 2**20
        entries.

    Examples
    --------
    >>> table = selection_table(Fraction(1), Fraction(1, 100_000))
    >>> [round(int(table.thresholds[n]) / 2**64, 8) for n in (1, 2, 5, 11)]
    [1e-05, 3.718e-05, 0.00085791, 0.34844774]

    """
    refuse_no_delta(delta)
    # The table grows by a factor e**epsilon from delta up to 1/2, and mirrors that above: see how long it will be.
    if 2 / epsilon * Fraction(math.log1p(float(epsilon / (2 * delta)))) > 2 * _LARGEST_TABLE:
        raise _too_small(epsilon)
    return SelectionTable(epsilon, delta)


def select_keys(units: NDArray[np.int64], table: SelectionTable, source: RandomSource) -> NDArray[np.bool_]:
    """Return which keys are shown, given the number of distinct units that hold each.

    Parameters
    ----------
    units
        One count per key, at least 0; exact and private.
    table
        The probabilities.
    source
        Where the key of this call comes from.

    Returns
    -------
    numpy.ndarray
        True where the key is shown.

    """
    keystream = Keystream(source.key())
    words = keystream.words(Purpose.KEY_SELECTION)
    shown = np.empty(units.size, np.bool_)
    last = table.thresholds.size
    thresholds = np.append(table.thresholds, np.uint64(0))
    buffer = np.empty(min(units.size, _CHUNK), np.uint64)
    for chunk, start in enumerate(range(0, units.size, _CHUNK)):
        stop = min(start + _CHUNK, units.size)
        drawn = buffer[: stop - start]
        words.fill(chunk, drawn)
        place = np.minimum(units[start:stop], last)
        threshold = thresholds[place]
        certain = place == last
        shown[start:stop] = certain | (drawn < threshold)
        # One word in 2**64 agrees with its threshold in every bit read: its next bits decide.
        for row in np.flatnonzero((drawn == threshold) & ~certain).tolist():
            bits = Tail(keystream, start + row, int(drawn[row]), _WORD)
            shown[start + row] = table.shows(int(place[row]), bits)
    return shown
