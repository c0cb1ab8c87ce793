"""NOT FOLLOWED BY on the automaton engine: random queries however their events come, deadlines, what is undecided, and what is kept."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import random
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from enough import Enough, Kept

import cepheid
from cepheid.engine.evaluations.absences import absence
from cepheid.engine.evaluations.absences.absence import ALWAYS, Ends, undecided, vetoed, vetoed_events
from cepheid.engine.evaluations.guards.guarded_choice_run import GuardedChoiceRun
from cepheid.engine.input import payload
from cepheid.engine.input.order import NEVER
from cepheid.engine.input.partitions import Arrived, Partitions
from cepheid.engine.memory import container as state
from cepheid.engine.output.matches import concatenate
from cepheid.engine.run.allowance import Allowance
from cepheid.engine.run.query_state import QueryState
from cepheid.errors import BindError, InputError, LimitError, SnapshotError
from cepheid.testing.differential import WAYS, Case, answers, check, draws, finished, rows_of, ways_of
from cepheid.testing.generators import ABSENT
from cepheid.testing.harness import events as stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cepheid.engine.evaluations.base import Chunk
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.plan.compiled import Compiled

VARIANTS = ("compiled", "python", "checked")


@cache
def absent(seed: int) -> Kept[Case]:
    return Kept(draws(ABSENT, seed=seed))


# ------------------------------------------------------------------------------------------------------------------- random queries


@pytest.mark.parametrize("way", WAYS)
def test_however_the_events_come(way: str, cases: int, seed: int) -> None:
    drawn = Enough(cases // 2, itertools.islice(absent(seed), list(WAYS).index(way) % 2, None, 2), given=3, open=3)
    for case in drawn:
        whole = case.query.run(case.events)
        found = WAYS[way](case, VARIANTS[case.number % len(VARIANTS)])
        check(case, found)
        assert found == rows_of(whole), str(case)
        check(case, rows_of(whole.undecided), case.undecided)
        drawn.seen["given"] += bool(found)
        drawn.seen["open"] += bool(whole.undecided)


def test_given_as_soon_as_decided_and_never_before(cases: int, seed: int) -> None:
    """After each event, with a snapshot now and then: what has come so far is complete up to the time before its last."""
    drawn = Enough(cases // 2, itertools.islice(absent(seed), 0, None, 2), waited=3)
    for case in drawn:
        recognizer = case.query.recognizer(case.events.schema)
        found = []
        times = case.events["ts"].cast("int64").to_pylist()
        for row, time in enumerate(times):
            found += rows_of(recognizer.push(case.events.slice(row, 1)))
            expected, waiting = answers(case.query, case.events.slice(0, row + 1), until=time - 1)
            if recognizer.compiled.absences:
                check(case, found, expected)
                check(case, rows_of(recognizer.undecided()), waiting)
                drawn.seen["waited"] += bool(waiting)
            if row % 3 == 0:
                recognizer.restore(recognizer.snapshot())
        assert found + finished(recognizer) == rows_of(case.query.run(case.events)), str(case)


def test_until_any_time(cases: int, seed: int) -> None:
    """`until=T` is the answer of the events up to T, complete up to T; "end" that of a stream that has ended. A reader gives the same."""
    for case in itertools.islice(absent(seed), cases):
        times = case.events["ts"].cast("int64").to_pylist()
        rng = case.random("until")
        for until in ("end", rng.randint(min(times, default=0) - 1, max(times, default=0) + 5)):
            moment = until if until == "end" or case.events.schema.field("ts").type == pa.int64() else _moment(until)
            read = case.events if until == "end" else case.events.slice(0, sum(time <= until for time in times))
            expected, waiting = answers(case.query, read, until=until)
            for events in (case.events, case.events.to_reader(max_chunksize=3)):
                matches = case.query.run(events, until=moment)
                check(case, rows_of(matches), expected)
                check(case, rows_of(matches.undecided), waiting)


def _moment(microseconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=microseconds)


# ------------------------------------------------------------------------------------------------------------------- vetoes alone


def ends(rows: list[tuple[int, int, int]]) -> Ends:
    return Ends(*(np.array(column, np.int64) for column in zip(*rows, strict=True))) if rows else Ends.none()


def test_vetoes_are_those_of_the_definition(cases: int, seed: int) -> None:
    rng = random.Random(seed)
    drawn = Enough(cases, seen=10)
    for _ in drawn:
        base, far = rng.choice([0, 10**12]), rng.choice([1, 10**9])
        triggers, completed = (
            [(rng.randint(0, 3) * far, base + rng.randint(0, 9), rng.randint(-5, 20)) for _ in range(rng.randint(0, 12))] for _ in range(2)
        )
        duration = rng.choice([0, 1, 5, 1 << 62])
        expected = [any(o == owner and s > p and f - e <= duration for o, s, f in completed) for owner, p, e in triggers]
        assert vetoed(ends(triggers), ends(completed), duration).tolist() == expected
        drawn.seen["seen"] += any(expected)


def test_vetoed_events_are_those_of_the_definition(cases: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what is read of some partitions, from any position on; matches of n lie before, in and behind it."""
    rng = random.Random(seed)
    drawn = Enough(cases, seen=10)
    query = cepheid.query("SELECT * WHERE A NOT FOLLOWED BY B FOR 1")
    (forbidden,) = query.compiled(query.schema(pa.schema({"type": pa.string(), "ts": pa.int64()}))).absences
    for _ in drawn:
        monkeypatch.setattr(absence, "SPARSE", rng.choice([0, 1, 100]))
        base, far = rng.choice([NEVER, 0, ALWAYS - 9]), rng.choice([1, 10**9])
        partitions = rng.choice([[0], rng.sample(range(4), rng.randint(0, 4))])
        read = [(owner, rng.choice([0, 7]), sorted(rng.randint(0, 9) for _ in range(rng.randint(1, 9)))) for owner in partitions]
        lines = [(owner, first + place, base + time) for owner, first, times in read for place, time in enumerate(times)]
        rows = list(range(len(lines) + 2))  # some rows of a batch are in no partition
        rng.shuffle(rows)
        order = None if partitions == [0] and rng.random() < 0.5 else np.array(rows[: len(lines)], np.int64)
        count = len(lines) if order is None else len(rows)
        times = np.full(count, base, np.int64)
        times[slice(None) if order is None else order] = [time for _, _, time in lines]
        cuts = np.array([0, *itertools.accumulate(len(times) for _, _, times in read)][: len(read)], np.int64)
        firsts = np.array([first for _, first, _ in read], np.int64)
        arrived = Arrived(order, cuts, np.array([far * owner for owner in partitions], np.int64), firsts - cuts, count)
        found = [
            [(rng.randint(0, 3) * far, rng.randint(-1, 20), base + rng.randint(0, 9)) for _ in range(rng.choice([0, 1, 9]))]
            for _ in range(2)
        ]
        absences = [
            dataclasses.replace(forbidden, duration=rng.choice([0, 1, 5, 1 << 62]), from_start=rng.random() < 0.2) for _ in range(2)
        ]
        expected: np.ndarray[Any, Any] = np.zeros(count, np.bool_)
        expected[slice(None) if order is None else order] = [
            any(
                o == owner * far and s > position and f - time <= each.duration
                for each, own in zip(absences, found, strict=True)
                if not each.from_start
                for o, s, f in own
            )
            for owner, position, time in lines
        ]
        assert vetoed_events(arrived, times, [ends(own) for own in found], absences).tolist() == expected.tolist()
        drawn.seen["seen"] += bool(expected.any())


MANY_MATCHES = (
    "SELECT * WHERE (A AS x)+ ; B {}",
    "SELECT * WHERE (A AS x)+ ; B {} CONSUME BY ANY",
    "SELECT * WHERE (A AS x)+ ; B {} HAVING COUNT(x) > 2",
    "SELECT COUNT(*) WHERE (A AS x)+ ; B {} HAVING COUNT(x) > 2",
    "SELECT COUNT(*) WHERE (A AS x)+ ; B {}",
    "SELECT NXT * WHERE (A AS x OR A AS y)+ ; B {}",
    "SELECT LAST * WHERE (A AS x OR A AS y)+ ; B {} CONSUME BY PARTITION",
    "SELECT MAX * WHERE (A AS x OR A AS y)+ ; B {}",
    "SELECT MAX * WHERE (A AS x OR A AS y)+ ; B {} WITHIN 70 EVENTS",
    "SELECT NXT * WHERE ANY ; (A AS x OR A AS y)+ ; B {} WITHIN 70 EVENTS",
    "SELECT * WHERE A AS a ; (A AS x)+ ; B AS b {} FILTER a.k = b.k",
    "SELECT COUNT(*) WHERE A AS a ; (A AS x)+ ; B AS b {} FILTER a.k = b.k",
    "SELECT MAX * WHERE A AS a ; (A AS x OR A AS y)+ ; B AS b {} FILTER a.k = b.k",
    "SELECT COUNT(*) WHERE A+ ; B {} NOT FOLLOWED BY E FOR 1 FROM START CONSUME BY PARTITION",
    "SELECT MAX COUNT(*) WHERE (A AS x OR A AS y)+ ; B {} NOT FOLLOWED BY E FOR 1 FROM START CONSUME BY ANY",
    "SELECT MAX COUNT(*) WHERE (A AS x OR A AS y)+ ; B {}",
)


@pytest.mark.parametrize("text", MANY_MATCHES)
def test_what_is_vetoed_is_not_made(text: str) -> None:
    """Each B has at least 2^60 matches, and all are vetoed: no method lists them, and no limit is met."""
    query = cepheid.query(text.format("NOT FOLLOWED BY C FOR 5"))
    kinds = ["A"] * 61 + ["B", "B", "C", "D"]
    events = pa.table({"type": kinds, "k": [1] * len(kinds), "ts": [0] * 63 + [5, 9]})
    assert len(query.run(events, max_bytes=1 << 16)) == 0
    recognizer = query.recognizer(events.schema, max_bytes=1 << 16)
    assert len(recognizer.push(events.slice(0, 63))) == 0
    assert len(recognizer.push(events.slice(63))) + len(recognizer.flush()) == 0


def test_many_matches_that_nothing_vetoes_meet_the_limit() -> None:
    events = pa.table({"type": ["A"] * 61 + ["B", "C"], "k": [1] * 63, "ts": [0] * 62 + [9]})
    for text in (text for text in MANY_MATCHES if "COUNT(*)" not in text):
        with pytest.raises(LimitError):
            cepheid.query(text.format("NOT FOLLOWED BY C FOR 5")).run(events, max_bytes=1 << 16)


def test_deadlines_at_the_ends_of_time() -> None:
    times = np.array([NEVER, -1, 0, ALWAYS])
    assert undecided(times, NEVER, 1 << 62).tolist() == [True] * 4
    assert undecided(times, ALWAYS, 1 << 62).tolist() == [False, False, False, True]
    assert undecided(times, 5, 5).tolist() == [False, False, False, True]
    assert vetoed(ends([(0, 0, ALWAYS - 1)]), ends([(0, 1, ALWAYS)]), 1 << 62).tolist() == [True]
    edge = pa.table({"type": ["A", "A"], "ts": pa.array([NEVER, ALWAYS], pa.int64())})
    query = cepheid.query("SELECT * WHERE A NOT FOLLOWED BY B FOR 10")
    assert [match.start for match in query.run(edge)] == [match.start for match in query.run(edge.to_reader())] == [0]
    assert [match.start for match in query.run(edge, until=ALWAYS).undecided] == [1]
    assert len(query.run(edge, until="end")) == len(query.run(edge.to_reader(), until="end")) == 2


# ---------------------------------------------------------------------------------------------------------------- what comes and when

UNPAID = cepheid.query("SELECT * WHERE A NOT FOLLOWED BY B FOR 5 PARTITION BY k")


def table(text: str) -> pa.Table:
    return pa.Table.from_pylist(stream(text))


def test_null_keys_have_no_partition_but_move_time() -> None:
    events = table("A0(k=1) A1(k=NULL) B2(k=NULL) C9(k=NULL)")
    dropped, grouped = UNPAID.run(events), UNPAID.run(events, null_keys="group")
    assert ([match.start_time for match in dropped], dropped.null_keys) == ([0], 3)
    assert [match.start_time for match in grouped] == [0]
    recognizer = UNPAID.recognizer(events.schema)
    assert [match.start_time for match in recognizer.push(events)] == [0]
    assert recognizer.null_keys == 3


def test_a_veto_is_for_all_matches_of_a_trigger_and_consumption_does_not_see_it() -> None:
    events = table("A0 A1 B2 N3 A4 B5 C30")
    text = "SELECT {} WHERE A ; B NOT FOLLOWED BY N FOR 2 {}"
    starts = [match.start for match in cepheid.query(text.format("*", "")).run(events)]
    assert sorted(starts) == [0, 1, 4]
    consumed = cepheid.query(text.format("*", "CONSUME BY PARTITION"))
    assert [match.start for match in consumed.run(events)] == [4]
    counted = cepheid.query(text.format("COUNT(*)", ""))
    assert [match.measures["count"] for match in counted.run(events)] == [3]
    assert [match.measures["count"] for match in counted.run(events, until=6).undecided] == [3]
    measured = cepheid.query(text.format("duration() AS took", "LIMIT 1")).run(events, until=6)
    assert (len(measured), measured.undecided.to_pylist()[0]["took"]) == (0, 1)
    assert len(cepheid.query(text.format("*", "")).run(events, sample=2)) == 2


def test_a_strategy_chooses_before_the_veto() -> None:
    events = table("A0 B1 A2 B3 N4 B9 C30")
    query = cepheid.query("SELECT NXT * WHERE A ; B NOT FOLLOWED BY N FOR 2")
    assert [(match.start, match.end) for match in query.run(events)] == [(0, 1), (0, 5)]
    assert rows_of(query.run(events)) == rows_of(query.run(events.to_reader(max_chunksize=1)))


@pytest.mark.parametrize("strategy", ["LAST", "NXT", "MAX"])
@pytest.mark.parametrize("clause", ["", "PARTITION BY k", "PARTITION BY k CONSUME BY ANY"])
def test_what_is_vetoed_is_not_chosen(strategy: str, clause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a session each event ends matches, and the last one alone is looked at: the kernel gives no others."""
    looked: list[int] = []
    given = GuardedChoiceRun.chunks

    def counted(self: GuardedChoiceRun, events: Events) -> Iterator[Chunk]:
        for chunk in given(self, events):
            looked.extend(chunk.ends.tolist())
            yield chunk

    monkeypatch.setattr(GuardedChoiceRun, "chunks", counted)
    query = cepheid.query(f"SELECT {strategy} * WHERE A+[<= 5] AS x NOT FOLLOWED BY A FOR 5 {clause}")
    table = pa.Table.from_pylist(stream("A1(k=1) A2(k=1) A4(k=2) A6(k=1) A13(k=2) A14(k=2) A16(k=1) A17(k=1)"))
    whole, read = query.run(table, until="end"), query.run(table.to_reader(max_chunksize=1), until="end")
    assert rows_of(whole) == rows_of(read)
    assert sorted(map(str, whole)) == sorted(map(str, query.run(table, until="end", engine="reference"))) != []
    assert len(looked) == 2 * len(whole)


@pytest.mark.parametrize("strategy", ["LAST", "NXT", "MAX"])
def test_what_is_absent_may_choose_among_values(strategy: str, cases: int, seed: int) -> None:
    query = cepheid.query(f"SELECT * WHERE A AS z NOT FOLLOWED BY (B ; {strategy}(A AS x ; C AS y FILTER x.k = y.v)) FOR 5")
    drawn = Enough(cases // 4, found=2)
    for number in drawn:
        rng = random.Random(f"{seed}/{number}")
        rows = [{"type": rng.choice("ABC"), "ts": ts, "k": rng.randrange(2), "v": rng.randrange(2)} for ts in range(rng.randrange(3, 14))]
        case = Case(seed, number, query, pa.Table.from_pylist(rows), *answers(query, pa.Table.from_pylist(rows)))
        for of in ways_of(case).values():
            check(case, of(case, None))
        drawn.seen["found"] += sum(answer.choose for answer in case.expected.values()) < sum(row["type"] == "A" for row in rows)


def test_several_absences_are_decided_when_the_longest_is() -> None:
    query = cepheid.query("SELECT * WHERE A NOT FOLLOWED BY B FOR 2 NOT FOLLOWED BY (C ; D WITHIN 1) FOR 6")
    recognizer = query.recognizer(table("A0").schema)
    given = {row["ts"]: [m.start_time for m in recognizer.push([row])] for row in stream("A0 A1 A3 B4 C5 D7 A8 C9 D10 X15 X20")}
    # The B vetoes A3, the C ; D in 1 those up to 8; the other C ; D takes 2.
    assert given == {0: [], 1: [], 3: [], 4: [], 5: [], 7: [0], 8: [1], 9: [], 10: [], 15: [], 20: []}
    assert query.compiled(recognizer.compiled.schema).delay == 6


def test_times_of_any_type_and_a_duration_with_a_unit() -> None:
    day = pa.table({"type": ["A", "B", "A", "X"], "ts": pa.array([0, 2, 3, 4], pa.date32())})
    assert [match.start for match in cepheid.query("SELECT * WHERE A NOT FOLLOWED BY B FOR 1d").run(day)] == [0, 2]
    seconds = day.set_column(1, "ts", pa.array([0, 2000, 3000, 4999], pa.timestamp("ms", tz="Europe/Berlin")))
    query = cepheid.query("SELECT * WHERE A NOT FOLLOWED BY B FOR 1999ms")
    assert [match.start for match in query.run(seconds)] == [0, 2]
    assert [match.start for match in query.run(seconds, until=dt.datetime.fromtimestamp(4.998, dt.UTC))] == [0]
    with pytest.raises(InputError, match="is not a time of the column"):
        query.run(seconds, until=dt.datetime(2024, 1, 1))  # noqa: DTZ001 - the error


def test_merged_streams_and_unsorted_tables() -> None:
    sold, paid = table("A0(k=1) A3(k=2)").drop_columns("type"), table("B4(k=1) B9(k=1)").drop_columns("type")
    query = cepheid.query("SELECT * FROM sold, paid WHERE sold NOT FOLLOWED BY paid FOR 5 PARTITION BY k")
    assert [match.keys["k"] for match in query.run({"sold": sold, "paid": paid})] == [2]
    shuffled = table("C9(k=1) B4(k=1) A0(k=1) A3(k=2)")
    assert [match.keys["k"] for match in UNPAID.run(shuffled, sort=True)] == [2]
    assert len(UNPAID.run(shuffled, sort=True, until=7).undecided) == 1
    assert len(UNPAID.run(table("A0(k=1) A0(k=2)"), order="k", until="end")) == 2


# --------------------------------------------------------------------------------------------------------------- until without absence


def test_until_reads_no_further() -> None:
    events = table("A0 B2 A3 B5 B5 B7")
    query = cepheid.query("SELECT * WHERE A ; B")
    expected = [row for row in rows_of(query.run(events)) if row.end <= 4]
    assert rows_of(query.run(events, until=6)) == rows_of(query.run(events, until=5)) == expected
    assert rows_of(query.run(events, until=5, engine="reference"))
    assert len(query.run(events, until=6).undecided) == 0
    assert (len(query.run(events, until=-1)), len(query.run(events, until="end"))) == (0, len(query.run(events)))
    unsorted = events.take([5, 0, 1, 2, 3, 4])
    assert rows_of(query.run(unsorted, sort=True, until=5)) == expected
    read = []

    def batches():
        for batch in events.to_batches(max_chunksize=1):
            read.append(batch)
            yield batch

    reader = pa.RecordBatchReader.from_batches(events.schema, batches())
    assert len(query.run(reader, until=2)) == 1
    assert len(read) == 3
    with pytest.raises(InputError, match="no time column"):
        query.run(events.drop_columns("ts"), until=3)


# ------------------------------------------------------------------------------------------------------------------------ state


def test_the_state_is_that_of_the_last_d() -> None:
    """Of a match of one event nothing is kept but what waits, whatever comes, and the same in the snapshot."""
    query = cepheid.query("SELECT * WHERE A NOT FOLLOWED BY B FOR 100 PARTITION BY k")
    rng = np.random.default_rng(3)
    recognizer, sizes, given = None, [], 0
    for step in range(60):
        types, times, keys = rng.choice(list("AXYXYXYB"), 8000), np.sort(rng.integers(0, 100, 8000)), rng.integers(0, 5000, 8000)
        events = pa.table({"type": types, "ts": times + 100 * step, "k": keys})
        recognizer = recognizer or query.recognizer(events.schema)
        given += len(recognizer.push(events))
        sizes.append((recognizer.memory_usage(), len(recognizer.snapshot())))
    assert given > 1000
    for column in zip(*sizes, strict=True):
        assert max(column[30:]) < 1.5 * max(column[5:15])


def test_keys_that_are_forgotten_and_come_again(cases: int, seed: int) -> None:
    """What a bucket of many keys does: idle slots are given back after each batch, and positions start again."""
    rng = random.Random(seed)
    query = cepheid.query("SELECT * WHERE A+ AS x ; C NOT FOLLOWED BY (B ; C) FOR 6 PARTITION BY k WITHIN 4")
    forgotten = 0
    for _ in range(max(10, cases // 5)):
        times = np.cumsum([rng.choice([0, 1, 1, 2, 9]) for _ in range(40)])
        events = pa.table({"type": [rng.choice("ABC") for _ in times], "ts": times, "k": [rng.randint(0, 4) for _ in times]})
        compiled = query.compiled(query.schema(events.schema))
        partitions = Partitions(compiled.keys, events.schema)
        running = QueryState(compiled, partitions)
        parts = []
        for first in range(0, 40, 4):
            batch = events.slice(first, 4)
            letters, *negated = (alphabet.letters(batch) for alphabet in compiled.alphabets)
            now = int(times[first + 3])
            arrived = partitions.arrive(batch)
            decided = running.feed(letters, times[first : first + 4], batch, arrived, first=first, negated=negated, now=now)
            parts.append(decided.all(Allowance()))
            idle = np.intersect1d(running.expire(now), partitions.live)
            assert running.absences is not None
            assert running.absences.deadline is None or running.absences.deadline >= now
            running.release(idle)
            partitions.forget(idle)
            forgotten += len(idle)
        parts.append(running.advance(int(times[-1]) + 1).all(Allowance()))
        whole, found = query.run(events), concatenate(compiled.layout, parts)
        assert shown(found) == shown(whole)
    assert forgotten > 10


def shown(matches: cepheid.Matches) -> list[dict[str, object]]:
    return matches.to_arrow(events=True).to_pylist()


def test_what_is_decided_does_not_come_again_after_a_restore() -> None:
    events = table("A0(k=1) A3(k=2) B4(k=2) A6(k=1) B20(k=3)")
    recognizer = UNPAID.recognizer(events.schema, lateness=2)
    recognizer.push(events.slice(0, 4))
    assert [match.start_time for match in recognizer.undecided()] == [0, 3]
    snapshot = recognizer.snapshot()
    for _ in range(2):
        recognizer.restore(snapshot)
        assert [match.start_time for match in recognizer.push(events.slice(4))] == [0, 6]
        assert (len(recognizer.flush()), len(recognizer.advance_time(50)), len(recognizer.undecided())) == (0, 0, 0)


def test_a_count_window_is_counted_in_the_events_that_were_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that wait for their deadline are no reason to forget what a match of them may show."""
    monkeypatch.setattr(payload, "LEAST_COMPACTION", 1)
    events = table("A0 A1 B2 D3 D4 D5 D6 D7 D8")
    query = cepheid.query("SELECT * WHERE (A AS x ; B AS y) NOT FOLLOWED BY C FOR 5 WITHIN 3 EVENTS")
    recognizer = query.recognizer(events.schema)
    for row in range(len(events)):
        found = recognizer.push(events.slice(row, 1))
    assert [(match["x"][0]["ts"], match["y"][0]["ts"]) for match in found] == [(1, 2), (0, 2)]


def test_snapshots_of_other_absences_and_damaged_ones() -> None:
    events = table("A0(k=1) B1(k=1) A2(k=1)")
    recognizer = UNPAID.recognizer(events.schema)
    recognizer.push(events)
    snapshot = recognizer.snapshot()
    for other in ("B FOR 6", "C FOR 5", "(B WITHIN 2 EVENTS) FOR 5", "B FOR 5 NOT FOLLOWED BY B FOR 5"):
        query = cepheid.query(f"SELECT * WHERE A NOT FOLLOWED BY {other} PARTITION BY k")
        with pytest.raises(SnapshotError, match="made by another query"):
            query.recognizer(events.schema, snapshot=snapshot)
    fingerprint = recognizer._fingerprint()
    sections = state.unpack(snapshot, fingerprint=fingerprint)
    wrong = {
        "held": np.zeros((4, 9), "<i8").tobytes(),
        "held_events": b"events",
        "absence0": np.array([[7], [0], [0]], "<i8").tobytes(),
        "released": b"",
    }
    assert sections.keys() >= wrong.keys()
    for name, content in wrong.items():
        with pytest.raises(SnapshotError, match="the snapshot is damaged"):
            recognizer.restore(state.pack({**sections, name: content}, fingerprint=fingerprint))
    assert [match.start_time for match in recognizer.restore(snapshot).advance_time(8)] == [2]


def test_an_event_that_waits_and_may_be_shown_was_kept() -> None:
    """Else it would be looked for, once it is read, among events that are there."""
    query = cepheid.query("SELECT * WHERE A NOT FOLLOWED BY B FOR 5")
    recognizer = query.recognizer(table("A0").schema)
    recognizer.push(table("A0 C1 A2"))
    snapshot, fingerprint = recognizer.snapshot(), recognizer._fingerprint()
    sections = state.unpack(snapshot, fingerprint=fingerprint)
    held = np.frombuffer(sections["held"], "<i8").reshape(4, -1).copy()
    assert held[0, 1] != held[0, 0]
    held[0, 1] = held[0, 0]
    with pytest.raises(SnapshotError, match="do not fit together"):
        recognizer.restore(state.pack({**sections, "held": held.tobytes()}, fingerprint=fingerprint))


# ------------------------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("negated", "error", "what", "under"),
    [
        ("B FOR 5s", BindError, "a duration with a unit", "5s"),
        ("B FOR 99999999999999999999", LimitError, "MAX_STEPS", None),
    ],
)
def test_what_cannot_be_evaluated_names_its_place(negated: str, error: type[cepheid.CepheidError], what: str, under: str | None) -> None:
    text = f"SELECT * WHERE A NOT FOLLOWED BY {negated}"
    with pytest.raises(error, match=what) as raised:
        cepheid.query(text).run(table("A0(k=1, v=2)"))
    lines = str(raised.value).splitlines()
    assert text in lines[1]
    if under is not None:
        assert lines[1][lines[2].index("^") :].startswith(under)


def test_inside_a_pattern_it_stays_an_error() -> None:
    for text in ("(A NOT FOLLOWED BY B FOR 5) ; C", "(A NOT FOLLOWED BY B FOR 5)+", "NXT(A NOT FOLLOWED BY B FOR 5)"):
        with pytest.raises(BindError, match="can only be outermost"):
            cepheid.query(f"SELECT * WHERE {text}").run(table("A0"))


def test_without_times_there_is_no_deadline() -> None:
    with pytest.raises(BindError, match="needs a time column"):
        cepheid.query("SELECT * WHERE A NOT FOLLOWED BY B FOR 5").run(table("A0").drop_columns("ts"))


def test_what_is_dropped_is_irrelevant_to_all() -> None:
    schema = table("A0(v=1)").schema

    def compiled(text: str) -> Compiled:
        query = cepheid.query(text)
        return query.compiled(query.schema(schema))

    assert compiled("SELECT * WHERE A NOT FOLLOWED BY B FOR 5").droppable
    assert not compiled("SELECT * WHERE A NOT FOLLOWED BY (B : C) FOR 5").droppable
    assert not compiled("SELECT * WHERE A NOT FOLLOWED BY (B ; C WITHIN 3 EVENTS) FOR 5").droppable
    both = compiled("SELECT * WHERE A ; C WITHIN 3 NOT FOLLOWED BY B FOR 5 NOT FOLLOWED BY C FOR 7")
    assert [len(program.predicates) for program in both.programs] == [2, 1, 1]
    assert (both.delay, both.horizon) == (7, 10)
    assert compiled("SELECT * WHERE A NOT FOLLOWED BY B FOR 5").horizon == 5
    assert compiled("SELECT * WHERE A ; B NOT FOLLOWED BY B FOR 5").horizon is None
