"""Patterns that compare events, in the kernel of guards: its tables, its runs, and the methods of all of them."""
