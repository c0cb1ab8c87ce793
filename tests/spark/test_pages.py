"""Keys in pages: the same matches as one state of all keys, and visits that read and write the pages of their events alone."""

from __future__ import annotations

import dataclasses
import functools
import random

import numpy as np
import pyarrow as pa
import pytest
import test_stateful as bucket_cases
from enough import Enough
from paged import Paged, Pages
from test_parts import QUERIES, events_of

import cepheid
from cepheid.errors import LimitError, SnapshotError
from cepheid.spark.tasks import pages
from cepheid.spark.tasks.buckets import Bucket
from cepheid.spark.tasks.deadlines import Deadlines
from cepheid.testing.differential import matches_up_to

PAIRS = cepheid.query("SELECT * WHERE A ; B WITHIN 2 hours PARTITION BY k")


@pytest.fixture
def forced(monkeypatch):
    """Makes the buckets of streams have pages of so many keys, None: where they cost less."""

    def force(keys):
        monkeypatch.setattr(Paged, "page_keys", keys)
        monkeypatch.setattr(bucket_cases, "Bucket", Paged)

    return force


@pytest.mark.parametrize("fragment", bucket_cases.FRAGMENTS)
def test_a_stream_in_pages_gives_what_the_table_gives(fragment, cases, seed, monkeypatch, forced):
    enough = Enough(cases // 8, matched=1)
    for number in enough:
        forced(random.Random(number).choice([1, 1, 2, 50]))
        query, table, chance = bucket_cases.random_case(f"{seed}/{fragment}/{number}/pages", bucket_cases.FRAGMENTS[fragment])
        bucket_cases.cut_small(monkeypatch, chance)
        unit, events, output = bucket_cases.unit_of([query], table)
        found, _ = bucket_cases.streamed(unit, events, output, chance, count=chance.choice([1, 2]), restart=0.8)
        wanted = bucket_cases.expected(query, table)
        assert sorted(map(bucket_cases.shown, found)) == sorted(map(bucket_cases.shown, wanted)), (
            seed,
            number,
            query.text,
            table.to_pylist(),
        )
        enough.seen["matched"] += bool(found)


@pytest.mark.parametrize("name", QUERIES)
def test_many_keys_in_pages(name, cases, seed, monkeypatch, forced):
    """Pages split and are put together as keys come and go; the form changes where that costs less."""
    queries = [cepheid.query(text) for text in QUERIES[name]]
    enough = Enough(max(3, cases // 20), matched=2)
    for number in enough:
        chance = random.Random(f"{seed}/{name}/{number}/many")
        keys = chance.choice([2, 20, 60])
        table = events_of(chance, 80, keys, texts=chance.choice(["xyz", [f"text {place}" for place in range(40)]]))
        if any(matches_up_to(2000, query, table, order="row", until=None) is None for query in queries):
            continue
        forced(chance.choice([1, 2, 3, None]))
        costs = {
            "FEW_KEYS": 0,
            "KEY_COST": chance.choice([1, 100]),
            "PAGE_COST": chance.choice([1, 100]),
            "CHANGE_COST": 1,
            "SWEPT": 2,
            "MOST_TEXTS": chance.choice([1000, 1 << 16]),
        }
        for constant, value in costs.items():
            monkeypatch.setattr(pages, constant, value)
        unit, events, output = bucket_cases.unit_of(queries, table)
        found, _ = bucket_cases.streamed(unit, events, output, chance, count=chance.choice([1, 2]), restart=chance.choice([0.5, 1]))
        wanted = []
        for place, query in enumerate(queries):
            of_query = {} if len(queries) == 1 else {"query": f"q{place}"}
            wanted += [of_query | row for row in bucket_cases.expected(query, table)]
        assert sorted(map(bucket_cases.shown, found)) == sorted(map(bucket_cases.shown, wanted)), (seed, number)
        enough.seen["matched"] += bool(found)


def visit(bucket, kind, time, keys, *, watermark, query=PAIRS):
    """Events of some keys at a time come to a bucket of a query; the rows that it gives."""
    pieces = [bucket_cases.events_of(f"{kind}{time}", key=key) for key in keys]
    if not pieces:
        return bucket.step([], bucket_cases.seconds(watermark))
    events = bucket_cases.travelling([query], pa.concat_tables(pieces))[0].cast(bucket.unit.travelling)
    return bucket.step([events], bucket_cases.seconds(watermark))


def bucket_of(keys, *, page_keys=4):
    """A bucket in which some keys have an open match since second 1, and its state."""
    Paged.page_keys = page_keys
    unit, _, _ = bucket_cases.unit_of([PAIRS], bucket_cases.events_of("A1"))
    bucket = Paged(unit)
    visit(bucket, "A", 1, keys, watermark=0)
    visit(bucket, "A", 1, [], watermark=2)
    return bucket, bucket.dump()


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    monkeypatch.setattr(Paged, "page_keys", 1)


def test_a_visit_reads_and_writes_what_has_events():
    _, data = bucket_of(range(200))
    assert 40 <= len(data.pages) <= 50
    bucket = Paged(bucket_cases.unit_of([PAIRS], bucket_cases.events_of("A1"))[0]).load(data)
    assert bucket.keys == 200
    visit(bucket, "B", 5, [7, 8, 150], watermark=3)
    assert not bucket.store.calls, "the events wait: nothing is read"
    again = bucket.dump()
    assert not bucket.store.calls
    assert again.pages == data.pages
    bucket = Paged(bucket.unit).load(again)
    step = visit(bucket, "B", 5, [], watermark=6)
    assert step.counts["matches"] == 3
    last = bucket.dump()
    touched = {number for _, number in bucket.store.calls}
    assert len(touched) <= 3
    assert {number for number in last.pages if last.pages[number] != data.pages[number]} == touched
    assert bucket.size == sum(map(len, last.pages.values()))
    assert bucket.keys == 200


def test_idle_pages_are_removed_and_an_idle_bucket_has_none():
    bucket, data = bucket_of(range(200))
    for second in range(600, 20_000, 600):
        bucket = Paged(bucket.unit).load(data)
        visit(bucket, "A", second, [1], watermark=second - 5)
        data = bucket.dump()
    assert bucket.keys == 1
    assert len(data.pages) == 1
    bucket = Paged(bucket.unit).load(data)
    step = visit(bucket, "A", 0, [], watermark=100_000)
    assert bucket.empty
    assert step.deadline is None
    bucket.clear()
    assert not bucket.store.pages


def test_the_number_of_pages_follows_the_number_of_keys():
    bucket, data = bucket_of(range(4))
    for first in range(4, 400, 12):
        bucket = Paged(bucket.unit).load(data)
        visit(bucket, "A", 2 + first, range(first, first + 12), watermark=1 + first)
        data = bucket.dump()
    assert bucket.keys + len(bucket.order) == 400
    assert bucket.pages.count > 80
    sizes = [pages.header(page).keys for page in data.pages.values()]
    assert sum(sizes) == bucket.keys
    assert max(sizes) < 30


def test_what_costs_less_is_the_form(monkeypatch):
    """Few events among many keys: pages, once the change has paid; events of all of them: one value again."""
    bucket, data = bucket_of(range(3000), page_keys=None)
    assert not data.pages
    forms = []
    for second in range(2, 300):
        bucket = Paged(bucket.unit).load(data)
        visit(bucket, "A", second + 2, [second] if second < 250 else range(3000), watermark=second + 1)
        data = bucket.dump()
        forms.append(bool(data.pages))
        if second > 250 and not forms[-1]:
            break
    assert forms[0] is forms[-1] is False
    assert forms[240]
    assert bucket.keys == 3000


def test_what_is_too_long_for_one_value_stays_in_pages(monkeypatch):
    """Else a bucket that is active everywhere could be turned to a value that may not be, and would be again after each restart."""
    monkeypatch.setattr(pages, "FEW_KEYS", 0)
    for most, turned in ((1 << 28, True), (1_000, False)):
        monkeypatch.setattr(pages, "MOST_WHOLE", most)
        bucket, data = bucket_of(range(200))
        Paged.page_keys = None  # as it costs
        unit = dataclasses.replace(bucket.unit, lateness=0)
        for number in range(8):
            bucket = Paged(unit).load(data)
            visit(bucket, "A", 3 + 5 * number, range(200), watermark=2 + 5 * number)
            data = bucket.dump()
        assert bucket.pages.on is not turned


def test_a_page_that_is_too_long_is_an_error(monkeypatch):
    """One key may have most of a bucket: more buckets do not help, as they do where the state of one is too long."""
    bucket, data = bucket_of(range(200))
    monkeypatch.setattr(pages, "PAGE_LIMIT", max(map(len, data.pages.values())))
    bucket = Paged(bucket.unit).load(data)
    visit(bucket, "A", 5, [1] * 500, watermark=3)
    with pytest.raises(
        LimitError, match=rf"has \d+ bytes, and the limit is {pages.PAGE_LIMIT} \(PAGE_LIMIT\)\nhelp: one key has most of it"
    ):
        visit(bucket, "A", 6, [], watermark=7), bucket.dump()


@pytest.mark.parametrize("make", [Bucket, Paged])
def test_positions_wait_for_nothing_when_all_is_idle(make):
    """The number of events of each key stays for ever, so there is no time at which all is forgotten."""
    unit, events, _ = bucket_cases.unit_of([PAIRS], bucket_cases.events_of("A1"), index=True)
    bucket = make(unit)
    bucket.step([events.cast(unit.travelling)], bucket_cases.seconds(0))
    assert bucket.step([], bucket_cases.seconds(8_000)).deadline is None


def test_damaged_pages_are_refused():
    bucket, data = bucket_of(range(40))
    numbers = sorted(data.pages)

    def go_on(change):
        again = Paged(bucket.unit).load(data)
        change(again.store.pages)
        visit(again, "B", 5, range(40), watermark=3)
        visit(again, "B", 5, [], watermark=6)

    go_on(lambda held: held.update({}))
    first, second = numbers[:2]
    for change in (
        lambda held: held.update({first: held[first][:-1]}),
        lambda held: held.update({first: b""}),
        lambda held: held.update({first: held[first][:30] + b"x" + held[first][31:]}),
        lambda held: held.update({first: held[second], second: held[first]}),
        lambda held: held.update({first: held[second]}),
    ):
        with pytest.raises(SnapshotError, match="damaged"):
            go_on(change)
    with pytest.raises(SnapshotError, match="it has pages where there cannot be any"):
        Bucket(bucket.unit).load(data)


def test_a_whole_state_of_before_goes_on_in_pages():
    unit, _, _ = bucket_cases.unit_of([PAIRS], bucket_cases.events_of("A1"))
    old = Bucket(unit)
    visit(old, "A", 1, range(30), watermark=0)
    visit(old, "A", 1, [], watermark=2)
    bucket = Paged(unit).load(old.dump())
    data = bucket.dump()
    assert len(data.pages) > 10
    bucket = Paged(unit).load(data)
    visit(bucket, "B", 5, range(30), watermark=3)
    assert visit(bucket, "B", 5, [], watermark=6).counts["matches"] == 30


# ------------------------------------------------------------------------------------------------------------------------ deadlines

UNANSWERED = cepheid.query("SELECT * WHERE A NOT FOLLOWED BY B FOR 1 hour WITHIN 1 second PARTITION BY k")


def test_a_queue_of_deadlines(cases, seed):
    """However entries come: those before a time are given once it comes, and none is lost in runs, or on the way through bytes."""
    enough = Enough(cases, runs=cases // 4)
    for number in enough:
        chance = random.Random(f"{seed}/{number}/deadlines")
        store, wanted, now = Pages(), [], 0
        queue = Deadlines(store)
        for _ in range(chance.randint(1, 60)):
            some = [
                (now + chance.randint(0, chance.choice([3, 1000])), chance.randint(0, 99)) for _ in range(chance.choice([0, 1, 30, 300]))
            ]
            queue.add(np.array([page for _, page in some], np.int64), np.array([deadline for deadline, _ in some], np.int64))
            wanted += some
            assert queue.least == min((deadline for deadline, _ in wanted), default=None)
            now += chance.choice([0, 1, 50, 2000])
            assert queue.take(now).tolist() == sorted({page for deadline, page in wanted if deadline < now})
            wanted = [(deadline, page) for deadline, page in wanted if deadline >= now]
            enough.seen["runs"] += bool(store.pages)
            if chance.random() < 0.5:
                sections, looked, size = queue.dump(), queue.looked, queue.size
                queue = Deadlines(store)
                queue.load(sections, looked, size)
            assert queue.size == sum(map(len, store.pages.values()))
        assert all(number < 0 for number in store.pages)
        assert queue.take(1 << 60).tolist() == sorted({page for _, page in wanted})
        assert not store.pages


def test_a_queue_is_short_in_the_state_of_its_bucket():
    """It grows as the square root of what waits; a run is written and read once where deadlines come in order."""
    store = Pages()
    queue = Deadlines(store)
    for second in range(20_000):
        queue.take(second)
        queue.add(np.arange(12), np.full(12, 10_000 + second))
    assert sum(section.shape[1] for section in queue.dump().values()) < 5 * 120_000**0.5
    calls = [kind for kind, _ in store.calls]
    assert calls.count("put") < 20_000 * 12 / 200
    assert calls.count("get") <= calls.count("put")


def unanswered(keys, *, page_keys=4):
    """A bucket in which some keys, one each second, wait for an answer."""
    Paged.page_keys = page_keys
    unit, _, _ = bucket_cases.unit_of([UNANSWERED], bucket_cases.events_of("A1"))
    bucket = Paged(unit)
    for key in keys:
        came(bucket, "A", 1 + key, [key], watermark=key)
    came(bucket, "A", 0, [], watermark=1 + max(keys))
    return bucket, bucket.dump()


came = functools.partial(visit, query=UNANSWERED)


def test_a_visit_reads_the_pages_whose_time_has_passed(monkeypatch):
    monkeypatch.setattr(pages, "SWEPT", 0)  # the hand reads others
    bucket, data = unanswered(range(200))
    assert len([number for number in data.pages if number >= 0]) >= 40
    bucket = Paged(bucket.unit).load(data)
    # Nothing is due: no page is read. The first is due when 3600 seconds have passed since it came.
    step = came(bucket, "A", 0, [], watermark=3600)
    assert not bucket.store.calls
    assert step.deadline == bucket_cases.seconds(3601)
    bucket = Paged(bucket.unit).load(bucket.dump())
    step = came(bucket, "A", 0, [], watermark=3602)
    assert step.counts["matches"] == 2
    touched = {number for _, number in bucket.store.calls if number >= 0}
    assert len(touched) <= 2 + 4, "the pages of two keys, and two that are cut in two"
    assert step.deadline == bucket_cases.seconds(3603)
    found = 2
    data = bucket.dump()
    while step.deadline is not None:
        bucket = Paged(bucket.unit).load(data)
        step = bucket.step([], step.deadline)
        found += step.counts["matches"]
        data = bucket.dump()
    assert found == 200
    assert bucket.empty


def test_the_size_has_the_deadlines_too():
    bucket, data = unanswered(range(2_000))
    assert min(data.pages) < 0, "there are runs"
    assert bucket.size == sum(map(len, data.pages.values()))
    bucket, found = Paged(bucket.unit).load(data), 0
    assert bucket.size == sum(map(len, data.pages.values()))
    while found < 1_000:
        step = came(bucket, "A", 0, [], watermark=3602 + found)
        found += step.counts["matches"]
    data = bucket.dump()
    assert bucket.size == sum(map(len, data.pages.values()))


def test_what_waits_when_all_is_idle_is_given():
    """A watermark that comes late by hours: all pages are idle, and those with something that waits are still read."""
    bucket, data = unanswered(range(100))
    bucket = Paged(bucket.unit).load(data)
    step = came(bucket, "B", 90_000, [5], watermark=50_000)
    assert step.counts["matches"] == 100
    assert not bucket.pages.on
    bucket = Paged(bucket.unit).load(bucket.dump())
    assert came(bucket, "A", 0, [], watermark=90_001).counts["matches"] == 0


def test_damaged_deadlines_are_refused():
    bucket, data = unanswered(range(200), page_keys=1)
    runs = [number for number in data.pages if number < 0]
    assert runs

    def go_on(change):
        again = Paged(bucket.unit).load(data)
        change(again.store.pages)
        assert came(again, "A", 0, [], watermark=10_000).counts["matches"] == 200

    go_on(lambda held: held.update({}))
    for change in (
        lambda held: held.pop(runs[0]),
        lambda held: held.update({runs[0]: held[runs[0]][:-1]}),
        lambda held: held.update({runs[0]: b""}),
        lambda held: held.update({runs[0]: held[runs[0]][:12] + b"x" + held[runs[0]][13:]}),
        lambda held: held.update({runs[0]: held[0]}),
        *([lambda held: held.update({runs[0]: held[runs[1]]})] if len(runs) > 1 else []),
    ):
        with pytest.raises(SnapshotError, match="damaged"):
            go_on(change)


ELSEWHERE = cepheid.query("SELECT * WHERE A AS x ; B AS y FILTER y.s != x.s WITHIN 2 hours PARTITION BY k")


def at(bucket, kind, time, texts, *, watermark):
    """Events of some keys with texts."""
    rows = [{"type": kind, "ts": time, "k": key, "v": 1, "s": text} for key, text in texts.items()]
    events = bucket_cases.travelling([ELSEWHERE], bucket_cases.timed(rows))[0].cast(bucket.unit.travelling)
    return bucket.step([events], bucket_cases.seconds(watermark)).counts["matches"]


def test_texts_stay_for_keys_that_are_not_read(monkeypatch):
    """Numbers of texts are those of all pages: what a visit has not read keeps them, and new texts get others. With too many, it is one whole value."""
    Paged.page_keys = 2
    unit, _, _ = bucket_cases.unit_of([ELSEWHERE], bucket_cases.events_of("A1"))
    bucket = Paged(unit)
    at(bucket, "A", 1, {key: f"text {key}" for key in range(40)}, watermark=0)
    at(bucket, "A", 0, {}, watermark=2)
    data = bucket.dump()
    for second in range(4, 84, 2):
        key = second // 2 - 2
        bucket = Paged(unit).load(data)
        # Another one, and the same: one of them is unequal. What is new here must not be taken for what key + 1 has.
        at(bucket, "B", second, {key: f"other {key}", 40 + key: "new"}, watermark=second - 1)
        bucket = Paged(unit).load(bucket.dump())
        assert at(bucket, "B", second + 1, {key: f"text {key}"}, watermark=second) == 1
        bucket = Paged(unit).load(bucket.dump())
        assert at(bucket, "A", 0, {}, watermark=second + 1) == 0
        data = bucket.dump()
        assert bucket.pages.on
    monkeypatch.setattr(pages, "MOST_TEXTS", 100)
    bucket = Paged(unit).load(data)
    assert at(bucket, "B", 90, {1: "text 1"}, watermark=89) == 0
    assert at(bucket, "A", 0, {}, watermark=91) == 0
    data = bucket.dump()
    assert not bucket.pages.on
    assert not data.pages
    bucket = Paged(unit).load(data)
    at(bucket, "B", 95, {5: "text 4", 6: "text 6"}, watermark=94)
    assert at(bucket, "A", 0, {}, watermark=96) == 1
