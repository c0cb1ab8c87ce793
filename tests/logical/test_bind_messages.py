"""The exact text of every error and warning of binding: the cases of tests/errors/bind.toml and tests/errors/lints.toml."""

from __future__ import annotations

import pickle
import re
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

from cepheid import errors
from cepheid.language import parse
from cepheid.logical import functions
from cepheid.logical.bind import bind
from cepheid.logical.measures import UNSPOKEN
from cepheid.logical.plan import AGGREGATES
from cepheid.schema import EventSchema

FOLDER = Path(__file__).parent.parent / "errors"
TYPES = {
    "bool": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "string": pa.utf8(),
    "date32": pa.date32(),
    "list<string>": pa.list_(pa.utf8()),
    "struct<city: string>": pa.struct([("city", pa.utf8())]),
    "timestamp[us]": pa.timestamp("us"),
    "timestamp[us, tz=UTC]": pa.timestamp("us", "UTC"),
    "decimal128(10, 2)": pa.decimal128(10, 2),
}
VALUES = {"$None": None, "$10**40": 10**40}
"""Parameters that TOML cannot write."""


def cases(file):
    """The cases of a file, each with its schema and parameters as Python values."""
    data = tomllib.loads((FOLDER / file).read_text(encoding="utf-8"))
    schemas = {name: schema(**fields) for name, fields in data["schemas"].items()}
    for case in data["case"]:
        args = {name: VALUES.get(value, value) if isinstance(value, str) else value for name, value in case.get("args", {}).items()}
        yield {**case, "schema": schemas[case["schema"]], "args": args}


def schema(*, attributes, time=None, type=None, types=None):  # noqa: A002 - the word of the files
    return EventSchema(
        {name: TYPES[kind] for name, kind in attributes.items()},
        type_column=type,
        time_column=time,
        types=None if types is None else {name: frozenset(names) for name, names in types.items()},
    )


def without_excerpt(message):
    """The fact and the help of a message, without its place."""
    return [line for line in message.splitlines() if re.match("(error|warning|help): ", line)]


ERRORS = list(cases("bind.toml"))
LINTS = list(cases("lints.toml"))
EVENTS = LINTS[0]["schema"]


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case["name"])
def test_error(case):
    with pytest.raises(getattr(errors, case["error"])) as caught:
        bind(parse(case["query"]), case["schema"], args=case["args"], text=case["query"])
    assert str(caught.value) == case["message"]
    assert str(pickle.loads(pickle.dumps(caught.value))) == case["message"]


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case["name"])
def test_error_without_text(case):
    with pytest.raises(getattr(errors, case["error"])) as caught:
        bind(parse(case["query"]), case["schema"], args=case["args"])
    assert without_excerpt(str(caught.value))[0] == without_excerpt(case["message"])[0]
    assert " | " not in str(caught.value)


def test_every_name_is_used_once():
    names = [case["name"] for case in (*ERRORS, *LINTS)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("case", LINTS, ids=lambda case: case["name"])
def test_lint(case):
    found = bind(parse(case["query"]), case["schema"], args=case["args"], text=case["query"])
    assert "\n".join(found.lints) == case["message"]
    assert sorted((*found.warnings, *found.notes)) == sorted(found.lints)
    assert all(lint.startswith("note: ") for lint in found.notes)
    assert all(lint.startswith("warning: ") for lint in found.warnings)


@pytest.mark.parametrize(
    "pattern",
    [
        "A AS x ; B AS y FILTER x.temp > y.temp WITHIN 1h",
        "A : B : C",
        "A ;[<= 5s] B+[<= 5s] WITHIN 1h LIMIT 1",
        "A ;[<= 5s] B{1,5}[<= 5s] LIMIT 1",
        "A :[<= 5s] B:+[<= 5s] WITHIN 1h LIMIT 1",
        "A{3}[<= 1m]",
        "((A ; B) WITHIN 5s) : C",
        "(A AS x OR B AS x) FILTER x.temp > 1",
        "(A AS x)+ ; (B AS x)+ WITHIN 1h LIMIT 1",
        "A ; A WITHIN 1h",
        "NXT(A ; B WITHIN 5s)",
        "NXT(A : B) : C AS c FILTER c.temp > 1",
        "A ; B UNLESS C WITHIN 1h",
        "A ; B UNLESS (A FILTER A.temp > 1) WITHIN 1h",
        "(A OR B) : C UNLESS A",
        "(A : B AS x) AND (A : B AS x WITHIN 5s)",
        "A ; NOT B ; C WITHIN 1h",
        "A ; LAST(B+ WITHIN 9 EVENTS) WITHIN 9 EVENTS LIMIT 1",
        "A FILTER A.temp IS NULL",
        "A FILTER 1 < 2",
    ],
)
def test_no_lint(pattern):
    text = f"SELECT * FROM S WHERE {pattern}"
    assert bind(parse(text), EVENTS, text=text).lints == ()


def test_functions_of_other_systems_are_none_of_ours():
    assert not functions.INSTEAD.keys() & {*functions.FUNCTIONS, *AGGREGATES.keys() - UNSPOKEN, "lag", "prev"}
