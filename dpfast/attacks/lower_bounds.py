"""What no mechanism can do: packing bounds (Dwork, Roth 2014, section 8.2)."""

from __future__ import annotations

import math
from typing import Annotated

from dpfast.arguments import Number, Real, Whole
from dpfast.errors import ParameterError

__all__ = ["least_epsilon", "least_error", "least_records"]

_BITS = Number(1, mend="write for example {name}=101.0 for 2**101 databases")
_DISTANCE = Number(0, above=True)
_COUNT = Whole(1, 2**62)
_EPSILON = Number(0, 10**6, above=True)


def least_epsilon(bits: Annotated[Real, _BITS], distance: Annotated[Real, _DISTANCE]) -> float:
    """Return the least epsilon with which 2**bits databases can be told apart: ln(2) (bits - 1) / distance.

    Lemma 8.4. Let any two of 2**bits databases differ in at most ``distance`` records, and let there be disjoint sets
    of outputs, one for each database, that a mechanism hits with probability at least 1/2. On the first database it
    then hits each of these sets with probability at least exp(-epsilon distance) / 2, and they are disjoint: so
    2**bits exp(-epsilon distance) / 2 is at most 1.

    Examples
    --------
    >>> round(least_epsilon(101, 1000), 7)
    0.0693147

    """
    return math.log(2) * (_BITS.read("bits", bits) - 1) / _DISTANCE.read("distance", distance)


def least_records(attributes: Annotated[int, _COUNT], epsilon: Annotated[Real, _EPSILON]) -> int:
    """Return how many records any mechanism of pure epsilon needs for one-way marginals: ln(2) (k - 1) / epsilon.

    Theorem 8.7: 2**k databases of n equal records, one for each row of k bits, have marginals that lie 1 apart, and
    differ in n records. So with fewer records no mechanism of pure epsilon answers all k averages to less than 1/2 with
    probability 1/2. With a delta the square root of k is enough.

    Examples
    --------
    >>> least_records(1001, 0.5)
    1387

    """
    many = _COUNT.read("attributes", attributes)
    return math.ceil(math.log(2) * (many - 1) / _EPSILON.read("epsilon", epsilon))


def least_error(
    queries: Annotated[int, _COUNT], attributes: Annotated[int, _COUNT], epsilon: Annotated[Real, _EPSILON]
) -> float:
    """Return an error that every mechanism of pure epsilon exceeds on some queries of sensitivity 1.

    Theorem 8.8: for k queries over records of d bits, and epsilon of at most 1/40, there are queries of sensitivity 1
    and a database on which some answer errs by more than min(k, d) / (19,200 epsilon), with probability at least 1/2.
    The proof packs 2**(min(k, d) / 400) databases of w = min(k, d) / (1,280 epsilon) records, w at least 31.

    Returns
    -------
    float
        The bound; 0 where the theorem says nothing, because w is below 31.

    Raises
    ------
    ParameterError
        Epsilon is above 1/40.

    Examples
    --------
    >>> least_error(10**6, 10**5, 0.01)
    520.8333333333334
    >>> least_error(10, 10, 0.01)
    0.0

    """
    fewer = min(_COUNT.read("queries", queries), _COUNT.read("attributes", attributes))
    given = _EPSILON.read("epsilon", epsilon)
    if given > 1 / 40:
        raise ParameterError("epsilon", epsilon, "at most 1/40", "above it the theorem says nothing")
    size = fewer / (1280 * given)
    return size / 15 if size >= 31 else 0.0
