"""The benchmarks: they tie the other packages together; nothing imports them."""
