"""Bounds on regret, and the eta that a privacy budget buys (Dwork, Roth 2014, section 11.2).

Regret is the average loss of what was played less that of the best single expert, after a number of rounds whose
losses lie in [0, 1]. All bounds hold for k experts and for any losses, even ones chosen after seeing earlier plays.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

from dpfast.accounting.accountants.accountant import checked_delta
from dpfast.accounting.accountants.zcdp import largest_rho
from dpfast.accounting.budget import DELTA, EPSILON
from dpfast.arguments import Choice, Number, Real, Whole
from dpfast.errors import ParameterError
from dpfast.exact.amounts import UNITS_PER_ONE, budget_units
from dpfast.exact.balls import ball, float_above, working_precision

__all__ = [
    "best_eta",
    "likely_regret_bound",
    "private_eta",
    "private_regret_bound",
    "regret_bound",
    "rounds_for_regret",
]

EXPERTS, ROUNDS = Whole(2, 2**40), Whole(1, 2**63)
ETA = Number(0, above=True, optional=True)
_REGRET, _METHOD = replace(ETA, optional=False), Choice(("bounded_range", "advanced"))
#: A probability of failure.
BETA = Number(0, 1, above=True, below=True, mend="write for example {name}=0.05")

Experts: TypeAlias = Annotated[int, EXPERTS]
Rounds: TypeAlias = Annotated[int, ROUNDS]
Eta: TypeAlias = Annotated[Real | None, ETA]
Beta: TypeAlias = Annotated[Real, BETA]
Epsilon: TypeAlias = Annotated[Real, EPSILON]
Delta: TypeAlias = Annotated[Real, DELTA]


def best_eta(experts: Experts, rounds: Rounds) -> float:
    """Return the eta that makes `regret_bound` least: sqrt(ln k / T).

    Examples
    --------
    >>> round(best_eta(100, 10_000), 8)
    0.02145966

    """
    return math.sqrt(math.log(EXPERTS.read("experts", experts)) / ROUNDS.read("rounds", rounds))


def regret_bound(experts: Experts, rounds: Rounds, eta: Eta = None) -> float:
    """Return a bound on the expected regret: eta + ln k / (eta T), at `best_eta` 2 sqrt(ln k / T).

    Theorem 11.1. (With losses in [0, 1] eta / 8 could stand for eta, by Hoeffding's lemma.)

    Examples
    --------
    >>> round(regret_bound(100, 10_000), 7)
    0.0429193

    """
    rate = best_eta(experts, rounds) if eta is None else ETA.read("eta", eta)
    return rate + math.log(EXPERTS.read("experts", experts)) / (rate * ROUNDS.read("rounds", rounds))


def rounds_for_regret(experts: Experts, regret: Annotated[Real, _REGRET]) -> int:
    """Return after how many rounds `regret_bound` is at most a given one: 4 ln k / regret**2, rounded up.

    Examples
    --------
    >>> rounds_for_regret(100, 0.05)
    7369

    """
    return math.ceil(4.0 * math.log(EXPERTS.read("experts", experts)) / _REGRET.read("regret", regret) ** 2)


def likely_regret_bound(experts: Experts, rounds: Rounds, eta: Annotated[Real, _REGRET], beta: Beta) -> float:
    """Return a bound on the regret that holds with probability at least 1 - beta.

    It is `regret_bound` plus sqrt(ln(k / beta) / T): theorem 11.4, for the actual losses of what was played.

    Examples
    --------
    >>> round(likely_regret_bound(100, 10_000, best_eta(100, 10_000), beta=0.05), 5)
    0.07049

    """
    bound = regret_bound(experts, rounds, _REGRET.read("eta", eta))
    return bound + math.sqrt(math.log(experts / BETA.read("beta", beta)) / rounds)


def private_regret_bound(experts: Experts, rounds: Rounds, epsilon: Annotated[Real, _REGRET], delta: Beta) -> float:
    """Return the bound of the theorem on private play: sqrt(128 ln(1/delta)) ln k / (epsilon sqrt T).

    Theorem 11.3, whose eta comes from advanced composition and whose proof needs epsilon**2 <= 32 ln(1/delta) ln k.
    `regret_bound` at the `private_eta` of today is several times smaller.

    Examples
    --------
    >>> round(private_regret_bound(100, 10_000, epsilon=0.5, delta=1e-6), 6)
    3.873148
    >>> round(regret_bound(100, 10_000, private_eta(10_000, epsilon=0.5, delta=1e-6)), 6)
    0.400726

    """
    log_experts = math.log(EXPERTS.read("experts", experts))
    log_delta = -math.log(BETA.read("delta", delta))
    largest = math.sqrt(32.0 * log_delta * log_experts)
    given = _REGRET.read("epsilon", epsilon)
    if not given <= largest:
        raise ParameterError("epsilon", epsilon, f"at most {largest:.6g}, as the theorem supposes", "use regret_bound")
    return math.sqrt(128.0 * log_delta) * log_experts / (given * math.sqrt(ROUNDS.read("rounds", rounds)))


def private_eta(
    rounds: Rounds,
    epsilon: Epsilon,
    delta: Delta = 0,
    *,
    method: Annotated[Literal["bounded_range", "advanced"], _METHOD] = "bounded_range",
) -> float:
    """Return the largest eta at which all plays together are (epsilon, delta)-private, rounded down.

    Guarantee
        T plays, each with probability proportional to exp(-eta * the expert's loss so far), are
        (epsilon, delta)-differentially private if neighbours differ in the losses of one round, which lie in [0, 1].
        A play is the exponential mechanism at 2 eta: of bounded range 2 eta, and so (eta**2 / 2)-zCDP, however the
        losses depend on earlier plays (Dong, Durfee, Rogers 2020; Cesar, Rogers 2021). Their sum is converted at the
        best order (Canonne, Kamath, Steinke 2020). Few rounds are better off with T * 2 eta <= epsilon, and get that.

    Parameters
    ----------
    rounds
        How many plays, T.
    epsilon, delta
        The budget of them all. With delta 0 plain composition is all there is.
    method
        "advanced" for theorem 11.2: epsilon / sqrt(32 T ln(1/delta)), for an epsilon below 1 and a delta above 0. It
        is 4.85 times smaller in the example.

    Raises
    ------
    ParameterError
        A parameter is not as above, or eta would be below 5e-19, the least that can be charged.

    References
    ----------
    Dwork, Roth (2014), theorem 11.2.

    Examples
    --------
    >>> round(private_eta(10_000, epsilon=0.5, delta=1e-6), 8)
    0.00115252
    >>> round(private_eta(10_000, epsilon=0.5, delta=1e-6, method="advanced"), 9)
    0.0002378

    """
    rounds = ROUNDS.read("rounds", rounds)
    budget = budget_units(epsilon, "epsilon")
    budget_units(delta, "delta")
    slack = checked_delta(delta)
    # Shares are whole units, as ledgers charge them play by play; and step = 2 eta is what a play is charged for.
    if _METHOD.read("method", method) == "advanced":
        if not (budget < UNITS_PER_ONE and slack > 0):
            raise ParameterError("method", method, "bounded_range unless epsilon is below 1 and delta above 0")
        with working_precision():
            log_delta = Fraction(float_above(-ball(slack).log()))
        step = _root_below(Fraction(budget, UNITS_PER_ONE) ** 2 / (8 * rounds * log_delta))
    else:
        plain = Fraction(budget // rounds, UNITS_PER_ONE)
        rho = Fraction(largest_rho(Fraction(budget, UNITS_PER_ONE), slack) // rounds, UNITS_PER_ONE)
        step = max(_below(plain), _root_below(8 * rho))
    if as_decimal(step) * UNITS_PER_ONE < 1:
        raise ParameterError("rounds", rounds, "few enough that eta is at least 5e-19", "or give more epsilon")
    return step / 2.0


def as_decimal(eta: float) -> Fraction:
    """Return a float as the decimal that it is written as, which is what mechanisms and events read."""
    return Fraction(Decimal(repr(eta)))


def _below(x: Fraction) -> float:
    """Return a float, about the largest, that is not above x even when it is read as a decimal."""
    number = float(x)
    while as_decimal(number) > x:
        number = math.nextafter(number, 0.0)
    return number


def _root_below(x: Fraction) -> float:
    """Return a float, about the largest, whose square is not above x even when it is read as a decimal."""
    root = math.sqrt(float(x))
    while as_decimal(root) ** 2 > x:
        root = math.nextafter(root, 0.0)
    return root
