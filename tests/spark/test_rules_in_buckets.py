"""Rules in the state of a stream: the operator's own code, over state that dicts hold, against the embedded rules over the whole table."""

from __future__ import annotations

import dataclasses
import datetime as dt
import pickle
import random

import pyarrow as pa
import pytest
from enough import Enough
from operated import Operated
from test_stateful import START, arrivals, buckets_of, timed, unit_of

import cepheid
from cepheid.engine.input.rule_versions import Row
from cepheid.engine.output.rule_table import table_schema
from cepheid.errors import SnapshotError
from cepheid.rules import any_event
from cepheid.spark.sources.rules import RuleRowsReader
from cepheid.spark.tasks import packing
from cepheid.spark.tasks import rules as task_rules
from cepheid.spark.tasks.buckets import DECIDED
from cepheid.spark.tasks.packing import unpack
from cepheid.spark.tasks.visits import BLOB, BUCKET, LISTENS, RULE, SAYS, TOLD
from cepheid.testing import generators
from cepheid.testing.differential import matches_up_to
from cepheid.testing.generators import ABSENT, COMPARING, LAYERED, WAITING

LATENESS, BUCKETS, MOST_MATCHES = 3_000, 3, 300
FRAGMENTS = {"NXT, LAST, MAX": WAITING, "absence": ABSENT, "compared": COMPARING, "definitions": LAYERED}
TIME = pa.timestamp("us", "UTC")
KINDS = [("name", pa.string()), ("query", pa.string()), ("from", TIME), ("until", TIME), ("deleted", pa.bool_()), ("ends", pa.string())]
RULES = pa.schema(KINDS)
AFTER_ALL = dt.datetime.fromtimestamp(4e9, dt.UTC)


def unit_of_rules(table, keys=()):
    """What a stream of rules with these keys knows, its events as they travel, and the columns of its rows."""
    unit, events, _ = unit_of([any_event(keys)], table)
    output = table_schema(table.schema, "ts", keys).append(pa.field(DECIDED, TIME)).append(pa.field("error", pa.string()))
    unit = dataclasses.replace(unit, ruled=True, output=output.serialize().to_pybytes(), buckets=BUCKETS if keys else 1)
    return unit, events.append_column(BUCKET, pa.array(buckets_of(events, unit.buckets))), output


class Stream:
    """A stream of rules, micro-batch by micro-batch. rows: what it has given. keys: of each bucket that was visited, those with a state."""

    def __init__(self, table, keys=()):
        self.unit, self.events, self.output = unit_of_rules(table, keys)
        self.operated = Operated(self.unit)
        self.rows = []

    def batch(self, events, watermark, rules=(), tasks=1):
        given = rules if isinstance(rules, pa.Table) else pa.Table.from_pylist(list(rules), RULES) if rules else None
        found = self.operated.batch(events, watermark, tasks=tasks, rules=given, buckets=self.unit.buckets)
        blobs = [row[BLOB] for row in found if row[BLOB] is not None]
        own = [match for blob in blobs for match in unpack(self.output, pa.array([blob], pa.binary())).to_pylist()[0]]
        self.rows += own
        self.keys = {row[BUCKET]: row["keys"] for row in found if row["keys"] is not None}
        return own

    @property
    def matches(self):
        return sorted(str({name: row[name] for name in row if name not in {DECIDED, "error"}}) for row in self.rows if row["error"] is None)

    @property
    def refused(self):
        return sorted((row["rule"], row["error"].splitlines()[0]) for row in self.rows if row["error"] is not None)


def micros(time):
    return 0 if time is None else (time - dt.datetime.fromtimestamp(0, dt.UTC)) // dt.timedelta(microseconds=1)


def random_rules(rng, fragment, keyed):
    """Rows of a few rules over a random table; keyed: all of them are partitioned by k."""
    table = timed(generators.random_stream(rng, most=16))
    own = dataclasses.replace(fragment, unit="s", partition=0.7 if keyed else 0.3)
    times = sorted(set(table["ts"].to_pylist())) or [dt.datetime.fromtimestamp(START / 1e6, dt.UTC)]
    times += [time + dt.timedelta(seconds=rng.choice([-1, 0.5, 2])) for time in times]
    rows = {}
    for _ in range(rng.randint(1, 5)):
        text = generators.random_query(rng, fragment=own).replace("CONSUME BY ANY", "CONSUME BY PARTITION")
        query = cepheid.query(text)
        if keyed and "k" not in query.compiled(query.schema(table.schema)).written:
            continue
        if matches_up_to(MOST_MATCHES, query, table, order="row", until="end") is None:
            continue
        since = rng.choice([None, *times])
        until = rng.choice([None, None, *(time for time in times if since is None or time > since)])
        name = rng.choice("rst")
        rows[name, since, True] = {"name": name, "query": text, "from": since, "until": until, "ends": rng.choice([None, "finish", "stop"])}
    if rows and rng.random() < 0.5:
        name, since = rng.choice("rst"), rng.choice(times)
        rows[name, since, False] = {"name": name, "from": since, "deleted": True, "ends": rng.choice([None, "stop"])}
    return table, list(rows.values())


def held_back(rng, arrived):
    """Micro-batches and their watermarks; or as they are where another watermark of the query holds Spark's back for some of them."""
    given, behind = list(arrived), rng.choice([0, 0, 1, 2])
    for number, (batch, _) in enumerate(given):
        yield batch, given[max(0, number - behind)][1]
    yield given[-1][0], given[-1][1]


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_a_stream_of_rules_gives_what_the_table_gives(fragment, cases, seed):
    enough = Enough(cases // 6, matched=5, finished=2, keyed=2 * (fragment != "definitions"), late=2)
    for number in enough:
        rng = random.Random(f"{seed}/rules in buckets/{fragment}/{number}")
        keyed = rng.random() < 0.5
        table, rows = random_rules(rng, FRAGMENTS[fragment], keyed)
        stream = Stream(table, ("k",) if keyed else ())
        events = stream.events
        if not rows or len(events) < len(table):
            continue  # a NULL key
        to_come, acting, late = list(rows), [], []
        said = f"CEPHEID_SEED={seed} {fragment} {number}\n" + "\n".join(map(str, rows)) + f"\n{table.to_pylist()}"
        for batch, watermark in held_back(rng, arrivals(rng, events, LATENESS)):
            greatest = max(batch["ts"].to_pylist(), default=None)
            due = [row for row in to_come if row["from"] is None or (greatest and row["from"] <= greatest) or rng.random() < 0.3]
            due = [row for row in due if rng.random() < 0.9]
            to_come = [row for row in to_come if row not in due]
            passed = [row for row in due if watermark and micros(row["from"]) <= watermark * 1000]
            late += passed
            acting += [row for row in due if row not in passed]
            stream.batch(batch, watermark, due, tasks=rng.choice([1, 2]))
        own = cepheid.rules(acting).run(table, order="row", until=AFTER_ALL)
        assert not own.refused, said
        expected = own.to_arrow(keys=["k"] if keyed else []).to_pylist()
        assert [name for name, _ in stream.refused] == sorted(row["name"] for row in late), f"{stream.refused}\n{said}"
        assert stream.matches == sorted(map(str, expected)), said
        assert all("have been read" in error for _, error in stream.refused), said
        enough.seen["matched"] += bool(expected)
        enough.seen["keyed"] += keyed and bool(expected)
        enough.seen["late"] += bool(late)
        enough.seen["finished"] += any(row.get("until") for row in acting) and bool(expected)


PAIRS = "SELECT * WHERE A AS a ; B AS b FILTER a[v > {}] PARTITION BY k WITHIN 100 seconds"
SECONDS = "SELECT * WHERE A AS a ; B AS b PARTITION BY k WITHIN {} seconds"


def at(seconds):
    return dt.datetime.fromtimestamp(START / 1e6 + seconds, dt.UTC)


def rule(name, query, since=None, **more):
    return {"name": name, "query": query, "from": since, **more}


def events_of(*rows):
    return timed([{"type": kind, "ts": second, "k": key, "v": 5} for kind, second, key in rows])


def written(stream):
    """The pages of a bucket that were written since the last call."""
    found = sorted(place[2][0] for place in stream.operated.handle.written if place[1] == "pages" and place[0] == 0)
    stream.operated.handle.written.clear()
    return found


def test_a_rule_that_comes_does_not_rewrite_what_others_know():
    table = events_of(("A", 10, 1), ("A", 11, 1), ("C", 30, 1), ("C", 40, 1), ("B", 50, 1))
    stream = Stream(table)
    watermark = START // 1000
    stream.batch(stream.events.slice(0, 2), 0, [rule("pairs", PAIRS.format(1)), rule("others", SECONDS.format(90).replace("A AS", "D AS"))])
    stream.batch(stream.events.slice(2, 1), watermark + 20_000)
    assert written(stream) == [0, 0, 1, 2]  # what the rules are when they come, and when they begin
    # Other queries, and another one of the family, which has no events so far.
    stream.batch(stream.events.slice(3, 1), watermark + 31_000, [rule("s", SECONDS.format(7), at(32)), rule("t", PAIRS.format(2), at(33))])
    assert written(stream) == [0]  # the event that has been read says nothing
    stream.batch(stream.events.slice(4, 1), watermark + 45_000)
    assert written(stream) == [0, 3]
    stream.batch(stream.events.slice(0, 0), watermark + 200_000)
    assert written(stream) == [1, 2, 3]
    assert [row["rule"] for row in stream.rows] == ["pairs", "pairs"]


def test_a_version_that_is_over_leaves_no_page():
    table = events_of(("A", 10, 1), ("A", 11, 1), ("C", 30, 1), ("B", 50, 1))
    stream = Stream(table)
    watermark = START // 1000
    stream.batch(stream.events.slice(0, 2), 0, [rule("s", SECONDS.format(30), until=at(20)), rule("t", PAIRS.format(2))])
    stream.batch(stream.events.slice(2, 1), watermark + 20_000)
    places = {place[2][0] for place in stream.operated.handle.values if place[1] == "pages" and place[0] == 0}
    assert places == {0, 1, 2}
    stream.batch(stream.events.slice(3), watermark + 45_000)
    stream.batch(stream.events.slice(0, 0), watermark + 60_000)  # a timer looks at it, for a version with a state is over
    places = {place[2][0] for place in stream.operated.handle.values if place[1] == "pages" and place[0] == 0}
    assert len(places) == 2
    stream.batch(stream.events.slice(0, 0), watermark + 300_000)
    assert [row["rule"] for row in stream.rows] == ["t", "t"]


def test_pages_that_are_damaged_are_refused():
    table = events_of(("A", 10, 1), ("C", 30, 1))
    for damage in ("gone", "other", "cut", "before"):
        stream = Stream(table)
        stream.batch(stream.events.slice(0, 1), 0, [rule("pairs", PAIRS.format(1)), rule("s", SECONDS.format(30))])
        values = stream.operated.handle.values
        before = dict(values)
        stream.batch(stream.events.slice(1, 1), START // 1000 + 20_000)
        pages = sorted(place for place in values if place[1] == "pages" and place[0] == 0)
        assert len(pages) == 3
        if damage == "gone":
            del values[pages[1]]
        elif damage == "before":
            values[pages[0]] = before[pages[0]]
        else:
            values[pages[1]] = values[pages[2]] if damage == "other" else values[pages[1]][:-7]
        with pytest.raises(SnapshotError):
            stream.batch(stream.events.slice(1, 1), START // 1000 + 29_000)


def test_a_page_of_another_bucket_is_refused():
    table = events_of(*(("A", 10, key) for key in range(8)), ("C", 30, 1))
    stream = Stream(table, ("k",))
    stream.batch(stream.events.slice(0, 8), 0, [rule("pairs", PAIRS.format(1))])
    stream.batch(stream.events.slice(8, 1), START // 1000 + 20_000)
    stream.batch(stream.events.slice(0, 0), START // 1000 + 21_000)
    values = stream.operated.handle.values
    one, other = (next(place for place in values if place[:2] == (bucket, "pages") and place[2][0] == 1) for bucket in (0, 1))
    assert values[one] != values[other]
    values[one] = values[other]
    with pytest.raises(SnapshotError):
        stream.batch(stream.events.take(pa.array([stream.events[BUCKET].to_pylist().index(0)])), START // 1000 + 29_000)


@pytest.mark.parametrize("names", [pa.array([5, None]), pa.array([True, False]), pa.array([b"r", b"\xff"]), pa.array([1.5, float("nan")])])
def test_names_that_are_no_text_are_refused_and_the_stream_goes_on(names):
    stream = Stream(events_of(("A", 10, 1), ("B", 50, 1)))
    stream.batch(stream.events.slice(0, 1), 0, pa.table({"name": names, "query": [SECONDS.format(90)] * 2}))
    stream.batch(stream.events.slice(1, 1), 1, [rule("r", SECONDS.format(90), at(0))])
    stream.batch(stream.events.slice(0, 0), 4_000_000_000_000)
    errors = [row for row in stream.rows if row["error"]]
    assert len(errors) == 2
    assert all("is not the name of a rule" in row["error"] for row in errors)
    assert len(stream.matches) == 1


def test_rules_of_the_driver_may_have_any_name():
    """As `sources.rules` has them: pickled."""
    stream = Stream(events_of(("A", 10, 1)))
    rows = cepheid.rules([{"name": name, "query": PAIRS, 5: "other"} for name in (5, ("r", 2), "\ud800", None, float("nan"))]).rows
    stream.batch(stream.events, 0, pa.table({RULE: pa.array(list(map(pickle.dumps, rows)), pa.binary())}))
    assert sorted(str(row["rule"]) for row in stream.rows) == ["('r', 2)", "5", "None", "None", "\\ud800"]
    assert RuleRowsReader(rows).newest() == RuleRowsReader(rows[::-1]).newest() != RuleRowsReader(rows[1:]).newest()


def test_rules_go_to_all_buckets_in_pieces(monkeypatch):
    rules = pa.Table.from_pylist([rule("r", PAIRS)], RULES)
    monkeypatch.setattr(packing, "PACK_BYTES", 5000)
    pieces = list(packing.pack_rules(iter(rules.to_batches()), buckets=40))
    assert len(pieces) > 5
    assert all(sum(map(len, piece[BLOB].to_pylist())) <= 5000 for piece in pieces)
    told = {
        bucket: bytes(told) for piece in pieces for bucket, told in zip(piece[BUCKET].to_pylist(), piece[TOLD].to_pylist(), strict=True)
    }
    assert told == {0: SAYS} | dict.fromkeys(range(1, 40), LISTENS)
    assert sum(map(len, pieces)) == 40


def test_a_worker_compiles_each_rule_once_however_many_there_are(monkeypatch):
    monkeypatch.setattr(task_rules, "COMPILED_RULES", 4)
    compiled = []

    def compiler(row):
        compiled.append(row)
        return object()

    rules, rows = task_rules.CompiledRules(compiler), [Row(str(number), "text", "{}", 0) for number in range(20)]
    for _ in range(5):
        rules.turn()
        assert [rules(row) for row in rows] == [rules(row) for row in rows]
    assert compiled == rows
    for _ in range(2):  # others are forgotten
        rules.turn()
        for row in rows[:5]:
            rules(row)
    rules.turn()
    rules(rows[19])
    assert compiled == [*rows, rows[19]]


def test_other_null_keys_are_another_stream():
    unit, *_ = unit_of_rules(events_of(("A", 10, 1)), ("k",))
    assert unit.fingerprint != dataclasses.replace(unit, null_keys="group").fingerprint


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * WHERE A NOT FOLLOWED BY B FOR 9 seconds PARTITION BY k",
        "SELECT MAX * WHERE A+ ; B PARTITION BY k WITHIN 9 seconds HAVING count(A) > 1",
        "EVENT P(k) AS (SELECT last(b.k) AS k WHERE A ; B AS b PARTITION BY k WITHIN 5 seconds) SELECT * WHERE P ; C PARTITION BY k WITHIN 5 seconds",
        "SELECT STRICT * WHERE A ; B PARTITION BY k WITHIN 9 seconds",
    ],
)
def test_keys_of_long_ago_are_forgotten(query):
    table = events_of(*(("AB"[second % 2], second, second // 4) for second in range(400)))
    stream = Stream(table, ("k",))
    keys = {}
    for part in range(20):
        watermark = 0 if not part else START // 1000 + 1000 * (20 * part - 1)
        stream.batch(stream.events.slice(20 * part, 20), watermark, [rule("r", query)] if not part else ())
        keys |= stream.keys
    assert len(keys) == BUCKETS
    assert sum(keys.values()) <= 20, keys
    expected = cepheid.rules([rule("r", query)]).run(table, until=AFTER_ALL).to_arrow(keys=["k"]).to_pylist()
    stream.batch(stream.events.slice(0, 0), 4_000_000_000_000)
    assert stream.matches == sorted(map(str, expected))


def test_an_idle_bucket_is_looked_at_though_a_version_ends_much_later():
    table = events_of(("A", 10, 1), ("C", 30, 1))
    stream = Stream(table)
    stream.batch(stream.events.slice(0, 1), 0, [rule("s", SECONDS.format(30), until=at(1_000_000))])
    stream.batch(stream.events.slice(1, 1), START // 1000 + 20_000)
    assert stream.keys == {0: 1}
    stream.batch(stream.events.slice(0, 0), START // 1000 + 100_000)
    assert stream.keys == {0: 0}
