"""Files of events that say their types themselves: Parquet and Arrow IPC (Feather), read batch by batch.

Comes in: a path. Goes out: a `pyarrow.RecordBatchReader`. What is text, such as CSV, has no types: the command line guesses them, and in Python
whoever reads the file says them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.errors import InputError, nearest, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TEXT = {
    **dict.fromkeys(
        (".csv", ".tsv"),
        "import pyarrow.csv as csv, and pass csv.read_csv({path}, convert_options=csv.ConvertOptions(strings_can_be_null=True))",
    ),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "import pyarrow.json, and pass pyarrow.json.read_json({path}), or a list of dicts"),
}
"""For the endings of text how to read it."""


def is_file(value: object) -> bool:
    """Whether something can only be the path of a file of events: a Path, or a text with one of the endings."""
    return isinstance(value, os.PathLike) or (isinstance(value, str) and Path(value).suffix.lower() in {*READERS, *TEXT})


def is_path(value: object) -> bool:
    """Whether something is meant as a path: the same, or a text with any ending or the name of what is there."""
    return is_file(value) or (isinstance(value, str) and bool(Path(value).suffix or os.path.exists(value)))  # noqa: PTH110 - never raises


def read(given: Any) -> pa.RecordBatchReader:
    """The events of a file, unread; raises InputError where that is no file of events, and when it is read where it is damaged."""
    path = Path(given)
    ending = path.suffix.lower()
    if path.is_dir():
        help_ = f"pass pyarrow.dataset.dataset({str(path)!r}).scanner().to_reader(): its files come in the order of their names"
        raise InputError(f"{path} is a directory, not a file of events", help=help_)
    if ending in TEXT:
        raise InputError(
            f"{path} is text, and says nothing about the types of its attributes",
            help=(TEXT[ending].format(path=repr(str(path))), "on the command line, cepheid run reads such files"),
        )
    if ending not in READERS:
        raise InputError(f"{path} has no ending that says what it is", help=f"the endings of files of events are {quoted(READERS)}")
    if not path.exists():
        beside = sorted(other.name for other in path.parent.iterdir()) if path.parent.is_dir() else []
        near = nearest(path.name, beside)
        raise InputError(f"there is no file {path}", help=f"did you mean {path.with_name(near)}?" if near else ())
    try:
        found = READERS[ending](path)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from None
    return pa.RecordBatchReader.from_batches(found.schema, _batches(path, found))


def _batches(path: Path, found: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    try:
        yield from found
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> InputError:
    reason = str(error).partition("\n")[0].rstrip(".")
    return InputError(f"{path} cannot be read: {reason}", help="was it written completely, and is it what its ending says?")


def _parquet(path: Path) -> pa.RecordBatchReader:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    schema = file.schema_arrow.remove_metadata()
    batches = (batch.replace_schema_metadata(None) for batch in file.iter_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


def _ipc(path: Path) -> pa.RecordBatchReader:
    file = pa.ipc.open_file(pa.memory_map(str(path)))
    return pa.RecordBatchReader.from_batches(file.schema, (file.get_batch(number) for number in range(file.num_record_batches)))


def _ipc_stream(path: Path) -> pa.RecordBatchReader:
    return pa.ipc.open_stream(pa.memory_map(str(path)))


READERS: dict[str, Callable[[Path], pa.RecordBatchReader]] = {
    ".parquet": _parquet,
    **dict.fromkeys((".arrow", ".feather", ".ipc"), _ipc),
    ".arrows": _ipc_stream,
}
"""The endings of files of events."""
