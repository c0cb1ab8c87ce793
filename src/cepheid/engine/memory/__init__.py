"""Where the state of partitions lies: one store, of slabs or blocks that kernels work in; its bytes and their checks; how much memory there is."""
