"""The input: streams as Arrow tables, times, keys, partitions, order, and the events that are kept for matches."""
