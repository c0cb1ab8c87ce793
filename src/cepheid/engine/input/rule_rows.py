"""The rows of rules as users write them, read and checked.

Comes in: dicts, a table, a file. Goes out: `engine.input.versions.Row`, in steps of the time column of the events. What a row may have is in the
docstring of `cepheid.rules`.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.engine.input.event_times import time_number
from cepheid.engine.input.read import events_of
from cepheid.engine.input.versions import ALWAYS_WAS, ENDINGS, Row
from cepheid.errors import InputError, check_choice, nearest, quoted

if TYPE_CHECKING:
    from cepheid.schema import EventSchema

COLUMNS = ("name", "query", "args", "from", "until", "deleted", "ends")

LIKE = 0.75
"""How like one of these the name of a column is that is taken for a slip of the pen."""


def rows_in(given: object) -> list[dict[str, Any]]:
    """Rows of rules as dicts: of a list of dicts, a table, a DataFrame or a file; raises InputError for what has no such rows."""
    if isinstance(given, list | tuple) and all(isinstance(row, Mapping) for row in given):
        rows = [dict(row) for row in given]
        names = list(dict.fromkeys(str(name) for row in rows for name in row))
    else:
        table = events_of(given)
        table = table.read_all() if isinstance(table, pa.RecordBatchReader) else table
        names = table.column_names
        rows = table.select([name for name in COLUMNS if name in names]).to_pylist()
    missing = [name for name in COLUMNS if name not in names]
    for name in names:
        near = None if name in COLUMNS else nearest(name, missing, likeness=LIKE)
        if near is not None:
            raise InputError(f"rules have no column `{name}`", help=(f"did you mean `{near}`?", f"they may have {quoted(COLUMNS)}"))
    if rows and "name" not in names:
        raise InputError("the rows of rules have no column `name`", help=f"they have {quoted(names)}, and may have {quoted(COLUMNS)}")
    return rows


def row_of(given: Mapping[str, Any], schema: EventSchema) -> Row:
    """A row as it is kept; schema: of the events. Raises InputError for a wrong one."""
    name, text = given.get("name"), given.get("query")
    if not isinstance(name, str) or not name:
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
    return Row(name, text, _arguments(given.get("args")), ALWAYS_WAS if since is None else since, until, ends)


def _time(given: Mapping[str, Any], column: str, schema: EventSchema) -> int | None:
    """A time in steps of the time column, None where there is none."""
    value = given.get(column)
    if value is None or value != value:  # noqa: PLR0124 - NaT and NaN, of pandas and of numpy, are not equal to themselves
        return None
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value)
        except ValueError:
            raise InputError(f"`{column}` is {value!r}, which is not a time", help="write it like 2026-01-31T10:00:00") from None
    return time_number(value, schema, argument=column)


def _arguments(given: object) -> str:
    """The arguments of a query as JSON, in one spelling."""
    try:
        found = json.loads(given) if isinstance(given, str) else {} if given is None else dict(given)  # type: ignore[call-overload]
        if not isinstance(found, dict):
            raise TypeError  # noqa: TRY301 - the same message
        return json.dumps(found, sort_keys=True)
    except (TypeError, ValueError):
        raise InputError(
            f"args={given!r} are not arguments as JSON has them",
            help='give a dict of texts, numbers, true, false, null and lists, or its JSON: {"limit": 40, "for": "5s"}; write others in the query',
        ) from None
