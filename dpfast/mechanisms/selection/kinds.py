"""What type a selection's winners have, where the types of scores, offsets and groups decide it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Protocol, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Numeric, Special, Threads
from dpfast.columns.declarations import AnyColumn, Numbers, Scale, wrong_columns
from dpfast.mechanisms.parameters import EpsilonPerRow, Monotonic
from dpfast.randomness import Random

__all__ = ["ArrayRow", "ArrayRows", "CandidateValues", "Groups", "Offsets", "Score", "Scores", "selection"]


def _no_places() -> Iterator[object]:
    yield from wrong_columns(whole=True)
    yield from ([], [0], [-5], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])


def _no_candidates() -> Iterator[object]:
    import polars as pl  # not at the top: it takes long to import

    yield from (5, 0.5, True, "abc", b"abc", {1: 2}, {1, 2}, object(), len, iter([1]), [], ["a"] * 17, range(3))
    yield from (pl.DataFrame({"a": ["x"]}), pl.LazyFrame({"a": ["x"]}), pl.col("a"), pl.Series(["a"] * 17))


#: One column.
Score: TypeAlias = Annotated[AnyColumn | Sequence[Numeric], Special(wrong_columns)]
#: One column, or a row for each selection.
Scores: TypeAlias = Annotated[Numbers, Special(lambda: wrong_columns(most=2))]
Offsets: TypeAlias = Annotated[AnyColumn | Sequence[int] | None, Special(_no_places, optional=True)]
Groups: TypeAlias = Annotated[AnyColumn | Sequence[int] | None, Special(_no_places, optional=True)]
#: Values of any type, one for each score or place.
CandidateValues: TypeAlias = Annotated[AnyColumn | Sequence[Any] | None, Special(_no_candidates, optional=True)]

#: Types of one row of scores, and of several.
ArrayRow: TypeAlias = np.ndarray[tuple[int], Any] | Sequence[Numeric]
ArrayRows: TypeAlias = np.ndarray[tuple[int, int], Any] | Sequence[Sequence[Numeric]]


class Selection(Protocol):
    """A selection: a number for one row, the kind of column that was given for several; or candidates' values."""

    @overload
    def __call__(
        self,
        scores: ArrayRow,
        epsilon: EpsilonPerRow,
        sensitivity: Scale = 1.0,
        monotonic: Monotonic = False,
        *,
        candidates: None = None,
        offsets: None = None,
        groups: None = None,
        random: Random = None,
        threads: Threads = None,
    ) -> int: ...
    @overload
    def __call__(
        self,
        scores: ArrayRows,
        epsilon: EpsilonPerRow,
        sensitivity: Scale = 1.0,
        monotonic: Monotonic = False,
        *,
        candidates: None = None,
        offsets: None = None,
        groups: None = None,
        random: Random = None,
        threads: Threads = None,
    ) -> NDArray[np.int64]: ...
    # The type of a Series says nothing of its elements, PyArrow has no types, and candidates are of any type.
    @overload
    def __call__(
        self,
        scores: Scores,
        epsilon: EpsilonPerRow,
        sensitivity: Scale = 1.0,
        monotonic: Monotonic = False,
        *,
        candidates: CandidateValues = None,
        offsets: Offsets = None,
        groups: Groups = None,
        random: Random = None,
        threads: Threads = None,
    ) -> Any: ...


def selection(function: Selection) -> Selection:
    """Return a function as it is, known to type checkers by `Selection`."""
    return function
