"""Bound conditions mean the same to the engine's columns and to the reference, on rows with every awkward value."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal

import pyarrow as pa
import pytest

from cepheid.automata.alphabet import Alphabet, Predicate
from cepheid.engine.letters.predicates import Predicates
from cepheid.language import parse
from cepheid.logical.bind import bind
from cepheid.logical.plan import localize
from cepheid.schema import EventSchema
from cepheid.testing import evaluate
from cepheid.testing.reference import Event

NOW = dt.datetime(2013, 2, 1, 12, 30, 0, 123_456)  # noqa: DTZ001 - a time without zone
COLUMNS = {
    "i": (pa.int32(), [0, 1, -7, 2**31 - 1, None]),
    "k": (pa.int64(), [3, -(2**63), 2**63 - 1, None, 0]),
    "u": (pa.uint64(), [0, 7, 2**64 - 1, None, 2**63]),
    "d": (pa.float64(), [0.0, -2.5, float("nan"), None, float("inf"), 1e308]),
    "f": (pa.float32(), [0.1, 2.5, None]),
    "p": (pa.decimal128(10, 2), [Decimal("1.25"), Decimal("-99999999.99"), None, Decimal(0)]),
    "q": (pa.decimal128(20, 4), [Decimal("1.2500"), Decimal("0.0001"), None]),
    "s": (pa.utf8(), ["", "aB%", "Äß", "40", None]),
    "c": (pa.dictionary(pa.int8(), pa.utf8()), ["x", "aB%", None]),
    "b": (pa.bool_(), [True, False, None]),
    "day": (pa.date32(), [NOW.date(), dt.date(1960, 1, 1), None]),
    "sec": (pa.timestamp("s"), [NOW.replace(microsecond=0), None, dt.datetime(1970, 1, 1)]),  # noqa: DTZ001 - as above
    "us": (pa.timestamp("us"), [NOW, None]),
    "z": (pa.timestamp("us", "Asia/Tokyo"), [NOW.replace(tzinfo=dt.UTC), None]),
    "dur": (pa.duration("s"), [dt.timedelta(seconds=90), dt.timedelta(days=-1), None]),
    "n": (pa.null(), [None]),
}
ROWS = 60
SCHEMA = EventSchema({"type": pa.utf8(), **{name: kind for name, (kind, _) in COLUMNS.items()}}, type_column="type")
TABLE = pa.table(
    {
        "type": ["A"] * ROWS,
        **{name: pa.array(list(itertools.islice(itertools.cycle(values), ROWS)), kind) for name, (kind, values) in COLUMNS.items()},
    }
)
EVENTS = [Event("A", None, row) for row in TABLE.to_pylist()]

CONDITIONS = """
i = 1
i != 1
NOT i = 1
i < 2.5
i > -7.5
i = 2.5
i != 2.5
i < 99999999999.5
k >= -9223372036854775808
k < 1e18
k + 1 > 0
k * 2 IS NULL
k - k = 0
-k IS NULL
abs(k) > 0
i / 0 IS NULL
i / 2 > 0.2
i % 3 = 1
i % 0 IS NULL
u = 7
u > 9223372036854775807
u < 8.5
u > k
u IS NULL
d = 0
d != 0
NOT d != 0
d > 1
d * 10 > 0
d / d IS NULL
d IS NULL
floor(d) = -3
ceil(f) = 3
f = 0.1
f > p
i > d
p = 1.25
p < 1.2501
p <= -99999999.99
p > -1e9
p = q
p + q > 2
p - q = 0
p * q > 1.5
p / q = 1
p % 3 = 1.25
p * i > 1
p / 3.0 > 0.4
ceil(p) = 2
coalesce(i, 5) = 5
coalesce(i, d, 2.5) > 2
coalesce(n, p) IS NULL
s = 'aB%'
s < 'b'
s >= 'Ä'
s LIKE 'a%'
s LIKE '%B_'
s NOT LIKE '_ß'
s IN ('', '40', NULL)
s NOT IN ('', '40')
length(s) = 2
lower(s) = 'ab%'
upper(s) = 'Äß'
c = s
c IN ('x')
b
NOT b
b = FALSE
b AND i = 1
b OR i = 1
i IN (1, 2.5, 0)
i IN (k, 1)
i IN (0, 1e0)
1 IN (i, k)
3 NOT IN (i, k, 2)
NULL IN (i, 1)
90s IN (dur, dur)
p IN (1.25, 0)
i BETWEEN -7 AND 0.5
p NOT BETWEEN 0 AND 1.255
i IS NOT NULL
n = 1
n IS NULL
n != 'a'
NOT n = 1
i = NULL
day = DATE '2013-02-01'
day < TIMESTAMP '2013-02-01 12:00:00'
day < sec
us > DATE '2013-02-01'
us >= TIMESTAMP '2013-02-01 12:30:00.1234567'
us <= TIMESTAMP '2013-02-01 12:30:00.1234567'
us = TIMESTAMP '2013-02-01 12:30:00.123456'
sec < TIMESTAMP '2013-02-01 12:30:00.5'
z = TIMESTAMP '2013-02-01 21:30:00.123456+09:00'
us - sec < 0.2s
us - day > 12h
sec + 0.5s > us
us + 5m > us
sec - 1w < day
dur > 1m
dur = 90s
dur <= 90.5s
dur > -2d
dur + 30s = 2m
-dur > 0s
dur - 0.5s < dur
(i + 1) * 2 > 3 AND NOT (b OR s = '')
"""


@pytest.mark.parametrize("text", CONDITIONS.strip().splitlines())
def test_condition(text):
    query = f"SELECT * FROM S WHERE A AS x FILTER x[({text})]"
    conditions = bind(parse(query), SCHEMA, text=query).pattern.conditions
    letters = Predicates(Alphabet(tuple(Predicate(localize(condition)) for condition in conditions)), SCHEMA).letters(TABLE)
    expected = [all(evaluate.holds(condition, EVENTS, {("x", False): row}) for condition in conditions) for row in range(ROWS)]
    assert [letter == (1 << len(conditions)) - 1 for letter in letters] == expected
