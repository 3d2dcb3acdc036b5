import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def tensors():
    """Random q, k, v [B, H, L, D]; queries are the last Lq positions."""

    def make(length, *, seed=0, batch=2, heads=3, dim=8, queries=None, dtype=torch.float64):
        generator = torch.Generator().manual_seed(seed)
        shapes = [(batch, heads, queries or length, dim), *2 * [(batch, heads, length, dim)]]
        return tuple(
            torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
            for shape in shapes
        )

    return make
