"""All kinds of times that one input takes, every input takes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path  # noqa: TC003 - pytest's fixture
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kinds_of_times import NUMBERS, TEXTS, VALUES

import cepheid
from cepheid.cli import watch
from cepheid.cli.run import run
from cepheid.cli.settings import Settings, Watching

if TYPE_CHECKING:
    from collections.abc import Callable

Rows = list[dict[str, Any]]

QUERY = cepheid.query("SELECT * WHERE A ; B")
WRITTEN = TEXTS | NUMBERS
"""What can be written in a file of text."""


class Given:
    """What arrives."""

    def __init__(self, text: bytes) -> None:
        self._pieces = iter([text])

    def read(self, _: float | None) -> bytes | None:
        return next(self._pieces, None)


class Frame:
    """A DataFrame of another library, as polars: all that is asked of it is that it speaks Arrow."""

    def __init__(self, rows: Rows) -> None:
        self._table = pa.Table.from_pylist(rows)

    def __arrow_c_stream__(self, requested: object = None) -> object:
        return self._table.__arrow_c_stream__(requested)


def pushed(rows: Rows, _: Path, kind: pa.DataType) -> int:
    recognizer = QUERY.recognizer(pa.schema([("type", pa.string()), ("ts", kind)]))
    return sum(len(recognizer.push(row)) for row in rows)


def of_file(path: Path) -> int:
    return run(QUERY, [str(path)], Settings()).count


def of_csv(rows: Rows, folder: Path, _: pa.DataType) -> int:
    with (folder / "events.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["type", "ts"])
        writer.writeheader()
        writer.writerows(rows)
    return of_file(folder / "events.csv")


def lines(rows: Rows) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def of_json_lines(rows: Rows, folder: Path, _: pa.DataType) -> int:
    (folder / "events.jsonl").write_text(lines(rows))
    return of_file(folder / "events.jsonl")


def of_parquet(rows: Rows, folder: Path, _: pa.DataType) -> int:
    pq.write_table(pa.Table.from_pylist(rows), folder / "events.parquet")
    return of_file(folder / "events.parquet")


def watched(rows: Rows, _: Path, __: pa.DataType) -> int:
    out = io.StringIO()
    watch.watch(QUERY, Given(lines(rows).encode()), Watching(), None, out)
    return len(out.getvalue().splitlines())


WAYS: dict[str, Callable[[Rows, Path, pa.DataType], int]] = {
    "dicts": lambda rows, *_: len(QUERY.run(rows)),
    "pushed dicts": pushed,
    "pandas": lambda rows, *_: len(QUERY.run(pd.DataFrame(rows))),
    "Arrow": lambda rows, *_: len(QUERY.run(pa.Table.from_pylist(rows))),
    "another DataFrame": lambda rows, *_: len(QUERY.run(Frame(rows))),
    "Parquet": of_parquet,
}
OF_TEXT = {"CSV": of_csv, "JSON lines": of_json_lines, "watched lines": watched}


@pytest.mark.parametrize(
    ("way", "kind"), [(way, kind) for ways, kinds in ((WAYS, WRITTEN | VALUES), (OF_TEXT, WRITTEN)) for way in ways for kind in kinds]
)
def test_every_input_takes_all_kinds_of_times(way: str, kind: str, tmp_path: Path) -> None:
    (first, second), read_as = (WRITTEN | VALUES)[kind]
    rows = [{"type": "A", "ts": first}, {"type": "B", "ts": second}]
    assert (WAYS | OF_TEXT)[way](rows, tmp_path, read_as) == 1
