"""The widget: what it shows is fixed when it is made; where one is in it are traits, which Python and the notebook both set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import traitlets

import cepheid.play
from cepheid.errors import InputError

SHARED = Path(cepheid.play.__file__).parent / "assets"
OWN = Path(__file__).parent / "assets"


def _text(name: str, own: str) -> str:
    """What the workbench draws with, and behind it what the widget adds: one text, for a notebook loads one module and one style sheet."""
    return "\n".join(path.read_text(encoding="utf-8") for path in (SHARED / name, OWN / own))


class Explorer(anywidget.AnyWidget):
    """The widget of `Query.explore`.

    position: how many events are read, 0 for none; the last of them is the one that one has stepped to. match: the index of the chosen match, None
    for none. Both can be read, observed (`observe`) and set; InputError for what there is not.
    """

    _esm = _text("views.js", "widget.js")
    _css = _text("views.css", "widget.css")

    position = traitlets.Int(0, help="how many events are read").tag(sync=True)
    match = traitlets.Int(None, allow_none=True, help="the index of the chosen match").tag(sync=True)
    _shown = traitlets.Dict().tag(sync=True)

    def __init__(self, shown: dict[str, Any]) -> None:
        super().__init__(_shown=shown)

    @property
    def row(self) -> int | None:
        """The row of the event that one has stepped to; None before the first, and for an event that a definition makes."""
        row: int | None = self._steps[self.position - 1]["row"] if self.position else None
        return row

    @property
    def states(self) -> tuple[int, ...]:
        """The states that are live after the event that one has stepped to, ascending."""
        return tuple(self._steps[self.position - 1]["states"]) if self.position else ()

    @property
    def _steps(self) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = self._shown["machine"]["steps"]
        return steps

    @traitlets.validate("position")
    def _check_position(self, proposal: Any) -> int:
        position: int = proposal["value"]
        if not 0 <= position <= len(self._steps):
            raise InputError(
                f"position={position} is not a number of events that one can step through", help=f"there are {len(self._steps):,}"
            )
        return position

    @traitlets.validate("match")
    def _check_match(self, proposal: Any) -> int | None:
        match: int | None = proposal["value"]
        listed = self._shown["found"]["listed"]
        if match is not None and not 0 <= match < listed:
            raise InputError(
                f"match={match} is not the index of a match that is listed", help=f"there are {listed:,}, from 0 on; None chooses none"
            )
        return match
