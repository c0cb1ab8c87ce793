"""Values that guards read come to the evaluation on every embedded path, and stay in its state: a probe compares each event with the last."""

from __future__ import annotations

import itertools
import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from probe import probing

import cepheid
from cepheid.automata import alphabet as alphabets
from cepheid.engine.letters import encoded
from cepheid.engine.memory import container
from cepheid.engine.run import batch
from cepheid.errors import SnapshotError
from cepheid.logical.plan import Apply, Expression, Field, Index, Literal, Time
from cepheid.testing.differential import Case, Row, pieces, rows_of, ways_of

EXACT = pa.decimal128(30, 2)
SCHEMA = pa.schema(
    [("type", pa.string()), ("ts", pa.int64()), ("k", pa.int64()), ("v", pa.int64()), ("d", pa.float64()), ("e", EXACT), ("t", pa.string())]
)


def field(name: str) -> Field:
    kind = SCHEMA.field(name).type
    return Field("", (name,), kind, kind)


V, D, E, T = map(field, "vdet")
COMPARED: dict[str, tuple[tuple[str, Expression], ...]] = {
    "int64": (("<", V),),
    "double": (("<", D),),
    "decimal": (("<", E),),
    "equal texts": (("=", T),),
    "ascending texts": (("<", T),),
    "computed": (("<", Apply("*", (V, Literal(-1, pa.int64())), pa.int64())), ("=", Apply("upper", (T,), pa.string()))),
    "time": (("=", Time("", pa.int64())),),
    "positions": (("=", Apply("%", (Index(""), Literal(3, pa.int64())), pa.int64())),),
    "all": (("=", V), ("<", E), ("=", T), ("=", D), ("=", Time("", pa.int64()))),
}

PLAIN = "SELECT * WHERE A AS x"
QUERIES = {
    "plain": PLAIN,
    "keys": f"{PLAIN} PARTITION BY k",
    "absence": f"{PLAIN} NOT FOLLOWED BY C FOR 2",
    "absence with keys": f"{PLAIN} NOT FOLLOWED BY C FOR 2 PARTITION BY k",
    "window": f"{PLAIN} PARTITION BY k WITHIN 3 EVENTS",
}


def events(rng: random.Random, most: int = 25) -> pa.Table:
    count = rng.randint(0, most)
    rows, time = [], 0
    for _ in range(count):
        time += rng.choice((0, 0, 1, 1, 2))
        rows.append(
            {
                "type": rng.choice("AAAABC"),
                "ts": time,
                "k": rng.choice((1, 1, 2, 3, None)),
                "v": rng.choice((None, rng.randint(-3, 3))),
                "d": rng.choice((None, 0.0, -0.0, 1.5, -1.5, float("inf"))),
                "e": rng.choice((None, Decimal("-1.50"), Decimal("12345678901234567890.25"), Decimal(0))),
                "t": rng.choice((None, "", "a", "B", "b", "ab", "é")),
            }
        )
    return pa.Table.from_pylist(rows, SCHEMA)


VALUES = {
    V: lambda row, _: row["v"],
    D: lambda row, _: row["d"],
    E: lambda row, _: row["e"],
    T: lambda row, _: None if row["t"] is None else row["t"].encode(),
    COMPARED["computed"][0][1]: lambda row, _: None if row["v"] is None else -row["v"],
    COMPARED["computed"][1][1]: lambda row, _: None if row["t"] is None else row["t"].encode().upper(),
    Time("", pa.int64()): lambda row, _: row["ts"],
    COMPARED["positions"][0][1]: lambda _, position: position % 3,
}


def expected(table: pa.Table, compared: tuple[tuple[str, Expression], ...], query: str) -> list[Row]:
    """What the probe gives by its definition."""
    rows, last, seen, found = table.to_pylist(), {}, {}, []
    for place, row in enumerate(rows):
        key = (row["k"],) if "PARTITION" in query else ()
        if None in key:
            continue
        position = seen.get(key, 0)
        seen[key] = position + 1
        if row["type"] != "A":
            continue
        now = [VALUES[value](row, position) for _, value in compared]
        pairs = zip(compared, last.get(key, [None] * len(now)), now, strict=True)
        held = any(None not in (a, b) and (a < b if operator == "<" else a == b) for (operator, _), a, b in pairs)
        later = [other for other in rows[place + 1 :] if other["ts"] <= row["ts"] + 2 and (not key or other["k"] == row["k"])]
        undecided = row["ts"] + 2 > rows[-1]["ts"]
        if held and not ("NOT FOLLOWED" in query and (undecided or any(other["type"] == "C" for other in later))):
            found.append(Row(key, position, position, (("x", (position,)),)))
        last[key] = now
    return found


@pytest.mark.parametrize("words", [False, True], ids=["", "spelled"])
@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("kind", COMPARED)
def test_values_come_on_every_way(kind: str, name: str, words: bool, cases: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if words:
        monkeypatch.setattr(alphabets, "SPELLED_BITS", 0)
        monkeypatch.setattr(alphabets, "WORD_BITS", 1)
    monkeypatch.setattr(encoded, "COLLECT_FROM", 2)
    monkeypatch.setattr(batch, "STEP", 4)
    rng, given = random.Random(f"{seed} {kind} {name}"), 0
    with probing(*COMPARED[kind]):
        query = cepheid.query(QUERIES[name])
        for number in itertools.count():
            if number >= max(cases // 50, 2) and given:
                break
            table = events(rng)
            wanted = expected(table, COMPARED[kind], QUERIES[name])
            given += len(wanted)
            case = Case(seed, number, query, table, {})
            for way, of in ways_of(case, most=3).items():
                assert of(case, None) == wanted, (way, case)


CONSTANTS = [f"{PLAIN} FILTER x.v > {number}" for number in (-2, 0, 1)]
SEVERAL = {
    **dict(zip("pqr", CONSTANTS, strict=True)),
    **{f"{name} by key": f"{text} PARTITION BY k" for name, text in zip("pqr", CONSTANTS, strict=True)},
    "own": f"{PLAIN} FILTER x.v < 3",
    **{name: QUERIES[name] for name in ("absence", "absence with keys", "window")},
}
"""Two families, a query that is alone for its constants, and some that read every event."""


@pytest.mark.parametrize("kind", COMPARED)
def test_values_come_to_several_queries(kind: str, cases: int, seed: int) -> None:
    rng = random.Random(f"{seed} {kind} several")
    with probing(*COMPARED[kind]):
        several = cepheid.queries(SEVERAL)
        for number in range(max(cases // 50, 3)):
            table = events(rng, most=40)
            found: dict[str, list[Row]] = {name: [] for name in SEVERAL}
            recognizer = several.recognizer(SCHEMA)
            for piece in [*pieces(rng, table), None]:
                if rng.random() < 0.3:
                    recognizer.restore(recognizer.snapshot())
                if piece is None and recognizer.latest is None:
                    continue
                matches = recognizer.push(piece) if piece is not None else recognizer.advance(recognizer.latest + 1)
                for name, own in matches.found.items():
                    found[name] += rows_of(own)
            for name, text in SEVERAL.items():
                alone = rows_of(cepheid.query(text).run(table))
                assert found[name] == alone, (name, Case(seed, number, cepheid.query(text), table, {}))


# ----------------------------------------------------------------------------------------------------------------------- the texts


def texts_of(numbers: range) -> pa.Table:
    rows = [{"type": "A", "ts": number, "k": number % 3, "t": f"text {number}"} for number in numbers]
    return pa.Table.from_pylist(rows, SCHEMA)


@pytest.mark.parametrize("name", ["plain", "keys", "absence with keys"])
def test_a_stream_of_ever_different_texts_keeps_those_of_its_state(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded, "COLLECT_FROM", 4)
    with probing(("<", T)):
        recognizer = cepheid.query(QUERIES[name]).recognizer(SCHEMA)
        given, most = 0, 0
        for start in range(0, 400, 2):
            given += len(recognizer.push(texts_of(range(start, start + 2))))
            most = max(most, len(recognizer._member.state.texts))
            if start % 50 == 0:
                recognizer.undecided()
        ascending = sum(f"text {number}" < f"text {number + (1 if name == 'plain' else 3)}" for number in range(390))
        assert given >= ascending
        assert most < 40
        assert len(recognizer.snapshot()) < 20_000


def test_what_is_undecided_does_not_change_the_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded, "COLLECT_FROM", 0)
    with probing(("<", T)):
        recognizer = cepheid.query(QUERIES["absence"]).recognizer(SCHEMA)
        found = []
        for start in range(0, 40, 2):
            found += rows_of(recognizer.push(texts_of(range(start, start + 2))))
            recognizer.undecided()
        found += rows_of(recognizer.advance(100))
        assert found == rows_of(cepheid.query(QUERIES["absence"]).run(texts_of(range(40)), until="end"))


@pytest.mark.parametrize("name", ["plain", "absence"])
def test_a_snapshot_without_the_texts_of_its_state_is_refused(name: str) -> None:
    with probing(("=", T)):
        recognizer = cepheid.query(QUERIES[name]).recognizer(SCHEMA)
        recognizer.push(texts_of(range(3)))
        data, fingerprint = recognizer.snapshot(), recognizer._fingerprint()
        sections = container.unpack(data, fingerprint=fingerprint)
        for forged in ({"text_numbers": b"", "texts": b""}, {"text_numbers": np.array([[0, 0], [1, 1]], "<i8").tobytes(), "texts": b"ab"}):
            with pytest.raises(SnapshotError):
                recognizer.restore(container.pack({**sections, **forged}, fingerprint=fingerprint))
        without = {section: content for section, content in sections.items() if section != "texts"}
        with pytest.raises(SnapshotError):
            recognizer.restore(container.pack(without, fingerprint=fingerprint))
        assert len(recognizer.restore(data).push(texts_of(range(3, 5)))) == 0


def test_waiting_events_with_values_that_cannot_be_are_refused() -> None:
    with probing(("=", V)):
        recognizer = cepheid.query(QUERIES["absence"]).recognizer(SCHEMA)
        recognizer.push(texts_of(range(3)))
        data, fingerprint = recognizer.snapshot(), recognizer._fingerprint()
        sections = container.unpack(data, fingerprint=fingerprint)
        held = np.frombuffer(sections["held"], "<i8").reshape(6, -1)
        assert held.shape[1], "letter, value, NULL bits; time, slot, whether it is shown"
        for row in (1, 2):  # a value under NULL, and NULL bits of other values
            wrong = held.copy()
            wrong[row] = 7
            with pytest.raises(SnapshotError):
                recognizer.restore(container.pack({**sections, "held": wrong.tobytes()}, fingerprint=fingerprint))


def test_without_guards_nothing_of_it_is_stored() -> None:
    recognizer = cepheid.query(QUERIES["absence"]).recognizer(SCHEMA)
    recognizer.push(texts_of(range(3)))
    assert "texts" not in container.unpack(recognizer.snapshot(), fingerprint=recognizer._fingerprint())
    assert not len(recognizer._member.state.texts)
