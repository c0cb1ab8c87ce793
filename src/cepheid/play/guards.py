"""What guards ask and registers keep, in plain Python, for one event and one partial match at a time: what stepping needs, where nothing is fast.

A value is a Python value that compares with others of its expression: bool, int (times and dates too), float, Decimal or str; None is NULL. What is
kept of several events is `Several` values, or choices of them.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from cepheid.automata.registers import Before, Compares, Computes, Each, Elapsed, Gathered, Joined, Now, combinations
from cepheid.engine.letters.values import plain_constant
from cepheid.logical.folding import COMPARISONS, FOLDED
from cepheid.logical.plan import Apply, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cepheid.automata.alphabet import Alphabet
    from cepheid.automata.registers import Term, Test
    from cepheid.engine.evaluations.events import Events
    from cepheid.logical.plan import Expression

Value = Any
"""A value of an event, None for NULL; or what a slot holds."""


class Several(tuple[Value, ...]):
    """The different values of several events, or choices of them as tuples, ascending, NULL last."""

    __slots__ = ()


class Reader:
    """Terms and tests at the event in `row` of a batch, whose values are read here.

    Raises NotSupportedError where the events come without values.
    """

    def __init__(self, wanted: Sequence[Expression], alphabet: Alphabet, events: Events) -> None:
        values = events.values
        if wanted and (values is None or any(value not in values.layout.places for value in wanted)):
            alphabet.refuse_guards("events without values")
        self._columns = {} if values is None else {value: values.decoded(value) for value in wanted}
        self.row = 0

    def value(self, term: Term | None, slots: Sequence[Value]) -> Value:
        """What a term comes to."""
        match term:
            case Before(register=slot):
                return slots[slot]
            case Now(value=expression):
                return self._now(expression)
            case Gathered(how=how, before=before, value=expression):
                return _gathered(how, None if before is None else [self.value(before, slots)], self._now(expression))
            case Joined(before=before, products=products):
                rows = set(() if before is None else self._rows(before, slots))
                for product in products:
                    rows |= {tuple(itertools.chain(*each)) for each in itertools.product(*(self._rows(part, slots) for part in product))}
                return _several(rows)
        return None

    def holds(self, test: Test, slots: Sequence[Value]) -> bool:
        """Whether a test holds."""
        match test:
            case Compares(before=before, operator=operator, now=now):
                kept = self.value(before, slots)
                return all(_compares(each, operator, self._now(now)) for each in (kept if isinstance(kept, Several) else (kept,)))
            case Elapsed(before=before, now=now, interval=interval):
                first, last = self.value(before, slots), self._now(now)
                return first is not None and last is not None and last - first in interval
            case Computes(condition=condition, operands=operands):
                return all(_computed(condition, known) for known in combinations(operands, lambda term: self._rows(term, slots)))
        raise TypeError(test)

    def _now(self, value: Expression) -> Value:
        return self._columns[value][self.row]

    def _rows(self, term: Term, slots: Sequence[Value]) -> list[tuple[Value, ...]]:
        """What a term comes to, as choices of values."""
        if isinstance(term, Each):
            return self._rows(term.before, slots) if term.width else [()]
        value = self.value(term, slots)
        return [each if isinstance(each, tuple) else (each,) for each in (value if isinstance(value, Several) else (value,))]


def _computed(expression: Expression, known: Mapping[Expression, Value]) -> Any:
    """What an expression over some values comes to."""
    if expression in known:
        return known[expression]
    if isinstance(expression, Apply):
        return FOLDED[expression.operator](expression, *(_computed(argument, known) for argument in expression.arguments))
    assert isinstance(expression, Literal)
    return plain_constant(expression.value)


def _compares(before: Value, operator: str, now: Value) -> bool:
    """Whether `before operator now`; false where a side is NULL."""
    return before is not None and now is not None and bool(COMPARISONS[operator](before, now))


def _several(rows: Iterable[tuple[Value, ...]]) -> Several:
    """A set of choices."""
    ordered = sorted(set(rows), key=lambda row: [(value is None, value) if value is not None else (True,) for value in row])
    return Several(row if len(row) > 1 else row[0] for row in ordered)


def _gathered(how: str, before: list[Value] | None, new: Value) -> Value:
    """What several values come to, see `Gathered`; before: what they came to so far, None: there were none."""
    if how == "set":
        return _several((value,) for value in {new, *(() if before is None else before[0])})
    if before is None:
        return new
    (old,) = before
    if old is None or new is None:
        return None
    if how == "same":
        return old if old == new else None
    return min(old, new) if how == "min" else max(old, new)
