"""From letters to matches: one file per method, what they share, and what stands around them (trackers, absences, counts)."""
