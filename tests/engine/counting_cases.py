"""Oracles of COUNT(*), and the way to feed an evaluation, for several tests."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np

from cepheid.automata.alphabet import Alphabet, Predicate
from cepheid.engine.evaluations.counts.counting import CountSizes
from cepheid.engine.output import exact_counts
from cepheid.language.syntax import Consumption

NONE, PARTITION, ANY = Consumption.NONE, Consumption.PARTITION, Consumption.ANY

LETTERS = (0, 1, 2, 4, 3, 6, 7)

MARKS = (frozenset({"x"}), frozenset({"y"}), frozenset({"x", "y"}), frozenset())


def tiny(rng):
    chunk = rng.choice([1, 3, 64])
    return CountSizes(
        places=rng.choice([1, 2, 4]),
        width=rng.choice([1, 2, 4]),
        chunk=chunk,
        most_chunk=2 * chunk,
        table=rng.choice([1, 12, 1 << 20]),
        collect=rng.choice([1, 3, 64]),
    )


@cache
def counts_of(program, letters, width):
    """Per end the number of matches in a window of so many events: the paths of the determinized automaton, in Python's integers, one by one."""
    memo = {}

    def successors(macro, letter):
        if (macro, letter) not in memo:
            memo[macro, letter] = program.successors(macro, letter)
        return memo[macro, letter]

    found = {}
    for end in range(len(letters)):
        row = {}
        for position in range(max(0, end - width + 1), end + 1):
            after, total = Counter(), 0
            for macro, count in [(program.initial, 1), *row.items()]:
                marked, unmarked = successors(macro, letters[position])
                for _, target in marked:
                    after[target] += count
                    total += count * program.accepts(target)
                if unmarked and macro != program.initial:
                    after[unmarked] += count
            row = after
        if total:
            found[end] = total
    return found


def runs(automaton, letters):
    """All matches, by following every run: sets of (position, mark); an independent definition, exponential."""
    open_runs, matches = {}, set()
    for position, letter in enumerate(letters):
        after = {}
        for move in automaton.transitions:
            if not move.enabled(letter):
                continue
            before = {()} if move.source == automaton.initial else open_runs.get(move.source, ())
            longer = {run if move.mark is None else (*run, (position, move.mark)) for run in before}
            after.setdefault(move.target, set()).update(longer)
            if move.target in automaton.finals and move.mark is not None:
                matches |= longer
        open_runs = after
        if len(matches) > 3_000 or sum(map(len, open_runs.values())) > 3_000:
            return None
    return matches


THREE_TYPES = Alphabet(tuple(Predicate(f"T{bit}") for bit in range(3)))


def collector(found, partition_of):
    def sink(chunk):
        assert (chunk.counts.dtype, len(chunk.counts)) == ("uint64", len(chunk))
        assert chunk.counts.shape[1] >= 2
        assert chunk.offsets.tolist() == list(range(len(chunk) + 1))
        assert chunk.labels.tolist() == [0] * len(chunk)
        for segment, end, count in zip(chunk.segments.tolist(), chunk.positions.tolist(), chunk.counts, strict=True):
            ends = found[partition_of(segment)]
            assert not ends or end > max(ends)
            ends[end] = exact_counts.to_integer(count)

    return sink


def feed(run, pieces, found, whose, **how):
    rows = [event for piece in pieces for event in piece]
    cuts = np.cumsum([0, *map(len, pieces[:-1])]).astype(np.int64)
    letters, times = np.array([row[1] for row in rows], np.uint64), np.array([row[2] for row in rows], np.int64)
    before = run.triggers
    run.feed(letters, times, cuts=cuts, sink=collector(found, lambda segment: whose[segment]), **how)
    assert len(run.marked) == len(rows)
    assert run.marked.sum() == run.triggers - before
