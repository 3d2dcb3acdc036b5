"""The cells of the study ``kernels``: each times one call of an attention kernel."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from attention import get
from attention.backends import BACKENDS
from attention.spec import AttnSpec
from benchmarks.cost import eager, timing
from benchmarks.cost.kernels import FLOORS, MODES, OURS, WANTED, Kernels, KernelSettings
from orbits.runs.cell import Cell, Outcome, leave_out
from orbits.runs.result import Case

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def cells(study: Kernels, settings: KernelSettings) -> Iterator[Cell]:
    """Yield a cell per backend, variant, shape and mode."""
    for name in settings.attention:
        if name not in eager.NAMES:
            known = ", ".join(eager.NAMES)
            raise ValueError(f"{name!r} has no plain implementation; choose from {known}")
    wanted = sorted(settings.lengths, key=lambda length: abs(length - WANTED))
    places = [
        (*shape, mode)
        for shape, mode in itertools.product(itertools.product(wanted, settings.head_dims), MODES)
    ]
    for place in places:
        for backend in FLOORS[settings.device]:
            yield _cell(settings, backend, "softmax", *place, None)
        for variant in settings.attention:
            yield _cell(settings, OURS[settings.device], variant, *place, None)
    rest = ("flex", "compiled") if settings.device == "cuda" else ("triton", "flex", "compiled")
    for backends in (("eager",), rest):
        for place in places:
            for backend, variant in itertools.product(backends, settings.attention):
                reason = _left_out(backend, place[0], wanted[0])
                yield _cell(settings, backend, variant, *place, reason)


def _cell(
    settings: KernelSettings,
    backend: str,
    variant: str,
    length: int,
    head_dim: int,
    mode: str,
    reason: str | None,
) -> Cell:
    batch = max(1, settings.tokens // length)
    setting = {
        "backend": backend, "length": length, "head_dim": head_dim, "mode": mode,
        "batch": batch, "heads": settings.heads, "dtype": settings.dtype,
    }  # fmt: skip
    case = Case("kernels", "timing", variant, setting=setting)
    if settings.device == "cpu" and backend not in ("sdpa", "blocked", "eager"):
        reason = timing.NEEDS_GPU
    elif backend == "blocked":
        like = torch.empty(1, dtype=getattr(torch, settings.dtype)).expand(1, 1, length, head_dim)
        reason = BACKENDS[backend].refuses(get(variant), like, like)
    if reason is not None:
        return Cell(leave_out, case, {"why": reason})
    arguments = {
        "backend": backend, "variant": variant, "mode": mode, "device": settings.device,
        "shape": [batch, settings.heads, length, head_dim], "dtype": settings.dtype,
    }  # fmt: skip
    return Cell(measure, case, arguments)


def _left_out(backend: str, length: int, wanted: int) -> str | None:
    """Return why a backend is not measured at a length, or None."""
    if backend != "flex" and length > WANTED:
        return "O(L^2) memory"
    if backend != "eager" and length != wanted:
        return "a minute to compile; one length"
    return None


def measure(
    backend: str, variant: str, shape: Sequence[int], dtype: str, device: str, mode: str
) -> Outcome:
    """Time a call of an attention kernel.

    Args:
        backend: A key of :data:`benchmarks.cost.kernels.BACKENDS`.
        variant: A name of the catalogue.
        shape: [B, H, L, D] of q, k and v.
        dtype: Type of the tensors, for example ``bfloat16``.
        device: ``cuda`` or ``cpu``.
        mode: One of :data:`benchmarks.cost.kernels.MODES`.

    Returns:
        ``seconds`` with quantiles, see :func:`timing.times`; ``bytes``: on a GPU the peak above
        the inputs, the graph included, on a CPU what autograd keeps beside the inputs; of backends
        whose ``products`` are known ``flops_per_s``; and on a GPU its ``roofline``.
    """
    spec = get(variant)
    timing.free_memory(device)
    metrics = _measure(backend, spec, shape, getattr(torch, dtype), device, mode)
    count = products(backend, spec, mode)
    if count is not None:
        batch, heads, length, dim = shape
        # Halved: causal tiles above the diagonal are nobody's work.
        work = count * batch * heads * length**2 * dim
        metrics["flops_per_s"] = work / metrics["seconds"]
        if device == "cuda":
            metrics["peak_flops_per_s"] = timing.matrix_rate()
            metrics["roofline"] = metrics["flops_per_s"] / metrics["peak_flops_per_s"]
    return timing.outcome(metrics, device)


def _measure(
    backend: str, spec: AttnSpec, shape: Sequence[int], dtype: torch.dtype, device: str, mode: str
) -> dict[str, float]:
    generator = torch.Generator(device).manual_seed(0)
    q, k, v, grad = (
        torch.randn(tuple(shape), generator=generator, device=device, dtype=dtype) for _ in range(4)
    )
    parameters = {"tau": torch.ones(shape[1], device=device)} if spec.name == "elastic" else {}
    attend = _attend(backend, spec, parameters)
    trained = mode != "forward"
    leaves = [x.requires_grad_(trained) for x in (q, k, v, *parameters.values())]

    def forward() -> Tensor:
        with torch.set_grad_enabled(trained):
            return attend(q, k, v)

    def gradients(out: Tensor, keep: bool = False) -> None:
        torch.autograd.grad(out, leaves, grad, retain_graph=keep)

    def training() -> None:
        gradients(forward())

    # Else the graphs of other cases count, and past a limit torch stops compiling, silently.
    torch._dynamo.reset()
    with (
        torch._dynamo.config.patch(fail_on_recompile_limit_hit=True),
        # A compiled backward pass may else overwrite the graph, which then cannot be kept.
        torch._functorch.config.patch(donated_buffer=mode != "backward"),
    ):
        call: Callable[[], object] = training if trained else forward
        call()  # compiles
        before = torch.cuda.memory_allocated() if device == "cuda" else 0
        if mode == "backward":
            call = functools.partial(gradients, forward(), keep=True)
        if device == "cuda":
            used = timing.peak_bytes(call) - before
        else:
            used = timing.kept_bytes(forward, leaves)
        return {**timing.times(call, device), "bytes": used}


def _attend(backend: str, spec: AttnSpec, parameters: dict[str, Tensor]) -> Attend:
    if backend.startswith("sdpa"):
        kernel = {
            "sdpa flash": SDPBackend.FLASH_ATTENTION,
            "sdpa cudnn": SDPBackend.CUDNN_ATTENTION,
        }

        def sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            if backend == "sdpa":
                return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            with sdpa_kernel(kernel[backend]):
                return functional.scaled_dot_product_attention(q, k, v, is_causal=True)

        return sdpa
    if backend in ("triton", "blocked", "flex"):
        return lambda q, k, v: BACKENDS[backend].attend(q, k, v, spec, parameters)
    plain = torch.compile(eager.attend, dynamic=False) if backend == "compiled" else eager.attend
    return lambda q, k, v: plain(q, k, v, spec, parameters.get("tau"))


def products(backend: str, spec: AttnSpec, mode: str) -> int | None:
    """Return the number of products of 2 L^2 d FLOP in a backend's algorithm; None if unknown.

    SDPA's (FlashAttention-2, cuDNN, the CPU's) take QK and AV forward, 5 backward: QK and dO V
    again, then dV, dQ and dK. Ours take 7 backward, as dq is made in a pass of its own; with a
    second stage a third one forward, QK for the first stage's sums, and a fourth where a backward
    pass will follow, which it spares another. Other backends leave the products, and the share of
    them above the diagonal, to a compiler, so their number is unknown here.
    """
    sharpened = spec.sharpen != "none"
    if backend.startswith("sdpa"):
        forward, saved, backward = 2, 0, 5
    elif backend == "triton":
        forward, saved, backward = 2 + sharpened, int(sharpened), 7
    else:
        return None
    return {"forward": forward, "training": forward + saved + backward, "backward": backward}[mode]
