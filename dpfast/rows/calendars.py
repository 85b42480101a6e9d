"""Keys made of dates and datetimes: the parts that a calendar and a clock on the wall show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from dpfast.arguments import Choice
from dpfast.rows.values import NAME
from dpfast.showing import Shown

__all__ = ["PARTS", "AskedPart", "Calendar", "calendar"]

#: Parts, and the numbers that each may be; a year and a date may be very many.
_LABELS: dict[str, range | None] = {
    "year": None,
    "quarter": range(1, 5),
    "month": range(1, 13),
    "week": range(1, 54),
    "weekday": range(1, 8),
    "day": range(1, 32),
    "hour": range(24),
    "date": None,
}
PARTS = tuple(_LABELS)
PART = Choice(PARTS)
AskedPart: TypeAlias = Annotated[Literal["year", "quarter", "month", "week", "weekday", "day", "hour", "date"], PART]


@dataclass(frozen=True)
class Calendar(Shown):
    """A key made of a column of dates or datetimes: what `dpfast.calendar` returns.

    Attributes
    ----------
    column
        The column.
    part
        What of it is the key.

    Examples
    --------
    >>> Calendar("departed", "quarter").name, list(Calendar("departed", "quarter").labels)
    ('departed_quarter', [1, 2, 3, 4])

    """

    column: str
    part: str

    def __post_init__(self) -> None:
        NAME.read("column", self.column)
        PART.read("part", self.part)

    @property
    def name(self) -> str:
        """The name of the key column."""
        return f"{self.column}_{self.part}"

    @property
    def labels(self) -> tuple[int, ...]:
        """All numbers that the part may be, for public keys; none of years and dates, of which there is no end."""
        return tuple(_LABELS[self.part] or ())


def calendar(column: Annotated[str, NAME], part: AskedPart) -> Calendar:
    """Group by a part of dates or datetimes, in a key column such as ``departed_month``.

    Guarantee
        Every value has one part, or the null key, and none fails; so a row is in one group, as with other keys.

    Parameters
    ----------
    column
        A column of dates or datetimes. The parts are those of its own wall clock: of a column with a time zone, what
        clocks in this zone show, so that the hours of a day when clocks change are those that people lived by.
    part
        ``"year"``; ``"quarter"`` from 1 to 4; ``"month"`` from 1 to 12; ``"week"`` of ISO, from 1 to 53, which begins
        on a Monday, and of which the first days of January may be in the last one; ``"weekday"`` from 1 for Monday to
        7 for Sunday; ``"day"`` of the month, from 1 to 31; ``"hour"`` from 0 to 23, of datetimes; ``"date"``, of
        datetimes the day.

    Notes
    -----
    Null has the null key, and so has what lies outside the years 1 to 9999: dates there, and datetimes before
    0001-01-02 or from 9999-12-31 on. All months are public, whatever the data are, and need no budget to be selected:
    ``keys=pl.DataFrame({"departed_month": dpf.calendar("departed", "month").labels})``.

    Examples
    --------
    >>> import datetime
    >>> import dpfast as dpf
    >>> import polars as pl
    >>> days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in range(366)]
    >>> weekday = dpf.calendar("day", "weekday")
    >>> keys = pl.DataFrame({weekday.name: weekday.labels})
    >>> release = dpf.release(pl.DataFrame({"day": days}), weekday, keys=keys, n=dpf.count(), epsilon=1000,
    ...                       privacy_unit="row", ledger=dpf.Ledger(epsilon=1000))
    >>> release.frame.select("day_weekday", "n").rows()[:3]
    [(1, 53), (2, 53), (3, 52)]

    """
    return Calendar(column, part)
