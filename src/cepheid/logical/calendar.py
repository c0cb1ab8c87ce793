"""Parts of dates and times of day in UTC, of the proleptic Gregorian calendar; exact for every 64-bit number of steps.

Comes in: steps since 1970-01-01, as Python ints or as arrays of integers. Goes out: the same. No table and no library's range of years: years are
taken in cycles of 400, of which all have 146,097 days.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from cepheid.schema import NANOSECONDS

DAYS_BEFORE = 719_468
"""Days from 0000-03-01, where a cycle of 400 years begins, to 1970-01-01: years begin in March here, so that a leap day is the last one."""

CYCLE, CENTURY, LEAP_CYCLE, YEAR = 146_097, 36_524, 1_460, 365
"""Days of 400 years, of 100, of four and of one, without the leap day that each may have at its end."""

DAY = 86_400
"""Seconds."""

TIMES_OF_DAY: dict[str, tuple[int, int]] = {"hour": (3_600, 24), "minute": (60, 60), "second": (1, 60)}
"""Seconds of each, and how many there are before it begins again."""

DATES = ("year", "month", "day", "day_of_week")

PARTS = (*DATES, *TIMES_OF_DAY)


def steps_per_day(kind: pa.DataType) -> int:
    """Steps of a date or timestamp type in one day."""
    return 1 if pa.types.is_date(kind) else DAY * steps_per_second(kind)


def steps_per_second(kind: pa.DataType) -> int:
    """Steps of a timestamp type in one second."""
    return NANOSECONDS["s"] // NANOSECONDS[kind.unit]


def part(name: str, steps: Any, per_day: int) -> Any:
    """One of PARTS, of steps of which a day has so many; O(1) each. day_of_week is that of ISO 8601: 1 is Monday."""
    if name in TIMES_OF_DAY:
        seconds, most = TIMES_OF_DAY[name]
        return steps % per_day // (per_day // DAY * seconds) % most
    days = steps // per_day
    if name == "day_of_week":
        return (days + 3) % 7 + 1
    cycle, day = (days + DAYS_BEFORE) // CYCLE, (days + DAYS_BEFORE) % CYCLE
    year = (day - day // LEAP_CYCLE + day // CENTURY - day // (CYCLE - 1)) // YEAR
    day = day - (YEAR * year + year // 4 - year // 100)
    month = (5 * day + 2) // 153  # from March on: five months have 153 days
    if name == "day":
        return day - (153 * month + 2) // 5 + 1
    return (month + 2) % 12 + 1 if name == "month" else year + 400 * cycle + (month >= 10)
