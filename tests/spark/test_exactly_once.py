"""Exactly once: the driver, or a Python worker, is killed at random points; the file sink holds every match once."""

from __future__ import annotations

import random
import sys

import pytest
from killed import Stream


@pytest.fixture
def kills(cases):
    return 10 if cases >= 1000 else 1


@pytest.fixture
def streams(tmp_path):
    """Makes streams, and ends those that a failed test leaves."""
    made = []

    def make(chance):
        made.append(Stream(tmp_path, chance))
        return made[-1]

    yield make
    for stream in made:
        if stream.process is not None and stream.process.poll() is None:
            stream.kill()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_killed_driver_goes_on_from_its_checkpoint_and_a_killed_worker_is_replaced(streams, kills, seed):
    """One stream, for each start of a driver takes its time: first drivers are killed, then workers of the last one. `make kills` has many."""
    chance = random.Random(f"{seed}/driver")
    stream = streams(chance)
    inside = stream.kill_drivers(kills, chance)
    sys.stdout.write(f"{kills} of the driver, {inside} inside a micro-batch\n")
    killed = stream.kill_workers(kills, chance)
    sys.stdout.write(f"{killed} of workers, {kills} or more while they had a task\n")
    stream.check()
