"""What stands around an evaluation: values and spellings of letters, trackers, and what negated patterns have come to."""
