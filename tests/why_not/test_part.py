"""The part of a long table that a question is about: the answer over it is the answer over the whole table."""

from __future__ import annotations

import dataclasses
import random

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import LimitError
from cepheid.reasons import WhyNot, question, why_not
from cepheid.testing import events, generators

FRAGMENTS = {
    name: dataclasses.replace(getattr(generators, name), items=3, depth=2)
    for name in (
        "ENGINE",
        "GUARDED",
        "NEGATING",
        "CHOOSING",
        "ABSENT",
        "JUDGING",
        "SUCCEEDING",
        "STARTING",
        "LAGGED",
        "POSITIONAL",
        "RESTRICTING",
    )
}


def of_part(answer: WhyNot) -> bool:
    """Whether an answer says that events farther away may matter."""
    return any("MAX_ROWS" in note for note in answer.notes)


def asked_of_both(
    monkeypatch: pytest.MonkeyPatch, limit: int, query: str, table: pa.Table, *arguments: object, **options: object
) -> tuple[WhyNot, WhyNot]:
    """The answers over the whole table, and over a part of at most `limit` events."""
    with monkeypatch.context() as changed:
        changed.setattr(question, "MAX_ROWS", len(table))
        whole = why_not(query, table, *arguments, **options)  # type: ignore[arg-type]
        changed.setattr(question, "MAX_ROWS", limit)
        return whole, why_not(query, table, *arguments, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_a_part_has_the_answer_of_the_whole(fragment: str, cases: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    same = 0
    least = max(4, cases // 10)
    for case in range(30 * least):
        if case >= 2 * least and same >= 3:
            break
        source = random.Random(f"part {fragment} {seed} {case}")
        text = generators.random_query(source, fragment=FRAGMENTS[fragment])
        rows = generators.random_stream(source, most=12)
        limit = source.randint(1, 8)
        if len(rows) <= limit:
            continue
        table = generators.table(rows)
        picks = source.sample(range(len(rows)), min(len(rows), source.choice([1, 1, 2, 2, 3])))
        span = source.choice([None, None, None, (min(picks), max(picks))])
        options = {"only": source.random() < 0.3, "span": span, "null_keys": source.choice(["drop", "group"])}
        place = f"CEPHEID_SEED={seed} fragment={fragment} case={case}: {text} {sorted(picks)} limit={limit} {options}"
        try:
            whole, part = asked_of_both(monkeypatch, limit, text, table, picks, **options)
            assert part.match == whole.match
            if not of_part(part) and not whole.notes:
                same += 1
                assert part == whole
        except LimitError:
            continue
        except Exception as error:
            error.add_note(place)
            raise
    assert same


def long_table(count: int = 300) -> pa.Table:
    """A, B, C, A, .. one a step, of three keys in turn that change with each round."""
    rows = range(count)
    return pa.table(
        {
            "type": ["ABC"[row % 3] for row in rows],
            "ts": list(rows),
            "k": [row // 3 % 3 for row in rows],
            "v": [row % 7 for row in rows],
        }
    )


@pytest.mark.parametrize(
    ("query", "asked", "options"),
    [
        ("SELECT * WHERE A AS x ; B AS y ; C AS z FILTER x.v > y.v WITHIN 5", [150, 151], {}),
        ("SELECT * WHERE A AS x ;[<= 3] B AS y ;[<= 3] C AS z FILTER x.v > y.v", [150, 151], {}),
        ("SELECT * WHERE A AS x : B AS y : C AS z FILTER x.v > y.v", [150, 151], {}),
        ("SELECT NEXT * WHERE A AS x ; B AS y WITHIN 10", [153, 154], {}),
        ("SELECT * WHERE A AS x ; B AS y FILTER x.v > y.v", [150, 151], {}),
        ("SELECT * WHERE A AS x ; B+ ; C AS z FILTER x.v > 5", [150, 154, 155], {"only": True}),
        ("SELECT * WHERE A AS x ; B+ ; C AS z FILTER x.v > 5", [150], {"span": (150, 158)}),
        ("SELECT * WHERE A AS x NOT FOLLOWED BY B FOR 20", [150], {}),
        ("SELECT * WHERE A THEN C WITHIN 9 TIME MODEL ACTIVE_OFFICE", [150, 155], {}),
    ],
)
def test_what_bounds_a_part(query: str, asked: list[int], options: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    whole, part = asked_of_both(monkeypatch, 40, query, long_table(), asked, **options)
    assert (part.match, part.ways, part.misfits) == (whole.match, whole.ways, whole.misfits)
    assert part.ways


def test_a_part_of_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a window the other events with the key of the rows can matter, and no others do: the rows of the answer are those of the table."""
    query = "SELECT * WHERE A AS x ; B AS y ; C AS z FILTER x.v > y.v PARTITION BY k"
    whole, part = asked_of_both(monkeypatch, 99, query, long_table(), [150, 151])
    assert part == whole
    assert part.ways[0].match.rows == (150, 151, 152)
    for null_keys, asked in (("drop", [150, 152]), ("group", [151, 153])):
        table = long_table().set_column(2, "k", pa.array([None if row % 2 else 1 for row in range(300)], pa.int64()))
        whole, part = asked_of_both(monkeypatch, 150, query, table, asked, null_keys=null_keys)
        assert (part.match, part.ways) == (whole.match, whole.ways)
    with pytest.raises(LimitError, match="99 events can matter for these rows, more than 98"):
        asked_of_both(monkeypatch, 98, query, long_table(), [150, 151])


def test_the_key_is_kept_where_the_other_keys_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT * WHERE A ; A ; B ; B PARTITION BY k"
    whole, part = asked_of_both(monkeypatch, 102, query, long_table(), {"A": 297, "B": [154]})
    assert {reason.kind for way in whole.ways for reason in way.reasons} & {"partition", "order"}
    assert "partition" not in {reason.kind for way in part.ways for reason in way.reasons}
    assert any(note.startswith("PARTITION BY was not taken out") for note in part.notes)


def test_events_that_are_sorted_first(monkeypatch: pytest.MonkeyPatch) -> None:
    table = long_table()
    upside_down = table.take(pa.array(range(299, -1, -1)))
    query = "SELECT * WHERE A AS x ; B AS y ; C AS z FILTER x.v > y.v WITHIN 5"
    whole, part = asked_of_both(monkeypatch, 40, query, upside_down, [149, 148], sort=True)
    assert part.ways == whole.ways
    assert part.ways[0].match.rows == (147, 148, 149)


def test_what_lies_farther_away_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    table = events("A1(v=1) B2(v=0) " + " ".join(f"X{time}" for time in range(3, 90)) + " B90(v=9)")
    query = "SELECT * WHERE A AS x ; B AS y FILTER y.v > x.v WITHIN 3"
    whole, part = asked_of_both(monkeypatch, 20, query, table, [0])
    assert [[reason.kind for reason in reasons] for reasons in whole.reasons] == [["condition"], ["window"]]
    assert [[reason.kind for reason in reasons] for reasons in part.reasons] == [["condition"]]
    (note,) = part.notes
    assert note.startswith("only the 20 nearest of 90 events were looked at (the limit MAX_ROWS)")


@pytest.mark.parametrize(
    ("query", "asked", "options", "help_"),
    [
        (
            "SELECT * WHERE A ; B ; C",
            [150, 151],
            {},
            ["name a window", "name the key", "why_not(query, table.slice(131, 40), [19, 20])"],
        ),
        ("SELECT * WHERE A ; B ; C WITHIN 90", [150, 151], {}, ["name the key", "table.slice(131, 40)"]),
        ("SELECT * WHERE A ; B ; C PARTITION BY k", [150, 154], {}, ["name a window", "ask for rows with one key (k)", "table.slice"]),
        ("SELECT * WHERE A ; B ; C WITHIN 5 CONSUME BY ANY", [150, 151], {}, ["CONSUME BY depends on all events before", "name the key"]),
        ("SELECT * WHERE A AS x ; B FILTER x.$index > 5 WITHIN 5", [150], {}, ["$index depends on all events before"]),
        ("SELECT * WHERE A ; B", [0, 299], {}, ["those events around the rows"]),
        ("SELECT NEXT * WHERE A ; B", [], {"span": (150, 152)}, ["table.slice(131, 40), [], span=(19, 21))"]),
    ],
)
def test_what_helps_where_too_many_events_can_matter(
    query: str, asked: list[int], options: dict[str, object], help_: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question, "MAX_ROWS", 40)
    with pytest.raises(LimitError, match="MAX_ROWS") as raised:
        cepheid.why_not(query, long_table(), asked, **options)  # type: ignore[arg-type]
    for text in help_:
        assert any(text in line for line in raised.value.help), raised.value.help


def test_the_call_that_an_error_names_has_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question, "MAX_ROWS", 40)
    answer = cepheid.why_not("SELECT * WHERE A ; B ; C", long_table().slice(131, 40), [19, 20])
    assert answer.match is not None


def test_a_strategy_inside_a_pattern_looks_back_farther_than_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    table = events(
        "A75 " + " ".join(f"X{time}" for time in range(76, 100)) + " A100 B101 C102 " + " ".join(f"X{time}" for time in range(103, 160))
    )
    for query, asked in [
        ("SELECT * WHERE NXT(A ; B WITHIN 30) ; C WITHIN 5", [25, 26, 27]),
        ("SELECT * WHERE A THEN (A ; B WITHIN 30) WITHIN 5 TIME MODEL POINT", [25, 26]),
    ]:
        whole, part = asked_of_both(monkeypatch, 40, query, table, asked)
        assert (part.match, part.ways) == (whole.match, whole.ways)
        with pytest.raises(LimitError, match="MAX_ROWS"):
            asked_of_both(monkeypatch, 20, query, table, asked)
