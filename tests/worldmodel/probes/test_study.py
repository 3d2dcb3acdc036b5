"""The study of probes: refusals before any work, resuming, results, named checkpoints."""

import subprocess
import sys
import zipfile
from types import MappingProxyType

import numpy as np
import pytest

import worldmodel.__main__
from orbits.runs import artefact, folder, study
from orbits.runs.cell import Outcome
from orbits.runs.executors import Execution
from orbits.runs.folder import Existing
from tests.waiting import wait_until
from tests.worldmodel.probes.conftest import SMALL
from tests.worldmodel.probes.evaluation import HERE
from tests.worldmodel.trainings import save
from worldmodel import probes
from worldmodel.models.checkpoint import read_checkpoint
from worldmodel.models.export import CONFIG, export
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.probes.base import Probe
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.force import head
from worldmodel.probes.force.force_magnitude import PROBE as FORCE_MAGNITUDE
from worldmodel.probes.probe import STUDY
from worldmodel.probes.report import table
from worldmodel.probes.settings import Settings


class Counting(Probe):
    """A probe that counts how often it really computes."""

    name = "counting"
    about = "Counts."
    uses = ("n_sequences", "seeds")

    def __init__(self):
        self.measured = self.pieces = 0
        self.fails = False

    def refusal(self, checkpoint, settings):
        return "its law is yukawa; take newton" if checkpoint.law == "yukawa" else None

    def measure(self, checkpoint, settings, pieces):
        self.measured += 1

        def piece():
            self.pieces += 1
            return {"x": np.arange(3.0)}

        x = pieces.arrays({"piece": "x"}, piece)["x"]
        if self.fails:
            raise ValueError("interrupted")
        artefact.save_arrays(pieces.folder / "kept.npz", {"x": x}, {})
        metrics = {"sum": [float(x.sum()), 2.0, 4.0], "n": 3}
        return [Outcome(metrics, files={"kept": "kept.npz"}, setting={"of": "x"})]


@pytest.fixture
def counting(monkeypatch):
    one = Counting()
    monkeypatch.setattr(probes, "names", lambda: ("counting",))
    monkeypatch.setattr(probes, "get", MappingProxyType({"counting": one}).__getitem__)
    return one


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    model = NextTokenModel(attention="lssar", attention_args={"p": 3}, **SMALL)
    return save(model, tmp_path_factory.mktemp("checkpoint") / "one.ckpt", train_seed=4)


def probe(checkpoints, out, *names, existing=Existing(), **changes):
    chosen = Settings(tuple(map(str, checkpoints)), names or ("all",), **changes)
    return study.run(STUDY, chosen, out, HERE, existing=existing)


def test_a_checkpoint_says_what_it_is(checkpoint):
    loaded = Checkpoint.load(checkpoint)
    assert loaded.row == {
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
    elsewhere = Checkpoint.load(checkpoint, law="power_1_5")
    assert elsewhere.protocol.law == "power_1_5"
    assert elsewhere.trained_on.law == "newton"
    twin = loaded.untrained(0)
    assert dict(twin.hparams) == dict(loaded.model.hparams)
    weights = [dict(x.named_parameters())["head.logits.weight"] for x in (twin, loaded.model)]
    assert not np.allclose(*(weight.detach().numpy() for weight in weights))


def test_a_run_is_resumed_and_reported(checkpoint, counting, tmp_path):
    out = tmp_path / "out"
    (result,) = probe([checkpoint], out)
    assert result.metrics["sum"].interval == (3.0, 2.0, 4.0)
    assert result.manifest["inputs"] == {"checkpoint": artefact.sha256(checkpoint)}
    assert result.details["checkpoint"] == Checkpoint.load(checkpoint).row
    assert (result.case.kind, result.case.variant) == ("counting", "lssar p=3")
    assert folder.load(out)[1]["config"]["datasets"] == 100
    text = study.report(STUDY, out)
    for written in (text, (out / "report.md").read_text(), (out / "report.html").read_text()):
        assert "lssar p=3" in written
        assert str(tmp_path) not in written.replace(str(out / "report.html"), "")
    assert "3 [2, 4]" in (out / "report.md").read_text()

    (out / "results.jsonl").unlink()  # as after a kill
    probe([checkpoint], out)
    assert (counting.measured, counting.pieces) == (1, 1)
    kept = folder.file(out, result, "kept")
    kept.unlink()
    probe([checkpoint], out)
    assert kept.is_file(), "a lost file is made again"
    assert counting.measured == 2


def test_finished_pieces_of_a_probe_that_stopped_are_kept(checkpoint, counting, tmp_path):
    counting.fails = True
    (result,) = probe([checkpoint], tmp_path)
    assert result.error == "ValueError: interrupted"
    counting.fails = False
    (result,) = probe([checkpoint], tmp_path)
    assert result.ok
    assert (counting.measured, counting.pieces) == (2, 1)


def test_a_probe_that_cannot_be_used_says_why(checkpoint, counting, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(
        ValueError, match=r"counting does not take .*its law is yukawa; take newton"
    ):
        probe([checkpoint], out, "counting", law="yukawa")
    with pytest.raises(ValueError, match="no probe can be used on these checkpoints"):
        probe([checkpoint], out, law="yukawa")
    with pytest.raises(ValueError, match="inverse_cube"):
        probe([checkpoint], out, law="inverse_cube")
    assert not out.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": (0, 1)}, "at least 3 seeds, got 2; give one"),
        ({"seeds": ()}, "different numbers"),
        ({"seeds": (0, 0, 1)}, "different numbers"),
        ({"n_sequences": 1}, "n_sequences must be at least 2, got 1"),
        ({"datasets": 0}, "datasets must be at least 2"),
        ({"labels": 9}, "labels must be at least 10"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        (
            {"white_noise": "pink"},
            "unknown white noise 'pink'; choose from projection, direction, random",
        ),
    ],
)
def test_impossible_settings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Settings(**changes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "arguments are required: checkpoints"),
        (["nothing.ckpt"], "nothing.ckpt: no such file"),
        (["gpt:x=nothing.ckpt"], "a named checkpoint is LABEL:SEED=PATH"),
        (["."], ".: no config.json in it; not an exported model"),
        (["README.md"], "not a checkpoint of a world model"),
        (["README.md", "--probes", "rollouts"], "did you mean rollout"),
        (["CKPT", "--law", "newtons"], "unknown law 'newtons'; did you mean newton?"),
        (["CKPT", "--seeds", "0,1"], "at least 3 seeds"),
        (["README.md", "--seeds", "a"], "--seeds must be a whole number, got 'a'"),
        (["CKPT", "--white-noise", "pink"], "choose from projection, direction, random"),
        (["README.md", "--frobnicate"], "nrecognized arguments: --frobnicate"),
        (["README.md", "--jobs", "2"], "use --workers"),
    ],
)
def test_bad_input_is_one_line(arguments, message, tmp_path, refusal, monkeypatch):
    archive = tmp_path / "empty.ckpt"
    zipfile.ZipFile(archive, "w").close()
    given = [str(archive) if argument == "CKPT" else argument for argument in arguments]
    monkeypatch.setattr(
        sys, "argv", ["worldmodel", "probe", *given, "--out", str(tmp_path / "out")]
    )
    assert message in refusal(worldmodel.__main__.main)
    assert not (tmp_path / "out").exists()


def test_a_setting_that_no_named_probe_reads_is_refused(checkpoint):
    settings = Settings(checkpoints=(str(checkpoint),), probes=("rollout", "linear"), labels=20)
    STUDY.check_changes(settings, {"labels": 20, "n_sequences": 3, "law": "yukawa"})
    with pytest.raises(ValueError, match=r"--shift-file changes nothing of rollout, linear;"):
        STUDY.check_changes(settings, {"shift_file": "x.yaml abc"})


@pytest.mark.parametrize("name", probes.names())
def test_every_probe_keeps_the_contract(name):
    one = probes.get(name)
    assert isinstance(one, Probe)
    assert one.name == name
    assert one.about
    assert set(one.uses) <= set(vars(Settings()))


def test_checkpoints_that_would_share_a_row_are_refused(checkpoint, counting, tmp_path):
    model = NextTokenModel(attention="lssar", attention_args={"p": 3}, **SMALL)
    twin = save(model, tmp_path / "twin.ckpt", train_seed=4)
    with pytest.raises(
        ValueError,
        match=r"same by model, size, steps, labels and data.train_seed; .*LABEL:SEED=PATH",
    ):
        probe([checkpoint, twin], tmp_path / "out")
    away = NextTokenModel(protocol="fixed", protocol_args={"n_points": 48}, **SMALL)
    other = save(away, tmp_path / "other.ckpt", train_seed=4)
    with pytest.raises(ValueError, match="different worlds, which never share a table"):
        probe([checkpoint, other], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_probe_that_is_named_twice_is_used_once(checkpoint, counting, tmp_path):
    assert len(probe([checkpoint], tmp_path, "counting", "counting")) == 1


def test_an_exported_model_is_probed_as_its_checkpoint(checkpoint, counting, tmp_path):
    case = {"seed": 4, "setting": {"labels": None}}
    exported = export(checkpoint, tmp_path / "one", "A test.", {"case": case})
    (result,) = probe([exported], tmp_path / "out")
    own, first = Checkpoint.load(exported), Checkpoint.load(checkpoint)
    assert {**own.row, "steps": 0} == first.row, "it does not tell its steps"
    assert own.steps is None
    assert result.manifest["inputs"] == {"checkpoint": own.sha256}
    # A head on it starts from its weights, and a control of unknown length is refused.
    model = ForceModel(**head.shape(own.model))
    model.load_backbone(own.path)
    for name, value in own.model.gpt.state_dict().items():
        assert model.gpt.state_dict()[name].equal(value)
    assert "--no-scratch" in FORCE_MAGNITUDE.refusal(own, Settings())
    assert FORCE_MAGNITUDE.refusal(own, Settings(scratch=False)) is None
    assert FORCE_MAGNITUDE.refusal(first, Settings()) is None
    (exported / CONFIG).unlink()
    with pytest.raises(FileNotFoundError, match=r"one: no config.json in it"):
        probe([exported], tmp_path / "again")


def test_settings_that_a_probe_does_not_use_leave_its_results(checkpoint, counting, tmp_path):
    probe([checkpoint], tmp_path)
    probe([checkpoint], tmp_path, datasets=5, existing=Existing(resume=True))
    assert counting.measured == 1
    probe([checkpoint], tmp_path, n_sequences=5, existing=Existing(resume=True))
    assert counting.measured == 2


@pytest.mark.parametrize(
    ("probe", "changes"), [("causal", {"labels": 20}), ("predictions", {"stop_heads": True})]
)
def test_a_probe_is_told_an_option_that_it_reads(checkpoint, probe, changes):
    given = Settings(checkpoints=(str(checkpoint),), probes=(probe,), **changes)
    (cell,) = [x for x in STUDY.cells(given) if x.arguments.get("probe") == probe]
    assert changes.items() <= cell.arguments["settings"].items()


def test_checkpoints_can_be_named(checkpoint, counting, tmp_path):
    results = probe([f"sharp:{seed}={checkpoint}" for seed in (0, 1)], tmp_path)
    assert [(x.case.variant, x.case.seed) for x in results] == [("sharp", 0), ("sharp", 1)]


def test_force_heads_are_told_apart_by_their_labels(tmp_path, counting):
    heads = []
    for n in (300, 1000):
        (tmp_path / str(n)).mkdir()
        heads.append(save(ForceModel(**SMALL), tmp_path / str(n) / "head.ckpt", n_train=n))
    made = table(probe(heads, tmp_path / "out"))
    assert made.columns[0].heading == "labels"
    assert [row[0].text for row in made.rows] == ["300", "1000"]


def test_a_damaged_checkpoint_is_named(checkpoint, tmp_path):
    cut = tmp_path / "cut.ckpt"
    cut.write_bytes(checkpoint.read_bytes()[:-2000])
    for path, said in ((cut, "not a checkpoint of a world model"), (tmp_path, "a folder; name")):
        with pytest.raises(ValueError, match=f"{path}: {said}"):
            read_checkpoint(path)


@pytest.mark.full
def test_every_probe_runs_in_worker_processes(trained, tmp_path):
    paths = [f"again:1={trained()}"]
    settings = STUDY.settings("tiny", checkpoints=paths, labels=12, seeds=[0], n_sequences=12)
    results = study.run(STUDY, settings, tmp_path, Execution("processes", workers=2))
    assert all(result.ok for result in results), [result.error for result in results]
    kinds = {result.case.kind for result in results}
    needs_more = {
        "force_vector",
        "exchange_law",
        "exchange_mass",
        "free_fall",
    }  # planets; more systems that can be paired; a third body
    assert kinds == {*probes.names(), "training", "white noise"} - needs_more
    trainings = [x.case for x in results if x.case.kind == "training"]
    assert sum(case.arm == "pretrained" for case in trainings) == 2, "two leaks"
    assert "again" in study.report(STUDY, tmp_path)


@pytest.mark.full
def test_a_run_that_is_killed_goes_on_where_it_was(trained, tmp_path):
    flags = ["--probes", "inductive_bias", "--preset", "tiny", "--datasets", "6", "--steps", "2"]
    command = [sys.executable, "-m", "worldmodel", "probe", str(trained()), *flags]
    command += ["--executor", "here", "--out", str(tmp_path / "killed")]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        pieces = "killed/cells/*.scratch/*.npz"
        wait_until(lambda: len(list(tmp_path.glob(pieces))) > 2, "three finished pieces")
    finally:
        run.kill()
        run.wait()
    assert not (tmp_path / "killed" / "results.jsonl").exists()
    subprocess.run(command, check=True, capture_output=True)
    settings = STUDY.settings(
        "tiny", checkpoints=[str(trained())], probes=["inductive_bias"], datasets=6, steps=2
    )
    whole = study.run(STUDY, settings, tmp_path / "whole", HERE)
    again, _ = folder.load(tmp_path / "killed")
    assert [(x.case, x.metrics) for x in again] == [(x.case, x.metrics) for x in whole]
