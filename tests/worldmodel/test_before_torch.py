"""What the command line answers and refuses before torch is imported."""

import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from tests.early import ROOT, refused_without_torch
from worldmodel.keys import checks


@pytest.mark.parametrize(
    "words",
    [
        *("--help", "fit --help", "fit -c force --model.help", "finetune --data.help=TextData"),
        "fit -c pretrain --help",
        *(pytest.param(f"{name} --help", marks=pytest.mark.full) for name in ("probe", "shards")),
    ],
)
def test_plain_help_does_not_load_torch(words):
    code = (
        f"import sys; sys.argv = ['worldmodel', *{words.split()}]; import worldmodel.__main__ as w"
    )
    check = f"""{code}
try:
    w.main()
finally:
    assert 'torch' not in sys.modules"""
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "usage: python -m worldmodel" in result.stdout


WHOLE = "benchmarks/results/newton-exam/models/softmax-head-3"
"""The folder of an exported model."""
ELSEWHERE = "benchmarks/results/implied-small/models/softmax-world-model-power_1_5-0"
"""A world model of another law."""
MISSING = [
    ("fit --ckpt_path missing", "missing: no such file"),
    ("fit -c missing.yaml", "missing.yaml: no such file"),
    ("fit -c worldmodel/configs/text.yaml --data.path=missing", "missing: no such file"),
    ("fit -c pretrain --data.path=missing", "missing: no such file; `python -m orbits generate"),
    (
        "fit -c lm_124m",
        "shards/fineweb: no such file; `python -m worldmodel shards --corpus fineweb",
    ),
    (
        "fit -c pretrain --modl.attention=lssar",
        "unknown key 'modl.attention'; did you mean --model",
    ),
    (
        "fit -c pretrain --model.attentoin lssar",
        "unknown key 'model.attentoin'; did you mean --model.attention?",
    ),
    (
        "fit -c pretrain --data.init_args.n_trian=4",
        "unknown key 'data.init_args.n_trian'; did you mean --data.n_train?",
    ),
    (
        "finetune -c force --trainer.max_step=100",
        "unknown key 'trainer.max_step'; did you mean --trainer.max_steps?",
    ),
    (
        "fit -c pretrain --attention=lssar",
        "unknown key 'attention'; did you mean --model.att",
    ),
    ("finetune -c force --pretraind=x.ckpt", "unknown key 'pretraind'; did you mean --pretrain"),
    (
        "fit -c pretrain --trainer.logger=AbsentLogger",
        "AbsentLogger needs absent_package, which is",
    ),
    ("fit -c pretrain --data.path=tests", "tests holds no finished dataset (no dataset.json)"),
    ("finetune --pretrained=missing", "missing: no such file"),
    ("validate --ckpt_path=missing", "missing: no such file"),
    ("test --config=missing.yaml", "missing.yaml: no such file"),
    ("predict --ckpt_path README.md", "README.md: not a checkpoint of a world model"),
    ("fit -c worldmodel/configs/pretrain.yaml --model.attention=lsar", "unknown attention 'lsar'"),
    ("fit -c DIR/saved.yaml", "gone.ckpt: no such file"),
    ("predict", "python -m worldmodel predict needs a checkpoint: name it first"),
    ("predict --out x.csv", "x.csv: predictions are written as .npz"),
    ("attention-maps missing", "missing: no such file"),
    ("attention-maps README.md", "README.md: not a checkpoint of a world model"),
    (f"attention-maps {WHOLE} --out x.docx", "x.docx: pictures are written as png, svg, pdf,"),
    (f"predict {WHOLE}", f"{WHOLE}: the folder of an exported model; name the file of a checkp"),
    ("predict DIR/last.ckpt -c DIR/writes.yaml", "DIR/made.npz exists; choose another file with"),
    ("predict missing -c DIR/writes.yaml", "missing: no such file"),
    ("predict DIR", "DIR: a folder; name the file of a checkpoint, such as last.ckpt"),
    (f"fit -c pretrain --ckpt_path={WHOLE}", f"{WHOLE}: the folder of an exported model; name "),
    (f"probe {WHOLE}/model.safetensors", f"{WHOLE}/model.safetensors: weights alone; name the "),
    ("probe DIR/cut", "DIR/cut/model.safetensors: damaged, its sha256 is not that of config.json"),
    ("finetune -c force --pretrained DIR/cut", "DIR/cut/model.safetensors: damaged, its sha256"),
    ("finetune -c pretrain", "finetune trains a ForceModel, got NextTokenModel; take -c force, or"),
    ("probe missing", "missing: no such file"),
    ("probe lssar:0=missing", "missing: no such file"),
    ("probe README.md --probes linaer", "unknown probe 'linaer'; did you mean linear?"),
    ("probe README.md --lab 3", "unrecognized arguments: --lab"),
    (
        "probe --model DIR/odd.py:Ahead",
        "DIR/odd.py: Ahead is no world model: predict_next of",
    ),
    ("probe --model DIR/odd.py:Mute", "DIR/odd.py: Mute is no world model: it has no method"),
    (
        f"finetune -c force --pretrained {WHOLE} --data.protocol=paper",
        f"{WHOLE}: trained with protocol='identifiable', this model has protocol='paper'; leave o",
    ),
    (
        f"finetune -c force --pretrained {WHOLE} --model.init_args.attention lssar",
        f"{WHOLE}: trained with attention='softmax', this model has attention='lssar'; leave out",
    ),
    (f"attention-maps {WHOLE} --layer 9 --out DIR/x.png", "layer must be in [-2, 2), got 9"),
    (
        f"probe {WHOLE} --probes rollout",
        f"rollout does not take {WHOLE}: a ForceModel predicts no next row; take a NextTokenModel",
    ),
    (f"probe {WHOLE} {ELSEWHERE}", f"{WHOLE} and {ELSEWHERE} are of different worlds, which neve"),
    ("probe DIR/odd.py:Still --probes exchange", "exchange does not take DIR/odd.py: it exchanges"),
    ("probe DIR/odd.py:Still --probes linear", "linear does not take DIR/odd.py: the model has no"),
    (f"probe DIR/odd.py:Still {ELSEWHERE}", f"DIR/odd.py and {ELSEWHERE} are of different worl"),
    ("fot", "unknown command 'fot'; did you mean fit? choose from fit, "),
]


IN_A_FILE = {
    "trainer: {max_steps: abc}": "trainer.max_steps must be a whole number, got 'abc'",
    "trainer: {max_step: 3}": "unknown key 'trainer.max_step'; did you mean --trainer.max_steps?",
    "model: {class_path: TextModel, init_args: {n_layers: 3}}": "unknown key 'model.n_layers'; did",
    "model: {n_layer: 1.5, class_path: TextModel}": "model.n_layer must be a whole number, got '",
    "data: {protocol_args: {law: newtn}}": "unknown law 'newtn'; did you mean newton?",
    "data: {batch_size: many}": "data.batch_size must be a whole number, got 'many'",
    "seed_everything: abc": "seed_everything must be true or false or a whole number, got 'abc'",
    "trainr: {max_steps: 3}": "unknown key 'trainr.max_steps'; did you mean --trainer.max_steps?",
    "notes: 3": "unknown key 'notes'; choose from ckpt_path, config, data, help",
    "model: [1]": "model must be a class, or settings by name, got [1]",
    "3: x": "unknown key '3'",
    "model: {n_layer: 2}": "names no model; add class_path below model, one of NextTokenModel",
    "trainer: {": "not YAML: while parsing a flow node",
    "- trainer": "holds no settings of the form key: value",
}
"""Configurations, and what is said of each."""
WRONG = [
    ("fit -c pretrain --seed_everything=abc", "seed_everything must be true or false or a whole n"),
    ("fit -c pretrain --seed_everything=-3", "seed_everything must be in [0, 2^32), got -3"),
    ("test DIR/last.ckpt --data.batch_size=-1", "data.batch_size must be at least 1, got -1"),
    ("fit -c pretrain --data.seed=-1", "data.seed must be in [0, 2^64), got -1"),
    ("fit -c pretrain --seed_everything 1.5", "seed_everything must be true or false or a whole n"),
    ("test -c DIR/shift.yaml", "DIR/shift.yaml: unknown shift 'clozer'; did you mean clo"),
    *((f"fit -c DIR/{n}.yaml", f"DIR/{n}.yaml: {x}") for n, x in enumerate(IN_A_FILE.values())),
    ("fit -c pretrain --trainer.max_steps=abc", "trainer.max_steps must be a whole number, got 'a"),
    ("fit -c text --trainer.precision 17", "unknown trainer.precision '17'; choose from 64, 32,"),
    (
        "fit -c pretrain --trainer.accelerator=gpux",
        "unknown trainer.accelerator 'gpux'; did you mean gpu?",
    ),
    ("fit -c pretrain --trainer.devices=all", "trainer.devices must be auto, a number of devices"),
    ("fit -c pretrain --trainer.max_time=12", "trainer.max_time must be a time DD:HH:MM:SS, got"),
    (
        "fit -c pretrain --trainer.gradient_clip_val=x",
        "trainer.gradient_clip_val must be a finite number or null, got 'x'",
    ),
    ("fit -c pretrain --trainer.zzz=3", "unknown key 'trainer.zzz'; choose from accelerator, ac"),
    (
        "fit -c pretrain --data.protocol=identifable",
        "unknown data.protocol 'identifable'; did you mean identifiable?",
    ),
    (
        "fit -c pretrain --data.law=newton",
        "unknown key 'data.law'; did you mean --data.protocol_args.law?",
    ),
    ("fit -c pretrain --law=newton", "unknown key 'law'; did you mean --data.protocol_args.law?"),
    ("fit -c pretrain --model.law=newton", "unknown key 'model.law'; did you mean --data.proto"),
    ("fit -c pretrain --zzz=3", "unknown key 'zzz'; choose from ckpt_path, config, data, help"),
    ("fit -c pretrain --data.protocol_args={law:newton}", "data.protocol_args must be of the form"),
    ("fit -c pretrain --data.protocol_args.law=newtn", "unknown law 'newtn'; did you mean newton?"),
    ("fit -c pretrain --trainer.max_steps", "--trainer.max_steps needs a value"),
    ("fit -c pretrain --data.images --data.n_train=3", "--data.images needs a value"),
    ("fit -c pretrain --trainer.max_steps=0", "trainer.max_steps must be at least 1, got 0"),
    ("fit -c pretrain --data.batch_size 0", "data.batch_size must be at least 1, got 0"),
    ("test -c force my.ckpt", "unrecognized word 'my.ckpt'; name the checkpoint first"),
    ("fit -c pretrain lssar", "unrecognized word 'lssar'"),
    ("fit pretrain --model.lr=1", "unrecognized word 'pretrain'; did you mean -c pretrain?"),
    ("test --data.protocol_args.shift=clozer", "unknown shift 'clozer'; did you mean closer?"),
    ("fit -c pretrain --data.protocol_args.shift=closer", "data.protocol_args has test systems al"),
    (
        'finetune -c force --data.protocol_args={"shift":"closer"}',
        "data.protocol_args has test systems alone, of shift 'closer'; take python -m worldmodel",
    ),
    (
        "fit -c pretrain --model.attention=lssar --model.attention_args.p=abc",
        "p of lssar must be a positive number, got 'abc'",
    ),
    (
        "fit -c pretrain --model.attention=lssar --model.attention_args.n_kv_heads 2",
        "lssar has no n_kv_heads; did you mean n_kv_head?",
    ),
    (
        "fit -c pretrain --model.attention gla --model.init_args.attention_args.p=2",
        "gla has no p; it takes ",
    ),
    ("fit -c pretrain --data.seq_len=3", "unknown key 'data.seq_len'; choose from batch_size, c"),
    ("fit -c pretrain --model.n_train=3", "unknown key 'model.n_train'; did you mean --data.n_t"),
    ("fit -c pretrain --model.n_layer=1.5", "model.n_layer must be a whole number, got '1.5'"),
    ("fit -c pretrain --model.lr=fast", "model.lr must be a finite number, got 'fast'"),
    ("fit -c pretrain --model.lr=-1", "model.lr must be at least 0 and finite, got -1"),
    ("fit -c pretrain --model.min_lr_ratio=2", "model.min_lr_ratio must be in [0, 1], got 2"),
    ("fit -c pretrain --model.head_dim=7", "model.head_dim must be even for RoPE, got 7"),
    ("fit --model TextModel --data=TextData --model.tied=maybe", "model.tied must be true or f"),
    (
        "fit -c pretrain --model.init_args.optimizer=adam",
        "unknown model.optimizer 'adam'; did you mean adamw? choose from muon, adamw",
    ),
    ("fit --model=NextTokenModle", "unknown model class 'NextTokenModle'; did you mean NextTok"),
    ("fit --data.help TextDta", "unknown data class 'TextDta'; did you mean TextData?"),
]


ODD = """
class Mute:
    pass

class Still:
    def observe(self, seen):
        return seen.places

    def predict_next(self, places):
        return places

class Ahead:
    def observe(self, seen):
        return seen.places

    def predict_next(self, places):
        return places[:, ::-1]
"""


WRITES = """
trainer:
  callbacks:
    - class_path: worldmodel.training.callbacks.PredictionWriter
      init_args: {{path: {}}}
"""


ABSENT = """
from worldmodel.__main__ import LOGGERS
LOGGERS["AbsentLogger"] = ("absent_package",)
"""


@pytest.mark.parametrize(
    "refusals",
    [pytest.param(MISSING, id="missing"), pytest.param(WRONG, id="wrong", marks=pytest.mark.full)],
)
def test_what_is_not_there_or_wrong_is_refused_before_torch_is_imported(tmp_path, refusals):
    saved = "model:\n  init_args:\n    pretrained: gone.ckpt\n"
    (tmp_path / "saved.yaml").write_text(saved, "utf-8")
    shift = "data: {protocol_args: {shift: clozer}}"
    (tmp_path / "shift.yaml").write_text(shift, "utf-8")
    (tmp_path / "odd.py").write_text(ODD, "utf-8")
    (tmp_path / "made.npz").touch()
    (tmp_path / "writes.yaml").write_text(WRITES.format(tmp_path / "made.npz"), "utf-8")
    with zipfile.ZipFile(tmp_path / "last.ckpt", "w") as archive:
        archive.writestr("data.pkl", "")
    shutil.copytree(ROOT / WHOLE, tmp_path / "cut")
    os.truncate(tmp_path / "cut" / "model.safetensors", 20_000)
    for number, text in enumerate(IN_A_FILE):
        (tmp_path / f"{number}.yaml").write_text(text, "utf-8")
    commands = [command.replace("DIR", str(tmp_path)) for command, _ in refusals]
    lines = refused_without_torch("worldmodel.__main__", commands, ABSENT)
    for line, (command, message) in zip(lines, refusals, strict=True):
        said = message.replace("DIR", str(tmp_path))
        assert line.startswith(f"error: {said}"), command


def test_keys_of_a_class_from_elsewhere_are_not_ours_to_refuse():
    near = ["--model.n_heads=3"]
    with pytest.raises(ValueError, match=r"did you mean --model\.n_head"):
        checks.check(near, {"model": "worldmodel.models.orbit.ForceModel"})
    checks.check(near, {"model": "their_package.Model"})
    checks.check(["--optimizer.momentun=0.9", "--trainer.callbacks+=RichProgressBar"], {})


@pytest.mark.parametrize("words", ["--help", "fit --help"])
def test_a_reader_of_the_help_may_leave_early(words):
    command = [sys.executable, "-m", "worldmodel", *words.split()]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as asked:
        asked.stdout.close()
        assert asked.stderr.read() == b""
