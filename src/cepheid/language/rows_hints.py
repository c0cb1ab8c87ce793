"""What the writer of a MATCH_RECOGNIZE clause may have meant: spellings of other engines, and what is easily forgotten. See hints.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.errors import nearest
from cepheid.language.hints import KEYWORD_LIKENESS, NEAR, SHORTEST_GUESS, first_of, trap
from cepheid.language.words import UNIT_SYMBOLS

if TYPE_CHECKING:
    from cepheid.language.hints import Failure, Hint

HINTS: tuple[Hint, ...] = (
    trap("this is a whole statement: give the clause alone, from PARTITION BY to DEFINE", at=r"(?:SELECT|FROM|WITH)\b", before=r"\A"),
    trap("leave out the `;` at the end", at=";", refuses="VBAR"),
    trap(
        "the name of the result belongs to the statement around the clause: leave it out",
        at=r"AS\b|[^\W\d]\w*",
        before=r"\)",
        refuses="AS PATTERN COMMA RPAR",
    ),
    trap("an alternative without rows is written (): PATTERN (A | ())", at=r"[|)]", before=r"[|(]", accepts="VARIABLE"),
    trap(f"the units are {', '.join(UNIT_SYMBOLS.values())} and their words (seconds, minutes, ..)", before=r"\bWITHIN\s+[0-9.]+"),
    trap("variables stand one behind the other: PATTERN (A B+ C)", at=r"[;,]|->|:", accepts="VBAR"),
    trap("the alternative is written `|`: PATTERN (A | B)", at=r"\|\||/", accepts="VBAR"),
    trap("a group is written in round parentheses", at=r"\[", accepts="VBAR"),
    trap("there is no possessive quantifier: leave out the second sign", at=r"[+*]", before=r"[+*?}]", accepts="VBAR"),
    trap("write {2,5}: the smaller number, a comma, the greater one", at=r"\.\.|-|:", before=r"\{\s*[0-9]+"),
    trap("the pattern stands in parentheses: PATTERN (A B+)", at=r".", before=r"\bPATTERN", accepts="LPAR"),
    trap(
        "a measure has a name: write it behind AS, as in LAST(A.price) AS price",
        accepts="AS",
        before=r"MEASURES\b[^()]*(?:\([^()]*\)[^()]*)*",
    ),
    trap("write DEFINE A AS and the condition", accepts="AS", before=r"DEFINE\b.*"),
    trap("INITIAL is how all patterns are read: leave it out", at=r"INITIAL\b"),
    trap("there is no SEEK: a match is found from the first row that can begin one", at=r"SEEK\b"),
    trap(
        "write AFTER MATCH SKIP PAST LAST ROW, or SKIP TO NEXT ROW, TO FIRST A, TO LAST A",
        before=r"\b(?:AFTER|AFTER\s+MATCH|SKIP|SKIP\s+TO)",
    ),
    trap("write ONE ROW PER MATCH, or ALL ROWS PER MATCH", before=r"\b(?:ONE|ALL|ONE\s+ROW|ALL\s+ROWS|PER)"),
    trap("CLASSIFIER and MATCH_NUMBER are functions: write CLASSIFIER()", before=r"\b(?:CLASSIFIER|MATCH_NUMBER)"),
    trap("write <> or !=", at=r"~=|\^="),
    trap("write AND", at="&&"),
    trap("a name stands in double quotes, a text in single ones", at=r"\["),
    trap("a comma separates two of them", at=r"[^\W\d]\w*", accepts="COMMA"),
)


def hint(failure: Failure) -> tuple[str, ...]:
    """The help lines for a failure."""
    before = failure.text[max(0, failure.position - NEAR) : failure.position]
    return _guess(failure) or first_of(HINTS, failure, before)


def _guess(failure: Failure) -> tuple[str, ...]:
    """The keyword that a misspelt word is nearest to."""
    if len(failure.word) < SHORTEST_GUESS or not failure.word.isidentifier():
        return ()
    near = nearest(
        failure.word.upper(), sorted(word for word in failure.accepted if word.isalpha() and word.isupper()), likeness=KEYWORD_LIKENESS
    )
    return (f"did you mean {near}?",) if near else ()
