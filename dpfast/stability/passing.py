"""Whether a value may be shown: a test of a whole number that a row moves by 1 at most, and that is 0 in doubt.

The number d is a distance: how many rows must change before the value, or a bound on it, is at risk. Let p(d) be the
chance of passing. For two neighbours either the value is at risk on neither side in a way that matters (the distances
differ by 1 at most, and the same value is shown), or it is at risk on both, d = 0 on both sides, and values differ.

Why it is (epsilon, delta)-private, and no more. In the second case any set of outputs has probabilities that differ by
p(0) at most: p(0) <= delta is enough. In the first case only passing or not can tell the two apart.

- ``"optimal"``: p(d) = p_(d + 1), the optimal probabilities of showing a key that d + 1 units hold (Desfontaines, Voss,
  Gipson, Mandayam 2022): p_1 = delta, and p_n, p_(n + 1) are (epsilon, delta)-indistinguishable. No test with these two
  properties passes more often at any distance.
- ``"laplace"``: d + K >= t with K discrete Laplace noise of scale 1 / epsilon, which is epsilon-private in the first
  case, and t the least whole number that noise alone reaches with probability at most delta: proved in balls.
- ``"book"``: d + Z > ln(1 / delta) / epsilon with Z continuous Laplace noise (Dwork, Roth 2014, algorithm 13), d + Z
  rounded to its grid (mechanisms/noise/lattice.py), so that p(0) is delta / 2 up to a part of 2**-10. Errata: the
  text's algorithm 12 has 1 + ln(1 / delta) for the threshold, which noise of scale 10 passes by itself with probability
  0.1256; and its prose on algorithm 13 has twice the threshold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Literal, TypeAlias

import numpy as np

from dpfast.accounting.budget import DELTA
from dpfast.accounting.events import Approximate
from dpfast.arguments import Choice, Number, Real, Special
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units, to_float
from dpfast.exact.balls import ball, float_above, working_precision, written_below
from dpfast.mechanisms.keys.optimal import SelectionTable, select_keys, selection_table
from dpfast.mechanisms.keys.thresholds import Lonely, chance_of_showing, least_threshold
from dpfast.mechanisms.noise.integer_noise import IntegerNoise, laplace_of_epsilon
from dpfast.mechanisms.noise.laplace import laplace
from dpfast.mechanisms.noise.lattice import grid_exponent
from dpfast.mechanisms.parameters import Epsilon
from dpfast.randomness import RandomSource
from dpfast.stability.answers import Cost

__all__ = ["TEST", "Delta", "PassingTest", "Test", "distance_to_pass", "pass_probability", "read_delta", "read_test"]

#: Above 0: without it nothing could ever be shown.
Delta: TypeAlias = Annotated[Real, Special(lambda: (*DELTA.wrong(), 0, 0.0))]
TEST = Choice(("optimal", "laplace", "book"))
Test: TypeAlias = Annotated[Literal["optimal", "laplace", "book"], TEST]
#: A distance beyond it is this one: no test tells them apart.
MOST = 2**52
_DISTANCE = Number(0, math.inf)
_MISS = Number(0, 1, above=True, below=True)


def read_delta(delta: object) -> int:
    """Return a delta above 0 in units of 1e-18."""
    units = budget_units(delta, "delta") if delta is not None else 0
    if not units:
        raise ParameterError("delta", delta, "a number from 1e-18 to below 1", "write for example delta=1e-6")
    return units


def read_test(test: object, epsilon: int, delta: int) -> PassingTest:
    """Return the test of these amounts, in units of 1e-18."""
    return PassingTest(TEST.read("test", test), epsilon, delta)


@dataclass(frozen=True)
class PassingTest:
    """A test of a distance, at an epsilon and a delta in units of 1e-18."""

    kind: str
    epsilon: int
    delta: int

    @property
    def _amounts(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.epsilon, UNITS_PER_ONE), Fraction(self.delta, UNITS_PER_ONE)

    @cached_property
    def _table(self) -> SelectionTable:
        return selection_table(*self._amounts)

    @cached_property
    def _noise(self) -> IntegerNoise:
        return laplace_of_epsilon(1, self.epsilon)

    @cached_property
    def threshold(self) -> float:
        """What the noisy distance must reach, or with ``"book"`` exceed; with ``"optimal"`` where half pass."""
        if self.kind == "optimal":
            return self._table.median - 1
        if self.kind == "laplace":
            return least_threshold(self._noise, [Lonely(1, 0)], self._amounts[1])
        with working_precision():
            epsilon, delta = map(ball, self._amounts)
            return float_above(-delta.log() / epsilon)

    def prepare(self) -> None:
        """Refuse amounts that no test can be made of: before the charge."""
        try:
            _ = self.threshold
        except ParameterError as error:
            if self.kind == "optimal" and error.argument == "epsilon":
                given = to_float(self.epsilon)
                raise ParameterError("epsilon", given, "larger for the optimal test", 'write test="laplace"') from None
            raise

    def passes(self, distance: int, source: RandomSource) -> bool:
        """Return whether a distance passes, drawn exactly; what is below 0 counts as 0."""
        far = min(max(distance, 0), MOST)
        if self.kind == "optimal":
            return bool(select_keys(np.array([far + 1]), self._table, source)[0])
        if self.kind == "laplace":
            return bool(self._noise.add(np.array([far]), source)[0] >= self.threshold)
        return bool(laplace(np.array([float(far)]), self._noise.scale, random=source)[0] > self.threshold)

    def probability(self, distance: int) -> float:
        """Return the chance of passing, as a float."""
        far = min(max(distance, 0), MOST)
        if self.kind == "optimal":
            table = self._table.thresholds
            return float(table[far + 1]) / 2.0**64 if far + 1 < table.size else 1.0
        if self.kind == "laplace":
            short = int(self.threshold) - far
            with working_precision():
                if short >= 1:
                    return float(chance_of_showing(self._noise, short, Lonely(1, 0)).mid())
                return float((1 - chance_of_showing(self._noise, 1 - short, Lonely(1, 0))).mid())
        # What is rounded to a grid exceeds the threshold from half a step below the first point beyond it.
        grid = math.ldexp(1.0, grid_exponent(self._noise.scale))
        least = (math.floor(self.threshold / grid) + 0.5) * grid
        beyond = (least - far) / self._noise.scale
        return 0.5 * math.exp(-beyond) if beyond > 0 else 1.0 - 0.5 * math.exp(beyond)

    def cost(self, what: str) -> Cost:
        """Return what the test costs: the (epsilon, delta) that it was made for."""
        return Cost(
            what,
            Approximate(written_below(self.epsilon), written_below(self.delta)),
            self.epsilon,
            self.delta,
        )

    def told(self) -> str:
        """Return the test in words."""
        amounts = f"epsilon {to_float(self.epsilon):.12g}, delta {to_float(self.delta):.12g}"
        half = f"a distance of {self.threshold:.6g} passes with probability {self.probability(int(self.threshold)):.3g}"
        return f"test: {self.kind}, {amounts}; {half}"


def pass_probability(
    distance: Annotated[Real, _DISTANCE], epsilon: Epsilon, delta: Delta, *, test: Test = "optimal"
) -> float:
    """Return the chance that a distance to instability passes a test, for choosing parameters beforehand.

    Guarantee
        None is needed: no data are involved.

    Parameters
    ----------
    distance
        How many rows can change before the value is at risk; rounded down.
    epsilon, delta
        Of the test.
    test
        ``"optimal"``, ``"laplace"`` or ``"book"``, as for `dpfast.release_if_stable`.

    Returns
    -------
    float
        The chance; delta at most for distance 0.

    Raises
    ------
    ParameterError
        An argument is not as above.

    References
    ----------
    Dwork, Roth (2014), proposition 7.2. Desfontaines, Voss, Gipson, Mandayam (2022), theorem 1.

    Examples
    --------
    >>> [round(pass_probability(d, 1.0, 1e-6, test=test), 6) for d in (5, 13) for test in ("book", "optimal")]
    [7.4e-05, 0.000234, 0.221117, 0.699887]

    """
    far = _DISTANCE.read("distance", distance)
    chosen = read_test(test, budget_units(epsilon, "epsilon"), read_delta(delta))
    return chosen.probability(int(min(far, float(MOST))))


def distance_to_pass(miss: Annotated[Real, _MISS], epsilon: Epsilon, delta: Delta, *, test: Test = "optimal") -> int:
    """Return the least distance to instability that passes a test with probability at least 1 - ``miss``.

    Guarantee
        None is needed: no data are involved.

    Parameters
    ----------
    miss
        A number above 0 and below 1.
    epsilon, delta, test
        As for `pass_probability`.

    Returns
    -------
    int
        With ``"book"`` it is (ln(1 / delta) + ln(1 / (2 miss))) / epsilon, rounded up.

    Raises
    ------
    ParameterError
        An argument is not as above.

    References
    ----------
    Dwork, Roth (2014), proposition 7.2.

    Examples
    --------
    >>> distance_to_pass(0.05, 1.0, 1e-6), distance_to_pass(0.05, 1.0, 1e-6, test="book")
    (15, 17)

    """
    rare = _MISS.read("miss", miss)
    chosen = read_test(test, budget_units(epsilon, "epsilon"), read_delta(delta))
    low, high = -1, max(1, int(chosen.threshold))
    while chosen.probability(high) < 1.0 - rare:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if chosen.probability(middle) < 1.0 - rare else (low, middle)
    return high
