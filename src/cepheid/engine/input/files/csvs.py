"""CSV as Arrow, in pieces: read once for the types of its columns, and again for its rows.

Types are inferred from all rows of all files of a stream; see `readings`. A piece has whole rows and lies in memory when Arrow reads it, in one
thread. Arrow's own reader of streams asks for more in its threads, and a file of Python's that it asks while the process ends, ends it by an abort.
With one piece at a time its errors say the row, and no line end is lost where a piece begins with it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cepheid.engine.input.files.readings import OF_CSV, Column
from cepheid.engine.input.files.texts import check_text, ending_of, in_memory, kind_of, opened
from cepheid.engine.input.time_texts import DAY, TIME
from cepheid.errors import InputError, SchemaError, counted
from cepheid.schema import check_doubles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from cepheid.engine.memory.pools import Array

NULLS = ("", "NULL", "null", "NA", "NaN", "nan")
"""Texts that are NULL in CSV where they stand without quotes."""

PIECE = 1 << 20
"""Bytes that are read at a time; more where a row is longer."""

MOST_BYTES = (1 << 31) - 2
"""Longest row."""

LINE_FEED, RETURN, QUOTE = b'\n\r"'


class Csv:
    """The CSV files of one stream; a `files.Format`. separator: None: a comma, a tab in .tsv."""

    first_row = 2  # the header is row 1

    def __init__(self, separator: str | None) -> None:
        self._separator = separator
        self._columns: dict[str, Column] = {}

    def look(self, path: Path, owner: str, seen: Callable[[int], None]) -> int:
        """Read a file for its types; gives its rows. seen: called with the rows of each piece."""
        check_text(path)
        names = self._header(path)
        try:
            check_doubles(owner, names)
        except SchemaError as error:
            error.help = (*no_header(path, names), *error.help)
            raise
        for name in names:
            self._columns.setdefault(name, Column(OF_CSV))
        rows = 0
        for table in self._tables(path, dict.fromkeys(names, pa.string())):
            for name, texts in zip(names, table.columns, strict=True):
                self._columns[name].see(texts)
            rows += table.num_rows
            seen(table.num_rows)
        return rows

    def pieces(self, path: Path) -> Iterator[pa.Table]:
        """The rows of a file."""
        readings = {name: column.reading for name, column in self._columns.items()}
        for table in self._tables(path, {name: reading.parsed for name, reading in readings.items()}):
            names = table.column_names
            yield pa.Table.from_arrays([readings[name].cast(column) for name, column in zip(names, table.columns, strict=True)], names)

    @property
    def schema(self) -> pa.Schema:
        """The columns of all files, in the order in which they first come."""
        return pa.schema([(name, column.reading.kind) for name, column in self._columns.items()])

    def _header(self, path: Path) -> list[str]:
        """The names of the columns of a file."""
        kind = kind_of(path)
        if kind is not None and kind.ending == ".jsonl":
            raise InputError(f"{path} is no CSV", help=kind.help)
        first = next(pieces_of(path, self._delimiter(path)), b"")
        names: list[str] = self._parsed(path, first, None, {}, before=0).column_names
        _check_header(path, names, self._delimiter(path))
        return names

    def _tables(self, path: Path, types: Mapping[str, pa.DataType]) -> Iterator[pa.Table]:
        """The rows of a file piece by piece, as Arrow parses them."""
        names: list[str] | None = None
        rows = 0
        for piece in pieces_of(path, self._delimiter(path)):
            table = self._parsed(path, piece, names, types, before=rows if names is None else rows + 1)
            names = table.column_names
            rows += table.num_rows
            yield table

    def _parsed(self, path: Path, piece: bytes, names: list[str] | None, types: Mapping[str, pa.DataType], *, before: int) -> pa.Table:
        """A piece. names: of its columns; None: it begins with the header. before: the rows of the file in front of it, the header among them."""
        import pyarrow.csv as arrow_csv

        try:
            return arrow_csv.read_csv(
                in_memory(piece),
                read_options=arrow_csv.ReadOptions(use_threads=False, block_size=len(piece) + 1, column_names=names),
                parse_options=arrow_csv.ParseOptions(delimiter=self._delimiter(path), newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=list(NULLS), column_types=dict(types)
                ),
            )
        except pa.ArrowInvalid as error:
            raise csv_error(path, str(error), self._delimiter(path), before=before) from None

    def _delimiter(self, path: Path) -> str:
        return self._separator or ("\t" if ending_of(path) == ".tsv" else ",")


# -------------------------------------------------------------------------------------------------------------------------- pieces


def pieces_of(path: Path, delimiter: str) -> Iterator[bytes]:
    """A file in pieces of whole rows, each with its line end; pieces of empty lines alone are left out.

    Raises InputError for a quote that is never closed, and for a row of more than `MOST_BYTES`.
    """
    with opened(path) as file:
        rest, lines = bytearray(), 1
        while chunk := file.read(min(max(PIECE, len(rest)), MOST_BYTES - len(rest))):
            rest += chunk
            cut = end_of_rows(rest, delimiter)
            if rest[:cut].strip(b"\r\n"):
                yield bytes(rest[:cut])
            lines += rest.count(b"\n", 0, cut)
            del rest[:cut]
        if len(rest) == MOST_BYTES:
            raise InputError(f"{path} has a row of more than {MOST_BYTES:,} bytes", help="is a quote opened and never closed?")
    quotes = quotes_in(rest, delimiter)
    if len(quotes) % 2:
        line = lines + rest.count(b"\n", 0, int(quotes[-1]))
        raise InputError(f'{path}, line {line}: a quote (") is opened and never closed', help='double a quote within a text: "say ""so"""')
    if rest.strip(b"\r\n"):
        # Arrow takes an empty last field behind a quoted one for a text where no line end follows.
        yield bytes(rest) + b"\n"


def end_of_rows(text: bytes | bytearray, delimiter: str) -> int:
    """Where the last whole row of a text that begins with one ends; 0 where none does. Linear."""
    if QUOTE not in text:
        return text.rfind(LINE_FEED) + 1 or text.rfind(RETURN, 0, -1) + 1
    codes = np.frombuffer(bytes(text), np.uint8)
    quotes = quotes_in(text, delimiter)
    # A carriage return at the end may be half a line end.
    for ends in (np.flatnonzero(codes == LINE_FEED), np.flatnonzero(codes[:-1] == RETURN)):
        outside = ends[np.searchsorted(quotes, ends) % 2 == 0]
        if len(outside):
            return int(outside[-1]) + 1
    return 0


def quotes_in(text: bytes | bytearray, delimiter: str) -> Array:
    """The places of the quotes around fields: an opening one, the closing one, and so on; a doubled quote closes and opens.

    A quote opens a field where it is the first character of it, and is a character as any other behind the first.
    """
    codes = np.frombuffer(bytes(text), np.uint8)
    quotes = np.flatnonzero(codes == QUOTE)
    opening = quotes[::2]
    before = codes[opening[opening > 0] - 1]
    if np.isin(before, (*delimiter.encode(), LINE_FEED, RETURN, QUOTE)).all():
        return quotes
    field = re.compile(rb'(?<![^%b\r\n])(")(?:[^"]++|"")*+(")?' % re.escape(delimiter.encode()))
    return np.array([place for each in field.finditer(text) for place in (each.start(1), each.start(2)) if place >= 0], np.int64)


def csv_error(path: Path, reason: str, delimiter: str, *, before: int) -> InputError:
    """What is wrong with a CSV file, from what the reader of a piece says of it. before: the rows in front of the piece."""
    counts = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", reason)
    if counts:
        row, expected, got = map(int, counts.groups())
        return InputError(
            f"{path}, row {before + row}: {counted(got, 'value')} where the header has {expected}",
            help="the header is row 1; a value with a separator or a line end in it stands in double quotes"
            + ("" if delimiter == "," else f" (the separator is {delimiter!r})"),
        )
    value = re.search(r"CSV conversion error to ([\w\[\], =]+): invalid value '(.*?)'", reason, re.DOTALL)
    if value:
        return InputError(f"{path}: '{value.group(2)}' is not {value.group(1)}, as the rest of its column is")
    if "Empty CSV" in reason:
        return InputError(f"{path} has no header", help="the first row names the attributes")
    return InputError(f"{path} cannot be read as CSV: {reason}")


def no_header(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """The help for a file whose first row is an event, by its look: some of its values are numbers or times. names: that row."""
    if not any(each.fullmatch(name.strip()) for name in names for each in (NUMBER, DAY, TIME)):
        return ()
    return (f"the first row of a CSV file names the attributes: if that of {path} is an event, put a row of names before it",)


NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?|[0-9]*\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
"""A number as CSV has them, which few attributes are called."""


def _check_header(path: Path, names: Sequence[str], delimiter: str) -> None:
    """Raise InputError for a header that was surely cut at the wrong separator."""
    if len(names) == 1:
        other = next((each for each in (";", "\t", "|", ",") if each != delimiter and each in names[0]), None)
        if other is not None:
            raise InputError(
                f"{path} has one column, `{names[0]}`: its separator is not {delimiter!r}",
                help=(
                    f"--separator {'TAB' if other == chr(9) else repr(other)}",
                    f"in Python read it with pyarrow.csv, and parse_options=ParseOptions(delimiter={other!r})",
                ),
            )
