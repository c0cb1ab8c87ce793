"""Several queries at once: what they take, share and refuse; the random queries are in tests/properties/test_queries.py."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
import threading
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.plan import family
from cepheid.engine.plan.family import families
from cepheid.errors import BindError, InputError, InUseError, LimitError, SnapshotError
from cepheid.testing import events as stream

TEXTS = {
    "all": "SELECT * WHERE A AS x ; B AS y",
    "keys": "SELECT * WHERE A AS x ; B AS y FILTER x[v > 2] PARTITION BY k WITHIN 6",
    "other keys": "SELECT * WHERE A AS x ; B AS y FILTER x[v > 3] PARTITION BY s WITHIN 6",
    "derived": "SELECT * WHERE A AS x ; B AS y FILTER x.k = y.k AND x[v > 1]",
    "both": "SELECT * WHERE A AS x ; B AS y FILTER x.k = y.k AND x[v > 1] PARTITION BY s",
    "measures": "SELECT x.v AS first, count(y) AS n WHERE A AS x ; B+ AS y PARTITION BY k",
    "count": "SELECT COUNT(*) WHERE A ; B PARTITION BY k",
    "longest": "SELECT MAX * WHERE A+ ; B PARTITION BY k WITHIN 8",
    "strict": "SELECT STRICT * WHERE A ; B",
    "consume": "SELECT NXT * WHERE A : B+ PARTITION BY k CONSUME BY ANY",
    "absence": "SELECT * WHERE A AS x NOT FOLLOWED BY C FOR 3 PARTITION BY k",
    "window of events": "SELECT * WHERE A ; B WITHIN 4 EVENTS",
    "missing": "SELECT * WHERE A ; Bb",
    "any": "SELECT * WHERE ANY AS x FILTER x[v > 5]",
}
EVENTS = pa.table(
    {
        "type": list("ABCABBCAABACBB"),
        "ts": [1, 2, 2, 5, 5, 6, 8, 8, 9, 9, 12, 13, 13, 14],
        "k": [1, 2, 1, 1, 2, 1, None, 3, 2, 3, 1, 2, 2, 3],
        "s": pa.array(["a", "b", None, "a", "b", "a", "a", "c", "b", "c", "a", "b", "b", "c"]).dictionary_encode(),
        "v": [float(value) for value in range(14)],
    }
)


def of_types(warnings: tuple[str, ...]) -> tuple[str, ...]:
    """Without that about equal times, which only a query that runs alone over a table gives."""
    return tuple(warning for warning in warnings if "the same time" not in warning)


def same(ours, theirs):
    """Whether two results are equal in all that users see."""
    return (
        ours == theirs
        and ours.to_arrow(events=True).equals(theirs.to_arrow(events=True))
        and ours.undecided == theirs.undecided
        and (ours.null_keys, ours.warnings) == (theirs.null_keys, of_types(theirs.warnings))
    )


@pytest.mark.parametrize(
    "options",
    [{}, {"until": 9}, {"until": "end"}, {"null_keys": "group"}, {"order": ["v"]}, {"engine": "python"}, {"engine": "reference"}],
    ids=str,
)
def test_each_query_gives_what_its_own_run_gives(options):
    queries = cepheid.queries(TEXTS)
    if options.get("engine") == "reference":
        queries = cepheid.queries({name: text for name, text in TEXTS.items() if name != "measures"})
    found = queries.run(EVENTS, **options)
    assert list(found) == list(queries)
    assert len(found) == len(queries)
    for name, query in queries.items():
        assert same(found[name], query.run(EVENTS, **options)), name
    assert sorted(found.found) == sorted(name for name in queries if len(found[name]))
    read = queries.run(EVENTS.to_reader(max_chunksize=3), **options)
    for name in queries:
        assert read[name] == found[name]


def test_unsorted_events_and_progress():
    queries = cepheid.queries(TEXTS)
    shuffled = EVENTS.take(pa.array(np.random.default_rng(1).permutation(len(EVENTS))))
    told = []
    found = queries.run(shuffled, sort=True, progress=lambda done, total: told.append((done, total)))
    assert told == [(14, 14)]
    for name, query in queries.items():
        assert same(found[name], query.run(shuffled, sort=True)), name
    with pytest.raises(InputError, match="sort=True"):
        queries.run(shuffled)


def test_streams_by_name():
    queries = cepheid.queries(
        {
            "both": "SELECT * FROM A, B WHERE A AS x ; B AS y FILTER x[v > 1]",
            "same": "SELECT * FROM A, B WHERE A AS x ; B AS y FILTER x[v > 2]",
            "one": "SELECT * FROM B WHERE B AS y FILTER y[v > 3]",
        }
    )
    given = {"A": pa.table({"ts": [1, 4], "v": [2, 3]}), "B": pa.table({"ts": [2, 5], "v": [3, 4]})}
    found = queries.run(given)
    assert {name: len(matches) for name, matches in found.items()} == {"both": 3, "same": 1, "one": 1}
    for name, query in queries.items():
        assert same(found[name], query.run(given)), name
    one_stream = cepheid.queries({"a": "SELECT * FROM S WHERE S AS x FILTER x[v > 2]", "b": "SELECT * FROM S WHERE S AS x FILTER x[v > 3]"})
    table = pa.table({"ts": [1, 2], "v": [3, 4]})
    assert [len(matches) for matches in one_stream.run(table).values()] == [2, 1]


def test_pushed_late_and_restored():
    queries = cepheid.queries(TEXTS)
    rows = EVENTS.append_column("row", pa.array(range(14)))
    disorder = rows.take(pa.array([1, 0, 3, 2, 4, 6, 5, 7, 9, 8, 10, 12, 11, 13]))
    options = {"lateness": 5, "order": "row"}
    together = queries.recognizer(rows.schema, **options)
    alone = {name: query.recognizer(rows.schema, **options) for name, query in queries.items()}
    for start in range(0, 14, 3):
        found = together.push(disorder.slice(start, 3))
        for name, recognizer in alone.items():
            assert found[name] == recognizer.push(disorder.slice(start, 3)), name
        together = queries.recognizer(rows.schema, **options, snapshot=together.snapshot())
    found = together.flush()
    assert {name: found[name] == recognizer.flush() for name, recognizer in alone.items()} == dict.fromkeys(TEXTS, True)
    waiting = together.undecided()
    assert {name: waiting[name] == recognizer.undecided() for name, recognizer in alone.items()} == dict.fromkeys(TEXTS, True)
    found = together.advance_time(30)
    assert {name: found[name] == recognizer.advance_time(30) for name, recognizer in alone.items()} == dict.fromkeys(TEXTS, True)
    assert together.null_keys == {name: recognizer.null_keys for name, recognizer in alone.items()}
    assert together.latest == 30
    assert not len(together.late)
    assert {recognizer.enough_lateness for recognizer in alone.values()} == {together.enough_lateness}
    assert together.memory_usage() > 0


def test_who_is_evaluated_together():
    queries = {f"high {limit}": f"SELECT * WHERE A AS x ; B AS y FILTER x[v > {limit}] AND y[s = 's{limit}']" for limit in range(200)}
    queries |= {"wide": "SELECT * WHERE A AS x ; B AS y FILTER x[v > 3] AND y[s = 'a'] WITHIN 5", "strict": TEXTS["strict"]}
    several = cepheid.queries(queries)
    recognizer = several.recognizer(EVENTS.schema)
    joined, alone = families(recognizer.compiled)
    assert [len(each.names) for each in joined] == [200]
    assert list(alone) == ["strict", "wide"]
    text = str(several.explain(schema=EVENTS.schema))
    assert "202: 200 in 1 family, 2 alone" in text
    assert "of type A: one search for v, 99.8 of 200 queries on average" in text
    assert "of type B: one search for s, 1 of 200 queries on average" in text
    assert "every event matters" in text
    assert "no other query has its shape" in text


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.timestamp("us"), pa.date32(), pa.string(), pa.decimal128(9, 2), pa.bool_()])
@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
def test_constants_of_every_type(kind, operator):
    if kind == pa.bool_() and operator not in {"=", "!="}:
        return  # there is no order of them
    made = {
        pa.timestamp("us"): lambda number: dt.datetime(2024, 1, 1 + number),  # noqa: DTZ001 - a column without a zone
        pa.date32(): lambda number: dt.date(2024, 1, 1 + number),
        pa.string(): "abcdefgh".__getitem__,
        pa.decimal128(9, 2): lambda number: Decimal(number) / 4,
        pa.bool_(): lambda number: bool(number % 2),
    }.get(kind, lambda number: number)
    values = [None if number == 3 else made(number) for number in range(8)]
    events = pa.table({"type": ["A"] * 8, "ts": range(8), "v": pa.array(values, kind)})
    query = cepheid.query(f"SELECT * WHERE A AS x FILTER x[v {operator} :limit]", args={"limit": made(0)})
    queries = cepheid.queries({str(number): query.with_args(limit=made(number)) for number in range(8)})
    found = queries.run(events)
    for name, each in queries.items():
        assert same(found[name], each.run(events)), name
    assert any(map(len, found.values()))


def test_what_they_mean():
    """Those that differ in constants alone are said once."""
    queries = {f"high {limit}": f"SELECT * WHERE A AS x FILTER x[v > {limit}]" for limit in range(3)} | {"wide": "SELECT ANY * WHERE A ; B"}
    text = cepheid.queries(queries).explain("meaning", schema=EVENTS.schema)["meaning"]
    assert text.replace("\n      ", " ").splitlines() == [
        "high 0, and 2 more of its family with other constants",
        "  A match is an A called x where v is more than 0. All matches are kept, also those that share events.",
        "wide",
        "  A match is an A, later a B. Of the matches that end with the same event, one is kept, and it is not said which.",
    ]
    assert [title for title, _ in cepheid.queries(queries).explain(schema=EVENTS.schema).sections[:2]] == ["meaning", "together"]
    with pytest.raises(InputError, match="there is no section 'meanin'"):
        cepheid.queries(queries).explain("meanin", schema=EVENTS.schema)


def test_an_index_that_would_be_too_large_is_done_without(monkeypatch):
    queries = cepheid.queries({str(limit): f"SELECT * WHERE A AS x FILTER x[v > {limit}]" for limit in range(9)})
    before = {name: len(matches) for name, matches in queries.run(EVENTS).items()}
    monkeypatch.setattr(family, "MOST_ENTRIES", 3)
    monkeypatch.setattr(family, "MOST_MEMBERS", 4)
    assert {name: len(matches) for name, matches in queries.run(EVENTS).items()} == before
    assert "of type A: to all 4" in str(queries.explain(schema=EVENTS.schema))


def test_ranges_touch_the_queries_whose_range_has_the_value():
    queries = cepheid.queries({str(low): f"SELECT * WHERE A AS x FILTER x[v >= {low} AND v < {low + 2}]" for low in range(-2, 16)})
    joined, _ = families(queries.recognizer(EVENTS.schema).compiled)
    ((route,),) = (each.routes for each in joined)
    assert len(route.index.queries) < 5 * len(queries)
    for name, matches in queries.run(EVENTS).items():
        assert matches == queries[name].run(EVENTS)


def test_limit_of_memory_is_of_all_together():
    events = pa.table({"type": ["A"] * 300, "ts": range(300), "v": range(300)})
    queries = cepheid.queries({str(limit): f"SELECT * WHERE A AS x ; A AS y FILTER x[v > {limit}]" for limit in range(3)})
    with pytest.raises(LimitError, match="max_bytes"):
        queries.run(events, max_bytes=1_000_000)
    recognizer = queries.recognizer(events.schema, max_bytes=1_000_000)
    with pytest.raises(LimitError, match="max_bytes"):
        recognizer.push(events)
    with pytest.raises(SnapshotError, match="incomplete"):
        recognizer.advance_time(400)
    assert sum(map(len, queries.run(events, max_bytes=20_000_000).values())) > 100_000


def test_partitions_of_a_family_are_given_back():
    queries = cepheid.queries(
        {str(limit): f"SELECT * WHERE A AS x ; B AS y FILTER x[v > {limit}] PARTITION BY k WITHIN 5" for limit in range(4)}
    )
    schema = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
    recognizer = queries.recognizer(schema)
    used = []
    for start in range(0, 200_000, 1000):
        times = np.arange(start, start + 1000)
        recognizer.push(pa.table([pa.array(["A"] * 1000), times, times, times % 7], schema=schema))
        used.append(recognizer.memory_usage() / (start + 1000))
    # Positions are counted per key for ever, once for all four; the state of each query is not.
    assert used[-1] < 400


def test_two_threads_on_one_recognizer():
    queries = cepheid.queries(TEXTS)
    recognizer = queries.recognizer(EVENTS.schema)
    refused = []

    def push():
        for _ in range(200):
            try:
                recognizer.push(EVENTS.slice(0, 0))
            except InUseError:
                refused.append(1)

    threads = [threading.Thread(target=push) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = recognizer.push(EVENTS)
    assert found["all"] == queries["all"].run(EVENTS)


def test_a_snapshot_is_of_the_same_queries_under_the_same_names():
    state = cepheid.queries(TEXTS).recognizer(EVENTS.schema).snapshot()
    with pytest.raises(SnapshotError):
        cepheid.queries({**TEXTS, "one more": "SELECT * WHERE A"}).recognizer(EVENTS.schema, snapshot=state)
    renamed = {name.replace("all", "every"): text for name, text in TEXTS.items()}
    with pytest.raises(SnapshotError):
        cepheid.queries(renamed).recognizer(EVENTS.schema, snapshot=state)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "there is no query"),
        ([], "there is no query"),
        ("SELECT * WHERE A", "queries cannot be a str"),
        ({1: "SELECT * WHERE A"}, "1 is not the name of a query"),
        ({"a": 1}, "a query cannot be a int"),
        ({"a": Path("/no-such-folder/a.ceql")}, "in the query `a`: the query file /no-such-folder/a.ceql cannot be read: No such file"),
    ],
)
def test_what_are_no_queries(given, message):
    with pytest.raises(InputError, match=message):
        cepheid.queries(given)


def test_errors_say_which_query():
    queries = cepheid.queries({"fine": "SELECT * WHERE A", "wrong": "SELECT * WHERE A AS x FILTER x[prize > 3]"})
    with pytest.raises(BindError, match="in the query `wrong`: unknown attribute") as caught:
        queries.run(EVENTS)
    assert "prize" in str(caught.value)
    with pytest.raises(InputError, match="schema="):
        queries.explain()


def test_a_list_has_names_and_a_stream_in_one_line():
    queries = cepheid.queries(["SELECT * WHERE A AS x FILTER x[v > 1]", "SELECT * WHERE A AS x FILTER x[v > 2]"])
    assert {name: len(matches) for name, matches in queries.run(stream("A1(v=2) A2(v=3)")).items()} == {"q1": 2, "q2": 1}
    assert repr(queries).startswith("cepheid.queries({'q1': cepheid.query(")
    assert repr(queries.run(stream("A1(v=2)"))) == "<matches of 2 queries: q1: 1>"


def test_what_can_be_read_only_once_is_read_once():
    given = {"w": pa.table({"ts": [1, 5], "v": [1, 2]}), "f": pa.table({"ts": [2, 6], "v": [1, 2]})}
    queries = cepheid.queries({"a": "SELECT * FROM w WHERE w AS x FILTER x[v > 0]", "b": "SELECT * FROM w, f WHERE w AS x ; f AS y"})
    for options in ({}, {"engine": "reference"}):
        found = queries.run({name: table.to_reader() for name, table in given.items()}, **options)
        assert {name: len(matches) for name, matches in found.items()} == {"a": 2, "b": 3}
    rows = ({"type": kind, "ts": time} for time, kind in enumerate("AB"))
    found = cepheid.queries(["SELECT * WHERE A", "SELECT * WHERE B"]).run(rows, engine="reference")
    assert [len(matches) for matches in found.values()] == [1, 1]


def test_too_many_matches_of_a_family_are_named_by_their_query():
    events = pa.table({"type": ["A"] * 20 + ["B"], "ts": range(21), "v": range(21), "k": [1] * 21})
    queries = cepheid.queries({f"q{low}": f"SELECT * WHERE A+ AS x ; B FILTER x[v >= {-low}] PARTITION BY k" for low in range(4)})
    with pytest.raises(LimitError, match=r"in the query `q0`: the matches take more .* position 20 \(20\), k = 1, which completes"):
        queries.run(events, max_bytes=100_000)


def test_what_a_push_gives_can_be_pickled_and_copied():
    queries = cepheid.queries({str(limit): f"SELECT * WHERE A AS x ; B FILTER x[v > {limit}] PARTITION BY k" for limit in range(4)})
    found = queries.recognizer(EVENTS.schema).push(EVENTS)
    for copied in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert dict(copied) == dict(found)
        assert copied.found.keys() == found.found.keys()


def test_a_renamed_measure_is_another_grouping():
    texts = [f"SELECT x.v AS m WHERE A AS x FILTER x[v > {limit}]" for limit in range(2)]
    state = cepheid.queries(texts).recognizer(EVENTS.schema).snapshot()
    with pytest.raises(SnapshotError, match="another query"):
        cepheid.queries([texts[0], texts[1].replace("AS m", "AS n")]).recognizer(EVENTS.schema, snapshot=state)


def test_a_name_with_half_a_character():
    with pytest.raises(InputError, match="half a surrogate pair"):
        cepheid.queries({"\ud800": "SELECT * WHERE A"})


def test_the_index_of_many_thresholds_is_small_and_counted():
    queries = cepheid.queries([f"SELECT * WHERE A AS x FILTER x[v > {limit}]" for limit in range(2100)])
    recognizer = queries.recognizer(EVENTS.schema)
    assert len(recognizer.push(EVENTS).found) == 10
    assert 4_000_000 < recognizer.memory_usage() < 20_000_000
