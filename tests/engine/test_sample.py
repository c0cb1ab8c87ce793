"""`sample=`: some matches of each trigger, spread evenly over all of them."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
from enough import Enough

import cepheid
from cepheid.errors import InputError, NotSupportedError
from cepheid.testing import events
from cepheid.testing.differential import Answer, check, draws, rows_of
from cepheid.testing.generators import COMPARING, GUARDED

STREAM = " ".join(f"{'AB'[i % 2]}{i}" for i in range(60)) + " C60 A61 C62"


def ends(matches):
    return Counter(match.end for match in matches)


def positions(matches):
    return [(match.start, match.variables["B"][0], match.end) for match in matches]


@pytest.mark.parametrize("engine", ["compiled", "python", "checked"])
def test_a_sample_is_spread_over_the_matches_of_its_trigger(engine):
    query = cepheid.query("SELECT * WHERE A ; B ; C")
    table = events(STREAM)
    everything = positions(query.run(table, engine=engine))
    found = query.run(table, engine=engine, sample=20)
    assert ends(found) == {60: 20, 62: 20}
    chosen = positions(found)
    assert len(set(chosen)) == 40
    assert set(chosen) <= set(everything)
    # All matches of a trigger in their order, cut into 20 parts of equal size: one of each.
    per_trigger = len(everything) // 2
    assert [everything.index(match) for match in chosen[:20]] == [k * per_trigger // 20 for k in range(20)]
    middles, limited = {match[1] for match in chosen}, {match[1] for match in everything[:20]}
    assert len(middles) > 8
    assert len(limited) == 1


def test_what_has_fewer_matches_is_given_whole():
    query = cepheid.query("SELECT * WHERE A ; B WITHIN 4 EVENTS")
    table = events("A1 A2 B3 C4 A5 B6 A7 A8 A9 B10")
    assert query.run(table, sample=3) == query.run(table)
    assert len(query.run(table, sample=2)) == 2 + 1 + 2
    assert len(cepheid.query("SELECT * WHERE A ; B LIMIT 1").run(table, sample=2)) == 3


def test_a_sample_of_the_whole_space_of_an_iteration():
    query = cepheid.query("SELECT * WHERE A+ ; B")
    table = events(" ".join(f"A{i}" for i in range(200)) + " B200")
    found = query.run(table, sample=64)
    assert len(found) == 64
    assert len({match.variables["A"] for match in found}) == 64
    lengths = [len(match.variables["A"]) for match in found]
    assert 60 < sum(lengths) / len(lengths) < 140, "of 2^200 - 1 sets most have about a hundred events"


def test_a_sample_of_the_whole_space_of_a_rising_iteration():
    query = cepheid.query("SELECT * WHERE (A AS a FILTER a.v > prev(a).v)+ ; B")
    table = events(" ".join(f"A{i}(v={i})" for i in range(200)) + " B200(v=0)")
    found = query.run(table, sample=64)
    assert len({match.variables["a"] for match in found}) == 64
    lengths = [len(match.variables["a"]) for match in found]
    assert 60 < sum(lengths) / len(lengths) < 140


def as_values(matches):
    return [(match.start, match.end, tuple(match.keys.items()), tuple(match.variables.items())) for match in matches]


def test_a_sample_of_patterns_that_compare_events_is_part_of_their_matches(seed, cases):
    fragment = dataclasses.replace(GUARDED, absence=COMPARING.absence, partition=0.3, windows=COMPARING.windows)
    drawn = Enough(cases, draws(fragment, seed=seed, longest=18), chosen=5)
    for case in drawn:
        compiled = case.query.compiled(case.query.schema(case.events.schema))
        if compiled.method.name != "guarded":
            continue
        rng = case.random("sample")
        sample = rng.choice((1, 1, 2, 3))
        found = case.query.run(case.events, sample=sample)
        answers = {trigger: Answer(candidates, min(choose, sample)) for trigger, (candidates, choose) in case.expected.items()}
        check(case, rows_of(found), answers)
        drawn.seen["chosen"] += sum(choose > sample for _, choose in case.expected.values())
        reader = case.events.to_reader(max_chunksize=rng.randint(1, 4))
        batched = [row for matches in case.query.batches(case.events, sample=sample) for row in as_values(matches)]
        cut = [row for matches in case.query.batches(reader, sample=sample) for row in as_values(matches)]
        assert as_values(found) == batched == cut


def test_bad_samples():
    query = cepheid.query("SELECT * WHERE A ; B")
    with pytest.raises(InputError, match="sample=0 is not a number of matches"):
        query.run(events("A1 B2"), sample=0)
    for wrong in (2.5, "3"):
        with pytest.raises(InputError, match="is not a number of matches"):
            query.run(events("A1 B2"), sample=wrong)
    with pytest.raises(NotSupportedError, match="the reference gives all matches"):
        query.run(events("A1 B2"), sample=2, engine="reference")
