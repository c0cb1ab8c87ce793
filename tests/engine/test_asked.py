"""Conditions over several events that have no steps: the kernel of guards asks them, and whatever it has forgotten again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from enough import Enough, share

from cepheid.engine.evaluations.guards import guarded_memo
from cepheid.engine.evaluations.guards.guarded_memo import Memo
from cepheid.kernel import available
from cepheid.testing.differential import WAYS, check, draws, ways_of
from cepheid.testing.generators import ASKING

if TYPE_CHECKING:
    from typing import Any


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
