"""Labelling: from the supports that a strategy has chosen to the matches on them.

Comes in: supports as positions with the letters of their events. Goes out: a `Chunk` of matches, projected to what the query shows. Where each
letter of a support allows one mark alone, the labels are read from a table; else the support is fed, as a stream of its own, to the match graph
of the labelling automaton (`cepheid.automata.supports`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cepheid.automata.supports import FIRST_EVENT, LAST_EVENT, labelling, shown_variables
from cepheid.engine.evaluations.base import Chunk, collect
from cepheid.engine.evaluations.events import Events
from cepheid.engine.evaluations.graph.match import Evaluation
from cepheid.engine.letters.codes import DIRECT_BITS, having
from cepheid.engine.letters.words import in_words
from cepheid.engine.memory.pools import offsets_of, ragged
from cepheid.errors import LimitError
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.automata.program import Program
    from cepheid.engine.memory.pools import Array

SEVERAL = (1 << 16) - 1
"""In the table of labels: a letter that may have several marks. As the labels of a program are fewer (LABEL_LIMIT), it is none of them."""

HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)

MARKS_AT_ONCE = 1 << 22
"""Marks up to which the labellings of several supports are made in one go; one support's come in the chunks of the match graph."""

DISTINCT_LIMIT = 1 << 22
"""Matches of one event that are remembered, where SELECT hides events inside them, to give none twice."""


@record
class SupportChunk:
    """Consecutive supports, at least one; the arrays belong to the receiver.

    offsets: int64, n + 1; support k is positions[offsets[k]:offsets[k + 1]]. positions: int64, ascending per support. letters: uint64,
    parallel to positions, the letters of these events. segments: int32, n: which segment of the call the support ended in. Supports of one
    trigger are consecutive.
    """

    offsets: Array
    positions: Array
    letters: Array
    segments: Array

    def __len__(self) -> int:
        return len(self.segments)

    def take(self, numbers: Array) -> SupportChunk:
        """The supports with these numbers, in this order."""
        lengths = np.diff(self.offsets)[numbers]
        _, marks = ragged(self.offsets[:-1][numbers], lengths)
        return SupportChunk(offsets_of(lengths), self.positions[marks], self.letters[marks], self.segments[numbers])


class Labelling:
    """The matches on given supports; any number of chunks, in the order of their triggers.

    program: its automaton has all visible marks; its label_sets are the marks after SELECT's projection. variant: of the match kernel. O(marks)
    where letters determine labels, else update and delay of the match graph over the supports.
    """

    def __init__(self, program: Program, *, variant: str | None = None) -> None:
        self.label_sets = program.label_sets
        self.bits = program.bits
        self._alphabet = program.automaton.alphabet
        self._variant = variant
        self._moves = [t for t in program.automaton.transitions if t.mark is not None]
        shown = shown_variables(self.label_sets)
        self._shown = {mark: self.label_sets.index(mark & shown) for mark in program.automaton.marks}
        self._graph_program = labelling(program, shown)
        self._graph_labels: Array = np.array([self.label_sets.index(mark) for mark in self._graph_program.label_sets], np.uint16)
        self._hidden = self.label_sets.index(frozenset()) if frozenset() in self.label_sets else None
        self._table: Array | None = self._label_table(np.arange(1 << self.bits, dtype=np.uint64)) if self.bits <= DIRECT_BITS else None
        self._graph: Evaluation | None = None
        self.begin()

    def begin(self) -> None:
        """A new call starts: its segments are numbered anew, so no trigger goes on."""
        self._trigger: tuple[int, int] | None = None
        self._given = 0
        self._seen: set[bytes] = set()

    @property
    def given(self) -> int:
        """Matches given so far of the trigger that the last support belonged to."""
        return self._given

    def label(self, chunk: SupportChunk, limit: int | None) -> Iterator[Chunk]:
        """The matches on these supports, as they are made; at most `limit` per trigger, without repetition; to be read to the end.

        Matches come in the order of their supports. Two supports of one trigger can give the same projected match: it is given once.
        """
        for labelled, crowded in self._labelled(chunk, self._labels_of(chunk.letters), limit):
            shown = labelled if self._hidden is None else self._distinct(_without(labelled, self._hidden), crowded=crowded)
            found = self._limited(shown, limit)
            if len(found):
                yield found

    def _labelled(self, chunk: SupportChunk, labels: Array, limit: int | None) -> Iterator[tuple[Chunk, bool]]:
        """All labellings, in pieces of bounded size, each with whether a trigger of it may have several supports.

        A support can have as many labellings as there are subsets of its events, so what is too much at once is halved, down to one support.
        """
        slow = np.logical_or.reduceat(labels == SEVERAL, chunk.offsets[:-1])
        crowded = self._crowded(chunk)
        if not slow.any():
            yield Chunk(chunk.offsets, chunk.positions, labels, chunk.segments), crowded
        elif len(chunk) == 1:
            for found in self._graph_of(limit).chunks(self._stream(chunk)):
                segments = np.full(len(found), chunk.segments[0], np.int32)
                yield Chunk(found.offsets, chunk.positions[found.positions], self._graph_labels[found.labels], segments), crowded
        elif (mixed := self._mixed(chunk, labels, slow, limit)) is not None:
            yield mixed, crowded
        else:
            for numbers in np.array_split(np.arange(len(chunk)), 2):
                part = chunk.take(numbers)
                yield from self._labelled(part, self._labels_of(part.letters), limit)

    # ------------------------------------------------------------------------------------------------ one label per letter

    def _labels_of(self, letters: Array) -> Array:
        if self._table is not None:
            labels: Array = self._table[letters]
            return labels
        different, place = np.unique(letters, return_inverse=True)
        return self._label_table(different)[place]

    def _label_table(self, letters: Array) -> Array:
        """The label of each letter (uint16), SEVERAL where the moves that it enables differ in theirs; any label where there are none."""
        labels: Array = np.full(len(letters), SEVERAL, np.uint16)
        met = np.zeros(len(letters), bool)
        several = np.zeros(len(letters), bool)
        letters = in_words(letters, self._alphabet)  # once, not for each move
        for t in self._moves:
            enabled = having(letters, self._alphabet, [(t.requires, t.forbids)])
            label = self._shown[t.mark] if t.mark is not None else SEVERAL
            several |= enabled & met & (labels != label)
            labels[enabled] = label
            met |= enabled
        labels[several] = SEVERAL
        return labels

    # ------------------------------------------------------------------------------------------------ several

    def _mixed(self, chunk: SupportChunk, labels: Array, slow: Array, limit: int | None) -> Chunk | None:
        """The labellings of the supports where `slow` from the match graph, the others' from their letters; None past MARKS_AT_ONCE."""
        slow, quick = np.flatnonzero(slow), np.flatnonzero(~slow)
        graph = self._by_graph(chunk.take(slow), limit)
        if graph is None:
            return None
        supports = chunk.take(quick)
        _, marks = ragged(chunk.offsets[:-1][quick], np.diff(supports.offsets))
        owner = np.concatenate([slow[graph.segments], quick])
        joined = Chunk(
            np.concatenate([graph.offsets, supports.offsets[1:] + graph.offsets[-1]]),
            np.concatenate([graph.positions, supports.positions]),
            np.concatenate([graph.labels, labels[marks]]),
            chunk.segments[owner],
        )
        return joined.take(np.argsort(owner, kind="stable"))

    def _by_graph(self, chunk: SupportChunk, limit: int | None) -> Chunk | None:
        """All labellings of supports; segments: the number of the support. None where they have more than MARKS_AT_ONCE marks.

        PERF: labellings depend on the letters alone, and most supports of a stream share theirs: each sequence of letters is labelled once.
        """
        representatives, place = _alike(chunk)
        found = self._labellings(chunk.take(representatives), limit)
        if found is None:
            return None
        # Every event of a support is marked, so a labelling of one is a labelling of each support with its letters.
        count = np.bincount(found.segments, minlength=len(representatives))
        if int((count[place] * np.diff(chunk.offsets)).sum()) > MARKS_AT_ONCE:
            return None
        owner, number = ragged((np.cumsum(count) - count)[place], count[place])
        lengths = np.diff(chunk.offsets)[owner]
        _, marks = ragged(chunk.offsets[:-1][owner], lengths)
        _, source = ragged(found.offsets[:-1][number], lengths)
        return Chunk(offsets_of(lengths), chunk.positions[marks], self._graph_labels[found.labels[source]], owner)

    def _labellings(self, chunk: SupportChunk, limit: int | None) -> Chunk | None:
        """The matches of the labelling automaton on supports, one after the other; segments: the number of the support. None past MARKS_AT_ONCE."""
        found: list[Chunk] = []
        marks = 0
        for part in self._graph_of(limit).chunks(self._stream(chunk)):
            found.append(part)
            marks += len(part.positions)
            if marks > MARKS_AT_ONCE:
                self._graph = None  # it is in the middle of something
                return None
        return collect(found)

    def _graph_of(self, limit: int | None) -> Evaluation:
        """The match graph of the labelling automaton, with no open partition."""
        if self._graph is None or self._graph.limit != limit:
            self._graph = Evaluation(self._graph_program, limit=limit, variant=self._variant)
        return self._graph

    def _stream(self, chunk: SupportChunk) -> Events:
        """The events of supports, each a segment, as the labelling automaton reads them."""
        letters = chunk.letters.astype(np.uint64)
        letters[chunk.offsets[:-1]] |= np.uint64(1 << self.bits + FIRST_EVENT)
        letters[chunk.offsets[1:] - 1] |= np.uint64(1 << self.bits + LAST_EVENT)
        return Events(letters, np.zeros(len(letters), np.int64), chunk.offsets[:-1])

    # ------------------------------------------------------------------------------------------------ projection and limit

    def _crowded(self, chunk: SupportChunk) -> bool:
        """Whether a trigger may have several supports: in this chunk, or one here and one before."""
        ends = chunk.positions[chunk.offsets[1:] - 1]
        if self._trigger == (int(chunk.segments[0]), int(ends[0])):
            return True
        return bool(((np.diff(chunk.segments) == 0) & (np.diff(ends) == 0)).any())

    def _distinct(self, chunk: Chunk, *, crowded: bool) -> Chunk:
        """Without the matches that their trigger has given already; matches on one support differ, so only crowded triggers are looked at."""
        if not len(chunk):
            return chunk
        starts = np.zeros(len(chunk), np.bool_)
        starts[chunk.triggers] = True
        if self._trigger == (int(chunk.segments[0]), int(chunk.ends[0])):
            starts[0] = False
        # Without a crowd, what is remembered is the last trigger, which may go on in the next chunk.
        first = 0 if crowded or not starts.any() else int(np.flatnonzero(starts)[-1])
        kept = []
        for number, begins in enumerate(starts[first:].tolist(), first):
            if begins:
                self._seen.clear()
            key = _key(chunk, number)
            if key not in self._seen:
                self._seen.add(key)
                kept.append(number)
        if len(self._seen) > DISTINCT_LIMIT:
            raise LimitError(
                f"one event ends {len(self._seen)} matches that SELECT projects, and the limit is {DISTINCT_LIMIT} (DISTINCT_LIMIT)",
                help="show all variables, or give a smaller window",
            )
        return chunk.take(np.array(kept, np.int64)) if first + len(kept) < len(chunk) else chunk

    def _limited(self, chunk: Chunk, limit: int | None) -> Chunk:
        """At most `limit` matches per trigger, also where a trigger's supports came in several chunks."""
        if not len(chunk) or (limit is None and self._hidden is None):
            return chunk
        ends, firsts = chunk.ends, chunk.triggers
        counts = np.diff(firsts, append=len(chunk))
        trigger = (int(chunk.segments[0]), int(ends[0]))
        before = self._given if trigger == self._trigger else 0
        number = np.arange(len(chunk)) - np.repeat(firsts, counts)
        number[: counts[0]] += before
        self._trigger = (int(chunk.segments[-1]), int(ends[-1]))
        self._given = int(number[-1]) + 1
        if limit is None or int(number.max()) < limit:
            return chunk
        return chunk.take(np.flatnonzero(number < limit))


def _without(chunk: Chunk, hidden: int) -> Chunk:
    """Without the events that no variable shows, but for the first and the last of a match."""
    keep = chunk.labels != hidden
    keep[chunk.offsets[:-1]] = True
    keep[chunk.offsets[1:] - 1] = True
    if keep.all():
        return chunk
    offsets = offsets_of(keep)[chunk.offsets]
    return Chunk(offsets, chunk.positions[keep], chunk.labels[keep], chunk.segments)


def _alike(chunk: SupportChunk) -> tuple[Array, Array]:
    """Supports such that each has the letters of one of them, and for each support which of them (int64 both).

    Found by a hash of the letters, then compared: a support that only has the hash of another one stands for itself.
    """
    lengths = np.diff(chunk.offsets)
    owner, index = ragged(np.zeros(len(chunk), np.int64), lengths)
    mixed = (chunk.letters ^ (chunk.letters >> np.uint64(29))) * HASH_FACTOR
    mixed = (mixed ^ (mixed >> np.uint64(32))) * (np.uint64(0xBF58476D1CE4E5B9) * (2 * index.astype(np.uint64) + np.uint64(1)))
    hashes = np.add.reduceat(mixed ^ (mixed >> np.uint64(31)), chunk.offsets[:-1])
    _, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    twin = first[place]
    other = np.minimum(chunk.offsets[:-1][twin][owner] + index, len(chunk.letters) - 1)
    alike = (lengths == lengths[twin]) & np.logical_and.reduceat(chunk.letters == chunk.letters[other], chunk.offsets[:-1])
    strange = np.flatnonzero(~alike)
    place[strange] = len(first) + np.arange(len(strange))
    return np.concatenate([first, strange]), place


def _key(chunk: Chunk, number: int) -> bytes:
    marks = slice(chunk.offsets[number], chunk.offsets[number + 1])
    key: bytes = chunk.positions[marks].tobytes() + chunk.labels[marks].tobytes()
    return key
