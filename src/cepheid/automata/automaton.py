"""The complex event automaton: states and marking transitions over letters.

Name in paper: CEA (foundations-cel, section 6). A predicate of a transition is a conjunction of bits of the event's letter; a transition marks its
event with a set of variables, or does not mark it. So one run gives one complex event with its mapping. Clock conditions, register guards and writes
of the timed and correlated fragments belong in `alphabet` and on `Transition`: the three models are one type.

Invariants of every automaton that `construct` builds, and that the kernel relies on:

* a match begins at a marked event: the initial state has only marking transitions out, and none in;
* a match ends at a marked event: final states are entered by marking transitions only, and none leaves them.
"""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cepheid.automata.alphabet import Alphabet
from cepheid.automata.transition import by_label
from cepheid.errors import REFERENCE_HELP, NotSupportedError
from cepheid.language.syntax import TimeModel
from cepheid.records import record

if TYPE_CHECKING:
    from cepheid.automata.alphabet import Predicate, Tracker
    from cepheid.automata.transition import Label, Mark, Transition
    from cepheid.language.syntax import Strategy
    from cepheid.logical.plan import Derived, Expression


@record(slots=False)
class Automaton:
    """A complex event automaton over numbered states.

    states: how many. initial: the one initial state. finals: accepting states. transitions: sorted, without repetition. alphabet: what the bits
    of a letter mean. parts: what strategies and THEN choose inside its matches; its transitions have the places of events in them by number. Their
    automata read the same letters, and a part may have places in those before it. negated: the patterns of which guards ask when a match began that
    has ended (`plan.Derived`), by number; their automata read the same letters too, and may ask about those before them. begins: of a negated pattern
    in which any event may say where a match begins, the value of an event that does: a match begins at the least one of its visible events, and of
    the matches that end at an event only the one that begins last is asked for.
    """

    states: int
    initial: int
    finals: frozenset[int]
    transitions: tuple[Transition, ...]
    alphabet: Alphabet = field(default_factory=Alphabet)
    parts: tuple[Part, ...] = ()
    negated: tuple[Negated, ...] = ()
    begins: Expression | None = None

    @property
    def compares(self) -> bool:
        """Whether letters do not say all that its matches depend on: there are guards, or parts, or hidden events that say where a match begins."""
        return bool(self.alphabet.guards) or any(move.parts for move in self.transitions)

    def refuse_parts(self, reader: str) -> None:
        """Raise NotSupportedError if there are parts that are chosen: for what knows transitions alone; reader: its name, for the message."""
        if self.parts:
            raise NotSupportedError(f"{reader} cannot choose inside the pattern: {self.parts[0].text}", help=REFERENCE_HELP)

    @property
    def all_parts(self) -> tuple[Part, ...]:
        """The parts that are chosen: inside its matches, and inside those of negated patterns."""
        return self.parts + tuple(part for each in self.negated for part in each.automaton.parts)

    @property
    def compares_all(self) -> bool:
        """Whether strategies inside its matches compare all matches of a part in the stream, whatever bounds its own."""
        return not all(part.is_next for part in self.parts)

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """What the first bits of a letter mean."""
        return self.alphabet.predicates

    @property
    def trackers(self) -> tuple[Tracker, ...]:
        """What runs beside the stream, so that its states are part of the letters."""
        return self.alphabet.trackers

    @cached_property
    def outgoing(self) -> tuple[tuple[Transition, ...], ...]:
        """The transitions that leave each state."""
        out: list[list[Transition]] = [[] for _ in range(self.states)]
        for transition in self.transitions:
            out[transition.source].append(transition)
        return tuple(tuple(moves) for moves in out)

    @cached_property
    def marks(self) -> tuple[Mark, ...]:
        """The different marks, in an order that depends on the variables alone."""
        return tuple(sorted({t.mark for t in self.transitions if t.mark is not None}, key=sorted))

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """The different labels, in an order that depends on the variables and parts alone; without parts that of `marks`."""
        return tuple(sorted({label for t in self.transitions if (label := t.label) is not None}, key=by_label))

    @cached_property
    def derived(self) -> dict[object, Any]:
        """What evaluations make of it once, by who makes it; it is in no pickle."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "derived"}

    @property
    def inner(self) -> frozenset[int]:
        """The states in which a match has begun and can go on."""
        return frozenset(t.source for t in self.transitions) - {self.initial}

    @property
    def waiting(self) -> bool:
        """Whether every inner state waits, so that events which enable no other transition change nothing."""
        return self.inner <= {t.source for t in self.transitions if t.waits}


@record(slots=False)
class Part:
    """A part of a pattern of whose matches some are chosen where letters cannot say which: an evaluation does it.

    rule: NXT, LAST or MAX, which compare the matches that end at one event; or ACTIVE_OFFICE or COMPLETE_HISTORY, which compare those that begin
    after what is before THEN. automaton: of the part by itself, hidden; all its matches in the stream are compared. window, count: no match of the
    part is longer (as in `logical.windows`). text: the part as a pattern. ended: under THEN the greatest start of the matches that have ended
    at an earlier time, as a place. earlier: under THEN whether it may begin before the event that is read first. everywhere: then whether any
    event may say where it begins. leads: whether every match that has it begins with it, so that what began before its windows is in none.
    """

    rule: Strategy | TimeModel
    automaton: Automaton
    window: int | None
    count: int | None
    text: str
    earlier: bool = False
    ended: Derived | None = None
    everywhere: bool = False
    leads: bool = False

    @property
    def is_next(self) -> bool:
        """Whether THEN chooses, which looks at no match that begins before the whole one does."""
        return isinstance(self.rule, TimeModel)

    @property
    def described(self) -> str:
        """The part, and how it is chosen: `NXT(A ;[<= 5s] B)`; `B ; C, the next one (ACTIVE_OFFICE)`."""
        return f"{self.text}, the next one ({self.rule.value})" if self.is_next else self.text


@record(slots=False)
class Negated:
    """A negated pattern with guards: an evaluation finds its matches, of which only the intervals matter.

    automaton: of the pattern, its spans (`transform.spans`). window, count: no match of it is longer. text: the pattern. earlier: whether it
    may begin before the event that is read first. timed: then it counts from the first event of the time at which it begins. ends: not where its
    matches begin matters, but the first event of the time at which they end.
    """

    automaton: Automaton
    window: int | None
    count: int | None
    text: str
    earlier: bool = False
    timed: bool = False
    ends: bool = False
