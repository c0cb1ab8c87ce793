"""The matches of a query, as the page and the widget show them: the first ones with their events by row, and how many there are.

All matches are listed within `MAX_LISTED_BYTES`. Past it only the first ones are, and `COUNT(*)` says how
many there are, which needs no list.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

import cepheid
from cepheid.engine.output.matches import python_value
from cepheid.engine.output.origins import NOWHERE
from cepheid.engine.plan.likely_schema import likely_schema
from cepheid.errors import LimitError
from cepheid.language import syntax
from cepheid.logical.measures import POSITION_COLUMNS
from cepheid.play.inputs import ShownEvents, is_number, shown
from cepheid.play.limits import MAX_LISTED_BYTES, MAX_SHOWN_MATCHES
from cepheid.records import record
from cepheid.schema import DEFAULT_TIME, DEFAULT_TYPE
from cepheid.viz.colours import colours_of, shown_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cepheid.engine.output.matches import Matches

FEW = 2
"""Events of a variable whose values a cell shows; of more it shows the first and the last."""


def matches_in(query: cepheid.Query, given: ShownEvents, *, until: object) -> dict[str, Any]:
    """The matches of a query over events. until: as for `Query.run`; "end": no events follow these, which decides absences.

    Returns `columns` and `rows` of a table, `matches` with the marks of each, `colours` of their variables, `count` (a text; a number may be longer
    than JSON's), `listed`, and `notes`: whatever was left out is said there. Raises as `Query.run`, but no LimitError for many matches.
    """
    options = {**given.options, "until": until}
    notes: list[str] = []
    try:
        found = query.run(given.events, max_bytes=MAX_LISTED_BYTES, **options)
    except LimitError:
        # Too many to be listed, or another limit, which the second run meets, too.
        parts, count = _first(query, given, options), _counted(query, given, options)
        more = "cannot be counted without a list" if count is None else "are counted, not listed"
        notes.append(
            f"all matches take more than {MAX_LISTED_BYTES:,} bytes (MAX_LISTED_BYTES): "
            f"the first {sum(map(len, parts)):,} are shown, the others {more}"
        )
        said = f"more than {sum(map(len, parts)):,}" if count is None else f"{count:,}"
        return _answer(query, given, parts, said, notes)
    notes += [f"warning: {warning}" for warning in found.warnings]
    if found.null_keys:
        notes.append(f"events without a key (NULL in PARTITION BY), which take part in no match: {found.null_keys:,}")
    if len(found.undecided):
        notes.append(
            f"undecided matches: {len(found.undecided):,}; events that come later may still forbid them "
            "(they are decided where the stream ends here)"
        )
    if len(found) > MAX_SHOWN_MATCHES:
        notes.append(f"the first {MAX_SHOWN_MATCHES:,} of {len(found):,} matches are listed; `cepheid run` and Query.run give all")
    return _answer(query, given, [found[:MAX_SHOWN_MATCHES]], f"{len(found):,}", notes)


def _first(query: cepheid.Query, given: ShownEvents, options: dict[str, Any]) -> list[Matches]:
    """The first matches, without those behind them."""
    parts: list[Matches] = []
    rest = MAX_SHOWN_MATCHES
    for part in query.batches(given.events, **options):
        parts.append(part[:rest])
        rest -= len(parts[-1])
        if rest <= 0:
            break
    return [part for part in parts if len(part)]


def _counted(query: cepheid.Query, given: ShownEvents, options: dict[str, Any]) -> int | None:
    """How many matches there are, without a list; None where COUNT(*) cannot say it."""
    if query.tree.limit is not None or query.tree.having is not None or query.tree.targets is not None:
        return None
    star = syntax.Target(syntax.Call("count", (), star=True))
    counting = cepheid.query(dataclasses.replace(query.tree, targets=(star,)), args=query.args)
    try:
        found = counting.run(given.events, max_bytes=MAX_LISTED_BYTES, **options)
    except cepheid.CepheidError:
        return None
    return sum(int(match.measures["count"]) for match in found)


def _answer(query: cepheid.Query, given: ShownEvents, parts: list[Matches], count: str, notes: list[str]) -> dict[str, Any]:
    cells = Cells(attributes_used(query, given.table.column_names))
    columns = cells.columns(parts[0]) if parts else []
    listed = [match for part in parts for match in _listed(cells, part)]
    colours = colours_of(parts[0].layout) if parts else {}
    return {"count": count, "listed": len(listed), "columns": columns, "colours": colours, "matches": listed, "notes": notes}


def _listed(cells: Cells, matches: Matches) -> Iterator[dict[str, Any]]:
    """Each match: `marks` (row, variables, made), first and last row, and its cells."""
    origin = Origins(matches)
    for index, match in enumerate(matches):
        marks = origin.marks(index)
        rows = [mark["row"] for mark in marks if mark["row"] is not None]
        yield {
            "marks": marks,
            "first": min(rows, default=None),
            "last": max(rows, default=None),
            "name": ", ".join(f"{name}={shown(value)}" for name, value in match.keys.items()),
            "cells": cells.of(matches, index, marks),
        }


class Origins:
    """The rows of the given events that a match has; for an event that a definition makes it is the row of the event that completes it."""

    def __init__(self, matches: Matches) -> None:
        self.matches = matches
        self.names = [shown_of(matches.layout, label) for label in matches.layout.labels]
        self.rows = matches.known_origin.numbers_of(np.arange(matches.events.num_rows)).tolist()

    def marks(self, index: int) -> list[dict[str, Any]]:
        """The events of a match in their order: `row`, `variables`, and `made`: whether a definition made it."""
        matches = self.matches
        if matches.counts is not None:
            return [self._mark(int(matches.end_rows[index]), ())]
        places = range(int(matches.offsets[index]), int(matches.offsets[index + 1]))
        return [self._mark(int(matches.marks.rows[place]), self.names[int(matches.labels[place])]) for place in places]

    def _mark(self, place: int, names: tuple[str, ...]) -> dict[str, Any]:
        # What a match makes stands behind the event that ends the match.
        row = next((self.rows[before] for before in range(place, -1, -1) if self.rows[before] != NOWHERE), None)
        return {"row": row, "variables": list(names), "made": self.rows[place] == NOWHERE}


@record(slots=False)
class Cells:
    """The table of matches. used: the attributes that the query speaks of, whose values its cells show."""

    used: tuple[str, ...]

    def columns(self, matches: Matches) -> list[dict[str, Any]]:
        """The name of each column, and whether it has numbers or the events of a variable."""
        schema = matches.layout.schema()
        variables = () if matches.layout.measures else matches.layout.variables
        return [
            {"name": field.name, "number": is_number(field.type), "variable": field.name in variables}
            for field in schema
            if field.name not in _left_out(matches)
        ]

    def of(self, matches: Matches, index: int, marks: list[dict[str, Any]]) -> list[Any]:
        """The cells of a match: texts, and for a variable its rows and the values of its events."""
        variables = () if matches.layout.measures else matches.layout.variables
        match, plain = matches[index], matches[index : index + 1].to_arrow()
        cells: list[Any] = []
        for name in plain.column_names:
            if name in _left_out(matches):
                continue
            if name in variables:
                rows = [{"row": mark["row"], "made": mark["made"]} for mark in marks if name in mark["variables"]]
                cells.append({"rows": rows, "text": self._values(match[name])})
            elif matches.counts is not None and name == "count":
                cells.append(f"{match.measures['count']:,}")
            else:
                cells.append(shown(python_value(plain.column(name)[0])))
        return cells

    def _values(self, events: Iterable[dict[str, Any]]) -> str:
        """The values of a variable's events."""
        said = [
            ", ".join(f"{name}={shown(event[name])}" for name in event if name in self.used and event[name] is not None) for event in events
        ]
        if len(said) > FEW:
            said = [said[0], said[-1]]
        return " .. ".join(dict.fromkeys(filter(None, said)))


def _left_out(matches: Matches) -> tuple[str, ...]:
    """Columns that the table does not need: positions where there are times, and what overflows as a number, for the page has the text."""
    return ("count_overflow", *(POSITION_COLUMNS if matches.layout.time is not None else ()))


def attributes_used(query: cepheid.Query, known: Iterable[str]) -> tuple[str, ...]:
    """The attributes that conditions and measures speak of, and those that definitions give their events; known: all, in their order."""
    try:
        used = dict.fromkeys(likely_schema(query).attributes)
    except cepheid.CepheidError:  # what it cannot guess is not shown in cells
        used = {}
    made = [name for definition in query.tree.definitions for name in definition.attributes]
    no_value = {DEFAULT_TYPE, DEFAULT_TIME, *query.tree.partition_by}
    return tuple(name for name in dict.fromkeys((*known, *made)) if (name in used or name in made) and name not in no_value)
