"""The methods for automata with guards: all matches, their number, and what NXT, LAST or MAX choose; what they promise depends on the indexes.

Which indexes a program needs is found by looking at the macro states that it can reach, up to LOOKED_AT of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cepheid.automata.computing import steps
from cepheid.automata.program import ChoiceProgram, Program
from cepheid.automata.registers import Before, Compares, Computes, Elapsed, Gathered, Joined, reads, test_text
from cepheid.automata.strategies import is_last
from cepheid.automata.transform import reached
from cepheid.engine.evaluations.guards.guarded_choice_run import MAXIMAL_LIMIT, GuardedChoiceRun
from cepheid.engine.evaluations.guards.guarded_distinct import DISTINCT_LIMIT
from cepheid.engine.evaluations.guards.guarded_memo import MOST_ROWS
from cepheid.engine.evaluations.guards.guarded_run import GuardedCountRun, GuardedRun
from cepheid.engine.evaluations.guards.guarded_sets import SETS_LIMIT
from cepheid.engine.evaluations.guards.guarded_start import guarded, guarded_choice, guarded_counts
from cepheid.engine.evaluations.guards.guarded_tables import GuardTables, equalities, regions_of
from cepheid.engine.evaluations.method import CHOOSING, Guarantee, Method, Terms
from cepheid.language.syntax import Strategy, TimeModel
from cepheid.logical.plan import Index, Time
from cepheid.logical.types import NEGATED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.automata.automaton import Negated, Part
    from cepheid.automata.regions import Literal as Condition
    from cepheid.automata.regions import Macro, Region, Regions
    from cepheid.engine.evaluations.base import AnyEvaluation
    from cepheid.engine.evaluations.method import Task

LOOKED_AT = 64
"""Macro states that are looked at to say which indexes a program needs."""

ALL, AGE, ORDER, GROUPS = "all", "age", "order", "groups"
"""What is asked of partial matches that are equal: nothing, the time since one event, one comparison, or more."""

UPDATES = {
    ALL: "O(1)",
    AGE: "by the time since an event: O(log n), O(n) at worst where starts come out of order",
    ORDER: "by one comparison: O(log n), O(n) at worst where starts come out of order",
    GROUPS: "by several comparisons: O(log n) where one of them decides, O(n) at worst",
}
"""What that costs per event; n: entries alive."""

ANSWERS = {
    ALL: "finds the partial matches with an equal value in a hash: O(1)",
    AGE: "finds the partial matches of that age through a tree over the times: O(log n), n = their last events alive",
    ORDER: "finds the partial matches that compare so through a tree over their values: O(log n), n = their last events alive",
    GROUPS: "finds the partial matches that compare so through one tree over the values of all such comparisons: "
    "O(log n) where one of them decides, O(n) at worst, n = their last events alive",
}
"""How a comparison is answered; ALL: by the hash above it."""

COMPUTED = "is computed for each event alive that could be compared: O(n)"
ASKED = (
    "is asked for each event alive that could be compared: O(n); Python computes it, once for the same values as far as they are remembered, up to"
    f" {MOST_ROWS:,}"
)
AMONG = "looks it up in the set of each event alive that could be compared: O(n log v), v = values of a set"
HASHED = "by equality: O(1)"
CARRIED = (
    "for each group of values that is kept for a later comparison: O(g), O(g log g) where starts come out of order, g = such groups alive"
)
LAYERS = "where an event moves all groups and asks nothing of them: O(1), and later O(log n) for each such event in the groups that are asked for"
SETS = f"sets of values are kept, of n values up to 2^n, and {SETS_LIMIT:,} at one event at most"
UNMARKED = "each group alive, at events that PROJECT hides or that a neighbour must follow: O(g)"


class _Guards(Method):
    """What the methods share."""

    guards = True

    def fits(self, task: Task) -> str | None:
        """Any automaton; the others are asked before, for they are faster without guards."""
        del task
        return None

    def guarantee(self, terms: Terms) -> Guarantee:
        """As docs/theory/guards-kernel.md says."""
        asked, tables = _Asked(terms.program), GuardTables(terms.program)
        lines = ["; ".join(asked.updates) or UPDATES[ALL], "per live macro state and region", *([SETS] if asked.sets else [])]
        parts = terms.program.automaton.parts
        lines += [_choice_in(part, loose=bool(beside)) for part, beside in zip(parts, tables.loose, strict=True)]
        lines += map(_refused, terms.program.automaton.negated)
        if not asked.complete:
            lines.append(f"as far as {LOOKED_AT} macro states show")
        state = terms.state(
            "marked events x groups that each goes on from" if {CARRIED, LAYERS} & asked.updates.keys() else "marked events"
        )
        if tables.life is not None and terms.window is None:
            state += "; a pause that is longer than all gaps frees it"
        delay = self._delay(terms)
        if asked.several:
            delay += "; where several comparisons are asked at one event, O(n) at worst"
        if asked.ambiguous or terms.program.repeats:
            delay += f"; a match may be found in several ways: they are told apart at its end, up to {DISTINCT_LIMIT:,} per trigger"
        return Guarantee(
            evaluation=self._what(terms)
            + (" with guards, over groups of partial matches with equal values" if terms.program.automaton.compares else "")
            + "; determinized",
            update=", ".join(lines),
            state="; and ".join(
                [
                    state,
                    *map(_state_of, terms.program.automaton.parts),
                    *(_negated(each, terms) for each in terms.program.automaton.negated),
                ]
            ),
            delay=delay,
            guards=tuple(asked.answers),
        )

    def _what(self, terms: Terms) -> str:
        del terms
        return "match graph over the automaton"

    def _delay(self, terms: Terms) -> str:
        del terms
        return "output-linear, times O(log n) per event of a match"


def _choice_in(part: Part, *, loose: bool) -> str:
    """What a choice inside the pattern costs; loose: whether other events may stand beside what it keeps."""
    if part.is_next:
        cost = (
            "O(r) for each time of each match that may be next"
            if part.rule is TimeModel.COMPLETE_HISTORY
            else "O(r log r) to find what is next"
        )
        return f"at each time at which {part.text} ends: {cost}, r = marked events of its matches that begin behind those that have ended before"
    steps = f"at most {MAXIMAL_LIMIT:,} steps of O(r)" if part.rule is Strategy.MAX else "O(r log n)"
    kept = "a cell for each event that is marked between those of" if loose else "O(log n) and a cell per event of"
    return f"at each event that ends {part.text}: {steps} for its choice, and {kept} what it keeps, r = marked events of its matches"


def _state_of(part: Part) -> str:
    """What a choice inside the pattern keeps."""
    if part.is_next:
        return f"for {part.text}, which is compared as what may be next: the same again"
    bounded = part.window is not None or part.count is not None
    how = "the marked events within its window" if bounded else "it grows with the marked events, for it has no window of its own"
    return f"for {part.text}, which compares all its matches in the stream: {how}"


def _refused(negated: Negated) -> str:
    """What a negated pattern costs per event, beside the pattern."""
    anywhere = negated.automaton.begins is not None
    if not (negated.automaton.compares or anywhere):
        return f"and to find {negated.text}, which must not come: O(1) per live macro state of its own"
    return f"and to find {negated.text}, which must not come: {'; '.join(_Asked(Program(negated.automaton)).updates) or UPDATES[ALL]}"


def _negated(negated: Negated, terms: Terms) -> str:
    """What a negated pattern keeps."""
    own = negated.window is not None or negated.count is not None
    # Under POINT it may begin before the match around it does.
    bounded = own or (not negated.ends and (terms.window is not None or terms.count_window is not None))
    how = f"within {'its' if negated.ends else 'the'} window" if bounded else "which grow with its marked events, for no window bounds them"
    return f"for {negated.text}: its partial matches {how}, and the {'time' if negated.ends else 'start'} of the last match"


class GuardedMethod(_Guards):
    """All matches of an automaton with guards."""

    name = "guarded"
    evaluation = GuardedRun
    samples = True

    def serves(self, task: Task) -> bool:
        """Whatever gives matches and does not choose by comparing them."""
        return not task.plan.count and task.strategy not in CHOOSING

    def program(self, task: Task) -> Program:
        """The pattern's."""
        return task.selected

    def start(self, terms: Terms, **options: Any) -> AnyEvaluation:
        """By the kernel of guards."""
        return guarded(terms.program, **terms.bounds, **options)


class GuardedCountMethod(_Guards):
    """COUNT(*) of an automaton with guards."""

    name = "guarded count"
    evaluation = GuardedCountRun
    counts = True

    def serves(self, task: Task) -> bool:
        """COUNT(*) without a strategy that chooses."""
        return task.plan.count and task.strategy not in CHOOSING

    def program(self, task: Task) -> Program:
        """The pattern's."""
        return task.selected

    def start(self, terms: Terms, **options: Any) -> AnyEvaluation:
        """By the kernel of guards."""
        return guarded_counts(terms.program, **terms.bounds, **options)

    def _delay(self, terms: Terms) -> str:
        del terms
        return (
            "per trigger O(log n), O(n) where values are compared by order, n = marked events alive; the same for each event that it reaches whose"
            " matches are not counted yet, or have lost a start to the window since then; nothing is enumerated"
        )


class GuardedChoiceMethod(_Guards):
    """NXT, LAST and MAX of any automaton: the last method that is asked.

    A trigger costs what its choice reaches. Any MAX compares all of that: `per_end` takes most of those first.
    """

    name = "guarded choice"
    evaluation = GuardedChoiceRun

    def serves(self, task: Task) -> bool:
        """The strategies that choose; COUNT(*) counts what they choose."""
        return task.strategy in CHOOSING

    def program(self, task: Task) -> ChoiceProgram:
        """The pattern's, and how to choose."""
        shown = None if task.shown is None else frozenset(task.shown)
        return ChoiceProgram(task.whole.automaton, task.strategy, shown)

    def start(self, terms: Terms, **options: Any) -> AnyEvaluation:
        """By the kernel of guards."""
        assert isinstance(terms.program, ChoiceProgram)
        return guarded_choice(terms.program, **terms.bounds, **options)

    def _what(self, terms: Terms) -> str:
        assert isinstance(terms.program, ChoiceProgram)
        return f"{terms.program.strategy.value} chosen per trigger in the match graph over the automaton"

    def _delay(self, terms: Terms) -> str:
        assert isinstance(terms.program, ChoiceProgram)
        strategy, automaton = terms.program.strategy, terms.program.automaton
        if strategy is not Strategy.MAX or is_last(automaton):
            return (
                "per trigger O(log n), O(n) where values are compared by order, n = marked events alive; the same for each event that it reaches"
                " whose choice is not known yet, or has left the window since then; then output-linear for what is chosen"
            )
        return (
            f"per trigger at most {MAXIMAL_LIMIT:,} steps of O(r), r = marked events that it reaches: matches that the same events would"
            " enlarge are compared together, none is listed; then output-linear for what is chosen"
        )


class _Asked:
    """What the regions of a program ask of indexes.

    updates: what an event costs. answers: a line for each comparison, in plain words. sets: whether sets of values are kept. several: whether no
    index answers all that some region asks. ambiguous: whether a match may be found in several ways. complete: whether every macro state was looked
    at.
    """

    def __init__(self, program: Program) -> None:
        self._alphabet = program.automaton.alphabet
        tables = GuardTables(program)
        regions = tables.regions
        self._layered = tables.layered
        self.updates: dict[str, None] = {}
        self.answers: dict[str, None] = {}
        self.several = self.sets = False
        edges: list[tuple[int, int]] = []
        kept: list[tuple[int, int]] = []
        seen, todo = {regions.initial}, [regions.initial]
        while todo and len(seen) <= LOOKED_AT:
            macro = todo.pop()
            for target, keeps in self._look_at(regions, macro):
                (kept if keeps else edges).append((macro.number, target.number))
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        self.ambiguous, self.complete = regions.ambiguous, not todo
        # What is kept once for each variable is no set: an iteration is where a move can be taken again.
        self.sets |= any(source in reached({target}, edges + kept) for source, target in kept)

    def _look_at(self, regions: Regions, macro: Macro) -> list[tuple[Macro, bool]]:
        """What one macro state asks; its moves, and whether these keep choices of events."""
        moves = []
        for region in regions_of(regions, macro):
            if region.label is None:
                self.updates.setdefault(UNMARKED)
            elif any(target in self._layered for target, _ in region.targets):
                self.updates.setdefault(LAYERS)
                for slot in sorted({slot for term in region.made for slot in reads(term)}):
                    name = self._names(macro)[slot]
                    self.answers.setdefault(f"({name}) is kept over events that ask nothing of it: they enter a group once it is asked for")
            elif macro is not regions.initial:
                self._ask(region, self._names(macro), regions.several(macro))
            moves += [(target, any(isinstance(term, Joined) for term in region.made)) for target, _ in region.targets]
            self.sets |= bool(region.targets) and any(isinstance(term, Gathered) and term.how == "set" for term in region.made)
        return moves

    def _names(self, macro: Macro) -> list[str]:
        """What the slots of a macro state hold: one value may be that of several registers."""
        names: list[dict[str, None]] = [{} for _ in range(macro.slots)]
        for _, held in macro.configurations:
            for register, slot in held:
                names[slot].setdefault(self._alphabet.names[register])
        return [" = ".join(each) for each in names]

    def _ask(self, region: Region, names: Sequence[str], sets: frozenset[int]) -> None:
        equal, others = equalities(region, sets)
        kind = _kind(others, sets)
        if equal:
            self.updates.setdefault(HASHED)
        self.several |= kind == GROUPS
        for slot in sorted({slot for term in region.made for slot in reads(term)} - equal.keys()):  # else it is a value of the event
            self.updates.setdefault(CARRIED)
            self.answers.setdefault(f"({names[slot]}) is carried to a later comparison: one index for each of its values alive")
        if kind != ALL:
            self.updates.setdefault(UPDATES[kind])
        for test, truth in region.literals:
            if not truth or not reads(test):
                continue
            if isinstance(test, Computes):
                answer = ASKED if any(step.question is not None for step in steps(test.condition)) else COMPUTED
            else:
                answer = AMONG if reads(test) & sets else ANSWERS[ALL if (test, truth) not in others else kind]
            self.answers.setdefault(f"{test_text(test, names)}: {answer}")


def _kind(conditions: Sequence[Condition], sets: frozenset[int]) -> str:
    """What these conditions ask of partial matches that are equal."""
    match conditions:
        case []:
            return ALL
        case [(Elapsed(before=Before(register=slot), now=Time() | Index()) as first, _), *_] if slot not in sets and all(
            isinstance(test, Elapsed) and (test.before, test.now) == (first.before, first.now) for test, _ in conditions
        ):
            return AGE
        case [(Compares(before=Before(register=slot), operator=operator), truth)] if (
            slot not in sets and (operator if truth else NEGATED[operator]) != "="
        ):
            return ORDER
    return GROUPS
