"""Recognition itself: over a whole table, over batches, incrementally, and by the definition."""
