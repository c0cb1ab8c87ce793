"""Ctrl-C is answered at once, whatever is being computed; and what makes that possible changes nothing else."""

from __future__ import annotations

import signal
import time

import numpy as np
import pyarrow as pa
import pytest
from slowness import FACTOR

import cepheid
from cepheid.engine.evaluations import base as running

ANSWERED = 0.3 * FACTOR
"""Seconds of computing within which an interruption is answered: 0.3."""

AFTER = 0.1
"""Seconds of computing after which it comes."""


def uniform(count: int, types: str = "ABCD") -> pa.Table:
    rng = np.random.default_rng(count)
    columns = [pa.array(list(types)).take(pa.array(rng.integers(0, len(types), count))), np.arange(count), rng.integers(0, 50, count)]
    return pa.table(columns, ["type", "ts", "k"])


LONG = {
    "matches that are listed": ("SELECT * WHERE A ; B ; C ; D", uniform(20_000)),
    "subsets": ("SELECT * WHERE A+ ; B", pa.table({"type": ["A"] * 60 + ["B"], "ts": range(61)})),
    "many macro states": ("SELECT * WHERE A{80} ; B LIMIT 1", uniform(2_000_000)),
    "matches that are counted": ("SELECT COUNT(*) WHERE A+ ; B+ ; (C OR D)+", uniform(100_000)),
    "groups of starts": ("SELECT MAX * WHERE A{9} ; B WITHIN 300 EVENTS LIMIT 1", uniform(400_000)),
    "NXT": ("SELECT NXT * WHERE A+ ; B ; C+ ; D", uniform(300_000)),
    "LAST": ("SELECT LAST * WHERE A+ ; B ; C+ ; D", uniform(300_000)),
    "end by end": ("SELECT MAX * WHERE A : B+ ; C WITHIN 3000 EVENTS", uniform(200_000)),
    "labellings": ("SELECT MAX * WHERE (A AS x OR A AS y)+ ; B", pa.table({"type": ["A"] * 60 + ["B"], "ts": range(61)})),
    "nested strategies": ("SELECT * WHERE NXT(A ; B) ; C ; D", uniform(20_000)),
    "an absence": ("SELECT * WHERE A ; B ; C NOT FOLLOWED BY D FOR 3", uniform(20_000)),
    "keys": ("SELECT * WHERE A ; B ; C ; D PARTITION BY k", uniform(100_000)),
    "sets of rows": ("SELECT COUNT(*) WHERE A+ AS a ; B AS b FILTER b.k > a.k OR b.type != a.type WITHIN 15 EVENTS", uniform(100_000)),
    "comparisons that exclude nothing alone": ("SELECT * WHERE A AS x ; B AS y FILTER y.k > x.k AND 0 - y.k > 0 - x.k", uniform(400_000)),
}

PYTHON = {
    "texts of several events": (
        "SELECT * WHERE A AS a ; B AS b ; C AS c FILTER length(concat(a.type, b.type)) + c.k - a.k > b.k LIMIT 1",
        uniform(3_000),
    ),
}
"""What no kernel evaluates."""


def ways(query: cepheid.Query, events: pa.Table):
    yield "run", lambda: query.run(events, max_bytes=1 << 60)
    yield "reader", lambda: query.run(events.to_reader(max_chunksize=1 << 16), max_bytes=1 << 60)
    yield "push", lambda: query.recognizer(events.schema, max_bytes=1 << 60).push(events)
    yield "batches", lambda: [len(part) for part in query.batches(events)]


@pytest.mark.parametrize("name", [*LONG, *PYTHON])
def test_an_interruption_is_answered_at_once(name):
    """Measured in seconds of this process's computing, so that a busy machine does not count."""
    text, events = (LONG | PYTHON)[name]
    query = cepheid.query(text)
    query.run(events.slice(0, 10))

    working = False

    def interrupt(_signal, _frame):
        if working:  # it may come when the work has just been done
            raise KeyboardInterrupt

    def interrupted(work):
        """Seconds until the interruption is answered, None where the work is done before it comes."""
        nonlocal working
        came = time.process_time() + AFTER
        try:
            working = True
            signal.setitimer(signal.ITIMER_PROF, AFTER)
            work()
            working = False
        except KeyboardInterrupt:
            return time.process_time() - came
        finally:
            working = False
            signal.setitimer(signal.ITIMER_PROF, 0)
        return None

    before = signal.signal(signal.SIGPROF, interrupt)
    answered = 0
    try:
        for way, work in ways(query, events):
            took = interrupted(work)
            # On a busy machine computing itself is slower at times; what is late by itself is late each time.
            for _ in range(2):
                took = took if took is None or took < ANSWERED else interrupted(work)
            assert took is None or took < ANSWERED, f"{way}: {took:.2f} s"
            answered += took is not None
    finally:
        signal.signal(signal.SIGPROF, before)
    assert answered, "nothing took long enough to be interrupted"


@pytest.mark.parametrize("name", LONG)
def test_the_kernels_return_between_events_and_nothing_changes(name, monkeypatch):
    text, events = LONG[name]
    query = cepheid.query(text)
    few = events.slice(max(0, events.num_rows - 40) if events.num_rows < 100 else 0, 40)
    wanted = list(query.run(few, max_bytes=1 << 24)) if name not in ("subsets", "labellings") else list(query.run(few.slice(30)))
    few = few if name not in ("subsets", "labellings") else few.slice(30)
    paused = 0
    go_on = running.KernelEvaluation._go_on

    def counted(self):
        nonlocal paused
        paused += 1
        go_on(self)

    monkeypatch.setattr(running.KernelEvaluation, "_go_on", counted)
    monkeypatch.setattr(running, "BUDGET", 0)
    assert list(query.run(few)) == wanted
    assert paused > 5


def test_nothing_is_being_read_after_an_interruption(monkeypatch):
    """Until the next batch, whose progress would begin where this one was left."""
    text, events = LONG["keys"]
    monkeypatch.setattr(running, "BUDGET", 0)
    recognizer = cepheid.query(text).recognizer(events.schema)
    read = []

    def interrupt(_):
        read.append(recognizer.passed)
        if read[-1]:
            raise KeyboardInterrupt

    monkeypatch.setattr(running.KernelEvaluation, "_go_on", interrupt)
    with pytest.raises(KeyboardInterrupt):
        recognizer.push(events.slice(0, 100))
    assert recognizer.passed == 0 < read[-1]
