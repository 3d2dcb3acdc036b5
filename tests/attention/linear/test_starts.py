"""Where weights start, against loops as published: training shows a wrong one late or never."""

import pytest
import torch
from torch.nn.functional import softplus

from attention import linear
from attention.linear._gate import StepSize
from worldmodel.models.backbone import GPT

N_HEAD, HEAD_DIM = 4, 6
WIDTH = N_HEAD * HEAD_DIM

places = pytest.mark.parametrize(("layer", "n_layer"), [(0, 1), (0, 3), (1, 3), (2, 3), (6, 12)])


def built(name, layer=0, n_layer=1, n_head=N_HEAD, head_dim=HEAD_DIM):
    torch.manual_seed(0)
    return linear.build(name, n_head=n_head, head_dim=head_dim, layer=layer, n_layer=n_layer)


def ratios(layer, n_layer):
    """Return what RWKV-LM calls ratio_0_to_1 (0 / 0 in a lone layer) and ratio_1_to_almost0."""
    return layer / (n_layer - 1) if n_layer > 1 else 0.0, 1 - layer / n_layer


def assert_starts(parameter, by_channel):
    expected = torch.tensor([by_channel(i) for i in range(WIDTH)])
    torch.testing.assert_close(parameter.detach().flatten(), expected, rtol=0, atol=1e-5)


@places
@pytest.mark.parametrize("name", ["rwkv6", "rwkv7"])
def test_output_norms_of_rwkv_rise_with_the_depth(name, layer, n_layer):
    norm = built(name, layer, n_layer).norm
    assert_starts(norm.weight, lambda i: ((layer + 1) / n_layer) ** 0.7)
    assert torch.all(norm.bias == 0)


@places
def test_rwkv6_starts_as_published(layer, n_layer):
    mixer, (rising, falling) = built("rwkv6", layer, n_layer), ratios(layer, n_layer)
    assert_starts(mixer.blend, lambda i: 1 - (i / WIDTH) ** falling)
    for name, start in {
        "receptance": lambda i: 1 - (i / WIDTH) ** (0.5 * falling),
        "key": lambda i: 1 - (i / WIDTH) ** falling,
        "value": lambda i: 1 - ((i / WIDTH) ** falling + 0.3 * rising),
        "gate": lambda i: 1 - (i / WIDTH) ** (0.5 * falling),
        "decay": lambda i: 1 - (i / WIDTH) ** falling,
    }.items():
        assert_starts(mixer.shifts[name].offset, start)
        assert mixer.shifts[name].down.shape == (WIDTH, 32)
    last = WIDTH - 1
    assert_starts(mixer.decay.offset, lambda i: -6 + 5 * (i / last) ** (0.7 + 1.3 * rising))
    assert mixer.decay.down.shape == (WIDTH, 64)
    assert_starts(mixer.bonus, lambda i: rising * (1 - i / last) + 0.1 * ((i + 1) % 3 - 1))


@places
def test_rwkv7_starts_as_published(layer, n_layer):
    mixer, (rising, falling) = built("rwkv7", layer, n_layer), ratios(layer, n_layer)
    powers = {"receptance": 0.2, "decay": 0.9, "key": 0.7, "value": 0.7, "rate": 0.9, "gate": 0.2}
    assert set(mixer.shifts) == set(powers)
    for name, power in powers.items():
        assert_starts(mixer.shifts[name], lambda i, p=power: 1 - (i / WIDTH) ** (p * falling))

    def linear_of(i):
        return i / (WIDTH - 1) - 0.5

    def zigzag(i):
        half = (HEAD_DIM - 1) / 2
        return (z := (i % HEAD_DIM - half) / half) * abs(z)

    def decay(i):
        return -6 + 6 * (i / (WIDTH - 1)) ** (1 + rising**0.3) + 0.5 + 2.5 * zigzag(i)

    assert_starts(mixer.decay.offset, decay)
    assert_starts(mixer.rate.offset, lambda i: -0.19 + 0.3 * zigzag(i) + 0.4 * linear_of(i))
    assert mixer.gate.offset is None
    assert_starts(mixer.removal, lambda i: 0.71 - 0.1 * linear_of(i))
    assert_starts(mixer.replacement, lambda i: 1.02)
    assert_starts(mixer.bonus, lambda i: -0.04)


def test_low_ranks_of_rwkv7_grow_with_the_width():
    for n_head, ranks in ((N_HEAD, (32, 32, 32)), (16, (64, 64, 160))):
        mixer = built("rwkv7", n_head=n_head, head_dim=64 if n_head == 16 else HEAD_DIM)
        assert tuple(x.down.shape[1] for x in (mixer.decay, mixer.rate, mixer.gate)) == ranks


@pytest.mark.parametrize("name", ["rwkv6", "rwkv7"])
def test_low_ranks_of_rwkv_start_as_their_offset(name):
    found = [module for module in built(name).modules() if hasattr(module, "up")]
    assert len(found) == {"rwkv6": 6, "rwkv7": 3}[name]
    for module in found:
        assert torch.all(module.down == 0)
        assert 0.009 < module.up.abs().max() <= 0.01


def test_steps_are_log_uniform_and_rates_uniform():
    torch.manual_seed(0)
    gate = StepSize(3, 4000)
    step = softplus(gate.step_bias.detach())
    assert step.min() == pytest.approx(1e-3, rel=0.05)
    assert step.max() == pytest.approx(0.1, rel=0.05)
    assert step.median() == pytest.approx(0.01, rel=0.1)
    rate = gate.log_rate.detach().exp()
    assert rate.min() == pytest.approx(1, rel=0.05)
    assert rate.max() == pytest.approx(16, rel=0.01)
    assert rate.mean() == pytest.approx(8.5, rel=0.05)
    for name in ("mamba2", "gated_deltanet"):
        assert isinstance(built(name).decay, StepSize)


def test_forget_gate_of_gla_has_rank_16():
    low, high = built("gla").forget
    assert low.weight.shape == (16, WIDTH)
    assert high.weight.shape == (WIDTH // 2, 16)


def test_lower_bounds_of_hgrn2_rise_with_the_depth():
    gpt = GPT("hgrn2", {}, n_layer=4, n_head=2, head_dim=4)
    assert [block.attention.lower_bound for block in gpt.blocks] == [0, 0.25, 0.5, 0.75]
    fixed = GPT("hgrn2", {"lower_bound": 0.3}, n_layer=2, n_head=2, head_dim=4)
    assert [block.attention.lower_bound for block in fixed.blocks] == [0.3, 0.3]
    assert fixed.blocks[1].attention.label == "hgrn2 lower_bound=0.3"
    assert linear.build("hgrn2", n_head=2, head_dim=4).lower_bound == 0
