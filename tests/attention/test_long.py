"""Long sequences on a CPU: row by row chunks, no L x L matrix."""

import pytest
import torch

from attention import attend, weights

pytestmark = pytest.mark.full


@pytest.mark.parametrize(
    ("name", "length"), [("lssar", 16384), ("elastic_fixed", 8192), ("entmax", 4096)]
)
def test_thousands_of_tokens_fit_and_agree_with_the_last_rows(name, length):
    torch.manual_seed(0)
    args = {"length": length} if name == "elastic_fixed" else {}
    q, k, v = torch.randn(3, 1, 1, length, 16)
    with torch.no_grad():
        out = attend(q, k, v, name, **args)
        last = weights(q[:, :, -5:], k, name, **args) @ v
    assert out.isfinite().all()
    torch.testing.assert_close(out[:, :, -5:], last, rtol=1e-4, atol=1e-6)
