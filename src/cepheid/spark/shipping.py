"""How the work of tasks travels: as bytes, in a function that first looks at what the worker has.

Spark pickles a function by the name of its module, and a worker without that module says so with a traceback of Spark's own. A function inside
another one travels as its code: so it can run where Cepheid is missing, and say what to do. Spark tries a task that has failed as often as always.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import cloudpickle

from cepheid import kernel
from cepheid.errors import SetupError
from cepheid.spark.translation import MEMORY, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

UNCOMPILED = "CEPHEID_UNCOMPILED"
"""The variable of a worker's environment that allows an uncompiled Cepheid there, beside a compiled one on the driver."""

WORKER, THERE = "\1", "\2"
"""Places in an error's text that the worker fills in: its name, and the version that it has."""

HELP = (
    "install the same version in the Python that PYSPARK_PYTHON names on the workers",
    "or send an environment with the job: spark-submit --archives environment.tar.gz#environment, with PYSPARK_PYTHON=./environment/bin/python",
    "a wheel in --py-files does not do: Spark imports zip, egg and py files alone, and a zip cannot hold the compiled kernel",
)


def shipped(
    work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The same work as a function that travels as its code; on a worker that cannot do it, it raises what `translated` makes a SetupError.

    That is a worker without Cepheid, with another version, one that cannot load it, or with an uncompiled one where the driver has a compiled one.
    """
    from cepheid import __version__

    packed = cloudpickle.dumps(work)  # type: ignore[no-untyped-call]  # Spark's copy has no types
    version, compiled, allowed = __version__, kernel.COMPILED, UNCOMPILED
    missing = text_of(SetupError(f"the worker {WORKER} has no cepheid, and the driver has {version}", help=HELP))
    broken = text_of(SetupError(f"the worker {WORKER} cannot load its cepheid: {THERE}", help=(*HELP[:2], *MEMORY)))
    other = text_of(SetupError(f"the worker {WORKER} has cepheid {THERE}, and the driver has {version}", help=HELP))
    slow = SetupError(
        f"the worker {WORKER} has an uncompiled cepheid, 60 to 110 times slower, and the driver has a compiled one",
        help=(*HELP, f"to go on all the same: spark.executorEnv.{UNCOMPILED}=1"),
    )
    uncompiled, places = text_of(slow), (WORKER, THERE)

    # Nothing of this module may be read below: it is not there.
    def arrived(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import pickle
        import platform

        def fail(text: str, there: str = "") -> None:
            raise RuntimeError(text.replace(places[0], platform.node()).replace(places[1], there))

        try:
            from cepheid import __version__, kernel

            if __version__ != version:
                fail(other, __version__)
            if compiled and not kernel.COMPILED and os.environ.get(allowed) != "1":
                fail(uncompiled)
            arrived_work = pickle.loads(packed)  # noqa: S301 - ours, of this job
        except (ImportError, MemoryError) as error:
            if isinstance(error, ModuleNotFoundError) and error.name in {None, "cepheid"}:
                fail(missing)
            first: BaseException = error  # as of a library that does not fit into the memory that there is
            while first.__context__ is not None:
                first = first.__context__
            fail(broken, " ".join(f"{type(first).__name__} {first}".split()))
        yield from arrived_work(batches)

    return arrived
