"""The controls of the page: strategy, window and LIMIT as parts of a query's text.

A change goes through the syntax tree. The new text is the old one with a few characters changed in the place that the tree knows, so comments and
line breaks stay; it is kept only if it parses to the tree that was meant. Otherwise the tree is printed, and the caller is told.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from cepheid.errors import InputError, QueryError, QuerySyntaxError, check_choice
from cepheid.language import parse, syntax, to_text
from cepheid.language.parser import parse_window
from cepheid.language.syntax import Strategy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.errors import Span

CLAUSES = (syntax.Filter, syntax.Within, syntax.Unless, syntax.Absence)
"""What stands behind a pattern, one after the other."""

CONTROLS = ("strategy", "window", "limit")


def controls(tree: syntax.Query) -> dict[str, str]:
    """What the controls show of a query: the texts of its strategy, its window and its LIMIT, empty where there is none."""
    within = _within(tree)
    window = tree.partition_within if tree.partition_within is not None else None if within is None else within.window
    limit = tree.limit
    return {
        "strategy": tree.strategy.value,
        "window": "" if window is None else window_text(window),
        "limit": "" if limit is None else to_text(limit) if isinstance(limit, syntax.Parameter) else str(limit),
    }


def window_text(window: syntax.Interval | syntax.EventCount) -> str:
    """A window as it stands behind WITHIN."""
    written = to_text(syntax.Within(syntax.Type("A"), window))
    return written.removeprefix("A WITHIN ")


def rewritten(text: str, control: str, value: str) -> tuple[str, bool]:
    """The text of a query with another value of a control, and whether the rest of the text is as it was written (else it was printed anew).

    control: one of `CONTROLS`. value: its text, as in the language; empty: without it. Raises InputError for a value that cannot be one, and
    QuerySyntaxError for a text that is no query.
    """
    check_choice("control", control, CONTROLS)
    tree, given = parse(text), value.strip()
    wanted, edits = EDITS[control](text, tree, given)
    for start, end, new in edits:
        spliced = text[:start] + new + text[end:]
        if _is(spliced, wanted):
            return spliced, True
    return to_text(wanted, indent=2), False


def _is(text: str, wanted: syntax.Query) -> bool:
    try:
        return parse(text) == wanted
    except QueryError:
        return False


Edit = tuple[int, int, str]


def _strategy(text: str, tree: syntax.Query, value: str) -> tuple[syntax.Query, list[Edit]]:
    value = value.upper() or Strategy.ALL.value
    check_choice("strategy", value, [each.value for each in Strategy])
    strategy = Strategy(value)
    wanted = dataclasses.replace(tree, strategy=strategy)
    place = _known(tree, "strategy")
    new = "" if strategy is Strategy.ALL else f"{value} "
    if place is not None:
        return wanted, [(place.start, _past_blanks(text, place.end), new)]
    target = _known(tree, "targets")
    return wanted, [(target.start, target.start, new)] if target is not None else []


def _window(text: str, tree: syntax.Query, value: str) -> tuple[syntax.Query, list[Edit]]:
    window = _parsed_window(value) if value else None
    if tree.partition_within is not None:
        wanted, span = dataclasses.replace(tree, partition_within=window), tree.partition_within.span
        start = _before_word(text, span.start, "WITHIN") if window is None else span.start
        return wanted, [(start, span.end, value)]
    within = _within(tree)
    if within is None:
        if window is None:
            return tree, [(0, 0, "")]
        inner = _below_absences(tree.pattern)
        wanted = dataclasses.replace(tree, pattern=_put(tree.pattern, inner, syntax.Within(inner, window)))
        return wanted, [(inner.span.end, inner.span.end, f" WITHIN {value}")]
    if window is None:
        wanted = dataclasses.replace(tree, pattern=_put(tree.pattern, within, within.pattern))
        start = _before_word(text, within.window.span.start, "WITHIN")
        return wanted, [(start, within.window.span.end, "")]
    wanted = dataclasses.replace(tree, pattern=_put(tree.pattern, within, dataclasses.replace(within, window=window)))
    return wanted, [(within.window.span.start, within.window.span.end, value)]


def _limit(text: str, tree: syntax.Query, value: str) -> tuple[syntax.Query, list[Edit]]:
    number = _parsed_limit(value) if value else None
    wanted = dataclasses.replace(tree, limit=number)
    if isinstance(tree.limit, syntax.Parameter):  # a node, whose place is its own: `:n` without the word
        span = tree.limit.span
        return wanted, [(span.start if value else _before_word(text, span.start, "LIMIT"), span.end, value)]
    place = _known(tree, "limit")
    if place is None:
        return wanted, [(tree.span.end, tree.span.end, f"\nLIMIT {value}" if value else "")]
    start = place.start if value else len(text[: place.start].rstrip())
    return wanted, [(start, place.end, f"LIMIT {value}" if value else "")]


EDITS: dict[str, Any] = {"strategy": _strategy, "window": _window, "limit": _limit}


def _parsed_window(value: str) -> syntax.Interval | syntax.EventCount:
    try:
        return parse_window(value)
    except QuerySyntaxError:
        raise InputError(f"`{value}` is no window", help="write 5 minutes, 10s, [1s, 3s] or 100 EVENTS") from None


def _parsed_limit(value: str) -> int | syntax.Parameter | None:
    try:
        return parse(f"SELECT * WHERE A LIMIT {value}").limit
    except QueryError:
        raise InputError(f"`{value}` is no LIMIT", help="write a whole number, 1 or more") from None


def _known(tree: syntax.Query, name: str) -> Span | None:
    """Where the text has a clause that is no node; None where it does not have it."""
    found = dict(tree.places).get(name, ())
    return found[0] if found else None


def _chain(pattern: syntax.Pattern) -> Iterator[Any]:
    """A pattern and those below its clauses, from the outermost."""
    while isinstance(pattern, CLAUSES):
        yield pattern
        pattern = pattern.pattern
    yield pattern


def _within(tree: syntax.Query) -> syntax.Within | None:
    """The outermost window of the pattern."""
    return next((node for node in _chain(tree.pattern) if isinstance(node, syntax.Within)), None)


def _below_absences(pattern: syntax.Pattern) -> syntax.Pattern:
    """What a window is put around: the pattern, without what must not follow it."""
    chain = list(_chain(pattern))
    last = max((place for place, node in enumerate(chain) if isinstance(node, syntax.Absence)), default=-1)
    inner: syntax.Pattern = chain[last + 1]
    return inner


def _put(pattern: Any, old: syntax.Pattern, new: syntax.Pattern) -> syntax.Pattern:
    """The pattern with one of its chain replaced by another."""
    if pattern is old:
        return new
    replaced: syntax.Pattern = dataclasses.replace(pattern, pattern=_put(pattern.pattern, old, new))
    return replaced


def _past_blanks(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _before_word(text: str, place: int, word: str) -> int:
    """Where a word in front of a place begins, with the blanks before it."""
    before = text[:place].rstrip()
    if before.upper().endswith(word):
        return len(before[: -len(word)].rstrip())
    return place
