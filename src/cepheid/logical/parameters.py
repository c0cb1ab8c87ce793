"""Parameters in places without an expression: durations, counts and the lists after IN.

Comes in: a part of the syntax tree that may be a parameter, and the given values. Goes out: the constant for this part, with the place of the
parameter, so binding continues as if the constant had been written. A parameter without a value is a BindError, or open: then nothing that depends on
its value is checked (see `Context.partial`).
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

from cepheid.errors import LimitError, QuerySyntaxError
from cepheid.language import syntax
from cepheid.language.limits import MAX_COUNT, MAX_DIGITS, MAX_LIST
from cepheid.language.parser import parse_duration
from cepheid.language.values import duration_of
from cepheid.language.words import write_name
from cepheid.logical import constants
from cepheid.logical.context import suggestion
from cepheid.logical.plan import OpenNumber
from cepheid.logical.types import Mismatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.errors import Span
    from cepheid.logical.context import Context
    from cepheid.logical.plan import Literal

LONGEST_SHOWN = 40
"""Characters of a value that a message shows."""


def parameters(node: syntax.Node) -> Iterator[syntax.Parameter]:
    """The parameters in a part of the tree, as often as they stand there."""
    if isinstance(node, syntax.Parameter):
        yield node
    for child in node.children():
        yield from parameters(child)


def lists(node: syntax.Node) -> Iterator[str]:
    """The names of the parameters that stand for the whole list of an IN."""
    if isinstance(node, syntax.In) and isinstance(node.options, syntax.Parameter):
        yield node.options.name
    for child in node.children():
        yield from lists(child)


def value_of(context: Context, node: syntax.Parameter) -> object:
    """The value given for a parameter, as Python has it; raises BindError where there is none."""
    if node.name not in context.args:
        help_ = suggestion(node.name, context.args, what="given are")
        raise context.error(f"no value for parameter `:{node.name}`", node.span, *help_, f"give it in args={{'{node.name}': ..}}")
    try:
        return constants.plain(context.args[node.name])
    except Mismatch as found:
        raise context.error(found.fact, node.span, *found.help) from None


def duration(context: Context, written: syntax.Duration | syntax.Parameter) -> syntax.Duration | None:
    """A duration, or the value of the parameter that stands for it; None while it is open."""
    if isinstance(written, syntax.Duration):
        return written
    if context.is_open(written):
        return None
    given = value_of(context, written)
    try:
        found = duration_from(given)
    except LimitError as error:
        raise _limit(context, error.fact, written.span, *error.help) from None
    if found is None:
        raise context.error(
            f"{_named(written)} is {shown(given)}, which is not a duration",
            written.span,
            "give a timedelta or a text such as '5s', or a number where the time column is numeric",
        )
    return dataclasses.replace(found, span=written.span)


def duration_from(given: object) -> syntax.Duration | None:
    """A timedelta, a text such as "5s" or a number (without a unit) as a duration, exactly; None for what is none.

    A float is the number that Python prints for it. Raises LimitError for a number of more than `MAX_DIGITS` digits.
    """
    match given:
        case bool():
            return None
        case dt.timedelta() as length:
            return duration_of(length)
        case int() | float() | Decimal() as number:
            exact = Decimal(repr(float(number))) if isinstance(number, float) else Decimal(number)
            return syntax.Duration(_checked(exact), None) if exact.is_finite() else None
        case str() as text:
            try:
                found = parse_duration(text)
            except QuerySyntaxError:
                return None
            return found if isinstance(found, syntax.Duration) else None
    return None


def _checked(exact: Decimal) -> Decimal:
    # Not counted in its text, which may be very long.
    digits, exponent = len(exact.as_tuple().digits), exact.as_tuple().exponent
    assert isinstance(exponent, int)
    if max(digits + max(exponent, 0), -exponent) > MAX_DIGITS:
        raise LimitError(f"a number has more than {MAX_DIGITS} digits (MAX_DIGITS)", help="round it, or give a timedelta")
    return exact


def count(context: Context, written: int | syntax.Parameter, *, otherwise: int) -> int:
    """A number of events, repetitions or matches, or the value of the parameter that stands for it; `otherwise` is what an open one counts as."""
    if not isinstance(written, syntax.Parameter):
        return written
    if context.is_open(written):
        return OpenNumber(otherwise, text_of(written))
    given = value_of(context, written)
    if not isinstance(given, int) or isinstance(given, bool):
        raise context.error(f"{_named(written)} is {shown(given)}, which is not a whole number", written.span, "give an int, 1 or more")
    if given < 0:
        raise context.error(f"{_named(written)} is {shown(given)}, and a count cannot be negative", written.span, "give an int, 1 or more")
    if given > MAX_COUNT:
        raise _limit(
            context,
            f"{_named(written)} is {shown(given)}; the limit of a count is {MAX_COUNT} (MAX_COUNT)",
            written.span,
            "leave the count out for no limit",
        )
    return given


def options(context: Context, node: syntax.Parameter) -> tuple[Literal, ...]:
    """The values of the list that a parameter behind IN stands for; raises Mismatch for one that is no value."""
    given = value_of(context, node)
    if not isinstance(given, list | tuple | range):
        raise context.error(
            f"{_named(node)} is {shown(given)}, but a list is needed here",
            node.span,
            f"give a list: args={{'{node.name}': [..]}}, or write IN ({text_of(node)}) for one value",
        )
    if not given:
        raise context.error(
            f"{_named(node)} is an empty list, and IN needs at least one value",
            node.span,
            "leave the condition out, or give [None]: no value is in that list",
        )
    if len(given) > MAX_LIST:
        raise _limit(
            context,
            f"{_named(node)} is {shown(given)}; the limit is {MAX_LIST:,} (MAX_LIST)",
            node.span,
            "move the list into the data: an attribute of the events that says whether they are in it",
        )
    found = []
    for number, item in enumerate(given):
        try:
            found.append(constants.parameter(node.name, item, node.span))
        except Mismatch as wrong:
            raise context.error(f"{wrong.fact} (item {number} of its list)", node.span, *wrong.help) from None
    return tuple(found)


def said(context: Context, *written: object) -> tuple[str, ...]:
    """The help line that says which values parameters have, where a message does not show them."""
    named = dict.fromkeys(part for part in written if isinstance(part, syntax.Parameter) and part.name in context.args)
    values = [f"{_named(part)} is {shown(value_of(context, part))}" for part in named]
    return (", ".join(values),) if values else ()


def place(span: Span, *written: object) -> Span:
    """The place of the parameters among parts of a construct, or of the whole construct at `span` where there is none."""
    found = [part.span for part in written if isinstance(part, syntax.Parameter)]
    return found[0].to(found[-1]) if found else span


def shown(given: object) -> str:
    """A value in a message: short, whatever it is."""
    if given is None:
        return "NULL"
    if isinstance(given, list | tuple | range):
        return f"a list of {len(given):,} {'value' if len(given) == 1 else 'values'}"
    if isinstance(given, int) and abs(given) >= 10**LONGEST_SHOWN:
        # Python refuses to print integers of thousands of digits.
        return f"a number of more than {LONGEST_SHOWN} digits"
    text = " ".join((str(given) if isinstance(given, Decimal | dt.date | dt.timedelta) else repr(given)).split())
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}.."


def text_of(node: syntax.Parameter) -> str:
    """A parameter as a query has it."""
    return f":{write_name(node.name)}"


def _named(node: syntax.Parameter) -> str:
    return f"`:{node.name}`"


def _limit(context: Context, fact: str, span: Span, *help_: str) -> LimitError:
    return LimitError(fact, help=help_, text=context.text or None, span=span)
