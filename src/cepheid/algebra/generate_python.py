"""The detector of one expression as one Python file that needs nothing but Python: for where Cepheid cannot be installed.

Source: event-algebra, Figure 3 (Figure 2 unrolled) with Figure 4 for sequences, in rings that binary search reads (section 5.3).

An instance is a tuple in the generated code: (start, start_time, end, end_time), and behind them, where its events can be in a match, what it is
made of: the pair of the two that it is the union of, or the event and the variables that the event is put in. None: there is no instance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import dedent, indent
from typing import TYPE_CHECKING

from cepheid.algebra.expression import Conjunction, Disjunction, Negation, Primitive, Restriction, Sequence
from cepheid.algebra.generate import unrolled

if TYPE_CHECKING:
    from collections.abc import Callable

    from cepheid.algebra.expression import Expression, Length
    from cepheid.algebra.generate import Step, Unrolled
    from cepheid.algebra.memory import Rate

PREALLOCATED = 1 << 20
"""Places of the longest ring that is a list of fixed size: a longer one grows, up to its bound."""

_GARBAGE = 8
"""Places before the head of a ring that grows that may stay, whatever lies behind (as in the detector)."""


def generate_python(expression: Expression, *, rate: Rate | None = None) -> str:
    """The source of a Python file with the detector of one expression: the same for the same arguments, in ASCII.

    rate: how often events come at most. Where it bounds a ring, the ring is a list of fixed size. The file needs Python >= 3.11 and imports nothing.
    Its class `Detector` has `push(event, time, occurring)`, which gives what `cepheid.algebra.Detector.push` gives: None, or an object with start,
    end, start_time, end_time, marks. It raises ValueError where time descends, and RateError, a ValueError, where events come more often than
    promised and a ring has no place (a file where that cannot be has no such class); either way nothing has been read. O(m log n) per event, m
    sub-expressions, n instances in the longest ring.
    """
    code = unrolled(expression, rate)
    parts = [_PARTS[type(step.expression)](code, step) for step in code.steps]
    checks = [line for part in parts for line in part.check]
    body = [
        *_BEGIN.splitlines(),
        *checks,
        "self.time = time",
        "self.position = position + 1",
        *(line for part in parts for line in ("", *part.body)),
        "",
        f"return None if a{len(parts) - 1} is None else _detected(a{len(parts) - 1})",
    ]
    state = {"position": "0", "time": "None"}
    for part in parts:
        state |= part.state
    return "\n".join(
        [
            _docstring(code),
            _DETECTED,
            *([_RATE_ERROR] if checks else []),
            _CLASS,
            f"    __slots__ = ({', '.join(map(_literal, state))})",
            "",
            "    def __init__(self):",
            *(f"        self.{name} = {value}" for name, value in state.items()),
            "",
            _PUSH,
            *(indent(line, " " * 8) for line in body),
            "",
        ]
    )


@dataclass(slots=True)
class _Part:
    """The code of one step. state: attributes, with what they are at the beginning. check: what is asked before anything has changed."""

    body: list[str]
    state: dict[str, str] = field(default_factory=dict)
    check: list[str] = field(default_factory=list)


# ------------------------------------------------------------------------------------------------------------ the operators (Figure 2)


def _primitive(_: Unrolled, step: Step) -> _Part:
    assert isinstance(step.expression, Primitive)
    variables = "".join(f"{_literal(name)}, " for name in sorted(step.expression.shown))
    of = f", event, ({variables.rstrip(' ')})" if step.shown else ""
    n = step.number
    return _Part([f"a{n} = (position, time, position, time{of}) if {_literal(step.expression.name)} in occurring else None"])


def _disjunction(code: Unrolled, step: Step) -> _Part:
    n, left, right = step.number, step.left, step.right
    if code.steps[left].instant and code.steps[right].instant:
        return _Part([_said(step), f"a{n} = a{right} or a{left}"])
    return _Part([_said(step), f"a{n} = a{right} if a{left} is None or (a{right} is not None and a{left}[0] <= a{right}[0]) else a{left}"])


def _conjunction(_: Unrolled, step: Step) -> _Part:
    n, left, right = step.number, step.left, step.right
    body = f"""
        a{n} = None
        if a{left} is not None or a{right} is not None:
            if a{left} is not None and (self.left{n} is None or self.left{n}[0] < a{left}[0]):
                self.left{n} = a{left}
            if a{right} is not None and (self.right{n} is None or self.right{n}[0] < a{right}[0]):
                self.right{n} = a{right}
            if a{right} is None or (a{left} is not None and a{right}[0] <= a{left}[0]):
                one, other = a{left}, self.right{n}
            else:
                one, other = self.left{n}, a{right}
            if one is not None and other is not None:
                first = one if one[0] <= other[0] else other
                a{n} = (first[0], first[1], position, time{", (one, other)" if step.shown else ""})
    """
    return _Part([_said(step), *_lines(body)], {f"left{n}": "None", f"right{n}": "None"})


def _negation(_: Unrolled, step: Step) -> _Part:
    n, left, right = step.number, step.left, step.right
    body = f"""
        if a{right} is not None and self.latest{n} < a{right}[0]:
            self.latest{n} = a{right}[0]
        a{n} = a{left} if a{left} is not None and self.latest{n} < a{left}[0] else None
    """
    return _Part([_said(step), *_lines(body)], {f"latest{n}": "-1"})


def _restriction(_: Unrolled, step: Step) -> _Part:
    assert isinstance(step.expression, Restriction)
    n, operand = step.number, step.left
    short = _short(step.expression.length, f"a{operand}[1]", f"a{operand}[0]")
    return _Part([_said(step), f"a{n} = a{operand} if a{operand} is not None and {short} else None"])


def _sequence(code: Unrolled, step: Step) -> _Part:
    if step.single:
        return _single(code, step)
    part = _ring(code, step) if step.capacity is not None and step.capacity <= PREALLOCATED else _growing(code, step)
    if step.promised:
        part.check = _promised(code, step)
    return part


def _single(code: Unrolled, step: Step) -> _Part:
    """The right side is one event: whatever of the left side is held ended before."""
    n, left, right = step.number, step.left, step.right
    later = "" if code.steps[left].instant else f" and (before is None or before[0] < a{left}[0])"
    body = f"""
        before = self.settled{n}
        a{n} = {_united(step)} if a{right} is not None and before is not None else None
        if a{left} is not None{later}:
            self.settled{n} = a{left}
    """
    return _Part([_said(step), *_lines(body)], {f"settled{n}": "None"})


def _ring(code: Unrolled, step: Step) -> _Part:
    """ring: a list of fixed size, of which count places from head on are taken, round its end."""
    assert isinstance(step.expression, Sequence)
    n, left, size = step.number, step.left, step.capacity
    body = f"""
        ring, head, count = self.ring{n}, self.head{n}, self.count{n}
        while count and not ({_short(step.expression.length, "ring[head][3]", "ring[head][2]")}):
            self.settled{n} = ring[head]
            ring[head] = None
            head = (head + 1) % {size}
            count -= 1
        {indent(_searched(step, f"ring[(head + middle) % {size}]", "0", "count"), " " * 8).strip()}
            before = ring[(head + low - 1) % {size}] if low else self.settled{n}
            if before is not None:
                a{n} = {_united(step)}
        if {_later(code, step)}:
            ring[(head + count) % {size}] = a{left}
            count += 1
            self.latest{n} = a{left}[0]
        self.head{n}, self.count{n} = head, count
    """
    state = {f"ring{n}": f"[None] * {size}", f"head{n}": "0", f"count{n}": "0", f"settled{n}": "None", f"latest{n}": "-1"}
    return _without_latest(code, step, _Part([_said(step), *_lines(body)], state))


def _growing(code: Unrolled, step: Step) -> _Part:
    """ring[head:]: a list that grows."""
    assert isinstance(step.expression, Sequence)
    n, left, length = step.number, step.left, step.expression.length
    bounded = any(bound is not None for bound in length)
    body = f"""
        ring = self.ring{n}
        head = self.head{n}
        while head < len(ring) and not ({_short(length, "ring[head][3]", "ring[head][2]")}):
            self.settled{n} = ring[head]
            ring[head] = None
            head += 1
        if head > {_GARBAGE} and 2 * head > len(ring):
            del ring[:head]
            head = 0
        self.head{n} = head
    """
    head = _lines(body) if bounded else [f"ring = self.ring{n}"]
    first, settled = ("head", f"self.settled{n}") if bounded else ("0", "None")
    body = f"""
        {indent(_searched(step, "ring[middle]", first, "len(ring)"), " " * 8).strip()}
            before = ring[low - 1] if low > {first} else {settled}
            if before is not None:
                a{n} = {_united(step)}
        if {_later(code, step)}:
            ring.append(a{left})
            self.latest{n} = a{left}[0]
    """
    state = {f"ring{n}": "[]", f"latest{n}": "-1"} | ({f"head{n}": "0", f"settled{n}": "None"} if bounded else {})
    return _without_latest(code, step, _Part([_said(step), *head, *_lines(body)], state))


def _searched(step: Step, place: str, low: str, high: str) -> str:
    """The first instance of a ring that does not end before the right side starts: low."""
    return dedent(f"""
        a{step.number} = None
        if a{step.right} is not None:
            start = a{step.right}[0]
            low, high = {low}, {high}
            while low < high:
                middle = (low + high) // 2
                if {place}[2] < start:
                    low = middle + 1
                else:
                    high = middle
    """).strip()


def _later(code: Unrolled, step: Step) -> str:
    """Whether there is an instance of the left that starts after all before; an instant does."""
    left = step.left
    return f"a{left} is not None" + ("" if code.steps[left].instant else f" and self.latest{step.number} < a{left}[0]")


def _without_latest(code: Unrolled, step: Step, part: _Part) -> _Part:
    """The part without the greatest start so far, where no one asks for it."""
    if code.steps[step.left].instant:
        del part.state[f"latest{step.number}"]
        part.body = [line for line in part.body if f"self.latest{step.number}" not in line]
    return part


def _united(step: Step) -> str:
    of = f", (before, a{step.right})" if step.shown else ""
    return f"(before[0], before[1], position, time{of})"


def _promised(code: Unrolled, step: Step) -> list[str]:
    """A full ring none of whose instances leaves it now: its events and this one are more than the rate promises."""
    assert isinstance(step.expression, Sequence)
    assert step.capacity is not None
    n, fixed = step.number, step.capacity <= PREALLOCATED
    count = f"self.count{n}" if fixed else f"len(self.ring{n}) - self.head{n}"
    oldest = f"self.ring{n}[self.head{n}]"
    return _lines(f"""
        if {count} >= {step.capacity} and {_short(step.expression.length, f"{oldest}[3]", f"{oldest}[2]")}:
            raise RateError(
                f"events come more often than promised ({code.promise}):"
                f" no place for the event at position {{position}}, time {{time}}; nothing has been read"
            )
    """)


_PARTS: dict[type[Expression], Callable[[Unrolled, Step], _Part]] = {
    Primitive: _primitive,
    Disjunction: _disjunction,
    Conjunction: _conjunction,
    Negation: _negation,
    Restriction: _restriction,
    Sequence: _sequence,
}


# ------------------------------------------------------------------------------------------------------------ text


def _short(length: Length, start_time: str, start: str) -> str:
    """Whether what began (start_time, start) is not longer than a length now."""
    time, events = length
    bounds = [] if time is None else [f"time - {start_time} <= {time}"]
    bounds += [] if events is None else [f"position - {start} <= {events}"]
    return " and ".join(bounds)


def _said(step: Step) -> str:
    return f"# a{step.number}: {step.text}"


def _lines(text: str) -> list[str]:
    return dedent(text).strip("\n").rstrip().splitlines()


def _escaped(text: str) -> str:
    """Text as it stands between double quotes in a file of plain ASCII."""
    return text.encode("unicode_escape").decode().replace('"', '\\"')


def _literal(text: str) -> str:
    return f'"{_escaped(text)}"'


def _docstring(code: Unrolled) -> str:
    names = ", ".join(code.primitives)
    promise = [f"Promised: {code.promise}."] if code.promise else []
    return "\n".join(
        [
            f'"""Detects {_escaped(str(code.expression))}',
            "",
            "    detector = Detector()",
            "    for event, time, occurring in stream:",
            "        found = detector.push(event, time, occurring)  # None, or the instance that ends at this event",
            "",
            f"occurring: the names of the primitives that occur at the event: {_escaped(names)}",
            "time: a number that never descends, in the steps of the bounds.",
            "",
            f"It has {_escaped(str(code.memory))}",
            *promise,
            "Generated by Cepheid: the detection algorithm for this expression alone. It needs Python 3.11 or later, and nothing else.",
            '"""',
        ]
    )


_DETECTED = '''

class Detected:
    """An instance: its first and last position, their times, and its events.

    marks: (position, event, variable), by position, then by variable.
    """

    __slots__ = ("start", "end", "start_time", "end_time", "marks")

    def __init__(self, start, end, start_time, end_time, marks):
        self.start = start
        self.end = end
        self.start_time = start_time
        self.end_time = end_time
        self.marks = marks

    def __repr__(self):
        return f"Detected({self.start}, {self.end}, {self.start_time}, {self.end_time}, {self.marks})"


def _detected(found):
    marks = {}
    pending = [found]
    while pending:
        part = pending.pop()
        if len(part) == 5:  # the union of two
            pending += part[4]
        else:
            for variable in part[5]:
                marks[part[0], variable] = part[4]
    ordered = tuple((position, marks[position, variable], variable) for position, variable in sorted(marks))
    return Detected(found[0], found[2], found[1], found[3], ordered)


_CONTAINERS = frozenset({set, frozenset, dict, tuple, list})'''

_RATE_ERROR = '''

class RateError(ValueError):
    """Events come more often than promised, and one finds no place; it has not been read."""'''

_CLASS = '''

class Detector:
    """Reads one stream, event by event. An instance is (start, start_time, end, end_time, ..) here, None where there is none."""
'''

_PUSH = '''    def push(self, event, time, occurring):
        """Read the next event; the instance that ends at it, None if there is none.

        Raises ValueError where it cannot be read: then nothing has changed.
        """'''

_BEGIN = """\
if occurring.__class__ not in _CONTAINERS:
    occurring = frozenset(occurring)
position = self.position
if self.time is not None and time < self.time:
    raise ValueError(f"time descends from {self.time} to {time} at position {position}: sort the events by time")"""
