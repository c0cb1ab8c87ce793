"""The kinds of files of events, by the endings of their names. A new kind is a class here and a row of `FORMATS`.

Each `Format` has the files of one kind in a stream: first it looks at every file for the types of its attributes, then it reads their events piece by
piece. Parquet and Arrow say their types themselves; text is read twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import pyarrow as pa

from cepheid.engine.input.column_types import united
from cepheid.engine.input.files.csvs import Csv
from cepheid.engine.input.files.jsonlines import JsonLines
from cepheid.engine.input.files.texts import CODECS, ending_of, kind_of
from cepheid.errors import InputError
from cepheid.schema import check_doubles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Format(Protocol):
    """The files of one kind in a stream. first_row: the number of the first event in a file, for messages."""

    first_row: int

    def look(self, path: Path, owner: str, seen: Callable[[int], None]) -> int:
        """Read what the types of a file are; gives its events.

        owner: of the file, for messages. seen: called with the events of each piece, where the types are only known when these have been read.
        """

    def pieces(self, path: Path) -> Iterator[pa.Table]:
        """The events of a file that has been looked at, once all have been: with its attributes in types of `schema`."""

    @property
    def schema(self) -> pa.Schema:
        """The attributes of all files."""


class Typed:
    """Files that say their types themselves; a `Format`."""

    first_row = 1
    what: ClassVar[str]
    """What such a file is, for messages."""

    def __init__(self, _: str | None) -> None:
        self.schema = pa.schema([])

    def look(self, path: Path, owner: str, _: Callable[[int], None]) -> int:
        """Read the schema of a file."""
        try:
            schema, rows = self._described(path)
        except pa.ArrowException as error:
            raise self._damaged(path, error) from None
        check_doubles(owner, schema.names)
        self.schema = united(self.schema, schema.remove_metadata(), str(path))
        return rows

    def pieces(self, path: Path) -> Iterator[pa.Table]:
        """The events of a file."""
        try:
            for batch in self._batches(path):
                yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(path, error) from None

    def _described(self, path: Path) -> tuple[pa.Schema, int]:
        """The schema of a file, and its events."""
        raise NotImplementedError

    def _batches(self, path: Path) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError

    def _damaged(self, path: Path, error: Exception) -> InputError:
        kind = kind_of(path)
        if kind is not None and kind.what != self.what:
            return InputError(f"{path} is no {self.what}", help=kind.help)
        reason = str(error).partition("\n")[0].rstrip(".")
        return InputError(f"{path} cannot be read as {self.what}: {reason}", help="was it written completely?")


class Parquet(Typed):
    """Parquet."""

    what = "Parquet"

    def _described(self, path: Path) -> tuple[pa.Schema, int]:
        file = self._opened(path)
        return file.schema_arrow, int(file.metadata.num_rows)

    def _batches(self, path: Path) -> Iterator[pa.RecordBatch]:
        yield from self._opened(path).iter_batches()

    def _opened(self, path: Path) -> Any:
        import pyarrow.parquet as pq

        return pq.ParquetFile(path)


class Arrow(Typed):
    """The file format of Arrow, which is also called Feather."""

    what = "Arrow"

    def _described(self, path: Path) -> tuple[pa.Schema, int]:
        return pa.ipc.open_file(pa.memory_map(str(path))).schema, sum(batch.num_rows for batch in self._batches(path))

    def _batches(self, path: Path) -> Iterator[pa.RecordBatch]:
        file = pa.ipc.open_file(pa.memory_map(str(path)))
        return (file.get_batch(number) for number in range(file.num_record_batches))


class ArrowStream(Typed):
    """The stream format of Arrow."""

    what = "Arrow stream"

    def _described(self, path: Path) -> tuple[pa.Schema, int]:
        return pa.ipc.open_stream(pa.memory_map(str(path))).schema, sum(batch.num_rows for batch in self._batches(path))

    def _batches(self, path: Path) -> Iterator[pa.RecordBatch]:
        yield from pa.ipc.open_stream(pa.memory_map(str(path)))


FORMATS: dict[str, Callable[[str | None], Format]] = {
    **dict.fromkeys((".csv", ".tsv"), Csv),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), JsonLines),
    ".parquet": Parquet,
    **dict.fromkeys((".arrow", ".feather", ".ipc"), Arrow),
    ".arrows": ArrowStream,
}
"""The endings of files of events: separator -> format. Those of text may be compressed, see `CODECS`."""


def is_compressed_whole(path: Path) -> bool:
    """Whether a file of a format that is read in places is compressed as a whole, by its name."""
    kind = FORMATS.get(ending_of(path))
    return path.suffix.lower() in CODECS and isinstance(kind, type) and issubclass(kind, Typed)
