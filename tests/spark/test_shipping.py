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
            raise ModuleNotFoundError(f"No module named {name!r}")

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


def test_a_worker_without_cepheid():
    packed = cloudpickle.dumps(shipped(functools.partial(counted, 1)))
    done = subprocess.run([sys.executable, "-c", WORKER], input=packed, capture_output=True, check=True)
    with pytest.raises(SetupError, match=f"the worker .* has no cepheid, and the driver has {cepheid.__version__}") as raised, translated():
        raise RuntimeError(f"Job aborted: ..\n{done.stdout.decode()}\n\tat org.apache.spark")
    assert len(raised.value.help) == 3
    assert "--archives" in str(raised.value)


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
    ],
)
def test_what_spark_itself_misses(said, fact):
    """The stateful operator and table functions are classes, which Spark loads by their names, and those of streams on the driver, too."""
    with pytest.raises(SetupError, match=fact), translated():
        raise RuntimeError(said)
