"""Errors that cross Spark: an error that a task raised comes back as the CepheidError that it was. Imports no Spark."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cepheid import errors
from cepheid.engine.memory.process import CHOOSE
from cepheid.errors import CepheidError, InputError, NotSupportedError, SetupError, SnapshotError, Span

if TYPE_CHECKING:
    from collections.abc import Iterator


def text_of(error: CepheidError) -> str:
    """An error as the text that crosses Spark: the last part of a Python traceback."""
    return f"{type(error).__module__}.{type(error).__qualname__}: {error}"


@contextmanager
def translated() -> Iterator[None]:
    """Around an action: an error that a task raised comes back as the CepheidError that it was.

        with cepheid.spark.translated():
            matches.write.parquet("matches")

    Spark's own exception is its cause. Every other exception passes unchanged.
    """
    try:
        yield
    except CepheidError:
        raise
    except Exception as error:
        ours = cepheid_error(error)
        if ours is None:
            raise
        raise ours from error


def cepheid_error(error: BaseException) -> CepheidError | None:
    """The Cepheid error that a task raised and Spark wrapped in its own, or None if there is none."""
    message = str(error)
    found = _RAISED.search(message)
    kind = getattr(errors, found.group(1), None) if found else None
    if found is None or kind is None or RAISES in message[: found.start()]:
        return _of_spark(message)
    fact, *lines = _STATE.sub("", found.group(2)).splitlines()
    text, span = _place(lines)
    helps = []
    for line in lines if span is None else lines[2:]:
        if not line.startswith("help: "):
            break
        helps.append(line.removeprefix("help: "))
    ours: CepheidError = kind(fact, help=helps, text=text, span=span)
    return ours


RAISES = "raise_error("
"""How a plan shows the expression that raises an error. A message may end with the plan of the job, which has the texts of all errors that the job
could have raised."""

_RAISED = re.compile(r"cepheid\.errors\.(\w+): error: (.*)", re.DOTALL)
_STATE = re.compile(r" SQLSTATE: \w{5}\b.*", re.DOTALL)
"""What Spark appends to a message."""

_LINE, _CARETS = re.compile(r" *(\d+) \| (.*)"), re.compile(r"( *\| )( *)(\^+)")


def _place(lines: list[str]) -> tuple[str | None, Span | None]:
    """The text and the place of the error, from the two lines that show them (`errors.excerpt`)."""
    line, carets = (pattern.fullmatch(shown) for pattern, shown in zip((_LINE, _CARETS), [*lines, "", ""][:2], strict=True))
    if line is None or carets is None:
        return None, None
    before = "\n" * (int(line.group(1)) - 1)
    start = len(before) + len(carets.group(2))
    return before + line.group(2), Span(start, start + len(carets.group(3)))


def _of_spark(message: str) -> CepheidError | None:
    """What Spark itself says, in the user's terms, where these can be known."""
    for words, kind, fact, helps in SPARK_SAYS:
        if all(word in message for word in words):
            return kind(fact, help=helps)
    return None


MEMORY = (
    "give it more: spark.executor.memoryOverhead, and spark.executor.pyspark.memory where that is set; or fewer cores for each executor",
    "or let a task have less at once: more tasks (spark.sql.shuffle.partitions, buckets=), and hot_keys=True for a key with many events",
)
"""What helps a Python worker that has too little memory."""

SPARK_SAYS: tuple[tuple[tuple[str, ...], type[CepheidError], str, tuple[str, ...]], ...] = (
    (
        # It sorts by a column that a call's PARTITION BY adds.
        ("Sorting is not supported on streaming", "partition_by_0"),
        NotSupportedError,
        "a table function reads batch tables, and this one is streaming: Spark cannot sort a stream by the call's PARTITION BY and ORDER BY",
        ("use stream.transform(q.on(..)), which orders a stream by event time",),
    ),
    (
        # Spark 4.1 has renamed it.
        ("STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA", "transformWithStateInPandasExec"),
        SnapshotError,
        "the checkpoint is of Spark 4.0, and newer ones refuse it, for their stateful operator has another name",
        (
            "go on with Spark 4.0, or hand over: a batch with until= up to some time, and a stream with since= and a new checkpoint from there",
            "the state is the same: 'From Spark 4.0 to a newer one' in docs/operations.md says what was tried",
        ),
    ),
    (
        # How long Spark waits is no setting of it.
        ("Python worker failed to connect back",),
        SetupError,
        "a Python worker of Spark did not start within the 10 seconds that Spark waits for it",
        (
            "if the machine is busy, try again: a stream goes on from its checkpoint",
            "else look at what the worker printed to the log: PYSPARK_PYTHON has to name a Python with pyspark and cepheid",
        ),
    ),
    (
        ("java.lang.OutOfMemoryError",),
        SetupError,
        "a JVM of Spark has used up its memory",
        ("give it more: spark.executor.memory, or spark.driver.memory where the driver collects", "or have more tasks, which are smaller"),
    ),
    (
        # Of Python, NumPy or Arrow.
        ("MemoryError",),
        SetupError,
        "a Python worker of Spark has used up the memory that it may have",
        (*MEMORY, CHOOSE),
    ),
    (
        ("Python worker exited unexpectedly (crashed)",),
        SetupError,
        "a Python worker of Spark was killed, as systems and containers do where memory is used up",
        (*MEMORY, "else look at what the worker printed to the log of its executor"),
    ),
    (
        ("incompatible Protobuf Gencode/Runtime versions",),
        SetupError,
        "a Python worker has a protobuf that is too old for this Spark",
        ("on the driver and all workers: pip install --upgrade protobuf",),
    ),
    (
        # Where Spark itself loads a class of ours: the stateful operator of a stream, a table function, a source.
        ("No module named 'cepheid",),
        SetupError,
        "a Python that Spark starts has no cepheid",
        (
            'on one machine: export PYSPARK_PYTHON="$(which python)" before the session starts, or Spark takes the python3 of the PATH',
            "install the same version in the Python that PYSPARK_PYTHON names, on the driver and all workers",
            "or send an environment with the job, see docs/spark.md, On a cluster: spark-submit --archives environment.tar.gz#environment",
        ),
    ),
    (
        ("No module named 'pyarrow",),
        SetupError,
        "a Python that Spark starts has no pyarrow",
        (
            'on one machine: export PYSPARK_PYTHON="$(which python)" before the session starts, or Spark takes the python3 of the PATH',
            "else have pyarrow, pandas and the same cepheid in the Python that PYSPARK_PYTHON names, on the driver and all workers",
        ),
    ),
    (
        ("DUPLICATED_METRICS_NAME", "cepheid."),
        NotSupportedError,
        "one streaming query has the matches of two `on`, and Spark counts what each has dropped under one name",
        (
            "give both queries to one: cepheid.spark.on({..}), whose output says which query each match is of",
            "or write the matches of the first to a table or a topic, and read them there with another streaming query",
        ),
    ),
    (
        ("Cannot run program", "No such file or directory"),
        SetupError,
        "Spark cannot start the Python that PYSPARK_PYTHON names: there is no such file",
        (
            "a stream starts it on the driver, too: unpack the archive beside the job, as docs/spark.md has it, On a cluster",
            "or name a Python that is there: PYSPARK_PYTHON, or spark.pyspark.python",
        ),
    ),
    (
        # A table function that reads single rows is called with values of Python.
        ("in fromInternal", " is out of range"),
        InputError,
        "a row has a date or time that Python cannot hold: it has the years 1 to 9999",
        ('leave such rows out in the call, TABLE(SELECT .. WHERE ..), or register the query, with bad_time="drop"',),
    ),
)
"""Words of Spark's message, and the error that these stand for."""
