"""Translation of an attention specification to the choices and numbers of the kernels."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attention.positions import alibi_slopes
from attention.reference import Parameters
from attention.spec import AttnSpec
from attention.triton.tiles import HEAD_DIMS

LOG2_E = math.log2(math.e)
PHIS = ("exp", "sigmoid", "softplus", "relu", "relu2", "relu6")
IN_LOG2_UNITS = ("exp", "sigmoid", "softplus")
DTYPES = (torch.float16, torch.bfloat16, torch.float32)


@dataclass(frozen=True)
class Plan:
    """The kernels' view of a variant; numbers of row i are affine in log2(i), or a power of i.

    Attributes:
        unit: Whether scores are cosines: q and k count by their directions alone.
        phi: exp, sigmoid, softplus, relu, relu2 or relu6.
        l1: Whether stage 1 divides by the row's sum.
        sharpen: none, reweight or elastic.
        bias: none, alibi, zero or last (a learned table and its rule past the end).
        p: Exponent of the re-weighting.
        scale: u = (scale[0] + scale[1] log2 i) s + ..., [2].
        shift: ... + shift[0] + shift[1] log2 i, [2].
        norm: Without l1, stage 1 multiplies by norm[0] i^-norm[1], [2].
        tau: The elastic offset is tau_h tau[0] i^-tau[1], [2].
        slope: The constant that ``primitives.phi_and_slope`` leaves out.
    """

    unit: bool
    phi: str
    l1: bool
    sharpen: str
    bias: str
    p: float
    scale: tuple[float, float]
    shift: tuple[float, float]
    norm: tuple[float, float]
    tau: tuple[float, float]
    slope: float

    @property
    def choices(self) -> tuple[bool, str, bool, str, str, tuple[float, ...]]:
        """The plan as arguments of the operators."""
        return self.unit, self.phi, self.l1, self.sharpen, self.bias, self.numbers

    @property
    def numbers(self) -> tuple[float, ...]:
        """All numbers in the order in which the kernels take them."""
        return *self.scale, *self.shift, *self.norm, *self.tau, self.slope, self.p


def refuses(spec: AttnSpec, q: Tensor, n_keys: int) -> str | None:
    """Return why the kernels do not serve a call, or None."""
    if spec.normalise in ("sparsemax", "entmax15"):
        return f"{spec.normalise} needs a sort or a search in each row"
    if spec.phi not in PHIS:
        return f"phi {spec.phi} is not monotone and non-negative"
    if spec.modify != "none":
        return f"{spec.modify} is not one of the fused stages"
    if spec.sharpen != "none" and spec.normalise != "l1":
        return "the second stage is fused after l1 only"
    if spec.mask != "causal":
        return f"mask {spec.mask} is not fused"
    if spec.sink:
        return "the sink logit is not fused"
    if spec.bias == "learned" and spec.beyond == "refuse":
        return "a kernel cannot refuse a distance; set beyond to zero or last"
    if q.dtype not in DTYPES:
        return f"dtype {q.dtype} is not one of float16, bfloat16, float32"
    if q.shape[-1] > (largest := max(HEAD_DIMS[8 * q.element_size()])):
        return f"head dim {q.shape[-1]} is above {largest}, the largest with tiles in {q.dtype}"
    if spec.sharpen.startswith("elastic") and spec.phi.startswith("relu"):
        return "an elastic offset is fused where no row of stage 1 can be zero"
    return _beyond_half(spec, n_keys) if q.dtype == torch.float16 else None


def _beyond_half(spec: AttnSpec, n_keys: int) -> str | None:
    """Return the numbers of a variant that float16 cannot hold, or None."""
    if spec.phi == "relu2":
        return "squared scores overflow float16"
    if spec.reweights and spec.p < 1:
        return "the slope of a power below 1 is unbounded, and float16 cannot hold it"
    if spec.sharpen.startswith("elastic") and n_keys > torch.finfo(torch.float16).max:
        return f"{n_keys} times a weight overflows float16"
    return None


@functools.lru_cache(maxsize=256)
def make(spec: AttnSpec, head_dim: int) -> Plan:
    """Return the plan of a variant that the kernels serve."""
    units = LOG2_E if spec.phi in IN_LOG2_UNITS else 1.0
    sharpen = "elastic" if spec.sharpen.startswith("elastic") else spec.sharpen
    bias = {"none": "none", "alibi": "alibi", "learned": spec.beyond}[spec.bias]
    return Plan(
        unit=spec.directional,
        phi=spec.phi,
        l1=spec.normalise == "l1",
        sharpen=sharpen,
        bias=bias,
        p=float(spec.p),
        scale=tuple(units * x for x in _scale(spec, head_dim)),  # type: ignore[arg-type]
        shift=tuple(units * x for x in _shift(spec)),  # type: ignore[arg-type]
        norm=_norm(spec),
        tau=_tau(spec),
        slope=1 / LOG2_E if spec.phi in ("exp", "sigmoid") else 1.0,
    )


def bias_table(spec: AttnSpec, q: Tensor, parameters: Parameters) -> Tensor | None:
    """Return the kernels' form of ``bias``: slopes [H], or a table by distance [H, distance]."""
    units = LOG2_E if spec.phi in IN_LOG2_UNITS else 1.0
    if spec.bias == "alibi":
        return units * _slopes(q.shape[1], q.device)
    if spec.bias == "learned":
        return units * parameters["bias"].to(torch.float32)
    return None


def _slopes(heads: int, device: torch.device) -> Tensor:
    """Return ALiBi's slopes, copied to the device once: a copy from the host waits for it."""
    # What is made under a mode, a fake say, must not be kept.
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0:
        return alibi_slopes(heads).to(device, torch.float32)
    return _kept_slopes(heads, device)


@functools.cache
def _kept_slopes(heads: int, device: torch.device) -> Tensor:
    return alibi_slopes(heads).to(device, torch.float32)


def _scale(spec: AttnSpec, head_dim: int) -> tuple[float, float]:
    if spec.scale == "inverse_sqrt_dim":
        return 1 / math.sqrt(head_dim), 0.0
    if spec.scale == "log_length":
        assert spec.length is not None
        return math.log(spec.length) / math.sqrt(head_dim), 0.0
    if spec.scale == "cosine":
        return spec.g, 0.0
    return 0.0, math.log(head_dim) / LOG2_E


def _shift(spec: AttnSpec) -> tuple[float, float]:
    if spec.shift == "minus_log_length":
        assert spec.length is not None
        return -math.log(spec.length), 0.0
    return 0.0, -1 / LOG2_E if spec.shift == "minus_log_row" else 0.0


def _norm(spec: AttnSpec) -> tuple[float, float]:
    unit = 1 / LOG2_E if spec.phi == "softplus" else 1.0
    if spec.normalise == "length":
        assert spec.length is not None
        return unit / spec.length, 0.0
    if spec.normalise == "sqrt_half_row":
        return unit * math.sqrt(2) / spec.gamma, 0.5
    return unit, 0.0


def _tau(spec: AttnSpec) -> tuple[float, float]:
    if spec.sharpen == "elastic_length":
        assert spec.length is not None
        return 1 / spec.length, 0.0
    return 1.0, 1.0 if spec.sharpen == "elastic_row" else 0.0
