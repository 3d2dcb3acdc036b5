"""The launches of the forward and the backward pass, one kernel after the other.

:mod:`attention.triton.ops` makes both known to torch.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attention.triton import tiles
from attention.triton.backward import dkdv_kernel, dq_kernel
from attention.triton.ends import finish_kernel, pre_kernel
from attention.triton.forward import forward_kernel
from attention.triton.launch import Launcher
from attention.triton.means import means_kernel
from attention.triton.primitives import INTERPRETED
from attention.triton.stats import stats_kernel
from attention.triton.turns import Angles, turned
from attention.triton.unit import unit_kernel

LARGEST_P = 20
"""Largest power at which half precision takes the row means of the gradient from the rounded
output: at p = 15 that errs at most twice as much as eager, at 50 more."""
ROW_TILE = tiles.Tile(rows=64, keys=0, warps=4, stages=1)
Results = tuple[
    Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None, Tensor | None, Tensor | None
]
"""Output, numbers of the rows, extra; directions of q and k; inverse lengths of q and k."""


class Passes:
    """The two passes of a plan, for tensors of a type and head dim.

    Args:
        unit, phi, l1, sharpen, kind, numbers: The plan's choices; ``kind`` is its bias.
        dtype: Type of q, k and v.
        head_dim: Channels of a head.
    """

    def __init__(
        self,
        unit: bool,
        phi: str,
        l1: bool,
        sharpen: str,
        kind: str,
        numbers: tuple[float, ...],
        dtype: torch.dtype,
        head_dim: int,
    ) -> None:
        self.unit, self.numbers, self.bits = unit, numbers, 8 * dtype.itemsize
        self.sharpened, p = sharpen != "none", numbers[-1]
        self.elastic = sharpen == "elastic"
        self.family = "biased" if kind in ("zero", "last") else sharpen
        # Whether du has a bound to scale it by, so that float16 can hold it.
        bounded = phi not in ("exp", "relu2") or (phi == "exp" and l1)
        bounded = bounded and not (sharpen == "reweight" and p < 1)
        self.direction_dtype = dtype
        if bounded and dtype == torch.bfloat16:
            self.direction_dtype = torch.float16  # of numbers up to 1 it has three bits more
        multiplied = self.direction_dtype if unit else dtype
        self.head_dim = head_dim
        self.choices = {
            "UNIT": unit,
            "PHI": phi,
            "L1": l1,
            "SHARPEN": sharpen,
            "BIAS": kind,
            "P": int(p) if p == int(p) and p < 1024 else 0,
            "EXACT": sharpen == "reweight" and (dtype == torch.float32 or p > LARGEST_P),
            "SCALED": bounded and multiplied == torch.float16,
            "PRECISE": dtype == torch.float32,
            "D": head_dim,
        }
        self.launchers: dict[tuple[object, ...], Launcher] = {}

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        tau: Tensor | None,
        bias: Tensor | None,
        save: bool,
        angles: Angles | None = None,
    ) -> Results:
        """Return the output and tensors for the backward pass, as ``ops.attention_forward`` does.

        Missing tensors are None. With ``angles`` q and k are turned by them, of a plan with
        ``unit`` and as many keys as queries.
        """
        results = self.results(q, k, save)
        out, rows, extra, *units = results
        if out.numel():
            v, sizes = v.contiguous(), _sizes(q, k, bias)
            with _device(q):
                if self.unit:
                    self._normalise(q, k, units, angles)
                    q, _, k, _ = units  # type: ignore[assignment]
                else:
                    q, k = q.contiguous(), k.contiguous()
                if self.sharpened:
                    self._launch(stats_kernel, "stats", sizes, q, k, tau, bias, rows)
                given = q, k, v, bias, rows, out, extra
                self._launch(forward_kernel, "forward", sizes, *given, SAVE=save)
        return results

    def results(self, q: Tensor, k: Tensor, save: bool) -> Results:
        """Return new tensors for the results of :meth:`forward`, None for missing ones."""
        out = torch.empty_like(q, memory_format=torch.contiguous_format)
        rows = q.new_empty([4 if self.sharpened else 2, *q.shape[:3]], dtype=torch.float32)
        extra = torch.empty_like(out) if self.sharpened and save else None
        if not self.unit:
            return out, rows, extra, None, None, None, None
        directions_q, directions_k = (
            x.new_empty(x.shape, dtype=self.direction_dtype) for x in (q, k)
        )
        inverse_q, inverse_k = (x.new_empty(x.shape[:3], dtype=torch.float32) for x in (q, k))
        return out, rows, extra, directions_q, inverse_q, directions_k, inverse_k

    def backward(
        self,
        grad: Tensor,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        tau: Tensor | None,
        bias: Tensor | None,
        out: Tensor,
        rows: Tensor,
        extra: Tensor | None,
        inverse_q: Tensor | None,
        inverse_k: Tensor | None,
        gradients: str,
        angles: Angles | None = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
        """Return the gradients of q, k, v, tau [H] and bias; the last two None if not given.

        With ``unit``, q and k are the directions that the forward pass returned, and the
        gradients are those of the vectors that it was given, which ``angles`` had turned.
        """
        if self.family == "biased":
            _alert_not_deterministic()
        dq, dk, dv = new_gradients(q, k, v)
        row_grads = rows.new_empty([4, *q.shape[:3]])
        dbias = torch.zeros_like(bias) if bias is not None else None
        if q.numel():
            q, k, v, grad = q.contiguous(), k.contiguous(), v.contiguous(), grad.contiguous()
            peaks = rows.new_zeros([3, *q.shape[:2]]) if self.choices["SCALED"] else None
            sizes, given = _sizes(q, k, bias), (q, k, v, grad)
            atomic = gradients == "atomic" and self.family != "biased"
            atomic = atomic and not torch.are_deterministic_algorithms_enabled()
            exact = gradients == "exact" and self.choices["SHARPEN"] == "reweight"
            exact = exact or bool(self.choices["EXACT"])
            sums = rows.new_zeros(q.shape) if atomic else None
            tiles_of = bias, rows, row_grads, peaks
            with _device(q):
                self._launch(pre_kernel, "keys", sizes, out, grad, extra, v, rows, row_grads, peaks)
                if exact:  # it reads what dq_kernel reads, in the same tiles
                    self._launch(means_kernel, "dq", sizes, *given, *tiles_of, EXACT=True)
                if not atomic:
                    by_rows = *given, inverse_q, *tiles_of, dq, dbias
                    self._launch(dq_kernel, "dq", sizes, *by_rows, EXACT=exact)
                by_keys = *given, inverse_k, *tiles_of, dk, dv, sums
                self._launch(dkdv_kernel, "dkdv", sizes, *by_keys, ATOMIC=atomic, EXACT=exact)
                if atomic:
                    self._launch(finish_kernel, "rows", sizes, q, inverse_q, sums, peaks, dq)
                if angles is not None:
                    for x in (dq, dk):
                        turned(x, angles, inverse=True, out=x)
        elif k.numel():
            dk.zero_()
            dv.zero_()
        dtau = row_grads[3].sum(dim=(0, 2)) if tau is not None and self.elastic else None
        return dq, dk, dv, dtau, dbias

    def _normalise(
        self, q: Tensor, k: Tensor, units: Sequence[Tensor | None], angles: Angles | None
    ) -> None:
        """Write the directions of q and k, turned if there are angles, and one over lengths."""
        # Heads may stand as a projection leaves them, a head's channels one after the other.
        q, k = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k))
        n_rows = [math.prod(x.shape[:3]) for x in (q, k)]
        blocks = sum(tiles.blocks(n, ROW_TILE.rows) for n in n_rows)
        launcher = self._launcher(unit_kernel, ROW_TILE, q.device.index, TURN=angles is not None)
        heads_and_lengths = q.shape[1], q.shape[2], k.shape[2]
        strides = *q.stride()[:3], *k.stride()[:3]
        tensors = q, k, *units, *(angles or (None, None))
        launcher((blocks, 1, 1), *tensors, *heads_and_lengths, *n_rows, *strides)

    def _launch(
        self,
        kernel: Any,
        name: str,
        sizes: tuple[int, ...],
        *tensors: Tensor | None,
        **choices: bool,
    ) -> None:
        """Run a kernel with the tiles of a name over all blocks of rows, or of keys for ``dkdv``.

        ``rows`` and ``keys`` have no tiles: their kernels go row by row of the queries or the keys.
        """
        assert tensors[0] is not None
        device = tensors[0].device.index
        _, n_rows, length, total_length, _ = sizes
        if name in ("rows", "keys"):
            tile = ROW_TILE
        else:
            arch = architecture(device)
            assert arch is not None  # the backend refuses a GPU that no tiles fit
            tile = tiles.tile(name, self.family, self.head_dim, self.bits, arch)
        blocks = tiles.blocks(length, tile.rows)
        if name == "keys":
            blocks = tiles.blocks(total_length, tile.rows)
        elif name == "dkdv":
            blocks = tiles.blocks(total_length, tile.keys)
        launcher = self._launcher(kernel, tile, device, **choices)
        launcher((blocks * (n_rows // length), 1, 1), *tensors, *sizes, self.numbers)

    def _launcher(
        self, kernel: Any, tile: tiles.Tile, device: int | None, **choices: bool
    ) -> Launcher:
        # Sooner than ``launch.launcher``, which looks at every choice: here is one at most.
        key = (kernel, tile, device, *choices.values())
        if key not in self.launchers:
            sizes = {"ROWS": tile.rows, "KEYS": tile.keys}
            options = {"num_warps": tile.warps, "num_stages": tile.stages}
            self.launchers[key] = Launcher(kernel, {**self.choices, **choices, **sizes}, options)
        return self.launchers[key]


@functools.lru_cache(maxsize=256)
def of(*choices: Any) -> Passes:
    """Return the passes with these arguments, which keep the binaries built for them."""
    return Passes(*choices)


def new_gradients(q: Tensor, k: Tensor, v: Tensor) -> list[Tensor]:
    """Return new tensors for the gradients, which have the type of v: directions have another."""
    like = torch.contiguous_format
    return [torch.empty_like(x, dtype=v.dtype, memory_format=like) for x in (q, k, v)]


def _sizes(q: Tensor, k: Tensor, bias: Tensor | None) -> tuple[int, ...]:
    """Return the numbers named in ``primitives.SIZES``."""
    batch, heads, length, _ = q.shape
    longest = bias[0].numel() if bias is not None else 0
    return heads, batch * heads * length, length, k.shape[2], longest


def _device(q: Tensor) -> torch.cuda.device:
    return torch.cuda.device(q.device.index if q.is_cuda else -1)


def _alert_not_deterministic() -> None:
    """Say, as torch does of its own operators, that sums of atomic adds differ between runs."""
    if torch.are_deterministic_algorithms_enabled():
        sentence = (
            "the Triton kernels add up the gradient of a learned bias in any order, which is not "
            "deterministic; use backend='reference'"
        )
        if not torch.is_deterministic_algorithms_warn_only_enabled():
            raise RuntimeError(sentence)
        warnings.warn(sentence, stacklevel=2)


@functools.cache
def architecture(device: int | None) -> str | None:
    """Return the name of the table of tiles for a GPU, or None where none fits."""
    if INTERPRETED:
        return tiles.INTERPRETER
    found = torch.cuda.get_device_properties(device)
    return tiles.table_for(10 * found.major + found.minor, shared_memory(device))


def shared_memory(device: int | None) -> int:
    """Return the KiB of shared memory that one block may have on a GPU."""
    found: Any = torch.cuda.get_device_properties(device)
    return found.shared_memory_per_block_optin // 1024
