"""Text to syntax tree and back."""

from __future__ import annotations

from cepheid.language.parser import parse, parse_condition, parse_pattern, read_query

__all__ = ["parse", "parse_condition", "parse_pattern", "read_query"]
