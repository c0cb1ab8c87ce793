"""Random queries and random streams for differential tests: one seed, one query text, one stream.

Queries are made as TEXT, so the parser and the binder are tested too. They are well-formed by construction: the generator knows which variables a
pattern shows and which an enclosing pattern binds. Sizes are such that the reference needs milliseconds. A `LimitError` of the reference is rare and
means: take the next seed. `QueryFragment` says which operators take part; those below are in use.

The streams fit the queries: types A to C and X (which no query names), times with ties, attributes with NULL, and NaN. `queries` and `streams` give
the same as Hypothesis strategies, which can shrink.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.records import record

if TYPE_CHECKING:
    import random as randoms
    from collections.abc import Callable, Sequence

    from hypothesis.strategies import SearchStrategy

Row = dict[str, Any]

TYPES = ("A", "B", "C")
NAMES = ("x", "y", "z", "u")

SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("ts", pa.int64()),
        ("k", pa.int64()),
        ("v", pa.int64()),
        ("w", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
    ]
)
"""The columns of the random streams: type, time, a key, and attributes of four types."""

TIMED_SCHEMA = SCHEMA.set(1, pa.field("ts", pa.timestamp("us", tz="UTC")))
"""The same with timestamps, one second for each step of time: for queries with `unit="s"`."""


@record
class QueryFragment:
    """Which operators random queries use, and how large they get.

    depth: nesting of operators. items: most items of a sequence. operators: names of `PATTERNS` with their weights. strategies, windows: what
    may stand at the top; a window is "", "time", "events", "both" or "interval". nested: the strategies of the operator `select`. adjacent:
    whether `:` stands anywhere. outer: conditions on variables of enclosing patterns. correlated: conditions over two variables. many: over more,
    too, with arithmetic, OR and NOT. computed: these mostly of any depth, with CASE, COALESCE and IN. asked: most of them by functions of texts and
    times over several variables. ordered: most of them by the order of texts,
    or by decimals of more than 18 digits. previous: prev. lag: attributes of events before. index: conditions on $index. spans: whether windows
    inside are all of events, around sequences.
    from_start: how often an absence counts from the start of a match (not with ANY and limits).
    absence, partition, having, consume, limit, count: how often a query has that clause (another NOT FOLLOWED BY after one), from 0 to 1. unit: of
    durations in the text ("" for a numeric time column, else for example "s"). models: the time models of queries with THEN ("" is the default).
    layers: most EVENT definitions.
    """

    operators: tuple[tuple[str, int], ...]
    depth: int = 3
    items: int = 3
    strategies: tuple[str, ...] = ("", "", "", "ALL", "ANY", "RESTRICTED", "STRICT")
    windows: tuple[str, ...] = ("", "time", "events")
    nested: tuple[str, ...] = ("NXT", "LAST", "MAX", "STRICT", "NEXT")
    adjacent: bool = True
    outer: bool = True
    correlated: bool = False
    many: bool = False
    computed: bool = False
    asked: bool = False
    ordered: bool = False
    previous: bool = False
    lag: bool = False
    index: bool = False
    spans: bool = False
    absence: float = 0.0
    from_start: float = 0.0
    partition: float = 0.25
    having: float = 0.0
    consume: float = 0.0
    limit: float = 0.15
    count: float = 0.0
    unit: str = ""
    models: tuple[str, ...] = ()
    layers: int = 0


ENGINE = QueryFragment(
    operators=(
        ("atom", 3),
        ("named", 4),
        ("sequence", 6),
        ("adjacent", 2),
        ("either", 3),
        ("both", 1),
        ("iterate", 3),
        ("iterate_adjacent", 1),
        ("counted", 1),
        ("optional", 1),
        ("filter", 3),
        ("project", 1),
        ("strict", 1),
    )
)
"""What the automaton engine runs: local conditions, windows over the whole pattern, partitions, ALL, ANY, STRICT and LIMIT."""

WAITING = QueryFragment(
    operators=(
        ("atom", 3),
        ("named", 4),
        ("sequence", 6),
        ("either", 3),
        ("iterate", 3),
        ("counted", 1),
        ("optional", 1),
        ("filter", 3),
    ),
    strategies=("NXT", "LAST", "MAX"),
    windows=("", "time", "events", "both"),
    adjacent=False,
    consume=0.3,
)
"""Patterns that wait for anything between two events (`;`, `+`, OR, local conditions): NXT, LAST and MAX have algorithms of their own there."""

NESTED = QueryFragment(
    operators=(*ENGINE.operators, ("select", 6)),
    strategies=("", "", "ALL", "ANY", "RESTRICTED", "STRICT", "NXT", "LAST", "MAX"),
    windows=("", "", "time", "events"),
    consume=0.15,
)
"""What the automaton engine runs, with strategies at any level."""

ABSENT = QueryFragment(
    operators=(*ENGINE.operators, ("select", 1)),
    depth=2,
    strategies=("", "", "", "ALL", "ANY", "RESTRICTED", "STRICT", "NXT", "LAST", "MAX"),
    windows=("", "time", "events", "both"),
    absence=0.7,
    consume=0.2,
    count=0.1,
)
"""What the automaton engine runs, with up to three things that must not follow."""

NEGATING = QueryFragment(
    operators=(*ENGINE.operators, ("conjunction", 4), ("unless", 4), ("without", 5), ("select", 2)),
    strategies=("", "", "", "ALL", "ANY", "RESTRICTED", "STRICT", "NXT", "LAST", "MAX"),
    windows=("", "time", "events", "both"),
    absence=0.1,
    consume=0.2,
    count=0.1,
)
"""Conjunction and negation (ALL, UNLESS, `; NOT n ;`), with strategies and every clause of a query around them."""

SUCCEEDING = dataclasses.replace(
    NEGATING,
    operators=(*ENGINE.operators, ("then", 12), ("conjunction", 1), ("unless", 1), ("without", 1), ("select", 1)),
    depth=2,
    outer=False,
    models=("", "CAYUGA", "SNOOPIB", "ODE", "POINT", "ACTIVE_OFFICE", "COMPLETE_HISTORY"),
)
"""THEN under every time model, with strategies and every clause of a query around it."""

JUDGING = dataclasses.replace(NEGATING, having=0.8, count=0.2, limit=0.3, consume=0.4)
"""HAVING, before every clause that comes behind it."""

STARTING = dataclasses.replace(
    ABSENT,
    operators=(*ENGINE.operators, ("select", 1), ("gap", 2), ("without", 2)),
    strategies=("", "", "ALL", "STRICT", "NXT", "LAST", "MAX"),
    from_start=0.6,
    count=0.2,
    limit=0.0,
)
"""Absences, most of them counted from the start of a match."""

WIDE = QueryFragment(
    operators=(
        *ENGINE.operators,
        ("conjunction", 2),
        ("gap", 2),
        ("iterate_gap", 1),
        ("within", 2),
        ("unless", 2),
        ("without", 2),
        ("select", 2),
    ),
    strategies=("", "ALL", "ANY", "RESTRICTED", "STRICT", "NXT", "LAST", "MAX"),
    windows=("", "time", "events", "interval"),
    correlated=True,
    previous=True,
    consume=0.2,
    absence=0.1,
)
"""What the reference covers."""

ALONE: dict[str, Any] = {"strategies": ("",), "partition": 0.0, "limit": 0.0}
"""One partition with all its matches: the pattern says it all."""

COMPUTING = QueryFragment(
    operators=(("atom", 1), ("named", 6), ("sequence", 12), ("filter", 8), ("either", 1), ("counted", 2), ("conjunction", 1)),
    strategies=("", "", "", "STRICT", "NXT", "LAST"),
    windows=("", "", "time", "events"),
    correlated=True,
    many=True,
    computed=True,
    previous=True,
)
"""Conditions that compute with several events, mostly one of each variable."""

TIMED = QueryFragment(
    operators=(*ENGINE.operators, ("gap", 5), ("iterate_gap", 3), ("within", 5)),
    windows=("", "", "interval", "events"),
    **ALONE,
)
"""Time inside patterns: gaps, and windows with lower bounds at any level."""

CORRELATED = QueryFragment(
    operators=(*ENGINE.operators, ("filter", 6), ("iterate", 2)),
    windows=("",),
    correlated=True,
    many=True,
    previous=True,
    **ALONE,
)
"""Conditions between events: over two variables and more, over sets, over variables of enclosing patterns and of the iteration before."""

GUARDED = QueryFragment(
    operators=(*ENGINE.operators, ("gap", 2), ("iterate_gap", 2), ("within", 2), ("filter", 3), ("strict", 1)),
    windows=("", "", "interval", "events"),
    correlated=True,
    many=True,
    previous=True,
    **ALONE,
)
"""All that becomes registers and guards."""

COMPARING = dataclasses.replace(
    GUARDED,
    strategies=("", "", "ALL", "ANY", "RESTRICTED", "STRICT", "NXT", "LAST", "MAX"),
    windows=("", "time", "events", "interval", "both"),
    absence=0.1,
    partition=0.25,
    consume=0.2,
    limit=0.15,
    count=0.15,
)
"""The same with every clause of a query around it."""

ORDERED = dataclasses.replace(
    COMPARING,
    operators=(
        ("atom", 1),
        ("named", 2),
        ("sequence", 8),
        ("adjacent", 1),
        ("either", 1),
        ("iterate", 3),
        ("counted", 1),
        ("optional", 1),
        ("gap", 1),
        ("within", 1),
        ("select", 1),
        ("filter", 16),
    ),
    ordered=True,
)
"""The same, most of it by the order of texts or by long decimals."""

ASKING = dataclasses.replace(
    ORDERED,
    operators=(*ORDERED.operators, ("select", 1), ("project", 1), ("conjunction", 1)),
    ordered=False,
    asked=True,
    consume=0.1,
)
"""The same, most of it by functions of texts and times over several events."""

CHOOSING = dataclasses.replace(COMPARING, operators=(*COMPARING.operators, ("select", 8), ("gap", 2)))
"""The same with strategies at any level: around guards, beside them, and inside each other."""

CONTRADICTING = dataclasses.replace(CHOOSING, operators=(*CHOOSING.operators, ("conjunction", 4), ("unless", 4), ("without", 5)))
"""The same with conjunction and negation, of and around patterns that compare events."""

CHOOSING_INSIDE = dataclasses.replace(
    CONTRADICTING,
    operators=(*CONTRADICTING.operators, ("select", 12), ("then", 8), ("project", 3), ("both", 3)),
    nested=("NXT", "LAST", "MAX"),
    items=2,
    strategies=("", "", "NXT", "LAST", "MAX"),
    models=("ACTIVE_OFFICE", "COMPLETE_HISTORY"),
)
"""Strategies and THEN inside each other, in parts that have events in common, and around events that PROJECT hides."""

CARRYING = dataclasses.replace(
    COMPARING,
    operators=(("carried", 12), ("sequence", 2), ("either", 2), ("iterate", 1), ("filter", 2), ("select", 1), ("project", 1), ("named", 1)),
    strategies=("", "", "NXT", "LAST", "MAX"),
    windows=("", "time", "events", "events", "both"),
    depth=2,
)
"""Values that are kept over events which ask nothing of them."""

RESTRICTING = QueryFragment(
    operators=(
        ("atom", 3),
        ("named", 4),
        ("sequence", 6),
        ("either", 3),
        ("conjunction", 4),
        ("unless", 4),
        ("within", 5),
        ("iterate", 1),
        ("counted", 1),
        ("optional", 1),
        ("filter", 2),
        ("project", 1),
    ),
    depth=4,
    strategies=("RESTRICTED",),
    windows=("", "time", "events", "both"),
    adjacent=False,
    outer=False,
    absence=0.1,
    consume=0.3,
)
"""The operators of the event algebra, under RESTRICTED: what its own detector runs."""

SUCCEEDING_GUARDED = dataclasses.replace(
    CONTRADICTING,
    operators=(*CHOOSING.operators, ("then", 16)),
    models=("", "CAYUGA", "SNOOPIB", "ODE", "POINT", "ACTIVE_OFFICE", "COMPLETE_HISTORY"),
)
"""THEN of and around patterns that compare events."""

JUDGING_GUARDED = dataclasses.replace(CONTRADICTING, having=0.8, count=0.2, limit=0.3, consume=0.4)
"""HAVING over patterns that compare events."""

LAYERED = dataclasses.replace(
    CONTRADICTING,
    operators=(*CONTRADICTING.operators, ("then", 5)),
    models=("", "", "CAYUGA", "SNOOPIB", "ODE", "POINT", "ACTIVE_OFFICE", "COMPLETE_HISTORY"),
    depth=2,
    strategies=("", "", "", "ALL", "ANY", "RESTRICTED", "STRICT", "NXT", "LAST", "MAX"),
    windows=("", "", "time", "events", "interval"),
    having=0.1,
    from_start=0.3,
    layers=2,
)
"""The same over events that matches have made."""

LAGGED = QueryFragment(
    operators=(*ENGINE.operators, ("filter", 4), ("select", 1)),
    strategies=("", "", "", "ALL", "ANY", "RESTRICTED", "STRICT", "NXT", "LAST", "MAX"),
    windows=("", "time", "events", "both"),
    lag=True,
    absence=0.15,
    partition=0.5,
    consume=0.2,
    count=0.1,
)
"""What the automaton engine runs, with conditions on events before."""

POSITIONAL = dataclasses.replace(
    COMPARING,
    operators=(*ENGINE.operators, ("gap", 1), ("within", 7), ("filter", 3)),
    spans=True,
    index=True,
    lag=True,
    partition=0.5,
)
"""Conditions on positions, windows of events inside the pattern, and conditions on events before beside them."""


@record
class GeneratedPattern:
    """A generated pattern: its text, the variables it shows, binds and hides, and whether it can be an item without parentheses.

    loose: it may begin or end with an optional item, beside which no gap and no NOT may stand.
    """

    text: str
    shows: frozenset[str]
    binds: frozenset[str]
    hides: frozenset[str] = frozenset()

    tight: bool = False
    loose: bool = False

    @property
    def item(self) -> str:
        """The text as an item of a sequence, an operand of AS, `+` and braces."""
        return self.text if self.tight else f"({self.text})"


LAYERS = ("P", "Q")
"""The types that EVENT definitions make."""

MADE_OF = {"v": ("max", "first", "sum"), "w": ("min", "last"), "s": ("first", "max"), "b": ("first", "last"), "k": ("first", "last")}
"""For each attribute the measures that it may be."""

NONE: frozenset[str] = frozenset()

PLAIN = (";", ":")
"""The links that may stand beside an optional item."""

ABSENCES = 3
"""Most NOT FOLLOWED BY of one query."""


class QueryGenerator:
    """Makes one query text after another from one source of randomness."""

    def __init__(self, random: randoms.Random, fragment: QueryFragment = ENGINE) -> None:
        self.random = random
        self.fragment = fragment
        self.iterating: list[frozenset[str]] = []
        self.types: tuple[str, ...] = TYPES
        self.keys: tuple[str, ...] = ("k", "k", "k", "k, b")

    def query(self) -> str:
        """A query text with a random pattern, window, partition, strategy, targets and limit; before it some EVENT definitions."""
        if self.fragment.layers:
            return " ".join([*self._definitions(), self._query()])
        return self._query()

    def _definitions(self) -> list[str]:
        """Some EVENT definitions; their types are among those of all that comes behind them."""
        random = self.random
        keys = random.choice(self.keys) if random.random() < self.fragment.partition else ""
        self.keys = tuple(dict.fromkeys([keys, keys.split(",")[0]])) if keys else ()
        found = []
        for name in LAYERS[: random.randint(1, self.fragment.layers)]:
            attributes = [each for each in ("v", "w", "s", "b", "k") if each not in keys.split(", ")]
            targets = ", ".join(f"{random.choice(MADE_OF[each])}(made.{each}) AS {each}" for each in attributes)
            pattern = self.pattern(self.fragment.depth, NONE)
            where = f"({pattern.text}) AS made" + self._postfixes(dataclasses.replace(pattern, text=""))
            clauses = [f"SELECT {random.choice(['', '', 'NXT ', 'LAST ', 'MAX ', 'STRICT '])}{targets} WHERE {where}"]
            clauses += [f"PARTITION BY {keys}"] if keys else []
            clauses += ["HAVING count(made) != 2"] if random.random() < 0.2 else []
            clauses += ["CONSUME BY PARTITION"] if random.random() < 0.2 else []
            clauses += self._model(where)
            found.append(f"EVENT {name}({', '.join(attributes)}) AS ({' '.join(clauses)})")
            self.types = (*self.types, name, name)
        return found

    def _query(self) -> str:
        random, fragment = self.random, self.fragment
        pattern = self.pattern(fragment.depth, NONE)
        where = self._postfixes(pattern)
        strategy = random.choice(fragment.strategies)
        started = "FROM START" in where
        if started and strategy == "ANY":
            strategy = ""  # which match it takes is open, and so is whether that one is given
        # One match is nothing to count.
        counted = random.random() < fragment.count and strategy not in {"ANY", "RESTRICTED"}
        targets = "COUNT(*)" if counted else self._targets(pattern)
        clauses = [f"SELECT {strategy} {targets}" if strategy else f"SELECT {targets}", f"WHERE {where}"]
        if self.keys and random.random() < (0.7 if fragment.layers else fragment.partition):
            clauses.append("PARTITION BY " + random.choice(self.keys))
        if random.random() < fragment.having:
            clauses.append(f"HAVING {self.having(pattern, restricted=strategy == 'RESTRICTED')}")
        if random.random() < fragment.consume:
            clauses.append("CONSUME BY " + random.choice(["NONE", "PARTITION", "PARTITION", "ANY", "ANY"]))
        clauses += self._model(where)
        if not counted and random.random() < fragment.limit and not started:
            clauses.append(f"LIMIT {random.randint(1, 3)}")
        return " ".join(clauses)

    def _model(self, where: str) -> list[str]:
        """A time model, or none; only for THEN."""
        model = self.random.choice(self.fragment.models) if self.fragment.models and " THEN " in where else ""
        return [f"TIME MODEL {model}"] if model else []

    def _postfixes(self, pattern: GeneratedPattern) -> str:
        """The pattern with what may stand behind a whole pattern."""
        random, fragment = self.random, self.fragment
        where = pattern.text
        if random.random() < 0.2:
            where += f" FILTER {self._condition(pattern.shows, NONE)}"
        where += self._absences(pattern)
        window = random.choice(fragment.windows)
        if window in {"time", "both"}:
            where += f" WITHIN {self._duration(12)}"
        if window in {"events", "both"}:
            where += f" WITHIN {random.randint(2, 9)} EVENTS"
        if window == "interval":
            where += f" WITHIN {self._interval()}"
        return where

    def _absences(self, pattern: GeneratedPattern) -> str:
        """Some NOT FOLLOWED BY, with a condition or a window behind them now and then."""
        random, fragment = self.random, self.fragment
        text = ""
        for _ in range(ABSENCES):
            if random.random() >= fragment.absence:
                break
            negated = self.pattern(1, NONE).item
            if random.random() < 0.2:
                negated = f"({negated} WITHIN {random.choice([self._duration(4), f'{random.randint(1, 3)} EVENTS'])})"
            length = self._duration(4)
            text += f" NOT FOLLOWED BY {negated} FOR " + (f"[<= {length}]" if random.random() < 0.1 else length)
            text += " FROM START" * (random.random() < fragment.from_start)
            if random.random() < 0.1:
                text += f" FILTER {self._condition(pattern.shows, NONE)}"
            if random.random() < 0.1:
                text += f" WITHIN {self._duration(12)}"
        return text

    def having(self, pattern: GeneratedPattern, *, restricted: bool) -> str:
        """A condition over measures: of what a match has, or of its interval alone; about half of the matches meet it."""
        choose, names = self.random.choice, sorted(pattern.shows)
        forms = ["duration() + duration() > duration()", "end_time() > start_time()", "NOT start_time() = end_time()"]
        if names and not restricted:
            x, y = choose(names), choose(names)
            forms = [
                f"count({x}) {choose(['>=', '<=', '!='])} {choose([1, 2])}",
                f"sum({x}.v) {choose(['>', '<'])} {choose([1, 2])}",
                f"sum({x}.v) > count({y})",
                f"max({x}.w) >= avg({y}.w)",
                f"first({x}.v) <= last({y}.v)",
                f"min({x}.s) = 'a'",
                f"last({x}.b)",
                f"max({x}.v) IS NULL",
                "end_time() > start_time()",
            ]
        first, second = choose(forms), choose(forms)
        return choose([first, first, f"{first} AND {second}", f"{first} OR {second}", f"NOT ({first})"])

    def _targets(self, pattern: GeneratedPattern) -> str:
        names = sorted(pattern.shows - {"ANY"})
        if not names or self.random.random() < 0.6:
            return "*"
        return ", ".join(self.random.sample(names, self.random.randint(1, len(names))))

    # ------------------------------------------------------------------------------------------------------------------- patterns

    def pattern(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """A random pattern; `outer` are variables that some enclosing pattern binds."""
        names = [name for name, _ in self.fragment.operators]
        weights = [weight for _, weight in self.fragment.operators]
        operator = self.random.choices(names, weights)[0] if depth > 0 else self.random.choice(["atom", "named"])
        return PATTERNS[operator](self, depth - 1, outer)

    def atom(self, _depth: int, _outer: frozenset[str]) -> GeneratedPattern:
        """A type or ANY."""
        kind = self.random.choice([*self.types, *self.types, "ANY"])
        return GeneratedPattern(kind, frozenset({kind}), frozenset({kind}), tight=True)

    def named(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """A pattern AS a variable; mostly an atom."""
        inner = self.pattern(depth, outer) if depth > 0 and self.random.random() < 0.3 else self.atom(0, outer)
        name = frozenset({self.random.choice(NAMES)})
        return dataclasses.replace(
            inner, text=f"{inner.item} AS {min(name)}", shows=inner.shows | name, binds=inner.binds | name, tight=self.random.random() < 0.7
        )

    def sequence(self, depth: int, outer: frozenset[str], *, links: Sequence[str] = (";", ";", ";", ":")) -> GeneratedPattern:
        """A chain; its items may speak of the variables of an item that was made first."""
        count = self.random.randint(2, self.fragment.items)
        place = self.random.randrange(count)
        anchor = self.pattern(depth, outer)
        seen = outer | anchor.binds if self.fragment.outer else outer
        pieces = [anchor if number == place else self.pattern(depth, seen) for number in range(count)]
        text = pieces[0].item
        for left, right in itertools.pairwise(pieces):
            beside = left.loose or right.loose
            text += f" {self._link([link for link in links if link in PLAIN] if beside else links)} {right.item}"
        return dataclasses.replace(_together(text, pieces), loose=any(piece.loose for piece in pieces))

    def _link(self, links: Sequence[str]) -> str:
        link = self.random.choice([link for link in links if self.fragment.adjacent or not link.startswith(":")])
        if link.endswith("["):
            return link[:-1] + self._interval()
        if link == "NOT":
            gap = self._interval() if self.random.random() < 0.3 and "gap" in dict(self.fragment.operators) else ""
            return f"; NOT {self.pattern(1, NONE).item} ;{gap}"
        return link

    def adjacent(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """A chain of `:` mostly."""
        return self.sequence(depth, outer, links=(":", ":", ";"))

    def chain(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """A chain of `:` alone."""
        return self.sequence(depth, outer, links=(":",))

    def gap(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """A chain with gaps."""
        return self.sequence(depth, outer, links=(";[", ":[", ";"))

    def without(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """A chain with a negation between two items."""
        return self.sequence(depth, outer, links=("NOT", "NOT", ";"))

    def then(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """THEN; its right side speaks of nothing outside, and none of both begins or ends with an optional item."""
        left, right = self._solid(depth, outer), self._solid(min(depth, 1), NONE)
        return _together(f"{left.item} THEN {right.item}", [left, right])

    def _solid(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        piece = self.pattern(depth, outer)
        return self.named(0, outer) if piece.loose else piece

    def optional(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """A chain of which all items may be optional but one: often that and one more, else up to six, most of them events."""
        count = self.random.choice((2, 2, 3, 4, 6))
        place = self.random.randrange(count)
        pieces = [self.pattern(depth if number == place or count == 2 else 0, outer) for number in range(count)]
        absent = [number != place and (count == 2 or self.random.random() < 0.8) for number in range(count)]
        items = [piece.item + "?" * free for piece, free in zip(pieces, absent, strict=True)]
        text = items[0] + "".join(f" {self._link((';', ':'))} {item}" for item in items[1:])
        binds = NONE.union(*(piece.binds for piece, free in zip(pieces, absent, strict=True) if not free))
        return dataclasses.replace(_together(text, pieces), binds=binds, loose=True)

    def carried(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """A chain whose last event is equal to its first, and to one behind that now and then; what is between asks nothing of them."""
        random = self.random
        first, last, other = random.sample(NAMES, 3)
        kinds = [*self.types, *self.types, "ANY"]
        forms = ["{0}", "{0}", "{0}", "{0}", "({0} OR {1})", f"({{0}} OR {{1}} AS {other})", "({0} FILTER {0}.v > 0)", "{0}+", "{0}{{1,2}}"]
        middle = [random.choice(forms).format(random.choice(kinds), random.choice(kinds)) for _ in range(random.randint(1, 3))]
        items = [random.choice(kinds) + f" AS {first}", *middle, random.choice(kinds) + f" AS {last}"]
        shows = {first, last}
        conditions = [
            f"{last}.{attribute} = {first}.{attribute}" for attribute in random.sample(("k", "v", "s", "b"), random.choice((1, 1, 1, 2)))
        ]
        if random.random() < 0.2:
            conditions.append(f"{last}.w {random.choice(['<', '>', '!='])} {first}.w")
        if random.random() < 0.4:
            items.insert(random.randint(1, 3), random.choice(kinds) + f" AS {other}")
            shows.add(other)
            conditions += [f"{other}.{random.choice('kv')} {random.choice('==<')} {first}.k"] * (random.random() < 0.5)
        if depth > 0 and random.random() < 0.2:
            items.append(self.pattern(0, outer).item)
        text = items[0] + "".join(f" {self._link((';',) * 12 + (':',))} {item}" for item in items[1:])
        return GeneratedPattern(f"({text}) FILTER {' AND '.join(conditions)}", frozenset(shows), frozenset(shows))

    def either(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """OR."""
        pieces = [self.pattern(depth, outer) for _ in range(self.random.choice([2, 2, 3]))]
        text = " OR ".join(piece.item for piece in pieces)
        return dataclasses.replace(_together(text, pieces), binds=frozenset.intersection(*(piece.binds for piece in pieces)))

    def both(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """AND, of patterns that have matches in common: one of them is the other, filtered or with an alternative."""
        left = self.pattern(depth, outer)
        condition = self._condition(left.shows, outer - left.hides)
        if self.random.random() < 0.5:
            text = f"({left.text} FILTER {condition}) AND {left.item}"
            return dataclasses.replace(left, text=text, tight=False)
        right = self.pattern(depth, outer)
        return dataclasses.replace(_together(f"{left.item} AND ({left.item} OR {right.item})", [left, right]), binds=left.binds)

    def conjunction(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """ALL."""
        pieces = [self.pattern(min(depth, 1), outer) for _ in range(2)]
        return _together(" ALL ".join(piece.item for piece in pieces), pieces)

    def iterate(self, depth: int, outer: frozenset[str], *, suffix: str = "+") -> GeneratedPattern:
        """`p+`, with a body of at least one atom."""
        inner = self.pattern(min(depth, 1), outer)
        text = inner.item
        names = sorted(inner.shows - {"ANY"})
        if self.fragment.previous and names and self.random.random() < 0.3:
            name = self.random.choice(names)
            operator = self.random.choice(["<", "<=", "!=", "="])
            condition = f"prev({name}).v {operator} {self.random.choice(names)}.v"
            if self.fragment.many and self.random.random() < 0.6:
                others = [name, f"prev({self.random.choice(names)})", *sorted(outer - {"ANY"})]
                condition = self._between([f"prev({name})", self.random.choice(others)])
            text = f"({inner.text} FILTER {condition})"
        return GeneratedPattern(text + suffix, inner.shows, NONE, inner.hides, tight=self.random.random() < 0.7)

    def iterate_adjacent(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """`p:+`."""
        return self.iterate(depth, outer, suffix=" :+")

    def iterate_gap(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """`p+[I]` and `p:+[I]`."""
        return self.iterate(depth, outer, suffix=self.random.choice(["+", " :+"]) + self._interval())

    def counted(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """Braces."""
        suffixes = ["{2}", "{1,2}", "{2,}", "{2,3}", *([" :{2,3}", " :{1,2}"] if self.fragment.adjacent else [])]
        return self.iterate(depth, outer, suffix=self.random.choice(suffixes))

    def filter(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """FILTER, over variables of the pattern or, sometimes, of an enclosing one."""
        inner = self.pattern(depth, outer)
        return dataclasses.replace(inner, text=f"{inner.text} FILTER {self._condition(inner.shows, outer - inner.hides)}", tight=False)

    def project(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """PROJECT."""
        inner = self.pattern(depth, outer)
        names = sorted(inner.shows - {"ANY"})
        kept = frozenset(self.random.sample(names, self.random.randint(0, len(names))))
        text = f"PROJECT {', '.join(sorted(kept)) or 'NONE'} ({inner.text})"
        return GeneratedPattern(text, inner.shows & kept, inner.binds & kept, inner.hides | (inner.shows - kept), tight=True)

    def strict(self, depth: int, _outer: frozenset[str]) -> GeneratedPattern:
        """STRICT at any level; nothing inside may speak of outer variables."""
        return self._selected("STRICT", self.pattern(depth, NONE))

    def select(self, depth: int, _outer: frozenset[str]) -> GeneratedPattern:
        """Any strategy at any level, mostly around something that it can choose from."""
        body = self.random.choice([self.pattern, self.sequence, self.sequence, self.iterate])
        return self._selected(self.random.choice(self.fragment.nested), body(depth, NONE))

    def _selected(self, strategy: str, inner: GeneratedPattern) -> GeneratedPattern:
        return dataclasses.replace(inner, text=f"{strategy}({inner.text})", tight=True)

    def within(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """A window on a sub-pattern."""
        spans = self.fragment.spans
        inner = self.sequence(depth, outer) if spans else self.pattern(depth, outer)
        windows = [self._duration(5), self._interval(), f"{self.random.randint(1, 5)} EVENTS"]
        window = windows[-1] if spans else self.random.choice(windows)
        return dataclasses.replace(inner, text=f"{inner.text} WITHIN {window}", tight=False)

    def unless(self, depth: int, outer: frozenset[str]) -> GeneratedPattern:
        """UNLESS."""
        inner = self.pattern(depth, outer)
        return dataclasses.replace(inner, text=f"{inner.text} UNLESS {self.pattern(1, NONE).item}", tight=False)

    # ------------------------------------------------------------------------------------------------------- times and conditions

    def _duration(self, most: int) -> str:
        return f"{self.random.randint(0, most)}{self.fragment.unit}"

    def _interval(self) -> str:
        low = self.random.randint(0, 3)
        high = low + self.random.randint(0, 3)
        unit = self.fragment.unit
        forms = [
            f"<= {high}{unit}",
            f"< {high + 1}{unit}",
            f">= {low}{unit}",
            f"> {low}{unit}",
            f"= {low}{unit}",
            f"{low}{unit}, {high}{unit}",
        ]
        return f"[{self.random.choice([*forms, f'> {low}{unit}, <= {high + 1}{unit}'])}]"

    def _condition(self, shown: frozenset[str], outer: frozenset[str]) -> str:
        """One or two conjuncts, each about variables that are visible or bound outside."""
        here = sorted(shown - {"ANY"}) or sorted(outer - {"ANY"})
        if not here:
            return "1 = 1"
        return " AND ".join(self._conjunct(here, sorted(outer - {"ANY"})) for _ in range(self.random.choice([1, 1, 1, 2])))

    def _lagged(self, name: str, others: Sequence[str]) -> str:
        """A condition on an event before that of a variable, mostly beside that one."""
        random = self.random
        attribute = random.choice(["v", "v", "w", "s", "k", "ts"])
        number = random.choice(["", "", ", 1", ", 2", ", 3"])
        lagged = f"lag({name}.{attribute}{number})"
        operator = random.choice(["=", "!=", "<", "<=", ">"])
        other = random.choice([name, name, *others]) if self.fragment.correlated else name
        forms = [
            f"{lagged} IS {random.choice(['', 'NOT '])}NULL",
            f"{other}.{attribute} {operator} {lagged}",
            f"NOT {lagged} {operator} {other}.{attribute}",
            f"{name}[type = 'A' OR lag(type{number}) {random.choice(['=', '!='])} 'B']",
            f"({lagged} {operator} lag({other}.{attribute}, 2) OR {name}.v {operator} coalesce(lag({name}.v{number}), 1))",
        ]
        return random.choice(forms)

    def _placed(self, x: str, y: str) -> str:
        """A condition on the positions of one variable, or of two."""
        random = self.random
        operator = random.choice(["=", "!=", "<", "<=", ">", ">="])
        forms = [
            f"{x}.$index {operator} {random.randint(0, 8)}",
            f"{x}.$index % 3 = {random.randint(0, 2)}",
            f"{x}.$index + {random.randint(0, 4)} {operator} {y}.$index",
            f"{y}.$index - {x}.$index {operator} {random.randint(-3, 3)}",
            f"{x}.$index + {x}.v {operator} {y}.k * 2",
            f"({x}.$index > 3 OR {x}.v {operator} {y}.v)",
            f"({x}.s = {y}.s OR NOT {x}.$index {operator} {y}.v)",
        ]
        return random.choice(forms)

    def _conjunct(self, here: list[str], outside: list[str]) -> str:
        random = self.random
        if self.fragment.index and random.random() < 0.5:
            return self._placed(random.choice(here), random.choice([*here, *outside]))
        if self.fragment.lag and random.random() < 0.6:
            return self._lagged(random.choice(here), [*here, *outside])
        if self.fragment.ordered and len({*here, *outside}) > 1 and random.random() < 0.8:
            x, y, *others = random.sample(sorted({*here, *outside}), min(3, len({*here, *outside})))
            return self._ordered(x, y, random.choice([x, y, *others]), random.choice(["=", "!=", "<", "<=", ">", ">="]))
        if self.fragment.asked and len({*here, *outside}) > 1 and random.random() < 0.8:
            return self._asked(random.sample(every := sorted({*here, *outside}), min(3, len(every))), 1)
        name = random.choice(here)
        if outside and self.fragment.outer and random.random() < 0.4:
            name = random.choice(outside)
        if self.fragment.correlated and random.random() < (0.8 if self.fragment.many else 0.4):
            other = random.choice(here + outside)
            if self.fragment.computed and random.random() < 0.6:
                return f"({self._computed(random.sample(every := sorted({*here, *outside}), min(3, len(every))), 2)})"
            if self.fragment.many and random.random() < 0.6:
                return self._between([name, other, random.choice(here + outside)])
            attribute = random.choice(["v", "v", "w", "s", "k", "$time", "$index"])
            operator = random.choice(["=", "=", "!=", "<", "<=", ">"])
            return f"{name}.{attribute} {operator} {other}.{attribute}"
        if random.random() < 0.6:
            return f"{name}[{self._local('', 2)}]"
        return self._local(f"{name}.", 0)

    def _between(self, names: Sequence[str]) -> str:
        """A condition over two or three variables."""
        random = self.random
        x, y = random.sample(names, 2)
        z = random.choice(names)
        operator, other = (random.choice(["=", "!=", "<", "<=", ">", ">="]) for _ in range(2))
        if self.fragment.ordered and random.random() < 0.7:
            return self._ordered(x, y, z, operator)
        if self.fragment.asked and random.random() < 0.7:
            return self._asked(names, 0)
        attribute = random.choice(["v", "w", "s", "k", "$time", "$index"])
        return random.choice(
            [
                f"{x}.{attribute} {operator} {y}.{attribute}",
                f"{x}.v * 2 {operator} {y}.k + 1",
                f"{x}.w + {x}.v {operator} {y}.w * 2",
                f"{x}.$time + {random.randint(0, 4)}{self.fragment.unit} {operator} {y}.$time",
                f"{x}.$index + {random.randint(0, 4)} {operator} {y}.$index",
                f"lower({x}.s) {operator} {y}.s",
                f"coalesce({x}.s, 'a') {operator} {y}.type",
                f"abs({x}.v - {y}.v) <= {random.randint(0, 2)}",
                f"{x}.v + {y}.v {operator} {z}.k",
                f"({x}.v {operator} {y}.v OR {y}.s {other} {z}.s)",
                f"({x}.v {operator} {y}.v OR {z}.b)",
                f"NOT ({x}.v {operator} {y}.v)",
                f"NOT ({x}.v {operator} {y}.v AND {x}.w {other} {z}.w)",
                f"({x}.v {operator} {y}.v AND {x}.s {other} {y}.s OR NOT {z}.b)",
                f"NOT ({x}.v {operator} {y}.v OR {x}.$index - {y}.$index {other} {random.randint(-2, 2)})",
                f"{x}.$time - {y}.$time {operator} {random.randint(0, 4)}{self.fragment.unit}",
                f"({x}.v - {y}.v) IS NULL",
                f"abs({x}.w - {y}.w) {operator} {random.choice(['0.5', '1', '2'])}",
                f"{x}.v / {y}.v {operator} {random.choice(['0.5', '1', '2'])}",
                f"{x}.v * {y}.k {operator} {z}.v + 1",
                f"({y}.v - {x}.v {operator} 1 OR {x}.s {other} {y}.s)",
                f"{x}.b {random.choice(['=', '!='])} {y}.b",
                f"{x}.$index % 2 = {random.randint(0, 1)}",
            ]
        )

    def _computed(self, names: Sequence[str], depth: int) -> str:
        """A condition over some variables, made of others."""
        random = self.random
        if depth and random.random() < 0.6:
            first, second, third = (self._computed(names, depth - 1) for _ in range(3))
            forms = [
                f"({first} OR {second})",
                f"({first} AND {second})",
                f"NOT ({first})",
                f"CASE WHEN {first} THEN {second} ELSE {third} END",
            ]
            return random.choice([*forms, *forms[:2], f"({first}) {random.choice(['=', '!='])} ({second})"])
        operator = random.choice(["=", "!=", "<", "<=", ">", ">="])
        number, x = self._number(names, depth + 1), random.choice(names)
        forms = [
            f"{number} {operator} {self._number(names, depth)}",
            f"{x}.s {random.choice(['=', '!='])} {self._text(names)}",
            f"{number} {random.choice(['', 'NOT '])}IN (0, 1, NULL, 3)",
            f"{number} BETWEEN {random.choice(names)}.v AND {random.choice(names)}.k",
            f"{number} IS NULL",
            f"{self._text(names)} IN ('a', 'b')",
        ]
        return random.choice([*forms[:2], *forms, f"{x}.b"])

    def _number(self, names: Sequence[str], depth: int) -> str:
        """A number over some variables."""
        random = self.random
        if depth <= 0 or random.random() < 0.3:
            return f"{random.choice(names)}.{random.choice('vvkw')}"
        first, second = (self._number(names, depth - 1) for _ in range(2))
        forms = [
            f"({first} {random.choice('++--**%/')} {second})",
            f"abs({first})",
            f"(-{first})",
            f"floor({first})",
            f"coalesce({first}, {second})",
            f"CASE WHEN {self._computed(names, 0)} THEN {first} ELSE {second} END",
        ]
        return random.choice([*forms[:1] * 4, *forms, random.choice(["0", "1", "2", "0.5"])])

    def _text(self, names: Sequence[str]) -> str:
        """A text over some variables."""
        x, y = (self.random.choice(names) for _ in range(2))
        return self.random.choice([f"{y}.s", f"coalesce({x}.s, {y}.s, 'a')", f"CASE WHEN {x}.b THEN {x}.s ELSE {y}.s END", f"lower({y}.s)"])

    def _asked(self, names: Sequence[str], depth: int) -> str:
        """A condition by functions of texts and times of some variables, or made of such and of others."""
        random = self.random
        if depth and random.random() < 0.4:
            first, second = self._asked(names, depth - 1), random.choice([self._asked, self._computed])(names, depth - 1)
            forms = [f"({first} OR {second})", f"({first} AND {second})", f"NOT ({first})", f"({first}) = ({second})"]
            return random.choice([*forms, f"CASE WHEN {first} THEN {second} ELSE {names[0]}.b END"])
        operator = random.choice(["=", "!=", "<", "<=", ">", ">="])
        x, y, z = (random.choice(names) for _ in range(3))
        if len({*names}) > 1:
            x, y = random.sample(sorted({*names}), 2)
        joined = random.choice([f"concat({x}.s, {y}.s)", f"concat({y}.s, {x}.s, 'b')", f"concat({x}.s, {z}.type)"])
        either = random.choice([f"coalesce({x}.s, {y}.s)", f"CASE WHEN {x}.v > {y}.v THEN {x}.s ELSE {z}.s END"])
        number = random.choice([f"{z}.v", f"{z}.w", "1", "2", f"{x}.v + {y}.k", "1000000000000000000000.5"])
        forms = [
            f"{joined} {operator} {z}.s",
            f"{joined} {operator} {either}",
            f"{joined} LIKE '{random.choice(['a%', '%b', '%ab%', '__'])}'",
            f"{either} LIKE '{random.choice(['a%', '%b', '_'])}'",
            f"length({joined}) {operator} {number}",
            f"length({either}) * {random.choice(['2', '0.5', '1000000000000000000000.5'])} {operator} {number}",
            f"lower({joined}) IN ('ab', 'aa', 'aab')",
            f"upper({either}) {operator} upper({z}.s)",
            f"{joined} IS {random.choice(['', 'NOT '])}NULL",
        ]
        if self.fragment.unit:
            time = random.choice([f"{x}.$time + ({y}.$time - {z}.$time)", f"CASE WHEN {x}.b THEN {x}.$time ELSE {y}.$time END"])
            forms += [f"second({time}) % 3 {operator} {number}", f"second({time}) {operator} second({z}.$time)"]
        return random.choice(forms)

    def _ordered(self, x: str, y: str, z: str, operator: str) -> str:
        """A condition by the order of texts, or by decimals, of which some need more than 18 digits or 62 bits."""
        factor = self.random.choice(["2305843009213693952.0", "461168601842738790.4", "0.5"])
        return self.random.choice(
            [
                f"{x}.s {operator} {y}.s",
                f"{x}.s {operator} {y}.s",
                f"{x}.s {operator} {y}.s AND {x}.s >= {z}.s",
                f"{x}.s BETWEEN {y}.s AND {z}.s",
                f"NOT ({x}.s {operator} {y}.s)",
                f"coalesce({x}.s, 'aa') {operator} {y}.s",
                f"coalesce({x}.s, {z}.s, 'aa') {operator} {y}.s",
                f"({x}.s = {z}.s OR {y}.s {operator} {x}.s) AND {y}.s >= {x}.s",
                f"lower({x}.type) {operator} {y}.s",
                f"({x}.v - 1) * {factor} {operator} ({y}.v - 1) * {factor}",
                f"({x}.v - 1) * {factor} {operator} ({y}.v - 1) * {factor}",
                f"({x}.v - 2) * {factor} {operator} ({y}.k - 1) * {factor}",
                f"NOT ({x}.v * {factor} {operator} {y}.k * {factor} AND {x}.s <= {y}.s)",
            ]
        )

    def _local(self, prefix: str, depth: int) -> str:
        random = self.random
        if depth > 0 and random.random() < 0.25:
            parts = [self._local(prefix, depth - 1) for _ in range(2)]
            return random.choice([f"({parts[0]} OR {parts[1]})", f"({parts[0]} AND {parts[1]})", f"NOT ({parts[0]})"])
        v, w, s, b, kind = (prefix + name for name in ("v", "w", "s", "b", "type"))
        operator = random.choice(["=", "!=", "!=", "<", "<=", ">", ">="])
        return random.choice(
            [
                f"{v} {operator} {random.randint(0, 3)}",
                f"{v} {operator} {random.randint(0, 3)}",
                f"{w} {operator} {random.choice(['0.5', '1.5', '1e0', '2'])}",
                f"{v} {operator} {w}",
                f"{s} {operator} 'a'",
                f"{s} LIKE '{random.choice(['a%', '%b', '_', '%'])}'",
                f"{kind} {random.choice(['=', '!='])} '{random.choice('ABX')}'",
                f"{v} IN (0, 2, NULL)",
                f"{v} NOT IN (1, 3)",
                f"{v} BETWEEN 1 AND 2",
                f"{random.choice([v, w, s, b])} IS {random.choice(['', 'NOT '])}NULL",
                f"{v} % 2 = {random.randint(0, 1)}",
                f"{v} + 1 {operator} {w} * 2",
                b,
            ]
        )


def _together(text: str, pieces: Sequence[GeneratedPattern]) -> GeneratedPattern:
    return GeneratedPattern(
        text,
        NONE.union(*(piece.shows for piece in pieces)),
        NONE.union(*(piece.binds for piece in pieces)),
        NONE.union(*(piece.hides for piece in pieces)),
    )


PATTERNS: dict[str, Callable[[QueryGenerator, int, frozenset[str]], GeneratedPattern]] = {
    name: getattr(QueryGenerator, name)
    for name in (
        "atom", "named", "sequence", "adjacent", "chain", "gap", "without", "then", "carried", "optional", "either", "both", "conjunction", "iterate",
        "iterate_adjacent", "iterate_gap", "counted", "filter", "project", "strict", "select", "within", "unless",
    )
}  # fmt: skip
"""The operators of random patterns, by the names that `QueryFragment.operators` uses."""


def random_query(random: randoms.Random, *, fragment: QueryFragment = ENGINE) -> str:
    """The text of a random query over streams of `random_stream`, well-formed by construction."""
    return QueryGenerator(random, fragment).query()


# ------------------------------------------------------------------------------------------------------------------------- streams


def random_stream(random: randoms.Random, *, most: int = 10) -> list[Row]:
    """Rows of `SCHEMA` in the order of their times (many of them equal): at most `most`, with NULL and NaN among their values."""
    time = random.randint(-3, 3)
    rows = []
    for _ in range(random.choice([random.randint(0, most), most, most])):
        time += random.choice([0, 0, 1, 1, 2, 4])
        rows.append(
            {
                "type": random.choice([*TYPES, *TYPES, *TYPES, "X"]),
                "ts": time,
                "k": random.choice([1, 1, 1, 1, 2, 2, 2, None]),
                "v": random.choice([0, 1, 1, 2, 2, 3, None]),
                "w": random.choice([0.5, 1.0, 1.5, 2.0, 2.0, 3.0, float("nan"), None]),
                "s": random.choice(["a", "a", "ab", "b", "", None]),
                "b": random.choice([True, False, None]),
            }
        )
    return rows


def table(rows: Sequence[Row], *, timed: bool = False) -> pa.Table:
    """The rows as an Arrow table of `SCHEMA`, or of `TIMED_SCHEMA` with one second for each step of time."""
    if timed:
        rows = [{**row, "ts": row["ts"] * 1_000_000} for row in rows]
    return pa.Table.from_pylist(list(rows), schema=TIMED_SCHEMA if timed else SCHEMA)


# ---------------------------------------------------------------------------------------------------------------- Hypothesis strategies


def queries(fragment: QueryFragment = ENGINE) -> SearchStrategy[str]:
    """Query texts as a Hypothesis strategy; needs hypothesis."""
    from hypothesis import strategies

    return strategies.randoms(use_true_random=False).map(lambda random: random_query(random, fragment=fragment))


def streams(*, most: int = 10) -> SearchStrategy[list[Row]]:
    """Streams as a Hypothesis strategy; needs hypothesis."""
    from hypothesis import strategies

    return strategies.randoms(use_true_random=False).map(lambda random: random_stream(random, most=most))
