"""The examples of patterns that compare events: what they find, event by event too, and on random streams against the definition."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from pathlib import Path
from typing import TYPE_CHECKING

import comparing
import pyarrow as pa
import pytest

import cepheid
from cepheid.testing.differential import WAYS, Case, answers, check, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs" / "comparing.md"

FOUND = {
    "jump": [((1,), (0, 2)), ((1,), (2, 4)), ((1,), (1, 4))],
    "rising run": [(("A",), (0, 1, 2)), (("A",), (0, 1, 2, 3)), (("A",), (4, 5, 6))],
    "break-in": [(("ann",), (1, 2, 3, 4, 5, 7))],
    "paid late": [((2,), (0, 1))],
    "sessions": [(("bob",), (0,)), (("ann",), (0, 1, 2)), (("ann",), (3,)), (("bob",), (1,))],
    "sensors that differ": [(("hall",), (2, 3)), (("hall",), (0, 3)), (("hall",), (3, 4))],
    "left without the register (SASE)": [((2,), (1, 2)), ((2,), (0, 2))],
    "time span (Padres)": [((), (0, 2)), ((), (0, 4))],
}
"""The key and the positions of each match."""

SAME = {
    "sessions": [("SELECT LAST", "SELECT MAX")],
    "left without the register (SASE)": [
        (" ; NOT (Register OR Exit) ; Exit AS c", " : (ANY:+ AS between)? : Exit AS c FILTER between[type NOT IN ('Register', 'Exit')]"),
    ],
}
"""Other ways to say the same: what to replace."""


@pytest.mark.parametrize("name", comparing.EXAMPLES)
def test_what_the_examples_find(name: str) -> None:
    example = comparing.EXAMPLES[name]
    found = [
        (row.key, tuple(sorted({place for _, places in row.mapping for place in places})))
        for row in rows_of(example.query.run(example.table()))
    ]
    assert found == FOUND[name]


@pytest.mark.parametrize("name", comparing.EXAMPLES)
def test_the_same_matches_event_by_event(name: str) -> None:
    example = comparing.EXAMPLES[name]
    found = comparing.on_table(example)
    assert found
    assert comparing.event_by_event(example) == found


@pytest.mark.parametrize("name", comparing.EXAMPLES)
def test_random_streams_give_the_matches_of_the_definition(name: str, seed: int, cases: int) -> None:
    """On all ways: each stream as a table, and in one of the other ways; until there are enough with matches."""
    ways = [way for way in WAYS if way != "whole"]
    matched = 0
    for number, case in enumerate(random_cases(name, seed)):
        if number >= cases // 3 and matched > cases / 80:
            break
        found = WAYS["whole"](case, None)
        check(case, found)
        way = ways[number % len(ways)]
        assert WAYS[way](case, None) == found, f"{way}\n{case}"
        matched += bool(found)


@pytest.mark.parametrize("name", SAME)
def test_another_way_to_say_the_same(name: str, seed: int, cases: int) -> None:
    text = comparing.EXAMPLES[name].text
    for old, new in SAME[name]:
        assert old in text
        text = text.replace(old, new)
    for case in itertools.islice(random_cases(name, seed), cases // 2):
        check(case, rows_of(case.query.run(case.events)), answers(cepheid.query(text), case.events)[0])


def test_the_page_has_the_examples() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, example in comparing.EXAMPLES.items():
        assert example.text.rstrip() in page, name


def random_cases(name: str, seed: int) -> Iterator[Case]:
    """Streams of the events of an example, of few keys, at steps that its gaps and windows are made of; some values are NULL.

    Five failures from elsewhere need more events, of one key, and an address that is more frequent than others.
    """
    example = comparing.EXAMPLES[name]
    schema = example.table().schema
    rare = name == "break-in"
    types = [*(kind for kind, *_ in example.rows), "Other"]
    values = []
    for place, attribute in enumerate(example.columns):
        few = sorted({row[2 + place] for row in example.rows} - {None})
        if attribute in example.query.tree.partition_by:
            few = few[: 1 if rare else 2]
        values.append([*few, *few[:1] * 4] if rare else few)
    for number in itertools.count():
        rng = random.Random(f"{seed}/{name}/{number}")
        time, rows = comparing.NOON, []
        for _ in range(rng.randint(9, 14) if rare else rng.randint(3, 12)):
            time += dt.timedelta(seconds=rng.choice(STEPS[name]))
            row = (rng.choice(types), time, *(None if rng.random() < 0.05 else rng.choice(few) for few in values))
            rows.append(dict(zip(schema.names, row, strict=True)))
        events = pa.Table.from_pylist(rows, schema=schema)
        yield Case(seed, number, example.query, events, *answers(example.query, events))


STEPS = {
    "jump": (0, 1, 20, 30, 60),
    "rising run": (0, 1),
    "break-in": (0, 1, 5, 10, 15, 16),
    "paid late": (0, 600, 1200, 1800, 1801),
    "sessions": (0, 600, 1800, 1801),
    "sensors that differ": (0, 1, 5, 10, 11),
    "left without the register (SASE)": (0, 60, 7200, 21600),
    "time span (Padres)": (0, 1, 3, 5),
}
"""Seconds from one event to the next, in random streams: also what gaps and windows just allow, and just do not."""
