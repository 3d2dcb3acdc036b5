"""Checkpoints from strangers: nothing in them is run or made, and a changed bit is noticed."""

import zipfile

import numpy as np
import pytest
import torch
import yaml

from benchmarks.__main__ import main as benchmarks
from tests.tiers import corners
from tests.worldmodel.test_cli import CONFIGS, TINY
from worldmodel import __main__ as worldmodel
from worldmodel.cli import main as lightning_cli
from worldmodel.models.checkpoint import read_checkpoint
from worldmodel.models.load import load_model
from worldmodel.probes.command import main as probe

pytestmark = pytest.mark.filterwarnings("ignore")

MARK = "owned"
MAKE = {"class_path": "logging.FileHandler", "init_args": {"filename": MARK}}
"""A class of the standard library that leaves a file where it is made."""

LOOP: list = []
LOOP.append(LOOP)
SHARED: list = [0]
for _ in range(12):
    SHARED = [SHARED] * 10
ATTACKS = {
    "an argument of the attention": lambda held: held.update(attention_args={"p": MAKE}),
    "all arguments of the attention": lambda held: held.update(attention_args=MAKE),
    "deep inside": lambda held: held.update(attention_args={"p": [1, {"x": [MAKE]}]}),
    "the protocol, or an unknown name": lambda held: held.update(protocol_args={"law": MAKE}),
    "its class, an import with an effect": lambda held: held.update(_class_path="this.d"),
    "its class, of the standard library": lambda held: held.update(_class_path=MAKE["class_path"]),
    "its class, a specification": lambda held: held.update(_class_path=MAKE),
    "a list in itself": lambda held: held.update(attention_args={"class": LOOP}),
    "lists that share their parts": lambda held: held.update(attention_args={"p": SHARED}),
}


EVERYWHERE = ("deep inside", "its class, an import with an effect")
"""Attacks on every command, an argument and a class; the others meet the same two checks.

All of them are tried on the reader that the commands share.
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return an orbit model, its saved configuration, a force model and a text model."""
    out = tmp_path_factory.mktemp("trained")
    save = f"--trainer.logger.init_args.save_dir={out}"
    lightning_cli(["fit", "-c", str(CONFIGS / "pretrain.yaml"), save, *TINY])
    lightning_cli(["finetune", "-c", str(CONFIGS / "force.yaml"), save, "--data.n_train=8", *TINY])
    small = [x for x in TINY if "protocol" not in x and "n_val" not in x]
    text = [*small, "--data.seq_len=32", "--data.n_val=4"]
    lightning_cli(["fit", "-c", str(CONFIGS / "text.yaml"), save, *text])
    last = "version_0/checkpoints/last.ckpt"
    return {
        "orbits": out / "pretrain" / last,
        "config": out / "pretrain" / "version_0" / "config.yaml",
        "force": out / "force" / last,
        "force config": out / "force" / "version_0" / "config.yaml",
        "text": out / "text" / last,
        "text config": out / "text" / "version_0" / "config.yaml",
    }


def forged(source, target, attack, group="hyper_parameters"):
    checkpoint = torch.load(source, weights_only=True)
    attack(checkpoint[group])
    torch.save(checkpoint, target)
    return target


def answers(command, arguments, capsys):
    """Run a command that must fail, and return its lines of error."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        command(arguments)
    assert stopped.value.code == 2
    return [x for x in capsys.readouterr().err.splitlines() if "error:" in x]


COMMANDS = {
    "probe": lambda p, c: (probe, [str(p), "--probes=rollout", "--out=probe"]),
    "probe, named": lambda p, c: (probe, [f"gpt:0={p}", "--probes=linear", "--out=probe"]),
    "attention-maps": lambda p, c: (worldmodel.attention_maps, [str(p), "--out=map.png"]),
    **{
        command: lambda p, c, command=command: (
            lightning_cli,
            [command, "-c", str(c), f"--ckpt_path={p}"],
        )
        for command in ("validate", "test", "fit")
    },
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_checkpoint_with_a_class_is_refused(trained, tmp_path, monkeypatch, attack):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"evil\.ckpt: .*(class|nested|more than)"):
        read_checkpoint(forged(trained["orbits"], tmp_path / "evil.ckpt", ATTACKS[attack]))
    assert not (tmp_path / MARK).exists()


@pytest.mark.parametrize(
    ("command", "attack"),
    corners(
        [
            *((command, attack) for command in COMMANDS for attack in EVERYWHERE),
            *((command, x) for command in ("probe", "fit") for x in ATTACKS if x not in EVERYWHERE),
        ],
        *((command, EVERYWHERE[0]) for command in COMMANDS),
        ("fit", EVERYWHERE[1]),
    ),
)
def test_an_orbit_checkpoint_runs_nothing(trained, tmp_path, monkeypatch, capsys, command, attack):
    monkeypatch.chdir(tmp_path)
    evil = forged(trained["orbits"], tmp_path / "evil.ckpt", ATTACKS[attack])
    (line,) = answers(*COMMANDS[command](evil, trained["config"]), capsys)
    assert "evil.ckpt" in line
    assert any(fault in line for fault in ("class", "nested", "more than"))
    assert not (tmp_path / MARK).exists()


@pytest.mark.full
@pytest.mark.parametrize("attack", corners(EVERYWHERE, EVERYWHERE[0]))
def test_a_text_checkpoint_runs_nothing(trained, tmp_path, monkeypatch, capsys, attack):
    monkeypatch.chdir(tmp_path)
    evil = forged(trained["text"], tmp_path / "evil.ckpt", ATTACKS[attack])
    asked = ["run", "extrapolation", "--preset", "tiny", f"--checkpoints=g:0={evil}"]
    commands = [
        (worldmodel.attention_maps, [str(evil), "--out=map.png"]),
        (lightning_cli, ["validate", "-c", str(trained["text config"]), f"--ckpt_path={evil}"]),
        (lambda a: _benchmarks(a, monkeypatch), asked),
    ]
    for command, arguments in commands:
        (line,) = answers(command, arguments, capsys)
        assert any(fault in line for fault in ("class", "nested", "more than"))
    assert not (tmp_path / MARK).exists()


def _benchmarks(arguments, monkeypatch):
    monkeypatch.setattr("sys.argv", ["benchmarks", *arguments])
    benchmarks()


@pytest.mark.full
@pytest.mark.parametrize("attack", EVERYWHERE)
def test_a_backbone_or_a_force_model_runs_nothing(trained, tmp_path, monkeypatch, capsys, attack):
    monkeypatch.chdir(tmp_path)
    config = str(trained["force config"])
    backbone = forged(trained["orbits"], tmp_path / "evil.ckpt", ATTACKS[attack])
    head = forged(trained["force"], tmp_path / "evil-head.ckpt", ATTACKS[attack])
    for arguments in (
        ["finetune", "-c", config, f"--pretrained={backbone}"],
        ["fit", "-c", config, f"--model.pretrained={backbone}"],
        ["predict", "-c", config, f"--ckpt_path={head}"],
    ):
        (line,) = answers(lightning_cli, arguments, capsys)
        assert any(fault in line for fault in ("class", "nested", "more than"))
    assert not (tmp_path / MARK).exists()


def test_the_data_of_a_checkpoint_names_no_class_either(trained, tmp_path):
    def attack(held):
        held["protocol_args"] = {"law": MAKE}

    evil = forged(trained["orbits"], tmp_path / "x.ckpt", attack, "datamodule_hyper_parameters")
    with pytest.raises(ValueError, match=r"protocol_args\.law\.class_path names a class"):
        load_model(evil)


def test_a_maker_in_a_checkpoint_is_not_used(trained, tmp_path):
    def attack(held):
        held["_instantiator"] = "os.system"

    task = load_model(forged(trained["orbits"], tmp_path / "x.ckpt", attack))
    assert "_instantiator" not in task.hparams


@pytest.mark.parametrize(
    "place", ["model.init_args.attention_args.p", "data.init_args.protocol_args.law"]
)
def test_a_configuration_makes_no_class_in_a_dictionary(
    trained, tmp_path, monkeypatch, capsys, place
):
    monkeypatch.chdir(tmp_path)
    config = yaml.safe_load(trained["config"].read_text())
    *path, last = place.split(".")
    inside = config
    for key in path:
        inside[key] = inside.get(key) or {}
        inside = inside[key]
    inside[last] = MAKE
    evil = tmp_path / "config.yaml"
    evil.write_text(yaml.safe_dump(config))
    answers(lightning_cli, ["fit", "-c", str(evil)], capsys)
    assert not (tmp_path / MARK).exists()


@pytest.mark.full
def test_paths_of_earlier_checkpoints_are_neither_written_nor_deleted(trained, tmp_path):
    victim, folder = tmp_path / "victim.txt", tmp_path / "folder"
    victim.write_text("mine")
    folder.mkdir()
    (folder / "mine").touch()

    def attack(callbacks):
        (state,) = (x for name, x in callbacks.items() if name.startswith("ModelCheckpoint"))
        state.pop("dirpath")
        state["last_model_path"] = f"local://{folder}"
        state["best_model_path"] = state["kth_best_model_path"] = str(victim)
        state["best_k_models"] = {str(victim): torch.tensor(0.0)}

    evil = forged(trained["orbits"], tmp_path / "evil.ckpt", attack, "callbacks")
    often = ["--trainer.max_steps=6", "--trainer.callbacks.every_n_train_steps=1"]
    save = f"--trainer.logger.init_args.save_dir={tmp_path / 'out'}"
    config = str(trained["config"])
    lightning_cli(["fit", "-c", config, save, f"--ckpt_path={evil}", *often])
    assert victim.read_text() == "mine"
    assert (folder / "mine").exists()
    assert (tmp_path / "out/pretrain/version_0/checkpoints/last.ckpt").is_file()


@pytest.mark.parametrize("tokenizer", ["/etc/hostname", "../tokenizer.json", 3])
def test_a_text_model_names_no_file_to_read(trained, tmp_path, tokenizer):
    def attack(held):
        held["tokenizer"] = tokenizer

    with pytest.raises(ValueError, match="must be inside the checkpoint"):
        load_model(forged(trained["text"], tmp_path / "x.ckpt", attack))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_layer", 10**9, "its weights are of 1 blocks"),
        ("n_layer", None, "not a checkpoint of a NextTokenModel"),
        ("head_dim", 2**20, "its settings make"),
        ("protocol_args", {"n_points": 16, "n_bins": 2**40}, "not a checkpoint of"),
        ("attention_args", {"p": 10**400}, r"attention_args\.p is no number of 64 bits"),
        ("attention_args", [1], "must be a mapping"),
    ],
)
def test_sizes_are_compared_before_memory_is_taken(trained, tmp_path, name, value, message):
    def attack(held):
        held[name] = value

    with pytest.raises(ValueError, match=message):
        load_model(forged(trained["orbits"], tmp_path / "x.ckpt", attack))


def test_a_compressed_archive_is_no_checkpoint(trained, tmp_path):
    packed = tmp_path / "packed.ckpt"
    with (
        zipfile.ZipFile(trained["orbits"]) as whole,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in whole.namelist():
            archive.writestr(name, whole.read(name))
    with pytest.raises(ValueError, match=r"packed\.ckpt: damaged"):
        read_checkpoint(packed)


@pytest.mark.full
@pytest.mark.parametrize("change", [{"optimizer_states": None}, {"lr_schedulers": ["x"]}])
def test_no_training_goes_on_from_weights_alone(trained, tmp_path, capsys, change):
    checkpoint = torch.load(trained["orbits"], weights_only=True)
    torch.save({**checkpoint, **change}, tmp_path / "weights.ckpt")
    arguments = ["fit", "-c", str(trained["config"]), f"--ckpt_path={tmp_path / 'weights.ckpt'}"]
    (line,) = answers(lightning_cli, arguments, capsys)
    assert "so no training goes on from it" in line


def test_a_flipped_bit_is_noticed(trained, tmp_path):
    """150 flips all over the file: each is refused, or changes nothing that is read."""
    whole = trained["orbits"].read_bytes()
    original, flipped = read_checkpoint(trained["orbits"]), tmp_path / "flipped.ckpt"
    refused = 0
    for place in np.random.default_rng(0).choice(8 * len(whole), 150, replace=False):
        data = bytearray(whole)
        data[place // 8] ^= 1 << (place % 8)
        flipped.write_bytes(data)
        try:
            read = read_checkpoint(flipped)
        except ValueError:
            refused += 1
            continue
        for name, weights in original["state_dict"].items():
            assert torch.equal(read["state_dict"][name], weights), f"bit {place}"
        assert read["hyper_parameters"] == original["hyper_parameters"]
    members = zipfile.ZipFile(trained["orbits"]).infolist()
    assert refused >= 150 * 0.8 * sum(x.file_size for x in members) / len(whole)


def test_a_training_does_not_go_on_from_a_damaged_checkpoint(trained, tmp_path, capsys):
    data = bytearray(trained["orbits"].read_bytes())
    data[len(data) // 2] ^= 1
    damaged = tmp_path / "damaged.ckpt"
    damaged.write_bytes(data)
    arguments = ["fit", "-c", str(trained["config"]), f"--ckpt_path={damaged}"]
    (line,) = answers(lightning_cli, arguments, capsys)
    assert "damaged.ckpt: damaged, its checksums do not match" in line
