"""Complex event recognition with a written meaning and a stated cost, on Arrow data and on Apache Spark."""

from __future__ import annotations

__version__ = "0.1.0"
