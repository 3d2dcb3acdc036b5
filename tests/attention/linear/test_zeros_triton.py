"""ZeroS's Triton kernels, run by the interpreter, against the recurrence in float64."""

import pytest
import torch
from torch import library

import attention
from attention.linear import _zeros_forms as forms
from attention.linear import _zeros_triton, fla

pytestmark = [
    pytest.mark.skipif(_zeros_triton.kernels is None, reason="triton is not installed"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # the interpreter's own numpy
]
ROUNDING = 2e-5
"""Of sums of a few hundred products in float32, relative to the result.

The largest error is 5.7e-6, of the gradient by P: one number, in which terms hundreds of times as
large cancel, so that another order of adding gives another error. The others are below 2e-6.
"""
FULL = pytest.mark.full
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # on a GPU, without the interpreter


def inputs(length, keys=16, values=16, state=False, size=1.0, batch=1, heads=1):
    """Return q, k, v, s, radial and perhaps a state's tensors; s is ``size`` times normal."""
    generator = torch.Generator().manual_seed(length)
    shapes = [(length, keys), (length, keys), (length, values), (length,), (length, 3)]
    if state:
        shapes += [(), (), (3 * keys, values)]
    made = [torch.randn(batch, heads, *shape, generator=generator) for shape in shapes]
    made[3] *= size
    return [x.to(DEVICE) for x in made]


def run(form, given, *chunk, dtype=torch.float32):
    """Return o, the last state and the gradients of all inputs."""
    leaves = [x.detach().to(dtype).requires_grad_() for x in given]
    q, k, v, s, radial, *first = leaves
    state = forms.ScanState(*first, length=5) if first else forms.ScanState.empty(k, v)
    out, last = form(q, k, v, s, radial, state, *chunk)
    results = [out, last.log_e, last.p, last.bases]
    generator = torch.Generator().manual_seed(1)
    loss = sum((x * torch.randn(x.shape, generator=generator).to(x)).sum() for x in results)
    assert last.length == state.length + s.shape[-1]
    return [x.detach() for x in (*results, *torch.autograd.grad(loss, leaves))]


def errors(found, expected):
    """Return the RMS error of each tensor over its RMS."""
    assert all(x.isfinite().all() for x in found)
    return [
        float((x.double() - y).norm() / y.norm()) if y.any() else float(x.abs().max())
        for x, y in zip(found, expected, strict=True)
    ]


def check(given, chunk):
    expected = run(forms.recurrent, given, dtype=torch.float64)
    assert max(errors(run(_zeros_triton.chunked, given, chunk), expected)) <= ROUNDING


def check_against(theirs, ours, expected):
    """Hold results to twice the error of PyTorch's chunked form in the same precision."""
    pairs = zip(errors(ours, expected), errors(theirs, expected), strict=True)
    assert all(ours <= max(2 * theirs, ROUNDING) for ours, theirs in pairs)


@pytest.mark.parametrize("state", [False, True])
@pytest.mark.parametrize(
    ("length", "chunk"),
    [(1, 64), (15, 1), pytest.param(37, 16, marks=FULL), pytest.param(70, 24, marks=FULL)],
)
def test_values_and_every_gradient(length, chunk, state):
    check(inputs(length, state=state), chunk)


@pytest.mark.full
@pytest.mark.parametrize(
    ("keys", "values"), [(64, 64), (16, 32), pytest.param(128, 128, marks=FULL)]
)
def test_channels(keys, values):
    check(inputs(70, keys, values, state=True), 64)


@pytest.mark.full
def test_more_sequences_and_heads():
    check(inputs(17, state=True, batch=2, heads=2), 16)


@pytest.mark.full
@pytest.mark.parametrize("size", [1e2, 1e4, -1e4])
def test_logits_that_overflow_are_right(size):
    # The gradient of ln E is summed in the exponent, 1e4 wide: no worse than twice PyTorch's form.
    given = inputs(40, size=size)
    assert given[3].max() > 100
    expected = run(forms.recurrent, given, dtype=torch.float64)
    ours, theirs = (run(form, given, 16) for form in (_zeros_triton.chunked, forms.chunked))
    check_against(theirs, ours, expected)


@pytest.mark.full
def test_logits_that_rise_and_fall_between_chunks():
    given = inputs(64)
    levels = torch.tensor([-300.0, 0.0, 300.0, -300.0], device=DEVICE)
    given[3] = given[3] + levels.repeat_interleave(16)
    check(given, 16)


@pytest.mark.full
def test_equal_inputs_mix_nothing():
    q, k, v, s, _ = (x[:, :, :1].expand(-1, -1, 40, *x.shape[3:]) for x in inputs(1))
    share = 1 / torch.arange(1, 41, device=DEVICE)
    radial = torch.stack([torch.ones(40, device=DEVICE), 0.3 * share, -share], dim=-1)
    given = [q, k, v, s, radial.expand(1, 1, 40, 3)]
    out, *rest = run(_zeros_triton.chunked, given, 16)
    assert out.abs().max() < 1e-5
    assert all(x.isfinite().all() for x in rest)


@pytest.mark.full
def test_inputs_of_any_layout():
    straight = inputs(9, heads=2)
    turned = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in straight]
    assert not any(x.is_contiguous() for x in turned)
    found = (run(_zeros_triton.chunked, given, 16) for given in (turned, straight))
    for a, b in zip(*found, strict=True):
        assert torch.equal(a, b)


def test_later_positions_change_no_earlier_output_by_a_bit():
    given = inputs(40)
    with torch.no_grad():
        state = forms.ScanState.empty(*given[1:3])
        before, _ = _zeros_triton.chunked(*given, state, 16)
        for x in given:
            x[:, :, 21:] += 1
        after, _ = _zeros_triton.chunked(*given, state, 16)
    assert torch.equal(before[:, :, :21], after[:, :, :21])
    assert not torch.equal(before[:, :, 21:], after[:, :, 21:])


@pytest.mark.full
def test_what_is_kept_for_the_gradient_is_linear():
    def kept(length):
        total = 0

        def count(x):
            nonlocal total
            total += x.numel()
            return x

        q, k, v, s, radial = (x.requires_grad_() for x in inputs(length))
        with torch.autograd.graph.saved_tensors_hooks(count, lambda x: x):
            _zeros_triton.chunked(q, k, v, s, radial, forms.ScanState.empty(k, v), 16)
        return total

    # Two states, q, k and v, six numbers a position, and a few more for ln E and the mean.
    assert kept(64) <= 2 * 3 * 16 * 16 + 64 * (3 * 16 + 16)
    assert kept(128) <= 2 * kept(64)


@pytest.mark.full
def test_the_operators_are_registered_as_torch_expects():
    q, k, v, s, radial, log_e, _, bases = (x.requires_grad_() for x in inputs(3, state=True))
    numbers = torch.stack([s, s + 4, s - 1, *radial.unbind(-1)]).detach().requires_grad_()
    given = q, k, v, numbers, log_e, bases, 16
    library.opcheck(_zeros_triton.zeros_forward, given)
    grads = [torch.randn_like(x) for x in (v, bases)]
    plain = [x.detach() if isinstance(x, torch.Tensor) else x for x in given]
    library.opcheck(_zeros_triton.zeros_backward, (*grads, *plain))


@pytest.mark.parametrize("place", range(8))
def test_forward_mode_is_refused_whatever_is_differentiated(place):
    given = inputs(5, state=True)

    def call(x):
        *tensors, log_e, p, bases = (*given[:place], x, *given[place + 1 :])
        return _zeros_triton.chunked(*tensors, forms.ScanState(log_e, p, bases, length=5), 16)[0]

    with pytest.raises(ValueError, match=r"no forward-mode derivative; use tensors on the CPU$"):
        torch.func.jvp(call, (given[place],), (torch.ones_like(given[place]),))


@pytest.mark.full
def test_it_compiles_as_one_graph():
    torch._dynamo.reset()
    given = inputs(9)
    compiled = torch.compile(_zeros_triton.chunked, fullgraph=True, backend="aot_eager")
    for a, b in zip(run(compiled, given, 16), run(_zeros_triton.chunked, given, 16), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.full
@pytest.mark.parametrize(
    "args",
    [
        {},
        {"radial": "softmax", "logits": "linear"},
        {"radial": "none"},
        {"gated": False, "logits": "distance"},
        {"zeroth": "all", "decay": True, "angular": "additive"},
    ],
    ids=str,
)
def test_the_layer_trains_the_same(args, monkeypatch):
    torch.manual_seed(0)
    # Without the norm, which would magnify the rounding of what is zero at the first position.
    layer = attention.build("zeros", n_head=1, head_dim=16, chunk=16, norm=False, **args)
    layer, x = layer.to(DEVICE), torch.randn(1, 20, 16, device=DEVICE)

    def results(form, dtype, reason=None):
        monkeypatch.setattr(_zeros_triton, "refusal", lambda k, v: reason)
        layer.to(dtype)
        given = x.to(dtype).requires_grad_()
        out = form(given)
        grads = torch.autograd.grad(out.square().sum(), [given, *layer.parameters()])
        return [out.detach(), *grads]

    ours = results(layer.forward, torch.float32)
    theirs = results(layer.forward, torch.float32, "PyTorch's form is wanted")
    expected = results(layer.recurrent, torch.float64)
    check_against(theirs, ours, expected)


class OnGPU:
    """What :func:`_zeros_triton.refusal` asks of a tensor."""

    is_cuda, device = True, torch.device("cuda", 0)

    def __init__(self, channels=64, dtype=torch.float32):
        self.dtype, self.shape = dtype, (2, 3, 70, channels)


@pytest.mark.parametrize(
    ("k", "v", "capability", "reason"),
    [
        (OnGPU(), OnGPU(), (9, 0), None),
        (OnGPU(32), OnGPU(128), (8, 0), None),
        (OnGPU(), OnGPU(), (7, 5), "its kernels are written for NVIDIA's GPUs from the A100 on"),
        (OnGPU(1), OnGPU(), (9, 0), "1 and 64 channels are not both among 32, 64, 128"),
        (OnGPU(), OnGPU(24), (9, 0), "64 and 24 channels are not both among 32, 64, 128"),
        (
            *(2 * [OnGPU(dtype=torch.float64)]),
            (9, 0),
            "its kernels are float32, the tensors torch.float64",
        ),
    ],
)
def test_what_it_serves_on_a_gpu(k, v, capability, reason, monkeypatch):
    monkeypatch.setattr(_zeros_triton, "_capability", lambda device: capability)
    assert _zeros_triton.refusal(k, v) == reason


def test_it_refuses_other_devices_and_a_missing_package(monkeypatch):
    k = torch.zeros(1, 1, 8, 16)
    assert _zeros_triton.refusal(k, k) == "its kernels run on CUDA; the tensors are on cpu"
    monkeypatch.setattr(_zeros_triton, "kernels", None)
    assert _zeros_triton.refusal(OnGPU(), OnGPU()) == "the package triton is not installed"


@pytest.mark.parametrize(
    ("triton_refuses", "fla_refuses", "used"),
    [
        (None, None, "triton"),
        (None, "why", "triton"),
        ("why", None, "fla"),
        ("why", "why", "torch"),
    ],
)
def test_the_first_form_that_serves_is_used(triton_refuses, fla_refuses, used, monkeypatch):
    monkeypatch.setattr(_zeros_triton, "refusal", lambda k, v: triton_refuses)
    monkeypatch.setattr(fla, "head_refusal", lambda k, v: fla_refuses)
    calls = []
    whole = forms.chunked
    for name, place, attribute in (
        ("triton", _zeros_triton, "chunked"),
        ("fla", forms, "three_sums"),
        ("torch", forms, "chunked"),
    ):

        def recorded(*given, name=name):
            calls.append(name)
            return whole(*given[:6], 16)

        monkeypatch.setattr(place, attribute, recorded)
    layer, x = attention.build("zeros", n_head=2, head_dim=16), torch.randn(1, 20, 32)
    torch.testing.assert_close(layer(x), layer.recurrent(x), rtol=1e-3, atol=1e-3)
    assert calls == [used]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("size", [1.0, 1e4])
@pytest.mark.parametrize("channels", _zeros_triton.CHANNELS)
def test_at_length_on_a_gpu(channels, size):
    given = inputs(2000, channels, channels, heads=8, size=size)
    assert _zeros_triton.refusal(given[1], given[2]) is None
    expected = run(forms.chunked, given, 64, dtype=torch.float64)
    ours, theirs = (run(form, given, 64) for form in (_zeros_triton.chunked, forms.chunked))
    check_against(theirs, ours, expected)
