"""Every exception of Cepheid, and how its message is printed.

    CepheidError
    |-- QueryError                      something is wrong in the text of a query
    |   |-- QuerySyntaxError            (SyntaxError)    the text does not parse
    |   |-- BindError                   (ValueError)     names, types, units or scopes do not fit
    |   `-- NotSupportedError           (NotImplementedError) right, but outside what this evaluation does
    |-- LimitError                      (ValueError)     a named limit is exceeded
    |-- SchemaError                     (ValueError)     the input lacks a column, or has it with a wrong type
    |-- InputError                      (ValueError)     the data itself: null times, unsorted events
    |-- SnapshotError                   (ValueError)     bytes of another query or version, or damaged; half a state
    |-- InUseError                      (RuntimeError)   a second thread uses what one thread at a time may use
    `-- SetupError               (RuntimeError)   a missing Java, extra or compiler

A message has a fact, the place in the query text if there is one (the line with a caret), and ``help:`` lines that say what to do.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

REFERENCE_HELP = 'q.run(.., engine="reference") evaluates it by the definition (slow: for small inputs)'
"""What to do where no evaluation but the definition does something."""


@record
class Span:
    """A half-open range ``[start, end)`` of code points in a query text."""

    start: int
    end: int

    def to(self, other: Span | None) -> Span:
        """The smallest span that covers this one and `other`."""
        return self if other is None else Span(min(self.start, other.start), max(self.end, other.end))


class CepheidError(Exception):
    """The root of every error that Cepheid raises on purpose.

    `fact` is one sentence without a final full stop; `help` says what to do; `text` and `span` are the place, if there is one.
    """

    def __init__(
        self,
        fact: str,
        *,
        help: str | Iterable[str] = (),  # noqa: A002 - the word that the message prints
        text: str | None = None,
        span: Span | None = None,
    ) -> None:
        self.fact = fact
        self.help: tuple[str, ...] = (help,) if isinstance(help, str) else tuple(help)
        self.text = text
        self.span = span
        super().__init__(fact)

    def __str__(self) -> str:
        lines = [f"error: {self.fact}"]
        if self.text is not None and self.span is not None:
            lines += excerpt(self.text, self.span)
        return "\n".join([*lines, *(f"help: {line}" for line in self.help)])

    def located(self, text: str) -> CepheidError:
        """The error itself, with the text its span points into (set once, by whoever has the text)."""
        if self.text is None:
            self.text = text
        return self

    def of_query(self, name: str) -> CepheidError:
        """The error itself, with the name of the query, one of several."""
        self.fact = f"in the query `{name}`: {self.fact}"
        self.args = (self.fact,)
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.fact, self.help, self.text, self.span)


def _rebuild(kind: type[CepheidError], fact: str, help: tuple[str, ...], text: str | None, span: Span | None) -> CepheidError:  # noqa: A002
    return kind(fact, help=help, text=text, span=span)


class QueryError(CepheidError):
    """Something is wrong in the text of a query."""


class QuerySyntaxError(QueryError, SyntaxError):
    """The text is not a query of the language."""

    # SyntaxError has a `text` and a `__str__` of its own; ours are set last and win.
    __str__ = CepheidError.__str__

    @property
    def msg(self) -> str:  # type: ignore[override]  # an attribute there
        """The message: the part of a SyntaxError that the module traceback prints, and that Spark shows when its analysis raises one."""
        return str(self)


class BindError(QueryError, ValueError):
    """Names, types, units or scopes do not fit."""


class NotSupportedError(QueryError, NotImplementedError):
    """The query has a meaning, but the chosen evaluation does not support it."""


class LimitError(CepheidError, ValueError):
    """A named limit is exceeded: the message states the given value, the limit and how to stay below it or raise it."""


class SchemaError(CepheidError, ValueError):
    """The input lacks a column, or has it with a type that cannot be used."""


class InputError(CepheidError, ValueError):
    """The events themselves cannot be used as they are: null times, unsorted times, unreadable files."""


class SnapshotError(CepheidError, ValueError):
    """Snapshot bytes are damaged, or of another query or format version; or a recognizer is copied, or was interrupted in the middle of a call."""


class InUseError(CepheidError, RuntimeError):
    """Another thread is using an object that only one thread at a time may use; nothing has changed."""


class SetupError(CepheidError, RuntimeError):
    """Something outside the library is missing: Java, an extra, a compiler."""


def excerpt(text: str, span: Span) -> list[str]:
    """The line of `text` where `span` starts, with carets under it.

    Control characters and tabs are shown as spaces. Long lines are cut around the place, with dots where something is left out.
    """
    before = text[: span.start]
    number = before.count("\n") + 1
    begin = before.rfind("\n") + 1
    end = text.find("\n", begin)
    line = text[begin:] if end < 0 else text[begin:end]
    column = span.start - begin
    width = max(1, min(span.end, begin + len(line)) - span.start)
    if len(line) > LINE_WIDTH:
        cut = max(0, column - LINE_WIDTH // 2)
        front, back = "… " if cut else "", " …" if cut + LINE_WIDTH < len(line) else ""
        width = min(width, max(1, LINE_WIDTH - (column - cut)))
        line = front + line[cut : cut + LINE_WIDTH].rstrip() + back
        column += len(front) - cut
    line = "".join(c if c.isprintable() else " " for c in line)
    gutter = f"{number:>3} | "
    return [gutter + line.rstrip(), " " * (len(gutter) - 2) + "| " + " " * column + "^" * width]


LINE_WIDTH = 160
"""Longest piece of a query line that a message shows, in characters."""


def nearest(name: str, known: Iterable[str], *, likeness: float = 0.6) -> str | None:
    """The name in `known` that is most similar to `name`, or None if none is similar; 1 is the `likeness` of equal names."""
    found = difflib.get_close_matches(str(name), list(known), n=1, cutoff=likeness)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str], *, quote: str = "`") -> tuple[str, ...]:
    """The help that says which name in `known` is most similar to `name`; nothing if none is similar."""
    near = nearest(name, known)
    return () if near is None else (f"did you mean {quote}{near}{quote}?",)


def check_choice(name: str, value: object, known: Sequence[str]) -> None:
    """Raise InputError unless the value of an option is one of those known."""
    if not isinstance(value, str) or value not in known:
        help_ = [*did_you_mean(str(value), known, quote="'"), f"it may be {', '.join(map(repr, known))}"]
        raise InputError(f"{name}={value!r} is not known", help=help_)


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 event`, `2,000 events`; many: the plural, where it is not `one` with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def quoted(names: Iterable[str], *, most: int = 12) -> str:
    """Names for a message: `` `a`, `b` and 3 more``, or `nothing`."""
    all_names = list(names)
    if not all_names:
        return "nothing"
    shown = ", ".join(f"`{name}`" for name in all_names[:most])
    return shown if len(all_names) <= most else f"{shown} and {len(all_names) - most} more"
