"""Redundant parentheses change nothing: not the tree, not the canonical text, not the fingerprint, not the matches."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pytest
from enough import Enough

import cepheid
from cepheid.language import parse, parse_pattern, to_text
from cepheid.testing import events

ENGINES = ("reference", None, "python")
TYPES = "ABCD"


class Nested:
    """Random patterns, each in two texts: with the parentheses that it needs, and with some more."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def around(self, text: str) -> str:
        return f"({text})" if self.rng.random() < 0.2 else text

    def atom(self) -> tuple[str, str]:
        text = self.rng.choice(TYPES)
        return text, self.around(text)

    def item(self, depth: int) -> tuple[str, str]:
        """An item of a sequence: an event, or a group under an operator, which is a pattern of its own."""
        if depth == 0 or self.rng.random() < 0.7:
            return self.atom()
        plain, more = self.pattern(depth - 1)
        form = self.rng.choice(("({})+", "({}):+", "({}) AS x", "({}){{1,2}}", "STRICT({})", "PROJECT NONE ({})"))
        return form.format(plain), self.around(form.format(more))

    def sequence(self, depth: int) -> tuple[str, str]:
        items = [self.item(depth) for _ in range(self.rng.randint(2, 5))]
        needed = self.rng.randrange(len(items))
        for place, (plain, more) in enumerate(items):
            if place != needed and self.rng.random() < 0.5:
                items[place] = f"({plain})?", self.around(f"({more})?")
        links = [self.rng.choice(";:") for _ in items[1:]]
        plain = items[0][0] + "".join(f" {link} {item[0]}" for link, item in zip(links, items[1:], strict=True))
        return plain, self.grouped([item[1] for item in items], links)

    def grouped(self, items: list[str], links: list[str]) -> str:
        """The same items and links, with parentheses around some neighbours, again and again."""
        while len(items) > 1 and self.rng.random() < 0.7:
            first, last = sorted(self.rng.sample(range(len(items)), 2))
            group = items[first] + "".join(
                f" {link} {item}" for link, item in zip(links[first:], items[first + 1 : last + 1], strict=False)
            )
            items[first : last + 1] = [f"({group})"]
            links[first:last] = []
        return items[0] + "".join(f" {link} {item}" for link, item in zip(links, items[1:], strict=True))

    def pattern(self, depth: int) -> tuple[str, str]:
        if self.rng.random() < 0.8:
            return self.sequence(depth)
        operands = [self.sequence(depth) for _ in range(3)]
        plain = " OR ".join(text for text, _ in operands)
        first, second, third = (self.around(more) for _, more in operands)
        return plain, self.rng.choice((f"({first} OR {second}) OR {third}", f"{first} OR ({second} OR {third})"))


def stream(rng: random.Random) -> str:
    return " ".join(f"{rng.choice('ABCDE')}{time}" for time in range(1, rng.randint(5, 9)))


def matches(query: cepheid.Query, given: object, engine: str | None) -> list[tuple[object, ...]]:
    return sorted((match.start, match.end, sorted(match.variables.items())) for match in query.run(given, engine=engine))


def test_redundant_parentheses_change_nothing(cases: int, seed: int) -> None:
    rng = random.Random(seed)
    nested = Nested(rng)
    drawn = Enough(cases // 2, found=5)
    for _ in drawn:
        plain, more = nested.pattern(1)
        queries = [cepheid.query(f"SELECT * WHERE {text}") for text in (plain, more)]
        trees = [query.tree for query in queries]
        assert trees[0] == trees[1], f"{plain}\n{more}"
        assert to_text(trees[0]) == to_text(trees[1]) == to_text(parse(to_text(trees[1])))
        given = pa.Table.from_pylist(events(stream(rng)))
        schemas = [query.schema(given.schema) for query in queries]
        assert queries[0].compiled(schemas[0]).fingerprint == queries[1].compiled(schemas[1]).fingerprint
        expected = matches(queries[0], given, "reference")
        drawn.seen["found"] += len(expected)
        for engine in ENGINES:
            assert matches(queries[1], given, engine) == expected, f"{engine}: {more}\n{given}"


def test_an_absent_item_leaves_the_loosest_link(cases: int, seed: int) -> None:
    """A sequence with optional items is the OR over which of them are there, written out here with its links."""
    rng = random.Random(seed)
    for _ in range(cases // 2):
        count = rng.randint(2, 6)
        links = [rng.choice(";:") for _ in range(count - 1)]
        optional = [rng.random() < 0.6 for _ in range(count)]
        optional[rng.randrange(count)] = False
        items = [rng.choice(TYPES) for _ in range(count)]
        text = "".join(
            f"{item}{'?' if free else ''} {link} " for item, free, link in itertools.zip_longest(items, optional, links, fillvalue="")
        )
        readings = dict.fromkeys(
            written(items, links, present) for present in itertools.product(*((False, True) if free else (True,) for free in optional))
        )
        query, expanded = (cepheid.query(f"SELECT * WHERE {pattern}") for pattern in (text, " OR ".join(readings)))
        given = events(stream(rng))
        expected = matches(expanded, given, "reference")
        for engine in ENGINES:
            assert matches(query, given, engine) == expected, f"{engine}: {text}\n{given}"


def written(items: list[str], links: list[str], present: tuple[bool, ...]) -> str:
    """The sequence of the items that are there: between two of them the loosest of the links that stand there."""
    places = [place for place, here in enumerate(present) if here]
    text = items[places[0]]
    for left, right in itertools.pairwise(places):
        text += f" {';' if ';' in links[left:right] else ':'} {items[right]}"
    return text


@pytest.mark.parametrize(
    "group", ["(A ; C?) AS x", "(A ; C?)+", "(A ; C?){1}", "(A ; C?) FILTER A.$index < 9", "(A ; C?) FILTER TRUE", "STRICT(A ; C?)"]
)
def test_a_group_under_an_operator_is_a_pattern_of_its_own(group: str) -> None:
    query = cepheid.query(f"SELECT * WHERE ({group}) : B")
    for engine in ENGINES:
        if engine == "reference" or "$index" not in group:
            assert not query.run(events("A1 E2 B3"), engine=engine)
            assert len(query.run(events("A1 B2"), engine=engine)) == 1


@pytest.mark.parametrize("pattern", ["(A ; C?) :[<= 3] B", "(A ; C?) ; NOT D ; B", "A ;[<= 3] (C? ; B)", "(A ; C?) THEN B"])
def test_nothing_but_a_plain_link_stands_beside_an_optional_item(pattern: str) -> None:
    with pytest.raises(cepheid.BindError, match="is next to an optional item"):
        cepheid.query(f"SELECT * WHERE {pattern}").run(events("A1 B2"))


def test_parentheses_that_are_not_redundant_stay() -> None:
    for text in ("A ; (B THEN C)", "A THEN (B ; C)", "A AS x ; (A AS x ; (B FILTER x.v = 1))"):
        assert to_text(parse_pattern(text)) == text
