"""CSV as Arrow, in pieces: read once for the types of its columns, and again for its rows.

Types are inferred from all rows of all files of a stream; see `readings`. Arrow reads one file in one thread: only then do its errors say the row.
"""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.cli.readings import OF_CSV, Column
from cepheid.cli.texts import check_text, ending_of, opened
from cepheid.errors import InputError, counted
from cepheid.schema import check_doubles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

NULLS = ("", "NULL", "null", "NA", "NaN", "nan")
"""Texts that are NULL in CSV where they stand without quotes."""

BLOCK = 1 << 20
"""Bytes that are read at a time, more where a row is longer; Arrow reads up to 32 of them ahead."""

MOST_BYTES = (1 << 31) - 1
"""Longest row."""


class Csv:
    """The CSV files of one stream; a `files.Format`. separator: None: a comma, a tab in .tsv."""

    first_row = 2  # the header is row 1

    def __init__(self, separator: str | None) -> None:
        self._separator = separator
        self._columns: dict[str, Column] = {}
        self._blocks: dict[Path, int] = {}

    def look(self, path: Path, owner: str, seen: Callable[[int], None]) -> int:
        """Read a file for its types; gives its rows. seen: called with the rows of each piece."""
        check_text(path, quotes=True)
        block = BLOCK
        while True:
            try:
                self._blocks[path] = block
                return self._look(path, owner, seen)
            except pa.ArrowInvalid as error:
                if "straddling object" not in str(error) or block == MOST_BYTES:
                    raise csv_error(path, str(error), self._delimiter(path)) from None
                block = min(block << 4, MOST_BYTES)

    def _look(self, path: Path, owner: str, seen: Callable[[int], None]) -> int:
        with opened(path) as file, self._open(path, file, {}) as reader:
            names = reader.schema.names
        _check_header(path, names, self._delimiter(path))
        check_doubles(owner, names)
        for name in names:
            self._columns.setdefault(name, Column(OF_CSV))
        rows = 0
        with opened(path) as file, self._open(path, file, dict.fromkeys(names, pa.string())) as reader:
            for batch in reader:
                for name, texts in zip(names, batch.columns, strict=True):
                    self._columns[name].see(texts)
                rows += batch.num_rows
                seen(batch.num_rows)
        return rows

    def pieces(self, path: Path) -> Iterator[pa.Table]:
        """The rows of a file."""
        readings = {name: column.reading for name, column in self._columns.items()}
        try:
            parsed = {name: reading.parsed for name, reading in readings.items()}
            with opened(path) as file, self._open(path, file, parsed) as reader:
                for batch in reader:
                    columns = [readings[name].cast(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)]
                    yield pa.Table.from_arrays(columns, batch.schema.names)
        except pa.ArrowInvalid as error:
            raise csv_error(path, str(error), self._delimiter(path)) from None

    @property
    def schema(self) -> pa.Schema:
        """The columns of all files, in the order in which they first come."""
        return pa.schema([(name, column.reading.kind) for name, column in self._columns.items()])

    def _open(self, path: Path, file: Any, types: Mapping[str, pa.DataType]) -> Any:
        import pyarrow.csv as arrow_csv

        return arrow_csv.open_csv(
            _Ended(file),
            read_options=arrow_csv.ReadOptions(use_threads=False, block_size=self._blocks[path]),
            parse_options=arrow_csv.ParseOptions(delimiter=self._delimiter(path), newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=list(NULLS), column_types=dict(types)
            ),
        )

    def _delimiter(self, path: Path) -> str:
        return self._separator or ("\t" if ending_of(path) == ".tsv" else ",")


class _Ended:
    """A file for Arrow's reader, around two of its faults.

    A line feed is lost where a piece begins with it, also between quotes: so no piece ends with a carriage return. The last field is not NULL
    where no line end is behind it and the field before was quoted: so there always is one.
    """

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._last = file, b"\n"

    def read(self, size: int) -> bytes:
        """The next bytes, at most so many; none at the end."""
        data = self._file.read(max(size - 1, 1))
        if data.endswith(b"\r"):
            data += self._file.read(1)
        ends = len(data) < size - 1
        if ends and (data or self._last)[-1:] not in b"\r\n":
            data += b"\n"
        self._last = data[-1:]
        return data


def csv_error(path: Path, reason: str, delimiter: str) -> InputError:
    """What is wrong with a CSV file, from what its reader says of it."""
    counts = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", reason)
    if counts:
        row, expected, got = map(int, counts.groups())
        return InputError(
            f"{path}, row {row}: {counted(got, 'value')} where the header has {expected}",
            help="the header is row 1; a value with a separator or a line end in it stands in double quotes"
            + ("" if delimiter == "," else f" (the separator is {delimiter!r})"),
        )
    value = re.search(r"CSV conversion error to ([\w\[\], =]+): invalid value '(.*?)'", reason, re.DOTALL)
    if value:
        return InputError(f"{path}: '{value.group(2)}' is not {value.group(1)}, as the rest of its column is")
    if "Empty CSV" in reason:
        return InputError(f"{path} has no header", help="the first row names the attributes")
    return InputError(f"{path} cannot be read as CSV: {reason}")


def _check_header(path: Path, names: Sequence[str], delimiter: str) -> None:
    """Raise InputError for a header that was surely cut at the wrong separator."""
    if len(names) == 1:
        other = next((each for each in (";", "\t", "|", ",") if each != delimiter and each in names[0]), None)
        if other is not None:
            raise InputError(
                f"{path} has one column, `{names[0]}`: its separator is not {delimiter!r}",
                help=f"--separator {'TAB' if other == chr(9) else repr(other)}",
            )
