"""The evaluation of automata with guards, by the kernel of guards, against a simulator by the definition; its bounds, its state, what is promised."""

from __future__ import annotations

import itertools
import random
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from enough import Enough
from guard_cases import (
    A,
    B,
    C,
    Match,
    Row,
    T,
    V,
    W,
    X,
    Y,
    Z,
    events,
    guard,
    random_automaton,
    random_rows,
    random_scoped_automaton,
    simulated,
    stores,
)
from guard_cases import automaton as automaton_of
from guard_definition import Defined, by_end, chosen, defined
from pattern_cases import CASES, SEED
from test_guarded_kernel import TINY

from cepheid.automata import Automaton, ChoiceProgram, Program, Transition, regions, trim
from cepheid.automata.registers import Before, Compares, Elapsed, Gathered, Now
from cepheid.engine.evaluations import spread
from cepheid.engine.evaluations.base import Chunk, collect
from cepheid.engine.evaluations.block_run import NEWEST_TIME
from cepheid.engine.evaluations.guards import guarded_choice_run, guarded_distinct, guarded_methods, guarded_sets
from cepheid.engine.evaluations.guards.guarded_choice_run import GuardedChoiceRun
from cepheid.engine.evaluations.guards.guarded_methods import GuardedChoiceMethod, GuardedCountMethod, GuardedMethod
from cepheid.engine.evaluations.guards.guarded_run import GuardedCountRun, GuardedRun
from cepheid.engine.evaluations.guards.guarded_start import guarded_counts
from cepheid.engine.evaluations.guards.guarded_tables import RepeatsError
from cepheid.engine.evaluations.method import Terms
from cepheid.engine.letters.encoded import Texts
from cepheid.engine.output.exact_counts import to_integer
from cepheid.errors import LimitError
from cepheid.kernel import available
from cepheid.language.syntax import Consumption, Strategy
from cepheid.logical.plan import Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cepheid.automata.registers import Test
    from cepheid.engine.evaluations.base import AnyEvaluation
    from cepheid.engine.evaluations.events import Events
    from cepheid.logical.plan import Expression


def matches_of(chunk: Chunk, program: Program) -> list[tuple[int, Match]]:
    """(segment, match) of each match of a chunk."""
    found = []
    for number, (start, stop) in enumerate(itertools.pairwise(chunk.offsets.tolist())):
        labels = tuple(program.label_sets[label] for label in chunk.labels[start:stop].tolist())
        found.append((int(chunk.segments[number]), (tuple(chunk.positions[start:stop].tolist()), labels)))
    return found


def counts_of(chunk: Chunk) -> list[tuple[int, int]]:
    """(event, number of matches) of each trigger of a chunk."""
    counts = () if chunk.counts is None else chunk.counts
    return [(int(position), to_integer(count)) for position, count in zip(chunk.positions, counts, strict=True)]


def made(rng: random.Random, program: Program, kind: type[GuardedRun] = GuardedRun, **bounds: Any) -> GuardedRun:
    """A run without any state, by any variant of the kernel, from usual arrays or the smallest ones."""
    return kind(program, sizes=rng.choice((None, TINY)), variant=rng.choice(available()), **bounds)


def counting(rng: random.Random, program: Program, **bounds: Any) -> AnyEvaluation:
    """A run that counts; one by one where a match may be found in several ways."""
    try:
        return made(rng, program, GuardedCountRun, **bounds)
    except RepeatsError:
        return guarded_counts(program, variant=rng.choice(available()), **bounds)


def batches(
    evaluation: AnyEvaluation, rows: list[Row], *, cuts: tuple[int, ...] = (), again: Callable[[], AnyEvaluation] | None = None
) -> Iterator[Chunk]:
    """What an evaluation gives of one partition in slot 0, in batches that are cut at some rows; again: a fresh one after each batch."""
    texts = Texts()
    evaluation.ensure_slots(1)
    for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        batch = events(rows[start:stop], first=start, texts=texts, slots=np.zeros(1, np.int32))
        chunk = collect(list(evaluation.chunks(batch)))
        assert all(evaluation.marked[position - start] for position in chunk.positions.tolist() if position >= start)
        assert evaluation.reached == stop - start
        yield chunk
        if again is not None:
            sections = evaluation.dump()
            texts.keep([evaluation.texts_in(sections)])
            evaluation = again()
            evaluation.load(sections)
            stored = evaluation.dump()
            for name, section in sections.items():
                assert len(stored[name]) == len(section), "a state that is stored again is as large"


def run(evaluation: GuardedRun, rows: list[Row], **how: Any) -> list[Match]:
    """The matches of one partition."""
    return [match for chunk in batches(evaluation, rows, **how) for _, match in matches_of(chunk, evaluation.program)]


def drawn_cases(name: str, *, length: int = 9, **options: Any) -> Iterator[tuple[random.Random, Automaton, list[Row]]]:
    rng = random.Random(f"{SEED} {name}")
    while True:
        yield rng, trim(random_automaton(rng, **options)), random_rows(rng, rng.randint(4, length))


def cases(name: str, count: int = CASES, **options: Any) -> Iterator[tuple[random.Random, Automaton, list[Row]]]:
    return itertools.islice(drawn_cases(name, **options), count)


def random_cuts(rng: random.Random, rows: list[Row]) -> tuple[int, ...]:
    return tuple(sorted(rng.choices(range(len(rows) + 1), k=rng.randint(1, 3))))


def expected(automaton: Automaton, rows: list[Row]) -> list[Match]:
    return [match for ended in simulated(automaton, rows) for match in ended]


def test_random_automata_give_the_matches_of_their_runs() -> None:
    drawn = Enough(CASES, drawn_cases("runs"), given=50)
    for rng, automaton, rows in drawn:
        found = run(made(rng, Program(automaton)), rows)
        assert len(found) == len(set(found))
        assert set(found) == set(expected(automaton, rows))
        assert [match[0][-1] for match in found] == sorted(match[0][-1] for match in found), "in the order of their ends"
        drawn.seen["given"] += len(found)


def test_of_two_scopes_the_smaller_set_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Enough(CASES, replaced=1)
    replaces = regions.Regions._replaces

    def counted(self: regions.Regions, better: Any, worse: Any) -> bool:
        found = replaces(self, better, worse)
        drawn.seen["replaced"] += bool(found and better)
        return found

    monkeypatch.setattr(regions.Regions, "_replaces", counted)
    rng = random.Random(f"{SEED} scopes")
    for _ in drawn:
        automaton, rows = trim(random_scoped_automaton(rng)), random_rows(rng, 8)
        found = run(made(rng, Program(automaton)), rows)
        assert len(found) == len(set(found))
        assert set(found) == set(expected(automaton, rows))


@pytest.mark.parametrize(
    ("limit", "shared"), [("SHARED_LIMIT", 0), ("SHARED_LIMIT", 1), ("SHARED_LIMIT", 2), ("SHARED_TEST_LIMIT", 0), ("SHARED_TEST_LIMIT", 1)]
)
def test_matches_are_told_apart_where_registers_are_no_function_of_the_output(
    monkeypatch: pytest.MonkeyPatch, limit: str, shared: int
) -> None:
    monkeypatch.setattr(regions, limit, shared)
    drawn = Enough(CASES, drawn_cases(f"shared {shared}", length=7), ambiguous=2)
    for rng, automaton, rows in drawn:
        evaluation = made(rng, Program(automaton))
        cuts = random_cuts(rng, rows)
        found = run(evaluation, rows, cuts=cuts)
        assert len(found) == len(set(found))
        assert set(found) == set(expected(automaton, rows))
        drawn.seen["ambiguous"] += evaluation.tables.repeats
        counted = [count for chunk in batches(counting(rng, Program(automaton)), rows) for _, count in counts_of(chunk)]
        assert sum(counted) == len(found)
        again = run(made(rng, Program(automaton)), rows, cuts=cuts, again=lambda rng=rng, each=automaton: made(rng, Program(each)))
        assert again == found


def test_windows_bound_the_start() -> None:
    for rng, automaton, rows in cases("windows", 2 * CASES, length=12):
        window, count = rng.choice((None, 0, 1, 3)), rng.choice((None, 1, 2, 4))
        found = run(made(rng, Program(automaton), window=window, count_window=count), rows, cuts=random_cuts(rng, rows))
        assert sorted(found, key=repr) == sorted(
            (
                match
                for match in expected(automaton, rows)
                if (window is None or rows[match[0][-1]].time - rows[match[0][0]].time <= window)
                and (count is None or match[0][-1] - match[0][0] < count)
            ),
            key=repr,
        )


def test_consumption_leaves_later_starts_alone() -> None:
    for rng, automaton, rows in cases("consume", length=12):
        window = rng.choice((None, 2))
        least, wanted = 0, []
        for end, ended in enumerate(simulated(automaton, rows)):
            here = [
                match for match in ended if match[0][0] >= least and (window is None or rows[end].time - rows[match[0][0]].time <= window)
            ]
            wanted += here
            if here:
                least = end + 1
        for consume in (Consumption.PARTITION, Consumption.ANY):
            for limit in (None, 0):
                evaluation = made(rng, Program(automaton), window=window, consume=consume, limit=limit)
                found = run(evaluation, rows, cuts=random_cuts(rng, rows))
                assert sorted(found, key=repr) == sorted(wanted if limit is None else [], key=repr)
                assert evaluation.triggers == len({match[0][-1] for match in wanted})


def test_what_a_limit_chooses_depends_on_the_stream_alone() -> None:
    for rng, automaton, rows in cases("limit", length=12):
        window, limit = rng.choice((None, 3)), rng.choice((1, 2, 3))
        every = run(made(rng, Program(automaton), window=window), rows)
        found = run(made(rng, Program(automaton), window=window, limit=limit), rows)
        assert found == [match for _, group in itertools.groupby(every, key=lambda match: match[0][-1]) for match in list(group)[:limit]]
        for _, group in itertools.groupby(every, key=lambda match: match[0][-1]):
            starts = [match[0][0] for match in group]
            assert starts[0] == max(starts), "the match with the latest start comes first"

        def fresh(
            rng: random.Random = rng, automaton: Automaton = automaton, window: int | None = window, limit: int = limit
        ) -> GuardedRun:
            return made(rng, Program(automaton), window=window, limit=limit)

        assert run(fresh(), rows, cuts=random_cuts(rng, rows)) == found
        assert run(fresh(), rows, cuts=random_cuts(rng, rows), again=fresh) == found


@pytest.mark.parametrize("shared", [0, 2, regions.SHARED_LIMIT])
def test_a_sample_is_one_match_of_each_part_of_equal_size(monkeypatch: pytest.MonkeyPatch, shared: int) -> None:
    """However the stream is cut; also where a match may be found in several ways."""
    monkeypatch.setattr(regions, "SHARED_LIMIT", shared)
    drawn = Enough(CASES, drawn_cases(f"sample {shared}", length=12), chosen=5)
    for rng, automaton, rows in drawn:
        bounds: dict[str, Any] = {"window": rng.choice((None, 3)), "consume": rng.choice((Consumption.NONE, Consumption.PARTITION))}
        sample, limit = rng.choice((1, 2, 3)), rng.choice((None, None, 0, 2))
        wanted = []
        for _, group in itertools.groupby(run(made(rng, Program(automaton), **bounds), rows), key=lambda match: match[0][-1]):
            matches = list(group)
            if len(matches) > sample:
                drawn.seen["chosen"] += 1
                matches = [matches[number * len(matches) // sample] for number in range(sample)]
            wanted += matches[:limit]
        assert run(made(rng, Program(automaton), sample=sample, limit=limit, **bounds), rows, cuts=random_cuts(rng, rows)) == wanted


@pytest.mark.parametrize("total", [7, spread.EXACT - 1, spread.EXACT, (1 << 200) - 1])
def test_the_places_of_a_sample_are_in_parts_of_equal_size(total: int) -> None:
    for sample in (1, 2, 3, 6):
        places = list(spread.spread(total, sample, 5))
        parts = [number * total // sample for number in range(sample + 1)]
        if total < spread.EXACT:
            assert places == parts[:-1]
            continue
        assert all(first < place < following for place, (first, following) in zip(places, itertools.pairwise(parts), strict=True))
        assert places != list(spread.spread(total, sample, 6)), "drawn by the position"


def test_a_restored_state_goes_on() -> None:
    for rng, automaton, rows in cases("restored", length=14):
        bounds: dict[str, Any] = {
            "window": rng.choice((None, 2, 5)),
            "count_window": rng.choice((None, None, 5)),
            "consume": rng.choice((Consumption.NONE, Consumption.NONE, Consumption.PARTITION)),
        }

        def fresh(rng: random.Random = rng, automaton: Automaton = automaton, bounds: dict[str, Any] = bounds) -> GuardedRun:
            return made(rng, Program(automaton), **bounds)

        whole = fresh()
        assert run(fresh(), rows, cuts=random_cuts(rng, rows), again=fresh) == run(whole, rows)
        assert whole.memory_usage() > 0


def test_partitions_in_slots_are_separate() -> None:
    for rng, automaton, _ in cases("slots"):
        streams = [random_rows(rng, 8) for _ in range(3)]
        evaluation, texts, found = made(rng, Program(automaton)), Texts(), [[], [], []]
        empty = {name: len(section) for name, section in evaluation.dump().items()}
        evaluation.ensure_slots(3)
        places = [0, 0, 0]
        while any(place < len(rows) for place, rows in zip(places, streams, strict=True)):
            parts = [(slot, rng.randint(0, 3)) for slot in rng.sample(range(3), rng.randint(1, 3))]
            rows = [streams[slot][places[slot] : places[slot] + count] for slot, count in parts]
            cuts = np.cumsum([0, *map(len, rows)])[:-1]
            # Positions count in the partition.
            index = [place for (slot, _), part in zip(parts, rows, strict=True) for place in range(places[slot], places[slot] + len(part))]
            slots = np.array([slot for slot, _ in parts], np.int32)
            merged = events([row for part in rows for row in part], index=index, texts=texts, cuts=cuts, slots=slots)
            for segment, match in matches_of(collect(list(evaluation.chunks(merged))), evaluation.program):
                found[parts[segment][0]].append(match)
            for (slot, _), part in zip(parts, rows, strict=True):
                places[slot] += len(part)
        assert found == [run(made(rng, Program(automaton)), rows) for rows in streams]
        evaluation.release(np.array([1]))
        assert evaluation.store.used.tolist() == [1, 3]
        evaluation.release(np.array([0, 2]))
        assert {name: len(section) for name, section in evaluation.dump().items()} == empty


def test_consumption_of_all_partitions_goes_by_the_stream() -> None:
    for rng, automaton, rows in cases("consume any"):
        slots = [rng.randrange(2) for _ in rows]
        evaluation, texts, found = made(rng, Program(automaton), consume=Consumption.ANY), Texts(), []
        evaluation.ensure_slots(2)
        places, seen = [], [0, 0]
        for slot in slots:
            places.append(seen[slot])
            seen[slot] += 1
        for number, (row, slot) in enumerate(zip(rows, slots, strict=True)):
            batch = events([row], first=places[number], texts=texts, slots=np.array([slot], np.int32))
            chunk = collect(list(evaluation.chunks(batch)))
            found += [(slot, match) for _, match in matches_of(chunk, evaluation.program)]
        whole = [simulated(automaton, [row for row, other in zip(rows, slots, strict=True) if other == slot]) for slot in range(2)]
        least, wanted = 0, []
        for number, slot in enumerate(slots):
            begun = [place for place, other in enumerate(slots) if other == slot]
            here = [(slot, match) for match in whole[slot][places[number]] if begun[match[0][0]] >= least]
            wanted += here
            least = number + 1 if here else least
        assert sorted(found, key=repr) == sorted(wanted, key=repr)


def test_a_partition_without_a_slot_ends_with_its_segment_or_goes_on() -> None:
    for rng, automaton, rows in cases("segments"):
        evaluation, texts = made(rng, Program(automaton)), Texts()
        cut = rng.randrange(len(rows) + 1)

        def given(batch: Events, evaluation: GuardedRun = evaluation) -> list[Match]:
            return [match for _, match in matches_of(collect(list(evaluation.chunks(batch))), evaluation.program)]

        found = given(events(rows[:cut], texts=texts)) + given(events(rows[cut:], first=cut, texts=texts, continued=True))
        assert found == run(made(rng, Program(automaton)), rows)
        assert given(events(rows, texts=texts)) == found


def test_idle_partitions_are_freed() -> None:
    for rng, automaton, rows in cases("expire"):
        window, texts = rng.choice((None, 1, 3)), Texts()
        evaluation = made(rng, Program(automaton), window=window)
        evaluation.ensure_slots(1)
        cut, found = rng.randrange(len(rows) + 1), []
        for start, stop in ((0, cut), (cut, len(rows))):
            batch = events(rows[start:stop], first=start, texts=texts, slots=np.zeros(1, np.int32))
            found += [match for _, match in matches_of(collect(list(evaluation.chunks(batch))), evaluation.program)]
            if start == 0:
                assert evaluation.expire(rows[min(cut, len(rows) - 1)].time).tolist() in ([], [0])
        assert found == run(made(rng, Program(automaton), window=window), rows)
        if window is not None:
            assert evaluation.expire(rows[-1].time + window + 1).tolist() == [0]
            assert 1 not in evaluation.store.held_rows


def test_counts_are_those_of_the_matches() -> None:
    for rng, automaton, rows in cases("counts", length=12):
        bounds: dict[str, Any] = {"window": rng.choice((None, 3)), "consume": rng.choice((Consumption.NONE, Consumption.PARTITION))}
        every = run(made(rng, Program(automaton), **bounds), rows)
        given = batches(counting(rng, Program(automaton), **bounds), rows, cuts=random_cuts(rng, rows))
        found = [counted for chunk in given for counted in counts_of(chunk)]
        assert found == [(end, len(list(group))) for end, group in itertools.groupby(every, key=lambda match: match[0][-1])]


@pytest.mark.parametrize("strategy", [Strategy.NXT, Strategy.LAST, Strategy.MAX])
@pytest.mark.parametrize(
    ("limit", "shared"), [("SHARED_LIMIT", regions.SHARED_LIMIT), ("SHARED_LIMIT", 1), ("SHARED_LIMIT", 0), ("SHARED_TEST_LIMIT", 1)]
)
def test_strategies_choose_among_the_matches_of_an_event(
    monkeypatch: pytest.MonkeyPatch, strategy: Strategy, limit: str, shared: int
) -> None:
    monkeypatch.setattr(regions, limit, shared)
    for rng, automaton, rows in cases(f"{strategy} {shared}", length=10):
        program = ChoiceProgram(automaton, strategy, rng.choice((None, frozenset("x"), frozenset("yz"))))
        bounds: dict[str, Any] = {"window": rng.choice((None, None, 3)), "consume": rng.choice((Consumption.NONE, Consumption.PARTITION))}
        whole = defined(automaton, rows, window=bounds["window"], consumes=bounds["consume"] is Consumption.PARTITION, most=1 << 20)

        def fresh(rng: random.Random = rng, program: ChoiceProgram = program, bounds: dict[str, Any] = bounds) -> GuardedRun:
            return made(rng, program, GuardedChoiceRun, **bounds)

        found = run(fresh(), rows, cuts=random_cuts(rng, rows), again=fresh)
        assert len(found) == len(set(found))
        assert [(end, set(own)) for end, own in by_end(found).items()] == choices_of(program, whole)


def choices_of(program: ChoiceProgram, whole: Defined) -> list[tuple[int, set[Match]]]:
    """What is chosen at each event that ends matches."""
    return [(end, chosen(program, matches)) for end, matches in enumerate(whole.matches) if matches]


def test_the_maximal_matches_of_long_streams_are_those_of_the_definition() -> None:
    """Streams with more matches than small cases have, of which a few are maximal."""
    drawn = Enough(CASES // 4, drawn_cases("maximal", plain=True), dominated=10)
    for rng, automaton, _ in drawn:
        program, window = ChoiceProgram(automaton, Strategy.MAX, None), rng.randint(3, 5)
        rows = random_rows(rng, 40)
        whole = defined(automaton, rows, window=window)
        found = run(made(rng, program, GuardedChoiceRun, window=window), rows[: len(whole)])
        assert [(end, set(own)) for end, own in by_end(found).items()] == choices_of(program, whole)
        assert len(found) == len(set(found))
        drawn.seen["dominated"] += sum(map(len, whole.matches)) - len(found)


def calls_of(monkeypatch: pytest.MonkeyPatch) -> list[GuardedRun]:
    """Gets whatever calls its kernel: how often it returns, where it has a budget, says how much it does."""
    calls: list[GuardedRun] = []
    called = GuardedRun._call
    monkeypatch.setattr(GuardedRun, "_call", lambda self: calls.append(self) or called(self))
    return calls


@pytest.mark.parametrize("strategy", [Strategy.NXT, Strategy.LAST, Strategy.MAX])
def test_the_steps_of_a_choice_grow_with_the_session(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with gaps, all of whose events fit each other: one match of each event is chosen, which has all of them."""
    monkeypatch.setattr(guarded_choice_run, "MAXIMAL_LIMIT", 10 * 600)
    program = ChoiceProgram(trim(rising(Elapsed(Before(0), T, Interval(0, 5_000)), T)), strategy, None)
    calls, found = calls_of(monkeypatch), {}
    for length in (150, 600):
        rows = [*(Row("A", time) for time in range(length)), Row("B", length)]
        evaluation = GuardedChoiceRun(program)
        evaluation._set("budget", 30)
        calls.clear()
        assert run(evaluation, rows) == [(tuple(range(length + 1)), (X,) * length + (Y,))]
        found[length] = len(calls)
    assert found[600] < 5 * found[150]


def test_a_session_does_not_look_at_those_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a window all clicks are kept, but a choice goes through those that its matches can have."""
    moves = [
        Transition(0, 1, A, X, writes=stores(r0=Now(T))),
        Transition(1, 1),
        Transition(1, 1, A | guard(0), X, writes=stores(r0=Now(T))),
        Transition(1, 2, B | guard(0), Y),
    ]
    automaton = automaton_of(moves, Elapsed(Before(0), T, Interval(0, 5)))
    calls, looked = calls_of(monkeypatch), []
    for before in (20, 200):
        rows = [Row("A", 100 * time) for time in range(before)]
        rows += [*(Row("A", 100 * before + time) for time in range(5)), Row("B", 100 * before + 5)]
        evaluation = GuardedChoiceRun(ChoiceProgram(automaton, Strategy.LAST, None))
        assert len(run(evaluation, rows)) == 1
        evaluation._set("budget", 1)
        calls.clear()
        collect(list(evaluation.chunks(events(rows[-1:], first=len(rows), slots=np.zeros(1, np.int32)))))
        looked.append(len(calls))
    assert 1 < looked[0] == looked[1]


@pytest.mark.parametrize(("pause", "window"), [(1, 20), (100, 2000), (100, None)])
def test_what_can_go_on_no_more_is_forgotten(pause: int, window: int | None) -> None:
    """`A ;[<= 5] B`, and `A+[<= 5] ;[<= 5] B` whose sessions end: without a window the gaps say so."""
    interval = Interval(0, 5)
    moves = [Transition(0, 1, A, X, writes=stores(r0=Now(T))), Transition(1, 1), Transition(1, 2, B | guard(0), Y)]
    again = Transition(1, 1, A | guard(0), X, writes=stores(r0=Now(T)))
    automaton = automaton_of(moves if pause == 1 else [*moves, again], Elapsed(Before(0), T, interval))
    evaluation = GuardedRun(Program(automaton), window=window)
    evaluation.ensure_slots(1)
    used, position = [], 0
    for number in range(40):
        rows = [Row("A", pause * (10 * number + place // 4) + place % 4) for place in range(40)]
        collect(list(evaluation.chunks(events(rows, first=position, slots=np.zeros(1, np.int32)))))
        position += len(rows)
        used.append(evaluation.memory_usage())
    assert max(used[20:]) < 1.5 * max(used[:20])
    time = pause * (10 * 39 + 9) + 3 + (5 if window is None else window)
    assert evaluation.expire(time).tolist() == []
    assert evaluation.expire(time + 1).tolist() == [0]


def test_a_state_that_knows_only_the_last_start_loses_nothing() -> None:
    """`A ;[<= 5] B ;[<= 5] A` without a window: an earlier build stored the last start where this one has the last partial match."""
    starts, goes_on = Transition(0, 1, A, X, writes=stores(r0=Now(T))), Transition(1, 2, B | guard(0), Y, writes=stores(r0=Now(T)))
    automaton = automaton_of(
        [starts, Transition(1, 1), goes_on, Transition(2, 2), Transition(2, 3, A | guard(0), X)], Elapsed(Before(0), T, Interval(0, 5))
    )
    first, second = (GuardedRun(Program(automaton)) for _ in range(2))
    run(first, [Row("A", 0), Row("B", 4)])
    first.store.words[first.store.offsets[first.store.held_rows] + NEWEST_TIME] = 0
    second.load(first.dump())
    assert collect(list(second.chunks(events([Row("A", 8)], first=2, slots=np.zeros(1, np.int32))))).positions.tolist() == [0, 1, 2]


def test_limits_of_matches_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "SHARED_LIMIT", 1)
    monkeypatch.setattr(guarded_distinct, "DISTINCT_LIMIT", 1)
    monkeypatch.setattr(guarded_choice_run, "MAXIMAL_LIMIT", 1)
    drawn = Enough(CASES, drawn_cases("limits"), distinct=1, maximal=1)
    facts = {
        "an event completes more than 1 matches, each of which may be found in several ways (DISTINCT_LIMIT)": "distinct",
        "MAX takes more than 1 steps for the matches of one event (MAXIMAL_LIMIT)": "maximal",
    }
    for rng, automaton, rows in drawn:
        choice = ChoiceProgram(automaton, Strategy.MAX, None)
        for evaluation in (made(rng, Program(automaton)), made(rng, choice, GuardedChoiceRun)):
            try:
                run(evaluation, rows)
            except LimitError as error:
                drawn.seen[facts[error.fact]] += 1


def gathering(how: str) -> Automaton:
    """`A+ ; B`, where B is compared with all A's."""
    kept = Gathered(how, Before(0), V)
    moves = [
        Transition(0, 1, A, X, writes=stores(r0=Gathered(how, None, V) if how == "set" else Now(V))),
        Transition(1, 1),
        Transition(1, 1, A, X, writes=stores(r0=kept)),
        Transition(1, 2, B | guard(0), Y),
    ]
    return automaton_of(moves, Compares(Before(0), "!=" if how == "set" else ">", V))


def test_many_sets_of_values_are_an_error_and_many_values_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_sets, "SETS_LIMIT", 7)
    rows = [*(Row("A", time, v=time) for time in range(4)), Row("B", 4, v=-1)]
    assert len(run(GuardedRun(Program(gathering("set"))), rows[1:])) == 7
    with pytest.raises(
        LimitError, match=re.escape("groups of partial matches that keep different sets of values, and the limit is 7 (SETS_LIMIT)")
    ):
        run(GuardedRun(Program(gathering("set"))), [Row("A", 0, v=9), *rows])
    many = [*(Row("A", time, v=time) for time in range(10)), Row("B", 10, v=-1)]
    assert len(run(GuardedRun(Program(gathering("min"))), many)) == 2**10 - 1
    promised = {how: GuardedMethod().guarantee(Terms(Program(gathering(how)))).update for how in ("set", "min")}
    assert "sets of values are kept, of n values up to 2^n, and 16,384 at one event at most" in promised["set"]
    assert "sets" not in promised["min"]


# ---------------------------------------------------------------------------------------------------------------- long streams


def test_long_streams_are_restored() -> None:
    """Windows pass many times: rings grow and are freed, and lists are made again."""
    for rng, automaton, _ in cases("long", CASES // 4, plain=True):
        rows = random_rows(rng, 150)
        window = rng.randint(2, 4)

        def fresh(rng: random.Random = rng, automaton: Automaton = automaton, window: int = window) -> GuardedRun:
            return made(rng, Program(automaton), window=window)

        wanted = [set(ended) for ended in simulated(automaton, rows, window=window)]
        for again in (None, fresh):
            found = run(fresh(), rows, cuts=tuple(range(20, 150, 20)), again=again)
            assert len(found) == len(set(found))
            assert set(found) == set().union(*wanted)


# --------------------------------------------------------------------------------------------------------------------- promises


def chain(test: Test, value: Expression, *, waits: bool = True) -> Automaton:
    """`A ; B ; C`, where each event is compared with the one before it."""
    moves = [
        Transition(0, 1, A, X, writes=stores(r0=Now(value))),
        Transition(1, 2, B | guard(0), Y, writes=stores(r0=Now(value))),
        Transition(2, 3, C | guard(0), Z),
    ]
    return automaton_of([*moves, *([Transition(1, 1), Transition(2, 2)] if waits else [])], test)


def rising(test: Test, value: Expression) -> Automaton:
    """`A+`, each compared with the one before it, then B."""
    moves = [
        Transition(0, 1, A, X, writes=stores(r0=Now(value))),
        Transition(1, 1),
        Transition(1, 1, A | guard(0), X, writes=stores(r0=Now(value))),
        Transition(1, 2, B, Y),
    ]
    return automaton_of(moves, test)


def pair(test: Test, value: Expression) -> Automaton:
    """`A ; B`, where B is compared with A."""
    return automaton_of([Transition(0, 1, A, X, writes=stores(r0=Now(value))), Transition(1, 1), Transition(1, 2, B | guard(0), Y)], test)


def carried(operator: str = "!=") -> Automaton:
    """`A ; B ; C`, where C is compared with A."""
    moves = [
        Transition(0, 1, A, X, writes=stores(r0=Now(V))),
        Transition(1, 1),
        Transition(1, 2, B, Y),
        Transition(2, 2),
        Transition(2, 3, C | guard(0), Z),
    ]
    return automaton_of(moves, Compares(Before(0), operator, V))


def several() -> Automaton:
    """`A ; B`, where B is compared with A twice."""
    moves = [
        Transition(0, 1, A, X, writes=stores(r0=Now(V), r1=Now(W))),
        Transition(1, 1),
        Transition(1, 2, B | guard(0) | guard(1), Y),
    ]
    return automaton_of(moves, Compares(Before(0), "<", V), Compares(Before(1), "<", W), registers=2)


SIMPLE = {
    "gap": chain(Elapsed(Before(0), T, Interval(0, 5)), T),
    "equality": chain(Compares(Before(0), "=", V), V),
    "greater": pair(Compares(Before(0), "<", V), V),
}

PROMISES = {
    "gap": "by the time since an event: O(log n), O(n) at worst where starts come out of order",
    "equality": "by equality: O(1)",
    "greater": "by one comparison: O(log n)",
    "carried": "for each group of values that is kept for a later comparison: O(g)",
    "layers": "where an event moves all groups and asks nothing of them: O(1), and later O(log n)",
    "several": "by several comparisons: O(log n) where one of them decides, O(n) at worst",
}


@pytest.mark.parametrize("name", PROMISES)
def test_what_is_promised_goes_by_the_indexes(name: str) -> None:
    automaton = {"carried": carried, "layers": lambda: carried("="), "several": several}.get(name, lambda: SIMPLE[name])()
    promised = GuardedMethod().guarantee(Terms(Program(automaton), window=5))
    assert PROMISES[name] in promised.update
    assert "as far as" not in promised.update
    assert ("groups" in promised.state) == (name in {"carried", "layers"})
    assert promised.state.endswith("within the window)")
    worse = "; where several comparisons are asked at one event, O(n) at worst" if name == "several" else ""
    assert promised.delay == f"output-linear, times O(log n) per event of a match{worse}"


def test_a_program_with_many_macro_states_is_looked_at_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_methods, "LOOKED_AT", 1)
    assert "as far as 1 macro states show" in GuardedMethod().guarantee(Terms(Program(carried()))).update


def test_matches_that_are_told_apart_are_promised_so() -> None:
    """`((x+) WITHIN [1, 5])+`: the output does not say where a window began."""
    moves = [
        Transition(0, 1, A, X, writes=stores(r0=Now(T))),
        Transition(1, 1),
        Transition(1, 1, A, X),
        Transition(1, 1, A, X, writes=stores(r0=Now(T))),
        Transition(1, 2, B | guard(0), Y),
    ]
    promised = GuardedMethod().guarantee(Terms(Program(automaton_of(moves, Elapsed(Before(0), T, Interval(1, 5)))), window=5))
    assert "told apart at its end, up to 1,048,576 per trigger" in promised.delay


@pytest.mark.parametrize("strategy", [Strategy.NXT, Strategy.MAX])
def test_strategies_and_counts_promise_no_enumeration(strategy: Strategy) -> None:
    promised = GuardedChoiceMethod().guarantee(Terms(ChoiceProgram(carried(), strategy, None), window=5))
    assert promised.evaluation.startswith(strategy.value)
    assert ("none is listed" in promised.delay) == (strategy is Strategy.MAX)
    assert "nothing is enumerated" in GuardedCountMethod().guarantee(Terms(Program(carried()), window=5)).delay
