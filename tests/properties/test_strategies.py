"""Strategies, consumption, limits and counts: random queries mean the same as by the definition, on every path of evaluation.

Every group below is a strategy (or clause) over a fragment of patterns; a quarter of CEPHEID_CASES cases each, so that CEPHEID_CASES=4000 gives
2,000 cases for each of NXT, LAST and MAX. The tests count which methods of evaluation the planner chose, and want every one of them; a query that
the engine refuses is counted too, and a failure.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from enough import Enough, Kept

import cepheid
from cepheid.engine.letters.codes import having
from cepheid.engine.plan.methods import METHODS
from cepheid.errors import LimitError
from cepheid.testing import generators
from cepheid.testing.differential import MAX_MATCHES, WAYS, Answer, Case, Row, by_definition, check, draws, rows_of, ways_of, whole
from cepheid.testing.generators import ENGINE, RESTRICTING, WAITING, QueryFragment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.engine.output.matches import Matches

VARIANTS = ("compiled", "python", "checked")


def over(fragment: QueryFragment, *strategies: str, **changes: object) -> QueryFragment:
    """A fragment with these strategies, all windows, and consumption in a third of the queries."""
    return dataclasses.replace(fragment, strategies=strategies, windows=WAITING.windows, **{"consume": 0.3, **changes})


GROUPS: dict[str, QueryFragment] = {
    "NXT": over(WAITING, "NXT", "NEXT"),
    "LAST": over(WAITING, "LAST"),
    "MAX": over(WAITING, "MAX"),
    "NXT of any pattern": over(ENGINE, "NXT"),
    "LAST of any pattern": over(ENGINE, "LAST"),
    "MAX of any pattern": over(ENGINE, "MAX"),
    "STRICT": over(ENGINE, "STRICT"),
    "ANY": over(ENGINE, "ANY"),
    "RESTRICTED": over(RESTRICTING, "RESTRICTED"),
    "RESTRICTED of any pattern": over(ENGINE, "RESTRICTED"),
    "LIMIT": over(ENGINE, "", "ALL", "STRICT", limit=1.0),
    "LIMIT of a strategy": over(WAITING, "NXT", "LAST", "MAX", "MAX", limit=1.0),
    "CONSUME": over(ENGINE, "", "ALL", "STRICT", "ANY", consume=1.0, partition=0.5),
    "CONSUME with a strategy": over(WAITING, "NXT", "LAST", "MAX", consume=1.0, partition=0.5),
    "COUNT(*)": over(ENGINE, "", "ALL", "STRICT", count=1.0),
    "COUNT(*) of a strategy": over(WAITING, "NXT", "LAST", "MAX", count=1.0),
}


@cache
def kept(group: str, seed: int) -> Kept[Case]:
    return Kept(draws(GROUPS[group], seed=seed))


def of_all_groups(seed: int) -> Iterator[Case]:
    return itertools.chain.from_iterable(zip(*(kept(group, seed) for group in GROUPS), strict=True))


def drawn(group: str, cases: int, seed: int) -> list[Case]:
    return list(itertools.islice(kept(group, seed), max(cases // 4, 10)))


@pytest.mark.parametrize("group", GROUPS)
def test_the_definition_on_every_variant(group: str, cases: int, seed: int) -> None:
    """Members of the answer, in the right number, without duplicates; every variant of the kernels gives the same ones in the same order."""
    some = Enough(max(cases // 4, 10), kept(group, seed), matched=1)
    for case in some:
        found = whole(case, VARIANTS[0])
        check(case, found)
        for variant in VARIANTS[1:]:
            assert whole(case, variant) == found, f"{variant}\n{case}"
        some.seen["matched"] += bool(found)


@pytest.mark.parametrize("group", GROUPS)
def test_however_the_events_come(group: str, cases: int, seed: int) -> None:
    """The same matches in the same order, also those that ANY and LIMIT choose; each way takes the variants in turn."""
    for case in drawn(group, cases, seed):
        expected = whole(case, None)
        for number, (way, of) in enumerate(ways_of(case).items(), start=case.number):
            variant = VARIANTS[number % len(VARIANTS)]
            assert of(case, variant) == expected, f"{way}, {variant}\n{case}"


def test_what_is_irrelevant_can_be_left_out(cases: int, seed: int) -> None:
    """As Spark does before its shuffle: the same matches are given, also those that ANY and LIMIT choose. Both count as complete up to the same time."""
    some = Enough(len(GROUPS) * max(cases // 4, 10), of_all_groups(seed), less=5)
    for case in some:
        if case.query.compiled(case.query.schema(case.events.schema)).droppable:
            events = numbered(case.events)
            rest = relevant(case.query, events)
            until = events["ts"][-1].as_py() if len(events) else None
            assert shown(case.query.run(rest, until=until)) == shown(case.query.run(events, until=until)), str(case)
            some.seen["less"] += rest.num_rows < events.num_rows


@pytest.mark.parametrize("pattern", ["B{1,3}", "B+ OR (B+ ; B+)", "(B ; B+) OR B+", "(B+){1,2}", "(B+ OR A){1,2}", "(A ; B)+ OR (B ; A+)"])
@pytest.mark.parametrize("clause", ["LIMIT 3", "WITHIN 5 LIMIT 2"])
def test_a_limit_does_not_see_what_is_irrelevant(pattern: str, clause: str, cases: int, seed: int) -> None:
    """Patterns whose macro states would meet at an event that could be left out, so that their matches would change places."""
    source = random.Random(seed)
    query = cepheid.query(f"SELECT * WHERE {pattern} {clause}")
    for _ in range(cases // 4):
        kinds = source.choices("ABBBZ", k=source.randint(5, 12))
        events = numbered(pa.table({"type": kinds, "ts": pa.array(np.arange(len(kinds)))}))
        assert shown(query.run(relevant(query, events))) == shown(query.run(events)), f"{query.text}\n{kinds}"


def numbered(events: pa.Table) -> pa.Table:
    return events.append_column("row", pa.array(np.arange(events.num_rows)))


def relevant(query: cepheid.Query, events: pa.Table) -> pa.Table:
    """The events that matter to one of the query's programs."""
    compiled = query.compiled(query.schema(events.schema))
    kept = np.zeros(events.num_rows, np.bool_)
    for predicates, program in zip(compiled.alphabets, compiled.programs, strict=True):
        kept |= having(predicates.letters(events), program.automaton.alphabet, [(mask, 0) for mask in program.relevant_masks])
    return events.filter(pa.array(kept))


def shown(matches: Matches) -> list[tuple[object, ...]]:
    """What matches show, with positions in the input instead of those in the partition."""
    return [
        (
            match.start_time,
            match.end_time,
            match.keys,
            match.measures,
            {name: [event["row"] for event in match[name]] for name in match.variables},
        )
        for match in matches
    ]


def test_the_definition_itself_as_an_engine(cases: int, seed: int) -> None:
    for group in GROUPS:
        for case in drawn(group, cases, seed)[: max(cases // 40, 2)]:
            check(case, whole(case, "reference"))


def test_every_method_is_chosen_and_nothing_is_refused(cases: int, seed: int) -> None:
    # Those for guards serve what these groups hardly have: see test_guarded_queries.py.
    wanted = {method.name: 1 for method in METHODS if not method.name.startswith("guarded")}
    drawn = Enough(len(GROUPS) * max(cases // 4, 10), of_all_groups(seed), **wanted)
    for case in drawn:
        drawn.seen[case.query.compiled(case.query.schema(case.events.schema)).method.name] += 1


# ------------------------------------------------------------------------------------------------------------------- small worlds

PATTERNS = (
    "A ; B",
    "A+ ; B",
    "A ; B ; C",
    "(A OR B)+ ; C",
    "A ; (B OR C)+",
    "(A ; B)+",
    "(A ; B)+ ; C",
    "(A+ ; C) OR (B ; C)",
    "A ; (B+ OR (A ; C))",
    "(A AS x OR A AS y)+ ; B",
    "A ; A ; B",
    "ANY ; ANY",
    "((A ; B) OR B+) ; C",
    "A ; B? ; C",
    "A : B",
    "(A : B)+ ; C",
    "PROJECT A (A ; B ; C)",
)


def every_stream(longest: int) -> pa.Table:
    """All streams over A, B and C up to a length, each a partition; two events of a stream have one time where their types are the same."""
    rows = [
        (kind, position + (0 if position and types[position - 1] == kind else 1), number)
        for number, types in enumerate(types for size in range(longest + 1) for types in itertools.product("ABC", repeat=size))
        for position, kind in enumerate(types)
    ]
    # All positions 0, then all positions 1 ..: partitions interleave, times ascend.
    rows.sort(key=lambda row: row[1])
    kinds, times, streams = zip(*rows, strict=True)
    return pa.table({"type": kinds, "ts": pa.array(times, pa.int64()), "stream": pa.array(streams, pa.int64())})


@pytest.mark.parametrize("clause", ["", " WITHIN 3 EVENTS", " WITHIN 2", " CONSUME BY PARTITION"])
@pytest.mark.parametrize("strategy", ["NXT", "LAST", "MAX", "STRICT", "ANY"])
def test_small_worlds_exhaustively(strategy: str, clause: str, cases: int, seed: int) -> None:
    """Every stream of up to five events: some patterns for each strategy by default, all of them from 1,000 cases on."""
    events = every_stream(5)
    window, _, consume = clause.partition(" CONSUME")
    some = len(PATTERNS) if cases >= 1000 else 2
    for pattern in random.Random(f"{seed}/{strategy}/{clause}").sample(PATTERNS, some):
        text = f"SELECT {strategy} * WHERE {pattern}{window} PARTITION BY stream" + (f" CONSUME{consume}" if consume else "")
        query = cepheid.query(text)
        case = Case(seed, 0, query, events, by_definition(query, events))
        check(case, rows_of(query.run(events)))


# ---------------------------------------------------------------------------------------- MAX with too many groups of starts


def alternatives(count: int) -> str:
    """MAX has a macro state for each subset of the steps seen since the start."""
    return "X ; (" + " OR ".join(f"(B{number} ; E{number})" for number in range(count)) + ")"


@pytest.mark.parametrize("clause", ["", " WITHIN 12", " WITHIN 11 EVENTS LIMIT 2", " CONSUME BY PARTITION"])
@pytest.mark.parametrize("pattern", [alternatives(8), "X ; B0 ; B1 ; B2 ; E0 ; E1 ; E2 ; E3 ; E4", "(X ; B0 ; B1 ; E0)+ ; X ; E2 ; B0+"])
def test_max_with_too_many_groups_of_starts(pattern: str, clause: str, cases: int, seed: int) -> None:
    """Such queries are chosen end by end, or by the automaton where no start is ever too early; planning them takes no time either."""
    query = cepheid.query(f"SELECT MAX * WHERE {pattern}{clause}")
    matched = 0
    for number in range(max(cases // 40, 5)):
        chance = random.Random(f"{seed}/{pattern}/{number}")
        steps = [step.strip("() +") for step in pattern.replace("OR", ";").split(";")]
        # The first stream has a match for certain.
        types = [chance.choice(steps) if number and chance.random() < 0.2 else steps[place % len(steps)] for place in range(24)]
        events = pa.table({"type": types, "ts": pa.array(range(24), pa.int64())})
        try:
            case = Case(seed, number, query, events, by_definition(query, events))
        except LimitError:
            continue  # the definition lists all of them
        found = whole(case, None)
        check(case, found)
        for way in ("pushed", "restored"):
            assert WAYS[way](case, "checked") == found, f"{way}\n{case}"
        assert query.compiled(query.schema(events.schema)).method.name in {"per end", "match graph"}
        matched += len(found)
    assert matched > 0


# ------------------------------------------------------------------------------------------------- keys from equalities

EQUAL = (
    "A AS x ; B AS y FILTER x.k = y.k",
    "A AS x ; (B OR C) AS y FILTER x.k = y.k",
    "(A AS x)+ ; B AS y FILTER x.k = y.k",
    "A AS x ; B AS y ; C AS z FILTER x.k = y.k AND z.k = y.k AND x[v > 0]",
    "(A OR B)+ AS x ; C AS y FILTER x.k = y.k WITHIN 9",
)
"""Patterns whose equalities partition the stream: each key by itself, positions in the whole stream."""


@pytest.mark.parametrize("pattern", EQUAL)
def test_keys_from_equalities(pattern: str, cases: int, seed: int) -> None:
    for number in range(max(cases // 40, 5)):
        events = generators.table(generators.random_stream(random.Random(f"{seed}/{pattern}/{number}"), most=11))
        for select in ("NXT *", "LAST *", "MAX *", "ANY *", "NXT y", "COUNT(*)", "MAX COUNT(*)"):
            query = cepheid.query(f"SELECT {select} WHERE {pattern}")
            case = Case(seed, number, query, events, by_definition(query, events))
            found = whole(case, None)
            check(case, found)
            assert WAYS["pushed"](case, None) == found, str(case)
            assert WAYS["restored"](case, None) == found, str(case)


# ------------------------------------------------------------------------------------------------------------------- long streams

LONG = {
    "A ; B ; C": 9,
    "A+ ; B": 8,
    "(A OR B)+ ; C": 6,
    "(A ; B)+ ; C": 10,
    "(A AS x OR A AS y) ; B+ ; C": 7,
    "A : B ; C": 10,
}
"""Patterns, and a window in events in which the definition has few matches."""


@pytest.mark.parametrize("pattern", LONG)
@pytest.mark.parametrize("strategy", ["NXT", "LAST", "MAX", "ANY", "COUNT(*)"])
def test_long_streams(strategy: str, pattern: str, cases: int, seed: int) -> None:
    """Under a window, the matches of a trigger are those of the window's events alone: rings and pools go round many times."""
    window, length = LONG[pattern], min(max(cases, 100), 2_000)
    kinds = random.Random(f"{seed}/{strategy}/{pattern}").choices("ABCX", k=length)
    events = pa.table({"type": kinds, "ts": pa.array(range(length), pa.int64())})
    target = strategy if strategy == "COUNT(*)" else f"{strategy} *"
    for text in (f"SELECT {target} WHERE {pattern} WITHIN {window} EVENTS", f"SELECT {target} WHERE {pattern} WITHIN {window - 1}"):
        query = cepheid.query(text)
        expected: dict[tuple[tuple[object, ...], int], Answer] = {}
        for end in range(length):
            first = max(0, end + 1 - window)
            local = by_definition(query, events.slice(first, end + 1 - first)).get(((), end - first))
            if local is not None:
                expected[(), end] = Answer(frozenset(shifted(row, first) for row in local.candidates), local.choose)
        case = Case(seed, 0, query, events, expected)
        found = whole(case, None)
        check(case, found)
        assert WAYS["pushed"](case, "checked") == found
        assert WAYS["restored"](case, None) == found


MANY_KEYS = (
    "SELECT NXT * WHERE A ; B+ ; C WITHIN 40",
    "SELECT LAST * WHERE (A OR B)+ ; C WITHIN 30 EVENTS",
    "SELECT MAX * WHERE A+ ; B ; C WITHIN 60",
    "SELECT MAX * WHERE A : B ; C WITHIN 60",
    "SELECT * WHERE A ; LAST(B ; C) WITHIN 50 LIMIT 2",
    "SELECT COUNT(*) WHERE A+ ; B+ ; C WITHIN 60",
    "SELECT STRICT * WHERE A+ ; B WITHIN 60",
)
"""Queries for streams of many keys, most of which fall silent for longer than the window."""


@pytest.mark.parametrize("policy", ["NONE", "PARTITION", "ANY"])
@pytest.mark.parametrize("text", MANY_KEYS)
def test_many_keys(text: str, policy: str, seed: int) -> None:
    """The state of a key is given back and made anew; each key's matches are those of its events alone, but under CONSUME BY ANY."""
    rng = np.random.default_rng(seed)
    length = 3_000
    keys = rng.integers(0, 10, length) + np.arange(length) // 100 % 7 * 5
    events = pa.table({"type": rng.choice(list("ABCX"), length), "ts": np.sort(rng.integers(0, 4_000, length)), "k": keys})
    clause, _, limit = text.partition(" LIMIT")
    query = cepheid.query(f"{clause} PARTITION BY k CONSUME BY {policy}" + (f" LIMIT{limit}" if limit else ""))
    found = rows_of(query.run(events))
    recognizer, pushed = query.recognizer(events.schema), []
    for start in range(0, length, 70):
        pushed += rows_of(recognizer.push(events.slice(start, 70)))
        if start % 3 == 0:
            recognizer = query.recognizer(events.schema, snapshot=recognizer.snapshot())
    assert pushed == found
    if policy == "ANY":
        return
    by_key: dict[int, list[Row]] = {}
    for row in found:
        by_key.setdefault(row.key[0], []).append(row)
    for key in np.unique(keys).tolist():
        assert rows_of(query.run(events.filter(pc.equal(events["k"], key)))) == by_key.get(key, []), key


def shifted(row: Row, by: int) -> Row:
    """A match of a later part of the stream; the number of COUNT(*) stays."""
    counted = [name for name, _ in row.mapping] == ["count"]
    mapping = row.mapping if counted else tuple((name, tuple(position + by for position in places)) for name, places in row.mapping)
    return Row(row.key, row.start + by, row.end + by, mapping)


def test_the_limit_of_the_definition_is_not_met_too_often(cases: int, seed: int) -> None:
    """Cases that have too many matches are passed over: that must stay rare, or the fragments are too wild."""
    for group in GROUPS:
        last = drawn(group, cases, seed)[-1]
        assert last.number < 1.2 * max(cases // 4, 10) + 10, f"{group}: more than {MAX_MATCHES} matches"
