"""What the tests of the fused kernels share: inputs, learned numbers, and errors by a reference."""

from unittest import mock

import pytest
import torch

from attention import get, names, reference
from attention.triton import backend

MARKS = [
    pytest.mark.skipif(backend.ops is None, reason="triton is not installed (Linux only)"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # the interpreter's own numpy
]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # on a GPU, without the interpreter
SIZES = {"length": 70, "max_distance": 37}
SHARPENED = ("lssar", "softmax_reweighted", "sigmoid_reweighted")


def specification(name, **changes):
    takes = get(name).arguments
    return get(name, **{key: x for key, x in {**SIZES, **changes}.items() if key in takes})


SERVED = [
    name
    for name in names()
    if not backend.plan.refuses(specification(name), torch.zeros(1, 1, 1, 32), 1)
]


def tensors(queries, keys=None, *, heads=2, dim=32, seed=0, dtype=torch.float32, batch=1):
    """Return q, k, v and the gradient of the output, [B, H, L, D]."""
    generator = torch.Generator().manual_seed(seed)
    lengths = (queries, keys or queries, keys or queries, queries)
    return [
        torch.randn(batch, heads, length, dim, generator=generator).to(DEVICE, dtype)
        for length in lengths
    ]


def learned(spec, heads=2):
    generator = torch.Generator().manual_seed(1)
    found = {}
    for name, dims in spec.learned.items():
        sizes = [{"head": heads, "distance": spec.max_distance}[d] for d in dims]
        found[name] = torch.randn(sizes, generator=generator).to(DEVICE)
    if "tau" in found:  # one positive, one negative offset, in units of a weight near 1 / 35
        scale = {"elastic_row": 1.0, "elastic_length": 2.0, "elastic": 0.03}[spec.sharpen]
        found["tau"] = torch.tensor([1.2, -0.3], device=DEVICE)[:heads] * scale
    return found


def tau_of(name, heads=2):
    """Return the learned numbers that a call of ``attend`` takes, None where there are none."""
    return learned(get(name), heads) or None


def run(function, inputs, spec, parameters, dtype):
    """Return the output and every gradient in the order q, k, v, parameters."""
    *given, upstream = (x.detach().to(dtype) for x in inputs)
    leaves = [x.clone().requires_grad_() for x in given]
    numbers = {
        name: x.to(torch.promote_types(dtype, torch.float32)).requires_grad_()
        for name, x in parameters.items()
    }
    out = function(*leaves, spec, numbers)
    out.backward(upstream)
    return [out.detach(), *(x.grad for x in (*leaves, *numbers.values()))]


def errors(found, expected, floor=0.0):
    """Return the RMS error of each tensor over its RMS (over ``floor`` if that is larger)."""
    ratios = []
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.isfinite(ours).all()
        size = theirs.square().mean().sqrt().clamp_min(floor)
        error = (ours.double() - theirs).square().mean().sqrt()
        ratios.append(float(error / size) if size > 0 else float(error))
    return ratios


ROUNDING = 2e-5
"""Of float32 against float64, relative to each tensor.

The largest error measured is 3.8e-6 at powers up to 15; a processor's own exp and order of adding
change it by a factor.
"""


def check(spec, inputs, allowed=ROUNDING, floor=0.0):
    parameters = learned(spec, inputs[0].shape[1])
    expected = run(reference.attend, inputs, spec, parameters, torch.float64)
    found = run(backend.attend, inputs, spec, parameters, torch.float32)
    assert max(errors(found, expected, floor)) <= allowed


def plain(q, k, v, spec, parameters):
    """The reference without its float32: every operation in the dtype of q, as users write it."""
    with mock.patch.object(torch, "promote_types", lambda first, second: first):
        return reference.attend(q, k, v, spec, parameters)
