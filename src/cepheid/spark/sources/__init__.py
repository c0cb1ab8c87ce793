"""Streaming sources: a table replayed, and Kafka."""
