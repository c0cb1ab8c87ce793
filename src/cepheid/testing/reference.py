"""What "right" means, for queries: partitions, consumption, strategies, projection, limits, measures and undecided absences.

`matches` gives the matches of one stream, `run` the whole result. Patterns are in `cepheid.testing.denotation`, conditions and values in
`cepheid.testing.evaluate`; a measure is computed here. The cost is exponential, so there are limits: MAX_EVENTS and MAX_MATCHES.

The order, as defined: PARTITION BY; the pattern; CONSUME (a match competes only if it starts after the last trigger that gave matches); the strategy;
HAVING; SELECT's projection, after which equal matches are one; COUNT(*), or LIMIT. A LIMIT leaves open which matches are given, so a `Group` has all
candidates of a trigger, and the number to choose.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections import Counter, defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from cepheid.errors import InputError, LimitError
from cepheid.language.syntax import Consumption, Strategy
from cepheid.logical import plan as logical
from cepheid.records import record
from cepheid.testing.denotation import MAX_MATCHES, Denotation, Match, project, select
from cepheid.testing.derived import merged, settled
from cepheid.testing.evaluate import EXACT, Event, attribute_value, evaluate, fit, time_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = ["MAX_EVENTS", "MAX_MATCHES", "Event", "Group", "Match", "Partition", "Result", "matches", "run"]

MAX_EVENTS = 10_000
"""Most events of an input that the reference takes."""

Until = int | Literal["end"] | None
"""Up to which time the input is complete: a time, "end" (nothing follows), or None: its greatest time."""

State = Literal["given", "vetoed", "undecided"]


@record
class Group:
    """The matches that one event triggers.

    candidates: all of them, ascending. choose: how many of them are given, under LIMIT and ANY fewer than there are candidates. measures: the
    values of the query's measures, one row per candidate. count: for COUNT(*), the number of matches.
    """

    end: int
    candidates: tuple[Match, ...]
    choose: int
    measures: tuple[tuple[object, ...], ...] = ()

    @property
    def count(self) -> int:
        """The value of COUNT(*)."""
        return len(self.candidates)


@record
class Partition:
    """The result of one partition: positions in matches count its events; `positions` are those events' places in the stream."""

    key: tuple[object, ...]
    positions: tuple[int, ...]
    groups: tuple[Group, ...]
    undecided: tuple[Group, ...]

    @property
    def candidates(self) -> list[Match]:
        """The matches of all triggers, in the order of the triggers."""
        return [match for group in self.groups for match in group.candidates]


@record
class Result:
    """The result of a query: its partitions in the order of their first events, and the number of events left out for a NULL in their key.

    events: the stream, with the events that EVENT definitions add.
    """

    partitions: tuple[Partition, ...]
    null_keys: int = 0
    events: tuple[Event, ...] = ()


def matches(
    plan: logical.QueryPlan, events: Sequence[Event], *, until: Until = None, max_events: int = MAX_EVENTS, max_matches: int = MAX_MATCHES
) -> list[Match]:
    """The matches of a query over one stream, taken as one partition: by trigger, then by start and mapping.

    Under ANY, RESTRICTED and LIMIT these are all candidates. Absences that are undecided at `until` are left out. Raises LimitError past
    the limits, InputError for times that descend or are missing where the query asks for them.
    """
    _check(events, max_events)
    limits: Any = {"until": "end", "max_events": max_events, "max_matches": max_matches}
    events = merged(plan.definitions, events, lambda inner, stream: run(inner, stream, **limits))
    stream = _Stream(plan, events, (), tuple(range(len(events))), max_matches)
    return stream.partition(_consume(plan, [stream]), until, _latest(events)).candidates


def run(
    plan: logical.QueryPlan,
    events: Sequence[Event],
    *,
    until: Until = None,
    null_keys: Literal["drop", "group"] = "drop",
    max_events: int = MAX_EVENTS,
    max_matches: int = MAX_MATCHES,
) -> Result:
    """The result of a query over a stream that is in order: its partitions, each with its matches grouped by trigger.

    null_keys: "drop" counts events with a NULL in their key and leaves them out, "group" gives NULL a partition like any other value. Raises
    as `matches` does.
    """
    _check(events, max_events)
    if until is None:
        until = _latest(events)  # of what comes in: what is made of it is not later
    limits: Any = {"until": "end", "null_keys": null_keys, "max_events": max_events, "max_matches": max_matches}
    events = merged(plan.definitions, events, lambda inner, stream: run(inner, stream, **limits))
    places: dict[tuple[object, ...], list[int]] = defaultdict(list)
    dropped = 0
    for place, event in enumerate(events):
        written, derived = (
            tuple(_key_value(event.attributes.get(name)) for name in names) for names in (plan.partition_by, plan.derived_keys)
        )
        if None in written and null_keys == "drop":
            dropped += 1
        elif None not in derived:
            places[written + derived].append(place)
    streams = [_Stream(plan, events, key, tuple(mine), max_matches) for key, mine in places.items()]
    consumed = _consume(plan, streams)
    latest = _latest(events)
    return Result(tuple(stream.partition(consumed, until, latest) for stream in streams), dropped, tuple(events))


def _check(events: Sequence[Event], max_events: int) -> None:
    if len(events) > max_events:
        raise LimitError(
            f"{len(events)} events are more than {max_events}, the limit of the reference",
            help="take fewer events, or raise the limit with max_events=",
        )
    times = [event.time for event in events if event.time is not None]
    if len(times) not in {0, len(events)}:
        raise InputError(f"{len(events) - len(times)} of {len(events)} events have no time", help="give every event a time, or none")
    if any(later < earlier for earlier, later in itertools.pairwise(times)):
        raise InputError("the events are not in the order of their times", help="sort them by time")


def _latest(events: Sequence[Event]) -> int | None:
    return max((event.time for event in events if event.time is not None), default=None)


def _key_value(value: object) -> object:
    """A key's value: NaN is NULL."""
    return None if value != value else value  # noqa: PLR0124 - only NaN differs from itself


# ------------------------------------------------------------------------------------------------------- one partition, end by end


class _Stream:
    """One partition's events with all matches of the pattern."""

    def __init__(
        self, plan: logical.QueryPlan, events: Sequence[Event], key: tuple[object, ...], positions: tuple[int, ...], limit: int
    ) -> None:
        self.plan = plan
        self.key = key
        self.positions = positions
        self.events = [events[position] for position in positions]
        denotation = Denotation(self.events, max_matches=limit, text=plan.text)
        self.by_end: dict[int, list[Match]] = defaultdict(list)
        for match in denotation.matches(plan.pattern):
            self.by_end[match.end].append(match)
        self.absences = [(absence, denotation.matches(absence.negated)) for absence in denotation.absences]

    def selected(self, end: int, after: int) -> list[Match]:
        """The matches that the strategy keeps of those that end at `end` and start after the stream's place `after`."""
        competing = [match for match in self.by_end[end] if self.positions[match.start] > after]
        if self.plan.strategy is Strategy.RESTRICTED:
            latest = max((match.start for match in competing), default=0)
            return self._having([match for match in competing if match.start == latest])
        strategy = Strategy.ALL if self.plan.strategy is Strategy.ANY else self.plan.strategy
        return self._having(select(logical.Select(strategy, self.plan.pattern), competing, text=self.plan.text))

    def _having(self, found: Iterable[Match]) -> list[Match]:
        """The matches that meet HAVING."""
        having = self.plan.having
        return sorted(match for match in found if having is None or self.measure(having.expression, match) is True)

    def partition(self, selected: Mapping[tuple[tuple[object, ...], int], list[Match]], until: Until, latest: int | None) -> Partition:
        groups: dict[State, list[Group]] = {"given": [], "undecided": [], "vetoed": []}
        complete = until if until is not None else latest
        known = settled(self.plan.definitions)
        if complete is not None and complete != "end":
            complete -= known
        for end in sorted(self.by_end):
            kept = selected[self.key, end]
            states = [self._state(match, complete) for match in kept]
            if known and complete != "end" and (complete is None or complete < (self.events[end].time or 0)):
                states = ["undecided" if state == "given" else state for state in states]
            for state in dict.fromkeys(states):
                groups[state].append(self._group(end, [match for match, own in zip(kept, states, strict=True) if own == state]))
        return Partition(self.key, self.positions, tuple(groups["given"]), tuple(groups["undecided"]))

    def _group(self, end: int, kept: list[Match]) -> Group:
        candidates = kept if self.plan.measures or self.plan.count else self._distinct(kept)
        bounds = [self.plan.limit, 1 if self.plan.strategy in {Strategy.ANY, Strategy.RESTRICTED} else None]
        choose = min([len(candidates), *(bound for bound in bounds if bound is not None)])
        rows = tuple(tuple(self.measure(item.expression, match) for item in self.plan.measures) for match in candidates)
        return Group(end, tuple(candidates), choose, rows if self.plan.measures else ())

    def _distinct(self, kept: list[Match]) -> list[Match]:
        """SELECT's projection: matches with the same interval and the same positions of the shown variables are one."""
        return sorted({Match(match.start, match.end, project(match.mapping, self.plan.variables)) for match in kept})

    def _state(self, match: Match, complete: Until) -> State:
        """Whether a match is given: not where an absence has been broken, not yet where one may still be; complete: up to when events are known."""
        state: State = "given"
        for absence, breaking in self.absences:
            time, end = self.events[match.start if absence.from_start else match.end].time, self.events[match.end].time
            if time is None or end is None:
                raise InputError("NOT FOLLOWED BY needs events with times", help="give each event a time")
            if any(match.end < other.start and (self.events[other.end].time or 0) <= time + absence.duration for other in breaking):
                return "vetoed"
            # The matches of an event are counted together: once the last that could be among them is decided.
            deadline = (end if self.plan.count else time) + absence.duration
            if complete != "end" and (complete is None or complete < deadline):
                state = "undecided"
        return state

    # ------------------------------------------------------------------------------------------------------------------- measures

    def measure(self, expression: logical.Expression, match: Match) -> Any:
        """The value of a measure for one match, None for NULL."""

        def computed(node: logical.Expression) -> logical.Expression:
            if isinstance(node, logical.Apply) and node.operator in logical.AGGREGATES:
                return logical.Literal(self._aggregate(node, match), node.type)
            return node

        return evaluate(logical.transform(expression, computed), self.events, {})

    def _aggregate(self, node: logical.Apply, match: Match) -> Any:
        first, last = self.events[match.start].time, self.events[match.end].time
        if node.operator == "start_time":
            return time_value(first, node.type)
        if node.operator == "end_time":
            return time_value(last, node.type)
        if node.operator == "duration":
            return None if first is None or last is None else fit((last - first) * self._step(node.type), node.type)
        if node.operator == "deadline_time":
            return _latest_deadline(node, first, last)
        argument = node.arguments[0]
        assert isinstance(argument, logical.Field | logical.Time)
        positions = dict(match.mapping).get(argument.variable, ())
        if node.operator == "count":
            return len(positions)
        values = [self._value(argument, position) for position in positions]
        return AGGREGATIONS[node.operator](node, values)

    def _step(self, kind: pa.DataType) -> int:
        """How many steps of a duration are in one of the time column: a date column's are days, its durations have seconds."""
        time = self.plan.schema.time_type
        return 86_400 if time is not None and pa.types.is_date32(time) and pa.types.is_duration(kind) else 1

    def _value(self, argument: logical.Field | logical.Time, position: int) -> Any:
        event = self.events[position]
        return attribute_value(event.attributes, argument) if isinstance(argument, logical.Field) else time_value(event.time, argument.type)


def _latest_deadline(node: logical.Apply, first: int | None, last: int | None) -> Any:
    """The later of the ends of the longest absences, those from the end of the match and those from its start."""
    ends = []
    for steps, time in zip(node.arguments, (last, first), strict=True):
        assert isinstance(steps, logical.Literal)
        assert isinstance(steps.value, int)
        if steps.value >= 0 and time is not None:
            ends.append(time + steps.value)
    return time_value(fit(max(ends), pa.int64()), node.type)


def _nth(node: logical.Apply, values: list[Any]) -> Any:
    number = node.arguments[1].value if len(node.arguments) > 1 and isinstance(node.arguments[1], logical.Literal) else 1
    assert isinstance(number, int)
    if len(values) < number:
        return None
    return values[number - 1] if node.operator == "first" else values[-number]


def _stddev(_: logical.Apply, values: list[Any]) -> Any:
    """Of a sample, by two passes over doubles; NULL where it is not finite."""
    present = [float(value) for value in _present(values)]
    if len(present) < 2:
        return None
    mean = _total(present) / len(present)
    squares = [(value - mean) * (value - mean) for value in present]
    found = math.sqrt(_total(squares) / (len(present) - 1))
    return found if math.isfinite(found) else None


def _only(_: logical.Apply, values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else None


def _present(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _total(values: list[Any]) -> Any:
    """The sum of some values, one after the other on 0: Python's own sum corrects doubles since 3.12, and rounds decimals to its context."""
    add: Callable[[Any, Any], Any] = EXACT.add if isinstance(values[0], Decimal) else operator.add
    return functools.reduce(add, values, 0)


def _sum(node: logical.Apply, values: list[Any]) -> Any:
    present = _present(values)
    return fit(_total(present), node.type, *present) if present else None


def _avg(node: logical.Apply, values: list[Any]) -> Any:
    present = _present(values)
    if not present:
        return None
    total = _total(present)
    mean = EXACT.divide(total, Decimal(len(present))) if isinstance(total, Decimal) else total / len(present)
    return fit(float(mean), node.type, *present)


AGGREGATIONS: dict[str, Callable[[logical.Apply, list[Any]], Any]] = {
    "count_distinct": lambda _, values: len(set(_present(values))),
    "first": _nth,
    "last": _nth,
    "only": _only,
    "min": lambda _, values: min(_present(values), default=None),
    "max": lambda _, values: max(_present(values), default=None),
    "sum": _sum,
    "avg": _avg,
    "stddev": _stddev,
    "collect": lambda _, values: values,
}
"""The aggregates over the values of a variable's events, in the order of their positions; NULL where there is no value."""


def _consume(plan: logical.QueryPlan, streams: list[_Stream]) -> dict[tuple[tuple[object, ...], int], list[Match]]:
    """For each partition's key and trigger, the matches that compete and are kept by the strategy."""
    selected: dict[tuple[tuple[object, ...], int], list[Match]] = {}
    last: Counter[tuple[object, ...]] = Counter()
    for stream, end in sorted(_triggers(streams), key=lambda trigger: trigger[0].positions[trigger[1]]):
        scope = () if plan.consume is Consumption.ANY else stream.key
        after = -1 if plan.consume is Consumption.NONE else last[scope] - 1
        selected[stream.key, end] = stream.selected(end, after)
        if selected[stream.key, end]:
            last[scope] = stream.positions[end] + 1
    return selected


def _triggers(streams: list[_Stream]) -> Iterator[tuple[_Stream, int]]:
    for stream in streams:
        for end in stream.by_end:
            yield stream, end
