"""Random query texts, through parser and binder: rewritten, they have the same matches, and those of the engine's fragment are normal."""

from __future__ import annotations

import random

import pytest
from enough import Enough

from cepheid.errors import LimitError
from cepheid.language import parse
from cepheid.logical import describe, rewrite
from cepheid.logical.bind import bind
from cepheid.logical.normal_form import is_normal
from cepheid.schema import schema_of
from cepheid.testing.generators import ENGINE, SCHEMA, WIDE, QueryFragment, random_query, random_stream
from cepheid.testing.reference import Event
from cepheid.theory.equivalence import rows_of

EVENT_SCHEMA = schema_of(SCHEMA)


@pytest.mark.parametrize("fragment", [ENGINE, WIDE], ids=["engine", "wide"])
def test_rewritten_queries_have_the_same_matches(fragment: QueryFragment, cases: int, seed: int) -> None:
    drawn = Enough(cases, found=20, changed=5)
    for number in drawn:
        rng = random.Random(f"{seed} {number}")
        text = random_query(rng, fragment=fragment)
        plan = bind(parse(text), EVENT_SCHEMA, text=text)
        rewritten = rewrite(plan)
        drawn.seen["changed"] += rewritten is not plan
        assert fragment is WIDE or is_normal(rewritten.pattern), f"{text}\n{describe(rewritten.pattern)}"
        for _ in range(2):
            events = [Event(row["type"], row["ts"], row) for row in random_stream(rng, most=7)]
            try:
                expected = rows_of(plan, events)
            except LimitError:
                continue
            drawn.seen["found"] += len(expected)
            assert rows_of(rewritten, events) == expected, f"{text}\n{describe(rewritten.pattern)}\n{events}"
