"""Checks of the fused attention kernels on a GPU: their errors and their speed.

Correctness comes first, each variant against the float64 reference; then a table of times for two
minutes. One record holds both, to be sent to whoever has no such GPU. On a CPU the same path runs
in small, with what serves there.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attention import get, reference
from attention.backends import attend_spec
from attention.spec import AttnSpec
from benchmarks.cost import eager, kernel_call, timing
from orbits.runs import artefact
from orbits.runs.manifest import manifest

VARIANTS = ("lssar", "lssa", "elastic", "softmax_reweighted", "lazy", "softmax")
FLOAT32 = 1e-5
"""Largest RMS error of float32 kernels, relative to a tensor's own RMS: half a digit above what
the interpreter with a GPU's products and exponentials shows."""
TIMES_EAGER = 2.0
"""Largest error of half precision over that of the plain operations in the same type."""


@dataclass(frozen=True)
class Extent:
    """Extent of the checks and timings.

    Attributes:
        device: ``cuda`` or ``cpu``.
        backend: The backend that is checked and timed.
        floor: The backend that softmax is timed with.
        dtypes: Types of the correctness checks.
        length: Tokens of the correctness checks.
        shapes: [B, H, L, D] of the timed calls.
        dtype: Type of the timed calls.
        seconds: Time for the table; calls that it does not suffice for are left out.
    """

    device: str
    backend: str
    floor: str
    dtypes: tuple[str, ...]
    length: int
    shapes: tuple[tuple[int, int, int, int], ...]
    dtype: str
    seconds: float


GPU = Extent(
    device="cuda", backend="triton", floor="sdpa flash",
    dtypes=("float32", "bfloat16", "float16"), length=1000,
    shapes=((4, 12, 4096, 64), (4, 12, 1024, 64), (2, 12, 4096, 128)), dtype="bfloat16",
    seconds=120.0,
)  # fmt: skip
REHEARSAL = Extent(
    device="cpu", backend="auto", floor="sdpa", dtypes=("float32",), length=40,
    shapes=((1, 2, 64, 16),), dtype="float32", seconds=10.0,
)  # fmt: skip
"""Extent of a rehearsal on a CPU, where plain operations stand in for the kernels in the table."""


def check_and_keep(out: Path, rehearse: bool = False, quiet: bool = False) -> dict[str, Any]:
    """Check and time the kernels, and write the record.

    Args:
        out: The JSON file of the record.
        rehearse: On a CPU, in small.
        quiet: Say nothing on the way.

    Returns:
        The record, and its path under ``written``.
    """
    if out.exists():
        raise FileExistsError(f"{out} exists; choose another --out")
    if not rehearse and not torch.cuda.is_available():
        raise ValueError("--gpu needs a CUDA device, found 0; --gpu --cpu rehearses it in small")
    extent = REHEARSAL if rehearse else GPU

    def say(line: Mapping[str, Any]) -> Mapping[str, Any]:
        if not quiet:
            print(_line(line), flush=True)
        return line

    checks = [say(line) for line in correctness(extent)]
    calls = [say(line) for line in times(extent)]
    name, where = "cpu", "cpu"
    if extent.device == "cuda":
        name = torch.cuda.get_device_name()
        where = f"cuda: {name}"
    settings = {"variants": list(VARIANTS), "rehearsal": rehearse, **vars(extent)}
    record = {
        "device": name,
        "passed": all(line["passed"] for line in checks),
        "checks": checks,
        "calls": calls,
        "manifest": manifest(settings, device=where, seed=0, inputs={}),
    }
    artefact.save_record(out, record)
    return {**record, "written": str(out)}


def correctness(extent: Extent) -> Iterator[dict[str, Any]]:
    """Yield a line per variant and type: the largest error of the output and of every gradient.

    A kernel that fails is a line with its error; the others are checked all the same.
    """
    places = [
        (*place, queries)
        for place in itertools.product(extent.dtypes, VARIANTS)
        for queries in (extent.length, 1)
    ]
    for dtype, name, queries in places:
        line = {"check": name, "dtype": dtype, "queries": queries, "keys": extent.length}
        if dtype != "float32" and name not in eager.NAMES:
            continue  # nothing plain to compare with
        try:
            found, allowed = _errors(get(name), queries, getattr(torch, dtype), extent)
        except Exception as error:  # whatever a compiler or a driver does
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            yield {**line, "passed": False, "error": None, "reason": reason}
            continue
        yield {**line, "passed": found <= allowed, "error": found, "allowed": allowed}


def _errors(
    spec: AttnSpec, queries: int, dtype: torch.dtype, extent: Extent
) -> tuple[float, float]:
    """Return the largest error of a call, and how large it may be; a lone query has no gradient."""
    generator = torch.Generator(extent.device).manual_seed(0)

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, device=extent.device)

    q, k, v, grad = (
        random(1, 4, n, 64).to(dtype) for n in (queries, *2 * [extent.length], queries)
    )
    sizes = {"head": 4, "distance": spec.max_distance}
    shapes = {key: [sizes[d] for d in dims] for key, dims in spec.learned.items()}
    learned = {key: 1 + 0.3 * random(*shape) for key, shape in shapes.items()}
    differentiate = queries > 1

    def run(attend: Callable[..., Tensor], to: torch.dtype) -> list[Tensor]:
        numbers = {key: x.to(torch.promote_types(to, torch.float32)) for key, x in learned.items()}
        leaves = [x.to(to).requires_grad_(differentiate) for x in (q, k, v)]
        numbers = {key: x.requires_grad_(differentiate) for key, x in numbers.items()}
        out = attend(*leaves, spec, numbers)
        if not differentiate:
            return [out]
        return [out, *torch.autograd.grad(out, [*leaves, *numbers.values()], grad.to(to))]

    expected = run(reference.attend, torch.float64)

    def largest(found: list[Tensor]) -> float:
        pairs = zip(found, expected, strict=True)
        ratios = [float((a.double() - b).detach().norm() / b.detach().norm()) for a, b in pairs]
        return max(ratios) if all(x == x for x in ratios) else float("inf")

    def served(q: Tensor, k: Tensor, v: Tensor, spec: AttnSpec, numbers: Any) -> Tensor:
        return attend_spec(q, k, v, spec, numbers, extent.backend)

    ours = largest(run(served, dtype))
    if dtype == torch.float32:
        return ours, FLOAT32
    if not differentiate:  # the plain operations have no queries of their own
        return ours, TIMES_EAGER * torch.finfo(dtype).eps
    plain = run(lambda q, k, v, s, numbers: eager.attend(q, k, v, s, numbers.get("tau")), dtype)
    return ours, TIMES_EAGER * largest(plain)


def times(extent: Extent) -> Iterator[dict[str, Any]]:
    """Yield a line per call of the table; calls that no time is left for say so."""
    started = time.perf_counter()
    ours = "eager" if extent.device == "cpu" else extent.backend
    wanted = [
        (extent.floor, "softmax"),
        *((ours, name) for name in VARIANTS if name in eager.NAMES),
    ]
    for shape, mode in itertools.product(extent.shapes, ("training", "forward")):
        floor = None  # seconds of PyTorch's own kernel, by which all are divided
        for backend, name in wanted:
            line = {"call": name, "backend": backend, "shape": list(shape), "mode": mode}
            if time.perf_counter() - started > extent.seconds:
                yield {**line, "seconds": None, "reason": "no time was left"}
                continue
            try:
                measured = kernel_call.measure(
                    backend, name, shape, extent.dtype, extent.device, mode
                )
            except Exception as error:  # out of memory, or what a driver refuses
                reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
                yield {**line, "seconds": None, "reason": reason}
                timing.free_memory(extent.device)
                continue
            found: dict[str, Any] = dict(measured.metrics)
            if backend == extent.floor:
                floor = found["seconds"]
            times_floor = found["seconds"] / floor if floor else None
            yield {**line, **found, "times_floor": times_floor}


def text(made: Mapping[str, Any]) -> str:
    """Return a summary of a record in a few lines."""
    failed = [line for line in made["checks"] if not line["passed"]]
    count = f"{len(made['checks']) - len(failed)} of {len(made['checks'])} checks passed"
    return "\n".join((f"device     {made['device']}", count, f"written    {made['written']}"))


def _line(line: Mapping[str, Any]) -> str:
    if "check" in line:
        what = f"{line['check']} {line['dtype']} {line['queries']} x {line['keys']}"
        verdict = "ok  " if line["passed"] else "FAIL"
        return f"{verdict}  {what:45s} {line.get('reason') or format(line['error'], '.1e')}"
    what = f"{line['backend']} {line['call']} {line['mode']} {line['shape']}"
    took = line["seconds"]
    if took is None:
        return f"      {what:60s} {line['reason']}"
    times_floor = line["times_floor"]
    ratio = "" if times_floor is None else f"  {times_floor:5.2f}"
    return f"      {what:60s} {took * 1e3:7.3f} ms{ratio}"
