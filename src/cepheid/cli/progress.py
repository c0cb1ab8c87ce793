"""How far a long run is, on the standard error: a bar on a terminal, elsewhere a line every few seconds."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cepheid.cli.failures import complain
from cepheid.errors import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EVERY = 5.0
"""Seconds between two lines, and before the first."""

LONG = 1.0
"""Seconds after the last event from which they are said: one event can take long by itself."""


@contextmanager
def progress(what: str, *, shown: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A function to call with (rows done, rows; 0: not known); None where nothing is to be shown. what: is done, for the reader."""
    if not shown:
        yield None
    elif sys.stderr.isatty():
        with _bar(what) as advance:
            yield advance
    else:
        yield ProgressLines(what)


class RunPace:
    """How long a run takes, and for how long it has been at the same event."""

    def __init__(self) -> None:
        self._started = self._moved = time.monotonic()
        self._done = 0

    def __call__(self, done: int) -> tuple[float, str]:
        """Seconds so far, and words for a long time without another event, if it is one."""
        now = time.monotonic()
        if done != self._done:
            self._done, self._moved = done, now
        waited = now - self._moved
        return now - self._started, f"{waited:.0f} s of them after event {done:,}" if waited >= LONG else ""


class ProgressLines:
    """Progress as lines, for files and other programs."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._pace = RunPace()
        self._said = 0.0

    def __call__(self, done: int, rows: int) -> None:
        """Print a line, if it is time for one."""
        seconds, waiting = self._pace(done)
        if seconds - self._said >= EVERY:
            self._said = seconds
            share = f" of {rows:,}, {done / rows:.0%}" if rows else ""
            complain(f"{self._what}: {counted(done, 'event')}{share}, {seconds:.0f} s{waiting and f', {waiting}'}")


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
        pace = RunPace()

        def advance(done: int, rows: int) -> None:
            _, waiting = pace(done)
            bar.update(task, description=f"{what}{waiting and f' ({waiting})'}", completed=done, total=rows or None)

        yield advance
