"""Bytes as they arrive: from a pipe until its end, or from a file that grows. And the lines in them."""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING, Protocol

from cepheid.cli.failures import complain
from cepheid.engine.input.files.texts import CODECS
from cepheid.errors import InputError, LimitError

if TYPE_CHECKING:
    from pathlib import Path

MOST = 1 << 20
"""Bytes that are read at a time, at most; a pipe of Linux holds 64 KiB."""

POLL = 0.1
"""Seconds between two looks at a file that has not grown."""

MAX_LINE = 1 << 24
"""Bytes of a line."""


class Arriving(Protocol):
    """Where bytes come from."""

    def read(self, timeout: float | None) -> bytes | None:
        """What there is to read, as soon as there is something; nothing after `timeout` seconds without it (None: no limit); None at the end."""


class Pipe:
    """What another program writes. descriptor: of a file that is open."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, timeout: float | None) -> bytes | None:
        """See `Arriving`."""
        if timeout is not None and not select.select([self._descriptor], [], [], timeout)[0]:
            return b""
        return os.read(self._descriptor, MOST) or None


class GrowingFile:
    """A file from its beginning, and what is appended to it; it has no end. If another file takes its name, or it is cut, that is read next."""

    def __init__(self, path: Path) -> None:
        if path.is_dir():
            raise InputError(f"{path} is a directory, not a file of events")
        if path.suffix.lower() in CODECS:
            raise InputError(f"{path} is compressed, so it does not grow", help=f"decompress it: zcat {path} | cepheid watch QUERY")
        self._path = path
        self._last = b""
        self._waited = False
        self._open()

    def _open(self) -> None:
        try:
            self._file = self._path.open("rb", buffering=0)
        except OSError as error:
            raise InputError(f"{self._path} cannot be read: {error.strerror or error}") from None

    def read(self, timeout: float | None) -> bytes | None:
        """See `Arriving`."""
        until = None if timeout is None else time.monotonic() + timeout
        while not (found := self._file.read(MOST)):
            if self._renewed() and self._last[-1:] not in (b"", b"\n"):
                self._last = b"\n"
                return self._last  # the old file's last line has no end
            if until is not None and time.monotonic() >= until:
                return b""
            if not self._waited:
                self._waited = True
                complain(f"note: {self._path} has been read to its end; what is appended is read as it comes, and Ctrl-C ends")
            time.sleep(POLL)
        self._last = found[-1:]
        return found

    def close(self) -> None:
        """Read no more."""
        self._file.close()

    def _renewed(self) -> bool:
        """Whether the next file is read now."""
        try:
            there = self._path.stat()
        except OSError:  # its successor is not there yet
            return False
        here = os.fstat(self._file.fileno())
        replaced = (there.st_ino, there.st_dev) != (here.st_ino, here.st_dev)
        if not replaced and there.st_size >= self._file.tell():
            return False
        complain(f"note: {self._path} {'is a new file' if replaced else 'was cut'}: it is read from its beginning")
        self._file.close()
        self._open()
        return True


class WholeLines:
    """Bytes as whole lines. number: lines so far."""

    def __init__(self) -> None:
        self.number = 0
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that end in some more bytes. Raises LimitError for one that is too long."""
        self._rest += data
        cut = self._rest.rfind(b"\n") + 1
        whole = bytes(self._rest[:cut])
        del self._rest[:cut]
        if len(self._rest) > MAX_LINE and not whole:  # lines before it are read first
            raise LimitError(
                f"line {self.number + 1} is longer than {MAX_LINE:,} bytes (MAX_LINE)",
                help="is it JSON lines, with one object on each line?",
            )
        return whole.split(b"\n")[:-1]

    def end(self) -> list[bytes]:
        """What is left at the end: the last line, if it has no line end."""
        return [bytes(self._rest)] if self._rest else []
