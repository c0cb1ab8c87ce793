"""Where the state of partitions lies: slabs and blocks that kernels work in, its bytes, and how much memory there is."""
