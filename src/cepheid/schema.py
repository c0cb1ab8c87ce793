"""What is known of the events before they come: attributes with their types, and where type and time stand.

Comes in: an Arrow schema (or several, one per stream). Goes out: an `EventSchema` that binding asks. Nothing here looks at data.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.errors import SchemaError, did_you_mean, quoted
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

STREAM_COLUMN = "$stream"
"""The type column that is added where events have none of their own: to several streams, and where EVENT definitions add types to one."""

DEFAULT_TIME = "ts"
DEFAULT_TYPE = "type"

UNREADABLE = b"cepheid.unreadable"
"""Metadata of an Arrow schema: the columns of its source that Arrow cannot show, as JSON: {name: [what it is, what to write]}."""


@record(slots=False)
class EventSchema:
    """The attributes of the events of one (possibly merged) stream.

    attributes: every input column, in input order, with its Arrow type (type and time columns are attributes too).
    type_column: the column that holds the event type (utf8, or a dictionary of it), or None: then every event has the type `stream`.
    stream: the name of the single stream, where its name is the type.
    types: for each known event type the names of its attributes; None when the types are only known as values of `type_column`.
    time_column: the column of event time, or None: then time windows and gaps are errors.
    made: for each event type that an EVENT definition makes the names of its attributes.
    unreadable: the columns of the input that are no attributes, for Arrow cannot show them: by name what it is and what to write, for errors where
    a query reads one.
    """

    attributes: Mapping[str, pa.DataType]
    type_column: str | None = None
    stream: str | None = None
    types: Mapping[str, frozenset[str]] | None = None
    time_column: str | None = None
    made: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unreadable: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))
        object.__setattr__(self, "made", MappingProxyType(dict(self.made)))
        object.__setattr__(self, "unreadable", MappingProxyType(dict(self.unreadable)))
        if self.types is not None:
            object.__setattr__(self, "types", MappingProxyType(dict(self.types)))

    @property
    def time_type(self) -> pa.DataType | None:
        """The Arrow type of the time column."""
        return None if self.time_column is None else self.attributes[self.time_column]

    @property
    def unit(self) -> int | None:
        """Nanoseconds in one step of event time; None for a numeric time column (its numbers have no unit) and where there is no time."""
        return None if self.time_column is None else time_unit(self.attributes[self.time_column], self.time_column)

    def attributes_of(self, event_type: str | None) -> frozenset[str]:
        """The attribute names of an event type (of all types together for None, or where types are neither declared nor made)."""
        if event_type is not None and event_type in self.made:
            return self.made[event_type]
        if event_type is None or self.types is None:
            return frozenset(self.attributes)
        return self.types.get(event_type, frozenset())

    def check_readable(self, names: Iterable[str], *more: str) -> None:
        """Raise SchemaError for the first of these columns that Arrow cannot show; more: further ways out."""
        for name in names:
            if name in self.unreadable:
                fact, help_ = self.unreadable[name]
                raise SchemaError(fact, help=(help_, *more))


def with_unreadable(arrow: pa.Schema, unreadable: Mapping[str, tuple[str, str]]) -> pa.Schema:
    """An Arrow schema that says which columns of its source it lacks, see `UNREADABLE`."""
    return arrow.with_metadata({UNREADABLE: json.dumps(dict(unreadable))}) if unreadable else arrow


def unreadable_of(arrow: pa.Schema) -> dict[str, tuple[str, str]]:
    """What `with_unreadable` has said."""
    said = (arrow.metadata or {}).get(UNREADABLE)
    return {} if said is None else {name: (fact, help_) for name, (fact, help_) in json.loads(said).items()}


NANOSECONDS = MappingProxyType({"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1})


def time_unit(kind: pa.DataType, column: str) -> int | None:
    """Nanoseconds in one step of a time column of type `kind`; None for integers. column: its name, for the message.

    Raises SchemaError for a type that cannot be event time: binary floating point is refused, because time is exact.
    """
    if pa.types.is_timestamp(kind):
        return NANOSECONDS[kind.unit]
    if pa.types.is_date32(kind):
        return 86_400 * NANOSECONDS["s"]
    if pa.types.is_date64(kind):
        return NANOSECONDS["ms"]
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return None
    number = pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_integer(kind)
    raise SchemaError(
        f"the time column `{column}` is {kind}, which cannot be event time",
        help="cast it to a timestamp or to int64" if number else ("event time is a timestamp, a date or an integer", time_casts(column)),
    )


def time_casts(column: str) -> str:
    """The help for a column that is to be a timestamp, wherever it comes from."""
    return f"cast it before: table[{column!r}].cast(pa.timestamp('us')), pd.to_datetime(frame[{column!r}]), in Spark F.to_timestamp({column!r})"


def schema_of(
    arrow: pa.Schema,
    *,
    type: str | None = None,  # noqa: A002 - the public word
    time: str | None = None,
    streams: tuple[str, ...] = (),
    used: frozenset[str] = frozenset(),
) -> EventSchema:
    """The `EventSchema` of one table.

    arrow: the input's schema. type, time: column names as the user gave them (None: the defaults `type` and `ts`, where present).
    streams: the names of FROM. used: the types that the pattern names. The type is the column `type` if the input has one and the only type of
    the pattern is not FROM's only stream, else the stream's name. Raises SchemaError when a named column is missing, twice there or of a
    type that cannot serve.
    """
    names = list(arrow.names)
    check_doubles("the input", names)
    attributes = {name: arrow.field(name).type for name in names}
    known = EventSchema(attributes, unreadable=unreadable_of(arrow))
    time_column = _column(known, time, DEFAULT_TIME, what="time")
    if time_column is not None:
        time_unit(attributes[time_column], time_column)
    stream = streams[0] if len(streams) == 1 and used == {streams[0]} else None
    type_column = None if stream is not None and type is None else _column(known, type, DEFAULT_TYPE, what="type")
    if type_column is not None and not can_be_type(attributes[type_column]):
        raise SchemaError(
            f"the type column `{type_column}` is {attributes[type_column]}, not text", help="cast it, or name another column with type="
        )
    if type_column is None:
        if stream is None and len(streams) == 1:
            stream = streams[0]
        if stream is None and used:
            one = min(used)
            near = next((repr(name) for name in names if name.lower() == DEFAULT_TYPE), "")
            raise SchemaError(
                f"the query names the event type{'s' if len(used) > 1 else ''} {quoted(sorted(used))}, and the input has no column `{DEFAULT_TYPE}`",
                help=(
                    f"name the column that has the type of each event with type={near}: the input has {quoted(names)}",
                    *([f"if all events are of the type `{one}`, write FROM {one} in the query"] if len(used) == 1 else []),
                ),
            )
        types = None if stream is None else {stream: frozenset(names)}
        return dataclasses.replace(known, stream=stream, time_column=time_column, types=types)
    return dataclasses.replace(known, type_column=type_column, time_column=time_column)


def check_doubles(owner: str, names: Sequence[str]) -> None:
    """Raise SchemaError where two columns have one name."""
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise SchemaError(f"{owner} has more than one column named {quoted(double)}", help="rename all but one")


def _column(schema: EventSchema, given: str | None, default: str, *, what: str) -> str | None:
    attributes = schema.attributes
    schema.check_readable([default if given is None else given])
    if given is None:
        return default if default in attributes else None
    if given not in attributes:
        times = (repr(name) for name, kind in attributes.items() if what == "time" and pa.types.is_timestamp(kind))
        raise SchemaError(
            f"the input has no {what} column `{given}`",
            help=[*did_you_mean(given, attributes), f"name it with {what}={next(times, '')}: the input has {quoted(attributes)}"],
        )
    return given


def can_be_type(kind: pa.DataType) -> bool:
    """Whether a column holds event types: text, or nothing at all, as an empty DataFrame's may: then no event has a type."""
    return is_text(kind) or pa.types.is_null(kind)


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type is text, also as a dictionary or view."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
