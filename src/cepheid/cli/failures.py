"""How a command ends: exit statuses, and the text on the standard error.

A user's mistake gives a message without a traceback; a bug of ours asks for a report.
"""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING

from cepheid.errors import CepheidError

if TYPE_CHECKING:
    from collections.abc import Iterator

TRACEBACK = "CEPHEID_TRACEBACK"
"""Set to 1, this variable of the environment shows the traceback of an internal error."""


class Status(IntEnum):
    """The exit statuses; 2 is given by the parser of the command line itself."""

    OK = 0
    MISTAKE = 1
    USAGE = 2
    INTERNAL = 70
    INTERRUPTED = 130
    CLOSED = 141


OPTIONS = (
    ("sort=True", "--sort"),
    ("with type=", "--type NAME"),
    ("with time=", "--time NAME"),
    ('engine="reference"', "cepheid run --engine reference"),
    ("order=", "--order NAME"),
    ("args=", "--param NAME=VALUE"),
    ("schema=", "name the file of events after the query"),
    ("q.batches(..)", "-o OUT.parquet, OUT.csv or OUT.jsonl, or --json"),
)
"""What a help line of the Python interface is called here."""


@contextmanager
def guarded() -> Iterator[None]:
    """Turn what a command raises into a message and an exit status; `SystemExit` and the parser's own exceptions pass."""
    try:
        yield
    except CepheidError as error:
        complain(message(error))
        sys.exit(Status.MISTAKE)
    except KeyboardInterrupt:
        complain("interrupted")
        sys.exit(Status.INTERRUPTED)
    except BrokenPipeError:
        # Who reads our output has enough; nothing may be written any more, not even while Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Status.CLOSED)
    except MemoryError:
        complain("error: out of memory\nhelp: leave out --sort and --order, so that files are read piece by piece, or use --engine spark")
        sys.exit(Status.MISTAKE)
    except Exception as error:
        if is_control(error):
            raise
        complain(internal(error))
        sys.exit(Status.INTERNAL)


def is_control(error: Exception) -> bool:
    """Whether an exception belongs to the parser of the command line, which shows it itself."""
    import typer

    # BadParameter is a UsageError, and that a ClickException, wherever this version of typer has them from.
    return isinstance(error, (typer.Exit, typer.Abort, typer.BadParameter.__mro__[2]))


def message(error: CepheidError) -> str:
    """The error as it prints, and behind it the options that its help speaks of."""
    return "\n".join([str(error), *options_in("\n".join(error.help))])


def options_in(said: str) -> list[str]:
    """Lines of help with the options of the command line for those of the Python interface that a text speaks of."""
    return [f"help: on the command line: {option}" for word, option in OPTIONS if word in said]


def internal(error: Exception) -> str:
    """What is said of an exception that should not be."""
    if os.environ.get(TRACEBACK) == "1":
        return "".join(traceback.format_exception(error)).rstrip()
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return (
        f"internal error: {type(error).__name__}: {error}{place}\n"
        "help: this is a bug in Cepheid; please report it with the query, a few events and what `cepheid doctor` prints\n"
        f"help: {TRACEBACK}=1 shows the traceback"
    )


def complain(text: str) -> None:
    """Write to the standard error."""
    print(text, file=sys.stderr, flush=True)
