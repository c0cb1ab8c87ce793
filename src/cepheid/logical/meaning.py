"""What a query means, in sentences: the first stage of `explain()`.

Comes in: a bound plan, before rewriting, so that the sentences speak of what was written. Goes out: a text. Each sentence narrows what the ones
before it leave. A pattern that is more than an event, or a repeated one, is a part: it gets a number and a line of its own, so it is always said
which pattern a sentence is about. Only conditions on single events are moved, to their events (`push_down`).
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from cepheid.language.syntax import Consumption, Strategy, TimeModel
from cepheid.language.words import write_name
from cepheid.logical import plan, variables
from cepheid.logical.absence import take_out
from cepheid.logical.beginnings import has_made
from cepheid.logical.describe import describe, describe_longest, describe_shortest, written_lower
from cepheid.logical.phrases import condition_phrase, conditions_phrase, listed, value_phrase
from cepheid.logical.push_down import push_down

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cepheid.logical.plan import EventDefinition, Expression, Interval, Pattern, QueryPlan
    from cepheid.logical.variables import Scoped

TOGETHER = "of the matches that end with the same event"

PREFERRED = (
    TOGETHER
    + ", those with the {0} events are kept. Of two with different events, that is the one with the {0} event that they do not share"
)

KEPT = {
    Strategy.ALL: "all matches are kept, also those that share events",
    Strategy.ANY: f"{TOGETHER}, one is kept, and it is not said which",
    Strategy.NXT: PREFERRED.format("earliest"),
    Strategy.LAST: PREFERRED.format("latest"),
    Strategy.MAX: "a match is left out if another one that ends with the same event has all its events and more",
    Strategy.STRICT: "only matches are kept whose events follow each other directly, without any other event between them",
    Strategy.RESTRICTED: f"{TOGETHER}, one is kept, one of those that start last",
}
"""What each strategy keeps."""

CANDIDATES = "of all matches of {0} that start at a later time than what stands before {0} ends, "

NEXT = {
    TimeModel.CAYUGA: CANDIDATES + "those that end first are next",
    TimeModel.ACTIVE_OFFICE: CANDIDATES + "those that end first are next, and of these only those that start first",
    TimeModel.COMPLETE_HISTORY: CANDIDATES + "those that end first are next, of these only those that have "
    "no event before that time, or else those whose time before it is the earliest, and so on back to their start",
    TimeModel.SNOOPIB: CANDIDATES + "those are next that start before, or when, the first of them ends",
    TimeModel.POINT: "of all matches of {0} that end at a later time than what stands before {0} ends, those that end first are next, "
    "also if they start earlier",
}
NEXT[TimeModel.ODE] = NEXT[TimeModel.SNOOPIB]
"""Which matches of a part are next; on single events all time models agree."""

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

VOWEL = re.compile(r"[AEFHILMNORSX]\b|[AIai]|[Ee](?![uU])|[Oo](?!ne)|[Uu](?!ni|s[aei])")
"""How a word begins that takes `an`: as it is spoken, and a letter alone is spoken by its name."""


def meaning(query: QueryPlan) -> str:
    """What a bound query asks for, in sentences; those of EVENT definitions first. A line for each query and each part; not slower than binding."""
    paragraphs = []
    for definition in query.definitions:
        made = _article(write_name(definition.name))
        head = f"Each match of this is an event, {made}. It starts and ends with the match, and comes right after its last event."
        paragraphs.append(f"{head}\n{_Sentences(definition.plan, definition).text()}")
    return "\n\n".join([*paragraphs, _Sentences(query).text()])


class _One(NamedTuple):
    """An event with what is asked of it alone: type `T` (None: any), tail ` called x where v is 1`."""

    type: str | None
    tail: str

    @property
    def single(self) -> str:
        """`a T called x`."""
        return f"any event{self.tail}" if self.type is None else _article(self.bare)

    @property
    def bare(self) -> str:
        """`T called x`, after other words."""
        return f"{'event' if self.type is None else write_name(self.type)}{self.tail}"

    @property
    def several(self) -> str:
        """`T called x`, after a number."""
        return f"events of any type{self.tail}" if self.type is None else self.bare


class _Sentences:
    """The sentences about one query; the parts that they speak of are numbered as they are met."""

    def __init__(self, query: QueryPlan, definition: EventDefinition | None = None) -> None:
        self.query = query
        self.definition = definition
        self.unit = query.schema.unit
        self.keys = f" of the same {_names(query.partition_by)}" if query.partition_by else ""
        self.pattern, self.absences = take_out(push_down(query.pattern))
        self.defined = _definitions(self.pattern)
        whole = (self.pattern, *(absence.negated for absence in self.absences))
        scoped = itertools.chain.from_iterable(map(variables.scoped_conditions, whole))
        self.scopes = {(id(each.filtered.pattern), each.condition): each for each in scoped}
        self.parts: list[Pattern] = []
        self.numbers: dict[int, int] = {}

    def text(self) -> str:
        """The line of the query, then one of each part."""
        query = self.query
        where = []
        if query.streams:
            where.append(f"in {_names(query.streams)}{', merged by time' if len(query.streams) > 1 else ''}")
        if query.partition_by:
            where.append(f"separately for each {_names(query.partition_by)}")
        # A strategy inside comes before that of the query, so it is a part.
        first, *others = [self.item(self.pattern)] if isinstance(self.pattern, plan.Select) else self.sentences(self.pattern)
        found = [", ".join([*where, f"a match is {first}"]), *others, *self.kept(), *map(self.absence, self.absences), *self.shown()]
        lines = [_joined([*found, *self.explained()])]
        for number, part in enumerate(self.parts, 1):  # grows while it is read
            first, *others = self.sentences(part)
            lines.append(_joined([f"part {number} is {first}", *others]))
        return "\n".join(lines)

    # ---------------------------------------------------------------------------------------------------------------------- clauses

    def kept(self) -> Iterator[str]:
        """The strategy, HAVING, CONSUME BY."""
        query = self.query
        kept = [KEPT[query.strategy]]
        if query.having is not None:
            # ANY takes one of those that HAVING leaves; the others choose before it.
            place = 0 if query.strategy is Strategy.ANY else 1
            kept.insert(place, f"only those are kept for which {condition_phrase(query.having.expression)}")
        yield from kept
        if query.consume is not Consumption.NONE:
            others = ""
            if query.partition_by and query.consume is Consumption.ANY:
                others = f", also those of another {_names(query.partition_by)}"
            yield f"once an event has ended a match that is kept, only matches that start after that event count{others}"

    def absence(self, absence: plan.Absence) -> str:
        """`NOT FOLLOWED BY`."""
        ends = "is" if self.instant(absence.negated) else "ends"
        side = "first" if absence.from_start else "last"
        bound = f"{self.timed(self.at_most(absence.duration))} later than their {side} event"
        return f"in the end, those are given after which {self.no(absence.negated)} comes that {ends} {bound}, once that is sure"

    def shown(self) -> Iterator[str]:
        """SELECT's targets, LIMIT."""
        query = self.query
        if query.count:
            yield "shown for each event that ends matches: their number"
        elif query.measures:
            names = self.definition.attributes if self.definition else [measure.name for measure in query.measures]
            values = [
                f"{write_name(name)} ({value_phrase(measure.expression)})" for name, measure in zip(names, query.measures, strict=True)
            ]
            values += map(write_name, self.definition.keys if self.definition else ())
            yield f"{'the event has' if self.definition else 'shown of each match:'} {listed(values)}"
        elif query.variables != variables.shown(query.pattern):
            yield f"shown of each match: {_names(query.variables)}"
            yield "matches with the same start, the same end and the same of these are one"
        if query.limit is not None:
            yield f"{TOGETHER}, at most {query.limit} are given, and it is not said which"

    def explained(self) -> Iterator[str]:
        """What a reader has to know of keys and of `lag`."""
        if self.query.partition_by:
            yield f"events in which {_names(self.query.partition_by, 'or')} is missing are left out"
        lags = plan.lags_in(condition for _, condition in self.scopes)
        if lags:
            more = ", and lag(.., n) of the event n before" * any(lag.steps > 1 for lag in lags)
            yield f"lag(..) is of the event just before{self.keys}, of any type{more}"

    # --------------------------------------------------------------------------------------------------------------------- patterns

    def sentences(self, pattern: Pattern) -> list[str]:
        """What a pattern is, without a verb; then sentences, each of which narrows what the ones before leave."""
        match pattern:
            case plan.Select():
                return [*self.sentences(pattern.pattern), KEPT[pattern.strategy]]
            case plan.Project():
                kept = listed([*map(write_name, sorted(pattern.variables)), "its start", "its end"])
                return [*self.sentences(pattern.pattern), f"of it, only {kept} remain"]
            case plan.Filter() | plan.Within() | plan.WithinEvents() | plan.Unless() if self.one(pattern) is None:
                # What stands around a strategy comes after it, so it is a part.
                below = [self.item(pattern.pattern)] if isinstance(pattern.pattern, plan.Select) else self.sentences(pattern.pattern)
                return [*below, *self.asked(pattern)]
            case plan.Sequence():
                return list(self.sequence(pattern))
            case plan.Or():
                return [f"either {', or '.join(self.operands(pattern))}"]
            case plan.And():
                return [
                    f"at once {listed(self.operands(pattern))}, with the same start, the same end and the same events under all names and types"
                ]
            case plan.All():
                return [f"{listed(self.operands(pattern))}, in any order (they may overlap and share events)"]
        return [self.item(pattern)]

    def asked(self, pattern: plan.Filter | plan.Within | plan.WithinEvents | plan.Unless) -> Iterator[str]:
        """What FILTER, WITHIN and UNLESS ask."""
        match pattern:
            case plan.Filter():
                for condition in pattern.conditions:
                    yield from self.condition(self.scopes[id(pattern.pattern), condition])
            case plan.Within():
                yield f"from its start to its end it takes {self.bounds(pattern.interval)}"
            case plan.WithinEvents():
                events = "1 event" if pattern.count == 1 else f"{pattern.count} events"
                yield f"from its start to its end there are at most {events}{self.keys}, of any type, both ends counted"
            case plan.Unless():
                yield f"{self.no(pattern.negated)} lies between its start and its end, its own events included"

    def condition(self, scoped: Scoped) -> Iterator[str]:
        """What has to be true; then what its names stand for, where that is not plain."""
        several, elsewhere, before = [], [], {}
        for name in sorted(variables.current_variables(scoped.condition)):
            supplier = scoped.supplier(name)
            assert supplier is not None  # bound queries are well-formed
            if supplier.variable_sizes[name] != (1, 1):
                several.append(f"every {write_name(name)}")
            if self.defined[name] > 1 and _definitions(supplier.pattern)[name] != self.defined[name]:
                where = "this part" if supplier is scoped.filtered else describe(supplier.pattern, unit=self.unit)
                elsewhere.append(f"{write_name(name)} is that of {where}")
        for name in sorted(variables.previous_variables(scoped.condition)):
            repeated = scoped.iteration(name)
            assert repeated is not None
            before[write_name(name)] = repeated.pattern
            if variables.variable_sizes(repeated.pattern)[name] != (1, 1):
                several.append(f"every prev({write_name(name)})")
        text = condition_phrase(scoped.condition)
        yield (f"for {listed(several)}: " if several else "") + text + (f" ({listed(elsewhere)})" if elsewhere else "")
        for name, body in before.items():
            yield f"prev({name}) is {name} in the repetition before of {self.part(body)}, and where there is none, this holds"

    def sequence(self, pattern: plan.Sequence) -> Iterator[str]:
        """`a T, later a H`; then which matches THEN takes."""
        text, notes = self.item(pattern.items[0]), []
        rest = zip(pattern.items, pattern.links, pattern.items[1:], (*pattern.links[1:], None), strict=False)
        for left, link, item, behind in rest:
            first, brackets = self.one(item), []
            how = {";": "later ", ":": "directly followed by "}.get(link.operator, "")
            if link.gap is not None:
                gap = self.bounds(link.gap)
                if not (self.instant(left) and self.instant(item)):
                    brackets.append(f"{'' if self.instant(item) else 'its start is '}{gap} after the end of what stands before")
                elif link.operator == ";":
                    how = f"{gap} later "
                else:
                    brackets.append(f"{gap} later")
            if link.without is not None:
                brackets.append(f"{self.no(link.without)} between")
            if isinstance(item, plan.Optional) and behind is not None and behind.operator != link.operator:
                brackets.append("without it, other events may lie in its place")
            if link.operator != "THEN":
                text += f", {how}{self.item(item)}"
            elif first is not None and self.instant(item):
                text += f", then the first {first.bare} of a later time (all, if several have that time)"
            else:
                text += f", then the next {self.part(item)}"
                notes.append(NEXT[link.model or TimeModel.CAYUGA].format(self.part(item)))
            text += f" ({', '.join(brackets)})" if brackets else ""
        yield from (text, *notes)

    def item(self, pattern: Pattern) -> str:
        """A pattern inside a sentence: what is short as it is, the rest as `part 1`."""
        one = self.one(pattern)
        if one is not None:
            return one.single
        match pattern:
            case plan.Named():
                return f"{self.item(pattern.pattern)}, together called {write_name(pattern.variable)}"
            case plan.Optional():
                return f"perhaps {self.item(pattern.pattern)}"
            case plan.Iterate():
                return self.repeated(pattern)
            case plan.Within(pattern=inner) if _repeats(inner):
                return f"{self.item(inner)} ({self.bounds(pattern.interval)} from start to end)"
            case plan.Or() if self.short(pattern):
                return listed(map(self.item, pattern.operands), "or")
        return self.part(pattern)

    def operands(self, pattern: plan.Chain) -> list[str]:
        """The items of OR, AND and ALL; in brackets where they have words that could join them."""
        return [f"({text})" if re.search(r" where |, ", text) else text for text in map(self.item, pattern.operands)]

    def repeated(self, pattern: plan.Iterate) -> str:
        """`two or more T`, `two or more times part 1`."""
        least, most = pattern.minimum, pattern.maximum
        words = _number(least)
        count = words + (" or more" if most is None else "" if words == _number(most) else f" to {_number(most)}")
        one, how = self.one(pattern.pattern), []
        if pattern.adjacent:
            how.append("each directly after the one before")
        if pattern.gap is not None:
            sides = "after the one before" if self.instant(pattern.pattern) else "from the end of the one before to its start"
            how.append(f"each {self.bounds(pattern.gap)} {sides}")
        if one is None and not how:
            how.append("one after the other")
        body = self.item(pattern.pattern) if one is None else one.several
        times = "" if one else "times (" if self.short(pattern.pattern) else "times "
        return f"{count} {times}{body}{')' * times.endswith('(')}" + (f" ({', '.join(how)})" if how else "")

    def no(self, pattern: Pattern) -> str:
        """`no T`, `no part 1`."""
        one = self.one(pattern)
        return f"no {self.part(pattern)}" if one is None else f"no {one.bare}"

    def short(self, pattern: Pattern) -> bool:
        """Whether these are events of some types, with nothing asked of them: they need no part."""
        return isinstance(pattern, plan.Or) and all((one := self.one(operand)) and not one.tail for operand in pattern.operands)

    def one(self, pattern: Pattern) -> _One | None:
        """The one event that a pattern is, with its names and what is asked of it alone; None for all else."""
        names: list[str] = []
        conditions: list[Expression] = []
        while isinstance(pattern, plan.Named | plan.Filter):
            if isinstance(pattern, plan.Named):
                names.insert(0, pattern.variable)
            else:
                conditions[:0] = pattern.conditions
            pattern = pattern.pattern
        if not isinstance(pattern, plan.Event):
            return None
        own = {pattern.variable, *names}
        if any(variables.previous_variables(each) or not variables.current_variables(each) <= own for each in conditions):
            return None
        called = f" called {_names(names)}" if names else ""
        where = f" where {conditions_phrase(map(plan.localize, conditions))}" if conditions else ""
        return _One(pattern.type, called + where)

    def instant(self, pattern: Pattern) -> bool:
        """Whether this is one event, of a stream: those that matches make last from the start to the end of these."""
        return self.one(pattern) is not None and not has_made(pattern)

    def part(self, pattern: Pattern) -> str:
        """The number of a part; those that AS names have the number of what is named, but for one event, which says its names."""
        while isinstance(pattern, plan.Named) and self.one(pattern) is None:
            pattern = pattern.pattern
        if id(pattern) not in self.numbers:
            self.parts.append(pattern)
            self.numbers[id(pattern)] = len(self.parts)
        return f"part {self.numbers[id(pattern)]}"

    # ------------------------------------------------------------------------------------------------------------------------ times

    def bounds(self, interval: Interval) -> str:
        """`at most 5s`, `more than 1s and less than 5s`."""
        most = None if interval.upper is None else self.at_most(interval.upper)
        if most is not None and interval.lower == interval.upper and most.startswith("at most"):
            return self.timed(most.replace("at most", "exactly"))
        least = describe_shortest(interval.lower, self.unit, above=written_lower(interval, self.unit))
        texts = (
            [f"at least {least.removesuffix(' or more')}" if least.endswith(" or more") else least]
            if interval.lower > 0 or isinstance(interval.lower, plan.OpenNumber)
            else []
        )
        texts += [most] if most is not None else []
        return self.timed(" and ".join(texts)) if texts else "any time"

    def at_most(self, steps: int) -> str:
        """`at most 5s`, `less than 5s`."""
        text = describe_longest(steps, self.unit)
        return f"less than {text[2:]}" if text.startswith("< ") else f"at most {text}"

    def timed(self, text: str) -> str:
        """Numbers of a time column without a unit are in that of the column."""
        return f"{text} unit{'s' * (not text.endswith(' 1'))} of time" if self.unit is None else text


def _repeats(pattern: Pattern) -> bool:
    """Whether this is a repetition, perhaps with a name."""
    return isinstance(pattern, plan.Iterate) or (isinstance(pattern, plan.Named) and _repeats(pattern.pattern))


def _definitions(pattern: Pattern) -> Counter[str]:
    """How often each variable is defined in a pattern; what must not match defines none."""
    own = Counter([pattern.variable] if isinstance(pattern, plan.Event | plan.Named) else ())
    return sum(map(_definitions, variables.operands(pattern)), own)


def _names(names: Iterable[str], word: str = "and") -> str:
    return listed(map(write_name, names), word)


def _article(noun: str) -> str:
    return f"{'an' if VOWEL.match(noun.lstrip('`')) else 'a'} {noun}"


def _number(count: int) -> str:
    return str(count) if count >= len(NUMBERS) or isinstance(count, plan.OpenNumber) else NUMBERS[count]


def _joined(sentences: Iterable[str]) -> str:
    """As a text: a word of ours begins with a capital, a name stays as it is."""
    return " ".join((text[0].upper() + text[1:] if text.split(maxsplit=1)[0].strip(",:").isalpha() else text) + "." for text in sentences)
