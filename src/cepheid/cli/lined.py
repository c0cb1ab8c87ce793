"""Lines of JSON as events for a query, one by one as they come: only what the query reads has a type, the rest stays the text that it is.

Comes in: lines. Goes out: tables with the attributes that the query speaks of, and the line itself in `LINE`. The types of the attributes are fixed
before the first event: they come from a file of events, or from the first line and the query. A value of another type is an error, never cast.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.engine.input.files.jsonlines import event_of, joined
from cepheid.engine.input.files.readings import OF_TEXT, Column
from cepheid.engine.input.sources import used_types
from cepheid.engine.plan.likely_schema import likely_schema, path_of, walk
from cepheid.errors import InputError, quoted
from cepheid.records import record
from cepheid.schema import DEFAULT_TIME, DEFAULT_TYPE, is_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import cepheid
    from cepheid.cli.settings import Watching

LINE = "$line"
"""The attribute that is the line itself: no query can speak of it."""

SCHEMA = "--schema FILE takes the types from a file of such events"

SKIP = "--skip-bad-lines leaves such lines out, and counts them"
"""What goes on behind a bad line."""

UNFIT = (ValueError, TypeError, OverflowError, pa.ArrowException)
"""What Arrow raises for values that it cannot hold."""


@record(slots=False)
class Line:
    """A line that is an event: its number from 1 on, its text, and the object on it."""

    number: int
    text: str
    event: dict[str, Any]


def line_of(number: int, content: bytes) -> Line | None:
    """A line as an event; None for a blank one. Raises InputError for what is no object in UTF-8."""
    try:
        text = content.decode("utf-8-sig" if number == 1 else "utf-8").strip()
    except UnicodeDecodeError as error:
        raise InputError(f"line {number}: byte 0x{content[error.start]:02x} is not UTF-8", help="write UTF-8") from None
    return Line(number, text, event_of(f"line {number}", text)) if text else None


# ---------------------------------------------------------------------------------------------------------------------------- types


@record(slots=False)
class Attributes:
    """What a query reads of events: attributes with their types, and which of them have the event type and the time (None: none has).

    untimed: the first event had no `ts`, and none may have one: else times would be left out silently. whence: for messages, what has said the types.
    guessed: the attributes that the first event lacks, whose types are guessed from the query. loose: those that nothing reads so far, whose values
    are left out where they do not fit; unfit: those of which some were.
    """

    kinds: Mapping[str, pa.DataType]
    type: str | None
    time: str | None
    untimed: bool = False
    whence: Mapping[str, str] = dataclasses.field(default_factory=dict)
    guessed: frozenset[str] = frozenset()
    loose: frozenset[str] = frozenset()
    unfit: set[str] = dataclasses.field(default_factory=set)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the tables: the attributes, and `LINE`."""
        return pa.schema([*self.kinds.items(), (LINE, pa.string())])

    def table(self, lines: Sequence[Line]) -> pa.Table:
        """Lines as a table of `schema`. Raises what `UNFIT` has where a value does not fit."""
        columns = [self._column(name, [line.event.get(name) for line in lines]) for name in self.kinds]
        return pa.Table.from_arrays([*columns, pa.array([line.text for line in lines], pa.string())], schema=self.schema)

    def _column(self, name: str, values: list[Any]) -> pa.Array:
        kind = self.kinds[name]
        try:
            return fitted(values, kind)
        except UNFIT:
            if name not in self.loose:
                raise
        self.unfit.add(name)
        return fitted([value if fits(value, kind) else None for value in values], kind)

    def check(self, line: Line) -> None:
        """Raise InputError for the first value that does not fit, and for an event without a time."""
        for name, kind in self.kinds.items():
            value = line.event.get(name)
            try:
                self._column(name, [value])
            except UNFIT:
                text = json.dumps(value, ensure_ascii=False)
                shown = text if len(text) <= 40 else text[:40] + ".."
                fact = f"line {line.number}: `{name}` is {shown}, which is not {kind} {self.whence[name]}"
                raise InputError(fact, help=self._ways_out(name, value, kind)) from None
        if self.time is not None and line.event.get(self.time) is None:
            raise InputError(
                f"line {line.number} has no `{self.time}`, and an event needs a time", help=("give it a time, or name it with --time", SKIP)
            )
        if self.untimed and DEFAULT_TIME in line.event:
            raise InputError(
                f"line {line.number} has a `{DEFAULT_TIME}`, and the first event had none", help=("give all events a time, or none", SKIP)
            )

    def _ways_out(self, name: str, value: Any, kind: pa.DataType) -> tuple[str, ...]:
        """What helps where a value is not of the attribute's type."""
        if name in self.guessed:
            return (SCHEMA, f"or begin with an event that has `{name}`: the first one gives the types")
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if (number and isinstance(value, str)) or (is_text(kind) and isinstance(value, int | float)):
            one = f"no value is cast: if `{name}` is a number on some lines and a text on others, write it as a text on all of them"
            return (SCHEMA, one, SKIP)
        return (SCHEMA, SKIP)


def attributes_of(query: cepheid.Query, first: Line, schema: pa.Schema | None, settings: Watching) -> Attributes:
    """What a query reads of events, and what the options name. first: the first of them; schema: of a file of such events, if there is one.

    Raises InputError.

    Without a schema an attribute has the type of its value in the first event, and where that has none, the one that the query tells. A number that
    the query treats as one, by comparing it with a number or computing with it, is a double.
    """
    likely = dict(likely_schema(query).attributes)
    named = {path[0] for node in walk(query.tree) if (path := path_of(node))}
    wanted = {name: kind for name, kind in likely.items() if name in named or name not in (DEFAULT_TYPE, DEFAULT_TIME)}
    types, streams = used_types(query.tree), query.tree.streams
    typed = not (len(streams) == 1 and types == {streams[0]})
    return _attributes(wanted, first, schema, settings, typed=typed, needs_type=bool(types - set(streams)))


def attributes_of_rules(queries: Iterable[cepheid.Query], first: Line, schema: pa.Schema | None, settings: Watching) -> Attributes:
    """The same for rules: what their queries read, and what else the first event has, or the schema, which further rules may read."""
    read: dict[str, list[pa.DataType]] = {}
    for query in queries:
        for name, kind in likely_schema(query).attributes.items():
            if name not in (DEFAULT_TYPE, DEFAULT_TIME):
                read.setdefault(name, []).append(kind)
    wanted = {name: _united(kinds, first.event.get(name)) for name, kinds in read.items()}
    others: dict[str, pa.DataType] = {}
    for name in first.event if schema is None else schema.names:
        if name not in wanted:
            with contextlib.suppress(*UNFIT):
                kind = pa.null() if schema is None else plain(schema.field(name).type)
                others[name] = kind_of(first.event.get(name), kind)
    others = {name: kind for name, kind in others.items() if _is_known(kind)}
    found = _attributes({**others, **wanted}, first, schema, settings, typed=True, needs_type=True)
    return dataclasses.replace(found, loose=frozenset(others) - {found.type, found.time, *settings.order})


def _is_known(kind: pa.DataType) -> bool:
    """Whether a value says its type: NULL and an empty list do not."""
    if pa.types.is_struct(kind):
        return all(_is_known(field.type) for field in kind)
    return _is_known(kind.value_type) if pa.types.is_list(kind) else not pa.types.is_null(kind)


def _united(kinds: Sequence[pa.DataType], value: Any) -> pa.DataType:
    """The type for all that read an attribute with this value in the first event; of what does not go together the first, a number if it is one."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    together = pa.null()
    for kind in kinds:
        both = joined(together, kind)
        if both is None:
            both = kind if number and pa.types.is_floating(kind) else together
        together = both
    return together


def _attributes(
    wanted: Mapping[str, pa.DataType], first: Line, schema: pa.Schema | None, settings: Watching, *, typed: bool, needs_type: bool
) -> Attributes:
    """The attributes with their types, and those that the options name.

    wanted: what is read, with the types that queries tell. typed: whether an attribute `type` has the event type. needs_type: whether one has to.
    """
    type, time, order = settings.type, settings.time, settings.order  # noqa: A001 - public word
    there: Mapping[str, Any] = first.event if schema is None else dict(zip(schema.names, schema.types, strict=True))
    where = f"line {first.number}" if schema is None else "the file of --schema"
    wanted = {**{name: pa.int64() for name in order}, **wanted}
    if type is None and DEFAULT_TYPE in there and typed:
        type = DEFAULT_TYPE  # noqa: A001 - as above
    if type is None and needs_type:
        raise InputError(
            f"{where} has no attribute `{DEFAULT_TYPE}`, which says what an event is", help=f"name it with --type: there is {quoted(there)}"
        )
    time = time or (DEFAULT_TIME if DEFAULT_TIME in there else None)
    for name, option in ((type, "--type"), (time, "--time"), *((each, "--order") for each in order)):
        if name is not None and name not in there:
            raise InputError(f"{where} has no attribute `{name}`", help=f"name another with {option}: there is {quoted(there)}")
    if schema is None and time is not None and first.event[time] is None:
        raise InputError(f"{where} has no time in `{time}`, and an event needs one", help="give it a time, or name it with --time")
    if schema is None:
        try:
            kinds = {name: kind_of(first.event.get(name), kind) for name, kind in wanted.items()}
            kinds |= {} if time is None else {time: kind_of(first.event[time], pa.int64())}
        except UNFIT as error:
            raise InputError(
                f"{where} has a value that Arrow cannot hold: {error}", help="texts are Unicode, integers have 64 bits"
            ) from None
    else:
        kinds = {name: plain(there[name]) for name in (*wanted, *([time] if time else [])) if name in there}
    guessed = frozenset() if schema is not None else frozenset(name for name in kinds if there.get(name) is None)
    said = {name: f"(guessed from the query, for {where} has no `{name}`)" if name in guessed else f"as in {where}" for name in kinds}
    if type is not None:
        kinds[type], said[type] = pa.string(), "as event types are"
    return Attributes(kinds, type, time, untimed=schema is None and time is None, whence=said, guessed=guessed)


def plain(kind: pa.DataType) -> pa.DataType:
    """The type of an attribute in a file, as lines have it."""
    return kind.value_type if pa.types.is_dictionary(kind) else pa.string() if is_text(kind) else kind


def kind_of(value: Any, likely: pa.DataType) -> pa.DataType:
    """The type of an attribute with this value in the first event; likely: what the query tells."""
    if value is None:
        return likely
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int | float):
        return pa.float64() if isinstance(value, float) or pa.types.is_floating(likely) else pa.int64()
    if isinstance(value, str):
        if pa.types.is_date(likely) and fits(value, likely):
            return likely
        column = Column(OF_TEXT)
        column.see(pa.array([value]))
        return column.reading.kind
    if isinstance(value, dict) and pa.types.is_struct(likely):
        return pa.struct([(field.name, kind_of(value.get(field.name), field.type)) for field in likely])
    if isinstance(value, dict):
        return pa.struct([(name, kind_of(inner, pa.null())) for name, inner in value.items()])
    item = next((inner for inner in value if inner is not None), None)
    return pa.list_(kind_of(item, pa.null()))


# --------------------------------------------------------------------------------------------------------------------------- values


def fits(value: Any, kind: pa.DataType) -> bool:
    """Whether a value is one of this type."""
    try:
        fitted([value], kind)
    except UNFIT:
        return False
    return True


def fitted(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Values of JSON as a column of this type, none changed; raises one of `UNFIT`. Arrow itself would make 1 of 1.5 and of TRUE."""
    if pa.types.is_struct(kind):
        _check(values, [dict])
        if not kind.num_fields:
            return pa.array(values, kind)
        inner = [fitted([None if value is None else value.get(field.name) for value in values], field.type) for field in kind]
        return pa.StructArray.from_arrays(inner, fields=list(kind), mask=pa.array([value is None for value in values], pa.bool_()))
    if pa.types.is_list(kind):
        _check(values, [list])
        items = fitted([item for value in values for item in value or ()], kind.value_type)
        ends = [0]
        for value in values:
            ends.append(ends[-1] + len(value or ()))
        mask = pa.array([value is None for value in values], pa.bool_())
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items, type=kind, mask=mask)
    if pa.types.is_time(kind):
        _check(values, [str])
        return pa.array([None if value is None else dt.time.fromisoformat(value) for value in values], kind)
    if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        _check(values, [str])
        return pa.array(values, pa.string()).cast(kind)
    known = next((types for test, types in OF_JSON if test(kind)), None)
    if known is None:
        raise TypeError(f"JSON has no {kind}")
    _check(values, known)
    return pa.array(values, kind)


OF_JSON = (
    (pa.types.is_boolean, (bool,)),
    (pa.types.is_integer, (int,)),
    (pa.types.is_floating, (int, float)),
    (is_text, (str,)),
    (pa.types.is_null, ()),
)
"""Which values of JSON are of a type. Whole numbers that a double does not hold are refused by Arrow."""


def _check(values: list[Any], types: Iterable[type]) -> None:
    if not set(map(type, values)) <= {*types, type(None)}:
        raise TypeError
