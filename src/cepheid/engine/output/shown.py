"""Matches as people read them: values as short texts, and tables of them for a terminal and for a notebook.

Comes in: Python values. Goes out: text. Nothing here knows a match; `matches` says what stands in the table, and drawings use the same texts.
"""

from __future__ import annotations

import html
import math
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any

from cepheid.errors import counted
from cepheid.records import record
from cepheid.schema import DEFAULT_TYPE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

CELL_WIDTH = 40
"""Longest value that is shown, in characters."""

SHOWN_BITS = 1 << 10
"""Integers with more bits are shown by their number of digits."""

TIME = re.compile(r"(-?\d+-\d\d-\d\d)[ T](\d\d:\d\d)(:\d\d)?(\.\d+)?(Z|[+-]\d\d:?\d\d(?::\d\d)?)?")
"""A date with a time of day, as Python writes it: the day, hours and minutes, seconds, fraction, zone."""


def digits(value: int) -> str:
    """An integer as text, however large."""
    return f"<{math.ceil(value.bit_length() * math.log10(2))} digits>" if value.bit_length() > SHOWN_BITS else str(value)


def cut(text: str, width: int = CELL_WIDTH) -> str:
    """A text of at most so many characters; two dots stand for the rest."""
    return text if len(text) <= width else text[: width - 2] + ".."


def value_text(value: Any) -> str:
    """A value as a short text, times without needless zeros; None is NULL."""
    if isinstance(value, int) and not isinstance(value, bool):
        return digits(value)
    return cut(time_texts([value])[0]) if value is not None else "NULL"


def time_texts(values: Iterable[Any]) -> list[str]:
    """Times as texts, without what is zero in all of them: fractions, then seconds, then the time of day. UTC is Z. Others as they are."""
    texts = ["NULL" if value is None else str(value) for value in values]
    parts = [TIME.fullmatch(text) for text in texts]
    if not any(parts):
        return texts
    days, minutes, seconds, fractions, zones = zip(*(part.groups("") for part in parts if part), strict=True)
    places = max(len(fraction.rstrip("0").removeprefix(".")) for fraction in fractions)
    with_seconds = places > 0 or any(second not in {"", ":00"} for second in seconds)
    with_time = with_seconds or any(minute != "00:00" for minute in minutes) or any(zones)
    found = iter(
        day
        + f" {minute}" * with_time
        + (second or ":00") * with_seconds
        + (f".{fraction[1:].ljust(places, '0')[:places]}" if places else "")
        + ("Z" if zone in {"+00:00", "+0000"} else zone)
        for day, minute, second, fraction, zone in zip(days, minutes, seconds, fractions, zones, strict=True)
    )
    return [next(found) if part else text for text, part in zip(texts, parts, strict=True)]


def clock_texts(times: Iterable[Any]) -> list[str]:
    """`time_texts` for a place where the day and the zone stand nearby: without them, if all times have the same, and have a time of day."""
    texts = time_texts(times)
    parts = [TIME.fullmatch(text) for text in texts]
    if not all(parts) or len({part.group(1, 5) for part in parts if part}) != 1:
        return texts
    return ["".join(each or "" for each in part.group(2, 3, 4)) for part in parts if part]


def attributes_shown(names: Iterable[str], keys: Sequence[str], time: str | None, named: Sequence[str] = ()) -> tuple[str, ...]:
    """Which attributes tell an event of a match from others, those of `named` first.

    Left out are the keys and the time, which stand beside it, and, if there are others, the type.
    """
    known = list(names)
    own = tuple(name for name in dict.fromkeys([*(name for name in named if name in known), *known]) if name not in {*keys, time})
    return tuple(name for name in own if name != DEFAULT_TYPE) or own


def event_text(event: Mapping[str, Any]) -> str:
    """An event as text: `v=3, w=a`, without NULL and without its type."""
    return ", ".join(f"{name}={value_text(value)}" for name, value in event.items() if value is not None and name != DEFAULT_TYPE)


def events_text(start: str, first: Mapping[str, Any], end: str, last: Mapping[str, Any], count: int) -> str:
    """The events of one variable as text, by the first and the last of them: `10:00 .. 10:07 v=3 .. 7, w=a (5 events)`.

    start, end: when these are. An attribute that is equal in both is there once.
    """
    when = " .. ".join(dict.fromkeys(filter(None, (start, end))))
    parts = []
    for name, value in first.items():
        texts = dict.fromkeys(map(value_text, (value, last[name])))
        if texts != {"NULL": None}:
            parts.append((f"{name}=" if name != DEFAULT_TYPE else "") + " .. ".join(texts))
    counted = [f"({count:,} event{'s' * (count > 1)})"] if count > 1 or not (parts or when) else []
    return " ".join([*([when] if when else []), *([cut(", ".join(parts))] if parts else []), *counted])


NO_EVENTS = "-"
"""What stands for a variable without events."""


LEAST_WIDTH = 12
"""Characters that a column keeps where a table is cut to the width of a terminal; columns that do not fit then are left out."""

BETWEEN = 2
"""Blanks between two columns."""


def terminal_width() -> int | None:
    """The columns of the terminal that is printed to; None where nothing is cut, for it is none."""
    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else None


def fitted(widths: Sequence[int], width: int | None, *, whole: Collection[int] = (), between: int = BETWEEN) -> list[int]:
    """How many characters each column of a table may have that fits beside those before it; the columns behind them are left out.

    widths: of the columns in full. width: of all of them with `between` blanks between two; None: any. whole: the places of columns that are not
    cut, for a part of them says nothing. O(columns x width).
    """
    if width is None:
        return list(widths)
    least = [min(own, width if place in whole else LEAST_WIDTH) for place, own in enumerate(widths)]
    count, used = 0, -between
    for own in least:
        used += between + own
        if used > width and count:
            break
        count += 1
    room = width - between * (count - 1)
    most = min(max(widths[:count], default=0), width)
    shown = list(widths[:count])
    while most >= LEAST_WIDTH:
        shown = [max(own, min(wanted, most)) for own, wanted in zip(least, widths[:count], strict=False)]
        if sum(shown) <= room:
            break
        most -= 1
    return [min(own, width) for own in shown]


def left_out(widths: Sequence[int], fit: Sequence[int]) -> str | None:
    """What a terminal does not show of a table where `fitted` gives these widths of its columns; None: it shows all."""
    if len(fit) < len(widths):
        return f".. and {counted(len(widths) - len(fit), 'more column')}, for which the terminal is too narrow"
    return ".. stands for what the terminal is too narrow for" if list(fit) != list(widths) else None


@record(slots=False)
class Listing:
    """A table of texts. title: the lines before it. columns: by name. more: how many rows are not shown. right: the columns of numbers.

    whole: those that are not cut, for they are of times. On a terminal its lines are as long as that is wide, and what is left out is said.
    """

    title: Sequence[str]
    columns: Mapping[str, Sequence[str]]
    more: int = 0
    right: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The cells by row."""
        return list(zip(*self.columns.values(), strict=True))

    def __str__(self) -> str:
        widths = [max(map(len, (name, *cells))) for name, cells in self.columns.items()]
        fit = fitted(widths, terminal_width(), whole=[place for place, name in enumerate(self.columns) if name in self.whole])
        lines = [
            (" " * BETWEEN)
            .join(
                cut(cell, own).rjust(own) if name in self.right else cut(cell, own).ljust(own)
                for name, cell, own in zip(self.columns, row, fit, strict=False)
            )
            .rstrip()
            for row in ([tuple(self.columns), *self.rows] if self.rows else [])
        ]
        note = left_out(widths, fit) if lines else None
        notes = [*([f".. and {self.more:,} more"] if self.more else []), *([f"{note} (to_arrow() has all)"] if note else [])]
        return "\n".join([*self.title, *lines, *notes])

    def to_html(self) -> str:
        """The table for a notebook."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows)
        more = f"<p>and {self.more:,} more</p>" if self.more else ""
        title = "<br>".join(map(html.escape, self.title))
        return f"<p>{title}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
