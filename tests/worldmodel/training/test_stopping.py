"""What ends a training early: it says so in one line, its exit code says so, and it goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

from tests.worldmodel.test_cli import CONFIGS, TINY, run
from worldmodel.cli import main
from worldmodel.data.orbit_sequences import OrbitSequences
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.training.checkpoints import last_checkpoint, renew_last_checkpoint

pytestmark = pytest.mark.filterwarnings("ignore")

LONGER = ("--trainer.max_steps=6", "--trainer.val_check_interval=2")


def stopped(*arguments):
    with pytest.raises(SystemExit) as ended:
        run(*arguments)
    return ended.value.code


def once(monkeypatch, kind, method, number, at_step):
    """Send a signal to this process while a model does something, once."""
    unpatched, sent = getattr(kind, method), []

    def patched(self, *args, **kwargs):
        if self.trainer.global_step == at_step and not sent and not self.trainer.sanity_checking:
            sent.append(number)
            os.kill(os.getpid(), number)
        return unpatched(self, *args, **kwargs)

    monkeypatch.setattr(kind, method, patched)
    return sent


@pytest.mark.full
@pytest.mark.parametrize(
    ("number", "code", "method", "at_step", "saved_step"),
    [
        (signal.SIGTERM, 143, "training_step", 2, 3),
        (signal.SIGINT, 130, "validation_step", 4, 4),
    ],
)
def test_a_stopped_training_goes_on_as_if_nothing_had_happened(
    tmp_path, monkeypatch, capsys, number, code, method, at_step, saved_step
):
    run("fit", "pretrain.yaml", tmp_path / "whole", *LONGER)
    handlers = [signal.getsignal(x) for x in (signal.SIGINT, signal.SIGTERM)]
    with monkeypatch.context() as patch:
        assert not once(patch, NextTokenModel, method, number, at_step)
        assert stopped("fit", "pretrain.yaml", tmp_path / "cut", *LONGER) == code
    assert [signal.getsignal(x) for x in (signal.SIGINT, signal.SIGTERM)] == handlers
    last = tmp_path / "cut" / "pretrain" / "version_0" / "checkpoints" / "last.ckpt"
    said = f"stopped at step {saved_step}; resume: the same command with --ckpt_path {last}"
    assert said in capsys.readouterr().err
    assert torch.load(last, weights_only=True)["global_step"] == saved_step
    run("fit", "pretrain.yaml", tmp_path / "cut", *LONGER, f"--ckpt_path={last}")
    whole, again = (
        torch.load(tmp_path / name / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
        for name in ("whole/pretrain/version_0", "cut/pretrain/version_1")
    )
    assert all(torch.equal(again[name], whole[name]) for name in whole)


@pytest.mark.full
@pytest.mark.parametrize("command", ["validate", "predict"])
def test_an_answer_that_was_stopped_is_no_success(tmp_path, monkeypatch, capsys, command):
    run("finetune", "force.yaml", tmp_path, "--data.n_train=8")
    last = tmp_path / "force" / "version_0" / "checkpoints" / "last.ckpt"
    method = {"validate": "validation_step", "predict": "predict_step"}[command]
    file = tmp_path / "predictions.npz"
    monkeypatch.setattr(ForceModel, method, getattr(ForceModel, method))
    once(monkeypatch, ForceModel, method, signal.SIGTERM, at_step=0)
    more = (f"--ckpt_path={last}", f"--trainer.callbacks.path={file}", "--data.n_test=9")
    assert (
        stopped(
            command, "force.yaml", tmp_path, *more, "--data.n_val=9", "--data.eval_batch_size=4"
        )
        == 143
    )
    assert "stopped; nothing was saved" in capsys.readouterr().err
    assert not file.exists()


@pytest.mark.full
def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(tmp_path):
    limited = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000));"
        "from worldmodel.cli import main; main()"
    )
    save = f"--trainer.logger.init_args.save_dir={tmp_path}"
    arguments = ["fit", "-c", str(CONFIGS / "pretrain.yaml"), save, *TINY]
    found = subprocess.run(
        [sys.executable, "-c", limited, *arguments], capture_output=True, text=True, check=False
    )
    assert found.returncode == 2
    assert "Traceback" not in found.stderr
    last = tmp_path / "pretrain" / "version_0" / "checkpoints" / "last.ckpt"
    assert found.stderr.splitlines()[-1] == f"error: [Errno 27] File too large: '{last}'"
    assert not [x for x in tmp_path.rglob("*") if ".ckpt" in x.name]


def test_a_folder_that_is_a_file_is_one_line(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert stopped("fit", "pretrain.yaml", tmp_path / "file") == 2
    assert "Not a directory" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.full
def test_memory_that_is_not_there_is_one_line(tmp_path, monkeypatch, capsys):
    def large(self, indices):
        raise MemoryError("Unable to allocate 59.6 GiB")

    monkeypatch.setattr(OrbitSequences, "__getitems__", large)
    assert stopped("fit", "pretrain.yaml", tmp_path) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line == "error: out of memory: Unable to allocate 59.6 GiB"


@pytest.mark.full
def test_a_killed_loader_is_one_line(tmp_path, monkeypatch, capsys):
    def killed(self, indices):
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(OrbitSequences, "__getitems__", killed)
    assert stopped("fit", "pretrain.yaml", tmp_path, "--data.num_workers=1") == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("error: DataLoader worker (pid")


def test_another_error_of_the_program_keeps_its_traceback(tmp_path, monkeypatch):
    def broken(self, batch):
        raise RuntimeError("shape mismatch")

    monkeypatch.setattr(NextTokenModel, "_loss", broken)
    with pytest.raises(RuntimeError, match="shape mismatch"):
        main(["fit", "-c", str(CONFIGS / "pretrain.yaml"), *TINY,
              f"--trainer.logger.init_args.save_dir={tmp_path}"])  # fmt: skip


@pytest.mark.full
def test_the_next_start_removes_what_a_killed_training_left(tmp_path):
    folder = tmp_path / "pretrain" / "version_0" / "checkpoints"
    folder.mkdir(parents=True)
    left, other = folder / ".last.ckpt.1.0a1b2c3d.tmp", folder / "notes.tmp"
    for path in (left, other):
        path.write_bytes(b"half")
    run("fit", "pretrain.yaml", tmp_path)
    assert not left.exists()
    assert other.exists(), "a file that no training wrote"
    assert (tmp_path / "pretrain" / "version_1" / "checkpoints" / "last.ckpt").is_file()


@pytest.mark.full
@pytest.mark.parametrize(
    ("number", "code"),
    [pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow), (signal.SIGTERM, 143)],
)
def test_a_signal_to_the_whole_group_stops_a_training_with_workers(tmp_path, number, code):
    """As a terminal sends Ctrl-C, and some schedulers SIGTERM: to the loaders' processes too."""
    last = tmp_path / "pretrain" / "version_0" / "checkpoints" / "last.ckpt"
    arguments = ["fit", "-c", str(CONFIGS / "pretrain.yaml"), *TINY, "--data.num_workers=2"]
    arguments += [f"--trainer.logger.init_args.save_dir={tmp_path}", "--trainer.max_steps=1000000"]
    arguments += ["--trainer.callbacks.every_n_train_steps=2", "--trainer.val_check_interval=1000"]
    reset = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    program = subprocess.Popen(
        [sys.executable, "-c", f"{reset} from worldmodel.cli import main; main()", *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        while not last.exists() and program.poll() is None:
            time.sleep(0.1)
        os.killpg(program.pid, number)
        said = program.communicate(timeout=600)[1]
    finally:
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)
    assert program.returncode == code, said
    assert f"resume: the same command with --ckpt_path {last}" in said
    assert torch.load(last, weights_only=True)["global_step"] > 0


@pytest.mark.full
def test_a_training_without_a_last_checkpoint_gets_one_when_it_is_stopped(
    tmp_path, monkeypatch, capsys
):
    once(monkeypatch, NextTokenModel, "training_step", signal.SIGTERM, 2)
    off = "--trainer.callbacks.save_last=false"
    assert stopped("fit", "pretrain.yaml", tmp_path, *LONGER, off) == 143
    last = tmp_path / "pretrain" / "version_0" / "checkpoints" / "last.ckpt"
    assert f"--ckpt_path {last}" in capsys.readouterr().err
    assert torch.load(last, weights_only=True)["global_step"] == 3


def test_one_rule_says_where_the_last_checkpoint_is(tmp_path):
    best, last = ModelCheckpoint(tmp_path / "best"), ModelCheckpoint(tmp_path, save_last=True)
    saved = []
    trainer = SimpleNamespace(
        checkpoint_callbacks=[best, last], save_checkpoint=lambda path, _: saved.append(Path(path))
    )
    assert last_checkpoint(trainer) == tmp_path / "last.ckpt"
    renew_last_checkpoint(trainer)
    assert not saved  # none was written yet
    last.last_model_path = str(tmp_path / "last-v1.ckpt")
    renew_last_checkpoint(trainer)
    assert saved == [last_checkpoint(trainer)] == [tmp_path / "last-v1.ckpt"]
    trainer.checkpoint_callbacks = [best]
    assert last_checkpoint(trainer) == tmp_path / "best" / "last.ckpt"
    trainer.checkpoint_callbacks = []
    assert last_checkpoint(trainer) is None
