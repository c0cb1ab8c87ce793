"""Lagged attributes (`lag(x.a, n)`): the columns that somebody fills, however the events come, and the state that recognizers keep for them."""

from __future__ import annotations

import dataclasses
import random
from collections import defaultdict
from decimal import Decimal

import forging
import numpy as np
import pyarrow as pa
import pytest
from enough import Enough

import cepheid
from cepheid.engine.input import payload
from cepheid.engine.input.lags import Lags, rows_before
from cepheid.engine.input.partitions import Partitions
from cepheid.engine.memory import container
from cepheid.errors import SnapshotError
from cepheid.logical.plan import Lag, lag_column
from cepheid.testing.differential import check, draw, draws, rows_of, ways_of
from cepheid.testing.generators import COMPARING, LAGGED

VARIANTS = ("compiled", "python", "checked")
FRAGMENTS = {
    "lag": LAGGED,
    "lag and guards": dataclasses.replace(COMPARING, lag=True),
}
SCHEMA = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
RISING = "SELECT * WHERE A AS x FILTER x.v > lag(x.v, 2) PARTITION BY k"


def stream(count, *, keys=3, seed=0):
    rng = random.Random(seed)
    rows = [
        {"type": rng.choice("AB"), "ts": ts, "k": rng.choice([None, *range(keys)]), "v": rng.choice([None, 1, 2, 3])} for ts in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_random_queries_agree_with_the_definition_however_the_events_come(fragment, cases, seed):
    drawn = Enough(cases, draws(FRAGMENTS[fragment], seed=seed), lagged=3)
    for case in drawn:
        wanted = rows_of(case.query.run(case.events))
        check(case, wanted)
        drawn.seen["lagged"] += bool(wanted) and bool(case.query.compiled(case.query.schema(case.events)).lags)
        engine = VARIANTS[case.number % len(VARIANTS)]
        for way, found in ways_of(case).items():
            assert found(case, engine) == wanted, f"{way} {engine}\n{case}"


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_random_queries_together_have_the_matches_that_each_has_alone(fragment, cases, seed):
    drawn = draw(FRAGMENTS[fragment], count=cases // 4, seed=seed, longest=6)
    for first, second in zip(drawn[::2], drawn[1::2], strict=False):
        other = second if first.events.schema == second.events.schema else first
        queries = {"one": first.query, "other": other.query, "again": first.query}
        found = cepheid.queries(queries).run(first.events)
        assert {name: rows_of(found[name]) for name in queries} == {
            name: rows_of(query.run(first.events)) for name, query in queries.items()
        }, str(first)


def by_hand(table, steps):
    """The v of the event so many positions before each one, by k."""
    seen = defaultdict(list)
    found = []
    for row in table.to_pylist():
        before = seen[row["k"]]
        found.append(before[-steps] if len(before) >= steps and row["k"] is not None else None)
        before.append(row["v"])
    return found


def lag_of(steps):
    return Lag("", (lag_column("v", steps),), pa.int64(), pa.int64(), attribute="v", steps=steps)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("size", [1, 2, 7, 100, 400])
def test_batches_of_any_size_look_back_alike(size, interleaved, monkeypatch):
    monkeypatch.setattr(payload, "LEAST_COMPACTION", 8)
    events = stream(400, keys=5)
    lags, partitions = Lags([lag_of(1), lag_of(2), lag_of(5)], SCHEMA), Partitions(["k"], SCHEMA)
    found = []
    for start in range(0, len(events), size):
        batch = events.slice(start, size)
        arrived = partitions.arrive(batch, interleaved=interleaved)
        found.append(lags.read(batch, arrived, partitions.seen))
    for steps in (1, 2, 5):
        assert pa.concat_tables(found)[lag_column("v", steps)].to_pylist() == by_hand(events, steps)
    assert lags.dump(partitions.seen)
    assert len(lags._kept) == 5 * 5, "n events of each of five keys"


def test_rows_outside_all_partitions_have_nothing_before():
    assert rows_before(1, np.array([3, 1, 0]), np.array([0, 2]), 4).tolist() == [-1, 3, -1, -1]
    assert rows_before(1, None, np.array([0]), 3).tolist() == [-1, 0, 1]
    assert rows_before(2, None, np.array([0]), 0).tolist() == []


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.float32(), [1.5, float("nan"), None, 2.0]),
        (pa.uint64(), [2**64 - 1, 0, None, 7]),
        (pa.decimal128(10, 2), [Decimal("1.25"), None, Decimal("-3.00"), Decimal("1.25")]),
        (pa.large_string(), ["a", None, "", "é"]),
        (pa.string_view(), ["a", None, "", "é"]),
        (pa.dictionary(pa.int8(), pa.string()), ["a", "b", None, "a"]),
        (pa.timestamp("ns", "UTC"), [1, None, 3, 2]),
        (pa.date32(), [1, None, 3, 2]),
        (pa.bool_(), [True, None, False, True]),
        (pa.null(), [None] * 4),
        (pa.struct([("v", pa.int64())]), [{"v": 1}, None, {"v": None}, {"v": 1}]),
    ],
    ids=str,
)
def test_columns_of_any_type(kind, values):
    path = "x.a.v" if pa.types.is_struct(kind) else "x.a"
    events = pa.table({"type": ["A"] * 4, "ts": [1, 2, 3, 4], "a": pa.array(values, kind)})
    query = cepheid.query(f"SELECT * WHERE ANY AS x FILTER lag({path}) IS NOT NULL AND NOT lag({path}, 2) = {path}")
    wanted = rows_of(query.run(events, engine="reference"))
    recognizer = query.recognizer(events.schema)
    pushed = [row for place in range(4) for row in rows_of(recognizer.push(events.slice(place, 1)))]
    assert rows_of(query.run(events)) == pushed == wanted
    assert bool(wanted) is not pa.types.is_null(kind)


def test_an_attribute_named_like_a_lagged_column_is_not_read():
    events = stream(50).append_column(lag_column("v", 2), pa.array([0] * 50))
    query = cepheid.query(RISING)
    assert rows_of(query.run(events)) == rows_of(query.run(stream(50)))
    recognizer = query.recognizer(events.schema)
    assert rows_of(recognizer.push(events)) == rows_of(query.recognizer(SCHEMA).push(stream(50)))


def test_keys_stay_for_ever_with_as_many_events_as_a_lag_looks_back():
    query = cepheid.query("SELECT * WHERE A AS x FILTER x.v > lag(x.v, 2) WITHIN 5 PARTITION BY k")
    recognizer = query.recognizer(SCHEMA)
    for key in range(100):
        recognizer.push([{"type": "A", "ts": 1000 * key, "k": key, "v": place} for place in range(2)])
    restored = query.recognizer(SCHEMA, snapshot=recognizer.snapshot())
    for each in (recognizer, restored):
        assert len(each.push({"type": "A", "ts": 10**9, "k": 0, "v": 1})) == 1
    assert "and of each partition the last 2 events, for ever (lag)" in query.explain(schema=SCHEMA)["evaluation"]
    assert "lag looks at them" in query.explain(schema=SCHEMA)["program"]


def test_the_state_does_not_grow_with_the_events():
    recognizer = cepheid.query(f"{RISING} WITHIN 5").recognizer(SCHEMA)
    used = []
    for start in range(0, 200_000, 10_000):
        recognizer.push(stream(10_000).set_column(1, "ts", pa.array(range(start, start + 10_000))))
        used.append(recognizer.memory_usage())
    assert max(used[10:]) <= 1.1 * max(used[:10])
    assert len(recognizer.snapshot()) < 4_000


def test_late_events_are_before_others_where_their_time_is():
    query = cepheid.query("SELECT * WHERE A AS x FILTER lag(x.v) = 1")
    recognizer = query.recognizer(SCHEMA, lateness=10)
    rows = [{"type": "A", "ts": ts, "k": 0, "v": v} for ts, v in ((1, 1), (5, 0), (3, 2), (4, 1))]
    found = [row for event in rows for row in rows_of(recognizer.push(event))] + rows_of(recognizer.flush())
    assert [row.start for row in found] == [1, 3]


def test_a_query_with_lag_is_in_no_family_and_looks_back_in_its_own_partitions():
    queries = {f"over {limit}": f"SELECT * WHERE A AS x FILTER x.v > {limit} AND lag(x.v) = 1 PARTITION BY k" for limit in (1, 2)}
    queries |= {"all": "SELECT * WHERE A AS x FILTER x.v > 1 AND lag(x.v) = 1", "plain": "SELECT * WHERE A AS x FILTER x.v > 1"}
    together = cepheid.queries(queries)
    events = stream(200)
    recognizer = together.recognizer(SCHEMA)
    found = {name: [] for name in queries}
    for start in range(0, 200, 9):
        for name, matches in recognizer.push(events.slice(start, 9)).items():
            found[name] += rows_of(matches)
        recognizer = together.recognizer(SCHEMA, snapshot=recognizer.snapshot())
    assert found == {name: rows_of(cepheid.query(text).run(events)) for name, text in queries.items()}
    assert "lag looks at every event" in str(together.explain(schema=SCHEMA))


@pytest.mark.parametrize(
    "change",
    [
        lambda places, events: (places[:, :-1], events),
        lambda places, events: (places[:, :-1], events.slice(0, len(events) - 1)),
        lambda places, events: (places + np.array([[0], [1]]), events),
        lambda places, events: (places + np.array([[1], [0]]), events),
        lambda places, events: (places[:, [0, *range(places.shape[1] - 1)]], events),
        lambda places, events: (places, events.rename_columns(["w"])),
        lambda places, events: (places, events.cast(pa.schema([("v", pa.float64())]))),
        lambda places, events: (places * (1 << 40), events),
    ],
)
def test_a_snapshot_without_the_last_events_is_refused(change):
    recognizer = cepheid.query(RISING).recognizer(SCHEMA)
    recognizer.push(stream(40))
    fingerprint = recognizer._fingerprint()
    sections = forging.unpacked(recognizer.snapshot(), fingerprint)
    places = np.frombuffer(sections["lag_places"], "<i8").reshape(2, -1)
    places, events = change(places, container.table_of(sections["lag_events"]))
    sections |= {"lag_places": places.astype("<i8").tobytes(), "lag_events": container.table_bytes(events)}
    with pytest.raises(SnapshotError, match="damaged"):
        recognizer.restore(container.pack(sections, fingerprint=fingerprint))
    for name in ("lag_places", "lag_events"):
        less = {section: content for section, content in sections.items() if section != name}
        with pytest.raises(SnapshotError, match="damaged"):
            recognizer.restore(container.pack(less, fingerprint=fingerprint))


def test_the_order_of_the_kept_events_in_a_snapshot_means_nothing():
    recognizer = cepheid.query(RISING).recognizer(SCHEMA)
    events = stream(60)
    recognizer.push(events.slice(0, 40))
    fingerprint = recognizer._fingerprint()
    sections = forging.unpacked(recognizer.snapshot(), fingerprint)
    places = np.frombuffer(sections["lag_places"], "<i8").reshape(2, -1)
    kept = container.table_of(sections["lag_events"]).take(pa.array(range(places.shape[1] - 1, -1, -1)))
    sections |= {"lag_places": places[:, ::-1].astype("<i8").tobytes(), "lag_events": container.table_bytes(kept)}
    other = cepheid.query(RISING).recognizer(SCHEMA, snapshot=container.pack(sections, fingerprint=fingerprint))
    assert rows_of(other.push(events.slice(40))) == rows_of(recognizer.push(events.slice(40)))
