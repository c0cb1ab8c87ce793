"""NXT, LAST and MAX inside a pattern, around parts that compare events or bound time: against the definition, and what they cost."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from enough import Enough, share
from pattern_cases import CASES, SEED

import cepheid
from cepheid.engine.evaluations import base
from cepheid.engine.evaluations.counts.chosen_count import ChosenCount
from cepheid.engine.evaluations.events import Events
from cepheid.engine.evaluations.guards import guarded_choice_run, guarded_run
from cepheid.engine.evaluations.guards.guarded_parts_run import PartChoiceRun, PartsRun
from cepheid.engine.evaluations.guards.guarded_run import GuardSizes
from cepheid.engine.letters.encoded import Texts
from cepheid.errors import LimitError, SnapshotError
from cepheid.kernel import available
from cepheid.testing import differential, events
from cepheid.testing.differential import Case, answers, ways_of

if TYPE_CHECKING:
    from cepheid.engine.plan.compiled import Compiled
    from cepheid.query import Query

TINY = GuardSizes(places=1, chunk=2, chunk_positions=3, levels=1, queue=1, codes=2)

STREAM = "C1(v=1) A2(v=1) A3(v=2) B4(v=2) C5(v=2) A5(v=2) B6(v=1) B6(v=2) C7(v=1) A8(v=3) A9(v=2) B10(v=3) C11(v=3) C12(v=2)"


def rows_of(query: str, rows: list[dict[str, Any]], **options: Any) -> list[tuple[Any, ...]]:
    found = cepheid.query(query).run(rows, **options)
    return sorted((match.start, match.end, sorted(match.variables.items()), sorted(match.measures.items())) for match in found)


def compiled(query: str) -> Compiled:
    parsed = cepheid.query(query)
    return parsed.compiled(parsed.schema(pa.Table.from_pylist(events(STREAM))))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * WHERE LAST(A AS x ;[<= 5] B AS y) ; C",
        "SELECT * WHERE NXT(A AS x ; B AS y FILTER y.v = x.v) ; C",
        "SELECT * WHERE C ; (MAX((A AS r FILTER r.v > prev(r).v):{1,})) ; B",
        "SELECT * WHERE (LAST(A AS x ;[<= 3] B AS y) ; C AS z) FILTER z.v = x.v",
        "SELECT * WHERE (C AS z ; NXT(A AS x ;[<= 9] B AS y)) FILTER z.v < y.v",
        "SELECT * WHERE (LAST(A+ ;[<= 3] B) ; C)+",
        "SELECT * WHERE (LAST(A+ ;[<= 9] B) ;[<= 2] C){2,3}",
        "SELECT * WHERE C : NXT(A ;[<= 5] B)? : C",
        "SELECT * WHERE NXT(A ;[<= 5] B) AND (A ; B)",
        "SELECT * WHERE NXT(A ; B+ ; C WITHIN 5) AND LAST(A ; B+ ; C WITHIN 6)",
        "SELECT * WHERE C ; (LAST(A ;[<= 5] B) OR MAX(A+ ;[<= 2] B))",
        "SELECT * WHERE NXT(LAST(A ;[<= 5] B) ; C)",
        "SELECT * WHERE C ; MAX(NXT(A+ ;[<= 5] B) ;[<= 5] C)",
        "SELECT * WHERE C ; LAST(PROJECT y (A AS x ; B AS y FILTER x.v = y.v)) ; C",
        "SELECT * WHERE PROJECT z (LAST(A ;[<= 5] B) ; C AS z)",
        "SELECT * WHERE NXT(PROJECT y (A AS x ;[<= 5] B AS y ;[<= 5] C)) ; C",
        "SELECT * WHERE STRICT(LAST(A ;[<= 5] B)) ; C",
        "SELECT * WHERE LAST(A ;[<= 5] B) ; C NOT FOLLOWED BY NXT(A ;[<= 5] B) FOR 4",
        "SELECT * WHERE C NOT FOLLOWED BY (LAST(A ;[<= 2] B) : C) FOR 9",
        "SELECT * WHERE LAST(A ;[<= 5] B) ; C CONSUME BY PARTITION",
        "SELECT * WHERE (NXT(A ; B ;[<= 5] C)) WITHIN 6",
        "SELECT * WHERE NXT(A ;[<= 5] B WITHIN 3 EVENTS) ; C WITHIN 6 EVENTS",
        "SELECT * WHERE LAST(A ;[<= 5] B) ; C PARTITION BY v",
        "SELECT NXT * WHERE LAST(A ;[<= 5] B) ; C",
        "SELECT LAST z WHERE MAX(A+ ;[<= 5] B) ; C+ AS z",
        "SELECT MAX * WHERE (LAST(A ;[<= 5] B) ; C)+ WITHIN 9",
        "SELECT COUNT(*) WHERE (C ; MAX(A+ ;[<= 5] B))+",
        "SELECT COUNT(*) WHERE (LAST(A+ ;[<= 5] A))+ ; C",
        "SELECT STRICT * WHERE LAST(A ;[<= 5] B) : C",
        "SELECT * WHERE MAX(A{2,} WITHIN 6) ;[<= 5] B",
        "SELECT * WHERE C ; MAX(A{2,} WITHIN 6) ;[<= 5] B",
        "SELECT * WHERE LAST(A+ ; B WITHIN 4 EVENTS) ; C",
        "SELECT * WHERE NXT(PROJECT y (A AS x ; B AS y) WITHIN 4) ; C",
        "SELECT * WHERE (MAX(A+ WITHIN [1, 4]) OR C) ; MAX(A+ WITHIN 3) ; C",
        "SELECT LAST * WHERE (MAX(A+ WITHIN 4) ; C)+ CONSUME BY PARTITION",
    ],
)
def test_strategies_around_guards_keep_what_the_definition_keeps(query: str) -> None:
    rows = events(STREAM)
    assert any(program.automaton.parts for program in compiled(query).programs)
    assert rows_of(query, rows) == rows_of(query, rows, engine="reference")


def test_some_of_these_have_matches() -> None:
    """By hand: A2 and A3 are near B4, but LAST takes A3; C1 comes before both."""
    (match,) = cepheid.query("SELECT * WHERE C ; LAST(A AS x ;[<= 5] B AS y)").run(events("C1 A2 A3 B4"))
    assert match.variables == {"C": (0,), "x": (2,), "y": (3,)}
    assert not cepheid.query("SELECT * WHERE A ; C ; NXT(A ;[<= 5] B)").run(events("A1 C2 A3 B4")), "NXT takes the A before the C"


@pytest.mark.parametrize("strategy", ["LIMIT 2", ""])
def test_what_is_given_does_not_depend_on_batches_and_restarts(strategy: str) -> None:
    query, rows = cepheid.query(f"SELECT * WHERE C+ ; MAX(A+ ;[<= 5] B) ; C {strategy}"), events(STREAM)
    whole = [match.variables for match in query.run(rows)]
    found = []
    schema, snapshot = pa.Table.from_pylist(rows).schema, None
    for row in rows:
        recognizer = query.recognizer(schema, snapshot=snapshot)
        found += [match.variables for match in recognizer.push([row])]
        snapshot = recognizer.snapshot()
    assert found == whole
    assert whole


def test_rivals_count_that_the_pattern_around_leaves_out() -> None:
    """D is in no match of the whole pattern, but in a match of the part that wins."""
    query = "SELECT * WHERE NXT((A OR D) ;[<= 9] B) AND (A ; B)"
    for stream, count in (("D1 A2 B3", 0), ("A1 D2 B3", 1)):
        assert len(rows_of(query, events(stream))) == len(rows_of(query, events(stream), engine="reference")) == count


def test_matches_of_the_pattern_are_counted_without_a_list() -> None:
    stream = events(" ".join(f"C{time}" for time in range(100)) + " A100 A101 B102")
    (match,) = cepheid.query("SELECT COUNT(*) WHERE C+ ; LAST(A+ ;[<= 5] B)").run(stream)
    assert match.measures["count"] == 2**100 - 1


def test_matches_of_a_part_are_compared_without_a_list() -> None:
    stream = events(" ".join(f"A{time}" for time in range(60)) + " B60 C61")
    for strategy in ("NXT", "LAST", "MAX"):
        (match,) = cepheid.query(f"SELECT * WHERE {strategy}(A+ ;[<= 90] B) ; C").run(stream)
        assert match.variables["A"] == tuple(range(60))


def test_what_a_part_chooses_from_within_its_window_grows_with_that_window_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No group of partial matches for each place where it begins, and what began before the window is not looked at: by how often the kernel returns."""
    query, calls = cepheid.query("SELECT * WHERE MAX(A{3,} WITHIN 20) ;[<= 9] B"), []
    called = PartChoiceRun._call
    monkeypatch.setattr(PartChoiceRun, "_call", lambda self: calls.append(self) or called(self))
    monkeypatch.setattr(base, "BUDGET", 10)
    taken = []
    for count in (50, 100, 200):
        calls.clear()
        query.run(events(" ".join(f"A{time}" if time % 10 else f"B{time}" for time in range(count))))
        taken.append(len(calls) / count)
    assert taken[2] < 1.2 * taken[1] < 1.5 * taken[0]
    assert taken[2] > 1


def test_one_match_with_parts_at_different_places_is_counted_once() -> None:
    query, rows = "SELECT COUNT(*) WHERE (LAST(A+ ;[<= 9] A))+", events("A1 A2 A3 A4 A5")
    assert compiled(query).program.repeats
    assert not compiled("SELECT COUNT(*) WHERE C ; LAST(A+ ;[<= 9] A)").program.repeats
    assert rows_of(query, rows) == rows_of(query, rows, engine="reference")


def test_parts_may_be_longer_than_recursion_is_deep() -> None:
    stream = events(" ".join(f"A{time}" for time in range(1_500)) + " B1500 C1501")
    (match,) = cepheid.query("SELECT * WHERE NXT(A+ ;[<= 9] B) ; C").run(stream)
    assert len(match.variables["A"]) == 1_500


def test_max_in_a_part_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_choice_run, "MAXIMAL_LIMIT", 3)
    with pytest.raises(LimitError, match="MAXIMAL_LIMIT"):
        cepheid.query("SELECT * WHERE MAX(A+ ;[<= 9] B) ; C").run(events("A1 A2 A3 A4 B5 C6"))


def test_an_event_matters_as_long_as_parts_compare_it() -> None:
    assert compiled("SELECT * WHERE C ; LAST(A ;[<= 5] B) WITHIN 3").horizon == 5
    assert compiled("SELECT * WHERE C ; LAST(A ;[<= 5] B) WITHIN 9").horizon == 9
    assert compiled("SELECT * WHERE C ; LAST(A+ ;[<= 5] B) WITHIN 3").horizon is None


def test_what_is_kept_stays_where_parts_and_pattern_have_windows() -> None:
    query = cepheid.query("SELECT * WHERE LAST(A+ AS x ; B AS y WITHIN 6) ; C WITHIN 20")
    rows = [{"type": "AABC"[time % 4], "ts": time, "v": 1} for time in range(2_000)]
    recognizer = query.recognizer(pa.Table.from_pylist(rows).schema)
    kept = []
    for begin in range(0, 2_000, 200):
        recognizer.push(rows[begin : begin + 200])
        kept.append(len(recognizer.snapshot()))
    assert max(kept) < 1.2 * min(kept)


def test_state_without_that_of_a_part_is_damaged() -> None:
    query = compiled("SELECT * WHERE LAST(A ;[<= 5] B) ; C")
    run = query.method.start(query.terms)
    sections = dict(run.dump())
    assert any(name.startswith("guarded_part0/") for name in sections)
    with pytest.raises(SnapshotError):
        query.method.start(query.terms).load({name: each for name, each in sections.items() if not name.startswith("guarded_part0/")})


def test_explain_says_what_a_strategy_inside_costs() -> None:
    found = cepheid.query("SELECT * WHERE MAX(A+ ;[<= 5] B) ; C WITHIN 9").explain("evaluation")["evaluation"]
    assert "at each event that ends MAX(A+ ;[<= 5] B): at most 4,194,304 steps" in found
    assert "it grows with the marked events, for it has no window of its own" in found
    assert "and O(log n) and a cell per event of what it keeps" in found


KERNEL = (
    "LAST(A ;[<= 3] B) ; C WITHIN 12",
    "NXT(A AS a ; B AS b FILTER b.v > a.v WITHIN 5) ; C WITHIN 10 EVENTS",
    "MAX(A{2,} AS f WITHIN 5) ;[<= 4] C",
    "MAX((A AS r FILTER r.v > prev(r).v)+ WITHIN 8) ; C AS c WITHIN 20",
    "B AS x ; NXT(A AS a ;[<= 4] B AS b) ; C AS c FILTER c.v > x.v AND c.v < b.v WITHIN 15",
    "A AS a ; NXT(B AS b ;[<= 3] B AS c) ; C AS d FILTER d.v = a.v AND d.v >= b.v WITHIN 15",
    "(LAST(A ;[<= 3] B))+ ; C WITHIN 12",
    "NXT(A+ AS a ;[<= 3] B) ;[<= 5] LAST(A ;[<= 4] C AS c) WITHIN 20",
    "C ; MAX((A AS a OR (A AS b ;[<= 2] B))) WITHIN 7 EVENTS",
    "LAST(A ;[<= 3] B) ;[<= 2] C AS c CONSUME BY PARTITION",
    *(
        MOVED := (
            "LAST(A ; PROJECT b (B AS b ; C) ;[<= 5] A) ; B WITHIN 20",
            "NXT(A AS a ; PROJECT c (B ; C AS c FILTER c.v > 1) ; B AS d FILTER d.v >= a.v WITHIN 9) ; C WITHIN 25",
            "NXT(A AS a ; PROJECT d (B AS b ; B AS d) ; A AS c FILTER c.v > a.v AND c.v != d.v WITHIN 12) ; C AS e FILTER e.v < d.v WITHIN 25",
            "MAX(A+ ; PROJECT b (A ; B AS b) WITHIN 8) ; C WITHIN 20",
            "LAST((A ; B OR A : C) ;[<= 4] B) ; C WITHIN 20",
            "PROJECT b (A AS a ; C ; B AS b FILTER b.v > a.v) ; NXT(A ;[<= 4] B) ; PROJECT d (B ; C AS d) ; A WITHIN 20",
            "A ; (LAST(A ; PROJECT b (B AS b ; C) ; B WITHIN 9 EVENTS) ; C)+ WITHIN 25",
        )
    ),
    "LAST(NXT(A ;[<= 3] B) ; C WITHIN 9) ; B WITHIN 20",
    "NXT(A ; LAST(B ;[<= 3] MAX(C+ ;[<= 3] B) WITHIN 8) WITHIN 12) ; A WITHIN 20",
    "(LAST(A ;[<= 9] B ; C WITHIN 9) ; B) AND (NXT(A ;[<= 4] B) ; C ; B) WITHIN 15",
    "LAST((A ;[<= 3] B) ALL C WITHIN 6) ; B WITHIN 12",
    "(MAX(A+ ;[<= 3] B WITHIN 8) ALL NXT(B ;[<= 3] C)) ; A WITHIN 15",
    "LAST(PROJECT y (A AS x ; B AS y ; C AS z FILTER x.v = z.v) WITHIN 8) ; B WITHIN 15",
    "MAX(PROJECT y, z (A AS x ; B AS y+ ; C AS z FILTER x.v <= z.v) WITHIN 9) ; A WITHIN 15",
    "PROJECT z (NXT(LAST(A ;[<= 3] B) ; C AS z WITHIN 9)) ; B WITHIN 15",
)
"""Patterns in which the kernel of guards chooses; in those of MOVED events that are not marked move partial matches. In the last ones strategies choose
inside each other, in parts that have events in common, and around others and hidden ones."""


@pytest.mark.parametrize("variant", available())
@pytest.mark.parametrize("selected", ["*", "COUNT(*)", "NXT *", "LAST *", "MAX *"])
def test_the_kernel_chooses_inside_as_the_definition(variant: str, selected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short streams; and longer ones in pieces, with restarts, from the smallest arrays; in the order of the events that end matches."""
    drawn = Enough(share(CASES, variant), itertools.count(), given=5, chosen=5, moved=5, defined=5)
    for number in drawn:
        rng, texts = random.Random(f"{SEED} inside {variant} {selected} {number}"), Texts()
        short = rng.random() < 0.5
        rows = [
            {"type": rng.choice("AABBC"), "ts": 0, "v": rng.choice((None, *range(6)))} for _ in range(rng.randrange(5, 17 if short else 40))
        ]
        for before, row in itertools.pairwise(rows):
            row["ts"] = before["ts"] + rng.choice((0, 1, 1, 2))
        table = pa.Table.from_pylist(rows)
        query = cepheid.query(f"SELECT {selected} WHERE {rng.choice(KERNEL)}")
        known = query.compiled(query.schema(table.schema))
        (reader,) = known.readers(texts)
        words = np.ascontiguousarray(reader.read(table, positions=lambda table=table: np.arange(len(table))))
        monkeypatch.setattr(guarded_run, "GuardSizes", GuardSizes)
        wanted = given_by(known.evaluation(texts=texts), words, rows, 0, len(rows))
        if short:
            drawn.seen["defined"] += are_defined(query, table, len(wanted))
        if rng.random() < 0.5:
            monkeypatch.setattr(guarded_run, "GuardSizes", lambda: TINY)
        evaluation, found, slot = known.evaluation(texts=texts, variant=variant), [], rng.random() < 0.7
        assert isinstance(run_of(evaluation), PartsRun)
        drawn.seen["moved"] += run_of(evaluation).tables.passes and len(wanted)
        cuts = sorted(rng.choices(range(len(rows) + 1), k=rng.choice((0, 1, 3))))
        for start, stop in itertools.pairwise([0, *cuts, len(rows)]):
            found += given_by(evaluation, words, rows, start, stop, slot=slot)
            if slot and rng.random() < 0.5:
                sections, evaluation = evaluation.dump(), known.evaluation(texts=texts, variant=variant)
                evaluation.load(sections)
        assert sorted(found) == sorted(wanted), query
        assert [match[0][-1] for match in found] == [match[0][-1] for match in wanted]
        assert evaluation.memory_usage() > 0
        drawn.seen["given"] += len(wanted)
        drawn.seen["chosen"] += sum(run.matches for run in run_of(evaluation)._runs)
        evaluation.release(np.zeros(1, np.int64))
        assert sorted(given_by(evaluation, words, rows, 0, len(rows), slot=True)) == sorted(wanted)


def are_defined(query: Query, table: pa.Table, count: int) -> bool:
    """Whether there are matches, which are so many, and those of the definition; False where it has too many."""
    found = query.run(table)
    assert len(found) == count
    try:
        case = Case(SEED, 0, query, table, *answers(query, table))
    except LimitError:
        return False
    differential.check(case, differential.rows_of(found))
    return count > 0


def run_of(evaluation: Any) -> Any:
    """The run of the kernel; matches that are found in several ways are counted one by one."""
    found = evaluation.evaluation
    return found.evaluation if isinstance(found, ChosenCount) else found


def given_by(evaluation: Any, words: Any, rows: list[dict[str, Any]], start: int, stop: int, *, slot: bool = False) -> list[Any]:
    """What a piece of a stream gives: positions and labels of matches, or their numbers."""
    times = np.array([row["ts"] for row in rows[start:stop]], np.int64)
    slots = np.zeros(1, np.int32) if slot else np.full(1, -1, np.int32)
    evaluation.ensure_slots(1)
    chunks = list(evaluation.chunks(Events(words[start:stop], times, slots=slots, continued=not slot and start > 0)))
    found = []
    for chunk in chunks:
        for number, (first, last) in enumerate(itertools.pairwise(chunk.offsets.tolist())):
            counted = () if chunk.counts is None else tuple(chunk.counts[number].tolist())
            found.append((chunk.positions[first:last].tolist(), chunk.labels[first:last].tolist(), counted))
    return found


INSIDE = (
    "LAST(NXT(A ;[<= 5] B) ; C) ; B",
    "NXT(A ; LAST(B ;[<= 4] C)) ; A",
    "MAX(LAST(A+ ;[<= 5] B) ;[<= 9] C) ; B",
    "C ; MAX(NXT(A+ ;[<= 5] B) ;[<= 5] C) ; A",
    "NXT(LAST(MAX(A{1,} ;[<= 4] B) ; C) ;[<= 9] B)",
    "LAST(A ; NXT(B ; MAX(C+ ;[<= 4] A)))",
    "(LAST(NXT(A ;[<= 5] B) ; C))+ ; B",
    "(C AS z ; LAST(NXT(A AS x ; B AS y FILTER x.v <= y.v) ; C)) FILTER z.v <= x.v",
    "LAST(A :[<= 5] NXT(B ;[<= 2] C)) ; B",
    "STRICT(LAST(NXT(A ;[<= 5] B) ; C))",
    "B UNLESS LAST(NXT(A ;[<= 5] B) ; C)",
    "B ; NOT LAST(NXT(A ;[<= 5] B) ; C) ; C",
    "(NXT(A ;[<= 5] B) ; C) AND (A ; LAST(B ;[<= 5] C))",
    "LAST(A ;[<= 5] B) ALL NXT(B ;[<= 5] C)",
    "MAX((LAST(A+ ;[<= 5] B)) ALL C) ; B",
    "(LAST(A ; NOT C ; B) ; C) AND (NXT(A ;[<= 9] B ; C))",
    "NXT(PROJECT x (A AS x ;[<= 5] B ; C)) ; B",
    "MAX(PROJECT x, y (A AS x+ ;[<= 5] C ; B AS y)) ; C",
    "LAST(PROJECT z (A AS x ; C AS z ; B AS y FILTER x.v = y.v)) ; C",
    "LAST(PROJECT y (NXT(A ;[<= 5] B) ; C AS y)) ; B",
    "(A THEN (B ; NXT(C ;[<= 5] B))) ; C",
    "LAST(A THEN (B ;[<= 5] C)) ; B",
    "A THEN LAST(B ;[<= 5] C) ; B",
    "A THEN (B THEN (C ;[<= 4] B)) ; A",
    "(A THEN (B ;[< 4] B)) THEN (C ; NXT(B ;[<= 4] C))",
    "A THEN NXT(LAST(B ;[<= 5] C) ; B)",
    "(LAST(A ;[<= 5] B) THEN (B ;[<= 4] C)) ; A",
    "(LAST(A ;[<= 9] B ; C) ; B) AND (A THEN (B ;[<= 9] C ; B))",
    "((A THEN (B ;[<= 9] C)) ; B) AND (A THEN (B ;[<= 7] C ; B))",
    "(NXT(A ;[<= 9] B) ; C ; B) AND (A THEN (B ;[<= 9] C ; B)) AND (A ; MAX(B ;[<= 9] C) ; B)",
    "NXT((A THEN (B ;[<= 4] C)) ALL B) ; A",
    "(A THEN (B ;[<= 5] C)) ALL LAST(A ;[<= 5] B)",
    "A THEN ((LAST(B ;[<= 5] C)) ALL B)",
    "A THEN (PROJECT b (B AS b ; NXT(C ;[<= 5] B)))",
    *(
        AROUND_MADE := (
            "A ; NOT (P ALL LAST(A ;[<= 5] B)) ; C",
            "C UNLESS (P ALL NXT(LAST(A ;[<= 5] B) ; C))",
            "(PROJECT z (P ; LAST(A ;[<= 5] B) ; C AS z)) ALL A",
            "LAST((P ALL A) ;[<= 9] B) ALL NXT(P ; C)",
            "A ; NOT ((A THEN (B ;[<= 5] C)) ALL P) ; C",
        )
    ),
)
"""What strategies and THEN choose inside each other, in parts that have events in common, between other events, and among hidden ones; in the last ones
around events that matches have made, any of which may say where a match begins."""

TAILS = ("", " WITHIN 12", " WITHIN 9 EVENTS", " PARTITION BY k", " PARTITION BY k CONSUME BY PARTITION", " CONSUME BY ANY")


def case_inside(number: int) -> Case | None:
    """A random case, dense in equal times; None where it has too many matches for the definition."""
    rng = random.Random(f"{SEED} inside each other {number}")
    rows = [
        {"type": rng.choice("AABBBCC"), "ts": 0, "v": rng.choice((None, *range(4))), "k": rng.choice("xy")}
        for _ in range(rng.randrange(5, 17))
    ]
    for before, row in itertools.pairwise(rows):
        row["ts"] = before["ts"] + rng.choice((0, 0, 1, 1, 2))
    table, pattern = pa.Table.from_pylist(rows), rng.choice(INSIDE)
    model = f" TIME MODEL {rng.choice(('ACTIVE_OFFICE', 'COMPLETE_HISTORY'))}" if "THEN" in pattern else ""
    selected = rng.choice(("*", "*", "COUNT(*)", "NXT *", "LAST *", "MAX *", "STRICT *"))
    tail = rng.choice(TAILS) if pattern not in AROUND_MADE else " WITHIN 12"
    made = "EVENT P(v) AS (SELECT y.v AS v WHERE A AS x ; B AS y WITHIN 4) " if pattern in AROUND_MADE else ""
    query = cepheid.query(f"{made}SELECT {selected} WHERE {pattern}{tail}{model}")
    try:
        return Case(SEED, number, query, table, *answers(query, table))
    except LimitError:
        return None


@pytest.mark.parametrize("variant", available())
def test_what_is_chosen_inside_each_other_is_that_of_the_definition(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the events come, with snapshots and restores; from the smallest arrays, too."""
    drawn = Enough(share(CASES, variant), itertools.count(), matched=5)
    for number in drawn:
        case = case_inside(number)
        if case is None:
            continue
        monkeypatch.setattr(guarded_run, "GuardSizes", (lambda: TINY) if number % 3 == 0 else GuardSizes)
        for come in ways_of(case, most=3).values():
            given = come(case, variant)
            differential.check(case, given)
        drawn.seen["matched"] += bool(given)


def test_queries_that_differ_in_constants_have_parts_of_their_own() -> None:
    texts = {str(most): f"SELECT * WHERE LAST(A AS x ;[<= 5] B FILTER x.v < {most}) ; C" for most in (2, 3, 4)}
    together = cepheid.queries(texts).run(events(STREAM))
    for name, text in texts.items():
        alone = cepheid.query(text).run(events(STREAM))
        assert [match.variables for match in together[name]] == [match.variables for match in alone]
        assert len(alone) > 0
