"""flash-linear-attention as a backend: when it serves, and whether it computes the same."""

import ast
import importlib
import importlib.util
import inspect
import warnings
from pathlib import Path

import pytest
import torch
from torch.torch_version import TorchVersion

from attention import linear
from attention.linear import _decay, _delta, fla

needs_fla = pytest.mark.skipif(not fla.installed(), reason="fla-core or einops is not installed")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def inputs(decays, dtype=torch.float32, channels=16, length=70):
    generator = torch.Generator().manual_seed(3)

    def random(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    q, k, v = (random(2, 3, length, channels) for _ in range(3))
    return [q, k, v, -random(2, 3, length, decays).sigmoid(), random(2, 3, channels, channels)]


def test_cpu_tensors_are_refused_with_the_reason():
    _, k, v, *_ = inputs(1)
    assert fla.refusal(k, v) == "its kernels run on CUDA; the tensors are on cpu"


class OnGPU:
    """What :func:`fla.refusal` asks of a tensor."""

    is_cuda, device = True, "cuda:0"

    def __init__(self, dtype=torch.float32, length=64, channels=32):
        self.dtype, self.shape = dtype, (2, 3, length, channels)


@pytest.mark.parametrize(
    ("there", "tensor", "reason"),
    [
        (True, OnGPU(), None),
        (False, OnGPU(), "fla-core is not installed"),
        (True, OnGPU(torch.float64), "its states are float32, the tensors torch.float64"),
        (True, OnGPU(channels=24), "24 channels of keys are no multiple of 16"),
        (True, OnGPU(length=1), "one position is a step of the recurrence"),
    ],
)
def test_what_it_serves_on_a_gpu(there, tensor, reason, monkeypatch):
    monkeypatch.setattr(fla, "installed", lambda: there)
    assert fla.refusal(tensor, tensor) == reason


@pytest.mark.parametrize(
    ("capability", "triton", "reason"),
    [
        ((9, 0), "3.6.0", "its backward pass needs Triton 3.7.1 on this GPU, found 3.6.0"),
        ((9, 0), "3.7.1", None),
        ((9, 0), "3.10.0", None),
        ((8, 0), "3.6.0", None),
    ],
)
def test_one_decay_a_head_needs_a_triton_that_compiles_it(capability, triton, reason, monkeypatch):
    monkeypatch.setattr(fla, "installed", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(fla, "_triton_version", lambda: TorchVersion(triton))
    given = OnGPU()
    assert fla.head_refusal(given, given) == fla.delta_refusal(given, given) == reason
    assert fla.refusal(given, given) is None


TWINS = {
    "chunk_gla": ("fla.ops.gla.naive", "naive_recurrent_gla"),
    "chunk_simple_gla": ("fla.ops.simple_gla.naive", "naive_chunk_simple_gla"),
    "chunk_rwkv6": ("fla.ops.rwkv6.recurrent_naive", "naive_recurrent_rwkv6"),
}
"""fla's plain-PyTorch forms of its kernels; all divide the queries by the root of the channels."""


def twin_of(name):
    module, function = TWINS[name]
    twin = getattr(importlib.import_module(module), function)

    def kernel(q, *others, scale, initial_state, output_final_state):
        assert (scale, output_final_state) == (1.0, True)
        tensors = [q * q.shape[-1] ** 0.5, *others]
        last = {"initial_state": initial_state, "output_final_state": True}
        if name != "chunk_rwkv6":
            return twin(*tensors, **last)
        *by_head, bonus = tensors  # this one has the heads first, as we have
        out, state = twin(*(x.transpose(1, 2) for x in by_head), bonus, **last)
        return out.transpose(1, 2), state

    return kernel


@pytest.mark.full
@needs_fla
@pytest.mark.parametrize(
    ("decays", "wanted"), [(1, "chunk_simple_gla"), (16, "chunk_gla"), (16, "chunk_rwkv6")]
)
def test_flas_own_plain_forms_compute_the_same(decays, wanted, monkeypatch):
    calls = []

    def recorded(package, name):
        calls.append((package, name))
        return twin_of(name)

    monkeypatch.setattr(fla, "_kernel", recorded)
    given = inputs(decays)
    bonus = torch.linspace(-1, 1, 48).view(3, 16) if wanted == "chunk_rwkv6" else None
    expected = _decay.recurrent(*given, bonus)
    found = fla.chunked(*given, bonus)
    assert calls == [(wanted.removeprefix("chunk_"), wanted)]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.full
@needs_fla
@pytest.mark.filterwarnings("ignore:Triton is not supported")  # of fla, that there is no GPU
def test_a_kernel_that_tunes_itself_for_minutes_says_so_once():
    fla._kernel.cache_clear()
    with pytest.warns(UserWarning, match="tunes chunk_gla at its first step, for minutes"):
        fla._kernel("gla", "chunk_gla")
    with warnings.catch_warnings(action="error", category=UserWarning):
        fla._kernel("gla", "chunk_gla")


@pytest.mark.parametrize("values", [5, 16, 17])
def test_values_are_padded_to_what_the_kernels_take(values, monkeypatch):
    widths = []

    def kernel(q, k, v, g, initial_state, **settings):
        widths.append((v.shape[-1], initial_state.shape[-1]))
        q, k, v, g = (x.transpose(1, 2) for x in (q, k, v, g[..., None]))
        out, state = _decay.recurrent(q, k, v, g, initial_state)
        return out.transpose(1, 2), state

    monkeypatch.setattr(fla, "_kernel", lambda package, name: kernel)
    q, k, v, log_decay, state = inputs(1, torch.float64)
    given = [q, k, v.repeat(1, 1, 1, 2)[..., :values], log_decay, state.repeat(1, 1, 1, 2)]
    given[4] = given[4][..., :values]
    pairs = zip(fla.chunked(*given), _decay.recurrent(*given), strict=True)
    for found, expected in pairs:
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert widths == [(-(-values // 16) * 16,) * 2]


def recorded_kernel(calls):
    """Return a stand-in with the signature of fla-core 0.6's kernel of the gated delta rule."""

    def chunk_gated_delta_rule(
        q, k, v, g, beta, scale=None, initial_state=None, output_final_state=False
    ):
        calls.append({"g": tuple(g.shape), "beta": tuple(beta.shape), "scale": scale})
        assert output_final_state
        state, out = initial_state, []
        for t in range(q.shape[1]):
            state = state * g[:, t].exp()[..., None, None]
            answer = (k[:, t, :, None] @ state)[:, :, 0]
            change = beta[:, t, :, None] * (v[:, t] - answer)
            state = state + k[:, t, :, :, None] * change[:, :, None]
            out.append(scale * (q[:, t, :, None] @ state)[:, :, 0])
        return torch.stack(out, dim=1), state

    return chunk_gated_delta_rule


@pytest.mark.parametrize("name", ["deltanet", "gated_deltanet"])
def test_delta_rules_hand_the_kernel_what_it_takes(name, monkeypatch):
    torch.manual_seed(0)
    mixer = linear.build(name, n_head=2, head_dim=16).double()
    x = torch.randn(2, 9, 32, dtype=torch.float64)
    expected, calls = mixer(x), []
    monkeypatch.setattr(fla, "delta_refusal", lambda k, v: None)
    monkeypatch.setattr(fla, "_kernel", lambda package, name: recorded_kernel(calls))
    cache = mixer.new_cache()
    found = torch.cat([mixer(x[:, :5], cache), mixer(x[:, 5:], cache)], dim=1)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert calls == [{"g": (2, n, 2), "beta": (2, n, 2), "scale": 1.0} for n in (5, 4)]


@pytest.mark.full
@needs_fla
def test_flas_own_plain_delta_rule_computes_the_same(monkeypatch):
    naive = importlib.import_module("fla.ops.gated_delta_rule.naive")

    def kernel(q, k, v, g, beta, **settings):
        return naive.naive_recurrent_gated_delta_rule(q, k, v, beta, g, **settings)

    monkeypatch.setattr(fla, "_kernel", lambda package, name: kernel)
    q, k, v, log_decay, state = inputs(1)
    k, rate = torch.nn.functional.normalize(k, dim=-1), log_decay.exp()
    expected = _delta.recurrent(
        q, rate * k, v, log_decay, k, -rate * log_decay.exp() * k, state
    )  # as in _delta.delta_rule
    for one, other in zip(fla.delta_rule(q, k, v, log_decay, rate, state), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def recorded_vector_kernel(calls):
    """Return a stand-in with the signature of fla-core 0.6's kernel of RWKV-7."""

    def chunk_rwkv7(r, w, k, v, a, b, scale=1.0, initial_state=None, output_final_state=False):
        calls.append({"types": {x.dtype for x in (r, w, k, v, a, b)}, "state": initial_state.dtype})
        assert output_final_state
        given = (x.transpose(1, 2).to(initial_state.dtype) for x in (r, k, v, w, a, b))
        out, state = _delta.recurrent(*given, initial_state)
        return scale * out.transpose(1, 2).to(v.dtype), state

    return chunk_rwkv7


def test_rwkv7_hands_the_kernel_what_it_takes(monkeypatch):
    torch.manual_seed(0)
    mixer = linear.build("rwkv7", n_head=2, head_dim=16).double()
    x = torch.randn(2, 9, 32, dtype=torch.float64)
    expected, calls = mixer(x), []
    monkeypatch.setattr(fla, "vector_refusal", lambda k, v: None)
    monkeypatch.setattr(fla, "_kernel", lambda package, name: recorded_vector_kernel(calls))
    cache = mixer.new_cache()
    found = torch.cat([mixer(x[:, :5], cache), mixer(x[:, 5:], cache)], dim=1)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert calls == 2 * [{"types": {torch.float64}, "state": torch.float64}]


def test_rwkv7_under_autocast_hands_over_half_precision_and_a_float32_state(monkeypatch):
    torch.manual_seed(0)
    mixer, x = linear.build("rwkv7", n_head=2, head_dim=16), torch.randn(2, 9, 32)
    expected, calls, asked = mixer(x), [], []
    monkeypatch.setattr(fla, "vector_refusal", lambda k, v: asked.append(v.dtype))
    monkeypatch.setattr(fla, "_kernel", lambda package, name: recorded_vector_kernel(calls))
    with torch.autocast("cpu", torch.bfloat16):
        found = mixer(x)
    assert asked == [torch.bfloat16], "by which the kernel is chosen"
    assert calls == [{"types": {torch.bfloat16}, "state": torch.float32}]
    error = (found - expected).norm() / expected.norm()
    assert error < 0.05


def test_rwkv7_in_float32_stays_in_pytorch():
    k, half = OnGPU(channels=64), OnGPU(torch.bfloat16, channels=64)
    assert "half precision alone" in fla.vector_refusal(k, k)
    assert fla.vector_refusal(k, half) is None
    wide = OnGPU(channels=320)
    assert fla.vector_refusal(wide, wide) == "320 channels of keys are above 256"


@pytest.mark.full
@needs_fla
def test_flas_own_plain_vector_rule_computes_the_same():
    naive = importlib.import_module("fla.ops.generalized_delta_rule.dplr.naive")
    q, k, v, log_decay, state = inputs(64, channels=64)
    read = torch.nn.functional.normalize(k, dim=-1)
    write = -log_decay.exp() * read
    out, last = naive.dplr_recurrence(8 * q, k, v, read, write, log_decay, state)  # it scales q
    expected = _delta.recurrent(q, k, v, log_decay, read, write, state)
    for one, other in zip((out, last), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@needs_fla
def test_the_kernel_of_rwkv7_takes_the_arguments_that_are_given():
    source = importlib.util.find_spec("fla").submodule_search_locations[0]
    tree = ast.parse((Path(source) / "ops/rwkv7/chunk.py").read_text("utf-8"))
    (kernel,) = (x for x in tree.body if getattr(x, "name", "") == "chunk_rwkv7")
    names = [argument.arg for argument in kernel.args.args]
    assert names[:9] == list(inspect.signature(recorded_vector_kernel([])).parameters)


@needs_fla
def test_the_kernel_takes_the_arguments_that_are_given():
    source = importlib.util.find_spec("fla").submodule_search_locations[0]
    tree = ast.parse((Path(source) / "ops/gated_delta_rule/chunk.py").read_text("utf-8"))
    (kernel,) = (x for x in tree.body if getattr(x, "name", "") == "chunk_gated_delta_rule")
    names = [argument.arg for argument in kernel.args.args]
    assert names[:8] == list(inspect.signature(recorded_kernel([])).parameters)


def test_wide_keys_of_a_delta_rule_are_refused():
    wide = OnGPU(channels=320)
    assert fla.delta_refusal(wide, wide) == "320 channels of keys are above 256"


@pytest.mark.gpu
@needs_gpu
@needs_fla
@pytest.mark.parametrize("kind", ["scalar", "channel", "bonus"])
def test_kernels_compute_the_same_on_a_gpu(kind):
    given = [x.cuda().requires_grad_() for x in inputs(1 if kind == "scalar" else 64, channels=64)]
    bonus = torch.randn(3, 64, device="cuda") if kind == "bonus" else None
    if kind == "scalar" and (reason := fla.head_refusal(given[1], given[2])):
        pytest.skip(reason)
    assert fla.refusal(given[1], given[2]) is None
    results = []
    for run in (lambda: _decay.recurrent(*given, bonus), lambda: fla.chunked(*given, bonus)):
        out, state = run()
        gradients = torch.autograd.grad(out.square().sum() + state.square().sum(), given)
        results.append([out, state, *gradients])
    for found, expected in zip(results[1], results[0], strict=True):
        # Products of matrices in the kernels may be TF32, of 10 bits.
        assert (found - expected).norm() < 5e-3 * expected.norm()
