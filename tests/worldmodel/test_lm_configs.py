"""The configurations of published language models: what they say, and that they run."""

import struct
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from worldmodel.cli import main
from worldmodel.models.text import TextModel
from worldmodel.text.shards import adopt
from worldmodel.text.tokenizers import load_tokenizer

pytestmark = pytest.mark.usefixtures("quiet")

CONFIGS = Path(__file__).parents[2] / "worldmodel" / "configs"
LLM_C = {"lr": 6e-4, "weight_decay": 0.1, "warmup_steps": 700, "optimizer": "adamw"}
MODELS = {
    # layers, heads, steps and learning rate; parameters in millions without learned positions.
    "lm_45m": ((6, 8), 9_000, {**LLM_C, "mlp": "gelu"}, 44.6),
    "lm_124m": ((12, 12), 18_865, {**LLM_C, "norm": "layer"}, 123.6),
    "lm_355m": ((24, 16), 60_000, {**LLM_C, "lr": 3e-4}, 353.5),
    "lm_lazy_340m": (
        (24, 16),
        28_610,
        {"lr": 4e-4, "weight_decay": 0.01, "warmup_steps": 1024, "attention": "lazy"},
        335,
    ),
}


def resolved(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["fit", "-c", str(CONFIGS / f"{name}.yaml"), "--print_config"])
    assert ended.value.code in (0, None)
    return yaml.safe_load(capsys.readouterr().out)


def test_every_language_model_is_checked_here():
    assert {path.stem for path in CONFIGS.glob("lm_*.yaml")} == set(MODELS)


@pytest.mark.full
@pytest.mark.parametrize("name", MODELS)
def test_a_configuration_is_the_published_recipe(name, capsys):
    config = resolved(name, capsys)
    trainer, data = config["trainer"], config["data"]["init_args"]
    model = config["model"]["init_args"]
    (n_layer, n_head), steps, expected, _ = MODELS[name]
    assert (model["n_layer"], model["n_head"], model["head_dim"]) == (n_layer, n_head, 64)
    assert {key: model[key] for key in expected} == expected
    windows = data["batch_size"] * trainer["devices"] * trainer["accumulate_grad_batches"]
    assert windows * data["seq_len"] == 2**19
    assert data["n_val"] * data["seq_len"] == 10 * 2**20, "as in modded-nanogpt"
    assert trainer["max_steps"] == steps
    assert trainer["gradient_clip_val"] == 1.0
    assert trainer["precision"] == "bf16-mixed"
    assert trainer["strategy"] == "ddp"
    assert not trainer["use_distributed_sampler"]
    assert trainer["val_check_interval"] % trainer["accumulate_grad_batches"] == 0


@pytest.mark.full
@pytest.mark.parametrize("name", MODELS)
def test_a_model_has_the_size_in_its_name(name, capsys):
    arguments = dict(resolved(name, capsys)["model"]["init_args"])
    arguments.pop("tokenizer", None)
    with torch.device("meta"):
        task = TextModel(tokenizer="bytes", **arguments)
    vocab_size = 32_000 if "lazy" in name else 50_257
    width = arguments["n_head"] * arguments["head_dim"]
    count = sum(p.numel() for p in task.parameters()) + (vocab_size - 257) * width
    assert count / 1e6 == pytest.approx(MODELS[name][3], rel=2e-3)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "shards"
    path.mkdir()
    draw = np.random.default_rng(0)
    for name in ("x_val_0.bin", "x_train_1.bin"):
        tokens = draw.integers(257, size=2000).tolist()
        header = struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253)
        (path / name).write_bytes(header + struct.pack(f"<{len(tokens)}H", *tokens))
    adopt(path, load_tokenizer("bytes"), progress=False)
    return path


@pytest.mark.full
@pytest.mark.parametrize("name", ["lm_124m", "lm_lazy_340m"])
def test_a_configuration_trains_and_resumes_on_a_small_folder(tmp_path, folder, name):
    def fit(steps, *more):
        main(
            [
                *("fit", "-c", str(CONFIGS / f"{name}.yaml"), f"--data.path={folder}"),
                *("--trainer.accelerator=cpu", "--trainer.devices=1", "--trainer.strategy=auto"),
                *("--trainer.precision=32-true", "--trainer.enable_progress_bar=false"),
                *("--trainer.accumulate_grad_batches=2", "--trainer.val_check_interval=4"),
                f"--trainer.logger.init_args.save_dir={tmp_path}",
                "--trainer.callbacks.every_n_train_steps=2",
                *(f"--trainer.max_steps={steps}", "--trainer.num_sanity_val_steps=0"),
                *("--model.n_layer=1", "--model.n_head=2", "--model.head_dim=8"),
                *("--data.tokenizer=bytes", "--data.seq_len=16", "--data.batch_size=2"),
                *("--data.n_val=3", "--data.num_workers=0", *more),
            ]
        )

    fit(2)
    last = tmp_path / name / "version_0" / "checkpoints" / "last.ckpt"
    first = torch.load(last, weights_only=True)
    assert first["global_step"] == 2
    assert first["ShardData"]["corpus_record"]["tokens"] == {"train": 2000, "val": 2000}
    fit(4, f"--ckpt_path={last}")
    second = torch.load(
        tmp_path / name / "version_1" / "checkpoints" / "last.ckpt", weights_only=True
    )
    assert second["global_step"] == 4


def test_shards_are_no_data_for_an_orbit_model(folder, tmp_path, refusal):
    arguments = [
        *("fit", "-c", str(CONFIGS / "pretrain.yaml"), "--data=ShardData"),
        *(f"--data.path={folder}", "--data.tokenizer=bytes", "--data.seq_len=8"),
        f"--trainer.logger.init_args.save_dir={tmp_path / 'out'}",
    ]
    assert "NextTokenModel does not read ShardData" in refusal(main, arguments, alone=False)
    assert not (tmp_path / "out").exists()
