"""What the state of a recognizer is of: its query over its schema, and the options that change what the state means.

Comes in: the fingerprint of a query, and options. Goes out: the fingerprint that a snapshot carries, and the error where it carries another one.
"""

from __future__ import annotations

import struct

from cepheid.errors import SnapshotError
from cepheid.logical.describe import describe_longest
from cepheid.records import record

_OPTIONS = struct.Struct("<?q")  # whether NULL is a key, the lateness or `_NONE`
_NONE = -1
_AGAIN = "or start again without it"


@record
class Identity:
    """Whose a state is.

    meaning: the fingerprint of the query, its arguments and its schema. group_nulls: whether NULL is a key. lateness: in steps of the time column,
    whose unit is `unit` (nanoseconds, None for numbers); None without one. ties: columns that order events of equal time.
    """

    meaning: bytes
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

    def other(self, stored: bytes) -> SnapshotError:
        """The error for a snapshot that carries another fingerprint: which options differ, and whether the query or the schema does."""
        at = len(self.meaning)
        if len(stored) < at + _OPTIONS.size:
            return SnapshotError("the snapshot is not that of a recognizer", help="give the bytes that `snapshot()` returned")
        options = " and ".join(self._differing(stored[at:]))
        if stored[:at] == self.meaning:
            fact, help_ = f"the snapshot was made with {options}, by the same query over the same schema", f"restore it with {options}"
        else:
            fact = f"the snapshot was made by another query, or over another schema{options and f', and with {options}'}"
            help_ = "restore it with the same query and arguments, over columns of the same names and types; " + (
                f"and with {options}" if options else "the options are the same (lateness, order, null_keys)"
            )
        return SnapshotError(fact, help=(help_, _AGAIN))

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
