"""A cell's training continues where a killed run stood, and ends as if nothing had happened."""

import csv
import errno
import os

import pytest
import torch

from benchmarks import learners, training
from benchmarks.worker import prepare
from orbits.runs import cell as runner
from tests import training_cells
from tests.training_cells import compute

CHECKPOINT_STEPS, KILLED_AT = 20, 31
HOW = {"checkpoint_steps": CHECKPOINT_STEPS}


class Killed(Exception):
    pass


def killed(step, steps):
    if step == KILLED_AT:
        raise Killed


@pytest.fixture(scope="module")
def grid():
    pretraining = training_cells.cell(training_cells.job("pretrain", HOW))
    force = training_cells.job("force", HOW, steps=40, direction_weight=0.3)
    return {
        "pretrain": pretraining,
        "force": training_cells.cell(force, pretraining),
        "density under noise": training_cells.cell(noisy_density()),
        "mixture of worlds": training_cells.cell(mixture_of_worlds()),
    }


def noisy_density():
    job = training_cells.job("pretrain", HOW)
    job["model"] |= {"input": "coordinates", "predicts": "mixture"}
    job["data"]["context_noise"] = 0.05
    return job


def mixture_of_worlds():
    job = training_cells.job("pretrain", HOW)
    world = {"protocol": "neutral_step", "protocol_args": {"n_bins": 128}}
    sizes = {name: job["model"][name] for name in ("attention", "n_layer", "n_head", "head_dim")}
    laws = {"exponents": [-2.5, -2.0, -1.0], "told": False}
    data = {**world, **laws, "train_seed": 0, "batch_size": 32}
    return {**job, "learner": "worlds", "model": {**world, **sizes}, "data": data}


def results(cell, out):
    """Return weights and curves."""
    folder = cell.folder(out)
    weights = torch.load(folder / training.CHECKPOINT, weights_only=True)["state_dict"]
    with (folder / training.CURVES).open(newline="") as file:
        return weights, [row | {"epoch": ""} for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def uninterrupted(grid, tmp_path_factory):
    prepare()
    out = tmp_path_factory.mktemp("uninterrupted")
    (out / "cells").mkdir()
    for cell in grid.values():
        runner.compute(cell, out)
    return out


@pytest.mark.full
@pytest.mark.parametrize("kind", ["pretrain", "force", "density under noise", "mixture of worlds"])
def test_a_killed_training_continues_from_its_checkpoint(grid, uninterrupted, tmp_path, kind):
    cell = grid[kind]
    (tmp_path / "cells").mkdir()
    for need in cell.needs.values():
        need.folder(tmp_path).symlink_to(need.folder(uninterrupted))
    assert compute(cell, tmp_path, killed).error == "Killed: "
    steps = []
    result = compute(cell, tmp_path, lambda step, total: steps.append(step))
    assert result.ok
    assert steps == list(range(CHECKPOINT_STEPS + 1, cell.arguments["job"]["steps"] + 1))
    assert result.metrics == cell.results(uninterrupted)[0].metrics
    (weights, curves), (their_weights, their_curves) = (
        results(cell, out) for out in (tmp_path, uninterrupted)
    )
    for name, value in weights.items():
        torch.testing.assert_close(value, their_weights[name], rtol=0, atol=0, msg=name)
    assert curves == their_curves
    assert {path.name for path in tmp_path.glob("cells/*")} == {
        c.key for c in (cell, *cell.needs.values())
    }, "nothing is left of the resume"


@pytest.mark.full
def test_a_disk_without_hard_links_does_not_cost_the_training(grid, tmp_path, monkeypatch):
    def without(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", without)
    cell = grid["pretrain"]
    assert compute(cell, tmp_path).ok
    assert (cell.folder(tmp_path) / training.CHECKPOINT).is_file()


def test_a_training_is_not_resumed_through_a_link(grid, tmp_path):
    cell = grid["pretrain"]
    kept = tmp_path / "cells" / f"{cell.key}.scratch"
    kept.mkdir(parents=True)
    (kept / "job.json").symlink_to(tmp_path / "victim")
    assert "job.json is a link; delete" in compute(cell, tmp_path).error
    assert not (tmp_path / "victim").exists()


@pytest.mark.full
def test_what_fails_after_training_does_not_cost_the_training(grid, tmp_path, monkeypatch):
    cell = grid["pretrain"]
    with monkeypatch.context() as broken:
        broken.setattr(training, "last_value", lambda *_: 1 / 0)
        assert "ZeroDivisionError" in compute(cell, tmp_path).error
    steps = []
    assert compute(cell, tmp_path, lambda step, _: steps.append(step)).ok
    assert steps == []


@pytest.mark.parametrize("name", learners.LEARNERS)
def test_every_learner_is_where_the_table_says(name):
    assert isinstance(learners.get(name), learners.Learner)


def test_a_learner_that_is_not_in_the_table_is_never_imported():
    with pytest.raises(ValueError, match="unknown learner 'os:system'; choose from compression"):
        learners.get("os:system")
