"""What one thread at a time may use says so."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from cepheid.errors import InUseError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class OneAtATime:
    """Lets one call in, and refuses the others; what: for the message, in words."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._busy = threading.Lock()

    @property
    def taken(self) -> bool:
        """Whether a call is inside."""
        return self._busy.locked()

    def alone(self) -> AbstractContextManager[object]:
        """What is done inside is done alone; raises InUseError where another call is inside."""
        if self._busy.locked():
            raise InUseError(
                f"another call is using {self._what}, and only one thread at a time may use it; nothing has changed",
                help="give each thread its own (threads may share the query), or use a lock",
            )
        # Calls that pass the question together take turns. The lock itself, for in code of ours Ctrl-C could leave it held.
        return self._busy
