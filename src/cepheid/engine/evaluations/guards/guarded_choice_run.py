"""NXT, LAST and MAX of a program with guards, by the kernel of guards.

Comes in: what `GuardedRun` reads. Goes out: the chosen matches. At a trigger the kernel finds the best support of the cells that it reaches, and then
walks the matches that have it; of MAX, a graph of the maximal matches. It gives them as the automaton marks them; what SELECT shows of them is made
here.

When to use this: NXT and LAST of what `next` and `last` do not take: patterns with `:`, gaps, negation, and those that compare events. Where those
two fit, it takes 2 to 6 times as long; end by end (`per_end`) takes 1.3 to 200 times as long as this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cepheid.automata.strategies import is_last
from cepheid.engine.evaluations.guards.guarded_run import CHOSEN, MAXIMAL, GuardedRun
from cepheid.engine.evaluations.guards.guarded_tables import EARLIEST, LATEST
from cepheid.errors import LimitError
from cepheid.language.syntax import Strategy

if TYPE_CHECKING:
    from typing import Unpack

    from cepheid.automata.program import ChoiceProgram
    from cepheid.engine.evaluations.base import Bounds
    from cepheid.engine.evaluations.events import Events
    from cepheid.engine.evaluations.guards.guarded_run import GuardSizes
    from cepheid.engine.memory.pools import Array


MAXIMAL_LIMIT = 1 << 22
"""Steps of MAX for the matches of one trigger: states, and for each of them the cells that may be in a larger match."""

FIRST_WORDS, KEPT_WORDS = 1 << 10, 1 << 20
"""Words in which MAX compares matches, at first, and as many as are kept from batch to batch."""


class GuardedChoiceRun(GuardedRun):
    """The run state of NXT, LAST or MAX with guards by the kernel; the interface is that of `Evaluation`.

    Update: as `GuardedRun`. Per trigger O(log n) comparisons of supports where the entries that it asks for lie in the order of what is tested, else
    O(n), n: entries; the same for each cell that it reaches and whose best match is not known, or has left the window. A comparison: O(log) of their
    length, of LAST O(1) but where they have many last events in common; a cell's own support, O(cells of its event). MAX: as `Maximal`, per trigger.
    Then output-linear for what is chosen. Raises what `GuardedRun` does, and LimitError past DISTINCT_LIMIT and MAXIMAL_LIMIT.
    """

    program: ChoiceProgram

    def __init__(self, program: ChoiceProgram, *, sizes: GuardSizes | None = None, **bounds: Unpack[Bounds]) -> None:
        self._counting = MAXIMAL if program.strategy is Strategy.MAX and not is_last(program.automaton) else CHOSEN
        super().__init__(program, sizes=sizes, **bounds)
        self.mends |= {"steps": "_mend_steps"}
        self._set("first", program.strategy is Strategy.NXT)
        if self._counting == CHOSEN and not self._get("hidden"):
            # Of two matches that differ in one layer alone the better one has the first, or the last of them.
            self._layered = self.tables.layer_table(EARLIEST if program.strategy is Strategy.NXT else LATEST)
        self._set("most_steps", MAXIMAL_LIMIT)

    def _begin(self, events: Events) -> Array:
        if self._counting == MAXIMAL and len(self._supports) > KEPT_WORDS:
            self._supports = np.zeros(KEPT_WORDS, np.int64)
        return super()._begin(events)

    def _mend_counts(self) -> None:
        """Of MAX: the matches of an event need more words to be compared in."""
        if self._counting != MAXIMAL:
            super()._mend_counts()
            return
        self._supports = np.zeros(max(FIRST_WORDS, 2 * len(self._supports)), np.int64)

    def _mend_steps(self) -> None:
        """The matches of an event take more steps than MAXIMAL_LIMIT."""
        raise LimitError(
            f"MAX takes more than {MAXIMAL_LIMIT} steps for the matches of one event (MAXIMAL_LIMIT)",
            help="bound matches by a smaller window, or choose by NXT or LAST",
        )

    def _is_shown_twice(self) -> bool:
        return super()._is_shown_twice() or len(set(self.program.shown)) < len(self.program.shown) or not all(self.program.label_sets)
