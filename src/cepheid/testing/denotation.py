"""What "right" means, for patterns: the set of matches directly from the definitions, without automata.

A pattern denotes a SET of matches. `Denotation` computes the matches of a pattern by recursion on its operators, with one short function for each row
of the semantics. Everything is a plain set of tuples. The cost is exponential, so the number of events and of matches is limited.

Only filters are not local to a pattern, because a condition may use variables that only an enclosing pattern has. So a match has OBLIGATIONS:
conditions that are not checked yet, each with the positions it already has.

- `p FILTER c` (each top-level conjunct of a FILTER is a condition of its own) makes one obligation for each match of p. Variables that are
  visible in p have their positions supplied there: all that they have in that match.
- A missing variable is supplied by the nearest enclosing pattern that BINDS it, with the positions that it has in that pattern's match. In
  `a ; b ; c` the prefixes `a ; b` are enclosing patterns of a and b.
- `prev(x)` is supplied by the innermost enclosing iteration whose body defines x, with x's positions in the previous iteration; in the first
  iteration, or where x was empty in the previous one, the condition holds.
- When nothing is missing, the condition must hold for every choice of one position for each of its variables (so it holds where a variable
  has no position). A match that fails is none.

Optional items and counted iterations are the disjunctions that they abbreviate, except for scopes: an optional item binds nothing, and prev counts
the iterations of `p{n,m}`. Several absent items in a row leave the loosest of the links around them. `p NOT FOLLOWED BY n FOR d` gives the matches of
p. At the end, their end times decide which of them are vetoed, given or undecided: CONSUME, strategies and LIMIT apply to the matches of p.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from cepheid.errors import BindError, InputError, LimitError, NotSupportedError, quoted
from cepheid.language.syntax import Strategy
from cepheid.logical import plan as logical
from cepheid.logical.variables import bound, defined
from cepheid.succession import CAYUGA, MODELS
from cepheid.testing.derived import begins
from cepheid.testing.evaluate import Event, holds

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence

    from cepheid.succession import TemporalModel

MAX_MATCHES = 200_000
"""Most matches of any sub-pattern that the reference makes, counted before duplicates go."""

Variable = tuple[str, bool]
"""A variable of a condition: its name, and whether it stands under prev."""

Bindings = tuple[tuple[str, tuple[int, ...]], ...]
"""Variables with their positions, both ascending; a variable without positions is left out."""


@dataclass(frozen=True, slots=True, order=True)
class Match:
    """A complex event: positions start <= end, and the positions of each variable that has any, by name."""

    start: int
    end: int
    mapping: Bindings

    @property
    def support(self) -> tuple[int, ...]:
        """All positions of the mapping, ascending."""
        return _support(self.mapping)


class Obligation(NamedTuple):
    """A condition that a match must still meet: its number, the positions it has, the variables it lacks."""

    condition: int
    supplied: tuple[tuple[Variable, tuple[int, ...]], ...]
    missing: frozenset[Variable]


class Partial(NamedTuple):
    """A match of a sub-pattern with its obligations."""

    start: int
    end: int
    mapping: Bindings
    pending: frozenset[Obligation] = frozenset()


Chain = tuple[Partial, Bindings]
"""Some iterations joined, with what the last of them gives to prev."""


# ---------------------------------------------------------------------------------------------------------------- matches of patterns


class Denotation:
    """The matches of patterns over one stream (or one partition of it)."""

    def __init__(self, events: Sequence[Event], *, max_matches: int = MAX_MATCHES, text: str = "") -> None:
        self.events = events
        self._begins = begins(events)
        self.max_matches = max_matches
        self.text = text
        self.absences: list[logical.Absence] = []
        self._conditions: list[logical.Expression] = []

    def matches(self, pattern: logical.Pattern) -> set[Match]:
        """The matches of a whole pattern: nothing may be pending. Raises BindError for a pattern that is not well-formed."""
        return {Match(partial.start, partial.end, partial.mapping) for partial in self._whole(self._partials(pattern), pattern)}

    def _whole(self, found: set[Partial], pattern: logical.Pattern) -> set[Partial]:
        """The matches, of which none may be pending: nothing around the pattern supplies a variable."""
        for partial in found:
            for obligation in partial.pending:
                names = sorted({name for name, _ in obligation.missing})
                raise BindError(f"no enclosing pattern binds {quoted(names)}", text=self.text or None, span=pattern.span)
        return found

    # Every operator: the matches by its definition, then the obligations whose variables it binds.

    def _partials(self, pattern: logical.Pattern) -> set[Partial]:
        match pattern:
            case logical.Event():
                found = self._event(pattern)
            case logical.Named():
                found = {_named(partial, pattern.variable) for partial in self._partials(pattern.pattern)}
            case logical.Sequence():
                return self._sequence(pattern)
            case logical.Or():
                found = set().union(*(self._partials(operand) for operand in pattern.operands))
            case logical.And():
                found = self._fold(pattern.operands, self._and)
            case logical.All():
                found = self._fold(pattern.operands, self._all)
            case logical.Iterate():
                found = self._iterate(pattern)
            case logical.Project():
                found = {_projected(partial, pattern.variables) for partial in self._partials(pattern.pattern)}
            case logical.Select():
                found = {
                    Partial(match.start, match.end, match.mapping)
                    for match in select(pattern, self.matches(pattern.pattern), text=self.text)
                }
            case logical.Filter():
                found = self._filter(pattern)
            case logical.Within():
                found = {
                    partial for partial in self._partials(pattern.pattern) if self._elapsed(partial.start, partial.end) in pattern.interval
                }
            case logical.WithinEvents():
                found = {partial for partial in self._partials(pattern.pattern) if partial.end - partial.start < pattern.count}
            case logical.Unless():
                found = self._unless(pattern)
            case logical.Absence():
                self.absences.append(pattern)
                found = self._partials(pattern.pattern)
            case _:
                raise NotSupportedError(f"the reference has no {type(pattern).__name__}", text=self.text or None, span=pattern.span)
        return self._supplied(found, bound(pattern))

    def _event(self, pattern: logical.Event) -> set[Partial]:
        return {
            Partial(self._begins[position], position, ((pattern.variable, (position,)),))
            for position, event in enumerate(self.events)
            if pattern.type is None or event.type == pattern.type
        }

    def _and(self, left: set[Partial], right: set[Partial]) -> Iterator[Partial]:
        """Same interval and same mapping; what is pending on either side stays pending."""
        by_match = defaultdict(list)
        for partial in right:
            by_match[partial[:3]].append(partial.pending)
        for partial in left:
            for pending in by_match[partial[:3]]:
                yield partial._replace(pending=partial.pending | pending)

    def _all(self, left: set[Partial], right: set[Partial]) -> Iterator[Partial]:
        for first, second in itertools.product(left, right):
            yield _joined(first, second)

    def _fold(
        self, operands: Sequence[logical.Pattern], combine: Callable[[set[Partial], set[Partial]], Iterator[Partial]]
    ) -> set[Partial]:
        """n-ary operators associate to the left; each prefix is an enclosing pattern of its operands."""
        found, binds = self._partials(operands[0]), bound(operands[0])
        for operand in operands[1:]:
            binds |= bound(operand)
            found = self._supplied(self._counted(combine(found, self._partials(operand))), binds)
        return found

    def _unless(self, pattern: logical.Unless) -> set[Partial]:
        negated = self.matches(pattern.negated)
        return {
            partial
            for partial in self._partials(pattern.pattern)
            if not any(partial.start <= other.start and other.end <= partial.end for other in negated)
        }

    # ------------------------------------------------------------------------------------------------------------------- sequencing

    def _sequence(self, pattern: logical.Sequence) -> set[Partial]:
        """From left to right: the matches of the items so far by the link behind them, which is the looser one where an item is absent."""
        found: dict[logical.Link | None, set[Partial]] = {}
        binds: frozenset[str] = frozenset()
        nothing = True
        for item, behind in zip(pattern.items, (*pattern.links, None), strict=True):
            binds |= bound(item)
            body = self._item(item)
            here = set(body) if nothing else set()
            for link, partials in found.items():
                assert link is not None
                here |= self._supplied(self._linked(partials, body, link, pattern), binds)
            absent = found if isinstance(item, logical.Optional) else {}
            nothing &= isinstance(item, logical.Optional)
            found = {behind: here}
            for link, partials in absent.items():
                merged = _looser(link, behind)
                found[merged] = found.get(merged, set()) | partials
        return set().union(*found.values())

    def _item(self, item: logical.Pattern) -> set[Partial]:
        return self._partials(item.pattern if isinstance(item, logical.Optional) else item)

    def _linked(self, left: set[Partial], right: set[Partial], link: logical.Link, pattern: logical.Sequence) -> set[Partial]:
        if link.operator == "THEN":
            return self._counted(_joined(first, second) for first, second in self._nexts(left, self._whole(right, pattern), link))
        between = self.matches(link.without) if link.without is not None else set()
        return self._counted(
            _joined(first, second)
            for first, second in self._successions(left, right, adjacent=link.operator == ":", gap=link.gap)
            if not any(first.end < other.start and other.end < second.start for other in between)
        )

    def _nexts(self, left: set[Partial], right: set[Partial], link: logical.Link) -> Iterator[tuple[Partial, Partial]]:
        """Pairs of which the second stamp is a successor of the first among all those of the right side (what-is-next, equation (4))."""
        model: TemporalModel[Any] = CAYUGA if link.model is None else MODELS[link.model.value]
        by_stamp = defaultdict(list)
        for second in right:
            by_stamp[self._stamp(second, model)].append(second)
        nexts: dict[Hashable, list[Partial]] = {}
        for first in left:
            stamp = self._stamp(first, model)
            if stamp not in nexts:
                nexts[stamp] = [second for successor in model.successors(stamp, by_stamp.keys()) for second in by_stamp[successor]]
            for second in nexts[stamp]:
                yield first, second

    def _stamp(self, partial: Partial, model: TemporalModel[Any]) -> Hashable:
        """The stamp of a match: of the times of its support, and of its start and end where PROJECT hides these."""
        stamp: Hashable = model.of(self._time(position) for position in {partial.start, partial.end, *_support(partial.mapping)})
        return stamp

    def _successions(
        self, left: Iterable[Partial], right: Iterable[Partial], *, adjacent: bool, gap: logical.Interval | None
    ) -> Iterator[tuple[Partial, Partial]]:
        """Pairs with end(first) < start(second), or end(first) + 1 = start(second), and the time between them in the gap."""
        by_start = defaultdict(list)
        for second in right:
            by_start[second.start].append(second)
        starts = sorted(by_start)
        for first in left:
            for start in starts[bisect_right(starts, first.end) :]:
                if adjacent and start > first.end + 1:
                    break
                if gap is None or self._elapsed(first.end, start) in gap:
                    for second in by_start[start]:
                        yield first, second

    def _iterate(self, pattern: logical.Iterate) -> set[Partial]:
        """Chains of minimum to maximum matches of the body."""
        body = self._partials(pattern.pattern)
        asked = {name for partial in body for pending in partial.pending for name, previous in pending.missing if previous}
        asked &= defined(pattern.pattern)
        chains = {(partial, project(partial.mapping, asked)) for partial in self._after(body, (), asked)}
        found: set[Partial] = set()
        count = 1
        while chains:
            if pattern.minimum <= count:
                found |= {partial for partial, _ in chains}
            chains = self._longer(chains, body, pattern, asked) if pattern.maximum is None or count < pattern.maximum else set()
            count += 1
            self._check_size(len(found) + len(chains))
        return found

    def _longer(self, chains: set[Chain], body: set[Partial], pattern: logical.Iterate, asked: set[str]) -> set[Chain]:
        """The chains that are one iteration longer."""
        by_last: dict[Bindings, set[Partial]] = defaultdict(set)
        for partial, last in chains:
            by_last[last].add(partial)
        longer: set[Chain] = set()
        for last, partials in by_last.items():
            nexts = self._after(body, last, asked)
            for first, second in self._successions(partials, nexts, adjacent=pattern.adjacent, gap=pattern.gap):
                longer.add((_joined(first, second), project(second.mapping, asked)))
                self._check_size(len(longer))
        return longer

    def _after(self, body: set[Partial], last: Bindings, asked: set[str]) -> set[Partial]:
        """The matches of an iteration's body after an iteration with mapping `last` (empty: there is none), which supplies prev."""
        positions = dict(last)
        return self._meeting(body, {(name, True): positions.get(name, ()) for name in asked})

    # ---------------------------------------------------------------------------------------------------------------------- filters

    def _filter(self, pattern: logical.Filter) -> set[Partial]:
        found = self._partials(pattern.pattern)
        here = defined(pattern.pattern)
        for condition in pattern.conditions:
            number = self._number(condition)
            needed = {(leaf.variable, leaf.previous) for leaf in logical.walk(condition) if isinstance(leaf, _LEAVES)}
            found = self._obliged(found, Obligation(number, (), frozenset(needed)), here)
        return found

    def _obliged(self, found: set[Partial], obligation: Obligation, names: frozenset[str]) -> set[Partial]:
        """The matches with an obligation more, which alone is supplied with `names`; without those that fail it."""
        kept: set[Partial] = set()
        for partial in found:
            positions = dict(partial.mapping)
            own = _supply(obligation, {(name, False): positions.get(name, ()) for name in names})
            if own.missing:
                kept.add(partial._replace(pending=partial.pending | {own}))
            elif self._holds(own):
                kept.add(partial)
        return kept

    def _number(self, condition: logical.Expression) -> int:
        if condition not in self._conditions:
            self._conditions.append(condition)
        return self._conditions.index(condition)

    def _supplied(self, found: Iterable[Partial], names: frozenset[str]) -> set[Partial]:
        """The matches, with their own positions supplied for the pending variables in `names`; those that fail a condition are left out."""
        kept: set[Partial] = set()
        for partial in found:
            if partial.pending:
                positions = dict(partial.mapping)
                kept |= self._meeting({partial}, {(name, False): positions.get(name, ()) for name in names})
            else:
                kept.add(partial)
        return kept

    def _meeting(self, partials: Iterable[Partial], supply: Mapping[Variable, tuple[int, ...]]) -> set[Partial]:
        """The matches with `supply` given to their obligations, without those that fail one that has become complete."""
        kept = set()
        for partial in partials:
            pending = [_supply(obligation, supply) for obligation in partial.pending]
            complete = [obligation for obligation in pending if not obligation.missing]
            if all(self._holds(obligation) for obligation in complete):
                kept.add(partial._replace(pending=frozenset(obligation for obligation in pending if obligation.missing)))
        return kept

    def _holds(self, obligation: Obligation) -> bool:
        variables = [variable for variable, _ in obligation.supplied]
        choices = itertools.product(*(positions for _, positions in obligation.supplied))
        condition = self._conditions[obligation.condition]
        return all(holds(condition, self.events, dict(zip(variables, choice, strict=True))) for choice in choices)

    # ------------------------------------------------------------------------------------------------------------------------- help

    def _elapsed(self, earlier: int, later: int) -> int:
        return self._time(later) - self._time(earlier)

    def _time(self, position: int) -> int:
        time = self.events[position].time
        if time is None:
            raise InputError("a time window, a gap and THEN need events with times", help="give each event a time")
        return time

    def _counted(self, found: Iterable[Partial]) -> set[Partial]:
        kept = set()
        for number, partial in enumerate(found):
            self._check_size(number)
            kept.add(partial)
        return kept

    def _check_size(self, size: int) -> None:
        if size > self.max_matches:
            raise LimitError(
                f"a sub-pattern has more than {self.max_matches} matches, the limit of the reference",
                help="take fewer events or a more selective pattern, or call `cepheid.testing.reference.run` with a greater max_matches=",
            )


# --------------------------------------------------------------------------------------------------------------- pieces of a match

_LEAVES = (logical.Field, logical.Time, logical.Index)


def _support(mapping: Bindings) -> tuple[int, ...]:
    return tuple(sorted({position for _, positions in mapping for position in positions}))


def _joined(first: Partial, second: Partial) -> Partial:
    """The union of two matches: interval, mapping and obligations."""
    positions: dict[str, set[int]] = defaultdict(set)
    for name, places in (*first.mapping, *second.mapping):
        positions[name].update(places)
    mapping = tuple((name, tuple(sorted(places))) for name, places in sorted(positions.items()))
    return Partial(min(first.start, second.start), max(first.end, second.end), mapping, first.pending | second.pending)


def _named(partial: Partial, variable: str) -> Partial:
    support = _support(partial.mapping)
    return _joined(partial, partial._replace(mapping=((variable, support),))) if support else partial


def _projected(partial: Partial, variables: Collection[str]) -> Partial:
    return partial._replace(mapping=project(partial.mapping, variables))


def project(mapping: Bindings, variables: Collection[str]) -> Bindings:
    """A mapping restricted to some variables."""
    return tuple((name, positions) for name, positions in mapping if name in variables)


def _supply(obligation: Obligation, supply: Mapping[Variable, tuple[int, ...]]) -> Obligation:
    given = obligation.missing.intersection(supply)
    supplied = obligation.supplied + tuple((variable, supply[variable]) for variable in sorted(given))
    return Obligation(obligation.condition, supplied, obligation.missing - given)


def _looser(before: logical.Link | None, behind: logical.Link | None) -> logical.Link | None:
    """The link in place of those on both sides of an absent item: `:` only if both are; None at the end, where its link goes too."""
    if before is None or behind is None:
        return None
    return before if before.operator != ":" else behind


# ------------------------------------------------------------------------------------------------------------ selection strategies


def select(pattern: logical.Select, matches: Iterable[Match], *, text: str = "") -> set[Match]:
    """The matches that a strategy keeps: by comparing the supports of the matches that end together."""
    if pattern.strategy not in KEEPS:
        raise NotSupportedError(f"the reference has {pattern.strategy.value} only after SELECT", text=text or None, span=pattern.span)
    keeps = KEEPS[pattern.strategy]
    by_end: dict[int, set[Match]] = defaultdict(set)
    for match in matches:
        by_end[match.end].add(match)
    kept: set[Match] = set()
    for group in by_end.values():
        supports = {frozenset(match.support) for match in group}
        kept |= {match for match in group if keeps(frozenset(match.support), supports)}
    return kept


Support = frozenset[int]


def _is_interval(support: Support, _: set[Support]) -> bool:
    return not support or max(support) - min(support) + 1 == len(support)


def _is_next(support: Support, supports: set[Support]) -> bool:
    return all(other == support or min(support ^ other) in support for other in supports)


def _is_last(support: Support, supports: set[Support]) -> bool:
    return all(other == support or max(support ^ other) in support for other in supports)


def _is_maximal(support: Support, supports: set[Support]) -> bool:
    return not any(support < other for other in supports)


KEEPS: dict[Strategy, Callable[[Support, set[Support]], bool]] = {
    Strategy.ALL: lambda _support, _supports: True,
    Strategy.STRICT: _is_interval,
    Strategy.NXT: _is_next,
    Strategy.LAST: _is_last,
    Strategy.MAX: _is_maximal,
}
"""Whether a strategy keeps a support among those of the matches that end together."""
