"""A streaming source that is read in pages: the part of Spark's interface for Python sources that differs between its versions.

Comes in: a source that knows its newest offset, where a micro-batch from a given offset ends, and the tasks between two offsets. Goes out: a
stream reader for every supported Spark. Offsets are exact: what a micro-batch holds depends on its two offsets alone, so that a batch which is
run again after a failure has the same rows. Runs in Spark's Python workers.

From Spark 4.2 on a source is told where a micro-batch starts, so it can limit it. Before, Spark asks for the newest offset and tells nothing: a
micro-batch is then everything there is, and an option that asks for less is an error (`check_pages`), not an option without effect.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from cepheid.errors import NotSupportedError
from cepheid.spark.versions import PAGES, ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

if TYPE_CHECKING:
    from collections.abc import Sequence

Offset = dict[str, Any]
"""A place in the source, as Spark stores it: JSON."""


class Paged(DataSourceStreamReader):
    """What a paged source says of itself."""

    rows_per_batch: int | None = None
    """About how many rows a micro-batch has at most; None: no limit."""

    available_now = False
    """Whether the query ends where the source ended when it started."""

    @abstractmethod
    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Where a stream without a checkpoint starts."""

    @abstractmethod
    def newest(self) -> Offset:
        """Where the source ends now."""

    @abstractmethod
    def page(self, start: Offset, newest: Offset) -> Offset:
        """Where the micro-batch from `start` ends: at `start` when there is nothing to read, never behind `newest`."""

    @abstractmethod
    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The tasks that read what lies between two offsets."""


if PAGES:

    class PagedReader(Paged, SupportsTriggerAvailableNow):
        """A source whose micro-batches have at most `rows_per_batch` rows, also with the trigger availableNow."""

        _target: Offset | None = None
        """With the trigger availableNow: where the source ended when the query started."""

        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
            """The limit of a micro-batch."""
            return ReadAllAvailable() if self.rows_per_batch is None else ReadMaxRows(self.rows_per_batch)

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
            """Fix where the query will end."""
            self._target = self.newest()
            self.available_now = True

        def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
            """Where the micro-batch from `start` ends."""
            newest = self.newest() if self._target is None else self._target
            return newest if isinstance(limit, ReadAllAvailable) else self.page(start, newest)

        def reportLatestOffset(self) -> Offset:  # noqa: N802 - Spark's name
            """Where the source ends now, for the progress of the query."""
            return self.newest()

else:

    class PagedReader(Paged):  # type: ignore[no-redef]
        """A source whose micro-batches are everything there is."""

        def latestOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802 - Spark's name
            """Where the micro-batch ends."""
            return self.newest()


def check_pages(option: str) -> None:
    """Raise NotSupportedError for an option that limits micro-batches where Spark cannot limit them."""
    if not PAGES:
        from pyspark import __version__

        raise NotSupportedError(
            f"{option} limits micro-batches, and Spark {__version__} does not tell a Python source where they start",
            help=("use Spark 4.2 or later", f"or leave {option} out: a micro-batch is then everything there is"),
        )
