"""What a request says: its query, the values of its parameters, its events as a table.

Events travel as text in one of `FORMATS`: "line" is the short form of `cepheid.testing.events`, "csv" and "jsonl" are files. A Parquet or Arrow file
is turned into JSON lines when it is uploaded, with a note where a type changes by that.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import json
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import cepheid
from cepheid.cli.queries import parameter
from cepheid.engine.input.event_times import times_of
from cepheid.engine.input.files.formats import FORMATS as FILES
from cepheid.engine.input.files.streams import read as read_file
from cepheid.engine.input.read import table_of
from cepheid.engine.output.matches import python_value
from cepheid.errors import InputError, check_choice
from cepheid.logical.parameters import lists, parameters
from cepheid.play import limits
from cepheid.play.limits import MAX_CELL, check_events
from cepheid.records import record
from cepheid.testing import events as events_of_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cepheid.schema import EventSchema

FORMATS = ("line", "csv", "jsonl")
"""How events are written in a request."""

AS_THEY_ARE = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
"""The endings of files whose text is that of a request."""

EMPTY = pa.table({"type": pa.array([], pa.string()), "ts": pa.array([], pa.int64())})
"""No events."""


@record(slots=False)
class ShownEvents:
    """Events as they are shown: a table of them by row, and which columns have the type and the time (None: as `Query.run` finds them)."""

    table: pa.Table
    type: str | None
    time: str | None

    @property
    def events(self) -> Any:
        """What `Query.run` is given."""
        return self.table

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `Query.run` that say how to read them; events that are not in the order of their times are sorted."""
        return {"type": self.type, "time": self.time, "sort": True}

    @property
    def null_keys(self) -> str:
        """What becomes of events with a NULL in their key."""
        return "drop"

    def schema(self, query: cepheid.Query) -> EventSchema:
        """The schema as the query reads it."""
        return query.schema(self.table.schema, type=self.type, time=self.time)

    def read(self) -> tuple[pa.Table, Sequence[int]]:
        """The events that the query reads, and the row of each in `table`; they may be sorted yet, stably."""
        return self.table, range(self.table.num_rows)


# ----------------------------------------------------------------------------------------------------------------------- fields


def text_in(request: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """A field that is text. Raises InputError."""
    value = request.get(name, default)
    if not isinstance(value, str):
        raise InputError(f"the request has no text `{name}`")
    return value


def name_in(request: Mapping[str, Any], name: str) -> str | None:
    """A field that is the name of a column, or none."""
    value = request.get(name)
    if value is not None and not isinstance(value, str):
        raise InputError(f"`{name}` of the request is no name of a column")
    return value or None


def rows_in(request: Mapping[str, Any], name: str) -> list[int]:
    """A field that lists rows of events, ascending, each once. Raises InputError."""
    value = request.get(name)
    if not isinstance(value, list) or not all(isinstance(row, int) and not isinstance(row, bool) and row >= 0 for row in value):
        raise InputError(f"`{name}` of the request is no list of rows")
    return sorted(set(value))


# ------------------------------------------------------------------------------------------------------------------------ query


def query_in(request: Mapping[str, Any]) -> cepheid.Query:
    """The query of a request, with the values of its parameters. Raises the errors of the language, and InputError."""
    query = cepheid.query(text_in(request, "query"))
    args = args_in(request, query)
    return query.with_args(**args) if args else query


def args_in(request: Mapping[str, Any], query: cepheid.Query) -> dict[str, object]:
    """The values that a request gives to the parameters of a query, which are written as those of `cepheid run --param`; empty ones are left out."""
    given = request.get("args") or {}
    if not isinstance(given, dict):
        raise InputError("`args` of the request gives no values to names")
    known, listed = {node.name for node in parameters(query.tree)}, frozenset(lists(query.tree))
    texts = {name: str(text) for name, text in given.items() if name in known and str(text).strip()}
    return dict(parameter(f"{name}={text}", listed=listed) for name, text in texts.items())


def parameter_names(query: cepheid.Query) -> list[str]:
    """The parameters of a query, in the order written, each once."""
    return list(dict.fromkeys(node.name for node in parameters(query.tree)))


# ----------------------------------------------------------------------------------------------------------------------- events


def events_in(request: Mapping[str, Any]) -> ShownEvents:
    """The events of a request: `{"format": .., "text": .., "type": .., "time": ..}` under "source".

    Raises InputError for text that is not of its format, with its line, and LimitError past MAX_EVENTS.
    """
    source = request.get("source")
    if not isinstance(source, dict):
        raise InputError("the request has no events")
    form = text_in(source, "format")
    check_choice("format", form, FORMATS)
    table = _table(form, text_in(source, "text"))
    check_events(table.num_rows)
    return ShownEvents(table, name_in(source, "type"), name_in(source, "time"))


def _table(form: str, text: str) -> pa.Table:
    if not text.strip():
        return EMPTY
    if form == "line":
        try:
            rows = events_of_line(text)
        except ValueError as error:
            raise InputError(str(error)) from None
        return whole(table_of(rows))
    return read_bytes(f"events.{form}", text.encode("utf-8", "surrogatepass"))


def read_bytes(name: str, data: bytes) -> pa.Table:
    """The events of a file with this name and content. Raises InputError with the name, not the place where it was written for a moment."""
    with tempfile.TemporaryDirectory(prefix="cepheid-play-") as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        try:
            return whole(read_file(path, typed=False))
        except cepheid.CepheidError as error:
            error.fact = error.fact.replace(str(path), name)
            error.args = (error.fact,)
            raise


def whole(events: pa.Table | pa.RecordBatchReader) -> pa.Table:
    """The events as one table."""
    return events if isinstance(events, pa.Table) else events.read_all()


def uploaded(name: str, data: str) -> tuple[dict[str, str], list[str]]:
    """A file as events of a request, past MAX_EVENTS the first of them, and notes on what became different.

    data: its content in base 64. Raises InputError.
    """
    safe = Path(name.replace("\\", "/")).name or "events"
    ending = Path(safe).suffix.lower()
    if ending not in FILES:
        raise InputError(f"`{safe}` is no file of events that is known here", help=f"the endings are {', '.join(FILES)}")
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise InputError("the content of the file is not in base 64") from None
    table = read_bytes(f"events{ending}", content)
    sample = table.slice(0, limits.MAX_EVENTS)
    if sample.num_rows == table.num_rows and ending in AS_THEY_ARE:
        return {"format": AS_THEY_ARE[ending], "text": _decoded(content)}, []
    text = json_lines(sample)
    notes = changes(table.schema, _table("jsonl", text).schema)
    if sample.num_rows < table.num_rows:
        notes.insert(
            0, f"a sample: the first {sample.num_rows:,} of {table.num_rows:,} events (MAX_EVENTS); `cepheid run` and Query.run read all"
        )
    return {"format": "jsonl", "text": text}, notes


def _decoded(content: bytes) -> str:
    """Text that `read_bytes` has read, so it is UTF-8 or what Arrow takes for it."""
    return content.decode("utf-8-sig", "replace")


def json_lines(table: pa.Table) -> str:
    """A table as JSON lines; values that JSON does not have are written as text."""
    columns = [[_json(python_value(value)) for value in column] for column in table.columns]
    rows = zip(*columns, strict=True) if columns else iter(())
    return "\n".join(json.dumps(dict(zip(table.column_names, row, strict=True)), ensure_ascii=False) for row in rows)


def _json(value: Any) -> Any:
    """A value as JSON has it: NaN and what is none of its types become NULL and text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_json(inner) for inner in value]
    return value.isoformat(" ") if hasattr(value, "hour") and hasattr(value, "year") else str(value)


def changes(before: pa.Schema, after: pa.Schema) -> list[str]:
    """Which attributes have another type once they have travelled as text."""
    told = []
    for field in before:
        place = after.get_field_index(field.name)
        kind = after.field(place).type if place >= 0 else None
        if kind is not None and kind != field.type and family_of(kind) != family_of(field.type):
            told.append(f"`{field.name}` is {kind} here, and {field.type} in the file: events travel to the page and back as text")
    return told


def family_of(kind: pa.DataType) -> str:
    """What a type is for conditions, as far as width and encoding do not matter."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    for name, test in FAMILIES.items():
        if test(kind):
            return name
    return str(kind)


FAMILIES = {
    "whole number": pa.types.is_integer,
    "number": pa.types.is_floating,
    "text": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind),
    "instant": lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,
    "local time": pa.types.is_timestamp,
}


# ---------------------------------------------------------------------------------------------------------------------- showing


def shown(value: Any) -> str:
    """A Python value as the text of a cell; a longer one is cut, and says so."""
    if value is None:
        return ""
    text = str(value).lower() if isinstance(value, bool) else _time_text(value) if hasattr(value, "isoformat") else str(value)
    return text if len(text) <= MAX_CELL else f"{text[:MAX_CELL]}.. ({len(text):,} characters)"


def _time_text(value: Any) -> str:
    """A time without needless zeros, and UTC as Z."""
    return str(value).removesuffix(" 00:00:00").replace("+00:00", "Z")


def is_number(kind: pa.DataType) -> bool:
    """Whether values of a type stand at the right of their column."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def clock_of(given: ShownEvents, name: str | None) -> dict[str, Any] | None:
    """Where events stand on the axis of a time line: steps from `origin`; None without times.

    `steps` are whole numbers; `unit` is how many milliseconds one is, None where times are numbers; `origin` is in these milliseconds, or a number.
    """
    if name is None or given.table.schema.get_field_index(name) < 0 or not given.table.num_rows:
        return None
    try:
        times = times_of(given.table, name)
    except cepheid.CepheidError:  # NULLs, texts: the run says so
        return None
    kind, first = given.table.schema.field(name).type, int(times.min())
    unit = {"s": 1000.0, "ms": 1.0, "us": 1e-3, "ns": 1e-6}[kind.unit] if pa.types.is_timestamp(kind) else None
    if pa.types.is_date32(kind):
        unit = 86_400_000.0
    return {"steps": (times - first).tolist(), "unit": unit, "origin": first if unit is None else first * unit}


def times_sorted(given: ShownEvents, name: str | None) -> bool:
    """Whether events stand in the order of their times."""
    clock = clock_of(given, name)
    steps: Sequence[int] = [] if clock is None else clock["steps"]
    return all(before <= after for before, after in itertools.pairwise(steps))
