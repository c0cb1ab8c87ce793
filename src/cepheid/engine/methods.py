"""The methods of evaluation: how each is started, and what it guarantees.

`planner` chooses one for a query, by its name in `METHODS`; `explain()` prints the guarantee. The table of fragments is engine.md, section 4.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cepheid.automata.waiting import WaitingAutomaton
from cepheid.engine.counting import Counting
from cepheid.engine.domination import explore
from cepheid.engine.evaluation import Evaluation
from cepheid.engine.last import Last
from cepheid.engine.maximal import Maximal
from cepheid.engine.next import Next
from cepheid.engine.per_end import PerEnd
from cepheid.language.syntax import Consumption, Strategy

if TYPE_CHECKING:
    from collections.abc import Callable

    from cepheid.engine.planner import Compiled
    from cepheid.engine.running import Running

MATCH_GRAPH, NEXT, LAST, MAXIMAL, PER_END, COUNT = "match graph", "next", "last", "maximal", "per end", "count"

SUPPORT_METHODS = {Strategy.NXT: NEXT, Strategy.LAST: LAST, Strategy.MAX: MAXIMAL}
"""What chooses among matches of a pattern whose partial matches may wait for any event (`automata.waiting`)."""


@dataclass(frozen=True)
class Guarantee:
    """What an evaluation promises, as `explain()` prints it."""

    evaluation: str
    update: str
    state: str
    delay: str


@dataclass(frozen=True)
class Method:
    """One method of evaluation: how it starts (without state; options: the kernel's variant), and its guarantee.

    samples: whether it can choose matches that are spread over all of a trigger (option `sample`).
    """

    start: Callable[..., Running]
    guarantee: Callable[[Compiled], Guarantee]
    samples: bool = False


def with_absences(guarantee: Guarantee) -> Guarantee:
    """The guarantee of an evaluation whose events wait for the absences of the query, each of which runs an automaton beside it."""
    return dataclasses.replace(
        guarantee,
        update=f"{guarantee.update}; and O(m) of each absence",
        state=f"{guarantee.state}; and of each partition the events of the last d, d = the longest time of an absence",
    )


def _bounds(compiled: Compiled) -> dict[str, Any]:
    """What every evaluation is bounded by."""
    return {
        "window": compiled.window,
        "count_window": compiled.count_window,
        "consume": compiled.consume,
        "limit": compiled.limit,
    }


def _state(compiled: Compiled, what: str) -> str:
    partition = " of each partition" if compiled.keys else ""
    if compiled.window is not None or compiled.count_window is not None:
        return f"O({what} within the window{partition})"
    if compiled.consume is not Consumption.NONE:
        return f"O({what} since the last trigger{partition}): there is no window over the whole pattern"
    return f"grows with the {what}{partition}: there is no window over the whole pattern"


def _groups(compiled: Compiled) -> str:
    """How many groups of starts MAX can come to have, with any stream."""
    automaton = WaitingAutomaton.of(compiled.program.automaton)
    found = None if automaton is None else explore(automaton, compiled.program.predicates)
    assert found is not None, "the planner chooses groups of starts only where they are few"
    partition = " of a partition" if compiled.keys else ""
    return f"groups{partition}: at most {found.configurations}, m: at most {found.macros}"


METHODS: dict[str, Method] = {
    MATCH_GRAPH: Method(
        start=lambda compiled, **options: Evaluation(compiled.program, **_bounds(compiled), **options),
        guarantee=lambda compiled: Guarantee(
            evaluation="match graph over the automaton, determinized lazily; one pass",
            update="O(m) per event, m = live macro states of the event's partition",
            state=_state(compiled, "marked events"),
            delay="output-linear: the time per match depends on its length alone",
        ),
        samples=True,
    ),
    NEXT: Method(
        start=lambda compiled, **options: Next(compiled.program, **_bounds(compiled), **options),
        guarantee=lambda compiled: Guarantee(
            evaluation="NXT by deadlines: the earliest events from which the match still ends; no partial matches; then its labellings",
            update="O(fired transitions x states) per event, whatever the window",
            state=_state(compiled, "events that may be marked (once per predicate)"),
            delay="O(transitions x log of the window) per event of a match",
        ),
    ),
    LAST: Method(
        start=lambda compiled, **options: Last(compiled.program, **_bounds(compiled), **options),
        guarantee=lambda compiled: Guarantee(
            evaluation="LAST by a walk back over the greatest starts of each transition; no partial matches; then its labellings",
            update="O(fired transitions) per event, whatever the window",
            state=_state(compiled, "events that may be marked (once per transition)"),
            delay="O(transitions x log of the window) per event of a match",
        ),
    ),
    MAXIMAL: Method(
        start=lambda compiled, **options: Maximal(compiled.program, **_bounds(compiled), **options),
        guarantee=lambda compiled: Guarantee(
            evaluation="MAX by groups of starts with the same supersets; each group's partial matches once; then their labellings",
            update=f"O(groups x m) per event and amortized O(m x log of the window) per start; {_groups(compiled)}",
            state=_state(compiled, "marked events (once per group)"),
            delay="amortized O(log of the window) per event of a match",
        ),
    ),
    PER_END: Method(
        start=lambda compiled, **options: PerEnd(compiled.program, **_bounds(compiled), **options),
        guarantee=lambda compiled: Guarantee(
            evaluation="strategy chosen end by end: each trigger reads its window again, by the strategy's automaton",
            update="O(m) per event, and O(events of the window) per trigger",
            state=_state(compiled, "events that can matter"),
            delay="output-linear after the trigger's window is read",
        ),
    ),
    COUNT: Method(
        start=lambda compiled, **options: Counting(compiled.program, **_bounds(compiled), **options),
        guarantee=lambda compiled: Guarantee(
            evaluation="sliding product of transition counts over the automaton, determinized lazily; exact; nothing is enumerated",
            update="O(m^2) additions per event, amortized; numbers are as long as the counts need",
            state=_state(compiled, "marked events x m"),
            delay="O(m^2) per trigger, whatever the number of matches",
        ),
    ),
}
"""The methods by name."""
