"""Shared by differential tests: random cases with their answers by the definition, and every way to evaluate one.

A `Case` is a query, its events, and for each trigger the matches that may be given and how many of them. `draw` makes cases from a seed and a
fragment of the language, `check` judges an answer. `WAYS` are the ways in which events can come: all at once, as a list, as a reader, pushed in
random pieces, with a snapshot and a restart at every cut, out of order; or the matches come in batches. They must all give the same matches in the
same order, including those that ANY and LIMIT choose.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from unittest import mock

import numpy as np
import pyarrow as pa

import cepheid
from cepheid.engine.evaluations.counts import listed as limits
from cepheid.errors import LimitError
from cepheid.records import record
from cepheid.schema import schema_of
from cepheid.testing import generators, reference
from cepheid.testing.methods import layers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cepheid.engine.output.matches import Matches
    from cepheid.engine.run.recognizer import Recognizer
    from cepheid.query import Query
    from cepheid.testing.generators import QueryFragment

MAX_MATCHES = 3_000
"""Most matches of a case's sub-patterns; a case that has more is passed over."""

RARE = 10
"""One case in so many, and five more, may pass a limit of the engine: usually one in hundreds does."""

MICROSECONDS = 1_000_000
"""Of a second: the steps of a case's timestamps."""


class Row(NamedTuple):
    """A match as a value: the key of its partition, its interval, and its variables that are not empty; for COUNT(*) the number instead."""

    key: tuple[Any, ...]
    start: int
    end: int
    mapping: tuple[tuple[str, tuple[int, ...]], ...]


Trigger = tuple[tuple[Any, ...], int]
"""A partition's key, and the position of the event that completes matches."""


class Answer(NamedTuple):
    """The matches that a trigger may give, and how many of them it gives."""

    candidates: frozenset[Row]
    choose: int


@record
class Case:
    """A query, its events and the answer of each trigger. seed, number: what made it. undecided: what absences leave open, as `expected`."""

    seed: int
    number: int
    query: Query
    events: pa.Table
    expected: dict[Trigger, Answer]
    undecided: dict[Trigger, Answer] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"CEPHEID_SEED={self.seed} case {self.number}\n{self.query.text}\n{self.events.to_pylist()}"

    def random(self, purpose: str) -> random.Random:
        """Randomness of its own for a purpose, the same at each call."""
        return random.Random(f"{self.seed}/{self.number}/{purpose}")


def draws(fragment: QueryFragment, *, seed: int, longest: int = 12) -> Iterator[Case]:
    """Cases without end; every other one has timestamps instead of a numeric time.

    longest: most events of a stream. The same arguments give the same cases. A query that passes a limit of the engine is passed over, as one that
    has too many matches for the definition; raises AssertionError where that happens more often than to one case in `RARE`.
    """
    given = refused = 0
    for number in itertools.count():
        rng = random.Random(f"{seed}/{number}")
        timed = number % 2 == 1
        text = generators.random_query(rng, fragment=dataclasses.replace(fragment, unit="s" if timed else ""))
        rows = generators.random_stream(rng, most=longest if number % 3 else longest // 2)
        events = generators.table(rows, timed=timed)
        query = cepheid.query(text)
        try:
            expected, undecided = answers(query, events)
        except LimitError:  # too many matches for the definition: as the generator says, take the next
            continue
        if not (fits(query, events.schema) and _runs(query, events)):
            refused += 1
            if refused > 5 + given // RARE:
                raise AssertionError(f"of {given + refused} random queries {refused} pass a limit of the engine (CEPHEID_SEED={seed})")
            continue
        given += 1
        yield Case(seed, number, query, events, expected, undecided)


def draw(fragment: QueryFragment, *, count: int, seed: int, longest: int = 12) -> list[Case]:
    """The first `count` of the cases that `draws` gives."""
    return list(itertools.islice(draws(fragment, seed=seed, longest=longest), count))


def fits(query: Query, schema: pa.Schema) -> bool:
    """Whether the engine takes the query: a random one may pass a limit, for it nests strategies or piles up conditions, once in some hundreds."""
    try:
        query.compiled(query.schema(schema))
    except LimitError:
        return False
    return True


def _runs(query: Query, events: pa.Table) -> bool:
    """Whether the engine reads the events: the macro states of conditions between events are made as these come, and may pass a limit."""
    if any(layer.valued for layer in layers_of(query.compiled(query.schema(events)))):
        try:
            query.run(events)
        except LimitError:
            return False
    return True


MOST_MADE_BYTES = 1 << 22
"""What the matches of a definition may take in a random case: some ten thousands, which are put in order one by one."""

MOST_LISTED = 1 << 14
"""How many matches of a trigger are looked at in a random case where each is: for HAVING, or COUNT(*) of what is not counted in the match graph."""


def matches_up_to(most: int, query: Query, events: pa.Table, **options: Any) -> Matches | None:
    """The matches that `query.run` gives with these options, None where they are more than `most` or pass a limit of the engine.

    A pattern may have exponentially many: they are looked for with a LIMIT first, and not listed. Those of an EVENT definition are always listed:
    past `MOST_MADE_BYTES` they are too many, too.
    """
    plan = query.bound(query.schema(events))
    if plan.definitions:
        options = {"max_bytes": MOST_MADE_BYTES, **options}
    with mock.patch.object(limits, "MAX_LISTED", MOST_LISTED):
        try:
            if not plan.count:
                limit = min(most + 1, plan.limit or most + 1)
                few = cepheid.query(dataclasses.replace(query.tree, limit=limit), args=query.args)
                if len(few.run(events, **options)) > most:
                    return None
            return query.run(events, **options)
        except LimitError:
            return None


def by_definition(query: Query, events: pa.Table) -> dict[Trigger, Answer]:
    """The answer of each trigger by `cepheid.testing.reference`; raises LimitError past `MAX_MATCHES`."""
    return answers(query, events)[0]


def answers(
    query: Query, events: pa.Table, *, until: int | Literal["end"] | None = None
) -> tuple[dict[Trigger, Answer], dict[Trigger, Answer]]:
    """By the definition, the answer of each trigger whose matches are given, and of each that is not decided at `until`; as `by_definition`."""
    plan = query.bound(schema_of(events.schema))
    times = events["ts"].cast("int64").to_pylist()
    given = [reference.Event(row["type"], time, row) for row, time in zip(events.to_pylist(), times, strict=True)]
    partitions = reference.run(plan, given, until=until, max_matches=MAX_MATCHES).partitions

    def of(groups: Callable[[reference.Partition], tuple[reference.Group, ...]]) -> dict[Trigger, Answer]:
        return {(each.key, group.end): _answer(each.key, group, counted=plan.count) for each in partitions for group in groups(each)}

    return of(lambda partition: partition.groups), of(lambda partition: partition.undecided)


def _answer(key: tuple[Any, ...], group: reference.Group, *, counted: bool) -> Answer:
    if counted:
        return Answer(frozenset({Row(key, group.end, group.end, (("count", (group.count,)),))}), 1)
    rows = (Row(key, m.start, m.end, tuple((v, p) for v, p in m.mapping if p)) for m in group.candidates)
    return Answer(frozenset(rows), group.choose)


def rows_of(matches: Matches) -> list[Row]:
    """Matches as values, in their order."""
    if any(field.name == "count" for field in matches.layout.measures):
        return [Row(tuple(m.keys.values()), m.start, m.end, (("count", (m.measures["count"],)),)) for m in matches]
    return [Row(tuple(m.keys.values()), m.start, m.end, tuple(sorted((v, p) for v, p in m.variables.items() if p))) for m in matches]


def check(case: Case, found: list[Row], expected: dict[Trigger, Answer] | None = None) -> None:
    """Every match is one by the definition, none comes twice, and each trigger gives as many as it is to; raises AssertionError.

    expected: the answers, if not those of the case.
    """
    assert len(found) == len(set(found)), f"duplicates\n{case}"
    by_trigger: dict[Trigger, set[Row]] = {}
    for row in found:
        by_trigger.setdefault((row.key, row.end), set()).add(row)
    for trigger, (candidates, choose) in (case.expected if expected is None else expected).items():
        chosen = by_trigger.pop(trigger, set())
        assert chosen <= candidates, f"not matches at {trigger}: {chosen - candidates}, but {candidates}\n{case}"
        assert len(chosen) == choose, f"{len(chosen)} of {choose} at {trigger}; missing {candidates - chosen}\n{case}"
    assert not by_trigger, f"triggers that are none: {by_trigger}\n{case}"


# ------------------------------------------------------------------------------------------------------------------ ways to evaluate


def whole(case: Case, engine: str | None) -> list[Row]:
    """The events as one table."""
    return rows_of(case.query.run(case.events, engine=engine))


def listed(case: Case, engine: str | None) -> list[Row]:
    """The events as a list of dicts, where these have the types of the table."""
    rows = case.events.to_pylist()
    inferred = pa.Table.from_pylist(rows).schema if rows else None
    return rows_of(case.query.run(rows if inferred == case.events.schema else case.events, engine=engine))


def read(case: Case, engine: str | None) -> list[Row]:
    """The events from a reader, a few at a time."""
    batches = case.events.to_batches(max_chunksize=3)
    return rows_of(case.query.run(pa.RecordBatchReader.from_batches(case.events.schema, batches), engine=engine))


def pushed(case: Case, engine: str | None) -> list[Row]:
    """The events in random pieces, some of them empty, to one recognizer."""
    recognizer = case.query.recognizer(case.events.schema, engine=engine)
    found = [row for piece in pieces(case.random("pushed"), case.events) for row in rows_of(recognizer.push(piece))]
    return found + finished(recognizer)


def single(case: Case, engine: str | None) -> list[Row]:
    """The events one by one, as dicts, as tuples, and now and then as a table, to recognizers that are restored now and then."""
    rng = case.random("single")
    recognizer = case.query.recognizer(case.events.schema, engine=engine)
    found: list[Row] = []
    for place, row in enumerate(case.events.to_pylist()):
        way = rng.random()
        event = case.events.slice(place, 1) if way < 0.2 else tuple(row.values()) if way < 0.6 else row
        found += rows_of(recognizer.push(event))
        if rng.random() < 0.1:
            recognizer = case.query.recognizer(case.events.schema, engine=engine, snapshot=recognizer.snapshot())
    return found + finished(recognizer)


def finished(recognizer: Recognizer) -> list[Row]:
    """What is still to come once the events have come that are up to the greatest time."""
    held = rows_of(recognizer.flush())
    return held + ([] if recognizer.latest is None else rows_of(recognizer.advance(recognizer.latest + 1)))


def restored(case: Case, engine: str | None) -> list[Row]:
    """The events in random pieces, each to a new recognizer that goes on from the snapshot of the one before."""
    found: list[Row] = []
    snapshot = None
    for piece in pieces(case.random("restored"), case.events):
        recognizer = case.query.recognizer(case.events.schema, engine=engine, snapshot=snapshot)
        found += rows_of(recognizer.push(piece))
        snapshot = recognizer.snapshot()
    return found + finished(case.query.recognizer(case.events.schema, engine=engine, snapshot=snapshot))


def late(case: Case, engine: str | None) -> list[Row]:
    """The events out of order, each at most as late as is allowed; those of equal time are told apart by a column more."""
    rng = case.random("late")
    lateness = rng.randint(0, 6)
    times = case.events["ts"].cast("int64").to_pylist()
    timed = case.events.schema.field("ts").type != pa.int64()
    arrived = [time + rng.uniform(0, lateness * (MICROSECONDS if timed else 1)) for time in times]
    events = case.events.append_column("$row", pa.array(np.arange(len(times))))
    shuffled = events.take(pa.array(sorted(range(len(times)), key=lambda row: (arrived[row], times[row], rng.random())), pa.int64()))
    recognizer = case.query.recognizer(events.schema, lateness=f"{lateness}s" if timed else lateness, order="$row", engine=engine)
    found: list[Row] = []
    for piece in pieces(rng, shuffled):
        found += rows_of(recognizer.push(piece))
        if rng.random() < 0.3:
            recognizer.restore(recognizer.snapshot())
    return found + finished(recognizer)


def batched(case: Case, engine: str | None) -> list[Row]:
    """The matches in batches, as they are made; the events as a table or from a reader."""
    events = case.events if case.random("batched").random() < 0.5 else case.events.to_reader(max_chunksize=4)
    return [row for matches in case.query.batches(events, engine=engine) for row in rows_of(matches)]


def pieces(rng: random.Random, table: pa.Table) -> Iterator[pa.Table]:
    """A table cut at up to four random places."""
    cuts = sorted(rng.randint(0, len(table)) for _ in range(rng.randint(0, 4)))
    for begin, end in zip([0, *cuts], [*cuts, len(table)], strict=True):
        yield table.slice(begin, end - begin)


WAYS: dict[str, Callable[[Case, str | None], list[Row]]] = {
    "whole": whole,
    "listed": listed,
    "read": read,
    "pushed": pushed,
    "single": single,
    "restored": restored,
    "late": late,
    "batched": batched,
}
"""How events come to an engine."""

OTHERS = tuple(way for way in WAYS if way != "whole")


def ways_of(case: Case, *, most: int = 2) -> dict[str, Callable[[Case, str | None], list[Row]]]:
    """The whole stream, and so many of the other ways: each case has others, by its number, so that many cases have all of them."""
    turn = [OTHERS[(most * case.number + step) % len(OTHERS)] for step in range(most)]
    return {way: WAYS[way] for way in ("whole", *turn)}
