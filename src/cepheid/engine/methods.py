"""The methods of evaluation: how each is started, and what it guarantees.

`planner` chooses one for a query, by its name in `METHODS`; `explain()` prints the guarantee. The table of fragments is engine.md, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cepheid.engine.evaluation import Evaluation

if TYPE_CHECKING:
    from collections.abc import Callable

    from cepheid.engine.planner import Compiled
    from cepheid.engine.trackers import Running

MATCH_GRAPH = "match graph"


@dataclass(frozen=True)
class Guarantee:
    """What an evaluation promises, as `explain()` prints it."""

    evaluation: str
    update: str
    state: str
    delay: str


@dataclass(frozen=True)
class Method:
    """One method of evaluation: how it starts (without state; options: the kernel's variant), and its guarantee.

    samples: whether it can choose matches that are spread over all of a trigger (option `sample`).
    """

    start: Callable[..., Running]
    guarantee: Callable[[Compiled], Guarantee]
    samples: bool = False


def _bounds(compiled: Compiled) -> dict[str, Any]:
    """What every evaluation is bounded by."""
    return {
        "window": compiled.window,
        "count_window": compiled.count_window,
        "consume": compiled.consume,
        "limit": compiled.limit,
    }


def _state(compiled: Compiled, what: str) -> str:
    partition = " of each partition" if compiled.keys else ""
    if compiled.window is not None or compiled.count_window is not None:
        return f"O({what} within the window{partition})"
    return f"grows with the {what}{partition}: there is no window over the whole pattern"


METHODS: dict[str, Method] = {
    MATCH_GRAPH: Method(
        start=lambda compiled, **options: Evaluation(compiled.program, **_bounds(compiled), **options),
        guarantee=lambda compiled: Guarantee(
            evaluation="match graph over the automaton, determinized lazily; one pass",
            update="O(m) per event, m = live macro states of the event's partition",
            state=_state(compiled, "marked events"),
            delay="output-linear: the time per match depends on its length alone",
        ),
        samples=True,
    ),
}
"""The methods by name."""
