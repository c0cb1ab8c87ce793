"""The state of a bucket without Spark: micro-batches, watermarks, disorder and restarts are made here, and the answer is that of `Query.run`."""

from __future__ import annotations

import dataclasses
import itertools
import random
import struct

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from enough import Enough
from value_columns import columns_of, names_of

import cepheid
from cepheid.engine.input.keys import key_table
from cepheid.engine.letters.codes import having
from cepheid.engine.memory import container as state
from cepheid.engine.memory.container import table_bytes, table_of
from cepheid.engine.memory.container import unpack as unpacked
from cepheid.errors import LimitError, SnapshotError
from cepheid.logical.measures import POSITION_COLUMNS
from cepheid.spark.tasks import buckets as stateful
from cepheid.spark.tasks.buckets import Bucket
from cepheid.spark.tasks.packing import pack, unpack
from cepheid.spark.tasks.unit import Unit
from cepheid.spark.tasks.visits import BLOB, BUCKET, SEAL
from cepheid.spark.tasks.worker import LETTER, TIME, Task, pack_schema
from cepheid.testing.differential import fits, matches_up_to
from cepheid.testing.fragments import fragments
from cepheid.testing.generators import SCHEMA, random_query, random_stream

FRAGMENTS = fragments(unit="s")
START, SECOND = 1_700_000_000_000_000, 1_000_000
TIMED = SCHEMA.set(1, pa.field("ts", pa.timestamp("us", tz="UTC"))).append(pa.field("row", pa.int64()))


def timed(rows):
    """The rows of a random stream, a second for each step of time, numbered in their order."""
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    times = pa.array(table["ts"].to_numpy() * SECOND + START, pa.timestamp("us", tz="UTC"))
    return table.set_column(1, "ts", times).append_column("row", pa.array(range(len(table)), pa.int64())).cast(TIMED)


def task_of(query, *, index=False):
    """The task that `q.on` would make, with columns under their own names."""
    compiled = query.compiled(query.schema(TIMED))
    shown = () if compiled.layout.measures else ("row",)
    named = {field.name: field.default for field in dataclasses.fields(Task)}
    return named | {
        "text": query.text,
        "args": (),
        "schema": pack_schema(query.schema(TIMED)),
        "fingerprint": compiled.program.fingerprint,
        "keys": tuple(f"k{place}" for place in range(len(compiled.keys))),
        "key_names": compiled.keys,
        "payload": ()
        if compiled.layers
        else tuple((name, name) for name in TIMED.names if name not in compiled.keys)
        + tuple((name, f"k{place}") for place, name in enumerate(compiled.keys)),
        "shown": (*shown, "$index") if index else shown,
        "ties": ("row",),
        "tie_names": ("row",),
        "index": index,
        "time_name": "ts",
        "values": () if compiled.layers else names_of(compiled),
        "reads": tuple((name, name) for name in (TIMED.names if compiled.layers else compiled.read_in_order)),
    }


def output_of(queries, tasks):
    """The columns of the rows."""
    fields = [] if len(queries) == 1 else [pa.field("query", pa.string())]
    for query, task in zip(queries, tasks, strict=True):
        layout = query.compiled(query.schema(TIMED)).layout
        event = pa.struct([pa.field("row", pa.int64()), *([pa.field("$index", pa.int64())] if task["index"] else [])])
        fields += [TIMED.field(name) for name in layout.keys]
        fields += [pa.field("start_time", TIMED.field("ts").type), pa.field("end_time", TIMED.field("ts").type)]
        fields += [pa.field(name, pa.int64()) for name in POSITION_COLUMNS] if task["index"] else []
        fields += layout.measure_columns
        fields += [pa.field("decided_time", TIMED.field("ts").type)]
        fields += [pa.field(name, pa.list_(event)) for name in layout.variables]
    return pa.schema(list({field.name: field for field in fields}.values()))


def travelling(queries, table):
    """The events as they travel, and each query's letters among those of all: what `batch.prepare` does with columns."""
    every = [query.compiled(query.schema(TIMED)) for query in queries]
    compiled = [each for each in every if not (each.lags or each.layers)]
    pool = list(dict.fromkeys(condition for each in compiled for alphabet in each.alphabets for condition in alphabet.conditions))
    keys = key_table(table, every[0].keys) if every[0].keys else None
    columns = {f"k{place}": column for place, column in enumerate(keys.columns if keys is not None else [])}
    columns |= {TIME: table["ts"], **{name: table[name] for name in table.column_names}}
    width = max(1, -(-len(pool) // 64))
    bits = np.zeros((width, len(table)), np.uint64)
    for predicates, program in itertools.chain.from_iterable(zip(each.alphabets, each.programs, strict=True) for each in compiled):
        letters = predicates.letters(table).astype(np.uint64)
        for bit, condition in enumerate(predicates.conditions):
            place = pool.index(condition)
            holds = having(letters, program.automaton.alphabet, [(1 << bit, 0)])
            bits[place // 64] |= holds.astype(np.uint64) << np.uint64(place % 64)
    alone = len(compiled) == 1 and not compiled[0].absences
    if alone:
        bits = letters.reshape(1, -1)
    names = [f"{LETTER}{number or ''}" for number in range(len(bits))] if compiled else []
    columns |= dict(zip(names, map(pa.array, bits.view(np.int64)), strict=False))
    for each in compiled:
        columns |= columns_of(each, table)
    events = pa.table(columns)
    places = [
        ((), ())
        if each not in compiled
        else (tuple(names), None if alone else tuple(tuple(map(pool.index, alphabet.conditions)) for alphabet in each.alphabets))
        for each in every
    ]
    for place in range(len(every[0].keys)):
        events = events.filter(pc.is_valid(events[f"k{place}"]))
    return events, tuple(places)


def unit_of(queries, table, *, index=False, late=None):
    events, letters = travelling(queries, table)
    tasks = [task_of(query, index=index) for query in queries]
    output = output_of(queries, tasks)
    names = None if len(queries) == 1 else tuple(f"q{number}" for number in range(len(queries)))
    unit = Unit(tuple(tasks), letters, ("row",), names, late, output.serialize().to_pybytes(), events.schema.serialize().to_pybytes())
    return unit, events, output


def buckets_of(events, count):
    """The bucket of each event: all events of a key in one."""
    keys = [name for name in events.column_names if name.startswith("k") and name[1:].isdigit()]
    rows = list(zip(*(events[name].to_pylist() for name in keys), strict=True)) if keys else [()] * len(events)
    return np.array([hash(row) % count for row in rows], np.int32)


def arrivals(chance, events, lateness):
    """Micro-batches of the events in a random order of arrival, none later than the watermark of its batch, and each batch's watermark.

    The watermark is that of Spark: the greatest time of earlier batches, minus the lateness.
    """
    times = events["ts"].cast(pa.int64()).to_numpy() // 1000
    arrival = times + np.array([chance.uniform(0, lateness) for _ in times]) if len(times) else times
    order = np.argsort(arrival, kind="stable")
    cuts = sorted(chance.randint(0, len(order)) for _ in range(chance.randint(0, 5)))
    watermark = greatest = 0
    for begin, end in zip([0, *cuts], [*cuts, len(order)], strict=True):
        rows = order[begin:end]
        yield events.take(pa.array(rows)), watermark
        greatest = max([greatest, *(times[rows] - lateness - 1).tolist()])
        watermark = greatest
    yield events.slice(0, 0), 4_000_000_000_000


def streamed(unit, events, output, chance, *, count=1, lateness=3000, restart=0.5):
    """The rows that a stream over the events gives: every batch is packed, read by its bucket, and often goes through bytes."""
    states, rows, decided_until, known = {}, [], 0, 0
    # `arrivals` counts a millisecond more than Spark.
    unit = dataclasses.replace(unit, lateness=chance.choice([None, lateness + 1]))
    number = buckets_of(events, count)
    events = events.append_column(BUCKET, pa.array(number))
    for batch, watermark in arrivals(chance, events, lateness):
        if unit.lateness is not None and len(batch):
            known = max(known, max(batch["ts"].cast(pa.int64()).to_pylist()) // 1000 - unit.lateness)
        blobs = {}
        for piece in pack(iter(batch.to_batches(max_chunksize=5))):
            for bucket, blob in zip(piece[BUCKET].to_pylist(), piece[BLOB].to_pylist(), strict=True):
                if bucket != SEAL:
                    blobs.setdefault(bucket, []).append(pa.ipc.open_stream(blob).read_all())
        for bucket in {*blobs, *states}:
            deadline, state = states.get(bucket, (None, None))
            if bucket not in blobs and (deadline is None or deadline > watermark):
                continue
            held = state if isinstance(state, Bucket) else Bucket(unit) if state is None else Bucket(unit).load(state)
            step = held.step(blobs.get(bucket, []), watermark)
            assert step.counts["late"] == 0
            for moment, blob in step.rows:
                new = unpack(output, pa.array([blob], pa.binary())).to_pylist()[0]
                decided = [int(row.pop("decided_time").timestamp() * 1000) * 1000 for row in new]
                assert moment == min(decided)
                assert decided_until < moment, "a row at or below the watermark before fails the stream"
                assert max(decided) <= max(watermark, known) * 1000
                rows += new
            states[bucket] = (step.deadline, None if held.empty else held.dump() if chance.random() < restart else held)
        decided_until = watermark * 1000
    return rows, states


def shown(row):
    """A row as a value, with events by their numbers, without the columns of other queries."""
    values = {name: [tuple(event.values()) for event in value] if isinstance(value, list) else value for name, value in row.items()}
    return repr(sorted((name, value) for name, value in values.items() if value is not None))


def until_of(query):
    return "end" if query.compiled(query.schema(TIMED)).decides_later else None


def expected(query, table, *, index=False):
    """The rows of the whole table, events by their numbers; index: with positions."""
    matches = query.run(table, order="row", until=until_of(query))
    rows, positions = matches.to_arrow(events=True).to_pylist(), matches.to_pylist()
    for row, places in zip(rows, positions, strict=True):
        for name, value in row.items():
            if isinstance(value, list):
                row[name] = [
                    {"row": event["row"], "$index": place} if index else {"row": event["row"]}
                    for event, place in zip(value, places[name], strict=True)
                ]
        if index:
            row |= {name: places[name] for name in POSITION_COLUMNS}
    return rows


MOST_MATCHES = 1000


def random_case(seed, fragment):
    chance = random.Random(seed)
    while True:
        query = cepheid.query(random_query(chance, fragment=fragment).replace("CONSUME BY ANY", "CONSUME BY PARTITION"))
        table = timed(random_stream(chance, most=16))
        if not fits(query, TIMED) or (fragment.index and not query.compiled(query.schema(TIMED)).positional):
            continue
        if matches_up_to(MOST_MATCHES, query, table, order="row", until=until_of(query)) is not None:
            return query, table, chance


def cut_small(monkeypatch, chance):
    """What travels is cut into pieces after few rows or bytes, or hardly ever."""
    for name, limits in {"rows.ROWS": [1, 3, 1 << 16], "rows.BYTES": [1, 2000, 1 << 26], "packing.PACK_BYTES": [1, 500, 1 << 26]}.items():
        limit = chance.choice(limits)
        for place in [name] if "PACK" in name else [f"{name}_PER_PIECE", f"{name}_PER_PIECE".replace("rows", "packing")]:
            monkeypatch.setattr(f"cepheid.spark.tasks.{place}", limit)


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_a_stream_gives_what_the_table_gives(fragment, cases, seed, monkeypatch):
    enough = Enough(cases // 4, matched=2)
    for number in enough:
        query, table, chance = random_case(f"{seed}/{fragment}/{number}", FRAGMENTS[fragment])
        cut_small(monkeypatch, chance)
        unit, events, output = unit_of([query], table)
        found, states = streamed(unit, events, output, chance, count=chance.choice([1, 2, 3]))
        wanted = expected(query, table)
        assert sorted(map(shown, found)) == sorted(map(shown, wanted)), (seed, number, query.text, table.to_pylist())
        compiled = query.compiled(query.schema(TIMED))
        programs = [program for layer in (compiled, *compiled.layers) for program in layer.programs]
        if Bucket(unit).horizon is not None and not any(program.trackers for program in programs):  # these look back for ever
            assert not [state for _, state in states.values() if state is not None], (seed, number, query.text, "state of idle keys")
        enough.seen["matched"] += bool(found)


GROWING = [
    "SELECT * WHERE A+ AS x PARTITION BY k WITHIN 9 seconds HAVING sum(x.v) > {} CONSUME BY PARTITION",
    "SELECT * WHERE A ; (A OR B)+ AS x ; C AS y PARTITION BY k WITHIN 12 seconds HAVING sum(x.v) >= {} AND count(x) > 1 CONSUME BY PARTITION",
    "SELECT sum(x.v) AS d WHERE (A OR B):+ AS x ; C PARTITION BY k WITHIN 12 seconds HAVING {} <= d CONSUME BY PARTITION",
    "SELECT COUNT(*) WHERE A+ AS x ; B PARTITION BY k WITHIN 9 seconds HAVING sum(x.v) > {} CONSUME BY PARTITION",
]


def test_a_sum_grows_until_something_is_negative(cases, seed, monkeypatch):
    """What a bucket knows of that goes with its state."""
    enough = Enough(cases // 8, matched=2, guided=5, falls=5)
    for number in enough:
        chance = random.Random(f"{seed}/growing/{number}")
        query, rows = cepheid.query(chance.choice(GROWING).format(chance.randint(0, 6))), random_stream(chance, most=16)
        for row in rows[chance.randint(0, len(rows)) :]:
            row["v"] = row["v"] if chance.random() < 0.6 else -chance.randint(1, 3)
        table = timed(rows)
        if matches_up_to(MOST_MATCHES, query, table, order="row") is None:
            continue
        cut_small(monkeypatch, chance)
        unit, events, output = unit_of([query], table)
        found, _ = streamed(unit, events, output, chance, count=chance.choice([1, 2]))
        assert sorted(map(shown, found)) == sorted(map(shown, expected(query, table))), (seed, number, query.text, table.to_pylist())
        enough.seen["matched"] += bool(found)
        enough.seen["guided"] += query.compiled(query.schema(TIMED)).guide is not None
        enough.seen["falls"] += any(row["v"] is not None and row["v"] < 0 and row["type"] == "A" for row in rows)


@pytest.mark.parametrize("fragment", ["any pattern", "definitions"])
def test_positions_go_on_counting(fragment, cases, seed, monkeypatch):
    """Those of a table, in any order of arrival; events that matches make have positions too."""
    enough = Enough(cases // 8, matched=2)
    for number in enough:
        query, table, chance = random_case(f"{seed}/counted/{fragment}/{number}", FRAGMENTS[fragment])
        if query.compiled(query.schema(TIMED)).derived:
            continue
        cut_small(monkeypatch, chance)
        unit, events, output = unit_of([query], table, index=True)
        found, _ = streamed(unit, events, output, chance, count=chance.choice([1, 3]))
        wanted = expected(query, table, index=True)
        assert sorted(map(shown, found)) == sorted(map(shown, wanted)), (seed, number, query.text, table.to_pylist())
        enough.seen["matched"] += bool(found)


def test_several_queries_share_a_bucket(cases, seed, monkeypatch):
    """Queries with the same keys over one stream: each gives what it gives alone."""
    enough = Enough(cases // 10, matched=5)
    for number in enough:
        chance = random.Random(f"{seed}/several/{number}")
        kept = {}
        while len(kept) < 4:
            fragment = FRAGMENTS[("any pattern", "any pattern", "lag", "positions")[len(kept)]]
            query, table, _ = random_case(f"{seed}/several/{number}/{chance.random()}", fragment)
            keys = query.compiled(query.schema(TIMED)).keys
            if keys == (("k",) if number % 2 else ()) and not query.compiled(query.schema(TIMED)).layout.measures:
                kept[f"q{len(kept)}"] = query
        queries = list(kept.values())
        if any(matches_up_to(MOST_MATCHES, query, table, order="row", until=until_of(query)) is None for query in queries):
            continue
        wanted = {name: expected(query, table) for name, query in kept.items()}
        cut_small(monkeypatch, chance)
        unit, events, output = unit_of(queries, table)
        found, _ = streamed(unit, events, output, chance, count=2)
        for name, rows in wanted.items():
            mine = [{column: value for column, value in row.items() if column != "query"} for row in found if row["query"] == name]
            assert sorted(map(shown, mine)) == sorted(map(shown, rows)), (seed, number, kept[name].text)
        enough.seen["matched"] += bool(found)


def heat(window="10 seconds", extra=""):
    return cepheid.query(f"SELECT * WHERE A AS x ; B AS y PARTITION BY k{extra} WITHIN {window}")


def events_of(text, *, key=1):
    """`A1 B2`: types and seconds."""
    rows = [(word[0], int(word[1:])) for word in text.split()]
    columns = {"type": [kind for kind, _ in rows], "ts": [START + second * SECOND for _, second in rows], "k": [key] * len(rows)}
    whole = {name: columns.get(name, [None] * len(rows)) for name in TIMED.names} | {"row": list(range(len(rows)))}
    return pa.table(whole, schema=TIMED)


def seconds(watermark):
    return START // 1000 + watermark * 1000


def test_what_waits_and_when_it_is_looked_at_again():
    query = heat()
    unit, events, _ = unit_of([query], events_of("A1 B2 A9"))
    bucket = Bucket(unit)
    step = bucket.step([events], 0)
    assert step.rows == []
    assert step.counts == {"events": 3, "late": 0, "matches": 0, "waiting": 3, "keys": 0}
    assert step.deadline == seconds(1)
    step = bucket.step([], seconds(2))
    assert [decided for decided, _ in step.rows] == [START + 2 * SECOND]
    assert step.counts["matches"] == 1
    assert step.deadline == seconds(9)
    step = bucket.step([], seconds(9))
    assert not step.rows
    assert not bucket.empty
    assert step.deadline == seconds(19) + 1
    step = bucket.step([], step.deadline)
    assert bucket.empty
    assert step.deadline is None
    assert step.counts["keys"] == 0


def test_with_a_lateness_only_its_events_wait():
    """The events of a micro-batch move the next watermark: what these make known is decided at once, and only what may come later is not."""
    unit, events, _ = unit_of([heat()], events_of("A1 B2 A9 B11 B12"))
    bucket = Bucket(dataclasses.replace(unit, lateness=3000))
    step = bucket.step([events], 0)
    assert [decided for decided, _ in step.rows] == [START + 2 * SECOND]
    assert step.counts == {"events": 5, "late": 0, "matches": 1, "waiting": 2, "keys": 1}
    assert step.deadline == seconds(11)
    # Spark's watermark is now that of the greatest event anywhere: here, or in another bucket. What is at or below either is late.
    for watermark, late in ((seconds(9), 2), (seconds(10), 3)):
        again = Bucket(bucket.unit).load(bucket.dump())
        step = again.step([next_events(again, "A8 A9 A10 B12")], watermark)
        assert (step.counts["late"], step.counts["matches"]) == (late, 0)
        assert len(again.step([], seconds(12)).rows) == 1
        assert again.step([], seconds(30)).deadline is None


def next_events(bucket, text, *, query=None, key=1):
    """More events for a bucket, as they travel."""
    return travelling([query or heat()], events_of(text, key=key))[0].cast(bucket.schema)


def test_events_at_the_watermark_are_late_and_given_back():
    query = heat()
    columns = [(name, name) for name in TIMED.names if name != "k"] + [("k", "k0")]
    unit, events, output = unit_of([query], events_of("A5 B6 A7 B8"))
    late = pa.struct([TIMED.field(name) for name, _ in columns])
    output = output.append(pa.field("late", late))
    unit = dataclasses.replace(unit, late=tuple(columns), output=output.serialize().to_pybytes())
    step = Bucket(unit).step([events], seconds(6))
    assert step.counts["late"] == 2
    rows = [row for _, blob in step.rows for row in unpack(output, pa.array([blob], pa.binary())).to_pylist()[0]]
    assert [row["late"]["row"] for row in rows] == [0, 1]
    assert all(row["decided_time"].timestamp() * 1000 == pytest.approx(seconds(6)) for row in rows)
    assert all(row["x"] is None and row["k"] is None for row in rows)


def test_large_events_travel_in_pieces_of_bounded_size(monkeypatch):
    """Spark and Arrow hold no 2**31 bytes in one value: what is cut follows the bytes, not only the rows."""
    monkeypatch.setattr("cepheid.spark.tasks.packing.PACK_BYTES", 1 << 16)
    for module in ("rows", "packing"):
        monkeypatch.setattr(f"cepheid.spark.tasks.{module}.BYTES_PER_PIECE", 1 << 16)
    words = " ".join(f"A{second} B{second + 1}" for second in range(0, 200, 2))
    table = events_of(words)
    table = table.set_column(table.column_names.index("s"), "s", pa.array(["x" * 1000] * len(table)))
    query = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY k WITHIN 2 seconds")
    unit, events, output = unit_of([query], table)
    shown = pa.list_(pa.struct([TIMED.field(name) for name in ("row", "s")]))
    output = pa.schema([field.with_type(shown) if pa.types.is_list(field.type) else field for field in output])
    unit = dataclasses.replace(unit, tasks=({**unit.tasks[0], "shown": ("row", "s")},), output=output.serialize().to_pybytes())
    travelled = events.append_column(BUCKET, pa.array(np.zeros(len(events), np.int32)))
    sent = [piece for piece in pack(iter(travelled.to_batches(max_chunksize=10))) if piece[BUCKET][0].as_py() != SEAL]
    assert len(sent) >= 3
    assert max(piece.nbytes for piece in sent) < 2 * (1 << 16)
    bucket = Bucket(unit)
    bucket.step([table_of(blob) for piece in sent for blob in piece[BLOB].to_pylist()], 0)
    step = bucket.step([], seconds(1000))
    assert len(step.rows) >= 2
    assert max(len(blob) for _, blob in step.rows) < 2 * (1 << 16)
    rows = [row for _, blob in step.rows for row in unpack(output, pa.array([blob], pa.binary())).to_pylist()[0]]
    assert len(rows) == len(query.run(table)) == 100


def test_more_matches_than_a_visit_can_give_are_an_error(monkeypatch):
    monkeypatch.setattr(stateful, "OUTPUT_LIMIT", 100)
    unit, events, _ = unit_of([heat()], events_of("A1 B2"))
    bucket = Bucket(unit)
    bucket.step([events], 0)
    with pytest.raises(LimitError, match=r"more than 100 bytes \(OUTPUT_LIMIT\)") as caught:
        bucket.step([], seconds(3))
    assert "maxFilesPerTrigger" in str(caught.value)


def test_more_matches_than_max_bytes_are_an_error_that_names_the_event():
    query = cepheid.query("SELECT * WHERE A+ ; B PARTITION BY k WITHIN 1 hour")
    unit, events, _ = unit_of([query], events_of(" ".join(f"A{second}" for second in range(1, 15)) + " B15"))
    bucket = Bucket(dataclasses.replace(unit, max_bytes=50_000))
    bucket.step([events], 0)
    with pytest.raises(LimitError, match=r"more than 50,000 bytes \(max_bytes\): .* which completes 16,383 matches") as caught:
        bucket.step([], seconds(16))
    assert "q.on(.., max_bytes=..)" in str(caught.value)
    assert "sample" not in str(caught.value)
    assert dataclasses.replace(unit, max_bytes=1 << 30).fingerprint == unit.fingerprint
    bucket = Bucket(dataclasses.replace(unit, max_bytes=1 << 30))
    bucket.step([events], 0)
    assert bucket.step([], seconds(16)).counts["matches"] == 2**14 - 1


def test_idle_keys_are_forgotten_and_start_again():
    query = heat()
    many = pa.concat_tables([events_of("A1", key=key) for key in range(1000)])
    unit, events, output = unit_of([query], many)
    bucket = Bucket(unit)
    bucket.step([events], 0)
    bucket.step([], seconds(1))
    assert bucket.keys == 1000

    def held():
        return sum(map(len, unpacked(bucket.dump(), fingerprint=unit.fingerprint).values()))

    full = held()
    bucket.step([], seconds(12))
    assert bucket.keys == 0
    assert bucket.empty
    assert held() < full / 20
    again, _ = travelling([query], pa.concat_tables([events_of("A20 B21", key=key) for key in range(500, 510)]))
    rows = bucket.step([again.cast(events.schema)], seconds(13)).rows
    rows += bucket.step([], seconds(30)).rows
    assert sum(len(unpack(output, pa.array([blob], pa.binary()))[0]) for _, blob in rows) == 10


@pytest.mark.parametrize(
    ("where", "forgotten", "wanted"),
    [
        ("((A AS x ; B AS y) WITHIN 2 EVENTS) ; C AS z", True, [(1, 2, 3), (104, 105, 106)]),
        ("A AS x ; B AS y ; C AS z FILTER y.$index = x.$index + 1 AND z.$index > 8", False, [(104, 105, 106)]),
    ],
    ids=["window of events", "$index"],
)
def test_only_index_keeps_idle_keys(where, forgotten, wanted):
    """A window of events asks how far two positions are apart: they may begin anew with a key that comes back."""
    query = cepheid.query(f"SELECT * WHERE {where} PARTITION BY k WITHIN 10 seconds")
    whole = events_of("A1 B2 C3 Z4 A100 C101 B102 C103 A104 B105 C106")
    unit, events, output = unit_of([query], whole)
    bucket, found = Bucket(unit), []
    for start, stop, watermark in ((0, 4, 0), (4, 4, 30), (4, 7, 30), (7, 11, 102), (11, 11, 107)):
        step = bucket.step([events.slice(start, stop - start)], seconds(watermark))
        found += [row for _, blob in step.rows for row in unpack(output, pa.array([blob], pa.binary())).to_pylist()[0]]
        if (start, watermark) == (4, 30) and start == stop:
            assert bucket.empty == forgotten
            assert bucket.keys == (0 if forgotten else 1)
        bucket = Bucket(unit) if bucket.empty else Bucket(unit).load(bucket.dump())
    times = {row: int(time.timestamp()) - START // SECOND for row, time in enumerate(whole["ts"].to_pylist())}
    assert [tuple(times[event["row"]] for name in "xyz" for event in row[name]) for row in found] == wanted


@pytest.mark.parametrize("index", [False, True])
def test_shown_positions_keep_idle_keys_of_definitions(index):
    """They count what came before a pause, with the events that matches made there."""
    within = "PARTITION BY k WITHIN 10 seconds"
    query = cepheid.query(f"EVENT P(n) AS (SELECT x.v AS n WHERE A AS x ; B {within}) SELECT * WHERE P AS p ; C AS z {within}")
    whole = events_of("A1 B2 C3 A100 B101 C102")
    unit, events, output = unit_of([query], whole, index=index)
    bucket, found = Bucket(unit), []
    for start, stop, watermark in ((0, 3, 0), (3, 3, 60), (3, 6, 61), (6, 6, 200)):
        step = bucket.step([events.slice(start, stop - start)], seconds(watermark))
        found += [row for _, blob in step.rows for row in unpack(output, pa.array([blob], pa.binary())).to_pylist()[0]]
        if watermark == 60:
            assert (bucket.empty, bucket.keys) == (not index, int(index))
        bucket = Bucket(unit) if bucket.empty else Bucket(unit).load(bucket.dump())
    assert len(found) == 2
    if index:
        assert [(row["start_position"], row["end_position"], row["p"][0]["$index"], row["z"][0]["$index"]) for row in found] == [
            (0, 3, 2, 3),
            (4, 7, 6, 7),
        ]


@pytest.mark.slow
def test_a_million_keys_that_come_once():
    """State is of the keys of one window, however many have been: it goes back to nothing."""
    query = heat()
    unit, first, _ = unit_of([query], events_of("A1"))
    bucket, sizes = Bucket(unit), []
    for number in range(20):
        keys = np.arange(number * 50_000, (number + 1) * 50_000)
        times = np.full(len(keys), START + 20 * number * SECOND)
        columns = {
            "k0": keys,
            "k": keys,
            TIME: times,
            "ts": times,
            "type": ["A"] * len(keys),
            LETTER: np.full(len(keys), first[LETTER][0].as_py()),
        }
        given = {name: pa.array(columns[name]).cast(first.schema.field(name).type) for name in first.column_names if name in columns}
        nulls = {name: pa.nulls(len(keys), first.schema.field(name).type) for name in first.column_names if name not in columns}
        events = pa.table({name: (given | nulls)[name] for name in first.column_names}, schema=first.schema)
        bucket.step([events], seconds(20 * number - 1))
        bucket = Bucket(unit).load(bucket.dump())
        sizes.append(len(bucket.dump()))
    assert max(sizes[3:]) <= 1.1 * max(sizes[:3])
    bucket.step([], seconds(10_000))
    assert bucket.empty
    assert bucket.keys == 0


def test_queries_share_their_events():
    """Each event is stored once, also where a query marks fewer; a query with absences has events of its own."""
    texts = [f"SELECT * WHERE A AS x ; B AS y FILTER x[row < {most}] PARTITION BY k WITHIN 10 seconds" for most in (3, 2, 0)]
    texts += ["SELECT * WHERE A AS x ; B AS y NOT FOLLOWED BY C FOR 1 seconds PARTITION BY k WITHIN 10 seconds"] * 2
    unit, events, output = unit_of([cepheid.query(text) for text in texts], events_of("A1 A2 A3 A4"))
    bucket = Bucket(unit)
    bucket.step([events], 0)
    bucket.step([], seconds(5))
    sections = unpacked(bucket.dump(), fingerprint=unit.fingerprint)
    assert [table_of(sections[f"events {group}"])["row"].to_pylist() for group in range(3)] == [[0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3]]
    again = Bucket(unit).load(bucket.dump())
    again.step([travelling([cepheid.query(text) for text in texts], events_of("B6"))[0].cast(again.schema)], seconds(5))
    found = again.step([], seconds(9)).rows
    rows = [row for blob in found for row in unpack(output, pa.array([blob[1]], pa.binary()))[0].as_py()]
    pairs = [(row["query"], row["x"][0]["row"]) for row in rows]
    assert sorted(pairs) == [
        ("q0", 0),
        ("q0", 1),
        ("q0", 2),
        ("q1", 0),
        ("q1", 1),
        *(("q3", each) for each in range(4)),
        *(("q4", each) for each in range(4)),
    ]


def test_state_of_another_query_is_refused():
    unit, events, _ = unit_of([heat()], events_of("A1 B2"))
    bucket = Bucket(unit)
    bucket.step([events], 0)
    data = bucket.dump()
    other, _, _ = unit_of([heat("11 seconds")], events_of("A1 B2"))
    with pytest.raises(SnapshotError, match="another query"):
        Bucket(other).load(data)
    with pytest.raises(SnapshotError, match="damaged"):
        Bucket(unit).load(data[:-9] + b"123456789")


def with_keys_doubled(sections):
    return {"keys": table_bytes(table_of(sections["keys"]).take(pa.array([0, 0])))}


def with_offsets_astray(sections):
    """The texts of the stored events begin a gigabyte behind them."""
    events = sections["events 0"]
    offsets = struct.pack("<3i", 0, 1, 2)
    assert events.count(offsets) == 1
    return {"events 0": events.replace(offsets, struct.pack("<3i", 0, 1 << 30, 1 << 30))}


@pytest.mark.parametrize("damage", [with_keys_doubled, with_offsets_astray])
@pytest.mark.parametrize("alone", [True, False])
def test_damaged_state_is_refused(damage, alone):
    queries = [cepheid.query(f"SELECT * WHERE A AS x ; {last} AS y PARTITION BY k WITHIN 10 seconds") for last in ("B", "B+")]
    unit, travelling, _ = unit_of(queries[:1] if alone else queries, pa.concat_tables([events_of("A1", key=1), events_of("A1", key=2)]))
    bucket = Bucket(unit)
    bucket.step([travelling], 0)
    bucket.step([], seconds(2))
    sections = unpacked(bucket.dump(), fingerprint=unit.fingerprint)
    with pytest.raises(SnapshotError, match="damaged"):
        Bucket(unit).load(state.pack(sections | damage(sections), fingerprint=unit.fingerprint, compress=True))


def test_a_checkpoint_of_another_query_is_refused_with_a_way_out():
    """At the start of the stream, and where a bucket has a state."""
    older = Bucket(unit_of([heat()], events_of("A1 B2"))[0])
    for text in ("A AS x ; C? : B AS y", "A{2,3} AS x ; B AS y", "A AS x : B AS y"):
        now, _, _ = unit_of([cepheid.query(f"SELECT * WHERE {text} PARTITION BY k WITHIN 10 seconds")], events_of("A1 B2"))
        for read, data in ((Bucket(now).load, older.dump()), (Bucket(now).check_seal, older.seal())):
            with pytest.raises(SnapshotError, match="another query") as error:
                read(data)
            assert any("since=" in line for line in error.value.help)


def test_the_seal_of_other_queries_is_refused():
    """Also where no bucket that has a state is visited."""
    unit, _, _ = unit_of([heat()], events_of("A1 B2"))
    seal = Bucket(unit).seal()
    Bucket(unit).check_seal(seal)
    other, _, _ = unit_of([heat("11 seconds")], events_of("A1 B2"))
    with pytest.raises(SnapshotError, match="another query"):
        Bucket(other).check_seal(seal)
    with pytest.raises(SnapshotError, match="the checkpoint spreads the keys over 1 buckets, and the query now over 2"):
        Bucket(dataclasses.replace(unit, buckets=2)).check_seal(seal)


def test_too_large_a_state_is_an_error(monkeypatch):
    unit, events, _ = unit_of([heat()], events_of("A1 B2"))
    bucket = Bucket(unit)
    bucket.step([events], 0)
    monkeypatch.setattr(stateful, "STATE_LIMIT", 100)
    with pytest.raises(LimitError, match=r"the limit is 100 \(STATE_LIMIT\)"):
        bucket.dump()
