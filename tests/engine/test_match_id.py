"""Identities of matches: the documented hash, computed anew value by value; the same on every way to the same matches, and none twice."""

from __future__ import annotations

import datetime as dt
import itertools
import random
import struct
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from enough import Enough

import cepheid
from cepheid.engine.output.identity import PIECE_MARKS, Repeats, digests, identities
from cepheid.errors import InputError, SchemaError
from cepheid.testing.differential import draws, pieces
from cepheid.testing.generators import ENGINE

# ------------------------------------------------------------------------------------------------------- docs/decisions/0016, in plain numbers

NEW_YEAR = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
MASK = (1 << 64) - 1
LANES = (0x243F6A8885A308D3, 0x13198A2E03707344)


def mix(word):
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word = (word ^ word >> shift) * factor & MASK
    return word ^ word >> 31


def take(lanes, *words):
    for word in words:
        own = word if isinstance(word, tuple) else (word & MASK,) * 2
        lanes = tuple(mix(lane ^ each) for lane, each in zip(lanes, own, strict=True))
    return lanes


def of_bytes(data, kind):
    words = [int.from_bytes(data[start : start + 8], "little") for start in range(0, len(data), 8)]
    return take(LANES, kind, len(data), *words)


def of_value(value, kind):
    if value is None:
        return take(LANES, 1)
    if pa.types.is_dictionary(kind):
        return of_value(value, kind.value_type)
    if pa.types.is_boolean(kind):
        return take(LANES, 2, int(value))
    if pa.types.is_integer(kind):
        return take(LANES, 3, value)
    if pa.types.is_floating(kind):
        return take(LANES, 4, int.from_bytes(struct.pack("<d", value + 0.0), "little"))
    if pa.types.is_decimal(kind):
        return take(LANES, 5, kind.scale, int(value.scaleb(kind.scale)), int(value.scaleb(kind.scale)) >> 64)
    if pa.types.is_date(kind):
        return take(LANES, 6, (value - dt.date(1970, 1, 1)).days)
    if pa.types.is_time(kind):
        return take(LANES, 7, value.hour * 3600 + value.minute * 60 + value.second, value.microsecond * 1000)
    if pa.types.is_timestamp(kind):
        micros = (value.replace(tzinfo=dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
        return take(LANES, 8, micros // 10**6, micros % 10**6 * 1000)
    if pa.types.is_duration(kind):
        micros = value // dt.timedelta(microseconds=1)
        return take(LANES, 9, micros // 10**6, micros % 10**6 * 1000)
    if isinstance(value, str | bytes):
        return of_bytes(value.encode() if isinstance(value, str) else value, 10 if isinstance(value, str) else 11)
    if pa.types.is_map(kind):
        value, kind = (
            [dict(zip(("key", "value"), each, strict=True)) for each in value],
            pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])),
        )
    if isinstance(value, list):
        found = [of_value(each, kind.value_type) for each in value]
        mixed = [[mix(lane + place * 0x9E3779B97F4A7C15 & MASK) for lane in each] for place, each in enumerate(found, 1)]
        sums = tuple(sum(each[lane] for each in mixed) & MASK for lane in (0, 1))
        return take(LANES, 12, len(value), sums)
    lanes = take(LANES, 13)
    for name in sorted(value):
        lanes = take(lanes, of_bytes(name.encode(), 10), of_value(value[name], kind.field(name).type))
    return lanes


def of_row(row, schema, said, number):
    lanes = take(LANES, of_bytes(said.encode(), 10))
    for name in sorted(row):
        lanes = take(lanes, of_bytes(name.encode(), 10), of_value(row[name], schema.field(name).type))
    return "".join(f"{lane:016x}" for lane in take(lanes, number))


def table_of_all_types():
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 250_001, dt.UTC)
    texts = ["", "a", "12345678", "123456789", "größe", None, "a"]
    columns = {
        "bool": pa.array([True, False, None] * 2 + [True]),
        "byte": pa.array([-1, 0, None, 127, -128, 5, 5], pa.int8()),
        "wide": pa.array([2**64 - 1, 0, None, 1, 2, 5, 5], pa.uint64()),
        "float": pa.array([0.0, -0.0, 1.5, None, float("inf"), -2.25, 1.5], pa.float32()),
        "double": pa.array([0.1, -0.0, 0.0, None, float("-inf"), 1e300, 0.1]),
        "decimal": pa.array([Decimal("-1.25"), Decimal("0.00"), None, Decimal("12345678901234567890.12")] + [Decimal("3.00")] * 3),
        "date": pa.array([dt.date(1969, 1, 1), dt.date(9999, 12, 31), None] + [dt.date(2026, 1, 1)] * 4),
        "time": pa.array([dt.time(1, 2, 3, 4), None] + [dt.time(23, 59)] * 5, pa.time64("us")),
        "micros": pa.array([moment, None] + [NEW_YEAR] * 5, pa.timestamp("us")),
        "zoned": pa.array([moment, None] + [NEW_YEAR] * 5, pa.timestamp("us", "UTC")),
        "duration": pa.array([dt.timedelta(seconds=-1, microseconds=1), None] + [dt.timedelta(days=3)] * 5, pa.duration("us")),
        "text": pa.array(texts),
        "large": pa.array(texts, pa.large_string()),
        "coded": pa.array(texts).dictionary_encode(),
        "bytes": pa.array([b"", b"\0", b"\0\0", None, b"a", b"a" * 17, b"a"]),
        "list": pa.array([[], [1], [1, None], None, [2, 1], [1, 2], [1]], pa.list_(pa.int32())),
        "nested": pa.array([[], [{"b": "x", "a": None}], None] + [[{"b": "y", "a": [1]}] * 2] * 4),
        "map": pa.array([[("a", 1)], None, []] + [[("b", 2), ("c", None)]] * 4, pa.map_(pa.string(), pa.int8())),
        "null": pa.nulls(7),
    }
    return pa.table(columns)


def test_the_hash_that_is_documented():
    table = table_of_all_types()
    columns = dict(zip(table.column_names, table.columns, strict=True))
    expected = [of_row(row, table.schema, "query x", 0) for row in table.to_pylist()]
    assert identities(columns, "query x", Repeats()).to_pylist() == expected
    assert len(set(expected)) == len(expected)
    for start, stop in itertools.combinations(range(len(table) + 1), 2):
        part = {name: column.chunk(0).slice(start, stop - start) for name, column in columns.items()}
        assert identities(part, "query x", Repeats()).to_pylist() == expected[start:stop]


def test_the_hash_never_changes():
    """Identities that consumers have stored."""
    query = cepheid.query("SELECT x, y WHERE A AS x ; B AS y FILTER y.v > :v WITHIN 10", args={"v": 1})
    rows = [{"type": "A", "ts": 1, "v": 1.5}, {"type": "B", "ts": 2, "v": 2.5}, {"type": "B", "ts": 2, "v": 2.5}]
    assert query.run(rows).to_arrow(match_id="id")["id"].to_pylist() == PINNED
    assert cepheid.queries({"rise": query}).run(rows)["rise"].to_arrow(match_id="id")["id"].to_pylist() == PINNED_NAMED


PINNED = ["a8094c44be570157de097ff9907c6d83", "137e5bf4bef39b13a50b5d602dd929bd"]
PINNED_NAMED = ["310ce969b5d69abab3f51464dbab1b86", "b5c31f7b6a850cc1dfad6480d079b104"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_unit_of_a_time_is_no_part_of_it(unit):
    times = [NEW_YEAR, dt.datetime(1961, 1, 1, 1, tzinfo=dt.UTC)]
    found = digests(pa.array(times, pa.timestamp(unit)))
    assert (found == digests(pa.array(times, pa.timestamp("us", "Asia/Tokyo")))).all()


def test_a_column_that_has_no_hash():
    odd = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
    with pytest.raises(SchemaError, match="`odd` is month_day_nano_interval"):
        identities({"odd": odd}, "", Repeats())


# ------------------------------------------------------------------------------------------------------------------- equal rows


def test_numbers_of_equal_rows(seed):
    """Piece by piece as at once; with `end` what is remembered stays small."""
    chance = random.Random(seed)
    for _ in range(50):
        times = np.sort(np.array([chance.randrange(8) for _ in range(chance.randrange(1, 60))]))
        hashes = np.array([time * 10 + chance.randrange(3) for time in times.tolist()], np.uint64)
        seen = Counter()
        expected = []
        for value in hashes.tolist():
            expected.append(seen[value])
            seen[value] += 1
        kept, ended = Repeats(), Repeats()
        found, also = [], []
        cuts = sorted({0, len(hashes), *(chance.randrange(len(hashes)) for _ in range(4))})
        for start, stop in itertools.pairwise(cuts):
            found += kept.numbers(hashes[start:stop]).tolist()
            also += ended.numbers(hashes[start:stop]).tolist()
            ended.end(times[start:stop])
        assert found == also == expected
        kept_values = {value for values, _ in ended._levels for value in values.tolist()}
        assert kept_values == set(hashes[times == times[-1]].tolist())


def test_more_rows_than_one_piece():
    """Equal rows on both sides of a cut have different identities."""
    count = PIECE_MARKS // 2 + 5
    events = pa.table({"type": ["A"] * 3 + ["B"] * count, "ts": [0] * 3 + [1] * count})
    matches = cepheid.query("SELECT * WHERE A AS x ; B AS y WITHIN 2").run(events)
    assert len(matches) == 3 * count
    assert len(set(matches.to_arrow(match_id="id")["id"].to_pylist())) == len(matches)


# ------------------------------------------------------------------------------------------------------------------- ways to a match


def rows_of(matches):
    """The rows with their identities, as values."""
    return [repr(row) for row in matches.to_arrow(events=True, match_id="match_id").to_pylist()]


def test_the_same_on_every_way(cases, seed):
    """Whole, by the definition, from a recognizer in any pieces, restored, and in disorder: the same rows with the same identities, none twice."""
    wanted = Enough(cases, draws(ENGINE, seed=seed), matches=30, equal=3)
    for case in wanted:
        query, events = case.query, case.events
        matches = query.run(events)
        found = rows_of(matches)
        ids = matches.to_arrow(match_id="match_id")["match_id"].to_pylist()
        assert len(set(ids)) == len(ids) == len(matches), case
        wanted.seen["matches"] += len(matches)
        wanted.seen["equal"] += len(matches) - len(set(map(repr, matches.to_arrow(events=True).to_pylist())))
        if not any(answer.choose < len(answer.candidates) for answer in case.expected.values()):
            assert sorted(rows_of(query.run(events, engine="reference"))) == sorted(found), case
        rng = case.random("identities")
        recognizer = query.recognizer(events.schema, lateness=0)
        pushed = []
        for piece in pieces(rng, events):
            pushed += rows_of(recognizer.push(piece))
            if rng.random() < 0.5:
                recognizer = query.recognizer(events.schema, lateness=0, snapshot=recognizer.snapshot())
        pushed += rows_of(recognizer.flush())
        if recognizer.latest is not None:
            pushed += rows_of(recognizer.advance(recognizer.latest + 1))
        assert Counter(pushed) == Counter(found), case
        cut = pa.RecordBatchReader.from_batches(events.schema, [batch for piece in pieces(rng, events) for batch in piece.to_batches()])
        assert list(map(repr, query.batches(cut).to_reader(events=True, match_id="match_id").read_all().to_pylist())) == found, case


def test_batches_may_be_cut_between_equal_rows():
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y WITHIN 2")
    for count, pieces_of in ((700, 1), (5000, 700)):
        events = pa.table({"type": ["A"] * 3 + ["B"] * count, "ts": [0] * 3 + [1] * count})
        expected = query.run(events).to_arrow(match_id="id")
        found = query.batches(pa.RecordBatchReader.from_batches(events.schema, events.to_batches(pieces_of))).to_reader(match_id="id")
        assert found.schema == expected.schema
        assert found.read_all().equals(expected)
    with pytest.raises(SchemaError, match="`start_time`"):
        query.batches(events).to_reader(match_id="start_time")


def test_in_disorder(cases, seed):
    """Events that a column more tells apart, as late as is allowed."""
    for case in itertools.islice(draws(ENGINE, seed=seed), cases):
        rng = case.random("disorder")
        events = case.events.append_column("row", pa.array(range(len(case.events)), pa.int64()))
        times = events["ts"].cast("int64").to_pylist()
        step = 1 if events.schema.field("ts").type == pa.int64() else 1_000_000
        arrival = sorted(range(len(times)), key=lambda row: times[row] + rng.uniform(0, 4 * step))
        recognizer = case.query.recognizer(events.schema, lateness=4 if step == 1 else "4s", order="row")
        found = []
        for row in arrival:
            found += rows_of(recognizer.push(events.slice(row, 1)))
        found += rows_of(recognizer.flush())
        if recognizer.latest is not None:
            found += rows_of(recognizer.advance(recognizer.latest + 1))
        assert Counter(found) == Counter(rows_of(case.query.run(events, order="row"))), case


# ------------------------------------------------------------------------------------------------------------------- what is in it

ROWS = [{"type": kind, "ts": second, "k": key} for second, kind, key in [(1, "A", "x"), (1, "A", "y"), (2, "B", "x"), (2, "B", "y")]]


def ids(query, rows=ROWS, **given):
    return query.run(rows, **given).to_arrow(match_id="id")["id"].to_pylist()


def test_what_tells_queries_apart():
    query = cepheid.query("SELECT * WHERE A AS a ; B AS b PARTITION BY k WITHIN 10")
    written = cepheid.query("select *\nwhere (A as a; B as b)  -- the same\npartition by k within 10")
    assert ids(query) == ids(written)
    assert not set(ids(query)) & set(ids(cepheid.query("SELECT * WHERE A AS a ; B AS b PARTITION BY k WITHIN 11")))
    several = cepheid.queries({"one": query, "two": query}).run(ROWS)
    one, two = (several[name].to_arrow(match_id="id")["id"].to_pylist() for name in ("one", "two"))
    assert len({*one, *two, *ids(query)}) == 6


def test_arguments_tell_queries_apart():
    query = cepheid.query("SELECT * WHERE A AS a FILTER a.ts >= :least", args={"least": 0})
    assert not set(ids(query)) & set(ids(query.with_args(least=1)))
    timed = cepheid.query("SELECT * WHERE A AS a ; B AS b WITHIN :d", args={"d": dt.timedelta(seconds=5)})
    rows = [row | {"ts": NEW_YEAR + dt.timedelta(seconds=row["ts"])} for row in ROWS]
    assert not set(ids(timed, rows)) & set(ids(timed.with_args(d=dt.timedelta(seconds=6)), rows))


@pytest.mark.parametrize("shown", ["count(a) AS n", "COUNT(*)"])
def test_rows_of_measures_that_look_alike(shown):
    """Of keys that the query's equalities make, which the rows do not show; Spark has these in different tasks."""
    query = cepheid.query(f"SELECT {shown} WHERE A AS a ; B AS b FILTER a.k = b.k WITHIN 10")
    alone = [ids(query, [row for row in ROWS if row["k"] == key]) for key in "xy"]
    assert sorted(itertools.chain(*alone)) == sorted(ids(query))
    assert len(set(ids(query))) == 2
    assert ids(query, engine="reference") == ids(query)


def test_counts_have_an_identity():
    query = cepheid.query("SELECT COUNT(*) WHERE A AS a ; B AS b WITHIN 10")
    assert len(set(ids(query))) == 2


def test_what_waits_has_an_identity():
    """The same as once it is decided."""
    query = cepheid.query("SELECT * WHERE A AS a NOT FOLLOWED BY B FOR 5 PARTITION BY k")
    waiting = query.run(ROWS[:2]).undecided
    assert sorted(waiting.to_arrow(match_id="id")["id"].to_pylist()) == sorted(ids(query, ROWS[:2], until="end"))
    several = cepheid.queries({"gone": query})
    waiting, decided = several.run(ROWS[:2])["gone"].undecided, several.run(ROWS[:2], until="end")["gone"]
    assert len(decided) == 2


def test_where_the_column_stands():
    matches = cepheid.query("SELECT * WHERE A AS a PARTITION BY k").run(ROWS)
    names = ["id", "k", "start_time", "end_time", "start_position", "end_position", "a"]
    assert matches.to_arrow(match_id="id").column_names == names
    assert matches.to_arrow(rows=True, match_id="id").column_names == ["id", "k", "start_time", "end_time", "a"]
    assert matches[:0].to_arrow(match_id="id").schema == matches.to_arrow(match_id="id").schema
    assert matches[1:].to_arrow(match_id="id")["id"].to_pylist() == matches.to_arrow(match_id="id")["id"].to_pylist()[1:]
    assert list(matches.to_pandas(match_id="id")["id"]) == matches.to_arrow(match_id="id")["id"].to_pylist()
    with pytest.raises(SchemaError, match="two columns named `k`"):
        matches.to_arrow(match_id="k")


def test_without_times_there_is_none():
    matches = cepheid.query("SELECT * WHERE A AS a").run([{"type": "A"}])
    with pytest.raises(InputError, match="no time column"):
        matches.to_arrow(match_id="id")
