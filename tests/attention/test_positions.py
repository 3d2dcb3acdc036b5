import math

import pytest
import torch

from attention.positions import rope


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


def test_rope_keeps_norms_and_the_first_position():
    x = torch.randn(2, 6, 16, dtype=torch.float64)
    out = rope(x, torch.arange(6))
    torch.testing.assert_close(out.norm(dim=-1), x.norm(dim=-1), rtol=1e-6, atol=0)
    assert torch.equal(out[:, 0], x[:, 0])
    assert not torch.allclose(out[:, 1:], x[:, 1:])


@pytest.mark.parametrize("shift", [1, 17, 1000])
def test_products_depend_on_the_distance_alone(shift):
    generator = torch.Generator().manual_seed(1)
    q, k = (torch.randn(6, 16, dtype=torch.float64, generator=generator) for _ in range(2))
    positions = torch.arange(6)
    here = rope(q, positions) @ rope(k, positions).T
    there = rope(q, positions + shift) @ rope(k, positions + shift).T
    torch.testing.assert_close(here, there, rtol=0, atol=1e-6 + 3e-6 * shift)
    uneven = rope(q, positions + shift) @ rope(k, positions).T
    assert not torch.allclose(here, uneven, atol=0.1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_rotates_by_exact_angles(dtype):
    x = torch.ones(1, 2000, 4, dtype=dtype)
    out = rope(x, torch.arange(2000))
    assert out.dtype == dtype
    exact = rope(x.double(), torch.arange(2000))
    assert (out.double() - exact).abs().max() < 4 * torch.finfo(dtype).eps


def test_odd_dimension_is_refused():
    with pytest.raises(ValueError, match="even head_dim, got 5"):
        rope(torch.zeros(1, 2, 5), torch.arange(2))
