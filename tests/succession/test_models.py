"""The six models against formulas written once more, the examples of the paper, and what is no stamp."""

from __future__ import annotations

import random
from typing import Any

import pytest
from enough import Enough

from cepheid.errors import InputError, LimitError
from cepheid.language.syntax import TimeModel
from cepheid.succession import (
    ACTIVE_OFFICE,
    CAYUGA,
    COMPLETE_HISTORY,
    MODELS,
    ODE,
    POINT,
    SNOOPIB,
    BlockingModel,
    History,
    Interval,
    Match,
    TemporalModel,
    check,
    events,
    then,
    universe,
    verdicts,
)
from cepheid.succession.axioms import BY_NUMBER
from cepheid.succession.models import CompleteHistory

INTERVALS = (CAYUGA, SNOOPIB, ACTIVE_OFFICE)


def intervals(text: str) -> frozenset[Interval]:
    """`1-3 2-2` as intervals."""
    return frozenset(Interval(*map(int, word.split("-"))) for word in text.split())


def histories(text: str) -> frozenset[History]:
    """`1-2-3 2` as histories."""
    return frozenset(History(tuple(map(int, word.split("-")))) for word in text.split())


def test_the_names_are_those_of_the_language() -> None:
    assert list(MODELS) == [model.value for model in TimeModel]
    assert all(model.name == name == repr(model) for name, model in MODELS.items())


# ----------------------------------------------------------------------------------------------------------- the formulas, once more


def bounds(stamp: Any) -> tuple[int, int]:
    """The first and last time of a stamp of any of the six models."""
    if isinstance(stamp, Interval):
        return stamp.start, stamp.end
    return (stamp.times[0], stamp.times[-1]) if isinstance(stamp, History) else (stamp, stamp)


def expected_successors(name: str, stamp: Any, candidates: frozenset[Any]) -> frozenset[Any]:
    """SUCC by what is least among the candidates, not by what excludes another."""
    later = [t for t in candidates if bounds(t)[0] > bounds(stamp)[1]]
    if not later:
        return frozenset()
    first_end = min(bounds(t)[1] for t in later)
    if name in {"SNOOPIB", "ODE"}:
        return frozenset(t for t in later if bounds(t)[0] <= first_end)
    first = [t for t in later if bounds(t)[1] == first_end]
    if name == "ACTIVE_OFFICE":
        return frozenset({min(first, key=bounds)})
    if name == "COMPLETE_HISTORY":
        least: list[History] = first
        for back in range(1, max(len(t.times) for t in first) + 1):
            ended = [t for t in least if len(t.times) < back]
            if ended:
                return frozenset(ended)
            lowest = min(t.times[-back] for t in least)
            least = [t for t in least if t.times[-back] == lowest]
        return frozenset(least)
    return frozenset(first)


def random_stamp(rng: random.Random, model: TemporalModel[Any]) -> Any:
    times = sorted(rng.sample(range(12), rng.randrange(1, 5)))
    return model.of(times)


@pytest.mark.parametrize("name", MODELS)
def test_successors_of_random_candidates(name: str, cases: int, seed: int) -> None:
    model = MODELS[name]
    drawn = Enough(2 * cases, several=20)
    for number in drawn:
        rng = random.Random(f"{seed} {name} {number}")
        stamp = model.point(rng.randrange(-1, 4))
        candidates = frozenset(random_stamp(rng, model) for _ in range(rng.randrange(8)))
        found = model.successors(stamp, candidates)
        assert found == expected_successors(name, stamp, candidates), (seed, number, stamp, candidates)
        drawn.seen["several"] += len(candidates) > len(found) > 0


# -------------------------------------------------------------------------------------------------------------- examples of the paper


def test_figure_1() -> None:
    """A at 2; B began before it; C and D overlap, C ends first; a fifth interval begins when C is over."""
    candidates = intervals("1-3 3-5 4-7 6-8")
    stamp = Interval(2, 2)
    assert CAYUGA.successors(stamp, candidates) == intervals("3-5")
    assert ACTIVE_OFFICE.successors(stamp, candidates) == intervals("3-5")
    assert SNOOPIB.successors(stamp, candidates) == intervals("3-5 4-7")
    assert POINT.successors(2, {t.end for t in candidates}) == {3}


def test_figure_2() -> None:
    """P began before A, Q ends before R: only points take P, only those that take all that nothing lies before take R."""
    p, q, r = Interval(0, 2), Interval(3, 5), Interval(4, 6)
    stamp, candidates = Interval(1, 1), frozenset({p, q, r})
    assert CAYUGA.successors(stamp, candidates) == ACTIVE_OFFICE.successors(stamp, candidates) == {q}
    assert SNOOPIB.successors(stamp, candidates) == {q, r}
    assert ODE.successors(History((1,)), histories("0-2 3-5 4-6")) == histories("3-5 4-6")
    assert POINT.successors(1, {2, 5, 6}) == {2}


@pytest.mark.parametrize("model", MODELS.values(), ids=str)
def test_figure_3_keeps_both_of_two_events_at_once(model: TemporalModel[Any]) -> None:
    """Active Office too, by its formula: the stamps of both are one."""
    purchases = frozenset(Match((name,), model.of([1, 2])) for name in ("Q1Q2", "R1R2"))
    found = then(model, frozenset({Match(("A",), model.point(0))}), purchases)
    assert {match.parts for match in found} == {("A", "Q1Q2"), ("A", "R1R2")}
    assert {match.stamp for match in found} == {model.of([0, 1, 2])}


def test_equation_2() -> None:
    """In SnoopIB there is always one more."""
    candidates = frozenset(Interval(1, x) for x in range(1, 30))
    assert SNOOPIB.successors(Interval(0, 0), candidates) == candidates
    assert SNOOPIB.successors(Interval(0, 0), intervals("1-1 2-2 1-3")) == intervals("1-1 1-3")


def test_active_office_takes_the_earlier_start_and_complete_history_the_shorter_end() -> None:
    assert ACTIVE_OFFICE.successors(Interval(0, 0), intervals("1-3 2-3 3-3")) == intervals("1-3")
    assert COMPLETE_HISTORY.successors(History((0,)), histories("1-3 2-3 3")) == histories("3")
    assert COMPLETE_HISTORY.successors(History((0,)), histories("1-2-4 3-4 2-4 1-3-4")) == histories("2-4")


def test_the_example_of_section_3() -> None:
    """Events at 1, 2 and 4."""
    stamps = [str(model.of([4, 1, 2, 2])) for model in MODELS.values()]
    assert stamps == ["[1, 4]", "[1, 2, 4]", "[1, 4]", "[1, 2, 4]", "[1, 4]", "4"]


def test_points_of_snoop_and_epl() -> None:
    """2 * (1 * 3) = 3 is defined, (2 * 1) * 3 is not; so E1; (E2; E3) and E2; (E1; E3) are the same (section 4.2.2, (3))."""
    assert POINT.compose(1, 3) == POINT.compose(2, 3) == 3
    assert POINT.compose(2, 1) is None
    one, two, three = events([1]), events([2]), events([3])
    left, right = then(POINT, one, then(POINT, two, three)), then(POINT, two, then(POINT, one, three))
    assert {match.stamp for match in left} == {match.stamp for match in right} == {3}
    assert then(CAYUGA, events([Interval(2, 2)]), then(CAYUGA, events([Interval(1, 1)]), events([Interval(3, 3)]))) == frozenset()


def test_composition_of_what_overlaps_is_undefined() -> None:
    for model in INTERVALS:
        assert model.compose(Interval(0, 2), Interval(2, 3)) is None
        assert model.compose(Interval(0, 1), Interval(2, 3)) == Interval(0, 3)
    for history in (COMPLETE_HISTORY, ODE):
        assert history.compose(History((0, 2)), History((2, 3))) is None
        assert history.compose(History((0, 1)), History((2, 3))) == History((0, 1, 2, 3))


# -------------------------------------------------------------------------------------------------------------------- errors


class Growing(CompleteHistory):
    """Composes without end."""

    name = "GROWING"

    def compose(self, s: History, t: History) -> History | None:  # noqa: ARG002 - it ignores them
        return History((*s.times, s.times[-1] + 1))


class Outside(CompleteHistory):
    """Its successors are no candidates, and no stamps of the universe either."""

    name = "OUTSIDE"

    def successors(self, stamp: History, candidates: object) -> frozenset[History]:  # noqa: ARG002 - it ignores them
        return frozenset({History((99,))})


class Loose(CompleteHistory):
    """Composes nothing."""

    name = "LOOSE"

    def compose(self, s: History, t: History) -> History | None:  # noqa: ARG002 - it ignores them
        return None


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (
            lambda: Interval(3, 1),
            InputError,
            "error: the interval [3, 1] ends before it starts\nhelp: give the start first: Interval(1, 3)",
        ),
        (
            lambda: History(()),
            InputError,
            "error: a history has at least one time\nhelp: give the times of the events: History((1, 2, 4))",
        ),
        (
            lambda: History((1, 4, 2)),
            InputError,
            "error: the history [1, 4, 2] has 2 after 4\nhelp: give each time once, ascending: History((1, 2, 4))",
        ),
        (
            lambda: History((1, 1)),
            InputError,
            "error: the history [1, 1] has 1 after 1\nhelp: give each time once, ascending: History((1,))",
        ),
        (
            lambda: CAYUGA.of([]),
            InputError,
            "error: a match without events has no time stamp\nhelp: give the times of its events",
        ),
        (
            lambda: Loose().of([1, 2]),
            InputError,
            (
                "error: LOOSE does not compose [1] with the later time 2\n"
                "help: a model that stamps matches defines s * t wherever s < t (what-is-next, Axiom 8)"
            ),
        ),
        (
            lambda: universe(CAYUGA, []),
            InputError,
            "error: a universe without times has no stamps\nhelp: give some, such as range(4)",
        ),
        (
            lambda: universe(Growing(), [0, 1]),
            LimitError,
            "error: GROWING composes more than 64 stamps of 2 times\nhelp: give fewer times; a universe is tried exhaustively (MAX_STAMPS)",
        ),
        (
            lambda: check(Outside(), BY_NUMBER["3"]),
            InputError,
            (
                "error: OUTSIDE: [99] is said to be a successor of [0], and is no stamp of the universe\n"
                "help: SUCC gives some of the candidates (what-is-next, Axiom 3)"
            ),
        ),
    ],
)
def test_errors(act: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        act()
    assert str(caught.value) == message


# ------------------------------------------------------------------------------------------------------------- a model of one's own


class LatestStart(BlockingModel[tuple[int, int]]):
    """Of what ends first, what starts last; stamps are pairs of times."""

    name = "LATEST START"

    def point(self, time: int) -> tuple[int, int]:
        return time, time

    def before(self, s: tuple[int, int], t: tuple[int, int]) -> bool:
        return s[1] < t[0]

    def compose(self, s: tuple[int, int], t: tuple[int, int]) -> tuple[int, int] | None:
        return (s[0], t[1]) if self.before(s, t) else None

    def blocks(self, rival: tuple[int, int], t: tuple[int, int]) -> bool:
        return (rival[1], -rival[0]) < (t[1], -t[0])


def test_a_model_of_ones_own() -> None:
    model = LatestStart()
    assert model.successors((0, 0), {(1, 3), (2, 3), (2, 4)}) == {(2, 3)}
    found = verdicts(model)
    assert [number for number, verdict in found.items() if not verdict.holds] == ["14", "(8)", "P14"]
    assert str(found["(8)"]) == (
        "(8) FORWARD DECOMPOSITION: t0 = (0, 0), t1 = (1, 1), t2 = (3, 3), F1 = {(1, 1), (2, 2)}, F2 = {(3, 3)}: "
        "t1 is in SUCC(t0, F1), but t1 * t2 is not in SUCC(t0, F1; F2)"
    )
    assert str(found["7"]) == "7 NON-BLOCKING: holds over 5 times"
