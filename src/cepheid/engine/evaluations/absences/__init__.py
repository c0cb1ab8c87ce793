"""NOT FOLLOWED BY: events that wait, and matches that wait."""
