"""An interrupt that foreign code loses comes again; one that is being handled does not."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from cepheid.cli.interrupts import persistent

def wait():
    end = time.monotonic() + 20
    while time.monotonic() < end:
        pass
    print("never interrupted")

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    wait()
"""

LOST = {
    "a bare except": """
with persistent():
    try:
        interrupt()
    except:
        pass
    for _ in range(2):
        try:
            wait()
        except KeyboardInterrupt:
            print("again")
""",
    "a finalizer": """
class Finalized:
    def __del__(self):
        interrupt()
        print("again")
sys.unraisablehook = lambda ignored: print("ignored")
with persistent():
    try:
        Finalized()
        wait()
    except KeyboardInterrupt:
        print("again")
    try:
        wait()
    except KeyboardInterrupt:
        print("again")
""",
}

HANDLED = {
    "finally": """
try:
    with persistent():
        try:
            interrupt()
        finally:
            time.sleep(0.5)
            print("cleaned")
except KeyboardInterrupt:
    print("interrupted")
time.sleep(0.3)
""",
    "another exception": """
class Cleaning:
    def __enter__(self): pass
    def __exit__(self, *_):
        time.sleep(0.3)
        raise SystemExit(3)
try:
    with persistent():
        try:
            with Cleaning():
                interrupt()
        finally:
            time.sleep(0.3)
            print("cleaned")
except SystemExit:
    print("interrupted")
""",
}


def printed(code: str) -> list[str]:
    return subprocess.run([sys.executable, "-c", BEGIN + code], capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("name", LOST)
def test_an_interrupt_that_is_lost_comes_again(name: str) -> None:
    assert printed(LOST[name]) == (["again", "again"] if name == "a bare except" else ["ignored", "again", "again"])


@pytest.mark.parametrize("name", HANDLED)
def test_what_cleans_up_is_not_interrupted(name: str) -> None:
    assert printed(HANDLED[name]) == ["cleaned", "interrupted"]


def test_a_process_that_ignores_interrupts_still_does() -> None:
    code = "signal.signal(signal.SIGINT, signal.SIG_IGN)\nwith persistent():\n    os.kill(os.getpid(), signal.SIGINT)\nprint('ignored')"
    assert printed(code) == ["ignored"]
