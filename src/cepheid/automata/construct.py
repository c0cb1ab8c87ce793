"""One construction per operator: a pattern in LP-normal form becomes a complex event automaton.

Source: foundations-cel, Theorem 3 and appendix B.3 (type, FILTER, OR, `;`, `+`); timed-cel, section 4 (AS on any pattern, AND, `:`, PROJECT). Each
construction is linear in its operands (for counts: in their copies), except AND, which is a product, and NXT, LAST and MAX, which are in
`strategies`. There are no empty moves. To continue from `p` with `q`, the transitions into the final states of `p` are copied. To skip an optional
item, the transitions that begin the items after it are copied: this adds no states, and k^2 / 2 transitions for k optional items in a row.

Gaps, and windows inside a pattern, store the time of one event and ask another how long ago that was (timed-cel, section 4). Conditions between
events are in `conditions`, `guards` has what all of these store and ask.
"""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from cepheid.automata import beginnings
from cepheid.automata.alphabet import LEAST_NUMBER_BITS, LETTER_BITS, Alphabet
from cepheid.automata.automaton import Automaton, Negated, Part
from cepheid.automata.conditions import completed, correlated, iterations, marked_by_prefixes, started, supplied
from cepheid.automata.fragment import MAX_STATES, Fragment, States, all_pending, check_supplied
from cepheid.automata.guards import Guards, UnforeseenPredicatesError
from cepheid.automata.negation import complement, unless, waiting
from cepheid.automata.predicates import conjunctions, is_own, moved_on, of_condition, of_type, predicates_of
from cepheid.automata.products import hide_fragment, leaving, product, shuffle, staying
from cepheid.automata.registers import Before, Compares, Elapsed, Now, Store
from cepheid.automata.strategies import RULES, select
from cepheid.automata.succession import HISTORIES, THROUGH, apart, completing, first, following, pointed, remaining
from cepheid.automata.transform import hide, spans, trim
from cepheid.automata.transition import BEGINS, ENDS, HIDDEN, PRECEDES, SHOWN, Transition, order
from cepheid.errors import REFERENCE_HELP, BindError, LimitError, NotSupportedError
from cepheid.language.syntax import Strategy, TimeModel
from cepheid.logical import plan
from cepheid.logical.beginnings import begins_anywhere, begins_earlier, has_made, points
from cepheid.logical.decided import decided
from cepheid.logical.describe import describe
from cepheid.logical.durations import longest
from cepheid.logical.predicates import tests_type
from cepheid.logical.tree import walk
from cepheid.logical.types import time_value_type
from cepheid.logical.windows import Windows, hoist

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cepheid.automata.alphabet import Predicate, Tracker
    from cepheid.automata.negation import Complement
    from cepheid.automata.registers import Test
    from cepheid.errors import Span
    from cepheid.logical.plan import Expression, Interval, Pattern
    from cepheid.schema import EventSchema


class _Asked(NamedTuple):
    """A negated pattern of which a guard asks when a match began that has ended.

    body: its fragment. parts: how many parts there were by then. timed, ends: see `Negated`.
    """

    pattern: Pattern
    body: Fragment
    parts: int
    timed: bool
    ends: bool


class _Chosen(NamedTuple):
    """A part of whose matches an evaluation chooses some, as it was built: by a strategy, or as what is next. See `Part`.

    body: all its matches, or without the windows over it, which bound the evaluation.
    """

    pattern: Pattern
    body: Fragment
    rule: Strategy | TimeModel
    text: str
    ended: plan.Derived | None = None
    leads: bool = False


@dataclass
class Constructor(States):
    """What the constructions share: the numbering of states, and the alphabet; its predicates are known before, trackers and guards join it.

    masks: of each predicate that they ask for. chosen: the parts of whose matches evaluations choose some. negated: the patterns of which guards ask
    when a match began that has ended. compares: whether the pattern is known to have guards; then they ask for negated patterns of several events
    too, for these would move what waits (`_refusing`). moved: whether they do. leading: see `_leading`.
    """

    schema: EventSchema
    alphabet: Alphabet
    masks: Mapping[Predicate, int]
    guards: Guards
    chosen: list[_Chosen] = field(default_factory=list)
    negated: list[_Asked] = field(default_factory=list)
    compares: bool = False
    moved: bool = False
    leading: frozenset[int] = frozenset()

    @classmethod
    def over(cls, pattern: Pattern, schema: EventSchema, *, more: tuple[Predicate, ...] = (), compares: bool = False) -> Constructor:
        """With the predicates of a pattern, and more, but without states; conditions that are asked of the same events are one."""
        asked = dict.fromkeys(predicates_of(pattern, schema))
        wholes = {each: each for each in asked} | conjunctions(pattern, schema)
        alphabet = Alphabet(tuple(dict.fromkeys([*(wholes[each] for each in asked), *more])))
        bits = {predicate: 1 << bit for bit, predicate in enumerate(alphabet.predicates)}
        masks = {each: bits[wholes[each]] for each in asked}
        guards = Guards(schema, len(alphabet.predicates) + LETTER_BITS)
        return cls(schema, alphabet, masks, guards, compares=compares, leading=frozenset(_leading(pattern)))

    def clock(self, span: Span) -> Expression:
        """The time of an event; raises BindError where events have none."""
        if self.schema.time_type is None:
            raise BindError("a time window or gap needs events with times", span=span, help="name the time column with time=")
        return plan.Time("", time_value_type(self.schema.time_type))

    def text(self, pattern: Pattern) -> str:
        """A pattern as the names of registers have it."""
        return describe(pattern, unit=self.schema.unit)

    def build(self, pattern: Pattern) -> Fragment:
        """The fragment of a pattern; raises NotSupportedError for an operator that has no construction."""
        construction = CONSTRUCTIONS.get(type(pattern))
        if construction is None:
            raise unsupported(pattern)
        try:
            return supplied(self.guards, pattern, construction(self, pattern))
        except LimitError as error:
            error.span = error.span or pattern.span
            raise

    def automaton(self, fragment: Fragment) -> Automaton:
        """A fragment as an automaton, with the alphabet so far and the guards that its runs need. Raises BindError as `check_supplied`."""
        check_supplied(fragment)
        found = Automaton(self.states, fragment.initial, fragment.finals, order(fragment.moves), self.alphabet)
        return self.guards.finished(trim(found)) if self.guards.registers else found

    def whole(self, fragment: Fragment) -> Automaton:
        """The automaton of the whole pattern, trimmed, and those of its parts, once all trackers are known. Raises as `automaton` and `fitted`."""
        found = self._with_parts(self._fitted(fragment), self.chosen)
        return dataclasses.replace(found, negated=tuple(map(self._negated, self.negated))) if found.compares else found

    def _with_parts(self, found: Automaton, chosen: Sequence[_Chosen]) -> Automaton:
        return dataclasses.replace(found, parts=tuple(map(self._part, chosen))) if any(t.parts for t in found.transitions) else found

    def _fitted(self, fragment: Fragment) -> Automaton:
        found = self.automaton(fragment)
        return trim(dataclasses.replace(found, alphabet=fitted(found.alphabet)))

    def _part(self, chosen: _Chosen) -> Part:
        pattern, body, rule, text, ended, leads = chosen
        bounds = hoist(pattern)[1] & Windows(window=longest(pattern))
        earlier, everywhere = (ended is not None and holds(pattern) for holds in (begins_earlier, begins_anywhere))
        body = body if everywhere else leaving(body)
        return Part(rule, hide(self._fitted(body)), bounds.window, bounds.count, text, earlier, ended, everywhere, leads)

    def _negated(self, asked: _Asked) -> Negated:
        pattern, body, parts, timed, ends = asked
        bounds = hoist(pattern)[1] & Windows(window=longest(pattern))
        earlier = begins_earlier(pattern) and not ends
        place = plan.Derived("begin of time") if timed else plan.Begin.of("place")
        begins = place if earlier and begins_anywhere(pattern) else None
        found = self._with_parts(spans(self._fitted(leaving(body)), begins, inside=timed), self.chosen[:parts])
        return Negated(found, bounds.window, bounds.count, self.text(pattern), earlier=earlier, timed=timed, ends=ends)


def construct(pattern: Pattern, schema: EventSchema) -> Automaton:
    """The complex event automaton of a pattern, trimmed; its matches are those of the pattern.

    pattern: in LP-normal form (`logical.rewrite`); any other has the same matches, with more registers. States are linear in the pattern, with its
    counts, but for AND (a product). Raises NotSupportedError with the operator's place outside the fragment, BindError for a condition on a variable
    that nothing supplies, LimitError past `MAX_STATES` and `LETTER_BITS`.
    """
    more: tuple[Predicate, ...] = ()
    compares = False
    while True:
        constructor = Constructor.over(pattern, schema, more=more, compares=compares)
        try:
            found = constructor.whole(constructor.build(pattern))
        except UnforeseenPredicatesError as unforeseen:
            more += unforeseen.predicates
            continue
        if compares or not (found.alphabet.guards and constructor.moved):
            return found
        compares = True


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


def unsupported(part: Pattern | plan.Link | plan.Interval | Expression, *, what: str | None = None) -> NotSupportedError:
    """The error for a part of a pattern outside the automaton fragment, at its place; what: its name, where it is no operator by itself."""
    return NotSupportedError(
        f"{what or OPERATOR_NAMES.get(type(part), type(part).__name__)} is not supported by the automaton engine",
        span=part.span,
        help=REFERENCE_HELP,
    )


OPERATOR_NAMES: dict[type, str] = {plan.Absence: "NOT FOLLOWED BY"}


# --------------------------------------------------------------------------------------------------------------- the constructions


def _event(constructor: Constructor, pattern: plan.Event, conditions: Iterable[Expression] = ()) -> Fragment:
    initial, final = constructor.state(), constructor.state()
    requires = 0
    if pattern.type is not None and tests_type(pattern, constructor.schema):
        requires |= constructor.masks[of_type(pattern.type, constructor.schema)]
    for condition in conditions:
        if isinstance(condition, plan.Literal):
            if condition.value is not True:
                return Fragment(initial, frozenset({final}), ())
            continue
        requires |= constructor.masks[of_condition(condition, constructor.schema)]
    return Fragment(initial, frozenset({final}), (Transition(initial, final, requires, frozenset({pattern.variable})),))


def _filter(constructor: Constructor, pattern: plan.Filter) -> Fragment:
    """Conditions on single events, then the others.

    Over NXT, LAST and MAX the first stay where they are, and bind every event that is put in their variable.
    """
    own = [condition for condition in pattern.conditions if is_own(pattern, condition)]
    event = isinstance(pattern.pattern, plan.Event)
    body = _event(constructor, pattern.pattern, own) if isinstance(pattern.pattern, plan.Event) else constructor.build(pattern.pattern)
    for condition in [] if event else own:
        variables = plan.variables_of(condition)
        if isinstance(condition, plan.Literal):
            body = body if condition.value is True else dataclasses.replace(body, moves=())
            continue
        requires = constructor.masks[of_condition(condition, constructor.schema)]
        moves = (
            dataclasses.replace(move, requires=move.requires | requires) if move.mark and variables <= move.mark else move
            for move in body.moves
        )
        body = dataclasses.replace(body, moves=tuple(moves))
    for condition in pattern.conditions:
        if condition not in own:
            body = correlated(constructor.guards, body, condition, pattern.pattern)
    return body


def _named(constructor: Constructor, pattern: plan.Named) -> Fragment:
    """AS: the variable joins every visible mark, for the support is what it names."""
    body = constructor.build(pattern.pattern)
    return _marked(body, lambda mark: mark | {pattern.variable} if mark else mark)


def _project(constructor: Constructor, pattern: plan.Project) -> Fragment:
    """PROJECT: hidden events keep an empty mark until `transform.hide`, for they may still be first or last."""
    body = _marked(constructor.build(pattern.pattern), lambda mark: mark & pattern.variables)
    return staying(body) if begins_anywhere(pattern) else body


def _marked(body: Fragment, change: Callable[[frozenset[str]], frozenset[str]]) -> Fragment:
    return body.changed(lambda move: move if move.mark is None else dataclasses.replace(move, mark=change(move.mark)))


def _or(constructor: Constructor, pattern: plan.Or) -> Fragment:
    return either(constructor, [constructor.build(operand) for operand in pattern.operands])


def either(states: States, operands: Sequence[Fragment]) -> Fragment:
    """OR: a new initial state from which each operand may begin."""
    initial = states.state()
    moves = [move for operand in operands for move in operand.moves]
    moves += [dataclasses.replace(move, source=initial) for operand in operands for move in operand.first]
    return Fragment(initial, frozenset().union(*(operand.finals for operand in operands)), tuple(moves), all_pending(operands))


def _sequence(constructor: Constructor, pattern: plan.Sequence) -> Fragment:
    """`p ; q` and `p : q`, with optional items and gaps; and THEN."""
    alternatives = decided(pattern)
    if alternatives != [pattern]:
        return either(
            constructor,
            [_sequence(constructor, each) if isinstance(each, plan.Sequence) else constructor.build(each) for each in alternatives],
        )
    place = points(pattern)
    return (
        _linked(constructor, pattern, constructor.build(pattern.items[0])) if place is None else _behind_point(constructor, pattern, place)
    )


def _behind_point(constructor: Constructor, pattern: plan.Sequence, place: int) -> Fragment:
    """A sequence with THEN under POINT of what may begin anywhere, at the last such link: its sides do not stand one behind the other."""
    items, links = pattern.items, pattern.links
    before = items[0] if place == 0 else plan.Sequence(items[: place + 1], links[:place], span=pattern.span)
    both = plan.Sequence((before, items[place + 1]), (links[place],), span=pattern.span)
    found = supplied(constructor.guards, both, _pointed(constructor, both))
    if place + 1 == len(links):
        return found
    return _linked(constructor, plan.Sequence((both, *items[place + 2 :]), links[place + 1 :], span=pattern.span), found)


def _pointed(constructor: Constructor, pattern: plan.Sequence) -> Fragment:
    """`p THEN q` under POINT: by letters alone, or by guards at the end of q, where no q has ended between the time of the end of p and this one."""
    (link,), (first, item) = pattern.links, pattern.items
    before, body = constructor.build(first), constructor.build(item)
    moved, automaton = _moved_on(constructor, link), constructor.automaton(body)
    asks = constructor.compares or any(map(begins_earlier, pattern.items)) or bool(before.pending) or automaton.compares
    told = None if asks or constructor.automaton(before).compares else completing(automaton)
    if told is not None:
        states, alphabet = constructor.states, constructor.alphabet
        _join(constructor, told.tracker)
        found = pointed(constructor, before, body, told, constructor.alphabet, moved)
        if found is not None:
            constructor.moved = True
            return found
        constructor.states, constructor.alphabet = states, alphabet
    name = f"end of {constructor.text(first)}"
    stores, tests = _aged(constructor, plan.Interval(1, None), name)
    since, ask = _latest(constructor, item, constructor.build(item), name, "ended earlier", ">=")
    stores |= since
    before = before.changed(lambda move: dataclasses.replace(move, writes=move.writes | stores) if move.target in before.finals else move)
    body = body.changed(lambda move: constructor.guards.asking(move, (*tests, ask)) if move.target in body.finals else move)
    found = shuffle(constructor, before, body, constructor.alphabet, ends_last=True)
    return staying(found) if _hides_begin(pattern) else found


def _by_letters(constructor: Constructor, model: TimeModel, body: Fragment, automaton: Automaton, moved: int) -> Fragment | None:
    """The right side of THEN, of its matches those that are next, by letters alone; None where these would be too many."""
    if model not in HISTORIES or not _several(automaton):
        return following(constructor, body, automaton, constructor.alphabet, moved, through=THROUGH.get(model, False))
    ahead = remaining(automaton, moved)
    if ahead is None:
        return None
    _join(constructor, ahead.tracker)
    return first(constructor, body, automaton, ahead, constructor.alphabet, moved, histories=HISTORIES[model])


def _join(constructor: Constructor, tracker: Tracker) -> None:
    constructor.alphabet = dataclasses.replace(constructor.alphabet, trackers=(*constructor.alphabet.trackers, tracker))
    fitted(constructor.alphabet)  # or the tracker would reach the bits of guards


def _several(automaton: Automaton) -> bool:
    """Whether matches may have several events."""
    return any(move.target not in automaton.finals for move in automaton.transitions)


def _moved_on(constructor: Constructor, link: plan.Link) -> int:
    """The bit that says that time has moved on; raises BindError where events have no time."""
    moved = moved_on(constructor.schema)
    if moved is None:
        raise BindError("THEN needs events with times", span=link.span, help="name the time column with time=")
    return constructor.masks[moved]


def _linked(constructor: Constructor, pattern: plan.Sequence, first: Fragment) -> Fragment:
    """A sequence without such links; first: its first item, as it was built."""
    parts = [first]
    gaps: list[frozenset[Store]] = []
    between: list[Complement | None] = []
    # Where an item may begin before the event that is read first, its link compares places: with that of the last event before it.
    later = pattern.items[1:]
    ended = constructor.guards.register(f"place of the end before {constructor.text(pattern)}") if any(map(begins_earlier, later)) else None
    ends = frozenset() if ended is None else frozenset({Store(ended, Now(plan.Index("")))})
    for link, (before, item) in zip(pattern.links, itertools.pairwise(pattern.items), strict=True):
        _check_link(link, (before, item))
        if link.operator == "THEN":
            parts[-1], part, waits, since = _next(constructor, link, before, item, parts[-1])
            parts.append(part)
            between.append(waits)
            gaps.append(since)
            continue
        if begins_earlier(item):
            assert ended is not None
            name = f"end of {constructor.text(before)}"
            stores, tests = _told(constructor, ended, link, name)
            _, since, asks = _refusing(constructor, link.without, name, "ended before begin", small=False)
            tests += asks
            between.append(None)
            gaps.append(stores | since)
            parts.append(
                beginnings.asking(constructor, constructor.guards, constructor.build(item), tests, everywhere=begins_anywhere(item))
            )
            continue
        stores, tests = _aged(constructor, link.gap, f"end of {constructor.text(before)}")
        waits, since, asks = _refusing(constructor, link.without, f"end of {constructor.text(before)}", "ended before")
        between.append(waits)
        gaps.append(stores | since)
        parts.append(constructor.guards.asking_first(constructor.build(item), tests + asks))
    parts, begins = marked_by_prefixes(pattern, parts)
    optional = [isinstance(item, plan.Optional) for item in pattern.items]
    # What stands behind another item does not say where the sequence begins.
    parts = [part if all(optional[:place]) else leaving(part) for place, part in enumerate(parts)]
    last = [place for place in range(len(parts)) if all(optional[place + 1 :])]
    waits_in = [None if each is None else waiting(constructor, part.initial, each) for part, each in zip(parts[1:], between, strict=True)]
    loose = [link.operator != ":" or begins_earlier(item) for link, item in zip(pattern.links, later, strict=True)]
    body = chain(parts, loose, optional, last, gaps=gaps, between=waits_in, ends=ends)
    for pending, level, scope in begins:
        body = started(body, pending, level)
        if not pending.correlation.missing:
            body = completed(constructor.guards, body, pending, scope)
    return body


def _next(
    constructor: Constructor, link: plan.Link, before: Pattern, item: Pattern, left: Fragment
) -> tuple[Fragment, Fragment, Complement | None, frozenset[Store]]:
    """Both sides of THEN, of the right one the matches that are next; how one waits for it, and what the end of the left side stores.

    Without guards its complement runs beside what waits (`succession`). Else, and where it may begin before the event that is read first, a guard
    asks, as for NOT, when a match of it began that has ended, with its times for places (`apart`). left: the fragment of the left side.
    """
    body, earlier = constructor.build(item), begins_earlier(item)
    automaton = constructor.automaton(body)
    model = link.model or TimeModel.CAYUGA
    bit = _moved_on(constructor, link)
    waits = ((Transition(0, 0, forbids=bit),),)  # before time has moved on nothing is read
    constructor.moved |= not earlier
    if not (automaton.compares or constructor.compares or earlier):
        states, alphabet = constructor.states, constructor.alphabet
        found = _by_letters(constructor, model, body, automaton, bit)
        if found is not None:
            return left, found, waits, frozenset()
        constructor.states, constructor.alphabet = states, alphabet
    chooses = model in HISTORIES and (_several(automaton) or earlier)
    through = chooses or THROUGH.get(model, False)
    name, later = f"end of {constructor.text(before)}", plan.Interval(1, None)
    # A choice asks for times itself.
    stores, tests = (frozenset[Store](), ()) if chooses else (_begins_after if earlier else _aged)(constructor, later, name)
    around = (item, plan.Event(None)) if earlier else (plan.Event(None), item, plan.Event(None))
    whole = plan.Sequence(around, (plan.Link(";"),) * (len(around) - 1), span=link.span)
    between = apart(constructor, constructor.build(item), bit, earlier=earlier)
    kind = "ended by begin" if earlier and not through else "ended"
    since, ask = _latest(constructor, whole, between, name, kind, ">=", timed=earlier)
    if chooses:
        assert isinstance(ask.now, plan.Derived)
        chosen = _Chosen(item, body, model, constructor.text(item), ask.now)
        return *_chosen_next(constructor, chosen, ask, left), None, since
    anywhere = begins_anywhere(item)
    body = beginnings.asking(constructor, constructor.guards, body, tests if through else (*tests, ask), everywhere=anywhere)
    if through:
        # Where each event asks for the left side, it asks this too: what waits for no match any more is not carried on.
        body = body.changed(
            lambda move: (
                constructor.guards.asking(move, (ask,)) if move.target in body.finals or (anywhere and move.mark is not None) else move
            )
        )
    return left, body, None, stores | since


def _chosen_next(constructor: Constructor, chosen: _Chosen, ask: Compares, left: Fragment) -> tuple[Fragment, Fragment]:
    """Both sides of THEN under ACTIVE_OFFICE and COMPLETE_HISTORY, where the right one is chosen in the match graph (`Part`).

    The evaluation asks all at the end of the right side, and looks back to the end of the left side. A guard leaves out before what can be left out
    at the event of the right side that is read first: `ask`, whether another match of it has ended since then.
    """
    place = (len(constructor.chosen), PRECEDES)
    left = left.changed(lambda move: dataclasses.replace(move, parts=move.parts | {place}) if move.target in left.finals else move)
    return left, constructor.guards.asking_first(_placed(constructor, chosen), (ask,))


def _told(constructor: Constructor, ended: int, link: plan.Link, name: str) -> tuple[frozenset[Store], tuple[Test, ...]]:
    """What says that a pattern begins behind the one before it, wherever it is read; and what a gap stores at the end of that one.

    ended: the register with the place where that one ends. name: of what the gap keeps.
    """
    tests = (beginnings.behind(ended, adjacent=link.operator == ":"),)
    if link.gap is None:
        return frozenset(), tests
    stores, asks = _begins_after(constructor, link.gap, name)
    return stores, (*tests, *asks)


def _begins_after(constructor: Constructor, interval: Interval, name: str) -> tuple[frozenset[Store], tuple[Test, ...]]:
    """What stores the time of an event, and what asks how long after it another one begins."""
    register = constructor.guards.register(name)
    stores = frozenset({Store(register, Now(constructor.clock(interval.span)))})
    return stores, (Elapsed(Before(register), plan.Begin.of("time"), interval),)


def _check_link(link: plan.Link, beside: Iterable[Pattern]) -> None:
    if link.gap is not None and any(isinstance(item, plan.Optional) for item in beside):
        raise unsupported(link.gap, what="a time gap beside an optional item")


def _aged(constructor: Constructor, interval: Interval | None, name: str) -> tuple[frozenset[Store], tuple[Test, ...]]:
    """What stores the time of an event, and what asks how long ago that was; nothing where any time will do."""
    if interval is None or (interval.lower <= 0 and interval.upper is None):
        return frozenset(), ()
    return _age(constructor, constructor.clock(interval.span), interval, name)


def _age(constructor: Constructor, clock: Expression, interval: Interval, name: str) -> tuple[frozenset[Store], tuple[Test, ...]]:
    register = constructor.guards.register(name)
    return frozenset({Store(register, Now(clock))}), (Elapsed(Before(register), clock, interval),)


def chain(
    parts: Sequence[Fragment],
    loose: Sequence[bool],
    optional: Sequence[bool],
    last: Iterable[int],
    *,
    gaps: Sequence[frozenset[Store]],
    between: Sequence[tuple[list[int], list[Transition]] | None] | None = None,
    ends: frozenset[Store] = frozenset(),
) -> Fragment:
    """Parts one after the other: the initial state of a part is where one waits before it; it has a waiting loop behind `;` and none behind `:`.

    loose: per link whether it is `;`. optional: per part whether it may be passed by. last: the parts with which a match may end. gaps: per link what
    stores the time of the left side's end. between: per link the states and moves in which one waits (`negation.waiting`), None: as said. ends: what
    the end of each part stores that another one follows.
    """
    between = between or [None] * len(loose)
    sources: list[list[int]] = [[] for _ in parts]
    for place, part in enumerate(parts):
        for behind in _begun(place, loose, optional):
            sources[behind].append(part.initial)
    moves = []
    for place, (link, waits) in enumerate(zip(loose, between, strict=True), 1):
        if waits is not None:
            sources[place] += waits[0][1:]
            moves += waits[1]
        elif link:
            moves.append(Transition(parts[place].initial, parts[place].initial))
    for place, part in enumerate(parts):
        own = [*part.moves, *(dataclasses.replace(move, source=source) for source in sources[place] for move in part.first)]
        moves += own
        whole = dataclasses.replace(part, moves=tuple(own))
        for behind in _entered(place, loose, optional):
            # Beside an optional item there is no gap, so only the next part is behind one.
            moves += whole.ending_in(parts[behind].initial, writes=ends | (gaps[place] if behind == place + 1 else frozenset()))
    finals = frozenset().union(*(parts[place].finals for place in last))
    return Fragment(parts[0].initial, finals, tuple(moves), all_pending(parts))


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
    """`p+` and `p:+`, and counted: a chain of so many copies, any of which from the least count on may end the match.

    The copies share registers: what each of them begins with says what is left of the one before.
    """
    before = constructor.states
    body = constructor.build(pattern.pattern)
    longest = pattern.minimum if pattern.maximum is None else pattern.maximum
    _check_copies(longest, constructor.states - before, before, pattern)
    name = f"end of the {constructor.text(pattern.pattern)} before"
    body, again, complete = iterations(pattern, body)
    adjacent = pattern.adjacent
    if begins_earlier(pattern.pattern):
        link = plan.Link(":" if adjacent else ";", pattern.gap, span=pattern.span)
        ended = constructor.guards.register(f"place of the {name}")
        stores, tests = _told(constructor, ended, link, name)
        stores, adjacent = stores | {Store(ended, Now(plan.Index("")))}, False
        again = beginnings.asking(constructor, constructor.guards, again, tests, everywhere=begins_anywhere(pattern.pattern))
    else:
        stores, tests = _aged(constructor, pattern.gap, name)
        again = constructor.guards.asking_first(again, tests)
    copies = [body, *(_copied(constructor, again) for _ in range(longest - 1))]
    if pattern.maximum is None:
        if begins_anywhere(pattern.pattern):
            copies[-1] = _looped(constructor, copies[-1], _copied(constructor, again), stores)
        else:
            copies[-1] = plus(constructor, copies[-1], again, stores, adjacent=adjacent)
    links = longest - 1
    found = chain(copies, [not adjacent] * links, [False] * longest, range(pattern.minimum - 1, longest), gaps=[stores] * links)
    for pending in complete:
        found = completed(constructor.guards, found, pending, pattern.pattern)
    return found


def _copied(constructor: Constructor, body: Fragment) -> Fragment:
    """The same with states of its own."""
    states = sorted({body.initial, *body.finals, *(state for move in body.moves for state in (move.source, move.target))})
    numbers = {state: constructor.state() for state in states}
    moves = (dataclasses.replace(move, source=numbers[move.source], target=numbers[move.target]) for move in body.moves)
    return dataclasses.replace(
        body, initial=numbers[body.initial], finals=frozenset(numbers[state] for state in body.finals), moves=tuple(moves)
    )


def _check_copies(count: int, states: int, before: int, pattern: plan.Iterate) -> None:
    """Raises LimitError where so many copies with so many states each, and those before, are too many."""
    if before + count * states > MAX_STATES:
        raise LimitError(
            f"repeated {count} times the pattern needs {before + count * states} automaton states, and the limit is {MAX_STATES} (MAX_STATES)",
            span=pattern.span,
            help="lower the counts, or split the query",
        )


def plus(states: States, body: Fragment, again: Fragment, stores: frozenset[Store], *, adjacent: bool) -> Fragment:
    """`p+` and `p:+`: after an iteration one rests in a state that begins the next one.

    again: how the body begins there, over the same or other states.
    """
    rest = states.state()
    # Later iterations differ from the first in what they begin with alone, so they go on in its states.
    pairs = zip(again.moves, body.moves, strict=True)
    back = [dataclasses.replace(move, source=rest, target=own.target) for move, own in pairs if own.source == body.initial]
    moves = [*body.moves, *body.ending_in(rest, writes=stores), *back]
    moves += [dataclasses.replace(move, target=rest, writes=move.writes | stores) for move in back if move.target in body.finals]
    if not adjacent:
        moves.append(Transition(rest, rest))
    return dataclasses.replace(body, moves=tuple(moves))


def _looped(states: States, body: Fragment, again: Fragment, stores: frozenset[Store]) -> Fragment:
    """The same, where a later iteration differs in more than what it begins with; again: it, in states of its own."""
    rest = states.state()
    later = again.changed(lambda move: dataclasses.replace(move, source=rest) if move.source == again.initial else move)
    ends = [*body.ending_in(rest, writes=stores), *later.ending_in(rest, writes=stores)]
    moves = (*body.moves, *later.moves, *ends, Transition(rest, rest))
    return dataclasses.replace(body, finals=body.finals | later.finals, moves=moves)


def _and(constructor: Constructor, pattern: plan.And) -> Fragment:
    """AND: both runs at once; where PROJECT hides an event that says where a match begins, guards ask whether they begin at one place."""
    hides, anywhere = _hides_begin(pattern), begins_anywhere(pattern.operands[0])
    left, *others = (hide_fragment(constructor.build(operand)) for operand in pattern.operands)
    for operand, right in zip(pattern.operands[1:], others, strict=True):
        if not hides:
            left = product(constructor, left, right)
            continue
        everywhere = anywhere, begins_anywhere(operand)
        left = beginnings.alike(
            constructor, constructor.guards, (left, right), f"begin of {constructor.text(operand)}", everywhere=everywhere
        )
        anywhere = any(everywhere)
    return left


def _all(constructor: Constructor, pattern: plan.All) -> Fragment:
    """ALL: each prefix supplies its variables, as in a sequence."""
    body = constructor.build(pattern.operands[0])
    for count, operand in enumerate(pattern.operands[1:], 2):
        prefix = dataclasses.replace(pattern, operands=pattern.operands[:count])
        body = supplied(constructor.guards, prefix, shuffle(constructor, body, constructor.build(operand), constructor.alphabet))
    return staying(body) if _hides_begin(pattern) else body


def _hides_begin(pattern: Pattern) -> bool:
    """Whether PROJECT may hide an event that says where a match begins."""
    return begins_earlier(pattern) and any(isinstance(node, plan.Project) and has_made(node) for node in walk(pattern))


def _unless(constructor: Constructor, pattern: plan.Unless) -> Fragment:
    """UNLESS: the complement of the right side runs beside the left one, from its first event to its last; or a guard asks at the last one."""
    body = constructor.build(pattern.pattern)
    name, before = f"start of {constructor.text(pattern.pattern)}", constructor.states
    if begins_earlier(pattern.pattern) or begins_earlier(pattern.negated):
        return _unless_earlier(constructor, pattern, body, name)
    unwanted, stores, tests = _refusing(constructor, pattern.negated, name, "ended")
    if unwanted is not None:
        found = unless(constructor, body, unwanted, constructor.alphabet)
        if found is not None:
            return found
        constructor.states = before
        _, stores, tests = _refusing(constructor, pattern.negated, name, "ended", small=False)

    def asked(move: Transition) -> Transition:
        begins, ends = move.source == body.initial, move.target in body.finals
        if begins and not ends:
            return dataclasses.replace(move, writes=move.writes | stores)
        alone = [dataclasses.replace(test, before=Now(PLACE)) for test in tests]
        return constructor.guards.asking(move, alone if begins else tests) if ends else move

    return body.changed(asked)


def _unless_earlier(constructor: Constructor, pattern: plan.Unless, body: Fragment, name: str) -> Fragment:
    """UNLESS where a side may begin before the event that is read first."""
    _, _, (ask,) = _refusing(constructor, pattern.negated, name, "ended", small=False)
    assert isinstance(ask.before, Before)
    alone = dataclasses.replace(ask, before=Now(plan.Begin.of("place")))
    everywhere = begins_anywhere(pattern.pattern)
    return beginnings.asking_last(constructor.guards, body, (ask.before.register, "place"), [((ask,), (alone,))], everywhere=everywhere)


PLACE = plan.Derived("place")
"""How many events of the partition came before."""


def _refusing(
    constructor: Constructor, negated: Pattern | None, name: str, kind: str, *, small: bool = True
) -> tuple[Complement | None, frozenset[Store], tuple[Compares, ...]]:
    """How a negated pattern, which sees nothing around it, is refused: its complement, or None and what guards store and ask.

    A guard compares a place that is stored, where the pattern may begin from, with the greatest start of its matches that have ended: so whatever it
    is, one number says it (event-algebra, Figure 2). name: of the place. kind: of the `Derived` that is asked for. small: False where the complement
    is known to be too large.
    """
    if negated is None:
        return None, frozenset(), ()
    body = constructor.build(negated)
    automaton = constructor.automaton(body)
    small = small and not begins_earlier(negated)
    several = any(move.target not in automaton.finals for move in automaton.transitions)
    if small and not automaton.compares and not (several and constructor.compares):
        unwanted = complement(automaton)
        if unwanted is not None:
            constructor.moved |= several
            return unwanted, frozenset(), ()
    # Between two patterns a match begins behind the end of the first one.
    stores, ask = _latest(constructor, negated, body, name, kind, ">" if kind == "ended" else ">=")
    return None, stores, (ask,)


def _latest(
    constructor: Constructor,
    negated: Pattern,
    body: Fragment,
    name: str,
    kind: str,
    operator: str,
    *,
    timed: bool = False,
) -> tuple[frozenset[Store], Compares]:
    """What stores a place, and what compares it with the greatest start of the matches of a negated pattern that have ended.

    body: its fragment. kind: of `Derived`. timed: see `Negated`.
    """
    constructor.negated.append(_Asked(negated, body, len(constructor.chosen), timed, kind == "ended earlier"))
    register = constructor.guards.register(name)
    latest = plan.Derived(kind, len(constructor.negated) - 1, constructor.text(negated))
    return frozenset({Store(register, Now(PLACE))}), Compares(Before(register), operator, latest)


def _within(constructor: Constructor, pattern: plan.Within) -> Fragment:
    """A time window: the first event's time is stored, and the last event asks how long ago that was."""
    body, interval = constructor.build(pattern.pattern), pattern.interval
    name = f"start of {constructor.text(pattern.pattern)}"
    if begins_earlier(pattern.pattern):
        return _windowed_earlier(constructor, body, pattern, interval, name)
    stores, tests = _aged(constructor, interval, name)
    return _windowed(constructor, body, stores, tests, single=0 in interval)


def _within_events(constructor: Constructor, pattern: plan.WithinEvents) -> Fragment:
    """A window of events: the same with positions."""
    body, interval = constructor.build(pattern.pattern), plan.Interval(0, pattern.count - 1)
    name = f"position of {constructor.text(pattern.pattern)}"
    if begins_earlier(pattern.pattern):
        return _windowed_earlier(constructor, body, pattern, interval, name)
    stores, tests = _age(constructor, plan.Index(""), interval, name)
    return _windowed(constructor, body, stores, tests, single=True)


def _windowed(constructor: Constructor, body: Fragment, stores: frozenset[Store], tests: tuple[Test, ...], *, single: bool) -> Fragment:
    """single: whether a match of one event, whose first event is its last, is in the window."""
    moves = []
    for move in body.moves:
        if move.source == body.initial:
            if move.target in body.finals and not single:
                continue
            moves.append(dataclasses.replace(move, writes=move.writes | stores))
        else:
            moves.append(constructor.guards.asking(move, tests) if move.target in body.finals else move)
    return dataclasses.replace(body, moves=tuple(moves))


def _windowed_earlier(
    constructor: Constructor, body: Fragment, pattern: plan.Within | plan.WithinEvents, interval: Interval, name: str
) -> Fragment:
    """A window over what may begin before the event that is read first."""
    everywhere = begins_anywhere(pattern.pattern)
    timed, register = isinstance(pattern, plan.Within), constructor.guards.register(name)
    now = constructor.clock(interval.span) if timed else plan.Index("")
    since = plan.Begin.of("age" if timed else "length")
    most: tuple[Test, ...] = (Compares(Now(since), "<=", _whole(interval.upper)),) if interval.upper is not None else ()
    least: tuple[Test, ...] = (Compares(Now(since), ">=", _whole(interval.lower)),) if interval.lower > 0 else ()
    exact, short = (Elapsed(Before(register), now, each) for each in (interval, plan.Interval(0, interval.upper)))
    # An upper bound is one of all events, a lower one of one of them: of the last one, or of those before.
    ways: list[beginnings.Way] = [((exact,), most)] if everywhere and least else []
    ways.append(((short if everywhere else exact,), (*least, *most)))
    stored = register, "time" if timed else "place"
    return beginnings.asking_last(constructor.guards, body, stored, ways, everywhere=everywhere)


def _whole(number: int) -> plan.Literal:
    return plan.Literal(number, pa.int64())


def _select(constructor: Constructor, pattern: plan.Select) -> Fragment:
    if pattern.strategy is Strategy.ALL:
        return constructor.build(pattern.pattern)
    if pattern.strategy is Strategy.STRICT:
        return strict(constructor, constructor.build(pattern.pattern))
    if pattern.strategy not in RULES:
        raise unsupported(pattern, what=f"the nested strategy {pattern.strategy.value}")
    inner, bounds = hoist(pattern.pattern)
    own = constructor.build(inner)
    if bounds != Windows():
        return _bounded(constructor, pattern, own, inner)
    body = trim(constructor.automaton(own))
    kept = None if body.compares else _kept(body, pattern.strategy)
    if kept is None:
        return _placed(constructor, _Chosen(pattern.pattern, own, pattern.strategy, constructor.text(pattern)))
    constructor.alphabet = kept.alphabet
    numbers = [constructor.state() for _ in range(kept.states)]
    moves = (dataclasses.replace(move, source=numbers[move.source], target=numbers[move.target]) for move in kept.transitions)
    return Fragment(numbers[kept.initial], frozenset(numbers[state] for state in kept.finals), tuple(moves))


def _bounded(constructor: Constructor, pattern: plan.Select, own: Fragment, inner: Pattern) -> Fragment:
    """A part with windows over it, which bound the evaluation that chooses: it needs no guards for them, and no groups by where matches begin.

    Around it they are left out too where each match begins with the part, at an event that its support has: then the supports that are chosen say
    when it begins, and what began before the window counts no more. own: the pattern without the windows, `inner`.
    """
    hides = any(isinstance(part, plan.Project) for part in walk(inner))
    leads = id(pattern) in constructor.leading and inner is not pattern.pattern and not hides
    around = own if leads else constructor.build(pattern.pattern)
    chosen = _Chosen(pattern.pattern, own, pattern.strategy, constructor.text(pattern), leads=leads)
    return _placed(constructor, chosen, around)


def _leading(pattern: Pattern) -> Iterator[int]:
    """The identities of the parts in which a strategy chooses, and with which every match of a pattern begins that has one of them."""
    match pattern:
        case plan.Select():
            yield id(pattern)
            if pattern.strategy in {Strategy.ALL, Strategy.STRICT}:
                yield from _leading(pattern.pattern)
        case plan.Sequence():
            yield from _leading(pattern.items[0])
        case plan.Or():
            for operand in pattern.operands:
                yield from _leading(operand)
        case plan.Filter() | plan.Named() | plan.Within() | plan.WithinEvents() | plan.Unless():
            yield from _leading(pattern.pattern)


def _kept(body: Automaton, strategy: Strategy) -> Automaton | None:
    """The automaton of a strategy; None past a limit of it."""
    try:
        kept = select(body, strategy)
        fitted(kept.alphabet)  # or the trackers would reach the bits of guards
    except LimitError:
        return None
    return kept


def _placed(constructor: Constructor, chosen: _Chosen, around: Fragment | None = None) -> Fragment:
    """A part that is chosen in the match graph: its marked events say which place they have in it; around: as it is built inside the pattern."""
    number, body = len(constructor.chosen), around or chosen.body
    constructor.chosen.append(chosen)
    # What PROJECT hides there may say where the part begins, also where that is not where the whole match begins.
    tells = chosen.ended is not None and begins_anywhere(chosen.pattern)

    def place(move: Transition) -> Transition:
        places = {BEGINS: move.source == body.initial, SHOWN: bool(move.mark), ENDS: move.target in body.finals}
        places[HIDDEN[1]] = tells and move.mark is not None and not move.mark
        return dataclasses.replace(move, parts=move.parts | {(number, name) for name, has in places.items() if has})

    return body.changed(place)


def strict(constructor: Constructor, body: Fragment) -> Fragment:
    """STRICT: the visible marks are an interval (foundations-cel, Theorem 4: linear, three copies).

    The phases of a run: nothing visible yet, inside the interval, past it. Hidden and unmarked events may stand outside the interval only.
    """
    check_supplied(body)
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
    plan.All: _all,  # type: ignore[dict-item]
    plan.Unless: _unless,  # type: ignore[dict-item]
    plan.Sequence: _sequence,  # type: ignore[dict-item]
    plan.Optional: _optional,  # type: ignore[dict-item]
    plan.Iterate: _iterate,  # type: ignore[dict-item]
    plan.Select: _select,  # type: ignore[dict-item]
    plan.Within: _within,  # type: ignore[dict-item]
    plan.WithinEvents: _within_events,  # type: ignore[dict-item]
}
