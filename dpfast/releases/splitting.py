"""One budget for several queries: who gets how much of it, in whole units that never add up to more."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from dpfast.arguments import Real, Special
from dpfast.errors import ParameterError

__all__ = ["KEYS", "Split", "Splitting", "Stake", "portions", "read_split", "weights_of"]


def _no_splits() -> Iterator[object]:
    yield from (1, True, "", "EVEN", b"even", ["even"], "optimal:", {}, {"none such": 1}, {1: 1}, object())
    yield from (("optimal",), ("optimal", {}), ("optimal", "even"), ("even", {}), np.array(["even", "optimal"]))


#: How a split is written.
Splitting: TypeAlias = Annotated[
    Literal["even", "optimal"] | Mapping[str, Real] | tuple[Literal["optimal"], Mapping[str, Real]],
    Special(_no_splits),
]

#: The name of the selection of keys in a split; no query has it, being a parameter's.
KEYS = "keys"

_ALLOWED = '"even", "optimal", a weight above 0 for every query by its name, or ("optimal", {name: weight})'
_MEND = 'write for example split={"n": 1, "late": 3}'


@dataclass(frozen=True)
class Split:
    """How a budget is split.

    Attributes
    ----------
    rule
        ``"even"``: equal shares. ``"shares"``: shares in the proportion of the weights. ``"optimal"``: the
        shares for which the weighted sum of all variances is least.
    weights
        Of the queries, by name; 1 for those that it lacks.
    keys
        The weight of the selection of keys; None for the mean of the queries' shares, as if split evenly.

    """

    rule: Literal["even", "shares", "optimal"] = "even"
    weights: Mapping[str, Fraction] = field(default_factory=dict)
    keys: Fraction | None = None

    def __str__(self) -> str:
        written = ", ".join(f"{name} {float(weight):g}" for name, weight in self.weights.items())
        if self.rule == "even":
            return "even: the same share for each"
        if self.rule == "shares":
            keys = "" if self.keys is None else f", {KEYS} {float(self.keys):g}"
            return f"shares by weight: {written}{keys}"
        return "optimal: the least sum of variances, each in its query's own unit" + (
            f", weighing {written}" if written else ""
        )


@dataclass(frozen=True)
class Stake:
    """What a query has to do with one measure of a block, which is what a share of the budget is spent on.

    Attributes
    ----------
    query
        Its name.
    part
        How much of the query's weight goes to the block for this.
    sensitivity_squared
        Of the measure, in the query's own unit, for the noise that is planned: L1 or L2, squared, exactly.
    importance
        By how much an error of this measure, squared, counts in the query's.

    """

    query: str
    part: Fraction = Fraction(1)
    sensitivity_squared: Fraction = Fraction(1)
    importance: Fraction = Fraction(1)


def read_split(split: object, names: Sequence[str], *, selects: bool) -> Split:
    """Return a split of a budget between queries of these names, and the selection of keys if there is one.

    Raises
    ------
    ParameterError
        It is none, misses a query, names one that is not there, or has a weight that is no number above 0.

    Examples
    --------
    >>> print(read_split({"n": 1, "late": 3}, ["n", "late"], selects=False))
    shares by weight: n 1, late 3

    """
    if type(split) is str and split in ("even", "optimal"):
        return Split("even" if split == "even" else "optimal")
    if isinstance(split, Mapping):
        weights = _weights(split, [*names, KEYS] if selects else names)
        missing = [name for name in names if name not in weights]
        if missing:
            raise ParameterError(
                "split", dict(split), f"a weight for every query, also for {', '.join(map(repr, missing))}", _MEND
            )
        keys = weights.pop(KEYS, None)
        return Split("shares", weights, keys)
    if isinstance(split, tuple) and len(split) == 2 and type(split[0]) is str and split[0] == "optimal":
        return Split("optimal", _weights(split[1], names))
    raise ParameterError("split", split, _ALLOWED, _MEND)


def _weights(given: object, names: Sequence[str]) -> dict[str, Fraction]:
    if not isinstance(given, Mapping) or not given:
        raise ParameterError("split", given, _ALLOWED, _MEND)
    weights = {}
    for name, weight in given.items():
        if type(name) is not str or name not in names:
            raise ParameterError("split", name, f"made of {', '.join(map(repr, names))}", _MEND)
        number = _number(weight)
        if number is None:
            raise ParameterError("split", weight, f"a number above 0 for {name!r}, from 1e-30 to 1e30", _MEND)
        weights[name] = number
    return weights


def _number(weight: Any) -> Fraction | None:
    """Return a weight exactly, None for what is none: exact types only, since others may lie."""
    if isinstance(weight, np.generic) and weight.dtype.kind in "iuf":
        weight = weight.item()
    if type(weight) not in (int, float, Fraction, Decimal):
        return None
    if type(weight) in (float, Decimal) and not math.isfinite(weight):
        return None
    # Compared before the conversion, which of Decimal("1e999999") would be a number of as many digits.
    return Fraction(weight) if Fraction(1, 10**30) <= weight <= 10**30 else None


def weights_of(
    split: Split,
    paying: Sequence[Sequence[Stake]],
    free: Sequence[tuple[Sequence[int], Sequence[Stake]]] = (),
    *,
    adds: Literal["scales", "squares"],
) -> list[Fraction]:
    """Return the proportions in which measures share a budget.

    Parameters
    ----------
    split
        The rule.
    paying
        The stakes of queries in each measure that is paid for.
    free
        Measures that get what some others are paid, together: the places of these, and the stakes.
    adds
        What adds up to the budget: ``"scales"`` where a share is inverse to a noise's scale, as epsilon to that of
        Laplace noise; ``"squares"`` where it is inverse to the square, as rho to that of Gaussian noise.

    Notes
    -----
    By even shares and shares by weight a query's weight is divided evenly between its figures (a mean has two), and a
    figure's between the measures that it is made of. A measure that several queries need gets what all of them give;
    what is given to one that is free goes to those that pay for it, evenly.

    The optimal shares e_i minimise the sum of w_i V_i(e_i), sum e_i = e, where V_i is the variance and w_i the
    weight that the user gives to the query times the importance of the measure in it, added up over all who need it.
    At the minimum all derivatives are equal, w_i V_i'(e_i) = -lambda (Lagrange), and the V_i are convex, so it is the
    only one.

    - Scales, Laplace noise: V = 2 (D / e)**2, so 4 w_i D_i**2 / e_i**3 = lambda: e_i is proportional to
      (w_i D_i**2)**(1/3).
    - Squares, Gaussian noise: V is proportional to D**2 / e, so w_i D_i**2 / e_i**2 = lambda: e_i is proportional to
      sqrt(w_i) D_i. Laplace noise by rho has e**2 / 2 = rho but for terms of higher order, and so the same rule.

    A measure that is free has the sum F of some shares. Its derivative is the same for each of these, so that they keep
    their proportions to each other. With V_i = c_i / e_i**p, p = 2 or 1, they count together c / F**p, where
    c**(1 / (p + 1)) is the sum of their c_i**(1 / (p + 1)), and the free one's own c is added to that.

    The proportions are rounded to floats: shares are as exact as ever, only the optimum is missed by 1e-12 or so.

    Examples
    --------
    >>> paying = [[Stake("n")], [Stake("total", sensitivity_squared=Fraction(8**2))]]
    >>> [round(float(weight), 9) for weight in weights_of(Split("optimal"), paying, adds="scales")]
    [0.25, 1.0]

    """
    if split.rule != "optimal":
        weights = [_given(split, stakes) for stakes in paying]
        for places, stakes in free:
            for place in places:
                weights[place] += _given(split, stakes) / len(places)
        return weights
    logs = [_log(_costs(split, stakes)) for stakes in paying]
    largest, root = max(logs), 3 if adds == "scales" else 2
    shares = [math.exp((log - largest) / root) for log in logs]
    for places, stakes in free:
        alone = math.fsum(shares[place] for place in places)
        together = (alone**root + math.exp(_log(_costs(split, stakes)) - largest)) ** (1 / root)
        for place in places:
            shares[place] *= together / alone
    return [Fraction(share) for share in shares]


def _given(split: Split, stakes: Sequence[Stake]) -> Fraction:
    """Return what queries give to a measure by their weights."""
    return sum((split.weights.get(stake.query, Fraction(1)) * stake.part for stake in stakes), Fraction(0))


def _costs(split: Split, stakes: Sequence[Stake]) -> Fraction:
    """Return what the variance of a measure at a share of 1 counts for, up to a constant."""
    return sum(
        (
            split.weights.get(stake.query, Fraction(1)) * stake.importance * stake.sensitivity_squared
            for stake in stakes
        ),
        Fraction(0),
    )


def _log(x: Fraction) -> float:
    """Return the logarithm of a rational number that may overflow a float."""
    return math.log(x.numerator) - math.log(x.denominator)


def portions(total_units: int, weights: Sequence[Fraction]) -> list[int]:
    """Split whole units in proportion to weights.

    Guarantee
        The portions add up to the total, exactly: each is rounded down, and the units that this leaves, fewer
        than there are portions, go to those of the largest weights, one each.

    Parameters
    ----------
    total_units
        0 or more.
    weights
        One or more, not negative and not all 0.

    Examples
    --------
    >>> portions(10, [Fraction(1), Fraction(1), Fraction(1)]), portions(10, [Fraction(1), Fraction(3)])
    ([4, 3, 3], [2, 8])

    """
    if len(weights) == 1:
        return [total_units]
    whole = sum(weights)
    shares = [math.floor(total_units * weight / whole) for weight in weights]
    largest_first = sorted(range(len(weights)), key=lambda place: -weights[place])
    for place in largest_first[: total_units - sum(shares)]:
        shares[place] += 1
    return shares
