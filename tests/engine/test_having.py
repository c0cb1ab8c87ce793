"""HAVING: what it means for the clauses behind it, its limits, its errors and what is said of it. Random queries with it are beside all others."""

from __future__ import annotations

import dataclasses
import random
import types

import numpy as np
import pyarrow as pa
import pytest
from enough import Enough

import cepheid
from cepheid.engine.evaluations.choosing import consuming
from cepheid.engine.evaluations.counts import listed
from cepheid.engine.plan import planner
from cepheid.engine.run import having
from cepheid.errors import BindError, LimitError, NotSupportedError, SnapshotError
from cepheid.language import to_text
from cepheid.schema import schema_of
from cepheid.testing import events
from cepheid.testing.differential import MAX_MATCHES, WAYS, Case, answers, check, draws
from cepheid.testing.generators import JUDGING, JUDGING_GUARDED, random_query, random_stream, table
from cepheid.testing.harness import events_of
from cepheid.testing.reference import run as by_definition

PAIRS = events("A1(v=1,k=1) A2(v=2,k=1) B3(v=3,k=1) A4(v=1,k=1) B5(v=9,k=1)")


def found(text, rows=PAIRS, **options):
    return [(match.start, match.end) for match in cepheid.query(text).run(rows, **options)]


@pytest.mark.parametrize("engine", [None, "reference"])
def test_what_is_left_out_is_no_match(engine):
    """For LIMIT, for COUNT(*), and for CONSUME BY."""
    pairs = "WHERE A AS a ; B AS b HAVING a.v = 1"
    assert set(found(f"SELECT * {pairs}", engine=engine)) == {(0, 2), (0, 4), (3, 4)}
    assert set(found(f"SELECT * {pairs} AND b.v = 9 LIMIT 1", engine=engine)) <= {(0, 4), (3, 4)}
    assert [m.measures["count"] for m in cepheid.query(f"SELECT COUNT(*) {pairs}").run(PAIRS, engine=engine)] == [1, 2]
    # The trigger at 2 gives no match with b.v = 9, so it consumes nothing.
    assert set(found(f"SELECT * {pairs} AND b.v = 9 CONSUME BY ANY", engine=engine)) == {(0, 4), (3, 4)}
    assert set(found(f"SELECT * {pairs} CONSUME BY ANY", engine=engine)) == {(0, 2), (3, 4)}


@pytest.mark.parametrize("engine", [None, "reference"])
def test_a_strategy_chooses_before(engine):
    """Also among those that CONSUME BY leaves: the whole run of the first trigger is used up by it, or by nothing."""
    longest = "SELECT MAX count(a) AS n WHERE A+ AS a ; B HAVING"
    assert found(f"{longest} n <= 2", engine=engine) == [(0, 2)]
    assert found(f"{longest} n = 1", engine=engine) == []
    assert found(f"{longest} n <= 2 CONSUME BY PARTITION", engine=engine) == [(0, 2), (3, 4)]
    assert found(f"{longest} n = 3 CONSUME BY PARTITION", engine=engine) == [(0, 4)]


def test_it_asks_for_what_is_not_shown():
    """Rows that SELECT shows once are given once, for whatever reason a match with them is kept."""
    query = cepheid.query("SELECT b WHERE A+ AS a ; B AS b HAVING sum(a.v) >= 2")
    matches = query.run(PAIRS)
    assert sorted((match.start, match.variables["b"]) for match in matches) == [(0, (2,)), (0, (4,)), (1, (2,)), (1, (4,))]
    assert matches.to_arrow().column_names == ["start_time", "end_time", "start_position", "end_position", "b"]


def test_null_is_not_enough():
    rows = events("A1(v=null,b=null) A2(v=1,b=true)")
    assert found("SELECT * WHERE A AS a HAVING a.v > 0", rows) == [(1, 1)]
    assert found("SELECT * WHERE A AS a HAVING first(a.b)", rows) == [(1, 1)]
    assert found("SELECT * WHERE A AS a HAVING NOT first(a.b)", rows) == [(0, 0)]


def test_it_is_written_built_and_given_values():
    text = "SELECT count(a) AS n WHERE A+ AS a ; B HAVING n >= :least AND max(a.v) < 5 CONSUME BY PARTITION LIMIT 2"
    query = cepheid.query(text, args={"least": 2})
    assert to_text(query.tree) == text
    built = cepheid.event("A").repeat().as_("a").followed_by("B").select(
        "count(a) AS n", having="n >= :least AND max(a.v) < 5", consume="PARTITION", limit=2
    )  # fmt: skip
    assert built == query.tree
    assert len(query.run(PAIRS)) == 1
    assert len(query.with_args(least=9).run(PAIRS)) == 0


@pytest.mark.parametrize(
    ("condition", "fact", "help_"),
    [
        ("m > 1", "`m` is no measure of SELECT", "the measures of SELECT are: `n`"),
        ("a > 1", "`a` is where a value is needed", "count(a)"),
        ("a.v > 1", "`a` can hold several events", "first(a.v) or last(a.v)"),
        ("a[v > 1]", "`x[..]` is a condition on events, HAVING takes measures", "FILTER"),
        ("COUNT(*) > 1", "COUNT(*) counts the matches of a trigger, HAVING judges each match", "count(x)"),
        ("first(a.v) > k", "`k` is no measure of SELECT", "`n`"),
        ("n", "a condition is TRUE or FALSE, this is int64", "compare"),
        ("prev(a).v > 1", "prev(..) can only be in a FILTER", "first(a.a)"),
        ("lag(a.v) > 1", "lag(..) can only be in a FILTER", "ANY AS before : T AS t"),
        ("median(a.v) > 1", "unknown measure `median`", "collect(x.a) in SELECT gives the values"),
    ],
)
def test_bad_conditions(condition, fact, help_):
    with pytest.raises(BindError) as error:
        cepheid.query(f"SELECT count(a) AS n WHERE A+ AS a ; B HAVING {condition}").run(PAIRS)
    assert fact in error.value.fact
    assert any(help_ in line for line in error.value.help), error.value.help


def test_bad_options():
    with pytest.raises(BindError, match="RESTRICTED gives any of the matches with one interval"):
        found("SELECT RESTRICTED * WHERE A+ AS a ; B HAVING count(a) > 1")
    assert found("SELECT RESTRICTED * WHERE A+ AS a ; B HAVING duration() >= 1") == [(1, 2), (3, 4)]
    with pytest.raises(NotSupportedError, match="HAVING leaves some out"):
        found("SELECT * WHERE A+ AS a ; B HAVING count(a) > 1", sample=2)


@pytest.mark.parametrize(
    ("clauses", "name"),
    [
        ("SELECT * WHERE {} LIMIT 2", "MAX_LISTED"),
        ("SELECT * WHERE {}", "MAX_LISTED"),
        (
            "SELECT * WHERE {} OR count(a) < 1 CONSUME BY PARTITION",
            "MAX_LISTED",
        ),  # with less, no match could be enough where the largest is not
        ("SELECT MAX * WHERE {} CONSUME BY ANY", "MAX_COMPARED"),
    ],
)
def test_listing_has_a_limit(clauses, name, monkeypatch):
    monkeypatch.setattr(listed, "MAX_LISTED", 50)
    monkeypatch.setattr(listed, "MAX_COMPARED", 50)
    # By key, one key uses up what others have: the matches are listed, and MAX compares them.
    keys = "PARTITION BY k " * (name == "MAX_COMPARED")
    query = cepheid.query(clauses.format(f"A+ AS a ; B {keys}HAVING count(a) > 50"))
    assert found(query.text, events("A1(k=1) A2(k=1) A3(k=1) A4(k=1) A5(k=1) B6(k=1)")) == []
    with pytest.raises(LimitError) as error:
        found(query.text, events("A1(k=1) A2(k=1) A3(k=1) A4(k=1) A5(k=1) A6(k=1) B7(k=1)"))
    assert "the event at position 6 completes more than 50 matches" in error.value.fact
    assert name == "MAX_COMPARED" or name in error.value.fact


def test_what_is_explained():
    text = "SELECT LAST count(a) AS n WHERE A+ AS a ; B AS b PARTITION BY k HAVING n >= 2 AND b.v > 1 CONSUME BY PARTITION"
    shown = cepheid.query(text).explain("evaluation")["evaluation"]
    assert (
        "count(a) >= 2 AND b.v > 1.0: behind the last trigger of which it left a match, the matches that LAST chooses are listed and judged"
        in shown
    )
    shown = cepheid.query(text.replace("BY PARTITION", "BY ANY")).explain("evaluation")["evaluation"]
    assert "listed, those that CONSUME BY leaves compared (LAST) and judged, at most 65,536, with those of events that are used up" in shown
    shown = cepheid.query(text.replace("PARTITION BY k ", "").replace("CONSUME BY PARTITION", "")).explain("evaluation")["evaluation"]
    assert "there is no window" in shown
    assert "having" not in cepheid.query("SELECT * WHERE A ; B").explain("evaluation")["evaluation"]


def test_the_last_trigger_is_in_a_snapshot():
    query = cepheid.query("SELECT * WHERE A AS a ; B AS b PARTITION BY k HAVING a.v >= 1 CONSUME BY PARTITION")
    rows = pa.Table.from_pylist(PAIRS)
    before = query.recognizer(rows.schema)
    assert len(before.push(rows.slice(0, 3))) == 2
    after = query.recognizer(rows.schema, snapshot=before.snapshot())
    assert [(match.start, match.end) for match in after.push(rows.slice(3))] == [(3, 4)]
    other = cepheid.query(query.text.replace(">= 1", ">= 2"))
    with pytest.raises(SnapshotError):
        other.recognizer(rows.schema, snapshot=before.snapshot())


@pytest.mark.parametrize("strategy", ["MAX", "NXT", "LAST", "ANY", "ALL"])
@pytest.mark.parametrize("pattern", ["T+", "T:+", "T{1,} WITHIN 50"])
def test_what_is_used_up_is_not_listed(strategy, pattern, monkeypatch):
    """Counted in matches that are judged: 2^40 without."""
    judged = []
    holds = having.Having._holds
    monkeypatch.setattr(having.Having, "_holds", lambda self, matches: judged.append(len(matches)) or holds(self, matches))
    rows = pa.table({"type": ["T"] * 40, "ts": range(40), "q": [6] * 40})
    pattern, _, window = pattern.partition(" ")
    query = cepheid.query(f"SELECT {strategy} sum(t.q) AS d WHERE {pattern} AS t {window} HAVING d > 5 CONSUME BY PARTITION")
    assert [(match.start, match.end) for match in query.run(rows)] == [(number, number) for number in range(40)]
    assert sum(judged) <= 1 << 17


@pytest.mark.parametrize("strategy", ["MAX", "NXT", "LAST", "ANY", "ALL"])
def test_what_all_events_together_cannot_meet_is_not_listed(strategy, monkeypatch):
    """Neither whole nor pushed, with a stored state in between; once they can, nothing is missed."""
    judged = []
    holds = having.Having._holds
    monkeypatch.setattr(having.Having, "_holds", lambda self, matches: judged.append(len(matches)) or holds(self, matches))
    rows = pa.table({"type": ["A", *"BC" * 20], "ts": range(41), "q": [0, *[6, 0] * 20]})
    asked = "SELECT {} * WHERE A AS a ; B+ AS b ; C AS c HAVING sum(b.q) >= {} AND (count(b) > 3 OR max(b.q) > 9) CONSUME BY PARTITION"
    query = cepheid.query(asked.format(strategy, 121))
    assert len(query.run(rows)) == sum(judged) == 0
    query = cepheid.query(asked.format(strategy, 120))
    assert [(match.start, match.end) for match in query.run(rows)] == [(0, 40)]
    judged.clear()
    recognizer, found = query.recognizer(rows.schema), []
    for number in range(41):
        assert not judged
        found += recognizer.push(rows.slice(number, 1))
        recognizer = query.recognizer(rows.schema, snapshot=recognizer.snapshot())
    assert [(match.start, match.end) for match in found] == [(0, 40)]


@pytest.mark.parametrize("cut", [0, consuming.CUT])
def test_what_can_be_met_at_last_is_found(cut, seed, cases, monkeypatch):
    """Of conditions that ask for more than the first matches have."""
    monkeypatch.setattr(consuming, "CUT", cut)
    drawn = Enough(cases // 5, matched=3, bounded=3)
    for number in drawn:
        rng = random.Random(f"{seed}/{number}")
        pattern = rng.choice(["A+ AS x", "A AS a ; B+ AS x ; C", "(A OR B)+ AS x ; C", "(A:+ AS x) ; B", "A AS x ; A AS y"])
        least = rng.randint(1, 9)
        measures = [f"count(x) > {rng.randint(0, 4)}", f"{least / 2} < sum(x.v)", f"max(x.v) >= {least / 2}", f"min(x.v) < {least / 2}"]
        measures += [f"count(DISTINCT x.v) >= {rng.randint(1, 3)}", f"sum(x.v) < {least}", f"duration() >= {least}"]
        condition = rng.choice([" AND ", " OR "]).join(rng.sample(measures, rng.randint(1, 3)))
        clauses = f"{rng.choice(['', 'WITHIN 9 EVENTS'])} {rng.choice(['', 'PARTITION BY k '])}HAVING {condition} CONSUME BY PARTITION"
        query = cepheid.query(f"SELECT {rng.choice(['ALL', 'ANY', 'MAX', 'NXT', 'LAST'])} * WHERE {pattern} {clauses}")
        rows = table(random_stream(rng, most=12))
        try:
            case = Case(seed, number, query, rows, *answers(query, rows))
        except LimitError:
            continue
        drawn.seen["bounded"] += query.compiled(schema_of(rows.schema)).need is not None
        for way in ("whole", "pushed", "restored"):
            drawn.seen["matched"] += bool(found := WAYS[way](case, None))
            check(case, found)


@pytest.mark.parametrize("first", [1, 3])
def test_partitions_start_anew_in_pieces_of_any_length(first, seed, cases, monkeypatch):
    """Also where few matches are listed, and with one or several triggers of a piece read on from at once."""
    for name, value in (
        ("FIRST_PIECE", first),
        ("FIRST_LISTED", first),
        ("LISTED", first),
        ("ENOUGH", first),
        ("FEW", 4 - first),
        ("CUT", first),
    ):
        monkeypatch.setattr(consuming, name, value)
    monkeypatch.setattr(planner, "growth", types.SimpleNamespace(many=lambda _: True))
    for fragment in (JUDGING, JUDGING_GUARDED):
        drawn = Enough(cases // 20, draws(dataclasses.replace(fragment, having=1.0, consume=1.0), seed=seed), restarts=4)
        for case in drawn:
            if case.query.compiled(schema_of(case.events.schema)).restarts:
                drawn.seen["restarts"] += 1
                for way in ("whole", "pushed", "restored"):
                    check(case, WAYS[way](case, None))


def test_the_largest_matches_say_whether_one_is_left(seed, cases):
    """Of measures that grow with a match; variables that have not all events of their types, too, where it is not so."""
    drawn = Enough(cases // 5, decided=3)
    for number in drawn:
        rng = random.Random(f"{seed}/{number}")
        pattern = rng.choice(
            ["A+ AS x", "(A OR B)+ AS x", "(A AS x OR A AS y)+", "A+ AS x ; B+", "ANY+ AS x ; B", "A:+ AS x ; B", "(A AS x ; A)+"]
        )
        window = rng.choice(["", "WITHIN 4", "WITHIN 5 EVENTS"])
        least = rng.randint(0, 4)
        measures = [f"count(x) >= {least}", f"count(DISTINCT x.v) > {least}", f"max(x.v) >= {least}", f"min(x.v) <= {least}"]
        measures += [f"{least} <= duration()", f"sum(x.v) > {least}", f"count(x) <= {least}"]
        having = rng.choice([" AND ", " OR "]).join(rng.sample(measures, rng.randint(1, 2)))
        one = rng.choice(["SELECT ANY * WHERE {} LIMIT 3", "SELECT ANY * WHERE {}", "SELECT * WHERE {} LIMIT 1"])
        clauses = f"{pattern} {window} {rng.choice(['', 'PARTITION BY k '])}HAVING {having} {rng.choice(['', 'CONSUME BY PARTITION'])}"
        query, rows = cepheid.query(one.format(clauses)), table(random_stream(rng, most=8))
        drawn.seen["decided"] += query.compiled(schema_of(rows.schema)).largest
        case = Case(seed, number, query, rows, *answers(query, rows))
        for way in ("whole", "pushed"):
            check(case, WAYS[way](case, None))


@pytest.fixture
def in_pieces(monkeypatch):
    """Each match comes alone."""
    monkeypatch.setattr(having.Having, "_bounded", lambda _, chunks: (c.take(np.array([n])) for c in chunks for n in range(len(c))))


@pytest.mark.usefixtures("in_pieces")
def test_the_matches_of_a_trigger_may_come_in_any_pieces(seed, cases):
    """What CONSUME BY, LIMIT, COUNT(*) and equal rows remember of a trigger from piece to piece."""
    drawn = Enough(cases // 2, draws(JUDGING, seed=seed), matched=2)
    for case in drawn:
        if case.query.tree.having is None:
            continue
        found = WAYS["whole"](case, None)
        check(case, found)
        assert WAYS["pushed"](case, None) == found
        drawn.seen["matched"] += bool(found)


@pytest.mark.usefixtures("in_pieces")
def test_what_starts_last_may_come_in_any_pieces(seed, cases):
    """RESTRICTED where the event that is read first does not say where the match begins: another one may stand before it and begin later."""
    drawn = Enough(cases // 2, chosen=20)
    for number in drawn:
        rng = random.Random(f"{seed}/{number}")
        pattern = rng.choice(["P ALL A", "(P OR A) ; B", "P+ ; C", "P ; C WITHIN 6", "(P OR C) ; (A OR B) ; C"])
        made = rng.choice(["A ; B", "A+ : B", "C ; A"])
        every = f"EVENT P(w) AS (SELECT count(x) AS w WHERE ({made}) AS x) SELECT * WHERE {pattern}"
        rows = pa.table({"type": rng.choices("ABC", k=9), "ts": list(range(9))})
        last: dict[int, int] = {}
        for match in cepheid.query(every).run(rows, engine="reference"):
            last[match.end] = max(last.get(match.end, 0), match.start)
        found = cepheid.query(every.replace("SELECT *", "SELECT RESTRICTED *")).run(rows)
        assert {match.end: match.start for match in found} == last
        assert len(found) == len(last)
        drawn.seen["chosen"] += len(last)


def test_random_rows_shown_once(seed, cases):
    """What SELECT shows of matches that differ in hidden variables alone, with chunks of few matches."""
    drawn = Enough(cases // 4, matched=1)
    for number in drawn:
        rng = random.Random(f"{seed}/{number}")
        text = random_query(rng, fragment=JUDGING)
        rows = table(random_stream(rng, most=10))
        query = cepheid.query(text)
        plan = query.bound(query.schema(rows))
        if plan.having is None or plan.count or plan.limit or plan.strategy.value in {"ANY", "RESTRICTED"}:
            continue
        try:
            expected = by_definition(plan, events_of(rows, plan.schema), max_matches=MAX_MATCHES)
            matches = query.run(rows)
        except LimitError:
            continue
        wanted = sorted(
            (each.key, m.start, m.end, m.mapping) for each in expected.partitions for group in each.groups for m in group.candidates
        )
        assert len(matches) == len(wanted), f"CEPHEID_SEED={seed} {number} {text}"
        drawn.seen["matched"] += bool(wanted)
