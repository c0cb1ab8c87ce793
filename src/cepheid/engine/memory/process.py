"""The memory of this process: how much there is, and running out of it as a LimitError.

A pattern can have as many matches as its events have subsets: what helps where they do not fit is said here, for all who say it.
"""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from cepheid.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Iterator

UNKNOWN_MEMORY = 4 << 30
"""Bytes of memory that a process is taken to have where the system does not tell."""

OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")
"""Where Linux says whether it counts memory that is not written: 2."""

CHOOSE = "choose among the matches of an event: SELECT NXT, LAST, MAX or STRICT, or LIMIT n; SELECT COUNT(*) counts them without a list"

FEWER = (
    "each match is looked at, so have fewer: SELECT NXT, LAST, MAX or STRICT, a shorter WITHIN, or conditions on events in FILTER; LIMIT n and"
    " COUNT(*) keep less, but look at all, too"
)
"""What helps instead of `CHOOSE` where HAVING judges matches, or events that matches have made say where they begin."""

SAMPLE = "q.run(.., sample=n) gives n matches of each event that completes some"
"""What helps besides `CHOOSE`, and not where HAVING judges matches."""

HELP = (
    CHOOSE,
    SAMPLE,
    "q.batches(..) gives all matches, in bounded memory",
    "allow more with max_bytes=..",
)
"""What helps where one answer has too many matches."""


@functools.cache
def process_memory() -> int:
    """Bytes of memory that this process may use: the machine's, or less where a limit of the process or of its control groups says so."""
    found = [UNKNOWN_MEMORY]
    with contextlib.suppress(ValueError, OSError, AttributeError):  # AttributeError: not on Windows
        found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    return min([*found, *_process_limits(), *_group_limits(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))])


def _process_limits() -> list[int]:
    """What `ulimit -v` and `ulimit -d` say."""
    try:
        import resource
    except ImportError:  # on Windows
        return []
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return [limit for limit in limits if limit != resource.RLIM_INFINITY]


def _group_limits(membership: Path, root: Path) -> list[int]:
    """The limits of the control groups that a process is in, and of those around them; version 2 of their files, and version 1."""
    found = []
    with contextlib.suppress(OSError):
        for line in membership.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            folder, name = (root / "memory", "memory.limit_in_bytes") if controllers else (root, "memory.max")
            own = Path(path.lstrip("/"))
            # In a container the path is often that of the host, and the root is the own group.
            for part in (own, *own.parents):
                with contextlib.suppress(OSError, ValueError):  # ValueError: "max"
                    found.append(int((folder / part / name).read_text()))
    return found


def reserves_freely() -> bool:
    """Whether memory that is not written costs this process nothing: no limit of its own counts it, and the system promises more than it has."""
    if os.name == "nt" or _process_limits():
        return False
    with contextlib.suppress(OSError):  # not on macOS, which promises more
        return OVERCOMMIT.read_text().strip() != "2"
    return True


@contextlib.contextmanager
def named_memory() -> Iterator[None]:
    """Running out of memory inside, or in the function that this decorates, is a LimitError."""
    message = None
    try:
        yield
    except MemoryError as error:
        message = str(error) or "an allocation failed"
    # Not from within: the error would keep what the frames below hold.
    if message is not None:
        raise LimitError(f"the memory of this process is used up: {message}", help=(*HELP, f"with HAVING, {FEWER}"))
