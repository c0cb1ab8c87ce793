"""What the state of a recognizer is of: its query over its schema, and the options that change what the state means.

Comes in: the fingerprint of a query, and options. Goes out: the fingerprint that a snapshot carries, and the error where it carries another one.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

from cepheid.errors import SnapshotError
from cepheid.logical.describe import describe_longest
from cepheid.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

_OPTIONS = struct.Struct("<?q")  # whether NULL is a key, the lateness or `_NONE`
_NONE = -1
_AGAIN = "or start again without it"

MOST_CHANGES = 3
"""Attributes that a message names."""


@record
class Identity:
    """Whose a state is.

    meaning: the fingerprint of the query, its arguments and its schema. attributes: of the schema, name -> type in words. group_nulls: whether NULL
    is a key. lateness: in steps of the time column, whose unit is `unit` (nanoseconds, None for numbers); None without one. ties: columns that order
    events of equal time.
    """

    meaning: bytes
    attributes: Mapping[str, str]
    group_nulls: bool
    lateness: int | None
    ties: tuple[str, ...]
    unit: int | None

    @property
    def fingerprint(self) -> bytes:
        """What a snapshot carries."""
        return self.meaning + _OPTIONS.pack(self.group_nulls, self._late) + self._order

    @property
    def _late(self) -> int:
        return _NONE if self.lateness is None else self.lateness

    @property
    def _order(self) -> bytes:
        return "".join(f"{len(name)} {name}" for name in self.ties).encode()

    @property
    def schema(self) -> bytes:
        """The section of a snapshot that says over which schema it was made."""
        return json.dumps(dict(self.attributes)).encode()

    def other(self, stored: bytes, sections: Mapping[str, Any]) -> SnapshotError:
        """The error for a snapshot that carries another fingerprint: which options differ, and whether the query or the schema does."""
        at = len(self.meaning)
        if len(stored) < at + _OPTIONS.size:
            return SnapshotError("the snapshot is not that of a recognizer", help="give the bytes that `snapshot()` returned")
        options = " and ".join(self._differing(stored[at:]))
        if stored[:at] == self.meaning:
            fact, help_ = f"the snapshot was made with {options}, by the same query over the same schema", f"restore it with {options}"
        else:
            fact = f"the snapshot was made {self._by(sections)}{options and f', and with {options}'}"
            help_ = "restore it with the same query and arguments, over columns of the same names and types; " + (
                f"and with {options}" if options else "the options are the same (lateness, order, null_keys)"
            )
        return SnapshotError(fact, help=(help_, _AGAIN))

    def _by(self, sections: Mapping[str, Any]) -> str:
        """Whose snapshot it is, as far as it says."""
        try:
            known = {str(name): str(kind) for name, kind in json.loads(bytes(sections["schema"])).items()}
        except (KeyError, ValueError, AttributeError, RecursionError):  # it is of an earlier version, or forged
            return "by another query, or over another schema"
        if list(known.items()) == list(self.attributes.items()):
            return "by another query, or with another type or time column, over the same schema"
        names = [name for name in {**known, **self.attributes} if known.get(name) != self.attributes.get(name)]
        changes = [_change(name, known.get(name), self.attributes.get(name)) for name in names[:MOST_CHANGES]]
        changes += [f"and {len(names) - MOST_CHANGES} more"] * (len(names) > MOST_CHANGES)
        return f"over another schema: {', '.join(changes) or 'the attributes had another order'}"

    def _differing(self, stored: bytes) -> list[str]:
        """The options in the rest of a fingerprint that are others here."""
        group_nulls, late = _OPTIONS.unpack_from(stored)
        order = stored[_OPTIONS.size :]
        found = []
        if group_nulls != self.group_nulls:
            found.append(f"null_keys={'group' if group_nulls else 'drop'!r}")
        if late != self._late:
            found.append("no lateness" if late == _NONE else f"a lateness of {describe_longest(late, self.unit)}")
        if order != self._order:
            found.append(f"order={_names(order)!r}" if order else "no order")
        return found


def _change(name: str, was: str | None, now: str | None) -> str:
    """What has changed in an attribute. was, now: its type; None where it is not there."""
    if was is None:
        return f"`{name}` was not there"
    return f"`{name}` was {was}, and is {now or 'not there'}"


def _names(order: bytes) -> list[str]:
    """The columns of an order, each with its length in front."""
    found, text = [], order.decode(errors="replace")
    while text:
        length, _, text = text.partition(" ")
        if not length.isdecimal():
            break  # of other bytes
        found.append(text[: int(length)])
        text = text[int(length) :]
    return found
