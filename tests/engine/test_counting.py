"""COUNT(*) against the definition, against the runs of random automata, and against Python's integers on long streams.

CEPHEID_CASES is the number of random cases per test (default 200), CEPHEID_SEED the seed (default: drawn, and printed).
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from counting_cases import ANY, LETTERS, MARKS, NONE, PARTITION, THREE_TYPES, feed, runs, tiny
from enough import Enough, Kept, share
from strategy_cases import CASES, SEED

import cepheid
from cepheid.automata.automaton import Automaton
from cepheid.automata.program import Program, program_of
from cepheid.automata.transition import Transition, order
from cepheid.engine.evaluations.counts.counting import Counting
from cepheid.engine.letters.predicates import Predicates
from cepheid.engine.run import definition
from cepheid.errors import LimitError
from cepheid.kernel import available
from cepheid.logical.rewrite import rewrite
from cepheid.logical.windows import hoist
from cepheid.testing import generators, reference


def random_automaton(rng):
    """Moves of every kind: several marks on one event, unmarked moves between states, states that die."""
    states = rng.randint(2, 6)
    inner = range(1, states)
    moves = {Transition(0, rng.choice(inner), rng.choice([0, 1, 2, 4, 3]), rng.choice(MARKS)) for _ in range(rng.randint(2, 4))}
    for _ in range(rng.randint(3, 14)):
        mark = rng.choice([None, None, *MARKS[:3]])
        moves.add(Transition(rng.choice(inner), rng.choice(inner), rng.choice([0, 0, 1, 2, 4, 3]), mark, rng.choice([0, 0, 4])))
    finals = frozenset(rng.choice(inner) for _ in range(2))
    return Automaton(states, 0, finals, order(moves), THREE_TYPES)


@dataclass
class Case:
    """events: (partition, letter, time) in stream order; expected: per partition, end -> number of matches."""

    program: Program
    events: list[tuple[int, int, int]]
    partitions: int
    bounds: dict
    expected: list[dict[int, int]]

    def __str__(self):
        return f"{self.bounds}\n{self.events}\n{self.program.automaton}"


@cache
def random_case(number):
    rng = random.Random(f"{SEED} count {number}")
    while True:
        automaton = random_automaton(rng)
        partitions = rng.choice([1, 1, 2, 4])
        events, now = [], rng.randint(-5, 5)
        for _ in range(rng.randint(0, 13 * partitions)):
            now += rng.choice([0, 1, 1, 2, 5])
            events.append((rng.randrange(partitions), rng.choice(LETTERS), now))
        bounds = {
            "window": rng.choice([None, 0, 1, 2, 5, 8, 13]),
            "count_window": rng.choice([None, None, 1, 2, 3, 5, 8]),
            "consume": rng.choice([NONE, NONE, PARTITION, ANY]),
        }
        streams = [
            [(letter, time, place) for place, (p, letter, time) in enumerate(events) if p == partition] for partition in range(partitions)
        ]
        matches = [runs(automaton, [letter for letter, _, _ in stream]) for stream in streams]
        if None not in matches:
            return Case(Program(automaton), events, partitions, bounds, expected(events, streams, matches, **bounds))


def expected(events, streams, matches, *, window, count_window, consume):
    found, seen, last = [{} for _ in streams], [0] * len(streams), [-1] * len(streams)
    for place, (partition, _, time) in enumerate(events):
        stream, end = streams[partition], seen[partition]
        seen[partition] += 1
        count = 0
        for match in matches[partition]:
            start = match[0][0]
            inside = (window is None or time - stream[start][1] <= window) and (count_window is None or end - start < count_window)
            count += match[-1][0] == end and inside and stream[start][2] > last[partition]
        if count:
            found[partition][end] = count
            if consume is not NONE:
                last = [place if consume is ANY or other == partition else before for other, before in enumerate(last)]
    return found


def stored(case, rng, make):
    """Every partition in a slot, the stream in random batches; dumped and loaded between some of them."""
    run, found = make(), [{} for _ in range(case.partitions)]
    slots = rng.sample(range(case.partitions + 3), case.partitions)
    at = 0
    while at < len(case.events):
        to = at + rng.choice([1, 2, 5, 9, 40])
        batch = case.events[at:to]
        at = to
        if case.bounds["consume"] is not ANY and rng.random() < 0.7:
            batch = sorted(batch, key=lambda event: event[0])
        pieces = [[event] for event in batch]
        for index in range(len(pieces) - 1, 0, -1):  # neighbours of one partition are one segment, mostly
            if pieces[index][0][0] == pieces[index - 1][0][0] and rng.random() < 0.8:
                pieces[index - 1 : index + 1] = [pieces[index - 1] + pieces[index]]
        whose = [piece[0][0] for piece in pieces]
        feed(run, pieces, found, whose, slots=np.array([slots[partition] for partition in whose], np.int32))
        if rng.random() < 0.3:
            sections, again = run.dump(), make()
            again.load(sections)
            assert again.dump()["counters"] == sections["counters"]
            run = again
        elif rng.random() < 0.2:
            run.expire(case.events[min(at, len(case.events)) - 1][2])
    return found


def forgotten(case, rng, make):
    """Partition after partition, none kept; a batch may begin inside a partition."""
    run, found = make(), [{} for _ in range(case.partitions)]
    continued = False
    for partition in range(case.partitions):
        stream = [event for event in case.events if event[0] == partition]
        cut = rng.randint(0, len(stream))
        feed(run, [stream[:cut]], found, [partition])
        feed(run, [stream[cut:]], found, [partition], continued=True)
        assert not continued
    return found


# ------------------------------------------------------------------------------------------------------------------------- random tests


@pytest.mark.parametrize("variant", available())
def test_random_automata(variant, capsys):
    with capsys.disabled():
        print(f"\n{CASES} random cases, CEPHEID_SEED={SEED}, kernel {variant}")  # noqa: T201 - to run a failure again
    drawn = Enough(share(CASES, variant), total=50)
    for number in drawn:
        rng = random.Random(f"{SEED} count {number} {variant}")
        case = random_case(number)
        where = f"CEPHEID_SEED={SEED} case {number} variant {variant} {case}"

        def make(case=case, rng=rng):
            return Counting(case.program, **case.bounds, variant=variant, sizes=tiny(rng))

        assert stored(case, rng, make) == case.expected, where
        if case.bounds["consume"] is not ANY:
            assert forgotten(case, rng, make) == case.expected, where
        drawn.seen["total"] += sum(map(sum, (counts.values() for counts in case.expected)))


def random_queries():
    """(text, plan, events, expected) of random queries of the engine's fragment."""
    fragment = dataclasses.replace(generators.ENGINE, strategies=("", "ALL", "STRICT"), count=1.0, consume=0.4)
    for number in itertools.count():
        rng = random.Random(f"{SEED} query {number}")
        query = cepheid.query(generators.random_query(rng, fragment=fragment))
        events = generators.table(generators.random_stream(rng))
        plan = query.bound(query.schema(events.schema))
        try:
            result = reference.run(plan, definition.rows_of(plan, events), max_matches=3_000)
        except LimitError:  # too many matches for the definition
            continue
        found = {(part.key, group.end): group.count for part in result.partitions for group in part.groups}
        yield query.text, plan, events, found


QUERIES = Kept(random_queries())


@pytest.mark.parametrize("variant", available())
def test_random_queries(variant):
    """Projections, conjunctions, `:`, STRICT, filters, optional parts: each match is counted once."""
    drawn = Enough(share(CASES, variant), QUERIES, total=10)
    for text, plan, events, expected_counts in drawn:
        rewritten = rewrite(plan)
        pattern, bounds = hoist(rewritten.pattern)
        program = program_of(pattern, plan.schema, variables=None, strategy=plan.strategy)
        run = Counting(program, window=bounds.window, count_window=bounds.count, consume=plan.consume, variant=variant)
        letters = Predicates(program.automaton.alphabet, plan.schema).letters(events)
        rows = events.to_pylist()
        keys = [tuple(None if row[name] != row[name] else row[name] for name in rewritten.partition_by) for row in rows]
        kept = [place for place, key in enumerate(keys) if None not in key]
        slots = {key: slot for slot, key in enumerate(dict.fromkeys(keys[place] for place in kept))}
        names = list(slots)
        found = [{} for _ in names]
        pieces = [[(0, int(letters[place]), rows[place]["ts"])] for place in kept]
        whose = [slots[keys[place]] for place in kept]
        if pieces:
            feed(run, pieces, found, whose, slots=np.array(whose, np.int32))
        given = {(names[slot], end): count for slot, ends in enumerate(found) for end, count in ends.items()}
        assert given == expected_counts, f"CEPHEID_SEED={SEED} {text}\n{rows}"
        drawn.seen["total"] += sum(given.values())
