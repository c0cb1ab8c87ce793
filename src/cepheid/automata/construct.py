"""One construction per operator: a pattern in LP-normal form becomes a complex event automaton.

Source: foundations-cel, Theorem 3 and appendix B.3 (type, FILTER, OR, `;`, `+`); timed-cel, section 4 (AS on any pattern, AND, `:`, PROJECT). Each
construction is linear in its operands (for counts: in their copies), except AND, which is a product, and NXT, LAST and MAX, which are in
`strategies`. There are no empty moves. To continue from `p` with `q`, the transitions into the final states of `p` are copied. To skip an optional
item, the transitions that begin the items after it are copied: this adds no states, and k^2 / 2 transitions for k optional items in a row.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.automata.alphabet import LEAST_NUMBER_BITS, LETTER_BITS, Alphabet, Predicate
from cepheid.automata.automaton import Automaton
from cepheid.automata.strategies import RULES, select
from cepheid.automata.transform import trim
from cepheid.automata.transition import Transition, order
from cepheid.errors import REFERENCE_HELP, LimitError, NotSupportedError
from cepheid.language.syntax import Strategy
from cepheid.logical import plan
from cepheid.logical.plan import localize
from cepheid.logical.predicates import tested_type, tests_type, type_test
from cepheid.logical.tree import walk
from cepheid.logical.variables import defined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cepheid.logical.plan import Expression, Pattern
    from cepheid.schema import EventSchema

MAX_STATES = 20_000
"""States that a construction may make before trimming."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """An automaton under construction, with the invariants of `automaton`: nothing enters `initial`, nothing leaves `finals`."""

    initial: int
    finals: frozenset[int]
    moves: tuple[Transition, ...]

    @property
    def first(self) -> list[Transition]:
        """The moves that begin a match."""
        return [move for move in self.moves if move.source == self.initial]

    def ending_in(self, state: int) -> list[Transition]:
        """Copies of the moves that end a match, leading to `state`."""
        return [dataclasses.replace(move, target=state) for move in self.moves if move.target in self.finals]


@dataclass
class Constructor:
    """What the constructions share: the numbering of states, and the alphabet; its predicates are known before, trackers join it.

    masks: of each predicate that they ask for.
    """

    schema: EventSchema
    alphabet: Alphabet
    masks: Mapping[Predicate, int]
    states: int = 0

    @classmethod
    def over(cls, pattern: Pattern, schema: EventSchema) -> Constructor:
        """With the predicates of a pattern, but without states; conditions that are asked of the same events are one."""
        asked = dict.fromkeys(predicates_of(pattern, schema))
        wholes = {each: each for each in asked} | conjunctions(pattern, schema)
        alphabet = Alphabet(tuple(dict.fromkeys(wholes[each] for each in asked)))
        bits = {predicate: 1 << bit for bit, predicate in enumerate(alphabet.predicates)}
        return cls(schema, alphabet, {each: bits[wholes[each]] for each in asked})

    def state(self) -> int:
        """A new state."""
        if self.states == MAX_STATES:
            raise LimitError(
                f"the pattern needs more than {MAX_STATES} automaton states (MAX_STATES)",
                help="write a shorter pattern: counted repetitions and AND multiply states",
            )
        self.states += 1
        return self.states - 1

    def automaton(self, fragment: Fragment) -> Automaton:
        """A fragment as an automaton, with the alphabet so far."""
        return Automaton(self.states, fragment.initial, fragment.finals, order(fragment.moves), self.alphabet)

    def build(self, pattern: Pattern) -> Fragment:
        """The fragment of a pattern; raises NotSupportedError for an operator that has no construction."""
        construction = CONSTRUCTIONS.get(type(pattern))
        if construction is None:
            raise unsupported(pattern)
        return construction(self, pattern)


def construct(pattern: Pattern, schema: EventSchema) -> Automaton:
    """The complex event automaton of a pattern, trimmed; its matches are those of the pattern.

    pattern: in LP-normal form (`logical.rewrite`). States are linear in the pattern, with its counts, but for AND (a product). Raises
    NotSupportedError with the operator's place outside the fragment, LimitError past `MAX_STATES` and `LETTER_BITS`.
    """
    constructor = Constructor.over(pattern, schema)
    automaton = constructor.automaton(constructor.build(pattern))
    return trim(dataclasses.replace(automaton, alphabet=fitted(automaton.alphabet)))


def fitted(alphabet: Alphabet) -> Alphabet:
    """The alphabet with letters that fit in a machine word; raises LimitError where its trackers and flags leave no room for a number."""
    found = alphabet.fitted()
    if found.bits > LETTER_BITS:
        types, conditions = found.types.bit_count(), len(found.predicates) - found.types.bit_count()
        raise LimitError(
            f"the {types} event types and {conditions} conditions of the query need {found.spelling_bits} bits, and its strategies {found.rest};"
            f" the limit is {LETTER_BITS} bits (LETTER_BITS), or {LETTER_BITS - LEAST_NUMBER_BITS} for the strategies alone",
            help="split the query, or apply strategies to shorter patterns",
        )
    return found


def predicates_of(pattern: Pattern, schema: EventSchema) -> Iterator[Predicate]:
    """The predicates that the construction of a pattern asks for, in its order: of each event the type, then the conditions around it."""
    if isinstance(pattern, plan.Event):
        if pattern.type is not None and tests_type(pattern, schema):
            yield of_type(pattern.type, schema)
        return
    for part in pattern.children():
        yield from predicates_of(part, schema)
    if isinstance(pattern, plan.Filter):
        for condition in pattern.conditions:
            if plan.is_local(condition) and not isinstance(condition, plan.Literal):
                yield of_condition(condition, schema)


def of_type(name: str, schema: EventSchema) -> Predicate:
    """The predicate of a type test."""
    return Predicate(type_test(name, schema), name)


def of_condition(condition: Expression, schema: EventSchema) -> Predicate:
    """The predicate of a local condition; one that says what a type test says is that."""
    condition = localize(condition)
    return Predicate(condition, tested_type(condition, schema))


def conjunctions(pattern: Pattern, schema: EventSchema) -> dict[Predicate, Predicate]:
    """For each local condition of a pattern one predicate that says it and all others that are asked of exactly the same events."""
    asked: dict[Predicate, set[object]] = defaultdict(set)
    for number, node in enumerate(walk(pattern)):
        if not isinstance(node, plan.Filter):
            continue
        for condition in node.conditions:
            if plan.is_local(condition) and not isinstance(condition, plan.Literal):
                # Of one event all conditions speak; of longer patterns, those of one variable.
                speaks = None if isinstance(node.pattern, plan.Event) else plan.variables_of(condition)
                asked[of_condition(condition, schema)].add((number, speaks))
    together: dict[frozenset[object], list[Predicate]] = defaultdict(list)
    for predicate, places in asked.items():
        if predicate.type is None:
            together[frozenset(places)].append(predicate)
    found: dict[Predicate, Predicate] = {}
    for parts in together.values():
        whole = parts[0] if len(parts) == 1 else Predicate(plan.Apply("and", tuple(part.condition for part in parts), pa.bool_()))
        found |= dict.fromkeys(parts, whole)
    return found


def unsupported(part: Pattern | plan.Link | plan.Interval, *, what: str | None = None) -> NotSupportedError:
    """The error for a part of a pattern outside the automaton fragment, at its place; what: its name, where it is no operator by itself."""
    return NotSupportedError(
        f"{what or OPERATOR_NAMES.get(type(part), type(part).__name__)} is not supported by the automaton engine",
        span=part.span,
        help=REFERENCE_HELP,
    )


OPERATOR_NAMES: dict[type, str] = {
    plan.All: "ALL between patterns",
    plan.Unless: "UNLESS",
    plan.Absence: "NOT FOLLOWED BY",
    plan.Within: "a time window on a sub-pattern",
    plan.WithinEvents: "a window of events on a sub-pattern",
    plan.Filter: "a condition that correlates events",
}


# --------------------------------------------------------------------------------------------------------------- the constructions


def _event(constructor: Constructor, pattern: plan.Event, conditions: Iterable[Expression] = ()) -> Fragment:
    initial, final = constructor.state(), constructor.state()
    requires = 0
    if pattern.type is not None and tests_type(pattern, constructor.schema):
        requires |= constructor.masks[of_type(pattern.type, constructor.schema)]
    for condition in conditions:
        if not plan.is_local(condition):
            raise NotSupportedError(
                "a condition that correlates events is not supported by the automaton engine", span=condition.span, help=REFERENCE_HELP
            )
        if isinstance(condition, plan.Literal):
            if condition.value is not True:
                return Fragment(initial, frozenset({final}), ())
            continue
        requires |= constructor.masks[of_condition(condition, constructor.schema)]
    return Fragment(initial, frozenset({final}), (Transition(initial, final, requires, frozenset({pattern.variable})),))


def _filter(constructor: Constructor, pattern: plan.Filter) -> Fragment:
    """Local conditions; over NXT, LAST and MAX they stay where they are, and bind every event that is put in their variable."""
    if isinstance(pattern.pattern, plan.Event):
        return _event(constructor, pattern.pattern, pattern.conditions)
    body = constructor.build(pattern.pattern)
    for condition in pattern.conditions:
        variables = plan.variables_of(condition)
        if not plan.is_local(condition) or not variables <= defined(pattern.pattern):
            raise NotSupportedError(
                "a condition that correlates events is not supported by the automaton engine", span=condition.span, help=REFERENCE_HELP
            )
        if isinstance(condition, plan.Literal):
            body = body if condition.value is True else dataclasses.replace(body, moves=())
            continue
        requires = constructor.masks[of_condition(condition, constructor.schema)]
        moves = (
            dataclasses.replace(move, requires=move.requires | requires) if move.mark and variables <= move.mark else move
            for move in body.moves
        )
        body = dataclasses.replace(body, moves=tuple(moves))
    return body


def _named(constructor: Constructor, pattern: plan.Named) -> Fragment:
    """AS: the variable joins every visible mark, for the support is what it names."""
    body = constructor.build(pattern.pattern)
    return _marked(body, lambda mark: mark | {pattern.variable} if mark else mark)


def _project(constructor: Constructor, pattern: plan.Project) -> Fragment:
    """PROJECT: hidden events keep an empty mark until `transform.hide`, for they may still be first or last."""
    body = constructor.build(pattern.pattern)
    return _marked(body, lambda mark: mark & pattern.variables)


def _marked(body: Fragment, change: Callable[[frozenset[str]], frozenset[str]]) -> Fragment:
    moves = (move if move.mark is None else dataclasses.replace(move, mark=change(move.mark)) for move in body.moves)
    return Fragment(body.initial, body.finals, tuple(moves))


def _or(constructor: Constructor, pattern: plan.Or) -> Fragment:
    operands = [constructor.build(operand) for operand in pattern.operands]
    initial = constructor.state()
    moves = [move for operand in operands for move in operand.moves]
    moves += [dataclasses.replace(move, source=initial) for operand in operands for move in operand.first]
    return Fragment(initial, frozenset().union(*(operand.finals for operand in operands)), tuple(moves))


def _sequence(constructor: Constructor, pattern: plan.Sequence) -> Fragment:
    """`p ; q` and `p : q`, with optional items."""
    parts = []
    for link, item in zip((None, *pattern.links), pattern.items, strict=True):
        if link is not None:
            _check_link(link)
        parts.append(constructor.build(item))
    optional = [isinstance(item, plan.Optional) for item in pattern.items]
    ends = [place for place in range(len(parts)) if all(optional[place + 1 :])]
    return _chain(parts, [link.operator == ";" for link in pattern.links], optional, ends)


def _check_link(link: plan.Link) -> None:
    if link.operator == "THEN":
        raise unsupported(link, what="THEN")
    if link.without is not None:
        raise unsupported(link.without, what="NOT between two items of a sequence")
    if link.gap is not None:
        raise unsupported(link.gap, what="a time gap")


def _chain(parts: Sequence[Fragment], loose: Sequence[bool], optional: Sequence[bool], ends: Iterable[int]) -> Fragment:
    """Parts one after the other: the initial state of a part is where one waits before it; it has a waiting loop behind `;` and none behind `:`.

    loose: per link whether it is `;`. optional: per part whether it may be passed by. ends: the parts with which a match may end.
    """
    sources: list[list[int]] = [[] for _ in parts]
    for place, part in enumerate(parts):
        for behind in _begun(place, loose, optional):
            sources[behind].append(part.initial)
    moves = [Transition(part.initial, part.initial) for part, link in zip(parts[1:], loose, strict=True) if link]
    for place, part in enumerate(parts):
        own = [*part.moves, *(dataclasses.replace(move, source=source) for source in sources[place] for move in part.first)]
        targets = [parts[behind].initial for behind in _entered(place, loose, optional)]
        moves += own
        moves += [dataclasses.replace(move, target=target) for target in targets for move in own if move.target in part.finals]
    return Fragment(parts[0].initial, frozenset().union(*(parts[place].finals for place in ends)), tuple(moves))


def _begun(place: int, loose: Sequence[bool], optional: Sequence[bool]) -> range:
    """The parts behind a part that may begin in the state before it, if those between are absent.

    Behind `:` no further than to the next `;`, for the state has no waiting loop; there `_entered` leads on.
    """
    waits = place == 0 or loose[place - 1]
    last = place
    while last < len(loose) and optional[last] and (waits or not loose[last]):
        last += 1
    return range(place + 1, last + 1)


def _entered(place: int, loose: Sequence[bool], optional: Sequence[bool]) -> list[int]:
    """The parts before which one rests after a part: the next one, and behind `:` also the first one that a `;` leads to past absent parts."""
    if place == len(loose):
        return []
    last = place
    while last < len(loose) and not loose[last] and optional[last + 1]:
        last += 1
    return [place + 1, last + 1] if place < last < len(loose) and loose[last] else [place + 1]


def _optional(constructor: Constructor, pattern: plan.Optional) -> Fragment:
    """What is there when it is there; the sequence around it passes it by."""
    return constructor.build(pattern.pattern)


def _iterate(constructor: Constructor, pattern: plan.Iterate) -> Fragment:
    """`p+` and `p:+`, and counted: a chain of so many copies, any of which from the least count on may end the match."""
    if pattern.gap is not None:
        raise unsupported(pattern.gap, what="a time gap in an iteration")
    copies, before = [], constructor.states
    longest = pattern.minimum if pattern.maximum is None else pattern.maximum
    for count in range(1, longest + 1):
        last = pattern.maximum is None and count == longest
        copies.append(_plus(constructor, pattern) if last else constructor.build(pattern.pattern))
        if count == 1:
            _check_copies(longest, constructor.states - before, before, pattern)
    return _chain(copies, [not pattern.adjacent] * (longest - 1), [False] * longest, range(pattern.minimum - 1, longest))


def _check_copies(count: int, states: int, before: int, pattern: plan.Iterate) -> None:
    """Raises LimitError where so many copies with so many states each, and those before, are too many."""
    if before + count * states > MAX_STATES:
        raise LimitError(
            f"repeated {count} times the pattern needs {before + count * states} automaton states, and the limit is {MAX_STATES} (MAX_STATES)",
            span=pattern.span,
            help=("lower the counts, or split the query", "cepheid.automata.construct.MAX_STATES is the limit"),
        )


def _plus(constructor: Constructor, pattern: plan.Iterate) -> Fragment:
    """`p+` and `p:+`: after an iteration one rests in a state that begins the next one."""
    body = constructor.build(pattern.pattern)
    rest = constructor.state()
    moves = [*body.moves, *body.ending_in(rest)]
    moves += [dataclasses.replace(move, source=rest) for move in moves if move.source == body.initial]
    if not pattern.adjacent:
        moves.append(Transition(rest, rest))
    return Fragment(body.initial, body.finals, tuple(moves))


def _and(constructor: Constructor, pattern: plan.And) -> Fragment:
    operands = [hide_fragment(constructor.build(operand)) for operand in pattern.operands]
    left = operands[0]
    for right in operands[1:]:
        left = _product(constructor, left, right)
    return left


def _product(constructor: Constructor, left: Fragment, right: Fragment) -> Fragment:
    """Both runs at once, with equal marks (timed-cel, section 4).

    Hidden marks inside are gone, so equal marks mean equal complex events.
    """
    outgoing: dict[int, list[Transition]] = {}
    for move in right.moves:
        outgoing.setdefault(move.source, []).append(move)
    left_outgoing: dict[int, list[Transition]] = {}
    for move in left.moves:
        left_outgoing.setdefault(move.source, []).append(move)
    start = (left.initial, right.initial)
    numbers = {start: constructor.state()}
    todo, moves = [start], []
    while todo:
        pair = todo.pop()
        for a in left_outgoing.get(pair[0], ()):
            for b in outgoing.get(pair[1], ()):
                if a.mark != b.mark:
                    continue
                target = (a.target, b.target)
                if target not in numbers:
                    numbers[target] = constructor.state()
                    todo.append(target)
                both = a.requires | b.requires, a.mark, a.forbids | b.forbids, a.writes | b.writes
                moves.append(Transition(numbers[pair], numbers[target], *both))
    finals = frozenset(number for (a, b), number in numbers.items() if a in left.finals and b in right.finals)
    # A pair that is final on one side alone is a dead end: finals have no way out.
    return Fragment(numbers[start], finals, tuple(moves))


def hide_fragment(body: Fragment) -> Fragment:
    """Hidden marks inside become no marks; the first and the last event keep theirs (see `transform.hide`)."""
    moves = (
        dataclasses.replace(move, mark=None)
        if move.mark is not None and not move.mark and move.source != body.initial and move.target not in body.finals
        else move
        for move in body.moves
    )
    return Fragment(body.initial, body.finals, tuple(moves))


def _select(constructor: Constructor, pattern: plan.Select) -> Fragment:
    if pattern.strategy is Strategy.ALL:
        return constructor.build(pattern.pattern)
    if pattern.strategy is Strategy.STRICT:
        return strict(constructor, constructor.build(pattern.pattern))
    if pattern.strategy not in RULES:
        raise unsupported(pattern, what=f"the nested strategy {pattern.strategy.value}")
    body = trim(constructor.automaton(constructor.build(pattern.pattern)))
    kept = select(body, pattern.strategy, span=pattern.span)
    constructor.alphabet = kept.alphabet
    numbers = [constructor.state() for _ in range(kept.states)]
    moves = (dataclasses.replace(move, source=numbers[move.source], target=numbers[move.target]) for move in kept.transitions)
    return Fragment(numbers[kept.initial], frozenset(numbers[state] for state in kept.finals), tuple(moves))


def strict(constructor: Constructor, body: Fragment) -> Fragment:
    """STRICT: the visible marks are an interval (foundations-cel, Theorem 4: linear, three copies).

    The phases of a run: nothing visible yet, inside the interval, past it. Hidden and unmarked events may stand outside the interval only.
    """
    before, inside, past = 0, 1, 2
    numbers: dict[tuple[int, int], int] = {}

    def number(state: int, phase: int) -> int:
        if (state, phase) not in numbers:
            numbers[state, phase] = constructor.state()
        return numbers[state, phase]

    moves = []
    for move in body.moves:
        for phase in (before, inside, past):
            if move.mark and phase == past:
                continue
            after = inside if move.mark else (before if phase == before else past)
            moves.append(dataclasses.replace(move, source=number(move.source, phase), target=number(move.target, after)))
    finals = frozenset(n for (state, _), n in numbers.items() if state in body.finals)
    return Fragment(number(body.initial, before), finals, tuple(moves))


CONSTRUCTIONS: dict[type[Pattern], Callable[[Constructor, Pattern], Fragment]] = {
    plan.Event: _event,  # type: ignore[dict-item]  # each construction takes its own node class, which is its key
    plan.Filter: _filter,  # type: ignore[dict-item]
    plan.Named: _named,  # type: ignore[dict-item]
    plan.Project: _project,  # type: ignore[dict-item]
    plan.Or: _or,  # type: ignore[dict-item]
    plan.And: _and,  # type: ignore[dict-item]
    plan.Sequence: _sequence,  # type: ignore[dict-item]
    plan.Optional: _optional,  # type: ignore[dict-item]
    plan.Iterate: _iterate,  # type: ignore[dict-item]
    plan.Select: _select,  # type: ignore[dict-item]
}
