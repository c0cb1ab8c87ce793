"""The kernel of guards in all variants, against the definition: the same matches in one order, whatever is asked and restored."""

from __future__ import annotations

import dataclasses
import itertools
import random
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from enough import Enough, share
from guard_cases import NAME, A, B, C, Match, Row, T, V, W, X, Y, Z, events, guard, random_automaton, random_rows, simulated, stores
from guard_cases import automaton as automaton_of
from guard_definition import Defined, by_end, chosen, defined, is_match, named
from pattern_cases import CASES, SEED

from cepheid.automata import Automaton, Program, Transition, regions, trim
from cepheid.automata.program import ChoiceProgram
from cepheid.automata.registers import Before, Compares, Elapsed, Gathered, Now
from cepheid.automata.transform import spans
from cepheid.automata.transition import order
from cepheid.engine.evaluations.base import collect
from cepheid.engine.evaluations.block_run import LOW
from cepheid.engine.evaluations.guards import guarded_sets, guarded_tables
from cepheid.engine.evaluations.guards.guarded_choice_run import GuardedChoiceRun
from cepheid.engine.evaluations.guards.guarded_run import LIVE, GuardedBeginsRun, GuardedCountRun, GuardedRun, GuardSizes
from cepheid.engine.evaluations.guards.guarded_start import guarded, guarded_choice, guarded_counts
from cepheid.engine.evaluations.guards.guarded_tables import GuardTables
from cepheid.engine.evaluations.spread import spread
from cepheid.engine.letters.encoded import Texts
from cepheid.engine.output.exact_counts import to_integer
from cepheid.errors import LimitError, NotSupportedError, SnapshotError
from cepheid.kernel import available
from cepheid.language.syntax import Consumption, Strategy
from cepheid.logical.plan import Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

FAST = tuple(variant for variant in available() if variant != "python")
"""The variants that read hundreds of events without a window in no time."""

TINY = GuardSizes(places=1, chunk=2, chunk_positions=3, levels=1, queue=1, codes=2, sets=1)


Labelled = tuple[tuple[int, ...], tuple[int, ...]]
"""A match as a kernel gives it: positions, and the label of each."""


def matches_of(evaluation: GuardedRun, rows: list[Row], *, texts: Texts, **how: Any) -> list[Labelled]:
    """What one partition gives of a batch."""
    first, vetoed, slot = how.get("first", 0), how.get("vetoed"), how.get("slot", 0)
    slots = np.full(1, -1 if slot is None else slot, np.int32)
    batch = dataclasses.replace(events(rows, first=first, slots=slots, texts=texts), vetoed=vetoed)
    chunk = collect(list(evaluation.chunks(batch)))
    cuts = chunk.offsets.tolist()
    return [
        (tuple(chunk.positions[start:stop].tolist()), tuple(chunk.labels[start:stop].tolist())) for start, stop in itertools.pairwise(cuts)
    ]


def random_bounds(rng: random.Random) -> dict[str, Any]:
    return {
        "window": rng.choice((None, 0, 1, 3, 5)),
        "count_window": rng.choice((None, None, 1, 4)),
        "limit": rng.choice((None, None, 0, 1, 2)),
        "consume": rng.choice((Consumption.NONE, Consumption.NONE, Consumption.PARTITION, Consumption.ANY)),
    }


def drawn_cases(name: str, *, length: int = 25, once: bool = False) -> Iterator[tuple[random.Random, Program, list[Row]]]:
    """Programs and rows; without end. once: only those in which no match is found in several ways."""
    rng = random.Random(f"{SEED} {name}")
    while True:
        program = Program(trim(random_automaton(rng, plain=rng.random() < 0.5)))
        ends = any(move.target in program.automaton.finals for move in program.automaton.transitions)
        if ends and not (once and GuardTables(program).repeats):
            yield rng, program, random_rows(rng, rng.randint(4, length))


def cases(name: str, count: int = CASES, *, once: bool = False) -> Iterator[tuple[random.Random, Program, list[Row]]]:
    return itertools.islice(drawn_cases(name, once=once), count)


def run_of(rng: random.Random, program: Program, bounds: dict[str, Any], kind: type[GuardedRun] = GuardedRun) -> GuardedRun:
    return kind(program, sizes=rng.choice((None, TINY)), variant=rng.choice(available()), **bounds)


def by_definition(program: Program, rows: list[Row], bounds: Mapping[str, Any], **how: Any) -> Defined:
    """What the events do within bounds, as far as that can be listed."""
    consumes = bounds.get("consume", Consumption.NONE) is not Consumption.NONE
    own = {name: bounds.get(name) for name in ("window", "count_window")}
    return defined(program.automaton, rows, consumes=consumes, **own, **how)


def given(program: Program, whole: Defined, vetoed: Any = None) -> dict[int, set[Match]]:
    """The matches of each trigger by the definition, or what the program's strategy chooses of them; vetoed: without those of such events."""
    ended = {end: matches for end, matches in enumerate(whole.matches) if matches and (vetoed is None or not vetoed[end])}
    return {end: chosen(program, found) if isinstance(program, ChoiceProgram) else set(found) for end, found in ended.items()}


def whole_of(program: Program, rows: list[Row], bounds: Mapping[str, Any], whole: Defined, **how: Any) -> list[Labelled]:
    """All matches within bounds, in their order, from one batch: those of the definition, each once, and the one that begins last first.

    How many of each event are wanted is not asked here, but of what this gives: see `first_of`.
    """
    kind = GuardedChoiceRun if isinstance(program, ChoiceProgram) else GuardedRun
    evaluation = kind(program, **{**bounds, "limit": None})
    found = matches_of(evaluation, rows, **how)
    matches = named(program, found)
    wanted = given(program, whole, how.get("vetoed"))
    assert len(set(matches)) == len(matches)
    assert {end: set(own) for end, own in by_end(matches).items()} == wanted
    assert [positions[-1] for positions, _ in found] == sorted(positions[-1] for positions, _ in found)
    assert evaluation.triggers == whole.triggers
    assert evaluation.marked.tolist() == whole.marked
    if kind is GuardedRun:
        for own in by_end(matches).values():
            assert own[0][0][0] == max(positions[0] for positions, _ in own)
    return found


def first_of(found: list[Labelled], limit: int | None) -> list[Labelled]:
    """The first matches of each trigger."""
    return [match for _, own in itertools.groupby(found, key=lambda match: match[0][-1]) for match in itertools.islice(own, limit)]


def sampled(found: list[Labelled], sample: int) -> list[Labelled]:
    """One match of each of as many parts of equal size, of each trigger that has more than the sample."""
    kept: list[Labelled] = []
    for end, group in itertools.groupby(found, key=lambda match: match[0][-1]):
        own = list(group)
        kept += own if len(own) <= sample else [own[place] for place in spread(len(own), sample, end)]
    return kept


@pytest.mark.parametrize("variant", available())
def test_the_kernel_gives_the_matches_of_the_definition_in_one_order(variant: str) -> None:
    drawn = Enough(share(CASES, variant), drawn_cases(f"kernel {variant}"), given=20, several=2)
    for rng, program, drawn_rows in drawn:
        bounds, texts = random_bounds(rng), Texts()
        whole = by_definition(program, drawn_rows, bounds)
        rows = drawn_rows[: len(whole)]
        wanted = first_of(whole_of(program, rows, bounds, whole, texts=texts), bounds["limit"])
        run = GuardedRun(program, sizes=rng.choice((None, TINY)), variant=variant, **bounds)
        assert matches_of(run, rows, texts=texts) == wanted
        assert run.marked.tolist() == whole.marked
        assert (run.triggers, run.matches, run.events) == (whole.triggers, len(wanted), len(rows))
        assert run.reached == len(rows)
        drawn.seen["given"] += len(wanted)
        drawn.seen["several"] += run.tables.repeats


def test_a_state_is_restored_by_another_variant() -> None:
    for rng, program, drawn_rows in cases("kernel restored"):
        bounds, texts = random_bounds(rng), Texts()
        whole = by_definition(program, drawn_rows, bounds)
        rows = drawn_rows[: len(whole)]
        wanted = first_of(whole_of(program, rows, bounds, whole, texts=texts), bounds["limit"])
        evaluation, found = run_of(rng, program, bounds), []
        cuts = sorted(rng.choices(range(len(rows) + 1), k=rng.randint(1, 4)))
        for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True):
            found += matches_of(evaluation, rows[start:stop], texts=texts, first=start)
            assert evaluation.memory_usage() > 0
            if rows and rng.random() < 0.3:
                assert set(evaluation.expire(rows[min(stop, len(rows) - 1)].time).tolist()) <= {0}
            if rng.random() < 0.7:
                sections = evaluation.dump()
                assert texts.knows(evaluation.texts_in(sections))
                texts.keep([evaluation.texts_in(sections)])
                evaluation = run_of(rng, program, bounds)
                evaluation.load(sections)
                again = evaluation.dump()
                assert {name: len(section) for name, section in again.items()} == {name: len(section) for name, section in sections.items()}
        assert found == wanted


def short_streams(rng: random.Random, program: Program, bounds: Mapping[str, Any]) -> tuple[list[list[Row]], list[Defined]]:
    """Three partitions, and what their events do."""
    streams = [random_rows(rng, 12) for _ in range(3)]
    wholes = [by_definition(program, rows, bounds) for rows in streams]
    return [rows[: len(whole)] for rows, whole in zip(streams, wholes, strict=True)], wholes


def in_slots(
    rng: random.Random, evaluation: GuardedRun, streams: list[list[Row]], give: Callable[..., list[Any]], texts: Texts
) -> list[Any]:
    """What each of three partitions gives, whose events come in turns."""
    found, places = [[], [], []], [0, 0, 0]
    while any(place < len(rows) for place, rows in zip(places, streams, strict=True)):
        slot, count = rng.randrange(3), rng.randint(0, 4)
        part = streams[slot][places[slot] : places[slot] + count]
        found[slot] += give(evaluation, part, texts=texts, first=places[slot], slot=slot)
        places[slot] += len(part)
    return found


def test_partitions_in_slots_are_separate_in_the_kernel() -> None:
    for rng, program, _ in cases("kernel slots", CASES // 2):
        bounds, texts = {**random_bounds(rng), "consume": Consumption.NONE}, Texts()
        streams, wholes = short_streams(rng, program, bounds)
        evaluation = run_of(rng, program, bounds)
        found = in_slots(rng, evaluation, streams, matches_of, texts)
        for own, rows, whole in zip(found, streams, wholes, strict=True):
            assert own == first_of(whole_of(program, rows, bounds, whole, texts=texts), bounds["limit"])
        evaluation.release(np.arange(3))
        assert matches_of(evaluation, streams[0], texts=texts, slot=1) == found[0], "a slot that was released starts again"
        assert matches_of(evaluation, streams[0], texts=texts, slot=None) == found[0]


def test_long_streams_pass_many_windows_in_the_kernel() -> None:
    drawn = Enough(CASES // 8, drawn_cases("kernel long"), long=3, given=50)
    for rng, program, _ in drawn:
        texts, bounds = Texts(), {"window": rng.randint(1, 4), "limit": rng.choice((1, 5))}
        rows = random_rows(rng, 200)
        whole = by_definition(program, rows, bounds, most=300)
        rows = rows[: len(whole)]
        evaluation, found = run_of(rng, program, bounds), []
        for start in range(0, len(rows), 40):
            found += matches_of(evaluation, rows[start : start + 40], texts=texts, first=start)
        assert found == first_of(whole_of(program, rows, bounds, whole, texts=texts), bounds["limit"])
        drawn.seen["long"] += len(rows) == 200
        drawn.seen["given"] += len(found)


def gapped(rng: random.Random) -> Program:
    """Events, some of them iterated, each of which follows soon."""
    moves = [Transition(0, 1, A, X, writes=stores(r0=Now(T)))]
    for state in range(1, rng.randint(2, 4)):
        moves += [Transition(state, state)] if rng.random() < 0.8 else []
        moves += [Transition(state, state, rng.choice((A, B)) | guard(0), X, writes=stores(r0=Now(T)))] if rng.random() < 0.5 else []
        moves.append(Transition(state, state + 1, rng.choice((A, B, C)) | guard(0), rng.choice((X, Y)), writes=stores(r0=Now(T))))
    return Program(trim(automaton_of(moves, Elapsed(Before(0), T, Interval(rng.choice((0, 0, 1)), rng.choice((1, 2, 4)))))))


@pytest.mark.parametrize("variant", available())
def test_without_a_window_gaps_say_what_can_go_on_no_more(variant: str) -> None:
    """Streams with pauses, in pieces, with restarts: what is forgotten was in no match any more."""
    rng = random.Random(f"{SEED} kernel pauses {variant}")
    drawn = Enough(share(CASES, variant), itertools.count(), given=20, forgotten=20)
    for _ in drawn:
        program, steady = gapped(rng), random_rows(rng, rng.randint(5, 40))
        assert GuardTables(program).life is not None
        pauses = itertools.accumulate(10 * (rng.random() < 0.2) for _ in steady)
        rows = [dataclasses.replace(row, time=row.time + pause) for row, pause in zip(steady, pauses, strict=True)]
        bounds, texts = {**random_bounds(rng), "window": None, "limit": None}, Texts()
        whole = by_definition(program, rows, bounds)
        rows = rows[: len(whole)]
        wanted = whole_of(program, rows, bounds, whole, texts=texts)

        def fresh(program: Program = program, bounds: dict[str, Any] = bounds, rng: random.Random = rng) -> GuardedRun:
            return GuardedRun(program, sizes=rng.choice((None, TINY)), variant=variant, **bounds)

        evaluation, found = fresh(), []
        cuts = sorted(rng.choices(range(len(rows) + 1), k=rng.choice((0, 1, 3))))
        for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True):
            found += matches_of(evaluation, rows[start:stop], texts=texts, first=start)
            if rng.random() < 0.3 and stop:
                evaluation.expire(rows[stop - 1].time)
            if rng.random() < 0.3:
                sections, evaluation = evaluation.dump(), fresh()
                evaluation.load(sections)
        assert found == wanted
        drawn.seen["given"] += len(found)
        if bounds["consume"] is Consumption.NONE and len(evaluation.store.offsets) > 1:
            drawn.seen["forgotten"] += bool(evaluation.store.plain(np.array([1]))[0, LOW])


def chain(*tests: Any, value: Any, more: Any = None, kinds: tuple[int, ...] = (A, B, C)) -> Automaton:
    """`A ; B ; C`, where each event is compared with the one before it, by one value or two."""
    asked = sum(guard(number) for number in range(len(tests)))
    kept = stores(r0=Now(value)) if more is None else stores(r0=Now(value), r1=Now(more))
    moves = [
        Transition(0, 1, kinds[0], X, writes=kept),
        Transition(1, 1),
        Transition(1, 2, kinds[1] | asked, Y, writes=kept),
        Transition(2, 2),
        Transition(2, 3, kinds[2] | asked, Z),
    ]
    return automaton_of(moves, *tests, registers=1 if more is None else 2)


CHAINS = {
    "gaps": chain(Elapsed(Before(0), T, Interval(0, 30)), value=T),
    "gaps with a lower bound": chain(Elapsed(Before(0), T, Interval(5, 30)), value=T),
    "equality": chain(Compares(Before(0), "=", W), value=W),
    **{f"{operator} of values": chain(Compares(Before(0), operator, V), value=V) for operator in ("<", "<=", ">", ">=", "!=")},
}
"""Chains of comparisons: starts come out of order in the second list."""

SEVERAL = {
    **{
        f"{operator} of values and a gap": chain(Compares(Before(0), operator, V), Elapsed(Before(1), T, Interval(5, 40)), value=V, more=T)
        for operator in ("<", ">=", "!=")
    },
    "two orders": chain(Compares(Before(0), "<", V), Compares(Before(1), ">", W), value=V, more=W),
    "an order and a difference": chain(Compares(Before(0), "<", V), Compares(Before(1), "!=", W), value=V, more=W),
    "a value between two": chain(Compares(Before(0), "<=", V), Compares(Before(0), ">=", W), value=V),
    "an equality, an order and a difference": chain(
        Compares(Before(1), "=", W), Compares(Before(0), "<", V), Compares(Before(0), "!=", W), value=V, more=W
    ),
    "an equality and a difference of one value": chain(Compares(Before(0), "=", W), Compares(Before(0), "!=", V), value=W),
}
"""Chains of several comparisons at one event."""


def carrying(*tests: Any, begins: frozenset[Any], goes: int = 0, ends: int, iterates: bool = False) -> Automaton:
    """`A ; B ; C`, or `A ; B+ ; C`, where B and C ask these guards of values of A."""
    moves = [
        Transition(0, 1, A, X, writes=begins),
        Transition(1, 1),
        Transition(1, 2, B | goes, Y),
        Transition(2, 2),
        Transition(2, 3, C | ends, Z),
    ]
    return automaton_of([*moves, *([Transition(2, 2, B | goes, Y)] if iterates else [])], *tests, registers=2)


EQUAL, LESS, WITHIN_40 = Compares(Before(0), "=", W), Compares(Before(1), "<", V), Elapsed(Before(0), T, Interval(5, 40))
CARRYING = {
    "an equality": carrying(EQUAL, begins=stores(r0=Now(W)), ends=guard(0)),
    "an order": carrying(LESS, begins=stores(r1=Now(V)), ends=guard(0)),
    "a difference": carrying(Compares(Before(0), "!=", W), begins=stores(r0=Now(W)), ends=guard(0)),
    "the time since the begin": carrying(WITHIN_40, begins=stores(r0=Now(T)), ends=guard(0)),
    "an order at each event": carrying(LESS, begins=stores(r1=Now(V)), goes=guard(0), ends=guard(0), iterates=True),
    "an order beside an equality": carrying(EQUAL, LESS, begins=stores(r0=Now(W), r1=Now(V)), goes=guard(0), ends=guard(1)),
    "two values": carrying(EQUAL, LESS, begins=stores(r0=Now(W), r1=Now(V)), ends=guard(0) | guard(1)),
    "an equality in iterations": carrying(EQUAL, begins=stores(r0=Now(W)), ends=guard(0), iterates=True),
    "a time and an equality": carrying(
        WITHIN_40, Compares(Before(1), "=", W), begins=stores(r0=Now(T), r1=Now(W)), goes=guard(0), ends=guard(1)
    ),
}
"""A value of the first event is compared with the last one."""
ALL_CHAINS = CHAINS | SEVERAL | CARRYING


def checked(
    program: Program, rows: list[Row], bounds: Mapping[str, Any], *, texts: Texts, variants: Iterable[str] | None = None
) -> list[Labelled]:
    """What all variants give, from usual arrays and from the smallest ones: matches of the definition, each once, and as many as there are."""
    own = {name: bounds.get(name) for name in ("window", "count_window")}
    counts = dict(defined(program.automaton, rows, most=None, **own).counts)
    limit = bounds.get("limit", bounds.get("sample"))
    found = matches_of(GuardedRun(program, **bounds), rows, texts=texts)
    matches = by_end(named(program, found))
    assert {end: len(set(own)) for end, own in matches.items()} == {
        end: count if limit is None else min(limit, count) for end, count in counts.items()
    }
    assert sum(map(len, matches.values())) == sum(len(set(own)) for own in matches.values())
    assert all(is_match(program.automaton, rows, match) for own in matches.values() for match in own[:: 1 + len(own) // 20])
    for variant, sizes in itertools.product(available() if variants is None else variants, (None, TINY)):
        assert matches_of(GuardedRun(program, variant=variant, sizes=sizes, **bounds), rows, texts=texts) == found
    return found


@pytest.mark.parametrize("name", ALL_CHAINS)
@pytest.mark.parametrize("limit", [3, None])
def test_large_windows_with_starts_out_of_order(name: str, limit: int | None) -> None:
    rng, texts = random.Random(f"{SEED} {name}"), Texts()
    program = Program(ALL_CHAINS[name])
    iterates = any(move.source == move.target and move.mark for move in program.automaton.transitions)
    # Without a limit, an iteration has up to 2^(events / 3) matches at one event.
    count = 300 if limit else 150 if name in SEVERAL else 30 if iterates else 60
    wanted: list[Any] = []
    while not wanted:  # a short stream may have none
        rows = [
            Row(rng.choice("ABC"), moment, None if rng.random() < 0.05 else rng.randrange(50), rng.randrange(4)) for moment in range(count)
        ]
        wanted = checked(program, rows, {"limit": limit, "window": 100}, texts=texts)
    assert len(wanted) > (count / 10 if limit and name in CHAINS else 0)
    whole = by_definition(program, rows, {"window": 100})
    listed = whole_of(program, rows[: len(whole)], {"window": 100}, whole, texts=texts)
    assert first_of(listed, limit) == [match for match in wanted if match[0][-1] < len(whole)]


def counts_of(evaluation: GuardedRun, rows: list[Row], *, texts: Texts, **how: Any) -> list[tuple[int, int]]:
    """(event, number of matches) of each trigger of one partition."""
    first, vetoed, slot = how.get("first", 0), how.get("vetoed"), how.get("slot", 0)
    slots = np.full(1, -1 if slot is None else slot, np.int32)
    batch = dataclasses.replace(events(rows, first=first, slots=slots, texts=texts), vetoed=vetoed)
    chunk = collect(list(evaluation.chunks(batch)))
    assert chunk.offsets.tolist() == list(range(len(chunk) + 1))
    assert not chunk.labels.any()
    counts = () if chunk.counts is None else chunk.counts
    return [(position, to_integer(count)) for position, count in zip(chunk.positions.tolist(), counts, strict=True)]


@pytest.mark.parametrize("variant", available())
def test_the_kernel_counts_the_matches_of_the_definition(variant: str) -> None:
    """In pieces, with restarts: what is known is of the events before, and goes with them."""
    drawn = Enough(share(CASES, variant), drawn_cases(f"kernel counts {variant}", length=60, once=True), given=10, many=1)
    for rng, program, rows in drawn:
        bounds, texts = {**random_bounds(rng), "limit": None}, Texts()
        vetoed = np.array([rng.random() < 0.2 for _ in rows]) if rng.random() < 0.3 else None
        whole = by_definition(program, rows, bounds, most=None)
        wanted = [(end, count) for end, count in whole.counts if vetoed is None or not vetoed[end]]

        def fresh(program: Program = program, bounds: dict[str, Any] = bounds, rng: random.Random = rng) -> GuardedCountRun:
            return GuardedCountRun(program, sizes=rng.choice((None, TINY)), variant=variant, **bounds)

        evaluation, found = fresh(), []
        cuts = sorted(rng.choices(range(len(rows) + 1), k=rng.choice((0, 0, 2))))
        for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True):
            found += counts_of(
                evaluation, rows[start:stop], texts=texts, first=start, vetoed=None if vetoed is None else vetoed[start:stop]
            )
            assert evaluation.memory_usage() > 0
            if rng.random() < 0.3:
                evaluation.expire(rows[min(stop, len(rows) - 1)].time)
            if rng.random() < 0.3:
                sections, evaluation = evaluation.dump(), fresh()
                evaluation.load(sections)
        assert found == wanted
        assert (evaluation.triggers, evaluation.matches) == (whole.triggers, len(wanted))
        drawn.seen["given"] += sum(count > 1 for _, count in wanted)
        drawn.seen["many"] += any(count > 100 for _, count in wanted)


def test_counts_of_partitions_are_separate() -> None:
    for rng, program, _ in cases("kernel counts slots", CASES // 2, once=True):
        bounds, texts = {**random_bounds(rng), "limit": None, "consume": Consumption.NONE}, Texts()
        streams = [random_rows(rng, 12) for _ in range(3)]
        evaluation = run_of(rng, program, bounds, GuardedCountRun)
        found = in_slots(rng, evaluation, streams, counts_of, texts)
        assert found == [by_definition(program, rows, bounds, most=None).counts for rows in streams]
        evaluation.release(np.arange(3))
        assert counts_of(evaluation, streams[0], texts=texts, slot=1) == found[0], "a slot that was released starts again"
        for number in (0, 1, 0):
            assert counts_of(evaluation, streams[number], texts=texts, slot=None) == found[number]


@pytest.mark.parametrize("variant", available())
def test_the_kernel_chooses_samples(variant: str) -> None:
    drawn = Enough(share(CASES, variant), drawn_cases(f"kernel sample {variant}"), chosen=3, several=1)
    for rng, program, drawn_rows in drawn:
        bounds, texts = {**random_bounds(rng), "limit": rng.choice((None, None, 2))}, Texts()
        sample = rng.choice((1, 2, 3))
        whole = by_definition(program, drawn_rows, bounds)
        rows = drawn_rows[: len(whole)]
        wanted = first_of(sampled(whole_of(program, rows, bounds, whole, texts=texts), sample), bounds["limit"])
        drawn.seen["chosen"] += any(count > sample for _, count in whole.counts)
        evaluation = GuardedRun(program, sizes=rng.choice((None, TINY)), variant=variant, sample=sample, **bounds)
        drawn.seen["several"] += evaluation.tables.repeats and len(wanted) > 1
        cut = rng.randrange(len(rows) + 1)
        found = [
            match
            for start, part in ((0, rows[:cut]), (cut, rows[cut:]))
            for match in matches_of(evaluation, part, texts=texts, first=start)
        ]
        assert found == wanted
        assert evaluation.matches == len(wanted)


def rising(*, same: bool = False) -> Program:
    """`A+ ; B` where each A is later than the one before; same: and has its value."""
    kept, asked = stores(r0=Now(T), r1=Now(W)), guard(0) | guard(1) * same
    moves = [
        Transition(0, 1, A, X, writes=kept),
        Transition(1, 1),
        Transition(1, 1, A | asked, X, writes=kept),
        Transition(1, 2, B, Y),
    ]
    return Program(automaton_of(moves, Elapsed(Before(0), T, Interval(1, None)), Compares(Before(1), "=", W), registers=2))


def match_of_rising(rank: int, clicks: list[int]) -> tuple[int, ...]:
    """The positions of a match of `A+ ; B` but for the last, by its place among all: those that end in the last A come first, of these {A} alone."""
    found: list[int] = []
    while rank >= 0:
        *clicks, last = clicks
        if rank < 1 << len(clicks):
            found.append(last)
            rank -= 1
        else:
            rank -= 1 << len(clicks)
    return tuple(reversed(found))


@pytest.mark.parametrize("window", [None, 280])
def test_numbers_of_any_length_are_exact(window: int | None) -> None:
    """Of the A in the window each may be in a match: 2^n - 1, and each sample is known by the places of its matches."""
    texts, count = Texts(), 300
    rows = [Row("B" if moment % 75 == 74 else "A", moment, w=0) for moment in range(count)]
    clicks = {
        end: [moment for moment in range(end) if rows[moment].type == "A" and (window is None or end - moment <= window)]
        for end in range(74, count, 75)
    }
    wanted = [(end, (1 << len(own)) - 1) for end, own in clicks.items()]
    assert wanted[-1][1] > 1 << 250
    places = [(end, place) for end, number in wanted for place in spread(number, 9, end)]
    matches = [(*match_of_rising(place, clicks[end]), end) for end, place in places]
    for variant in available() if window is None else FAST:
        for sizes in (None, TINY):
            assert counts_of(GuardedCountRun(rising(), window=window, variant=variant, sizes=sizes), rows, texts=texts) == wanted
        found = matches_of(GuardedRun(rising(), window=window, sample=9, variant=variant), rows, texts=texts)
        assert [positions for positions, _ in found] == matches


def choices(name: str) -> Iterator[tuple[random.Random, ChoiceProgram, dict[str, Any], list[Row]]]:
    """Choices, within bounds, and rows; without end."""
    for rng, every, rows in drawn_cases(name):
        shown = rng.choice((None, None, frozenset("x"), frozenset("yz")))
        yield rng, ChoiceProgram(every.automaton, rng.choice((Strategy.NXT, Strategy.LAST, Strategy.MAX)), shown), random_bounds(rng), rows


@pytest.mark.parametrize("variant", available())
def test_the_kernel_chooses_what_the_definition_chooses(variant: str) -> None:
    """In pieces, with restarts and vetoes."""
    drawn = Enough(share(CASES, variant), choices(f"kernel choices {variant}"), given=10)
    for rng, program, bounds, drawn_rows in drawn:
        texts = Texts()
        whole = by_definition(program, drawn_rows, bounds, most=500)
        rows = drawn_rows[: len(whole)]
        vetoed = np.array([rng.random() < 0.2 for _ in rows]) if rng.random() < 0.3 else None
        wanted = first_of(whole_of(program, rows, bounds, whole, texts=texts, vetoed=vetoed), bounds["limit"])

        def fresh(program: ChoiceProgram = program, bounds: dict[str, Any] = bounds, rng: random.Random = rng) -> GuardedChoiceRun:
            return GuardedChoiceRun(program, sizes=rng.choice((None, TINY)), variant=variant, **bounds)

        evaluation, found = fresh(), []
        cuts = sorted(rng.choices(range(len(rows) + 1), k=rng.choice((0, 0, 2))))
        for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True):
            part = None if vetoed is None else vetoed[start:stop]
            found += matches_of(evaluation, rows[start:stop], texts=texts, first=start, vetoed=part)
            assert evaluation.memory_usage() > 0
            if rows and rng.random() < 0.3:
                evaluation.expire(rows[min(stop, len(rows) - 1)].time)
            if rng.random() < 0.3:
                sections, evaluation = evaluation.dump(), fresh()
                evaluation.load(sections)
        assert found == wanted
        assert (evaluation.triggers, evaluation.matches) == (whole.triggers, len(wanted))
        drawn.seen["given"] += len(wanted)


def test_choices_of_partitions_are_separate() -> None:
    for rng, program, drawn, _ in itertools.islice(choices("kernel choices slots"), CASES // 2):
        bounds, texts = {**drawn, "consume": Consumption.NONE}, Texts()
        streams, wholes = short_streams(rng, program, bounds)
        evaluation = run_of(rng, program, bounds, GuardedChoiceRun)
        found = in_slots(rng, evaluation, streams, matches_of, texts)
        for own, rows, whole in zip(found, streams, wholes, strict=True):
            assert own == first_of(whole_of(program, rows, bounds, whole, texts=texts), bounds["limit"])
        evaluation.release(np.arange(3))
        assert matches_of(evaluation, streams[0], texts=texts, slot=1) == found[0], "a slot that was released starts again"
        assert matches_of(evaluation, streams[0], texts=texts, slot=None) == found[0]


def test_choices_in_long_streams_pass_many_windows() -> None:
    """What is known of the best supports is of events that leave, one after the other, and grows stale."""
    drawn = Enough(CASES // 4, choices("kernel choices long"), given=20, long=3)
    for rng, program, _, _ in drawn:
        texts, every = Texts(), random_rows(rng, 150)
        bounds = {"window": rng.randint(1, 6)} if rng.random() < 0.7 else {"count_window": rng.randint(2, 12)}
        whole = by_definition(program, every, bounds, most=300)
        rows = every[: len(whole)]
        evaluation, found = run_of(rng, program, bounds, GuardedChoiceRun), []
        for start in range(0, len(rows), 15):
            found += matches_of(evaluation, rows[start : start + 15], texts=texts, first=start)
        assert found == whole_of(program, rows, bounds, whole, texts=texts)
        drawn.seen["given"] += len(found)
        drawn.seen["long"] += len(rows) == len(every)


def long_stream(rng: random.Random) -> list[Row]:
    """120 events, of whose starts many are kept at once."""
    return [Row(rng.choice("ABC"), moment, None if rng.random() < 0.05 else rng.randrange(50), rng.randrange(4)) for moment in range(120)]


def chosen_alike(
    program: ChoiceProgram, rows: list[Row], bounds: Mapping[str, Any], variants: Iterable[str], *, texts: Texts
) -> list[Labelled]:
    """What all variants choose, from usual arrays and from the smallest ones: by the definition, as far as that can list the matches."""
    whole = by_definition(program, rows, bounds)
    listed = whole_of(program, rows[: len(whole)], bounds, whole, texts=texts)
    found = matches_of(GuardedChoiceRun(program, **bounds), rows, texts=texts)
    assert first_of(listed, bounds.get("limit")) == [match for match in found if match[0][-1] < len(whole)]
    for variant, sizes in itertools.product(variants, (None, TINY)):
        assert matches_of(GuardedChoiceRun(program, variant=variant, sizes=sizes, **bounds), rows, texts=texts) == found
    return found


@pytest.mark.parametrize("strategy", [Strategy.NXT, Strategy.LAST, Strategy.MAX])
@pytest.mark.parametrize("name", ALL_CHAINS)
def test_choices_in_large_windows_with_starts_out_of_order(name: str, strategy: Strategy) -> None:
    rng, texts = random.Random(f"{SEED} chosen {name}"), Texts()
    program = ChoiceProgram(ALL_CHAINS[name], strategy, None)
    drawn = Enough(1, triggers=5)  # a stream may have none
    for _ in drawn:
        rows = long_stream(rng)
        for window, variants in ((40, available()), (None, FAST)):
            drawn.seen["triggers"] += len(chosen_alike(program, rows, {"window": window}, variants, texts=texts))


def session(*, lower: int = 0) -> Automaton:
    """`A+[<= 5] ; B`, or with a lower bound."""
    moves = [
        Transition(0, 1, A, X, writes=stores(r0=Now(T))),
        Transition(1, 1),
        Transition(1, 1, A | guard(0), X, writes=stores(r0=Now(T))),
        Transition(1, 2, B | guard(0), Y),
    ]
    return automaton_of(moves, Elapsed(Before(0), T, Interval(lower, 5)))


def run_of_rising(least: int) -> Automaton:
    """`(A AS a FILTER a.v > prev(a).v):{least,}`, two labels for each event but the first."""
    kept = stores(r0=Now(V))
    moves = [Transition(0, 1, A, X, writes=kept)]
    for state in range(1, least):
        moves += [Transition(state, state + 1, A | guard(0), mark, writes=kept) for mark in (X, Y)]
    moves.append(Transition(least, least, A | guard(0), X, writes=kept))
    return automaton_of(moves, Compares(Before(0), "<", V), final=least)


@pytest.mark.parametrize("strategy", [Strategy.NXT, Strategy.LAST, Strategy.MAX])
@pytest.mark.parametrize("shown", [None, frozenset("x"), frozenset("y")])
def test_matches_whose_events_follow_each_other_directly_are_nested(strategy: Strategy, shown: frozenset[str] | None) -> None:
    """So NXT, LAST and MAX all choose the longest; its different marks are all given, and once where SELECT shows them as one."""
    rng, texts = random.Random(f"{SEED} nested {strategy} {shown}"), Texts()
    drawn = Enough(CASES // 4, given=20)
    for _ in drawn:
        program, window = ChoiceProgram(run_of_rising(3), strategy, shown), rng.choice((None, 3))
        rows = [Row(rng.choice("AAAAAAAB"), moment, rng.randrange(30) if rng.random() < 0.2 else moment) for moment in range(30)]
        limit = rng.choice((None, 3)) if shown is None else None
        bounds = {"window": window, "limit": limit}
        whole = by_definition(program, rows, bounds, most=20_000)
        rows = rows[: len(whole)]
        wanted = first_of(whole_of(program, rows, bounds, whole, texts=texts), limit)
        drawn.seen["given"] += len(wanted)
        evaluation = run_of(rng, program, bounds, GuardedChoiceRun)
        assert matches_of(evaluation, rows, texts=texts) == wanted
        assert evaluation.matches == len(wanted)


@pytest.mark.parametrize(
    ("strategy", "lower"),
    [(Strategy.NXT, 0), (Strategy.LAST, 0), (Strategy.MAX, 0), (Strategy.NXT, 2), (Strategy.LAST, 2), (Strategy.MAX, 2)],
)
def test_sessions_are_chosen(strategy: Strategy, lower: int) -> None:
    """Long ones, and those before them, which no cell goes on from. With a lower bound, some clicks go together, in many ways."""
    program, texts, length = ChoiceProgram(session(lower=lower), strategy, None), Texts(), 10 if lower else 40
    rows = [Row("B" if moment % length == length - 1 else "A", moment + moment // (2 * length) * 10) for moment in range(4 * length)]
    wanted = chosen_alike(program, rows, {}, available(), texts=texts)
    assert wanted
    first, both = tuple(range(40)), tuple(place for place in range(80) if place != 39)
    sessions = [tuple(begin + place for place in own) for begin in (0, 80) for own in (first, both)]
    assert lower or [positions for positions, _ in wanted] == sessions


@pytest.mark.parametrize("name", ALL_CHAINS)
def test_large_windows_are_counted_and_sampled_with_starts_out_of_order(name: str) -> None:
    rng, texts = random.Random(f"{SEED} counted {name}"), Texts()
    program = Program(ALL_CHAINS[name])
    drawn = Enough(1, triggers=5)  # a stream may have none
    for _ in drawn:
        rows = long_stream(rng)
        for window, variants in ((45, available()), (None, FAST)):
            wanted = by_definition(program, rows, {"window": window}, most=None).counts
            drawn.seen["triggers"] += len(wanted)
            for variant in variants:
                assert counts_of(GuardedCountRun(program, window=window, variant=variant), rows, texts=texts) == wanted
            checked(program, rows, {"window": window, "sample": 5}, texts=texts, variants=variants)
            whole = by_definition(program, rows, {"window": window})
            own = rows[: len(whole)]
            listed = sampled(whole_of(program, own, {"window": window}, whole, texts=texts), 5)
            assert matches_of(GuardedRun(program, window=window, sample=5), own, texts=texts) == listed


PAIR = [Transition(0, 1, A, X, writes=stores(r0=Now(T))), Transition(1, 1), Transition(1, 2, B | guard(0), Y)]
SOON = Elapsed(Before(0), T, Interval(0, 400))
COUNTED_ONCE = {
    "nothing leaves": (chain(SOON, value=T, kinds=(A, B, A)), None),
    "an iteration": (rising().automaton, None),
    "what leaves is all that began there": (automaton_of(PAIR, SOON), 500),
}


@pytest.mark.parametrize("name", COUNTED_ONCE)
def test_what_has_been_counted_is_not_counted_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work of 100 events, as the kernel takes it from its budget: by how often it returns."""
    automaton, window = COUNTED_ONCE[name]
    rows, texts = [Row("B" if moment % 3 == 2 else "A", moment) for moment in range(1_500)], Texts()
    calls = []
    called = GuardedCountRun._call
    monkeypatch.setattr(GuardedCountRun, "_call", lambda self: calls.append(self) or called(self))
    work = {}
    for known in (True, False):
        evaluation = GuardedCountRun(Program(automaton), window=window)
        counts_of(evaluation, rows[:-100], texts=texts)
        evaluation._set("budget", 50)
        calls.clear()
        for moment in range(1_400, 1_500):
            if not known:
                evaluation._set("counted", 0)
            counts_of(evaluation, rows[moment : moment + 1], texts=texts, first=moment)
        assert evaluation.matches > 400
        work[known] = len(calls)
    assert work[True] < 300
    assert work[False] > 3 * work[True]


def test_a_kernel_that_counts_returns_for_whoever_waits() -> None:
    rows, texts = [Row("B" if moment % 50 == 49 else "A", moment, w=moment % 3) for moment in range(150)], Texts()
    wanted = by_definition(rising(same=True), rows, {}, most=None).counts
    for variant in available():
        evaluation = GuardedCountRun(rising(same=True), variant=variant)
        evaluation._set("budget", 3)
        assert counts_of(evaluation, rows, texts=texts) == wanted


def test_a_kernel_that_chooses_returns_for_whoever_waits() -> None:
    texts = Texts()
    for strategy in (Strategy.NXT, Strategy.LAST):
        program = ChoiceProgram(CHAINS["< of values"], strategy, None)
        rows = [Row("ABC"[moment % 3], moment, moment * 7 % 50) for moment in range(300)]
        wanted = chosen_alike(program, rows, {"window": 90}, (), texts=texts)
        assert len(wanted) > 50
        for variant in available():
            evaluation = GuardedChoiceRun(program, window=90, variant=variant)
            evaluation._set("budget", 3)
            assert matches_of(evaluation, rows, texts=texts) == wanted


def test_numbers_that_are_too_long_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cepheid.engine.evaluations.counts.counting.COUNT_LIMBS", 2)
    rows = [Row("A", moment, w=0) for moment in range(200)] + [Row("B", 200)]
    with pytest.raises(LimitError, match="COUNT_LIMBS"):
        counts_of(GuardedCountRun(rising()), rows, texts=Texts())


def test_values_at_the_ends_of_their_type_are_compared() -> None:
    least, most = -(1 << 63), (1 << 63) - 1
    for operator in ("<", "<=", ">", ">=", "!="):
        program = Program(chain(Compares(Before(0), operator, V), value=V))
        texts = Texts()
        rng = random.Random(f"{SEED} ends {operator}")
        found = 0
        for _ in range(20):
            rows = [Row(rng.choice("ABC"), moment, rng.choice((least, least + 1, 0, most - 1, most, None))) for moment in range(60)]
            whole = by_definition(program, rows, {}, most=20_000)
            assert len(whole) == len(rows)
            wanted = whole_of(program, rows, {}, whole, texts=texts)
            for variant in available():
                assert matches_of(GuardedRun(program, variant=variant), rows, texts=texts) == wanted
            found += len(wanted)
            if found:
                break
        assert found, operator


def forged(rng: random.Random, section: bytes) -> bytes:
    found = np.frombuffer(section, "<i8").copy()
    place = rng.randrange(len(found))
    old = min(int(found[place]), (1 << 62) - 1)
    found[place] = rng.choice((0, 1, -1, old + 1, old - 1 if old > -(1 << 62) else 0, 1 << 40, int(rng.choice(found.tolist()))))
    return found.tobytes()


@pytest.mark.skipif("checked" not in available(), reason="only the checked kernel says where it reads outside")
@pytest.mark.parametrize("kind", [GuardedRun, GuardedCountRun, GuardedChoiceRun])
def test_forged_states_of_the_kernel_are_refused_or_run(kind: type[GuardedRun]) -> None:
    name = f"kernel forged {kind.__name__}"
    source: Any = drawn_cases(name, length=14, once=kind is GuardedCountRun)
    if kind is GuardedChoiceRun:
        source = ((rng, program, rows[:14]) for rng, program, _, rows in choices(name))
    drawn = Enough(2 * CASES, source, refused=5, ran=5)
    for rng, program, rows in drawn:
        bounds, texts = {"window": rng.choice((None, 5)), "limit": None if kind is GuardedChoiceRun else 100}, Texts()
        cut = rng.randint(2, len(rows) - 1)
        evaluation = kind(program, **bounds)
        matches_of(evaluation, rows[:cut], texts=texts)
        sections = evaluation.dump()
        for name in rng.choices([name for name, section in sections.items() if section and name != "guarded_macros"], k=rng.randint(1, 3)):
            sections[name] = forged(rng, sections[name])
        fresh = kind(program, variant="checked", **bounds)
        fresh.ensure_slots(1)
        try:
            fresh.load(sections)
            known = texts.knows(fresh.texts_in(sections))  # as `around.valued` asks
        except SnapshotError:
            known = False
        if not known:
            drawn.seen["refused"] += 1
            continue
        begun = time.monotonic()
        for positions, _ in matches_of(fresh, rows[cut:], texts=texts, first=cut):
            assert list(positions) == sorted(positions)
        fresh.dump()
        assert time.monotonic() - begun < 60
        drawn.seen["ran"] += 1


def test_a_state_of_other_macro_states_is_refused() -> None:
    sections = GuardedRun(Program(CHAINS["gaps"])).dump()
    with pytest.raises(SnapshotError):
        GuardedRun(Program(CHAINS["equality"])).load(sections)


def test_a_value_that_was_asked_to_be_equal_is_one_of_the_event() -> None:
    """`D ; A AS x ; B AS y ; C AS z FILTER y.id = x.id AND z.id = x.id`, without D."""
    moves = [
        Transition(0, 1, A, X, writes=stores(r0=Now(W))),
        Transition(1, 1),
        Transition(1, 2, B | guard(0), Y),
        Transition(2, 2),
        Transition(2, 3, C | guard(0), Z),
    ]
    program = Program(automaton_of(moves, Compares(Before(0), "=", W)))
    rng, texts = random.Random(f"{SEED} kept"), Texts()
    rows = [Row(rng.choice("ABC"), moment, 0, None if rng.random() < 0.05 else rng.randrange(3)) for moment in range(80)]
    assert len(checked(program, rows, {"window": 30}, texts=texts)) > 10


STARTS: dict[str, Callable[[Automaton], Any]] = {
    "all": lambda automaton: guarded(Program(automaton)),
    "a sample": lambda automaton: guarded(Program(automaton), sample=2),
    "their number": lambda automaton: guarded_counts(Program(automaton)),
    "a choice": lambda automaton: guarded_choice(ChoiceProgram(automaton, Strategy.LAST, None)),
}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(("limit", "most"), [("MACROS", 2), ("TESTED", 0), ("SHAPE_BITS", 1), ("UNMARKED", 0)])
def test_what_passes_a_limit_of_the_tables_is_an_error(start: str, limit: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_tables, limit, most)
    with pytest.raises(LimitError, match=rf"\({limit}\)"):
        STARTS[start](dataclasses.replace(CHAINS["gaps"]))


@pytest.mark.parametrize("length", [61, 62, 63, 255, 256, 257, 520])
def test_hundreds_of_macro_states(length: int) -> None:
    """A's that follow each other by one each: at each event, the last `length` of them."""
    kept = stores(r0=Now(T))
    moves = [Transition(0, 1, A, X, writes=kept)]
    for state in range(1, length):
        moves += [Transition(state, state), Transition(state, state + 1, A | guard(0), X, writes=kept)]
    program = Program(automaton_of(moves, Elapsed(Before(0), T, Interval(1, 1))))
    rows = [Row("A", moment) for moment in range(length + 20)]
    for variant in FAST:
        found = matches_of(GuardedRun(program, variant=variant), rows, texts=Texts())
        assert [positions for positions, _ in found] == [tuple(range(first, first + length)) for first in range(21)]


def test_each_way_to_ask_has_a_run() -> None:
    kinds = {"all": GuardedRun, "a sample": GuardedRun, "their number": GuardedCountRun, "a choice": GuardedChoiceRun}
    assert {name: type(start(CHAINS["gaps"])) for name, start in STARTS.items()} == kinds


def long_chain(rng: random.Random, states: int) -> Program:
    """Events that follow each other soon; on the way some end partial matches, or move them on without being marked."""
    moves = [Transition(0, 1, A, X, writes=stores(r0=Now(T)))]
    for state in range(1, states):
        moves.append(Transition(state, state + 1, A | guard(0), rng.choice((X, Y)), writes=stores(r0=Now(T))))
        way = rng.random()
        if way < 0.7:
            moves.append(Transition(state, state, forbids=0 if way < 0.4 else C))
        if 0.6 < way < 0.7 and state + 1 < states:
            moves.append(Transition(state, state + 1, C, None))
    return Program(trim(automaton_of(moves, Elapsed(Before(0), T, Interval(0, rng.choice((3, 5)))))))


@pytest.mark.parametrize("variant", FAST)
def test_macro_states_that_share_a_bit(variant: str) -> None:
    rng = random.Random(f"{SEED} long {variant}")
    drawn = Enough(share(CASES // 20, variant), itertools.count(), given=1, shared=1, apart=1)
    for number in drawn:
        apart = number > 0
        states, texts = rng.randint(64, 75) if apart else rng.randint(95, 105), Texts()
        program = long_chain(rng, states)
        rows = [dataclasses.replace(row, type=rng.choice("A" * 28 + "BC")) for row in random_rows(rng, 8 * states // 7)]
        bounds = random_bounds(rng) | {
            "window": rng.choice((None, 80)) if apart else None,
            "count_window": None,
            "limit": rng.choice((0, 1, 2)),
        }
        fast, found = GuardedRun(program, variant=variant, **bounds), []
        whole = by_definition(program, rows, bounds, most=None, apart=apart)
        for start in range(0, len(rows), 67):
            found += matches_of(fast, rows[start : start + 67], texts=texts, first=start)
            drawn.seen["shared"] += int(np.any(fast.store.plain(fast.store.used)[:, LIVE] >> guarded_tables.REST & 1))
            sections, fast = fast.dump(), GuardedRun(program, variant=variant, **bounds)
            fast.load(sections)
        assert found == matches_of(GuardedRun(program, sizes=TINY, variant=variant, **bounds), rows, texts=texts)
        matches = by_end(named(program, found))
        assert {end: len(set(own)) for end, own in matches.items()} == {
            end: min(count, bounds["limit"]) for end, count in whole.counts if bounds["limit"]
        }
        for end, own in matches.items():
            assert len(own) == len(set(own))
            assert not apart or own[0][0][0] == max(whole.begins[end])
            assert all(is_match(program.automaton, rows, match) for match in own)
        assert fast.triggers == whole.triggers
        drawn.seen["given"] += len(found)
        drawn.seen["apart"] += apart and len(found) > 0
        bounds |= {"limit": None}
        assert counts_of(GuardedCountRun(program, variant=variant, **bounds), rows, texts=texts) == whole.counts


@pytest.mark.parametrize("variant", available())
def test_where_the_match_begins_that_begins_last(variant: str) -> None:
    """Where any event may say so, by its value `v`: of what begins later than any before, in pieces with restores."""
    drawn = Enough(share(CASES, variant), drawn_cases(f"begins {variant}", length=12), earlier=5, several=2)
    for rng, whole, drawn_rows in drawn:
        program = Program(spans(whole.automaton, V, inside=rng.random() < 0.5))
        rows = [dataclasses.replace(row, v=rng.randint(max(0, place - 4), place)) for place, row in enumerate(drawn_rows)]
        begun, wanted = -1, []
        for end, ended in enumerate(simulated(program.automaton, rows)):
            begins = [
                min(rows[place].v for place, mark in zip(positions, marks, strict=True) if mark or place == positions[0])
                for positions, marks in ended
            ]
            drawn.seen["several"] += len(set(begins)) > 1
            drawn.seen["earlier"] += any(begin < positions[0] for begin, (positions, _) in zip(begins, ended, strict=True))
            if max(begins, default=-1) > begun:
                begun = max(begins)
                wanted.append((begun, end))
        cut, texts, found = rng.randint(0, len(rows)), Texts(), []
        sizes = rng.choice((None, TINY))
        run = GuardedBeginsRun(program, sizes=sizes, variant=variant, limit=1)
        for first, stop in ((0, cut), (cut, len(rows))):
            found += [positions for positions, _ in matches_of(run, rows[first:stop], texts=texts, first=first)]
            sections, run = run.dump(), GuardedBeginsRun(program, sizes=sizes, variant=variant, limit=1)
            run.load(sections)
        assert found == wanted


@pytest.mark.parametrize(("limit", "most"), [("MOST_REGIONS", 0), ("MOST_REGIONS", 20), ("MOST_COMBINED", 2)])
def test_fewer_configurations_share_a_macro_state(limit: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there would be many regions, or combinations of conditions: the same matches, each once."""
    monkeypatch.setattr(guarded_tables, limit, most)
    drawn = Enough(CASES, drawn_cases(f"shared {limit} {most}", length=12), given=20, several=2, fewer=2)
    for rng, program, drawn_rows in drawn:
        bounds, texts = random_bounds(rng) | {"limit": None}, Texts()
        whole = by_definition(program, drawn_rows, bounds)
        found = whole_of(program, drawn_rows[: len(whole)], bounds, whole, texts=texts)
        tables = GuardTables(program)
        drawn.seen["given"] += len(found)
        drawn.seen["several"] += tables.repeats
        drawn.seen["fewer"] += tables.regions.shared < regions.SHARED_LIMIT


def test_events_without_values_are_refused() -> None:
    evaluation = GuardedRun(Program(CHAINS["gaps"]))
    plain = events([Row("A", 1)])
    with pytest.raises(NotSupportedError, match="events without values"):
        list(evaluation.chunks(type(plain)(plain.letters, plain.times)))


def test_a_partition_that_grows_too_large_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cepheid.engine.memory.blocks.BLOCK_LIMIT", 1 << 9)
    evaluation = GuardedRun(Program(CHAINS["gaps"]))
    with pytest.raises(LimitError, match="BLOCK_LIMIT"):
        matches_of(evaluation, [Row("A", moment) for moment in range(200)], texts=Texts())


# ----------------------------------------------------------------------------------------------------------------- unmarked moves


def moving(*, asked: int = 0, back: bool = False, kept: frozenset[Any] = frozenset(), carried: bool = True) -> Automaton:
    """`PROJECT x, z (A AS x ; B ; C AS z)`; back: a second B takes back what the first did. asked: guards of B; kept: what B stores."""
    moves = [
        Transition(0, 1, A, X, writes=stores(r0=Now(V))),
        *(
            [Transition(1, 1, forbids=B), Transition(2, 2, forbids=B), Transition(2, 1, B)]
            if back
            else [Transition(1, 1), Transition(2, 2)]
        ),
        Transition(1, 2, B | asked, writes=kept),
        Transition(2, 3, C | guard(0) * carried, Z),
    ]
    return automaton_of(moves, Compares(Before(0), "<", V), Compares(Before(1), "<", V), Compares(Before(0), "=", W), registers=2)


MOVING = {
    "nothing is asked": moving(carried=False),
    "a value is carried": moving(),
    "the event is compared": moving(asked=guard(0)),
    "an equality": moving(asked=guard(2)),
    "a value of the event is kept": moving(kept=stores(r1=Now(V))),
    "there and back": moving(back=True),
    "there and back without a value": moving(back=True, carried=False),
    "each event is kept": automaton_of(
        [
            Transition(0, 1, A, Z, writes=stores(r1=Now(V))),
            Transition(1, 1, writes=stores(r0=Now(V), r1=Now(V))),
            Transition(1, 1, C, X),
            Transition(1, 2, mark=Y, forbids=guard(0)),
        ],
        Compares(Before(0), "=", V),
        registers=2,
    ),
}
"""Events B that are not marked."""


def unmarked_cells(evaluation: GuardedRun) -> int:
    """How many there are in all partitions."""
    _, places = evaluation.store.places(evaluation.store.held_rows, 1)
    kinds = evaluation.store.words[places + guarded_tables.CELL.index("kind")]
    return int(np.count_nonzero(kinds & guarded_tables.LABELS == guarded_tables.UNMARKED))


def words_of_sets(evaluation: GuardedRun) -> int:
    """How many the sets of values have that were made since the last ones were forgotten."""
    fields = evaluation.kernel.FIELDS
    return int(evaluation._vector[fields.index("fresh")]) - evaluation._sets.first


IN_PIECES: dict[str, tuple[Callable[[GuardTables], bool], Callable[[GuardedRun], int]]] = {
    "moving": (lambda tables: tables.passes, unmarked_cells),
    "sets": (lambda tables: any(tables.sets), words_of_sets),
}
"""Programs where unmarked moves make cells, and where partial matches keep sets; and what there is of these in an evaluation."""


@pytest.mark.parametrize("variant", available())
@pytest.mark.parametrize("what", IN_PIECES)
def test_random_programs_in_pieces_with_restarts(what: str, variant: str) -> None:
    has, made = IN_PIECES[what]
    source = (case for case in drawn_cases(f"kernel {what} {variant}") if has(GuardTables(case[1])))
    drawn = Enough(share(CASES, variant), source, given=20, made=10, counted=10, chosen=10)
    for rng, program, drawn_rows in drawn:
        bounds, texts, sizes = {**random_bounds(rng), "limit": None}, Texts(), rng.choice((None, TINY))
        choice = ChoiceProgram(program.automaton, rng.choice((Strategy.NXT, Strategy.LAST)), None)
        whole = by_definition(program, drawn_rows, bounds)
        rows = drawn_rows[: len(whole)]
        ways: list[Any] = [
            (GuardedRun, program, matches_of, "given", whole_of(program, rows, bounds, whole, texts=texts)),
            (GuardedChoiceRun, choice, matches_of, "chosen", whole_of(choice, rows, bounds, whole, texts=texts)),
        ]
        if not GuardTables(program).repeats:
            ways.append((GuardedCountRun, program, counts_of, "counted", whole.counts))
        for kind, asked, give, name, wanted in ways:
            evaluation, found = kind(asked, sizes=sizes, variant=variant, **bounds), []
            cuts = sorted(rng.choices(range(len(rows) + 1), k=rng.choice((0, 2, 4))))
            for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True):
                found += give(evaluation, rows[start:stop], texts=texts, first=start)
                drawn.seen["made"] += made(evaluation) > 0
                if rng.random() < 0.5:
                    sections, evaluation = evaluation.dump(), kind(asked, sizes=sizes, variant=variant, **bounds)
                    texts.keep([evaluation.texts_in(sections)])
                    evaluation.load(sections)
            assert found == wanted
            drawn.seen[name] += len(found) > 1


def elsewhere(value: Any, *, iterates: bool = False, more: Any = None) -> Automaton:
    """`A+ ; C` or `A+ ; B+ ; C`, where C differs from each A in one value, or in two."""
    values = [value] if more is None else [value, more]
    first = {f"r{number}": Gathered("set", None, each) for number, each in enumerate(values)}
    later = {f"r{number}": Gathered("set", Before(number), each) for number, each in enumerate(values)}
    asked = sum(guard(number) for number in range(len(values)))
    moves = [
        Transition(0, 1, A, X, writes=stores(**first)),
        Transition(1, 1),
        Transition(1, 1, A, X, writes=stores(**later)),
        Transition(1, 2, C | asked, Z),
    ]
    if iterates:
        moves = [*moves[:3], Transition(1, 2, B, Y), Transition(2, 2), Transition(2, 2, B, Y), Transition(2, 3, C | asked, Z)]
    return automaton_of(
        moves, *(Compares(Before(number), "!=", each) for number, each in enumerate(values)), registers=len(values), final=2 + iterates
    )


SETS = {
    "numbers": elsewhere(V),
    "texts": elsewhere(NAME),
    "both": elsewhere(V, more=NAME),
    "a set that is carried": elsewhere(NAME, iterates=True),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("values", [3, 1 << 40])
def test_sets_of_values_in_long_streams(name: str, values: int) -> None:
    """Few values or new ones all the time, with snapshots, texts that are given back, and room for sets that no cell has any more."""
    rng = random.Random(f"{SEED} {name} {values}")
    program, drawn = Program(SETS[name]), Enough(1, given=5)
    for _ in drawn:
        bounds = {"window": rng.randint(4, 7)}
        rows = [
            Row(
                rng.choice("AABC"),
                moment,
                None if rng.random() < 0.05 else rng.randrange(values),
                name=None if rng.random() < 0.05 else str(rng.randrange(values)),
            )
            for moment in range(600)
        ]
        whole = by_definition(program, rows, bounds)
        assert len(whole) == len(rows)
        every = whole_of(program, rows, bounds, whole, texts=Texts())
        for kind, give, limit, wanted in (
            (GuardedRun, matches_of, 20, first_of(every, 20)),
            (GuardedCountRun, counts_of, None, whole.counts),
        ):
            texts, found = Texts(), []
            evaluation = kind(program, variant=rng.choice(FAST), limit=limit, **bounds)
            for start in range(0, 600, 60):
                found += give(evaluation, rows[start : start + 60], texts=texts, first=start)
                if rng.random() < 0.4:
                    sections = evaluation.dump()
                    evaluation = kind(program, variant=rng.choice(FAST), limit=limit, **bounds)
                    texts.keep([evaluation.texts_in(sections)])
                    evaluation.load(sections)
                    assert len(evaluation.dump()["guarded_sets"]) == len(sections["guarded_sets"])
            assert found == wanted
            drawn.seen["given"] += len(found) > 0
        forgetting, keeping = (
            _most_words(GuardedCountRun(program, sizes=sizes, **bounds), rows) for sizes in (None, GuardSizes(sets=1 << 23))
        )
        assert forgetting < keeping or keeping <= guarded_sets.FIRST_ROOM


def _most_words(evaluation: GuardedRun, rows: list[Row]) -> int:
    """Words of sets that there are at most; with room for all, those of all that are made."""
    texts, most = Texts(), 0
    for start in range(0, len(rows), 60):
        counts_of(evaluation, rows[start : start + 60], texts=texts, first=start)
        most = max(most, words_of_sets(evaluation))
    return most


@pytest.mark.parametrize("variant", available())
def test_many_sets_of_values_are_an_error(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first event that makes more groups than the limit, with their number; up to it each match is given."""
    texts, rng = Texts(), random.Random(f"{SEED} many sets")
    drawn = Enough(share(CASES, variant), refused=3, given=3)
    for _ in drawn:
        limit = rng.choice((3, 7, 20, 200))
        monkeypatch.setattr(guarded_sets, "SETS_LIMIT", limit)
        program = Program(SETS[rng.choice(list(SETS))])
        bounds = {"window": rng.choice((None, 8))}
        rows = [Row(rng.choice("AAABC"), moment, rng.randrange(rng.choice((3, 50))), name=rng.choice("abcdef")) for moment in range(15)]
        whole = by_definition(program, rows, bounds, most=None)
        evaluation, refused = GuardedRun(program, variant=variant, limit=1, **bounds), False
        for place, row in enumerate(rows):
            many = [number for number in whole.groups[place] if number > limit]
            if many:
                with pytest.raises(LimitError, match=f"leads to ({'|'.join(map(str, many))}) groups"):
                    matches_of(evaluation, [row], texts=texts, first=place)
                refused = True
                break
            found = matches_of(evaluation, [row], texts=texts, first=place)
            assert [positions[0] for positions, _ in found] == sorted(whole.begins[place])[-1:]
        drawn.seen["refused" if refused else "given"] += 1


@pytest.mark.parametrize("name", MOVING)
def test_unmarked_moves_in_large_windows(name: str) -> None:
    """The cells in a ring that is full and grows, or of which half is freed, with starts out of order."""
    rng, texts = random.Random(f"{SEED} moved {name}"), Texts()
    count = 120 if name == "each event is kept" else 250  # there, partial matches are many
    drawn = Enough(1, given=5)  # a stream may have none
    for _ in drawn:
        rows = [
            Row(rng.choice("AABC"), moment, None if rng.random() < 0.05 else rng.randrange(50), rng.randrange(50))
            for moment in range(count)
        ]
        program = Program(MOVING[name])
        for bounds in ({"window": 30}, {"count_window": 90, "limit": 7}, {"limit": 5}, {"window": 60, "sample": 4}):
            drawn.seen["given"] += len(checked(program, rows, bounds, texts=texts))
        wanted = by_definition(program, rows, {"window": 60}, most=None).counts
        for variant in available():
            assert counts_of(GuardedCountRun(program, variant=variant, window=60), rows, texts=texts) == wanted
        for strategy in (Strategy.NXT, Strategy.LAST):
            chosen_alike(ChoiceProgram(program.automaton, strategy, None), rows, {"window": 60}, available(), texts=texts)


@pytest.mark.parametrize("strategy", [Strategy.NXT, Strategy.LAST, Strategy.MAX])
@pytest.mark.parametrize("name", [*ALL_CHAINS, *sorted(MOVING.keys() - {"each event is kept"})])
def test_choices_where_supports_lack_events_that_are_hidden(name: str, strategy: Strategy) -> None:
    """PROJECT hides where matches begin, or end: equal supports begin at different events, or have none."""
    rng, texts = random.Random(f"{SEED} hidden {name} {strategy}"), Texts()
    automaton = (ALL_CHAINS | MOVING)[name]
    drawn = Enough(5, map(frozenset, itertools.cycle(("x", "xz", "z"))), triggers=5)  # a stream may have none
    for hidden in drawn:
        moves = [
            move if move.mark is None or not move.mark & hidden or rng.random() < 0.2 else dataclasses.replace(move, mark=frozenset())
            for move in automaton.transitions
        ]
        program = ChoiceProgram(dataclasses.replace(automaton, transitions=order(moves)), strategy, rng.choice((None, frozenset("y"))))
        rows = long_stream(rng)[:60]
        for bounds in ({"window": 20}, {"count_window": 15, "limit": 3}, {"limit": 9}):
            drawn.seen["triggers"] += len(chosen_alike(program, rows, bounds, FAST, texts=texts))


@pytest.mark.parametrize("name", ["the event is compared", "there and back", "there and back without a value"])
def test_cells_of_unmarked_events_that_nothing_leads_to_are_freed(name: str) -> None:
    """40 partial matches, moved 2,000 times: without a window, their cells and chains stay as few as they are."""
    texts, program = Texts(), Program(MOVING[name])
    rows = [Row("A", moment, 1_000 + moment) for moment in range(40)] + [Row("B", 40 + moment, moment % 900) for moment in range(2_001)]
    for variant in FAST:
        evaluation = GuardedRun(program, variant=variant)
        matches_of(evaluation, rows, texts=texts)
        (head, tail), *_ = evaluation.store.lines(np.array([1]), 1)[:, :2]
        assert tail - head <= 256
        fresh = GuardedRun(program, variant=variant)
        fresh.load(evaluation.dump())
        after = [Row("B", 2_041, 2_000), Row("C", 2_042, 2_000)]
        last = after if name == "the event is compared" else after[1:]
        assert len(matches_of(fresh, last, texts=texts, first=2_041)) == 40
        assert fresh._get("walked") < 400


# ----------------------------------------------------------------------------------------------------------------- values that are carried


def cells_of(evaluation: GuardedRun) -> int:
    """How many cells the partition of slot 0 has made."""
    return int(evaluation.store.lines(np.array([1]), 1)[0, 1])


def test_groups_with_equal_values_are_one_cell_of_an_event() -> None:
    """300 events begin matches, with 3 values and NULL; an event that carries them makes 4 cells, however many it goes on from."""
    texts = Texts()
    rows = [Row("A", moment, 0, (0, 1, 2, None)[moment % 4]) for moment in range(300)]
    for variant in available():
        evaluation = GuardedRun(Program(CARRYING["a difference"]), variant=variant)
        matches_of(evaluation, rows, texts=texts)
        before = cells_of(evaluation)
        for place in range(5):
            matches_of(evaluation, [Row("B", 300 + place)], texts=texts, first=300 + place)
        assert cells_of(evaluation) - before == 5 * 4


@pytest.mark.parametrize("name", ["an equality", "an equality in iterations", "two values"])
def test_an_event_carries_more_values_than_there_was_room_for(name: str) -> None:
    """The event is read again, and the kernel returns in between: nothing is there twice."""
    rng, texts = random.Random(f"{SEED} many {name}"), Texts()
    ids = rng.sample(range(700), 700)
    rows = [Row("A", moment, rng.randrange(9), each) for moment, each in enumerate(ids)]
    rows += [Row("B", 700), Row("A", 701, 3, 5), Row("B", 702), *(Row("C", 703 + each, 5, each) for each in range(0, 700, 20))]
    program = Program(CARRYING[name])
    wanted = matches_of(GuardedRun(program), rows, texts=texts)
    assert len(wanted) > 20
    counts = by_definition(program, rows, {}, most=None).counts
    assert [(end, len(set(own))) for end, own in by_end(named(program, wanted)).items()] == counts
    assert len(wanted) == len(set(wanted))
    assert all(is_match(program.automaton, rows, match) for match in named(program, wanted))
    for variant in available():
        evaluation = GuardedRun(program, sizes=TINY, variant=variant)
        evaluation._set("budget", 1)
        assert matches_of(evaluation, rows, texts=texts) == wanted


def test_many_matches_end_in_the_groups_of_one_event() -> None:
    """Two labels, each with a cell for each of 256 values that ends a match and goes on, and a third that ends: as many as a power of two, and one."""
    moves = [
        Transition(0, 1, A, X, writes=stores(r0=Now(W))),
        Transition(1, 1),
        *(Transition(1, target, B, mark) for target in (1, 2) for mark in (X, Y)),
        Transition(1, 2, B, Z),
        Transition(1, 2, C | guard(0), Z),
    ]
    program, texts = Program(automaton_of(moves, EQUAL)), Texts()
    rows = [*(Row("A", moment, 0, moment) for moment in range(256)), Row("B", 256), Row("C", 257, 0, 7)]
    assert len(checked(program, rows, {}, texts=texts)) > 3 * 256


def test_groups_out_of_order_are_entered_in_the_order_of_their_starts() -> None:
    """Values come again after others, so the newest entry of a group says nothing of its start; their cells meet in one macro state."""
    moves = [
        Transition(0, 1, A, X, writes=stores(r0=Now(W))),
        Transition(1, 1),
        Transition(1, 2, B, Y),
        Transition(1, 2, B, Z),
        Transition(2, 2),
        Transition(2, 1, B, Y),
        Transition(2, 3, C | guard(0), Z),
    ]
    program = Program(automaton_of(moves, EQUAL))
    rng, texts = random.Random(f"{SEED} out of order"), Texts()
    rows = [Row(rng.choice("AAAABBC"), moment, 0, rng.randrange(40)) for moment in range(250)]
    assert len(checked(program, rows, {"window": 120, "limit": 50}, texts=texts)) > 100


@pytest.mark.parametrize("window", [None, 280])
def test_groups_that_are_over_are_not_asked_again(window: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every A has a value of its own. Without a window, it is the gap that ends its group."""
    short = Elapsed(Before(0), T, Interval(0, 6))
    program = Program(
        carrying(short, Compares(Before(1), "=", W), begins=stores(r0=Now(T), r1=Now(W)), goes=guard(0), ends=guard(1))
        if window is None
        else CARRYING["a difference"]
    )
    texts, calls = Texts(), []
    called = GuardedRun._call
    monkeypatch.setattr(GuardedRun, "_call", lambda self: calls.append(self) or called(self))
    evaluation = GuardedRun(program, window=window)
    evaluation._set("budget", 60)
    work = []
    for begin in range(0, 3_000, 300):
        rows = [Row("B" if moment % 100 == 99 else "A", moment, 0, moment) for moment in range(begin, begin + 300)]
        calls.clear()
        matches_of(evaluation, rows, texts=texts, first=begin)
        work.append(len(calls))
    assert max(work[5:]) <= 1.2 * work[4], work
