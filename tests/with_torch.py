"""Settings of tests that use torch; a package's conftest imports this before the package."""

import os

import torch

from worldmodel.training.allocator import keep_freed_memory

# Without a GPU the Triton kernels run under the interpreter, which is chosen before they load.
os.environ.setdefault("TRITON_INTERPRET", "0" if torch.cuda.is_available() else "1")

keep_freed_memory()
