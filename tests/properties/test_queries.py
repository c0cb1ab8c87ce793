"""Several queries at once: each has the matches of its own run, in the same order, however the events come.

Random queries, each with copies of other constants, which are a family; and pairs of queries that have nothing in common.
"""

from __future__ import annotations

import pytest
from enough import Enough
from several import FRAGMENTS, several_queries

import cepheid
from cepheid.engine.plan import family
from cepheid.engine.run import batches, member, members
from cepheid.testing.differential import pieces, rows_of


def of_types(warnings: tuple[str, ...]) -> tuple[str, ...]:
    """Without that about equal times, which only a query that runs alone over a table gives."""
    return tuple(warning for warning in warnings if "the same time" not in warning)


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_each_query_has_its_own_matches(fragment: str, cases: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "PIECE", 5)
    drawn = Enough(cases // 4, several_queries(fragment, seed), matched=5, together=2 * (fragment != "absence"))
    for number, (named, events, rng) in enumerate(drawn):
        monkeypatch.setattr(members, "PAIRS_AT_ONCE", 3 if number % 2 else 1 << 20)
        monkeypatch.setattr(member, "IDLE_CHECK", rng.choice([1, 64]))
        several = cepheid.queries(named)
        alone = {name: query.run(events) for name, query in named.items()}
        whole = several.run(events)
        text = f"CEPHEID_SEED={seed} {number}\n" + "\n".join(query.text for query in named.values()) + f"\n{events.to_pylist()}"
        pushed: dict[str, list[object]] = {name: [] for name in named}
        recognizer = several.recognizer(events.schema)
        for piece in pieces(rng, events):
            for name, matches in recognizer.push(piece).items():
                pushed[name] += rows_of(matches)
            if rng.random() < 0.3:
                recognizer.restore(recognizer.snapshot())
        for name, matches in recognizer.advance((recognizer.latest or 0) + 1).items():
            pushed[name] += rows_of(matches)
        for name, own in alone.items():
            assert rows_of(whole[name]) == rows_of(own), f"{name}\n{text}"
            assert rows_of(whole[name].undecided) == rows_of(own.undecided), f"{name}\n{text}"
            assert (whole[name].null_keys, whole[name].warnings) == (own.null_keys, of_types(own.warnings)), f"{name}\n{text}"
            assert pushed[name] == rows_of(own), f"{name}\n{text}"
            for shown in (False, True):
                ours, theirs = (str(each.to_arrow(events=shown).to_pylist()) for each in (whole[name], own))  # NaN differs from itself
                assert ours == theirs, f"{name}\n{text}"
            drawn.seen["matched"] += bool(own)
        assert recognizer.null_keys == {name: own.null_keys for name, own in alone.items()}, text
        joined, _ = family.families(recognizer.compiled)
        drawn.seen["together"] += sum(len(each.names) > 1 for each in joined)
