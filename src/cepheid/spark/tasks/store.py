"""Where the pages of a bucket are: what `pages` and `deadlines` ask of it. Imports nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable


class Store(Protocol):
    """Where the pages of a bucket are; those with negative numbers are no pages, but `Deadlines`."""

    def get(self, number: int) -> bytes | None:
        """A page, None where there is none."""

    def put(self, number: int, page: bytes) -> None:
        """Keep a page."""

    def remove(self, number: int) -> None:
        """Forget a page, if there is one."""

    def clear(self) -> None:
        """Forget all of them."""

    def all(self) -> Iterable[tuple[int, bytes]]:
        """All of them with their numbers, in any order."""
