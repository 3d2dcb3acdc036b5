import json

import pytest
import torch

from attention.__main__ import main
from attention.triton import tiles
from attention.triton.tools import tune


def test_it_needs_a_gpu(refusal):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert "CUDA" in refusal(main, ["tune"])


def test_tables_are_written_as_they_are_shipped(tmp_path):
    out = tmp_path / "tiles.json"
    shipped = tune.TABLE.read_text()
    tune.save(json.loads(shipped), out)
    assert out.read_text() == shipped


@pytest.mark.parametrize("kernel", tiles.KERNELS)
def test_candidates_are_distinct_and_give_each_warp_rows(kernel):
    found = tune.candidates(kernel)
    assert len(found) == len(set(found))
    assert all(tile.warps in (4, 8) and tile.rows % 64 == 0 for tile in found)
