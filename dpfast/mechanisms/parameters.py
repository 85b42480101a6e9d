"""Arguments that many mechanisms take."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, TypeAlias

import numpy as np

from dpfast.arguments import Flag, Real, Special, no_numbers
from dpfast.columns.declarations import PerRow, wrong_per_row

__all__ = ["MONOTONIC", "Epsilon", "EpsilonPerRow", "Monotonic", "Sensitivity"]

_NO_EPSILONS = (0, 0.0, -0.0, -1, 5e-324, 1e-320, 1e-19, 2.0**-80, 2e6, 1e308, np.float16(0))
_NO_FRACTIONS = (Fraction(0), Fraction(-1, 3), Fraction(1, 10**400))
_NO_WIDTHS = (0, 0.0, -0.0, -1, 5e-324, 1e-290, 1e300, 1e308)

#: A number from 1e-18 to 1e6, read as the decimal that it was written as: `budget_units`.
EPSILON = Special(lambda: [*no_numbers(), *_NO_EPSILONS, *_NO_FRACTIONS, [1.0], [1.0, 2.0], np.ones(3)])
Epsilon: TypeAlias = Annotated[Real, EPSILON]
#: The same, or a column with one for each row.
EpsilonPerRow: TypeAlias = Annotated[PerRow, Special(lambda: wrong_per_row(*_NO_EPSILONS, *_NO_FRACTIONS))]
#: How far one privacy unit moves a score or a value: one number.
Sensitivity: TypeAlias = Annotated[
    Real, Special(lambda: [*no_numbers(), *_NO_WIDTHS, *_NO_FRACTIONS, [1.0], [1.0, 2.0], np.ones(3)])
]

MONOTONIC = Flag(mend="write True only if no score can fall as another rises")
Monotonic: TypeAlias = Annotated[bool, MONOTONIC]
