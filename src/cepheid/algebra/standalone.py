"""Patterns of the query language as event expressions, and detectors of them that stand alone: events are dicts, and come one by one.

Comes in: a pattern, as text, from the builder, or as an `Expression`. Goes out: its expression, or a detector of it. Which primitives occur at
an event is decided by its type and by the conditions of the pattern. Texts are bound as queries are, whose types are Arrow's. The detector of an
`Expression` needs Python alone: conditions are functions then.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from cepheid.algebra.detector import Detector
from cepheid.algebra.expression import Expression, Length, Primitive, Restriction
from cepheid.errors import InputError, NotSupportedError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cepheid.algebra.detector import Detected
    from cepheid.algebra.occurrence import Occurs

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICROSECOND = dt.timedelta(microseconds=1)


def parse(pattern: object) -> Expression:
    """The event expression of a pattern: text of the query language, a pattern of the builder, or an `Expression`, which it gives back.

    Durations are in the steps of the time column: of microseconds where they have a unit. Raises QueryError where the text is no pattern,
    NotSupportedError where the pattern is no event expression (see `cepheid.algebra.patterns`). Linear in the expression.

        >>> from cepheid import algebra
        >>> algebra.parse("(B ; B) WITHIN 2 UNLESS (P OR T)").formula
        '((B ; B) - (P v T))_2'
    """
    return pattern if isinstance(pattern, Expression) else _bound(pattern)


def detector(
    pattern: object,
    *,
    where: Mapping[str, Callable[[Mapping[str, Any]], object]] | None = None,
    type: str = "type",  # noqa: A002 - as everywhere in Cepheid
    time: str = "ts",
) -> EventDetector:
    """A detector of a pattern over one stream of dicts: `push(event)` gives the match that ends at it, or None.

    pattern: as for `parse`. where: functions of an event, by the name of a primitive: it occurs at the events for which they are true, whatever their
    type; a primitive without one occurs at the events of the type that is its name, and under the conditions of the pattern. type, time: the keys of
    an event's type and time. Raises as `parse`, and InputError where `where` names no primitive.

        >>> from cepheid import algebra
        >>> alarm = algebra.detector("(B ; B) WITHIN 2 UNLESS (P OR T)")
        >>> found = [alarm.push({"type": name, "ts": ts}) for name, ts in [("B", 1), ("B", 2), ("P", 3), ("B", 4)]]
        >>> [match and (match.start_time, match.end_time) for match in found]
        [None, (1, 2), None, None]

        >>> hot, dry = algebra.Primitive("hot"), algebra.Primitive("dry")
        >>> fire = algebra.detector(
        ...     (hot >> dry).within(time=60),
        ...     where={"hot": lambda event: event["temp"] > 40, "dry": lambda event: event["humidity"] < 25},
        ... )
        >>> fire.push({"type": "reading", "ts": 0, "temp": 45, "humidity": 80})
        >>> fire.push({"type": "reading", "ts": 30, "temp": 20, "humidity": 20}).variables["hot"]
        ({'type': 'reading', 'ts': 0, 'temp': 45, 'humidity': 80},)
    """
    return EventDetector(parse(pattern), where=where or {}, type=type, time=time)


def _bound(pattern: object) -> Expression:
    from cepheid.algebra.patterns import OutsideError, expression_of
    from cepheid.engine.plan.likely_schema import likely_schema
    from cepheid.language.syntax import Strategy
    from cepheid.logical.rewrite import rewrite
    from cepheid.logical.windows import hoist
    from cepheid.query import query

    selected = pattern.select(strategy=Strategy.RESTRICTED) if hasattr(pattern, "select") else f"SELECT RESTRICTED * WHERE {pattern}"
    asked = query(selected)
    rewritten = rewrite(asked.bound(likely_schema(asked)))
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
    return expression if length == Length() else Restriction(expression, length)


class EventDetector:
    """Detects a pattern over one stream of dicts. Make one with `detector`.

    expression: of the pattern. One event costs what `Detector.push` costs, and the conditions of each primitive.
    """

    def __init__(
        self,
        expression: Expression,
        *,
        where: Mapping[str, Callable[[Mapping[str, Any]], object]],
        type: str,  # noqa: A002
        time: str,
    ) -> None:
        self.expression = expression
        self._detector: Detector[Mapping[str, Any]] = Detector(expression)
        self._type = type
        self._time = time
        primitives = {node.name: node for node in expression.walk() if isinstance(node, Primitive)}
        for name in where:
            if name not in primitives:
                raise InputError(f"where= has {name!r}, which is no primitive of the pattern", help=did_you_mean(name, primitives))
        self._given = list(where.items())
        self._plain: dict[object, set[str]] = {}
        self._tests: list[tuple[str, Occurs]] = []
        for name in primitives.keys() - where.keys():
            kind, occurs = _occurrence(primitives[name])
            if occurs is None:
                self._plain.setdefault(kind, set()).add(name)
            else:
                self._tests.append((name, occurs))

    @property
    def position(self) -> int:
        """How many events it has read."""
        return self._detector.position

    def push(self, event: Mapping[str, Any]) -> Detected[Mapping[str, Any]] | None:
        """Read the next event; the match that ends at it, None if there is none.

        event: its time is an integer, in the steps of the pattern's bounds, or a datetime (without zone: UTC), which counts in microseconds. Raises
        InputError where the type or the time is missing, or time descends; then nothing has been read.
        """
        try:
            kind, time = event[self._type], event[self._time]
        except KeyError as error:
            raise InputError(f"event {self.position} has no {error}", help="name the keys: detector(.., type=.., time=..)") from None
        if isinstance(time, dt.datetime):
            time = (time if time.tzinfo else time.replace(tzinfo=dt.UTC)) - EPOCH
            time //= MICROSECOND
        if type(time) is not int:
            raise InputError(f"the time of event {self.position} is {time!r}", help="give an integer, or a datetime") from None
        occurring = set(self._plain.get(kind, ()))
        occurring.update(name for name, occurs in self._tests if occurs(kind, time, event))
        occurring.update(name for name, occurs in self._given if occurs(event))
        return self._detector.push(event, time, occurring)


def _occurrence(primitive: Primitive) -> tuple[str | None, Occurs | None]:
    """The type of event that a primitive is, if that says it all; or whether it occurs at an event, by its type, time and attributes."""
    if primitive.pattern is None:
        return primitive.name, None
    from cepheid.algebra.occurrence import event_test, type_alone

    kind = type_alone(primitive.pattern)
    return kind, None if kind is not None else event_test(primitive.pattern)
