"""Tiles that a trained model could skip, and what the output loses by it."""

import pytest
import torch

from benchmarks.cost import skippable, tiles
from orbits.runs import artefact, flags, study
from tests.worldmodel.trainings import save
from worldmodel.models.load import load_model
from worldmodel.models.text import TextModel

SMALL = {"n_layer": 2, "n_head": 2, "head_dim": 8}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of a text and of checkpoints of untrained models."""
    path = tmp_path_factory.mktemp("models")
    (path / "text.txt").write_text(" ".join(f"{i} + {i} = {2 * i};" for i in range(400)), "utf-8")
    for name in ("lssar", "softmax", "linear"):
        torch.manual_seed(0)
        save(TextModel(attention=name, **SMALL), path / f"{name}.ckpt")
    return path


def run(folder, out, *names):
    settings = skippable.STUDY.settings(
        "tiny",
        checkpoints=[str(folder / f"{name}.ckpt") for name in names],
        text=str(folder / "text.txt"),
    )
    return study.run(skippable.STUDY, settings, out, skippable.STUDY.execution, preset="tiny")


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(tiles, "TILE", (2, 2))


def test_a_tile_counts_only_if_every_row_could_skip_it():
    weights = torch.zeros(1, 5, 5)
    weights[0, :, 0] = 1.0  # the first key takes all: 3 of 6 causal tiles hold it
    assert tiles.shares(weights, [0.0, 0.5]) == [0.5, 0.5]
    weights[0, 3, 2] = 0.1
    assert tiles.shares(weights, [0.0, 0.5]) == pytest.approx([1 / 3, 0.5])
    weights[0, 3] *= 1e-3  # relative to the row's own largest
    assert tiles.shares(weights, [0.0, 0.5]) == pytest.approx([1 / 3, 0.5])
    weights[0, 3, 2] *= -20  # a large negative weight is a large weight
    assert tiles.shares(weights, [0.0, 0.5]) == pytest.approx([1 / 3, 1 / 3])


def test_the_error_is_that_of_the_output_without_the_tiles():
    weights = torch.zeros(1, 4, 4)
    weights[0, :, 0] = 1.0
    weights[0, 3, 2] = 0.25
    values = torch.tensor([[[2.0], [9.0], [4.0], [9.0]]])
    output = torch.tensor([2.0, 2.0, 2.0, 2.0 + 0.25 * 4.0])
    found = tiles.errors(weights, values, [0.0, 0.2, 0.25])
    assert found == pytest.approx([0.0, 0.0, 1.0 / float(output.norm())])


def test_results_of_several_checkpoints_name_what_they_are_of(folder, tmp_path):
    results = run(folder, tmp_path, "lssar", "softmax")
    assert [(x.case.get("checkpoint"), x.case.variant, x.case.get("block")) for x in results] == [
        ("lssar.ckpt", "lssar p=15", 1), ("lssar.ckpt", "lssar p=15", 2),
        ("softmax.ckpt", "softmax", 1), ("softmax.ckpt", "softmax", 2),
    ]  # fmt: skip
    for result in results:
        inputs = result.manifest["inputs"]
        assert inputs["checkpoint"] == artefact.sha256(folder / result.case.get("checkpoint"))
        assert inputs["corpus"] == result.manifest["corpus"]["sha256"]
        assert result.case.get("length") == 32
        values = {name: metric.value for name, metric in result.metrics.items()}
        shares, errors = (
            [values[f"{kind}@{at}"] for at in ("0", "6e-08", "0.00024", "0.002")]
            for kind in ("skippable", "error")
        )
        assert len(values) == 8
        assert shares == sorted(shares)
        assert errors == sorted(errors)
        assert errors[0] == 0, "weights of zero are no loss"
        assert errors[-1] < 0.1
    # Re-weighting to the 15th power leaves little; an untrained softmax is all but flat.
    assert results[0].value("skippable@0.002") > results[2].value("skippable@0.002") == 0
    assert results[0].value("error@0.002") > 0
    text = study.report(skippable.STUDY, tmp_path)
    assert "share, 6e-08" in text
    assert "lssar.ckpt" in text


def test_weights_and_values_are_those_that_the_block_mixes(folder):
    task = load_model(folder / "lssar.ckpt")
    tokens = torch.arange(20)[None]
    seen = []
    for block in task.gpt.blocks:
        block.attention.project.register_forward_pre_hook(lambda _, x: seen.append(x[0]))
    found = [weights @ values for _, weights, values in tiles.mixed(task, tokens)]
    for output, expected in zip(found, seen, strict=True):
        torch.testing.assert_close(output.transpose(0, 1).flatten(1), expected[0])


def test_a_mixer_without_weights_is_a_failed_cell(folder, tmp_path):
    linear, softmax, _ = run(folder, tmp_path, "linear", "softmax")
    assert linear.status == "failed"
    assert "no attention weights" in linear.error
    assert softmax.ok


def test_bad_settings_are_refused_before_anything_is_read(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing\.ckpt"):
        run(folder, tmp_path / "out", "missing")
    with pytest.raises(ValueError, match="use --checkpoints"):
        run(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_dry_run_without_checkpoints_asks_for_them():
    chosen = flags.parse_study(skippable.STUDY, ["--dry-run"], "run skippable")
    with pytest.raises(ValueError, match="no checkpoint is given; use --checkpoints"):
        flags.execute(skippable.STUDY, chosen)


def test_checkpoints_of_one_name_are_told_apart_by_their_folder(tmp_path):
    paths = [tmp_path / name / "last.ckpt" for name in ("one", "other")]
    for path in paths:
        path.parent.mkdir()
        path.write_bytes(b"")
    settings = skippable.TileSettings(checkpoints=tuple(map(str, paths)))
    named = [cell.case.setting["checkpoint"] for cell in tiles.cells(skippable.STUDY, settings)]
    assert named == [path.as_posix() for path in paths]
    assert set(tiles._named("x", [2e-3, 2**-9], [1.0, 2.0]).values()) == {1.0, 2.0}
