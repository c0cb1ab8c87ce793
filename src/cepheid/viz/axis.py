"""The axis of a time line: where each step stands, and which steps are named.

Comes in: the first and the last step, and the type of event time (None: positions). Goes out: pixels and texts. Ticks are round: 1, 2 or 5 times a
power of ten for numbers; 1 s, 5 min, 1 h, 1 d and the like for times, counted from midnight in the zone of the column.
"""

from __future__ import annotations

import itertools
import re
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.engine.output.matches import python_value
from cepheid.engine.output.shown import time_texts
from cepheid.records import record
from cepheid.schema import time_unit
from cepheid.viz import svg

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH = 560.0
TEXT_SIZE = 10.0
MOST_TICKS = 9
TICK_GAP = 14.0
"""Least space between the texts of two ticks."""

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
ROUND_TIMES = (
    *(step * SECOND for step in (1, 2, 5, 10, 15, 30)),
    *(step * 60 * SECOND for step in (1, 2, 5, 10, 15, 30)),
    *(step * 3_600 * SECOND for step in (1, 2, 3, 6, 12)),
    *(step * DAY for step in (1, 2, 7)),
)
"""The steps of ticks between a second and a week, in nanoseconds; below and above are decimal ones."""

ZONE = re.compile(r"(Z|[+-]\d\d:\d\d(:\d\d)?)$")
"""The zone at the end of a time of day."""

UNITS = ((DAY, "d"), (3_600 * SECOND, "h"), (60 * SECOND, "m"), (SECOND, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))


@record(slots=False)
class Axis:
    """The common axis: what is shown of it, in steps (event time or positions) and in pixels.

    kind: the type of the time column; None for positions. relative: steps are counted from the start of each match.
    """

    first: int
    last: int
    left: float
    kind: pa.DataType | None
    relative: bool = False

    def at(self, step: int) -> float:
        """Where a step stands, in pixels."""
        length = self.last - self.first
        return self.left + (WIDTH * (step - self.first) / length if length else WIDTH / 2)

    @cached_property
    def unit(self) -> int | None:
        """The nanoseconds of a step; None for numbers."""
        return None if self.kind is None else time_unit(self.kind, "")

    def ticks(self) -> list[tuple[int, str]]:
        """The steps that are named, with their texts: round ones, as many as there is room for; the only one, where there is one."""
        if self.first == self.last:
            return [(self.first, self.text(self.first))]
        for size in self._sizes():
            lowest = -(-(self.first + self._shift) // size) * size - self._shift
            if (self.last - lowest) // size >= MOST_TICKS:
                continue
            steps = range(lowest, self.last + 1, size)
            texts = [self._tick_text(step, size) for step in steps]
            widest = max((svg.text_width(text, TEXT_SIZE) for text in texts), default=0.0)
            if WIDTH * size / (self.last - self.first) >= widest + TICK_GAP or len(steps) < 2:
                return list(zip(steps, texts, strict=True)) if len(steps) > 1 else self._ends()
        raise AssertionError("a step that is larger than the axis ends the search")

    def _ends(self) -> list[tuple[int, str]]:
        return [(step, self.text(step)) for step in (self.first, self.last)]

    def _sizes(self) -> Iterator[int]:
        """Round sizes of steps, ascending, at least one step."""
        decimal = (digit * 10**power for power in itertools.count() for digit in (1, 2, 5))
        if self.unit is None:
            yield from decimal
            return
        least = DAY if pa.types.is_date(self.kind) else 1
        days = (digit * 10**power * DAY for power in itertools.count(1) for digit in (1, 2, 5))
        below = itertools.takewhile(lambda size: size < SECOND, decimal)
        for size in itertools.chain(below, ROUND_TIMES, days):
            if size % self.unit == 0 and size >= least:
                yield size // self.unit

    @cached_property
    def _shift(self) -> int:
        """How many steps the zone of the column is before UTC, at the first step."""
        if self.relative or self.unit is None or not getattr(self.kind, "tz", None):
            return 0
        offset = getattr(self.value(self.first), "utcoffset", lambda: None)()
        return 0 if offset is None else round(offset.total_seconds()) * SECOND // self.unit

    def value(self, step: int) -> object:
        """A step as the time column has it."""
        if self.kind is None or pa.types.is_integer(self.kind):
            return step
        storage = pa.int32() if pa.types.is_date32(self.kind) else pa.int64()
        return python_value(pa.scalar(step, storage).cast(self.kind))

    def text(self, step: int) -> str:
        """A step in full: a time, or how long after the start of its match."""
        if not self.relative:
            return time_texts([self.value(step)])[0]
        return f"+{step}" if self.unit is None else f"+{_duration(step * self.unit)}"

    @cached_property
    def days(self) -> bool:
        """Whether ticks say the time of day alone: of each day the first one, its midnight, says the day."""
        return self.unit is not None and not self.relative and not pa.types.is_date(self.kind)

    def heading(self) -> str:
        """What all ticks have in common: the first day, and the zone; "" where ticks say everything."""
        if not self.days:
            return ""
        day, _, clock = self.text(self.first).partition(" ")
        zone = ZONE.search(clock)
        return f"{day} {zone.group()}" if zone else day

    def _tick_text(self, step: int, size: int) -> str:
        if not self.days:
            return self.text(step)
        # All ticks have as many places, so the one behind a tick says how many.
        text = time_texts([self.value(step), self.value(step + size), self.value(step + 2 * size)])[0]
        day, _, clock = text.partition(" ")
        clock = ZONE.sub("", clock)
        return clock if clock.strip("0:.") else day


def _duration(nanoseconds: int) -> str:
    """A duration with the units that it has: `1h 30m`, `5s`, `0s`."""
    parts = []
    for length, name in UNITS:
        count, nanoseconds = divmod(nanoseconds, length)
        if count:
            parts.append(f"{count}{name}")
    return " ".join(parts) or "0s"
