"""Cases as data: a query, a stream and its matches, in TOML, so that every engine runs the same ones.

A file holds tables `[[case]]` with

    name, query                 both text; the name is unique in its file
    events                      a stream as `cepheid.testing.events` reads it, or the name of a table `[streams.name]` with `events` and `types`
    types                       column -> Arrow type, where the rows alone do not tell (integers are int64, texts utf8, else as Arrow infers)
    args, until                 parameters of the query; up to when the stream is complete (a time, or "end")
    matches                     one entry per match, in any order: variables with positions `{ x = 0, y = [1, 2] }`, with `"@" = [start, end]`
                                where the interval is to be checked too; or positions alone `[0, 1, 2]`
    partitions                  instead of matches: [{ key = [1], matches = [..] }, ..]; positions are in the partition
    choose                      LIMIT and ANY: `matches` are all candidates, so many of each trigger are given
    rows                        for measures: one row of values per match
    counts                      for COUNT(*): [[end, number], ..]
    undecided                   absences that are still open, in the form of matches
    null_keys                   events without partition, because their key has a NULL
    skip                        { automata = "reason" }: not in the fragment of the automata engine

`load` reads and checks a file; `Case.fault` says what is wrong with a result.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.records import record
from cepheid.testing.harness import events

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

ENGINES = ("reference", "compiled", "python", "checked")
"""The engines that run every case, by the names that `Query.run` has for them."""

Key = tuple[object, ...]

INTERVAL = "@"

OPTIONAL = ("args", "until", "choose", "rows", "counts", "undecided", "null_keys", "skip")
FIELDS = frozenset({"name", "query", "events", "types", "matches", "partitions", *OPTIONAL})


@record
class GivenMatch:
    """A match as an engine gave it: its interval and the positions of its variables (those without any may be left out)."""

    start: int
    end: int
    variables: Mapping[str, Sequence[int]]


@record
class Case:
    """One case; the fields are those of the file, `matches` by partition key."""

    name: str
    query: str
    table: pa.Table
    matches: dict[Key, list[Any]]
    args: dict[str, object] = field(default_factory=dict)
    until: Any = None
    choose: int | None = None
    rows: list[list[object]] | None = None
    counts: list[list[int]] | None = None
    undecided: list[Any] = field(default_factory=list)
    null_keys: int = 0
    skip: dict[str, str] = field(default_factory=dict)

    def fault(self, answer: Mapping[Key, Iterable[GivenMatch]]) -> str | None:
        """What is wrong with the matches that an engine gave, by partition key, or None."""
        found = {key: list(matches) for key, matches in answer.items()}
        for key in [*self.matches, *(key for key in found if key not in self.matches)]:
            fault = self._fault(found.get(key, []), self.matches.get(key, []))
            if fault:
                return f"partition {key}: {fault}" if key else fault
        return None

    def undecided_fault(self, answer: Iterable[GivenMatch]) -> str | None:
        """What is wrong with the absences that an engine lists as undecided, or None."""
        return _difference(list(answer), self.undecided)

    def _fault(self, given: list[GivenMatch], expected: list[Any]) -> str | None:
        if self.choose is None:
            return _difference(given, expected)
        candidates, numbers = Counter(_last(entry) for entry in expected), Counter(match.end for match in given)
        for end, count in candidates.items():
            if numbers[end] != min(self.choose, count):
                return f"{numbers[end]} matches end at {end}, not {min(self.choose, count)}"
        return _difference(given, expected, some=True)


def _last(entry: Any) -> int:
    """The end of an expected match: given, or its last position."""
    if isinstance(entry, dict):
        return int(entry[INTERVAL][1]) if INTERVAL in entry else max(position for value in entry.values() for position in _positions(value))
    return int(max(entry))


def _positions(value: int | Sequence[int]) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(sorted(value))


def _difference(given: list[GivenMatch], expected: list[Any], *, some: bool = False) -> str | None:
    supports = any(not isinstance(entry, dict) for entry in expected)
    interval = any(isinstance(entry, dict) and INTERVAL in entry for entry in expected)
    wanted = Counter(tuple(sorted(entry)) if supports else _wanted(entry) for entry in expected)
    found = Counter(_support(match) if supports else _mapping(match, interval=interval) for match in given)
    missing, unexpected = wanted - found, found - wanted
    parts = [] if some or not missing else [f"missing {sorted(missing.elements())}"]
    parts += [f"unexpected {sorted(unexpected.elements())}"] if unexpected else []
    return "; ".join(parts) or None


def _support(match: GivenMatch) -> tuple[int, ...]:
    return tuple(sorted({position for positions in match.variables.values() for position in positions}))


def _mapping(match: GivenMatch, *, interval: bool) -> tuple[tuple[str, tuple[int, ...]], ...]:
    items = [(name, tuple(positions)) for name, positions in match.variables.items() if len(positions)]
    return tuple(sorted([*items, (INTERVAL, (match.start, match.end))] if interval else items))


def _wanted(entry: Mapping[str, int | Sequence[int]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple(sorted((name, _positions(value)) for name, value in entry.items()))


# ------------------------------------------------------------------------------------------------------------------------- reading


def load(path: Path) -> list[Case]:
    """The cases of a TOML file. Raises ValueError for unknown fields and doubled names."""
    cases = list(_cases(tomllib.loads(path.read_text(encoding="utf-8")), path))
    doubled = [name for name, count in Counter(case.name for case in cases).items() if count > 1]
    if doubled:
        raise ValueError(f"{path.name}: two cases are named {doubled[0]!r}")
    return cases


def _cases(document: dict[str, Any], path: Path) -> Iterator[Case]:
    streams = document.get("streams", {})
    for entry in document["case"]:
        unknown = sorted(entry.keys() - FIELDS)
        if unknown:
            raise ValueError(f"{path.name}: case {entry.get('name')!r} has an unknown field {unknown[0]!r}")
        stream = streams.get(entry["events"], {"events": entry["events"]})
        types = stream.get("types", {}) | entry.get("types", {})
        partitions = entry.get("partitions", [{"key": [], "matches": entry.get("matches", [])}])
        matches = {tuple(_null(value) for value in partition["key"]): partition["matches"] for partition in partitions}
        optional = {name: entry[name] for name in OPTIONAL if name in entry}
        if "rows" in optional:
            optional["rows"] = [[_null(value) for value in row] for row in optional["rows"]]
        yield Case(entry["name"], entry["query"], table_of(stream["events"], types), matches, **optional)


def _null(value: Any) -> Any:
    """TOML has no NULL: the text NULL stands for it in keys and rows."""
    return None if value == "NULL" else value


TYPES = {
    "int": pa.int64(),
    "double": pa.float64(),
    "text": pa.string(),
    "bool": pa.bool_(),
    "ms": pa.timestamp("ms", tz="UTC"),
    "s": pa.timestamp("s", tz="UTC"),
    "us": pa.timestamp("us", tz="UTC"),
    "decimal": pa.decimal128(10, 2),
    "date": pa.date32(),
}
"""The names of types in cases."""


def table_of(text: str, types: Mapping[str, str]) -> pa.Table:
    """A stream in one line as an Arrow table; columns named in `types` have that type, times given as numbers of its steps."""
    rows = events(text)
    columns: dict[str, pa.Array] = {}
    for name in rows[0] if rows else ("type", "ts"):
        values = [row[name] for row in rows]
        kind = TYPES.get(types.get(name, {"type": "text", "ts": "int"}.get(name, "")))
        if kind is not None and (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            columns[name] = pa.array(values, pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)
        elif kind is not None and pa.types.is_decimal(kind):
            columns[name] = pa.array([None if value is None else str(value) for value in values]).cast(kind)
        else:
            columns[name] = pa.array(values, kind)
    return pa.table(columns)
