"""What the fused kernels do not differentiate, or not twice the same, they say."""

import contextlib
import functools

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.utils import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from attention import attend, get, reference
from attention.triton import backend
from tests.attention.fused import MARKS, errors, learned, run, specification, tensors
from tests.tiers import corners

pytestmark = MARKS


@pytest.mark.parametrize("place", range(4))
def test_forward_mode_is_refused_whatever_is_differentiated(place):
    """An operator of torch without a rule for tangents returns zero in silence."""
    inputs = [*tensors(10)[:3], learned(get("elastic"))["tau"]]

    def call(x):
        *given, tau = (*inputs[:place], x, *inputs[place + 1 :])
        return attend(*given, "elastic", backend="triton", parameters={"tau": tau})

    x, message = inputs[place], r"no forward-mode derivative; use backend='reference'$"
    with pytest.raises(ValueError, match=message):
        torch.func.jvp(call, (x,), (torch.ones_like(x),))
    with pytest.raises(ValueError, match=message):
        torch.func.jacfwd(call)(x)
    with forward_ad.dual_level(), pytest.raises(ValueError, match=message):
        call(forward_ad.make_dual(x, torch.ones_like(x)))
    assert torch.isfinite(call(x)).all()


def test_forward_mode_of_the_reference_is_that_of_differences():
    q, k, v, direction = (x.double() for x in tensors(10))

    def call(x):
        return attend(x, k, v, "lssar", backend="reference")

    _, tangent = torch.func.jvp(call, (q,), (direction,))
    step = 1e-6 * direction
    torch.testing.assert_close(tangent, (call(q + step) - call(q - step)) / 2e-6, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ["lssar", "lazy", "softmax"])
def test_the_operator_and_the_plain_call_are_the_same(name, monkeypatch):
    spec, inputs = specification(name), tensors(20, heads=1)
    numbers = learned(spec, 1)
    plain = run(backend.attend, inputs, spec, numbers, torch.float32)
    monkeypatch.setattr(backend.ops, "traced", lambda *tensors: True)
    operator = run(backend.attend, inputs, spec, numbers, torch.float32)
    # What is added up in any order may differ in its last digits on a GPU.
    assert max(errors(operator, [x.double() for x in plain])) < 1e-6


def test_a_call_over_a_further_dimension():
    q, k, v, _ = tensors(10, heads=1, batch=2)

    def call(q, k, v):
        return attend(q, k, v, "lssar", backend="triton")

    found = torch.func.vmap(call)(*(x[:, None] for x in (q, k, v)))
    torch.testing.assert_close(found[:, 0], call(q, k, v))


@pytest.mark.parametrize(
    "total", [torch.sum, lambda out: out.square().sum()], ids=["sum", "square"]
)
def test_a_second_derivative_is_refused(total):
    q, k, v, _ = (x.requires_grad_() for x in tensors(10, heads=1))
    loss = total(attend(q, k, v, "lssar", backend="triton"))
    (gradient,) = torch.autograd.grad(loss, q, create_graph=True)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        gradient.square().sum().backward()


@pytest.mark.full
def test_many_gradients_at_once_are_those_one_by_one():
    q, k, v, upstream = (x.requires_grad_() for x in tensors(10, heads=1))
    out = attend(q, k, v, "lssar", backend="triton")
    several = torch.stack([upstream, 2 * upstream]).detach()
    found = torch.autograd.grad(out, (q, k, v), several, retain_graph=True, is_grads_batched=True)
    expected = torch.autograd.grad(out, (q, k, v), upstream)
    for both, one in zip(found, expected, strict=True):
        torch.testing.assert_close(both, torch.stack([one, 2 * one]))


KINDS = ("plain", "selective", "counted")


def keep_nothing(context, operator, *arguments, **options):
    return checkpoint.CheckpointPolicy.PREFER_RECOMPUTE


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "kind"),
    corners(
        [(name, kind) for name in ("softmax", "lssar") for kind in KINDS],
        *(("lssar", kind) for kind in KINDS[:2]),
    ),
)
def test_checkpoints_recompute_it(name, kind):
    q, k, v, upstream = (x.requires_grad_() for x in tensors(10, heads=1))

    def call(q, k, v):
        return attend(q, k, v, name, backend="triton")

    contexts = functools.partial(checkpoint.create_selective_checkpoint_contexts, keep_nothing)
    options = {"context_fn": contexts} if kind == "selective" else {}
    mode = FlopCounterMode(display=False) if kind == "counted" else contextlib.nullcontext()
    with mode:
        out = checkpoint.checkpoint(call, q, k, v, use_reentrant=False, **options)
    found = torch.autograd.grad(out, (q, k, v), upstream)
    expected = torch.autograd.grad(call(q, k, v), (q, k, v), upstream)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_slopes_made_under_a_mode_are_not_kept():
    q, k, v, _ = tensors(10, heads=3)
    backend.plan._kept_slopes.cache_clear()
    with FakeTensorMode(allow_non_fake_inputs=True):
        attend(q, k, v, "alibi", backend="triton")
    assert type(attend(q, k, v, "alibi", backend="triton")) is torch.Tensor


@pytest.fixture
def deterministic():
    """Ask for deterministic algorithms, and put things back."""
    before = torch.are_deterministic_algorithms_enabled()
    only_warns = torch.is_deterministic_algorithms_warn_only_enabled()
    yield lambda warn_only: torch.use_deterministic_algorithms(True, warn_only=warn_only)
    torch.use_deterministic_algorithms(before, warn_only=only_warns)


NOT_DETERMINISTIC = r"not deterministic; use backend='reference'$"


@pytest.mark.full
@pytest.mark.parametrize("name", ["lazy", "lazy_no_elastic"])
def test_a_learned_bias_is_not_deterministic_and_says_so(name, deterministic):
    spec, inputs = specification(name), tensors(20)
    expected = run(backend.attend, inputs, spec, learned(spec), torch.float32)
    deterministic(warn_only=True)  # as our trainings have it: they go on
    with pytest.warns(UserWarning, match=NOT_DETERMINISTIC):
        found = run(backend.attend, inputs, spec, learned(spec), torch.float32)
    assert max(errors(found, [x.double() for x in expected])) < 1e-6
    deterministic(warn_only=False)
    with pytest.raises(RuntimeError, match=NOT_DETERMINISTIC):
        run(backend.attend, inputs, spec, learned(spec), torch.float32)
    run(reference.attend, inputs, spec, learned(spec), torch.float32)


@pytest.mark.full
@pytest.mark.parametrize(
    "name",
    ["lssar", *(pytest.param(name, marks=pytest.mark.full) for name in ("elastic", "alibi"))],
)
def test_all_else_is_deterministic(name, deterministic):
    spec, inputs = specification(name), tensors(20)
    deterministic(warn_only=False)
    first, again = (
        run(backend.attend, inputs, spec, learned(spec), torch.float32) for _ in range(2)
    )
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(first, again, strict=True))
