"""The state of many keys, cut into parts and joined again: any parts together are the state of their keys."""

from __future__ import annotations

import random
import struct
import zlib

import numpy as np
import pyarrow as pa
import pytest
import test_stateful as bucket_cases
from enough import Enough

import cepheid
from cepheid.engine.memory.container import reading
from cepheid.engine.run import packed, parts
from cepheid.engine.run.allowance import Allowance
from cepheid.engine.run.parts import header
from cepheid.errors import LimitError, SnapshotError
from cepheid.spark.tasks import pages
from cepheid.spark.tasks.buckets import form_of
from cepheid.spark.tasks.states import QueryStates

QUERIES = {
    "match graph": ["SELECT * WHERE A+ AS x ; (B OR C) WITHIN 9 seconds PARTITION BY k"],
    "next": ["SELECT NXT * WHERE A ; B+ WITHIN 9 seconds PARTITION BY k"],
    "last": ["SELECT LAST * WHERE A ; B WITHIN 9 seconds PARTITION BY k"],
    "restricted": ["SELECT RESTRICTED * WHERE A ; B ; C WITHIN 9 seconds PARTITION BY k"],
    "guards": ["SELECT * WHERE A AS x ; B AS y FILTER y.v > x.v WITHIN 9 seconds PARTITION BY k"],
    "unequal texts": ["SELECT * WHERE A AS x ; B AS y FILTER y.s != x.s WITHIN 9 seconds PARTITION BY k"],
    "absence of unequal texts": [
        "SELECT * WHERE A AS x NOT FOLLOWED BY (B AS p ; C AS q FILTER q.s != p.s) FOR 4 seconds WITHIN 5 seconds PARTITION BY k",
        "SELECT COUNT(*) WHERE A AS x ; B AS y FILTER y.s != x.s WITHIN 9 seconds PARTITION BY k",
    ],
    "without a window": ["SELECT * WHERE A ; B ; C PARTITION BY k CONSUME BY PARTITION"],
    "counted": ["SELECT COUNT(*) WHERE A ; B+ WITHIN 9 seconds PARTITION BY k"],
    "counted events": ["SELECT COUNT(*) WHERE A ; B WITHIN 5 events PARTITION BY k"],
    "judged": ["SELECT * WHERE A+ AS x ; B WITHIN 9 seconds PARTITION BY k HAVING sum(x.v) > 2"],
    "judged and consumed": ["SELECT * WHERE A AS x ; B AS y WITHIN 9 seconds PARTITION BY k HAVING y.v > x.v CONSUME BY PARTITION"],
    "judged, last and consumed": [
        "SELECT LAST * WHERE A AS x ; B AS y WITHIN 9 seconds PARTITION BY k HAVING y.v > x.v CONSUME BY PARTITION"
    ],
    "judged, next and consumed": [
        "SELECT NXT x WHERE A+ AS x ; B WITHIN 9 seconds PARTITION BY k HAVING count(x) > 1 CONSUME BY PARTITION"
    ],
    "lag": ["SELECT * WHERE A AS x ; B AS y FILTER y[v > lag(v)] WITHIN 9 seconds PARTITION BY k"],
    "absence": ["SELECT * WHERE A ; B NOT FOLLOWED BY C FOR 3 seconds WITHIN 5 seconds PARTITION BY k"],
    "absence of two": [
        "SELECT * WHERE A+ AS x NOT FOLLOWED BY (B ; C) FOR 6 seconds NOT FOLLOWED BY B FOR 1 second WITHIN 4 seconds PARTITION BY k"
    ],
    "absence from the start": ["SELECT * WHERE A ; B NOT FOLLOWED BY C FOR 6 seconds FROM START WITHIN 5 seconds PARTITION BY k"],
    "absence of values": [
        "SELECT NXT * WHERE A AS x ; B AS y NOT FOLLOWED BY (B AS p ; C AS q FILTER q.v > p.v) FOR 4 seconds WITHIN 5 seconds PARTITION BY k"
    ],
    "absence without a window": [
        "SELECT count(x) AS n WHERE A AS x ; B NOT FOLLOWED BY C FOR 4 seconds PARTITION BY k CONSUME BY PARTITION"
    ],
    "two keys": ["SELECT * WHERE A ; B WITHIN 9 seconds PARTITION BY k, s"],
    "together": [
        "SELECT * WHERE A ; B WITHIN 9 seconds PARTITION BY k",
        "SELECT NXT * WHERE A ; C WITHIN 5 seconds PARTITION BY k",
        "SELECT sum(x.v) AS n WHERE A+ AS x ; C WITHIN 5 seconds PARTITION BY k",
    ],
    "together with absences": [
        "SELECT * WHERE A ; B WITHIN 9 seconds PARTITION BY k",
        "SELECT NXT * WHERE A ; C NOT FOLLOWED BY B FOR 2 seconds WITHIN 5 seconds PARTITION BY k",
        "SELECT * WHERE A+ NOT FOLLOWED BY C FOR 7 seconds FROM START WITHIN 5 seconds PARTITION BY k",
    ],
}


def events_of(chance, count=60, keys=9, texts="xyz"):
    times = sorted(chance.randint(0, 20) for _ in range(count))
    rows = [
        {"type": chance.choice("ABC"), "ts": time, "k": chance.randint(1, keys), "v": chance.randint(0, 3), "s": chance.choice(texts)}
        for time in times
    ]
    return bucket_cases.timed(rows)


def state_of(queries, table, *, now=0):
    """The states of queries that have read a table, where no event before `now` (seconds) comes any more."""
    unit, events, _ = bucket_cases.unit_of(queries, table)
    part = QueryStates(unit, range(len(queries)))
    for found in part.read(events.cast(unit.travelling), bucket_cases.stateful.steps(events["ts"]), first=0, now=now_of(now)):
        list(found.pieces())
    return part


def now_of(seconds):
    return bucket_cases.START + seconds * bucket_cases.SECOND


def contents(joined):
    """What is in joined parts, as values."""
    sections, keys, places = joined
    tables = {name: section.to_pylist() for name, section in sections.items() if isinstance(section, pa.Table)}
    others = {name: section for name, section in sections.items() if name not in tables}
    found = {name: section.tolist() if isinstance(section, np.ndarray) else bytes(section) for name, section in others.items()}
    return found, tables, keys.to_pylist(), places.tolist()


def fewer(keys, count):
    """A part for each key."""
    return pages.page_of(pages.key_hashes(keys), count)


@pytest.mark.parametrize("name", QUERIES)
def test_parts_that_are_joined_are_the_state_of_their_keys(name, cases, seed):
    queries = [cepheid.query(text) for text in QUERIES[name]]
    enough = Enough(max(4, cases // 20), several=2)
    for number in enough:
        chance = random.Random(f"{seed}/{name}/{number}")
        part = state_of(queries, events_of(chance), now=chance.choice([0, 15, 21]))
        assert pages.whole(part.compiled) is None
        form, count = form_of(part.unit), chance.choice([1, 2, 3, 8, 50])
        # As it is once it has been loaded: a count drops what has left the window when it reads its events again.
        sections = part.dump(latest=7)
        part = part.fresh()
        part.load(sections, latest=1 << 60, events=100)
        sections = part.dump(latest=7)
        every = dict(form.cut(sections, lambda keys, count=count: fewer(keys, count), latest=7))
        assert list(every) == sorted(every)
        assert sum(header(data).keys for data in every.values()) == part.keys
        assert {header(data).latest for data in every.values()} == {7}
        some = chance.sample(list(every), chance.randint(0, len(every)))
        again, keys, places = form.join([every[number] for number in some])
        assert (fewer(keys, count) == np.array(some, np.int64)[places]).all()
        fresh = part.fresh()
        fresh.load(again | {name: sections[name] for name in form.common}, latest=1 << 60, events=len(sections["seen"][0]) + 60)
        assert fresh.keys == len(keys)
        other = dict(form.cut(fresh.dump(latest=7), lambda keys, count=count: fewer(keys, count), latest=7))
        assert list(other) == sorted(some)
        assert contents(form.join(list(other.values()))) == contents(form.join([every[number] for number in other]))
        enough.seen["several"] += len(some) > 1


def test_what_cannot_be_cut_says_why():
    for text, why in (
        ("SELECT * WHERE A ; B WITHIN 9 seconds", "no PARTITION BY"),
        (
            "SELECT * WHERE A NOT FOLLOWED BY (B AS x ; C AS y FILTER y.s > x.s) FOR 3 seconds PARTITION BY k",
            "the order of texts, or sets of them",
        ),
        ("SELECT * WHERE A AS x ; B AS y FILTER y.s > x.s WITHIN 9 seconds PARTITION BY k", "the order of texts, or sets of them"),
        (
            "SELECT * WHERE A+ AS x WITHIN 9 seconds PARTITION BY k HAVING sum(x.v) > 3 CONSUME BY PARTITION",
            "CONSUME BY with HAVING and a sum",
        ),
        ("SELECT COUNT(*) WHERE A ; B PARTITION BY k", "its evaluation (count)"),
        ("SELECT MAX * WHERE A ; B+ WITHIN 9 seconds PARTITION BY k", "its evaluation (maximal)"),
        ("SELECT * WHERE A ; B WITHIN 9 seconds PARTITION BY k CONSUME BY ANY", "CONSUME BY ANY"),
    ):
        query = cepheid.query(text)
        assert pages.whole([query.compiled(query.schema(bucket_cases.TIMED))]) == why


def test_a_damaged_part_is_found():
    """Each byte of a part is under its checksum; and what a forged one says of itself is looked at."""
    part = state_of([cepheid.query(QUERIES["match graph"][0])], events_of(random.Random(3)))
    form = form_of(part.unit)
    (data,) = dict(form.cut(part.dump(latest=7), lambda keys: np.zeros(len(keys), np.int64), latest=7)).values()
    for place in range(len(data)):
        with pytest.raises(SnapshotError, match="damaged"):
            form.join([data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]])
    for length in (0, 5, 20, len(data) - 1):
        with pytest.raises(SnapshotError, match="damaged"):
            form.join([data[:length]])


def forged(chance, form, data):
    """A part with other numbers, or bytes, under a right checksum."""
    known = header(data)
    body = bytearray(parts.inflated(data[known.start : -4], known.size))
    if chance.random() < 0.3:
        for _ in range(chance.randint(1, 4)):
            body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
    else:
        widths = form._widths
        counts, words, (size,) = packed.unpacked([bytes(body)], widths, np.array([1 << 20]))
        for _ in range(chance.randint(1, 3)):
            run = chance.choice([counts[0], words, words, words])
            place = chance.randrange(len(run))
            value = int(run[place])
            others = [0, -1, 1, value + 1, value - 1, 2 * value, 1 << 31, 1 << 62, -(1 << 63), int(run[chance.randrange(len(run))])]
            run[place] = (chance.choice(others) + (1 << 63)) % (1 << 64) - (1 << 63)
        if (counts >= 0).all() and int((counts * widths).sum()) == len(words):
            body[:size] = packed.packed(counts, words, widths)[0]
        else:  # what `packed` cannot write: the columns are those of other counts
            body[1 + int(widths.sum()) :] = bytes(chance.randrange(256) for _ in range(len(body)))
    keys = chance.choice([known.keys] * 9 + [known.keys + 1])
    due = known.due if data[0] == parts.WAITING else None
    sealed = parts.Header.bytes(keys, len(body) + chance.choice([0] * 9 + [1]), known.latest, due) + parts.deflated(bytes(body))
    return sealed + struct.pack("<I", zlib.crc32(sealed))


def test_numbers_that_are_packed_are_the_same(cases, seed):
    enough = Enough(10 * cases, wide=1)
    for number in enough:
        chance = np.random.default_rng([seed, number])
        widths, most = chance.integers(1, 4, chance.integers(1, 5)), 1 << int(chance.integers(0, 64))
        counts = chance.integers(0, 5, (chance.integers(1, 4), len(widths)))
        words = chance.integers(-most, most, int((counts * widths).sum()), endpoint=False) if most < 1 << 63 else None
        if words is None:
            words = chance.integers(-(1 << 63), (1 << 63) - 1, int((counts * widths).sum()), endpoint=True)
            enough.seen["wide"] += 1
        bodies = packed.packed(counts, words, widths)
        again, found, sizes = packed.unpacked([body + b"more" for body in bodies], widths, np.full(len(counts), 1000))
        assert (again.tolist(), found.tolist(), sizes) == (counts.tolist(), words.tolist(), list(map(len, bodies)))


@pytest.mark.parametrize("name", QUERIES)
def test_a_forged_part_is_refused_or_has_a_meaning(name, cases, seed):
    """Whatever stands in a part under a right checksum: nothing but errors of Cepheid, and no kernel that leaves its arrays."""
    queries = [cepheid.query(text) for text in QUERIES[name]]
    enough = Enough(5 * cases, refused=5)
    for number in enough:
        chance = random.Random(f"{seed}/{name}/{number}/forged")
        if number % 20 == 0:
            part = state_of(queries, events_of(chance), now=chance.choice([0, 15]))
            form = form_of(part.unit)
            sections = part.dump(latest=7)
            whole = [data for _, data in form.cut(sections, lambda keys: fewer(keys, 4), latest=7)]
            unit, events, _ = bucket_cases.unit_of(queries, events_of(chance))
        place = chance.randrange(len(whole))
        try:
            fresh = part.fresh()
            with reading():
                again, _, _ = form.join([forged(chance, form, data) if place == at else data for at, data in enumerate(whole)])
                fresh.load(again | {name: sections[name] for name in form.common}, latest=1 << 60, events=1000)
            for found in fresh.read(events.cast(unit.travelling), bucket_cases.stateful.steps(events["ts"]), first=1000, now=now_of(9)):
                list(found.pieces(Allowance(1 << 20)))
            fresh.expire(1 << 61)
            fresh.dump(latest=7)
        except (SnapshotError, LimitError):
            enough.seen["refused"] += 1


def test_hashes_of_keys_never_change():
    """They say in which page of a checkpoint a key is."""
    table = pa.table(
        {
            "whole": pa.array([0, -1, None], pa.int64()),
            "narrow": pa.array([0, -1, 7], pa.int32()),
            "text": ["", "Zürich", None],
            "flag": [True, False, None],
            "day": pa.array([0, 19_000, None], pa.date32()),
            "time": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
            "real": [0.0, -1.5, float("nan")],
            "exact": pa.array([None, "1.50", "-2"]).cast(pa.decimal128(9, 2)),
            "bytes": pa.array([b"", b"\xff", None], pa.binary()),
        }
    )
    found = {name: [f"{value:016x}" for value in pages.key_hashes(table.select([name])).tolist()] for name in table.column_names}
    assert found == HASHES
    assert pages.key_hashes(table.select(["whole", "text"])).tolist() == WHOLE_AND_TEXT
    assert (pages.key_hashes(pa.table({"real": [-0.0]})) == pages.key_hashes(pa.table({"real": [0.0]}))).all()


HASHES = {
    "whole": ["0000000000000000", "ecf2583909848bb8", "d85d1d823d12cde7"],
    "narrow": ["0000000000000000", "ecf2583909848bb8", "12ae30237b17df14"],
    "text": ["0000000000000000", "6d0bec63f34a12e6", "d85d1d823d12cde7"],
    "flag": ["5692161d100b05e5", "0000000000000000", "d85d1d823d12cde7"],
    "day": ["0000000000000000", "9cd1b1021fdbf13b", "d85d1d823d12cde7"],
    "time": ["0000000000000000", "5692161d100b05e5", "d85d1d823d12cde7"],
    "real": ["0000000000000000", "2d2dde7e775bbcfc", "d85d1d823d12cde7"],
    "exact": ["d85d1d823d12cde7", "3465840d39b46bb3", "424c7483f8ee2886"],
    "bytes": ["0000000000000000", "f0e53b00d00b537a", "d85d1d823d12cde7"],
}
WHOLE_AND_TEXT = [0, 3451629391412044631, 14078861616689155852]
