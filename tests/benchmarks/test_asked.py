"""Language models that are asked: the user's own checkpoints, and texts they never saw."""

import argparse
import json

import numpy as np
import pytest
import torch

from benchmarks import settings_flags, task_command, tasks
from benchmarks.__main__ import main
from benchmarks.task import measurements
from benchmarks.tasks import extrapolation
from benchmarks.tasks._asked import Model
from orbits import artefacts
from symreg.cells import Skipped, compute_cell
from worldmodel import documents, extrapolate
from worldmodel.cli import main as fit
from worldmodel.shard_files import write_shard
from worldmodel.shard_folder import adopt
from worldmodel.tasks import load_task
from worldmodel.text_task import TextTask
from worldmodel.tokenizer import load_tokenizer

pytestmark = pytest.mark.filterwarnings("ignore")

TINY = ["--preset", "tiny", "--jobs", "1", "--eval-tokens", "512", "--multiples", "1,2"]


def run(out, name, *arguments):
    """Run a task here: processes of its own would import everything again."""
    task, parser = tasks.get(name), argparse.ArgumentParser()
    task_command.add_arguments(parser, task)
    settings = settings_flags.apply(parser.parse_args(arguments), task.presets)
    return measurements(
        [
            compute_cell(task.compute()[cell.kind], cell, out, lambda done, n: None)["line"]
            for cell in task.cells(settings)
        ]
    )


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "numbers.txt"
    path.write_text(" ".join(map(str, range(20_000))), "utf-8")
    return path


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder, draw = tmp_path_factory.mktemp("shards"), np.random.default_rng(0)
    for name in ("a_val_0.bin", "a_train_1.bin"):
        write_shard(folder / name, draw.integers(257, size=6000), 257)
    adopt(folder, load_tokenizer("bytes"), progress=False)
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory, text):
    """Return a trained model's checkpoint and its own lines."""
    out = tmp_path_factory.mktemp("run") / "out"
    lines = run(
        out, "extrapolation", *TINY, "--attentions", "softmax", "--steps", "2", "--path", str(text)
    )
    (checkpoint,) = out.glob("cells/*/last.ckpt")
    return checkpoint, lines


def test_a_checkpoint_is_asked_as_a_trained_model_is(trained, tmp_path):
    checkpoint, theirs = trained
    ours = run(tmp_path / "out", "extrapolation", *TINY, "--checkpoints", f"mine:7={checkpoint}")
    assert len(ours) == len(theirs) == 2, "NTK off and on"
    for one, other in zip(ours, theirs, strict=True):
        assert one["metrics"] == other["metrics"]
        assert one["row"] == {**other["row"], "model": "mine", "seed": 7}
        assert one["manifest"]["corpus"] == other["manifest"]["corpus"]
        assert one["manifest"]["inputs"] == other["manifest"]["inputs"]
    assert not list((tmp_path / "out").glob("cells/*/last.ckpt")), "nothing is trained"


def test_another_text_is_asked(trained, tmp_path):
    checkpoint, _ = trained
    rows = [{"text": f"{n} squared is {n * n}. "} for n in range(2000)]
    other = tmp_path / "lambada.jsonl"
    other.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    asked = [f"--eval-path={other}", "--eval-corpus=lambada"]
    (line, _) = run(
        tmp_path / "out", "extrapolation", *TINY, *asked, "--checkpoints", f"mine:0={checkpoint}"
    )
    assert line["manifest"]["asked_corpus"]["corpus"] == "lambada"
    assert line["manifest"]["asked_corpus"]["documents"] == 2000
    assert line["manifest"]["corpus"]["corpus"] == "numbers.txt"
    given = ["run", "extrapolation", *TINY, *asked, "--checkpoints", f"mine:0={checkpoint}"]
    main([*given, "--out", str(tmp_path / "whole")])
    main(["report", str(tmp_path / "whole")])
    said = (tmp_path / "whole" / "report.md").read_text()
    assert f"Setting: checkpoints mine:0={checkpoint}, asked as preset tiny asks" in said
    assert "asked lambada (sha256" in said
    assert "trained on numbers.txt (sha256" in said
    task = load_task(checkpoint).eval()
    stream = [t for row in rows for t in (256, *row["text"].encode())][:513]
    for length in (16, 32):
        windows = torch.tensor(stream).unfold(0, length + 1, length)
        expected = extrapolate.losses(task, windows).double().mean()
        found = line["metrics"][f"loss@{length // 16}x"]
        assert found["n"] == 512 // length
        assert found["value"] == pytest.approx(float(expected), rel=1e-6)


def test_sinks_of_a_checkpoint(trained, tmp_path):
    checkpoint, _ = trained
    lines = run(
        tmp_path / "out", "sink", "--preset", "tiny", "--jobs", "1",
        "--checkpoints", f"mine:0={checkpoint}",
    )  # fmt: skip
    assert [line["row"]["text"] for line in lines] == ["natural", "repeated", "story"]
    assert {line["row"]["mask_at"] for line in lines} == {None}
    assert {line["row"]["model"] for line in lines} == {"mine"}


def test_a_checkpoint_of_token_files_is_asked_about_what_it_did_not_see(shards, tmp_path):
    more = ["--attentions", "softmax", "--steps", "2", "--shards", str(shards)]
    theirs = run(tmp_path / "trained", "extrapolation", *TINY, *more)
    (checkpoint,) = (tmp_path / "trained").glob("cells/*/last.ckpt")
    asked = ["--checkpoints", f"mine:0={checkpoint}"]
    ours = run(tmp_path / "asked", "extrapolation", *TINY, *asked)
    assert [line["metrics"] for line in ours] == [line["metrics"] for line in theirs]


def test_what_cannot_be_asked_is_refused(trained, text, tmp_path, capsys):
    checkpoint, _ = trained
    saved = torch.load(checkpoint, weights_only=True)
    untold, moved = tmp_path / "untold.ckpt", tmp_path / "moved.ckpt"
    torch.save({name: value for name, value in saved.items() if name != "TextData"}, untold)
    hparams = {**saved["datamodule_hyper_parameters"], "path": "gone.txt"}
    torch.save({**saved, "datamodule_hyper_parameters": hparams}, moved)
    changed = tmp_path / "changed.txt"
    changed.write_text(text.read_text() + "1", "utf-8")
    hparams = {**hparams, "path": str(changed)}
    other = tmp_path / "other.ckpt"
    torch.save({**saved, "datamodule_hyper_parameters": hparams}, other)
    masked, learned = tmp_path / "masked.ckpt", tmp_path / "learned.ckpt"
    untold_of = torch.load(untold, weights_only=True)
    torch.save({**untold_of, "MaskedTextData": saved["TextData"]}, masked)
    known = {**saved["hyper_parameters"], "n_positions": 20}
    torch.save({**saved, "hyper_parameters": known}, learned)
    for given, message in (
        (f"{untold}", "does not say what text it was trained on"),
        (f"{moved}", "'gone.txt': no such file or folder"),
        (f"{other}", "changed.txt has changed since its checksum"),
        (f"a:0={checkpoint},a:0={checkpoint}", "duplicate a, seed 0 in checkpoints"),
        (f"{text}", "not a checkpoint of a world model"),
        (f"{masked}", "trained on a text with a fixed token"),
        (f"{learned}", "has 20 learned positions, 32 tokens are asked"),
    ):
        arguments = [*TINY, "--checkpoints", given, "--out", str(tmp_path / "out")]
        with pytest.raises(SystemExit):
            main(["run", "extrapolation", *arguments])
        assert message in capsys.readouterr().err
    long = ["--multiples", "16", "--eval-tokens", str(2**16)]
    with pytest.raises(SystemExit):
        main(["run", "extrapolation", *TINY, *long, "--checkpoints", str(checkpoint)])
    assert "held-out text has" in capsys.readouterr().err
    short = tmp_path / "short.txt"
    short.write_text("too short " * 9, "utf-8")
    with pytest.raises(SystemExit):
        main(
            ["run", "extrapolation", *TINY, "--eval-path", str(short), "--out", str(tmp_path / "o")]
        )
    assert "held-out text has 0 windows" in capsys.readouterr().err, "before anything is trained"


def test_a_checkpoint_that_changes_while_it_is_asked_is_refused(trained, tmp_path):
    checkpoint, _ = trained
    with pytest.raises(ValueError, match="has changed since this run began"):
        Model.needed({"checkpoint": checkpoint}, {"checkpoint_sha256": "0"})


def test_a_text_that_no_network_reaches_is_skipped_or_refused(
    trained, tmp_path, monkeypatch, capsys
):
    """Before any work it is an error of one line; when a run has begun, its cells are skipped."""
    checkpoint, _ = trained
    saved = torch.load(checkpoint, weights_only=True)
    hparams = {**saved["datamodule_hyper_parameters"], "path": None, "corpus": "wikitext103"}
    away = tmp_path / "away.ckpt"
    torch.save({**saved, "datamodule_hyper_parameters": hparams}, away)

    def unreachable(*arguments):
        raise documents.Unreachable("cannot reach the hub")

    monkeypatch.setattr(documents, "hub", unreachable)
    for more in (["--checkpoints", str(away)], ["--corpus", "wikitext103"]):
        with pytest.raises(SystemExit) as stopped:
            main(["run", "extrapolation", *TINY, *more, "--out", str(tmp_path / "out")])
        said = capsys.readouterr().err
        assert stopped.value.code == 2
        assert "cannot reach the hub" in said
        assert len(said.splitlines()) == 1
    config = {
        "checkpoint_sha256": artefacts.sha256(away), "row": {"ntk": False}, "multiples": [1],
        "eval_tokens": 512,
    }  # fmt: skip
    with pytest.raises(Skipped, match="cannot reach the hub"):
        extrapolation.TASK.losses(config, tmp_path, {"checkpoint": away}, lambda done, n: None)


@pytest.mark.parametrize("data", ["TextData", "ShardData"])
def test_checkpoints_of_the_command_line_are_asked(data, shards, text, tmp_path):
    """It adds names of its own to what the data module is saved with."""
    path = {"TextData": text, "ShardData": shards}[data]
    fit(
        [
            "fit", "-c", "worldmodel/configs/text.yaml", "--data", data, f"--data.path={path}",
            "--data.tokenizer=bytes", "--data.seq_len=16", "--data.batch_size=2",
            "--data.n_val=40", "--model.n_layer=1", "--model.n_head=2", "--model.head_dim=4",
            "--trainer.max_steps=2", "--trainer.limit_val_batches=1",
            "--trainer.val_check_interval=2", "--trainer.enable_progress_bar=false",
            f"--trainer.logger.init_args.save_dir={tmp_path}",
        ]
    )  # fmt: skip
    (checkpoint,) = tmp_path.glob("*/version_0/checkpoints/last.ckpt")
    lines = run(
        tmp_path / "out", "extrapolation", *TINY, "--checkpoints", f"lssar p=15:0={checkpoint}"
    )
    assert {line["row"]["model"] for line in lines} == {"lssar p=15"}
    if data == "ShardData":  # 640 tokens were validated on; 512 are asked, behind them
        tokens = np.fromfile(shards / "a_val_0.bin", "<u2")[512:]
        asked = Model.of(checkpoint).held_out(32, 512)
        assert asked[0].tolist() == tokens[1024 : 1024 + 33].tolist()
        assert asked[-1].tolist() == tokens[1024 + 480 : 1024 + 513].tolist()


def test_a_model_without_rotary_positions_does_not_stretch(trained, tmp_path):
    checkpoint, _ = trained
    saved = torch.load(checkpoint, weights_only=True)
    known = {**saved["hyper_parameters"], "attention_args": {"rope_base": None}}
    path = tmp_path / "plain.ckpt"
    torch.save({**saved, "hyper_parameters": known}, path)
    assert TextTask.load_from_checkpoint(path, weights_only=True)
    lines = run(tmp_path / "out", "extrapolation", *TINY, "--checkpoints", f"plain:0={path}")
    assert [line["row"]["ntk"] for line in lines] == [False]
