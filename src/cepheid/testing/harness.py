"""Tools for testing patterns: a stream in one line, and matches compared with the expected ones.

    from cepheid.testing import assert_matches, events

    def test_two_high_readings():
        query = cepheid.query("SELECT * WHERE T AS x ; T AS y FILTER x.temp > 40 AND y.temp > 40 WITHIN 5")
        stream = events("T1(temp=41) H2(hum=20) T3(temp=45) T9(temp=50)")
        assert_matches(query, stream, [{"x": 0, "y": 2}])

Comes in: a query and rows. Goes out: nothing, or an AssertionError that shows every missing and every unexpected match with its events. `events_of`
and `difference` are for differential tests: rows or tables as events of the reference, and its result compared with an engine's.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.errors import InputError
from cepheid.schema import DEFAULT_TIME, DEFAULT_TYPE, EventSchema
from cepheid.testing.evaluate import EPOCH_DAY, Event, steps_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cepheid.testing.denotation import Bindings, Match
    from cepheid.testing.reference import Partition

Row = dict[str, Any]

Expected = Mapping[str, int | Iterable[int]] | Iterable[int]
"""An expected match: variables with their position or positions, or the positions of the whole match alone."""

# ------------------------------------------------------------------------------------------------------------------ writing streams

EVENT = re.compile(r"\s*(?P<type>[^\W\d]+|[^\W\d]\w*(?=@))(?:@?(?P<time>-?\d+))?(?:\((?P<attributes>(?:'[^']*'|[^')])*)\))?(?=\s|$)")
ATTRIBUTE = re.compile(r"\s*(?P<name>[^\W\d]\w*)\s*=\s*(?P<value>'[^']*'|[^,']+?)\s*(?:,|$)")
WORDS: dict[str, object] = {"null": None, "true": True, "false": False}


def events(text: str, *, type: str = DEFAULT_TYPE, time: str = DEFAULT_TIME) -> list[Row]:  # noqa: A002 - the public word
    """Rows from a line of text: `A1 B2 A3` is type and time, `A1(v=5, s='a b')` has attributes, `T2@5` is a type with digits.

    Returns one dict per event with the columns `type` and `time` (left out if no event has one) and every attribute that some event has, None for the
    others. Values: numbers, 'text', true, false, null, and any other word as text. Raises ValueError if the text does not have this form, or only
    some events have a time.
    """
    rows: list[Row] = []
    place = 0
    while text[place:].strip():
        found = EVENT.match(text, place)
        if found is None:
            raise ValueError(f"not an event: {text[place:].split(maxsplit=1)[0]!r} (write A, A1, A1(v=5) or T2@5)")
        row: Row = {type: found["type"], time: None if found["time"] is None else int(found["time"])}
        rows.append(row | dict(_attributes(found["attributes"] or "")))
        place = found.end()
    timed = sum(row[time] is not None for row in rows)
    if timed not in {0, len(rows)}:
        raise ValueError(f"{timed} of {len(rows)} events have a time: give one to all or to none")
    names = list(dict.fromkeys(name for row in rows for name in row if name != time or timed))
    return [{name: row.get(name) for name in names} for row in rows]


def _attributes(text: str) -> Iterator[tuple[str, object]]:
    place = 0
    while text[place:].strip():
        found = ATTRIBUTE.match(text, place)
        if found is None:
            raise ValueError(f"not an attribute: {text[place:]!r} (write name=value, name='text')")
        yield found["name"], _value(found["value"])
        place = found.end()


def _value(text: str) -> object:
    if text.startswith("'"):
        return text[1:-1]
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


# ------------------------------------------------------------------------------------------------------------- events of the reference


def events_of(rows: pa.Table | Sequence[Row], schema: EventSchema) -> list[Event]:
    """Rows as events of the reference: type and time from the columns that `schema` names, times in steps of the time column's type.

    A table's timestamps and durations are read as their numbers, exactly. Raises InputError for a row without a time.
    """
    if isinstance(rows, pa.Table):
        rows = [dict(zip(rows.column_names, values, strict=True)) for values in zip(*map(_exact, rows.columns), strict=True)]
    return [Event(_type(row, schema), _time(row, number, schema), row) for number, row in enumerate(rows)]


def _exact(column: pa.ChunkedArray) -> list[object]:
    counted = pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type)
    values: list[object] = (column.cast(pa.int64()) if counted else column).to_pylist()
    return values


def _type(row: Row, schema: EventSchema) -> str:
    """The type of an event; one without a type has the empty one, which no query names."""
    value = schema.stream if schema.type_column is None else row[schema.type_column]
    return "" if value is None else str(value)


def _time(row: Row, number: int, schema: EventSchema) -> int | None:
    if schema.time_column is None:
        return None
    value, kind = row[schema.time_column], schema.time_type
    if value is None:
        raise InputError(f"event {number} has no time", help="leave it out, or give it a time")
    if isinstance(value, dt.datetime):
        assert kind is not None
        return steps_of(value, kind.unit)
    if isinstance(value, dt.date):
        days = (value - EPOCH_DAY).days
        return days * 86_400_000 if pa.types.is_date64(kind) else days
    return int(value)


# -------------------------------------------------------------------------------------------------------------------- comparing matches


def assert_matches(
    query: Any, rows: Any, expected: Iterable[Expected], *, engine: str | None = None, choose: int | None = None, **options: Any
) -> None:
    """Fail unless a query's matches over `rows` are exactly the expected ones.

    query: a `cepheid.Query`. rows: anything that `Query.run` takes, for example `events(..)`. expected: one entry for each match, in any order: its
    variables with their 0-based position or positions, `{"x": 0, "y": [1, 3]}`, or only its positions, `[0, 1, 3]`. choose: for LIMIT and ANY, which
    leave the choice open: then `expected` has the candidates, and `choose` of them must be given. engine and further options go to `Query.run`.
    """
    found = [_bindings(match.variables) for match in query.run(rows, engine=engine, **options)]
    wanted = list(expected)
    if all(isinstance(entry, Mapping) for entry in wanted):
        given, candidates = Counter(found), Counter(_bindings(entry) for entry in wanted)
    else:
        given, candidates = Counter(map(_support, found)), Counter(_support(_bindings(entry)) for entry in wanted)
    missing, unexpected = candidates - given, given - candidates
    if choose is not None:
        missing = Counter()
    lines = [f"  missing     {_shown(entry, rows)}" for entry in missing.elements()]
    lines += [f"  unexpected  {_shown(entry, rows)}" for entry in unexpected.elements()]
    if choose is not None and len(found) != choose:
        lines.append(f"  {len(found)} matches were given, expected {choose} of {len(wanted)}")
    if lines:
        raise AssertionError("\n".join([f"the matches differ: {len(found)} found, {len(wanted)} expected", *lines]))


def _bindings(entry: Any) -> Bindings:
    """An expected or given match, with positions ascending and variables by name; those without positions left out."""
    if not isinstance(entry, Mapping):
        entry = {"": entry}
    placed = {name: (value,) if isinstance(value, int) else tuple(sorted(value)) for name, value in entry.items()}
    return tuple(sorted((name, positions) for name, positions in placed.items() if positions))


def _support(mapping: Bindings) -> Bindings:
    return _bindings({"": {position for _, positions in mapping for position in positions}})


def _shown(mapping: Bindings, rows: Any) -> str:
    parts = []
    for name, positions in mapping:
        places = ", ".join(f"{position}{_described(rows, position)}" for position in positions)
        parts.append(f"{name} = {places}" if name else places)
    return "; ".join(parts) or "(no positions)"


def _described(rows: Any, position: int) -> str:
    """An event in short, where the rows are a list of dicts."""
    if not isinstance(rows, list) or not 0 <= position < len(rows):
        return ""
    row = rows[position]
    return f" ({row.get(DEFAULT_TYPE, '')}{row.get(DEFAULT_TIME, '')})"


def difference(partition: Partition, given: Iterable[Match]) -> str | None:
    """What is wrong with an engine's matches of one partition, or None: each must be a candidate of its trigger, none twice, the number right."""
    by_end: dict[int, list[Match]] = {}
    for match in given:
        by_end.setdefault(match.end, []).append(match)
    for group in partition.groups:
        mine = by_end.pop(group.end, [])
        doubled = [match for match, count in Counter(mine).items() if count > 1]
        if doubled:
            return f"given twice: {doubled[0]}"
        foreign = set(mine) - set(group.candidates)
        if foreign:
            return f"not a match: {min(foreign)}"
        if len(mine) != group.choose:
            return f"{len(mine)} matches end at {group.end}, not {group.choose}; missing: {sorted(set(group.candidates) - set(mine))[:3]}"
    rest = [match for matches in by_end.values() for match in matches]
    return f"not a match: {min(rest)}" if rest else None
