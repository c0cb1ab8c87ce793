"""`:` beside events of definitions: what the warning and the note say is so in every stream that is tried."""

from __future__ import annotations

import random

import pytest

import cepheid
from cepheid.testing import generators

EACH = "EVENT P(m) AS (SELECT count(a) AS m WHERE A AS a)"
DEFINITIONS = {
    "of each A": EACH,
    "of each A or pair": "EVENT P(m) AS (SELECT NXT count(A) AS m WHERE (A+ WITHIN 3) OR (B ; C))",
    "of an A and a C": "EVENT P(m) AS (SELECT count(a) AS m WHERE A AS a ; C)",
    "of some A": "EVENT P(m) AS (SELECT count(a) AS m WHERE A AS a FILTER a.v > 0)",
    "that consume": "EVENT P(m) AS (SELECT count(a) AS m WHERE A+ AS a CONSUME BY ANY)",
    "with a key": f"{EACH[:-1]} PARTITION BY k)",
    "with HAVING": "EVENT P(m) AS (SELECT count(a) AS m WHERE A AS a HAVING m > 5)",
    "of events that are made": f"{EACH} EVENT Q(m) AS (SELECT count(a) AS m WHERE P AS a)",
    "beside each other": f"{EACH} EVENT Q(m) AS (SELECT count(a) AS m WHERE ANY AS a)",
    "of pairs that are made": f"{EACH} EVENT Q(m) AS (SELECT count(a) AS m WHERE P AS a ; P)",
}
PATTERNS = (
    "A : B",
    "B : A",
    "B : C",
    "C : B",
    "P : B",
    "B : P",
    "A : P",
    "P : P",
    "P : A",
    "A : B : C",
    "(A OR C) : B",
    "ANY : B",
    "A:{2,}",
)
NEVER, NOTE = "there is never a match", "note: `:` asks for the very next event"


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_what_is_said_of_adjacent_events_is_so(definition: str, seed: int) -> None:
    source = random.Random(f"adjacency {seed}")
    streams = [generators.table(generators.random_stream(source, most=16)) for _ in range(12)]
    for pattern in PATTERNS:
        for clauses in ("", " PARTITION BY k") if "PARTITION" in DEFINITIONS[definition] else ("",):
            query = cepheid.query(f"{DEFINITIONS[definition]} SELECT * WHERE {pattern}{clauses}")
            said = query.explain("lints")["lints"]
            found = [len(query.run(stream)) for stream in streams]
            if NEVER in said:
                assert not any(found), (definition, pattern)
            elif NOTE not in said and "P" not in pattern and ":{" not in pattern:
                plain = cepheid.query(f"SELECT * WHERE {pattern}{clauses}")
                assert found == [len(plain.run(stream)) for stream in streams], (definition, pattern)


@pytest.mark.parametrize(
    ("definition", "pattern", "said"),
    [
        ("of each A", "A : B", NEVER),
        ("of each A", "B : A", ""),
        ("of each A", "P : B", ""),
        ("of each A", "A? : B", NOTE),
        ("of each A", "A : B?", NOTE),
        ("of each A", "A:+", "it never has more than one"),
        ("of each A", "A:{2,}", NEVER),
        ("of each A", "(A OR C) : B", NOTE),
        ("of each A", "ANY : B", NOTE),
        ("of each A or pair", "A : B", NEVER),
        ("of an A and a C", "A : B", ""),
        ("of an A and a C", "C : B", NOTE),
        ("of an A and a C", "P : B", NOTE),
        ("of some A", "A : B", NOTE),
        ("that consume", "A : B", NOTE),
        ("with a key", "A : B", NOTE),
        ("with a key", "A : B PARTITION BY k", NEVER),
        ("with HAVING", "A : B", NOTE),
        ("of events that are made", "P : B", NEVER),
        ("of events that are made", "Q : B", ""),
        ("beside each other", "P : B", NEVER),
        ("beside each other", "B : C", NEVER),
        ("of pairs that are made", "P : B", NOTE),
    ],
)
def test_what_is_said(definition: str, pattern: str, said: str) -> None:
    lints = cepheid.query(f"{DEFINITIONS[definition]} SELECT * WHERE {pattern}").explain("lints")["lints"]
    assert said in lints
    assert ("very next event" in lints) == bool(said)


def test_definitions_are_looked_at_too() -> None:
    query = f"{EACH} EVENT Q(m) AS (SELECT count(a) AS m WHERE A AS a : B) SELECT * WHERE Q ; P WITHIN 9"
    assert NEVER in cepheid.query(query).explain("lints")["lints"]
