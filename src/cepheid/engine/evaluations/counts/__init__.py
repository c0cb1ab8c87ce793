"""COUNT(*) without the matches."""
