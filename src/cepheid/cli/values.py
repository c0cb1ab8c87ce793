"""Values of options, read from their text. What is wrong with one is said here: the words of the parser of the command line are not ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import typer

from cepheid.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable
    from enum import StrEnum

DIGITS = 18
"""Of the longest number that an option takes."""

Choice = TypeVar("Choice", bound="StrEnum")


def one_of(choices: type[Choice]) -> Callable[[str], Choice]:
    """What reads one of a few words."""

    def read(text: str) -> Choice:
        if text in list(choices):
            return choices(text)
        known = ", ".join(choices)
        near = "".join(f"; {line}" for line in did_you_mean(text, list(choices), quote=""))
        raise typer.BadParameter(f"{text} is none of {known}{near}")

    return read


def number(least: int, most: int | None = None) -> Callable[[str], int]:
    """What reads a whole number, from `least` up to `most`."""

    def read(text: str) -> int:
        # A default comes in here as it is; a longer number is none that Python reads, or that anybody means.
        found = int(text) if str(text).isdecimal() and len(str(text)) <= DIGITS else None
        if found is None or found < least or (most is not None and found > most):
            raise typer.BadParameter(f"{text} is not a whole number, {least}{' or more' if most is None else f' to {most:,}'}")
        return found

    return read


def separator(text: str) -> str:
    """What reads the separator of CSV."""
    if len(text) == 1 and text.isascii() and text not in '\r\n"':
        return text
    if text.upper() in ("TAB", "\\T"):
        return "\t"
    raise typer.BadParameter("a separator is one ASCII character (no quote, no line end), or TAB")
