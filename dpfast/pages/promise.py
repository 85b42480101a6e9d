"""What a guarantee means for one person, in sentences that take no mathematics to read."""

from __future__ import annotations

import math

from dpfast.accounting.budget import Amounts, ConcentratedAmounts, ShownAmounts
from dpfast.accounting.budget import amount_text as rounded
from dpfast.showing import percent_above

__all__ = ["amount_text", "chance_words", "guess_bound", "promise"]

#: Above it, a promise is said to be weak.
_WEAK = 0.95


def guess_bound(spent: ShownAmounts) -> float:
    """Return how often somebody is right at most who tells two neighbouring data apart, each being as likely.

    Guarantee
        Who sees all that was released guesses which of the two it was made of, and is right with probability
        (1 + T) / 2 at most, T the total variation between both laws. Under (epsilon, delta)-differential privacy T is
        at most (e**epsilon - 1 + 2 delta) / (e**epsilon + 1) (Kairouz, Oh, Viswanath 2015, theorem 2.1: the region of
        errors). Under rho-zCDP the Kullback-Leibler divergence is at most rho, and so T at most sqrt(rho / 2) (Pinsker)
        and sqrt(1 - e**-rho) (Bretagnolle, Huber); apart from an event of probability delta, T is at most delta larger.

    Parameters
    ----------
    spent
        Amounts of (epsilon, delta), or of (rho, delta).

    Examples
    --------
    >>> round(guess_bound(Amounts(1.0, 0.0)), 4), round(guess_bound(ConcentratedAmounts(0.5, 0.0)), 4)
    (0.7311, 0.75)

    """
    if isinstance(spent, Amounts):
        small = math.exp(-spent.epsilon)
        return min(1.0, (1.0 + spent.delta * small) / (1.0 + small))
    if isinstance(spent, ConcentratedAmounts):
        apart = min(math.sqrt(spent.rho / 2), math.sqrt(-math.expm1(-spent.rho)))
        return min(1.0, (1.0 + apart + spent.delta) / 2)
    return 1.0


def promise(spent: ShownAmounts, one: str, neighbors: str | None, what: str = "this page") -> list[str]:
    """Return what is promised, a sentence or two each.

    Parameters
    ----------
    spent
        What was charged.
    one
        What a privacy unit is, such as "one row".
    neighbors
        How neighbouring data differ.
    what
        What is read.

    Examples
    --------
    >>> promise(Amounts(1.0, 0.0), "one row", "add_remove")[0]
    'Suppose somebody knows all the data but for one row, and would have to toss a coin over whether it is there at \
all. After reading this page, they guess right at most 73.2% of the time instead of 50%.'

    """
    kinds = {"replace": "over which of two versions of it is the true one"}
    toss = kinds.get(neighbors or "", "over whether it is there at all")
    bound = guess_bound(spent)
    least = percent_above(bound)
    right = "nearly always" if bound > 0.999 else f"at most {least} of the time"
    lines = [
        f"Suppose somebody knows all the data but for {one}, and would have to toss a coin {toss}. After reading "
        f"{what}, they guess right {right} instead of 50%."
    ]
    if bound > _WEAK:
        lines[0] += " That is a weak promise: the budget is large."
    if isinstance(spent, Amounts):
        more = f", plus {chance_words(spent.delta)}" if spent.delta else ""
        lines.append(
            f"In other words, {one} changes the chance of any set of results by at most a factor of "
            f"{_factor(spent.epsilon)}{more}: differential privacy with {_exactly(spent)}."
        )
    else:
        rare = f", apart from a chance of {chance_words(spent.delta)}" if spent.delta else ""
        lines.append(f"The mathematics behind it: zero-concentrated differential privacy with {_exactly(spent)}{rare}.")
    lines.append(
        "It holds whatever else they know, whatever they compute, and for all time. What is made of these figures "
        "later takes nothing away from it."
    )
    return lines


def _exactly(spent: ShownAmounts) -> str:
    if isinstance(spent, Amounts):
        return f"epsilon {amount_text(spent, 'epsilon')} and delta {amount_text(spent, 'delta')}"
    return f"rho {amount_text(spent, 'rho')}" + f" and delta {amount_text(spent, 'delta')}" * (spent.delta > 0)


def _factor(epsilon: float) -> str:
    """Return e**epsilon with three digits, rounded up."""
    if epsilon > 25:
        return f"e to the power of {rounded(epsilon, digits=6)}"
    factor = math.exp(epsilon)
    digits = 2 - math.floor(math.log10(factor))
    above = math.ceil(factor * 10.0**digits) / 10.0**digits
    return f"{above:,.{max(digits, 0)}f}"


def chance_words(delta: float) -> str:
    """Return how often something of a probability happens, rounded up.

    Examples
    --------
    >>> chance_words(1e-6), chance_words(3.3e-7)
    ('one in 1,000,000', 'one in 3,030,000')

    """
    times = 1 / delta * (1 + 1e-12)
    if times < 10:
        return percent_above(delta)
    digits = math.floor(math.log10(times)) - 2
    return f"one in {math.floor(times / 10.0**digits) * 10.0**digits:,.0f}"


def amount_text(amounts: ShownAmounts, name: str) -> str:
    """Return an amount in digits, or in words where it has no end.

    Examples
    --------
    >>> amount_text(Amounts(0.5, 1e-6), "delta"), amount_text(Amounts(math.inf, 0.0), "epsilon")
    ('1e-06', 'no limit')

    """
    return "no limit" if math.isinf(getattr(amounts, name)) else amounts.text(name)
