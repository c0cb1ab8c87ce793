"""Stands in for the module `cython` where Cython is not installed: what `match.py` evaluates when it runs as plain Python."""

from contextlib import nullcontext

compiled, nogil = False, nullcontext()
