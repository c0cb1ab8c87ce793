"""`why_not` on examples made by hand: each kind of reason, limits, and bad input."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import InputError, LimitError, NotSupportedError
from cepheid.language import parse
from cepheid.reasons import question, relaxed_run
from cepheid.reasons.minimal_sets import minimal_sets
from cepheid.reasons.relaxations import KINDS, relaxations
from cepheid.testing import events

CASES: dict[str, tuple[str, str, Any, str, str]] = {
    "condition": (
        "SELECT * WHERE A AS x ; B FILTER x.v > 1 AND x.w < 9",
        "A1(v=1,w=1) B2",
        [0, 1],
        "x.v > 1",
        "x.v = 1 is not > 1: row 0 (A at 1)",
    ),
    "condition on one of several attributes": (
        "SELECT * WHERE A AS x FILTER x[v > 1 AND w < 9]",
        "A1(v=3,w=10)",
        0,
        "x[w < 9]",
        "x.w = 10 is not < 9: row 0 (A at 1)",
    ),
    "condition that is NULL": (
        "SELECT * WHERE A FILTER A[v > 1]",
        "A1(v=null) A2(v=5)",
        0,
        "A[v > 1]",
        "A.v is NULL, which is not > 1: row 0 (A at 1)",
    ),
    "condition over two events": (
        "SELECT * WHERE A AS x ; B AS y FILTER x.v = y.v",
        "A1(v=1) B2(v=2)",
        {"x": 0, "y": [1]},
        "x.v = y.v",
        "x.v = 1, y.v = 2: row 0 (A at 1), row 1 (B at 2)",
    ),
    "gap": ("SELECT * WHERE A ;[<= 2] B", "A1 B5", [0, 1], "[<= 2]", "the gap is 4, and <= 2 is asked for: row 0 (A at 1), row 1 (B at 5)"),
    "window": ("SELECT * WHERE A ; B WITHIN 3", "A1 B5", [0, 1], "WITHIN 3", "from row 0 (A at 1) to row 1 (B at 5) it takes 4"),
    "window of events": (
        "SELECT * WHERE A ; B WITHIN 2 EVENTS",
        "A1 C2 B5",
        [0, 2],
        "WITHIN 2 EVENTS",
        "from row 0 (A at 1) to row 2 (B at 5) there are 3 events",
    ),
    "window inside": (
        "SELECT * WHERE ((A ; B) WITHIN 3) ; C",
        "A1 B5 C6",
        [0, 1, 2],
        "WITHIN 3",
        "from row 0 (A at 1) to row 1 (B at 5) it takes 4",
    ),
    "negation": ("SELECT * WHERE A ; NOT R ; B", "R0 A1 R3 B5", [1, 3], "NOT R", "in between: row 2 (R at 3), which matches `R`"),
    "negation by UNLESS": ("SELECT * WHERE A ; B UNLESS R", "A1 R3 B5", [0, 2], "UNLESS R", "within it: row 1 (R at 3), which matches `R`"),
    "negation by NOT FOLLOWED BY": (
        "SELECT * WHERE A NOT FOLLOWED BY R FOR 5",
        "A1 R3 B9",
        [0],
        "NOT FOLLOWED BY R FOR 5",
        "behind it: row 1 (R at 3), which matches `R`",
    ),
    "negation, not yet decided": (
        "SELECT * WHERE A NOT FOLLOWED BY R FOR 5",
        "A1 B3",
        [0],
        "NOT FOLLOWED BY R FOR 5",
        "it is not decided yet: no `R` follows, but the time is not over (until=..)",
    ),
    "negation in a partition": (
        "SELECT * WHERE A ; NOT R ; B PARTITION BY k",
        "A1(k=1) R2(k=2) R3(k=1) B5(k=1)",
        [0, 3],
        "NOT R",
        "in between: row 2 (R at 3), which matches `R`",
    ),
    "contiguity": ("SELECT * WHERE A : B", "A1 C2 B5", [0, 2], ":", "in between: row 1 (C at 2)"),
    "contiguity of iterations": ("SELECT * WHERE (A ; B) :+", "A1 B2 X3 A4 B5", [0, 1, 3, 4], "`(A ; B):+` (the very next event)", ""),
    "contiguity of all": ("SELECT STRICT * WHERE A ; B", "A1 C2 B5", [0, 2], "STRICT", "in between, and in no variable: row 1 (C at 2)"),
    "next": ("SELECT * WHERE A THEN B", "A1 B2 B5", [0, 2], "THEN", "behind row 0 (A at 1) the next is row 1 (B at 2)"),
    "next at one time": (
        "SELECT * WHERE A THEN (B ; C FILTER B.v = C.v) TIME MODEL ACTIVE_OFFICE",
        "A1 B2(v=3) B3(v=1) C5(v=1) C5(v=3)",
        [0, 2, 3],
        "THEN",
        "behind row 0 (A at 1) the next is row 1 (B at 2) to row 4 (C at 5)",
    ),
    "next of several events": (
        "SELECT * WHERE A THEN (B ; C) TIME MODEL SNOOPIB",
        "A1 B2 C3 B4 C5",
        [0, 3, 4],
        "THEN",
        "behind row 0 (A at 1) the next is row 1 (B at 2) to row 2 (C at 3)",
    ),
    "projection": ("SELECT * WHERE PROJECT x (A AS x ; B ; C)", "A1 B2 C5", [0, 1], "PROJECT x", ""),
    "having by names": (
        "SELECT count(x) AS n, max(x.v), min(x.v) AS x WHERE A+ AS x HAVING n > 2 AND (abs(max_x_v) > 0 OR count(x) > 5)",
        "A1(v=1) A2(v=1)",
        [0, 1],
        "HAVING n > 2",
        "",
    ),
    "having": ("SELECT * WHERE A+ AS x HAVING count(x) > 2", "A1 A2", [0, 1], "HAVING count(x) > 2", ""),
    "strategy": (
        "SELECT NEXT * WHERE A AS x ; B",
        "A1 A2 B5",
        [1, 2],
        "the strategy `NEXT`",
        "of the matches that end with row 2 (B at 5), NEXT chooses rows 0, 2",
    ),
    "strategy LAST": (
        "SELECT LAST * WHERE A ; B",
        "A1 A2 B5",
        [0, 2],
        "LAST",
        "of the matches that end with row 2 (B at 5), LAST chooses rows 1, 2",
    ),
    "strategy ANY": (
        "SELECT ANY * WHERE A ; B",
        "A1 A2 B5",
        [0, 2],
        "ANY",
        "of the matches that end with row 2 (B at 5), ANY chooses rows 1, 2",
    ),
    "strategy RESTRICTED": (
        "SELECT RESTRICTED * WHERE A ; B",
        "A1 A2 B5",
        [0, 2],
        "RESTRICTED",
        "of the matches that end with row 2 (B at 5), RESTRICTED chooses rows 1, 2",
    ),
    "strategy inside": ("SELECT * WHERE NEXT(A ; B) ; C", "A1 A2 B5 C6", [1, 2, 3], "NXT", ""),
    "limit": (
        "SELECT * WHERE A ; B LIMIT 1",
        "A1 A2 B5",
        [0, 2],
        "LIMIT 1",
        "of the matches that end with row 2 (B at 5), LIMIT 1 chooses rows 1, 2",
    ),
    "consumption": (
        "SELECT * WHERE A ; B CONSUME BY ANY",
        "A1 B2 B5",
        [0, 2],
        "CONSUME BY ANY",
        "a match before it has consumed row 0 (A at 1): rows 0, 1",
    ),
    "partition": (
        "SELECT * WHERE A ; B PARTITION BY k",
        "A1(k=1) B2(k=2)",
        [0, 1],
        "PARTITION BY k",
        "k = 1 in row 0 (A at 1); k = 2 in row 1 (B at 2)",
    ),
    "partition without a key": (
        "SELECT * WHERE A ; B PARTITION BY k",
        "A1(k=1) B2(k=null)",
        [0, 1],
        "PARTITION BY k",
        "k = 1 in row 0 (A at 1); k = NULL in row 1 (B at 2)",
    ),
    "event": ("SELECT * WHERE A ; B ; C", "A1 C2", [0, 1], "the missing `B`", ""),
    "event with a condition": (
        "SELECT * WHERE A AS x ; B AS y ; C FILTER x.v = y.v",
        "A1(v=1) C2(v=1)",
        [0, 1],
        "the missing `B AS y`",
        "",
    ),
    "count": ("SELECT * WHERE A{3} ; C", "A1 A2 C3", [0, 1, 2], "the count of `A{3}`", ""),
    "order": ("SELECT * WHERE A ; B", "B1 A2", [0, 1], "the order of `A ; B`", ""),
}
"""By kind (the first word): the query, the events, what is asked for, what the reason's text has in it, and the detail."""


@pytest.mark.parametrize("case", CASES)
def test_reason(case: str) -> None:
    query, stream, positions, text, detail = CASES[case]
    answer = cepheid.why_not(query, events(stream), positions)
    ((reason,),) = answer.reasons
    assert reason.kind == case.split(maxsplit=1)[0].rstrip(",")
    assert text in reason.text
    assert reason.detail == detail
    assert not answer.matched
    assert not answer.misfits
    assert not answer.notes
    (way,) = answer.ways
    assert cepheid.why_not(way.query, events(stream), positions).matched
    assert f"excluded by {reason.text}\n" in str(answer)
    assert 0 <= reason.span.start < reason.span.end <= len(query)


def test_every_kind_of_reason_has_a_case() -> None:
    assert {case.split(maxsplit=1)[0].rstrip(",") for case in CASES} == set(KINDS)


def test_place_in_the_query() -> None:
    for query, written in [
        ("SELECT * WHERE A AS x ; B FILTER x.v > 1", "x.v > 1"),
        ("SELECT * WHERE A ;[<= 2] B", "[<= 2]"),
        ("SELECT * WHERE A : B", ":"),
        ("SELECT * WHERE A THEN B", "THEN"),
        ("SELECT NEXT * WHERE A", "NEXT"),
        ("SELECT * WHERE A LIMIT 3", "LIMIT 3"),
        ("SELECT * WHERE A ; NOT C ; B", "C"),
        ("SELECT * WHERE A PARTITION BY k", "k"),
        ("SELECT * WHERE A ; B WITHIN 5", "5"),
    ]:
        first = next(each for each in relaxations(parse(query)) if each.kind not in {"event", "order"})
        assert written.endswith(query[first.span.start : first.span.end]) or query[first.span.start : first.span.end].endswith(written), (
            query
        )


# ------------------------------------------------------------------------------------------------------------------------- answers


def test_a_match_is_shown() -> None:
    answer = cepheid.why_not("SELECT * WHERE A+ AS x ; B", events("A1 A2 B3"), [0, 2])
    assert answer.matched
    assert answer.match == cepheid.EventsFound((0, 2), {"A": (0,), "x": (0,), "B": (2,)})
    assert str(answer) == "there is a match with rows 0, 2\n  A = 0; x = 0; B = 2"
    assert answer.reasons == ()


def test_reasons_of_several_constructs_are_together() -> None:
    answer = cepheid.why_not("SELECT * WHERE A ; NOT C ; B FILTER A.v > 1 WITHIN 2", events("A1(v=0) C2 B5"), [0, 2])
    assert [{reason.kind for reason in reasons} for reasons in answer.reasons] == [{"negation", "condition", "window"}]
    assert ", together" in str(answer)


def test_all_smallest_sets_are_there() -> None:
    """With B at 2 it is the condition, with that at 9 the window."""
    answer = cepheid.why_not("SELECT * WHERE A ; B AS y FILTER y.v > 1 WITHIN 3", events("A1(v=0) B2(v=0) B9(v=5)"), [0])
    assert [[reason.kind for reason in reasons] for reasons in answer.reasons] == [["condition"], ["window"]]
    assert [way.match.rows for way in answer.ways] == [(0, 1), (0, 2)]


def test_of_several_matches_the_nearest_is_shown() -> None:
    """Nearest in time, at equal times in rows; with no row asked for, the earliest."""
    query, stream = "SELECT * WHERE A ; B ; C FILTER C.v > 1", events("A1 A7 B8 C9(v=0) C15(v=0) C15(v=0)")
    assert cepheid.why_not(query, stream, [2]).ways[0].match.rows == (1, 2, 3)
    assert cepheid.why_not(query, stream, [0]).ways[0].match.rows == (0, 2, 3)
    assert cepheid.why_not(query, stream, [5]).ways[0].match.rows == (1, 2, 5)
    assert cepheid.why_not("SELECT * WHERE A ; C", stream, [4]).match == cepheid.EventsFound((1, 4), {"A": (1,), "C": (4,)})
    assert cepheid.why_not(query, stream, [], span=(0, 5)).ways[0].match.rows == (0, 2, 3)
    several = events("A5 B5 A5 B5 A5 B9(v=2)")
    assert cepheid.why_not("SELECT * WHERE A ; B AS y FILTER y.v > 1 WITHIN 0", several, [3]).ways[0].match.rows == (2, 3)


def test_a_strategy_and_a_condition() -> None:
    answer = cepheid.why_not("SELECT NEXT * WHERE A AS x ; B FILTER x.v > 1", events("A1(v=5) A2(v=0) B3"), [1, 2])
    assert [{reason.kind for reason in reasons} for reasons in answer.reasons] == [{"strategy", "condition"}]


def test_a_strategy_is_no_reason_where_it_would_choose_the_match() -> None:
    answer = cepheid.why_not("SELECT LAST * WHERE A AS x ; B FILTER x.v > 1", events("A1(v=5) A2(v=0) B3"), [1, 2])
    assert [{reason.kind for reason in reasons} for reasons in answer.reasons] == [{"condition"}]


def test_only() -> None:
    query, stream = "SELECT NEXT * WHERE A+ ; B", events("A1 A2 B3")
    assert cepheid.why_not(query, stream, [0, 2]).matched
    answer = cepheid.why_not(query, stream, [0, 2], only=True)
    assert [[reason.kind for reason in reasons] for reasons in answer.reasons] == [["strategy"]]
    assert "rows 0, 2 and no others" in str(answer)


def test_only_does_not_hide_what_is_next() -> None:
    answer = cepheid.why_not("SELECT * WHERE A THEN B", events("A1 B2 B5"), [0, 2], only=True)
    assert [[reason.kind for reason in reasons] for reasons in answer.reasons] == [["next"]]


def test_only_does_not_count_what_project_hides() -> None:
    assert cepheid.why_not("SELECT * WHERE PROJECT x, A (A ; B ; C AS x)", events("A1 B2 C3"), [0, 2], only=True).matched
    answer = cepheid.why_not(
        "SELECT * WHERE A THEN (PROJECT x (B ; D ; C AS x)) FILTER x.v > 5", events("A1 B2 D3 C4(v=1)"), [0, 3], only=True
    )
    assert [[reason.kind for reason in reasons] for reasons in answer.reasons] == [["condition"]]


def test_project_below_and_hides_what_the_sides_differ_in() -> None:
    query = "SELECT * WHERE (PROJECT x (A AS x ; B WITHIN 1)) AND (PROJECT x (A AS x ; B))"
    answer = cepheid.why_not(query, events("A1 B3"), [0])
    assert [[reason.kind for reason in reasons] for reasons in answer.reasons] == [["window"]]


def test_what_is_next_under_point_may_begin_earlier() -> None:
    query, stream = "SELECT * WHERE A THEN (B THEN C) WITHIN 2 TIME MODEL POINT", events("B1 A2 C5")
    answer = cepheid.why_not(query, stream, [0, 1, 2])
    assert [[reason.kind for reason in reasons] for reasons in answer.reasons] == [["window"]]
    later = cepheid.why_not("SELECT * WHERE A THEN (B THEN C) TIME MODEL POINT", events("A1 B2 C3 B4 C5"), [0, 3, 4])
    assert [[reason.kind for reason in reasons] for reasons in later.reasons] == [["next"]]
    assert later.ways[0].query == "SELECT * WHERE A ALL B THEN C TIME MODEL POINT"


def test_span() -> None:
    query, stream = "SELECT * WHERE A ; B FILTER B.v > 1", events("A1 B2(v=0) A3 B4(v=5)")
    assert not cepheid.why_not(query, stream, [], span=(0, 1)).matched
    assert cepheid.why_not(query, stream, [], span=(0, 3)).matched
    assert cepheid.why_not(query, stream, (), span=(0, 1)).ways[0].match.rows == (0, 1)


def test_variables() -> None:
    query, stream = "SELECT * WHERE ANY AS x ; ANY AS y FILTER x.v < y.v", events("A1(v=1) A2(v=2)")
    assert cepheid.why_not(query, stream, {"x": 0, "y": 1}).matched
    answer = cepheid.why_not(query, stream, {"x": 1, None: [0]})
    assert not answer.matched
    assert [sorted(reason.kind for reason in reasons) for reasons in answer.reasons] == [["condition", "order"]]


def test_what_fits_no_variable() -> None:
    answer = cepheid.why_not("SELECT * WHERE A ; B", events("A1 X2"), [0, 1])
    assert answer.ways == ()
    assert answer.misfits == ("row 1 (X at 2) fits no variable: the pattern has events of type `A`, `B`",)
    answer = cepheid.why_not("SELECT * WHERE A AS x ; B AS y", events("A1 B2"), {"x": 1})
    assert answer.misfits == ("row 1 (B at 2) cannot be in `x`, whatever is taken out of the query",)
    answer = cepheid.why_not("SELECT * WHERE A OR B", events("A1 B2"), [0, 1])
    assert "nothing helps" in answer.misfits[0]


def test_times_in_words() -> None:
    start = dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC)
    rows = [{"type": "A", "ts": start}, {"type": "B", "ts": start + dt.timedelta(seconds=72)}]
    ((reason,),) = cepheid.why_not("SELECT * WHERE A ;[<= 1m] B", rows, [0, 1]).reasons
    assert reason.detail.startswith("the gap is 1 min 12 s, and <= 1m is asked for: row 0 (A at 2026-01-01 10:00:00")


def test_rows_of_an_unsorted_input() -> None:
    stream = [{"type": "B", "ts": 5, "v": 0}, {"type": "A", "ts": 1, "v": 1}]
    assert cepheid.why_not("SELECT * WHERE A ; B", stream, {"A": 1, "B": 0}, sort=True).matched
    answer = cepheid.why_not("SELECT * WHERE A ; B FILTER A.v > 1", stream, [0, 1], sort=True)
    assert answer.ways[0].match.variables == {"A": (1,), "B": (0,)}


def test_parameters() -> None:
    query = cepheid.query("SELECT * WHERE A AS x FILTER x.v > :limit WITHIN :w", args={"limit": 3, "w": 5})
    ((reason,),) = cepheid.why_not(query, events("A1(v=2)"), 0).reasons
    assert reason.text == "the condition `x.v > :limit`"
    assert reason.detail == "x.v = 2 is not > :limit: row 0 (A at 1)"
    assert cepheid.why_not(query, events("A1(v=2)"), 0, args={"limit": 1}).matched


def test_streams_and_notebooks() -> None:
    streams = {"a": [{"ts": 1, "v": 1}], "b": [{"ts": 2, "v": 2}]}
    answer = cepheid.why_not("SELECT * FROM a, b WHERE a ; b FILTER a.v > b.v", streams, [0, 1])
    assert [[reason.kind for reason in reasons] for reasons in answer.reasons] == [["condition"]]
    assert "a.v &gt; b.v" in answer._repr_html_()


def test_engines_agree() -> None:
    answers = [cepheid.why_not("SELECT * WHERE A ; NOT C ; B", events("A1 C2 B5"), [0, 2], engine=engine) for engine in (None, "reference")]
    assert answers[0] == answers[1]


# -------------------------------------------------------------------------------------------------------------------------- limits


def test_too_many_matches_are_sought_among_fewer_events() -> None:
    stream = events(" ".join(f"A{time}(v=1)" for time in range(40)) + " B50(v=1)")
    answer = cepheid.why_not("SELECT * WHERE A+ ; B FILTER B[v > 1]", stream, [3, 40])
    assert [[reason.kind for reason in reasons] for reasons in answer.reasons] == [["condition"]]
    tried = "only the 4 nearest of 39 other events were tried as further events of a match (the limit OTHERS)"
    assert answer.notes == (f"{tried}: with one farther away, fewer reasons may be enough",)
    with pytest.raises(LimitError, match="MAX_BYTES"):
        cepheid.why_not("SELECT * WHERE A+ ; B FILTER B[v > 1]", stream, [], span=(0, 40))


def test_named_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT * WHERE A ; B AS y FILTER y.v > 1 WITHIN 3"
    stream = events("A1(v=0) B2(v=0) B9(v=5)")
    monkeypatch.setattr(question, "MAX_WAYS", 1)
    assert cepheid.why_not(query, stream, 0).notes == ("there are more than 1 sets of reasons (MAX_WAYS)",)
    monkeypatch.setattr(relaxed_run, "MAX_RUNS", 4)
    assert "(MAX_RUNS)" in cepheid.why_not(query, stream, 0).notes[0]
    monkeypatch.setattr(question, "MAX_ROWS", 2)
    with pytest.raises(LimitError, match="MAX_ROWS"):
        cepheid.why_not("SELECT * WHERE A ; B AS y FILTER y.v > 1", stream, 0)


def test_minimal_sets_are_all_of_them() -> None:
    wanted = [frozenset("ab"), frozenset("bc"), frozenset("d"), frozenset("ace")]
    found = list(minimal_sets("abcdef", lambda given: any(own <= given for own in wanted)))
    assert sorted(map(sorted, found)) == sorted(map(sorted, wanted))
    assert list(minimal_sets("ab", lambda _: False)) == []
    assert list(minimal_sets("ab", lambda _: True)) == [frozenset()]


# ----------------------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("positions", "options", "message"),
    [
        ([7], {}, "there is no row 7"),
        ([-1], {}, "there is no row -1"),
        ([], {}, "positions has no position"),
        ({}, {}, "positions has no position"),
        ({"z": 1}, {}, "the pattern has no variable 'z'"),
        ("1", {}, "'1' is not the position of an event"),
        ([1.5], {}, r"1.5 is not the position of an event"),
        (True, {}, "True is not the position of an event"),
        (None, {}, "None is not the position of an event"),
        ([0], {"span": (1, 1)}, "row 0 is outside the span"),
        ([], {"span": (1, 0)}, "ends before it begins"),
        ([], {"span": 3}, "is not a first and a last row"),
        ([], {"span": (0, 1), "only": True}, "there are none"),
        ([0], {"engine": "fast"}, "engine='fast' is not known"),
    ],
)
def test_bad_positions(positions: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        cepheid.why_not("SELECT * WHERE A ; B", events("A1 B2"), positions, **options)


def test_bad_queries_and_events() -> None:
    with pytest.raises(cepheid.QuerySyntaxError):
        cepheid.why_not("SELECT", events("A1"), 0)
    with pytest.raises(cepheid.BindError, match="unknown attribute"):
        cepheid.why_not("SELECT * WHERE A FILTER A.nothing > 1", events("A1"), 0)
    with pytest.raises(InputError, match="no row 0"):
        cepheid.why_not("SELECT * WHERE A", pa.table({"type": pa.array([], pa.string())}), 0)
    with pytest.raises(NotSupportedError, match="EVENT"):
        cepheid.why_not("EVENT P(v) AS (SELECT max(A.v) AS v WHERE A) SELECT * WHERE P", events("A1(v=1)"), 0)


def test_details_name_the_rows_of_the_input():
    table = pa.table({"type": ["B", "A", "A", "A"], "ts": [9, 1, 2, 3], "v": [0, 5, 7, 0]})
    said = cepheid.why_not("SELECT NEXT * WHERE A AS x ; B AS y FILTER x.v > 1", table, [3, 0], sort=True).text()
    assert "of the matches that end with row 0 (B at 9), NEXT chooses rows 0, 1" in said
    assert "x.v = 0 is not > 1: row 3 (A at 3)" in said
