"""Checkpoints that users have, and texts that models never saw: evaluated as trained models are."""

import json

import numpy as np
import pytest
import torch

from benchmarks.__main__ import PROG, main
from benchmarks.language import extrapolation, extrapolation_cells, sink
from benchmarks.language.base import measured
from benchmarks.language.checkpoints import TextCheckpoint
from orbits.runs import flags, study
from orbits.runs.cell import Skipped, compute
from orbits.runs.executors import Execution
from orbits.runs.result import Result
from tests.worldmodel.trainings import save, trainer
from worldmodel import extrapolate
from worldmodel.cli import main as fit
from worldmodel.data.text import TextData
from worldmodel.models.load import load_model
from worldmodel.models.orbit import NextTokenModel
from worldmodel.models.text import TextModel
from worldmodel.text import documents
from worldmodel.text.shards import adopt, write_shard
from worldmodel.text.tokenizers import load_tokenizer

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]

HERE = Execution("here")
TINY = ["--preset", "tiny", "--eval-tokens", "512", "--multiples", "1,2"]


def run(out, of, *arguments):
    """Run a study here and return its measurements."""
    chosen = flags.parse_study(of, arguments, f"{PROG} run {of.name}")
    return measured(study.run(of, chosen.settings, out, HERE, preset=chosen.preset))


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
    """Return a trained model's checkpoint and its own measurements."""
    out = tmp_path_factory.mktemp("run") / "out"
    more = ["--attention", "softmax", "--steps", "2", "--path", str(text)]
    results = run(out, extrapolation.STUDY, *TINY, *more)
    (checkpoint,) = out.glob("cells/*/last.ckpt")
    return checkpoint, results


def test_a_checkpoint_is_evaluated_as_a_trained_model_is(trained, tmp_path):
    checkpoint, theirs = trained
    given = ["--checkpoints", f"mine:7={checkpoint}"]
    ours = run(tmp_path / "out", extrapolation.STUDY, *TINY, *given)
    assert len(ours) == len(theirs) == 2, "NTK off and on"
    for one, other in zip(ours, theirs, strict=True):
        assert one.metrics == other.metrics
        assert one.case.setting == other.case.setting
        assert (one.case.variant, one.case.seed) == ("mine", 7)
        assert one.manifest["corpus"] == other.manifest["corpus"]
        assert one.manifest["inputs"]["model"] == other.manifest["inputs"]["model/last.ckpt"]
    assert not list((tmp_path / "out").glob("cells/*/last.ckpt")), "nothing is trained"


@pytest.mark.full
def test_another_text_is_scored(trained, tmp_path):
    checkpoint, _ = trained
    rows = [{"text": f"{n} squared is {n * n}. "} for n in range(2000)]
    other = tmp_path / "lambada.jsonl"
    other.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    given = [f"--eval-path={other}", "--eval-corpus=lambada", f"--checkpoints=mine:0={checkpoint}"]
    (result, _) = run(tmp_path / "out", extrapolation.STUDY, *TINY, *given)
    assert result.manifest["asked_corpus"]["corpus"] == "lambada"
    assert result.manifest["asked_corpus"]["documents"] == 2000
    assert result.manifest["corpus"]["corpus"] == "numbers.txt"
    study.report(extrapolation.STUDY, tmp_path / "out")
    said = (tmp_path / "out" / "report.md").read_text()
    assert f", on checkpoints mine:0={checkpoint}." in said.replace("\\", "")
    assert "Scored on lambada (sha256" in said.replace("\\", "")
    assert "Trained on numbers.txt (sha256" in said.replace("\\", "")
    task = load_model(checkpoint).eval()
    stream = [t for row in rows for t in (256, *row["text"].encode())][:513]
    for length in (16, 32):
        windows = torch.tensor(stream).unfold(0, length + 1, length)
        expected = extrapolate.losses(task, windows).double().mean()
        found = result.metrics[f"loss@{length // 16}x"]
        assert found.n == 512 // length
        assert found.value == pytest.approx(float(expected), rel=1e-6)


def test_sinks_of_a_checkpoint(trained, tmp_path):
    checkpoint, _ = trained
    given = ["--checkpoints", f"mine:0={checkpoint}"]
    results = run(tmp_path / "out", sink.STUDY, "--preset", "tiny", *given)
    assert [result.case.get("text") for result in results] == ["natural", "repeated", "story"]
    assert {result.case.get("mask_at") for result in results} == {None}
    assert {result.case.variant for result in results} == {"mine"}


def test_a_checkpoint_of_token_files_is_scored_on_what_it_did_not_see(shards, tmp_path):
    more = ["--attention", "softmax", "--steps", "2", "--shards", str(shards)]
    theirs = run(tmp_path / "trained", extrapolation.STUDY, *TINY, *more)
    (checkpoint,) = (tmp_path / "trained").glob("cells/*/last.ckpt")
    given = ["--checkpoints", f"mine:0={checkpoint}"]
    ours = run(tmp_path / "given", extrapolation.STUDY, *TINY, *given)
    assert [result.metrics for result in ours] == [result.metrics for result in theirs]


@pytest.mark.full
def test_what_cannot_be_evaluated_is_refused(trained, text, tmp_path, refusal):
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
        (f"{learned}", "reads at most 20 tokens, fewer than 32"),
    ):
        arguments = [*TINY, "--checkpoints", given, "--out", str(tmp_path / "out")]
        assert message in refusal(main, ["run", "extrapolation", *arguments])
    long = [
        "--preset",
        "tiny",
        "--multiples",
        "16",
        "--eval-tokens",
        str(2**16),
        "--checkpoints",
        str(checkpoint),
    ]
    assert "held-out text has" in refusal(main, ["run", "extrapolation", *long])
    short = tmp_path / "short.txt"
    short.write_text("too short " * 9, "utf-8")
    few = [*TINY, "--eval-path", str(short), "--out", str(tmp_path / "o")]
    said = refusal(main, ["run", "extrapolation", *few])
    assert "held-out text has 0 windows" in said, "before anything is trained"


def test_a_checkpoint_that_changes_while_a_run_goes_on_is_refused(trained, tmp_path):
    path = tmp_path / "mine.ckpt"
    path.write_bytes(trained[0].read_bytes())
    chosen = flags.parse_study(
        extrapolation.STUDY, [*TINY, "--checkpoints", f"mine:0={path}"], "run extrapolation"
    )
    cell, _ = extrapolation.STUDY.cells(chosen.settings)
    assert cell.key
    path.write_bytes(path.read_bytes() + b"x")
    (record,) = compute(cell, tmp_path)["results"]
    assert "changed since this run began" in Result.from_json(record).error


def test_a_text_that_no_network_reaches_is_skipped_or_refused(
    trained, tmp_path, monkeypatch, refusal
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
        said = refusal(main, ["run", "extrapolation", *TINY, *more, "--out", str(tmp_path / "out")])
        assert "cannot reach the hub" in said
    arguments = {"multiples": [1], "tail": 8, "eval_tokens": 512, "ntk": False}
    with pytest.raises(Skipped, match="cannot reach the hub"):
        extrapolation_cells.evaluate_lengths(
            **arguments, model=away, folder=tmp_path, progress=lambda done, n: None
        )


@pytest.mark.full
@pytest.mark.parametrize("data", ["TextData", "ShardData"])
def test_checkpoints_of_the_command_line_are_evaluated(data, shards, text, tmp_path):
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
    given = ["--checkpoints", f"lssar p=15:0={checkpoint}"]
    results = run(tmp_path / "out", extrapolation.STUDY, *TINY, *given)
    assert {result.case.variant for result in results} == {"lssar p=15"}
    if data == "ShardData":  # 640 tokens were validated on; 512 are scored, behind them
        tokens = np.fromfile(shards / "a_val_0.bin", "<u2")[512:]
        windows = TextCheckpoint.read(checkpoint).held_out(32, 512)
        assert windows[0].tolist() == tokens[1024 : 1024 + 33].tolist()
        assert windows[-1].tolist() == tokens[1024 + 480 : 1024 + 513].tolist()


def test_a_model_without_rotary_positions_does_not_stretch(trained, tmp_path):
    checkpoint, _ = trained
    saved = torch.load(checkpoint, weights_only=True)
    known = {**saved["hyper_parameters"], "attention_args": {"rope_base": None}}
    path = tmp_path / "plain.ckpt"
    torch.save({**saved, "hyper_parameters": known}, path)
    assert TextModel.load_from_checkpoint(path, weights_only=True)
    given = ["--checkpoints", f"plain:0={path}"]
    results = run(tmp_path / "out", extrapolation.STUDY, *TINY, *given)
    assert [result.case.get("ntk") for result in results] == [False]


def test_a_checkpoint_knows_the_length_it_was_trained_on(tmp_path):
    (tmp_path / "text.txt").write_text("to be or not to be; " * 100, "utf-8")
    data = TextData(str(tmp_path / "text.txt"), seq_len=24, batch_size=2, n_val=1)
    one_step = trainer(tmp_path, limit_val_batches=0)
    one_step.fit(TextModel(n_layer=1, n_head=1, head_dim=8), data)
    one_step.save_checkpoint(tmp_path / "trained.ckpt")
    assert TextCheckpoint.read(tmp_path / "trained.ckpt").context == 24
    save(TextModel(n_layer=1, n_head=1, head_dim=8), tmp_path / "bare.ckpt")
    with pytest.raises(ValueError, match="does not say how long its training windows were"):
        TextCheckpoint.read(tmp_path / "bare.ckpt")


def test_a_checkpoint_of_orbits_is_refused_after_one_reading(tmp_path, monkeypatch):
    save(NextTokenModel(n_layer=1, n_head=1, head_dim=8), tmp_path / "orbits.ckpt")
    read, load = [], torch.load
    monkeypatch.setattr(torch, "load", lambda *a, **k: read.append(a) or load(*a, **k))
    with pytest.raises(ValueError, match=r"orbits\.ckpt: holds no language model"):
        TextCheckpoint.read(tmp_path / "orbits.ckpt")
    assert len(read) == 1
