"""The LightningCLI end to end: fit -> finetune -> predict -> test, and its refusals."""

import functools
from pathlib import Path

import numpy as np
import pytest
import torch

from orbits import protocols
from orbits.runs import artefact
from tests.tiers import corners
from worldmodel import from_checkpoint
from worldmodel.cli import main
from worldmodel.probes.checkpoint import Checkpoint

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "worldmodel" / "configs"
TINY = [
    "--trainer.accelerator=cpu",
    "--trainer.max_steps=2",
    "--trainer.val_check_interval=2",
    "--trainer.enable_progress_bar=false",
    "--data.protocol_args={n_points: 16, n_bins: 32}",
    "--data.batch_size=4",
    "--data.n_val=4",
    "--model.attention=lssar",
    "--model.attention_args.p=3",
    "--model.n_layer=1",
    "--model.head_dim=8",
]


def run(command, config, out, *more):
    arguments = ["-c", str(CONFIGS / config), f"--trainer.logger.init_args.save_dir={out}"]
    main([command, *arguments, *TINY, *more])


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """Return the checkpoint of a tiny world model."""
    out = tmp_path_factory.mktemp("pretrained")
    run("fit", "pretrain.yaml", out)
    return out / "pretrain" / "version_0" / "checkpoints" / "last.ckpt"


@pytest.fixture
def refused(refusal):
    """Return a function that gives the line of error of a command that must be refused."""
    return functools.partial(refusal, run, alone=False)


@pytest.mark.full
def test_the_whole_way_from_orbits_to_a_prediction_file(tmp_path, capsys):
    from symreg import predictions

    run("fit", "pretrain.yaml", tmp_path)
    folder = tmp_path / "pretrain" / "version_0"
    assert (folder / "metrics.csv").is_file()
    pretrained = folder / "checkpoints" / "last.ckpt"
    file = tmp_path / "predictions.npz"
    writer = f"--trainer.callbacks.path={file}"
    run("finetune", "force.yaml", tmp_path, f"--pretrained={pretrained}", "--data.n_train=8")
    folder = tmp_path / "force" / "version_0"
    tuned, saved = folder / "checkpoints" / "last.ckpt", folder / "config.yaml"
    main(["predict", "-c", str(saved), f"--ckpt_path={tuned}", writer, "--data.n_test=9"])
    table = predictions.read(file)
    assert len(table) == 9 * 4
    assert table.manifest["config"]["model"]["attention_args"] == {"p": 3}
    assert table.manifest["inputs"]["checkpoint"]
    assert list(table.row.values()) == ["lssar p=3", "identifiable", "pretrained", "8", 0]
    main(["test", "-c", str(saved), f"--ckpt_path={tuned}"])
    assert "test_loss" in capsys.readouterr().out
    with pytest.raises(SystemExit) as refused:
        main(["predict", "-c", str(saved), f"--ckpt_path={tuned}", writer])
    assert refused.value.code == 2


@pytest.mark.full
def test_finetune_resumes_its_own_checkpoint(tmp_path):
    run("finetune", "force.yaml", tmp_path)
    last = tmp_path / "force" / "version_0" / "checkpoints" / "last.ckpt"
    run("finetune", "force.yaml", tmp_path, f"--ckpt_path={last}", "--trainer.max_steps=4")
    first, second = (
        torch.load(path, weights_only=True)
        for path in (last, last.parents[2] / "version_1" / "checkpoints" / "last.ckpt")
    )
    assert (first["global_step"], second["global_step"]) == (2, 4)
    rate = [state["lr_schedulers"][0]["last_epoch"] for state in (first, second)]
    assert rate == [2, 4], "the schedule goes on where it stood"


@pytest.mark.full
def test_no_training_goes_on_with_other_data_or_another_optimizer(tmp_path, refusal):
    run("fit", "pretrain.yaml", tmp_path)
    last = tmp_path / "pretrain" / "version_0" / "checkpoints" / "last.ckpt"
    more = (f"--ckpt_path={last}", "--trainer.max_steps=3")
    said = refusal(run, "fit", "pretrain.yaml", tmp_path, *more, "--data.train_seed=5")
    assert "data.train_seed" in said
    assert "a resumed training keeps what it started with" in said
    same = ("--data.train_seed=0", "--data.device_batches=float64")
    run("fit", "pretrain.yaml", tmp_path, *more, *same)
    said = refusal(run, "fit", "pretrain.yaml", tmp_path, "--optimizer=Adam", "--optimizer.lr=0.5")
    assert "optimizer would train by another recipe" in said


@pytest.mark.full
def test_a_saved_fine_tuning_starts_from_its_backbone_again(tmp_path, capsys):
    run("fit", "pretrain.yaml", tmp_path)
    pretrained = tmp_path / "pretrain" / "version_0" / "checkpoints" / "last.ckpt"
    run("finetune", "force.yaml", tmp_path, f"--pretrained={pretrained}")
    saved = tmp_path / "force" / "version_0" / "config.yaml"
    for command in ("finetune", "fit"):
        main([command, "-c", str(saved)])
    first, *again = (
        saved.parents[1] / f"version_{n}" / "checkpoints" / "last.ckpt" for n in range(3)
    )
    expected = torch.load(first, weights_only=True)
    assert expected["hyper_parameters"]["pretrained"] == str(pretrained)
    for path in again:
        found = torch.load(path, weights_only=True)["state_dict"]
        for name, value in expected["state_dict"].items():
            torch.testing.assert_close(found[name], value, rtol=0, atol=0)
    assert Checkpoint.load(first).row["arm"] == "force head"
    more = [f"--ckpt_path={first}", "--trainer.max_steps=3"]
    main(["finetune", "-c", str(saved), *more])
    resumed = saved.parents[1] / "version_3" / "checkpoints" / "last.ckpt"
    assert Checkpoint.load(resumed).row["arm"] == "force head"
    assert "random" not in capsys.readouterr().out
    run("finetune", "force.yaml", tmp_path)
    assert "weights    random, as no backbone is given: `python -m" in capsys.readouterr().out
    scratch = saved.parents[1] / "version_4" / "checkpoints" / "last.ckpt"
    assert Checkpoint.load(scratch).row["arm"] == "force head, scratch"


@pytest.mark.full
def test_what_a_checkpoint_decides_is_said_and_refused_in_training(
    pretrained, tmp_path, capsys, refused
):
    last = f"--ckpt_path={pretrained}"
    run("validate", "pretrain.yaml", tmp_path, last, "--model.attention_args.p=5")
    assert "attention_args {'p': 3} (configured: {'p': 5})" in capsys.readouterr().err
    said = refused("fit", "pretrain.yaml", tmp_path, last, "--model.lr=1e-5")
    assert "was trained with lr 0.006 (configured: 1e-05)" in said
    assert not (tmp_path / "pretrain" / "version_1").exists()


SHIFTED = "--data.protocol_args={n_points: 16, n_bins: 32, shift: closer}"


@pytest.mark.full
def test_a_model_is_asked_under_a_shift(tmp_path):
    run("finetune", "force.yaml", tmp_path)
    folder = tmp_path / "force" / "version_0"
    trained = f"--ckpt_path={folder / 'checkpoints' / 'last.ckpt'}"
    writer = f"--trainer.callbacks.path={tmp_path / 'predictions.npz'}"
    saved = ["-c", str(folder / "config.yaml"), trained, writer, "--data.n_test=9"]
    main(["predict", *saved, SHIFTED])
    protocol = protocols.get("identifiable", {"n_points": 16, "n_bins": 32, "shift": "closer"})
    world = protocol.systems(0, "test", range(9), "force")
    arrays, record = artefact.load_arrays(tmp_path / "predictions.npz")
    row = record["config"]["row"]
    assert (row["protocol"], row["arm"]) == ("identifiable, shift closer", "scratch")
    masses = arrays["m1"]
    np.testing.assert_allclose(np.unique(masses), np.sort(world.planet_mass[:, 0]), rtol=1e-6)


@pytest.mark.full
@pytest.mark.parametrize(
    ("command", "config", "argument", "message"),
    [
        ("finetune", "force.yaml", SHIFTED, "shift 'closer' is asked and never trained"),
        ("fit", "pretrain.yaml", SHIFTED, "under shift 'closer' has no population 'pretrain'"),
        ("validate", "force.yaml", SHIFTED, "shift 'closer' is asked and never trained"),
        (
            "predict",
            "force.yaml",
            "--data.protocol_args={shift: {name: far, dt_octaves: 9}}",
            "no time step of protocol 'identifiable' has a token after +9 octaves",
        ),
        (
            "predict",
            "force.yaml",
            "--data={protocol: paper, protocol_args: {shift: closer}}",
            "protocol 'paper' has no single planet",
        ),
    ],
)
def test_a_shift_that_cannot_be_is_one_line(tmp_path, refusal, command, config, argument, message):
    assert message in refusal(run, command, config, tmp_path / "out", argument, alone=False)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", corners(["validate", "test", "predict"], "predict"))
def test_a_model_that_was_not_trained_is_not_asked(tmp_path, refused, command):
    said = refused(command, "force.yaml", tmp_path / "out")
    assert f"{command} needs a trained model: set ckpt_path" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.full
def test_predict_needs_a_writer_and_nothing_is_written_where_nobody_asked(
    tmp_path, refused, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    run("finetune", "force.yaml", tmp_path / "runs")
    last = tmp_path / "runs" / "force" / "version_0" / "checkpoints" / "last.ckpt"
    asked = [f"--ckpt_path={last}", "--data.n_test=4", "--trainer.logger=false"]
    run("test", "force.yaml", tmp_path, *asked)
    said = refused("predict", "force.yaml", tmp_path, *asked, "--trainer.callbacks=null")
    assert "predict writes no file without a PredictionWriter" in said
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_checkpoint_is_never_half_there(tmp_path, monkeypatch):
    def full(checkpoint, file):
        file.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(SystemExit) as stopped:
        run("fit", "pretrain.yaml", tmp_path)
    assert stopped.value.code == 2
    assert not list(tmp_path.rglob("*.ckpt*"))


@pytest.mark.full
def test_the_last_checkpoint_is_of_the_last_step(tmp_path):
    often = "--trainer.callbacks.every_n_train_steps=2"
    run("fit", "pretrain.yaml", tmp_path, often, "--trainer.max_steps=5")
    last = tmp_path / "pretrain" / "version_0" / "checkpoints" / "last.ckpt"
    checkpoint = torch.load(last, weights_only=True)
    assert checkpoint["global_step"] == 5
    rate = checkpoint["lr_schedulers"][0]
    assert rate["last_epoch"] == 5, "all of its state is that of the last step"
    run("fit", "pretrain.yaml", tmp_path, often, "--trainer.max_steps=7", f"--ckpt_path={last}")
    resumed = last.parents[2] / "version_1" / "checkpoints" / "last.ckpt"
    assert torch.load(resumed, weights_only=True)["global_step"] == 7


@pytest.mark.parametrize(
    ("argument", "choice"),
    [
        ("--model.attention=lsar", "did you mean lssar or lssa?"),
        ("--data.population=none", "typing.Literal['pretrain', 'force']. Got value: none"),
        ("--model.nheads=3", "unknown key 'nheads'; choose from attention"),
        *(
            pytest.param(*each, marks=pytest.mark.full)
            for each in (
                ("--data.protocol=kepler", "choose from identifiable, free_step, neutral_step"),
                ("--data.batchsize=3", "unknown key 'batchsize'; choose from batch_size"),
                ("--steps=3", "unknown key 'steps'; choose from ckpt_path, config, data"),
                ("--model.attention_args.q=3", "lssar has no q; it takes p"),
                ("--data.n_val=0", "n_val must be at least 1"),
                ("--trainer.callbacks=Foo", "trainer.callbacks does not take 'Foo'; name a class"),
            )
        ),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(tmp_path, refused, argument, choice):
    assert choice in refused("fit", "pretrain.yaml", tmp_path / "out", argument)
    assert not (tmp_path / "out").exists()


def test_finetune_without_labels_is_refused(tmp_path, refused):
    said = refused("finetune", "force.yaml", tmp_path, "--data.population=pretrain")
    assert "data.population=force" in said


def test_another_variant_than_the_pretrained_one_is_refused(pretrained, tmp_path, refused):
    other = ["--model.attention=lssa", "--model.attention_args=null"]
    said = refused("finetune", "force.yaml", tmp_path, f"--pretrained={pretrained}", *other)
    assert "attention='lssar'" in said


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("--data.protocol_args={n_points: 20}", "protocol_args="),
        pytest.param("--data.protocol=fixed", "protocol='identifiable'", marks=pytest.mark.full),
    ],
)
def test_a_checkpoint_of_another_world_than_the_data_is_refused(
    pretrained, tmp_path, refused, change, named
):
    said = refused("test", "pretrain.yaml", tmp_path, f"--ckpt_path={pretrained}", change)
    assert f"trained with {named}" in said


def test_a_checkpoint_that_is_not_there_is_one_line(tmp_path, refused):
    assert "nowhere.ckpt" in refused("test", "pretrain.yaml", tmp_path, "--ckpt_path=nowhere.ckpt")


@pytest.mark.full
def test_a_checkpoint_that_names_no_class_is_taken_by_the_class_of_the_config(tmp_path):
    run("finetune", "force.yaml", tmp_path)
    folder = tmp_path / "force" / "version_0"
    content = torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)
    for name in ("_class_path", "_instantiator"):  # what a Trainer without this CLI leaves out
        content["hyper_parameters"].pop(name, None)
    torch.save(content, tmp_path / "bare.ckpt")
    main(["test", "-c", str(folder / "config.yaml"), f"--ckpt_path={tmp_path / 'bare.ckpt'}"])


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--trainer.most=3", "unknown key 'trainer.most'; choose from accelerator"),
        *(
            pytest.param(*each, marks=pytest.mark.full)
            for each in (
                ("--trainer.max_steps=-5", "error: `max_steps` must be a non-negative integer or"),
                ("--model.layers=3", "unknown key 'layers'; choose from attention"),
            )
        ),
    ],
)
def test_no_key_is_abbreviated(tmp_path, refused, argument, message):
    assert message in refused("fit", "pretrain.yaml", tmp_path, argument)
    assert not list(tmp_path.iterdir())


KNOBS = ("--model.predicts=mixture", "--model.input=coordinates", "--model.window=3")


@pytest.mark.full
def test_a_density_with_noise_and_a_window_is_trained_and_taken_up_again(tmp_path):
    run("fit", "pretrain.yaml", tmp_path, *KNOBS, "--data.context_noise=0.05")
    path = tmp_path / "pretrain" / "version_0" / "checkpoints" / "last.ckpt"
    one = Checkpoint.load(path)
    told = {name: one.model.hparams[name] for name in ("predicts", "input", "window")}
    assert told == {"predicts": "mixture", "input": "coordinates", "window": 3}
    content = torch.load(path, weights_only=True)
    assert content["datamodule_hyper_parameters"]["context_noise"] == 0.05
    run("validate", "pretrain.yaml", tmp_path, f"--ckpt_path={path}", *KNOBS)
    assert "--model.window=3" in from_checkpoint.fine_tuning([f"--pretrained={path}"])
    with pytest.raises(ValueError, match="is a NextTokenModel, which tells no forces; finetune it"):
        from_checkpoint.evaluation("predict", [f"--ckpt_path={path}"])


@pytest.mark.full
@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--model.predicts=laplace", "laplace"),
        ("--model.window=0", "window must be at least 1, got 0"),
        ("--model.attention=sliding_window", "sliding_window has a window of its own"),
        ("--data.context_noise=-1", "context_noise must be 0 or a number of AU above it, got -1"),
    ],
)
def test_impossible_knobs_are_refused_in_one_line(tmp_path, refused, flag, words):
    clear = () if "attention" not in flag else ("--model.attention_args=null",)
    line = refused("fit", "pretrain.yaml", tmp_path, "--model.window=3", flag, *clear)
    assert words in line
