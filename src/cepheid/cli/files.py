"""Files of events as Arrow: CSV, JSON lines and Parquet, each with errors that name the place in the file.

Comes in: arguments such as `flights.csv` or `flights=2013/january.parquet`. Goes out: one stream of events or {name: events}, as `cepheid.Query.run`
takes them. Times in CSV and JSON are inferred: if all texts of a column are ISO 8601 with an offset, it is a timestamp in UTC; if all are without an
offset, a timestamp without zone; both in microseconds, as in Spark. Nothing is skipped: a line that cannot be read is an error.
"""

from __future__ import annotations

import bisect
import codecs
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.cli import jsonlines
from cepheid.errors import InputError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

NULLS = ("", "NULL", "null", "NA", "NaN", "nan")
"""Texts that are NULL in CSV where they stand without quotes."""

BLOCK = 16 << 20
"""Bytes in which column types are inferred first; if a later value does not fit, from the whole file."""

MOST_BYTES = (1 << 31) - 1
"""Longest CSV or JSON file whose types can be inferred from all of it, and longest line."""

JSON_ENDINGS = (".jsonl", ".ndjson", ".json")

TIME = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?\s*(Z|[+-]\d{2}:?\d{2})?", re.ASCII)

OTHER_TIMES = {"a day": re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII), "a number": re.compile(r"-?\d{1,18}", re.ASCII)}

TIMESTAMPS = (pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.timestamp("ns"))

TIME_TYPES = (*TIMESTAMPS, pa.date32(), pa.int64())
"""What texts of event times may be read as."""


@dataclass(frozen=True)
class Stream:
    """One file of events: its name as a stream (None: it has none), its path and what is in it."""

    name: str | None
    path: Path
    events: pa.Table | pa.RecordBatchReader


def named(arguments: Sequence[str]) -> list[tuple[str | None, Path]]:
    """The stream names and paths of arguments: `name=path`, or a path alone; several paths alone are named by their files.

    Raises InputError for a name that stands twice.
    """
    pairs: list[tuple[str | None, Path]] = []
    for argument in arguments:
        name, equals, rest = argument.partition("=")
        if equals and name and "/" not in name and not Path(argument).exists():
            pairs.append((name, Path(rest)))
        else:
            path = Path(argument)
            pairs.append((path.name.partition(".")[0] if len(arguments) > 1 else None, path))
    names = [name for name, _ in pairs]
    double = next((name for name in names if name is not None and names.count(name) > 1), None)
    if double is not None:
        raise InputError(f"two files have the stream name `{double}`", help="name them: first=PATH second=PATH")
    return pairs


def load(arguments: Sequence[str], *, separator: str | None = None, lazily: bool = False) -> list[Stream]:
    """The events of files.

    separator: of CSV (default: a comma, a tab in .tsv). lazily: Parquet is left unread, as a reader. Raises InputError for files that are
    missing, empty, damaged or of no known kind, with the line where there is one.
    """
    return [Stream(name, path, read(path, separator=separator, lazily=lazily)) for name, path in named(arguments)]


def events_of(streams: Sequence[Stream]) -> Any:
    """What `Query.run` takes: the events of one stream without a name, else {name: events}."""
    if len(streams) == 1 and streams[0].name is None:
        return streams[0].events
    return {stream.name: stream.events for stream in streams}


def read(path: Path, *, separator: str | None = None, lazily: bool = False) -> pa.Table | pa.RecordBatchReader:
    """The events of one file; as `load`."""
    reader = READERS.get(path.suffix.lower())
    if path.is_dir():
        raise InputError(f"{path} is a directory, not a file of events")
    if not path.exists():
        near = _near(path)
        raise InputError(f"there is no file {path}", help=f"did you mean {near}?" if near else ())
    if reader is None:
        raise InputError(
            f"{path} has no ending that says what it is" if not path.suffix else f"files of events do not end in {path.suffix}",
            help=f"the endings are {', '.join(READERS)}",
        )
    try:
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty: it does not name the attributes of the events")
        return reader(path, separator, lazily)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


def _near(path: Path) -> Path | None:
    """The file of events beside a missing one with the nearest name, where there is one; the same ending comes first."""
    others = path.parent.iterdir() if path.parent.is_dir() else ()
    events = [other for other in others if other.suffix.lower() in READERS]
    beside = {other.stem: other for other in sorted(events, key=lambda other: (other.suffix == path.suffix, other.name))}
    near = nearest(path.stem, beside)
    return beside[near] if near else None


# ---------------------------------------------------------------------------------------------------------------------------- text


def check_text(path: Path, *, quotes: bool) -> None:
    """Raise InputError where a file is not UTF-8, and (quotes) where a quote is opened and never closed."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, marks = 1, 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError as error:
                # `object` starts with what the chunk before left over; a character that is cut there has no line end in it.
                line += error.object[: error.start].count(b"\n")
                wrong = error.object[error.start]
                raise InputError(f"{path}, line {line}: byte 0x{wrong:02x} is not UTF-8", help="save the file as UTF-8") from None
            line += chunk.count(b"\n")
            marks += chunk.count(b'"') if quotes else 0
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise InputError(f"{path}, line {line}: the file ends within a UTF-8 character", help="save the file as UTF-8") from None
    if marks % 2:
        raise InputError(f'{path}: a quote (") is opened and never closed', help='double a quote within a text: "say ""so"""')


def _csv(path: Path, separator: str | None, _: bool) -> pa.Table:  # noqa: FBT001 - the signature of READERS
    import pyarrow.csv as arrow_csv

    check_text(path, quotes=True)
    delimiter = separator or ("\t" if path.suffix.lower() == ".tsv" else ",")
    convert = arrow_csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=list(NULLS))
    parse = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    size = path.stat().st_size
    table = None
    for block in dict.fromkeys([BLOCK, min(max(size + 1, BLOCK), MOST_BYTES)]):
        # One thread: only then do errors say the row.
        options = arrow_csv.ReadOptions(use_threads=False, block_size=block)
        try:
            table = arrow_csv.read_csv(path, read_options=options, parse_options=parse, convert_options=convert)
            break
        except pa.ArrowInvalid as error:
            failure = error
    if table is None:
        raise csv_error(path, str(failure), delimiter)
    _check_header(path, table, delimiter)
    return with_times(table)


def csv_error(path: Path, reason: str, delimiter: str) -> InputError:
    """What is wrong with a CSV file, from what its reader says of it."""
    counts = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", reason)
    if counts:
        row, expected, got = map(int, counts.groups())
        return InputError(
            f"{path}, row {row}: {got} {'value' if got == 1 else 'values'} where the header has {expected}",
            help="the header is row 1; a value with a separator or a line end in it stands in double quotes"
            + ("" if delimiter == "," else f" (the separator is {delimiter!r})"),
        )
    value = re.search(r"CSV conversion error to ([\w\[\], =]+): invalid value '(.*?)'", reason, re.DOTALL)
    if value:
        return InputError(f"{path}: '{value.group(2)}' is not {value.group(1)}, as the rest of its column is")
    if "Empty CSV" in reason:
        return InputError(f"{path} has no header", help="the first row names the attributes")
    return InputError(f"{path} cannot be read as CSV: {reason}")


def _check_header(path: Path, table: pa.Table, delimiter: str) -> None:
    """Raise InputError for a header that was surely cut at the wrong separator."""
    if table.num_columns == 1:
        name = table.column_names[0]
        other = next((each for each in (";", "\t", "|", ",") if each != delimiter and each in name), None)
        if other is not None:
            raise InputError(
                f"{path} has one column, `{name}`: its separator is not {delimiter!r}",
                help=f"--separator {'TAB' if other == chr(9) else repr(other)}",
            )


def _json(path: Path, _: str | None, __: bool) -> pa.Table:  # noqa: FBT001 - the signature of READERS
    check_text(path, quotes=False)
    table = jsonlines.read(path, block=min(max(path.stat().st_size + 1, 1 << 20), BLOCK))
    if not table.num_columns:
        raise InputError(f"{path} has no events", help="JSON lines have one object on each line: {..}")
    return with_times(table)


def _parquet(path: Path, _: str | None, lazily: bool) -> pa.Table | pa.RecordBatchReader:  # noqa: FBT001 - the signature of READERS
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        if not lazily:
            return file.read()
        schema = file.schema_arrow.remove_metadata()
        return pa.RecordBatchReader.from_batches(schema, _batches(path, file, schema))
    except pa.ArrowException as error:
        raise damaged(path, error) from None


def _batches(path: Path, file: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    try:
        for piece in file.iter_batches():
            yield piece.replace_schema_metadata(schema.metadata)
    except (pa.ArrowException, OSError) as error:
        raise damaged(path, error) from None


def damaged(path: Path, error: Exception) -> InputError:
    """A Parquet file that cannot be read."""
    reason = str(error).partition("\n")[0].rstrip(".")
    return InputError(f"{path} cannot be read as Parquet: {reason}", help="was it written completely?")


READERS: dict[str, Callable[[Path, str | None, bool], pa.Table | pa.RecordBatchReader]] = {
    ".csv": _csv,
    ".tsv": _csv,
    **dict.fromkeys(JSON_ENDINGS, _json),
    ".parquet": _parquet,
}
"""The endings of files of events: (path, separator, lazily) -> events."""


# ----------------------------------------------------------------------------------------------------------------------------- times


def with_times(table: pa.Table) -> pa.Table:
    """The table with columns of ISO 8601 texts as timestamps, and timestamps in microseconds where that loses nothing."""
    for index, name in enumerate(table.column_names):
        column = table.column(index)
        changed = _microseconds(column) if pa.types.is_timestamp(column.type) else _timestamps(column)
        if changed is not None:
            table = table.set_column(index, name, changed)
    return table


def _microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    try:
        return column.cast(pa.timestamp("us", column.type.tz))
    except pa.ArrowInvalid:
        return None


def check_spaces(stream: Stream, name: str) -> None:
    """Raise InputError where the time column is not there but for spaces around its name: events would silently have no time."""
    names = stream.events.schema.names
    spaced = next((each for each in names if each.strip() == name), None)
    if name not in names and spaced is not None:
        raise InputError(f"{stream.path} has no attribute `{name}`, but `{spaced}`", help=f"rename it, or read it with --time '{spaced}'")


def check_times(stream: Stream, name: str) -> None:
    """Raise InputError for the first text of a time column that is no time, or does not go with those before it."""
    if stream.events.schema.names.count(name) != 1 or not isinstance(stream.events, pa.Table):
        return
    column = stream.events.column(name)
    if not pa.types.is_string(column.type):
        return
    # What is wrong is where the reading that goes furthest ends.
    wrong = max(_readable(column, kind) for kind in TIME_TYPES)
    if wrong == len(column):
        return
    value = column[wrong].as_py()
    kind = time_kind(value)
    first = pc.drop_null(column.slice(0, wrong)).slice(0, 1).to_pylist()
    before = time_kind(first[0]) if first else None
    mixed = None not in (kind, before) and kind != before
    reason = f"{kind}, and '{first[0]}' before it {before}" if mixed else "no time"
    help_ = ["a time is a whole number, or ISO 8601: 2013-01-31 12:00:00, with an offset (Z, +01:00) in all rows or in none"]
    if kind is not None and not mixed:
        help_.append("its day is in the calendar; if a second has more than 6 digits, all times are between the years 1678 and 2261")
    # In a file of events the header is row 1 of a CSV; in JSON lines there is none.
    row = wrong + (1 if stream.path.suffix.lower() in JSON_ENDINGS else 2)
    raise InputError(f"{stream.path}, row {row}: `{name}` is '{value[:40]}', {reason}", help=help_)


def _readable(column: pa.ChunkedArray, kind: pa.DataType) -> int:
    """How many texts, from the first on, are of this type. O(n log n)."""

    def fails(count: int) -> bool:
        try:
            column.slice(0, count).cast(kind)
        except pa.ArrowInvalid:
            return True
        return False

    return bisect.bisect_left(range(1, len(column) + 1), True, key=fails)


def time_kind(text: str) -> str | None:
    """What a text is written as; None if not as a time."""
    found = TIME.fullmatch(text)
    if found:
        return "a time with an offset" if found.group(3) else "a time without an offset"
    return next((kind for kind, pattern in OTHER_TIMES.items() if pattern.fullmatch(text)), None)


def with_types(table: pa.Table, types: Mapping[str, pa.DataType]) -> pa.Table:
    """An empty table whose columns have no type yet (a CSV with a header alone), with these types; text where there is none."""
    if table.num_rows:
        return table
    fields = [field.with_type(types.get(field.name, pa.string())) if pa.types.is_null(field.type) else field for field in table.schema]
    return pa.schema(fields).empty_table()


def _timestamps(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """A text column as timestamps, or None if some text is none; the first text decides early."""
    if not pa.types.is_string(column.type):
        return None
    first = pc.drop_null(column.slice(0, 1000))
    if not len(first) or not TIME.fullmatch(first[0].as_py()):
        return None
    for kind in TIMESTAMPS:
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            continue
    return None
