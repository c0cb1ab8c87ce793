"""The definition of row patterns beside another one: all mappings of a pattern as a list, the preferred first, of which the first that fits is the match."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

from cepheid.errors import InputError
from cepheid.language import rows_syntax as rows
from cepheid.language.rows_printer import rows_text
from cepheid.language.rows_syntax import Skip
from cepheid.logical.rows_bind import bind_rows
from cepheid.testing.reference_rows import matches, partitions
from cepheid.testing.row_clauses import some_clause, some_rows

if TYPE_CHECKING:
    from cepheid.logical.rows import RowPlan

Mark = tuple[str, bool]
"""A row of a mapping: its variable and whether it is left out, or an anchor and False."""

Mapping = tuple[Mark, ...]

MOST = 2_000
"""Mappings of a pattern; one with more is passed over."""


class TooManyError(Exception):
    """The list is too long."""


def length(mapping: Mapping) -> int:
    return sum(name not in {"^", "$"} for name, _ in mapping)


def listed(pattern: Any, room: int) -> list[Mapping]:
    """The mappings of at most `room` rows, the preferred first."""
    match pattern:
        case rows.Variable(name):
            found: list[Mapping] = [((name, False),)] * (room > 0)
        case rows.Empty():
            found = [()]
        case rows.PartitionStart() | rows.PartitionEnd():
            found = [(("^" if isinstance(pattern, rows.PartitionStart) else "$", False),)]
        case rows.Exclusion(inner):
            found = [tuple((name, name not in {"^", "$"}) for name, _ in mapping) for mapping in listed(inner, room)]
        case rows.Concatenation(items):
            found = one_behind_the_other(items, room)
        case rows.Alternation(operands):
            found = [mapping for operand in operands for mapping in listed(operand, room)]
        case rows.Permutation(operands):
            found = [mapping for order in itertools.permutations(operands) for mapping in one_behind_the_other(order, room)]
        case _:
            found = rounds(pattern, 0, room)
    if len(found) > MOST:
        raise TooManyError
    return list(dict.fromkeys(found))


def one_behind_the_other(items: tuple[Any, ...], room: int) -> list[Mapping]:
    found: list[Mapping] = [()]
    for item in items:
        found = [(*first, *rest) for first in found for rest in listed(item, room - length(first))]
        if len(found) > MOST:
            raise TooManyError
    return found


def rounds(quantified: rows.Quantified, done: int, room: int) -> list[Mapping]:
    """The mappings of the rounds that are left, and of stopping."""
    least, most = quantified.minimum, quantified.maximum
    assert isinstance(least, int)
    more: list[Mapping] = []
    if most is None or done < most:  # type: ignore[operator]  # bound
        for mapping in listed(quantified.pattern, room):
            if not length(mapping) and done + 1 >= least:  # a round without a row, which reaches the bound or is behind it
                more.append(mapping)
            else:
                more += [(*mapping, *rest) for rest in rounds(quantified, done + 1, room - length(mapping))]
            if len(more) > MOST:
                raise TooManyError
    stop: list[Mapping] = [()] * (done >= least)
    return [*stop, *more] if quantified.reluctant else [*more, *stop]


def fits(plan: RowPlan, partition: list[Any], start: int, mapping: Mapping) -> bool:
    row = start
    for name, _ in mapping:
        if name in {"^", "$"}:
            if row != (0 if name == "^" else len(partition)):
                return False
            continue
        if name in plan.conditions and partition[row][name.lower()] is not True:
            return False
        row += 1
    return True


def matched(plan: RowPlan, partition: list[Any]) -> list[tuple[int, Mapping]] | str:
    """Where each match starts, and its rows; or which row is missing to go on from."""
    every = listed(plan.pattern, len(partition))
    found: list[tuple[int, Mapping]] = []
    start = 0
    while start < len(partition):
        room = len(partition) - start
        mapping = next((each for each in every if length(each) <= room and fits(plan, partition, start, each)), None)
        if mapping is None:
            start += 1
            continue
        own = tuple(mark for mark in mapping if mark[0] not in {"^", "$"})
        found.append((start, own))
        if not own or plan.skip is Skip.TO_NEXT_ROW:
            start += 1
        elif plan.skip is Skip.PAST_LAST_ROW:
            start += len(own)
        else:
            places = [place for place, (name, _) in enumerate(own) if name in plan.resume]
            if not places:
                return "absent"
            place = places[0] if plan.skip is Skip.TO_FIRST else places[-1]
            if not place:
                return "first"
            start += place
    return found


def defined(plan: RowPlan, partition: list[Any]) -> list[tuple[int, Mapping]] | str:
    """The same by the definition."""
    try:
        return [(match.start, tuple(zip(match.variables, match.excluded, strict=True))) for match in matches(plan, partition)]
    except InputError as error:
        return "absent" if "has no row" in error.fact else "first"


def test_the_first_mapping_that_fits_is_the_match(cases: int, seed: int) -> None:
    dice, seen = random.Random(seed), Counter[str]()
    for _ in range(8 * cases):
        clause = some_clause(dice, depth=dice.choice((2, 2, 3)))
        table = some_rows(dice, longest=6)
        plan = bind_rows(clause, table.schema)
        for partition in partitions(plan, table):
            try:
                expected = matched(plan, list(partition))
            except TooManyError:
                seen["too many"] += 1
                continue
            assert defined(plan, partition) == expected, f"{rows_text(clause)}\n{partition}"
            seen["error" if isinstance(expected, str) else "matches" if any(own for _, own in expected) else "empty or none"] += 1
    assert min(seen["matches"], seen["error"], seen["empty or none"]) > cases / 4
    assert seen["too many"] < 4 * cases
