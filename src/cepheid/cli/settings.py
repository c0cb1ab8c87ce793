"""The options of a run, as a command has read them: apart from what uses them, so that a command's help loads nothing else."""

from __future__ import annotations

from enum import StrEnum

from cepheid.records import record

PORT = 8765
"""Where `cepheid play` listens, unless asked otherwise."""


class Engine(StrEnum):
    """The engines of `--engine`."""

    LOCAL = "local"
    SPARK = "spark"
    REFERENCE = "reference"


class NullKeys(StrEnum):
    """What happens to events with NULL in a PARTITION BY attribute."""

    DROP = "drop"
    GROUP = "group"


@record(slots=False)
class Settings:
    """The options of a run."""

    type: str | None = None
    time: str | None = None
    order: tuple[str, ...] = ()
    sort: bool = False
    null_keys: NullKeys = NullKeys.DROP
    engine: Engine = Engine.LOCAL
    separator: str | None = None
    until: str | None = None
    progress: bool = False
    match_id: str | None = None


@record(slots=False)
class Watching:
    """The options of `watch`."""

    type: str | None = None
    time: str | None = None
    order: tuple[str, ...] = ()
    lateness: str | None = None
    clock: bool = False
    null_keys: NullKeys = NullKeys.DROP
    skip_bad_lines: bool = False
