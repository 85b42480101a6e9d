"""Parts of dates and timestamps as SQL: whole numbers of whole numbers, so that no engine's own calendar is asked.

A date is a number of days, and a timestamp one of microseconds (`Dialect.values`). Outside the years 1 to 9999 no
calendar shows them: they are null here, as in `dpfast.aggregation.calendars`, and only here, since filters, keys and
sums have use for every moment. Counted from the first day of the year 1 none is negative, so that every engine divides
alike. Years, months and days are found as in Hinnant's ``civil_from_days``, with years that begin in March and so end
with the leap day; weeks by the Thursday in them, which is in the year that they belong to.

References
----------
Howard Hinnant, chrono-compatible low-level date algorithms (2013).

"""

from __future__ import annotations

import polars as pl

from dpfast.aggregation.calendars import day_limits, moment_limits
from dpfast.errors import ColumnError
from dpfast.integrations.sql.dialects import Dialect, Kind
from dpfast.rows.calendars import Calendar

__all__ = ["calendar_part", "within_calendar"]

_DAY, _HOUR = 86_400 * 10**6, 3_600 * 10**6
_UTC = ("UTC", "Etc/UTC", "+00:00")
#: Days from 0000-03-01 to 0001-01-01.
_FROM_MARCH = 306


def calendar_part(key: Calendar, value: str, kind: Kind, dtype: pl.DataType, dialect: Dialect) -> tuple[str, Kind]:
    """Return a part of what `within_calendar` returns, and what the part is; null where that is null.

    Raises
    ------
    ColumnError
        If the column has a time zone other than UTC.

    """
    zone = getattr(dtype, "time_zone", None)
    if zone is not None and zone not in _UTC:
        raise ColumnError(
            f"{dialect.name} cannot be asked what clocks in {zone} show of the column {key.column!r}: cast it in the "
            "query to a timestamp without a time zone"
        )
    parts = _Parts(dialect, value, kind)
    part = getattr(parts, key.part)()
    return f"CAST({part} AS {dialect.bigint})", "date" if key.part == "date" else "integer"


def within_calendar(value: str, kind: Kind) -> str:
    """Return a date or timestamp in the form of `Dialect.values`, null where no calendar shows it."""
    first, last = day_limits() if kind == "date" else moment_limits(10**6)
    return f"CASE WHEN {value} BETWEEN {first} AND {last} THEN {value} END"


class _Parts:
    """Parts of one column."""

    def __init__(self, dialect: Dialect, value: str, kind: Kind) -> None:
        self._divided = dialect.divided
        first, _ = day_limits()
        if kind == "date":
            self._since, self._days = "", f"({value} + {-first})"
        else:
            self._since = f"({value} + {-first * _DAY})"
            self._days = self._over(self._since, _DAY)

    def date(self) -> str:
        """Return days since 1970."""
        return f"({self._days} - {-day_limits()[0]})"

    def hour(self) -> str:
        """Return hours since midnight."""
        return self._over(f"({self._since} % {_DAY})", _HOUR)

    def weekday(self) -> str:
        """Return 1 for Monday, which the first day of the year 1 was."""
        return f"({self._days} % 7 + 1)"

    def day(self) -> str:
        """Return the day of the month."""
        of_year, month = self._of_year(self._days), self._month_from_march()
        return f"({of_year} - {self._over(f'(153 * {month} + 2)', 5)} + 1)"

    def month(self) -> str:
        """Return the month."""
        month = self._month_from_march()
        return f"(CASE WHEN {month} < 10 THEN {month} + 3 ELSE {month} - 9 END)"

    def quarter(self) -> str:
        """Return the quarter."""
        return self._over(f"({self.month()} + 2)", 3)

    def year(self) -> str:
        """Return the year."""
        return self._year_of(self._days)

    def week(self) -> str:
        """Return which of the weeks it is whose Thursday is in one year."""
        thursday = f"({self._days} - {self._days} % 7 + 3)"
        years = f"({self._year_of(thursday)} - 1)"
        over = [self._over(years, number) for number in (4, 100, 400)]
        new_year = f"(365 * {years} + {over[0]} - {over[1]} + {over[2]})"
        return f"({self._over(f'({thursday} - {new_year})', 7)} + 1)"

    def _over(self, numerator: str, denominator: int) -> str:
        """Return a quotient of whole numbers, neither of them negative."""
        return f"({self._divided.format(numerator, denominator)})"

    def _of_era(self, days: str) -> str:
        """Return the day within 400 years."""
        return f"(({days} + {_FROM_MARCH}) % 146097)"

    def _year_of_era(self, days: str) -> str:
        """Return the year, from March on, within 400 years."""
        day = self._of_era(days)
        over = [self._over(day, number) for number in (1460, 36524, 146096)]
        return self._over(f"({day} - {over[0]} + {over[1]} - {over[2]})", 365)

    def _of_year(self, days: str) -> str:
        """Return the day within its year, from March on."""
        year = self._year_of_era(days)
        return f"({self._of_era(days)} - (365 * {year} + {self._over(year, 4)} - {self._over(year, 100)}))"

    def _month_from_march(self) -> str:
        return self._over(f"(5 * {self._of_year(self._days)} + 2)", 153)

    def _year_of(self, days: str) -> str:
        era = self._over(f"({days} + {_FROM_MARCH})", 146_097)
        # January and February come after 306 days of the year that began in March.
        late = f"(CASE WHEN {self._of_year(days)} >= {_FROM_MARCH} THEN 1 ELSE 0 END)"
        return f"({self._year_of_era(days)} + {era} * 400 + {late})"
