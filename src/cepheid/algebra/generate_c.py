"""The detector of one expression as one C99 file of static size: for where there is no Python, and no memory to ask for.

Source: event-algebra, Figure 3 (Figure 2 unrolled) with Figure 4 for sequences, in rings that binary search reads (section 5.3).

What is written for each sub-expression is decided in `generate_c_steps`; here the file is put together from that.
"""

from __future__ import annotations

import re
from textwrap import indent
from typing import TYPE_CHECKING

from cepheid.algebra.expression import Conjunction, Sequence
from cepheid.algebra.generate import unrolled
from cepheid.algebra.generate_c_steps import COPY, INDENT, PARTS, SORTED, Names, Part, collecting
from cepheid.errors import InputError, LimitError

if TYPE_CHECKING:
    from cepheid.algebra.expression import Expression
    from cepheid.algebra.memory import Rate

MOST_PRIMITIVES = 64
"""The bits of `occurring`."""

MOST_BYTES = 2**31 - 1
"""Of the state: what a compiler of any platform of 32 bits takes as one object."""


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
    return _text(Names(code, prefix))


_TAKEN = (
    r"u?int(_least|_fast)?\d+|u?intmax|u?intptr|size|ptrdiff|wchar|max_align|"
    r"time|clock|u?char\d+|wint|wctype|wctrans|mbstate|fpos|l*div|imaxdiv|float|double|fenv|fexcept"
)
"""Prefixes whose types the standard has, in whatever header a program may include beside the file."""


# ------------------------------------------------------------------------------------------------------------ the file


def _text(names: Names) -> str:
    parts = [PARTS[type(step.expression)](names, step) for step in names.steps]
    size = 16 + sum(part.bytes for part in parts)
    if size > MOST_BYTES:
        largest = max(zip(parts, names.steps, strict=True), key=lambda each: each[0].bytes)[1]
        raise LimitError(
            f"the detector takes {size} bytes, and at most {MOST_BYTES} are possible: `{largest.expression}` holds {largest.capacity} instances",
            help="shorten its WITHIN, or pass a lower rate",
        )
    sections = [_header(names, size), _declared(names, parts, size), _functions(names), _init(names, parts), _push(names, parts)]
    return "\n".join([*sections, f"#endif /* {names.macro}_TYPES_ONLY */", ""])


def _header(names: Names, size: int) -> str:
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


def _declared(names: Names, parts: list[Part], size: int) -> str:
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


def _stored(names: Names) -> list[int]:
    """The steps whose instances are stored."""
    stored: list[int] = []
    for step in names.steps:
        if isinstance(step.expression, Conjunction):
            stored += step.below
        if isinstance(step.expression, Sequence):
            stored.append(step.left)
    return stored


def _functions(names: Names) -> str:
    shown = [step for step in names.steps if step.shown]
    copied = [COPY.format(p=names.p)] if any(isinstance(step.expression, Conjunction | Sequence) for step in shown) else []
    return "\n".join([*copied, *filter(None, (collecting(names, step) for step in shown)), SORTED.format(p=names.p)])


def _init(names: Names, parts: list[Part]) -> str:
    begin = ["self->position = 0;", "self->time = INT64_MIN;", *(line for part in parts for line in part.begin)]
    return "\n".join([f"void {names.p}_init({names.p}_t *self)", "{", *(f"    {line}" for line in begin), "}", ""])


def _push(names: Names, parts: list[Part]) -> str:
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
    return "\n".join([head, "{", *(indent(lines, INDENT) for lines in body), "}", ""])


# ------------------------------------------------------------------------------------------------------------ text


def _comment(text: str) -> str:
    """Text that is safe in a comment: one line of ASCII without backslashes, trigraphs, or the signs that open and close comments."""
    text = "".join(c if " " <= c <= "~" and c != "\\" else f"<U+{ord(c):04X}>" for c in text)
    text = re.sub(r"\*(?=/)", "* ", text)
    text = re.sub(r"/(?=\*)", "/ ", text)
    return re.sub(r"\?(?=\?)", "? ", text)
