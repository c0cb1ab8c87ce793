"""How a query will run: the compiled query, the method that evaluates it, and the text of `explain`."""
