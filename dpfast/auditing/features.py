"""What of an output is looked at: its numbers, sums of them, and the bits by which floating point gives inputs away.

A feature is a number or a category for every output, a fixed function of that output alone and of the two inputs, which
an adversary knows. Numbers are compared with thresholds, categories with sets of values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfast.auditing.outputs import Category, Columns, Numbers

__all__ = ["Feature", "features_of"]

Floats = NDArray[np.float64]

#: So many of the numbers of an output are looked at bit by bit.
_MOST_BITS = 16
_MODULI = (2, 3, 4, 5, 7, 8, 16)
_LOW_BITS = 8


@dataclass(frozen=True)
class Feature:
    """A number for every output, NaN where it has none.

    Attributes
    ----------
    values
        The numbers.
    below, above
        Say in words that the number is at most, or at least, a threshold.
    within
        Says what numbers in some intervals are.

    """

    values: Floats
    below: Callable[[float], str]
    above: Callable[[float], str]
    within: str

    def where(self, holds: NDArray[np.bool_], words: str) -> Feature:
        """Return the same for some outputs alone."""
        return Feature(
            np.where(holds, self.values, np.nan),
            lambda t: f"{self.below(t)}, and {words}",
            lambda t: f"{self.above(t)}, and {words}",
            f"{self.within}, where {words},",
        )


def features_of(columns: Columns, centres: tuple[float, ...]) -> tuple[list[Feature], list[Category]]:
    """Return the features of outputs: first the numbers themselves.

    Parameters
    ----------
    columns
        The outputs.
    centres
        The two inputs, if they are numbers: a mechanism may release the input plus something of a lattice.

    """
    features = [_plain(f"output{one.path}", one.values) for one in columns.numbers]
    features += [_plain(name, values) for name, values in columns.totals.items()]
    categories = list(columns.categories)
    fractional = any(not float(centre).is_integer() for centre in centres)
    for number, one in enumerate(columns.numbers[:_MOST_BITS]):
        name = f"output{one.path}"
        categories += _residues(name, one, columns)
        # Whole numbers have bits worth a look only beside inputs that are none.
        values = one.values if fractional and number == 0 else one.floats
        features += _bits(name, values, columns)
        categories += _patterns(name, values, columns)
        if len(columns.numbers) == 1:
            for centre in centres:
                if centre:
                    features += _bits(f"{name} - {centre!r}", values - centre, columns)
    return features, categories


def _plain(name: str, values: Floats) -> Feature:
    return Feature(values, lambda t: f"{name} <= {_shown(t)}", lambda t: f"{name} >= {_shown(t)}", name)


def _shown(t: float) -> str:
    return f"{t:.0f}" if float(t).is_integer() and abs(t) < 1e15 else f"{t:.9g}"


def _split(values: Floats) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return for which values there are bits, their odd parts' exponents, their own, and their significands."""
    usable = np.isfinite(values) & (values != 0)
    fraction, exponent = np.frexp(np.where(usable, values, 1.0))
    significand = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
    lowest = significand & -significand
    trailing = np.round(np.log2(lowest.astype(np.float64))).astype(np.int64)
    return usable, exponent.astype(np.int64) - 53 + trailing, exponent.astype(np.int64) - 1, significand


def _bits(name: str, values: Floats, columns: Columns) -> Iterator[Feature]:
    """Yield the largest power of two that divides each number, and how many bits its significand has."""
    usable, lattice, exponent, _ = _split(values)
    if not columns.among_first(usable):
        return
    # 0 is a multiple of every power of two.
    powers = np.where(usable, lattice, np.where(values == 0, 1100, 0)).astype(np.float64)
    yield Feature(
        np.where(np.isfinite(values), powers, np.nan),
        lambda t: f"{name} is no multiple of 2**{math.floor(t) + 1}",
        lambda t: f"{name} is a multiple of 2**{math.ceil(t)}",
        f"the largest power of two that divides {name}",
    )
    digits = np.where(usable, exponent - lattice + 1, np.nan)
    yield _plain(f"number of significant bits of {name}", digits)


def _patterns(name: str, values: Floats, columns: Columns) -> Iterator[Category]:
    """Yield the low bits of significands, and which power of two divides a number of each binade."""
    usable, lattice, exponent, significand = _split(values)
    if not columns.among_first(usable):
        return
    low = np.where(usable, significand & ((1 << _LOW_BITS) - 1), -1)
    yield Category(
        low,
        lambda code: f"the lowest {_LOW_BITS} bits of the significand of {name} are {code:0{_LOW_BITS}b}",
        f"patterns of the lowest {_LOW_BITS} bits of {name}",
        1 << _LOW_BITS,
    )
    pairs = (exponent + 1100) * 2300 + (lattice + 1100)
    _, codes = np.unique(np.where(usable, pairs, -1), return_inverse=True)
    kinds = np.unique(np.where(usable, pairs, -1))

    def words(code: int) -> str:
        binade, power = divmod(int(kinds[code]), 2300)
        return f"{name} is an odd multiple of 2**{power - 1100}, and its size is from 2**{binade - 1100} on"

    yield Category(
        np.where(usable, codes.reshape(-1), -1).astype(np.int64), words, f"bit lengths of {name}", len(kinds)
    )


def _residues(name: str, numbers: Numbers, columns: Columns) -> Iterator[Category]:
    """Yield the remainders of whole numbers."""
    if not columns.among_first(numbers.whole):
        return
    for modulus in _MODULI:

        def words(code: int, modulus: int = modulus) -> str:
            return f"{name} is {code} modulo {modulus}"

        codes = np.where(numbers.whole, np.mod(numbers.integers, modulus), -1)
        yield Category(codes, words, f"remainders of {name} modulo {modulus}", modulus)
