"""What tests share: how Triton's kernels run, and how many threads a worker takes."""

import os

import torch

from worldmodel.allocator import keep_freed_memory

# Without a GPU the Triton kernels run under the interpreter, which is chosen before they load.
os.environ.setdefault("TRITON_INTERPRET", "0" if torch.cuda.is_available() else "1")

keep_freed_memory()

if os.environ.get("PYTEST_XDIST_WORKER"):
    # Workers share the cores; threads of each on all of them would wait for one another.
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # for programs that tests start
    torch.set_num_threads(1)
