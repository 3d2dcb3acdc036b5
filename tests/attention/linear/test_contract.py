"""What every linear mixer computes: its forms, its state, its precision, its work."""

import copy
from functools import partial

import numpy as np
import pytest
import torch
from sympy import Symbol
from sympy.parsing.sympy_parser import (
    convert_xor,
    implicit_multiplication,
    parse_expr,
    standard_transformations,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attention import linear
from attention.linear import RecurrentState
from tests.attention.linear.by_name import arguments_of, inputs, mixer_of
from tests.tiers import corners

POWERS = ("flash_gau", "hyena", "mamba", "multihead_hyena", "tnn")
"""Mixers whose outputs are a third or higher power of large inputs, more than float16 holds."""
LENGTHS = ("length", "max_length", "segment")
"""What L is in the size of a state."""

dear = pytest.mark.parametrize("name", corners(linear.names(), "gla", "rwkv7", "zeros"))
"""Mark of what costs too much to ask every mixer in the quick tier."""


def gradients_of(mixer, run, x):
    """Return the output, and the gradients by the input and by every parameter."""
    x = x.clone().requires_grad_()
    out = run(x)
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(3), dtype=out.dtype)
    given = [x, *mixer.parameters()]
    return [out, *torch.autograd.grad((out * weights).sum(), given, materialize_grads=True)]


def in_parts(mixer, x, sizes, run):
    """Return the output of a sequence that is read in parts with a cache."""
    cache, found = mixer.new_cache(), []
    for part in x.split(sizes, dim=1):
        found.append(run(part, cache))
    assert cache.length == x.shape[1]
    return torch.cat(found, dim=1)


def assert_near(found, expected, tolerance=1e-9):
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(
            a, b, rtol=0, atol=tolerance * max(1.0, float(b.detach().abs().max()))
        )


def test_in_brief(other):
    """Both forms agree, one position at a time too, and no output sees a later input."""
    mixer, x = mixer_of(other, chunk=3), inputs(7)
    changed = torch.cat([x[:, :5], -x[:, 5:]], dim=1)
    with torch.no_grad():
        stepwise = mixer.recurrent(x)
        assert stepwise.abs().max() > 1e-3
        assert_near([mixer(x), in_parts(mixer, x, [1] * 7, mixer)], [stepwise] * 2)
        assert_near([in_parts(mixer, x, [4, 3], mixer)], [stepwise])
        assert_near([mixer(changed)[:, :5]], [stepwise[:, :5]], 1e-13)


def test_chunks_and_steps_agree_in_values_and_gradients(name):
    for length, chunk in ((1, 1), (1, 64), (2, 1), (2, 3), (13, 1), (13, 3), (13, 5), (13, 64)):
        mixer, x = mixer_of(name, chunk=chunk), inputs(length)
        stepwise = gradients_of(mixer, mixer.recurrent, x)
        assert_near(gradients_of(mixer, mixer, x), stepwise)
        assert stepwise[0].shape == x.shape


@dear
def test_a_sequence_in_parts_is_the_whole_in_values_and_gradients(name):
    mixer, x = mixer_of(name, chunk=4), inputs(13)
    whole = gradients_of(mixer, mixer.recurrent, x)
    for sizes in ([1] * 13, [5, 1, 1, 5, 1], [1, 12], [4, 9]):
        for run in (mixer, mixer.recurrent):
            parts = gradients_of(mixer, partial(in_parts, mixer, sizes=sizes, run=run), x)
            assert_near(parts, whole)


def test_no_position_changes_nothing(name):
    mixer, x = mixer_of(name), inputs(5)
    for run in (mixer, mixer.recurrent):
        cache = mixer.new_cache()
        assert run(x[:, :0], cache).shape == (2, 0, 8)
        assert cache == RecurrentState({}, 0)
        parts = [run(part, cache) for part in x.split([2, 0, 3], dim=1)]
        torch.testing.assert_close(torch.cat(parts, dim=1), mixer(x), rtol=0, atol=1e-9)


def test_an_empty_sequence_has_gradients_of_zero(name):
    mixer, x = mixer_of(name), inputs(5).requires_grad_()
    mixer(x[:, :0]).sum().backward()
    assert torch.equal(x.grad, torch.zeros_like(x))
    assert mixer(x[:0]).shape == (0, 5, 8)


def test_inputs_of_another_shape_are_refused(name):
    mixer, x = mixer_of(name), inputs(5)
    for wrong, shape in ((x[0], "5, 8"), (x[None], "1, 2, 5, 8"), (x[..., :4], "2, 5, 4")):
        for run in (mixer, mixer.recurrent):
            with pytest.raises(ValueError, match=rf"x must be \[B, L, 8\], got \[{shape}\]"):
                run(wrong)


def test_a_cache_of_other_sequences_is_refused(name):
    mixer = mixer_of(name)
    for run, held, given in ((mixer, 3, 1), (mixer.recurrent, 1, 3)):
        cache = mixer.new_cache()
        run(inputs(4, batch=held), cache)
        with pytest.raises(ValueError, match=rf"holds {held} sequences, x has {given}: .* new_c"):
            run(inputs(1, batch=given), cache)


def test_a_later_token_changes_no_earlier_output(name):
    mixer, x = mixer_of(name, chunk=5), inputs(13)
    for edited in (1, 5, 12):
        other = x.clone()
        other[:, edited:] += inputs(13, seed=6)[:, edited:]
        for run in (mixer, mixer.recurrent):
            before, after = run(x), run(other)
            torch.testing.assert_close(before[:, :edited], after[:, :edited], rtol=0, atol=1e-13)
            changed = (before[:, edited:] - after[:, edited:]).abs().amax(dim=-1)
            assert bool((changed > 1e-9).all())


def test_what_came_before_matters(name):
    mixer, x = mixer_of(name), inputs(13)
    alone = mixer(x[:, 6:])
    assert (mixer(x)[:, 6:] - alone).abs().max() > 1e-4


@dear
def test_gradients_are_those_of_finite_differences(name):
    mixer = mixer_of(name, n_head=1, chunk=3)
    x = inputs(5, width=4, batch=1).requires_grad_()
    assert torch.autograd.gradcheck(mixer, (x,))


def test_sequences_do_not_mix(name):
    mixer, x = mixer_of(name), inputs(7, batch=3)
    alone = torch.cat([mixer(row[None]) for row in x])
    torch.testing.assert_close(mixer(x), alone, rtol=0, atol=1e-12)


def test_every_parameter_learns(name):
    mixer = mixer_of(name)
    _, *found = gradients_of(mixer, mixer, inputs(9))
    for gradient in found:
        assert gradient.isfinite().all()
        assert gradient.abs().max() > 0


@pytest.mark.parametrize(("n_head", "head_dim"), [(1, 4), (3, 8)])
def test_the_state_has_the_size_it_is_said_to_have_and_does_not_grow(name, n_head, head_dim):
    kind = linear.get(name)
    formula = parse_expr(
        kind.kept,
        {**{symbol: Symbol(symbol) for symbol in "HDNL"}},
        transformations=(*standard_transformations, convert_xor, implicit_multiplication),
    )
    mixer = mixer_of(name, n_head, head_dim)
    (length,) = [mixer.args[x] for x in LENGTHS if x in mixer.args] or [0]
    arguments = {"N": mixer.args.get("state", 0), "L": length}
    sizes = {"H": n_head, "D": head_dim, **arguments}
    for length in (1, 2, 40):
        cache = mixer.new_cache()
        assert cache == RecurrentState({}, 0)
        mixer(inputs(length, mixer.width, batch=3), cache)
        kept = cache.tensors.values()
        assert sum(x.numel() for x in kept) == 3 * formula.subs(sizes)
        assert all(len(x) == 3 for x in kept)
        # A view would keep all positions in memory.
        assert all(x.untyped_storage().nbytes() == x.nbytes for x in kept)


def test_a_state_can_be_continued_twice(name):
    mixer, x = mixer_of(name), inputs(9)
    cache = mixer.new_cache()
    mixer(x[:, :4], cache)
    kept = copy.copy(cache)
    first = mixer(x[:, 4:], cache)
    assert torch.equal(mixer(x[:, 4:], kept), first)


def test_saved_and_loaded_it_is_the_same(name, tmp_path):
    x = inputs(6)
    first, second = mixer_of(name), mixer_of(name, seed=1)
    assert not torch.equal(first(x), second(x))
    torch.save(first.state_dict(), tmp_path / "state.pt")
    second.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert torch.equal(first(x), second(x))
    assert torch.equal(copy.deepcopy(first)(x), first(x))
    assert repr(name) in repr(first)


@dear
def test_low_precision_is_near_and_keeps_its_type(name):
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        exact, x = mixer_of(name), inputs(20)
        found = copy.deepcopy(exact).to(dtype)(x.to(dtype))
        assert found.dtype == dtype
        expected = exact.to(dtype).double()(x.to(dtype).double())
        error = (found.double() - expected).abs().max() / expected.abs().max()
        # The sines of a Hyena filter, three on one another, make 1e4 of a rounding error.
        single = 1e-2 if "hyena" in name else 1e-4
        assert error < {torch.float32: single}.get(dtype, 30 * torch.finfo(dtype).eps)


def test_autocast_is_near(name):
    mixer, x = mixer_of(name, dtype=torch.float32), inputs(20, dtype=torch.float32)
    plain = mixer(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = mixer(x)
    assert (cast.float() - plain).abs().max() < 0.1 * plain.abs().max()


@dear
def test_sums_are_float32_under_autocast(name):
    """Heads are the same in both forms; sums in bfloat16 would differ by their rounding, 1e-2."""
    mixer, x = mixer_of(name, dtype=torch.float32), inputs(300, dtype=torch.float32)
    states = []
    for run in (mixer, mixer.recurrent):
        cache = mixer.new_cache()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            run(x, cache)
        states.append(cache.tensors)
    for what, chunked in states[0].items():
        if not what.startswith(("recent", "last")):  # the inputs of convolutions, as they came
            assert chunked.dtype == torch.float32
        assert_near([chunked], [states[1][what]], 1e-5)


@dear
@pytest.mark.parametrize("case", ["identical tokens", "zeros", "large", "tiny"])
def test_odd_inputs_stay_finite(name, case):
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        mixer, x = mixer_of(name, dtype=dtype), inputs(70, dtype=dtype)
        half = dtype == torch.float16
        if half and case == "large" and name in POWERS:
            continue
        x = {
            "identical tokens": x[:, :1].expand_as(x),
            "zeros": torch.zeros_like(x),
            "large": (30 if half else 100) * x,
            "tiny": 1e-20 * x,
        }[case]
        out, *gradients = gradients_of(mixer, mixer, x)
        assert out.isfinite().all()
        # Where float16 holds the output it need not hold the gradients.
        assert half or all(gradient.isfinite().all() for gradient in gradients)


class Work(TorchDispatchMode):
    """Counts the numbers that every operation writes: the time, but for the machine."""

    written = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.written += sum(x.numel() for x in tree_leaves(out) if isinstance(x, torch.Tensor))
        return out


def test_work_is_linear_in_the_length_or_quadratic_as_it_is_said_to_be(name):
    lengths, counts = [512, 1024, 2048], []
    sizes = {"max_length": 2048, "segment": 64}
    sizes = {argument: size for argument, size in sizes.items() if argument in arguments_of(name)}
    mixer = mixer_of(name, head_dim=16, dtype=torch.float32, **sizes)
    for length in lengths:
        with torch.no_grad(), Work() as work:
            mixer(inputs(length, width=32, batch=1, dtype=torch.float32))
        counts.append(work.written)
    power = np.polyfit(np.log(lengths), np.log(counts), 1)[0]
    assert 1.5 < power <= 2.02 if mixer.quadratic else power <= 1.02
