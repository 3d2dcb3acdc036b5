import pytest
import torch
from torch import nn

import attention
from attention import attend, build
from attention.positions import rope


def inputs(length=12, width=16):
    return torch.randn(2, length, width, generator=torch.Generator().manual_seed(5))


def twin(module, name, **arguments):
    """Return another variant with the same parameters."""
    other = build(name, n_head=module.n_head, head_dim=module.head_dim, **arguments)
    other.load_state_dict(module.state_dict())
    return other


@pytest.mark.parametrize("name", attention.names())
def test_module_projects_rotates_attends_and_projects(name):
    module, x = build(name, n_head=2, head_dim=8), inputs()
    rows = []
    for head in range(2):
        part = slice(8 * head, 8 * head + 8)
        q, k, v = (
            (x @ layer.weight.T)[..., part] for layer in (module.query, module.key, module.value)
        )
        q, k = rope(q, torch.arange(12)), rope(k, torch.arange(12))
        rows.append(attend(q[:, None], k[:, None], v[:, None], name)[:, 0])
    expected = torch.cat(rows, dim=-1) @ module.project.weight.T
    torch.testing.assert_close(module(x), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", attention.names())
def test_module_has_four_square_maps_and_no_more_parameters(name):
    module = build(name, n_head=4, head_dim=6)
    assert sum(p.numel() for p in module.parameters()) == 4 * 24 * 24
    assert isinstance(module, nn.Module)


@pytest.mark.parametrize(("name", "first"), [("lssar", "lssa"), ("softmax_reweighted", "softmax")])
def test_switch_off_leaves_the_first_stage(name, first):
    module, x = build(name, n_head=2, head_dim=8, p=3), inputs()
    plain = twin(module, first)
    assert bool(module.sharpen)
    assert not torch.allclose(module(x), plain(x), atol=1e-4)
    module.set_sharpen(False)
    torch.testing.assert_close(module(x), plain(x), rtol=0, atol=1e-6)
    module.set_sharpen(True)
    assert not torch.allclose(module(x), plain(x), atol=1e-4)


@pytest.mark.parametrize("on", [True, False])
def test_switch_travels_in_the_state(on):
    module, x = build("lssar", n_head=2, head_dim=8), inputs()
    module.set_sharpen(on)
    other = build("lssar", n_head=2, head_dim=8)
    other.set_sharpen(not on)
    other.load_state_dict(module.state_dict())
    assert bool(other.sharpen) is on
    assert torch.equal(module(x), other(x))
    assert "sharpen" in module.state_dict()


def test_arguments_and_backend_reach_the_call():
    module, x = build("lssar", n_head=2, head_dim=8, p=1), inputs()
    assert not torch.allclose(module(x), twin(module, "lssar", p=30)(x), atol=1e-4)
    forced = build("lssar", n_head=2, head_dim=8, backend="sdpa")
    with pytest.raises(ValueError, match="does not serve lssar"):
        forced(x)


def test_order_of_tokens_matters_because_of_rope():
    module = build("softmax", n_head=2, head_dim=8)
    x = inputs(length=6)
    swapped = x[:, [1, 0, 2, 3, 4, 5]]
    assert not torch.allclose(module(x)[:, 5], module(swapped)[:, 5], atol=1e-5)


def test_bad_modules_are_refused_when_built():
    with pytest.raises(ValueError, match="even head_dim, got 7"):
        build("softmax", n_head=2, head_dim=7)
    with pytest.raises(TypeError, match="softmax takes no arguments"):
        build("softmax", n_head=2, head_dim=8, p=3)
