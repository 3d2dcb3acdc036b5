import math

import pytest
import torch

from attention.parts.rotations import Rotations
from attention.positions import (
    alibi_slopes,
    distance_bias,
    dynamic_ntk_base,
    rope,
    sinusoidal,
)


def test_rope_is_a_rotation_of_each_channel_pair():
    x = torch.randn(3, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    positions = torch.tensor([0, 1, 2, 7, 40])
    out = rope(x, positions, base=100.0)
    for row, position in enumerate(positions.tolist()):
        for j in range(4):
            angle = position * 100.0 ** (-2 * j / 8)
            a, b = x[:, row, j], x[:, row, j + 4]
            expected = torch.stack(
                [
                    a * math.cos(angle) - b * math.sin(angle),
                    a * math.sin(angle) + b * math.cos(angle),
                ]
            )
            found = torch.stack([out[:, row, j], out[:, row, j + 4]])
            torch.testing.assert_close(found, expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("first", [0, 3])
def test_shared_rotations_are_those_of_rope_bit_for_bit(dtype, first):
    x = torch.randn(2, 7, 8, generator=torch.Generator().manual_seed(0)).to(dtype)
    rotations = Rotations()
    for base in (100.0, 10_000.0):
        expected = rope(x, torch.arange(first, first + 7), base)
        for _ in range(2):  # computed, then known
            assert torch.equal(rotations.rope(x, first, base), expected)
    with pytest.raises(ValueError, match="even head_dim, got 7"):
        rotations.rope(x[..., :7], first, 100.0)


def test_rope_keeps_norms_and_the_first_position():
    x = torch.randn(2, 6, 16, dtype=torch.float64)
    out = rope(x, torch.arange(6))
    torch.testing.assert_close(out.norm(dim=-1), x.norm(dim=-1), rtol=1e-6, atol=0)
    assert torch.equal(out[:, 0], x[:, 0])
    assert not torch.allclose(out[:, 1:], x[:, 1:])


@pytest.mark.parametrize("base", [100.0, 10_000.0, 500_000.0])
@pytest.mark.parametrize("shift", [1, 17, 1000])
def test_products_depend_on_the_distance_alone(shift, base):
    generator = torch.Generator().manual_seed(1)
    q, k = (torch.randn(6, 16, dtype=torch.float64, generator=generator) for _ in range(2))
    positions = torch.arange(6)
    here = rope(q, positions, base) @ rope(k, positions, base).T
    there = rope(q, positions + shift, base) @ rope(k, positions + shift, base).T
    torch.testing.assert_close(here, there, rtol=0, atol=1e-6 + 3e-6 * shift)
    uneven = rope(q, positions + shift, base) @ rope(k, positions, base).T
    assert not torch.allclose(here, uneven, atol=0.1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_rotates_by_exact_angles(dtype):
    x = torch.ones(1, 2000, 4, dtype=dtype)
    out = rope(x, torch.arange(2000))
    assert out.dtype == dtype
    exact = rope(x.double(), torch.arange(2000))
    assert (out.double() - exact).abs().max() < 4 * torch.finfo(dtype).eps


def test_odd_dimensions_are_refused():
    with pytest.raises(ValueError, match="even head_dim, got 5"):
        rope(torch.zeros(1, 2, 5), torch.arange(2))
    with pytest.raises(ValueError, match="even width, got 5"):
        sinusoidal(4, 5)


def test_the_ntk_base_grows_beyond_the_trained_length():
    assert dynamic_ntk_base(1e4, 64, 1024, 1024) == 1e4
    assert dynamic_ntk_base(1e4, 64, 10, 1024) == 1e4
    assert dynamic_ntk_base(1e4, 64, 4096, 1024) == pytest.approx(1e4 * 4 ** (64 / 62), rel=1e-14)
    # s = 2: 2 * 4 - 1 = 7
    assert dynamic_ntk_base(1e4, 8, 4096, 1024, 2.0) == pytest.approx(1e4 * 7 ** (4 / 3))
    # The longest wavelength stretches by as much as the sequence; the shortest stays.
    grown = dynamic_ntk_base(1e4, 64, 4096, 1024)
    assert grown ** (62 / 64) == pytest.approx(4 * 1e4 ** (62 / 64))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((64, 0, 8), "lengths must be positive, got 0 and 8"),
        ((64, 8, -1), "lengths must be positive, got 8 and -1"),
        ((2, 16, 8), "head_dim > 2, got 2"),
    ],
)
def test_bad_sizes_of_ntk_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        dynamic_ntk_base(1e4, *arguments)


def test_sinusoidal_positions_are_sines_and_cosines():
    table = sinusoidal(50, 6, base=100.0)
    assert table.shape == (50, 6)
    for position in (0, 1, 7, 49):
        for j in range(3):
            angle = position / 100.0 ** (2 * j / 6)
            assert table[position, 2 * j].item() == pytest.approx(math.sin(angle), abs=1e-5)
            assert table[position, 2 * j + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)
    products = table @ table.T  # a function of the distance
    torch.testing.assert_close(products[:-9, :-9], products[9:, 9:], rtol=0, atol=1e-4)


def test_alibi_slopes_are_the_published_ones():
    eight = [2.0**-h for h in range(1, 9)]
    more = [2.0 ** (-h / 2) for h in (1, 3, 5, 7)]
    assert alibi_slopes(8).tolist() == eight
    twelve = alibi_slopes(12, torch.float64).tolist()
    assert twelve == pytest.approx(eight + more, rel=1e-15)
    assert alibi_slopes(1).tolist() == [2.0**-8]
    assert alibi_slopes(16).tolist() == pytest.approx([2 ** (-h / 2) for h in range(1, 17)])


def test_a_learned_bias_past_its_table_follows_the_rule():
    table = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    distance = torch.tensor([[0, 2, 3], [1, 9, 0]])
    assert distance_bias(table, distance, "zero").tolist() == [
        [[1, 3, 0], [2, 0, 1]],
        [[4, 6, 0], [5, 0, 4]],
    ]
    assert distance_bias(table, distance, "last").tolist() == [
        [[1, 3, 3], [2, 3, 1]],
        [[4, 6, 6], [5, 6, 4]],
    ]
    assert torch.equal(
        distance_bias(table, distance.clamp_max(2), "refuse"),
        distance_bias(table, distance, "last"),
    )
    with pytest.raises(ValueError, match="distance of 9 is beyond the 3 learned biases"):
        distance_bias(table, distance, "refuse")
