"""Conditions over several events that have no steps: the kernel of guards asks them, and whatever it has forgotten again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from enough import Enough, share

import cepheid
from cepheid.engine.evaluations.guards import guarded_memo
from cepheid.engine.evaluations.guards.guarded_memo import Memo
from cepheid.errors import LimitError
from cepheid.kernel import available
from cepheid.testing.differential import WAYS, check, draws, ways_of
from cepheid.testing.generators import ASKING

if TYPE_CHECKING:
    from typing import Any

    from cepheid.engine.evaluations.guards.guarded_sets import Sets


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A memo that forgets all the time; for each exit whether the same event had asked before."""
    monkeypatch.setattr(guarded_memo, "FIRST_ROWS", 1)
    monkeypatch.setattr(guarded_memo, "MOST_ROWS", 1)
    exits: list[bool] = []
    answer = Memo.answer

    def counted(self: Memo, *arguments: Any, again: bool) -> None:
        exits.append(again)
        answer(self, *arguments, again=again)

    monkeypatch.setattr(Memo, "answer", counted)
    return exits


@pytest.mark.parametrize("variant", available())
def test_they_have_the_matches_of_the_definition(variant: str, asked: list[bool], cases: int, seed: int) -> None:
    drawn = Enough(share(cases, variant), draws(ASKING, seed=seed), asked=10, again=3)
    for case in drawn:
        asked.clear()
        for come in (WAYS if case.number % 5 == 0 else ways_of(case)).values():
            check(case, come(case, variant))
        drawn.seen["asked"] += bool(asked)
        drawn.seen["again"] += any(asked)


def test_each_question_is_asked_once_for_the_same_values(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 0
    answer = Memo.answer

    def counted(self: Memo, sets: Sets, *arguments: Any, again: bool) -> None:
        nonlocal rows
        before = sets.behind[guarded_memo.FRESH] - self._answered
        rows += int(before) // self._width
        answer(self, sets, *arguments, again=again)

    monkeypatch.setattr(Memo, "answer", counted)
    count = 1_000
    events = pa.table({"type": ["A", "B"] * count, "s": [f"{number % 7}" for number in range(2 * count)]})
    query = cepheid.query("SELECT * WHERE A AS a ; B AS b FILTER concat(a.s, b.s) LIKE '1%' WITHIN 20 EVENTS")
    assert len(query.run(events)) > count
    assert rows == 7 * 7
    assert "is asked for each event alive that could be compared" in str(query.explain(schema=events.schema))


def test_what_is_too_much_is_an_error_that_says_so() -> None:
    columns = [f"s{number}" for number in range(40)]
    events = pa.table({"type": ["A", "B"], **{column: ["x", "y"] for column in columns}})
    joined = ", ".join(f"{variable}.{column}" for variable in "ab" for column in columns)
    with pytest.raises(LimitError, match=r"80 of their values at once, and the limit is 62 \(MOST_ASKED\)"):
        cepheid.query(f"SELECT * WHERE A AS a ; B AS b FILTER concat({joined}) LIKE 'x%'").run(events)
    names = [f"x{number}" for number in range(10)]
    pattern = " ; ".join(f"A+ AS {name}" for name in names)
    summed = " + ".join(f"{name}.v" for name in names)
    with pytest.raises(LimitError, match=r"9 variables that have several events each, and the limit is 8 \(MOST_SETS\)"):
        cepheid.query(f"SELECT * WHERE ({pattern}) FILTER {summed} > 3").run(pa.table({"type": ["A", "B"], "v": [1, 2]}))


@pytest.mark.parametrize("count", [1, 2, 9])
def test_rows_stay_as_they_are_where_texts_come_by_their_order(count: int) -> None:
    """The words of one row alone were written over, and it was asked again for ever."""
    events = pa.table({"type": ["A"] * count + ["B"], "s": [f"{number}" for number in range(count)] + ["x"]})
    query = cepheid.query("SELECT * WHERE A AS a ; B AS b FILTER concat(a.s, b.s) LIKE '%x' AND a.s < b.s")
    assert len(query.run(events)) == count
