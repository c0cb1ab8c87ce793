"""Answers that do not fit: the limit on matches names what explodes and the ways out; running out of memory has a name."""

from __future__ import annotations

import dataclasses
import random
import subprocess
import sys

import pyarrow as pa
import pytest
from enough import Enough
from slowness import SANITIZED

import cepheid
from cepheid.engine.evaluations.counts import listed
from cepheid.engine.evaluations.events import Events
from cepheid.engine.memory import process as memory
from cepheid.engine.memory.process import process_memory
from cepheid.engine.run import allowance as module
from cepheid.engine.run.allowance import Allowance, default_max_bytes
from cepheid.errors import InputError, LimitError, SnapshotError
from cepheid.testing.differential import draws
from cepheid.testing.generators import ENGINE, NESTED, WAITING

MANY = pa.table({"type": ["A"] * 40 + ["B"], "ts": range(41), "k": [7] * 41})
SUBSETS = cepheid.query("SELECT * WHERE A+ ; B")
COUNT = cepheid.query("SELECT COUNT(*) WHERE A")

EVENT = "the last of them for the event at position 40 (40)"

HELP = [
    "help: choose among the matches of an event: SELECT NXT, LAST, MAX or STRICT, or LIMIT n; SELECT COUNT(*) counts them without a list",
    "help: q.run(.., sample=n) gives n matches of each event that completes some",
    "help: q.batches(..) gives all matches, in bounded memory",
    "help: allow more with max_bytes=..",
]


def test_the_error_names_the_event_and_its_matches_and_the_ways_out():
    with pytest.raises(LimitError) as error:
        SUBSETS.run(MANY, max_bytes=1 << 20)
    assert str(error.value).splitlines() == [
        f"error: the matches take more than 1,048,576 bytes (max_bytes): 1,615 were made, {EVENT}, which completes 1,099,511,627,775 matches",
        *HELP,
    ]


def test_each_way_out_is_one():
    for text, number in {"NXT *": 1, "LAST *": 1, "MAX *": 1, "STRICT *": 40, "ANY *": 1, "COUNT(*)": 1}.items():
        assert len(cepheid.query(f"SELECT {text} WHERE A+ ; B").run(MANY, max_bytes=1 << 20)) == number
    assert len(cepheid.query("SELECT * WHERE A+ ; B LIMIT 5").run(MANY, max_bytes=1 << 20)) == 5
    assert len(SUBSETS.run(MANY, sample=5, max_bytes=1 << 20)) == 5
    assert len(next(SUBSETS.batches(MANY))) > 100
    few = MANY.slice(24)
    assert len(SUBSETS.run(few, max_bytes=1 << 30)) == 2**16 - 1


def test_the_ways_out_with_having_are_those_that_help_there(monkeypatch):
    """LIMIT and COUNT(*) look at every match before, so they are no way out of too many; a strategy is."""
    few = MANY.slice(24)
    judged = cepheid.query("SELECT * WHERE A+ AS x ; B HAVING count(x) > 2")
    for read in (
        lambda: judged.run(few, max_bytes=1 << 20),
        lambda: judged.recognizer(few.schema, max_bytes=1 << 20).push(few),
    ):
        with pytest.raises(LimitError) as error:
            read()
        assert error.value.help[0].startswith("each match is looked at, so have fewer: SELECT NXT, LAST, MAX or STRICT")
        assert not any("counts them without a list" in line or "sample=" in line for line in error.value.help)
    with pytest.raises(cepheid.NotSupportedError, match="HAVING"):
        judged.run(few, sample=5)
    assert len(cepheid.query("SELECT MAX * WHERE A+ AS x ; B HAVING count(x) > 2").run(few, max_bytes=1 << 20)) == 1
    monkeypatch.setattr(listed, "MAX_LISTED", 1 << 10)
    for text in ("SELECT COUNT(*) WHERE A+ AS x ; B HAVING count(x) > 2", "SELECT * WHERE A+ AS x ; B HAVING count(x) != 2 LIMIT 1"):
        with pytest.raises(LimitError, match="MAX_LISTED"):
            cepheid.query(text).run(few)


def test_the_number_of_matches_is_not_cut_off():
    events = pa.table({"type": ["A"] * 200 + ["B"], "ts": range(201)})
    with pytest.raises(LimitError, match=r"which completes about 1\.61e\+60 matches"):
        SUBSETS.run(events, max_bytes=1 << 20)


def test_recognizers_and_readers_have_the_limit_too():
    recognizer = SUBSETS.recognizer(MANY.schema, max_bytes=1 << 20)
    assert len(recognizer.push(MANY.slice(0, 40))) == 0
    saved = recognizer.snapshot()
    with pytest.raises(LimitError, match=r"position 40 \(40\), which completes 1,099,511,627,775 matches"):
        recognizer.push(MANY.slice(40))
    with pytest.raises(SnapshotError, match=r"its state is incomplete. The cause: LimitError: the matches take more than"):
        recognizer.snapshot()
    # The allowance is of one call, and no part of the state.
    recognizer.restore(saved)
    with pytest.raises(LimitError):
        recognizer.push(MANY.slice(40))
    for size in (1, 10, 41):
        with pytest.raises(LimitError, match="position 40"):
            SUBSETS.run(MANY.to_reader(max_chunksize=size), max_bytes=1 << 20)


def test_the_allowance_is_for_the_whole_answer_of_a_run_and_for_each_push():
    pair = cepheid.query("SELECT * WHERE A ; B WITHIN 2")
    events = pa.table({"type": ["A", "B"] * 500, "ts": range(1000)})
    needed = sum(module.bytes_of(chunk) for chunk in chunks_of(pair, events))
    assert len(pair.run(events, max_bytes=needed)) == len(pair.run(events.to_reader(max_chunksize=9), max_bytes=needed))
    for asked in (events, events.to_reader(max_chunksize=9)):
        with pytest.raises(LimitError):
            pair.run(asked, max_bytes=needed - 1)
    recognizer = pair.recognizer(events.schema, max_bytes=needed // 20)
    assert sum(len(recognizer.push(events.slice(start, 10))) for start in range(0, 1000, 10)) == len(pair.run(events))


def chunks_of(query, events):
    compiled = query.compiled(query.schema(events))
    return list(compiled.evaluation().chunks(Events(compiled.predicates.letters(events), events["ts"].to_numpy())))


def test_one_match_is_said_in_the_singular():
    with pytest.raises(LimitError, match=r"\(max_bytes\): 1 was made, .*, which completes 1 match\n"):
        cepheid.query("SELECT * WHERE A ; B").run(pa.table({"type": ["A", "B"], "ts": [1, 2]}), max_bytes=10)


def test_keys_are_named():
    query = cepheid.query("SELECT * WHERE A+ ; B PARTITION BY k")
    with pytest.raises(LimitError, match=r"at position 40 \(40\), k = 7, which completes"):
        query.run(MANY, max_bytes=1 << 20)
    with pytest.raises(LimitError, match=r"at position 40, which completes"):
        SUBSETS.run(MANY.drop_columns(["ts"]), max_bytes=1 << 20)


@pytest.mark.parametrize("fragment", [ENGINE, WAITING, NESTED], ids=["engine", "waiting", "nested"])
def test_the_number_of_matches_is_that_of_count(fragment, cases, seed, monkeypatch):
    """The number in the message is COUNT(*)'s, whether it was counted one by one or in the match graph."""
    drawn = Enough(cases // 2, draws(dataclasses.replace(fragment, count=0.0, limit=0.0), seed=seed), graph=1)
    for case in drawn:
        query = case.query
        if query.tree.limit is not None or query.tree.strategy.name == "ANY":
            continue
        try:
            counts = {(tuple(m.keys.values()), m.end): m.measures["count"] for m in counting(query).run(case.events)}
            found = query.run(case.events)
        except cepheid.CepheidError:
            continue
        if not len(found) or len({(tuple(m.keys.values()), m.end) for m in found}) != len(counts) or len(found) != sum(counts.values()):
            continue  # SELECT's projection makes several matches one
        rng = random.Random(case.number)
        monkeypatch.setattr(module, "COUNTED_MARKS", rng.choice([0, 10**9]))
        with pytest.raises(LimitError) as error:
            query.run(case.events, max_bytes=rng.randint(1, sum(map(bytes_of_match, found)) - 1))
        message = str(error.value).splitlines()[0]
        completed = message.partition("which completes ")[2]
        named = [
            count for (keys, end), count in counts.items() if f"position {end}" in message and all(f"= {k!r}" in message for k in keys)
        ]
        number = int(completed.removeprefix("at least ").split()[0].replace(",", ""))
        assert number in named or (completed.startswith("at least") and number <= max(named)), f"{message}\n{case}"
        drawn.seen["graph"] += module.COUNTED_MARKS == 0 and not completed.startswith("at least")


def counting(query):
    return cepheid.query(dataclasses.replace(query.tree, targets=COUNT.tree.targets), args=query.args)


def bytes_of_match(match):
    positions = set().union(*match.variables.values(), {match.start, match.end})
    return module.MARK_BYTES * len(positions) + module.MATCH_BYTES


@pytest.mark.parametrize("value", [0, -1, 2.5, "4 GB", True])
def test_what_is_no_number_of_bytes(value):
    for use in (SUBSETS.run, lambda events, max_bytes: SUBSETS.recognizer(events.schema, max_bytes=max_bytes)):
        with pytest.raises(InputError, match="is not a number of bytes"):
            use(MANY, max_bytes=value)


# -------------------------------------------------------------------------------------------------------------------------- memory


def test_the_default_is_a_quarter_of_the_memory_of_the_process():
    assert default_max_bytes() == process_memory() // 4 == Allowance().most


@pytest.mark.parametrize(
    ("pages", "limits", "groups", "wanted"),
    [
        (3 << 20, [], [], 12 << 30),
        (3 << 20, [5 << 30, 6 << 30], [], 5 << 30),
        (3 << 20, [5 << 30], [4 << 30, 2 << 30], 2 << 30),
        (3 << 20, [90 << 30], [80 << 30], 12 << 30),
        (None, [], [], memory.UNKNOWN_MEMORY),
        (None, [1 << 30], [], 1 << 30),
    ],
)
def test_the_memory_of_the_process_is_the_least_of_what_limits_it(monkeypatch, pages, limits, groups, wanted):
    """pages: of 4 KiB that the machine has; None: the system does not tell."""

    def said(name):
        if pages is None:
            raise ValueError(name)
        return {"SC_PAGE_SIZE": 1 << 12, "SC_PHYS_PAGES": pages}[name]

    monkeypatch.setattr(memory.os, "sysconf", said)
    monkeypatch.setattr(memory, "_process_limits", lambda: limits)
    monkeypatch.setattr(memory, "_group_limits", lambda *_: groups)
    assert process_memory.__wrapped__() == wanted


@pytest.mark.parametrize(
    ("membership", "files", "wanted"),
    [
        ("0::/app/job\n", {"memory.max": "max", "app/memory.max": "5000\n", "app/job/memory.max": "7000"}, [7000, 5000]),
        ("0::/not/visible\n", {"memory.max": "4096"}, [4096]),
        (
            "5:cpu:/a\n4:memory,other:/a\n0::/\n",
            {"memory/a/memory.limit_in_bytes": "900", "memory/memory.limit_in_bytes": "9000"},
            [900, 9000],
        ),
        ("", {}, []),
    ],
)
def test_limits_of_control_groups(tmp_path, membership, files, wanted):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "cgroup").write_text(membership)
    assert memory._group_limits(tmp_path / "cgroup", tmp_path) == wanted
    assert memory._group_limits(tmp_path / "missing", tmp_path) == []


LIMITED = """
import resource, pyarrow as pa
import cepheid
from cepheid.engine.memory.process import process_memory
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
assert process_memory() == 3 << 30
events = pa.table({"type": ["A"] * 40 + ["B"], "ts": range(41)})
for most in (None, 1 << 50):
    try:
        cepheid.query("SELECT * WHERE A+ ; B").run(events, max_bytes=most)
    except cepheid.LimitError as error:
        print(error.fact)
"""


@pytest.mark.skipif(SANITIZED, reason="a sanitizer reserves more addresses than any limit")
def test_a_limit_on_the_memory_of_the_process_is_kept_and_running_out_of_it_has_a_name():
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    assert first.startswith(f"the matches take more than {3 << 28:,} bytes (max_bytes)")
    assert second.startswith("the memory of this process is used up: ")


@pytest.mark.parametrize("method", ["push", "advance_time", "flush", "undecided", "snapshot"])
def test_no_memory_error_reaches_a_user(method, monkeypatch):
    query = cepheid.query("SELECT * WHERE A NOT FOLLOWED BY B FOR 5")
    recognizer = query.recognizer(MANY.schema, lateness=2)
    recognizer.push(MANY.slice(0, 5))

    def exhausted(*_args, **_options):
        raise MemoryError

    for owner, name in (
        (recognizer._member.state, "feed"),
        (recognizer._member.state, "advance"),
        (recognizer._member.state, "undecided"),
        (recognizer._member.state, "dump"),
    ):
        monkeypatch.setattr(owner, name, exhausted)
    arguments = {"push": [MANY.slice(5)], "advance_time": [100]}.get(method, [])
    with pytest.raises(LimitError, match="the memory of this process is used up: an allocation failed"):
        getattr(recognizer, method)(*arguments)


@pytest.mark.parametrize("method", ["to_arrow", "to_pylist", "to_pandas"])
def test_no_memory_error_while_matches_are_shown(method, monkeypatch):
    matches = cepheid.query("SELECT * WHERE A ; B").run(MANY)

    def exhausted(*_args, **_options):
        raise pa.ArrowMemoryError("malloc of size 9 failed")

    monkeypatch.setattr(pa, "table", exhausted)
    with pytest.raises(LimitError, match="the memory of this process is used up: malloc of size 9 failed"):
        getattr(matches, method)()


def test_events_are_made_of_fewer_matches_than_an_answer_may_have(monkeypatch):
    """What is made of them takes several times their size: by default a definition has a part of the allowance."""
    table = pa.table({"type": ["A"] * 12 + ["B"], "ts": range(13)})
    where = "WHERE A+ AS a ; B"
    monkeypatch.setattr(module, "default_max_bytes", lambda: 800_000)
    assert len(cepheid.query(f"SELECT * {where}").run(table)) == 4095
    made = cepheid.query(f"EVENT P(n) AS (SELECT count(a) AS n {where}) SELECT COUNT(*) WHERE P")
    with pytest.raises(LimitError, match=r"in the definition of `P`: the matches take more than 200,000 bytes"):
        made.run(table)
    with pytest.raises(LimitError, match=r"200,000 bytes"):
        made.recognizer(table.schema).push(table)
    assert len(made.run(table, max_bytes=800_000)) == 4095
