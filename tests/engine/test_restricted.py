"""RESTRICTED: by the detector of the event algebra where the pattern is one of its expressions, else as the first of all matches."""

from __future__ import annotations

import dataclasses
import itertools
import random
import re

import pyarrow as pa
import pytest
from enough import Enough

import cepheid
from cepheid.algebra.memory import Rate, memory
from cepheid.engine.evaluations.choosing import restricted
from cepheid.engine.evaluations.choosing.restricted import Restricted, RestrictedProgram, RestrictedSizes, bounded
from cepheid.errors import BindError
from cepheid.testing import events as rows_of_text
from cepheid.testing.differential import WAYS, Case, check, draw, draws, rows_of, ways_of
from cepheid.testing.generators import COMPARING, NEGATING, RESTRICTING

VARIANTS = ("compiled", "python", "checked")
ALARM = "SELECT RESTRICTED * WHERE (B ; B) WITHIN 2 UNLESS (P OR T)"


def method_of(case: Case) -> str:
    return case.query.compiled(case.query.schema(case.events.schema)).method.name


@pytest.mark.parametrize("fragment", ["RESTRICTING", "NEGATING", "COMPARING"])
def test_random_patterns_on_every_path(fragment: str, cases: int, seed: int) -> None:
    """Valid by Definition 3.12 of event-algebra, and the same match however the events come, whatever kernel reads them."""
    fragments = {"RESTRICTING": RESTRICTING, "NEGATING": NEGATING, "COMPARING": COMPARING}
    source = draws(dataclasses.replace(fragments[fragment], strategies=("RESTRICTED",)), seed=seed)
    drawn = Enough(cases // 2, source, matched=3, detected=5 * (fragment == "RESTRICTING"))
    for case in drawn:
        variant = VARIANTS[case.number % len(VARIANTS)]
        found = {way: of(case, variant) for way, of in ways_of(case).items()}
        check(case, found["whole"])
        for way, rows in found.items():
            assert rows == found["whole"], f"{way}\n{case}"
        drawn.seen["detected"] += method_of(case) == "restricted"
        drawn.seen["matched"] += bool(found["whole"])


def test_long_streams(cases: int, seed: int) -> None:
    """Long enough that windows pass and rings turn."""
    for case in draw(RESTRICTING, count=cases // 10, seed=seed, longest=60):
        found = rows_of(case.query.run(case.events))
        check(case, found)
        assert WAYS["restored"](case, "compiled") == found, str(case)


def test_the_detector_and_the_first_of_all_matches_agree(cases: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two evaluations without a common line give matches with the same intervals (Theorem 4.5)."""
    detected = (case for case in draws(RESTRICTING, seed=seed) if method_of(case) == "restricted")
    drawn = list(itertools.islice(detected, cases // 3))
    spans = [[row[:3] for row in rows_of(case.query.run(case.events))] for case in drawn]
    monkeypatch.setattr(restricted.RestrictedMethod, "fits", lambda *_: "not asked")
    for case, mine in zip(drawn, spans, strict=True):
        query = cepheid.query(case.query.text)
        assert query.compiled(query.schema(case.events.schema)).method.name != "restricted"
        assert [row[:3] for row in rows_of(query.run(case.events))] == mine, str(case)


def test_the_introductory_example() -> None:
    """The button twice within two seconds, and no alarm between (event-algebra, Examples 1.1 and 1.2)."""
    found = cepheid.query(ALARM).run(rows_of_text("B1 B2 P3 B4 B6 B7"))
    assert [match.variables["B"] for match in found] == [(0, 1), (3, 4), (4, 5)]


def test_explain_states_the_memory_or_who_is_to_blame() -> None:
    assert "bounded memory: at most 2 instances" in str(cepheid.query(ALARM).explain())
    text = str(cepheid.query("SELECT RESTRICTED * WHERE A ; (B ALL C)").explain())
    assert "no bound on the memory: in `(A ; (B ALL C))` nothing bounds how long `(B ALL C)` takes" in text
    assert "at most" in str(cepheid.query("SELECT RESTRICTED * WHERE A ; (B ALL C) WITHIN 5 EVENTS").explain())


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("A : B", "`A : B` is no operator of the event algebra"),
        ("A ; B?", "is no operator of the event algebra"),
        ("A AS x ; B AS y FILTER y.v > x.v", "is no operator of the event algebra"),
        ("NXT(A ; B)", "`NXT(A ; B)` is no operator of the event algebra"),
        ("A{200} ; B", "it has more than 256 operators"),
        (" OR ".join(f"(A AS x FILTER x.v > {number})" for number in range(63)), "it speaks of more than 62 different events"),
    ],
)
def test_explain_says_why_the_detector_does_not_fit(pattern: str, why: str) -> None:
    text = re.sub(r"\s+", " ", str(cepheid.query(f"SELECT RESTRICTED * WHERE {pattern}").explain()))
    assert "restricted" in text
    assert why in text


def test_count_is_refused_with_its_place() -> None:
    with pytest.raises(BindError, match=r"COUNT\(\*\) with RESTRICTED: every trigger has one match"):
        cepheid.query("SELECT RESTRICTED COUNT(*) WHERE A ; B").run(rows_of_text("A1"))


def program_of(query: cepheid.Query, schema: pa.Schema) -> tuple[RestrictedProgram, int | None, int | None]:
    compiled = query.compiled(query.schema(schema))
    assert isinstance(compiled.program, RestrictedProgram)
    return compiled.program, compiled.window, compiled.count_window


def test_a_ring_never_holds_more_than_memory_says(cases: int, seed: int) -> None:
    """At one event per tick: Figure 4's queue has at most tau + 1 instances."""
    source = draws(dataclasses.replace(RESTRICTING, consume=0.0, partition=0.0, absence=0.0), seed=seed)
    drawn = Enough(cases // 2, source, looked=50)
    for case in drawn:
        if method_of(case) != "restricted":
            continue
        program, window, count_window = program_of(case.query, case.events.schema)
        most = memory(bounded(program, window, count_window), rate=Rate(1))
        evaluation = Restricted(program, window=window, count_window=count_window, sizes=RestrictedSizes(matches=1, positions=1))
        rng = random.Random(f"{seed} {case.number}")
        letters = [rng.randrange(1 << min(program.bits, 16)) for _ in range(60)]
        for time, letter in enumerate(letters):
            evaluation.feed(pa.array([letter], pa.uint32()).to_numpy(), pa.array([time], pa.int64()).to_numpy(), continued=time > 0)
            held = [len(evaluation.store.entries(0, ring)) for ring in range(1, len(evaluation.store.layout.rings))]
            for count, sequence in zip(held, most.sequences, strict=True):
                assert sequence.instances is None or count <= sequence.instances, f"{sequence}\n{case}"
            drawn.seen["looked"] += sum(count > 0 for count in held)


@pytest.mark.parametrize(
    "pattern", ["A ; (B ALL C) ; D WITHIN 20 EVENTS", "A ; B ; C UNLESS D", "(A ; B) ALL (C ; D)", "(A ; A) WITHIN 5 UNLESS (B OR C)"]
)
def test_memory_stays_where_it_is(pattern: str) -> None:
    """What is bounded does not grow with the stream, with the events that matches may show, nor with a window."""
    recognizer = cepheid.query(f"SELECT RESTRICTED * WHERE {pattern}").recognizer(pa.schema([("type", pa.string()), ("ts", pa.int64())]))
    rng = random.Random(1)
    used = []
    for begin in range(0, 100_000, 5_000):
        types = [rng.choice("ABCD") for _ in range(5_000)]
        recognizer.push(pa.table({"type": types, "ts": range(begin, begin + 5_000)}))
        used.append(recognizer.memory_usage())
    # The events that a match may still show are looked through from time to time.
    assert max(used[10:]) <= 1.2 * max(used[:10])
