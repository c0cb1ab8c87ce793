"""The examples of the pages on Spark run, with the session of the tests, and print what stands below them."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("page", "number"), [("spark.md", 10), ("sources.md", 3), pytest.param("streaming.md", 7, marks=pytest.mark.slow)])
def test_the_pages_on_spark(spark, page, number):
    namespace = {"spark": spark}
    blocks = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    assert len(blocks) >= number
    for code, expected in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        if expected:
            assert printed.getvalue() == expected
