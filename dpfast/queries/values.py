"""Which values a column has: how many different ones, and the most common ones in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias, overload

from dpfast.arguments import Whole
from dpfast.columns.candidates import LARGEST_NUMBER, Candidates, OwnCandidates, read_candidates
from dpfast.errors import ParameterError
from dpfast.queries.basic import NAME, ModeQuery, Name, Query

__all__ = ["DistinctQuery", "FoundQuery", "RankedQuery", "Winners", "count_distinct", "top_k"]

WINNERS = Whole(1, LARGEST_NUMBER)
#: How many values are answered.
Winners: TypeAlias = Annotated[int, WINNERS]


@dataclass(frozen=True)
class RankedQuery(ModeQuery):
    """The most common values in every group, of public candidates: what `top_k` returns."""

    winners: int = 1

    @property
    def in_words(self) -> str:
        """What is asked."""
        return f"the {self.winners} most common of {len(self.candidates)} candidates in {self.column}"


@dataclass(frozen=True)
class FoundQuery(Query):
    """The most common values in every group, of those that the data hold: what `top_k` returns without candidates."""

    winners: int = 1

    @property
    def in_words(self) -> str:
        """What is asked."""
        return f"the {self.winners} most common values of {self.column}, found in the data"


def count_distinct(column: Name) -> Query:
    """Ask for the number of different values of a column in every group.

    One row adds at most one value, whatever other rows have, so that a unit with ``max_rows_per_group`` rows in a group
    changes its number by at most so much: the noise is that of `count`.

    Parameters
    ----------
    column
        A column of integers, floats, Booleans, strings, categories, dates or times. Null and NaN are no values.

    Notes
    -----
    Values are told apart by 62 bits of a hash, of which two values in n have the same one with a probability of
    n**2 / 2**63: 1 in 9,000 of 32 million values. That two values are taken for one moves no figure further between
    neighbours. For the number of different privacy units, ask `units`.

    Examples
    --------
    >>> count_distinct("dest").in_words
    'number of different values of dest'

    """
    return DistinctQuery("count_distinct", NAME.read("column", column))


@dataclass(frozen=True)
class DistinctQuery(Query):
    """How many values there are: what `count_distinct` returns."""

    @property
    def in_words(self) -> str:
        """What is asked."""
        return f"number of different values of {self.column}"


@overload
def top_k(column: Name, k: Winners, *, candidates: Candidates) -> RankedQuery: ...


@overload
def top_k(column: Name, k: Winners, *, candidates: None = None) -> FoundQuery: ...


def top_k(column: Name, k: Winners, *, candidates: OwnCandidates = None) -> RankedQuery | FoundQuery:
    """Ask for the most common values of a column in every group, the most common first.

    Of public candidates each answer is drawn as a `mode` of those that are left, and costs as much. Without candidates
    the values are found in the data: each value of each group is counted with noise, those of a large enough noisy
    count are shown, and of them the k largest, with their counts. Then a delta is needed, and k costs nothing.

    Parameters
    ----------
    column
        As for `mode`.
    k
        How many are asked for: exactly so many of public candidates, at most so many of values that are found.
    candidates
        The values that may be answered, public, as for `mode`. None for those that the data hold, which are private;
        null is none of them.

    Notes
    -----
    Of public candidates, a release has a list ``name`` for each group, and a column ``name_rows``: with probability
    0.95 each of the answers has at most so many rows fewer than the most common candidate that was left, of those kept
    of each privacy unit.

    Of values that are found it has a list ``name`` for each group, the largest noisy count first, and ``name_count``,
    ``name_lower`` and ``name_upper``, lists beside it: the noisy numbers of rows, and their intervals. Each interval
    holds with probability 0.95, for every value of the data, whether it is shown or not; the few values that are shown
    just because their noise was large lie above it more often. Equal counts are in the order of values. Categories
    come out as strings. `Plan.explain` has the count from which a value is shown. `dpfast.releases.found_values` has
    the proof.

    Examples
    --------
    >>> top_k("dest", 2, candidates=["ATL", "IAH", "MIA"]).in_words
    'the 2 most common of 3 candidates in dest'
    >>> top_k("dest", 2).in_words
    'the 2 most common values of dest, found in the data'

    """
    winners = WINNERS.read("k", k)
    if candidates is None:
        return FoundQuery("top_k", NAME.read("column", column), winners=winners)
    read = read_candidates(candidates)
    if winners > len(read):
        raise ParameterError("k", k, f"at most {len(read)}, the number of candidates")
    return RankedQuery("top_k", NAME.read("column", column), candidates=read, winners=winners)
