"""All matches: the match graph, and the choice end by end over two of them."""
