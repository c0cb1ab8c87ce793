"""The process that evaluates: it reads questions from its standard input, a JSON object on each line, and answers each with one line.

It bounds itself: `MAX_MEMORY` of address space, where the system has such a bound, and an alarm a little after the time in which its parent ends it,
for the case that the parent has gone. It opens no files but its own temporary ones, and no connections.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from cepheid.play.limits import MAX_MEMORY, MAX_SECONDS

if TYPE_CHECKING:
    from typing import BinaryIO

READY = b'{"ready": true}\n'
"""The first line that it writes, once everything is loaded."""

GRACE = 5
"""Seconds behind `MAX_SECONDS` after which it ends itself."""


def bounded() -> None:
    """Take no more memory than `MAX_MEMORY`."""
    try:
        import resource
    except ImportError:  # Windows has no such bound: that of the engine (max_bytes) remains
        return
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


def main() -> None:
    """Answer until the standard input ends."""
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # whatever prints does not get between the answers
    bounded()
    serve(questions, answers)


def serve(questions: BinaryIO, answers: Any) -> None:
    """Answer each line of `questions` with a line of `answers`."""
    from cepheid.play import api

    answers.write(READY)
    for line in questions:
        if hasattr(signal, "alarm"):
            signal.alarm(int(MAX_SECONDS) + GRACE)
        asked = json.loads(line)
        found = api.answer(asked["question"], asked["request"])
        if hasattr(signal, "alarm"):
            signal.alarm(0)
        # ASCII: a half of a surrogate pair that came in as JSON goes out as JSON.
        answers.write(json.dumps(found).encode("ascii") + b"\n")


if __name__ == "__main__":
    main()
