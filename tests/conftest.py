"""Options of every test run: how many random cases, and a seed that a failure can be repeated with."""

from __future__ import annotations

import os
import secrets

import pytest

DEFAULT_CASES = 60


def pytest_configure(config: pytest.Config) -> None:
    """Fix the run's numbers once, so that the header, the fixtures and worker processes agree."""
    os.environ.setdefault("CEPHEID_CASES", str(DEFAULT_CASES))
    os.environ.setdefault("CEPHEID_SEED", str(secrets.randbelow(2**32)))
    # Hypothesis and pytest print columns; Spark's local workers must not follow a user's start-up files.
    os.environ.setdefault("PYTHONHASHSEED", "0")


def pytest_report_header(config: pytest.Config) -> str:
    return f"cepheid: CEPHEID_CASES={os.environ['CEPHEID_CASES']} CEPHEID_SEED={os.environ['CEPHEID_SEED']}"


@pytest.fixture(scope="session")
def cases() -> int:
    """How many random cases each mode of a randomized test tries (CEPHEID_CASES)."""
    return int(os.environ["CEPHEID_CASES"])


@pytest.fixture(scope="session")
def seed() -> int:
    """The seed of this run (CEPHEID_SEED); the header of the run prints it."""
    return int(os.environ["CEPHEID_SEED"])
