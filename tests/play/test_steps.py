"""The live states, exactly: against the matches of the engine, against runs by letters alone, and where a limit ends the comparisons."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from enough import Enough

import cepheid
from cepheid.engine.input.lags import lagged_table
from cepheid.engine.letters.words import predicates_of
from cepheid.engine.output.origins import NOWHERE
from cepheid.language import syntax
from cepheid.language.syntax import Consumption, Strategy
from cepheid.logical.plan import lags_in
from cepheid.notebook.exploring import held_of
from cepheid.play import machine, steps
from cepheid.play.inputs import ShownEvents
from cepheid.play.steps import steps_of
from cepheid.testing import events
from cepheid.testing.differential import draws, matches_up_to
from cepheid.testing.fragments import fragments
from cepheid.testing.generators import CORRELATED, GUARDED, LAYERED, TIMED

if TYPE_CHECKING:
    from cepheid.engine.plan.compiled import Compiled

FRAGMENTS = fragments("definitions") | {"gaps and windows": TIMED, "conditions between events": CORRELATED, "both": GUARDED}

COULD = "a state is live if events could lead to it"
"""What the note says where live states are not exact."""

MOST = 20_000
"""Matches that a case may have; one with more is passed over."""


def all_matches(query: cepheid.Query) -> cepheid.Query:
    """The query whose matches end where a step says that one does: without what the automaton has not."""
    tree, pattern = query.tree, without_absences(query.tree.pattern)
    return cepheid.query(
        dataclasses.replace(
            tree,
            pattern=pattern,
            model=tree.model if has_then(pattern) else None,
            strategy=tree.strategy if tree.strategy is Strategy.STRICT else Strategy.ALL,
            targets=None,
            having=None,
            consume=Consumption.NONE,
            limit=None,
        )
    )


def without_absences(pattern: syntax.Pattern) -> syntax.Pattern:
    """NOT FOLLOWED BY stands around the whole pattern, among filters and windows."""
    if isinstance(pattern, syntax.Absence):
        return without_absences(pattern.pattern)
    if isinstance(pattern, syntax.Filter | syntax.Within):
        return dataclasses.replace(pattern, pattern=without_absences(pattern.pattern))
    return pattern


def has_then(node: syntax.Node) -> bool:
    return (isinstance(node, syntax.Link) and node.operator == "THEN") or any(map(has_then, node.children()))


def states_by_letters(compiled: Compiled, table: pa.Table) -> dict[int, set[int]]:
    """For each row the states that would be live, if nothing were compared: sets of states, and with each the latest event that begins a match."""
    automaton, alphabet = compiled.drawn, compiled.drawn.alphabet
    guards = sum(guard.mask for guard in alphabet.guards)
    reader, keys = predicates_of(alphabet, compiled.schema), table.select(list(compiled.keys)).to_pylist()
    partitions: dict[object, list[int]] = {}
    for row, key in enumerate(keys or [{}] * len(table)):
        # Under an equality a NaN is equal to nothing, as NULL.
        if None not in key.values() and all(key[name] == key[name] for name in compiled.derived):
            partitions.setdefault(tuple(key.values()), []).append(row)
    rows = [row for own in partitions.values() for row in own]
    cuts = np.cumsum([0, *map(len, partitions.values())])[:-1]
    lags = lags_in([predicate.condition for predicate in automaton.predicates])
    letters = reader.letters(lagged_table(table, lags, np.array(rows, np.int64), cuts) if lags else table)
    times = table["ts"].cast(pa.int64()).to_pylist()
    found: dict[int, set[int]] = {row: set() for row in range(len(table))}
    for own in partitions.values():
        begun: dict[int, tuple[int, int]] = {}
        tracked = [0] * len(automaton.trackers)
        for position, row in enumerate(own):
            mask = alphabet.mask_of(int(letters[row]))
            mask |= sum(state << tracker.bit for tracker, state in zip(automaton.trackers, tracked, strict=True))
            after: dict[int, tuple[int, int]] = {}
            for state, start in [*begun.items(), (automaton.initial, (times[row], position))]:
                late = compiled.window is not None and times[row] - start[0] > compiled.window
                if late or (compiled.count_window is not None and position - start[1] >= compiled.count_window):
                    continue
                for move in automaton.outgoing[state]:
                    if not (move.requires & ~guards & ~mask or move.forbids & ~guards & mask):
                        after[move.target] = max(after.get(move.target, start), start)
            tracked = [tracker.successor(state, mask) for tracker, state in zip(automaton.trackers, tracked, strict=True)]
            found[row], begun = set(after), {state: start for state, start in after.items() if state not in automaton.finals}
    return found


def of(text: str, line: str, **how: object) -> steps.Steps:
    """The steps of a query over events that are written as a line."""
    query, table = cepheid.query(text), pa.Table.from_pylist(events(line))
    return steps_of(query.compiled(query.schema(table.schema)), table, **how)


def live(text: str, line: str) -> list[tuple[int, ...]]:
    """The states after each event, of steps that are exact."""
    found = of(text, line)
    assert COULD not in found.note
    return [step.states for step in found.steps]


def ends(text: str, line: str) -> list[int]:
    """The rows with which a match ends, of steps that are exact."""
    found = of(text, line)
    assert COULD not in found.note
    return [step.row for step in found.steps if step.ends]


# --------------------------------------------------------------------------------------------------------------- random queries


@pytest.mark.parametrize("name", FRAGMENTS)
def test_a_match_ends_with_an_event_exactly_where_a_step_says_so(name: str, seed: int, cases: int) -> None:
    """And what is live is among what would be, if nothing were compared."""
    drawn = Enough(cases // 20, draws(FRAGMENTS[name], seed=seed), exact=3, ended=1)
    for case in drawn:
        query = case.query
        compiled = query.compiled(query.schema(case.events.schema))
        found = steps_of(compiled, case.events)
        assert [step.row for step in found.steps] == list(range(case.events.num_rows)), case
        matches = matches_up_to(MOST, all_matches(query), case.events, until="end")
        said = {step.row for step in found.steps if step.ends}
        if matches is not None:
            wanted = set(matches.end_rows.tolist())
            assert said >= wanted, case
            if COULD not in found.note:
                assert said == wanted, case
                drawn.seen["exact"] += 1
                drawn.seen["ended"] += bool(wanted)
        given = matches_up_to(MOST, query, case.events, until="end")
        if given is not None:
            assert {step.row for step in found.steps if step.sure} <= set(given.end_rows.tolist()), case
        assert all(step.ends == (not compiled.drawn.finals.isdisjoint(step.states)) for step in found.steps), case
        if not (compiled.drawn.alphabet.is_long or compiled.drawn.alphabet.number_bits):
            for row, free in states_by_letters(compiled, case.events).items():
                states = found.steps[row].states
                assert set(states) <= free, case
                assert compiled.drawn.compares or set(states) == free, case


def test_the_same_where_matches_are_events(seed: int, cases: int) -> None:
    drawn = Enough(cases // 10, draws(LAYERED, seed=seed), exact=5, ended=1, guarded=1)
    for case in drawn:
        given = ShownEvents(case.events, None, None)
        compiled = case.query.compiled(given.schema(case.query))
        if not compiled.layers:
            continue
        matches = matches_up_to(MOST, all_matches(case.query), case.events, until="end")
        if matches is None:
            continue
        read, _, begins = machine._with_made(case.query, given)
        found = steps_of(compiled, read, begins=begins)
        said, wanted = {step.row for step in found.steps if step.ends}, set(matches.end_rows.tolist())
        assert said >= wanted, case
        if COULD not in found.note:
            assert said == wanted, case
            drawn.seen["exact"] += 1
            drawn.seen["ended"] += bool(wanted)
            drawn.seen["guarded"] += bool(compiled.drawn.alphabet.guards)


def test_what_is_made_at_the_end_begins_where_its_match_does() -> None:
    """Also where the definition waits for what must not follow."""
    query = cepheid.query("EVENT Q(n) AS (SELECT count(a) AS n WHERE A AS a ; B NOT FOLLOWED BY C FOR 5) SELECT * WHERE Q")
    _, _, begins = machine._with_made(query, ShownEvents(events("A1 C2 C3 C4 C9 C10 C11 B12 B13"), None, None))
    assert begins.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 0, 9, 0]


def test_what_is_made_begins_where_its_match_does_up_to_any_time(seed: int, cases: int) -> None:
    """Also where it is undecided by then: as if all that has come were all that comes."""
    how = {"type": None, "time": None, "sort": False, "null_keys": "drop", "order": ()}
    fragment = dataclasses.replace(LAYERED, absence=0.6, from_start=0.3)
    drawn = Enough(cases // 10, draws(fragment, seed=seed), undecided=3)
    for case in drawn:
        if not (case.query.tree.definitions and len(case.events)):
            continue
        until = case.random("until").choice(case.events["ts"].to_pylist())
        cut = case.events.filter(pc.less_equal(case.events["ts"], until))
        if matches_up_to(MOST, case.query, case.events, until=until) is None:
            continue
        given = held_of(case.query, case.events, how | {"until": until})
        read, rows, begins = machine._with_made(case.query, given)
        ended, _, wanted = machine._with_made(case.query, held_of(case.query, cut, how | {"until": "end"}))
        assert (read["type"].to_pylist(), begins.tolist()) == (ended["type"].to_pylist(), wanted.tolist()), f"until={until}\n{case}"
        made = [place for place, row in enumerate(rows) if row == NOWHERE]
        found = case.query.run(case.events, until=until).undecided
        drawn.seen["undecided"] += bool(len(found)) and any(begins[place] != place for place in made)


# --------------------------------------------------------------------------------------------------------- what decides what is live


def test_a_comparison_decides_which_partial_match_goes_on() -> None:
    assert live("SELECT * WHERE A AS a ; B AS b FILTER a.v < b.v", "A1(v=5) B2(v=5) B3(v=6) A4(v=1) B5(v=2)") == [
        (1,),
        (1,),
        (1, 2),
        (1,),
        (1, 2),
    ]
    chain = "SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a.v < b.v AND b.v < c.v"
    assert live(chain, "A1(v=2) B2(v=1) B3(v=3) C4(v=3) C5(v=4)") == [(1,), (1,), (1, 2), (1, 2), (1, 2, 3)]


def test_nothing_waits_where_a_gap_has_passed() -> None:
    assert live("SELECT * WHERE A ;[<= 3] B", "A1 C4 C5 B6") == [(1,), (1,), (), ()]
    assert live("SELECT * WHERE A ;[>= 3] B", "A1 B2 C9 B9") == [(1,), (1,), (1,), (1, 2)]
    assert live("SELECT * WHERE ((A ; B) WITHIN 2) ; C", "A1 C4 B5 A6 B8 C9") == [(1,), (), (), (1,), (1, 2), (2, 3)]


def test_nothing_equals_null_and_equal_times_are_no_gap() -> None:
    assert ends("SELECT * WHERE A AS a ; B AS b FILTER a.v = b.v", "A1(v=null) B2(v=null) A3(v=1) B4(v=null) B5(v=1)") == [4]
    assert ends("SELECT * WHERE A AS a ; B AS b FILTER NOT a.v = b.v", "A1(v=null) B2(v=null) A3(v=1) B4(v=1)") == [1, 3]
    assert ends("SELECT * WHERE A ;[> 0] B", "A1 B1 B2") == [2]
    assert ends("SELECT * WHERE A ; B", "A1 B1") == [1]


def test_all_conditions_between_events_are_read() -> None:
    """One value, a set of values, the event before, and conditions that no value sums up."""
    assert ends("SELECT * WHERE A+ AS a : B AS b FILTER a.v != b.v", "A1(v=1) A2(v=2) B3(v=2) A4(v=2) B5(v=1) A6(v=1) B7(v=1)") == [4]
    assert ends("SELECT * WHERE (A AS a FILTER a.v > prev(a).v) :+ : B", "A1(v=1) A2(v=2) B3 A4(v=2) A5(v=1) B6") == [2, 5]
    three = "SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a.v + b.v = c.v"
    assert ends(three, "A1(v=1) B2(v=2) C3(v=4) C4(v=3) A5(v=0) B6(v=4) C7(v=4)") == [3, 6]
    assert ends("SELECT * WHERE A AS a ; B AS b FILTER a.v = 9 OR a.s = b.s", "A1(v=9,s='x') B2(s='y') A3(v=1,s='z') B4(s='y')") == [1, 3]


def test_negated_patterns_are_asked_by_comparisons_too() -> None:
    pattern = "SELECT * WHERE A AS a ; NOT (C AS c ; D AS d FILTER c.v < d.v) ; B AS b FILTER a.v < b.v"
    assert live(pattern, "A1(v=1) C2(v=3) D3(v=2) B4(v=2) D5(v=9) B6(v=9)") == [(1,), (1,), (1,), (1, 2), (1,), (1,)]
    assert ends("SELECT * WHERE (A ;[<= 5] B) UNLESS (C AS c ; C AS d FILTER c.v < d.v)", "A1 C2(v=2) C3(v=1) B4 C5(v=3) B6") == [3]
    assert ends("SELECT * WHERE A ;[<= 9] B THEN C", "A1 B2 C2 C3 C4") == [3]


def test_windows_of_time_and_of_events_bound_what_is_compared() -> None:
    rise = "SELECT * WHERE A AS a ; B AS b FILTER a.v < b.v WITHIN "
    line = "A1(v=1) C2 C3 B4(v=2) B5(v=3)"
    assert live(rise + "3", line) == [(1,), (1,), (1,), (1, 2), ()]
    assert live(rise + "4 EVENTS", line) == [(1,), (1,), (1,), (1, 2), ()]
    # Of two partial matches with one value the younger one stays.
    assert ends(rise + "3", "A1(v=1) A3(v=1) B6(v=2)") == [2]


def test_partitions_compare_their_own_events() -> None:
    line = "B3(k=1,v=9) A1(k=1,v=1) A2(k=2,v=5) B4(k=2,v=4) A5(k=null,v=1) B6(k=null,v=2)"
    found = of("SELECT * WHERE A AS a ; B AS b FILTER a.v < b.v PARTITION BY k", line)
    assert [(step.row, step.states) for step in found.steps] == [(1, (1,)), (2, (1,)), (0, (1, 2)), (3, (1,)), (4, ()), (5, ())]
    grouped = of("SELECT * WHERE A AS a ; B AS b FILTER a.v < b.v PARTITION BY k", line, null_keys="group")
    assert [step.ends for step in grouped.steps] == [False, False, True, False, False, True]


def test_positions_and_events_before_are_read() -> None:
    assert ends("SELECT * WHERE A AS a ; B AS b FILTER b.$index = a.$index + 2", "A1 B2 B3 B4") == [2]
    assert ends("SELECT * WHERE A AS a ; B AS b FILTER lag(b.v, 1) > a.v", "A1(v=1) B2(v=9) B3(v=0)") == [2]


def test_strict_is_part_of_the_automaton() -> None:
    found = of("SELECT STRICT * WHERE A AS a ; B AS b FILTER a.v < b.v", "A1(v=1) C2(v=1) B3(v=2) A4(v=1) B5(v=2)")
    assert found.note == ""
    assert [step.row for step in found.steps if step.ends] == [4]


def test_a_query_with_too_many_conditions_for_a_letter_has_steps() -> None:
    conditions = " OR ".join(f"a[v * {number} = {number * number}]" for number in range(2, 90))
    assert live(f"SELECT * WHERE A AS a ; B FILTER {conditions}", "A1(v=1) A2(v=7) B3(v=1)") == [(), (1,), (1, 2)]


# ------------------------------------------------------------------------------------------------------------------ what is left out


def test_a_strategy_inside_a_pattern_that_compares_is_not_applied_and_named() -> None:
    found = of("SELECT * WHERE NXT(A AS a ; B AS b FILTER a.v < b.v) ; C", "A1(v=1) B2(v=2) C3")
    assert f"NXT((A AS a ; B AS b) FILTER a.v < b.v) is taken without NXT here: {COULD}." in found.note
    assert "NXT" not in of("SELECT * WHERE NXT(A ; B) ; C", "A1 B2 C3").note


@pytest.mark.parametrize(
    ("query", "sure"),
    [
        ("SELECT * WHERE A ; B", True),
        ("SELECT NXT * WHERE A ; B", True),
        ("SELECT RESTRICTED * WHERE A ; B WITHIN 9", True),
        ("SELECT COUNT(*) WHERE A ; B", True),
        ("SELECT * WHERE A AS a ; B AS b HAVING sum(b.v) > 5", False),
        ("SELECT * WHERE A ; B CONSUME BY ANY", False),
        ("SELECT * WHERE A ; B NOT FOLLOWED BY C FOR 5", False),
        ("SELECT * WHERE NXT(A AS a ; A AS b FILTER a.v < b.v) ; B", False),
    ],
)
def test_a_match_ends_or_may_end(query: str, sure: bool) -> None:
    """A strategy over the whole pattern keeps a match where some end; what else the automaton does not have may keep none."""
    found = of(query, "A1(v=1) A2(v=2) B3(v=2)")
    assert [(step.ends, step.sure) for step in found.steps] == [(False, False), (False, False), (True, sure)]


@pytest.mark.parametrize(("name", "most"), [("MAX_CONFIGURATIONS", 2), ("MAX_COMPARISONS", 3)])
def test_past_a_limit_comparisons_end_with_a_note_from_there_on(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    query, line = "SELECT * WHERE A AS a ; B AS b FILTER a.v < b.v", "A1(v=7) A2(v=8) B3(v=1) A4(v=9) B5(v=1) B6(v=2)"
    exact = of(query, line)
    assert exact.note == ""
    monkeypatch.setattr(steps, name, most)
    found = of(query, line)
    place = {"MAX_CONFIGURATIONS": 4, "MAX_COMPARISONS": 5}[name]
    assert found.note.startswith(f"Behind event {place} of 6 comparisons between events are not evaluated, for ")
    assert name in found.note
    assert found.note.endswith(f"from there on {COULD}.")
    assert found.steps[:place] == exact.steps[:place]
    assert [step.ends for step in found.steps[place:]] == [True] * (6 - place)


def test_behind_a_limit_windows_still_end_what_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the partial matches that were different, the one that begins last decides."""
    monkeypatch.setattr(steps, "MAX_CONFIGURATIONS", 1)
    for window in ("5", "3 EVENTS"):
        found = of(f"SELECT * WHERE A AS a ; B AS b FILTER a.v < b.v WITHIN {window}", "A1(v=9) A4(v=8) C6 B9(v=1) B10(v=9)")
        assert [step.states for step in found.steps] == [(1,), (1,), (1,), (1, 2), ()], window


def test_past_the_limit_in_one_partition_the_others_go_on_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MAX_CONFIGURATIONS", 1)
    query = "SELECT * WHERE A AS a ; B AS b FILTER a.v < b.v PARTITION BY k"
    found = of(query, "A1(k=1,v=7) A2(k=2,v=7) A3(k=1,v=8) B4(k=1,v=1) B5(k=2,v=1)")
    assert "Behind event 3 of 5 comparisons between events are not evaluated in its partition, for more than 1 " in found.note
    assert [step.ends for step in found.steps] == [False, False, False, True, False]
    assert not found.steps[3].sure
    assert of(query, "A1(k=1,v=7) A2(k=2,v=7) A3(k=1,v=8) B5(k=2,v=9)").steps[3].sure
    both = of(query, "A1(k=1,v=7) A2(k=2,v=7) A3(k=1,v=8) A4(k=2,v=1) B5(k=2,v=0)")
    assert "Behind event 3 of 5, and 1 more, comparisons between events are not evaluated in their partitions" in both.note


def test_sets_of_values_end_at_the_limit_and_are_no_error() -> None:
    """2^n sets of n values: an engine has a limit for them, too, and refuses."""
    line = " ".join(f"A{number}(v={number})" for number in range(40)) + " B50(v=-1)"
    found = of("SELECT * WHERE A+ AS a ; B AS b FILTER a.v != b.v", line)
    assert "MAX_CONFIGURATIONS" in found.note
    assert found.steps[-1].ends


# ------------------------------------------------------------------------------------------------------------- rounds of a group


def rounds(text: str, line: str) -> list[list[str]]:
    """The rounds in which the states are that are live after each event, in words; "" for one that is in none."""
    table = pa.Table.from_pylist(events(line))
    shown = machine.machine_of(cepheid.query(text), ShownEvents(table, None, None))
    assert not shown["refused"]
    return [[shown["rounds"].get(str(state), "") for state in step["states"]] for step in shown["steps"]]


def test_a_state_of_a_group_says_its_round() -> None:
    assert rounds("SELECT STRICT * WHERE (A ; B){3} ; C", "A1 B2 A3 B4 A5 B6 C7") == [
        ["round 1 of 3"],
        ["after round 1 of 3"],
        ["round 1 of 3", "round 2 of 3"],
        ["after round 1 of 3", "after round 2 of 3"],
        ["round 1 of 3", "round 2 of 3", "round 3 of 3"],
        ["", "after round 1 of 3", "after round 2 of 3"],
        [""],
    ]


def test_rounds_without_a_bound_and_with_one_are_told_apart() -> None:
    line = "A1 B2 A3 B4 A5"
    assert rounds("SELECT * WHERE (A ; B){2,} ; C", line)[-1] == [
        "round 1",
        "after round 1",
        "round 2 or later",
        "after round 2 or later",
        "",
    ]
    assert rounds("SELECT * WHERE (A ; B){1,3} ; C", line)[-1] == [
        "round 1 of up to 3",
        "after round 1 of up to 3",
        "round 2 of up to 3",
        "after round 2 of up to 3",
        "round 3 of up to 3",
        "",
    ]


def test_counted_items_and_groups_inside_a_group_say_its_round() -> None:
    item = rounds("SELECT * WHERE (A{2} ; B){2}", "A1 A2 B3 A4")
    assert [sorted(set(each)) for each in item[1:]] == [
        ["round 1 of 2"],
        ["after round 1 of 2", "round 1 of 2"],
        ["after round 1 of 2", "round 1 of 2", "round 2 of 2"],
    ]
    nested = rounds("SELECT * WHERE ((A ; B){2} ; C){2}", "A1 B2 A3 B4 C5 A6")
    assert nested[2] == ["round 1 of 2 in round 1 of 2", "after round 1 of 2 in round 1 of 2", "round 2 of 2 in round 1 of 2"]
    assert "round 1 of 2 in round 2 of 2" in nested[-1]
    assert rounds("SELECT * WHERE A ; B", "A1 B2") == [[""], ["", ""]]
