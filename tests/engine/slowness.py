"""How slow this process is: with sanitized kernels (`make sanitize`) all takes some ten times as long, and addresses are reserved by the terabyte."""

from __future__ import annotations

import os

SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
FACTOR = 10 if SANITIZED else 1
"""What bounds of time are multiplied with."""
