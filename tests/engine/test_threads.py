"""What threads may share: a query by any number of them, a recognizer by one at a time."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import cepheid

RUNS = 200

QUERIES = (
    "SELECT * WHERE A AS x ; B AS y FILTER x[k = 'one'] WITHIN 50",
    "SELECT COUNT(*) WHERE A+ ; B FILTER B[k != 'two'] WITHIN 50",
    "SELECT MAX * WHERE A+ AS x ; B FILTER x[k LIKE 't%'] WITHIN 50",
    "SELECT NXT * WHERE A ; C ; B FILTER A[k IN ('one', 'three')] WITHIN 50",
    "SELECT LAST count(x) AS n WHERE A+ AS x ; B FILTER x[k > 'a'] WITHIN 50",
    "SELECT MAX * WHERE A : C+ : B FILTER A[k > 'a'] WITHIN 50",
    "SELECT * WHERE STRICT(A ; C ; B) PARTITION BY k WITHIN 50 CONSUME BY ANY",
    "SELECT * WHERE A AS x NOT FOLLOWED BY B FOR 3 FILTER x[k = 'one']",
    "SELECT * WHERE MAX(A+) ; B FILTER A[k < 'two'] WITHIN 50",
)


def stream(seed: int, count: int = 60) -> pa.Table:
    """Events whose text columns have other dictionaries in every stream."""
    draw = random.Random(seed)
    words = draw.sample(["one", "two", "three", "four", "five"], draw.randint(2, 5))
    names = draw.sample(["A", "B", "C", "D"], 4)
    columns = [draw.choices(names, k=count), list(range(count)), draw.choices(words, k=count)]
    return pa.table(columns, ["type", "ts", "k"])


def shown(matches: cepheid.Matches) -> list[object]:
    return [(match.start, match.end, match.variables, match.measures, match.keys) for match in matches]


def together(tasks: int, work) -> list[object]:  # type: ignore[no-untyped-def]
    """What `work(number)` gives in as many threads, which begin at the same moment."""
    barrier = threading.Barrier(tasks)

    def one(number: int) -> object:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(tasks) as pool:
        return list(pool.map(one, range(tasks)))


@pytest.fixture(autouse=True)
def _often():
    """Threads change hands every few instructions."""

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("text", QUERIES)
def test_threads_run_one_query(text):
    query = cepheid.query(text)
    streams = [stream(seed) for seed in range(4)]
    wanted = [shown(cepheid.query(text).run(events)) for events in streams]

    def work(number: int) -> list[int]:
        return [run for run in range(RUNS // 4) if shown(query.run(streams[number])) != wanted[number]]

    assert together(4, work) == [[], [], [], []]


@pytest.mark.parametrize("text", QUERIES)
def test_recognizers_of_one_query_in_threads(text):
    query = cepheid.query(text)
    streams = [stream(seed) for seed in range(2)]
    wanted = [shown(cepheid.query(text).run(events)) for events in streams]

    def work(number: int) -> list[int]:
        wrong = []
        events = streams[number]
        for run in range(RUNS // 20):
            recognizer = query.recognizer(events.schema)
            found = []
            for start in range(0, events.num_rows, 6):
                found += shown(recognizer.push(events.slice(start, 6)))
            found += shown(recognizer.advance_time(events["ts"][-1].as_py() + 1))
            if found != wanted[number]:
                wrong.append(run)
        return wrong

    assert together(2, work) == [[], []]


FIRST_USE = """
import random, sys, threading
import pyarrow as pa
import cepheid
sys.setswitchinterval(1e-6)
text = "SELECT MAX * WHERE (A AS x : (B OR C)+ ; D{1,3}) FILTER x[k LIKE 'o%' OR k IN ('two')] PARTITION BY k WITHIN 20"
def stream(seed):
    draw = random.Random(seed)
    return pa.table([draw.choices("ABCD", k=40), list(range(40)), draw.choices(["one", "two"], k=40)], ["type", "ts", "k"])
query = cepheid.query(text) if "shared" in sys.argv else None
barrier, found = threading.Barrier(6), {}
def work(number):
    barrier.wait()
    found[number] = (query or cepheid.query(text)).run(stream(number)).to_pylist()
threads = [threading.Thread(target=work, args=[number]) for number in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
sys.exit(0 if found == {number: cepheid.query(text).run(stream(number)).to_pylist() for number in range(6)} else 1)
"""


@pytest.mark.parametrize("what", ["shared", "own"])
def test_threads_use_everything_first_at_the_same_moment(what):
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", FIRST_USE, what], capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_threads_compile_more_schemas_than_a_query_remembers():
    query = cepheid.query("SELECT * WHERE A ; B")

    def work(number: int) -> int:
        return sum(len(query.run(stream(seed).rename_columns(["type", "ts", f"k{seed}"]))) for seed in range(number, number + 40))

    alone = [sum(len(query.run(stream(seed))) for seed in range(number, number + 40)) for number in range(4)]
    assert together(4, work) == alone


MANY = pa.table([["A", "B"] * 500_000, range(1_000_000)], ["type", "ts"])


def refused(recognizer: cepheid.Recognizer) -> list[str]:
    """The calls that raise InUseError."""
    calls = {
        "push": lambda: recognizer.push(MANY.slice(0, 2)),
        "advance_time": lambda: recognizer.advance_time(10**7),
        "flush": recognizer.flush,
        "snapshot": recognizer.snapshot,
        "undecided": recognizer.undecided,
        "restore": lambda: recognizer.restore(EMPTY),
    }
    found = []
    for name, call in calls.items():
        try:
            call()
        except cepheid.InUseError:
            found.append(name)
    return found


LIMITED = cepheid.query("SELECT * WHERE A AS x ; B LIMIT 1")
EMPTY = LIMITED.recognizer(MANY.schema).snapshot()


def test_a_second_thread_is_refused_and_the_state_stays_intact():
    recognizer = LIMITED.recognizer(MANY.schema)
    found: list[cepheid.Matches] = []
    assert issubclass(cepheid.InUseError, cepheid.CepheidError)
    assert issubclass(cepheid.InUseError, RuntimeError)
    other = threading.Thread(target=lambda: found.append(recognizer.push(MANY)))
    other.start()
    while not recognizer._use.taken:
        assert other.is_alive()
    assert refused(recognizer) == ["push", "advance_time", "flush", "snapshot", "undecided", "restore"]
    other.join()
    alone = LIMITED.recognizer(MANY.schema)
    assert len(found[0]) == len(alone.push(MANY))
    assert recognizer.snapshot() == alone.snapshot()
    assert len(recognizer.push([{"type": "B", "ts": 10**7}])) == 1


def test_a_thread_may_look_at_a_recognizer_that_another_one_uses():
    recognizer = cepheid.query("SELECT * WHERE A AS x ; B PARTITION BY k WITHIN 20").recognizer(stream(0).schema, lateness=5)
    done = threading.Event()
    seen: list[object] = []

    def look() -> None:
        while not done.is_set():
            seen.append(
                (recognizer.memory_usage(), recognizer.late.num_rows, recognizer.enough_lateness, recognizer.latest, recognizer.null_keys)
            )

    other = threading.Thread(target=look)
    other.start()
    for start in range(0, RUNS * 60, 60):
        events = stream(start)
        recognizer.push(events.set_column(1, "ts", pa.array(range(start, start + 60))))
    recognizer.flush()
    done.set()
    other.join()
    assert len(seen) > RUNS // 10
    assert recognizer.latest == RUNS * 60 - 1
