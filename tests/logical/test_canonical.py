"""The text that fingerprints are made of: the same for equal values, in every process."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from decimal import Decimal

import pyarrow as pa
import pytest

from cepheid.errors import Span
from cepheid.language.syntax import Strategy
from cepheid.logical.canonical import canonical_text
from cepheid.logical.plan import Apply, Literal


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        ((1, "ü", 2.5, True), "(1,'\\xfc',2.5,True)"),
        ("\U0001fae9", "'\\U0001fae9'"),  # a character that only newer versions of Python know
        ((Decimal("1.50"), dt.date(2026, 1, 2)), "(Decimal('1.50'),datetime.date(2026, 1, 2))"),
        (frozenset({"b", "a"}), "{'a','b'}"),
        (Strategy.MAX, f"'{Strategy.MAX.value}'"),
        (pa.list_(pa.timestamp("us", "UTC")), "<list<item: timestamp[us, tz=UTC]>>"),
        (pa.schema([("a", pa.int64())]), "(('a',<int64>))"),
    ],
)
def test_texts(value, text):
    assert canonical_text(value) == text


def test_what_does_not_take_part_in_comparing_is_left_out():
    here, there = (Apply("not", (Literal(1, pa.int64(), span=span),), pa.bool_(), span=span) for span in (Span(0, 3), Span(4, 9)))
    assert here == there
    assert canonical_text(here) == canonical_text(there)


def test_other_values_are_refused():
    with pytest.raises(TypeError, match="dict has no canonical text"):
        canonical_text({})


FINGERPRINTS = """
import random
import cepheid
from cepheid.errors import CepheidError
from cepheid.testing.generators import ABSENT, COMPARING, ENGINE, GUARDED, NESTED, SCHEMA, WAITING, WIDE, random_query
FRAGMENTS = {"absent": ABSENT, "engine": ENGINE, "nested": NESTED, "waiting": WAITING, "wide": WIDE, "comparing": COMPARING, "guarded": GUARDED}
def show(text):
    query = cepheid.query(text)
    try:
        compiled = query.compiled(query.schema(SCHEMA))
    except CepheidError as error:
        print(type(error).__name__)
    else:
        print(compiled.fingerprint.hex(), compiled.program.label_sets and [sorted(mark) for mark in compiled.program.label_sets])
for number in range(%d):
    for name, fragment in FRAGMENTS.items():
        show(random_query(random.Random(f"%d/{number}/{name}"), fragment=fragment))
# What is kept for a correlation has sets in it.
show("SELECT z WHERE (B AS u ; (C AS z) ; B FILTER prev(u).v = B.v) :+[<= 2] FILTER u.v = B.v OR z.b WITHIN 8 EVENTS")
show("SELECT y WHERE (A AS y ; A ; C FILTER prev(C).v < y.v)+ ; (A FILTER (y.v >= prev(A).v OR prev(A).b)) :+ ;[= 0] (A AS u ; C) AS y")
"""


def test_fingerprints_do_not_depend_on_the_hash_seed(cases, seed):
    printed = []
    for hash_seed in ("0", "1", "2"):
        script = FINGERPRINTS % (max(cases // 20, 10), seed)
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        printed.append(subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True).stdout)
    assert printed[0] == printed[1] == printed[2]
    assert len(set(printed[0].split())) > 10
