"""Ctrl-C ends a command, whatever the command does at that moment.

Python raises KeyboardInterrupt once, at the current place of the main thread, and other people's code can lose it there: modules made by Cython
register classes under a bare `except` while they are imported (pyarrow imports pandas when it first reads a list), and errors in a finalizer are
ignored. The command would then continue, for hours if it has many matches. So the interrupt is raised again until it is handled.
"""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

AGAIN = 0.1
"""Seconds after which an interrupt that nobody handles is raised again."""


@contextmanager
def persistent() -> Iterator[None]:
    """A KeyboardInterrupt that is raised here comes again where it was lost. Without timers (Windows) or beside the main thread, nothing changes."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # who started us ignores it, or handles it
        yield
        return
    alarm = signal.signal(signal.SIGALRM, again)
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGALRM, alarm)


def interrupt(_signal: int, _frame: FrameType | None) -> None:
    """Ctrl-C came."""
    signal.setitimer(signal.ITIMER_REAL, AGAIN, AGAIN)
    raise KeyboardInterrupt


def again(_signal: int, _frame: FrameType | None) -> None:
    """Ctrl-C came a moment ago: raise it again, except while what cleans up behind it is still at work."""
    if not is_handled(sys.exc_info()[1]):
        raise KeyboardInterrupt


def is_handled(error: BaseException | None) -> bool:
    """Whether an exception that is being handled is an interrupt, or was raised by what handles one."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None
