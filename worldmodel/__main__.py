"""``python -m worldmodel``: train, evaluate and probe models, and make the tokens they read.

The first word chooses what is imported. Help needs no torch, and files and names that are not
there are refused before it is loaded.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from attention.listing import check_name
from orbits.runs.cli import OneLineParser, one_line_errors
from worldmodel.models.checkpoint import KEYWORDS, check_file
from worldmodel.probes import names

USAGE = "usage: python -m worldmodel {} [-c CONFIG.yaml] [--key.subkey VALUE ...]"
ABOUT = {
    "fit": """pre-train on next-token prediction, of orbits (worldmodel/configs/pretrain.yaml) or
             of text (configs/text.yaml; lm_124m.yaml and others on token shards); with
             StateModel, on the true state""",
    "finetune": "train a force head, from --pretrained CKPT or from scratch (configs/force.yaml)",
    "validate": "evaluate a checkpoint on the validation sequences",
    "test": "evaluate a checkpoint on the held-out test sequences",
    "attention-maps": """CKPT [--layer N] [--sequence N] [--text TEXT] [--out PNG]
             draw the weights of every head of a block on one held-out orbit, or on a text""",
    "predict": "write a force model's predictions to a file that symreg reads",
    "probe": """CKPT [CKPT ...] [--probes all|NAME,...] [--out DIR]
             evaluate checkpoints beside controls and ceilings: results, figures, report""",
    "shards": "write a corpus as files of tokens, for ShardData",
    "bpe": "train a byte-level BPE tokeniser on a corpus",
}
EXAMPLES = """
examples:
  python -m worldmodel fit -c worldmodel/configs/pretrain.yaml --model.attention=lssar
  python -m worldmodel fit -c worldmodel/configs/text.yaml --data.path my-texts
  python -m worldmodel finetune -c worldmodel/configs/force.yaml --pretrained CKPT
  python -m worldmodel predict -c worldmodel/configs/force.yaml --ckpt_path CKPT
  python -m worldmodel probe runs/pretrain/version_0/checkpoints/last.ckpt --probes rollout,linear
"""
KEYS = """
`--ckpt_path CKPT` names the checkpoint to evaluate, or the training to resume.
`python -m worldmodel {0} --help-all` lists the keys of the trainer (it takes seconds),
`{0} --model.help CLASS` those of a model (NextTokenModel, ForceModel, StateModel, TextModel),
`{0} --data.help CLASS` those of its data (OrbitData, TextData, ShardData), and
`{0} --print_config` all keys with their values."""

TRAINING = ("fit", "finetune")
LIGHTNING = (*TRAINING, "validate", "test", "predict")
HELP = ("-h", "--help")
MODULES = {
    "probe": "worldmodel.probes.command",
    "shards": "worldmodel.text.make_shards",
    "bpe": "worldmodel.text.make_tokenizer",
}
"""Modules of commands that are not Lightning's; each has a ``main``."""
CHECKED = ("ckpt_path", "pretrained", "model.pretrained", "data.path", "model.attention")
"""Keys whose values are checked before Lightning is imported."""


def main() -> None:
    """Run the command that the first word names; every failure is one line."""
    command, arguments = (sys.argv[1], sys.argv[2:]) if sys.argv[1:] else ("--help", [])
    if command in HELP:
        print(_overview())
    elif command in MODULES:
        importlib.import_module(MODULES[command]).main(arguments)
    elif command == "attention-maps":
        attention_maps(arguments)
    elif command in LIGHTNING and arguments and arguments[0] in HELP:
        about = " ".join(ABOUT[command].split())
        print(f"{USAGE.format(command)}\n\n{about}\n{KEYS.format(command)}")
    else:
        with one_line_errors(resumes=False):
            _check(command, arguments)
            sys.argv[1:] = [word.replace("--help-all", "--help") for word in sys.argv[1:]]
            importlib.import_module("worldmodel.cli").main()


def _overview() -> str:
    commands = "\n".join(
        f"  {name} {about}" if about.startswith("CKPT") else f"  {name:10s} {about}"
        for name, about in ABOUT.items()
    )
    return (
        f"{USAGE.format('COMMAND')}\n\ncommands:\n{commands}\n{EXAMPLES}{KEYS.format('COMMAND')}"
        f"\n\nprobes: {', '.join(names())}"
    )


def _check(command: str, arguments: Sequence[str]) -> None:
    """Refuse an unknown command, and files and names that are not there."""
    if command not in LIGHTNING and not command.startswith("-"):
        raise ValueError(f"unknown command {command!r}; choose from {', '.join(ABOUT)}")
    parser = OneLineParser(add_help=False)
    parser.add_argument("-c", "--config", action="append", default=[])
    for key in CHECKED:
        group, _, name = key.rpartition(".")
        spellings = {f"--{key}", f"--{group}.init_args.{name}" if group else f"--{key}"}
        parser.add_argument(*spellings, dest=key, default=argparse.SUPPRESS)
    flags = vars(parser.parse_known_args(arguments)[0])
    values: dict[str, Any] = {}
    for path in flags.pop("config"):
        if ":" in path:  # a configuration itself, or a URL
            continue
        if not Path(path).exists():
            raise FileNotFoundError(f"{path}: no such file")
        values |= _settings(path)
    values = {key: value for key, value in (values | flags).items() if value not in (None, "null")}
    checkpoints = ["ckpt_path"]
    if command in TRAINING and "ckpt_path" not in values:
        checkpoints += ["pretrained", "model.pretrained"]
    for key in checkpoints:
        if key in values and values[key] not in KEYWORDS and "://" not in values[key]:
            check_file(values[key])
    text = values.get("data.path", "")
    if text and ":" not in text and not Path(text).exists():
        raise FileNotFoundError(f"{text}: no such file")
    if "model.attention" in values:
        check_name(values["model.attention"])


def _settings(path: str) -> dict[str, Any]:
    """Return the settings of a configuration that are checked, by their keys."""
    try:
        content = yaml.safe_load(Path(path).read_text("utf-8"))
    except (OSError, UnicodeError, yaml.YAMLError):
        return {}  # whose message names more than this one could
    settings = {}
    for key in CHECKED:
        value = content
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
            value = value.get("init_args", value) if isinstance(value, dict) else value
        settings[key] = value if isinstance(value, str) else None
    return settings


def attention_maps(arguments: list[str]) -> None:
    """Draw the attention maps of a checkpoint."""
    parser = OneLineParser(prog="python -m worldmodel attention-maps")
    parser.add_argument("checkpoint")
    parser.add_argument("--layer", type=int, default=-1, help="which block (default: the last)")
    parser.add_argument("--sequence", type=int, help="orbits: which test sequence (default: 0)")
    parser.add_argument("--text", help="text: what to draw (default: the LSSAR paper's sentence)")
    parser.add_argument("--out", default="attention-maps.png")
    options = parser.parse_args(arguments)
    with one_line_errors(resumes=False):
        check_file(options.checkpoint)
        if Path(options.out).exists():
            raise FileExistsError(f"{options.out} exists; choose another --out")
        print(importlib.import_module("worldmodel.maps").attention_maps(**vars(options)))


if __name__ == "__main__":
    main()
