"""MATCH_RECOGNIZE by its definition: plain backtracking over the rows of a partition. What every evaluation is compared with.

A partition is a sequence of rows. A mapping gives each row of an interval a variable. For a start the pattern lists mappings in preferment order (the
standard, ISO 19075-5, chapter 7); the match is the first one whose conditions hold, and starts are tried from the earliest. A condition is asked when
its row is mapped: it sees the rows so far, and its own as already mapped. A round of a quantifier that maps no row, and that reaches the lower bound
or comes behind it, ends the quantifier (7.2.8). Nothing here knows of automata; a pattern can take a time that grows exponentially with the rows.
"""

from __future__ import annotations

import itertools
import math
import statistics
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.errors import InputError, LimitError
from cepheid.language import rows_syntax as pattern
from cepheid.language.rows_syntax import Shown, Skip
from cepheid.logical.plan import Apply, Field, Literal
from cepheid.logical.rows import Aggregate, Classifier, MatchNumber, Navigate
from cepheid.logical.types import canonical
from cepheid.records import record
from cepheid.testing import evaluate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cepheid.logical.plan import Expression
    from cepheid.logical.rows import Owner, RowPlan

    Row = Mapping[str, Any]

    Todo = tuple[Any, "Todo"] | None
    """What is still to be matched: patterns and `_Round`s, one behind the other."""

MOST_STEPS = 1_000_000
"""Steps of the search in one partition: some ten seconds."""


@record
class RowMatch:
    """A match: where it starts, its number, and the variable of each row, with whether it is in an exclusion."""

    start: int
    number: int
    variables: tuple[str, ...]
    excluded: tuple[bool, ...]


@record
class _Round:
    """The end of a round of a quantifier: how many there were, and where this one began."""

    quantified: pattern.Quantified
    done: int
    began: int


LEAVE = "leave"
"""The end of an exclusion."""

NOTHING: Any = object()
"""No way is left."""


def match_rows(plan: RowPlan, rows: pa.Table) -> pa.Table:
    """The result of a clause over a table, with the columns of `plan.output`; rows of a partition stand together, in the order of its first row.

    Raises:
        InputError: SKIP TO a variable that has no row, or whose row is the first of the match.
        LimitError: a search takes more than MOST_STEPS.
    """
    found: list[tuple[Any, ...]] = []
    for partition in partitions(plan, rows):
        found += output(plan, partition, matches(plan, partition))
    kinds = dict(plan.columns) | {measure.name: measure.type for measure in plan.measures}
    columns = [pa.array([row[place] for row in found], kinds[name]) for place, name in enumerate(plan.output)]
    return pa.table(columns, names=list(plan.output))


def partitions(plan: RowPlan, rows: pa.Table) -> list[list[Row]]:
    """The rows of each partition in its order: NULL is a key like any other, and equal rows stay as they come."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows.to_pylist():
        groups.setdefault(tuple(_value(plan, row, name) for name in plan.partition_by), []).append(row)
    for group in groups.values():
        for key in reversed(plan.order_by):

            def rank(row: Row, name: str = key.column) -> tuple[bool, Any]:
                value = _value(plan, row, name)
                return value is not None, b"" if value is None else value.encode() if isinstance(value, str) else value

            nulls = [row for row in group if not rank(row)[0]]
            others = sorted((row for row in group if rank(row)[0]), key=rank, reverse=False)
            if key.descending:
                others = [row for _, same in itertools.groupby(reversed(others), rank) for row in reversed(list(same))]
            group[:] = [*nulls, *others] if key.nulls_first else [*others, *nulls]
    return list(groups.values())


def _value(plan: RowPlan, row: Row, name: str) -> Any:
    """The canonical value of a column."""
    kind = dict(plan.columns)[name]
    return evaluate.attribute_value(row, Field("", (name,), canonical(kind) or kind, kind))


# ------------------------------------------------------------------------------------------------------------------------ matches


def matches(plan: RowPlan, rows: Sequence[Row]) -> list[RowMatch]:
    """The matches in a partition, in order."""
    found: list[RowMatch] = []
    search = _Search(plan, rows)
    start = 0
    while start < len(rows):
        match = search.first(start, len(found) + 1)
        if match is None:
            start += 1
            continue
        found.append(match)
        start = _resumed(plan, match)
    return found


def _resumed(plan: RowPlan, match: RowMatch) -> int:
    """Where the next match may start."""
    length = len(match.variables)
    if not length or plan.skip is Skip.TO_NEXT_ROW:
        return match.start + 1
    if plan.skip is Skip.PAST_LAST_ROW:
        return match.start + length
    own = [number for number, variable in enumerate(match.variables) if variable in plan.resume]
    names = " or ".join(sorted(plan.resume))
    if not own:
        raise InputError(
            f"match {match.number} has no row of {names}, where AFTER MATCH SKIP resumes",
            help=f"skip past the last row, or to a variable that every match has; {names} is optional in the pattern",
        )
    place = own[0] if plan.skip is Skip.TO_FIRST else own[-1]
    if not place:
        raise InputError(
            f"match {match.number} would be found again: the row of {names}, where AFTER MATCH SKIP resumes, is its first",
            help="skip to the next row, or to a variable that comes later",
        )
    return match.start + place


class _Search:
    """The search for the matches of a partition, which may take MOST_STEPS."""

    def __init__(self, plan: RowPlan, rows: Sequence[Row]) -> None:
        self._plan = plan
        self._rows = rows
        self._steps = 0
        bound = plan.order_by[0].column if plan.within is not None else None
        self._times = [None if bound is None else evaluate.attribute_value(row, _time(plan, bound)) for row in rows]

    def first(self, start: int, number: int) -> RowMatch | None:
        """The preferred match from a start, None where there is none."""
        # What is tried next lies on top: the ways on from a position, with the rows mapped so far and the exclusions around.
        stack: list[tuple[int, Any, int, Iterator[Todo]]] = [(start, None, 0, iter([(self._plan.pattern, None)]))]
        while stack:
            position, mapped, excluded, ways = stack[-1]
            todo = next(ways, NOTHING)
            if todo is NOTHING:
                stack.pop()
                continue
            self._step(start)
            if todo is None:
                return RowMatch(start, number, *_unrolled(mapped))
            item, rest = todo
            on = iter([rest])
            match item:
                case pattern.Variable(name):
                    longer = (mapped, name, excluded > 0)
                    if position < len(self._rows) and self._fits(name, longer, position, start, number):
                        stack.append((position + 1, longer, excluded, on))
                case pattern.PartitionStart() | pattern.PartitionEnd():
                    if position == (0 if isinstance(item, pattern.PartitionStart) else len(self._rows)):
                        stack.append((position, mapped, excluded, on))
                case pattern.Exclusion(inner):
                    stack.append((position, mapped, excluded + 1, iter([(inner, (LEAVE, rest))])))
                case str():
                    stack.append((position, mapped, excluded - 1, on))
                case pattern.Quantified() | _Round():
                    stack.append((position, mapped, excluded, _rounds(item, position, rest)))
                case _:
                    stack.append((position, mapped, excluded, _ways(item, rest)))
        return None

    def _step(self, start: int) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise LimitError(
                f"the definition takes more than {MOST_STEPS:,} steps in one partition, at row {start} (MOST_STEPS)",
                help="give it fewer rows",
            )

    def _fits(self, name: str, mapped: Any, position: int, start: int, number: int) -> bool:
        """Whether the last of the mapped rows can be that variable."""
        plan = self._plan
        if plan.within is not None and not _less(self._times[position], self._times[start], plan.within):
            return False
        condition = plan.conditions.get(name)
        if condition is None:
            return True
        seen = Seen(self._rows, start, _unrolled(mapped)[0], number)
        return seen.value(condition, len(seen.variables)) is True


def _time(plan: RowPlan, name: str) -> Field:
    kind = dict(plan.columns)[name]
    return Field("", (name,), canonical(kind) or kind, kind)


def _less(time: Any, first: Any, most: int) -> bool:
    """Whether a time is less than `most` steps after the first."""
    if time is None or first is None:
        return False
    difference = time - first
    return bool((difference if isinstance(difference, int) else difference.days) < most)


def _rounds(item: pattern.Quantified | _Round, position: int, rest: Todo) -> Iterator[Todo]:
    """The ways on before, between and behind the rounds of a quantifier, the preferred first."""
    quantified, done = (item.quantified, item.done) if isinstance(item, _Round) else (item, 0)
    minimum, maximum = quantified.minimum, quantified.maximum
    assert isinstance(minimum, int), "bound"
    assert maximum is None or isinstance(maximum, int), "bound"
    if isinstance(item, _Round) and item.began == position and done >= minimum:
        yield rest
        return
    on: Todo = (quantified.pattern, (_Round(quantified, done + 1, position), rest))
    more, stop = [on] * (maximum is None or done < maximum), [rest] * (done >= minimum)
    yield from (*stop, *more) if quantified.reluctant else (*more, *stop)


def _ways(item: Any, rest: Todo) -> Iterator[Todo]:
    """The ways through a part of other patterns, the preferred first."""
    match item:
        case pattern.Empty():
            yield rest
        case pattern.Concatenation(items):
            yield _behind(items, rest)
        case pattern.Alternation(operands):
            for operand in operands:
                yield operand, rest
        case pattern.Permutation(operands):
            for order in itertools.permutations(operands):
                yield _behind(order, rest)


def _behind(items: Sequence[Any], rest: Todo) -> Todo:
    for item in reversed(items):
        rest = (item, rest)
    return rest


def _unrolled(mapped: Any) -> tuple[tuple[str, ...], tuple[bool, ...]]:
    """The variables of the rows so far, and which of them are excluded."""
    names: list[str] = []
    excluded: list[bool] = []
    while mapped is not None:
        mapped, name, out = mapped
        names.append(name)
        excluded.append(out)
    return tuple(reversed(names)), tuple(reversed(excluded))


# ------------------------------------------------------------------------------------------------------------------------- values


class Seen:
    """The values of expressions in a match: its rows have these variables, from `start` on."""

    def __init__(self, rows: Sequence[Row], start: int, variables: Sequence[str], number: int) -> None:
        self.rows = rows
        self.start = start
        self.variables = variables
        self.number = number

    def value(self, expression: Expression, seen: int, row: int = -1) -> Any:
        """The value of an expression that sees the first `seen` rows of the match; row: the one that is looked at."""
        match expression:
            case Field():
                return evaluate.attribute_value(self.rows[row], expression)
            case Classifier():
                place = row - self.start
                return self.variables[place] if 0 <= place < len(self.variables) else None
            case MatchNumber():
                return self.number
            case Navigate():
                return self._navigate(expression, seen)
            case Aggregate():
                return self._aggregate(expression, seen)
            case Literal():
                return evaluate.evaluate(expression, (), {})
            case Apply(operator="coalesce"):
                return next((found for each in expression.arguments if (found := self.value(each, seen, row)) is not None), None)
            case Apply(operator="case", arguments=(*pairs, last)):
                for holds, given in zip(pairs[::2], pairs[1::2], strict=True):
                    if self.value(holds, seen, row) is True:
                        return self.value(given, seen, row)
                return self.value(last, seen, row)
            case Apply():
                arguments = [self.value(each, seen, row) for each in expression.arguments]
                own = ROW_VALUES.get(expression.operator)
                return evaluate.apply(expression, arguments) if own is None else own(expression, *arguments)
        raise TypeError(expression)

    def _own(self, owner: Owner, seen: int) -> list[int]:
        """The rows of some variables, by their places in the match."""
        return [place for place, name in enumerate(self.variables[:seen]) if owner is None or name in owner]

    def _navigate(self, to: Navigate, seen: int) -> Any:
        seen = len(self.variables) if to.final else seen
        own = self._own(to.owner, seen)
        if to.logical >= len(own):
            return None
        row = self.start + (own[to.logical] if to.first else own[-1 - to.logical]) + to.physical
        return self.value(to.argument, seen, row) if 0 <= row < len(self.rows) else None

    def _aggregate(self, of: Aggregate, seen: int) -> Any:
        seen = len(self.variables) if of.final else seen
        rows = [self.start + place for place in self._own(of.owner, seen)]
        if of.where is not None:
            rows = [row for row in rows if self.value(of.where, seen, row) is True]
        if not of.arguments:
            return len(rows)
        values = [tuple(self.value(each, seen, row) for each in of.arguments) for row in rows]
        if of.name == "array_agg":
            firsts = [first for (first,) in values]
            return (_distinct(firsts) if of.distinct else firsts) or None
        values = [each for each in values if each[-1] is not None]
        firsts = [each[0] for each in values]
        if of.distinct:
            firsts = _distinct(firsts)
        if of.name == "count":
            return len(firsts)
        return _aggregated(of, firsts, values) if values else None


def _distinct(values: list[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def _aggregated(of: Aggregate, firsts: list[Any], values: list[tuple[Any, ...]]) -> Any:
    """An aggregate of some values, at least one."""
    match of.name:
        case "sum":
            return evaluate.fit(
                sum(firsts, start=type(firsts[0])(0)) if not isinstance(firsts[0], float) else math.fsum(firsts), of.type, *firsts
            )
        case "avg":
            return float(sum(map(_exact, firsts)) / len(firsts))
        case "stddev":
            return None if len(firsts) < 2 else float(statistics.stdev(map(_exact, firsts)))
        case "bool_and":
            return all(firsts)
        case "bool_or":
            return any(firsts)
        case "arbitrary":
            return firsts[0]
    key = lambda each: evaluate.comparable(each[-1])  # noqa: E731 - of both
    return (max if of.name.startswith("max") else min)(values, key=key)[0]


def _exact(value: Any) -> Any:
    return Decimal(value) if isinstance(value, int) else value


def _same(left: list[Any] | None, right: list[Any] | None) -> bool | None:
    """Whether two lists are equal, None where that is not known."""
    if left is None or right is None:
        return None
    if len(left) != len(right):
        return False
    pairs = [None if a is None or b is None else a == b for a, b in zip(left, right, strict=True)]
    return False if False in pairs else None if None in pairs else True


def _extreme(choose: Any) -> Any:
    def extreme(_: Apply, values: list[Any] | None) -> Any:
        return None if not values or None in values else choose(values, key=evaluate.comparable)

    return extreme


def _convert(expression: Apply, value: Any) -> Any:
    if value is None:
        return None
    if pa.types.is_string(expression.type):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if pa.types.is_floating(expression.type):
        return float(value)
    if pa.types.is_decimal(expression.type):
        return evaluate.fit(Decimal(value), expression.type)
    return evaluate.fit(int(value), expression.type) if not isinstance(value, float) or math.isfinite(value) else None


ROW_VALUES: dict[str, Any] = {
    "array": lambda _, *items: list(items),
    "same_list": lambda _, left, right: _same(left, right) is True,
    "other_list": lambda _, left, right: _same(left, right) is False,
    "array_max": _extreme(max),
    "array_min": _extreme(min),
    "cardinality": lambda _, values: None if values is None else len(values),
    "convert": _convert,
}
"""Each operator of `logical.rows.OPERATORS`: (the Apply node, values) -> value."""


# ------------------------------------------------------------------------------------------------------------------------- output


def output(plan: RowPlan, rows: Sequence[Row], found: Sequence[RowMatch]) -> list[tuple[Any, ...]]:
    """The rows of the result for a partition, in the order of the matches; rows without a match stand where they are in the partition."""
    if plan.shown is Shown.ONE_ROW:
        return [
            (*(rows[match.start][name] for name in plan.partition_by), *_measures(plan, rows, match, len(match.variables)))
            for match in found
        ]
    shown: list[tuple[int, tuple[Any, ...]]] = []
    taken: set[int] = set()
    for match in found:
        places = range(len(match.variables))
        taken.update(match.start + place for place in places)
        if not places:
            taken.add(match.start)
            if plan.shown is not Shown.OMIT_EMPTY:
                shown.append((match.start, _row(plan, rows[match.start], _measures(plan, rows, match, 0))))
        shown += [
            (match.start + place, _row(plan, rows[match.start + place], _measures(plan, rows, match, place + 1)))
            for place in places
            if not match.excluded[place]
        ]
    if plan.shown is Shown.UNMATCHED:
        nothing = [None] * len(plan.measures)
        shown += [(number, _row(plan, row, nothing)) for number, row in enumerate(rows) if number not in taken]
        shown.sort(key=lambda item: item[0])
    return [row for _, row in shown]


def _measures(plan: RowPlan, rows: Sequence[Row], match: RowMatch, seen: int) -> list[Any]:
    values = Seen(rows, match.start, match.variables, match.number)
    return [values.value(measure.expression, seen) for measure in plan.measures]


def _row(plan: RowPlan, row: Row, measures: Sequence[Any]) -> tuple[Any, ...]:
    """A row of the table with measures, in the order of `plan.output`."""
    named = dict(zip((measure.name for measure in plan.measures), measures, strict=True))
    return tuple(named[name] if name in named else row[name] for name in plan.output)
