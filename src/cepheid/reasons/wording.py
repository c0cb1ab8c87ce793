"""The values and events that made a construct exclude a match, in words. Only what is certain is said: otherwise there are no words.

Comes in: a relaxation, and a match that the query without it has. Goes out: a text, or "".
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cepheid.engine.run.definition import rows_of
from cepheid.errors import BindError, counted
from cepheid.language import syntax, to_text
from cepheid.language.syntax import Consumption, Strategy, TimeModel
from cepheid.logical import plan as logical
from cepheid.logical.patterns import conjuncts
from cepheid.logical.tree import conditions_of
from cepheid.reasons.relaxations import CHOICES, STRUCTURE, Relaxation, operands, relaxations, relaxed, watched
from cepheid.succession import MODELS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from cepheid.engine.memory.pools import Array
    from cepheid.query import Query
    from cepheid.reasons.relaxed_run import Runs, Seen
    from cepheid.testing.evaluate import Event

NAMED = 3
"""Most events that a text names."""

MAX_CHOICES = 10_000
"""Most choices of one event for each variable that are looked at for one that makes a condition false."""

UNITS = ((86_400_000_000_000, "d"), (3_600_000_000_000, "h"), (60_000_000_000, "min"), (1_000_000_000, "s"), (1_000_000, "ms"))


def duration_text(steps: int, unit: int | None) -> str:
    """A difference of times: `1 min 12 s`; without a unit the number. unit: nanoseconds in a step."""
    if unit is None:
        return str(steps)
    rest = abs(steps) * unit
    parts = []
    for length, name in UNITS:
        count, rest = divmod(rest, length)
        parts += [f"{count} {name}"] if count else []
    if rest:
        parts.append(f"{rest // 1_000} us" if rest % 1_000 == 0 else f"{rest} ns")
    return ("-" if steps < 0 else "") + (" ".join(parts) or "0 s")


def value_text(value: object) -> str:
    """A value as the language writes it, or nearly."""
    if value is None or value != value:  # noqa: PLR0124 - only NaN differs from itself
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


@dataclass
class Words:
    """The words about one query over some events. order: the row in the input of each row of the stream; None: they are the same."""

    query: Query
    runs: Runs
    order: Array | None = None

    def __post_init__(self) -> None:
        self.tree = self.query.tree
        self.keys: tuple[str, ...] = self.tree.partition_by

    def name(self, relaxation: Relaxation) -> str:
        """What a construct is called: a strategy as it was written."""
        written = self.query.text[relaxation.span.start : relaxation.span.end]
        return written if relaxation.kind == "strategy" and written.isalpha() else relaxation.text

    def row(self, row: int) -> str:
        """An event: `row 4 (Reset at 10:00:03)`."""
        schema, table = self.runs.schema, self.runs.table
        kind = self.runs.type_of(row)
        time = "" if schema.time_column is None else f" at {_time(table[schema.time_column][row])}"
        return f"row {self.number(row)} ({kind or 'event'}{time})"

    def number(self, row: int) -> int:
        """The row in the input of a row in the stream."""
        return row if self.order is None else int(self.order[row])

    def numbers(self, match: Seen) -> str:
        """The rows of a match."""
        rows = sorted(map(self.number, match.rows))
        return f"row{'s' * (len(rows) > 1)} {', '.join(map(str, rows))}"

    def rows(self, rows: Collection[int]) -> str:
        """Some events, the first few of them in words."""
        shown = [self.row(row) for row in sorted(rows)[:NAMED]]
        rest = len(rows) - len(shown)
        return ", ".join(shown) + (f" and {rest} more" if rest else "")

    def detail(self, relaxation: Relaxation, chosen: Collection[Relaxation], match: Seen) -> str:
        """What excluded a match of the query without the chosen relaxations, of which `relaxation` is one."""
        gone = {each.number for each in chosen if each.kind == "partition"}
        self.keys = tuple(key for number, key in enumerate(self.tree.partition_by) if number not in gone)
        if relaxation.kind in CHOICES and relaxation.kind != "next":
            return self._choice(relaxation, chosen, match)
        tellers: dict[str, Callable[[Relaxation, Seen], str]] = {
            "condition": self._condition,
            "gap": self._gap,
            "window": self._window,
            "negation": self._negation,
            "contiguity": self._contiguity,
            "next": lambda relaxation, match: self._next(relaxation, chosen, match),
            "partition": self._partition,
        }
        teller = tellers.get(relaxation.kind)
        return "" if teller is None or self._repeated(relaxation) else teller(relaxation, match)

    def _repeated(self, relaxation: Relaxation) -> bool:
        """Whether a construct stands in an iteration, so that a match can have it more than once; a condition on one variable does not mind."""
        if relaxation.kind == "condition" and len(set(_variables(self._written(relaxation)))) == 1:
            return False
        return any(
            relaxation.node is inner for node in _below(self.tree.pattern) if isinstance(node, syntax.Iterate) for inner in _below(node)
        )

    # ----------------------------------------------------------------------------------------------------------------- conditions

    def _written(self, relaxation: Relaxation) -> syntax.Expression:
        assert isinstance(relaxation.node, syntax.Filter)
        return list(conjuncts(relaxation.node.condition))[relaxation.number]

    def _condition(self, relaxation: Relaxation, match: Seen) -> str:
        """The values of the first choice of events that makes a condition false."""
        from cepheid.testing.evaluate import holds

        condition = self._bound(relaxation)
        if condition is None or any(isinstance(leaf, logical.Index | logical.Lag) or leaf.previous for leaf in logical.leaves(condition)):
            return ""
        names = sorted(logical.variables_of(condition))
        rows = sorted({row for name in names for row in match.of(name)})
        events = self._events(rows)
        choices = itertools.product(*(match.of(name) for name in names))
        for choice in itertools.islice(choices, MAX_CHOICES):
            places = {(name, False): rows.index(row) for name, row in zip(names, choice, strict=True)}
            if not holds(condition, events, places):
                return self._values(self._written(relaxation), dict(zip(names, choice, strict=True)))
        return ""

    def _events(self, rows: Sequence[int]) -> list[Event]:
        return rows_of(self.runs.plan(syntax.Query(syntax.Type(None))), self.runs.table.take(pa.array(rows, pa.int64())))

    def _bound(self, relaxation: Relaxation) -> logical.Expression | None:
        """A condition with its types: the only one of the query without all else."""
        rest = [each for each in relaxations(self.tree) if each is not relaxation and each.key != relaxation.key]
        alone = relaxed(self.tree, [each for each in rest if each.kind not in STRUCTURE | {"projection"}])
        try:
            plan = self.runs.plan(alone)
        except BindError:
            return None
        found = [condition for _, condition in conditions_of(plan.pattern)]
        return found[0] if len(found) == 1 else None

    def _values(self, written: syntax.Expression, choice: dict[str, int]) -> str:
        """`y.humidity = 31 is not < 25`, or the values of all attributes."""
        local = written.variable if isinstance(written, syntax.Local) else None
        inner = written.condition if isinstance(written, syntax.Local) else written
        values = dict(self._leaves(inner, local, choice))
        if not values:
            return ""
        said = ", ".join(f"{name} {'is NULL' if value == 'NULL' else f'= {value}'}" for name, value in values.items())
        where = self.rows(set(choice.values()))
        if isinstance(inner, syntax.Compare) and len(values) == 1 and next(iter(values)) == self._name(inner.left, local):
            return f"{said}{', which' if said.endswith('NULL') else ''} is not {inner.operator} {to_text(inner.right)}: {where}"
        return f"{said}: {where}"

    def _name(self, node: syntax.Node, local: str | None) -> str:
        return f"{local}.{node.name}" if isinstance(node, syntax.Word) else to_text(node)

    def _leaves(self, node: syntax.Node, local: str | None, choice: dict[str, int]) -> Iterator[tuple[str, str]]:
        path: tuple[str, ...] | None = None
        variable = local
        if isinstance(node, syntax.Word) and local is not None:
            path = (node.name,)
        elif isinstance(node, syntax.Attribute):
            variable, path = node.variable, node.path
        elif isinstance(node, syntax.System) and self.runs.schema.time_column is not None:
            variable, path = node.variable, (self.runs.schema.time_column,)
        if path is not None and variable is not None:
            value = self.runs.column(path[0])[choice[variable]]
            for name in path[1:]:
                value = None if value is None else value.get(name)
            yield self._name(node, local), value_text(value)
        for child in node.children():
            yield from self._leaves(child, local, choice)

    # ------------------------------------------------------------------------------------------------------------- times and places

    def _steps(self, first: int, last: int) -> str:
        times = self.runs.times
        return duration_text(int(times[last] - times[first]), self.runs.schema.unit)

    def _sides(self, relaxation: Relaxation, match: Seen) -> tuple[int, int] | None:
        """The last row before a link and the first one behind it."""
        before, behind = (match.of(watched(side, relaxation)) for side in ("left", "right"))
        if not before or not behind or not self._exact(relaxation):
            return None
        return max(before), min(behind)

    def _exact(self, relaxation: Relaxation) -> bool:
        """Whether the events that a match shows are those where its parts begin and end: PROJECT hides some."""
        return not any(isinstance(node, syntax.Project) for node in _below(relaxation.node))

    def _gap(self, relaxation: Relaxation, match: Seen) -> str:
        sides = self._sides(relaxation, match)
        if sides is None:
            return ""
        return f"the gap is {self._steps(*sides)}, and {_bounds(relaxation.text)} is asked for: {self.row(sides[0])}, {self.row(sides[1])}"

    def _extent(self, relaxation: Relaxation, match: Seen) -> tuple[int, int] | None:
        """The first and the last row below a clause."""
        if relaxation.node is self.tree or relaxation.node is self.tree.pattern:
            return match.start, match.end
        rows = match.of(watched("window", relaxation))
        return (min(rows), max(rows)) if rows and self._exact(relaxation) else None

    def _window(self, relaxation: Relaxation, match: Seen) -> str:
        extent = self._extent(relaxation, match)
        if extent is None:
            return ""
        if relaxation.text.endswith("EVENTS"):
            count = 1 + sum(1 for _ in self._between(extent[0], extent[1] + 1))
            return f"from {self.row(extent[0])} to {self.row(extent[1])} there {'is' if count == 1 else 'are'} {counted(count, 'event')}"
        return f"from {self.row(extent[0])} to {self.row(extent[1])} it takes {self._steps(*extent)}"

    def _keys(self, row: int) -> dict[str, object]:
        return self.runs.keys_of(self.keys, row)

    def _between(self, first: int, last: int) -> Iterator[int]:
        """The rows of the same partition between two."""
        keys = self._keys(first)
        return (row for row in range(first + 1, last) if self._keys(row) == keys)

    def _contiguity(self, relaxation: Relaxation, match: Seen) -> str:
        if not isinstance(relaxation.node, syntax.Sequence):
            between = set(self._between(match.start, match.end)) - match.rows if relaxation.node is self.tree else set()
            return f"in between, and in no variable: {self.rows(between)}" if between else ""
        sides = self._sides(relaxation, match)
        between = set() if sides is None else set(self._between(*sides))
        return f"in between: {self.rows(between)}" if between else ""

    def _partition(self, relaxation: Relaxation, match: Seen) -> str:
        values: dict[str, list[int]] = {}
        for row in sorted(match.rows):
            values.setdefault(value_text(self.runs.column(relaxation.text)[row]), []).append(row)
        return "; ".join(f"{relaxation.text} = {value} in {self.rows(rows)}" for value, rows in values.items())

    # ------------------------------------------------------------------------------------------------------------------- negations

    def _negation(self, relaxation: Relaxation, match: Seen) -> str:
        node = relaxation.node
        negated = node.links[relaxation.number].without if isinstance(node, syntax.Sequence) else node.negated  # type: ignore[attr-defined]
        if negated is None or not _depends_on_itself(negated):
            return ""
        if isinstance(node, syntax.Absence):
            return self._followed(node, match)
        place = self._sides(relaxation, match) if isinstance(node, syntax.Sequence) else self._extent(relaxation, match)
        if place is None:
            return ""
        first, last = (place[0] + 1, place[1] - 1) if isinstance(node, syntax.Sequence) else place
        found = self.runs.every(negated, first, last, self._keys(match.start))
        where = "in between" if isinstance(node, syntax.Sequence) else "within it"
        return f"{where}: {self._example(found)}, which matches `{to_text(negated)}`" if found else ""

    def _example(self, found: Sequence[Seen]) -> str:
        example = min(found, key=lambda each: (each.end, -each.start))
        return self.row(example.end) if example.start == example.end else f"{self.row(example.start)} to {self.row(example.end)}"

    def _followed(self, node: syntax.Absence, match: Seen) -> str:
        """What follows a match that must not, or that this is not known yet."""
        keys = self._keys(match.start)
        found = self.runs.every(node.negated, match.end + 1, self.runs.table.num_rows - 1, keys)
        if not found:
            return f"it is not decided yet: no `{to_text(node.negated)}` follows, but the time is not over (until=..)"
        return f"behind it: {self._example(found)}, which matches `{to_text(node.negated)}`"

    # --------------------------------------------------------------------------------------------------------------------- choices

    def _next(self, relaxation: Relaxation, chosen: Collection[Relaxation], match: Seen) -> str:
        """What the time model calls next instead."""
        assert isinstance(relaxation.node, syntax.Sequence)
        item = relaxation.node.items[relaxation.number + 1]
        within = any(item.span.start <= each.span.start and each.span.end <= item.span.end for each in chosen)
        before, behind = (match.of(watched(side, relaxation)) for side in ("left", "right"))
        if within or not before or not self._exact(relaxation) or not _depends_on_itself(item):
            return ""
        model = MODELS[(self.tree.model or TimeModel.CAYUGA).value]
        times = self.runs.times
        last = int(np.flatnonzero(times <= times[match.end])[-1])  # what comes first may end later at the same time
        stamps = {each: model.of(times[list(each.rows)].tolist()) for each in self.runs.every(item, 0, last, self._keys(match.start))}
        after = model.successors(model.point(int(times[max(before)])), set(stamps.values()))
        found = [each for each, stamp in stamps.items() if stamp in after]
        if not found or any(each.rows == frozenset(behind) for each in found):
            return ""
        return f"behind {self.row(max(before))} the next is {self._example(found)}"

    def _choice(self, relaxation: Relaxation, chosen: Collection[Relaxation], match: Seen) -> str:
        """What the query chooses with this construct in it."""
        if relaxation.node is not self.tree:
            return ""
        query = relaxed(self.tree, [each for each in chosen if each is not relaxation])
        some = relaxation.kind == "limit" or query.strategy in {Strategy.ANY, Strategy.RESTRICTED}
        found = self.runs.given(query)[0] if some and relaxation.kind != "consumption" else self.runs.compared(query)
        if relaxation.kind == "consumption":
            return self._consumed(found, match)
        rivals = sorted((each for each in found if each.end == match.end), key=lambda each: sorted(each.rows))
        listed = " and ".join(dict.fromkeys(map(self.numbers, rivals[:NAMED]))) + (" and others" if len(rivals) > NAMED else "")
        return f"of the matches that end with {self.row(match.end)}, {self.name(relaxation)} chooses {listed}" if rivals else ""

    def _consumed(self, found: Collection[Seen], match: Seen) -> str:
        """The last match that has consumed the start of one."""
        whole = self.tree.consume is Consumption.ANY
        own = [each for each in found if match.start <= each.end < match.end and (whole or self._keys(each.end) == self._keys(match.start))]
        if not own:
            return ""
        last = max(own, key=lambda each: (each.end, sorted(each.rows)))
        return f"a match before it has consumed {self.row(match.start)}: {self.numbers(last)}"


def _time(value: pa.Scalar) -> str:
    from cepheid.engine.output.matches import python_value

    return str(python_value(value))


def _bounds(gap: str) -> str:
    return gap.removeprefix("[").removesuffix("]")


def _below(node: syntax.Pattern | syntax.Node) -> Iterator[syntax.Node]:
    """A pattern and all below it that puts events into a match."""
    yield node
    if isinstance(node, syntax.Pattern):
        for below in operands(node):
            yield from _below(below)


def _variables(node: syntax.Node) -> Iterator[str]:
    if isinstance(node, syntax.Attribute | syntax.System | syntax.Local):
        yield node.variable
    for child in node.children():
        yield from _variables(child)


def _depends_on_itself(negated: syntax.Node) -> bool:
    """Whether the matches of a pattern depend on their own events alone, so that they are the same in a part of the stream."""
    if isinstance(negated, syntax.Select | syntax.System | syntax.Call):
        return False
    return all(_depends_on_itself(child) for child in negated.children())
