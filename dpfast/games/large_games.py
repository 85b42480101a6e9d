"""An equilibrium for a crowd: what each kind of person had best do, suggested so that asking to be told pays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.accounting.budget import EPSILON, Budget
from dpfast.arguments import Number, Real, Special
from dpfast.columns.declarations import TypedColumn, WholeColumn, as_array
from dpfast.columns.private import borrow_integers
from dpfast.errors import ParameterError, Words
from dpfast.exact.amounts import budget_units, to_float
from dpfast.games.punishing import count_numbers
from dpfast.ledger import Charge
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer, read_payment
from dpfast.mechanisms.noise.integer_noise import IntegerNoise, laplace_of_epsilon
from dpfast.randomness import Random, random_source
from dpfast.showing import Shown

__all__ = ["Equilibrium", "select_equilibrium"]

MISS = Number(0, 1, above=True, below=True, mend="write for example {name}=0.05")
_MOST_RULES = 2**16


def _no_payoffs() -> Iterator[object]:
    yield from (1, 0.5, True, "0", object(), len, [], [0.5] * 17, np.zeros((2, 2)), np.zeros((2, 2, 3)), [[["a"]]])
    yield from (np.full((2, 2, 2), np.nan), np.full((2, 2, 2), np.inf), np.zeros((2, 0, 0)), np.zeros((17, 2, 2)))
    yield from (np.full((2, 2, 2), 1e101), np.zeros((0, 2, 2)))


#: What an action is worth to a type against each action of another person: types x actions x others' actions.
Payoffs: TypeAlias = Annotated[TypedColumn | Sequence[Any], Special(_no_payoffs)]


@dataclass(frozen=True, repr=False)
class Equilibrium(Shown):
    """What each type is to do, and how good a suggestion that is.

    Attributes
    ----------
    actions
        The action for each type (int64). It is public; each person reads her own there.
    regret
        The most that anybody would gain by another action, in a crowd as it was measured: 0 in an equilibrium.

    """

    actions: NDArray[np.int64]
    regret: float
    _range: float = field(repr=False)
    _drift: float = field(repr=False)
    _people: float = field(repr=False)
    _epsilon: float = field(repr=False)
    _noise: IntegerNoise = field(repr=False)

    def largest_regret(self, miss: Annotated[Real, MISS] = 0.05) -> float:
        """Return what nobody gains more than by another action: with probability at least 1 - ``miss``."""
        allowed = MISS.read("miss", miss) / len(self.actions)
        moved = float(len(self.actions) * self._noise.half_width(allowed))
        left = max(self._people - moved, 1.0)
        return min(self.regret + self._drift * moved / self._people + self._drift / left, self._range)

    def incentive(self, miss: Annotated[Real, MISS] = 0.05) -> float:
        """Return what nobody gains more than by any false report and any other action, in expectation.

        To report the truth and to follow the suggestion is so good an approximate equilibrium: what a report changes is
        tanh(epsilon / 2) of all that is at stake at most (the reference says 2 epsilon), and what the suggestion leaves
        is `largest_regret`, but for all that is at stake with probability ``miss``.
        """
        left = self.largest_regret(miss) + MISS.read("miss", miss) * self._range
        return min(math.tanh(self._epsilon / 2) * self._range + left, self._range)


def select_equilibrium(
    types: WholeColumn,
    payoffs: Payoffs,
    *,
    epsilon: Annotated[Real, EPSILON],
    ledger: Payer = None,
    dataset: OwnName = None,
    privacy_unit: OwnName = None,
    random: Random = None,
) -> Equilibrium:
    """Suggest to each type of a large crowd what to do, so that nobody gains much by a lie or by disobedience.

    Guarantee
        (epsilon, 0)-differentially private for ``actions`` and whatever else is in the result; neighbours differ in one
        person's type, and the number of people is public. How many there are of each type is measured with Laplace
        noise of scale 2 / epsilon, since one person moves two counts by 1; the rest is made of that. What a person is
        told follows from the result and her own type, so that all others together learn nothing more of her than that.

    Parameters
    ----------
    types
        Each person's type, an integer column from 0 on. A null, and a number of no type, is in no count; nor is what in
        a list is no whole number.
    payoffs
        What an action is worth to a type if all others take one action: an array of types x actions x others' actions,
        public, numbers up to 1e100. In a crowd it is worth the average over what the others do.
    epsilon
        The budget.
    ledger
        The budget that is charged before types are read, or None.
    dataset, privacy_unit
        What the ledger's guarantee is about; by default its own, or "data" and "row".
    random
        None for fresh keys from the operating system, or a `dpfast.testing.SeededRandom` in tests.

    Returns
    -------
    Equilibrium
        ``actions``, ``regret``, ``largest_regret`` and ``incentive``.

    Raises
    ------
    ParameterError
        An argument is not as above, or there are more than 2**16 ways to give an action to each type.
    ColumnError
        The types are no column of integers.
    BudgetExceededError, LedgerError
        The charge does not fit, or the ledger is about something else.

    Notes
    -----
    All rules that give each type an action are tried against the measured crowd. Of those with the least regret, the
    one that is worth most to all together is taken. With epsilon about n**(-1/4) for n people the incentive is about
    n**(-1/4) of what is at stake.

    References
    ----------
    Kearns, Pai, Roth, Ullman (2014). Dwork, Roth (2014), section 10.2.2, whose beach and mountain are the example.

    Examples
    --------
    >>> from dpfast.testing import SeededRandom
    >>> beach_lover, mountain_lover = [[10, 0], [0, 5]], [[5, 0], [0, 10]]
    >>> crowd = [0] * 40_000 + [1] * 60_000
    >>> found = select_equilibrium(crowd, [beach_lover, mountain_lover], epsilon=0.05, random=SeededRandom(1))
    >>> found.actions, found.regret, round(found.incentive(miss=0.01), 2)
    (array([1, 1]), 0.0, 0.41)

    """
    worth = _read_payoffs(payoffs)
    kinds, actions = worth.shape[:2]
    if actions**kinds > _MOST_RULES:
        raise ParameterError("payoffs", Words(f"of {kinds} types and {actions} actions"), "of at most 2**16 rules")
    units = budget_units(epsilon, "epsilon")
    column = borrow_integers(types, "types", "number the types from 0 on")
    noise = laplace_of_epsilon(2, units)
    payment = read_payment(
        ledger, Budget("epsilon", units), random, neighbors="replace", dataset=dataset, privacy_unit=privacy_unit
    )
    source = random_source(random)
    payment.charge([Charge(units, 0, f"how many people there are of {kinds} types", noise.event)])
    measured = np.maximum(noise.add(count_numbers(column, kinds), source), 0).astype(np.float64)
    crowd = measured / measured.sum() if measured.any() else np.full(kinds, 1 / kinds)
    rules = np.indices((actions,) * kinds).reshape(kinds, -1).T
    # Of each rule: the shares of actions, what each action is worth to each type then, and what its own is.
    shares = np.zeros((len(rules), actions))
    for kind in range(kinds):
        shares[np.arange(len(rules)), rules[:, kind]] += crowd[kind]
    values = np.einsum("tab,rb->rta", worth, shares)
    own = np.take_along_axis(values, rules[:, :, None], axis=2)[:, :, 0]
    regrets = np.maximum((values.max(axis=2) - own).max(axis=1), 0.0)
    span = float(worth.max() - worth.min())
    good = regrets <= regrets.min() + 1e-12 * span
    best = int(np.flatnonzero(good)[(own @ crowd)[good].argmax()])
    differences = worth[:, :, None, :] - worth[:, None, :, :]
    return Equilibrium(
        rules[best].astype(np.int64),
        float(regrets[best]),
        span,
        float(np.ptp(differences, axis=3).max()),
        max(float(measured.sum()), 1.0),
        to_float(units),
        noise,
    )


def _read_payoffs(payoffs: Payoffs) -> NDArray[np.float64]:
    array = as_array(payoffs, "payoffs")
    if array.ndim != 3 or not array.size or array.shape[1] != array.shape[2] or array.dtype.kind not in "iuf":
        given = Words(f"of shape {array.shape} and type {array.dtype}")
        raise ParameterError("payoffs", given, "numbers for types x actions x actions of others")
    if not (np.abs(array) <= 1e100).all():
        raise ParameterError("payoffs", Words("not all from -1e100 to 1e100"), "numbers from -1e100 to 1e100")
    return array.astype(np.float64)
