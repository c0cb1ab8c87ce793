"""What each rule makes of a query, as text: tests/logical/rewrites/<rule>.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from cepheid.errors import LimitError
from cepheid.language import parse
from cepheid.logical import describe, normal_form, take_apart
from cepheid.logical.bind import bind
from cepheid.logical.rewrite import RULES, rewrite, rewrite_steps
from cepheid.logical.tree import size
from cepheid.schema import EventSchema
from cepheid.theory import equivalent
from cepheid.theory.safe_form import safe_form

if TYPE_CHECKING:
    from cepheid.logical.plan import QueryPlan

FOLDER = Path(__file__).parent / "rewrites"
COLUMNS = {"type": pa.string(), "ts": pa.timestamp("us"), "v": pa.int64(), "id": pa.int64(), "price": pa.float64(), "name": pa.string()}
SCHEMA = EventSchema(COLUMNS, type_column="type", time_column="ts")


def bound(pattern: str) -> QueryPlan:
    text = pattern if pattern.startswith("SELECT") else f"SELECT * WHERE {pattern}"
    return bind(parse(text), SCHEMA, text=text)


def cases() -> list[object]:
    return [
        pytest.param(path.stem, case, id=f"{path.stem}-{number}")
        for path in sorted(FOLDER.glob("*.toml"))
        for number, case in enumerate(tomllib.loads(path.read_text())["case"])
    ]


@pytest.mark.parametrize(("name", "case"), cases())
def test_before_and_after(name: str, case: dict[str, str]) -> None:
    plan = bound(case["before"])
    if name == "safe_form":
        pattern, renaming = safe_form(plan.pattern)
        assert describe(pattern, unit=1000) == case["after"]
        assert renaming == case.get("renaming", {})
        return
    change = rewrite if name == "all" else dict(RULES)[name]
    after = change(plan)
    assert describe(after.pattern, unit=1000) == case["after"]
    assert after.partition_by == plan.partition_by
    assert list(after.derived_keys) == case.get("derived_keys", [])


@pytest.mark.parametrize(("name", "case"), cases())
def test_same_matches_on_all_small_streams(name: str, case: dict[str, str]) -> None:
    if name == "safe_form":  # its variables have other names: test_rewrite_meaning.py
        return
    plan = bound(case["before"])
    change = rewrite if name == "all" else dict(RULES)[name]
    for max_events in (3, 2, 1):
        try:
            assert equivalent(plan, change(plan), max_events=max_events, max_streams=1_000) is None
        except LimitError:
            continue
        return
    pytest.fail("too many kinds of events for the bounded check")


def test_every_rule_has_fixtures() -> None:
    assert {path.stem for path in FOLDER.glob("*.toml")} == {name for name, _ in RULES} | {"safe_form", "all"}


def test_steps_name_the_rules_that_changed_something() -> None:
    steps = rewrite_steps(bound("A{1} AS x ; B? ; C FILTER x.v > 1"))
    assert [name for name, _ in steps] == ["push_down", "simplify"]
    assert rewrite_steps(bound("A ; B")) == []


@pytest.mark.parametrize(
    ("pattern", "limit"),
    [
        ("A AS x ; " + " ; ".join(f"(B FILTER x.v > {n})?" for n in range(14)) + " ; C", "MAX_EXPANSION"),
        (
            " ; ".join(f"((B FILTER x.v > {n}) OR C)" for n in range(9)) + " ; A AS x",
            "MAX_LP_BRANCHES",
        ),
        ("A AS x ; " + " ; ".join(f"((B FILTER x.v > {n}) OR C)" for n in range(20)), "MAX_EXPANSION"),
        ("A AS x ; B AS y FILTER " + " AND ".join(f"(x.v > {n} OR y.v > {n})" for n in range(9)), "MAX_BRANCHES"),
    ],
)
def test_limits_say_their_name(pattern: str, limit: str) -> None:
    with pytest.raises(LimitError) as caught:
        rewrite(bound(pattern))
    assert limit in str(caught.value)
    assert "^" in str(caught.value)
    assert "help:" in str(caught.value)


def test_just_below_the_limits() -> None:
    choices = " ; ".join(f"((B FILTER x.v > {n}) OR C)" for n in range(8))
    assert len(normal_form.normal_form(bound(f"{choices} ; A AS x").pattern).operands) == normal_form.MAX_LP_BRANCHES
    # Where each prefix binds x, nothing has to wait, but each prefix is there twice.
    assert size(normal_form.normal_form(bound(f"A AS x ; {choices}").pattern)) < 2**11
    assert take_apart.MAX_BRANCHES == 2**8
    rewrite(bound("A AS x ; B AS y FILTER " + " AND ".join(f"(x.v > {n} OR y.v > {n})" for n in range(8))))
