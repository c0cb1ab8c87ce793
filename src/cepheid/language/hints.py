"""What the user may have meant: one table of traps, tried in order.

A hint has up to four conditions: the text before the failure, the text at the failure, which terminals the parser could
have taken, and which it could not. They describe the language's own traps (what binds loosest, where NOT may be),
spellings of CORE and SQL that mean something else here, and signs of other languages.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cepheid.errors import nearest, quoted
from cepheid.language.syntax import TimeModel
from cepheid.language.words import KEYWORDS, STRATEGIES, UNIT_SYMBOLS, UNITS
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable


@record
class Failure:
    """A place where the text does not parse.

    `word` is what stands at `position` (empty at the end), `accepted` the terminals that could have stood there.
    """

    text: str
    position: int
    word: str
    accepted: frozenset[str]


@record
class Hint:
    """A help line and where it applies; `<name>` in it is what the group of that name has matched there."""

    help: str
    at: re.Pattern[str]
    before: re.Pattern[str]
    accepts: frozenset[str]
    refuses: frozenset[str]


def _key_column(key: str, *, arrow: str, event: str, spark: str) -> str:
    """The help where a key is computed: how its column is added to a table, to dicts and to a DataFrame of Spark."""
    return (
        f"a key is a column, add it before the run: events.append_column('{key}', {arrow}) of Arrow, {{**event, '{key}': {event}}} for dicts,"
        f" df.withColumn('{key}', {spark}) on Spark; then PARTITION BY {key}"
    )


_PLAIN = r"[^\W\d]\w*"
_STEP = rf"\.(?P<field>{_PLAIN})|\[\s*(?P<place>[0-9]+)\s*\]|\[\s*(?P<entry>'[^']*')\s*\]"
_PATH = r"(?P<path>(?:" + re.sub(r"\?P<\w+>", "?:", _STEP) + r")+)(?![\w.\[])"
"""One step inside a column, and several."""


def path_key(column: str, path: Iterable[tuple[str, str]]) -> str:
    """The help where something inside a column is to be a key.

    path: the steps of the way to it, from outside: ("field", its name), ("place", that of an element, from 0), ("entry", the key in a map, quoted).
    """
    arrow, event, spark, named, key = f"events['{column}']", f"event['{column}']", f"'{column}'", True, "key"
    for step, of in path:
        key = of if step == "field" else "key"
        if step == "field":
            arrow, event = f"pc.struct_field({arrow}, '{of}')", f"{event}['{of}']"
            spark = f"{spark[:-1]}.{of}'" if named else f"{spark}['{of}']"
        elif step == "place":
            arrow, event, spark = f"pc.list_element({arrow}, {of})", f"{event}[{of}]", f"F.get({spark}, {of})"
        else:
            arrow, event, spark = f"pc.map_lookup({arrow}, {of}, 'first')", f"{event}.get({of})", f"F.try_element_at({spark}, F.lit({of}))"
        named = named and step == "field"
    return _key_column(key, arrow=arrow, event=event, spark=f"F.col({spark})" if named else spark)


NEAR = 200
"""Characters before a failure that hints look at."""


def trap(help_line: str, *, at: str = "", before: str = "", accepts: str = "", refuses: str = "") -> Hint:
    """A hint for what stands `at` the failure and `before` it (regular expressions, of any case), by the terminals that could stand there."""
    return Hint(
        help_line,
        re.compile(at, re.IGNORECASE),
        re.compile(rf"(?:{before})\s*\Z" if before else "", re.IGNORECASE),
        frozenset(accepts.split()),
        frozenset(refuses.split()),
    )


_NAME = r"(?:[^\W\d]\w*|`[^`]+`)"
_UNIT = "(?:" + "|".join(sorted(UNITS, key=len, reverse=True)) + r")\b"
_PARAMETER = rf":{_NAME}"
_STRATEGY = "(?:" + "|".join(sorted(STRATEGIES, key=len, reverse=True)) + r")\b"
_KEY = rf"\bPARTITION\s+BY\b(?:[^;]*,)?\s*\[?\s*(?P<column>{_PLAIN})"
"""A key behind PARTITION BY."""

_CLAUSE = "FILTER, WITHIN, UNLESS and NOT FOLLOWED BY bind loosest"
_IN_PATTERN = "SEMICOLON THEN"
_NOT_PLACES = "write p ; NOT n ; q (no n between), p UNLESS n (no n inside p), or p NOT FOLLOWED BY n FOR 10m (no n afterwards)"

_NO_JOIN = "no operator joins texts: concat(x.a, ' ', x.b) does"

_SEQUENCE = "a sequence is written SELECT * WHERE A ; B PARTITION BY user, and with SELECT NXT * it goes to the next event that fits"
_DURATION = "a duration is a number and a unit: 30 minutes"
_RANGE = "a range is written BETWEEN low AND high"
_NO_OFFSET = "LIMIT n gives at most n matches of each event that completes some, and there is no OFFSET"
_NO_SUBQUERY = "there are no subqueries: matches become events by EVENT name(attribute, ..) AS (SELECT measure, .. WHERE ..)"
_ROW_PATTERN = "a row pattern (A B+) with DEFINE B AS B.v > 3 is written WHERE A : B:+ AS b FILTER b[v > 3], its measures behind SELECT"

_SELECT_ONLY = r"\b(?:ANY|ALL|RESTRICTED)"

HINTS: tuple[Hint, ...] = (
    # signs of other languages
    trap(
        "write texts in straight single quotes ('..'), names in backticks (`..`)",
        at='["\u201c\u201d\u2018\u2019\u201e\u201a\u00ab\u00bb\u00b4]',
    ),
    trap(
        "this is the name of a file: cepheid.query(pathlib.Path('..')) reads it", at=r"[\w./\\-]+\.(?:ceql|sql|txt)\s*\Z", accepts="SELECT"
    ),
    trap(_DURATION, before=r"\bINTERVAL", at="'"),
    trap(_DURATION, before=r"\bWITHIN\s+[0-9]+", at=r":\s*[0-9]"),
    trap("a comment starts with `--`", at="#|//", refuses="PARAMETER"),
    trap("a comment starts with `--`", at="/", before="/"),
    trap("write a list in parentheses: IN (1, 2)", at=r"[{\['0-9-]", before=r"\bIN"),
    trap("a list has one value or more; a condition that never holds is written FALSE", at=r"\)", before=r"\bIN\s*\("),
    trap("a parameter is written `:name`, without a space", at=r":\s", accepts="PARAMETER"),
    trap("write $time and $index after a variable, outside its brackets: a.$time", at=r"\$(?:time|index)\b", accepts="PARAMETER"),
    trap("a parameter is written `:name`", at=r"[?$%@{#]", accepts="PARAMETER"),
    trap("a quote inside a text is written twice: 'it''s'", at=r"(?<=')\w"),
    trap("there is no cast: cast the column in the input", at="::"),
    trap("there is no cast: cast the column in the input", at=r"AS\b", before=r"\bCAST\s*\([^()]*"),
    trap("the parts of a time are functions: hour(x.$time)", at=r"FROM\b", before=r"\bEXTRACT\s*\(\s*\w+"),
    trap("the parts of a time take a zone: hour(x.$time, 'Europe/Berlin')", at=r"AT\s+TIME\s+ZONE\b"),
    trap(
        "there are no window functions: a measure is of the events of a match, and lag(x.a) in a FILTER is of the event before",
        at=r"OVER\s*\(",
        before=r"\)",
    ),
    trap(
        "LIKE compares texts, with `%` and `_`: there are no regular expressions, and letters are compared as they are",
        at=r"~|(?:ILIKE|RLIKE|REGEXP|REGEXP_LIKE|SIMILAR|GLOB|MATCHES)\b",
        accepts="LIKE",
    ),
    trap(_NO_JOIN, at=r"\|\|", accepts="SLASH", refuses="OR"),
    trap(f"write OR between conditions; {_NO_JOIN}", at=r"\|\|", accepts="SLASH"),
    trap("write OR", at=r"\|"),
    trap(_NOT_PLACES, at=r"[!~\u00ac](?!=)", accepts="PROJECT"),
    trap("write AND, OR and NOT", at=r"&|!(?!=)"),
    trap(_SEQUENCE, at=r"(?:SEQUENCE|SAMPLE)\b", accepts="EVENT SELECT"),
    trap(_SEQUENCE, at=r"BY\b", before=r"\b(?:SEQUENCE|SAMPLE)"),
    trap("the longest time from the first event to the last is written WITHIN 5m", at=r"(?:WITH\s+)?MAXSPAN\b"),
    trap(
        "types stand without brackets, with `;` between: A ; B, and conditions after FILTER",
        at=rf"\[\s*{_NAME}\s*(?:\]|WHERE\b)",
        accepts="PROJECT",
    ),
    trap("a variable is named after its type: A AS a", at=rf"=\s*{_NAME}\s*(?:[;:()\[\]]|->|THEN\b)", before=_NAME, accepts=_IN_PATTERN),
    trap("there is no EVERY: SELECT * gives every match, SELECT NXT * those with the next events", at=_NAME, before=r"\bEVERY"),
    trap(_ROW_PATTERN, at=r"(?:MATCH_RECOGNIZE|MEASURES|PATTERN|DEFINE)\b"),
    trap(_ROW_PATTERN, at=r"\(", before=r"\bPATTERN"),
    trap(
        "repetitions are written A{3}, A+ and A?, which may also leave an A out, and conditions come after FILTER",
        at=r"\.\s*(?:times|timesOrMore|oneOrMore|optional|where)\s*\(",
        accepts=_IN_PATTERN,
    ),
    trap(
        "`A` followed by `B` is written A ; B, and A : B at the very next event",
        at=r"->|=>|-->|~>|,|\.?(?:FOLLOWED\s*BY|NE?XT)",
        accepts=_IN_PATTERN,
    ),
    trap(_NO_SUBQUERY, at=r"\S", before=r"\(\s*SELECT(?:\s*\*\s*FROM)?", accepts="RPAR"),
    trap("zero or more is written (p+)?, one or more p+", at=r"\*", accepts=_IN_PATTERN),
    trap("write the zero before the point: 0.5", at=r"\.[0-9]"),
    # what CORE writes otherwise
    trap(
        "CORE writes the stream before the type; here write the type alone (`S>A` is `A`), and the streams after FROM",
        at=rf">\s*{_NAME}",
        before=_NAME,
        accepts=_IN_PATTERN,
    ),
    trap(_RANGE, at=r"RANGE\b", before=r"\bIN"),
    trap(_RANGE, at=r",|TO\b", before=r"\bBETWEEN\s[^,]*", accepts="AND"),
    trap(_RANGE, at=",", before=r"\bBETWEEN\s*\([^(),]*", accepts="RPAR"),
    trap("the value of a parameter includes the unit: WITHIN :w, where w is '5s' or a timedelta", at=_UNIT, before=_PARAMETER),
    trap("a duration has one unit: 90 minutes, not 1 hours 30 minutes", at=rf"(?:AND\s+)?[0-9.]+\s*{_UNIT}", before=rf"[0-9]\s*{_UNIT}"),
    trap(
        "a window is a duration or a number of EVENTS; CORE's windows over another attribute do not exist here",
        at=r"\[",
        before=r"WITHIN\s+[0-9.]+",
    ),
    trap(
        _key_column("key", arrow="pc.utf8_lower(events['k'])", event="event['k'].lower()", spark="F.lower('k')"),
        at=r"[-+/%*(]",
        before=rf"\bPARTITION\s+BY\b[^;]*{_NAME}",
        accepts="LIMIT",
    ),
    trap("keys are written without parentheses: PARTITION BY a, b", at=r"\(", before=r"\bBY"),
    trap("each attribute has its own brackets, or none: PARTITION BY [a], [b]", at=",", before=rf"\[\s*{_NAME}", accepts="RSQB"),
    # the language's own traps
    trap("a query does not end with `;`, which means `followed by`", at=r";\s*\Z", accepts="$END"),
    trap(
        "the order is: pattern and its clauses, PARTITION BY, HAVING, CONSUME BY, TIME MODEL, LIMIT",
        at=r"(?:FILTER|WITHIN|UNLESS|NOT|PARTITION|HAVING|CONSUME|TIME|LIMIT)\b",
        accepts="$END",
        refuses="NOT_FOLLOWED_BY",
    ),
    trap("FROM has no stream: name one, or leave FROM out", before=r"\bFROM\s+WHERE", accepts="COMMA WHERE"),
    trap("FROM has no alias: a variable is named in the pattern, FROM S WHERE A AS a", at=r"AS\b", accepts="COMMA WHERE", refuses="AS"),
    trap(
        "there is no JOIN: name the streams, FROM S, T, and compare their events in the pattern, WHERE A AS a ; B AS b FILTER a.k = b.k",
        at=r"(?:(?:INNER|LEFT|RIGHT|FULL|OUTER|CROSS|NATURAL)\s+)*JOIN\b",
    ),
    trap("SELECT has no targets: SELECT * WHERE ..", before=r"\bSELECT\s+(?:FROM|WHERE)", accepts="FROM WHERE"),
    trap(
        "`*` stands alone: it gives whole matches, and without it SELECT lists variables and measures",
        at=",",
        accepts="FROM WHERE",
        refuses="COMMA",
    ),
    trap("a target is missing before FROM", before=r",\s*FROM", accepts="COMMA FROM"),
    trap(
        f"{_CLAUSE}: put the part before it into parentheses, (A FILTER ..) ; B",
        at=r";|:|THEN\b|ALL\b|AND\b|OR\b|\+|\?|\{",
        accepts="FILTER",
        refuses="SEMICOLON",
    ),
    trap("a query does not end with `;`, which means `followed by`", before=";", at=r"\Z", accepts="PROJECT"),
    trap("absence is written p NOT FOLLOWED BY n FOR 10m", at=r"NOT\s+FOLL", accepts=_IN_PATTERN),
    trap(
        "FOR says for how long: NOT FOLLOWED BY n FOR 10m; a window of n itself needs parentheses",
        at=r"(?:WITHIN|PARTITION|HAVING|CONSUME|TIME|LIMIT)\b|\Z",
        accepts="FOR",
    ),
    trap(
        "a name with a sign in it is written in backticks: `log-in`",
        at=r"[-./@]\s*\w+\s*(?:[;:)+?{]|AS\b|THEN\b|\Z)",
        before=_NAME,
        accepts=_IN_PATTERN,
    ),
    trap(
        "WHERE has a pattern of event types; conditions come after FILTER: WHERE T AS x FILTER x[temp > 40]",
        at=r"\[|\.|[<>=!]|IS\b|(?:NOT\s+)?(?:LIKE\b|BETWEEN\b|IN\s*\()",
        before=_NAME,
        accepts=_IN_PATTERN,
    ),
    trap(_NOT_PLACES, at=r"NOT\b", accepts="PROJECT"),
    trap(_NOT_PLACES, at=r"NOT\b", accepts="NOT_FOLLOWED_BY"),
    trap(f"NOT goes between two `;`: {_NOT_PLACES}", accepts="SEMICOLON", refuses="THEN"),
    trap("an attribute whose name is `case` needs backticks", before=r"\[\s*CASE", at=r"[<>=!]", accepts="WHEN"),
    trap(
        "an event is defined by EVENT name(attribute, ..) AS (SELECT measure, .. WHERE ..)",
        before=rf"\bEVENT\s+{_NAME}(?:\s*\([^()]*\)?)?(?:\s*AS)?",
    ),
    trap(_NO_SUBQUERY, at=r"\(\s*SELECT\b"),
    trap("a CASE ends with END: CASE WHEN c THEN a ELSE b END", accepts="WHEN ELSE END"),
    trap(
        "a target that is a condition needs parentheses: SELECT (x.a > 1) AS b",
        before=r"\bSELECT\b[^;]*",
        at=r"[<>=!]|IN\b|LIKE\b|IS\b|BETWEEN\b",
        accepts="AS WHERE",
    ),
    trap("a CASE asks conditions: CASE WHEN x.a = 1 THEN .. ELSE .. END", before=r"\bCASE", accepts="WHEN"),
    trap("comparisons do not chain: write a < b AND b < c", at=r"[<>=!]", accepts="AND", refuses="COMPARE SEMICOLON"),
    trap(
        "a gap or window with one bound needs a comparison: [<= 5s], [>= 5s] or [= 5s]",
        at=r"\]",
        before=rf"\[\s*(?:[0-9.]+\s*(?:{_UNIT})?|{_PARAMETER})",
    ),
    trap("IS tests only for NULL; a boolean attribute is a condition by itself: x.active, NOT x.active", before=r"\bIS(?:\s+NOT)?"),
    trap(
        "conditions on a match come after the pattern, HAVING count(x) > 3; A{3,} is at least three events",
        at=r"\(",
        before=r"\b(?:COUNT|SUM|AVG|MIN)",
        accepts=_IN_PATTERN,
    ),
    trap("a repetition has its smallest number: {1,3}", at=",", before=r"\{"),
    trap("a repetition has its numbers with a comma: {1,3}", at=r"\.|-|:|TO\b", before=r"\{\s*[0-9]+"),
    trap("a number has no separators: 1000", at=r",[0-9]{3}\b|_[0-9]", before="[0-9]"),
    trap("each comparison has both sides: x.a > 1 AND x.a < 3", at="[<>=]", before=r"\b(?:AND|OR)"),
    trap("values are compared one by one: x.a = 1 AND x.b = 2", at=",", before=r"\bFILTER\b[^;]*\([^()]*", accepts="RPAR"),
    trap("conditions are joined by AND and OR", at=",", before=r"\bFILTER\b[^;]*", accepts="FILTER"),
    # strategies
    trap("ALL, ANY and RESTRICTED only come after SELECT; STRICT, NXT, LAST and MAX also around a pattern", at=r"\(", before=_SELECT_ONLY),
    trap(
        "a strategy has parentheses in a pattern, NXT(A ; B), and comes after SELECT for the whole query",
        at=_NAME,
        before=r"(?:WHERE|[;:(]|OR|AND)\s*(?:STRICT|NXT|NEXT|LAST|MAX)",
        accepts=_IN_PATTERN,
    ),
    trap(
        "a query has one strategy; others go around parts of the pattern, as in NXT(A ; B)",
        before=rf"\bSELECT\s+{_STRATEGY}\s+{_STRATEGY}(?:\s+\S+\s+(?:FROM|WHERE))?",
    ),
    trap("the strategy comes before the targets: SELECT NXT *", at=_STRATEGY, before=r"\bSELECT\s+\S+"),
    trap("targets come after the strategy: SELECT NXT * WHERE ..", before=rf"\bSELECT\s+{_STRATEGY}\s+WHERE"),
    trap(
        "LIMIT comes at the end: LIMIT 5 gives at most five matches of each event that completes some",
        before=r"\bSELECT\s+(?:TOP|LIMIT)",
    ),
    trap(
        "there is no DISTINCT: SELECT x, y gives equal rows once, measures give a row for each match",
        before=r"\bSELECT\s+DISTINCT(?:\s+\S+\s+(?:FROM|WHERE))?",
    ),
    trap(
        "CONSUME BY says what a match uses up: with CONSUME BY PARTITION the next match of its key starts after its last event",
        at=r"AFTER\b|SKIP\b",
        accepts="LIMIT",
    ),
    trap("the key comes before it: PARTITION BY k CONSUME BY PARTITION", at=r"BY\b", before=r"\bCONSUME\s+BY\s+PARTITION"),
    trap(
        "NONE: matches may share events (the default); PARTITION: the next match of the key starts after this one; ANY: of the whole stream",
        before=r"\bCONSUME\s+BY",
    ),
    trap(f"the time models are {quoted(model.value for model in TimeModel)}", before=r"\bTIME\s+MODEL"),
    trap("LIMIT takes a whole number, at least 1", before=r"\bLIMIT"),
    trap(
        "an event type has no arguments: conditions come after FILTER, A AS a FILTER a[v > 3], and `;` joins patterns",
        at=r"\(",
        before=_NAME,
        accepts=_IN_PATTERN,
    ),
    trap(
        "every event has the attributes of the key: write them without a variable, PARTITION BY <field>",
        at=rf"\.(?P<field>{_PLAIN})(?![\w.])",
        before=rf"\bAS\s+(?P<column>{_PLAIN})\b[\s\S]*\bPARTITION\s+BY\b(?:[^;]*,)?\s*\[?\s*(?P=column)",
    ),
    trap("<inside>; if `<column>` is a variable, leave it out", at=rf"(?=\.){_PATH}", before=_KEY),
    trap("<inside>", at=_PATH, before=_KEY),
    trap(
        "every event has the attributes of the key: write them without a variable; a field of a struct needs a column of its own",
        at=r"\.",
        before=rf"\bBY\b(?:[^;]*,)?\s*{_NAME}",
        accepts="CONSUME",
    ),
    trap("name the attributes one by one, or leave `.*` out for whole events", at=r"\*", before=r"\."),
    # words of SQL
    trap("matches come in the order of the event that completes them", at=r"ORDER\b", accepts="LIMIT"),
    trap(
        "one row per match: PARTITION BY gives matches per key; docs/cookbook.md has one number for each key",
        at=r"GROUP\b",
        accepts="LIMIT",
    ),
    trap("conditions come after FILTER, before PARTITION BY", at=r"(?:WHERE|AND|ON)\b", accepts="LIMIT"),
    trap(_NO_OFFSET, at=r"(?:OFFSET|FETCH)\b", accepts="$END"),
    trap(_NO_OFFSET, at=",", before=r"\bLIMIT\s+\S+"),
    trap(
        "OR joins alternatives, A OR B; several queries run together in cepheid.queries({..})",
        at=r"(?:UNION|INTERSECT|EXCEPT)\b",
        accepts="$END",
    ),
    trap(
        "matches are given as soon as they are decided, in the order of the events that complete them",
        at=r"(?:EMIT|OUTPUT)\b",
        accepts="$END",
    ),
    trap(
        "WITHIN 5 minutes is the window of a match, and PARTITION BY k gives matches per key",
        at=r"(?:WINDOW|DURING|IN|OVER|PER|TUMBLING|TUMBLE|HOP|HOPPING|SLIDING)\b",
        accepts="$END",
    ),
    trap(
        "matches of a query become events of others by EVENT name(attribute, ..) AS (SELECT measure, .. WHERE ..)",
        at=r"WITH\b",
        accepts="EVENT SELECT",
    ),
    # units
    trap("months and years have no fixed length: write days or weeks", at=r"(?:months?|years?)\b", before="[0-9]"),
    trap("the smallest unit is us, a microsecond", at=r"(?:ns|nanoseconds?)\b", before="[0-9]"),
)
"""The traps, most particular first."""

GENERAL_HINTS: tuple[Hint, ...] = (
    trap(_DURATION, accepts="DURATION", refuses="STRING"),
    trap("the pattern comes after WHERE: SELECT * WHERE A ; B", at=r"\Z", accepts="WHERE", refuses="AS"),
    trap("a query follows the definitions: EVENT .. SELECT * WHERE ..", at=r"\Z", before=r"\)", accepts="EVENT SELECT"),
    trap("a query begins with SELECT: SELECT * WHERE A ; B", at=r"\S", accepts="EVENT SELECT"),
    trap("names are written in backticks (`..`), and only texts in single quotes", at=r"'|\[", accepts="QUOTED", refuses="STRING"),
    trap(
        "join types by `;` (A ; B), name a variable by AS (A AS a), and write a name with a space in backticks (`A B`)",
        at=_NAME,
        before=_NAME,
        accepts=_IN_PATTERN,
    ),
    trap(
        "behind FROM are names of streams, without an alias, and then WHERE; a name with a space is written in backticks (`A B`)",
        at=rf"{_NAME}|\[",
        accepts="COMMA WHERE",
        refuses="AS FROM",
    ),
    trap("the pattern comes after WHERE: SELECT * WHERE A ; B", at=_NAME, accepts="FROM WHERE", refuses="COMMA"),
    trap("conditions are part of the pattern: SELECT count(x) WHERE (A AS x FILTER x.a > 1)+", at=r"FILTER\b", accepts="COMMA FROM WHERE"),
    trap(
        "a measure is named by AS: SELECT x.a AS m; a name with a space is written in backticks (`A B`)",
        at=_NAME,
        accepts="COMMA FROM WHERE",
    ),
    trap("a name with a space is written in backticks (`A B`)", at=_NAME, before=rf"[.\[]\s*{_NAME}", accepts="COMPARE"),
    trap("a name with a space is written in backticks (`A B`)", at=_NAME, before=rf"(?:BY|,)\s*{_NAME}", accepts="COMMA CONSUME"),
)
"""What is said where no trap fits and no keyword is near."""

TERMINAL_WORDS = {
    "ALL_INFIX": "ALL",
    "NOT_FOLLOWED_BY": "NOT FOLLOWED BY",
    "SELECTOR": "STRICT",
    "CONSUME_NONE": "NONE",
    "CONSUME_PARTITION": "PARTITION",
    "CONSUME_ANY": "ANY",
}
"""The keywords of terminals that are not named by their keyword."""

WRITTEN_UNITS = tuple(word for word in UNITS if word.endswith("s") or word in UNIT_SYMBOLS.values())
"""The spellings of units that are offered: symbols, and words for more than one."""

SHORTEST_GUESS = 3
"""Letters that a word must have before a keyword is guessed from it."""

KEYWORD_LIKENESS = 0.7
"""How like a keyword a word must be: `FILTR` is 0.91 like FILTER, and `Failed`, a name, 0.67."""


def hint(failure: Failure) -> tuple[str, ...]:
    """The help lines for a failure."""
    before = failure.text[max(0, failure.position - NEAR) : failure.position]
    return (
        first_of(HINTS, failure, before) or _units(failure, before) or _guess(failure, before) or first_of(GENERAL_HINTS, failure, before)
    )


def first_of(hints: tuple[Hint, ...], failure: Failure, before: str) -> tuple[str, ...]:
    """The first help that applies, if one does; before: the text before the failure."""
    for candidate in hints:
        if not candidate.accepts <= failure.accepted or candidate.refuses & failure.accepted:
            continue
        here, there = candidate.at.match(failure.text, failure.position), candidate.before.search(before)
        if here is not None and there is not None:
            return (_filled(candidate.help, {**there.groupdict(), **here.groupdict()}),)
    return ()


def _filled(help_line: str, named: dict[str, str | None]) -> str:
    """A help with what its place has matched; `<inside>` is the help of `path_key`."""
    if "<inside>" in help_line:
        steps = re.finditer(_STEP, named["path"] or "")
        named = {**named, "inside": path_key(named["column"] or "", [(step.lastgroup or "", step[step.lastgroup or 0]) for step in steps])}
    for name, matched in named.items():
        help_line = help_line.replace(f"<{name}>", matched or "")
    return help_line


_COUNTED = re.compile(r"[0-9]\s*\Z")
_SURELY_COUNTED = re.compile(r"(?:\b(?:WITHIN|FOR)|[;:+}]\s*\[[^\]]*)\s*[-<>=0-9.]+\s*\Z", re.IGNORECASE)
"""A number in a window, a deadline or a gap: the word behind it can only be a unit."""


def _units(failure: Failure, before: str) -> tuple[str, ...]:
    """The units, where a word stands behind a number that is no unit."""
    if not failure.word.isidentifier() or _COUNTED.search(before) is None:
        return ()
    events = "EVENTS" in failure.accepted
    near = nearest(failure.word.lower(), [*WRITTEN_UNITS, *(["events"] if events else [])])
    surely = events or _SURELY_COUNTED.search(before) is not None
    if not surely and (near is None or near in UNIT_SYMBOLS.values() or failure.word.upper() in KEYWORDS):
        return ()
    known = f"the units are {', '.join(UNIT_SYMBOLS.values())} and their words (seconds, minutes, ..)"
    return (*([] if near is None else [f"did you mean `{near}`?"]), f"{known}, and EVENTS" if events else known)


def _guess(failure: Failure, before: str) -> tuple[str, ...]:
    """The keyword or strategy that a misspelt word is nearest to."""
    if len(failure.word) >= SHORTEST_GUESS and failure.word.isidentifier():
        words = {TERMINAL_WORDS.get(terminal, terminal) for terminal in failure.accepted}
        near = nearest(failure.word.upper(), sorted(word for word in words if word.split()[0] in KEYWORDS), likeness=KEYWORD_LIKENESS)
        if near:
            return (f"did you mean {near}?",)
    # A misspelt strategy was read as a target; the failure is at one of the words behind it.
    first = re.search(r"\bSELECT\s+(\w+)\s+(?:(\S+)\s+(?:(?:FROM|WHERE)\s+)?)?\Z", before, re.IGNORECASE)
    if first is None:
        return ()
    strategy = nearest(first[1].upper(), STRATEGIES)
    if strategy:
        return (f"did you mean SELECT {strategy} ..?",)
    return (f"the strategies are {', '.join(STRATEGIES)}",) if first[2] == "*" else ()
