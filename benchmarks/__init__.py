"""The benchmarks: they join the other packages; nothing but ``orrery`` imports them."""
