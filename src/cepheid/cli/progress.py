"""How far a long run is, on the standard error: a bar on a terminal, elsewhere a line every few seconds."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from cepheid.cli.failures import complain
from cepheid.errors import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EVERY = 5.0
"""Seconds between two lines, and before the first."""

BEAT = 5.0
"""Seconds after which a line is printed though nothing has been said: one event can take long by itself."""


@contextmanager
def progress(what: str, *, shown: bool, counts: bool = True) -> Iterator[Callable[[int, int], None] | None]:
    """A function to call with (rows done, rows; 0: not known); None where nothing is to be shown.

    what: is done, for the reader. counts: whether the function will be called; then a line says so, too, while a call is long in coming.
    """
    if not shown:
        yield None
    elif sys.stderr.isatty():
        with _bar(what) as advance:
            yield advance
    else:
        lines = Lines(what)
        with lines.going_on() if counts else nullcontext():
            yield lines


class Lines:
    """Progress as lines, for files and other programs."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._started = self._said = time.monotonic()
        self._known = 0, 0
        self._lock = threading.Lock()

    def __call__(self, done: int, rows: int) -> None:
        """Print a line, if it is time for one."""
        self._known = done, rows
        self._say(EVERY)

    def _say(self, after: float) -> None:
        with self._lock:
            now, (done, rows) = time.monotonic(), self._known
            if now - self._said >= after:
                self._said = now
                share = f" of {rows:,}, {done / rows:.0%}" if rows else ""
                complain(f"{self._what}: {counted(done, 'event')}{share}, {now - self._started:.0f} s")

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Inside, a line is printed now and then, whatever the program does."""
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(BEAT):
                self._say(BEAT)

        beats = threading.Thread(target=beat, daemon=True)
        beats.start()
        try:
            yield
        finally:
            ended.set()
            beats.join()


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} events"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def advance(done: int, rows: int) -> None:
            bar.update(task, completed=done, total=rows or None)

        yield advance
