"""Conditions between events, from the FILTER to the outermost pattern that supplies a variable: actions on the moves, then registers and guards.

While a condition waits for patterns around it, the moves carry what their events do to it (`correlation`), as stores of `Acting` terms to a register
of its own. So every construction copies and unites it with the moves. Where the last of these patterns is built, `completed` makes of this what is
kept and asked. So scopes are there once, for all conditions.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from cepheid.automata.choices import Choices
from cepheid.automata.comparisons import Comparison, Computation, alternatives, are_single, of_one_variable, sides
from cepheid.automata.computing import operands
from cepheid.automata.correlation import BEGIN, KEEP, MARK, MATCH, MATCHED, NEXT, Correlation, called, variables
from cepheid.automata.fragment import Pending, all_pending
from cepheid.automata.registers import Acting, Store
from cepheid.automata.transform import reached
from cepheid.logical.describe import describe_expression
from cepheid.logical.plan import Apply, localize
from cepheid.logical.take_apart import occupied
from cepheid.logical.variables import NOTHING, bound, defined, prefix

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cepheid.automata.comparisons import Atom, Key
    from cepheid.automata.correlation import Action, Variable
    from cepheid.automata.fragment import Fragment
    from cepheid.automata.guards import Guards
    from cepheid.automata.transition import Transition
    from cepheid.logical import plan
    from cepheid.logical.plan import Expression, Pattern


def correlated(guards: Guards, body: Fragment, condition: Expression, filtered: Pattern) -> Fragment:
    """A condition that is not about single events of the filtered pattern; it waits where it speaks of variables around it."""
    empty = Correlation(condition, ())
    local = empty.visible(defined(filtered))
    pending = Pending(guards.register(f"events of {describe_expression(condition)}"), empty.supplied(local))
    body = _marking(body, pending, local)
    body = started(body, pending, 0)
    if not local:
        body = body.begun(lambda move: _acting(move, pending, {(MATCH, 0)}))
    if pending.correlation.missing:
        return dataclasses.replace(body, pending=(*body.pending, pending))
    return completed(guards, body, pending, filtered)


def supplied(guards: Guards, pattern: Pattern, body: Fragment) -> Fragment:
    """A fragment of a pattern in which the variables that it binds are supplied to the conditions that wait for them."""
    names = bound(pattern) if body.pending else NOTHING
    for pending in body.pending:
        now = pending.correlation.visible(names)
        if now:
            fuller = dataclasses.replace(pending, correlation=pending.correlation.supplied(now))
            body = _replaced(_marking(body, fuller, now), pending, fuller)
            body = started(body, fuller, fuller.correlation.top)
            if not fuller.correlation.missing:
                body = completed(guards, body, fuller, pattern)
    return body


def marked_by_prefixes(pattern: plan.Sequence, parts: Sequence[Fragment]) -> tuple[list[Fragment], list[tuple[Pending, int, Pattern]]]:
    """The items of a sequence with what its prefixes supply; and (condition, level, prefix) for each level, which begins with the sequence."""
    found, begins, names = list(parts), [], bound(pattern.items[0])
    for last in range(1, len(parts)):
        names |= bound(pattern.items[last])
        for pending in all_pending(found[: last + 1]):
            now = pending.correlation.visible(names)
            if now:
                fuller = dataclasses.replace(pending, correlation=pending.correlation.supplied(now))
                found[: last + 1] = [_replaced(_marking(part, fuller, now), pending, fuller) for part in found[: last + 1]]
                begins.append((fuller, fuller.correlation.top, prefix(pattern, last + 1)))
    return found, begins


def iterations(pattern: plan.Iterate, body: Fragment) -> tuple[Fragment, Fragment, list[Pending]]:
    """The body as it begins first, as it begins again, and the conditions that have all their variables now: those that speak of the one before."""
    again, complete, names = body, [], defined(pattern.pattern)
    for pending in body.pending:
        now = pending.correlation.visible(names, previous=True)
        if not now:
            continue
        fuller = dataclasses.replace(pending, correlation=pending.correlation.supplied(now))
        level = fuller.correlation.top
        body, again = (_replaced(_marking(part, fuller, now, verb=KEEP), pending, fuller) for part in (body, again))
        body = started(body, fuller, level)
        again = started(again, fuller, level, verb=NEXT)
        if not fuller.correlation.missing:
            complete.append(fuller)
    return body, again, complete


def _replaced(body: Fragment, before: Pending, after: Pending) -> Fragment:
    return dataclasses.replace(body, pending=tuple(after if each == before else each for each in body.pending))


def _marking(body: Fragment, pending: Pending, variables: Iterable[Variable], *, verb: str = MARK) -> Fragment:
    """A fragment whose events say in which of some variables they are put."""
    names = {name for name, _ in variables}
    return body.changed(lambda move: _acting(move, pending, {(verb, name) for name in names & (move.mark or NOTHING)}))


def started(body: Fragment, pending: Pending, level: int, *, verb: str = BEGIN) -> Fragment:
    """A fragment whose first events say that the pattern of a level begins."""
    return body.begun(lambda move: _acting(move, pending, {(verb, level)}))


def _acting(move: Transition, pending: Pending, actions: set[Action]) -> Transition:
    """A move whose event does more to a condition."""
    if not actions:
        return move
    before = _actions(move, pending)
    others = frozenset(store for store in move.writes if store.register != pending.register)
    return dataclasses.replace(move, writes=others | {Store(pending.register, Acting(before | actions))})


def _actions(move: Transition, pending: Pending) -> frozenset[Action]:
    return next(
        (store.term.actions for store in move.writes if store.register == pending.register and isinstance(store.term, Acting)), frozenset()
    )


def completed(guards: Guards, body: Fragment, pending: Pending, scope: Pattern) -> Fragment:
    """A fragment in which a condition that has all its variables is asked; scope: the pattern of its outermost level."""
    correlation = pending.correlation
    body = dataclasses.replace(body, pending=tuple(each for each in body.pending if each.register != pending.register))
    own = sides(correlation.condition) if correlation.levels[0] else of_one_variable(correlation)
    options = [frozenset([own])] if own else alternatives(correlation)
    acted = [(move, _actions(move, pending)) for move in body.moves]
    single = own is None and options is not None and are_single(acted, body.initial, correlation.variables, correlation.top)
    options = options if own or single else None
    comparisons: dict[object, Comparison | Computation | Choices] = {
        each: _comparison(guards, each, correlation.top, single=single) for option in options or () for each in sorted(option, key=repr)
    }
    if options is None:
        comparisons[correlation] = Choices.of(guards, correlation)
    together = {
        variable: _unmarked(body, pending, side.other)
        for variable, side in own or ()
        if variable != MATCHED
        and side.operator == "="
        and not side.other[1]
        and side.other in correlation.levels[-1]
        and side.other[0] in occupied(scope)
    }

    def compared(move: Transition, actions: frozenset[Action]) -> Iterator[Transition]:
        closed = frozenset(each for each, states in together.items() if move.source in states)
        programs = {each: comparison.program(actions, closed) for each, comparison in comparisons.items()}
        others = (store for store in move.writes if store.register != pending.register)
        stored = dataclasses.replace(move, writes=frozenset([*others, *(store for _, stores in programs.values() for store in stores)]))
        for option in [comparisons.keys()] if options is None else options:
            yield guards.asking(stored, [test for each in comparisons if each in option for test in programs[each][0]])

    moves = [changed for move, actions in acted for changed in (dict.fromkeys(compared(move, actions)) if actions else [move])]
    return dataclasses.replace(body, moves=tuple(moves))


def _comparison(guards: Guards, atom: Atom, top: int, *, single: bool) -> Comparison | Computation:
    """A comparison with registers of its own."""
    if isinstance(atom, Apply):
        computed = {value: next(iter(variables(value)), None) for value in operands(atom)}
        return Computation(atom, computed, *_registers(guards, [(value, value, own) for value, own in computed.items() if own]), top)
    return Comparison(dict(atom), *_registers(guards, [(own, side.value, own) for own, side in atom]), top, single)


def _registers(guards: Guards, kept: Iterable[tuple[Key, Expression, Variable]]) -> tuple[dict[Key, int], dict[Key, int]]:
    """A register for each value of a variable, and one for what the next iteration calls `prev` of it."""
    named = [(key, describe_expression(localize(value)), own) for key, value, own in kept]
    registers = {key: guards.register(f"{text} of {called(own)}") for key, text, own in named}
    return registers, {key: guards.register(f"{text} of {own[0]}") for key, text, own in named if own[1]}


def _unmarked(body: Fragment, pending: Pending, variable: Variable) -> set[int]:
    """The states that are reached without an event of a variable: there, one may still come first."""
    return reached({body.initial}, ((m.source, m.target) for m in body.moves if (MARK, variable[0]) not in _actions(m, pending)))
