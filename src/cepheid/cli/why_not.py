"""The answer of `cepheid why-not`: why events in files do not match a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cepheid
from cepheid.cli import run as running
from cepheid.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cepheid.cli.settings import Settings


def answer(
    query: cepheid.Query, events: Sequence[str], settings: Settings, *, at: str | None, named: Iterable[str], span: str | None, only: bool
) -> cepheid.WhyNot:
    """The answer about files of events; at, named, span: as the options are written. Raises the errors of reading and of `cepheid.why_not`."""
    positions: dict[str | None, list[int]] = {None: [] if at is None else _rows("--at", at)}
    for given in named:
        name, equals, rows = given.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--as {given} is not a variable and its rows", help="write --as x=3, or --as y=5,6")
        positions.setdefault(name.strip(), []).extend(_rows("--as", rows))
    ends = None
    if span is not None:
        first, *rest = _rows("--span", span)
        if len(rest) != 1:
            raise InputError(f"--span {span} is not a first and a last row", help="write --span 3,9")
        if rest[0] < first:
            raise InputError(f"--span {span} ends before it begins", help=f"write --span {rest[0]},{first}")
        ends = (first, rest[0])
    if span is None and not any(positions.values()):
        raise InputError(
            "which events should match?",
            help="give their rows, counted from 0: --at 3,5 or --as x=3; or the rows between which it lies: --span 0,9",
        )
    given_events = running.RunInput.of(query, running.load(query, events, settings), settings)
    return cepheid.why_not(query, given_events.events, positions, span=ends, only=only, **given_events.arguments)


def _rows(option: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} {text} is not a list of rows", help=f"count the events from 0: {option} 3,5,6") from None
