"""How far a run is, also inside one event: what takes long by itself calls `beat` now and then, and whoever asked for progress hears of it.

A kernel returns to Python every few 10 ms (`base.BUDGET`), where Ctrl-C is answered; that is also where it is said that an event is still being read.
Who asks is known by a variable of the context: evaluations lie in each other, and most of them are never asked.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

EVERY = 0.3
"""Seconds between two calls while one step takes long."""


class Progress:
    """What is said of a run, by calls of a function with (rows read, rows in all; 0: not known), as `Query.run` takes it.

    total: rows in all.
    """

    def __init__(self, told: Callable[[int, int], None], total: int = 0) -> None:
        self._told = told
        self._total = total
        self._done = 0
        self._passed: Callable[[], int] | None = None
        self._said = monotonic()

    def __call__(self, done: int) -> None:
        """So many rows have been read, now."""
        self._passed = None
        self._say(done)

    def begin(self, total: int) -> None:
        """So many rows there are, now that it is known."""
        self._total = total

    def within(self, rows: int, passed: Callable[[], int]) -> None:
        """A step of so many rows begins; passed: gives those of them that have been read when it is asked."""
        start = self._done
        # All of them have been read once the step is over.
        self._passed = lambda: start + min(passed(), max(0, rows - 1))

    def beat(self) -> None:
        """Say it again, if it is time for that."""
        if monotonic() - self._said >= EVERY:
            self._say(self._done if self._passed is None else self._passed())

    def _say(self, done: int) -> None:
        self._said = monotonic()
        self._done = max(done, self._done)
        with _asking(None):  # the function may run another query, of which this is not the progress
            self._told(self._done, self._total)
        self._said = monotonic()


_ASKED: ContextVar[Progress | None] = ContextVar("progress", default=None)


def beat() -> None:
    """Whoever asked for progress may hear that the run goes on. Costs next to nothing where nobody has asked."""
    asked = _ASKED.get()
    if asked is not None:
        asked.beat()


@contextmanager
def _asking(progress: Progress | None) -> Iterator[None]:
    token = _ASKED.set(progress)
    try:
        yield
    finally:
        _ASKED.reset(token)


@contextmanager
def telling(progress: Callable[[int, int], None] | None, total: int) -> Iterator[Progress | None]:
    """What is done inside is said to a function, None: to nobody. total: rows in all, 0: not known."""
    found = None if progress is None else Progress(progress, total)
    with _asking(found):
        yield found


def heard(made: Iterator[T], progress: Progress | None) -> Iterator[T]:
    """What is made inside of an iterator is said, and nothing of what is done between."""
    if progress is None:
        yield from made
        return
    ended = object()
    while True:
        with _asking(progress):
            found = next(made, ended)
        if found is ended:
            return
        yield found  # type: ignore[misc]
