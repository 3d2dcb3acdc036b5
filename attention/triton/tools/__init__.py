"""Commands for the kernels: ``aot`` builds them without a GPU, ``tune`` measures tiles on one."""
