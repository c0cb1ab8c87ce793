"""The options of `on`, as all that plan for a DataFrame read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.records import record

if TYPE_CHECKING:
    from pyspark.sql import Column


APART, IDLE = "1 day", "1 minute"
"""How far partitions of a source may be apart in event time, and how long one may be silent, where nobody says."""


@record(slots=False)
class Options:
    """The options of `on`, checked."""

    type: str | Column | None
    time: str
    lateness: object
    partition: tuple[str, ...]
    apart: object
    idle: object
    order: tuple[str, ...]
    any_order: bool
    null_keys: str
    null_time: str
    bad_time: str
    max_ahead: object
    positions: bool
    columns: tuple[str, ...] | None
    buckets: int | None
    hot_keys: bool
    late: bool
    until: object
    undecided: bool
    since: object
    max_bytes: int | None
    match_id: str | None
