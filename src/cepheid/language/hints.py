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


def _hint(help_line: str, *, at: str = "", before: str = "", accepts: str = "", refuses: str = "") -> Hint:
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
    _hint(
        "write texts in straight single quotes ('..'), names in backticks (`..`)",
        at='["\u201c\u201d\u2018\u2019\u201e\u201a\u00ab\u00bb\u00b4]',
    ),
    _hint(
        "this is the name of a file: cepheid.query(pathlib.Path('..')) reads it", at=r"[\w./\\-]+\.(?:ceql|sql|txt)\s*\Z", accepts="SELECT"
    ),
    _hint(_DURATION, before=r"\bINTERVAL", at="'"),
    _hint(_DURATION, before=r"\bWITHIN\s+[0-9]+", at=r":\s*[0-9]"),
    _hint("a comment starts with `--`", at="#|//", refuses="PARAMETER"),
    _hint("a comment starts with `--`", at="/", before="/"),
    _hint("write a list in parentheses: IN (1, 2)", at=r"[{\['0-9-]", before=r"\bIN"),
    _hint("a list has one value or more; a condition that never holds is written FALSE", at=r"\)", before=r"\bIN\s*\("),
    _hint("a parameter is written `:name`, without a space", at=r":\s", accepts="PARAMETER"),
    _hint("write $time and $index after a variable, outside its brackets: a.$time", at=r"\$(?:time|index)\b", accepts="PARAMETER"),
    _hint("a parameter is written `:name`", at=r"[?$%@{#]", accepts="PARAMETER"),
    _hint("a quote inside a text is written twice: 'it''s'", at=r"(?<=')\w"),
    _hint("there is no cast: cast the column in the input", at="::"),
    _hint("there is no cast: cast the column in the input", at=r"AS\b", before=r"\bCAST\s*\([^()]*"),
    _hint("the parts of a time are functions: hour(x.$time)", at=r"FROM\b", before=r"\bEXTRACT\s*\(\s*\w+"),
    _hint("the parts of a time take a zone: hour(x.$time, 'Europe/Berlin')", at=r"AT\s+TIME\s+ZONE\b"),
    _hint(
        "there are no window functions: a measure is of the events of a match, and lag(x.a) in a FILTER is of the event before",
        at=r"OVER\s*\(",
        before=r"\)",
    ),
    _hint(
        "LIKE compares texts, with `%` and `_`: there are no regular expressions, and letters are compared as they are",
        at=r"~|(?:ILIKE|RLIKE|REGEXP|REGEXP_LIKE|SIMILAR|GLOB|MATCHES)\b",
        accepts="LIKE",
    ),
    _hint(_NO_JOIN, at=r"\|\|", accepts="SLASH", refuses="OR"),
    _hint(f"write OR between conditions; {_NO_JOIN}", at=r"\|\|", accepts="SLASH"),
    _hint("write OR", at=r"\|"),
    _hint(_NOT_PLACES, at=r"[!~\u00ac](?!=)", accepts="PROJECT"),
    _hint("write AND, OR and NOT", at=r"&|!(?!=)"),
    _hint(_SEQUENCE, at=r"(?:SEQUENCE|SAMPLE)\b", accepts="EVENT SELECT"),
    _hint(_SEQUENCE, at=r"BY\b", before=r"\b(?:SEQUENCE|SAMPLE)"),
    _hint("the longest time from the first event to the last is written WITHIN 5m", at=r"(?:WITH\s+)?MAXSPAN\b"),
    _hint(
        "types stand without brackets, with `;` between: A ; B, and conditions after FILTER",
        at=rf"\[\s*{_NAME}\s*(?:\]|WHERE\b)",
        accepts="PROJECT",
    ),
    _hint("a variable is named after its type: A AS a", at=rf"=\s*{_NAME}\s*(?:[;:()\[\]]|->|THEN\b)", before=_NAME, accepts=_IN_PATTERN),
    _hint("there is no EVERY: SELECT * gives every match, SELECT NXT * those with the next events", at=_NAME, before=r"\bEVERY"),
    _hint(_ROW_PATTERN, at=r"(?:MATCH_RECOGNIZE|MEASURES|PATTERN|DEFINE)\b"),
    _hint(_ROW_PATTERN, at=r"\(", before=r"\bPATTERN"),
    _hint(
        "repetitions are written A{3}, A+ and A?, which may also leave an A out, and conditions come after FILTER",
        at=r"\.\s*(?:times|timesOrMore|oneOrMore|optional|where)\s*\(",
        accepts=_IN_PATTERN,
    ),
    _hint(
        "`A` followed by `B` is written A ; B, and A : B at the very next event",
        at=r"->|=>|-->|~>|,|\.?(?:FOLLOWED\s*BY|NE?XT)",
        accepts=_IN_PATTERN,
    ),
    _hint(_NO_SUBQUERY, at=r"\S", before=r"\(\s*SELECT(?:\s*\*\s*FROM)?", accepts="RPAR"),
    _hint("zero or more is written (p+)?, one or more p+", at=r"\*", accepts=_IN_PATTERN),
    _hint("write the zero before the point: 0.5", at=r"\.[0-9]"),
    # what CORE writes otherwise
    _hint(
        "CORE writes the stream before the type; here write the type alone (`S>A` is `A`), and the streams after FROM",
        at=rf">\s*{_NAME}",
        before=_NAME,
        accepts=_IN_PATTERN,
    ),
    _hint(_RANGE, at=r"RANGE\b", before=r"\bIN"),
    _hint(_RANGE, at=r",|TO\b", before=r"\bBETWEEN\s[^,]*", accepts="AND"),
    _hint(_RANGE, at=",", before=r"\bBETWEEN\s*\([^(),]*", accepts="RPAR"),
    _hint("the value of a parameter includes the unit: WITHIN :w, where w is '5s' or a timedelta", at=_UNIT, before=_PARAMETER),
    _hint("a duration has one unit: 90 minutes, not 1 hours 30 minutes", at=rf"(?:AND\s+)?[0-9.]+\s*{_UNIT}", before=rf"[0-9]\s*{_UNIT}"),
    _hint(
        "a window is a duration or a number of EVENTS; CORE's windows over another attribute do not exist here",
        at=r"\[",
        before=r"WITHIN\s+[0-9.]+",
    ),
    _hint(
        _key_column("key", arrow="pc.utf8_lower(events['k'])", event="event['k'].lower()", spark="F.lower('k')"),
        at=r"[-+/%*(]",
        before=rf"\bPARTITION\s+BY\b[^;]*{_NAME}",
        accepts="LIMIT",
    ),
    _hint("keys are written without parentheses: PARTITION BY a, b", at=r"\(", before=r"\bBY"),
    _hint("each attribute has its own brackets, or none: PARTITION BY [a], [b]", at=",", before=rf"\[\s*{_NAME}", accepts="RSQB"),
    # the language's own traps
    _hint("a query does not end with `;`, which means `followed by`", at=r";\s*\Z", accepts="$END"),
    _hint(
        "the order is: pattern and its clauses, PARTITION BY, HAVING, CONSUME BY, TIME MODEL, LIMIT",
        at=r"(?:FILTER|WITHIN|UNLESS|NOT|PARTITION|HAVING|CONSUME|TIME|LIMIT)\b",
        accepts="$END",
        refuses="NOT_FOLLOWED_BY",
    ),
    _hint("FROM has no stream: name one, or leave FROM out", before=r"\bFROM\s+WHERE", accepts="COMMA WHERE"),
    _hint("FROM has no alias: a variable is named in the pattern, FROM S WHERE A AS a", at=r"AS\b", accepts="COMMA WHERE", refuses="AS"),
    _hint(
        "there is no JOIN: name the streams, FROM S, T, and compare their events in the pattern, WHERE A AS a ; B AS b FILTER a.k = b.k",
        at=r"(?:(?:INNER|LEFT|RIGHT|FULL|OUTER|CROSS|NATURAL)\s+)*JOIN\b",
    ),
    _hint("SELECT has no targets: SELECT * WHERE ..", before=r"\bSELECT\s+(?:FROM|WHERE)", accepts="FROM WHERE"),
    _hint(
        "`*` stands alone: it gives whole matches, and without it SELECT lists variables and measures",
        at=",",
        accepts="FROM WHERE",
        refuses="COMMA",
    ),
    _hint("a target is missing before FROM", before=r",\s*FROM", accepts="COMMA FROM"),
    _hint(
        f"{_CLAUSE}: put the part before it into parentheses, (A FILTER ..) ; B",
        at=r";|:|THEN\b|ALL\b|AND\b|OR\b|\+|\?|\{",
        accepts="FILTER",
        refuses="SEMICOLON",
    ),
    _hint("a query does not end with `;`, which means `followed by`", before=";", at=r"\Z", accepts="PROJECT"),
    _hint("absence is written p NOT FOLLOWED BY n FOR 10m", at=r"NOT\s+FOLL", accepts=_IN_PATTERN),
    _hint(
        "FOR says for how long: NOT FOLLOWED BY n FOR 10m; a window of n itself needs parentheses",
        at=r"(?:WITHIN|PARTITION|HAVING|CONSUME|TIME|LIMIT)\b|\Z",
        accepts="FOR",
    ),
    _hint(
        "a name with a sign in it is written in backticks: `log-in`",
        at=r"[-./@]\s*\w+\s*(?:[;:)+?{]|AS\b|THEN\b|\Z)",
        before=_NAME,
        accepts=_IN_PATTERN,
    ),
    _hint(
        "WHERE has a pattern of event types; conditions come after FILTER: WHERE T AS x FILTER x[temp > 40]",
        at=r"\[|\.|[<>=!]|IS\b|(?:NOT\s+)?(?:LIKE\b|BETWEEN\b|IN\s*\()",
        before=_NAME,
        accepts=_IN_PATTERN,
    ),
    _hint(_NOT_PLACES, at=r"NOT\b", accepts="PROJECT"),
    _hint(_NOT_PLACES, at=r"NOT\b", accepts="NOT_FOLLOWED_BY"),
    _hint(f"NOT goes between two `;`: {_NOT_PLACES}", accepts="SEMICOLON", refuses="THEN"),
    _hint("an attribute whose name is `case` needs backticks", before=r"\[\s*CASE", at=r"[<>=!]", accepts="WHEN"),
    _hint(
        "an event is defined by EVENT name(attribute, ..) AS (SELECT measure, .. WHERE ..)",
        before=rf"\bEVENT\s+{_NAME}(?:\s*\([^()]*\)?)?(?:\s*AS)?",
    ),
    _hint(_NO_SUBQUERY, at=r"\(\s*SELECT\b"),
    _hint("a CASE ends with END: CASE WHEN c THEN a ELSE b END", accepts="WHEN ELSE END"),
    _hint(
        "a target that is a condition needs parentheses: SELECT (x.a > 1) AS b",
        before=r"\bSELECT\b[^;]*",
        at=r"[<>=!]|IN\b|LIKE\b|IS\b|BETWEEN\b",
        accepts="AS WHERE",
    ),
    _hint("a CASE asks conditions: CASE WHEN x.a = 1 THEN .. ELSE .. END", before=r"\bCASE", accepts="WHEN"),
    _hint("comparisons do not chain: write a < b AND b < c", at=r"[<>=!]", accepts="AND", refuses="COMPARE SEMICOLON"),
    _hint(
        "a gap or window with one bound needs a comparison: [<= 5s], [>= 5s] or [= 5s]",
        at=r"\]",
        before=rf"\[\s*(?:[0-9.]+\s*(?:{_UNIT})?|{_PARAMETER})",
    ),
    _hint("IS tests only for NULL; a boolean attribute is a condition by itself: x.active, NOT x.active", before=r"\bIS(?:\s+NOT)?"),
    _hint(
        "conditions on a match come after the pattern, HAVING count(x) > 3; A{3,} is at least three events",
        at=r"\(",
        before=r"\b(?:COUNT|SUM|AVG|MIN)",
        accepts=_IN_PATTERN,
    ),
    _hint("a repetition has its smallest number: {1,3}", at=",", before=r"\{"),
    _hint("a repetition has its numbers with a comma: {1,3}", at=r"\.|-|:|TO\b", before=r"\{\s*[0-9]+"),
    _hint("a number has no separators: 1000", at=r",[0-9]{3}\b|_[0-9]", before="[0-9]"),
    _hint("each comparison has both sides: x.a > 1 AND x.a < 3", at="[<>=]", before=r"\b(?:AND|OR)"),
    _hint("values are compared one by one: x.a = 1 AND x.b = 2", at=",", before=r"\bFILTER\b[^;]*\([^()]*", accepts="RPAR"),
    _hint("conditions are joined by AND and OR", at=",", before=r"\bFILTER\b[^;]*", accepts="FILTER"),
    # strategies
    _hint("ALL, ANY and RESTRICTED only come after SELECT; STRICT, NXT, LAST and MAX also around a pattern", at=r"\(", before=_SELECT_ONLY),
    _hint(
        "a strategy has parentheses in a pattern, NXT(A ; B), and comes after SELECT for the whole query",
        at=_NAME,
        before=r"(?:WHERE|[;:(]|OR|AND)\s*(?:STRICT|NXT|NEXT|LAST|MAX)",
        accepts=_IN_PATTERN,
    ),
    _hint(
        "a query has one strategy; others go around parts of the pattern, as in NXT(A ; B)",
        before=rf"\bSELECT\s+{_STRATEGY}\s+{_STRATEGY}(?:\s+\S+\s+(?:FROM|WHERE))?",
    ),
    _hint("the strategy comes before the targets: SELECT NXT *", at=_STRATEGY, before=r"\bSELECT\s+\S+"),
    _hint("targets come after the strategy: SELECT NXT * WHERE ..", before=rf"\bSELECT\s+{_STRATEGY}\s+WHERE"),
    _hint(
        "LIMIT comes at the end: LIMIT 5 gives at most five matches of each event that completes some",
        before=r"\bSELECT\s+(?:TOP|LIMIT)",
    ),
    _hint(
        "there is no DISTINCT: SELECT x, y gives equal rows once, measures give a row for each match",
        before=r"\bSELECT\s+DISTINCT(?:\s+\S+\s+(?:FROM|WHERE))?",
    ),
    _hint(
        "CONSUME BY says what a match uses up: with CONSUME BY PARTITION the next match of its key starts after its last event",
        at=r"AFTER\b|SKIP\b",
        accepts="LIMIT",
    ),
    _hint("the key comes before it: PARTITION BY k CONSUME BY PARTITION", at=r"BY\b", before=r"\bCONSUME\s+BY\s+PARTITION"),
    _hint(
        "NONE: matches may share events (the default); PARTITION: the next match of the key starts after this one; ANY: of the whole stream",
        before=r"\bCONSUME\s+BY",
    ),
    _hint(f"the time models are {quoted(model.value for model in TimeModel)}", before=r"\bTIME\s+MODEL"),
    _hint("LIMIT takes a whole number, at least 1", before=r"\bLIMIT"),
    _hint(
        "an event type has no arguments: conditions come after FILTER, A AS a FILTER a[v > 3], and `;` joins patterns",
        at=r"\(",
        before=_NAME,
        accepts=_IN_PATTERN,
    ),
    _hint(
        "every event has the attributes of the key: write them without a variable, PARTITION BY <field>",
        at=rf"\.(?P<field>{_PLAIN})(?![\w.])",
        before=rf"\bAS\s+(?P<column>{_PLAIN})\b[\s\S]*\bPARTITION\s+BY\b(?:[^;]*,)?\s*\[?\s*(?P=column)",
    ),
    _hint("<inside>; if `<column>` is a variable, leave it out", at=rf"(?=\.){_PATH}", before=_KEY),
    _hint("<inside>", at=_PATH, before=_KEY),
    _hint(
        "every event has the attributes of the key: write them without a variable; a field of a struct needs a column of its own",
        at=r"\.",
        before=rf"\bBY\b(?:[^;]*,)?\s*{_NAME}",
        accepts="CONSUME",
    ),
    _hint("name the attributes one by one, or leave `.*` out for whole events", at=r"\*", before=r"\."),
    # words of SQL
    _hint("matches come in the order of the event that completes them", at=r"ORDER\b", accepts="LIMIT"),
    _hint(
        "one row per match: PARTITION BY gives matches per key; docs/cookbook.md has one number for each key",
        at=r"GROUP\b",
        accepts="LIMIT",
    ),
    _hint("conditions come after FILTER, before PARTITION BY", at=r"(?:WHERE|AND|ON)\b", accepts="LIMIT"),
    _hint(_NO_OFFSET, at=r"(?:OFFSET|FETCH)\b", accepts="$END"),
    _hint(_NO_OFFSET, at=",", before=r"\bLIMIT\s+\S+"),
    _hint(
        "OR joins alternatives, A OR B; several queries run together in cepheid.queries({..})",
        at=r"(?:UNION|INTERSECT|EXCEPT)\b",
        accepts="$END",
    ),
    _hint(
        "matches are given as soon as they are decided, in the order of the events that complete them",
        at=r"(?:EMIT|OUTPUT)\b",
        accepts="$END",
    ),
    _hint(
        "WITHIN 5 minutes is the window of a match, and PARTITION BY k gives matches per key",
        at=r"(?:WINDOW|DURING|IN|OVER|PER|TUMBLING|TUMBLE|HOP|HOPPING|SLIDING)\b",
        accepts="$END",
    ),
    _hint(
        "matches of a query become events of others by EVENT name(attribute, ..) AS (SELECT measure, .. WHERE ..)",
        at=r"WITH\b",
        accepts="EVENT SELECT",
    ),
    # units
    _hint("months and years have no fixed length: write days or weeks", at=r"(?:months?|years?)\b", before="[0-9]"),
    _hint("the smallest unit is us, a microsecond", at=r"(?:ns|nanoseconds?)\b", before="[0-9]"),
)
"""The traps, most particular first."""

GENERAL_HINTS: tuple[Hint, ...] = (
    _hint(_DURATION, accepts="DURATION", refuses="STRING"),
    _hint("the pattern comes after WHERE: SELECT * WHERE A ; B", at=r"\Z", accepts="WHERE", refuses="AS"),
    _hint("a query follows the definitions: EVENT .. SELECT * WHERE ..", at=r"\Z", before=r"\)", accepts="EVENT SELECT"),
    _hint("a query begins with SELECT: SELECT * WHERE A ; B", at=r"\S", accepts="EVENT SELECT"),
    _hint("names are written in backticks (`..`), and only texts in single quotes", at=r"'|\[", accepts="QUOTED", refuses="STRING"),
    _hint(
        "join types by `;` (A ; B), name a variable by AS (A AS a), and write a name with a space in backticks (`A B`)",
        at=_NAME,
        before=_NAME,
        accepts=_IN_PATTERN,
    ),
    _hint(
        "behind FROM are names of streams, without an alias, and then WHERE; a name with a space is written in backticks (`A B`)",
        at=rf"{_NAME}|\[",
        accepts="COMMA WHERE",
        refuses="AS FROM",
    ),
    _hint("the pattern comes after WHERE: SELECT * WHERE A ; B", at=_NAME, accepts="FROM WHERE", refuses="COMMA"),
    _hint("conditions are part of the pattern: SELECT count(x) WHERE (A AS x FILTER x.a > 1)+", at=r"FILTER\b", accepts="COMMA FROM WHERE"),
    _hint(
        "a measure is named by AS: SELECT x.a AS m; a name with a space is written in backticks (`A B`)",
        at=_NAME,
        accepts="COMMA FROM WHERE",
    ),
    _hint("a name with a space is written in backticks (`A B`)", at=_NAME, before=rf"[.\[]\s*{_NAME}", accepts="COMPARE"),
    _hint("a name with a space is written in backticks (`A B`)", at=_NAME, before=rf"(?:BY|,)\s*{_NAME}", accepts="COMMA CONSUME"),
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
    return _first(HINTS, failure, before) or _units(failure, before) or _guess(failure, before) or _first(GENERAL_HINTS, failure, before)


def _first(hints: tuple[Hint, ...], failure: Failure, before: str) -> tuple[str, ...]:
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
