"""What it costs to make the truth worth telling: with some probability people are held to what they said.

Theorems 10.3 and 10.4, and the sharper constants of today.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Choice, Number, Real, Special, Whole
from dpfast.columns.declarations import TypedColumn, as_array
from dpfast.errors import ParameterError, Words
from dpfast.showing import Shown

__all__ = ["Punishment", "Reactions", "best_reactions", "commitment_gap", "punishing_parameters", "read_reactions"]

OUTCOMES = Whole(2, 2**40, mend="write for example {name}=9")
AGENTS = Whole(1, 2**53, mend="write for example {name}=1000000")
GAP = Number(0, 1, above=True, mend="write for example {name}=0.25")
STRENGTH = Number(0, 10**6, above=True, optional=True)
CONSTANTS = Choice(("sharp", "book"))
Constants: TypeAlias = Literal["sharp", "book"]


def _no_reactions() -> Iterator[object]:
    yield from (1, 0.5, True, "0", object(), len, [], [0.5] * 17, np.zeros((2, 2)), np.zeros((2, 0, 2)), [[["a"]]])
    yield from (np.full((2, 2, 2), np.nan), np.full((2, 2, 2), np.inf), np.full((2, 2, 2), 1.5), -np.ones((2, 2, 2)))


#: What each outcome and each reaction to it are worth to each type of agent, from 0 to 1: an array of three dimensions.
Reactions: TypeAlias = Annotated[TypedColumn | Sequence[Any], Special(_no_reactions)]


@dataclass(frozen=True)
class Punishment(Shown):
    """How often people must be held to their reports, and what that costs.

    Attributes
    ----------
    epsilon
        Of the exponential mechanism that is run otherwise.
    probability
        With which a random outcome is taken instead, and everybody made to react as their report says; rounded up.
    loss
        How far the mean utility of an agent falls short of the best outcome's, in expectation, at most: the theorem's
        guarantee for truthful reports, which are everybody's best. Above 1 it says nothing.

    """

    epsilon: float
    probability: float
    loss: float


def read_reactions(utilities: Reactions) -> NDArray[np.float64]:
    """Return utilities by type, outcome and reaction."""
    array = as_array(utilities, "utilities")
    if array.ndim != 3 or not array.size or array.dtype.kind not in "iuf":
        given = Words(f"of shape {array.shape} and type {array.dtype}")
        raise ParameterError("utilities", given, "numbers for types x outcomes x reactions")
    if not ((array >= 0) & (array <= 1)).all():
        raise ParameterError("utilities", Words("not all from 0 to 1"), "numbers from 0 to 1", "scale and shift them")
    return array.astype(np.float64)


def best_reactions(utilities: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the best reaction of each type to each outcome: the first of the best."""
    best: NDArray[np.int64] = utilities.argmax(axis=2)
    return best


def commitment_gap(utilities: Reactions) -> float:
    """Return how much an outcome can make every false report cost, if people must react as they said.

    For each type and each other one that might be pretended: the largest loss, over outcomes, by reacting as the other
    would. The gap is the least of these, over pairs. Where it is 0, no random outcome punishes every lie.

    Parameters
    ----------
    utilities
        What each outcome and reaction are worth to each type: from 0 to 1, types x outcomes x reactions. They are
        public; all agents have the same.

    Raises
    ------
    ParameterError
        The utilities are no such numbers.

    References
    ----------
    Nissim, Smorodinsky, Tennenholtz (2012). Dwork, Roth (2014), definition 10.5 and lemma 10.2.

    Examples
    --------
    >>> commitment_gap([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 0.8], [0.5, 0.5]]])
    0.8

    """
    array = read_reactions(utilities)
    reactions = best_reactions(array)
    types = np.arange(len(array))
    least = math.inf
    for own in types:
        # What the outcomes are worth to this type with the reactions of all types.
        reached = np.take_along_axis(array[own], reactions.T, axis=1)
        losses = (reached[:, [own]] - reached).max(axis=0)
        least = min(least, float(losses[types != own].min(initial=math.inf)))
    return least if math.isfinite(least) else 1.0


def punishing_parameters(
    outcomes: Annotated[int, OUTCOMES],
    agents: Annotated[int, AGENTS],
    gap: Annotated[Real, GAP],
    *,
    epsilon: Annotated[Real | None, STRENGTH] = None,
    constants: Annotated[Constants, CONSTANTS] = "sharp",
) -> Punishment:
    """Return how often false reports must be punished, so that the truth is everybody's best report.

    Guarantee
        Of the truth: an agent whose utilities lie between 0 and 1 and differ by the gap gains nothing by a false
        report, whatever the others report. A selection of bounded range epsilon gives her tanh(epsilon / 4) more at
        most, with probability 1 - q; held to it at a random outcome she loses gap / outcomes at least, with
        probability q. So q is taken from (1 - q) tanh(epsilon / 4) <= q gap / outcomes, rounded up.

    Parameters
    ----------
    outcomes, agents
        How many there are.
    gap
        What a false report costs who is held to it: `commitment_gap`.
    epsilon
        Of the selection. By default the one that makes the loss about least.
    constants
        "sharp"; or "book": q = 2 epsilon outcomes / gap, and by default
        epsilon = sqrt(gap ln(outcomes) / (2 outcomes agents)). It is larger by a factor of 8 for the same epsilon.

    Returns
    -------
    Punishment
        ``epsilon``, ``probability`` and ``loss``.

    Raises
    ------
    ParameterError
        An argument is not as above, or by the book's constants the probability is above 1.

    Notes
    -----
    The loss is q + (1 - q) 2 w / (epsilon agents), w + ln w = ln(outcomes - 1) - 1: the largest expected loss of the
    exponential mechanism over all utilities. (All outcomes but one lie x below it; x = 2 (1 + w) / (epsilon agents) is
    the worst.) The reference puts ln(outcomes) / (epsilon agents) for it, which is too small from 17 outcomes on; then
    the loss would be 2 q.

    References
    ----------
    Dwork, Roth (2014), theorems 10.3 and 10.4. Nissim, Smorodinsky, Tennenholtz (2012).

    Examples
    --------
    >>> found = punishing_parameters(outcomes=9, agents=10**6, gap=0.25, constants="book")
    >>> round(found.epsilon, 9), round(found.probability, 7)
    (0.000174691, 0.0125778)
    >>> round(punishing_parameters(outcomes=9, agents=10**6, gap=0.25).loss, 5)
    0.00862

    """
    many, people = OUTCOMES.read("outcomes", outcomes), AGENTS.read("agents", agents)
    cost = GAP.read("gap", gap)
    strength = STRENGTH.read_optional("epsilon", epsilon)
    book = CONSTANTS.read("constants", constants) == "book"
    worst = _worst_loss(many)
    if strength is None:
        scale = math.log(many) / 2 if book else 8 * worst
        strength = min(max(math.sqrt(cost * scale / (many * people)), 1e-18), 1e6)
    if book:
        probability = 2 * strength * many / cost
        if not probability <= 1:
            raise ParameterError("epsilon", strength, "at most gap / (2 outcomes)", "leave constants out")
    else:
        gain = math.tanh(strength / 4)
        probability = gain / (gain + cost / many)
    # A few roundings are far below 2**-40.
    probability = min(probability * (1 + 2.0**-40), 1.0)
    loss = probability + (1 - probability) * min(2 * worst / (strength * people), 1.0)
    return Punishment(strength, probability, loss)


def _worst_loss(outcomes: int) -> float:
    """Return the largest expected loss of the exponential mechanism among so many candidates, in units of 1 / a.

    The largest x K exp(-x) / (1 + K exp(-x)), K = outcomes - 1, is the w of w exp(w) = K / e; a little above it.
    """
    wanted = (outcomes - 1) / math.e
    w = math.log1p(wanted)
    for _ in range(60):  # Newton's method, from above: w exp(w) is convex
        w -= (w - wanted * math.exp(-w)) / (1 + w)
    return w * (1 + 2.0**-40)
