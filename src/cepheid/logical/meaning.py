"""What a query means, in sentences: the first stage of `explain()`.

Comes in: a bound plan, before rewriting, so that the sentences speak of what was written. Goes out: a text. Each sentence narrows
what the ones before it say. A part that is no single event gets a number and sentences of its own, so it is always said which part
a sentence is about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.language.syntax import Consumption, Strategy
from cepheid.language.words import write_name
from cepheid.logical import plan, variables
from cepheid.logical.describe import describe_expression, describe_longest, describe_shortest, written_lower
from cepheid.logical.variables import Summary

if TYPE_CHECKING:
    from cepheid.logical.plan import Expression, Interval, Pattern, QueryPlan

KEPT = {
    Strategy.ALL: "Every match is given",
    Strategy.ANY: "For each last event, one match is given, any of them",
    Strategy.NXT: "Of two matches with the same last event, the one with the earliest event that the other lacks is kept",
    Strategy.LAST: "Of two matches with the same last event, the one with the latest event that the other lacks is kept",
    Strategy.MAX: "A match whose events are all in a larger match with the same last event is left out",
    Strategy.STRICT: "A match has every event from its first to its last",
    Strategy.RESTRICTED: "For each last event, one match is given, of those that start latest",
}
"""What each strategy keeps."""

CONSUMED = {
    Consumption.NONE: "",
    Consumption.PARTITION: "Once a match is given, later ones start after its last event",
    Consumption.ANY: "Once a match is given, later ones start after its last event, whatever their key",
}
"""What CONSUME BY asks for."""

COMPARED = {"=": "is", "!=": "is not", "<": "is less than", "<=": "is at most", ">": "is more than", ">=": "is at least"}
"""The comparisons, in words."""

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def meaning(query: QueryPlan) -> str:
    """What a bound query asks for, in sentences; those of EVENT definitions first. Linear in the plan."""
    paragraphs = []
    for definition in query.definitions:
        head = f"Each match of this is an event {write_name(definition.name)}" + (
            f" with {_listed(definition.attributes)}" if definition.attributes else ""
        )
        paragraphs.append(f"{head}:\n{_query(definition.plan)}")
    return "\n\n".join([*paragraphs, _query(query)])


def _query(query: QueryPlan) -> str:
    said = _Sentences(query.schema.unit)
    where = []
    if query.streams:
        where.append(f"in {_listed(query.streams)}" + (", merged by time" if len(query.streams) > 1 else ""))
    if query.partition_by:
        where.append(f"for each {_listed(query.partition_by)} by itself")
    first, *others = said.pattern(query.pattern)
    sentences = [f"{', '.join(where)}: {first}" if where else first, *others, CONSUMED[query.consume], KEPT[query.strategy]]
    if query.having is not None:
        sentences.append(f"only matches of which this is true are given: {condition_text(query.having.expression)}")
    if query.count:
        sentences.append("for each last event, the number of its matches is shown")
    elif query.measures:
        shown = (f"{write_name(measure.name)}, which is {describe_expression(measure.expression)}" for measure in query.measures)
        sentences.append(f"shown of each match: {'; '.join(shown)}")
    elif query.variables != variables.shown(query.pattern):
        sentences.append(
            f"shown of each match: {_listed(query.variables)}; matches with the same of these, and the same first and last event, are one"
        )
    if query.limit is not None:
        sentences.append(f"at most {query.limit} for each last event")
    return "\n".join([_joined(sentences), *said.parts()])


def condition_text(condition: Expression, *, below: bool = False) -> str:
    """A condition in words; what is nested deeper than one AND or OR is in the symbols of the language, with parentheses."""
    if not isinstance(condition, plan.Apply):
        return f"{describe_expression(condition)} is true"
    operator, arguments = condition.operator, condition.arguments
    if operator in COMPARED:
        return f"{describe_expression(arguments[0])} {COMPARED[operator]} {describe_expression(arguments[1])}"
    if operator == "like":
        return f"{describe_expression(arguments[0])} is like {describe_expression(arguments[1])}"
    if operator == "in":
        return f"{describe_expression(arguments[0])} is one of {', '.join(map(describe_expression, arguments[1:]))}"
    if operator == "is_null":
        return f"{describe_expression(arguments[0])} is missing"
    if operator in ("and", "or") and not below and not any(_joins(argument) for argument in arguments):
        return f" {operator} ".join(condition_text(argument, below=True) for argument in arguments)
    return f"({describe_expression(condition)})"


def _joins(expression: Expression) -> bool:
    return isinstance(expression, plan.Apply) and expression.operator in ("and", "or", "not")


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _plain(pattern: plan.Iterate) -> bool:
    return isinstance(pattern.pattern, plan.Event)


def _number(count: int) -> str:
    return NUMBERS[count] if count < len(NUMBERS) else str(count)


def _joined(sentences: list[str]) -> str:
    """As a text: a word of ours begins with a capital, a name stays as it is."""
    return " ".join(
        (text[0].upper() + text[1:] if text.split(maxsplit=1)[0].strip(",:").isalpha() else text) + "." for text in sentences if text
    )


class _Sentences:
    """The sentences about a pattern; the parts that they speak of are numbered as they are met."""

    def __init__(self, unit: int | None) -> None:
        self.unit = unit
        self.named: list[Pattern] = []

    def parts(self) -> list[str]:
        """A line for each part, in their order."""
        lines = []
        for number, part in enumerate(self.named, 1):  # grows while it is read
            lines.append(f"Part {number}: {_joined(self.pattern(part))}")
        return lines

    def pattern(self, pattern: Pattern) -> list[str]:
        """What a pattern is, then what is asked of it, in the order written."""
        match pattern:
            case plan.Filter():
                return [*self.pattern(pattern.pattern), *(self.condition(pattern.pattern, each) for each in pattern.conditions)]
            case plan.Within():
                return [*self.pattern(pattern.pattern), f"from its start to its end it takes {self.bounds(pattern.interval)}"]
            case plan.WithinEvents():
                return [*self.pattern(pattern.pattern), f"from its first to its last event there are at most {pattern.count} events"]
            case plan.Unless():
                return [*self.pattern(pattern.pattern), f"there is no {self.bare(pattern.negated)} from its start to its end"]
            case plan.Absence():
                side = "start" if pattern.from_start else "end"
                long = describe_longest(pattern.duration, self.unit).removeprefix("< ")
                what = "less than" if describe_longest(pattern.duration, self.unit).startswith("<") else "at most"
                return [
                    *self.pattern(pattern.pattern),
                    f"there is no {self.bare(pattern.negated)} after it that ends {what} {long} after its {side}",
                ]
            case plan.Select():
                return [*self.pattern(pattern.pattern), f"of its matches: {KEPT[pattern.strategy][0].lower()}{KEPT[pattern.strategy][1:]}"]
            case plan.Project():
                names = _listed(tuple(sorted(pattern.variables))) or "nothing"
                return [*self.pattern(pattern.pattern), f"only {names} of it is kept"]
            case plan.Sequence():
                return [self.sequence(pattern)]
            case plan.Or():
                return ["either " + ", or ".join(map(self.one, pattern.operands))]
            case plan.And():
                return ["all of these by the same events: " + ", and ".join(map(self.one, pattern.operands))]
            case plan.All():
                return ["all of these in any order, also overlapping: " + ", and ".join(map(self.one, pattern.operands))]
        return [self.one(pattern)]

    def condition(self, pattern: Pattern, condition: Expression) -> str:
        """What has to be true, and what its names stand for where they hold several events, or those of other rounds."""
        sizes = Summary(pattern).variable_sizes
        several = sorted(name for name in plan.variables_of(condition) if name in sizes and sizes[name][1] != 1)
        text = condition_text(condition)
        if any(leaf.previous for leaf in plan.leaves(condition)):
            text += " (prev is of the round before, and in the first round this holds)"
        if plan.lags_in([condition]):
            text += " (lag is of the event before, whatever it is, or as many before)"
        return f"for every {_listed(tuple(map(write_name, several)))}: {text}" if several else text

    def sequence(self, pattern: plan.Sequence) -> str:
        """`a T, later a H`."""
        text = self.one(pattern.items[0])
        for link, item in zip(pattern.links, pattern.items[1:], strict=True):
            text += {";": ", later", ":": ", with the very next event"}.get(link.operator, ", then what is next")
            if link.model is not None:
                text += f" in the time model {link.model.value}"
            if link.without is not None:
                text += f", with no {self.bare(link.without)} between,"
            if link.gap is not None:
                text += f", {self.bounds(link.gap)} after that ends,"
            text += f" {self.one(item)}"
        return text

    def bare(self, pattern: Pattern) -> str:
        """After `no`."""
        if isinstance(pattern, plan.Event):
            return "event" if pattern.type is None else write_name(pattern.type)
        return self.part(pattern)

    def part(self, pattern: Pattern) -> str:
        """The number of a part, which gets sentences of its own."""
        self.named.append(pattern)
        return f"part {len(self.named)}"

    def one(self, pattern: Pattern) -> str:
        """One item: an event, a repeated one, or a numbered part."""
        match pattern:
            case plan.Event():
                return (
                    "any event"
                    if pattern.type is None
                    else f"{'an' if pattern.type[:1] in 'AEIOUaeiou' else 'a'} {write_name(pattern.type)}"
                )
            case plan.Named(pattern=plan.Event()):
                return f"{self.one(pattern.pattern)} called {write_name(pattern.variable)}"
            case plan.Named(pattern=plan.Iterate(pattern=plan.Event())):
                return f"{self.one(pattern.pattern)}, together called {write_name(pattern.variable)}"
            case plan.Named():
                return f"{self.part(pattern.pattern)} called {write_name(pattern.variable)}"
            case plan.Optional():
                return f"perhaps {self.one(pattern.pattern)}"
            case plan.Iterate():
                return self.repeated(pattern)
        return self.part(pattern)

    def repeated(self, pattern: plan.Iterate) -> str:
        """`two or more T`, `two or more times a T called x`."""
        least, most = pattern.minimum, pattern.maximum
        count = f"{_number(least)} or more" if most is None else _number(least) if least == most else f"{_number(least)} to {_number(most)}"
        how = " with no event between," if pattern.adjacent else ""
        how += f" each {self.bounds(pattern.gap)} after the one before ends," if pattern.gap is not None else ""
        return f"{count} times{how} {self.one(pattern.pattern)}" if how or not _plain(pattern) else f"{count} {self.bare(pattern.pattern)}"

    def longest(self, steps: int) -> str:
        """`at most 5s`, `less than 5s`."""
        text = describe_longest(steps, self.unit)
        return f"less than {text[2:]}" if text.startswith("< ") else f"at most {text}"

    def bounds(self, interval: Interval) -> str:
        """`at most 5s`, `more than 1s and less than 5s`."""
        texts = []
        if interval.lower > 0:
            texts.append(describe_shortest(interval.lower, self.unit, above=written_lower(interval, self.unit)))
        if interval.upper is not None:
            texts.append(self.longest(interval.upper))
        return " and ".join(texts) or "any time"
