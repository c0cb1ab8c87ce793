"""Files of events as Arrow: streams, each of one file or several, with errors that name the place in the file.

Comes in: paths, also with wildcards. Goes out: streams, whose events are read piece by piece, or at once. Files of text are read twice: first for the
types of their attributes, which all files of a stream have in common, then for their events. Times in CSV and JSON are inferred: if all texts of a
column are ISO 8601 with an offset, it is a timestamp in UTC; if all are without an offset, a timestamp without zone; both in microseconds, as in
Spark. Nothing is skipped: a line that cannot be read is an error.
"""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.input.column_types import united
from cepheid.engine.input.event_times import times_of
from cepheid.engine.input.files.formats import FORMATS, is_compressed_whole
from cepheid.engine.input.files.texts import CODECS, ending_of
from cepheid.engine.output.matches import python_value
from cepheid.errors import InputError, nearest
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cepheid.engine.input.files.formats import Format

WILDCARDS = "*?["


def is_file(value: object) -> bool:
    """Whether something can only be the path of a file of events: a Path, or a text with one of the endings."""
    return isinstance(value, os.PathLike) or (isinstance(value, str) and ending_of(Path(value)) in FORMATS)


def is_path(value: object) -> TypeGuard[str | os.PathLike[str]]:
    """Whether something is meant as a path: the same, or a text with any ending or the name of what is there."""
    return is_file(value) or (isinstance(value, str) and bool(Path(value).suffix or os.path.exists(value)))  # noqa: PTH110 - never raises


def read(given: str | os.PathLike[str], *, typed: bool = True) -> pa.RecordBatchReader:
    """The events of a file, or with wildcards of several; only what their types ask for is read yet.

    typed: whether its attributes must have types, which a header alone does not say.

    Raises InputError where that is no file of events, or where it is damaged, which may show only while the events are read.
    """
    stream = stream_of(None, paths_of(given))
    if typed and not stream.rows and any(map(pa.types.is_null, stream.schema.types)):
        fact = f"{stream.source} has a header and no events, so nothing says the types of its attributes"
        raise InputError(fact, help=("pass an empty pyarrow.Table with a schema", "cepheid run takes the types from the query"))
    return pa.RecordBatchReader.from_batches(stream.schema, (batch for piece in stream.pieces() for batch in piece.to_batches()))


def paths_of(given: str | os.PathLike[str]) -> tuple[Path, ...]:
    """The files that a path with wildcards stands for; raises InputError for an address, and for what is surely no file of events."""
    text = os.fspath(given)
    if "://" in text:
        help_ = f"read it with pyarrow.dataset.dataset({text!r}).scanner().to_reader(), and pass that; or run the query on Spark"
        raise InputError(f"{text} is an address, and files are read from this machine alone", help=help_)
    paths = matching(text)
    for path in paths:
        check_file(path)
    return paths


def matching(argument: str) -> tuple[Path, ...]:
    """The files that an argument stands for."""
    path = Path(argument)
    if not any(mark in argument for mark in WILDCARDS) or path.exists():
        return (path,)
    names = sorted(glob.glob(argument, recursive=True))  # noqa: PTH207 - a * of Path.glob matches hidden files, too, unlike a shell's
    found = tuple(each for each in map(Path, names) if not each.is_dir())
    if not found:
        raise InputError(f"no file matches {argument}", help="a * stands for anything but a /, ** for folders, too; write it in quotes")
    return found


# ------------------------------------------------------------------------------------------------------------------------- streams


@record(slots=False)
class Stream:
    """The events of a stream: its name (None: it has none), its files, how many events they have, and how to read them."""

    name: str | None
    files: tuple[Path, ...]
    schema: pa.Schema
    rows: int
    formats: Mapping[Path, Format]

    @property
    def source(self) -> str:
        """What it is read from, for messages."""
        return str(self.files[0]) if len(self.files) == 1 else f"{self.files[0]} .. {self.files[-1]}"

    def table(self) -> pa.Table:
        """All events."""
        return pa.Table.from_batches([batch for piece in self.pieces() for batch in piece.to_batches()], self.schema)

    def pieces(self) -> Iterator[pa.Table]:
        """All events piece by piece, whatever the order of their times."""
        return (piece for _, _, piece in self._pieces())

    def reader(self, time: str) -> pa.RecordBatchReader:
        """The events piece by piece; where the time column `time` is not in order, reading raises InputError."""
        return pa.RecordBatchReader.from_batches(self.schema, self._in_order(time))

    def places(self, time: str) -> Iterator[tuple[Path, int, pa.ChunkedArray]]:
        """A column piece by piece: with the file, and the row of the first value in it."""
        for path, row, piece in self._pieces():
            yield path, row, piece[time]

    def _pieces(self) -> Iterator[tuple[Path, int, pa.Table]]:
        """The events piece by piece: with the file, and the row of the first in it."""
        for path in self.files:
            row = self.formats[path].first_row
            for piece in self._read(path):
                yield path, row, self._conform(piece, path)
                row += piece.num_rows

    def _read(self, path: Path) -> Iterator[pa.Table]:
        try:
            yield from self.formats[path].pieces(path)
        except OSError as error:
            raise unreadable(path, error) from None

    def _conform(self, piece: pa.Table, path: Path) -> pa.Table:
        """A piece with all attributes; those that its file lacks are NULL."""
        columns = []
        for field in self.schema:
            own = piece[field.name] if field.name in piece.column_names else pa.nulls(piece.num_rows, field.type)
            try:
                columns.append(own if own.type == field.type else own.cast(field.type))
            except pa.ArrowException as error:
                fact = f"`{field.name}` of {path} cannot be read as {field.type}, as it is in other files of its stream: {error}"
                raise InputError(fact, help="give it one type in all files") from None
        return pa.Table.from_arrays(columns, schema=self.schema).combine_chunks()

    def _in_order(self, time: str) -> Iterator[pa.RecordBatch]:
        latest = None
        for path, row, piece in self._pieces():
            if time in self.schema.names:
                latest = self._check_order(path, row, piece, time, latest)
            yield from piece.to_batches()

    def _check_order(self, path: Path, first: int, piece: pa.Table, time: str, latest: int | None) -> int | None:
        """Raise InputError for the first event without a time, or that is earlier than the one before it (`latest`); gives the time of the last."""
        column = piece[time]
        if column.null_count:
            row = first + pc.index(pc.is_null(column), pa.scalar(True)).as_py()
            raise InputError(
                f"{path}, row {row}: `{time}` is NULL, and an event needs a time", help="leave it out before, or give it a time"
            )
        times = times_of(piece, time)
        if not len(times):
            return latest
        before = np.concatenate([times[:1] if latest is None else [latest], times[:-1]])
        wrong = np.flatnonzero(times < before)
        if len(wrong):
            row = int(wrong[0])
            said = [python_value(value) for value in (column[row], pa.array([int(before[row])], pa.int64()).cast(column.type)[0])]
            several = (
                ("files of one stream are read in the order given, those of a * in the order of their names",)
                if len(self.files) > 1
                else ()
            )
            raise InputError(
                f"{path}, row {first + row}: the events are not in the order of their times: {said[0]} is earlier than {said[1]}, the time before it",
                help=("--sort sorts them, stably", *several),
            )
        return int(times[-1])


def stream_of(
    name: str | None, paths: tuple[Path, ...], *, separator: str | None = None, seen: Callable[[int], None] = lambda _: None
) -> Stream:
    """The stream of some files, their types known and their events unread.

    separator: of CSV (default: a comma, a tab in .tsv). seen: called with the events of each piece that is read for its types. Raises InputError for
    files that are damaged, with the line where there is one. Linear in the bytes of text.
    """
    owner = "the input" if name is None else f"the stream `{name}`"
    made: dict[object, Format] = {}
    formats: dict[Path, Format] = {}
    rows = 0
    for path in paths:
        kind = FORMATS[ending_of(path)]
        formats[path] = made.setdefault(kind, kind(separator))
        try:
            rows += formats[path].look(path, owner, seen)
        except OSError as error:
            raise unreadable(path, error) from None
    schema = pa.schema([])
    for path, found in formats.items():
        schema = united(schema, found.schema, str(path))
    return Stream(name, paths, schema, rows, formats)


def check_file(path: Path) -> None:
    """Raise InputError for what is surely no file of events."""
    if path.is_dir():
        raise InputError(f"{path} is a directory, not a file of events", help=f"for the files in it: '{path / '*.csv'}', in quotes")
    if not path.exists():
        near = _near(path)
        piped = "the standard input is read by cepheid watch QUERY" if str(path) == "-" else ()
        raise InputError(f"there is no file {path}", help=f"did you mean {near}?" if near else piped)
    ending = ending_of(path)
    if ending not in FORMATS:
        raise InputError(
            f"files of events do not end in {ending}" if ending else f"{path} has no ending that says what it is",
            help=f"the endings are {', '.join(FORMATS)}; text may be compressed: {', '.join(f'.csv{codec}' for codec in CODECS)}",
        )
    if is_compressed_whole(path):
        raise InputError(
            f"{path} is {ending[1:].capitalize()} that is compressed as a whole, and cannot be read in pieces", help="decompress the file"
        )
    try:
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty: it does not name the attributes of the events")
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: OSError) -> InputError:
    """A file that the system, or what decompresses it, cannot read."""
    compressed = error.strerror is None and path.suffix.lower() in CODECS
    return InputError(
        f"{path} cannot be read: {error.strerror or error}",
        help=f"is it what its ending {path.suffix} says, and was it written completely?" if compressed else (),
    )


def _near(path: Path) -> Path | None:
    """The file of events beside a missing one with the nearest name, where there is one; the same ending comes first."""
    others = path.parent.iterdir() if path.parent.is_dir() else ()
    events = [other for other in others if ending_of(other) in FORMATS]
    beside = {_stem(other): other for other in sorted(events, key=lambda other: (ending_of(other) == ending_of(path), other.name))}
    near = nearest(_stem(path), beside)
    return beside[near] if near else None


def _stem(path: Path) -> str:
    return Path(path.stem).stem if path.suffix.lower() in CODECS else path.stem
