"""The work of tasks on workers that have no Cepheid, or another one: one error that says what to do."""

from __future__ import annotations

import functools
import subprocess
import sys

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import cepheid
from cepheid import kernel
from cepheid.errors import SetupError
from cepheid.spark import translated
from cepheid.spark.shipping import UNCOMPILED, shipped

WORKER = """
import pickle, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "cepheid":
            raise RAISED

sys.meta_path.insert(0, Missing())
work = pickle.load(sys.stdin.buffer)
try:
    list(work(iter(())))
except RuntimeError as error:
    print(error)
"""


def counted(more, batches):
    """Work of a task."""
    for batch in batches:
        yield pa.record_batch([pa.array([batch.num_rows + more])], ["rows"])


def test_work_arrives():
    work = cloudpickle.loads(cloudpickle.dumps(shipped(functools.partial(counted, 1))))
    assert [batch.to_pylist() for batch in work(iter([pa.record_batch([pa.array([1, 2])], ["x"])]))] == [[{"rows": 3}]]


@pytest.mark.parametrize(
    ("raised", "fact", "way_out"),
    [
        ("ModuleNotFoundError('..')", f"the worker .* has no cepheid, and the driver has {cepheid.__version__}", "--archives"),
        (
            "ModuleNotFoundError('No module named pyarrow', name='pyarrow')",
            "cannot load its cepheid: ModuleNotFoundError No module named pyarrow",
            "--archives",
        ),
        (
            "ImportError('libarrow.so:\\n failed to map segment')",
            "cannot load its cepheid: ImportError libarrow.so: failed to map segment",
            "spark.executor.pyspark.memory",
        ),
        ("MemoryError()", "cannot load its cepheid: MemoryError", "spark.executor.memoryOverhead"),
    ],
)
def test_a_worker_that_has_no_cepheid_or_cannot_load_it(raised, fact, way_out):
    packed = cloudpickle.dumps(shipped(functools.partial(counted, 1)))
    worker = WORKER.replace("RAISED", raised)
    done = subprocess.run([sys.executable, "-c", worker], input=packed, capture_output=True, check=True)
    with pytest.raises(SetupError, match=fact) as found, translated():
        raise RuntimeError(f"Job aborted: ..\n{done.stdout.decode()}\n\tat org.apache.spark")
    assert way_out in str(found.value)


@pytest.mark.parametrize(
    ("module", "name", "there", "fact"),
    [
        (cepheid, "__version__", "0.0.1", "has cepheid 0.0.1, and the driver has"),
        (kernel, "COMPILED", False, "has an uncompiled cepheid, 60 to 110 times slower"),
    ],
)
def test_a_worker_with_another_cepheid(monkeypatch, module, name, there, fact):
    if name == "COMPILED" and not kernel.COMPILED:
        pytest.skip("this cepheid is not compiled, as the test of the uncompiled one has it")
    work = shipped(functools.partial(counted, 1))
    monkeypatch.setattr(module, name, there)
    with pytest.raises(SetupError, match=fact), translated():
        list(work(iter(())))
    monkeypatch.setenv(UNCOMPILED, "1")
    if name == "COMPILED":
        assert list(work(iter(()))) == []


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        (
            "[STREAMING_PYTHON_RUNNER_INITIALIZATION_FAILURE] ..\nModuleNotFoundError: No module named 'cepheid'",
            "a Python that Spark starts has no",
        ),
        (
            'java.io.IOException: Cannot run program "./environment/bin/python": error=2, No such file or directory',
            "Spark cannot start the Python",
        ),
        ("Caused by: java.lang.OutOfMemoryError: Java heap space", "a JVM of Spark has used up its memory"),
        ("Traceback ..\nnumpy._core._exceptions._ArrayMemoryError: Unable to allocate 8.00 GiB", "a Python worker of Spark has used up"),
        ("Caused by: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)", "a Python worker of Spark was killed"),
    ],
)
def test_what_spark_itself_misses(said, fact):
    """The stateful operator and table functions are classes, which Spark loads by their names, and those of streams on the driver, too."""
    with pytest.raises(SetupError, match=fact), translated():
        raise RuntimeError(said)
