"""The rule `absence`: NOT FOLLOWED BY moves out of the FILTER, WITHIN and UNLESS around it.

All four decide about each match alone, so their order does not matter. When the absences are outermost, they are separate from the pattern whose
matches they veto.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from cepheid.logical import plan

if TYPE_CHECKING:
    from cepheid.logical.plan import Pattern


def outermost(pattern: Pattern) -> Pattern:
    """The pattern with every NOT FOLLOWED BY outside; the same matches, at the same times. Linear."""
    body, absences = take_out(pattern)
    moved = body
    for absence in absences:
        moved = dataclasses.replace(absence, pattern=moved)
    return pattern if moved == pattern else moved


def take_out(pattern: Pattern) -> tuple[Pattern, tuple[plan.Absence, ...]]:
    """The pattern without its absences, and these, the innermost first."""
    if isinstance(pattern, plan.Absence):
        body, absences = take_out(pattern.pattern)
        return body, (*absences, pattern)
    if isinstance(pattern, plan.Filter | plan.Within | plan.WithinEvents | plan.Unless):
        body, absences = take_out(pattern.pattern)
        return (dataclasses.replace(pattern, pattern=body) if absences else pattern), absences
    return pattern, ()
