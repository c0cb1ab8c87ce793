"""Questions to a process of its own, within a time: what takes longer is ended with the process, and the next question starts another.

Two processes: one for what the page asks while one types, the other for what may take long, so that neither waits for the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from typing import TYPE_CHECKING, Any

from cepheid.errors import CepheidError, LimitError
from cepheid.play.limits import MAX_MEMORY, MAX_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_ANSWER = 256 << 20
"""Longest answer that is read, in bytes."""

STARTING = 30.0
"""Seconds that a process may take until it is ready."""

QUICK = frozenset({"check", "rewrite"})
"""What the page asks while one types."""


class Process:
    """One process that answers one question after the other; it is started when it is asked, and again when it had to be ended."""

    def __init__(self, *, seconds: float = MAX_SECONDS) -> None:
        self.seconds = seconds
        self._child: asyncio.subprocess.Process | None = None
        self._alone = asyncio.Lock()

    async def ask(self, question: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of `api.answer`. Raises LimitError where it takes longer than `seconds`, or more memory than a process gets."""
        async with self._alone:
            child = await self._started()
            assert child.stdin is not None
            assert child.stdout is not None
            try:
                async with asyncio.timeout(self.seconds):
                    child.stdin.write(json.dumps({"question": question, "request": request}).encode() + b"\n")
                    await child.stdin.drain()
                    line = await child.stdout.readline()
            except TimeoutError:
                await self._end()
                raise LimitError(
                    f"the request took longer than {self.seconds:g} s (MAX_SECONDS), and was ended",
                    help="take fewer events, a shorter window, or a strategy that chooses; `cepheid run` has no such limit",
                ) from None
            except (ConnectionError, ValueError):
                line = b""
            except asyncio.CancelledError:
                # Its answer would be taken for that of the next question.
                await self._end()
                raise
            if not line:
                await self._end()
                raise LimitError(
                    f"the process that evaluates has ended: it may have needed more than {MAX_MEMORY >> 30} GiB (MAX_MEMORY)",
                    help="take fewer events, a shorter window, or a strategy that chooses",
                )
            answer: dict[str, Any] = json.loads(line)
            return answer

    async def _started(self) -> asyncio.subprocess.Process:
        if self._child is not None and self._child.returncode is None:
            return self._child
        pipe = asyncio.subprocess.PIPE
        # -P: the folder in which the workbench was started is no place to import from.
        self._child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "cepheid.play.worker"), stdin=pipe, stdout=pipe, limit=MAX_ANSWER, start_new_session=True
        )
        assert self._child.stdout is not None
        try:
            async with asyncio.timeout(STARTING):
                ready = await self._child.stdout.readline()
        except TimeoutError:
            ready = b""
        if not ready:
            await self._end()
            raise CepheidError("the process that evaluates cannot be started", help="cepheid doctor says what is missing")
        return self._child

    async def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None and child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()

    async def warm(self) -> None:
        """Start the process before it is asked; that it cannot be started is said when it is."""
        with contextlib.suppress(CepheidError, OSError):
            async with self._alone:
                await self._started()

    async def close(self) -> None:
        """End the process."""
        await self._end()


class Evaluator:
    """Answers the page: what is quick in one process, the rest in another."""

    def __init__(self, *, seconds: float = MAX_SECONDS) -> None:
        self._quick, self._slow = Process(seconds=seconds), Process(seconds=seconds)

    async def ask(self, question: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """As `Process.ask`."""
        return await (self._quick if question in QUICK else self._slow).ask(question, request)

    async def warm(self) -> None:
        """Start both."""
        await self._quick.warm()
        await self._slow.warm()

    async def close(self) -> None:
        """End both."""
        await self._quick.close()
        await self._slow.close()
