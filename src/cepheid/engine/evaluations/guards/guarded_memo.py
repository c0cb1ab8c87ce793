"""What the kernel of guards asks Python: conditions over values of several events that have no steps (`computing`), each once for the same values.

Comes in: rows of questions that the kernel wrote (`kernel/_guards_memo.py` says how), with values as words. Goes out: their answers, in these rows.
All that an event asks of its list comes at once, and is evaluated as columns. A function of values stays what it is, so a row holds as long as its
words mean the same; and nothing else is lost by forgetting them: what is not there is asked again. So rows are no part of a state, and all go where
they are too many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cepheid.automata.registers import wholes
from cepheid.engine.letters.encoded import ValueLayout, Values
from cepheid.engine.letters.values import of_halves, prepared
from cepheid.engine.memory.pools import power_of_two
from cepheid.logical.types import type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cepheid.engine.evaluations.guards.guarded_sets import Sets
    from cepheid.engine.letters.encoded import Texts
    from cepheid.logical.plan import Expression

Array = np.ndarray[Any, Any]

MEMO = ("base", "behind", "places", "width", "fresh", "unanswered")
"""The last words of the array: how far from the end the table begins, and how far the rows end; places of the table, a power of two; words of a row;
where the next row goes, from the table's begin on; whether something was asked that has no answer."""

ROW = ("before", "answer", "question", "values")
"""The words of a row: where the row before it in the same place of the table begins (0: there is none), 1 for true, 0, 2 for NULL, or -1: not known;
the number of the question, its values, and a word with a bit per value that is NULL."""

UNANSWERED, FRESH, PLACES = -1, -2, -4
"""Where these are, from the end."""

ANSWER, QUESTION, VALUES = 1, 2, 3
NULL = 2
"""The answer that is neither true nor false."""

FIRST_ROWS = 1 << 8
"""Rows that there is room for at first. Tests make it 1."""

MOST_ROWS = 1 << 17
"""Rows up to which there are more of them; past it all are forgotten, if one event does not ask for more. Tests make it 1."""


class Memo:
    """The questions of a program, and the answers that are known, behind its sets.

    questions: each with its values. programs: what stands behind the rows.
    """

    def __init__(self, questions: Mapping[Expression, Sequence[Expression]], programs: Array) -> None:
        self._questions = [_Question(condition, tuple(values)) for condition, values in questions.items()]
        self._programs = programs
        self._width = len(ROW) + max(map(len, questions.values()), default=0)
        self._rows = FIRST_ROWS if questions else 0
        self._answered = 0

    def __bool__(self) -> bool:
        """Whether there are questions."""
        return bool(self._questions)

    def words(self) -> Array:
        """What stands behind the sets: an empty table, room for rows, the programs, and MEMO."""
        places = power_of_two(2 * self._rows)
        behind = len(self._programs) + len(MEMO)
        room = places + self._rows * self._width
        self._answered = places
        return np.concatenate(
            [np.zeros(room, np.int64), self._programs, np.array([room + behind, behind, places, self._width, places, 0], np.int64)]
        )

    def forget(self, sets: Sets) -> None:
        """Forget all rows."""
        behind = sets.behind
        behind[: behind[PLACES]] = 0
        behind[FRESH] = self._answered = behind[PLACES]

    def answer(self, sets: Sets, texts: Texts, numbers: Callable[[Array], Array] | None, *, again: bool) -> None:
        """Answer what was asked. numbers: of the texts of words, None: these are. again: the same event has asked before, so its rows must stay.

        Linear in the rows that have no answer. Where there is no room for more, all are forgotten, or there are twice as many.
        """
        behind = sets.behind
        fresh = int(behind[FRESH])
        rows = behind[self._answered : fresh].reshape(-1, self._width)
        asked = rows[:, QUESTION]
        for number in range(1) if len(self._questions) == 1 else set(asked.tolist()):
            own = slice(None) if len(self._questions) == 1 else asked == number
            rows[own, ANSWER] = self._questions[number].answers(rows[own, VALUES:], texts, numbers)
        self._answered = fresh
        behind[UNANSWERED] = 0
        if fresh + self._width > int(behind[PLACES]) + self._rows * self._width:
            if again or self._rows < MOST_ROWS:
                self._rows *= 2
                sets.behind = self.words()
            else:
                self.forget(sets)


class _Question:
    """A condition over values of several events."""

    def __init__(self, condition: Expression, values: tuple[Expression, ...]) -> None:
        self._layout = ValueLayout(values)
        self._halved = wholes(values)
        self._evaluate = prepared(condition, {value: place for place, value in enumerate((*values, *self._halved))})

    def answers(self, rows: Array, texts: Texts, numbers: Callable[[Array], Array] | None) -> Array:
        """The answers for some rows: of each its values, and the bits of those that are NULL, first. numbers: as for `Memo.answer`."""
        layout = self._layout
        words = rows[:, : layout.width].copy()
        if numbers is not None:
            for text in layout.texts:
                place, (null, bit) = layout.places[text].start, layout.null_bits[text]
                there = words[:, null] & bit.view(np.int64) == 0
                words[there, place] = numbers(words[there, place])
        values = Values(layout, words.view(np.uint64), texts)
        columns = [values.column(value) for value in layout.values]
        for whole, halves in self._halved.items():
            upper, lower = (columns[layout.values.index(half)] for half in halves)
            columns.append(of_halves(upper, lower, type_of(whole)))
        with np.errstate(all="ignore"):
            found = self._evaluate(columns)
        # A constant says the same of all rows.
        answers: Array = np.broadcast_to(found.values, (len(rows),)).astype(np.int64)
        return answers if found.valid is None else np.where(found.valid, answers, NULL)
