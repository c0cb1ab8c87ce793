"""The columns in which the events of a bucket come to the stateful operator, and what it says of each visit. Loads nothing of the engine."""

from __future__ import annotations

BUCKET, BLOB, TOLD = "bucket", "blob", "told"
"""Columns of the packed rows: the bucket of the key, its events, or what a task tells of the source's partitions; on the way out a blob has
matches. A row with both has rows of rules, and whether the bucket says which of these are refused."""

LISTENS, SAYS = b"\0", b"\1"
"""Whether it does: one bucket has to say it for all."""

SOURCE, MOMENT_READ = "$partition", "$moment"
"""Columns of the events on their way to `packing.pack`, where the source's partitions count: the partition as a number, and when the micro-batch
began."""

RULE = "$rule"
"""The only column of rules that the driver has: each is a pickled row."""

SEAL = -1
"""The bucket that every micro-batch with events visits: its state says what the other states are of."""

COUNTS = ("events", "late", "matches", "waiting", "keys", "state_bytes")
"""What a visit counts: events that came, of these too late; matches given; then what is there after it: events that wait for the watermark, keys
with state, bytes of the state."""

PARTITION_LEVELS = ("known", "partitions", "apart")
"""What a visit knows where the source's partitions count: the least time that a later event may have (microseconds), the partitions that are waited
for, and how far the greatest times of these are apart (microseconds)."""
