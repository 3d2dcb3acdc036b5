"""Time and memory of a call."""

from __future__ import annotations

import functools
import gc
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from orbits.runs.cell import Outcome
from orbits.runs.deferred import deferred

do_bench = deferred("triton.testing:do_bench")
CPU_REPEATS = 5
NEEDS_GPU = "needs a CUDA device"


def outcome(metrics: dict[str, float], device: str) -> Outcome:
    """Return metrics as an outcome, with the name of the GPU or the number of CPU threads."""
    if device == "cuda":
        return Outcome(metrics=metrics, device=f"cuda: {torch.cuda.get_device_name()}")
    return Outcome(metrics=metrics, manifest={"threads": torch.get_num_threads()})


def free_memory(device: str) -> None:
    """Free memory of earlier cases on a GPU, which would be part of the next peak."""
    if device == "cuda":
        gc.collect()
        torch.cuda.empty_cache()


def times(
    call: Callable[[], Any], device: str, milliseconds: int = 100, repeats: int = CPU_REPEATS
) -> dict[str, float]:
    """Return median and 20% and 80% quantiles of the wall time of a call, seconds.

    On a GPU its own clock counts; on a CPU the one on the wall, for a call on all threads: compare
    on a quiet machine, with one thread (``OMP_NUM_THREADS=1``).

    Args:
        call: Function to time; it was called before, so that nothing is compiled any more.
        device: ``cuda`` or ``cpu``.
        milliseconds: Time to repeat the call on a GPU.
        repeats: Calls that are timed on a CPU.
    """
    if device == "cuda":
        quantiles = do_bench(call, rep=milliseconds, quantiles=[0.2, 0.5, 0.8])
        low, median, high = (x / 1e3 for x in quantiles)
    else:
        seconds = []
        for _ in range(repeats):
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
        median = statistics.median(seconds)
        low, _, _, high = statistics.quantiles(seconds, n=5)
    return {"seconds": median, "seconds_20": low, "seconds_80": high}


def peak_bytes(call: Callable[[], Any]) -> int:
    """Return the peak of allocated GPU memory during a call, bytes."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated()


def kept_bytes(call: Callable[[], Any], given: Iterable[Tensor]) -> int:
    """Return the bytes that autograd keeps for the backward pass of a call.

    Storages are counted, each once, whichever nodes keep it or views of it.

    Args:
        call: Function that is differentiated.
        given: Tensors that do not count: inputs, parameters.
    """
    kept = {}

    def hold(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage  # held, so that no other takes its place
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(hold, lambda tensor: tensor):
        call()
    for tensor in given:
        kept.pop(tensor.untyped_storage().data_ptr(), None)
    return sum(storage.nbytes() for storage in kept.values())


@functools.cache
def matrix_rate(size: int = 8192) -> float:
    """Return the measured FLOP/s of a bfloat16 matrix product."""
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * size**3 / (do_bench(lambda: a @ b, return_mode="median") / 1e3)
