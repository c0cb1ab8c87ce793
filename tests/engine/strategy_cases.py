"""Cases for the selection strategies: random formulas of the waiting fragment, their winners by definition, and ways to feed an evaluation.

A formula is ("atom", requires, forbids, variables), ("seq", f, g), ("or", f, g) or ("plus", f). `random_case` makes one with its streams and
bounds; `expected` says what a strategy keeps, straight from the definition, with the reference's comparison of supports; `stored` and
`forgotten` feed an evaluation in random pieces; `check` compares. CEPHEID_CASES is the number of cases (default 200), CEPHEID_SEED the seed.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.automata.alphabet import Alphabet, Predicate
from cepheid.automata.automaton import Automaton
from cepheid.automata.program import Program
from cepheid.automata.supports import SupportProgram
from cepheid.automata.transform import trim
from cepheid.automata.transition import Transition, order
from cepheid.language.syntax import Consumption, Strategy
from cepheid.testing.denotation import KEEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

CASES = int(os.environ.get("CEPHEID_CASES", "200"))
SEED = int(os.environ.get("CEPHEID_SEED", str(random.SystemRandom().randrange(1 << 32))))
MOST_MATCHES = 3_000  # of one case, so that it stays quick

Mark = frozenset[str]
Labelled = tuple[tuple[int, Mark], ...]
"""A match: its positions, each with its variables."""

ALPHABETS = ((0, 1, 2, 4, 8, 3, 6, 7, 15), (1, 2, 3), (1, 2, 4), (7, 15, 1, 2), (3, 6, 9, 12), (0, 0, 0, 1, 2, 4, 8))
MARKS = (frozenset({"x"}), frozenset({"y"}), frozenset({"x", "y"}), frozenset({"z"}))
BITS = 4


class TooManyError(Exception):
    """A case that would take too long."""


# ------------------------------------------------------------------------------------------------------------------------- formulas


def random_formula(rng: random.Random, depth: int) -> tuple[Any, ...]:
    """A formula with at most 2 ** depth atoms; predicates overlap, some labels are ambiguous."""
    if depth == 0 or rng.random() < 0.15:
        requires = rng.choice([1, 2, 4, 8, 3, 6, 1, 2, 0])
        return ("atom", requires, rng.choice([0, 0, 0, 0, 1, 4, 8]) & ~requires, rng.choice(MARKS))
    kind = rng.random()
    if kind < 0.48:
        return ("seq", random_formula(rng, depth - 1), random_formula(rng, depth - 1))
    if kind < 0.72:
        return ("or", random_formula(rng, depth - 1), random_formula(rng, depth - 1))
    return ("plus", random_formula(rng, depth - 1))


def denotation(formula: tuple[Any, ...], letters: Sequence[int]) -> set[Labelled]:
    """The matches straight from the definition (exponential); raises TooManyError past MOST_MATCHES."""
    kind, *parts = formula
    if kind == "atom":
        requires, forbids, mark = parts
        return {((i, mark),) for i, letter in enumerate(letters) if letter & requires == requires and not letter & forbids}
    sets = [denotation(part, letters) for part in parts]
    if kind == "or":
        return sets[0] | sets[1]
    if kind == "seq":
        return _joined(*sets)
    found = last = sets[0]
    while last:
        last = _joined(last, sets[0]) - found
        found = found | last
    return found


def _joined(before: set[Labelled], after: set[Labelled]) -> set[Labelled]:
    found = set()
    for first in before:
        for second in after:
            if first[-1][0] < second[0][0]:
                found.add(first + second)
        if len(found) > MOST_MATCHES:
            raise TooManyError
    return found


def automaton_of(formula: tuple[Any, ...], *, spread: int = 1) -> Automaton:
    """Thompson's way without empty moves: no transition enters the initial state, waiting loops before each later part.

    spread: bit k of a letter is bit spread * k of the automaton's.
    """
    count = 0

    def new() -> int:
        nonlocal count
        count += 1
        return count - 1

    def build(f: tuple[Any, ...]) -> tuple[int, set[int], list[Transition]]:
        kind, *parts = f
        if kind == "atom":
            source, target = new(), new()
            return source, {target}, [Transition(source, target, widen(parts[0], spread), parts[2], widen(parts[1], spread))]
        first, finals, moves = build(parts[0])
        if kind == "plus":
            wait = new()
            into = [replace(t, target=wait) for t in moves if t.target in finals]
            again = [replace(t, source=wait) for t in moves + into if t.source == first]
            return first, finals, [*moves, *into, *again, Transition(wait, wait)]
        second, more_finals, more = build(parts[1])
        if kind == "seq":
            joins = [replace(t, target=second) for t in moves if t.target in finals]
            return first, more_finals, [*moves, *more, *joins, Transition(second, second)]
        start = new()
        both = [replace(t, source=start) for t in moves + more if t.source in (first, second)]
        return start, finals | more_finals, [*moves, *more, *both]

    initial, finals, moves = build(formula)
    predicates = tuple(Predicate(f"T{k}") for k in range(spread * (BITS - 1) + 1))
    return trim(Automaton(count, initial, frozenset(finals), order(moves), Alphabet(predicates)))


def widen(letter: int, spread: int) -> int:
    """The letter with bit k moved to bit spread * k."""
    return sum(1 << spread * k for k in range(BITS) if letter >> k & 1)


# ------------------------------------------------------------------------------------------------------------------------- cases


@dataclass(frozen=True)
class Case:
    """A formula over a stream of several partitions: for each event its partition, letter and time; and the bounds.

    shown: the variables of SELECT, None for all. spread: see `automaton_of`.
    """

    formula: tuple[Any, ...]
    events: tuple[tuple[int, int, int], ...]
    partitions: int
    window: int | None = None
    count_window: int | None = None
    consume: Consumption = Consumption.NONE
    spread: int = 1
    shown: Mark | None = None

    @cached_property
    def program(self) -> Program:
        automaton = automaton_of(self.formula, spread=self.spread)
        return Program(automaton) if self.shown is None else SupportProgram(automaton, self.shown)

    @property
    def bounds(self) -> dict[str, Any]:
        """The arguments of an evaluation."""
        return {"window": self.window, "count_window": self.count_window, "consume": self.consume}

    @property
    def sequential(self) -> Case:
        """The same partitions, one after the other."""
        return replace(self, events=tuple(sorted(self.events, key=lambda event: event[0])))

    @cached_property
    def streams(self) -> list[list[tuple[int, int, int]]]:
        """Per partition (letter, time, place in the stream) of its events."""
        streams: list[list[tuple[int, int, int]]] = [[] for _ in range(self.partitions)]
        for place, (partition, letter, time) in enumerate(self.events):
            streams[partition].append((letter, time, place))
        return streams

    def inside(self, partition: int, start: int, end: int) -> bool:
        """Whether a match from start to end is in the windows."""
        stream = self.streams[partition]
        return (self.window is None or stream[end][1] - stream[start][1] <= self.window) and (
            self.count_window is None or end - start < self.count_window
        )

    @cached_property
    def matches(self) -> list[dict[int, set[Labelled]]]:
        """Per partition and end, all matches of the formula that are in the windows."""
        found: list[dict[int, set[Labelled]]] = []
        for partition, stream in enumerate(self.streams):
            by_end: dict[int, set[Labelled]] = defaultdict(set)
            total = 0
            for match in self._candidates(stream):
                if self.inside(partition, match[0][0], match[-1][0]):
                    by_end[match[-1][0]].add(match)
                    total += 1
            if total > MOST_MATCHES:
                raise TooManyError
            found.append(by_end)
        return found

    def _candidates(self, stream: list[tuple[int, int, int]]) -> Iterator[Labelled]:
        letters = [letter for letter, _, _ in stream]
        if self.count_window is None or self.count_window > len(letters):
            yield from denotation(self.formula, letters)
            return
        for end in range(len(letters)):  # window by window: a long stream has too many matches as a whole
            first = max(0, end - self.count_window + 1)
            for match in denotation(self.formula, letters[first : end + 1]):
                if match[-1][0] == end - first:
                    yield tuple((first + position, mark) for position, mark in match)


def random_case(rng: random.Random, *, long: bool = False) -> Case:
    """A case whose matches can be listed; long: up to 150 events per partition under a small window by position."""
    while True:
        case = _random_case(rng, long=long)
        try:
            case.matches  # noqa: B018 - computed, to see whether it can be
        except TooManyError:
            continue
        return case


def _random_case(rng: random.Random, *, long: bool) -> Case:
    partitions = rng.choice([1, 1, 2, 2, 4])
    alphabet, events, now = rng.choice(ALPHABETS), [], rng.randint(-9, 9)
    partition, stay = 0, rng.choice([0.0, 0.5, 0.8])  # how likely the next event is of the same partition
    for _ in range(partitions * (rng.randint(40, 150) if long else rng.randint(0, 10))):
        now += rng.choice([0, 0, 1, 1, 2, 5])
        partition = partition if rng.random() < stay else rng.randrange(partitions)
        events.append((partition, rng.choice(alphabet), now))
    return Case(
        random_formula(rng, rng.choice([2, 3]) if long else rng.choice([1, 2, 3, 3, 4])),
        tuple(events),
        partitions,
        window=rng.choice([None, None, 0, 1, 2, 3, 5, 8, 13, 99]),
        count_window=rng.choice([2, 3, 5, 6]) if long else rng.choice([None, None, 1, 2, 3, 4, 5, 8]),
        consume=rng.choice([Consumption.NONE, Consumption.PARTITION if partitions == 1 else Consumption.ANY, *Consumption]),
        spread=rng.choice([1, 1, 1, 7]),
    )


Expected = list[dict[int, set[Labelled]]]
"""Per partition and trigger, the matches that a strategy keeps."""


def expected(case: Case, strategy: Strategy) -> Expected:
    """What the definition keeps: of the matches that start after the last trigger, those of a winning support; then what is shown of them."""
    found: Expected = [{} for _ in range(case.partitions)]
    last = [-1] * case.partitions
    seen = [0] * case.partitions
    for place, (partition, _, _) in enumerate(case.events):
        end = seen[partition]
        seen[partition] += 1
        places = [event[2] for event in case.streams[partition]]
        competing = [match for match in case.matches[partition].get(end, ()) if places[match[0][0]] > last[partition]]
        if not competing:
            continue
        found[partition][end] = {projection(match, case.shown) for match in winners(competing, strategy)}
        if case.consume is Consumption.PARTITION:
            last[partition] = place
        elif case.consume is Consumption.ANY:
            last = [place] * case.partitions
    return found


def winners(competing: Iterable[Labelled], strategy: Strategy) -> set[Labelled]:
    """The matches, all of one end, whose support the strategy keeps."""
    supports = {match: frozenset(position for position, _ in match) for match in competing}
    kept = {support for support in set(supports.values()) if KEEPS[strategy](support, set(supports.values()))}
    return {match for match, support in supports.items() if support in kept}


def projection(match: Labelled, shown: Mark | None) -> Labelled:
    """What is left of a match when only these variables are shown: other events go, but the first and the last stay."""
    if shown is None:
        return match
    ends = (match[0][0], match[-1][0])
    return tuple((position, mark & shown) for position, mark in match if mark & shown or position in ends)


# ------------------------------------------------------------------------------------------------------------------------- feeding

Found = list[list[Labelled]]
"""Per partition, the matches in the order in which they were given."""

Make = Any
"""A function without arguments that gives a fresh evaluation."""


def stored(case: Case, rng: random.Random, make: Make, *, restore: bool = True) -> Found:
    """Every partition in a slot of its own, events in random batches; state dumped and loaded between some of them."""
    run = make()
    found = Fed(case)
    slots = rng.sample(range(case.partitions + 3), case.partitions)
    for batch in _batches(case, rng):
        segments = [list(run_of) for _, run_of in groupby(_arranged(case, batch, rng), key=lambda event: event[0])]
        pieces = [piece for segment in segments for piece in _pieces(segment, rng)]
        feed(case, run, pieces, found, slots=np.array([slots[piece[0][0]] for piece in pieces], np.int32))
        if restore and rng.random() < 0.3:
            sections = run.dump()
            run = make()
            run.load(sections)
    return found.matches


def _batches(case: Case, rng: random.Random) -> Iterator[list[tuple[int, int, int]]]:
    at = 0
    while at < len(case.events):
        to = at + rng.choice([1, 2, 5, 9, 40])
        yield list(case.events[at:to])
        at = to


def _arranged(case: Case, batch: list[tuple[int, int, int]], rng: random.Random) -> list[tuple[int, int, int]]:
    """Without consumption across partitions a batch may come partition by partition."""
    by_partition = case.consume is not Consumption.ANY and rng.random() < 0.7
    return sorted(batch, key=lambda event: event[0]) if by_partition else batch


def _pieces(segment: list[Any], rng: random.Random) -> Iterator[list[Any]]:
    at = 0
    while at < len(segment):
        to = at + rng.choice([1, 3, 9])
        yield segment[at:to]
        at = to


def forgotten(case: Case, rng: random.Random, make: Make) -> Found:
    """Partition after partition (give `case.sequential`), nothing stored: a batch may begin inside a partition."""
    run = make()
    found = Fed(case)
    pieces: list[list[tuple[int, int, int]]] = []
    continued = False
    for _, events in groupby(case.events, key=lambda event: event[0]):
        stream = list(events)
        cut = rng.randint(0, len(stream))
        if cut and rng.random() < 0.7:  # the partition goes on in the next batch
            feed(case, run, [*pieces, stream[:cut]], found, continued=continued)
            pieces, continued = [stream[cut:]], True
            if rng.random() < 0.3:
                feed(case, run, pieces, found, continued=True, partition=stream[0][0])
                pieces, continued = [], False
        else:
            pieces.append(stream)
        if pieces and not pieces[-1]:  # an empty segment has no event to say whose it is
            feed(case, run, pieces, found, continued=continued, partition=stream[0][0])
            pieces, continued = [], False
    if pieces:
        feed(case, run, pieces, found, continued=continued)
    return found.matches


class Fed:
    """What came of feeding a case: the matches of each partition, and for each of its events whether the evaluation marked it."""

    def __init__(self, case: Case) -> None:
        self.matches: Found = [[] for _ in range(case.partitions)]
        self.marked: list[list[int]] = [[] for _ in range(case.partitions)]


def feed(case: Case, run: Any, pieces: list[Any], found: Fed, *, partition: int = -1, **how: Any) -> None:
    """Feed segments of (partition, letter, time); `partition`: whose the empty ones are. All events of a match must have been marked."""
    rows = [event for piece in pieces for event in piece]
    lengths = [len(piece) for piece in pieces]
    letters = np.array([widen(letter, case.spread) for _, letter, _ in rows], np.uint64)
    times = np.array([time for _, _, time in rows], np.int64)
    cuts = np.cumsum([0, *lengths[:-1]]).astype(np.int64)
    whose = [piece[0][0] if piece else partition for piece in pieces]
    given: list[tuple[int, Labelled]] = []
    run.feed(letters, times, sink=collector(case.program, given), cuts=cuts, **how)
    assert len(run.marked) == len(rows)
    for (owner, _, _), mark in zip(rows, run.marked.tolist(), strict=True):
        found.marked[owner].append(mark)
    for segment, match in given:
        assert all(found.marked[whose[segment]][position] for position, _ in match), match
        found.matches[whose[segment]].append(match)


def collector(program: Any, given: list[tuple[int, Labelled]]) -> Callable[[Any], None]:
    """A sink that appends (segment, match)."""
    labels = program.label_sets

    def sink(chunk: Any) -> None:
        offsets, positions, numbers = chunk.offsets.tolist(), chunk.positions.tolist(), chunk.labels.tolist()
        assert offsets[0] == 0
        assert offsets[-1] == len(positions) == len(numbers)
        for k, segment in enumerate(chunk.segments.tolist()):
            marks = [labels[number] for number in numbers[offsets[k] : offsets[k + 1]]]
            given.append((segment, tuple(zip(positions[offsets[k] : offsets[k + 1]], marks, strict=True))))

    return sink


# ------------------------------------------------------------------------------------------------------------------------- checking


def check(found: Found, wanted: Expected, where: str, *, limit: int | None = None) -> int:
    """Assert that each trigger gave its matches (as many of them as `limit` lets), in order of the triggers; returns how many matches."""
    for partition, matches in enumerate(found):
        assert len(set(matches)) == len(matches), f"duplicates: {where}"
        ends = [match[-1][0] for match in matches]
        assert ends == sorted(ends), f"order: {where}"
        given: dict[int, set[Labelled]] = defaultdict(set)
        for match in matches:
            given[match[-1][0]].add(match)
        assert given.keys() == wanted[partition].keys(), f"triggers of partition {partition}: {where}"
        for end, kept in wanted[partition].items():
            if limit is None:
                assert given[end] == kept, f"partition {partition}, end {end}: {where}"
            else:
                assert given[end] <= kept, f"partition {partition}, end {end}: {where}"
                assert len(given[end]) == min(limit, len(kept)), f"partition {partition}, end {end}: {where}"
    return sum(map(len, found))
