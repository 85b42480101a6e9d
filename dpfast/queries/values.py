"""Which values a column has: how many different ones, and the most common ones in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from dpfast.arguments import Whole
from dpfast.columns.candidates import LARGEST_NUMBER, Candidates, read_candidates
from dpfast.errors import ParameterError
from dpfast.queries.basic import ModeQuery, Name, Query
from dpfast.rows.values import NAME

__all__ = ["RankedQuery", "Winners", "count_distinct", "top_k"]

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


def top_k(column: Name, k: Winners, *, candidates: Candidates) -> RankedQuery:
    """Ask for the most common values of a column in every group, the most common first, among public candidates.

    Each is drawn as a `mode` of those that are left, and costs as much.

    Parameters
    ----------
    column, candidates
        As for `mode`. Where the values themselves are private, group by the column as well: of
        ``by=["key", column]`` with a `count`, keys are selected privately, and the largest counts of each key are
        read off the release at no further cost.
    k
        How many are asked for, at most as many as there are candidates.

    Notes
    -----
    A release has a list ``name`` for each group, and a column ``name_rows``: with probability 0.95 each of the answers
    has at most so many rows fewer than the most common candidate that was left, of those kept of each privacy unit.

    Examples
    --------
    >>> top_k("dest", 2, candidates=["ATL", "IAH", "MIA"]).in_words
    'the 2 most common of 3 candidates in dest'

    """
    read, winners = read_candidates(candidates), WINNERS.read("k", k)
    if winners > len(read):
        raise ParameterError("k", k, f"at most {len(read)}, the number of candidates")
    return RankedQuery("top_k", NAME.read("column", column), candidates=read, winners=winners)
