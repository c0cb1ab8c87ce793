"""The events of a command: arguments such as `flights.csv`, `flights=2013/january.parquet` or `'logs/*.csv.gz'`, as streams of files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.cli.queries import looks_like_query
from cepheid.engine.input.files.csvs import Csv, no_header
from cepheid.engine.input.files.streams import WILDCARDS, check_file, matching, stream_of
from cepheid.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cepheid.engine.input.files.streams import Stream


def streams(arguments: Sequence[str], *, separator: str | None = None, seen: Callable[[int], None] = lambda _: None) -> list[Stream]:
    """The streams of arguments, their types known and their events unread.

    separator: of CSV (default: a comma, a tab in .tsv). seen: called with the events of each piece that is read for its types. Raises InputError for
    files that are missing, empty, damaged or of no known kind, with the line where there is one. Linear in the bytes of text.
    """
    pairs = named(arguments)
    for _, paths in pairs:
        for path in paths:
            check_file(path)
    return [stream_of(name, paths, separator=separator, seen=seen) for name, paths in pairs]


def named(arguments: Sequence[str]) -> list[tuple[str | None, tuple[Path, ...]]]:
    """The streams of arguments: their names, and their files in order.

    An argument is `name=path` or a path alone. Paths with one name are one stream. Several paths alone are streams that are named by their files. A
    path with wildcards that is no file stands for the files that it matches, sorted by name; these are one stream.
    Raises InputError for files alone that have one name, and for wildcards that match nothing.
    """
    streams: dict[str | None, tuple[Path, ...]] = {}
    given: set[str | None] = set()
    for argument in arguments:
        if looks_like_query(argument):
            raise InputError(
                "this is the place of the events, and here is a query", help="the query comes first: cepheid run -e QUERY EVENTS"
            )
        name, equals, rest = argument.partition("=")
        if equals and name and "/" not in name and not Path(argument).exists():
            streams[name] = (*streams.get(name, ()), *matching(rest))
        else:
            paths = matching(argument)
            own = _stream_name(argument) if len(arguments) > 1 else None
            if own in streams:
                help_ = f"name them: first=PATH second=PATH; files of one stream have one name: {own}=PATH {own}=PATH"
                raise InputError(f"two files have the stream name `{own}`", help=help_)
            streams[own] = paths
            given.add(own)
            continue
        if name in given:
            raise InputError(f"two files have the stream name `{name}`", help=f"name both: {name}=PATH {name}=PATH are one stream")
    return list(streams.items())


def _stream_name(argument: str) -> str:
    """The name of a stream that is named by its file."""
    name = Path(argument).name.partition(".")[0]
    if any(mark in name for mark in WILDCARDS):
        raise InputError(f"the files {argument} are one of several streams, and have no name", help=f"name them: NAME='{argument}'")
    return name


def without_header(streams: Sequence[Stream]) -> tuple[str, ...]:
    """The help for CSV files of streams that lack a column: those that have no header, by its look."""
    csvs = [(path, stream) for stream in streams for path in stream.files if isinstance(stream.formats[path], Csv)]
    return tuple(line for path, stream in csvs for line in no_header(path, stream.schema.names))


def with_types(schema: pa.Schema, types: Mapping[str, pa.DataType]) -> pa.Schema:
    """A schema whose columns without a type yet (of a CSV with a header alone) have these types; text where there is none."""
    return pa.schema([field.with_type(types.get(field.name, pa.string())) if pa.types.is_null(field.type) else field for field in schema])
