"""What a stream tells of itself: figures, lines and causes from progress as Spark reports it, and from two small streams."""

from __future__ import annotations

import datetime as dt
import json
import logging
import time
import uuid
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql import Row

import cepheid
from cepheid.errors import InputError
from cepheid.spark import Listener, on, replay, why
from cepheid.spark.observation import asked_for, figures, instant, line, reason, size, span, warning
from cepheid.spark.sources import pages
from cepheid.spark.tasks.visits import COUNTS

RECORDED = json.loads((Path(__file__).parent / "progress.json").read_text(encoding="utf-8"))
"""The progress of small streams, as Spark 4.3 gave it, by what happens in them (without what no figure needs)."""

PAIRS = cepheid.query("SELECT * WHERE A AS x ; B AS y PARTITION BY k WITHIN 10 seconds")
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
in_pages = pytest.mark.skipif(not pages.PAGES, reason="before Spark 4.2 a Python source cannot limit a micro-batch")
NO_VISIT = dict.fromkeys(COUNTS)


def at(second):
    return (NOON + dt.timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def progress(batch=0, *, read=0, watermark=None, times=None, observed=(), dropped=None, moved=None, **counts):
    """The progress of a micro-batch: rows read, watermark and (least, greatest) event time in seconds after noon, counts of the state."""
    event_time = {"watermark": "1970-01-01T00:00:00.000Z" if watermark is None else at(watermark)}
    if times is not None:
        event_time |= {"min": at(times[0]), "max": at(times[1]), "avg": at(times[0])}
    counted = {**dict.fromkeys(COUNTS, 0), **counts} if counts else NO_VISIT
    metrics = {"cepheid": counted, **dict(observed)} | ({} if dropped is None else {"cepheid.dropped": dropped})
    moved = bool(read) if moved is None else moved
    return {
        "id": "0f15693c-3db8-4238-b71e-39998d7b531b",
        "name": "pairs",
        "timestamp": at(3600),
        "batchId": batch,
        "batchDuration": 1250,
        "durationMs": {"triggerExecution": 1234},
        "numInputRows": read,
        "eventTime": event_time,
        "observedMetrics": metrics,
        "sources": [{"numInputRows": read, "startOffset": {"logOffset": batch}, "endOffset": {"logOffset": batch + moved}}],
    }


def told(*batches, **known):
    return reason([figures(batch) for batch in batches], **known)


# ------------------------------------------------------------------------------------------------------------------------ figures


def test_the_figures_of_a_micro_batch():
    found = figures(
        progress(7, read=1000, watermark=10, times=(5, 40), events=200, late=3, matches=12, waiting=40, keys=7, state_bytes=12_600)
    )
    expected = {
        "query": "pairs",
        "batch": 7,
        "events": 1000,
        "relevant": 200,
        "late": 3,
        "matches": 12,
        "waiting": 40,
        "keys": 7,
        "state_bytes": 12_600,
        "null_keys": 0,
        "null_times": 0,
        "bad_times": 0,
        "ahead": 0,
        "furthest": None,
        "watermark": NOON + dt.timedelta(seconds=10),
        "lag": dt.timedelta(seconds=30),
        "clock_lag": dt.timedelta(seconds=3590),
        "seconds": 1.234,
        "moved": True,
    }
    assert {name: found[name] for name in expected} == expected
    assert line(found) == (
        "cepheid pairs #7: 1,000 events, 200 relevant, 3 late by up to 5 s, 12 matches; 40 wait, 7 keys, 12.3 KiB; watermark 2026-01-01 12:00:10,"
        " 30 s behind the greatest event time, 59.8 min behind the clock; 1.23 s"
    )


def test_no_bucket_visited_and_no_watermark_yet():
    """Spark sums nothing to NULL: what flows is zero then, what is there is not known."""
    found = figures(progress(0, read=5, times=(0, 1), dropped={"null_keys": 2}))
    assert [found[name] for name in ("relevant", "late", "matches", "null_keys")] == [0, 0, 0, 2]
    assert [found[name] for name in ("waiting", "keys", "state_bytes", "watermark", "lag", "clock_lag")] == [None] * 6
    assert line(found) == "cepheid pairs #0: 5 events, 0 relevant, 0 late, 2 with a NULL key, 0 matches; no watermark yet; 1.23 s"


def test_progress_as_rows_and_as_json_is_the_same():
    batch = progress(1, read=3, watermark=1, times=(0, 1), events=3, dropped={"null_keys": 1})
    rows = {name: Row(**values) for name, values in batch["observedMetrics"].items()}
    assert figures({**batch, "observedMetrics": rows, "id": uuid.UUID(batch["id"])}) == figures(batch)
    assert figures({**batch, "numInputRows": None}) == figures(batch)
    apart = {
        name: Row(values=[*values.values()], schema={"type": "struct", "fields": [{"name": each, "type": "long"} for each in values]})
        for name, values in batch["observedMetrics"].items()
    }
    assert figures({**batch, "observedMetrics": apart}) == figures(batch), "recentProgress of Connect"


@pytest.mark.parametrize(
    ("latest", "behind"),
    [({"logOffset": 1}, False), ({"logOffset": 9}, True), (None, False), ("null", False), ("None", False)],
)
def test_a_source_is_behind_if_it_says_so(latest, behind):
    """One that says nothing has None there, or what Spark makes of it."""
    batch = progress(0, read=5, moved=1, late=3)
    batch["sources"][0]["latestOffset"] = latest
    found = figures(batch)
    assert found["behind"] is behind
    assert ("partition=" in (warning(found) or "")) is behind


def test_other_queries_are_none_of_ours():
    assert figures({"id": "1", "observedMetrics": {}}) is None
    assert figures({"id": "1", "observedMetrics": {"mine": {"rows": 3}}}) is None


def test_instants_spans_and_sizes():
    assert instant("2026-01-01T12:00:00.500Z") == NOON + dt.timedelta(milliseconds=500)
    assert instant("1970-01-01T00:00:00.000Z") is None
    assert instant(None) is None
    assert instant("12026-01-01T00:00:00.000Z") == instant("+12026-01-01T00:00:00.000Z") == dt.datetime.max.replace(tzinfo=dt.UTC)
    assert instant("-0043-03-15T00:00:00.000Z") == instant("0000-12-31T00:00:00.000Z") == dt.datetime.min.replace(tzinfo=dt.UTC)
    assert [span(dt.timedelta(seconds=seconds)) for seconds in (0.25, 119, -600, 7200, 86_400 * 400)] == [
        "0.25 s",
        "119 s",
        "10 min",
        "2 h",
        "400 days",
    ]
    assert [size(count) for count in (12, 2048, 3 << 20, 1 << 30)] == ["12 bytes", "2 KiB", "3 MiB", "1 GiB"]


# ------------------------------------------------------------------------------------------------------------------------ causes


def test_nothing_was_run():
    assert "no micro-batch with a q.on in it has been run: the source has given nothing yet" in told()
    assert "the query stopped before" in told(active=False)


def test_a_query_that_failed():
    query = SimpleNamespace(exception=lambda: ValueError("\n[STREAM_FAILED] no space left\nat .."))
    assert why(query) == "the query has stopped with an error: [STREAM_FAILED] no space left"
    ours = "Traceback (most recent call last):\n ..\ncepheid.errors.InputError: error: a time is NULL\nhelp: drop it\n SQLSTATE: 38000"
    query = SimpleNamespace(exception=lambda: ValueError(f"[PYTHON_EXCEPTION] from the Python worker: {ours}"))
    assert why(query) == "the query has stopped with an error: a time is NULL; drop it"


def test_the_first_micro_batch_is_under_way():
    assert told(busy=True).startswith("no micro-batch with a q.on in it has ended yet: the first one is being computed")
    assert "wait" in told(progress(0, read=5, times=(0, 9), events=5, waiting=5), busy=True)


def test_what_is_decided_without_a_match_is_not_hidden_by_what_waits():
    batches = [progress(n, read=5, watermark=9 * n, times=(10 * n, 10 * n + 9), events=5, waiting=2, keys=1) for n in (1, 2, 3)]
    text = told(*batches)
    assert text.startswith(
        "15 relevant events came in the micro-batches 1 to 3, all up to the watermark 2026-01-01 12:00:27 are decided, without"
    )
    assert "2 or more events wait for the watermark" in text
    assert text.endswith("While events come, the last ones always wait.")
    assert told(*batches, active=False).startswith("15 relevant events came")


def test_matches_are_given():
    text = told(progress(3, read=5, watermark=1, times=(2, 9), events=5, matches=2))
    assert "matches are coming out: 2 in micro-batch 3" in text
    assert "wait for the watermark, which" not in text
    assert "4 or more events wait" in told(progress(3, read=5, watermark=1, times=(2, 9), events=5, matches=2, waiting=4))


def test_all_is_late():
    batches = [progress(n, read=5, watermark=100, times=(10 * n, 40 + n), events=3, late=3) for n in (1, 2)]
    text = told(*batches)
    assert "in the micro-batches 1 to 2 are too late: 6 came, each at or before the watermark 2026-01-01 12:01:40 by up to 90 s" in text
    assert (
        "No event of any kind was after it, the last at 2026-01-01 12:00:42: if that is the right time, an event with a wrong time" in text
    )
    in_time = progress(0, read=5, times=(1, 90), events=5, waiting=2)
    assert told(in_time, *batches) == text, "what was in time before does not hide it"
    mover = progress(0, read=5, times=(1, 110), events=5, waiting=2)
    assert told(mover, *batches) == text.replace("a wrong time, later than all others,", "the time 2026-01-01 12:01:50")
    later = told(progress(1, read=5, watermark=100, times=(10, 140), events=3, late=3))
    assert "wrong time" not in later


def test_a_watermark_ahead_of_the_clock():
    """The event that moved it comes first, before what could be said of the lateness."""
    late = progress(1, read=5, watermark=3600 + 86_400, times=(3000, 3600), events=3, late=3)
    text = told(late)
    assert text.startswith(
        "an event with a wrong time, later than all others, has moved the watermark to 2026-01-02 13:00:00, 24 h ahead of"
    )
    assert "lateness" not in text
    mover = progress(0, read=1, times=(3000, 3700 + 86_400))
    assert told(mover, late) == (
        "an event with the time 2026-01-02 13:01:40 has moved the watermark to 2026-01-02 13:00:00, 24 h ahead of the clock, and a watermark never"
        " goes back: 3 of 3 relevant events in the micro-batches 0 to 1 were too late by up to 24.2 h. Start with a new checkpoint,"
        ' in which q.on(.., max_ahead="1 hour") leaves such events out.'
    )
    some = progress(1, read=5, watermark=3600 + 86_400, times=(3000, 4000 + 86_400), events=3, late=1, waiting=2)
    assert told(some).startswith("an event with the time 2026-01-02 13:06:40 has moved"), "also where not all events are late"
    assert "has moved" not in told(progress(1, read=5, watermark=3601, times=(3000, 4000), events=3, late=1, waiting=2)), "a fast clock"


def test_events_left_out_for_their_time():
    micros = int(NOON.timestamp()) * 1_000_000
    counts = {"cepheid.left_out": {"bad_times": 1, "ahead": 2, "furthest": micros + 7_200_000_000}}
    batch = progress(0, read=3, observed=counts.items())
    found = figures(batch)
    assert [found[name] for name in ("bad_times", "ahead", "furthest")] == [1, 2, NOON + dt.timedelta(hours=2)]
    assert line(found).startswith(
        "cepheid pairs #0: 3 events, 0 relevant, 0 late, 1 with a time outside the years 1 to 9999, 2 with a time too far ahead of the clock, 0"
    )
    assert told(batch) == (
        "all events in micro-batch 0 were left out: 1 for a time outside the years 1 to 9999 and 2 for a time too far ahead of the clock, the"
        " furthest 2026-01-01 14:00:00. Were milliseconds taken for seconds, or local times for those of UTC?"
    )
    text = told(progress(0, read=9, times=(0, 1), observed=counts.items()))
    assert text.startswith("9 events came in micro-batch 0, and none is relevant")
    assert "Besides, events in micro-batch 0 were left out: 1 for a time outside" in text
    never = {"cepheid.left_out": {"ahead": 3, "furthest": 10**18}}
    assert figures(progress(0, read=3, observed=never.items()))["furthest"] == dt.datetime.max.replace(tzinfo=dt.UTC)


def test_events_wait():
    first = progress(0, read=5, times=(0, 9), events=5, waiting=5)
    assert "5 or more events wait for the watermark, which is not there yet" in told(first)
    second = progress(1, watermark=3, events=0, waiting=4)
    assert "4 or more events wait for the watermark, which is at 2026-01-01 12:00:03" in told(first, second)
    assert "an idle source holds the watermark" in told(first, second)
    stopped = told(first, second, active=False)
    assert "the next run continues with them" in stopped
    assert "idle" not in stopped


def test_one_of_several_sources_is_idle():
    batches = [progress(n, read=5, watermark=1, times=(10 * n, 10 * n + 9), events=5, waiting=5 * n) for n in (1, 2, 3)]
    text = told(*batches)
    assert (
        "It did not move in the micro-batches 1 to 3, though events came, up to 38 s after it. If one of several sources (merge) is" in text
    )
    moving = [progress(n, read=5, watermark=n, times=(10 * n, 10 * n + 9), events=5, waiting=5 * n) for n in (1, 2, 3)]
    assert "did not move" not in told(*moving)


def test_no_events():
    assert "no events came in the micro-batches 4 to 5: the source has nothing new" in told(progress(4), progress(5))
    assert "though the source advanced" in told(progress(4, moved=True))


def test_all_dropped_for_a_null():
    text = told(progress(0, read=9, times=(0, 1), dropped={"null_keys": 3, "null_times": 1}))
    assert "no relevant event in micro-batch 0 was left, events of any type were dropped: 3 for a NULL key and 1 for a NULL time" in text


def test_none_is_relevant():
    text = told(progress(0, read=9, times=(0, 1)), asked=asked_for(PAIRS))
    assert "9 events came in micro-batch 0, and none is relevant" in text
    assert text.endswith("Asked for: `A`, `B`.")


def test_no_match_is_complete():
    text = told(progress(0, read=9, watermark=0, times=(1, 2), events=4, keys=2), progress(1, watermark=2, events=0, keys=2))
    assert (
        "4 relevant events came in the micro-batches 0 to 1, all up to the watermark 2026-01-01 12:00:02 are decided, without a match"
        in text
    )
    assert "2 or more keys have events that a match may still begin with" in text


def test_only_what_came_after_the_last_matches_counts():
    before = progress(0, read=9, watermark=1, times=(1, 2), events=9, matches=5)
    text = told(before, progress(1, read=4, watermark=1, times=(3, 4)))
    assert "4 events came in micro-batch 1, and none is relevant" in text
    assert text.endswith("The last matches came in micro-batch 0: if these did not arrive either, look at what comes after q.on.")


def test_some_are_late():
    text = told(progress(0, read=9, watermark=20, times=(1, 30), events=9, late=2, waiting=3))
    assert text.startswith("9 relevant events came")
    assert "3 or more events wait" in text
    assert text.endswith(
        "Besides, 2 of 9 relevant events in micro-batch 0 were too late by up to 19 s. A lateness= that is larger by more than this takes them."
    )


def test_every_situation_has_a_cause(seed):
    """Whatever the figures, something is said, and nothing raises."""
    import random

    chance = random.Random(seed)
    for _ in range(300):
        batches = []
        for number in range(chance.randrange(1, 4)):
            counts = {name: chance.choice([0, 0, 2]) for name in COUNTS} if chance.random() < 0.7 else {}
            times = chance.choice([None, (1, 2), (100, 200)])
            dropped = chance.choice([None, {"null_keys": 1}])
            batches.append(
                progress(number, read=chance.choice([0, 3]), watermark=chance.choice([None, 50]), times=times, dropped=dropped, **counts)
            )
        text = told(*batches, active=chance.random() < 0.5)
        assert text.endswith((".", "?")), text
        for batch in batches:
            seen = figures(batch)
            assert line(seen).startswith(
                f"cepheid {seen['query']} #{seen['batch']}: {seen['events']:,} events, {seen['relevant']:,} relevant"
            )


def test_what_is_asked_for():
    assert asked_for(None) == ""
    assert asked_for(on({"pairs": PAIRS, "one": cepheid.query("SELECT * WHERE C")})) == "Asked for: `A`, `B`, `C`."
    assert asked_for(cepheid.query("SELECT * WHERE ANY")) == "Asked for: events of any type."


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tail", "matches are coming out: 1 in micro-batch 2, the last."),
        ("tail2", "2 events came in the micro-batches 3 to 5, and none is relevant"),
        ("none", "3 events came in the micro-batches 0 to 2, and none is relevant"),
        (
            "late",
            "all relevant events in the micro-batches 1 to 2 are too late: 4 came, each at or before the watermark 2026-01-01 00:16:34",
        ),
        (
            "future",
            "an event with the time 2096-10-02 07:06:40 has moved the watermark to 2096-10-02 07:06:34, 25,518 days ahead of the clock",
        ),
        ("nodata", "no micro-batch with a q.on in it has been run: the source has given nothing yet"),
        ("nulls", "no relevant event in the micro-batches 0 to 2 was left, events of any type were dropped: 3 for a NULL key"),
        ("idle", "2 or more events wait for the watermark, which is at 2025-12-31 23:59:56."),
    ],
)
def test_causes_of_recorded_streams(name, expected):
    batches = [batch for batch in map(figures, RECORDED[name]) if batch is not None]
    assert expected in reason(batches)
    assert [line(batch).partition(":")[0] for batch in batches] == [f"cepheid {batch['query']} #{batch['batch']}" for batch in batches]


# ------------------------------------------------------------------------------------------------------------------------ the listener


def event(batch):
    return SimpleNamespace(progress=batch)


def test_a_listener_prints_logs_calls_and_keeps(capsys, caplog):
    listener = Listener(keep=2)
    for number in range(3):
        listener.onQueryProgress(event(progress(number, read=number)))
    listener.onQueryProgress(event({"id": "1", "observedMetrics": {}}))
    printed = capsys.readouterr().out.splitlines()
    assert [text.partition(":")[0] for text in printed] == ["cepheid pairs #0", "cepheid pairs #1", "cepheid pairs #2"]
    assert [batch["batch"] for batch in listener.recent] == [1, 2]
    with caplog.at_level(logging.INFO, "cepheid.spark"):
        Listener(to="logger").onQueryProgress(event(progress(4)))
    assert caplog.messages == [line(figures(progress(4)))]
    seen = []
    Listener(to=seen.append).onQueryProgress(event(progress(5)))
    assert seen == [figures(progress(5))]
    assert capsys.readouterr().out == ""


def test_a_listener_never_breaks_a_stream(caplog):
    def fails(batch):
        raise ValueError(batch["batch"])

    listener = Listener(to=fails)
    listener.onQueryProgress(event(progress(4)))
    listener.onQueryProgress(event(None))
    assert caplog.messages == ["the progress of a micro-batch cannot be reported"] * 2
    assert len(listener.recent) == 1


def test_what_a_listener_takes():
    with pytest.raises(InputError, match=r"to='file' is not a way to report"):
        Listener(to="file")
    with pytest.raises(InputError, match="keep=0 is not a number of micro-batches"):
        Listener(keep=0)


# ------------------------------------------------------------------------------------------------------------------------ real streams


def run(spark, rows, listener, **options):
    """A stream of (key, second, type), two rows in each micro-batch, to its end."""
    table = pa.table(
        {
            "k": [k for k, _, _ in rows],
            "ts": [NOON + dt.timedelta(seconds=second) for _, second, _ in rows],
            "type": [t for _, _, t in rows],
        }
    )
    matches = replay(spark, table, rows_per_batch=2).transform(PAIRS.on(lateness="5 seconds", **options))
    spark.streams.addListener(listener)
    try:
        query = matches.writeStream.format("noop").trigger(availableNow=True).start()
        query.awaitTermination()
        deadline = time.monotonic() + 30
        while len(listener.recent) < len(query.recentProgress) and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        spark.streams.removeListener(listener)
    return query


@in_pages
def test_a_stream_that_is_listened_to(spark, capsys):
    """Every micro-batch is told; events that are left out move the watermark all the same, where nothing else in the plan asks for their time."""
    listener = Listener()
    rows = [(1, 1, "A"), (1, 2, "B"), (1, 3, "B"), (1, 30, "Z"), (1, 31, "Z"), (1, 90, "A")]
    query = run(spark, rows, listener, null_time="drop")
    recent = listener.recent
    assert recent == [batch for batch in map(figures, query.recentProgress) if batch is not None]
    totals = {name: sum(batch[name] for batch in recent) for name in ("events", "relevant", "late", "matches")}
    assert totals == {"events": 6, "relevant": 4, "late": 0, "matches": 2}
    assert [batch["watermark"] for batch in recent[-2:]] == [NOON + dt.timedelta(seconds=second) for second in (25, 85)]
    assert recent[-2]["matches"] == 2, "what a pattern has no use for moves the watermark too"
    assert len(capsys.readouterr().out.splitlines()) == len(recent)
    text = why(query, PAIRS)
    assert "1 or more events wait for the watermark, which is at 2026-01-01 12:01:25." in text
    assert "the next run continues with them" in text
    assert text.endswith("The last matches came in micro-batch 2: if these did not arrive either, look at what comes after q.on.")


@in_pages
@pytest.mark.connect
def test_a_stream_of_connect(connect):
    """The same figures from what the server sends as JSON."""
    seen = []
    listener = Listener(to=seen.append)
    query = run(connect, [(1, 1, "A"), (1, 2, "B"), (1, 30, "Z"), (1, 90, "Z")], listener)
    assert seen == listener.recent
    recent = [batch for batch in map(figures, query.recentProgress) if batch is not None]
    assert [one.items() - other.items() for one, other in zip(seen, recent, strict=True)] == [set()] * len(seen)
    assert sum(batch["matches"] for batch in seen) == 1
    assert why(query).startswith("matches are coming out: 1 in micro-batch 2")
