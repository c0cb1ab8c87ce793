"""Errors that cross Spark: what a task raised comes back as the CepheidError it was."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cepheid import errors
from cepheid.errors import CepheidError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def translated() -> Iterator[None]:
    """Around an action: an error that a task raised comes back as the CepheidError it was.

        with cepheid.spark.translated():
            matches.write.parquet("matches")

    Spark's own exception stays as its cause; every other exception passes.
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
    """The error of ours that a task raised and Spark wrapped in its own, or None where there is none."""
    found = _RAISED.search(str(error))
    kind = getattr(errors, found.group(1), None) if found else None
    if found is None or kind is None:
        return None
    fact, *lines = found.group(2).splitlines()
    helps = []
    for line in lines:
        if not line.startswith("help: "):
            break
        helps.append(line.removeprefix("help: "))
    ours: CepheidError = kind(fact, help=helps)
    return ours


_RAISED = re.compile(r"cepheid\.errors\.(\w+): error: (.*)", re.DOTALL)
