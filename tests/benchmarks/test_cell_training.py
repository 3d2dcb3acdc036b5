"""A cell's training continues where a killed run stood, and ends as if nothing had happened."""

import csv
import errno
import os

import pytest
import torch

from benchmarks import newton, newton_cells, presets, training
from symreg import cells
from symreg.cells import Cell

CHECKPOINT_STEPS, KILLED_AT = 20, 31


class Killed(Exception):
    pass


def killed(step, steps):
    if step == KILLED_AT:
        raise Killed


@pytest.fixture(scope="module")
def grid():
    """Return the cells of ``tiny`` that train softmax, with a checkpoint every 20 steps."""
    found = newton.cells(newton.Options("identifiable", presets.get("tiny")))
    frequent = {"training": {"checkpoint_steps": CHECKPOINT_STEPS}}
    pretraining = next(c for c in found if c.kind == "pretrain")
    force = next(c for c in found if c.kind == "force" and c.needs)
    pretraining = Cell("pretrain", {**pretraining.config, **frequent})
    force = Cell("force", {**force.config, **frequent}, needs={"pretrained": pretraining})
    return {"pretrain": pretraining, "force": force}


def compute(cell, out, progress=lambda *_: None):
    newton_cells.initialise()
    return cells.compute_cell(newton_cells.COMPUTE[cell.kind], cell, out, progress)


def results(cell, out):
    """Return weights and curves."""
    folder = cell.folder(out)
    weights = torch.load(folder / training.CHECKPOINT, weights_only=True)["state_dict"]
    with (folder / training.CURVES).open(newline="") as file:
        return weights, [row | {"epoch": ""} for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def uninterrupted(grid, tmp_path_factory):
    out = tmp_path_factory.mktemp("uninterrupted")
    return out, {kind: compute(cell, out)["line"]["metrics"] for kind, cell in grid.items()}


@pytest.mark.parametrize("kind", ["pretrain", "force"])
def test_a_killed_training_continues_from_its_checkpoint(grid, uninterrupted, tmp_path, kind):
    cell, (reference, metrics) = grid[kind], uninterrupted
    for need in cell.needs.values():
        need.folder(tmp_path).parent.mkdir(parents=True)
        need.folder(tmp_path).symlink_to(need.folder(reference))
    assert compute(cell, tmp_path, killed)["line"]["status"] == "failed"
    steps = []
    record = compute(cell, tmp_path, lambda step, total: steps.append(step))
    assert steps == list(range(CHECKPOINT_STEPS + 1, cell.config["steps"] + 1))
    assert record["line"]["metrics"] == metrics[kind]
    (weights, curves), (their_weights, their_curves) = (
        results(cell, out) for out in (tmp_path, reference)
    )
    for name, value in weights.items():
        torch.testing.assert_close(value, their_weights[name], rtol=0, atol=0, msg=name)
    assert curves == their_curves
    assert {path.name for path in tmp_path.glob("cells/*")} == {
        c.key for c in (cell, *cell.needs.values())
    }, "nothing is left of the resume"


def test_a_disk_without_hard_links_does_not_cost_the_training(grid, tmp_path, monkeypatch):
    def without(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", without)
    cell = grid["pretrain"]
    assert compute(cell, tmp_path)["line"]["status"] == "ok"
    assert (cell.folder(tmp_path) / training.CHECKPOINT).is_file()


def test_a_training_is_not_resumed_through_a_link(grid, tmp_path):
    cell = grid["pretrain"]
    kept = cell.folder(tmp_path).with_name(f"{cell.key}.training")
    kept.mkdir(parents=True)
    (kept / "job.json").symlink_to(tmp_path / "victim")
    assert "job.json is a link; delete" in compute(cell, tmp_path)["line"]["error"]
    assert not (tmp_path / "victim").exists()


def test_what_fails_after_training_does_not_cost_the_training(grid, tmp_path, monkeypatch):
    cell = grid["pretrain"]
    with monkeypatch.context() as broken:
        broken.setattr(training, "last_value", lambda *_: 1 / 0)
        assert "ZeroDivisionError" in compute(cell, tmp_path)["line"]["error"]
    steps = []
    assert compute(cell, tmp_path, lambda step, _: steps.append(step))["line"]["status"] == "ok"
    assert steps == []
