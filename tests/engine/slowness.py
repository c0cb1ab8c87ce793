"""Bounds of time, and how slow this process is: sanitized kernels (`make sanitize`) take ten times as long and reserve addresses by the terabyte."""

from __future__ import annotations

import gc
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
FACTOR = 10 if SANITIZED else 1
"""What bounds of time are multiplied with."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What is done here takes less time than that: of the processor, as the machine may be busy, and without walking the heap of other tests."""
    gc.freeze()
    begin = time.process_time()
    try:
        yield
        taken = time.process_time() - begin
    finally:
        gc.unfreeze()
    assert taken < seconds * FACTOR, f"{taken:.2f} s"
