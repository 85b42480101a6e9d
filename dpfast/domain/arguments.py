"""What the methods of a domain take: values, estimates, files; and how many records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Annotated, Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast.arguments import Choice, Instance, Special, Threads, Whole
from dpfast.domain.attributes import Values
from dpfast.queries import Bins
from dpfast.randomness import Random

__all__ = [
    "DRAWS_PARTS",
    "LARGEST_RECORDS",
    "MOST",
    "OUTSIDE",
    "PART",
    "RECORDS",
    "Attributes",
    "ColumnNames",
    "DrawsParts",
    "Most",
    "OfEstimate",
    "Outside",
    "OwnAttributes",
    "Places",
    "Records",
    "RecordsPath",
    "WithNulls",
]


def _no_attributes() -> Iterator[object]:
    yield from (5, "a", object(), {}, [], [("a", 2)], {2: ["x"]}, {"a": 2**31})
    values: tuple[object, ...] = (
        None,
        True,
        0,
        -1,
        2.5,
        "abc",
        b"a",
        [],
        [None],
        ["x", "x"],
        [1, "x"],
        [1.5],
        [[1]],
        {1: 2},
        2**40,
        Bins,
    )
    yield from ({"a": wrong} for wrong in values)


#: The values of each attribute, by its name.
Attributes: TypeAlias = Annotated[Mapping[str, Values], Special(_no_attributes)]
#: The same, where what a schema says may be enough.
OwnAttributes: TypeAlias = Annotated[Mapping[str, Values] | None, Special(_no_attributes, optional=True)]
#: Names of columns; None for all of them.
ColumnNames: TypeAlias = Annotated[
    Sequence[str] | None, Special(lambda: (5, "a", 0.5, [], [5], ["a", "a"], object(), {"a": 1}), optional=True)
]
OUTSIDE = Choice(("drop", "null", "clamp"))
Outside: TypeAlias = Annotated[Literal["drop", "null", "clamp"], OUTSIDE]
#: Columns whose nulls are a category; True for all of them.
WithNulls: TypeAlias = Annotated[
    bool | Sequence[str], Special(lambda: (5, None, 0.5, "a", [5], ["none such"], ["a", "a"], object(), {"a": 1}))
]
#: How many records are drawn; None for as many as there are.
LARGEST_RECORDS = 2**31
RECORDS = Whole(0, LARGEST_RECORDS, optional=True, mend="write for example {name}=50_000")
Records: TypeAlias = Annotated[int | None, RECORDS]
#: How many records are made at once, unless somebody says another number: they stay in the cache.
PART = 1 << 18
MOST = Whole(1, LARGEST_RECORDS, mend="write for example {name}=100_000")
Most: TypeAlias = Annotated[int, MOST]


@runtime_checkable
class DrawsParts(Protocol):
    """An estimate that the codes of records can be drawn from part by part, all together as if at once."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each attribute has."""

    def draw_parts(
        self, n: Records = None, *, most: int = PART, random: Random = None, threads: Threads = None
    ) -> Iterator[NDArray[np.uint32]]:
        """Give at most so many records' codes at a time, a row for each attribute."""


@dataclass(frozen=True)
class _Drawn(Instance[DrawsParts]):
    """An estimate, and no class of estimates."""

    def accepts(self, given: Any) -> bool:
        return super().accepts(given) and not isinstance(given, type)


#: Estimates whose records come part by part.
DRAWS_PARTS = _Drawn(
    DrawsParts,  # type: ignore[type-abstract]  # no estimate is made of it
    "an estimate that synthesis returned",
    mend="give what dpf.synthesize returns",
)
OfEstimate: TypeAlias = Annotated[DrawsParts, DRAWS_PARTS]
#: A file's name.
RecordsPath: TypeAlias = Annotated[
    str | PathLike[str], Special(lambda: (3, None, True, "records", "records.txt", "none such/r.csv", object()))
]
#: Numbers of cells, or an estimate that they are drawn from.
Places: TypeAlias = Annotated[
    ArrayLike | DrawsParts,
    Special(
        lambda: (
            5,
            "a",
            True,
            [-1],
            [0.5],
            [[0]],
            ["a"],
            [2**40],
            [10**30],
            [[0], [0, 1]],
            [None],
            object(),
            DrawsParts,
        )
    ),
]
