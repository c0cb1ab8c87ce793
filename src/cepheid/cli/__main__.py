"""`python -m cepheid.cli`, where the entry point is not on the PATH."""

from __future__ import annotations

from cepheid.cli import main

if __name__ == "__main__":
    main()
