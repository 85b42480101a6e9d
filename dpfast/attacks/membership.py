"""Whether a person is among those whose attributes were averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.arguments import Number, Real, Special
from dpfast.attacks.mechanisms import Mechanism, ask
from dpfast.attacks.records import Table, read_table
from dpfast.errors import ParameterError, Words
from dpfast.showing import Facts, Shown, number_of
from dpfast.workloads.histograms import array_of, no_arrays

__all__ = ["Membership", "membership", "membership_scores"]

_SHARE = Number(0, 1, above=True, below=True, mend="write for example {name}=0.05")
_MARGINALS = Special(lambda: (*no_arrays(), [], [0.5], np.full((2, 2), 0.5), [np.nan] * 2, [np.inf] * 2))
_POPULATION = Special(lambda: (*no_arrays(), [], [0.5], [0.5, 1.5], [-0.5, 0.5], [np.nan] * 2))


@dataclass(frozen=True)
class Membership(Shown):
    """How well members are told from others.

    Attributes
    ----------
    members
        The scores of those whose attributes were averaged.
    outsiders
        The scores of those who were not there.
    threshold
        Whoever scores above it is taken for a member.

    """

    members: NDArray[np.float64]
    outsiders: NDArray[np.float64]
    threshold: float

    @property
    def true_positives(self) -> float:
        """The share of members that is found."""
        return float((self.members > self.threshold).mean())

    @property
    def false_positives(self) -> float:
        """The share of outsiders that is taken for members."""
        return float((self.outsiders > self.threshold).mean())

    def explain(self) -> str:
        """Return it in words.

        Examples
        --------
        >>> import numpy as np
        >>> print(Membership(np.array([3.0, 4.0]), np.array([0.0, 1.0, -1.0]), 2.0).explain())
        100.0% of 2 members found, and 0.0% of 3 others taken for members

        """
        found = f"{self.true_positives:.1%} of {self.members.size:,} members found"
        return f"{found}, and {self.false_positives:.1%} of {self.outsiders.size:,} others taken for members"

    def _facts(self) -> Facts:
        """Return how many were told apart, and nobody's score."""
        names = ("true_positives", "false_positives", "threshold")
        return [(name, getattr(self, name)) for name in names]

    def __repr__(self) -> str:
        return f"Membership({self.explain()})"


def membership_scores(
    released: Annotated[ArrayLike, _MARGINALS], population: Annotated[ArrayLike, _POPULATION], people: Table
) -> NDArray[np.float64]:
    """Return how much each person's attributes lie on the side of the population to which the released averages lie.

    The score of y is sum over attributes j of (y_j - p_j) (q_j - p_j), with released averages q and the population's p.
    Of somebody who was not there its expectation is 0, if attributes are independent with averages p; everybody who
    was there has pulled q to themselves, by p_j (1 - p_j) / n in each attribute.

    Parameters
    ----------
    released
        The noisy averages, one for each attribute.
    population
        The averages of the population, numbers from 0 to 1.
    people
        Whom to score: zeros and ones, a row for each person.

    Returns
    -------
    numpy.ndarray
        A score for each person, the higher the likelier a member.

    Raises
    ------
    ParameterError
        The shapes do not fit, or something is no number.

    References
    ----------
    Homer et al. (2008). Dwork, Smith, Steinke, Ullman, Vadhan: Robust traceability from trace amounts (2015).

    Examples
    --------
    >>> membership_scores([0.9, 0.1], [0.5, 0.5], [[1, 0], [0, 1], [1, 1]]).tolist()
    [0.4, -0.4, 0.0]

    """
    rows = read_table(people, "people")
    means = [_means(given, name, rows.shape[1]) for given, name in ((released, "released"), (population, "population"))]
    if not ((means[1] >= 0) & (means[1] <= 1)).all():
        raise ParameterError("population", Words("with others"), "numbers from 0 to 1")
    scores: NDArray[np.float64] = (rows - means[1]) @ (means[0] - means[1])
    return scores


def _means(given: object, name: str, attributes: int) -> NDArray[np.float64]:
    array = array_of(given, name)
    if array.shape != (attributes,) or array.dtype.kind not in "biuf" or not np.isfinite(array).all():
        raise ParameterError(name, Words(f"of shape {array.shape}"), f"{attributes} finite numbers, one an attribute")
    return array.astype(np.float64)


def membership(
    mechanism: Mechanism,
    members: Table,
    outsiders: Table,
    population: Annotated[ArrayLike | None, Special(lambda: _POPULATION.wrong(), optional=True)] = None,
    false_positives: Annotated[Real, _SHARE] = 0.05,
) -> Membership:
    """Try to tell the members of a data set from others, by the averages that a mechanism releases of them.

    Exact averages of d attributes of n people betray nearly everybody where d is well above n: the score of a member
    exceeds that of others by about the sum of p_j (1 - p_j) / n, and has a deviation of about sqrt(d / n) / 4.

    Parameters
    ----------
    mechanism
        From an array of exact averages, one for each attribute, to as many noisy ones. It is called once.
    members
        Zeros and ones, a row for each person whose attributes are averaged.
    outsiders
        People of the same population who were not there.
    population
        The averages of the population; those of the outsiders if not given, which is enough where they are many.
    false_positives
        The share of outsiders that may be taken for members; it sets the threshold.

    Returns
    -------
    Membership
        All scores, the threshold, and who is found.

    Raises
    ------
    ParameterError
        An argument is not allowed, or the mechanism returns something else than as many finite numbers.

    References
    ----------
    Homer et al. (2008). Dwork, Smith, Steinke, Ullman, Vadhan (2015). Dwork, Roth (2014), section 8.

    Examples
    --------
    >>> import dpfast as dpf
    >>> people = dpf.attacks.random_queries(400, 2000, "subsets", seed=1)
    >>> exact = dpf.attacks.membership(lambda averages: averages, people[:100], people[100:])
    >>> print(exact.explain())
    100.0% of 100 members found, and 4.7% of 300 others taken for members
    >>> noisy = dpf.attacks.membership(lambda averages: dpf.laplace(averages, 20.0), people[:100], people[100:])
    >>> noisy.true_positives < 0.3
    True

    """
    inside, outside = read_table(members, "members"), read_table(outsiders, "outsiders")
    share = _SHARE.read("false_positives", false_positives)
    if inside.shape[1] != outside.shape[1]:
        raise ParameterError(
            "outsiders", Words(f"{number_of(outside.shape[1], 'attribute')}"), f"{inside.shape[1]}, as members have"
        )
    expected = _means(outside.mean(axis=0) if population is None else population, "population", inside.shape[1])
    released = ask(mechanism, inside.mean(axis=0))
    scores = [membership_scores(released, expected, people) for people in (inside, outside)]
    return Membership(scores[0], scores[1], float(np.quantile(scores[1], 1.0 - share, method="higher")))
