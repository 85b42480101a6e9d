"""Laws of finitely many outputs: the simplex, the hockey-stick divergence, the privacy loss. Nothing is sampled.

Every probability is a ball. Whole numbers, Fractions and Decimals are exact. A float stands for a number that it may
miss by a relative `FLOAT_ERROR`, as what is computed in a few steps does; so that no law is said to break a promise
because of rounding.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dpfast.arguments import Number, Real, Special, is_real, no_numbers
from dpfast.errors import ParameterError, Words
from dpfast.exact.balls import as_written, ball, float_above, working_precision

__all__ = [
    "CLAIMED_DELTA",
    "CLAIMED_EPSILON",
    "ClaimedDelta",
    "ClaimedEpsilon",
    "FinitePair",
    "hockey_stick_divergence",
    "privacy_loss",
    "read_exactly",
    "read_pair",
]

FLOAT_ERROR = Fraction(1, 2**40)

CLAIMED_EPSILON = Number(0, 10**6, mend="write for example {name}=1.0")
CLAIMED_DELTA = Number(0, 1, below=True, mend="write for example {name}=1e-6, or leave it out")

#: Amounts that somebody claims: 0 too, of which no budget is made.
ClaimedEpsilon: TypeAlias = Annotated[Real, CLAIMED_EPSILON]
ClaimedDelta: TypeAlias = Annotated[Real, CLAIMED_DELTA]

_MEND = 'write for example {"yes": 0.75, "no": 0.25}'


def _wrong_laws() -> Iterator[object]:
    yield from no_numbers()
    yield from ({}, (), [], [0.5], [0.5, 0.6], [1.5, -0.5], {"a": 0.5}, {"a": math.nan}, {"a": "1"}, ["1"], [True])
    yield from (np.ones((2, 2)) / 4, [Fraction(1, 3), Fraction(1, 3)], "10", [math.inf], [1, 10**400], {1, 2})


LAW = Special(_wrong_laws)
#: Probabilities by output, or in a list, the outputs being 0, 1, 2, ...
Law: TypeAlias = Annotated[Mapping[Any, Real] | Sequence[Real] | NDArray[Any], LAW]


def read_exactly(declared: Number, name: str, given: object) -> Fraction:
    """Return a number that was claimed, a float as the decimal that denotes it."""
    number = declared.read_exactly(name, given)
    return as_written(float(number)) if isinstance(given, (float, np.floating)) else number


class FinitePair:
    """Two laws over the same outputs, as balls.

    Attributes
    ----------
    outputs
        Those that either law gives.
    first, second
        Their probabilities.

    """

    def __init__(self, first: dict[Hashable, arb], second: dict[Hashable, arb]) -> None:
        self.outputs = list(dict.fromkeys([*first, *second]))
        self.first = [first.get(output, arb(0)) for output in self.outputs]
        self.second = [second.get(output, arb(0)) for output in self.outputs]

    @property
    def reverse(self) -> FinitePair:
        """The same pair with its laws exchanged."""
        turned = FinitePair({}, {})
        turned.outputs, turned.first, turned.second = self.outputs, self.second, self.first
        return turned

    def divergence(self, epsilon: arb) -> arb:
        """Return the hockey-stick divergence, sum max(0, P - exp(epsilon) Q)."""
        factor, total = epsilon.exp(), arb(0)
        for p, q in zip(self.first, self.second, strict=True):
            total += (p - factor * q).max(arb(0))
        return total

    def likely_outputs(self) -> list[int]:
        """Return the places of all outputs, those first that the first law favours most."""
        ratios = [float(p.mid()) / max(float(q.mid()), 5e-324) for p, q in zip(self.first, self.second, strict=True)]
        return sorted(range(len(ratios)), key=lambda place: -ratios[place])


def read_pair(first: object, second: object, names: tuple[str, str]) -> FinitePair:
    """Return two laws, each in the simplex.

    Raises
    ------
    ParameterError
        A law is none: its probabilities are no numbers of at least 0 whose sum is 1.

    """
    return FinitePair(_read_law(names[0], first), _read_law(names[1], second))


def _read_law(name: str, given: Any) -> dict[Hashable, arb]:
    allowed = "a law: a mapping from outputs to probabilities, or a list of probabilities"
    if isinstance(given, np.ndarray) and given.ndim == 1:
        given = given.tolist() if given.dtype.kind in "iuf" else None
    if isinstance(given, Sequence) and not isinstance(given, (str, bytes)):
        given = dict(enumerate(given))
    if not isinstance(given, Mapping) or not given:
        raise ParameterError(name, Words(f"a {type(given).__name__}"), allowed, _MEND)
    law: dict[Hashable, arb] = {}
    total, exact = arb(0), True
    for output, probability in given.items():
        if not is_real(probability) or not 0 <= probability <= 1:
            raise ParameterError(name, probability, "a law, each of whose probabilities is from 0 to 1", _MEND)
        if isinstance(probability, (float, np.floating)):
            value = ball(Fraction(float(probability)))
            law[output] = value + arb(0, float_above(value * ball(FLOAT_ERROR)))
            exact = False
        else:
            law[output] = ball(Fraction(probability))
        total += law[output]
    if exact:
        missing = 1 - sum((Fraction(p) for p in given.values()), Fraction(0))
        wrong = missing != 0
    else:
        # The sum of many floats is off by more than one of them.
        wrong = not abs(total.mid() - 1) <= ball(FLOAT_ERROR) * (1 + len(law))
    if wrong:
        raise ParameterError(name, Words(f"one of sum {float(total.mid()):.12g}"), "a law, whose sum is 1", _MEND)
    return law


def hockey_stick_divergence(p: Law, q: Law, epsilon: ClaimedEpsilon) -> float:
    """Return the least delta with which one law is within exp(epsilon) of another: sum max(0, P - exp(epsilon) Q).

    Guarantee
        None: the laws are functions of the data, and so is the divergence. A mechanism is (epsilon,
        delta)-differentially private if and only if, for all neighbours, this is at most delta in both directions.

    Parameters
    ----------
    p, q
        Two laws of finitely many outputs: mappings from outputs to probabilities, or lists of probabilities. What a
        mapping leaves out has probability 0. Fractions, Decimals and whole numbers are exact; a float may be off by a
        relative 2**-40. The sum is 1.
    epsilon
        A number from 0 to 1e6.

    Returns
    -------
    float
        The divergence of p from q, rounded up; with floats, the largest that they may stand for.

    Raises
    ------
    ParameterError
        A law has a probability below 0 or a sum that is not 1, or epsilon is out of range.

    References
    ----------
    Dwork, Roth (2014), definition 2.4. Barthe, Olmedo (2013), for the name Balle, Barthe, Gaboardi (2018).

    Examples
    --------
    >>> from fractions import Fraction
    >>> yes, no = [Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]
    >>> hockey_stick_divergence(yes, no, 0), hockey_stick_divergence(yes, no, 1.0986122887)
    (0.5, 0.0)

    """
    claimed = read_exactly(CLAIMED_EPSILON, "epsilon", epsilon)
    with working_precision():
        pair = read_pair(p, q, ("p", "q"))
        total = pair.divergence(ball(claimed))
        return _nearest_above(total)


def _nearest_above(x: arb) -> float:
    """Return a float not below a ball, the number itself where it is one."""
    nearest = float(x.mid())
    return nearest if x <= ball(nearest) else float_above(x)


def privacy_loss(p: Law, q: Law) -> dict[Any, float]:
    """Return the privacy loss of every output, ln(P / Q).

    Guarantee
        None: the laws are functions of the data, and so are the losses. A mechanism is (epsilon, 0)-differentially
        private if and only if, for all neighbours, no loss is above epsilon. Of (epsilon, delta) with delta above 0
        there is no such rule: a loss above epsilon may have more probability than delta.

    Parameters
    ----------
    p, q
        As for `hockey_stick_divergence`.

    Returns
    -------
    dict
        The loss of each output that p or q gives: positive where p is larger, infinite where only one of them gives it.

    Raises
    ------
    ParameterError
        As for `hockey_stick_divergence`.

    References
    ----------
    Dwork, Roth (2014), section 2.3.1.

    Examples
    --------
    >>> {output: round(loss, 4) for output, loss in privacy_loss([0.75, 0.25, 0], [0.25, 0.5, 0.25]).items()}
    {0: 1.0986, 1: -0.6931, 2: -inf}

    """
    with working_precision():
        pair = read_pair(p, q, ("p", "q"))
        losses: dict[Any, float] = {}
        for output, one, other in zip(pair.outputs, pair.first, pair.second, strict=True):
            if one.is_zero() and other.is_zero():
                continue
            if one.is_zero() or other.is_zero():
                losses[output] = math.inf if other.is_zero() else -math.inf
            else:
                losses[output] = float((one.mid() / other.mid()).log().mid())
        return losses
