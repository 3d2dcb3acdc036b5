"""Tiles that a trained model could skip, and what the output loses by it."""

import json

import lightning
import pytest
import torch

from benchmarks.speed import skippable
from orbits import artefacts
from worldmodel.text_task import TextTask

SMALL = {"n_layer": 2, "n_head": 2, "head_dim": 8}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of a text and of checkpoints of untrained models."""
    path = tmp_path_factory.mktemp("models")
    (path / "text.txt").write_text(" ".join(f"{i} + {i} = {2 * i};" for i in range(400)), "utf-8")
    for name in ("lssar", "softmax", "linear"):
        torch.manual_seed(0)
        trainer = lightning.Trainer(
            accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, default_root_dir=path,
        )  # fmt: skip
        trainer.strategy.connect(TextTask(attention=name, **SMALL))
        trainer.save_checkpoint(path / f"{name}.ckpt", weights_only=True)
    return path


def main(folder, *names, flags=()):
    checkpoints = [str(folder / f"{name}.ckpt") for name in names]
    skippable.main([*checkpoints, "--length", "32", "--text", str(folder / "text.txt"), *flags])


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(skippable, "TILE", (2, 2))


def test_a_tile_counts_only_if_every_row_could_skip_it():
    weights = torch.zeros(1, 5, 5)
    weights[0, :, 0] = 1.0  # the first key takes all: 3 of 6 causal tiles hold it
    assert skippable.shares(weights, [0.0, 0.5]) == [0.5, 0.5]
    weights[0, 3, 2] = 0.1
    assert skippable.shares(weights, [0.0, 0.5]) == pytest.approx([1 / 3, 0.5])
    weights[0, 3] *= 1e-3  # relative to the row's own largest
    assert skippable.shares(weights, [0.0, 0.5]) == pytest.approx([1 / 3, 0.5])
    weights[0, 3, 2] *= -20  # a large negative weight is a large weight
    assert skippable.shares(weights, [0.0, 0.5]) == pytest.approx([1 / 3, 1 / 3])


def test_the_error_is_that_of_the_output_without_the_tiles():
    weights = torch.zeros(1, 4, 4)
    weights[0, :, 0] = 1.0
    weights[0, 3, 2] = 0.25
    values = torch.tensor([[[2.0], [9.0], [4.0], [9.0]]])
    output = torch.tensor([2.0, 2.0, 2.0, 2.0 + 0.25 * 4.0])
    found = skippable.errors(weights, values, [0.0, 0.2, 0.25])
    assert found == pytest.approx([0.0, 0.0, 1.0 / float(output.norm())])


def test_lines_of_several_checkpoints_name_what_they_are_of(folder, tmp_path, capsys):
    out = tmp_path / "skippable.jsonl"
    main(folder, "lssar", "softmax", flags=["--out", str(out)])
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(x["checkpoint"], x["variant"], x["block"]) for x in rows] == [
        ("lssar.ckpt", "lssar p=15", 1), ("lssar.ckpt", "lssar p=15", 2),
        ("softmax.ckpt", "softmax", 1), ("softmax.ckpt", "softmax", 2),
    ]  # fmt: skip
    for row in rows:
        inputs = row["manifest"]["inputs"]
        assert inputs["checkpoint"] == artefacts.sha256(folder / row["checkpoint"])
        assert row["manifest"]["config"]["length"] == 32
        assert len(row["skippable"]) == len(row["error"]) == len(row["thresholds"])
        assert row["skippable"] == sorted(row["skippable"])
        assert row["error"] == sorted(row["error"])
        assert row["error"][0] == 0, "weights of zero are no loss"
        assert row["error"][-1] < 0.1
    # Re-weighting to the 15th power leaves little; an untrained softmax is all but flat.
    assert rows[0]["skippable"][-1] > rows[2]["skippable"][-1] == 0
    assert rows[0]["error"][-1] > 0
    assert "lssar.ckpt lssar p=15, block 2" in capsys.readouterr().out


def test_weights_and_values_are_those_that_the_block_mixes(folder):
    task = skippable.load_task(folder / "lssar.ckpt")
    tokens = torch.arange(20)[None]
    seen = []
    for block in task.gpt.blocks:
        block.attention.project.register_forward_pre_hook(lambda _, x: seen.append(x[0]))
    found = [weights @ values for _, weights, values in skippable.mixed(task, tokens)]
    for output, expected in zip(found, seen, strict=True):
        torch.testing.assert_close(output.transpose(0, 1).flatten(1), expected[0])


def test_bad_input_is_one_line(folder, tmp_path, capsys):
    out = tmp_path / "kept.jsonl"
    out.write_text("kept")
    for names, flags, message in (
        (["lssar"], ["--out", str(out)], "exists"),
        (["linear"], [], "no attention weights"),
        (["missing"], [], "missing.ckpt"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(folder, *names, flags=flags)
        assert stop.value.code == 2
        assert message in capsys.readouterr().err
    assert out.read_text() == "kept"
