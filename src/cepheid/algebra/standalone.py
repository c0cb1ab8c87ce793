"""Patterns of the query language as event expressions, and detectors of them that stand alone: events are dicts, and come one by one.

Comes in: a pattern, as text, from the builder, or as an `Expression`. Goes out: its expression, or a detector of it. Which primitives occur at
an event is decided by its type and by the conditions of the pattern, as the definition evaluates these.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from cepheid.algebra.detector import Detector
from cepheid.algebra.expression import Expression, Length, Primitive, Restriction
from cepheid.algebra.patterns import OutsideError, expression_of
from cepheid.errors import InputError, NotSupportedError
from cepheid.language.syntax import Strategy
from cepheid.logical import plan
from cepheid.logical.rewrite import rewrite
from cepheid.logical.windows import hoist

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cepheid.algebra.detector import Detected
    from cepheid.logical.plan import Pattern, QueryPlan


def parse(pattern: object) -> Expression:
    """The event expression of a pattern: text of the query language, a pattern of the builder, or an `Expression`, which it gives back.

    Durations are in the steps of the time column: of microseconds where they have a unit. Raises QueryError where the text is no pattern,
    NotSupportedError where the pattern is no event expression (see `cepheid.algebra.patterns`). Linear in the expression.

        >>> from cepheid import algebra
        >>> algebra.parse("(B ; B) WITHIN 2 UNLESS (P OR T)").formula
        '((B ; B) - (P v T))_2'
    """
    return pattern if isinstance(pattern, Expression) else _bound(pattern)[0]


def detector(pattern: object, *, type: str = "type", time: str = "ts") -> EventDetector:  # noqa: A002 - as everywhere in Cepheid
    """A detector of a pattern over one stream of dicts: `push(event)` gives the match that ends at it, or None.

    pattern: as for `parse`. type, time: the keys of an event's type and time. Raises as `parse`.

        >>> from cepheid import algebra
        >>> alarm = algebra.detector("(B ; B) WITHIN 2 UNLESS (P OR T)")
        >>> found = [alarm.push({"type": name, "ts": ts}) for name, ts in [("B", 1), ("B", 2), ("P", 3), ("B", 4)]]
        >>> [match and (match.start_time, match.end_time) for match in found]
        [None, (1, 2), None, None]
    """
    if isinstance(pattern, Expression):
        return EventDetector(pattern, None, type=type, time=time)
    expression, bound = _bound(pattern)
    return EventDetector(expression, bound, type=type, time=time)


def _bound(pattern: object) -> tuple[Expression, QueryPlan]:
    from cepheid.engine.plan.likely_schema import likely_schema
    from cepheid.query import query

    selected = pattern.select(strategy=Strategy.RESTRICTED) if hasattr(pattern, "select") else f"SELECT RESTRICTED * WHERE {pattern}"
    asked = query(selected)
    bound = asked.bound(likely_schema(asked))
    rewritten = rewrite(bound)
    if rewritten.keys:
        raise NotSupportedError(
            f"a detector reads one stream, and the pattern is partitioned by {', '.join(rewritten.keys)}",
            help="make a detector for each key, or use cepheid.query(..).recognizer(..)",
        )
    inner, windows = hoist(rewritten.pattern)
    try:
        expression = expression_of(inner)
    except OutsideError as error:
        raise NotSupportedError(
            str(error), help="a detector has types, AS, `;`, OR, ALL, UNLESS, WITHIN, `+`, and conditions on one event"
        ) from None
    length = Length(windows.window, None if windows.count is None else windows.count - 1)
    return expression if length == Length() else Restriction(expression, length), bound


class EventDetector:
    """Detects a pattern over one stream of dicts. Make one with `detector`.

    expression: of the pattern. One event costs what `Detector.push` costs, and the conditions of each primitive.
    """

    def __init__(self, expression: Expression, bound: QueryPlan | None, *, type: str, time: str) -> None:  # noqa: A002
        self.expression = expression
        self._detector: Detector[Mapping[str, Any]] = Detector(expression)
        self._type = type
        self._time = time
        self._kind = None if bound is None else bound.schema.time_type
        primitives = dict.fromkeys(node for node in expression.walk() if isinstance(node, Primitive))
        self._plain = frozenset(primitive.name for primitive in primitives if _is_plain(primitive))
        self._tests = [
            (primitive.name, _test(primitive.pattern)) for primitive in primitives if primitive.pattern and not _is_plain(primitive)
        ]

    @property
    def position(self) -> int:
        """How many events it has read."""
        return self._detector.position

    def push(self, event: Mapping[str, Any]) -> Detected[Mapping[str, Any]] | None:
        """Read the next event; the match that ends at it, None if there is none.

        event: its time is an integer, in steps of the time column, or a datetime. Raises InputError where the type or the time is missing, or time
        descends; then nothing has been read.
        """
        try:
            kind, time = event[self._type], event[self._time]
        except KeyError as error:
            raise InputError(f"event {self.position} has no {error}", help="name the keys: detector(.., type=.., time=..)") from None
        if isinstance(time, dt.datetime):
            time = _steps(time, self._kind)
        if type(time) is not int:
            raise InputError(f"the time of event {self.position} is {time!r}", help="give an integer, or a datetime") from None
        occurring = {kind} if kind in self._plain else set()
        occurring.update(name for name, occurs in self._tests if occurs(kind, time, event))
        return self._detector.push(event, time, occurring)


def _is_plain(primitive: Primitive) -> bool:
    """Whether it occurs at each event of the type that is its name, and at no other."""
    return primitive.pattern is None or (isinstance(primitive.pattern, plan.Event) and primitive.pattern.type == primitive.name)


def _steps(time: dt.datetime, kind: object) -> int:
    from cepheid.testing.evaluate import steps_of

    return steps_of(time, getattr(kind, "unit", "us"))


def _test(pattern: Pattern) -> Callable[[object, int, Mapping[str, Any]], bool]:
    """Whether a pattern of one event has a match at an event of a type, at a time, with attributes."""
    from cepheid.testing.evaluate import Event, holds

    conditions: list[plan.Expression] = []
    while not isinstance(pattern, plan.Event):
        if isinstance(pattern, plan.Filter):
            conditions += pattern.conditions
        assert isinstance(pattern, plan.Filter | plan.Named)
        pattern = pattern.pattern
    wanted = pattern.type
    if plan.lags_in(conditions):
        raise NotSupportedError("a detector does not look at the events before (lag)", help="use cepheid.query(..).recognizer(..)")
    choices = [(condition, {(variable, False): 0 for variable in plan.variables_of(condition)}) for condition in conditions]

    def occurs(kind: object, time: int, event: Mapping[str, Any]) -> bool:
        if wanted is not None and kind != wanted:
            return False
        events = [Event(str(kind), time, event)]
        return all(holds(condition, events, choice) for condition, choice in choices)

    return occurs
