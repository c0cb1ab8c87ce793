"""The columns in which the events of a bucket come to the stateful operator, and what it says of each visit. Loads nothing of the engine."""

from __future__ import annotations

BUCKET, BLOB = "bucket", "blob"
"""Columns of the packed rows: the bucket of the key, and its events; on the way out a blob has matches."""

SEAL = -1
"""The bucket that every micro-batch with events visits: its state says what the other states are of."""

COUNTS = ("events", "late", "matches", "waiting", "keys", "state_bytes")
"""What a visit counts: events that came, of these too late; matches given; then what is there after it: events that wait for the watermark, keys
with state, bytes of the state."""
