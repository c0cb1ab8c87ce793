"""The types of columns of text, inferred piece by piece: a column is what all of its texts can be read as.

Comes in: the texts of a column, in pieces. Goes out: the first of its readings, in a fixed order, that fits all of them. What is known of a column is
the readings that fit so far, so a file of any length takes constant memory, and the answer does not depend on where it is cut.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.input.time_texts import TIME
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

BOOLEAN = r"^(1|true|TRUE|True|0|false|FALSE|False)\z"
"""What Arrow reads as a boolean in CSV."""

OF_DAY = r"^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?\z"
"""What Arrow reads as a time of day."""

CODE = r"^[ \t]*[+-]?0[0-9xX]"
"""What Arrow reads as a number, and is a code: `007` is another card than `7`."""

WHOLE = r"^[+-]?[0-9]{16,}\z"
"""A whole number that may be one that no double holds."""

FAR = r"^[+-]?[0-9.]*([eE][+-]?[0-9]{3,}|[0-9]{300,})\z"
"""A number that may be beyond all doubles, or so small that it would be 0."""

INT64_DIGITS = 18
"""An int64 holds each whole number of so many digits."""

TRIMMED = " \t"
"""What Arrow takes off around numbers, days and times of day in CSV."""


@record(slots=False)
class TextReading:
    """A way to read texts. parsed: the type that the reader of the file is asked for; kind: the type of the attribute, to which this is cast."""

    parsed: pa.DataType
    kind: pa.DataType
    trimmed: bool = False

    @property
    def is_time_of_text(self) -> bool:
        """Whether it makes times of what the file's reader gives as text: of columns whose first text looks like a time."""
        return bool(pa.types.is_string(self.parsed) and pa.types.is_timestamp(self.kind))

    def fits(self, texts: pa.Array) -> bool:
        """Whether all texts, none NULL, can be read so."""
        if pa.types.is_boolean(self.kind):
            return bool(pc.all(pc.match_substring_regex(texts, BOOLEAN)).as_py())
        if (pa.types.is_integer(self.kind) or pa.types.is_floating(self.kind)) and pc.any(pc.match_substring_regex(texts, CODE)).as_py():
            return False
        if pa.types.is_floating(self.kind) and not _exact(texts):
            return False
        if pa.types.is_time(self.kind):  # to which Arrow casts no text
            return bool(pc.all(pc.match_substring_regex(pc.utf8_trim(texts, TRIMMED), OF_DAY)).as_py())
        return self._casts(texts) or (self.trimmed and self._casts(pc.utf8_trim(texts, TRIMMED)))

    def _casts(self, texts: pa.Array) -> bool:
        try:
            self.cast(texts.cast(self.parsed))
        except pa.ArrowInvalid:
            return False
        return True

    def cast(self, column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """A column as the file's reader gives it, in the type of the attribute."""
        return column if column.type == self.kind else column.cast(self.kind)


def _double(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # it is no number, which another check says
        return None


def _exact(texts: pa.Array) -> bool:
    """Whether a double holds each whole number among some texts, and no other becomes infinite or 0: two are never read as one for their size."""
    trimmed = pc.utf8_trim(texts, TRIMMED)
    far = pc.unique(trimmed.filter(pc.match_substring_regex(trimmed, FAR))).to_pylist()
    if any(
        math.isinf(value) or (value == 0 and re.search("[1-9]", text.lower().partition("e")[0]))
        for text in far
        if (value := _double(text)) is not None
    ):
        return False
    whole = trimmed.filter(pc.match_substring_regex(trimmed, WHOLE))
    short = pc.less_equal(pc.utf8_length(whole), INT64_DIGITS)
    numbers = pc.filter(whole, short).cast(pa.int64()).to_numpy(zero_copy_only=False)
    if not np.array_equal(numbers.astype(np.float64).astype(np.int64), numbers):
        return False
    return all(int(text) == int(float(text)) for text in pc.unique(whole.filter(pc.invert(short))).to_pylist())


NOTHING = TextReading(pa.null(), pa.null())
"""A column without a value."""


def _times(parsed: Sequence[str | None], kinds: Sequence[str]) -> tuple[TextReading, ...]:
    """Readings as timestamps, with an offset (then in UTC) and without; a parsed unit of None: of text."""
    return tuple(
        TextReading(pa.string() if unit is None else pa.timestamp(unit, zone), pa.timestamp(kind, zone))
        for unit, kind in zip(parsed, kinds, strict=True)
        for zone in ("UTC", None)
    )


TEXT = TextReading(pa.string(), pa.string())

OF_TEXT = (TextReading(pa.string(), pa.date32()), *_times([None, None], ["us", "ns"]), TEXT)
"""The readings of a text, as in JSON: a day; a time in microseconds, as in Spark, or where these are too coarse in nanoseconds; else text."""

OF_CSV = (
    TextReading(pa.int64(), pa.int64(), trimmed=True),
    TextReading(pa.bool_(), pa.bool_()),
    TextReading(pa.date32(), pa.date32(), trimmed=True),
    TextReading(pa.time32("s"), pa.time32("s"), trimmed=True),
    *_times(["s", "ns", "ns"], ["us", "us", "ns"]),
    TextReading(pa.float64(), pa.float64(), trimmed=True),
    *_times([None], ["us"]),
    TEXT,
)
"""The readings of a value in CSV, in the order in which Arrow tries them on a whole file; times in microseconds where these lose nothing."""


class Column:
    """What is known of a column so far. readings: what may be, in order; the last fits every text."""

    def __init__(self, readings: Sequence[TextReading]) -> None:
        self._readings = list(readings)
        self._seen = False

    def see(self, texts: pa.Array) -> None:
        """Read some more texts. Linear in their length, for each reading that is left."""
        texts = pc.drop_null(texts)
        if not len(texts):
            return
        if not self._seen:
            self._seen = True
            if not TIME.fullmatch(texts[0].as_py()):
                self._readings = [each for each in self._readings if not each.is_time_of_text]
        *others, last = self._readings
        self._readings = [*(each for each in others if each.fits(texts)), last]

    @property
    def reading(self) -> TextReading:
        """The first that fits all; `NOTHING` without a text."""
        return self._readings[0] if self._seen else NOTHING
