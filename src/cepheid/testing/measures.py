"""Random measures over events with attributes of every type, and their values in the form of the definition.

The patterns are those of `generators`; `MeasureGenerator` writes aggregates and arithmetic over their variables. Some queries do not bind (`x.a` of a
variable that can hold several events, types that do not fit together): `random_case` then takes the next one. With `spark=True`, types that Spark
does not have (unsigned integers, times of day, other units than microseconds, ..) are not used.
"""

from __future__ import annotations

import datetime as dt
import random as randoms
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import cepheid
from cepheid.engine.run import definition
from cepheid.errors import BindError
from cepheid.records import record
from cepheid.testing import reference
from cepheid.testing.generators import ENGINE, QueryGenerator, random_stream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cepheid.engine.output.matches import Matches
    from cepheid.logical.plan import QueryPlan
    from cepheid.query import Query
    from cepheid.testing.generators import QueryFragment


@record(slots=False)
class RandomAttribute:
    """One attribute of the random events: its type, its type on Spark (None: Spark has none), and values to choose from."""

    type: pa.DataType
    spark: pa.DataType | None
    values: tuple[Any, ...]


def _same(kind: pa.DataType, *values: Any) -> RandomAttribute:
    return RandomAttribute(kind, kind, (*values, None))


ZONES = ("'Europe/Berlin'", "'America/St_Johns'", "'+05:30'")

MAX_MATCHES = 2_000
"""Most matches of a case's sub-patterns that the definition is asked for."""

NAN = float("nan")

NUMBERS: Mapping[str, RandomAttribute] = MappingProxyType(
    {
        "v": _same(pa.int64(), 0, 1, 1, 2, 3),
        "big": _same(pa.int64(), 2**62, 2**63 - 1, -(2**63), 2**53 + 1, -1, 7),
        "tiny": _same(pa.int8(), -128, 127, 5),
        "huge": RandomAttribute(pa.uint64(), None, (2**64 - 1, 2**63, 3, None)),
        "w": _same(pa.float64(), 0.1, 0.2, 0.3, 1e16, -1e16, 2.5, NAN),
        "far": _same(pa.float64(), 1e308, -1e308, 1.7e308, float("inf"), float("-inf"), 1.0),
        "half": _same(pa.float32(), 0.5, 0.1, 3.25, NAN),
        "price": _same(pa.decimal128(10, 2), Decimal("0.10"), Decimal("-99999999.99"), Decimal("12.34")),
        "wide": _same(pa.decimal128(38, 4), Decimal("9" * 34 + ".9999"), Decimal("-0.0001"), Decimal("-1e33"), Decimal(3)),
    }
)
TIMES_AND_TEXT: Mapping[str, RandomAttribute] = MappingProxyType(
    {
        "s": _same(pa.string(), "", "a", "ab", "Z", "\u00e9", "\U0001f600", "\uffff"),
        "cat": RandomAttribute(pa.dictionary(pa.int8(), pa.string()), pa.string(), ("a", "b", "c", None)),
        "day": _same(pa.date32(), dt.date(2020, 1, 1), dt.date(1960, 5, 5), dt.date(9999, 12, 31)),
        "noon": RandomAttribute(pa.date64(), pa.date32(), (dt.date(2020, 1, 1), dt.date(1960, 5, 5), None)),
        "berlin": RandomAttribute(pa.timestamp("ms", "Europe/Berlin"), pa.timestamp("us", "UTC"), (1_600_000_000_123, -5, 0, None)),
        "local": RandomAttribute(pa.timestamp("ns"), pa.timestamp("us"), (1_600_000_000_123_456, -5, 0, None)),
        "took": RandomAttribute(pa.duration("s"), pa.duration("us"), (3600, -1, 2**62, None)),
    }
)
WITHOUT_ORDER: Mapping[str, RandomAttribute] = MappingProxyType(
    {
        "b": _same(pa.bool_(), True, False),
        "raw": _same(pa.binary(), b"", b"\xff"),
        "clock": RandomAttribute(pa.time32("s"), None, (dt.time(12, 30), None)),
        "tags": _same(pa.list_(pa.string()), [], ["a", None]),
        "nothing": RandomAttribute(pa.null(), None, (None,)),
    }
)
SPOT = pa.struct([("x", pa.int16())])
PLACE = RandomAttribute(
    pa.struct([("name", pa.large_string()), ("spot", SPOT)]),
    pa.struct([("name", pa.string()), ("spot", SPOT)]),
    (None, {"name": "x", "spot": None}, {"name": None, "spot": {"x": 7}}, {"name": "\u00e9", "spot": {"x": -3}}),
)
ATTRIBUTES: Mapping[str, RandomAttribute] = MappingProxyType({**NUMBERS, **TIMES_AND_TEXT, **WITHOUT_ORDER, "place": PLACE})

TIMES: Mapping[str, tuple[pa.DataType, int]] = MappingProxyType(
    {
        "int64": (pa.int64(), 1),
        "int32": (pa.int32(), 1),
        "timestamp": (pa.timestamp("us", "UTC"), 1_000_000),
        "local time": (pa.timestamp("s"), 1),
        "date": (pa.date32(), 1),
        "date64": (pa.date64(), 86_400_000),
    }
)
"""Types of the time column, and how many steps of it one step of a random stream is."""


def random_table(random: randoms.Random, *, time: str = "int64", spark: bool = False) -> pa.Table:
    """Events in the order of their times `ts`, with a `type`, a key `k`, a number `row` of each and all `ATTRIBUTES`; in one piece or two."""
    rows = random_stream(random)
    kind, step = TIMES[time]
    columns = {
        "type": pa.array([row["type"] for row in rows], pa.string()),
        "ts": pa.array([row["ts"] * step for row in rows], pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind),
        "k": pa.array([row["k"] for row in rows], pa.int64()),
        "row": pa.array(range(len(rows)), pa.int64()),
    }
    for name, attribute in ATTRIBUTES.items():
        values = [random.choice(attribute.values) for _ in rows]
        stored = attribute.spark if spark else attribute.type
        if stored is not None:
            columns[name] = pa.array(values, stored)
    table = pa.table(columns)
    cut = random.randint(0, len(rows))
    return table if random.random() < 0.5 else pa.concat_tables([table.slice(0, cut), table.slice(cut)])


class MeasureGenerator(QueryGenerator):
    """Queries of the engine's fragment that name measures."""

    def __init__(self, random: randoms.Random, *, fragment: QueryFragment, spark: bool) -> None:
        super().__init__(random, fragment)
        self.spark = spark

    def query(self) -> str:
        """A query text with a random pattern and one to five measures of it."""
        random = self.random
        pattern = self.pattern(self.fragment.depth, frozenset())
        names = sorted(pattern.shows - {"ANY"})
        targets = ", ".join(f"{self.measure(names)} AS m{number}" for number in range(random.randint(1, 5)))
        clauses = [f"SELECT {random.choice(self.fragment.strategies)} {targets}", f"WHERE {self._postfixes(pattern)}"]
        if random.random() < 0.3:
            clauses.append("PARTITION BY k")
        if random.random() < self.fragment.having:
            judged = [f"{self.measure(names)} IS NOT NULL", f"m0 = {self.measure(names)}", self.having(pattern, restricted=False)]
            clauses.append(f"HAVING {random.choice(judged)}")
        if random.random() < self.fragment.consume:
            # On Spark each key is in a task of its own: no match consumes what others have begun.
            clauses.append("CONSUME BY " + random.choice(["PARTITION"] if self.spark else ["PARTITION", "ANY"]))
        if random.random() < self.fragment.limit:
            clauses.append(f"LIMIT {random.randint(1, 3)}")
        return " ".join(clauses)

    def measure(self, names: list[str]) -> str:
        """A random measure over these variables."""
        choose = self.random.choice
        if not names:
            return choose(["start_time()", "end_time()", "duration()", "1 + 2", "'text'", "1 / 0"])
        x, y = choose(names), choose(names)
        number, other = f"{x}.{self._one_of(NUMBERS)}", f"{y}.{self._one_of(NUMBERS)}"
        ordered = choose([self._one_of(NUMBERS), self._one_of(TIMES_AND_TEXT), "$time", "place.name", "place.spot.x"])
        anything = choose([self._one_of(ATTRIBUTES), "place.name", "place.spot.x", "place.spot"])
        instant, earlier = choose(["berlin", "day", "local", "took"]), choose(["berlin", "day", "local", "took"])
        forms = [
            f"count({x})",
            f"{choose(['first', 'last'])}({x}.{anything})",
            f"{x}.{anything}",
            f"{choose(['first', 'last'])}({x}.$time)",
            f"{choose(['min', 'max'])}({x}.{ordered})",
            f"{choose(['min', 'max'])}({x}.{ordered})",
            f"{choose(['sum', 'avg'])}({number})",
            f"{choose(['sum', 'avg'])}({number})",
            choose(["start_time()", "end_time()", "duration()"]),
            choose(["deadline_time()", f"count(DISTINCT {x}.{anything})", f"count(DISTINCT {x}.$time)"]),
            f"count(DISTINCT {x}.{anything})",
            f"{choose(['first', 'last'])}({x}.{anything}, {choose([1, 2, 3])})",
            f"stddev({number})",
            f"stddev({number}) {choose('+-*/')} {choose([f'count({y})', f'avg({other})'])}",
            f"collect({x}.{choose([anything, '$time'])})",
            f"sum({number}) {choose('+-*/%')} {choose([f'count({y})', f'max({other})', '2', '0.5'])}",
            f"{choose(['abs', 'floor', 'ceil', '-'])}({choose(['first', 'sum', 'avg', 'min'])}({number}))",
            f"last({x}.v) - first({y}.v)",
            f"max({x}.{instant}) - min({x}.{earlier})",
            f"coalesce(max({x}.s), first({y}.cat), 'none')",
            f"length(upper(max({x}.s)))",
            f"concat(max({x}.s), '-', last({y}.place.name), first({y}.cat))",
            f"{choose(['year', 'month', 'day', 'day_of_week'])}(max({x}.{choose(['berlin', 'local', 'day', 'noon'])}))",
            f"{choose(['hour', 'minute', 'second'])}(first({x}.{choose(['berlin', 'local'])}))",
            f"{choose(['day_of_week', 'hour'])}(max({x}.berlin), {choose(ZONES)})",
            f"CASE WHEN count({x}) > 1 THEN sum({number}) WHEN {y}.b THEN 7 ELSE max({other}) END",
            f"CASE WHEN max({number}) > 1 THEN 'high' WHEN max({x}.s) >= min({y}.s) THEN max({x}.s) END",
        ]
        return choose(forms)

    def _one_of(self, attributes: Mapping[str, RandomAttribute]) -> str:
        return self.random.choice([name for name, each in attributes.items() if not self.spark or each.spark is not None])


FRAGMENT = replace(ENGINE, strategies=("", "", "", "ANY", "STRICT", "NXT", "LAST", "MAX"), absence=0.15, having=0.2, consume=0.2)
"""Every strategy, over patterns that the automaton engine runs."""


@record(slots=False)
class MeasureCase:
    """A query with measures, bound, and events."""

    query: Query
    plan: QueryPlan
    events: pa.Table


def random_case(seed: int | str, *, time: str = "int64", spark: bool = False) -> MeasureCase:
    """A query that binds, and events; the same for the same arguments."""
    random = randoms.Random(seed)
    events = random_table(random, time=time, spark=spark)
    generator = MeasureGenerator(random, fragment=replace(FRAGMENT, unit="" if time.startswith("int") else "d"), spark=spark)
    while True:
        query = cepheid.query(generator.query())
        try:
            return MeasureCase(query, query.bound(query.schema(events.schema)), events)
        except BindError:
            continue


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table as the definition has values: times and durations as steps, containers as their text."""
    columns = []
    for column in table.columns:
        kind = column.type.value_type if pa.types.is_list(column.type) else column.type
        steps = pa.types.is_timestamp(kind) or pa.types.is_duration(kind)
        numbers = pa.int64() if kind == column.type else pa.list_(pa.int64())
        columns.append([_frozen(value) for value in (column.cast(numbers) if steps else column).to_pylist()])
    return list(zip(*columns, strict=True))


def _frozen(value: Any) -> Any:
    return repr(value) if isinstance(value, list | dict) else value


def fault(case: MeasureCase, matches: Matches) -> str | None:
    """What is wrong with the measures of a case's matches: a trigger gives other rows than the definition has, or not as many; None if nothing.

    Raises LimitError past the limits of the reference.
    """
    found: dict[Any, Counter[Any]] = {}
    assert matches.measures is not None
    for match, row in zip(matches, rows_of(matches.measures), strict=True):
        found.setdefault((tuple(match.keys.values()), match.end), Counter())[match.start, row] += 1
    result = reference.run(case.plan, definition.rows_of(case.plan, case.events), max_matches=MAX_MATCHES)
    for partition in result.partitions:
        for group in partition.groups:
            pairs = zip(group.candidates, group.measures, strict=True)
            candidates = Counter((match.start, tuple(map(_frozen, row))) for match, row in pairs)
            given = found.pop((partition.key, group.end), Counter())
            if given.total() != group.choose or not given <= candidates:
                return f"at {partition.key, group.end}: {given - candidates} instead of {candidates - given}\n{case.query.text}"
    return f"no triggers: {found}\n{case.query.text}" if found else None
