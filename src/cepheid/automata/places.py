"""Row patterns as places: the automaton of MATCH_RECOGNIZE, whose ways have an order.

A place is one occurrence of a variable in the unrolled pattern. What can come behind a place is a list of places, the preferred first, and maybe the
end of the pattern (ACCEPT), behind which nothing is preferred any more. So the preferment order of mappings (ISO 19075-5, chapter 7) is the
lexicographic order of ways, and a match is found by taking, at each row, the first way that can still succeed (`engine.evaluations.preferred`).

Construction. What is still to be matched is a chain of pattern parts, each before the rest (`_Chains`); a chain is made once, so it is a state. A
quantifier puts a round of its body before itself, and counts: up to its upper bound, or without one up to its lower bound, for that is all that
matters. A round that maps no row, and that reaches the lower bound or comes behind it, ends its quantifier (7.2.8), so a chain also says which of its
rounds have mapped a row; with that no way from place to place can run in a circle. Anchors are ways that are open at the first row,
or behind the last one. PERMUTE is the alternatives of all orders; of single variables, each of which maps one row in one way, what is left to come is
enough to know.

Size: O(pattern), times the bounds of its quantifiers, times 2 for each round around a part that can be empty; past PLACES_LIMIT a LimitError.
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cepheid.errors import LimitError
from cepheid.language import rows_syntax as rows
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cepheid.logical.rows import RowPlan

ACCEPT = -1
"""In a list of ways: the pattern ends here."""

PLACES_LIMIT = 16_384
"""Most places of a pattern, each a variable in one place of the unrolled pattern."""

CHAINS = 16
"""Chains for each place of the limit."""

PERMUTED_LIMIT = 7
"""Most parts of a PERMUTE of more than single variables: 7 have 5,040 orders."""

DONE = 0
"""The chain of nothing."""


@record
class Places:
    """A row pattern as places.

    variables: the names; a place has the number of one, and whether its row is in an exclusion. first: the ways from the start of a match, at the
    first row of the partition and at a later one. following: the ways behind each place, where a row comes. ends: of each place whether the pattern
    may end behind it where no row comes, for `$` holds there.
    """

    variables: tuple[str, ...]
    variable: tuple[int, ...]
    excluded: tuple[bool, ...]
    first: tuple[tuple[int, ...], tuple[int, ...]]
    following: tuple[tuple[int, ...], ...]
    ends: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.variable)

    @cached_property
    def preceding(self) -> tuple[tuple[int, ...], ...]:
        """The places before each, in any order; behind them those that may end (at the number of places)."""
        before: list[list[int]] = [[] for _ in range(len(self) + 1)]
        for place, ways in enumerate(self.following):
            for way in ways:
                before[way if way != ACCEPT else len(self)].append(place)
        return tuple(map(tuple, before))


def places_of(plan: RowPlan) -> Places:
    """The places of the pattern of a clause; raises LimitError past PLACES_LIMIT and PERMUTED_LIMIT."""
    return _Construction(plan).places()


@record
class _Round:
    """The end of a round of a quantifier, as a part: how many there were, and whether this one has mapped a row."""

    quantified: rows.Quantified
    done: int
    took: bool


@record
class _Left:
    """What is left of a PERMUTE of variables, as a part: the numbers of those that come."""

    permutation: rows.Permutation
    numbers: tuple[int, ...]


LEAVE = "leave"
"""The end of an exclusion, as a part."""


class _Chains:
    """Chains of parts, each made once: the first part, and the number of the rest."""

    def __init__(self) -> None:
        self.links: list[tuple[Any, int]] = [(None, DONE)]
        self.excluded = [False]
        self._known: dict[tuple[Any, int], int] = {}
        self._taken: dict[int, int] = {DONE: DONE}

    def link(self, part: Any, rest: int) -> int:
        """The chain of a part before a rest."""
        key = (_identity(part), rest)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.links)
            self.links.append((part, rest))
            self.excluded.append(part == LEAVE or self.excluded[rest])
        return found

    def links_of(self, parts: Sequence[Any], rest: int) -> int:
        """The chain of several parts before a rest."""
        for part in reversed(parts):
            rest = self.link(part, rest)
        return rest

    def taken(self, chain: int) -> int:
        """The chain once a row was mapped: so it was in each round that is open."""
        open_: list[int] = []
        while chain not in self._taken:
            open_.append(chain)
            chain = self.links[chain][1]
        for each in reversed(open_):
            part, rest = self.links[each]
            if isinstance(part, _Round) and not part.took:
                part = _Round(part.quantified, part.done, took=True)
            self._taken[each] = self.link(part, self._taken[rest])
        return self._taken[open_[0]] if open_ else self._taken[chain]


def _identity(part: Any) -> Any:
    """What tells a part from others. Two equal ones of the pattern are two places: these are told apart by where they are."""
    match part:
        case _Round(quantified, done, took):
            return id(quantified), done, took
        case _Left(permutation, numbers):
            return id(permutation), numbers
        case str():
            return part
    return id(part)


class _Construction:
    """The places of one pattern, while they are made."""

    def __init__(self, plan: RowPlan) -> None:
        self._plan = plan
        self._chains = _Chains()
        self._known: dict[tuple[int, int], int] = {}  # by the number of the variable and the chain behind: its place
        self._places: list[tuple[int, bool, int]] = []
        self._numbers = {name: number for number, name in enumerate(plan.variables)}
        self._empty: dict[int, bool] = {}

    def places(self) -> Places:
        """All of them, from the start of a match."""
        start = self._chains.link(self._plan.pattern, DONE)
        first = self._ways(start, at_start=True), self._ways(start)
        following: list[tuple[int, ...]] = []
        ends: list[bool] = []
        for _, _, behind in self._places:  # grows on the way
            following.append(self._ways(behind))
            ends.append(self._ways(behind, at_end=True)[-1:] == (ACCEPT,))
        variable, excluded, _ = zip(*self._places, strict=True) if self._places else ((), (), ())
        return Places(self._plan.variables, variable, excluded, first, tuple(following), tuple(ends))

    def _ways(self, chain: int, *, at_start: bool = False, at_end: bool = False) -> tuple[int, ...]:
        """The places that can come next, and ACCEPT, the preferred first; at_end: no row comes, and only ACCEPT matters."""
        found: dict[int, None] = {}
        seen: set[int] = set()
        stack = [chain]
        while stack:
            now = stack.pop()
            if now == DONE:
                found[ACCEPT] = None
                break
            if now in seen:
                continue
            if len(self._chains.links) > CHAINS * PLACES_LIMIT:  # rounds without a row have no place
                raise self._too_many()
            seen.add(now)
            part, rest = self._chains.links[now]
            match part:
                case rows.Variable(name):
                    if not at_end:
                        found[self._place(self._numbers[name], part, rest)] = None
                case rows.PartitionStart():
                    stack += [rest] * at_start
                case rows.PartitionEnd():
                    stack += [rest] * at_end
                case _:
                    stack += reversed(self._parts(part, rest))
        return tuple(found)

    def _place(self, variable: int, part: rows.Variable, rest: int) -> int:
        behind = self._chains.taken(rest)
        key = (id(part), behind)
        if key not in self._known:
            if len(self._places) >= PLACES_LIMIT:
                raise self._too_many()
            self._known[key] = len(self._places)
            self._places.append((variable, self._chains.excluded[rest], behind))
        return self._known[key]

    def _too_many(self) -> LimitError:
        return LimitError(
            f"the pattern has more than {PLACES_LIMIT:,} places (PLACES_LIMIT): each bound of a quantifier multiplies those in it",
            help=("write + or * for a large bound, or a condition on COUNT(*)", "cepheid.automata.places.PLACES_LIMIT is the limit"),
            text=self._plan.text or None,
            span=self._plan.pattern.span,
        )

    def _parts(self, part: Any, rest: int) -> list[int]:
        """The chains that a part stands for, the preferred first."""
        link = self._chains.link
        match part:
            case rows.Concatenation(items):
                return [self._chains.links_of(items, rest)]
            case rows.Alternation(operands):
                return [link(operand, rest) for operand in operands]
            case rows.Permutation(operands) if all(isinstance(operand, rows.Variable) for operand in operands):
                return [link(_Left(part, tuple(range(len(operands)))), rest)]
            case rows.Permutation(operands):
                return [self._chains.links_of(order, rest) for order in itertools.permutations(self._few(part, operands))]
            case _Left(permutation, numbers):
                left = [(permutation.operands[number], tuple(each for each in numbers if each != number)) for number in numbers]
                return [link(operand, link(_Left(permutation, others), rest)) for operand, others in left] or [rest]
            case rows.Exclusion(inner):
                return [link(inner, link(LEAVE, rest))]
            case rows.Quantified():
                return self._rounds(part, 0, rest)
            case _Round(quantified, done, took):
                return self._rounds(quantified, done, rest) if took or done < self._least(quantified) else [rest]
        return [rest]  # nothing, or the end of an exclusion

    def _few(self, part: rows.Permutation, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(operands) > PERMUTED_LIMIT:
            raise LimitError(
                f"this PERMUTE has {len(operands)} parts; the limit is {PERMUTED_LIMIT} (PERMUTED_LIMIT), for each order is a pattern",
                help="write (A | B | C){3}, and conditions that count: COUNT(A.*) = 1",
                text=self._plan.text or None,
                span=part.span,
            )
        return operands

    def _least(self, quantified: rows.Quantified) -> int:
        assert isinstance(quantified.minimum, int), "bound"
        return quantified.minimum

    def _rounds(self, quantified: rows.Quantified, done: int, rest: int) -> list[int]:
        """The chains of one round more and of stopping, behind so many rounds."""
        least, most = self._least(quantified), quantified.maximum
        assert most is None or isinstance(most, int), "bound"
        empty = self._can_be_empty(quantified.pattern)
        count = done + 1 if most is not None else min(done + 1, max(least, 1))
        round_ = _Round(quantified, count, took=not empty)
        more = [self._chains.link(quantified.pattern, self._chains.link(round_, rest))] * (most is None or done < most)
        stop = [rest] * (done >= least)
        return [*stop, *more] if quantified.reluctant else [*more, *stop]

    def _can_be_empty(self, pattern: rows.RowPattern) -> bool:
        """Whether a pattern may map no row."""
        known = self._empty.get(id(pattern))
        if known is None:
            known = self._empty[id(pattern)] = self._is_empty(pattern)
        return known

    def _is_empty(self, pattern: rows.RowPattern) -> bool:
        match pattern:
            case rows.Variable():
                return False
            case rows.Concatenation(operands) | rows.Permutation(operands):
                return all(map(self._can_be_empty, operands))
            case rows.Alternation(operands):
                return any(map(self._can_be_empty, operands))
            case rows.Quantified(inner, minimum):
                return minimum == 0 or self._can_be_empty(inner)
            case rows.Exclusion(inner):
                return self._can_be_empty(inner)
        return True
