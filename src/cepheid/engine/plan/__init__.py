"""What a query will do: the compiled query, the method that evaluates it, and what `explain` says of it."""
