"""JSON lines as Arrow, in pieces: one object per line, read once for the types of its attributes, and again for its events.

Arrow reads each piece. The types of the pieces go together as Arrow would put them together in one file: numbers are doubles if one has a fraction,
objects have the attributes of all, and NULL goes with everything. Only if a piece cannot be read, or types do not go together, we check the lines one
by one for the first wrong one. Arrow would read a text such as `2026-01-01T10:00:00+01:00` as a time without its offset, so attributes that it reads
as times are read again as texts; see `readings`.
"""

from __future__ import annotations

import io
import json
import math
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.input.column_types import MAX_LEVELS
from cepheid.engine.input.files.readings import OF_TEXT, Column
from cepheid.engine.input.files.texts import check_text, in_memory, kind_of, opened
from cepheid.errors import InputError, LimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

PIECE = 1 << 22
"""Bytes that are read at a time; more where a line is longer."""

LINES = "JSON lines have one object on each line: {..}"

KINDS = {dict: "object", list: "array", str: "text", bool: "boolean", int: "number", float: "number"}

MARK = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')
"""A text, or a bracket that stands in none."""

NUMBERS = frozenset({pa.int64(), pa.float64()})

DOUBLE_BITS = 1_023
"""Of the whole numbers that doubles reach."""


class JsonLines:
    """The files of JSON lines of one stream; a `files.Format`."""

    first_row = 1

    def __init__(self, _: str | None) -> None:
        self._paths: list[Path] = []
        self._kinds: dict[str, pa.DataType] = {}
        self._texts: dict[str, Column] = {}

    def look(self, path: Path, _: str, seen: Callable[[int], None]) -> int:
        """Read a file for its types; gives its events. seen: called with the events of each piece."""
        check_text(path)
        self._paths.append(path)
        rows, levels = 0, Levels(path)
        for piece in pieces_of(path):
            levels.check(piece)
            events = self._look(path, piece)
            rows += events
            seen(events)
        if not rows or not self._kinds:
            raise InputError(f"{path} has no events", help=LINES)
        return rows

    def _look(self, path: Path, piece: bytes) -> int:
        """Read a piece for its types; gives its events."""
        table = self._read(path, piece, self._texts)
        times = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
        texts = self._read(path, piece, times).select(times) if times else table.select([])
        for field in table.schema:
            if field.name in times or pa.types.is_string(field.type):
                kind, column = pa.string(), (texts if field.name in times else table)[field.name]
                self._texts.setdefault(field.name, Column(OF_TEXT)).see(column)
            else:
                kind = field.type
            known = joined(self._kinds.get(field.name, pa.null()), kind)
            if known is None:
                raise self._mistake(path, f"`{field.name}` has values of more than one type")
            self._kinds[field.name] = known
        return int(table.num_rows)

    def _read(self, path: Path, piece: bytes, texts: Iterable[str]) -> pa.Table:
        return self._parsed(path, piece, pa.schema([(name, pa.string()) for name in texts]), others="infer")

    def _parsed(self, path: Path, piece: bytes, schema: pa.Schema, *, others: str) -> pa.Table:
        import pyarrow.json as arrow_json

        try:
            return arrow_json.read_json(
                in_memory(piece),
                read_options=arrow_json.ReadOptions(block_size=len(piece) + 1),
                parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others),
            )
        except pa.ArrowInvalid as error:
            raise self._mistake(path, str(error)) from None

    def _mistake(self, path: Path, reason: str) -> InputError:
        return first_mistake(self._paths) or InputError(f"{path} cannot be read as JSON lines: {reason}")

    def pieces(self, path: Path) -> Iterator[pa.Table]:
        """The events of a file."""
        parsed = pa.schema([(name, pa.string() if name in self._texts else kind) for name, kind in self._kinds.items()])
        schema, lines = self.schema, 0
        for piece in pieces_of(path):
            table = self._parsed(path, piece, parsed, others="error")
            if any(map(_has_large_doubles, table.columns)):
                check_exact(path, piece, parsed, lines=lines)
            lines += piece.count(b"\n")
            columns = [self._texts[name].reading.cast(table[name]) if name in self._texts else table[name] for name in schema.names]
            yield pa.Table.from_arrays(columns, schema=schema)

    @property
    def schema(self) -> pa.Schema:
        """The attributes of all files, in the order in which they first come."""
        return pa.schema([(name, self._texts[name].reading.kind if name in self._texts else kind) for name, kind in self._kinds.items()])


def _has_large_doubles(column: pa.ChunkedArray | pa.Array) -> bool:
    """Whether a column has doubles so large that whole numbers may be none."""
    if isinstance(column, pa.ChunkedArray):
        return any(map(_has_large_doubles, column.chunks))
    if pa.types.is_struct(column.type):
        return any(map(_has_large_doubles, column.flatten()))
    if pa.types.is_list(column.type):
        return _has_large_doubles(column.flatten())
    return bool(pa.types.is_float64(column.type) and pc.any(pc.greater_equal(pc.abs(column), float(1 << 53))).as_py())


def check_exact(path: Path, piece: bytes, schema: pa.Schema, *, lines: int) -> None:
    """Raise InputError for a whole number that is to be a double and that no double is: two such numbers could become one.

    lines: how many stand before the piece.
    """
    for number, line in enumerate(piece.splitlines(), lines + 1):
        event = json.loads(line) if line.strip() else {}
        for field in schema:
            wrong = next(_inexact(event.get(field.name), field.type), None)
            if wrong is not None:
                raise InputError(
                    f"{path}, line {number}: `{field.name}` has {wrong}, which no double holds exactly",
                    help="whole numbers of up to 64 bits are exact where no value beside them has a fraction; write longer ones as text",
                )


def _inexact(value: Any, kind: pa.DataType) -> Iterator[int]:
    """The whole numbers in a value that are to be doubles, and are none."""
    if isinstance(value, dict) and pa.types.is_struct(kind):
        for field in kind:
            yield from _inexact(value.get(field.name), field.type)
    elif isinstance(value, list) and pa.types.is_list(kind):
        for item in value:
            yield from _inexact(item, kind.value_type)
    elif isinstance(value, int) and pa.types.is_float64(kind) and (value.bit_length() > DOUBLE_BITS or int(float(value)) != value):
        yield value


def pieces_of(path: Path) -> Iterator[bytes]:
    """A file in pieces of whole lines; where it can be, one ends before a line that begins an object. Pieces of blanks alone are left out."""
    with opened(path) as file:
        rest = bytearray()
        while chunk := file.read(PIECE):
            rest += chunk
            cut = rest.rfind(b"\n{") + 1 or rest.rfind(b"\n") + 1
            if rest[:cut].strip():
                yield bytes(rest[:cut])
            del rest[:cut]
        if rest.strip():
            yield bytes(rest)


def joined(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """The type that Arrow infers for values of both; None where they do not go together."""
    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    if {first, second} == NUMBERS:
        return pa.float64()
    if {first, second} == {pa.string(), pa.timestamp("s")}:
        return pa.string()
    if pa.types.is_list(first) and pa.types.is_list(second):
        item = joined(first.value_type, second.value_type)
        return None if item is None else pa.list_(item)
    if pa.types.is_struct(first) and pa.types.is_struct(second):
        kinds = {field.name: field.type for field in first}
        for field in second:
            both = joined(kinds.get(field.name, pa.null()), field.type)
            if both is None:
                return None
            kinds[field.name] = both
        return pa.struct(list(kinds.items()))
    return None


class Levels:
    """How deep the values of a file nest; far beyond `MAX_LEVELS`, Arrow's reader ends the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open = 0
        self._lines = 0

    def check(self, piece: bytes) -> None:
        """Read the next lines. Raises LimitError for the first where a value nests too deep."""
        for line in piece.splitlines(keepends=True):
            self._lines += line.endswith(b"\n")
            opening = line.count(b"[") + line.count(b"{")
            if not self._open and opening <= MAX_LEVELS and opening == line.count(b"]") + line.count(b"}"):
                continue
            for mark in MARK.findall(line):
                self._open = max(self._open + (mark in b"[{") - (mark in b"]}"), 0)
                # The first bracket is the event's own.
                if self._open > MAX_LEVELS + 1:
                    number = self._lines + (not line.endswith(b"\n"))
                    raise LimitError(
                        f"{self._path}, line {number}: a value nests deeper than {MAX_LEVELS} levels (MAX_LEVELS)",
                        help="flatten it, or give it as text",
                    )


def first_mistake(paths: Sequence[Path]) -> InputError | None:
    """The first line of files that is wrong, as an error; None if Arrow's reason is none of these."""
    kinds: dict[str, tuple[str, str]] = {}
    for path in paths:
        with io.TextIOWrapper(opened(path), encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    value = event_of(f"{path}, line {number}", line) if line.strip() else {}
                except InputError as error:
                    if number == 1 and line.lstrip().startswith("["):
                        error.help = (*error.help, f"jq -c '.[]' {path} writes such lines from an array of objects")
                    other = kind_of(path) if number == 1 else None
                    return error if other is None or other.ending != ".csv" else InputError(f"{path} has no JSON lines", help=other.help)
                for name, content in value.items():
                    kind = KINDS.get(type(content))
                    if kind is None:
                        continue
                    known, where = kinds.setdefault(name, (kind, f"line {number}" + ("" if len(paths) == 1 else f" of {path}")))
                    if kind != known:
                        return InputError(
                            f"{path}, line {number}: `{name}` is {a(kind)}, and {a(known)} on {where}", help="give each attribute one type"
                        )
    return None


def objects_of(path: Path) -> Iterator[dict[str, Any]]:
    """The object on each line of a file, each with its own attributes and types; raises InputError for other lines, and for what is not UTF-8."""
    check_text(path)
    with opened(path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield event_of(f"{path}, line {number}", line)


def event_of(place: str, line: str) -> dict[str, Any]:
    """The object on a line. place: the line's, for messages. Raises InputError for what is none."""
    try:
        value = DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        column = f", column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise InputError(f"{place}{column}: not a JSON object: {reason}", help=LINES) from None
    if not isinstance(value, dict):
        raise InputError(f"{place} is {'an array' if isinstance(value, list) else 'a value'}, not an object", help=LINES)
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"JSON has no {constant}")


def _double(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is beyond what a double holds")
    return value


DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_double)
"""What JSON says; Python itself would take NaN and Infinity, too, and make the second of numbers that are too large."""


def a(kind: str) -> str:
    """A kind of value with its article."""
    return f"{'an' if kind[0] in 'ao' else 'a'} {kind}" if kind != "text" else "text"
