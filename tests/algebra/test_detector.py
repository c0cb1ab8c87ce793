"""The detector in plain Python: valid by Definition 3.12, by itself and from the text of a pattern, and no larger than `memory` says."""

from __future__ import annotations

import datetime as dt
import doctest
import random
import subprocess
import sys

import pytest
from enough import Enough
from random_expressions import ENOUGH, random_expression, random_stream

import cepheid
from cepheid import algebra
from cepheid.algebra import (
    Detector,
    Expression,
    Length,
    Primitive,
    Rate,
    Sequence,
    memory,
    transform,
)
from cepheid.algebra import meaning as defined
from cepheid.algebra.meaning import Instant, instances, is_restriction
from cepheid.algebra.patterns import OutsideError, expression_of
from cepheid.errors import InputError, LimitError, NotSupportedError
from cepheid.logical import plan

A, B, C, P, T = map(Primitive, "ABCPT")
ALARM = (B >> B).within(time=2) - (P | T)


def detected(expression: Expression, stream: list[Instant]) -> list[algebra.Detected[int]]:
    detector: Detector[int] = Detector(expression)
    found = [detector.push(position, instant.time, instant.occurring) for position, instant in enumerate(stream)]
    return [match for match in found if match is not None]


def test_what_is_detected_is_a_valid_restriction(cases: int, seed: int) -> None:
    rng, drawn = random.Random(f"{seed} detector"), Enough(5 * cases, seen=20)
    for _ in drawn:
        expression, stream = random_expression(rng, 3), random_stream(rng, rng.randint(1, 9))
        whole = instances(expression, stream)
        mine = {
            defined.Instance(m.start, m.end, m.start_time, m.end_time, frozenset((name, position) for position, _, name in m.marks))
            for m in detected(expression, stream)
        }
        assert is_restriction(whole, mine), f"{expression}\n{stream}"
        drawn.seen["seen"] += bool(mine)


def test_a_ring_never_holds_more_than_memory_says(cases: int, seed: int) -> None:
    """At one event per tick Figure 4's queue has at most tau + 1 instances; and the same for other rates."""
    rng, looked = random.Random(f"{seed} rings"), 0
    for rate, steps in ((Rate(1), (1, 1, 2)), (Rate(1, 2), (2, 3)), (Rate(2), (0, 1))):
        for _ in range(max(cases, ENOUGH)):
            expression, stream = random_expression(rng, 4), random_stream(rng, 30, steps=steps)
            if rate.events == 2:  # at most two events have the same time
                stream = [Instant(position // 2, instant.occurring) for position, instant in enumerate(stream)]
            most = memory(expression, rate=rate)
            detector: Detector[int] = Detector(expression)
            for position, instant in enumerate(stream):
                detector.push(position, instant.time, instant.occurring)
                for held, count in zip(most.sequences, detector.rings, strict=True):
                    assert held.instances is None or count <= held.instances, f"{held}\n{stream}"
                    looked += held.instances is not None and count > 1
    assert looked > ENOUGH / 10


def test_the_papers_example_of_the_transform() -> None:
    """Example 6.1."""
    found = transform((B >> B).within(time=2) - (P >> (P + T)))
    assert found.formula == "((B ; B)_2 - (P ; (P + T)_2))"
    assert [node.length.time for node in found.walk() if isinstance(node, Sequence)] == [0, 2]


def test_memory_is_known_or_somebody_is_to_blame() -> None:
    assert str(memory(ALARM)) == "bounded memory: at most 2 instances, 96 bytes"
    unbounded = memory(A >> (B + C))
    assert unbounded.blame == (A >> (B + C),)
    assert (unbounded.instances, unbounded.bytes) == (None, None)
    assert "nothing bounds how long `(B ALL C)` takes" in str(unbounded)
    timed = (A >> (B + C)).within(time=9)
    assert "any number of events may come within 9" in str(memory(timed))
    assert memory(timed, rate=Rate(3)).sequences[0].instances == 30
    assert memory((A >> (B + C)).within(events=9)).sequences[0].instances == 10


def test_the_text_of_a_pattern() -> None:
    detector = algebra.detector("((A AS x FILTER x.v > 3 AND x.s LIKE 'a%') ; B AS y) WITHIN 5s")
    base = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    rows = [("A", 1, "a"), ("A", 5, "ab"), ("A", 5, "b"), ("A", None, "a"), ("B", 0, ""), ("B", 0, "")]
    events = [{"type": kind, "ts": base + dt.timedelta(seconds=number), "v": v, "s": s} for number, (kind, v, s) in enumerate(rows)]
    found = [detector.push(event) for event in events]
    assert [match and (match.start, match.end) for match in found] == [None, None, None, None, (1, 4), (1, 5)]
    assert found[4] is not None
    assert found[4].variables == {"A": (events[1],), "x": (events[1],), "B": (events[4],), "y": (events[4],)}


def test_the_same_as_the_engine(cases: int, seed: int) -> None:
    """A detector of a pattern's text, and the query: the same intervals."""
    rng, drawn = random.Random(f"{seed} text"), Enough(cases, seen=10)
    for _ in drawn:
        expression, stream = random_expression(rng, 3), random_stream(rng, 12)
        rows = [{"type": min(instant.occurring, default="E"), "ts": instant.time} for instant in stream]
        detector = algebra.detector(str(expression))
        mine = [(found.start, found.end) for row in rows if (found := detector.push(row)) is not None]
        assert mine == [(match.start, match.end) for match in cepheid.query(f"SELECT RESTRICTED * WHERE {expression}").run(rows)]
        by_hand = algebra.detector(expression)
        again = [(found.start, found.end) for row in rows if (found := by_hand.push(row)) is not None]
        assert again == mine
        drawn.seen["seen"] += bool(mine)


def test_from_the_builder() -> None:
    pattern = cepheid.event("B").followed_by(cepheid.event("B")).unless(cepheid.event("P") | cepheid.event("T"))
    assert algebra.parse(pattern).formula == "((B ; B) - (P v T))"
    assert algebra.parse(ALARM) is ALARM


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("A : B", "`A : B` is no operator of the event algebra"),
        ("A AS x ; B AS y FILTER y.v > x.v", "is no operator of the event algebra"),
        ("A AS x ; B AS y FILTER y.v = x.v", "the pattern is partitioned by v"),
        ("A ; B PARTITION BY k", "the pattern is partitioned by k"),
        ("A AS x ; B FILTER x.v > lag(x.v)", "does not look at the events before"),
    ],
)
def test_what_is_no_expression_is_refused(pattern: str, what: str) -> None:
    with pytest.raises(NotSupportedError, match=what.replace("(", r"\(")):
        algebra.detector(pattern)


def test_bad_events_lose_nothing() -> None:
    detector = algebra.detector("A ; B")
    detector.push({"type": "A", "ts": 5})
    for event, what in (
        ({"type": "B"}, "event 1 has no 'ts'"),
        ({"ts": 7}, "event 1 has no 'type'"),
        ({"type": "B", "ts": "soon"}, "the time of event 1 is 'soon'"),
        ({"type": "B", "ts": True}, "the time of event 1 is True"),
        ({"type": "B", "ts": 4}, "time descends from 5 to 4 at position 1"),
    ):
        with pytest.raises(InputError, match=what):
            detector.push(event)
    found = detector.push({"type": "B", "ts": 5})
    assert found is not None
    assert (found.start, found.end) == (0, 1)


def test_what_cannot_be_read_has_not_been_read() -> None:
    detector: Detector[int] = Detector(A >> B)
    with pytest.raises(TypeError):
        detector.push(0, 9, None)  # type: ignore[arg-type]
    assert (detector.position, detector.time) == (0, None)
    assert [bool(detector.push(n, n, name)) for n, name in enumerate("AB")] == [False, True]


def test_bounds_that_are_none() -> None:
    with pytest.raises(InputError, match=r"within\(\) has no bound"):
        A.within()
    for events, time in ((0, 1), (1, 0), (-1, 1)):
        with pytest.raises(InputError, match="promises nothing that comes"):
            Rate(events, time)


def test_expressions_as_text() -> None:
    assert A.within(time=3).within(time=2, events=1).formula == "(A_3)_2,#1"
    assert str(A.within(time=3).within(time=2, events=1)) == "((A WITHIN 3) WITHIN 2 WITHIN 2 EVENTS)"


def test_a_sequence_of_other_operands_knows_nothing_of_their_length() -> None:
    (*_, found) = transform(A >> B).walk()
    assert isinstance(found, Sequence)
    assert found.length == Length(0, 0)
    again = found.over(A, B + C)
    assert isinstance(again, Sequence)
    assert again.length == Length()


def test_a_deep_pattern_is_no_expression() -> None:
    """The transform's limit: other methods evaluate it."""
    pattern: plan.Pattern = plan.Event("A")
    for _ in range(200):
        pattern = plan.WithinEvents(pattern, 3)
    with pytest.raises(OutsideError, match="more than 200 operators around each other"):
        expression_of(pattern)


def test_deep_expressions() -> None:
    expression: Expression = A
    for _ in range(99):
        expression = Sequence(expression, A).within(events=500)
    found = detected(expression, [Instant(position, frozenset("A")) for position in range(101)])
    assert [(match.start, match.end, len(match.marks)) for match in found] == [(0, 99, 100), (1, 100, 100)]
    for _ in range(10_000):
        expression = Sequence(expression, A)
    with pytest.raises(LimitError, match="10199 operators around each other, and the limit is 200"):
        Detector(expression)


@pytest.mark.parametrize("name", ["standalone", "memory", "transform"])
def test_the_examples_of_the_documentation(name: str) -> None:
    import importlib

    result = doctest.testmod(importlib.import_module(f"cepheid.algebra.{name}"))
    assert result.attempted > 1
    assert not result.failed


ALONE = """
import sys
for name in ("pyarrow", "numpy", "lark", "pyspark"):
    sys.modules[name] = None
import datetime as dt
import cepheid
from cepheid import algebra, succession
hot, dry, reset = map(algebra.Primitive, ("hot", "dry", "reset"))
expression = (hot >> dry).within(time=60_000_000) - reset
fire = algebra.detector(expression, where={"hot": lambda event: event.get("temp", 0) > 40, "dry": lambda event: event.get("humidity", 100) < 25})
start = dt.datetime(2024, 1, 1)
for second, kind, values in [(0, "T", {"temp": 45}), (1, "reset", {}), (2, "T", {"temp": 50}), (30, "H", {"humidity": 20})]:
    found = fire.push({"type": kind, "ts": start + dt.timedelta(seconds=second), **values})
print(found.variables["hot"][0]["temp"], algebra.memory(expression).bounded)
generated = {}
exec(algebra.generate_python(expression), generated)
print(len(algebra.LAWS), succession.CAYUGA.compose(succession.CAYUGA.point(0), succession.CAYUGA.point(1)))
try:
    cepheid.query("SELECT * WHERE A")
except cepheid.SetupError as error:
    print(error)
"""
"""The detector on a device that has Python alone."""


def test_python_alone() -> None:
    """Neither Arrow nor numpy nor the parser is needed for the detector of an expression, its memory, generated code, and laws."""
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "50 True",
        "36 [0, 1]",
        "error: cepheid.query needs pyarrow, which is not installed",
        "help: pip install cepheid, with what it depends on",
    ]


def test_conditions_as_functions() -> None:
    """`where` decides for the primitives that it names; the others occur by their types, or by the conditions of the text."""
    detector = algebra.detector("A ; B FILTER B[v > 3]", where={"A": lambda event: event["v"] == 1})
    rows = [("X", 1), ("B", 3), ("B", 4)]
    found = [detector.push({"type": kind, "ts": ts, "v": value}) for ts, (kind, value) in enumerate(rows)]
    assert [each and (each.start, each.end) for each in found] == [None, None, (0, 2)]
    with pytest.raises(InputError, match="'C', which is no primitive"):
        algebra.detector("A ; B", where={"C": bool})
