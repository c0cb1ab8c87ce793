"""What a query means, in sentences: they are exact for each construct, and nothing of a query is without a word."""

from __future__ import annotations

import dataclasses
import enum
import random
import re
from pathlib import Path

import pyarrow as pa
import pytest

import cepheid
from cepheid.language.syntax import Strategy, TimeModel
from cepheid.logical import plan, tree
from cepheid.logical.meaning import meaning
from cepheid.logical.phrases import literal_phrase
from cepheid.testing import generators
from cepheid.testing.cases import load

CASES = Path(__file__).parents[1] / "cases"

SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("k", pa.string()),
        ("v", pa.float64()),
        ("w", pa.float64()),
        ("b", pa.bool_()),
    ]
)

JARGON = re.compile(r"\b(?:runs?|triggers?|automat\w*|letters?|selections?|partition\w*|strateg\w+|CEL|support|mapping|guards?|vetoe?d?)\b")

FRAGMENTS = ("NEGATING", "SUCCEEDING", "JUDGING", "STARTING", "CONTRADICTING", "LAYERED", "LAGGED", "POSITIONAL", "TIMED")


def said(text, schema=SCHEMA):
    query = cepheid.query(text)
    return meaning(query.bound(query.schema(schema)))


def of_corpus():
    for file in sorted(CASES.glob("*.toml")):
        for case in load(file):
            query = cepheid.query(case.query, args=case.args)
            yield query.bound(query.schema(case.table.schema))


def at_random(fragment, number):
    source = random.Random(fragment)
    for _ in range(number):
        query = cepheid.query(generators.random_query(source, fragment=getattr(generators, fragment)))
        yield query.bound(query.schema(generators.SCHEMA))


KEPT = "All matches are kept, also those that share events."
CANDIDATES = "Of all matches of part 1 that start at a later time than what stands before part 1 ends, "


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("T AS x ; H FILTER x.v > 40", f"A match is a T called x where v is more than 40, later an H. {KEPT}"),
        ("Use ; ANY", f"A match is a Use, later any event. {KEPT}"),
        (
            "A : C? ; B",
            f"A match is an A, directly followed by perhaps a C (without it, other events may lie in its place), later a B. {KEPT}",
        ),
        ("A : C? : B", f"A match is an A, directly followed by perhaps a C, directly followed by a B. {KEPT}"),
        (
            "A ;[<= 5s] B :[> 1s, < 3s] C",
            "A match is an A, at most 5s later a B, directly followed by a C (more than 1s and less than 3s later).",
        ),
        (
            "A+ ;[1s, 2s] B",
            "A match is one or more A, later a B (at least 1s and at most 2s after the end of what stands before).",
        ),
        ("A ;[<= 5s] B+", "A match is an A, later one or more B (its start is at most 5s after the end of what stands before)."),
        ("A ; NOT (B FILTER B.v = 1) ; C", "A match is an A, later a C (no B where v is 1 between)."),
        ("A{2,3}[<= 1m] AS x", "A match is two to three A (each at most 1m after the one before), together called x."),
        ("(A{2,} AS x WITHIN 5s) ; B", "A match is two or more A, together called x (at most 5s from start to end), later a B."),
        ("(A OR B):{2,}", "A match is two or more times (an A or a B) (each directly after the one before)."),
        ("A THEN B", "A match is an A, then the first B of a later time (all, if several have that time)."),
        ("A THEN (B ; C)", f"A match is an A, then the next part 1. {CANDIDATES}those that end first are next."),
        ("(A AS x OR B AS y) FILTER x.v = y.v", "A match is either an A called x, or a B called y. For every x and every y: x.v is y.v."),
        (
            "A AS x ; B+ AS y FILTER x.v < y.v",
            "A match is an A called x, later one or more B, together called y. For every y: x.v is less than y.v.",
        ),
        ("A ; B UNLESS C", "A match is an A, later a B. No C lies between its start and its end, its own events included."),
        (
            "A ; B WITHIN 9 EVENTS",
            "A match is an A, later a B. From its start to its end there are at most 9 events, of any type, both ends counted.",
        ),
        (
            "A AS x FILTER x.v != 1.5 AND NOT x.b AND x.w IS NOT NULL",
            "v is different from 1.5 and (it is not true that b is true) and w is not missing.",
        ),
        ("A AS x FILTER x.k LIKE 'a%' OR (x.v IN (1, 2) AND x.b)", "where k is like 'a%' or ((v is 1 or 2) and b is true)."),
        ("A AS `my name` FILTER `my name`.v > 1", "A match is an A called `my name` where v is more than 1."),
        ("A AS x FILTER x.v > lag(x.v, 2)", "Lag(..) is of the event just before, of any type, and lag(.., n) of the event n before."),
        ("A AS x FILTER x.ts > TIMESTAMP '2026-01-02T03:04:05Z'", "where ts is more than 2026-01-02 03:04:05Z."),
        (
            "(A AS t FILTER t.v > prev(t).v)+",
            "T.v is more than prev(t).v. prev(t) is t in the repetition before of part 1, and where there is none, this holds.",
        ),
        (
            "A NOT FOLLOWED BY B FOR 5s FROM START",
            "In the end, those are given after which no B comes that is at most 5s later than their first event, once that is sure.",
        ),
        (
            "A NOT FOLLOWED BY (B ; C) FOR [< 5s]",
            "In the end, those are given after which no part 1 comes that ends less than 5s later than their last event, once that is sure.",
        ),
        ("(A FILTER x.v = 1) ; B AS x ; B AS x", "Part 1 is an A. x.v is 1 (x is that of (A FILTER x.v = 1.0) ; B AS x)."),
        ("(A ; B FILTER B.w = A.w) ; A", "Part 1 is an A, later a B. B.w is A.w (A is that of this part)."),
    ],
)
def test_patterns(where, expected):
    found = said(f"SELECT * WHERE {where}")
    assert expected.replace("T.v is", "t.v is").replace("Lag(", "lag(") in found, found
    assert found.startswith("A match is ")


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("ACTIVE_OFFICE", "those that end first are next, and of these only those that start first."),
        (
            "COMPLETE_HISTORY",
            "or else those whose time before it is the earliest, and so on back to their start.",
        ),
        ("SNOOPIB", "those are next that start before, or when, the first of them ends."),
        ("ODE", "those are next that start before, or when, the first of them ends."),
        (
            "POINT",
            "Of all matches of part 1 that end at a later time than what stands before part 1 ends, those that end first are next, also if they",
        ),
    ],
)
def test_models_of_next(model, expected):
    assert expected in said(f"SELECT * WHERE A THEN (B ; C) TIME MODEL {model}")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT MAX count(x) AS n, max(x.v) - 1 AS top WHERE A+ AS x PARTITION BY k HAVING n > 2 CONSUME BY ANY",
            (
                "Separately for each k, a match is one or more A, together called x. A match is left out if another one that ends with the same event "
                "has all its events and more. Only those are kept for which the number of x is more than 2. Once an event has ended a match "
                "that is kept, only matches that start after that event count, also those of another k. Shown of each match: n (the number of x) and "
                "top (max(x.v) - 1.0). Events in which k is missing are left out."
            ),
        ),
        (
            "SELECT NXT y FROM p, q WHERE p ; q AS y LIMIT 2",
            (
                "In p and q, merged by time, a match is a p, later a q called y. Of the matches that end with the same event, those with the earliest "
                "events are kept. Of two with different events, that is the one with the earliest event that they do not share. Shown of each match: y. "
                "Matches with the same start, the same end and the same of these are one. Of the matches that end with the same event, at most 2 are "
                "given, and it is not said which."
            ),
        ),
        (
            "SELECT ANY * WHERE A+ AS x HAVING count(x) > 2",
            (
                "A match is one or more A, together called x. Only those are kept for which the number of x is more than 2. Of the matches that end with "
                "the same event, one is kept, and it is not said which."
            ),
        ),
        (
            "EVENT P(top) AS (SELECT max(x.v) AS top WHERE A+ AS x) SELECT COUNT(*) WHERE NXT(P ; B)",
            (
                "Each match of this is an event, a P. It starts and ends with the match, and comes right after its last event.\n"
                f"A match is one or more A, together called x. {KEPT} The event has top (the greatest x.v).\n\n"
                f"A match is part 1. {KEPT} Shown for each event that ends matches: their number.\n"
                "Part 1 is a P, later a B. Of the matches that end with the same event, those with the earliest events are kept. Of two with different "
                "events, that is the one with the earliest event that they do not share."
            ),
        ),
    ],
)
def test_clauses(query, expected):
    assert said(query) == expected


def test_every_name_and_number_has_its_place_and_no_word_is_jargon():
    for bound in [*of_corpus(), *(each for fragment in FRAGMENTS for each in at_random(fragment, 12))]:
        text = meaning(bound)
        known = set(re.findall(r"'(?:[^']|'')*'|[\w$]+(?:\.\d+)?", text))
        missing = [word for word in words(bound) if word not in known and (word.isidentifier() or word not in text)]
        assert not missing, (missing, bound.text, text)
        assert not JARGON.search(text), text


def words(bound):
    """The names and constants of a query, as the sentences have them."""
    for query in (*(definition.plan for definition in bound.definitions), bound):
        yield from query.partition_by
        expressions = [measure.expression for measure in query.computed]
        for node in tree.walk(query.pattern):
            match node:
                case plan.Event(type=str()):
                    yield node.type
                case plan.Named():
                    yield node.variable
                case plan.Filter():
                    expressions += node.conditions
        for expression in expressions:
            for leaf in plan.walk(expression):
                if isinstance(leaf, plan.Field):
                    yield from leaf.origin
                elif isinstance(leaf, plan.Literal) and leaf.value is not None:
                    yield literal_phrase(leaf)


def test_different_queries_have_different_sentences():
    """Each number, word and choice of a plan is changed, one at a time: the sentences change."""
    changes = 0
    for bound in (each for fragment in FRAGMENTS for each in at_random(fragment, 5)):
        text = meaning(bound)
        for changed in changed_plans(bound):
            assert meaning(changed) != text, (bound.text, text, changed)
            changes += 1
    assert changes > 500


def changed_plans(bound):
    for name, others in {"strategy": Strategy, "limit": (None, 7), "count": (True,)}.items():
        yield from (dataclasses.replace(bound, **{name: other}) for other in others if other != getattr(bound, name))
    yield from (dataclasses.replace(bound, pattern=pattern) for pattern in changed_parts(bound.pattern))


LEFT_OUT = {
    "span", "place", "type", "source", "spans", "variable", "path", "previous", "variables", "deadline", "attribute", "steps", "parameter",
    "kind", "model",
}  # fmt: skip


def changed_parts(node):
    """The node with one thing changed, in all ways: a number that is one more, another strategy, the other operator, without a gap."""
    if isinstance(node, tuple):
        for index, each in enumerate(node):
            yield from ((*node[:index], changed, *node[index + 1 :]) for changed in changed_parts(each))
    elif isinstance(node, plan.Literal):
        if isinstance(node.value, int | float) and not isinstance(node.value, bool):
            yield dataclasses.replace(node, value=node.value + 1)
    elif isinstance(node, enum.Enum):
        yield from (other for other in type(node) if other is not node and not isinstance(node, TimeModel))
    elif isinstance(node, bool):
        yield not node
    elif isinstance(node, int):
        yield node + 1
    elif node in (";", ":"):
        yield {";": ":", ":": ";"}[node]
    elif node in ("=", "!=", "<", "<=", ">", ">="):
        yield from {"=", "!=", "<", "<=", ">", ">="} - {node}
    elif dataclasses.is_dataclass(node):
        for item in dataclasses.fields(node):
            if item.name not in LEFT_OUT:
                yield from (dataclasses.replace(node, **{item.name: changed}) for changed in changed_parts(getattr(node, item.name)))


def test_an_event_that_is_a_part_of_its_own_has_its_name():
    definition = "EVENT P(v) AS (SELECT a.v AS v WHERE A AS a)"
    assert "Part 2 is a P called x." in str(cepheid.query(f"{definition} SELECT * WHERE (B THEN P AS x)+").explain("meaning"))
