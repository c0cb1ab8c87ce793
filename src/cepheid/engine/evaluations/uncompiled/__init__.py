"""Patterns that compare events, in plain Python: what the kernel of guards does not know."""
