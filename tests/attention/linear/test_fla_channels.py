"""fla-core's kernels of single channels, run by Triton's interpreter, against the recurrences."""

import importlib

import pytest
import torch

from attention import linear
from attention.linear import fla
from tests.attention.linear.published import with_gradients

autotuner = pytest.importorskip("triton.runtime.autotuner").Autotuner
pytestmark = [
    pytest.mark.skipif(not fla.installed(), reason="fla-core or einops is not installed"),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # of fla, that there is no GPU
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # the interpreter's own numpy
]
KERNELS = {
    "hawk": ("hgrn", "fused_recurrent_hgrn"),
    "rwkv4": ("rwkv4", "fused_recurrent_rwkv4"),
}


def run(mixer, x, first=4):
    """Return outputs of a sequence read in two parts, the last state, and gradients."""
    cache = mixer.new_cache()
    out = torch.cat([mixer(x[:, :first], cache), mixer(x[:, first:], cache)], dim=1)
    state = [value for _, value in sorted(cache.tensors.items())]
    return with_gradients([out, *state], [x, *mixer.parameters()])


@pytest.mark.full
@pytest.mark.parametrize("name", list(KERNELS))
def test_the_kernel_computes_the_mixer(name, monkeypatch):
    device = "cuda" if torch.cuda.is_available() else "cpu"  # on a GPU without the interpreter
    torch.manual_seed(0)
    mixer = linear.build(name, n_head=2, head_dim=20).to(device)
    x = torch.randn(2, 9, 40, device=device, requires_grad=True)
    expected, calls = run(mixer.double(), x.detach().double().requires_grad_()), []
    mixer.float()
    kernel = getattr(importlib.import_module(f"fla.ops.{KERNELS[name][0]}"), KERNELS[name][1])
    if device == "cpu":  # no GPU, on which settings of a kernel could be compared
        monkeypatch.setattr(autotuner, "_bench", lambda *args, **settings: [1.0, 1.0, 1.0])

    def recorded(package, function):
        calls.append((package, function))
        return kernel

    monkeypatch.setattr(fla, "_kernel", recorded)
    monkeypatch.setattr(fla, "channel_refusal", lambda k, v: None)
    found = run(mixer, x)
    assert calls == [KERNELS[name]] * 2
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(
            one.double(), other, rtol=0, atol=2e-5 * other.abs().max().item()
        )


@pytest.mark.parametrize("name", list(KERNELS))
def test_a_cpu_and_one_position_are_the_mixers_own(name, monkeypatch):
    monkeypatch.setattr(fla, "_kernel", None)
    mixer = linear.build(name, n_head=2, head_dim=20)
    mixer(torch.randn(1, 3, 40))
    monkeypatch.setattr(fla, "channel_refusal", lambda k, v: None)
    mixer(torch.randn(1, 1, 40))
    mixer.recurrent(torch.randn(1, 3, 40))
