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


@contextmanager
def progress(what: str, *, shown: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A function to call with (rows done, rows; 0: not known); None where nothing is to be shown. what: is done, for the reader."""
    if not shown:
        yield None
    elif sys.stderr.isatty():
        with _bar(what) as advance:
            yield advance
    else:
        yield Lines(what)


class Lines:
    """Progress as lines, for files and other programs."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._started = self._said = time.monotonic()

    def __call__(self, done: int, rows: int) -> None:
        """Print a line, if it is time for one."""
        now = time.monotonic()
        if now - self._said >= EVERY:
            self._said = now
            share = f" of {rows:,}, {done / rows:.0%}" if rows else ""
            complain(f"{self._what}: {counted(done, 'event')}{share}, {now - self._started:.0f} s")


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
