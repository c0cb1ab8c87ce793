"""Each query that docs/coming-from.md puts beside another system's is one that the engine runs, and means what that system's does.

A row of the page that is marked `=` has a twin here: a few lines that say what theirs is defined to find. A twin takes the events of a stream and
gives the matches, each as the positions of its events. Rows marked `~` have one where the remark says which matches ours are.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
import random
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cepheid

PAGE = (Path(__file__).resolve().parents[2] / "docs/coming-from.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| .+ \|$", re.MULTILINE)
QUERY = re.compile(r"`((?:SELECT|EVENT) [^`]+ WHERE [^`]+)`")
CELLS = [[cell.strip() for cell in row.split("|")[1:-1]] for row in ROW.findall(PAGE) if "---" not in row]
QUERIES = [query for cells in CELLS for query in QUERY.findall(cells[-2])]
CLAIMED = [query for cells in CELLS if len(cells) == 4 and cells[1] == "=" for query in QUERY.findall(cells[2])]
BLOCKS = re.findall(r'^(\w+) = """\n(.*?)^"""$', PAGE, re.MULTILINE | re.DOTALL)

DAY_ONE = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
UNITS = {"s": 1, "m": 60, "h": 3600}
SPAN = 5
"""Each window and duration of the page is so many steps of time on the streams here: many events are exactly at its end."""
SYMBOLS = {"A": "AABBCN", "T": "T", "S": "AAABBS"}
LONG = {"S": "Stop"}
"""The type that a letter stands for, where it is not its own name."""

Event = dict[str, Any]
Stream = list[Event]
Match = tuple[int, ...]


def test_every_row_has_ours_or_says_why_not() -> None:
    assert len(QUERIES) > 90
    assert len(CLAIMED) > 60
    for cells in CELLS:
        assert len(cells) in {3, 4}, cells
        assert cells[-2], cells
        if len(cells) == 4:
            assert cells[1] in {"=", "~", "no", ""}, cells


def test_every_row_that_claims_to_be_equal_is_compared() -> None:
    assert sorted(set(CLAIMED) - TWINS.keys()) == []


@pytest.mark.parametrize("query", QUERIES)
def test_the_engine_plans_it(query: str) -> None:
    values = {"limit": 1} if ":limit" in query else {}
    assert "engine" in cepheid.query(query, args=values).explain("evaluation")["evaluation"]


def drawn(draw: random.Random, symbols: str) -> Stream:
    """A stream; `t` counts its steps of time, `at` its events."""
    times = itertools.accumulate(draw.choice((0, 1, 1, 2, 3)) for _ in range(draw.randrange(1, 13)))
    return [
        {
            "at": at,
            "t": time,
            "type": LONG.get(symbol, symbol),
            **{name: draw.choice((0, 1, 2, 3, None)) for name in ("u", "v", "w")},
            "price": draw.choice((1, 2, 3, 4, 5, 6, None)),
            **dict.fromkeys(("user", "k", "id"), draw.randrange(2)),
        }
        for at, (time, symbol) in enumerate(zip(times, (draw.choice(symbols) for _ in iter(int, 1)), strict=False))
    ]


planned = functools.cache(cepheid.query)


def ours(query: str, stream: Stream) -> list[Match]:
    """The positions of each match, in order; a query's own window or duration is SPAN steps of time."""
    duration = re.search(r"(\d+) ?([smh])\b", query)
    step = dt.timedelta(seconds=int(duration[1]) * UNITS[duration[2]] / SPAN) if duration else dt.timedelta(days=1)
    named = "FROM ticks" not in query
    rows = [
        {name: value for name, value in event.items() if named or name != "type"} | {"ts": DAY_ONE + event["t"] * step} for event in stream
    ]
    measures = re.match(r"SELECT (?!a, b)(.*\)|p.price.*) AS \w+ WHERE", query)
    shown = query.replace(measures[0], "SELECT * WHERE") if measures else query
    until = "end" if "FOLLOWED BY" in query else None
    found = planned(shown).run(rows, time="ts", until=until)
    assert not measures or len(planned(query).run(rows, time="ts", until=until)) == len(found)
    return sorted(tuple(sorted({event["at"] for name in match.variables for event in match[name]})) for match in found)


# What theirs find: of Flink and Esper, all matches; of MATCH_RECOGNIZE, one for each start, or what SKIP leaves.


def are(stream: Stream, *kinds: str) -> list[int]:
    """Places of the events of these types."""
    return [place for place, event in enumerate(stream) if event["type"] in kinds]


def first(stream: Stream, start: int, *kinds: str) -> int | None:
    """Where the first event of these types is, from a place on."""
    return next((place for place in are(stream, *kinds) if place >= start), None)


def near(stream: Stream, one: int, other: int) -> bool:
    """Whether two events are less than the window apart."""
    return bool(stream[other]["t"] - stream[one]["t"] < SPAN)


def pairs(stream: Stream, kind: str = "B") -> Iterator[Match]:
    return ((a, b) for a in are(stream, "A") for b in are(stream, kind) if a < b)


def of_each(*rest: str, window: bool = False) -> Callable[[Stream], Iterator[Match]]:
    """For each A the first event of the next type, then the first of the one after, ..: Flink's followedBy, Esper's `every a=A -> ..`.

    A type in front of which a colon stands has to be that of the very next event.
    """

    def found(stream: Stream) -> Iterator[Match]:
        for start in are(stream, "A"):
            match: Match = (start,)
            for kind in rest:
                place = first(stream, match[-1] + 1, kind.removeprefix(":"))
                if place is None or (kind.startswith(":") and place != match[-1] + 1) or (window and not near(stream, start, place)):
                    break
                match += (place,)
            else:
                yield match

    return found


def neighbours(*kinds: str) -> Callable[[Stream], Iterator[Match]]:
    return lambda stream: (
        tuple(range(place, place + len(kinds)))
        for place in range(len(stream) - len(kinds) + 1)
        if all(event["type"] == kind for event, kind in zip(stream[place:], kinds, strict=False))
    )


def runs(least: int, most: int, *, followed: bool = False) -> Callable[[Stream], Iterator[Match]]:
    """A next to A, from `least` to `most` of them, at each start; `followed`: a B at the very next event."""

    def found(stream: Stream) -> Iterator[Match]:
        for start, size in itertools.product(range(len(stream)), range(least, min(most, len(stream)) + 1)):
            kinds = ["A"] * size + ["B"] * followed
            if [event["type"] for event in stream[start : start + len(kinds)]] == kinds:
                yield tuple(range(start, start + len(kinds)))

    return found


def relaxed(
    least: int, most: int = 99, *, then: bool = False, greedy: bool = False, stop: str = "", step: bool = False
) -> Callable[[Stream], Iterator[Match]]:
    """Flink's times and oneOrMore: no A left out, others in between; `then`: followedBy B; `step`: less than the window from one to the next."""

    def found(stream: Stream) -> Iterator[Match]:
        places = are(stream, "A")
        for low, high in itertools.combinations(range(len(places) + 1), 2):
            taken = tuple(places[low:high])
            b = first(stream, taken[-1] + 1, "B")
            if not least <= len(taken) <= most or (step and not all(near(stream, *two) for two in itertools.pairwise(taken))):
                continue
            if stop and any(taken[0] < place < taken[-1] for place in are(stream, stop)):
                continue
            if not then:
                yield taken
            elif b is not None and not (greedy and high < len(places) and places[high] < b):
                yield (*taken, b)

    return found


def choices(stream: Stream) -> Iterator[Match]:
    """allowCombinations: every way to choose from the A."""
    places = are(stream, "A")
    return (taken for size in range(1, len(places) + 1) for taken in itertools.combinations(places, size))


def chosen(keep: Callable[[Stream, Match, int], bool]) -> Callable[[Stream], Iterator[Match]]:
    """Every choice of the A, and every B after it, where the two fit."""
    return lambda stream: ((*taken, b) for taken in choices(stream) for b in are(stream, "B") if taken[-1] < b and keep(stream, taken, b))


def above_the_mean(stream: Stream, taken: Match, b: int) -> bool:
    values = [stream[place]["v"] for place in taken if stream[place]["v"] is not None]
    return bool(values) and stream[b]["v"] is not None and sum(values) < stream[b]["v"] * len(values)


def less(one: object, other: object) -> bool:
    return one is not None and other is not None and one < other  # type: ignore[operator]


def dearer(stream: Stream, kinds: tuple[str, str] = ("A", "B")) -> Iterator[Match]:
    """Each a, and each later b that is dearer."""
    for a in are(stream, kinds[0]):
        yield from ((a, b) for b in are(stream, kinds[1]) if a < b and less(stream[a]["price"], stream[b]["price"]))


def earliest(matches: Iterable[Match]) -> list[Match]:
    """Of each start, the match that ends first: skipToNext."""
    best: dict[int, Match] = {}
    for match in sorted(matches, key=lambda match: match[-1]):
        best.setdefault(match[0], match)
    return list(best.values())


def past(matches: Iterable[Match]) -> list[Match]:
    """skipPastLastEvent: the match that starts first, then the first that starts after its end."""
    kept: list[Match] = []
    for match in sorted(earliest(matches)):
        if not kept or match[0] > kept[-1][-1]:
            kept.append(match)
    return kept


def optional(stream: Stream) -> Iterator[Match]:
    yield from of_each("B")(stream)
    yield from of_each("C", "B")(stream)


def optional_any(stream: Stream) -> Iterator[Match]:
    yield from pairs(stream)
    yield from ((a, c, b) for a, c in pairs(stream, "C") for b in are(stream, "B") if c < b)


def absent(*rest: str, missing: str) -> Callable[[Stream], Iterator[Match]]:
    """Partial matches that have timed out: those that nothing of a type follows while the window of their start is open."""
    return lambda stream: (
        match
        for match in of_each(*rest, window=True)(stream)
        if not any(match[-1] < place and near(stream, match[0], place) for place in are(stream, missing))
    )


def by(name: str, find: Callable[[Stream], Iterable[Match]]) -> Callable[[Stream], list[Match]]:
    """The same for each key."""

    def found(stream: Stream) -> list[Match]:
        parts = [[event for event in stream if event[name] == key] for key in {event[name] for event in stream}]
        return [tuple(part[place]["at"] for place in match) for part in parts for match in find(part)]

    return found


def five_by_five(stream: Stream) -> Iterator[Match]:
    places = are(stream, "A")
    return (tuple(places[start : start + 5]) for start in range(0, len(places) - 4, 5))


def until(stream: Stream) -> Iterator[Match]:
    """All A until a B, then again: Esper's `every ([1:] a=A until b=B)`."""
    taken: list[int] = []
    for place in are(stream, "A", "B"):
        if stream[place]["type"] == "A":
            taken.append(place)
        elif taken:
            yield (*taken, place)
            taken = []


Define = Callable[[Stream, int], bool]
Item = tuple[int, int, Define]


def recognize(*items: Item, skip: str = "past") -> Callable[[Stream], list[Match]]:
    """MATCH_RECOGNIZE: items of (least, most, DEFINE), greedy; skip past the last row, to the next row, or to the last row."""

    def way(stream: Stream, place: int, rest: tuple[Item, ...]) -> Match | None:
        """The first way in the order of preference: one more row of an item is preferred to none."""
        if not rest:
            return ()
        least, most, define = rest[0]
        if most and place < len(stream) and define(stream, place):
            longer = way(stream, place + 1, ((max(least - 1, 0), most - 1, define), *rest[1:]))
            if longer is not None:
                return (place, *longer)
        return way(stream, place, rest[1:]) if least == 0 else None

    def found(stream: Stream) -> list[Match]:
        matches, place = [], 0
        while place < len(stream):
            match = way(stream, place, items)
            if match:
                matches.append(match)
            place = {"past": match[-1] + 1, "next": place + 1, "last": match[-1]}[skip] if match else place + 1
        return matches

    return found


def one(define: Define) -> Item:
    return 1, 1, define


def of(kind: str) -> Define:
    return lambda stream, place: bool(stream[place]["type"] == kind)


def above(stream: Stream, place: int, rows: int = 1) -> bool:
    return place >= rows and less(stream[place - rows]["price"], stream[place]["price"])


def below(stream: Stream, place: int) -> bool:
    return place > 0 and less(stream[place]["price"], stream[place - 1]["price"])


def anything(stream: Stream, place: int) -> bool:
    return True


def closed(find: Callable[[Stream], list[Match]]) -> Callable[[Stream], list[Match]]:
    """Without a match that the end of the table has cut off."""
    return lambda stream: [match for match in find(stream) if match[-1] < len(stream) - 1]


def of_values(holds: Callable[[Event], bool], kind: str) -> Callable[[Stream], Iterator[Match]]:
    return lambda stream: ((place,) for place in are(stream, kind) if holds(stream[place]))


def greater_than_1(event: Event) -> bool:
    return less(1, event["v"])


def table_of(find: Callable[[Stream], Iterable[Match]], *, last: bool) -> Callable[[Stream], list[Match]]:
    """`A X* B`, greedy: for each A the last B; `last`: with SKIP PAST LAST ROW."""

    def found(stream: Stream) -> list[Match]:
        longest = {match[0]: match for match in sorted(find(stream))}
        return past(longest.values()) if last else list(longest.values())

    return found


OTHERS = "(A AS a OR (ANY AS x FILTER x[type != 'A'])):{0,}"
CHAIN = f"A AS a OR (A AS a : {OTHERS} : A AS a)"
UNTIL = CHAIN.replace("!= 'A'", "NOT IN ('A', 'Stop')")
NEXT_ONE = "SELECT a, b WHERE (A AS a : B AS b) OR (A AS a : (ANY AS x FILTER"
ENDS_OF_LAST = "SELECT * WHERE A ; B NOT FOLLOWED BY B FOR 3650 days"
AVERAGE = "SELECT avg(a.v) AS mean WHERE A+ AS a ; B AS b HAVING avg(a.v) < last(b.v)"
FALL = "SELECT MAX * WHERE T AS top : (T AS down FILTER down.price < lag(down.price)):+ : T AS up FILTER up.price > lag(up.price)"

TWINS: dict[str, Callable[[Stream], Iterable[Match]]] = {
    # Flink, and what others share with it
    "SELECT * WHERE A AS a FILTER a[v > 1]": of_values(greater_than_1, "A"),
    "SELECT * WHERE X AS a": of_values(lambda event: event["type"] == "X", "X"),
    "SELECT * WHERE A AS a FILTER a[v > 1 OR w = 2] AND a[u < 3]": of_values(
        lambda event: (greater_than_1(event) or event["w"] == 2) and less(event["u"], 3), "A"
    ),
    "SELECT * WHERE A : B": neighbours("A", "B"),
    "SELECT * WHERE A ; NOT B ; B AS b": of_each("B"),
    "SELECT a, b WHERE A AS a : (B AS low OR (ANY AS x FILTER x[type != 'B'])):{0,} : B AS b"
    " FILTER b.price > a.price AND NOT low.price > a.price": lambda stream: earliest(dearer(stream)),
    "SELECT * WHERE A ; B": pairs,
    "SELECT * WHERE A AS a ; B AS b FILTER b.price > a.price": dearer,
    f"{NEXT_ONE} x[type != 'N']) ; B AS b)": lambda stream: (match for match in pairs(stream) if stream[match[0] + 1]["type"] != "N"),
    f"{NEXT_ONE} x[type NOT IN ('N', 'B')]) ; NOT B ; B AS b)": lambda stream: (
        match for match in of_each("B")(stream) if stream[match[0] + 1]["type"] != "N"
    ),
    "SELECT * WHERE A ; NOT N ; B": lambda stream: ((a, b) for a, b in pairs(stream) if not are(stream[a:b], "N")),
    "SELECT * WHERE A ; NOT (N OR B) ; B AS b": lambda stream: ((a, b) for a, b in of_each("B")(stream) if not are(stream[a:b], "N")),
    "SELECT * WHERE A NOT FOLLOWED BY N FOR [< 10m] FROM START": absent(missing="N"),
    "SELECT * WHERE A NOT FOLLOWED BY B FOR [< 10m] FROM START": absent(missing="B"),
    "SELECT * WHERE A ; NOT B ; B AS b NOT FOLLOWED BY C FOR [< 10m] FROM START WITHIN [< 10m]": absent("B", missing="C"),
    "SELECT * WHERE A:{2}": runs(2, 2),
    "SELECT * WHERE A:{2,4} AS a": runs(2, 4),
    "SELECT * WHERE A:+ AS a": runs(1, 99),
    "SELECT * WHERE A AS a ; NOT A ; A AS a ; NOT A ; A AS a": relaxed(3, 3),
    "SELECT * WHERE ((A AS a ; NOT A ; A AS a) OR (A AS a ; NOT A ; A AS a ; NOT A ; A AS a)) ; NOT B ; B AS b": relaxed(2, 3, then=True),
    f"SELECT a WHERE {CHAIN}": relaxed(1),
    f"SELECT a, b WHERE ({CHAIN}) ; NOT B ; B AS b": relaxed(1, then=True),
    f"SELECT a WHERE A AS a ; NOT A ; A AS a : {OTHERS} : A AS a": relaxed(3),
    f"SELECT a, b WHERE ({CHAIN}) ; NOT (A OR B) ; B AS b": relaxed(1, then=True, greedy=True),
    f"SELECT a, b WHERE ({UNTIL}) ; NOT B ; B AS b": relaxed(1, then=True, stop="Stop"),
    "SELECT * WHERE A+ AS a": choices,
    "SELECT * WHERE (A+ AS a UNLESS Stop) ; B": chosen(lambda stream, taken, b: not are(stream[taken[0] : taken[-1]], "Stop")),  # noqa: ARG005
    "SELECT * WHERE A+[< 5s] AS a": lambda stream: (
        taken for taken in choices(stream) if all(near(stream, *two) for two in itertools.pairwise(taken))
    ),
    "SELECT * WHERE A AS a ; NOT A ;[< 5s] A AS a ; NOT A ;[< 5s] A AS a": relaxed(3, 3, step=True),
    "SELECT * WHERE A ; C? ; B": optional_any,
    "SELECT * WHERE (A AS a ; NOT B ; B AS b) OR (A AS a ; NOT C ; C AS c ; NOT B ; B AS b)": optional,
    "SELECT * WHERE A : B ; NOT A ; A : B": of_each(":B", "A", ":B"),
    "SELECT * WHERE (A : B){2}": lambda stream: (one + two for one, two in itertools.combinations(neighbours("A", "B")(stream), 2)),
    AVERAGE: chosen(above_the_mean),
    "SELECT * WHERE A ; B WITHIN [< 10m]": lambda stream: (match for match in pairs(stream) if near(stream, *match)),
    "SELECT * WHERE A ;[< 10m] B": lambda stream: (match for match in pairs(stream) if near(stream, *match)),
    "SELECT * WHERE A ; B PARTITION BY user": by("user", pairs),
    "SELECT NXT * WHERE A ; B CONSUME BY PARTITION": lambda stream: past(of_each("B")(stream)),
    # MATCH_RECOGNIZE
    "SELECT * WHERE A : B PARTITION BY k": by("k", recognize(one(of("A")), one(of("B")), skip="next")),
    "SELECT * FROM ticks WHERE ticks AS a : ticks AS b FILTER a[v > 1] AND b[v < 1]": recognize(
        one(lambda stream, place: less(1, stream[place]["v"])), one(lambda stream, place: less(stream[place]["v"], 1)), skip="next"
    ),
    ENDS_OF_LAST: table_of(pairs, last=False),
    ENDS_OF_LAST.replace("SELECT", "SELECT NXT"): table_of(pairs, last=True),
    "SELECT * WHERE A:+ AS a : B AS b": recognize((1, 99, of("A")), one(of("B")), skip="next"),
    "SELECT * WHERE A:{2,4} AS a : B AS b": recognize((2, 4, of("A")), one(of("B")), skip="next"),
    "SELECT * WHERE A OR B": lambda stream: ((place,) for place in are(stream, "A", "B")),
    "SELECT * WHERE (A AS a : B AS b) OR (B AS b : A AS a)": lambda stream: (*neighbours("A", "B")(stream), *neighbours("B", "A")(stream)),
    "SELECT b WHERE A : B AS b": lambda stream: (match[1:] for match in neighbours("A", "B")(stream)),
    "SELECT * WHERE A AS a : B FILTER a.$index = 0": lambda stream: (match for match in neighbours("A", "B")(stream) if match[0] == 0),
    "SELECT * WHERE A : B NOT FOLLOWED BY ANY FOR 3650 days": lambda stream: (
        match for match in neighbours("A", "B")(stream) if match[1] == len(stream) - 1
    ),
    "SELECT * WHERE T AS a FILTER a.price > lag(a.price)": recognize(one(above), skip="next"),
    "SELECT * WHERE T AS a FILTER a.price > lag(a.price, 2)": recognize(one(lambda stream, place: above(stream, place, 2)), skip="next"),
    "SELECT a WHERE T AS a : T AS n FILTER n.price > a.price": recognize(
        one(lambda stream, place: place + 1 < len(stream) and above(stream, place + 1)), skip="next"
    ),
    "SELECT p.price AS before, t.price AS price WHERE T AS p : T AS t FILTER t[v > 1]": lambda stream: (
        (place - 1, place) for place in range(1, len(stream)) if greater_than_1(stream[place])
    ),
    "SELECT * WHERE T AS a : T AS b FILTER b.price > a.price": recognize(one(anything), one(above), skip="next"),
    "SELECT count(u) AS n WHERE (A AS x : B AS y) AS u": neighbours("A", "B"),
    "SELECT end_time() AS time WHERE A : B": neighbours("A", "B"),
    "SELECT NXT * WHERE A : B CONSUME BY PARTITION": recognize(one(of("A")), one(of("B"))),
    FALL: recognize(one(anything), (1, 99, below), one(above), skip="last"),
    "SELECT * WHERE A : B WITHIN [< 1h]": lambda stream: (match for match in neighbours("A", "B")(stream) if near(stream, *match)),
    # Esper
    "SELECT * WHERE A AS a ; NOT B ; B AS b": of_each("B"),
    "SELECT * WHERE A AS a ; B AS b": pairs,
    "SELECT NXT * WHERE A AS a ; B AS b CONSUME BY PARTITION": lambda stream: past(of_each("B")(stream)),
    "SELECT * WHERE A AS a ; NOT B ; B AS b PARTITION BY id": by("id", of_each("B")),
    "SELECT * WHERE A AS a ; NOT (B OR C) ; B AS b": lambda stream: ((a, b) for a, b in of_each("B")(stream) if not are(stream[a:b], "C")),
    "SELECT * WHERE A AS a NOT FOLLOWED BY B FOR [< 30s]": absent(missing="B"),
    "SELECT * WHERE A AS a ; NOT B ; B AS b WITHIN [< 10s]": of_each("B", window=True),
    "SELECT NXT * WHERE A{5} AS a CONSUME BY PARTITION": five_by_five,
    "SELECT NXT * WHERE A+ AS a ; B AS b CONSUME BY PARTITION": until,
    "SELECT * WHERE T AS t FILTER t.price > lag(t.price)": recognize(one(above), skip="next"),
}


def symbols_for(query: str) -> str:
    """The types of a stream that a query says something about."""
    if "Stop" in query:
        return SYMBOLS["S"]
    if "ticks" in query or re.search(r"\bT\b", query):
        return SYMBOLS["T"]
    return "ABX" if re.search(r"\bX\b", query) else SYMBOLS["A"]


def compared(query: str, twin: Callable[[Stream], Iterable[Match]], *, streams: int = 40) -> int:
    """Compare the two on random streams; how many matches there were."""
    draw, matches = random.Random(query), 0
    for _ in range(streams):
        stream = drawn(draw, symbols_for(query))
        expected = sorted(tuple(sorted(match)) for match in twin(stream))
        assert ours(query, stream) == expected, [(event["type"], event["t"], event["v"], event["price"]) for event in stream]
        matches += len(expected)
    return matches


@pytest.mark.parametrize("query", TWINS)
def test_it_means_what_theirs_does(query: str) -> None:
    """On random streams, against a few lines that say what theirs is defined to find."""
    assert query in QUERIES, "the page has this query"
    assert compared(query, TWINS[query]), "some stream has a match"


SKIPPED: dict[str, Callable[[Stream], Iterable[Match]]] = {
    "A ; B": of_each("B"),
    "A ; B ; C": of_each("B", "C"),
    "A : B ; C": of_each(":B", "C"),
    "A ; NOT B ; B : C": of_each("B", ":C"),
    "A : B : A": of_each(":B", ":A"),
}
ENDS_EARLIER: dict[str, Callable[[Stream], Iterable[Match]]] = {
    "A AS a ; B AS b FILTER b.price > a.price": dearer,
    "(A ; NOT N ; N) OR (B ; NOT C ; C)": lambda stream: (
        (start, end)
        for start in are(stream, "A", "B")
        for end in [first(stream, start + 1, "N" if stream[start]["type"] == "A" else "C")]
        if end is not None
    ),
    "A:{2,4} AS a": recognize((2, 4, of("A")), skip="next"),
}


@pytest.mark.parametrize("pattern", [*SKIPPED, *ENDS_EARLIER])
def test_skipping_past_the_last_event(pattern: str) -> None:
    """CONSUME BY PARTITION takes the match that ends first, theirs the one that starts first: the same where no later start can end earlier."""
    query = f"SELECT NXT * WHERE {pattern} CONSUME BY PARTITION"
    find = {**SKIPPED, **ENDS_EARLIER}[pattern]
    draw = random.Random(query)
    symbols = SYMBOLS["A"] if re.search(r"\b[CN]\b", pattern) else "AABB"
    streams = [drawn(draw, symbols) for _ in range(100)]
    different = [stream for stream in streams if ours(query, stream) != sorted(past(find(stream)))]
    assert bool(different) == (pattern in ENDS_EARLIER), different[:1]


def test_the_page_names_the_patterns_that_skip_alike() -> None:
    section = PAGE[PAGE.index("### Start again after a match") :]
    for pattern in [*SKIPPED, *ENDS_EARLIER]:
        assert f"`{pattern}`" in section or pattern in {"A : B : A", "A:{2,4} AS a"}, pattern


def test_the_v() -> None:
    """`DOWN+ UP+` with SKIP PAST LAST ROW, and `START DOWN+ UP+` with SKIP TO LAST UP, but for what the end of the table leaves open."""
    (text,) = [text for name, text in BLOCKS if name == "v"]
    assert compared(text, closed(recognize((1, 99, below), (1, 99, above))), streams=60) > 10
    begun = text.replace("SELECT MAX down, up", "SELECT MAX top, down, up").replace("WHERE (T AS down", "WHERE T AS top : (T AS down")
    assert compared(begun, closed(recognize(one(anything), (1, 99, below), (1, 99, above), skip="last")), streams=60) > 10


def test_the_first_that_is_dearer() -> None:
    (text,) = [text for name, text in BLOCKS if name == "first"]
    assert " ".join(text.split()) in TWINS
