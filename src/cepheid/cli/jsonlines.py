"""JSON lines as Arrow: one object per line, types inferred over the whole file.

Arrow reads the file. Only if it cannot, we check the lines one by one for the first wrong one. Arrow would read a text such as
`2026-01-01T10:00:00+01:00` as a time without its offset, so columns that it reads as times are read again as texts.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.engine.input.read import MAX_LEVELS
from cepheid.errors import InputError, LimitError

if TYPE_CHECKING:
    from pathlib import Path

KINDS = {dict: "object", list: "array", str: "text", bool: "boolean", int: "number", float: "number"}

MARK = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')
"""A text, or a bracket that stands in none."""


def read(path: Path, *, block: int) -> pa.Table:
    """The objects of a file as a table.

    Raises InputError for the first line that is no object or does not fit the lines before, and LimitError for one that nests too deep.
    """
    import pyarrow.json as arrow_json

    check_levels(path)
    options = arrow_json.ReadOptions(block_size=block)
    try:
        table = arrow_json.read_json(path, read_options=options)
        texts = [(field.name, pa.string()) for field in table.schema if pa.types.is_timestamp(field.type)]
        if texts:
            parse = arrow_json.ParseOptions(explicit_schema=pa.schema(texts))
            table = arrow_json.read_json(path, read_options=options, parse_options=parse).select(table.column_names)
    except pa.ArrowInvalid as error:
        raise first_mistake(path) or InputError(f"{path} cannot be read as JSON lines: {error}") from None
    return table


def check_levels(path: Path) -> None:
    """Raise LimitError for the first line where a value nests deeper than `MAX_LEVELS`: far beyond, Arrow's reader ends the process."""
    open_brackets = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            opening = line.count(b"[") + line.count(b"{")
            if not open_brackets and opening <= MAX_LEVELS and opening == line.count(b"]") + line.count(b"}"):
                continue
            for mark in MARK.findall(line):
                open_brackets = max(open_brackets + (mark in b"[{") - (mark in b"]}"), 0)
                # The first bracket is the event's own.
                if open_brackets > MAX_LEVELS + 1:
                    raise LimitError(
                        f"{path}, line {number}: a value nests deeper than {MAX_LEVELS} levels (MAX_LEVELS)",
                        help="flatten it, or give it as text",
                    )


def first_mistake(path: Path) -> InputError | None:
    """The first line that is wrong, as an error; None if Arrow's reason is none of these."""
    kinds: dict[str, tuple[str, int]] = {}
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
                column = f", column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
                return InputError(
                    f"{path}, line {number}{column}: not a JSON object: {reason}", help="JSON lines have one object on each line: {..}"
                )
            if not isinstance(value, dict):
                what = "an array" if isinstance(value, list) else "a value"
                return InputError(f"{path}, line {number} is {what}, not an object", help="JSON lines have one object on each line: {..}")
            for name, content in value.items():
                kind = KINDS.get(type(content))
                known, where = kinds.setdefault(name, (kind, number)) if kind else (None, 0)
                if kind and kind != known:
                    return InputError(
                        f"{path}, line {number}: `{name}` is {_a(kind)}, and {_a(known)} on line {where}",
                        help="give each attribute one type",
                    )
    return None


def _a(kind: str | None) -> str:
    return f"{'an' if kind and kind[0] in 'ao' else 'a'} {kind}" if kind != "text" else "text"
