"""Matches as events, by definition: where they stand, where they begin, what they have; and that a definition of one event is that event."""

from __future__ import annotations

import random
import re

import pyarrow as pa
import pytest
from enough import Enough

import cepheid
from cepheid.errors import LimitError, NotSupportedError
from cepheid.testing import events, generators, reference
from cepheid.testing.generators import TYPES
from cepheid.theory.equivalence import equivalent

FAILURES = events("Fail1(user='a') Fail2(user='a') Fail3(user='a') Ok4(user='a') Fail5(user='b') Ok9(user='b') Fail10(user='a')")
BURST = "EVENT Burst(n) AS (SELECT MAX count(f) AS n WHERE Fail+ AS f PARTITION BY user WITHIN 5 HAVING n >= 2)"


def run(text, rows=FAILURES, **options):
    return cepheid.query(text).run(rows, engine="reference", **options)


def same(text, rows=FAILURES, **options):
    """By the definition, which the engine is to give too."""
    expected = run(text, rows, **options)
    found = cepheid.query(text).run(rows, **options)
    assert found.to_arrow().schema == expected.to_arrow().schema
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    assert (found.null_keys, found.warnings, len(found.undecided)) == (expected.null_keys, expected.warnings, len(expected.undecided))
    return expected


def test_a_burst_then_a_success():
    matches = same(f"{BURST} SELECT b.n AS n, s.ts AS at WHERE Burst AS b ; Ok AS s PARTITION BY user WITHIN 10")
    assert [match.measures for match in matches] == [{"n": 2, "at": 4}, {"n": 3, "at": 4}]
    # They begin where their first failure is, and end with the success.
    assert [(match.start_time, match.end_time, match.keys) for match in matches] == [(1, 4, {"user": "a"})] * 2


def test_where_derived_events_stand():
    """Behind the event that completes them; the time is that of this event, the keys are attributes."""
    (match, *_) = same(f"{BURST} SELECT * WHERE Burst AS b ; Ok AS s PARTITION BY user")
    assert match["b"] == [{"type": "Burst", "ts": 2, "user": "a", "n": 2}]
    assert (match.start, match.end, match.variables) == (0, 5, {"b": (2,), "s": (5,)})


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("A AS a ; P AS p", [1]),  # A1 is before the P of (A2, B3), and no A is before that of (A1, B3)
        ("P AS p ; D", [0, 1]),
        ("A AS a ;[<= 1] P AS p", [1]),
        ("A AS a ;[< 1] P AS p", []),
        ("P AS p ;[= 2] D AS d", [0, 1]),
        ("P AS p WITHIN 1", [1]),  # from A2 to B3; the other one takes two
        ("(P AS p ; D) WITHIN 3", [1]),
        ("P AS p : D", []),
        ("P AS p : P AS q", []),  # the second one begins before
        ("P AS p ALL A AS a", [0, 0, 1, 1]),
        ("(P AS p) UNLESS (A : A)", [1]),
    ],
)
def test_sequences_gaps_and_windows_use_where_they_begin(pattern, found):
    """P: A, then B. The stream has P at (1, 3) and at (2, 3)."""
    text = f"EVENT P(first) AS (SELECT a.ts AS first WHERE A AS a ; B) SELECT * WHERE {pattern}"
    matches = same(text, events("A1 A2 B3 C4 D5"))
    begun = [match["p"][0]["first"] - 1 for match in matches]
    assert sorted(begun) == found


def test_layers():
    """A definition sees the events of those before it, in whatever order they are written."""
    double = "EVENT Two(v) AS (SELECT p.v + q.v AS v WHERE One AS p ; One AS q)"
    one = "EVENT One(v) AS (SELECT a.v AS v WHERE A AS a)"
    for text in (f"{one} {double}", f"{double} {one}"):
        matches = same(f"{text} SELECT t.v AS v, start_time(), duration() WHERE Two AS t", events("A1(v=1) A2(v=2) A4(v=4)"))
        assert sorted((match.start_time, *match.measures.values()) for match in matches) == [(1, 3, 1, 1), (1, 5, 1, 3), (2, 6, 2, 2)]


def test_absences_in_a_definition():
    """Decided by the events that come in."""
    text = (
        "EVENT Silent(since) AS (SELECT a.ts AS since WHERE A AS a NOT FOLLOWED BY B FOR 2) SELECT s.since AS since WHERE Silent AS s ; C"
    )
    assert [match.measures["since"] for match in same(text, events("A1 C2 A3 B4 C9 A10 C11"))] == [1, 1]  # C11 is behind A10
    assert [match.measures["since"] for match in same(text, events("A1 C2 A3 B4 C9 A10 C11"), until="end")] == [1, 1, 1, 10]


def test_parameters_are_those_of_the_whole_text():
    text = "EVENT Big(v) AS (SELECT a.v AS v WHERE A AS a FILTER a.v > :least) SELECT * WHERE Big AS b FILTER b.v < :most"
    query = cepheid.query(text, args={"least": 1, "most": 4})
    assert [match["b"][0]["v"] for match in query.run(events("A1(v=1) A2(v=2) A3(v=5)"), engine="reference")] == [2]
    with pytest.raises(cepheid.BindError, match="no parameter `:other`"):
        query.with_args(other=3).run(events("A1(v=1)"), engine="reference")


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT ANY count(a) AS v WHERE A+ AS a", "ANY"),
        ("SELECT RESTRICTED duration() AS v WHERE A", "RESTRICTED"),
        ("SELECT a.ts AS v WHERE A AS a LIMIT 2", "LIMIT"),
    ],
)
def test_what_leaves_open_which_matches_there_are_is_no_definition(query, what):
    with pytest.raises(cepheid.BindError, match=f"{what} does not say which matches are events of `One`: it takes some") as error:
        run(f"EVENT One(v) AS ({query}) SELECT * WHERE One", events("A1"))
    assert f"  1 | EVENT One(v) AS ({query})" in str(error.value)
    with pytest.raises(cepheid.BindError, match="`ANY` cannot be told from the pattern ANY"):
        run("EVENT ANY(v) AS (SELECT a.ts AS v WHERE A AS a) SELECT * WHERE A", events("A1"))


def test_what_ends_while_a_definition_waits_is_undecided():
    """B7 may still come: then there is no P behind A2, and (D ; C) is a match. Undecided is what is given if nothing comes any more."""
    text = "EVENT P(n) AS (SELECT count(a) AS n WHERE A AS a NOT FOLLOWED BY B FOR 5) SELECT * WHERE (D ; C) UNLESS P"
    matches = same(text, events("D1 A2 C3"))
    assert ([(m.start, m.end) for m in matches], [(m.start, m.end) for m in matches.undecided]) == ([], [])
    assert len(same(text, events("D1 A2 C3"), until="end")) == 0
    assert len(same(text, events("D1 A2 C3 B4 X8"))) == 1
    # Whether there is an A or not: what ends in the last 5 waits.
    matches = same(text.replace("UNLESS P", ""), events("D1 C2 C3 X7"))
    assert ([(m.start, m.end) for m in matches], [(m.start, m.end) for m in matches.undecided]) == ([(0, 1)], [(0, 2)])
    # Definitions wait one after the other: C3 is known at 3 + 5 + 2.
    layered = text.replace(" SELECT * ", " EVENT Q(n) AS (SELECT p.n AS n WHERE P AS p NOT FOLLOWED BY C FOR 2) SELECT * ").replace(
        "UNLESS P", ""
    )
    assert [len(same(layered, events(f"D1 C3 X{last}"))) for last in (9, 10)] == [0, 1]
    # The absences of the query itself come on top.
    own = text.replace("UNLESS P", "NOT FOLLOWED BY B FOR 2")
    assert [len(same(own, events(f"D1 C3 X{last}"))) for last in (9, 10)] == [0, 1]


def test_a_definition_of_one_event_is_that_event(seed, cases):
    """A query about events of type A finds the same with `EVENT Z .. WHERE A` in the place of A, where positions do not count."""
    fragment = generators.QueryFragment(
        operators=(
            *((name, weight) for name, weight in generators.GUARDED.operators if name not in {"adjacent", "iterate_adjacent", "strict"}),
        ),
        strategies=("", "NXT", "LAST", "MAX"),
        windows=("", "time", "interval"),
        adjacent=False,
        correlated=True,
        partition=0.0,
        limit=0.0,
    )
    drawn = Enough(cases // 2, matched=3)
    for number in drawn:
        rng = random.Random(f"{seed}/{number}")
        text = generators.random_query(rng, fragment=fragment)
        if "ANY" in text or "EVENTS" in text:
            continue
        rows = generators.table(generators.random_stream(rng, most=8))
        made = ", ".join(f"a.{name} AS {name}" for name in ("v", "w", "s", "b", "k"))
        renamed = re.sub(rf"\b{TYPES[0]}\b", "Z", text)
        try:
            plain = run(text, rows)
            derived = run(f"EVENT Z(v, w, s, b, k) AS (SELECT {made} WHERE {TYPES[0]} AS a) {renamed}", rows)
        except LimitError:
            continue
        count = [0]
        for kind in rows["type"].to_pylist():
            count.append(count[-1] + 1 + (kind == TYPES[0]))
        kinds = rows["type"].to_pylist()

        def moved(place, starts, *, kinds=kinds):
            return starts[place] + (kinds[place] == TYPES[0])

        expected = sorted(
            tuple(
                sorted(("Z" if name == TYPES[0] else name, tuple(moved(p, count) for p in places)) for name, places in m.variables.items())
            )
            for m in plain
        )
        assert sorted(tuple(sorted(m.variables.items())) for m in derived) == expected, f"CEPHEID_SEED={seed} {number} {text}"
        drawn.seen["matched"] += bool(expected)


@pytest.mark.parametrize(
    "text",
    [
        "EVENT P(k) AS (SELECT b.k AS k WHERE A AS a ; B AS b) SELECT * WHERE P PARTITION BY k",
        "EVENT P(k) AS (SELECT b.k AS k WHERE A AS a ; B AS b) SELECT * WHERE A PARTITION BY k",
        "EVENT P(k) AS (SELECT b.k AS k WHERE A AS a ; B AS b) EVENT Q(n) AS (SELECT count(p) AS n WHERE P AS p PARTITION BY k) SELECT * WHERE Q",
        "EVENT P(n) AS (SELECT b.k AS n WHERE A AS a ; B AS b) EVENT Q(m) AS (SELECT count(p) AS m WHERE P AS p PARTITION BY k) SELECT * WHERE Q",
    ],
)
def test_an_event_that_may_begin_in_another_partition_is_refused(text):
    """In every layer, also where the pattern does not name it: with the key as a measure it would be in a partition."""
    with pytest.raises(
        cepheid.BindError, match=r"the events of `P` may span several partitions: `k` is (no key|a measure) of its definition"
    ):
        run(text, events("A1(k=2) B2(k=1)"))


def test_an_event_without_the_key_is_not_seen_by_a_query_that_does_not_name_it():
    text = "EVENT P(n) AS (SELECT b.k AS n WHERE A AS a ; B AS b) SELECT * WHERE ANY AS x PARTITION BY k"
    assert [match.variables["x"] for match in run(text, events("A1(k=2) B2(k=1)"))] == [(0,), (0,)]


def test_the_reference_and_the_checker_know_definitions():
    query = cepheid.query("EVENT P(v) AS (SELECT a.v AS v WHERE A AS a) SELECT * WHERE P AS p")
    plan = query.bound(query.schema(pa.Table.from_pylist(events("A1(v=1)"))))
    (match,) = reference.matches(plan, [reference.Event("A", 1, {"v": 1})])
    assert match.mapping == (("p", (1,)),)
    with pytest.raises(NotSupportedError, match="queries with EVENT definitions are not compared"):
        equivalent(plan, plan)
