"""What a command prints as the next one runs as it is printed, and writes below runs alone."""

import json
import shlex

import pytest

from orbits.runs import artefact
from worldmodel.__main__ import main

TINY = [
    "--trainer.accelerator=cpu",
    "--trainer.max_steps=2",
    "--trainer.val_check_interval=2",
    "--data.batch_size=4",
    "--data.n_val=4",
]
SHAPE = [
    "--data.protocol_args={n_points: 16, n_bins: 32}",
    "--model.attention=lssar",
    "--model.attention_args.p=3",
    "--model.n_layer=1",
    "--model.head_dim=8",
]


def said_by(capsys, *words):
    """Return what a command says and the words of the next command that it names."""
    main(list(words))
    out, err = capsys.readouterr()
    (line,) = (x for x in out.splitlines() if x.startswith("next: python -m "))
    return out, err, shlex.split(line)[3:]


@pytest.mark.full
def test_each_command_names_the_next_one(tmp_path, monkeypatch, capsys, refusal):
    monkeypatch.chdir(tmp_path)
    out, err, after = said_by(capsys, "fit", "-c", "pretrain", *TINY, *SHAPE)
    assert "written    runs/pretrain/version_0/checkpoints/last.ckpt" in out
    assert "trained    2 steps, train_loss" in out
    assert "train_loss=" in err
    assert not any(word in out + err for word in ("litlogger", "TPU", "FLOPs", "LeafSpec", "v_num"))

    package, *tuning = after
    assert package == "worldmodel"
    out, _, (package, *predicting) = said_by(capsys, *tuning, *TINY, "--data.n_train=8")
    tuned = "runs/force/version_0/checkpoints/last.ckpt"
    assert predicting == ["predict", tuned]

    out, _, after = said_by(capsys, *predicting, "--data.n_test=9")
    file = "runs/force/version_0/predictions.npz"
    assert after == ["symreg", "fit", file]
    assert "predicted  36 forces in 9 systems, median error " in out
    made = artefact.load_arrays(tmp_path / file)[1]["config"]
    assert made["model"]["attention_args"] == {"p": 3}
    assert made["data"]["protocol_args"] == {"n_points": 16, "n_bins": 32}
    assert "exists; choose another file with --out" in refusal(main, predicting)
    said_by(capsys, *predicting, "--data.n_test=9", "--overwrite")

    line = ["test", tuned, "--data.n_test=9"]
    main([*line, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["checkpoint"] == tuned
    main([*line, "--quiet"])
    assert float(capsys.readouterr().out) == told["test_loss"]

    # A configuration and a checkpoint alone give the same forces.
    whole = ["-c", "runs/force/version_0/config.yaml", "--trainer.logger=false"]
    said_by(capsys, "predict", tuned, *whole, "--data.n_test=9", "--out", "runs/whole.npz")
    first, second = (artefact.load_arrays(path)[0] for path in (file, "runs/whole.npz"))
    assert (first["force_predicted"] == second["force_predicted"]).all()

    out, _, after = said_by(capsys, "test", tuned, "--data.n_test=9")
    assert "test_loss" in out
    assert after == ["worldmodel", "predict", tuned]
    resumed = [*tuning, *TINY, "--data.n_train=8", "--trainer.max_steps=3", f"--ckpt_path={tuned}"]
    assert "trained    3 steps" in said_by(capsys, *resumed)[0]
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert sorted(x.name for x in (tmp_path / "runs" / "force").iterdir()) == [
        "version_0",
        "version_1",
    ]


@pytest.mark.full
def test_a_flag_overrides_what_the_backbone_knows(tmp_path, monkeypatch, capsys, refusal):
    monkeypatch.chdir(tmp_path)
    *_, (_, *tuning) = said_by(capsys, "fit", "-c", "pretrain", *TINY, *SHAPE)
    other = ["--model.attention=lssa", "--model.attention_args=null"]
    assert "attention='lssar'" in refusal(main, [*tuning, *TINY, *other], alone=False)
