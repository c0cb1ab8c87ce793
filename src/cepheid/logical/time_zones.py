"""How far the clocks of a zone are from UTC at an instant: what `hour(x.$time, 'Europe/Berlin')` adds.

The rules are those of Python's zoneinfo, which knows them for all years; Arrow's own functions keep winter time from 2038 on. A zone is looked at
day by day, and a day is kept: most have one offset, and no day has more than two. Far years are a day of the same place in the cycle of 400 years.
"""

from __future__ import annotations

import bisect
import datetime as dt
import functools
import re

from cepheid.errors import nearest
from cepheid.logical.calendar import CYCLE, DAY

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

EARLIEST, LATEST = -CYCLE, 2 * CYCLE
"""Days since 1970-01-01: before the first, no zone has changed its clocks; from the last on, all go by a rule that returns every 400 years."""

FIXED = re.compile(r"([+-])([01]\d):([0-5]\d)", re.ASCII)
"""A zone that is an offset, as columns have it."""

UTC = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00")
"""Zones of columns in which a time prints as in UTC."""

DAYS_KEPT = 1 << 17


@functools.lru_cache
def zone_of(name: str) -> dt.tzinfo | None:
    """The zone of a name, as Europe/Berlin, or of an offset, as +05:30; None where there is none."""
    import zoneinfo  # what few queries need

    offset = FIXED.fullmatch(name)
    if offset is not None:
        shift = dt.timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return dt.timezone(-shift if offset[1] == "-" else shift)
    return zoneinfo.ZoneInfo(name) if name in zoneinfo.available_timezones() else None


def unknown_zone(name: str) -> tuple[str, ...]:
    """The help where `zone_of` has none of this name."""
    import zoneinfo

    known = {zone.lower(): zone for zone in zoneinfo.available_timezones()}
    if not known:
        return ("this machine has no time zones: install the package tzdata (pip install tzdata)",)
    cities = {zone.rpartition("/")[2]: zone for zone in known}
    asked = name.strip().lower().replace(" ", "_")
    near = (
        asked if asked in known else cities.get(asked) or nearest(asked, sorted(known)) or cities.get(nearest(asked, sorted(cities)) or "")
    )
    return (
        *([] if near is None else [f"did you mean '{known[near]}'?"]),
        "a zone is written as 'Europe/Berlin', 'UTC', or '+05:30' where clocks never change",
    )


@functools.lru_cache(DAYS_KEPT)
def offsets_of_day(name: str, day: int) -> tuple[int, int, int]:
    """The offset in seconds at the beginning of a day in UTC (days since 1970), the second of it from which there is another (DAY: none), and that.

    name: of a zone. O(1) for a day that is kept, else some calls of zoneinfo.
    """
    day = max(day if day < LATEST else day % CYCLE + CYCLE, EARLIEST)
    zone = zone_of(name)

    def offset(second: int) -> int:
        shift = (EPOCH + dt.timedelta(days=day, seconds=second)).astimezone(zone).utcoffset()
        assert shift is not None
        return int(shift.total_seconds())

    before, after = offset(0), offset(DAY - 1)
    change = DAY if before == after else bisect.bisect_left(range(DAY), True, key=lambda second: offset(second) != before)
    return before, change, after


def local(name: str, steps: int, per_second: int) -> int:
    """The time on the clocks of a zone at an instant, both as steps since 1970, of which a second has so many; it may leave 64 bits."""
    day, second = divmod(steps // per_second, DAY)
    before, change, after = offsets_of_day(name, day)
    return steps + (before if second < change else after) * per_second
