"""Every snapshot that a version has written loads for ever, and goes on with the right matches. `make.py` writes those of a new version."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import zlib

import pyarrow as pa
import pytest
from upgrade_cases import BUCKETS, HERE, QUERIES, is_bucket, read, recognizer, rest, rows_of, stored, table_of

import cepheid
from cepheid.engine.memory import container as state
from cepheid.errors import SnapshotError

EMBEDDED = [name for name in stored() if not is_bucket(name)]
LARGEST = 50_000
"""Bytes of a stored file: it is in the repository for ever."""


def test_this_version_has_its_snapshots():
    names = {name.split("/")[1] for name in stored() if name.startswith(f"{cepheid.__version__}/")}
    assert names == {*QUERIES, *BUCKETS}, "run tests/upgrade/make.py"
    assert {path.stem for path in HERE.glob("*/*.bin")} == {name.split("/")[1] for name in stored()}
    sizes = [path.stat().st_size for path in HERE.glob("[0-9]*/*.*")]  # Python's own bytes of the tests may lie beside them
    assert sizes
    assert max(sizes) <= LARGEST


@pytest.mark.parametrize("engine", [None, "python"])
@pytest.mark.parametrize("name", EMBEDDED)
def test_a_stored_snapshot_goes_on(name, engine):
    case, data = read(name)
    run = recognizer(case, snapshot=data, engine=engine)
    assert run.null_keys == case["null_keys"]
    assert rest(run, case) == case["expected"]


@pytest.mark.parametrize("name", EMBEDDED)
def test_a_snapshot_of_now_is_read_as_the_stored_one(name):
    case, _ = read(name)
    run = recognizer(case)
    run.push(table_of(case, case["before"]))
    assert rest(recognizer(case, snapshot=run.snapshot()), case) == case["expected"]


LOADS = """
import sys
from upgrade_cases import read, recognizer, rest
for name in sys.argv[1:]:
    case, data = read(name)
    assert rest(recognizer(case, snapshot=data), case) == case["expected"], name
"""


@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_another_process_reads_them_whatever_its_hash_seed(hash_seed):
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(HERE)}
    done = subprocess.run([sys.executable, "-c", LOADS, *EMBEDDED], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def resealed(data, **header):
    """The snapshot with another header, and a checksum that fits."""
    magic, version, *rest_of = state._HEADER.unpack_from(data)
    body = state._HEADER.pack(magic, header.get("version", version), *rest_of) + data[state._HEADER.size : -4]
    return body + struct.pack("<I", zlib.crc32(body))


@pytest.mark.parametrize("name", EMBEDDED)
def test_what_the_header_says(name):
    _, data = read(name)
    magic, version, _, sections, _ = state._HEADER.unpack_from(data)
    assert magic == state.MAGIC
    assert version == state.VERSION
    assert sections > 3
    assert resealed(data) == data


def refused(run, data, message):
    """The bytes are refused, and the recognizer is as it was before: it gives what it would have given."""
    before = run.snapshot()
    with pytest.raises(SnapshotError, match=message) as error:
        run.restore(data)
    assert run.snapshot() == before
    return error.value


@pytest.mark.parametrize("version", [1, state.VERSION - 1, state.VERSION + 1, state.VERSION + 255])
def test_another_format_is_refused(version):
    for name in EMBEDDED:
        case, data = read(name)
        error = refused(recognizer(case), resealed(data, version=version), f"format version {version}, and this version of Cepheid reads")
        assert error.help == ("start again without it", "or go on with the version of Cepheid that wrote it")


def test_the_snapshot_of_another_query_is_refused():
    cases = {name: read(name) for name in EMBEDDED}
    for name, (case, _) in cases.items():
        run = recognizer(case)
        run.push(table_of(case, case["before"]))
        for other, (_, data) in cases.items():
            if other != name:
                refused(run, data, "by another query, or ")
        assert rest(run, case) == case["expected"]


@pytest.mark.parametrize("change", [{"v": pa.int32()}, {"s": pa.large_string()}, {"more": pa.int64()}])
def test_another_schema_is_refused(change):
    for name in EMBEDDED:
        case, data = read(name)
        schema = table_of(case, case["before"]).schema
        kinds = dict(zip(schema.names, schema.types, strict=True)) | change
        run = cepheid.query(*case["queries"].values()).recognizer(pa.schema(list(kinds.items())), lateness=case["lateness"])
        refused(run, data, "over another schema")


def test_another_lateness_is_refused():
    case, data = read(next(name for name in EMBEDDED if name.endswith("/next")))
    refused(recognizer(case | {"lateness": "1s"}), data, "made with no lateness, by the same query over the same schema")
    assert rows_of(recognizer(case).restore(data).flush()) == []
