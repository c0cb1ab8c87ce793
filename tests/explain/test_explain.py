"""What `explain()` prints, as text files: tests/explain/cases/NAME.txt; CEPHEID_UPDATE=1 writes them anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.plan.explain import STAGES
from cepheid.errors import BindError, InputError

CASES = Path(__file__).with_name("cases")

INSIDE = "(from gaps and windows inside the pattern)"

SENSORS = pa.schema(
    [("type", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("temp", pa.float64()), ("hum", pa.float32())]
)
FLIGHTS = pa.schema([("tailnum", pa.string()), ("ts", pa.timestamp("s", "UTC")), ("dep_delay", pa.float64())])

QUERIES = {
    "heat_then_dry": ("SELECT * WHERE (T AS x ; H AS y) FILTER x[temp > :limit] AND y[hum < 25] WITHIN 5 seconds", SENSORS),
    "equality": ("SELECT ANY x, y WHERE T AS x ; H AS y FILTER y.id = x.id WITHIN 1 minute", SENSORS),
    "delay_cascade": (
        (
            "SELECT * FROM flights WHERE flights AS ok : flights AS late : flights AS worse\n"
            "FILTER ok[dep_delay <= 15] AND late[dep_delay > 15 AND dep_delay <= 60] AND worse[dep_delay > 60]\n"
            "PARTITION BY tailnum WITHIN 24 h"
        ),
        FLIGHTS,
    ),
    "strict_iteration": ("SELECT STRICT * WHERE (T+ AS hot ; H?) FILTER hot[temp > 40] WITHIN 100 EVENTS LIMIT 3", SENSORS),
    "then": ("SELECT * WHERE T THEN (H THEN (T ; H)) WITHIN 5s TIME MODEL COMPLETE_HISTORY", SENSORS),
    "past_a_limit": ("SELECT * WHERE T ; (H ; T){500000}", SENSORS),
    "counted_from_start": ("SELECT COUNT(*) WHERE T+ ; H NOT FOLLOWED BY H FOR 5s FROM START WITHIN 1 minute", SENSORS),
    "then_guarded": ("SELECT * WHERE T AS x THEN (H ; T AS y) FILTER y.id = x.id WITHIN 5s TIME MODEL ACTIVE_OFFICE", SENSORS),
    "negation": ("SELECT * WHERE (T ; NOT H ; T) ALL H UNLESS (H ; H) WITHIN 5s", SENSORS),
    "negated_gap": ("SELECT * WHERE T ; NOT (H ;[<= 2s] H) ; T WITHIN 1 minute", SENSORS),
    "gaps": ("SELECT * WHERE T ;[<= 2s] H ;[> 1s] T WITHIN 10s", SENSORS),
    "one_clock": ("SELECT * WHERE T ;[<= 2s] H ;[<= 1s] T", SENSORS),
    "gaps_without_window": ("SELECT NXT * WHERE T ;[<= 2s] H", SENSORS),
    "order": ("SELECT * WHERE T AS x ; T AS y FILTER y.temp > x.temp WITHIN 1 minute", SENSORS),
    "carried": (
        "SELECT * WHERE T AS x ; H AS h ; T AS y FILTER y.id = x.id AND y.temp > x.temp AND y.ts - h.ts <= x.ts - h.ts WITHIN 1 minute",
        SENSORS,
    ),
    "carried_equality": ("SELECT * WHERE T AS x ; H ; T AS y FILTER y.id = x.id WITHIN 1 minute", SENSORS),
    "rising": ("SELECT COUNT(*) WHERE (T AS t FILTER t.temp > prev(t).temp)+ PARTITION BY id WITHIN 10s", SENSORS),
    "next": ("SELECT NXT * WHERE T ; H WITHIN 5s CONSUME BY ANY", SENSORS),
    "last": ("SELECT LAST * WHERE T ; H WITHIN 5s", SENSORS),
    "maximal": ("SELECT MAX * WHERE T+ ; H LIMIT 3", SENSORS),
    "chosen": ("SELECT NXT * WHERE T : H WITHIN 100 EVENTS", SENSORS),
    "per_end": ("SELECT MAX * WHERE (T : H+) ; T WITHIN 100 EVENTS", SENSORS),
    "count": ("SELECT COUNT(*) WHERE T ; H WITHIN 5s", SENSORS),
    "absence": (
        "SELECT * WHERE T AS x NOT FOLLOWED BY (H ; T WITHIN 3s) FOR 5s NOT FOLLOWED BY H FOR 1 minute FILTER x.temp > 40",
        SENSORS,
    ),
    "lag": ("SELECT * WHERE T AS x ; H AS y FILTER x.temp > lag(x.temp) AND y[lag(hum, 2) IS NULL] PARTITION BY id WITHIN 5s", SENSORS),
    "nested": ("SELECT * WHERE T ; NXT(H+ ; T) WITHIN 5s", SENSORS),
    "nested_guards": ("SELECT COUNT(*) WHERE MAX(NXT(T+ ;[<= 2s] H) ; T) ; H WITHIN 1 minute", SENSORS),
    "guessed": (
        "SELECT * WHERE (A AS x ; (B OR C)+ AS y) FILTER x[v > 2] AND y.k LIKE 'a%' AND x.flag = TRUE PARTITION BY city WITHIN 10s",
        None,
    ),
    "guessed_keys": ("SELECT * WHERE (A AS x ; B AS y) FILTER x[v > 2] AND x.id = y.id WITHIN 10s", None),
    "not_guessed": ("SELECT * WHERE A AS x FILTER x[v > :limit AND w.u = 2] ; ", None),
    "open": (
        (
            "SELECT * WHERE T AS x ; H{2,:most} AS h ;[< :gap] T AS y FILTER x[temp > :limit * 2 AND id IN :ids] AND y.temp = :limit\n"
            "NOT FOLLOWED BY H FOR [< :wait] WITHIN :n EVENTS HAVING count(h) > :least LIMIT :l"
        ),
        SENSORS,
    ),
    "lints": ("SELECT * WHERE A AS x ; B AS x", None),
}


def explained(name):
    text, schema = QUERIES[name]
    args = {"limit": 40} if name == "heat_then_dry" else None
    return cepheid.query(text.rstrip(" ;"), args=args).explain(schema=schema)


@pytest.mark.parametrize("name", QUERIES)
def test_explanation(name):
    path = CASES / f"{name}.txt"
    text = "\n".join(line.rstrip() for line in str(explained(name)).splitlines()) + "\n"
    text = re.sub(r"(?<=fingerprint )[0-9a-f]{16}", "................", text)
    if os.environ.get("CEPHEID_UPDATE"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_a_stage_says_why_it_is_not_there():
    """Types that are guessed do not fit, or nothing evaluates the query; of an unknown stage it is a KeyError."""
    query = cepheid.query("SELECT * WHERE A FILTER A.v > 3 AND A.v LIKE 'x%'")
    for explanation in (query.explain("lints"), query.explain()):
        for fact in ("guess do not fit: LIKE", "LIKE compares text, this is double", "give schema=", "schema=table.schema"):
            assert fact in explanation["lints"]
    pair = cepheid.query("SELECT * WHERE A AS a ; B AS b FILTER a.v = b.v AND a.v LIKE 'x%' AND b.v > 3")
    known = pa.schema([("type", pa.string()), ("v", pa.string())])
    with pytest.raises(cepheid.BindError):
        pair.explain("lints", schema=known)
    assert cepheid.query("SELECT * WHERE A FILTER A.v LIKE 'x%'").explain("lints", schema=known)["lints"] == "none"
    assert "the values of all parameters" in cepheid.query("SELECT * WHERE A FILTER A.v > :v").explain("lints")["lints"]
    with pytest.raises(KeyError):
        query.explain()["lint"]


def test_a_spelling_that_has_no_room_in_a_letter():
    either = " OR ".join(f"(T AS x FILTER x.temp > {number})" for number in range(62))
    lines = (
        cepheid.query(f"SELECT * WHERE {either} NOT FOLLOWED BY ({either}) FOR 5s")
        .explain("program", schema=SENSORS)["program"]
        .splitlines()
    )
    assert lines[:2] == ["letter bits 0 to 31: the number of a spelling of 63 bits", "spelling bit 0 = 1: type is T"]
    assert "absence 1, letter bits 0 to 31: the number of a spelling of 63 bits" in lines


def test_no_file_without_a_case():
    assert {path.stem for path in CASES.glob("*.txt")} == set(QUERIES)


@pytest.mark.parametrize("stage", STAGES)
def test_one_stage(stage):
    text, schema = QUERIES["equality"]
    explanation = cepheid.query(text).explain(stage, schema=schema)
    assert [title for title, _ in explanation.sections] == [stage]
    assert explanation[stage] == explained("equality")[stage]


@pytest.mark.parametrize(
    ("where", "plan", "window"),
    [
        ("T ; H WITHIN [< 40s]", "(T ; H) WITHIN [< 40s]", "time < 40s"),
        ("T ; H WITHIN [<= 40s]", "(T ; H) WITHIN [<= 40s]", "time 40s"),
        ("T ; H WITHIN [> 0s, < 2m]", "(T ; H) WITHIN [> 0s, < 2m]", "time < 2m"),
        ("T ; H WITHIN [1s, 2m]", "(T ; H) WITHIN [1s, 2m]", "time 2m"),
        ("T ;[>= 1s, < 40s] H", "T ;[>= 1s, < 40s] H", f"time < 40s {INSIDE}"),
        ("T ;[< 40s] H ;[< 2s] T", "T ;[< 40s] H ;[< 2s] T", f"time < 42s {INSIDE}"),
        ("T ;[< 40s] H ;[<= 2s] T", "T ;[< 40s] H ;[<= 2s] T", f"time < 42s {INSIDE}"),
        ("T ;[<= 40s] H ;[<= 2s] T", "T ;[<= 40s] H ;[<= 2s] T", f"time 42s {INSIDE}"),
        ("T{4}[< 2s]", "T{4}[< 2s]", f"time < 6s {INSIDE}"),
        ("(T ;[< 2s] H) OR (T ;[<= 2s] H)", "(T ;[< 2s] H) OR (T ;[<= 2s] H)", f"time 2s {INSIDE}"),
    ],
)
def test_bounds_are_as_people_write_them(where, plan, window):
    found = cepheid.query(f"SELECT NXT * WHERE {where}").explain(schema=SENSORS)
    assert found["plan"] == plan
    assert re.findall("^window +(.*)", found["evaluation"], re.MULTILINE) == [window]
    assert "999us" not in str(found)


def test_notebook_table_is_escaped():
    page = explained("heat_then_dry")._repr_html_()
    assert page.startswith("<table>")
    assert "x[temp &gt; :limit]" in page
    assert repr(explained("lints")) == str(explained("lints"))


def test_wrong_stage_and_wrong_schema():
    query = cepheid.query("SELECT * WHERE A AS x FILTER x.v > 1")
    with pytest.raises(InputError) as error:
        query.explain("automatn")
    assert str(error.value).splitlines()[:2] == ["error: there is no stage 'automatn'", "help: did you mean 'automaton'?"]
    with pytest.raises(InputError, match="explain takes the name of a stage first, not a Schema"):
        query.explain(pa.schema([]))
    with pytest.raises(BindError, match="unknown attribute"):
        query.explain(schema=pa.schema([("type", pa.string()), ("w", pa.int64())]))


def test_many_alternatives_with_conditions_of_their_own_cost_as_many_looks() -> None:
    """Not one for each subset of the conditions; where each goes on in its own way, none shares a macro state with another."""
    joined = " OR ".join(f"(A FILTER A[temp % {number + 2} = 1])" for number in range(40))
    query = cepheid.query(f"SELECT * WHERE ({joined}) ;[<= 5s] B WITHIN 10s LIMIT 1")
    assert "several ways" not in str(query.explain("evaluation", schema=SENSORS))
    apart = " OR ".join(f"((A FILTER A[temp % {number + 2} = 1]) ;[<= {number + 1}s] B)" for number in range(14))
    shown = str(cepheid.query(f"SELECT * WHERE ({apart}) WITHIN 20s LIMIT 1").explain("evaluation", schema=SENSORS))
    assert "a match may be found in several ways: they are told apart at its end" in shown
