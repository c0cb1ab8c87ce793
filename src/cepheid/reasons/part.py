"""The part of a long table that a question is about.

Comes in: a bound query, a table in the order of its stream, and a `Goal`. Goes out: a `Part`: the events that can matter for whether the query has a
match that reaches the goal, and as many of those beside them as the limit allows. A query without some of its constructs may look farther:
`Part.holds` says of each whether the answer over the part is that over the whole table.

What bounds it: windows and gaps (`durations.longest`), WITHIN n EVENTS and `:` (`durations.widest`), the rows that are asked for where a match can
have no others, and the key of PARTITION BY. A match looks at no event outside of it, except for

- what compares it with others: strategies and LIMIT look at matches with the same end, so as far back again as a match is long. A strategy inside a
  pattern looks back as far as its own matches are long, whatever stands around it; THEN under POINT does so for its right side.
- CONSUME BY and `$index`: these depend on everything before. `lag(x.a, n)` is about n events before.
- NOT FOLLOWED BY, which looks ahead for its duration, and THEN, which looks at all events of one time.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from cepheid.engine.input.keys import key_codes
from cepheid.errors import LimitError
from cepheid.language.syntax import Consumption, Strategy, TimeModel
from cepheid.logical import plan as logical
from cepheid.logical.durations import longest, widest
from cepheid.logical.tree import conditions_of, walk
from cepheid.logical.variables import support_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from cepheid.engine.memory.pools import Array
    from cepheid.logical.plan import Expression, Pattern, QueryPlan
    from cepheid.reasons.relaxed_run import Goal

LEAST_TIME, GREATEST_TIME = -(2**63), 2**63 - 1
"""The times that there are, in steps of the time column."""

ALONE = (Strategy.ALL, Strategy.STRICT)
"""What looks at one match at a time."""


@dataclass
class Stream:
    """A table in the order of its stream. PLACES are positions in it.

    order: the row of the table at each place, None: they are the same. times: of each place (int64), None without a time column. null_keys: as for
    `Query.run`.
    """

    table: pa.Table
    order: Array | None
    times: Array | None
    null_keys: str

    def __post_init__(self) -> None:
        self.of_key = functools.cache(self._of_key)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def _of_key(self, names: tuple[str, ...], places: frozenset[int]) -> Array | range | None:
        """The places of all events with the key of some, ascending; None where these have no key, or several. Linear."""
        if not names:
            return range(len(self))
        codes, _ = key_codes(self.table, names, grouped=names if self.null_keys == "group" else ())
        codes = codes if self.order is None else codes[self.order]
        found = {int(codes[place]) for place in places}
        return np.flatnonzero(codes == min(found)) if len(found) == 1 and min(found) >= 0 else None

    def before(self, place: int, time: int) -> int:
        """The first place that is at most so much time before another; 0 without times."""
        if self.times is None:
            return 0
        return int(np.searchsorted(self.times, max(int(self.times[place]) - time, LEAST_TIME), "left"))

    def behind(self, place: int, time: int) -> int:
        """The last place that is at most so much time behind another; the last of all without times."""
        if self.times is None:
            return len(self) - 1
        return int(np.searchsorted(self.times, min(int(self.times[place]) + time, GREATEST_TIME), "right")) - 1


def moved(places: Array | range, place: int, count: int) -> int:
    """The place that is so many events of `places` behind another, before it if count < 0; at most the first or the last."""
    if isinstance(places, range):
        at = place
    else:
        at = int(np.searchsorted(places, place, "right")) - 1 if count > 0 else int(np.searchsorted(places, place, "left"))
    return int(places[min(max(at + count, 0), len(places) - 1)])


@dataclass
class Needs:
    """What queries look at, to find a match that reaches a goal; its rows are places of the stream."""

    stream: Stream
    goal: Goal

    def of(self, plan: QueryPlan) -> tuple[int, int]:
        """The first and the last place of what can matter for whether a query has such a match."""
        stream, goal, pattern = self.stream, self.goal, plan.pattern
        first, last = goal.span or (min(goal.rows), max(goal.rows))
        least_end = max(goal.rows, default=first)
        begin, end = first, last
        if not self._holds_all(pattern):
            begin, end = min(first, self._back(plan, pattern, last)), max(last, self._ahead(plan, pattern, first))
        if plan.strategy not in ALONE or plan.limit is not None:
            begin = min(begin, self._back(plan, pattern, least_end))
        for steps in _lags(plan):
            own = stream.of_key(plan.partition_by, goal.rows)
            begin = 0 if own is None else min(begin, moved(own, begin, -steps))
        for looking_back in _compared(pattern):
            begin = self._back(plan, looking_back, begin)
        if plan.consume is not Consumption.NONE or _has_index(plan):
            begin = 0
        durations = [node.duration for node in walk(pattern) if isinstance(node, logical.Absence)]
        if durations:
            end = max(end, stream.behind(end, max(durations)))
        if any(link.operator == "THEN" for node in walk(pattern) if isinstance(node, logical.Sequence) for link in node.links):
            begin, end = stream.before(begin, 0), stream.behind(end, 0)
        return begin, end

    def _holds_all(self, pattern: Pattern) -> bool:
        """Whether every match that reaches the goal lies between its first and its last row."""
        goal = self.goal
        if goal.span is not None:
            return True
        if any(isinstance(node, logical.Project) for node in walk(pattern)):
            return False
        most = support_size(pattern)[1]
        return goal.only or (most is not None and most <= len(goal.rows))

    def _back(self, plan: QueryPlan, pattern: Pattern, place: int) -> int:
        """The first place of a match of a pattern that ends at another place."""
        time, events, found = longest(pattern), widest(pattern), 0
        if time is not None:
            found = self.stream.before(place, time)
        own = self.stream.of_key(plan.partition_by, self.goal.rows) if events is not None else None
        if own is not None and events is not None:
            found = max(found, moved(own, place, 1 - events))
        return min(found, place)

    def _ahead(self, plan: QueryPlan, pattern: Pattern, place: int) -> int:
        """The last place of a match of a pattern that begins at another place."""
        time, events, found = longest(pattern), widest(pattern), len(self.stream) - 1
        if time is not None:
            found = self.stream.behind(place, time)
        own = self.stream.of_key(plan.partition_by, self.goal.rows) if events is not None else None
        if own is not None and events is not None:
            found = min(found, moved(own, place, events - 1))
        return max(found, place)


def _compared(pattern: Pattern) -> Iterator[Pattern]:
    """The patterns of which matches are compared that may begin before the match around them does."""
    for node in walk(pattern):
        if isinstance(node, logical.Select) and node.strategy not in ALONE:
            yield node.pattern
        elif isinstance(node, logical.Sequence):
            yield from (item for link, item in zip(node.links, node.items[1:], strict=True) if link.model is TimeModel.POINT)


def _read(plan: QueryPlan) -> Iterator[Expression]:
    conditions = [condition for _, condition in conditions_of(plan.pattern)]
    for expression in [*conditions, *(measure.expression for measure in plan.computed)]:
        yield from logical.leaves(expression)


def _lags(plan: QueryPlan) -> list[int]:
    """How many events before another are looked at, the greatest alone; nothing without lag()."""
    steps = [leaf.steps for leaf in _read(plan) if isinstance(leaf, logical.Lag)]
    return [max(steps)] if steps else []


def _has_index(plan: QueryPlan) -> bool:
    return any(isinstance(leaf, logical.Index) for leaf in _read(plan))


@dataclass
class Part:
    """Some events of a stream: all those from `begin` to `end`, or all of them with one key.

    places: of them, ascending (int64). keyed: whether they are only those with the key of the rows that are asked for.
    """

    places: Array
    begin: int
    end: int
    keyed: bool
    needs: Needs

    def holds(self, plan: QueryPlan) -> bool:
        """Whether a query finds the same matches that reach the goal in the part as in the whole table."""
        begin, end = self.needs.of(plan)
        return self.begin <= begin and end <= self.end

    def inside(self, places: frozenset[int]) -> frozenset[int]:
        """Where some places stand among those of the part."""
        return frozenset(np.searchsorted(self.places, sorted(places)).tolist())

    def inside_span(self, span: tuple[int, int]) -> tuple[int, int]:
        """The first and the last of its places in a span."""
        return int(np.searchsorted(self.places, span[0], "left")), int(np.searchsorted(self.places, span[1], "right")) - 1


def part_of(plan: QueryPlan, needs: Needs, limit: int) -> Part:
    """The part of a stream for a question about a query, with at most `limit` events: those that can matter, and the ones nearest to these.

    Raises LimitError where more can matter. Linear in the events where there is a key, for the numbers of keys; otherwise logarithmic.
    """
    stream = needs.stream
    begin, end = needs.of(plan)
    if end - begin < limit:
        begin, end = _grown(begin, end + 1, len(stream), limit)
        return Part(np.arange(begin, end), begin, end - 1, False, needs)
    own = stream.of_key(plan.partition_by, needs.goal.rows) if plan.partition_by and plan.consume is not Consumption.ANY else None
    if own is None:
        _too_many(plan, needs, end - begin + 1, limit)
    assert not isinstance(own, range)
    start, stop = int(np.searchsorted(own, begin, "left")), int(np.searchsorted(own, end, "right"))
    if stop - start > limit:
        _too_many(plan, needs, stop - start, limit)
    start, stop = _grown(start, stop, len(own), limit)
    begin = int(own[start - 1]) + 1 if start else 0
    end = int(own[stop]) - 1 if stop < len(own) else len(stream) - 1
    return Part(own[start:stop], begin, end, True, needs)


def _grown(start: int, stop: int, count: int, limit: int) -> tuple[int, int]:
    """A range of so many things as long as the limit, by as much on both sides where there are as many."""
    spare = limit - (stop - start)
    behind = min(count - stop, spare - min(start, spare // 2))
    before = min(start, spare - behind)
    return start - before, stop + behind


def _too_many(plan: QueryPlan, needs: Needs, count: int, limit: int) -> NoReturn:
    """Raises LimitError, which says what bounds the events that can matter."""
    stream, goal = needs.stream, needs.goal
    first, last = goal.span or (min(goal.rows), max(goal.rows))
    help_ = []
    if plan.consume is not Consumption.NONE or _has_index(plan):
        what = "$index" if plan.consume is Consumption.NONE else "CONSUME BY"
        help_.append(f"{what} depends on all events before: ask about the query without it")
    elif longest(plan.pattern) is None and widest(plan.pattern) is None:
        help_.append("name a window in the query, as in WITHIN 1h or WITHIN 1000 EVENTS: what is farther away cannot matter then")
    if not plan.partition_by:
        help_.append("name the key that all events of a match share, as in PARTITION BY id: events with another key cannot matter then")
    elif goal.rows and plan.consume is not Consumption.ANY and stream.of_key(plan.partition_by, goal.rows) is None:
        help_.append(f"ask for rows with one key ({', '.join(plan.partition_by)}): these have several, or none")
    if last - first < limit and stream.order is None:
        start = max(0, min((first + last + 1 - limit) // 2, len(stream) - limit))
        rows = [place - start for place in sorted(goal.rows)]
        span = "" if goal.span is None else f", span=({goal.span[0] - start}, {goal.span[1] - start})"
        asked = str(rows) if len(rows) <= NAMED else ".."
        help_.append(
            f"or ask with a part of the table, of which rows count from 0: why_not(query, table.slice({start}, {limit}), {asked}{span})"
        )
    else:
        help_.append("or ask with a part of the table: those events around the rows that you mean")
    raise LimitError(f"{count:,} events can matter for these rows, more than {limit:,}, the limit of why_not (MAX_ROWS)", help=help_)


NAMED = 10
"""Most rows that the call in an error has."""
