"""What a partial match keeps of its events, and what it asks about them: registers, stores, and the tests of guards.

A transition asks its guards about the registers as they were BEFORE its event; then all its stores write at once. A register is empty until it is
written. A guard that reads an empty register holds: what is not there is not asked about (semantics, section 2: a filter holds for every choice of
events, and there is none).

Values are expressions about one event, as `localize` leaves them: an attribute, the time, the position, or what is computed from these. So
`y.price * 2 > x.price + 1` keeps `price + 1` of x, or `price * 2` of y, whichever comes first.

Terms say what a register will hold, over the event and over what registers held before it. They compose by substitution: where a scope begins at a
transition, the registers of the scope are empty before it, and `substituted` says what the transition's own terms become.
"""

from __future__ import annotations

import dataclasses
import itertools
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.logical.describe import describe_bounds, describe_expression
from cepheid.logical.folding import EXACT
from cepheid.logical.plan import HALVES, Apply, Derived, Time
from cepheid.logical.types import FLIPPED, type_of
from cepheid.records import record
from cepheid.schema import time_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cepheid.logical.plan import Expression, Interval


@record
class Register:
    """What a partial match keeps for its guards; transitions write it. name: of what it keeps, as in `price of x`."""

    name: str


class Term:
    """What a register will hold."""


@record
class Before(Term):
    """What a register held before the event."""

    register: int


@record
class Now(Term):
    """A value of the event."""

    value: Expression


@record
class Gathered(Term):
    """What several events come to: how: "min", "max", "same" (their one value) or "set"; before: of the earlier ones, None without any.

    "min", "max" and "same" are NULL as soon as one of the values is, and "same" also where they differ: no comparison with NULL holds. A "set" has
    all values.
    """

    how: str
    before: Term | None
    value: Expression


@record
class Each(Term):
    """Each choice of a set that a register holds, or the one value that it holds.

    width: how many values a choice has. 0: none, but the register must hold something.
    """

    before: Term
    width: int


@record
class Joined(Term):
    """A set of choices of events, each as a row of values: those of before (None without any), and what the parts of a product make in all ways.

    products: the parts of each, in the order of their values: `Each`, or `Now` for a value of the event.
    """

    before: Term | None
    products: tuple[tuple[Term, ...], ...]


@record
class Element(Term):
    """In a test a value of each choice that a register holds, or the one value that it holds.

    part: what is chosen together; number: of the value among those of the choice, width of them.
    """

    before: Term
    part: int
    number: int
    width: int


@record
class Acting(Term):
    """What an event does to a condition that waits for patterns around it (`correlation.Action`): `conditions` makes of it what is kept and asked."""

    actions: frozenset[tuple[str, str | int]]


class Test:
    """What a guard asks."""


@record
class Compares(Test):
    """`before operator now`, a comparison of `plan.OPERATORS`: for each value of a set; false where a side is NULL."""

    before: Term
    operator: str
    now: Expression


@record
class Elapsed(Test):
    """`now - before` lies in the interval; both are times in steps of the time column, or positions."""

    before: Term
    now: Expression
    interval: Interval


@record
class Computes(Test):
    """A comparison that computes with what is kept and with the event; false where a value is NULL, or a result overflows.

    operands: its largest expressions over one variable each, and what each is: `Before`, `Now`, or a `Element`: for each choice it must hold then.
    """

    condition: Expression
    operands: tuple[tuple[Expression, Term], ...]


@record
class Store:
    """A register and what it will hold; None: nothing."""

    register: int
    term: Term | None


def by_register(store: Store) -> tuple[int, str]:
    """The order of the stores of a transition."""
    return store.register, repr(store.term)


def terms(part: Term | Test | None) -> Iterator[Term]:
    """The terms of a test or a term, itself included."""
    match part:
        case Compares(before=term) | Elapsed(before=term):
            yield from terms(term)
        case Computes(operands=operands):
            for _, term in operands:
                yield from terms(term)
        case Gathered(before=term):
            yield part
            yield from terms(term)
        case Joined(before=term, products=products):
            yield part
            yield from terms(term)
            for each in itertools.chain(*products):
                yield from terms(each)
        case Each(before=term) | Element(before=term):
            yield from terms(term)
        case Before() | Now() | Acting():
            yield part


def combinations(
    operands: Iterable[tuple[Expression, Term]], rows: Callable[[Term], Iterable[Sequence[object]]]
) -> Iterator[dict[Expression, object]]:
    """What the operands of a test that computes are, for each choice. rows: of what a term comes to, each with its values."""
    parts: dict[object, tuple[Term, list[tuple[Expression, int]]]] = {}
    for value, term in operands:
        if isinstance(term, Element):
            parts.setdefault(term.part, (term.before, []))[1].append((value, term.number))
        else:
            parts[value, term] = term, [(value, 0)]
    for found in itertools.product(*(rows(term) for term, _ in parts.values())):
        yield _with_wholes({value: row[number] for row, (_, own) in zip(found, parts.values(), strict=True) for value, number in own})


def wholes(values: Iterable[Expression]) -> dict[Expression, tuple[Expression, Expression]]:
    """The decimals whose HALVES are among some values: the upper and the lower half of each."""
    found = dict.fromkeys(value.arguments[0] for value in values if isinstance(value, Apply) and value.operator in HALVES)
    upper, lower = HALVES
    return {each: (Apply(upper, (each,), pa.int64()), Apply(lower, (each,), pa.int64())) for each in found}


def _with_wholes(values: dict[Expression, object]) -> dict[Expression, object]:
    """Values, and the decimals whose halves are among them."""
    for each, halves in wholes(values).items():
        upper, lower = (values[half] for half in halves)
        if isinstance(upper, int) and isinstance(lower, int):
            values[each] = Decimal((upper << 64) + lower % (1 << 64)).scaleb(-type_of(each).scale, EXACT)
        else:
            values[each] = None
    return values


def reads(part: Term | Test | None) -> frozenset[int]:
    """The registers that a test or a term reads."""
    return frozenset(term.register for term in terms(part) if isinstance(term, Before))


def values(part: Term | Test | None) -> Iterator[Expression]:
    """The values of the event that a test or a term reads."""
    match part:
        case Compares(now=value) | Elapsed(now=value):
            yield value
    for term in terms(part):
        if isinstance(term, Now | Gathered):
            yield term.value


def substituted(term: Term | None, change: Callable[[int], Term | None]) -> Term | None:
    """A term where each register held, before the event, what `change` says (None: nothing)."""
    match term:
        case Before(register=register):
            return change(register)
        case Gathered(how=how, before=before, value=value):
            found = substituted(before, change)
            return Now(value) if found is None and how != "set" else dataclasses.replace(term, before=found)
        case Each(before=before) | Element(before=before):
            found = substituted(before, change)
            return None if found is None else dataclasses.replace(term, before=found)
        case Joined(before=before, products=products):
            found = substituted(before, change)
            after = [[substituted(part, change) for part in product] for product in products]
            left = tuple(tuple(part for part in product if part is not None) for product in after if None not in product)
            return Joined(found, left) if left else found
    return term


def test_after(test: Test, change: Callable[[int], Term | None]) -> Test | None:
    """A test where each register held what `change` says; None: it asks about nothing, and holds."""
    match test:
        case Compares(before=before) | Elapsed(before=before):
            found = substituted(before, change)
            return None if found is None else dataclasses.replace(test, before=found)
        case Computes(operands=operands):
            after = [(value, known) for value, term in operands if (known := substituted(term, change)) is not None]
            return dataclasses.replace(test, operands=tuple(after)) if len(after) == len(operands) else None
    raise TypeError(test)


@record
class Renumbering:
    """New numbers of registers, by the old ones."""

    registers: Mapping[int, int]

    def term(self, term: Term | None) -> Term | None:
        """A term with the new numbers."""
        return substituted(term, lambda register: Before(self.registers[register]))

    def test(self, test: Test) -> Test:
        """A test with the new numbers."""
        found = test_after(test, lambda register: Before(self.registers[register]))
        assert found is not None
        return found

    def stores(self, stores: Iterable[Store]) -> frozenset[Store]:
        """Stores with the new numbers."""
        return frozenset(Store(self.registers[store.register], self.term(store.term)) for store in stores)


def term_text(term: Term | None, names: Sequence[str]) -> str:
    """A term as text; names: of registers, by number."""
    match term:
        case Before(register=register):
            return f"({names[register]})"
        case Now(value=value):
            return describe_expression(value)
        case Gathered(how=how, before=before, value=value):
            inside = [term_text(before, names)] if before is not None else []
            return f"{how}({', '.join([*inside, describe_expression(value)])})"
        case Each(before=before) | Element(before=before):
            return term_text(before, names)
        case Joined(before=before, products=products):
            own = [" x ".join(term_text(part, names) for part in product) for product in products]
            return f"set({', '.join([*([term_text(before, names)] if before is not None else []), *own])})"
    return "nothing"


def test_text(test: Test, names: Sequence[str]) -> str:
    """A test as text: `v = (v of x)`, `ts - (time of x) <= 5`."""
    match test:
        case Compares(before=before, now=Derived(kind=kind, negated=negated)):
            place = term_text(before, names)
            if kind == "ended earlier":
                return f"no {negated} after the time of {place} and before this time"
            if kind in {"ended before begin", "ended by begin"}:
                return f"no {negated} between {place} and where this event begins"
            return f"no {negated} between {place} and this event" if kind == "ended before" else f"no {negated} since {place}"
        case Compares(before=before, operator=operator, now=now):
            return f"{describe_expression(now)} {FLIPPED[operator]} {term_text(before, names)}"
        case Elapsed(before=before, now=now, interval=interval):
            unit = time_unit(now.type, "") if isinstance(now, Time) else None
            return f"{describe_expression(now)} - {term_text(before, names)} {describe_bounds(interval, unit)}"
        case Computes(condition=condition):
            return describe_expression(condition)
    raise TypeError(test)
