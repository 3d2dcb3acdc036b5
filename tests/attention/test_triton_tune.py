import json
import types

import pytest
import torch

from attention.__main__ import main
from attention.triton import tiles
from attention.triton.tools import aot, tune


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


def test_candidates_are_built_for_the_gpu_at_hand(monkeypatch):
    built = []

    here = types.SimpleNamespace(map=map)  # this process, in place of a pool of others

    def build(*entry, tile, arch):
        built.append(arch)
        rest = {"registers": 9, "local": 0, "spills": 0, "mma": 8, "issues": float(tile.rows)}
        shared = 100 * 1024 if tile.keys > 32 else 1024
        return aot.Report(tiles.key(*entry), tile, shared=shared, arch=arch, **rest)

    monkeypatch.setattr(aot, "build", build)
    found = tune.sound(("dq", "none", 64, 16), 89, here)
    assert set(built) == {89}
    assert found
    assert all(tile.keys <= 32 for tile in found)  # what fits 99 KiB
    assert [tile.rows for tile in found] == sorted(tile.rows for tile in found)
