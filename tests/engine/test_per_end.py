"""Strategies chosen end by end, against the definition: patterns with `:`, hidden events and nested strategies, windows, consumption, cuts."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import strategy_cases
from enough import Enough, share
from pattern_cases import SCHEMA, random_pattern, random_variables
from strategy_cases import CASES, SEED, Expected, Labelled, check, forgotten, stored

from cepheid.automata import end_program, program_of
from cepheid.engine.evaluations.around.trackers import Tracked
from cepheid.engine.evaluations.graph.per_end import PerEnd, PerEndSizes
from cepheid.errors import LimitError, SnapshotError
from cepheid.kernel import available
from cepheid.language.syntax import Consumption, Strategy
from cepheid.logical.plan import Event, Iterate, Link, QueryPlan, Sequence
from cepheid.testing import reference
from cepheid.testing.denotation import KEEPS

if TYPE_CHECKING:
    from cepheid.automata.program import EndProgram

TYPES = {"A": 1, "B": 2, "C": 4, "X": 0}


@dataclass(frozen=True)
class Case(strategy_cases.Case):
    """A pattern instead of a formula; letters are types, whose bits the program chooses."""

    pattern: Any = None
    variables: tuple[str, ...] | None = None
    strategy: Strategy = Strategy.NXT

    @cached_property
    def program(self) -> EndProgram:
        base = program_of(self.pattern, SCHEMA, variables=None, strategy=Strategy.ALL)
        return end_program(base, variables=self.variables, strategy=self.strategy)

    @cached_property
    def matches(self) -> list[dict[int, set[Any]]]:
        """Per partition and end the matches of the definition that are in the windows."""
        found = []
        for partition, stream in enumerate(self.streams):
            names = [next(name for name, letter in TYPES.items() if letter == event[0]) for event in stream]
            events = [reference.Event(name, None, {"type": name}) for name in names]
            plan = QueryPlan(self.pattern, SCHEMA, ("A", "B", "C", "ANY", "x", "y", "z"))
            by_end: dict[int, set[Any]] = defaultdict(set)
            for match in reference.matches(plan, events, max_matches=2_000):
                if self.inside(partition, match.start, match.end):
                    by_end[match.end].add(match)
            found.append(by_end)
        return found

    def expected(self) -> Expected:
        found: Expected = [{} for _ in range(self.partitions)]
        last, seen = [-1] * self.partitions, [0] * self.partitions
        for place, (partition, _, _) in enumerate(self.events):
            end = seen[partition]
            seen[partition] += 1
            places = [event[2] for event in self.streams[partition]]
            competing = [match for match in self.matches[partition].get(end, ()) if places[match.start] > last[partition]]
            if competing:
                supports = {frozenset(match.support) for match in competing}
                kept = [match for match in competing if KEEPS[self.strategy](frozenset(match.support), supports)]
                found[partition][end] = {self.shown_of(match) for match in kept}
                if self.consume is Consumption.PARTITION:
                    last[partition] = place
                elif self.consume is Consumption.ANY:
                    last = [place] * self.partitions
        return found

    def shown_of(self, match: reference.Match) -> Labelled:
        """The marks that are shown; the first and the last event have one in any case."""
        marks: dict[int, set[str]] = {match.start: set(), match.end: set()}
        for variable, positions in match.mapping:
            for position in positions:
                if self.variables is None or variable in self.variables:
                    marks.setdefault(position, set()).add(variable)
        return tuple((position, frozenset(mark)) for position, mark in sorted(marks.items()))


@cache
def random_case(number: int) -> Case:
    rng = random.Random(f"{SEED}/{number}")
    while True:
        partitions, now, events = rng.choice([1, 1, 2, 3]), rng.randint(-9, 9), []
        for _ in range(partitions * rng.randint(0, 8)):
            now += rng.choice([0, 0, 1, 1, 2, 5])
            events.append((rng.randrange(partitions), rng.choice([1, 2, 4, 1, 2, 4, 0]), now))
        case = Case(
            ("pattern",),
            tuple(events),
            partitions,
            window=rng.choice([None, None, 0, 1, 2, 3, 5, 8, 13]),
            count_window=rng.choice([None, None, 2, 3, 4, 5]),
            consume=rng.choice(list(Consumption)),
            pattern=random_pattern(rng, 3, rng.choice([0, 0.2])),
            variables=rng.choice([None, random_variables(rng)]),
            strategy=Strategy.MAX,
        )
        try:
            case.program, case.matches  # noqa: B018 - computed, to see whether they can be
        except LimitError:
            continue
        return case


class Lettered:
    """An evaluation that gets the letters of a case: types, whose numbers in the program's letters are its own."""

    def __init__(self, run: Any, case: Case) -> None:
        self.run = run
        alphabet = case.program.automaton.alphabet
        values = {p.type: value for p, value in zip(alphabet.predicates, alphabet.values, strict=True)}
        self.table = np.array([values.get("ABC"[letter.bit_length() - 1], 0) if letter else 0 for letter in range(8)], np.uint64)

    def feed(self, letters: Any, *args: Any, **how: Any) -> None:
        self.run.feed(self.table[letters], *args, **how)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.run, name)


def maker(case: Case, rng: random.Random, variant: str | None, limit: int | None = None) -> Any:
    def make() -> Lettered:
        sizes = PerEndSizes(piece=rng.choice([1, 3, 1000]), batch=rng.choice([1, 10, 1000]), garbage=rng.choice([0, 100]))
        run: Any = PerEnd(case.program, **case.bounds, limit=limit, variant=variant, sizes=sizes)
        return Lettered(Tracked(run, case.program, variant=variant) if case.program.trackers else run, case)

    return make


@pytest.mark.parametrize("variant", available())
def test_random_patterns(variant: str, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nCEPHEID_SEED={SEED} kernel {variant}")  # noqa: T201 - to run a failure again
    drawn = Enough(share(CASES, variant), total=10, nested=1, consumed=1)
    for number in drawn:
        rng, case = random.Random(f"{SEED}:{number}"), random_case(number)
        where = f"CEPHEID_SEED={SEED} case {number} {variant}: {case}"
        expected = case.expected()
        drawn.seen["total"] += check(stored(case, rng, maker(case, rng, variant)), expected, where)
        drawn.seen["nested"] += bool(case.program.trackers)
        drawn.seen["consumed"] += case.consume is not Consumption.NONE
        limit = rng.choice([1, 2, 3])
        check(stored(case, rng, maker(case, rng, variant, limit)), expected, where, limit=limit)
        if case.consume is not Consumption.ANY:
            check(forgotten(case.sequential, rng, maker(case, rng, variant)), case.sequential.expected(), where)


A, B, C = (Event(name) for name in "ABC")


def per_end(strategy: Strategy = Strategy.NXT, **bounds: Any) -> PerEnd:
    pattern = Sequence((A, Iterate(B), C), (Link(";"), Link(";")))
    base = program_of(pattern, SCHEMA, variables=None, strategy=Strategy.ALL)
    return PerEnd(end_program(base, variables=None, strategy=strategy), **bounds)


def fed(run: PerEnd, letters: list[int], *, times: list[int] | None = None, **how: Any) -> list[list[int]]:
    found: list[list[int]] = []

    def sink(chunk: Any) -> None:
        found.extend(part.tolist() for part in np.split(chunk.positions, chunk.offsets[1:-1]))

    types = np.array([letter.bit_length() for letter in letters], np.uint64)  # 1, 2, 4: A, B, C
    run.feed(types, np.array(times or range(len(letters)), np.int64), sink=sink, **how)
    return found


def test_counters_and_what_is_marked() -> None:
    run = per_end()
    assert fed(run, [1, 2, 0, 1, 2, 4, 4]) == [[0, 1, 4, 5], [0, 1, 4, 6]]
    assert (run.triggers, run.matches, run.events) == (2, 2, 7)
    assert run.marked.tolist() == [1, 1, 0, 1, 1, 1, 1]
    run = per_end(limit=0)
    assert fed(run, [1, 2, 4, 4]) == []
    assert (run.triggers, run.matches) == (2, 0)


def test_only_events_of_open_windows_are_kept() -> None:
    run = per_end(window=10)
    for start in range(0, 50_000, 1_000):
        fed(run, [1, 2, 0, 0, 4] * 200, times=list(range(start, start + 1_000)), slots=np.array([3], np.int32))
    assert run.memory_usage() < 1 << 20
    assert int(run.store.records[:, 3].sum()) < 12
    slots = np.array([3], np.int64)
    assert 3 not in run.expire(50_000).tolist()
    assert 3 in run.expire(60_000).tolist()
    assert int(run.store.records[:, 3].sum()) == 0
    assert not run.wasteful
    run.release(slots)
    assert fed(run, [1, 2, 4], slots=np.array([3], np.int32)) == [[0, 1, 2]]


def test_the_memory_of_a_long_window_is_given_back() -> None:
    run = per_end(window=10, limit=1)
    slots = np.array([0], np.int32)
    fed(run, [1, 2] * 20_000 + [4], times=[0] * 40_001, slots=slots)
    long = run.memory_usage()
    for start in range(1, 3):
        fed(run, [1, 2, 4], times=[100 * start] * 3, slots=slots)
        run.expire(100 * start + 1)
    assert run.wasteful
    assert run.memory_usage() < long / 2
    again = per_end(window=10, limit=1)
    again.load(run.dump())
    assert not again.wasteful
    assert again.memory_usage() < long / 10
    assert fed(again, [4], times=[201], slots=slots) == fed(run, [4], times=[201], slots=slots) != []


def test_many_partitions_are_collected() -> None:
    run = per_end(count_window=5)
    slots = np.arange(2_000, dtype=np.int32)
    for _ in range(5):
        fed(run, [1, 2, 2, 4] * 2_000, times=[0] * 8_000, cuts=np.arange(0, 8_000, 4), slots=slots)
    assert run.memory_usage() < 3 << 20
    assert run.triggers == 10_000


def test_times_at_the_ends_of_their_range() -> None:
    least, greatest = -(1 << 63), (1 << 63) - 1
    assert fed(per_end(window=5), [1, 2, 4], times=[least, least, least]) == [[0, 1, 2]]
    assert fed(per_end(window=5), [1, 2, 4], times=[least, 0, greatest]) == []
    assert fed(per_end(window=1 << 62), [1, 1, 2, 4], times=[least, greatest - 2, greatest, greatest]) == [[1, 2, 3]]


@pytest.mark.parametrize("name", ["end_numbers", "end_records", "end_positions", "end_letters", "end_times", "end_places"])
def test_a_damaged_snapshot_is_refused(name: str) -> None:
    run = per_end()
    fed(run, [1, 2, 2], slots=np.array([0], np.int32))
    sections = run.dump()
    for damage in ({key: value for key, value in sections.items() if key != name}, sections | {name: sections[name] + b"12345678"}):
        with pytest.raises(SnapshotError, match="windows do not fit"):
            per_end().load(damage)


def test_a_record_without_a_slot_is_refused() -> None:
    run = per_end()
    fed(run, [1, 2, 2], slots=np.array([0], np.int32))
    sections = run.dump()
    table = np.frombuffer(sections["end_records"], "<i8").copy()
    table[0] = 1 << 40
    with pytest.raises(SnapshotError, match="windows do not fit"):
        per_end().load(sections | {"end_records": table.tobytes()})
