"""What runs inside Spark's tasks, on workers: no sessions and no plans."""
