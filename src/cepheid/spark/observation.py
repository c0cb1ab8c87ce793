"""What a stream does, in numbers and in words: `Listener` for every micro-batch, `why` if nothing comes out.

Comes in: the progress that Spark reports of a streaming query, with the counts that `stream` and `watermark` observe under the names "cepheid",
"cepheid.dropped" and "cepheid.left_out". Goes out: `figures`, flat and with one meaning each; a readable line of them; and the reason why there are
no matches (`reason`). All three are functions of plain dicts; `Listener` and `why` only fetch these from Spark, classic or Connect.
"""

from __future__ import annotations

import datetime as dt
import logging
import re
import sys
from collections import deque
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from cepheid.engine.input.sources import used_types
from cepheid.errors import InputError, quoted
from cepheid.records import record
from cepheid.spark.recognition import Recognition
from cepheid.spark.tasks.bounds import FIRST_TIME, LAST_TIME, YEARS
from cepheid.spark.tasks.visits import COUNTS
from cepheid.spark.translation import cepheid_error
from cepheid.spark.watermark import LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql.streaming.listener import QueryProgressEvent, QueryStartedEvent, QueryTerminatedEvent
    from pyspark.sql.streaming.query import StreamingQuery

    from cepheid.query import Query

Figures = dict[str, Any]

OBSERVED, DROPPED = "cepheid", "cepheid.dropped"
"""The names under which `stream` observes the counts of the state, and of the events dropped for a NULL."""

RECENT = 100
"""Micro-batches that a `Listener` keeps; as many as Spark keeps of a query by default."""

FLOWS = ("late", "matches")
"""Counts of what came and went in a micro-batch: where no bucket was visited, there were none."""

LEVELS = tuple(name for name in COUNTS if name not in {"events", *FLOWS})
"""Counts of what is there after a micro-batch, in the buckets that it visited: where none was, they are not known."""

AHEAD = dt.timedelta(minutes=1)
"""A watermark further ahead of the clock than this was moved by a wrong time, not by a clock that is a little fast."""

NOT_SAID = (None, "null", "None")
"""Offsets of a source that does not say what it has: Spark shows none in three ways."""

LEFT = ("bad_times", "ahead")
"""Counts of events that were left out for their time."""

EPOCH = dt.datetime.fromtimestamp(0, dt.UTC)

LOGGER = logging.getLogger("cepheid.spark")


# ------------------------------------------------------------------------------------------------------------------------ the figures


def figures(progress: Mapping[str, Any]) -> Figures | None:
    """The figures of one micro-batch, from its progress as Spark reports it; None if no query of ours is in it.

    query: its name, else its id; id; batch; time: when it began (datetime, UTC, as all times here). events: that the source gave; relevant: of
    these, the ones that came to the state, the others can change nothing; late: of these, too late; null_keys, null_times: events of any kind that
    were dropped for a NULL; bad_times, ahead: events of any kind that were left out for a time outside the bounds, or after max_ahead; furthest: the
    greatest time of the latter, None if there are none; matches. waiting, keys, state_bytes: events that wait for the watermark, keys with state
    and bytes of state, in the buckets that this micro-batch visited; None if it visited none. watermark: that of this micro-batch, None before the
    first; earliest, greatest: event time of what it read; lag, clock_lag: the watermark behind the greatest event time and behind the clock
    (timedelta). seconds: how long it took. moved: whether the source moved on; behind: whether it says that it has more than was read. known,
    partitions, apart: with partition=, the time up to which all is known, the partitions that are waited for, and how far these are apart in event
    time (timedelta); else, and where no bucket was visited, None.
    """
    observed = {name: _row(row) for name, row in (progress.get("observedMetrics") or {}).items()}
    if OBSERVED not in observed:
        return None
    counts, dropped, left_out = observed[OBSERVED], observed.get(DROPPED, {}), observed.get(LEFT_OUT, {})
    sources = list(progress.get("sources") or ())
    events = progress.get("numInputRows")
    times = {name: instant(text) for name, text in (progress.get("eventTime") or {}).items()}
    started, watermark, greatest = instant(progress.get("timestamp")), times.get("watermark"), times.get("max")
    durations = progress.get("durationMs") or {}
    return {
        "query": progress.get("name") or str(progress.get("id")),
        "id": str(progress.get("id")),
        "batch": progress.get("batchId"),
        "time": started,
        "events": sum(int(source.get("numInputRows") or 0) for source in sources) if events is None else int(events),
        "relevant": int(counts.get("events") or 0),
        **{name: int(counts.get(name) or 0) for name in FLOWS},
        **{name: int(dropped.get(name) or 0) for name in ("null_keys", "null_times")},
        **{name: int(left_out.get(name) or 0) for name in LEFT},
        "furthest": _since_epoch(left_out.get("furthest")),
        **{name: counts.get(name) for name in LEVELS},
        "watermark": watermark,
        "earliest": times.get("min"),
        "greatest": greatest,
        "lag": greatest - watermark if greatest and watermark else None,
        "clock_lag": started - watermark if started and watermark else None,
        "seconds": (durations.get("triggerExecution") or progress.get("batchDuration") or 0) / 1000,
        "moved": any(source.get("startOffset") != source.get("endOffset") for source in sources),
        "behind": any(
            source.get("latestOffset") not in NOT_SAID and source["latestOffset"] != source.get("endOffset") for source in sources
        ),
        "known": _since_epoch(counts.get("known")),
        "partitions": counts.get("partitions"),
        "apart": None if counts.get("apart") is None else dt.timedelta(microseconds=counts["apart"]),
    }


def _since_epoch(micros: int | None) -> dt.datetime | None:
    """A time in microseconds as a datetime, within those that may be."""
    return None if micros is None else EPOCH + dt.timedelta(microseconds=max(FIRST_TIME, min(micros, LAST_TIME)))


def _row(row: Any) -> dict[str, Any]:
    """Observed values: a Row; in a progress as JSON a dict; and in `recentProgress` of Connect the values beside their schema."""
    values = dict(row.asDict() if hasattr(row, "asDict") else row)
    if values.keys() != {"values", "schema"}:
        return values
    return dict(zip((field["name"] for field in values["schema"]["fields"]), values["values"], strict=True))


def instant(text: str | None) -> dt.datetime | None:
    """A time of a progress ("2026-01-01T10:00:00.000Z"); None for none, and for the watermark that nothing has moved yet, 1970.

    A year that Python has no dates for is the last moment it has, or the first.
    """
    if not text:
        return None
    if re.match(r"\+?\d{5,}-", text):
        return dt.datetime.max.replace(tzinfo=dt.UTC)
    if re.match(r"-|0000", text):
        return dt.datetime.min.replace(tzinfo=dt.UTC)
    time = dt.datetime.fromisoformat(text)
    time = time if time.tzinfo else time.replace(tzinfo=dt.UTC)
    return None if time.timestamp() == 0 else time


def line(batch: Figures) -> str:
    """The figures of a micro-batch as one line."""
    dropped = "".join(f", {batch[name]:,} with {what}" for name, what in DROPS.items() if batch[name])
    late = f"{batch['late']:,} late{by_how_much(batch)}"
    parts = [f"{batch['events']:,} events, {batch['relevant']:,} relevant, {late}{dropped}, {batch['matches']:,} matches"]
    if batch["waiting"] is not None:
        parts.append(f"{batch['waiting']:,} wait, {batch['keys']:,} keys, {size(batch['state_bytes'])}")
    if batch["watermark"] is None:
        parts.append("no watermark yet")
    else:
        lags = {"the greatest event time": batch["lag"], "the clock": batch["clock_lag"]}
        parts.append(
            f"watermark {moment(batch['watermark'])}" + "".join(f", {apart(lag)} {what}" for what, lag in lags.items() if lag is not None)
        )
    if batch["known"] is not None:
        parts.append(f"known up to {moment(batch['known'])}, {batch['partitions']} partitions up to {span(batch['apart'])} apart")
    parts.append(f"{batch['seconds']:.3g} s")
    return f"cepheid {batch['query']} #{batch['batch']}: {'; '.join(parts)}"


CATCH_UP = (
    "the source was behind: one watermark stands for all its partitions, which are read unevenly then;"
    ' q.on(.., partition=..), for Kafka "partition", waits for the slowest of them'
)
"""The way out where events are late while a source is behind."""


def warning(batch: Figures) -> str | None:
    """What is wrong with a micro-batch, and what to do; None where nothing is known to be."""
    if not late_in_backlog(batch):
        return None
    return f"cepheid {batch['query']} #{batch['batch']}: warning: {batch['late']:,} events were late while {CATCH_UP}"


def late_in_backlog(batch: Figures) -> bool:
    """Whether events may have been late only because a backlog is read unevenly."""
    return bool(batch["late"] and batch["behind"] and batch["partitions"] is None)


def by_how_much(*batches: Figures) -> str:
    """By how much events of micro-batches were late, at most: that much more lateness takes all that were read; empty where it is not known."""
    behind = [
        each["watermark"] - each["earliest"]
        for each in batches
        if each["late"] and each["watermark"] and each["earliest"] and each["partitions"] is None
    ]
    return f" by up to {span(max(behind))}" if behind and max(behind) > dt.timedelta(0) else ""


NULLS = {"null_keys": "a NULL key", "null_times": "a NULL time"}
DROPS = NULLS | {"bad_times": f"a time outside {YEARS}", "ahead": "a time too far ahead of the clock"}
"""What events were dropped for."""


def moment(time: dt.datetime) -> str:
    """A time as text, in UTC, to the second unless it has parts of one."""
    return time.astimezone(dt.UTC).replace(tzinfo=None).isoformat(" ", "milliseconds" if time.microsecond else "seconds")


def span(length: dt.timedelta) -> str:
    """A length of time as text, in the unit that fits."""
    seconds = abs(length.total_seconds())
    for unit, name in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{_short(seconds / unit)} {name}"
    return f"{_short(seconds)} s"


def apart(lag: dt.timedelta) -> str:
    """How far the watermark is behind something, or ahead of it."""
    return f"{span(lag)} {'behind' if lag >= dt.timedelta(0) else 'ahead of'}"


def size(count: int) -> str:
    """Bytes as text."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{_short(count / unit)} {name}"
    return f"{count} bytes"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


# ------------------------------------------------------------------------------------------------------------------------ the reason


@record(slots=False)
class Situation:
    """What is known when someone asks why nothing comes out.

    batches: the figures of the last micro-batches, at least one, oldest first. active: whether the query runs. asked: what its queries ask for.
    """

    batches: Sequence[Figures]
    active: bool = True
    asked: str = ""

    @property
    def since(self) -> Sequence[Figures]:
        """The micro-batches after the last one with matches; all, if none had any."""
        last = max((number for number, batch in enumerate(self.batches) if batch["matches"]), default=-1)
        return self.batches[last + 1 :]

    def total(self, name: str) -> int:
        """A count over the micro-batches without matches."""
        return sum(batch[name] for batch in self.since)

    def last(self, name: str) -> Any:
        """The last figure that is known."""
        return next((batch[name] for batch in reversed(self.batches) if batch[name] is not None), None)

    def times(self, name: str) -> list[dt.datetime]:
        """What is known of a time, over the micro-batches without matches."""
        return [batch[name] for batch in self.since if batch[name] is not None]

    @property
    def where(self) -> str:
        """Which micro-batches are spoken of."""
        first, last = self.since[0]["batch"], self.since[-1]["batch"]
        return f"in micro-batch {first}" if first == last else f"in the micro-batches {first} to {last}"

    @property
    def late(self) -> str:
        """By how much events were late, as far as it is known."""
        return by_how_much(*self.since)

    @property
    def mover(self) -> str:
        """The event that moved the watermark to where it is, with its time if that is known."""
        times = [each["greatest"] for each in self.batches if each["greatest"] and each["greatest"] >= self.last("watermark")]
        return f"an event with the time {moment(max(times))}" if times else "an event with a wrong time, later than all others,"

    @property
    def backlog(self) -> str:
        """What to do where events were late while the source was behind; empty where none was."""
        return f" While they came, {CATCH_UP}." if any(map(late_in_backlog, self.since)) else ""

    @property
    def left_out(self) -> str:
        """Which events were left out for their time, and their furthest; empty where none was."""
        counts = {DROPS[name]: self.total(name) for name in LEFT if self.total(name)}
        furthest = max(self.times("furthest"), default=None)
        told = "" if furthest is None else f", the furthest {moment(furthest)}"
        return f"were left out: {_reasons(counts)}{told}." if counts else ""


def given(now: Situation) -> str | None:
    """The last micro-batch gave matches."""
    if now.since:
        return None
    batch = now.batches[-1]
    text = (
        f"matches are coming out: {batch['matches']:,} in micro-batch {batch['batch']}, the last. If none arrive, look at what comes after"
        " q.on: a where() that removes all, or a stateful operator (a window, dropDuplicatesWithinWatermark) that itself waits for the watermark."
    )
    return f"{text} {_waiting(now)}" if now.last("waiting") else text


def all_late(now: Situation) -> str | None:
    """What was relevant came too late, since some micro-batch."""
    last = max((number for number, batch in enumerate(now.since) if batch["relevant"] > batch["late"]), default=-1)
    tail = Situation(now.since[last + 1 :])
    late = tail.total("late")
    if not late:
        return None
    watermark, known, greatest = now.last("watermark"), now.last("known"), max(tail.times("greatest"), default=None)
    before = (
        f"at or before the watermark {_shown(watermark)}" if known is None else f"before what is known of all partitions, {moment(known)}"
    )
    text = (
        f"all relevant events {tail.where} are too late: {late:,} came, each {before}{tail.late}."
        f" A larger lateness= would have included them; late=True gives them back.{tail.backlog}"
    )
    if watermark is not None and greatest is not None and greatest < watermark:
        text += (
            f" No event of any kind was after it, the last at {moment(greatest)}: if that is the right time, {now.mover} has moved it, and a"
            " watermark never goes back. Leave such events out before q.on, with stream.where(..), and start with a new checkpoint."
        )
    return text


def far_ahead(now: Situation) -> str | None:
    """An event with a time in the future has made others late."""
    lag, late = now.last("clock_lag"), now.total("late")
    if not late or lag is None or lag >= -AHEAD:
        return None
    return (
        f"{now.mover} has moved the watermark to {_shown(now.last('watermark'))}, {span(lag)} ahead of the clock, and a watermark never goes back:"
        f" {late:,} of {now.total('relevant'):,} relevant events {now.where} were too late{now.late}. Start with a new checkpoint, in"
        ' which q.on(.., max_ahead="1 hour") leaves such events out.'
    )


def all_left_out(now: Situation) -> str | None:
    """No event had a time that can be right."""
    if not now.left_out or sum(now.total(name) for name in LEFT) < now.total("events"):
        return None
    return f"all events {now.where} {now.left_out} Were milliseconds taken for seconds, or local times for those of UTC?"


def _waiting(now: Situation) -> str:
    watermark, known = now.last("watermark"), now.last("known")
    if known is not None:
        return (
            f"{now.last('waiting'):,} or more events wait for the slowest of {now.last('partitions')} partitions of the source: all is known up to"
            f" {moment(known)}, and the greatest times of the partitions are up to {span(now.last('apart'))} apart. A partition without events is"
            " waited for until idle= has passed, while the others give events."
        )
    place = "not there yet" if watermark is None else f"at {moment(watermark)}"
    text = (
        f"{now.last('waiting'):,} or more events wait for the watermark, which is {place}."
        " An event counts when the watermark has passed it, and only later events move the watermark: it is the greatest time so far minus the"
        " lateness (of several sources, the least of them)."
    )
    if now.active:
        return text
    return (
        f"{text} The query has stopped, and its checkpoint keeps the events that wait: the next run continues with them when it reads later"
        " events."
    )


def held(now: Situation) -> str | None:
    """Events wait in the reorder buffer."""
    if not now.last("waiting"):
        return None
    text = _waiting(now)
    others = now.total("relevant") - now.total("late") - now.last("waiting")
    if not now.active:
        return text if others <= 0 else f"{incomplete(now)} {text}"
    if not now.since[-1]["events"]:
        return f"{text} No events came in the last micro-batch: an idle source holds the watermark where it is."
    lagging = [batch["lag"] for batch in now.since if batch["lag"] is not None]
    if len(lagging) > 1 and len({batch["watermark"] for batch in now.since if batch["lag"] is not None}) == 1:
        return (
            f"{text} It did not move {now.where}, though events came, up to {span(max(lagging))} after it. If one of several sources (merge) is idle,"
            " nothing is decided."
        )
    return text if others <= 0 else f"{incomplete(now)} {text} While events come, the last ones always wait."


def no_events(now: Situation) -> str | None:
    """The source gave nothing."""
    if now.total("events"):
        return None
    if any(batch["moved"] for batch in now.since):
        return (
            f"no events came {now.where}, though the source advanced: its new files or messages are empty, or Spark left out all of their rows while"
            f" reading, because no row can be relevant.{now.asked}"
        )
    return f"no events came {now.where}: the source has nothing new. Look at its path or topic, and at where it starts to read."


def null(now: Situation) -> str | None:
    """Nothing relevant was left when events had been dropped for a NULL."""
    dropped = {what: now.total(name) for name, what in NULLS.items() if now.total(name)}
    if now.total("relevant") or not dropped:
        return None
    return (
        f"no relevant event {now.where} was left, events of any type were dropped: {_reasons(dropped)}."
        " A column that from_json or a cast could not read is NULL;"
        ' null_keys="group" takes NULL as a key like any other.'
    )


def irrelevant(now: Situation) -> str | None:
    """No event could change anything."""
    if now.total("relevant"):
        return None
    return (
        f"{now.total('events'):,} events came {now.where}, and none is relevant: each has another type than the query asks for, or does not"
        f" pass its FILTER, or has a NULL in what its equalities compare. Names of types are case-sensitive."
        f"{now.asked}"
    )


def incomplete(now: Situation) -> str:
    """What was read is not complete."""
    keys, watermark = now.last("keys"), now.last("watermark")
    held_by = "" if not keys else f" {keys:,} or more keys have events that a match may still begin with."
    return (
        f"{now.total('relevant'):,} relevant events came {now.where}, all up to the watermark {_shown(watermark)} are decided, without a match."
        f"{held_by} All events of a match have one key (PARTITION BY) and lie within the window; a NOT FOLLOWED BY is decided when the watermark has"
        f" passed its deadline. Run the query over the same events as a table to see.{now.asked}"
    )


CAUSES: tuple[Callable[[Situation], str | None], ...] = (
    given,
    all_left_out,
    far_ahead,
    all_late,
    held,
    no_events,
    null,
    irrelevant,
    incomplete,
)
"""The causes, the one that stands first is told."""


def _reasons(counts: Mapping[str, int]) -> str:
    """Counts with what they are for."""
    return " and ".join(f"{count:,} for {what}" for what, count in counts.items())


def _shown(time: dt.datetime | None) -> str:
    return "(none yet)" if time is None else moment(time)


def reason(batches: Iterable[Figures], *, active: bool = True, busy: bool = False, asked: str = "") -> str:
    """Why there are no matches, as text, from the figures of a query's last micro-batches (oldest first).

    active: whether the query runs; busy: and a micro-batch is being computed. asked: a sentence about what its queries ask for.
    """
    now = Situation(tuple(batches), active, f" {asked}" if asked else "")
    if not now.batches and busy:
        return "no micro-batch with a q.on in it has ended yet: the first one is being computed, which takes longer than those after it."
    if not now.batches:
        return (
            f"no micro-batch with a q.on in it has been run: {'the source has given nothing yet' if active else 'the query stopped before'}."
            f" Spark starts a micro-batch when there is data."
        )
    cause, told = next((cause, text) for cause, text in ((cause, cause(now)) for cause in CAUSES) if text is not None)
    late, relevant = (now.total(name) for name in ("late", "relevant"))
    if now.left_out and cause is not all_left_out:
        told += f" Besides, events {now.where} {now.left_out}"
    if late and cause not in {all_late, far_ahead}:
        told += f" Besides, {late:,} of {relevant:,} relevant events {now.where} were too late{now.late}."
        told += " A lateness= that is larger by more than this takes them." if now.late else ""
        told += now.backlog
    last = max((batch["batch"] for batch in now.batches if batch["matches"]), default=None)
    if last is None or not now.since:
        return told
    return f"{told} The last matches came in micro-batch {last}: if these did not arrive either, look at what comes after q.on."


def why(query: StreamingQuery, asked: Query | Recognition | None = None) -> str:
    """Why nothing comes out of a streaming query, as text: from the progress of its last micro-batches, as Spark reports it.

    query: the result of `writeStream.start`; it may run or have stopped. asked: the Cepheid query, or the result of `on`; the text then names its
    event types. Gives the first of these that is true: the query failed; matches do come; all events were left out for their time; an event of the
    future has made others late; all events are late; events wait for the watermark; no events come; all are dropped for a NULL; none is relevant; no
    match is complete. Asks Spark for the progress it keeps (spark.sql.streaming.numRecentProgressUpdates).
    """
    error = query.exception()
    if error is not None:
        ours = cepheid_error(error)
        told = str(error).strip().splitlines()[0] if ours is None else "; ".join([ours.fact, *ours.help])
        return f"the query has stopped with an error: {told}"
    batches = [batch for batch in map(figures, query.recentProgress) if batch is not None]
    return reason(batches, active=query.isActive, busy=query.status["isTriggerActive"], asked=asked_for(asked))


def asked_for(asked: Query | Recognition | None) -> str:
    """The event types that queries ask for, as a sentence."""
    if asked is None:
        return ""
    queries = asked.queries if isinstance(asked, Recognition) else (asked,)
    types = sorted(frozenset().union(*(used_types(query.tree) for query in queries)))
    return f"Asked for: {quoted(types)}." if types else "Asked for: events of any type."


# ------------------------------------------------------------------------------------------------------------------------ the listener


class Listener(StreamingQueryListener):
    """Reports each micro-batch of each stream with a `q.on`: `spark.streams.addListener(cepheid.spark.Listener())`.

    to: "print" a line, send it to the "logger" `cepheid.spark` (level INFO; WARNING for events that are late while the source is behind), or a
    function that is called with the figures (a dict, see `figures`). keep: how many micro-batches `recent` has. One listener serves all queries of
    a session, also through Spark Connect; it ignores queries without a `q.on`. Its own errors are logged, and never affect the stream. Raises
    InputError for other values.
    """

    def __init__(self, *, to: str | Callable[[Figures], object] = "print", keep: int = RECENT) -> None:
        if not callable(to) and to not in WAYS:
            raise InputError(
                f"to={to!r} is not a way to report", help=f"one of {', '.join(map(repr, WAYS))}, or a function that takes a dict"
            )
        if keep < 1:
            raise InputError(f"keep={keep} is not a number of micro-batches", help="give a number, 1 or more")
        self._tell = to if callable(to) else WAYS[to]
        self._recent: deque[Figures] = deque(maxlen=keep)

    @property
    def recent(self) -> list[Figures]:
        """The figures of the last micro-batches, of all queries, oldest first: dicts as `figures` describes them."""
        return list(self._recent)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing is told: a micro-batch will."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Called for each micro-batch."""
        try:
            batch = figures(event.progress)
            if batch is not None:
                self._recent.append(batch)
                self._tell(batch)
        except Exception:
            LOGGER.exception("the progress of a micro-batch cannot be reported")

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing is told: whoever waits for the query has its error."""


def _print(batch: Figures) -> None:
    sys.stdout.write("".join(f"{each}\n" for each in (line(batch), warning(batch)) if each))
    sys.stdout.flush()


def _log(batch: Figures) -> None:
    LOGGER.info("%s", line(batch))
    if (text := warning(batch)) is not None:
        LOGGER.warning("%s", text)


WAYS: Mapping[str, Callable[[Figures], object]] = {"print": _print, "logger": _log}
"""Where a `Listener` tells what."""
