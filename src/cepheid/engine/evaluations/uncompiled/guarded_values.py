"""What guards read: the values of an event, terms over slots, and tests. The one place that knows how values come with events.

A value is a Python value that compares with others of its expression: bool, int (times and dates too), float, Decimal or str; None is NULL. What a
`set` gathers is `Several` values.
"""

from __future__ import annotations

import itertools
import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.automata.registers import Before, Compares, Computes, Each, Elapsed, Gathered, Joined, Now, Test, combinations
from cepheid.engine.letters.values import plain_constant
from cepheid.logical.folding import COMPARISONS, FOLDED
from cepheid.logical.plan import Apply, Derived, Index, Literal, Time
from cepheid.logical.types import type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cepheid.automata.alphabet import Alphabet
    from cepheid.automata.automaton import Automaton
    from cepheid.automata.registers import Term
    from cepheid.engine.evaluations.events import Events
    from cepheid.logical.plan import Expression

Value = Any
"""A value of an event, None for NULL; or what a slot holds."""


class Several(tuple[Value, ...]):
    """The different values that a set has, or its choices as tuples of them, ascending, NULL last."""

    __slots__ = ()


def is_several(value: Value) -> bool:
    """Whether what a slot holds is of more than one event of a variable."""
    return isinstance(value, Several) and len(value) > 1


class Reader:
    """The values of a batch of events that an alphabet's guards and a program's stores read; `row` says which event is looked at.

    Raises NotSupportedError where the events come without values: no path may evaluate a guard unseen.
    """

    __slots__ = ("_columns", "row")

    def __init__(self, wanted: Sequence[Expression], alphabet: Alphabet, events: Events) -> None:
        values = events.values
        if wanted and (values is None or any(value not in values.layout.places for value in wanted)):
            alphabet.refuse_guards("events without values")
        self._columns = {} if values is None else {value: values.decoded(value) for value in wanted}
        self.row = 0

    def __call__(self, value: Expression) -> Value:
        """The value at the row that is looked at."""
        return self._columns[value][self.row]


class Evaluator:
    """Terms and tests at one event after the other. now: the values of the event that is looked at, set anew for each batch."""

    __slots__ = ("now",)

    def __init__(self) -> None:
        self.now: Callable[[Expression], Value] = _no_event

    def value(self, term: Term | None, slots: Mapping[int, Value] | Sequence[Value]) -> Value:
        """What a term comes to."""
        match term:
            case Before(register=slot):
                return slots[slot]
            case Now(value=expression):
                return self.now(expression)
            case Gathered(how=how, before=before, value=expression):
                old = None if before is None else self.value(before, slots)
                return gathered(how, old, self.now(expression), fresh=before is None)
            case Joined(before=before, products=products):
                rows = set(() if before is None else self.rows(before, slots))
                for product in products:
                    rows |= {tuple(itertools.chain(*each)) for each in itertools.product(*(self.rows(part, slots) for part in product))}
                return several(rows)
        return None

    def rows(self, term: Term, slots: Mapping[int, Value] | Sequence[Value]) -> list[tuple[Value, ...]]:
        """What a term comes to, as choices of values."""
        if isinstance(term, Each):
            return self.rows(term.before, slots) if term.width else [()]
        value = self.value(term, slots)
        return [each if isinstance(each, tuple) else (each,) for each in (value if isinstance(value, Several) else (value,))]

    def holds(self, test: Test, slots: Mapping[int, Value] | Sequence[Value]) -> bool:
        """Whether a test holds."""
        match test:
            case Compares(before=before, operator=operator, now=now):
                return compares(self.value(before, slots), operator, self.now(now))
            case Elapsed(before=before, now=now, interval=interval):
                first, last = self.value(before, slots), self.now(now)
                return first is not None and last is not None and last - first in interval
            case Computes(condition=condition, operands=operands):
                return all(_computed(condition, known) for known in combinations(operands, lambda term: self.rows(term, slots)))
        raise TypeError(test)


def _no_event(value: Expression) -> Value:
    raise AssertionError(value)


def _computed(expression: Expression, known: Mapping[Expression, Value]) -> Any:
    """What an expression over some values comes to."""
    if expression in known:
        return known[expression]
    if isinstance(expression, Apply):
        return FOLDED[expression.operator](expression, *(_computed(argument, known) for argument in expression.arguments))
    assert isinstance(expression, Literal)
    return plain_constant(expression.value)


def compares(before: Value, operator: str, now: Value) -> bool:
    """Whether `before operator now`, for each value of a set; false where a side is NULL."""
    if isinstance(before, Several):
        return all(compares(value, operator, now) for value in before)
    return before is not None and now is not None and COMPARISONS[operator](before, now)


def several(rows: Iterable[tuple[Value, ...]]) -> Several:
    """A set of choices."""
    ordered = sorted(set(rows), key=lambda row: [(value is None, value) if value is not None else (True,) for value in row])
    return Several(row if len(row) > 1 else row[0] for row in ordered)


def gathered(how: str, old: Value, new: Value, *, fresh: bool) -> Value:
    """What several values come to, see `Gathered`; fresh: there are no earlier ones."""
    if how == "set":
        return several((value,) for value in ({new} if fresh else {new, *old}))
    if fresh:
        return new
    if old is None or new is None:
        return None
    if how == "same":
        return old if old == new else None
    return min(old, new) if how == "min" else max(old, new)


# --------------------------------------------------------------------------------------------------------------------- stored


def stored(value: Value) -> object:
    """A value as JSON has it, equal values alike."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"double": value.hex()}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, Several):
        return {"several": [stored(each) for each in value]}
    if isinstance(value, tuple):
        return {"tuple": [stored(each) for each in value]}
    if isinstance(value, frozenset):
        return {"set": sorted((stored(each) for each in value), key=json.dumps)}
    raise TypeError(f"{type(value).__name__} is no value of an event")


DECIMAL = re.compile(r"-?\d{1,80}(\.\d{1,80})?(E[+-]?\d{1,3})?", re.ASCII)
"""A decimal as `stored` has it."""

SEQUENCES: dict[str, Callable[[Iterable[Value]], Value]] = {"several": Several, "tuple": tuple, "set": frozenset}
"""What holds values, by its name in `stored`."""


def restored(part: object) -> Value:
    """The inverse of `stored`; raises ValueError for anything else."""
    if part is None or isinstance(part, bool | int | str):
        return part
    if isinstance(part, dict) and len(part) == 1:
        ((kind, inside),) = part.items()
        if kind == "double" and isinstance(inside, str):
            return float.fromhex(inside)
        if kind == "decimal" and isinstance(inside, str) and DECIMAL.fullmatch(inside):
            return Decimal(inside)
        if kind in SEQUENCES and isinstance(inside, list):
            return SEQUENCES[kind](restored(each) for each in inside)
    raise ValueError("a value of a snapshot")


KINDS: tuple[tuple[Callable[[pa.DataType], bool], type], ...] = (
    (pa.types.is_boolean, bool),
    (pa.types.is_floating, float),
    (pa.types.is_decimal, Decimal),
    (pa.types.is_string, str),
)
"""The Python types of the values of Arrow types; those of others are integers."""


class Contents:
    """What the registers of an automaton can hold, to check what a snapshot says they do."""

    def __init__(self, automaton: Automaton) -> None:
        self._terms: dict[int, set[Term]] = {register: set() for register in range(len(automaton.alphabet.registers))}
        copied: list[tuple[int, int]] = []
        for move in automaton.transitions:
            for store in move.writes:
                if isinstance(store.term, Before):
                    copied.append((store.register, store.term.register))
                elif store.term is not None:
                    self._terms[store.register].add(store.term)
        while any(not self._terms[source] <= self._terms[target] for target, source in copied):
            for target, source in copied:
                self._terms[target] |= self._terms[source]

    def may_hold(self, register: int, value: Value) -> bool:
        """Whether a value is of a type that the register can hold."""
        return any(self._is_of(term, value) for term in self._terms[register])

    def _is_of(self, term: Term, value: Value) -> bool:
        match term:
            case Gathered(how="set", value=expression):
                return isinstance(value, Several) and all(_is_value(expression, each) for each in value)
            case Joined(products=products):
                fields = [field for part in products[0] for field in self._fields(part)]
                rows = [each if len(fields) > 1 else (each,) for each in value] if isinstance(value, Several) else [()]
                return all(isinstance(row, tuple) and len(row) == len(fields) and all(map(_is_value, fields, row)) for row in rows)
            case Gathered(value=expression):
                return value is None or _is_value(expression, value)
            case Now(value=expression):
                return _is_value(expression, value)
        return False

    def _fields(self, part: Term) -> tuple[Expression, ...]:
        """The values that a part of a product has."""
        match part:
            case Now(value=value) | Gathered(value=value):
                return (value,)
            case Each(before=Before(register=register), width=width) if width:
                return self._fields(next(iter(self._terms[register])))
            case Joined(products=products):
                return tuple(field for own in products[0] for field in self._fields(own))
        return ()


def _is_value(expression: Expression, value: Value) -> bool:
    if value is None:
        return not isinstance(expression, Time | Index | Derived)
    return type(value) is next((kind for is_such, kind in KINDS if is_such(type_of(expression))), int)
