"""The language model: training, resume, checkpoints, the command line and attention maps."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import worldmodel.__main__ as program
from tests.worldmodel.text_file import data
from tests.worldmodel.trainings import (
    assert_same_weights,
    save,
    trainer,
    with_and_without_a_kill,
)
from worldmodel.cli import main
from worldmodel.maps import SENTENCE, attention_maps, layer_weights
from worldmodel.models import optim
from worldmodel.models.checkpoint import read_checkpoint
from worldmodel.models.load import load_model
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.models.text import TextModel

pytestmark = pytest.mark.usefixtures("quiet")

CONFIG = Path(__file__).parents[3] / "worldmodel" / "configs" / "text.yaml"
SMALL = {"n_layer": 1, "n_head": 2, "head_dim": 8}


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(tmp_path, file, optimizer):
    def task():
        torch.manual_seed(4)
        return TextModel(optimizer=optimizer, warmup_steps=2, **SMALL)

    assert_same_weights(*with_and_without_a_kill(task, lambda: data(file), tmp_path, 6))
    half = tmp_path / "half.ckpt"
    with_record = torch.load(half, weights_only=True)["TextData"]["corpus_record"]
    assert with_record == data(file).corpus_record

    file.write_text(file.read_text("utf-8") + " more", "utf-8")
    with pytest.raises(ValueError, match=r"trained on another corpus: numbers\.txt"):
        trainer(tmp_path, 6).fit(task(), data(file), ckpt_path=half, weights_only=True)
    trainer(tmp_path, 6).test(task(), data(file), ckpt_path=half, weights_only=True, verbose=False)


@pytest.mark.parametrize("name", ["softmax", "lssar"])
def test_a_checkpoint_alone_gives_the_same_logits(tmp_path, name):
    args = {"p": 3.0} if name == "lssar" else None
    task = TextModel(attention=name, attention_args=args, **SMALL)
    save(task, tmp_path / "model.ckpt")
    again = load_model(tmp_path / "model.ckpt")
    assert isinstance(again, TextModel)
    assert again.gpt.blocks[0].attention.spec == task.gpt.blocks[0].attention.spec
    tokens = torch.from_numpy(again.tokenizer.encode("def f(x):\n    return x")).long()
    batch = {"tokens": tokens[None]}
    assert again(batch).shape == (1, 22, 257)
    torch.testing.assert_close(again.eval()(batch), task.eval()(batch), rtol=0, atol=0)
    with pytest.raises(ValueError, match="protocol"):
        ForceModel(**SMALL).load_backbone(tmp_path / "model.ckpt")


def test_weights_of_another_variant_or_tokeniser_are_not_taken(tmp_path, file, refusal):
    args = {"p": 3.0}
    save(TextModel(attention="lssar", attention_args=args, **SMALL), tmp_path / "model.ckpt")
    held = read_checkpoint(tmp_path / "model.ckpt")
    TextModel(attention="lssar", attention_args=args, **SMALL).check_checkpoint("x", held)
    lssar = {"attention": "lssar", "attention_args": args}
    for changes in ({}, {"attention": "lssar"}, {**lssar, "n_head": 4}):
        task = TextModel(**{**SMALL, **changes})
        with pytest.raises(ValueError, match="trained with"):
            task.check_checkpoint("x", held)
    held["hyper_parameters"]["tokenizer"] = "another"
    with pytest.raises(ValueError, match="tokenizer="):
        TextModel(attention="lssar", attention_args=args, **SMALL).check_checkpoint("x", held)
    asked = ["--ckpt_path", str(tmp_path / "model.ckpt"), "--data.path", str(file)]
    size = ["--model.n_layer=1", "--model.head_dim=8", "--trainer.logger=false"]
    given = ["validate", "-c", str(CONFIG), *asked, *size, "--data.seq_len=32"]
    assert "trained with attention='lssar'" in refusal(main, given, alone=False)


def test_logits_never_see_the_future_and_the_loss_is_theirs():
    task = TextModel(attention="lssar", **SMALL).eval()
    tokens = torch.randint(257, (3, 20))
    edited = tokens.clone()
    edited[:, 12:] = 5
    with torch.no_grad():
        before, after = task({"tokens": tokens}), task({"tokens": edited})
        loss = task._loss({"tokens": tokens})
    torch.testing.assert_close(before[:, :12], after[:, :12], rtol=0, atol=0)
    assert not torch.allclose(before[:, 12:], after[:, 12:])
    chosen = before.log_softmax(-1)[:, :-1].gather(-1, tokens[:, 1:, None])
    torch.testing.assert_close(loss, -chosen.mean())


def test_muon_leaves_the_tied_embedding_to_adamw():
    task = TextModel(**SMALL)
    optimizer, _ = optim.configure(
        task, "muon", lr=0.1, weight_decay=0.0, warmup_steps=1, total_steps=2
    )
    muon, adamw = ({id(p) for p in part.param_groups[0]["params"]} for part in optimizer.parts)
    assert len(muon) == 6
    assert id(task.embedding.weight) in adamw
    assert len(muon) + len(adamw) == len(list(task.parameters()))


@pytest.mark.full
def test_a_few_steps_learn_what_a_text_repeats(tmp_path):
    text = b"the cat sat on the mat. " * 100
    (tmp_path / "cat.txt").write_bytes(text)
    task = TextModel(lr=2e-2, warmup_steps=2, **SMALL)
    source = data(tmp_path / "cat.txt", seq_len=24)
    run = trainer(tmp_path, 60, val_check_interval=60)
    before = run.validate(task, source, verbose=False)[0]["val_loss"]
    run.fit(task, source)
    after = float(run.callback_metrics["val_loss"])
    assert before == pytest.approx(np.log(257), abs=0.3), "training starts from a uniform guess"
    # Knowing how often each character comes, without context, is worth this much and no more.
    shares = np.unique(np.frombuffer(text, np.uint8), return_counts=True)[1] / len(text)
    assert after < -(shares * np.log(shares)).sum()


def run(command, file, out, *more):
    arguments = [
        f"--trainer.logger.init_args.save_dir={out}",
        "--trainer.accelerator=cpu",
        "--trainer.max_steps=2",
        "--trainer.val_check_interval=2",
        "--trainer.enable_progress_bar=false",
        f"--data.path={file}",
        "--data.seq_len=32",
        "--data.n_val=2",
        "--data.n_test=2",
        "--model.attention=lssar",
        "--model.attention_args.p=3",
        "--model.n_layer=1",
        "--model.head_dim=8",
    ]
    main([command, "-c", str(CONFIG), *arguments, *more])


@pytest.mark.full
def test_the_command_line_trains_tests_and_draws_the_sentence_of_the_paper(
    tmp_path, file, monkeypatch, capsys
):
    run("fit", file, tmp_path)
    folder = tmp_path / "text" / "version_0"
    last, out = folder / "checkpoints" / "last.ckpt", tmp_path / "maps.png"
    main(["test", "-c", str(folder / "config.yaml"), f"--ckpt_path={last}"])
    assert "test_loss" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["x", "attention-maps", str(last), "--out", str(out)])
    program.main()
    assert out.read_bytes().startswith(b"\x89PNG")
    task = load_model(last)
    weights = layer_weights(task, -1)
    assert SENTENCE.startswith("Working from home can be great most days. I enjoy the flexibility")
    assert weights.shape == (4, len(SENTENCE), len(SENTENCE))
    torch.testing.assert_close(weights[:, :3].sum(-1), torch.ones(4, 3))
    assert not torch.allclose(weights, layer_weights(task, -1, text=SENTENCE.upper()))


@pytest.mark.full
@pytest.mark.parametrize(
    ("argument", "choice"),
    [
        ("--data.path=nowhere", "no such file or folder"),
        ("--data.seqlen=8", "'seqlen'; choose from batch_size"),
        ("--data.protocol=paper", "'protocol'; choose from batch_size"),
        ("--data.tokenizer=gpt3", "tokenizer 'gpt3' is no file"),
        ("--data=TextDat", "class 'TextDat'; choose from OrbitData, TextData, ShardData"),
        ("--data=OrbitData", "numbers.txt holds no finished dataset"),
        ("--model=worldmodel.models.orbit.NextTokenModel", "NextTokenModel does not read TextData"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(tmp_path, file, refusal, argument, choice):
    assert choice in refusal(run, "fit", file, tmp_path / "out", argument, alone=False)
    assert not (tmp_path / "out").exists()


def test_predict_is_for_forces(tmp_path, file, refusal):
    said = refusal(run, "predict", file, tmp_path, alone=False)
    assert "predict writes the forces of a ForceModel, got TextModel" in said


@pytest.mark.full
@pytest.mark.parametrize("text", ["def f():\n\treturn '$a$ é'", "x" * 60, "a"])
def test_any_text_can_be_drawn(tmp_path, text):
    save(TextModel(**SMALL), tmp_path / "model.ckpt")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns where a font lacks a character
        attention_maps(tmp_path / "model.ckpt", tmp_path / "x.png", text=text)
    assert (tmp_path / "x.png").is_file()


@pytest.mark.parametrize(
    ("task", "choice", "message"),
    [
        (TextModel, {"sequence": 0}, "use --text instead of --sequence"),
        (TextModel, {"text": ""}, "text must not be empty"),
        (NextTokenModel, {"text": "a text"}, "use --sequence instead of --text"),
    ],
)
def test_what_a_checkpoint_cannot_be_drawn_on_is_refused(tmp_path, task, choice, message):
    save(task(**SMALL), tmp_path / "model.ckpt")
    with pytest.raises(ValueError, match=message):
        attention_maps(tmp_path / "model.ckpt", tmp_path / "x.png", **choice)
    assert not (tmp_path / "x.png").exists()
