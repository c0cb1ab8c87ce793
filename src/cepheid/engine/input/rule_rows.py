"""The rows of rules as users write them, read and checked.

Comes in: dicts, a table, a file. Goes out: `engine.input.rule_versions.Row`, in steps of the time column of the events. What a row may have is in the
docstring of `cepheid.rules`.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.engine.input.column_types import without_views
from cepheid.engine.input.event_times import time_number
from cepheid.engine.input.files import streams as files
from cepheid.engine.input.files.formats import FORMATS
from cepheid.engine.input.files.jsonlines import JsonLines, objects_of
from cepheid.engine.input.files.texts import ending_of
from cepheid.engine.input.read import table_of
from cepheid.engine.input.rule_versions import ALWAYS_WAS, ENDINGS, FINISH, GREATEST, Row
from cepheid.engine.memory import container
from cepheid.errors import InputError, check_choice, nearest, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cepheid.schema import EventSchema

COLUMNS = ("name", "query", "args", "from", "until", "deleted", "ends")

FINER = re.compile(r"[.,]\d{7}")
"""More digits of a second than Python reads, which would leave out the rest."""

EXACT = 1 << 53
"""Whole numbers below it are one double each."""

LIKE = 0.75
"""How like one of these the name of a column is that is taken for a slip of the pen."""


def rows_in(given: object) -> list[dict[str, Any]]:
    """Rows of rules as dicts: of a list of dicts, {name: query}, `Rules`, a table, a DataFrame or files; raises InputError for what has none."""
    if isinstance(given, str | os.PathLike):
        return [row for path in files.paths_of(given) for row in _in_file(path)]
    if isinstance(given, Mapping) and has_queries(given):
        queries = {name: (each, {}) if isinstance(each, str) else (each.text, each.args) for name, each in given.items()}
        return [{"name": name, "query": text, "args": dict(args)} for name, (text, args) in queries.items()]
    if isinstance(given, Mapping) and isinstance(given.get("name"), str):
        raise InputError("this is one row of rules, not a list of rows", help="put it into a list: [row]")
    given = getattr(given, "rows", given)
    if isinstance(given, list | tuple) and all(isinstance(row, Mapping) for row in given):
        named = any("name" in row for row in given)
        for names in {tuple(map(str, row)): None for row in given}:
            check_columns(names, named=named)
        return [{name: row[name] for name in COLUMNS if name in row} for row in given]
    table = without_views(table_of(given))
    return _of_table(table.read_all() if isinstance(table, pa.RecordBatchReader) else table)


def has_queries(given: Mapping[str, Any]) -> bool:
    """Whether a dict is {name: query}, and not one row, nor columns of rows."""
    return "name" not in given or not {"query", "deleted"} & given.keys()


def _in_file(path: Path) -> list[dict[str, Any]]:
    if FORMATS[ending_of(path)] is not JsonLines:
        return _of_table(files.read(path, typed=False).read_all())
    try:
        # Not as a table: each rule has arguments of its own.
        return rows_in(list(objects_of(path)))
    except OSError as error:
        raise files.unreadable(path, error) from None


def _of_table(table: pa.Table) -> list[dict[str, Any]]:
    check_columns(table.column_names, named=not len(table))
    if twice := [name for name in COLUMNS if table.column_names.count(name) > 1]:
        raise InputError(f"the rows of rules have two columns {quoted(twice)}", help="leave one of them out")
    rows: list[dict[str, Any]] = table.select([name for name in COLUMNS if name in table.column_names]).to_pylist()
    if "args" in table.column_names and pa.types.is_struct(table.schema.field("args").type):
        # Such a column has the arguments of all rules, and NULL for those that a rule has not.
        for row in rows:
            row["args"] = {name: value for name, value in (row["args"] or {}).items() if value is not None}
    return rows


def check_columns(names: Sequence[str], *, named: bool = False) -> None:
    """Raise InputError for columns that are none of rules. named: no name is needed."""
    missing = [name for name in COLUMNS if name not in names]
    for name in names:
        own = name.lower()
        near = None if name in COLUMNS else own if own in COLUMNS else nearest(own, missing, likeness=LIKE)
        if near is not None:
            raise InputError(f"rules have no column `{name}`", help=(f"did you mean `{near}`?", f"they may have {quoted(COLUMNS)}"))
    if not named and "name" not in names:
        raise InputError("the rows of rules have no column `name`", help=f"they have {quoted(names)}, and may have {quoted(COLUMNS)}")


def row_of(given: Mapping[str, Any], schema: EventSchema) -> Row:
    """A row as it is kept; schema: of the events. Raises InputError for a wrong one."""
    given = {column: value for column, value in given.items() if not _is_missing(value)}
    name, text = given.get("name"), given.get("query")
    if not isinstance(name, str) or not name or name_shown(name) != name:
        raise InputError(f"{name!r} is not the name of a rule", help="give the name as text")
    deleted = given.get("deleted")
    if deleted is not None and not isinstance(deleted, bool):
        raise InputError(f"deleted={deleted!r} is not true or false", help="true ends the rule at `from`")
    if not deleted and not isinstance(text, str):
        raise InputError(f"{text!r} is not the text of a query", help="give the query as text, or deleted=true")
    since, until = (_time(given, column, schema) for column in ("from", "until"))
    ends = given.get("ends")
    if ends is not None:
        check_choice("ends", ends, ENDINGS)
    if deleted:
        return Row(name, None, "{}", ALWAYS_WAS if since is None else since, None, ends)
    if since is not None and until is not None and until <= since:
        raise InputError(f"it ends at {given['until']}, and begins at {given['from']}", help="give `until` a time after `from`")
    # One spelling of what is the same: equal rows are one.
    return Row(name, text, _arguments(given.get("args")), ALWAYS_WAS if since is None else since, until, None if ends == FINISH else ends)


def name_shown(name: object) -> str | None:
    """What stands for the name of a rule that is refused, whatever it is: text that can be written; None where there is none."""
    return None if _is_missing(name) else str(name).encode(errors="backslashreplace").decode()


def stored_row(values: Sequence[Any]) -> Row:
    """A row out of a snapshot; raises TypeError or ValueError for what is none."""
    row = Row(*values)
    if not all(isinstance(each, str) for each in (row.name, row.arguments, row.text or "")) or row.ends not in (None, *ENDINGS):
        raise ValueError("its rows are no rows of rules")
    for time in (row.since, row.since if row.until is None else row.until):
        container.integer(time, "time", least=ALWAYS_WAS, most=GREATEST)
    return row


def _time(given: Mapping[str, Any], column: str, schema: EventSchema) -> int | None:
    """A time in steps of the time column, None where there is none."""
    value, kind = given.get(column), schema.time_type
    if value is None:
        return None
    if isinstance(value, str):
        value = _time_in(value, column, schema)
    if isinstance(value, float) and value.is_integer() and pa.types.is_integer(kind):
        value = int(value)  # a column of pandas that has no value in some rows
    number = time_number(value, schema, argument=column)
    if isinstance(value, dt.datetime) and _is_finer(value, kind):
        raise InputError(
            f"`{column}` is {value}, which is finer than the column `{schema.time_column}` ({kind})", help="give a time that it can have"
        )
    return number


def _time_in(text: str, column: str, schema: EventSchema) -> dt.date:
    """The time that a text says; raises InputError for one that the time column cannot have."""
    kind = schema.time_type
    if pa.types.is_integer(kind):
        raise InputError(
            f"`{column}` is the text {text!r}, and the times of `{schema.time_column}` are numbers", help="write a number, without quotes"
        )
    zone = getattr(kind, "tz", None)
    kinds, like = (dt.date, "2026-01-31") if pa.types.is_date(kind) else (dt.datetime, "2026-01-31T10:00:00" + ("Z" if zone else ""))
    try:
        found = kinds.fromisoformat(text)
    except ValueError:
        raise InputError(f"`{column}` is {text!r}, which is not a time", help=f"write it like {like}") from None
    if FINER.search(text):
        raise InputError(f"`{column}` is {text!r}, which is finer than a microsecond", help=f"write it like {like}")
    if zone and isinstance(found, dt.datetime) and found.tzinfo is None:
        raise InputError(
            f"`{column}` is {text!r}, which has no offset, and the times of `{schema.time_column}` have one", help=f"write it like {like}"
        )
    return found


def _is_missing(value: object) -> bool:
    """Whether it is no value: None, and what pandas and numpy have for it in tables."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 - NaT and NaN are not equal to themselves
    except (TypeError, ValueError):  # of NA nobody knows whether it is, and of an array there are several answers
        return type(value).__name__ == "NAType"


def _is_finer(value: dt.datetime, kind: Any) -> bool:
    """Whether a column of timestamps cannot have the time as it is; a Timestamp of pandas has nanoseconds, too."""
    below = {"s": value.microsecond, "ms": value.microsecond % 1000}.get(kind.unit, 0)
    return bool(below or (kind.unit != "ns" and getattr(value, "nanosecond", 0)))


def _arguments(given: object) -> str:
    """The arguments of a query as JSON, in one spelling."""
    try:
        found = json.loads(given) if isinstance(given, str) else {} if given is None else dict(given)  # type: ignore[call-overload]
        if not isinstance(found, dict):
            raise TypeError  # noqa: TRY301 - the same message
        return json.dumps(_plain_numbers(found), sort_keys=True)
    except (TypeError, ValueError):
        raise InputError(
            f"args={given!r} are not arguments as JSON has them",
            help='give a dict of texts, numbers, true, false, null and lists, or its JSON: {"limit": 40, "for": "5s"}; write others in the query',
        ) from None


def _plain_numbers(value: Any) -> Any:
    """The same with each whole number as one: a column of numbers makes 2.0 of 2, and JSON tells them not apart."""
    if isinstance(value, dict):
        return {name: _plain_numbers(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_numbers(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < EXACT else value
