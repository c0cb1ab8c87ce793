"""Matches as a table on a terminal, as JSON lines, CSV or Parquet.

Comes in: a `RunResult` or a `Flow`, matches as Arrow tables with the events themselves (the columns of `Matches.to_arrow(events=True)`, on every
engine). A file gets its name only when it is complete.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import math
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.engine.output.matches import python_values
from cepheid.engine.output.shown import TIME, fitted, left_out, time_texts
from cepheid.errors import InputError
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

PIECE = 10_000
"""Matches that are turned into rows at once."""

EVENT_WIDTH = 60
"""Longest text of an event in the printed table, in characters."""

BETWEEN = 3
"""Characters between two columns of a table."""

PIPED_WIDTH = 10_000
"""Columns of a table that no terminal shows: nothing is cut there."""


@record(slots=False)
class RunResult:
    """The result of a run.

    count: matches. piece: a slice of them, (start, stop) -> table. schema: of the pieces. plain: attributes that the printed events leave
    out, for they are the same in all or stand in columns of their own. asked: attributes that the query speaks of, printed first. notes: what
    the user must know of, such as events that were dropped.
    """

    count: int
    piece: Callable[[int, int], pa.Table]
    schema: pa.Schema
    plain: frozenset[str] = frozenset()
    asked: tuple[str, ...] = ()
    time: str | None = None
    notes: tuple[str, ...] = ()

    def pieces(self) -> Iterator[pa.Table]:
        """All matches, `PIECE` at a time."""
        for start in range(0, self.count, PIECE):
            yield self.piece(start, min(start + PIECE, self.count))


@dataclass
class Flow:
    """The result of a run whose matches are made as they are read, once.

    tables: of the matches. schema: of the tables. count, notes: as of a `RunResult`, once all have been read.
    """

    tables: Iterator[pa.Table]
    schema: pa.Schema
    count: int = 0
    notes: tuple[str, ...] = ()

    def pieces(self) -> Iterator[pa.Table]:
        """All matches."""
        for table in self.tables:
            self.count += table.num_rows
            yield table


# --------------------------------------------------------------------------------------------------------------------------- files


def check_output(output: str, *, overwrite: bool, inputs: Sequence[Path] = (), endings: Sequence[str] = ()) -> Path:
    """The path of an output, if it can be written; raises InputError before any work is done."""
    path = Path(output)
    if endings and path.suffix.lower() not in endings:
        raise InputError(f"the ending of {path} does not say what to write", help=f"the endings are {', '.join(endings)}")
    if path.is_dir():
        raise InputError(f"{path} is a directory, not a file to write")
    if any(path.exists() and other.exists() and path.samefile(other) for other in inputs):
        raise InputError(f"{path} is an input too: it would be overwritten while it is read")
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already", help="--overwrite replaces it")
    folder = path.parent
    if not folder.is_dir():
        raise InputError(f"{path} cannot be written: there is no directory {folder}")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise InputError(f"{path} cannot be written: permission denied")
    return path


@contextmanager
def complete(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it takes its place in the end, and nothing is left of it where that is not reached."""
    beside = path.with_name(f".{os.getpid()}.{path.name}")  # with its ending, by which writers go
    try:
        yield beside
        beside.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        beside.unlink(missing_ok=True)


def write(found: RunResult | Flow, path: Path) -> None:
    """Write all matches to a file of `WRITERS`."""
    with complete(path) as beside:
        WRITERS[path.suffix.lower()](found, beside)


def write_parquet(found: RunResult | Flow, path: Path) -> None:
    """One row per match."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, found.schema) as writer:
        for piece in found.pieces():
            writer.write_table(piece)


def write_jsonl(found: RunResult | Flow, path: Path) -> None:
    """One object per match."""
    with path.open("w", encoding="utf-8") as file:
        for line in json_lines(found):
            file.write(line + "\n")


def write_csv(found: RunResult | Flow, path: Path) -> None:
    """One line per match; lists and structs as JSON, NULL as nothing at all, which an empty text, in quotes, is not."""
    from pyarrow import csv

    schema = pa.schema([pa.field(field.name, field.type if in_csv(field.type) else pa.string()) for field in found.schema])
    with csv.CSVWriter(path, schema) as writer:
        for piece in found.pieces():
            writer.write_table(pa.table([as_csv(column) for column in piece.columns], schema=schema))


IN_CSV = (
    *(pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean),
    *(pa.types.is_string, pa.types.is_timestamp, pa.types.is_date),
)


def in_csv(kind: pa.DataType) -> bool:
    """Whether Arrow writes values of a type as CSV."""
    return any(test(kind) for test in IN_CSV)


def as_csv(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """A column as CSV has it: what CSV cannot say becomes the text of `row_value`."""
    if in_csv(column.type):
        return column
    values = [row_value(value) for value in python_values(column)]
    return pa.array([value if value is None or isinstance(value, str) else json_text(value) for value in values], pa.string())


WRITERS: dict[str, Callable[[RunResult | Flow, Path], None]] = {
    ".parquet": write_parquet,
    ".csv": write_csv,
    ".jsonl": write_jsonl,
    ".ndjson": write_jsonl,
}
"""What writes a file, by its ending."""


def json_lines(found: RunResult | Flow) -> Iterator[str]:
    """The matches as JSON: times in ISO 8601, with Z where they are in UTC; decimals and durations as text; NaN as null."""
    for piece in found.pieces():
        for row in rows_of(piece):
            yield json_text(row_value(row))


def json_text(value: Any) -> str:
    """A `row_value` as JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of matches; computed times that Python cannot hold, after the year 9999, as text, in UTC where they have a zone."""
    try:
        rows: list[dict[str, Any]] = table.to_pylist()
    except (ValueError, OverflowError):
        columns = [_times_as_text(column.type, python_values(column)) for column in table.columns]
        rows = [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]
    return rows


def _times_as_text(kind: pa.DataType, values: list[Any]) -> list[Any]:
    """The same where a time is a whole number of steps: then no datetime holds it."""
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return values
    unit = "D" if pa.types.is_date32(kind) else getattr(kind, "unit", "ms")
    zone = "Z" if getattr(kind, "tz", None) else ""
    return [f"{np.array(value).astype(f'M8[{unit}]')}{zone}" if isinstance(value, int) else value for value in values]


def row_value(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, dict):
        return {name: row_value(content) for name, content in value.items()}
    if isinstance(value, list):
        return [row_value(content) for content in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dt.datetime | dt.date | dt.time | dt.timedelta | Decimal) or hasattr(value, "isoformat"):
        return time_text(value, separator="T") if isinstance(value, dt.datetime) else str(value)
    return value


def time_text(value: dt.datetime, *, separator: str = " ") -> str:
    """A time in ISO 8601; UTC is Z."""
    return value.isoformat(separator).removesuffix("+00:00") + ("Z" if value.utcoffset() == dt.timedelta(0) else "")


# ----------------------------------------------------------------------------------------------------------------------- terminals


def console(*, error: bool = False) -> Console:
    """Where texts are printed; without a terminal, lines are as long as they are."""
    from rich.console import Console

    stream = sys.stderr if error else sys.stdout
    width = None if stream.isatty() else PIPED_WIDTH
    return Console(stderr=error, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def print_table(found: RunResult, *, limit: int) -> None:
    """Print the first `limit` matches (0: all)."""
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table

    shown = found.count if limit == 0 else min(limit, found.count)
    if not found.count:
        return
    terminal = console()
    values = [list(row.values()) for row in rows_of(found.piece(0, shown))]
    rows = [[cell(value, found) for value in row] for row in values]
    times = [place for place, field in enumerate(found.schema) if pa.types.is_temporal(field.type)]
    day = None
    if terminal.is_terminal:
        texts, day = times_in(terminal.width // 2, [row[place] for row in values for place in times], columns=len(times))
        for (row, place), text in zip(itertools.product(rows, times), texts, strict=True):
            row[place] = text
    widths = [max(map(cell_len, column)) for column in zip(found.schema.names, *rows, strict=True)]
    fit = fitted(widths, terminal.width if terminal.is_terminal else None, whole=times, between=BETWEEN)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold" if terminal.is_terminal else "")
    overflow: Any = {"overflow": "ellipsis", "no_wrap": True} if terminal.is_terminal else {"overflow": "fold"}
    for field, own in zip(found.schema, fit, strict=False):
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)
        table.add_column(field.name, justify="right" if number else "left", max_width=own, **overflow)
    for row in rows:
        table.add_row(*row[: len(fit)])
    with terminal.capture() as captured:
        terminal.print(table)
    # A table pads its cells to the end of the line; nobody needs that in a file.
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))
    if day is not None:
        print(f"the times are those of {day}", file=sys.stderr)
    if shown < found.count:
        print(f".. and {found.count - shown:,} more (--limit-rows 0 prints all, -o FILE writes all)", file=sys.stderr)
    if terminal.is_terminal and (note := left_out(widths, fit)) is not None:
        print(f"{note} (a pipe cuts nothing: | less -S; --json prints all)", file=sys.stderr)


def times_in(width: int, times: list[Any], *, columns: int) -> tuple[list[str], str | None]:
    """Times without what is zero in all of them; in columns that are together wider than `width` also without their day, if all have one.

    Gives the day, too, where it is left out.
    """
    texts = time_texts(times)
    days = {part[1] for text in texts if (part := TIME.fullmatch(text))}
    if len(days) != 1 or columns * (max(map(len, texts)) + BETWEEN) <= width:
        return texts, None
    (day,) = days
    return [text.removeprefix(f"{day} ") for text in texts], day


def cell(value: Any, found: RunResult) -> str:
    """A value of the printed table; of several events the first and the last."""
    if not isinstance(value, list) or not all(isinstance(event, dict) for event in value):
        return scalar_text(value)
    if len(value) < 3:
        return "; ".join(event_text(event, found) for event in value) or "-"
    return f"{event_text(value[0], found)} .. {event_text(value[-1], found)} ({len(value)} events)"


def event_text(event: dict[str, Any], found: RunResult) -> str:
    """An event: its time, then the attributes that the query speaks of, or where it speaks of none, the others."""
    names = found.asked or tuple(name for name in event if name not in found.plain and name != found.time)
    parts = [scalar_text(event[found.time])] if found.time in event else []
    parts += [f"{name}={scalar_text(event[name])}" for name in names if name in event and event[name] is not None]
    text = " ".join(parts)
    return text if len(text) <= EVENT_WIDTH else text[: EVENT_WIDTH - 2] + ".."


def scalar_text(value: Any) -> str:
    """One value; NULL for none."""
    if value is None:
        return "NULL"
    text = time_text(value) if isinstance(value, dt.datetime) else str(value)
    return "".join(c if c.isprintable() else " " for c in text)
