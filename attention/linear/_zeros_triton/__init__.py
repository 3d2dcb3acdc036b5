"""ZeroS's sum chunk by chunk in Triton kernels, forward and backward, where they can serve.

:func:`refusal` says why they do not serve a call, and everything works without them. Between the
passes only q, k, v, six numbers a position and two states are kept: the bases before each chunk
are summed again.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor, library

from attention.linear._zeros_forms import ScanState, running
from attention.validation import check_no_tangents

try:
    from attention.linear._zeros_triton import kernels
except ImportError:  # triton exists for Linux only
    kernels = None  # type: ignore[assignment]

CHANNELS = (32, 64, 128)
"""Channels of keys and of values that the kernels are used for. With 16, 2,000 positions had a
larger error on an H200 than the tests allow, which neither the interpreter nor fewer positions
show."""
SLICE = 32
"""Channels that a kernel multiplies at once; more would not fit a GPU's registers."""
CAPABILITY = (8, 0)
"""Least compute capability with matrix instructions for float32."""
WIDE = (9, 10)
"""Major compute capabilities whose matrix instructions read shared memory. On the others 64
positions of 64 channels would need more registers than there are."""
LAUNCH = {"num_warps": 8, "num_stages": 2}


def refusal(k: Tensor, v: Tensor) -> str | None:
    """Return why the kernels do not serve a call, or None if they do.

    Args:
        k: [B, H, L, K].
        v: [B, H, L, V].
    """
    if not k.is_cuda:
        return f"its kernels run on CUDA; the tensors are on {k.device.type}"
    if kernels is None:
        return "the package triton is not installed"
    if torch.version.hip or _capability(k.device.index) < CAPABILITY:
        return "its kernels are written for NVIDIA's GPUs from the A100 on"
    if k.dtype != torch.float32:
        return f"its kernels are float32, the tensors {k.dtype}"
    if k.shape[-1] not in CHANNELS or v.shape[-1] not in CHANNELS:
        allowed = ", ".join(map(str, CHANNELS))
        return f"{k.shape[-1]} and {v.shape[-1]} channels are not both among {allowed}"
    return None


@functools.cache
def _capability(device: int) -> tuple[int, int]:
    return torch.cuda.get_device_capability(device)


def chunked(
    q: Tensor, k: Tensor, v: Tensor, s: Tensor, radial: Tensor, state: ScanState, chunk: int
) -> tuple[Tensor, ScanState]:
    """Compute :func:`attention.linear._zeros_forms.chunked`; K and V are of ``CHANNELS``.

    Raises:
        ValueError: A tensor has a tangent of forward-mode differentiation.
    """
    given = q, k, v, s, radial, state.log_e, state.p, state.bases
    check_no_tangents("the Triton kernels of zeros", "use tensors on the CPU", *given)
    length = s.shape[-1]
    log_e, p, mean = running(s, state)
    numbers = torch.stack([s, log_e, mean, *radial.unbind(dim=-1)])
    tensors = q, k, v, numbers, state.log_e, state.bases
    out, bases = zeros_forward(*tensors, min(chunk, length))
    return out, ScanState(log_e[..., -1], p[..., -1], bases, state.length + length)


def sizes(keys: int, values: int, chunk: int, capability: int = WIDE[0]) -> dict[str, int]:
    """Return the kernels' sizes; a chunk has the next power of two of positions, within limits.

    Args:
        keys: Channels of keys.
        values: Channels of values.
        chunk: Positions in a chunk that were asked for.
        capability: Major compute capability.
    """
    largest = 64 if max(keys, values) <= (64 if capability in WIDE else 32) else 32
    rows = min(max(1 << (chunk - 1).bit_length(), 16), largest)
    return {"K": keys, "V": values, "ROWS": rows, "SLICE": min(keys, values, SLICE)}


@library.custom_op("orrery::zeros_forward", mutates_args=())
def zeros_forward(
    q: Tensor, k: Tensor, v: Tensor, numbers: Tensor, log_e: Tensor, bases: Tensor, chunk: int
) -> tuple[Tensor, Tensor]:
    """Return o and the last bases.

    Args:
        q: [B, H, L, K].
        k: [B, H, L, K].
        v: [B, H, L, V].
        numbers: s, ln E, mean of s, a, b and c of every position, [6, B, H, L].
        log_e: ln E before the first position, [B, H].
        bases: F / E, G and H before the first position, [B, H, 3 K, V].
        chunk: Positions in a chunk.
    """
    return _Call((q, k, v, numbers, bases), log_e, chunk).output()


@library.custom_op("orrery::zeros_backward", mutates_args=())
def zeros_backward(
    grad: Tensor,
    grad_bases: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    numbers: Tensor,
    log_e: Tensor,
    bases: Tensor,
    chunk: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of q, k, v, the numbers and the first bases."""
    return _Call((q, k, v, numbers, bases), log_e, chunk).gradients(grad, grad_bases)


@zeros_forward.register_fake
def _(q, k, v, numbers, log_e, bases, chunk):
    return v.new_empty(v.shape), bases.new_empty(bases.shape)


@zeros_backward.register_fake
def _(grad, grad_bases, q, k, v, numbers, log_e, bases, chunk):
    return tuple(x.new_empty(x.shape) for x in (q, k, v, numbers, bases))


def _remember(ctx: Any, inputs: tuple, output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.chunk = inputs
    ctx.save_for_backward(*tensors, output[1])


def _differentiate(ctx: Any, grad: Tensor, grad_bases: Tensor) -> tuple:
    *given, last = ctx.saved_tensors
    dq, dk, dv, dnumbers, dbases = zeros_backward(grad, grad_bases, *given, ctx.chunk)
    _, k, _, _, _, first = given
    # Bases are given and returned as F / E: both E have a gradient of their own.
    before, after = (
        (dx * x)[..., : k.shape[-1], :].sum(dim=(-2, -1))
        for dx, x in ((dbases, first), (grad_bases, last))
    )
    dnumbers[1, ..., -1] -= after
    return dq, dk, dv, dnumbers, before, dbases, None


zeros_forward.register_autograd(_differentiate, setup_context=_remember)


class _Call:
    """Contiguous tensors of a call and the borders of its chunks, for both passes."""

    def __init__(self, given: tuple[Tensor, ...], log_e: Tensor, chunk: int) -> None:
        self.q, self.k, self.v, self.numbers, self.bases = (x.contiguous() for x in given)
        s, sums, mean, a, b, c = self.numbers
        capability = _capability(self.k.device.index)[0] if self.k.is_cuda else WIDE[0]
        self.sizes = sizes(self.k.shape[-1], self.v.shape[-1], chunk, capability)
        length = s.shape[-1]
        rows = self.sizes["ROWS"]
        last = torch.arange(rows - 1, length + rows - 1, rows, device=s.device)
        end = sums[..., last.clamp(max=length - 1)]
        self.starts = torch.cat([log_e[..., None], end[..., :-1]], dim=-1)
        self.kept = (self.starts - end).exp()
        start, end = (x.repeat_interleave(rows, dim=-1)[..., :length] for x in (self.starts, end))
        self.reads = torch.stack([a * (start - sums).exp(), b, c - b * mean])
        self.writes = torch.stack([(s - end).exp(), s, torch.ones_like(s)])

    def output(self) -> tuple[Tensor, Tensor]:
        """Return o and the last bases."""
        states, last = self.scan(self.k, self.v, self.writes, self.bases)
        return self.mix(self.q, self.k, self.v, self.reads, states), last

    def gradients(
        self, grad: Tensor, grad_bases: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return the gradients of q, k, v, the numbers and the first bases."""
        q, k, v, grad = self.q, self.k, self.v, grad.contiguous()
        states, _ = self.scan(k, v, self.writes, self.bases)
        grad_states, first = self.scan(q, grad, self.reads, grad_bases.contiguous(), reverse=True)
        numbers = torch.empty_like(self.numbers)
        tensors = q, k, v, grad, self.numbers, self.writes, self.starts, states, grad_states
        self.launch(kernels.numbers_kernel, self.starts.numel(), *tensors, numbers)
        return (
            self.mix(grad, v, k, self.reads, states, "q"),
            self.mix(v, grad, q, self.writes, grad_states, "k"),
            self.mix(k, q, grad, self.writes, grad_states, "v"),
            numbers,
            first,
        )

    def scan(
        self, x: Tensor, y: Tensor, scales: Tensor, first: Tensor, reverse: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Return the sums before each chunk (after it in reverse) and the last ones."""
        batch, heads = first.shape[:2]
        states = first.new_empty(*self.starts.shape, 3, self.sizes["K"], self.sizes["V"])
        last = torch.empty_like(first)
        tensors = x, y, scales, self.kept, first, states, last
        self.launch(kernels.scan_kernel, 3 * batch * heads, *tensors, REVERSE=reverse)
        return states, last

    def mix(
        self, x: Tensor, y: Tensor, z: Tensor, scales: Tensor, states: Tensor, gradient: str = ""
    ) -> Tensor:
        """Return o, or the gradient of q, k or v."""
        out = torch.empty_like(z)
        tensors = x, y, z, self.numbers, scales, states, out
        self.launch(kernels.mix_kernel, self.starts.numel(), *tensors, GRADIENT=gradient)
        return out

    def launch(self, kernel: Any, programs: int, *tensors: Tensor, **choices: Any) -> None:
        """Launch a kernel."""
        length, size = self.numbers.shape[-1], self.numbers[0].numel()
        choices |= {key: x for key, x in self.sizes.items() if key in kernel.arg_names}
        with torch.cuda.device(self.q.device.index if self.q.is_cuda else -1):
            kernel[(programs,)](*tensors, length, size, **choices, **LAUNCH)
