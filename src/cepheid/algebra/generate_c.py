"""The detector of one expression as one C99 file of static size: for where there is no Python, and no memory to ask for.

Source: event-algebra, Figure 3 (Figure 2 unrolled) with Figure 4 for sequences, in rings that binary search reads (section 5.3).

Of an instance that ends now, the generated code has only where it starts, -1 for none ("start(<>) = -1" in the paper), and what it was made from. Its
marks, the events that it is made of, are copied where a sequence or a conjunction stores it, and into a match: never for what comes to nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from textwrap import dedent, indent
from typing import TYPE_CHECKING

from cepheid.algebra.expression import Conjunction, Disjunction, Length, Negation, Primitive, Restriction, Sequence
from cepheid.algebra.generate import unrolled
from cepheid.errors import InputError, LimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cepheid.algebra.expression import Expression
    from cepheid.algebra.generate import Step, Unrolled
    from cepheid.algebra.memory import Rate

MOST_PRIMITIVES = 64
"""The bits of `occurring`."""

MOST_BYTES = 2**31 - 1
"""Of the state: what a compiler of any platform of 32 bits takes as one object."""

MARK_BYTES = 32
"""Of a mark, with a value of 8 bytes: value, position, time, variable."""

INSTANCE_BYTES = 32
"""Of a stored instance beside its marks: where it starts and ends, and when."""


def generate_c(expression: Expression, *, rate: Rate | None = None, prefix: str = "detector") -> str:
    """The source of a C99 file with the detector of one expression: the same for the same arguments, in ASCII.

    rate: how often events come at most. prefix: what all names of the file begin with (in capitals, where they are macros). The file allocates
    nothing and includes only <stdbool.h> and <stdint.h>; its beginning says how its `PREFIX_push` is called. It gives what
    `cepheid.algebra.Detector.push` gives. O(m log n) per event, m sub-expressions, n instances in the longest ring, and the marks that it copies.

    Raises LimitError where nothing bounds a sequence (the message names it), with more than 64 different primitives, and where the state takes more
    than MOST_BYTES; InputError where the prefix cannot begin names of C.
    """
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", prefix) or re.fullmatch(_TAKEN, prefix):
        raise InputError(f"prefix={prefix!r} cannot begin the names of a C file", help="letters, digits and _, as in `detector`")
    code = unrolled(expression, rate)
    if not code.memory.bounded:
        raise LimitError(
            f"a detector in C has a static size, and there is {code.memory}",
            help="bound it by WITHIN, pass rate=Rate(..), or use generate_python: its rings grow",
        )
    if len(code.primitives) > MOST_PRIMITIVES:
        raise LimitError(
            f"the expression has {len(code.primitives)} different primitives, and a detector in C has bits for {MOST_PRIMITIVES}",
            help="use generate_python, which has no such limit",
        )
    return _text(_Names(code, prefix))


_TAKEN = r"u?int(_least|_fast)?\d+|u?intmax|u?intptr|size|ptrdiff|wchar|max_align"
"""Prefixes whose types the standard has."""


@dataclass(slots=True)
class _Part:
    """The code of one step.

    state: fields of the detector. begin: what they are at the beginning. bytes: what they take at most. choice: fields that keep what its instance
    was made from. check: what is asked before anything has changed.
    """

    body: str
    state: list[str] = field(default_factory=list)
    begin: list[str] = field(default_factory=list)
    bytes: int = 0
    choice: list[str] = field(default_factory=list)
    check: str = ""


class _Names:
    """What the parts of a file have in common: names, and what is known of each step. p: the prefix; macro: in capitals."""

    def __init__(self, code: Unrolled, prefix: str) -> None:
        self.code = code
        self.steps = code.steps
        self.p = prefix
        self.macro = prefix.upper()
        self.bits = _identifiers(f"{self.macro}_BIT_", code.primitives)
        self.variables = _identifiers(f"{self.macro}_VARIABLE_", code.variables)
        self.marks = _marks(code.steps)
        self.timed = _timed(code.steps)
        self.times = _times(code.steps)
        self.last = len(code.steps) - 1

    def collect(self, number: int) -> str:
        """The function that gives the marks of the instance of a step: a negation and a restriction have those of their left side."""
        while isinstance(self.steps[number].expression, Negation | Restriction):
            number = self.steps[number].left
        return f"{self.p}_marks_{number}"

    def held(self, number: int) -> str:
        """The type of a stored instance of a step."""
        return f"{self.p}_held_{self.marks[number]}_t"

    def held_bytes(self, number: int) -> int:
        """How many bytes a stored instance of a step takes at most."""
        marks = self.marks[number]
        return INSTANCE_BYTES + (8 + marks * MARK_BYTES if marks else 0)

    def hold(self, number: int, place: str) -> str:
        """Statements that store the instance of a step that ends now."""
        marks = f"held->count = {self.collect(number)}(&now, held->marks);" if self.marks[number] else ""
        return _block(f"""
            {self.held(number)} *const held = &{place};
            held->start = a{number};
            held->start_time = {self.times[number]};
            held->end = position;
            held->end_time = time;
            {marks}
        """)


def _marks(steps: tuple[Step, ...]) -> list[int]:
    """How many marks an instance of each step has at most; 0 where no match shows them."""
    marks: list[int] = []
    for step in steps:
        below = [marks[number] for number in step.below]
        match step.expression:
            case Primitive(shown=shown):
                marks.append(max(1, len(shown)))  # C has no arrays of nothing
            case Disjunction():
                marks.append(max(below))
            case Conjunction() | Sequence():
                marks.append(sum(below))
            case _:
                marks.append(below[0])
    return [most if step.shown else 0 for step, most in zip(steps, marks, strict=True)]


def _times(steps: tuple[Step, ...]) -> list[str]:
    """What the time is at which the instance of each step starts."""
    times: list[str] = []
    for step in steps:
        below = [times[number] for number in step.below]
        match step.expression:
            case Primitive():
                times.append("time")
            case Conjunction() | Sequence():
                times.append(f"t{step.number}")
            case _:
                times.append(below[0] if len(set(below)) == 1 or isinstance(step.expression, Negation) else f"t{step.number}")
    return times


def _timed(steps: tuple[Step, ...]) -> set[int]:
    """The steps of whose instances the time of the start is asked: what is returned, what is stored, what is bounded in time."""
    timed = {len(steps) - 1}
    for step in reversed(steps):
        asked = step.number in timed
        match step.expression:
            case Conjunction():
                timed.update(step.below)
            case Sequence():
                timed.add(step.left)
            case Restriction(length=Length(time=time)) if asked or (time is not None and 0 <= time < 1 << _TIME_BITS):
                timed.add(step.left)
            case Negation() if asked:
                timed.add(step.left)
            case Disjunction() if asked:
                timed.update(step.below)
            case _:
                pass
    return timed


# ------------------------------------------------------------------------------------------------------------ the operators (Figure 2)


def _primitive(names: _Names, step: Step) -> _Part:
    assert isinstance(step.expression, Primitive)
    return _Part(f"const int64_t a{step.number} = (occurring & {names.bits[step.expression.name]}) != 0 ? position : -1;")


def _disjunction(names: _Names, step: Step) -> _Part:
    n, left, right = step.number, step.left, step.right
    body = f"const int64_t a{n} = a{left} <= a{right} ? a{right} : a{left};"
    if n in names.timed and names.times[n] == f"t{n}":
        body += f"\nconst int64_t t{n} = a{left} <= a{right} ? {names.times[right]} : {names.times[left]};"
    if not step.shown:
        return _Part(body)
    return _Part(f"{body}\nnow.right_{n} = a{left} <= a{right};", choice=[f"bool right_{n};"])


def _conjunction(names: _Names, step: Step) -> _Part:
    n, left, right = step.number, step.left, step.right
    same = left == right  # then the left side is never the one that is stored
    sides = {"right": right} if same else {"left": left, "right": right}
    holds = "\n".join(
        f"if (self->{side}_{n}.start < a{of}) {{\n{indent(names.hold(of, f'self->{side}_{n}'), _INDENT)}\n}}" for side, of in sides.items()
    )
    timed = n in names.timed
    keep = [f"now.{side}_{n} = &self->{side}_{n};" for side in sides] + ([] if same else [f"now.current_{n} = a{right} <= a{left};"])

    def union(current: int, side: str) -> str:
        stored = f"self->{side}_{n}"
        return _block(f"""
            a{n} = a{current} <= {stored}.start ? a{current} : {stored}.start;
            {f"t{n} = a{current} <= {stored}.start ? {names.times[current]} : {stored}.start_time;" if timed else ""}
        """)

    occurs = " || ".join(f"a{of} >= 0" for of in sides.values())
    both = " && ".join([f"({occurs})", *(f"self->{side}_{n}.start >= 0" for side in sides)])
    made = union(left, "right")
    if not same:
        made = f"if (a{right} <= a{left}) {{\n{indent(made, _INDENT)}\n}} else {{\n{indent(union(right, 'left'), _INDENT)}\n}}"
    lines = [
        holds,
        f"int64_t a{n} = -1;",
        *([f"int64_t t{n} = time;"] if timed else []),
        *(keep if step.shown else []),
        f"if ({both}) {{\n{indent(made, _INDENT)}\n}}",
    ]
    pointers = [f"const {names.held(of)} *{side}_{n};" for side, of in sides.items()] + ([] if same else [f"bool current_{n};"])
    return _Part(
        "\n".join(lines),
        state=[f"{names.held(of)} {side}_{n};" for side, of in sides.items()],
        begin=[f"self->{side}_{n}.start = -1;" for side in sides],
        bytes=sum(names.held_bytes(of) for of in sides.values()),
        choice=pointers if step.shown else [],
    )


def _negation(_: _Names, step: Step) -> _Part:
    n = step.number
    body = f"""
        if (self->latest_{n} < a{step.right}) {{
            self->latest_{n} = a{step.right};
        }}
        const int64_t a{n} = self->latest_{n} < a{step.left} ? a{step.left} : -1;
    """
    return _Part(_block(body), state=[f"int64_t latest_{n};"], begin=[f"self->latest_{n} = -1;"], bytes=8)


def _restriction(names: _Names, step: Step) -> _Part:
    assert isinstance(step.expression, Restriction)
    operand = step.left
    longer = _longer(step.expression.length, names.times[operand], f"a{operand}")
    return _Part(f"const int64_t a{step.number} = a{operand} < 0 || {longer} ? -1 : a{operand};")


def _sequence(names: _Names, step: Step) -> _Part:
    return _single(names, step) if step.single else _ring(names, step)


def _single(names: _Names, step: Step) -> _Part:
    """The right side is one event: what was stored last ended before. Two places, so that what a match is made from is not overwritten at once."""
    n, left, right = step.number, step.left, step.right
    held = f"self->stored_{n}[self->last_{n}]"
    later = f"a{left} >= 0" if names.steps[left].instant else f"a{left} > {held}.start"
    body = f"""
const int64_t a{n} = a{right} >= 0 ? {held}.start : -1;
{f"const int64_t t{n} = {held}.start_time;" if n in names.timed else ""}
{f"now.before_{n} = &{held};" if step.shown else ""}
if ({later}) {{
    self->last_{n} = 1 - self->last_{n};
{indent(names.hold(left, held), _INDENT)}
}}"""
    return _Part(
        _block(body),
        state=[f"{names.held(left)} stored_{n}[2];", f"uint32_t last_{n};"],
        begin=[f"self->last_{n} = 0;", f"self->stored_{n}[0].start = -1;", f"self->stored_{n}[0].start_time = 0;"],
        bytes=2 * names.held_bytes(left) + 8,
        choice=[f"const {names.held(left)} *before_{n};"] if step.shown else [],
    )


def _ring(names: _Names, step: Step) -> _Part:
    """One place more than its instances: that before the head keeps the instance that left last ("l_i" in the paper), so nothing is moved."""
    assert isinstance(step.expression, Sequence)
    n, left, right, instant = step.number, step.left, step.right, names.steps[step.left].instant
    capacity = max(1, step.capacity or 0)
    places, held = capacity + 1, names.held(left)
    oldest = f"self->ring_{n}[self->head_{n}]"
    longer = _longer(step.expression.length, f"{oldest}.end_time", f"{oldest}.end")
    body = f"""
while (self->count_{n} > 0 && ({longer})) {{
    self->head_{n} = self->head_{n} + 1 < {places} ? self->head_{n} + 1 : 0;
    self->count_{n}--;
    self->settled_{n} = true;
}}
int64_t a{n} = -1;
{f"int64_t t{n} = time;" if n in names.timed else ""}
{f"now.before_{n} = &self->ring_{n}[0];" if step.shown else ""}
if (a{right} >= 0) {{
    uint32_t low = 0, high = self->count_{n};
    while (low < high) {{
        const uint32_t middle = (low + high) / 2;
        const uint32_t place = self->head_{n} + middle;
        if (self->ring_{n}[place < {places} ? place : place - {places}].end < a{right}) {{
            low = middle + 1;
        }} else {{
            high = middle;
        }}
    }}
    if (low > 0 || self->settled_{n}) {{
        const uint32_t place = self->head_{n} + low + {places - 1};
        const {held} *const before = &self->ring_{n}[place % {places}];
        a{n} = before->start;
        {f"t{n} = before->start_time;" if n in names.timed else ""}
        {f"now.before_{n} = before;" if step.shown else ""}
    }}
}}
if ({f"a{left} >= 0" if instant else f"a{left} > self->latest_{n}"}) {{
    const uint32_t place = self->head_{n} + self->count_{n};
{indent(names.hold(left, f"self->ring_{n}[place < {places} ? place : place - {places}]"), _INDENT)}
    {"" if instant else f"self->latest_{n} = a{left};"}
    self->count_{n}++;
}}"""
    latest = ([], []) if instant else ([f"int64_t latest_{n};"], [f"self->latest_{n} = -1;"])
    return _Part(
        _block(body),
        state=[f"{held} ring_{n}[{places}];", *latest[0], f"uint32_t head_{n}, count_{n};", f"bool settled_{n};"],
        begin=[f"self->head_{n} = 0;", f"self->count_{n} = 0;", f"self->settled_{n} = false;", *latest[1]],
        bytes=places * names.held_bytes(left) + 24,
        choice=[f"const {held} *before_{n};"] if step.shown else [],
        check=f"if (self->count_{n} == {capacity} && !({longer})) {{\n    return {names.macro}_RATE_BROKEN;\n}}" if step.promised else "",
    )


_PARTS: dict[type[Expression], Callable[[_Names, Step], _Part]] = {
    Primitive: _primitive,
    Disjunction: _disjunction,
    Conjunction: _conjunction,
    Negation: _negation,
    Restriction: _restriction,
    Sequence: _sequence,
}


# ------------------------------------------------------------------------------------------------------------ marks


def _collecting(names: _Names, step: Step) -> str:
    """The function that copies the marks of the instance of a step, where they are shown; each is written after those that it calls."""
    p, n = names.p, step.number
    match step.expression:
        case Primitive(shown=shown):
            set_ = [
                f"marks[{k}].value = now->value;\nmarks[{k}].position = now->position;\nmarks[{k}].time = now->time;\n"
                f"marks[{k}].variable = {names.variables[name]};"
                for k, name in enumerate(sorted(shown))
            ]
            body = "\n".join([*(set_ or ["(void)now;", "(void)marks;"]), f"return {len(set_)};"])
        case Disjunction():
            left, right = names.collect(step.left), names.collect(step.right)
            body = f"return now->right_{n} ? {right}(now, marks) : {left}(now, marks);"
        case Conjunction():
            left, right = names.collect(step.left), names.collect(step.right)
            body = _block(f"""
                const uint32_t count = {left}(now, marks);
                return count + {p}_copy(marks + count, now->right_{n}->marks, now->right_{n}->count);
            """)
            if step.left != step.right:
                other = _block(f"""
                    const uint32_t count = {p}_copy(marks, now->left_{n}->marks, now->left_{n}->count);
                    return count + {right}(now, marks + count);
                """)
                body = f"if (now->current_{n}) {{\n{indent(body, _INDENT)}\n}}\n{other}"
        case Sequence():
            body = _block(f"""
                const uint32_t count = {p}_copy(marks, now->before_{n}->marks, now->before_{n}->count);
                return count + {names.collect(step.right)}(now, marks + count);
            """)
        case _:
            return ""
    return f"static uint32_t {p}_marks_{n}(const {p}_now_t *now, {p}_mark_t *marks)\n{{\n{indent(body, _INDENT)}\n}}\n"


_COPY = """\
static uint32_t {p}_copy({p}_mark_t *to, const {p}_mark_t *from, uint32_t count)
{{
    for (uint32_t i = 0; i < count; i++) {{
        to[i] = from[i];
    }}
    return count;
}}
"""

_SORTED = """\
/* By position, then by variable, each once: what overlaps may have an event twice. */
static uint32_t {p}_sorted({p}_mark_t *marks, uint32_t count)
{{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {{
        const {p}_mark_t mark = marks[i];
        uint32_t place = kept;
        while (place > 0 && (marks[place - 1].position > mark.position
                             || (marks[place - 1].position == mark.position && marks[place - 1].variable > mark.variable))) {{
            place--;
        }}
        if (place > 0 && marks[place - 1].position == mark.position && marks[place - 1].variable == mark.variable) {{
            continue;
        }}
        for (uint32_t j = kept; j > place; j--) {{
            marks[j] = marks[j - 1];
        }}
        marks[place] = mark;
        kept++;
    }}
    return kept;
}}
"""


# ------------------------------------------------------------------------------------------------------------ the file


def _text(names: _Names) -> str:
    parts = [_PARTS[type(step.expression)](names, step) for step in names.steps]
    size = 16 + sum(part.bytes for part in parts)
    if size > MOST_BYTES:
        largest = max(zip(parts, names.steps, strict=True), key=lambda each: each[0].bytes)[1]
        raise LimitError(
            f"the detector takes {size} bytes, and at most {MOST_BYTES} are possible: `{largest.expression}` holds {largest.capacity} instances",
            help="shorten its WITHIN, or pass a lower rate",
        )
    sections = [_header(names, size), _declared(names, parts, size), _functions(names), _init(names, parts), _push(names, parts)]
    return "\n".join([*sections, f"#endif /* {names.macro}_TYPES_ONLY */", ""])


def _header(names: _Names, size: int) -> str:
    p, macro, code = names.p, names.macro, names.code
    promise = [f" * Promised: {_comment(code.promise)}; else {p}_push returns {macro}_RATE_BROKEN."] if code.promise else []
    lines = [
        f"/* Detects {_comment(str(code.expression))}",
        " *",
        f" *     static {p}_t detector;",
        f" *     {p}_init(&detector);",
        f" *     if ({p}_push(&detector, time, occurring, value, &match) == 1) {{ .. match.marks[0 .. match.count - 1] .. }}",
        " *",
        f" * occurring: the bits {macro}_BIT_.. of the primitives that occur at the event. time: never descends, in the steps of the bounds.",
        f" * value: what a match gives of the event, of the type {macro}_VALUE, int64_t unless defined before.",
        f" * {p}_push returns 1 for an instance that ends at this event, 0 for none, or, when nothing has been read,",
        f" * {macro}_TIME_DESCENDS or {macro}_RATE_BROKEN. `match` is written only where it returns 1.",
        f" * It allocates nothing: sizeof({p}_t) <= {size} where a value has 8 bytes.",
        *promise,
        f" * #define {macro}_TYPES_ONLY before to include no functions, only what they need to be called.",
        " * Generated by Cepheid: the detection algorithm for this expression alone, in C99.",
        " */",
        "",
    ]
    return "\n".join(lines)


def _declared(names: _Names, parts: list[_Part], size: int) -> str:
    p, macro = names.p, names.macro
    bits = [f"#define {name} (UINT64_C(1) << {bit}) /* {_comment(text)} */" for bit, (text, name) in enumerate(names.bits.items())]
    variables = [f"#define {name} {number} /* {_comment(text)} */" for number, (text, name) in enumerate(names.variables.items())]
    held = sorted({names.marks[number] for number in _stored(names)})
    state = [line for part in parts for line in part.state]
    return "\n".join(
        [
            f"#ifndef {macro}_TYPES\n#define {macro}_TYPES\n",
            "#include <stdbool.h>\n#include <stdint.h>\n",
            f"#ifndef {macro}_VALUE\n#define {macro}_VALUE int64_t\n#endif\n",
            "/* The primitives, as bits of `occurring`. */",
            *bits,
            "",
            "/* The variables that a match puts events in: unless told otherwise, each primitive is one. */",
            *variables,
            "",
            f"#define {macro}_TIME_DESCENDS (-1)",
            f"#define {macro}_RATE_BROKEN (-2)",
            f"#define {macro}_MARKS {names.marks[names.last]} /* of a match, at most */",
            "",
            _DECLARED.format(p=p, macro=macro),
            *(_HELD.format(p=p, k=k) if k else _HELD_0.format(p=p) for k in held),
            "/* What has been read, as far as it matters. */",
            "typedef struct {",
            "    int64_t position, time;",
            *(f"    {line}" for line in state),
            f"}} {p}_t;",
            "",
            f"typedef char {p}_size_t[sizeof({p}_value_t) > 8 || sizeof({p}_t) <= {size} ? 1 : -1];",
            "",
            f"void {p}_init({p}_t *self);",
            f"int {p}_push({p}_t *self, int64_t time, uint64_t occurring, {p}_value_t value, {p}_match_t *match);",
            "",
            f"#endif /* {macro}_TYPES */",
            "",
            f"#ifndef {macro}_TYPES_ONLY",
            "",
            "/* How the instances that end at the event being read are made. */",
            "typedef struct {",
            f"    {p}_value_t value;",
            "    int64_t position, time;",
            *(f"    {line}" for part in parts for line in part.choice),
            f"}} {p}_now_t;",
            "",
        ]
    )


_DECLARED = """\
typedef {macro}_VALUE {p}_value_t;

/* An event of a match. */
typedef struct {{
    {p}_value_t value;
    int64_t position, time;
    uint32_t variable;
}} {p}_mark_t;

/* An instance: its first and last position, their times, its events by position, then by variable. */
typedef struct {{
    int64_t start, end, start_time, end_time;
    uint32_t count;
    {p}_mark_t marks[{macro}_MARKS];
}} {p}_match_t;
"""

_HELD = """\
typedef struct {{
    int64_t start, end, start_time, end_time;
    uint32_t count;
    {p}_mark_t marks[{k}];
}} {p}_held_{k}_t;
"""

_HELD_0 = """\
typedef struct {{
    int64_t start, end, start_time, end_time;
}} {p}_held_0_t;
"""


def _stored(names: _Names) -> list[int]:
    """The steps whose instances are stored."""
    stored: list[int] = []
    for step in names.steps:
        if isinstance(step.expression, Conjunction):
            stored += step.below
        if isinstance(step.expression, Sequence):
            stored.append(step.left)
    return stored


def _functions(names: _Names) -> str:
    shown = [step for step in names.steps if step.shown]
    copied = [_COPY.format(p=names.p)] if any(isinstance(step.expression, Conjunction | Sequence) for step in shown) else []
    return "\n".join([*copied, *filter(None, (_collecting(names, step) for step in shown)), _SORTED.format(p=names.p)])


def _init(names: _Names, parts: list[_Part]) -> str:
    begin = ["self->position = 0;", "self->time = INT64_MIN;", *(line for part in parts for line in part.begin)]
    return "\n".join([f"void {names.p}_init({names.p}_t *self)", "{", *(f"    {line}" for line in begin), "}", ""])


def _push(names: _Names, parts: list[_Part]) -> str:
    p, macro, last = names.p, names.macro, names.last
    body = [
        f"const int64_t position = self->position;\n{p}_now_t now;\n\nif (time < self->time) {{\n    return {macro}_TIME_DESCENDS;\n}}",
        *(part.check for part in parts if part.check),
        "self->time = time;\nself->position = position + 1;",
        "now.value = value;\nnow.position = position;\nnow.time = time;",
        *(f"\n/* a{step.number}: {_comment(step.text)} */\n{part.body}" for step, part in zip(names.steps, parts, strict=True)),
        f"\nif (a{last} < 0) {{\n    return 0;\n}}",
        f"match->start = a{last};\nmatch->end = position;\nmatch->start_time = {names.times[last]};\nmatch->end_time = time;",
        f"match->count = {p}_sorted(match->marks, {names.collect(last)}(&now, match->marks));\nreturn 1;",
    ]
    head = f"int {p}_push({p}_t *self, int64_t time, uint64_t occurring, {p}_value_t value, {p}_match_t *match)"
    return "\n".join([head, "{", *(indent(lines, _INDENT) for lines in body), "}", ""])


# ------------------------------------------------------------------------------------------------------------ text

_INDENT = " " * 4

_TIME_BITS = 64
"""Of a difference of times."""

_POSITION_BITS = 63
"""Of a difference of positions."""


def _longer(length: Length, start_time: str, start: str) -> str:
    """Whether what began (start_time, start) is longer than a length now. Times never descend: their difference fits an unsigned number."""
    time, events = length
    bounds = [] if time is None else [_above(f"(uint64_t)time - (uint64_t){start_time}", time, _TIME_BITS, "UINT64_C")]
    bounds += [] if events is None else [_above(f"position - {start}", events, _POSITION_BITS, "INT64_C")]
    return " || ".join(bounds)


def _above(what: str, bound: int, bits: int, constant: str) -> str:
    """Whether a difference of so many bits is above a bound, which may be any number."""
    if bound < 0:
        return "true"
    return f"{what} > {constant}({bound})" if bound < 1 << bits else "false"


def _block(text: str) -> str:
    """Lines without their common indentation, and without those that are empty because there was nothing to say."""
    return "\n".join(line for line in dedent(text).splitlines() if line.strip())


def _comment(text: str) -> str:
    """Text that is safe in a comment: one line of ASCII without backslashes, trigraphs, or the signs that open and close comments."""
    text = "".join(c if " " <= c <= "~" and c != "\\" else f"<U+{ord(c):04X}>" for c in text)
    text = re.sub(r"\*(?=/)", "* ", text)
    text = re.sub(r"/(?=\*)", "/ ", text)
    return re.sub(r"\?(?=\?)", "? ", text)


def _identifiers(begin: str, texts: Iterable[str]) -> dict[str, str]:
    """An identifier of C for each text, all different; the text itself behind `begin`, where that is one."""
    texts = list(texts)
    safe = {text: re.sub("[^A-Za-z0-9_]", "_", text) for text in texts}
    found = {text: begin + text for text in texts if safe[text] == text}
    taken = set(found.values())
    for text in texts:
        if text not in found:
            names = (f"{begin}{safe[text]}{end}" for end in ("", *(f"_{k}" for k in range(2, len(texts) + 2))))
            found[text] = next(name for name in names if name not in taken)
            taken.add(found[text])
    return {text: found[text] for text in texts}
