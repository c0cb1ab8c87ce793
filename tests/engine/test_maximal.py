"""MAX inside a window: against the definition, however the stream is fed; long streams against a fresh evaluation of the window alone.

CEPHEID_CASES and CEPHEID_SEED as in strategy_cases.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
from enough import Enough, Kept, share
from strategy_cases import ALPHABETS, CASES, SEED, automaton_of, check, collector, expected, forgotten, random_case, random_formula, stored

import cepheid.engine.evaluations.choosing.domination as domination_module
from cepheid.automata.alphabet import Alphabet, Predicate
from cepheid.automata.automaton import Automaton
from cepheid.automata.program import Program
from cepheid.automata.transition import Transition, order
from cepheid.automata.waiting import WaitingAutomaton
from cepheid.engine.evaluations.choosing.domination import TOP, Domination, DominationTable, explore
from cepheid.engine.evaluations.choosing.maximal import Maximal, MaximalSizes
from cepheid.engine.evaluations.graph.match import Evaluation
from cepheid.errors import CepheidError, NotSupportedError, SnapshotError
from cepheid.kernel import available
from cepheid.language.syntax import Consumption, Strategy

A, B, C, D = (("atom", 1 << k, 0, frozenset({"xyz"[k % 3]})) for k in range(4))
CHAIN = ("seq", ("seq", A, B), C)
RUNS = ("seq", ("seq", ("plus", A), ("plus", B)), C)
NESTED = ("seq", ("plus", ("seq", ("plus", A), B)), C)
CHECKED = [v for v in available() if v != "python"][-1:] or ["python"]


def tiny(rng):
    supports = rng.choice([1, 3, 64])
    return MaximalSizes(
        places=rng.choice([1, 2, 4]),
        supports=supports,
        most_supports=supports,
        positions=rng.choice([1, 8, 512]),
        scratch=rng.choice([1, 8, 64]),
        codes=rng.choice([1, 3, 99]),
        entries=rng.choice([1, 200, 1 << 20]),
    )


def maker(case, rng, variant, *, limit=None):
    return lambda: Maximal(case.program, **case.bounds, limit=limit, variant=variant, sizes=tiny(rng))


def affordable(case):
    """Whether the planner would choose this method: tables of one entry compute every move anew, in Python."""
    return explored(case.program) is not None


def explored(program):
    """What any stream can ask for, over the four predicates of the random automata, in every combination."""
    return explore(WaitingAutomaton.of(program.automaton), [Predicate(k) for k in range(4)])


def drawn_cases():
    """(case, what is kept, the case partition by partition, what is kept then)."""
    refused = 0
    for number in itertools.count():
        case = random_case(random.Random(f"{SEED} maximal {number}"), long=number % 8 == 1)
        if affordable(case):
            yield case, expected(case, Strategy.MAX), case.sequential, expected(case.sequential, Strategy.MAX)
        else:
            refused += 1
            assert refused <= number / 3 + 20, "most cases are affordable"  # about one in eleven is not


KEPT = Kept(drawn_cases())


@pytest.mark.parametrize("variant", available())
def test_winners_of_random_cases(variant):
    drawn = Enough(share(CASES, variant), KEPT, total=20)
    for number, (case, wanted, sequential, wanted_then) in enumerate(drawn):
        rng = random.Random(f"{SEED} maximal {variant} {number}")
        limit = rng.choice([None, None, 1, 2, 3])
        where = f"CEPHEID_SEED={SEED} case {number} limit {limit} variant {variant}\n{case}"
        drawn.seen["total"] += check(stored(case, rng, maker(case, rng, variant, limit=limit)), wanted, where, limit=limit)
        drawn.seen["total"] += check(
            forgotten(sequential, rng, maker(sequential, rng, variant, limit=limit)), wanted_then, where, limit=limit
        )


def test_projected_winners():
    """The winners are chosen before SELECT's projection; then equal matches of a trigger are one, and LIMIT counts them."""
    for number, (case, _, _, _) in enumerate(itertools.islice(KEPT, CASES // 2)):
        rng = random.Random(f"{SEED} maximal projected {number}")
        shown = replace(case, shown=frozenset(rng.choice(["x", "xy", "z"])))
        limit = rng.choice([None, None, 1, 2])
        where = f"CEPHEID_SEED={SEED} case {number} limit {limit}\n{shown}"
        check(stored(shown, rng, maker(shown, rng, None, limit=limit)), expected(shown, Strategy.MAX), where, limit=limit)


def test_the_same_matches_in_the_same_order_however_the_input_is_cut():
    for number, (case, _, _, _) in enumerate(itertools.islice(KEPT, CASES // 2)):
        rng = random.Random(f"{SEED} maximal cuts {number}")
        limit = rng.choice([None, 1, 2])
        runs = [stored(case, rng, maker(case, rng, variant, limit=limit)) for variant in (None, None, "python")]
        assert runs[0] == runs[1] == runs[2], f"CEPHEID_SEED={SEED} case {number} limit {limit}\n{case}"


# ------------------------------------------------------------------------------------------------------------------- long streams


def supports_of(program, letters, *, variant=None, evaluation=Maximal, **bounds):
    """end -> set of tuples of positions, from one feed without partitions."""
    given, found = [], {}
    run = evaluation(program, variant=variant, **bounds)
    run.feed(np.array(letters, np.uint64), np.arange(len(letters)), sink=collector(program, given))
    for _, match in given:
        found.setdefault(match[-1][0], set()).add(tuple(position for position, _ in match))
    return found


@pytest.mark.parametrize("variant", CHECKED)
def test_long_streams_against_fresh_windows(variant):
    """What a window has seen before makes no difference: a fresh evaluation that reads the window alone keeps the same supports."""
    drawn = Enough(max(1, CASES // 20), triggers=1)
    for number in drawn:
        rng = random.Random(f"{SEED} maximal long {number}")
        formula, widths = rng.choice([(random_formula(rng, rng.choice([2, 3])), [2, 5, 9, 14]), (RUNS, [30, 70]), (NESTED, [12, 20])])
        program = Program(automaton_of(formula))
        alphabet, width = rng.choice([*ALPHABETS, [0] * 20 + [1, 2, 4, 8, 3]]), rng.choice(widths)
        letters = [rng.choice(alphabet) for _ in range(150)]
        found = supports_of(program, letters, variant=variant, count_window=width)
        assert found == supports_of(program, letters, variant=variant, window=width - 1)
        for end in rng.sample(range(150), 30):
            first = max(0, end - width + 1)
            fresh = supports_of(program, letters[first : end + 1]).get(end - first, set())
            wanted = {tuple(first + position for position in support) for support in fresh}
            assert found.get(end, set()) == wanted, (SEED, number, end, width)
            drawn.seen["triggers"] += bool(wanted)


def test_all_matches_of_a_chain_are_maximal():
    """Rings that grow and wrap, many merges: A;B;C over a wide window keeps what the match graph finds."""
    program, rng = Program(automaton_of(CHAIN)), random.Random(SEED)
    letters = rng.choices([1, 2, 4, 8], [3, 1, 1, 5], k=2_500)
    found = supports_of(program, letters, count_window=130)
    assert found == supports_of(program, letters, count_window=130, evaluation=Evaluation)
    assert sum(map(len, found.values())) > 10_000


def test_memory_is_bounded_by_the_window():
    run = Maximal(Program(automaton_of(RUNS)), count_window=50, limit=1)
    rng = np.random.default_rng(SEED)
    sizes = []
    for _ in range(3):
        letters = rng.choice(np.array([1, 2, 4, 8], np.uint64), 20_000)
        run.feed(letters, np.arange(20_000), slots=np.zeros(1, np.int32))
        sizes.append(run.store.held)
    assert sizes[2] <= 2 * sizes[0]  # chance may want one more doubling of a ring
    assert run.most_groups <= 4


# ------------------------------------------------------------------------------------------------------------------- named cases


@pytest.mark.parametrize(
    ("formula", "letters", "width", "kept"),
    [
        # The superset {0, 1, 2, 3} is outside the window: MAX and then the window would give nothing.
        (("seq", ("plus", A), B), [1, 1, 1, 2], 3, {(1, 2, 3)}),
        (("seq", ("plus", A), B), [1, 1, 1, 2], None, {(0, 1, 2, 3)}),
        (CHAIN, [1, 1, 2, 4], None, {(0, 2, 3), (1, 2, 3)}),
        (RUNS, [1, 2, 1, 2, 4], None, {(0, 1, 3, 4), (0, 2, 3, 4)}),
        (("or", ("seq", A, C), CHAIN), [1, 2, 4], None, {(0, 1, 2)}),
        (("or", ("seq", A, C), ("seq", B, C)), [1, 2, 4], None, {(0, 2), (1, 2)}),
        # An event alone is beaten by a match that starts earlier.
        (("plus", A), [1, 1], None, {(0, 1)}),
        (A, [8, 1], None, {(1,)}),
    ],
)
def test_supports_of_the_last_event(formula, letters, width, kept):
    found = supports_of(Program(automaton_of(formula)), letters, count_window=width)
    assert found[len(letters) - 1] == kept


def test_consumed_events_beat_no_more():
    program = Program(automaton_of(("seq", ("plus", A), B)))
    letters = [1, 1, 2, 1, 2]
    assert supports_of(program, letters) == {2: {(0, 1, 2)}, 4: {(0, 1, 3, 4)}}
    assert supports_of(program, letters, consume=Consumption.PARTITION) == {2: {(0, 1, 2)}, 4: {(3, 4)}}


def test_limit_zero_counts_triggers():
    run = Maximal(Program(automaton_of(CHAIN)), limit=0)
    given = []
    run.feed(np.array([1, 2, 4, 4, 8], np.uint64), np.arange(5), sink=given.append)
    assert (run.triggers, run.matches, run.supports, given) == (2, 0, 0, [])


def test_events_that_no_match_can_use_are_not_marked():
    run = Maximal(Program(automaton_of(CHAIN)), count_window=3)
    run.feed(np.array([2, 4, 1, 8, 8, 2, 8, 1, 2, 4], np.uint64), np.arange(10), slots=np.zeros(1, np.int32))
    assert run.marked.tolist() == [0, 0, 1, 0, 0, 0, 0, 1, 1, 1]
    assert run.skipped == 3
    assert run.triggers == 1


def test_times_at_the_ends_of_int64():
    program, given = Program(automaton_of(("seq", A, B))), []
    run = Maximal(program, window=5)
    times = np.array([-(2**63), -(2**63) + 5, 2**63 - 6, 2**63 - 1], np.int64)
    run.feed(np.array([1, 3, 1, 2], np.uint64), times, sink=collector(program, given))
    assert [tuple(position for position, _ in match) for _, match in given] == [(0, 1), (2, 3)]


# ------------------------------------------------------------------------------------------------------------------- wrong variants


def beaten_for_ever(machine, macro, letter):
    """Algorithm 7, and then a window: what an earlier start beats is beaten whether that start is in the window or not."""
    taken, skipped, accepts, level = right_follow(machine, macro, letter)
    return taken, skipped, accepts and level == -1, -1


def never_beaten(machine, macro, letter):
    """Supersets that start earlier do not count."""
    taken, skipped, accepts, _ = right_follow(machine, macro, letter)
    return taken, skipped, accepts, -1


def forgets_top(levels, states, level):
    """Supersets with the same start do not count."""
    if level != TOP:
        right_raise(levels, states, level)


def marks_only_together(machine, macro, letter):
    """The superset that alone marks an event is forgotten."""
    taken, _, accepts, level = right_follow(machine, macro, letter)
    return taken, macro, accepts, level


right_follow, right_raise, right_renumber = Domination._follow, domination_module._raise, DominationTable.renumber


@pytest.mark.parametrize("wrong", [beaten_for_ever, never_beaten, forgets_top, marks_only_together])
def test_wrong_variants_are_noticed(wrong, monkeypatch):
    """The cases above tell MAX from what looks like it (fixed cases: the test says something about the tests)."""
    if wrong is forgets_top:
        monkeypatch.setattr(domination_module, "_raise", wrong)
    else:
        monkeypatch.setattr(Domination, "_follow", wrong)
    rng = random.Random(23)
    for _ in range(400):
        case = random_case(rng)
        wanted = expected(case, Strategy.MAX)
        try:
            check(stored(case, rng, maker(case, rng, None), restore=False), wanted, "")
        except AssertionError:
            return
    pytest.fail("not noticed")


# ------------------------------------------------------------------------------------------------------------------- state and memory


def test_release_and_expire():
    program, given = Program(automaton_of(("seq", A, B))), []
    run = Maximal(program, window=10)

    def feed(letters, times, slots, sink=None):
        run.feed(np.array(letters, np.uint64), np.array(times), cuts=np.arange(len(letters)), slots=np.array(slots, np.int32), sink=sink)

    feed([1, 1, 8], [0, 5, 5], [0, 1, 2])
    assert run.expire(10).tolist() == [2]
    assert run.expire(11).tolist() == [0, 2]
    feed([2, 2], [12, 12], [0, 1], collector(program, given))
    assert [tuple(position for position, _ in match) for _, match in given] == [(0, 1)]
    run.release(np.array([1]))
    given.clear()
    feed([1, 2], [13, 14], [1, 1], collector(program, given))
    assert [tuple(position for position, _ in match) for _, match in given] == [(0, 1)]


def test_full_tables_are_made_anew():
    """A bound of the tables that every configuration exceeds changes nothing but the work."""
    program, rng = Program(automaton_of(NESTED)), random.Random(SEED)
    letters = rng.choices([1, 2, 4, 8], k=300)
    run, given = Maximal(program, count_window=12, sizes=MaximalSizes(entries=1)), []
    run.feed(np.array(letters, np.uint64), np.arange(300), sink=collector(program, given))
    assert run.table.flushes > 0
    found = {}
    for _, match in given:
        found.setdefault(match[-1][0], set()).add(tuple(position for position, _ in match))
    assert found == supports_of(program, letters, count_window=12)


def test_an_event_that_needs_more_than_the_tables_hold(monkeypatch):
    """Renumbering forgets what the event being read has asked for: a second time at one event the bound must give way, or it goes on for ever."""
    any_event = ("atom", 0, 0, frozenset("x"))
    both = ("seq", ("atom", 2, 0, frozenset("y")), ("atom", 1, 0, frozenset("y")))
    four = ("seq", ("seq", any_event, any_event), ("seq", any_event, any_event))
    program, letters = Program(automaton_of(("or", four, ("plus", both)))), [3, 3, 3, 1, 3, 1, 2]
    flushed = 0

    def counted(table, *live):
        nonlocal flushed
        flushed += 1
        assert flushed <= len(letters), "at most once per event"
        return right_renumber(table, *live)

    monkeypatch.setattr(DominationTable, "renumber", counted)
    wanted = supports_of(program, letters, count_window=6)
    assert flushed == 0
    for variant in available():
        flushed = 0
        assert supports_of(program, letters, variant=variant, count_window=6, sizes=MaximalSizes(entries=1)) == wanted
        assert flushed > 0


def test_a_snapshot_holds_the_window_alone():
    program, rng = Program(automaton_of(CHAIN)), np.random.default_rng(SEED)
    run = Maximal(program, count_window=20, limit=1)
    run.feed(rng.choice(np.array([1, 2, 4, 8], np.uint64), 5_000), np.arange(5_000), slots=np.zeros(1, np.int32))
    assert sum(map(len, run.dump().values())) < 12_000


@pytest.mark.parametrize("variant", CHECKED)
def test_damaged_snapshots(variant):
    """Damage is refused, or what is then read stays inside the arrays."""
    rng = random.Random(f"{SEED} maximal damage")
    program = Program(automaton_of(RUNS))
    letters = np.array(rng.choices([1, 2, 4, 8, 3], k=60), np.uint64)
    run = Maximal(program, count_window=20, limit=3)
    run.feed(letters, np.arange(60), slots=np.zeros(1, np.int32))
    sections = run.dump()
    drawn = Enough(share(CASES, variant), refused=1)
    for number in drawn:
        damaged = dict(sections)
        name = rng.choice(["counters", "words", "rings", "configurations", "orders", "entries", "entries"])
        content = bytearray(damaged[name])
        for _ in range(rng.randint(1, 3)):
            if content:
                content[rng.randrange(len(content))] = rng.randrange(4 if number % 2 else 256)
        damaged[name] = bytes(content[: rng.choice([len(content), len(content), len(content) - 8, len(content) - 1])])
        other = Maximal(program, count_window=20, limit=3, variant=variant)
        try:
            other.load(damaged)
        except SnapshotError:
            drawn.seen["refused"] += 1
            continue
        try:
            other.feed(letters, np.arange(60, 120), slots=np.zeros(1, np.int32))
        except CepheidError:
            drawn.seen["refused"] += 1
    with pytest.raises(SnapshotError):
        Maximal(program).load({})


# ------------------------------------------------------------------------------------------------------------------- limits


def test_outside_the_fragment():
    moves = (Transition(0, 1, 1, frozenset("x")), Transition(1, 2, 2, frozenset("y")))
    strict = Program(Automaton(3, 0, frozenset({2}), order(moves), Alphabet((Predicate("A"), Predicate("B")))))
    with pytest.raises(NotSupportedError, match="partial matches may wait"):
        Maximal(strict)


def test_no_stream_asks_for_more_than_explored():
    """Groups and macro states stay within what is known before the first event, and some case comes to the bound."""
    drawn = Enough(CASES // 2, KEPT, reached=1)
    for number, (case, _, _, _) in enumerate(drawn):
        runs = []

        def started(case=case, runs=runs):
            runs.append(Maximal(case.program, **case.bounds))
            return runs[-1]

        stored(case, random.Random(f"{SEED} explored {number}"), started)
        bound = explored(case.program)
        for run in runs:
            assert run.most_groups <= bound.configurations, (SEED, number)
            assert run.table.most_macros <= max(1, bound.macros), (SEED, number)
            drawn.seen["reached"] += run.most_groups == bound.configurations > 1


def test_explored_sizes():
    one_type_each = [Predicate(None, name) for name in "ABCD"]
    for formula, wanted in ((CHAIN, (2, 2)), (RUNS, (6, 2)), (NESTED, (6, 2))):
        found = explore(WaitingAutomaton.of(automaton_of(formula)), one_type_each)
        assert (found.configurations, found.macros) == wanted


def test_explored_over_any_letters():
    """Where predicates overlap there are more configurations: all letters are tried."""
    found = explored(Program(automaton_of(CHAIN)))
    assert (found.configurations, found.macros) == (3, 2)


@pytest.mark.parametrize("limit", ["EXPLORED_LETTERS", "EXPLORED_STEPS", "EXPLORED_NUMBERS"])
def test_explored_up_to_a_limit(monkeypatch, limit):
    domination_module._explored.cache_clear()
    monkeypatch.setattr(domination_module, limit, 3)
    assert explored(Program(automaton_of(CHAIN))) is None
    domination_module._explored.cache_clear()


# ------------------------------------------------------------------------------------------------------------------- the machine


def test_macro_states_of_a_chain():
    table = DominationTable(WaitingAutomaton.of(automaton_of(CHAIN)))
    for code, letter in enumerate((1, 2, 4)):
        table.learn(code, letter)
    table.fill_order(0, 0)
    begun = (int(table.start_of[0]) >> 1) - 1
    assert table.configurations[begun] == ((), ((1, ()),))
    table.fill(begun, 1)
    program = table.programs[int(table.program_of[begun * table.codes + 1]) :].tolist()
    # One cell; what marked the B waits for C; what did not is beaten there from now on.
    assert program[1:5] == [0, 1, 0, 2]
    assert table.configurations[program[0]] == ((), ((1, ((1, TOP),)), (2, ())))


def test_orders_rank_the_live_numbers():
    machine = Domination(WaitingAutomaton.of(automaton_of(CHAIN)))
    assert machine.reorder((0, 0), 1) == (1, 0)
    assert machine.reorder((1, 0), 2) == (1, 1)
    assert machine.reorder((1, 1), 1) == (2, 1)
