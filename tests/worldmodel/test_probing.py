"""Running probes: refusals before any work, resuming, lines, report; intervals."""

import json
import sys
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

import worldmodel.__main__
from orbits import artefacts
from worldmodel import intervals, probes, probing
from worldmodel.checkpoint import read_checkpoint
from worldmodel.gpt_task import GPTTask
from worldmodel.probe_report import table
from worldmodel.probing import Settings, Subject, probe
from worldmodel.tasks import ForceTask, NextTokenTask

SMALL = {"n_layer": 1, "n_head": 2, "head_dim": 8}


def save_checkpoint(task: GPTTask, path: Path, **data) -> Path:
    """Write what Lightning would."""
    import lightning

    trainer = lightning.Trainer(
        logger=False, enable_progress_bar=False, accelerator="cpu", default_root_dir=path.parent
    )
    trainer.strategy.connect(task)
    trainer.save_checkpoint(path)
    import torch

    content = torch.load(path, weights_only=True)
    content["datamodule_hyper_parameters"] = data
    torch.save(content, path)
    return path


class Counting:
    """A probe that counts how often it really computes."""

    name = "counting"
    about = "Counts."
    captions = MappingProxyType({"bars": "Nothing."})
    uses = ("n_sequences", "seeds")
    trains = False

    def __init__(self):
        self.answers = self.pieces = 0

    def refusal(self, subject, settings):
        return "its law is yukawa; take newton" if subject.law == "yukawa" else None

    def measure(self, subject, settings, store):
        self.answers += 1

        def piece():
            self.pieces += 1
            return {"x": np.arange(3.0)}

        x = store.arrays({"piece": "x"}, piece)["x"]
        path = store.file("kept.npz")
        artefacts.save_arrays(path, {"x": x}, {})
        return [
            {
                "name": subject.model,
                "arm": "pretrained",
                "setting": {"of": "x"},
                "metrics": {"sum": [float(x.sum()), 2.0, 4.0], "n": 3},
                "files": {"kept": store.relative(path)},
            }
        ]

    def draw(self, lines, out):
        assert all((out / line["files"]["kept"]).is_file() for line in lines)
        return {}


@pytest.fixture
def counting(monkeypatch):
    one = Counting()
    monkeypatch.setattr(probes, "names", lambda: ("counting",))
    monkeypatch.setattr(probes, "get", lambda name: one)
    return one


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint")
    task = NextTokenTask(attention="lssar", attention_args={"p": 3}, **SMALL)
    return save_checkpoint(task, folder / "one.ckpt", train_seed=4)


def test_a_subject_says_what_it_is(checkpoint):
    subject = Subject.load(checkpoint)
    assert subject.row == {
        "protocol": "identifiable",
        "law": "newton",
        "trained_on": "newton",
        "model": "lssar p=3",
        "arm": "pretrained",
        "size": "n_layer 1, n_head 2, head_dim 8, mlp gelu, norm layer, input bin_centres, "
        "n_points 48, n_bins 512",
        "steps": 0,
        "labels": None,
        "seed": 4,
    }
    elsewhere = Subject.load(checkpoint, law="power_1_5")
    assert elsewhere.protocol.law == "power_1_5"
    assert elsewhere.trained_on.law == "newton"
    twin = subject.untrained(0)
    assert dict(twin.hparams) == dict(subject.task.hparams)
    weights = [dict(task.named_parameters())["head.logits.weight"] for task in (twin, subject.task)]
    assert not np.allclose(*(weight.detach().numpy() for weight in weights))


def test_a_run_is_resumed_and_reported(checkpoint, counting, tmp_path):
    out = tmp_path / "out"
    page = probe([checkpoint], [], out, Settings())
    lines, proof = probing.load(out)
    assert lines[0]["metrics"]["sum"] == [3.0, 2.0, 4.0]
    assert lines[0]["manifest"]["inputs"] == {"one.ckpt": artefacts.sha256(checkpoint)}
    assert proof["config"]["settings"]["datasets"] == 100
    text = page.read_text()
    assert "lssar p=3" in text
    assert "3 [2, 4]" in text
    assert str(tmp_path) not in text

    (out / "results.jsonl").unlink()  # as after a kill
    probe([checkpoint], [], out, Settings())
    assert (counting.answers, counting.pieces) == (1, 1)

    for path in (out / "cells").glob("*.json"):
        if not (path.with_suffix("")).suffix:  # the answer's record, not an array's sidecar
            path.unlink()
    probe([checkpoint], [], out, Settings())
    assert (counting.answers, counting.pieces) == (2, 1), "the pieces are kept"


def test_a_folder_of_another_run_is_refused(checkpoint, counting, tmp_path):
    out = tmp_path / "out"
    probe([checkpoint], [], out, Settings())
    with pytest.raises(ValueError, match=r"differs in settings.*--resume"):
        probe([checkpoint], [], out, Settings(n_sequences=7))
    probe([checkpoint], [], out, Settings(n_sequences=7), resume=True)
    assert counting.pieces == 2, "another setting computes again"
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(ValueError, match="not probe results"):
        probe([checkpoint], [], other, Settings())
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]


def test_a_probe_that_cannot_ask_says_why(checkpoint, counting, tmp_path):
    with pytest.raises(ValueError, match=r"counting cannot ask .*its law is yukawa; take newton"):
        probe([checkpoint], ["counting"], tmp_path / "out", Settings(law="yukawa"))
    with pytest.raises(ValueError, match="no probe can ask these checkpoints"):
        probe([checkpoint], [], tmp_path / "out", Settings(law="yukawa"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": (0, 1)}, "at least 3 seeds, got 2; give one"),
        ({"seeds": ()}, "different numbers"),
        ({"seeds": (0, 0, 1)}, "different numbers"),
        ({"n_sequences": 1}, "n_sequences must be at least 2, got 1"),
        ({"datasets": 0}, "datasets must be at least 2"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"white_noise": "pink"}, "unknown white noise 'pink'; choose from projection, random"),
    ],
)
def test_impossible_settings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Settings(**changes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.ckpt"], "nothing.ckpt: no such file"),
        (["gpt:x=nothing.ckpt"], "a named checkpoint is LABEL:SEED=PATH"),
        (["."], ".: no such file"),
        (["README.md"], "not a checkpoint of a world model"),
        (["README.md", "--probes", "rollouts"], "did you mean rollout"),
        (["README.md", "--seeds", "0,1"], "at least 3 seeds"),
        (["README.md", "--seeds", "a"], "whole numbers"),
        (["README.md", "--white-noise", "pink"], "choose from projection, random"),
        (["README.md", "--frobnicate"], "unrecognized arguments: --frobnicate"),
    ],
)
def test_bad_input_is_one_line(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        sys, "argv", ["worldmodel", "probe", *arguments, "--out", str(tmp_path / "out")]
    )
    with pytest.raises(SystemExit) as stop:
        worldmodel.__main__.main()
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1, error
    assert not (tmp_path / "out").exists()


def test_every_probe_keeps_the_contract():
    for name in probes.names():
        one = probes.get(name)
        assert one.name == name
        assert one.about
        assert one.captions
        assert all(callable(getattr(one, part)) for part in ("refusal", "measure", "draw"))


def test_three_seeds_make_an_interval_and_fewer_do_not():
    def line(seed, value):
        row = {"protocol": "p", "law": "newton", "trained_on": "newton", "model": "softmax"}
        row |= {"size": "small", "steps": 10, "labels": None}
        return {
            "row": {**row, "arm": "pretrained", "seed": seed},
            "setting": {"layer": 1},
            "metrics": {"r2": [value, value - 0.1, value + 0.1]},
        }

    header, rows = table([line(0, 0.5), line(1, 0.7)])
    assert header == ["layer", "who", "arm", "seeds", "r2"]
    assert rows == [["1", "softmax", "pretrained", "2", "0.5 [0.4, 0.6]; 0.7 [0.6, 0.8]"]]
    _, rows = table([line(0, 0.5), line(1, 0.6), line(2, 0.7)])
    half = 4.302653 * 0.1 / 3**0.5  # Student's t, two degrees of freedom
    assert rows[0][-1] == f"0.6 [{0.6 - half:.3g}, {0.6 + half:.3g}]"


def test_the_interval_of_a_row_says_over_what_it_is():
    row = {"trained_on": "newton", "size": "small", "steps": 1, "labels": None}
    row |= {"model": "softmax", "arm": "pretrained"}
    lines = [
        {
            "row": {**row, "seed": seed},
            "setting": {"interval": "over 9 datasets"},
            "metrics": {"r_ib": [0.1 * seed, 0.0, 1.0], "r_ib_standard_error": 0.1 * seed},
        }
        for seed in range(3)
    ]
    header, rows = table(lines[:2])
    assert header[0] == "interval"
    assert rows[0][0] == "over 9 datasets"
    header, rows = table(lines)
    assert rows[0][0] == "t, checkpoints"
    assert rows[0][-1] == "0.1", "a standard error has no interval"
    oracle = [{**lines[1], "row": {**row, "seed": seed}} for seed in range(3)]
    assert table(oracle)[1][0][0] == "over 9 datasets", "no training changes an oracle"


def test_three_lines_of_one_seed_make_no_interval_over_seeds():
    row = {"trained_on": "newton", "size": "small", "model": "softmax", "arm": "pretrained"}
    row["labels"] = None
    lines = [
        {"row": {**row, "steps": steps, "seed": 0}, "setting": {}, "metrics": {"r2": [r2, 0, 1]}}
        for steps, r2 in ((10, 0.1), (20, 0.5), (30, 0.9))
    ]
    header, rows = table(lines)
    assert header == ["steps", "who", "arm", "seeds", "r2"]
    assert [row[0] for row in rows] == ["10", "20", "30"], "another training is another row"
    reference = {**lines[0], "row": {**row, "steps": 10, "seed": 0}}
    same = [{**reference, "row": {**reference["row"], "seed": seed}} for seed in range(3)]
    assert table(same)[1][0][-1] == "0.1 [0, 1]", "what no training changes keeps its interval"


def test_checkpoints_that_would_share_a_row_are_refused(checkpoint, counting, tmp_path):
    task = NextTokenTask(attention="lssar", attention_args={"p": 3}, **SMALL)
    twin = save_checkpoint(task, tmp_path / "twin.ckpt", train_seed=4)
    with pytest.raises(
        ValueError,
        match=r"same by model, size, steps, labels and data.train_seed; .*LABEL:SEED=PATH",
    ):
        probe([checkpoint, twin], [], tmp_path / "out", Settings())
    away = NextTokenTask(protocol="fixed", protocol_args={"n_points": 48}, **SMALL)
    other = save_checkpoint(away, tmp_path / "other.ckpt", train_seed=4)
    with pytest.raises(ValueError, match="different worlds, which never share a table"):
        probe([checkpoint, other], [], tmp_path / "out", Settings())
    assert not (tmp_path / "out").exists()


def test_a_probe_that_is_named_twice_asks_once(checkpoint, counting, tmp_path):
    probe([checkpoint], ["counting", "counting"], tmp_path / "out", Settings())
    assert len(probing.load(tmp_path / "out")[0]) == 1


def test_a_lost_file_is_made_again(checkpoint, counting, tmp_path):
    out = tmp_path / "out"
    probe([checkpoint], [], out, Settings())
    (kept,) = (out / "counting").rglob("kept.npz")
    kept.unlink()
    probe([checkpoint], [], out, Settings())
    assert kept.is_file()
    assert (counting.answers, counting.pieces) == (2, 1)


def test_a_line_that_names_a_file_elsewhere_is_refused(checkpoint, counting, tmp_path):
    out = tmp_path / "out"
    probe([checkpoint], [], out, Settings())
    lines, proof = probing.load(out)
    lines[0]["files"]["kept"] = "../kept.npz"
    artefacts.save_lines(out / probing.LINES, lines, proof)
    with pytest.raises(artefacts.CorruptArtefact, match=r"'\.\./kept\.npz' names no file below"):
        probing.load(out)


def test_settings_that_a_probe_does_not_use_leave_its_answers(checkpoint, counting, tmp_path):
    probe([checkpoint], [], tmp_path, Settings())
    probe([checkpoint], [], tmp_path, Settings(datasets=5), resume=True)
    assert counting.answers == 1
    probe([checkpoint], [], tmp_path, Settings(n_sequences=5), resume=True)
    assert counting.answers == 2


def test_checkpoints_can_be_named(checkpoint, counting, tmp_path):
    named = [f"sharp:{seed}={checkpoint}" for seed in (0, 1)]
    probe(named, [], tmp_path, Settings())
    lines, _ = probing.load(tmp_path)
    assert [(x["row"]["model"], x["row"]["seed"]) for x in lines] == [("sharp", 0), ("sharp", 1)]


def test_force_heads_are_told_apart_by_their_labels(tmp_path, counting):
    heads = []
    for n in (300, 1000):
        (tmp_path / str(n)).mkdir()
        task = ForceTask(**SMALL)
        heads.append(save_checkpoint(task, tmp_path / str(n) / "head.ckpt", n_train=n))
    probe(heads, [], tmp_path / "out", Settings())
    header, rows = table(probing.load(tmp_path / "out")[0])
    assert header[0] == "labels"
    assert [row[0] for row in rows] == ["300", "1000"]


def test_a_damaged_checkpoint_is_named(checkpoint, tmp_path):
    cut = tmp_path / "cut.ckpt"
    cut.write_bytes(checkpoint.read_bytes()[:-2000])
    for path in (cut, tmp_path):
        with pytest.raises(ValueError, match=f"{path}: not a checkpoint of a world model"):
            read_checkpoint(path)


def test_a_law_that_does_not_bind_is_refused_before_any_work(checkpoint, counting, tmp_path):
    with pytest.raises(ValueError, match="inverse_cube"):
        probe([checkpoint], [], tmp_path / "out", Settings(law="inverse_cube"))
    assert not (tmp_path / "out").exists()


def test_the_bootstrap_draws_whole_sequences():
    rng = np.random.default_rng(0)
    per_sequence = rng.normal(2.0, 1.0, 400)
    # Ten equal points of each sequence: treating them as independent would narrow the interval.
    value, low, high = intervals.mean(10 * per_sequence, np.full(400, 10))
    assert value == pytest.approx(per_sequence.mean())
    half = 1.96 * per_sequence.std() / 20
    assert (high - low) / 2 == pytest.approx(half, rel=0.1)
    assert intervals.mean([3.0], [2]) == [1.5, -np.inf, np.inf]
    with pytest.raises(ValueError, match="with a sequence"):
        intervals.bootstrap(np.zeros((0, 2)), lambda s: s[..., 0])


def test_r_squared_is_about_a_fixed_reference():
    value, low, high = intervals.r_squared([1.0, 3.0], [10.0, 10.0])
    assert value == pytest.approx(0.8)
    assert low == pytest.approx(0.7)
    assert high == pytest.approx(0.9)


def test_over_seeds_needs_three():
    with pytest.raises(ValueError, match="at least 3"):
        intervals.over_seeds([1.0, 2.0])


def test_lines_are_plain_json(checkpoint, counting, tmp_path):
    probe([checkpoint], [], tmp_path / "out", Settings(seeds=(0,)))
    for text in (tmp_path / "out" / "results.jsonl").read_text().splitlines():
        assert json.loads(text)["kind"] == "probe"


def test_a_median_has_the_interval_of_resampled_sequences():
    rng = np.random.default_rng(0)
    found = [intervals.median(rng.normal(3, 1, (60, 2)), seed=n) for n in range(100)]
    middles, lows, highs = np.transpose(found)
    assert middles.mean() == pytest.approx(3, abs=0.05)
    assert 88 <= np.sum((lows < 3) & (highs > 3)) <= 100
    assert intervals.median([[1.0, np.nan]])[1:] == [-np.inf, np.inf]
