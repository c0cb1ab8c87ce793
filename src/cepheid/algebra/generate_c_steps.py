"""What a detector in C has for each sub-expression: its part of the state, and the statements that read one event.

Comes in: the steps of an expression. Goes out: for each a `Part`, and the function that collects its marks; `generate_c` puts the file together.

Of an instance that ends now, the generated code has only where it starts, -1 for none ("start(<>) = -1" in the paper), and what it was made from. Its
marks, the events that it is made of, are copied where a sequence or a conjunction stores it, and into a match: never for what comes to nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from textwrap import dedent, indent
from typing import TYPE_CHECKING

from cepheid.algebra.expression import Conjunction, Disjunction, Length, Negation, Primitive, Restriction, Sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cepheid.algebra.expression import Expression
    from cepheid.algebra.generate import Step, Unrolled

MARK_BYTES = 32
"""Of a mark, with a value of 8 bytes: value, position, time, variable."""

INSTANCE_BYTES = 32
"""Of a stored instance beside its marks: where it starts and ends, and when."""


@dataclass(slots=True)
class Part:
    """The code of one step.

    state: fields of the detector. begin: what they are at the beginning. bytes: what they take, padded to whole words. choice: fields that keep
    what its instance was made from. check: what is asked before anything has changed.
    """

    body: str
    state: list[str] = field(default_factory=list)
    begin: list[str] = field(default_factory=list)
    bytes: int = 0
    choice: list[str] = field(default_factory=list)
    check: str = ""


class Names:
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
        return block(f"""
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


def _primitive(names: Names, step: Step) -> Part:
    assert isinstance(step.expression, Primitive)
    return Part(f"const int64_t a{step.number} = (occurring & {names.bits[step.expression.name]}) != 0 ? position : -1;")


def _disjunction(names: Names, step: Step) -> Part:
    n, left, right = step.number, step.left, step.right
    body = f"const int64_t a{n} = a{left} <= a{right} ? a{right} : a{left};"
    if n in names.timed and names.times[n] == f"t{n}":
        body += f"\nconst int64_t t{n} = a{left} <= a{right} ? {names.times[right]} : {names.times[left]};"
    if not step.shown:
        return Part(body)
    return Part(f"{body}\nnow.right_{n} = a{left} <= a{right};", choice=[f"bool right_{n};"])


def _conjunction(names: Names, step: Step) -> Part:
    n, left, right = step.number, step.left, step.right
    same = left == right  # then the left side is never the one that is stored
    sides = {"right": right} if same else {"left": left, "right": right}
    holds = "\n".join(
        f"if (self->{side}_{n}.start < a{of}) {{\n{indent(names.hold(of, f'self->{side}_{n}'), INDENT)}\n}}" for side, of in sides.items()
    )
    timed = n in names.timed
    keep = [f"now.{side}_{n} = &self->{side}_{n};" for side in sides] + ([] if same else [f"now.current_{n} = a{right} <= a{left};"])

    def union(current: int, side: str) -> str:
        stored = f"self->{side}_{n}"
        return block(f"""
            a{n} = a{current} <= {stored}.start ? a{current} : {stored}.start;
            {f"t{n} = a{current} <= {stored}.start ? {names.times[current]} : {stored}.start_time;" if timed else ""}
        """)

    occurs = " || ".join(f"a{of} >= 0" for of in sides.values())
    both = " && ".join([f"({occurs})", *(f"self->{side}_{n}.start >= 0" for side in sides)])
    made = union(left, "right")
    if not same:
        made = f"if (a{right} <= a{left}) {{\n{indent(made, INDENT)}\n}} else {{\n{indent(union(right, 'left'), INDENT)}\n}}"
    lines = [
        holds,
        f"int64_t a{n} = -1;",
        *([f"int64_t t{n} = time;"] if timed else []),
        *(keep if step.shown else []),
        f"if ({both}) {{\n{indent(made, INDENT)}\n}}",
    ]
    pointers = [f"const {names.held(of)} *{side}_{n};" for side, of in sides.items()] + ([] if same else [f"bool current_{n};"])
    return Part(
        "\n".join(lines),
        state=[f"{names.held(of)} {side}_{n};" for side, of in sides.items()],
        begin=[f"self->{side}_{n}.start = -1;" for side in sides],
        bytes=sum(names.held_bytes(of) for of in sides.values()),
        choice=pointers if step.shown else [],
    )


def _negation(_: Names, step: Step) -> Part:
    n = step.number
    body = f"""
        if (self->latest_{n} < a{step.right}) {{
            self->latest_{n} = a{step.right};
        }}
        const int64_t a{n} = self->latest_{n} < a{step.left} ? a{step.left} : -1;
    """
    return Part(block(body), state=[f"int64_t latest_{n};"], begin=[f"self->latest_{n} = -1;"], bytes=8)


def _restriction(names: Names, step: Step) -> Part:
    assert isinstance(step.expression, Restriction)
    operand = step.left
    longer = _longer(step.expression.length, names.times[operand], f"a{operand}")
    return Part(f"const int64_t a{step.number} = a{operand} < 0 || {longer} ? -1 : a{operand};")


def _sequence(names: Names, step: Step) -> Part:
    return _single(names, step) if step.single else _ring(names, step)


def _single(names: Names, step: Step) -> Part:
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
{indent(names.hold(left, held), INDENT)}
}}"""
    return Part(
        block(body),
        state=[f"{names.held(left)} stored_{n}[2];", f"uint32_t last_{n};"],
        begin=[f"self->last_{n} = 0;", f"self->stored_{n}[0].start = -1;", f"self->stored_{n}[0].start_time = 0;"],
        bytes=2 * names.held_bytes(left) + 8,
        choice=[f"const {names.held(left)} *before_{n};"] if step.shown else [],
    )


def _ring(names: Names, step: Step) -> Part:
    """One place more than its instances: that before the head keeps the instance that left last ("l_i" in the paper), so nothing is moved."""
    assert isinstance(step.expression, Sequence)
    assert step.capacity is not None
    n, left, right, instant = step.number, step.left, step.right, names.steps[step.left].instant
    places, held = step.capacity + 1, names.held(left)
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
{indent(names.hold(left, f"self->ring_{n}[place < {places} ? place : place - {places}]"), INDENT)}
    {"" if instant else f"self->latest_{n} = a{left};"}
    self->count_{n}++;
}}"""
    latest = ([], []) if instant else ([f"int64_t latest_{n};"], [f"self->latest_{n} = -1;"])
    return Part(
        block(body),
        state=[f"{held} ring_{n}[{places}];", *latest[0], f"uint32_t head_{n}, count_{n};", f"bool settled_{n};"],
        begin=[f"self->head_{n} = 0;", f"self->count_{n} = 0;", f"self->settled_{n} = false;", *latest[1]],
        bytes=places * names.held_bytes(left) + 16 + 8 * len(latest[0]),
        choice=[f"const {held} *before_{n};"] if step.shown else [],
        check=f"if (self->count_{n} == {step.capacity} && !({longer})) {{\n    return {names.macro}_RATE_BROKEN;\n}}"
        if step.promised
        else "",
    )


PARTS: dict[type[Expression], Callable[[Names, Step], Part]] = {
    Primitive: _primitive,
    Disjunction: _disjunction,
    Conjunction: _conjunction,
    Negation: _negation,
    Restriction: _restriction,
    Sequence: _sequence,
}


# ------------------------------------------------------------------------------------------------------------ marks


def collecting(names: Names, step: Step) -> str:
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
            body = block(f"""
                const uint32_t count = {left}(now, marks);
                return count + {p}_copy(marks + count, now->right_{n}->marks, now->right_{n}->count);
            """)
            if step.left != step.right:
                other = block(f"""
                    const uint32_t count = {p}_copy(marks, now->left_{n}->marks, now->left_{n}->count);
                    return count + {right}(now, marks + count);
                """)
                body = f"if (now->current_{n}) {{\n{indent(body, INDENT)}\n}}\n{other}"
        case Sequence():
            body = block(f"""
                const uint32_t count = {p}_copy(marks, now->before_{n}->marks, now->before_{n}->count);
                return count + {names.collect(step.right)}(now, marks + count);
            """)
        case _:
            return ""
    return f"static uint32_t {p}_marks_{n}(const {p}_now_t *now, {p}_mark_t *marks)\n{{\n{indent(body, INDENT)}\n}}\n"


COPY = """\
static uint32_t {p}_copy({p}_mark_t *to, const {p}_mark_t *from, uint32_t count)
{{
    for (uint32_t i = 0; i < count; i++) {{
        to[i] = from[i];
    }}
    return count;
}}
"""

SORTED = """\
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


# ------------------------------------------------------------------------------------------------------------ text

INDENT = " " * 4

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


def block(text: str) -> str:
    """Lines without their common indentation, and without those that are empty because there was nothing to say."""
    return "\n".join(line for line in dedent(text).splitlines() if line.strip())


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
