"""Conditions that compute with values of several events, as steps: `abs(b.v - a.v) < 5`, `c.v > a.v OR c.city != b.city`, `coalesce(b.w, a.w) > 8`.

The OPERANDS of such a condition are its largest expressions over one variable each. What an event keeps of itself is its operands, and the last event
computes: `registers.Computes`. No index answers this, for it may hold for any of the values kept; so it is computed for each.

It is computed by STEPS over one result. What a step computes with is an operand, a constant, or the result that was pushed last; AND, OR, CASE,
COALESCE and IN leave steps out. Here are the conditions that can be computed so, over integers (times, durations and short decimals too), doubles,
and decimals of more than WORD_DIGITS, which are WIDE: an operand is two, the HALVES of its units. Booleans, dates and texts are compared, passed on,
and asked whether they are NULL.

What else an operator does (functions of texts, LIKE, parts of times) has no steps. Then the smallest condition around it is a QUESTION, which Python
answers: one step for each of its values, and one that asks (`engine.evaluations.guards.guarded_memo`). So every condition has steps.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from cepheid.automata.correlation import variables
from cepheid.errors import LimitError
from cepheid.logical.folding import EXACT, INT64_MAX, INT64_MIN
from cepheid.logical.plan import HALVES, Apply, Expression, Literal
from cepheid.logical.types import FLIPPED, is_two_words, type_of
from cepheid.schema import NANOSECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

TOGETHER = {"+": "+", "-": "reversed -", "*": "*", "/": "reversed /", "%": "reversed %", **FLIPPED}
"""Operators of two, and what they are where the second argument is the result so far."""

JUMPS = {"and": "unless", "or": "if", "coalesce": "if known"}
"""Operators that leave out what comes after an argument, and which one does so."""

MOST_STEPS = 128
"""Steps of a condition that is computed; one of more is a question."""

MOST_PUSHED = 8
"""Results that are pushed at once; where there are more, the condition is a question."""

MOST_ASKED = 62
"""Values of a question."""


class Step(NamedTuple):
    """What becomes of the result so far.

    operator: "load", "push", one of TOGETHER or of the operators of one argument; "fit": NULL from a constant on, and up to its opposite; "jump", or
    one of JUMPS: so many steps `ahead` are left out, always, where the result is not true, is true, is not NULL. "high": this is the upper half of
    what the next step computes with; "widen", "narrow": the result so far becomes wide, or a word. "ask": the value is the next one of a question;
    or without one, the answer is the result. value: the operand or constant; None without one, and where it is what was `popped`.
    question: see above. real, wide: what numbers are, if not whole. digits: behind the point, of what is rounded or becomes a double; of what is
    divided 1 + so many, 0: the rest is wanted.
    """

    operator: str
    value: Expression | None = None
    real: bool = False
    ahead: int = 0
    popped: bool = False
    wide: bool = False
    digits: int = 0
    question: Expression | None = None


Steps = list[Step] | None
"""The steps of a value; None where it has none."""


def operands(condition: Expression) -> list[Expression]:
    """What a condition computes with; of one variable that is itself. Raises LimitError as `steps`.

    A constant text is one, too: it has a number where events have one.
    """
    if len(variables(condition)) == 1:
        return [condition]
    values = dict.fromkeys(step.value for step in steps(condition) if step.value is not None)
    return [value for value in values if variables(value) or (isinstance(value, Literal) and isinstance(value.value, str))]


def steps(condition: Expression) -> list[Step]:
    """The steps of a condition. Raises LimitError for a question with more than MOST_ASKED values."""
    found = _chain(condition)
    if found is None or len(found) > MOST_STEPS:
        return _question(condition)
    # Between steps that are left out, as much is pushed as popped.
    depth = pushed = 0
    for step in found:
        depth += (step.operator == "push") - step.popped
        pushed = max(pushed, depth)
    return found if pushed <= MOST_PUSHED else _question(condition)


def _chain(value: Expression) -> Steps:
    """The steps after which a value is the result."""
    if len(variables(value)) < 2:
        return _loaded(value) if variables(value) or isinstance(value, Literal) else None
    assert isinstance(value, Apply)
    made = WAYS.get(value.operator)
    found = None if made is None else made(value)
    return _question(value) if found is None and pa.types.is_boolean(value.type) else found


def _question(condition: Expression) -> list[Step]:
    """The steps that ask for a condition."""
    values = list(dict.fromkeys(_asked(condition)))
    if len(values) > MOST_ASKED:
        raise LimitError(
            f"a condition between events computes with {len(values)} of their values at once, and the limit is {MOST_ASKED} (MOST_ASKED)",
            help="compute parts of it that speak of one event in columns of the events",
            span=condition.span,
        )
    return [*(Step("ask", value) for value in values), Step("ask", question=condition)]


def _asked(value: Expression) -> Iterator[Expression]:
    """The values of a question: its largest expressions over one variable; of a wide one its halves."""
    if len(variables(value)) == 1:
        yield from _halves(value) if is_two_words(value) else [value]
    elif isinstance(value, Apply):
        for argument in value.arguments:
            yield from _asked(argument)


def _loaded(value: Expression) -> list[Step]:
    """An operand or a constant."""
    if not is_two_words(value):
        return [Step("load", value, _is_real(value))]
    if not isinstance(value, Literal):
        upper, lower = _halves(value)
        return [Step("high", upper, wide=True), Step("load", lower, wide=True)]
    if not isinstance(value.value, Decimal):
        return [Step("load", Literal(None, pa.int64()), wide=True)]
    return _with_constant("load", int(value.value.scaleb(type_of(value).scale, EXACT)), wide=True)


def _halves(value: Expression) -> list[Expression]:
    """The upper and the lower half of a wide value."""
    return [Apply(half, (value,), pa.int64()) for half in HALVES]


def _with_constant(operator: str, number: int, *, wide: bool) -> list[Step]:
    """An operator with a whole number."""
    fits = INT64_MIN <= number <= INT64_MAX
    lower = (number + (1 << 63)) % (1 << 64) - (1 << 63)
    return [*([] if fits else [Step("high", _whole(number - lower >> 64), wide=True)]), Step(operator, _whole(lower), wide=wide)]


def _as(value: Expression, *, wide: bool) -> Steps:
    """The steps of a value, as a wide number where that is wanted."""
    found = _chain(value)
    if found is None or not wide or is_two_words(value):
        return found
    return [found[0]._replace(wide=True)] if _is_loaded(found) else [*found, Step("widen", wide=True)]


def _is_loaded(found: list[Step]) -> bool:
    """Whether steps load an operand or a constant, and do nothing else."""
    return found[-1].operator == "load" and all(step.operator == "high" for step in found[:-1])


def _joined(parts: Iterable[Steps]) -> Steps:
    found: list[Step] = []
    for part in parts:
        if part is None:
            return None
        found += part
    return found


# --------------------------------------------------------------------------------------------------------------------- numbers


def _alone(value: Apply) -> Steps:
    return (
        _joined([_chain(value.arguments[0]), [Step(value.operator, None, _is_real(value), wide=is_two_words(value))]])
        if _is_number(value)
        else None
    )


def _rounded(value: Apply) -> Steps:
    (argument,) = value.arguments
    if pa.types.is_int64(type_of(value)):
        return _chain(argument)
    if _is_real(value):
        return _alone(value)
    rounded = [Step(value.operator, wide=True, digits=type_of(argument).scale)]
    scaled = _with_constant("*", 10 ** type_of(value).scale, wide=True)
    return _joined([_as(argument, wide=True), rounded, scaled, _fitting(value, wide=True), _narrowed(value, wide=True)])


def _cast(value: Apply) -> Steps:
    """Whole numbers and decimals as doubles, or as more of a finer unit or scale."""
    (argument,) = value.arguments
    source, target = type_of(argument), type_of(value)
    if pa.types.is_int64(source) and _is_real(value):
        return _joined([_chain(argument), [Step("cast", None, real=True)]])
    if pa.types.is_decimal(source) and _is_real(value):
        return _joined([_as(argument, wide=True), [Step("cast", wide=True, digits=source.scale)]])
    if pa.types.is_decimal(target) and (pa.types.is_int64(source) or pa.types.is_decimal(source)):
        times, wide = 10 ** (target.scale - (0 if pa.types.is_int64(source) else source.scale)), is_two_words(value)
        return _joined([_as(argument, wide=wide), _with_constant("*", times, wide=wide) if times > 1 else [], _fitting(value, wide=wide)])
    if any(check(source) and check(target) for check in (pa.types.is_timestamp, pa.types.is_duration)):
        return _joined([_chain(argument), [Step("*", _whole(NANOSECONDS[source.unit] // NANOSECONDS[target.unit]))]])
    return None


def _computed(value: Apply) -> Steps:
    if not _is_number(value):
        return None
    wide = any(map(is_two_words, [value, *value.arguments]))
    digits = 0
    if pa.types.is_decimal(type_of(value)):
        scale, scales = type_of(value).scale, [type_of(argument).scale for argument in value.arguments]
        if value.operator == "/":
            wide, digits = True, 1 + scale - scales[0] + scales[1]
        elif (sum(scales) != scale) if value.operator == "*" else ({*scales} != {scale}):
            return None
    return _joined([_with_both(value, wide=wide, digits=digits), _fitting(value, wide=wide), _narrowed(value, wide=wide)])


def _with_both(value: Apply, *, wide: bool, digits: int = 0) -> Steps:
    """Both arguments, and the operator on them; the one that is an operand or a constant needs no result of its own."""
    left, right = value.arguments
    first, second, real = _as(left, wide=wide), _as(right, wide=wide), _is_real(left)
    operator, turned = value.operator, TOGETHER[value.operator]
    if first is None or second is None:
        return None
    last = Step(turned, None, real, wide=wide, digits=digits)
    if _is_loaded(second):
        return [*first, *second[:-1], last._replace(operator=operator, value=second[-1].value)]
    if _is_loaded(first):
        return [*second, *first[:-1], last._replace(value=first[-1].value)]
    return [*first, Step("push", None, real, wide=wide), *second, last._replace(popped=True)]


def _fitting(value: Expression, *, wide: bool) -> list[Step]:
    """What makes a decimal NULL that has too many digits."""
    kind = type_of(value)
    return _with_constant("fit", 10**kind.precision, wide=wide) if pa.types.is_decimal(kind) else []


def _narrowed(value: Expression, *, wide: bool) -> list[Step]:
    """What makes a wide number a word, where its type is no wide one."""
    return [Step("narrow", wide=True)] if wide and not is_two_words(value) else []


def _whole(number: int) -> Literal:
    return Literal(number, pa.int64())


# ------------------------------------------------------------------------------------------------------------------ conditions


def _compared(value: Apply) -> Steps:
    kinds = [type_of(argument) for argument in value.arguments]
    if len({kind.scale for kind in kinds if pa.types.is_decimal(kind)}) > 1:
        return None
    return _with_both(value, wide=any(map(is_two_words, value.arguments)))


def _jumping(value: Apply) -> Steps:
    return _either(JUMPS[value.operator], [*map(_chain, value.arguments)])


def _either(jump: str, arguments: list[Steps]) -> Steps:
    """The arguments up to the first one that decides."""
    found: list[Step] = []
    for own in reversed(arguments):
        if own is None:
            return None
        # A last one that may be NULL is made true or not, too.
        last = not found and (jump == "if known" or own[-1].operator in FLIPPED)
        found = [*own, *([] if last else [Step(jump, ahead=len(found))]), *found]
    return found


def _in(value: Apply) -> Steps:
    first, *options = value.arguments
    known = [option for option in options if isinstance(option, Literal) and option.value is not None]
    return _either("if", [_compared(Apply("=", (first, option), pa.bool_())) for option in known]) if known else None


def _case(value: Apply) -> Steps:
    """The first value whose condition is true."""
    *pairs, otherwise = value.arguments
    found = _chain(otherwise)
    for condition, then in reversed(list(zip(pairs[::2], pairs[1::2], strict=True))):
        asked, own = _chain(condition), _chain(then)
        if asked is None or own is None or found is None:
            return None
        found = [*asked, Step("unless", ahead=len(own) + 1), *own, Step("jump", ahead=len(found)), *found]
    return found


def _answered(value: Apply) -> Steps:
    return _joined([_chain(value.arguments[0]), [Step(value.operator)]])


WAYS: dict[str, Callable[[Apply], Steps]] = {
    **dict.fromkeys(["abs", "negate"], _alone),
    **dict.fromkeys(["floor", "ceil"], _rounded),
    "cast": _cast,
    **dict.fromkeys(["+", "-", "*", "/", "%"], _computed),
    **dict.fromkeys(FLIPPED, _compared),
    **dict.fromkeys(JUMPS, _jumping),
    "in": _in,
    "case": _case,
    **dict.fromkeys(["not", "is_null"], _answered),
}
"""How an operator over several variables is computed."""


def _is_real(value: Expression) -> bool:
    return bool(pa.types.is_float64(type_of(value)))


def _is_number(value: Expression) -> bool:
    """Whether a value can be computed with."""
    kind = type_of(value)
    whole = (pa.types.is_int64, pa.types.is_timestamp, pa.types.is_duration, pa.types.is_decimal)
    return _is_real(value) or any(check(kind) for check in whole)
