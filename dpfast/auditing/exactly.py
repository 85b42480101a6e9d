"""The audit of a mechanism that gives its law."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, TypeAlias, TypeVar

from flint import arb
from numpy.typing import NDArray

from dpfast.arguments import Real, Special
from dpfast.auditing.laws import (
    CLAIMED_DELTA,
    CLAIMED_EPSILON,
    ClaimedDelta,
    ClaimedEpsilon,
    FinitePair,
    read_exactly,
    read_pair,
)
from dpfast.auditing.result import LawAudit
from dpfast.errors import ParameterError
from dpfast.exact.balls import ball, exact_lower, float_above, round_down, working_precision

__all__ = ["CALLABLE", "INPUT", "audit_law", "shown_outputs"]

_Data = TypeVar("_Data")

CALLABLE = Special(lambda: (1, 0.5, True, "laplace", b"x", [1], {"a": 1}, object(), math.nan))
#: What a mechanism is given: anything.
INPUT = Special(lambda: (), optional=True)
AnyLaw: TypeAlias = Mapping[Any, Real] | Sequence[Real] | NDArray[Any]

#: Of an event of many outputs, so many are named.
_NAMED = 5
#: So large an epsilon is no promise.
_NO_PROMISE = Fraction(10**7)


def audit_law(
    law: Annotated[Callable[[_Data], AnyLaw], CALLABLE],
    x: Annotated[_Data, INPUT],
    neighbour: Annotated[_Data, INPUT],
    epsilon: ClaimedEpsilon,
    delta: ClaimedDelta = 0.0,
) -> LawAudit:
    """Find the exact privacy of a mechanism on two neighbouring inputs, from the law of its outputs.

    Guarantee
        None: it is for checking mechanisms, on inputs that may be known to all. What is returned holds with
        certainty: every figure is enclosed by balls, whose ends are its lower and upper bounds. It concerns this
        pair: a mechanism is private if all pairs of neighbours pass.

    Parameters
    ----------
    law
        ``law(x)`` gives the law of the outputs on x: a mapping from outputs to probabilities, or a list of
        probabilities. Fractions are exact; a float may be off by a relative 2**-40.
    x, neighbour
        Two neighbouring inputs.
    epsilon, delta
        The claim: numbers from 0 to 1e6, and from 0 to below 1.

    Returns
    -------
    LawAudit
        With ``epsilon_lower``, ``epsilon_upper``, ``delta_lower``, ``delta_upper``, ``event``, ``passed`` and
        ``explain()``. A claim that is true or false by less than the rounding of floats passes.

    Raises
    ------
    ParameterError
        Probabilities are below 0 or have another sum than 1, or a claim is out of range.

    References
    ----------
    Dwork, Roth (2014), definition 2.4.

    Examples
    --------
    >>> from fractions import Fraction
    >>> def coins(bit: int) -> dict[str, Fraction]:
    ...     return {"yes": Fraction(1 + 2 * bit, 4), "no": Fraction(3 - 2 * bit, 4)}
    >>> found = audit_law(coins, 0, 1, epsilon=1.0)
    >>> found.passed, round(found.epsilon_lower, 6), round(found.delta_lower, 6)
    (False, 1.098612, 0.07043)
    >>> audit_law(coins, 0, 1, epsilon=1.1).passed
    True

    """
    claimed, allowed = _read_claim(epsilon, delta)
    if not callable(law):
        raise ParameterError("law", law, "a function that gives the law of an input", "write for example law=my_law")
    with working_precision():
        pair = read_pair(law(x), law(neighbour), ("law(x)", "law(neighbour)"))
        sides = {"x": pair, "neighbour": pair.reverse}
        deltas = {side: one.divergence(ball(claimed)) for side, one in sides.items()}
        lowers = {side: _epsilon_lower(one, allowed) for side, one in sides.items()}
        likelier = max(sides, key=lambda side: lowers[side][0])
        lower, chosen = lowers[likelier]
        least = max(exact_lower(one) for one in deltas.values())
        return LawAudit(
            epsilon=float(claimed),
            delta=float(allowed),
            epsilon_lower=_shown_below(lower),
            delta_lower=_shown_below(least),
            passed=not least > allowed,
            proven=all(_is_within(one, ball(claimed), allowed) for one in sides.values()),
            epsilon_upper=max(_epsilon_upper(one, allowed, lower) for one in sides.values()),
            delta_upper=max(float_above(one) for one in deltas.values()),
            event=shown_outputs([repr(pair.outputs[place]) for place in chosen]),
            likelier=likelier,
        )


def _read_claim(epsilon: object, delta: object) -> tuple[Fraction, Fraction]:
    return read_exactly(CLAIMED_EPSILON, "epsilon", epsilon), read_exactly(CLAIMED_DELTA, "delta", delta)


def _shown_below(x: Fraction | float) -> float:
    if x <= 0:
        return 0.0
    return math.inf if x == math.inf else round_down(Fraction(x))


def _epsilon_lower(pair: FinitePair, delta: Fraction) -> tuple[Fraction | float, list[int]]:
    """Return the largest ln((P(S) - delta) / Q(S)) over sets of the outputs that P favours most, and that set.

    Whatever S is, no smaller epsilon is true with this delta.
    """
    ordered = pair.likely_outputs()
    best: Fraction | float = Fraction(0)
    size, first, second = 1, arb(0), arb(0)
    for count, place in enumerate(ordered, 1):
        first, second = first + pair.first[place], second + pair.second[place]
        left = first - ball(delta)
        if not left > 0:
            continue
        found = _log_below(left, second)
        if found > best:
            best, size = found, count
    return best, ordered[:size]


def _log_below(above: arb, below: arb) -> Fraction | float:
    """Return the logarithm of a ratio, rounded down; 0 where the divisor may be 0 or not."""
    if below.is_zero():
        return math.inf
    return exact_lower((above / below).log()) if below > 0 else Fraction(0)


def _epsilon_upper(pair: FinitePair, delta: Fraction, lower: Fraction | float) -> float:
    """Return an epsilon that is certified to be true with this delta, next to the lower bound."""
    if lower == math.inf:
        return math.inf
    step = Fraction(1, 2**60)
    epsilon = max(Fraction(0), Fraction(lower))
    while epsilon < _NO_PROMISE:
        if _is_within(pair, ball(epsilon), delta):
            return float_above(ball(epsilon))
        epsilon += step
        step *= 2
    return math.inf


def _is_within(pair: FinitePair, epsilon: arb, delta: Fraction) -> bool:
    if delta == 0:
        # The divergence of a ball that only touches 0 is above 0: each output is compared by itself.
        factor = epsilon.exp()
        return all(
            bool(p <= factor * q) or (p.is_zero() and q.is_zero()) for p, q in zip(pair.first, pair.second, strict=True)
        )
    return bool(pair.divergence(epsilon) <= ball(delta))


def shown_outputs(outputs: list[str], more: int = 0) -> str:
    """Return an event of some outputs in words, the first few named."""
    count = len(outputs) + more
    named = [one if len(one) <= 60 else f"{one[:57]}..." for one in outputs[:_NAMED]]
    if count == 1:
        return f"output is {named[0]}"
    rest = ", ..." if count > len(named) else ""
    return f"output is one of {count:,}: {', '.join(named)}{rest}"
