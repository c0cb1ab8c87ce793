"""What goes out: matches, their measures and their counts."""
