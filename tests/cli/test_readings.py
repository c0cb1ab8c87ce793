"""Types that are inferred piece by piece are those that Arrow infers from a whole file."""

from __future__ import annotations

import io
import json
import random
import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pytest

from cepheid.cli import files
from cepheid.engine.input.files import csvs, jsonlines
from cepheid.engine.input.files.readings import OF_TEXT
from cepheid.engine.input.files.streams import read
from cepheid.engine.input.time_texts import TIME
from cepheid.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

NUMBERS = ("1", "0", "-5", "007", " 1", "1 ", "\t2", "0x1F", "9223372036854775807")
DECIMALS = ("1.5", "1e5", "+5", "-0", "inf", ".5", "99999999999999999999")
BOOLEANS = ("true", "True", "FALSE", "1", "0")
DAYS = ("2020-01-01", " 2020-02-29")
TIMES_OF_DAY = ("12:00", "23:59:01", " 12:00 ")
LOCAL = (
    "2020-01-01 10:00",
    "2020-01-01T10:00:00",
    "2020-01-01 10",
    "2020-01-01 10:00:00.5",
    "2020-01-01 10:00:00.123456000",
    "9999-01-01 10:00",
)
FINE = ("2020-01-01 10:00:00.1234567", "9999-01-01 10:00:00.5")
UTC = ("2020-01-01 10:00Z", "2020-01-01T10:00:00+01:00", "2020-01-01T10:00:00.25-0330", "2020-01-01T10:00:00+01")
OTHER = (
    "x",
    "\u00e9",
    "2020-02-30",
    "24:00",
    "12:00:01.5",
    " true",
    " 2020-01-01 10:00",
    '"5"',
    '"a,b"',
    '"a\nb"',
    '"say ""so"""',
    '""',
    '"NA"',
    "1_0",
)
KINDS = (NUMBERS, DECIMALS, BOOLEANS, DAYS, TIMES_OF_DAY, LOCAL, UTC, LOCAL + FINE, NUMBERS + DECIMALS, DAYS + LOCAL)
EVERY = tuple(text for kind in KINDS for text in kind) + OTHER


def with_times(table: pa.Table) -> pa.Table:
    """What a whole table is made of: texts as times, and times in microseconds, where all values of a column can be."""
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        kinds: list[pa.DataType] = [pa.timestamp("us", column.type.tz)] if pa.types.is_timestamp(column.type) else []
        texts = column.drop_null()
        if pa.types.is_string(column.type) and len(texts) and TIME.fullmatch(texts[0].as_py()):
            kinds = [reading.kind for reading in OF_TEXT[:-1]]
        for kind in kinds:
            try:
                table = table.set_column(place, name, column.cast(kind))
                break
            except pa.ArrowInvalid:
                continue
    return table


def same(path: Path, expected: pa.Table) -> None:
    found = read(path, typed=False).read_all()
    assert found.schema == expected.schema
    assert found.equals(expected.combine_chunks()) or str(found.to_pydict()) == str(expected.to_pydict())  # NaN is not equal to itself


def csv_of(random_: random.Random, columns: int) -> str:
    kinds = [random_.choice(KINDS) for _ in range(columns)]

    def value(kind: tuple[str, ...]) -> str:
        chance = random_.random()
        return random_.choice(EVERY) if chance < 0.01 else random_.choice(("", "NA")) if chance < 0.1 else random_.choice(kind)

    rows = [",".join(value(kind) for kind in kinds) for _ in range(random_.randrange(40))]
    return "\n".join([",".join("abcd"[:columns]), *rows]) + "\n"


@pytest.mark.parametrize("seed", range(100))
def test_csv(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random_ = random.Random(seed)
    monkeypatch.setattr(csvs, "PIECE", random_.choice((64, 200, 1000)))
    text = csv_of(random_, columns=random_.randrange(2, 5))
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    same(path, with_times(with_codes(arrow_csv_of(text), arrow_csv_of(text, dict.fromkeys("abcd", pa.string())))))


def arrow_csv_of(text: str, types: dict[str, pa.DataType] | None = None) -> pa.Table:
    return pyarrow.csv.read_csv(
        io.BytesIO(text.encode()),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=list(csvs.NULLS), column_types=types
        ),
    )


def with_codes(table: pa.Table, texts: pa.Table) -> pa.Table:
    """The table with texts for the columns of numbers in which two different texts of digits could become one."""
    for place, name in enumerate(table.column_names):
        kind, values = table.schema.types[place], [each.strip(" \t") for each in texts[name].drop_null().to_pylist()]
        codes = any(re.match("[+-]?0[0-9xX]", each) for each in values)
        inexact = pa.types.is_floating(kind) and any(int(float(each)) != int(each) for each in values if re.fullmatch("[+-]?[0-9]+", each))
        if (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and (codes or inexact):
            table = table.set_column(place, name, texts[name])
    return table


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["7", "08"], pa.string(), ["7", "08"]),
        (["1.5", "01.5"], pa.string(), ["1.5", "01.5"]),
        (["0x10", "16"], pa.string(), ["0x10", "16"]),
        (["12345678901234567890", "1"], pa.string(), ["12345678901234567890", "1"]),
        (["9007199254740993", "1.5"], pa.string(), ["9007199254740993", "1.5"]),
        (["9007199254740993", "1"], pa.int64(), [9007199254740993, 1]),
        (["9007199254740992", "-0.5"], pa.float64(), [9007199254740992.0, -0.5]),
        (["18446744073709551616", "0"], pa.float64(), [2.0**64, 0.0]),
    ],
)
def test_two_numbers_of_csv_never_become_one(values: list[str], kind: pa.DataType, expected: list[object], tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a", *values]) + "\n", encoding="utf-8")
    found = read(path, typed=False).read_all()["a"]
    assert (found.type, found.to_pylist()) == (kind, expected)


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        (['{"a": 12345678901234567890}'], "line 1: `a` has 12345678901234567890"),
        (['{"a": 1.5}', "", '{"a": 9007199254740993}'], "line 3: `a` has 9007199254740993"),
        (['{"a": {"b": [1.5, -9007199254740993]}}'], "line 1: `a` has -9007199254740993"),
        (['{"a": 9007199254740993}', '{"a": 1e300}'], "line 1: `a` has 9007199254740993"),
    ],
)
def test_two_numbers_of_json_lines_never_become_one(lines: list[str], wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"{wrong}, which no double holds exactly"):
        read(path, typed=False).read_all()


def test_whole_numbers_that_are_doubles_stand_beside_fractions(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 9007199254740992}\n{"a": 0.5}\n', encoding="utf-8")
    assert read(path, typed=False).read_all()["a"].to_pylist() == [9007199254740992.0, 0.5]


VALUES = (
    lambda _: 1,
    lambda r: r.choice((1, 1.5, 2**70)),
    lambda r: r.random() < 0.5,
    lambda r: r.choice(("a", "\u00e9")),
    lambda r: r.choice(("2020-01-01 10:00:00", "2020-01-01T10:00:00.5")),
    lambda r: r.choice(("2020-01-01T10:00:00+01:00", "2020-01-01 10:00Z")),
    lambda r: r.choice(("2020-01-01 10:00:00", "x")),
    lambda r: {"a": r.choice((1, None, 2.5))} | ({"b": r.choice(("x", "y"))} if r.random() < 0.5 else {}),
    lambda r: [r.choice((1, None, 2.5))] * r.randrange(3),
    lambda r: [{"a": r.choice((1, None))}],
    lambda _: None,
    lambda _: {},
)


@pytest.mark.parametrize("seed", range(100))
def test_json_lines(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random_ = random.Random(seed)
    monkeypatch.setattr(jsonlines, "PIECE", random_.choice((50, 300)))
    names = "abcd"[: random_.randrange(1, 5)]
    kinds = {name: random_.choice(VALUES) for name in names}
    events = [
        {name: None if random_.random() < 0.2 else kinds[name](random_) for name in names if random_.random() < 0.9}
        for _ in range(random_.randrange(1, 40))
    ]
    text = "\n".join(map(json.dumps, events))
    path = tmp_path / "t.jsonl"
    path.write_text(text, encoding="utf-8")
    whole = pyarrow.json.read_json(io.BytesIO(text.encode()))
    if not whole.num_columns:
        with pytest.raises(InputError, match="has no events"):
            read(path, typed=False).read_all()
        return
    found = read(path, typed=False).read_all()
    assert found.schema.names == whole.schema.names
    for field in whole.schema:
        texts = pa.types.is_timestamp(field.type) or pa.types.is_string(field.type)
        # Arrow gives the types; not the values, for it reads lists wrong whose numbers are whole in some, NULL in others.
        values = [float(value) if type(value := event.get(field.name)) is int and field.type == pa.float64() else value for event in events]
        expected = (
            with_times(pa.table({"x": pa.array(values, pa.string())}))["x"] if texts else pa.chunked_array([pa.array(values, field.type)])
        )
        assert found[field.name].type == expected.type
        assert found[field.name].to_pylist() == expected.to_pylist()


def test_objects_over_several_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonlines, "PIECE", 200)
    events = [{"ts": number, "v": {"a": [number]}} for number in range(100)]
    (tmp_path / "t.json").write_text("\n".join(json.dumps(event, indent=2) for event in events), encoding="utf-8")
    assert read(tmp_path / "t.json").read_all().to_pylist() == events


def test_types_of_all_files_of_a_stream(tmp_path: Path) -> None:
    for number, text in enumerate(("a,b\n1,2020-01-01 10:00Z\n", "a,b\nx,\n", "b,c\n2020-01-01 10:00:00.5Z,true\n")):
        (tmp_path / f"{number}.csv").write_text(text, encoding="utf-8")
    (stream,) = files.streams([str(tmp_path / "*.csv")])
    assert stream.schema == pa.schema([("a", pa.string()), ("b", pa.timestamp("us", "UTC")), ("c", pa.bool_())])
    assert stream.table()["a"].to_pylist() == ["1", "x", None]


def test_line_ends_between_quotes_where_a_piece_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow's reader loses a line feed that begins a piece."""
    path = tmp_path / "t.csv"
    path.write_bytes(b'type,note\nA,"a\r\nb"\r\nB,"\r\n"\r\nC,"c\r"\r\n')
    for size in range(20, 60):
        monkeypatch.setattr(csvs, "PIECE", size)
        assert files.streams([str(path)])[0].table()["note"].to_pylist() == ["a\r\nb", "\r\n", "c\r"], size


@pytest.mark.parametrize("seed", range(40))
def test_quotes_wherever_a_piece_ends(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quotes around fields, doubled, and in the middle of a field, where they are characters: as Arrow reads the file at once."""
    random_ = random.Random(seed)
    path = tmp_path / "t.csv"
    for _ in range(20):
        fields = [random_.choice(FIELDS) for _ in range(2 * random_.randrange(1, 12))]
        end = random_.choice(("\n", "\r\n", "\r"))
        text = "a,b" + "".join(f"{end}{first},{second}" for first, second in zip(fields[::2], fields[1::2], strict=True)) + end
        path.write_text(text, encoding="utf-8", newline="")
        monkeypatch.setattr(csvs, "PIECE", random_.randrange(1, 40))
        assert files.streams([str(path)])[0].table().to_pydict() == arrow_csv_of(text, dict.fromkeys("ab", pa.string())).to_pydict(), text


FIELDS = (
    "",
    "x",
    'x"',
    'x"y"',
    "'",
    ' "x"',
    '""',
    '"x"',
    '"x,\ny"',
    '"\r\nx"',
    '"x\r"',
    '"say ""so"""',
    '"x"y',
    '"x"y"',
    '"x"y" z',
    '"""\n"',
)
"""Texts, as CSV has them: all are read as texts."""


def test_numbers_beyond_all_doubles_stay_texts(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c,d\n1e400,1e-400,1e300,0e999\n1e500,0,1e-300,0\n", encoding="utf-8")
    table = files.streams([str(tmp_path / "t.csv")])[0].table()
    assert table.schema.types == [pa.string(), pa.string(), pa.float64(), pa.float64()]


@pytest.mark.parametrize("text", ['a,b\nx,"y', 'a,b\nx","y\n', 'a,b\n"x","y""\n', 'a,"b\n1,2\n'])
def test_a_quote_that_is_never_closed(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="is opened and never closed"):
        files.streams([str(tmp_path / "t.csv")])


@pytest.mark.parametrize(
    ("content", "rows"),
    [(b'a,b,c\n1,"x",', [(1, "x", None)]), (b"a,b,c", []), (b"a,b,c\r\n1,2,3", [(1, 2, 3)]), (b"a,b,c\n1,2,3\n", [(1, 2, 3)])],
)
def test_no_line_end_at_the_end(content: bytes, rows: list[tuple[object, ...]], tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    assert [tuple(row.values()) for row in files.streams([str(path)])[0].table().to_pylist()] == rows
