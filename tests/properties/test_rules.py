"""Rules as data: each version has the matches that the text says, however the rows and the events come.

Random queries with copies of other constants, as rows with random times. What each row comes to is worked out here, event by event, from what
`cepheid.rules` says; its matches are those of `Query.run` over a part of the events.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from enough import Enough
from several import FRAGMENTS, several_queries

import cepheid
from cepheid.engine.run import batches, member, members
from cepheid.testing.differential import pieces

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from cepheid.engine.output.matches import Matches


FREE = re.compile(r"LIMIT|RESTRICTED|\bANY \*|SELECT ANY")


def rows_with_times(rng: random.Random, named: Mapping[str, cepheid.Query], times: list[Any]) -> list[dict[str, Any]]:
    """The queries as rows of a few rules, which begin, end and are deleted at some of these times."""
    rows: dict[tuple[str, Any, bool], dict[str, Any]] = {}
    for query in named.values():
        for _ in range(rng.randint(1, 2)):
            row: dict[str, Any] = {"name": rng.choice("rst"), "query": query.text, "from": rng.choice([None, *times])}
            ending = [None, None, *(time for time in times if row["from"] is None or time > row["from"])]
            row |= {"until": rng.choice(ending), "ends": rng.choice([None, "finish", "stop"])}
            rows[row["name"], row["from"], True] = row
    for name in "rst":
        if rng.random() < 0.4:
            since = rng.choice(times)
            rows[name, since, False] = {"name": name, "from": since, "deleted": True, "ends": rng.choice([None, "finish", "stop"])}
    return rng.sample(list(rows.values()), len(rows))


def spans(rows: list[dict[str, Any]]) -> Iterable[tuple[dict[str, Any], Any, Any]]:
    """Of each row with a query: when the version ends, and before when it reads events; None: never."""
    for row in rows:
        if row.get("deleted"):
            continue
        others = [each for each in rows if each["name"] == row["name"] and each is not row]
        later = [each for each in others if each["from"] is not None and (row["from"] is None or each["from"] > row["from"])]
        ends = [(each["from"], 0 if each.get("deleted") else 1, each) for each in later]
        ends += [] if row["until"] is None else [(row["until"], 2, row)]
        if not ends:
            yield row, None, None
            continue
        until, _, by = min(ends, key=lambda end: end[:2])
        way = row["ends"] if by is row or not by.get("deleted") else by["ends"] or row["ends"]
        stops = [each["from"] for each in later if each.get("deleted") and each["ends"] == "stop" and each["from"] >= until]
        yield row, until, min([*stops, *([until] if way == "stop" else [])], default=None)


def expected(row: dict[str, Any], until: Any, cut: Any, events: pa.Table, last: Any) -> tuple[Counter[str], Counter[str], int]:
    """The matches of a version, those that are undecided, and how many events had no key."""
    query = cepheid.query(row["query"])
    times = events["ts"].to_pylist()
    counts = "COUNT(*)" in row["query"]
    cut = until if counts else cut
    of_it = [row["from"] is None or time >= row["from"] for time in times]
    over = cut is not None and cut <= last
    own = events.filter([mine and (cut is None or time < cut) for mine, time in zip(of_it, times, strict=True)])
    found = query.run(own, until=cut - (1 if isinstance(cut, int) else dt.timedelta(microseconds=1)) if over else last)
    dropped = query.run(
        events.filter([mine and (until is None or time < until) for mine, time in zip(of_it, times, strict=True)])
    ).null_keys

    def begun(matches: Matches) -> Counter[str]:
        kept = [number for number, match in enumerate(matches) if until is None or counts or match.start_time < until]
        return Counter(map(str, matches.take(np.array(kept, np.int64)).to_arrow(events=True).to_pylist()))

    return begun(found), Counter() if over else begun(found.undecided), dropped


def shown(matches: Matches) -> Counter[str]:
    return Counter(map(str, matches.to_arrow(events=True).to_pylist()))


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_each_version_has_the_matches_of_its_time(fragment: str, cases: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "PIECE", 5)
    drawn = Enough(cases // 2, several_queries(fragment, seed), matched=5, finished=2, joined=2 * (fragment != "absence"))
    for number, (named, events, rng) in enumerate(drawn):
        if not events.num_rows:
            continue
        monkeypatch.setattr(members, "PAIRS_AT_ONCE", 3 if number % 2 else 1 << 20)
        monkeypatch.setattr(member, "IDLE_CHECK", rng.choice([1, 64]))
        times = sorted(set(events["ts"].to_pylist()))
        times += [times[0] + (time - times[0]) / 2 if not isinstance(time, int) else time + 1 for time in times]
        rows = rows_with_times(rng, named, times)
        text = f"CEPHEID_SEED={seed} {number}\n" + "\n".join(map(str, rows)) + f"\n{events.to_pylist()}"
        rules = cepheid.rules(rows)
        step = 1 if isinstance(times[0], int) else dt.timedelta(seconds=1)
        last = max(events["ts"].to_pylist()) + rng.choice([0, 0, 1, 3, 7]) * step
        ways = {"whole": rules.run(events, until=last), "by definition": rules.run(events, until=last, engine="reference")}
        pushed, left, nulls, most = pushed_in_pieces(rng, rows, events, last, text)
        assert not any(way.refused for way in ways.values()), text
        for row, until, cut in spans(rows):
            version = cepheid.RuleVersion(row["name"], row["from"])
            found, undecided, dropped = expected(row, until, cut, events, last)
            for name, way in ways.items():
                begun = version in way
                own = shown(way[version]) if begun else Counter()
                if name == "by definition" and FREE.search(row["query"]):
                    continue  # it may choose others of those that are equally good
                assert own == found, f"{name} {version}\n{text}"
                waiting = way.undecided
                assert (shown(waiting[version]) if version in waiting else Counter()) == undecided, f"{name} {version}\n{text}"
                assert not begun or name == "by definition" or way[version].null_keys == dropped, f"{name} {version}\n{text}"
            assert pushed[version] == found, f"pushed {version}\n{text}"
            assert left[version] == undecided, f"undecided {version}\n{text}"
            assert nulls.get(version, 0) == dropped or version not in nulls, f"{version}\n{text}"
            drawn.seen["matched"] += bool(found)
            drawn.seen["finished"] += until is not None and until <= last and bool(found)
        drawn.seen["joined"] += most > 1


def pushed_in_pieces(
    rng: random.Random, rows: list[dict[str, Any]], events: pa.Table, until: Any, text: str
) -> tuple[dict[Any, Counter[str]], dict[Any, Counter[str]], dict[Any, int], int]:
    """The matches as the events and the rows come, those that are left, the events without a key, and how many queries a family had."""
    to_come = list(rows)
    recognizer = cepheid.rules([]).recognizer(events.schema)
    pushed: dict[Any, Counter[str]] = defaultdict(Counter)
    most = 0

    def keep(found: cepheid.RuleMatches) -> None:
        nonlocal most
        for version, matches in found.found.items():
            pushed[version] += shown(matches)
        most = max([most, *(len(family.family.live) for family in recognizer._members.families)])

    for piece in pieces(rng, events):
        last = piece["ts"][-1].as_py() if len(piece) else None
        due = [row for row in to_come if row["from"] is None or (last is not None and row["from"] <= last) or rng.random() < 0.3]
        assert not recognizer.change(due), text
        to_come = [row for row in to_come if row not in due]
        keep(recognizer.push(piece))
        if rng.random() < 0.4:
            recognizer.restore(recognizer.snapshot())
        assert not recognizer.change(rng.sample(due, len(due))), text
    assert not recognizer.change(to_come), text
    keep(recognizer.advance_time(until + (1 if isinstance(until, int) else dt.timedelta(microseconds=1))))
    left: dict[Any, Counter[str]] = defaultdict(Counter)
    left |= {version: shown(matches) for version, matches in recognizer.undecided().found.items()}
    return pushed, left, recognizer.null_keys, most
