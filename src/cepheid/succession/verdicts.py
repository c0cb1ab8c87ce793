"""Which axioms a model satisfies in a finite universe, and the counterexample of each that it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cepheid.records import record
from cepheid.succession.axioms import AXIOMS, Axiom, Violation
from cepheid.succession.models import MODELS
from cepheid.succession.universe import universe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cepheid.succession.model import S, TemporalModel
    from cepheid.succession.universe import Universe

TIMES = 5
"""Times of the greatest universe in which an axiom is checked by default. Active Office needs all of them to violate (8)."""


@record(slots=False)
class Verdict:
    """What the check of one axiom found. times: those of the universe, the greatest or the one with the violation; violation: None if it holds."""

    axiom: Axiom
    times: int
    violation: Violation | None

    @property
    def holds(self) -> bool:
        """Whether nothing contradicts the axiom."""
        return self.violation is None

    def __str__(self) -> str:
        if self.violation is not None:
            return str(self.violation)
        return f"{self.axiom.number} {self.axiom.name}: holds over {self.times} times"


def universes(model: TemporalModel[S], *, times: int = TIMES) -> list[Universe[S]]:
    """The universes of a model over 1 to so many times. Raises what `universe` raises."""
    return [universe(model, range(size)) for size in range(1, times + 1)]


def check(model: TemporalModel[S], axiom: Axiom, *, times: int = TIMES) -> Violation | None:
    """What contradicts an axiom in the universes of a model over up to so many times: the fewest times, then the fewest candidates.

    A Violation proves that the model does not satisfy the axiom; None is evidence (`cepheid.succession.axioms`). Raises what `universe` raises.
    """
    return _verdict(axiom, universes(model, times=times)).violation


def verdicts(model: TemporalModel[S], *, times: int = TIMES) -> dict[str, Verdict]:
    """The verdict on each axiom, by its number, in the order of `AXIOMS`. times: as for `check`."""
    made = universes(model, times=times)
    return {axiom.number: _verdict(axiom, made) for axiom in AXIOMS}


def _verdict(axiom: Axiom, made: list[Universe[S]]) -> Verdict:
    for u in made:
        violation = axiom.check(u)
        if violation is not None:
            return Verdict(axiom, len(u.times), violation)
    return Verdict(axiom, len(made), None)


def table(models: Iterable[TemporalModel[Any]] | None = None) -> str:
    """A Markdown table of axioms and models (None: the six), made by checking: yes where an axiom holds in the universe, no where it is violated."""
    chosen = list(MODELS.values() if models is None else models)
    columns = [verdicts(model) for model in chosen]
    lines = [f"| axiom | {' | '.join(model.name for model in chosen)} |", f"|---|{'---|' * len(chosen)}"]
    for axiom in AXIOMS:
        cells = ("yes" if column[axiom.number].holds else "no" for column in columns)
        lines.append(f"| {axiom.number} {axiom.name} | {' | '.join(cells)} |")
    return "\n".join(lines)
