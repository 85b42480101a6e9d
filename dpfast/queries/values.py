"""Which values a column has: how many different ones, and the most common ones in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

from dpfast.arguments import Whole
from dpfast.columns.candidates import LARGEST_NUMBER, OwnCandidates, read_candidates
from dpfast.errors import ParameterError
from dpfast.queries.basic import Name, Query
from dpfast.rows.values import NAME

__all__ = ["DistinctQuery", "RankedQuery", "Winners", "count_distinct", "top_k"]

WINNERS = Whole(1, LARGEST_NUMBER)
#: How many values are answered.
Winners: TypeAlias = Annotated[int, WINNERS]


@dataclass(frozen=True, repr=False)
class RankedQuery(Query):
    """The most common values in every group: what `top_k` returns.

    Attributes
    ----------
    winners
        How many are asked for.
    candidates
        Public values among which they are; none where values are found in the data.
    dtype
        The column's, once it is known (`of_columns`).

    """

    winners: int = 1
    candidates: tuple[Any, ...] = ()
    dtype: Any = field(default=None, repr=False, compare=False)

    @property
    def in_words(self) -> str:
        """What is asked."""
        if self.candidates:
            return f"the {self.winners} most common of {len(self.candidates)} candidates in {self.column}"
        return f"the {self.winners} most common values of {self.column}, found in the data"


def count_distinct(column: Name) -> Query:
    """Ask for the number of different values of a column in every group.

    One row adds at most one value, whatever other rows have, so that a unit with ``max_rows_per_group`` rows in a group
    changes its number by at most so much: the noise is that of `count`.

    Parameters
    ----------
    column
        A column of integers, floats, decimals, Booleans, strings, bytes, categories, dates, datetimes, times or
        durations. Null and NaN are no values.

    Notes
    -----
    Values are told apart by 62 bits of a hash, of which two values in n have the same one with a probability of
    n**2 / 2**63: 1 in 9,000 of 32 million values. That two values are taken for one moves no figure further between
    neighbours. For the number of different privacy units, ask `units`; for values of several places, which none of them
    has all of, `dpf.distinct_sketch`.

    Examples
    --------
    >>> count_distinct("dest").in_words
    'number of different values of dest'

    """
    return DistinctQuery("count_distinct", NAME.read("column", column))


@dataclass(frozen=True, repr=False)
class DistinctQuery(Query):
    """How many values there are: what `count_distinct` returns."""

    @property
    def in_words(self) -> str:
        """What is asked."""
        return f"number of different values of {self.column}"


def top_k(column: Name, k: Winners, *, candidates: OwnCandidates = None) -> RankedQuery:
    """Ask for the most common values of a column in every group, the most common first, with their numbers of rows.

    Every value of every group is counted with noise, and the k largest noisy counts are shown: k costs nothing, and
    all of it costs as much as one `count`. Values that are not public are found in the data, and shown only where the
    noisy count is large enough to hide what one unit alone has: then a delta is needed.

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
    A release has a list ``name`` for each group, the largest noisy count first, and ``name_count``, ``name_lower`` and
    ``name_upper``, lists beside it: the noisy numbers of rows, of those kept of each privacy unit, and their intervals.
    Each interval holds with probability 0.95, for every value, whether it is shown or not; values that are shown just
    because their noise was large lie above it more often. Equal counts are in the order of candidates, or of values.
    Categories come out as strings. `Plan.explain` has the count from which a value that is found is shown.
    `dpfast.releases.ranked_values` has the proof.

    Examples
    --------
    >>> top_k("dest", 2, candidates=["ATL", "IAH", "MIA"]).in_words
    'the 2 most common of 3 candidates in dest'
    >>> top_k("dest", 2).in_words
    'the 2 most common values of dest, found in the data'

    """
    winners = WINNERS.read("k", k)
    read = () if candidates is None else read_candidates(candidates)
    if read and winners > len(read):
        raise ParameterError("k", k, f"at most {len(read)}, the number of candidates")
    return RankedQuery("top_k", NAME.read("column", column), winners=winners, candidates=read)
