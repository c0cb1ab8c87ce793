"""Stands in for the module `cython` where Cython is not installed: what `match.py` evaluates when it runs as plain Python."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Function = TypeVar("Function", bound="Callable[..., object]")


class _Unlocked(nullcontext[None]):
    """`with cython.nogil:` and `@cython.nogil`, neither of which does anything here."""

    def __call__(self, function: Function) -> Function:
        return function


def cfunc(function: Function) -> Function:
    """The function as it is."""
    return function


def exceptval(_value: int = 0, *, check: bool) -> Callable[[Function], Function]:  # noqa: ARG001 - as Cython has it
    """A decorator that leaves the function as it is."""
    return cfunc


compiled, nogil, inline = False, _Unlocked(), cfunc
