"""Matches as events in the engine: random programs against the definition, their events in every form, and what is refused."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from enough import Enough
from slowness import within

import cepheid
from cepheid.engine.input import payload
from cepheid.engine.run import batch, layered, made, member
from cepheid.errors import CepheidError, LimitError
from cepheid.logical.beginnings import has_made
from cepheid.testing import events, generators
from cepheid.testing.differential import WAYS, Case, check, draws, matches_up_to, pushed, restored, rows_of, whole
from cepheid.testing.generators import LAYERED

PAIR = "EVENT P(d) AS (SELECT duration() AS d WHERE A AS a ; B) "
TABLE = pa.table(
    {"type": ["A", "B", "A", "B"], "ts": pa.array([1, 2, 3, 4], pa.timestamp("ms")), "k": pa.array([1, 1, None, 1], pa.int8())}
)


def test_random_programs(seed, cases):
    ways = list(WAYS)
    drawn = Enough(cases // 2, draws(LAYERED, seed=seed, longest=9), matched=2, made=1)
    for number, case in enumerate(drawn):
        for place, engine in enumerate(("compiled", "python", "checked")):
            for way in (ways[(number + place) % len(ways)], ways[(number + place + 4) % len(ways)]):
                check(case, WAYS[way](case, engine))
        pattern = case.query.bound(case.query.schema(case.events)).pattern
        drawn.seen["matched"] += bool(case.expected)
        drawn.seen["made"] += bool(case.expected) and has_made(pattern)


PARTS = [
    "A",
    "B",
    "C",
    "P",
    "P",
    "(P AS z)",
    "(A ; P)",
    "(P ; A)",
    "(P ; P)",
    "(P OR C)",
    "(C ; B)",
    "(P+)",
    "(B ;[<= 3] P)",
    "(P : C)",
    "(P ALL C)",
]
MADE = ["A ; B", "B ; C", "A : B", "A ; A", "A+ ; B WITHIN 4"]
NEGATIONS = [
    "{0} AS x ; NOT {1} ; {2} AS y",
    "{0} AS x ; NOT {1} ;[<= 3] {2} AS y",
    "({0} AS x ; {2} AS y) UNLESS {1}",
    "{0} AS x UNLESS {1}",
    "{0} AS x NOT FOLLOWED BY {1} FOR 3",
    "{0} AS x ; {2} AS y NOT FOLLOWED BY {1} FOR 3 FROM START",
]


def test_random_negation_in_pieces(seed, cases, monkeypatch):
    """What is remembered of earlier places, over pieces of a run that end anywhere."""
    monkeypatch.setattr(batch, "STEP", 3)
    monkeypatch.setattr(batch, "GATHERED", 3)
    drawn = Enough(cases, matched=5)
    for number in drawn:
        rng = random.Random(f"{seed}/{number}")
        key = rng.choice(["", " PARTITION BY k"])
        pattern = rng.choice(NEGATIONS).format(*rng.choices(PARTS, k=3))
        made = f"EVENT P(n) AS (SELECT count(m) AS n WHERE ({rng.choice(MADE)}) AS m{key})"
        time, rows = 0, []
        for _ in range(rng.randint(5, 10)):
            time += rng.choice([0, 1, 1, 2])
            rows.append({"type": rng.choice("AABBC"), "ts": time, "k": rng.choice([1, 1, 2])})
        drawn.seen["matched"] += len(same(f"{made} SELECT * WHERE {pattern}{key}", rows, until="end")) > 0


BESIDE = [
    "C : (P ALL C)",
    "C :[<= 3] (P ALL A)",
    "C ;[<= 3] (P ALL A)",
    "C ;[1, 2] (P ALL (A ; C))",
    "C : ((P ALL C) OR A)",
    "(A ALL C) : (P ALL P)",
    "C ; NOT A ; (P ALL C)",
    "C ; NOT P ;[<= 4] (C ALL P)",
    "C ; NOT (A ; B) ; (P ALL C)",
    "(P ALL C)+",
    "(P ALL C)+[<= 2]",
    "(C ;[<= 2] (P ALL A))+ ; C",
    "(P ALL C):{2}",
    "(P ALL C):+",
    "(P ALL C) WITHIN [>= 2]",
    "C ; ((P ALL A ALL C) WITHIN [1, 3])",
    "A : (C THEN P) TIME MODEL POINT",
    "A ; NOT (P ALL C) ; B",
    "A ; NOT ((P ALL C) WITHIN [2, 5]) ;[<= 4] B",
    "(A ; B) UNLESS (P ALL C)",
    "(P ALL C) UNLESS NXT(P ALL A)",
    "A THEN (P ALL C)",
    "(A THEN (P ALL C)) WITHIN 5 TIME MODEL SNOOPIB",
    "P THEN ((P ALL C) ; A) WITHIN 6 TIME MODEL ODE",
    "A THEN (P ALL C) TIME MODEL POINT",
    "A THEN (P ALL C) TIME MODEL ACTIVE_OFFICE",
    "(A ; C) THEN (P ALL A ALL C) TIME MODEL ACTIVE_OFFICE",
    "A THEN (P ALL C) TIME MODEL COMPLETE_HISTORY",
    "A THEN (PROJECT C (P ALL A ALL C)) TIME MODEL COMPLETE_HISTORY",
    "C THEN NXT(P ALL A) TIME MODEL COMPLETE_HISTORY",
    "(A THEN (P ALL C)) ALL P TIME MODEL ACTIVE_OFFICE",
    "(A THEN (PROJECT C (P ALL C))) ALL ANY TIME MODEL COMPLETE_HISTORY",
    "NXT((A THEN (P ALL C)) ALL P) TIME MODEL COMPLETE_HISTORY",
    "A? : P",
    "C : P? : B",
    "A : C? : P ; A",
    "C : (P ; A)? : P?",
    "(A : P? ; C?)+",
    "(PROJECT C (P ; C)) ALL A",
    "A ; ((PROJECT C (P ; C)) ALL (PROJECT NONE (P)))",
    "PROJECT C (P ALL C)",
    "((PROJECT A (P ; A)) ALL C)+ ; B",
    "A ; NOT (C ALL PROJECT NONE (P)) ; B",
    "NXT(A ALL PROJECT NONE (P))",
    "A THEN (PROJECT C (P ; C)) TIME MODEL POINT",
    "(PROJECT C (P ; C)) AND (PROJECT C (A ; C))",
    "(PROJECT C (P ; C)) AND (PROJECT C (P ALL A ALL C))",
    "((PROJECT C (P ; P ; C)) AND (PROJECT C (P ALL C)) AND (PROJECT C (P+ : C)))+",
    "B ; ((PROJECT C (P ; C)) AND (PROJECT C ((P OR A) ; C)))",
]
"""Patterns that may begin with any of their events, behind others, as what must not come, and as what is next; some of these events are hidden."""


@pytest.mark.parametrize("pattern", BESIDE)
def test_what_any_event_may_begin(pattern, seed, cases):
    """`(P ALL C)+` gave matches whose later iterations began before the end of the one before: only their first event was asked.

    Under POINT, and where PROJECT was around ALL, an event that is hidden did not say where a match begins.
    """
    chance, matched = random.Random(f"{seed}{pattern}"), 0
    for number in range(500):
        if number >= cases // 25 and matched:
            break
        made = chance.choice(["A AS x ; B", "A AS x", "(A AS x ; C ; B)"])
        query = cepheid.query(f"EVENT P(n) AS (SELECT count(x) AS n WHERE {made} WITHIN {chance.choice([3, 9])}) SELECT * WHERE {pattern}")
        times = sorted(chance.choices(range(chance.choice([5, 10])), k=9))
        rows = pa.table({"type": chance.choices("ABC", k=9), "ts": times})
        expected = sorted(map(repr, query.run(rows, engine="reference")))
        assert sorted(map(repr, query.run(rows))) == expected
        recognizer = query.recognizer(rows.schema)
        pushed = [match for row in range(9) for match in recognizer.push(rows.slice(row, 1))]
        assert sorted(map(repr, [*pushed, *recognizer.flush()])) == expected
        matched += bool(expected)
    assert matched


@pytest.mark.parametrize("pattern", ["A THEN (P ALL C)", "A ; NOT (P ALL C) ; B"])
def test_what_no_match_can_come_of_is_given_up_without_a_window(pattern):
    """Each P and each C kept all A before it; what must not come kept all that may have begun."""
    query = cepheid.query(f"EVENT P(n) AS (SELECT count(x) AS n WHERE A AS x : B) SELECT COUNT(*) WHERE {pattern}")
    rows = pa.table({"type": random.Random(3).choices("ABCD", k=3_000), "ts": range(3_000)})
    recognizer = query.recognizer(rows.schema)
    recognizer.push(rows)
    assert recognizer.memory_usage() < 10_000_000, "it was 200 MB and more"


def test_under_point_what_project_hides_does_not_pile_up():
    """Only where matches end is asked of the right side."""
    text = "EVENT P(n) AS (SELECT count(x) AS n WHERE A AS x : B) SELECT * WHERE A THEN ({}) WITHIN 20 TIME MODEL POINT"
    rows, used = pa.table({"type": random.Random(3).choices("ABCD", k=3_000), "ts": range(3_000)}), []
    for right in ("P ALL C", "PROJECT C (P ALL C)"):
        recognizer = cepheid.query(text.format(right)).recognizer(rows.schema)
        recognizer.push(rows)
        used.append(recognizer.memory_usage())
    assert used[1] < 2 * used[0]


def test_what_waits_for_many_tests_goes_its_own_way():
    """Where each of the two sides guesses which of the hidden events begins first, a macro state of all guesses had 8,640 regions after 9 events."""
    sides = "(PROJECT x (P ALL C AS x)) AND (PROJECT x (P ALL A ALL C AS x))"
    query = cepheid.query(f"EVENT P(v) AS (SELECT count(x) AS v WHERE A AS x ; B WITHIN 2) SELECT * WHERE A ; ({sides}) WITHIN 8")
    with within(5):
        assert len(query.run(pa.table({"type": list("ABAC" * 10), "ts": range(40)}))) == 52
    short = pa.table({"type": list("ABACABAC"), "ts": range(8)})
    assert sorted(map(repr, query.run(short))) == sorted(map(repr, query.run(short, engine="reference"))) != []


def test_too_many_optional_items_beside_made_events():
    optional = " ".join(": P?" if number % 2 else "; P?" for number in range(12))
    with pytest.raises(LimitError, match="MAX_DECIDED") as error:
        cepheid.query(f"{PAIR} SELECT * WHERE A {optional} : P").run(TABLE)
    assert "^^^" in str(error.value)


def same(text, rows, **options):
    query = cepheid.query(text)
    found, expected = query.run(rows, **options), query.run(rows, engine="reference", **options)
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    assert found.to_arrow(events=True).schema == expected.to_arrow(events=True).schema
    assert (found.null_keys, said(found)) == (expected.null_keys, said(expected))
    return found


def said(matches):
    """The warnings, but for that of equal times, which the definition does not give."""
    return [warning for warning in matches.warnings if "have the same time" not in warning]


@pytest.mark.parametrize(
    ("text", "rows", "options", "count"),
    [
        # One stream whose name is the type, and streams merged.
        (
            "EVENT Big(v) AS (SELECT max(a.v) AS v FROM S WHERE S AS a FILTER a.v > 1) SELECT * FROM S WHERE S ; Big",
            {"S": {"v": [1, 2, 3]}},
            {},
            3,
        ),
        (
            "EVENT Big(v) AS (SELECT max(a.v) AS v FROM S WHERE S AS a FILTER a.v > 1) SELECT * FROM S, T WHERE Big ; T",
            {"S": {"v": [1, 2, 3]}, "T": {"w": [1.0, 2.0, 3.0]}},
            {},
            3,
        ),
        # Events without types.
        ("EVENT Big(v) AS (SELECT max(a.v) AS v WHERE ANY AS a FILTER a.v > 1) SELECT * WHERE ANY ; Big", {"": {"v": [1, 2, 3]}}, {}, 4),
        (
            "EVENT P(k, d) AS (SELECT a.k AS k, duration() AS d WHERE A AS a ; B) SELECT p.k AS k, p.d AS d, p.type AS t WHERE P AS p",
            TABLE,
            {},
            3,
        ),
        (
            "EVENT P(d) AS (SELECT duration() AS d WHERE A ; B PARTITION BY k) SELECT * WHERE P PARTITION BY k",
            TABLE,
            {"null_keys": "group"},
            2,
        ),
        ("EVENT P(d) AS (SELECT duration() AS d WHERE A ; B PARTITION BY k) SELECT * WHERE P ; B PARTITION BY k", TABLE, {}, 1),
        (f"{PAIR} SELECT COUNT(*) WHERE P+", TABLE, {}, 3),
        (f"{PAIR} SELECT * WHERE P", TABLE.take([3, 1, 0, 2]), {"sort": True}, 3),
        (f"{PAIR} SELECT * WHERE P NOT FOLLOWED BY A FOR 1ms", TABLE, {"until": "end"}, 2),
        (f"{PAIR} SELECT * WHERE A NOT FOLLOWED BY P FOR 3ms", TABLE, {"until": "end"}, 1),
        (f"{PAIR} SELECT * WHERE A ; NOT P ; B", TABLE, {}, 3),
        (f"{PAIR} SELECT * WHERE A ; NOT B ; P", TABLE, {}, 0),
        (f"{PAIR} SELECT * WHERE A ; NOT (P ; A) ; B", TABLE, {}, 3),
        (f"{PAIR} SELECT * WHERE B UNLESS (P ; A)", TABLE, {}, 2),
        (f"{PAIR} SELECT * WHERE P THEN B", TABLE, {}, 1),
        ("EVENT P(d) AS (SELECT count(a) AS d WHERE Z AS a ; B) SELECT * WHERE Y ALL P", TABLE, {}, 0),
    ],
)
def test_events_in_every_form(text, rows, options, count):
    if isinstance(rows, dict):
        streams = {name: pa.table({"ts": [1, 2, 3], **columns}) for name, columns in rows.items()}
        rows = streams.get("", streams)
    assert len(same(text, rows, **options)) == count


@pytest.mark.parametrize(
    ("made", "query", "rows"),
    [
        ("count(B) AS d WHERE B ; B", "SELECT * WHERE (B UNLESS P) : (P OR B)", "B5 B8"),
        ("count(B) AS d WHERE B ; B", "SELECT * WHERE (B UNLESS P) : (P OR B)", "B1 B2 B3"),
        ("count(B) AS d WHERE B ; B", "SELECT MAX * WHERE A : P", "B1 A1 B2 B3 B4"),
        ("count(B) AS d WHERE B ; B", "SELECT MAX * WHERE A : P", "A1 B2 A3 B4 B5 A6 B7"),
        ("duration() AS d WHERE B ALL C", "SELECT * WHERE (P):+ OR ((C)+[> 1] ; NOT B ; A)", "C2 B10 B11 C11 C12"),
        ("duration() AS d WHERE C+", "SELECT * WHERE (P)+ ; NOT C ; (A : ANY)", "C11 A14 C16"),
        ("duration() AS d WHERE B ; C", "SELECT * WHERE ((ANY):+ ALL B) WITHIN [<= 6]", "B4 C7 B9"),
    ],
)
def test_where_events_begin_does_not_rise_from_event_to_event(made, query, rows):
    """What indexes by age expect: it holds for times and positions, and not for begins."""
    same(f"EVENT P(d) AS (SELECT {made}) {query}", events(rows))


def test_consumption_looks_at_where_a_match_begins():
    """The second P has begun before the first trigger."""
    text = f"{PAIR} SELECT p.d AS d WHERE P AS p CONSUME BY PARTITION"
    assert [match.measures["d"].total_seconds() for match in same(text, TABLE)] == [0.001, 0.001]


def test_equal_rows_of_what_is_hidden_are_one():
    """Two P begin with A1 and are hidden: the rows that show B5 are one."""
    rows = events("A1 B2 B3 C4 B5")
    (match,) = same("EVENT P(n) AS (SELECT count(b) AS n WHERE A ; B AS b) SELECT x WHERE P ; C ; B AS x", rows)
    assert (match.start, match.variables) == (0, {"x": (6,)})
    (count,) = same("EVENT P(n) AS (SELECT count(b) AS n WHERE A ; B AS b) SELECT COUNT(*) WHERE P ; C", rows)
    assert count.measures["count"] == 2
    (count,) = same("EVENT P(n) AS (SELECT count(b) AS n WHERE A ; B AS b) SELECT COUNT(*) WHERE (PROJECT NONE (P)) ; C", rows)
    assert count.measures["count"] == 1


def test_an_attribute_holds_what_both_kinds_of_events_have():
    """The column is int8, the measure int64."""
    text = "EVENT P(k) AS (SELECT sum(a.k) * 1000 AS k WHERE A AS a) SELECT p.k AS k, b.k AS own WHERE P AS p ; B AS b"
    assert [match.measures for match in same(text, TABLE.slice(0, 2))] == [{"k": 1000, "own": 1}]


@pytest.mark.parametrize("pattern", ["P", "A ; P", "P ; B", "P ALL A"])
@pytest.mark.parametrize("consume", ["", "CONSUME BY ANY"])
def test_restricted_takes_what_begins_last(pattern, consume):
    """The detector of the event algebra, which knows events without duration alone, does not run these."""
    rows = [("A", 1), ("A", 2), ("B", 3), ("A", 4), ("B", 5), ("B", 6)]
    table = pa.table({"type": [kind for kind, _ in rows], "ts": pa.array([time for _, time in rows], pa.timestamp("ms"))})
    every = cepheid.query(f"{PAIR} SELECT * WHERE {pattern}").run(table)
    last: dict[int, int] = {}
    for match in every:
        last[match.end] = max(match.start, last.get(match.end, 0))
    taken, before = [], -1
    for end, start in sorted(last.items()):
        if not consume or start > before:
            taken.append((start, end))
            before = end
    found = cepheid.query(f"{PAIR} SELECT RESTRICTED * WHERE {pattern} {consume}").run(table)
    assert [(match.start, match.end) for match in found] == taken
    assert len(every) > len(found) > 0 or pattern == "P"


def test_next_goes_by_where_an_event_of_a_match_begins():
    """Also behind what it is compared with: groups of partial matches differ in whether it begins later."""
    rows = [("A", 4), ("A", 8), ("A", 10), ("B", 15)]
    table = pa.table({"type": [kind for kind, _ in rows], "ts": pa.array([time for _, time in rows], pa.timestamp("ms"))})
    assert len(same("EVENT P(w) AS (SELECT count(x) AS w WHERE A+ AS x : B) SELECT * WHERE (A THEN P) ALL A", table)) == 8
    lasts = same(f"{PAIR} SELECT * WHERE A THEN P", table)
    assert sorted((match.start, match.end) for match in lasts) == [(0, 5), (0, 6), (1, 6)]


def test_what_a_stream_gives_back_is_not_missed(seed, cases, monkeypatch):
    """Long streams, with a look for what is over after each push: the matches of the table, and in the end nothing is left."""
    for module in (member, layered):
        monkeypatch.setattr(module, "IDLE_CHECK", 1)
    monkeypatch.setattr(payload, "LEAST_COMPACTION", 1)
    drawn = Enough(cases // 8, compared=3, matched=2)
    for number in drawn:
        rng = random.Random(f"{seed}/{number}")
        key = rng.choice(["", " PARTITION BY k"])
        pattern = rng.choice(NEGATIONS).format(*rng.choices(PARTS, k=3))
        made = f"EVENT P(n) AS (SELECT count(m) AS n WHERE ({rng.choice(MADE)}) AS m{rng.choice(['', ' NOT FOLLOWED BY C FOR 2'])}{key} WITHIN 4)"
        query = cepheid.query(f"{made} SELECT * WHERE {pattern}{key} WITHIN 9")
        rows = [{"type": rng.choice("AABBC"), "ts": time, "k": rng.choice([1, 1, 2])} for time in sorted(rng.choices(range(60), k=40))]
        table = pa.Table.from_pylist(rows)
        expected = matches_up_to(2_000, query, table)
        recognizer = query.recognizer(table.schema)
        if expected is None:
            continue
        found, row = [], 0
        while row < len(table):
            count = rng.choice([1, 1, 2, 7])
            found += list(recognizer.push(table.slice(row, count)))
            row += count
            if rng.random() < 0.2:
                recognizer = query.recognizer(table.schema, snapshot=recognizer.snapshot())
        found += list(recognizer.advance_time(rows[-1]["ts"] + 1))
        assert sorted(map(repr, found)) == sorted(map(repr, expected)), f"CEPHEID_SEED={seed} {number} {query.text} {rows}"
        assert sorted(map(repr, recognizer.undecided())) == sorted(map(repr, expected.undecided)), f"{seed} {number} {query.text} {rows}"
        recognizer.advance_time(1000)
        for layer, _ in recognizer._member._layers:
            assert layer.standing._count == len(layer.member.state.payload) == 0, query.text
        drawn.seen["compared"] += 1
        drawn.seen["matched"] += bool(found)


def test_a_match_that_waits_from_where_an_event_begins():
    """Its hidden begin goes through a snapshot."""
    table = pa.table({"type": ["B", "C", "X"], "ts": [3, 4, 5]})
    query = cepheid.query("EVENT P(n) AS (SELECT count(b) AS n WHERE B AS b ; C) SELECT * WHERE P NOT FOLLOWED BY A FOR 3 FROM START")
    recognizer = query.recognizer(table.schema)
    recognizer.push(table)
    assert [(match.start, match.end) for match in recognizer.undecided()] == [(0, 2)]
    restored = query.recognizer(table.schema, snapshot=recognizer.snapshot())
    assert [len(each.advance_time(time)) for each in (recognizer, restored) for time in (6, 7)] == [0, 1, 0, 1]


def test_events_without_a_key_are_counted_while_they_wait():
    table = pa.table({"type": ["B", "B", "X"], "ts": [1, 2, 2], "k": pa.array([None, 1, None], pa.int64())})
    query = cepheid.query(
        "EVENT P(n) AS (SELECT count(b) AS n WHERE B AS b NOT FOLLOWED BY A FOR 1 PARTITION BY k) SELECT * WHERE P PARTITION BY k"
    )
    recognizer = query.recognizer(table.schema)
    counts = []
    for row in range(3):
        recognizer.push(table.slice(row, 1))
        recognizer = query.recognizer(table.schema, snapshot=recognizer.snapshot())
        counts.append(recognizer.null_keys)
    recognizer.advance_time(9)
    assert [*counts, recognizer.null_keys] == [1, 1, 2, 2]
    assert query.run(table).null_keys == 2
    grouped = query.recognizer(table.schema, null_keys="group")
    grouped.push(table)
    assert grouped.null_keys == 0


def test_several_queries(seed):
    """Queries with definitions of their own, beside others and beside each other: as a table, pushed, restored."""
    texts = {
        "pairs": f"{PAIR} SELECT p.d AS d, c.k AS k WHERE P AS p ; C AS c",
        "keyed": "EVENT P(d) AS (SELECT duration() AS d WHERE A AS a ; B PARTITION BY k) SELECT * WHERE P AS p ; C AS c PARTITION BY k",
        "later": "EVENT P(v) AS (SELECT a.v AS v WHERE A AS a NOT FOLLOWED BY B FOR 2) SELECT p.v AS v WHERE C ; P AS p",
        "plain": "SELECT * WHERE A AS a ; C AS c PARTITION BY k WITHIN 5",
    }
    several, queries = cepheid.queries(texts), {name: cepheid.query(text) for name, text in texts.items()}
    drawn = Enough(10, matched=1)
    for number in drawn:
        rng = random.Random(f"{seed}/{number}")
        table = generators.table(generators.random_stream(rng, most=14), timed=False)
        expected = {name: query.run(table, null_keys="group") for name, query in queries.items()}
        found = several.run(table, null_keys="group")
        assert all(found[name] == each and found[name].undecided == each.undecided for name, each in expected.items())
        recognizer = several.recognizer(table.schema, null_keys="group")
        given = {name: [] for name in texts}
        for row in range(len(table)):
            for name, matches in recognizer.push(table.slice(row, 1)).items():
                given[name] += list(matches)
            if rng.random() < 0.3:
                recognizer = several.recognizer(table.schema, null_keys="group", snapshot=recognizer.snapshot())
        if len(table):
            for name, matches in recognizer.advance(recognizer.latest + 1).items():
                given[name] += list(matches)
        assert given == {name: list(each) for name, each in expected.items()}
        drawn.seen["matched"] += bool(given["pairs"])
    assert "why  EVENT definitions make events for it alone" in str(several.explain(schema=generators.SCHEMA))


def test_explain_says_how_each_definition_is_evaluated():
    text = cepheid.query(f"{PAIR} SELECT * WHERE P ; A WITHIN 5ms CONSUME BY PARTITION").explain("evaluation", schema=TABLE.schema)[
        "evaluation"
    ]
    assert text.startswith("EVENT P\n  A AS a ; B\n  engine ")
    assert (
        "where the first event that a match has made begins: the matches of a trigger are listed, at most 16,777,216, with those of events that are used up"
        in text
    )
    assert "(start of P ; A) <= 5ms" in text


def test_many_events_cost_no_python_each():
    """A match for every other of 200,000 events."""
    count = 200_000
    table = pa.table({"type": ["A", "B"] * (count // 2), "ts": range(count)})
    matches = cepheid.query(
        "EVENT P(t) AS (SELECT a.ts AS t WHERE A AS a : B) SELECT p.t AS t, b.ts AS last WHERE P AS p :[= 1] A : B AS b"
    ).run(table)
    assert len(matches) == count // 2 - 1
    assert matches.to_arrow().slice(0, 2).select(["t", "last"]).to_pylist() == [{"t": 0, "last": 3}, {"t": 2, "last": 5}]


def test_random_programs_are_well_formed(seed):
    """All that the generator makes can be bound; what cannot is a fault of the generator."""
    for number in range(200):
        query = cepheid.query(generators.random_query(random.Random(f"{seed}/{number}"), fragment=LAYERED))
        try:
            query.bound(query.schema(generators.SCHEMA))
        except CepheidError as error:
            raise AssertionError(f"CEPHEID_SEED={seed} {number} {query.text}") from error


def test_events_of_one_trigger_stand_the_same_however_many_are_ordered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"type": list("AABAACBAAB"), "ts": range(10), "v": range(10)})
    query = cepheid.query("EVENT P(n) AS (SELECT sum(a.v) AS n WHERE (A OR C)+ AS a ; B) SELECT * WHERE P AS p")
    wanted = query.run(table).to_arrow(events=True)
    monkeypatch.setattr(made, "PIECE_MARKS", 3)
    assert query.run(table).to_arrow(events=True).equals(wanted)
    assert len(wanted) > 100


@pytest.mark.parametrize("negated", ["P ALL B", "P AS p ALL B AS b FILTER b.v > p.v", "(P ALL P) OR (P ALL B)", "(P ;[<= 3] B) ALL C"])
@pytest.mark.parametrize("pattern", ["A ; NOT ({}) ; C", "(A ; C) UNLESS ({})", "A NOT FOLLOWED BY ({}) FOR 6"])
def test_of_what_must_not_come_any_event_may_begin_first(pattern, negated, seed):
    """By the kernel, also where its first event is in the window and the match that made another one begins before that."""
    made_ = "EVENT P(v) AS (SELECT max(made.v) AS v WHERE (A ;[<= 4] C) AS made WITHIN 12) "
    for number in range(8):
        rng = random.Random(f"{seed} {pattern} {negated} {number}")
        query = cepheid.query(f"{made_}SELECT * WHERE {pattern.format(negated)}{rng.choice(['', ' WITHIN 10', ' WITHIN 7 EVENTS'])}")
        rows = rng.randint(6, 12)
        columns = {
            "type": rng.choices("ABC", k=rows),
            "ts": sorted(rng.choices(range(15), k=rows)),
            "v": rng.choices([1, 2, 3, None], k=rows),
        }
        case = Case(seed, number, query, pa.table(columns), {})
        wanted = sorted(map(str, rows_of(query.run(case.events, engine="reference"))))
        for come in (whole, pushed, restored):
            assert sorted(map(str, come(case, "compiled"))) == wanted, f"{come.__name__}\n{case}"
