"""What the speed benchmarks of models share: time, memory, ratios, and lines as they come."""

from __future__ import annotations

import functools
import gc
import json
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from orbits import artefacts
from orbits.manifest import manifest

CPU_REPEATS = 5
Row = dict[str, Any]
Case = tuple[Row, Callable[[], Row] | str]
"""What is measured, as the start of a row, and what measures it, or why it is skipped."""
NEEDS_GPU = "needs a CUDA device"


def measure_all(
    benchmark: str,
    cases: Iterable[Case],
    bases: Callable[[Row, list[Row]], Mapping[str, Row]],
    config: dict[str, Any],
    deadline: float,
    device: str,
    out: Path | None,
) -> list[Row]:
    """Measure cases until the deadline and return their rows; each is written when it is done.

    Args:
        benchmark: Name of the benchmark, in every line.
        cases: What to measure; what others are divided by comes before them.
        bases: Maps a measured row and the measured rows so far, itself the last, to the rows that
            it is divided by, see :func:`ratios`.
        config: The settings of the run, for the manifest.
        deadline: ``time.monotonic`` after which nothing is started.
        device: ``cuda`` or ``cpu``.
        out: File of JSON lines, or None.
    """
    name, peak = "cpu", None
    if device == "cuda":
        name, peak = f"cuda: {torch.cuda.get_device_name()}", _matrix_rate()
    else:
        config = {**config, "threads": torch.get_num_threads()}
    record = manifest(config, seed=0, device=name)
    rows: list[Row] = []
    for case, measure in cases:
        row = {"benchmark": benchmark, **case, "device": device, "status": "measured"}
        if isinstance(measure, str):
            row["status"] = f"skipped: {measure}"
        elif time.monotonic() > deadline:
            row["status"] = "skipped: the time was up"
        else:
            try:
                row |= measure()
            except torch.OutOfMemoryError:
                row["status"] = "failed: out of memory"
            except Exception as error:  # a compiler's errors have no common kind
                row["status"] = f"failed: {' '.join(str(error).split())[:200]}"
        rows.append(row)
        if row["status"] == "measured":
            if peak and "flops_per_s" in row:
                row |= {"peak_flops_per_s": peak, "roofline": row["flops_per_s"] / peak}
            row |= ratios(row, bases(row, [x for x in rows if x["status"] == "measured"]))
        print(" ".join(str(value) for value in case.values()), row["status"], flush=True)
        if out:
            text = "".join(json.dumps({**row, "manifest": record}) + "\n" for row in rows)
            artefacts.write_bytes(out, text.encode())
        if device == "cuda":
            gc.collect()  # a model in a cycle would be part of the next one's peak
            torch.cuda.empty_cache()
    return rows


def ratios(row: Row, bases: Mapping[str, Row]) -> dict[str, float]:
    """Return a row's seconds over those of each base (``x_NAME``) and bytes (``bytes_x_NAME``).

    Bytes are left out where the base takes none.
    """
    found = {f"x_{name}": row["seconds"] / base["seconds"] for name, base in bases.items()}
    return found | {
        f"bytes_x_{name}": row["bytes"] / base["bytes"]
        for name, base in bases.items()
        if base["bytes"]
    }


def exit_code(rows: Iterable[Row], ours: str) -> int:
    """Return 1 if a row of our kernels failed, and print which; else 0. Skipped is not failed.

    Args:
        rows: Those of a run.
        ours: The column that says ``triton`` in them.
    """
    failed = [x for x in rows if x[ours] == "triton" and x["status"].startswith("failed")]
    for row in failed:
        print(*row.values())
    return 1 if failed else 0


def times(call: Callable[[], Any], device: str, milliseconds: int = 100) -> dict[str, float]:
    """Return median and quantiles of the seconds that pass during a call.

    On a GPU its own clock counts; on a CPU the one on the wall, for a call on all threads: compare
    on a quiet machine, with one thread (``OMP_NUM_THREADS=1``).

    Args:
        call: What to time; it was called before, so that nothing is compiled any more.
        device: ``cuda`` or ``cpu``.
        milliseconds: How long to repeat it on a GPU.
    """
    if device == "cuda":
        from triton.testing import do_bench

        found = do_bench(call, rep=milliseconds, quantiles=[0.2, 0.5, 0.8])
        low, median, high = (x / 1e3 for x in found)
    else:
        seconds = []
        for _ in range(CPU_REPEATS):
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
        median = statistics.median(seconds)
        low, _, _, high = statistics.quantiles(seconds, n=5)
    return {"seconds": median, "seconds_20": low, "seconds_80": high}


def peak_bytes(call: Callable[[], Any]) -> int:
    """Return the most bytes that are allocated on the GPU at once during a call, all included."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated()


def kept_bytes(call: Callable[[], Any], given: Iterable[Tensor]) -> int:
    """Return the bytes that autograd keeps for the backward pass of a call.

    Storages are counted, each once, whichever nodes keep it or views of it.

    Args:
        call: What is differentiated.
        given: What is there anyway and does not count: inputs, parameters.
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
def _matrix_rate(size: int = 8192) -> float:
    """Return the measured floating-point operations per second of a bfloat16 matrix product."""
    from triton.testing import do_bench

    a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * size**3 / (do_bench(lambda: a @ b, return_mode="median") / 1e3)
