"""How many bytes the matches of one answer may take, and what is said where they take more.

A pattern can have as many matches as its events have subsets, so an answer that is listed whole needs a bound. Comes in: chunks of matches as an
evaluation makes them. Goes out: the same chunks as one, or a LimitError that names the event whose matches do not fit, how many it completes, and
the ways out. Running out of memory gets the same name.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cepheid.engine.memory.process import CHOOSE, FEWER, HELP, SAMPLE, process_memory
from cepheid.engine.run.together import together
from cepheid.errors import InputError, LimitError, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cepheid.engine.evaluations.base import AnyEvaluation, Chunk
    from cepheid.engine.output.matches import Match
    from cepheid.engine.run.together import EvenChunk

SHARE = 4
"""The matches of an answer may take one in so many bytes of the process's memory; while it is put together it takes up to three times its size."""

MADE_SHARE = 4
"""Those of an EVENT definition may take one in so many bytes of that: events are made of them."""

EXACT = 2.0**53
"""Up to here doubles count exactly."""

MARK_BYTES, MATCH_BYTES = 18, 24
"""Bytes of an answer per event of a match (position, label, row), and per match (offset, partition, segment)."""

FIRST_LOOK = 64
"""Matches of a chunk that are looked at first, to see where a trigger's begin or end."""

COUNTED_MARKS = 1 << 23
"""Events of matches that are made only to count the matches of one event, for a message; more are counted in the match graph, where there is one."""

CALL_HELP = (
    CHOOSE,
    "allow more for each call with q.recognizer(.., max_bytes=..); or read the events with q.batches(..), which gives all matches in bounded memory",
    "the state of this recognizer is incomplete now: `restore` its last snapshot, or start again with a new one",
)
"""What helps where one call of a recognizer has too many."""


@dataclass(slots=True)
class Allowance:
    """The bytes that the matches of one answer may take (None: as `default_max_bytes` says), and what they have taken.

    counts: whether the chunks themselves are counted; else whoever takes them adds to `used` what he makes of them.
    help: the ways out, where a query chooses among its matches by `CHOOSE`.
    """

    most: int | None = None
    counts: bool = True
    help: tuple[str, ...] = HELP
    used: int = 0
    matches: int = 0

    def __post_init__(self) -> None:
        """Look up the default once."""
        self.most = default_max_bytes() if self.most is None else self.most

    def collect(self, chunks: Iterator[Chunk], evaluation: AnyEvaluation | None, *, named: Callable[[Chunk], Match]) -> Chunk | EvenChunk:
        """All chunks as one; as `watch`."""
        return together(self.watch(chunks, evaluation, named=named))

    def watch(self, chunks: Iterator[Chunk], evaluation: AnyEvaluation | None, *, named: Callable[[Chunk], Match]) -> Iterator[Chunk]:
        """The chunks; evaluation: what makes them, None where HAVING leaves some out; named: gives the first match of a chunk, for the message.

        Raises LimitError past the allowance; the evaluation is then of no use any more.
        """
        last = None  # one match of the last trigger
        own = 0  # how many of its matches have come
        before = None  # the chunk before, which only another one makes worth a look
        for chunk in chunks:
            if not len(chunk):
                continue
            if before is not None:
                last, own = _counted_on(before, last, own)
            before = chunk
            self.matches += len(chunk)
            if self.counts:
                self.used += bytes_of(chunk)
            else:
                yield chunk
            if self.used > (self.most or 0):
                last, own = _counted_on(chunk, last, own)
                raise self._exceeded(named(last), _counted(last, own, chunks, evaluation), chosen=evaluation is not None)
            if self.counts:
                yield chunk

    def _exceeded(self, match: Match, completed: str, *, chosen: bool) -> LimitError:
        """chosen: whether the evaluation chooses among the matches, without a look at each."""
        time = "" if match.end_time is None else f" ({match.end_time})"
        keys = "".join(f", {name} = {value!r}" for name, value in match.keys.items())
        made = "1 was made" if self.matches == 1 else f"{self.matches:,} were made"
        return LimitError(
            f"the matches take more than {self.most:,} bytes (max_bytes): {made}, the last of them for the event at position"
            f" {match.end}{time}{keys}, which completes {completed}",
            help=self.help if chosen else [line.replace(CHOOSE, FEWER) for line in self.help if line != SAMPLE],
        )


def bytes_of(chunk: Chunk) -> int:
    """Bytes that the matches of a chunk take in an answer."""
    counts = 0 if chunk.counts is None else int(chunk.counts.nbytes)
    return MARK_BYTES * len(chunk.positions) + MATCH_BYTES * len(chunk) + counts


def _of_trigger(chunk: Chunk, last: Chunk) -> int:
    """How many matches of a chunk, the first ones, have the trigger of the one match in `last`."""
    return _alike(chunk, last, 1)


def _counted_on(chunk: Chunk, last: Chunk | None, own: int) -> tuple[Chunk, int]:
    """One match of the last trigger of a chunk, and how many of its matches have come; last, own: the same before the chunk."""
    final = chunk.take(np.array([len(chunk) - 1]))
    more = _alike(chunk, final, -1)
    return final, more + (own if more == len(chunk) and last is not None and _of_trigger(chunk, last) else 0)


def _alike(chunk: Chunk, match: Chunk, step: int) -> int:
    """How many matches at the beginning of a chunk, or with the step -1 at its end, have the trigger of one; O(of them)."""
    looked = 0
    while True:
        looked = min(max(FIRST_LOOK, 8 * looked), len(chunk))
        numbers = np.arange(looked) if step > 0 else len(chunk) - 1 - np.arange(looked)
        same = (chunk.segments[numbers] == match.segments[0]) & (chunk.positions[chunk.offsets[numbers + 1] - 1] == match.ends[0])
        if not same.all():
            return int(np.argmin(same))
        if looked == len(chunk):
            return looked


def _counted(last: Chunk, own: int, chunks: Iterator[Chunk], evaluation: AnyEvaluation | None) -> str:
    """How many matches the trigger of `last` has, of which `own` have come: counted, not kept. evaluation: None where it makes others too."""
    marks = 0
    for chunk in chunks:
        more = _of_trigger(chunk, last)
        own += more
        if more < len(chunk):
            break
        marks += len(chunk.positions)
        if marks >= COUNTED_MARKS:
            made = None if evaluation is None else evaluation.trigger_matches()
            if made is None:
                return f"at least {counted(own, 'match', 'matches')}"
            if made < EXACT:
                return counted(int(made), "match", "matches")
            return f"about {made:.3g} matches" if math.isfinite(made) else f"more than {sys.float_info.max:.1g} matches"
    return counted(own, "match", "matches")


def check_max_bytes(value: object) -> int | None:
    """A number of bytes, or None; raises InputError for anything else."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise InputError(f"max_bytes={value!r} is not a number of bytes", help="give a positive integer, such as 2 * 1024**3, or leave it out")


def default_max_bytes() -> int:
    """A quarter of the memory that this process may use."""
    return process_memory() // SHARE


def made_max_bytes(given: int | None) -> int:
    """What the matches of an EVENT definition may take; given: what somebody says. Events made of them take several times as much beside them."""
    return default_max_bytes() // MADE_SHARE if given is None else given
