"""The kernel of guards in all variants, against the evaluation in plain Python: the same matches in the same order, whatever is asked and restored."""

from __future__ import annotations

import itertools
import random
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from guard_cases import A, B, C, Match, Row, T, V, W, X, Y, Z, events, guard, random_automaton, random_rows, stores
from guard_cases import automaton as automaton_of
from pattern_cases import CASES, SEED

from cepheid.automata import Automaton, Program, Transition, trim
from cepheid.automata.registers import Before, Compares, Elapsed, Now
from cepheid.engine.evaluations import guarded_tables
from cepheid.engine.evaluations.base import collect
from cepheid.engine.evaluations.guarded import Guarded
from cepheid.engine.evaluations.guarded_run import GuardedRun, GuardSizes, guarded
from cepheid.engine.evaluations.guarded_tables import GuardTables, UnknownError
from cepheid.engine.letters.encoded import Texts
from cepheid.errors import LimitError, NotSupportedError, SnapshotError
from cepheid.kernel import available
from cepheid.language.syntax import Consumption
from cepheid.logical.plan import Interval

if TYPE_CHECKING:
    from collections.abc import Iterator

TINY = GuardSizes(places=1, chunk=2, chunk_positions=3, levels=1, queue=1, codes=2)


def matches_of(evaluation: Guarded | GuardedRun, rows: list[Row], *, texts: Texts, first: int = 0, slot: int | None = 0) -> list[Match]:
    """What one partition gives of a batch."""
    slots = np.full(1, -1 if slot is None else slot, np.int32)
    chunk = collect(list(evaluation.chunks(events(rows, first=first, slots=slots, texts=texts))))
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


def cases(name: str, count: int = CASES, *, length: int = 25) -> Iterator[tuple[random.Random, Program, list[Row]]]:
    """Programs that the kernel knows, and rows."""
    rng = random.Random(f"{SEED} {name}")
    done = 0
    while done < count:
        program = Program(trim(random_automaton(rng, plain=rng.random() < 0.5)))
        if any(move.target in program.automaton.finals for move in program.automaton.transitions) and known(program):
            done += 1
            yield rng, program, random_rows(rng, rng.randint(4, length))


def known(program: Program) -> bool:
    try:
        GuardTables(program)
    except UnknownError:
        return False
    return True


def run_of(rng: random.Random, program: Program, bounds: dict[str, Any]) -> GuardedRun:
    return GuardedRun(program, sizes=rng.choice((None, TINY)), variant=rng.choice(available()), **bounds)


@pytest.mark.parametrize("variant", available())
def test_the_kernel_gives_the_matches_of_the_plain_evaluation_in_their_order(variant: str) -> None:
    given = 0
    for rng, program, rows in cases(f"kernel {variant}"):
        bounds, texts = random_bounds(rng), Texts()
        plain, fast = Guarded(program, **bounds), GuardedRun(program, sizes=rng.choice((None, TINY)), variant=variant, **bounds)
        wanted = matches_of(plain, rows, texts=texts)
        assert matches_of(fast, rows, texts=texts) == wanted
        assert fast.marked.tolist() == plain.marked.tolist()
        assert (fast.triggers, fast.matches, fast.events) == (plain.triggers, plain.matches, plain.events)
        assert fast.reached == len(rows)
        given += len(wanted)
    assert given > CASES


def test_a_state_is_restored_by_another_variant() -> None:
    for rng, program, rows in cases("kernel restored"):
        bounds, texts = random_bounds(rng), Texts()
        wanted = matches_of(Guarded(program, **bounds), rows, texts=texts)
        evaluation, found = run_of(rng, program, bounds), []
        cuts = sorted(rng.choices(range(len(rows) + 1), k=rng.randint(1, 4)))
        for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True):
            found += matches_of(evaluation, rows[start:stop], texts=texts, first=start)
            assert evaluation.memory_usage() > 0
            if rng.random() < 0.3:
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


def test_partitions_in_slots_are_separate_in_the_kernel() -> None:
    for rng, program, _ in cases("kernel slots", CASES // 2):
        bounds, texts = {**random_bounds(rng), "consume": Consumption.NONE}, Texts()
        streams = [random_rows(rng, 12) for _ in range(3)]
        evaluation, found, places = run_of(rng, program, bounds), [[], [], []], [0, 0, 0]
        while any(place < len(rows) for place, rows in zip(places, streams, strict=True)):
            slot, count = rng.randrange(3), rng.randint(0, 4)
            part = streams[slot][places[slot] : places[slot] + count]
            found[slot] += matches_of(evaluation, part, texts=texts, first=places[slot], slot=slot)
            places[slot] += len(part)
        assert found == [matches_of(Guarded(program, **bounds), rows, texts=texts) for rows in streams]
        evaluation.release(np.arange(3))
        assert matches_of(evaluation, streams[0], texts=texts, slot=1) == found[0], "a slot that was released starts again"
        assert matches_of(evaluation, streams[0], texts=texts, slot=None) == found[0]


def test_long_streams_pass_many_windows_in_the_kernel() -> None:
    for rng, program, _ in cases("kernel long", CASES // 8):
        rows, texts = random_rows(rng, 200), Texts()
        bounds = {"window": rng.randint(1, 4), "limit": rng.choice((1, 5))}
        evaluation, found = run_of(rng, program, bounds), []
        for start in range(0, 200, 40):
            found += matches_of(evaluation, rows[start : start + 40], texts=texts, first=start)
        assert found == matches_of(Guarded(program, **bounds), rows, texts=texts)


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


@pytest.mark.parametrize("name", [*CHAINS, *SEVERAL])
@pytest.mark.parametrize("limit", [3, None])
def test_large_windows_with_starts_out_of_order(name: str, limit: int | None) -> None:
    rng, texts = random.Random(f"{SEED} {name}"), Texts()
    count = 300 if limit else 150 if name in SEVERAL else 60
    program = Program((CHAINS | SEVERAL)[name])
    rows = [Row(rng.choice("ABC"), moment, None if rng.random() < 0.05 else rng.randrange(50), rng.randrange(4)) for moment in range(count)]
    wanted = matches_of(Guarded(program, limit=limit, window=100), rows, texts=texts)
    assert len(wanted) > (count / 10 if name in CHAINS else 4)
    for variant in available():
        assert matches_of(GuardedRun(program, limit=limit, window=100, variant=variant), rows, texts=texts) == wanted


def test_values_at_the_ends_of_their_type_are_compared() -> None:
    least, most = -(1 << 63), (1 << 63) - 1
    for operator in ("<", "<=", ">", ">=", "!="):
        program = Program(chain(Compares(Before(0), operator, V), value=V))
        texts = Texts()
        rng = random.Random(f"{SEED} ends {operator}")
        rows = [Row(rng.choice("ABC"), moment, rng.choice((least, least + 1, 0, most - 1, most, None))) for moment in range(60)]
        wanted = matches_of(Guarded(program), rows, texts=texts)
        assert wanted
        for variant in available():
            assert matches_of(GuardedRun(program, variant=variant), rows, texts=texts) == wanted


def forged(rng: random.Random, section: bytes) -> bytes:
    found = np.frombuffer(section, "<i8").copy()
    place = rng.randrange(len(found))
    old = min(int(found[place]), (1 << 62) - 1)
    found[place] = rng.choice((0, 1, -1, old + 1, old - 1 if old > -(1 << 62) else 0, 1 << 40, int(rng.choice(found.tolist()))))
    return found.tobytes()


@pytest.mark.skipif("checked" not in available(), reason="only the checked kernel says where it reads outside")
def test_forged_states_of_the_kernel_are_refused_or_run() -> None:
    outcomes = {"refused": 0, "ran": 0}
    for rng, program, rows in cases("kernel forged", 3 * CASES, length=14):
        bounds, texts = {"window": rng.choice((None, 5)), "limit": 100}, Texts()
        cut = rng.randint(2, len(rows) - 1)
        evaluation = GuardedRun(program, **bounds)
        matches_of(evaluation, rows[:cut], texts=texts)
        sections = evaluation.dump()
        for name in rng.choices([name for name, section in sections.items() if section and name != "guarded_macros"], k=rng.randint(1, 3)):
            sections[name] = forged(rng, sections[name])
        fresh = GuardedRun(program, variant="checked", **bounds)
        fresh.ensure_slots(1)
        try:
            fresh.load(sections)
        except SnapshotError:
            outcomes["refused"] += 1
            continue
        begun = time.monotonic()
        for positions, _ in matches_of(fresh, rows[cut:], texts=texts, first=cut):
            assert list(positions) == sorted(positions)
        fresh.dump()
        assert time.monotonic() - begun < 60
        outcomes["ran"] += 1
    assert min(outcomes.values()) > CASES / 20, outcomes


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
    wanted = matches_of(Guarded(program, window=30), rows, texts=texts)
    assert len(wanted) > 10
    for variant in available():
        assert matches_of(GuardedRun(program, window=30, variant=variant), rows, texts=texts) == wanted


UNKNOWN = {
    "a value is kept over several events": [
        Transition(0, 1, A, X, writes=stores(r0=Now(V))),
        Transition(1, 1),
        Transition(1, 2, B, Y),
        Transition(2, 2),
        Transition(2, 3, C | guard(0), Z),
    ],
    "events that are not marked move partial matches": [
        Transition(0, 1, A, X, writes=stores(r0=Now(V))),
        Transition(1, 2, B | guard(0)),
        Transition(2, 3, C, Z),
    ],
}


@pytest.mark.parametrize("reason", UNKNOWN)
def test_what_the_kernel_does_not_know_runs_in_python(reason: str) -> None:
    program = Program(automaton_of(UNKNOWN[reason], Compares(Before(0), "<", V), Compares(Before(1), "<", W), registers=2))
    with pytest.raises(UnknownError, match=reason):
        GuardTables(program)
    assert isinstance(guarded(program), Guarded)
    assert isinstance(guarded(Program(CHAINS["gaps"])), GuardedRun)


def test_more_macro_states_than_bits_run_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_tables, "MACROS", 2)
    assert isinstance(guarded(Program(CHAINS["gaps"])), Guarded)


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
