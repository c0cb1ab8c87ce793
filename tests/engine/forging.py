"""Forged state: real snapshots that are changed at random and sealed again, and what becomes of them.

A forged state is refused when it is loaded, or runs: it may give wrong matches, but raises nothing of its own, and takes neither memory nor time
beyond its size. `run` tries cases in this process, `python forging.py KIND SEED FIRST COUNT [checked]` in one of its own, so that also a crash is seen.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import faulthandler
import importlib
import json
import random
import re
import resource
import struct
import sys
import time
import tracemalloc
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / folder) for folder in ("common", "engine", "upgrade", "spark")]

import upgrade_cases  # noqa: E402 - found by the line above
from slowness import FACTOR, SANITIZED  # noqa: E402

import cepheid  # noqa: E402
from cepheid.engine.memory import container as state  # noqa: E402
from cepheid.errors import CepheidError, SnapshotError  # noqa: E402

SECONDS, BYTES = 2.0 * FACTOR, 200 << 20
"""What a case may take."""

HANG = 60 * FACTOR
"""Seconds after which a case is killed, with a traceback."""

MATCH_BYTES = 1 << 20
"""What its matches may take: a forged graph may have any number of them, as other streams have."""

KEYED = "PARTITION BY k WITHIN 9 seconds"
LONG = " OR ".join(f"(B AS y FILTER y.v > {number})" for number in range(64))
"""More different conditions than a letter has bits."""

EMBEDDED = upgrade_cases.QUERIES | {
    "long next": f"SELECT NXT * WHERE A AS x ; ({LONG}) ; C AS z WITHIN 20 events",
    "long maximal": f"SELECT MAX * WHERE A AS x ; ({LONG}) PARTITION BY k WITHIN 9 seconds",
    "long choice": f"SELECT LAST * WHERE (A AS x : ({LONG})) {KEYED}",
    "long counts": f"SELECT COUNT(*) WHERE A AS x ; ({LONG}) ; C AS z WITHIN 20 events",
    "long absence": f"SELECT * WHERE A AS x ; ({LONG}) NOT FOLLOWED BY C FOR 5 seconds {KEYED}",
    "all": "SELECT * WHERE A AS x ; (A OR B) AS y ; C AS z",
    "all of a few": "SELECT x, z WHERE A AS x ; B+ AS y ; (B OR C) AS z WITHIN 12 events",
    "strict": f"SELECT STRICT * WHERE A AS x ; (B OR A) AS y ; B AS z {KEYED}",
    "any": f"SELECT ANY * WHERE A AS x ; B+ AS y ; C AS z {KEYED} CONSUME BY PARTITION",
    "next without a window": "SELECT NXT * WHERE A AS x ; (B OR C)+ AS y ; B AS z",
    "next by all": "SELECT NXT * WHERE A AS x ; B AS y WITHIN 9 events CONSUME BY ANY",
    "last without a window": "SELECT LAST * WHERE A AS x ; (B OR C)+ AS y ; B AS z PARTITION BY k",
    "last by events": "SELECT LAST x, z WHERE A AS x ; B+ AS y ; B AS z WITHIN 20 events",
    "maximal without a window": "SELECT MAX * WHERE A AS x ; B+ AS y ; C AS z PARTITION BY k CONSUME BY PARTITION",
    "maximal by events": "SELECT MAX * WHERE A+ AS x ; B+ AS y ; C AS z WITHIN 20 events LIMIT 3",
    "per end by all": "SELECT MAX * WHERE (A : B+) AS x ; C AS y PARTITION BY k WITHIN 30 events CONSUME BY ANY",
    "per end without a window": "SELECT MAX * WHERE A AS x ; (B : B)+ AS y ; C AS z CONSUME BY PARTITION",
    "chosen by all": "SELECT LAST * WHERE (A : B+) AS x ; C AS y PARTITION BY k WITHIN 30 events CONSUME BY ANY",
    "chosen without a window": "SELECT NXT * WHERE A AS x ; (B : B)+ AS y ; C AS z CONSUME BY PARTITION",
    "count without a window": "SELECT COUNT(*) WHERE A+ AS x ; B+ AS y PARTITION BY k",
    "count by events": "SELECT COUNT(*) WHERE A+ AS x ; B+ AS y ; C AS z WITHIN 20 events CONSUME BY ANY",
    "trackers of keys": "SELECT * WHERE MAX(A AS x ; B+ AS y) ; C AS z PARTITION BY k WITHIN 40 events",
    "lag": f"SELECT * WHERE A AS x ; B AS y FILTER y.v > lag(y.v, 2) OR lag(x.s) = 'a' {KEYED}",
    "two keys": "SELECT * WHERE A AS x ; B AS y FILTER x.s = y.s PARTITION BY k WITHIN 20 seconds",
    "less": "SELECT * WHERE A AS x ; B AS y FILTER y.v > x.v WITHIN 30 events",
    "less by two": "SELECT * WHERE A AS x ; (A OR B) AS y FILTER y.v > x.v AND 0 - y.v < 0 - x.k WITHIN 20 events",
    "equal or other": f"SELECT * WHERE A AS x ; B AS y ; C AS z FILTER z.s = x.s AND z.v != y.v {KEYED} CONSUME BY PARTITION",
    "less by all": "SELECT * WHERE A AS x ; B AS y ; (B OR C) AS z FILTER y.k >= x.k AND z.v > x.v WITHIN 20 events CONSUME BY ANY",
    "less without a window": "SELECT * WHERE (A OR C) AS x ; B AS y FILTER x.v < y.v AND y.k = x.k LIMIT 3",
    "negated by keys": f"SELECT * WHERE A AS x ; B AS y UNLESS (C ; NOT D ;[<= 4 seconds] C) {KEYED} CONSUME BY PARTITION",
    "restricted without a bound": "SELECT RESTRICTED x, z WHERE A AS x ; (B AS y ALL (C AS z OR D)) ; PROJECT NONE (A ; B) CONSUME BY PARTITION",
    "made by all": "EVENT P(v) AS (SELECT y.v AS v WHERE A AS x ; B AS y PARTITION BY k WITHIN 9 seconds)"
    " SELECT LAST p, z WHERE P+ AS p ; C AS z PARTITION BY k WITHIN 20 seconds HAVING count(p) > 1 CONSUME BY PARTITION",
    "made without a window": "EVENT P(v) AS (SELECT LAST y.v AS v WHERE A AS x ; B AS y PARTITION BY k) EVENT Q(v) AS (SELECT p.v AS v"
    " WHERE P AS p ; NOT P ; C) SELECT * WHERE D ; Q AS q NOT FOLLOWED BY Q FOR 3 seconds",
    "guided": "SELECT * WHERE A AS w ; (A OR B)+ AS x ; C AS y PARTITION BY k WITHIN 20 seconds HAVING sum(x.v) > 120 CONSUME BY PARTITION",
    "guided per end": "SELECT ANY * WHERE (A OR B):+ AS x PARTITION BY k HAVING sum(x.v) > 90 CONSUME BY PARTITION",
    "two absences": f"SELECT NXT * WHERE A AS x ; B AS y NOT FOLLOWED BY (C ; A) FOR 5 seconds NOT FOLLOWED BY D FOR 3 seconds {KEYED}",
}
LATENESS = upgrade_cases.LATENESS | {"next": "3s", "two absences": "2s", "all of a few": "4s"}

BUCKETS = [
    ["match_graph"],
    ["next"],
    ["last"],
    ["maximal"],
    ["per_end"],
    ["count"],
    ["trackers"],
    ["absence"],
    ["absence_from_start"],
    ["measures"],
    ["lag"],
    ["lag", "match_graph"],
    ["guarded"],
    ["guarded_ranks"],
    ["negated"],
    ["restricted"],
    ["guarded_count", "guarded_choice", "guarded"],
    ["match_graph", "next", "last", "maximal", "per_end", "count", "trackers"],
    ["match_graph", "last", "maximal", "absence"],
    ["made"],
    ["made_later"],
    ["next", "made", "made by all"],
    ["guided"],
    ["match_graph", "guided per end", "guided"],
]


# ------------------------------------------------------------------------------------------------------------------- what is changed

NUMBERS = {
    **dict.fromkeys(("counters", "slots", "starts_time", "rows", "words", "rings", "entries", "configurations", "orders"), "<i8"),
    **dict.fromkeys(("positions", "times", "end_numbers", "end_records", "end_positions", "end_times", "end_places"), "<i8"),
    **dict.fromkeys(
        (
            "payload_places",
            "places",
            "lag_places",
            "seen",
            "written_seen",
            "held",
            "absence",
            "negated",
            "released",
            "waiting",
            "waiting_marks",
            "standing",
            "layer_rows",
            "layer_last",
            "lines",
            "past",
            "begun",
            "absence_begun",
            "having_last",
            "consuming",
            "growing",
        ),
        "<i8",
    ),
    **dict.fromkeys(("starts_position", "list_macro", "list_max", "list_length", "list_entries", "cells"), "<i4"),
    **dict.fromkeys(("letter_numbers", "guarded_slots", "guarded_starts", "guarded_entries", "guarded_graph", "guarded_ranks"), "<i8"),
    **dict.fromkeys(("tracker_states", "payload_rows"), "<i4"),
    **dict.fromkeys(("letters", "end_letters", "counts"), "<u8"),
    "labels": "<u2",
    "macros": "u1",
}
NAMED, TABLES = ("recognizer", "bucket"), ("keys", "written", "payload", "pending", "late", "held_events", "lag_events", "events")
EXTREMES = (
    -1,
    0,
    1,
    2,
    61,
    62,
    63,
    64,
    4095,
    15_000_000,
    2**30,
    2**31 - 1,
    2**31,
    2**32,
    2**53,
    2**62 - 1,
    2**62,
    2**63 - 1,
    -(2**31),
    -(2**63),
)


def base_name(name):
    """What a section holds: its name without the numbers of queries and absences."""
    return re.sub(r"^(layered \d+/)?((layer|held)?\d+/)?((absence|negated)\d+/)?(guide\.)?", "", name).split(" ")[0].rstrip("0123456789")


def wrapped(value, kind):
    """A number as one of a type, whatever of it fits."""
    return np.array([value & (1 << 64) - 1], np.uint64).astype(kind)[0]


def forged_numbers(chance, content, kind):
    numbers = np.frombuffer(content[: len(content) // np.dtype(kind).itemsize * np.dtype(kind).itemsize], kind).copy()
    if not len(numbers):
        return bytes(chance.randrange(40))
    how = chance.random()
    start, width = chance.randrange(len(numbers)), chance.choice([1, 1, 2, 3, 4, 7])
    if how < 0.75:
        for _ in range(chance.choice([1, 1, 2, 4])):
            place = chance.randrange(len(numbers))
            old = int(numbers[place])
            options = [
                old + 1,
                old - 1,
                old + chance.randint(-9, 9),
                -old,
                ~old,
                chance.choice(EXTREMES),
                int(chance.choice(numbers)),
                old * 2,
            ]
            numbers[place] = wrapped(chance.choice(options), numbers.dtype)
    elif how < 0.8:
        numbers = np.delete(numbers, slice(start, start + width))
    elif how < 0.85:
        numbers = np.insert(numbers, start, numbers[start : start + width])
    elif how < 0.9:
        numbers[start : start + width] = numbers[start : start + width][::-1]
    elif how < 0.94:
        numbers[start:] = wrapped(chance.choice(EXTREMES), numbers.dtype)
    elif how < 0.97:
        chance.shuffle(numbers)
    else:
        return numbers.tobytes() + bytes(chance.randrange(1, 9))
    return numbers.tobytes()


def forged_names(chance, content):
    try:
        numbers = json.loads(content)
    except ValueError:  # it has been changed before
        return content[::-1]
    name = chance.choice(list(numbers))
    wrong = [None, "", "7", [], {}, 1.5, True, 10**400, -(10**30), float("inf"), [1 << 70], ["x"], *EXTREMES]
    how = chance.random()
    if how < 0.8:
        numbers[name] = chance.choice([*wrong, numbers[name] + chance.randint(-3, 3) if isinstance(numbers[name], int) else 0])
    elif how < 0.9:
        del numbers[name]
    else:
        return chance.choice([b"", b"7", b"null", b"[]", b"[" * 100_000, b"\xff\xfe", b'{"a": ', b'{"latest": 1e999}'])
    return json.dumps(numbers).encode()


def forged_table(chance, content):
    how = chance.random()
    if how < 0.25:
        changed = bytearray(content)
        for _ in range(chance.choice([1, 1, 2, 8])):
            if changed:
                changed[chance.randrange(len(changed))] = chance.choice([0, 1, 127, 128, 255, chance.randrange(256)])
        return bytes(changed)
    if how < 0.3:
        return content[: chance.randrange(len(content) + 1)]
    try:
        table = state.table_of(content)
    except (pa.ArrowException, OSError):  # it has been changed before
        return content[::-1]
    count = len(table)
    if how < 0.5:
        rows = [chance.randrange(count) for _ in range(chance.choice([0, 1, count, count + 1, max(count - 1, 0)]))] if count else []
        return state.table_bytes(table.take(pa.array(rows, pa.int64())))
    if not table.num_columns:
        return state.table_bytes(pa.table({"x": pa.array([1])}))
    place = chance.randrange(table.num_columns)
    field, column = table.schema.field(place), table.column(place)
    if how < 0.6:
        return state.table_bytes(table.remove_column(place))
    if how < 0.7:
        return state.table_bytes(table.set_column(place, chance.choice(["", "x", *table.column_names]), column))
    if how < 0.8:
        other = chance.choice([pa.nulls(count), pa.nulls(count, field.type), pa.array(["x"] * count), pa.array(np.arange(count) * 1.5)])
        return state.table_bytes(table.set_column(place, field.name, other))
    if how < 0.85:
        return state.table_bytes(table.set_column(place, pa.field(field.name, field.type, nullable=False), column))
    if not (pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type)) or not count:
        return state.table_bytes(table.slice(count // 2))
    values = column.cast(pa.int64()).to_pylist()
    values[chance.randrange(count)] = chance.choice([None, *(extreme for extreme in EXTREMES)])
    least = pa.array(values, pa.int64())
    return state.table_bytes(table.set_column(place, field, least.cast(field.type, safe=False)))


def forged_section(chance, name, content):
    base = base_name(name)
    if chance.random() < 0.03:
        return chance.choice([b"", bytes(8), b"\xff" * 8, content[: len(content) // 2], content + content, content[::-1]])
    if base in NAMED and content[:1] == b"{":
        return forged_names(chance, content)
    if base in TABLES and content[:4] == b"\xff" * 4:
        return forged_table(chance, content)
    return forged_numbers(chance, content, NUMBERS.get(base, "u1"))


def forged(chance, sections, others):
    """Sections that differ in one to three places from real ones; others: those of other states."""
    sections = dict(sections)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        how, name = chance.random(), chance.choice(list(sections))
        if how < 0.84:
            # Half of the time what says where things are: the rest is mostly events.
            if chance.random() < 0.5:
                name = chance.choice([each for each in sections if base_name(each) not in TABLES])
            sections[name] = forged_section(chance, name, sections[name])
        elif how < 0.87:
            del sections[name]
        elif how < 0.9:
            twin = chance.choice(list(sections))
            sections[name], sections[twin] = sections[twin], sections[name]
        elif how < 0.93:
            other = chance.choice(others)
            sections[name] = other.get(name, chance.choice(list(other.values())))
        elif how < 0.96:
            renumber(chance, sections)
        else:
            sections[chance.choice([f"99/{name}", f"-1/{name}", f"x/{name}", f"{name}7", ""])] = sections[name]
    return sections


def renumber(chance, sections):
    """Write another number for one that is in several sections: a partition that everybody agrees on, at another place."""
    content = sections.get("seen", b"")
    seen = np.frombuffer(content[: len(content) // 8 * 8], "<i8")
    if not len(seen):
        return
    old, new = int(chance.choice(seen)), chance.choice([15_000_000, 2**31 - 2, 2**31, 2**40, 2**62 - 1, 2**62, 3, 40])
    step = new - old
    for name, content in sections.items():
        if NUMBERS.get(base_name(name)) == "<i8" and base_name(name) not in ("counters", "entries", "starts_time", "times"):
            numbers = np.frombuffer(content[: len(content) // 8 * 8], "<i8").copy()
            for value in (old, old + 1):
                numbers[numbers == value] = wrapped(value + step, "<i8")
            sections[name] = numbers.tobytes() + content[len(content) // 8 * 8 :]


def forged_bytes(chance, data, fingerprint):
    """A container whose parts are changed behind the fingerprint, sealed again."""
    head = state._HEADER.size + len(fingerprint)
    changed = bytearray(data[:-4])
    for _ in range(chance.choice([1, 2, 4])):
        changed[chance.randrange(head, min(len(changed), head + chance.choice([8, 64, 1 << 20])))] = chance.choice([0, 1, 127, 128, 255])
    return bytes(changed) + struct.pack("<I", zlib.crc32(changed))


# ------------------------------------------------------------------------------------------------------------------------ what is run


@dataclasses.dataclass
class Case:
    """A state, what loads forged ones of it, and what uses them then.

    sections: of a real state. fingerprint: its own. compress: how it is packed. go_on: given bytes, loads them and goes on (a generator: after the first
    step they are accepted).
    """

    name: str
    data: bytes
    sections: dict[str, bytes]
    fingerprint: bytes
    compress: bool
    go_on: object


def random_rows(chance, count=70):
    rows = [
        [chance.choice("AABBCCD"), second, chance.choice([1, 2, 3]), second, chance.choice(["p", "q", None])] for second in range(count)
    ]
    return sorted(rows, key=lambda row: row[1] + chance.random() * 3)


def embedded(chance, variant):
    """A case for each query, over random events."""
    schema = upgrade_cases.schema_of({"schema": upgrade_cases.SCHEMA})
    for name, text in EMBEDDED.items():
        query, late = cepheid.query(text), LATENESS.get(name)
        rows = random_rows(chance)
        if late is None:
            rows.sort(key=lambda row: row[1])
        options = {
            "lateness": late,
            "order": ["v"] if late else (),
            "null_keys": chance.choice(["drop", "group"]),
            "max_bytes": MATCH_BYTES,
        }
        before, after = (upgrade_cases.table_of({"schema": upgrade_cases.SCHEMA}, part) for part in (rows[:45], rows[45:]))
        run = query.recognizer(schema, **options)
        run.push(before)
        data = run.snapshot()

        def go_on(data, query=query, options=options, after=after):
            run = query.recognizer(schema, engine=variant, snapshot=data, **options)
            yield
            for what in (
                lambda: run.push(after.slice(0, 10)),
                run.undecided,
                run.snapshot,
                lambda: run.push(after.slice(10)),
                lambda: run.advance_time(upgrade_cases.BASE + dt.timedelta(seconds=75)),
                run.flush,
                run.snapshot,
                lambda: run.advance_time(upgrade_cases.END),
            ):
                found = what()
                if not isinstance(found, bytes):
                    found.to_arrow(events=True)
                    found.to_arrow()
            run.memory_usage()
            run.restore(run.snapshot())

        yield Case(name, data, unpacked(data, run._fingerprint()), run._fingerprint(), False, go_on)


def buckets(chance, variant):
    """A case for each list of queries that share a bucket of a stream."""
    if variant == "checked":
        for name in ("match", "next", "last", "maximal", "counting", "track", "guards"):
            sys.modules[f"cepheid.kernel.{name}"] = importlib.import_module(f"cepheid.kernel._checked_{name}")
    import test_stateful as bucket_cases

    from cepheid.spark.tasks.buckets import Bucket
    from cepheid.spark.tasks.packing import unpack

    for names in BUCKETS:
        rows = random_rows(chance)
        columns = {name: list(values) for name, values in zip(("type", "ts", "k", "row", "s"), zip(*rows, strict=True), strict=True)}
        columns["ts"] = [bucket_cases.START + second * bucket_cases.SECOND for second in columns["ts"]]
        table = pa.table({name: columns.get(name, [None] * len(rows)) for name in bucket_cases.TIMED.names}, schema=bucket_cases.TIMED)
        queries = [cepheid.query(re.sub(r"\[[sv] [^]]*\]", "[row < 85]", EMBEDDED[name]).replace("x.v", "x.row")) for name in names]
        unit, events, output = bucket_cases.unit_of(queries, table)
        unit = dataclasses.replace(unit, max_bytes=MATCH_BYTES, lateness=chance.choice([None, 4000]))
        run = Bucket(unit)
        run.step([events.slice(0, 45)], bucket_cases.seconds(0))
        run.step([], bucket_cases.seconds(38))
        data = run.dump()

        def go_on(data, unit=unit, events=events, output=output):
            run = Bucket(unit).load(data)
            yield
            for pieces, moment in (([events.slice(45, 10)], 45), ([events.slice(55)], 60), ([], 75), ([], 100_000)):
                for _, blob in run.step(pieces, bucket_cases.seconds(moment)).rows:
                    unpack(output, pa.array([blob], pa.binary()))
                list(run.undecided())
                Bucket(unit).load(run.dump())

        yield Case("+".join(names), data, unpacked(data, unit.fingerprint), unit.fingerprint, True, go_on)


KINDS = {"embedded": embedded, "buckets": buckets}


def unpacked(data, fingerprint):
    return {name: bytes(content) for name, content in state.unpack(data, fingerprint=fingerprint).items()}


def repacked(chance, case, others):
    """The bytes of a forged state; numbers are packed as such now and then, where the container can."""
    if chance.random() < 0.04:
        return forged_bytes(chance, case.data, case.fingerprint)
    sections = forged(chance, case.sections, others)
    for name, content in sections.items():
        kind = NUMBERS.get(base_name(name))
        if case.compress and kind in ("<i8", "<i4", "<u2") and len(content) % np.dtype(kind).itemsize == 0 and chance.random() < 0.5:
            sections[name] = np.frombuffer(content, kind)
    return state.pack(sections, fingerprint=case.fingerprint, compress=case.compress)


def run(kind, seed, first, count, *, variant=None, say=None):
    """Try some cases; returns how many were refused, ran, and raised which errors of Cepheid. Raises AssertionError for the first that fails."""
    outcomes = Counter()
    found = list(KINDS[kind](random.Random(f"{seed} {kind}"), variant))
    others = [case.sections for case in found]
    for case in found:  # the real ones go on
        for _ in case.go_on(state.pack(case.sections, fingerprint=case.fingerprint, compress=case.compress)):
            pass
    tracemalloc.start()
    for number in range(first, first + count):
        chance = random.Random(f"{seed} {kind} {number}")
        case = chance.choice(found)
        where = f"{kind} seed={seed} case={number} ({case.name})"
        if say is not None:
            say(where)
        data = repacked(chance, case, others)
        outcomes[_tried(case, data, where)] += 1
    tracemalloc.stop()
    return outcomes


def _tried(case, data, where):
    faulthandler.dump_traceback_later(HANG, exit=True)
    tracemalloc.reset_peak()
    before, began = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes(), time.process_time()
    accepted = False
    try:
        for _ in case.go_on(data):
            accepted = True
        outcome = "ran"
    except SnapshotError as error:
        outcome = f"while it ran: SnapshotError: {error.fact}" if accepted else "refused"
    except CepheidError as error:
        if not accepted:
            raise AssertionError(f"{where}: {type(error).__name__} at load: {error}") from error
        outcome = f"while it ran: {type(error).__name__}: {re.sub('[0-9,]+', 'N', error.fact)[:60]}"
    except Exception as error:
        raise AssertionError(f"{where}: {type(error).__name__} {'while it ran' if accepted else 'at load'}: {error}") from error
    finally:
        faulthandler.cancel_dump_traceback_later()
    seconds, size = time.process_time() - began, tracemalloc.get_traced_memory()[1] - before
    assert seconds <= SECONDS, f"{where}: {seconds:.1f} s ({outcome})"
    assert size <= BYTES, f"{where}: {size >> 20} MB ({outcome})"
    return outcome


def main():
    kind, seed, first, count, *variant = sys.argv[1:]
    # What is forged to take the machine's memory takes this much.
    limit = 16 << 30
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    at = [""]
    faulthandler.enable()

    def say(where):
        at[0] = where
        sys.stderr.write(f"{where}\n")
        sys.stderr.flush()

    outcomes = run(kind, seed, int(first), int(count), variant=variant[0] if variant else None, say=say)
    sys.stdout.write(json.dumps(outcomes))


if __name__ == "__main__":
    main()
